"""Where the import program reads from: text as it is, compressed text through a thread, perf.data through `perf script`.

Each becomes a descriptor that slabyard-import gets, so that nothing is whole in memory or a second time on disk. The first bytes of
a capture tell what it is. For perf.data, `perf script` makes the text (of a large file from a stream, see perfdata.py), and since it is the
slowest step by far, two of them work at once on the two halves of a large file. When a producer fails, the import program only sees its
input end early; so the producers are asked for their errors when all has been read.
"""

from __future__ import annotations

import bz2
import contextlib
import datetime
import fcntl
import functools
import gzip
import io
import lzma
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from ..base.errors import MISSING, UserError
from ..base.files import describe_os_error, is_special
from ..base.programs import child, last_line
from . import perfdata

LARGE = 64 << 20  # bytes of perf.data from which it is streamed, and two perf scripts pay
_FIELDS = "cpu,time,event,trace"
_PIPE = 1 << 20  # bytes of a pipe's buffer
_F_SETPIPE_SZ = 1031


@dataclass
class About:
    """What is known of a capture from outside its events."""

    source: str = ""
    kernel: str = ""
    arch: str = ""
    command: list[str] | None = None
    recorded_at: str | None = None
    cpus: int | None = None
    page_size: int | None = None  # bytes
    lost: int = 0  # events, where the recorder has counted them
    kinds: Sequence[str] = ()  # of events that were recorded, where that is known: those that never happened count 0
    cgroup: str = ""  # whose tasks alone were recorded
    capture: str = ""  # the name of the file that was imported
    window: tuple[int, int] | None = None  # ns of perf.data's clock: what happened before and after is left out
    snapshots: list[dict[str, Any]] = field(default_factory=list)  # name, files, slab_attributes of each


@dataclass
class Inputs:
    """Where slabyard-import reads from: descriptors for it, and what to ask when all was read."""

    descriptors: list[int]
    options: list[str]
    check: Callable[[], None]  # raises UserError when a producer failed
    resolve: Callable[[Sequence[str]], list[str]] = list  # call sites with symbols for addresses


def open_inputs(source: str, about: About, stack: contextlib.ExitStack) -> Inputs:
    """Opens a capture: a path, or `-` for standard input. `stack` closes it; `about` gets what the capture's header tells.

    Raises UserError for what is no capture or a damaged perf.data (status 2), and where perf is missing (4).
    """
    path = Path(source)
    if source != "-" and path.is_dir():
        raise UserError(f"{source}: is a folder; name perf.data or a text file in it")
    try:
        file = os.fdopen(os.dup(sys.stdin.fileno()), "rb", 0) if source == "-" else path.open("rb", 0)
        stack.callback(file.close)
        os.set_blocking(file.fileno(), True)
        head = b""
        while len(head) < 8 and (more := file.read(8 - len(head))):
            head += more
    except OSError as error:
        raise UserError(describe_os_error(error, source)) from error
    once = source == "-" or is_special(path)
    if head in (b"PERFILE2", b"2ELIFREP"):
        if once:
            raise UserError(f"{source}: perf.data cannot be read from a pipe; name the file, or send what `perf script` makes of it")
        return _perf(path, about, stack)
    if head.startswith(b"PAR1"):
        raise UserError(f"{source}: is a trace already")
    if not head:
        raise UserError(f"{source}: is empty")
    about.source = "text"
    opener = _decompressor(head)
    if file.seekable():
        file.seek(-len(head), os.SEEK_CUR)
        return _through_thread(source, file, opener, stack) if opener else _single(os.dup(file.fileno()), stack)
    return _through_thread(source, _WithHead(head, file), opener or contextlib.nullcontext, stack)


class _WithHead(io.RawIOBase):
    """A pipe, with what was read of it already before the rest."""

    def __init__(self, head: bytes, pipe: io.FileIO) -> None:
        self._head, self._pipe = head, pipe

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        if not self._head:
            return self._pipe.readinto(buffer)
        count = min(len(buffer), len(self._head))
        buffer[:count], self._head = self._head[:count], self._head[count:]
        return count


def _single(descriptor: int, stack: contextlib.ExitStack, check: Callable[[], None] = lambda: None) -> Inputs:
    inputs = Inputs([descriptor], ["--input", str(descriptor)], check)
    stack.callback(_close_all, inputs)
    return inputs


def _close_all(inputs: Inputs) -> None:
    for descriptor in inputs.descriptors:
        os.close(descriptor)


def _decompressor(head: bytes) -> Callable[[Any], Any] | None:
    if head.startswith(b"\x1f\x8b"):
        return gzip.open
    if head.startswith(b"\xfd7zXZ\x00"):
        return lzma.open
    if head.startswith(b"BZh"):
        return bz2.open
    if head.startswith(b"\x28\xb5\x2f\xfd"):
        return functools.partial(pa.input_stream, compression="zstd")
    return None


def _through_thread(source: str, file: io.RawIOBase, opener: Callable[[Any], Any], stack: contextlib.ExitStack) -> Inputs:
    """A pipe that a thread fills with the text that `opener` makes of a file."""
    reader, writer = os.pipe()
    enlarge_pipe(writer)
    failures: list[str] = []

    def feed() -> None:
        try:
            with os.fdopen(writer, "wb", buffering=0) as pipe, opener(file) as text:
                while block := text.read(_PIPE):
                    view = memoryview(block)
                    while view:
                        view = view[pipe.write(view) :]
        except BrokenPipeError:
            pass  # the import ended early, and says why
        except (OSError, EOFError, lzma.LZMAError, zlib.error, pa.ArrowException) as error:
            failures.append(str(error).splitlines()[0] if str(error) else type(error).__name__)

    def check() -> None:
        thread.join()
        if failures:
            raise UserError(f"{source}: damaged or cut off compressed file ({failures[0]})")

    thread = threading.Thread(target=feed, daemon=True)
    thread.start()
    return _single(reader, stack, check)


