"""Import: recordings of real kernels, what a capture proves, and input that is no capture."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from handmade import complaint, slabyard
from slabyard.capture import importer
from slabyard.command import cli
from slabyard.replay import workload as replay
from slabyard.trace import file as trace, gfp
from slabyard.base.errors import MISSING, UserError

TRUTH = Path(__file__).parent.parent / "data"
BASE = 0xFFFF888000000000


def imported(source: Path | str, output: Path, **options: Any) -> trace.Metadata:
    return importer.import_trace(source, output, **options)


def rows(path: Path) -> list[dict[str, Any]]:
    return pq.read_table(path).to_pylist()


class Capture:
    """perf script text, a line for each call, a microsecond apart."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def event(self, name: str, fields: str, cpu: int = 0) -> None:
        self.lines.append(f"[{cpu:03}] 10.{len(self.lines):06}: kmem:{name}: {fields}")

    def alloc(self, address: int, size: int = 64, allocated: int = 64, site: str = "make+0x1", name: str | None = None) -> None:
        """A cache allocation, of a kernel that prints names on allocations where `name` is given."""
        name = "" if name is None else f" name={name}"
        sizes = f"bytes_req={size} bytes_alloc={allocated} gfp_flags=GFP_KERNEL node=-1 accounted=false"
        self.event("kmem_cache_alloc", f"call_site={site} ptr={address:#x}{name} {sizes}")

    def free(self, address: int, site: str = "drop+0x1", name: str = "") -> None:
        self.event("kmem_cache_free", f"call_site={site} ptr={address:#x} name={name}")

    def kmalloc(self, address: int, size: int, allocated: int, site: str = "new+0x1") -> None:
        sizes = f"bytes_req={size} bytes_alloc={allocated} gfp_flags=GFP_KERNEL node=-1 accounted=false"
        self.event("kmalloc", f"call_site={site} ptr={address:#x} {sizes}")

    def kfree(self, address: int) -> None:
        self.event("kfree", f"call_site=old+0x1 ptr={address:#x}")

    def pages(self, pfn: int, order: int = 0, migrate: int = 0) -> None:
        self.event("mm_page_alloc", f"page={pfn:#x} pfn={pfn:#x} order={order} migratetype={migrate} gfp_flags=GFP_KERNEL")

    def free_pages(self, pfn: int, order: int = 0) -> None:
        self.event("mm_page_free", f"page={pfn:#x} pfn={pfn:#x} order={order}")

    def tie(self) -> None:
        """A slab that ties pointers to page frames: pages, and an object of them at once."""
        self.pages(0x9000)
        self.alloc(at(0x9000), 512, 512, "tie+0x1")

    def imported(self, folder: Path, **options: Any) -> tuple[trace.Metadata, list[dict[str, Any]]]:
        source = folder / "capture.txt"
        source.write_text("\n".join(self.lines) + "\n")
        metadata = imported(source, folder / "t.parquet", **options)
        return metadata, rows(folder / "t.parquet")


def at(pfn: int, offset: int = 0) -> int:
    return BASE + (pfn << 12) + offset


# ---- Real kernels ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("allocator", "workload", "figures"),
    [
        ("slub", "hackbench", (3532, 7616, 4008)),
        ("slub", "fileio", (3532, 3912, 3856)),
        ("slob", "hackbench", (2916, 6856, 2920)),
        ("slob", "fileio", (2908, 3320, 3124)),
    ],
)
def test_recorded_allocators_own_pages(tmp_path: Path, allocator: str, workload: str, figures: tuple[int, int, int]) -> None:
    """kB at the snapshot, at the peak and at the end, as derived independently from the same traces."""
    folder = TRUTH / f"linux-6.1-um-{allocator}" / workload
    snapshots = [importer.read_snapshot(f"snapshot-0={folder}:before"), importer.read_snapshot(f"end={folder}:after")]
    metadata = imported(folder / "trace.txt.xz", tmp_path / "t.parquet", snapshots=snapshots)
    with trace.Trace(tmp_path / "t.parquet") as opened:
        curve = trace.recorded_curve(opened)
        assert opened.rows == metadata.rows == opened.metadata.rows
        assert opened.metadata == metadata
    assert (curve.snapshots["snapshot-0"] * 4, curve.peak * 4, curve.end * 4) == figures
    assert curve.snapshots["end"] == curve.end
    with trace.Trace(tmp_path / "t.parquet") as opened:
        whole = trace.recorded_curve(opened, with_older=True)
    kernels = [int(re.search(r"Slab: +(\d+)", (folder / f"meminfo.{when}").read_text())[1]) for when in ("before", "after")]
    assert whole.snapshots["snapshot-0"] * 4 == kernels[0]
    assert abs(whole.snapshots["end"] * 4 - kernels[1]) < 0.03 * kernels[1], "slabs without a traced object are not seen"
    assert metadata.incomplete is None
    assert metadata.shared_pages == (allocator == "slob")
    assert metadata.direct_map.base == "0x60000000"
    assert metadata.direct_map.unexplained == 0
    assert [one.name for one in metadata.snapshots] == ["snapshot-0", "end"]
    assert "Slab:" in metadata.snapshots[0].files["meminfo"]
    assert (metadata.cpus, metadata.pageblock_order, metadata.source) == (1, 10, "tracefs")
    assert sum(cache.allocs for cache in metadata.caches) == metadata.events["kmem_cache_alloc"]
    assert len({cache.name for cache in metadata.caches}) == len(metadata.caches)


def test_events_are_counted_as_the_capture_has_them(tmp_path: Path) -> None:
    text = lzma.open(TRUTH / "linux-6.1-um-slub/hackbench/trace.txt.xz", "rt").read()
    metadata = imported(TRUTH / "linux-6.1-um-slub/hackbench/trace.txt.xz", tmp_path / "t.parquet")
    for kind, count in metadata.events.items():
        assert count == text.count(f": {kind}: ")
    found = rows(tmp_path / "t.parquet")
    recorded = [row for row in found if row["origin"] != "implied" and row["kind"] != "snapshot"]
    assert len(recorded) + metadata.null_frees == sum(metadata.events.values())
    assert metadata.null_frees == text.count("ptr=0000000000000000") > 0


