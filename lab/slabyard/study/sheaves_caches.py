"""A capacity for each cache, against the kernel's rule by size: chosen on recordings, and judged on others."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..replay.scratch import NO_SHEAVES, SHEAVES
from ..replay.workload import Workload
from .model import Claim, Data, Outcome, Sheet
from .sheaves_figures import CONFIDENCE, LEFT_OUT, NEW, PER, REPLAYS, between, cost, each, grid, interval, of_caches
from .work import Work

_OF_CACHES = (4, 8, 12, 20, 28, 32, 44, 60, 92, 124, 188, 252)


def sheaf_bytes(capacity: int) -> int:
    """Of kmalloc: a header of 32 bytes and a pointer for each object."""
    size = 32 + 8 * capacity
    return next((one for one in (64, 96, 128, 192, 256) if size <= one), 1 << max(0, size - 1).bit_length())


def by_rule(name: str, size: int) -> int:
    """Objects of a sheaf in 7.0: by the bytes of an object, or what the cache asks for, if that is more."""
    return max(4 if size >= 4096 else 12 if size >= 1024 else 28 if size >= 256 else 60, SHEAVES.get(name, 0))


def _by_capacity(path: Path) -> Data:
    with Workload(path, REPLAYS) as workload:
        found = {}
        for capacity in _OF_CACHES:
            workload.keep(1)
            found[str(capacity)] = of_caches(workload.exact(f"{NEW},sheaf_capacity={capacity}"))
        workload.keep(1)
        rule = workload.exact(NEW)
        return {"caches": found, "rule": cost(rule), "of_rule": of_caches(rule), "cpus": workload.cpus}


@dataclass(frozen=True)
class _Curve:
    """Of a cache: bytes of an object, operations, and by capacity slow operations, locks and KiB."""

    size: int
    ops: int
    costs: dict[int, tuple[float, float, float]]


_KMALLOC = re.compile(r"kmalloc-\d+k?")  # the classes that sheaves are of


def _slab_bytes(of: Data, name: str, capacity: int, size: int) -> int:
    """A cache's slabs at the peak. A class of kmalloc holds all sheaves of a replay whose capacity makes them of that class: there its
    bytes are those at the nearest capacity that does not, as sheaves are counted with the caches that have them."""
    of_this_class = _KMALLOC.fullmatch(name) is not None
    tried = [one for one in _OF_CACHES if not of_this_class or sheaf_bytes(one) != size]
    nearest = min(tried, key=lambda one: abs(one - capacity))
    found: int = of[str(nearest)].get(name, [0] * 5)[3]
    return found


def _measured(found: Sequence[Data], sizes: Mapping[str, int]) -> dict[str, _Curve]:
    """Of each cache on these recordings: slow operations and locks in all, and KiB, the mean over recordings."""
    sheaves = {capacity: statistics.fmean(2 * one["cpus"] * sheaf_bytes(capacity) for one in found) for capacity in _OF_CACHES}
    caches = {}
    for name, size in sizes.items():
        costs = {}
        for capacity in _OF_CACHES:
            rows = [one["caches"][str(capacity)].get(name, [0] * 5) for one in found]
            slabs = statistics.fmean(_slab_bytes(one["caches"], name, capacity, size) for one in found)
            kib = (slabs + sheaves[capacity]) / 1024  # a main and a spare one for each CPU
            costs[capacity] = (sum(row[1] for row in rows), sum(row[2] for row in rows), round(kib, 1))
        caches[name] = _Curve(size, sum(one["of_rule"].get(name, [0])[0] for one in found), costs)
    return caches


def held_out(found: Mapping[str, Data], sizes: Mapping[str, int]) -> dict[str, list[float]]:
    """Each recording by the rule and by capacities that were chosen, in the rule's memory, on the half of the recordings that it is not
    in: its operations; slow operations, locks and KiB of the rule; the same of the capacities. The halves: every other one by name."""
    names = sorted(found)
    rule = {name: by_rule(name, size) for name, size in sizes.items()}
    judged = {}
    for first in (0, 1):
        others = _measured([found[name] for name in names[1 - first :: 2]], sizes)
        chosen = choose(others, total(others, rule, 2))
        for name in names[first::2]:
            own = _measured([found[name]], sizes)
            figures = [round(total(own, by, measure), 1) for by in (rule, chosen) for measure in range(3)]
            judged[name] = [float(sum(one.ops for one in own.values())), *figures]
    return judged


def measure(work: Work) -> Data:
    """The curves of all caches over all recordings, and how capacities do on recordings that they were not chosen on."""
    found = each(work, _by_capacity)
    names = sorted(
        {name for one in found.values() for name, row in one["of_rule"].items() if row[0] and row[4] and SHEAVES.get(name) != NO_SHEAVES}
    )
    sizes = {name: max(one["of_rule"][name][4] for one in found.values() if name in one["of_rule"]) for name in names}
    caches = {name: [of.size, of.ops, list(map(list, of.costs.values()))] for name, of in _measured(list(found.values()), sizes).items()}
    slow = {name: sum(one["of_rule"].get(name, [0, 0])[1] for one in found.values()) for name in names}
    judged = held_out(found, sizes) if len(found) > 1 else {}
    return {"caches": caches, "rule_slow": slow, "recordings": len(found), "held_out": judged}


def _curves(data: Data) -> dict[str, _Curve]:
    return {
        name: _Curve(size, ops, dict(zip(_OF_CACHES, map(tuple, curve), strict=True)))
        for name, (size, ops, curve) in data["caches"].items()
    }


def choose(caches: Mapping[str, _Curve], budget: float, measure: int = 0) -> dict[str, int]:
    """A capacity for each cache: the least of a measure (0: slow operations, 1: locks) in so many KiB, by a price of a KiB for all."""
    best: tuple[float, dict[str, int]] = (math.inf, {})
    for price in (0.0, *np.logspace(-3, 6, 200)):
        chosen = {}
        for name, of in caches.items():
            prices = {capacity: (cost[measure] + price * cost[2], capacity) for capacity, cost in of.costs.items()}
            chosen[name] = min(prices, key=prices.__getitem__)
        if total(caches, chosen, 2) <= budget:
            best = min(best, (total(caches, chosen, measure), chosen), key=lambda one: one[0])
    return best[1]


def total(caches: Mapping[str, _Curve], chosen: Mapping[str, int], measure: int) -> float:
    """Slow operations (0), locks (1) or KiB (2) of these capacities."""
    return float(sum(caches[name].costs[capacity][measure] for name, capacity in chosen.items()))


@dataclass(frozen=True)
class _Apart:
    """What `held_out` gives: its table, and how far slow operations, locks and KiB are from the rule's, %, with intervals."""

    sheet: Sheet
    changes: list[tuple[float, float, float]]


