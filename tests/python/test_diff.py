"""What changed between two result records, traces or dumps; `compare --baseline`; `info` of dumps; the workflow of docs/ci."""

from __future__ import annotations

import copy
import csv
import gzip
import io
import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import handmade
import pytest
from handmade import complaint, slabyard

from slabyard.base.errors import UserError
from slabyard.diff import conditions, files, junit, ledgers, pairs, tables
from slabyard.base.table import render
from slabyard.trace import dumps

ROOT = Path(__file__).parents[2]
RECORDS = Path(__file__).parents[1] / "data" / "report_records.json"
SLUB = Path(__file__).parents[1] / "data" / "linux-6.1-um-slub" / "hackbench"

SLABTOP = """\
 Active / Total Objects (% used)    : 300 / 400 (75.0%)
 Active / Total Slabs (% used)      : 20 / 20 (100.0%)
 Active / Total Caches (% used)     : 3 / 5 (60.0%)
 Active / Total Size (% used)       : 60.00K / 80.00K (75.0%)
 Minimum / Average / Maximum Object : 0.01K / 0.20K / 8.00K

  OBJS ACTIVE  USE OBJ SIZE  SLABS OBJ/SLAB CACHE SIZE NAME
   210    105  50%    0.19K     10       21        40K dentry
   128    128 100%    0.03K      1      128         4K kmalloc-32
"""
ALLOCINFO = """\
allocinfo - version: 1.0
#     <size>  <calls> <tag info>
           0        0 init/main.c:1314 func:do_initcalls
     4194304     1024 mm/slub.c:1953 func:alloc_slab_page
      123456      678 net/core/skbuff.c:567 func:__alloc_skb
    12345678     6789 fs/ext4/super.c:1390 [ext4] func:ext4_alloc_inode accurate:no
"""
OOM = """\
[ 1234.567890] Unreclaimable slab info:
[ 1234.567901] Name                      Used          Total
[ 1234.567912] scsi_sense_cache        17KB         32KB
[ 1234.567923] kmalloc-4k            9000KB       9216KB
[ 1234.567934] Tasks state (memory values in pages):
"""


def record(**changes: Any) -> dict[str, Any]:
    """A record of a replay, with its `exact` and `timed` measures changed by name."""
    exact = {"grew_pages_peak": 1000, "held_pages_peak": 9000, "grew_pages_end": 100, "fragmentation_events": 0, "caches": []}
    timed = {"ns_per_operation": 50.0, "runs": 6, "intervals": {"ns_per_operation": [48.0, 52.0]}, "samples": {"ns_per_operation": [50.0]}}
    run = {"workload": "w", "substrate": "replay", "allocator": "slub", "trace_sha256": "a", "cpus": 2, "page_size": 4096}
    made: dict[str, Any] = {"schema": 1, "run": run, "exact": exact, "timed": timed}
    for path, value in changes.items():
        group, _, name = path.partition("__")
        made.setdefault(group, {})[name] = value
    return made


def judged(old: Any, new: Any, text: str) -> list[str]:
    found = pairs.compare(old if isinstance(old, list) else [old], new if isinstance(new, list) else [new], ("old", "new"))
    found.judge(conditions.parse(text))
    return [f"{row.run} {failed}" for row in found.failures for failed in row.failed]


# ---- Conditions --------------------------------------------------------------------------------------------------


def test_conditions_are_read() -> None:
    found = conditions.parse("memory>2%, time > 10% ,cost>1%,peak>64KiB,fragmentation>0,exact.held_pages_end>1.5%")
    assert [(one.measure, one.limit, one.percent) for one in found] == [
        ("memory", 2, True), ("time", 10, True), ("cost", 1, True), ("peak", 65536, False), ("fragmentation", 0, False),
        ("held_pages_end", 1.5, True),
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["", "memory", "memory<2%", "memory>", "memory>2%%", "memry>2%", "memory>2%,,time>1%"])
def test_what_is_no_condition_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="--fail-if"):
        conditions.parse(text)


