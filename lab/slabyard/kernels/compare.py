"""Several kernels under several workloads: boots them in turn, and says what came out.

Repetitions are interleaved, A B C A B C, each a fresh boot, so that whatever slows this machine for a while slows all. Ranks and
sentences are those of results.ranks: one allocator is better than another only where their intervals lie apart, in memory and events too,
since no two boots are alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..base.table import Cell, Figure, Table, counted, show
from ..base.terminal import Progress
from ..results import measures, ranks, records
from ..results.measures import Measure
from ..results.model import Section, memory_unit, page_bytes, workloads
from ..results.records import Record
from . import run
from .machine import Plan

LEGEND = (
    "seconds: the workload's time, median with its 95% interval. start, peak: meminfo's",
    "Slab (slabs and large allocations) before the workload, and the most seen, looking",
    "every 20 ms. grew: the peak less the start. kept: what was there a second after the",
    "workload, less the start. events: blocks taken from another migrate type while it",
    "ran (mm_page_alloc_extfrag).",
)


def compare(plans: Sequence[Plan], runs: int, warmup: int, progress: Progress) -> list[Record]:
    """Boots the plans of each workload in turn; a record for each plan, in their order."""
    by_workload: dict[str, dict[str, Plan]] = {}
    for plan in plans:
        by_workload.setdefault(plan.job.name, {})[plan.spec.text] = plan
    return [record for name, group in by_workload.items() for record in _one(name, group, runs, warmup, progress)]


def _one(name: str, group: Mapping[str, Plan], runs: int, warmup: int, progress: Progress) -> list[Record]:
    progress.stage(f"{name} on {counted(len(group), 'kernel')}")
    kept = records.interleaved(group, runs, warmup, name, progress, lambda spec, _: run.once(group[spec]))
    return [run.record(plan, kept[spec]) for spec, plan in group.items()]


def tables(found: Sequence[Record]) -> list[Table]:
    """One table for each workload with its sentence, and the ranking."""
    out = []
    sections = workloads(found)
    for section in sections:
        members = [one.record for one in section.series]
        out.append(_table(members, section))
    if any(len(section.series) > 1 for section in sections):
        out.append(ranks.ranking(sections))
    out[-1].notes += LEGEND
    return out


def _table(group: Sequence[Any], section: Section) -> Table:
    first = group[0]["run"]
    unit, size = memory_unit(section)
    columns = ["allocator", "seconds", "95%", "start", "grew", "95%", "kept", "peak", "events"]
    rows = [_row(record, page_bytes(section) / size) for record in group]
    title = (
        f"{section.name}: Linux {first['kernel']} for {first['arch']} ({first['accelerator']}), {counted(first['cpus'], 'CPU')}, "
        f"{first['memory'] >> 20} MiB, {first['repetition']} boots each, slabs in {unit}"
    )
    notes = [ranks.sentence(section), *run.trouble_notes(group)]
    return Table(title, columns, rows, notes)


def _row(record: Any, page: float) -> list[Cell]:
    """A record's cells; `page` is a page in the table's unit of memory, which the sentence has too."""
    timed = record["timed"]
    bounds = timed["intervals"]
    seconds, decimals = timed["seconds"], 0 if page >= 1 else 2
    around = "-"
    if "grew_pages_peak" in bounds:
        around = "-".join(f"{pages * page:.{decimals}f}" for pages in bounds["grew_pages_peak"])
    memory = (timed[name] * page for name in ("held_pages_start", "grew_pages_peak", "grew_pages_end", "held_pages_peak"))
    start, rise, stayed, peak = (Figure(value, f"{value:,.{decimals}f}") for value in memory)
    return [
        record["run"]["allocator"],
        Figure(seconds, f"{seconds:.3g}"),
        f"{bounds['seconds'][0]:.3g}-{bounds['seconds'][1]:.3g}" if "seconds" in bounds else "-",
        start,
        rise,
        around,
        stayed,
        peak,
        timed["fragmentation_events"],
    ]


MEASURES = (
    Measure("seconds", "timed", "s", "time of the workload"),
    Measure("user_seconds", "timed", "s", "processor time in programs"),
    Measure("system_seconds", "timed", "s", "processor time in the kernel"),
    Measure("boot_seconds", "timed", "s", "from the kernel's start to the workload"),
    Measure("held_pages_start", "timed", "KiB", "slabs and large allocations before"),
    Measure("held_pages_peak", "timed", "KiB", "slabs and large allocations, most seen"),
    Measure("held_pages_end", "timed", "KiB", "slabs and large allocations after"),
    Measure("grew_pages_peak", "timed", "KiB", "growth: the peak less the start"),
    Measure("grew_pages_end", "timed", "KiB", "kept: the end less the start"),
    Measure("fragmentation_events", "timed", "", "fallback events of the workload"),
    Measure("fragmentation_events_boot", "timed", "", "fallback events since the start"),
)
BUSIEST = 12


def details(record: Record, all_caches: bool) -> list[Table]:
    """One record in full, for people."""
    about, timed, kernel = record["run"], record["timed"], record["kernel"]
    rows: list[list[Cell]] = []
    for measure in MEASURES:
        factor = 4 if measure.unit == "KiB" else 1
        bounds = timed["intervals"].get(measure.name)
        span = f"{show(bounds[0] * factor)} to {show(bounds[1] * factor)}" if bounds else "-"
        rows.append([measure.title, timed[measure.name] * factor, measure.unit, span])
    title = (
        f"{about['allocator']} on {about['workload']}: Linux {about['kernel']} for {about['arch']} ({about['accelerator']}), "
        f"{counted(about['cpus'], 'CPU')}, {about['memory'] >> 20} MiB"
    )
    notes = [f"median of {about['repetition']} boots; intervals from {measures.FEWEST_RUNS} on"] if about["repetition"] > 1 else []
    notes += [f"the log has: {line}" for line in dict.fromkeys(kernel["trouble"])]
    out = [Table(title, ["measure", "value", "unit", "95%"], rows, notes=notes)]
    caches = kernel["caches"]
    if caches:
        shown = caches if all_caches else caches[:BUSIEST]
        columns = ["name", "size", "active_objects", "objects", "slabs", "pages"]
        more = [f"and {len(caches) - len(shown)} more; --caches shows all"] if len(shown) < len(caches) else []
        out.append(Table("", ["cache", *columns[1:]], [[cache[name] for name in columns] for cache in shown], notes=more))
    return out


def flat(found: Sequence[Record]) -> Table:
    """One row for each record with every measure: for CSV."""
    fields = {name: name for name in ("workload", "allocator", "arch", "accelerator", "cpus", "nodes", "memory")}
    return records.flat(found, {**fields, "boots": "repetition"}, MEASURES)
