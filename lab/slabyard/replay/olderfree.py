"""Which room the slabs older than a trace had: what the trace itself proves.

An allocation in a page that the trace has not seen allocated is in a slab older than the trace. Where it is the first that the trace
sees of its address, that address was free by then: when the trace began, or because an older object was freed. Frees of older objects
are seen, or are among those that fire no event (docs/trace-format.md). So a cache had as many free objects in its older slabs as
there are such allocations, less the older frees seen before them, at most at any time. Objects whose frees were not seen count as free
from the start, as nothing tells since when they were.

slabinfo says less: it counts the free objects of per-CPU slabs and of sheaves as active. Where the trace does not know where the direct
map begins, or its first snapshot comes later, nothing is proved.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from ..trace import file as trace
from ..trace import gfp
from ..trace.file import Metadata, codes
from . import scratch_form as form

PAGE_SHIFT = form.SY_PAGE_SHIFT
MAX_ORDER = form.SY_MAX_ORDER
_KINDS = {name: number for number, name in enumerate(trace.KINDS)}


@dataclass
class Vacant:
    """Free objects in slabs older than the trace."""

    objects: np.ndarray  # dtype OBJECT: of each address that was free by its first event, that event
    grown: np.ndarray  # int64: kinds of which there are objects in younger slabs too
    extents: dict[int, Extent] = field(default_factory=dict)  # by kind, of whole-boot traces


@dataclass(frozen=True)
class Extent:
    """What younger slabs of a kind show."""

    order: int  # of most of them
    last: int  # bytes from a slab's begin to where the last object begins


class Proofs:
    """Takes a trace row group by row group. Memory goes with the addresses and pages that the trace has, not with its length."""

    def __init__(self, metadata: Metadata) -> None:
        self.caches = len(metadata.caches)
        self.base = address_of(metadata.direct_map.base)
        self.from_boot = metadata.from_boot
        self._rows = 0
        # The first event of each address, and the first allocation of each page.
        self._objects = np.empty(0, OBJECT)
        self._pages = np.empty(0, _PAGE)
        self._older_frees = [np.empty(0, OBJECT)]

    def take(self, batch: pa.RecordBatch, kinds: np.ndarray, flags: np.ndarray) -> None:
        """One row group; `kinds`: uint8[rows], positions in trace.KINDS; `flags`: uint32[rows], of gfp."""
        if self.base is None:
            return
        address, cache = batch["address"].to_numpy(), batch["cache"].to_numpy()
        kmallocs = (kinds == _KINDS["kmalloc"]) & (cache >= self.caches)
        allocates = (kinds == _KINDS["kmem_cache_alloc"]) | kmallocs
        frees = (kinds == _KINDS["kmem_cache_free"]) | (kinds == _KINDS["kfree"])
        older = codes(batch["origin"], trace.ORIGINS) == trace.OLDER
        rows = np.flatnonzero(allocates | frees)
        chosen = [rows[first_places(address[rows])], np.flatnonzero(frees & older & (cache < self.caches))]
        found, older_frees = (np.zeros(len(some), OBJECT) for some in chosen)
        for out, some in zip((found, older_frees), chosen, strict=True):
            out["address"], out["row"], out["allocates"] = address[some], self._rows + some, allocates[some]
            out["cpu"], out["size"] = batch["cpu"].to_numpy()[some], batch["size"].to_numpy()[some]
            out["kind"] = np.where(cache[some] < self.caches, cache[some], class_kinds(batch["allocated"].to_numpy()[some], flags[some]))
        self._older_frees.append(older_frees)
        self._objects = _joined(self._objects, found, "address")
        pages = self._allocated_pages(batch, kinds)
        self._pages = _joined(self._pages, pages[first_places(pages["page"].astype(np.uint64))], "page")
        self._rows += batch.num_rows

    def _allocated_pages(self, batch: pa.RecordBatch, kinds: np.ndarray) -> np.ndarray:
        rows = np.flatnonzero((kinds == _KINDS["mm_page_alloc"]) & (batch["order"].to_numpy() <= MAX_ORDER))
        sizes = 1 << batch["order"].to_numpy()[rows].astype(np.int64)
        out = np.zeros(int(sizes.sum()), _PAGE)
        starts = np.repeat(np.cumsum(sizes) - sizes, sizes)
        out["page"] = np.repeat(batch["address"].to_numpy()[rows].astype(np.int64), sizes) + np.arange(len(out)) - starts
        out["row"] = np.repeat(self._rows + rows, sizes)
        of_slab = codes(batch["owner"], trace.OWNERS)[rows] == trace.SLAB
        out["order"] = np.repeat(np.where(of_slab, batch["order"].to_numpy()[rows], NO_SLAB), sizes)
        return out

    def went_unseen(self, batch: pa.RecordBatch, rows: np.ndarray) -> np.ndarray:
        """bool[rows]: of frees of pages of the row group that was taken last, which are of pages in which no object was seen, or one that
        begins them and was freed: slabs that were emptied without an event, and large kmallocs."""
        found = np.zeros(len(rows), bool)
        if self.base is None or not len(rows):
            return found
        objects = self._objects
        starts = np.uint64(self.base) + (batch["address"].to_numpy()[rows].astype(np.uint64) << np.uint64(PAGE_SHIFT))
        ends = starts + (np.uint64(1) << (batch["order"].to_numpy()[rows].astype(np.uint64) + np.uint64(PAGE_SHIFT)))
        first, last = (np.searchsorted(objects["address"], some) for some in (starts, ends))
        row = self._rows - batch.num_rows + rows
        for number in range(len(rows)):
            inside = objects[first[number] : last[number]]
            inside = inside[inside["row"] < row[number]]
            found[number] = not len(inside) or (
                len(inside) == 1
                and inside["address"][0] == starts[number]
                and not inside["allocates"][0]
                and inside["kind"][0] >= self.caches
            )
        return found

    def vacant(self) -> Vacant:
        """What was free in the slabs older than the trace, and what grew beyond them."""
        if self.base is None:
            return Vacant(np.empty(0, OBJECT), np.empty(0, np.int64))
        objects, pages = self._objects, self._pages
        objects = objects[objects["allocates"]]
        page = (objects["address"] - np.uint64(self.base)).astype(np.int64) >> PAGE_SHIFT
        at = np.minimum(np.searchsorted(pages["page"], page), max(0, len(pages) - 1))
        young = (pages["page"][at] == page) & (pages["row"][at] < objects["row"]) if len(pages) else np.zeros(len(objects), bool)
        extents = _extents(objects[young], pages["order"][at[young]].astype(np.int64)) if self.from_boot else {}
        return Vacant(objects[~young], np.unique(objects["kind"][young]), extents)

    def free_objects(self, vacant: Vacant) -> np.ndarray:
        """int64[caches]: objects that were free in slabs older than the trace, at least."""
        out = np.zeros(self.caches, np.int64)
        steps = np.concatenate([vacant.objects[vacant.objects["kind"] < self.caches], *self._older_frees])
        steps = steps[np.argsort(steps["row"], kind="stable")]
        for cache in np.unique(steps["kind"]):
            taken = np.cumsum(np.where(steps["allocates"][steps["kind"] == cache], 1, -1))
            out[cache] = max(0, int(taken.max()))
        return out


def class_kinds(size: np.ndarray, flags: np.ndarray) -> np.ndarray:
    """int64: what kind of object a kmalloc is, as OBJECT has it: its class and the type of the class, above all numbers of caches."""
    of_type = np.where(flags & gfp.RECLAIMABLE, gfp.RECLAIMABLE, flags & gfp.ACCOUNT)
    return KMALLOCS + (of_type.astype(np.int64) << 32) + size.astype(np.int64)


def class_kind(size: int, flags: int) -> int:
    """The same of one class."""
    return int(class_kinds(np.array([size]), np.array([flags]))[0])


def _extents(objects: np.ndarray, orders: np.ndarray) -> dict[int, Extent]:
    """What the slabs of some objects show, by kind. `orders`: of the block in which each lies."""
    found: dict[int, Extent] = {}
    objects, orders = objects[orders != NO_SLAB], orders[orders != NO_SLAB]
    pairs, of_pair, counts = np.unique(np.stack([objects["kind"], orders], axis=1), axis=0, return_inverse=True, return_counts=True)
    offsets = (objects["address"] & ((np.uint64(1) << (orders.astype(np.uint64) + np.uint64(PAGE_SHIFT))) - np.uint64(1))).astype(np.int64)
    last = np.zeros(len(pairs), np.int64)
    np.maximum.at(last, of_pair.reshape(-1), offsets)
    for number in np.argsort(counts, kind="stable").tolist():
        found[int(pairs[number, 0])] = Extent(int(pairs[number, 1]), int(last[number]))
    return found


NO_SLAB = np.uint8(255)  # order of a page that was first taken for something else
KMALLOCS = np.int64(1) << 40  # kinds from here on are of kmalloc
OBJECT = np.dtype(
    [
        ("address", np.uint64),
        ("row", np.int64),
        ("kind", np.int64),
        ("size", np.uint32),
        ("cpu", np.uint16),
        ("allocates", np.bool_),
    ]
)
_PAGE = np.dtype([("page", np.int64), ("row", np.int64), ("order", np.uint8)])


def address_of(text: str | None) -> int | None:
    """A base of the direct map; None where there is none that could be."""
    try:
        found = int(text or "", 16)
    except ValueError:
        return None
    return found if 0 <= found < 1 << 64 else None


def first_places(numbers: np.ndarray) -> np.ndarray:
    """int64: where each of the uint64 numbers is first, in their order. A number and its place are sorted as one where they fit into
    64 bits, which is several times faster."""
    if not len(numbers):
        return np.empty(0, np.int64)
    least, bits = numbers.min(), np.uint64(len(numbers).bit_length())
    if int(numbers.max() - least).bit_length() + int(bits) > 64:
        return np.unique(numbers, return_index=True)[1]
    keys = np.sort((numbers - least) << bits | np.arange(len(numbers), dtype=np.uint64))
    first = np.append(True, np.diff(keys >> bits) > 0)
    return (keys[first] & ((np.uint64(1) << bits) - np.uint64(1))).astype(np.int64)


def _joined(known: np.ndarray, found: np.ndarray, key: str) -> np.ndarray:
    """Records in order of the key, with those found, in this order too, whose key is not known."""
    at = np.searchsorted(known[key], found[key])
    new = known[key][np.minimum(at, len(known) - 1)] != found[key] if len(known) else np.ones(len(found), bool)
    return np.insert(known, at[new], found[new])