def test_exact_measures_fail_beyond_their_limit() -> None:
    assert judged(record(), record(exact__grew_pages_peak=1020), "memory>2%") == []
    assert judged(record(), record(exact__grew_pages_peak=1021), "memory>2%") == ["slub memory>2%"]
    assert judged(record(), record(exact__grew_pages_peak=900), "memory>2%") == []
    assert judged(record(), record(exact__grew_pages_peak=1016), "memory>64K") == []
    assert judged(record(), record(exact__grew_pages_peak=1017), "memory>64K") == ["slub memory>64K"]
    assert judged(record(), record(exact__fragmentation_events=1), "fragmentation>500%") == ["slub fragmentation>500%"]
    assert judged(record(), record(exact__requests=5), "requests>1%") == [], "in one of them alone"
    assert judged(record(exact__requests=5), record(exact__requests=6), "requests>1%") == ["slub requests>1%"]
    assert judged(record(exact__fast_path_share=0.9), record(exact__fast_path_share=0.8), "fast_path_share>5%"), "less is worse"


def test_memory_is_the_peak_where_growth_is_unknown() -> None:
    old, new = record(), record(exact__held_pages_peak=9500)
    assert judged(old, new, "memory>2%") == []
    del old["exact"]["grew_pages_peak"]
    assert judged(old, new, "memory>2%") == ["slub memory>2%"]


def test_times_fail_where_intervals_lie_apart() -> None:
    far = record(timed__ns_per_operation=60.0, timed__intervals={"ns_per_operation": [55.0, 65.0]})
    near = record(timed__ns_per_operation=60.0, timed__intervals={"ns_per_operation": [51.0, 65.0]})
    none = record(timed__ns_per_operation=90.0, timed__intervals={}, timed__runs=1)
    assert judged(record(), far, "time>10%") == ["slub time>10%"]
    assert judged(record(), far, "time>30%") == []
    assert judged(record(), near, "time>10%") == []
    assert judged(record(), none, "time>10%") == []
    found = pairs.compare([record()], [none], ("old", "new"))
    found.judge(conditions.parse("time>10%"))
    assert "too few repetitions" in render(tables.tables(found), "text")


def test_counted_cost_has_no_interval_and_needs_none() -> None:
    assert judged(record(cost__instructions=100.0), record(cost__instructions=102.0), "cost>1%") == ["slub cost>1%"]
    assert judged(record(cost__instructions=100.0), record(cost__instructions=102.0), "cost>3%") == []


# ---- Records -----------------------------------------------------------------------------------------------------


def test_runs_are_paired_by_what_they_are() -> None:
    other = record(run__allocator="slab", exact__grew_pages_peak=2000)
    four = record(run__cpus=4)
    found = pairs.compare([record(), other, four], [four, other], ("old", "new"))
    assert {row.run for row in found.rows} == {"slab", "slub"}
    assert found.missing == ["w under slub"] and found.added == []
    assert all(row.verdict == "same" for row in found.rows)
    both = pairs.compare([record(), four], [four, record()], ("old", "new"))
    assert {row.run for row in both.rows} == {"slub, cpus 2", "slub, cpus 4"}
    with pytest.raises(UserError, match="no run in common"):
        pairs.compare([record(), other], [four, record(run__workload="v")], ("old", "new"))
    with pytest.raises(UserError, match="two records of w under slub"):
        pairs.compare([record(), record()], [record()], ("old", "new"))


def test_the_recorded_kernel_alone_is_no_run_in_common() -> None:
    recorded = record(run__allocator="recorded", run__substrate="kernel")
    with pytest.raises(UserError, match="no run in common"):
        pairs.compare([record(), recorded], [record(run__allocator="slab"), recorded], ("old", "new"))
    assert pairs.compare([record(), recorded], [recorded], ("old", "new")).missing == ["w under slub"]


def test_conditions_that_measure_nothing_do_not_pass(tmp_path: Path) -> None:
    done = slabyard("diff", RECORDS, RECORDS, "--fail-if", "cost>1%")
    assert done.returncode == 2 and "cost>1% was not checked: " in done.stderr
    assert slabyard("diff", RECORDS, RECORDS, "--fail-if", "cost>1%,memory>1%").returncode == 0
    trace = growing(tmp_path / "t.parquet", 3)  # of no page
    assert slabyard("diff", trace, trace, "--fail-if", "memory>1%").returncode == 2


