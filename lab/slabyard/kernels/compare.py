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
from ..replay.cost import FIGURES, PARTS
from ..results import measures, ranks, records
from ..results.measures import Measure
from ..results.model import Section, memory_unit, page_bytes, workloads
from ..results.records import Record
from . import run
from .machine import Hardware, Plan

LEGEND = (
    "seconds: the workload's time. CPU s: processor time of a user-mode kernel's",
    "process, without its programs. Medians, with their 95% intervals. start, peak:",
    "meminfo's Slab (slabs and large allocations) before the workload, and the most",
    "seen, looking every 20 ms. grew: the peak less the start. kept: what was there a",
    "second after the workload, less the start. events: blocks taken from another",
    "migrate type while it ran (mm_page_alloc_extfrag).",
)
LEGEND_OF_COST = (
    "Counted by an emulator, for one allocation or free: instructions, of these on",
    "the fast path, the slow path, in the page allocator, for locks; misses of",
    "simulated caches, first and last level. % of kernel: of all its instructions.",
)


def compare(plans: Sequence[Plan], runs: int, warmup: int, progress: Progress, counted_on: Hardware | None = None) -> list[Record]:
    """Boots the plans of each workload in turn; a record for each plan, in their order. `counted_on`: once more, to count (cost.py)."""
    by_workload: dict[str, dict[str, Plan]] = {}
    for plan in plans:
        by_workload.setdefault(plan.job.name, {})[plan.spec.text] = plan
    return [record for name, group in by_workload.items() for record in _one(name, group, runs, warmup, progress, counted_on)]


def _one(
    name: str, group: Mapping[str, Plan], runs: int, warmup: int, progress: Progress, counted_on: Hardware | None
) -> list[Record]:  # fmt: skip
    progress.stage(f"{name} on {counted(len(group), 'kernel')}")
    kept = records.interleaved(group, runs, warmup, name, progress, lambda spec, _: run.once(group[spec]))
    costs: dict[str, run.Run] = {}
    if counted_on is not None:
        for spec, plan in group.items():
            progress.step(f"{name}: {spec}, counted", 0)
            costs[spec] = run.count(plan, counted_on)
            progress.step(f"{name}: {spec}, counted")
    return [run.record(plan, kept[spec], costs.get(spec)) for spec, plan in group.items()]


def tables(found: Sequence[Record]) -> list[Table]:
    """One table for each workload with its sentence, and the ranking."""
    out = []
    sections = workloads(found)
    for section in sections:
        members = [one.record for one in section.series]
        out.append(_table(members, section))
        if any("cost" in record for record in members):
            out.append(_cost_table(members, section.name))
    if any(len(section.series) > 1 for section in sections):
        out.append(ranks.ranking(sections))
    out[-1].notes += LEGEND
    out[-1].notes += LEGEND_OF_COST if any("cost" in record for record in found) else ()
    return out


def _table(group: Sequence[Any], section: Section) -> Table:
    first = group[0]["run"]
    unit, size = memory_unit(section)
    times = [name for name in ("seconds", "processor_seconds") if any(name in record["timed"] for record in group)]
    shown = {"seconds": "seconds", "processor_seconds": "CPU s"}  # the latter ranks, and has the interval
    level = measures.confidence([first["repetition"]])
    columns = ["allocator", *(shown[name] for name in times), level, "start", "grew", level, "kept", "peak", "events"]
    rows = [_row(record, times, page_bytes(section) / size) for record in group]
    title = (
        f"{section.name}: Linux {first['kernel']} for {first['arch']} ({first['accelerator']}), {counted(first['cpus'], 'CPU')}, "
        f"{first['memory'] >> 20} MiB, {first['repetition']} boots each, slabs in {unit}"
    )
    notes = [ranks.sentence(section), *run.trouble_notes(group)]
    return Table(title, columns, rows, notes)


