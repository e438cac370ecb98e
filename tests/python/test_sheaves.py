"""`slabyard study sheaves`: locks that replays count, the traffic between CPUs, the choice of capacities, and docs/sheaves.md."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from slabyard.base.terminal import Progress
from slabyard.command.recording import sufficing
from slabyard.replay.workload import Options, Workload
from slabyard.study import document, papers, sheaves, sheaves_caches, sheaves_figures, sheaves_pairs, study
from slabyard.trace.file import Trace

ROOT = Path(__file__).parents[2]
FIND = ROOT / "traces/find.parquet"
SCALARS = ("held_pages_start", "held_pages_peak", "held_pages_end", "held_pages_mean", "fast_path_share", "requests", "frees")


# ---- Locks in replays --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sheaves_pairs.write(tmp_path_factory.mktemp("pairs") / "pairs.parquet", "pairs", 4, 2000)


def test_locks_are_counted_where_that_is_asked_for(pairs: Path) -> None:
    with Workload(pairs, Options(locks=True)) as counted, Workload(pairs, Options()) as plain:
        for spec in (sheaves_figures.OLD, sheaves_figures.NEW):
            found, other = counted.exact(spec), plain.exact(spec)
            assert {name: value for name, value in found.items() if name not in ("locks", "caches")} == {
                name: value for name, value in other.items() if name != "caches"
            }
            rows = [one for one in found["caches"] if "operations" in one]
            assert sum(one["operations"] for one in rows) == found["requests"] + found["frees"] == 12_000
            assert 0 < sum(one["locks"] for one in rows) <= found["locks"]
            assert sum(one["slow"] for one in rows) == round((1 - found["fast_path_share"]) * 12_000)
            assert not any("locks" in one for one in other["caches"]) and "locks" not in other


def test_an_allocator_under_one_lock_takes_it_for_each_operation(pairs: Path) -> None:
    with Workload(pairs, Options(locks=True)) as workload:
        assert 12_000 <= workload.exact("slob")["locks"] <= 12_000 * 1.01  # and a page more
        tiny, slqb = (workload.exact(spec)["locks"] for spec in ("slub:tiny=on", "slqb"))
        assert tiny > 6_000 > slqb  # each object comes from the node's list; frees into partial slabs take no lock


def test_a_barn_is_locked_once_for_a_sheaf(tmp_path: Path) -> None:
    """Objects of 256 bytes, 28 in a sheaf; 200, 60; 1,024, 12. One lock for a full sheaf that comes, one for one that goes."""
    path = sheaves_pairs.write(tmp_path / "pairs.parquet", "pairs", 2, 50_000, waits=True)
    with Workload(path, Options(locks=True)) as workload:
        exact = workload.exact(f"{sheaves_figures.NEW},barn_full=4096")
    for (name, _), capacity in zip(sheaves_pairs.OBJECTS, (28, 60, 12), strict=True):
        row = next(one for one in exact["caches"] if one["name"] == name)
        assert row["slow"] / row["operations"] == pytest.approx(1 / capacity, rel=0.05)
        assert row["locks"] / row["operations"] == pytest.approx(1 / capacity, rel=0.1)


@pytest.mark.parametrize("spec", [sheaves_figures.OLD, sheaves_figures.NEW])
def test_figures_do_not_depend_on_the_pages_of_others(spec: str) -> None:
    with Workload(FIND, Options()) as whole, Workload(FIND, Options(environment=False)) as without:
        with_pages, alone = whole.exact(spec), without.exact(spec)
    assert [with_pages[name] for name in SCALARS] == [alone[name] for name in SCALARS]
    assert with_pages["environment_requests"] > 0 == alone["environment_requests"]


# ---- Traffic between CPUs ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "makers", "enders"), [("pairs", {0, 2}, {1, 3}), ("one", {0}, {1, 2, 3}), ("same", {0, 1, 2, 3}, None)]
)
def test_who_allocates_and_who_frees(tmp_path: Path, pattern: str, makers: set[int], enders: set[int] | None) -> None:
    path = sheaves_pairs.write(tmp_path / "t.parquet", pattern, 4, 600)
    with Trace(path) as trace:
        rows = [row for batch in trace.batches(["kind", "cpu", "object", "size"]) for row in batch.to_pylist()]
    made = {row["object"]: row["cpu"] for row in rows if row["kind"] == "kmem_cache_alloc"}
    freed = {row["object"]: row["cpu"] for row in rows if row["kind"] == "kmem_cache_free"}
    assert len(made) == len(freed) == 1800 and set(made.values()) == makers
    assert freed == made if enders is None else set(freed.values()) == enders
    if pattern == "pairs":
        assert all(freed[number] == cpu + 1 for number, cpu in made.items())


# ---- Judging -------------------------------------------------------------------------------------------------------------------


def test_an_interval_is_of_the_mean() -> None:
    assert sheaves_figures.interval([2.0, 2.0, 2.0]) == (2.0, 2.0, 2.0)
    mean, low, high = sheaves_figures.interval([float(value) for value in range(20)])
    assert mean == 9.5 and 6.5 < low < 7.5 and 11.5 < high < 12.5  # 5.77 / sqrt(20) * 1.96 = 2.53


def test_capacities_are_chosen_within_the_memory() -> None:
    busy = sheaves_caches._Curve(256, 10_000, {4: (2500.0, 100.0, 10.0), 28: (350.0, 50.0, 20.0), 60: (160.0, 20.0, 30.0)})
    idle = sheaves_caches._Curve(256, 10, {4: (3.0, 1.0, 10.0), 28: (2.0, 1.0, 20.0), 60: (1.0, 1.0, 30.0)})
    both = {"busy": busy, "idle": idle}
    assert sheaves_caches.choose(both, 40) == {"busy": 60, "idle": 4}
    assert sheaves_caches.choose(both, 60) == {"busy": 60, "idle": 60} and sheaves_caches.choose(both, 20) == {"busy": 4, "idle": 4}
    assert sheaves_caches.choose(both, 19) == {} and sheaves_caches.total(both, {"busy": 60, "idle": 4}, 2) == 40


def _recording(busy: str) -> dict[str, Any]:
    """Of `_by_capacity`: the busy cache has 1,000 operations, the fewer of them slow the larger its sheaves; the other one has none. Both
    hold a page more from 28 objects on."""

    def rows(capacity: int) -> dict[str, list[int]]:
        held = 8192 if capacity >= 28 else 4096
        return {name: [1000, 2400 // capacity, 240 // capacity, held, 512] if name == busy else [0, 0, 0, held, 512] for name in ("a", "b")}

    return {"caches": {str(one): rows(one) for one in sheaves_caches._OF_CACHES}, "of_rule": rows(28), "cpus": 2}


def test_capacities_are_judged_on_recordings_that_they_were_not_chosen_on() -> None:
    sizes = {"a": 512, "b": 512}
    alike = {str(number): _recording("a") for number in range(4)}
    for ops, slow, locks, kib, slow_chosen, locks_chosen, kib_chosen in sheaves_caches.held_out(alike, sizes).values():
        assert (ops, slow, locks) == (1000, 2400 // 28, 240 // 28) and slow_chosen < slow and locks_chosen < locks and kib_chosen <= kib
    halves = {str(number): _recording("ab"[number % 2]) for number in range(4)}
    judged = sheaves_caches.held_out(halves, sizes)
    assert list(judged) == ["0", "2", "1", "3"]
    for _, slow, _, kib, slow_chosen, _, kib_chosen in judged.values():  # what the other half needs is of no use here
        assert slow_chosen == 2400 // 4 > slow and kib_chosen <= kib


def test_a_class_of_kmalloc_is_not_charged_with_the_sheaves_of_others() -> None:
    bytes_of = {one: 99_000 if sheaves_caches.sheaf_bytes(one) == 512 else 4096 for one in sheaves_caches._OF_CACHES}
    of = {str(one): {"kmalloc-512": [9, 1, 1, held, 512], "bio-512": [9, 1, 1, 99_000, 512]} for one, held in bytes_of.items()}
    for capacity in sheaves_caches._OF_CACHES:
        assert sheaves_caches._slab_bytes(of, "kmalloc-512", capacity, 512) == 4096
        assert sheaves_caches._slab_bytes(of, "bio-512", capacity, 512) == 99_000


def test_draws_differ_and_each_is_the_same_again(tmp_path: Path) -> None:
    first, again, other = (sheaves._counted("pairs", 4, False, True, seed) for seed in (1, 1, 2))
    assert first == again != other and first.keys() == other.keys() == set(sheaves._LOCK_SPECS)


def test_the_rule_is_the_cores(tmp_path: Path) -> None:
    """Slow operations of a cache with sheaves of the rule's capacity are those of the rule."""
    with Workload(FIND, sheaves_figures.REPLAYS) as workload:
        rule = sheaves_figures.of_caches(workload.exact(sheaves_figures.NEW))
        for capacity in (12, 28, 32, 60):
            fixed = sheaves_figures.of_caches(workload.exact(f"{sheaves_figures.NEW},sheaf_capacity={capacity}"))
            same = [name for name, row in rule.items() if sheaves_caches.by_rule(name, row[4]) == capacity and row[0]]
            assert same and all(rule[name][:2] == fixed[name][:2] for name in same if not name.startswith("kmalloc"))
    assert [sheaves_caches.sheaf_bytes(capacity) for capacity in (4, 12, 28, 60, 124)] == [64, 128, 256, 512, 1024]


