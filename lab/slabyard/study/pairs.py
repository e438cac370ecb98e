"""Pairs of an allocation and a free (slabyard-pairs), counted and timed.

Counted: callgrind tells what each call costs that the program's measured loop makes, with all that it calls in turn. The name of what is
called says whose it is: the memory's (the library's own entries), the construction's, or the rest. A constructor that the library calls
is the construction's too. The loop itself belongs to nobody.

The counts follow from the program's code: they are the same on every run, and nearly so wherever the same compiler made it.
"""

from __future__ import annotations

import bisect
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..base import programs
from ..replay import cost

LOOP = "cost_pairs"  # of pairs/main.c
OWNERS = {"memory": ("sy_",), "construction": ("construct_", "destruct_"), "other": ("begin_", "end_")}
LEAST_ROUNDS = 5  # in a piece, of which there are 20, of a lone pair; of several alive one is enough
TIMED_OBJECTS = 20_000  # in a piece


def counted(spec: str, live: int, *words: str) -> dict[str, Any]:
    """Instructions of one pair: of `memory`, `construction` and `other`; and `parts`, those of the memory as replay/cost.py has them."""
    program = programs.program(programs.PAIRS)
    with tempfile.TemporaryDirectory(prefix="slabyard-") as folder:
        words = ("--allocator", spec, "--live", str(live), "--rounds", str(LEAST_ROUNDS if live == 1 else 1), *words)
        told, profile = cost.observed(Path(folder), "pairs", program, words, [LOOP])
    path, pairs = str(Path(program).resolve()), told["pairs"]
    parts = cost.group(profile, path, pairs, 0, LOOP)["parts"] or {}
    by_owner = {owner: round(figure / pairs, 2) for owner, figure in _by_owner(profile, path).items()}
    return {**by_owner, "parts": {part: round(figures["instructions"], 2) for part, figures in parts.items()}}


def _by_owner(profile: cost.Profile, program: str) -> dict[str, int]:
    names = cost.symbols(program)
    begins = list(names)
    sums = dict.fromkeys(OWNERS, 0)
    for call in profile.calls.get(program, []):
        place = bisect.bisect_right(begins, call.at)
        caller = names[begins[place - 1]] if place else ""
        owner = _owner(call.name)
        if caller == LOOP and owner:
            sums[owner] += call.cost[0]
        elif owner == "construction" and _owner(caller) != owner:
            sums["construction"] += call.cost[0]
            sums["memory"] -= call.cost[0]
    return sums


def _owner(function: str) -> str | None:
    return next((owner for owner, prefixes in OWNERS.items() if function.startswith(prefixes)), None)


def total(counts: dict[str, Any]) -> float:
    """All instructions of a pair."""
    return float(sum(counts[owner] for owner in OWNERS))


def timed(spec: str, live: int, words: Sequence[str]) -> dict[str, float]:
    """Nanoseconds of a pair, and of a pair of taking and releasing a lock that is free."""
    rounds = str(max(1, TIMED_OBJECTS // live))
    found = programs.run_json(programs.PAIRS, "--allocator", spec, "--live", str(live), "--rounds", rounds, *words)
    return {"ns": found["ns_per_pair"], "lock_pair": found["lock_pair_ns"]}
