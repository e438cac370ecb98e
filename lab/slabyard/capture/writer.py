"""What the import program writes becomes a trace: blocks of columns to row groups, its header and trailer to the metadata.

slabyard-import writes a header (JSON), blocks of rows, each column as one array, and a trailer (JSON); see import/header.c and rows.c. A
block is wrapped as Arrow arrays without touching a value, and written as it comes. The texts that columns stand for (kinds, GFP flags, call
sites) are in the header. The metadata is added last: counts come with the trailer. What of a cache the capture does not tell (its name,
its alignment) comes from the kernel's own files at a snapshot, or from what linux_caches.py knows of the functions that allocate from it.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ..base.errors import UserError
from ..base.files import describe_os_error
from ..trace import cache_names
from ..trace import snapshots as kernel
from ..trace.file import (
    CACHE_NAME,
    CHECKSUM_KEY,
    KFREE,
    KINDS,
    METADATA_KEY,
    NO_CACHE,
    ORIGINS,
    OWNERS,
    PID,
    SCHEMA,
    STACK,
    TASK,
    Cache,
    DirectMap,
    Metadata,
    Snapshot,
    checksum,
    text_column,
)
from . import evidence, linux_caches
from .fullslabs import FullSlabs
from .inputs import About
from .trees import Trees

# As rows.c writes them; what a row has of each, in numpy's letters.
_COLUMNS = {
    "time": "i8", "address": "u8", "object": "u4", "size": "u4", "allocated": "u4", "call_site": "u4", "stack": "u4", "task": "u4",
    "cpu": "u2", "cache": "u2", "gfp_flags": "u2", "kind": "u1", "origin": "u1", "order": "u1", "owner": "u1", "migratetype": "i1",
    "node": "i2", "accounted": "?",
}  # fmt: skip


class CutOff(Exception):
    """slabyard-import ended before it was done."""


class Reader:
    """slabyard-import's output, see header.c and rows.c. Raises CutOff where it ends early."""

    def __init__(self, pipe: IO[bytes]) -> None:
        self.pipe = pipe

    def exactly(self, count: int) -> bytearray:
        """The next `count` bytes."""
        buffer = bytearray(count)
        view = memoryview(buffer)
        while view:
            got = self.pipe.readinto(view)  # type: ignore[attr-defined]
            if not got:
                raise CutOff
            view = view[got:]
        return buffer

    def number(self) -> int:
        """The next number, four bytes in the machine's order."""
        return int.from_bytes(self.exactly(4), sys.byteorder)

    def document(self) -> dict[str, Any]:
        """The next JSON object, behind its length."""
        return json.loads(self.exactly(self.number()))

    def blocks(self) -> Iterator[dict[str, np.ndarray]]:
        """Arrays of one length, by column; the number codes of texts are not translated yet."""
        while rows := self.number():
            yield {name: np.frombuffer(self.exactly(rows * np.dtype(kind).itemsize), kind) for name, kind in _COLUMNS.items()}


