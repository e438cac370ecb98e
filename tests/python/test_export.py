"""Exports of who holds memory: each form is read again, by its own tool or library where there is one, and adds up."""

from __future__ import annotations

import collections
import csv
import gzip
import itertools
import json
from pathlib import Path

import pyarrow.parquet as pq

from handmade import Builder, cache, complaint, slabyard
from slabyard.attribution import export, flames, pprof, usage
from slabyard.trace import file as trace_file
from slabyard.trace.file import Trace

SPIKE = Path(__file__).parents[2] / "traces" / "spike.parquet"


def exported(form: str, path: Path, *words: str, trace: Path = SPIKE) -> Path:
    done = slabyard("export", trace, "--format", form, "-o", path, *words)
    assert done.returncode in (0, 3) and done.stdout == "", done.stderr
    return path


def live_bytes() -> int:
    with Trace(SPIKE) as trace:
        return sum(usage.usage(trace)["live_bytes"].to_pylist())


def of_task_struct(what: str) -> int:
    with Trace(SPIKE) as trace:
        return int(next(row[what] for row in usage.usage(trace).to_pylist() if row["cache"] == "task_struct"))


def test_pprof(tmp_path: Path) -> None:
    profile = pprof.profile_class()()
    profile.ParseFromString(gzip.decompress(exported("pprof", tmp_path / "t.pb.gz").read_bytes()))
    texts = list(profile.string_table)
    assert texts[0] == "" and [texts[one.type] for one in profile.sample_type] == [name for name, _ in pprof.VALUES]
    assert texts[profile.default_sample_type] == "inuse_space" and texts[profile.sample_type[3].unit] == "bytes"
    assert sum(sample.value[3] for sample in profile.sample) == live_bytes()
    functions = {one.id: texts[one.name] for one in profile.function}
    locations = {one.id: functions[one.line[0].function_id] for one in profile.location}
    stacks = [(tuple(locations[place] for place in sample.location_id), sample) for sample in profile.sample]
    tasks = [sample for stack, sample in stacks if stack[:2] == ("[task_struct]", "copy_process")]  # innermost first
    assert sum(task.value[0] for task in tasks) == 256 and {texts[task.label[0].str] for task in tasks} == {"task_struct"}
    assert {one.mapping_id for one in profile.location} <= {one.id for one in profile.mapping}


def test_folded_and_speedscope(tmp_path: Path) -> None:
    lines = exported("folded", tmp_path / "t.folded").read_text().splitlines()
    weights = {line.rpartition(" ")[0]: int(line.rpartition(" ")[2]) for line in lines}
    assert sum(weights.values()) == live_bytes()
    of_tasks = sum(weight for stack, weight in weights.items() if stack.endswith("copy_process;[task_struct]"))
    assert of_tasks == of_task_struct("live_bytes")
    pinned = exported("folded", tmp_path / "p.folded", "--weight", "pinned", "--to", "peak").read_text()
    assert "[task_struct]" in pinned and pinned != exported("folded", tmp_path / "q.folded", "--weight", "pinned").read_text()
    whole = json.loads(exported("speedscope", tmp_path / "t.json").read_text())
    (profile,) = whole["profiles"]
    assert profile["unit"] == "bytes" and profile["endValue"] == sum(profile["weights"]) == live_bytes()
    assert max(place for sample in profile["samples"] for place in sample) < len(whole["shared"]["frames"])


def test_perfetto_counts_over_time(tmp_path: Path) -> None:
    events = json.loads(exported("perfetto", tmp_path / "t.json").read_text())["traceEvents"]
    counters = collections.defaultdict(list)
    for event in events:
        if event["ph"] == "C":
            counters[event["name"]].append((event["ts"], event["args"]["bytes"]))
    assert counters["all live objects"][-1][1] == live_bytes()
    held = counters["cache task_struct"]
    assert (max(count for _, count in held), held[-1][1]) == (of_task_struct("peak_bytes"), of_task_struct("live_bytes"))
    assert all(one[0] < other[0] and one[1] != other[1] for one, other in itertools.pairwise(held))
    assert {event["name"] for event in events if event["ph"] == "i"} == {"start", "end"}
    assert max(count for _, count in counters["memory in slabs and large kmallocs"]) > 30 << 20