def _judged_apart(judged: Mapping[str, Sequence[float]]) -> _Apart:
    def mean(place: int, scale: float = 0) -> float:
        return round(statistics.fmean(one[place] * (scale / one[0] if scale else 1) for one in judged.values()), 2)

    changes = [interval([100 * (one[4 + place] / max(1, one[1 + place]) - 1) for one in judged.values()]) for place in range(3)]
    named = zip(("slow operations per 1,000", "locks per 1,000", "memory, KiB"), (PER, PER, 0), changes, strict=True)
    rows = [(name, [mean(1 + place, scale), mean(4 + place, scale), f"{between(change)}%"])
            for place, (name, scale, change) in enumerate(named)]  # fmt: skip
    columns = ["", "the kernel's rule", "chosen on the other half", f"difference ({CONFIDENCE}% interval)"]
    note = "The halves are every other recording by name. The difference is the mean of each recording's."
    return _Apart(grid(f"Capacities on recordings that they were not chosen on: means over {len(judged)}", columns, rows, [note]), changes)


def judge(data: Data) -> Outcome:
    caches = _curves(data)
    rule = {name: by_rule(name, of.size) for name, of in caches.items()}
    ruled = [total(caches, rule, place) for place in range(3)]
    ops = sum(of.ops for of in caches.values())

    def row(name: str, chosen: Mapping[str, int]) -> tuple[str, list[Any]]:
        slow, locks, kib = (total(caches, chosen, place) for place in range(3))
        return name, [round(100 * (kib / ruled[2] - 1), 2), round(PER * slow / ops, 2), round(PER * locks / ops, 2)]

    shares = (-4, -2, -1, 0, 1, 2, 4)
    ours = {share: found for share in shares if (found := choose(caches, ruled[2] * (1 + share / 100)))}
    rows = [row("the kernel's rule", rule), *(row(f"per cache, {share:+d}% of memory at most", found) for share, found in ours.items())]
    chosen = ours[0]
    slow, locks = (total(caches, chosen, place) for place in (0, 1))
    saved = {name: of.costs[rule[name]][0] - of.costs[chosen[name]][0] for name, of in caches.items()}
    most = []
    for name in sorted(saved, key=lambda one: saved[one], reverse=True)[:15]:
        of, before, after = caches[name], caches[name].costs[rule[name]], caches[name].costs[chosen[name]]
        most.append((name, [of.size, of.ops, rule[name], chosen[name], before[0], after[0], round(after[2] - before[2])]))
    larger, smaller = (sum(sign * (chosen[name] - rule[name]) > 0 for name in caches) for sign in (1, -1))
    added, alone = ([sum(of[name] for name in caches if bool(_KMALLOC.fullmatch(name)) == class_of) for class_of in (False, True)]
                    for of in ({name: of.costs[rule[name]][0] for name, of in caches.items()}, data["rule_slow"]))  # fmt: skip
    check = (
        f"at the rule's capacities, each from the replays in which all caches have that capacity, they add up to {added[0]:,.0f} slow "
        f"operations, and the replays of the rule itself have {alone[0]:,}; kmalloc's classes to {added[1]:,.0f} and {alone[1]:,}. Sheaves "
        "are of these classes, so what is free there at the start differs, and a loop whose swing is as large as a sheaf crosses its edge "
        "each time or never"
    )
    sheets = [
        grid(f"A capacity for each cache, the same in all {data['recordings']} recordings",
              ["capacities", "memory, %", "slow per 1,000", "locks per 1,000"], rows, [f"Memory of the rule: {ruled[2]:,.0f} KiB."]),
        grid("The caches that gain most, in the memory of the rule",
              ["cache", "bytes", "operations", "rule", "chosen", "slow, rule", "slow, chosen", "memory, KiB"], most),
    ]  # fmt: skip
    told = f"{PER * slow / ops:.2f} per 1,000 operations in place of {PER * ruled[0] / ops:.2f}"
    changes = f"{larger} of {len(caches)} caches would have larger sheaves, {smaller} smaller ones"
    of_halves, outside = [], ""
    if judged := data["held_out"]:
        apart = _judged_apart(judged)
        sheets.insert(1, apart.sheet)
        fewer, locked, memory = apart.changes
        of_halves = [
            Claim("They do so on recordings that they were not chosen on", fewer[0] <= -50 and memory[0] <= 0,
                  f"slow operations {between(fewer)}%, locks {between(locked)}%, memory {between(memory)}%"),
        ]  # fmt: skip
        outside = (
            f"{'Yes' if fewer[2] < 0 else 'No gain is proved'}: on recordings that they were not chosen on, slow operations change by "
            f"{between(fewer, 0)}%, locks by {between(locked, 0)}%, memory by {between(memory)}%. "
        )
    claims = [
        Claim("Capacities chosen per cache halve the slow operations of the rule in no more memory", slow <= ruled[0] / 2,
              f"{told}; {changes}"),
        Claim("Capacities chosen per cache halve the locks of the rule in no more memory", locks <= ruled[1] / 2,
              f"{PER * locks / ops:.2f} per 1,000 operations in place of {PER * ruled[1] / ops:.2f}"),
        *of_halves,
        Claim("Outside kmalloc, a cache's figures depend on its own capacity alone, so that they may be added up",
              abs(added[0] - alone[0]) <= 0.01 * alone[0], check),
    ]  # fmt: skip
    gained = f"{PER * slow / ops:.1f} of 1,000 operations leave the fast path in place of {PER * ruled[0] / ops:.1f}, in the rule's memory"
    notes = [f"**A capacity for each cache?** {outside}On the recordings that they were chosen on {gained}."]
    stands = (
        f"The first table's capacities are chosen on the recordings that they are judged by, so that is the most that can be gained; the "
        f"second one's are not. A cache's memory is that of its slabs at the peak, and a main and a spare sheaf for each CPU; sheaves in "
        f"barns are not in it. {LEFT_OUT}"
    )
    return Outcome(sheets, claims, [], stands, notes)
