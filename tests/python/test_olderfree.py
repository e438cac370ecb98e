"""Slabs older than a trace: the room that the trace proves, and how the objects in them are laid out."""

from __future__ import annotations

from pathlib import Path

import handmade
import numpy as np

from slabyard.replay import scratch
from slabyard.replay.olderfree import first_places
from slabyard.replay.workload import Options, Workload
from slabyard.trace import gfp

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
    """Four free objects are known anyway. Pages that the trace saw allocated are young, and objects that older frees gave
    back were not free at the start."""
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


# ---- The layout of slabs ---------------------------------------------------------------------------------------------


def laid_out(path: Path) -> list[str]:
    """Each slab of 16 objects in the order of allocation: f, freed in the trace; s, stays; a dot, free when the replay begins."""
    with Workload(path, Options()) as workload:
        header = np.frombuffer(workload.scratch.read_bytes(), scratch.SECTION, 7, 16)
        older = next(one for one in header if one["name"] == b"older")
        rows = np.fromfile(workload.scratch, scratch.OLDER, int(older["count"]), offset=int(older["offset"]))
    handles = rows["handle"][rows["cache"] == 0]
    text = "".join("." if one == scratch.VACATED else "s" if one == scratch.NONE else "f" for one in handles)
    return [text[begin : begin + 16] for begin in range(0, len(text), 16)]


def of_slabs(count: int, active: int) -> handmade.Builder:
    build = handmade.Builder()
    build.metadata.cpus = 1
    build.metadata.direct_map.base = hex(BASE)
    build.metadata.caches = [handmade.cache("dentry", 256)]
    info = f"slabinfo - version: 2.1\ndentry {active} {16 * count} 256 16 1 : tunables 0 0 0 : slabdata {count} {count} 0\n"
    build.snapshot("start", {"slabinfo": info}, {"dentry": {"cpu_slabs": "0", "partial": str(count)}})
    return build


def older_frees(build: handmade.Builder, frame: int, count: int) -> None:
    for number in range(count):
        build.cache_free(scratch.NONE, 0, origin="older", address=BASE + (frame << 12) + 256 * number)


def test_a_slab_that_was_given_back_has_nothing_that_stays(tmp_path: Path) -> None:
    """Three slabs with 12 objects each on average: of one all objects went, and of another five were freed."""
    build = of_slabs(3, 36)
    older_frees(build, 100, 10)
    older_frees(build, 300, 5)
    build.page_free(scratch.NONE, address=100, origin="older", owner="slab")
    slabs = laid_out(build.write(tmp_path / "t.parquet"))
    assert slabs[0] == "f" * 10 + "." * 6
    assert sorted(slabs) == sorted(["f" * 10 + "." * 6, "f" * 5 + "s" * 7 + "." * 4, slabs[1]])
    assert (slabs[1].count("s"), slabs[1].count(".")) == (14, 2), "what is left"


def test_slabs_without_frees_lie_between_the_others(tmp_path: Path) -> None:
    build = of_slabs(5, 80)
    older_frees(build, 100, 16)
    older_frees(build, 300, 16)
    assert laid_out(build.write(tmp_path / "t.parquet")) == ["s" * 16, "f" * 16, "s" * 16, "f" * 16, "s" * 16]


# ---- The class of an older object that kfree frees -------------------------------------------------------------------


def classes_after(path: Path) -> dict[int, int]:
    """Older objects of kmalloc that the replay frees, by the bytes that are asked for."""
    with Workload(path, Options()) as workload:
        header = np.frombuffer(workload.scratch.read_bytes(), scratch.SECTION, 7, 16)
        older = next(one for one in header if one["name"] == b"older")
        rows = np.fromfile(workload.scratch, scratch.OLDER, int(older["count"]), offset=int(older["offset"]))
    freed = rows[~np.isin(rows["handle"], [scratch.NONE, scratch.VACATED])]
    return {int(size): int(count) for size, count in zip(*np.unique(freed["size"], return_counts=True), strict=True)}