def test_two_single_runs_are_compared_whatever_they_are() -> None:
    found = pairs.compare([record()], [record(run__allocator="slab", exact__grew_pages_peak=1500)], ("old", "new"))
    assert [row.percent for row in found.rows if row.measure == "memory"] == [50.0]
    assert "allocator slub and slab" in found.notes[0]


def test_what_else_differs_is_told() -> None:
    new = record(run__trace_sha256="b", run__machine={"cpu": "B"})
    found = pairs.compare([record(run__machine={"cpu": "A"})], [new], ("old", "new"))
    assert "Of w the trace is another one" in found.notes[0] and "cannot be compared" in found.notes[1]


def test_small_differences_of_memory_are_ties() -> None:
    found = pairs.compare([record()], [record(exact__held_pages_peak=9010)], ("old", "new"))
    assert [row.verdict for row in found.rows if row.measure == "peak"] == ["tie"]
    assert "is a tie" in render(tables.tables(found), "text")


def test_caches_say_where_memory_went() -> None:
    def with_caches(pages: int) -> dict[str, Any]:
        return record(exact__caches=[{"name": "dentry", "pages": pages, "live": 5}, {"name": "shared", "pages": None, "live": 1}])

    found = pairs.compare([with_caches(10)], [with_caches(30)], ("old", "new"))
    assert [(one.name, one.change) for one in found.grown] == [("dentry", 20 * 4096)]
    assert re.search(r"dentry +40 KiB +120 KiB +\+80 KiB +\+200%", render(tables.tables(found), "text"))


@pytest.fixture
def worse(tmp_path: Path) -> Path:
    found = json.loads(RECORDS.read_text())
    found[0]["exact"]["held_pages_peak"] *= 2
    del found[3]
    path = tmp_path / "worse.json"
    path.write_text(json.dumps(found))
    return path


def test_a_regression_is_status_1_and_one_line(worse: Path, tmp_path: Path) -> None:
    done = slabyard("diff", RECORDS, worse, "--fail-if", "memory>2%,time>10%,cost>1%", "--junit", tmp_path / "d.xml")
    assert done.returncode == 1
    assert done.stderr == "slabyard: regression: hackbench under slub: memory +100% (memory>2%)\n"
    assert done.stdout.startswith("1 run with a regression: worse.json against report_records.json\n")
    assert "cost>1%: cost is not in both files." in done.stdout and "Only in report_records.json: hackbench under" in done.stdout
    assert slabyard("diff", RECORDS, worse).returncode == 0, "nobody asked"
    assert slabyard("diff", worse, RECORDS, "--fail-if", "memory>2%").returncode == 0, "the other way round it is better"
    suites = ET.parse(tmp_path / "d.xml").getroot()
    failed = suites.findall("testsuite/testcase[failure]")
    assert [(case.get("classname"), case.get("name")) for case in failed] == [("hackbench", "slub: memory>2%")]
    assert suites.get("failures") == "1" and int(suites.get("tests") or 0) == len(suites.findall("testsuite/testcase"))
    assert int(suites.get("skipped") or 0) == len(suites.findall("testsuite/testcase/skipped")) > 0


@pytest.mark.parametrize("form", ["json", "csv", "md"])
def test_forms(worse: Path, form: str) -> None:
    text = slabyard("diff", RECORDS, worse, "--fail-if", "memory>2%", "--format", form).stdout
    if form == "json":
        found = json.loads(text)
        row = next(one for one in found["rows"] if one["failed"])
        assert found["regressions"] == 1 and (row["run"], row["percent"], row["verdict"]) == ("slub", 100.0, "worse")
    elif form == "csv":
        lines = list(csv.DictReader(io.StringIO(text)))
        assert [line["run"] for line in lines if line["failed"] == "memory>2%"] == ["slub"]
    else:
        assert re.search(r"^\| slub +\| memory +\|.*\| \+100% +\| FAILS worse \|$", text, re.MULTILINE)


