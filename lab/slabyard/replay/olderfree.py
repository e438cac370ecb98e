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

import numpy as np
import pyarrow as pa

from ..trace import file as trace
from ..trace.file import Metadata, codes

PAGE_SHIFT = 12
MAX_ORDER = 10
_KINDS = {name: number for number, name in enumerate(trace.KINDS)}


class Proofs:
    """Takes a trace row group by row group. Memory goes with the addresses and pages that the trace has, not with its length."""

    def __init__(self, metadata: Metadata) -> None:
        self.caches = len(metadata.caches)
        self.base = _address(metadata.direct_map.base)
        self._rows = 0
        # The first event of each address, and the first allocation of each page.
        self._objects = [np.empty(0, _OBJECT)]
        self._pages = [np.empty(0, _PAGE)]
        self._older_frees = [np.empty(0, _OBJECT)]

    def take(self, batch: pa.RecordBatch, kinds: np.ndarray) -> None:
        """One row group; `kinds`: uint8[rows], positions in trace.KINDS."""
        if self.base is None:
            return
        address, cache = batch["address"].to_numpy(), batch["cache"].to_numpy()
        allocates = kinds == _KINDS["kmem_cache_alloc"]
        frees = ((kinds == _KINDS["kmem_cache_free"]) | (kinds == _KINDS["kfree"])) & (cache < self.caches)
        found = np.zeros(int((allocates | frees).sum()), _OBJECT)
        rows = np.flatnonzero(allocates | frees)
        found["address"], found["row"], found["cache"], found["allocates"] = address[rows], self._rows + rows, cache[rows], allocates[rows]
        older = codes(batch["origin"], trace.ORIGINS)[rows] == trace.OLDER
        self._older_frees.append(found[older & ~found["allocates"]])
        self._objects = [_first(np.concatenate([*self._objects, found]), "address")]
        self._pages = [_first(np.concatenate([*self._pages, self._allocated_pages(batch, kinds)]), "page")]
        self._rows += batch.num_rows

    def _allocated_pages(self, batch: pa.RecordBatch, kinds: np.ndarray) -> np.ndarray:
        rows = np.flatnonzero((kinds == _KINDS["mm_page_alloc"]) & (batch["order"].to_numpy() <= MAX_ORDER))
        sizes = 1 << batch["order"].to_numpy()[rows].astype(np.int64)
        out = np.zeros(int(sizes.sum()), _PAGE)
        starts = np.repeat(np.cumsum(sizes) - sizes, sizes)
        out["page"] = np.repeat(batch["address"].to_numpy()[rows].astype(np.int64), sizes) + np.arange(len(out)) - starts
        out["row"] = np.repeat(self._rows + rows, sizes)
        return out

    def free_objects(self) -> np.ndarray:
        """int64[caches]: objects that were free in slabs older than the trace, at least."""
        out = np.zeros(self.caches, np.int64)
        if self.base is None:
            return out
        objects, pages = self._objects[0], self._pages[0]
        objects = objects[objects["allocates"]]
        page = (objects["address"] - np.uint64(self.base)).astype(np.int64) >> PAGE_SHIFT
        at = np.minimum(np.searchsorted(pages["page"], page), max(0, len(pages) - 1))
        young = (pages["page"][at] == page) & (pages["row"][at] < objects["row"]) if len(pages) else np.zeros(len(objects), bool)
        steps = np.concatenate([objects[~young], *self._older_frees])
        steps = steps[np.argsort(steps["row"], kind="stable")]
        for cache in np.unique(steps["cache"]):
            taken = np.cumsum(np.where(steps["allocates"][steps["cache"] == cache], 1, -1))
            out[cache] = max(0, int(taken.max()))
        return out


_OBJECT = np.dtype([("address", np.uint64), ("row", np.int64), ("cache", np.uint16), ("allocates", np.bool_)])
_PAGE = np.dtype([("page", np.int64), ("row", np.int64)])


def _address(text: str | None) -> int | None:
    """A base of the direct map; None where there is none that could be."""
    try:
        found = int(text or "", 16)
    except ValueError:
        return None
    return found if 0 <= found < 1 << 64 else None


def _first(records: np.ndarray, key: str) -> np.ndarray:
    """Of the records with equal keys the first, in order of the key."""
    _, first = np.unique(records[key], return_index=True)
    return records[first]
