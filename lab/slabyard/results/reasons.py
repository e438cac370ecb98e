"""Why: what an allocator does otherwise than the one that a machine has, in memory by cache and in cost by part.

Each allocator of a workload is compared with one of them, the base: the one that the recorded kernel has (SLUB, where nothing
says otherwise), or the first, where that is not compared. A reason has the difference of growth, the caches that make it, and of the
largest of these what is different: objects in a slab, or how full slabs are. Then what an operation costs, counted where the records have
it (`cost`) and timed where they don't.

Caches are told by name. Allocators merge caches differently: one keeps `filp` and `pid` in common slabs, whose pages stand with
`filp`, the other apart. So caches that either of two allocators merged are one here. Size classes of kmalloc differ even more in
name and number (kmalloc-cg-512, kmem_alloc_448): they are taken together by the power of two that their size is within, which puts
a request into the same group under every allocator.

The recorded kernel tells the pages of a cache at its snapshots alone, hence it is compared with the base by what was kept at the end.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .model import Section, Series, estimate, grew, group, kept, memory_text, memory_unit, number, rows, started
from .ranks import TIE

CLASSES = re.compile(r"(?:(?:dma-)?kmalloc-(?:(?:rcl|cg|rnd-\d+|random\d*)-)?|kmem_alloc_|size-)(\d+)([kM]?)(?:\(DMA\))?")
LARGE = "kmalloc (pages)"
MOST_CACHES = 3
LEAST_SHARE = 0.05  # of a difference, for a cache to be named
PARTS = {"fast": "the fast path", "slow": "the slow path", "pages": "the page allocator", "locks": "locks"}
MOST_SHARE = 10  # beyond which a percentage of a small growth says nothing
MINUS = "\u2212"
FEW = 0.02  # a difference of cost below which nothing is said


@dataclass(frozen=True)
class CacheReason:
    """A cache in which two allocators differ: by so many pages, and the geometry of both, where it is another."""

    name: str
    pages: float
    text: str


@dataclass(frozen=True)
class Reason:
    """What one series does otherwise than the base."""

    series: Series
    pages: float | None  # of growth, above the base's
    share: float | None  # of the base's growth
    caches: list[CacheReason]
    cost: str
    text: str


def class_group(name: str) -> str:
    """`kmalloc 257-512` of a size class whose objects are that large; any other name as it is."""
    found = CLASSES.fullmatch(name)
    if not found:
        return "large kmallocs" if name == LARGE else name
    size = int(found[1]) * {"": 1, "k": 1 << 10, "M": 1 << 20}[found[2]]
    top = 1 << max(3, (size - 1).bit_length())
    return f"kmalloc {top // 2 + 1 if top > 8 else 1}\u2013{top}"


def base_of(workload: Section) -> Series | None:
    """The series that the others are compared with: the recorded kernel's allocator, or the first that has memory."""
    known = [one for one in workload.replayed if grew(one) is not None]
    own = next((name for one in workload.series if (name := one.run.get("own_allocator"))), "slub")
    return next((one for one in known if one.label == own), known[0] if known else None)


def base_text(workload: Section) -> str:
    """Against what the reasons hold each allocator; empty where nothing is known of memory."""
    base, (unit, _) = base_of(workload), memory_unit(workload)
    return "" if base is None else f"{base.label}, which grows by {memory_text(workload, grew(base) or 0)} {unit}"


# ---- Caches ------------------------------------------------------------------------------------------------------


def _group_of(row: Mapping[str, Any]) -> str:
    return class_group(str(row.get("name") or ""))


def _owner_names(series: Sequence[Series]) -> dict[str, str]:
    """By a cache's name that of its group: of what any of the series merged, and of its size class."""
    parent: dict[str, str] = {}

    def root(name: str) -> str:
        while parent.setdefault(name, name) != name:
            name = parent[name]
        return name

    for one in series:
        for row in rows(one.exact.get("caches")):
            name, into = _group_of(row), row.get("merged_into")
            if isinstance(into, str):
                low, high = sorted((root(name), root(class_group(into))), key=lambda found: (not found.startswith("kmalloc "), found))
                parent[high] = low
            else:
                root(name)
    return {name: root(name) for name in parent}


def _growth(row: Mapping[str, Any], at_end: bool) -> float | None:
    start, then = number(row.get("pages_start")), number(row.get("pages" if at_end else "pages_peak"))
    return None if start is None or then is None else then - start


