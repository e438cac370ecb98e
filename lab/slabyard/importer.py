"""Makes a trace of a capture: perf.data, the text of `perf script`, or the text of tracefs's `trace` file.

The work is done by the C program slabyard-import (import/import.h says how); this module starts it, feeds it, and turns
what it writes into Parquet. Everything streams: no step holds more than a block of rows, so a capture may be larger than
memory. For perf.data, `perf script` makes the text (of a large file from a stream, see perfdata.py), and since it is the
slowest step by far, two of them work at once on the two halves of a large file.

                 perf script, 1st half -+
    perf.data                           +--> slabyard-import --> blocks of columns --> row groups --> T.parquet
                 perf script, 2nd half -+
    text.xz      decompressor ----------+
    text         ------------------------

The trace is written under a temporary name and renamed when it is whole. Whatever ends the import ends its children.
"""

from __future__ import annotations

import bz2
import contextlib
import datetime
import fcntl
import functools
import gzip
import io
import json
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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from . import linux_caches, perfdata
from . import snapshots as kernel
from .errors import MISSING, UserError
from .output import describe_os_error, is_special, whole_file
from .programs import child, program
from .trace import (
    CHECKSUM_KEY,
    KINDS,
    METADATA_KEY,
    ORIGINS,
    OWNERS,
    SCHEMA,
    Cache,
    DirectMap,
    Metadata,
    Snapshot,
    checksum,
    never_merged,
)

PROGRAM = "slabyard-import"
PAGE_SIZES = tuple(4096 << more for more in range(5))  # as main.c knows them
LARGE = 64 << 20  # bytes of perf.data from which it is streamed, and two perf scripts pay
_SCRIPT = ("--force", "-F", "cpu,time,event,trace", "--ns", "--show-lost-events")
_PIPE = 1 << 20  # bytes of a pipe's buffer
_F_SETPIPE_SZ = 1031

# As rows.c writes them.
_COLUMNS: tuple[tuple[str, type[np.generic]], ...] = (
    ("time", np.int64),
    ("address", np.uint64),
    ("object", np.uint32),
    ("size", np.uint32),
    ("allocated", np.uint32),
    ("call_site", np.uint32),
    ("cpu", np.uint16),
    ("cache", np.uint16),
    ("gfp_flags", np.uint16),
    ("kind", np.uint8),
    ("origin", np.uint8),
    ("order", np.uint8),
    ("owner", np.uint8),
    ("migratetype", np.int8),
    ("node", np.int8),
    ("accounted", np.bool_),
)


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
    snapshots: list[dict[str, Any]] = field(default_factory=list)  # as snapshots.take() gives them


# ---- What callers use ------------------------------------------------------------------------------------------------------


def import_trace(
    source: Path | str,
    output: Path,
    snapshots: Sequence[dict[str, Any]] = (),
    cpus: int | None = None,
    program_path: str | None = None,
    page_size: int | None = None,
) -> Metadata:
    """Imports a capture (a path, or `-` for text on standard input) into `output`.

    snapshots: {"name", "files", "slab_attributes"} each, see read_snapshot(). `end` is the end of the trace; any other name must
    stand in a tracing_mark_write of the capture. cpus, page_size (bytes): of the recorded machine, where the capture does not tell.
    Raises UserError: 2 for input that is no capture, 4 for a missing perf. Look at the result's `incomplete`.
    """
    about = About(cpus=cpus, page_size=page_size or page_size_of(snapshots), snapshots=list(snapshots))
    marks = ["--last-mark", "end"] if any(one["name"] == "end" for one in about.snapshots) else []
    for one in about.snapshots:
        marks += ["--mark", one["name"]]
    with whole_file(output) as part:
        return _import(str(source), part, about, marks, program_path)


