"""A trace as the replay's arrays, and what was there before it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import handmade
import numpy as np
import pytest

from slabyard.replay import scratch
from slabyard.trace import file as trace, gfp
from slabyard.base.errors import UserError
from slabyard.replay.workload import Options, Workload
from slabyard.trace.snapshots import Zone

HEADER = np.dtype([("name", "S8"), ("offset", "<u8"), ("count", "<u8"), ("bytes", "<u4"), ("reserved", "<u4")])
DTYPES = {
    b"events": scratch.EVENT, b"caches": scratch.CACHE, b"zones": scratch.ZONE, b"freeblk": scratch.FREE_BLOCKS, b"older": scratch.OLDER,
    b"run": scratch.RUN, b"order": np.dtype("<u4"),
}  # fmt: skip


def sections(path: Path) -> dict[str, np.ndarray]:
    """The sections of a scratch file, as its header describes them."""
    data = path.read_bytes()
    assert data[:8] == b"SLABYARD"
    version, count = np.frombuffer(data, "<u4", 2, 8)
    assert version == 3
    found = {}
    for entry in np.frombuffer(data, HEADER, count, 16):
        dtype = DTYPES[entry["name"]]
        assert entry["bytes"] == dtype.itemsize and entry["offset"] % 64 == 0
        found[entry["name"].decode()] = np.frombuffer(data, dtype, entry["count"], entry["offset"])
    return found


def prepared(path: Path, **options: object) -> dict[str, np.ndarray]:
    with Workload(path, Options(**options)) as workload:  # type: ignore[arg-type]
        return sections(workload.scratch)


@pytest.mark.parametrize(
    ("kernel", "version"),
    [("6.18.44-fc-v782", 6 << 8 | 18), ("7.0.0", 7 << 8), ("6.1.192", 6 << 8 | 1), ("", 0), ("unknown", 0), ("4.19.325+", 4 << 8 | 19)],
)
def test_the_replay_knows_the_kernel(tmp_path: Path, kernel: str, version: int) -> None:
    build = handmade.Builder()
    build.metadata.kernel = kernel
    build.kmalloc(0, 8)
    with Workload(build.write(tmp_path / "t.parquet"), Options()) as workload:
        run = sections(workload.scratch)["run"][0]
        assert (run["kernel"], run["merges"]) == (version, 0)


def test_what_newer_kernels_have_of_a_cache() -> None:
    """Which caches may have sheaves, and those that ask for them. The free pointer is inside an object where the recorded
    kernel had no room behind it."""
    records = scratch.cache_records(
        [
            trace.Cache("vm_area_struct", 192, typesafe_by_rcu=True, slab_size=192),
            trace.Cache("anon_vma", 96, typesafe_by_rcu=True, slab_size=104),
            trace.Cache("kmem_cache", 232, slab_size=256),
        ]
    )
    assert records["sheaf_capacity"].tolist() == [32, 0, scratch.NO_SHEAVES]
    assert [bool(flags & scratch.LINK_INSIDE) for flags in records["flags"].tolist()] == [True, False, False]


def test_every_kind_of_row(tmp_path: Path) -> None:
    build = handmade.Builder()
    build.metadata.caches = [handmade.cache("dentry", 192, constructor=True, reclaimable=True)]
    build.kmalloc(0, 100, gfp_flags="GFP_ATOMIC|__GFP_ZERO", accounted=True, cpu=3, node=0)
    build.cache_alloc(1, 0, origin="implied")
    build.page_alloc(2, 3, migratetype=2)
    build.page_alloc(3, owner="slab")
    build.page_alloc(4, owner="unknown", migratetype=4)
    build.row("mm_page_alloc_extfrag", migratetype=0)
    build.snapshot("end", {})
    build.kfree(0)
    build.page_free(3, owner="slab")
    build.page_free(2, 3)
    build.row("kfree", origin="older", address=0xFFFF888000001000)
    build.row("mm_page_free", origin="older", address=77, owner="unknown")
    build.metadata.cpus = 4
    found = prepared(build.write(tmp_path / "t.parquet", 3), start="empty")
    events = found["events"]
    assert events["kind"].tolist() == [
        scratch.KMALLOC, scratch.CACHE_ALLOC, scratch.PAGE_ALLOC, scratch.PAGE_ALLOC, scratch.SNAPSHOT, scratch.KFREE, scratch.PAGE_FREE,
        scratch.UNKNOWN_FREE, scratch.UNKNOWN_PAGE_FREE,
    ]  # fmt: skip
    assert events["flags"][0] == gfp.HIGHATOMIC | gfp.ZERO | gfp.ACCOUNT
    assert (events["cpu"][0], events["node"][0], events["size"][0]) == (3, 0, 100)
    assert events["flags"][1] == gfp.IMPLIED
    assert (events["order"][2], events["migrate"][2], events["migrate"][3]) == (3, gfp.RECLAIMABLE_TYPE, gfp.MOVABLE_TYPE)
    assert events["time_ns"].tolist() == sorted(events["time_ns"].tolist())
    assert found["caches"]["name"].tolist() == [b"dentry"] and found["caches"]["flags"][0] == 4 and found["caches"]["constructor"][0] == 1
    run = found["run"][0]
    assert (run["handles"], run["cpus"], run["nodes"], run["pageblock_order"], run["snapshots"], run["call_sites"]) == (5, 4, 1, 9, 1, 3)
    assert run["span_ns"] == events["time_ns"][-1]


def test_call_sites_are_numbered_over_all_row_groups(tmp_path: Path) -> None:
    build = handmade.Builder()
    for number, site in enumerate(["b+0x1", "a+0x1", "b+0x1", "c+0x1", "a+0x1"]):
        build.kmalloc(number, 32, call_site=site)
    path = build.write(tmp_path / "t.parquet", 2)
    with Workload(path, Options()) as workload:
        events = sections(workload.scratch)["events"]
        names = [workload.translation.call_sites[number] for number in events["call_site"]]
    assert names == ["b+0x1", "a+0x1", "b+0x1", "c+0x1", "a+0x1"]


def test_fewer_cpus_and_nodes_than_recorded(tmp_path: Path) -> None:
    build = handmade.Builder()
    build.metadata.cpus, build.metadata.nodes = 4, 2
    build.kmalloc(0, 32, cpu=3, node=1)
    found = prepared(build.write(tmp_path / "t.parquet"), cpus=2, nodes=1)
    assert (found["events"]["cpu"][0], found["events"]["node"][0]) == (1, -1)


def test_default_zones(tmp_path: Path) -> None:
    build = handmade.Builder()
    build.kmalloc(0, 32)
    path = build.write(tmp_path / "t.parquet")
    zones = prepared(path, memory=8 << 30)["zones"]
    assert zones["name"].tolist() == [b"DMA", b"DMA32", b"Normal"]
    assert zones["start_page"].tolist() == [0, 4096, 1 << 20] and zones["pages"].tolist() == [4096, (1 << 20) - 4096, 1 << 20]
    zones = prepared(path, memory=8 << 30, nodes=2)["zones"]
    assert zones["node"].tolist() == [0, 0, 1] and int(zones["pages"].sum()) == 2 << 20
    assert prepared(path, memory=8 << 20)["zones"]["pages"].tolist() == [2048]


def test_recorded_zones_start_at_a_largest_block(tmp_path: Path) -> None:
    build = handmade.Builder()
    build.metadata.zones = [Zone(0, "DMA", 1, 4095, 3840, 24, 30, 36), Zone(0, "Normal", 4096, 8192, 8000, 5, 6, 7)]
    build.kmalloc(0, 32)
    zones = prepared(build.write(tmp_path / "t.parquet"))["zones"]
    assert zones["start_page"].tolist() == [0, 4096] and zones["pages"].tolist() == [4096, 8192]
    assert zones["managed"].tolist() == [3840, 8000] and zones["high"].tolist() == [36, 7]


SLABINFO = """slabinfo - version: 2.1
dentry               120    126    192   21    1 : tunables    0    0    0 : slabdata      6      6      0
unseen                42     42    600   21    4 : tunables    0    0    0 : slabdata      2      2      0
kmalloc-64            64     64     64   64    1 : tunables    0    0    0 : slabdata      1      1      0
kmalloc-cg-64        128    128     64   64    1 : tunables    0    0    0 : slabdata      2      2      0
"""


def snapshot_trace(path: Path, slabinfo: str = SLABINFO, attributes: dict[str, dict[str, str]] | None = None, apart: int = 4096) -> Path:
    """`apart`: bytes from one freed dentry to the next."""
    build = handmade.Builder()
    build.metadata.cpus = 1
    build.metadata.caches = [handmade.cache("dentry", 192)]
    build.snapshot("start", {"slabinfo": slabinfo}, attributes)
    build.kmalloc(0, 50)
    build.cache_alloc(1, 0)
    for number in range(30):
        build.cache_free(scratch.NONE, 0, origin="older", address=0xFFFF888000100000 + (29 - number) * apart)
    build.row("kfree", origin="older", address=0xFFFF888000000008)  # in the page of object 0: 64 bytes
    build.row("kfree", origin="older", address=0xFFFF888009990000)
    return build.write(path)


def staying(older: np.ndarray) -> np.ndarray:
    """The older objects that are there when the trace begins."""
    return older[older["handle"] != scratch.VACATED]


def test_population_from_slabinfo(tmp_path: Path) -> None:
    with Workload(snapshot_trace(tmp_path / "t.parquet"), Options()) as workload:
        assert workload.start == "recorded"
        found = sections(workload.scratch)
    older, caches = staying(found["older"]), found["caches"]
    assert caches["name"].tolist() == [b"dentry", b"unseen"]
    # One CPU's slab is half used: 120 - 21/2, 42 - 21/2, 64 - 64/2, 128 - 64/2.
    counts = {cache: int((older["cache"] == cache).sum()) for cache in (0, 1)}
    assert counts == {0: 110, 1: 32}
    plain = older[(older["cache"] == scratch.NO_CACHE) & (older["flags"] == 0)]
    charged = older[(older["cache"] == scratch.NO_CACHE) & (older["flags"] == gfp.ACCOUNT)]
    assert (len(plain), len(charged)) == (32, 96)
    assert set(plain["size"]) == {50}, "asked for with the mean size that the trace asks of the class"
    assert (older["size"][older["cache"] == 1] == 600).all()


def test_older_frees_free_the_population(tmp_path: Path) -> None:
    found = prepared(snapshot_trace(tmp_path / "t.parquet"))
    events, older = found["events"], staying(found["older"])
    frees = events[np.isin(events["kind"], [scratch.CACHE_FREE, scratch.KFREE])]
    assert len(frees) == 32 and (events["kind"] != scratch.UNKNOWN_FREE).all()
    handles = older["handle"][older["handle"] != scratch.NONE]
    assert sorted(handles.tolist()) == sorted(frees["handle"].tolist()) and len(set(handles.tolist())) == 32
    assert handles.max() + 1 == found["run"]["handles"][0]
    # In order of address, the reverse of the order of the frees. Each is from a slab of its own, so no two are neighbours.
    dentries = older[older["cache"] == 0]["handle"]
    placed = dentries[dentries != scratch.NONE]
    assert placed.tolist() == frees["handle"][:30][::-1].tolist()
    assert older["cache"][np.isin(older["handle"], frees["handle"][30:])].tolist() == [scratch.NO_CACHE] * 2


def test_free_objects_of_partial_slabs_leave_holes(tmp_path: Path) -> None:
    slabinfo = SLABINFO.replace("120    126", " 90    126")
    attributes = {"dentry": {"cpu_slabs": "0", "partial": "3 N0=3"}}
    older = prepared(snapshot_trace(tmp_path / "t.parquet", slabinfo, attributes, apart=200))["older"]
    dentries = older[older["cache"] == 0]
    holes = np.flatnonzero(dentries["handle"] == scratch.VACATED)
    assert (len(dentries), len(holes)) == (126, 36)
    # One of the slabs with objects that the trace frees is full of them; six fill up the other. The rest are in three slabs.
    assert np.bincount(holes // 21, minlength=6).tolist() == [0, 0, 10, 10, 6, 10]
    with Workload(tmp_path / "t.parquet", Options()) as workload:
        replayed = workload.exact("slub")
    assert replayed["older_objects"] == len(staying(older)) == workload.older_objects
    slabs = next(row for row in replayed["caches"] if row["name"] == "dentry")
    assert (slabs["slabs"], slabs["live"]) == (6, 90 + 1 - 30), "one is allocated in the trace"


def test_large_kmallocs_are_what_meminfo_has_beyond_slabinfo(tmp_path: Path) -> None:
    build = handmade.Builder()
    build.snapshot("start", {"slabinfo": SLABINFO, "meminfo": "MemTotal: 1000000 kB\nSlab: 1024 kB\n"})
    build.kmalloc(0, 50)
    older = prepared(build.write(tmp_path / "t.parquet"))["older"]
    slabs = 6 + 2 * 4 + 1 + 2
    assert older["size"].tolist().count(32768) == (256 - slabs) // 8


@pytest.mark.parametrize("start", ["recorded", "empty"])
def test_an_older_free_of_an_unknown_cache_is_counted(tmp_path: Path, start: str) -> None:
    build = handmade.Builder()
    build.snapshot("start", {"slabinfo": SLABINFO})
    build.cache_free(scratch.NONE, scratch.NO_CACHE, origin="older", address=0xFFFF888000100000)
    build.kmalloc(0, 50)
    with Workload(build.write(tmp_path / "t.parquet"), Options(start=start)) as workload:
        assert workload.exact("slub")["unknown_frees"] == 1


def test_population_is_enlarged_to_what_the_trace_frees(tmp_path: Path) -> None:
    slabinfo = SLABINFO.replace("120    126", "  3     21")
    older = staying(prepared(snapshot_trace(tmp_path / "t.parquet", slabinfo))["older"])
    assert int((older["cache"] == 0).sum()) == 30


def test_cpu_slabs_and_array_caches_are_taken_off(tmp_path: Path) -> None:
    attributes = {"dentry": {"cpu_slabs": "4 N0=4"}}
    older = staying(prepared(snapshot_trace(tmp_path / "a.parquet", attributes=attributes))["older"])
    assert int((older["cache"] == 0).sum()) == 120 - 42
    first, *others = SLABINFO.splitlines()[1:]
    slab = "\n".join([first.replace("tunables    0    0    0", "tunables   54   27    8")[:-1] + "12", *others])
    older = staying(prepared(snapshot_trace(tmp_path / "b.parquet", slab))["older"])
    assert int((older["cache"] == 0).sum()) == 120 - 27 - 12


def test_arrays_of_a_slab_kernel_begin_filled(tmp_path: Path) -> None:
    """The same where the snapshot comes later: 120 active objects less the traced one; 27 of them are taken to be in the
    array."""
    build = handmade.Builder()
    build.metadata.cpus = 1
    build.metadata.caches = [handmade.cache("dentry", 192)]
    build.cache_alloc(0, 0)
    line = "dentry 120 126 192 21 1 : tunables 54 27 0 : slabdata 6 6 0\n"
    build.snapshot("later", {"slabinfo": "slabinfo - version: 2.1\n" + line})
    older = prepared(build.write(tmp_path / "t.parquet"))["older"]
    assert len(older) == 120 - 1 and len(staying(older)) == 120 - 1 - 27


def test_caches_that_slabinfo_alone_knows_are_described_as_others_are(tmp_path: Path) -> None:
    said = {"object_size": "584", "align": "64", "ctor": "init_once", "destroy_by_rcu": "1", "hwcache_align": "1", "reclaim_account": "1"}
    caches = prepared(snapshot_trace(tmp_path / "t.parquet", attributes={"unseen": said}))["caches"]
    assert caches[1].tolist() == (b"unseen", 584, 64, 1 | 2 | 4, 1, 0)
    caches = prepared(snapshot_trace(tmp_path / "odd.parquet", attributes={"unseen": {**said, "align": "24"}}))["caches"]
    assert caches["align"][1] == 0, "no power of two: the default"


def test_snapshot_in_the_middle_leaves_out_what_the_trace_accounts_for(tmp_path: Path) -> None:
    build = handmade.Builder()
    build.metadata.cpus = 1
    build.metadata.caches = [handmade.cache("dentry", 192)]
    for number in range(40):
        build.cache_alloc(number, 0)
    for number in range(10):
        build.cache_free(number, 0)
    build.cache_free(scratch.NONE, 0, origin="older", address=0xFFFF888000100000)
    build.snapshot("middle", {"slabinfo": SLABINFO})
    older = staying(prepared(build.write(tmp_path / "t.parquet"))["older"])
    assert int((older["cache"] == 0).sum()) == 120 - 10 - 30 + 1


BUDDY = "Node 0, zone   Normal    100     50     20     10      5      4      3      2      1      1     20\n"
ZONES = [Zone(0, "Normal", 0, 65536, 65536, 100, 125, 150)]


def test_pages_start_as_recorded(tmp_path: Path) -> None:
    pagetypeinfo = """Page block order: 9
