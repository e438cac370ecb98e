"""The replay program, driven with small scratch files: every figure below is computed by hand."""

from __future__ import annotations

import ctypes.util
import json
import resource
import signal
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from slabyard.base import programs
from slabyard.replay.scratch import (
    CACHE,
    CACHE_ALLOC,
    CACHE_FREE,
    EVENT,
    FREE_BLOCKS,
    KFREE,
    KMALLOC,
    OLDER,
    OLDER_PAGE_FREE,
    PAGE_ALLOC,
    PAGE_FREE,
    RUN,
    SNAPSHOT,
    UNKNOWN_FREE,
    UNKNOWN_PAGE_FREE,
    ZONE,
)

IMPLIED = 1 << 31
HWCACHE_ALIGN = 1
NO_CACHE = 0xFFFF
NO_HANDLE = 0xFFFFFFFF
MS = 1_000_000
PAGE = 4096
SCALARS = {
    "requests", "failures", "unknown_frees", "implied_frees", "implied_allocations", "held_pages_end", "held_pages_peak", "held_pages_mean",
    "slab_pages_end", "slab_pages_peak", "large_pages_end", "large_pages_peak", "metadata_pages_end", "metadata_pages_peak",
    "requested_bytes_end", "requested_bytes_peak", "total_fragmentation_end", "total_fragmentation_peak", "internal_fragmentation_end",
    "unused_ratio_end", "fragmentation_events", "fast_path_share", "environment_requests", "environment_failures", "environment_pages_end",
    "frees",
}  # fmt: skip


@dataclass
class Scratch:
    """A scratch file in the making. `events` as dictionaries of EVENT's fields."""

    events: list[dict[str, int]] = field(default_factory=list)
    caches: list[tuple[bytes, int, int, int, int]] = field(default_factory=list)
    zones: list[tuple[Any, ...]] = field(default_factory=list)
    free_blocks: list[tuple[Any, ...]] = field(default_factory=list)
    older: list[tuple[int, int, int, int, int]] = field(default_factory=list)
    cpus: int = 1
    nodes: int = 1
    beside: int = 0
    span: int = 10 * MS

    def add(self, kind: int, handle: int = 0, **fields: int) -> None:
        self.events.append({"kind": kind, "handle": handle, "node": -1, "cache": NO_CACHE, **fields})

    def write(self, path: Path) -> Path:
        events = np.zeros(len(self.events), EVENT)
        for at, event in enumerate(self.events):
            for name, value in event.items():
                events[at][name] = value
        run = np.zeros(1, RUN)
        handles = max([64, *(event["handle"] + 1 for event in self.events if event["kind"] in (KMALLOC, CACHE_ALLOC))])
        run[0] = (handles, self.cpus, self.nodes, 9, 8, 4, self.span, 10 * MS, 0, 0, 0, self.beside, 0)
        sections = [
            (b"events", events), (b"caches", np.array([(*one, 0) for one in self.caches], CACHE)), (b"zones", np.array(self.zones, ZONE)),
            (b"freeblk", np.array(self.free_blocks, FREE_BLOCKS)), (b"older", np.array(self.older, OLDER)), (b"run", run),
        ]  # fmt: skip
        table, body = b"", b""
        for name, array in sections:
            body += b"\0" * (-len(body) % 64)
            table += np.array([(name, 256 + len(body), len(array), array.dtype.itemsize, 0)], "S8,<u8,<u8,<u4,<u4").tobytes()
            body += array.tobytes()
        head = b"SLABYARD" + np.array([3, len(sections)], "<u4").tobytes() + table
        path.write_bytes(head.ljust(256, b"\0") + body)
        return path


def start(*argv: object, **options: Any) -> subprocess.CompletedProcess[str]:
    words = [programs.program("slabyard-replay"), *map(str, argv)]
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=60, **options)


def run(*argv: object) -> Any:
    done = start(*argv)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return json.loads(done.stdout)


def refusal(*argv: object) -> str:
    """The one line with which the program refuses."""
    done = start(*argv)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("slabyard-replay: ") and done.stderr.count("\n") == 1, done.stderr
    return done.stderr.removeprefix("slabyard-replay: ").strip()


