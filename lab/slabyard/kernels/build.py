"""From a source and a configuration to a kernel, once.

    request --> key --> kernels/KEY there?  --yes--> done
                            | no
                        the source's private copy (source.py)
                            |
                        builds/NAME: configuration, then make, going on where it was interrupted
                            |
                        kernels/KEY: image, symbols, configuration, what it was made from

The key is a hash of everything that the kernel is made from: source, architecture, configuration, compiler, flags, and the files
that its kind brings, which are read once, for the key and for the build. make's folder has a coarser name, without those files, so
that a change of one of them compiles what depends on it alone. make runs at low priority in a process group of its own (cache.py),
so Ctrl-C ends every compiler; what it has finished stays, and the next build goes on from there. So it does after compilers were
killed: what they left half written goes first. Objects are counted as make names them, against their number in the last whole build
(the first: in one of ours), for the progress bar.

Where a kernel that differs in few files is built already, its folder is copied, and make compiles those (seed.py).
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..base.errors import UserError
from ..base.terminal import Progress
from . import cache, config, seed, source, tools
from .kinds import KINDS, Kind
from .versions import DEFAULT

NICENESS = "10"
OBJECTS = {"um": 703, "x86_64": 1285, "arm64": 881}  # of a build of ours, as long as none was built here
# As x86-64 kernels are compiled. 6.1 leaves these out for um, and the compiler then writes 16 bytes at once to what a type says is
# aligned: SLOB aligns a kmalloc to 8, and some boots end in `Segfault with no mm`.
FLAGS = {"um": "-mno-sse -mno-mmx -mno-sse2 -mno-3dnow -mno-avx", "x86_64": "", "arm64": ""}
QUICKLY = "-ftrack-macro-expansion=0"  # the compiler takes 7% less time for the same code; it tells less of where in a macro an error is
MAKE = {"um": ("ARCH=um", "SUBARCH=x86_64"), "x86_64": ("ARCH=x86_64",), "arm64": ("ARCH=arm64", f"CROSS_COMPILE={tools.CROSS}")}
IMAGES = {"um": "linux", "x86_64": "vmlinux", "arm64": "arch/arm64/boot/Image"}  # what is booted
_STEP = re.compile(r"^  ([A-Z]+) +(\S+)")
_UNINLINED = (
    "-fno-inline-functions", "-fno-inline-small-functions", "-fno-inline-functions-called-once", "-fno-partial-inlining",
    "-fno-ipa-cp", "-fno-ipa-sra", "-fno-ipa-icf", "-fno-optimize-sibling-calls",
)  # fmt: skip


@dataclass(frozen=True)
class Request:
    """What to build. `outlined`: the allocator's functions are kept out of each other, for flame graphs. `small`: without what a study of
    papers does not use (small.config); what comes out of its guests goes over a serial line (arm64: the console)."""

    source: source.Source
    arch: str
    kind: Kind
    debug: bool = False
    outlined: bool = False
    small: bool = False

    @property
    def title(self) -> str:
        """The kernel in a few words."""
        more = [word for word, there in (("debug", self.debug), ("outlined", self.outlined), ("small", self.small)) if there]
        return " ".join([f"Linux {self.source.linux}", "on", self.kind.name, "for", self.arch, *(f"({word})" for word in more)])


@dataclass(frozen=True)
class Kernel:
    """A finished kernel. Its folder also has the configuration, and vmlinux, the ELF file with symbols."""

    key: str
    arch: str
    kind: str
    folder: Path
    about: dict[str, Any]

    @property
    def image(self) -> Path:
        """What is booted."""
        return self.folder / Path(IMAGES[self.arch]).name

    @property
    def small(self) -> bool:
        """Whether it has a serial line for what comes out of its guests, and nothing else."""
        return bool(self.about.get("small"))

    @property
    def map(self) -> Path:
        """The names and addresses of its functions."""
        return self.folder / "System.map"


def from_installed(
    arch: str, kind: Kind, progress: Progress | None = None, outlined: bool = False, small: bool = False, linux: str = DEFAULT
) -> Kernel:
    """As build, of the source of that version that is installed on this machine. `small`: where the architecture has such a
    configuration."""
    return build(Request(source.find(None, linux), arch, kind, outlined=outlined, small=small and arch in config.SMALL), progress)


def check(arch: str) -> None:
    """UserError where this machine lacks a tool for that."""
    tools.require((*tools.BUILD, *tools.ARCHITECTURES[arch]), f"building a kernel for {arch}")


def build(request: Request, progress: Progress | None = None, jobs: int | None = None) -> Kernel:
    """The kernel, built where it is not there yet. UserError when a tool is missing or the build fails."""
    own = source.own_files(request.kind)
    wanted = config.fragment(request.arch, request.kind, request.debug, request.source.linux, request.small)
    key = _key(request, own, wanted)
    place = cache.folder("kernels") / key
    if (ready := load(place)) is not None:
        return ready
    if (machine := os.uname().machine) != "x86_64":
        raise UserError(f"kernels for {request.arch} are built on x86-64; this machine is {machine}")
    if re.search(r"[\s:]", str(place)):
        raise UserError(f"{place.parent}: no kernel can be built where a folder's name has a blank or colon; XDG_CACHE_HOME names another")
    tools.require((*tools.BUILD, *tools.ARCHITECTURES[request.arch]), f"building a kernel for {request.arch}")
    folder = cache.folder("builds") / _name(request)
    with (
        source.prepared(request.source, request.kind, own) as (tree, of_copy),
        cache.locked(folder, f"the kernel {request.title}") as of_folder,
    ):
        if (ready := load(place)) is not None:
            return ready
        if not folder.is_dir():
            _seed(request, folder)
        folder.mkdir(exist_ok=True)
        make = _Make(request, wanted, tree, folder, (of_copy, of_folder), jobs or os.cpu_count() or 1)
        make.configure()
        started = time.monotonic()
        steps = make.compile(progress)
        return _keep(request, place, folder, make, {"objects": steps, "seconds": round(time.monotonic() - started, 1)})


def load(place: Path) -> Kernel | None:
    """A finished kernel in the cache; None where there is none."""
    try:
        about = json.loads((place / "kernel.json").read_text())
    except (OSError, ValueError):
        return None
    return Kernel(place.name, about["arch"], about["allocator"], place, about)


def built() -> list[Kernel]:
    """The finished kernels of the cache, by their names."""
    places = sorted(place for place in cache.folder("kernels").iterdir() if place.suffix not in (".part", ".lock"))
    found = [kernel for place in places if (kernel := load(place)) is not None]
    return sorted(found, key=lambda kernel: (kernel.arch, kernel.kind, kernel.key))


def _key(request: Request, own: Mapping[str, bytes], wanted: str) -> str:
    """The name of a finished kernel: a hash of all that it is made from. `own`: files of ours; `wanted`: lines of the configuration."""
    made_of = [
        request.source.ident,
        request.arch,
        wanted,
        tools.compiler_version(request.arch),
        FLAGS[request.arch],
        " ".join(_UNINLINED if request.outlined else ()),
        *(f"{edit}" for edit in source.changes(request.source, request.kind)),
        *(f"{path} {hashlib.sha256(content).hexdigest()}" for path, content in sorted(own.items())),
    ]
    return f"{request.arch}-{request.kind.name}-{hashlib.sha256(json.dumps(made_of).encode()).hexdigest()[:16]}"


def _name(request: Request) -> str:
    """The name of make's folder. Kernels that differ in files of ours alone share it, so that make compiles little anew."""
    flags = {"small": request.small, "debug": request.debug, "outlined": request.outlined}
    return "-".join([request.arch, request.kind.name, request.source.ident, *(word for word, there in flags.items() if there)])