def test_tables(tmp_path: Path) -> None:
    rows = pq.read_table(exported("parquet", tmp_path / "t.parquet")).to_pylist()
    with exported("csv", tmp_path / "t.csv").open() as file:
        text = list(csv.DictReader(file))
    assert len(text) == len(rows) and text[0]["cache"] == rows[0]["cache"] == "task_struct"
    assert list(text[0]) == list(rows[0]) and sum(row["live_bytes"] for row in rows) == live_bytes()
    assert rows[0]["pinned_bytes"] > 0


def stacked(path: Path) -> Path:
    """A trace with the columns of `record -g` and of tasks."""
    builder = Builder()
    builder.metadata.caches = [cache("inode", 600)]
    builder.metadata.events["kfree"] = 0
    more = {"stack": ["", "entry;vfs_open;alloc_inode", "entry;vfs_open;alloc_inode", "", ""], "task": ["sh", "sh", "find", "rcu", "sh"]}
    builder.kmalloc(1, 100, call_site="plain+0x1 [ext4]")
    builder.cache_alloc(2, 0)
    builder.cache_alloc(3, 0)
    builder.kfree(1, allocated=128)
    builder.row("kfree", origin="older")
    builder.write(path)
    table = pq.read_table(path)
    for name, values in more.items():
        table = table.append_column(trace_file.pa.field(name, trace_file.pa.string()), trace_file.pa.array(values))
    pq.write_table(table, path)
    return path


def test_stacks_and_tasks_are_used_where_they_are(tmp_path: Path) -> None:
    path = stacked(tmp_path / "t.parquet")
    lines = exported("folded", tmp_path / "t.folded", "--weight", "allocations", trace=path).read_text().splitlines()
    assert lines == [
        "find;entry;vfs_open;alloc_inode;[inode] 1", "sh;entry;vfs_open;alloc_inode;[inode] 1", "sh;plain;[kmalloc-128] 1",
    ]  # fmt: skip
    found = json.loads(slabyard("info", path, "--tasks", "--format", "json").stdout)["tasks"]
    by_task = {row["task"]: (row["allocations"], row["frees"], row["live_objects"]) for row in found}
    assert by_task == {"sh": (2, 1, 1), "find": (1, 0, 1), usage.OLDER_NAME: (0, 1, 0)}
    with Trace(path) as trace:
        assert usage.present_dimensions(trace) == ["cache", "call_site", "stack", "task"]
        assert usage.usage(trace, ["stack"]).num_rows == 3


def test_wrong_exports(tmp_path: Path) -> None:
    path = stacked(tmp_path / "t.parquet")
    refused = slabyard("export", path, "--format", "folded", "--weight", "pinned", "-o", tmp_path / "x")
    assert "nothing in it ties objects to pages" in complaint(refused, 2)
    assert "--weight goes with" in complaint(slabyard("export", path, "--format", "csv", "--weight", "live", "-o", tmp_path / "x"), 2)
    assert "also read" in complaint(slabyard("export", path, "--format", "csv", "-o", path), 2)
    assert not (tmp_path / "x").exists()
    assert "no space" in complaint(slabyard("export", path, "--format", "csv", "-o", "/dev/full"), 2)


def test_gathered_rows_have_nulls_where_nothing_ties_objects_to_pages(tmp_path: Path) -> None:
    with Trace(stacked(tmp_path / "t.parquet")) as trace:
        table = export.gather(trace, usage.window_of(trace, None, None))
    assert table["pinned_bytes"].null_count == table.num_rows == 4


def test_the_report_draws_flames(tmp_path: Path) -> None:
    report, records = tmp_path / "r.html", tmp_path / "r.json"
    done = slabyard("compare", SPIKE, "--allocators", "slub", "--runs", "1", "--report", report, "--export-json", records)
    assert done.returncode in (0, 3), done.stderr
    recorded = next(one for one in json.loads(records.read_text()) if one["run"]["allocator"] == "recorded")
    stacks = recorded["exact"]["stacks"]
    assert stacks["live_at_peak"][0]["bytes"] > 1 << 20 and len(stacks["live_at_peak"]) <= flames.MOST + 1
    assert stacks["pinned_at_end"][0]["frames"][-2:] == ["copy_process", "[task_struct]"]
    page = report.read_text()
    assert page.count('class="block icicle"') == 2 and "[task_struct]: " in page


def test_light_stacks_are_put_together() -> None:
    found = flames._listed(collections.Counter({(f"f{number:03}", "[x]"): 1000 - number for number in range(300)}))
    assert len(found) == flames.MOST + 1 and sum(one["bytes"] for one in found) == sum(range(701, 1001))
    assert found[-1]["frames"] == [flames.OTHERS]
