"""SIGKILL of `slabyard kernel build` and other signals, in each of its phases, and full disks.

    python tests/faults/kernel_kills.py [--points N] [--signals N] [--disks N] [--phases unpacking,linking,...] [--seed N] [--keep FOLDER]

The first build of a kernel is not killed. It tells how long each phase takes: `unpacking` and changing the source, `configuring`,
`compiling`, `linking` and copying the result. Then builds are killed at --points moments, spread over the phases in this order.
Each goes on with what the build before has left. But the source is removed before a kill at unpacking, and the objects before one
at configuring; at compiling and linking some sources are newer than their objects, so that make writes over whole files. Every
second kill ends the process alone, the others end all compilers with it. After each kill only whole kernels may lie in the
kernels' folder, and processes without their parent must end. Then builds get SIGINT, SIGTERM and SIGHUP at --signals moments,
alone or with their compilers: they end with status 130 and one line, and leave no process. With --disks, builds have that many
disks, all too small, from one for nothing to one for nearly all: each ends with one line that says so. At last the same command
builds the same kernel as at first, to the byte, except for the number of links in its version.

Needs what building a kernel for um needs (docs/kernels.md). It takes the time of about two builds, and a few seconds for each kill; with
ccache's gcc in PATH, much less. The status is 1 where something did not hold.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from kills import ENDING, disk

COMMAND = (sys.executable, "-P", "-m", "slabyard", "kernel", "build", "--allocator", "slub")
GOING = 20  # the same, after another signal
PATIENCE = 300  # seconds in which processes that unpack or compile without a parent must end
LONG = 1800  # seconds of a build at most
TICK = 0.005
SHORTEST = 3.0  # seconds of a phase at least, for moments in it


class Place:
    """A cache folder of kernels, and how far a build in it is."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.kernels = folder / "slabyard/kernels"

    def _any(self, pattern: str) -> bool:
        return any(True for _ in self.kernels.glob(pattern))

    def phase(self) -> str:
        """What a running build does now, by the files that exist."""
        if not self._any("sources/*[!t]/Makefile"):  # but that of .part
            return "unpacking"
        if self._any("builds/*/.tmp_vmlinux*") or self._any("builds/*/vmlinux.o"):
            return "linking"
        if self._any("builds/*/.slabyard-config"):
            return "compiling"
        return "configuring"

    def start(self) -> subprocess.Popen[str]:
        """A build."""
        environment = os.environ | {"XDG_CACHE_HOME": str(self.folder)}
        streams = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL}
        return subprocess.Popen(COMMAND, env=environment, start_new_session=True, text=True, **streams)

    def users(self) -> list[int]:
        """The processes that have a file of this folder open."""
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                if any(str(fd.readlink()).startswith(f"{self.folder}/") for fd in (process / "fd").iterdir()):
                    found.append(int(process.name))
            except OSError:
                continue
        return found

    def finished(self) -> Path | None:
        """The folder of the kernel that the lab takes for whole. AssertionError where it is not."""
        places = [path for path in self.kernels.glob("kernels/*") if path.suffix not in (".part", ".lock")]
        if not places:
            return None
        assert len(places) == 1, f"several kernels: {places}"
        missing = [name for name in ("kernel.json", "config", "linux", "System.map") if not (places[0] / name).is_file()]
        assert not missing, f"half a kernel: no {missing}"
        return places[0]


def content(kernel: Path | None) -> str:
    """A hash of a kernel's image, without the number of links and the linker's id of it. An empty text: there is no image."""
    if kernel is None:
        return ""
    image = re.sub(rb"#\d+ 1970", b"#1 1970", (kernel / "linux").read_bytes())
    return hashlib.sha256(re.sub(rb"(\x14\0\0\0\x03\0\0\0GNU\0).{20}", rb"\1", image, flags=re.DOTALL)).hexdigest()


def whole(place: Place) -> dict[str, float]:
    """Builds to the end. When each phase began, in seconds since the start; and "end"."""
    began, times = time.monotonic(), {}
    process = place.start()
    while process.poll() is None and time.monotonic() < began + LONG:
        times.setdefault(place.phase(), time.monotonic() - began)
        time.sleep(TICK)
    said = process.communicate()[1]
    assert process.returncode == 0, f"status {process.returncode}: {said.strip()[-300:]}"
    return times | {"end": time.monotonic() - began}


def reach(place: Place, phase: str, after: float) -> subprocess.Popen[str]:
    """A build that came to a phase that many seconds ago, or has ended."""
    process = place.start()
    until = time.monotonic() + LONG
    while place.phase() != phase and process.poll() is None and time.monotonic() < until:
        time.sleep(TICK)
    with suppress(subprocess.TimeoutExpired):
        process.wait(after)
    return process


def kill(place: Place, phase: str, after: float, everything: bool) -> str:
    """Kills a build that many seconds after it came to a phase. Returns the phase that it was in."""
    process = reach(place, phase, after)
    if process.poll() is None:
        process.send_signal(signal.SIGKILL)
    was = place.phase() if process.wait() == -signal.SIGKILL else "ended"
    until = time.monotonic() + PATIENCE
    while users := place.users():
        assert time.monotonic() < until, f"compilers are left: {users}"
        for user in users if everything else ():
            try:
                os.kill(user, signal.SIGKILL)
            except ProcessLookupError:
                continue
        time.sleep(TICK)
    said = process.stderr.read() if process.stderr else ""
    assert was != "ended" or process.returncode == 0, f"status {process.returncode}: {said.strip()[-300:]}"
    return was