def test_names_of_others_do_not_break_the_xml(tmp_path: Path) -> None:
    odd = record(run__workload="a<b>&\x01\"'", exact__grew_pages_peak=9999)
    found = pairs.compare([record(run__workload="a<b>&\x01\"'")], [odd], ("old", "new"))
    found.judge(conditions.parse("memory>2%"))
    junit.write(found, tmp_path / "odd.xml")
    assert ET.parse(tmp_path / "odd.xml").find("testsuite/testcase") is not None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[NaN]", "damaged"), ("[-Infinity]", "damaged"), ("[1e999]", "damaged"),
        ("[1, 2", "damaged or cut off"), ("{}", "no result records"), ("[]", "no result records"), ('{"schema": 9, "run": {}}', "schema 9"),
        ("hello", "nothing that can be compared"), ("", "nothing that can be compared"),
    ],
)  # fmt: skip
def test_files_that_cannot_be_compared(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "odd").write_text(text)
    assert said in complaint(slabyard("diff", tmp_path / "odd", RECORDS), 2)


def test_files_that_are_not_there_or_of_two_kinds(tmp_path: Path) -> None:
    assert complaint(slabyard("diff", tmp_path / "none", RECORDS), 2).endswith("/none: no such file")
    assert "of two kinds" in complaint(slabyard("diff", RECORDS, SLUB / "slabinfo.after"), 2)
    assert "is a directory" in complaint(slabyard("diff", tmp_path, RECORDS), 2)
    assert "also read" in complaint(slabyard("diff", RECORDS, RECORDS, "--junit", RECORDS), 2)


# ---- A baseline --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return handmade.busy(tmp_path_factory.mktemp("diff") / "busy.parquet")


def test_compare_with_a_baseline(busy: Path, tmp_path: Path) -> None:
    words = ["compare", busy, "--allocators", "slub,slab", "--runs", "1"]
    assert slabyard(*words, "--export-json", tmp_path / "base.json").returncode == 0
    done = slabyard(*words, "--baseline", tmp_path / "base.json", "--fail-if", "memory>2%,fragmentation>0", "--junit", tmp_path / "j.xml")
    assert done.returncode == 0, done.stderr
    assert "Ranking" in done.stdout and "No regression: this run against base.json" in done.stdout
    assert ET.parse(tmp_path / "j.xml").getroot().get("failures") == "0"
    found = json.loads((tmp_path / "base.json").read_text())
    for one in found:
        for name in ("grew_pages_peak", "held_pages_peak"):
            if one["exact"].get(name):
                one["exact"][name] = one["exact"][name] // 2
    (tmp_path / "less.json").write_text(json.dumps(found))
    done = slabyard(*words, "--baseline", tmp_path / "less.json", "--format", "json")
    assert done.returncode == 1 and "regression: busy under slub: memory" in done.stderr
    assert json.loads(done.stdout)["regressions"] >= 2, "of json the difference alone"


def test_a_baseline_is_read_before_the_work(busy: Path, tmp_path: Path) -> None:
    assert "needs --baseline" in complaint(slabyard("compare", busy, "--fail-if", "memory>2%"), 2)
    assert "no such file" in complaint(slabyard("compare", busy, "--baseline", tmp_path / "none.json"), 2)
    assert "no result records" in complaint(slabyard("compare", busy, "--baseline", busy), 2)


# ---- Traces ------------------------------------------------------------------------------------------------------


def growing(path: Path, leaks: int, kernel: str = "6.1.0-test", offset: str = "0x10") -> Path:
    build = handmade.Builder()
    build.metadata.kernel = kernel
    build.metadata.caches = [handmade.cache("dentry", 192)]
    for number in range(8):
        build.kmalloc(number, 100, call_site=f"some_function+{offset}")
        build.kfree(number)
    for number in range(leaks):  # numbers used again
        build.kmalloc(number, 100, call_site=f"some_function+{offset}")
    build.cache_alloc(100, 0)
    build.cache_free(100, 0)
    build.row("kmem_cache_free", origin="older", cache=0)
    return build.write(path, 5)


