"""Settings replayed, each once: several processes over one prepared trace, and what came out by setting.

A trial is exact: the same setting gives the same figures whenever it runs. So a setting that is asked for again is looked up, and the
order in which trials end changes nothing.

    memory          pages held at the peak, those of objects older than the trace included: a setting that starts with roomy slabs grows
                    less, and holds no less
    cost            of 1,000 allocations and frees, those that left the fast path, and the pages that were taken or given back. It is what
                    tunables can change; how long each takes is timed for the settings that are left at the end
    fragmentation   fallback events of the page allocator
"""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from ..base import programs
from ..replay.workload import Workload
from ..results.measures import off_fast_path
from .space import Setting, Space

OBJECTIVES = ("memory", "cost", "fragmentation")
TITLES = {"memory": "pages at the peak", "cost": "off the fast path, per 1,000", "fragmentation": "fallback events"}
PER = 1000


@dataclass(frozen=True)
class Trial:
    """A setting and its figures; none, and why, where it was refused."""

    setting: Setting
    spec: str
    values: dict[str, str]
    exact: dict[str, Any] = field(default_factory=dict)
    refused: str | None = None

    @property
    def goals(self) -> tuple[float, ...]:
        """The value of each objective; less is better."""
        exact = self.exact
        operations, slow = off_fast_path(exact)
        slow += exact["pages_taken"] + exact["pages_returned"]
        return float(exact["held_pages_peak"]), PER * slow / operations if operations else 0.0, float(exact["fragmentation_events"])

    @property
    def goal(self) -> dict[str, float]:
        return dict(zip(OBJECTIVES, self.goals, strict=True))

    @property
    def grew(self) -> int | None:
        """Pages that the workload added, at its peak; None: not known."""
        grew: int | None = self.exact.get("grew_pages_peak")
        return grew


class Trials:
    """Runs settings, `jobs` at a time. A context manager: its processes live as long as it is open."""

    def __init__(self, workload: Workload, space: Space, jobs: int, step: Callable[[str], None]) -> None:
        self.space, self.step = space, step
        self.done: dict[Setting, Trial] = {}
        self._workload = workload
        self._servers: list[programs.Server] = []
        self._idle: queue.SimpleQueue[programs.Server] = queue.SimpleQueue()
        self._pool = ThreadPoolExecutor(jobs)
        for _ in range(jobs):
            server = workload.settings()
            self._servers.append(server)
            self._idle.put(server)

    def __enter__(self) -> Trials:
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)
        for server in self._servers:
            if error:
                server.close()
            else:
                server.end()

    def run(self, settings: Iterable[Setting]) -> list[Trial]:
        """The trials of these settings, in their order."""
        asked = list(settings)
        fresh = [setting for setting in dict.fromkeys(asked) if setting not in self.done]
        for trial in self._pool.map(self._one, fresh):
            self.done[trial.setting] = trial
            self.step(trial.spec)
        return [self.done[setting] for setting in asked]

    def plain(self) -> Trial:
        """The allocator as it is when nothing is varied; no setting of the space."""
        return self._asked((), self.space.allocator, {})

    def _one(self, setting: Setting) -> Trial:
        return self._asked(setting, self.space.spec(setting), self.space.values(setting))

    def _asked(self, setting: Setting, spec: str, values: dict[str, str]) -> Trial:
        server = self._idle.get()
        try:
            with self._workload.damage_told_of_trace():
                answer = server.ask(spec)
        finally:
            self._idle.put(server)
        return Trial(setting, spec, values, answer.get("exact", {}), answer.get("refused"))


def frontier(trials: Sequence[Trial]) -> list[Trial]:
    """The Pareto set: no other is better in one objective and no worse in the others. Of equals the one that was first; by memory."""
    first: dict[tuple[float, ...], Trial] = {}
    for one in trials:
        first.setdefault(one.goals, one)
    kept: list[tuple[float, ...]] = []
    for goals in sorted(first):  # whoever could beat it stands before it
        if not any(all(a <= b for a, b in zip(other, goals, strict=True)) for other in kept):
            kept.append(goals)
    return [first[goals] for goals in kept]