def _by_group(one: Series, names: Mapping[str, str], at_end: bool) -> dict[str, float]:
    found: dict[str, float] = {}
    for row in rows(one.exact.get("caches")):
        pages = _growth(row, at_end)
        if pages is not None:
            name = names[_group_of(row)]
            found[name] = found.get(name, 0) + pages
    return found


def _main_row(one: Series, names: Mapping[str, str], name: str) -> Mapping[str, Any]:
    """Of the caches of a group, the one with most pages."""
    members = [row for row in rows(one.exact.get("caches")) if names[_group_of(row)] == name]
    return max(members, key=lambda row: number(row.get("pages")) or 0, default={})


def _slab(row: Mapping[str, Any]) -> tuple[int, int] | None:
    """Objects and pages of a slab."""
    objects, pages = number(row.get("slab_objects")), number(row.get("slab_pages"))
    return (int(objects), int(pages)) if objects and pages else None


def _use(row: Mapping[str, Any]) -> float | None:
    live, slabs, slab = number(row.get("live")), number(row.get("slabs")), _slab(row)
    return live / (slabs * slab[0]) if live is not None and slabs and slab and row.get("cache", -1) != -1 else None


def _geometry(mine: Mapping[str, Any], others: Mapping[str, Any]) -> str:
    """What is different in the slabs of a cache under two allocators."""
    own, other = _slab(mine), _slab(others)
    if own is None or other is None:
        return ""
    if own != other:
        objects = f"{own[0]} object{'s' if own[0] > 1 else ''}"
        if own[1] == other[1]:
            return f"{objects} per slab in place of {other[0]}"
        return f"{objects} in a slab of {_kib(own[1])} in place of {other[0]} in {_kib(other[1])}"
    full, others_full = _use(mine), _use(others)
    if full is not None and others_full is not None and abs(full - others_full) >= LEAST_SHARE:
        return f"slabs {100 * full:.0f}% used in place of {100 * others_full:.0f}%"
    return ""


def _kib(pages: int) -> str:
    return f"{4 * pages} KiB"


def _caches(one: Series, base: Series, pages: float, at_end: bool) -> list[CacheReason]:
    """The caches that make a difference of so many pages, the largest first. None where caches say another thing than the whole, as where
    much came between a kernel's slabinfo and its meminfo."""
    names = _owner_names([one, base])
    mine, others = _by_group(one, names, at_end), _by_group(base, names, at_end)
    differences = {name: mine.get(name, 0) - others.get(name, 0) for name in {**mine, **others}}
    total = sum(differences.values())
    if not 0.5 <= total / pages <= 2:
        return []
    same = sorted((name for name, change in differences.items() if change * total > 0), key=lambda name: (-abs(differences[name]), name))
    least = LEAST_SHARE * abs(total)
    return [
        CacheReason(name, differences[name], _geometry(_main_row(one, names, name), _main_row(base, names, name)))
        for name in same[:MOST_CACHES]
        if abs(differences[name]) >= least
    ]


# ---- Cost --------------------------------------------------------------------------------------------------------


def counted_cost(one: Series) -> float | None:
    """Instructions for each object operation, where they were counted."""
    return number(one.cost.get("instructions"))


def _part(one: Series, name: str) -> float:
    return number(group(group(one.cost, "parts"), name).get("instructions")) or 0


def _cost(one: Series, base: Series) -> str:
    """`30% more instructions, all in the slow path`; empty where the cost is the same, or times don't tell it."""
    mine, others = counted_cost(one), counted_cost(base)
    if mine is None or not others:
        return _time(one, base)
    if abs(mine / others - 1) < FEW:
        return ""
    changes = {words: _part(one, name) - _part(base, name) for name, words in PARTS.items()}
    main = max(changes, key=lambda words: changes[words] * (1 if mine > others else -1))
    share = changes[main] / (mine - others)
    where = f", all in {main}" if share >= 0.9 else f", mostly in {main}" if share >= 0.5 else ""
    return f"{_ratio(mine / others, 'fewer', 'instructions')}{where}"


def _time(one: Series, base: Series) -> str:
    mine, others = estimate(one.timed, "ns_per_operation"), estimate(base.timed, "ns_per_operation")
    if mine is None or others is None or None in (mine.low, mine.high, others.low, others.high) or not others.median:
        return ""
    assert mine.low is not None and mine.high is not None and others.low is not None and others.high is not None
    apart = mine.low > others.high or mine.high < others.low
    return _ratio(mine.median / others.median, "less", "time an operation") if apart else ""


def _ratio(ratio: float, fewer: str, what: str) -> str:
    return f"{ratio:.1f} times the {what}" if ratio >= 2 else f"{abs(ratio - 1) * 100:.0f}% {'more' if ratio > 1 else fewer} {what}"


