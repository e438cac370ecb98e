"""What a replay costs in instructions and cache misses, as valgrind counts them: the same each time, and as expected."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import handmade
import pytest
from handmade import complaint, slabyard

from slabyard.base.errors import UserError
from slabyard.base.files import cache_home
from slabyard.replay import cost
from slabyard.report import comparison
from slabyard.base.table import render

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")
PAIRS = 2000

needs_valgrind = pytest.mark.skipif(
    not os.environ.get("CI") and not (shutil.which("valgrind") and shutil.which("addr2line")), reason="valgrind is not installed"
)


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return handmade.busy(tmp_path_factory.mktemp("traces") / "busy.parquet")


@pytest.fixture(scope="module")
def hot(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One object of a cache, allocated and freed again and again, beside one that stays."""
    builder = handmade.Builder()
    builder.metadata.caches = [handmade.cache("hot", 64)]
    builder.cache_alloc(0, 0)
    for number in range(1, PAIRS + 1):
        builder.cache_alloc(number, 0)
        builder.cache_free(number, 0)
    return builder.write(tmp_path_factory.mktemp("traces") / "hot.parquet")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Tests share nothing."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache/slabyard/cost"


def counted(trace: Path, allocator: str, *words: str, **options: Any) -> dict[str, Any]:
    done = slabyard("replay", trace, "--allocator", allocator, "--cost", "--format", "json", *words, **options)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)["cost"]
    return found


@needs_valgrind
@pytest.mark.parametrize("allocator", ["yard", "slob:fit=best", "bonwick:magazine=on", "malloc:system"])
def test_it_is_the_same_wherever_it_runs(busy: Path, tmp_path: Path, allocator: str) -> None:
    elsewhere = tmp_path / "a folder with a longer name"
    elsewhere.mkdir()
    (elsewhere / ".valgrindrc").write_text("--tool=memcheck\n")
    other = {**os.environ, "TMPDIR": str(elsewhere), "HOME": str(elsewhere), "LENGTH": "x" * 5000, "VALGRIND_OPTS": "--trace-children=yes"}
    other["XDG_CACHE_HOME"] = str(elsewhere / "cache")
    first = counted(busy, allocator, "--cost-functions", "50")
    assert first["instructions"] > 0 and first["operations"] == 100 + 100 + 75 + 75
    assert json.dumps(first) == json.dumps(counted(busy, allocator, "--cost-functions", "50", env=other, cwd=elsewhere))
    assert not list(elsewhere.glob("slabyard-*")), "nothing is left behind"


@needs_valgrind
def test_what_was_counted_is_kept(busy: Path, cache: Path) -> None:
    first = counted(busy, "slub")
    (file,) = cache.iterdir()
    file.write_text(json.dumps({**first, "instructions": 1}))
    assert counted(busy, "slub")["instructions"] == 1
    for text in ("", "[]", "{", "{}"):
        file.write_text(text)
        assert counted(busy, "slub") == first == json.loads(file.read_text())
    counted(busy, "slub", "--cost-functions", "1")
    counted(busy, "slub", "--start", "empty", "--cpus", "1")
    assert len(list(cache.iterdir())) == 3
    counted(busy, "malloc:system")
    assert len(list(cache.iterdir())) == 3
    assert counted(busy, "slub", env={**os.environ, "XDG_CACHE_HOME": "/dev/null/none"}) == first


def test_a_user_without_a_home_keeps_nothing(busy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    handmade.make_homeless(monkeypatch)
    assert cost._place(busy, []) is None
    with pytest.raises(UserError, match="no home folder to keep things in; have XDG_CACHE_HOME name a folder"):
        cache_home()
    monkeypatch.setenv("HOME", "/somewhere")
    assert cache_home() == Path("/somewhere/.cache/slabyard")


def test_what_was_used_least_recently_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cost, "MOST_KEPT", 3)
    files = [tmp_path / f"{number}.json" for number in range(6)]
    for age, file in enumerate(reversed(files[:5])):
        file.write_text('{"instructions": 1}')
        os.utime(file, (1_000_000 - age, 1_000_000 - age))
    assert cost._kept(files[1]) == {"instructions": 1}
    cost._keep(files[5], {"instructions": 2})
    assert sorted(tmp_path.iterdir()) == [files[1], files[4], files[5]]


@needs_valgrind
@pytest.mark.parametrize("allocator", ["yard", "slub", "slab", "slqb"])
def test_a_hot_pair_is_what_single_steps_count(hot: Path, allocator: str) -> None:
    """docs/cost.md has the same pair on a thread's own slot, counted by bench/count_instructions."""
    found = counted(hot, allocator)
    table = (ROOT / "docs/cost.md").read_text().split("<!-- policies -->")[1]
    stepped = re.findall(rf"^\| {allocator} \| \d+ \+ \d+ = (\d+) \|", table, re.MULTILINE)[0]
    assert found["operations"] == 2 * PAIRS + 1
    assert 0.5 * int(stepped) < 2 * found["parts"]["fast"]["instructions"] < 1.6 * int(stepped), "a replay names the slot in each call"
    assert found["instructions"] == pytest.approx(found["parts"]["fast"]["instructions"], rel=0.3), "hardly anything else happens"
    assert found["l1_misses"] < 0.3


@needs_valgrind
def test_the_readme_says_what_slab_and_slub_cost() -> None:
    """Within the difference that another compiler may make."""
    said = re.search(
        r"`slab` costs least, (\d+) instructions and ([\d.]+) cache misses.*?`slub` takes (\d+) and ([\d.]+) ", README, re.DOTALL
    )
    assert said
    for allocator, instructions, misses in (("slab", said[1], said[2]), ("slub", said[3], said[4])):
        found = counted(ROOT / "traces/hackbench.parquet", allocator)
        assert (found["instructions"], found["l1_misses"]) == pytest.approx((float(instructions), float(misses)), rel=0.05)


