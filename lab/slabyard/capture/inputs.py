"""Where the import program reads from: text as it is, compressed text through a thread, perf.data as it is or through `perf script`,
trace-cmd's files through `trace-cmd report`.

Each becomes a descriptor that slabyard-import gets, so that nothing is whole in memory or a second time on disk. The first bytes of
a capture tell what it is. A large perf.data is read by slabyard-import itself where perfformat.py can describe it. Of others `perf script`
makes the text, the slowest step by far; so of a large file (from a stream, see perfdata.py) two of them work at once on the two halves.
When a producer fails, the import program only sees its input end early; so the producers are asked for their errors when all has been
read.
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

import numpy as np
import pyarrow as pa

from ..base.errors import MISSING, UserError
from ..base.files import describe_os_error, is_special
from ..base.programs import child, last_line
from . import evidence, heaptrack, perfdata, perfformat

LARGE = 64 << 20  # bytes of perf.data from which perf script is left out, or two of them work at once
_FIELDS = "comm,pid,cpu,time,event,trace"
_HEAD = 16  # bytes that tell what a file is
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
    partial: list[str] = field(default_factory=list)  # what shows that the recorder left events out
    has_stacks: bool = False
    cgroup: str = ""  # whose tasks alone were recorded
    capture: str = ""  # the name of the file that was imported
    window: tuple[int, int] | None = None  # ns of perf.data's clock: what happened before and after is left out
    snapshots: list[dict[str, Any]] = field(default_factory=list)  # name, files, slab_attributes of each
    slab_frames: np.ndarray | None = None  # uint64[n], ascending: page frames that were slabs when it began; None: not known
    slab_shapes: str = ""  # where none of these is missing: `size stride objects order name` of each cache, a line for each

    def describe(self, text: str) -> None:
        """Fills in what perf prints of a recording (`--header`), where it is not known already."""
        found = dict(re.findall(r"^# ([a-z ]+?)\s*: (.*?)\s*$", text, re.MULTILINE))
        self.kernel = self.kernel or found.get("os release", "")
        self.arch = self.arch or found.get("arch", "")
        if self.cpus is None and found.get("nrcpus avail", "").isdigit():
            self.cpus = int(found["nrcpus avail"])
        if self.recorded_at is None and "captured on" in found:
            with contextlib.suppress(ValueError):
                moment = datetime.datetime.strptime(found["captured on"], "%a %b %d %H:%M:%S %Y")
                self.recorded_at = moment.isoformat(timespec="seconds")
        self.kinds = self.kinds or re.findall(r"^# event : name = kmem:(\w+)", text, re.MULTILINE)
        if self.command is None and " -- " in found.get("cmdline", ""):
            self.command = found["cmdline"].partition(" -- ")[2].split()
        self.has_stacks = self.has_stacks or re.search(r"^# event : .*sample_type = [A-Z|]*\bCALLCHAIN\b", text, re.MULTILINE) is not None
        if self.window:  # our own recording: what it leaves out is known
            return
        self.partial += [cause for cause in evidence.of_header(text) if cause not in self.partial]


@dataclass
class Inputs:
    """Where slabyard-import reads from: descriptors for it, and what to ask when all was read."""

    descriptors: list[int]
    check: Callable[[], None]  # raises UserError when a producer failed
    resolve: Callable[[Sequence[str]], list[str]] = list  # call sites with symbols for addresses
    layouts: dict[int, int] = field(default_factory=dict)  # of descriptors with perf.data, those that have its layout

    @property
    def options(self) -> list[str]:
        """slabyard-import's, that name the descriptors."""
        words = []
        for descriptor in self.descriptors:
            words += ["--input", str(descriptor)]
            words += ["--perf", str(self.layouts[descriptor])] if descriptor in self.layouts else []
        return words

    @property
    def passed(self) -> list[int]:
        """All descriptors that slabyard-import gets."""
        return [*self.descriptors, *self.layouts.values()]

    def close(self) -> None:
        """Closes them, once slabyard-import has them or nobody will."""
        for descriptor in self.passed:
            os.close(descriptor)
        self.descriptors.clear()
        self.layouts.clear()


def open_inputs(sources: Sequence[str], about: About, stack: contextlib.ExitStack) -> Inputs:
    """Opens the parts of a capture: paths, or `-` for standard input. `stack` closes them; `about` gets what their headers tell.

    Raises UserError for what is no capture or a damaged perf.data (status 2), and where perf or trace-cmd is missing (4).
    """
    parts = [_open(source, about, stack) for source in sources]

    def check() -> None:
        for part in parts:
            part.check()

    def resolve(call_sites: Sequence[str]) -> list[str]:
        for part in parts:
            call_sites = part.resolve(call_sites)
        return list(call_sites)

    joined = Inputs([], check, resolve)
    stack.callback(joined.close)
    for part in parts:
        joined.descriptors += part.descriptors
        joined.layouts |= part.layouts
        part.descriptors.clear()
        part.layouts.clear()
    return joined


