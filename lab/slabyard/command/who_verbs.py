"""Who holds memory in a trace: the views of `info`, and `export` to the tools that show profiles and counters.

The options of both are here, beside what they do, so that parsers.py knows nothing of them but their names.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from ..base.errors import UserError
from ..base.files import check_outputs, to_json
from ..base.table import render
from .status import completeness
from .words import add_verb, count, file, new_file

if TYPE_CHECKING:
    from ..trace.file import Trace

MOST_LINES = 1_000_000
EXPORTS = ("pprof", "folded", "speedscope", "perfetto", "csv", "parquet")


def add_views(verb: argparse.ArgumentParser) -> None:
    """The options of info that show who holds memory."""
    verb.add_argument("--caches", action="store_true", help="live bytes, allocations, frees and growth by cache, kmalloc by size")
    verb.add_argument("--call-sites", action="store_true", help="the same by the function that allocates")
    verb.add_argument("--tasks", action="store_true", help="the same by the task that allocates")
    verb.add_argument("--pinned", action="store_true", help="call sites whose objects pin free room: their slabs can't be given back")
    add_moments(verb)
    verb.add_argument(
        "--sort", choices=("live", "growth", "peak", "allocations"), metavar="KEY", help="live (default), growth, peak, allocations"
    )
    verb.add_argument("--lines", type=count(MOST_LINES), metavar="N", help="rows of each table (default: 30)")


def add_moments(verb: argparse.ArgumentParser) -> None:
    """The part of the trace that is looked at."""
    verb.add_argument("--from", dest="since", metavar="WHEN", help="count from here on: a mark, seconds since the first event, or peak")
    verb.add_argument("--to", dest="until", metavar="WHEN", help="count to here (default: the end)")


def add_export(parent: Any) -> None:
    """The verb export."""
    verb = add_verb(
        parent, "export", "who holds memory in a trace, for other tools", export_trace,
        "slabyard export t.parquet --format pprof -o t.pb.gz\n"
        "  slabyard export t.parquet --format folded --weight pinned --to peak -o t.txt",
        "Profiles of memory by stack or call site and cache; counters over time for Perfetto; tables as CSV and Parquet.",
    )  # fmt: skip
    verb.add_argument("trace", type=file, metavar="T.parquet")
    verb.add_argument("--format", choices=EXPORTS, required=True, metavar="FORM", help=", ".join(EXPORTS))
    verb.add_argument("-o", "--output", type=new_file, required=True, metavar="FILE", help="the file to write")
    verb.add_argument(
        "--weight", choices=("live", "requested", "growth", "peak", "pinned", "allocations"), metavar="WHAT",
        help="weight in folded and speedscope: live (default), requested, growth, peak, pinned (bytes), or allocations",
    )  # fmt: skip
    add_moments(verb)


def export_trace(options: argparse.Namespace) -> int:
    from ..attribution import export, usage
    from ..trace.file import Trace

    if options.weight is not None and options.format not in export.PROFILES:
        raise UserError(f"--weight goes with --format {' and '.join(export.PROFILES)}; {options.format} has all of them")
    check_outputs((options.output,), (options.trace,))
    with Trace(options.trace) as trace:
        window = usage.window_of(trace, options.since, options.until)
        export.export(trace, options.format, options.output, window, options.weight or "live")
        return completeness({str(options.trace): trace.metadata.incomplete})


def wants_views(options: argparse.Namespace) -> bool:
    """Whether info shows who holds memory. UserError for options that have no meaning without."""
    if options.caches or options.call_sites or options.tasks or options.pinned:
        return True
    for name, value in (("from", options.since), ("to", options.until), ("sort", options.sort), ("lines", options.lines)):
        if value is not None:
            raise UserError(f"--{name} goes with --caches, --call-sites, --tasks or --pinned")
    return False


def show_views(trace: Trace, options: argparse.Namespace) -> None:
    """Prints the views that were asked for."""
    from ..attribution import views

    asked = views.Asked(
        [view for view in views.VIEWS if getattr(options, view)], options.pinned, options.since, options.until, options.sort or "live"
    )
    found = views.describe(trace, asked)
    if options.format == "json":
        text = to_json(found)
    else:
        text = render(views.tables(found, None if options.format == "csv" else options.lines or views.SHOWN), options.format)
    sys.stdout.write(text)
