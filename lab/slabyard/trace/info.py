"""What a trace holds, as a table for people and as JSON for programs."""

from __future__ import annotations

import dataclasses
import textwrap
from pathlib import Path
from typing import Any

from ..base.files import sha256
from ..base.table import Cell, Table, counted
from ..base.terminal import printable
from .file import Trace, recorded_curve
from .snapshots import parse_meminfo
from .unseen import unseen_slabs

_METADATA = (
    "source", "kernel", "arch", "command", "capture", "cgroup", "recorded_at", "cpus", "nodes", "page_size", "pageblock_order",
    "span_seconds", "rows", "events", "unknown_events", "lost", "incomplete", "doubt", "unparsed_lines", "reordered", "late", "null_frees",
    "failed_allocations", "unknown_frees", "implied_frees", "implied_allocations", "implied_page_frees", "implied_page_allocations",
    "pages_of_unknown_owner", "counted_times",
)  # fmt: skip


def describe(path: Path) -> dict[str, Any]:
    """The trace's metadata without the texts of its snapshots. UserError when the file is no trace."""
    with Trace(path) as trace:
        metadata = trace.metadata
        return {
            "file": str(path),
            "bytes": path.stat().st_size,
            "sha256": sha256(path),
            **{name: getattr(metadata, name) for name in _METADATA},
            "rows": trace.rows,
            "direct_map": _without(metadata.direct_map, "hashed"),
            "caches": [_without(cache, "dma", "no_merge") for cache in metadata.caches],
            "zones": [_without(zone, "min", "low", "high") for zone in metadata.zones],
            "snapshots": [
                {"name": one.name, "time": one.time, "files": sorted(one.files), "slab_attributes": len(one.slab_attributes or {})}
                for one in metadata.snapshots
            ],
            "slab": slab_sums(trace),
        }


LITTLE_OFF = 0.001  # of the kernel's own count, or
GROWTH_OFF = 0.05  # of what that grew by; but
LEAST_OFF = 64  # KiB


def slab_sums(trace: Trace) -> dict[str, Any] | None:
    """`Slab:` of meminfo at the first and at the last snapshot, in KiB, and what the trace has for the latter: the former with the pages
    that were taken and less those given back. Where that is off (is_off), `unseen_kib` has by cache what came without an event
    (unseen.py). None where there are no two such snapshots, or no pages, or no row for the last one."""
    metadata = trace.metadata
    known = [parse_meminfo(one.files.get("meminfo", "")).get("Slab") for one in metadata.snapshots]
    if len(known) < 2 or known[0] is None or known[-1] is None or not metadata.has_pages:
        return None
    held = recorded_curve(trace, with_older=True).snapshots.get(metadata.snapshots[-1].name)
    if held is None:
        return None
    recorded = held * metadata.page_size >> 10
    unseen = unseen_slabs(trace) if is_off(known[0], known[-1], recorded) else None
    kib = {name: pages * metadata.page_size >> 10 for name, pages in (unseen or {}).items()}
    return {"start_kib": known[0], "end_kib": known[-1], "recorded_end_kib": recorded, "unseen_kib": kib}


def is_off(start: int, end: int, recorded: int) -> bool:
    """Whether the end by the trace differs from the kernel's own by more than perf's file makes; all in KiB."""
    return abs(recorded - end) > max(LEAST_OFF, min(LITTLE_OFF * end, GROWTH_OFF * abs(end - start)))


def largest_unseen(unseen: dict[str, int]) -> str:
    """The caches that most came of without an event, in words; "" where there are none."""
    shown = ", ".join(f"{name} {kib:,}" for name, kib in list(unseen.items())[:SHOWN_UNSEEN])
    return f"{sum(unseen.values()):,} KiB came without an event ({shown})" if unseen else ""


def _without(one: Any, *names: str) -> dict[str, Any]:
    """The fields of a dataclass but these."""
    return {name: value for name, value in dataclasses.asdict(one).items() if name not in names}


