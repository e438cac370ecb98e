"""What a dump says by itself: who holds the memory, how much of it nothing uses, and, where a file has several dumps, what grew.

A leak shows as a cache or call site that grows from each dump to the next. What is unused is room for objects in slabs that are there: the
kernel gives it back only slab by slab, so shrinking a cache helps as far as whole slabs are empty.
"""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..base.table import Cell, Figure, Table
from ..base.terminal import printable
from .dumps import TITLES, Dump

SHOWN = 15
SHOWN_FOLDERS = 8
LEAST_DUMPS = 3  # from which on "grew each time" means something
MUCH = 0.2  # of a cache's memory unused, from which on shrinking is worth a word
LEAST_BYTES = 1 << 20
Figures = dict[str, Any]


def describe(path: Path, found: Sequence[Dump]) -> Figures:
    """The last dump's holders, the largest first, with what each grew by since the first one."""
    last, first = found[-1], {one.name: one for one in found[0].holders}
    several = len(found) > 1 and all(one.what == last.what for one in found)
    holders = []
    for one in sorted(last.holders, key=lambda holder: (-holder.bytes, holder.name)):
        before = first.get(one.name)
        grew = (one.bytes - (before.bytes if before else 0)) if several else None
        holders.append({**asdict(one), "unused": one.unused, "grew": grew})
    return {
        "file": str(path),
        "kind": last.kind,
        "dumps": len(found),
        "page_size": last.page_size if last.kind == "slabinfo" else None,
        "bytes": last.bytes,
        "unused": sum(one.unused or 0 for one in last.holders) if last.what == "cache" else None,
        "listed_of": last.listed_of,
        "grew": last.bytes - found[0].bytes if several else None,
        "grew_each_time": _climbing(found) if several and len(found) >= LEAST_DUMPS else None,
        "holders": holders,
        "notes": last.notes,
    }


def _climbing(found: Sequence[Dump]) -> list[str]:
    """Who grew from each dump to the next, those that grew most first."""
    curves: dict[str, list[int]] = {}
    for place, dump in enumerate(found):
        for one in dump.holders:
            curves.setdefault(one.name, [0] * len(found))[place] = one.bytes
    risen = [name for name, curve in curves.items() if all(a < b for a, b in itertools.pairwise(curve))]
    return sorted(risen, key=lambda name: curves[name][0] - curves[name][-1])


def tables(about: Figures, most: int | None = SHOWN) -> list[Table]:
    """The holders, no more than `most`; None: all. Of call sites also what each folder of the source holds."""
    is_sites = about["kind"] == "allocinfo"
    what = "call site" if is_sites else "cache"
    known = [name for name in _COLUMNS if any(one[name] is not None for one in about["holders"])]
    columns = [what, "KiB", "share", *(_COLUMNS[name] for name in known)]
    if is_sites:
        columns = [{"objects": "calls"}.get(column, column) for column in columns]
    shown = about["holders"][:most]
    rows: list[list[Cell]] = [
        [one["name"], _kib(one["bytes"]), _share(one["bytes"], about["bytes"]), *(_cell(name, one) for name in known)] for one in shown
    ]
    left = len(about["holders"]) - len(shown)
    notes = [f"{left:,} more; --caches shows all of them."] if left else []
    out = [Table(_title(about, what), columns, rows, [*notes, *_sentences(about)])]
    if is_sites:
        out.append(_folders(about["holders"], about["bytes"]))
    return out


_COLUMNS = {"unused": "unused", "count": "objects", "room": "room for", "size": "bytes each", "grew": "grew KiB"}


def _cell(name: str, one: Figures) -> Cell:
    if name == "unused":
        return None if one["unused"] is None else _share(one["unused"], one["bytes"])
    if name == "grew":
        return None if one["grew"] is None else Figure(one["grew"] / 1024, f"{one['grew'] / 1024:+,.0f}" if one["grew"] else "0")
    value: Cell = one[name]
    return value


def _kib(bytes_: int) -> Figure:
    return Figure(bytes_ / 1024, f"{bytes_ / 1024:,.0f}")


def _share(part: float, whole: float) -> Figure:
    share = part / whole if whole else 0
    return Figure(share, f"{100 * share:.1f}%")


def _title(about: Figures, what: str) -> str:
    dumps = f", the last of {about['dumps']} dumps" if about["dumps"] > 1 else ""
    page = f", pages of {about['page_size'] >> 10} KiB" if (about["page_size"] or 4096) > 4096 else ""
    count = len(about["holders"])
    listed = f"{count:,} of {about['listed_of']:,}" if about["listed_of"] else f"{count:,}"
    said = f"{listed} {what}s hold {_mib(about['bytes'])}"
    unused = f", {_share(about['unused'], about['bytes']).text} of it unused" if about["unused"] and about["kind"] != "oom" else ""
    return f"{printable(Path(about['file']).name)} ({TITLES[about['kind']]}{dumps}{page}): {said}{unused}"


def _mib(bytes_: float) -> str:
    return f"{bytes_ / 1024:,.0f} KiB" if abs(bytes_) < 10 << 20 else f"{bytes_ / (1 << 20):,.1f} MiB"


def _sentences(about: Figures) -> list[str]:
    said = []
    if about["grew"] is not None:
        climbing = about["grew_each_time"] or []
        said.append(f"From the first dump to the last they grew by {_mib(about['grew'])}.")
        if climbing:
            more = f" and {len(climbing) - 5:,} more" if len(climbing) > 5 else ""
            said.append(f"These grew each time, as what leaks does: {', '.join(climbing[:5])}{more}.")
    with_room = [one for one in about["holders"] if about["kind"] != "oom" and one["unused"]]
    wasteful = [one for one in with_room if one["unused"] >= max(LEAST_BYTES, MUCH * one["bytes"])]
    if wasteful:
        worst = max(wasteful, key=lambda one: int(one["unused"]))
        said.append(
            f"{_mib(worst['unused'])} of {worst['name']} is room that no object uses. Its wholly empty slabs come back by "
            f"echo 1 > /sys/kernel/slab/{worst['name']}/shrink (SLUB); the rest is held by objects beside it."
        )
    return [line for text in [*said, *about["notes"]] for line in textwrap.wrap(text, 80)]


def _folders(holders: Sequence[Figures], whole: int) -> Table:
    sums: dict[str, list[int]] = {}
    for one in holders:
        path = str(one["name"]).split(":")[0]
        sum_ = sums.setdefault(str(Path(path).parent), [0, 0])
        sum_[0], sum_[1] = sum_[0] + one["bytes"], sum_[1] + (one["count"] or 0)
    largest = sorted(sums.items(), key=lambda item: (-item[1][0], item[0]))[:SHOWN_FOLDERS]
    rows: list[list[Cell]] = [[folder, _kib(bytes_), _share(bytes_, whole), calls] for folder, (bytes_, calls) in largest]
    return Table("", ["folder of the source", "KiB", "share", "calls"], rows)