def test_named_caches_of_slabinfo(tmp_path: Path) -> None:
    """6.1 prints no names in user mode; where one cache has a stride, slabinfo gives its name."""
    folder = TRUTH / "linux-6.1-um-slub/hackbench"
    metadata = imported(folder / "trace.txt.xz", tmp_path / "t.parquet", snapshots=[importer.read_snapshot(f"end={folder}:after")])
    by_name = {cache.name: cache for cache in metadata.caches}
    assert by_name["task_struct"].object_size == by_name["task_struct"].slab_size == 4736
    assert by_name["signal_cache"].allocs > 100 and by_name["names_cache"].no_merge and not by_name["cred_jar"].no_merge
    assert not any(cache.known for cache in metadata.caches)


OLD = """\
# tracer: nop
#           TASK-PID    CPU#    TIMESTAMP  FUNCTION
    bash-1234  [000]   100.000001: mm_page_alloc: page=ffffea0000d9d500 pfn=223572 order=0 migratetype=0 gfp_flags=GFP_KERNEL|GFP_COMP
    bash-1234  [000]   100.000002: kmalloc: call_site=ffffffff8113a1a5 ptr=ffff880036954000 bytes_req=60 bytes_alloc=64 \
gfp_flags=GFP_KERNEL|GFP_ZERO
    bash-1234  [000]   100.000003: kmem_cache_alloc_node: call_site=ffffffff8113a1a6 ptr=ffff880036955000 bytes_req=192 \
bytes_alloc=192 gfp_flags=GFP_KERNEL|GFP_REPEAT|0x8000000 node=-1
    bash-1234  [000]   100.000004: mm_page_alloc: page=ffffea0000d9d538 pfn=1 order=0 migratetype=2 gfp_flags=GFP_HIGHUSER_MOVABLE
    bash-1234  [000]   100.000005: mm_page_alloc: page=ffffea0000d9d538 pfn=2 order=0 migratetype=1 gfp_flags=GFP_TEMPORARY
    bash-1234  [000]   100.000006: mm_page_free_direct: page=ffffea0000d9d538 pfn=1 order=0
    bash-1234  [000]   100.000007: mm_pagevec_free: page=ffffea0000d9d538 pfn=2 order=0 cold=0
    bash-1234  [000]   100.000008: kfree: call_site=ffffffff8113a1a5 ptr=          (null)
    bash-1234  [000]   100.000009: kfree: call_site=ffffffff8113a1a5 ptr=ffff880036954000
    bash-1234  [000]   100.000010: mm_page_alloc: page=          (null) pfn=0 order=9 migratetype=2 gfp_flags=GFP_TRANSHUGE
    bash-1234  [000]   100.000011: kmem_cache_free: call_site=ffffffff8113a1a5 ptr=ffff880036955000
"""


def test_caches_that_share_slabs_with_kmalloc(tmp_path: Path) -> None:
    """A kernel that does not check copies to user space names such caches by the class: nothing else is known of them, and
    others merge with them too."""
    metadata = imported(TRUTH / "linux-6.12-um-slub" / "hackbench" / "trace.txt.xz", tmp_path / "t.parquet")
    by_name = {cache.name: cache for cache in metadata.caches}
    dentries, names = by_name["kmalloc-rcl-192"], by_name["kmalloc-4k"]
    assert dentries.reclaimable and dentries.object_size == 192 and not dentries.no_merge and not dentries.constructor
    assert not names.no_merge and not names.hwcache_align and names.object_size == 4096
    assert not by_name["mm_struct"].no_merge and by_name["skbuff_head_cache"].no_merge
    assert not any(row["accounted"] for row in rows(tmp_path / "t.parquet"))  # though some ask for it: it has no memory cgroups
    assert any("ACCOUNT" in row["gfp_flags"] for row in rows(tmp_path / "t.parquet"))


def test_text_of_old_kernels(tmp_path: Path) -> None:
    """As Linux 2.6.39 to 3.2 print it: names without underscores, padded NULLs, addresses for call sites."""
    (tmp_path / "old.txt").write_text(OLD)
    metadata = imported(tmp_path / "old.txt", tmp_path / "t.parquet")
    found = rows(tmp_path / "t.parquet")
    assert (metadata.incomplete, metadata.source) == (None, "tracefs")
    assert (metadata.null_frees, metadata.failed_allocations, metadata.unknown_frees) == (1, 1, 0)
    assert metadata.unknown_events == {"mm_pagevec_free": 1}
    assert metadata.events["mm_page_free_direct"] == 1
    assert [row["migratetype"] for row in found if row["kind"] == "mm_page_alloc"] == [0, 1, 2]
    assert metadata.direct_map.base == "0xffff880000000000"
    assert [gfp.flags_of(row["gfp_flags"]) for row in found[1:3]] == [gfp.ZERO, 0]


@pytest.mark.parametrize(
    ("text", "flags"),
    [
        ("GFP_KERNEL|GFP_ZERO", gfp.ZERO),
        ("GFP_KERNEL|GFP_RECLAIMABLE|GFP_NOTRACK", gfp.RECLAIMABLE),
        ("GFP_HIGHUSER|GFP_MOVABLE", gfp.MOVABLE),
        ("GFP_KERNEL|GFP_THISNODE", gfp.THISNODE),
        ("GFP_HIGH", gfp.HIGHATOMIC),
        ("GFP_HIGH|GFP_WAIT", 0),
        ("GFP_HIGH|__GFP_DIRECT_RECLAIM", 0),
        ("GFP_ATOMIC|GFP_COMP", gfp.HIGHATOMIC),
        ("__GFP_HIGH|__GFP_ATOMIC|__GFP_NOWARN", gfp.HIGHATOMIC),
        ("GFP_NOWAIT|__GFP_NOWARN", 0),
        ("GFP_KERNEL_ACCOUNT|__GFP_ZERO", gfp.ACCOUNT | gfp.ZERO),
        ("GFP_HIGHUSER_MOVABLE", gfp.MOVABLE),
        ("GFP_TRANSHUGE_LIGHT", gfp.MOVABLE),
        ("GFP_USER|GFP_DMA32", gfp.DMA32),
        ("GFP_KERNEL|GFP_DMA", gfp.DMA),
        ("GFP_TEMPORARY", gfp.RECLAIMABLE),
        ("GFP_TEMPORARY|GFP_HIGH", gfp.RECLAIMABLE),
        ("0x0", 0),
        ("0xcc0", 0),
        ("GFP_KERNEL|0x1", gfp.DMA),
        ("0x4", gfp.DMA32),
        ("8", gfp.MOVABLE),
        ("3264", 0),
        ("0x", 0),
        ("9" * 10000, 0),
        ("|", 0),
    ],
)
def test_flags(text: str, flags: int) -> None:
    assert gfp.flags_of(text) == flags