def test_a_quick_study_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "find.parquet").symlink_to(FIND)
    done = study.run(study.chosen("sheaves", None)[:2], True, None, Progress(0, quiet=True), lambda _: None, traces=tmp_path)
    capacity, fragmentation = (one.record["data"] for one in done)
    assert fragmentation["find"]["about"]["requests"] == 28_249 and len(capacity["slow"]) == 5 == len(capacity["capacities"])
    assert capacity["capacities"][0] == sheaves.RULE and all(a < b for a, b in zip(capacity["slow"][4], capacity["slow"][1], strict=True))
    assert capacity["memory"][0][1] == 0.0 and len(capacity["rules"]) == 1  # the rule, against itself
    one = fragmentation["find"]["found"][sheaves_figures.NEW]
    assert capacity["rules"]["find"] == {name: one[sheaves._FACTS.index(name)] for name in ("held", "grew", "ops", "slow", "locks")}
    assert all(seconds >= 0 for seconds in capacity["seconds"])
    assert sheaves._named(fragmentation)["find"]["found"][sheaves_figures.OLD]["partial"] > 0
    assert all(one.outcome.claims and one.outcome.notes for one in done)


# ---- The record, the document, the workloads -------------------------------------------------------------------------------------


def test_the_document_is_what_the_records_tell() -> None:
    done = study.recorded(papers.items(papers.OWN))
    text = (ROOT / "docs/sheaves.md").read_text()
    answers = sheaves.answers(done)
    assert text.startswith(f"# Sheaves: what they hold and what they spare\n\n{answers}\n"), "make docs writes it again"
    assert f"<!-- study begins -->\n\n{document.text(done)}\n\n<!-- study ends -->" in text, "make docs writes it again"
    for one in done:
        for picture in one.outcome.pictures[:1]:
            assert (ROOT / f"docs/sheaves/{one.item.name}.svg").read_text() == picture.svg, "make docs draws it again"


