"""How memory looks after a script of allocations: `slabyard layout`.

The replay program runs the script and tells, in order of address, every part of every slab (replay/layout.c says what a script may
say). Here that becomes a drawing in 80 columns. A slab is a block of rows; a part is as wide as it is long, in a scale that leaves the
smallest object of its cache four columns. It begins with a bar, then comes the name of the object that is there, or was there last, and
what fills it tells its state. Below a cache's slabs stand its lists of free objects, the next one to be handed out first: memory shows
where free objects are, the lists show in which order they will be used, and each allocator is its own way of relating the two.
"""

from __future__ import annotations

import sys
import tempfile
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from ..base import programs
from ..base.errors import UserError
from ..base.table import counted

COLUMNS = 64  # of a row; a power of two, so that pages are whole rows or whole parts of one
MARGIN = 8
LINE = COLUMNS + MARGIN
DEEPEST = 10  # how far a tree is indented
LEAST_COLUMNS = 4  # of the smallest object
MOST_BYTES = 1 << 20  # of a script
NO_BREAK = "\0"
OWN = 2  # rank of slabs in which no object of the script ever was

FILLS = {
    "used": "#", "free": ".", "slot": "+", "node": "-", "waiting": "~", "bookkeeping": "=", "colour": ":", "unused": " ", "rounding": "_",
}  # fmt: skip
MEANINGS = {
    "used": "in use", "free": "free in its slab", "slot": "free, kept by a CPU", "node": "free, kept by a node",
    "waiting": "waits for a grace period", "bookkeeping": "the allocator's own", "colour": "colour", "unused": "unused",
    "rounding": "lost to rounding",
}  # fmt: skip


@dataclass
class Piece:
    """What is drawn as one: `bytes` from `offset` in the slab on, of a state in FILLS, with the names in it and their offsets."""

    offset: int
    bytes: int
    state: str
    names: list[tuple[int, str]]
    begins: bool = True  # an object or a block; not the rest of one, nor what is between them


def run(allocator: str, script: Path) -> dict[str, Any]:
    """What the replay program tells of a script (`-`: standard input) under an allocator. UserError for mistakes in either."""
    name, text = _read(script)
    with tempfile.NamedTemporaryFile("wb", suffix=".txt") as file:
        file.write(text)
        file.flush()
        try:
            found: dict[str, Any] = programs.run_json(programs.REPLAY, "--layout", file.name, "--allocator", allocator)
        except UserError as error:
            raise UserError(f"{name}, {error.message}" if error.message.startswith("line ") else error.message, error.status) from None
    number_pages(found)
    return found


def _read(script: Path) -> tuple[str, bytes]:
    name = "standard input" if str(script) == "-" else str(script)
    try:
        with script.open("rb") if str(script) != "-" else sys.stdin.buffer as file:
            text = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise UserError(f"cannot read {name}: {error.strerror}") from None
    if len(text) > MOST_BYTES or b"\0" in text:
        raise UserError(f"{name} is not a script of allocations; see slabyard layout --help")
    return name, text


def number_pages(found: dict[str, Any]) -> None:
    """Gives each slab `number`, that of its first page as drawings have it: from 1 in the order in which they are drawn.

    The machine's own numbers skip what the heap needs for itself, and say nothing about the allocator.
    """
    numbers: dict[tuple[int, int], int] = {}
    last = 0
    for snapshot in found["snapshots"]:
        for slab in (slab for group in groups(snapshot) for slab in group.slabs):
            key = (slab["page"], slab["bytes"])
            if key not in numbers:
                numbers[key] = last + 1
                last += slab["bytes"] // found["page_bytes"]
            slab["number"] = numbers[key]


# ---- Pieces ------------------------------------------------------------------------------------------------------


def pieces(slab: dict[str, Any]) -> Iterator[Piece]:
    """The slab's parts, cut where objects of the script begin and end."""
    for part in slab["parts"]:
        if part["state"] == "used":
            yield from _used(part)
        else:
            names = [(part["offset"] + thing["offset"], thing["id"]) for thing in part["objects"]]
            yield Piece(part["offset"], part["bytes"], part["state"], names, part["object"] or part["state"] == "unused")


