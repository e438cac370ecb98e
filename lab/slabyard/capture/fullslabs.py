"""Objects that came without an event and are never freed by one: what a new slab tells of the others.

A kernel of one CPU takes a new slab of a cache only when none of that cache's has a free object left. So where a capture from boot shows
one taken, every place in the cache's other slabs that it shows as free had an object that came unseen: in bulk, or while events were being
set up. Its allocation is implied just before the new slab. How it ends is as unseen, so its free is implied as late as can be: where its
address is allocated again, or its slab given back.

Left alone are slabs in which no object lives, as those of SLAB_TYPESAFE_BY_RCU caches wait for the end of a grace period then, and places
that were freed since the new slab's pages came. The places of a slab are those between others of it, and those in which any slab of the
cache had an object so far.
With several CPUs nothing follows, as each keeps slabs of its own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..trace import snapshots as kernel
from ..trace.file import CACHE_ALLOC, CACHE_FREE, KFREE, KMALLOC, NO_CACHE, OLDER, PAGE_ALLOC, PAGE_FREE, SLAB
from ..trace.gfp import ACCOUNT, DMA, RECLAIMABLE, flags_of
from .trees import Block, with_implied

Kind = tuple[int, int, int]  # what tells an object's slabs: its cache or class of kmalloc, and the class's type
Like = dict[str, int]  # columns that an implied row takes from a recorded one
_LIKE = ("kind", "cache", "size", "allocated", "gfp_flags", "accounted")
_TYPES = ACCOUNT | RECLAIMABLE | DMA
_PADDED = 96


@dataclass
class _Slab:
    """A slab that lives. Places are bytes from its begin."""

    begin: int  # address
    row: int  # when its pages came
    migratetype: int
    kind: Kind | None = None  # None: it had no object yet
    like: Like = field(default_factory=dict)  # its first object
    live: set[int] = field(default_factory=set)
    unseen: dict[int, int] = field(default_factory=dict)  # of these, objects that came unseen: their numbers
    freed: dict[int, int] = field(default_factory=dict)  # by place, the row


class FullSlabs:
    """Takes the rows of a trace block by block, as rows.c writes them.

    `caches`: names by number; `gfp`: texts by number; `base`: where the direct map begins; `shift`: bits of an address within a page;
    `first_number`: no row's object has it or a higher one.
    """

    def __init__(self, caches: Sequence[str], gfp: Sequence[str], base: int, shift: int, first_number: int) -> None:
        self._classes = [kernel.class_of(one) for one in caches]
        self._types = [flags_of(one) & _TYPES for one in gfp]
        self._base, self._shift, self._next = base, shift, first_number
        self._numbers: deque[tuple[int, int]] = deque()  # to be used again, and the row from which on
        self._of_page: dict[int, _Slab] = {}
        self._slabs: dict[Kind, dict[int, _Slab]] = {}  # by kind of the first object, by address
        self._open: dict[Kind, dict[int, _Slab]] = {}  # of these, all that may have a free place
        self._places: dict[Kind, set[int]] = {}  # likewise
        self._rows = 0
        self._added: list[tuple[int, int, int, Like]] = []  # before which row of the block: address, number, what
        self.frees = self.allocations = 0

    def take(self, block: Block) -> Block:
        """The block with the events that its rows imply."""
        kind, owner = block["kind"], block["owner"]
        pages = ((kind == PAGE_ALLOC) | (kind == PAGE_FREE)) & (owner == SLAB) & (block["origin"] != OLDER)
        rows = np.flatnonzero((kind <= CACHE_FREE) | pages)
        columns = [block[name][rows].tolist() for name in ("kind", "address", "order", "migratetype")]
        self._added = []
        for row, event, address, order, migratetype in zip(rows.tolist(), *columns, strict=True):
            if event == PAGE_ALLOC:
                slab = _Slab(self._base + (address << self._shift), self._rows + row, migratetype)
                self._of_page.update(dict.fromkeys(range(address, address + (1 << order)), slab))
            elif event == PAGE_FREE:
                self._give_back(row, address)
            elif (held := self._of_page.get(address - self._base >> self._shift)) is not None:
                if event in (KMALLOC, CACHE_ALLOC):
                    self._allocate(block, row, held, address - held.begin)
                else:
                    self._free(row, held, address - held.begin)
        self._rows += len(kind)
        return self._rewritten(block)

    def _give_back(self, row: int, frame: int) -> None:
        slab = self._of_page.pop(frame, None)
        if slab is None:
            return
        while self._of_page.get(frame := frame + 1) is slab:
            del self._of_page[frame]
        for place in list(slab.unseen):
            self._end(row, slab, place)
        if slab.kind:
            del self._slabs[slab.kind][slab.begin]
            self._open[slab.kind].pop(slab.begin, None)

    def _allocate(self, block: Block, row: int, slab: _Slab, place: int) -> None:
        if place in slab.unseen:
            self._end(row, slab, place)
        if slab.kind is None:
            slab.like = {name: block[name][row].item() for name in _LIKE}
            slab.kind = self._kind(slab)
            others = self._open.setdefault(slab.kind, {})
            for other in sorted(others.values(), key=lambda one: one.row):
                if self._fill(max(0, slab.row - self._rows), slab.row, other, slab.kind):
                    del others[other.begin]
            self._slabs.setdefault(slab.kind, {})[slab.begin] = others[slab.begin] = slab
        slab.live.add(place)
        slab.freed.pop(place, None)
        places = self._places.setdefault(slab.kind, set())
        if place not in places:
            places.add(place)
            self._open[slab.kind] = dict(self._slabs[slab.kind])

    def _kind(self, slab: _Slab) -> Kind:
        cache = slab.like["cache"]
        if cache == NO_CACHE:
            type_of = self._types[slab.like["gfp_flags"]] | ACCOUNT * slab.like["accounted"]
            padded = slab.like["size"] <= _PADDED < slab.like["allocated"] == 128  # SLAB has two classes with objects of 128 bytes
            return (-_PADDED if padded else -slab.like["allocated"], type_of, slab.migratetype)
        return (-self._classes[cache], 0, slab.migratetype) if self._classes[cache] else (cache, 0, slab.migratetype)

    def _free(self, row: int, slab: _Slab, place: int) -> None:
        if place in slab.unseen:
            self._end(row, slab, place)
        slab.live.discard(place)
        slab.freed[place] = self._rows + row
        if slab.kind:
            self._open[slab.kind][slab.begin] = slab

    def _fill(self, row: int, since: int, slab: _Slab, kind: Kind) -> bool:
        """What was free in a slab before the new one came was not: objects had come unseen. Whether the slab is full now."""
        if not slab.live:
            return False
        full = True
        seen, stride = slab.live | slab.freed.keys(), max(1, slab.like["allocated"])
        first = min(seen)
        for place in sorted((self._places[kind] | set(range(first, max(seen), stride))) - slab.live):
            if (place - first) % stride:
                continue
            if slab.freed.get(place, -1) >= since:
                full = False
                continue
            number = slab.unseen[place] = self._numbers.popleft()[1] if self._numbers and self._numbers[0][0] < since else self._next
            self._next += number == self._next
            slab.live.add(place)
            self.allocations += 1
            self._added.append((row, slab.begin + place, number, slab.like))
        return full

    def _end(self, row: int, slab: _Slab, place: int) -> None:
        number = slab.unseen.pop(place)
        slab.live.discard(place)
        self._numbers.append((self._rows + row, number))
        self.frees += 1
        if slab.kind:
            self._open[slab.kind][slab.begin] = slab
        free = KFREE if slab.like["kind"] == KMALLOC else CACHE_FREE
        self._added.append((row, slab.begin + place, number, {**slab.like, "kind": free, "gfp_flags": 0, "accounted": 0}))

    def _rewritten(self, block: Block) -> Block:
        if not self._added:
            return block
        self._added.sort(key=lambda one: one[0])
        at = np.array([row for row, *_ in self._added], np.int64)
        values: dict[str, Any] = {name: [like[name] for *_, like in self._added] for name in _LIKE}
        values["address"] = np.array([address for _, address, *_ in self._added], np.uint64)
        values["object"] = [one[2] for one in self._added]
        return with_implied(block, at, values)
