"""Each system call of a program fails once: program.c under every policy of libslabyard-malloc, with strace's fault injection.

    python tests/faults/syscalls.py [--library FILE] [--policies A,B] [--every N] [--jobs N]

A run is right if the program says "ok", or ends with one line of the loader or of slabyard that says what is missing. A crash, a
hang, other contents or a second line is a finding, unless the program ends in the same way without the library: the loader's first
calls are not an allocator's. --every N: only each Nth call of a kind, from the first on. Prints how many calls failed, by call; the
status is 1 where there was a finding.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

POLICIES = ("yard", "slub", "slob", "slab", "slqb", "bonwick", "bsd44", "svr4", "sunos4")
KINDS = ("alone", "threads", "forks", "maps", "locks")
# The errors that a program can meet, by the kernel's manual of each call.
ERRORS = {
    "mmap": ("ENOMEM",), "munmap": ("ENOMEM",), "mprotect": ("ENOMEM",), "madvise": ("ENOMEM", "EAGAIN"), "mremap": ("ENOMEM",),
    "mincore": ("EAGAIN",), "mlock": ("ENOMEM",), "munlock": ("ENOMEM",), "mlockall": ("ENOMEM",), "membarrier": ("ENOSYS",),
    "futex": ("EINTR",), "clone": ("EAGAIN",), "clone3": ("EAGAIN",), "prctl": ("EINVAL",), "openat": ("EMFILE",), "read": ("EIO",),
    "sysinfo": ("EFAULT",), "sched_getaffinity": ("EPERM",), "get_robust_list": ("EPERM",), "rseq": ("ENOSYS",), "prlimit64": ("EPERM",),
    "brk": ("ENOMEM",),
}  # fmt: skip
SECONDS = 20
LOADERS = re.compile(
    r"error while loading shared libraries|cannot be preloaded|cannot create capability list|cannot allocate (memory|TLS data)"
)


@dataclass(frozen=True)
class Point:
    policy: str
    kind: str
    call: str
    error: str
    number: int


def strace(program: Path, library: Path | None, policy: str, kind: str, *options: str) -> list[str]:
    """The command line of a run under strace. Without a library: of the program alone."""
    preload = ["-E", f"LD_PRELOAD={library}", "-E", f"SLABYARD={policy}"] if library else []
    return ["strace", "-f", "-qq", *options, *preload, str(program), kind]


def calls(program: Path, library: Path, policy: str, kind: str, folder: Path) -> Counter[str]:
    """The most calls of each sort that a thread makes: strace counts by thread."""
    log = folder / f"{policy}-{kind}"
    traced = f"--trace={','.join(ERRORS)}"
    subprocess.run(strace(program, library, policy, kind, "-o", str(log), traced), capture_output=True, timeout=60, check=True)
    found: Counter[tuple[str, str]] = Counter()
    for line in log.read_text().splitlines():
        if match := re.match(r"(\d+) +(\w+)\(", line):
            found[match[2], match[1]] += 1
    most: Counter[str] = Counter()
    for (call, _), count in found.items():
        most[call] = max(most[call], count)
    return most


def points(program: Path, library: Path, policies: list[str], every: int, folder: Path) -> Iterator[Point]:
    for policy in policies:
        for kind in KINDS:
            for call, most in sorted(calls(program, library, policy, kind, folder).items()):
                for error in ERRORS[call]:
                    yield from (Point(policy, kind, call, error, number) for number in range(1, most + 1, every))


def fails(program: Path, library: Path, point: Point) -> str | None:
    """What is wrong with the program where this call fails, if the program alone is right; None: nothing."""
    wrong = ends(program, library, point)
    return wrong if wrong and ends(program, None, point) != wrong else None


def ends(program: Path, library: Path | None, point: Point) -> str | None:
    """How the program ends where this call fails; None: without an error."""
    inject = f"--inject={point.call}:error={point.error}:when={point.number}"
    command = strace(program, library, point.policy, point.kind, "-o", os.devnull, f"--trace={point.call}", inject)
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return "does not end"
    lines = done.stderr.splitlines()
    if done.returncode == 0 and done.stdout.endswith("ok\n") and (not lines or LOADERS.search(done.stderr)):
        return None
    if done.returncode == 127 and LOADERS.search(done.stderr):
        return None
    if done.returncode in (1, 2) and len(lines) == 1 and lines[0].startswith("slabyard: "):
        return None
    return f"status {done.returncode}, {done.stdout.strip()!r}, {' / '.join(lines)[:300]!r}"


def main(words: list[str]) -> int:
    root = Path(__file__).resolve().parents[2]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", type=Path, default=root / "build/test/libslabyard-malloc.so")
    parser.add_argument("--policies", default=",".join(POLICIES))
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args(words)
    for tool in ("strace", "cc"):
        if shutil.which(tool) is None:
            print(f"syscalls.py needs {tool}, which is missing (Debian: apt install strace gcc)", file=sys.stderr)
            return 4
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.jobs) as pool:
        program = Path(folder) / "program"
        subprocess.run(["cc", "-O1", "-pthread", str(Path(__file__).with_name("program.c")), "-o", str(program)], check=True)
        chosen = list(points(program, options.library, options.policies.split(","), options.every, Path(folder)))
        found = list(pool.map(lambda point: fails(program, options.library, point), chosen))
    wrong = [(point, text) for point, text in zip(chosen, found, strict=True) if text]
    for point, text in wrong:
        print(f"{point}: {text}")
    counts = Counter(point.call for point in chosen)
    print(
        f"{len(chosen):,} failing system calls, {len(wrong)} wrong: "
        + ", ".join(f"{call} {count:,}" for call, count in counts.most_common())
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