def of_kmalloc(end: dict[int, int], step: int) -> handmade.Builder:
    """At the start there are 100 objects in each of three classes; `end`: active ones at the end. Frees in one page are
    `step` bytes apart."""

    def info(active: dict[int, int]) -> dict[str, str]:
        lines = (
            f"kmalloc-{size} {count} 128 {size} {4096 // size} 1 : tunables 0 0 0 : slabdata 32 32 0\n" for size, count in active.items()
        )
        return {"slabinfo": "slabinfo - version: 2.1\n" + "".join(lines)}

    build = handmade.Builder()
    build.metadata.cpus = 1
    build.metadata.direct_map.base = hex(BASE)
    build.snapshot("start", info({64: 100, 96: 100, 1024: 100}))
    for number in range(10):
        build.kfree(scratch.NONE, origin="older", address=BASE + (100 << 12) + step * number, size=0, allocated=0)
        build.kfree(scratch.NONE, origin="older", address=BASE + ((200 + number) << 12), size=0, allocated=0)  # of any
    build.snapshot("end", info(end))
    return build


def test_the_class_of_an_older_object_is_one_that_lost_some(tmp_path: Path) -> None:
    path = of_kmalloc({64: 100, 96: 90, 1024: 90}, 192).write(tmp_path / "t.parquet")
    assert classes_after(path) == {96: 10, 1024: 10}


def test_objects_of_a_page_are_of_a_class_that_fits_all(tmp_path: Path) -> None:
    path = of_kmalloc({64: 99, 96: 98, 1024: 90}, 64).write(tmp_path / "t.parquet")
    assert classes_after(path) == {64: 10, 1024: 10}


# ---- Slabs as the recorded allocator's lay ---------------------------------------------------------------------------


def section(path: Path, name: bytes) -> np.ndarray:
    """The older objects in a section of the scratch file; none if the section is missing."""
    with Workload(path, Options()) as workload:
        data = workload.scratch.read_bytes()
    count = int(np.frombuffer(data, "<u4", 1, 12)[0])
    for one in np.frombuffer(data, scratch.SECTION, count, 16):
        if one["name"] == name:
            return np.frombuffer(data, scratch.OLDER, int(one["count"]), int(one["offset"]))
    return np.empty(0, scratch.OLDER)


def slabs_of(rows: np.ndarray, cache: int = 0, objects: int = 16) -> list[str]:
    """The same slabs, by laid_out."""
    text = "".join("." if one == scratch.VACATED else "s" if one == scratch.NONE else "f" for one in rows["handle"][rows["cache"] == cache])
    return [text[begin : begin + objects] for begin in range(0, len(text), objects)]


def used(build: handmade.Builder, frame: int, places: range, first: int, **values: int) -> None:
    for number, place in enumerate(places):
        build.cache_alloc(first + number, 0, address=BASE + (frame << 12) + 256 * place, **values)


def test_what_was_free_is_free_where_it_was(tmp_path: Path) -> None:
    """Three slabs hold 28 objects. One was empty; one had four free objects and is used first. The trace does not show the
    third."""
    build = of_slabs(3, 28)
    used(build, 200, range(4, 8), 0)
    used(build, 100, range(16), 10)
    path = build.write(tmp_path / "t.parquet")
    assert slabs_of(section(path, b"laid")) == ["." * 16, "s" * 16, "s" * 12 + "." * 4]
    assert slabs_of(section(path, b"older")) == laid_out(path) != slabs_of(section(path, b"laid")), "other allocators' are as ever"


def test_slabs_that_are_seen_are_whole(tmp_path: Path) -> None:
    """In twenty slabs four objects were free, and objects of each slab are freed, of six slabs all. The layout puts no two
    of these slabs into one."""
    build = of_slabs(20, 20 * 16 - 4)
    for number in range(20):
        older_frees(build, 100 + number, 16 if number % 3 == 2 else 7)
    for number in range(2, 20, 3):
        build.page_free(scratch.NONE, address=100 + number, origin="older", owner="slab")
    build.cache_alloc(900, 0, address=BASE + (500 << 12))
    slabs = slabs_of(section(build.write(tmp_path / "t.parquet"), b"laid"))
    assert len(slabs) == 20 and slabs.count("f" * 16) == 6
    assert all(one.count("f") in (7, 16) for one in slabs[:-1])


def test_first_places() -> None:
    """Also where numbers and places don't fit in one word."""
    generator = np.random.default_rng(1)
    for most in (1, 9, 1 << 33, (1 << 64) - 1):
        numbers = generator.integers(0, most, 3000, np.uint64, endpoint=True)
        numbers[7] = numbers[2000]
        assert first_places(numbers).tolist() == np.unique(numbers, return_index=True)[1].tolist()
    assert first_places(np.empty(0, np.uint64)).tolist() == []