_COUNTS = (
    ("lost", "lost events"),
    ("null_frees", "frees of NULL"),
    ("failed_allocations", "failed allocations"),
    ("unknown_frees", "frees of what is older than the trace"),
    ("implied_frees", "implied frees"),
    ("implied_allocations", "implied allocations"),
    ("implied_page_frees", "implied page frees"),
    ("implied_page_allocations", "implied page allocations"),
    ("pages_of_unknown_owner", "pages of unknown owner"),
    ("unparsed_lines", "lines that could not be read"),
    ("reordered", "events put back in order"),
    ("late", "events too late for that"),
)
SHOWN_CACHES = 15
SHOWN_UNSEEN = 3


def _slab_sums(sums: dict[str, Any] | None) -> str:
    if sums is None:
        return "not known"
    start, end, recorded = sums["start_kib"], sums["end_kib"], sums["recorded_end_kib"]
    off = f"{100 * (recorded - end) / end:+.2f}%" if end else "-"
    unseen = largest_unseen(sums["unseen_kib"])
    return f"{start:,} KiB by meminfo at the start, {end:,} at the end; {recorded:,} by the trace ({off}){unseen and '; ' + unseen}"


def _span(about: dict[str, Any]) -> str:
    if about["counted_times"]:
        return f"{about['span_seconds'] * 1e9:,.0f} counts of a clock, taken for nanoseconds"
    return f"{about['span_seconds']:,.3f} s"


def _completeness(about: dict[str, Any]) -> str:
    if about["incomplete"]:
        return f"no: {about['incomplete']}"
    return f"not known: {about['doubt']}" if about["doubt"] else "yes"


def tables(about: dict[str, Any], most_caches: int | None = SHOWN_CACHES) -> list[Table]:
    """The description as tables: the trace, its events, its caches, the busiest first, no more than `most_caches`; None: all."""
    command = " ".join(about["command"]) if about["command"] else "-"
    kernel = " ".join(word for word in (about["kernel"], about["arch"]) if word) or "unknown"
    map_ = about["direct_map"]
    general: list[list[Cell]] = [
        ["recorded", f"{about['recorded_at'] or '-'}, from {about['source'] or 'unknown'}"],
        ["kernel", kernel],
        ["command", textwrap.fill(command, 66)],
        ["machine", f"{counted(about['cpus'], 'CPU')}, {counted(about['nodes'], 'node')}"],
        ["span", _span(about)],
        ["complete", textwrap.fill(_completeness(about), 66)],
        ["direct map", f"{map_['base'] or 'not found'}: {map_['explained']:,} objects explained, {map_['unexplained']:,} not"],
        ["slabs", textwrap.fill(_slab_sums(about["slab"]), 66)],
        ["snapshots", ", ".join(f"{one['name']} at {one['time'] / 1e9:,.3f} s" for one in about["snapshots"]) or "none"],
    ]
    rows: list[list[Cell]] = [[name, count] for name, count in about["events"].items()]
    rows += [[f"unknown event {name}", count] for name, count in about["unknown_events"].items()]
    rows += [[title, about[name]] for name, title in _COUNTS]
    caches = sorted(about["caches"], key=lambda cache: -cache["allocs"])
    shown = caches[:most_caches]
    more = f"{len(caches) - len(shown)} more; --format csv shows all of them, --caches who holds memory."
    notes = [] if len(shown) == len(caches) else [more]
    if about["implied_frees"]:
        notes.append(f"Of recorded calls; {counted(about['implied_frees'], 'free')} without one, as in bulk or by kfree_rcu, are implied.")
    body: list[list[Cell]] = [
        [cache["name"] or "(unnamed)", cache["object_size"], cache["slab_size"], cache["allocs"], cache["frees"]] for cache in shown
    ]
    return [
        Table(printable(about["file"]), ["trace", ""], general),
        Table("", ["event", "count"], rows),
        Table("", ["cache", "object size", "slab size", "allocations", "frees"], body, notes=notes),
    ]
