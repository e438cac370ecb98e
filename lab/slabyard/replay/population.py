"""What was there before the trace began: objects in the caches, and the state of the page allocator.

A trace that is recorded on a running kernel begins in the middle. Its first snapshot tells what was there; this file turns that
into what the replay does before the first event. docs/measures.md has the formulas and the error that remains.

Objects. slabinfo counts a cache's active objects at the snapshot. From these:

    older = active - live - cached + freed

`live` are traced allocations that live at the snapshot (none, when the snapshot opens the trace), `freed` are older objects that the trace
frees before the snapshot (objects of a cache that the trace cannot name are live in the most populous caches of their size), and `cached`
are free objects that the kernel counts as active: under SLUB those of per-CPU slabs, taken to be half empty; under SLAB half of each CPU's
array cache and the whole shared array; under SLUB with sheaves half a sheaf more for each CPU. Never less than the older objects that the
trace frees, nor less than none; nor more than leave the room in the slabs that the trace proves to have been free (olderfree.py). Sheaves
are no client's objects, so those that every CPU has are taken off their class.

The replay allocates them in an order that keeps together what was together: older objects that the trace frees and that shared a slab in
the recorded kernel are neighbours, in order of address, with as many that stay as an average slab of that cache held, and with none where
the trace saw the slab given back. The rest is in slabs of its own, evenly between these groups. A slab stays on one CPU, the next one takes
the next.

Where the snapshot opens the trace, the free objects of the recorded kernel's slabs are there too: they fill up the groups to whole slabs,
and the others are spread evenly in as many slabs as were partial (any, where that is not known). They are allocated with the others, and
freed before the trace begins. So every allocator starts with the holes that this past leaves in it.
Under SLAB, where the snapshot comes later, those in its arrays at least, so that arrays begin filled.
Then `Slab:` of meminfo, less the slabs of slabinfo, is in large kmallocs of unknown size; they are taken to be of 32 KiB.
A kernel without slabinfo (SLOB) does not tell its objects: all that it held before the trace is taken to be such kmallocs.

kfree names no cache. An older object's class is that of the traced kmallocs that share its page, else one whose objects begin at such
an address and of which slabinfo tells that many went.

Pages. The replayed allocator takes pages of its own for the older objects, so the slabs of the recorded kernel are given back first: as
free blocks of their orders, unmovable or reclaimable as the cache is, spread over the zones by size. On these the older objects are built,
and the free lists are then as recorded but for the difference between the two allocators. Everything else that is not free is older
environment."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..trace import gfp, snapshots
from ..trace.file import Cache, Metadata, Snapshot
from ..trace.snapshots import ORDERS, SlabLine, Zone, ZoneKey
from .olderfree import Vacant, class_kind
from .scratch import FREE_BLOCKS, KFREE, NO_CACHE, NONE, OLDER, VACATED, ZONE, Frees, Layout, Traffic, Translation

MAX_ORDER = ORDERS - 1
MAX_ORDER_PAGES = 1 << MAX_ORDER
DEFAULT_PAGES = 1 << 20  # 4 GiB, for a trace that says nothing about its machine
PLAIN_CLASS = re.compile(r"kmalloc-\d+k?$")
SHEAF_HEADER, WORD = 32, 8  # bytes
LARGE_ORDER = 3  # of an older large kmalloc: 32 KiB
KEPT_EMPTY = 5  # slabs without an object in use that SLUB's list of a node keeps, at least
LEAST_LARGE = 4  # pages of a kmalloc that is not in a slab; there are classes up to 8 KiB
GOLDEN = 0.6180339887498949
KMALLOC_FLAGS = {"rcl": gfp.RECLAIMABLE, "cg": gfp.ACCOUNT}


@dataclass
class _CachePopulation:
    """The objects of one cache that are older than the trace: how many, and how to ask for one."""

    count: int
    size: int  # bytes
    cache: int  # NO_CACHE: of kmalloc
    size_class: int = 0  # of kmalloc, otherwise 0
    flags: int = 0
    room: int = 0  # objects that the recorded slabs held, used or free; 0: not known
    partial_slabs: int = 0  # that the free ones were in
    slab_objects: int = 1  # room in a slab of the recorded kernel
    per_slab: int = 1  # objects of an average slab of the recorded kernel that were in use
    slab_pages: int = 1
    sheaves: bool = False  # CPUs keep free objects of any slabs
    proved: bool = False  # as_proved

    @property
    def key(self) -> int:
        """Its number as olderfree.py has it."""
        return class_kind(self.size_class, self.flags) if self.size_class else self.cache

    def as_proved(self, vacant: Vacant) -> _CachePopulation:
        """The same, with no more objects than leave room for those that were free. Where slabs came, these had been all."""
        if not self.room:
            return replace(self, proved=True)
        most = max(0, self.room - int((vacant.objects["kind"] == self.key).sum()))
        grown = not self.sheaves and self.key in vacant.grown
        return replace(self, count=most if grown else min(self.count, most), proved=True)


@dataclass
class Older:
    """Objects older than the trace."""

    objects: np.ndarray  # dtype OLDER
    laid: np.ndarray  # the same in slabs as the recorded allocator's lay; empty where little is known of these
    of_frees: np.ndarray  # uint32: the handle of each older free, in the order of the trace; NONE where nothing is known of the object
    handles: int  # of the whole replay


def nothing(translation: Translation) -> Older:
    """No object older than the trace: its frees of such free nothing."""
    return Older(_large(0), _large(0), np.full(len(translation.traffic.frees.event), NONE, np.uint32), translation.handles)


def older_objects(
    translation: Translation,
    snapshot: Snapshot,
    opens: bool,
    unseen_pages: int,
    caches: list[Cache],
    cpus: int,
    layout_cpus: int,
    last: Snapshot | None = None,
) -> Older:
    """Older objects of the first snapshot. `opens`: it was taken before the first event. `unseen_pages`: what the recorded allocator
    held before the trace, used where slabinfo is missing or tells of no slabs.

    `caches` is the metadata's list; caches that only slabinfo knows are appended to it. `cpus` are those of the recorded kernel,
    `layout_cpus` those of the replay.
    """
    lines = snapshots.parse_slabinfo(snapshot.files.get("slabinfo", ""))
    frees = translation.traffic.frees
    if not any(line.objects_per_slab for line in lines):  # none, or of an allocator whose caches share pages: it tells no slabs
        return replace(nothing(translation), objects=_large(unseen_pages >> LARGE_ORDER))
    kinds = _populations(translation, lines, snapshot.slab_attributes or {}, opens, caches, cpus)
    fewer = _fewer_by_class(lines, last, translation.traffic.end_classes) if opens and last else {}
    traffic = translation.traffic
    owner = _owners(frees, kinds, traffic.page_classes, fewer)
    handles = np.where((owner >= 0) | (frees.pages > 0), translation.handles + np.arange(len(owner)), NONE).astype(np.uint32)
    large = _older_large(frees, handles, snapshot, opens)
    unknown = Vacant(traffic.vacant.objects[:0], traffic.vacant.grown[:0])
    objects = [*_arranged_all(kinds, owner, handles, traffic, unknown, layout_cpus), large]
    laid = []
    if opens and len(traffic.vacant.objects):
        proved = [kind.as_proved(traffic.vacant) for kind in kinds]
        typed = _typed(owner, frees, kinds, traffic.page_kinds)
        laid = [*_arranged_all(proved, typed, handles, traffic, traffic.vacant, layout_cpus), _laid_large(large)]
    return Older(np.concatenate(objects), np.concatenate([_large(0), *laid]), handles, translation.handles + len(owner))


def _arranged_all(
    kinds: list[_CachePopulation], owner: np.ndarray, handles: np.ndarray, traffic: Traffic, vacant: Vacant, cpus: int
) -> list[np.ndarray]:
    """The objects of all kinds (dtype OLDER), one after the other. `owner`: the kind of each older free, `handles`: its handle."""
    parts: list[np.ndarray] = []
    turn = 0
    for number, kind in enumerate(kinds):
        mine = np.flatnonzero(owner == number)
        mine = mine[np.argsort(traffic.frees.address[mine], kind="stable")]
        free = vacant.objects[vacant.objects["kind"] == kind.key]
        if kind.proved:
            mine, free = _in_slabs_there(kind, traffic.frees, mine, free)
        part, groups = _arranged(kind, traffic.frees.address[mine], handles[mine], free, traffic.given_back, turn, cpus)
        turn += groups
        parts.append(part)
    return parts


def creation_order(caches: list[Cache], slabinfo: str) -> np.ndarray:
    """int64[caches]: their numbers in the order in which the kernel created them, as far as slabinfo tells.

    slabinfo begins with the newest. A cache that it does not show was merged into one that it does, or is not known: it comes
    after all others, in order of number. So where caches merge here, they merge into the same cache as in the kernel.
    """
    places = {line.name: place for place, line in enumerate(snapshots.parse_slabinfo(slabinfo))}
    return np.argsort([-places.get(cache.name, -1) for cache in caches], kind="stable")


def _large(count: int) -> np.ndarray:
    """Large kmallocs of the recorded kernel as older objects (dtype OLDER)."""
    out = np.zeros(count, OLDER)
    out["handle"], out["size"], out["cache"] = NONE, 1 << (12 + LARGE_ORDER), NO_CACHE
    return out


def _older_large(frees: Frees, handles: np.ndarray, snapshot: Snapshot, opens: bool) -> np.ndarray:
    """The large kmallocs older than the trace (dtype OLDER): those that the trace frees, as far as there were so many, and others. Slabs
    that were emptied unseen are among the former."""
    if not opens:
        handles[frees.pages > 0] = NONE
        return _large(0)
    pages = np.where(frees.pages > 0, frees.pages, 0)
    there = _large_blocks(snapshot) << LARGE_ORDER
    handles[(pages > 0) & (np.cumsum(pages) > there)] = NONE
    mine = np.flatnonzero((pages > 0) & (handles != NONE))
    out = _large(len(mine) + (there - int(pages[mine].sum()) >> LARGE_ORDER))
    out["handle"][: len(mine)], out["size"][: len(mine)] = handles[mine], pages[mine] << 12
    return out


def _laid_large(large: np.ndarray) -> np.ndarray:
    """The same (dtype OLDER) where a kmalloc of so many pages would be in a slab, from which no page would come back: with the last of each
    LEAST_LARGE pages a block of that many goes."""
    pages = large["size"].astype(np.int64) >> 12
    small = np.where((large["handle"] != NONE) & (pages < LEAST_LARGE), pages, 0)
    out = large.copy()
    out["size"] = np.where(small, np.diff(np.cumsum(small) // LEAST_LARGE, prepend=0) * LEAST_LARGE, pages) << 12
    return out[out["size"] > 0]


def _large_blocks(snapshot: Snapshot) -> int:
    """How many large kmallocs of LARGE_ORDER the recorded kernel held: what meminfo knows of and slabinfo does not."""
    lines = snapshots.parse_slabinfo(snapshot.files.get("slabinfo", ""))
    slab_kb = snapshots.parse_meminfo(snapshot.files.get("meminfo", "")).get("Slab", 0)
    return max(0, (slab_kb >> 2) - sum(line.slabs * line.pages_per_slab for line in lines)) >> LARGE_ORDER


def _populations(
    translation: Translation, lines: list[SlabLine], attributes: dict[str, dict[str, str]], opens: bool, caches: list[Cache], cpus: int
) -> list[_CachePopulation]:
    """How many older objects each cache of slabinfo holds."""
    traffic = translation.traffic
    numbers = {cache.name: number for number, cache in enumerate(caches) if cache.name}
    freed = Counter(int(cache) for cache in traffic.frees.cache[traffic.frees.before_snapshot & (traffic.frees.kind != KFREE)])
    class_active: Counter[int] = Counter()
    for line in lines:
        class_active[snapshots.class_of(line.name)] += line.active_objects
    sheaves = _sheaves(lines, attributes, cpus)
    unnamed = _live_without_name(traffic.live_caches, caches, {line.name for line in lines})
    kinds = []
    for line in sorted(lines, key=lambda line: -line.active_objects):
        per_slab = max(1, min(line.objects_per_slab, -(-line.active_objects // max(1, line.slabs))))
        size_class = snapshots.class_of(line.name)
        cached = _cached(line, attributes.get(line.name, {}), cpus)
        base = line.active_objects - cached
        number = numbers.get(line.name)
        if number is not None and number < len(traffic.live_caches):
            base += freed[number] - int(traffic.live_caches[number])
        slabs: dict[str, Any] = {
            "partial_slabs": _partial_slabs(line, attributes.get(line.name, {})), "slab_objects": line.objects_per_slab,
            "per_slab": per_slab, "slab_pages": line.pages_per_slab,
            "sheaves": bool(_leading_number(attributes.get(line.name, {}).get("sheaf_capacity", ""))),
        }  # fmt: skip
        if size_class:
            base -= sheaves[line.name]
            share = line.active_objects / max(1, class_active[size_class])
            base -= round(traffic.live_classes.get(size_class, 0) * share)
            mean = min(size_class, max(1, traffic.mean_requests.get(size_class, size_class)))
            room = max(0, _room(line, base + cached, opens) - sheaves[line.name])
            flags = _kmalloc_flags(line.name)
            kinds.append(_CachePopulation(max(0, base), mean, NO_CACHE, room=room, flags=flags, size_class=size_class, **slabs))
            continue
        taken = min(max(0, base), unnamed[line.object_size])
        unnamed[line.object_size] -= taken
        base -= taken
        room = _room(line, base + cached, opens)
        if opens and number is not None and number < len(traffic.was_free):
            base = min(base, max(0, room - int(traffic.was_free[number])))
        if number is None:
            if max(base, room) <= 0:
                continue
            number = len(caches)
            caches.append(Cache(name=line.name, object_size=line.object_size))
            if described := attributes.get(line.name):
                caches[-1].describe(described)
        kinds.append(_CachePopulation(max(0, base), caches[number].object_size, number, room=room, **slabs))
    # Caches that the trace frees older objects of but slabinfo does not show: as many as are freed.
    shown = {kind.cache for kind in kinds}
    for number in sorted({int(cache) for cache in traffic.frees.cache[traffic.frees.kind != KFREE]} - shown):
        kinds.append(_CachePopulation(0, caches[number].object_size, number))
    return kinds


def _live_without_name(live: np.ndarray, caches: list[Cache], shown: set[str]) -> Counter[int]:
    """Traced objects live at the snapshot whose cache the trace cannot name, by the recorded distance from object to object.

    They are among the active objects of some cache of slabinfo with that object size: the most populous are taken to be theirs.
    """
    found: Counter[int] = Counter()
    for number, cache in enumerate(caches[: len(live)]):
        if cache.name not in shown and cache.slab_size:
            found[cache.slab_size] += max(0, int(live[number]))
    return found


def _kmalloc_flags(name: str) -> int:
    match = snapshots.KMALLOC.match(name)
    if not match:
        return 0
    return gfp.DMA if match["dma"] else KMALLOC_FLAGS.get(match["kind"] or "", 0)


def _cached(line: SlabLine, attributes: dict[str, str], cpus: int) -> int:
    """Free objects of a cache that slabinfo counts as active, estimated."""
    if line.limit:
        return line.shared_available + min(line.active_objects, cpus * line.limit // 2)
    slabs = _leading_number(attributes.get("cpu_slabs", ""))
    if slabs is None:
        slabs = min(cpus, line.slabs)
    sheaf = _leading_number(attributes.get("sheaf_capacity", "")) or 0
    return min(line.active_objects, slabs * line.objects_per_slab // 2 + cpus * sheaf // 2)


def _sheaves(lines: list[SlabLine], attributes: dict[str, dict[str, str]], cpus: int) -> Counter[str]:
    """Objects of kmalloc's classes that SLUB itself holds: a sheaf for each CPU of each cache that has sheaves, by the class's name."""
    classes = sorted((snapshots.class_of(line.name), line.name) for line in lines if PLAIN_CLASS.match(line.name))
    found: Counter[str] = Counter()
    for one in attributes.values():
        if capacity := _leading_number(one.get("sheaf_capacity", "")):
            found[next((name for size, name in classes if size >= SHEAF_HEADER + WORD * capacity), "")] += cpus
    return found


def _room(line: SlabLine, older: int, opens: bool) -> int:
    """Objects that the slabs of a cache held when the trace began, used or free; 0: not known.

    `older`: used ones, and free ones that slabinfo counts as active. Of these SLAB's are in its arrays, for which it keeps slabs.
    """
    if opens:
        return line.objects
    return max(0, older) if line.limit else 0


def _partial_slabs(line: SlabLine, attributes: dict[str, str]) -> int:
    """Slabs of a cache that may have free objects: its nodes' partial ones and those of CPUs; all where that is not known."""
    on_nodes, of_cpus = (_leading_number(attributes.get(name, "")) for name in ("partial", "cpu_slabs"))
    return line.slabs if on_nodes is None or of_cpus is None else min(line.slabs, on_nodes + of_cpus)