def _seed(request: Request, folder: Path) -> None:
    """Begins the folder as a copy of that of a kernel that differs in few files, where there is one (seed.py)."""
    one = next((one for one in _relatives(request) if folder.with_name(_name(one)).is_dir()), None)
    if one is None:
        return
    linux, names = request.source.linux, {one.kind.name, request.kind.name}
    remade = {**source.own_files(one.kind), **source.own_files(request.kind)} if len(names) > 1 else {}
    same = one.kind.config[linux] == request.kind.config[linux]
    dependent = None if same else seed.depends(request.arch, one.kind.name, request.kind.name)
    seed.copy(_folder(one), _folder(request), remade, dependent)


def _relatives(request: Request) -> Iterator[Request]:
    """Kernels that this one may begin from, those that differ least first."""
    linux, flags = request.source.linux, (request.outlined, not request.outlined)
    yield replace(request, outlined=flags[1])
    kinds = [kind for kind in KINDS.values() if linux in kind.config and kind != request.kind]
    for kind in sorted(kinds, key=lambda kind: kind.config[linux] != request.kind.config[linux]):
        yield from (replace(request, kind=kind, outlined=outlined) for outlined in flags)


def _folder(request: Request) -> seed.Folder:
    return seed.Folder(cache.folder("builds") / _name(request), source.copy_of(request.source, request.kind))


