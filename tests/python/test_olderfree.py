"""Room in slabs older than a trace, as the trace proves it."""

from __future__ import annotations

from pathlib import Path

import handmade
import numpy as np

from slabyard.replay import scratch
from slabyard.replay.workload import Options, Workload

BASE = 0xFFFF888000000000
SLABINFO = "slabinfo - version: 2.1\ndentry 12 16 256 16 1 : tunables 0 0 0 : slabdata 1 1 0\n"
OLD, YOUNG = BASE + (100 << 12), BASE + (200 << 12)


def builder(snapshot_first: bool = True, base: str | None = "0xffff888000000000") -> handmade.Builder:
    """A cache with 16 objects of room in one slab, of which slabinfo counts twelve as active."""
    build = handmade.Builder()
    build.metadata.cpus = 1
    build.metadata.direct_map.base = base
    build.metadata.caches = [handmade.cache("dentry", 256)]
    if snapshot_first:
        build.snapshot("start", {"slabinfo": SLABINFO}, {"dentry": {"cpu_slabs": "0"}})
    return build


def staying(path: Path) -> int:
    """Objects of the cache that are there when the replay begins."""
    with Workload(path, Options()) as workload:
        header = np.frombuffer(workload.scratch.read_bytes(), scratch.SECTION, 7, 16)
        older = next(one for one in header if one["name"] == b"older")
        rows = np.fromfile(workload.scratch, scratch.OLDER, int(older["count"]), offset=int(older["offset"]))
        return int(((rows["cache"] == 0) & (rows["handle"] != scratch.VACATED)).sum())


def test_addresses_in_older_slabs_were_free(tmp_path: Path) -> None:
    build = builder()
    for number in range(9):
        build.cache_alloc(number, 0, address=OLD + 256 * number)
    for number in range(9):
        build.cache_free(number, 0, address=OLD + 256 * number)
    build.cache_alloc(9, 0, address=OLD)  # seen before
    assert staying(build.write(tmp_path / "t.parquet", 4)) == 16 - 9


def test_what_is_no_proof(tmp_path: Path) -> None:
    """Four free ones are known anyway. Pages that the trace saw allocated are young, and what older frees gave is no room at the start."""
    build = builder()
    build.page_alloc(50, address=200, owner="slab")
    for number in range(9):
        build.cache_alloc(number, 0, address=YOUNG + 256 * number)
    for number in range(6):
        build.cache_free(scratch.NONE, 0, origin="older", address=OLD + 256 * number)
    for number in range(6, 16):
        build.cache_alloc(number + 10, 0, address=OLD + 256 * number)
    assert staying(build.write(tmp_path / "t.parquet", 4)) == 12


def test_without_a_direct_map_nothing_is_proved(tmp_path: Path) -> None:
    build = builder(base=None)
    for number in range(9):
        build.cache_alloc(number, 0, address=OLD + 256 * number)
    assert staying(build.write(tmp_path / "t.parquet")) == 12
