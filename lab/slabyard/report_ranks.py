"""Ranks and the plain sentence: what a comparison's table shows, in the reader's words.

Ranks follow Ferreira et al. 2015, Table 3: for each workload the allocators are placed by time, by memory and by
fragmentation, the best first. Their three measures are here:

- time: the median time of an operation, or of the whole replay where the former is missing;
- memory: pages held by slabs and large allocations at the peak;
- fragmentation: fallback events of the page allocator (`mm_page_alloc_extfrag`), which they counted too.

Times have an interval, the other two are deterministic. One allocator is better than another only where its interval lies
wholly below the other's, so an allocator's rank is one more than the number of allocators that are better than it: overlapping
allocators tie, as in a race with equal places (1, 1, 3). Overlap is not transitive; the count needs no transitivity. An
allocator that lacks a measure, or has too few runs for an interval, has no rank in it.

The sentence names a winner only where rank 1 is held by one allocator alone, says "level" where several share it, and gives the
factor to the worst allocator, since that is what tells whether the choice matters at all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .report_model import Estimate, Series, Workload, estimate, number, page_bytes


@dataclass(frozen=True)
class Measure:
    """A ranked measure: its column's short and full name."""

    key: str
    short: str
    title: str


MEASURES = (
    Measure("time", "Time", "Rank by time for each operation; overlapping 95% intervals tie"),
    Measure("memory", "Memory", "Rank by memory held at the peak"),
    Measure("fragmentation", "Frag.", "Rank by fragmentation events of the page allocator"),
)


def deterministic(value: object) -> Estimate | None:
    """A deterministic measure: an estimate without an interval."""
    known = number(value)
    return None if known is None else Estimate(known, known, known)


def values(series: Sequence[Series], measure: str) -> list[Estimate | None]:
    """Each series' value of a ranked measure, in its own unit (nanoseconds or seconds, pages, events)."""
    if measure == "memory":
        return [deterministic(one.exact.get("held_pages_peak")) for one in series]
    if measure == "fragmentation":
        return [deterministic(one.exact.get("fragmentation_events")) for one in series]
    return [estimate(one.timed, time_name(series)) for one in series]


def time_name(series: Sequence[Series]) -> str:
    """The name of the time that these series are ranked by."""
    per_operation = any(estimate(one.timed, "ns_per_operation") for one in series)
    return "ns_per_operation" if per_operation else "seconds"


def ranks(found: Sequence[Estimate | None]) -> list[int | None]:
    """Ranks from 1 (lowest value); None where the value is missing."""
    intervals = [None if one is None or one.low is None or one.high is None else (one.low, one.high) for one in found]
    return [None if mine is None else 1 + sum(other[1] < mine[0] for other in intervals if other is not None) for mine in intervals]


def rank_table(workload: Workload) -> dict[str, dict[str, int | None]]:
    """Ranks by series key, then by measure key, of the replayed series."""
    compared = workload.replayed
    columns = {measure.key: ranks(values(compared, measure.key)) for measure in MEASURES}
    return {one.key: {key: column[place] for key, column in columns.items()} for place, one in enumerate(compared)}


def listed(names: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def bytes_text(count: float) -> str:
    """Bytes as KiB below 10 MiB, as MiB from there."""
    return f"{count / 1024:,.0f} KiB" if count < 10 << 20 else f"{count / (1 << 20):,.1f} MiB"


def ratio_text(best: float, worst: float) -> str:
    """How far the worst is from the best, as a percentage or a factor; empty when there is no ratio."""
    if best <= 0 or worst <= best:
        return ""
    return f"{worst / best:.1f} times" if worst >= 2 * best else f"{(worst / best - 1) * 100:.0f}% above"


@dataclass(frozen=True)
class Standing:
    """Who leads in one measure and who is last, with their medians."""

    leaders: list[str]
    best: float
    last: str
    worst: float
    all_level: bool


def standing(series: Sequence[Series], measure: str) -> Standing | None:
    """The standing in a measure; None if no series has it."""
    found = values(series, measure)
    placed = [
        (rank, value.median, one.label)
        for rank, value, one in zip(ranks(found), found, series, strict=True)
        if rank is not None and value is not None
    ]
    if not placed:
        return None
    leaders = [label for rank, _, label in placed if rank == 1]
    last = max(placed)
    best = min(median for rank, median, _ in placed if rank == 1)
    return Standing(leaders, best, last[2], last[1], len(leaders) == len(placed))


def comparison_tail(at: Standing, texts: Mapping[str, str]) -> str:
    """`, 34% above slub`-like remark on the last allocator; empty if nobody is behind."""
    ratio = ratio_text(at.best, at.worst)
    if at.all_level or not ratio:
        return ""
    joined = f"{ratio} that" if ratio.endswith("times") else f"{ratio}"
    return f"; {at.last} {texts['verb']} {texts['worst']}, {joined}"


def time_clause(series: Sequence[Series]) -> str:
    """What the times show; empty without times."""
    at = standing(series, "time")
    if at is None:
        return ""
    single = time_name(series) == "ns_per_operation"
    value = f"{at.best:,.1f} ns an operation" if single else f"{at.best:,.3g} s"
    worst = f"{at.worst:,.1f} ns" if single else f"{at.worst:,.3g} s"
    if at.all_level and len(series) > 1:
        return f"no allocator is measurably faster than another (best median {value})"
    lead = f"{listed(at.leaders)} {'is fastest' if len(at.leaders) == 1 else 'are level as the fastest'} ({value}"
    return f"{lead}{comparison_tail(at, {'verb': 'needs', 'worst': worst})})"


def memory_clause(workload: Workload) -> str:
    """What the peaks show, the recorded kernel's beside them; empty without peaks."""
    at = standing(workload.replayed, "memory")
    if at is None:
        return ""
    size = page_bytes(workload)
    if at.all_level and len(at.leaders) > 1:
        clause = f"all hold {bytes_text(at.best * size)} at the peak"
    else:
        verb = "holds" if len(at.leaders) == 1 else "hold"
        clause = f"{listed(at.leaders)} {verb} least memory at the peak ({bytes_text(at.best * size)}"
        clause += comparison_tail(at, {"verb": "holds", "worst": bytes_text(at.worst * size)}) + ")"
    real = workload.recorded
    peak = number(real.exact.get("held_pages_peak")) if real else None
    return clause if peak is None else f"{clause}, the recorded kernel held {bytes_text(peak * size)}"


def fragmentation_clause(series: Sequence[Series]) -> str:
    """What the fragmentation events show; empty without them."""
    at = standing(series, "fragmentation")
    if at is None:
        return ""
    if at.all_level:
        count = f"{at.best:,.0f} fragmentation {'event' if at.best == 1 else 'events'}"
        count = "no fragmentation event" if at.best == 0 else count
        return f"{'each' if len(at.leaders) > 1 else at.leaders[0]} causes {count}"
    verb = "causes" if len(at.leaders) == 1 else "cause"
    return f"{listed(at.leaders)} {verb} fewest fragmentation events ({at.best:,.0f}; {at.last} {at.worst:,.0f})"


def sentence(workload: Workload) -> str:
    """One plain sentence on what the workload's comparison shows, plain text."""
    compared = workload.replayed
    clauses = [time_clause(compared), memory_clause(workload), fragmentation_clause(compared)]
    said = [clause for clause in clauses if clause]
    if not said:
        return "The records hold no measure to compare."
    text = "; ".join(said) + "."
    return text if said[0].startswith(tuple(one.label for one in compared)) else text[0].upper() + text[1:]
