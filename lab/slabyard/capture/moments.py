"""The kernel's own figures at a moment of a recording, read so that reading them hardly changes them.

Opening a file of /proc or /sys costs slab memory: a dentry, an inode, a buffer for its text. The attributes of some 400 caches are
thousands of files, more than a thousand pages of slabs. So

- the attributes are read before tracing begins, twice: the first pass pays for the dentries and inodes, the second one reads;
- the files of /proc are opened and read once before tracing begins. They stay open, each with its buffer, so that reading them
  again allocates nothing;
- which page frames are slabs (/proc/kpageflags) is read just before tracing begins, and again, where there were some, just before the
  first snapshot. With it the trace knows its older slabs, and where the direct map begins, without a guess. A slab that is missing there
  counts as one that came unseen, and the first reading takes seconds, in which the machine makes some;
- slabinfo and meminfo are read first and together. The kernel keeps a part of meminfo's sums per CPU, up to some dozens of pages each;
  reading vm.stat_refresh (root only) adds them up first.

A moment's time is of the clock that perf is told to use, taken as soon as meminfo is read: what comes later in time is in the trace.
"""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..trace import snapshots

CLOCK = time.CLOCK_MONOTONIC
FIRST = ("slabinfo", "meminfo")
CACHES = Path("/sys/kernel/slab")
FRAME_FLAGS = Path("/proc/kpageflags")
MOST_FRAMES = 16 << 20  # 64 GiB; to be told of so many takes the kernel some seconds
_BLOCK = 1 << 20
_SLAB, _FLAGS_BYTES = 7, 8  # a bit of a frame's flags, and their size
_PAGEBLOCK = 512  # frames; slabs lie among slabs


@dataclass
class Moment:
    """What the kernel said of itself, and when."""

    name: str
    time: int  # ns of CLOCK
    files: dict[str, str]
    attributes: dict[str, dict[str, str]] | None = None

    def as_snapshot(self) -> dict[str, Any]:
        """In the form of the trace's metadata."""
        return {"name": self.name, "files": self.files, "slab_attributes": self.attributes}


class Moments:
    """The files of /proc, open as long as the context lasts. Those that cannot be read are left out."""

    def __init__(self, stack: contextlib.ExitStack, proc: Path = Path("/proc")) -> None:
        self._refresh = self._open(stack, proc / "sys" / "vm" / "stat_refresh")
        others = [name for name in snapshots.PROC_FILES if name not in FIRST]
        opened = {name: self._open(stack, proc / name) for name in (*FIRST, *others)}
        self._files = {name: file for name, file in opened.items() if file is not None}
        self.take("")

    @staticmethod
    def _open(stack: contextlib.ExitStack, path: Path) -> int | None:
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return None
        stack.callback(os.close, descriptor)
        return descriptor

    def take(self, name: str) -> Moment:
        """The kernel's figures now."""
        if self._refresh is not None:
            with contextlib.suppress(OSError):
                os.read(self._refresh, 1)
        first = {file: text for file in FIRST if (text := self._read(file)) is not None}
        now = time.clock_gettime_ns(CLOCK)
        rest = {file: text for file in self._files if file not in FIRST and (text := self._read(file)) is not None}
        return Moment(name, now, {file: text.decode(errors="replace") for file, text in {**first, **rest}.items()})

    def _read(self, name: str) -> bytes | None:
        """A file's text from its beginning; the kernel gives it in pieces."""
        descriptor = self._files.get(name)
        if descriptor is None:
            return None
        pieces = []
        try:
            os.lseek(descriptor, 0, os.SEEK_SET)
            while piece := os.read(descriptor, _BLOCK):
                pieces.append(piece)
        except OSError:
            return None
        return b"".join(pieces)


def slab_frames(path: Path = FRAME_FLAGS) -> np.ndarray | None:
    """uint64[n]: the page frames that are slabs now, ascending; None where the kernel does not tell, or has too many frames."""
    found: list[np.ndarray] = []
    first = 0
    try:
        with path.open("rb", buffering=0) as file:
            while piece := file.read(_BLOCK):
                found.append(_slabs_among(piece, first))
                first += len(piece) // _FLAGS_BYTES
                if first > MOST_FRAMES:
                    return None
    except OSError:
        return None
    return np.concatenate(found) if found else None


def slab_frames_again(known: np.ndarray, path: Path = FRAME_FLAGS) -> np.ndarray:
    """The same, where slabs were `known` a moment ago: only pageblocks that had some are looked at, which takes a tenth of the time."""
    blocks = np.unique(known // np.uint64(_PAGEBLOCK)).astype(np.int64)
    found = [np.empty(0, np.uint64)]
    with path.open("rb", buffering=0) as file:
        for run in np.split(blocks, np.flatnonzero(np.diff(blocks) > 1) + 1) if len(blocks) else []:
            first = int(run[0]) * _PAGEBLOCK
            found.append(_slabs_among(os.pread(file.fileno(), len(run) * _PAGEBLOCK * _FLAGS_BYTES, first * _FLAGS_BYTES), first))
    return np.concatenate(found)


def _slabs_among(flags: bytes, first: int) -> np.ndarray:
    """uint64[n]: the frames that are slabs, by the flags of some from `first` on."""
    words = np.frombuffer(flags, np.uint64, len(flags) // _FLAGS_BYTES)
    return first + np.flatnonzero(words >> np.uint64(_SLAB) & np.uint64(1)).astype(np.uint64)


def attributes(folder: Path = CACHES) -> dict[str, dict[str, str]] | None:
    """The attributes of all caches, read when their files are known to the kernel already."""
    snapshots.take_slab_attributes(folder)
    return snapshots.take_slab_attributes(folder)
