"""The command line as a user meets it: verbs, formats, exit statuses, one-line messages."""

from __future__ import annotations

import csv
import functools
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import handmade
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from handmade import complaint, slabyard
from slabyard.base import programs, terminal
from slabyard.base.errors import UserError
from slabyard.replay import allocators
from slabyard.trace.file import CHECKSUM_KEY, METADATA_KEY, Trace, checksum

VERBS = ("list", "record", "top", "inspect", "import", "info", "export", "replay", "compare", "diff", "tune", "sweep", "study", "threads",
         "run", "geometry", "layout", "kernel", "completion")  # fmt: skip


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return handmade.busy(tmp_path_factory.mktemp("traces") / "busy.parquet")


@pytest.mark.parametrize("verb", VERBS)
def test_help_has_an_example(verb: str) -> None:
    done = slabyard(verb, "--help")
    assert done.returncode == 0
    assert f"example:\n  slabyard {verb}" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80


@pytest.mark.parametrize("verb", ["build", "run", "compare", "bench", "fidelity", "flame", "list", "clean"])
def test_help_of_kernel_verbs_has_an_example(verb: str) -> None:
    done = slabyard("kernel", verb, "--help", env={**os.environ, "COLUMNS": "80"})
    assert done.returncode == 0
    assert f"example:\n  slabyard kernel {verb}" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_help_tells_the_exit_statuses() -> None:
    done = slabyard("--help")
    assert done.returncode == 0 and "exit status:" in done.stdout and all(verb in done.stdout for verb in VERBS)
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_list() -> None:
    found = json.loads(slabyard("list", "--format", "json").stdout)
    names = {policy["name"]: {item["name"] for item in policy["tunables"]} for policy in found}
    assert {"slub", "slob"} <= set(names)
    assert {"min_order", "max_order", "min_objects", "cpu_partial", "min_partial", "merge"} <= names["slub"]
    assert {"fit", "log_every"} <= names["slob"]
    text, md, csv_ = (slabyard("list", "--format", form).stdout for form in ("text", "md", "csv"))
    assert "max_order=auto" in text and max(map(len, text.splitlines())) <= 80
    assert "| allocator" in md
    words = " ".join(text.split())
    for policy in found:
        assert f"\n  {policy['summary']}\n" in text  # one line
        for form in (words, md, csv_.replace('""', '"')):
            assert policy["name"] in form and policy["summary"] in form
            assert all(paper in form for paper in policy["paper"].split("; "))
            for item in policy["tunables"]:
                assert item["name"] in form and " ".join(item["meaning"].split()) in " ".join(form.split())
        for preset in policy["presets"]:
            spec = f"{policy['name']}:{preset['name']}"
            assert spec in words and spec in md and preset["settings"] in csv_ and preset["meaning"] in words
            assert spec in (Path(__file__).parents[2] / "docs/papers.md").read_text()
            allocators.check_spec(spec)
        for item in policy["tunables"]:
            assert f" {item['name']}={item['default']} " in text
            assert item["meaning"] and (item["choices"] or item["min"] < item["max"])
            assert item["default"] == "auto" or item["default"] in (item["choices"] or range(item["min"], item["max"] + 1))


def test_geometry() -> None:
    done = slabyard("geometry", "--allocator", "slub", "--cpus", "2", "192", "2048", "--format", "json")
    assert json.loads(done.stdout) == [
        {"size": 192, "objects_per_slab": 21, "pages_per_slab": 1, "wasted_bytes": 64, "sheaf_capacity": 0},
        {"size": 2048, "objects_per_slab": 16, "pages_per_slab": 8, "wasted_bytes": 0, "sheaf_capacity": 0},
    ]
    sizes = [str(size) for size in (8, 248, 256, 1016, 1024, 4088, 4096, 8192)]
    for spec, capacities in (("7.0", [60, 60, 28, 28, 12, 12, 4, 4]), ("6.18", [0] * 8), ("7.0,sheaf_capacity=32", [32] * 8)):
        found = json.loads(slabyard("geometry", "--allocator", f"slub:linux={spec}", "--format", "json", *sizes).stdout)
        assert [one["sheaf_capacity"] for one in found] == capacities
    rows = list(csv.DictReader(io.StringIO(slabyard("geometry", "--allocator", "slub", "--format", "csv", "64").stdout)))
    assert [row["objects_per_slab"] for row in rows] == ["64"]


def test_info(busy: Path) -> None:
    about = json.loads(slabyard("info", busy, "--format", "json").stdout)
    assert about["events"]["kmalloc"] == 100 and about["events"]["mm_page_alloc_extfrag"] == 1
    assert about["cpus"] == 2 and about["lost"] == 0 and about["kernel"] == "6.1.0-test" and about["span_seconds"] > 0
    assert {cache["name"] for cache in about["caches"]} == {"dentry", "inode"}
    hackbench = Path(__file__).parents[2] / "traces" / "hackbench.parquet"
    assert slabyard("info", hackbench, "--format", "csv").stdout.count("\ncache,") > 16
    text = slabyard("info", busy).stdout
    assert "6.1.0-test" in text and max(map(len, text.splitlines())) <= max(80, len(str(busy)))