def enlarge_pipe(descriptor: int) -> None:
    """Gives a pipe a buffer of _PIPE bytes, where the kernel grants that."""
    with contextlib.suppress(OSError):
        fcntl.fcntl(descriptor, _F_SETPIPE_SZ, _PIPE)


# ---- perf ----------------------------------------------------------------------------------------------------------------


def _perf(path: Path, about: About, stack: contextlib.ExitStack) -> Inputs:
    about.source = "perf.data"
    perf = shutil.which("perf")
    if perf is None:
        raise UserError(
            f"{path} needs perf to be read; install it (Debian: apt install linux-perf, Ubuntu: linux-tools-generic, Fedora: perf), "
            "or import the text that `perf script` makes of it elsewhere",
            MISSING,
        )
    data = perfdata.read(path)
    about.lost = data.lost() if data else 0
    stacks = _read_header(perf, path, about)
    script = [perf, "script", *_script(about, stacks)]
    children: list[tuple[subprocess.Popen[bytes], IO[bytes]]] = []
    inputs = Inputs([], [], lambda: _check_perf(path, children))
    stack.callback(_close_all, inputs)
    # In a stream perf has no symbols for the frames of stacks.
    if data is None or not data.streams or stacks or path.stat().st_size < LARGE:
        _start_perf([*script, "-i", str(path)], subprocess.DEVNULL, inputs, children, stack)
        return inputs
    inputs.resolve = functools.partial(perfdata.resolve, data=data)
    for part in data.parts(min(2, len(os.sched_getaffinity(0)))):
        process = _start_perf([*script, "-i", "-"], subprocess.PIPE, inputs, children, stack)
        assert process.stdin is not None
        _feed(data, part, os.dup(process.stdin.fileno()))
        process.stdin.close()
    return inputs


def _script(about: About, stacks: bool) -> list[str]:
    """perf script's options."""
    options = ["--force", "-F", f"{_FIELDS},ip,sym" if stacks else _FIELDS, "--ns", "--show-lost-events"]
    if about.window:
        options += ["--time", ",".join(f"{moment // 10**9}.{moment % 10**9:09}" for moment in about.window)]
    return options


def _start_perf(
    command: list[str], stdin: int, inputs: Inputs, children: list[tuple[subprocess.Popen[bytes], IO[bytes]]], stack: contextlib.ExitStack
) -> subprocess.Popen[bytes]:
    """A perf script whose text is one of the inputs."""
    errors = stack.enter_context(tempfile.TemporaryFile())
    process = stack.enter_context(child(command, stdin=stdin, stdout=subprocess.PIPE, stderr=errors))
    assert process.stdout is not None
    children.append((process, errors))
    descriptor = os.dup(process.stdout.fileno())
    process.stdout.close()
    enlarge_pipe(descriptor)
    inputs.descriptors.append(descriptor)
    inputs.options += ["--input", str(descriptor)]
    return process


def _feed(data: perfdata.PerfData, part: tuple[int, int], descriptor: int) -> None:
    """A thread that streams a part of the file to perf; a perf that ends early says why itself."""

    def feed() -> None:
        try:
            with contextlib.suppress(OSError):
                data.stream_to(descriptor, part)
        finally:
            os.close(descriptor)

    enlarge_pipe(descriptor)
    threading.Thread(target=feed, daemon=True).start()


def _read_header(perf: str, path: Path, about: About) -> bool:
    """Fills in what perf.data's header says and is not known already. Whether the events have stacks."""
    header = subprocess.run(
        [perf, "report", "--force", "--header-only", "-i", str(path)], capture_output=True, stdin=subprocess.DEVNULL, check=False
    ).stdout.decode(errors="replace")
    found = dict(re.findall(r"^# ([a-z ]+?)\s*: (.*?)\s*$", header, re.MULTILINE))
    about.kernel = about.kernel or found.get("os release", "")
    about.arch = about.arch or found.get("arch", "")
    if about.cpus is None and found.get("nrcpus avail", "").isdigit():
        about.cpus = int(found["nrcpus avail"])
    if about.recorded_at is None and "captured on" in found:
        with contextlib.suppress(ValueError):
            moment = datetime.datetime.strptime(found["captured on"], "%a %b %d %H:%M:%S %Y")
            about.recorded_at = moment.isoformat(timespec="seconds")
    about.kinds = re.findall(r"^# event : name = kmem:(\w+)", header, re.MULTILINE)
    if about.command is None and " -- " in found.get("cmdline", ""):
        about.command = found["cmdline"].partition(" -- ")[2].split()
    return re.search(r"^# event : .*sample_type = [A-Z|]*\bCALLCHAIN\b", header, re.MULTILINE) is not None


def _check_perf(path: Path, children: list[tuple[subprocess.Popen[bytes], IO[bytes]]]) -> None:
    for process, errors in children:
        process.wait()
        if process.returncode in (0, -signal.SIGPIPE):  # ended by its reader, which has more to tell
            continue
        errors.seek(0)
        said = last_line(errors.read(1 << 16).decode(errors="replace"), f"it ended with status {process.returncode}")
        raise UserError(f"{path}: perf script cannot read it: {said}")
