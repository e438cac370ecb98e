"""A comparison for people and for spreadsheets: tables, sentences and the ranking, made of result records alone.

Ranks and sentences are those of results.ranks, which the HTML report has as well, so that the terminal and the report never disagree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..base.table import Cell, Figure, Table, counted, show
from ..replay.cost import PARTS
from ..results import advice, measures, ranks, reasons, records
from ..results.model import Section, Series, figure, grew, group, kept, memory_unit, page_bytes, short, started, workloads
from ..results.records import Record
from ..trace.file import events_lost

LEGEND = (
    "ns/op: median time of one allocation or free of an object, with its 95% interval. p99: 99 of 100 take no longer, in ns. page: median "
    "time, in ns, of one page request of other kernel code. start: memory in slabs and large allocations before the first event. "
    "grew: the peak less the start. kept: the end less the start. waste: percentage of the memory held at the peak that nobody asked for. "
    "Memory is ranked by what grew; a difference below 1% is a tie. events: blocks taken from another migrate type "
    "(mm_page_alloc_extfrag). Memory and events are exact, so they have no interval; a malloc's memory is measured. recorded: the kernel "
    "that the trace was taken on; not ranked."
)
COST_LEGEND = (
    "instr: instructions of one allocation or free of an object. L1, LL: its misses in the first and the last level of simulated caches. "
    "fast: instructions of the functions that a request goes to first; slow: of those that they call; pages: of the page allocator; locks: "
    "of taking and leaving them. Counted by valgrind: the same on every run, so there is no interval."
)


def tables(found: Sequence[Record]) -> list[Table]:
    """One table for each trace, with its sentence, and the ranking."""
    sections = workloads(found)
    out = []
    for section in sections:
        out += [_table(section), *_costs(section)]
    if any(len(section.replayed) > 1 for section in sections):
        counted_cost = any(one.cost for section in sections for one in section.replayed)
        out.append(ranks.ranking(sections, [LEGEND, *([COST_LEGEND] if counted_cost else [])]))
    return out


def _costs(section: Section) -> list[Table]:
    """What was counted, if anything was."""
    found = [one for one in section.replayed if one.cost]
    if not found:
        return []
    rows = [[one.label, *_cost_cells(one.cost)] for one in found]
    columns = ["allocator", "instr", "L1", "LL", *PARTS]
    return [Table(f"{section.name}: instructions and cache misses of an operation", columns, rows)]


def _cost_cells(cost: Mapping[str, Any]) -> list[Cell]:
    parts = [group(group(cost, "parts"), part) for part in PARTS]
    return [
        _decimal(cost.get("instructions"), 1), _decimal(cost.get("l1_misses"), 2), _decimal(cost.get("ll_misses"), 3),
        *(_decimal(part.get("instructions"), 1) for part in parts),
    ]  # fmt: skip


def _decimal(value: Any, decimals: int) -> Figure:
    return Figure(value, "-" if value is None else f"{value:,.{decimals}f}")


def _table(section: Section) -> Table:
    found = [one.record for one in section.series]
    run = found[0]["run"]
    unit, size = memory_unit(section)
    memory = ["start", "grew", "kept", "peak"]
    columns = ["allocator", "ns/op", measures.confidence(one["timed"].get("runs") for one in found), "p99", "page", *memory, "waste"]
    rows = [_row(one, page_bytes(section) / size) for one in section.series]
    if len({record["exact"].get("fragmentation_events") or 0 for record in found}) > 1:
        columns.append("events")
        rows = [[*row, record["exact"].get("fragmentation_events")] for row, record in zip(rows, found, strict=True)]
    asked = _requests(found[0]["exact"].get("requests"))
    title = f"{section.name}: {asked} on {counted(run['cpus'], 'CPU')}, start {_start(run)}, memory in {unit}"
    turned = ranks.other_start(section)
    notes = [ranks.sentence(section), *([turned] if turned else []), *reasons.told(section), *advice.lines(section)]
    for record in found:
        failures, oversized, environment = (
            record["exact"].get(name) or 0 for name in ("failures", "oversized_failures", "environment_failures")
        )
        if refused := failures - oversized + environment:
            notes.append(f"{record['run']['allocator']} refused {_requests(refused)}: the simulated memory was full.")
        if oversized:
            notes.append(f"{record['run']['allocator']} refused {_requests(oversized)}: no block of pages is larger than 4 MiB.")
    if run["lost"]:
        notes.append(f"Incomplete: {events_lost(run['lost'])} while this trace was recorded.")
    return Table(title, columns, rows, notes, cut=columns.index("start"))


def _requests(count: int | None) -> str:
    return f"{show(count)} request{'' if count == 1 else 's'}"


def _start(run: dict[str, Any]) -> str:
    """What was there at the start: with `--nodes` or `--memory`, the recorded objects in memory that nobody has used."""
    return run["start"] + (", pages pristine" if (run["start"], run.get("pages")) == ("recorded", "pristine") else "")


def _row(one: Series, page: float) -> list[Cell]:
    """A series' cells; `page` is a page in the table's unit of memory."""
    exact, timed = one.exact, one.timed
    median = timed.get("ns_per_operation")
    bounds = timed.get("intervals", {}).get("ns_per_operation")
    p99 = timed.get("latency_ns", {}).get("p99")
    pages = timed.get("ns_per_page_operation")
    memory = (None if held is None else held * page for held in (started(one), grew(one), kept(one), figure(one, "held_pages_peak")))
    share = exact.get("total_fragmentation_peak")
    percent = None if share is None else round(100 * share, 1)
    return [
        Figure(one.label, short(one.label)),
        Figure(median, _ns(median)),
        f"{_ns(bounds[0])}-{_ns(bounds[1])}" if bounds else "-",
        Figure(p99, _single(p99, timed)),
        Figure(pages, _ns(pages)),
        *(Figure(value, "-" if value is None else f"{value:,.{0 if page >= 1 else 2}f}") for value in memory),
        Figure(percent, "-" if percent is None else f"{percent:.1f}"),
    ]


def _ns(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}"


def _single(value: float | None, timed: Mapping[str, Any]) -> str:
    """The time of a single operation: no more than a bound where it is below the step of the clock."""
    step = timed.get("clock_resolution_ns")
    return f"<{step:.0f}" if value is not None and step and value < step else _ns(value)


def flat(found: Sequence[Record]) -> Table:
    """One row for each record with every scalar measure: for CSV."""
    fields = {name: name for name in ("workload", "allocator", "cpus", "start")}
    if not any("cost" in record for record in found):
        return records.flat(found, fields, measures.MEASURES)
    return records.flat(found, fields, measures.MEASURES + measures.COSTS, _flat_parts)


def _flat_parts(record: Record) -> dict[str, Cell]:
    """Instructions by part, for CSV."""
    parts = group(group(record, "cost"), "parts")
    return {f"cost_{part}_instructions": group(parts, part).get("instructions") for part in PARTS}


ALIVE_SHOWN = 5


def details(record: Record, caches: bool) -> list[Table]:
    """One record in full, for people: its measures, its figures at the snapshots, its caches."""
    run, exact = record["run"], record["exact"]
    rows: list[list[Cell]] = []
    for measure in measures.MEASURES:
        value = record[measure.group].get(measure.name)
        if value is None and "_pages_" in measure.name:
            value = record["timed"].get(measure.name)  # of a malloc
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
    out += _details_of_cost(record.get("cost"))
    if exact.get("snapshots"):
        points: list[list[Cell]] = []
        for one in exact["snapshots"]:
            parts = [None if one[name] is None else one[name] * 4 for name in ("slab_pages", "large_pages")]  # a malloc has neither
            held = None if None in parts else sum(part or 0 for part in parts)
            points.append([one["name"], *parts, held, one["recorded_slab_kb"]])
        out.append(Table("", ["snapshot", "slabs KiB", "large KiB", "held KiB", "recorded kernel KiB"], points))
    if caches:
        columns = ["name", "size", "live", "peak_bytes", "slabs", "partial_slabs", "full_slabs", "pages"]
        body = sorted(exact.get("caches", []), key=lambda cache: -(cache["pages"] or 0))
        out.append(Table("", ["cache", *columns[1:]], [[cache[name] for name in columns] for cache in body]))
    return out


def _details_of_cost(cost: Mapping[str, Any] | None) -> list[Table]:
    """What was counted, by part, and by function where that was asked for."""
    if not cost:
        return []
    columns = ["instructions", "L1 misses", "LL misses"]
    parts = {"all": cost, **(cost.get("parts") or {})}
    rows: list[list[Cell]] = [[part, *_figures(figures)] for part, figures in parts.items()]
    out = [Table(f"cost of an object operation, by {cost['tool']}", ["part", *columns], rows, [f"Caches: {cost['cache_model']}."])]
    if cost.get("functions"):
        by_function = [[one["name"], one["file"] or "-", one["part"] or "-", *_figures(one)] for one in cost["functions"]]
        out.append(Table("", ["function", "file", "part", *columns], by_function))
    return out


def _figures(cost: Mapping[str, Any]) -> list[Cell]:
    return [_decimal(cost[name], decimals) for name, decimals in (("instructions", 2), ("l1_misses", 3), ("ll_misses", 3))]


def _matters(name: str, record: Record) -> bool:
    """Whether a measure says anything here: of nodes where there are several, of pressure or slabs beside where there were any."""
    if name == "older_pages":
        return bool(record["exact"].get(name))
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
