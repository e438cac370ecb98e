"""The kernel's own figures: /proc/{slabinfo,allocinfo,buddyinfo,pagetypeinfo,meminfo,zoneinfo} and /sys/kernel/slab, parsed.

Every parser takes the text of one file and is lenient about what it does not know: a kernel newer than this program
adds lines and columns. A text that is no such file at all gives an empty result.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..base.files import read_text_if_there

ORDERS = 11
PROC_FILES = ("slabinfo", "buddyinfo", "pagetypeinfo", "meminfo", "vmstat", "zoneinfo")
KMALLOC = re.compile(r"^(?P<dma>dma-)?kmalloc(?:-(?P<kind>rcl|cg|rnd-\d+|random\d*))?-(?P<size>\d+)(?P<unit>[kM]?)$")
UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_ALLOC_LINE = re.compile(r"^ *(\d+(?:\.\d+)?)([KMGT]?)i? +(\d+) +(\S+:\d+) +(?:\[(.+?)\] +)?func:(\S+)", re.MULTILINE)


@dataclass
class SlabLine:
    """One cache of slabinfo. Sizes in bytes; `limit`, `batchcount`, `shared` and `shared_available` are SLAB's array caches, zero under
    SLUB."""

    name: str
    active_objects: int
    objects: int
    object_size: int
    objects_per_slab: int
    pages_per_slab: int
    limit: int
    slabs: int
    shared_available: int
    batchcount: int
    shared: int
    active_slabs: int


@dataclass(frozen=True)
class AllocLine:
    """One call site of allocinfo: the place in the source, its function and module (empty: the kernel itself), and what it holds."""

    place: str
    function: str
    module: str
    bytes: int
    calls: int


@dataclass
class Zone:
    """One zone of zoneinfo; page counts, watermarks in free pages."""

    node: int
    name: str
    start_pfn: int = 0
    spanned: int = 0
    managed: int = 0
    min: int = 0
    low: int = 0
    high: int = 0


ZoneKey = tuple[int, str]


def parse_slabinfo(text: str) -> list[SlabLine]:
    """The caches of /proc/slabinfo, version 2.x."""
    caches = []
    for line in text.splitlines():
        if line.startswith(("slabinfo", "#")):
            continue
        head, _, rest = line.partition(":")
        words = head.split()
        numbers = [int(word) for word in re.findall(r"\d+", rest)]
        if len(words) < 6 or len(numbers) < 6:
            continue
        try:
            active, total, size, per_slab, pages = (int(word) for word in words[-5:])
        except ValueError:
            continue
        limit, batchcount, shared, active_slabs, slabs, available = numbers[:6]
        name = " ".join(words[:-5])
        caches.append(SlabLine(name, active, total, size, per_slab, pages, limit, slabs, available, batchcount, shared, active_slabs))
    return caches


def class_of(name: str) -> int:
    """Bytes of the kmalloc class that a cache of slabinfo is; 0 for any other cache."""
    match = KMALLOC.match(name)
    if not match:
        return 0
    return int(match["size"]) * {"": 1, "k": 1 << 10, "M": 1 << 20}[match["unit"]]


def kmalloc_name(size: int) -> str:
    """A size class as the kernel names it: kmalloc-192, kmalloc-2k."""
    for shift, unit in ((20, "M"), (10, "k")):
        if size and size % (1 << shift) == 0:
            return f"kmalloc-{size >> shift}{unit}"
    return f"kmalloc-{size}"


def parse_allocinfo(text: str) -> list[AllocLine]:
    """The call sites of /proc/allocinfo, also where `numfmt --to=iec` has shortened its figures."""
    return [
        AllocLine(match[4], match[6], match[5] or "", round(float(match[1]) * UNITS[match[2]]), int(match[3]))
        for match in _ALLOC_LINE.finditer(text)
    ]


def parse_buddyinfo(text: str) -> dict[ZoneKey, list[int]]:
    """Free blocks by order 0 to 10 of each (node, zone) of /proc/buddyinfo."""
    zones: dict[ZoneKey, list[int]] = {}
    for line in text.splitlines():
        match = re.match(r"Node\s+(\d+), zone\s+(\S+)\s+([\d\s]+)$", line)
        if match:
            zones[int(match[1]), match[2]] = _orders([int(word) for word in match[3].split()])
    return zones


def _orders(counts: list[int]) -> list[int]:
    return (counts + [0] * ORDERS)[:ORDERS]


def total_free_blocks(text: str) -> list[int] | None:
    """buddyinfo summed over its zones, by order; None when the text has none."""
    zones = parse_buddyinfo(text)
    return [sum(counts) for counts in zip(*zones.values(), strict=True)] if zones else None


def parse_pagetypeinfo(text: str) -> tuple[dict[ZoneKey, dict[str, list[int]]], dict[ZoneKey, dict[str, int]]]:
    """/proc/pagetypeinfo: (free blocks by type name and order, pageblocks by type name) of each (node, zone)."""
    free: dict[ZoneKey, dict[str, list[int]]] = {}
    blocks: dict[ZoneKey, dict[str, int]] = {}
    names: list[str] = []
    for line in text.splitlines():
        match = re.match(r"Node\s+(\d+), zone\s+(\S+), type\s+(\S+)\s+(.*)$", line)
        if match:
            # A list longer than the kernel will count is printed as ">100000".
            counts = [int(word.lstrip(">")) for word in match[4].split() if word.lstrip(">").isdigit()]
            free.setdefault((int(match[1]), match[2]), {})[match[3]] = _orders(counts)
        elif line.startswith("Number of blocks type"):
            names = line.split()[4:]
        elif names and (match := re.match(r"Node\s+(\d+), zone\s+(\S+)\s+([\d\s]+)$", line)):
            counts = [int(word) for word in match[3].split()]
            blocks[int(match[1]), match[2]] = dict(zip(names, counts, strict=False))
    return free, blocks


def with_migrate_types(text: str, recorded: str) -> str:
    """A replay's pagetypeinfo with rows and columns for the migrate types that only the recorded kernel's has, all zero.

    The replay has none of CMA and Isolate; the two files then differ in figures alone.
    """
    free, _ = parse_pagetypeinfo(recorded)
    names = [name for name in next(iter(free.values()), {}) if f"type {name:>12} " not in text]
    lines = []
    for line in text.splitlines():
        row = re.match(r"(Node .*, type ) *HighAtomic ", line)
        if row:
            lines += [line, *(f"{row[1]}{name:>12} " + f"{0:6} " * ORDERS for name in names)]
        elif line.startswith("Number of blocks type"):
            lines.append(line + "".join(f"{name:>12} " for name in names))
        elif line.startswith("Node ") and ", type " not in line:
            lines.append(line + f"{0:12} " * len(names))
        else:
            lines.append(line)
    return "\n".join(lines)


def parse_meminfo(text: str) -> dict[str, int]:
    """The lines of /proc/meminfo in kB (huge page counts as they stand)."""
    return {match[1]: int(match[2]) for match in re.finditer(r"^([^:\n]+):\s+(\d+)", text, re.MULTILINE)}


def parse_zoneinfo(text: str) -> list[Zone]:
    """The zones of /proc/zoneinfo that hold pages, in order of address."""
    zones: list[Zone] = []
    keys = {"start_pfn:": "start_pfn", "spanned": "spanned", "managed": "managed", "min": "min", "low": "low", "high": "high"}
    in_lists = False
    for line in text.splitlines():
        match = re.match(r"Node\s+(\d+), zone\s+(\S+)", line)
        words = line.split()
        if match:
            zones.append(Zone(int(match[1]), match[2]))
            in_lists = False
        elif words[:1] == ["pagesets"]:
            in_lists = True
        elif zones and len(words) == 2 and words[1].isdigit() and (words[0] == "start_pfn:" or (not in_lists and words[0] in keys)):
            setattr(zones[-1], keys[words[0]], int(words[1]))
    return sorted((zone for zone in zones if zone.managed), key=lambda zone: zone.start_pfn)


# The attributes that describe a cache and its population; the rest of the folder is tunables and statistics of the kernel's own.
ATTRIBUTES = (
    "align", "cache_dma", "cpu_slabs", "ctor", "destroy_by_rcu", "hwcache_align", "object_size", "objects", "objects_partial",
    "objs_per_slab", "order", "partial", "reclaim_account", "sheaf_capacity", "slab_size", "usersize",
)  # fmt: skip


_CHARGED = re.compile(r":[a-zA-Z]*A[a-zA-Z]*-")


def take_slab_attributes(folder: Path, wanted: Sequence[str] = ATTRIBUTES) -> dict[str, dict[str, str]] | None:
    """/sys/kernel/slab as {cache: {attribute: value}}; None where the kernel has none.

    A cache that may merge is a link to a folder with a made-up name (`:aA-0000064`), whose letters are flags by which caches merge. What
    is read there stands under every name that is such a link, with `account` 1 where the A is in it: no file tells that flag.
    """
    try:
        entries = sorted(os.listdir(folder))
    except OSError:
        return None
    known: dict[str, dict[str, str]] = {}
    caches: dict[str, dict[str, str]] = {}
    linked = {os.path.realpath(folder / entry) for entry in entries if (folder / entry).is_symlink()}
    for entry in entries:
        target = os.path.realpath(folder / entry)
        if entry.startswith(":") and target in linked:
            continue
        if target not in known:
            known[target] = _attributes(Path(target), wanted)
            if _CHARGED.match(Path(target).name):
                known[target]["account"] = "1"
        caches[entry] = known[target]
    return caches


def _attributes(folder: Path, wanted: Sequence[str]) -> dict[str, str]:
    return {name: text.strip() for name in wanted if (text := read_text_if_there(folder / name)) is not None}
