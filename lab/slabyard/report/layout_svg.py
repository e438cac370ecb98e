"""The picture of `slabyard layout --svg`: the text drawing's pieces as rectangles, drawn to scale.

One self-contained SVG without scripts or fonts of its own. A piece's fill tells its state; so does its title, with offset and bytes,
which a browser shows under the pointer.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from markupsafe import Markup

from ..base import svg
from ..base.svg import Value, element, title
from ..base.table import counted
from ..replay.layout import MEANINGS, OWN, Group, Piece, describe, groups, lists, pieces, sequence, states, totals, tree

WIDTH = 1024  # of a row of a page or, where slabs are larger, of several
LEFT = 16
ROW = 28
LINE = 18
LETTERS = 140  # in a line of text
MOST_ROW_BYTES = 1 << 16

COLOURS = {
    "used": "#3b6ea5", "free": "#ffffff", "slot": "#f2c14e", "node": "#a3c77f", "waiting": "#d7bde2", "bookkeeping": "#8c8c8c",
    "colour": "#e8e8e8", "unused": "#f7f7f7", "rounding": "#d98b8b",
}  # fmt: skip
DARK = {"used", "bookkeeping"}


@dataclass
class Canvas:
    """Shapes from top to bottom; `y` is where the next one goes."""

    y: int = LINE
    shapes: list[Markup] = field(default_factory=list)

    def text(self, text: str, left: int = LEFT, weight: str = "normal") -> None:
        """A line of text."""
        self.shapes.append(element("text", {"x": left, "y": self.y, "font-weight": weight}, text))
        self.y += LINE

    def box(self, left: float, width: float, piece: Piece, name: str) -> None:
        """A piece, or what of it is in this row, with the name that fits into it."""
        place: dict[str, Value] = {"x": float(left), "y": self.y - 13, "width": float(width), "height": ROW - 4}
        look: dict[str, Value] = {"fill": COLOURS[piece.state], "stroke": "#333", "stroke-width": "0.7"}
        meaning = title(f"{piece.bytes} bytes at {piece.offset}: {MEANINGS[piece.state]}")
        self.shapes.append(element("rect", place | look, meaning))
        if name and width > 7 * len(name):
            ink = "#fff" if piece.state in DARK else "#000"
            self.shapes.append(element("text", {"x": float(left + 3), "y": self.y + 4, "fill": ink}, name))


def _slab(canvas: Canvas, slab: dict[str, Any], row_bytes: int) -> None:
    """The slab as rows. Rows without a name that repeat are left out, as in text."""
    found = list(pieces(slab))
    rows = [_row(found, start, min(start + row_bytes, slab["bytes"])) for start in range(0, slab["bytes"], row_bytes)]
    # A row with names is like no other.
    looks = [at if any(names for *_, names in row) else [(one.state, *place) for one, *place, _ in row] for at, row in enumerate(rows)]
    for _, alike in groupby(enumerate(rows), key=lambda item: looks[item[0]]):
        (_, row), *more = alike
        for piece, left, width, names in row:
            canvas.box(LEFT + left * WIDTH / row_bytes, width * WIDTH / row_bytes, piece, names)
        canvas.y += ROW
        if more:
            canvas.text(f"({counted(len(more), 'more row')} like this)", LEFT + 16)
    canvas.y += 4


Part = tuple[Piece, int, int, str]  # of a row: the piece, first byte and length in the row, the names that begin there


def _row(found: list[Piece], start: int, end: int) -> list[Part]:
    parts = []
    for piece in found:
        first, last = max(piece.offset, start), min(piece.offset + piece.bytes, end)
        if first < last:
            names = " ".join(name for offset, name in piece.names if first <= offset < last)
            parts.append((piece, first - start, last - first, names))
    return parts


def _group(canvas: Canvas, group: Group, found: dict[str, Any], slabs: list[dict[str, Any]]) -> None:
    canvas.text(group.heading(), weight="bold")
    if group.rank == OWN:
        return
    least = min(slab["bytes"] for slab in group.slabs)
    for slab in group.slabs:
        canvas.text(describe(slab, slabs, found["page_bytes"], found["nodes"]))
        _slab(canvas, slab, min(least, MOST_ROW_BYTES))
    for name, names in lists(group.slabs):
        for line in textwrap.wrap(f"{name}: {sequence(names)}", LETTERS - 10, subsequent_indent="  "):
            canvas.text(line, LEFT + 16)
    for line in tree(group.slabs):
        canvas.text(line.strip(), LEFT + 16 + 3 * (len(line) - len(line.lstrip())))


def picture(found: dict[str, Any]) -> str:
    """What layout.run found, as SVG."""
    canvas = Canvas()
    for snapshot in found["snapshots"]:
        for line in textwrap.wrap(": ".join(text for text in (found["allocator"], snapshot["title"]) if text), LETTERS):
            canvas.text(line, weight="bold")
        for group in groups(snapshot):
            _group(canvas, group, found, snapshot["slabs"])
        canvas.text(totals(snapshot, found["page_bytes"]))
        canvas.y += LINE
    seen = states(found)
    for state, meaning in MEANINGS.items():
        if state not in seen:
            continue
        canvas.box(LEFT, 24, Piece(0, 0, state, []), "")
        canvas.text(meaning, LEFT + 32)
        canvas.y += ROW - LINE
    width = WIDTH + 2 * LEFT
    size: dict[str, Value] = {"width": width, "height": canvas.y, "viewBox": f"0 0 {width} {canvas.y}"}
    ground = element("rect", {"width": "100%", "height": "100%", "fill": "#fff"})
    return svg.picture({**size, "font-family": "monospace", "font-size": 12}, [ground, *canvas.shapes])
