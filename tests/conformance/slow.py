"""The slow tier: ten million random operations for every policy. Writes what was run into docs/conformance.md.

    python tests/conformance/slow.py [BUILD…]

BUILD: plain, sanitized, aarch64-linux-gnu, arm-linux-gnueabihf; none given: all. make test, make test-cross and this program share
these trees under build/. `plain` runs SLABYARD_CONFORMANCE_OPS operations per policy (default 10,000,000). The others run the part
of it that SHARES says, as each operation takes much longer there. Policies run side by side, as many as there are CPUs.

A program that breaks a promise is made short (shrink.py) and printed. Exit status 0: every promise was kept; 1: one was broken;
2: wrong usage; 4: a tool is missing.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from binding import policies

from slabyard.base.table import between, document

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "docs" / "conformance.md"
DEFAULT_OPERATIONS = 10_000_000
SHARES = {"plain": 1, "sanitized": 50, "aarch64-linux-gnu": 200, "arm-linux-gnueabihf": 200}
CROSS_PACKAGES = "gcc-aarch64-linux-gnu gcc-arm-linux-gnueabihf libc6-dev-arm64-cross libc6-dev-armhf-cross qemu-user"


class Missing(RuntimeError):
    """A tool is missing; the text is one line that says which, and how to get it."""


@dataclass(frozen=True)
class Build:
    """A tree under build/, the settings that it is made with, and what its programs run under."""

    tree: Path
    settings: tuple[str, ...] = ()
    emulator: tuple[str, ...] = ()


def build_of(name: str) -> Build:
    """The tree of a build. Raises Missing."""
    trees = ROOT / "build"
    if name == "plain":
        return Build(trees / "test")
    if name == "sanitized":
        return Build(trees / "sanitize", ("-DSLABYARD_SANITIZE=address,undefined",))
    processor, compiler = name.split("-")[0], f"{name}-gcc"
    emulator = next((tool for tool in (f"qemu-{processor}", f"qemu-{processor}-static") if shutil.which(tool)), None)
    if not emulator or not shutil.which(compiler):
        missing = compiler if emulator else f"qemu-{processor}"
        raise Missing(f"conformance for {name} needs {missing}, which is missing (Debian: apt install {CROSS_PACKAGES})")
    under = (emulator, "-L", f"/usr/{name}")
    settings = (
        "-DCMAKE_SYSTEM_NAME=Linux",
        f"-DCMAKE_SYSTEM_PROCESSOR={processor}",
        f"-DCMAKE_C_COMPILER={compiler}",
        f"-DCMAKE_CROSSCOMPILING_EMULATOR={';'.join(under)}",
    )
    return Build(trees / name, settings, under)


def make(build: Build) -> Path:
    """The soak program of a build, made when it has to be. Raises CalledProcessError."""
    configure = ["cmake", "-S", str(ROOT), "-B", str(build.tree), *build.settings]
    for command in (configure, ["cmake", "--build", str(build.tree), "--target", "conformance-soak", "-j", str(os.cpu_count())]):
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return build.tree / "tests" / "conformance" / "conformance-soak"


def soak(command: list[str]) -> tuple[list[str], str]:
    """Header and row of one policy; and the seed of the program that failed, or nothing. Raises RuntimeError on a crash."""
    done = subprocess.run(command, capture_output=True, text=True)
    lines = done.stdout.splitlines()
    if done.returncode == 0:
        return lines, ""
    print(done.stdout, done.stderr, sep="", end="", file=sys.stderr)
    again = re.search(r"again: conformance-soak 1 (\d+)", done.stderr)
    if not again:
        raise RuntimeError(f"{' '.join(command)} ended with status {done.returncode} and named no seed")
    return [], again[1]


def record(name: str, lines: list[str]) -> None:
    """Puts the table of a build between its markers in the document."""
    columns, *rows = (line.split() for line in lines)
    table = document(columns, [[int(cell) if cell.isdigit() else cell for cell in row] for row in rows])
    DOCUMENT.write_text(between(DOCUMENT.read_text(), f"<!-- begin {name} -->", f"<!-- end {name} -->", table))


def run_build(name: str, operations: int) -> bool:
    """All policies on one build. False: a promise was broken."""
    build = build_of(name)
    program = make(build)
    print(f"{name}: {operations:,} operations for every policy, on {platform.machine()}", flush=True)
    commands = [[*build.emulator, str(program), str(operations), "1", policy] for policy in policies()]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(soak, commands))
    kept = True
    for command, (_, seed) in zip(commands, results, strict=True):
        if seed:
            kept = False
            subprocess.run([sys.executable, str(Path(__file__).with_name("shrink.py")), command[-1], seed])
    if kept:
        table = [results[0][0][0], *(lines[1] for lines, _ in results)]
        print("\n".join(table), flush=True)
        record(name, table)
    return kept


def main(arguments: list[str]) -> int:
    unknown = [name for name in arguments if name not in SHARES]
    text = os.environ.get("SLABYARD_CONFORMANCE_OPS") or str(DEFAULT_OPERATIONS)
    if unknown or not text.isdecimal():
        wrong = f"there is no build '{unknown[0]}'" if unknown else f"SLABYARD_CONFORMANCE_OPS must be a number, not '{text}'"
        print(f"slow.py: {wrong}; builds are {', '.join(SHARES)}", file=sys.stderr)
        return 2
    try:
        kept = [run_build(name, max(1, int(text) // SHARES[name])) for name in arguments or SHARES]
    except Missing as missing:
        print(missing, file=sys.stderr)
        return 4
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
