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

On arm64 (ALIKE) even that body is the same under SLUB and SLAB, whose smallest objects both have the 128 bytes of that processor's DMA.

All of it wants `struct page` to be the same under all of them, for which there is a change of the source (edits.PAGE_DESCRIPTOR).
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from ..base.errors import UserError
from . import cache

# Endings of symbols' names: what the body of kmalloc leads to, under one allocator or another.
CALLS = tuple(f"{name}\0".encode() for name in (
    "kmalloc", "kmalloc_node", "kmalloc_caches", "kmalloc_trace", "kmalloc_node_trace", "kmalloc_large", "kmalloc_large_node",
))  # fmt: skip
ALIKE = {"arm64": frozenset(("slub", "slab"))}
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
    shutil.rmtree(part, ignore_errors=True)
    with cache.locked(old.path, "the kernel that this one differs little from"):
        done = subprocess.run(["cp", "-a", "--reflink=auto", str(old.path), str(part)], capture_output=True, check=False)
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


def calls_kmalloc(remembered: Path, text: str) -> bool:
    """Whether what was made depends on the allocator, where kmalloc's body does."""
    return takes_more(remembered, text) or any(name in _made(remembered).read_bytes() for name in CALLS)


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
