"""Which settings to try where there are too many to try all, and which tunable matters.

The search is Optuna's NSGA-II: a population of settings, the better ones of which are crossed and changed; it takes several objectives at
once and keeps the whole frontier. A tunable is the place of its value in the list, so that neighbours stay neighbours. The seed is fixed
and a generation is told in the order in which it was asked, hence the same search finds the same settings.

Sobol's indices say how much of a measure's variance a tunable is behind: S1 alone, ST with all that it does together with others. SALib
draws Saltelli's sample of the settings and computes both. A setting that is in it and was tried already costs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..base.errors import MISSING, UserError
from ..base.modules import let_in
from .space import Setting, Space
from .trials import OBJECTIVES, Trials

SEED = 1
GENERATION = 50
LARGEST_SAMPLE = 1024  # base sample of Saltelli's scheme, a power of two
SMALLEST_SAMPLE = 8
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Index:
    """Of a tunable and an objective: Sobol's indices, and half the width of their 95% intervals."""

    tunable: str
    objective: str
    s1: float
    s1_half: float
    st: float
    st_half: float


def missing(package: str) -> UserError:
    return UserError(f"slabyard needs {package}: pip install 'slabyard[tune]', or pip install {package}", MISSING)


def search(trials: Trials, count: int) -> None:
    """Tries `count` settings at most."""
    try:
        import optuna
    except ImportError:
        raise missing("optuna") from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    space = trials.space
    sampler = optuna.samplers.NSGAIISampler(seed=SEED, population_size=GENERATION)
    study = optuna.create_study(directions=["minimize"] * len(OBJECTIVES), sampler=sampler)
    axes = {axis.name: optuna.distributions.IntDistribution(0, len(axis.values) - 1) for axis in space.axes}
    study.enqueue_trial(dict.fromkeys(axes, 0))
    asked = 0
    while asked < count:
        generation = [study.ask(axes) for _ in range(min(GENERATION, count - asked))]
        asked += len(generation)
        settings = [tuple(one.params[axis.name] for axis in space.axes) for one in generation]
        for one, trial in zip(generation, trials.run(settings), strict=True):
            if trial.refused is None:
                study.tell(one, trial.goals)
            else:
                study.tell(one, state=optuna.trial.TrialState.FAIL)


def has_salib() -> bool:
    let_in("pandas")  # SALib uses it
    try:
        import SALib  # noqa: F401
    except ImportError:
        return False
    return True


def sample_size(space: Space, whole: bool, budget: int) -> int:
    """Base sample of Saltelli's scheme; 0: the budget does not allow one that says anything."""
    if whole:
        return LARGEST_SAMPLE
    size = LARGEST_SAMPLE
    while size >= SMALLEST_SAMPLE and size * (len(space.axes) + 2) > budget:
        size //= 2
    return size if size >= SMALLEST_SAMPLE else 0


def sample(space: Space, size: int) -> list[Setting]:
    """Saltelli's sample as settings."""
    from SALib.sample import sobol

    points = sobol.sample(_problem(space), size, calc_second_order=False, seed=SEED)
    lengths = np.asarray([len(axis.values) for axis in space.axes])
    places = np.minimum((points * lengths).astype(int), lengths - 1)
    return [tuple(map(int, row)) for row in places]


def sensitivity(trials: Trials, size: int) -> list[Index]:
    """The indices of each tunable for each objective that varies. A setting that is refused counts as the mean."""
    from SALib.analyze import sobol

    space = trials.space
    goals = [None if one.refused else one.goals for one in trials.run(sample(space, size))]
    found = []
    for place, objective in enumerate(OBJECTIVES):
        known = [one[place] for one in goals if one is not None]
        if len(set(known)) < 2:
            continue
        mean = float(np.mean(known))
        values = np.asarray([mean if one is None else one[place] for one in goals])
        result: dict[str, Sequence[float]] = sobol.analyze(
            _problem(space), values, calc_second_order=False, conf_level=CONFIDENCE, seed=SEED, print_to_console=False
        )
        for at, axis in enumerate(space.axes):
            figures = (float(result[name][at]) for name in ("S1", "S1_conf", "ST", "ST_conf"))
            found.append(Index(axis.name, objective, *figures))
    return found


def _problem(space: Space) -> dict[str, Any]:
    names = [axis.name for axis in space.axes]
    return {"num_vars": len(names), "names": names, "bounds": [[0.0, 1.0]] * len(names)}
