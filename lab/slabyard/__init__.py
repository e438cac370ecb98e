"""The lab: records what a live Linux kernel allocates, replays it under every allocator of the yard, and compares.

The package starts programs and reads their JSON; it never links the core. What flows through it names its packages:

    a kernel ──> capture ──> trace ──> replay ──> results ──> report ──> a person
                                                     └─ kernels: real ones, built, booted, measured into results

    base       what all of them stand on: the user's one-line errors, child processes, files, tables, SVG, HTML, the terminal
    trace      the file that a trace is, and the kernel's own texts in it (slabinfo, buddyinfo, GFP flags)
    attribution  who holds memory in a trace: caches, call sites, tasks, pinned pages; exports of it to other tools
    capture    records a kernel; makes a trace of what perf or tracefs wrote
    live       the caches of the running kernel, as they grow
    replay     a trace as the flat arrays that the replay program reads, and its passes under an allocator
    results    runs repeated and interleaved, their records, and what these say: estimates, ranks, sentences
    diff       what changed between two results, traces or dumps of caches, and whether it is a regression
    tune       the tunables of an allocator on a trace: every setting or a search, the frontier, which tunable matters
    report     records for people: tables, the HTML page, drawings
    kernels    real kernels as another source of records
    sweep      a matrix of all these runs, by many processes or machines, that may be killed and goes on
    study      the experiments of five papers, reproduced, with what holds of them
    command    the command line: verbs, options, exit statuses

Imports go one way: a package may import those above it in this list, and none below. The one that stands against the flow is `trace`
before `capture`: who writes a trace must know its form. tests/python/test_packages.py holds every module to this.
Whoever imports the package finds what api.py has: open(), replay(), compare().
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .api import Comparison as Comparison
    from .api import Error as Error
    from .api import Run as Run
    from .api import Trace as Trace
    from .api import compare as compare
    from .api import open as open
    from .api import replay as replay

__version__ = "0.1.0"
_API = ("Comparison", "Error", "Run", "Trace", "compare", "open", "replay")


def __getattr__(name: str) -> Any:
    """api.py and what it loads come with the first use of a name: the command line starts without."""
    if name not in _API:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import api

    # Loading api also loads the package `replay`, which then stands under the name of the function.
    globals().update({one: getattr(api, one) for one in _API})
    return getattr(api, name)


def __dir__() -> list[str]:
    return [*globals(), *_API]