def import_recording(recording: Any, command: Sequence[str], output: Path) -> Metadata:
    """Imports what record.record() made: its first snapshot opens the trace, its second one ends it. Writes to `output` directly."""
    machine = os.uname()
    about = About(
        kernel=machine.release,
        arch=machine.machine,
        command=list(command),
        recorded_at=datetime.datetime.fromtimestamp(recording.started, datetime.UTC).isoformat(timespec="seconds"),
        cpus=present_cpus(),
        page_size=os.sysconf("SC_PAGE_SIZE"),
        snapshots=list(recording.snapshots),
    )
    first, last = (one["name"] for one in recording.snapshots)
    return _import(str(recording.data), output, about, ["--first-mark", first, "--last-mark", last], None)


def import_text(source: Path, output: Path, about: About, marks: list[str]) -> Metadata:
    """Imports tracefs text of which more is known than it tells. `marks`: the import program's options for the snapshots in `about`."""
    with whole_file(output) as part:
        return _import(str(source), part, about, marks, None)


def read_snapshot(text: str) -> dict[str, Any]:
    """`NAME=DIR:SUFFIX` as a snapshot: the files DIR/slabinfo.SUFFIX and its siblings. Raises UserError when there is none."""
    name, equals, place = text.partition("=")
    folder, colon, suffix = place.rpartition(":")
    if not (name and equals and colon and folder and suffix):
        raise UserError(f"--snapshot {text}: not of the form NAME=DIR:SUFFIX, as in end=run1:after for run1/slabinfo.after")
    if not Path(folder).is_dir():
        raise UserError(f"--snapshot {text}: there is no folder {folder}")
    files = {}
    for file in kernel.PROC_FILES:
        path = Path(folder) / f"{file}.{suffix}"
        try:
            files[file] = path.read_text(errors="replace")
        except FileNotFoundError:
            continue
        except OSError as error:
            raise UserError(describe_os_error(error, path)) from error
    if not files:
        raise UserError(f"--snapshot {text}: {folder} has none of {', '.join(f'{file}.{suffix}' for file in kernel.PROC_FILES)}")
    return {"name": name, "files": files, "slab_attributes": None}


def page_size_of(snapshots: Sequence[dict[str, Any]]) -> int | None:
    """Bytes of a page: meminfo counts the machine's memory in kB, and zoneinfo in pages. None where they are not both there."""
    for one in snapshots:
        pages = sum(zone.managed for zone in kernel.parse_zoneinfo(one["files"].get("zoneinfo", "")))
        total = kernel.parse_meminfo(one["files"].get("meminfo", "")).get("MemTotal")
        if pages and total:
            return min(PAGE_SIZES, key=lambda size: abs(size * pages - total * 1024))
    return None


def present_cpus() -> int:
    """CPUs that this machine has present, as the kernel counts them for slab orders."""
    try:
        text = Path("/sys/devices/system/cpu/present").read_text().strip()
    except OSError:
        return os.cpu_count() or 1
    spans = [part.split("-") for part in text.split(",")]
    return sum(int(span[-1]) - int(span[0]) + 1 for span in spans)


# ---- Inputs ----------------------------------------------------------------------------------------------------------------


@dataclass
class _Inputs:
    """Where slabyard-import reads from: descriptors for it, and what to ask when all was read."""

    descriptors: list[int]
    options: list[str]
    check: Callable[[], None]  # raises UserError when a producer failed
    resolve: Callable[[Sequence[str]], list[str]] = list  # call sites with symbols for addresses


def _import(source: str, output: Path, about: About, marks: list[str], program_path: str | None) -> Metadata:
    executable = program_path or program(PROGRAM)
    environment = dict(os.environ)
    # /tmp is memory on many machines; the folder of the result has room for the result at least.
    environment.setdefault("TMPDIR", str(output.parent.absolute()))
    with contextlib.ExitStack() as stack:
        inputs = _open(source, about, stack)
        size = ["--page-size", str(about.page_size)] if about.page_size else []
        command = [executable, *inputs.options, *marks, *size]
        process = stack.enter_context(
            child(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=inputs.descriptors,
                env=environment,
            )
        )
        for descriptor in inputs.descriptors:
            os.close(descriptor)
        inputs.descriptors.clear()
        assert process.stdout is not None
        _enlarge_pipe(process.stdout.fileno())
        try:
            return _write(_Reader(process.stdout), output, about, inputs.resolve)
        except _CutOff:
            inputs.check()
            raise UserError(f"{source}: {_complaint(process)}") from None
        finally:
            if sys.exc_info()[0] is None:
                inputs.check()


