"""What leaves the program: tables, files and progress.

Standard output carries results alone, so that it can be piped. Progress and notes go to standard error; a progress bar
and colour only when that is a terminal, and no colour under NO_COLOR (rich sees to that). A file is written under a temporary name
in its own directory and renamed when it is whole, so nobody ever finds half of one, whatever ends the program. A symbolic link stays
one: its target is replaced. What is no regular file (a device, a FIFO) is written to, never replaced: with what was made, once it is whole.
"""

from __future__ import annotations

import contextlib
import csv
import errno
import io
import json
import os
import re
import shutil
import stat
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tabulate

from .errors import UserError

tabulate.MIN_PADDING = 0  # otherwise every heading is two columns wider, and 80 are few

FORMATS = ("text", "json", "csv", "md")
WIDTH = 80  # of text
LEAST_TEXT, LONGEST_WORD = 14, 12  # to which a column of text, and a word of a heading, are broken where a table is too wide
_BREAKS = " ,:;/_=-"  # behind which a text may be broken
Cell = str | int | float | None


@dataclass
class Table:
    """A table for people and for machines.

    `columns` are the headings; a row has one cell for each. `shown` are the same rows as people read them (rounded,
    with separators); `rows` are the plain values for CSV. The first `keys` columns say what a row is of. With `whole` no cell is
    broken, whatever the width.
    """

    title: str
    columns: list[str]
    rows: list[list[Cell]]
    shown: list[list[str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    keys: int = 1
    whole: bool = False

    def cells(self) -> list[list[str]]:
        """The rows as people read them."""
        return self.shown or [[show(cell) for cell in row] for row in self.rows]


def show(cell: Cell) -> str:
    """A value for people: thousands separated, three significant digits, `-` for what does not exist."""
    if cell is None:
        return "-"
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, int):
        return f"{cell:,}"
    if isinstance(cell, float):
        return f"{cell:,.0f}" if abs(cell) >= 1000 else f"{cell:.3g}" if abs(cell) >= 0.0001 else f"{cell:.1g}"
    return cell


def render(tables: Sequence[Table], form: str) -> str:
    """Tables as `text`, `md` or `csv`. CSV holds the plain values, its first column the title where there are several tables."""
    if form == "csv":
        return _csv(tables)
    return "\n".join(_markdown(table) if form == "md" else _text(table) for table in tables)


def _markdown(table: Table) -> str:
    def plain(cell: str) -> str:
        return " ".join(cell.split()).replace("|", "\\|")

    rows = [list(map(plain, row)) for row in table.cells()]
    body = _aligned(table, range(len(table.columns)), "github", list(map(plain, table.columns)), rows)
    return _framed(f"### {table.title}" if table.title else "", [body], table.notes)


def _text(table: Table) -> str:
    """In WIDTH columns: headings and texts go on below themselves where there is no room, and what are too many columns become
    several tables, each with the keys."""
    cells = table.cells()
    if table.whole or _row_width(_widths([table.columns, *cells])) <= WIDTH:
        bodies = [_aligned(table, range(len(table.columns)), "simple", table.columns, cells)]
    else:
        bodies = [_fitted(table, cells, columns) for columns in _parts(table, cells)]
    return _framed(_wrapped(table.title), bodies, [_wrapped(note) for note in table.notes])


def _framed(title: str, bodies: Sequence[str], notes: Sequence[str]) -> str:
    return (f"{title}\n\n" if title else "") + "\n\n".join(bodies) + "".join(f"\n{note}" for note in ["", *notes] if notes) + "\n"


def _aligned(table: Table, columns: Sequence[int], form: str, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The body of a table; `columns` are the places of its columns in the table."""
    align = ["right" if place and _numeric(table, place) else "left" for place in columns]
    body = tabulate.tabulate(rows, headers=headings, tablefmt=form, disable_numparse=True, colalign=align if rows else None)
    return "\n".join(line.rstrip() for line in body.splitlines())


def _wrapped(line: str) -> str:
    return line if len(line) <= WIDTH else "\n".join(textwrap.wrap(line, WIDTH))


def _widths(rows: Sequence[Sequence[str]]) -> list[int]:
    return [max(len(line) for cell in column for line in cell.splitlines() or [""]) for column in zip(*rows, strict=True)]


def _row_width(widths: Sequence[int]) -> int:
    return sum(widths) + 2 * (len(widths) - 1)


def _least_widths(table: Table, cells: Sequence[Sequence[str]]) -> list[int]:
    """To which each column can be broken: numbers never are."""
    figures = _widths(cells) if cells else [0] * len(table.columns)
    words = [max(map(len, re.findall(f"[^{_BREAKS}]+[{_BREAKS}]?", heading)), default=0) for heading in table.columns]
    return [
        max(min(word, LONGEST_WORD), width if _numeric(table, place) else min(width, LEAST_TEXT))
        for place, (word, width) in enumerate(zip(words, figures, strict=True))
    ]


def _parts(table: Table, cells: Sequence[Sequence[str]]) -> list[list[int]]:
    """The columns of each table that a wide one is cut into."""
    least, keys = _least_widths(table, cells), list(range(table.keys))
    parts = [list(keys)]
    for column in range(table.keys, len(table.columns)):
        if len(parts[-1]) > table.keys and _row_width([least[place] for place in [*parts[-1], column]]) > WIDTH:
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
        cut = max(text.rfind(sign, 0, width + (sign == " ")) for sign in _BREAKS) + 1
        if (cut <= width // 2 and text[cut - 1] != " ") or cut == 0:
            cut = width
        lines.append(text[:cut].rstrip())
        text = text[cut:].lstrip()
    return "\n".join([*lines, text])


def _numeric(table: Table, column: int) -> bool:
    cells = [row[column] for row in table.rows if row[column] is not None]
    return bool(cells) and not any(isinstance(cell, str) and not cell[:1].isdigit() for cell in cells)


def _csv(tables: Sequence[Table]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    previous: list[str] | None = None
    for table in tables:
        if table.columns != previous:
            if previous is not None:
                text.write("\n")
            writer.writerow((["table"] if len(tables) > 1 else []) + table.columns)
            previous = table.columns
        name = table.title or table.columns[0]
        for row in table.rows:
            writer.writerow(([name] if len(tables) > 1 else []) + ["" if cell is None else cell for cell in row])
    return text.getvalue()


def to_json(value: Any) -> str:
    """JSON with two blanks of indentation and keys in the order given, lists of plain numbers on one line."""
    return _one_line_lists(value, 0) + "\n"


def results(found: Any, form: str, flat: Callable[[Any], Table], tables: Callable[[Any], Sequence[Table]]) -> str:
    """Result records (or one) as `json`, as `csv` of the one table that `flat` makes of them, or as text or md of `tables`."""
    if form == "json":
        return to_json(found)
    return render([flat(found)] if form == "csv" else tables(found), form)


def _one_line_lists(value: Any, depth: int) -> str:
    pad, inner = "  " * depth, "  " * (depth + 1)
    if isinstance(value, dict) and value:
        items = [f"{inner}{json.dumps(str(k))}: {_one_line_lists(v, depth + 1)}" for k, v in value.items()]
        return "{\n" + ",\n".join(items) + f"\n{pad}}}"
    if isinstance(value, list) and any(isinstance(item, dict) for item in value):
        return "[\n" + ",\n".join(inner + _one_line_lists(item, depth + 1) for item in value) + f"\n{pad}]"
    return json.dumps(value)


def _check_writable(path: Path) -> None:
    """Refuses an output before the work for it is done."""
    if path.is_dir():
        raise UserError(f"{path}: is a folder; name a file in it")
    folder = Path(os.path.realpath(path)).parent
    if not is_special(path) and not folder.is_dir():
        raise UserError(f"{path}: there is no folder {folder}; make it first")
    if not os.access(path if is_special(path) else folder, os.W_OK):
        raise UserError(f"{path}: permission denied")


def check_folder(path: Path) -> None:
    """Refuses a folder to write into, made if need be, before the work for it is done."""
    above = next(one for one in (path.absolute(), *path.absolute().parents) if os.path.lexists(one))
    if not above.is_dir():
        raise UserError(f"{path}: {above} is no folder; name another one")
    if not os.access(above, os.W_OK):
        raise UserError(f"{path}: permission denied")


def check_outputs(outputs: Sequence[Path | None], inputs: Sequence[Path] = ()) -> None:
    """Refuses outputs before the work for them is done: one that cannot be written, is read as well, or is named twice."""
    given = [path for path in outputs if path is not None]
    for at, path in enumerate(given):
        _check_writable(path)
        if any(same_file(path, other) for other in inputs):
            raise UserError(f"{path}: would be written over what is read; name another file")
        if any(same_file(path, other) for other in given[:at]):
            raise UserError(f"{path}: is to be two outputs at once; name two files")


def same_file(one: Path, other: Path) -> bool:
    """Whether both name one file, that is there or is to be. Of what is no regular file, never."""
    if is_special(one):
        return False
    try:
        return one.samefile(other)
    except OSError:
        return os.path.realpath(one) == os.path.realpath(other)


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Gives a temporary name beside `path`; renames it to `path` when the block ends well, removes it otherwise.

    Where `path` is a device or a FIFO, the temporary file lies in the folder for such, and is copied. UserError when the directory
    cannot be written or the disk is full.
    """
    direct = is_special(path)
    target = path if direct else Path(os.path.realpath(path))
    try:
        handle, name = tempfile.mkstemp(prefix=f".{target.name[:40]}.", suffix=".part", dir=None if direct else target.parent)
        os.close(handle)
    except OSError as error:
        raise UserError(describe_os_error(error, tempfile.gettempdir() if direct else path)) from error
    part = Path(name)
    try:
        yield part
        if direct:
            _pour(part, target)
        else:
            umask = os.umask(0)
            os.umask(umask)
            part.chmod(0o666 & ~umask)
            part.replace(target)
    except BrokenPipeError:
        raise UserError(f"{path}: nobody reads it any more") from None
    except OSError as error:
        raise UserError(describe_os_error(error, path)) from error
    finally:
        part.unlink(missing_ok=True)


def export_json(path: Path | None, found: Any) -> None:
    """Writes result records to a file; None: to none. UserError as whole_file."""
    if path is not None:
        with whole_file(path) as part:
            part.write_text(to_json(found))


def is_special(path: Path) -> bool:
    """Whether there is something at `path`, or where it links to, that is neither a regular file nor a folder."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def _pour(source: Path, target: Path) -> None:
    """Writes a file's bytes into what is there already."""
    with source.open("rb") as bytes_, os.fdopen(os.open(target, os.O_WRONLY), "wb") as out:
        shutil.copyfileobj(bytes_, out)


def printable(name: str) -> str:
    """A file's name, or what has such in it, on one line, as `\\n` and `\\xff` where it has what cannot be shown."""
    text = os.fsencode(name).decode(errors="backslashreplace")
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)


def describe_os_error(error: OSError, path: Path | str) -> str:
    """One line about a file that could not be read or written."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"no space left on the disk of {path}; free some, or name a file on another disk"
    if error.errno == errno.EFBIG:
        return f"{path}: too large for a file here; raise the limit (ulimit -f)"
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return "too many files are open; raise the limit (ulimit -n)"
    if error.errno == errno.ENOENT:
        return f"{path}: no such file or directory"
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"{path}: permission denied"
    return f"{path}: {(error.strerror or str(error)).lower()}"


def note(message: str) -> None:
    """One line on standard error, for what the user should know beside the result. Bytes that are no text, and characters that
    a terminal obeys, are shown as `\\xff`."""
    print(f"slabyard: {printable(' '.join(message.split()))}", file=sys.stderr, flush=True)


class Progress:
    """Steps of a long job on standard error: a bar on a terminal, a line for each stage elsewhere."""

    def __init__(self, total: int) -> None:
        self.total, self.done = total, 0
        self.bar: Any = None
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
            from rich.progress import Progress as Bar

            self.bar = Bar(
                TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
                console=Console(stderr=True), transient=True,
            )  # fmt: skip
            self.task = self.bar.add_task("", total=total)

    def __enter__(self) -> Progress:
        if self.bar:
            self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.bar:
            self.bar.stop()

    def step(self, description: str, advance: int = 1) -> None:
        """`description` is what is being done now; `advance` steps of the total are behind us once it is done."""
        self.done += advance
        if self.bar:
            self.bar.update(self.task, description=description, completed=self.done)

    def expect(self, more: int) -> None:
        """The job turns out to have more steps."""
        self.total += more
        if self.bar:
            self.bar.update(self.task, total=self.total)

    def stage(self, description: str) -> None:
        """A new stage begins."""
        if self.bar:
            self.bar.update(self.task, description=description)
        else:
            note(description)
