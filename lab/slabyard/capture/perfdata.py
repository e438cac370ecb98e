"""perf.data as a stream, and the symbols that perf leaves out then.

`perf script -i FILE` maps the whole file, so that a 2 GB capture shows as 2 GB of resident memory. Read from a pipe, perf keeps
only what it sorts, some 50 MB; but a pipe has a format of its own (tools/perf/Documentation/perf.data-file-format.txt, "pipe-mode
data"): a short header, then what a file keeps in its header and in the sections behind its data, as records, and then the
data. So a file is turned into a stream by writing those records and copying the data section, which the kernel does (sendfile).
Several perfs share the work: each gets a part of the data. Parts overlap a little in time, which the import merges.

    file:   magic, size, attr_size, sections (attrs, data, event_types), feature bits | ids, attrs | data | feature table | features
    stream: magic, 16 | HEADER_ATTR with its ids, for each event | HEADER_TRACING_DATA | data

In a stream perf prints call sites as addresses, because it looks for the kernel's symbols before it has seen the formats. They
are looked up here: in the running kernel's kallsyms when it is the recorded one (by build id; perf leaves that out of some
files, and then by its release and by where its text lies), else in perf's cache of kernels (~/.debug). A kernel that was
booted again since lies elsewhere (KASLR); the difference is known from where the recorded one had `_text`.
"""

from __future__ import annotations

import bisect
import contextlib
import itertools
import os
import re
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path

from ..base.errors import UserError
from ..base.files import read_text_if_there

_HEADER = struct.Struct("<8s8Q32s")
_SECTION = struct.Struct("<QQ")
_TRACING_DATA, _BUILD_ID, _RELEASE, _COMPRESSED = 1, 2, 4, 27  # numbers of features
_RECORD_MMAP, _RECORD_LOST_SAMPLES, _RECORD_ATTR, _RECORD_TRACING_DATA = 1, 13, 64, 66
_DROPPED = 1 << 15  # flag of a LOST_SAMPLES that counts what a filter has left out
_FIRST_RECORDS = 1 << 16  # bytes in which the kernel's own mapping is recorded
_FINISHED_ROUND = struct.pack("<IHH", 68, 0, 8)
_LAST_RECORDS = 1 << 20  # bytes in which perf tells what was lost of each event
_WINDOW = 4 << 20  # bytes to look at at once
_FURTHEST = 512 << 20  # bytes in which a round ends: each CPU's buffer once
_RECORDS_TO_SEE = 1000
STREAM_HEADER = 16  # bytes of a stream's header, which tells its size where a file tells its larger one
_KERNEL = "[kernel.kallsyms]"


