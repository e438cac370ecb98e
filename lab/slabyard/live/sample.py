"""Sampling in a running process: sets its `slabyard_sample_rate` (malloc/sample.c), which the malloc library reads now and then.

The variable's address is the symbol's value in the ELF file that has it, the library or a program with the archive in it, moved by
what the kernel moved the file by: /proc/PID/maps. It is written by way of /proc/PID/mem, which the kernel allows to whom it would
allow to debug the process.
"""

from __future__ import annotations

import mmap
import struct
from pathlib import Path
from typing import NamedTuple

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from ..base.errors import MISSING, UserError

SYMBOL = "slabyard_sample_rate"
WORD = struct.Struct("I")  # the variable, an unsigned int of the machine


class _Mapped(NamedTuple):
    """A file of a process, and where its first byte is mapped."""

    path: str
    start: int


def set_rate(pid: int, rate: int) -> int:
    """Has a process sample one allocation in `rate` from now on; 0: none. Returns the rate before. UserError where it can't."""
    process = Path("/proc") / str(pid)
    address = _find(process, pid)
    try:
        with (process / "mem").open("r+b", buffering=0) as memory:
            memory.seek(address)
            (before,) = WORD.unpack(memory.read(WORD.size))
            memory.seek(address)
            memory.write(WORD.pack(rate))
    except PermissionError as error:
        raise _forbidden(pid) from error
    except (OSError, struct.error) as error:
        raise UserError(f"process {pid} has ended") from error
    return int(before)


def _forbidden(pid: int) -> UserError:
    return UserError(f"process {pid} is another user's or may not be debugged; run this as root", MISSING)


def _find(process: Path, pid: int) -> int:
    """The address of the variable in the process."""
    try:
        maps = (process / "maps").read_text()
    except FileNotFoundError as error:
        raise UserError(f"there is no process {pid}") from error
    except PermissionError as error:
        raise _forbidden(pid) from error
    except ProcessLookupError as error:
        raise UserError(f"process {pid} has ended") from error
    for mapped in _files(maps):
        value = _value(process / "root" / mapped.path.lstrip("/"))
        if value is not None:
            return mapped.start + value
    raise UserError(f"process {pid} does not run on slabyard's malloc, or on one without sampling; start it by slabyard run")


def _files(maps: str) -> list[_Mapped]:
    """The files that a process maps, in order of address."""
    files: dict[str, _Mapped] = {}
    for line in maps.splitlines():
        fields = line.split(maxsplit=5)
        if len(fields) == 6 and fields[5].startswith("/") and int(fields[2], 16) == 0:
            files.setdefault(fields[5], _Mapped(fields[5], int(fields[0].split("-")[0], 16)))
    return list(files.values())


def _value(path: Path) -> int | None:
    """Where the variable is from the first byte of a mapped file on; None: the file has none, or is no ELF file."""
    try:
        with path.open("rb") as file:
            if file.read(4) != b"\x7fELF":
                return None
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
                if text.find(SYMBOL.encode()) < 0:
                    return None
            return _symbol(ELFFile(file))
    except (OSError, ValueError, ELFError):
        return None


def _symbol(elf: ELFFile) -> int | None:
    first = min((segment["p_vaddr"] for segment in elf.iter_segments("PT_LOAD")), default=0)
    for name in (".dynsym", ".symtab"):
        table = elf.get_section_by_name(name)
        for symbol in (table.get_symbol_by_name(SYMBOL) if isinstance(table, SymbolTableSection) else None) or ():
            if symbol["st_shndx"] != "SHN_UNDEF":
                return int(symbol["st_value"]) - int(first)
    return None
