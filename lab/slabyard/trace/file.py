"""A trace on disk: its columns, its metadata, and reading it in row groups, never whole.

docs/trace-format.md defines every column and every metadata field; this module is that document as code. A trace is one
Parquet file whose file-level metadata has the key `slabyard`, a JSON object with the fields of Metadata.

Text columns are dictionary encoded, and each row group has dictionaries of its own. Code that works on numbers asks for
`codes(column, vocabulary)`, which translates one row group's codes into positions in a fixed vocabulary (KINDS, ORIGINS,
OWNERS) or in a Vocabulary that grows as new texts appear (call sites, GFP flags). Both cost one small table per row
group, not one Python string per row.

The recorded kernel's own memory is a line of the trace like any other: the page runs whose owner is `slab` or `large`,
from their allocation to their free. recorded_curve() adds them up.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import mmap
import types
import typing
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ..base.errors import UserError
from ..base.table import counted
from . import cache_names
from .snapshots import Zone, parse_meminfo

T = TypeVar("T")

VERSION = 1
METADATA_KEY = b"slabyard"
CHECKSUM_KEY = b"slabyard.crc32"  # of the metadata's bytes, eight hexadecimal digits; pages have checksums of Parquet's own
PAGE_SIZE = 4096  # of a replay
FEW_LATE = 1000  # one event in so many: a recorder's own slips
FEW_PAGES = 1024  # of unknown owner: a short capture in which no slab came or went has some
NO_OBJECT = 0xFFFFFFFF
FEW_OBJECTS = 1 << 20  # numbers of objects are reused, so there are no more than rows; these are left to who makes a trace by hand
MOST_ORDER = 30
NO_CACHE = 0xFFFF

KINDS = ("kmalloc", "kfree", "kmem_cache_alloc", "kmem_cache_free", "mm_page_alloc", "mm_page_free", "mm_page_alloc_extfrag", "snapshot")
KMALLOC, KFREE, CACHE_ALLOC, CACHE_FREE, PAGE_ALLOC, PAGE_FREE, EXTFRAG, SNAPSHOT = range(len(KINDS))
ORIGINS = ("recorded", "implied", "older")
RECORDED, IMPLIED, OLDER = range(len(ORIGINS))
OWNERS = ("", "slab", "large", "environment", "unknown")
NO_OWNER, SLAB, LARGE, ENVIRONMENT, UNKNOWN = range(len(OWNERS))

_TEXT = pa.dictionary(pa.int32(), pa.string())
SCHEMA = pa.schema(
    [
        pa.field(name, kind, nullable=False)
        for name, kind in (
            ("time", pa.int64()),
            ("cpu", pa.uint16()),
            ("kind", _TEXT),
            ("origin", _TEXT),
            ("object", pa.uint32()),
            ("address", pa.uint64()),
            ("size", pa.uint32()),
            ("allocated", pa.uint32()),
            ("cache", pa.uint16()),
            ("order", pa.uint8()),
            ("migratetype", pa.int8()),
            ("owner", _TEXT),
            ("gfp_flags", _TEXT),
            ("node", pa.int16()),
            ("accounted", pa.bool_()),
            ("call_site", _TEXT),
        )
    ]
)
STACK = pa.field("stack", _TEXT, nullable=False)  # a column of traces that were recorded with stacks
TASK = pa.field("task", _TEXT, nullable=False)  # and `pid`: columns of traces whose captures tell who did it
PID = pa.field("pid", pa.int32(), nullable=False)
CACHE_NAME = pa.field("cache_name", _TEXT, nullable=False)  # of all but the first traces; made of `cache` for these


@dataclass
class Cache:
    """One cache of the trace. `object_size` is the largest bytes_req seen; `align` 0 means the policy's default."""

    name: str
    object_size: int
    align: int = 0
    constructor: bool = False
    typesafe_by_rcu: bool = False
    hwcache_align: bool = False
    reclaimable: bool = False
    account: bool = False
    dma: bool = False
    no_merge: bool = False  # the kernel gives it slabs of its own: parts of its objects go to user space, or it serves the allocator
    known: bool = False  # the attributes are the kernel's own; otherwise the documented defaults
    slab_size: int | None = None  # bytes from object to object in the recorded allocator
    allocs: int = 0  # recorded ones
    frees: int = 0

    @property
    def label(self) -> str:
        """Its name for people; old kernels' events name no caches, and then nothing tells two of one size apart."""
        return self.name or f"(unnamed, {self.object_size} bytes)"

    def describe(self, attributes: dict[str, str]) -> None:
        """Fills in what /sys/kernel/slab says of the cache. What this kernel does not tell there stays as it was, or is 0."""

        def number(name: str) -> int:
            text = attributes.get(name, "").split()
            return int(text[0]) if text and text[0].isdigit() else 0

        self.known = True
        self.object_size = number("object_size") or self.object_size
        self.align = number("align")
        self.constructor = bool(attributes.get("ctor", ""))
        self.typesafe_by_rcu = number("destroy_by_rcu") == 1
        self.hwcache_align = number("hwcache_align") == 1
        self.reclaimable = number("reclaim_account") == 1
        self.account = number("account") == 1
        self.dma = number("cache_dma") == 1
        self.no_merge = never_merged(self.name, attributes)
        self.slab_size = number("slab_size") or self.slab_size