def test_replay_gives_one_record(busy: Path) -> None:
    record = json.loads(slabyard("replay", busy, "--allocator", "slob:fit=best", "--format", "json", "--runs", "2").stdout)
    assert record["schema"] == 1
    run, exact, timed = record["run"], record["exact"], record["timed"]
    assert run["allocator"] == "slob:fit=best" and run["tunables"] == {"fit": "best"} and run["workload"] == "busy"
    assert len(run["trace_sha256"]) == 64 and run["cpus"] == 2 and run["nodes"] == 1 and run["start"] == "empty"
    assert {"seed", "repetition", "versions", "machine"} <= set(run)
    names = (
        "requests failures unknown_frees implied_frees implied_allocations held_pages_end held_pages_peak slab_pages_end slab_pages_peak "
        "large_pages_end requested_bytes_end requested_bytes_peak total_fragmentation_end total_fragmentation_peak "
        "internal_fragmentation_end unused_ratio_end fragmentation_events free_blocks_before free_blocks_after fast_path_share snapshots"
    )
    assert set(names.split()) <= set(exact)
    assert exact["requests"] == 200 and exact["failures"] == 0 and exact["unknown_frees"] == 1
    assert len(exact["free_blocks_after"]) == 11 and len(exact["series"]["time"]) >= 200
    assert {site["call_site"] for site in exact["call_sites"]} == {"some_function+0x10", "other_function+0x20"}
    assert all(timed[name] > 0 for name in ("seconds", "ns_per_operation", "events_per_second"))
    assert len(timed["samples"]["seconds"]) == 2 and timed["intervals"] == {}
    assert {"median", "p99", "p999"} <= set(timed["alloc_ns"])


def test_every_name_of_a_record_is_documented(busy: Path) -> None:
    record = json.loads(slabyard("replay", busy, "--allocator", "slub", "--format", "json").stdout)
    docs = Path(__file__).parents[2] / "docs"
    text = "".join((docs / name).read_text() for name in ("measures.md", "results-format.md"))
    words = set(re.findall(r"[\w*]+", " ".join(re.findall(r"`([^`]*)`", text))))

    def names(value: object) -> set[str]:
        if isinstance(value, dict):
            return set(value).union(*(names(item) for item in value.values()))
        return set().union(*(names(item) for item in value)) if isinstance(value, list) else set()

    def documented(name: str) -> bool:
        return name in words or any(name.endswith(end) and name.removesuffix(end) + "_*" in words for end in ("_end", "_peak"))

    skipped = set(record["run"]["versions"]) | set(record["run"]["tunables"])
    assert sorted(name for name in names(record) - skipped if not documented(name)) == []


def test_exact_figures_are_the_same_to_the_byte(busy: Path) -> None:
    first, second = (json.loads(slabyard("replay", busy, "--allocator", "slub", "--format", "json").stdout) for _ in range(2))
    assert json.dumps(first["exact"]) == json.dumps(second["exact"])


@pytest.mark.parametrize("form", ["text", "csv", "md"])
def test_replay_for_people(busy: Path, form: str) -> None:
    done = slabyard("replay", busy, "--allocator", "slub", *(["--caches"] if form != "csv" else []), "--format", form)
    assert done.returncode == 0 and "held" in done.stdout
    if form == "csv":
        row = next(csv.DictReader(io.StringIO(done.stdout)))
        assert row["allocator"] == "slub" and int(row["requests"]) == 200
    if form == "text":
        assert max(map(len, done.stdout.splitlines())) <= 80


def test_snapshots_stand_beside_the_kernels_figures(tmp_path: Path) -> None:
    build = handmade.Builder()
    build.metadata.direct_map.base = "0xffff888000000000"
    build.kmalloc(0, 100)
    build.snapshot("half", {"meminfo": "Slab:  1234 kB\n", "buddyinfo": "Node 0, zone Normal 1 2 3 0 0 0 0 0 0 0 9\n"})
    build.kmalloc(1, 20000)
    build.snapshot("end", {})
    path = build.write(tmp_path / "t.parquet")
    record = json.loads(slabyard("replay", path, "--allocator", "slub", "--format", "json", "--start", "empty").stdout)
    half, end = record["exact"]["snapshots"]
    assert (half["name"], half["slab_pages"], half["large_pages"]) == ("half", 1, 0)
    assert half["recorded_slab_kb"] == 1234 and half["recorded_free_blocks"] == [1, 2, 3, 0, 0, 0, 0, 0, 0, 0, 9]
    assert (end["large_pages"], end["recorded_slab_kb"], end["recorded_free_blocks"]) == (8, None, None)


def test_malloc_is_an_allocator_too(busy: Path) -> None:
    record = json.loads(slabyard("replay", busy, "--allocator", "malloc:system", "--format", "json").stdout)
    assert record["exact"]["requests"] == 200 and record["timed"]["seconds"] > 0 and record["run"]["tunables"] == {}


