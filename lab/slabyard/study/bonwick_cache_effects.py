"""Sections 4.1 to 4.3: what the addresses that an allocator hands out do to a cache and to two buses.

Inodes of 300 bytes, of which the first 48 are hot, are allocated as the paper has them, and the replay program tells where each lies
(replay/layout.c). From there on it is arithmetic: a direct-mapped cache of 64 KiB with lines of 16 bytes, empty at first, and two buses
that take turns every 256 bytes. A touch of an inode reads its hot bytes; which one is next is random, and the same under every allocator.

The paper's two figures for a whole machine (LADDIS) are of inodes among much else. So a second run mixes touches of inodes with reads
that are spread evenly over memory. How many of the one and of the other LADDIS had is not told. But its imbalance under the old
allocator is: 43%. The mix at which ours is 43% under the old allocator is taken, and what the slab allocator makes of the same mix is
compared with the paper's other two figures.
"""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..replay import layout
from .charts import Line, lines
from .model import Claim, Data, Figure, Item, Outcome, Picture, Sheet
from .work import Work

INODE, HOT = 300, 48  # bytes, section 4.1
INTERLEAVE = 256  # bytes, section 4.2
CACHE, CACHE_LINE = 64 << 10, 16  # bytes
SETS = CACHE // CACHE_LINE
INODES = 1000
MIXED = (300, INODES, 3000)  # inodes among other reads
COUNTS = (50, 100, 200, 400, 700, 1000, 1500, 2000, 3000, 4000)
TOUCHES, QUICK_TOUCHES = 200_000, 40_000
SHARES = tuple(place / 20 for place in range(1, 21))  # of touches that are of inodes
ELSEWHERE = 16 << 20  # bytes over which the other reads are spread

SLAB, UNCOLOURED, OLD = "bonwick", "bonwick:colour=off", "svr4"
ALLOCATORS = (SLAB, UNCOLOURED, "sunos4", "bsd44", OLD, "slab", "slub", "slob", "slqb", "yard")
POWERS_OF_TWO = ("bsd44", OLD)
DRAWN = (SLAB, UNCOLOURED, OLD, "slqb")

USED = 9  # section 4.1: percent of the cache, by a power-of-two allocator: 48 of 512 bytes
IMBALANCE_OLD, IMBALANCE_SLAB, MISSES_FEWER = 0.43, 0.17, 0.13  # section 4.2


def addresses(allocator: str, count: int) -> list[int]:
    """Where so many inodes lie, in the order of their allocation."""
    with tempfile.TemporaryDirectory(prefix="slabyard-") as folder:
        script = Path(folder) / "inodes"
        script.write_text(f"cache inode {INODE} nomerge\nalloc i1..i{count} inode\n")
        found = layout.run(allocator, script)
    places = {
        thing["id"]: slab["page"] * found["page_bytes"] + part["offset"] + thing["offset"]
        for slab in found["snapshots"][-1]["slabs"] for part in slab["parts"] for thing in part["objects"]
    }  # fmt: skip
    return [places[f"i{number}"] for number in range(1, count + 1)]


# ---- The cache and the buses ---------------------------------------------------------------------------------------


def hot_lines(at: Sequence[int]) -> np.ndarray[Any, Any]:
    """The numbers of the lines that hold each inode's hot bytes; a row for each. Some rows name their last line twice."""
    first = np.asarray(at, np.int64) // CACHE_LINE
    last = (np.asarray(at, np.int64) + HOT - 1) // CACHE_LINE
    most = int((last - first).max()) + 1
    return np.minimum(first[:, None] + np.arange(most), last[:, None])


def used(at: Sequence[int]) -> float:
    """The share of the cache's lines that the hot bytes can be in."""
    return float(len(np.unique(hot_lines(at) % SETS)) / SETS)


