"""Garcarz's figures: how a guest's output is read, and the rules by which his sentences hold, on data made by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from slabyard.base.errors import UserError
from slabyard.base.terminal import Progress
from slabyard.kernels import sysbench
from slabyard.study import garcarz, garcarz_runs
from slabyard.study.model import IN_PART, NOT, Data, Item, Outcome
from slabyard.study.work import Work

MEMORY = """sysbench 1.0.20 (using system LuaJIT 2.1.0-beta3)
600.00 MiB transferred (5666.47 MiB/sec)
General statistics:
    total time:                          0.1059s
    total number of events:              614400
"""
FILES = """Throughput:
    read, MiB/s:                  12.25
    written, MiB/s:               8.50
General statistics:
    total time:                          3.4001s
    total number of events:              10000
"""
BUDDYINFO = """Node 0, zone    DMA32      1      2      0      0      0      0      0      0      0      0      1
Node 0, zone   Normal      3      0      0      0      0      0      0      0      0      0      0
Node 1, zone   Normal      1      1      0      0      0      0      0      0      0      0      0
"""


def test_the_run_stage_is_read() -> None:
    assert sysbench.stage(MEMORY) == sysbench.Stage(0.1059, 5666.47, 614400)
    assert sysbench.stage(FILES) == sysbench.Stage(3.4001, 20.75, 10000)
    assert sysbench.stage(MEMORY + "sysbench 1.0.20\n" + FILES) == sysbench.stage(FILES), "of several the last"
    with pytest.raises(UserError, match="nothing of a run stage"):
        sysbench.stage("FATAL: no such test")


def test_zones_and_what_is_free_in_them() -> None:
    found = garcarz_runs.zones(BUDDYINFO)
    assert found["Normal"][:3] == [4, 1, 0] and found["DMA32"][10] == 1
    assert garcarz_runs.free_mb(found, "DMA32") == (1 + 4 + 1024) / 256 and garcarz_runs.free_mb(found) == (1 + 4 + 1024 + 6) / 256
    boot = {"before": found, "after": {**found, "Normal": [0] * 11}}
    assert garcarz_runs.consumed_mb(boot) == garcarz_runs.consumed_mb(boot, "Normal") == 6 / 256
    assert (garcarz_runs.fragments(boot, "before"), garcarz_runs.fragments(boot, "after", "Normal")) == (4 + 5, 0)


def item(name: str) -> Item:
    return next(one for one in garcarz.ITEMS if one.name == name)


def boot(seconds: float, lost: dict[str, int], blocks: int = 100, events: int = 0) -> dict[str, Any]:
    """`lost`: pages by zone; `blocks`: free ones of a page each that are there afterwards, and 50 before."""
    before = {zone: [50, *[0] * 9, 100] for zone in lost}
    after = {zone: [blocks, *[0] * 8, 0, 100] for zone in lost}
    for zone, pages in lost.items():
        before[zone][0] = blocks + pages
    return {
        "seconds": seconds, "bandwidth": 100 / seconds, "kernel_share": 0.25, "before": before, "after": after, "events": events,
        "events_boot": events, "trouble": [],
    }  # fmt: skip


def boots(times: dict[str, list[float]], zones: tuple[str, ...] = ("DMA",), **more: Any) -> garcarz_runs.Boots:
    return {spec: [boot(one, dict.fromkeys(zones, 512), **more) for one in mine] for spec, mine in times.items()}


def judged(name: str, data: Data) -> Outcome:
    return item(name).judge(data)


def holding(outcome: Outcome) -> list[bool | None]:
    return [claim.holds for claim in outcome.claims]


def counts(seconds: dict[str, float]) -> garcarz_runs.Counts:
    return {spec: {"seconds": one, "calls": 10, "instructions": 20, "kernel": 1000} for spec, one in seconds.items()}


HIS = {"slob": [38.0, 38.2], "slab": [40.0, 40.4], "slub": [40.2, 40.8], "slabyard:yard": [39.0, 39.0]}


def test_his_times_hold_and_others_do_not() -> None:
    clocked = {"slob": 38.0, "slab": 40.0, "slub": 40.4, "slabyard:yard": 39.0}
    found = judged("figure1", {"arm64 memory": boots(HIS), "arm64 memory counted": counts(clocked)})
    assert holding(found) == [True, True, True, None] and found.verdict == IN_PART
    behind = dict(found.sheets[2].rows)["slub behind slab, time, s"]
    assert (behind.printed, behind.ours) == ("about 0.4", pytest.approx(0.4))
    assert next(figure for name, figure in found.sheets[0].rows if name == "slabyard:yard").paper is None
    equal = dict.fromkeys(clocked, 40.0)
    times = {spec: [1.0, 2.0] for spec in HIS}
    found = judged("figure1", {"arm64 memory": boots(times), "arm64 memory counted": counts(equal)})
    assert holding(found) == [False, False, None, None] and found.verdict == NOT
    single = judged("figure1", {"arm64 memory": boots({spec: [1.0] for spec in HIS}), "arm64 memory counted": counts(equal)})
    assert holding(single) == [False, False, None, None], "one boot has no window"
    assert "0% apart" in found.claims[0].because
    times = {"slob": [50.0, 51.0], "slab": [40.0, 41.0], "slub": [60.0, 61.0]}
    found = judged("figure1", {"arm64 memory": boots(times), "arm64 memory counted": counts(equal)})
    assert holding(found)[2] is False


def test_what_the_kernel_executes_is_beside_the_times_of_x86() -> None:
    clocked = {"slob": 27.01, "slab": 27.107, "slub": 27.1056}
    times = {"slob": [27.0, 27.02], "slab": [27.08, 27.12], "slub": [26.9, 27.3]}
    data = {"x86 memory": boots(times, ("DMA32", "Normal")), "x86 memory counted": counts(clocked)}
    found = judged("figure4", data)
    assert holding(found) == [True, True, None, None]
    assert [figure.printed for name, figure in found.sheets[0].rows if name == "slab"] == ["27.10694"]
    executed = found.sheets[-1].table
    assert executed is not None and executed.rows[0] == ["slob", 27010.0, 2e-05, pytest.approx(0.00098), 2.0]


def test_his_differences_of_figure_5() -> None:
    data = {
        "x86 fileio": boots({spec: [1.0, 2.0] for spec in HIS}, ("DMA32", "Normal")),
        "x86 fileio counted": counts(dict.fromkeys(HIS, 1.0)),
    }
    printed = [figure.printed for _, figure in judged("figure5", data).sheets[2].rows]
    assert printed == ["almost 0.2", "0.01", "almost 1", "0.3"]


def consumption(lost: dict[str, dict[str, int]]) -> garcarz_runs.Boots:
    return {spec: [boot(1.0, zones), boot(1.1, zones)] for spec, zones in lost.items()}


def test_memory_that_was_consumed() -> None:
    memory = consumption({spec: {"DMA": pages} for spec, pages in (("slub", 256), ("slab", 512), ("slob", 768))})
    fileio = consumption({spec: {"DMA": pages} for spec, pages in (("slab", 256), ("slob", 1024), ("slub", 1100))})
    found = judged("figure3", {"arm64 memory": memory, "arm64 fileio": fileio})
    assert holding(found) == [True, True, True] and found.sheets[0].rows[0][1].ours == 1
    assert holding(judged("figure3", {"arm64 memory": fileio, "arm64 fileio": memory})) == [False, False, False]


def test_zones_of_x86() -> None:
    one = consumption({spec: {"DMA32": 0, "Normal": pages} for spec, pages in (("slab", 256), ("slub", 512), ("slob", 768))})
    data = {"x86 memory": one, "x86 fileio": one, "small Normal": {"64": {"DMA32": 3.0, "Normal": 1.0}}}
    found = judged("figure6", data)
    assert holding(found) == [True, False, None, True, False]
    assert "with 64 MB of Normal, DMA32 lost 3 MB" in found.claims[-1].because


def fragments(blocks: dict[str, int], zones: tuple[str, ...], lost: int = 0) -> garcarz_runs.Boots:
    return {spec: [boot(1.0, dict.fromkeys(zones, lost), count)] * 2 for spec, count in blocks.items()}


@pytest.mark.parametrize(("name", "key", "zones"), [("figure8", "arm64 fileio", ("DMA",)), ("figure10", "x86 fileio", ("DMA32", "Normal"))])
def test_fragments_that_remain(name: str, key: str, zones: tuple[str, ...]) -> None:
    assert holding(judged(name, {key: fragments({"slab": 300, "slub": 200, "slob": 100}, zones, lost=1)})) == [True]
    assert holding(judged(name, {key: fragments({"slab": 300, "slub": 200, "slob": 100}, zones)})) == [None], "untouched"
    found = judged(name, {key: fragments({"slab": 100, "slub": 200, "slob": 300}, zones, lost=1)})
    assert holding(found) == [False] and len(found.pictures) == 4 * len(zones) and "slob 400" in found.claims[0].because
    by_order = found.sheets[1].table
    assert by_order is not None and [row[0] for row in by_order.rows] == [*map(str, range(11)), "all"]
    assert by_order.rows[0][1:] == [100, 200, 300] and by_order.rows[10][1:] == [100, 100, 100]


def test_the_boot_that_he_left_out() -> None:
    mine = fragments({"slab": 300, "slub": 200, "slob": 100}, ("DMA",))
    mine["slub"] = [boot(1.0, {"DMA": 0}, blocks) for blocks in (200, 202, 900, 204, 206)]
    rows = dict(judged("figure8", {"arm64 fileio": mine}).sheets[-1].rows)
    assert (rows["all boots"].ours, rows["without the third"].ours) == (442.4, 303)


def test_fragments_that_stay_the_same() -> None:
    found = judged("figure9", {"x86 memory": fragments({"slab": 200, "slub": 300, "slob": 100}, ("DMA32", "Normal"), lost=1)})
    assert holding(found) == [True, True]
    found = judged("figure9", {"x86 memory": fragments({"slab": 200, "slub": 300, "slob": 100}, ("DMA32", "Normal"), lost=50)})
    assert holding(found) == [True, False]


def ranked(order: dict[str, tuple[str, ...]], width: float) -> Data:
    found: Data = {}
    for (system, quantity, mode), paper in garcarz._RANKS.items():
        names = order.get(quantity, paper)
        found[f"{system}, {quantity}, {mode}"] = {name.rstrip("*"): [10.0 + at, 10.0 + at + width] for at, name in enumerate(names)}
        if quantity == "time":
            found[f"{system}, clock, {mode}"] = {name.rstrip("*"): [10.0 + at] for at, name in enumerate(names)}
    return found


def test_the_table_of_ranks() -> None:
    data = ranked({}, 0.5)
    found = judged("figure11", data)
    assert holding(found) == [True, True, True, True, True, True, True, False]
    assert all(figure.paper == figure.ours for _, figure in found.sheets[0].rows)
    assert "of his 12 rows 12 come out" in found.claims[6].because
    his, ours = columns(found)
    assert his == [", ".join(paper) for paper in garcarz._RANKS.values()] and not any("*" in cell for cell in ours)
    overlapping = judged("figure11", ranked({}, 3.0))
    assert holding(overlapping) == [True, True, True, None, None, None, True, True]
    assert all(cell.count("*") == 3 for cell in columns(overlapping)[1])
    apart = judged("figure11", ranked({"time": ("slub", "slob", "slab")}, 0.5))
    assert holding(apart) == [False, False, False, True, True, True, True, False]
    data["arm64, clock, memory"] = {spec: [10.0] for spec in garcarz.STOCK}
    equal = judged("figure11", data)
    assert not holding(equal)[0] and "11 come out, 1 come out otherwise" in equal.claims[6].because, "nobody is ahead among equals"
    assert [figure.ours for _, figure in equal.sheets[0].rows[:3]] == [1, 1, 1] and "=slob" in columns(equal)[1][0]


def columns(found: Outcome) -> tuple[list[Any], list[Any]]:
    """His column and ours."""
    table = found.sheets[0].table
    assert table is not None and not found.sheets[0].ratios
    return [row[1] for row in table.rows], [row[2] for row in table.rows]


def test_a_quick_run_counts_none_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    done = SimpleNamespace(texts={"output": MEMORY}, cost={"operations": 4, "instructions": 5.0, "kernel": {"instructions": 100}})
    monkeypatch.setattr(garcarz_runs, "_shared", lambda work, name, measure: measure())
    monkeypatch.setattr(garcarz_runs, "_plan", lambda chosen, system, mode, spec: spec)
    monkeypatch.setattr(garcarz_runs.run, "count", lambda plan, hardware: done)
    counted = {
        (quick, system): [*garcarz_runs.counted(Work(quick, Progress(0, quiet=True)), system, "memory")]
        for quick in (True, False)
        for system in garcarz_runs.SYSTEMS
    }
    assert counted[True, "arm64"] == counted[True, "x86"] == ["slab", "slub", "slob"]
    assert counted[False, "arm64"] == counted[False, "x86"] == ["slab", "slub", "slob", "slabyard:yard", "slabyard:slqb"]
    needed = {kind for _, kind, _ in item("figure11").kernels}
    assert needed == set(garcarz.STOCK), "a kernel that a quick run does not boot is not built for it"


def test_his_table_is_whole() -> None:
    assert len(garcarz._RANKS) == 12
    assert all(sorted(name.rstrip("*") for name in paper) == ["slab", "slob", "slub"] for paper in garcarz._RANKS.values())


def test_events_beside_fragments() -> None:
    events = {"slab": 5, "slub": 4, "slob": 40}
    used = {spec: [boot(1.0 + count / 10, {"DMA32": 0}, 1000 - count, count)] * 2 for spec, count in events.items()}
    fresh = boots({spec: [1.0, 1.0] for spec in events}, ("DMA32", "Normal"))
    found = judged("events", {"used": used, "x86 fileio": fresh})
    assert holding(found) == [True, True] and "correlation 1.00" in found.claims[1].because
    used["slub"] = [boot(9.0, {"DMA32": 0}, 10, 0)] * 2
    assert holding(judged("events", {"used": used, "x86 fileio": fresh})) == [False, False]
    found = judged("events", {"used": {spec: [boot(1.0, {"DMA32": 0}, 10, 13)] * 2 for spec in events}, "x86 fileio": fresh})
    assert holding(found) == [False] and found.notes[-1].startswith("Not judged: the more this event is called")


def test_every_figure_of_the_paper_is_there() -> None:
    assert [one.name for one in garcarz.ITEMS] == [*(f"figure{number}" for number in range(1, 12)), "events"]
    assert garcarz_runs.FULL.of("memory") == 256 and garcarz_runs.FULL.of("fileio") == 1