# ---- What a capture proves -------------------------------------------------------------------------------------------------


def test_reuse_proves_a_free(tmp_path: Path) -> None:
    capture = Capture()
    capture.tie()
    capture.alloc(at(0x9000, 1024), 512, 512)
    capture.alloc(at(0x9000, 1024), 512, 512)
    metadata, found = capture.imported(tmp_path)
    assert metadata.implied_frees == 1
    freed, again = found[-2:]
    assert (freed["kind"], freed["origin"]) == ("kmem_cache_free", "implied")
    assert freed["object"] == again["object"] == found[-3]["object"]
    assert freed["size"] == 512


def test_free_pages_prove_frees(tmp_path: Path) -> None:
    capture = Capture()
    capture.tie()
    capture.alloc(at(0x9000, 512), 512, 512)
    capture.free_pages(0x9000)
    metadata, found = capture.imported(tmp_path)
    assert metadata.implied_frees == 2
    assert [row["kind"] for row in found[-3:]] == ["kmem_cache_free", "kmem_cache_free", "mm_page_free"]
    assert found[-1]["owner"] == "slab"


def test_unknown_free_in_a_young_slab_proves_an_allocation(tmp_path: Path) -> None:
    capture = Capture()
    capture.tie()
    capture.pages(0x8000, migrate=1)
    capture.free(at(0x9000, 512))
    capture.free(at(0x9000, 512))
    metadata, found = capture.imported(tmp_path)
    assert (metadata.implied_allocations, metadata.unknown_frees) == (2, 0)
    implied = [place for place, row in enumerate(found) if row["origin"] == "implied"]
    # As early as possible: when the slab is new, and when the address was last freed.
    assert implied == [1, 5]
    assert [found[place]["kind"] for place in implied] == ["kmem_cache_alloc"] * 2
    assert all(found[place]["size"] == 512 and found[place]["cache"] == 0 for place in implied)


def test_free_in_an_old_page_is_older(tmp_path: Path) -> None:
    capture = Capture()
    capture.tie()
    capture.free(at(0x7000, 512))
    capture.free_pages(0x7000)
    capture.free_pages(0x6000, 1)
    metadata, found = capture.imported(tmp_path)
    assert (metadata.unknown_frees, metadata.implied_allocations) == (1, 0)
    assert [(row["origin"], row["owner"]) for row in found[-3:]] == [("older", ""), ("older", "slab"), ("older", "environment")]
    assert all(row["object"] == trace.NO_OBJECT for row in found[-3:])


def test_large_kmalloc_is_one_request(tmp_path: Path) -> None:
    capture = Capture()
    capture.tie()
    capture.pages(0x8000, 3)
    capture.kmalloc(at(0x8000), 20000, 32768)
    capture.kfree(at(0x8000))
    capture.free_pages(0x8000, 3)
    capture.pages(0x8008, 1)
    _, found = capture.imported(tmp_path)
    assert [row["owner"] for row in found] == ["slab", "", "large", "", "", "large", "environment"]


def test_orders_above_ten(tmp_path: Path) -> None:
    """Kernels with a larger MAX_ORDER: a run of 8,192 pages, whole and in pieces, and none of its pages is left behind."""
    capture = Capture()
    capture.tie()
    capture.pages(0x20000, 13, migrate=1)
    capture.free_pages(0x20000, 13)
    capture.pages(0x20000, 13)
    capture.kmalloc(at(0x20000), 30 << 20, 32 << 20)
    capture.kfree(at(0x20000))
    capture.free_pages(0x20000, 13)
    capture.pages(0x20000, 13, migrate=1)
    capture.free_pages(0x21800, 11)
    for piece in range(3):
        capture.free_pages(0x20000 + (piece << 11), 11)
    capture.pages(0x21FFF, migrate=1)
    metadata, found = capture.imported(tmp_path)
    assert metadata.incomplete is None
    assert (metadata.implied_page_frees, metadata.implied_page_allocations) == (1, 4)
    assert [row["owner"] for row in found[2:8]] == ["environment", "environment", "large", "", "", "large"]
    assert {row["size"] for row in found[2:4]} == {4096 << 13}
    pages = [row for row in found[2:] if row["kind"].startswith("mm_page_")]
    held = sum((1 if "alloc" in row["kind"] else -1) << row["order"] for row in pages)
    assert held == 1, "all but the last page are free"


def test_large_pages(tmp_path: Path) -> None:
    """64 KiB pages, as 64-bit Arm and PowerPC kernels have: found by the vote, told, or from a snapshot."""
    capture = Capture()
    base = 0xFFFF000000000000
    for number in range(100):
        pfn = 0x8000 + 37 * number
        capture.pages(pfn)
        capture.alloc(base + (pfn << 16) + 512 * (number % 100), 512, 512)
    capture.pages(0x6000, 2)
    capture.kmalloc(base + (0x6000 << 16), 200_000, 262_144)
    metadata, found = capture.imported(tmp_path)
    assert metadata.page_size == 65536
    assert metadata.direct_map.base == hex(base)
    assert (metadata.direct_map.explained, metadata.direct_map.unexplained) == (101, 0)
    assert [row["owner"] for row in found[-4:]] == ["slab", "", "large", ""]
    assert [row["size"] for row in found[-4:-1]] == [65536, 512, 4 * 65536]
    with pytest.raises(UserError, match="pages of 65536 bytes"):
        trace.refuse_other_pages(metadata, "t.parquet")
    with pytest.raises(UserError, match="pages of 65536 bytes"):
        replay.Workload(tmp_path / "t.parquet", replay.Options())
    told, _ = capture.imported(tmp_path, page_size=4096)
    assert (told.page_size, told.direct_map.base) == (4096, None)
    trace.refuse_other_pages(told, "t.parquet")
    with pytest.raises(UserError, match="pages of 5000 bytes"):
        capture.imported(tmp_path, page_size=5000)


def test_page_size_of_a_snapshot(tmp_path: Path) -> None:
    """Memory in kB by meminfo and in pages by zoneinfo."""
    zoneinfo = "Node 0, zone   Normal\n  pages free     1\n        min      1\n        managed  61440\n"
    snapshot = {"name": "end", "files": {"zoneinfo": zoneinfo, "meminfo": "MemTotal:  983040 kB\n"}, "slab_attributes": None}
    assert importer.page_size_of([{"name": "x", "files": {}, "slab_attributes": None}]) is None
    assert importer.page_size_of([snapshot]) == 16384
    capture = Capture()
    capture.kfree(at(0x7000))
    metadata, _ = capture.imported(tmp_path, snapshots=[snapshot])
    assert metadata.page_size == 16384