def exact(path: Path, allocator: str, *more: object) -> dict[str, Any]:
    found: dict[str, Any] = run("--scratch", path, "--allocator", allocator, "--mode", "exact", *more)["exact"]
    return found


def small_trace(tmp_path: Path) -> Path:
    """Three kmallocs (one in pages), a free, a cache's objects, implied ones, a page, an unknown free, and snapshots."""
    trace = Scratch(caches=[(b"dentry", 192, 0, 0, 0), (b"sock", 1088, 0, HWCACHE_ALIGN, 1)], cpus=2)
    trace.add(SNAPSHOT, 0, time_ns=0)
    trace.add(KMALLOC, 0, time_ns=0, size=100, call_site=1)
    trace.add(KMALLOC, 1, time_ns=1 * MS, size=20000, call_site=2)
    trace.add(CACHE_ALLOC, 2, time_ns=2 * MS, size=192, cache=0, call_site=1, cpu=1)
    trace.add(CACHE_ALLOC, 3, time_ns=2 * MS, size=192, cache=0, call_site=3, cpu=3, flags=IMPLIED)
    trace.add(SNAPSHOT, 3, time_ns=3 * MS)
    trace.add(KFREE, 1, time_ns=5 * MS)
    trace.add(CACHE_FREE, 2, time_ns=5 * MS, cache=0, flags=IMPLIED)
    trace.add(PAGE_ALLOC, 4, time_ns=6 * MS, order=2, migrate=1)
    trace.add(PAGE_ALLOC, 5, time_ns=6 * MS, order=0, migrate=0, flags=IMPLIED)
    trace.add(PAGE_FREE, 5, time_ns=6 * MS, order=0, flags=IMPLIED)
    trace.add(UNKNOWN_FREE, 7, time_ns=7 * MS)
    trace.add(UNKNOWN_PAGE_FREE, 8, time_ns=7 * MS)
    trace.add(UNKNOWN_PAGE_FREE, 9, time_ns=7 * MS)
    trace.add(CACHE_ALLOC, 1, time_ns=8 * MS, size=1088, cache=1, call_site=4)
    return trace.write(tmp_path / "small.scratch")


@pytest.mark.parametrize("allocator", ["slub", "slob", "slob:fit=first", "slob:fit=best", "malloc:system"])
def test_events_are_counted_alike(tmp_path: Path, allocator: str) -> None:
    found = exact(small_trace(tmp_path), allocator)
    assert {name: found[name] for name in ("requests", "frees", "failures", "unknown_frees", "implied_frees", "implied_allocations")} == {
        "requests": 4, "frees": 1, "failures": 0, "unknown_frees": 1, "implied_frees": 1, "implied_allocations": 1,
    }  # fmt: skip
    assert found["unknown_page_frees"] == 2
    assert found["environment_requests"] == 1
    assert found["implied_page_allocations"] == found["implied_page_frees"] == 1
    assert found["requested_bytes_end"] == 100 + 192 + 1088
    assert found["requested_bytes_peak"] == 100 + 20000 + 192 + 192
    assert found.keys() >= SCALARS
    assert [snapshot["number"] for snapshot in found["snapshots"]] == [0, 3]
    assert [snapshot["requested_bytes"] for snapshot in found["snapshots"]] == [0, 20484]
    sites = {row["call_site"]: row for row in found["call_sites"]}
    assert sites[1] == {"call_site": 1, "requests": 2, "live": 1, "live_bytes": 100, "peak_bytes": 292}
    assert sites[2] == {"call_site": 2, "requests": 1, "live": 0, "live_bytes": 0, "peak_bytes": 20000}
    assert sites[3] == {"call_site": 3, "requests": 0, "live": 1, "live_bytes": 192, "peak_bytes": 192}
    assert list(sites) == [2, 4, 1, 3]  # by peak


