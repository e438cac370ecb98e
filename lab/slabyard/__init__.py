"""The lab: records what a live Linux kernel allocates, replays it under every allocator of the yard, and compares.

The package starts programs and reads their JSON; it never links the core. What flows through it names its packages:

    a kernel ──> capture ──> trace ──> replay ──> results ──> report ──> a person
                                                     └─ kernels: real ones, built, booted, measured into results

    base       what all of them stand on: the user's one-line errors, child processes, files, tables, SVG, HTML, the terminal
    trace      the file that a trace is, and the kernel's own texts in it (slabinfo, buddyinfo, GFP flags)
    capture    records a kernel; makes a trace of what perf or tracefs wrote
    live       the caches of the running kernel, as they grow
    replay     a trace as the flat arrays that the replay program reads, and its passes under an allocator
    results    runs repeated and interleaved, their records, and what these say: estimates, ranks, sentences
    diff       what changed between two results, traces or dumps of caches, and whether it is a regression
    tune       the tunables of an allocator on a trace: every setting or a search, the frontier, which tunable matters
    report     records for people: tables, the HTML page, drawings
    kernels    real kernels as another source of records
    sweep      a matrix of all these runs, by many processes or machines, that may be killed and goes on
    command    the command line: verbs, options, exit statuses

Imports go one way: a package may import those above it in this list, and none below. The one that stands against the flow is `trace`
before `capture`: who writes a trace must know its form. tests/python/test_packages.py holds every module to this.
"""

__version__ = "0.1.0"
