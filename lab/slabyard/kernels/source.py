"""The source of a kernel: found, recognised, and copied to where it may be changed.

A source is a tarball or a tree, the user's own, and is only ever read. What is built from is a private copy in the cache, with the
changes of edits.py in it, named after what the source holds: the hash of a tarball; of a tree, which is too large to be read every
time, the hash of every file's path, size and time of change. So a tree that was changed gives another copy, and what was built of
the old one is not mistaken for the new.

A copy is made under another name and renamed when it is whole; one of a kind's own begins as links to the files of the plain copy
where that is there, as a file is never written in its place. Files of ours (ports.py, `Kind.files`) and changes are brought up to
date before every build, those that changed alone, so that make builds what depends on them and no more; a kind with files or changes
of its own has a copy of its own. What lies in our folder there and is none of our files is removed, as makefiles take what they find.
A build shares the lock of its copy until it is over, and a change of the copy needs the lock alone: so builds of the same files may go
on side by side, and nothing changes under one of them.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from ..base import programs
from ..base.errors import MISSING, USAGE, UserError
from ..base.files import read_text_if_there, sha256
from ..base.terminal import note
from . import cache, edits, ports, tools
from .kinds import Kind
from .versions import DEFAULT, KNOWN, VERSIONS

PREPARATION = 2  # to be raised when what is done to a copy changes
_LEFT_OUT = (".git", "*.o", "*.o.d", ".*.cmd", ".config", ".config.old", "include/config", "include/generated", "arch/*/include/generated")
_PROCESSORS = (
    "alpha", "arc", "arm", "csky", "hexagon", "ia64", "loongarch", "m68k", "microblaze", "mips", "nios2", "openrisc", "parisc", "powerpc",
    "riscv", "s390", "sh", "sparc", "xtensa",
)  # fmt: skip
# What no kernel of ours is made from, and is more than half of all. Makefiles and options stay: the kernel's own read them.
_NOT_UNPACKED = (
    *(f"arch/{processor}/*.[chS]" for processor in _PROCESSORS), "arch/*.dts", "arch/*.dtsi",
    *(f"drivers/{kind}/*.[ch]" for kind in ("gpu", "iio", "infiniband", "media", "net/*", "scsi", "staging", "usb")),
    "sound/*.[ch]", "tools/perf/*", "tools/testing/*", *(f"Documentation/*.{ending}" for ending in ("rst", "txt", "yaml")),
)  # fmt: skip


@dataclass(frozen=True)
class Source:
    """A kernel's source as the user has it; `ident` stands for what is in it, `linux` is its version in the table (versions.py)."""

    path: Path
    ident: str
    linux: str

    @property
    def is_tree(self) -> bool:
        """Whether it is a folder, not a tarball."""
        return self.path.is_dir()


def version_of(given: Path | None, asked: str | None = None) -> str:
    """The version to build: the one asked for, else that of the tree given, else the usual one. UserError for a tree of another."""
    number = tree_version(given) if given is not None and given.is_dir() else None
    if number is None:
        return asked or DEFAULT
    found = _known(number)
    if found is None or asked not in (None, found):
        _refuse(given, number, asked or DEFAULT)
    return found


def _known(number: tuple[int, ...]) -> str | None:
    """The name of a version of the table; None for one that is not there."""
    return next((version.name for version in VERSIONS.values() if version.number == number[:2]), None)


def _refuse(named: Path | None, number: tuple[int, ...] | None, wanted: str) -> NoReturn:
    if number is None:
        raise UserError(f"{named}: is no kernel source; the lab's kernels are Linux {KNOWN}")
    found = _known(number)
    what = f"not {wanted}; --linux {found} builds it" if found else f"the lab's kernels are Linux {KNOWN}"
    raise UserError(f"{named}: is Linux {number[0]}.{number[1]}, {what}")


def find(given: Path | None, linux: str | None = None, places: Sequence[str] | None = None) -> Source:
    """The source that the user names, or the first one of this version in the usual places. UserError when there is none."""
    version = VERSIONS[version_of(given, linux)]
    if given is None:
        usual = [Path(place) for place in (version.places if places is None else places)]
        given = next((path for path in usual if path.is_file() or (tree_version(path) or ())[:2] == version.number), None)
        if given is None:
            raise UserError(
                f"there is no source of Linux {version.name} here; get it (Debian 12: apt install {version.package}; elsewhere: the "
                f"tarball of any {version.name} from kernel.org) or name one with --source TREE or --source TARBALL",
                MISSING,
            )
    if given.is_dir():
        if tree_version(given) is None:
            raise UserError(f"{given}: is no kernel source: its Makefile names no version")
    elif not given.is_file():
        raise UserError(f"{given}: no such source tree or tarball")
    return Source(given.resolve(), _ident(given.resolve()), version.name)


def tree_version(tree: Path) -> tuple[int, int, int] | None:
    """The version of a source tree; None where it is none."""
    text = read_text_if_there(tree / "Makefile") or ""
    found = [re.search(rf"(?m)^{name}\s*=\s*(\d+)", text[:2000]) for name in ("VERSION", "PATCHLEVEL", "SUBLEVEL")]
    if None in found:
        return None
    first, second, third = (int(match[1]) for match in found if match)
    return first, second, third


