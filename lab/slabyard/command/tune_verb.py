"""`slabyard tune`: the settings of an allocator that suit a trace."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import Any

from ..base.errors import DONE, INCOMPLETE
from ..base.files import check_outputs, to_json, whole_file
from ..base.table import results
from ..base.terminal import note
from .words import add_format, count, file, new_file

AddVerb = Callable[..., argparse.ArgumentParser]
TRIALS = 1000


def add(parent: Any, add_verb: AddVerb, machine: Callable[[argparse.ArgumentParser], None]) -> None:
    verb = add_verb(
        parent, "tune", "the settings of an allocator that suit a trace", _tune,
        "slabyard tune t.parquet --allocator slub --vary max_order=0..3,cpu_partial=0,8,30\n"
        "  slabyard tune t.parquet --allocator slub --plot slub.svg\n"
        "  slabyard tune t.parquet --allocator slab:colour=off --trials 200 --format csv",
        "Replays the trace under each setting, or searches them where there are too many, and shows those that nothing beats in memory, "
        "cost and fragmentation.",
    )  # fmt: skip
    verb.add_argument("trace", type=file, metavar="T.parquet")
    verb.add_argument("--allocator", required=True, metavar="SPEC", help="policy[:tunable=value,...]; what it sets stays")
    verb.add_argument(
        "--vary", action="append", default=[], metavar="TUNABLE=VALUES,...",
        help="as in max_order=0..3,cpu_partial=0,8,30 or 0..64:16 (default: a few values of every tunable)",
    )  # fmt: skip
    verb.add_argument("--trials", type=count(1000000), default=TRIALS, metavar="N", help=f"most settings to try (default: {TRIALS})")
    verb.add_argument("--runs", type=count(1000, 0), default=6, metavar="N", help="timed runs of the settings that matter (default: 6)")
    verb.add_argument("--cost", action="store_true", help="count the instructions of these too, by valgrind")
    verb.add_argument("--jobs", type=count(256), metavar="N", help="replays side by side (default: one for each CPU)")
    verb.add_argument("--plot", type=new_file, metavar="FILE.svg", help="draw memory against cost, with the frontier")
    machine(verb)
    add_format(verb)


def _tune(options: argparse.Namespace) -> int:
    from ..replay import cost
    from ..replay.workload import Options
    from ..trace.file import Trace
    from ..tune import tables, tune

    check_outputs((options.plot,), (options.trace,))
    if options.cost:
        cost.check()
    settings = tune.check(options.allocator, options.vary, options.trials)
    machine = Options(options.cpus, options.nodes, options.memory, options.start, options.allow_failures)
    machine.check()
    with Trace(options.trace) as trace:
        incomplete = trace.metadata.incomplete
    found = tune.tune(options.trace, machine, settings, options.trials, options.jobs, options.runs, options.cost)
    if options.plot is not None:
        from ..tune.plot import picture

        with whole_file(options.plot) as part:
            part.write_text(picture(found))
    shown = to_json(found.as_json()) if options.format == "json" else results(found, options.format, tables.tables, tables.flat)
    sys.stdout.write(shown)
    if incomplete:
        note(f"{options.trace} is incomplete: {incomplete}")
        return INCOMPLETE
    return DONE
