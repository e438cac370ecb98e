"""Section 5.1, first table: what an allocation and its free cost under his four allocators.

A pair of an allocation and a free can be measured in two ways. A lone pair, again and again, is the easier. But it empties its slab, or
joins its block with its buddy, at each free, and so measures what an allocator does with memory that it no longer needs. A kernel has
thousands of buffers in use. Filling and draining, a round of many allocations and then of their frees, measures what the table is about.
Both are here, and between them a pair beside others that stay in use, from one to hundreds: these show where the one turns into the other.

Instructions are counted (pairs.py), and the pairs timed beside. The paper's unit is the microsecond of a SPARCstation-2, so costs are
held against each other as ratios to those of kmem_cache_alloc.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..base.table import show
from ..replay import cost
from ..results import records
from . import pairs
from .charts import Line, lines
from .model import Claim, Data, Figure, Item, Outcome, Picture, Sheet, repeated
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
    for name, spec in (("Linux's SLAB", "slab"), ("Linux's SLUB", "slub"), ("yard", "yard"))
    for call, words in (("kmem_cache_alloc", ()), ("kmalloc", ("--kmem",)))
)
CACHE, BSD, KMEM, SVR4, SUNOS = (name for name, *_ in PAPERS)
BOUND = 2.0  # microseconds: two pairs of mutex_enter and mutex_exit

SIZES = (40, 100, 300)  # bytes; of small buffers, none of them a power of two
LIVE = 1000
ORDERS = ("in", "reverse", "shuffled")
BESIDE = (0, 1, 2, 4, 8, 16, 32, 64, 128, 256)
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
    return {"rows": found, "beside": _beside(work), "timed": work.once("times", lambda: _timed(work, rows))}


def _filling(size: int, order: str, words: tuple[str, ...]) -> tuple[str, ...]:
    return ("--bytes", str(size), "--order", order, *words)


def _counted(work: Work, name: str, spec: str, what: str, live: int, words: tuple[str, ...]) -> dict[str, Any]:
    found: dict[str, Any] = work.once(f"{name}, {what}, {words[1]} bytes", lambda: pairs.counted(spec, live, *words))
    return {"memory": found["memory"], **found["parts"]}


def _beside(work: Work) -> dict[str, dict[str, float]]:
    """A pair beside others that stay."""
    found: dict[str, dict[str, float]] = {name: {} for name, *_ in PAPERS}
    for stay in BESIDE if not work.quick else BESIDE[:2]:
        for name, spec, words, _ in PAPERS:
            words = ("--bytes", str(BESIDE_BYTES), "--beside", str(stay), *words)
            found[name][str(stay)] = _counted(work, name, spec, f"beside {stay}", 1, words)["memory"]
    return found


def _timed(work: Work, rows: Sequence[Row]) -> dict[str, Any]:
    specs = {name: (spec, _filling(BESIDE_BYTES, "shuffled", words)) for name, spec, words, _ in rows}

    def run(name: str, _turn: int) -> dict[str, float]:
        spec, words = specs[name]
        return pairs.timed(spec, LIVE, words)

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
    filled = {name: mean(row["filled"]["shuffled"]) for name, row in rows.items()}
    lone = {name: mean(row["lone"]) for name, row in rows.items()}
    papers = {name: paper for name, _, _, paper in PAPERS}
    locks = mean(rows[CACHE]["filled"]["shuffled"], "locks")
    times = data["timed"]
    lock_pair = sum(times["lock_pair"]) / len(times["lock_pair"])
    ns = {name: sum(samples) / len(samples) for name, samples in times["ns"].items()}
    ratio = f"ratio to {CACHE}"
    sheets = [
        Sheet(f"Filling and draining {LIVE:,} buffers, instructions counted", ratio, _ratios(filled, papers),
              notes=[f"{CACHE} takes {show(filled[CACHE])} instructions, {show(locks)} of them for two pairs of locks."]),
        Sheet("A lone pair again and again, instructions counted", ratio, _ratios(lone, papers),
              notes=[f"{CACHE} takes {show(lone[CACHE])} instructions."]),
        Sheet(f"Filling and draining {LIVE:,} buffers, time", ratio, [
            (name, repeated(papers[name] / papers[CACHE] if name in papers else None, [one / ns[CACHE] for one in samples]))
            for name, samples in times["ns"].items()
        ]),
        Sheet("Time over the lower bound of two pairs of locks", "times the bound", [
            (name, Figure(papers[name] / BOUND if name in papers else None, each / (2 * lock_pair))) for name, each in ns.items()
        ], notes=[f"{CACHE} takes {show(ns[CACHE])} ns, a pair of taking and releasing a lock {show(lock_pair)} ns."]),
    ]  # fmt: skip
    claims = [
        _ordered("filling and draining", filled, ""),
        _ordered("a lone pair", lone, _why_lone(data, lone, filled)),
        _bound(ns, lock_pair, locks / filled[CACHE]),
        _interface(filled),
        _close(filled),
        _sequential(data),
    ]
    pictures = [] if len(data["beside"][CACHE]) < 3 else [_picture(data["beside"])]
    sizes = ", ".join(rows[CACHE]["lone"])
    stands_for = (
        f"Buffers of {sizes} bytes, as the paper does not tell of what size his were; the figures are means over the sizes. Instructions "
        "are those of our allocators on this processor, and a lock that nobody else wants takes few of them, but much of their time."
    )
    return Outcome(sheets, claims, pictures, stands_for)


def _ratios(costs: dict[str, float], papers: dict[str, float]) -> list[tuple[str, Figure]]:
    return [(name, Figure(papers[name] / papers[CACHE] if name in papers else None, each / costs[CACHE])) for name, each in costs.items()]


def _ordered(how: str, costs: dict[str, float], why: str) -> Claim:
    wanted = [name for name, *_ in PAPERS]
    ours = sorted(wanted, key=lambda name: costs[name])
    told = ", ".join(f"{name} {show(costs[name])}" for name in ours)
    text = f"From cheap to dear: {', '.join(wanted)} ({how})"
    return Claim(text, ours == wanted, f"instructions: {told}{f'. {why}' if why else ''}")


def _why_lone(data: Data, lone: dict[str, float], filled: dict[str, float]) -> str:
    """Which part of SVr4's pair grows when it is alone, and how many buffers beside it make it small again."""
    row, beside = data["rows"][SVR4], data["beside"][SVR4]
    parts = {part: (mean(row["lone"], part), mean(row["filled"]["shuffled"], part)) for part in cost.PARTS}
    most = max(parts, key=lambda part: parts[part][0] - parts[part][1])
    small = [stay for stay, figure in beside.items() if figure <= (beside["0"] + filled[SVR4]) / 2]
    turns = "others beside it do not help"
    if small:
        turns = f"with {small[0]} beside it, it takes {show(beside[small[0]])} in place of {show(beside['0'])}"
    return (
        f"A lone pair of SVr4 takes {show(lone[SVR4] / lone[CACHE])} times that of {CACHE} (filled: {show(filled[SVR4] / filled[CACHE])}): "
        f"what grows most is its part {most!r}, {show(parts[most][0])} instructions for {show(parts[most][1])}; {turns}"
    )