def test_a_trace_tells_who_grew(tmp_path: Path) -> None:
    ledger = ledgers.of_trace(growing(tmp_path / "t.parquet", 3))
    held = {what: {one.name: (one.bytes, one.count, one.room) for one in holders} for what, holders in ledger.sections.items()}
    assert held["cache"] == {"dentry": (-192, -1, 1), "kmalloc-128": (300, 3, 11)}
    assert held["call site"] == {"some_function+0x10": (300, 3, 11), "other_function+0x20": (0, 0, 1)}
    assert ledger.memory is None, "no page events"


@pytest.mark.parametrize(("shared", "name"), [(False, "kmalloc-2k"), (True, "kmalloc-1k")])
def test_kmallocs_have_the_names_of_the_kernel(tmp_path: Path, shared: bool, name: str) -> None:
    build = handmade.Builder()
    build.metadata.shared_pages = shared
    build.kmalloc(0, 1000, allocated=2048)
    build.kmalloc(1, 9000, allocated=16384)
    ledger = ledgers.of_trace(build.write(tmp_path / "t.parquet"))
    assert [one.name for one in ledger.sections["cache"]] == [name, "kmalloc (pages)"]


def test_traces_of_two_kernels(tmp_path: Path) -> None:
    one, two = growing(tmp_path / "a.parquet", 3), growing(tmp_path / "b.parquet", 5, "6.2.0-test", "0x1c/0x30")
    found = files.compare(one, two, [])
    assert [(grown.what, grown.name, grown.change) for grown in found.grown if grown.change] == [
        ("cache", "kmalloc-128", 200), ("call site", "some_function", 200),
    ]  # fmt: skip
    done = slabyard("diff", one, two)
    assert done.returncode == 0 and "kernel 6.2.0-test" in done.stdout and "Without page events" in done.stdout
    same = files.compare(one, growing(tmp_path / "c.parquet", 5, offset="0x1c"), [])
    sites = {grown.name for grown in same.grown if grown.what == "call site" and grown.change}
    assert sites == {"some_function+0x10", "some_function+0x1c"}


def test_an_incomplete_trace_is_status_3(busy: Path, tmp_path: Path) -> None:
    lossy = handmade.busy(tmp_path / "lossy.parquet", lost=7)
    done = slabyard("diff", busy, lossy)
    assert done.returncode == 3 and "lossy.parquet is incomplete: 7 events were lost" in done.stderr


# ---- Dumps -------------------------------------------------------------------------------------------------------


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_slabinfo(tmp_path: Path) -> None:
    (dump,) = dumps.read(SLUB / "slabinfo.after")
    assert dump.kind == "slabinfo" and dump.page_size == 4096 and len(dump.holders) > 50
    text = (SLUB / "slabinfo.after").read_text()
    quoted = written(tmp_path / "mail", "Hello,\r\n\r\n" + "".join(f"> {line}\r\n" for line in text.splitlines()) + "\r\n--\r\nme\r\n")
    assert dumps.read(quoted)[0].holders == dump.holders
    logged = written(tmp_path / "log", "".join(f"[  12.{at:06}] {line}\n" for at, line in enumerate(text.splitlines())))
    assert dumps.read(logged)[0].holders == dump.holders
    headless = written(tmp_path / "rows", "\n".join(text.splitlines()[5:]))
    assert dumps.read(headless)[0].holders == dump.holders[3:]
    (tmp_path / "z.gz").write_bytes(gzip.compress(text.encode()))
    assert dumps.read(tmp_path / "z.gz")[0].holders == dump.holders
    (tmp_path / "cut.gz").write_bytes(gzip.compress(text.encode())[:-20])
    assert "damaged or cut off" in complaint(slabyard("info", tmp_path / "cut.gz"), 2)


