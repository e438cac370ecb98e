"""bench-malloc: its statistics and tables, the proof that a library serves, wrong answers, and missing tools."""

from __future__ import annotations

import importlib
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from slabyard.base import programs as own

BENCH = Path(__file__).resolve().parent.parent.parent / "bench" / "malloc"


def bench(*words: object) -> subprocess.CompletedProcess[str]:
    generator = own.program("slabyard-threads")
    return subprocess.run(
        [sys.executable, str(BENCH / "run.py"), "--generator", generator, *map(str, words)], capture_output=True, text=True, timeout=300
    )


@pytest.fixture
def tables(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(BENCH))
    return importlib.import_module("tables")


def made(samples: dict[str, dict[str, list[float]]], faults: tuple[str, ...] = ()) -> dict[str, Any]:
    """A result as run.py makes it, with these seconds; memory is a thousand times them."""
    names = list(dict.fromkeys(name for by in samples.values() for name in by))
    return {
        "machine": {"cpu": "a processor", "cpus": 2, "memory_gib": 4, "kernel": "6.1", "arch": "x86_64", "libc": "2.36"},
        "allocators": dict.fromkeys(names, "1.0"),
        "programs": dict.fromkeys(samples, "a program"),
        "samples": {
            program: {name: [{"seconds": v, "cpu_seconds": v, "peak_kb": 1000 * v} for v in values] for name, values in by.items()}
            for program, by in samples.items()
        },
        "faults": list(faults),
    }


def test_means_ranks_and_losses(tables: Any) -> None:
    found = made(
        {
            "one": {"glibc": [2.0, 1.0, 3.0], "peer": [1.0, 1.0, 1.0], "slabyard:slub": [4.0, 4.0, 4.0]},
            "two": {"glibc": [1.0], "peer": [8.0], "slabyard:slub": [1.0]},
            "half": {"glibc": [1.0], "peer": [1.0], "slabyard:slub": []},
        },
        ("half under slabyard:slub: ended by signal 11",),
    )
    # Over the two programs that every library completed: sqrt(1/2 * 8) and sqrt(2 * 1).
    assert tables.geometric_means(found, "seconds") == pytest.approx({"glibc": 1.0, "peer": 2.0, "slabyard:slub": 2**0.5})
    assert tables.losses(found, "seconds")[0] == ("one", "slabyard:slub", "peer", 4.0, (4.0, 4.0))
    text = tables.text(found, "wall")
    assert "FAILED: half under slabyard:slub" in text and "slabyard:slub on one: 4.00 times peer (4.00 to 4.00)" in text
    rank = next(line for line in text.splitlines() if line.startswith("rank")).split()
    assert rank == ["rank", "1", "3", "2"]
    assert "| half | 1.00 s | 1.00 | failed |" in tables.markdown(found, "wall")


def test_ratios_are_of_runs_of_one_round(tables: Any) -> None:
    """A machine that takes twice the time in some rounds; one allocator failed in the last round."""
    found = made(
        {
            "slowed": {"glibc": [1.0, 1.0, 1.0, 2.0, 2.0], "peer": [0.9, 0.9, 1.8, 1.8, 1.8], "slabyard:slub": [0.8, 1.6, 0.8, 1.6, 1.6]},
            "failing": {"glibc": [1.0, 1.0, 2.0], "peer": [2.0, 2.0, 4.0], "slabyard:slub": [1.5, 1.5]},
        }
    )
    by = tables.ratios(found, "seconds")
    assert by["slowed"] == pytest.approx({"glibc": 1.0, "peer": 0.9, "slabyard:slub": 0.8})  # of medians: 1.8 and 1.6
    assert by["failing"] == pytest.approx({"glibc": 1.0, "peer": 2.0, "slabyard:slub": 1.5})
    assert {loss.program: (loss.peer, round(loss.ratio, 3)) for loss in tables.losses(found, "seconds")} == {
        "slowed": ("peer", 0.889), "failing": ("glibc", 1.5),
    }  # fmt: skip
    markdown = tables.markdown(found, "wall")
    assert "| failing | +0..+100 | +0..+0 | +0..+0 |" in markdown and "; 3 to 5 counted rounds." in markdown