def test_pages_of_slub(tmp_path: Path) -> None:
    found = exact(small_trace(tmp_path), "slub")
    # kmalloc-128: one page, from 0 ms. dentry: one page, as CPU 3 is slot 1 too, from 2 ms. The large one: 20000 bytes in 2^3 pages,
    # from 1 to 5 ms. sock: a slab from 8 ms; behind 1088 bytes, constructed, stands
    # the free pointer, and with cache lines that makes 1152.
    sock = found["slab_pages_end"] - 2
    assert sock in (2, 4, 8)
    assert found["large_pages_peak"] == 8 and found["large_pages_end"] == 0
    assert found["held_pages_peak"] == 10
    held = 1 * 10 + 8 * 4 + 1 * 8 + sock * 2  # page-milliseconds
    assert found["held_pages_mean"] == pytest.approx(held / 10, abs=1e-6)
    assert found["total_fragmentation_peak"] == pytest.approx(1 - 20484 / (10 * PAGE), abs=1e-6)  # the most in 10 pages
    assert found["total_fragmentation_end"] == pytest.approx(1 - 1380 / ((2 + sock) * PAGE), abs=1e-6)
    assert found["internal_fragmentation_end"] == pytest.approx(1 - 1380 / (128 + 192 + 1152), abs=1e-6)
    assert found["unused_ratio_end"] == pytest.approx(1 - (128 + 192 + 1152) / ((2 + sock) * PAGE), abs=1e-6)
    rows = {row["name"]: row for row in found["caches"]}
    assert rows["kmalloc-128"]["cache"] == -1 and rows["kmalloc-128"]["pages"] == 1 and rows["kmalloc-128"]["live_bytes"] == 100
    assert rows["dentry"]["cache"] == 0 and rows["dentry"]["requests"] == 1 and rows["dentry"]["live"] == 1
    assert rows["kmalloc (pages)"]["peak_bytes"] == 20000 and rows["kmalloc (pages)"]["pages"] == 0
    assert sum(row["pages"] or 0 for row in rows.values()) == found["held_pages_end"]
    assert sum(row["pages_peak"] or 0 for row in rows.values()) == found["held_pages_peak"]
    assert sum(row["pages_start"] or 0 for row in rows.values()) == found["held_pages_start"] == 0
    assert found["grew_pages_peak"] == 10 and found["grew_pages_end"] == found["held_pages_end"]
    assert rows["dentry"]["slab_objects"] == 21 and rows["dentry"]["slab_pages"] == 1


def test_unused_memory_of_slob_leaves_out_headers(tmp_path: Path) -> None:
    trace = Scratch()
    trace.add(KMALLOC, 0, size=100)
    found = exact(trace.write(tmp_path / "t"), "slob")
    assert found["slab_pages_end"] == 1
    assert found["unused_ratio_end"] == pytest.approx((PAGE - 108) / PAGE, abs=1e-6)
    assert found["caches"] == [
        {
            "cache": -1, "name": "kmalloc", "size": None, "requests": 1, "live": 1, "live_bytes": 100, "peak_bytes": 100, "slabs": None,
            "partial_slabs": None, "full_slabs": None, "pages": None, "merged_into": None, "slab_objects": None, "slab_pages": None,
            "pages_start": None, "pages_peak": None,
        }
    ]  # fmt: skip


def test_series_is_the_state_after_each_moment(tmp_path: Path) -> None:
    found = exact(small_trace(tmp_path), "slub", "--points", 201)
    series = found["series"]
    assert series["time"] == [k * 50_000 for k in range(201)]
    assert all(len(values) == 201 for values in series.values())
    assert series["requested_bytes"][0] == 100
    assert series["requested_bytes"][19] == 100 and series["requested_bytes"][20] == 20100  # 0.95 and 1 ms
    assert series["large_pages"][99] == 8 and series["large_pages"][100] == 0
    assert series["held_pages"][-1] == found["held_pages_end"]
    assert series["free_blocks"][-1] == found["free_blocks_after"]
    zones = np.array([zone["free_blocks"] for zone in found["zones"]])
    assert zones.sum(axis=(0, 1)).tolist() == found["free_blocks_after"]