@functools.cache
def _ident(path: Path) -> str:
    if path.is_dir():
        digest = hashlib.sha256()
        for line in _contents(path):
            digest.update(line)
        what = f"tree {digest.hexdigest()}"
    else:
        what = f"tarball {sha256(path)}"
    return hashlib.sha256(f"{what} preparation {PREPARATION}".encode()).hexdigest()[:12]


def _contents(top: Path) -> Iterator[bytes]:
    """A line for every file of a tree: path, size in bytes, time of change in nanoseconds."""
    for folder, folders, files in os.walk(top):
        folders[:] = sorted(name for name in folders if name != ".git")
        for name in sorted(files):
            if name.endswith((".o", ".cmd", ".o.d")):
                continue
            path = os.path.join(folder, name)  # noqa: PTH118 (of 80,000 files)
            about = os.lstat(path)
            yield f"{os.path.relpath(path, top)} {about.st_size} {about.st_mtime_ns}\n".encode()


def own_files(kind: Kind) -> dict[str, bytes]:
    """All files of ours that a kind's kernels are built from, by their paths in the tree."""
    return {**ports.common(), **kind.files()}


def changes(source: Source, kind: Kind) -> tuple[edits.Edit, ...]:
    """All changes to files of the source that a kind's kernels are built from."""
    return (*VERSIONS[source.linux].edits, *edits.ALWAYS, *kind.edits.get(source.linux, ()))


def copy_of(source: Source, kind: Kind) -> Path:
    """Where the private copy for kernels of a kind is, or will be."""
    own = kind.files() or kind.edits
    return cache.folder("sources") / (f"{source.ident}-{kind.name}" if own else source.ident)


@contextlib.contextmanager
def prepared(source: Source, kind: Kind, own: Mapping[str, bytes]) -> Iterator[tuple[Path, int]]:
    """The private copy, whole and with these files of ours as long as the block lasts, and the descriptor of its lock."""
    copy, what = copy_of(source, kind), "the copy of the kernel source"
    with cache.shared(copy, what) as lock:
        while not _is_up_to_date(source, kind, own):
            with cache.exclusive(lock, what):
                _prepare(source, kind, own, lock)
        yield copy, lock


def _is_up_to_date(source: Source, kind: Kind, own: Mapping[str, bytes]) -> bool:
    copy, made = copy_of(source, kind), changes(source, kind)
    wanted = {**edits.changed(copy, made), **own}
    if not all(edit.path in wanted for edit in made) or _stale(copy, own):
        return False
    return all((copy / path).is_file() and (copy / path).read_bytes() == content for path, content in wanted.items())


def _stale(copy: Path, own: Mapping[str, bytes]) -> list[Path]:
    """Files in our folder of a copy that are none of ours any more."""
    return [path for path in (copy / ports.OURS).rglob("*") if not path.is_dir() and str(path.relative_to(copy)) not in own]


def _prepare(source: Source, kind: Kind, own: Mapping[str, bytes], lock: int) -> None:
    copy = copy_of(source, kind)
    if not copy.is_dir():
        part = copy.with_name(f"{copy.name}.part")
        try:
            _fill(source, part, lock)
            edits.apply(part, changes(source, kind))
        except UserError:  # it would be no better next time, and takes half a gigabyte
            shutil.rmtree(part, ignore_errors=True)
            raise
        part.rename(copy)
    edits.apply(copy, changes(source, kind))
    for left in _stale(copy, own):
        left.unlink()
    for path, content in own.items():
        (copy / path).parent.mkdir(parents=True, exist_ok=True)
        edits.write(copy / path, content)


def _fill(source: Source, part: Path, lock: int) -> None:
    programs.complete(["rm", "-rf", str(part)])  # many files, and Python's own way of it hears of no Ctrl-C in a thread
    part.mkdir()
    plain = cache.folder("sources") / source.ident
    if part != plain.with_name(f"{plain.name}.part") and plain.is_dir():
        with cache.shared(plain, "the copy of the kernel source"):
            _run(["cp", "-al", f"{plain}/.", str(part)], lock, plain)
        return
    if not source.is_tree and source.path.suffix in (".xz", ".txz"):
        tools.require([tools.XZ], "unpacking the kernel source")
    note(f"{'copying' if source.is_tree else 'unpacking'} {source.path}, once")
    into = ["tar", "-x", "--strip-components=1", "-C", str(part), *(f"--exclude={pattern}" for pattern in _NOT_UNPACKED)]
    if not source.is_tree:
        _run([*into, "-f", str(source.path)], lock, source.path)
        number = tree_version(part)
        if number is None or _known(number) != source.linux:
            _refuse(source.path, number, source.linux)
        return
    left_out = [f"--exclude=./{pattern}" if "/" in pattern else f"--exclude={pattern}" for pattern in _LEFT_OUT]
    reading = ["tar", "-c", "-C", str(source.path), *left_out, "."]
    with programs.child(reading, stdout=subprocess.PIPE, pass_fds=(lock,)) as reader:
        _run(into, lock, source.path, stdin=reader.stdout)
        reader.communicate()
    if reader.returncode:
        raise UserError(f"{source.path}: cannot be copied; tar ended with status {reader.returncode}", USAGE)


def _run(argv: Sequence[str], lock: int, named: Path, **options: object) -> None:
    done = programs.complete(argv, pass_fds=(lock,), **options)
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines() or ["tar failed"]
        told = next((line for line in lines if cache.advice(line)), lines[0])  # where room ends, tar first tells of half a file
        raise UserError(f"{named}: cannot be unpacked or copied: {told}{cache.advice(told)}")