class _Make:
    """make at work on one kernel."""

    def __init__(self, request: Request, wanted: str, tree: Path, folder: Path, locks: tuple[int, ...], jobs: int) -> None:
        self.request, self.wanted, self.tree, self.folder, self.locks, self.jobs = request, wanted, tree, folder, locks, jobs
        self.log = folder.with_name(f"{folder.name}.log")

    def _argv(self, *targets: str) -> list[str]:
        argv = ["nice", "-n", NICENESS, "make", "-C", str(self.tree), f"O={self.folder}"]
        argv += MAKE[self.request.arch]
        argv.append(f"KCFLAGS={f'{FLAGS[self.request.arch]} {QUICKLY}'.strip()}")
        if self.request.outlined:
            argv.append(f"SLABYARD_OUTLINED={' '.join(_UNINLINED)}")
        return [*argv, *targets]

    def _environment(self) -> dict[str, str]:
        """Nothing of the user's may get into a kernel, nor of a make that has started us."""
        kept = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "TMPDIR", "USER")}
        who = {"KBUILD_BUILD_USER": "slabyard", "KBUILD_BUILD_HOST": "slabyard", "KBUILD_BUILD_TIMESTAMP": "1970-01-01"}
        return {**kept, **who, "LC_ALL": "C"}

    def configure(self) -> None:
        """Makes `.config`, unless it is there for just these lines already."""
        wanted = self.wanted
        stamp = self.folder / ".slabyard-config"
        if stamp.is_file() and stamp.read_text() == wanted and (self.folder / ".config").is_file():
            return
        # What make keeps of a configuration that it has built: it compiles what depends on options that change.
        kept = {self.folder / "include" / name: self.folder / f".kept-{name}" for name in ("config", "generated")}
        for there, aside in kept.items():
            shutil.rmtree(aside, ignore_errors=True)
            if stamp.is_file() and there.is_dir():
                there.rename(aside)
        stamp.unlink(missing_ok=True)
        tiny = self.folder / ".slabyard-tinyconfig"  # the same for every kernel of this source and architecture, and slow to make
        if not tiny.is_file():
            self._quietly("tinyconfig")
            (self.folder / ".config").rename(tiny)
        shutil.copyfile(tiny, self.folder / ".config")
        with (self.folder / ".config").open("a") as file:
            file.write(wanted)
        self._quietly("olddefconfig")
        config.check(wanted, (self.folder / ".config").read_text())
        # What tinyconfig leaves behind is of the configuration that it was; make would take a 32-bit kernel's for ours.
        for leftover, aside in kept.items():
            shutil.rmtree(leftover, ignore_errors=True)
            if aside.is_dir():
                aside.rename(leftover)
        stamp.write_text(wanted)

    def _quietly(self, target: str) -> None:
        with self.log.open("w") as log:
            options = {"stdout": log, "stderr": log, "env": self._environment(), "pass_fds": self.locks}
            with cache.group(self._argv(target), **options) as process:
                status = process.wait()
        if status:
            raise UserError(f"make {target} failed for {self.request.title}: {_reason(self.log)}; all of it: {self.log}")

    def compile(self, progress: Progress | None) -> int:
        """Builds the kernel; how many objects it consists of."""
        seed.drop_half_written(self.folder)
        done = sum(1 for _ in self.folder.rglob("*.o"))
        arch = self.request.arch
        total = max(max((kernel.about.get("objects", 0) for kernel in built() if kernel.arch == arch), default=OBJECTS[arch]), done)
        if progress is not None:
            progress.expect(total)
            progress.stage(f"building {self.request.title}")
            progress.step(f"building {self.request.title}", done)
        argv = self._argv(f"-j{self.jobs}", Path(IMAGES[arch]).name)
        pipe = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        with self.log.open("w") as log, cache.group(argv, env=self._environment(), pass_fds=self.locks, **pipe) as process:
            for line in process.stdout or ():
                log.write(line)
                step = _STEP.match(line)
                if step and progress is not None:
                    ours = step[1] in ("CC", "AS")
                    progress.step(f"{self.request.title}: {step[2]}", 1 if ours and progress.done < total else 0)
            status = process.wait()
        if status:
            reason = _reason(self.log)
            raise UserError(f"the build of {self.request.title} failed: {reason}{cache.advice(reason)}; all of it: {self.log}")
        return sum(1 for _ in self.folder.rglob("*.o"))


def _reason(log: Path) -> str:
    """The line of a build's output that says why it failed."""
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    errors = [line for line in lines if re.search(r"\b(fatal )?error\b|Error:|undefined reference|No space left", line, re.IGNORECASE)]
    return (errors or lines or ["make said nothing"])[0][:200]


def _keep(request: Request, place: Path, folder: Path, make: _Make, figures: dict[str, Any]) -> Kernel:
    """Copies what a kernel is to its final place, instead of what may be left there of one that was half removed."""
    part = place.with_name(f"{place.name}.part")
    text = (folder / ".config").read_text()
    version = source.tree_version(make.tree)
    about = {
        "arch": request.arch,
        "allocator": request.kind.name,
        "release": ".".join(map(str, version or ())),
        "source": str(request.source.path),
        "source_ident": request.source.ident,
        "debug": request.debug,
        "outlined": request.outlined,
        "small": request.small,
        "compiler": tools.compiler_version(request.arch),
        "config_sha256": hashlib.sha256(text.encode()).hexdigest(),
        **figures,
    }
    with cache.locked(place, place.name):
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir()
        files = dict.fromkeys(("System.map", IMAGES[request.arch], *(["vmlinux"] if request.arch != "um" else [])))
        for name in files:
            shutil.copy2(folder / name, part / Path(name).name)
        (part / "config").write_text(text)
        (part / "kernel.json").write_text(json.dumps(about, indent=2) + "\n")
        shutil.rmtree(place, ignore_errors=True)
        part.rename(place)
    return Kernel(place.name, request.arch, request.kind.name, place, about)
