"""Sweeps: plans, the store, worker processes that are killed, a sweep that is killed, and a real cluster of two workers."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import handmade
import pytest
from handmade import complaint, slabyard

from kernel_support import make_tree

from slabyard.base.errors import MISSING, UserError
from slabyard.base.terminal import Progress
from slabyard.kernels import guest, source, tools
from slabyard.sweep import executors, plan, store, sweep, work

REPLAY = "[[matrix]]\nallocators = ['slub']\n"
THREADS = REPLAY + "substrate = 'threads'\n"
KERNEL = "[[matrix]]\nsubstrate = 'kernel'\nworkloads = ['hackbench']\n"
COMMAND = [sys.executable, "-m", "slabyard"]


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return handmade.busy(tmp_path_factory.mktemp("sweep") / "busy.parquet")


def written(folder: Path, text: str, name: str = "p.toml") -> Path:
    (folder / name).write_text(text)
    return folder / name


def replays(busy: Path, repetitions: int = 2, allocators: str = '"slub", "slab"', more: str = "") -> str:
    return f'repetitions = {repetitions}\n[[matrix]]\ntraces = ["{busy}"]\nallocators = [{allocators}]\n{more}'


def rows(folder: Path) -> list[dict[str, Any]]:
    found = duckdb.sql(f"SELECT * FROM '{folder}/*.parquet'")
    return [dict(zip(found.columns, row, strict=True)) for row in found.fetchall()]


# ---- Plans -------------------------------------------------------------------------------------------------------


def test_a_matrix_is_every_combination(busy: Path, tmp_path: Path) -> None:
    text = replays(busy, 3, '"slub"', 'vary = { slub = "max_order=0,1" }\ncpus = [1, 2]\nmemory = ["512M"]\n')
    text += '[[matrix]]\nsubstrate = "threads"\nworkloads = ["hot"]\nallocators = ["slub", "malloc:system"]\n'
    text += "seeds = [7, 8]\nrepetitions = 1\n"
    found = plan.read(written(tmp_path, text)).runs
    assert len(found) == 3 * 3 * 2 + 2 * 2 == len({run.key for run in found})
    assert {run.allocator for run in found[:18]} == {"slub", "slub:max_order=0", "slub:max_order=1"}
    assert [(run.repetition, run.allocator) for run in found[:4]] == [
        (1, "slub"), (1, "slub:max_order=0"), (1, "slub:max_order=1"), (2, "slub"),
    ]  # fmt: skip
    assert found[0].memory == 512 << 20 and {run.cpus for run in found[:18]} == {1, 2} and {run.seed for run in found[18:]} == {7, 8}


def test_a_run_keeps_its_key_where_the_plan_moves(busy: Path, tmp_path: Path) -> None:
    (tmp_path / "traces").mkdir()
    (tmp_path / "traces/busy.parquet").write_bytes(busy.read_bytes())
    moved = plan.read(written(tmp_path, '[[matrix]]\ntraces = ["traces/*.parquet"]\nallocators = ["slab", "slub"]\n')).runs
    assert {run.key for run in plan.read(written(tmp_path, replays(busy, 6), "q.toml")).runs} == {run.key for run in moved}
    twice = plan.read(written(tmp_path, replays(busy, 6) + replays(busy, 6).partition("\n")[2], "r.toml")).runs
    assert len(twice) == len(moved), "two tables may share runs"


def test_names_that_are_no_text(busy: Path, tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"a\xff")
    folder.mkdir()
    (folder / os.fsdecode(b"b\xfe.parquet")).write_bytes(busy.read_bytes())
    text = "repetitions = 1\n[[matrix]]\ntraces = ['*.parquet']\nallocators = ['slub']\n"
    done = slabyard("sweep", written(folder, text), "--workers", "1", "--export-json", folder / "r.json")
    assert done.returncode == 0, done.stderr
    (found,) = store._rows(next((folder / "p").glob("*.parquet")))
    assert found["workload"] == "b\\xfe" and (folder / "r.json").stat().st_size


def test_workers_leave_nothing_open(busy: Path, tmp_path: Path) -> None:
    words = ["sweep", str(written(tmp_path, replays(busy, 1))), "--workers", "1"]
    done = subprocess.run([sys.executable, "-W", "error", *COMMAND[1:], *words], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert (done.returncode, done.stderr) == (0, "slabyard: p.toml: 2 runs\n")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no [[matrix]]"), ("matrix = 1", "no [[matrix]]"), ("a = [", "no TOML"), ("speed = 1\n[[matrix]]\n", "speed is unknown"),
        ("a." * 20_000 + "a = 1", "too deep"),
        ("repetitions = 0\n[[matrix]]\n", "repetitions is 0"), ("[[matrix]]\nsubstrate = 'moon'", "no substrate 'moon'"),
        (REPLAY + "traces = []", "needs traces"), (REPLAY + "traces = ['*.none']", "no trace is"),
        (REPLAY + "traces = ['x']", "no such file"), (REPLAY + f"traces = ['{'*/' * 900}']", "no pattern of files"),
        (REPLAY + "traces = ['x']\ncpus = ['a']", "list of numbers"), (REPLAY + "traces = ['x']\nthreads = 1", "threads is unknown"),
        ("[[matrix]]\ntraces = ['x']\nallocators = ['nosuch']", "nosuch"), (REPLAY + "traces = ['x']\nstart = 'now'", "recorded or empty"),
        (THREADS + "workloads = ['hot']\nthreads = [0]", "less than 1"), (THREADS + "workloads = ['nosuch']", "called 'nosuch'"),
        (THREADS + "workloads = ['hot']\nsize = [1]", "list of texts"),
        (THREADS + "workloads = ['hot']\nvary = { slub = 'no=1' }", "names no"),
        (KERNEL + "allocators = ['bsd44']", "no kernel has"), (KERNEL + "allocators = ['slub']\nmemory = ['much']", "no size"),
    ],
)  # fmt: skip
def test_plans_that_cannot_be(tmp_path: Path, text: str, said: str) -> None:
    assert said in complaint(slabyard("sweep", written(tmp_path, text)), 2)


# ---- The store ---------------------------------------------------------------------------------------------------


def row(key: str, failed: str | None = None) -> dict[str, Any]:
    timed = {"seconds": 0.5, "alloc_ns": {"p99": 9}}
    record = {"run": {"cpus": 3}, "exact": {"held_pages_peak": 7}, "timed": timed, "cost": {"instructions": 8}}
    head = {"key": key, "substrate": "replay", "workload": "w", "allocator": "slub", "repetition": 1, "host": "h"}
    return {**head, "began": 1.0, "took": 2.0, "failed": failed, "record": None if failed else record}


def test_what_is_written_is_done(tmp_path: Path) -> None:
    with store.Store(tmp_path / "r") as kept:
        kept.add(row("a"))
        kept.add(row("b", "no memory"))
    with (tmp_path / "r/journal.jsonl").open("ab") as journal:
        journal.write(b'{"key": "c", "fai')  # killed while it wrote
    with store.Store(tmp_path / "r") as kept:
        assert kept.done == {"a": None, "b": "no memory"}
        kept.add(row("c"))
        own = kept.close_journal()
        assert own is not None and (tmp_path / "r/journal.jsonl").stat().st_size == 0
    with store.Store(tmp_path / "r") as kept:
        assert set(kept.done) == {"a", "b", "c"}
        kept.forget_failed()
        assert set(kept.done) == {"a", "c"}
        kept.add(row("b"))
        kept.close_journal()
    found = {one["key"]: one for one in rows(tmp_path / "r")}
    assert len(rows(tmp_path / "r")) == 3 and found["b"]["failed"] is None
    assert (found["a"]["held_pages_peak"], found["a"]["alloc_ns_p99"], found["a"]["cost_instructions"], found["a"]["cpus"]) == (7, 9, 8, 3)
    (whole,) = store.records(tmp_path / "r")
    assert whole["run"] == {"cpus": 3, "repetition": 3} and whole["timed"]["runs"] == 3 and whole["timed"]["alloc_ns"] == {"p99": 9}


def test_killed_between_the_two_files_a_run_is_one(tmp_path: Path) -> None:
    with store.Store(tmp_path) as kept:
        kept.add(row("a"))
        journal = (tmp_path / "journal.jsonl").read_bytes()
        kept.close_journal()
    (tmp_path / "journal.jsonl").write_bytes(journal)
    with store.Store(tmp_path) as kept:
        kept.close_journal()
    assert len(rows(tmp_path)) == 1


def test_files_of_several_machines_are_one_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for host in ("one", "two"):
        monkeypatch.setattr(socket, "gethostname", lambda host=host: host)
        with store.Store(tmp_path / host) as kept:
            kept.add(row(host))
            file = kept.close_journal()
            assert file is not None
            file.rename(tmp_path / file.name)
    with store.Store(tmp_path) as kept:
        assert set(kept.done) == {"one", "two"} and len(kept.files()) == 2
    assert {one["key"] for one in rows(tmp_path)} == {"one", "two"}


def test_a_folder_has_one_sweep_at_a_time(tmp_path: Path) -> None:
    with store.Store(tmp_path), pytest.raises(UserError, match="another sweep"), store.Store(tmp_path):
        pass
    (tmp_path / "alien.parquet").write_bytes(b"PAR1")
    with pytest.raises(UserError, match="no results of a sweep"), store.Store(tmp_path):
        pass


# ---- Worker processes --------------------------------------------------------------------------------------------


def test_a_sweep_on_this_machine(busy: Path, tmp_path: Path) -> None:
    text = f"{replays(busy)}{THREADS}workloads = ['hot']\noperations = 500\nseeds = [4]\n"
    path = written(tmp_path, text)
    shown = json.loads(slabyard("sweep", path, "--dry-run", "--format", "json").stdout)
    assert shown == [
        {"substrate": "replay", "workload": "busy", "runs": 4, "done": 0},
        {"substrate": "threads", "workload": "hot", "runs": 2, "done": 0},
    ]
    done = slabyard("sweep", path, "--workers", "2", "--format", "json")
    assert done.returncode == 0, done.stderr
    about = json.loads(done.stdout)
    assert (about["planned"], about["done_before"], about["done"], about["failed"]) == (6, 0, 6, {})
    found = rows(tmp_path / "p")
    assert len(found) == 6 and all(one["failed"] is None and one["took"] > 0 for one in found)
    assert all(one["held_pages_peak"] > 0 and one["ns_per_operation"] > 0 for one in found if one["substrate"] == "replay")
    assert {one["seed"] for one in found if one["substrate"] == "threads"} == {4}
    for spec in ("slub", "slab"):
        exact = json.loads(slabyard("replay", busy, "--allocator", spec, "--format", "json").stdout)["exact"]
        peaks = {one["held_pages_peak"] for one in found if (one["substrate"], one["allocator"]) == ("replay", spec)}
        assert peaks == {exact["held_pages_peak"]}
    again = json.loads(slabyard("sweep", path, "--format", "json", "--export-json", tmp_path / "records.json").stdout)
    records = json.loads((tmp_path / "records.json").read_text())
    assert [(one["run"]["allocator"], one["run"]["substrate"], one["run"]["repetition"]) for one in records] == [
        ("slub", "replay", 2), ("slab", "replay", 2), ("slub", "threads", 2),
    ]  # fmt: skip
    assert records[0]["exact"]["caches"] and len(records[0]["timed"]["samples"]["ns_per_operation"]) == 2
    assert slabyard("diff", tmp_path / "records.json", tmp_path / "records.json", "--fail-if", "memory>0").returncode == 0
    assert (again["done_before"], again["done"]) == (6, 0) and len(rows(tmp_path / "p")) == 6
    path.write_text(text.replace('"slab"', '"slab", "slqb"'))
    grown = json.loads(slabyard("sweep", path, "--format", "json").stdout)
    assert (grown["done_before"], grown["done"]) == (6, 2), "a plan may grow"


def test_runs_that_fail_are_told_and_tried_again_when_asked(busy: Path, tmp_path: Path) -> None:
    build = handmade.Builder()
    for number in range(3000):
        build.kmalloc(number, 4096)
    large = build.write(tmp_path / "large.parquet")
    path = written(tmp_path, f'repetitions = 1\n[[matrix]]\ntraces = ["{large}", "{busy}"]\nallocators = ["slub"]\nmemory = "4M"\n')
    done = slabyard("sweep", path)
    assert done.returncode == 3 and "failed: replay of large under slub, run 1:" in done.stderr and "--memory" in done.stderr
    assert [one["workload"] for one in rows(tmp_path / "p") if one["failed"]] == ["large"]
    assert json.loads(slabyard("sweep", path, "--format", "json").stdout)["done"] == 0
    assert json.loads(slabyard("sweep", path, "--retry", "--format", "json").stdout)["done"] == 1
    assert len(rows(tmp_path / "p")) == 2


def test_a_sweep_that_is_killed_goes_on(busy: Path, tmp_path: Path) -> None:
    path = written(tmp_path, replays(busy, 12))
    journal, seen = tmp_path / "p/journal.jsonl", set[str]()
    for _ in range(2):
        process = subprocess.Popen([*COMMAND, "sweep", str(path), "--workers", "2"], stderr=subprocess.DEVNULL)
        before = journal.stat().st_size if journal.exists() else 0
        give_up = time.monotonic() + 100
        while time.monotonic() < give_up and (not journal.exists() or journal.stat().st_size <= before):
            time.sleep(0.02)
        process.kill()
        process.wait()
        lines = [line for line in journal.read_bytes().split(b"\n") if line.endswith(b"}")]
        keys = [json.loads(line)["key"] for line in lines]
        assert len(keys) == len(set(keys)) and seen <= set(keys), "none was lost or repeated"
        seen = set(keys)
    assert 0 < len(seen) < 24
    done = json.loads(slabyard("sweep", path, "--workers", "2", "--format", "json").stdout)
    assert done["done_before"] >= len(seen) and done["done_before"] + done["done"] == 24
    assert len({one["key"] for one in rows(tmp_path / "p")}) == len(rows(tmp_path / "p")) == 24


def test_an_interrupted_sweep_leaves_its_results(busy: Path, tmp_path: Path) -> None:
    path = written(tmp_path, replays(busy, 200))
    process = subprocess.Popen([*COMMAND, "sweep", str(path)], stderr=subprocess.PIPE, text=True)
    journal, give_up = tmp_path / "p/journal.jsonl", time.monotonic() + 100
    while time.monotonic() < give_up and (not journal.exists() or not journal.stat().st_size):
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 130 and told.splitlines()[-1] == "slabyard: interrupted"
    assert rows(tmp_path / "p") and journal.stat().st_size == 0


def fragile(run: plan.Run, _content: bytes | None = None) -> dict[str, Any]:
    """Runs in a worker's place, and dies in some runs, in one of them each time."""
    if run.allocator == "deadly":
        os.kill(os.getpid(), signal.SIGKILL)
    if run.allocator == "once" and not Path(run.workload).exists():
        Path(run.workload).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return {"key": run.key, "failed": None, "allocator": run.allocator, "record": None}


