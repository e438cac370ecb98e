"""A trace as the flat arrays that the replay program reads: the scratch file.

A scratch file is made for one trace and one set of options, read by any number of replays, and deleted. It is no
format for keeping. The programs' scratch.h describes its records; scratch_form.py has them as numpy types, made of the header.

The trace is read row group by row group and every column is translated by numpy, so that millions of rows a second go
through bounded memory. What becomes of a row:

- an object's allocation or free: an event with the same object number as its handle; `implied` rows carry bit 31 of the flags;
- an object of a cache that was freed by kfree: a free to its cache;
- a page of the environment or of unknown owner: likewise; pages that the recorded allocator held are left out, since every
  replayed allocator takes its own;
- a free of an object older than the trace: a free of one of the objects that the population (see population.py) puts there
  before the first event, or, with an empty start, an event that is counted and skipped;
- a free of an older page: the nearest older page of the environment, or counted and skipped likewise;
- a snapshot: a point at which the replay notes its own figures;
- `mm_page_alloc_extfrag`: nothing, since the replay has fallback events of its own.

Strings never reach the replay: call sites are numbered over the whole trace in order of appearance, 0 being none.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from ..base.errors import UserError
from ..trace import file as trace
from ..trace import gfp, snapshots
from ..trace.file import Cache, Metadata, Trace, Vocabulary, codes
from . import olderfree
from . import scratch_form as form
from .graces import GRACE_NS, Graces

NONE = form.NO_HANDLE
VACATED = form.VACATED
NO_CACHE = form.NO_CACHE
PAGE_SHIFT = form.SY_PAGE_SHIFT
ALIGN = form.SCRATCH_ALIGN
MAX_ORDER = form.SY_MAX_ORDER
LARGEST_BLOCK = 1 << (PAGE_SHIFT + MAX_ORDER)  # bytes

KMALLOC = form.EVENT_KMALLOC
KFREE = form.EVENT_KFREE
CACHE_ALLOC = form.EVENT_CACHE_ALLOC
CACHE_FREE = form.EVENT_CACHE_FREE
PAGE_ALLOC = form.EVENT_PAGE_ALLOC
PAGE_FREE = form.EVENT_PAGE_FREE
SNAPSHOT = form.EVENT_SNAPSHOT
OLDER_PAGE_FREE = form.EVENT_OLDER_PAGE_FREE
UNKNOWN_FREE = form.EVENT_UNKNOWN_FREE
UNKNOWN_PAGE_FREE = form.EVENT_UNKNOWN_PAGE_FREE
LEFT_OUT = 255
# By position in trace.KINDS.
_KINDS = np.array([KMALLOC, KFREE, CACHE_ALLOC, CACHE_FREE, PAGE_ALLOC, PAGE_FREE, LEFT_OUT, SNAPSHOT], np.uint8)

EVENT, CACHE, ZONE, FREE_BLOCKS, OLDER, RUN, SECTION = (
    form.RECORDS[name] for name in ("event", "cache", "zone", "free_blocks", "older", "run", "section")
)
_MOST_SECTIONS = 9
_HEADER_BYTES = -(-(form.RECORDS["header"].itemsize + _MOST_SECTIONS * SECTION.itemsize) // ALIGN) * ALIGN

LINK_INSIDE = form.SY_CACHE_LINK_INSIDE
WORD = 8  # bytes
NO_SHEAVES = form.SY_NO_SHEAVES  # of a cache that never has any
# Objects of a sheaf of the caches that ask for sheaves (Linux 6.18), and of those that Linux boots with, which never have any.
SHEAVES = {"vm_area_struct": 32, "maple_node": 32, "kmem_cache": NO_SHEAVES, "kmem_cache_node": NO_SHEAVES}
_FLAG_NAMES = ("hwcache_align", "typesafe_by_rcu", "reclaimable", "account", "dma", "no_merge")
CACHE_FLAGS = {name: getattr(form, f"SY_CACHE_{name.upper()}") for name in _FLAG_NAMES}


@dataclass
class Frees:
    """Recorded frees of objects older than the trace: parallel arrays, in order of the trace."""

    event: np.ndarray  # int64: index of the event that is to be patched
    kind: np.ndarray  # uint8
    cache: np.ndarray  # uint16
    address: np.ndarray  # uint64: virtual address
    before_snapshot: np.ndarray  # bool: happened before the first snapshot
    row: np.ndarray  # int64: of the trace
    pages: np.ndarray  # int64: in the slab or large kmalloc of which nothing else is known; 0: of an object in a slab


@dataclass
class Traffic:
    """What the translation of a trace noted on its way, for the population."""

    frees: Frees  # of objects
    page_frees: np.ndarray  # int64: recorded frees of older pages, by index of the event
    live_caches: np.ndarray  # int64[caches]: traced objects live at the first snapshot
    live_classes: dict[int, int]  # the same of kmalloc, by bytes made of the request
    end_classes: dict[int, int]  # the same of kmalloc at the end of the trace
    mean_requests: dict[int, int]  # mean bytes asked for, by bytes made of the request
    page_classes: tuple[np.ndarray, np.ndarray]  # virtual page numbers, sorted, and the class of the kmallocs in them
    page_kinds: tuple[np.ndarray, np.ndarray]  # the same with kinds as olderfree.py has them
    peak_pages: int  # most pages that environment and requested bytes need at once beyond the start
    was_free: np.ndarray  # int64[caches]: objects that slabs older than the trace had free, as it proves
    given_back: np.ndarray  # uint64: addresses of slabs older than the trace that it saw given back
    vacant: olderfree.Vacant
    graces: np.ndarray  # of dtype GRACE
    longest_wait_us: int  # for the end of a grace period; 0: not known


@dataclass
class Layout:
    """The simulated machine. `zones` of dtype ZONE; `free_blocks` of dtype FREE_BLOCKS, empty for pristine memory."""

    zones: np.ndarray
    free_blocks: np.ndarray
    cpus: int
    nodes: int
    pageblock_order: int


@dataclass
class Translation:
    """A trace's events in the scratch file, and what is still to be written behind them."""

    path: Path
    events: int
    handles: int
    span: int
    snapshots: int
    call_sites: list[str]
    requests: int  # recorded allocations of objects
    traffic: Traffic
    fallback_times: np.ndarray  # int64: when the recorded kernel had a fallback event, ns


