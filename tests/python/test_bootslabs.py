"""Traces that begin with their kernel: the slabs that were there a moment before, and objects that a new slab proves."""

from __future__ import annotations

import itertools
import lzma
import re
from pathlib import Path
from typing import Any

import handmade
import numpy as np
import pytest

from slabyard.capture import importer, writer
from slabyard.capture.fullslabs import FullSlabs
from slabyard.capture.inputs import About
from slabyard.replay import scratch
from slabyard.replay.allocators import policies as described
from slabyard.replay.workload import Options, Workload
from slabyard.trace import file as trace

ROOT = Path(__file__).parents[2]
BASE = 0xFFFF888000000000
POLICIES = [one["name"] for one in described()]
OLD, YOUNG = 100, 200  # page frames


def at(frame: int, number: int) -> int:
    """The address of an object of 256 bytes in a slab."""
    return BASE + (frame << 12) + 256 * number


def builder(from_boot: bool = True) -> handmade.Builder:
    """Nine objects are allocated at the end of a slab that the trace never saw taken."""
    build = handmade.Builder()
    build.metadata.from_boot, build.metadata.cpus = from_boot, 1
    build.metadata.direct_map.base = hex(BASE)
    build.metadata.caches = [handmade.cache("dentry", 256, slab_size=256)]
    for number in range(9):
        build.cache_alloc(number, 0, address=at(OLD, 7 + number))
    return build


def replayed(build: handmade.Builder, path: Path, spec: str = "slub", options: Options | None = None) -> dict[str, Any]:
    with Workload(build.write(path / "t.parquet", 4), options or Options()) as workload:
        return workload.exact(spec)


def test_a_slab_that_was_there_has_its_room(tmp_path: Path) -> None:
    exact = replayed(builder(), tmp_path)
    assert (exact["older_pages"], exact["held_pages_start"], exact["held_pages_peak"], exact["held_pages_end"]) == (1, 0, 0, 0)
    assert (exact["requests"], exact["older_objects"], exact["pages_taken"]) == (9, 7, 0)
    assert sum(row["pages"] or 0 for row in exact["caches"]) == 1
    assert exact["total_fragmentation_end"] == 0  # sixteen objects in the slab


def test_no_more_than_that(tmp_path: Path) -> None:
    """The tenth object needs a slab, in the kernel and in the replay."""
    build = builder()
    build.page_alloc(50, address=YOUNG, owner="slab", migratetype=0)
    for number in range(9, 11):
        build.cache_alloc(number, 0, address=at(YOUNG, number))
    build.snapshot("mark", {})
    exact = replayed(build, tmp_path)
    assert (exact["older_pages"], exact["held_pages_peak"], exact["slab_pages_peak"], exact["snapshots"][0]["slab_pages"]) == (1, 1, 1, 1)
    assert exact["series"]["held_pages"][-1] == 1 and exact["shrink_slab_pages_left"] == 1


@pytest.mark.parametrize("policy", POLICIES)
def test_every_allocator_gets_the_same(policy: str, tmp_path: Path) -> None:
    """The same requests; and what stands beside is a part of its pages, never more."""
    exact = replayed(builder(), tmp_path, policy)
    assert (exact["requests"], exact["older_objects"], exact["failures"], exact["unknown_frees"]) == (9, 7, 0, 0)
    assert exact["older_pages"] >= 1
    for name in ("held_pages_start", "held_pages_peak", "held_pages_end", "slab_pages_end", "large_pages_end"):
        assert 0 <= exact[name] <= 64, name
    assert exact["grew_pages_end"] == exact["held_pages_end"] - exact["held_pages_start"]


@pytest.mark.parametrize("policy", POLICIES)
def test_scalars_alone_say_the_same(policy: str, tmp_path: Path) -> None:
    with Workload(builder().write(tmp_path / "t.parquet"), Options()) as workload:
        whole, alone = workload.exact(policy), workload.memory(policy)
    assert alone == {name: whole[name] for name in alone}


def test_an_older_object_leaves_its_place(tmp_path: Path) -> None:
    """Freed by the trace, it makes room for one that is allocated there."""
    build = builder()
    build.cache_free(scratch.NONE, 0, origin="older", address=at(OLD, 2))
    build.cache_alloc(9, 0, address=at(OLD, 2))
    exact = replayed(build, tmp_path)
    assert (exact["held_pages_peak"], exact["frees"], exact["unknown_frees"], exact["older_objects"]) == (0, 1, 0, 7)


def test_an_older_object_is_freed_once(tmp_path: Path) -> None:
    build = builder()
    for _ in range(2):
        build.cache_free(scratch.NONE, 0, origin="older", address=at(OLD, 2))
    exact = replayed(build, tmp_path)
    assert (exact["frees"], exact["unknown_frees"]) == (1, 1)