def test_docs_keep_what_stands_around_the_markers(tables: Any, tmp_path: Path) -> None:
    path = tmp_path / "benchmarks.md"
    path.write_text(f"before\n{tables.BEGIN}\nold\n{tables.END}\nafter\n")
    tables.write_docs(path, "new")
    assert path.read_text() == f"before\n{tables.BEGIN}\n\nnew\n\n{tables.END}\nafter\n"
    assert tables.BEGIN in (BENCH.parent.parent / "docs" / "benchmarks.md").read_text()


def test_merging(tables: Any, tmp_path: Path) -> None:
    for number, seconds in enumerate((1.0, 2.0)):
        (tmp_path / f"{number}.json").write_text(json.dumps(made({"one": {"glibc": [seconds]}, f"p{number}": {"glibc": [5.0]}})))
    merged = tables.merged([tmp_path / "0.json", tmp_path / "1.json"])
    assert set(merged["programs"]) == {"one", "p0", "p1"} and merged["samples"]["one"]["glibc"][0]["seconds"] == 2.0


def test_merging_what_is_cut_off_or_something_else_is_one_line(tmp_path: Path) -> None:
    whole = json.dumps(made({"one": {"glibc": [1.0]}}))
    for number, content in enumerate((whole[: len(whole) // 2], "[]", "{}", "\xff")):
        path = tmp_path / f"{number}.json"
        path.write_bytes(content.encode("latin-1"))
        done = bench("--merge", path)
        assert (done.returncode, done.stderr) == (2, f"bench-malloc: {path}: not what --json of bench-malloc wrote, or cut off\n")


def test_a_run_of_two_programs(tmp_path: Path) -> None:
    done = bench("--work", tmp_path / "work", "--programs", "scratch,awk" if shutil.which("gawk") else "scratch", "--allocators", "glibc",
                 "--rounds", "1", "--json", tmp_path / "out.json")  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "out.json").read_text())
    for program in found["programs"]:
        (sample,) = found["samples"][program]["glibc"]
        assert sample["seconds"] > 0 and sample["peak_kb"] > 500 and not found["faults"]
    assert "geom. mean" in done.stdout and "Peak resident memory" in done.stdout


def test_another_malloc_than_the_one_meant_is_noticed(tmp_path: Path) -> None:
    """A library without a malloc leaves the C library's in place: comparing it would compare glibc."""
    empty = tmp_path / "libempty.so"
    source = tmp_path / "empty.c"
    source.write_text("int nothing;\n")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", empty, source], check=True)
    done = bench("--work", tmp_path / "work", "--programs", "scratch", "--allocators", "slabyard:yard", "--ours", empty, "--rounds", "1")
    assert done.returncode == 1 and "is served by" in done.stderr and "FAILED: scratch under slabyard:yard" in done.stdout


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    words = ("--work", tmp_path / "work", "--programs", "scratch", "--rounds", "1", "--ours", tmp_path / "nowhere.so")
    done = bench(*words, "--allocators", "slabyard:yard")
    assert done.returncode == 4 and "slabyard:yard is missing" in done.stderr
    done = bench(*words, "--allocators", "nobody")
    assert done.returncode == 2 and "no allocator is called nobody" in done.stderr
    assert bench(*words, "--programs", "nothing").returncode == 2
    assert bench(*words, "--also", "before").stderr.endswith("bench-malloc: --also before: it is NAME=PATH\n")
    done = bench(*words, "--also", f"before={tmp_path}/gone.so", "--allocators", "slabyard:before")
    assert done.returncode == 4 and f"slabyard:before is missing; {tmp_path}/gone.so is no file" in done.stderr
    listed = bench("--work", tmp_path / "work", "--list", "--allocators", "glibc,slabyard:yard").stdout
    assert "redis" in listed and "slabyard:yard" in listed


def test_a_folder_that_cannot_be_is_one_line() -> None:
    done = bench("--work", "/proc/none", "--programs", "scratch", "--allocators", "glibc")
    assert done.returncode == 2 and done.stderr == "bench-malloc: /proc/none: no such file\n"


def test_costs_are_told_apart_by_files_that_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each path in a pattern is there, and each source has its part."""
    monkeypatch.syspath_prepend(str(BENCH))
    parts: dict[str, str] = importlib.import_module("cost").PARTS
    root = BENCH.parents[1]
    for path in re.findall(r"(?:core|library|malloc)/[\w/]*", " ".join(parts.values())):
        assert list(root.glob(f"{path}*")), path
    for folder in ("core", "library", "malloc", "include"):
        for source in (root / folder).rglob("*.[ch]"):
            assert any(re.match(part, f"{source.relative_to(root)} function") for part in parts.values()), source
