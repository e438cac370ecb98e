"""Ranks and the plain sentence: what a comparison's table shows, in the reader's words.

Ranks follow Ferreira et al. 2015, Table 3: for each workload the allocators are placed by time, by memory and by
fragmentation, the best first. Their three measures are here:

- time: the median time of an operation, or of the whole replay where the former is missing; of nothing, where nothing was requested;
  of a user-mode kernel the processor time of its process, which other processes do not lengthen;
- memory: pages held by slabs and large allocations at the peak;
- fragmentation: fallback events of the page allocator (`mm_page_alloc_extfrag`), which they counted too.

Times have an interval; the other two are deterministic in a replay, and have an interval where real kernels were booted. One
allocator is better than another only where its interval lies wholly below the other's. An allocator's rank is 1 plus the number of
allocators that are better. Overlap is not transitive: two allocators that overlap have different ranks where a third is better than one of
them alone. An allocator that lacks a measure, or has too few runs for an interval, has no rank in it.

The sentence names a winner only where rank 1 is held by one allocator alone, says that they tie where several share it, and gives the
factor to the worst allocator, since that is what tells whether the choice matters at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..base.table import Cell, Table
from .measures import FEWEST_RUNS
from .model import Estimate, Section, Series, estimate, memory_text, memory_unit, number


@dataclass(frozen=True)
class RankedMeasure:
    """A ranked measure: its column's short and full name."""

    key: str
    short: str
    title: str


RANKED = (
    RankedMeasure("time", "Time", "Rank by time for each operation, with 95% intervals"),
    RankedMeasure("memory", "Memory", "Rank by memory held at the peak"),
    RankedMeasure("fragmentation", "Frag.", "Rank by fragmentation events of the page allocator"),
)


MOST_NAMED = 8


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


def values(series: Sequence[Series], measure: str) -> list[Estimate | None]:
    """Each series' value of a ranked measure, in its own unit (nanoseconds or seconds, pages, events)."""
    if measure == "memory":
        return [counted(one, "held_pages_peak") for one in series]
    if measure == "fragmentation":
        return [counted(one, "fragmentation_events") for one in series]
    return [None if one.exact.get("requests") == 0 else estimate(one.timed, time_name(series)) for one in series]


def time_name(series: Sequence[Series]) -> str:
    """The name of the time that these series are ranked by."""
    better = (name for name in ("ns_per_operation", "processor_seconds") if any(estimate(one.timed, name) for one in series))
    return next(better, "seconds")


def ranks(found: Sequence[Estimate | None]) -> list[int | None]:
    """Ranks from 1 (lowest value); None where the value is missing."""
    intervals = [None if one is None or one.low is None or one.high is None else (one.low, one.high) for one in found]
    return [None if mine is None else 1 + sum(other[1] < mine[0] for other in intervals if other is not None) for mine in intervals]


def rank_table(workload: Section) -> dict[str, dict[str, int | None]]:
    """Ranks by series key, then by measure key, of the replayed series."""
    compared = workload.replayed
    columns = {measure.key: ranks(values(compared, measure.key)) for measure in RANKED}
    return {one.key: {key: column[place] for key, column in columns.items()} for place, one in enumerate(compared)}


def ranking(sections: Sequence[Section], notes: Sequence[str] = ()) -> Table:
    """For each measure and allocator its rank on every trace, as in Ferreira et al. 2015, Table 3."""
    columns = ["rank by", "allocator", *(section.name for section in sections)]
    ranked = [rank_table(section) for section in sections]
    names: dict[str, str] = {}
    for section in sections:
        names.update({series.key: series.label for series in section.replayed})
    rows: list[list[Cell]] = []
    for measure in RANKED:
        for place, (key, label) in enumerate(names.items()):
            ranks: list[Cell] = [table.get(key, {}).get(measure.key) for table in ranked]
            rows.append([measure.key if place == 0 else "", label, *ranks])
    return Table("Ranking (1 is best; equal ranks cannot be told apart at 95%)", columns, rows, notes=list(notes), keys=2)


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
        for rank, value, one in zip(ranks(found), found, series, strict=True)
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


def memory_clause(workload: Section) -> str:
    """What the peaks show, the recorded kernel's beside them; empty without peaks."""
    at = standing(workload.replayed, "memory")
    if at is None:
        return ""
    unit, _ = memory_unit(workload)
    best, worst = f"{memory_text(workload, at.best)} {unit}", f"{memory_text(workload, at.worst)} {unit}"
    if at.level and at.best != at.worst:
        clause = f"no allocator holds measurably less memory than another at the peak (least median {best})"
    elif at.level or at.count == 1:
        clause = f"{'all hold' if at.level else f'{at.last} holds'} {best} at the peak"
    else:
        lead = at.leading("holds", "hold")
        clause = f"{lead} least memory at the peak ({best}; {at.last} holds {worst}{behind(at.best, at.worst)})"
    real = workload.recorded
    peak = number(real.exact.get("held_pages_peak")) if real else None
    if not peak:
        return clause
    said = f"{clause}, the recorded kernel held {memory_text(workload, peak)} {unit}"
    # Memory that it had already, neither its row nor a replay from an empty start counts.
    midway = any(one.run.get("start") == "empty" and number(one.exact.get("unknown_frees")) for one in workload.replayed)
    return f"{said} more than at the start" if midway else said


def fragmentation_clause(series: Sequence[Series]) -> str:
    """What the fragmentation events show; empty without them."""
    at = standing(series, "fragmentation")
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
    clauses = [time_clause(compared), memory_clause(workload), fragmentation_clause(compared)]
    said = [clause for clause in clauses if clause]
    if compared and all(one.exact.get("requests") == 0 for one in compared):
        said.insert(0, "nothing was requested")
    if not said:
        return "The records hold no measure to compare."
    text = "; ".join(said) + "."
    return text if said[0].startswith(tuple(one.label for one in compared)) else text[0].upper() + text[1:]
