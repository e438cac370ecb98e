"""Section 5.1, first table: what an allocation and its free cost under his four allocators.

The paper does not tell how. A lone pair, again and again, is the easiest. But it empties its slab, or joins its block with its buddy up to
a whole page, at each free, and so measures what an allocator does with memory that it no longer needs. A kernel has thousands of buffers
in use. So the pair is also measured beside others that stay, from one to hundreds; and in rounds of many allocations and then of their
frees, which fill memory and drain it.

Instructions are counted (pairs.py), and the pairs timed beside. The paper's unit is the microsecond of a SPARCstation-2, so costs are
compared with each other as ratios to those of kmem_cache_alloc.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from ..base.table import show
from ..replay import cost
from ..results import records
from . import pairs
from .charts import Line, lines
from .model import VALGRIND, Claim, Data, Figure, Item, Outcome, Picture, Sheet, repeated
from .work import Work

# Section 5.1: name, allocator, words, microseconds.
PAPERS = (
    ("slab, kmem_cache_alloc", "bonwick", (), 3.8),
    ("4.4BSD, kmem_alloc", "bsd44", ("--kmem",), 4.1),
    ("slab, kmem_alloc", "bonwick", ("--kmem",), 4.7),
    ("SVr4, kmem_alloc", "svr4", ("--kmem",), 9.4),
    ("SunOS 4.1.3, kmem_alloc", "sunos4", ("--kmem",), 25.0),
)
Row = tuple[str, str, tuple[str, ...], float | None]
OTHERS: tuple[Row, ...] = tuple(
    (f"{name}, {call}", spec, words, None)
    for name, spec in (("slabyard's slab", "slab"), ("slabyard's slub", "slub"), ("yard", "yard"))
    for call, words in (("kmem_cache_alloc", ()), ("kmalloc", ("--kmem",)))
)
CACHE, BSD, KMEM, SVR4, SUNOS = (name for name, *_ in PAPERS)
BOUND = 2.0  # microseconds: two pairs of mutex_enter and mutex_exit
ROUNDED = 0.05  # microseconds by which a figure may differ from what was measured

SIZES = (40, 100, 300)  # bytes; of small buffers, none of them a power of two
LIVE = 1000
ORDERS = ("in", "reverse", "shuffled")
BESIDE = (0, 1, 2, 4, 8, 16, 32, 64, 128, 256)
SOME = 64  # of these
BESIDE_BYTES = 100


def measure(work: Work) -> Data:
    rows = [*PAPERS, *(OTHERS if not work.quick else OTHERS[-2:])]
    found: dict[str, Any] = {}
    for name, spec, words, paper in rows:
        orders = ORDERS if paper and not work.quick else ("shuffled",)
        sizes = SIZES if not work.quick else SIZES[1:2]
        found[name] = {
            "lone": {str(size): _counted(work, name, spec, "lone", 1, ("--bytes", str(size), *words)) for size in sizes},
            "filled": {
                order: {
                    str(size): _counted(work, name, spec, f"filled, {order}", LIVE, _filling(size, order, words)) for size in sizes
                }
                for order in orders
            },
        }  # fmt: skip
    return {"rows": found, "beside": _beside(work, rows), "timed": work.once("times", lambda: _timed(work, rows))}


def _filling(size: int, order: str, words: tuple[str, ...]) -> tuple[str, ...]:
    return ("--bytes", str(size), "--order", order, *words)


def _counted(work: Work, name: str, spec: str, what: str, live: int, words: tuple[str, ...]) -> dict[str, Any]:
    found: dict[str, Any] = work.once(f"{name}, {what}, {words[1]} bytes", lambda: pairs.counted(spec, live, *words))
    return {"memory": found["memory"], **found["parts"]}


def _beside(work: Work, rows: Sequence[Row]) -> dict[str, dict[str, float]]:
    """A pair beside others that stay; of what the paper does not have beside some alone."""
    found: dict[str, dict[str, float]] = {name: {} for name, *_ in rows}
    for stay in BESIDE if not work.quick else (0, SOME):
        for name, spec, words, _ in rows if stay == SOME else PAPERS:
            words = ("--bytes", str(BESIDE_BYTES), "--beside", str(stay), *words)
            found[name][str(stay)] = _counted(work, name, spec, f"beside {stay}", 1, words)["memory"]
    return found


def _timed(work: Work, rows: Sequence[Row]) -> dict[str, Any]:
    """Of a pair beside others."""
    specs = {name: (spec, ("--bytes", str(BESIDE_BYTES), "--beside", str(SOME), *words)) for name, spec, words, _ in rows}

    def run(name: str, _turn: int) -> dict[str, float]:
        spec, words = specs[name]
        return pairs.timed(spec, 1, words)

    samples = records.interleaved(specs, work.repetitions, 0, "times", work.progress, run)
    return {
        "ns": {name: [sample["ns"] for sample in kept] for name, kept in samples.items()},
        "lock_pair": [sample["lock_pair"] for kept in samples.values() for sample in kept],
    }


# ---- What comes of it ----------------------------------------------------------------------------------------------


def mean(by_size: dict[str, dict[str, float]], what: str = "memory") -> float:
    return sum(one[what] for one in by_size.values()) / len(by_size)


def judge(data: Data) -> Outcome:
    rows = data["rows"]
    beside = {name: figures[str(SOME)] for name, figures in data["beside"].items()}
    filled = {name: mean(row["filled"]["shuffled"]) for name, row in rows.items()}
    lone = {name: mean(row["lone"]) for name, row in rows.items()}
    papers = {name: paper for name, _, _, paper in PAPERS}
    locks = mean(rows[CACHE]["filled"]["shuffled"], "locks")
    times = data["timed"]
    lock_pair = sum(times["lock_pair"]) / len(times["lock_pair"])
    ns = {name: sum(samples) / len(samples) for name, samples in times["ns"].items()}
    ratio = f"ratio to {CACHE}"
    sheets = [
        Sheet(f"A pair beside {SOME} others that stay, instructions counted", ratio, _ratios(beside, papers),
              notes=[f"{CACHE} takes {show(beside[CACHE])} instructions. Buffers of {BESIDE_BYTES} bytes.",
                     f"The paper's ratios are of its {', '.join(f'{paper:.1f}' for *_, paper in PAPERS)} us."]),
        Sheet(f"Filling and draining {LIVE:,} buffers, instructions counted", ratio, _ratios(filled, papers),
              notes=[f"{CACHE} takes {show(filled[CACHE])} instructions, {show(locks)} of them for two pairs of locks."]),
        Sheet("A lone pair again and again, instructions counted", ratio, _ratios(lone, papers),
              notes=[f"{CACHE} takes {show(lone[CACHE])} instructions."]),
        Sheet(f"A pair beside {SOME} others that stay, time", ratio, [
            (name, repeated(_of_paper(papers, name), [one / ns[CACHE] for one in samples]))
            for name, samples in times["ns"].items()
        ]),
        Sheet("Time over the lower bound of two pairs of locks", "times the bound", [
            (name, Figure(_of_paper(papers, name, BOUND), each / (2 * lock_pair))) for name, each in ns.items()
        ], notes=[f"{CACHE} takes {show(ns[CACHE])} ns, a pair of taking and releasing a lock {show(lock_pair)} ns."]),
    ]  # fmt: skip
    claims = [
        _ordered(f"a pair beside {SOME} others that stay", beside, "instructions"),
        _ordered("filling and draining", filled, "instructions"),
        _ordered("a lone pair", lone, "instructions", _why_lone(data, lone)),
        _ordered(f"a pair beside {SOME} others that stay, by time", ns, "ns", overlap=_overlapping(times["ns"])),
        _ways(beside, filled, lone),
        _bound(ns, lock_pair, locks / filled[CACHE]),
        _interface(beside),
        _close(ns, beside),
        _predictable(data, beside, filled, lone),
        _sequential(data),
    ]
    pictures = [] if len(data["beside"][CACHE]) < len(BESIDE) else [_picture(data["beside"])]
    sizes = ", ".join(rows[CACHE]["lone"])
    stands_for = (
        f"Buffers of {sizes} bytes, as the paper tells neither of what size his were nor how many; figures are means over sizes. "
        "Instructions are those of our allocators on this processor. An uncontended lock takes few instructions but much time."
    )
    return Outcome(sheets, claims, pictures, stands_for)


def _ratios(costs: dict[str, float], papers: dict[str, float]) -> list[tuple[str, Figure]]:
    return [(name, Figure(_of_paper(papers, name), each / costs[CACHE])) for name, each in costs.items()]


def _of_paper(papers: dict[str, float], name: str, to: float = PAPERS[0][3]) -> str | None:
    """The paper's ratio, made of its figures."""
    return f"{papers[name] / to:.2f}" if name in papers else None


