"""The settings of an allocator on a trace: which ones are tried, which are best, which tunable matters, and which to use."""

from __future__ import annotations

import csv
import io
import json
import math
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path
from typing import Any

import handmade
import pytest
from handmade import complaint, slabyard

from slabyard.base import programs
from slabyard.base.errors import MISSING, UserError
from slabyard.base.table import render
from slabyard.replay.allocators import policies, set_in, without_effect
from slabyard.replay.workload import Options, Workload
from slabyard.tune import outcome, plot, search, space, tables, trials, tune

TRIAL = trials.Trial((0,), "slub", {})


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return handmade.busy(tmp_path_factory.mktemp("tune") / "busy.parquet")


def parsed(allocator: str, *vary: str) -> space.Space:
    return space.parse(allocator, vary, policies())


# ---- Settings ----------------------------------------------------------------------------------------------------


def test_ranges_and_lists() -> None:
    found = parsed("slub", "max_order=0..3,cpu_partial=auto,0..64:32,8", "merge=on,off")
    assert {axis.name: axis.values for axis in found.axes} == {
        "max_order": ("0", "1", "2", "3"), "cpu_partial": ("auto", "0", "32", "64", "8"), "merge": ("on", "off"),
    }  # fmt: skip
    assert found.size == 40 == len(set(found.settings()))
    assert found.spec((1, 0, 1)) == "slub:max_order=1,merge=off", "auto is what is left out"
    assert parsed("slub:min_partial=3", "max_order=1,2").spec((1,)) == "slub:min_partial=3,max_order=2"


def test_which_kernel_it_is_is_not_varied_unasked() -> None:
    """No setting makes one version of a kernel another one."""
    assert not {"linux", "tiny", "usercopy"} & {axis.name for axis in parsed("slub").axes}
    assert [axis.name for axis in parsed("slub", "linux=6.12,7.0").axes] == ["linux"]


def test_without_vary_every_tunable_is_tried() -> None:
    found = parsed("slab:colour=off")
    tunables = {one["name"] for policy in policies() if policy["name"] == "slab" for one in policy["tunables"]}
    assert {axis.name for axis in found.axes} == tunables - {"colour", "classes"} and found.held == ("classes",)
    assert all(len(axis.values) > 1 for axis in found.axes)
    assert [axis.values for axis in parsed("slob").axes] == [("next", "first", "best")], (
        "log_every changes nothing, and nothing else is left"
    )
    assert parsed("slab", "classes=linux,fine").axes[0].values == ("linux", "fine")


def test_what_changes_nothing_is_not_tried() -> None:
    found = tune.check("slub", [], 10**9, kernel=7 * 256)
    assert {axis.name for axis in found.axes} == {
        "min_order", "max_order", "min_objects", "min_partial", "merge", "sheaf_capacity", "barn_full",
    }  # fmt: skip
    assert found.idle == ("cpu_partial",) and set(found.held) == {"classes", "harden", "linux", "tiny", "usercopy"}
    assert tune.check("slub:linux=6.1", [], 10**9, kernel=7 * 256).idle == ("usercopy", "sheaf_capacity", "barn_full")
    assert "cpu_partial" in {axis.name for axis in tune.check("slub", [], 10**9).axes}, "of an unknown kernel as of 6.1"
    with pytest.raises(UserError, match="nothing is left to vary"):
        tune.check("bonwick:percpu=0,magazine=off,colour=on,working_set_seconds=1", [], 10)


@pytest.mark.parametrize(
    "spec",
    [
        "slub:linux=6.1", "slub:tiny=on", "slub:linux=6.12,merge=off", "slub:linux=7.0", "slub:linux=7.0,sheaf_capacity=0",
        "slub:linux=7.0,harden=links",
    ],
)  # fmt: skip
def test_a_tunable_without_effect_changes_no_figure(busy: Path, spec: str) -> None:
    tunables = {one["name"]: one for policy in policies() if policy["name"] == "slub" for one in policy["tunables"]}
    idle = without_effect(spec)
    assert idle and not set(idle) & set(set_in(spec))
    with Workload(busy, Options()) as workload:
        server = workload.settings()
        usual = server.ask(spec)
        for name in idle:
            for value in tunables[name]["choices"] or ("0", "1", "64"):
                answer = server.ask(f"{spec},{name}={value}")
                assert answer == usual or "6.1 has no SLUB_TINY" in answer["refused"], (name, value)
        server.close()


