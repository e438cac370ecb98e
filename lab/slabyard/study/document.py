"""The records of a full study as a document of the repository: Markdown with short lines, which changes where a figure does alone."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

from ..base.table import Cell, Table, document, show
from .model import Done, Outcome
from .papers import TITLES, stands_for
from .tables import counts, made, sheet_table

WIDTH, TABLE_WIDTH = 116, 120
MOST_IN_ONE = 400  # letters of a reason


def text(done: Sequence[Done]) -> str:
    """All items with what comes of them, then a chapter for each paper."""
    papers = {paper: [one for one in done if one.item.paper == paper] for paper in TITLES}
    parts = ["## All tables and figures"]
    for paper, of_paper in papers.items():
        rows: list[list[Cell]] = [[one.item.place, f"[{one.item.title}](#{one.item.ident})", one.outcome.verdict] for one in of_paper]
        parts += [document([paper.capitalize(), "what", "verdict"], rows)] if of_paper else []
    for paper, of_paper in papers.items():
        if of_paper:
            parts += [f"## {paper.capitalize()}", wrapped(f"{TITLES[paper]}.")]
            parts += [part for one in of_paper for part in _item(one)]
    return "\n\n".join(parts)


def _item(one: Done) -> Iterable[str]:
    outcome = one.outcome
    yield f'<a id="{one.item.ident}"></a>'
    yield f"### {one.item.heading}"
    where = f"`slabyard study {one.item.paper} {one.item.name}`"
    yield wrapped(f"**{_sentence(outcome.verdict)}.** Claims that hold: {counts(one)}. {where}, on {made(one.record)}.")
    yield _claims(outcome)
    yield from (_table(sheet_table(sheet.title, sheet)) for sheet in outcome.sheets)
    if outcome.listing:
        yield "\n".join(f"    {line}" for line in outcome.listing)
    yield from (wrapped(note) for note in outcome.notes)
    if outcome.stands_for:
        yield wrapped(stands_for(one.item.paper, outcome.stands_for))


def _table(table: Table) -> str:
    rows = [[show(cell) for cell in row] for row in table.rows]
    notes = "".join(f"\n\n{wrapped(note)}" for note in table.notes)
    return f"{wrapped(f'{table.title}:')}\n\n{_narrow(table.columns, rows)}{notes}"


def _narrow(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table, or where its lines are too long, one with the first half of the columns and one with the second, each
    behind the first column."""
    whole, half = document(columns, rows), len(columns) // 2 + 1
    if half == len(columns) or max(map(len, whole.splitlines())) <= TABLE_WIDTH:
        return whole
    parts = (slice(1, half), slice(half, None))
    return "\n\n".join(_narrow([columns[0], *columns[part]], [[row[0], *row[part]] for row in rows]) for part in parts)


def _claims(outcome: Outcome) -> str:
    """A list, each claim with its reason below; a long reason as a list of its own."""
    lines = []
    for claim in outcome.claims:
        lines.append(wrapped(f"{_sentence(claim.verdict)}: {claim.text.rstrip('.')}.", "- ", "  "))
        reasons = claim.because.rstrip(".").split("; ") if len(claim.because) > MOST_IN_ONE else [claim.because.rstrip(".")]
        lines += [wrapped(f"{reason}.", "  - ", "    ") for reason in reasons if reason]
    return "\n".join(lines)


def _sentence(words: str) -> str:
    return words[:1].upper() + words[1:]


def wrapped(line: str, first: str = "", further: str = "") -> str:
    return textwrap.fill(
        line, WIDTH, initial_indent=first, subsequent_indent=further, break_on_hyphens=False, break_long_words=False
    )  # fmt: skip
