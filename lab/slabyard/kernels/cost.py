"""What a kernel executes for its allocator: counted under QEMU, not timed.

Time under software emulation says nothing, and a processor's own counters are out of reach in most virtual machines. So a boot is
made whose clock is its count of instructions (QEMU's -icount: one nanosecond each), and a plugin of ours (plugin/count.c), compiled
on the spot, counts between the workload's begin and end: instructions of the kernel by function, and the misses of simulated caches
(plugin/caches.h). Nothing of the host is in these figures: neither its speed nor its load. That holds for one CPU. With several, QEMU
7.2 does not come through a kernel's start by that clock; so its own clock serves there, and each boot has other counts.

The parts are those of a replay's cost: fast path, slow path, page allocator, locks, each with all that it calls, except what is another
part. An operation is one call of the slab interface from outside the allocator; a bulk call is one. What the allocator does on its own
(UPKEEP: periodic visits, slabs behind a grace period) counts as slow path, without an operation. The slow functions are those of
flame graphs (kinds.py), in the kernel as it is, not in an outlined one: what the compiler has put in line counts where it stands.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..base.errors import MISSING, UserError
from ..replay.cost import FIGURES, PARTS
from . import cache, tools
from .kinds import Kind

CACHE_MODEL = (  # plugin/caches.h
    "for each CPU 32 KiB of instructions and 32 KiB of data, 8 ways; last level 8 MiB, 16 ways, shared; lines of 64 bytes, least recently "
    "used goes; a write takes the line from other CPUs; the kernel's accesses alone"
)
NEWEST_QEMU = 8  # of which plugins of this interface are loaded
ICOUNT = "shift=0,sleep=off"  # one nanosecond for each instruction; where all CPUs wait, the clock goes on to what they wait for
ALLOCATIONS = frozenset(
    (
        "kmem_cache_alloc", "kmem_cache_alloc_lru", "kmem_cache_alloc_node", "kmem_cache_alloc_bulk", "__kmalloc", "__kmalloc_node",
        "__kmalloc_node_track_caller", "kmalloc_trace", "kmalloc_node_trace", "kmalloc_large", "kmalloc_large_node",
        "__kmalloc_cache", "__kmalloc_cache_node", "__kmalloc_large", "__kmalloc_large_node",  # since 6.11
    )
)  # fmt: skip
FREES = frozenset(("kmem_cache_free", "kmem_cache_free_bulk", "kfree"))
UPKEEP = frozenset(
    (
        "rcu_free_slab", "flush_cpu_slab",  # slub
        "cache_reap", "kmem_rcu_free",  # slab; slob has the latter, too
        "tick", "give_on_this_cpu", "grace_passed",  # slabyard: ports/linux
    )
)  # fmt: skip
_PAGES = re.compile(r"^(?:__)?(?:alloc|free)_(?:unref_)?pages?(?:_\w+)?$|^(?:__)?get_free_pages$|^(?:__)?folio_alloc$")
_LOCKS = re.compile(
    r"^_raw_(?:spin|read|write)_\w+$|^(?:native_|__pv_)?queued_(?:spin|read|write)_\w+$|^__raw_callee_save_+\w+_unlock$|"
    r"^(?:__)?mutex_(?:un)?lock\w*$"
)
_INTERRUPT = re.compile(r"^asm_(?:exc_\w+|sysvec_\w+|common_interrupt|spurious_interrupt)$")
_TABLE = re.compile(r"^(?:irq|spurious)_entries_start$|^vectors$")  # the latter: arm64
_SWITCHES = ("__switch_to_asm", "cpu_switch_to")
_FOLDER = Path(__file__).parent / "plugin"
_CFLAGS = ("-O2", "-std=gnu11", "-shared", "-fPIC", "-fvisibility=hidden")


def check(arch: str = "x86_64") -> None:
    """UserError where this machine lacks what counts."""
    tools.require((tools.COMPILER, tools.QEMUS[arch]), "counting instructions")
    version = qemu_version(arch)
    if not version or int(version.split(".")[0]) > NEWEST_QEMU:
        raise UserError(
            f"counting instructions needs a QEMU that loads plugins of its first interface, up to {NEWEST_QEMU}.2; this is {version}",
            MISSING,
        )


def qemu_version(arch: str = "x86_64") -> str:
    """QEMU's version, as in 7.2.22; empty where it does not say."""
    found = re.search(r"version (\d[\d.]*)", tools.first_line([tools.path_of(tools.QEMUS[arch], "counting instructions"), "--version"]))
    return found[1] if found else ""


def plugin() -> Path:
    """The plugin, compiled where it is not there yet."""
    sources = [path.read_bytes() for path in sorted(_FOLDER.iterdir())]
    made_of = [*sources, " ".join(_CFLAGS).encode(), tools.compiler_version().encode()]
    place = cache.folder("guests") / f"count-{hashlib.sha256(b''.join(made_of)).hexdigest()[:16]}.so"
    if place.is_file():
        return place
    with cache.locked(place, "QEMU's plugin"):
        part = place.with_name(f"{place.name}.part")
        gcc = tools.path_of(tools.COMPILER, "counting instructions")
        done = subprocess.run([gcc, *_CFLAGS, "-o", str(part), str(_FOLDER / "count.c")], capture_output=True, check=False)
        if done.returncode:
            lines = done.stderr.decode(errors="replace").splitlines()
            reason = next((line for line in lines if "rror" in line), (lines or ["gcc failed"])[0])
            raise UserError(f"QEMU's plugin cannot be compiled: {reason}{cache.advice(reason)}", MISSING)
        part.rename(place)
    return place


