"""The settings to try: for each tunable a list of values, and every way to choose one of each.

    max_order=0..3,cpu_partial=0,8,30       0 1 2 3, and 0 8 30: a comma parts values as well as tunables
    cpu_partial=0..64:16                    0 16 32 48 64
    fit=next,best  cpu_partial=auto,8       words as `slabyard list` has them

Of tunables that nobody names, a few values each: all words; page orders 0 to 3; of numbers the default, the least, and powers of four.
Held as they are, unless --vary names them or nothing else is left: those without effect beside what is set, and those that make another
allocator of it, as another version or another build of a kernel does.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..base.errors import UserError

MOST_VALUES = 10000  # of one tunable
LADDER = (1, 4, 16, 64)
ORDERS = range(4)
LOGS = "log_every"  # without effect on any figure
HELD = ("harden", "linux", "tiny", "usercopy", "classes", "fit")  # chosen for other reasons than figures, or another allocator


@dataclass(frozen=True)
class Axis:
    """A tunable and its values, as texts, in their order."""

    name: str
    values: tuple[str, ...]


Setting = tuple[int, ...]  # for each axis the place of its value


@dataclass(frozen=True)
class Space:
    """An allocator and its axes."""

    allocator: str  # with what is set the same in all settings
    axes: tuple[Axis, ...]
    held: tuple[str, ...] = ()  # tunables that are not varied, and could be
    idle: tuple[str, ...] = ()  # that are not varied, for they change nothing here

    @property
    def size(self) -> int:
        return math.prod(len(axis.values) for axis in self.axes)

    def settings(self) -> Iterator[Setting]:
        """All of them, the last axis fastest."""
        return itertools.product(*(range(len(axis.values)) for axis in self.axes))

    def values(self, setting: Setting) -> dict[str, str]:
        return {axis.name: axis.values[place] for axis, place in zip(self.axes, setting, strict=True)}

    def spec(self, setting: Setting) -> str:
        """As a replay takes it. `auto` is what is left out."""
        items = [f"{name}={value}" for name, value in self.values(setting).items() if value != "auto"]
        if not items:
            return self.allocator
        return f"{self.allocator}{',' if ':' in self.allocator else ':'}{','.join(items)}"


def parse(allocator: str, vary: Sequence[str], policies: Sequence[dict[str, Any]], idle: Sequence[str] = ()) -> Space:
    """`idle`: tunables without effect beside what `allocator` sets. UserError for an allocator or tunable that there is not, and for values
    that it cannot have."""
    name, _, fixed = allocator.partition(":")
    policy = next((one for one in policies if one["name"] == name), None)
    if policy is None:
        raise UserError(f"{allocator}: only an allocator of slabyard's can be tuned; slabyard list shows them")
    tunables = {one["name"]: one for one in policy["tunables"]}
    if not tunables:
        raise UserError(f"{name} has no tunables; slabyard list shows those that have")
    texts: dict[str, list[str]] = {}
    for text in vary:
        for key, values in _parsed(text).items():
            if key in texts:
                raise UserError(f"--vary names {key} twice")
            texts[key] = values
    set_ = [item.partition("=")[0] for item in fixed.split(",")] if fixed else []
    for key in texts:
        if key not in tunables:
            raise UserError(f"--vary names {key}, which {name} does not have; it has {', '.join(tunables)}")
        if key in set_:
            raise UserError(f"--vary names {key}, which --allocator sets; leave it out of one of them")
    if texts:
        return Space(allocator, tuple(Axis(key, _values(tunables[key], values)) for key, values in texts.items()))
    free = [key for key in tunables if key not in (*set_, *idle, LOGS)]
    if not free:
        raise UserError(f"{allocator} sets every tunable that changes anything, so nothing is left to vary")
    usual = [key for key in free if key not in HELD] or free
    held, unused = [key for key in free if key not in usual], [key for key in tunables if key in idle and key not in set_]
    return Space(allocator, tuple(Axis(key, _usual(tunables[key])) for key in usual), tuple(held), tuple(unused))


def _parsed(text: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    last = ""
    for item in text.split(","):
        key, equals, value = item.strip().partition("=")
        if equals:
            if key in found:
                raise UserError(f"--vary names {key} twice")
            last, found[key] = key, []
        else:
            value = key
        if not last or not value:
            raise UserError(f"--vary {text!r} is no list of values, as in max_order=0..3,cpu_partial=0,8,30")
        found[last].append(value)
    return found


def _values(tunable: dict[str, Any], texts: Sequence[str]) -> tuple[str, ...]:
    found: list[str] = []
    for text in texts:
        match = re.fullmatch(r"(\d{1,9})\.\.(\d{1,9})(?::(\d{1,9}))?", text)
        if match:
            low, high, step = int(match[1]), int(match[2]), int(match[3] or 1)
            if low > high or step == 0 or (high - low) // step >= MOST_VALUES:
                raise UserError(f"--vary: {tunable['name']}={text} is no range of values, as in 0..64 or 0..64:16")
            found += map(str, range(low, high + 1, step))
        else:
            found.append(text)
    for value in found:
        _check(tunable, value)
    return tuple(dict.fromkeys(found))


def _check(tunable: dict[str, Any], value: str) -> None:
    if value == "auto" and tunable["default"] == "auto":
        return
    if tunable["choices"]:
        known, said = value in tunable["choices"], f"one of {', '.join(tunable['choices'])}"
    else:
        known = value.isdigit() and tunable["min"] <= int(value) <= tunable["max"]
        said = f"{tunable['min']} to {tunable['max']}"
    if not known:
        auto = "auto, or " if tunable["default"] == "auto" else ""
        raise UserError(f"--vary: {tunable['name']} cannot be {value}; it can be {auto}{said}")


def _usual(tunable: dict[str, Any]) -> tuple[str, ...]:
    """A few values of a tunable, its default the first."""
    if tunable["choices"]:
        values = list(tunable["choices"])
    elif tunable["name"].endswith("_order"):
        values = [str(order) for order in ORDERS if tunable["min"] <= order <= tunable["max"]]
    else:
        values = [str(value) for value in (tunable["min"], *LADDER) if tunable["min"] <= value <= tunable["max"]]
    return tuple(dict.fromkeys([str(tunable["default"]), *values]))
