"""Import of a recording that says which page frames were slabs when it began."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from slabyard.capture import importer
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
