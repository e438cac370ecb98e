"""Who holds memory in a trace: against a plain model, event by event; what is pinned; what `info` prints of it."""

from __future__ import annotations

import collections
import csv
import io
import json
import random
import time
from pathlib import Path

import pytest

from handmade import Builder, cache, complaint, slabyard
from slabyard.attribution import export, pinned, usage
from slabyard.base.errors import UserError
from slabyard.trace.snapshots import kmalloc_name
from slabyard.trace.file import Trace

ROOT = Path(__file__).parents[2]
BASE = 0xFFFF888000000000
CACHES = [cache("dentry", 192, slab_size=192), cache("inode", 600, slab_size=640)]


def drawn(seed: int, events: int = 600) -> Builder:
    """Random allocations and frees of kmallocs and caches from some call sites, numbers reused, a mark in the middle."""
    draw = random.Random(seed)
    builder = Builder()
    builder.metadata.caches = list(CACHES)
    live: dict[int, int] = {}  # number: cache or -1
    for at in range(events):
        if at == events // 2:
            builder.snapshot("middle", {})
        site = f"function_{draw.randrange(5)}+0x10" + (" [ext4]" if draw.random() < 0.3 else "")
        if draw.random() < 0.1:
            builder.row("kmem_cache_free", origin="older", cache=draw.choice([0, 1, 0xFFFF]), call_site="someone_else+0x1")
        elif live and draw.random() < 0.45:
            number = draw.choice(sorted(live))
            kind = live.pop(number)
            made = {-1: max(8, 1 << (builder.sizes.get(number, 1) - 1).bit_length()), 0: 192, 1: 600}[kind]
            if kind < 0:
                builder.kfree(number, allocated=made, call_site="other_function+0x5")
            else:
                builder.cache_free(number, kind, allocated=made)
        else:
            number = next(one for one in range(10_000) if one not in live)
            live[number] = draw.randrange(-1, 2)
            if live[number] < 0:
                builder.kmalloc(number, draw.randrange(1, 500), call_site=site)
            else:
                builder.cache_alloc(number, live[number], call_site=site)
    return builder


def model(rows: list[dict], by: str, first: int, last: int) -> dict[str, dict[str, int]]:
    """The same figures, one event after another."""
    found: dict[str, dict[str, int]] = collections.defaultdict(lambda: dict.fromkeys(usage.FIGURES, 0))
    owner: dict[int, str] = {}
    names = {0: "dentry", 1: "inode"}
    for place, row in enumerate(rows[:last]):
        if row["kind"] == "snapshot":
            if place == first:
                for one in found.values():
                    one["peak_bytes"] = one["live_bytes"]
            continue
        older = row["origin"] == "older"
        freed = "free" in row["kind"]
        if freed and not older:
            key = owner.pop(row["object"])
        elif by == "call_site":
            key = usage.OLDER_NAME if older else row["call_site"]
        else:
            key = names.get(row["cache"], usage.UNKNOWN_CACHE if older else kmalloc_name(row["allocated"]))
        if not freed:
            owner[row["object"]] = key
        one, sign = found[key], -1 if freed else 1
        if place >= first:
            one["frees" if freed else "allocations"] += 1
            one["allocated_bytes"] += 0 if freed else row["allocated"]
            one["growth_objects"] += sign
            one["growth_bytes"] += sign * ({0: 192, 1: 640}.get(row["cache"], 0) if older else row["allocated"])
        if not older:
            one["live_objects"] += sign
            one["live_bytes"] += sign * row["allocated"]
            one["requested_bytes"] += sign * row["size"]
            if place >= first:
                one["peak_bytes"] = max(one["peak_bytes"], one["live_bytes"])
    return {key: one for key, one in found.items() if any(one.values())}