@pytest.mark.parametrize("keep, why", [(-40, "its last line is cut off"), (None, "kmem_cache, the last line of a slabinfo, is missing")])
def test_a_slabinfo_that_was_cut_off(tmp_path: Path, keep: int | None, why: str) -> None:
    """In the middle of a line, and behind one."""
    text = (SLUB / "slabinfo.before").read_text()
    rows = text.splitlines(keepends=True)
    assert rows[-1].startswith("kmem_cache ")
    cut = written(tmp_path / "cut", text[:keep] if keep else "".join(rows[:-5]))
    done = slabyard("diff", SLUB / "slabinfo.before", cut, "--fail-if", "memory>1%")
    assert done.returncode == 3 and done.stderr == f"slabyard: {cut} is incomplete: {why}\n"
    if keep:
        assert slabyard("info", cut).returncode == 3
    assert slabyard("diff", SLUB / "slabinfo.before", written(tmp_path / "whole", text.rstrip("\n"))).returncode == 0


def test_slabinfo_of_a_kernel_with_large_pages(tmp_path: Path) -> None:
    line = "kmalloc-64  1000 2048 64 1024 1 : tunables 0 0 0 : slabdata 2 2 0"
    (dump,) = dumps.read(written(tmp_path / "s", f"slabinfo - version: 2.1\n{line}\n"))
    assert dump.page_size == 65536 and dump.bytes == 2 * 65536


def test_slabtop_oom_and_allocinfo(tmp_path: Path) -> None:
    (top,) = dumps.read(written(tmp_path / "top", SLABTOP))
    assert top.kind == "slabtop" and top.listed_of == 5
    told = [(one.name, one.bytes, one.count, one.room) for one in top.holders]
    assert told == [("dentry", 40960, 105, 210), ("kmalloc-32", 4096, 128, 128)]
    (oom,) = dumps.read(written(tmp_path / "oom", OOM))
    known = [(one.name, one.bytes, one.unused) for one in oom.holders]
    assert known == [("scsi_sense_cache", 32768, 15360), ("kmalloc-4k", 9437184, 221184)]
    (info,) = dumps.read(written(tmp_path / "allocinfo", ALLOCINFO))
    assert info.holders[3].name == "fs/ext4/super.c:1390 ext4_alloc_inode [ext4]" and info.holders[3].count == 6789
    odd = "     1.2.3        1 fs/dcache.c:1 func:no_number\n"
    tail = written(tmp_path / "tail", f"        2.8M    22648 fs/kernfs/dir.c:615 func:__kernfs_new_node\n{odd}")
    assert dumps.read(tail)[0].holders[0].bytes == round(2.8 * (1 << 20))


def test_info_of_a_dump(tmp_path: Path) -> None:
    done = slabyard("info", written(tmp_path / "top", SLABTOP))
    assert done.returncode == 0 and done.stderr == ""
    assert done.stdout.startswith("top (slabtop): 2 of 5 caches hold 44 KiB")
    assert re.search(r"^dentry +40 +90.9% ", done.stdout, re.MULTILINE)
    done = slabyard("info", written(tmp_path / "allocinfo", ALLOCINFO))
    assert re.search(r"^fs/ext4 +12,056 +74.1% +6,789$", done.stdout, re.MULTILINE)
    for name in ("top", "allocinfo"):
        assert len(json.loads(slabyard("info", tmp_path / name, "--format", "json").stdout)["holders"]) in (2, 4)
        assert len(list(csv.reader(io.StringIO(slabyard("info", tmp_path / name, "--format", "csv").stdout)))) in (3, 5)


def test_info_of_several_dumps_shows_what_grew(tmp_path: Path) -> None:
    text = "".join(
        f"slabinfo - version: 2.1\nleaky {n * 10} {n * 10} 400 10 1 : tunables 0 0 0 : slabdata {n} {n} 0\n"
        "calm 10 10 400 10 1 : tunables 0 0 0 : slabdata 1 1 0\n"
        for n in (1, 2, 5)
    )
    out = slabyard("info", written(tmp_path / "loop", text)).stdout
    assert "the last of 3 dumps" in out and "grew each time, as what leaks does: leaky." in out and "they grew by 16 KiB" in out
    assert re.search(r"^leaky .* \+16$", out, re.MULTILINE) and re.search(r"^calm .* 0$", out, re.MULTILINE)


