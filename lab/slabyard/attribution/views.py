"""Who holds memory in a trace, for people and for programs: what `info --caches`, --call-sites, --tasks and --pinned print.

describe() gathers what was asked for as plain values, which are the JSON; tables() makes the tables of text, Markdown and CSV of these.
Text shows bytes as KiB, and the rows that matter most first; JSON and CSV have every row and every figure in bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..base.table import Cell, Table, counted
from ..base.terminal import printable
from ..trace.file import Trace
from . import pinned, usage

VIEWS = {"caches": "cache", "call_sites": "call_site", "tasks": "task"}
ORDERS = {"live": "live_bytes", "growth": "growth_bytes", "peak": "peak_bytes", "allocations": "allocations"}
SHOWN = 30
_MOST_NAME = 34  # letters, so that the figures have room beside it in 80 columns


@dataclass(frozen=True)
class Asked:
    """Which views, of what part of the trace, in which order."""

    views: Sequence[str]  # of VIEWS
    pinned: bool = False
    since: str | None = None
    until: str | None = None
    order: str = "live"


def describe(trace: Trace, asked: Asked) -> dict[str, Any]:
    """The views that were asked for, each a list of rows. UserError where this trace cannot tell."""
    window = usage.window_of(trace, asked.since, asked.until)
    found: dict[str, Any] = {
        "file": str(trace.path), "from": window.since / 1e9, "to": window.until / 1e9, "whole": asked.since is None and asked.until is None,
    }  # fmt: skip
    for view in asked.views:
        rows = usage.usage(trace, [VIEWS[view]], window).sort_by([(ORDERS[asked.order], "descending")])
        found[view] = rows.to_pylist()
    if asked.pinned:
        at = pinned.pinned(trace, ["call_site", "cache"], window)
        found["pinned"] = {
            "slabs": at.slabs, "slab_bytes": at.slab_bytes, "object_bytes": at.object_bytes, "empty_slabs": at.empty_slabs,
            "objects_outside": at.outside, "call_sites": at.table.to_pylist(),
        }  # fmt: skip
    return found


def tables(found: dict[str, Any], lines: int | None) -> list[Table]:
    """The views as tables, of no more than so many rows each; None: all, with plain bytes, for CSV."""
    made: list[Table] = []
    for view, name in VIEWS.items():
        if view in found:
            made.append(_usage_table(found, view, name, lines) if lines else _plain(found[view], view))
    if "pinned" in found:
        made.append(_pinned_table(found, lines) if lines else _plain(found["pinned"]["call_sites"], "pinned"))
    return made


def _plain(rows: list[dict[str, Any]], title: str) -> Table:
    columns = list(rows[0]) if rows else ["name"]
    return Table(title, columns, [list(row.values()) for row in rows])


def _usage_table(found: dict[str, Any], view: str, name: str, lines: int) -> Table:
    rows = found[view]
    words = view.replace("_", " ")
    cells: list[list[Cell]] = [
        [
            _short(row[name]), row["allocations"], row["frees"], row["live_objects"],
            *(_kib(row[figure]) for figure in ("live_bytes", "peak_bytes", "growth_bytes")),
        ]
        for row in rows[:lines]
    ]  # fmt: skip
    total = {figure: sum(row[figure] for row in rows) for figure in ("live_bytes", "growth_bytes", "requested_bytes")}
    asked = 100 * total["requested_bytes"] / total["live_bytes"] if total["live_bytes"] else 100
    live, growth = _kib(total["live_bytes"]), _kib(total["growth_bytes"])
    notes = [f"Together {live:,} KiB are live, of which {asked:.0f}% were asked for; growth {growth:+,} KiB."]
    title = f"{printable(found['file'])}: {words}, {_period(found)}"
    columns = [words.removesuffix("s"), "allocs", "frees", "live", "live KiB", "peak KiB", "growth KiB"]
    return Table(title, columns, cells, _left_out(rows, lines) + notes)


def _pinned_table(found: dict[str, Any], lines: int) -> Table:
    about = found["pinned"]
    rows = [row for row in about["call_sites"] if row["pinned_bytes"]]
    cells: list[list[Cell]] = [
        [_short(row["call_site"]), _short(row["cache"]), row["objects"], row["held_pages"], row["alone_pages"], _kib(row["pinned_bytes"])]
        for row in rows[:lines]
    ]
    in_use = 100 * about["object_bytes"] / about["slab_bytes"] if about["slab_bytes"] else 100
    notes = [
        f"Objects use {in_use:.0f}% of {_kib(about['slab_bytes']):,} KiB in {counted(about['slabs'], 'slab')} of this trace; "
        f"{about['empty_slabs']:,} more hold no object that it knows. {counted(about['objects_outside'], 'object')} "
        "in slabs older than the trace are not in this table.",
        "pinned: free room of slabs that these objects keep from being given back. alone: pages of slabs with no other objects.",
    ]
    title = f"{printable(found['file'])}: pinned memory at {found['to']:,.3f} s"
    columns = ["call site", "cache", "objects", "pages", "alone", "pinned KiB"]
    return Table(title, columns, cells, _left_out(rows, lines) + notes, keys=2)


def _left_out(rows: Sequence[object], lines: int) -> list[str]:
    return [f"{len(rows) - lines:,} more; --lines N shows more of them, --format csv all."] if len(rows) > lines else []


def _period(found: dict[str, Any]) -> str:
    return "whole trace" if found["whole"] else f"from {found['from']:,.3f} to {found['to']:,.3f} s"


def _short(name: str) -> str:
    text = printable(name)
    return text if len(text) <= _MOST_NAME else text[: _MOST_NAME - 3] + "..."


def _kib(count: int) -> int | float:
    return round(count / 1024) if abs(count) >= 102400 else round(count / 1024, 1)
