"""The report: one HTML file with everything in it, made from result records alone.

The page is meant to be mailed, archived and opened offline in ten years, so it fetches nothing. Its tables are plain HTML and
need no script; the charts are drawn by plotly.js, which travels in the file as gzip in base64 (a third of its size) and is unpacked
by the browser. A content security policy with no source but the two scripts of the page, named by their SHA-256, forbids any
request and any other script: even a cache or call site name that slipped through escaping could not run.

The parts: results.model reads records, results.ranks places allocators, charts.py makes the charts' figures, tables.py the
tables' cells, and `templates/` holds the page, its style sheet and its script. The same records give the
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
from string import Template
from typing import Any

from ..base.errors import UserError
from ..base.files import whole_file
from ..results import ranks
from ..results.model import Workload, workloads
from . import charts, tables

ROWS_IN_ALL = 12_000
FEWEST_ROWS = 20
MOST_ROWS = 200
BOOTED = "Each repetition is a fresh boot of a kernel that differs from the others in its allocator alone; all figures are medians."


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
    plotly = plotly_source()
    script = template("report.js")
    data = {"workloads": [charts.payload(workload, limit) for workload in sections]}
    return Template(template("report.html")).substitute(
        policy=policy(plotly, script),
        title=tables.text(page_title(sections)),
        style=template("report.css"),
        summary=summary(sections),
        navigation="".join(f'<a href="#{one.ident}">{tables.text(one.name)}</a>' for one in sections),
        ranking=tables.ranking(sections),
        sections="".join(section(one) for one in sections),
        data=script_json(data),
        plotly=base64.b64encode(gzip.compress(plotly.encode(), 9, mtime=0)).decode(),
        script=script,
    )


def plotly_source() -> str:
    """The text of plotly.js, from the Python package that carries it."""
    return importlib.resources.files("plotly").joinpath("package_data", "plotly.min.js").read_text("utf-8")


def template(name: str) -> str:
    """A file of the package's `templates/`."""
    return importlib.resources.files("slabyard").joinpath("templates", name).read_text("utf-8")


def policy(*scripts: str) -> str:
    """The content security policy that lets these scripts run and nothing be fetched."""
    digests = (base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts)
    sources = " ".join(f"'sha256-{digest}'" for digest in digests)
    return f"default-src 'none'; script-src {sources}; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'"


def script_json(data: Any) -> str:
    """JSON that can't end the script element that holds it."""
    packed = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return packed.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def page_title(sections: Sequence[Workload]) -> str:
    """The page's title: the workload's name where there is but one."""
    if len(sections) == 1:
        return f"Kernel allocators under {sections[0].name}"
    return f"Kernel allocators under {len(sections)} workloads"


def summary(sections: Sequence[Workload]) -> str:
    """What was compared, and the sentence of each workload."""
    text = tables.text
    names = list(dict.fromkeys(one.label for workload in sections for one in workload.replayed))
    real = sum(workload.recorded is not None for workload in sections)
    booted = all(one.run.get("substrate") == "kernel" for workload in sections for one in workload.replayed)
    how = "run on kernels with" if booted else "replayed under"
    opening = f"{counted(len(sections), 'workload')} {how} {counted(len(names), 'allocator')}: "
    opening += f"<code>{'</code>, <code>'.join(text(name) for name in names)}</code>. "
    opening += BOOTED if booted else "Every allocator got the same requests, in the same order, on the same logical CPUs."
    if real:
        opening += " The row and curve <code>recorded</code> are the real kernel that the trace was taken on."
    found = "".join(f'<li><a href="#{one.ident}">{text(one.name)}</a>: {text(ranks.sentence(one))}</li>' for one in sections)
    return f"<p>{opening}</p><ul class=findings>{found}</ul>"


def counted(count: int, noun: str) -> str:
    """`1 workload`, `5 workloads`."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def section(workload: Workload) -> str:
    """One workload's part of the page; the script fills in its legend, charts and lists."""
    text = tables.text
    return (
        f'<section id="{workload.ident}" class="workload"><h2>{text(workload.name)}</h2>'
        f'<p class="finding">{text(ranks.sentence(workload))}</p>'
        f"{tables.comparison(workload)}"
        '<div class="legend" role="group" aria-label="Show or hide allocators in all charts of this workload"></div>'
        '<div class="charts"></div><div class="lists"></div>'
        f"{tables.snapshots(workload)}{tables.given_back(workload)}{tables.every_measure(workload)}"
        f"{tables.provenance(workload)}</section>"
    )