def _overlapping(samples: dict[str, list[float]]) -> list[str]:
    """Neighbours of the paper's order whose repetitions' windows overlap."""
    names = [name for name, *_ in PAPERS]
    return [f"{one} and {other}" for one, other in itertools.pairwise(names) if max(samples[one]) >= min(samples[other]) and
            max(samples[other]) >= min(samples[one])]  # fmt: skip


def _ordered(how: str, costs: dict[str, float], unit: str, why: str = "", overlap: Sequence[str] = ()) -> Claim:
    """`overlap`: whom repetitions do not tell apart; of these the order cannot be told, so it must be that of the others."""
    wanted = [name for name, *_ in PAPERS]
    ours = sorted(wanted, key=lambda name: costs[name])
    told = ", ".join(f"{name} {show(costs[name])}" for name in ours)
    text = f"From cheap to dear: {', '.join(wanted)} ({how})"
    if overlap:
        why = f"windows overlap of {', '.join(overlap)}"
    return Claim(text, None if overlap else ours == wanted, f"{unit}: {told}{f'. {why}' if why else ''}")


def _why_lone(data: Data, lone: dict[str, float]) -> str:
    """What of SVr4's lone pair is the page allocator's, and how many buffers beside it make it small."""
    beside = data["beside"][SVR4]
    pages, slow = (mean(data["rows"][SVR4]["lone"], part) for part in ("pages", "slow"))
    small = [stay for stay, figure in beside.items() if figure <= beside["0"] / 2]
    turns = "others beside it do not help"
    if small:
        turns = f"with {small[0]} beside it, it takes {show(beside[small[0]])} in place of {show(beside['0'])}"
    return (
        f"A lone pair of SVr4 splits a page and joins it again each time: {show(slow)} instructions of its {show(lone[SVR4])}, and "
        f"{show(pages)} of the page allocator; {turns}"
    )