def _open(source: str, about: About, stack: contextlib.ExitStack) -> _Inputs:
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
        return _fed(source, file, opener, stack) if opener else _one(os.dup(file.fileno()), stack)
    return _fed(source, _Ahead(head, file), opener or contextlib.nullcontext, stack)


class _Ahead(io.RawIOBase):
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


def _one(descriptor: int, stack: contextlib.ExitStack, check: Callable[[], None] = lambda: None) -> _Inputs:
    inputs = _Inputs([descriptor], ["--input", str(descriptor)], check)
    stack.callback(_close_all, inputs)
    return inputs


def _close_all(inputs: _Inputs) -> None:
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


def _fed(source: str, file: io.RawIOBase, opener: Callable[[Any], Any], stack: contextlib.ExitStack) -> _Inputs:
    """A pipe that a thread fills with the text that `opener` makes of a file."""
    reader, writer = os.pipe()
    _enlarge_pipe(writer)
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
    return _one(reader, stack, check)


def _enlarge_pipe(descriptor: int) -> None:
    with contextlib.suppress(OSError):
        fcntl.fcntl(descriptor, _F_SETPIPE_SZ, _PIPE)


# ---- perf ------------------------------------------------------------------------------------------------------------------


def _perf(path: Path, about: About, stack: contextlib.ExitStack) -> _Inputs:
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
    _read_header(perf, path, about)
    children: list[tuple[subprocess.Popen[bytes], IO[bytes]]] = []
    inputs = _Inputs([], [], lambda: _check_perf(path, children))
    stack.callback(_close_all, inputs)
    if data is None or not data.streams or path.stat().st_size < LARGE:
        _start_perf([perf, "script", "-i", str(path), *_SCRIPT], subprocess.DEVNULL, inputs, children, stack)
        return inputs
    inputs.resolve = functools.partial(perfdata.resolve, data=data)
    for part in data.parts(min(2, len(os.sched_getaffinity(0)))):
        process = _start_perf([perf, "script", "-i", "-", *_SCRIPT], subprocess.PIPE, inputs, children, stack)
        assert process.stdin is not None
        _feed(data, part, os.dup(process.stdin.fileno()))
        process.stdin.close()
    return inputs


def _start_perf(
    command: list[str], stdin: int, inputs: _Inputs, children: list[tuple[subprocess.Popen[bytes], IO[bytes]]], stack: contextlib.ExitStack
) -> subprocess.Popen[bytes]:
    """A perf script whose text is one of the inputs."""
    errors = stack.enter_context(tempfile.TemporaryFile())
    process = stack.enter_context(child(command, stdin=stdin, stdout=subprocess.PIPE, stderr=errors))
    assert process.stdout is not None
    children.append((process, errors))
    descriptor = os.dup(process.stdout.fileno())
    process.stdout.close()
    _enlarge_pipe(descriptor)
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

    _enlarge_pipe(descriptor)
    threading.Thread(target=feed, daemon=True).start()


def _read_header(perf: str, path: Path, about: About) -> None:
    """Fills in what perf.data's header says and is not known already."""
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


def _check_perf(path: Path, children: list[tuple[subprocess.Popen[bytes], IO[bytes]]]) -> None:
    for process, errors in children:
        process.wait()
        if process.returncode in (0, -signal.SIGPIPE):  # of that, who read it has more to tell
            continue
        errors.seek(0)
        lines = [line.strip() for line in errors.read(1 << 16).decode(errors="replace").splitlines() if line.strip()]
        raise UserError(f"{path}: perf script cannot read it: {lines[-1] if lines else f'it ended with status {process.returncode}'}")


