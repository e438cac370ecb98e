"""Ranks and the plain sentence: what a comparison's table shows, in the reader's words.

Ranks are after Ferreira et al. 2015, Table 3: for each workload the allocators are placed by time, by memory and by
fragmentation, the best first. Their table ranks a program's run time, the kernel's memory and events (study/ferreira.py has it); the
measures here say more of the allocator itself:

- time: the median time of an operation, or of the whole replay where the former is missing; of nothing, where nothing was requested;
  of a user-mode kernel the processor time of its process, which other processes do not lengthen;
- cost: instructions of an operation, where they were counted;
- memory: by how many pages the peak of slabs and large allocations is above the start. What a machine held before the workload is
  no fact of the workload, and is often nearly all of it; the sentence says how much it was;
- events: fallback events of the page allocator (`mm_page_alloc_extfrag`), which they counted too.

Times have an interval; the others are deterministic in a replay, and have an interval where real kernels were booted. One
allocator is better than another only where its interval lies wholly below the other's, in memory by 1% or more. An allocator's rank is
1 plus the number of allocators that are better. Neither overlap nor a tie is transitive: two allocators that overlap have different ranks
where a third is better than one of them alone. An allocator that lacks a measure, or has too few runs for an interval, has no rank in it.

The sentence names a winner only where rank 1 is held by one allocator alone, says that they tie where several share it, and gives the
factor to the worst allocator, since that is what tells whether the choice matters at all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..base.table import Cell, Table
from .measures import FEWEST_RUNS
from .model import Estimate, Section, Series, estimate, grew, memory_text, memory_unit, number, started


@dataclass(frozen=True)
class RankedMeasure:
    """A ranked measure: its column's short and full name."""

    key: str
    short: str
    title: str


RANKED = (
    RankedMeasure("time", "Time", "Rank by time for each operation, within intervals"),
    RankedMeasure("cost", "Cost", "Rank by instructions for each operation, counted"),
    RankedMeasure("memory", "Memory", "Rank by growth of memory, from the start to the peak; a difference below 1% is a tie"),
    RankedMeasure("events", "Events", "Rank by fragmentation events of the page allocator"),
)
TIE = 0.01  # of memory: no choice hangs on less

MOST_NAMED = 8
MOST_MOVED = 3


def deterministic(value: object) -> Estimate | None:
    """A deterministic measure: an estimate without an interval."""
    known = number(value)
    return None if known is None else Estimate(known, known, known)


def counted(one: Series, name: str) -> Estimate | None:
    """A measure that is deterministic in a replay, and differs from boot to boot in a kernel."""
    known = deterministic(one.exact.get(name))
    if known is None and name not in one.timed.get("samples", ()) and (number(one.timed.get("runs")) or 0) >= FEWEST_RUNS:
        known = deterministic(one.timed.get(name))  # the same in every boot
    return estimate(one.timed, name) if known is None else known


def growth(one: Series) -> Estimate | None:
    """By how many pages a series grew; with an interval where it was measured in several boots."""
    booted = "grew_pages_peak" not in one.exact and one.timed.get("grew_pages_peak") is not None
    return counted(one, "grew_pages_peak") if booted else deterministic(grew(one))


def values(series: Sequence[Series], measure: str) -> list[Estimate | None]:
    """Each series' value of a ranked measure, in its own unit (nanoseconds or seconds, pages, events)."""
    if measure == "memory":
        return [growth(one) for one in series] if any(map(growth, series)) else [counted(one, "held_pages_peak") for one in series]
    if measure == "cost":
        return [deterministic(one.cost.get("instructions")) for one in series]
    if measure == "events":
        return [counted(one, "fragmentation_events") for one in series]
    return [None if one.exact.get("requests") == 0 else estimate(one.timed, time_name(series)) for one in series]


def tie_of(measure: str) -> float:
    """The share by which two values must differ to be told apart."""
    return TIE if measure == "memory" else 0