def _ways(beside: dict[str, float], filled: dict[str, float], lone: dict[str, float]) -> Claim:
    """How far SVr4 and SunOS 4.1.3 are from the rest depends on what is measured."""
    papers = {name: paper / PAPERS[0][3] for name, _, _, paper in PAPERS if paper and PAPERS[0][3]}
    ways = {f"beside {SOME}": beside, "filling and draining": filled, "a lone pair": lone}
    ours = {way: {name: costs[name] / costs[CACHE] for name in papers} for way, costs in ways.items()}
    close = [way for way, ratios in ours.items() if all(2 / 3 <= ratios[name] / papers[name] <= 3 / 2 for name in papers)]
    told = [f"{way}: SVr4 {show(ratios[SVR4])}, SunOS 4.1.3 {show(ratios[SUNOS])}" for way, ratios in ours.items()]
    text = (
        f"SVr4 takes {show(papers[SVR4])} times as long as {CACHE}, SunOS 4.1.3 {show(papers[SUNOS])} times (in one of three ways of "
        "measuring, all ratios are within two thirds to one and a half times his)"
    )
    found = f"it is: {', '.join(close)}" if close else "in none of them"
    return Claim(text, bool(close), f"{found}. {'; '.join(told)}")


def _bound(ns: dict[str, float], lock_pair: float, locks: float) -> Claim:
    over = {name: ns[name] / (2 * lock_pair) for name in (CACHE, BSD, KMEM)}
    most = (4.7 + ROUNDED) / (BOUND - 2 * ROUNDED)
    text = (
        "slab and 4.4BSD are very close to the lower bound of two pairs of locks "
        f"(limit {show(most)} times its time: his largest ratio, allowing for rounding)"
    )
    told = ", ".join(f"{name} {show(times)} times" for name, times in over.items())
    why = (
        f"{told}. Two pairs of locks are {100 * locks:.0f}% of the instructions of {CACHE}, and {100 * 2 * lock_pair / ns[CACHE]:.0f}% of "
        f"its time; in the paper they are {100 * BOUND / PAPERS[0][3]:.0f}% of it"
    )
    return Claim(text, max(over.values()) <= most, why)


