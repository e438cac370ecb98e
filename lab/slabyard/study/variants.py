"""Traces made of recorded ones: the same requests under another condition.

A claim that does not hold on our recording may hold on another machine's. What was different there is varied one by one, on the
recording itself, and each variant is a trace like any other, which any allocator can be replayed with:

    stretched   the same load, more slowly: what an allocator does by the clock gets its time
    resized     smaller objects, as on a machine whose pointers have four bytes
    general     every object by kmalloc: no caches of one kind each
    thinned     a load that comes and goes, with fewer objects
    stitched    pieces of a recording one after the other, as long as one likes
    beside      other users hold part of the memory, from the start to the end

Rows of pages are left out unless a variant asks for them: a replayed allocator takes pages of its own.
"""

from __future__ import annotations

import copy
import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ..trace.file import (
    CACHE_ALLOC,
    CACHE_FREE,
    ENVIRONMENT,
    KFREE,
    KINDS,
    KMALLOC,
    METADATA_KEY,
    NO_CACHE,
    OLDER,
    ORIGINS,
    OWNERS,
    PAGE_ALLOC,
    PAGE_SIZE,
    SCHEMA,
    SNAPSHOT,
    Metadata,
    Snapshot,
    Trace,
    Vocabulary,
    codes,
    made_rows,
    text_column,
)

POINTER_FREE = 2048  # bytes: larger objects are buffers, whose size does not depend on pointers
MOVABLE = 1  # migratetype of user memory
MOST_ORDER = 10  # of a block: memory that others have is less than one of these


@dataclass
class Recording:
    """Rows of objects and marks: columns of one length. `site` and `flags` are numbers in `texts`."""

    time: np.ndarray
    kind: np.ndarray
    object: np.ndarray  # unique: an allocation and its free have it, nobody else
    size: np.ndarray
    cache: np.ndarray
    metadata: Metadata
    gfp: np.ndarray
    texts: list[str] = field(default_factory=list)  # of gfp
    others: int = 0  # pages of memory that somebody else has, from the start to the end

    @property
    def allocates(self) -> np.ndarray:
        """Of each row, whether it allocates."""
        return (self.kind == KMALLOC) | (self.kind == CACHE_ALLOC)

    @property
    def frees(self) -> np.ndarray:
        """Of each row, whether it frees."""
        return (self.kind == KFREE) | (self.kind == CACHE_FREE)

    def where(self, rows: np.ndarray) -> Recording:
        """Some rows of it."""
        columns = {name: getattr(self, name)[rows] for name in ("time", "kind", "object", "size", "cache", "gfp")}
        return dataclasses.replace(self, **columns)

    def marks(self) -> dict[str, int]:
        """The row of each mark by its name."""
        return {self.metadata.snapshots[int(self.object[row])].name: int(row) for row in np.flatnonzero(self.kind == SNAPSHOT)}

    def write(self, path: Path) -> Path:
        """As a trace."""
        rows = len(self.time)
        made = {
            "time": self.time, "kind": text_column(self.kind, np.array(KINDS, object)), "object": self.object, "size": self.size,
            "allocated": self.size, "cache": self.cache, "gfp_flags": text_column(self.gfp, np.array(self.texts, object)),
            "migratetype": np.full(rows, -1), "node": np.full(rows, -1),
            "origin": text_column(np.zeros(rows, np.int32), np.array(["recorded"], object)),
        }  # fmt: skip
        whole = pa.concat_tables([self._of_others(), made_rows(made, rows)])
        metadata = copy.copy(self.metadata)
        metadata.rows, metadata.zones = whole.num_rows, []
        metadata.span_seconds = float(self.time[-1]) / 1e9 if rows else 0.0
        metadata.snapshots = [Snapshot(one.name, one.time) for one in self.metadata.snapshots]
        table = whole.replace_schema_metadata({METADATA_KEY: metadata.to_json().encode()})
        packed = {"time": "DELTA_BINARY_PACKED", "object": "DELTA_BINARY_PACKED"}
        same = [name for name in SCHEMA.names if name not in packed]
        pq.write_table(table, path, compression="zstd", compression_level=9, use_dictionary=same, column_encoding=packed)
        return path

    def _of_others(self) -> pa.Table:
        """Rows of the pages that others have: blocks, the largest first."""
        orders = [order for order in reversed(range(MOST_ORDER)) if self.others >> order & 1]
        rows = len(orders)
        first = int(self.object.max(initial=-1)) + 1
        made = {
            "time": np.zeros(rows, np.int64), "kind": text_column(np.full(rows, PAGE_ALLOC, np.int32), np.array(KINDS, object)),
            "object": first + np.arange(rows), "size": PAGE_SIZE << np.array(orders, np.int64), "cache": np.full(rows, NO_CACHE),
            "order": np.array(orders, np.int64), "migratetype": np.full(rows, MOVABLE), "node": np.full(rows, -1),
            "owner": text_column(np.full(rows, ENVIRONMENT, np.int32), np.array(OWNERS, object)),
            "gfp_flags": text_column(np.zeros(rows, np.int32), np.array(["GFP_HIGHUSER_MOVABLE"], object)),
            "origin": text_column(np.zeros(rows, np.int32), np.array(["recorded"], object)),
        }  # fmt: skip
        return made_rows(made, rows)


