"""The study of Ferreira et al. 2015: how a boot's output is read, and the rules of its claims, on figures made by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from slabyard.base.errors import UserError
from slabyard.base.terminal import Progress
from slabyard.kernels import machine
from slabyard.kernels.build import Kernel
from slabyard.kernels.run import Run
from slabyard.study import ferreira, ferreira_runs, rules, work
from slabyard.study.model import HOLDS, IN_PART, NOT, UNTOLD, Claim
from slabyard.study.work import Work

NAMES = ("SLAB", "SLOB", "SLUB", "SLQB", "yard")
ORDER = ("SLOB", "SLAB", "SLUB", "SLQB")  # of figure 7, table 3
MEMORY = {"SLOB": 186.75, "SLUB": 188.25, "SLAB": 191, "SLQB": 295, "yard": 150}  # MiB
EVENTS = {"SLAB": 0, "SLUB": 2, "SLQB": 4, "SLOB": 9, "yard": 1}
FILEIO = {1: (9, 11, 15, 16), 4: (9.6, 9.2, 12.5, 12), 8: (10.6, 9.4, 9.3, 10.5)}  # s, of ORDER
TRANSFER = {1: (2.1, 2.2, 2.3, 2.4), 4: (1.02, 1.0, 1.04, 1.06), 8: (1.14, 1.16, 1.12, 1.10)}  # s, of ORDER, as table 1's order has it


def one_boot(name: str, cpus: int) -> dict[str, float]:
    place = ORDER.index(name) if name in ORDER else 1
    memory, fast = MEMORY[name] * 1024, cpus == 1
    found = {"fileio_seconds": FILEIO[cpus][place]}
    found |= {"memory_seconds": TRANSFER[cpus][place], "fileio_events": EVENTS[name], "memory_events": 0}
    if fast and name == "SLOB":
        memory -= 1024
    return found | {f"{mode}_{what}": memory for mode in ("memory", "fileio") for what in ("used", "own", "slab")}


def counts(name: str, cpus: int) -> dict[str, float]:
    work = {"SLOB": 100, "SLAB": 200, "SLUB": 300, "SLQB": 900, "yard": 50}[name] // (3 if cpus > 1 and name == "SLQB" else 1)
    parts = {"fast": work, "slow": 0, "pages": 0, "locks": 0, "waiting": 0}
    return {
        "seconds": 1 + work / 1000,
        "operations": 10,
        "instructions": work,
        "kernel": 10 * work,
        "l1_misses": 3,
        "ll_misses": 1,
        **parts,
    }


def made() -> dict[str, Any]:
    """Data in which the paper is right wherever it can be."""
    scale = {"cpus": [1, 4, 8], "repetitions": 3, "writes": 1000, "transferred_mb": 128, "counted_on": [1, 4], "counted_writes": 100}
    caches = {"kb": 3000, "unused_kb": 120 * 1024, "most_unused": [["dentry", 900]]}
    return {
        "scale": {**scale, "counted_mb": 8},
        "memory_mb": 1024,
        "host_cpus": 8,
        "kernel": "6.1.1",
        "timed": {
            name: {str(cpus): {key: [value, value, value] for key, value in one_boot(name, cpus).items()} for cpus in scale["cpus"]}
            for name in NAMES
        },
        "caches": {name: {str(cpus): caches for cpus in scale["cpus"]} for name in NAMES},
        "counted": {
            name: {mode: {str(cpus): counts(name, cpus) for cpus in scale["counted_on"]} for mode in ("memory", "fileio")}
            for name in NAMES
        },
        "short_queues": {"cpus": 8, "modes": {"fileio": {"slab": 2048}}, "caches": caches},
        "trouble": [],
    }  # fmt: skip


def claims(judge: Any, data: dict[str, Any]) -> dict[str, Claim]:
    return {claim.text: claim for claim in judge(json.loads(json.dumps(data))).claims}


def failing(judge: Any, data: dict[str, Any]) -> list[str]:
    return [text for text, claim in claims(judge, data).items() if not claim.holds]


JUDGES = {item.name: item.judge for item in ferreira.ITEMS}


@pytest.mark.parametrize("name", JUDGES)
def test_where_all_is_as_in_the_paper_all_holds(name: str) -> None:
    not_by_code = ["Table 1 has two patterns, up to five cores and from seven on: the allocators make them"] if name == "questions" else []
    data = made()
    if name == "table3":
        outcome = JUDGES[name](data)
        assert outcome.verdict == HOLDS and [row[0] for row in outcome.sheets[0].rows][-1] == "yard, among all"
    else:
        assert failing(JUDGES[name], data) == not_by_code


def change(data: dict[str, Any], name: str, figure: str, *values: float) -> dict[str, Any]:
    for cpus in data["timed"][name].values():
        cpus[figure] = list(values)
    return data


def test_what_overlaps_is_no_order() -> None:
    data = change(made(), "SLAB", "fileio_used", 188 * 1024, 194 * 1024, 194 * 1024)
    assert failing(ferreira.figure_8, data) == ["Over all cores SLOB takes least, then SLUB, SLAB, SLQB"]
    assert claims(ferreira.figure_8, data)["Over all cores SLOB takes least, then SLUB, SLAB, SLQB"].holds is None
    assert ferreira.figure_8(data).verdict == IN_PART
    assert "SLAB 192 (188 to 194)" in claims(ferreira.figure_8, data)["Over all cores SLOB takes least, then SLUB, SLAB, SLQB"].because


def test_events_that_all_have_are_no_order() -> None:
    data = made()
    for name in NAMES:
        change(data, name, "fileio_events", 8, 8, 8)
    assert ferreira.figure_9(data).verdict == NOT
    assert rules.ranks({name: [8.0] for name in ORDER}) == dict.fromkeys(ORDER, 1)


def test_a_place_that_is_shared_is_nobody_s() -> None:
    data = change(change(made(), "SLAB", "fileio_events", 2, 2, 2), "SLQB", "fileio_events", 2, 2, 2)
    claim = claims(ferreira.figure_9, change(data, "SLOB", "fileio_events", 0, 0, 0))
    assert claim["SLUB causes second fewest (rule: it alone has the second place)"].holds is False
    unsure = claims(ferreira.figure_9, change(made(), "SLQB", "fileio_events", 1, 4, 4))
    assert unsure["SLUB causes second fewest (rule: it alone has the second place)"].holds is None


def test_times_of_more_cpus_than_the_host_has_tell_nothing() -> None:
    data = made()
    data["host_cpus"] = 2
    found = claims(ferreira.table_1, data)
    assert [text for text, claim in found.items() if claim.holds is not None] == [
        "On one core SLOB is ahead by far (rule: by half of their lead, by a clock that counts instructions)",
        "No fragmentation event occurs",
    ]
    assert ferreira.table_2(data).verdict == HOLDS


def test_slqb_must_catch_up_with_each() -> None:
    data = made()
    text = "SLQB becomes competitive from four cores on (rule: its instructions over each other's fall, from 1 CPU to 4)"
    assert claims(ferreira.questions, data)[text].holds
    data["counted"]["SLAB"]["fileio"]["4"]["instructions"] /= 4  # SLQB's are a third
    data["counted"]["SLOB"]["fileio"]["4"]["instructions"] *= 100
    claim = claims(ferreira.questions, data)[text]
    assert not claim.holds and "catches up with SLOB and SLUB;" in claim.because


def test_their_figures_stand_where_no_boot_was_made() -> None:
    rows = dict(ferreira.table_1(made()).sheets[0].rows)
    assert [rows[f"SLQB, {cpus} CPUs"].printed for cpus in (3, 5, 6, 7)] == ["73.7", "57.3", "61.6", "64.8"]
    assert rows["SLOB, 3 CPUs"].printed == "70.0"
    assert rows["SLQB, 3 CPUs"].ours is None and "yard, 3 CPUs" not in rows


@pytest.mark.parametrize(
    ("one", "other", "so"), [((1, 2), (3, 4), True), ((3, 4), (1, 3), False), ((2,), (2,), False), ((1, 3), (2, 4), None)]
)
def test_below(one: tuple[float, ...], other: tuple[float, ...], so: bool | None) -> None:
    assert rules.below(one, other) is so
    assert rules.every([so, True]) is so and rules.every([None, False]) is False


def test_more_than_100_mb() -> None:
    data = change(made(), "SLQB", "fileio_used", *[200 * 1024] * 3)
    claim = claims(ferreira.figure_8, data)["SLQB takes more than 100 MB more than any other"]
    assert not claim.holds and "with queues of 16 objects Slab: is 2.0 MiB in place of" in claim.because


def test_where_the_clock_is_equal_slob_is_not_ahead() -> None:
    data = made()
    for name in NAMES:
        data["counted"][name]["fileio"]["1"]["seconds"] = 1.0
    assert "On one core SLOB takes the shortest time (by a clock that counts instructions: exact)" in failing(ferreira.figure_7, data)


def test_a_quick_run_has_one_window_of_cpus() -> None:
    data = made()
    data["scale"]["cpus"] = [1, 4]
    for name, judge in JUDGES.items():
        outcome = judge(json.loads(json.dumps(data)))
        assert outcome.sheets and outcome.claims and "1/100" in outcome.stands_for, name
    late = claims(ferreira.table_1, data)["From seven cores on it is inverted: SLQB, SLUB, SLOB, SLAB"]
    assert not late.holds


# ---- Out of a boot -----------------------------------------------------------------------------------------------------------

MEMINFO = "MemTotal:  1000 kB\nMemFree:  {free} kB\nBuffers:  10 kB\nCached:  300 kB\nAnonPages:  40 kB\nShmem:  200 kB\nSlab:  {slab} kB\n"
TOTAL = "General statistics:\n    total time:                          {}s\n    total number of events:  9\n"
EVENT = "12:  sysbench-9 [000] d.... 2.0: mm_page_alloc_extfrag: page=1 pfn=1\n"


def texts() -> dict[str, str]:
    output = [f"@begin\n{MEMINFO.format(free=500, slab=50)}{TOTAL.format('1.5000')}", f"@memory\n{MEMINFO.format(free=450, slab=60)}"]
    output.append(f"{TOTAL.format('0.2500')}@fileio\n{MEMINFO.format(free=400, slab=70)}")
    marks = [
        "1: init-1 [000] 1.0: tracing_mark_write: before\n",
        *(f"2: sh-2 [000] 1.0: tracing_mark_write: @{at}\n" for at in ("begin", "memory", "fileio")),
    ]
    vmstat = "pgsteal_kswapd 4\npgsteal_direct {}\npgscan_direct 9\n"
    found = {"before/vmstat": vmstat.format(1), "after/vmstat": vmstat.format(1)}
    return {**found, "output": "".join(output), "extfrag": EVENT + marks[0] + marks[1] + marks[2] + EVENT * 3 + marks[3]}


def test_what_a_boot_says() -> None:
    found = ferreira_runs.timed(texts(), "slub")
    assert found["memory"] == {"seconds": 1.5, "used": 350, "own": 200, "slab": 60, "events": 0}
    assert found["fileio"] == {"seconds": 0.25, "used": 400, "own": 250, "slab": 70, "events": 3}


def test_a_boot_that_was_not_done_is_told() -> None:
    whole = texts()
    with pytest.raises(UserError, match="was not done"):
        ferreira_runs.timed({**whole, "output": whole["output"].partition("@fileio")[0]}, "slub")
    with pytest.raises(UserError, match="says nothing of a run stage"):
        ferreira_runs.timed({**whole, "output": whole["output"].replace("total time", "time")}, "slub")


def test_a_trace_without_marks_is_no_trace_without_events() -> None:
    whole = texts()
    with pytest.raises(UserError, match="no mark for memory, fileio"):
        ferreira_runs.timed({**whole, "extfrag": EVENT * 3}, "slub")


def test_a_boot_whose_memory_ran_out_is_an_error() -> None:
    """Its events are then of sysbench's own files, whose pages the kernel finds wherever there are any."""
    short = texts()
    with pytest.raises(UserError, match="3 pages of memory had to be reclaimed"):
        ferreira_runs.timed({**short, "after/vmstat": short["after/vmstat"].replace("direct 1", "direct 4", 1)}, "slub")


