"""The lab: records what a live Linux kernel allocates, replays it under every allocator of the yard, and compares.

The package starts programs and reads their JSON; it never links the core. Modules, from the user inwards:

    cli                  verbs, options, exit statuses
    compare, info, record, importer, report    what a verb does
    replay               one trace under one allocator: a result record
    population, scratch  a trace as the flat arrays that the replay program reads
    snapshots, gfp       the kernel's own texts and flag names
    kernels              real kernels, built, booted and measured
    measures, records    what is measured, and the record that holds it
    programs, output, errors    child processes, files and tables, the user's one-line messages
"""

__version__ = "0.1.0"