def test_pages_handed_out_again_and_split(tmp_path: Path) -> None:
    capture = Capture()
    capture.tie()
    capture.pages(0x8000, 1, migrate=1)
    capture.pages(0x8000, 0, migrate=1)
    capture.pages(0x8010, 1, migrate=1)
    capture.free_pages(0x8011)
    capture.free_pages(0x8011)
    metadata, found = capture.imported(tmp_path)
    assert metadata.implied_page_frees == 2
    assert metadata.implied_page_allocations == 3  # two pieces, and what was freed twice
    pages = [(row["kind"][8:], row["origin"], row["address"], row["order"]) for row in found[3:]]
    assert pages == [
        ("free", "implied", 0x8000, 1),
        ("alloc", "recorded", 0x8000, 0),
        ("alloc", "recorded", 0x8010, 1),
        ("free", "implied", 0x8010, 1),
        ("alloc", "implied", 0x8010, 0),
        ("alloc", "implied", 0x8011, 0),
        ("free", "recorded", 0x8011, 0),
        ("alloc", "implied", 0x8011, 0),
        ("free", "recorded", 0x8011, 0),
    ]


def test_names_on_frees_name_the_slab(tmp_path: Path) -> None:
    capture = Capture()
    for slab, name in ((0x9000, "dentry"), (0x9001, "filp")):
        capture.pages(slab)
        for number in range(4):
            capture.alloc(at(slab, 192 * number), 192, 192, site="same+0x1")
        capture.free(at(slab), name=name)
    metadata, found = capture.imported(tmp_path)
    assert [(cache.name, cache.allocs, cache.frees) for cache in metadata.caches] == [("dentry", 4, 1), ("filp", 4, 1)]
    assert [row["cache"] for row in found if row["kind"] == "kmem_cache_alloc"] == [0] * 4 + [1] * 4


def test_each_event_names_its_cache(tmp_path: Path) -> None:
    capture = Capture()
    capture.alloc(BASE + 0x1000, site="new+0x1", name="thing")
    capture.kmalloc(BASE + 0x2000, 150, 192)
    capture.free(BASE + 0x1000, name="thing")
    capture.event("kfree", f"call_site=drop+0x1 ptr={BASE + 0x2000:#x}")
    capture.event("kfree", f"call_site=drop+0x1 ptr={BASE + 0x9000:#x}")
    _, found = capture.imported(tmp_path)
    assert [row["cache_name"] for row in found] == ["thing", "kmalloc-192", "thing", "kmalloc-192", ""]


@pytest.mark.parametrize(
    ("before", "task", "pid"),
    [
        ("            find  4719 ", "find", 4719), ("  Web Content 77/78 ", "Web Content", 77),
        ("kworker/0:1-events   12 ", "kworker/0:1-events", 12), ("            find-4719  ", "find", 4719),
        ("          <...>-12     (-----) ", "<...>", 12), (" rs:main Q:Reg-300  (  299) ", "rs:main Q:Reg", 300),
        ("", "", -1), ("  4719 ", "", -1), (" a task without a number ", "", -1), (":0 0 ", ":0", 0),
    ],
)  # fmt: skip
def test_tasks(tmp_path: Path, before: str, task: str, pid: int) -> None:
    sizes = "bytes_req=8 bytes_alloc=8 gfp_flags=GFP_KERNEL node=-1 accounted=false"
    line = "[000] 10.%06d: kmem:kmalloc: call_site=new+0x1 ptr=%#x " + sizes
    lines = [before + line % (1, BASE + 0x2000), "  other 9 " + line % (2, BASE + 0x3000), before + line % (3, BASE + 0x2000)]
    (tmp_path / "t.txt").write_text("\n".join(lines) + "\n")
    imported(tmp_path / "t.txt", tmp_path / "t.parquet")
    found = [(row["origin"], row["task"], row["pid"]) for row in rows(tmp_path / "t.parquet")]
    assert found == [("recorded", task, pid), ("recorded", "other", 9), ("implied", "", -1), ("recorded", task, pid)]


def test_names_are_utf_8_and_other_bytes_are_escaped(tmp_path: Path) -> None:
    sizes = "bytes_req=8 bytes_alloc=8 gfp_flags=GFP_KERNEL node=-1 accounted=false"
    names = ["café", "日本", "\u202ex", "caf\udcc3", "\udced\udca0\udc80", "\udcc0\udcaf", 'q"\\']
    lines = [
        f"{name} {number} [000] 10.{number:06}: kmem:kmem_cache_alloc: call_site=new+0x1 ptr={BASE + 64 * number:#x} name=naïve {sizes}\n"
        for number, name in enumerate(names)
    ]
    (tmp_path / "t.txt").write_bytes("".join(lines).encode(errors="surrogateescape"))
    metadata = imported(tmp_path / "t.txt", tmp_path / "t.parquet")
    assert [one.name for one in metadata.caches] == ["naïve"]
    found = [row["task"] for row in rows(tmp_path / "t.parquet")]
    assert found == ["café", "日本", "\u202ex", r"caf\xc3", r"\xed\xa0\x80", r"\xc0\xaf", 'q"\\']
    told = slabyard("info", tmp_path / "t.parquet", "--tasks", "--format", "csv").stdout
    assert "café" in told and r"\u202ex" in told and "\u202e" not in told


def test_a_capture_without_tasks_has_no_columns_of_them(tmp_path: Path) -> None:
    capture = Capture()
    capture.alloc(BASE + 0x1000)
    assert not {"task", "pid"} & set(capture.imported(tmp_path)[1][0])


def test_call_sites_keep_their_modules(tmp_path: Path) -> None:
    sizes = "bytes_req=8 bytes_alloc=8 gfp_flags=GFP_KERNEL node=-1 accounted=false"
    line = "  find-9  [000] .....  10.%06d: kmalloc: call_site=%s ptr=%#x " + sizes
    sites = ["ext4_alloc_inode+0x1c/0x90 [ext4]", "alloc_inode+0x1c/0x90", "[ext4]"]
    lines = [line % (at, site, BASE + 64 * at) for at, site in enumerate(sites)]
    (tmp_path / "t.txt").write_text("\n".join(lines) + "\n")
    imported(tmp_path / "t.txt", tmp_path / "t.parquet")
    assert [row["call_site"] for row in rows(tmp_path / "t.parquet")] == ["ext4_alloc_inode+0x1c [ext4]", "alloc_inode+0x1c", "[ext4]"]


