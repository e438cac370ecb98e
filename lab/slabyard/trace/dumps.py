"""What people have when slabs grow: /proc/slabinfo, slabtop, /proc/allocinfo, the slab lines of an out-of-memory report. Each alone.

A file is known by its text, not by its name. Such files come out of mails, logs and bug trackers, so that a line may begin with blanks, a
quote sign or a log's time stamp, and end with a carriage return; a file may be compressed. What is in no known form is passed over.
A file may hold several dumps, one below the other, as a loop around `cat` writes them: each begins with its heading.

    slabinfo    objects and slabs of each cache. The size of a page is not in it. It is the least with which every slab has room for its
                objects: a kernel with pages of 64 KiB has 1,024 objects of 64 bytes in a slab of one page
    slabtop     the same, with sizes rounded to hundredths of a KiB. It may be cut to the largest caches; its heading tells of how many
    oom         `Unreclaimable slab info:`, used and total KiB of each cache of which more than half is used
    allocinfo   bytes and calls of each place of the kernel's source that allocates (CONFIG_MEM_ALLOC_PROFILING); also what
                `sort -g /proc/allocinfo | tail | numfmt --to=iec` leaves of it
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ..base.errors import UserError
from ..base.files import describe_os_error
from .snapshots import parse_allocinfo, parse_slabinfo

MOST_BYTES = 64 << 20  # of a file, uncompressed: an allocinfo has half a MiB
LEAST_PAGE, LARGEST_PAGE = 4096, 65536
TITLES = {"slabinfo": "slabinfo", "slabtop": "slabtop", "oom": "the slab lines of an out-of-memory report", "allocinfo": "allocinfo"}


@dataclass
class Holder:
    """A cache, or a place that allocates, with what it holds. None: the dump does not tell."""

    name: str
    bytes: int
    count: int | None = None  # objects that are used, or calls
    size: int | None = None  # bytes of an object
    room: int | None = None  # objects that there is room for in its slabs
    used: int | None = None  # bytes in objects that are used

    @property
    def unused(self) -> int | None:
        """Bytes of its slabs that no object uses."""
        return None if self.used is None else max(0, self.bytes - self.used)


@dataclass
class Dump:
    """One dump: who holds how much."""

    kind: str  # of TITLES
    holders: list[Holder]
    page_size: int = LEAST_PAGE
    listed_of: int | None = None  # caches that there are, where fewer are listed
    notes: list[str] = field(default_factory=list)
    incomplete: str | None = None  # why the file does not have all of it

    @property
    def what(self) -> str:
        """What its holders are."""
        return "call site" if self.kind == "allocinfo" else "cache"

    @property
    def bytes(self) -> int:
        return sum(one.bytes for one in self.holders)


def read(path: Path) -> list[Dump]:
    """The dumps of a file, in its order; empty: it is none of these. UserError for a file that cannot be read."""
    try:
        with path.open("rb") as file:
            content = file.read(4)
            if content == b"PAR1":
                return []  # a trace
            content += file.read(MOST_BYTES + 1 - len(content))
    except OSError as error:
        raise UserError(describe_os_error(error, path)) from error
    try:
        content = _uncompressed(content)
    except (OSError, EOFError, lzma.LZMAError) as error:
        raise UserError(f"{path}: damaged or cut off: {str(error).lower()}") from None
    if len(content) > MOST_BYTES or b"\0" in content[:4096]:
        return []
    lines = [_plain(line) for line in content.decode(errors="replace").splitlines()]
    found = [dump for kind, part in _parts(lines) if (dump := _PARSERS[kind](part)).holders]
    if found and not content.endswith(b"\n") and _is_cut(found[-1].kind, lines[-1]):
        found[-1].incomplete = "its last line is cut off"
    return found


def _uncompressed(content: bytes) -> bytes:
    """No more than one byte beyond the most that a dump may have, whatever a compressed file claims."""
    for magic, opened in ((b"\x1f\x8b", gzip.open), (b"\xfd7zXZ", lzma.open), (b"BZh", bz2.open)):
        if content.startswith(magic):
            with opened(io.BytesIO(content)) as file:
                return file.read(MOST_BYTES + 1)
    return content


_BEFORE = re.compile(r"^(?:[\s>|\ufeff]+|(?:\w{3} +\d+ [\d:.]+|\d{4}-\S+) \S+ kernel: *|<\d+>|\[ *\d+\.\d+\](?: *\[.*?\])?)*")


def _plain(line: str) -> str:
    """A line without what mails and logs put before it."""
    return _BEFORE.sub("", line.rstrip())


# The heading of each form, and what a line of it is like where a heading is missing.
_HEADINGS = (
    ("slabinfo", re.compile(r"slabinfo - version: ?2")),
    ("slabtop", re.compile(r"Active / Total Objects")),
    ("oom", re.compile(r"Unreclaimable slab info:")),
    ("allocinfo", re.compile(r"allocinfo - version")),
)
_ROWS = (
    ("slabinfo", re.compile(r"\S.* \d+ +\d+ +\d+ +\d+ +\d+ : tunables .*: slabdata +\d+ +\d+ +\d+")),
    ("slabtop", re.compile(r"\d+ +\d+ +\d+% +[\d.]+K +\d+ +\d+ +\d+K \S")),
    ("allocinfo", re.compile(r"[\d.]+[KMGT]? +\d+ +\S+:\d+ .*func:\S")),
)
_OOM_ROW = re.compile(r"(\S.*?) +(\d+)KB +(\d+)KB$")
_TABLE = re.compile(r"# ?name +<active_objs>|OBJS +ACTIVE +USE")


def _is_cut(kind: str, line: str) -> bool:
    """Whether a line begins as a row of that form, and is none."""
    begins = r"[\d.]" if kind in ("slabtop", "allocinfo") else r"\S"
    return bool(re.match(begins, line)) and not {**dict(_ROWS), "oom": _OOM_ROW}[kind].match(line)


def _parts(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Each dump's lines with its kind."""
    kind, part = "", list[str]()
    headed = False  # whether the part has begun with a heading that is still without rows
    for line in lines:
        begins = next((name for name, heading in _HEADINGS if heading.match(line)), None)
        if begins is None and _TABLE.match(line) and not (headed and kind in ("slabinfo", "slabtop")):
            begins = "slabinfo" if "name" in line else "slabtop"
        if begins is not None:
            if part:
                yield kind, part
            kind, part, headed = begins, [line], True
            continue
        row = next((name for name, form in _ROWS if form.match(line)), None)
        if row is not None and row != kind:
            if part:
                yield kind, part
            kind, part = row, []
        headed = headed and row is None
        if kind:
            part.append(line)
    if part:
        yield kind, part


