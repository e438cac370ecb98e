"""Carries a plan out: the runs that are not done yet, each written down as it ends, with what is left told on the way."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ..base.terminal import Progress, note
from . import executors
from .plan import Plan
from .store import Store

EVERY = 30  # seconds between two lines where there is no terminal


@dataclass
class Outcome:
    """What came of a sweep."""

    planned: int
    done_before: int
    done: int
    failed: dict[str, str]  # by the run's title
    results: Path | None


def sweep(plan: Plan, folder: Path, workers: int, scheduler: str | None, again: bool) -> Outcome:
    """`again`: failed runs are tried once more."""
    with Store(folder) as store:
        if again:
            store.forget_failed()
        todo = [run for run in plan.runs if run.key not in store.done]
        before = len(plan.runs) - len(todo)
        title = f"{plan.path.name}: {len(plan.runs):,} runs"
        done = 0
        try:
            with Progress(len(todo)) as progress:
                progress.stage(title + (f", {before:,} of them done already" if before else ""))
                rows = executors.cluster(todo, scheduler) if scheduler else executors.processes(todo, workers)
                tell = _teller(len(todo), progress)
                for row in rows:
                    store.add(row)
                    done += 1
                    tell(done, row["failed"] is not None)
        finally:
            results = store.close_journal()
        failed = {run.title: reason for run in plan.runs if (reason := store.done.get(run.key)) is not None}
    return Outcome(len(plan.runs), before, done, failed, results)


def _teller(total: int, progress: Progress) -> Callable[[int, bool], None]:
    """Tells of each run that ended: on a terminal by the bar, elsewhere by a line now and then."""
    began = told = time.monotonic()
    failures = 0

    def tell(done: int, failed: bool) -> None:
        nonlocal told, failures
        failures += failed
        now = time.monotonic()
        said = f"{done:,} of {total:,} runs" + (f", {failures:,} failed" if failures else "")
        if progress.bar:
            progress.step(said)
        elif now >= told + EVERY and done < total:
            told = now
            note(f"{said}, {_left((now - began) / done * (total - done))} left")

    return tell


def _left(seconds: float) -> str:
    if seconds < 90:
        return f"about {max(1, round(seconds))} s"
    return f"about {round(seconds / 60)} min" if seconds < 90 * 60 else f"about {seconds / 3600:.1f} h"