def time_name(series: Sequence[Series]) -> str:
    """The name of the time that these series are ranked by."""
    better = (name for name in ("ns_per_operation", "processor_seconds") if any(estimate(one.timed, name) for one in series))
    return next(better, "seconds")


def ranks(found: Sequence[Estimate | None], tie: float = 0) -> list[int | None]:
    """Ranks from 1 (lowest value); None where the value is missing. `tie`: the share of a value below which no difference counts."""
    intervals = [None if one is None or one.low is None or one.high is None else (one.low, one.high) for one in found]

    def better(other: tuple[float, float] | None, mine: tuple[float, float]) -> bool:
        return other is not None and other[1] < mine[0] and mine[0] - other[1] >= tie * mine[0]

    return [None if mine is None else 1 + sum(better(other, mine) for other in intervals) for mine in intervals]


def ranked(sections: Sequence[Section]) -> list[RankedMeasure]:
    """The measures to show: cost where it was counted."""
    counted_cost = any(one.cost for section in sections for one in section.replayed)
    return [measure for measure in RANKED if measure.key != "cost" or counted_cost]


def rank_table(workload: Section) -> dict[str, dict[str, int | None]]:
    """Ranks by series key, then by measure key, of the replayed series."""
    compared = workload.replayed
    columns = {measure.key: ranks(values(compared, measure.key), tie_of(measure.key)) for measure in RANKED}
    return {one.key: {key: column[place] for key, column in columns.items()} for place, one in enumerate(compared)}


def undecided(section: Section) -> list[str]:
    """The measures in which all allocators of a workload are first, so that their ranks say nothing."""
    placed = {measure.key: [mine[measure.key] for mine in rank_table(section).values()] for measure in RANKED}
    known = {key: [rank for rank in found if rank is not None] for key, found in placed.items()}
    return [key for key, found in known.items() if len(found) > 1 and set(found) == {1}]


def undecided_note(sections: Sequence[Section]) -> str:
    """Which ranks are left out, as all allocators are equal; empty where all say something."""
    found = {measure.key: [section.name for section in sections if measure.key in undecided(section)] for measure in RANKED}
    several = len(sections) > 1
    said = [f"by {key}{' in ' + listed(names, len(names)) if several else ''}" for key, names in found.items() if names]
    return f"Left out, as all allocators are equal: {'; '.join(said)}." if said else ""


def ranking(sections: Sequence[Section], notes: Sequence[str] = ()) -> Table:
    """For each measure and allocator its rank on every trace; without what tells nothing."""
    skipped = {section.ident: undecided(section) for section in sections}
    shown = [section for section in sections if len(skipped[section.ident]) < len(ranked([section]))]
    measures = [measure for measure in ranked(sections) if any(measure.key not in skipped[section.ident] for section in shown)]
    columns = ["rank by", "allocator", *(section.name for section in shown)]
    placed = [(rank_table(section), skipped[section.ident]) for section in shown]
    names: dict[str, str] = {}
    for section in shown:
        names.update({series.key: series.label for series in section.replayed})
    rows: list[list[Cell]] = []
    for measure in measures:
        for place, (key, label) in enumerate(names.items()):
            ranks: list[Cell] = [None if measure.key in left_out else table.get(key, {}).get(measure.key) for table, left_out in placed]
            rows.append([measure.key if place == 0 else "", label, *ranks])
    note = undecided_note(sections)
    title = "Ranking (1 is best; equal ranks cannot be told apart)"
    return Table(title, columns, rows, notes=[*([note] if note else []), *([""] if note and notes else []), *notes], keys=2)


def listed(names: Sequence[str], of: int = 0) -> str:
    """`a`, `a and b`, `a, b and c`; of more than can be read at a glance, how many of all."""
    if len(names) > MOST_NAMED:
        return f"{len(names)} of {of} allocators"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def behind(best: float, worst: float) -> str:
    """How far the worst is from the best, as a percentage or a factor; empty where neither says anything."""
    if best <= 0 or worst < 1.005 * best:
        return ""
    return f", {worst / best:,.1f} times that" if worst >= 2 * best else f", {(worst / best - 1) * 100:.0f}% more"