def _used(part: dict[str, Any]) -> Iterator[Piece]:
    """A part in use. What no object of the script has is the allocator's own, or lost where the object's block is larger."""
    at = 0
    for thing in sorted(part["objects"], key=lambda thing: thing["offset"]):
        start = part["offset"] + thing["offset"]
        if thing["offset"] > at:
            yield Piece(part["offset"] + at, thing["offset"] - at, "bookkeeping", [], begins=False)
        yield Piece(start, thing["bytes"], "used", [(start, thing["id"])])
        at = thing["offset"] + thing["bytes"]
    if at < part["bytes"]:
        yield Piece(part["offset"] + at, part["bytes"] - at, "rounding" if at else "bookkeeping", [], begins=not at)


def column_bytes(slabs: list[dict[str, Any]], page_bytes: int) -> int:
    """Bytes of a column, a power of two, for slabs that are drawn alike.

    Objects of one size have LEAST_COLUMNS at least. Where all sizes share pages, the named ones have room for bar, name and a fill,
    the others for the bar, and a page is a row at least.
    """
    if slabs[0]["cache"] is None:
        found = [piece for slab in slabs for piece in pieces(slab) if piece.begins and piece.state != "unused"]
        most = min([page_bytes / COLUMNS, *(piece.bytes / (len(piece.names[0][1]) + 2 if piece.names else 1) for piece in found)])
    else:
        least = min((part["bytes"] for slab in slabs for part in slab["parts"] if part["object"]), default=page_bytes)
        most = min(least / LEAST_COLUMNS, max(slab["bytes"] for slab in slabs) / 32)
    scale = 4
    while scale * 2 <= most:
        scale *= 2
    return scale


def _edges(slab: dict[str, Any], found: list[Piece], scale: int) -> list[int]:
    """Columns where the pieces begin, and where the last one ends. Each has one at least, and room for its name if there is some."""
    edges = [round(piece.offset / scale) for piece in found] + [round(slab["bytes"] / scale)]
    for at in range(1, len(edges) - 1):
        name = found[at - 1].names[0][1] if found[at - 1].names else ""
        edges[at] = max(edges[at], edges[at - 1] + (len(name) + 2 if name else 1))
    for at in reversed(range(1, len(edges) - 1)):
        edges[at] = min(edges[at], edges[at + 1] - 1)
    return edges


def _piece_text(piece: Piece, columns: int, scale: int) -> str:
    text = list("|" * piece.begins + FILLS[piece.state] * (columns - piece.begins))
    for offset, name in piece.names:
        at = round((offset - piece.offset) / scale) + 1
        if at + len(name) <= columns and all(sign == FILLS[piece.state] for sign in text[at : at + len(name)]):
            text[at : at + len(name)] = name
    return "".join(text)


def _rows(slab: dict[str, Any], scale: int) -> list[str]:
    """The slab as rows of COLUMNS columns; the last may be shorter. Rows without a name that repeat are left out."""
    found = list(pieces(slab))
    edges = _edges(slab, found, scale)
    line = "".join(_piece_text(piece, edges[at + 1] - edges[at], scale) for at, piece in enumerate(found))
    rows = [line[at : at + COLUMNS] for at in range(0, len(line), COLUMNS)]
    rows[-1] += "|"
    drawn = [f"{at * COLUMNS * scale:>{MARGIN - 1}} {row}" for at, row in enumerate(rows)]
    out: list[str] = []
    for row, same in groupby(zip(rows, drawn, strict=True), key=lambda item: item[0]):
        lines = [text for _, text in same]
        if len(lines) < 3 or any(sign.isalnum() for sign in row):
            out += lines
        else:
            out += [lines[0], f"{'':{MARGIN}}({len(lines) - 1} more rows like this)"]
    return [row.rstrip() for row in out]


# ---- Slabs -------------------------------------------------------------------------------------------------------


def ordinal(place: int) -> str:
    """1st for place 0."""
    number = place + 1
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def _owner(kind: str, number: int) -> str:
    return {"slot": f"CPU {number}", "node": f"node {number}", "none": ""}[kind]