def read(path: Path) -> Recording:
    """A trace's objects and marks, without objects that are older than it. Each object gets a number of its own."""
    parts: list[list[np.ndarray]] = []
    known = Vocabulary()
    with Trace(path) as trace:
        for batch in trace.batches(["time", "kind", "origin", "object", "size", "cache", "gfp_flags"]):
            kind = codes(batch["kind"], KINDS).astype(np.int32)
            older = codes(batch["origin"], ORIGINS) == OLDER
            keep = ((kind <= CACHE_FREE) & ~older) | (kind == SNAPSHOT)
            numbers = codes(batch["gfp_flags"], known)
            columns = [batch[name].to_numpy().astype(np.int64) for name in ("time", "object", "size", "cache")]
            parts.append([column[keep] for column in (columns[0], kind, *columns[1:], numbers)])
        metadata = trace.metadata
    time, kind, number, size, cache, flags = (np.concatenate(column) for column in zip(*parts, strict=True))
    found = Recording(time, kind, number, size, cache, metadata, flags, known.texts)
    return _renumbered(found)


def _renumbered(recording: Recording) -> Recording:
    """Numbers of objects are used again after a free; here each is used once. What frees nothing of this recording is left out."""
    names = recording.object.copy()
    now: dict[int, int] = {}
    keep = np.ones(len(names), bool)
    count = 0
    for row, (allocates, is_mark) in enumerate(zip(recording.allocates.tolist(), (recording.kind == SNAPSHOT).tolist(), strict=True)):
        if is_mark:
            continue
        number = int(names[row])
        if allocates:
            now[number] = names[row] = count
            count += 1
        elif number in now:
            names[row] = now.pop(number)
        else:
            keep[row] = False
    recording.object = names
    return recording.where(keep)


# ---- Variants --------------------------------------------------------------------------------------------------------------------


def stretched(recording: Recording, factor: float) -> Recording:
    """All that happens, `factor` times as slowly."""
    made = copy.copy(recording)
    made.time = (recording.time * factor).astype(np.int64)
    return made


def resized(recording: Recording, factor: float) -> Recording:
    """Small objects `factor` times as large, in whole words of four bytes."""
    made = copy.copy(recording)
    words = np.maximum(1, np.ceil(recording.size * factor / 4)).astype(np.int64)
    made.size = np.where(recording.size <= POINTER_FREE, 4 * words, recording.size)
    made.metadata = copy.copy(recording.metadata)
    made.metadata.caches = [copy.copy(one) for one in recording.metadata.caches]
    for cache in made.metadata.caches:
        if cache.object_size <= POINTER_FREE:
            cache.object_size = max(4, 4 * math.ceil(cache.object_size * factor / 4))
    return made


def beside(recording: Recording, pages: int) -> Recording:
    """With so many pages of the memory somebody else's."""
    return dataclasses.replace(recording, others=pages)