def _interface(costs: dict[str, float]) -> Claim:
    text = "kmem_cache_alloc is faster than kmem_alloc, as it need not find the cache"
    return Claim(text, costs[CACHE] < costs[KMEM], f"{show(costs[KMEM] - costs[CACHE])} instructions of {show(costs[KMEM])}")


def _close(ns: dict[str, float], counts: dict[str, float]) -> Claim:
    """By time, as the paper has it."""
    by_time, counted = (max(three) / min(three) for three in ([costs[name] for name in (CACHE, BSD, KMEM)] for costs in (ns, counts)))
    most = (4.7 + ROUNDED) / (3.8 - ROUNDED)
    text = (
        "The differences in speed between slab and 4.4BSD are small "
        f"(dearest to cheapest by time; limit {show(most)}: his largest ratio, allowing for rounding)"
    )
    return Claim(text, by_time <= most, f"{show(by_time)}; as printed in the paper {show(4.7 / 3.8)}; by instructions {show(counted)}")


STEADY, USES = 1.25, 2.0  # the dearest to the cheapest, at most: of sizes and orders, and of ways to use an allocator


def _predictable(data: Data, *ways: dict[str, float]) -> Claim:
    spread = _spread(data["rows"][SVR4])
    costs = [costs[SVR4] for costs in ways]
    text = (
        f"SVr4's speed is predictable (dearest to cheapest at most {STEADY:g} over sizes and orders of filling and draining, and at most "
        f"{USES:g} over the three ways of measuring)"
    )
    told = (
        f"{show(spread)} over sizes and orders; {show(max(costs) / min(costs))} over ways of measuring: {show(costs[0])} instructions "
        f"beside {SOME}, {show(costs[1])} filling and draining, {show(costs[2])} alone"
    )
    return Claim(text, spread <= STEADY and max(costs) / min(costs) <= USES, told)


def _sequential(data: Data) -> Claim:
    names = [name for name, *_ in PAPERS]
    spreads = {name: _spread(data["rows"][name]) for name in names}
    text = "SunOS 4.1.3 is comparatively slow and quite variable (the widest range of costs over sizes and orders, filling and draining)"
    told = "dearest to cheapest: " + ", ".join(f"{name} {show(one)}" for name, one in spreads.items())
    return Claim(text, max(names, key=lambda name: spreads[name]) == SUNOS, told)


def _spread(row: dict[str, Any]) -> float:
    """The dearest pair to the cheapest, filling and draining, over sizes and orders."""
    each = [one["memory"] for by_size in row["filled"].values() for one in by_size.values()]
    return float(max(each) / min(each))


def _picture(beside: dict[str, dict[str, float]]) -> Picture:
    series = [Line(name, [(place, beside[name][str(stay)]) for place, stay in enumerate(BESIDE)]) for name, *_ in PAPERS]
    drawn = lines(series, "buffers that stay beside the pair", "instructions of a pair", logarithmic=True, places=[*map(str, BESIDE)])
    return Picture("A pair beside others that stay in use", drawn)


SPEED = Item(
    "bonwick", "speed", "Memory allocation and free costs", "section 5.1, first table", measure, judge, cost.check, tools=(VALGRIND,)
)
