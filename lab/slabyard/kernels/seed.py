"""make's folder for a kernel, begun as a copy of that of another one, so that make compiles what differs alone.

    outlined                          from the plain kernel: the allocator's files take other flags
    another kind, same configuration  slob and slabyard of 6.1: files of ours, and the files that are changed for them
    another allocator                 what depends on the allocator

Kbuild knows which options an object depends on, by the names of options in all files that it is made from. <linux/slab.h> names the
allocators' and nearly all files include it, so by Kbuild's rule all is compiled again. But of what stands there, the allocators
differ in the body of kmalloc alone. An object in which that body was compiled calls one of CALLS; in one that does not, the
machine code is the same under all of them (numbers that the compiler counts up within a file may differ, in names of symbols that
nothing links to). Sources that take more from the header (_OWN), or include the allocators' own, mm/slab.h, are compiled again too; so
are users of the stack depot, which SLUB's debugging selects, and which <linux/page_ext.h> names to nearly all.

Under SLUB and SLAB that body differs for sizes below SLAB's smallest 32 bytes alone: for any other the two take a cache from the same
place of the same table (kmalloc_caches). On arm64 (ALIKE) not even those differ, as the smallest objects of both have the 128 bytes of
that processor's DMA. Of 60 callers on x86-64 that were compiled again for SLAB to check this, 59 came out the same; in one the compiler
had put functions in another order. SLOB's body, and that of a kernel on slabyard, is SLUB's (edits.SAME_KMALLOC).

All of it wants `struct page` to be the same under all of them, for which there is a change of the source (edits.PAGE_DESCRIPTOR).
"""

from __future__ import annotations

import functools
import re
import shutil
import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ..base import programs
from ..base.errors import UserError
from . import cache

# Endings of symbols' names: what the body of kmalloc leads to, under one allocator or another.
CALLS = tuple(f"{name}\0".encode() for name in (
    "kmalloc", "kmalloc_node", "kmalloc_caches", "kmalloc_trace", "kmalloc_node_trace", "kmalloc_large", "kmalloc_large_node",
))  # fmt: skip
ALIKE = ("arm64",)
_CACHES = b"kmalloc_caches\0"
_COLUMNS = 14  # of kmalloc_caches, for sizes to 1 << 13; a cell has 8 bytes
_LITTLE = {"slub": {3, 4}, "slob": {3, 4}, "slabyard": {3, 4}, "slab": {5}}  # columns of sizes that SLAB, or the others, have in another
_RELATIVE, _ABSOLUTE = 2, (1, 10, 11)  # types of relocations for x86-64: R_X86_64_PC32; R_X86_64_64, _32, _32S
_OWN = re.compile(
    rb"\b(?:slab_(?:prepare|dead)_cpu|KMALLOC_(?:MIN|SHIFT|MAX_CACHE|MAX_ORDER)\w*|kmalloc_(?:index|type)|CONFIG_SL[AUO]B|stack_depot_\w+)\b"
)
_ALLOCATORS = re.compile(r"    \$\(wildcard include/config/(?:SL[AUO]B|STACKDEPOT)\) \\\n")
_SOURCE = re.compile(r"(?m)^source_\S+ := (\S+)$")


@dataclass(frozen=True)
class Folder:
    """make's folder of a kernel, and the copy of the source that it is built from."""

    path: Path
    source: Path


def copy(old: Folder, new: Folder, remade: Iterable[str], dependent: Callable[[Path, str], bool] | None) -> None:
    """Makes the new folder, of the old one, which is there.

    `remade`: paths in the source of files whose objects are left out. `dependent`: of a kernel with another allocator, what tells of
    a file in which make remembers how something was made, and its text, whether that depends on the allocator.
    """
    part = new.path.with_name(f"{new.path.name}.part")
    programs.complete(["rm", "-rf", str(part)])
    with cache.shared(old.path, "the kernel that this one differs little from"):
        done = programs.complete(["cp", "-a", "--reflink=auto", str(old.path), str(part)])
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines() or ["cp failed"]
        shutil.rmtree(part, ignore_errors=True)
        raise UserError(f"{old.path}: cannot be copied: {lines[0]}; XDG_CACHE_HOME names another folder to keep kernels in")
    drop_half_written(part)  # what make remembers is newer from here on
    # It names the folder and the source. All would be built again that it finds under another name.
    pattern = re.compile(rf"{re.escape(str(old.source))}(?![\w-])")
    for remembered in part.rglob(".*.cmd"):
        text = remembered.read_text()
        if dependent is not None and not dependent(remembered, text):
            text = _ALLOCATORS.sub("", text)
        remembered.write_text(pattern.sub(lambda _: str(new.source), text.replace(str(old.path), str(new.path))))
    for path in remade:
        (part / path).with_suffix(".o").unlink(missing_ok=True)
    part.rename(new.path)