def test_results_are_the_same_to_the_byte(tmp_path: Path) -> None:
    path = small_trace(tmp_path)
    for allocator in ("slub", "slob", "malloc:system"):
        argv = ("--scratch", path, "--allocator", allocator, "--mode", "exact")
        assert len({start(*argv).stdout for _ in range(3)}) == 1


def test_unusable_free_space_index(tmp_path: Path) -> None:
    path = Scratch(zones=[(b"Normal", 0, 0, 0, 4096, 4096, 0, 0, 0)]).write(tmp_path / "t")
    found = exact(path, "slub")
    blocks = found["free_blocks_after"]
    free = sum(count << order for order, count in enumerate(blocks))
    for order, index in enumerate(found["unusable_free_space_index"]):
        assert index == pytest.approx(1 - sum(count << at for at, count in enumerate(blocks) if at >= order) / free, abs=1e-6)


def test_older_objects_live_before_the_first_event(tmp_path: Path) -> None:
    trace = Scratch(
        caches=[(b"dentry", 192, 0, 0, 0)],
        older=[(0, 192, 0, 0, 0), (NO_HANDLE, 192, 0, 0, 0), (NO_HANDLE, 500, NO_CACHE, 0, 0)],
    )  # fmt: skip
    trace.add(SNAPSHOT, 0)
    trace.add(CACHE_FREE, 0, cache=0, time_ns=MS)
    found = exact(trace.write(tmp_path / "t"), "slub")
    assert found["snapshots"][0]["requested_bytes"] == 192 + 192 + 500
    assert found["requests"] == 0 and found["frees"] == 1 and found["older_objects"] == 3
    assert found["requested_bytes_end"] == 192 + 500


@pytest.mark.parametrize("allocator", ["slub", "slab", "slqb", "yard"])
def test_growth_by_cache_adds_up_to_growth(tmp_path: Path, allocator: str) -> None:
    """With a peak that is gone at the end, older objects, and slabs that wait for a grace period."""
    older = [(NO_HANDLE, 192, 0, 0, 0)] * 50 + [(NO_HANDLE, 1000, NO_CACHE, 0, 0)] * 20
    trace = Scratch(caches=[(b"dentry", 192, 0, 0, 0), (b"inode", 600, 0, 0, 0)], older=older)
    for turn in range(3):
        for handle in range(200):
            trace.add(CACHE_ALLOC, 3 * handle, cache=0, size=192, time_ns=10 * turn * MS)
            trace.add(CACHE_ALLOC, 3 * handle + 1, cache=1, size=600, time_ns=10 * turn * MS)
            trace.add(KMALLOC, 3 * handle + 2, size=64 * (handle % 40) + 1, time_ns=10 * turn * MS)
        for handle in range(200):
            trace.add(CACHE_FREE, 3 * handle, cache=0, time_ns=(10 * turn + 5) * MS)
            trace.add(CACHE_FREE, 3 * handle + 1, cache=1, time_ns=(10 * turn + 5) * MS)
            trace.add(KFREE, 3 * handle + 2, time_ns=(10 * turn + 5) * MS)
    found = exact(trace.write(tmp_path / "t"), allocator)
    for when in ("start", "peak"):
        assert sum(row[f"pages_{when}"] or 0 for row in found["caches"]) == found[f"held_pages_{when}"], when
    assert found["grew_pages_peak"] == found["held_pages_peak"] - found["held_pages_start"] > 0


def test_free_lists_start_as_recorded(tmp_path: Path) -> None:
    blocks = np.zeros((4, 11), int)
    blocks[1, 10], blocks[1, 4], blocks[0, 2] = 2, 3, 5
    trace = Scratch(
        zones=[(b"Normal", 0, 0, 0, 8192, 8192, 0, 0, 0)],
        free_blocks=[(0, 0, blocks.tolist(), [4, 12, 0, 0])],
    )  # fmt: skip
    trace.add(OLDER_PAGE_FREE, 5000, order=0)
    path = trace.write(tmp_path / "t")
    found = exact(path, "malloc:system")
    assert found["free_blocks_before"] is None and found["zones"] == []
    text = start("--scratch", path, "--allocator", "slob", "--proc", "pagetypeinfo").stdout
    assert "Node    0, zone   Normal, type      Movable " in text
    found = exact(path, "slob")
    before = sum(count << order for order, count in enumerate(found["free_blocks_before"]))
    assert before == 2 * 1024 + 3 * 16 + 5 * 4 - found["metadata_pages_peak"]
    assert found["older_page_frees"] == 1 and found["older_page_frees_missed"] == 0