def _bound(ns: dict[str, float], lock_pair: float, locks: float) -> Claim:
    over = {name: ns[name] / (2 * lock_pair) for name in (CACHE, BSD, KMEM)}
    most = 4.7 / BOUND
    text = f"slab and 4.4BSD are very close to the lower bound of two pairs of locks (at most {show(most)} times its time, as in the paper)"
    told = ", ".join(f"{name} {show(times)} times" for name, times in over.items())
    why = (
        f"{told}. Two pairs of locks are {100 * locks:.0f}% of the instructions of {CACHE}, and {100 * 2 * lock_pair / ns[CACHE]:.0f}% of "
        f"its time; in the paper they are {100 * BOUND / PAPERS[0][3]:.0f}% of it"
    )
    return Claim(text, max(over.values()) <= most, why)


def _interface(costs: dict[str, float]) -> Claim:
    text = "kmem_cache_alloc is faster than kmem_alloc, as it need not find the cache"
    return Claim(text, costs[CACHE] < costs[KMEM], f"{show(costs[KMEM] - costs[CACHE])} instructions of {show(costs[KMEM])}")


def _close(costs: dict[str, float]) -> Claim:
    three = [costs[name] for name in (CACHE, BSD, KMEM)]
    most = 4.7 / 3.8
    text = f"The differences between slab and 4.4BSD are small (dearest to cheapest at most {show(most)}, as in the paper)"
    ours = max(three) / min(three)
    return Claim(text, ours <= most, f"{show(ours)}, in the paper {show(most)}")


def _sequential(data: Data) -> Claim:
    spreads = {}
    for name, *_ in PAPERS:
        row = data["rows"][name]
        each = [one["memory"] for by_size in (row["lone"], *row["filled"].values()) for one in by_size.values()]
        spreads[name] = max(each) / min(each)
    text = "SunOS 4.1.3 is comparatively slow and quite variable (the widest range of costs over all sizes, orders and the lone pair)"
    widest = max(spreads, key=lambda name: spreads[name])
    return Claim(text, widest == SUNOS, ", ".join(f"{name} {show(one)} times" for name, one in spreads.items()))


def _picture(beside: dict[str, dict[str, float]]) -> Picture:
    series = [Line(name, [(place, figures[str(stay)]) for place, stay in enumerate(BESIDE)]) for name, figures in beside.items()]
    ticks = ", ".join(str(stay) for stay in BESIDE)
    drawn = lines(series, f"buffers that stay in use beside the pair: {ticks}", "instructions of a pair", from_zero=True)
    return Picture("A pair beside others that stay in use", drawn)


SPEED = Item("bonwick", "speed", "Memory allocation and free costs", "section 5.1, first table", measure, judge, cost.check)
