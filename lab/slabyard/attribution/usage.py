"""Allocations, frees and live memory by cache, call site, task or stack, over a whole trace or between two moments of it.

A free belongs to whoever allocated the object, not to whoever frees it. An event has no more than the number of its object, so this
file joins each free with its allocation. Object numbers are reused after the free; between two uses of one number lies a free. Within
one row group the events are sorted by object number, stably, and the row before a free is then its allocation. What lives on into the
next row group is carried in one array, indexed by object number, that holds the key of the allocation:

    row group       object  7 alloc (key 3)    sorted by object:   7 alloc   key 3
                    object  9 alloc (key 5)                        7 free    key 3, from the row above
                    object  7 free                                 9 alloc   key 5  -> carried[9] = 5

A key stands for one combination of what the caller groups by. All of this is array arithmetic: a million events take about half a
second, and memory follows the highest object number and the number of keys, not the length of the trace.

`live` counts objects that the trace saw allocated. What is older than the trace is unknown, except where it is freed: such frees count
as frees and in the growth (of a cache with known object size, also in bytes), under "(older than the trace)" where the call site or task
is asked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from ..base.errors import UserError
from ..trace.cache_names import kmalloc_class
from ..trace.file import (
    CACHE_ALLOC,
    CACHE_FREE,
    KFREE,
    KINDS,
    KMALLOC,
    NO_CACHE,
    NO_OBJECT,
    OLDER,
    ORIGINS,
    SNAPSHOT,
    Metadata,
    Trace,
    Vocabulary,
    codes,
    recorded_curve,
)
from ..trace.snapshots import kmalloc_name

OF_OBJECTS = ("kind", "origin", "object", "size", "allocated", "cache")  # columns that Rows takes
DIMENSIONS = ("cache", "call_site", "stack", "task", "pid")
FIGURES = (
    "allocations", "frees", "allocated_bytes", "live_objects", "live_bytes", "requested_bytes", "peak_bytes", "growth_objects",
    "growth_bytes",
)  # fmt: skip
OLDER_NAME = "(older than the trace)"
UNTRACED_NAME = "(not traced)"
UNKNOWN_CACHE = "(unknown cache)"
UNKNOWN_KMALLOC = "(kmalloc, size unknown)"
_MODULE = re.compile(r" \[([^\]]+)\]$")
_NONE = -1
SHOWN_NS = 10**6  # times are shown in milliseconds


@dataclass(frozen=True)
class Window:
    """Rows of a trace: from the first to before the last, and their times in nanoseconds."""

    first: int
    last: int
    since: int
    until: int


def usage(trace: Trace, by: Sequence[str] = ("cache",), window: Window | None = None) -> pa.Table:
    """One row for each combination of the dimensions `by`, the most live bytes first.

    The columns are the dimensions as text (pid as a number), `module` behind `call_site`, and FIGURES (int64). Bytes are those that
    the recorded allocator made of requests, except `requested_bytes`. UserError for a dimension that this trace does not have.
    """
    check_dimensions(trace, by)
    bounds = window or Window(0, trace.rows, 0, 0)
    keys = Keys(trace.metadata, by)
    ledger = _Ledger()
    row = 0
    for part in batches_until(trace, bounds.last, [*OF_OBJECTS, *by]):
        before = min(max(bounds.first - row, 0), part.num_rows)
        if before:
            ledger.add(part.slice(0, before), keys, counted=False)
        if before < part.num_rows:
            ledger.add(part.slice(before), keys, counted=True)
        row += part.num_rows
    return keys.table(ledger.figures(len(keys)), ("live_bytes", "growth_bytes", "allocations"))


def batches_until(trace: Trace, last: int, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The row groups before the row `last`, of one of them what stands before it. A column may be named twice."""
    row = 0
    for batch in trace.batches(list(dict.fromkeys(columns))):
        if row >= last:
            return
        yield batch.slice(0, min(batch.num_rows, last - row))
        row += batch.num_rows


def check_dimensions(trace: Trace, by: Sequence[str]) -> None:
    """UserError where the trace lacks one."""
    for name in by:
        if name not in DIMENSIONS:
            raise UserError(f"nothing is counted by {name!r}; there are {', '.join(DIMENSIONS)}")
        if name != "cache" and name not in trace.columns:
            how = "record it again with record -g" if name == "stack" else "import its capture again"
            raise UserError(f"{trace.path}: has no column {name}; {how}")