@pytest.fixture
def booted(monkeypatch: pytest.MonkeyPatch) -> list[machine.Plan]:
    """What is booted, if nothing is: plans, in their order."""
    plans: list[machine.Plan] = []
    kernel = Kernel("", "x86_64", "slub", Path(), {"release": "6.1"})
    monkeypatch.setattr(ferreira_runs, "check", lambda: None)
    monkeypatch.setattr(ferreira_runs.build, "from_installed", lambda *_, **__: kernel)
    monkeypatch.setattr(ferreira_runs.run, "once", lambda plan, **_: plans.append(plan) or Run({}, texts(), [], "tcg"))
    monkeypatch.setattr(ferreira_runs, "count", lambda plan: plans.append(plan) or {})
    return plans


def test_memory_is_used_by_one_cpu_with_files_elsewhere_and_no_compaction_behind_it(booted: list[machine.Plan]) -> None:
    """Each of these made the events of a boot ten or none: as many as its timing had it."""
    ferreira_runs._boots(Work(True, Progress(0, quiet=True)))
    timed = [plan for plan in booted if not plan.counts]
    assert len(timed) == len(NAMES) * 2 + 1
    for plan in timed:
        prepare = plan.job.workload.prepare
        settings, use, cpus = (prepare.index(text) for text in ("compaction_proactiveness", "/dev/shm 1048576 65536 48", "/online"))
        assert settings < prepare.index("dd if=") < use < cpus and "min_free_kbytes" in prepare[:use]
        assert {"movablecore=96M", "maxcpus=1"} <= set(plan.spec.parameters)