def _open(source: str, about: About, stack: contextlib.ExitStack) -> Inputs:
    path = Path(source)
    if source != "-" and path.is_dir():
        if not (path / "data").is_file():
            raise UserError(f"{source}: is a folder, and none that perf record has made; name perf.data or a text file in it")
        return _perf(path, about, stack)
    try:
        file = os.fdopen(os.dup(sys.stdin.fileno()), "rb", 0) if source == "-" else path.open("rb", 0)
        stack.callback(file.close)
        os.set_blocking(file.fileno(), True)
        head = b""
        while len(head) < _HEAD and (more := file.read(_HEAD - len(head))):
            head += more
    except OSError as error:
        raise UserError(describe_os_error(error, source)) from error
    once = source == "-" or is_special(path)
    if head[:8] in (b"PERFILE2", b"2ELIFREP"):
        return _perf_pipe(source, _WithHead(head, file), head, about, stack) if once else _perf(path, about, stack)
    if head.startswith(b"PAR1"):
        raise UserError(f"{source}: is a trace already")
    if head.startswith(perfformat.TRACING_DATA):
        if once:
            raise UserError(f"{source}: trace-cmd's file cannot be read from a pipe; name the file, or send what `trace-cmd report` prints")
        return _trace_cmd(path, about, stack)
    if not head:
        raise UserError(f"{source}: is empty")
    if head[:2] in (b"\xff\xfe", b"\xfe\xff") or (len(head) == _HEAD and any(head[0::2]) != any(head[1::2])):
        raise UserError(f"{source}: is text of 16 or 32 bits a character; make it UTF-8 (iconv -f UTF-16 -t UTF-8)")
    about.source = about.source or "text"
    opener = _decompressor(head)
    if file.seekable():
        file.seek(-len(head), os.SEEK_CUR)
        if not once and heaptrack.is_heaptrack(_first_text(path, opener)):
            about.source = "heaptrack"
            return _through_thread(source, file, lambda raw: heaptrack.Text(opener(raw) if opener else raw), stack)
        return _through_thread(source, file, opener, stack) if opener else _single(os.dup(file.fileno()), stack)
    return _through_thread(source, _WithHead(head, file), opener or contextlib.nullcontext, stack)


def _first_text(path: Path, opener: Callable[[Any], Any] | None) -> bytes:
    """The first bytes of a file's text; empty where it is damaged, of which whoever reads it all will tell."""
    try:
        with path.open("rb") as file, (opener or contextlib.nullcontext)(file) as text:
            return bytes(text.read(64))
    except (OSError, EOFError, lzma.LZMAError, zlib.error, pa.ArrowException):
        return b""


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
    inputs = Inputs([descriptor], check)
    stack.callback(inputs.close)
    return inputs


def _decompressor(head: bytes) -> Callable[[Any], Any] | None:
    if head.startswith(b"\x1f\x8b"):
        return gzip.open
    if head.startswith((b"\xfd7zXZ\x00", b"\x5d\x00\x00")):
        return lzma.open
    if head.startswith(b"BZh"):
        return bz2.open
    if head.startswith(b"\x28\xb5\x2f\xfd"):
        return functools.partial(pa.input_stream, compression="zstd")
    if head.startswith(b"\x04\x22\x4d\x18"):
        return functools.partial(pa.input_stream, compression="lz4")
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
        except (OSError, EOFError, lzma.LZMAError, zlib.error, pa.ArrowException, ValueError) as error:  # ValueError: `stack` has closed it
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


def _needed(name: str, package: str, source: object, instead: str) -> str:
    """The path of a program. UserError when it is missing."""
    found = shutil.which(name)
    if found is None:
        raise UserError(f"{source} needs {name} to be read; install it ({package}), or import {instead}", MISSING)
    return found


def _perf_needed(source: object) -> str:
    packages = "Debian: apt install linux-perf, Ubuntu: linux-tools-generic, Fedora: perf"
    return _needed("perf", packages, source, "the text that `perf script` makes of it elsewhere")