def _slabinfo(lines: list[str]) -> Dump:
    found = parse_slabinfo("\n".join(lines))
    page = LEAST_PAGE
    while page < LARGEST_PAGE and any(one.object_size * one.objects_per_slab > one.pages_per_slab * page for one in found):
        page *= 2
    holders = [
        Holder(
            one.name, one.slabs * one.pages_per_slab * page, one.active_objects, one.object_size, one.objects,
            one.active_objects * one.object_size,
        )
        for one in found
    ]  # fmt: skip
    return Dump("slabinfo", holders, page)


def _slabtop(lines: list[str]) -> Dump:
    holders, listed_of = [], None
    for line in lines:
        if told := re.match(r"Active / Total Caches .*: *\d+ / (\d+)", line):
            listed_of = int(told[1])
        match = re.match(r"(\d+) +(\d+) +\d+% +(\d+(?:\.\d+)?)K +\d+ +\d+ +(\d+)K (\S.*)$", line)
        if match:
            room, active, size = int(match[1]), int(match[2]), round(float(match[3]) * 1024)
            bytes_ = int(match[4]) << 10
            holders.append(Holder(match[5], bytes_, active, size, room, min(bytes_, active * size)))
    dump = Dump("slabtop", holders)
    if listed_of is not None and listed_of > len(holders):
        dump.listed_of = listed_of
    return dump


def _oom(lines: list[str]) -> Dump:
    holders = []
    for line in lines[1:]:
        match = _OOM_ROW.match(line)
        if match:
            holders.append(Holder(match[1], int(match[3]) << 10, used=int(match[2]) << 10))
        elif not line.startswith("Name "):
            break
    return Dump("oom", holders, notes=["Reclaimable caches, and those of which half or less is used, are not in such a report."])


def _allocinfo(lines: list[str]) -> Dump:
    found: dict[str, Holder] = {}
    for line in parse_allocinfo("\n".join(lines)):
        name = f"{line.place} {line.function}" + (f" [{line.module}]" if line.module else "")
        one = found.setdefault(name, Holder(name, 0, 0))
        one.bytes, one.count = one.bytes + line.bytes, (one.count or 0) + line.calls
    return Dump("allocinfo", list(found.values()))


_PARSERS: dict[str, Callable[[list[str]], Dump]] = {"slabinfo": _slabinfo, "slabtop": _slabtop, "oom": _oom, "allocinfo": _allocinfo}
