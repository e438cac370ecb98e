"""`slabyard sweep PLAN.toml`: a matrix of runs, which may be killed and goes on."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..base.errors import DONE, INCOMPLETE, UserError
from ..base.files import check_outputs, export_json
from ..base.table import Cell, Table, results
from ..base.terminal import note
from .words import add_format, add_verb, count, file, new_file

if TYPE_CHECKING:
    from ..sweep.plan import Plan

PLAN = """\
repetitions = 6                 # of each run
[[matrix]]
substrate = "replay"            # lists: cpus, nodes, memory, start
traces = ["traces/*.parquet"]   # beside the plan
allocators = ["slub", "slab"]
vary = { slub = "max_order=0..3,cpu_partial=0,8" }
cpus = [1, 2]
[[matrix]]
substrate = "threads"         # lists: threads, seeds, operations, size, batch
workloads = ["larson"]
allocators = ["slub", "malloc:system"]
threads = [1, 2]
[[matrix]]
substrate = "kernel"            # lists: arch, cpus, nodes, memory
workloads = ["hackbench"]
allocators = ["slub", "slabyard:slqb"]
"""
SHOWN_FAILURES = 5


def add(parent: Any) -> None:
    plan = "\n".join(f"  {line}" for line in PLAN.splitlines())
    verb = add_verb(
        parent, "sweep", "a matrix of runs, on this machine or a cluster", _sweep,
        "slabyard sweep plan.toml\n  slabyard sweep plan.toml --workers 2 -o results\n"
        f"  slabyard sweep plan.toml --scheduler tcp://10.0.0.1:8786\n\nplan.toml:\n{plan}",
        "A sweep that was killed resumes where it stopped. Results are Parquet, one row per run.",
    )  # fmt: skip
    verb.add_argument("plan", type=file, metavar="PLAN.toml")
    verb.add_argument("-o", "--output", type=file, metavar="FOLDER", help="folder of the results (default: the plan's name without .toml)")
    verb.add_argument(
        "--workers", type=count(256), metavar="N",
        help="processes, each with one run at a time (default: half of the CPUs, as runs slow each other)",
    )  # fmt: skip
    verb.add_argument("--scheduler", metavar="ADDRESS", help="a running Dask cluster, whose workers do the runs")
    verb.add_argument(
        "--export-json", type=new_file, metavar="FILE", help="also write result records, with repetitions combined, as for diff"
    )
    verb.add_argument("--retry", action="store_true", help="try failed runs again")
    verb.add_argument("--dry-run", action="store_true", help="show what would be run, and how much is done")
    add_format(verb)


def _sweep(options: argparse.Namespace) -> int:
    from ..sweep import plan as plans
    from ..sweep import sweep
    from ..sweep.store import records

    if options.scheduler and options.workers:
        raise UserError("--workers are processes of this machine; a cluster has its own, so leave out one of --workers and --scheduler")
    plan = plans.read(options.plan)
    folder = options.output or options.plan.with_suffix("")
    if folder == options.plan:
        raise UserError(f"{options.plan}: a plan's name ends in .toml; or name a folder for the results with -o")
    check_outputs((options.export_json,), (options.plan,))
    if options.dry_run:
        return _show(plan, folder, options.format)
    found = sweep.sweep(plan, folder, options.workers or max(1, (os.cpu_count() or 1) // 2), options.scheduler, options.retry)
    if options.export_json is not None:
        export_json(options.export_json, records(folder))
    rows: list[list[Cell]] = [
        ["planned", found.planned], ["done before", found.done_before], ["done now", found.done], ["failed", len(found.failed)],
        ["results", str(found.results or "-")],
    ]  # fmt: skip
    about = {
        "planned": found.planned, "done_before": found.done_before, "done": found.done, "failed": found.failed,
        "results": None if found.results is None else str(found.results),
    }  # fmt: skip
    sys.stdout.write(results(about, options.format, lambda _: [Table("", ["runs", ""], rows)]))
    for title, reason in list(found.failed.items())[:SHOWN_FAILURES]:
        note(f"failed: {title}: {reason}")
    if len(found.failed) > SHOWN_FAILURES:
        note(f"failed: and {len(found.failed) - SHOWN_FAILURES:,} more; --retry tries them again")
    return INCOMPLETE if found.failed else DONE


def _show(plan: Plan, folder: Any, form: str) -> int:
    from ..sweep.store import Store

    done: dict[str, str | None] = {}
    if folder.is_dir():
        with Store(folder) as store:
            done = store.done
    groups: dict[tuple[str, str], list[bool]] = {}
    for run in plan.runs:
        groups.setdefault((run.substrate, run.workload), []).append(run.key in done)
    rows: Sequence[list[Cell]] = [[*names, len(flags), sum(flags)] for names, flags in groups.items()]
    names = ["substrate", "workload", "runs", "done"]
    shown = [dict(zip(names, row, strict=True)) for row in rows]
    sys.stdout.write(results(shown, form, lambda _: [Table("", names, list(rows), keys=2)]))
    return DONE
