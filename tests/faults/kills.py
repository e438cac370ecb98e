"""SIGKILL and other signals at random moments, and full disks: of an import, a comparison, a sweep and a recording.

    python tests/faults/kills.py [--points N] [--signals N] [--disks N] [--pairs N] [--verbs import,compare,sweep,record] [--seed N]

Each verb runs once whole. Then it is killed at --points moments, drawn from all of its time. After each kill its output must be
the old one or the whole new one, and none of its processes may be left. Now and then it runs again over what was left, and must
end as it did the first time. A sweep goes on from one kill to the next; no run of it may be lost or done twice. At --signals
moments it gets SIGINT, SIGTERM or SIGHUP, alone or with its children. Then it must end with the documented status and line, and
leave no process and no file but its output, whole. With --disks, each verb writes to that many disks, from one that is too small
for anything to one that is large enough. Either it says so in one line and leaves nothing, or all of its output is there. Of
--pairs, two commands write one output at the same time: it is whole then, and a second sweep says that there is one.

Prints a line for each verb; the status is 1 where something did not hold, 4 where a tool is missing.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

ROOT = Path(__file__).resolve().parents[2]
TRACE = ROOT / "traces/find.parquet"
CAPTURE = ROOT / "tests/data/linux-6.1-um-slub/hackbench/trace.txt.xz"
COMMAND = (sys.executable, "-P", "-m", "slabyard")
AGAIN = 10  # one kill in this many is followed by a whole run
PATIENCE = 10  # seconds for children to end
LONG = 120  # seconds of a run at most
PAGE = 4096
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
OUTPUTS = {"t.parquet", "out.json", "out.html", "p", "p.toml"}


@dataclass(frozen=True)
class Verb:
    """A command line that writes into a folder, and what its output is once whole."""

    name: str
    words: Callable[[Path], list[str]]
    output: Callable[[Path], str | None]  # None: there is no output; raises where there is half of one
    goes_on: bool = False  # what was done stays done
    same: bool = True  # each run writes the same


def _trace(path: Path) -> str | None:
    """The rows of a trace, whatever else its file tells."""
    if not path.exists():
        return None
    table = pq.read_table(path)
    return hashlib.sha256(repr([column.to_pylist()[:: max(1, len(column) // 500)] for column in table.columns]).encode()).hexdigest()


def _comparison(folder: Path) -> str | None:
    told = []
    if (folder / "out.json").exists():
        told.append(f"{len(json.loads((folder / 'out.json').read_text()))} records")
    if (folder / "out.html").exists():
        assert (folder / "out.html").read_text().rstrip().endswith("</html>"), "half a report"
        told.append("report")
    return ", ".join(told) or None


def _sweep(folder: Path) -> str | None:
    """The keys of a sweep's runs. Each line of the journal is whole, except a last one without its end; and so are the files
    of columns."""
    keys: list[str] = []
    for path in sorted((folder / "p").glob("*.parquet")):
        columns = pq.read_table(path, columns=["key"])["key"].to_pylist()
        assert len(columns) == len(set(columns)), "a run stands in a file twice"
        keys += columns
    journal = folder / "p/journal.jsonl"
    if journal.exists():
        lines = journal.read_bytes().split(b"\n")
        keys += [json.loads(line)["key"] for line in lines[:-1]]
    return ",".join(sorted(set(keys))) or None


def verbs() -> list[Verb]:
    def plan(folder: Path) -> list[str]:
        text = f'repetitions = 6\n[[matrix]]\ntraces = ["{TRACE}"]\nallocators = ["slub", "yard"]\n'
        (folder / "p.toml").write_text(text)
        return ["sweep", str(folder / "p.toml"), "--workers", "2"]

    return [
        Verb(
            "import", lambda folder: ["import", str(CAPTURE), "-o", str(folder / "t.parquet")],
            lambda folder: _trace(folder / "t.parquet"),
        ),
        Verb(
            "compare",
            lambda folder: [
                "compare", str(TRACE), "--allocators", "slub,yard", "--runs", "2", "--export-json", str(folder / "out.json"),
                "--report", str(folder / "out.html"),
            ],
            _comparison,
        ),
        Verb("sweep", plan, _sweep, goes_on=True),
        Verb(
            "record", lambda folder: ["record", "-o", str(folder / "t.parquet"), "--", "ls", "/usr/bin"],
            lambda folder: "a trace" if _trace(folder / "t.parquet") else None, same=False,
        ),
    ]  # fmt: skip


def start(verb: Verb, folder: Path, command: Sequence[str] = COMMAND) -> subprocess.Popen[str]:
    # A sweep's scratch folder is elsewhere: a run without room for it has failed, which is not the same as a full disk for the results.
    environment = os.environ | ({} if verb.goes_on else {"TMPDIR": str(folder)})
    streams = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL}
    return subprocess.Popen([*command, *verb.words(folder)], env=environment, start_new_session=True, text=True, **streams)


def whole(verb: Verb, folder: Path) -> tuple[float, str, int]:
    """A run to its end: seconds, what it said, its status."""
    began = time.monotonic()
    process = start(verb, folder)
    said = process.communicate(timeout=LONG)[1]
    return time.monotonic() - began, said, process.returncode


def alive(session: int) -> list[str]:
    """The processes of a session that still run, by their names."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, rest = path.read_text().rsplit(")", 1)
        except OSError:
            continue
        fields = rest.split()
        if int(fields[3]) == session and fields[0] not in "ZX":
            found.append(name.partition("(")[2])
    return found