# ---- Output ----------------------------------------------------------------------------------------------------------------


class _CutOff(Exception):
    """slabyard-import ended before it was done."""


def _complaint(process: subprocess.Popen[bytes]) -> str:
    assert process.stderr is not None
    lines = process.stderr.read().decode(errors="replace").splitlines()
    process.wait()
    if process.returncode < 0:
        return f"{PROGRAM} was ended by signal {-process.returncode}"
    line = next((line for line in lines if line.startswith(f"{PROGRAM}: ")), f"{PROGRAM} failed with status {process.returncode}")
    return line.removeprefix(f"{PROGRAM}: ")


class _Reader:
    """slabyard-import's output, see header.c and rows.c. Raises _CutOff where it ends early."""

    def __init__(self, pipe: IO[bytes]) -> None:
        self.pipe = pipe

    def exactly(self, count: int) -> bytearray:
        buffer = bytearray(count)
        view = memoryview(buffer)
        while view:
            got = self.pipe.readinto(view)  # type: ignore[attr-defined]
            if not got:
                raise _CutOff
            view = view[got:]
        return buffer

    def number(self) -> int:
        return int.from_bytes(self.exactly(4), sys.byteorder)

    def document(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self.exactly(self.number()))
        return document

    def blocks(self) -> Iterator[dict[str, np.ndarray]]:
        """Arrays of one length, by column; the number codes of texts are not translated yet."""
        while rows := self.number():
            yield {name: np.frombuffer(self.exactly(rows * np.dtype(kind).itemsize), kind) for name, kind in _COLUMNS}


def _write(reader: _Reader, output: Path, about: About, resolve: Callable[[Sequence[str]], list[str]]) -> Metadata:
    if reader.exactly(8) != b"SYIMPORT":
        raise _CutOff
    header = reader.document()
    _check_marks(header["marks"], about.snapshots)
    texts = {
        "kind": np.array(KINDS, object),
        "origin": np.array(ORIGINS, object),
        "owner": np.array(OWNERS, object),
        "gfp_flags": np.array(header["gfp"], object),
        "call_site": np.array([*resolve(header["call_sites"]), ""], object),
    }
    try:
        with output.open("wb") as file, pq.ParquetWriter(file, SCHEMA, **_ENCODING) as writer:
            for block in reader.blocks():
                block["call_site"] = np.minimum(block["call_site"], np.uint32(len(texts["call_site"]) - 1))
                writer.write_batch(_batch(block, texts))
            metadata = _metadata(header, reader.document(), about)
            text = metadata.to_json()
            check = checksum(text.encode()).decode()
            writer.add_key_value_metadata({METADATA_KEY.decode(): text, CHECKSUM_KEY.decode(): check})
    except OSError as error:
        raise UserError(describe_os_error(error, output)) from error
    return metadata


_DICTIONARIES = ["cpu", "kind", "origin", "size", "allocated", "cache", "order", "migratetype", "owner", "gfp_flags", "node", "call_site"]
_ENCODING: dict[str, Any] = {
    "compression": "zstd",
    "compression_level": 3,
    "use_dictionary": _DICTIONARIES,
    "column_encoding": {"time": "DELTA_BINARY_PACKED"},
    "write_statistics": ["time", "cpu"],
    "write_page_checksum": True,
}


def _batch(block: dict[str, np.ndarray], texts: dict[str, np.ndarray]) -> pa.RecordBatch:
    columns = [_text(block[name], texts[name]) if name in texts else pa.array(block[name]) for name in SCHEMA.names]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def _text(codes: np.ndarray, texts: np.ndarray) -> pa.DictionaryArray:
    """A text column, with a dictionary of what this block uses: a row group is written with its whole dictionary."""
    used = np.flatnonzero(np.bincount(codes, minlength=len(texts)))
    places = np.zeros(len(texts), np.int32)
    places[used] = np.arange(len(used), dtype=np.int32)
    return pa.DictionaryArray.from_arrays(pa.array(places[codes]), pa.array(texts[used].tolist(), pa.string()))


