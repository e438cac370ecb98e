"""`slabyard tune`: the settings of an allocator that suit a trace."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from ..base.files import check_outputs, to_json, write_text
from ..base.table import results
from .status import completeness
from .verbs import machine_options
from .words import add_format, add_machine, add_verb, count, file, new_file

TRIALS = 1000  # most settings


def add(parent: Any) -> None:
    verb = add_verb(
        parent, "tune", "the settings of an allocator that suit a trace", _tune,
        "slabyard tune t.parquet --allocator slub --vary max_order=0..3,cpu_partial=0,8\n"
        "  slabyard tune t.parquet --allocator slub --plot slub.svg\n"
        "  slabyard tune t.parquet --allocator slab:colour=off --trials 200 --format csv",
        "Replays the trace under each setting, or searches if there are too many, and shows the settings that no other beats in memory, "
        "cost and fragmentation.",
    )  # fmt: skip
    verb.add_argument("trace", type=file, metavar="T.parquet")
    verb.add_argument("--allocator", required=True, metavar="SPEC", help="policy[:tunable=value,...]; tunables set here are not varied")
    verb.add_argument(
        "--vary", action="append", default=[], metavar="TUNABLE=VALUES,...",
        help="as in max_order=0..3,cpu_partial=0,8,30 or 0..64:16 (default: a few values of every tunable that matters here)",
    )  # fmt: skip
    verb.add_argument("--trials", type=count(1000000), default=TRIALS, metavar="N", help=f"most settings to try (default: {TRIALS})")
    verb.add_argument("--runs", type=count(1000, 0), default=6, metavar="N", help="timed runs of the settings that matter (default: 6)")
    verb.add_argument("--cost", action="store_true", help="also count their instructions, with valgrind")
    verb.add_argument("--jobs", type=count(256), metavar="N", help="replays at once (default: one for each CPU)")
    verb.add_argument("--plot", type=new_file, metavar="FILE.svg", help="draw memory against cost, with the frontier")
    add_machine(verb)
    add_format(verb)


def _tune(options: argparse.Namespace) -> int:
    from ..replay import cost
    from ..replay.scratch import kernel_version
    from ..trace.file import Trace
    from ..tune import tables, tune

    check_outputs((options.plot,), (options.trace,))
    if options.cost:
        cost.check()
    machine = machine_options(options)
    machine.check()
    with Trace(options.trace) as trace:
        incomplete, kernel = trace.metadata.incomplete, kernel_version(trace.metadata)
    settings = tune.check(options.allocator, options.vary, options.trials, kernel)
    found = tune.tune(options.trace, machine, settings, options.trials, options.jobs, options.runs, options.cost)
    if options.plot is not None:
        from ..tune.plot import picture

        write_text(options.plot, picture(found))
    shown = to_json(found.as_json()) if options.format == "json" else results(found, options.format, tables.tables, tables.flat)
    sys.stdout.write(shown)
    return completeness({str(options.trace): incomplete})