def depends(arch: str, old: str, new: str) -> Callable[[Path, str], bool]:
    """What tells whether what was made for one kind depends on the allocator, where the new kernel has another kind's."""
    if not {old, new} <= _LITTLE.keys():
        return calls_kmalloc
    if arch in ALIKE or _LITTLE[old] == _LITTLE[new]:
        return takes_more
    return functools.partial(_asks_for_little, _LITTLE[old]) if arch == "x86_64" else calls_kmalloc


def calls_kmalloc(remembered: Path, text: str) -> bool:
    """Whether what was made depends on the allocator, where kmalloc's body does."""
    return takes_more(remembered, text) or any(name in _made(remembered).read_bytes() for name in CALLS)


def _asks_for_little(columns: set[int], remembered: Path, text: str) -> bool:
    """The same where kmalloc's bodies differ for the sizes of these columns of kmalloc_caches."""
    if takes_more(remembered, text):
        return True
    content = _made(remembered).read_bytes()
    return _CACHES in content and not columns.isdisjoint(_columns(content))


def _columns(content: bytes) -> Iterator[int]:
    """The columns of kmalloc_caches that an object for x86-64 takes caches from; all of them where it takes them in another way."""
    (start,), (count,) = struct.unpack_from("<Q", content, 0x28), struct.unpack_from("<H", content, 0x3C)
    sections = [struct.unpack_from("<IIQQQQIIQQ", content, start + 64 * at) for at in range(count)]
    names: dict[int, int] = {}  # by its section, the symbol's number
    for at, (_, kind, _, _, where, size, link, *_) in enumerate(sections):
        for number, (name, *_) in enumerate(struct.iter_unpack("<IBBHQQ", content[where : where + size]) if kind == 2 else ()):
            if content.startswith(_CACHES, sections[link][4] + name):
                names[at] = number
    for _, kind, _, _, where, size, link, *_ in sections:
        for _, what, addend in struct.iter_unpack("<QQq", content[where : where + size]) if kind == 4 and link in names else ():
            if what >> 32 != names[link]:
                continue
            offset = addend + 4 if what & 0xFFFFFFFF == _RELATIVE else addend if what & 0xFFFFFFFF in _ABSOLUTE else -1
            yield from [offset // 8 % _COLUMNS] if offset >= 0 and offset % 8 == 0 and offset // 8 % _COLUMNS else range(_COLUMNS)


def takes_more(remembered: Path, text: str) -> bool:
    """Whether what was made depends on the allocator, where kmalloc's body does not."""
    source = _SOURCE.search(text)
    if source is None or not source[1].endswith((".c", ".S")) or "/mm/slab.h" in text or not _made(remembered).is_file():
        return True
    return not Path(source[1]).is_file() or bool(_OWN.search(Path(source[1]).read_bytes()))


def _made(remembered: Path) -> Path:
    return remembered.with_name(remembered.name[1:].removesuffix(".cmd"))


def drop_half_written(folder: Path) -> None:
    """Removes what compilers or linkers that were killed have left half written over a whole file: make would take it for new.

    Kbuild writes `.NAME.cmd` once NAME is whole, so NAME is never newer.
    """
    for remembered in folder.rglob(".*.cmd"):
        target = _made(remembered)
        if target.is_file() and target.stat().st_mtime_ns > remembered.stat().st_mtime_ns:
            target.unlink()
