"""A kernel's figures against those of its replay, and its log of calls made again, without a kernel."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kernel_support import make_tree
from slabyard.base import programs
from slabyard.command import cli
from slabyard.base.errors import UserError
from slabyard.kernels import build, fidelity, guest, kinds, machine, source, tools, workloads
from slabyard.base.table import render


def replay_log(tmp_path: Path, lines: list[str], allocator: str = "slub", records: int | None = None, *more: str) -> Any:
    log = tmp_path / "log"
    log.write_text("".join(f"{line}\n" for line in lines))
    records = len(lines) if records is None else records
    return programs.run_json(programs.REPLAY, "--kernel-log", str(log), "--records", str(records), "--allocator", allocator, *more)


OBJECTS = [f"{2000 + i} 0 alloc c0 {0x1000 + 64 * i:x} cc0 -1" for i in range(65)]
CREATE = "1000 0 create c0 64 8 0 0 of_64"


@pytest.mark.parametrize("allocator", ["slub", "slab", "slqb", "bonwick", "sunos4"])
def test_a_log_is_lived_again(tmp_path: Path, allocator: str) -> None:
    held = replay_log(tmp_path, [CREATE, *OBJECTS], allocator)
    assert held["unknown_frees"] == 0 and held["slab_pages"] >= 2
    frees = [line.replace("alloc", "free").rsplit(" ", 2)[0] for line in OBJECTS]
    emptied = [CREATE, *OBJECTS, *frees, "3000 0 tick", "3001 0 give", "3002 0 shrink c0", "3003 0 destroy c0"]
    assert replay_log(tmp_path, emptied, allocator)["slab_pages"] <= held["slab_pages"]


def test_what_a_log_counts_to_the_page(tmp_path: Path) -> None:
    assert replay_log(tmp_path, [CREATE, *OBJECTS[:64]])["slab_pages"] == 1
    assert replay_log(tmp_path, [CREATE, *OBJECTS[:64], *OBJECTS[64:]])["slab_pages"] == 2
    assert replay_log(tmp_path, [CREATE, *OBJECTS], records=65)["slab_pages"] == 1
    general = [*(f"{i} 1 kmalloc 4096 {i + 1:x}000 cc0 -1" for i in range(8)), "9 0 kmalloc 40000 f000 cc0 -1"]
    general += ["10 1 kfree f000", "11 0 kfree 77"]
    told = replay_log(tmp_path, general, "slub", None, "--cpus", "2")
    assert told["slab_pages"] == 8 and told["large_pages"] == 0 and told["unknown_frees"] == 1


def test_slabs_wait_for_the_grace_periods_of_the_log(tmp_path: Path) -> None:
    lines = ["1 0 create c0 4096 8 2 0 safe", *(f"{i} 0 alloc c0 {i:x}000 cc0 -1" for i in range(2, 50))]
    lines += [f"{60 + i} 0 free c0 {i:x}000" for i in range(2, 50)]
    waiting = replay_log(tmp_path, [*lines, "200 0 shrink c0"])["slab_pages"]
    assert replay_log(tmp_path, [*lines, "200 0 shrink c0", "201 0 grace 0"])["slab_pages"] < waiting
    with pytest.raises(UserError, match="nothing waits for a grace period"):
        replay_log(tmp_path, ["1 0 grace 0"])


def test_pages_are_where_the_kernel_had_them(tmp_path: Path) -> None:
    """Two holes of a page each, and the lower one in the chunk that came last: leftmost fit takes that."""
    big = [f"{i} 0 kmalloc 1024 {i:x}000 cc0 -1" for i in range(1, 33)]
    pages = ["0 0 pages 8000 2 0", "0 0 pages 4000 2 0"]
    lines = [pages[0], *big[:16], pages[1], *big[16:]]  # a chunk holds 16
    told = replay_log(tmp_path, lines, "sunos4")
    assert (told["page_requests"], told["page_requests_apart"], told["slab_pages"]) == (2, 0, 8)
    holes = [*lines, "40 0 kfree 1000", "41 0 kfree 11000", "42 0 kmalloc 1024 99000 cc0 -1"]
    emptied = [f"{50 + i} 0 kfree {i:x}000" for i in range(2, 17)]  # the upper chunk, of whose objects only the first is gone
    assert replay_log(tmp_path, [*holes, *emptied], "sunos4")["slab_pages"] == 4
    upper_last = [line.replace("8000", "2000") for line in holes]
    assert replay_log(tmp_path, [*upper_last, *emptied], "sunos4")["slab_pages"] == 8


def test_requests_that_only_one_side_makes_are_counted(tmp_path: Path) -> None:
    refused = [CREATE, "1 0 pages - 0 0", "1 0 alloc c0 0 cc0 -1", "2 0 pages 7 0 0", "2 0 alloc c0 10 cc0 -1"]
    told = replay_log(tmp_path, refused)
    assert (told["page_requests"], told["page_requests_apart"], told["slab_pages"]) == (2, 0, 1)
    more = [CREATE, "1 0 pages 7 0 0", "1 0 pages 8 0 0", OBJECTS[0]]
    assert replay_log(tmp_path, more)["page_requests_apart"] == 1
    other_order = [CREATE, "1 0 pages 8 3 0", OBJECTS[0]]
    assert replay_log(tmp_path, other_order)["page_requests_apart"] == 2
    twice = [CREATE, "1 0 pages 7 0 0", *OBJECTS[:64], "1 0 pages 7 0 0", OBJECTS[64]]
    assert replay_log(tmp_path, twice)["page_requests_apart"] == 1
    assert replay_log(tmp_path, [CREATE, *OBJECTS])["page_requests_apart"] == 0  # a log from before there were such lines
    with pytest.raises(UserError, match="no call takes so many blocks"):
        replay_log(tmp_path, [f"{i} 0 pages {i} 0 0" for i in range(17)])


@pytest.mark.parametrize(
    ("lines", "records", "complaint"),
    [
        (["1 0 alloc c0 10 cc0 -1"], 1, "line 1 of the log: the cache c0 was never created"),
        (["1 0 explode"], 1, "explode is nothing that a kernel logs so"),
        (["1 0 alloc c0"], 1, "alloc is nothing that a kernel logs so"),
        (["1 3 tick"], 1, "CPU 3; --cpus says how many there are"),
        (["1 0"], 1, "too few words"),
        ([CREATE], 2, "the log has 1 lines, not 2"),
        ([CREATE, OBJECTS[0], "9 0 destroy c0"], 3, "objects that the kernel had freed"),
    ],
)
def test_a_log_that_cannot_be_is_refused(tmp_path: Path, lines: list[str], records: int, complaint: str) -> None:
    with pytest.raises(UserError, match=complaint):
        replay_log(tmp_path, lines, records=records)


SLABINFO = """\
slabinfo - version: 2.1
# name <active_objs> ...
a 10 64 64 64 1 : tunables 0 0 0 : slabdata 3 3 0
b 10 64 64 64 1 : tunables 0 0 0 : slabdata 1 1 0
c 10 16 256 16 1 : tunables 0 0 0 : slabdata 2 2 0
"""


def test_a_kernel_is_held_against_its_replay() -> None:
    exact = {
        "snapshots": [
            {"name": "end", "slab_pages": 7, "large_pages": 4, "recorded_free_blocks": [1, 2] + [0] * 9, "free_blocks": [2, 2] + [0] * 9},
        ],
        "caches": [
            {"size": 64, "slabs": 5, "pages": 5}, {"size": 256, "slabs": 2, "pages": 2}, {"size": 8, "slabs": None, "pages": 9},
        ],
    }  # fmt: skip
    texts = {"after/meminfo": "MemTotal: 1000 kB\nSlab:  40 kB\n", "after/slabinfo": SLABINFO}
    found = fidelity.compare("slub", "hackbench", 1234, texts, exact)
    assert found.pages == (10, 11) and found.by_size == {64: (4, 5), 256: (2, 2)} and found.apart == 1
    assert found.difference == pytest.approx(0.1)
    rows = fidelity.tables([found])[0].rows
    assert rows == [["slub", "hackbench", 10, 11, "+10.0%", 2, 1, 1, 5, 6, 1]]
    assert len(fidelity.tables([found])) == 3 and len(fidelity.tables([found, found])) == 1
    assert fidelity.compare("slob", "x", 1, {"after/meminfo": "Slab: 40 kB\n"}, exact).by_size == {}
    assert fidelity.replay_spec("slabyard:slob:fit=best") == "slob:fit=best" and fidelity.replay_spec("slab") == "slab"


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(tools.Tool, "there", lambda tool: True)
    monkeypatch.setattr(guest, "archive", lambda job, settings, samples: json.dumps(settings).encode())
    monkeypatch.setattr(tools, "boot", lambda arch: None)
    source._ident.cache_clear()
    return make_tree(tmp_path / "tree")


def test_a_boot_that_logs_its_calls(tree: Path) -> None:
    spec = kinds.parse("slabyard:slub")
    kernel = build.build(build.Request(source.find(tree), "um", spec.kind))
    plan = machine.Plan(spec, kernel, workloads.parse("boot"), machine.Hardware(), 10)
    found = fidelity.replay_log(plan)
    assert (found.calls, found.slab, found.large) == (2, (1, 1), (0, 0)) and found.agrees
    assert (found.requests, found.apart) == (0, 0)
    assert fidelity.log_tables([found])[0].rows == [["slabyard:slub", "boot", 2, 1, 1, 0, 0, 0, 0]]
    assert fidelity.log_tables([]) == []
    lossy = machine.Plan(kinds.Spec("slabyard", spec.kind, ("lossy",)), kernel, plan.job, plan.hardware, 10)
    with pytest.raises(UserError, match="lost 7 calls"):
        fidelity.replay_log(lossy)
    with pytest.raises(UserError, match="only kernels on slabyard do"):
        fidelity._end(machine.Outcome({}, ""))


WARNING = "WARNING: CPU: 0 PID: 1 at mm/slub.c:1"  # in the log of every kernel that is none


def test_trouble_in_a_log_and_events_that_were_lost_are_told(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["kernel", "fidelity", "--allocators", "slub,slabyard:slub", "--workloads", "boot", "--source", str(tree)]
    assert cli.main(argv) == 3
    out, err = capsys.readouterr()
    assert out.count(f"The log of slabyard:slub under boot has: {WARNING}") == 2 and "incomplete" not in out
    assert f"slabyard: boot on slub: the kernel's log tells of trouble: {WARNING}\n" in err
    assert cli.main([*argv, "--format", "json"]) == 3
    found = json.loads(capsys.readouterr().out)
    assert [one["trouble"] for kind in ("traces", "calls") for one in found[kind]] == [[WARNING]] * 3


def test_half_a_trace_is_told_and_ends_nothing(tree: Path, tmp_path: Path) -> None:
    spec = kinds.parse("slub")
    kernel = build.build(build.Request(source.find(tree), "um", spec.kind))
    found = []
    for parameters in ((), ("lossy",)):
        plan = machine.Plan(kinds.Spec("slub", spec.kind, parameters), kernel, workloads.parse("boot"), machine.Hardware(), 10)
        found.append(fidelity.measure(plan, 64 << 20, tmp_path / "t.parquet"))
    assert [one.incomplete for one in found] == [None, "7 events were lost while it was recorded"]
    lines = render(fidelity.tables(found), "text").splitlines()
    legend = lines[next(place for place, line in enumerate(lines) if line.startswith("pages: ")) :][:3]
    assert all(60 < len(line) <= 80 for line in legend), "whole lines"
    assert fidelity.tables(found)[0].notes[-1] == "The trace of slub under boot is incomplete: 7 events were lost while it was recorded"
