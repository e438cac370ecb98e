"""The outcome of a study, as tables for people, as rows for programs, and as one page."""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Sequence
from typing import Any

from markupsafe import Markup, escape

from ..base import html
from ..base.table import Cell, Figure, Table, counted, show
from .model import HOLDS, UNTOLD, Done, LeftOut, Sheet
from .model import Figure as Measured
from .papers import PAPERS, TITLES, stands_for

MOST_COLUMNS = 8  # of figures, across
_BOLD = re.compile(r"\*\*(.+?)\*\*")  # of a note, as Markdown has it


def summary(done: Sequence[Done], left_out: Sequence[LeftOut]) -> Table:
    """A row for each item."""
    rows: list[list[Cell]] = [[one.item.paper, one.item.name, one.item.title, one.outcome.verdict, counts(one)] for one in done]
    rows += [[one.item.paper, one.item.name, one.item.title, "left out", None] for one in left_out]
    return Table("", ["paper", "item", "what", "verdict", "claims"], rows, keys=2)


def counts(one: Done) -> str:
    """How many of its claims hold, `3 of 5`, and of how many that cannot be told."""
    verdicts = [claim.verdict for claim in one.outcome.claims]
    untold = verdicts.count(UNTOLD)
    return f"{verdicts.count(HOLDS)} of {len(verdicts)}{f', {untold} cannot be told' if untold else ''}"


def _said(one: Done) -> str:
    return "what the paper says" if one.item.paper in PAPERS else "what is expected"


def quick_note(one: Done) -> str:
    """What a quick run's report says of what it leaves out; nothing of a full one's."""
    return f"A quick run: less work and fewer repetitions than the full one. {one.item.quick}".strip() if one.record["quick"] else ""


def tables(done: Sequence[Done], left_out: Sequence[LeftOut] = ()) -> list[Table]:
    """All of it: of each item its claims, then its sheets; last the summary, if there are several items."""
    found: list[Table] = []
    for one in done:
        outcome = one.outcome
        head = f"{one.item.paper} {one.item.name}: {one.item.title} ({one.item.place}): {outcome.verdict}"
        claims: list[list[Cell]] = [[claim.text, claim.verdict, claim.because or None] for claim in outcome.claims]
        notes = [stands_for(one.item.paper, outcome.stands_for)] if outcome.stands_for else []
        notes += [note] if (note := quick_note(one)) else []
        found.append(Table(head, [_said(one), "verdict", "why"], claims, [*(note.replace("**", "") for note in outcome.notes), *notes]))
        found += [sheet_table(sheet.title, sheet) for sheet in outcome.sheets]
    return [*found, summary(done, left_out)] if len(done) + len(left_out) > 1 else found


def sheet_table(title: str, sheet: Sheet) -> Table:
    """A sheet as a table: the paper's figure, ours, and the ratio; ours alone where the paper has none of them, and then across where its
    rows have names of two parts."""
    if sheet.table is not None:
        return dataclasses.replace(sheet.table, title=title)
    paper, ours = _with_unit("paper", sheet.paper_unit or sheet.unit), _with_unit("ours", sheet.unit)
    if all(one.paper is None for _, one in sheet.rows):
        if across := _across(sheet):
            return Table(_with_unit(title, sheet.unit), across[0], across[1:], list(sheet.notes))
        return Table(title, ["", ours], [[name, shown(one)] for name, one in sheet.rows], list(sheet.notes))
    last = ["ours / paper"] if sheet.ratios else []
    rows = [[name, _paper(one), shown(one), *([one.ratio] if sheet.ratios else [])] for name, one in sheet.rows]
    return Table(title, ["", paper, ours, *last], rows, list(sheet.notes))


def _paper(one: Measured) -> Cell:
    return None if one.printed is None else Figure(one.of_paper, one.printed)


def _with_unit(name: str, unit: str) -> str:
    return f"{name}, {unit}" if unit else name