def test_a_replay_says_that_a_tunable_has_no_effect(busy: Path) -> None:
    for verb in (["replay", busy, "--runs", "1"], ["replay", busy, "--proc", "slabinfo"], ["compare", busy, "--runs", "1"]):
        word = "--allocator" if verb[0] == "replay" else "--allocators"
        done = slabyard(*verb, word, "slub:tiny=on,linux=6.18,cpu_partial=4,max_order=0")
        assert done.returncode == 0, done.stderr
        assert done.stderr.count("no effect") == 1 and "cpu_partial and linux have no effect" in done.stderr
        assert "no effect" not in slabyard(*verb, word, "slub:cpu_partial=4").stderr


@pytest.mark.parametrize(
    ("allocator", "vary", "said"),
    [
        ("slub", "max_order", "no list of values"), ("slub", "max_order=", "no list of values"),
        ("slub", "max_order=3..1", "no range"), ("slub", "max_order=0..99", "cannot be 11"),
        ("slub", "max_order=a", "it can be auto, or 0 to 10"), ("slub", "fit=best", "not have"),
        ("slub", "max_order=1,max_order=2", "twice"), ("slub:max_order=1", "max_order=2", "--allocator sets"),
        ("bsd44", "a=1", "no tunables"),
        ("malloc:system", "a=1", "only an allocator of slabyard's"), ("nosuch", "a=1", "only an allocator"),
        ("slob", "fit=worst", "one of"),
    ],
)  # fmt: skip
def test_what_cannot_be_varied(busy: Path, allocator: str, vary: str, said: str) -> None:
    assert said in complaint(slabyard("tune", busy, "--allocator", allocator, "--vary", vary), 2)


# ---- The frontier ------------------------------------------------------------------------------------------------


class Made(trials.Trial):
    """A trial with goals of its own."""

    @property
    def goals(self) -> tuple[float, ...]:
        return self.exact["goals"]  # type: ignore[no-any-return]


def made(*goals: float, spec: str = "slub") -> Made:
    return Made((hash(spec),), spec, {}, {"goals": goals})


def test_the_frontier_is_what_nothing_beats() -> None:
    listed = [made(3, 1, 0), made(1, 3, 0), made(2, 2, 0), made(2, 3, 0), made(3, 3, 0), made(3, 3, 9), made(1, 3, 0, spec="again")]
    assert [one.goals for one in trials.frontier(listed)] == [(1, 3, 0), (2, 2, 0), (3, 1, 0)]
    slow = [
        one for one in listed
        if not any(other.goals != one.goals and all(a <= b for a, b in zip(other.goals, one.goals, strict=True)) for other in listed)
    ]  # fmt: skip
    assert {one.goals for one in slow} == {one.goals for one in trials.frontier(listed)}


def found_with(default: Made, *others: Made) -> outcome.Outcome:
    axes = (space.Axis("max_order", ("0", "1")),)
    return outcome.Outcome("w", 2, "empty", space.Space("slub", axes), default, list(others), True)


def test_what_to_use_is_worse_in_nothing() -> None:
    default = made(100, 50, 2)
    assert found_with(default, default, made(90, 60, 2), made(120, 10, 2)).best is default
    better = made(99, 40, 2, spec="slub:max_order=1")
    assert found_with(default, default, made(90, 51, 2), better).best is better
    tie = made(100.9, 40, 2, spec="slub:max_order=1")
    assert found_with(default, default, tie).best is tie, "less than 1% of memory is a tie"
    assert found_with(default, default, made(101.1, 40, 2)).best is default


def test_a_linux_kernel_is_told() -> None:
    told = outcome.kernel_commands(replace(TRIAL, spec="slub:max_order=1,cpu_partial=8,merge=off"))
    assert told == ["boot parameters: slub_max_order=1 slab_nomerge", "for f in /sys/kernel/slab/*/cpu_partial; do echo 8 >$f; done"]
    assert outcome.kernel_commands(replace(TRIAL, spec="slqb:hiwater=9")) == []
    told = outcome.kernel_commands(replace(TRIAL, spec="slub:debug=FZ,dentry;,max_order=1"))  # a value that goes on behind commas
    assert told == ["boot parameters: slub_max_order=1"]


