"""Which call sites' objects pin memory: pages of slabs that would be free if these objects were.

A slab goes back to the page allocator when its last object is freed, so one object keeps a whole slab, and all free room in it is of no
use to anybody else. At one moment of the trace this file finds the slabs (page runs of the recorded allocator) and the objects in each by
their addresses, and shares every slab out evenly among the objects that live in it:

    pinned_bytes   the free room of slabs that a call site's objects keep: of a slab with u live objects, a u-th for each
    held_pages     the pages of slabs, shared out likewise
    alone_pages    pages of slabs in which all live objects are of this call site (cache, task): freeing these frees the pages

A full slab has no free room, so nothing of it is pinned. Slabs and objects that are older than the trace are not known, nor are objects
that were allocated in bulk (docs/trace-format.md), so a slab may hold more than is seen: `pinned_bytes` is an upper bound there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ..base.errors import UserError
from ..trace.file import NO_OBJECT, OWNERS, PAGE_ALLOC, PAGE_FREE, SLAB, Trace, codes
from .usage import OF_OBJECTS, Keys, Rows, Window, batches_until, check_dimensions, with_room

FIGURES = ("objects", "object_bytes", "slabs", "held_pages", "alone_pages", "pinned_bytes")


@dataclass
class Pinned:
    """What is pinned at one moment. `table` has a row for each combination of dimensions, the most pinned bytes first."""

    table: pa.Table
    slabs: int  # that the trace saw allocated, and that hold objects
    slab_bytes: int
    object_bytes: int  # of the objects in them
    empty_slabs: int  # in which no object is known
    outside: int  # objects in pages that are older than the trace


class _State:
    """What lives, by object number. Objects and pages share one numbering."""

    def __init__(self) -> None:
        self.key = np.full(0, -1, np.int64)  # of objects; -1: none lives
        self.order = np.full(0, -1, np.int8)  # of slabs; -1: none lives
        self.address = np.zeros(0, np.uint64)
        self.bytes = np.zeros(0, np.uint32)

    def make_room(self, count: int) -> None:
        self.key, self.order = with_room(self.key, count, -1), with_room(self.order, count, -1)
        self.address, self.bytes = with_room(self.address, count), with_room(self.bytes, count)


def pinned(trace: Trace, by: Sequence[str], window: Window) -> Pinned:
    """What is pinned at the end of the window. UserError where nothing ties objects to pages, or a dimension is missing."""
    check_dimensions(trace, by)
    base = _direct_map_base(trace)
    keys = Keys(trace.metadata, by)
    state = _State()
    for batch in batches_until(trace, window.last, [*OF_OBJECTS, "address", "order", "owner", *by]):
        _take(batch, keys, state)
    return _shared_out(state, keys, base, trace.metadata.page_size)


def can_tell(trace: Trace) -> bool:
    """Whether something in the trace ties objects to pages."""
    return trace.metadata.direct_map.base is not None and trace.metadata.has_pages


def _direct_map_base(trace: Trace) -> int:
    """The address of page frame 0. UserError where the trace does not tell."""
    base = trace.metadata.direct_map.base
    if base is None or not can_tell(trace):
        why = "its pointers are hashed" if trace.metadata.direct_map.hashed else "nothing in it ties objects to pages"
        raise UserError(f"{trace.path}: {why}, so what is pinned cannot be told; record it with slabyard record")
    return int(base, 16)


def _take(batch: pa.RecordBatch, keys: Keys, state: _State) -> None:
    """Rows in their order; of several about one object number the last says what it is."""
    rows = Rows(batch)
    owner = codes(batch["owner"], OWNERS)
    pages = (rows.kind == PAGE_ALLOC) | (rows.kind == PAGE_FREE)
    chosen = np.flatnonzero((rows.allocates | rows.frees | pages) & (rows.object != NO_OBJECT))
    if not len(chosen):
        return
    key = np.full(batch.num_rows, -1, np.int64)
    allocates = chosen[rows.allocates[chosen]]
    key[allocates] = keys.number(rows, allocates)
    order = np.where((rows.kind == PAGE_ALLOC) & (owner == SLAB), batch["order"].to_numpy().astype(np.int8), np.int8(-1))
    reversed_rows = chosen[::-1]
    objects, first = np.unique(rows.object[reversed_rows], return_index=True)
    last = reversed_rows[first]
    state.make_room(int(objects[-1]) + 1)
    state.key[objects] = key[last]
    state.order[objects] = order[last]
    state.address[objects] = batch["address"].to_numpy()[last]
    state.bytes[objects] = rows.allocated[last]


def _shared_out(state: _State, keys: Keys, base: int, page: int) -> Pinned:
    slab_numbers = np.flatnonzero(state.order >= 0)
    frames = state.address[slab_numbers].astype(np.int64)
    by_frame = np.argsort(frames, kind="stable")
    slab_numbers, frames = slab_numbers[by_frame], frames[by_frame]
    pages = np.left_shift(np.int64(1), state.order[slab_numbers].astype(np.int64))
    objects = np.flatnonzero(state.key >= 0)
    frame = ((state.address[objects] - np.uint64(base)) // np.uint64(page)).astype(np.int64)  # wraps where it is outside the map
    slab = np.searchsorted(frames, frame, side="right") - 1
    inside = slab >= 0
    inside[inside] = frame[inside] < frames[slab[inside]] + pages[slab[inside]]
    outside = int((~inside).sum())
    objects, slab = objects[inside], slab[inside]
    key, size = state.key[objects], state.bytes[objects].astype(np.int64)
    population = np.bincount(slab, minlength=len(frames))
    used = np.bincount(slab, size, len(frames))
    room = np.maximum(pages * page - used, 0)
    share = 1 / population[slab]
    count = len(keys)
    pairs = np.unique(slab * max(count, 1) + key)
    pair_slab, pair_key = pairs // max(count, 1), pairs % max(count, 1)
    alone = np.bincount(pair_slab, minlength=len(frames))[pair_slab] == 1
    # The last object of a full slab leaves less room than one more takes; that is no free room.
    largest = np.zeros(len(frames), np.int64)
    np.maximum.at(largest, slab, size)
    room = np.where(room < largest, 0, room)
    figures = {
        "objects": np.bincount(key, minlength=count),
        "object_bytes": np.bincount(key, size, count),
        "slabs": np.bincount(pair_key, minlength=count),
        "held_pages": np.bincount(key, pages[slab] * share, count),
        "alone_pages": np.bincount(pair_key[alone], pages[pair_slab[alone]], count),
        "pinned_bytes": np.bincount(key, room[slab] * share, count),
    }
    occupied = population > 0
    table = keys.table(figures, ("pinned_bytes", "held_pages", "objects"))
    return Pinned(table, int(occupied.sum()), int(pages[occupied].sum()) * page, int(size.sum()), int((~occupied).sum()), outside)