def _ordered(slab: dict[str, Any], slabs: list[dict[str, Any]]) -> bool:
    """Whether the slab's place tells it from those on the same list, or on all lists of the same owner."""
    for keys in (("cache", "owner_kind", "owner"), ("cache", "owner_kind", "owner", "list")):
        places = [one["place"] for one in slabs if all(one[key] == slab[key] for key in keys) and not one["large"]]
        if len(places) > 1 and len(set(places)) == len(places):
            return True
    return False


def describe(slab: dict[str, Any], slabs: list[dict[str, Any]], page_bytes: int, nodes: int) -> str:
    """One slab's heading: which pages, where the allocator keeps it, on which node where there are several."""
    count = slab["bytes"] // page_bytes
    pages = f"page {slab['number']}" if count == 1 else f"pages {slab['number']} to {slab['number'] + count - 1}"
    words = ["straight from the page allocator" if slab["large"] else slab["list"], _owner(slab["owner_kind"], slab["owner"])]
    if _ordered(slab, slabs):
        words.append(ordinal(slab["place"]))
    if nodes > 1 and slab["owner_kind"] != "node":
        words.append(f"memory of node {slab['node']}")
    return f"{pages}: {', '.join(word for word in words if word)}"


# ---- Lists -------------------------------------------------------------------------------------------------------


def lists(slabs: list[dict[str, Any]]) -> list[tuple[str, list[str]]]:
    """The lists of free objects: a heading, and names in the order in which they will be handed out; unnamed ones are empty."""
    found: dict[tuple[Any, ...], list[tuple[int, str]]] = {}
    for slab in slabs:
        for part in slab["parts"]:
            if part.get("list") in (None, "tree", "free blocks"):
                continue
            own = slab["number"] if part["list"].endswith("of the slab") else -1
            size = part["bytes"] if slab["cache"] is None else 0
            key = (part["state"] != "slot", part["state"], part["owner"], part["list"], own, size)
            found.setdefault(key, []).append((part["place"], part["objects"][0]["id"] if part["objects"] else ""))
    return [(_list_name(key), [name for _, name in sorted(items)]) for key, items in sorted(found.items())]


def _list_name(key: tuple[Any, ...]) -> str:
    _, state, owner, name, page, size = key
    if page >= 0:
        return f"{name.removesuffix(' of the slab')} of page {page}"
    if size:
        return f"{name}, {size} bytes"
    return f"{_owner(state, owner)}, {name}" if state in ("slot", "node") else name


def sequence(names: list[str]) -> str:
    """Names in order, with a count of each run of those that have none."""
    words = []
    for named, group in groupby(names, key=bool):
        run_of = list(group)
        words += run_of if named else [f"({len(run_of)} never used)"]
    return " ".join(words)


def tree(slabs: list[dict[str, Any]]) -> list[str]:
    """A tree of free blocks on its side: addresses go down, and what is further right is lower in the tree."""
    found = [(slab, part) for slab in slabs for part in slab["parts"] if part.get("list") == "tree"]
    if not found:
        return []
    lines = ["tree of free blocks; its root is the leftmost:"]
    for slab, part in found:
        lines.append(f"{'':{4 * min(part['place'], DEEPEST) + 2}}{part['bytes']} bytes at {part['offset']} of page {slab['number']}")
    return lines


# ---- Pictures ----------------------------------------------------------------------------------------------------


@dataclass
class Group:
    """Slabs that are drawn alike: of one cache, or of all where objects share pages (cache is None)."""

    cache: dict[str, Any] | None
    slabs: list[dict[str, Any]]

    def cache_names(self) -> list[str | None]:
        """Of each of the script's objects in these slabs, the name of the script's cache; None: it is of a kmalloc."""
        return [thing["cache"] for slab in self.slabs for part in slab["parts"] for thing in part["objects"]]

    @property
    def rank(self) -> int:
        """Where it stands in a drawing: the script's own caches first, then other objects of the script's, then the rest."""
        named = self.cache_names()
        return 0 if any(named) else 1 if named else OWN

    def heading(self) -> str:
        """What the slabs hold."""
        if self.cache is None:
            return "large allocations" if all(slab["large"] for slab in self.slabs) else "pages of all caches"
        own, size = self.cache["bytes"], self.cache["object_bytes"]
        names = {name for name in self.cache_names() if name and name != self.cache["name"]}
        name = self.cache["name"] + (f", merged with {', '.join(sorted(names))}" if names else "")
        return f"{name}: objects of {size} bytes" + (f", each takes {own}" if own != size else "")