# ---- Metadata --------------------------------------------------------------------------------------------------------------


def _check_marks(marks: Sequence[str], snapshots: Sequence[dict[str, Any]]) -> None:
    for one in snapshots:
        if one["name"] not in marks:
            more = f" and {len(marks) - 8} others" if len(marks) > 8 else ""
            known = f"its marks are {', '.join(marks[:8])}{more}" if marks else "it has no marks"
            raise UserError(f"the capture has no mark {one['name']} (a tracing_mark_write of that name); {known}; `end` is its end")


def _metadata(header: dict[str, Any], trailer: dict[str, Any], about: About) -> Metadata:
    unknown_events: dict[str, int] = {}
    for name, count in header["unknown_events"]:
        unknown_events[name] = unknown_events.get(name, 0) + count
    taken = _snapshots(header["marks"], trailer["snapshots"], about.snapshots)
    files = [one.files for one in taken]
    zones = _zones(files, header)
    metadata = Metadata(
        source=("tracefs" if header["tracefs"] else "perf script") if about.source == "text" else about.source,
        kernel=about.kernel,
        arch=about.arch,
        command=about.command,
        recorded_at=about.recorded_at,
        cpus=max(header["cpus"], about.cpus or 0),
        nodes=max([header["nodes"], *(zone.node + 1 for zone in zones)]),
        page_size=header["page_size"],
        pageblock_order=header.get("pageblock_order", _pageblock_order(files)),
        span_seconds=header["span_ns"] / 1e9,
        events={**{kind: 0 for kind in KINDS if kind in about.kinds}, **header["events"]},
        unknown_events=unknown_events,
        truncated=header["truncated"],
        lost=max(header["lost"], about.lost),
        shared_pages=header["shared_pages"],
        direct_map=DirectMap(header["base"], header["hashed"], header["explained"], header["older"], header["unexplained"]),
        caches=_caches(header, trailer["cache_counts"], taken),
        zones=zones,
        snapshots=taken,
    )
    for name in ("null_frees", "failed_allocations", "unparsed_lines", "reordered", "late"):
        setattr(metadata, name, header[name])
    for name in ("rows", "unknown_frees", "implied_frees", "implied_allocations", "implied_page_frees", "implied_page_allocations"):
        setattr(metadata, name, trailer[name])
    metadata.pages_of_unknown_owner = trailer["pages_of_unknown_owner"]
    return metadata


def _snapshots(marks: Sequence[str], rows: Sequence[Sequence[int]], known: Sequence[dict[str, Any]]) -> list[Snapshot]:
    """One for each snapshot row, in their order. Of several marks of one name the first has the kernel's figures."""
    left = {one["name"]: one for one in known}
    taken = []
    for time, mark in rows:
        one = left.pop(marks[mark], {})
        taken.append(Snapshot(marks[mark], time, one.get("files", {}), one.get("slab_attributes")))
    return taken


def _pageblock_order(files: Sequence[dict[str, str]]) -> int:
    for texts in files:
        if match := re.search(r"Page block order:\s*(\d+)", texts.get("pagetypeinfo", "")):
            return int(match[1])
    return 9


def _zones(files: Sequence[dict[str, str]], header: dict[str, Any]) -> list[kernel.Zone]:
    """The recorded machine's zones from zoneinfo, else its one zone from buddyinfo, meminfo and the page frames seen."""
    for texts in files:
        if zones := kernel.parse_zoneinfo(texts.get("zoneinfo", "")):
            return zones
    for texts in files:
        rows = list(kernel.parse_buddyinfo(texts.get("buddyinfo", "")))
        total = kernel.parse_meminfo(texts.get("meminfo", "")).get("MemTotal")
        if len(rows) == 1 and total and "least_pfn" in header:
            node, name = rows[0]
            start = header["least_pfn"] // 1024 * 1024
            managed = total * 1024 // header["page_size"]
            return [kernel.Zone(node, name, start, max(managed, header["most_pfn"] + 1 - start), managed)]
    return []