def _across(sheet: Sheet) -> list[list[Any]]:
    """Rows as `SLAB, 1 CPU` as lines and columns, the head first; nothing where these are not all there, or too many across."""
    for separator in (", ", ": "):
        names = [name.rpartition(separator)[::2] for name, _ in sheet.rows]
        down, along = ([*dict.fromkeys(part)] for part in zip(*names, strict=True))
        figures = dict(zip(names, (one for _, one in sheet.rows), strict=True))
        whole = len(figures) == len(sheet.rows) == len(down) * len(along)
        if whole and all((*down, *along)) and len(down) > 1 and 1 < len(along) <= MOST_COLUMNS:
            return [["", *along], *([name, *(shown(figures[name, column]) for column in along)] for name in down)]
    return []


def shown(one: Measured) -> Cell:
    """With best and worst, where there are several repetitions that differ."""
    if one.ours is None or one.least is None or one.greatest is None or show(one.least) == show(one.greatest):
        return one.ours
    return Figure(one.ours, f"{show(one.ours)} ({show(one.least)} to {show(one.greatest)})")


def flat(done: Sequence[Done]) -> Table:
    """For CSV: a row for each figure."""
    rows: list[list[Cell]] = [
        [one.item.paper, one.item.name, sheet.title, name, sheet.unit,
         figure.of_paper, figure.ours, figure.least, figure.greatest, figure.ratio if sheet.ratios else None]
        for one in done for sheet in one.outcome.sheets for name, figure in sheet.rows
    ]  # fmt: skip
    return Table("", ["paper", "item", "sheet", "row", "unit", "of_paper", "ours", "least", "greatest", "ratio"], rows)


def plain(done: Sequence[Done]) -> list[dict[str, Any]]:
    """For JSON: the records, and what comes of them."""
    return [
        {
            **one.record,
            "item": one.item.name,
            "title": one.item.title,
            "place": one.item.place,
            "verdict": one.outcome.verdict,
            "claims": [
                {"text": claim.text, "holds": claim.holds, "verdict": claim.verdict, "because": claim.because}
                for claim in one.outcome.claims
            ],
            "sheets": [
                {
                    "title": sheet.title, "unit": sheet.unit, "paper_unit": sheet.paper_unit or sheet.unit,
                    "rows": [{"row": name, "paper": figure.of_paper, "printed": figure.printed, "ours": figure.ours,
                              "least": figure.least, "greatest": figure.greatest}
                             for name, figure in sheet.rows],
                }
                for sheet in one.outcome.sheets
            ],
        }
        for one in done
    ]  # fmt: skip


def made(record: dict[str, Any]) -> str:
    """Where, when and with what a record was made, as far as it says."""
    machine, versions = record["machine"], record["versions"]
    named = {"commit": "of commit {}", "compiler": "{}", "qemu": "QEMU {}", "valgrind": "{}", "linux": "kernels of Linux {}"}
    parts = [machine["cpu"], counted(machine["cpus"], "CPU"), f"Linux {machine['kernel']}", record.get("date", "")]
    parts += [f"slabyard {versions['slabyard']}", *(text.format(versions[name]) for name, text in named.items() if name in versions)]
    return ", ".join(filter(None, parts))


def page(done: Sequence[Done], left_out: Sequence[LeftOut] = ()) -> str:
    """One HTML file that needs no network, with the pictures."""
    shown = [
        {
            "ident": one.item.ident,
            "heading": one.item.heading,
            "title": one.item.title,
            "place": one.item.place,
            "paper": one.item.paper,
            "verdict": (outcome := one.outcome).verdict,
            "counts": counts(one),
            "sheets": [sheet_table(sheet.title, sheet) for sheet in outcome.sheets],
            "claims": outcome.claims,
            "pictures": [
                (beside, [(picture.title, Markup(picture.svg)) for picture in group])
                for beside, group in itertools.groupby(outcome.pictures, lambda picture: picture.beside)
            ],
            "said": _said(one),
            "notes": [Markup(_BOLD.sub(r"<strong>\1</strong>", str(escape(note)))) for note in outcome.notes],
            "listing": outcome.listing,
            "stands_for": outcome.stands_for and stands_for(one.item.paper, outcome.stands_for),
            "quick": quick_note(one),
            "made": made(one.record),
        }
        for one in done
    ]
    papers = {name: title for name, title in TITLES.items() if any(one["paper"] == name for one in shown)}
    title = "The papers on slab allocators, reproduced" if papers.keys() & set(PAPERS) or not papers else "Slab allocators, studied"
    return html.render("study.html", title=title, style=html.part("study.css"), papers=papers, items=shown, left_out=left_out)
