"""Several allocators on several traces: runs them fairly, and says what came out.

Order of work, for each trace: every allocator is set up, runs the trace once unmeasured and once for its exact figures, and once more
where costs are counted (all of which may happen side by side, they time nothing). Then come the timed passes, alone on the machine and
interleaved, A B C A B C, so that whatever slows the machine for a while slows all of them. Warm-up rounds come first and are thrown
away. One pass of each allocator takes the latency percentiles.

Then memory alone, which costs little: the other start (empty where this one is as recorded, and the other way round), as ranks that
hang on what was there before are to be known as such; and settings that the recorded kernel could be given (advice.py).

A comparison's output is a list of records (see records.py), one for each allocator and trace, and one for the recorded
kernel; the tables, the ranking, the sentences and the report are made of these alone.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..base import programs
from ..base.errors import UserError
from ..base.terminal import Progress
from ..replay.workload import Options, Workload
from . import advice, measures, reasons, records
from .model import workloads
from .records import Record

ALLOCATORS = ("yard", "slub", "slab", "slqb", "slob", "slob:fit=first", "slob:fit=best", "bonwick", "bsd44", "svr4", "sunos4")


@dataclass(frozen=True)
class Plan:
    """How to compare."""

    allocators: Sequence[str] = ALLOCATORS
    runs: int = measures.USUAL_RUNS
    warmup: int = 0
    jobs: int = 1
    options: Options = field(default_factory=Options)
    cost: bool = False
    functions: int = 0  # of the cost


def compare(traces: Sequence[Path], plan: Plan, progress: Progress) -> list[Record]:
    """Replays every trace under every allocator; records in the order of traces, then allocators, then the recorded kernel."""
    found: list[Record] = []
    for place, path in enumerate(traces):
        progress.stage(f"replaying {path.name}" + (f" ({place + 1} of {len(traces)})" if len(traces) > 1 else ""))
        try:
            with Workload(path, plan.options) as workload:
                members = _one(workload, plan, progress)
                other = "empty" if workload.start == "recorded" else "recorded"
                # The machine is given, so that nothing is told a second time of one that was too large.
                options = replace(plan.options, start=other, cpus=workload.cpus, nodes=workload.nodes)
            policies = [record for record in members if advice.is_policy(record["run"]["allocator"])]
            if workload.has_snapshots and policies:
                _add_other_start(path, options, plan.jobs, policies, progress)
        except UserError as error:
            if len(traces) == 1 or str(path) in error.message:
                raise
            raise UserError(f"{path}: {error.message}", error.status) from error
        found += members
    sections = workloads(found)
    reasons.attach(sections, {section.ident: advice.lines(section) for section in sections})
    return found


def _add_other_start(path: Path, options: Options, jobs: int, members: Sequence[Record], progress: Progress) -> None:
    """Notes in each record what memory would have been from the other start. Where that cannot be replayed, nothing is noted."""
    with contextlib.suppress(UserError), Workload(path, options) as workload:
        specs = [record["run"]["allocator"] for record in members]
        for record, memory in zip(members, _memory(workload, specs, jobs, progress), strict=True):
            record["exact"]["other_start"] = {"start": workload.start, **memory}


def _memory(workload: Workload, specs: Sequence[str], jobs: int, progress: Progress) -> list[dict[str, Any]]:
    """The memory of these allocators."""
    progress.expect(len(specs))
    found = []
    with programs.side_by_side(jobs) as pool:
        for spec, memory in zip(specs, pool.map(workload.memory, specs), strict=True):
            found.append(memory)
            progress.step(f"{workload.name}: {spec}, memory, start {workload.start}")
    return found


def steps(traces: int, plan: Plan) -> int:
    """How many steps `compare` will report; more for memory alone, where a trace has snapshots."""
    return traces * len(plan.allocators) * (2 + plan.cost + plan.warmup + plan.runs)


def _exact(workload: Workload, spec: str) -> tuple[dict[str, Any], float]:
    """The exact figures, and the seconds that they took."""
    start = time.monotonic()
    return workload.exact(spec), time.monotonic() - start


def _one(workload: Workload, plan: Plan, progress: Progress) -> list[Record]:
    exact: dict[str, dict[str, Any]] = {}
    cost: dict[str, dict[str, Any]] = {}
    took: dict[str, float] = {}
    with programs.side_by_side(plan.jobs) as pool:
        pending = {spec: pool.submit(_exact, workload, spec) for spec in plan.allocators}
        for spec, future in pending.items():
            exact[spec], took[spec] = future.result()
            progress.step(f"{workload.name}: {spec}, exact figures")
        # The longest first, so that no processor waits for the last one.
        longest = sorted(plan.allocators, key=lambda spec: -took[spec]) if plan.cost else []
        costs = {spec: pool.submit(workload.cost, spec, plan.functions) for spec in longest}
        for spec, counted in costs.items():
            cost[spec] = counted.result()
            progress.step(f"{workload.name}: {spec}, cost")
    samples = records.interleaved(plan.allocators, plan.runs, plan.warmup, workload.name, progress, lambda spec, _: workload.timed(spec))
    found = []
    for spec in plan.allocators:
        timed = records.summarise(samples[spec], workload.latency(spec))
        found.append(records.of_replay(workload, spec, exact[spec], timed, cost.get(spec)))
        progress.step(f"{workload.name}: {spec}, latencies")
    recorded = records.of_recorded_kernel(workload)
    if recorded is None:
        return found
    settings = advice.settings(recorded["run"]) if "slub" in plan.allocators else []
    with contextlib.suppress(UserError):
        tried = _memory(workload, settings, plan.jobs, progress)
        recorded["exact"]["settings"] = [{"allocator": spec, **memory} for spec, memory in zip(settings, tried, strict=True)]
    return [*found, recorded]