@pytest.mark.parametrize("by", ["cache", "call_site"])
@pytest.mark.parametrize("part", ["whole", "first", "second"])
@pytest.mark.parametrize("seed", range(4))
def test_usage_is_that_of_a_model(seed: int, part: str, by: str, tmp_path: Path) -> None:
    builder = drawn(seed)
    path = builder.write(tmp_path / "t.parquet", 37)
    middle = next(place for place, row in enumerate(builder.rows) if row["kind"] == "snapshot")
    all_rows = len(builder.rows)
    since, until, first, last = {
        "whole": (None, None, 0, all_rows), "first": (None, "middle", 0, middle), "second": ("middle", None, middle, all_rows),
    }[part]  # fmt: skip
    with Trace(path) as trace:
        found = usage.usage(trace, [by], usage.window_of(trace, since, until))
    shown = {row[by]: {name: row[name] for name in usage.FIGURES} for row in found.to_pylist()}
    assert shown == model(builder.rows, by, first, last)
    assert found["live_bytes"].to_pylist() == sorted(found["live_bytes"].to_pylist(), reverse=True)
    if by == "call_site":
        assert {row["module"] for row in found.to_pylist()} == {"ext4", ""}


def test_caches_without_a_name_are_told_by_their_size(tmp_path: Path) -> None:
    builder = Builder()
    builder.metadata.caches = [cache("", 24), cache("", 40)]
    for number in range(5):
        builder.cache_alloc(number, number % 2)
    with Trace(builder.write(tmp_path / "t.parquet")) as trace:
        held = {row["cache"]: row["live_bytes"] for row in usage.usage(trace).to_pylist()}
        _, curves = export.curves(trace, usage.window_of(trace, None, None))
    assert held == {"(unnamed, 24 bytes)": 72, "(unnamed, 40 bytes)": 80}
    assert {name: int(one[-1]) for name, one in curves.items()} == {**held, "": 152}


def test_two_dimensions_add_up_to_one(tmp_path: Path) -> None:
    with Trace(drawn(9).write(tmp_path / "t.parquet", 50)) as trace:
        both, one = usage.usage(trace, ["cache", "call_site"]), usage.usage(trace, ["call_site"])
    summed = both.group_by("call_site").aggregate([(name, "sum") for name in ("live_bytes", "allocations", "growth_bytes")])
    assert {row["call_site"]: row["live_bytes_sum"] for row in summed.to_pylist()} == dict(
        zip(one["call_site"].to_pylist(), one["live_bytes"].to_pylist(), strict=True)
    )


def test_moments(tmp_path: Path) -> None:
    builder = drawn(3)
    builder.page_alloc(20_000, owner="slab")
    builder.page_free(20_000, owner="slab")
    with Trace(builder.write(tmp_path / "t.parquet", 41)) as trace:
        at = usage.window_of(trace, "0.0000105", "peak")
        assert (at.first, at.since) == (11, 10_500)  # events are a microsecond apart
        assert at.last == len(builder.rows) - 1 and at.until == builder.rows[-2]["time"]
        for since, until in (("peak", "0.1e3"), ("nowhere", None), ("0.0005", "middle")):
            with pytest.raises(Exception, match=r"is not a time|later than"):
                usage.window_of(trace, since, until)


def test_moments_lie_within_the_trace(tmp_path: Path) -> None:
    path = drawn(3).write(tmp_path / "t.parquet", 41)
    with Trace(path) as trace:
        assert trace.metadata.span_seconds < 0.001
        whole = usage.window_of(trace, None, None)
        assert usage.window_of(trace, None, "0.001") == whole, "the end as it is shown"
        for since, until in (("99999", None), (None, "0.002"), ("5", "4")):
            with pytest.raises(UserError, match=rf"^{since or until} is after the trace's end \(0\.001 s\)"):
                usage.window_of(trace, since, until)
        with pytest.raises(UserError, match="later than"):
            usage.window_of(trace, "0.0000109", "0.0000108")
    for words in (["info", path, "--caches"], ["export", path, "--format", "folded", "-o", tmp_path / "f"]):
        assert "after the trace's end" in complaint(slabyard(*words, "--from", "99999"), 2)
    assert not (tmp_path / "f").exists()