def _leading_number(text: str) -> int | None:
    word = text.split()[0] if text.split() else ""
    return int(word) if word.isdigit() else None


def _fewer_by_class(lines: list[SlabLine], last: Snapshot, traced: dict[int, int]) -> dict[int, int]:
    """By class, how many older objects went between two snapshots: what slabinfo lost, and traced objects that live make up for."""
    found: Counter[int] = Counter()
    for sign, table in ((1, lines), (-1, snapshots.parse_slabinfo(last.files.get("slabinfo", "")))):
        for line in table:
            found[snapshots.class_of(line.name)] += sign * line.active_objects
    return {size: count + traced.get(size, 0) for size, count in found.items() if size}


def _owners(frees: Frees, kinds: list[_CachePopulation], page_classes: tuple[np.ndarray, np.ndarray], fewer: dict[int, int]) -> np.ndarray:
    """int64[frees]: which kind each older free frees one of; -1: none is known. `fewer`: objects that went, by class, where known."""
    owner = np.full(len(frees.event), -1, np.int64)
    of_kmalloc = (frees.kind == KFREE) & ~np.isin(frees.address, frees.address[frees.pages > 0])
    for number, kind in enumerate(kinds):
        if not kind.size_class:
            owner[~of_kmalloc & (frees.cache == kind.cache)] = number
    # Where several caches share a class, its frees are dealt to them by population.
    classes: dict[int, list[int]] = {}
    for number, kind in enumerate(kinds):
        if kind.size_class and not kind.flags & gfp.DMA:
            classes.setdefault(kind.size_class, []).append(number)
    pages, sizes = page_classes
    where = np.flatnonzero(of_kmalloc)
    if len(pages) and len(where):
        wanted = frees.address[where] >> np.uint64(12)
        at = np.minimum(np.searchsorted(pages, wanted), len(pages) - 1)
        size = np.where(pages[at] == wanted, sizes[at], 0)
        for one, numbers in classes.items():
            _deal(owner, where[size == one], numbers, kinds)
    left = where[owner[where] < 0]
    size = _classes_by_place(frees.address[left], {one: [kinds[number] for number in numbers] for one, numbers in classes.items()}, fewer)
    for one, numbers in classes.items():
        _deal(owner, left[size == one], numbers, kinds)
    return owner