def test_one_slab_is_one_cache(tmp_path: Path) -> None:
    """Without names: one slab joins call sites; equal sizes alone do not."""
    capture = Capture()
    capture.pages(0x9000)
    capture.alloc(at(0x9000), 192, 192, site="a+0x1")
    capture.alloc(at(0x9000, 192), 192, 192, site="b+0x1")
    capture.pages(0x9001)
    capture.alloc(at(0x9001), 192, 192, site="c+0x1")
    capture.pages(0x9002)
    capture.alloc(at(0x9002), 192, 192, site="a+0x1")
    metadata, found = capture.imported(tmp_path)
    assert [cache.name for cache in metadata.caches] == ["anon-192-1", "anon-192-2"]
    assert [row["cache"] for row in found if row["kind"] == "kmem_cache_alloc"] == [0, 0, 1, 0]


def test_a_cache_that_grows_stays_one(tmp_path: Path) -> None:
    """Merging raises a cache's object size: objects of one stride in one slab are one cache, also in slabs that have only
    the larger size."""
    capture = Capture()
    capture.pages(0x9000)
    capture.alloc(at(0x9000), 136, 192, site="a+0x1")
    capture.alloc(at(0x9000, 192), 176, 192, site="a+0x1")
    capture.pages(0x9001)
    capture.alloc(at(0x9001), 176, 192, site="a+0x1")
    capture.pages(0x9002)
    capture.alloc(at(0x9002), 160, 192, site="b+0x1")
    metadata, found = capture.imported(tmp_path)
    assert [cache.name for cache in metadata.caches] == ["anon-176-1", "anon-160-1"]
    assert [row["cache"] for row in found if row["kind"] == "kmem_cache_alloc"] == [0, 0, 0, 1]


def test_merged_caches_go_by_the_name_of_the_oldest(tmp_path: Path) -> None:
    """slabinfo begins with the newest. A function's other caches, and those of other sizes, don't count."""
    capture = Capture()
    capture.pages(0x9000)
    capture.alloc(at(0x9000), 256, 256, site="__alloc_file+0x31")
    capture.alloc(at(0x9000, 256), 256, 256, site="mas_alloc_nodes+0x9")
    capture.pages(0x9001)
    capture.alloc(at(0x9001), 184, 192, site="mempool_alloc_slab+0x17")
    capture.pages(0x9002)
    capture.alloc(at(0x9002), 928, 960, site="copy_process+0x825")
    sizes = {"bio-184": 192, "bio-160": 192, "filp": 256, "signal_cache": 960, "RAW": 960, "maple_node": 256}
    lines = "".join(f"{name} 9 9 {size} 4 1 : tunables 0 0 0 : slabdata 3 3 0\n" for name, size in sizes.items())
    snapshot = {"name": "end", "files": {"slabinfo": "slabinfo - version: 2.1\n" + lines}, "slab_attributes": None}
    metadata, _ = capture.imported(tmp_path, snapshots=[snapshot])
    assert [cache.name for cache in metadata.caches] == ["maple_node", "bio-184", "signal_cache"]
    assert [cache.typesafe_by_rcu for cache in metadata.caches] == [False, True, False]


def test_attributes_come_from_the_kernel_alone(tmp_path: Path) -> None:
    capture = Capture()
    capture.tie()
    capture.alloc(at(0x9000, 1024), 100, 128, name="inode")
    attributes = {"inode": {"object_size": "100", "align": "8", "ctor": "init_once+0x0/0x10", "destroy_by_rcu": "1", "slab_size": "128",
                            "reclaim_account": "1", "hwcache_align": "0", "cache_dma": "0"}}  # fmt: skip
    snapshot = {"name": "end", "files": {}, "slab_attributes": attributes}
    metadata, _ = capture.imported(tmp_path, snapshots=[snapshot])
    unknown, inode = metadata.caches
    assert (inode.known, inode.align, inode.constructor, inode.typesafe_by_rcu, inode.reclaimable) == (True, 8, True, True, True)
    assert (unknown.known, unknown.align, unknown.constructor) == (False, 0, False)


def test_hashed_pointers_fail_visibly(tmp_path: Path) -> None:
    source = random.Random(1)
    text = lzma.open(TRUTH / "linux-6.1-um-slub/fileio/trace.txt.xz", "rt").read().splitlines()[:20000]
    hashes: dict[str, str] = {}
    for place, line in enumerate(text):
        before, ptr, after = line.partition("ptr=")
        if ptr and after[:16] != "0" * 16:
            text[place] = before + ptr + hashes.setdefault(after[:16], f"{source.getrandbits(32):016x}") + after[16:]
    (tmp_path / "hashed.txt").write_text("\n".join(text) + "\n")
    metadata = imported(tmp_path / "hashed.txt", tmp_path / "t.parquet")
    assert metadata.direct_map.base is None
    assert "hashed" in str(metadata.incomplete)
    assert metadata.pages_of_unknown_owner > 0
    assert metadata.unknown_frees > 0
    assert metadata.implied_allocations == 0


@pytest.mark.parametrize(("order", "told"), [(0, False), (1, True)])
def test_single_pages_may_come_without_an_event(tmp_path: Path, order: int, told: bool) -> None:
    """As Linux's bulk allocation takes them. Of blocks that are given back twice, an event is missing."""
    capture = Capture()
    capture.tie()
    for number in range(1000):
        capture.pages(0xA000 + 2 * number, order)
        capture.free_pages(0xA000 + 2 * number, order)
    for number in range(100):
        capture.free_pages(0xA000 + 2 * number, order)
    metadata, _ = capture.imported(tmp_path)
    assert ("100 of 2,101 page events contradict others" in str(metadata.incomplete)) is told


