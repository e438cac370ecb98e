"""The one printer of tables: as text for people, as Markdown for documents, as CSV for programs.

Text keeps to 80 columns, as people paste it into mail: what is too wide is broken at blanks and signs, and what has too many columns
becomes several tables that each repeat the keys. Figures are never broken, and names only where nothing else is left. CSV holds the
plain values and nothing that was rounded.
"""

from __future__ import annotations

import csv
import io
import re
import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from .errors import UserError
from .files import to_json
from .terminal import visible

FORMATS = ("text", "json", "csv", "md")
WIDTH = 80  # of text
LEAST_TEXT, LONGEST_WORD = 14, 12  # to which a column of text, and a word of a heading, are broken where a table is too wide
LONGEST_NAME = 24  # letters of a name or number within a text that stay together
_BREAKS = re.compile(r"[ ;]|,(?!\d)|/(?=[a-z]{2})")  # behind these a text may be broken: not within a number or a name
_IN_NAMES = re.compile(r"[,:;/_=-]")  # nor behind these, unless the name is longer than its column
Plain = str | int | float | None


@dataclass(frozen=True)
class Figure:
    """A value, and how people read it where that is not by `show`."""

    value: Plain
    text: str


Cell = Plain | Figure


@dataclass
class Table:
    """A table for people and for machines.

    `columns` are the headings; a row has one cell for each. People read cells as `show` has them (rounded, with separators), and CSV
    has the plain values. A note is a paragraph below the table. The first `keys` columns say what a row is of. With `whole` no cell is
    broken, whatever the width. A table that is too wide is cut before the column `cut`, if it is given.
    """

    title: str
    columns: Sequence[str]
    rows: list[list[Cell]]
    notes: list[str] = field(default_factory=list)
    keys: int = 1
    whole: bool = False
    cut: int | None = None

    def cells(self) -> list[list[str]]:
        """The rows as people read them."""
        return [[show(cell) for cell in row] for row in self.rows]

    def values(self) -> list[list[Plain]]:
        """The rows as programs read them."""
        return [[cell.value if isinstance(cell, Figure) else cell for cell in row] for row in self.rows]


def show(cell: Cell) -> str:
    """A value for people: thousands separated, three significant digits, `-` for what does not exist."""
    if isinstance(cell, Figure):
        return cell.text
    if cell is None:
        return "-"
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, int):
        return f"{cell:,}"
    if isinstance(cell, float):
        return f"{cell:,.0f}" if abs(cell) >= 1000 else f"{cell:.3g}" if abs(cell) >= 0.0001 else f"{cell:.1g}"
    return cell