def write(reader: Reader, output: Path, about: About, resolve: Callable[[Sequence[str]], list[str]]) -> Metadata:
    """Writes a trace of what the reader gives, row group by row group; its metadata. `resolve` names call sites that are addresses.

    Raises CutOff where the import program ends early, UserError for a snapshot without a mark and for a full disk.
    """
    if reader.exactly(8) != b"SYIMPORT":
        raise CutOff
    header = reader.document()
    _check_marks(header["marks"], about.snapshots)
    about.describe("\n".join(header["headings"]))
    texts = {
        "kind": np.array(KINDS, object),
        "origin": np.array(ORIGINS, object),
        "owner": np.array(OWNERS, object),
        "gfp_flags": np.array(header["gfp"], object),
        "call_site": np.array([*resolve(header["call_sites"]), ""], object),
        "stack": np.array([*header["stacks"], ""], object),
    }
    caches = _caches(header, _known(header["marks"], about.snapshots))
    schema = SCHEMA.append(CACHE_NAME)
    schema = schema.append(STACK) if header["stacks"] else schema
    schema = schema.append(TASK).append(PID) if header["tasks"] else schema
    tasks, pids = _tasks(header["tasks"])
    texts["task"], of_task = np.unique(tasks, return_inverse=True)
    places: Places = (dict.fromkeys(("cpu", "pid", "allocated"), 2**32), dict.fromkeys(("cpu", "pid", "allocated"), -1))
    trees = Trees([one.name for one in caches], texts["call_site"].tolist(), pids[:-1].tolist())
    full = _full_slabs(header, about, caches)
    try:
        with output.open("wb") as file, pq.ParquetWriter(file, schema, **_ENCODING) as writer:
            for block in map(full.take, map(trees.take, reader.blocks())) if full else map(trees.take, reader.blocks()):
                for name in ("call_site", "stack"):
                    block[name] = np.minimum(block[name], np.uint32(len(texts[name]) - 1))
                task = np.minimum(block["task"], np.uint32(len(pids) - 1))
                block["task"], block["pid"] = of_task[task], pids[task]
                _see_places(block, places)
                _name_caches(block, texts, caches, header["shared_pages"])
                columns = [text_column(block[name], texts[name]) if name in texts else pa.array(block[name]) for name in schema.names]
                writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema))
            trailer = reader.document()
            for implied in (trees, full):
                if implied:
                    trailer["implied_frees"] += implied.frees
                    trailer["implied_allocations"] += implied.allocations
                    trailer["rows"] += implied.frees + implied.allocations
            metadata = _metadata(header, trailer, about, caches, places)
            text = metadata.to_json()
            check = checksum(text.encode()).decode()
            writer.add_key_value_metadata({METADATA_KEY.decode(): text, CHECKSUM_KEY.decode(): check})
    except OSError as error:
        raise UserError(describe_os_error(error, output)) from error
    return metadata


_DICTIONARIES = [
    "cpu", "kind", "origin", "size", "allocated", "cache", "order", "migratetype", "owner", "gfp_flags", "node", "call_site", "cache_name",
    "stack", "task", "pid",
]  # fmt: skip
_ENCODING: dict[str, Any] = {
    "compression": "zstd",
    "compression_level": 3,
    "use_dictionary": _DICTIONARIES,
    "column_encoding": {"time": "DELTA_BINARY_PACKED"},
    "write_statistics": ["time", "cpu"],
    "write_page_checksum": True,
}


# ---- Metadata ------------------------------------------------------------------------------------------------------------


def _check_marks(marks: Sequence[str], snapshots: Sequence[dict[str, Any]]) -> None:
    for one in snapshots:
        if one["name"] not in marks:
            more = f" and {len(marks) - 8} others" if len(marks) > 8 else ""
            known = f"its marks are {', '.join(marks[:8])}{more}" if marks else "it has no marks"
            raise UserError(f"the capture has no mark {one['name']} (a tracing_mark_write of that name); {known}; `end` is its end")


