"""What is a regression: conditions such as `memory>2%,time>10%,cost>1%`.

A condition names a measure and how much more of it is too much: in percent of the old value, or as an amount (`memory>64K`,
`fragmentation>0`). Amounts of memory are in bytes, with K, M or G. The short names stand for what people ask first; any scalar measure of
docs/measures.md may be named as well (`held_pages_end>1%`). More is worse of all but the few measures of which more is better.

A value that has an interval is a regression only where the new interval lies wholly beyond the old one and the medians differ by more than
the limit. A value without one (fewer than six repetitions) decides nothing, and that is said. From nothing, any amount is more than
any percentage.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..base.errors import UserError
from ..results import measures
from ..trace.snapshots import UNITS

DEFAULT = "memory>2%,time>10%,cost>1%"
SHORT = {
    "memory": "memory that grew, at its peak",
    "peak": "memory at the peak, what was there before included",
    "kept": "memory that grew, at the end",
    "time": "time of an operation, or of the whole",
    "cost": "instructions of an operation",
    "fragmentation": "fallback events of the page allocator",
}
MORE_IS_BETTER = frozenset(
    (
        "events_per_second", "operations_per_second", "fast_path_share", "pages_returned", "shrink_pages", "reclaimed_pages",
        "local_allocations", "local_frees", "node_requests_met", "reclaim_rescued_requests",
    )
)  # fmt: skip


@dataclass(frozen=True)
class Condition:
    """`measure` may grow by `limit`, in percent or, with `percent` false, in its unit (memory: bytes)."""

    text: str
    measure: str
    limit: float
    percent: bool

    def exceeded(self, old: float, new: float, scale: float = 1) -> bool:
        """Whether new is too much more than old; `scale` is a unit of theirs in bytes where they are memory."""
        worse = old - new if self.measure in MORE_IS_BETTER else new - old
        if not self.percent:
            return worse * scale > self.limit
        return worse > abs(old) * self.limit / 100 if old else worse > 0


def parse(text: str) -> list[Condition]:
    """UserError where a condition is none, or names no measure."""
    found = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*([a-z][\w.]*)\s*>\s*(\d+(?:\.\d+)?)\s*(%|[KMG]?)(?:i?B)?\s*", part)
        if match is None:
            raise UserError(f"--fail-if has {part.strip()!r}, which is no condition; write it as in '{DEFAULT}'")
        name = match[1].removeprefix("exact.").removeprefix("timed.")
        if name not in SHORT and name not in {one.name for one in measures.MEASURES} | {"operations_per_second", "cpu_seconds"}:
            raise UserError(f"--fail-if names {match[1]}, which is no measure; there are {', '.join(SHORT)}, and those of docs/measures.md")
        percent = match[3] == "%"
        found.append(Condition("".join(part.split()), name, float(match[2]) * (1 if percent else UNITS[match[3]]), percent))
    return found