def test_random_captures_add_up(tmp_path: Path) -> None:
    """Whatever the capture, rows make sense: time never goes back, nothing lives twice, and only live objects are freed,
    with their size."""
    chance = random.Random(3)
    for _ in range(20):
        capture = Capture()
        capture.tie()
        for _ in range(400):
            pfn, order = 0x9000 + chance.randrange(16), chance.randrange(3)
            address = at(pfn, 256 * chance.randrange(16))
            chance.choice([
                lambda a=address: capture.alloc(a, 256, 256, f"a+{chance.randrange(3):#x}"),
                lambda a=address: capture.kmalloc(a, chance.randrange(1, 256), 256),
                lambda a=address: capture.free(a, name=chance.choice(["", "x"])),
                lambda a=address: capture.kfree(a),
                lambda p=pfn, o=order: capture.pages(p >> o << o, o),
                lambda p=pfn, o=order: capture.free_pages(p >> o << o, o),
            ])()  # fmt: skip
        _, found = capture.imported(tmp_path)
        live: dict[int, dict[str, Any]] = {}
        last = 0
        for row in found:
            assert row["time"] >= last
            last = row["time"]
            if row["origin"] == "older" or row["kind"] == "snapshot":
                continue
            if "alloc" in row["kind"]:
                assert row["object"] not in live
                live[row["object"]] = row
            else:
                mate = live.pop(row["object"])
                assert [mate[key] for key in ("address", "size", "allocated", "cache", "order", "owner")] == [
                    row[key] for key in ("address", "size", "allocated", "cache", "order", "owner")
                ]
        objects = [row["address"] for row in live.values() if not row["kind"].startswith("mm_")]
        assert len(objects) == len(set(objects))


# ---- Snapshots -------------------------------------------------------------------------------------------------------------


def test_snapshots_that_are_not_there(tmp_path: Path) -> None:
    for text, words in (
        ("end", "NAME=DIR:SUFFIX"),
        (f"end={tmp_path}/none:after", "no folder"),
        (f"end={tmp_path}:after", str(tmp_path)),
    ):
        with pytest.raises(UserError, match=words):
            importer.read_snapshot(text)
    capture = Capture()
    capture.tie()
    with pytest.raises(UserError, match="no mark middle"):
        capture.imported(tmp_path, snapshots=[{"name": "middle", "files": {"meminfo": "Slab: 4 kB"}, "slab_attributes": None}])
    assert not (tmp_path / "t.parquet").exists()


def test_many_marks(tmp_path: Path) -> None:
    """A thousand names become snapshots, and any name that is asked for; the rest become other events."""
    capture = Capture()
    capture.tie()
    for number in range(2000):
        capture.lines.append(f"[000] 11.{number:06}: tracing_mark_write: step {number}")
    snapshot = {"name": "step 1999", "files": {"meminfo": "Slab: 4 kB"}, "slab_attributes": None}
    metadata, found = capture.imported(tmp_path, snapshots=[snapshot])
    assert len(metadata.snapshots) == 1001
    assert (metadata.snapshots[-1].name, metadata.snapshots[-1].files) == ("step 1999", snapshot["files"])
    assert metadata.unknown_events == {"tracing_mark_write": 999}
    assert found[-1]["kind"] == "snapshot"
    assert metadata.incomplete is None
    with pytest.raises(UserError, match="no mark nothing") as caught:
        capture.imported(tmp_path, snapshots=[{"name": "nothing", "files": {}, "slab_attributes": None}])
    assert len(str(caught.value)) < 300


# ---- Input that is no capture ----------------------------------------------------------------------------------------------


def refused(tmp_path: Path, source: Path) -> UserError:
    with pytest.raises(UserError) as caught:
        imported(source, tmp_path / "out" / "t.parquet")
    message = str(caught.value)
    assert "\n" not in message
    assert len(message.replace(str(source), "")) < 250
    assert not list((tmp_path / "out").iterdir())
    return caught.value


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "empty"),
        (b"swapper 0 [000] 1.0: kmem:kmalloc: call_site=0", "no whole line"),
        (b"\n", "no kmem event"),
        (random.Random(2).randbytes(100_000), "binary"),
        (b"#!/bin/sh\necho hello\n" * 100, "no kmem event"),
        (b"bash 1 [000] 1.000000: sched:sched_switch: prev_comm=a\n" * 10, "no kmem event"),
        (gzip.compress(b"x" * 1000, mtime=0)[:-10], "cut off"),
        (gzip.compress(random.Random(4).randbytes(10_000), mtime=0), "binary"),
        (b"\x1f\x8b" + b"garbage" * 100, "damaged"),
        (lzma.compress(b"x" * 100_000)[:-40], "damaged or cut off"),
        (b"\x28\xb5\x2f\xfd" + b"garbage" * 100, "damaged"),
        (b"bash 1 1.0: kmem:kfree: call_site=a+0x1 ptr=0x1000\n" * 10, "time (below 73 years), name and fields, as in `bash 1"),
        (
            b"# tracer: nop\n" + b"27141 0 43949400462191 type: 658\n" * 10,
            "events have no names; tracefs prints them without its options raw",
        ),
        (b"bash 1 [000] 1.0: call_site=a+0x1 ptr=0x1000\n" * 10, "as in `bash 1 [000] 1.0: call_site=a+0x1 ptr=0x1000`; perf"),
        (
            b"".join(b"ls 1 [000] 0.000%03d: kmem:kfree: call_site=a+0x1 ptr=0x1000\n" % (i * 617 % 1000) for i in range(1000)),
            "time goes back at 616 of 1000 events: text of perf script --deltatime",
        ),
        (b"PERFILE2" + bytes(16), "cut off"),
        (b"PERFILE2" + random.Random(5).randbytes(5000), "cut off"),
        (b"PAR1" + bytes(100), "is a trace already"),
    ],
)
def test_foreign_input(tmp_path: Path, content: bytes, words: str) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "capture").write_bytes(content)
    error = refused(tmp_path, tmp_path / "capture")
    assert words in str(error)
    assert error.status == 2


