"""Counts instructions of hot allocations and frees, and writes the tables of docs/cost.md between its markers.

Needs build/bench/c, which `make cost` builds: the counter (bench/count_instructions.c) and both libraries. Peers are those that
allocators.py finds. What a pair is spent on is told by the source file and function that each instruction was compiled from,
after inlining, which binutils' addr2line reads from the libraries.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from allocators import ROOT, find

from slabyard.base.errors import UserError
from slabyard.base.files import describe_os_error, write_text
from slabyard.base.table import between, document

BUILD = ROOT / "build" / "bench" / "c"
DOCUMENT = ROOT / "docs" / "cost.md"
POLICIES = ("yard", "slub", "slab", "slqb", "bonwick", "bsd44", "slob", "sunos4", "svr4")
VARIANTS = ("bonwick:percpu=32", "bonwick:magazine=on")
SEARCHING = ("slob", "sunos4", "svr4")
ORDERS = ("in", "reverse", "shuffled")
OBJECTS, OBJECTS_SEARCHED = 10_000, 1_000
KERNEL, MALLOC = BUILD / "libslabyard.so", BUILD / "libslabyard-malloc.so"
INTERFACES = {"kmem": (KERNEL, "kmem_cache_alloc"), "kmalloc": (KERNEL, "kmalloc"), "malloc": (MALLOC, "malloc")}
# What an instruction is for, by "file function" of its source; the first pattern that matches.
PARTS = {
    "interface": r"library/|include/|malloc/|core/kmalloc|core/this_slot\.\S+ sy__this_slot_(?!leave)",
    "call": r"\S+ sy__call_|core/platform/(calls|slots|stop|threads)|core/this_slot",
    "locks": r"\S+ sy__(un)?lock",
    "page of": r"core/pages/descriptor",
    "policy": r"core/policies/|core/debug/|core/(?!ticks)\w+\.[ch]",
    "pages": r"core/pages/|core/backend/(?!metadata)",
    "bookkeeping": r"core/backend/metadata|\S+ sy__fill",
    "system": r"core/platform/|core/ticks|elsewhere",
}
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


def sources(library: Path, addresses: list[int]) -> list[str]:
    """ "file function" of the source of each of these addresses in the library; "elsewhere" where it has none."""
    argv = ["addr2line", "-e", str(library), "-a", "-f", "-i"]
    text = "".join(f"{address:#x}\n" for address in addresses)
    answer = subprocess.run(argv, input=text, capture_output=True, text=True, check=True).stdout
    found = []
    for lines in re.split(r"^0x[0-9a-f]+\n", answer, flags=re.MULTILINE)[1:]:
        function, place = lines.splitlines()[:2]
        path = Path(os.path.normpath(place.partition(":")[0]))
        found.append(f"{path.relative_to(ROOT)} {function}" if path.is_relative_to(ROOT) else "elsewhere")
    return found


def spent(kind: str, policy: str) -> defaultdict[str, float]:
    """Instructions of a hot pair by the parts of PARTS; their sum is the pair."""
    library, function = INTERFACES[kind]
    symbols = subprocess.run(["nm", "-D", str(library)], capture_output=True, text=True, check=True).stdout
    base = next(int(line.split()[0], 16) for line in symbols.splitlines() if line.split()[1:] == ["T", function])
    with tempfile.NamedTemporaryFile("r", encoding="ascii") as file:
        if count(kind, library, policy, "--places", file.name) is None:
            sys.exit(1)
        places = [line.split()[1:] for line in file]
    parts: defaultdict[str, float] = defaultdict(float)
    end = library.stat().st_size
    for (_, times), source in zip(places, sources(library, [min(max(base + int(at), 0), end) for at, _ in places]), strict=True):
        parts[next(part for part, pattern in PARTS.items() if re.match(pattern, source))] += float(times)
    return parts


def spent_table() -> str:
    """What the pairs of policies_table are spent on."""
    rows = []
    for policy in POLICIES:
        for kind, (_, function) in INTERFACES.items():
            parts = spent(kind, policy)
            figures = (f"{parts[part]:.0f}" if parts[part] else "" for part in PARTS)
            rows.append([f"{policy}: {function}", f"{sum(parts.values()):.0f}", *figures])
    return document(["pair", "instructions", *PARTS], rows)


def policies_table() -> str:
    """Hot pairs of every policy and variant by each of the three interfaces."""
    heads = ["policy", "kmem_cache_alloc + kmem_cache_free", "kmalloc + kfree", "malloc + free"]
    specs = [*POLICIES, *VARIANTS]
    rows = [[spec, *(cell(count(kind, library, spec)) for kind, (library, _) in INTERFACES.items())] for spec in specs]
    return document(heads, rows)


def fills_table() -> str:
    """Means over all objects of a fill and drain; of fewer where each call searches."""
    rows = []
    for policy in POLICIES:
        objects = OBJECTS_SEARCHED if policy in SEARCHING else OBJECTS
        counted = (count("kmem", KERNEL, policy, "--fill", str(objects), "--order", order) for order in ORDERS)
        rows.append([policy, f"{objects:,}", *(cell(one) for one in counted)])
    return document(["policy", "objects", "freed in order", "in reverse", "shuffled"], rows)


def peers_table() -> str:
    """malloc + free of every library that this machine has."""
    found = [one for one in find(ROOT / "build" / "bench" / "malloc", None, []) if one.library is not None]
    rows = [[f"{one.name} {one.version}".strip(), cell(count("malloc", one.library))] for one in found]
    return document(["malloc", "malloc + free"], rows)


def calls_table() -> str:
    """Calls that are no hot pair: each object's in place, and what another thread allocated."""
    rows = []
    for policy in POLICIES[:2]:
        rows.append(["`realloc` in place, then `malloc_usable_size`", policy, cell(count("resize", MALLOC, policy))])
        for order, words in (("in", "in order"), ("shuffled", "shuffled")):
            found = count("malloc", MALLOC, policy, "--fill", str(OBJECTS), "--remote", "--order", order)
            rows.append([f"`free` by another thread, {words}", policy, "-" if found is None else f"{found.free:.0f}"])
    return document(["call", "policy", "instructions"], rows)


def main() -> None:
    if not shutil.which("addr2line") or not shutil.which("nm"):
        sys.exit("cost: nm and addr2line are missing; install them (Debian: apt install binutils)")
    text = DOCUMENT.read_text(encoding="utf-8")
    tables = {"policies": policies_table, "spent": spent_table, "fills": fills_table, "calls": calls_table, "peers": peers_table}
    for marker, table in tables.items():
        body = table()
        print(body, end="\n\n")
        text = between(text, f"<!-- {marker} -->", f"<!-- end of {marker} -->", body)
    write_text(DOCUMENT, text)


if __name__ == "__main__":
    try:
        main()
    except (UserError, OSError) as error:
        told = error.message if isinstance(error, UserError) else describe_os_error(error, error.filename or "standard output")
        sys.exit(f"cost: {told}")
    except KeyboardInterrupt:
        sys.exit(130)