def test_a_slab_is_of_the_cpu_that_uses_it_first(tmp_path: Path) -> None:
    build = of_slabs(2, 20)
    build.metadata.cpus = 2
    used(build, 100, range(8), 0, cpu=1)
    used(build, 200, range(4), 20, cpu=0)
    laid = section(build.write(tmp_path / "t.parquet"), b"laid")
    assert laid["cpu"].tolist() == [1] * 16 + [0] * 16


def test_empty_slabs_are_where_the_kernel_keeps_them(tmp_path: Path) -> None:
    """Fourteen slabs, of which the trace uses ten empty ones, on one CPU. A node keeps five of them; the other five are on lists
    of CPUs, or they had gone back. What is used first is there."""
    build = of_slabs(14, 64)
    build.metadata.cpus, build.metadata.kernel = 2, "6.18.0"
    for number in range(10):
        used(build, 100 + number, range(16), 16 * number, cpu=0)
    path = build.write(tmp_path / "t.parquet")
    laid = section(path, b"laid")
    slabs = slabs_of(laid)
    assert [one == "." * 16 for one in slabs] == [True] * 5 + [False] * 4 + [True] * 5
    assert laid["cpu"][::16].tolist()[:5] == [0] * 5 and sorted(set(laid["cpu"][::16].tolist()[9:])) == [0, 1]
    with Workload(path, Options()) as workload:
        assert workload.exact("slub")["caches"][0]["pages_start"] == 14


def test_a_cache_without_an_object_in_use_has_its_slabs(tmp_path: Path) -> None:
    build = of_slabs(3, 0)
    build.metadata.kernel = "6.18.0"
    for number in range(3):
        used(build, 100 + number, range(16), 16 * number)
    path = build.write(tmp_path / "t.parquet")
    assert slabs_of(section(path, b"laid")) == ["." * 16] * 3
    with Workload(path, Options()) as workload:
        assert workload.exact("slub")["caches"][0]["pages_start"] == 3


def test_where_slabs_came_all_others_were_full(tmp_path: Path) -> None:
    """slabinfo counts 20 objects, and a slab came when 4 of 32 places had been taken: there were 28."""
    build = of_slabs(2, 20)
    used(build, 100, range(12, 16), 0)
    build.page_alloc(50, address=300, owner="slab")
    used(build, 300, range(1), 20)
    path = build.write(tmp_path / "t.parquet")
    assert "".join(slabs_of(section(path, b"laid"))).count("s") == 28
    assert "".join(slabs_of(section(path, b"older"))).count("s") == 20


def test_types_of_kmalloc_are_told_apart(tmp_path: Path) -> None:
    """A page of accounted kmallocs holds only those: so an older object that is freed in it is accounted."""
    build = handmade.Builder()
    build.metadata.cpus = 1
    build.metadata.direct_map.base = hex(BASE)
    lines = "".join(f"{name} 32 32 256 16 1 : tunables 0 0 0 : slabdata 2 2 0\n" for name in ("kmalloc-256", "kmalloc-cg-256"))
    build.snapshot("start", {"slabinfo": f"slabinfo - version: 2.1\n{lines}"}, {})
    for number in range(8):
        build.row("kfree", origin="older", address=BASE + (100 << 12) + 512 * number)
    build.kmalloc(1, 256, address=BASE + (100 << 12) + 256, accounted=True)
    laid = section(build.write(tmp_path / "t.parquet"), b"laid")
    freed = laid[laid["handle"] < scratch.VACATED]
    assert len(freed) == 8 and set(freed["flags"]) == {gfp.ACCOUNT}


def test_pages_of_which_no_object_is_seen_go(tmp_path: Path) -> None:
    """A large kmalloc that is freed, and a slab that was emptied without an event: both are among the large ones at the
    start."""
    build = handmade.Builder()
    build.metadata.cpus = 1
    build.metadata.direct_map.base = hex(BASE)
    info = "slabinfo - version: 2.1\ndentry 16 16 256 16 1 : tunables 0 0 0 : slabdata 1 1 0\n"
    build.metadata.caches = [handmade.cache("dentry", 256)]
    build.snapshot("start", {"slabinfo": info, "meminfo": f"Slab: {4 * (1 + 1024)} kB\n"}, {"dentry": {"cpu_slabs": "0"}})
    build.row("kfree", origin="older", address=BASE + (1024 << 12))
    build.page_free(scratch.NONE, 9, address=1024, origin="older", owner="slab")
    build.page_free(scratch.NONE, 3, address=4096, origin="older", owner="slab")
    with Workload(build.write(tmp_path / "t.parquet"), Options()) as workload:
        exact = workload.exact("slub")
    assert exact["held_pages_start"] - exact["held_pages_end"] == 512 + 8
    assert exact["unknown_frees"] == 1, "the kfree, which the pages stand for"


