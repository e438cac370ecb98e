"""slabyard run: a command on slabyard's malloc behaves, seen from outside, as if it ran alone."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from slabyard.results.run import library

SLABYARD = [sys.executable, "-m", "slabyard"]
WITNESS = "print('libslabyard-malloc' in open('/proc/self/maps').read())"


def run(*arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*SLABYARD, "run", *arguments], capture_output=True, text=True, timeout=120, check=False, **options)  # type: ignore[call-overload,no-any-return]


def run_for_report(directory: Path, *arguments: str) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    """What the command did, and the report of its only process."""
    export = directory / "reports.json"
    done = run("--export-json", str(export), *arguments)
    (report,) = json.loads(export.read_text(encoding="utf-8"))
    return done, report


@pytest.mark.parametrize("stats", [[], ["--stats"]])
def test_the_command_runs_on_our_malloc(stats: list[str]) -> None:
    done = run(*stats, "--", sys.executable, "-c", WITNESS)
    assert (done.returncode, done.stdout) == (0, "True\n")


@pytest.mark.parametrize("stats", [[], ["--stats"]])
def test_exit_status_and_streams_pass_through(stats: list[str]) -> None:
    done = run(*stats, "--", "sh", "-c", "cat; echo said >&2; exit 41", input="given\n")
    assert (done.returncode, done.stdout) == (41, "given\n")
    assert done.stderr.startswith("said\n")


@pytest.mark.parametrize("stats", [[], ["--stats"]])
def test_the_signal_that_ended_the_command_ends_run(stats: list[str]) -> None:
    assert run(*stats, "--", "sh", "-c", "kill -SEGV $$").returncode == -signal.SIGSEGV


@pytest.mark.parametrize("stats", [[], ["--stats"]])
def test_a_signal_to_run_reaches_the_command(stats: list[str]) -> None:
    command = ["sh", "-c", "trap 'echo caught; exit 7' TERM; echo ready; while :; do sleep 0.1; done"]
    with subprocess.Popen([*SLABYARD, "run", *stats, "--", *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.2)
        process.terminate()
        assert process.stdout.read() == "caught\n"
        assert process.wait(timeout=30) == 7


def test_a_wrong_spec_is_refused_before_anything_runs() -> None:
    done = run("--allocator", "slup", "--", "echo", "ran")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "slabyard: no allocator is named slup: did you mean slub?\n"
    assert "min_order cannot be 99" in run("--allocator", "slub:min_order=99", "--", "echo").stderr


WRONG = [
    ("sl\nub\x1b[31m", "sl?ub?[31m"),
    ("é" * 50000, "é" * 50 + "..."),
    ("slub:" + "x" * 100000, "slub:" + "x" * 95 + "..."),
    ("slub:cpu_partial=\a", "slub:cpu_partial=?"),
]


@pytest.mark.parametrize(("spec", "shown"), WRONG)
def test_a_wrong_spec_is_one_line_whatever_it_has(spec: str, shown: str) -> None:
    variables = {**os.environ, "LD_PRELOAD": str(library()), "SLABYARD": spec}
    done = subprocess.run(["true"], env=variables, capture_output=True, check=False)
    told = done.stderr.decode()
    assert done.returncode == 2 and told.endswith("\n") and len(told) < 540
    assert told.startswith(f"slabyard: SLABYARD={shown}: ") and told[:-1].isprintable()
    asked = run("--allocator", spec, "--", "echo", "ran")
    assert (asked.returncode, asked.stdout) == (2, "")
    assert asked.stderr.startswith("slabyard: ") and asked.stderr[:-1].isprintable() and len(asked.stderr) < 540


def test_a_missing_command_is_one_line() -> None:
    for stats in ([], ["--stats"]):
        done = run(*stats, "--", "/no/such/command")
        assert (done.returncode, done.stderr) == (2, "slabyard: /no/such/command: no such command\n")
    assert run().returncode == 2


@pytest.mark.parametrize(("first_line", "says"), [("#!/no/such/interpreter", "no interpreter"), ("true", "no program of this machine")])
def test_a_script_that_cannot_be_run_is_one_line(first_line: str, says: str, tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text(first_line + "\n")
    script.chmod(0o755)
    for stats in ([], ["--stats"]):
        done = run(*stats, "--", str(script))
        assert done.returncode == 2 and says in done.stderr
        assert done.stderr.startswith(f"slabyard: {script}: cannot be run: ") and done.stderr.count("\n") == 1


def test_statistics_count_what_was_asked_for(tmp_path: Path) -> None:
    program = "x = [bytearray(3000) for _ in range(5000)]; del x; y = [bytearray(100000) for _ in range(50)]"
    done, report = run_for_report(tmp_path, "--allocator", "slub", "--", sys.executable, "-c", program)
    sizes = {item["bytes"]: item for item in report["classes"]}
    assert sizes[3072]["allocations"] >= 5000
    assert sizes[3072]["allocations"] - sizes[3072]["frees"] < 1000
    assert report["live_bytes_peak"] > 15_000_000
    assert report["live_bytes"] < report["live_bytes_peak"]
    assert report["slab_pages"] + report["run_pages"] <= report["held_pages_peak"]
    assert report["allocator"] == "slub"
    assert "up to bytes" in done.stderr
    assert "resident" in done.stderr and max(map(len, done.stderr.splitlines())) <= 80


@pytest.mark.parametrize("allocator", ["slub", "slab"])
def test_statistics_count_what_is_freed_at_once(allocator: str, tmp_path: Path) -> None:
    program = "for _ in range(20000): bytearray(700)"
    _, report = run_for_report(tmp_path, "--allocator", allocator, "--", sys.executable, "-c", program)
    (item,) = (item for item in report["classes"] if item["bytes"] == 768)
    assert item["allocations"] >= 20000
    assert item["allocations"] - item["frees"] < 1000


def test_a_program_that_writes_over_its_environment_reports() -> None:
    done = run("--stats", "--", "perl", "-e", '$0 = "title" x 2000')
    assert done.returncode == 0 and "up to bytes" in done.stderr


NAMES = [
    (b"na\xffme \xe9", "na?me ?"),
    ("käse\u2028牛".encode(), "käse\u2028牛"),
    (b'two\nlines \x1b[31m \xc2\x9b \x7f "', "two?lines ?[31m ?? ? ?"),
    (b"\xed\xa0\x80 \xc0\xaf \xf0\x8f\xbf\xbf \xf4\x90\x80\x80 \xe2\x82", "??? ?? ???? ???? ??"),
    (b"x" * 70000, "x" * 1000),
]


@pytest.mark.parametrize(("name", "shown"), NAMES)
def test_a_program_may_have_any_name(name: bytes, shown: str, tmp_path: Path) -> None:
    done, report = run_for_report(tmp_path, "--", "bash", "-c", 'exec -a "$1" ls /dev/null', "bash", os.fsdecode(name))
    assert done.returncode == 0 and "Traceback" not in done.stderr
    assert report["program"] == shown


def test_every_process_reports_its_own() -> None:
    done = run("--stats", "--", "sh", "-c", f"{sys.executable} -c 'pass'; {sys.executable} -c 'pass'; true")
    assert "of 3 processes" in done.stderr or "of 2 processes" in done.stderr


def test_a_report_that_is_cut_off_is_told() -> None:
    done = subprocess.run(
        ["sh", "-c", 'ulimit -f 1; exec "$@"', "sh", *SLABYARD, "run", "--stats", "--", "sh", "-c", "exec ls /dev/null"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0 and done.stdout == "/dev/null\n"
    assert "1 of 1 reports are cut off" in done.stderr and "Traceback" not in done.stderr


def test_a_closed_output_is_the_commands_business() -> None:
    line = " ".join([*SLABYARD, "run", "--", sys.executable, "-c", "'import sys; sys.exit(5 if sys.stdout is None else 6)'"])
    assert subprocess.run(["sh", "-c", f"{line} >&-"], capture_output=True, text=True, check=False).returncode == 5


def test_a_command_that_reports_nothing_is_explained() -> None:
    done = run("--stats", "--", "sh", "-c", "kill -KILL $$")
    assert done.returncode == -signal.SIGKILL
    assert "nothing is known of sh" in done.stderr
