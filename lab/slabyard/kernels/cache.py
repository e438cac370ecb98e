"""The cache folder, its locks, and groups of processes that end with us.

Kernels take minutes to build, so what was built is kept, for all invocations of the user:

    $XDG_CACHE_HOME/slabyard/kernels/        (~/.cache where that is not set)
        sources/IDENT/      private copies of kernel sources, never changed once they are there
        builds/NAME/        make's own folder: what was compiled so far, so that an interrupted build goes on
        kernels/KEY/        finished kernels, never changed; KEY stands for everything that they were made from
        guests/KEY          programs of ours, compiled for guests

Whatever has its final name is complete: it is made under the name `NAME.part` and then renamed, and renamed back before it is removed.
The next attempt, or `slabyard kernel clean`, removes what an interruption has left under `NAME.part`.

Two invocations that want the same thing meet at its lock file, and the second finds it done. A lock belongs to an open file (flock),
which the processes started under it inherit: if an invocation is killed with no chance to tidy up, its compilers keep the lock until
the last of them has ended, and never meet those of the next one.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ..base import programs
from ..base.errors import UserError
from ..base.files import cache_home, describe_os_error
from ..base.terminal import note

PATIENCE = 5.0  # seconds that a process has to end when it is asked to


def folder(*parts: str) -> Path:
    """A folder of the cache, made where it is not there. UserError when that cannot be."""
    path = cache_home().joinpath("kernels", *parts)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{describe_os_error(error, path)}; XDG_CACHE_HOME names another folder to keep kernels in") from error
    return path


def advice(complaint: str) -> str:
    """What a message about a program that failed in the cache folder ends with: where it was for want of room, what to do."""
    return "; XDG_CACHE_HOME names another folder to keep kernels in" if "No space left" in complaint else ""


@contextlib.contextmanager
def locked(path: Path, what: str) -> Iterator[int]:
    """An exclusive lock of `path` for the block; gives its descriptor, for processes that shall hold it too."""
    with _lock_file(path) as descriptor:
        _take(descriptor, fcntl.LOCK_EX, what)
        yield descriptor


@contextlib.contextmanager
def shared(path: Path, what: str) -> Iterator[int]:
    """Nobody has an exclusive lock of `path` in the block, but others may share it; gives the lock's descriptor."""
    with _lock_file(path) as descriptor:
        _take(descriptor, fcntl.LOCK_SH, what)
        yield descriptor


@contextlib.contextmanager
def _lock_file(path: Path) -> Iterator[int]:
    descriptor = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def exclusive(descriptor: int, what: str) -> Iterator[None]:
    """Turns a shared lock into an exclusive one for the block. Others may hold it between the two, before and after."""
    _take(descriptor, fcntl.LOCK_EX, what)
    try:
        yield
    finally:
        fcntl.flock(descriptor, fcntl.LOCK_SH)


def _take(descriptor: int, kind: int, what: str) -> None:
    """Takes a lock. It asks again and again, as a thread that sleeps in flock would hear of no Ctrl-C."""
    told = False
    while True:
        try:
            return fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            if not told:
                note(f"waiting for {what}, which is in use")
            told = True
            programs.stop_if_unwanted()
            time.sleep(0.05)


def remove(entry: Path) -> None:
    """Removes a file or folder of the cache, whole or in part, once nobody works on it; never a part of it under its final name."""
    whole = entry.with_name(entry.name.removesuffix(".part"))
    with locked(whole, whole.name):
        if not entry.is_dir():
            entry.unlink(missing_ok=True)
            return
        part = whole.with_name(f"{whole.name}.part")
        if entry != part:
            shutil.rmtree(part, ignore_errors=True)
            entry.rename(part)
        shutil.rmtree(part)


@contextlib.contextmanager
def group(argv: Sequence[str], **options: Any) -> Iterator[subprocess.Popen[Any]]:
    """A running program in a process group of its own; when the block is left, nothing of the group is."""
    with programs.child(argv, start_new_session=True, stdin=subprocess.DEVNULL, **options) as process:
        try:
            yield process
        finally:
            _end(process)


def _end(process: subprocess.Popen[Any]) -> None:
    """Asks the group to end, which lets make remove what is half written; then makes it."""
    _signal(process.pid, signal.SIGTERM)
    deadline = time.monotonic() + PATIENCE
    while _signal(process.pid, 0):
        process.poll()  # a leader that has ended is of the group until it is waited for
        if time.monotonic() > deadline:
            _signal(process.pid, signal.SIGKILL)
        time.sleep(0.01)
    process.wait()


def _signal(leader: int, number: int) -> bool:
    """Sends a signal to a group (0: none); whether there is still one."""
    try:
        os.killpg(leader, number)
    except ProcessLookupError:
        return False
    return True
