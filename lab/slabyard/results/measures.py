"""What is measured: every scalar measure's name and unit, and the statistics of repeated times.

docs/measures.md defines each measure once. Names are those of the records: `exact.NAME`, `timed.NAME` or `cost.NAME`.

A time is reported as the median of its repetitions with a 95% confidence interval of the median. The interval is made of two of
the repetitions themselves (order statistics): whatever the distribution, the true median lies between the k-th smallest and the k-th
largest of n with probability 1 - 2·P(Bin(n, 1/2) < k), and k is the largest for which that is at least 95%. That takes six
repetitions. From three on the interval is from the least to the greatest, and covers less, which the tables say: 75% of three, 88% of
four, 94% of five.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

CONFIDENCE = 0.95
FEWEST_RUNS = 3  # from which on there is an interval
USUAL_RUNS = 6  # from which on it is one of CONFIDENCE


@dataclass(frozen=True)
class Measure:
    """A scalar measure of a record."""

    name: str
    group: str
    unit: str
    title: str

    @property
    def column(self) -> str:
        """Its name in CSV."""
        return f"cost_{self.name}" if self.group == "cost" else self.name


MEASURES = (
    Measure("seconds", "timed", "s", "time of the whole replay"),
    Measure("ns_per_operation", "timed", "ns", "time per allocation or free of an object"),
    Measure("ns_per_page_operation", "timed", "ns", "time per page request of other kernel code"),
    Measure("events_per_second", "timed", "1/s", "events replayed a second"),
    Measure("requests", "exact", "", "allocation requests"),
    Measure("failures", "exact", "", "requests refused"),
    Measure("oversized_failures", "exact", "", "of these, larger than any block of pages"),
    Measure("unknown_frees", "exact", "", "frees of unknown objects"),
    Measure("unknown_page_frees", "exact", "", "frees of unknown pages"),
    Measure("implied_frees", "exact", "", "frees that the trace proves"),
    Measure("implied_allocations", "exact", "", "allocations that the trace proves"),
    Measure("held_pages_start", "exact", "pages", "pages held before the first event"),
    Measure("grew_pages_peak", "exact", "pages", "growth: the peak less the start"),
    Measure("grew_pages_end", "exact", "pages", "kept: the end less the start"),
    Measure("held_pages_peak", "exact", "pages", "pages held at the peak"),
    Measure("held_pages_end", "exact", "pages", "pages held at the end"),
    Measure("held_pages_mean", "exact", "pages", "pages held, mean over time"),
    Measure("older_pages", "exact", "pages", "pages of slabs older than the trace, in none of these"),
    Measure("slab_pages_peak", "exact", "pages", "slab pages at the peak"),
    Measure("slab_pages_end", "exact", "pages", "slab pages at the end"),
    Measure("large_pages_peak", "exact", "pages", "pages of large allocations at the peak"),
    Measure("large_pages_end", "exact", "pages", "pages of large allocations at the end"),
    Measure("metadata_pages_peak", "exact", "pages", "metadata pages at the peak"),
    Measure("metadata_pages_end", "exact", "pages", "metadata pages at the end"),
    Measure("requested_bytes_peak", "exact", "bytes", "live bytes requested, at the peak"),
    Measure("requested_bytes_end", "exact", "bytes", "live bytes requested, at the end"),
    Measure("total_fragmentation_peak", "exact", "share", "waste at the peak of memory"),
    Measure("total_fragmentation_end", "exact", "share", "waste at the end"),
    Measure("internal_fragmentation_end", "exact", "share", "internal fragmentation at the end"),
    Measure("unused_ratio_end", "exact", "share", "unused memory in slabs at the end"),
    Measure("fragmentation_events", "exact", "", "fallback events of the page allocator"),
    Measure("fast_path_share", "exact", "share", "operations on the fast path"),
    Measure("environment_failures", "exact", "", "page requests of the environment refused"),
    Measure("local_allocations", "exact", "", "allocated on the node of the CPU that asked"),
    Measure("remote_allocations", "exact", "", "allocated on another node"),
    Measure("local_frees", "exact", "", "freed on the node where the object is"),
    Measure("remote_frees", "exact", "", "freed on another node than the object's"),
    Measure("node_requests_met", "exact", "", "requests for a node that got memory of it"),
    Measure("node_requests_missed", "exact", "", "requests for a node that got memory of another"),
    Measure("reclaim_askings", "exact", "", "times that memory was asked back"),
    Measure("reclaimed_pages", "exact", "pages", "pages given back then"),
    Measure("reclaim_urgent_askings", "exact", "", "times that it was asked back urgently"),
    Measure("reclaimed_urgent_pages", "exact", "pages", "pages given back then, urgently"),
    Measure("reclaim_rescued_requests", "exact", "", "requests that this rescued"),
    Measure("reclaim_wait_events", "exact", "", "events from first asking to first page"),
    Measure("reclaim_wait_ns", "exact", "ns", "trace time from first asking to first page"),
    Measure("shrink_pages", "exact", "pages", "given back by a full shrink at the end"),
    Measure("shrink_slab_pages_left", "exact", "pages", "slab pages that stay then"),
    Measure("shrink_live_bytes", "exact", "bytes", "live bytes requested in these"),
    Measure("shrink_fragmentation", "exact", "share", "waste in these"),
    Measure("shrink_ns_per_page", "timed", "ns", "time of that shrink per page given back"),
)

# What an object operation costs, in records that have it.
COSTS = (
    Measure("instructions", "cost", "", "instructions per allocation or free of an object"),
    Measure("l1_misses", "cost", "", "of these, first-level cache misses"),
    Measure("ll_misses", "cost", "", "of these, last-level cache misses"),
)

# Of measures that mean something in some replays alone, the names; others are shown in any.
OF_NODES = frozenset(
    ("local_allocations", "remote_allocations", "local_frees", "remote_frees", "node_requests_met", "node_requests_missed")
)
OF_PRESSURE = frozenset(measure.name for measure in MEASURES if measure.name.startswith("reclaim"))


def off_fast_path(exact: Mapping[str, Any]) -> tuple[int, float]:
    """Of a replay's `exact` group: allocations and frees of objects, and how many of them left the fast path."""
    operations = sum(exact.get(name) or 0 for name in ("requests", "implied_allocations", "frees", "implied_frees"))
    return operations, (1 - (exact["fast_path_share"] or 0)) * operations


def interval(samples: Sequence[float]) -> tuple[float, float] | None:
    """The interval of the median, of CONFIDENCE or what so few samples allow; None for fewer than FEWEST_RUNS."""
    count = len(samples)
    if count < FEWEST_RUNS:
        return None
    ordered = sorted(samples)
    best = (ordered[0], ordered[-1])
    for k in range(2, count // 2 + 1):
        if 1 - _outside(count, k) < CONFIDENCE:
            break
        best = (ordered[k - 1], ordered[count - k])
    return best


def _outside(count: int, k: int) -> float:
    """The probability that the median lies beyond the k-th smallest or the k-th largest."""
    return 2 * sum(math.comb(count, i) for i in range(k)) / 2**count


def confidence(runs: Iterable[int | float | None]) -> str:
    """What the intervals of these numbers of repetitions cover at least, as a heading: `95%`."""
    fewest = min((int(count) for count in runs if count and count >= FEWEST_RUNS), default=USUAL_RUNS)
    return f"{min(CONFIDENCE, 1 - _outside(fewest, 1)):.0%}"