@dataclass
class PerfData:
    """The parts of a perf.data file of this machine's byte order."""

    path: Path
    attributes: list[tuple[bytes, bytes]]  # perf_event_attr, ids
    data: tuple[int, int]  # offset, bytes
    features: dict[int, tuple[int, int]]

    @property
    def streams(self) -> bool:
        """Whether it can be turned into a stream (compressed records cannot)."""
        return _COMPRESSED not in self.features

    def _read(self, offset: int, size: int) -> bytes:
        with self.path.open("rb") as file:
            return os.pread(file.fileno(), size, offset)

    def _feature(self, number: int) -> bytes:
        return self._read(*self.features[number]) if number in self.features else b""

    @property
    def tracing_data(self) -> bytes:
        """The kernel's description of its events."""
        return self._feature(_TRACING_DATA)

    def parts(self, count: int) -> list[tuple[int, int]]:
        """The data section in about equal parts, as offsets from and to; fewer where no boundary of records is found."""
        start, end = self.data[0], sum(self.data)
        bounds = [start]
        for number in range(1, count):
            boundary = self._boundary(start + (end - start) * number // count, end)
            if boundary is not None and boundary > bounds[-1]:
                bounds.append(boundary)
        return list(zip(bounds, [*bounds[1:], end], strict=True))

    def _boundary(self, middle: int, end: int) -> int | None:
        """Where a record begins at or after `middle`: a FINISHED_ROUND that is followed by nothing but records."""
        for start in range(middle, min(end, middle + _FURTHEST), _WINDOW):
            # Twice as much as is searched, so that records follow what is found.
            window = self._read(start, min(end - start, 2 * _WINDOW))
            at = next(_rounds(window, start - self.data[0]), _WINDOW)
            if at < _WINDOW:
                return start + at
        return None

    def stream_to(self, descriptor: int, part: tuple[int, int]) -> None:
        """Writes a part of the data (see parts) as a stream. Raises BrokenPipeError when its reader ends."""
        formats = self.tracing_data
        formats += bytes(-len(formats) % 8)
        head = struct.pack("<8sQ", b"PERFILE2", STREAM_HEADER)
        for attribute, ids in self.attributes:
            head += struct.pack("<IHH", _RECORD_ATTR, 0, 8 + len(attribute) + len(ids)) + attribute + ids
        head += struct.pack("<IHHI", _RECORD_TRACING_DATA, 0, 12, len(formats)) + formats
        view = memoryview(head)
        while view:
            view = view[os.write(descriptor, view) :]
        offset, end = part
        with self.path.open("rb") as file:
            while offset < end:
                sent = os.sendfile(descriptor, file.fileno(), offset, min(end - offset, 1 << 24))
                if not sent:
                    return
                offset += sent

    def lost(self) -> int:
        """Events that the kernel says it has lost; 0 where perf has not asked.

        perf asks at the end (since 6.1, of a kernel since 6.0), so losses after the last recorded event count too. perf script does not
        print this record.
        """
        start = max(self.data[0], sum(self.data) - _LAST_RECORDS)
        data = self._read(start, sum(self.data) - start)
        first = 0 if start == self.data[0] else next(_rounds(data, start - self.data[0]), len(data))
        counts = (at + 8 for at, kind, flags, _ in _records(data, first) if kind == _RECORD_LOST_SAMPLES and not flags & _DROPPED)
        return sum(int.from_bytes(data[at : at + 8], "little") for at in counts)

    def kernel_text(self) -> tuple[str, int] | None:
        """A symbol of the recorded kernel's text and its address then; None where it is not recorded."""
        data = self._read(self.data[0], min(self.data[1], _FIRST_RECORDS))
        for at, kind, _, size in _records(data, 0):
            name = data[at + 40 : at + size].split(b"\0")[0].decode(errors="replace")
            if kind == _RECORD_MMAP and name.startswith(_KERNEL):
                # pgoff: the address of the symbol whose name follows the brackets.
                return name.removeprefix(_KERNEL), struct.unpack_from("<Q", data, at + 32)[0]
        return None

    def build_id(self) -> str:
        """The recorded kernel's, in hexadecimal; empty where it is not recorded."""
        table = self._feature(_BUILD_ID)
        for at, _, _, size in _records(table, 0):
            if table[at + 36 : at + size].split(b"\0")[0].decode(errors="replace") == _KERNEL:
                return table[at + 12 : at + 32].hex()
        return ""

    def release(self) -> str:
        """The recorded kernel's, as uname -r prints it; empty where it is not recorded."""
        return self._feature(_RELEASE)[4:].split(b"\0")[0].decode(errors="replace")


def read(path: Path) -> PerfData | None:
    """The parts of a perf.data file; None when it is a stream already or has the other byte order. UserError when it is cut off."""
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        head = file.read(_HEADER.size)
        if head.startswith(b"2ELIFREP") or head[8:16] == STREAM_HEADER.to_bytes(8, "little"):
            return None
        cut = UserError(f"{path}: cut off; perf.data is complete only when perf record has ended by itself or by Ctrl-C")
        if len(head) < _HEADER.size:
            raise cut
        _, _, attr_size, attrs, attrs_size, data, data_size, _, _, bits = _HEADER.unpack(head)
        if not data_size or data + data_size >= size or not 80 <= attr_size < size or attrs + attrs_size > size:
            raise cut
        attributes = []
        for at in range(attrs, attrs + attrs_size, attr_size):
            entry = os.pread(file.fileno(), attr_size, at)
            if len(entry) < attr_size:
                raise cut
            length = struct.unpack_from("<I", entry, 4)[0]
            ids, ids_size = _SECTION.unpack(entry[-16:])
            if ids + ids_size > size:
                raise cut
            attributes.append((entry[:length], os.pread(file.fileno(), ids_size, ids)))
        numbers = [number for number in range(256) if bits[number // 8] >> number % 8 & 1]
        table = os.pread(file.fileno(), 16 * len(numbers), data + data_size)
        if len(table) < 16 * len(numbers):
            raise cut
        features = {number: _SECTION.unpack_from(table, 16 * place) for place, number in enumerate(numbers)}
    if any(offset + length > size for offset, length in features.values()):
        raise cut
    return PerfData(path, attributes, (data, data_size), features)


def _records(data: bytes, at: int) -> Iterator[tuple[int, int, int, int]]:
    """Place, kind, flags and bytes of each record from `at` on: of its header, perf_event_header."""
    while at + 8 <= len(data):
        kind, flags, size = struct.unpack_from("<IHH", data, at)
        yield at, kind, flags, size
        at += max(size, 8)


def _rounds(data: bytes, offset: int) -> Iterator[int]:
    """Places of a FINISHED_ROUND with nothing but records behind it, as far as it pays to look. `offset`: of `data` in the data section."""
    for match in re.finditer(re.escape(_FINISHED_ROUND), data):
        following = itertools.islice(_records(data, match.start()), _RECORDS_TO_SEE)
        if (offset + match.start()) % 8 == 0 and all(
            size >= 8 and size % 8 == 0 and (0 < kind < 32 or 64 <= kind < 96) for _, kind, _, size in following
        ):
            yield match.start()


# ---- Symbols ---------------------------------------------------------------------------------------------------------------


def resolve(call_sites: Sequence[str], data: PerfData) -> list[str]:
    """The call sites with addresses replaced by `function+0x…`, and with ` [module]` behind those of modules, where the recorded
    kernel's symbols are at hand."""
    text = _kallsyms(data)
    if text is None:
        return list(call_sites)
    found = re.findall(r"^([0-9a-f]+) [tTwW] (\S+)(?:\t(\[\S+\]))?$", text, re.MULTILINE)
    table = _symbols(found, data) if any(site.startswith("0x") for site in call_sites) else None
    named = [_symbol(site, table) if site.startswith("0x") else site for site in call_sites]
    modules = _modules(found)
    return [f"{site} {modules[name]}" if modules.get(name := site.partition("+")[0]) and site[-1] != "]" else site for site in named]


def _modules(found: Sequence[tuple[str, str, str]]) -> dict[str, str]:
    """By function the module that has it, `[ext4]`; an empty text for functions of the kernel, and where several have one."""
    modules: dict[str, str] = {}
    for _, name, module in found:
        modules[name] = module if modules.get(name, module) == module else ""
    return modules


@dataclass
class _Symbols:
    addresses: list[str]  # as kallsyms prints them, ascending; all have one width
    names: list[str]
    shift: int  # what the recorded kernel's addresses are above these
    end: int | None  # addresses from here on are not known


def _kallsyms(data: PerfData) -> str | None:
    """The recorded kernel's symbols; None where they are not at hand."""
    build_id = data.build_id()
    text = None
    if not build_id and data.release() == os.uname().release:
        text = read_text_if_there(Path("/proc/kallsyms")) or ""
        name, address = data.kernel_text() or ("", 0)
        if not re.search(rf"^0*{address:x} [tTwW] {re.escape(name)}$", text, re.MULTILINE):
            return None
    elif build_id and build_id == running_build_id():
        text = read_text_if_there(Path("/proc/kallsyms"))
    elif build_id:
        with contextlib.suppress(RuntimeError):  # a user without a home folder
            text = read_text_if_there(Path.home() / ".debug" / _KERNEL / build_id / "kallsyms")
    return text or None


def _symbols(found: Sequence[tuple[str, str, str]], data: PerfData) -> _Symbols | None:
    ordered = sorted(found, key=itemgetter(0))  # stable: of several names at one address the first one stands
    anchor = data.kernel_text()
    known = {name: address for address, name, _ in found if anchor and name in (anchor[0], "_etext")}
    if not ordered or not int(ordered[-1][0], 16) or anchor is None or anchor[0] not in known:
        return None  # kptr_restrict hides the addresses
    shift = anchor[1] - int(known[anchor[0]], 16)
    # Modules were loaded elsewhere before the kernel was booted again.
    end = None if shift == 0 else int(known.get("_etext", "0"), 16)
    return _Symbols([address for address, _, _ in ordered], [name for _, name, _ in ordered], shift, end)


def _symbol(site: str, table: _Symbols | None) -> str:
    if table is None:
        return site
    try:
        address = int(site, 16) - table.shift
    except ValueError:
        return site
    place = bisect.bisect_right(table.addresses, f"{address:0{len(table.addresses[0])}x}") - 1
    if address < 0 or place < 0 or (table.end is not None and address >= table.end):
        return site
    first = bisect.bisect_left(table.addresses, table.addresses[place])
    return f"{table.names[first]}+0x{address - int(table.addresses[place], 16):x}"


def running_build_id() -> str:
    """The running kernel's, from its ELF notes; empty where it has none."""
    notes = b""
    with contextlib.suppress(OSError):
        notes = Path("/sys/kernel/notes").read_bytes()
    at = 0
    while at + 12 <= len(notes):
        name_size, size, kind = struct.unpack_from("<III", notes, at)
        name = notes[at + 12 : at + 12 + name_size]
        start = at + 12 + (name_size + 3) // 4 * 4
        if kind == 3 and name.rstrip(b"\0") == b"GNU":
            return notes[start : start + size].hex()
        at = start + (size + 3) // 4 * 4
    return ""
