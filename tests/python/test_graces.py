"""Grace periods as the trace shows them, and replays that wait for the same time."""

from __future__ import annotations

from pathlib import Path

import handmade
from slabyard.replay import scratch
from slabyard.replay.graces import Graces
from slabyard.replay.workload import Options, Workload
from slabyard.trace.file import KINDS, Trace, codes

BASE = 0xFFFF888000000000
MS = 1_000_000


def builder(**values: bool) -> handmade.Builder:
    build = handmade.Builder()
    build.metadata.cpus = 1
    build.metadata.kernel = "6.18.0"
    build.metadata.direct_map.base = hex(BASE)
    build.metadata.caches = [handmade.cache("sighand_cache", 2048, **values), handmade.cache("dentry", 2048)]
    return build


def slab_goes(build: handmade.Builder, frame: int, emptied: int, went: int, cache: int = 0) -> list[tuple[int, str, dict[str, int]]]:
    """A slab whose last object is freed at one time, and its pages at another, in ns."""
    address = BASE + (frame << 12) + 2048
    return [
        (emptied - 1000, "free", {"address": address - 2048, "cache": cache}), (emptied, "free", {"address": address, "cache": cache}),
        (went, "page", {"address": frame}),
    ]  # fmt: skip


def add(build: handmade.Builder, events: list[tuple[int, str, dict[str, int]]]) -> None:
    """Adds them in order of time."""
    for time, kind, values in sorted(events, key=lambda one: one[0]):
        build.now = time
        if kind == "page":
            build.page_free(scratch.NONE, origin="older", owner="slab", **values)
        else:
            build.cache_free(scratch.NONE, values["cache"], origin="older", address=values["address"])


def table(path: Path, build: handmade.Builder, events: list[tuple[int, str, dict[str, int]]], group: int) -> list[tuple[int, int]]:
    add(build, events)
    with Trace(build.write(path, group)) as trace:
        graces = Graces(trace.metadata)
        for batch in trace.batches():
            graces.take(batch, codes(batch["kind"], KINDS))
    return [(int(one["begins_ns"]), int(one["ends_ns"])) for one in graces.table()]


def test_what_the_trace_shows(tmp_path: Path) -> None:
    """The second slab waited longer than the third, which became empty later: so it waited for something else as well."""
    for group in (1, 4, 100):
        build = builder(typesafe_by_rcu=True)
        events = [
            *slab_goes(build, 100, 1 * MS, 9 * MS), *slab_goes(build, 200, 2 * MS, 40 * MS), *slab_goes(build, 300, 12 * MS, 22 * MS),
            *slab_goes(build, 400, 13 * MS, 22 * MS), *slab_goes(build, 500, 14 * MS, 14 * MS + 1, cache=1),
        ]  # fmt: skip
        assert table(tmp_path / f"{group}.parquet", build, events, group) == [(1 * MS, 9 * MS), (13 * MS, 22 * MS)]


def longest(path: Path, waits: list[int]) -> int:
    """Microseconds, after slabs that each waited for one of these times in ms."""
    build = builder(typesafe_by_rcu=True)
    events = [
        event for number, wait in enumerate(waits) for event in slab_goes(build, 100 + number, (number + 1) * MS, (number + 1 + wait) * MS)
    ]
    add(build, events)
    with Workload(build.write(path), Options(start="empty")) as workload:
        return workload.translation.traffic.longest_wait_us


def test_the_longest_wait_goes_by_the_usual_one(tmp_path: Path) -> None:
    """A busy machine's grace periods are longer; a slab that waited on a CPU's list as well says nothing."""
    assert longest(tmp_path / "none.parquet", []) == 0
    assert longest(tmp_path / "quiet.parquet", [4, 5, 900]) == 30_000
    assert longest(tmp_path / "busy.parquet", [50, 60, 60, 900]) == 180_000


def test_other_caches_show_nothing(tmp_path: Path) -> None:
    build = builder()
    assert table(tmp_path / "t.parquet", build, slab_goes(build, 100, MS, 2 * MS), 100) == []


def held(path: Path, spec: str) -> list[int]:
    """Pages at two snapshots, 14 and 21 ms after 40 slabs of the cache became empty. In the trace they went after 18 ms."""
    build = builder(typesafe_by_rcu=True)
    for number in range(80):
        build.cache_alloc(number, 0, address=BASE + (100 << 12) + 2048 * number)
    build.now = 10 * MS
    for number in range(80):
        build.cache_free(number, 0, address=BASE + (100 << 12) + 2048 * number)
    build.now = 24 * MS
    build.snapshot("soon", {})
    build.now = 28 * MS
    for frame in range(40):
        build.page_free(scratch.NONE, address=100 + frame, origin="older", owner="slab")
    build.now = 31 * MS
    build.snapshot("later", {})
    with Workload(build.write(path), Options(start="empty")) as workload:
        exact = workload.exact(spec)
    return [one["slab_pages"] for one in exact["snapshots"]]


def test_a_busy_machine_waits_longer(tmp_path: Path) -> None:
    """Slabs whose end the trace does not show wait three times as long as the others: here until 160 ms and more."""
    build = builder(typesafe_by_rcu=True)
    frees = [event for number in range(9) for event in slab_goes(build, 300 + number, number * MS + 2000, (number + 50) * MS)]
    add(build, frees)
    for number in range(80):
        build.cache_alloc(number, 0, address=BASE + (100 << 12) + 2048 * number)
    build.now = 60 * MS
    for number in range(80):
        build.cache_free(number, 0, address=BASE + (100 << 12) + 2048 * number)
    for time, name in ((190, "soon"), (230, "later")):
        build.now = time * MS
        build.snapshot(name, {})
    with Workload(build.write(tmp_path / "t.parquet"), Options(start="empty")) as workload:
        soon, later = (one["slab_pages"] for one in workload.exact("slub:cpu_partial=0,min_partial=0")["snapshots"])
    assert soon >= 40 > later


def test_a_replay_by_the_same_rules_waits_as_long(tmp_path: Path) -> None:
    soon, later = held(tmp_path / "t.parquet", "slub:cpu_partial=0,min_partial=0")
    assert soon >= 40 > later
    soon, later = held(tmp_path / "t.parquet", "slub:linux=6.12,cpu_partial=0,min_partial=0")
    assert soon < 40 and later < 40, "by other rules 10 ms have passed"
