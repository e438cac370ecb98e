"""Counts instructions of hot allocations and frees, and writes the tables of docs/cost.md between its markers.

Needs build/bench/c, which `make cost` builds: the counter (bench/count_instructions.c) and both libraries. Peers are those that
allocators.py finds.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from allocators import ROOT, find

BUILD = ROOT / "build" / "bench" / "c"
DOCUMENT = ROOT / "docs" / "cost.md"
POLICIES = ("slub", "slab", "slqb", "bonwick", "bsd44", "slob", "sunos4", "svr4")
ORDERS = ("in", "reverse", "shuffled")
OBJECTS = 10_000
LINE = re.compile(r"\S+ ([\d.]+) \S+ ([\d.]+) sum ([\d.]+)")


@dataclass(frozen=True)
class Counted:
    """Instructions of one allocation, one free, and their sum."""

    alloc: float
    free: float
    pair: float


def count(kind: str, library: Path | None, spec: str | None = None, *options: str) -> Counted | None:
    """None where the library does not work when it is preloaded."""
    argv = [str(BUILD / "count-instructions"), *options, kind]
    if library is not None:
        argv[1:1] = ["--preload", str(library)]
    environment = dict(os.environ)
    environment.pop("SLABYARD", None)
    if spec is not None:
        environment["SLABYARD"] = spec
    done = subprocess.run(argv, env=environment, capture_output=True, text=True)
    if done.returncode == 77:
        sys.exit("cost: this machine lets no process trace another; allow ptrace (kernel.yama.ptrace_scope) and run again")
    found = LINE.fullmatch(done.stdout.strip())
    if done.returncode or not found:
        print(f"cost: {library}: {done.stderr.strip()}", file=sys.stderr)
        return None
    return Counted(*(float(figure) for figure in found.groups()))


def cell(counted: Counted | None) -> str:
    return "-" if counted is None else f"{counted.alloc:.0f} + {counted.free:.0f} = {counted.pair:.0f}"


def policies_table() -> list[str]:
    """Hot pairs of every policy by each of the three interfaces."""
    kernel, malloc = BUILD / "libslabyard.so", BUILD / "libslabyard-malloc.so"
    lines = ["| policy | kmem_cache_alloc + kmem_cache_free | kmalloc + kfree | malloc + free |", "| --- | ---: | ---: | ---: |"]
    for policy in POLICIES:
        cells = [cell(count("kmem", kernel, policy)), cell(count("kmalloc", kernel, policy)), cell(count("malloc", malloc, policy))]
        lines.append(f"| {policy} | " + " | ".join(cells) + " |")
    return lines


def fills_table() -> list[str]:
    """Means over all objects of a fill and drain."""
    lines = ["| policy | freed in order | in reverse | shuffled |", "| --- | ---: | ---: | ---: |"]
    for policy in POLICIES[:4]:
        cells = [
            cell(count("kmem", BUILD / "libslabyard.so", policy, "--fill", str(OBJECTS), "--order", order)) for order in ORDERS
        ]
        lines.append(f"| {policy} | " + " | ".join(cells) + " |")
    return lines


def peers_table() -> list[str]:
    """malloc + free of every library that this machine has."""
    lines = ["| malloc | malloc + free |", "| --- | ---: |"]
    for allocator in find(ROOT / "build" / "bench" / "malloc", None, []):
        if allocator.library is not None:
            title = f"{allocator.name} {allocator.version}".strip()
            lines.append(f"| {title} | {cell(count('malloc', allocator.library))} |")
    return lines


def replace(text: str, marker: str, lines: list[str]) -> str:
    """The text with these lines between the marker's two comments."""
    pattern = re.compile(rf"(<!-- {marker} -->\n).*?(<!-- end of {marker} -->)", re.DOTALL)
    if not pattern.search(text):
        sys.exit(f"cost: {DOCUMENT} has no place for {marker}: <!-- {marker} --> and <!-- end of {marker} -->")
    return pattern.sub(lambda found: found.group(1) + "\n".join(lines) + "\n" + found.group(2), text)


def main() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    for marker, table in (("policies", policies_table), ("fills", fills_table), ("peers", peers_table)):
        lines = table()
        print("\n".join(lines), end="\n\n")
        text = replace(text, marker, lines)
    DOCUMENT.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