def test_zones_of_a_kernel_are_extended_to_whole_blocks(tmp_path: Path) -> None:
    zones = [(b"DMA", 0, 0, 1, 4095, 3840, 0, 0, 0), (b"Normal", 0, 0, 4096, 8000, 7900, 0, 0, 0)]
    found = exact(Scratch(zones=zones).write(tmp_path / "t"), "slub")
    free = sum(count << order for order, count in enumerate(found["free_blocks_before"]))
    assert free + found["metadata_pages_peak"] <= 3840 + 7900
    assert free > 11000


def test_proc_formats(tmp_path: Path) -> None:
    path = Scratch().write(tmp_path / "t")
    lines = start("--scratch", path, "--allocator", "slob", "--proc", "buddyinfo", "--memory", 64 << 20).stdout.splitlines()
    assert [line[:22] for line in lines] == ["Node 0, zone      DMA ", "Node 0, zone    DMA32 "]
    assert all(len(line.split()) == 4 + 11 for line in lines)
    lines = start("--scratch", path, "--allocator", "slob", "--proc", "pagetypeinfo", "--memory", 8 << 30).stdout.splitlines()
    assert lines[:3] == ["Page block order: 9", "Pages per block:  512", ""]
    assert len(lines) == 4 + 3 * 4 + 2 + 3


def test_nodes_share_memory_that_no_zone_describes(tmp_path: Path) -> None:
    trace = Scratch(cpus=2, nodes=2)
    for handle in range(32):
        trace.add(KMALLOC, handle, size=4000, cpu=handle % 2)
        trace.events[-1]["node"] = handle % 2
    path = trace.write(tmp_path / "t")
    assert exact(path, "slob")["held_pages_end"] == 32
    lines = start("--scratch", path, "--allocator", "slob", "--proc", "buddyinfo", "--memory", 8 << 30).stdout.splitlines()
    assert [line.split()[:4] for line in lines] == [
        ["Node", "0,", "zone", "DMA"], ["Node", "0,", "zone", "DMA32"], ["Node", "1,", "zone", "Normal"],
    ]  # fmt: skip


@pytest.mark.parametrize("allocator", ["slub", "slob", "malloc:system"])
def test_times(tmp_path: Path, allocator: str) -> None:
    path = small_trace(tmp_path)
    timed = run("--scratch", path, "--allocator", allocator, "--mode", "timed")["timed"]
    assert timed["operations"] == 7
    assert timed["events"] == (7 if allocator == "malloc:system" else 15)
    assert timed["page_faults"] <= 2  # what the pass needs is there before its clock starts
    assert timed["seconds"] > 0 and timed["ns_per_operation"] > 0 and timed["events_per_second"] > 0
    pages = timed["page_operations"]
    assert (pages, timed["ns_per_page_operation"]) == (0, None) if allocator == "malloc:system" else pages > 0
    whole = timed["ns_per_operation"] * 7 + (timed["ns_per_page_operation"] or 0) * pages
    assert timed["seconds"] * 1e9 == pytest.approx(whole, abs=1)
    latency = run("--scratch", path, "--allocator", allocator, "--mode", "latency")["timed"]
    for name in ("alloc_ns", "free_ns", "latency_ns"):
        assert 0 <= latency[name]["median"] <= latency[name]["p99"] <= latency[name]["p999"]
    assert latency["clock"]


def test_passes_leave_no_page_faults_behind(tmp_path: Path) -> None:
    trace = Scratch(older=[(NO_HANDLE, 100, NO_CACHE, 0, 0)] * 5000)
    for handle in range(64):
        trace.add(KMALLOC, handle, size=4096 << handle % 4)
    path = trace.write(tmp_path / "t")
    for allocator in ("slub", "slob"):
        assert run("--scratch", path, "--allocator", allocator, "--mode", "timed")["timed"]["page_faults"] <= 2