def pinning(path: Path, **values: object) -> Path:
    """Three slabs: one with an object of a, one with one of a and one of b, one full. And an object in a page older than the
    trace."""
    builder = Builder()
    builder.metadata.caches = [cache("big", 2048, slab_size=2048)]
    builder.metadata.direct_map.base = hex(BASE)
    builder.metadata.events["mm_page_alloc"] = 0
    for name, value in values.items():
        setattr(builder.metadata.direct_map, name, value)
    for frame in (16, 32, 48):
        builder.page_alloc(frame, 1, address=frame, owner="slab")
    builder.page_alloc(64, 0, address=64, owner="slab")
    placed = [(1, 16, "a"), (2, 32, "a"), (3, 32, "b"), (4, 48, "a"), (5, 48, "a"), (6, 48, "b"), (7, 48, "b"), (8, 99, "b"), (9, 16, "b")]
    room: dict[int, int] = {}
    for number, frame, site in placed:
        at = BASE + frame * 4096 + room.get(frame, 0) * 2048
        room[frame] = room.get(frame, 0) + 1
        builder.cache_alloc(number, 0, call_site=site, address=at)
    builder.cache_free(9, 0, allocated=2048)
    return builder.write(path, 4)


def test_pinned(tmp_path: Path) -> None:
    with Trace(pinning(tmp_path / "t.parquet")) as trace:
        found = pinned.pinned(trace, ["call_site"], usage.window_of(trace, None, None))
        early = pinned.pinned(trace, ["call_site"], usage.Window(0, 6, 0, 0))
    rows = {row["call_site"]: row for row in found.table.to_pylist()}
    assert rows["a"] == {
        "call_site": "a", "module": "", "objects": 4, "object_bytes": 8192, "slabs": 3, "held_pages": 4.0, "alone_pages": 2,
        "pinned_bytes": 6144 + 2048,
    }  # fmt: skip
    assert (rows["b"]["objects"], rows["b"]["held_pages"], rows["b"]["alone_pages"], rows["b"]["pinned_bytes"]) == (3, 2.0, 0, 2048)
    assert (found.slabs, found.slab_bytes, found.object_bytes, found.empty_slabs, found.outside) == (3, 24576, 7 * 2048, 1, 1)
    assert [row["objects"] for row in early.table.to_pylist()] == [2]


def test_pinned_needs_addresses(tmp_path: Path) -> None:
    path = pinning(tmp_path / "t.parquet", base=None, hashed=True)
    assert "its pointers are hashed" in complaint(slabyard("info", path, "--pinned"), 2)


def test_info_shows_who(tmp_path: Path) -> None:
    path = drawn(5).write(tmp_path / "t.parquet")
    text = slabyard("info", path, "--caches", "--call-sites", "--lines", "3").stdout
    assert "kmalloc-512" in text and "function_" in text and " more; --lines N" in text and max(map(len, text.splitlines())) <= 100
    found = json.loads(slabyard("info", path, "--caches", "--from", "middle", "--sort", "growth", "--format", "json").stdout)
    growth = [row["growth_bytes"] for row in found["caches"]]
    assert growth == sorted(growth, reverse=True) and not found["whole"] and found["from"] > 0
    rows = list(csv.DictReader(io.StringIO(slabyard("info", path, "--call-sites", "--format", "csv").stdout)))
    assert len(rows) > 5 and {"call_site", "module", "live_bytes"} <= set(rows[0])
    assert "t.parquet: has no column task" in complaint(slabyard("info", path, "--tasks"), 2)
    (tmp_path / "slabinfo").write_text("slabinfo - version: 2.1\nx 1 1 8 512 1 : tunables 0 0 0 : slabdata 1 1 0\n")
    assert "a dump tells nothing of" in complaint(slabyard("info", tmp_path / "slabinfo", "--pinned"), 2)
    assert "--from goes with" in complaint(slabyard("info", path, "--from", "middle"), 2)
    assert "marks of this trace are middle" in complaint(slabyard("info", path, "--caches", "--to", "end"), 2)


def test_a_bundled_trace_says_what_it_holds() -> None:
    with Trace(ROOT / "traces" / "spike.parquet") as trace:
        began = time.process_time()
        found = {row["cache"]: row for row in usage.usage(trace).to_pylist()}
        assert time.process_time() - began < 20
        events = trace.metadata.events
        assert sum(row["allocations"] for row in found.values()) == events["kmalloc"] + events["kmem_cache_alloc"]
        at_peak = pinned.pinned(trace, ["cache"], usage.window_of(trace, None, "peak"))
    assert found["task_struct"]["allocations"] == 256 and at_peak.slab_bytes > 3 << 20