# ---- Replays -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [Options(), Options(locks=True, environment=False), Options(nodes=2, locks=True, asked_every=0.01)])
def test_many_settings_by_one_process_are_what_single_replays_are(busy: Path, options: Options) -> None:
    specs = ["slub", "slub:max_order=0", "slob:fit=best", "bonwick", "slub:linux=7.0,sheaf_capacity=8", "slab", "yard"]
    with Workload(busy, options) as workload:
        server = workload.settings()
        for spec in specs * 2:
            brief, whole = server.ask(spec)["exact"], workload.exact(spec)
            assert brief == {name: whole[name] for name in brief} and "series" not in brief
            assert {"held_pages_peak", "fast_path_share", "fragmentation_events", "pages_taken"} <= set(brief)
        for wrong in ("slub:nosuch=1", "", "malloc:system", "nosuch"):
            assert server.ask(wrong)["refused"]
        assert "exact" in server.ask("slub"), "what was refused ended nothing"
        server.close()


def test_what_has_answered_all_ends_by_itself(busy: Path) -> None:
    """Only then is its processor time known."""
    with Workload(busy, Options()) as workload:
        with trials.Trials(workload, parsed("slub", "max_order=0,1"), 2, lambda _: None) as tried:
            tried.run([(0,), (1,)])
        assert [server._process.returncode for server in tried._servers] == [0, 0]
        with pytest.raises(KeyboardInterrupt), trials.Trials(workload, tried.space, 1, lambda _: None) as tried:
            raise KeyboardInterrupt
        assert tried._servers[0]._process.returncode not in (0, None), "whoever is interrupted waits for nobody"


def test_settings_without_memory_are_refused_alone(tmp_path: Path) -> None:
    build = handmade.Builder()
    for number in range(2000):
        build.kmalloc(number, 4000)
    path = build.write(tmp_path / "large.parquet")
    with Workload(path, Options(memory=8 << 20, start="empty", allow_failures=False)) as workload:
        server = workload.settings()
        answers = [server.ask(spec) for spec in ("slub:min_order=3", "slub")]
        assert all(("refused" in one) != ("exact" in one) for one in answers)
        server.close()


def test_every_setting(busy: Path) -> None:
    words = ["tune", busy, "--allocator", "slub", "--vary", "max_order=0..2,cpu_partial=0,8", "--runs", "1"]
    done = slabyard(*words)
    assert done.returncode == 0, done.stderr
    assert "slub on busy: all 6 settings" in done.stdout and "Which tunable matters" in done.stdout
    assert re.search(r"^Use slub", done.stdout, re.MULTILINE)
    found = json.loads(slabyard(*words, "--format", "json").stdout)
    assert len(found["trials"]) == found["settings"] == 6 and found["complete"] is True
    assert {one["objective"] for one in found["sobol"]} <= set(trials.OBJECTIVES)
    rows = list(csv.DictReader(io.StringIO(slabyard(*words, "--format", "csv", "--jobs", "1").stdout)))
    assert [row["spec"] for row in rows] == [one["spec"] for one in found["trials"]]
    assert [float(row["memory"]) for row in rows] == [one["memory"] for one in found["trials"]], "the same with one process"
    with Workload(busy, Options()) as workload:
        for row in rows:
            assert float(row["memory"]) == workload.exact(row["spec"])["held_pages_peak"]


def test_a_search_finds_the_same_every_time(busy: Path) -> None:
    words = ["tune", busy, "--allocator", "slub", "--trials", "120", "--runs", "0", "--format", "json"]
    first, second = (json.loads(slabyard(*words).stdout) for _ in range(2))
    assert first == second and first["complete"] is False
    assert 40 < len(first["trials"]) <= 240 and len(first["frontier"]) >= 1
    assert not {"tiny", "linux", "sheaf_capacity"} & set(first["vary"])
    held, idle = first["notes"][:2]
    assert "tiny" in held and "sheaf_capacity" in idle
    best = min(one["memory"] for one in first["trials"] if "memory" in one)
    assert best <= first["default"]["memory"]