@dataclass
class Snapshot:
    """A point of the trace at which the kernel's own figures are known (`files` may be empty for a bare mark)."""

    name: str
    time: int  # ns since the first event
    files: dict[str, str] = field(default_factory=dict)
    slab_attributes: dict[str, dict[str, str]] | None = None


@dataclass
class DirectMap:
    """How pointers were tied to page frames. base is None when nothing in the capture ties them."""

    base: str | None = None
    hashed: bool = False  # no base, and the pointers look hashed
    explained: int = 0  # object events in a page run that the trace saw allocated
    older: int = 0  # object events in pages that the trace has not seen allocated: neither for nor against
    unexplained: int = 0  # object events in pages that cannot hold any: movable ones, freed ones, or none at all


@dataclass
class Metadata:
    """The JSON under the file's `slabyard` key; field meanings in docs/trace-format.md."""

    version: int = VERSION
    source: str = ""
    kernel: str = ""
    arch: str = ""
    command: list[str] | None = None
    capture: str = ""  # the file that was imported
    cgroup: str = ""  # whose tasks alone were recorded
    recorded_at: str | None = None
    cpus: int = 1
    nodes: int = 1
    page_size: int = 4096
    pageblock_order: int = 9
    from_boot: bool = False  # it begins when its kernel did
    span_seconds: float = 0.0
    events: dict[str, int] = field(default_factory=dict)
    unknown_events: dict[str, int] = field(default_factory=dict)
    rows: int = 0
    null_frees: int = 0
    failed_allocations: int = 0
    unknown_frees: int = 0
    implied_frees: int = 0
    implied_allocations: int = 0
    implied_page_frees: int = 0
    implied_page_allocations: int = 0
    lost: int = 0
    unparsed_lines: int = 0
    hidden_pointers: int = 0  # events without their object's address: (____ptrval____)
    partial: list[str] = field(default_factory=list)  # what shows that the recorder left events out, a clause each
    doubts: list[str] = field(default_factory=list)  # what may mean that events were left out, a clause each
    truncated: bool = False
    counted_times: bool = False  # times are a clock's counts, of an unknown length, taken for ns
    reordered: int = 0
    late: int = 0
    shared_pages: bool = False
    direct_map: DirectMap = field(default_factory=DirectMap)
    pages_of_unknown_owner: int = 0
    caches: list[Cache] = field(default_factory=list)
    zones: list[Zone] = field(default_factory=list)
    snapshots: list[Snapshot] = field(default_factory=list)

    def to_json(self) -> str:
        """The text under METADATA_KEY."""
        return json.dumps(dataclasses.asdict(self), separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str | bytes) -> Metadata:
        """Raises ValueError (or KeyError, TypeError) when the text is not a trace's metadata."""
        values: dict[str, Any] = json.loads(text)
        metadata = _build(cls, values)
        metadata.direct_map = _build(DirectMap, values.get("direct_map") or {})
        metadata.caches = [_build(Cache, cache) for cache in values.get("caches", [])]
        metadata.zones = [_build(Zone, zone) for zone in values.get("zones", [])]
        metadata.snapshots = [_build(Snapshot, snapshot) for snapshot in values.get("snapshots", [])]
        attributes = next((one.slab_attributes for one in metadata.snapshots if one.slab_attributes), {})
        for cache, stored in zip(metadata.caches, values.get("caches", []), strict=True):
            if "no_merge" not in stored:
                cache.no_merge = never_merged(cache.name, attributes.get(cache.name, {}))
        return metadata

    @property
    def extent(self) -> str:
        """How much it is of: `1,234 events of 0.57 s`."""
        return f"{counted(sum(self.events.values()), 'event')} of {self.span_seconds:,.2f} s"

    @property
    def has_pages(self) -> bool:
        """Whether there are events of pages; else what the kernel held is unknown."""
        return any(self.events.get(KINDS[kind]) for kind in (PAGE_ALLOC, PAGE_FREE))

    @property
    def has_objects(self) -> bool:
        """Whether there are events of objects, with their addresses, as far as an import has told."""
        events = sum(count for kind, count in self.events.items() if not kind.startswith("mm_page_"))
        return events > self.hidden_pointers or not (events or self.partial)

    @property
    def has_fallbacks(self) -> bool:
        """Whether fallbacks to another migrate type were recorded (with snapshots always); else their number is unknown."""
        return KINDS[EXTFRAG] in self.events or self.first_snapshot is not None

    @property
    def first_snapshot(self) -> Snapshot | None:
        """The first snapshot with figures of the kernel."""
        return next((one for one in self.snapshots if one.files), None)

    def first_text(self, file: str) -> str:
        """The first text of a file of /proc in a snapshot; empty where there is none."""
        return next((one.files[file] for one in self.snapshots if file in one.files), "")

    @property
    def incomplete(self) -> str | None:
        """Why the trace is not the whole truth, every cause a clause; None when it is whole."""
        return "; ".join([*self.partial, *self._damage(), *self._pointers()]) or None

    def _damage(self) -> Iterator[str]:
        if self.lost:
            yield f"{events_lost(self.lost)} while it was recorded"
        if self.cgroup:
            yield f"it has what the tasks of the control group {self.cgroup} did, not what others freed of it"
        if self.truncated:
            yield "the capture is cut off at its end"
        if self.unparsed_lines > self.truncated:
            yield f"{counted(self.unparsed_lines, 'line')} of the capture could not be read"
        if self.late * FEW_LATE > self.rows:
            yield f"{self.late:,} events stood too far behind later ones to keep their time; sort the capture's lines by time"

    def _pointers(self) -> Iterator[str]:
        if self.hidden_pointers:
            hidden = counted(self.hidden_pointers, "event")
            yield f"its pointers are hashed: {hidden} of early boot say (____ptrval____) in their place (boot with no_hash_pointers)"
        elif not any(count for kind, count in self.events.items() if kind.startswith("mm_page_")):
            return
        elif self.direct_map.hashed:
            yield "its pointers are hashed, so that slab pages cannot be told from others (tracefs: echo nohash-ptr > trace_options)"
        elif self.pages_of_unknown_owner > FEW_PAGES:
            yield f"{self.pages_of_unknown_owner:,} pages could not be told to be slab pages or others"

    @property
    def notes(self) -> list[str]:
        """What whoever imports it should know of a trace that may well be complete."""
        counts = "its times are counts of a clock, taken for nanoseconds, which those of trace_clock counter, x86-tsc and uptime are not"
        return [*([counts] if self.counted_times else []), *([self.doubt] if self.doubt else [])]

    @property
    def doubt(self) -> str | None:
        """Why it is not known whether the trace is complete, every cause a clause; None where nothing speaks against it."""
        unknown = "the text of perf script tells of lost events only where it was made with --show-lost-events"
        return "; ".join([*self.doubts, *([unknown] if self.source == "perf script" and not self.lost else [])]) or None