def test_missing_input(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    assert "no such file" in str(refused(tmp_path, tmp_path / "nothing"))
    assert "folder" in str(refused(tmp_path, tmp_path))


def test_cut_in_the_middle_of_a_line(tmp_path: Path) -> None:
    capture = Capture()
    capture.tie()
    capture.kfree(at(0x7000))
    (tmp_path / "cut.txt").write_text("\n".join(capture.lines)[:-3])
    metadata = imported(tmp_path / "cut.txt", tmp_path / "t.parquet")
    assert metadata.rows == 2
    assert metadata.truncated
    assert "cut off" in str(metadata.incomplete)


def test_lost_and_unknown_events(tmp_path: Path) -> None:
    capture = Capture()
    capture.tie()
    capture.event("rss_stat", "mm_id=1 curr=1 member=0 size=4096B")
    capture.lines.append("[000] 20.0: PERF_RECORD_LOST lost 17")
    metadata, _ = capture.imported(tmp_path)
    assert metadata.unknown_events == {"rss_stat": 1}
    assert metadata.lost == 17
    assert metadata.incomplete == "17 events were lost while it was recorded"
    metadata.lost = 1
    assert metadata.incomplete == "1 event was lost while it was recorded"
    metadata.lost = 187113
    assert metadata.incomplete == "187,113 events were lost while it was recorded"
    metadata.lost, metadata.unparsed_lines = 0, 1
    assert metadata.incomplete == "1 line of the capture could not be read"


@pytest.mark.parametrize(
    ("lines", "lost"),
    [
        (["     perf  4110 [001] 44716.601713: PERF_RECORD_LOST lost 159", "[000] 44716.6: PERF_RECORD_LOST lost 2"], 161),
        (["     perf     0 [-01]     0.000000: PERF_RECORD_LOST_SAMPLES lost 33"], 33),
        (["PERF_RECORD_LOST: id:96275: lost:9140"], 9140),
        (["CPU:1 [LOST 12 EVENTS]", "CPU:0 [LOST 7 EVENTS]"], 19),
        (["CPU:1 [12 EVENTS DROPPED]", "CPU:3 [EVENTS DROPPED]"], 13),
        (["LOST 12 events!"], 12),
        (
            [
                "         swapper     0 [000]     0.000000: PERF_RECORD_MMAP -1/0: [0xffffffff81000000(0x120bb08) @ 0]: x [kernel]_text",
                "     process_api     1 [000]     0.000000: PERF_RECORD_COMM: process_api:1/1",
                "         swapper     0 [-01]     0.000000: PERF_RECORD_FORK(1:1):(0:0)",
                "PERF_RECORD_FINISHED_ROUND",
                "PERF_RECORD_LOST lost 3",
            ],
            3,
        ),
        (["Warning:", "Processed 94257 events and lost 866 chunks!", "", "Check IO/CPU overload!", ""], 866),
        (["Warning:", "Processed 1000 events and lost 2 chunks!", "Processed 10000 samples and lost 85.26%!"], 8526),
        (["Processed 10000 samples and lost 5.10%!"], 510),
        (["[000] 20.0: PERF_RECORD_LOST lost 900", "Processed 94257 events and lost 866 chunks!"], 900),
        (["Processed 18446744073709551615 samples and lost 99.99%!"], 18446744073709551615),
    ],
)
def test_reports_of_lost_events(tmp_path: Path, lines: list[str], lost: int) -> None:
    """Messages of lost events as perf script, perf trace, tracefs and trace-cmd word them, and perf's messages that went
    into the text."""
    capture = Capture()
    capture.tie()
    capture.lines += lines
    metadata, _ = capture.imported(tmp_path)
    assert (metadata.lost, metadata.unparsed_lines) == (lost, 0)
    assert metadata.incomplete == f"{lost:,} events were lost while it was recorded"


def test_text_that_cannot_tell_of_lost_events(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    capture = Capture()
    capture.tie()
    source, output = tmp_path / "capture.txt", str(tmp_path / "t.parquet")
    for more, status, told in (([], 0, True), (["# tracer: nop"], 0, False), (["[000] 20.0: PERF_RECORD_LOST lost 2"], 3, False)):
        source.write_text("\n".join([*capture.lines, *more]) + "\n")
        assert cli.main(["import", str(source), "-o", output]) == status
        assert ("only where it was made with --show-lost-events" in capfd.readouterr().err) is told


def test_text_of_trace_cmd(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """What `trace-cmd report` prints: the kind of file, the number of CPUs, and the function beside its address."""
    source, output = tmp_path / "report.txt", tmp_path / "t.parquet"
    source.write_text(
        "version = 6\nCPU 2 is empty\ncpus=4\n"
        "              ls-1234  [001]   227.770745: kmalloc:              (single_open+0x2a) call_site=ffffffff8149dd6a "
        "ptr=0xffff8881027dbb60 bytes_req=32 bytes_alloc=32 gfp_flags=GFP_KERNEL node=-1 accounted=false\n"
        "          <idle>-0     [000] d..2.   227.770750: kfree:                (single_release+0x1a) call_site=ffffffff8149dd9a "
        "ptr=0xffff8881027dbb60\n"
    )
    assert cli.main(["import", str(source), "-o", str(output)]) == 0
    told = capfd.readouterr().err
    assert "t.parquet: 2 events of 0.00 s\n" in told and "--show-lost-events" not in told
    assert trace.Metadata(events={"kfree": 1}, span_seconds=1.25).extent == "1 event of 1.25 s"
    with trace.Trace(output) as made:
        assert (made.metadata.source, made.metadata.cpus, made.metadata.unparsed_lines) == ("tracefs", 4, 0)
        assert dict(made.metadata.events) == {"kmalloc": 1, "kfree": 1}
    assert pq.read_table(output).column("call_site").to_pylist() == ["single_open+0x2a", "single_release+0x1a"]


def test_cpus_one_after_the_other(tmp_path: Path) -> None:
    """An event that no longer fits in its place loses its time, and a message says so; one that still fits keeps it."""
    for events, late in ((4000, 0), (40000, 39999 - 4096)):
        capture = Capture()
        for cpu in range(2):
            places = range(cpu, 2 * events, 2)
            pair = ("kmalloc: bytes_req=8 bytes_alloc=8", "kfree:")
            capture.lines += [f"ls 1 [00{cpu}] 1.{i:09}: kmem:{pair[i // 2 % 2]} call_site=a+0x1 ptr=0x{i + 1:x}000" for i in places]
        metadata, _ = capture.imported(tmp_path)
        assert (metadata.reordered, metadata.late) == (events - 1, late)
        told = None if not late else "35,903 events stood too far behind later ones to keep their time; sort the capture's lines by time"
        assert metadata.incomplete == told


def test_a_base_by_chance_does_not_make_pointers_hashed(tmp_path: Path) -> None:
    """A short capture on a busy machine: its only vote is wrong, as that base puts objects into users' pages."""
    capture = Capture()
    capture.tie()
    for pfn in range(0x9100, 0x9110):
        capture.pages(pfn, migrate=1)
        capture.alloc(at(pfn))
    metadata, _ = capture.imported(tmp_path)
    assert metadata.direct_map.base is None and not metadata.direct_map.hashed
    assert metadata.incomplete is None


def test_perf_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "perf.data").write_bytes(b"PERFILE2" + bytes(200))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match="needs perf") as caught:
        importer.import_trace(tmp_path / "perf.data", tmp_path / "t.parquet")
    assert caught.value.status == MISSING


def test_interrupt_leaves_nothing(tmp_path: Path) -> None:
    """Ctrl-C while the capture streams in."""
    fifo = tmp_path / "capture"
    os.mkfifo(fifo)
    (tmp_path / "out").mkdir()
    code = f"""
import sys
from pathlib import Path
from slabyard.capture.importer import import_trace
import_trace("-", Path({str(tmp_path / "out" / "t.parquet")!r}))
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    process = subprocess.Popen([sys.executable, "-c", code], stdin=reader, stderr=subprocess.PIPE, env=environment)
    os.set_blocking(reader, True)
    with fifo.open("wb") as pipe:
        pipe.write(b"[000] 1.0: kmem:kfree: call_site=a+0x1 ptr=0xffff888000001000\n" * 1000)
        pipe.flush()
        deadline = time.monotonic() + 20
        while not list((tmp_path / "out").iterdir()) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert list((tmp_path / "out").iterdir())
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=20)
    os.close(reader)
    assert process.returncode != 0
    assert not list((tmp_path / "out").iterdir())


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small disk needs root")
def test_full_disk(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(disk)], capture_output=True, check=False).returncode:
        pytest.skip("no right to mount")
    try:
        for folder in (None, str(tmp_path)):  # the temporary file's disk is full, then the trace's
            environment = dict(os.environ)
            os.environ.pop("TMPDIR", None)
            if folder:
                os.environ["TMPDIR"] = folder
            try:
                with pytest.raises(UserError, match=r"(?i)no space left"):
                    imported(TRUTH / "linux-6.1-um-slub/hackbench/trace.txt.xz", disk / "t.parquet")
            finally:
                os.environ.clear()
                os.environ.update(environment)
            assert not list(disk.iterdir())
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_a_temporary_folder_that_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The folder of the trace takes its place, as after a recording it would be late to complain."""
    monkeypatch.setenv("TMPDIR", str(tmp_path / "none"))
    assert imported(TRUTH / "linux-6.1-um-slub/hackbench/trace.txt.xz", tmp_path / "t.parquet").events


def test_no_pipe_stays_open(tmp_path: Path) -> None:
    capture = tmp_path / "t.txt"
    capture.write_text("[000] 1.0: kmem:kmalloc: call_site=a+0x1 ptr=0xffff888000001000 bytes_req=8 bytes_alloc=8\n")
    words = [sys.executable, "-W", "error", "-m", "slabyard", "import", str(capture), "-o", str(tmp_path / "t.parquet")]
    said = subprocess.run(words, capture_output=True, text=True, check=False).stderr
    assert "1 event" in said and "ResourceWarning" not in said


@pytest.mark.parametrize("pack", [bytes, gzip.compress, lzma.compress, bz2.compress, lambda text: pa.compress(text, "zstd", asbytes=True)])
@pytest.mark.parametrize("how", ["fifo", "pipe", "file"])
def test_what_is_read_once_is_read_whole(tmp_path: Path, pack: Any, how: str) -> None:
    """A FIFO, like <(zcat t.gz), and standard input, as a pipe or a file: all kinds of text, from the first byte on."""
    events = ("kmalloc: bytes_req=8 bytes_alloc=8", "kfree:")
    lines = (f"[000] 1.{at:06}: kmem:{events[at % 2]} call_site=a+0x1 ptr={BASE + 64 * (at // 2):#x}\n" for at in range(1000))
    text = pack("".join(lines).encode())
    source = tmp_path / "capture"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    words = [sys.executable, "-m", "slabyard", "import", str(source) if how == "fifo" else "-", "-o", str(tmp_path / "t.parquet")]
    if how == "fifo":
        os.mkfifo(source)
    elif how == "file":
        source.write_bytes(text)
    with (source if how == "file" else Path(os.devnull)).open("rb") as file:
        stdin = subprocess.PIPE if how == "pipe" else file
        process = subprocess.Popen(words, stdin=stdin, stderr=subprocess.PIPE, env=environment)
    try:
        if how == "fifo":
            source.write_bytes(text)
        _, errors = process.communicate(text if how == "pipe" else None, timeout=60)
    finally:
        process.terminate()
    assert process.returncode == 0, errors
    assert len(rows(tmp_path / "t.parquet")) == 1000


@pytest.mark.parametrize("name", [b"host:t.parquet", b"\xff\xfe.parquet", b"n" * 247 + b".parquet"])
def test_any_name_will_do(tmp_path: Path, name: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names that look like addresses, names that are not UTF-8, very long names, and relative names as people type them."""
    monkeypatch.chdir(tmp_path)
    Path("capture").write_text("[000] 1.0: kmem:kfree: call_site=a+0x1 ptr=0xffff888000001000\n")
    imported("capture", output := Path(os.fsdecode(name)))
    assert trace.Trace(output).metadata.rows == 1


def test_what_is_there_is_overwritten_only_where_import_made_it_of_the_same_capture(tmp_path: Path) -> None:
    capture, other = tmp_path / "pk.txt", tmp_path / "other.txt"
    for path in (capture, other):
        path.write_text("ls 1 [000] 1.1: kmem:kfree: call_site=a+0x1 ptr=0x1000\n")
    (tmp_path / "pk.parquet").write_text("mine")
    done = slabyard("import", "pk.txt", cwd=tmp_path)
    assert "pk.parquet: is there, and was not made of pk.txt" in complaint(done, 2)
    assert (tmp_path / "pk.parquet").read_text() == "mine"
    assert slabyard("import", "pk.txt", "--force", cwd=tmp_path).returncode == 0
    assert slabyard("import", "pk.txt", cwd=tmp_path).returncode == 0
    assert "--force" in complaint(slabyard("import", other, "-o", tmp_path / "pk.parquet"), 2)
    assert slabyard("import", other, "-o", "/dev/null").returncode == 0


def test_info_does_not_call_complete_what_import_warned_of(tmp_path: Path) -> None:
    capture = tmp_path / "pk.txt"
    capture.write_text("ls 1 [000] 1.1: kmem:kfree: call_site=a+0x1 ptr=0x1000\n")
    done = slabyard("import", capture, "-o", tmp_path / "pk.parquet")
    assert "only where it was made with --show-lost-events" in done.stderr
    text = slabyard("info", tmp_path / "pk.parquet").stdout
    assert re.search(r"^complete +not known: the text of perf script", text, re.MULTILINE)