def present_dimensions(trace: Trace) -> list[str]:
    """The dimensions that this trace has, tasks by name alone."""
    return [name for name in DIMENSIONS if name == "cache" or (name != "pid" and name in trace.columns)]


def window_of(trace: Trace, since: str | None, until: str | None) -> Window:
    """The rows between two moments; None: the trace's begin, its end.

    A moment is the name of a mark, a time in seconds since the first event, or `peak`: when the recorded allocator held most pages.
    Marks, which are rows themselves, take all that stands before them. UserError for any other word, a time after the trace's end, or an
    end before the begin.
    """
    span = round(trace.metadata.span_seconds * 1e9)
    first, at = (0, 0) if since is None else _moment(trace, since)
    last, to = (trace.rows, span) if until is None else _moment(trace, until)
    if first > last or at > to:
        raise UserError(f"{since} is later than {until}; give the earlier one to --from")
    return Window(first, last, at, to)


def _moment(trace: Trace, word: str) -> tuple[int, int]:
    """The row and the time in nanoseconds."""
    marks = [one.name for one in trace.metadata.snapshots]
    if word in marks:
        return _row_of_mark(trace, marks.index(word)), trace.metadata.snapshots[marks.index(word)].time
    if word == "peak":
        curve = recorded_curve(trace, with_older=True)
        time = int(curve.times[int(np.argmax(curve.pages))]) if len(curve.times) else 0
        return _row_after(trace, time), time
    if not re.fullmatch(r"\d{1,9}(\.\d{1,9})?", word):
        known = f"the marks of this trace are {', '.join(marks)}" if marks else "this trace has no marks"
        raise UserError(f"{word!r} is not a time: give seconds since the first event, or peak, or a mark; {known}")
    time, end = round(float(word) * 1e9), round(trace.metadata.span_seconds * 1e9)
    if time > -(-end // SHOWN_NS) * SHOWN_NS:  # the end as it is shown may be given
        raise UserError(f"{word} is after the trace's end ({end / 1e9:,.3f} s)")
    return _row_after(trace, time), min(time, end)


def _row_of_mark(trace: Trace, number: int) -> int:
    row = 0
    for batch in trace.batches(["kind", "object"]):
        found = np.flatnonzero((codes(batch["kind"], KINDS) == SNAPSHOT) & (batch["object"].to_numpy() == number))
        if len(found):
            return row + int(found[0])
        row += batch.num_rows
    return row


def _row_after(trace: Trace, time: int) -> int:
    row = 0
    for batch in trace.batches(["time"]):
        times = batch["time"].to_numpy()
        if len(times) and times[-1] > time:
            return row + int(np.searchsorted(times, time, side="right"))
        row += batch.num_rows
    return row


# ---- Keys --------------------------------------------------------------------------------------------------------


class Keys:
    """Combinations of the dimensions as numbers, in order of first appearance."""

    def __init__(self, metadata: Metadata, by: Sequence[str]) -> None:
        self.by = list(by)
        self._caches = metadata.caches
        self._lumps = metadata.shared_pages
        self._texts = {name: Vocabulary() for name in by}
        self._numbers: dict[tuple[int, ...], int] = {}

    def __len__(self) -> int:
        return len(self._numbers)

    def number(self, rows: Rows, chosen: np.ndarray) -> np.ndarray:
        """int64 for each of the chosen rows (positions): its key. The rows are allocations, and frees of older objects."""
        if not len(chosen):
            return np.zeros(0, np.int64)
        parts = [self._cache(rows, chosen) if name == "cache" else self._text(rows, chosen, name) for name in self.by]
        combined = parts[0].astype(np.int64)
        for part in parts[1:]:
            _, combined = np.unique(combined, return_inverse=True)
            combined = combined.astype(np.int64) << 32 | part
        _, first, inverse = np.unique(combined, return_index=True, return_inverse=True)
        stacked = np.stack(parts, axis=1)[first]
        numbers = [self._numbers.setdefault(tuple(one), len(self._numbers)) for one in stacked.tolist()]
        return np.asarray(numbers, np.int64)[inverse]

    def _cache(self, rows: Rows, chosen: np.ndarray) -> np.ndarray:
        """Of kmallocs, the size class; of the rest, the cache."""
        cache = rows.cache[chosen].astype(np.int64)
        nameless = cache == NO_CACHE
        older = rows.older[chosen]
        cache[nameless] += 1 + kmalloc_class(rows.size[chosen[nameless]], rows.allocated[chosen[nameless]], self._lumps)
        cache[nameless & older] = np.where(rows.kind[chosen[nameless & older]] == KFREE, -1, -2)
        found, inverse = np.unique(cache, return_inverse=True)
        names = self._texts["cache"]
        return np.asarray([names.number(self._cache_name(int(one))) for one in found], np.uint32)[inverse]

    def older_bytes(self, cache: np.ndarray) -> np.ndarray:
        """int64: bytes of an object of each of these caches in the recorded allocator; 0 where that is not known."""
        sizes = np.asarray([*(one.slab_size or one.object_size for one in self._caches), 0], np.int64)
        return sizes[np.minimum(cache, len(self._caches))]

    def _cache_name(self, code: int) -> str:
        if code < 0:
            return UNKNOWN_KMALLOC if code == -1 else UNKNOWN_CACHE
        if len(self._caches) <= code <= NO_CACHE:
            raise UserError("the trace names a cache that its list of caches lacks; import or record it again")
        return kmalloc_name(code - NO_CACHE - 1) if code > NO_CACHE else self._caches[code].label

    def _text(self, rows: Rows, chosen: np.ndarray, name: str) -> np.ndarray:
        """Call sites, stacks, tasks. What the frees of older objects tell is who freed them, so it is not taken."""
        texts = self._texts[name]
        column = rows.batch[name]
        if name == "pid":
            numbers = np.where(rows.older[chosen], -1, column.to_numpy()[chosen])
            found, inverse = np.unique(numbers, return_inverse=True)
            return np.asarray([texts.number(str(one)) for one in found.tolist()], np.uint32)[inverse]
        numbers = codes(column, texts)[chosen]
        numbers[rows.older[chosen]] = texts.number(OLDER_NAME)
        return numbers

    def names(self) -> list[str]:
        """Of each key the text of the first dimension."""
        return [self._texts[self.by[0]].texts[number] for number, *_ in self._numbers]

    def table(self, figures: dict[str, np.ndarray], order_by: Sequence[str]) -> pa.Table:
        """The keys with their figures, the highest of `order_by` first; keys of which all figures are 0 are left out.

        Whole numbers become int64; figures that are shares of pages, which have fractions, become float64 with one decimal.
        """
        places = np.asarray(list(self._numbers), np.int64).reshape(len(self), len(self.by))
        used = np.flatnonzero(np.any([one != 0 for one in figures.values()], axis=0)) if len(self) else np.zeros(0, np.int64)
        order = used[np.lexsort((used, *(-figures[name][used] for name in reversed(order_by))))]
        columns: dict[str, pa.Array] = {}
        for place, name in enumerate(self.by):
            texts = [self._texts[name].texts[number] or UNTRACED_NAME for number in places[order, place].tolist()]
            columns[name] = pa.array([int(text) for text in texts], pa.int32()) if name == "pid" else pa.array(texts, pa.string())
            if name == "call_site":
                columns["module"] = pa.array([module(text) for text in texts], pa.string())
        for name, figure in figures.items():
            shares = name == "held_pages"
            columns[name] = pa.array(np.round(figure[order], 1) if shares else np.rint(figure[order]).astype(np.int64))
        return pa.table(columns)


def module(call_site: str) -> str:
    """`ext4` of `ext4_alloc_inode+0x1c [ext4]`; an empty text for the kernel itself, and where the trace does not tell."""
    found = _MODULE.search(call_site)
    return found[1] if found else ""


# ---- Figures -----------------------------------------------------------------------------------------------------


class Rows:
    """One piece of a row group as arrays."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        self.batch = batch
        self.kind = codes(batch["kind"], KINDS)
        self.older = codes(batch["origin"], ORIGINS) == OLDER
        self.object = batch["object"].to_numpy()
        self.size = batch["size"].to_numpy()
        self.allocated = batch["allocated"].to_numpy()
        self.cache = batch["cache"].to_numpy()
        self.allocates = (self.kind == KMALLOC) | (self.kind == CACHE_ALLOC)
        self.frees = (self.kind == KFREE) | (self.kind == CACHE_FREE)


def with_room(array: np.ndarray, count: int, fill: int = 0) -> np.ndarray:
    """An array by object number, of that many elements at least; where it grows it doubles, as numbers rise a little each time."""
    more = count - len(array)
    return array if more <= 0 else np.concatenate([array, np.full(max(more, len(array)), fill, array.dtype)])


class Joiner:
    """Joins frees with the keys of their allocations, row group after row group."""

    def __init__(self) -> None:
        self._carried = np.full(1 << 12, _NONE, np.int64)

    def join(self, rows: Rows, chosen: np.ndarray, keys: np.ndarray) -> np.ndarray:
        """The keys of the chosen rows (allocations and frees with an object), in which those of frees are filled in; _NONE: unknown."""
        objects = rows.object[chosen]
        if not len(objects):
            return keys
        self._carried = with_room(self._carried, int(objects.max()) + 1, _NONE)
        order = np.argsort(objects, kind="stable")
        sorted_objects, sorted_keys = objects[order], keys[order]
        frees = rows.frees[chosen][order]
        new = np.concatenate([[True], sorted_objects[1:] != sorted_objects[:-1]])
        known = np.where(new, self._carried[sorted_objects], np.concatenate([[_NONE], sorted_keys[:-1]]))
        sorted_keys = np.where(frees, known, sorted_keys)
        last = np.concatenate([new[1:], [True]])
        self._carried[sorted_objects[last]] = np.where(frees[last], _NONE, sorted_keys[last])
        out = np.empty_like(sorted_keys)
        out[order] = sorted_keys
        return out


@dataclass
class _Ledger:
    """The figures by key, so far."""

    joiner: Joiner = field(default_factory=Joiner)
    sums: dict[str, np.ndarray] = field(default_factory=lambda: {name: np.zeros(0, np.int64) for name in FIGURES})

    def add(self, batch: pa.RecordBatch, keys: Keys, counted: bool) -> None:
        """Takes in rows. Those before the window are not `counted`: they only say what lives when it begins."""
        rows = Rows(batch)
        chosen = np.flatnonzero((rows.allocates | rows.frees) & ((rows.object != NO_OBJECT) | rows.older))
        direct = rows.allocates[chosen] | rows.older[chosen]
        key = np.full(len(chosen), _NONE, np.int64)
        key[direct] = keys.number(rows, chosen[direct])
        joined = ~rows.older[chosen]
        key[joined] = self.joiner.join(rows, chosen[joined], key[joined])
        known = key != _NONE
        chosen, key = chosen[known], key[known]
        self._grow(len(keys))
        sign = np.where(rows.allocates[chosen], 1, -1)
        older = rows.older[chosen]
        made = rows.allocated[chosen].astype(np.int64)
        if counted:
            self._count("allocations", key[sign > 0])
            self._count("frees", key[sign < 0])
            self._count("allocated_bytes", key[sign > 0], made[sign > 0])
            self._count("growth_objects", key, sign)
            self._count("growth_bytes", key, sign * np.where(older & (made == 0), keys.older_bytes(rows.cache[chosen]), made))
        key, sign, made, chosen = key[~older], sign[~older], made[~older], chosen[~older]
        self._peaks(key, sign * made, counted)
        self._count("live_objects", key, sign)
        self._count("live_bytes", key, sign * made)
        self._count("requested_bytes", key, sign * rows.size[chosen].astype(np.int64))

    def _grow(self, count: int) -> None:
        for name, sums in self.sums.items():
            self.sums[name] = np.concatenate([sums, np.zeros(count - len(sums), np.int64)])

    def _count(self, name: str, key: np.ndarray, amounts: np.ndarray | None = None) -> None:
        """bincount adds up floats, which are exact below 2^53 bytes."""
        found = np.bincount(key, amounts, len(self.sums[name]))
        self.sums[name] += found.astype(np.int64)

    def _peaks(self, key: np.ndarray, changes: np.ndarray, counted: bool) -> None:
        """The highest sums of live bytes on the way, by key; `live_bytes` is still that before these rows."""
        live, peak = self.sums["live_bytes"], self.sums["peak_bytes"]
        if not counted or not len(key):
            return
        np.maximum(peak, live, out=peak)
        order = np.argsort(key, kind="stable")
        sorted_key, sums = key[order], changes[order].cumsum()
        starts = np.flatnonzero(np.concatenate([[True], sorted_key[1:] != sorted_key[:-1]]))
        before = np.where(starts > 0, sums[starts - 1], 0)
        found = np.maximum.reduceat(sums, starts) - before
        owners = sorted_key[starts]
        peak[owners] = np.maximum(peak[owners], live[owners] + found)

    def figures(self, count: int) -> dict[str, np.ndarray]:
        self._grow(count)
        return self.sums
