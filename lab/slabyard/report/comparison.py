"""A comparison for people and for spreadsheets: tables, sentences and the ranking, made of result records alone.

Ranks and sentences are those of results.ranks, which the HTML report has as well, so that the terminal and the report never disagree.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..base.table import Cell, Figure, Table, counted, show
from ..results import measures, ranks, records
from ..results.model import Section, memory_unit, page_bytes, workloads
from ..results.records import Record
from ..trace.file import events_lost

LEGEND = (
    "ns/op: median time of one allocation or free, with its 95% interval. p99: 99 of",
    "100 operations take no longer. peak, end: memory held by slabs and large",
    "allocations. waste: share of the memory held at the peak that nobody asked for.",
    "events: blocks taken from another migrate type (mm_page_alloc_extfrag). Memory",
    "and events are exact, so they have no interval. recorded: the kernel that the",
    "trace was taken on; not ranked.",
)


def tables(found: Sequence[Record]) -> list[Table]:
    """One table for each trace, with its sentence, and the ranking."""
    sections = workloads(found)
    by_workload: dict[tuple[str, str], list[Record]] = {}
    for record in found:
        by_workload.setdefault((record["run"]["workload"], record["run"]["trace_sha256"]), []).append(record)
    out = [_table(group, section) for group, section in zip(by_workload.values(), sections, strict=True)]
    if any(len(section.replayed) > 1 for section in sections):
        out.append(ranks.ranking(sections, LEGEND))
    return out


def _table(group: Sequence[Record], section: Section) -> Table:
    run = group[0]["run"]
    unit, size = memory_unit(section)
    columns = ["allocator", "ns/op", "95%", "p99 ns", f"peak {unit}", f"end {unit}", "waste %", "events"]
    rows = [_row(record, page_bytes(section) / size) for record in group]
    asked = _requests(group[0]["exact"].get("requests"))
    title = f"{run['workload']}: {asked} on {counted(run['cpus'], 'CPU')}, start {_start(run)}"
    notes = [ranks.sentence(section)]
    for record in group:
        failures, oversized, environment = (
            record["exact"].get(name) or 0 for name in ("failures", "oversized_failures", "environment_failures")
        )
        if refused := failures - oversized + environment:
            notes.append(f"{record['run']['allocator']} refused {_requests(refused)}: the simulated memory was full.")
        if oversized:
            notes.append(f"{record['run']['allocator']} refused {_requests(oversized)}: no block of pages is larger than 4 MiB.")
    if run["lost"]:
        notes.append(f"Incomplete: {events_lost(run['lost'])} while this trace was recorded.")
    return Table(title, columns, rows, notes)


def _requests(count: int | None) -> str:
    return f"{show(count)} request{'' if count == 1 else 's'}"


def _start(run: dict[str, Any]) -> str:
    """What was there at the start: with `--nodes` or `--memory`, the recorded objects in memory that nobody has used."""
    return run["start"] + (", pages pristine" if (run["start"], run.get("pages")) == ("recorded", "pristine") else "")


def _row(record: Record, page: float) -> list[Cell]:
    """A record's cells; `page` is a page in the table's unit of memory."""
    exact, timed = record["exact"], record["timed"]
    median = timed.get("ns_per_operation")
    bounds = timed.get("intervals", {}).get("ns_per_operation")
    p99 = timed.get("latency_ns", {}).get("p99")
    held = (None if exact.get(name) is None else exact[name] * page for name in ("held_pages_peak", "held_pages_end"))
    share = exact.get("total_fragmentation_peak")
    percent = None if share is None else round(100 * share, 1)
    return [
        record["run"]["allocator"],
        Figure(median, _ns(median)),
        f"{_ns(bounds[0])}-{_ns(bounds[1])}" if bounds else "-",
        Figure(p99, _single(p99, timed)),
        *(Figure(value, "-" if value is None else f"{value:,.{0 if page >= 1 else 2}f}") for value in held),
        Figure(percent, "-" if percent is None else f"{percent:.1f}"),
        exact.get("fragmentation_events"),
    ]


def _ns(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}"


def _single(value: float | None, timed: dict[str, Any]) -> str:
    """The time of a single operation: no more than a bound where it is below the step of the clock."""
    step = timed.get("clock_resolution_ns")
    return f"<{step:.0f}" if value is not None and step and value < step else _ns(value)


def flat(found: Sequence[Record]) -> Table:
    """One row for each record with every scalar measure: for CSV."""
    return records.flat(found, {name: name for name in ("workload", "allocator", "cpus", "start")}, measures.MEASURES)


ALIVE_SHOWN = 5


def details(record: Record, caches: bool) -> list[Table]:
    """One record in full, for people: its measures, its figures at the snapshots, its caches."""
    run, exact = record["run"], record["exact"]
    rows: list[list[Cell]] = []
    for measure in measures.MEASURES:
        value = record[measure.group].get(measure.name)
        if value is not None and _matters(measure.name, record):
            share = measure.unit == "share"
            rows.append([measure.title, round(100 * value, 2) if share else value, "%" if share else measure.unit])
    for name, title in (("alloc_ns", "allocation"), ("free_ns", "free")):
        for key, words in (("median", "median"), ("p99", "99th percentile"), ("p999", "99.9th percentile")):
            value = record["timed"].get(name, {}).get(key)
            if value is not None:
                bound = _single(value, record["timed"])
                rows.append([f"{title}, {words}", Figure(value, bound) if bound.startswith("<") else value, "ns"])
    machine = f"{counted(run['cpus'], 'CPU')}, {counted(run['nodes'], 'node')}"
    title = f"{run['allocator']} on {run['workload']}: {machine}, start {_start(run)}"
    out = [Table(title, ["measure", "value", "unit"], rows, _end_notes(record))]
    free = {words: exact[name] for name, words in (("free_blocks_before", "before"), ("free_blocks_after", "after")) if exact.get(name)}
    if free:
        counts: list[list[Cell]] = [[order, *both] for order, both in enumerate(zip(*free.values(), strict=True))]
        out.append(Table("", ["free blocks of order", *free], counts))
    if exact.get("snapshots"):
        points: list[list[Cell]] = []
        for one in exact["snapshots"]:
            slabs, large = one["slab_pages"] * 4, one["large_pages"] * 4
            points.append([one["name"], slabs, large, slabs + large, one["recorded_slab_kb"]])
        out.append(Table("", ["snapshot", "slabs KiB", "large KiB", "held KiB", "recorded kernel KiB"], points))
    if caches:
        columns = ["name", "size", "live", "peak_bytes", "slabs", "partial_slabs", "full_slabs", "pages"]
        body = sorted(exact.get("caches", []), key=lambda cache: -(cache["pages"] or 0))
        out.append(Table("", ["cache", *columns[1:]], [[cache[name] for name in columns] for cache in body]))
    return out


def _matters(name: str, record: Record) -> bool:
    """Whether a measure says anything here: of nodes where there are several, of pressure where there was any."""
    if name in measures.OF_NODES:
        return bool(record["run"]["nodes"] > 1)
    if name in measures.OF_PRESSURE:
        return bool(record["exact"].get("reclaim_askings") or record["exact"].get("reclaim_urgent_askings"))
    return True


GIVES_BACK = {
    "never": "{} never gives a slab page back.",
    "at once": "{} gives a page back as soon as nothing on it is used; asking brings nothing.",
}


def _end_notes(record: Record) -> list[str]:
    """How the allocator gives memory back, and which caches could not be destroyed at the end."""
    name, exact = record["run"]["allocator"], record["exact"]
    gives_back = GIVES_BACK.get(exact.get("gives_back"))
    notes = [gives_back.format(name)] if gives_back else []
    alive = sorted(exact.get("caches_alive") or [], key=lambda cache: -cache["objects"])
    if not alive:
        return notes
    destroyed, objects = exact["caches_destroyed"], sum(cache["objects"] for cache in alive)
    first = ", ".join(f"{cache['name']} ({cache['objects']:,})" for cache in alive[:ALIVE_SHOWN])
    more = f", and {len(alive) - ALIVE_SHOWN:,} more" if len(alive) > ALIVE_SHOWN else ""
    destroyed_of = f"At the end {destroyed:,} of {destroyed + len(alive):,} caches could be destroyed"
    return [*notes, f"{destroyed_of}; refused, with {objects:,} objects alive: {first}{more}."]
