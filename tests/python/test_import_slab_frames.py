"""Import of a recording that says which page frames were slabs when it began."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from slabyard.capture import importer, moments, record
from slabyard.capture.inputs import About
from slabyard.trace import file as trace
from test_import import Capture, at, rows


def imported(capture: Capture, folder: Path, frames: Sequence[int] | None) -> trace.Metadata:
    (folder / "capture.txt").write_text("\n".join(capture.lines) + "\n")
    about = About(page_size=4096, slab_frames=None if frames is None else np.array(frames, np.uint64))
    return importer.import_described(folder / "capture.txt", folder / "t.parquet", about)


def scattered(count: int) -> list[int]:
    """Frames in no order that repeats."""
    return sorted({0x10000 + (number * number * 7919) % 99_991 for number in range(1, count + 1)})


def test_objects_in_slabs_tell_the_base(tmp_path: Path) -> None:
    """Nothing is allocated or freed next to its pages, so no event could vote."""
    capture = Capture()
    frames = scattered(60)
    for frame in frames[::2]:
        capture.free(at(frame, 64))
    assert imported(capture, tmp_path, frames).direct_map.base == hex(at(0))
    assert imported(capture, tmp_path, None).direct_map.base is None
    assert imported(capture, tmp_path, [frame + 1 for frame in frames]).direct_map.base is None, "not a multiple of 2 MiB"


def test_few_objects_tell_no_base(tmp_path: Path) -> None:
    capture = Capture()
    frames = scattered(60)
    for frame in frames[:15]:
        capture.free(at(frame, 64))
    assert imported(capture, tmp_path, frames).direct_map.base is None


def test_bases_that_fit_alike_are_none(tmp_path: Path) -> None:
    """Where every frame is a slab, objects fit everywhere."""
    capture = Capture()
    for frame in scattered(60):
        capture.free(at(frame, 64))
    assert imported(capture, tmp_path, range(1, 1 << 18)).direct_map.base is None


def test_an_older_slab_that_is_given_back_unseen(tmp_path: Path) -> None:
    """All its objects were freed in bulk. The kernel had said that its pages are a slab; of the other pages it had not."""
    capture = Capture()
    frames = scattered(60)
    for frame in frames:
        capture.free(at(frame, 64))
    capture.free_pages(0x8000, order=2)
    capture.free_pages(0x8004, order=2)
    imported(capture, tmp_path, [0x8000, 0x8001, 0x8002, 0x8003, *frames])
    found = {row["address"]: (row["owner"], row["origin"]) for row in rows(tmp_path / "t.parquet") if row["kind"] == "mm_page_free"}
    assert found == {0x8000: ("slab", "older"), 0x8004: ("environment", "older")}


def test_a_slab_of_before_whose_page_is_allocated_anew_is_young(tmp_path: Path) -> None:
    capture = Capture()
    frames = scattered(60)
    for frame in frames:
        capture.free(at(frame, 64))
    capture.pages(0x8000)
    capture.free_pages(0x8000)
    imported(capture, tmp_path, [0x8000, *frames])
    assert [row["owner"] for row in rows(tmp_path / "t.parquet") if row["kind"] == "mm_page_free"] == ["environment"]


def test_a_second_free_in_an_older_slab_proves_an_allocation(tmp_path: Path) -> None:
    """The first free is of an object older than the trace; then something was allocated there, in bulk, and freed again."""
    capture = Capture()
    frames = scattered(60)
    capture.alloc(at(frames[0]), 512, 512)
    capture.free(at(frames[0]))  # by a function that so is known
    for frame in frames:
        capture.free(at(frame, 512))
    capture.free(at(frames[1], 512))
    metadata = imported(capture, tmp_path, frames)
    seen = [row for row in rows(tmp_path / "t.parquet") if row["address"] == at(frames[1], 512)]
    assert [(row["kind"], row["origin"]) for row in seen] == [
        ("kmem_cache_free", "older"),
        ("kmem_cache_alloc", "implied"),
        ("kmem_cache_free", "recorded"),
    ]
    assert seen[1]["object"] == seen[2]["object"] != trace.NO_OBJECT and seen[1]["size"] == 512
    assert (metadata.unknown_frees, metadata.implied_allocations) == (60, 1)
    metadata = imported(capture, tmp_path, None)
    assert (metadata.unknown_frees, metadata.implied_allocations) == (61, 0), "of a capture that does not say what was a slab"


# ---- Slabs that came unseen ------------------------------------------------------------------------------------------------------


def unseen(folder: Path, shapes: str, ends: bool = False, freed_before: bool = False) -> list[tuple[str, str, int]]:
    """What is said of frames 0x8000 and 0x8001, which were no slab: kind, origin and address of each row. An object in the second one is
    freed, and another is allocated; others of the cache's are seen nowhere."""
    capture = Capture()
    frames = scattered(60)
    for frame in frames:
        capture.free(at(frame, 64))
    if freed_before:
        capture.free_pages(0x8000)
    capture.free(at(0x8001, 512), name="inodes")
    capture.alloc(at(0x8000), 1500, 1536)
    if ends:
        capture.free_pages(0x8000, order=1)
    (folder / "capture.txt").write_text("\n".join(capture.lines) + "\n")
    about = About(page_size=4096, slab_frames=np.array(frames, np.uint64), slab_shapes=shapes)
    importer.import_described(folder / "capture.txt", folder / "t.parquet", about)
    there = (at(0x8000), at(0x8000, 1536), at(0x8000, 3072), at(0x8001, 512), 0x8000, 0x8001)
    return [(row["kind"], row["origin"], row["address"]) for row in rows(folder / "t.parquet") if row["address"] in there]