@pytest.mark.parametrize("allocator", ["slub", "slob:fit=best", "malloc:system"])
def test_server_answers_as_single_runs_do(tmp_path: Path, allocator: str) -> None:
    argv = ("--scratch", small_trace(tmp_path), "--allocator", allocator, "--mode")
    done = start(*argv, "serve", input="exact\ntimed\nlatency\ntimed\nexact\n")
    assert done.returncode == 0 and done.stderr == ""
    first, timed, latency, again, last = map(json.loads, done.stdout.splitlines())
    assert first == last == run(*argv, "exact")
    assert timed["timed"].keys() == again["timed"].keys() == run(*argv, "timed")["timed"].keys()
    assert latency["timed"].keys() == run(*argv, "latency")["timed"].keys()


def test_server_refuses(tmp_path: Path) -> None:
    path = small_trace(tmp_path)
    done = start("--scratch", path, "--allocator", "slub", "--mode", "serve", input="exact\nbuddyinfo\nexact\n")
    assert done.returncode == 2 and len(done.stdout.splitlines()) == 1
    assert done.stderr == "slabyard-replay: no pass is called buddyinfo: it can be exact, timed or latency\n"
    trace = Scratch()
    for handle in range(3):
        trace.add(KMALLOC, handle, size=4 << 20)
    argv = ("--scratch", trace.write(tmp_path / "t"), "--allocator", "slub", "--mode", "serve", "--memory", 8 << 20)
    assert "first failed at event 1" in refusal(*argv)


def test_crash_of_a_library_is_the_programs(tmp_path: Path) -> None:
    source = tmp_path / "crash.c"
    source.write_text(
        "#include <stdlib.h>\nvoid *malloc(size_t size) { (void)size; abort(); }\n"
        "void free(void *p) { (void)p; }\nint posix_memalign(void **p, size_t a, size_t s) { *p = 0; return a < s; }\n"
    )
    library = tmp_path / "libcrash.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-fno-builtin", "-o", str(library), str(source)], check=True)
    done = start("--scratch", small_trace(tmp_path), "--allocator", f"malloc:{library}", "--mode", "exact")
    assert done.returncode == -signal.SIGABRT and done.stdout == ""


def test_pass_ends_with_its_server(tmp_path: Path) -> None:
    trace = Scratch(span=1)
    for _ in range(50_000):
        trace.add(KMALLOC, 0, size=64)
        trace.add(KFREE, 0)
    argv = [programs.program("slabyard-replay"), "--scratch", str(trace.write(tmp_path / "t")), "--allocator", "slub", "--mode", "serve"]
    server = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert server.stdin and server.stdout
    server.stdin.write(b"latency\n" * 50)
    server.stdin.flush()
    server.stdout.readline()  # the next has begun, or is about to
    server.kill()
    assert len(server.stdout.read().splitlines()) <= 2  # ends when nobody holds the pipe any more
    server.wait()


def test_malloc_tells_what_it_can(tmp_path: Path) -> None:
    found = exact(small_trace(tmp_path), "malloc:system")
    for name in ("held_pages_end", "slab_pages_peak", "total_fragmentation_end", "fast_path_share", "fragmentation_events"):
        assert found[name] is None
    assert found["series"]["held_pages"] is None and len(found["series"]["requested_bytes"]) == 256


def test_malloc_of_a_library(tmp_path: Path, replay_malloc: Path) -> None:
    path = small_trace(tmp_path)
    assert exact(path, f"malloc:{replay_malloc}")["requested_bytes_end"] == 1380
    assert run("--scratch", path, "--allocator", f"malloc:{replay_malloc}", "--mode", "timed")["timed"]["operations"] == 7


