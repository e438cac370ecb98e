"""What tuning found: the frontier, the settings to use, how fast these are, which tunable matters; and what to tell a kernel.

The settings to use are on the frontier, no worse than the default in any objective (memory: by less than 1%, which is a tie), and of those
the one that gains most over all objectives: the sum of the logarithms of its values to the default's is least. Where no setting is
better without being worse elsewhere, the default is what to use, and the frontier shows what each gain costs.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from ..results.model import Estimate, estimate
from .search import Index
from .space import Space
from .trials import OBJECTIVES, Trial, frontier

SCHEMA = 1
TIE = 0.01  # of memory
SHORT_OF_ZERO = {"memory": 1.0, "cost": 0.01, "fragmentation": 1.0}  # added before logarithms are taken


@dataclass
class Outcome:
    """Of one allocator on one trace."""

    workload: str
    cpus: int
    start: str
    space: Space
    default: Trial
    trials: list[Trial]  # all that were tried, refused ones too
    whole: bool  # whether that is every setting
    indices: list[Index] = field(default_factory=list)
    timed: dict[str, dict[str, Any]] = field(default_factory=dict)  # by spec
    counted: dict[str, dict[str, Any]] = field(default_factory=dict)  # the `cost` group by spec
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.frontier = frontier([one for one in self.trials if one.refused is None])
        self.refused = [one for one in self.trials if one.refused is not None]
        self.best = _best(self.default, self.frontier)

    def finalists(self) -> list[Trial]:
        """The default, the settings to use, and the ends of the frontier: what is worth timing. Each allocator once."""
        ends = [min(self.frontier, key=lambda one: one.goal[name]) for name in ("memory", "cost") if self.frontier]
        found: dict[str, Trial] = {}
        for one in (self.default, self.best, *ends):
            found.setdefault(one.spec, one)
        return list(found.values())

    def time(self, trial: Trial) -> Estimate | None:
        """Nanoseconds of an operation."""
        return estimate(self.timed.get(trial.spec, {}), "ns_per_operation")

    def as_json(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "workload": self.workload,
            "cpus": self.cpus,
            "start": self.start,
            "allocator": self.space.allocator,
            "vary": {axis.name: list(axis.values) for axis in self.space.axes},
            "settings": self.space.size,
            "complete": self.whole,
            "default": _figures(self.default),
            "use": _figures(self.best),
            "commands": kernel_commands(self.best),
            "frontier": [_figures(one) for one in self.frontier],
            "timed": self.timed,
            "counted": self.counted,
            "sobol": [asdict(one) for one in self.indices],
            "trials": [_figures(one) for one in self.trials],
            "notes": self.notes,
        }


def _figures(one: Trial) -> dict[str, Any]:
    head = {"spec": one.spec, "values": one.values}
    return {**head, "refused": one.refused} if one.refused is not None else {**head, **one.goal, "grew_pages_peak": one.grew}


def gain(one: Trial, default: Trial) -> float:
    """How much better than the default over all objectives; less is better."""
    return sum(math.log((one.goal[name] + rest) / (default.goal[name] + rest)) for name, rest in SHORT_OF_ZERO.items())


def _best(default: Trial, found: Sequence[Trial]) -> Trial:
    slack = {name: 1 + (TIE if name == "memory" else 0) for name in OBJECTIVES}
    good = [one for one in found if all(one.goal[name] <= default.goal[name] * slack[name] for name in OBJECTIVES)]
    best = min(good, key=lambda one: (gain(one, default), one.goals), default=default)
    return best if gain(best, default) < 0 and best.goals != default.goals else default


# Of Linux: the boot parameter of a tunable, or what of /sys/kernel/slab/CACHE takes it while the kernel runs.
_BOOT = {
    "slub": {"max_order": "slub_max_order={}", "min_order": "slub_min_order={}", "min_objects": "slub_min_objects={}"},
    "slab": {"max_order": "slab_max_order={}"},
}
_RUNNING = {"slub": ("cpu_partial", "min_partial")}


def kernel_commands(trial: Trial) -> list[str]:
    """How a running Linux gets these settings: boot parameters, then writes to sysfs. Empty where it has no such tunables."""
    policy, _, rest = trial.spec.partition(":")
    items = dict(item.split("=", 1) for item in rest.split(",") if "=" in item)  # the rest are patterns of debug=
    boot = [form.format(items[name]) for name, form in _BOOT.get(policy, {}).items() if name in items]
    if items.get("merge") == "off" and policy in _BOOT:
        boot.append("slab_nomerge")
    commands = [f"boot parameters: {shlex.join(boot)}"] if boot else []
    for name in _RUNNING.get(policy, ()):
        if name in items:
            commands.append(f"for f in /sys/kernel/slab/*/{name}; do echo {items[name]} >$f; done")
    return commands