SHAPES = "1500 1536 5 1 inodes\n64 64 64 0 small\n"
CAME = [
    ("mm_page_alloc", "implied", 0x8000),
    ("kmem_cache_alloc", "implied", at(0x8000, 1536)),
    ("kmem_cache_alloc", "implied", at(0x8000, 3072)),
]


def test_a_slab_that_came_unseen_was_full_but_for_what_was_allocated(tmp_path: Path) -> None:
    """Objects of a cache of which nothing else is seen: the recorder told how large they are, and where they begin."""
    found = unseen(tmp_path, SHAPES)
    assert sorted(found[:4]) == sorted([*CAME, ("kmem_cache_alloc", "implied", at(0x8001, 512))])
    assert found[0] == CAME[0]
    assert found[4:] == [("kmem_cache_free", "recorded", at(0x8001, 512)), ("kmem_cache_alloc", "recorded", at(0x8000))]
    taken = [row for row in rows(tmp_path / "t.parquet") if row["kind"] == "mm_page_alloc"]
    assert [(row["owner"], row["order"], row["time"]) for row in taken] == [("slab", 1, 1000)], "as early as it can have been"
    sizes = {row["size"] for row in rows(tmp_path / "t.parquet") if row["address"] in (at(0x8000, 1536), at(0x8001, 512))}
    assert sizes == {1500}


def test_a_slab_that_came_and_went_unseen_takes_its_objects_with_it(tmp_path: Path) -> None:
    found = unseen(tmp_path, SHAPES, ends=True)
    assert found[-1] == ("mm_page_free", "recorded", 0x8000)
    gone = {address for kind, origin, address in found if kind == "kmem_cache_free" and origin == "implied"}
    assert gone == {at(0x8000), at(0x8000, 1536), at(0x8000, 3072)}


def test_pages_that_were_freed_become_a_slab_when_it_is_seen(tmp_path: Path) -> None:
    found = unseen(tmp_path, SHAPES, freed_before=True)
    assert found[:2] == [("mm_page_free", "older", 0x8000), ("mm_page_alloc", "implied", 0x8000)]


def test_slabs_are_older_where_frames_of_some_are_missing(tmp_path: Path) -> None:
    """Then the recorder tells no shapes; nor does an object tell of what cache it is that is neither named nor sized."""
    assert unseen(tmp_path, "") == [
        ("kmem_cache_free", "older", at(0x8001, 512)),
        ("kmem_cache_alloc", "recorded", at(0x8000)),
    ]
    assert unseen(tmp_path, "64 64 64 0 small\n") == unseen(tmp_path, "")


def test_shapes_are_told_where_all_frames_are() -> None:
    lines = "slabinfo - version: 2.1\n# name\ninodes 4 10 1536 5 2 : tunables 0 0 0 : slabdata 200 200 0\n"
    start = moments.Moment("start", 0, {"slabinfo": lines}, {"inodes": {"object_size": "1500"}})

    def shapes(frames: int | None, cgroup: str = "") -> str:
        known = None if frames is None else np.arange(frames, dtype=np.uint64)
        plan = record.Plan(command=[], cgroup=cgroup)
        return importer.slab_shapes(record.Recording(Path("x"), plan, start, start, 0, False, 0.0, known))

    assert shapes(400) == shapes(396) == "1500 1536 5 1 inodes\n"
    assert shapes(395) == shapes(None) == shapes(400, cgroup="one") == ""
