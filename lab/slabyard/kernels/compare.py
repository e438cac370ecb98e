"""Several kernels under several workloads: boots them in turn, and says what came out.

Repetitions are interleaved, A B C A B C, each a fresh boot, so that whatever slows this machine for a while slows all. Ranks and
sentences are those of results.ranks: one allocator is better than another only where their intervals lie apart, in memory and events too,
since no two boots are alike.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

from ..base.table import Cell, Table, show
from ..base.terminal import Progress
from ..results import measures, ranks
from ..results.model import Workload as Section
from ..results.model import memory_unit, page_bytes, workloads
from ..results.records import Record
from . import run
from .run import Plan, Run

LEGEND = (
    "seconds: the workload's time, median with its 95% interval. peak, end: meminfo's",
    "Slab (slabs and large allocations): the most seen, looking every 20 ms, and a",
    "second after the workload. events: blocks taken from another migrate type while",
    "it ran (mm_page_alloc_extfrag).",
)


def compare(plans: Sequence[Plan], runs: int, warmup: int, progress: Progress) -> list[Record]:
    """Boots the plans of each workload in turn; a record for each plan, in their order."""
    found: list[Record] = []
    by_workload: dict[str, list[Plan]] = {}
    for plan in plans:
        by_workload.setdefault(plan.job.name, []).append(plan)
    for name, group in by_workload.items():
        progress.stage(f"{name} on {len(group)} kernel{'s' if len(group) > 1 else ''}")
        kept: list[list[Run]] = [[] for _ in group]
        for turn in range(warmup + runs):
            for plan, samples in zip(group, kept, strict=True):
                kind = "warm-up" if turn < warmup else f"run {turn - warmup + 1} of {runs}"
                progress.step(f"{name}: {plan.spec.text}, {kind}", 0)
                done = run.once(plan)
                if turn >= warmup:
                    samples.append(done)
                progress.step(f"{name}: {plan.spec.text}, {kind}")
        found += [run.record(plan, samples) for plan, samples in zip(group, kept, strict=True)]
    return found


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
    columns = ["allocator", "seconds", "95%", f"peak {unit}", "95%", f"end {unit}", "events"]
    rows = [_row(record, page_bytes(section) / size) for record in group]
    title = (
        f"{section.name}: Linux {first['kernel']} for {first['arch']} ({first['accelerator']}), {_cpus(first)}, "
        f"{first['memory'] >> 20} MiB, {first['repetition']} boots each"
    )
    notes = textwrap.wrap(ranks.sentence(section), 80)
    for record in group:
        for line in dict.fromkeys(record["kernel"]["trouble"]):
            notes += textwrap.wrap(f"The log of {record['run']['allocator']} has: {line}", 80)
    return Table(title, columns, [cells for cells, _ in rows], [texts for _, texts in rows], notes)


def _cpus(about: Any) -> str:
    return f"{about['cpus']} CPU{'s' if about['cpus'] > 1 else ''}"


def _row(record: Any, page: float) -> tuple[list[Cell], list[str]]:
    """A record's cells, and what is shown of them; `page` is a page in the table's unit of memory, which the sentence has too."""
    timed = record["timed"]
    bounds = timed["intervals"]
    seconds, peak, end = timed["seconds"], timed["held_pages_peak"] * page, timed["held_pages_end"] * page
    decimals = 0 if page >= 1 else 2
    span = f"{bounds['seconds'][0]:.3g}-{bounds['seconds'][1]:.3g}" if "seconds" in bounds else "-"
    around = "-"
    if "held_pages_peak" in bounds:
        around = "-".join(f"{pages * page:.{decimals}f}" for pages in bounds["held_pages_peak"])
    cells: list[Cell] = [record["run"]["allocator"], seconds, span, peak, around, end, timed["fragmentation_events"]]
    texts = [
        str(cells[0]), f"{seconds:.3g}", span, f"{peak:,.{decimals}f}", around, f"{end:,.{decimals}f}",
        show(timed["fragmentation_events"]),
    ]  # fmt: skip
    return cells, texts


TITLES = {
    "seconds": ("time of the workload", "s"),
    "user_seconds": ("processor time in programs", "s"),
    "system_seconds": ("processor time in the kernel", "s"),
    "boot_seconds": ("from the kernel's start to the workload", "s"),
    "held_pages_start": ("slabs and large allocations before", "KiB"),
    "held_pages_peak": ("slabs and large allocations, most seen", "KiB"),
    "held_pages_end": ("slabs and large allocations after", "KiB"),
    "fragmentation_events": ("fallback events of the workload", ""),
    "fragmentation_events_boot": ("fallback events since the start", ""),
}
BUSIEST = 12


def details(record: Record, all_caches: bool) -> list[Table]:
    """One record in full, for people."""
    about, timed, kernel = record["run"], record["timed"], record["kernel"]
    rows: list[list[Cell]] = []
    for name, (title, unit) in TITLES.items():
        factor = 4 if unit == "KiB" else 1
        bounds = timed["intervals"].get(name)
        span = f"{show(bounds[0] * factor)} to {show(bounds[1] * factor)}" if bounds else "-"
        rows.append([title, timed[name] * factor, unit, span])
    title = (
        f"{about['allocator']} on {about['workload']}: Linux {about['kernel']} for {about['arch']} ({about['accelerator']}), "
        f"{_cpus(about)}, {about['memory'] >> 20} MiB"
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
    columns = ["workload", "allocator", "arch", "accelerator", "cpus", "nodes", "memory", "boots"]
    for name in TITLES:
        columns += [name, f"{name}_low", f"{name}_high"]
    rows: list[list[Cell]] = []
    for record in found:
        about, timed = record["run"], record["timed"]
        row: list[Cell] = [about["repetition" if name == "boots" else name] for name in columns[:8]]
        for name in TITLES:
            row += [timed[name], *(timed["intervals"].get(name) or [None, None])]
        rows.append(row)
    return Table("", columns, rows)
