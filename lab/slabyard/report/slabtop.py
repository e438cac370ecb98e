"""The caches of slabinfo as slabtop(1) shows them, for people; the same as a table and as JSON for programs.

The text is that of `slabtop --once` of procps 4 to the column: totals, then a line for each cache, sorted by one of slabtop's own
letters. Names are cut where the line would exceed 80 columns, as on a terminal. All figures come from one slabinfo, version 2.1, of a
replay or of a real kernel. Caches that compare equal stay in slabinfo's order.

An allocator whose caches share pages (SLOB, the historical ones) has no slabs by cache: these columns are then zero, `-` in tables,
and null in JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..base.table import Table
from ..trace.snapshots import SlabLine

PAGE_KIB = 4
WIDTH = 80

# slabtop's letters, and what they sort by: the largest first, but names in their order.
SORTS: dict[str, Callable[[SlabLine], Any]] = {
    "a": lambda line: line.active_objects,
    "b": lambda line: line.objects_per_slab,
    "c": lambda line: cache_kib(line),
    "l": lambda line: line.slabs,
    "v": lambda line: line.active_slabs,
    "n": lambda line: line.name,
    "o": lambda line: line.objects,
    "p": lambda line: line.pages_per_slab,
    "s": lambda line: line.object_size,
    "u": lambda line: use(line),
}


def use(line: SlabLine) -> int:
    """Active objects of all that there is room for, in percent, rounded down."""
    return 100 * line.active_objects // line.objects if line.objects else 0


def cache_kib(line: SlabLine) -> int:
    """Memory of a cache's slabs."""
    return line.slabs * line.pages_per_slab * PAGE_KIB


def shares_pages(lines: Sequence[SlabLine]) -> bool:
    """Whether caches have no slabs of their own."""
    return bool(lines) and not any(line.objects_per_slab for line in lines)


def ordered(lines: Sequence[SlabLine], letter: str) -> list[SlabLine]:
    """Sorted by one of SORTS."""
    return sorted(lines, key=SORTS[letter], reverse=letter != "n")


def totals(lines: Sequence[SlabLine]) -> dict[str, Any]:
    """The sums of slabtop's header; sizes in bytes, the mean object being that of all there is room for."""
    objects = sum(line.objects for line in lines)
    size = sum(line.objects * line.object_size for line in lines)
    sizes = [line.object_size for line in lines]
    return {
        "active_objects": sum(line.active_objects for line in lines),
        "objects": objects,
        "active_slabs": sum(line.active_slabs for line in lines),
        "slabs": sum(line.slabs for line in lines),
        "active_caches": sum(line.objects > 0 for line in lines),
        "caches": len(lines),
        "active_bytes": sum(line.active_objects * line.object_size for line in lines),
        "bytes": size,
        "smallest_object": min(sizes, default=0),
        "mean_object": size // objects if objects else 0,
        "largest_object": max(sizes, default=0),
    }


def text(lines: Sequence[SlabLine], letter: str) -> str:
    """What `slabtop --once --sort LETTER` prints."""
    sums = totals(lines)
    kib = {name: sums[name] / 1024 for name in ("active_bytes", "bytes", "smallest_object", "mean_object", "largest_object")}
    out = []
    for name in ("objects", "slabs", "caches"):
        active, total = sums[f"active_{name}"], sums[name]
        out.append(_head(f"Active / Total {name.title()} (% used)") + f"{active} / {total} {_share(active, total)}")
    out += [
        _head("Active / Total Size (% used)")
        + f"{kib['active_bytes']:.2f}K / {kib['bytes']:.2f}K {_share(sums['active_bytes'], sums['bytes'])}",
        _head("Minimum / Average / Maximum Object")
        + " / ".join(f"{kib[name]:.2f}K" for name in ("smallest_object", "mean_object", "largest_object")),
        "",
        f"{'OBJS':>6} {'ACTIVE':>6} {'USE':>4} {'OBJ SIZE':>8} {'SLABS':>6} {'OBJ/SLAB':>8} {'CACHE SIZE':>10} NAME",
    ]
    for line in ordered(lines, letter):
        row = (
            f"{line.objects:6} {line.active_objects:6} {use(line):3}% {line.object_size / 1024:7.2f}K {line.slabs:6} "
            f"{line.objects_per_slab:8} {cache_kib(line):9}K {line.name}"
        )
        out.append(row[:WIDTH])
    return "\n".join(out) + "\n"


def _head(title: str) -> str:
    return f" {title:<35}: "


def _share(part: int, whole: int) -> str:
    return f"({100 * part / whole if whole else 0:.1f}%)"


def table(found: dict[str, Any]) -> Table:
    """Of as_json's caches a row for each, sizes in bytes and KiB; for CSV and Markdown."""
    caches = found["caches"]
    columns = list(caches[0]) if caches else ["name"]
    return Table("", columns, [[cache[name] for name in columns] for cache in caches])


def as_json(lines: Sequence[SlabLine], letter: str) -> dict[str, Any]:
    """`totals` and `caches`, sorted; sizes in bytes, memory in KiB; what an allocator cannot tell of one cache is null."""

    def values(line: SlabLine, *names: str, known: bool = True) -> dict[str, Any]:
        return {name: getattr(line, name) if known else None for name in names}

    caches = []
    for line in ordered(lines, letter):
        own = line.objects_per_slab > 0
        row = values(line, "name", "active_objects", "objects") | {"use_percent": use(line), "object_size": line.object_size}
        row |= values(line, "slabs", "active_slabs", "objects_per_slab", "pages_per_slab", known=own)
        row["cache_kib"] = cache_kib(line) if own else None
        caches.append(row | values(line, "limit", "batchcount", "shared", "shared_available"))
    sums = totals(lines)
    if shares_pages(lines):
        sums["slabs"] = sums["active_slabs"] = None
    return {"totals": sums, "caches": caches}