# ---- Bad input ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["nonsense"], "invalid choice"),
        (["replay"], "--allocator"),
        (["geometry", "--allocator", "slub", "0"], "no number from 1"),
        (["replay", "x.parquet", "--allocator", "slub", "--memory", "12Q"], "no size"),
        (["replay", "absent.parquet", "--allocator", "slub"], "no such file"),
        (["compare"], "needs a trace"),
        (["compare", "x.parquet", "--", "true"], "not both"),
        (["info", "x.parquet", "--", "true"], "takes no command"),
        (["record", "-o", "t.parquet"], "no command to record"),
        (["record", "-o", "t.parquet", "--", "no-such-command"], "no-such-command: no such command"),
        (["record", "-o", "t.parquet", "ls", "-l"], "record takes its command after --; write -- before ls"),
        (["run", "--allocator", "slub", "ls"], "run takes its command after --; write -- before ls"),
        (["run", "--quick", "--", "ls"], "unrecognized arguments: --quick; see slabyard run --help"),
        (["kernel", "list", "um"], "unrecognized arguments: um; see slabyard kernel list --help"),
        (["run", "--", "no-such-command"], "no-such-command: no such command"),
        (["compare", "--", "no-such-command"], "no-such-command: no such command"),
        (["record", "-o", "t.parquet", "--", "/"], "is a folder"),
        (["run", "--", "/etc/passwd"], "/etc/passwd: is not executable"),
        (["run", "--", ""], "is empty"),
        (["run", "--allocator", "", "--", "true"], "names no allocator"),
        (["compare", "x.parquet", "--memory", "-1G"], "'-1G' is no size"),
        (["compare", "x.parquet", "--report", ""], "--report: the name is empty"),
        (["compare", "x.parquet", "--report", "absent/"], "--report: 'absent/' names a folder"),
        (["compare", "x.parquet", "--export-json", "absent/"], "--export-json: 'absent/' names a folder"),
        (["record", "-o", "absent/", "--", "true"], "'absent/' names a folder"),
        (["kernel", "compare", "--allocators", "slub", "--report", "absent/"], "--report: 'absent/' names a folder"),
        (["compare", ""], "the name is empty"),
        (["replay", "x.parquet", "--allocator", "slub", "--log", ""], "--log: the name is empty"),
        (["replay", "x.parquet", "--allocator", "slub", "--proc", "buddyinfo", "--format", "json"], "--proc prints a file as"),
        (["replay", "x.parquet", "--allocator", "slub", "--proc", "slabinfo", "--runs", "2"], "--runs goes with"),
        (["record", "-o", "/no/such/folder/t.parquet", "--", "true"], "no folder"),
        (["replay", "x.parquet", "--allocator", "slub", "--caches", "--format", "csv"], "csv has one row, of the measures"),
        (["import", "absent.txt", "-o", "t.parquet"], "absent.txt"),
        (["import", "-"], "needs -o"),
        (["import", "x.txt", "--page-size", "0"], "invalid choice: 0"),
        (["kernel", "run", "--allocator", "slub", "--workload", "boot", "-o", "/dev/null/folder"], "/dev/null is no folder"),
    ],
)
def test_wrong_usage(words: list[str], says: str, tmp_path: Path) -> None:
    assert says in complaint(slabyard(*words, cwd=tmp_path), 2)
    assert not list(tmp_path.iterdir())


def test_wrong_allocators_and_tunables(busy: Path) -> None:
    assert "slub" in complaint(slabyard("replay", busy, "--allocator", "slbu"), 2)
    assert "max_order" in complaint(slabyard("replay", busy, "--allocator", "slub:maxorder=3"), 2)
    assert "10" in complaint(slabyard("replay", busy, "--allocator", "slub:max_order=99"), 2)
    assert "twice" in complaint(slabyard("compare", busy, "--allocators", "slub,slob,slub"), 2)
    complaint(slabyard("replay", busy, "--allocator", "malloc:/no/such/lib.so"), 2)


def test_files_that_are_no_traces(busy: Path, tmp_path: Path) -> None:
    foreign = tmp_path / "foreign.parquet"
    foreign.write_text("no trace at all")
    cut = tmp_path / "cut.parquet"
    cut.write_bytes(busy.read_bytes()[:-100])
    for path in (foreign, cut, tmp_path):
        for words in (["info", path], ["replay", path, "--allocator", "slub"], ["compare", path]):
            complaint(slabyard(*words), 2)