def _caches(header: dict[str, Any], counts: Sequence[Sequence[int]], taken: Sequence[Snapshot]) -> list[Cache]:
    attributes: dict[str, dict[str, str]] = {}
    for one in taken:
        attributes.update(one.slab_attributes or {})
    call_sites: list[list[str]] = [[] for _ in header["caches"]]
    for cache, site in header["allocators"]:
        call_sites[cache].append(header["call_sites"][site])
    names = _names(header["caches"], call_sites, taken)
    caches = []
    invented: dict[int, int] = {}
    for number, one in enumerate(header["caches"]):
        name = one["name"] or names.get(number)
        if not name:
            invented[one["size"]] = invented.get(one["size"], 0) + 1
            name = f"anon-{one['size']}-{invented[one['size']]}"
        cache = Cache(name, one["size"], slab_size=one["allocated"] or None, allocs=counts[number][0], frees=counts[number][1])
        if name in attributes:
            describe_cache(cache, attributes[name])
        else:
            shows = header["shared_pages"] or (one["alignment"] and one["size"] % one["alignment"])
            linux_caches.fill_in(cache, call_sites[number], one["alignment"] if shows else 0)
        caches.append(cache)
    return caches


def _names(found: Sequence[dict[str, Any]], call_sites: Sequence[list[str]], taken: Sequence[Snapshot]) -> dict[int, str]:
    """Names of slabinfo for caches whose events print none.

    A cache gets the name that its functions are known for, where slabinfo has a cache of that name and stride; then,
    where exactly one nameless cache and one of slabinfo's with objects are left of a stride, they are the same.
    """
    taken_names = {one["name"] for one in found}
    strides: dict[int, set[str]] = {}
    places: dict[str, int] = {}
    for snapshot in taken:
        for place, line in enumerate(kernel.parse_slabinfo(snapshot.files.get("slabinfo", ""))):
            places[line.name] = place
            if line.objects and not kernel.KMALLOC.match(line.name) and line.name not in taken_names:
                strides.setdefault(line.object_size, set()).add(line.name)
    names: dict[int, str] = {}
    nameless: dict[int, list[int]] = {}
    for number, cache in enumerate(found):
        if cache["name"]:
            continue
        left = strides.get(cache["allocated"], set())
        known = {name for site in call_sites[number] for name in linux_caches.names_by_function(site, cache["size"])} & left
        if known:
            # Merged caches go by the name of the oldest, which slabinfo has last.
            names[number] = max(known, key=lambda name: places[name])
            left.remove(names[number])
        else:
            nameless.setdefault(cache["allocated"], []).append(number)
    for stride, numbers in nameless.items():
        if len(numbers) == 1 and len(strides.get(stride, ())) == 1:
            names[numbers[0]] = next(iter(strides[stride]))
    return names


def describe_cache(cache: Cache, attributes: dict[str, str]) -> None:
    """Fills in what /sys/kernel/slab says of a cache. Leaves out what a kernel does not have there."""

    def number(name: str) -> int:
        text = attributes.get(name, "").split()
        return int(text[0]) if text and text[0].isdigit() else 0

    cache.known = True
    cache.object_size = number("object_size") or cache.object_size
    cache.align = number("align")
    cache.constructor = bool(attributes.get("ctor", ""))
    cache.typesafe_by_rcu = number("destroy_by_rcu") == 1
    cache.hwcache_align = number("hwcache_align") == 1
    cache.reclaimable = number("reclaim_account") == 1
    cache.dma = number("cache_dma") == 1
    cache.no_merge = never_merged(cache.name, attributes)
    cache.slab_size = number("slab_size") or cache.slab_size
