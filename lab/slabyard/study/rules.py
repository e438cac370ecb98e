"""The rules by which repetitions tell an order: yes, no, or not at all where their windows overlap.

Every function here gives True where something is so, False where the contrary is, and None where the repetitions cannot tell. Figures that
are the same in every repetition, as counted ones are, are told apart or equal, and equal ones are no order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any


def below(one: Sequence[float], other: Sequence[float]) -> bool | None:
    """Whether each repetition of the one is less than each of the other."""
    if max(one) < min(other):
        return True
    return False if min(one) >= max(other) else None


def every(parts: Iterable[bool | None]) -> bool | None:
    """Whether all are so: not where one is not."""
    found = list(parts)
    return False if False in found else None if None in found else True


def ordered(found: Mapping[Any, Sequence[float]], names: Sequence[Any]) -> bool | None:
    """Whether each is below the next."""
    return every(below(found[one], found[other]) for one, other in pairwise(names))


def least(found: Mapping[Any, Sequence[float]], name: Any) -> bool | None:
    return every(below(found[name], found[other]) for other in found if other != name)


def greatest(found: Mapping[Any, Sequence[float]], name: Any) -> bool | None:
    return every(below(found[other], found[name]) for other in found if other != name)


def alone_at(found: Mapping[Any, Sequence[float]], name: Any, place: int) -> bool | None:
    """Whether it has that place, from 1, and shares it with none."""
    under = [below(found[other], found[name]) for other in found if other != name]
    over = [below(found[name], found[other]) for other in found if other != name]
    tied = any(one is False and other is False for one, other in zip(under, over, strict=True))
    if tied or not 1 + under.count(True) <= place <= 1 + len(under) - over.count(True):
        return False
    return None if None in under else True


def ranks(found: Mapping[Any, Sequence[float]]) -> dict[Any, int]:
    """1 and the number of those that are below."""
    return {name: 1 + sum(below(other, mine) is True for other in found.values()) for name, mine in found.items()}
