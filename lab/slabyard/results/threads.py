"""Real threads on one heap, or on a malloc: runs slabyard-threads, repeats and interleaves, makes result records and tables.

Each run is a process of its own. Order of work, for each workload and number of threads: warm-up rounds, then the timed rounds,
interleaved over the allocators (A B C A B C), then one run of each in which operations are sampled, for latencies and the
allocator's share. All allocators of a round get the same seed, the next round another one.

The workloads, what is measured and how: threads/ in C, each file's head; docs/measures.md. A malloc is preloaded into the program, and the
program makes sure that it is.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..base import programs
from ..base.errors import UserError
from ..base.table import counted
from ..base.terminal import Progress
from ..replay.workload import Options, Workload
from . import measures, records
from .records import Record

TRACE = "trace"
SAMPLE = 64  # operations from one that is timed to the next, in the run for latencies
SCALARS = (
    measures.Measure("operations_per_second", "timed", "1/s", "operations a second"),
    measures.Measure("cpu_ns_per_operation", "timed", "ns", "processor time for each operation"),
    measures.Measure("seconds", "timed", "s", "time of the work"),
    measures.Measure("operations", "timed", "", "objects taken and given"),
    measures.Measure("cpu_seconds", "timed", "s", "processor time of the work"),
    measures.Measure("lock_waits", "timed", "", "waits for a lock"),
    measures.Measure("lock_wait_seconds", "timed", "s", "slept or yielded for a lock, over all threads"),
    measures.Measure("lock_wait_share", "timed", "", "that, of the threads' time by the clock"),
    measures.Measure("voluntary_switches", "timed", "", "times that a thread slept"),
    measures.Measure("resident_peak_kb", "timed", "KiB", "resident memory at the peak"),
    measures.Measure("resident_work_kb", "timed", "KiB", "resident memory at the end of the work"),
    measures.Measure("live_work_kb", "timed", "KiB", "of these, in objects"),
    measures.Measure("resident_end_kb", "timed", "KiB", "resident memory when all was freed"),
    measures.Measure("resident_trimmed_kb", "timed", "KiB", "the same after a trim"),
    measures.Measure("resident_per_live", "timed", "", "resident by live memory, over the phases"),
)


@dataclass(frozen=True)
class Plan:
    """What to run. None: the workload's own."""

    allocators: Sequence[str]
    workloads: Sequence[str]
    threads: Sequence[int]  # empty: 1, or as many as a trace's CPUs
    runs: int = measures.USUAL_RUNS
    warmup: int = 0
    operations: int | None = None
    size: str | None = None
    batch: int | None = None
    caches: bool = False
    pin: bool = False
    trace: Path | None = None
    seed: int = 0  # of the first round

    def counts(self) -> list[int | None]:
        return list(self.threads) or [None]

    def arguments(self) -> list[str]:
        """The options that all runs share."""
        options = (("--operations", self.operations), ("--size", self.size), ("--batch", self.batch))
        given = [word for name, value in options if value is not None for word in (name, str(value))]
        return [*given, *(["--caches"] if self.caches else []), *(["--pin"] if self.pin else [])]


def workloads() -> list[dict[str, Any]]:
    """Every workload: `name`, `what` and its defaults."""
    return programs.run_json(programs.THREADS, "--list")


def check(plan: Plan) -> None:
    """UserError for anything in the plan that cannot be run."""
    for spec in plan.allocators:
        for workload in plan.workloads:
            words = ["--allocator", spec, "--workload", workload, "--threads", str(max(plan.threads, default=1)), *plan.arguments()]
            programs.run(programs.THREADS, *words, "--check")
    if plan.trace is None and TRACE in plan.workloads:
        raise UserError("the workload trace needs a trace; name one: slabyard threads T.parquet")


def steps(plan: Plan) -> int:
    """How many steps `run` will report."""
    return len(plan.workloads) * len(plan.counts()) * len(plan.allocators) * (plan.warmup + plan.runs + 1)


def run(plan: Plan, progress: Progress) -> list[Record]:
    """A record for each workload, number of threads and allocator, in this order."""
    found = []
    for workload in plan.workloads:
        for threads in plan.counts():
            with _trace(plan, workload, threads) as trace, trace.damage_told_of_trace() if trace else contextlib.nullcontext():
                found += _one(plan, workload, threads, trace, progress)
    return found


def _trace(plan: Plan, workload: str, threads: int | None) -> contextlib.AbstractContextManager[Workload | None]:
    """The trace, where the workload is one, prepared for so many CPUs and from an empty heap."""
    if workload != TRACE:
        return contextlib.nullcontext()
    assert plan.trace is not None
    return Workload(plan.trace, Options(cpus=threads, start="empty", older_slabs=False, allow_failures=True))


def _one(plan: Plan, workload: str, threads: int | None, trace: Workload | None, progress: Progress) -> list[Record]:
    count = threads or (trace.cpus if trace else 1)
    described = next(one for one in workloads() if one["name"] == workload)
    title = f"{trace.name if trace else workload}, {counted(count * described['threads_per'], 'thread')}"
    progress.stage(title)
    argv = ["--workload", workload, "--threads", str(count), *plan.arguments(), *(["--scratch", str(trace.scratch)] if trace else [])]

    def once(spec: str, turn: int) -> dict[str, Any]:
        return _run(spec, [*argv, "--seed", str(plan.seed + turn)])

    samples = records.interleaved(plan.allocators, plan.runs, plan.warmup, title, progress, once)
    found = []
    for spec in plan.allocators:
        latency = _run(spec, [*argv, "--seed", "0", "--sample", str(SAMPLE)])
        found.append(_record(plan, workload, count, spec, trace, samples[spec], latency))
        progress.step(f"{title}: {spec}, latencies")
    return found


def _run(spec: str, argv: Sequence[str]) -> dict[str, Any]:
    return programs.run_json(programs.THREADS, "--allocator", spec, *argv)


_SAMPLED = ("alloc_ns", "free_ns", "latency_ns", "samples", "allocator_share", "clock", "clock_overhead_ns", "clock_resolution_ns")


def _record(
    plan: Plan, workload: str, count: int, spec: str, trace: Workload | None, samples: list[dict[str, Any]], latency: dict[str, Any]
) -> Record:
    threads, phases = samples[0]["threads"], samples[0].get("phases")
    scalars = [{measure.name: sample.get(measure.name) for measure in SCALARS} for sample in samples]
    sampled = {("sampled_operations" if name == "samples" else name): latency.get(name) for name in _SAMPLED}
    described = next(one for one in workloads() if one["name"] == workload)
    run = {
        "workload": trace.name if trace else workload,
        "substrate": "threads",
        "trace_sha256": trace.sha256 if trace else None,
        "cpus": count,
        "threads": threads,
        "operations": plan.operations or described["operations"],
        "size": plan.size or (f"{described['size_min']}-{described['size_max']}" if described["size_min"] else None),
        "batch": plan.batch or described["batch"] or None,
        "caches": plan.caches,
        "pinned": plan.pin,
        "seed": plan.seed + plan.warmup,
        "repetition": len(samples),
    }
    timed = records.summarise(scalars, sampled)
    if phases:
        timed["phases"] = phases
    return records.record(spec, run, {}, timed)