def missed(read: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Which of these lines, read one after the other, the cache does not have."""
    order = np.argsort(read % SETS, kind="stable")
    by_set = read[order]
    misses = np.ones(len(read), bool)
    misses[order[1:]] = by_set[1:] != by_set[:-1]
    return misses


def imbalance(lines_read: np.ndarray[Any, Any]) -> float:
    """By how much of the two buses' traffic one has more than the other."""
    second = (lines_read * CACHE_LINE // INTERLEAVE % 2).sum()
    return float(abs(len(lines_read) - 2 * second) / len(lines_read))


def traffic(at: Sequence[int], touches: int, share: float = 1.0) -> dict[str, float]:
    """What comes of random touches, of which that share are of inodes: misses among the reads, and the imbalance of the misses."""
    random = np.random.default_rng(1994)
    rows = hot_lines(at)[random.integers(0, len(at), touches)]
    elsewhere = random.integers(0, ELSEWHERE // CACHE_LINE, touches)
    of_inodes = random.random(touches) < share
    # A read elsewhere is of one line, a touch of an inode of all of its; a line that is named twice is read once.
    fresh = np.diff(rows, axis=1, prepend=-1) != 0
    rows[~of_inodes, 0] = elsewhere[~of_inodes]
    fresh[~of_inodes, 1:] = False
    read = rows[fresh]
    misses = missed(read)
    return {"misses": round(float(misses.mean()), 5), "imbalance": round(imbalance(read[misses]), 5)}


# ---- The item ------------------------------------------------------------------------------------------------------


def measure(work: Work) -> Data:
    touches = QUICK_TOUCHES if work.quick else TOUCHES
    return {
        "touches": touches,
        "allocators": {one: work.once(one, lambda one=one: _of(one, touches)) for one in ALLOCATORS},  # type: ignore[misc]
    }


def _of(allocator: str, touches: int) -> dict[str, Any]:
    at = addresses(allocator, max(COUNTS))
    offsets = sorted({address % 4096 for address in at})
    mixed = MIXED if allocator in (OLD, SLAB) else ()
    return {
        "used": {str(count): round(used(at[:count]), 5) for count in COUNTS},
        "traffic": {str(count): traffic(at[:count], touches) for count in COUNTS},
        "mixed": {str(count): {f"{share:g}": traffic(at[:count], touches, share) for share in SHARES} for count in mixed},
        "offsets": len(offsets),
        "stride": min(abs(after - before) for before, after in itertools.pairwise(at)),
    }


def as_the_old(data: Data, count: int = INODES) -> tuple[float, dict[str, float], dict[str, float]] | None:
    """The share of touches of inodes at which the old allocator's imbalance is the paper's, between the two next to it; what it and the
    slab allocator make of that. None: it never is."""
    old, slab = (data["allocators"][one]["mixed"][str(count)] for one in (OLD, SLAB))
    for below, above in itertools.pairwise(SHARES):
        low, high = old[f"{below:g}"]["imbalance"], old[f"{above:g}"]["imbalance"]
        if low <= IMBALANCE_OLD <= high:
            part = (IMBALANCE_OLD - low) / (high - low)
            return below + part * (above - below), _between(old, below, above, part), _between(slab, below, above, part)
    return None


def _between(mixed: dict[str, dict[str, float]], below: float, above: float, part: float) -> dict[str, float]:
    low, high = mixed[f"{below:g}"], mixed[f"{above:g}"]
    return {name: low[name] + part * (high[name] - low[name]) for name in low}


def judge(data: Data) -> Outcome:
    found = data["allocators"]
    some, all_of_them = str(INODES), str(max(COUNTS))
    rows = [one for one in ALLOCATORS if one in found]
    use = [(one, Figure(USED if one in POWERS_OF_TWO else None, 100 * found[one]["used"][all_of_them])) for one in rows]
    misses = [(one, Figure(None, 100 * found[one]["traffic"][some]["misses"])) for one in rows]
    buses = [(one, Figure(None, 100 * found[one]["traffic"][some]["imbalance"])) for one in rows]
    sheets = [
        Sheet(f"Lines of the cache that hot bytes of {max(COUNTS):,} inodes use", "%", use),
        Sheet(f"Misses of touches of {INODES:,} inodes, of all reads", "%", misses),
        Sheet(f"Imbalance of the two buses, {INODES:,} inodes alone", "%", buses),
    ]
    claims = [_powers(found, all_of_them), _one_bus(found, some), _even(found, all_of_them), _colouring(found, some)]
    mixed = as_the_old(data)
    if mixed:
        share, old, slab = mixed
        fewer = _drop(old, slab)
        title = f"Inodes among other reads: {100 * share:.0f}% of touches, where the old allocator's imbalance is the paper's"
        sheets.append(Sheet(title, "%", [
            ("imbalance, old allocator", Figure(100 * IMBALANCE_OLD, 100 * old["imbalance"])),
            ("imbalance, slab allocator", Figure(100 * IMBALANCE_SLAB, 100 * slab["imbalance"])),
            ("fewer misses, slab for old", Figure(100 * MISSES_FEWER, 100 * fewer)),
        ]))  # fmt: skip
        claims += [_balanced(slab), _fewer(data, fewer)]
    pictures = [
        Picture("Misses of touches of inodes, by the number of inodes", _drawn(found, "traffic", "misses", "misses, % of reads")),
        Picture("Lines of the cache that hot bytes use, by the number of inodes", _drawn_use(found)),
    ]
    stands_for = (
        f"Addresses are those that our allocators hand out. The cache is simulated: direct-mapped, {CACHE >> 10} KiB, lines of "
        f"{CACHE_LINE} bytes; {data['touches']:,} touches. His two figures of a whole machine were measured on a SPARCcenter 2000 under "
        "LADDIS, with two levels of caches; the mix above stands for it, and leaves open what else that machine read, and in which order."
    )
    return Outcome(sheets, claims, pictures, stands_for)


def _powers(found: dict[str, Any], count: str) -> Claim:
    shares = {one: found[one]["used"][count] for one in POWERS_OF_TWO}
    text = "Under a power-of-two allocator only 9% (48 of 512 bytes) of the cache is usable by inodes (both of them: 8.5 to 10%)"
    return Claim(text, all(0.085 <= share < 0.1 for share in shares.values()), _told(shares))


def _one_bus(found: dict[str, Any], count: str) -> Claim:
    shares = {one: (1 + found[one]["traffic"][count]["imbalance"]) / 2 for one in POWERS_OF_TWO}
    text = "Almost all misses of inodes are then served by one of the two buses (both allocators: 95% at least)"
    return Claim(text, all(share >= 0.95 for share in shares.values()), _told(shares))


def _even(found: dict[str, Any], count: str) -> Claim:
    share, plain, apart = found[SLAB]["used"][count], found[UNCOLOURED]["used"][count], found[SLAB]["stride"]
    colours = found[SLAB]["offsets"] // max(1, found[UNCOLOURED]["offsets"])
    reach = (colours - 1) * 8 + HOT
    why = (
        f"{100 * share:.0f}% with colours, {100 * plain:.0f}% without. The spare room allows {colours} starts, 8 bytes apart, so hot "
        f"bytes can lie in {reach} of every {apart} bytes: {100 * min(1, reach / apart):.0f}%"
    )
    return Claim("Colouring distributes buffers evenly throughout the cache (9 of 10 lines at least are used)", share >= 0.9, why)


def _colouring(found: dict[str, Any], count: str) -> Claim:
    misses = {one: found[one]["traffic"][count]["misses"] for one in (SLAB, UNCOLOURED, *POWERS_OF_TWO)}
    text = "Colouring improves the use of the cache: fewer misses than without it, and than under powers of two"
    return Claim(text, misses[SLAB] < min(misses[one] for one in misses if one != SLAB), _told(misses))


def _balanced(slab: dict[str, float]) -> Claim:
    text = "Where the old allocator's imbalance of the buses is 43%, the slab allocator's is 17% (at most that)"
    return Claim(text, slab["imbalance"] <= IMBALANCE_SLAB, f"{100 * slab['imbalance']:.0f}%")


def _fewer(data: Data, fewer: float) -> Claim:
    old, slab = (data["allocators"][one]["mixed"][str(INODES)] for one in (OLD, SLAB))
    by_share = {share: _drop(old[share], slab[share]) for share in old}
    enough = [share for share, drop in by_share.items() if drop >= MISSES_FEWER]
    inodes_alone = f"{100 * by_share['1']:.0f}% if all do"
    reaches = f"it reaches 13% if {100 * float(enough[0]):.0f}% of touches go to inodes, {inodes_alone}" if enough else inodes_alone
    others = [
        f"with {count:,} inodes in place of {INODES:,} it is {100 * _drop(*mixed[1:]):.0f}%"
        for count in MIXED if count != INODES and (mixed := as_the_old(data, count))
    ]  # fmt: skip
    return Claim(
        "The miss rate falls by 13% there (at least that)", fewer >= MISSES_FEWER, "; ".join([f"{100 * fewer:.0f}%", reaches, *others])
    )


def _drop(old: dict[str, float], slab: dict[str, float]) -> float:
    return 1 - slab["misses"] / old["misses"]


def _told(shares: dict[str, float]) -> str:
    return ", ".join(f"{one} {100 * share:.1f}%" for one, share in shares.items())


def _drawn(found: dict[str, Any], what: str, measure_name: str, axis: str) -> str:
    series = [Line(one, [(count, 100 * found[one][what][str(count)][measure_name]) for count in COUNTS]) for one in DRAWN if one in found]
    return lines(series, "inodes", axis, from_zero=True)


def _drawn_use(found: dict[str, Any]) -> str:
    series = [Line(one, [(count, 100 * found[one]["used"][str(count)]) for count in COUNTS]) for one in DRAWN if one in found]
    return lines(series, "inodes", "lines used, %", from_zero=True)


CACHE_EFFECTS = Item(
    "bonwick", "cache", "Use of the cache, colouring, and balance of two buses", "sections 4.1 to 4.3", measure, judge, exact=True
)