def options(folder: Path, kernel_map: str, kind: Kind, cpus: int = 1, turn: int = 0) -> list[str]:
    """QEMU's options for a boot that counts, with its files in a folder. The accelerator must have one thread.

    `turn`: whole stacks are counted, not caches, and each CPU has so many instructions before it is the next one's turn (plugin/tree.h).
    """
    (folder / "symbols").write_text(Symbols.of(kernel_map, kind).text)
    clock = ["-icount", ICOUNT] if cpus == 1 else []
    more = f",stacks={folder / 'stacks'},turn={turn}" if turn else ""
    return [
        *clock, "-rtc", "base=2000-01-01,clock=vm", "-seed", "1",
        "-plugin", f"{plugin()},symbols={folder / 'symbols'},counts={folder / 'counts'}{more}",
    ]  # fmt: skip


# ---- Functions and their roles ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Symbols:
    """A kernel's functions by address, as the plugin reads them (`text`), and their names."""

    names: Sequence[str]
    text: str

    @staticmethod
    def of(kernel_map: str, kind: Kind) -> Symbols:
        """Out of a System.map. Of several names for one address, the one with a role counts."""
        found: dict[int, tuple[str, str]] = {0: ("-", "[unknown]")}
        for line in kernel_map.splitlines():
            address, of, name = line.split()
            place = int(address, 16)
            if place >> 63 and (of in "tTwW" or name == "_end"):
                mine = role(plain_name(name), kind) if of in "tTwW" else "-"
                if found.get(place, ("-", ""))[0] == "-":
                    found[place] = (mine, plain_name(name))
        ordered = sorted(found.items())
        return Symbols([name for _, (_, name) in ordered], "".join(f"{place:x} {mine}\n" for place, (mine, _) in ordered))


def plain_name(symbol: str) -> str:
    """A function's name without what the compiler adds to that of a clone, and Linux since 6.10 to what it counts by callers."""
    return re.sub(r"\.(?:isra|constprop|part|cold)\b.*$", "", symbol).removesuffix("_noprof")


def role(name: str, kind: Kind) -> str:
    """What a function is for the plugin: a letter of plugin/count.c."""
    letters = (
        ("a", name in ALLOCATIONS), ("f", name in FREES), ("u", name in UPKEEP), ("s", name in kind.slow), ("w", name in _SWITCHES),
        ("i", bool(_INTERRUPT.match(name))), ("I", bool(_TABLE.match(name))), ("l", bool(_LOCKS.match(name))),
        ("p", bool(_PAGES.match(name))),
    )  # fmt: skip
    return next((letter for letter, fits in letters if fits), "-")


# ---- Counts ----------------------------------------------------------------------------------------------------------------------


@dataclass
class _Sums:
    """Figures summed by name; `calls` of functions too."""

    figures: Counter[str] = field(default_factory=Counter)

    def add(self, calls: int, *figures: int) -> None:
        self.figures.update({"calls": calls, **dict(zip(FIGURES, figures, strict=True))})

    def per(self, operations: int, *names: str) -> dict[str, float]:
        return {name: self.figures[name] / operations for name in names}


def group(counts: str, names: Sequence[str], cpus: int = 1, arch: str = "x86_64") -> dict[str, Any]:
    """The record's group `cost` out of the plugin's text. UserError where that is not whole."""
    lines = counts.splitlines()
    if len(lines) < 2 or lines[-1] != "end":
        raise UserError("QEMU's plugin has counted nothing: the workload's begin or end was not seen")
    allocations, frees = map(int, lines[0].split()[1:])
    operations = max(1, allocations + frees)
    kernel, mine = _Sums(), _Sums()
    parts = {name: _Sums() for name in PARTS}
    functions: dict[tuple[str, str], _Sums] = {}
    for line in lines[1:-1]:
        function, part, *figures = map(int, line.split())
        kernel.add(*figures)
        if part:  # as plugin/count.c numbers PARTS, from 1; 0 is the rest of the kernel
            mine.add(*figures)
            parts[PARTS[part - 1]].add(*figures)
            functions.setdefault((names[function], PARTS[part - 1]), _Sums()).add(*figures)
    ordered = sorted(functions.items(), key=lambda one: (-one[1].figures["instructions"], one[0]))
    return {
        "tool": f"qemu plugin, QEMU {qemu_version(arch)}" + (f", -icount {ICOUNT}" if cpus == 1 else ""),
        "cache_model": CACHE_MODEL,
        "cpus": cpus,
        "operations": allocations + frees,
        "allocations": allocations,
        "frees": frees,
        **mine.per(operations, *FIGURES),
        "parts": {name: sums.per(operations, *FIGURES) for name, sums in parts.items()},
        "functions": [{"name": name, "part": part, **sums.per(operations, "calls", *FIGURES)} for (name, part), sums in ordered],
        "kernel": {name: kernel.figures[name] for name in FIGURES},
    }
