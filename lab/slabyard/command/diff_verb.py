"""`slabyard diff OLD NEW`, the part of `compare --baseline` that is the same, and `info` of dumps."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..base.errors import DONE, REGRESSION, USAGE, UserError
from ..base.files import check_outputs, to_json
from ..base.table import results
from ..base.terminal import note, printable
from .status import completeness
from .words import add_format, add_verb, file, new_file

if TYPE_CHECKING:
    from ..diff.model import Difference
    from ..results.records import Record
    from ..trace.dumps import Dump

DEFAULT = "memory>2%%,time>10%%,cost>1%%"  # of diff.conditions, which is loaded where it is needed
CONDITIONS = "memory, peak, kept, time, cost, fragmentation or a measure, > and a limit: 2%%, 64K, 0"


def add(parent: Any) -> None:
    verb = add_verb(
        parent, "diff", "what changed between two results, traces or slabinfos", _diff,
        "slabyard diff old.json new.json --fail-if 'memory>2%,time>10%,cost>1%'\n"
        "  slabyard diff kernel-a.parquet kernel-b.parquet\n"
        "  slabyard diff slabinfo.before slabinfo.after\n"
        "  slabyard diff old.json new.json --format md --junit diff.xml",
        "OLD and NEW are of one kind: result records, traces, or dumps of /proc/slabinfo, slabtop, /proc/allocinfo or an out-of-memory "
        "report.",
    )  # fmt: skip
    verb.add_argument("old", type=file, metavar="OLD")
    verb.add_argument("new", type=file, metavar="NEW")
    verb.add_argument("--fail-if", metavar="CONDITIONS", help=f"exit with status 1 where one of them holds: {CONDITIONS}")
    verb.add_argument("--junit", type=new_file, metavar="FILE.xml", help="also write what was compared as tests, for a CI")
    verb.add_argument("--all", action="store_true", help="every measure and every cache, not those that changed most alone")
    add_format(verb)


def add_baseline(verb: argparse.ArgumentParser) -> None:
    """The options of a comparison that is held against an earlier one."""
    verb.add_argument("--baseline", type=file, metavar="FILE", help="result records to compare with; status 1 on a regression")
    verb.add_argument("--fail-if", metavar="CONDITIONS", help=f"with --baseline: what a regression is (default: {DEFAULT}); {CONDITIONS}")
    verb.add_argument("--junit", type=new_file, metavar="FILE.xml", help="with --baseline: also write what was compared as tests")


def _diff(options: argparse.Namespace) -> int:
    from ..diff import conditions, files

    check_outputs((options.junit,), (options.old, options.new))
    wanted = [] if options.fail_if is None else conditions.parse(options.fail_if)
    found = files.compare(options.old, options.new, wanted)
    return _told(found, options, options.all)


class Baseline:
    """What a comparison is held against: read before the comparison begins, as that takes long."""

    def __init__(self, options: argparse.Namespace) -> None:
        from ..diff import conditions, pairs

        self.options = options
        for name in ("fail_if", "junit"):
            if getattr(options, name) is not None and options.baseline is None:
                raise UserError(f"--{name.replace('_', '-')} needs --baseline FILE, the records to compare with")
        self.records: Sequence[Any] | None = None
        if options.baseline is None:
            return
        self.conditions = conditions.parse(conditions.DEFAULT if options.fail_if is None else options.fail_if)
        self.records = pairs.read(options.baseline)
        if self.records is None:
            raise UserError(f"{options.baseline}: no result records; slabyard compare --export-json writes them")

    def told(self, new: Sequence[Record]) -> int:
        """Prints the difference; the exit status."""
        from ..diff import pairs

        if self.records is None:
            return DONE
        names = (printable(self.options.baseline.name), "this run")
        found = pairs.compare(self.records, new, names, {one.measure for one in self.conditions})
        found.judge(self.conditions)
        return _told(found, self.options, every=False)


def _told(found: Difference, options: argparse.Namespace, every: bool) -> int:
    from ..diff import junit, tables

    if options.junit is not None:
        junit.write(found, options.junit)
    if options.format == "json":
        sys.stdout.write(to_json(found.as_json()))
    else:
        sys.stdout.write(results(found, options.format, lambda one: tables.tables(one, every), tables.flat))
    status = completeness(found.incomplete)
    for row in found.failures[:MOST_TOLD]:
        of = f"{row.workload} under {row.run}" if row.run else row.workload
        note(f"regression: {of}: {row.measure} {tables.change(row)} ({', '.join(row.failed)})")
    if len(found.failures) > MOST_TOLD:
        note(f"regression: and {len(found.failures) - MOST_TOLD} more")
    if found.conditions and not any(found.of(one) for one in found.conditions):
        asked = ", ".join(one.text for one in found.conditions)
        note(f"nothing was held against {asked}: {found.old} and {found.new} do not both have what it measures")
        return USAGE
    return REGRESSION if found.failures else status


MOST_TOLD = 5


def describe_dump(path: Path, found: Sequence[Dump], options: argparse.Namespace) -> int:
    """`info` of a dump."""
    from ..trace import dump_info

    about = dump_info.describe(path, found)
    most = None if options.caches or options.format == "csv" else dump_info.SHOWN
    sys.stdout.write(results(about, options.format, lambda one: dump_info.tables(one, most), lambda one: dump_info.tables(one, None)[0]))
    return completeness({str(path): found[-1].incomplete})