def test_a_worker_that_dies_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "perform", fragile)
    names = ["a", "once", "b", "deadly", "c", "d"]
    runs = [plan.Run("replay", str(tmp_path / "mark"), name, 1) for name in names]
    found = list(executors.processes(runs, 2))
    assert sorted(one["allocator"] for one in found) == sorted(names), "each once"
    assert [one["allocator"] for one in found if one["failed"]] == ["deadly"]


def test_a_kernel_is_booted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a sham kernel (kernel_support)."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    source._ident.cache_clear()
    monkeypatch.setattr(tools.Tool, "there", lambda tool: True)
    monkeypatch.setattr(guest, "archive", lambda job, settings, samples: b"")
    found = source.find(make_tree(tmp_path / "tree"))
    monkeypatch.setattr(source, "find", lambda *_: found)
    row = work.perform(plan.Run("kernel", "boot", "slub", 1, arch="um"))
    assert row["failed"] is None and row["record"]["timed"]["seconds"] == 0.25
    flat = store._flat(json.loads(json.dumps(row)))
    assert (flat["seconds"], flat["held_pages_end"], flat["arch"], flat["substrate"]) == (0.25, 1100, "um", "kernel")


def test_the_time_left_is_told_where_there_is_no_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sweep, "EVERY", 0)
    now = iter(range(0, 1000, 60))
    monkeypatch.setattr(time, "monotonic", lambda: next(now))
    with Progress(4) as progress:
        tell = sweep._teller(4, progress)
        for done, failed in ((1, False), (2, True), (3, False), (4, False)):
            tell(done, failed)
    assert capsys.readouterr().err.splitlines() == [
        "slabyard: 1 of 4 runs, about 3 min left", "slabyard: 2 of 4 runs, 1 failed, about 2 min left",
        "slabyard: 3 of 4 runs, 1 failed, about 60 s left",
    ]  # fmt: skip