def test_sensitivity_finds_what_matters() -> None:
    """If one tunable alone changes a measure, the whole difference is that tunable's."""
    axes = (space.Axis("much", tuple("0123")), space.Axis("nothing", tuple("01234567")))

    class Known(trials.Trials):
        def __init__(self) -> None:
            self.space = space.Space("slub", axes)

        def run(self, settings: Any) -> list[trials.Trial]:
            return [made(float(one[0]), 1.0, 0.0) for one in settings]

    found = {one.tunable: one for one in search.sensitivity(Known(), 256)}
    assert math.isclose(found["much"].st, 1, abs_tol=0.1) and math.isclose(found["nothing"].st, 0, abs_tol=0.05)
    assert {one.objective for one in found.values()} == {"memory"}, "what does not vary has no variance"
    assert search.sample_size(Known().space, False, 1000) == 128 and search.sample_size(Known().space, False, 20) == 0


def test_the_plot(busy: Path, tmp_path: Path) -> None:
    words = ["tune", busy, "--allocator", "slub", "--vary", "max_order=0..2,min_partial=0,8", "--runs", "0"]
    done = slabyard(*words, "--plot", tmp_path / "p.svg")
    assert done.returncode == 0, done.stderr
    root = ET.parse(tmp_path / "p.svg").getroot()
    names = {"s": "http://www.w3.org/2000/svg"}
    dots = [one for one in root.findall("s:circle", names) if one.find("s:title", names) is not None]
    assert len(dots) == 6 and any("default" in (text.text or "") for text in root.findall("s:text", names))
    for dot in dots:
        assert 0 <= float(dot.get("cx") or -1) <= plot.WIDTH and 0 <= float(dot.get("cy") or -1) <= plot.HEIGHT


def test_ticks_are_round() -> None:
    assert plot.ticks(0, 100) == [0, 20, 40, 60, 80, 100]
    assert plot.ticks(283.1, 301.9) == [285, 290, 295, 300]


def test_one_setting_alone_can_be_drawn_and_shown() -> None:
    default = made(100, 0, 0)
    found = found_with(default, default)
    assert plot.picture(found).startswith("<svg") and "Use slub as it is" in render(tables.tables(found), "text")


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="needs valgrind")
def test_instructions_of_what_is_left_are_counted(busy: Path) -> None:
    words = ["tune", busy, "--allocator", "slub", "--vary", "max_order=0,1", "--runs", "0", "--cost"]
    found = json.loads(slabyard(*words, "--format", "json").stdout)
    assert found["counted"]["slub"]["instructions"] > 10 and found["timed"] == {}
    assert "instructions/op" in slabyard(*words).stdout


# ---- What is missing ---------------------------------------------------------------------------------------------


def test_a_search_without_optuna_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(UserError, match=r"pip install 'slabyard\[tune\]'") as told:
        tune.check("slub", [], 10)
    assert told.value.status == MISSING
    assert tune.check("slub", ["max_order=0,1"], 10).size == 2, "all of few settings need no search"


def test_without_salib_all_else_is_there(busy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "SALib", None)
    found = tune.tune(busy, Options(), parsed("slub", "max_order=0,1"), 10, 1, 0)
    assert found.indices == [] and any("slabyard[tune]" in note for note in found.notes)


def test_a_process_that_dies_is_one_line(busy: Path) -> None:
    with Workload(busy, Options()) as workload, trials.Trials(workload, parsed("slub", "max_order=0,1"), 1, lambda _: None) as tried:
        programs.kill_children()
        for server in tried._servers:
            server._process.wait()  # with it ends its own child, which could answer until then
        with pytest.raises(UserError):
            tried.run([(0,)])


def test_the_command_does_without_pandas_but_for_salib(busy: Path) -> None:
    pytest.importorskip("pandas")
    pytest.importorskip("SALib")
    script = (
        f"import sys; sys.argv = ['slabyard', 'info', '--caches', {str(busy)!r}]\n"
        "from slabyard.__main__ import run; from slabyard.tune import search\n"
        "print(run(), 'pandas' in sys.modules, search.has_salib(), 'pandas' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "0 False True True", done.stderr
