"""The column `cache_name`: the cache of an event by name, so that a query can group by it without the metadata.

A cache has its name of the metadata. A kmalloc has no cache in a trace, because its cache is what the recorded allocator made of the
size; here it goes by that size class, as the kernel names it: kmalloc-192, kmalloc-2k. A kernel whose objects share pages (SLOB) has no
size classes; there a request goes by the next power of two. Pages, marks, and frees of which nothing is known have an empty name.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .snapshots import kmalloc_name


def kmalloc_class(size: np.ndarray, allocated: np.ndarray, shared_pages: bool) -> np.ndarray:
    """int64: bytes of the size class of each request; 0 where nothing is known of it."""
    if not shared_pages:
        return allocated.astype(np.int64)
    rounded = np.left_shift(np.int64(1), np.ceil(np.log2(np.maximum(size, 8))).astype(np.int64))
    return np.where(size > 0, rounded, 0)


def names(
    kmallocs: np.ndarray, cache: np.ndarray, size: np.ndarray, allocated: np.ndarray, caches: Sequence[str], shared_pages: bool
) -> tuple[np.ndarray, list[str]]:
    """Of each row a position in the list of texts, and that list: the empty one, the caches in order, the size classes.

    `kmallocs` are the positions of rows of kmalloc and kfree that have no cache.
    """
    texts = ["", *caches]
    found = np.where(cache < len(caches), cache.astype(np.int32) + 1, np.int32(0))
    classes, inverse = np.unique(kmalloc_class(size[kmallocs], allocated[kmallocs], shared_pages), return_inverse=True)
    places = np.arange(len(classes), dtype=np.int32) + len(texts)
    places[classes == 0] = 0
    found[kmallocs] = places[inverse]
    return found, texts + [kmalloc_name(int(one)) for one in classes]
