"""What a difference is made of, whatever was compared; tables, JSON, Markdown and JUnit XML are made of this alone.

A Row is one measure of one run in both files, with what can be said of it. A Grown is one holder of memory (cache, call site) in both.

    same       the two values are equal
    tie        they differ, and surely so, but by less than 1% of that memory
    better, worse   they differ, and surely so: they are exact, or their intervals do not overlap
    unsure     they differ, and their intervals overlap
    no interval     they differ, and one of them has too few repetitions for an interval
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from ..results.model import Estimate
from .conditions import MORE_IS_BETTER, Condition

SCHEMA = 1
HEADLINES = ("memory", "peak", "kept", "time", "cost", "first-level misses", "last-level misses", "fragmentation", "waste", "failures")
SAME, TIE, BETTER, WORSE, UNSURE, NO_INTERVAL = "same", "tie", "better", "worse", "unsure", "no interval"
TIES_BELOW = 1  # percent of memory


@dataclass
class Row:
    """A measure of a run. `measure` is its short name or its own, `name` its own; `scale`: its unit in bytes, where it is memory."""

    run: str
    workload: str
    measure: str
    name: str
    unit: str
    old: Estimate
    new: Estimate
    scale: float = 1
    failed: list[str] = field(default_factory=list)  # the conditions that it does not meet

    @property
    def percent(self) -> float | None:
        """How much more the new one is; None: the old one is nothing."""
        return 100 * (self.new.median / self.old.median - 1) if self.old.median else None

    @property
    def direction(self) -> str:
        """What is sure of it, however little it is."""
        if self.old.median == self.new.median:
            return SAME
        if self.old.low is None or self.old.high is None or self.new.low is None or self.new.high is None:
            return NO_INTERVAL
        more, less = self.new.low > self.old.high, self.new.high < self.old.low
        if not more and not less:
            return UNSURE
        return WORSE if more != (self.name in MORE_IS_BETTER) else BETTER

    @property
    def verdict(self) -> str:
        small = self.unit in ("pages", "bytes") and self.percent is not None and abs(self.percent) < TIES_BELOW
        return TIE if small and self.direction in (WORSE, BETTER) and not self.failed else self.direction

    def judge(self, conditions: Sequence[Condition]) -> None:
        """Notes which conditions are not met."""
        mine = [one for one in conditions if one.measure in (self.measure, self.name)] if self.direction == WORSE else []
        self.failed = [one.text for one in mine if one.exceeded(self.old.median, self.new.median, self.scale)]

    def as_json(self) -> dict[str, Any]:
        ends = {"old_low": self.old.low, "old_high": self.old.high, "new_low": self.new.low, "new_high": self.new.high}
        return {
            "workload": self.workload, "run": self.run, "measure": self.measure, "name": self.name, "unit": self.unit,
            "old": self.old.median, "new": self.new.median, **ends, "percent": self.percent, "verdict": self.verdict, "failed": self.failed,
        }  # fmt: skip


@dataclass
class Grown:
    """A holder of memory in both; bytes None: not there. Counts are of objects, of calls, or of allocations in a trace."""

    workload: str
    run: str
    what: str  # cache, call site
    name: str
    old_bytes: int | None
    new_bytes: int | None
    old_count: int | None = None
    new_count: int | None = None

    @property
    def change(self) -> int:
        return (self.new_bytes or 0) - (self.old_bytes or 0)


@dataclass
class Difference:
    """Of two files. `missing` are runs that only the old one has, `added` those that only the new one has."""

    old: str
    new: str
    rows: list[Row] = field(default_factory=list)
    grown: list[Grown] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    added: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    conditions: list[Condition] = field(default_factory=list)
    growth: bool = False  # whether holders have what grew, rather than what there is
    incomplete: dict[str, str | None] = field(default_factory=dict)

    def judge(self, conditions: Sequence[Condition]) -> None:
        self.conditions = list(conditions)
        for row in self.rows:
            row.judge(conditions)

    @property
    def failures(self) -> list[Row]:
        return [row for row in self.rows if row.failed]

    def of(self, condition: Condition) -> list[Row]:
        """The rows that a condition is about."""
        return [row for row in self.rows if condition.measure in (row.measure, row.name)]

    def as_json(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "old": self.old,
            "new": self.new,
            "conditions": [one.text for one in self.conditions],
            "regressions": len(self.failures),
            "rows": [row.as_json() for row in self.rows],
            "holders": [{**asdict(one), "change_bytes": one.change} for one in self.grown],
            "only_old": self.missing,
            "only_new": self.added,
            "notes": self.notes,
        }
