"""Runs each fuzzer for SECONDS seconds, beginning with the kept corpus: make fuzz FUZZ=SECONDS.

    python tests/fuzz/run.py SECONDS [NAME...]

NAME: of a fuzzer, as `caches` or `trace_columns`; none: all. Without atheris the lab's fuzzers are left out, which a line says.
What a fuzzer finds is in build/fuzz/findings/, and the status is then 1. Inputs that reach new code are kept in build/fuzz/corpus/
for the next run; a few small ones are committed in tests/fuzz/corpus/.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent
BUILD = ROOT / "build/fuzz"
PROGRAMS = tuple(sorted(path.stem.removeprefix("fuzz_") for path in HERE.glob("fuzz_*.c")))
# policies, in turns, under which malloc is fuzzed
POLICIES = ("yard", "yard:harden=all", "slub", "slub:harden=all", "slob", "slab", "slqb", "bonwick", "bsd44", "svr4", "sunos4")
LEAST = 2  # seconds of one run
MOST_MEMORY = 3000  # MiB


@dataclass(frozen=True)
class Fuzzer:
    name: str
    command: tuple[str, ...]
    seconds: int
    policy: str = ""


def lab() -> list[str]:
    """The fuzzers of the lab."""
    text = (HERE / "fuzz_lab.py").read_text()
    return re.findall(r"^def (\w+)\(data: bytes\) -> None:", text, re.MULTILINE)


def fuzzers(seconds: int, names: list[str]) -> Iterator[Fuzzer]:
    for name in PROGRAMS:
        if names and name not in names:
            continue
        policies = POLICIES if name == "malloc" else ("",)
        share = max(LEAST, seconds // len(policies))
        for policy in policies[: max(1, seconds // share)]:
            yield Fuzzer(name, (str(BUILD / f"tests/fuzz/fuzz_{name}"),), share, policy)
    if importlib.util.find_spec("atheris") is None:
        print("the lab's fuzzers are left out: pip install -r requirements/fuzz.lock brings atheris", file=sys.stderr)
        return
    for name in lab():
        if not names or name in names:
            yield Fuzzer(name, (sys.executable, str(HERE / "fuzz_lab.py"), name), seconds)


def run(fuzzer: Fuzzer) -> tuple[bool, str]:
    """Whether nothing was found, and a line about it."""
    grown, kept, findings = BUILD / "corpus" / fuzzer.name, HERE / "corpus" / fuzzer.name, BUILD / "findings"
    for folder in (grown, findings):
        folder.mkdir(parents=True, exist_ok=True)
    options = [
        f"-max_total_time={fuzzer.seconds}", "-timeout=20", f"-rss_limit_mb={MOST_MEMORY}", "-detect_leaks=0", "-len_control=20",
        "-max_len=4096", "-print_final_stats=1", f"-artifact_prefix={findings}/{fuzzer.name}-",
    ]  # fmt: skip
    folders = [str(folder) for folder in (grown, kept) if folder.is_dir()]
    scratch = "/dev/shm" if os.access("/dev/shm", os.W_OK) else str(BUILD)
    environment = os.environ | {"TMPDIR": scratch, "ASAN_OPTIONS": "quarantine_size_mb=8:allocator_may_return_null=1"}
    if fuzzer.policy:
        environment["SLABYARD"] = fuzzer.policy
    done = subprocess.run([*fuzzer.command, *folders, *options], env=environment, capture_output=True, text=True, errors="replace")
    reached = re.findall(r" cov: (\d+)", done.stderr)
    runs = re.search(r"number_of_executed_units: (\d+)", done.stderr) or re.search(r"Done (\d+) runs", done.stderr)
    name = f"{fuzzer.name}{f' ({fuzzer.policy})' if fuzzer.policy else ''}"
    line = f"{name:26} {fuzzer.seconds:5} s {int(runs[1]) if runs else 0:10,} runs {reached[-1] if reached else '?':>7} places reached"
    if done.returncode:
        (findings / f"{fuzzer.name}.log").write_text(done.stderr)
        line += f"  FOUND: see {findings / fuzzer.name}.log"
    return done.returncode == 0, line


def main(words: list[str]) -> int:
    seconds, *names = words
    known = [*PROGRAMS, *lab()]
    if not seconds.isdecimal() or (wrong := [name for name in names if name not in known]):
        told = f"there is no fuzzer {wrong[0]}; there are {', '.join(known)}" if seconds.isdecimal() else "give the seconds of each fuzzer"
        print(f"run.py: {told}", file=sys.stderr)
        return 2
    well = True
    with ThreadPoolExecutor(int(os.environ.get("JOBS", os.cpu_count() or 1))) as pool:
        for good, line in pool.map(run, fuzzers(int(seconds), names)):
            print(line, flush=True)
            well = well and good
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