@dataclass(frozen=True)
class Standing:
    """Who leads in one measure and who are last, with their medians, of how many."""

    leaders: list[str]
    best: float
    lasts: list[str]
    worst: float
    count: int

    @property
    def last(self) -> str:
        """One of those that are last."""
        return self.lasts[-1]

    @property
    def level(self) -> bool:
        """Whether several are compared and none is better than another."""
        return self.count > 1 and len(self.leaders) == self.count

    def leading(self, one: str, several: str) -> str:
        """The leaders as a subject, with the verb in singular or plural."""
        return f"{listed(self.leaders, self.count)} {one if len(self.leaders) == 1 else several}"


def standing(series: Sequence[Series], measure: str) -> Standing | None:
    """The standing in a measure; None if no series has a rank in it."""
    found = values(series, measure)
    placed = [
        (rank, value.median, one.label)
        for rank, value, one in zip(ranks(found, tie_of(measure)), found, series, strict=True)
        if rank is not None and value is not None
    ]
    if not placed:
        return None
    leaders = [label for rank, _, label in placed if rank == 1]
    last, worst, _ = max(placed)
    lasts = [label for rank, median, label in placed if (rank, median) == (last, worst)]
    return Standing(leaders, min(median for rank, median, _ in placed if rank == 1), lasts, worst, len(placed))


def time_clause(series: Sequence[Series]) -> str:
    """What the times show; empty without times."""
    at = standing(series, "time")
    if at is None:
        return ""
    name = time_name(series)
    single = name == "ns_per_operation"
    best = f"{at.best:,.1f} ns an operation" if single else f"{at.best:,.3g} s"
    best += " of processor time" if name == "processor_seconds" else ""
    worst = f"{at.worst:,.1f} ns" if single else f"{at.worst:,.3g} s"
    if at.count == 1:
        return f"{at.last} needs {best}"
    if at.level:
        return f"no allocator is measurably faster than another (best median {best})"
    return f"{at.leading('is fastest', 'tie for fastest')} ({best}; {at.last} needs {worst}{behind(at.best, at.worst)})"


def cost_clause(series: Sequence[Series]) -> str:
    """What was counted; empty where nothing was."""
    at = standing(series, "cost")
    if at is None:
        return ""
    best = f"{at.best:,.0f} instructions an operation"
    if at.count == 1 or at.level:
        return f"{'all take' if at.level else f'{at.last} takes'} {best}"
    return f"{at.leading('takes', 'take')} fewest ({best}; {at.last} takes {at.worst:,.0f}{behind(at.best, at.worst)})"


def memory_clause(workload: Section) -> str:
    """By how much memory grew, the recorded kernel's beside it, and how much was there before; empty without figures."""
    at = standing(workload.replayed, "memory")
    if at is None:
        return ""
    if not any(map(growth, workload.replayed)):
        return held_clause(workload, at)
    unit, _ = memory_unit(workload)
    best, worst = f"{memory_text(workload, at.best)} {unit}", f"{memory_text(workload, at.worst)} {unit}"
    if at.count == 1:
        clause = f"memory grows by {best} under {at.last}"
    elif at.level:
        clause = f"memory grows alike under all, by {best}" + (f" to {worst}" if at.worst != at.best else "")
    else:
        most = f"under {at.last} by {worst}{behind(at.best, at.worst)}"
        clause = f"memory grows least under {listed(at.leaders, at.count)} (by {best}; {most})"
    real = workload.recorded
    rise = None if real is None else grew(real)
    said = clause if rise is None else f"{clause}; that of the recorded kernel grew by {memory_text(workload, rise)} {unit}"
    return f"{said}{before_clause(workload)}"