# ---- The whole ---------------------------------------------------------------------------------------------------


def signed(workload: Section, pages: float) -> str:
    """A difference of memory with its sign and unit: `+60 MiB`."""
    unit, _ = memory_unit(workload)
    return f"{'+' if pages > 0 else MINUS if pages < 0 else ''}{memory_text(workload, abs(pages))} {unit}"


def reason(workload: Section, one: Series, base: Series) -> Reason:
    """What a series does otherwise than the base."""
    mine, others = (kept(one), kept(base)) if one.recorded else (grew(one), grew(base))
    pages = None if mine is None or others is None else mine - others
    share = pages / others if pages is not None and others and others > 0 else None
    told_of = rows(one.exact.get("caches"))
    by_cache = any(_slab(row) and row.get("name") != LARGE for row in told_of)
    caches = _caches(one, base, pages, one.recorded) if pages and by_cache else []
    cost = "" if one.recorded else _cost(one, base)
    shared = bool(told_of) and not one.recorded and not by_cache and number(one.exact.get("slab_pages_peak")) is not None
    memory = "" if pages is None else _memory(workload, pages, share, caches, shared)
    said = [text for text in (memory, "" if one.recorded else _start(workload, one, base), cost) if text]
    return Reason(one, pages, share, caches, cost, "; ".join(said))


def _start(workload: Section, one: Series, base: Series) -> str:
    """How much more or less the same objects take at the start: free room in slabs there lets memory grow less."""
    mine, others = started(one), started(base)
    if mine is None or not others or abs(mine - others) < TIE * others:
        return ""
    return f"starts {abs(mine / others - 1) * 100:.0f}% {'higher' if mine > others else 'lower'} ({signed(workload, mine - others)})"


def _memory(workload: Section, pages: float, share: float | None, caches: list[CacheReason], shared: bool) -> str:
    if not pages or (share is not None and abs(share) < TIE):
        return "as much memory"
    percent = f"{MINUS if pages < 0 else '+'}{abs(share) * 100:,.0f}%, " if share is not None and abs(share) < MOST_SHARE else ""
    memory = f"{percent}{signed(workload, pages)}"
    if shared:
        return f"{memory}: objects of all caches share its pages"
    if not caches:
        return memory
    named = [f"{one.name} {signed(workload, one.pages)}{f' ({one.text})' if one.text else ''}" for one in caches]
    return f"{memory}, of which {', '.join(named)}"


def reasons(workload: Section) -> list[Reason]:
    """Of every series but the base, the recorded kernel last; empty where nothing is known of memory."""
    base = base_of(workload)
    if base is None:
        return []
    return [reason(workload, one, base) for one in workload.series if one is not base and (not one.recorded or _has_caches(one))]


def _has_caches(one: Series) -> bool:
    return any(number(row.get("pages_start")) is not None for row in rows(one.exact.get("caches")))


def told(workload: Section, most: int = 4) -> list[str]:
    """The lines under a table: of the allocators that grow least, of the one that grows most, and of the recorded kernel."""
    found = [one for one in reasons(workload) if one.text]
    if not found:
        return []
    ordered = sorted((one for one in found if not one.series.recorded and one.pages is not None), key=lambda one: one.pages or 0)
    chosen = ordered if len(ordered) <= most else [*ordered[: most - 1], ordered[-1]]
    real = [one for one in found if one.series.recorded]
    lines = [f"Against {base_text(workload)}:"]
    lines += [f"- {one.series.label}: {one.text}" for one in chosen]
    return lines + [f"- the recorded kernel, by what is kept at the end: {one.text}" for one in real]


def attach(sections: Sequence[Section], advice: Mapping[str, Sequence[str]]) -> None:
    """Puts the verdict of each series into its record, for whoever reads JSON; the advice, by workload, goes into all of them."""
    for workload in sections:
        base, said = base_of(workload), list(advice.get(workload.ident, ()))
        if base is None:
            continue
        for found in reasons(workload):
            assert isinstance(found.series.record, dict)
            found.series.record["verdict"] = {
                "against": base.label,
                "pages": found.pages,
                "share": None if found.share is None else round(found.share, 6),
                "caches": [{"name": one.name, "pages": one.pages, "why": one.text or None} for one in found.caches],
                "cost": found.cost or None,
                "text": found.text,
                "advice": said,
            }
        assert isinstance(base.record, dict)
        base.record["verdict"] = {"against": None, "text": "", "advice": said}