def test_boots_that_were_ended_go_on_and_each_round_has_every_allocator(
    booted: list[machine.Plan], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever slows the machine for a while slows all allocators, and no boot that counts runs beside one that is timed."""
    once, quiet = ferreira_runs.run.once, Progress(0, quiet=True)

    def ended(plan: machine.Plan, **_: object) -> Run:
        if len(booted) == 7:
            raise KeyboardInterrupt
        return once(plan)

    monkeypatch.setattr(ferreira_runs.run, "once", ended)
    with pytest.raises(KeyboardInterrupt):
        ferreira_runs._boots(Work(False, quiet, tmp_path / "ferreira-boots.parts"))
    monkeypatch.setattr(ferreira_runs.run, "once", once)
    data = ferreira_runs._boots(Work(False, quiet, tmp_path / "ferreira-boots.parts"))
    scale = ferreira_runs.FULL
    timed = [(plan.spec.text, plan.hardware.cpus) for plan in booted if not plan.counts][:-1]
    specs = [ferreira_runs.kinds.parse(text).text for text in ferreira_runs.ALLOCATORS.values() if text != "slub_tiny"]
    assert timed == [(spec, cpus) for _ in range(scale.repetitions) for cpus in scale.cpus for spec in specs]
    assert [plan.counts for plan in booted] == sorted(plan.counts for plan in booted)
    assert len(data["timed"]["SLOB"]["8"]["fileio_events"]) == scale.repetitions


@pytest.mark.parametrize("name", JUDGES)
def test_a_time_that_the_clock_does_not_tell_from_nothing(name: str) -> None:
    """As a quick boot's stage of one tick."""
    data = made()
    for mode in ("memory", "fileio"):
        for one in ("SLOB", "SLQB"):
            data["timed"][one]["4"][f"{mode}_seconds"] = [0.0, 0.0, 0.0]
            data["counted"][one][mode]["4"]["seconds"] = 0.0
    assert JUDGES[name](data).verdict in (HOLDS, NOT, UNTOLD, IN_PART)


def test_what_is_free_in_caches() -> None:
    head = "slabinfo - version: 2.1\n"
    lines = "dentry  100 142 192 21 1 : tunables 0 0 0 : slabdata 7 7 0\nbuffer_head 39 39 104 39 1 : tunables 0 0 0 : slabdata 1 1 0\n"
    assert ferreira_runs.caches_of(head + lines) == {"kb": 32, "unused_kb": 8, "most_unused": [["dentry", 8], ["buffer_head", 0]]}
    assert ferreira_runs.caches_of("") == {"kb": 0, "unused_kb": 0, "most_unused": []}


def test_what_was_counted() -> None:
    functions = [
        {"name": "native_queued_spin_lock_slowpath", "part": "locks", "instructions": 2.0},
        {"name": "_raw_spin_lock", "part": "locks", "instructions": 1.0},
    ]
    parts = {"fast": {"instructions": 5.0}, "slow": {"instructions": 2.0}, "pages": {"instructions": 0.0}, "locks": {"instructions": 3.0}}
    cost = {
        "operations": 10, "instructions": 10.0, "l1_misses": 0.5, "ll_misses": 0.1, "parts": parts, "functions": functions,
        "kernel": {"instructions": 1234},
    }  # fmt: skip
    found = ferreira_runs.counted(Run({}, {"output": TOTAL.format("0.0100")}, [], "tcg", cost=cost))
    assert found == {
        "seconds": 0.01, "operations": 10, "instructions": 100, "fast": 50, "slow": 20, "pages": 0, "locks": 30, "waiting": 20,
        "l1_misses": 5, "ll_misses": 1, "kernel": 1234,
    }  # fmt: skip


def test_the_items_share_their_boots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = []
    monkeypatch.setattr(ferreira_runs, "_boots", lambda work: ran.append(work.quick) or {"quick": work.quick})
    monkeypatch.setattr(work, "_shared", {})
    quiet = Progress(0, quiet=True)

    def boots(quick: bool) -> Any:
        return ferreira_runs.boots(Work(quick, quiet, tmp_path / "ferreira-fig7.parts"))

    assert [boots(True), boots(True), boots(False)] == [{"quick": True}, {"quick": True}, {"quick": False}] and ran == [True, False]
    (tmp_path / "ferreira-fig7.json").write_text('{"schema": 1, "quick": true, "data": {"of": "the record"}}')
    monkeypatch.setattr(work, "_shared", {})  # as in another process
    assert boots(True) == {"of": "the record"} and boots(False) == {"quick": False}
    (tmp_path / "ferreira-fig8.json").write_text('{"schema": 1, "quick": tr')
    monkeypatch.setattr(work, "_shared", {})
    with pytest.raises(UserError, match=r"fig8\.json: is no record"):
        boots(False)
