"""Slabs that came without an event, found from two slabinfos and the trace between them."""

from __future__ import annotations

from pathlib import Path

import handmade
import pytest

from slabyard.trace.file import NO_OBJECT, Trace
from slabyard.trace.info import is_off, largest_unseen, slab_sums
from slabyard.trace.unseen import unseen_slabs

BASE = 0xFFFF888000000000


def at(frame: int) -> int:
    return BASE + (frame << 12)


def slabinfo(**slabs: int) -> str:
    """Caches of one-page slabs; an underscore stands for a hyphen."""
    lines = [f"{name.replace('_', '-')} 1 16 256 16 1 : tunables 0 0 0 : slabdata {count} {count} 0\n" for name, count in slabs.items()]
    return "slabinfo - version: 2.1\n" + "".join(lines)


def written(start: str, end: str, tmp_path: Path) -> Trace:
    """A trace of three caches. dentry takes a slab and gives back one from before; inode takes one of two pages; kmalloc
    takes one."""
    build = handmade.Builder()
    build.metadata.direct_map.base = hex(BASE)
    build.metadata.caches = [handmade.cache("dentry", 256), handmade.cache("inode", 256)]
    build.snapshot("start", {"slabinfo": start, "meminfo": "Slab: 4000 kB\n"})
    build.page_alloc(50, address=200, owner="slab")
    build.cache_alloc(1, 0, address=at(200))
    build.cache_free(NO_OBJECT, 0, origin="older", address=at(300))
    build.page_free(NO_OBJECT, address=300, owner="slab", origin="older")
    build.page_alloc(51, address=202, order=1, owner="slab")
    build.cache_alloc(2, 1, address=at(203))
    build.page_alloc(52, address=204, owner="slab")
    build.kmalloc(3, 64, address=at(204))
    build.page_alloc(53, address=205, owner="environment")
    build.snapshot("end", {"slabinfo": end, "meminfo": "Slab: 4100 kB\n"})
    return Trace(build.write(tmp_path / "t.parquet"))


START = slabinfo(dentry=7, inode=4, kmalloc_64=3, kmalloc_cg_64=3)


def test_nothing_came_unseen(tmp_path: Path) -> None:
    """The event may be of either type of kmalloc."""
    with written(START, slabinfo(dentry=7, inode=6, kmalloc_64=3, kmalloc_cg_64=4), tmp_path) as trace:
        assert unseen_slabs(trace) == {}


def test_what_came_unseen_is_told_by_cache(tmp_path: Path) -> None:
    with written(START, slabinfo(dentry=12, inode=6, kmalloc_64=4, kmalloc_cg_64=3, filp=20), tmp_path) as trace:
        assert unseen_slabs(trace) == {"filp": 20, "dentry": 5}
        sums = slab_sums(trace)
    assert sums == {"start_kib": 4000, "end_kib": 4100, "recorded_end_kib": 4012, "unseen_kib": {"filp": 80, "dentry": 20}}
    assert largest_unseen(sums["unseen_kib"]) == "100 KiB came without an event (filp 80, dentry 20)"


def test_what_went_without_an_event_is_no_slab_that_came(tmp_path: Path) -> None:
    with written(START, slabinfo(dentry=2, inode=6, kmalloc_64=4), tmp_path) as trace:
        assert unseen_slabs(trace) == {}


@pytest.mark.parametrize("missing", ["slabinfo", "base"])
def test_not_known(tmp_path: Path, missing: str) -> None:
    with written(START, "" if missing == "slabinfo" else START, tmp_path) as trace:
        if missing == "base":
            trace.metadata.direct_map.base = None
        assert unseen_slabs(trace) is None


@pytest.mark.parametrize("start, end, recorded, off", [(1_085_908, 1_086_312, 1_086_040, True), (36_352, 36_612, 36_628, False)])
def test_what_is_off_is_seen_in_a_large_heap_that_grew_by_little(start: int, end: int, recorded: int, off: bool) -> None:
    assert is_off(start, end, recorded) is off