def kernel_version(metadata: Metadata) -> int:
    """Of Linux, as struct sy_kernel has it: 256 times the major number, and the minor one; 0: not known."""
    found = re.match(r"(\d{1,2})\.(\d{1,3})\b", metadata.kernel)
    return min(int(found[1]) << 8 | min(int(found[2]), 255), 0xFFFF) if found else 0


def has_link_inside(cache: Cache) -> bool:
    """Whether a cache with a grace period had no room for a pointer behind an object, by the recorded distance from one to the next."""
    room = (cache.slab_size or 0) - cache.object_size
    return cache.typesafe_by_rcu and not cache.constructor and 0 <= room < WORD


def cache_records(caches: list[Cache]) -> np.ndarray:
    """The metadata's caches as dtype CACHE."""
    out = np.zeros(len(caches), CACHE)
    for number, cache in enumerate(caches):
        flags = sum(bit for name, bit in CACHE_FLAGS.items() if getattr(cache, name))
        flags |= LINK_INSIDE if has_link_inside(cache) else 0
        name = (cache.name or f"unnamed-{number}").encode()[:47]
        align = 0 if cache.align & (cache.align - 1) else cache.align  # kernels align to powers of two
        out[number] = (name, max(1, cache.object_size), align, flags, bool(cache.constructor), SHEAVES.get(cache.name, 0))
    return out


