"""The changes that are made to the private copy of a kernel's source.

Linux is under the GPL, so not a line of it lies in this repository, and no patch with its lines around ours either: a change is a
place, found by an expression that must match exactly once (or as often as the change says), and what stands there afterwards. A
source in which it doesn't is another Linux than the one that the change was made for, and is refused.

Which changes a kernel gets depends on its version (versions.py) and on its allocator (kinds.py).

A file is changed from what it was in the user's source, which is kept in the copy's folder `.slabyard`; so changes may be made again
before every build, and one that this package no longer makes is taken back. A file that comes out as it is already keeps its
time, and make leaves alone what was made of it.

FLOATING_POINT. A user-mode kernel moves its programs' floating-point registers by ptrace. On processors with AVX-512 or AMX the
host insists on the full extended state, which is longer than 6.1 reserves: the first program of the guest dies with `ptrace set fp
regs failed, errno = 14`. The kernel has an older way for processors without extended state at all, and is made to always take it.
It moves the SSE registers alone, so programs of the guest must keep off AVX: machine.py tells their C library so.

MEASURING. Every kernel has what measures inside it (ports.py), for which the makefile of mm/ gets one line.

PAGE_DESCRIPTOR. 6.1 gives `struct page` 64 bytes where SLUB is configured or memory is accounted by control groups, as in every
distribution's kernel, and else 56. Here it has 64 under every allocator, so that kernels differ in their allocator alone.

SAME_KMALLOC. Where the compiler knows the size, kmalloc takes a cache from a table under SLUB and SLAB, and gives it to kmalloc_trace.
Under 6.1's SLOB it calls __kmalloc. Here it does the former under every allocator, so that its callers need not be compiled again
(seed.py). SLOB gets a table without caches, and a kmalloc_trace with the body of its __kmalloc; slabyard's is in ports/linux. For each
such call the kernel reads one word more.

KNOWN_TIMER. A kernel for x86-64 finds out how fast its processor's timer ticks, and waits 0.2 s for that in a loop. In a boot that counts,
QEMU's clock counts instructions, and that loop took more of this machine's time than all the rest of the boot. Such a kernel is told
(`slabyard_timer`, machine.py): QEMU's timer has one tick a nanosecond.

IN_PLACE_OF_SLOB, IN_PLACE_OF_SLUB. In a kernel on slabyard, the makefile of mm/ has a makefile of ours where it named the object of
the kernel's own allocator: in 6.1 that of SLOB, in 6.12, which has no room for another one, that of SLUB.

NOT_ENTERED. make enters 360 folders for a study's x86-64 kernel, in every build of it, and finds nothing to do in 260 of them. It is kept
out of those whose sources are not unpacked or that no configuration of ours has.

OUTLINED. For flame graphs, the files of an allocator take further flags, which are given to make (build.py) and else are none.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..base.errors import UserError


@dataclass(frozen=True)
class Edit:
    """In the file `path` (from the top of the tree), what `pattern` matches becomes `text` (\\g<1> and so on are its groups)."""

    path: str
    pattern: str
    text: str
    times: int = 1  # how often it matches


FLOATING_POINT = Edit("arch/x86/um/os-Linux/registers.c", r"(?m)^(\s*have_xstate_support\s*=\s*)1;", r"\g<1>0;")
PAGE_DESCRIPTOR = tuple(
    Edit(f"arch/{arch}/Kconfig", r"(?m)^([ \t]*select HAVE_ALIGNED_STRUCT_PAGE)[ \t]+if SLUB$", r"\g<1>") for arch in ("x86", "arm64")
)
SAME_KMALLOC = (
    Edit("include/linux/slab.h", r"(?m)^(#define KMALLOC_SHIFT_HIGH\s+)PAGE_SHIFT$", r"\g<1>(PAGE_SHIFT + 1)"),
    Edit("include/linux/slab.h", r"(?m)^#ifndef CONFIG_SLOB$", "#if 1", 4),
    Edit(
        "mm/slob.c",
        r"\Z",
        "\nstruct kmem_cache *kmalloc_caches[NR_KMALLOC_TYPES][KMALLOC_SHIFT_HIGH + 1];\n\n"
        "void *kmalloc_trace(struct kmem_cache *none, gfp_t gfp, size_t size)\n{\n"
        "\treturn __do_kmalloc_node(size, gfp, NUMA_NO_NODE, _RET_IP_);\n}\n\n"
        "void *kmalloc_node_trace(struct kmem_cache *none, gfp_t gfp, int node, size_t size)\n{\n"
        "\treturn __do_kmalloc_node(size, gfp, node, _RET_IP_);\n}\n",
    ),
)
MEASURING = Edit("mm/Makefile", r"\Z", "obj-y += slabyard_bench.o slabyard_fill.o\n")
_OURS = "include $(srctree)/mm/slabyard/linux/mm.mk"
IN_PLACE_OF_SLOB = Edit("mm/Makefile", r"(?m)^obj-\$\(CONFIG_SLOB\) *\+= *slob\.o$", _OURS)
IN_PLACE_OF_SLUB = Edit("mm/Makefile", r"(?m)^obj-y *\+= *slub\.o$", _OURS)
KNOWN_TIMER = Edit(
    "arch/x86/kernel/apic/apic.c",
    r"(?m)^(unsigned int lapic_timer_period) = 0;$",
    "\\g<1> = 0;\n\n"
    "static int __init slabyard_timer(char *text)\n{\n\tint wrong = kstrtouint(text, 10, &lapic_timer_period);\n\n"
    "\tlapic_timer_period /= HZ;\n\treturn wrong;\n}\n"
    'early_param("slabyard_timer", slabyard_timer);',
)
OUTLINED = Edit(
    "mm/Makefile", r"\Z", "".join(f"CFLAGS_{name}.o += $(SLABYARD_OUTLINED)\n" for name in ("slub", "slab", "slob", "slab_common"))
)
NOT_ENTERED = Edit("drivers/Makefile", r"(?m)^obj-y\s*\+=\s*(?:gpu|iommu|soc)/$|(?<= i3c/) media/$", "", 4)
ALWAYS = (MEASURING, KNOWN_TIMER, NOT_ENTERED, OUTLINED)
ORIGINALS = ".slabyard"


def apply(tree: Path, edits: Sequence[Edit]) -> None:
    """Makes these changes and no others. UserError where one finds no place, or several."""
    for path in {edit.path for edit in edits}:
        _keep(tree, tree / ORIGINALS, path)
    for path, content in changed(tree, edits).items():
        write(tree / path, content)


def changed(tree: Path, edits: Sequence[Edit]) -> dict[str, bytes]:
    """By path, the files whose originals are kept, as these changes make them; those that none of them changes as they were."""
    originals = tree / ORIGINALS
    found = {str(path.relative_to(originals)): path.read_text() for path in originals.rglob("*") if path.is_file()}
    for edit in edits:
        if edit.path in found:
            found[edit.path], count = re.subn(edit.pattern, edit.text, found[edit.path])
            if count != edit.times:
                found_and_wanted = f"{count} places to change, not {edit.times}"
                raise UserError(f"{edit.path} of the kernel source is not as in the lab's Linux: {found_and_wanted}")
    return {path: text.encode() for path, text in found.items()}


def _keep(tree: Path, originals: Path, path: str) -> None:
    if (originals / path).is_file():
        return
    try:
        content = (tree / path).read_bytes()
    except OSError:
        raise UserError(f"the kernel source has no {path}, which the lab's Linux has") from None
    (originals / path).parent.mkdir(parents=True, exist_ok=True)
    write(originals / path, content)


def write(file: Path, content: bytes) -> None:
    """Writes a file under another name and renames it, so that no other name of the old one (a hard link) changes with it."""
    if file.is_file() and file.read_bytes() == content:
        return  # its time stays, and make leaves alone what was made of it
    part = file.with_name(f".{file.name}.part")
    part.write_bytes(content)
    part.replace(file)