def check_alone(process: subprocess.Popen[str]) -> None:
    """AssertionError where a process of the run's stays."""
    until = time.monotonic() + PATIENCE
    while (left := alive(process.pid)) and time.monotonic() < until:
        time.sleep(0.02)
    if left:
        os.killpg(process.pid, signal.SIGKILL)
        raise AssertionError(f"a process is left: {left[0]}")


def killed(verb: Verb, folder: Path, after: float) -> None:
    """Kills a run after that many seconds. AssertionError where a process stays."""
    process = start(verb, folder)
    try:
        process.wait(after)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
    process.wait()
    if process.stderr:
        process.stderr.close()
    check_alone(process)


def undisturbed(verb: Verb, folder: Path) -> tuple[float, str | None, str]:
    """A run that nothing happens to: seconds, its output, and, where that is None, why there is none."""
    folder.mkdir()
    took, said, status = whole(verb, folder)
    right = None if status else verb.output(folder)
    return took, right, f"the whole run ends with {status}: {said.strip()}"


def check(verb: Verb, now: str | None, right: str) -> None:
    """AssertionError where the output that is there now is neither none nor whole."""
    if verb.goes_on:
        assert set((now or right).split(",")) <= set(right.split(",")), "a run that is none of the plan"
    elif verb.name == "compare":
        assert now in (None, right, "2 records", "report", f"{right.split(',')[0]}"), f"neither nothing nor all: {now}"
    else:
        assert now in (None, right), "neither nothing nor all"


def interrupted(verb: Verb, folder: Path, after: float, number: int, at_group: bool) -> None:
    """Sends a signal after that many seconds. AssertionError where the run does not end as it should."""
    process = start(verb, folder, [str(Path(sys.executable).parent / "slabyard")])  # which holds signals back until Python answers them
    try:
        process.wait(after)
    except subprocess.TimeoutExpired:
        (os.killpg if at_group else os.kill)(process.pid, number)
    said = process.communicate(timeout=LONG)[1].splitlines()
    statuses = (0, 130, 128 + number) if verb.name == "record" else (0, 130)  # its command's, which is kept
    assert process.returncode in statuses, f"status {process.returncode}, {said[-1:]}"
    assert process.returncode == 0 or verb.name == "record" or said[-1] == "slabyard: interrupted", f"it said {said[-1:]}"
    check_alone(process)
    files = {path.name for path in folder.iterdir()}
    assert files <= OUTPUTS, f"left {files - OUTPUTS}"


def interrupt(verb: Verb, points: int, draw: random.Random) -> tuple[int, list[str]]:
    """Returns how many signals there were, and what failed."""
    wrong: list[str] = []
    with tempfile.TemporaryDirectory(prefix="slabyard-signals-") as place:
        took, right, failed = undisturbed(verb, Path(place) / "first")
        if right is None:
            return 0, [failed]
        for point in range(points):
            after, number, at_group = draw.uniform(0, 1.05 * took), draw.choice(ENDING), draw.random() < 0.5
            folder = Path(place) / f"signal-{point}"
            folder.mkdir()
            try:
                interrupted(verb, folder, after, number, at_group)
                check(verb, verb.output(folder), right)
            except Exception as error:
                told = f"{number.name}{' at its group' if at_group else ''} after {after:.3f} of {took:.3f} s"
                wrong.append(f"{verb.name}, {told}: {type(error).__name__}: {error}")
    return points, wrong