def translate(source: Trace, path: Path, cpus: int, nodes: int, environment: bool = True) -> Translation:
    """Writes the events of a trace to `path`.

    `cpus` and `nodes` are those of the replay; without `environment` no event of a page is written. Frees of objects older than the trace
    get their handles later, from `patch_older`; frees of older pages stand as such until `skip_older_pages` says that there are no older
    pages. UserError when the trace contradicts itself.
    """
    caches = len(source.metadata.caches)
    sites, gfp_texts = Vocabulary([""]), Vocabulary()
    frees = [
        [np.empty(0, dtype) for dtype in (np.int64, np.uint8, np.uint16, np.uint64, np.bool_, np.int64, np.int64)]
    ]  # the columns of Frees, by row group
    live = np.zeros(caches + 1, np.int64)
    classes: dict[int, int] = {}
    end_classes: dict[int, int] = {}
    asked_bytes: dict[int, list[int]] = {}
    pages = [np.empty((0, 2), np.uint64)]
    page_frees: list[np.ndarray] = [np.empty(0, np.int64)]
    fallbacks: list[np.ndarray] = [np.empty(0, np.int64)]
    given_back: list[np.ndarray] = [np.empty(0, np.uint64)]
    padded = _padded_classes(source.metadata)
    proofs, graces = olderfree.Proofs(source.metadata), Graces(source.metadata)
    written = handles = snapshots = requests = seen_rows = 0
    span = balance = peak = 0
    before_snapshot = True  # no snapshot so far
    with path.open("wb") as out:
        out.write(b"\0" * _HEADER_BYTES)
        for batch in source.batches(trace.SCHEMA.names):
            numbers = codes(batch["kind"], trace.KINDS)
            flags = _flags(batch["gfp_flags"], gfp_texts) & ~np.uint32(gfp.ACCOUNT)
            flags[batch["accounted"].to_numpy(zero_copy_only=False)] |= np.uint32(gfp.ACCOUNT)
            proofs.take(batch, numbers, flags)
            graces.take(batch, numbers)
            first_row, seen_rows = seen_rows, seen_rows + batch.num_rows
            kind = _KINDS[numbers]
            origin = codes(batch["origin"], trace.ORIGINS)
            owner = codes(batch["owner"], trace.OWNERS)
            time = batch["time"].to_numpy()
            fallbacks.append(time[numbers == trace.EXTFRAG])
            is_page = (kind == PAGE_ALLOC) | (kind == PAGE_FREE)
            given_back.append(batch["address"].to_numpy()[(kind == PAGE_FREE) & (owner == trace.SLAB) & (origin == trace.OLDER)])
            held = (owner == trace.SLAB) | (owner == trace.LARGE)
            older_pages = np.flatnonzero((kind == PAGE_FREE) & held & (origin == trace.OLDER))
            went = np.zeros(len(kind), bool)
            went[older_pages] = proofs.went_unseen(batch, older_pages)
            keep = (kind != LEFT_OUT) & (~(is_page & (held if environment else True)) | went)
            rows = np.flatnonzero(keep)
            if len(time):
                span = int(time[-1])
            if not len(rows):
                continue
            column = {name: batch[name].to_numpy(zero_copy_only=False)[rows] for name in _PLAIN}
            for stride, size_class in padded.items():
                column["allocated"][(column["allocated"] == stride) & (column["size"] <= size_class)] = size_class
            kind, origin, went = kind[rows], origin[rows], went[rows]
            _free_whole(went, kind, column, proofs.base)
            # kfree also frees the objects of caches; the importer has found out which.
            kind[(kind == KFREE) & (column["cache"] != NO_CACHE)] = CACHE_FREE
            # A cache's free of a kmalloc: events between the two were lost. It tells that the kmalloc is gone.
            kind[(kind == CACHE_FREE) & (column["cache"] == NO_CACHE) & (origin != trace.OLDER)] = KFREE
            is_page, older = is_page[rows] & ~went, origin == trace.OLDER
            column["cpu"] %= cpus
            column["node"] = np.where(column["node"] < nodes, column["node"], -1)
            column["call_site"] = codes(batch["call_site"], sites)[rows]
            column["flags"] = flags[rows]
            event = _events(kind, origin, is_page, column)
            _check(event, older, kind, column, caches)

            is_snapshot = kind == SNAPSHOT
            asked = (kind == KMALLOC) | (kind == CACHE_ALLOC)
            requests += int((asked & (origin == trace.RECORDED)).sum())
            if is_snapshot.any():
                snapshots = max(snapshots, int(event["handle"][is_snapshot].max()) + 1)
            joined = ~older & ~is_snapshot
            if joined.any():
                handles = max(handles, int(event["handle"][joined].max()) + 1)
            before = before_snapshot & (np.cumsum(is_snapshot) == 0)
            before_snapshot = bool(before[-1])
            pages_of = np.where(went, np.int64(1) << column["order"].astype(np.int64), 0)
            freed = older & ~is_page & (event["kind"] != UNKNOWN_FREE)
            frees.append(
                [
                    part[freed]
                    for part in (
                        written + np.arange(len(rows)),
                        kind,
                        column["cache"],
                        column["address"],
                        before,
                        first_row + rows,
                        pages_of,
                    )
                ]
            )
            page_frees.append(written + np.flatnonzero(older & is_page))
            _account(kind, older, column, before, live, classes, asked_bytes)
            _count_classes(kind, older, column, np.ones(len(kind), bool), end_classes)
            pages.append(_page_classes(kind, column))
            needed = balance + np.cumsum(_page_balance(kind, older, is_page, column))
            peak, balance = max(peak, int(needed.max())), int(needed[-1])
            out.write(event.view(np.uint8).data)
            written += len(rows)
    means = {size: total // count for size, (total, count) in asked_bytes.items()}
    addresses = (np.concatenate(given_back) << np.uint64(PAGE_SHIFT)) + np.uint64(proofs.base or 0)
    vacant = proofs.vacant()
    class_pages, kinds_there = _joined_pages(pages)
    traffic = Traffic(
        Frees(*(np.concatenate(column) for column in zip(*frees, strict=True))), np.concatenate(page_frees), live[:caches], classes,
        end_classes, means, (class_pages, kinds_there & 0xFFFFFFFF), (class_pages, kinds_there), peak >> PAGE_SHIFT,
        proofs.free_objects(vacant), addresses, vacant, graces.table(), graces.longest_wait_us(),
    )  # fmt: skip
    return Translation(path, written, handles, span, snapshots, sites.texts, requests, traffic, np.concatenate(fallbacks))


def _free_whole(went: np.ndarray, kind: np.ndarray, column: dict[str, np.ndarray], base: int | None) -> None:
    """Makes frees of a slab's or a large kmalloc's pages frees of one object, where `went` says so."""
    kind[went] = KFREE
    column["cache"][went] = NO_CACHE
    column["address"][went] = np.uint64(base or 0) + (column["address"][went].astype(np.uint64) << np.uint64(PAGE_SHIFT))


def _events(kind: np.ndarray, origin: np.ndarray, is_page: np.ndarray, column: dict[str, np.ndarray]) -> np.ndarray:
    """A row group's events, of dtype EVENT."""
    event = np.zeros(len(kind), EVENT)
    for name, source in _SAME.items():
        event[name] = column[source]
    flags = column["flags"].copy()
    flags[is_page] &= ~np.uint32(gfp.ZERO)
    flags[kind == SNAPSHOT] = 0
    event["flags"] = flags | np.where(origin == trace.IMPLIED, np.uint32(gfp.IMPLIED), np.uint32(0))
    event["order"] = np.where(is_page, column["order"], 0)
    event["migrate"] = np.where(kind == PAGE_ALLOC, _MIGRATE[column["migratetype"].astype(np.int16) + 128], 0)
    event["kind"] = kind
    older = origin == trace.OLDER
    event["kind"][older & is_page] = OLDER_PAGE_FREE
    event["handle"][older & is_page] = column["address"][older & is_page] & 0xFFFFFFFF
    # A free of an older object whose cache nothing tells frees nothing, whatever is there at the start.
    nameless = older & ~is_page & (kind == CACHE_FREE) & (column["cache"] == NO_CACHE)
    event["kind"][nameless] = UNKNOWN_FREE
    event["handle"][nameless] = 0
    return event


def _padded_classes(metadata: Metadata) -> dict[int, int]:
    """Classes of kmalloc by the distance from object to object, where it is more than the class's size: SLAB's kmalloc-96."""
    lines = snapshots.parse_slabinfo(metadata.first_text("slabinfo"))
    classes = ((line.object_size, snapshots.class_of(line.name)) for line in lines)
    return {stride: size_class for stride, size_class in classes if 0 < size_class < stride}


def _flags(column: pa.Array, texts: Vocabulary) -> np.ndarray:
    numbers = codes(column, texts)
    return np.array([gfp.flags_of(text) for text in texts.texts] or [0], np.uint32)[numbers]


_PLAIN = ("time", "object", "address", "size", "allocated", "cache", "cpu", "order", "migratetype", "node", "accounted")
# Of an event's fields, those that are a column of the trace.
_SAME = {"time_ns": "time", "handle": "object", "size": "size", "call_site": "call_site", "cache": "cache", "cpu": "cpu", "node": "node"}
_MIGRATE = np.array([gfp.migrate_of(number) for number in range(-128, 128)], np.uint8)


def _check(event: np.ndarray, older: np.ndarray, kind: np.ndarray, column: dict[str, np.ndarray], caches: int) -> None:
    by_cache = (kind == CACHE_ALLOC) | (kind == CACHE_FREE)
    if (column["cache"][by_cache & ~(older & (column["cache"] == NO_CACHE))] >= caches).any():
        raise UserError("the trace names a cache that its list of caches lacks; import or record it again")
    if (event["handle"][~older & (kind != SNAPSHOT)] == NONE).any():
        raise UserError("the trace has an event that belongs to no object; import or record it again")
    if int(event["order"].max()) > MAX_ORDER:
        raise UserError(
            f"the trace has blocks of order {event['order'].max()}; the largest that can be replayed is order {MAX_ORDER}, "
            f"{4 << MAX_ORDER} KiB with pages of 4 KiB"
        )


def _account(
    kind: np.ndarray, older: np.ndarray, column: dict[str, np.ndarray], before: np.ndarray,
    live: np.ndarray, classes: dict[int, int], asked_bytes: dict[int, list[int]],
) -> None:  # fmt: skip
    """Adds a group's traffic to what lives at the first snapshot, and to the mean request of each kmalloc class."""
    for wanted, sign in ((CACHE_ALLOC, 1), (CACHE_FREE, -1)):
        chosen = before & (kind == wanted) & ~older
        live += sign * np.bincount(np.minimum(column["cache"][chosen], len(live) - 1), minlength=len(live))
    made = column["allocated"]
    _count_classes(kind, older, column, before, classes)
    asked = kind == KMALLOC
    if asked.any():
        sizes, inverse = np.unique(made[asked], return_inverse=True)
        totals = np.bincount(inverse, weights=column["size"][asked])
        for size, total, count in zip(sizes, totals, np.bincount(inverse), strict=True):
            sums = asked_bytes.setdefault(int(size), [0, 0])
            sums[0] += int(total)
            sums[1] += int(count)


def _count_classes(kind: np.ndarray, older: np.ndarray, column: dict[str, np.ndarray], which: np.ndarray, classes: dict[int, int]) -> None:
    """Adds a group's traced kmallocs that live, of the rows `which`, by class."""
    for wanted, sign in ((KMALLOC, 1), (KFREE, -1)):
        chosen = which & (kind == wanted) & ~older
        for size, count in zip(*np.unique(column["allocated"][chosen], return_counts=True), strict=True):
            classes[int(size)] = classes.get(int(size), 0) + sign * int(count)


def _page_classes(kind: np.ndarray, column: dict[str, np.ndarray]) -> np.ndarray:
    """uint64[pages, 2]: virtual page numbers and the kind of the kmallocs in them, of one group."""
    chosen = kind == KMALLOC
    kinds = olderfree.class_kinds(column["allocated"][chosen], column["flags"][chosen])
    pairs = np.stack([column["address"][chosen] >> np.uint64(PAGE_SHIFT), kinds.astype(np.uint64)], axis=1)
    return pairs[olderfree.first_places(pairs[:, 0])]


def _joined_pages(parts: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    pairs = np.concatenate(parts)
    pages, first = np.unique(pairs[:, 0], return_index=True)
    return pages, pairs[first, 1].astype(np.int64)


def _page_balance(kind: np.ndarray, older: np.ndarray, is_page: np.ndarray, column: dict[str, np.ndarray]) -> np.ndarray:
    """int64[rows]: bytes that each event takes (positive) or gives back, before any allocator's own overhead."""
    size = np.where(is_page, np.int64(1) << (PAGE_SHIFT + column["order"].astype(np.int64)), column["size"].astype(np.int64))
    size[~is_page & (size > LARGEST_BLOCK)] = 0  # fails whatever memory there is
    taken = (kind == KMALLOC) | (kind == CACHE_ALLOC) | (kind == PAGE_ALLOC)
    given = ((kind == KFREE) | (kind == CACHE_FREE) | (kind == PAGE_FREE)) & ~older
    return size * (taken.astype(np.int64) - given.astype(np.int64))


def patch_older(translation: Translation, handles: np.ndarray) -> None:
    """Gives every free of an older object its handle. `handles`: uint32[frees], in the order of the trace; NONE: counted and skipped."""
    if not len(handles):
        return
    events = np.memmap(translation.path, EVENT, "r+", _HEADER_BYTES, (translation.events,))
    at = translation.traffic.frees.event
    unknown = handles == NONE
    events["handle"][at] = np.where(unknown, 0, handles)
    events["kind"][at[unknown]] = UNKNOWN_FREE
    events.flush()


def skip_older_pages(translation: Translation) -> None:
    """Makes all frees of older pages events that are counted and skipped, for a replay that begins without older pages."""
    at = translation.traffic.page_frees
    if not len(at):
        return
    events = np.memmap(translation.path, EVENT, "r+", _HEADER_BYTES, (translation.events,))
    events["kind"][at], events["handle"][at] = UNKNOWN_PAGE_FREE, 0
    events.flush()


def finish(
    translation: Translation, caches: np.ndarray, order: np.ndarray, layout: Layout, older: np.ndarray, laid: np.ndarray, handles: int,
    metadata: Metadata, beside: bool,
) -> None:  # fmt: skip
    """Writes the sections behind the events, and the header.

    `caches` of dtype CACHE; `order`: their numbers in the order in which they are to be created; `older` and `laid` of dtype OLDER, the
    latter empty where the recorded layout is not known; `handles` is the number of handles; `metadata`: of the recorded kernel;
    `beside`: slabs in which older objects stay are no part of what is held.
    """
    merges_classes = any(snapshots.KMALLOC.match(cache.name) for cache in metadata.caches)
    run = np.zeros(1, RUN)
    run[0] = (
        handles, layout.cpus, layout.nodes, layout.pageblock_order, len(translation.call_sites), translation.snapshots,
        translation.span, GRACE_NS, kernel_version(metadata), merges_classes,
        translation.traffic.longest_wait_us, beside, 0,
    )  # fmt: skip
    sections = [
        (b"caches", caches), (b"order", order.astype("<u4")), (b"zones", layout.zones), (b"freeblk", layout.free_blocks),
        (b"older", older), (b"run", run),
    ]  # fmt: skip
    if len(laid):
        sections.append((b"laid", laid))
    if len(translation.traffic.graces):
        sections.append((b"graces", translation.traffic.graces))
    with translation.path.open("r+b") as out:
        table = [(b"events", _HEADER_BYTES, translation.events, EVENT.itemsize)]
        end = _HEADER_BYTES + translation.events * EVENT.itemsize
        for name, array in sections:
            end = -(-end // ALIGN) * ALIGN
            out.seek(end)
            out.write(array.tobytes())
            table.append((name, end, len(array), array.dtype.itemsize))
            end += array.nbytes
        out.truncate(end)
        out.seek(0)
        header = np.array([(b"SLABYARD", form.SCRATCH_VERSION, len(table))], form.RECORDS["header"])
        out.write(header.tobytes() + np.array([(*entry, 0) for entry in table], SECTION).tobytes())
