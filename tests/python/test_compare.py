"""Comparisons: order of work, intervals, ranks, tables, records."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import handmade
import pytest
from handmade import slabyard

from slabyard.report import comparison
from slabyard.results import compare, measures, records
from slabyard.command.parsers import specs
from slabyard.base.errors import UserError
from slabyard.base.table import render
from slabyard.base.terminal import Progress


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("traces")
    return [handmade.busy(folder / name) for name in ("one.parquet", "two.parquet")]


@pytest.fixture(scope="module")
def found(traces: list[Path]) -> list[records.Record]:
    plan = compare.Plan(["slub", "slob:fit=best"], runs=6)
    with Progress(compare.steps(2, plan)) as progress:
        result = compare.compare(traces, plan, progress)
        assert progress.done == progress.total
    return result


def test_interval_of_the_median() -> None:
    assert measures.interval([3.0, 1.0]) is None
    assert measures.interval([3.0, 1.0, 2.0]) == (1.0, 3.0)  # 75%
    assert measures.interval([3.0, 1.0, 2.0, 5.0, 4.0]) == (1.0, 5.0)
    levels = {runs: measures.confidence([runs, 9]) for runs in (1, 3, 4, 5, 6, 20)}
    assert levels == {1: "95%", 3: "75%", 4: "88%", 5: "94%", 6: "95%", 20: "95%"}
    assert measures.interval([3.0, 1.0, 2.0, 6.0, 5.0, 4.0]) == (1.0, 6.0)
    assert measures.interval([float(i) for i in range(8)]) == (0.0, 7.0)
    assert measures.interval([float(i) for i in range(9)]) == (1.0, 7.0)
    # Of 20 samples: the 6th and the 15th (Conover, Practical Nonparametric Statistics, binomial table).
    assert measures.interval([float(i) for i in range(1, 21)]) == (6.0, 15.0)


def test_summary_of_repetitions() -> None:
    samples = [{"seconds": float(i), "events": 7, "resident_peak_kb": None} for i in (3, 1, 2, 6, 5, 4)]
    timed = records.summarise(samples, {"alloc_ns": {"median": 9}, "clock": "rdtsc"})
    assert timed["seconds"] == 3.5 and timed["intervals"] == {"seconds": [1.0, 6.0]} and timed["events"] == 7
    assert timed["samples"] == {"seconds": [3.0, 1.0, 2.0, 6.0, 5.0, 4.0]} and timed["runs"] == 6
    assert timed["alloc_ns"] == {"median": 9} and timed["resident_peak_kb"] is None


def test_specs_with_tunables_are_told_from_their_separator() -> None:
    assert specs("slub,slob:fit=best,log_every=9,malloc:system") == ["slub", "slob:fit=best,log_every=9", "malloc:system"]
    with pytest.raises(UserError):
        specs(",")


def test_records(found: list[records.Record]) -> None:
    assert [(r["run"]["workload"], r["run"]["allocator"]) for r in found] == [
        (name, spec) for name in ("one", "two") for spec in ("slub", "slob:fit=best", "recorded")
    ]
    slub, _, recorded = found[:3]
    assert slub["run"]["repetition"] == 6 and len(slub["timed"]["samples"]["seconds"]) == 6
    low, high = slub["timed"]["intervals"]["seconds"]
    assert low <= slub["timed"]["seconds"] <= high
    assert recorded["timed"] == {} and recorded["exact"]["fragmentation_events"] == 1
    assert recorded["run"]["kernel"] == "6.1.0-test" and len(recorded["exact"]["series"]["held_pages"]) >= 200
    assert recorded["exact"]["requests"] == slub["exact"]["requests"]
    first, second = found[0]["exact"], found[3]["exact"]
    assert json.dumps(first) == json.dumps(second), "the same trace gives the same bytes"


def test_recorded_kernel_follows_its_own_pages(tmp_path: Path) -> None:
    build = handmade.Builder()
    build.page_alloc(0, 3, owner="slab")
    build.page_alloc(1, 0, owner="environment")
    build.page_alloc(2, 2, owner="large")
    build.page_free(0, 3, owner="slab")
    build.snapshot("end", {"meminfo": "Slab: 16 kB\n"})
    plan = compare.Plan(["slub"], runs=1)
    with Progress(1) as progress:
        recorded = compare.compare([build.write(tmp_path / "t.parquet")], plan, progress)[-1]["exact"]
    assert (recorded["held_pages_peak"], recorded["held_pages_end"]) == (12, 4)
    assert recorded["snapshots"][0]["recorded_slab_kb"] == 16 and recorded["snapshots"][0]["held_pages"] == 4
    assert max(recorded["series"]["held_pages"]) == 12 and recorded["series"]["held_pages"][-1] == 4


def test_a_trace_without_page_events_tells_nothing_of_the_recorded_kernel(tmp_path: Path) -> None:
    builder = handmade.Builder()
    builder.kmalloc(0, 100)
    builder.kfree(0)
    done = slabyard("compare", builder.write(tmp_path / "t.parquet"), "--allocators", "slub", "--runs", "1", "--format", "json")
    assert done.returncode == 0, done.stderr
    assert [record["run"]["allocator"] for record in json.loads(done.stdout)] == ["slub"]


@pytest.mark.parametrize("recorded", [False, True])
def test_fallbacks_that_were_not_recorded_are_unknown(tmp_path: Path, recorded: bool) -> None:
    builder = handmade.Builder()
    builder.page_alloc(0, 0, owner="slab")
    if recorded:
        builder.metadata.events["mm_page_alloc_extfrag"] = 0
    plan = compare.Plan(["slub"], runs=1)
    with Progress(1) as progress:
        exact = compare.compare([builder.write(tmp_path / "t.parquet")], plan, progress)[-1]["exact"]
    assert exact["fragmentation_events"] == (0 if recorded else None)
    assert ("fragmentation_events" in exact["series"]) == recorded


def test_tables(found: list[records.Record]) -> None:
    text = render(comparison.tables(found), "text")
    assert max(map(len, text.splitlines())) <= 80
    lines = text.splitlines()
    assert lines[0].startswith("one: 200 requests on 2 CPUs") and any(line.startswith("two: ") for line in lines)
    assert any(line.startswith("recorded ") for line in lines)
    ranking = lines[lines.index(next(line for line in lines if line.startswith("Ranking"))) :]
    assert any(line.split()[:2] == ["rank", "by"] for line in ranking)
    assert "best" in text and "fragmentation event" in " ".join(text.split())
    assert "| allocator" in render(comparison.tables(found), "md")


def test_the_table_and_its_sentence_have_one_unit(found: list[records.Record]) -> None:
    small, large = comparison.tables(found[:2])[0], json.loads(json.dumps(found[:2]))
    assert small.columns[5:9] == ["start", "grew", "kept", "peak"] and small.title.endswith("memory in KiB")
    for record in large:
        record["exact"].update(held_pages_start=0, held_pages_peak=25_700, grew_pages_peak=25_700)
    table = comparison.tables(large)[0]
    assert table.title.endswith("memory in MiB") and table.cells()[0][6] == "100.39"
    assert "by 100.39 MiB" in " ".join(table.notes)
    for record in large:
        record["exact"].update(held_pages_start=256 << 10, held_pages_peak=(256 << 10) + 83, grew_pages_peak=83)
    little = comparison.tables(large)[0]
    assert little.title.endswith("memory in KiB"), "of a large heap too where it grows little"
    assert little.cells()[0][5:7] == ["1,048,576", "332"] and little.cells()[0][8] == "1,048,908"


def test_of_several_traces_the_one_that_cannot_be_replayed_is_named(tmp_path: Path) -> None:
    build = handmade.Builder()
    build.page_alloc(1, 19)
    traces = [handmade.busy(tmp_path / "good.parquet"), build.write(tmp_path / "bad.parquet")]
    with Progress(1) as progress, pytest.raises(UserError, match=r"bad\.parquet: the trace has blocks of order 19"):
        compare.compare(traces, compare.Plan(["slub"], runs=1), progress)


def test_times_below_the_step_of_the_clock(found: list[records.Record]) -> None:
    record = json.loads(json.dumps(found[0]))
    record["timed"].update(
        clock_resolution_ns=10.01, latency_ns={"median": 0.0, "p99": 0.0, "p999": 40.0}, alloc_ns={"median": 0.0, "p99": 30.0}
    )
    assert comparison.tables([record])[0].cells()[0][3] == "<10"
    shown = {row[0]: row[1] for row in comparison.details(record, False)[0].cells()}
    assert shown["allocation, median"] == "<10" and shown["allocation, 99th percentile"] == "30"
    del record["timed"]["clock_resolution_ns"]
    assert comparison.tables([record])[0].cells()[0][3] == "0.0"


def test_free_blocks_of_a_large_machine_fit_the_page(found: list[records.Record]) -> None:
    record = json.loads(json.dumps(found[0]))
    record["exact"].update(free_blocks_before=[12_345_678] * 11, free_blocks_after=[1_234_567] * 11)
    text = render(comparison.details(record, False), "text")
    assert max(map(len, text.splitlines())) <= 80
    (_,) = (line for line in text.splitlines() if line.split() == ["10", "12,345,678", "1,234,567"])
    record["exact"].update(free_blocks_before=None, free_blocks_after=None)
    assert "free blocks" in text and "free blocks" not in render(comparison.details(record, False), "text")


def test_every_table_of_csv_has_a_name(traces: list[Path]) -> None:
    done = slabyard("info", traces[0], "--format", "csv")
    tables = [list(csv.reader(io.StringIO(part))) for part in done.stdout.strip().split("\n\n")]
    assert [rows[0][0] for rows in tables] == ["table"] * 3 and all(row[0] for rows in tables for row in rows)


def test_few_runs_rank_no_times(traces: list[Path]) -> None:
    plan = compare.Plan(["slub", "slob"], runs=1)
    with Progress(1) as progress:
        found = compare.compare(traces[:1], plan, progress)
    ranking = comparison.tables(found)[-1]
    assert [row[2] for row in ranking.rows if row[0] == "time" or row[1] == "slob"][:2] == [None, None]


def test_formats_on_the_command_line(traces: list[Path], tmp_path: Path) -> None:
    exported, report = tmp_path / "r.json", tmp_path / "r.html"
    done = slabyard(
        "compare", *traces, "--allocators", "slub,slob", "--runs", "1", "--jobs", "2", "--format", "csv",
        "--export-json", exported, "--report", report,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert [row["allocator"] for row in rows] == ["slub", "slob", "recorded"] * 2
    assert float(rows[0]["ns_per_operation"]) > 0 and rows[2]["ns_per_operation"] == ""
    assert [record["run"]["allocator"] for record in json.loads(exported.read_text())] == ["slub", "slob", "recorded"] * 2
    assert report.stat().st_size < 3 << 20 and report.read_text().lstrip().lower().startswith("<!doctype html>")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["r.html", "r.json"]


def test_json_is_a_list_of_records(traces: list[Path]) -> None:
    done = slabyard("compare", traces[0], "--allocators", "slub", "--runs", "1", "--warmup", "1", "--format", "json")
    (slub, recorded) = json.loads(done.stdout)
    assert set(slub) == {"schema", "run", "exact", "timed", "verdict"} and recorded["run"]["allocator"] == "recorded"


def test_growth_is_what_was_not_there_at_the_start(tmp_path: Path) -> None:
    build = handmade.Builder()
    build.metadata.caches = [handmade.cache("dentry", 192)]
    slabinfo = "slabinfo - version: 2.1\ndentry 2100 2100 192 21 1 : tunables 0 0 0 : slabdata 100 100 0\n"
    build.snapshot("start", {"slabinfo": slabinfo, "meminfo": "Slab: 400 kB\n"}, {"dentry": {"object_size": "192", "slab_size": "192"}})
    for number in range(210):
        build.cache_alloc(number, 0)
    build.snapshot("end", {"slabinfo": slabinfo.replace("2100 2100", "2310 2310").replace("100 100", "110 110")})
    done = slabyard("compare", build.write(tmp_path / "t.parquet"), "--allocators", "slub,slob", "--runs", "1", "--format", "json")
    assert done.returncode == 0, done.stderr
    slub, slob = (one["exact"] for one in json.loads(done.stdout)[:2])
    assert slub["held_pages_start"] >= 99 and 9 <= slub["grew_pages_peak"] <= 11
    assert slub["grew_pages_peak"] == slub["held_pages_peak"] - slub["held_pages_start"]
    (dentry,) = (row for row in slub["caches"] if row["name"] == "dentry")
    assert dentry["slab_objects"] == 21 and dentry["pages_peak"] - dentry["pages_start"] == slub["grew_pages_peak"]
    assert slub["other_start"]["start"] == "empty" and slub["other_start"]["held_pages_start"] == 0
    assert slob["grew_pages_end"] > 0


def test_memory_from_the_other_start_is_counted_as_progress(tmp_path: Path) -> None:
    build = handmade.Builder()
    build.snapshot("start", {"meminfo": "Slab: 400 kB\n"})
    build.kmalloc(0, 100)
    plan = compare.Plan(["slub", "slob", "malloc:system"], runs=1)
    with Progress(compare.steps(1, plan), quiet=True) as progress:
        found = compare.compare([build.write(tmp_path / "t.parquet")], plan, progress)
    assert ["other_start" in one["exact"] for one in found] == [True, True, False]
    assert progress.done == progress.total == compare.steps(1, plan) + 2


def test_a_machine_that_is_too_large_is_told_of_once(tmp_path: Path) -> None:
    build = handmade.Builder()
    build.metadata.cpus = 100_000
    build.snapshot("start", {"meminfo": "Slab: 400 kB\n"})
    build.kmalloc(0, 100)
    done = slabyard("compare", build.write(tmp_path / "t.parquet"), "--allocators", "slub", "--runs", "1", "--format", "json")
    assert done.returncode == 0, done.stderr
    assert "other_start" in json.loads(done.stdout)[0]["exact"], "which takes a second replay"
    assert done.stderr.count("the most that can be simulated") == 1


@pytest.mark.parametrize("verb", ["replay", "compare"])
def test_a_malloc_on_a_trace_with_snapshots(tmp_path: Path, verb: str) -> None:
    build = handmade.Builder()
    build.snapshot("start", {"meminfo": "Slab: 400 kB\n"})
    for number in range(100):
        build.kmalloc(number, 40_000)
    path = build.write(tmp_path / "t.parquet")
    options = ["--allocator", "malloc:system"] if verb == "replay" else ["--allocators", "slub,malloc:system", "--runs", "1"]
    done = slabyard(verb, path, *options)
    assert done.returncode == 0 and not done.stderr.count("Error"), done.stderr
    (record, *_) = [json.loads(slabyard("replay", path, "--allocator", "malloc:system", "--format", "json").stdout)]
    timed = record["timed"]
    assert 900 <= timed["grew_pages_peak"] <= 1200, "100 objects of ten pages"
    assert timed["held_pages_peak"] - timed["held_pages_start"] == timed["grew_pages_peak"]