def test_request_that_says_more_than_its_cache_has(tmp_path: Path) -> None:
    """Touching an object touches what is as large as its cache's objects are, and no more."""
    trace = Scratch(caches=[(b"dentry", 192, 0, 0, 0)], older=[(NO_HANDLE, 1 << 30, 0, 0, 0)])
    for handle in range(3):
        trace.add(CACHE_ALLOC, handle, cache=0, size=1 << 30, time_ns=handle * MS)
    found = run("--scratch", trace.write(tmp_path / "t"), "--allocator", "malloc:system", "--mode", "timed")["timed"]
    assert found["operations"] == 3 and found.get("held_pages_peak", 1) < 256


@pytest.fixture
def replay_malloc(tmp_path: Path) -> Path:
    """A shared library with a malloc of its own: a bump allocator with posix_memalign alone, and thread variables laid out at start."""
    source = tmp_path / "bump.c"
    source.write_text(
        "#include <stddef.h>\n#include <stdint.h>\n"
        "static _Alignas(64) char memory[1 << 20];\nstatic size_t used;\n"
        'static __thread volatile char cache[16384] __attribute__((tls_model("initial-exec")));\n'
        "static void *bump(size_t align, size_t size)\n"
        "{\n\tused = (used + align - 1) & ~(align - 1);\n\tused += size;\n\treturn memory + used - size;\n}\n"
        "int posix_memalign(void **p, size_t align, size_t size) { *p = bump(align, size); return 0; }\n"
        "void *malloc(size_t size) { cache[size % sizeof cache]++; return bump(16, size); }\n"
        "void free(void *p) { (void)p; }\n"
    )
    library = tmp_path / "libbump.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-fno-builtin", "-o", str(library), str(source)], check=True)
    return library


def test_refused_mallocs(tmp_path: Path) -> None:
    argv = ("--scratch", small_trace(tmp_path), "--mode", "exact", "--allocator")
    assert "cannot open shared object file" in refusal(*argv, "malloc:/nonexistent/lib.so")
    libm = ctypes.util.find_library("m")
    assert "has no malloc of its own" in refusal(*argv, f"malloc:{libm}")


def test_too_little_memory(tmp_path: Path) -> None:
    trace = Scratch()
    for handle in range(3):
        trace.add(KMALLOC, handle, size=3 << 20)
    trace.add(KFREE, 2)
    path = trace.write(tmp_path / "t")
    line = (
        "the trace needs more than the 8 MiB of simulated memory (first failed at event 1): raise --memory, or count failures with "
        "--allow-failures"
    )
    for mode in ("exact", "timed", "latency"):
        assert refusal("--scratch", path, "--allocator", "slub", "--mode", mode, "--memory", 8 << 20) == line
    found = exact(path, "slub", "--memory", 8 << 20, "--allow-failures")
    assert found["requests"] == 3 and found["failures"] == 2 and found["frees"] == 0 and found["first_failed_event"] == 1


def test_list_and_geometry() -> None:
    policies = {policy["name"]: policy for policy in run("--list")}
    fit = next(tunable for tunable in policies["slob"]["tunables"] if tunable["name"] == "fit")
    assert fit["default"] == "next" and fit["choices"] == ["next", "first", "best"]
    found = run("--geometry", "--allocator", "slub", "--cpus", 1, 192, 4096)
    assert found[0] == {"size": 192, "objects_per_slab": 21, "pages_per_slab": 1, "wasted_bytes": 64, "sheaf_capacity": 0}
    assert found[1]["size"] == 4096
    assert "no geometry" in refusal("--geometry", "--allocator", "slob", 64)
    assert "0 is no object size" in refusal("--geometry", "--allocator", "slub", 0)


def test_log_of_slob(tmp_path: Path) -> None:
    trace = Scratch()
    for handle in range(4):
        trace.add(KMALLOC, handle, size=100)
    argv = ("--scratch", trace.write(tmp_path / "t"), "--allocator", "slob:fit=best,log_every=2", "--mode", "exact")
    run(*argv, "--log", tmp_path / "log")
    log = (tmp_path / "log").read_text().splitlines()
    assert [line.split()[0] for line in log] == ["slob_request", "slob_candidates", "slob_chosen"] * 2
    assert log[0] == "slob_request 108"
    assert "log" in refusal(*argv, "--log", tmp_path / "no" / "log") and "No space left" in refusal(*argv, "--log", "/dev/full")