def _perf(path: Path, about: About, stack: contextlib.ExitStack) -> Inputs:
    """perf.data: a file, a stream in a file (`perf record -o -`), or a folder (`perf record --threads`)."""
    about.source = "perf.data"
    perf = _perf_needed(path)
    data = None if path.is_dir() else perfdata.read(path)
    about.lost += data.lost() if data else 0
    header = [perf, "report", "--force", "--header-only", "-i", str(path)]
    about.describe(subprocess.run(header, capture_output=True, stdin=subprocess.DEVNULL, check=False).stdout.decode(errors="replace"))
    script = [perf, "script", *_script(about)]
    producers = _Producers(f"{path}: perf script cannot read it", stack)
    # In a stream perf has no symbols for the frames of stacks.
    if data is None or not data.streams or about.has_stacks or path.stat().st_size < LARGE:
        producers.start([*script, "-i", str(path)], subprocess.DEVNULL)
        return producers.inputs
    layout = perfformat.layout(data, about.window)
    if layout:
        return _decoded(path, data, layout, stack)
    producers.inputs.resolve = functools.partial(perfdata.resolve, data=data)
    for part in data.parts(min(2, len(os.sched_getaffinity(0)))):
        process = producers.start([*script, "-i", "-"], subprocess.PIPE)
        assert process.stdin is not None
        _feed(data, part, os.dup(process.stdin.fileno()))
        process.stdin.close()
    return producers.inputs


def _decoded(path: Path, data: perfdata.PerfData, layout: str, stack: contextlib.ExitStack) -> Inputs:
    """perf.data that slabyard-import reads itself."""
    inputs = _single(os.open(path, os.O_RDONLY | os.O_CLOEXEC), stack)
    inputs.resolve = functools.partial(perfdata.resolve, data=data)
    with tempfile.TemporaryFile() as file:
        file.write(layout.encode())
        file.seek(0)
        inputs.layouts[inputs.descriptors[0]] = os.dup(file.fileno())
    return inputs


def _script(about: About) -> list[str]:
    """perf script's options."""
    options = ["--force", "-F", f"{_FIELDS},ip,sym" if about.has_stacks else _FIELDS, "--ns", "--show-lost-events"]
    if about.window:
        options += ["--time", ",".join(f"{moment // 10**9}.{moment % 10**9:09}" for moment in about.window)]
    return options


def _perf_pipe(source: str, file: io.RawIOBase, head: bytes, about: About, stack: contextlib.ExitStack) -> Inputs:
    """perf.data that can be read once: what `perf record -o -` writes. A file's data needs what stands behind it."""
    if head[8:] != perfdata.STREAM_HEADER.to_bytes(8, "little"):
        raise UserError(f"{source}: perf.data cannot be read from a pipe; name the file, or send what `perf script` makes of it")
    about.source = "perf.data"
    feeder = _through_thread(source, file, contextlib.nullcontext, stack)
    producers = _Producers(f"{source}: perf script cannot read it", stack)
    producers.start([_perf_needed(source), "script", "-i", "-", "--header", *_script(about)], feeder.descriptors[0])
    os.close(feeder.descriptors.pop())
    return producers.inputs


def _trace_cmd(path: Path, about: About, stack: contextlib.ExitStack) -> Inputs:
    """trace-cmd's own file."""
    about.source = "trace-cmd"
    if path.with_name(f"{path.name}.cpu0").exists():
        raise UserError(f"{path}: trace-cmd was ended before it had put the events into it; `trace-cmd restore {path.name}.cpu*` does")
    trace_cmd = _needed("trace-cmd", "Debian: apt install trace-cmd", path, "the text that `trace-cmd report` prints of it elsewhere")
    producers = _Producers(f"{path}: trace-cmd cannot read it", stack)
    producers.start([trace_cmd, "report", "-N", "-t", "-i", str(path)], subprocess.DEVNULL)
    return producers.inputs


class _Producers:
    """Programs whose texts are the inputs. `complaint` begins what is told of one that failed."""

    def __init__(self, complaint: str, stack: contextlib.ExitStack) -> None:
        self.inputs = Inputs([], self._check)
        self._complaint = complaint
        self._children: list[tuple[subprocess.Popen[bytes], IO[bytes]]] = []
        self._stack = stack
        stack.callback(self.inputs.close)

    def start(self, command: list[str], stdin: int) -> subprocess.Popen[bytes]:
        """One more of them."""
        errors = self._stack.enter_context(tempfile.TemporaryFile())
        process = self._stack.enter_context(child(command, stdin=stdin, stdout=subprocess.PIPE, stderr=errors))
        assert process.stdout is not None
        self._children.append((process, errors))
        descriptor = os.dup(process.stdout.fileno())
        process.stdout.close()
        enlarge_pipe(descriptor)
        self.inputs.descriptors.append(descriptor)
        return process

    def _check(self) -> None:
        for process, errors in self._children:
            process.wait()
            if process.returncode in (0, -signal.SIGPIPE):  # ended by its reader, which has more to tell
                continue
            errors.seek(0)
            told = last_line(errors.read(1 << 16).decode(errors="replace"), f"it ended with status {process.returncode}")
            raise UserError(f"{self._complaint}: {told}")


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
