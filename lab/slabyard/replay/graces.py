"""How long the recorded kernel's slabs waited for RCU grace periods: what the trace itself shows.

A slab of a cache with SLAB_TYPESAFE_BY_RCU that has become empty goes back after a grace period. The last free of an object in it and
the free of its page are in the trace. What became empty earlier waits no longer than what became empty later, so memory that begins to
wait at a time waits until the first such free of a page among those that became empty then or later. Of what became empty last of all
nothing is known: it still waits.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ..trace.file import CACHE_FREE, KFREE, OWNERS, PAGE_FREE, SLAB, Metadata, codes
from . import scratch_form as form
from .olderfree import PAGE_SHIFT, address_of

GRACE = form.RECORDS["grace"]
GRACE_NS = 10_000_000  # an RCU grace period on a busy machine takes a few ticks
LONGEST = 3  # times the usual wait
_ROW_BITS = 32


class Graces:
    """Takes a trace row group by row group. Memory goes with the pages that the trace has, not with its length."""

    def __init__(self, metadata: Metadata) -> None:
        self.base = address_of(metadata.direct_map.base)
        self._typesafe = np.array([*(cache.typesafe_by_rcu for cache in metadata.caches), False])
        self._pages, self._times = np.empty(0, np.int64), np.empty(0, np.int64)  # of the last free in each page
        self._begins, self._ends = [np.empty(0, np.int64)], [np.empty(0, np.int64)]

    def take(self, batch: pa.RecordBatch, kinds: np.ndarray) -> None:
        """One row group; `kinds`: uint8[rows], positions in trace.KINDS."""
        if self.base is None or not self._typesafe.any():
            return
        cache = np.minimum(batch["cache"].to_numpy(), len(self._typesafe) - 1)
        time, address = batch["time"].to_numpy(), batch["address"].to_numpy()
        frees = np.flatnonzero(((kinds == CACHE_FREE) | (kinds == KFREE)) & self._typesafe[cache])
        page = (address[frees] - np.uint64(self.base)).astype(np.int64) >> PAGE_SHIFT
        keys = np.concatenate([self._pages << _ROW_BITS, page << _ROW_BITS | (frees + 1)])
        order = np.argsort(keys)
        keys, times = keys[order], np.concatenate([self._times, time[frees]])[order]
        self._give_back(batch, kinds, keys, times)
        pages = keys >> _ROW_BITS
        last = np.flatnonzero(np.append(pages[1:] != pages[:-1], len(pages) > 0))
        self._pages, self._times = pages[last], times[last]

    def _give_back(self, batch: pa.RecordBatch, kinds: np.ndarray, keys: np.ndarray, times: np.ndarray) -> None:
        """Notes the waits that end in a group. `keys`, ascending, have the page and the row of each free."""
        rows = np.flatnonzero((kinds == PAGE_FREE) & (codes(batch["owner"], OWNERS) == SLAB))
        if not len(rows) or not len(keys):
            return
        sizes = 1 << batch["order"].to_numpy()[rows].astype(np.int64)
        starts = np.cumsum(sizes) - sizes
        offsets = np.arange(int(sizes.sum())) - np.repeat(starts, sizes)
        page = np.repeat(batch["address"].to_numpy()[rows].astype(np.int64), sizes) + offsets
        at = np.searchsorted(keys, page << _ROW_BITS | np.repeat(rows + 1, sizes)) - 1
        seen = (at >= 0) & (keys[at] >> _ROW_BITS == page)
        begins = np.maximum.reduceat(np.where(seen, times[at], -1), starts)
        self._begins.append(begins[begins >= 0])
        self._ends.append(batch["time"].to_numpy()[rows][begins >= 0])

    def longest_wait_us(self) -> int:
        """Microseconds that memory waits at most: LONGEST times the usual wait, which is longer on a busy machine. 0: not known."""
        waits = np.concatenate(self._ends) - np.concatenate(self._begins)
        return min(int(LONGEST * max(GRACE_NS, np.median(waits))) // 1000, 0xFFFFFFFF) if len(waits) else 0

    def table(self) -> np.ndarray:
        """dtype GRACE: what began to wait by then, and not by the entry before, waited until."""
        begins, ends = np.concatenate(self._begins), np.concatenate(self._ends)
        order = np.lexsort([ends, begins])
        begins, ends = begins[order], np.minimum.accumulate(ends[order][::-1])[::-1]
        last = np.flatnonzero(np.append(ends[1:] != ends[:-1], len(ends) > 0))
        out = np.zeros(len(last), GRACE)
        out["begins_ns"], out["ends_ns"] = begins[last], ends[last]
        return out