def _tasks(found: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Names (texts) and numbers (int32) of the tasks, `4719 find` each, and of none: an empty name, -1."""
    parts = [one.partition(" ") for one in found]
    numbers = [min(int(number), 2**31 - 1) for number, _, _ in parts]
    return np.array([*(name for _, _, name in parts), ""], object), np.array([*numbers, -1], np.int32)


# The smallest and the largest `cpu` and `pid` of recorded events, and `allocated` of kmallocs.
Places = tuple[dict[str, int], dict[str, int]]


def _see_places(block: dict[str, np.ndarray], places: Places) -> None:
    recorded = block["origin"] != ORIGINS.index("implied")
    kmallocs = recorded & (block["kind"] == KINDS.index("kmalloc"))
    for name, rows in (("cpu", recorded), ("pid", recorded), ("allocated", kmallocs)):
        values = block[name][rows].astype(np.int64)
        for side, extreme in zip(places, (np.min, np.max), strict=True):
            side[name] = int(extreme(np.append(values, side[name])))


def _name_caches(block: dict[str, np.ndarray], texts: dict[str, np.ndarray], caches: Sequence[Cache], shared_pages: bool) -> None:
    """Fills in the column cache_name of a block, and its texts."""
    kmallocs = np.flatnonzero((block["kind"] <= KFREE) & (block["cache"] == NO_CACHE))
    block["cache_name"], names = cache_names.names(
        kmallocs, block["cache"], block["size"], block["allocated"], [one.name for one in caches], shared_pages
    )
    texts["cache_name"] = np.array(names, object)


def _from_boot(header: dict[str, Any]) -> bool:
    """Whether a capture begins when its kernel did. A clock that starts anew with each recording shows the first second too, but then
    most objects lie in slabs that were there."""
    return bool(header["from_boot"] and header["base"] and header["explained"] > header["older"])


def _full_slabs(header: dict[str, Any], about: About, caches: Sequence[Cache]) -> FullSlabs | None:
    if not _from_boot(header) or header["shared_pages"] or max(header["cpus"], header["nodes"], about.cpus or 0) > 1:
        return None
    shift = header["page_size"].bit_length() - 1
    return FullSlabs([one.name for one in caches], header["gfp"], int(header["base"], 16), shift, header["numbers"])


def _metadata(header: dict[str, Any], trailer: dict[str, Any], about: About, caches: list[Cache], places: Places) -> Metadata:
    unknown_events: dict[str, int] = {}
    for name, count in header["unknown_events"]:
        unknown_events[name] = unknown_events.get(name, 0) + count
    taken = _snapshots(header["marks"], trailer["snapshots"], about.snapshots)
    files = [one.files for one in taken]
    zones = _zones(files, header)
    metadata = Metadata(
        source=("tracefs" if header["tracefs"] else "perf script") if about.source == "text" else about.source,
        kernel=about.kernel,
        arch=about.arch,
        command=about.command,
        capture=about.capture,
        cgroup=about.cgroup,
        recorded_at=about.recorded_at,
        cpus=max(header["cpus"], about.cpus or 0),
        nodes=max([header["nodes"], *(zone.node + 1 for zone in zones)]),
        page_size=header["page_size"],
        pageblock_order=header.get("pageblock_order", _pageblock_order(files)),
        from_boot=_from_boot(header),
        span_seconds=header["span_ns"] / 1e9,
        events={**{kind: 0 for kind in KINDS if kind in about.kinds}, **header["events"]},
        unknown_events=unknown_events,
        truncated=header["truncated"],
        counted_times=header["counted_times"],
        lost=max(header["lost"], about.lost),
        shared_pages=header["shared_pages"],
        direct_map=DirectMap(header["base"], header["hashed"], header["explained"], header["older"], header["unexplained"]),
        caches=caches,
        zones=zones,
        snapshots=taken,
    )
    unread = header["unparsed_lines"] * 100 > trailer["rows"]  # which is what is missing then
    for cache, counts in zip(caches, trailer["cache_counts"], strict=True):
        cache.allocs, cache.frees = counts
    for name in ("null_frees", "failed_allocations", "hidden_pointers", "unparsed_lines", "reordered", "late"):
        setattr(metadata, name, header[name])
    for name in (
        "rows", "unknown_frees", "implied_frees", "implied_allocations", "implied_page_frees", "implied_page_allocations",
        "pages_of_unknown_owner",
    ):  # fmt: skip
        setattr(metadata, name, trailer[name])
    metadata.partial = about.partial + evidence.of_lines(header["odd_lines"], 0 if unread else trailer["repeats"])
    if not (metadata.partial or unread):
        metadata.partial = evidence.of_counts(metadata.events, trailer)
    if not about.kinds:  # where perf's header does not tell
        metadata.doubts = evidence.doubts(metadata.rows, metadata.cpus, header["headed"], header["placed"], *places)
    return metadata


def _snapshots(marks: Sequence[str], rows: Sequence[Sequence[int]], known: Sequence[dict[str, Any]]) -> list[Snapshot]:
    """One for each snapshot row, in their order. Of several marks of one name the first has the kernel's figures."""
    left = {one["name"]: one for one in known}
    taken = []
    for time, mark in rows:
        one = left.pop(marks[mark], {})
        taken.append(Snapshot(marks[mark], time, one.get("files", {}), one.get("slab_attributes")))
    return taken


def _pageblock_order(files: Sequence[dict[str, str]]) -> int:
    for texts in files:
        if match := re.search(r"Page block order:\s*(\d+)", texts.get("pagetypeinfo", "")):
            return int(match[1])
    return 9


def _zones(files: Sequence[dict[str, str]], header: dict[str, Any]) -> list[kernel.Zone]:
    """The recorded machine's zones from zoneinfo, else its one zone from buddyinfo, meminfo and the page frames seen."""
    for texts in files:
        if zones := kernel.parse_zoneinfo(texts.get("zoneinfo", "")):
            return zones
    for texts in files:
        rows = list(kernel.parse_buddyinfo(texts.get("buddyinfo", "")))
        total = kernel.parse_meminfo(texts.get("meminfo", "")).get("MemTotal")
        if len(rows) == 1 and total and "least_pfn" in header:
            node, name = rows[0]
            start = header["least_pfn"] // 1024 * 1024
            managed = total * 1024 // header["page_size"]
            return [kernel.Zone(node, name, start, max(managed, header["most_pfn"] + 1 - start), managed)]
    return []


def _known(marks: Sequence[str], known: Sequence[dict[str, Any]]) -> list[Snapshot]:
    """What is known of the kernel, in the order of the marks; their times come with the trailer."""
    ordered = sorted(known, key=lambda one: marks.index(one["name"]))
    return [Snapshot(one["name"], 0, one.get("files", {}), one.get("slab_attributes")) for one in ordered]


def _caches(header: dict[str, Any], taken: Sequence[Snapshot]) -> list[Cache]:
    attributes: dict[str, dict[str, str]] = {}
    for one in taken:
        attributes.update(one.slab_attributes or {})
    call_sites: list[list[str]] = [[] for _ in header["caches"]]
    for cache, site in header["allocators"]:
        call_sites[cache].append(header["call_sites"][site])
    names = _names(header["caches"], call_sites, taken)
    caches = []
    copies_checked = not any(kernel.KMALLOC.match(one["name"]) for one in header["caches"])
    invented: dict[int, int] = {}
    for number, one in enumerate(header["caches"]):
        name = one["name"] or names.get(number)
        if not name:
            invented[one["size"]] = invented.get(one["size"], 0) + 1
            name = f"anon-{one['size']}-{invented[one['size']]}"
        cache = Cache(name, one["size"], slab_size=one["allocated"] or None)
        if name in attributes:
            cache.describe(attributes[name])
        else:
            shows = header["shared_pages"] or (one["alignment"] and one["size"] % one["alignment"])
            linux_caches.fill_in(cache, call_sites[number], one["alignment"] if shows else 0, copies_checked)
        caches.append(cache)
    return caches


def _names(found: Sequence[dict[str, Any]], call_sites: Sequence[list[str]], taken: Sequence[Snapshot]) -> dict[int, str]:
    """Names of slabinfo for caches whose events print none.

    A cache gets the name that its functions are known for, where slabinfo has a cache of that name and stride; then,
    where exactly one nameless cache and one of slabinfo's with objects are left of a stride, they are the same.
    """
    taken_names = {one["name"] for one in found}
    strides: dict[int, set[str]] = {}
    places: dict[str, int] = {}
    for snapshot in taken:
        for place, line in enumerate(kernel.parse_slabinfo(snapshot.files.get("slabinfo", ""))):
            places[line.name] = place
            if line.objects and not kernel.KMALLOC.match(line.name) and line.name not in taken_names:
                strides.setdefault(line.object_size, set()).add(line.name)
    names: dict[int, str] = {}
    nameless: dict[int, list[int]] = {}
    for number, cache in enumerate(found):
        if cache["name"]:
            continue
        left = strides.get(cache["allocated"], set())
        known = {name for site in call_sites[number] for name in linux_caches.names_by_function(site, cache["size"])} & left
        if known:
            # Merged caches go by the name of the oldest, which slabinfo has last.
            names[number] = max(known, key=lambda name: places[name])
            left.remove(names[number])
        else:
            nameless.setdefault(cache["allocated"], []).append(number)
    for stride, numbers in nameless.items():
        if len(numbers) == 1 and len(strides.get(stride, ())) == 1:
            names[numbers[0]] = next(iter(strides[stride]))
    return names
