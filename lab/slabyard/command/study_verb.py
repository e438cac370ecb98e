"""`slabyard study`: the papers' tables and figures, reproduced."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..base.errors import DONE, UserError
from ..base.files import check_outputs, export_json, write_text
from ..base.table import Cell, Figure, Table, results
from ..base.terminal import Progress, note
from ..kernels.versions import DEFAULT, VERSIONS
from .words import add_format, add_verb, file, new_file

if TYPE_CHECKING:
    from ..study.model import Done, Item, LeftOut


def add(parent: Any) -> None:
    verb = add_verb(
        parent, "study", "reproduce the papers' tables and figures", _study,
        "slabyard study --list\n  slabyard study bonwick\n  slabyard study bonwick speed --quick\n"
        "  slabyard study all --quick --report study.html\n  slabyard study all --recorded --format md",
        "Each item shows the paper's figures, ours, and whether its claims hold. With -o, an interrupted study resumes where it stopped. "
        "Items that cannot run here are left out, each with a line that says why; the status is 4 if a tool is missing.",
    )  # fmt: skip
    verb.add_argument("paper", nargs="?", metavar="PAPER", help="bonwick, ferreira, garcarz, kyritsis, yoo, sheaves, or all (papers)")
    verb.add_argument("item", nargs="?", metavar="ITEM", help="an item of the paper (default: all)")
    verb.add_argument("--list", action="store_true", help="list the papers' items")
    verb.add_argument("--quick", action="store_true", help="less work in each run; the report says what is left out")
    verb.add_argument("--recorded", action="store_true", help="run nothing; show the full run whose records come with slabyard")
    verb.add_argument(
        "-o", "--output", type=file, metavar="FOLDER", help="keep records in this folder; items with a record are not run again"
    )
    verb.add_argument(
        "--linux", choices=tuple(VERSIONS), default=DEFAULT, help="version of the kernels that are booted (default: %(default)s)"
    )
    verb.add_argument("--traces", type=file, metavar="FOLDER", help="recordings that `sheaves` replays (default: the bundled ones)")
    verb.add_argument("--report", type=new_file, metavar="FILE.html", help="also write one self-contained page, with the pictures")
    verb.add_argument("--export-json", type=new_file, metavar="FILE", help="also write the records, with the verdicts")
    add_format(verb)
    verb.usage = "slabyard study [options] PAPER [ITEM]\n       slabyard study --list"


def _study(options: argparse.Namespace) -> int:
    from ..study import papers, study, tables

    if options.list:
        sys.stdout.write(results([_about(item) for item in papers.items(papers.TITLES)], options.format, _listed))
        return DONE
    if options.paper is None:
        raise UserError("name a paper, or all; slabyard study --list shows what there is")
    if options.recorded and (options.quick or options.output or options.linux != DEFAULT):
        raise UserError("--recorded runs nothing; leave out --quick, -o and --linux")
    if options.traces is not None and not any(options.traces.glob("*.parquet")):
        raise UserError(f"{options.traces}: no recordings (*.parquet) are there; TRACES={options.traces} traces/record.sh long makes some")
    check_outputs((options.report, options.export_json))
    wanted = study.chosen(options.paper, options.item)
    left_out: list[LeftOut] = []
    if options.recorded:
        done = study.recorded(wanted)
    else:
        with Progress(len(wanted)) as progress, _going_on(options.output is not None):
            if len(wanted) == 1:
                done = study.run(wanted, options.quick, options.output, progress, lambda _: None, None, options.traces, options.linux)
            else:
                if options.output is None:
                    note("this study keeps nothing if it is interrupted; with -o FOLDER it resumes where it stopped")
                done = study.run(
                    wanted, options.quick, options.output, progress, _tell, lambda one: left_out.append(_told(one)), options.traces,
                    options.linux,
                )  # fmt: skip
    status = max((one.error.status for one in left_out), default=DONE)
    if not done:
        raise UserError("none of these items can be run here", status)
    if options.report is not None:
        write_text(options.report, tables.page(done, left_out))
    export_json(options.export_json, tables.plain(done))
    found = tables.plain(done) if options.format == "json" else done
    sys.stdout.write(results(found, options.format, lambda done: tables.tables(done, left_out), tables.flat))
    return status


@contextlib.contextmanager
def _going_on(kept: bool) -> Iterator[None]:
    """Where Ctrl-C ends the study, and what is done is kept, says how it goes on."""
    try:
        yield
    except KeyboardInterrupt:
        if kept:
            note("run the same command to go on")
        raise


def _about(item: Item) -> dict[str, Any]:
    from ..study import study

    about = {"paper": item.paper, "item": item.name, "what": item.title, "place": item.place}
    return {**about, "needs": list(item.needs), "seconds": study.seconds(item)}


def _listed(found: list[dict[str, Any]]) -> list[Table]:
    rows: list[list[Cell]] = [
        [one["paper"], one["item"], one["what"], one["place"], ", ".join(one["needs"]) or None, _minutes(one["seconds"])] for one in found
    ]
    notes = ["took: the full run, as its record says; items that share their boots take little after the first."]
    return [Table("", ["paper", "item", "what", "place", "needs", "took"], rows, notes, keys=2)]


def _minutes(seconds: int | None) -> Cell:
    if seconds is None:
        return None
    return Figure(seconds, f"{seconds} s" if seconds < 120 else f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h")


def _tell(done: Done) -> None:
    note(f"{done.item.paper} {done.item.name}: {done.outcome.verdict}")


def _told(one: LeftOut) -> LeftOut:
    note(f"{one.item.paper} {one.item.name}: left out: {one.error.message}")
    return one
