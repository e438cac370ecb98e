"""One CPU allocates, another frees: the traffic of a driver whose requests are made on one CPU and completed on another.

No recording has that on 64 CPUs, so it is made. Producers allocate a request (three objects, of a block layer's sizes) and hand it to the
CPU that completes it, which frees it when so many others have been handed over since; how many is drawn for each request. The same on
every machine, by a seed.

    pairs   half of the CPUs produce, each for one partner
    one     one CPU produces for all others in turn
    same    every CPU frees what it has allocated: the traffic to compare with
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from ..trace.file import CACHE_ALLOC, CACHE_FREE, KINDS, METADATA_KEY, ORIGINS, Cache, Metadata, made_rows, text_column

OBJECTS = (("request_of_driver", 256), ("bio_of_driver", 200), ("page_list", 1024))  # caches, with the bytes of an object
PATTERNS = ("pairs", "one", "same")
DEPTH = (16, 256)  # requests in flight for each CPU that completes: least and most
STEP = 400  # ns from one request to the next


def write(path: Path, pattern: str, cpus: int, requests: int, waits: bool = False, seed: int = 1) -> Path:
    """The traffic as a trace, from empty memory. `waits`: requests may wait, as those of most code; those of interrupts may not."""
    number = np.arange(requests)
    if pattern == "one":
        makes, ends = np.zeros(requests, np.int64), 1 + number % (cpus - 1)
    else:
        lanes = cpus // 2 if pattern == "pairs" else cpus
        makes = number % lanes * (cpus // lanes)
        ends = makes + 1 if pattern == "pairs" else makes
    of_one = np.random.default_rng(seed).integers(*DEPTH, requests, endpoint=True)
    lanes = len(np.unique(ends))
    completed = STEP * (number + 1 + of_one * lanes)  # another request of the same CPU comes `lanes` steps later
    objects = len(OBJECTS)
    each = np.tile(np.arange(objects), requests)
    time = np.concatenate([np.repeat(STEP * number, objects), np.repeat(completed, objects)])
    order = np.argsort(time, kind="stable")
    whole = np.arange(requests * objects)
    sizes = np.array([size for _, size in OBJECTS])
    rows = 2 * len(whole)

    def twice(column: np.ndarray) -> np.ndarray:
        return np.concatenate([column, column])[order]

    kinds = np.concatenate([np.full(len(whole), CACHE_ALLOC), np.full(len(whole), CACHE_FREE)])[order]
    made = {
        "time": time[order], "cpu": np.concatenate([np.repeat(makes, objects), np.repeat(ends, objects)])[order],
        "kind": text_column(kinds.astype(np.int32), np.array(KINDS, object)), "object": twice(whole), "size": twice(sizes[each]),
        "allocated": twice(sizes[each]), "cache": twice(each), "migratetype": np.full(rows, -1), "node": np.full(rows, -1),
        "origin": text_column(np.zeros(rows, np.int32), np.array(ORIGINS[:1], object)),
        "gfp_flags": text_column(np.zeros(rows, np.int32), np.array(["GFP_KERNEL" if waits else "GFP_ATOMIC"], object)),
    }  # fmt: skip
    caches = [Cache(name, size, slab_size=None) for name, size in OBJECTS]
    metadata = Metadata(arch="x86_64", source="made", cpus=cpus, caches=caches, rows=rows, span_seconds=float(time.max()) / 1e9)
    metadata.events = {KINDS[CACHE_ALLOC]: len(whole), KINDS[CACHE_FREE]: len(whole)}
    pq.write_table(made_rows(made, rows).replace_schema_metadata({METADATA_KEY: metadata.to_json().encode()}), path)
    return path