def general(recording: Recording) -> Recording:
    """Every object asked for by its size alone."""
    made = copy.copy(recording)
    made.kind = np.where(recording.kind == CACHE_ALLOC, KMALLOC, np.where(recording.kind == CACHE_FREE, KFREE, recording.kind))
    made.cache = np.full(len(recording.cache), NO_CACHE, np.int64)
    return made


def thinned(recording: Recording, begin: str, end: str, share: float) -> Recording:
    """Of the objects that are allocated and freed between two marks, only a share, evenly spread."""
    marks = recording.marks()
    rows = np.arange(len(recording.time))
    inside = (rows > marks[begin]) & (rows < marks[end])
    born = np.unique(recording.object[inside & recording.allocates])
    died = np.unique(recording.object[inside & recording.frees])
    both = np.intersect1d(born, died)
    gone = both[np.floor(np.arange(len(both)) * share) == np.floor((np.arange(len(both)) + 1) * share)]
    return recording.where(~(np.isin(recording.object, gone) & (recording.kind != SNAPSHOT)))


def piece(recording: Recording, begin: str | None, end: str) -> Recording:
    """What happens between two marks (None: from the start), without the marks, from time 0."""
    marks = recording.marks()
    first, last = (0 if begin is None else marks[begin] + 1), marks[end]
    part = recording.where(np.arange(first, last))
    part = part.where(part.kind != SNAPSHOT)
    born = np.isin(part.object, part.object[part.allocates])
    part = part.where(born)
    if begin is not None and len(part.time):
        part.time = part.time - part.time[0]
    return part


_NONE = tuple(np.zeros(0, np.int64) for _ in range(4))


def _parted(objects: tuple[np.ndarray, ...], draw: np.random.Generator | None) -> tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]:
    """What goes and what stays: all and nothing, or halves that are drawn."""
    goes = np.ones(len(objects[0]), bool) if draw is None else draw.random(len(objects[0])) < 0.5
    return tuple(column[goes] for column in objects), tuple(column[~goes] for column in objects)


def stitched(pieces: Sequence[tuple[str, int, Recording | None]], draw: np.random.Generator | None = None) -> Recording:
    """Pieces of one recording by name, each from its time (ns) on, or as soon as the one before has ended; None is a mark of that name.

    What a piece leaves behind lives until the next piece of that name begins: a cache of names or of files has room for so many, and new
    ones take the place of old ones. `draw`: of what any piece but the first has left, half goes at each piece, drawn anew, so that
    lifetimes vary.
    """
    columns: list[tuple[np.ndarray, ...]] = []
    left: dict[str, tuple[np.ndarray, ...]] = {}
    marks: list[Snapshot] = []
    source: Recording | None = None
    count = now = 0
    for name, begin, part in pieces:
        now = max(begin, now)
        if part is None:
            columns.append(tuple(np.array([value]) for value in (now, SNAPSHOT, len(marks), 0, NO_CACHE, 0)))
            marks.append(Snapshot(name, now))
            continue
        source = part
        name = name if draw is None or not columns else "any but the first"
        if name in left:
            going, staying = _parted(left.pop(name), draw)
            if draw is not None:
                left[name] = staying
            number, size, cache, flags = going
            columns.append((np.full(len(number), now), np.where(cache == NO_CACHE, KFREE, CACHE_FREE), number, size, cache, flags))
        names, number = np.unique(part.object, return_inverse=True)
        number = number + count
        count += len(names)
        columns.append((part.time + now, part.kind, number, part.size, part.cache, part.gfp))
        stays = part.allocates & ~np.isin(number, number[part.frees])
        mine = (number[stays], part.size[stays], part.cache[stays], part.gfp[stays])
        left[name] = tuple(np.concatenate(pair) for pair in zip(left.get(name, _NONE), mine, strict=True))
        now += int(part.time[-1]) if len(part.time) else 0
    assert source is not None
    time, kind, number, size, cache, flags = (np.concatenate(column) for column in zip(*columns, strict=True))
    metadata = copy.copy(source.metadata)
    metadata.snapshots = marks
    return Recording(time, kind, number, size, cache, metadata, flags, source.texts)