def test_younger_slabs_tell_how_large_older_ones_were(tmp_path: Path) -> None:
    """Two pages with 32 objects: one slab, not two."""
    build = builder()
    build.page_alloc(50, 1, address=YOUNG, owner="slab", migratetype=0)
    build.cache_alloc(9, 0, address=at(YOUNG, 31))
    build.cache_alloc(10, 0, address=at(OLD, 20))
    with Workload(build.write(tmp_path / "t.parquet"), Options()) as workload:
        header = np.frombuffer(workload.scratch.read_bytes(), scratch.SECTION, 7, 16)
        older = next(one for one in header if one["name"] == b"older")
        assert int(older["count"]) == 32 and workload.older_objects == 32 - 10


def test_what_shares_a_slab_is_in_one(tmp_path: Path) -> None:
    """A merged kernel's events name a cache or a class of kmalloc for objects of the same slab."""
    build = builder()
    build.metadata.caches[0].name = "kmalloc-256"
    build.kmalloc(20, 200, address=at(OLD, 6))
    exact = replayed(build, tmp_path, "slub:linux=6.12")
    assert (exact["older_pages"], exact["held_pages_peak"], exact["older_objects"]) == (1, 0, 6)


@pytest.mark.parametrize("why", ["not from boot", "SLOB", "given back", "no base", "threads"])
def test_without_it_memory_is_pristine(why: str, tmp_path: Path) -> None:
    build = builder(from_boot=why != "not from boot")
    build.metadata.shared_pages = why == "SLOB"
    if why == "no base":
        build.metadata.direct_map.base = None
    if why == "given back":
        build.page_free(scratch.NONE, address=OLD, owner="slab", origin="older")
    exact = replayed(build, tmp_path, options=Options(older_slabs=why != "threads"))
    assert (exact.get("older_pages", 0), exact["older_objects"], exact["held_pages_peak"]) == (0, 0, 1)


# ---- Objects that a new slab proves --------------------------------------------------------------------------------------

_TYPES = {"time": "i8", "address": "u8", "migratetype": "i1", "node": "i2"}
_ALLOC, _FREE = trace.CACHE_ALLOC, trace.CACHE_FREE