def test_replays_by_the_recorded_rules_begin_with_it(tmp_path: Path) -> None:
    """Of 32 slabs every second one was empty when the trace began. Where the same holes are spread over all slabs, every
    slab stays."""
    build = of_slabs(32, 256)
    build.metadata.kernel = "6.18.0"
    for frame in range(100, 116):
        used(build, frame, range(16), 16 * frame)
    with Workload(build.write(tmp_path / "t.parquet"), Options()) as workload:
        own, spread = (workload.exact(spec)["caches"][0]["pages_start"] for spec in ("slub", "slub:linux=6.12"))
    assert own < spread == 32


def test_a_place_that_was_free_first_has_no_older_object(tmp_path: Path) -> None:
    """The trace sees objects allocated in a whole slab, and then as many older ones freed there: those came and went unseen."""
    build = of_slabs(2, 16)
    used(build, 100, range(16), 0)
    older_frees(build, 100, 16)
    older_frees(build, 300, 16)
    assert sorted(slabs_of(section(build.write(tmp_path / "t.parquet"), b"laid"))) == ["." * 16, "f" * 16]


def test_in_a_slab_that_never_goes_something_stays(tmp_path: Path) -> None:
    """Of 40 slabs, half full on average, 15 objects of each of twenty are freed. Ten of these slabs are given back; the other ones are
    not, so something was in the sixteenth place."""
    build = of_slabs(40, 330)
    build.metadata.kernel = "6.18.0"
    used(build, 100, range(1), 0)
    for frame in range(200, 220):
        older_frees(build, frame, 15)
    for frame in range(200, 210):
        build.page_free(scratch.NONE, address=frame, origin="older", owner="slab")
    path = build.write(tmp_path / "t.parquet")
    slabs = slabs_of(section(path, b"laid"))
    assert (slabs.count("f" * 15 + "s"), slabs.count("f" * 15 + ".")) == (10, 10)
    with Workload(path, Options()) as workload:
        exact = workload.exact("slub:min_partial=0")
    assert exact["held_pages_start"] - exact["held_pages_end"] == 10


def test_single_pages_of_which_no_object_is_seen_go(tmp_path: Path) -> None:
    """Slabs of one page that were emptied without an event. No page comes back of a kmalloc of 4 KiB alone, so four go at a time."""
    build = handmade.Builder()
    build.metadata.cpus = 1
    build.metadata.direct_map.base = hex(BASE)
    build.metadata.caches = [handmade.cache("dentry", 256)]
    info = "slabinfo - version: 2.1\ndentry 16 16 256 16 1 : tunables 0 0 0 : slabdata 1 1 0\n"
    build.snapshot("start", {"slabinfo": info, "meminfo": f"Slab: {4 * (1 + 1024)} kB\n"}, {"dentry": {"cpu_slabs": "0"}})
    build.metadata.kernel = "6.18.0"
    used(build, 100, range(1), 0)
    for number in range(10):
        build.page_free(scratch.NONE, address=4096 + number, origin="older", owner="slab")
    with Workload(build.write(tmp_path / "t.parquet"), Options()) as workload:
        exact = workload.exact("slub")
    assert exact["held_pages_start"] - exact["held_pages_end"] == 8


def test_more_places_than_a_slab_has(tmp_path: Path) -> None:
    """Addresses of a damaged trace, at which no objects begin: those that are seen last are left out."""
    build = of_slabs(2, 32)
    for number in range(32):
        build.cache_free(scratch.NONE, 0, origin="older", address=BASE + (100 << 12) + 128 * number)
    used(build, 300, range(16), 0)
    assert sorted(slabs_of(section(build.write(tmp_path / "t.parquet"), b"laid"))) == ["." * 16, "f" * 16]
