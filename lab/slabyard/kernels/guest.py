"""The guest: the archive that is a booted kernel's first file system.

busybox (static) is its shell and tools, `guest_files/init.sh` its first program; the workload's programs come from this machine
with the libraries that the loader says they need, each at its own path, so nothing has to be told where they are. For another
processor they come from a folder that is laid out as such a machine (foreign.py). Three programs of ours, for measuring, for sampling
and for the load spike, are compiled once and kept in the cache.

The archive is cpio's `newc` form, written here: a header of hexadecimal numbers for each entry, names and contents padded to four
bytes. It is packed for a user-mode kernel alone, as an emulated processor unpacks slowly. Device files can be in it though we are no
root. /dev/console is one: the kernel opens it for init before anything is mounted.
"""

from __future__ import annotations

import glob
import hashlib
import importlib.resources
import re
import shlex
import stat
import subprocess
from pathlib import Path

from ..base.errors import MISSING, UserError
from . import cache, foreign, tools
from .workloads import APPLETS, Job

FOLDERS = ("bin", "dev", "etc", "lib", "lib64", "mnt", "proc", "run", "slabyard", "sys", "tmp", "usr", "usr/bin", "sbin", "usr/sbin")
USED_SETTINGS = {
    "watermark_boost_factor": 0, "compaction_proactiveness": 0, "min_free_kbytes": 512, "percpu_pagelist_high_fraction": 1 << 20
}  # fmt: skip
_CFLAGS = ("-O2", "-std=gnu11", "-static")


class Archive:
    """A cpio archive in the making."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._names: set[str] = set()

    def folder(self, name: str) -> None:
        """A folder and those above it, once."""
        for parent in [*reversed(Path(name).parents), Path(name)]:
            if str(parent) != "." and str(parent) not in self._names:
                self._entry(str(parent), stat.S_IFDIR | 0o755, b"")

    def file(self, name: str, content: bytes, mode: int = 0o644) -> None:
        """A file at `name`, relative to the root; the first of one name stays."""
        if name not in self._names:
            self.folder(str(Path(name).parent))
            self._entry(name, stat.S_IFREG | mode, content)

    def link(self, name: str, target: str) -> None:
        """A symbolic link."""
        if name not in self._names:
            self._entry(name, stat.S_IFLNK | 0o777, target.encode())

    def device(self, name: str, major: int, minor: int) -> None:
        """A character device."""
        self._entry(name, stat.S_IFCHR | 0o600, b"", (major, minor))

    def whole(self) -> bytes:
        """The archive, the same bytes for the same entries."""
        return b"".join([*self._parts, _record("TRAILER!!!", 0, 0, b"", (0, 0))])

    def _entry(self, name: str, mode: int, content: bytes, device: tuple[int, int] = (0, 0)) -> None:
        self._names.add(name)
        self._parts.append(_record(name, len(self._names), mode, content, device))


def _record(name: str, inode: int, mode: int, content: bytes, device: tuple[int, int]) -> bytes:
    path = name.encode() + b"\0"
    numbers = (inode, mode, 0, 0, 1, 0, len(content), 0, 0, *device, len(path), 0)
    head = b"070701" + b"".join(b"%08X" % number for number in numbers) + path
    return _padded(head) + _padded(content)


def _padded(content: bytes) -> bytes:
    return content + b"\0" * (-len(content) % 4)


def archive(job: Job, settings: dict[str, str], samples: int = 0) -> bytes:
    """The guest's archive for one job. `settings` are shell variables for init; `samples` a second of the kernel's stacks."""
    made = Archive()
    for name in FOLDERS:
        made.folder(name)
    made.device("dev/console", 5, 1)
    made.file("bin/busybox", _busybox(job).read_bytes(), 0o755)
    for name in APPLETS:
        made.link(f"bin/{name}", "busybox")
    arch = job.foreign or "um"
    made.file("slabyard/measure", compiled("measure", arch).read_bytes(), 0o755)
    if samples:
        made.file("slabyard/sample", compiled("sample", arch).read_bytes(), 0o755)
    if job.workload.spike:
        made.file("slabyard/spike", compiled("spike", arch).read_bytes(), 0o755)
    for name in ("mark", *job.workload.scripts):
        made.file(f"slabyard/{name}", _resource(f"{name}.sh"), 0o755)
    for program in job.programs:
        _program(made, program, job.foreign)
    tops = [*([foreign.root(job.foreign)] if job.foreign else []), Path("/")]  # text is the same for every processor
    for top, pattern in ((top, pattern) for pattern in job.workload.files for top in tops):
        for path in sorted(glob.glob(pattern.lstrip("/"), root_dir=top, recursive=True)):  # noqa: PTH207 (a pattern from the root)
            if (top / path).is_file():
                made.file(path, (top / path).read_bytes())
    made.file("slabyard/job", script(job, settings, samples).encode(), 0o755)
    made.file("init", _resource("init.sh"), 0o755)
    return made.whole()


def script(job: Job, settings: dict[str, str], samples: int = 0) -> str:
    """/slabyard/job: init's variables and functions."""
    lines = [f"{name}={shlex.quote(value)}" for name, value in settings.items()]
    lines.append(f"prepare() {{ {job.workload.prepare}; }}")
    sampler = f"/slabyard/sample {samples} /run/samples " if samples else ""
    lines.append(f"load() {{ {sampler}/slabyard/measure $PERIOD {shlex.join(job.command)}; }}")
    lines.append(f"after() {{ {job.workload.after}; }}")
    return "\n".join(lines) + "\n"