def interrupt(place: Place, phase: str, after: float, number: signal.Signals, everything: bool) -> str:
    """Sends another signal. Returns the phase that the build was in."""
    process = reach(place, phase, after)
    was = place.phase() if process.poll() is None else "ended"
    if was != "ended":
        (os.killpg if everything else os.kill)(process.pid, number)
    said = process.communicate(timeout=LONG)[1].splitlines()
    assert process.returncode in (0, 130), f"status {process.returncode}: {said[-1:]}"
    assert not process.returncode or said[-1:] == ["slabyard: interrupted"], said
    until = time.monotonic() + GOING
    while users := place.users():
        assert time.monotonic() < until, f"compilers are left: {users}"
        time.sleep(TICK)
    return was


def fill(folder: Path, size: int) -> str:
    """Builds on a disk of so many bytes, which are too few. Returns what the build said; an empty text: no disk can be had."""
    folder.mkdir(exist_ok=True)
    place = Place(folder)
    with disk(folder, size) as mounted:
        if not mounted:
            return ""
        process = place.start()
        said = process.communicate(timeout=LONG)[1].strip()
        assert process.returncode in (2, 3), f"status {process.returncode}: {said[-300:]}"
        assert "no space left" in said.splitlines()[-1].lower() and "Traceback" not in said, said[-600:]
        assert place.finished() is None, "a kernel"
        return said.splitlines()[-1]


def prepare(place: Place, phase: str) -> None:
    """Brings the folder back to before a phase. Links are counted from the start, as a number of more digits moves what follows it."""
    for pattern in {"unpacking": ("sources/*", "builds/*/.version"), "configuring": ("builds/*",)}.get(phase, ("builds/*/.version",)):
        for path in place.kernels.glob(pattern):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    if (kernel := place.finished()) is not None:
        shutil.rmtree(kernel)
    if phase in ("compiling", "linking"):
        make_older(place, 2 if phase == "compiling" else 40)


def make_older(place: Place, every: int) -> None:
    """Has make write over a part of its objects, one in that many: their sources become newer."""
    sources = next((path for path in place.kernels.glob("sources/*") if path.is_dir() and path.suffix != ".part"), None)
    build = next((path for path in place.kernels.glob("builds/*") if path.is_dir() and path.suffix != ".part"), None)
    if sources is None or build is None:
        return
    for path in [path for number, path in enumerate(sorted(build.rglob("*.o"))) if number % every == 0]:
        source = (sources / path.relative_to(build)).with_suffix(".c")
        if source.is_file():
            source.touch()
    for path in [*build.glob(".tmp_vmlinux*"), *build.glob("vmlinux.o")]:  # these tell the phase
        path.unlink()


def run(
    folder: Path, points: int, signals: int, disks: int, chosen: list[str], draw: random.Random, tell: Callable[[str], None]
) -> list[str]:
    """What did not hold."""
    wrong: list[str] = []
    place = Place(folder / "cache")
    times = whole(place)
    right = content(place.finished())
    assert right, "no kernel"
    tell("whole: " + ", ".join(f"{name} {at:.1f} s" for name, at in times.items()))
    moments = [*times.values()]
    lengths = {name: max(SHORTEST, later - at) for (name, at), later in zip(times.items(), moments[1:], strict=False)}
    plan = [phase for phase in chosen for _ in range(points // len(chosen))]
    for number, phase in enumerate(plan):
        after, everything = draw.uniform(0, lengths.get(phase, SHORTEST)), number % 2 == 1
        try:
            prepare(place, phase)
            was = kill(place, phase, after, everything)
            assert content(place.finished()) in ("", right), "another kernel"
            tell(f"{number + 1}: {'all' if everything else 'the process'} killed {after:.2f} s into {phase}: {was}")
        except AssertionError as error:
            wrong.append(f"{phase} + {after:.2f} s: {error}")
            tell(wrong[-1])
    for number in range(signals):
        phase, which, everything = chosen[number % len(chosen)], ENDING[number % len(ENDING)], draw.random() < 0.5
        after = draw.uniform(0, lengths.get(phase, SHORTEST))
        told = f"{which.name} {'to all ' if everything else ''}{after:.2f} s into {phase}"
        try:
            prepare(place, phase)
            was = interrupt(place, phase, after, which, everything)
            assert content(place.finished()) in ("", right), "another kernel"
            tell(f"{told}: {was}")
        except AssertionError as error:
            wrong.append(f"{told}: {error}")
            tell(wrong[-1])
    needed = sum(path.lstat().st_size for path in place.kernels.rglob("*") if path.is_file())
    for number in range(disks):
        size = max(1 << 16, needed * number // disks)
        try:
            tell(f"{size:,} of {needed:,} bytes: {fill(folder / 'small', size)}")
        except AssertionError as error:
            wrong.append(f"{size:,} of {needed:,} bytes: {error}")
            tell(wrong[-1])
    prepare(place, "linking")
    whole(place)
    if content(place.finished()) != right:
        wrong.append("after all kills the kernel is another one")
    return wrong


def main(words: list[str]) -> int:
    phases = "unpacking,configuring,compiling,linking"
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=30)
    parser.add_argument("--signals", type=int, default=10)
    parser.add_argument("--disks", type=int, default=0)
    parser.add_argument("--phases", default=phases)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="work in this folder, and leave it")
    options = parser.parse_args(words)
    with tempfile.TemporaryDirectory(prefix="slabyard-kernel-kills-") as own:
        folder = (options.keep or Path(own)).resolve()
        folder.mkdir(exist_ok=True)
        draw = random.Random(options.seed)
        chosen = options.phases.split(",")
        wrong = run(folder, options.points, options.signals, options.disks, chosen, draw, lambda line: print(line, flush=True))
    print(f"kernel build: {len(wrong)} times something did not hold", *wrong, sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
