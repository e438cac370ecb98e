"""Slabs that came without an event: what slabinfo of two snapshots has more of a cache than the trace saw its allocator take.

Some kernels keep a process out of tracing, and perf's own file costs slabs whose objects are left out. `Slab:` of meminfo counts all of
that. Each slab run of the trace belongs to the cache of the first object that is seen in it; what a cache gained by the trace is held
against what it gained by slabinfo. kmalloc's types (`kmalloc-cg-64`) count as one class, since events don't tell them apart.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from .file import KINDS, OWNERS, PAGE_ALLOC, PAGE_FREE, SLAB, SNAPSHOT, Trace, Vocabulary, codes
from .snapshots import parse_slabinfo

_TYPED = re.compile(r"(dma-)?kmalloc-(rcl-|cg-|rnd-\d+-)?")
_ROW_BITS = 32


def unseen_slabs(trace: Trace) -> dict[str, int] | None:
    """Pages by cache, the largest first; None where there are no two slabinfos, or nothing ties objects to pages."""
    metadata = trace.metadata
    tables = [parse_slabinfo(one.files.get("slabinfo", "")) for one in metadata.snapshots]
    if len(tables) < 2 or not tables[0] or not tables[-1] or metadata.direct_map.base is None:
        return None
    gained = _by_class({line.name: line.slabs * line.pages_per_slab for line in tables[-1]})
    gained.subtract(_by_class({line.name: line.slabs * line.pages_per_slab for line in tables[0]}))
    gained.subtract(_by_class(_gained_by_events(trace, int(metadata.direct_map.base, 16))))
    return dict(sorted(((name, pages) for name, pages in gained.items() if name and pages > 0), key=lambda one: (-one[1], one[0])))


def _by_class(pages: dict[str, int]) -> Counter[str]:
    found: Counter[str] = Counter()
    for name, count in pages.items():
        found[_TYPED.sub("kmalloc-", name, count=1) if _TYPED.match(name) else name] += count
    return found


@dataclass
class _Columns:
    """Rows of one kind between the first and the last snapshot: their number, a page frame, and an order or a cache's number."""

    row: list[np.ndarray] = field(default_factory=lambda: [np.empty(0, np.int64)])
    frame: list[np.ndarray] = field(default_factory=lambda: [np.empty(0, np.int64)])
    value: list[np.ndarray] = field(default_factory=lambda: [np.empty(0, np.int64)])

    def add(self, row: np.ndarray, frame: np.ndarray, value: np.ndarray) -> None:
        self.row.append(row.astype(np.int64))
        self.frame.append(frame.astype(np.int64))
        self.value.append(value.astype(np.int64))

    def joined(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return np.concatenate(self.row), np.concatenate(self.frame), np.concatenate(self.value)


def _gained_by_events(trace: Trace, base: int) -> dict[str, int]:
    """Pages that each cache's slabs took less those that they gave back; "" for those in which no object was seen."""
    names = Vocabulary([""])
    taken, given, objects = _Columns(), _Columns(), _Columns()
    page = np.uint64(trace.metadata.page_size)
    first, last, at = -1, -1, 0
    for batch in trace.batches(["kind", "owner", "order", "address", "object", "cache_name"]):
        kind, address = codes(batch["kind"], KINDS), batch["address"].to_numpy()
        slab = codes(batch["owner"], OWNERS) == SLAB
        name = codes(batch["cache_name"], names)
        for column, chosen, value in (
            (taken, slab & (kind == PAGE_ALLOC), batch["order"].to_numpy()), (given, slab & (kind == PAGE_FREE), batch["order"].to_numpy()),
        ):  # fmt: skip
            rows = np.flatnonzero(chosen)
            column.add(at + rows, address[rows], value[rows])
        rows = np.flatnonzero(name > 0)
        objects.add(at + rows, (address[rows] - np.uint64(base)) // page, name[rows])
        for mark in np.flatnonzero(kind == SNAPSHOT):
            first, last = (at + int(mark) if first < 0 else first), at + int(mark)
        at += batch.num_rows
    found = np.zeros(len(names.texts), np.int64)
    runs = _Runs(*taken.joined())
    row, frame, name = objects.joined()
    older = runs.learn(row, frame, name)
    inside = (runs.row > first) & (runs.row < last)
    np.add.at(found, runs.name[inside], 1 << runs.order[inside])
    row, frame, order = given.joined()
    inside = (row > first) & (row < last)
    row, frame, order = row[inside], frame[inside], order[inside]
    run = runs.at(row, frame)
    np.add.at(found, runs.name[run[run >= 0]], -(1 << order[run >= 0]))
    for start, count in zip(frame[run < 0].tolist(), (1 << order[run < 0]).tolist(), strict=True):
        found[next((older[one] for one in range(start, start + count) if one in older), 0)] -= count
    return dict(zip(names.texts, found.tolist(), strict=True))


class _Runs:
    """Slab runs by the row that took them. `name` is that of the first object seen in each, 0: none was."""

    def __init__(self, row: np.ndarray, frame: np.ndarray, order: np.ndarray) -> None:
        self.row, self.order, self.name = row, order, np.zeros(len(row), np.int64)
        pages = 1 << order
        starts = np.repeat(np.cumsum(pages) - pages, pages)
        frames = np.repeat(frame, pages) + np.arange(len(starts)) - starts
        keys = frames << _ROW_BITS | np.repeat(row, pages)
        by_key = np.argsort(keys)
        self._keys, self._run = keys[by_key], np.repeat(np.arange(len(row)), pages)[by_key]

    def at(self, row: np.ndarray, frame: np.ndarray) -> np.ndarray:
        """int64: the run that last took each frame before the row, by number; -1: none did."""
        if not len(self._keys):
            return np.full(len(row), -1, np.int64)
        place = np.searchsorted(self._keys, frame << _ROW_BITS | row) - 1
        same = (place >= 0) & (self._keys[place] >> _ROW_BITS == frame)
        return np.where(same, self._run[place], -1)

    def learn(self, row: np.ndarray, frame: np.ndarray, name: np.ndarray) -> dict[int, int]:
        """Names the runs after the objects in them. Returns the names of frames older than the trace, by frame."""
        run = self.at(row, frame)
        runs, first = np.unique(run[run >= 0], return_index=True)
        self.name[runs] = name[run >= 0][first]
        frames, first = np.unique(frame[run < 0], return_index=True)
        return dict(zip(frames.tolist(), name[run < 0][first].tolist(), strict=True))
