"""One allocation in N on guard pages: switched on by the environment, or in a running process."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from handmade import complaint, slabyard
from preloaded import POLICIES, environment

CASES = Path(__file__).resolve().parents[1] / "cases"
BUGS = {
    "past": "write past the end", "far": "write past the end", "before": "write before the start", "after": "write after free",
    "read": "read after free", "double": "double free", "interior": "interior free",
}  # fmt: skip


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("sampled") / "sampled"
    subprocess.run([shutil.which("cc") or "cc", "-O1", "-g", "-fno-builtin", str(CASES / "sampled.c"), "-o", str(path)], check=True)
    return str(path)


def _run(argv: list[str], policy: str, rate: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(argv, env=environment(policy, SLABYARD_SAMPLE=rate), capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("policy", POLICIES)
def test_one_in_n(program: str, policy: str) -> None:
    done = _run([program, "count", "200000"], policy, "500")
    assert done.returncode == 0, done.stderr
    assert 300 < int(done.stdout) < 500, "of 400 in the mean"
    assert _run([program, "count", "20000"], policy, "off").stdout == "0\n"
    assert 300 < int(_run([program, "count", "200000", "1"], policy, "500").stdout) < 500, "of a single byte likewise"


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("bug", list(BUGS))
def test_bugs_are_named(program: str, policy: str, bug: str) -> None:
    done = _run([program, bug], policy, "20")
    assert done.returncode < 0, "aborted"
    first, *report = done.stderr.splitlines()
    told = re.fullmatch(r"slabyard: (.+): 0x([0-9a-f]+)", first)
    assert told and told[1] == BUGS[bug], done.stderr
    assert 0 <= int(told[2], 16) - int(done.stdout.split()[-1], 16) + 1 <= 4111
    assert any("main" in line for line in report)


@pytest.mark.parametrize("policy", ["yard", "slab"])
def test_sampled_objects_can_be_resized(program: str, policy: str) -> None:
    done = _run([program, "resize"], policy, "20")
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stderr


@pytest.mark.parametrize("policy", ["yard", "slob"])
def test_mappings_may_be_where_sampled_objects_were(program: str, policy: str) -> None:
    done = _run([program, "reuse"], policy, "1")
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stderr


def test_every_allocation(program: str) -> None:
    """As many are sampled as may be at once, and no more, even if all could be."""
    done = _run([program, "count", "5000"], "yard", "1")
    assert 1000 <= int(done.stdout) < 5000
    assert _run([shutil.which("perl") or "perl", "-e", "my @a = map {[1..3]} 1..5000; print scalar(@a)"], "yard", "1").stdout == "5000"


@pytest.mark.parametrize("policy", POLICIES)
def test_objects_of_new_are_sampled_from_the_first_on(tmp_path: Path, policy: str) -> None:
    """Of the program, and of each thread."""
    made = str(tmp_path / "new")
    subprocess.run(["c++", "-std=c++17", "-O1", "-g", "-fno-builtin", "-pthread", str(CASES / "sampled_new.cc"), "-o", made], check=True)
    done = _run([made, "delete"], policy, "1")
    assert (done.returncode, done.stdout, done.stderr) == (0, "ok\n", "")
    for where in ("past", "thread"):
        done = _run([made, where], policy, "1")
        assert done.returncode == -6 and done.stderr.startswith("slabyard: write past the end: 0x"), (where, done.stderr)


@pytest.mark.parametrize("policy", ["yard", "slub", "slob"])
def test_switched_on_in_a_running_process(program: str, policy: str) -> None:
    variables = environment(policy, SLABYARD_SAMPLE="off")
    with subprocess.Popen([program, "wait"], env=variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin and process.stdout
        assert process.stdout.readline() == "0\n"
        for words, expected in ((("--rate", "100"), True), (("--off",), False), (("--rate", "50"), True)):
            assert slabyard("sample", *words, str(process.pid)).returncode == 0
            counts = []
            for _ in range(3):  # in the first the library may not have looked yet
                process.stdin.write("x")
                process.stdin.flush()
                counts.append(int(process.stdout.readline()))
            assert (counts[-1] > 0) == expected, (words, counts)
        process.stdin.close()
    assert process.returncode == 0


def test_errors_are_one_line(program: str) -> None:
    for value, why in (("x", "not a rate"), ("0", "out of range"), ("2G", "out of range")):
        done = _run([program, "count", "1"], "yard", value)
        assert done.returncode == 2 and done.stderr.startswith(f"slabyard: SLABYARD_SAMPLE={value}: {why}") and done.stderr.count("\n") == 1
    with subprocess.Popen([shutil.which("sleep") or "sleep", "60"]) as other:
        for pid, status, why in ((str(other.pid), 2, "does not run on slabyard's malloc"), ("4194303", 2, "there is no process")):
            assert why in complaint(slabyard("sample", pid), status)
        other.kill()
