"""The scratch file's records and numbers, made by lab/scratch_form.py of the programs' scratch.h: do not edit."""

from __future__ import annotations

import numpy as np

SCRATCH_VERSION = 3
SCRATCH_ALIGN = 64
NO_HANDLE = 4294967295
VACATED = 4294967294
NO_CACHE = 65535
EVENT_IMPLIED = 2147483648
SY_PAGE_SHIFT = 12
SY_MAX_ORDER = 10
SY_NO_SHEAVES = 65535
SY_ZERO = 1
SY_RECLAIMABLE = 2
SY_MOVABLE = 4
SY_HIGHATOMIC = 8
SY_ACCOUNT = 16
SY_DMA = 32
SY_DMA32 = 64
SY_THISNODE = 128
SY_NO_RECLAIM = 256
SY_KM_SLEEP = 512
SY_KM_NOSLEEP = 256
SY_CACHE_HWCACHE_ALIGN = 1
SY_CACHE_TYPESAFE_BY_RCU = 2
SY_CACHE_RECLAIMABLE = 4
SY_CACHE_ACCOUNT = 8
SY_CACHE_DMA = 16
SY_CACHE_DMA32 = 32
SY_CACHE_NO_MERGE = 64
SY_CACHE_KMALLOC = 128
SY_CACHE_LINK_INSIDE = 256
SY_CACHE_KFREE = 512
EVENT_KMALLOC = 0
EVENT_KFREE = 1
EVENT_CACHE_ALLOC = 2
EVENT_CACHE_FREE = 3
EVENT_PAGE_ALLOC = 4
EVENT_PAGE_FREE = 5
EVENT_SNAPSHOT = 6
EVENT_OLDER_PAGE_FREE = 7
EVENT_UNKNOWN_FREE = 8
EVENT_UNKNOWN_PAGE_FREE = 9
EVENT_KINDS = 10

RECORDS = {
    "header": np.dtype({
        "names": ["magic", "version", "sections"],
        "formats": ["S8", "<u4", "<u4"],
        "offsets": [0, 8, 12], "itemsize": 16,
    }),
    "section": np.dtype({
        "names": ["name", "offset", "count", "record_bytes", "reserved"],
        "formats": ["S8", "<u8", "<u8", "<u4", "<u4"],
        "offsets": [0, 8, 16, 24, 28], "itemsize": 32,
    }),
    "event": np.dtype({
        "names": ["time_ns", "handle", "size", "call_site", "flags", "cache", "cpu", "kind", "order", "migrate", "node"],
        "formats": ["<u8", "<u4", "<u4", "<u4", "<u4", "<u2", "<u2", "u1", "u1", "u1", "i1"],
        "offsets": [0, 8, 12, 16, 20, 24, 26, 28, 29, 30, 31], "itemsize": 32,
    }),
    "cache": np.dtype({
        "names": ["name", "object_size", "align", "flags", "constructor", "sheaf_capacity"],
        "formats": ["S48", "<u4", "<u4", "<u4", "<u2", "<u2"],
        "offsets": [0, 48, 52, 56, 60, 62], "itemsize": 64,
    }),
    "zone": np.dtype({
        "names": ["name", "node", "reserved", "start_page", "pages", "managed", "min", "low", "high"],
        "formats": ["S16", "<u4", "<u4", "<u8", "<u8", "<u8", "<u8", "<u8", "<u8"],
        "offsets": [0, 16, 20, 24, 32, 40, 48, 56, 64], "itemsize": 72,
    }),
    "free_blocks": np.dtype({
        "names": ["zone", "reserved", "free_blocks", "pageblocks"],
        "formats": ["<u4", "<u4", "(4,11)<u8", "(4,)<u8"],
        "offsets": [0, 4, 8, 360], "itemsize": 392,
    }),
    "older": np.dtype({
        "names": ["handle", "size", "cache", "cpu", "flags"],
        "formats": ["<u4", "<u4", "<u2", "<u2", "<u4"],
        "offsets": [0, 4, 8, 10, 12], "itemsize": 16,
    }),
    "grace": np.dtype({
        "names": ["begins_ns", "ends_ns"],
        "formats": ["<u8", "<u8"],
        "offsets": [0, 8], "itemsize": 16,
    }),
    "run": np.dtype({
        "names": ["handles", "cpus", "nodes", "pageblock_order", "call_sites", "snapshots", "span_ns", "grace_ns", "kernel", "merges",
                  "longest_wait_us", "beside", "reserved"],
        "formats": ["<u4", "<u4", "<u4", "<u4", "<u4", "<u4", "<u8", "<u8", "<u2", "<u2", "<u4", "<u4", "<u4"],
        "offsets": [0, 4, 8, 12, 16, 20, 24, 32, 40, 42, 44, 48, 52], "itemsize": 56,
    }),
}  # fmt: skip