def _typed(owner: np.ndarray, frees: Frees, kinds: list[_CachePopulation], page_kinds: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """`owner`, where those of kmalloc that share a page with a traced one are of that one's type."""
    out = owner.copy()
    pages, keys = page_kinds
    numbers = {kind.key: number for number, kind in enumerate(kinds) if kind.size_class and not kind.flags & gfp.DMA}
    known = np.flatnonzero((frees.kind == KFREE) & (owner >= 0))
    if not len(pages) or not len(known):
        return out
    wanted = frees.address[known] >> np.uint64(12)
    at = np.minimum(np.searchsorted(pages, wanted), len(pages) - 1)
    found = np.array([numbers.get(key, -1) for key in np.where(pages[at] == wanted, keys[at], 0).tolist()], np.int64)
    same = np.array([kinds[number].size_class for number in out[known]]) == np.array([kinds[number].size_class for number in found])
    out[known] = np.where((found >= 0) & same, found, out[known])
    return out


def _classes_by_place(addresses: np.ndarray, classes: dict[int, list[_CachePopulation]], fewer: dict[int, int]) -> np.ndarray:
    """int64: of which class of kmalloc older objects are, by where in a slab they lie, a page's all of one; 0: of none.

    An object lies where objects of its class begin. Of the classes that fit, one is likelier the more of its objects went (where that is
    not known: the more it has), and the fewer places a page has for them.
    """
    out = np.zeros(len(addresses), np.int64)
    if not len(addresses) or not classes:
        return out
    pages, page, counts = np.unique(addresses >> np.uint64(12), return_inverse=True, return_counts=True)
    sizes = np.array(list(classes))
    weights = np.full((len(pages), len(sizes)), -np.inf)
    for column, (size, kinds) in enumerate(classes.items()):
        misfits = np.bincount(page, addresses % np.uint64(kinds[0].slab_pages << 12) % np.uint64(size) != 0, len(pages))
        went = fewer.get(size, sum(kind.count for kind in kinds))
        weights[:, column] = np.where(misfits == 0, np.log(max(went, 0.5)) + counts * np.log(size), -np.inf)
    known = np.isfinite(weights.max(axis=1))
    shares = np.exp(weights[known] - weights[known].max(axis=1, keepdims=True))
    edges = shares.cumsum(axis=1) / shares.sum(axis=1, keepdims=True)
    # The golden ratio's multiples fill the unit interval evenly, whatever their number.
    points = (np.arange(1, len(edges) + 1) * GOLDEN) % 1.0
    of_pages = np.zeros(len(pages), np.int64)
    of_pages[known] = sizes[np.minimum((edges <= points[:, None]).sum(axis=1), len(sizes) - 1)]
    return np.asarray(of_pages[page])


def _deal(owner: np.ndarray, frees: np.ndarray, numbers: list[int], kinds: list[_CachePopulation]) -> None:
    """Gives frees to kinds in proportion to their populations, evenly mixed over the trace."""
    if not len(frees) or not numbers:
        return
    weights = np.array([kinds[number].count for number in numbers], float)
    weights = weights if weights.sum() else np.ones(len(numbers))
    edges = np.cumsum(weights) / weights.sum()
    points = (np.arange(len(frees)) * GOLDEN) % 1.0
    owner[frees] = np.array(numbers)[np.minimum(np.searchsorted(edges, points, side="right"), len(numbers) - 1)]


def _arranged(
    kind: _CachePopulation, addresses: np.ndarray, handles: np.ndarray, free: np.ndarray, given_back: np.ndarray, turn: int, cpus: int
) -> tuple[np.ndarray, int]:
    """The older objects of one cache in the order of their allocation, and how many CPU turns they took.

    `addresses`, ascending, and `handles` are of those that the trace frees; `free` are those that are known to have been free (dtype
    of Vacant.objects); `given_back` has the addresses of slabs that it saw go.
    """
    if not (total := max(kind.count, freed := len(handles))) and not (kind.proved and kind.room):
        return np.zeros(0, OLDER), 0
    slab_bytes = np.uint64(kind.slab_pages << 12)
    slabs = np.unique(np.concatenate([addresses, free["address"]]) // slab_bytes)
    counts, empty = (np.bincount(np.searchsorted(slabs, some // slab_bytes), minlength=len(slabs)) for some in (addresses, free["address"]))
    gone = np.isin(slabs * slab_bytes, given_back)
    # What was free, and in slabs that went all that the trace does not free.
    proved = np.where(gone, np.maximum(0, kind.slab_objects - counts), empty) * kind.proved
    if kind.proved:
        total = max(freed, min(total, kind.room - int(proved.sum())))
    vacated = max(0, kind.room - total)
    proved = _dealt(vacated, proved)
    # Of a slab that was allocated from, all that was free has been seen.
    used = np.where(empty > 0, kind.slab_objects - empty, kind.per_slab)
    # A slab that never went has never been empty.
    least = _dealt(total - freed, (~gone & (counts + empty < kind.slab_objects)).astype(np.int64) * kind.proved)
    stay = least + _dealt(total - freed - int(least.sum()), np.where(gone, 0, np.maximum(0, used - counts - least)))
    holes = proved + _dealt(vacated - int(proved.sum()), np.maximum(0, kind.slab_objects - counts - stay - proved))
    if kind.proved:  # whole slabs, or what is behind a group would not be in slabs as it was
        holes += _in_turn(vacated - int(holes.sum()), kind.slab_objects - counts - stay - holes)
        stay += _in_turn(total - freed - int(stay.sum()), kind.slab_objects - counts - stay - holes)
    left, left_vacated = total - freed - int(stay.sum()), vacated - int(holes.sum())
    places, cpu_of = _first_uses(slabs, free, slab_bytes)
    vacant = np.flatnonzero((empty > 0) & (counts + stay == 0))
    kept, more = np.split(vacant[np.argsort(-places[vacant], kind="stable")], [KEPT_EMPTY])
    places[kept], places[more], cpu_of[more] = -1, len(free) + 2, -1  # on the node's list, and on those of all CPUs
    sizes, begins = _interleaved(counts + stay + holes, places, left + left_vacated, kind.slab_objects)
    whole = np.zeros(total + vacated, OLDER)
    whole["handle"], whole["size"], whole["cache"], whole["flags"] = NONE, kind.size, kind.cache, kind.flags
    of_groups, groups = begins[: len(slabs)], len(slabs)
    whole["handle"][_runs(of_groups, counts)] = handles
    whole["handle"][_runs(of_groups + counts + stay, holes)] = VACATED
    others = _runs(begins[groups:], sizes[groups:])
    if kind.proved:
        kind = replace(kind, partial_slabs=max(0, kind.partial_slabs - int((holes > 0).sum())))
    whole["handle"][others[_holes(np.arange(len(others)) // kind.slab_objects, left_vacated, kind)]] = VACATED
    slab = np.arange(len(whole)) // kind.slab_objects
    whole["cpu"] = (turn + slab) % cpus
    cpu_of = np.repeat(cpu_of, counts + stay + holes)
    whole["cpu"][_runs(of_groups, counts + stay + holes)[cpu_of >= 0]] = cpu_of[cpu_of >= 0] % cpus
    return whole, int(slab[-1]) + 1


def _in_slabs_there(kind: _CachePopulation, frees: Frees, mine: np.ndarray, free: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of older frees, and of objects that were free, those that can be: an older object is freed once, and not where the first that was
    seen is an allocation; a slab has room for so many; and of more slabs than there were those that are seen last came unseen. `mine`:
    numbers of frees in order of address and time."""
    mine = mine[np.append(True, np.diff(frees.address[mine]) > 0)[: len(mine)]]
    mine = mine[~np.isin(frees.address[mine], free["address"])]
    slab_bytes = np.uint64(kind.slab_pages << 12)
    slab_of = np.concatenate([frees.address[mine], free["address"]]) // slab_bytes
    order = np.lexsort((np.concatenate([frees.row[mine], free["row"]]), slab_of))
    slabs, first, members = np.unique(slab_of[order], return_index=True, return_counts=True)
    rows = np.concatenate([frees.row[mine], free["row"]])[order][first]  # each slab's first
    there = slabs[np.argsort(rows, kind="stable")][: kind.room // kind.slab_objects] if kind.room else slabs
    fits = np.zeros(len(order), bool)
    fits[order] = np.arange(len(order)) - np.repeat(first, members) < kind.slab_objects
    fits &= np.isin(slab_of, there)
    return mine[fits[: len(mine)]], free[fits[len(mine) :]]


def _first_uses(slabs: np.ndarray, free: np.ndarray, slab_bytes: np.uint64) -> tuple[np.ndarray, np.ndarray]:
    """Of each slab its place, evenly from 0 to 1 or, behind all others, in the order in which free objects were first allocated from
    them; and the CPU that did that, or -1."""
    places, cpus = (np.arange(len(slabs)) + 0.5) / max(1, len(slabs)), np.full(len(slabs), -1)
    free = free[np.argsort(free["row"], kind="stable")]
    used, first = np.unique(free["address"] // slab_bytes, return_index=True)
    at = np.searchsorted(slabs, used)
    places[at], cpus[at] = 1 + first, free["cpu"][first]
    return places, cpus


def _interleaved(groups: np.ndarray, places: np.ndarray, rest: int, slab_objects: int) -> tuple[np.ndarray, np.ndarray]:
    """The objects of each group and then of each slab that the `rest` fill, and where each begins, in the order of the groups' places and
    of those of the others, which are evenly from 0 to 1."""
    edges = np.minimum(np.arange(-(-rest // slab_objects) + 1) * slab_objects, rest)
    sizes = np.concatenate([groups, np.diff(edges)]).astype(np.int64)
    others = (np.arange(len(edges) - 1) + 0.5) / max(1, len(edges) - 1)
    order = np.argsort(np.concatenate([places, others]), kind="stable")
    begins = np.zeros(len(sizes), np.int64)
    begins[order] = np.cumsum(sizes[order]) - sizes[order]
    return sizes, begins


def _runs(begins: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """int64: `counts` positions from each of `begins` on."""
    return np.repeat(begins - (np.cumsum(counts) - counts), counts) + np.arange(int(counts.sum()))


def _dealt(have: int, wanted: np.ndarray) -> np.ndarray:
    """int64: what each gets of what there is, in proportion to what it wants."""
    total = int(wanted.sum())
    return wanted if total <= have else wanted * have // total


def _in_turn(have: int, wanted: np.ndarray) -> np.ndarray:
    """int64: what each gets of what there is, the first ones first."""
    return np.clip(have - (np.cumsum(wanted) - wanted), 0, np.maximum(0, wanted))


def _holes(slab: np.ndarray, vacated: int, kind: _CachePopulation) -> np.ndarray:
    """int64[vacated]: which objects are vacated, evenly in partial slabs that are evenly among all. `slab`: of each object."""
    if not vacated:
        return np.empty(0, np.int64)
    slabs = int(slab[-1]) + 1
    # One object stays in each partial slab, or it would not have been there.
    partial = min(slabs, max(kind.partial_slabs, -(-vacated // max(1, kind.slab_objects - 1))))
    is_partial = np.diff(np.arange(slabs + 1) * partial // slabs) > 0
    places = np.flatnonzero(is_partial[slab])
    places = places if len(places) >= vacated else np.arange(len(slab))
    return places[np.arange(vacated) * len(places) // vacated]


# ---- The simulated machine ---------------------------------------------------------------------------------------


def machine(metadata: Metadata, cpus: int, nodes: int, memory: int | None) -> Layout:
    """The machine of the replay, its memory pristine. `memory` in bytes replaces the recorded machine's."""
    zones = _zones(metadata, nodes, memory)
    return Layout(_zone_records(zones), np.empty(0, FREE_BLOCKS), cpus, nodes, metadata.pageblock_order or 9)


def has_recorded_zones(metadata: Metadata, nodes: int, memory: int | None) -> bool:
    """Whether the zones of `machine` are the recorded ones, so that a snapshot's figures fit them."""
    return memory is None and nodes == max(1, metadata.nodes)


def populate_pages(layout: Layout, metadata: Metadata) -> None:
    """Gives a machine with the recorded zones the free blocks that the first snapshot shows; none where it does not tell."""
    snapshot = metadata.first_snapshot
    if snapshot:
        layout.free_blocks = _free_blocks(_zones(metadata, layout.nodes, None), snapshot, layout.pageblock_order)


def _zones(metadata: Metadata, nodes: int, memory: int | None) -> list[Zone]:
    snapshot = metadata.first_snapshot
    recorded = _recorded_zones(metadata, snapshot)
    as_recorded = has_recorded_zones(metadata, nodes, memory)
    if as_recorded and recorded:
        return [_aligned(zone) for zone in recorded]
    pages = memory >> 12 if memory is not None else _total_pages(snapshot, recorded)
    buddy = snapshots.parse_buddyinfo(snapshot.files.get("buddyinfo", "")) if snapshot and as_recorded else {}
    return _default_zones(pages, nodes, [name for node, name in buddy if node == 0])


def _recorded_zones(metadata: Metadata, snapshot: Snapshot | None) -> list[Zone]:
    if metadata.zones:
        return sorted((zone for zone in metadata.zones if zone.managed), key=lambda zone: zone.start_pfn)
    return snapshots.parse_zoneinfo(snapshot.files.get("zoneinfo", "")) if snapshot else []


def _total_pages(snapshot: Snapshot | None, recorded: list[Zone]) -> int:
    """Pages of the recorded machine: its zones, else what meminfo says rounded up to 128 MiB, else 4 GiB."""
    if recorded:
        return sum(zone.managed for zone in recorded)
    known = snapshots.parse_meminfo(snapshot.files.get("meminfo", "")).get("MemTotal", 0) >> 2 if snapshot else 0
    if known:
        return -(-known // 32768) * 32768
    return DEFAULT_PAGES


def _default_zones(pages: int, nodes: int, names: list[str]) -> list[Zone]:
    """DMA to 16 MiB, DMA32 to 4 GiB, Normal above, spread evenly over the nodes; only the zones in `names`, if there are any."""
    limits = [("DMA", 4096), ("DMA32", 1 << 20), ("Normal", 1 << 62)]
    chosen = [(name, limit) for name, limit in limits if not names or name in names] or limits
    chosen[-1] = (chosen[-1][0], 1 << 62)
    zones, start = [], 0
    for node in range(nodes):
        end = pages if node == nodes - 1 else pages * (node + 1) // nodes // MAX_ORDER_PAGES * MAX_ORDER_PAGES
        for name, limit in chosen:
            stop = min(end, limit)
            if stop > start:
                zones.append(Zone(node, name, start, stop - start, stop - start))
                start = stop
    return zones


def _aligned(zone: Zone) -> Zone:
    """The zone with its start rounded down to a largest block, as the page allocator wants it."""
    lead = zone.start_pfn % MAX_ORDER_PAGES
    return Zone(zone.node, zone.name, zone.start_pfn - lead, zone.spanned + lead, zone.managed, zone.min, zone.low, zone.high)


def _zone_records(zones: list[Zone]) -> np.ndarray:
    out = np.zeros(len(zones), ZONE)
    for number, zone in enumerate(zones):
        out[number] = (
            zone.name.encode()[:15], zone.node, 0, zone.start_pfn, zone.spanned, zone.managed, zone.min, zone.low, zone.high,
        )  # fmt: skip
    return out


def _free_blocks(zones: list[Zone], snapshot: Snapshot, pageblock_order: int) -> np.ndarray:
    """Free blocks of each zone at the snapshot by migrate type and order, with the recorded slabs given back."""
    files = snapshot.files
    free_by_type, blocks_by_type = snapshots.parse_pagetypeinfo(files.get("pagetypeinfo", ""))
    buddy = snapshots.parse_buddyinfo(files.get("buddyinfo", ""))
    slabs = _slab_blocks(snapshot)
    managed = sum(zone.managed for zone in zones if zone.name != "DMA") or 1
    out = []
    for number, zone in enumerate(zones):
        key: ZoneKey = (zone.node, zone.name)
        if key in free_by_type and key in blocks_by_type:
            free = _by_migrate(dict(free_by_type[key].items()))
            blocks = _by_migrate({name: [count] for name, count in blocks_by_type[key].items()})[:, 0]
        elif key in buddy:
            blocks = _guessed_pageblocks(zone, files, pageblock_order)
            free = _split(np.array(buddy[key]), blocks)
        else:
            return np.empty(0, FREE_BLOCKS)
        if zone.name != "DMA":
            free += _fitting(slabs * zone.managed // managed, free, blocks, pageblock_order)
        record = np.zeros(1, FREE_BLOCKS)
        record["zone"], record["free_blocks"][0], record["pageblocks"][0] = number, free, blocks
        out.append(record)
    return np.concatenate(out) if out else np.empty(0, FREE_BLOCKS)


def _by_migrate(counts: dict[str, list[int]]) -> np.ndarray:
    """int64[4, ORDERS] of counts by type name; CMA and isolated blocks hold movable pages and count as such."""
    out = np.zeros((4, ORDERS), np.int64)
    for name, row in counts.items():
        out[gfp.MIGRATE_NAMES.get(name, gfp.MOVABLE_TYPE), : len(row)] += row
    return out


def _slab_blocks(snapshot: Snapshot) -> np.ndarray:
    """int64[4, ORDERS]: the recorded kernel's slabs and large kmallocs, by migrate type and order."""
    out = np.zeros((4, ORDERS), np.int64)
    attributes = snapshot.slab_attributes or {}
    for line in snapshots.parse_slabinfo(snapshot.files.get("slabinfo", "")):
        reclaimable = attributes.get(line.name, {}).get("reclaim_account") == "1" or "-rcl-" in line.name
        order = min(MAX_ORDER, max(0, line.pages_per_slab.bit_length() - 1))
        out[gfp.RECLAIMABLE_TYPE if reclaimable else gfp.UNMOVABLE, order] += line.slabs
    out[gfp.UNMOVABLE, LARGE_ORDER] += _large_blocks(snapshot)
    return out


def _guessed_pageblocks(zone: Zone, files: dict[str, str], pageblock_order: int) -> np.ndarray:
    """Pageblocks by type where only buddyinfo is known: unmovable and reclaimable as many as meminfo's users of them fill."""
    memory = snapshots.parse_meminfo(files.get("meminfo", ""))
    total = max(1, memory.get("MemTotal", 1))
    count = zone.spanned >> pageblock_order
    unmovable = sum(memory.get(name, 0) for name in ("SUnreclaim", "KernelStack", "PageTables")) / total
    reclaimable = memory.get("SReclaimable", 0) / total
    blocks = np.zeros(4, np.int64)
    blocks[gfp.UNMOVABLE] = min(count, -int(-count * unmovable // 1))
    blocks[gfp.RECLAIMABLE_TYPE] = min(count - blocks[gfp.UNMOVABLE], -int(-count * reclaimable // 1))
    blocks[gfp.MOVABLE_TYPE] = count - blocks.sum()
    return blocks


def _split(counts: np.ndarray, blocks: np.ndarray) -> np.ndarray:
    """int64[4, ORDERS]: free blocks divided among the types in proportion to their pageblocks; the largest order is movable."""
    total = max(1, int(blocks.sum()))
    out = counts[None, :] * blocks[:, None] // total
    out[:, MAX_ORDER] = 0
    out[gfp.MOVABLE_TYPE] += counts - out.sum(axis=0)
    return out


def _fitting(wanted: np.ndarray, free: np.ndarray, blocks: np.ndarray, pageblock_order: int) -> np.ndarray:
    """As many of the `wanted` blocks as the pageblocks of each type hold beside the `free` ones.

    A free block below the largest order lies beside one that is in use, else the two were one block: it needs twice its size.
    """
    room = np.array([2 << order if order < pageblock_order else 1 << order for order in range(ORDERS)])
    out = np.zeros_like(wanted)
    for kind in range(4):
        left = int(blocks[kind] << pageblock_order) - int((free[kind] * room).sum())
        needed = int((wanted[kind] * room).sum())
        if needed and left > 0:
            out[kind] = wanted[kind] if needed <= left else wanted[kind] * left // needed
    return out