def before_clause(workload: Section) -> str:
    """What share of the peak was there before the workload; empty where nothing was, or nobody knows."""
    shares = []
    for one in workload.replayed:
        start, peak = started(one), growth(one)
        if start and peak is not None:
            shares.append(100 * start / (start + peak.median))
    if not shares:
        return ""
    low, high = (f"{share:.1f}" if share < 99.95 or share == 100 else f"{share:.2f}" for share in (min(shares), max(shares)))
    span = f"{low}%" if low == high else f"{low} to {high}%"
    what = "command" if any(one.run.get("command") for one in workload.series) else "workload"
    return f"; {span} of this memory was there before the {what}"


def held_clause(workload: Section, at: Standing) -> str:
    """What the peaks show, of records that don't say what was held at the start."""
    unit, _ = memory_unit(workload)
    best, worst = f"{memory_text(workload, at.best)} {unit}", f"{memory_text(workload, at.worst)} {unit}"
    if at.level or at.count == 1:
        return f"{'all hold' if at.level else f'{at.last} holds'} {best} at the peak"
    lead = at.leading("holds", "hold")
    return f"{lead} least memory at the peak ({best}; {at.last} holds {worst}{behind(at.best, at.worst)})"


def fragmentation_clause(series: Sequence[Series]) -> str:
    """What the fragmentation events show; empty without them."""
    at = standing(series, "events")
    if at is None:
        return ""
    if at.level and at.best != at.worst:
        return f"no allocator causes measurably fewer fragmentation events than another (least median {at.best:,.0f})"
    if at.level or at.count == 1:
        count = "no fragmentation event" if at.best == 0 else f"{at.best:,.0f} fragmentation event{'' if at.best == 1 else 's'}"
        return f"{'each' if at.level else at.last} causes {count}"
    return f"{at.leading('causes', 'cause')} fewest fragmentation events ({at.best:,.0f}; {listed(at.lasts, at.count)} {at.worst:,.0f})"


def sentence(workload: Section) -> str:
    """One plain sentence on what the workload's comparison shows, plain text."""
    compared = workload.replayed
    clauses = [time_clause(compared), cost_clause(compared), memory_clause(workload), fragmentation_clause(compared)]
    said = [clause for clause in clauses if clause]
    if compared and all(one.exact.get("requests") == 0 for one in compared):
        said.insert(0, "nothing was requested")
    if not said and any(0 < (number(one.timed.get("runs")) or 0) < FEWEST_RUNS for one in compared):
        return f"Too few runs to compare: an interval needs {FEWEST_RUNS}."
    if not said:
        return "The records hold no measure to compare."
    text = "; ".join(said) + "."
    return text if said[0].startswith(tuple(one.label for one in compared)) else text[0].upper() + text[1:]


def ordinal(place: int) -> str:
    """`1st`, `2nd`, `11th`."""
    return f"{place}{'th' if place % 100 in (11, 12, 13) else {1: 'st', 2: 'nd', 3: 'rd'}.get(place % 10, 'th')}"


def other_start(workload: Section) -> str:
    """Where the ranks by memory are others from the other start, a sentence that says so; else nothing."""
    told = [(one, other) for one in workload.replayed if isinstance(other := one.exact.get("other_start"), Mapping)]
    here = [growth(one) for one, _ in told]
    there = [deterministic(other.get("grew_pages_peak")) for _, other in told]
    now, then = ranks(here, TIE), ranks(there, TIE)
    placed = [(one.label, mine, others) for (one, _), mine, others in zip(told, now, then, strict=True) if mine and others]
    turned = any(a[1] < b[1] and a[2] > b[2] for a in placed for b in placed)
    if not turned:
        return ""
    moved = sorted((one for one in placed if one[1] != one[2]), key=lambda one: (-abs(one[1] - one[2]), one[1]))[:MOST_MOVED]
    named = ", ".join(f"{label} is {ordinal(others)}, not {ordinal(mine)}" for label, mine, others in moved)
    start = "empty" if told[0][1].get("start") == "empty" else "recorded"
    return f"With --start {start} the ranks by growth differ: {named}."