# The largest number that a field of the metadata may have; those that are not here are counts, or bytes, or page frames.
_MOST = {"object_size": 2**31, "slab_size": 2**31, "align": 2**31, "pageblock_order": 30, "node": 2**15 - 1, "span_seconds": 2**33}
_MOST_ELSE = 2**62


def _build(kind: type[T], values: dict[str, Any]) -> T:
    """A dataclass from a JSON object; fields that a newer writer added are left out. TypeError for a value of another type, ValueError
    for a number that cannot be.
    """
    wanted = _types(kind)  # type: ignore[arg-type]
    known = {key: value for key, value in values.items() if key in wanted}
    for key, value in known.items():
        if not isinstance(value, wanted[key]) or (isinstance(value, bool) and bool not in wanted[key]):
            raise TypeError(f"{key} cannot be {value!r}")
        if isinstance(value, int | float) and not 0 <= value <= _MOST.get(key, _MOST_ELSE):  # so it is no NaN either
            raise ValueError(f"{key} cannot be {value!r}")
    return kind(**known)


@functools.cache
def _types(kind: type) -> dict[str, tuple[type, ...]]:
    """What JSON has for each field of a dataclass."""
    found = {}
    for name, hint in typing.get_type_hints(kind).items():
        options = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
        plain = [typing.get_origin(option) or option for option in options]
        found[name] = tuple(dict if dataclasses.is_dataclass(one) else one for one in plain) + ((int,) if float in plain else ())
    return found