def kill(verb: Verb, points: int, draw: random.Random) -> tuple[int, list[str]]:
    """Returns how many kills there were, and what failed."""
    wrong: list[str] = []
    with tempfile.TemporaryDirectory(prefix="slabyard-kills-") as place:
        took, right, failed = undisturbed(verb, Path(place) / "first")
        if right is None:
            return 0, [failed]
        folder = Path(place) / "killed"
        folder.mkdir()
        before: str | None = None
        for number in range(points):
            after = draw.uniform(0, 1.05 * took)
            try:
                killed(verb, folder, after)
                now = verb.output(folder)
                if verb.goes_on:
                    assert set((before or "").split(",")) <= set((now or "").split(",")) or before is None, "runs were lost"
                check(verb, now, right)
                before = now
                if number % AGAIN == AGAIN - 1:
                    _, said, status = whole(verb, folder)
                    assert status == 0 and verb.output(folder) == right, f"run again: status {status}, {said.strip()[-200:]}"
                    folder = Path(place) / f"killed-{number}"
                    folder.mkdir()
                    before = None
            except Exception as error:
                wrong.append(f"{verb.name} killed after {after:.3f} of {took:.3f} s: {type(error).__name__}: {error}")
    return points, wrong


@contextmanager
def disk(folder: Path, size: int) -> Iterator[bool]:
    """Mounts a disk of that many bytes at a folder. False: this user may mount none."""
    if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], capture_output=True).returncode:
        yield False
        return
    try:
        yield True
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(verb: Verb, disks: int) -> tuple[int, list[str]]:
    """Returns how many disks there were, and what failed."""
    wrong: list[str] = []
    served = 0
    with tempfile.TemporaryDirectory(prefix="slabyard-disks-") as place:
        folder = Path(place)
        (folder / "whole").mkdir()
        whole(verb, folder / "whole")
        right = verb.output(folder / "whole")
        needed = sum(path.stat().st_size for path in (folder / "whole").rglob("*") if path.is_file())
        small = folder / "small"
        small.mkdir()
        for number in range(disks):
            size = max(PAGE, (number + 1) * 4 * needed // disks // PAGE * PAGE)
            with disk(small, size) as mounted:
                if not mounted:
                    return served, [*wrong, "no right to mount a disk"]
                served += 1
                try:
                    _, said, status = whole(verb, small)
                except OSError as error:  # its plan does not fit
                    if verb.goes_on:
                        continue
                    raise AssertionError(f"{error}") from error
                now = verb.output(small)
                lines = [line for line in said.splitlines() if line.startswith("slabyard: ")]
                half = [path.name for path in small.rglob("*") if path.name.endswith(".part")]
                if status == 0 and now != right:
                    wrong.append(f"{verb.name} on {size:,} bytes: status 0, and not the whole output")
                if status and not (lines and "no space left" in lines[-1].lower()):
                    wrong.append(f"{verb.name} on {size:,} bytes: status {status}, {said.strip()[-200:]!r}")
                if half or "Traceback" in said:
                    wrong.append(f"{verb.name} on {size:,} bytes: left {half}, said {said.strip()[-200:]!r}")
    return served, wrong


def pair(verb: Verb, pairs: int, draw: random.Random) -> tuple[int, list[str]]:
    """Returns how many pairs there were, and what failed."""
    wrong: list[str] = []
    with tempfile.TemporaryDirectory(prefix="slabyard-pairs-") as place:
        took, right, failed = undisturbed(verb, Path(place) / "first")
        if right is None:
            return 0, [failed]
        for number in range(pairs):
            folder, after = Path(place) / f"pair-{number}", draw.uniform(0, took)
            folder.mkdir()
            processes = [start(verb, folder)]
            time.sleep(after)
            processes.append(start(verb, folder))
            ends = [(process.communicate(timeout=LONG)[1].splitlines(), process.returncode) for process in processes]
            try:
                assert verb.output(folder) == right, "neither one's nor the other's output"
                assert {path.name for path in folder.iterdir()} <= OUTPUTS, "other files are left"
                refused = [said for said, status in ends if status]
                assert not refused or (verb.goes_on and len(refused) == 1 and "another sweep writes there" in refused[0][-1]), refused
            except Exception as error:
                wrong.append(f"{verb.name}, twice, {after:.3f} of {took:.3f} s later: {type(error).__name__}: {error}")
    return pairs, wrong


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=200)
    parser.add_argument("--signals", type=int, default=20)
    parser.add_argument("--disks", type=int, default=50)
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--verbs", default="import,compare,sweep,record")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(words)
    chosen = [verb for verb in verbs() if verb.name in options.verbs.split(",")]
    draw = random.Random(options.seed)
    held = True
    for verb in chosen:
        for what, count, tried in (
            ("kills", options.points, lambda: kill(verb, options.points, draw)),
            ("other signals", options.signals, lambda: interrupt(verb, options.signals, draw)),
            ("full disks", options.disks, lambda: fill(verb, options.disks)),
            ("pairs", options.pairs, lambda: pair(verb, options.pairs, draw)),
        ):
            if not count:
                continue
            done, wrong = tried()
            print(f"{verb.name}: {done} {what}, {len(wrong)} times something did not hold", flush=True)
            held = held and not wrong
            print(*wrong, sep="\n", end="\n" if wrong else "", flush=True)
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