def test_diff_of_dumps(tmp_path: Path) -> None:
    done = slabyard("diff", SLUB / "slabinfo.before", SLUB / "slabinfo.after", "--fail-if", "memory>0")
    assert done.returncode == 1 and "slabinfo.after against slabinfo.before" in done.stdout and "Caches by change" in done.stdout
    (before,), (after,) = dumps.read(SLUB / "slabinfo.before"), dumps.read(SLUB / "slabinfo.after")
    found = files.compare(SLUB / "slabinfo.before", SLUB / "slabinfo.after", [])
    assert sum(one.change for one in found.grown) == after.bytes - before.bytes
    other = re.sub(r":(\d+) ", lambda line: f":{int(line[1]) + 7} ", ALLOCINFO).replace("12345678", "99")
    one, two = written(tmp_path / "a", ALLOCINFO), written(tmp_path / "b", other)
    (grown, *_) = files.compare(one, two, []).grown
    assert (grown.name, grown.change) == ("fs/ext4/super.c ext4_alloc_inode [ext4]", 99 - 12345678), "lines of another build"
    top = written(tmp_path / "top", SLABTOP)
    assert "lists 2 of 5 caches" in slabyard("diff", top, SLUB / "slabinfo.after").stdout
    assert "give two of one kind" in complaint(slabyard("diff", one, top), 2)


def test_dumps_may_come_from_pipes() -> None:
    script = 'a="python3 -m slabyard"; $a diff <(cat "$1") <(cat "$2"); cat "$1" | $a info /dev/stdin; $a diff <(echo) "$1"'
    files_ = [str(SLUB / "slabinfo.before"), str(SLUB / "slabinfo.after")]
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", script, "-", *files_], capture_output=True, text=True, env=environment, check=False)
    assert "Caches by change" in done.stdout and "stdin (slabinfo): " in done.stdout
    assert re.fullmatch(r"slabyard: /dev/fd/\d+: nothing that can be compared; .*\n", done.stderr)


# ---- The workflow ------------------------------------------------------------------------------------------------


def test_the_workflow_runs(busy: Path, tmp_path: Path) -> None:
    """Runs its steps, except the installation, as a CI does: with its variables, each in a shell of its own, until one
    fails."""
    text = (ROOT / "docs/ci/workflow.yml").read_text()
    variables = dict(re.findall(r"^      ([A-Z_]+): ([^#\n]*?)(?: +#.*)?$", text, re.MULTILINE))
    steps = [re.sub(r"^ {10}", "", part, flags=re.MULTILINE) for part in re.findall(r"run: \|\n((?: {10}.*\n)+)", text)]
    assert "pip install" in steps[0] and len(steps) == 3 and variables["FAIL_IF"]
    (tmp_path / "traces").mkdir()
    (tmp_path / "traces/busy.parquet").symlink_to(busy)
    (tmp_path / "slabyard").write_text(f'#!/bin/sh\nexec {sys.executable} -m slabyard "$@"\n')
    (tmp_path / "slabyard").chmod(0o755)
    summary = tmp_path / "summary.md"
    environment = {**os.environ, **variables, "PATH": f"{tmp_path}:{os.environ['PATH']}", "GITHUB_STEP_SUMMARY": str(summary)}

    def step(script: str) -> int:
        return subprocess.run(["bash", "-e", "-c", script], cwd=tmp_path, env=environment, check=False).returncode

    slabyard("compare", busy, "--allocators", variables["ALLOCATORS"], "--runs", "1", "--export-json", tmp_path / "baseline.json")
    assert [step(script) for script in steps[1:]] == [0, 0]
    assert "No regression" in summary.read_text() and ET.parse(tmp_path / "slabyard.xml") and (tmp_path / "new.json").exists()
    found = json.loads((tmp_path / "baseline.json").read_text())
    copy_ = copy.deepcopy(found)
    for name in ("grew_pages_peak", "held_pages_peak"):
        copy_[0]["exact"][name] = 1
    (tmp_path / "baseline.json").write_text(json.dumps(copy_))
    assert [step(script) for script in steps[1:]] == [1, 0]