def test_a_trace_is_no_pipe(busy: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with subprocess.Popen(["dd", f"if={busy}", f"of={tmp_path / 'fifo'}"], stderr=subprocess.DEVNULL):
        assert "not a pipe" in complaint(slabyard("info", tmp_path / "fifo"), 2)


def test_metadata_that_is_no_metadata(busy: Path, tmp_path: Path) -> None:
    table = pq.read_table(busy)
    about = json.loads(table.schema.metadata[METADATA_KEY])
    wrong: list[tuple[Any, str]] = [
        ([1], "damaged"), (about | {"cpus": "many"}, "damaged"), (about | {"cpus": True}, "damaged"), (about | {"caches": {}}, "damaged"),
        (about | {"caches": [{"name": "a", "object_size": None}]}, "damaged"), (about | {"version": 99}, "version 99"),
        (about | {"caches": []}, "a cache that its list of caches lacks"),
    ]  # fmt: skip
    path = tmp_path / "t.parquet"
    for metadata, says in wrong:
        pq.write_table(table.replace_schema_metadata({METADATA_KEY: json.dumps(metadata).encode()}), path)
        assert says in complaint(slabyard("replay", path, "--allocator", "slub"), 2)
    place = table.schema.get_field_index("time")
    pq.write_table(table.set_column(place, "time", table["time"].cast("string")), path)
    assert "column time is of type string" in complaint(slabyard("replay", path, "--allocator", "slub"), 2)


def test_the_bundled_traces_have_checksums() -> None:
    found = sorted((Path(__file__).parents[2] / "traces").glob("*.parquet"))
    assert len(found) == 5
    for path in found:
        file = pq.ParquetFile(path)
        assert file.metadata.metadata[CHECKSUM_KEY] == checksum(file.metadata.metadata[METADATA_KEY])
        page = bytearray(path.read_bytes())
        column = file.metadata.row_group(0).column(0)
        page[column.data_page_offset + column.total_compressed_size - 1] ^= 1
        with pytest.raises(OSError, match="CRC"):
            pq.ParquetFile(pa.BufferReader(bytes(page)), page_checksum_verification=True).read()


def test_damage_in_the_middle(busy: Path, tmp_path: Path) -> None:
    data = bytearray(busy.read_bytes())
    data[200:2200] = bytes(2000)
    damaged = tmp_path / "damaged.parquet"
    damaged.write_bytes(data)
    complaint(slabyard("replay", damaged, "--allocator", "slub"), 2)


@pytest.mark.parametrize("what", ["its time goes back", "not in use"])
def test_rows_that_cannot_be_are_of_the_trace(what: str, tmp_path: Path) -> None:
    build = handmade.Builder()
    for number in (1, 2):
        build.kmalloc(number, 64)
    if what == "its time goes back":
        build.rows.reverse()
    else:
        build.kfree(1)
        build.kfree(1)
    path = build.write(tmp_path / "t.parquet")
    for words in (["replay", path, "--allocator", "slub"], ["replay", path, "--allocator", "slub", "--proc", "slabinfo"]):
        said = complaint(slabyard(*words), 2)
        assert said.startswith(f"slabyard: {path}: damaged, ") and what in said and said.endswith("; import the capture again")
    assert f"{path}: damaged, " in slabyard("threads", path, "--allocator", "slub", "--runs", "1").stderr


def test_start_recorded_needs_a_snapshot(busy: Path) -> None:
    assert "no snapshot" in complaint(slabyard("replay", busy, "--allocator", "slub", "--start", "recorded"), 2)


def test_trace_larger_than_the_memory(tmp_path: Path) -> None:
    build = handmade.Builder()
    for number in range(8):
        build.page_alloc(number, 10)
    done = slabyard("replay", build.write(tmp_path / "t.parquet"), "--allocator", "slub", "--memory", "16M")
    assert "more than the simulated memory of 16 MiB" in complaint(done, 2)


def test_lost_events_change_the_status(tmp_path: Path) -> None:
    lossy = handmade.busy(tmp_path / "lossy.parquet", lost=3)
    for words in (["info", lossy], ["replay", lossy, "--allocator", "slub"], ["compare", lossy, "--runs", "1", "--allocators", "slub"]):
        done = slabyard(*words)
        assert done.returncode == 3 and "3 events were lost" in done.stderr and done.stdout


def test_a_closed_pipe_is_quiet(busy: Path) -> None:
    command = [sys.executable, "-m", "slabyard", "info", str(busy), "--format", "json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout and process.stderr
        process.stdout.close()
        assert process.stderr.read() == b""


def test_a_full_disk_is_one_line(busy: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([sys.executable, "-m", "slabyard", "list"], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1 and "no space left" in done.stderr


@pytest.mark.parametrize("words", ["--help", "--version", "replay --help", "threads --list", "geometry --allocator slub 64"])
def test_a_full_disk_is_noticed_by_all(words: str) -> None:
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "slabyard", *words.split()]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert "no space left" in complaint(subprocess.CompletedProcess([], done.returncode, "", done.stderr), 2)


def limited(limit: str, *words: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    """The command line under a limit of the shell's."""
    shell = ["sh", "-c", f'ulimit {limit}; exec "$@"', "sh", sys.executable, "-m", "slabyard", *map(str, words)]
    return subprocess.run(shell, capture_output=True, text=True, check=False, **options)


def test_limits_are_one_line(busy: Path, tmp_path: Path) -> None:
    """Too little memory, and files that get too large: no half-written file stays."""
    out, scratch = tmp_path / "out", tmp_path / "scratch"
    out.mkdir()
    scratch.mkdir()
    env = {**os.environ, "TMPDIR": str(scratch)}
    capture = tmp_path / "capture.txt"
    line = "x-1 [000] ..... 1.{:06}: kfree: call_site=f+0x1/0x2 ptr=00000000abcdef01\n"
    capture.write_text("".join(line.format(n) for n in range(9999)))
    script = tmp_path / "script"
    script.write_text("cache a 100\nalloc a..z a\n")
    assert "ulimit -v" in complaint(limited("-v 100000", "info", busy), 2)
    assert "ulimit -v" in complaint(limited("-v 3000000", "replay", busy, "--allocator", "slub", "--memory", "64G"), 2)
    for words in (
        ["import", capture, "-o", out / "t.parquet"],
        ["replay", busy, "--allocator", "slub"],
        ["layout", "--allocator", "slub", script, "--svg", out / "s.svg"],
    ):
        said = complaint(limited("-f 1", *words, env=env), 2).lower()
        assert "too large" in said and "raise the limit (ulimit -f)" in said
        assert not list(out.iterdir()) and not list(scratch.iterdir())
    words = ["compare", busy, "--allocators", "slub", "--runs", "1"]
    assert complaint(limited("-n 9", *words), 2) == "slabyard: too many files are open; raise the limit (ulimit -n)"
    assert "TMPDIR" in complaint(limited("-f 0", "replay", busy, "--allocator", "slub", env=env), 2)


def test_a_folder_that_was_removed(busy: Path, tmp_path: Path) -> None:
    line = f'mkdir gone; cd gone; rmdir ../gone; "{sys.executable}" -m slabyard compare "{busy}" --report r.html'
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert "has been removed" in complaint(done, 2)


def test_a_bug_is_one_line_and_tells_how_to_see_more(busy: Path, tmp_path: Path) -> None:
    script = (
        "import sys; from slabyard.command import cli; from slabyard.trace import info; "
        "info.describe = lambda path: 1 // 0; sys.exit(cli.main(['info', sys.argv[1]]))"
    )
    command = [sys.executable, "-c", script, str(busy)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "ZeroDivisionError" in complaint(done, 2) and "SLABYARD_TRACEBACK=1" in done.stderr
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "SLABYARD_TRACEBACK": "1"})
    assert "Traceback" in done.stderr


def test_interrupt(tmp_path: Path) -> None:
    build = handmade.Builder()
    build.metadata.direct_map.base = "0xffff888000000000"
    for number in range(20000):
        build.kmalloc(number, 32 + number % 1000)
    path = build.write(tmp_path / "t.parquet")
    out = tmp_path / "out"
    out.mkdir()
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    env = {**os.environ, "TMPDIR": str(scratch)}
    command = [sys.executable, "-m", "slabyard", "compare", str(path), "--runs", "1000", "--export-json", str(out / "r.json")]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=env,
        start_new_session=True,
    ) as process:
        assert process.stderr and process.stdout
        assert "replaying" in process.stderr.readline()
        time.sleep(1)
        os.killpg(process.pid, signal.SIGINT)
        out_text, err_text = process.communicate(timeout=30)
    assert process.returncode == 130 and err_text == "slabyard: interrupted\n" and out_text == ""
    assert not list(out.iterdir()) and not list(scratch.iterdir())


def test_ctrl_c_before_anything_is_loaded(tmp_path: Path) -> None:
    package = Path(sys.modules["slabyard"].__file__ or "").parent
    command = [sys.executable, "-X", "importtime", "-m", "slabyard", "import", "-", "-o", str(tmp_path / "t.parquet")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=package.parent) as process:
        assert process.stderr
        for line in process.stderr:
            if line.rstrip().endswith("argparse"):
                break
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read()
    assert process.returncode == 130 and "Traceback" not in rest and not list(tmp_path.iterdir())
    assert rest.splitlines()[-1] == "slabyard: interrupted"


@pytest.mark.parametrize(("package", "form"), [("tabulate", "md"), ("argparse", "text")])  # of a verb, of every command line
def test_a_package_that_is_missing(package: str, form: str) -> None:
    script = f"import sys; sys.modules[{package!r}] = None; from slabyard.__main__ import run; sys.exit(run())"
    done = subprocess.run([sys.executable, "-c", script, "list", "--format", form], capture_output=True, text=True, check=False)
    assert package in complaint(done, 4) and "pip install ." in done.stderr


def test_the_command_ends_without_finalizing_the_interpreter() -> None:
    """A thread of pyarrow may abort the process while Python ends; here an exit function does."""
    script = "import atexit, os; atexit.register(os.abort); from slabyard.__main__ import main; main()"
    done = subprocess.run([sys.executable, "-c", script, "list"], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "slub" in done.stdout and not done.stderr


def test_the_command_tidies_up_as_it_ends() -> None:
    """Python's tracker of semaphores would report one that is left."""
    script = """if True:
        import slabyard.__main__ as entry
        def run():
            global kept
            import multiprocessing
            kept = multiprocessing.get_context("spawn").Semaphore()
            return 3
        entry.run = run
        entry.main()
    """
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (3, "", "")


def test_an_interrupt_that_python_wraps_is_one() -> None:
    script = """if True:
        import os, signal, sys
        from slabyard.command import cli
        from slabyard.replay import allocators

        class Descriptor:
            def __set_name__(self, owner, name):
                os.kill(os.getpid(), signal.SIGINT)
                os.kill(os.getpid(), signal.SIGINT)  # of an impatient user

        allocators.policies = lambda: type("Made", (), {"member": Descriptor()})
        sys.exit(cli.main(["list"]))
    """
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert complaint(done, 130) == "slabyard: interrupted"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_other_signals_tidy_up_too(number: signal.Signals, tmp_path: Path) -> None:
    path = handmade.busy(tmp_path / "t.parquet")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    env = {**os.environ, "TMPDIR": str(scratch)}
    command = [sys.executable, "-m", "slabyard", "compare", str(path), "--runs", "1000"]

    def not_ignored() -> None:  # as nohup has SIGHUP
        signal.signal(number, signal.SIG_DFL)

    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env, preexec_fn=not_ignored) as process:
        assert process.stderr and "replaying" in process.stderr.readline()
        time.sleep(0.5)
        process.send_signal(number)
        out_text, err_text = process.communicate(timeout=30)
    assert (process.returncode, out_text, err_text) == (130, "", "slabyard: interrupted\n")
    assert not list(scratch.iterdir())


def test_closed_streams_are_one_line(busy: Path, tmp_path: Path) -> None:
    def shell(line: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["sh", "-c", f"{sys.executable} -m slabyard {line}"], capture_output=True, text=True, check=False)

    for words in ("list >&-", f"replay {busy} --allocator slub >&-", f"info {busy} --format json >&-"):
        assert "standard output is closed" in complaint(shell(words), 2)
    assert "standard input is closed" in complaint(shell("import - -o t.parquet <&-"), 2)
    done = shell(f"info {busy.with_name('absent.parquet')} 2>&-")
    assert (done.returncode, done.stdout, done.stderr) == (2, "", "")
    done = shell(f"export {busy} --format pprof -o {tmp_path / 'o.pb.gz'} >&-")
    assert (done.returncode, done.stderr) == (0, "") and (tmp_path / "o.pb.gz").stat().st_size


@pytest.mark.parametrize("where", ["2>/dev/full", "2>&1 >&3 | true", "2>&-"])
def test_notes_that_nobody_reads_end_nothing(where: str, busy: Path) -> None:
    words = f"{sys.executable} -m slabyard compare {busy} --allocators slub --runs 1 {where}"
    done = subprocess.run(["sh", "-c", f"exec 3>&1; {words}"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "") and "slub" in done.stdout


# ---- Outputs that are no plain files -----------------------------------------------------------------------------


def test_outputs_leave_devices_and_links_what_they_are(busy: Path, tmp_path: Path) -> None:
    capture = tmp_path / "capture.txt"
    capture.write_text("x-1 [000] ..... 1.000000: kfree: call_site=f+0x1/0x2 ptr=00000000abcdef01\n")
    real, link, fifo = tmp_path / "real.html", tmp_path / "link.html", tmp_path / "fifo"
    link.symlink_to(real)
    os.mkfifo(fifo)
    node = Path("/dev/null").stat().st_rdev
    words = ("compare", busy, "--runs", "1", "--allocators", "slub")
    with subprocess.Popen(["cat", str(fifo)], stdout=subprocess.PIPE) as reader:
        done = slabyard(*words, "--report", link, "--export-json", fifo)
        assert done.returncode == 0 and reader.stdout and json.loads(reader.stdout.read())
    assert link.is_symlink() and "<html" in real.read_text() and fifo.is_fifo()
    assert slabyard("import", capture, "-o", "/dev/null").returncode == 0
    assert slabyard(*words, "--export-json", "/dev/null").returncode == 0
    assert Path("/dev/null").stat().st_rdev == node and Path("/dev/null").is_char_device()
    done = slabyard(*words, "--export-json", "/dev/full")
    assert done.returncode == 2 and done.stderr.splitlines()[-1].startswith("slabyard: no space left")
    assert Path("/dev/full").is_char_device()
    assert {path.name for path in tmp_path.iterdir()} == {"capture.txt", "real.html", "link.html", "fifo"}


def test_names_that_cannot_be_shown(busy: Path, tmp_path: Path) -> None:
    """A trace's name may have bytes that are no UTF-8, and lines; the terminal may lack its letters. Tables keep their lines."""
    strange = tmp_path / os.fsdecode(b"a\xff\nb\xc3\xa9.parquet")
    shutil.copy(busy, strange)
    for encoding, shown in (("utf-8", "a\\xff\\nb\u00e9"), ("ascii", "a\\xff\\nb\\xe9")):
        for verb in (("info",), ("replay", "--allocator", "slub"), ("threads", "--allocator", "slub", "--runs", "1")):
            done = slabyard(*verb, strange, env={**os.environ, "PYTHONIOENCODING": encoding + ":strict"}, encoding="utf-8")
            assert done.returncode == 0 and shown in done.stdout.partition("\n\n")[0].replace("\n", ""), done
    assert complaint(slabyard("info", tmp_path / os.fsdecode(b"\xff")), 2).endswith("/\\xff: no such file")
    for form in ("csv", "parquet", "pprof", "perfetto", "speedscope", "folded"):
        out = strange.with_suffix(f".out.{form}")
        done = slabyard("export", strange, "--format", form, "-o", out)
        assert done.returncode == 0 and out.stat().st_size, done.stderr
    report = tmp_path / "report.html"
    done = slabyard("compare", strange, "--allocators", "slub", "--runs", "1", "--report", report)
    assert done.returncode == 0 and "a\\xff\\nb\u00e9" in report.read_text("utf-8"), done.stderr


# ---- Failures and logs -------------------------------------------------------------------------------------------


def test_failures_are_counted_where_asked(tmp_path: Path) -> None:
    build = handmade.Builder()
    for number in range(8):
        build.page_alloc(number, 10)
    build.kmalloc(8, 8 << 20)
    path = build.write(tmp_path / "t.parquet")
    words = ("replay", path, "--allocator", "slub", "--memory", "16M", "--format", "json")
    complaint(slabyard(*words), 2)
    record = json.loads(slabyard(*words, "--allow-failures").stdout)
    assert record["run"]["allow_failures"] is True
    assert (record["exact"]["failures"], record["exact"]["oversized_failures"]) == (1, 1) and record["exact"]["environment_failures"] >= 4
    text = slabyard("compare", path, "--allocators", "slub", "--memory", "16M", "--runs", "1", "--allow-failures").stdout
    assert "the simulated memory was full" in text and "no block of pages is larger than 4 MiB" in text.replace("\n", " ")
    plain = json.loads(slabyard("replay", path, "--allocator", "slub", "--format", "json").stdout)["exact"]
    assert (plain["failures"], plain["oversized_failures"], plain["environment_failures"]) == (1, 1, 0), "refused by none"


def test_blocks_larger_than_the_largest(tmp_path: Path) -> None:
    build = handmade.Builder()
    build.page_alloc(0, 13)
    line = complaint(slabyard("replay", build.write(tmp_path / "t.parquet"), "--allocator", "slub"), 2)
    assert "blocks of order 13" in line and "order 10" in line


def test_more_cpus_than_there_can_be(tmp_path: Path) -> None:
    build = handmade.Builder()
    build.metadata.cpus, build.metadata.nodes = 600, 17
    build.kmalloc(0, 100)
    done = slabyard("replay", build.write(tmp_path / "t.parquet"), "--allocator", "slub")
    assert done.returncode == 0 and "recorded on 600 CPUs; replayed on 512" in done.stderr and "17 memory nodes" in done.stderr


def test_log_of_a_policy(busy: Path, tmp_path: Path) -> None:
    words = ("replay", busy, "--allocator", "slob:fit=best,log_every=10", "--format", "json")
    log = tmp_path / "log"
    done = slabyard(*words, "--log", log)
    assert done.returncode == 0 and done.stderr.count("slob_") == 0
    lines = log.read_text().splitlines()
    assert len(lines) == 3 * (200 // 10) and lines[0].startswith("slob_request ")
    assert slabyard(*words, "--log", "-").stderr.count("slob_candidates") == 20
    assert "logs nothing" in slabyard("replay", busy, "--allocator", "slub", "--log", log).stderr


def test_no_space_for_the_scratch_file(busy: Path) -> None:
    script = (
        "import errno, sys; from slabyard.command import cli; from slabyard.replay import scratch\n"
        "def full(*_): raise OSError(errno.ENOSPC, 'No space left on device')\n"
        "scratch.translate = full\n"
        "sys.exit(cli.main(['replay', sys.argv[1], '--allocator', 'slub']))"
    )
    done = subprocess.run([sys.executable, "-c", script, str(busy)], capture_output=True, text=True, check=False)
    line = complaint(done, 2)
    assert "no space left in" in line and "TMPDIR" in line


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--allocators", "slubb"], "slubb"),
        (["--allocators", "malloc:/no/such/lib.so"], "no/such"),
        (["--memory", "8M", "--nodes", "16"], "too little for 16 nodes"),
    ],
)
def test_compare_checks_before_it_records(words: list[str], says: str, tmp_path: Path) -> None:
    assert says in complaint(slabyard("compare", *words, "--", "touch", tmp_path / "ran"), 2)
    assert not (tmp_path / "ran").exists()


def test_what_was_recorded_outlives_a_failure(tmp_path: Path) -> None:
    script = (
        "import os, shutil, sys; from slabyard.capture import record; from slabyard.command import cli, recording\n"
        "record.check = lambda command: None\n"
        "recording.record_for_compare = lambda command, output: shutil.copy(sys.argv[1], output)\n"
        "sys.exit(cli.main(['compare', '--allocators', 'slub', '--start', 'recorded', '--', 'make']))"
    )
    trace = handmade.busy(tmp_path / "t.parquet")  # has no snapshot
    env = {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", script, str(trace)], capture_output=True, text=True, check=False, env=env)
    assert done.returncode == 2 and "no snapshot" in done.stderr
    kept = next(line for line in done.stderr.splitlines() if "is kept" in line).split(": ")[-1]
    assert Path(kept).name == "make.parquet" and Path(kept).read_bytes() == trace.read_bytes()


def test_where_path_is_empty_that_is_said(tmp_path: Path) -> None:
    env = {**os.environ, "PATH": ""}
    for words in (["record", "-o", "t.parquet"], ["run"]):
        assert "PATH is empty" in complaint(slabyard(*words, "--", "true", cwd=tmp_path, env=env), 4)


def test_a_program_of_ours_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(programs, "BIN", tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match=f"^slabyard-replay is neither in {tmp_path} nor on PATH"):
        programs.program(programs.REPLAY)


def test_a_long_job_without_a_terminal_says_how_far_it_is(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    now = [0.0]
    monkeypatch.setattr(terminal.time, "monotonic", lambda: now[0])
    with terminal.Progress(1000) as progress:
        progress.stage("replaying a")
        for at in range(1000):
            now[0] = at / 10
            progress.step(f"a: run {at}")
    assert capsys.readouterr().err.splitlines() == [
        "slabyard: replaying a", *(f"slabyard: {30 * 10 * one + 1:,} of 1,000 steps: a: run {300 * one}" for one in (1, 2, 3)),
    ]  # fmt: skip


def test_the_command_is_installed() -> None:
    found = shutil.which("slabyard", path=str(Path(sys.executable).parent))
    assert found, "pip install . makes the command"
    assert subprocess.run([found, "--version"], capture_output=True, text=True, check=True).stdout.startswith("slabyard ")


def test_signals_wait_until_python_answers_them(tmp_path: Path) -> None:
    """An interrupt before Python runs any of our code ends the command like a later one."""
    installed = Path(sys.executable).parent / "slabyard"
    command = tmp_path / "slabyard"
    shutil.copy(installed, command)
    done = subprocess.run([command, "list"], capture_output=True, text=True, check=False)
    assert complaint(done, 4) == f"slabyard: {command}-python: No such file or directory; install slabyard again (pip install .)"
    start = tmp_path / "slabyard-python"
    start.touch(mode=0o600)
    done = subprocess.run([command, "list"], capture_output=True, text=True, check=False)
    advice = "let this user read and run it, and the Python that its first line names"
    assert complaint(done, 4) == f"slabyard: {start}: Permission denied; {advice}"
    for name in ("INT", "TERM", "HUP"):
        start.write_text(f'#!/bin/sh\nkill -{name} $$\nexec {installed}-python "$@"\n')
        start.chmod(0o755)
        for how, status, out in ((signal.SIG_DFL, 130, ""), (signal.SIG_IGN, 0, "slabyard ")):
            answer = functools.partial(signal.signal, getattr(signal, f"SIG{name}"), how)
            done = subprocess.run([command, "--version"], capture_output=True, text=True, check=False, preexec_fn=answer)
            assert (done.returncode, done.stdout[:9], done.stderr) == (status, out, "" if out else "slabyard: interrupted\n")


def test_variables_for_python_are_the_users(tmp_path: Path) -> None:
    """They change nothing for the lab, and what it starts has them."""
    command = Path(sys.executable).parent / "slabyard"
    for name in ("slabyard", "argparse", "numpy"):
        (tmp_path / f"{name}.py").write_text("raise RuntimeError('not for slabyard')\n")
    variables = {"PYTHONPATH": str(tmp_path), "PYTHONHOME": "/nonexistent", "PYTHONIOENCODING": "none", "PYTHONWARNINGS": "error"}
    done = subprocess.run([command, "run", "--", "env"], capture_output=True, text=True, env={**os.environ, **variables}, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert {f"{name}={value}" for name, value in variables.items()} <= set(done.stdout.splitlines())


def test_free_lists_as_the_files_of_proc_show_them() -> None:
    """The text looks like the recorded kernel's own, row by row: the same zones and migrate types, with other figures."""
    path = Path(__file__).parents[2] / "traces" / "build.parquet"
    with Trace(path) as opened:
        files = opened.metadata.snapshots[-1].files
    for name in ("buddyinfo", "pagetypeinfo"):
        done = slabyard("replay", path, "--allocator", "slub", "--proc", name)
        assert done.returncode == 0, done.stderr
        shapes = [[re.sub(r">?\d+", "0", line).split() for line in text.splitlines()] for text in (done.stdout, files[name])]
        assert shapes[0] == shapes[1]


def test_what_is_read_is_not_written_over(tmp_path: Path) -> None:
    trace = handmade.busy(tmp_path / "t.parquet")
    before = trace.read_bytes()
    (tmp_path / "link").symlink_to(trace)
    few = ("--allocators", "slub", "--runs", "1")
    for output in (trace, tmp_path / "link"):
        for option in ("--report", "--export-json"):
            assert "is also read" in complaint(slabyard("compare", trace, *few, option, output), 2)
        assert "is also read" in complaint(slabyard("replay", trace, "--allocator", "slob", "--log", output), 2)
    assert "is also read" in complaint(slabyard("threads", trace, "--allocator", "slub", "--export-json", trace), 2)
    text = tmp_path / "capture.txt"
    text.write_text("nothing\n")
    assert "is also read" in complaint(slabyard("import", text, "-o", text), 2)
    both = tmp_path / "both"
    assert "named for two outputs" in complaint(slabyard("compare", trace, *few, "--report", both, "--export-json", both), 2)
    assert trace.read_bytes() == before and text.read_text() == "nothing\n" and not both.exists()


def test_compare_says_what_is_named_twice_or_not_at_all(tmp_path: Path) -> None:
    trace = handmade.busy(tmp_path / "t.parquet")
    assert "is named twice" in complaint(slabyard("compare", trace, trace), 2)
    assert "slabyard compare -- make" in complaint(slabyard("compare", "--"), 2)
    assert "--caches goes with" in complaint(slabyard("replay", trace, "--allocator", "slub", "--caches", "--slabinfo"), 2)
    assert slabyard("compare", trace, "--allocators", "slub, slab", "--runs", "1").returncode == 0


@pytest.mark.parametrize("verb", ["list", "info"])  # of a dump
def test_a_verb_loads_what_it_needs_alone(verb: str) -> None:
    dump = Path(__file__).parents[1] / "data/linux-6.1-um-slub/hackbench/slabinfo.after"
    words = [verb] if verb == "list" else [verb, str(dump), "--format", "csv"]
    script = (
        "import sys; from slabyard.__main__ import run; status = run()\n"
        "print(status, sorted({'numpy', 'pyarrow', 'tabulate', 'rich', 'jinja2', 'plotly'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script, *words], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[-1] == "0 []", done.stderr
