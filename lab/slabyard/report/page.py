"""The report: one HTML file with everything in it, made from result records alone.

The page is meant to be mailed, archived and opened offline in ten years, so it fetches nothing. The picture that it opens with is SVG
(frontier.py) and its tables are plain HTML; neither needs a script. The charts are drawn by plotly.js, which travels in the file as
gzip in base64 (less than half of its size), as the charts' figures do, and is unpacked by the browser. A content security policy with no
source but the two scripts of the page, named by their SHA-256, forbids any request and any other script: even a cache or call site name
that slipped through escaping could not run.

The parts: results.model reads records, results.ranks places allocators, charts.py makes the charts' figures, tables.py the
tables' cells, and `templates/report.html` is the page, which base.html fills in and escapes. The same records give the
same file to the byte: no clock, no random numbers, no dictionary order beyond the records' own.

The file is written beside its destination and renamed over it, so a full disk or Ctrl-C leaves the old report or none.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import importlib.resources
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from ..base import html
from ..base.errors import UserError
from ..base.files import whole_file
from ..base.table import counted
from ..base.terminal import visible
from ..results import advice, ranks, reasons
from ..results.model import Section, memory_unit, workloads
from . import charts, flames, frontier, tables

ROWS_IN_ALL = 12_000
FEWEST_ROWS = 20
MOST_ROWS = 200


def write_report(records: list[dict[str, Any]], path: Path) -> None:
    """Write the report of these records to `path`.

    Raises UserError if there is no record or the file can't be written.
    """
    if not records:
        raise UserError("no result records to report on: give the JSON that `slabyard compare --format json` writes")
    content = page(records)
    with whole_file(path) as part:
        part.write_text(content, "utf-8", "backslashreplace", newline="\n")


def page(records: Sequence[dict[str, Any]]) -> str:
    """The whole HTML file as text."""
    sections = workloads(records)
    limit = max(FEWEST_ROWS, min(MOST_ROWS, ROWS_IN_ALL // len(records)))
    plotly, script = plotly_source(), html.part("report.js")
    replayed = [one for workload in sections for one in workload.replayed]
    shown = [section(one) for one in sections]
    drawn = [_shown(charts.payload(one, limit)) for one in sections]
    return html.render(
        "report.html",
        policy=policy(plotly, script),
        title=f"Kernel allocators under {sections[0].name if len(sections) == 1 else f'{len(sections)} workloads'}",
        style=html.part("report.css"),
        names=list(dict.fromkeys(one.label for one in replayed)),
        booted=all(one.run.get("substrate") == "kernel" for one in replayed),
        recorded=any(workload.recorded for workload in sections),
        counted=counted,
        cost_note=frontier.cost_note(sections),
        pictured=any(one["picture"] for one in shown),
        ranking=tables.ranking(sections),
        undecided=ranks.undecided_note(sections),
        sections=shown,
        data=packed(json.dumps({"workloads": drawn}, separators=(",", ":"), allow_nan=False)),
        plotly=packed(plotly),
        script=script,
    )


def _shown(value: Any) -> Any:
    """What the script shows, with its texts as the rest of the page has them."""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, dict):
        return {name: _shown(one) for name, one in value.items()}
    return [_shown(one) for one in value] if isinstance(value, list | tuple) else value


def packed(text: str) -> str:
    """A text as gzip in base64, as a browser unpacks it."""
    return base64.b64encode(gzip.compress(text.encode("utf-8", "backslashreplace"), 9, mtime=0)).decode()


def plotly_source() -> str:
    """The text of plotly.js, from the Python package that carries it."""
    return importlib.resources.files("plotly").joinpath("package_data", "plotly.min.js").read_text("utf-8")


def policy(*scripts: str) -> Markup:
    """The content security policy that lets these scripts run and nothing be fetched."""
    digests = (base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts)
    sources = " ".join(f"'sha256-{digest}'" for digest in digests)
    rest = "style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'"
    return Markup(f"default-src 'none'; script-src {sources}; {rest}")


def section(workload: Section) -> dict[str, Any]:
    """One workload's part of the page; the script fills in its legend, charts and lists."""
    unit, _ = memory_unit(workload)
    blocks = {f"Memory at the snapshots ({unit})": tables.snapshots(workload), "Memory given back": tables.given_back(workload)}
    facts, differences = tables.provenance(workload)
    return {
        "id": workload.ident,
        "name": workload.name,
        "picture": frontier.picture(workload),
        "shows": frontier.sentence(workload),
        "sentence": " ".join(text for text in (ranks.sentence(workload), ranks.other_start(workload)) if text),
        "reasons": [tables.reason_cells(one) for one in reasons.reasons(workload) if one.text],
        "base": reasons.base_text(workload),
        "advice": advice.lines(workload),
        "comparisons": tables.comparisons(workload),
        "flames": flames.pictures(workload),
        "blocks": [(title, grid) for title, grid in blocks.items() if grid],
        "measures": tables.every_measure(workload),
        "facts": list(facts.items()),
        "differences": differences,
        "command": tables.command(workload),
    }