def counted(count: int, noun: str) -> str:
    """`1 CPU`, `1,234 CPUs`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def render(tables: Sequence[Table], form: str) -> str:
    """Tables as `text`, `md` or `csv`. CSV holds the plain values, its first column the title where there are several tables."""
    if form == "csv":
        return _csv(tables)
    return visible("\n".join(_markdown(table) if form == "md" else _text(table) for table in tables))


def _markdown(table: Table) -> str:
    def plain(cell: str) -> str:
        return _no_markup(" ".join(cell.split())).replace("|", "\\|")

    rows = [list(map(plain, row)) for row in table.cells()]
    body = _aligned(table, range(len(table.columns)), "github", list(map(plain, table.columns)), rows)
    return _framed(_no_markup(f"### {table.title}") if table.title else "", [body], list(map(_no_markup, table.notes)))


def _no_markup(text: str) -> str:
    """What in Markdown stands for a text in which others may have written HTML or a link."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace("](", "]\\(")


def document(columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    """A table of the repository's own documents, as Markdown without padding: a cell that changes changes its line alone.

    Columns of figures are aligned to the right, except the first column, which names the row.
    """
    cells = [[show(cell) for cell in row] for row in rows]
    figures = [place > 0 and any(re.match(r"[+-]?\d", row[place]) for row in cells) for place in range(len(columns))]
    lines = [columns, ["---:" if right else "---" for right in figures], *cells]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def between(text: str, begin: str, end: str, body: str) -> str:
    """A document with `body` between two lines of it. UserError where it has no such lines."""
    head, found, rest = text.partition(begin)
    _, closed, tail = rest.partition(end)
    if not (found and closed):
        raise UserError(f"there is no place in the document for what stands between {begin} and {end}; put these two lines there")
    return f"{head}{begin}\n{body}\n{end}{tail}"


def _text(table: Table) -> str:
    """In WIDTH columns. Headings and texts that do not fit are broken into lines; a table with too many columns is cut into several,
    each with the keys."""
    cells = table.cells()
    if table.whole or _row_width(_widths([table.columns, *cells])) <= WIDTH:
        bodies = [_aligned(table, range(len(table.columns)), "simple", table.columns, cells)]
    else:
        bodies = [_fitted(table, cells, columns) for columns in _parts(table, cells)]
    return _framed(_wrapped(table.title), bodies, table.notes)


def _framed(title: str, bodies: Sequence[str], notes: Sequence[str]) -> str:
    below = "".join(f"\n{_wrapped(note)}" for note in ["", *notes] if notes)
    return (f"{title}\n\n" if title else "") + "\n\n".join(bodies) + below + "\n"


def _aligned(table: Table, columns: Sequence[int], form: str, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The body of a table; `columns` are the places of its columns in the table."""
    import tabulate  # takes long to load, and most command lines print no table

    tabulate.MIN_PADDING = 0  # otherwise every heading is two columns wider, and 80 are few
    align = ["right" if place and _numeric(table, place) else "left" for place in columns]
    body = tabulate.tabulate(rows, headers=headings, tablefmt=form, disable_numparse=True, colalign=align if rows else None)
    return "\n".join(line.rstrip() for line in body.splitlines())


def _wrapped(line: str) -> str:
    return line if len(line) <= WIDTH else "\n".join(textwrap.wrap(line, WIDTH, subsequent_indent="  " if line.startswith("- ") else ""))


def _widths(rows: Sequence[Sequence[str]]) -> list[int]:
    return [max(len(line) for cell in column for line in cell.splitlines() or [""]) for column in zip(*rows, strict=True)]


def _row_width(widths: Sequence[int]) -> int:
    return sum(widths) + 2 * (len(widths) - 1)


def _least_widths(table: Table, cells: Sequence[Sequence[str]]) -> list[int]:
    """To which each column can be broken: numbers never are."""
    figures = _widths(cells) if cells else [0] * len(table.columns)
    words = [max(len(word.strip()) for word in re.split(r"(?<=[ ,:;/_=-])", heading)) for heading in table.columns]
    names = [max((_longest_name(row[place]) for row in cells), default=0) for place in range(len(table.columns))]
    return [
        max(min(word, LONGEST_WORD), width if _numeric(table, place) else max(min(width, LEAST_TEXT), min(name, LONGEST_NAME)))
        for place, (word, width, name) in enumerate(zip(words, figures, names, strict=True))
    ]


def _longest_name(text: str) -> int:
    ends = [0, *(found.end() for found in _BREAKS.finditer(text)), len(text)]
    return max(len(text[begin:end].strip()) for begin, end in pairwise(ends))


def _parts(table: Table, cells: Sequence[Sequence[str]]) -> list[list[int]]:
    """The columns of each table that a wide one is cut into."""
    least, keys = _least_widths(table, cells), list(range(table.keys))
    cut = table.cut if _row_width(least) > WIDTH else None
    parts = [list(keys)]
    for column in range(table.keys, len(table.columns)):
        too_wide = len(parts[-1]) > table.keys and _row_width([least[place] for place in [*parts[-1], column]]) > WIDTH
        if column == cut or too_wide:
            parts.append(list(keys))
        parts[-1].append(column)
    return parts


def _fitted(table: Table, cells: Sequence[Sequence[str]], columns: Sequence[int]) -> str:
    headings, rows = [table.columns[place] for place in columns], [[row[place] for place in columns] for row in cells]
    widths, least = _widths([headings, *rows]), [_least_widths(table, cells)[place] for place in columns]
    while _row_width(widths) > WIDTH and widths > least:
        widest = max((place for place, width in enumerate(widths) if width > least[place]), key=lambda place: widths[place])
        widths[widest] -= 1
    headings = [_broken(heading, width) for heading, width in zip(headings, widths, strict=True)]
    rows = [[_broken(cell, width) for cell, width in zip(row, widths, strict=True)] for row in rows]
    return _aligned(table, columns, "simple", headings, rows)


def _broken(text: str, width: int) -> str:
    """A text in lines of that width; broken behind a blank or a sign where one is near the end."""
    if "\n" in text:
        return "\n".join(_broken(line, width) for line in text.splitlines())
    lines = []
    while len(text) > width:
        cut = _cut(_BREAKS, text, width) or _cut(_IN_NAMES, text, width) or width
        lines.append(text[:cut].rstrip())
        text = text[cut:].lstrip()
    return "\n".join([*lines, text])


def _cut(signs: re.Pattern[str], text: str, width: int) -> int:
    """Where a line of that width ends at the latest; 0: such a sign is only so far in front that the line would be half empty."""
    cut = max((found.end() for found in signs.finditer(text) if len(text[: found.end()].rstrip()) <= width), default=0)
    return cut if cut > width // 2 or text[cut - 1 : cut] == " " else 0


def _numeric(table: Table, column: int) -> bool:
    cells = [row[column] for row in table.values() if row[column] is not None]
    return bool(cells) and not any(isinstance(cell, str) and not cell[:1].isdigit() for cell in cells)


def _csv(tables: Sequence[Table]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    previous: Sequence[str] | None = None
    for table in tables:
        if table.columns != previous:
            if previous is not None:
                text.write("\n")
            writer.writerow([*(["table"] if len(tables) > 1 else []), *table.columns])
            previous = table.columns
        name = table.title or table.columns[0]
        for row in table.values():
            writer.writerow(([name] if len(tables) > 1 else []) + ["" if cell is None else harmless(cell) for cell in row])
    return visible(text.getvalue())


_FORMULA = re.compile(r"[=+@\t\r-](?![\d.,]*%?$)", re.DOTALL)


def harmless(cell: Plain) -> Plain:
    """A cell that no spreadsheet takes for a formula: a text that begins like one has `'` before it."""
    return f"'{cell}" if isinstance(cell, str) and _FORMULA.match(cell) else cell


def results(found: Any, form: str, tables: Callable[[Any], Sequence[Table]], flat: Callable[[Any], Table] | None = None) -> str:
    """What was found as `json`, as text or md of `tables`, or as `csv`: of the one table that `flat` makes, if it is given."""
    if form == "json":
        return to_json(found)
    return render([flat(found)] if form == "csv" and flat else tables(found), form)