def test_check_of_specs() -> None:
    tiny = ["cpu_partial", "linux", "sheaf_capacity", "barn_full"]
    for spec, idle in (("slob:fit=best", []), ("malloc:system", []), ("slub:tiny=on", tiny)):
        done = start("--check", "--allocator", spec)
        assert (done.returncode, json.loads(done.stdout), done.stderr) == (0, idle, "")
    assert "cpu_partial" not in start("--check", "--allocator", "slub").stdout
    assert json.loads(start("--check", "--allocator", "slub", "--kernel", str(7 << 8)).stdout) == ["cpu_partial"]
    assert "--kernel" in refusal("--check", "--allocator", "slub", "--kernel", "7.0")
    assert "slub" in refusal("--check", "--allocator", "slubb")
    assert "6.1 has no SLUB_TINY" in refusal("--check", "--allocator", "slub:tiny=on,linux=6.1")
    for spec in ("slub,", "slub,max_order=1"):
        assert f"{spec}: write a colon behind slub: slub:tunable=value" in refusal("--check", "--allocator", spec)
    assert "no/such" in refusal("--check", "--allocator", "malloc:/no/such/lib.so")


@pytest.mark.parametrize("policy", [one["name"] for one in json.loads(start("--list").stdout)])
def test_what_is_larger_than_any_block_fails_and_is_counted(tmp_path: Path, policy: str) -> None:
    trace = Scratch()
    trace.add(KMALLOC, 0, size=8 << 20)
    trace.add(KMALLOC, 1, size=4 << 20)
    trace.add(KFREE, 0)
    path = trace.write(tmp_path / "t")
    found = exact(path, policy)
    assert (found["requests"], found["failures"], found["oversized_failures"]) == (2, 1, 1)
    assert found["first_failed_event"] == 0
    run("--scratch", path, "--allocator", policy, "--mode", "timed")


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["--mode", "exact"], "give --allocator"),
        (["--allocator", "slbu"], "did you mean slub?"),
        (["--allocator", "slub:max_ordr=1"], "did you mean max_order?"),
        (["--allocator", "slub", "--mode", "exact"], "give --scratch"),
        (["--allocator", "slub", "--mode", "fast", "--scratch", "x"], "exact, timed, latency, cost, serve or settings"),
        (["--allocator", "slub", "--mode", "exact", "--scratch", "/nonexistent"], "cannot open /nonexistent"),
        (["--allocator", "slub", "--mode", "exact", "--scratch", "x", "--points", "7"], "200 to 65536"),
        (["--allocator"], "needs a value"),
        (["--frobnicate"], "unknown option --frobnicate"),
        (["stray"], "unexpected argument stray"),
    ],
)
def test_usage(argv: list[str], words: str) -> None:
    assert words in refusal(*argv)


def test_damaged_and_foreign_files(tmp_path: Path) -> None:
    argv = ("--allocator", "slub", "--mode", "exact", "--scratch")
    whole = small_trace(tmp_path).read_bytes()
    cut = tmp_path / "cut"
    for length in (0, 7, 100, 300, len(whole) - 1):
        cut.write_bytes(whole[:length])
        assert "scratch file" in refusal(*argv, cut)
    cut.write_bytes(b"PAR1" * 100)
    assert "no scratch file of slabyard" in refusal(*argv, cut)


def test_full_disk(tmp_path: Path) -> None:
    argv = [programs.program("slabyard-replay"), "--scratch", str(small_trace(tmp_path)), "--allocator", "slub", "--mode", "exact"]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(argv, stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=60)
    assert done.returncode == 2
    assert done.stderr == "slabyard-replay: cannot write the result: standard output is full or closed\n"


def test_no_address_space(tmp_path: Path) -> None:
    def little() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))

    argv = ("--scratch", Scratch().write(tmp_path / "t"), "--allocator", "slub", "--mode", "exact", "--memory", 1 << 36)
    done = start(*argv, preexec_fn=little)
    assert done.returncode == 2
    assert "no address space for 65536 MiB" in done.stderr
