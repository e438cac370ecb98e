"""The slabs that a kernel had when its trace began with it: what a replay from an empty start has before its first event.

Tracing starts a moment after the allocator, so a whole-boot trace has objects in pages that it never saw the allocator take. Their
addresses tell these slabs, and the first event of each address tells what it was then: free, or an object older than the trace. A
replay without these slabs would have to take new ones for objects that needed none.

Each such slab is filled with one object after the other: those that the trace frees, others that stay, and those that were free, which
are freed again before the trace begins. So every allocator gets the same requests, and begins with the holes that they leave in it.
The slabs stand beside what the replay holds (replay/exact_beside.c), as they do beside the recorded kernel's pages (recorded_curve).

Left out are slabs that the trace saw given back, as they count on neither side and nothing would tell when they are to go. A kernel whose
pages hold objects of all sizes (SLOB) has no slabs to tell, and a trace of a machine that had run before has too many: nearly all that it
holds is older.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..trace.file import Metadata
from .olderfree import KMALLOCS, OBJECT, Extent
from .population import Older, nothing
from .scratch import KFREE, NO_CACHE, NONE, OLDER, PAGE_SHIFT, VACATED, Frees, Translation


@dataclass
class _Objects:
    """What was in the slabs: of each address its first event (dtype OBJECT), and the handle of an older object that the trace frees."""

    events: np.ndarray
    handles: np.ndarray  # uint32; VACATED: it was free


def older_slabs(translation: Translation, metadata: Metadata) -> Older:
    """The slabs that a trace from boot shows to have been there, in the order in which it first uses them."""
    traffic = translation.traffic
    frees, none = traffic.frees, np.zeros(0, OLDER)
    of_frees = np.full(len(frees.event), NONE, np.uint32)
    if metadata.shared_pages or not len(traffic.vacant.objects):
        return nothing(translation)
    found = _objects(traffic.vacant.objects, _freed(frees, traffic.page_kinds, translation.handles))
    slabs, rooms = _slabs(found.events, metadata, traffic.vacant.extents)
    parts = []
    order = np.lexsort((found.events["row"], slabs))
    starts = np.flatnonzero(np.append(True, np.diff(slabs[order].astype(np.int64)) != 0))
    for members in sorted(np.split(order, starts[1:]), key=lambda members: int(found.events["row"][members[0]])):
        if slabs[members[0]] not in traffic.given_back:
            parts.append(_filled(found.events[members], found.handles[members], int(rooms[members[0]]), metadata))
    objects = np.concatenate([none, *parts])
    freed = objects["handle"] < VACATED
    of_frees[objects["handle"][freed] - translation.handles] = objects["handle"][freed]
    return Older(objects, none, of_frees, translation.handles + len(of_frees))


def _freed(frees: Frees, page_kinds: tuple[np.ndarray, np.ndarray], handles: int) -> _Objects:
    """The first free of each older object whose kind is known, by its cache or by the traced kmallocs in its page."""
    pages, kinds = page_kinds
    wanted = frees.address >> np.uint64(PAGE_SHIFT)
    at = np.minimum(np.searchsorted(pages, wanted), max(0, len(pages) - 1))
    by_page = np.where(pages[at] == wanted, kinds[at], -1) if len(pages) else np.full(len(wanted), -1)
    events = np.zeros(len(frees.event), OBJECT)
    events["address"], events["row"] = frees.address, frees.row
    events["kind"] = np.where(frees.kind == KFREE, by_page, frees.cache)
    known = np.flatnonzero((events["kind"] >= 0) & (frees.pages == 0))
    first = known[np.unique(frees.address[known], return_index=True)[1]]
    return _Objects(events[first], (handles + first).astype(np.uint32))


def _objects(vacant: np.ndarray, freed: _Objects) -> _Objects:
    """Both together; an address of which the first event is an allocation was free."""
    older = ~np.isin(freed.events["address"], vacant["address"])
    handles = np.concatenate([np.full(len(vacant), VACATED, np.uint32), freed.handles[older]])
    return _Objects(np.concatenate([vacant, freed.events[older]]), handles)


def _stride(kind: int, metadata: Metadata) -> int:
    """Bytes from one object of a kind to the next."""
    if kind >= KMALLOCS:
        return kind & 0xFFFFFFFF
    return metadata.caches[kind].slab_size or metadata.caches[kind].object_size


def _slabs(events: np.ndarray, metadata: Metadata, extents: dict[int, Extent]) -> tuple[np.ndarray, np.ndarray]:
    """Of each object the address of its slab, and how many objects that has at least. Caches that share a slab's pages tell of it
    together: younger slabs tell the order, and the last object that was ever seen how many there are, as far as they fit."""
    strides = np.array([_stride(int(kind), metadata) for kind in events["kind"]], np.int64)
    known = [extents.get(int(kind), Extent(-1, 0)) for kind in events["kind"]]
    _, of_page = np.unique(events["address"] >> np.uint64(PAGE_SHIFT), return_inverse=True)
    orders = _most(np.array([one.order for one in known]), of_page)
    fitting = np.array([max(0, int(stride - 1).bit_length() - PAGE_SHIFT) for stride in strides])
    orders = np.where(orders < 0, fitting, orders).astype(np.uint64)
    begins = events["address"] >> (orders + np.uint64(PAGE_SHIFT)) << (orders + np.uint64(PAGE_SHIFT))
    _, of_kind = np.unique(events["kind"], return_inverse=True)
    last = np.maximum(_most((events["address"] - begins).astype(np.int64), of_kind), np.array([one.last for one in known]))
    fit = (np.int64(1) << (orders.astype(np.int64) + PAGE_SHIFT)) // strides
    _, of_slab = np.unique(begins, return_inverse=True)
    return begins, _most(np.minimum(last // strides + 1, fit), of_slab)


def _most(values: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """Of each value the greatest of its group."""
    out = np.full(int(groups.max()) + 1, np.iinfo(np.int64).min)
    np.maximum.at(out, groups, values)
    return out[groups]


def _filled(events: np.ndarray, handles: np.ndarray, room: int, metadata: Metadata) -> np.ndarray:
    """A slab's objects (dtype OLDER) in the order of their allocation. `events`, of those that are known, are in order of time."""
    freed, free = np.flatnonzero(handles != VACATED), np.flatnonzero(handles == VACATED)
    # One stays, or the slab would not have been there.
    free = free[: max(0, room - len(freed) - 1)]
    out = np.zeros(max(room, len(freed) + 1), OLDER)
    # Objects whose kind is not known are of the first one's.
    of = np.concatenate([freed, np.zeros(len(out) - len(freed) - len(free), np.int64), free])
    out["handle"] = NONE
    out["handle"][: len(freed)], out["handle"][len(out) - len(free) :] = handles[freed], VACATED
    kinds = events["kind"][of]
    kmallocs = kinds >= KMALLOCS
    out["cache"] = np.where(kmallocs, NO_CACHE, kinds)
    out["flags"] = np.where(kmallocs, kinds - KMALLOCS >> 32, 0)
    out["cpu"] = events["cpu"][0]
    out["size"] = [_size(int(kind), events, metadata) for kind in kinds]
    return out


def _size(kind: int, events: np.ndarray, metadata: Metadata) -> int:
    """Bytes to ask for: what the cache's objects have; of kmalloc the most that was asked for in this slab, else the class."""
    if kind < KMALLOCS:
        return metadata.caches[kind].object_size
    return int(events["size"][events["kind"] == kind].max()) or _stride(kind, metadata)
