"""Tunes one allocator on one trace: every setting where they are few enough, else a search; then what is left is timed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from ..base.errors import UserError
from ..base.terminal import Progress
from ..replay.allocators import policies, without_effect
from ..replay.workload import Options, Workload
from ..results import records
from . import search, space
from .outcome import Outcome
from .space import Space
from .trials import Trials


def check(allocator: str, vary: Sequence[str], trials: int, kernel: int = 0) -> Space:
    """The settings to try on a workload of this kernel (scratch.kernel_version). UserError for what cannot be, and for a search without
    what it needs, before any work."""
    known = policies()
    space.parse(allocator, vary, known)
    found = space.parse(allocator, vary, known, without_effect(allocator, kernel))
    if found.size > trials:
        try:
            import optuna  # noqa: F401
        except ImportError:
            error = search.missing("optuna")
            many = f"{found.size:,} settings are more than --trials {trials:,}, and to search them"
            raise UserError(f"{many} {error.message}", error.status) from None
    return found


def _not_varied(settings: Space) -> list[str]:
    notes = []
    if settings.held:
        notes.append(f"Not varied, unless --vary names them: {', '.join(settings.held)}.")
    if settings.idle:
        notes.append(f"Without effect under {settings.allocator} on this trace: {', '.join(settings.idle)}.")
    return notes


def tune(path: Path, options: Options, settings: Space, trials: int, jobs: int | None, runs: int, counted: bool = False) -> Outcome:
    """`counted`: the instructions of the settings that are left are counted; replay.cost.check must have been called."""
    with Workload(path, options) as workload, Progress(min(settings.size, trials)) as progress:
        progress.stage(f"{workload.name}: {'all' if settings.size <= trials else 'search of'} {settings.size:,} settings")
        whole = settings.size <= trials
        notes = _not_varied(settings)
        with Trials(workload, settings, jobs or os.cpu_count() or 1, lambda spec: progress.step(f"{workload.name}: {spec}")) as tried:
            default = tried.plain()
            if default.refused is not None:
                raise UserError(f"{path}: {default.refused}")
            if whole:
                tried.run(settings.settings())
            else:
                search.search(tried, trials)
            indices = []
            size = search.sample_size(settings, whole, trials)
            if not search.has_salib():
                notes.append("Which tunable matters needs SALib: pip install 'slabyard[tune]'.")
            elif size:
                if not whole:
                    fresh = set(search.sample(settings, size)) - set(tried.done)
                    progress.expect(len(fresh))
                    progress.stage(f"{workload.name}: {len(fresh):,} settings more, to tell which tunable matters")
                indices = search.sensitivity(tried, size)
            done = list(tried.done.values())
        if all(one.refused is not None for one in done):
            raise UserError(f"every setting was refused: {done[0].refused}")
        outcome = Outcome(workload.name, workload.cpus, workload.start, settings, default, done, whole, indices, notes=notes)
        specs = [one.spec for one in outcome.finalists()]
        progress.expect(len(specs) * (runs + counted))
        for spec in specs if counted else ():
            outcome.counted[spec] = workload.cost(spec)
            progress.step(f"{workload.name}: {spec}, cost")
        samples = records.interleaved(specs if runs else [], runs, 0, workload.name, progress, lambda spec, _: workload.timed(spec))
        outcome.timed = {spec: records.summarise(taken, {}) for spec, taken in samples.items()}
    return outcome
