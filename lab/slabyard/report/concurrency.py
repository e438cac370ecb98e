"""What threads did, for people and for spreadsheets: a table for each workload, a sentence for each number of threads."""

from __future__ import annotations

from collections.abc import Sequence

from ..base.table import Cell, Figure, Table, counted
from ..results import measures, records
from ..results.model import short
from ..results.records import Record
from ..results.threads import SCALARS

COLUMNS = ["allocator", "thr", "Mops/s", "95%", "p99 ns", "share", "waits", "peak KiB", "end KiB"]
LEGEND = (
    "thr: threads. Mops/s: median of millions of objects taken and given a second,",
    "and its interval. p99: 99 of 100 operations are no slower. share: of the",
    "threads' processor time, that in the allocator. waits: for a lock of the heap;",
    "of a malloc unknown. KiB: resident memory at the peak, and when all was freed.",
)


def tables(found: Sequence[Record]) -> list[Table]:
    """One table for each workload, with a sentence for each number of threads."""
    by_workload: dict[str, list[Record]] = {}
    for record in found:
        by_workload.setdefault(record["run"]["workload"], []).append(record)
    out = [_table(name, group) for name, group in by_workload.items()]
    out[-1].notes += [*([""] if out[-1].notes else []), *LEGEND]
    return out


def _table(name: str, group: Sequence[Record]) -> Table:
    columns, rows = list(COLUMNS), [_row(record) for record in group]
    columns[columns.index("95%")] = measures.confidence(record["timed"].get("runs") for record in group)
    counts = sorted({record["run"]["threads"] for record in group})
    notes = [line for count in counts for line in _sentence([one for one in group if one["run"]["threads"] == count], count)]
    if any(record["timed"].get("resident_per_live") for record in group):
        # What matters here is not what is left when all was freed.
        columns[-1] = "per live"
        for cells, record in zip(rows, group, strict=True):
            cells[-1] = record["timed"]["resident_per_live"]
        notes.append("per live: resident memory by what lives in it, over the phases.")
    return Table(name, columns, rows, notes)


def _row(record: Record) -> list[Cell]:
    run, timed = record["run"], record["timed"]
    speed = timed["operations_per_second"] / 1e6
    bounds = timed.get("intervals", {}).get("operations_per_second")
    p99, step, share = timed["latency_ns"]["p99"], timed.get("clock_resolution_ns"), timed.get("allocator_share")
    waits, sizes = timed.get("lock_waits"), (timed["resident_peak_kb"], timed["resident_end_kb"])
    return [
        Figure(run["allocator"], short(run["allocator"])),
        Figure(run["threads"], str(run["threads"])),
        Figure(speed, _mops(speed)),
        f"{_mops(bounds[0] / 1e6)}-{_mops(bounds[1] / 1e6)}" if bounds else "-",
        Figure(p99, f"<{step:.0f}" if step and p99 < step else f"{p99:.0f}"),
        Figure(share, "-" if share is None else f"{100 * share:.0f}%"),
        Figure(waits, "-" if waits is None else f"{waits:,.0f}"),
        *(Figure(size, f"{size:,.0f}") for size in sizes),
    ]


def _mops(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _sentence(group: Sequence[Record], threads: int) -> list[str]:
    """Who is fastest, where the intervals tell."""
    if len(group) < 2:
        return []
    what = counted(threads, "thread")
    bounds = {one["run"]["allocator"]: one["timed"].get("intervals", {}).get("operations_per_second") for one in group}
    if not all(bounds.values()):
        return [f"{what}: fewer than {measures.FEWEST_RUNS} runs tell no winner."]
    best = max(bounds, key=lambda name: bounds[name][0])
    level = [name for name in bounds if name != best and bounds[name][1] >= bounds[best][0]]
    if level:
        return [f"{what}: {', '.join(map(short, [best, *level]))} tie for fastest: their intervals overlap."]
    return [f"{what}: {short(best)} is fastest."]


def flat(found: Sequence[Record]) -> Table:
    """One row for each record with every scalar measure: for CSV."""
    points = [(name, point) for name in ("alloc_ns", "free_ns", "latency_ns") for point in ("median", "p99", "p999")]

    def more(record: Record) -> dict[str, Cell]:
        timed = record["timed"]
        return {"allocator_share": timed.get("allocator_share"), **{f"{name}_{point}": timed[name][point] for name, point in points}}

    return records.flat(found, {name: name for name in ("workload", "allocator", "threads")}, SCALARS, more)