@needs_valgrind
def test_parts_and_functions_add_up(busy: Path) -> None:
    found = counted(busy, "slub", "--cost-functions", "10000")
    for name in cost.FIGURES:
        assert sum(part[name] for part in found["parts"].values()) == pytest.approx(found[name], abs=0.01)
        assert sum(one[name] for one in found["functions"]) == pytest.approx(found[name], abs=0.05)
    assert all(found["parts"][part]["instructions"] > 0 for part in cost.PARTS)
    named = {one["name"]: one for one in found["functions"]}
    assert named["sy_kmalloc"] | {"instructions": 0, "l1_misses": 0, "ll_misses": 0} == {
        "name": "sy_kmalloc", "file": "core/heap.c", "part": "fast", "instructions": 0, "l1_misses": 0, "ll_misses": 0
    }  # fmt: skip
    assert {named[name]["part"] for name in ("sy__lock", "sy__unlock")} == {"locks"}
    assert not any(one["file"] and one["file"].startswith("replay/") for one in found["functions"])
    assert [one["instructions"] for one in found["functions"]] == sorted((one["instructions"] for one in found["functions"]), reverse=True)


@needs_valgrind
def test_of_a_malloc_all_is_counted(busy: Path) -> None:
    found = counted(busy, "malloc:system", "--cost-functions", "3")
    assert found["parts"] is None and found["instructions"] > 10
    assert all(one["part"] is None and one["file"] is None for one in found["functions"])


@needs_valgrind
def test_a_comparison_ranks_by_it(busy: Path, tmp_path: Path) -> None:
    file = tmp_path / "records.json"
    done = slabyard("compare", busy, "--allocators", "slub,svr4", "--runs", "1", "--cost", "--export-json", file)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    table = lines.index("busy: instructions and cache misses of an operation")
    assert lines[table + 2].split() == ["allocator", "instr", "L1", "LL", "fast", "slow", "pages", "locks"]
    slub, svr4 = (json.loads(file.read_text())[place]["cost"]["instructions"] for place in (0, 1))
    assert slub < svr4 and lines[table + 4].split()[:2] == ["slub", f"{slub:,.1f}"]
    ranks = [line.split() for line in lines[lines.index(next(line for line in lines if line.startswith("Ranking"))) :]]
    assert ["cost", "slub", "1"] in ranks and ["svr4", "2"] in ranks
    assert f"slub takes fewest ({slub:,.0f} instructions an operation" in " ".join(lines)
    head, *rows = slabyard("compare", busy, "--allocators", "slub", "--runs", "1", "--cost", "--format", "csv").stdout.splitlines()
    assert {"cost_instructions", "cost_l1_misses", "cost_ll_misses", "cost_pages_instructions"} <= set(head.split(","))
    assert {len(row.split(",")) for row in rows} == {len(head.split(","))}


@needs_valgrind
def test_the_report_has_it(busy: Path, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    done = slabyard("compare", busy, "--allocators", "slub,slob", "--runs", "1", "--cost", "--report", file)
    assert done.returncode == 0, done.stderr
    assert "Counted, per operation" in file.read_text()


def test_without_the_tool_it_is_one_line(busy: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "PATH": str(tmp_path)}
    for words in (["replay", busy, "--allocator", "slub", "--cost"], ["compare", busy, "--cost-functions", "3"]):
        line = complaint(slabyard(*words, env=environment), 4)
        assert line.endswith("install it (Debian: apt install valgrind binutils)")


def test_it_goes_with_measures_alone(busy: Path) -> None:
    for words in (["--proc", "slabinfo", "--cost"], ["--slabinfo", "--cost-functions", "3"]):
        assert words[-1 if words[-1] == "--cost" else -2] in complaint(slabyard("replay", busy, "--allocator", "slub", *words), 2)


def test_a_record_without_it_shows_none() -> None:
    assert "instr" not in render(comparison.tables([{"run": RUN, "exact": {}, "timed": {}}]), "text")


RUN = {"allocator": "slub", "tunables": {}, "workload": "w", "trace_sha256": "0", "cpus": 1, "nodes": 1, "start": "empty", "lost": 0}


def test_what_callgrind_writes_is_read() -> None:
    text = """\
positions: instr
events: Ir Dr Dw I1mr D1mr D1mw ILmr DLmr DLmw

ob=/bin/replay
fl=/src/core/heap.c
fn=sy_kmalloc
0x10 3 1 1 1 0 2 1
0x13 1
cfi=/src/core/policies/slub/slub.c
cfn=entry_kmalloc
calls=2 0x40
0x13 20 2
cob=/lib/libc.so.6
cfn=memset
calls=1 0x900
0x14 7 0 3

fn=other
0x10 1
"""
    profile = cost.read(text.splitlines())
    assert profile.costs["/bin/replay"] == {0x10: [4, 3, 1], 0x13: [1, 0, 0]}
    assert profile.calls["/bin/replay"] == [
        cost.Call(0x13, 0x40, "/bin/replay", "entry_kmalloc", (20, 0, 0)),
        cost.Call(0x14, 0x900, "/lib/libc.so.6", "memset", (7, 0, 0)),
    ]


def test_locks_are_functions_of_the_core() -> None:
    """The core still has each function whose cost is told apart by its name."""
    core = "\n".join(path.read_text() for path in sorted((ROOT / "core").rglob("*.[ch]")))
    for name in cost.LOCK_NAMES:
        assert re.search(rf"\b{name}\w*\(", core), name