Node    0, zone   Normal, type    Unmovable     60     10      0      0      0      0      0      0      0      0      0
Node    0, zone   Normal, type      Movable     40     40     20     10      5      4      3      2      1      1     20
Number of blocks type     Unmovable      Movable  Reclaimable   HighAtomic
Node 0, zone   Normal           16          112            0            0
"""
    build = handmade.Builder()
    build.metadata.zones = list(ZONES)
    build.snapshot("start", {"buddyinfo": BUDDY, "pagetypeinfo": pagetypeinfo, "slabinfo": SLABINFO})
    build.kmalloc(0, 50)
    build.row("mm_page_free", origin="older", address=1234, owner="unknown", order=1)
    found = prepared(build.write(tmp_path / "t.parquet"))
    block = found["freeblk"][0]
    # With the slabs of slabinfo given back: dentry 6 and kmalloc 3 of order 0, unseen 2 of order 2.
    assert block["free_blocks"][gfp.UNMOVABLE].tolist() == [69, 10, 2, 0, 0, 0, 0, 0, 0, 0, 0]
    assert block["free_blocks"][gfp.MOVABLE_TYPE].tolist() == [40, 40, 20, 10, 5, 4, 3, 2, 1, 1, 20]
    assert block["pageblocks"].tolist() == [16, 112, 0, 0]
    assert (found["events"]["kind"][-1], found["events"]["handle"][-1], found["events"]["order"][-1]) == (scratch.OLDER_PAGE_FREE, 1234, 1)
    changed = prepared(tmp_path / "t.parquet", memory=1 << 30)
    assert not len(changed["freeblk"]) and changed["events"]["kind"][-1] == scratch.UNKNOWN_PAGE_FREE
    assert prepared(tmp_path / "t.parquet", start="empty")["events"]["kind"][-1] == scratch.UNKNOWN_PAGE_FREE


def test_pages_from_buddyinfo_alone(tmp_path: Path) -> None:
    meminfo = "MemTotal: 262144 kB\nSUnreclaim: 20000 kB\nKernelStack: 5000 kB\nPageTables: 1000 kB\nSReclaimable: 26214 kB\n"
    build = handmade.Builder()
    build.snapshot("start", {"buddyinfo": BUDDY, "meminfo": meminfo})
    build.kmalloc(0, 50)
    found = prepared(build.write(tmp_path / "t.parquet"))
    assert found["zones"]["name"].tolist() == [b"Normal"] and found["zones"]["pages"].tolist() == [65536]
    block = found["freeblk"][0]
    assert block["pageblocks"].sum() == 128 and block["pageblocks"][0] == 13 and block["pageblocks"][2] == 13
    assert block["free_blocks"].sum(axis=0).tolist() == [100, 50, 20, 10, 5, 4, 3, 2, 1, 1, 20]


def test_a_snapshot_later_on_is_no_start_for_pages(tmp_path: Path) -> None:
    build = handmade.Builder()
    build.kmalloc(0, 50)
    build.snapshot("middle", {"buddyinfo": BUDDY, "slabinfo": SLABINFO})
    assert not len(prepared(build.write(tmp_path / "t.parquet"))["freeblk"])


def test_a_cache_frees_what_was_a_kmalloc(tmp_path: Path) -> None:
    """Events between the two were lost; the free shows that the kmalloc is gone."""
    build = handmade.Builder()
    build.kmalloc(0, 72)
    build.cache_free(0, trace.NO_CACHE)
    build.kmalloc(1, 72)
    with Workload(build.write(tmp_path / "t.parquet"), Options()) as workload:
        exact = workload.exact("slub")
    assert (exact["requests"], exact["frees"], exact["requested_bytes_end"]) == (2, 1, 72)


def test_a_trace_that_contradicts_itself(tmp_path: Path) -> None:
    build = handmade.Builder()
    build.row("kmem_cache_alloc", object=0, cache=7, size=8)
    with pytest.raises(UserError, match="a cache that its list of caches lacks"):
        prepared(build.write(tmp_path / "a.parquet"))
    build = handmade.Builder()
    build.row("kmalloc", size=8)
    with pytest.raises(UserError, match="belongs to no object"):
        prepared(build.write(tmp_path / "b.parquet"))


def test_more_than_the_memory(tmp_path: Path) -> None:
    build = handmade.Builder()
    for number in range(600):
        build.page_alloc(number, 10)
    path = build.write(tmp_path / "t.parquet")
    with pytest.raises(UserError, match=r"needs at least 2,400 MiB at once, more than the simulated memory of 1,024 MiB"):
        prepared(path, memory=1 << 30)
    prepared(path, memory=4 << 30)


def merged(path: Path) -> dict[str, str | None]:
    with Workload(path, Options()) as workload:
        return {one["name"]: one["merged_into"] for one in workload.exact("slub")["caches"]}


def test_caches_are_created_as_the_kernel_created_them(tmp_path: Path) -> None:
    """slabinfo lists the newest cache first. What it does not show comes last; so caches merge into the oldest."""
    build = handmade.Builder()
    build.metadata.caches = [handmade.cache(name, 200) for name in ("hidden", "young", "old")]
    lines = "".join(f"{name} 0 0 200 20 1 : tunables 0 0 0 : slabdata 0 0 0\n" for name in ("young", "old"))
    build.snapshot("start", {"slabinfo": "slabinfo - version: 2.1\n" + lines})
    for number in range(3):
        build.cache_alloc(number, number)
    path = build.write(tmp_path / "t.parquet")
    assert prepared(path)["order"].tolist() == [2, 1, 0]
    assert merged(path) == {"hidden": "old", "young": "old", "old": None}


def test_caches_with_a_part_for_user_space_have_their_own_slabs(tmp_path: Path) -> None:
    build = handmade.Builder()
    build.metadata.caches = [handmade.cache(name, 200) for name in ("one", "own", "other")]
    build.metadata.caches[1].no_merge = True
    for number in range(3):
        build.cache_alloc(number, number)
    assert merged(build.write(tmp_path / "t.parquet")) == {"one": None, "own": None, "other": "one"}


def test_an_old_trace_says_in_its_snapshots_which_caches_have_their_own_slabs() -> None:
    metadata = trace.Metadata(caches=[handmade.cache(name, 200) for name in ("own", "other", "kmem_cache")])
    metadata.snapshots = [trace.Snapshot("start", 0, {}, {"own": {"usersize": "64"}, "other": {"usersize": "0"}})]
    stored = json.loads(metadata.to_json())
    for cache in stored["caches"]:
        del cache["no_merge"]
    assert [cache.no_merge for cache in trace.Metadata.from_json(json.dumps(stored)).caches] == [True, False, True]


def test_a_kernel_without_slabinfo_held_what_meminfo_says(tmp_path: Path) -> None:
    """What the trace does not show of Slab: is in 32 KiB blocks: 1,000 pages less the 8 that the trace allocated before."""
    build = handmade.Builder()
    build.page_alloc(0, 3, owner="slab")
    build.snapshot("start", {"meminfo": "MemTotal: 65536 kB\nSlab: 4000 kB\n"})
    older = prepared(build.write(tmp_path / "t.parquet"))["older"]
    assert older["size"].tolist() == [32768] * 124


def test_the_form_is_that_of_the_header() -> None:
    done = subprocess.run([sys.executable, Path(__file__).parents[2] / "lab" / "scratch_form.py", "--check"], check=False)
    assert done.returncode == 0, "make scratch-form"