# ---- A cluster ---------------------------------------------------------------------------------------------------


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """The address of a scheduler, and its two workers and itself, each a process of its own. Each worker has two threads."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"tcp://127.0.0.1:{port}"

    def started(module: str, *words: str) -> subprocess.Popen[bytes]:
        argv = [sys.executable, "-m", f"distributed.cli.{module}", *words]
        return subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    scheduler = started("dask_scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard")
    words = [address, "--nthreads", "2", "--no-dashboard", "--no-nanny", "--local-directory"]
    workers = [started("dask_worker", *words, str(tmp_path / f"w{at}")) for at in range(2)]
    try:
        yield address, [*workers, scheduler]
    finally:
        for process in (*workers, scheduler):
            process.kill()
            process.wait()


def test_a_cluster_one_of_whose_workers_is_killed(busy: Path, tmp_path: Path, cluster: Any) -> None:
    address, workers = cluster
    path = written(tmp_path, replays(busy, 10))
    argv = [*COMMAND, "sweep", str(path), "--scheduler", address, "--format", "json"]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    journal, give_up = tmp_path / "p/journal.jsonl", time.monotonic() + 200
    while time.monotonic() < give_up and process.poll() is None and (not journal.exists() or journal.read_bytes().count(b"\n") < 4):
        time.sleep(0.02)
    workers[0].kill()
    out, told = process.communicate(timeout=200)
    assert process.returncode == 0, told
    assert json.loads(out)["done"] == 20 and json.loads(out)["failed"] == {}
    found = rows(tmp_path / "p")
    assert len(found) == len({one["key"] for one in found}) == 20 and all(one["held_pages_peak"] > 0 for one in found)


def test_a_cluster_that_goes_is_one_line_and_loses_nothing(busy: Path, tmp_path: Path, cluster: Any) -> None:
    address, processes = cluster
    path = written(tmp_path, replays(busy, 200))
    process = subprocess.Popen([*COMMAND, "sweep", str(path), "--scheduler", address], stderr=subprocess.PIPE, text=True)
    journal, give_up = tmp_path / "p/journal.jsonl", time.monotonic() + 200
    while time.monotonic() < give_up and process.poll() is None and (not journal.exists() or not journal.stat().st_size):
        time.sleep(0.02)
    for one in processes:
        one.kill()
    _, told = process.communicate(timeout=200)
    assert process.returncode == 2, told
    assert "the cluster has gone" in told.splitlines()[-1] and "Traceback" not in told
    assert rows(tmp_path / "p")


def test_a_trace_goes_to_machines_that_lack_it(busy: Path, tmp_path: Path) -> None:
    (run,) = plan.read(written(tmp_path, replays(busy, 1, '"slub"'))).runs
    away = plan.Run(**{**{name: getattr(run, name) for name in run.__dataclass_fields__}, "trace": "/nowhere/busy.parquet"})
    assert away.key == run.key
    try:
        assert "not the trace" in work.perform(away)["failed"]
        assert work.perform(away, busy.read_bytes())["record"]["run"]["workload"] == "busy"
    finally:
        work.release()


def test_a_scheduler_that_is_not_there_is_one_line(busy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, replays(busy))
    assert "leave out one" in complaint(slabyard("sweep", path, "--workers", "1", "--scheduler", "tcp://127.0.0.1:1"), 2)
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(UserError, match=r"slabyard\[sweep\]") as told:
        list(executors.cluster([], "tcp://127.0.0.1:1"))
    assert told.value.status == MISSING