def groups(snapshot: dict[str, Any]) -> list[Group]:
    """A snapshot's slabs by cache, the script's caches first; within each rank in order of the caches' creation, large allocations last."""
    order = {cache["name"]: cache for cache in snapshot["caches"]}
    found = [Group(cache, [slab for slab in snapshot["slabs"] if slab["cache"] == name]) for name, cache in order.items()]
    rest = [slab for slab in snapshot["slabs"] if slab["cache"] is None]
    found.append(Group(None, [slab for slab in rest if not slab["large"]]))
    found.append(Group(None, [slab for slab in rest if slab["large"]]))
    return sorted((group for group in found if group.slabs), key=lambda group: group.rank)


def totals(snapshot: dict[str, Any], page_bytes: int) -> str:
    """Pages held, and bytes asked for by what lives now."""
    held = sum(slab["bytes"] for slab in snapshot["slabs"])
    asked = sum(
        thing["bytes"] for slab in snapshot["slabs"] for part in slab["parts"] if part["state"] == "used" for thing in part["objects"]
    )
    share = f": {100 * asked / held:.0f}%" if held else ""
    return f"{counted(held // page_bytes, 'page')} held, {asked:,} bytes of them in use{share}"


def _draw_group(group: Group, found: dict[str, Any], slabs: list[dict[str, Any]]) -> list[str]:
    if group.rank == OWN:
        used = sum(part["object"] and part["state"] in ("used", "bookkeeping") for slab in group.slabs for part in slab["parts"])
        pages = sum(slab["bytes"] for slab in group.slabs) // found["page_bytes"]
        return [f"{group.heading()}: the allocator's own, {used} in use, {counted(pages, 'page')}"]
    scale = column_bytes(group.slabs, found["page_bytes"])
    lines = _wrapped("", f"{group.heading()} (a column is {scale} bytes)")
    for slab in group.slabs:
        lines.append("  " + describe(slab, slabs, found["page_bytes"], found["nodes"]))
        lines += _rows(slab, scale)
    for name, names in lists(group.slabs):
        lines += _wrapped(f"  {name}:", sequence(names))
    return lines + ["  " + line for line in tree(group.slabs)]


def _wrapped(head: str, text: str) -> list[str]:
    indent = "    " if head else ""
    return textwrap.wrap(f"{head} {text}" if head else text, LINE + MARGIN, subsequent_indent=indent, break_long_words=False)


def states(found: dict[str, Any]) -> set[str]:
    """The states of FILLS that occur in the drawing."""
    shown = [group for snapshot in found["snapshots"] for group in groups(snapshot) if group.rank != OWN]
    return {piece.state for group in shown for slab in group.slabs for piece in pieces(slab)}


def legend(found: dict[str, Any]) -> list[str]:
    """What the signs mean that occur in the drawing."""
    seen = states(found)
    signs = [f"{FILLS[state]} {MEANINGS[state]}" for state in FILLS if state in seen and state != "unused"]
    words = "   ".join(sign.replace(" ", NO_BREAK) for sign in signs)
    lines = [line.replace(NO_BREAK, " ") for line in _wrapped("", words)]
    return [*lines, "Lists of free objects name the next one to be handed out first."]


def draw(found: dict[str, Any]) -> str:
    """Plain text of at most 80 columns."""
    lines: list[str] = []
    for snapshot in found["snapshots"]:
        title = f"{found['allocator']}: {snapshot['title']}" if snapshot["title"] else found["allocator"]
        lines += [*_wrapped("", title), ""]
        for group in groups(snapshot):
            lines += [*_draw_group(group, found, snapshot["slabs"]), ""]
        lines += [totals(snapshot, found["page_bytes"]), ""]
    return "\n".join([*lines, *legend(found)]).rstrip() + "\n"