def never_merged(name: str, attributes: dict[str, str]) -> bool:
    """Whether /sys/kernel/slab says that a cache has slabs of its own: those with a part for user space, and the allocator's two."""
    return attributes.get("usersize", "0") != "0" or name in ("kmem_cache", "kmem_cache_node")


def events_lost(count: int) -> str:
    """`1 event was lost`, `1,234 events were lost`."""
    return "1 event was lost" if count == 1 else f"{count:,} events were lost"


def checksum(metadata: bytes) -> bytes:
    """What stands beside the metadata under CHECKSUM_KEY; absent from files that others have written."""
    return b"%08x" % zlib.crc32(metadata)


class Trace:
    """An open trace. Iterate with batches(); each batch is one row group, so memory stays bounded."""

    def __init__(self, path: str | Path) -> None:
        """Raises UserError (status 2) when the file is no trace, or of a version that this program does not know."""
        self.path = Path(path)
        try:
            # Arrow takes some names for addresses (`host:trace`), and knows UTF-8 only.
            with self.path.open("rb") as file:
                content = pa.BufferReader(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
                self._file = pq.ParquetFile(content, page_checksum_verification=True)
        except FileNotFoundError:
            raise UserError(f"{path}: no such file") from None
        except (pa.ArrowInvalid, OSError, ValueError) as error:
            reason = "is a folder" if self.path.is_dir() else "not a trace (a Parquet file from record or import), or cut off"
            if isinstance(error, PermissionError):
                reason = "permission denied"
            elif self.path.exists() and not self.path.is_dir() and not self.path.is_file():
                reason = "a trace is read in any order, so it must be a file, not a pipe or a device"
            raise UserError(f"{path}: {reason}") from None
        said = self._file.metadata.metadata or {}
        text = said.get(METADATA_KEY)
        if text is None:
            raise UserError(f"{path}: a Parquet file, but not a slabyard trace; make one with record or import")
        if said.get(CHECKSUM_KEY, checksum(text)) != checksum(text):
            raise UserError(f"{path}: damaged trace metadata; import the capture again")
        try:
            version = json.loads(text).get("version")
            if version != VERSION:
                raise UserError(
                    f"{path}: trace format version {version}, but this slabyard knows version {VERSION} only; import the capture again"
                )
            self.metadata = Metadata.from_json(text)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise UserError(f"{path}: damaged trace metadata; import the capture again") from None
        if not set(SCHEMA.names) <= set(self._file.schema_arrow.names):
            missing = sorted(set(SCHEMA.names) - set(self._file.schema_arrow.names))
            raise UserError(f"{path}: not a whole trace, column {missing[0]} is missing")
        for column in (*SCHEMA, STACK, TASK, PID, CACHE_NAME):
            if column.name not in self._file.schema_arrow.names:
                continue
            found = self._file.schema_arrow.field(column.name).type
            plain = found.value_type if pa.types.is_dictionary(found) else found
            fits = plain == pa.string() if column.type == _TEXT else found == column.type
            if not fits and not (column.name == "node" and found == pa.int8()):  # as older versions wrote it
                raise UserError(f"{path}: column {column.name} is of type {found}, not {column.type}; import the capture again")

    @property
    def columns(self) -> list[str]:
        """Names of the columns that there are to read; more than SCHEMA's, maybe."""
        names = self._file.schema_arrow.names
        return names if CACHE_NAME.name in names else [*names, CACHE_NAME.name]

    def schema(self, columns: Sequence[str] | None = None) -> pa.Schema:
        """Names and types of these columns, or all."""
        stored = self._file.schema_arrow
        return pa.schema([stored.field(name) if name in stored.names else CACHE_NAME for name in columns or self.columns])

    @property
    def rows(self) -> int:
        """Rows in the file, whatever the metadata says."""
        return self._file.metadata.num_rows

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """The row groups in order, each as one batch of the named columns (default: all).

        Raises UserError when the file turns out to be damaged, says what no trace can, or has no such column.
        """
        present = self.columns
        wanted = list(present if columns is None else columns)
        if unknown := [name for name in wanted if name not in present]:
            raise UserError(f"{self.path}: has no column {unknown[0]}; it has {', '.join(present)}")
        named = CACHE_NAME.name in wanted and CACHE_NAME.name not in self._file.schema_arrow.names
        stored = [*(name for name in wanted if name != CACHE_NAME.name), *_NAMING] if named else wanted
        since = 0
        for group in range(self._file.num_row_groups):
            try:
                table = self._file.read_row_group(group, columns=list(dict.fromkeys(stored)))
                parts = table.combine_chunks().to_batches()
                for batch in parts:
                    refuse_texts(batch)
            except MemoryError:  # which Arrow's own is, too
                raise
            except (pa.ArrowException, OSError, ValueError) as error:
                raise UserError(f"{self.path}: damaged at row group {group}: {str(error).splitlines()[0]}") from None
            for batch in parts:
                if wrong := self._impossible(batch, since):
                    raise UserError(f"{self.path}: damaged, {wrong}; import the capture again")
                if "time" in batch.schema.names and batch.num_rows:
                    since = int(batch["time"][-1].as_py())
                yield self._with_names(batch).select(wanted) if named else batch

    def _impossible(self, batch: pa.RecordBatch, since: int) -> str | None:
        """What no import writes: who computes with rows, and keeps tables by their numbers, counts on it. `since`: the last row's time."""
        names = batch.schema.names
        for name in names:
            if batch[name].null_count:
                return f"column {name} lacks values"
        if "time" in names:
            times = np.concatenate([[since], batch["time"].to_numpy()])
            if (times[1:] < times[:-1]).any():
                return "its time goes back"
        if "order" in names and (batch["order"].to_numpy() > MOST_ORDER).any():
            return f"it has blocks of an order above {MOST_ORDER}"
        if "object" not in names:
            return None
        objects = batch["object"].to_numpy()
        if "kind" in names:
            marks = codes(batch["kind"], KINDS) == SNAPSHOT
            if (objects[marks] >= len(self.metadata.snapshots)).any():
                return "it has a snapshot that its metadata lacks"
            objects = objects[~marks]
        if ((objects >= self.rows + FEW_OBJECTS) & (objects != NO_OBJECT)).any():
            return "it numbers its objects beyond their number"
        return None

    def _with_names(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The column cache_name for a trace that was written without."""
        kind, cache = codes(batch["kind"], KINDS), batch["cache"].to_numpy()
        places, texts = cache_names.names(
            np.flatnonzero(((kind == KMALLOC) | (kind == KFREE)) & (cache == NO_CACHE)), cache,
            batch["size"].to_numpy(), batch["allocated"].to_numpy(), [one.name for one in self.metadata.caches], self.metadata.shared_pages,
        )  # fmt: skip
        return batch.append_column(CACHE_NAME, text_column(places, np.array(texts, object)))

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Trace:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


_NAMING = ("kind", "cache", "size", "allocated")  # what cache_name is made of


def refuse_texts(batch: pa.RecordBatch) -> None:
    """Raises ArrowInvalid for texts that are none: Arrow takes them from a file as they are."""
    for column in batch.columns:
        if pa.types.is_dictionary(column.type):
            column.dictionary.validate(full=True)
            if column.dictionary.null_count:
                raise pa.ArrowInvalid("a text is missing")
        elif pa.types.is_string(column.type):
            column.validate(full=True)


def text_column(codes: np.ndarray, texts: np.ndarray) -> pa.DictionaryArray:
    """A text column, with a dictionary of what these rows use: a row group is written with its whole dictionary."""
    used = np.flatnonzero(np.bincount(codes, minlength=len(texts)))
    places = np.zeros(len(texts), np.int32)
    places[used] = np.arange(len(used), dtype=np.int32)
    return pa.DictionaryArray.from_arrays(pa.array(places[codes]), pa.array(texts[used].tolist(), pa.string()))


def made_rows(columns: Mapping[str, Any], rows: int) -> pa.Table:
    """Rows of a trace that nobody recorded: these columns, as Arrow takes them, and 0, False or no text in the others."""

    def column(one: pa.Field) -> pa.Array:
        if one.name in columns:
            found = columns[one.name]
            return (found if isinstance(found, pa.Array) else pa.array(found)).cast(one.type)
        if one.type == _TEXT:
            return text_column(np.zeros(rows, np.int32), np.array([""], object))
        return pa.array(np.zeros(rows, bool)).cast(one.type)

    return pa.Table.from_arrays([column(one) for one in SCHEMA], schema=SCHEMA)


class Vocabulary:
    """Texts numbered in order of first appearance over all row groups."""

    def __init__(self, texts: Sequence[str] = ()) -> None:
        self.texts: list[str] = list(texts)
        self._numbers = {text: number for number, text in enumerate(self.texts)}

    def number(self, text: str) -> int:
        """The number of a text, a new one for a new text."""
        if text not in self._numbers:
            self._numbers[text] = len(self.texts)
            self.texts.append(text)
        return self._numbers[text]


def codes(column: pa.Array, vocabulary: Vocabulary | Sequence[str]) -> np.ndarray:
    """A text column of one batch as numbers: uint32[rows], positions in the vocabulary.

    A fixed vocabulary (KINDS, ...) raises UserError for a text that it does not have.
    """
    if not isinstance(column, pa.DictionaryArray):
        column = column.dictionary_encode()
    texts = column.dictionary.to_pylist()
    if isinstance(vocabulary, Vocabulary):
        table = [vocabulary.number(text) for text in texts]
    else:
        fixed = {text: number for number, text in enumerate(vocabulary)}
        unknown = [text for text in texts if text not in fixed]
        if unknown:
            raise UserError(f"the trace has the unknown value {unknown[0]!r}; it was written by another version")
        table = [fixed[text] for text in texts]
    indices = column.indices.to_numpy(zero_copy_only=False)
    return np.asarray(table or [0], dtype=np.uint32)[indices]


@dataclass
class RecordedCurve:
    """The recorded allocator's own pages over time, from the trace alone.

    times: int64[n], ns, never decreasing; pages: int64[n], held from that time on. The figures are in pages; mean is
    weighted by time. `before` is what it held when the trace began: 0 unless that was asked for and is known.
    """

    times: np.ndarray
    pages: np.ndarray
    before: int
    snapshots: dict[str, int]
    taken: dict[str, int]  # pages taken from the page allocator since the trace began, at each snapshot and at its end (key "")
    peak: int
    end: int
    mean: float


def recorded_curve(trace: Trace, with_older: bool = False) -> RecordedCurve:
    """Sums the runs whose owner is slab or large, between their allocation and their free. One pass, streaming.

    with_older: also counts the pages that the allocator held before the trace began, as many as make the first snapshot's
    `Slab:` of meminfo true, less those that the trace frees. Without such a snapshot they stay uncounted.
    """
    times: list[np.ndarray] = []
    changes: list[np.ndarray] = []
    marks: list[tuple[int, int]] = []  # (number of the snapshot, changes before it)
    known = with_older and any(_slab_pages(trace.metadata, one) is not None for one in trace.metadata.snapshots)
    count = 0
    for batch in trace.batches(["time", "kind", "origin", "owner", "order", "object"]):
        kind = codes(batch["kind"], KINDS)
        owner = codes(batch["owner"], OWNERS)
        own = (owner == SLAB) | (owner == LARGE)
        if not known:
            own &= codes(batch["origin"], ORIGINS) != OLDER
        grown = own & (kind == PAGE_ALLOC)
        rows = np.flatnonzero(grown | (own & (kind == PAGE_FREE)))
        sizes = np.left_shift(np.int64(1), batch["order"].to_numpy().astype(np.int64)[rows])
        times.append(batch["time"].to_numpy()[rows])
        changes.append(np.where(grown[rows], sizes, -sizes))
        for row in np.flatnonzero(kind == SNAPSHOT):
            marks.append((int(batch["object"][int(row)].as_py()), count + int(np.searchsorted(rows, row))))
        count += len(rows)
    time = np.concatenate(times) if times else np.zeros(0, np.int64)
    net = np.concatenate([[0], *changes]).cumsum()
    names = trace.metadata.snapshots
    totals = ((_slab_pages(trace.metadata, names[number]), change) for number, change in marks)
    before = next((max(0, total - int(net[change])) for total, change in totals if total is not None), 0) if known else 0
    held = net + before
    at = {names[number].name: int(held[change]) for number, change in marks}
    grown_by = np.concatenate([[0], *(np.maximum(change, 0) for change in changes)]).cumsum()
    taken = {names[number].name: int(grown_by[change]) for number, change in marks} | {"": int(grown_by[-1])}
    span = max([round(trace.metadata.span_seconds * 1e9), *time[-1:].tolist()])
    mean = float(np.dot(held, np.diff(np.concatenate([[0], time, [span]])))) / span if span else float(held[-1])
    return RecordedCurve(time, held[1:], before, at, taken, int(held.max()), int(held[-1]), mean)


def refuse_other_pages(metadata: Metadata, path: str | Path) -> None:
    """Raises UserError for a trace of a kernel whose pages have another size than the replay's."""
    if metadata.page_size != PAGE_SIZE:
        raise UserError(
            f"{path}: recorded on a kernel with pages of {metadata.page_size} bytes; a replay has pages of {PAGE_SIZE} only, "
            "so look at it with info"
        )


def _slab_pages(metadata: Metadata, snapshot: Snapshot) -> int | None:
    """Pages in slabs and large kmallocs, as meminfo has them; None where it was not taken."""
    total = parse_meminfo(snapshot.files.get("meminfo", "")).get("Slab")
    return None if total is None else total * 1024 // metadata.page_size