@dataclass
class Recorded:
    buffers: int
    written: int
    seconds: float


def test_lost_events_are_told_with_what_would_have_sufficed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    recorded = Recorded(buffers=2 << 20, written=100_000_000, seconds=2.0)
    told = sufficing(50_000, 950_000, recorded)  # type: ignore[arg-type]
    assert told.startswith("50,000 of 1,000,000 events were lost, at 500,000 a second, as buffers of 1 MiB for each CPU were full")
    assert "--buffers 8M would have held them, which takes 16 MiB" in told  # 1 MiB and 50,000 events of 105 bytes
    told = sufficing(50_000_000, 950_000, recorded)  # type: ignore[arg-type]
    assert "--buffers" not in told and told.endswith("record less, with --duration or --cgroup")


def test_buffers_that_perf_does_not_take_are_refused(tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "slabyard", "record", "--buffers", "4G", "-o", str(tmp_path / "t.parquet"), "--", "true"]
    done = subprocess.run(argv, capture_output=True, text=True)
    assert done.returncode == 2 and "'4G' is more than perf takes for each CPU, which is 2G" in done.stderr and not list(tmp_path.iterdir())


def test_a_folder_without_recordings_is_one_line(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "none"):
        argv = [sys.executable, "-m", "slabyard", "study", "sheaves", "--quick", "--traces", str(folder)]
        done = subprocess.run(argv, capture_output=True, text=True)
        assert done.returncode == 2 and done.stderr.startswith(f"slabyard: {folder}: no recordings (*.parquet) are there; "), done.stderr


def long(*words: str, path: str | None = None) -> subprocess.CompletedProcess[str]:
    script = ROOT / "traces/long.sh"
    return subprocess.run(["/bin/sh", str(script), *words], capture_output=True, text=True, env=None if path is None else {"PATH": path})


def test_long_workloads_by_name(tmp_path: Path) -> None:
    names = long("names").stdout.split()
    script = (ROOT / "traces/long.sh").read_text()
    prepared, _, runs = script.partition("\nrun() {")
    for part in (prepared, runs):
        labels = {name for found in re.findall(r"^\t([a-z_ |]+)\)", part, re.MULTILINE) for name in found.split(" | ")}
        assert set(names) <= labels
    assert len(names) >= 15
    for words in (("prepare", "nosuch"), ("nosuch",)):
        unknown = long(*words)
        assert unknown.returncode == 2 and unknown.stderr.startswith("long.sh: no workload is called nosuch; there are web ")
    for tool in ("dirname", "pwd"):
        (tmp_path / tool).symlink_to(f"/usr/bin/{tool}")
    missing = long("prepare", "vmas", path=str(tmp_path))
    assert missing.returncode == 3 and missing.stderr == "long.sh: vmas needs stress-ng, which is not installed; it is left out\n"