def _busybox(job: Job) -> Path:
    if job.foreign:
        return foreign.program(tools.BUSYBOX, job.foreign, "a guest")
    return Path(tools.path_of(tools.BUSYBOX, "a guest"))


def _program(made: Archive, program: Path, arch: str) -> None:
    """A program with its libraries, at their places. `arch`: of a foreign one."""
    top = foreign.root(arch) if arch else Path("/")
    made.file(str(program.relative_to(top)), program.read_bytes(), 0o755)
    made.link(f"usr/bin/{program.name}", f"/{program.relative_to(top)}")
    for library in foreign.libraries(program, arch) if arch else libraries(program):
        made.file(str(library.relative_to(top)), library.read_bytes(), 0o755)
    first = program.open("rb").readline(200)
    if first.startswith(b"#!"):
        words = first[2:].decode(errors="replace").split()
        if words and Path(words[0]).name not in ("sh", "busybox", "ash"):
            raise UserError(f"{program}: is a script for {words[0]}; a guest has busybox's sh alone")


def libraries(program: Path) -> list[Path]:
    """The loader and the libraries of a program of this machine; none for a static one or a script."""
    listed = subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=False)
    found = [Path(match[1]) for match in re.finditer(r"(?:^\s*|=> )(/\S+) \(0x", listed.stdout, re.MULTILINE)]
    missing = re.search(r"(\S+) => not found", listed.stdout)
    if missing:
        raise UserError(f"{program}: its library {missing[1]} is missing", MISSING)
    return found


def _resource(name: str) -> bytes:
    return importlib.resources.files("slabyard.kernels").joinpath("guest_files", name).read_bytes()


def used_memory(spare: int, piece: int, each: int) -> tuple[Path, str, str]:
    """A program for a job, and two commands: settings, for before anything else takes memory, and what uses memory up to `spare` bytes and
    gives back every `each`th piece of `piece` bytes (guest_files/use.c).

    The settings: CPUs' lists of free pages stay short (since Linux 6.7 they grow by themselves, unless a share of the zone is named), and
    so does what the kernel keeps free; kcompactd does not undo the pieces in the background (Linux 5.9); and no fallback raises the
    watermarks for a while (Linux 5.0), here above `spare`, at which the kernel would kill processes, as nothing can be reclaimed.
    """
    program = compiled("use")
    settings = " && ".join(f"echo {value} >/proc/sys/vm/{name}" for name, value in USED_SETTINGS.items())
    return program, settings, f"mount -o remount,size=99% /dev/shm && {program} /dev/shm {spare} {piece} {each}"


def compiled(name: str, arch: str = "um") -> Path:
    """A program of ours for guests, compiled where it is not there yet."""
    text = _resource(f"{name}.c")
    made_of = [text, " ".join(_CFLAGS).encode(), tools.compiler_version(arch).encode()]
    key = hashlib.sha256(b"".join(made_of)).hexdigest()[:16]
    place = cache.folder("guests") / f"{name}-{key}"
    if place.is_file():
        return place
    tools.require([tools.COMPILERS[arch]], "a guest")
    with cache.locked(place, f"the guest's {name}"):
        part = place.with_name(f"{place.name}.part")
        argv = [tools.COMPILERS[arch].name, *_CFLAGS, "-x", "c", "-o", str(part), "-"]
        done = subprocess.run(argv, input=text, capture_output=True, check=False)
        if done.returncode:
            lines = done.stderr.decode(errors="replace").splitlines()
            reason = next((line for line in lines if "rror" in line or "cannot find" in line), (lines or ["gcc failed"])[0])
            needs = tools.STATIC_LIBCS[arch].debian
            raise UserError(f"the guest's {name} cannot be compiled: {reason} (it needs a static C library: {needs})", MISSING)
        part.rename(place)
    return place