class Rows:
    """Rows as the import program writes them: slabs of 16 objects of 256 bytes."""

    def __init__(self) -> None:
        self.rows: list[dict[str, int]] = []

    def add(self, kind: int, address: int, **values: int) -> None:
        self.rows.append({"kind": kind, "address": address, "time": len(self.rows), "object": len(self.rows), **values})

    def slab(self, frame: int, kind: int = trace.PAGE_ALLOC) -> None:
        self.add(kind, frame, owner=trace.SLAB, cache=trace.NO_CACHE)

    def objects(self, frame: int, *numbers: int, kind: int = _ALLOC, cache: int = 0) -> None:
        for number in numbers:
            self.add(kind, at(frame, number), size=250, allocated=256, cache=cache)

    def numbers(self) -> list[tuple[int, int]]:
        """Kind and number of the object of each implied event."""
        rows = self.rewritten(None)
        return [(kind, number) for kind, number, origin in zip(*(rows[one].tolist() for one in ("kind", "object", "origin")), strict=True)
                if origin == trace.IMPLIED]  # fmt: skip

    def implied(self, split: int | None = None) -> list[tuple[int, int, int, int]]:
        """Kind, page frame and number in it of what is implied, and the kind of the row behind it. Rows come in blocks of `split`."""
        out = self.rewritten(split)
        found = np.flatnonzero(out["origin"] == trace.IMPLIED)
        place = out["address"].astype(np.int64) - (BASE - (1 << 64) if BASE >= 1 << 63 else BASE)
        return [(int(out["kind"][i]), int(place[i] >> 12), int(place[i] & 4095) // 256, int(out["kind"][i + 1])) for i in found]

    def rewritten(self, split: int | None) -> dict[str, np.ndarray]:
        """The rows with what they imply."""
        full = FullSlabs(["dentry", "inode"], [""], BASE, 12, 1000)
        names = ("kind", "address", "time", "object", "size", "allocated", "cache", "owner", "origin", "order", "migratetype", "node",
                 "cpu", "gfp_flags", "accounted", "call_site", "stack", "task")  # fmt: skip
        whole = {name: np.array([row.get(name, 0) for row in self.rows], _TYPES.get(name, "u4")) for name in names}
        split = split or len(self.rows)
        blocks = [full.take({name: column[i : i + split] for name, column in whole.items()}) for i in range(0, len(self.rows), split)]
        out = {name: np.concatenate([block[name] for block in blocks]) for name in names}
        found = np.flatnonzero(out["origin"] == trace.IMPLIED)
        assert full.allocations + full.frees == len(found) and (out["object"][found] >= 1000).all()
        return out


def used(*missing: int) -> Rows:
    """A slab in which objects were seen at all places but the missing; of an older, full slab all places are known."""
    rows = Rows()
    rows.slab(1)
    rows.objects(1, *range(16))
    rows.slab(2)
    rows.objects(2, *(number for number in range(16) if number not in missing))
    return rows


@pytest.mark.parametrize("split", [None, 1, 5])
def test_a_new_slab_proves_that_the_others_were_full(split: int | None) -> None:
    rows = used(3, 7)
    rows.slab(3)
    rows.objects(3, 0)
    behind = trace.PAGE_ALLOC if split is None else _ALLOC
    found = rows.implied(split)
    assert [one[:3] for one in found] == [(_ALLOC, 2, 3), (_ALLOC, 2, 7)] and found[-1][3] in (behind, trace.PAGE_ALLOC)


def test_what_was_freed_and_not_seen_again_was_used_too() -> None:
    rows = used()
    rows.objects(1, 5, kind=_FREE)
    rows.slab(3)
    rows.objects(3, 0)
    assert [one[:3] for one in rows.implied()] == [(_ALLOC, 1, 5)]


def test_it_ends_where_its_address_is_used_again_or_its_slab_goes() -> None:
    rows = used(3, 7)
    rows.slab(3)
    rows.objects(3, 0)
    rows.objects(2, 3)
    rows.slab(2, trace.PAGE_FREE)
    assert [one[:3] + one[3:] for one in rows.implied()][2:] == [(_FREE, 2, 3, _ALLOC), (_FREE, 2, 7, trace.PAGE_FREE)]


def test_an_event_that_frees_it_ends_it() -> None:
    """The import program found no allocation for that free, so it frees nothing in a replay."""
    rows = used(3)
    rows.slab(3)
    rows.objects(3, 0)
    rows.objects(2, 3, kind=_FREE)
    assert rows.implied()[1:] == [(_FREE, 2, 3, _FREE)]


def test_a_number_is_of_one_object_at_a_time() -> None:
    """An implied allocation goes before the new slab's pages, so it cannot have the number of an object that ends behind these."""
    rows = used(3, 7)
    rows.slab(3)
    rows.objects(3, 0)
    rows.slab(4)
    rows.objects(2, 3)
    rows.objects(4, 0)
    rows.objects(1, 9, kind=_FREE)
    rows.objects(2, 3, kind=_FREE)
    rows.slab(5)
    rows.objects(5, 0)
    lives: set[int] = set()
    for kind, number in rows.numbers():
        assert (number in lives) == (kind == _FREE)
        (lives.remove if kind == _FREE else lives.add)(number)
    assert len(lives) > 1


def test_what_is_no_proof_of_full_slabs() -> None:
    rows = used(3)
    rows.objects(1, *range(16), kind=_FREE)  # may wait for a grace period
    rows.slab(3)
    rows.objects(2, 4, kind=_FREE)  # since the new slab's pages came
    rows.objects(3, 0, cache=1)  # and it is of another cache
    assert rows.implied() == []
    rows.slab(4)
    rows.objects(2, 5, kind=_FREE)
    rows.objects(4, 0)
    assert [one[:3] for one in rows.implied()] == [(_ALLOC, 2, 3), (_ALLOC, 2, 4)]


@pytest.mark.parametrize("uptime", [0, 100])
def test_a_capture_from_boot_tells_it_by_its_clock(uptime: int, tmp_path: Path) -> None:
    """Of a real kernel's first 20,000 lines, as they are and as of a machine that had run for a while."""
    with lzma.open(ROOT / "tests/data/linux-6.12-um-slub/hackbench/trace.txt.xz", "rt") as text:
        lines = list(itertools.islice(text, 20_000))
    later = re.compile(r"(?<= )(\d+)(?=\.\d{6}: )")
    (tmp_path / "t.txt").write_text("".join(later.sub(lambda found: str(int(found[1]) + uptime), line, count=1) for line in lines))
    metadata = importer.import_trace(tmp_path / "t.txt", tmp_path / "t.parquet")
    assert metadata.direct_map.explained > metadata.direct_map.older > 0
    assert metadata.from_boot == (uptime == 0)


HEADER = {
    "from_boot": True, "base": hex(BASE), "explained": 9, "older": 2, "shared_pages": False, "cpus": 1, "nodes": 1, "gfp": [],
    "page_size": 4096, "numbers": 5,
}  # fmt: skip


@pytest.mark.parametrize(
    "other",
    [{"from_boot": False}, {"base": None}, {"explained": 2}, {"shared_pages": True}, {"cpus": 2}, {"nodes": 2}],
    ids=lambda one: next(iter(one)),
)
def test_which_traces_prove_it(other: dict[str, Any]) -> None:
    assert writer._full_slabs(HEADER, About(capture=""), []) is not None
    assert writer._full_slabs({**HEADER, **other}, About(capture=""), []) is None
    assert writer._from_boot({**HEADER, **other}) == (not {"shared_pages", "cpus", "nodes"}.isdisjoint(other))