def _cost_table(group: Sequence[Any], name: str) -> Table:
    """What was counted: figures of one operation."""
    columns = ["allocator", "instructions", *PARTS, "L1 misses", "LL misses", "% of kernel"]
    rows: list[list[Cell]] = []
    for record in group:
        found = record.get("cost")
        if found is None:
            continue
        mine = [found["instructions"], *(found["parts"][part]["instructions"] for part in PARTS)]
        share = 100 * found["instructions"] * found["operations"] / max(1, found["kernel"]["instructions"])
        cells = [Figure(value, f"{value:,.1f}") for value in mine]
        cells += [Figure(found[misses], f"{found[misses]:.3f}") for misses in FIGURES[1:]]
        rows.append([record["run"]["allocator"], *cells, Figure(share, f"{share:.2f}")])
    cpus = next(record["cost"]["cpus"] for record in group if "cost" in record)
    return Table(f"{name}: what one allocation or free executes, {counted(cpus, 'CPU')}", columns, rows)


def _row(record: Any, times: Sequence[str], page: float) -> list[Cell]:
    """A record's cells; `page` is a page in the table's unit of memory, which the sentence has too."""
    timed = record["timed"]
    bounds = timed["intervals"]
    decimals = 0 if page >= 1 else 2
    around = "-"
    if "grew_pages_peak" in bounds:
        around = "-".join(f"{pages * page:.{decimals}f}" for pages in bounds["grew_pages_peak"])
    memory = (timed[name] * page for name in ("held_pages_start", "grew_pages_peak", "grew_pages_end", "held_pages_peak"))
    start, rise, stayed, peak = (Figure(value, f"{value:,.{decimals}f}") for value in memory)
    return [
        record["run"]["allocator"],
        *(Figure(timed[name], f"{timed[name]:.3g}") for name in times),
        "{:.3g}-{:.3g}".format(*bounds[times[-1]]) if times[-1] in bounds else "-",
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
    Measure("processor_seconds", "timed", "s", "processor time of the kernel's process"),
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
    for measure in (one for one in MEASURES if one.name in timed):
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
    out = [Table(title, ["measure", "value", "unit", measures.confidence([about["repetition"]])], rows, notes=notes)]
    if "cost" in record:
        out += _cost_tables(record, all_caches)
    caches = kernel["caches"]
    if caches:
        shown = caches if all_caches else caches[:BUSIEST]
        columns = ["name", "size", "active_objects", "objects", "slabs", "pages"]
        more = [f"and {len(caches) - len(shown)} more; --caches shows all"] if len(shown) < len(caches) else []
        out.append(Table("", ["cache", *columns[1:]], [[cache[name] for name in columns] for cache in shown], notes=more))
    return out


def _cost_tables(record: Record, every: bool) -> list[Table]:
    """What was counted of one kernel, and its functions."""
    found = record["cost"]
    table = _cost_table([record], record["run"]["workload"])
    table.notes += [f"{found['operations']:,} allocations and frees; {found['kernel']['instructions']:,} instructions in the kernel in all"]
    functions = found["functions"] if every else found["functions"][:BUSIEST]
    rows: list[list[Cell]] = [
        [one["name"], one["part"], *(Figure(one[name], f"{one[name]:.3f}") for name in ("calls", *FIGURES))] for one in functions
    ]
    more = len(found["functions"]) - len(functions)
    notes = [f"and {more} more; --caches shows all"] if more else []
    return [table, Table("", ["function", "part", "calls", "instructions", "L1 misses", "LL misses"], rows, notes=notes, keys=2)]


def flat(found: Sequence[Record]) -> Table:
    """One row for each record with every measure: for CSV."""
    fields = {name: name for name in ("workload", "allocator", "arch", "accelerator", "cpus", "nodes", "memory")}
    more = _flat_cost if any("cost" in record for record in found) else lambda _: {}
    return records.flat(found, {**fields, "boots": "repetition"}, MEASURES, more)


def _flat_cost(record: Record) -> dict[str, Cell]:
    """What was counted, as columns."""
    found: dict[str, Any] = record.get("cost") or {}
    cells: dict[str, Cell] = {f"cost_{name}": found.get(name) for name in ("operations", *FIGURES)}
    for part in PARTS:
        cells |= {f"cost_{part}_{name}": found.get("parts", {}).get(part, {}).get(name) for name in FIGURES}
    return cells | {f"kernel_{name}": found.get("kernel", {}).get(name) for name in FIGURES}
