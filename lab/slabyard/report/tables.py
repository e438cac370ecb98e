"""The tables of the report as HTML: they stand in the file itself and need no script.

Every text from a record (cache names, call sites, host names and file names were written by others) passes `text`, which escapes it
for element content and for quoted attributes alike. Nothing else puts a record's strings into the page.

A table's unit stands in its header and holds for the whole column; a missing measure is an en dash, zero is 0. Times carry
their 95% interval in a second line, since two medians alone would invite a ranking that the runs don't support. Deterministic
measures have no interval. The best value of a ranked measure is set in bold, ties included; for the meaning of
ranks see ranks.
"""

from __future__ import annotations

import html
import math
import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ..results.model import (
    Estimate,
    Series,
    Workload,
    allocator_label,
    colour,
    dash,
    estimate,
    memory_text,
    memory_unit,
    number,
    page_bytes,
    plain,
    rows,
)
from ..results.ranks import MEASURES, rank_table, time_name

DASH = "\u2013"
FACTS = {"command": "recorded command", "lost": "events lost in recording", "pages": "pages at the start", "repetition": "repetitions"}
NESTED = ("series", "caches", "call_sites", "zones", "snapshots", "intervals", "samples", "caches_alive")


def text(value: Any) -> str:
    """A value as text that is safe in HTML elements and quoted attributes."""
    return html.escape(str(value).encode("utf-8", "replace").decode(), quote=True)


def figure(value: float | int | None, decimals: int = 0) -> str:
    """A number with thousands separators, an en dash for None."""
    return DASH if value is None else f"{value:,.{decimals}f}"


def percent(value: Any) -> str:
    """A share from 0 to 1 as a percentage with one decimal."""
    known = number(value)
    return DASH if known is None else f"{known * 100:.1f}"


def significant(value: float) -> str:
    """Three significant digits, more before the decimal point if need be, without an exponent."""
    if value == 0:
        return "0"
    return f"{value:,.{min(9, max(0, 2 - math.floor(math.log10(abs(value)))))}f}"


def interval(value: Estimate | None, scale: float) -> str:
    """A time and its 95% interval below it, times `scale`."""
    if value is None:
        return DASH
    if value.low is None or value.high is None:
        return significant(value.median * scale)
    bounds = f"{significant(value.low * scale)}{DASH}{significant(value.high * scale)}"
    return f'{significant(value.median * scale)}<span class="interval">{bounds}</span>'


def swatch(style: int | None) -> str:
    """The line sample of a series in its colour and dash pattern; decorative, the name stands beside it."""
    name, pattern = ("recorded", "") if style is None else (f"s{colour(style)}", " ".join(f"{length:g}" for length in dash(style)))
    dashes = f' stroke-dasharray="{pattern}"' if pattern else ""
    return f'<svg class="swatch {name}" viewBox="0 0 22 8" aria-hidden="true"><path d="M0 4H22"{dashes}/></svg>'


def label(one: Series) -> str:
    """A series' label, which may be broken between tunables and before their values."""
    return re.sub("([:,=])", r"\1<wbr>", text(one.label))


def name_cell(one: Series) -> str:
    """The row header of a series."""
    title = ' title="The real kernel of the trace, not ranked"' if one.recorded else ""
    return f'<th scope="row"{title}>{swatch(one.style)}<span class="name">{label(one)}</span></th>'


def data_cell(content: str, best: bool = False) -> str:
    """A table cell with figures, marked if it is the best of its column."""
    return f"<td{' class=best' if best else ''}>{content}</td>"


Column = tuple[str, str, Callable[[Series], str], str | None]


def memory(workload: Workload, key: str) -> Callable[[Series], str]:
    """A function from a series to its page count of that name in the workload's unit."""

    def shown(one: Series) -> str:
        pages = counted(one, key)
        return DASH if pages is None else memory_text(workload, pages)

    return shown


def timed_text(name: str, scale: float = 1) -> Callable[[Series], str]:
    """A function from a series to a time of its record, times `scale`."""

    return lambda one: interval(estimate(one.timed, name), scale)


def percentile(name: str) -> Callable[[Series], str]:
    """A function from a series to a latency percentile; its interval stands among all measures."""

    def shown(one: Series) -> str:
        found = estimate(one.timed, "latency_ns", name)
        step = number(one.timed.get("clock_resolution_ns"))
        if found is not None and step and found.median < step:
            return f"<{step:.0f}"  # the clock cannot tell
        return DASH if found is None else significant(found.median)

    return shown


def share(key: str) -> Callable[[Series], str]:
    """A function from a series to an exact share as a percentage."""
    return lambda one: percent(one.exact.get(key))


def count(key: str) -> Callable[[Series], str]:
    """A function from a series to a count."""
    return lambda one: figure(counted(one, key))


def counted(one: Series, key: str) -> float | int | None:
    """A measure that is exact in a replay, and a median over boots in a kernel."""
    return number(one.exact.get(key, one.timed.get(key)))


def comparison_columns(workload: Workload) -> list[tuple[str, list[Column]]]:
    """Groups of columns: group title, then title, explanation, content and the ranked measure that it is, if any."""
    unit, _ = memory_unit(workload)
    whole = "time" if time_name(workload.replayed) == "seconds" else None
    return [
        (
            "Time, with 95% interval",
            [
                ("in all (ms)", "Time of the replay's event loop, or of the workload on a kernel", timed_text("seconds", 1000), whole),
                ("per op. (ns)", "Time for each allocation or free", timed_text("ns_per_operation"), "time"),
            ],
        ),
        (
            "Latency (ns)",
            [
                ("median", "Median over single operations", percentile("median"), None),
                ("p99", "99th percentile", percentile("p99"), None),
                ("p99.9", "99.9th percentile", percentile("p999"), None),
            ],
        ),
        (
            f"Memory held ({unit})",
            [
                ("peak", "Slabs and large allocations, at the peak", memory(workload, "held_pages_peak"), "memory"),
                ("mean", "Mean over trace time", memory(workload, "held_pages_mean"), None),
                ("end", "At the end", memory(workload, "held_pages_end"), None),
            ],
        ),
        (
            "Waste (%)",
            [
                ("peak", "1 - requested/consumed (Bonwick 1994) at the peak", share("total_fragmentation_peak"), None),
                ("end", "1 - requested/consumed (Bonwick 1994) at the end", share("total_fragmentation_end"), None),
            ],
        ),
        (
            "In slabs at end (%)",
            [
                ("internal", "1 - requested/given to live objects", share("internal_fragmentation_end"), None),
                ("unused", "Free bytes in slab pages (Kyritsis et al.)", share("unused_ratio_end"), None),
            ],
        ),
        ("Frag.", [("events", "Page allocations that fell back to another migrate type", count("fragmentation_events"), "fragmentation")]),
        ("Fast path", [("%", "Share of operations on the fast path", share("fast_path_share"), None)]),
    ]


def comparison(workload: Workload) -> str:
    """The comparison of one workload, the recorded kernel last."""
    groups = comparison_columns(workload)
    placed = rank_table(workload)
    head = "".join(f'<th scope="colgroup" colspan="{len(columns)}">{text(title)}</th>' for title, columns in groups)
    columns = [column for _, members in groups for column in members]
    titles = "".join(f'<th scope="col" title="{text(one.title)}">{text(one.short.lower())}</th>' for one in MEASURES)
    titles += "".join(f'<th scope="col" title="{text(note)}">{text(title)}</th>' for title, note, _, _ in columns)
    body = []
    for one in workload.series:
        mine = placed.get(one.key, {})
        cells = [data_cell(rank_text(mine.get(measure.key), placed, measure.key), mine.get(measure.key) == 1) for measure in MEASURES]
        cells += [data_cell(show(one), bool(ranked) and mine.get(ranked or "") == 1) for _, _, show, ranked in columns]
        body.append(f"<tr{' class=real' if one.recorded else ''}>{name_cell(one)}{''.join(cells)}</tr>")
    return (
        '<div class="scroll" tabindex="0" role="region" aria-label="Comparison"><table class="comparison"><thead>'
        f'<tr><th rowspan="2" scope="col">Allocator</th><th scope="colgroup" colspan="3">Rank</th>{head}</tr>'
        f"<tr>{titles}</tr></thead><tbody>{''.join(body)}</tbody></table></div>"
    )


def rank_text(rank: int | None, placed: Mapping[str, Mapping[str, int | None]], measure: str) -> str:
    """A rank, with an equals sign where others share it."""
    if rank is None:
        return DASH
    shared = sum(mine.get(measure) == rank for mine in placed.values()) > 1
    return f"{rank}{'=' if shared else ''}"


def ranking(workloads: Sequence[Workload]) -> str:
    """Ranks of every allocator in every workload, as in Ferreira et al.'s Table 3."""
    series = {one.key: one for workload in workloads for one in workload.replayed}
    tables = [rank_table(workload) for workload in workloads]
    head = "".join(f'<th scope="colgroup" colspan="3"><a href="#{workload.ident}">{text(workload.name)}</a></th>' for workload in workloads)
    titles = "".join(f'<th scope="col" title="{text(one.title)}">{text(one.short)}</th>' for one in MEASURES)
    body = []
    for key, one in sorted(series.items(), key=lambda item: item[1].style or 0):
        cells = "".join(
            data_cell(rank_text(placed.get(key, {}).get(measure.key), placed, measure.key), placed.get(key, {}).get(measure.key) == 1)
            for placed in tables
            for measure in MEASURES
        )
        body.append(f"<tr>{name_cell(one)}{cells}</tr>")
    return (
        '<div class="scroll" tabindex="0" role="region" aria-label="Ranking"><table class="ranking"><thead>'
        f'<tr><th rowspan="2" scope="col">Allocator</th>{head}</tr><tr>{titles * len(workloads)}</tr></thead>'
        f"<tbody>{''.join(body)}</tbody></table></div>"
    )


def snapshots(workload: Workload) -> str:
    """Slab memory at each snapshot under every allocator beside what the kernel itself said; empty without snapshots."""
    unit, size = memory_unit(workload)
    scale, decimals = page_bytes(workload) / size, 0 if unit == "KiB" else 2
    names: list[str] = []
    kernel: dict[str, float] = {}
    lines = []
    for one in workload.series:
        held: dict[str, float] = {}
        for row in rows(one.exact.get("snapshots")):
            name = str(row.get("name") or f"snapshot {row.get('number', '?')}")
            pages = held_pages(row)
            said = number(row.get("recorded_slab_kb"))
            if name not in names:
                names.append(name)
            if pages is not None:
                held[name] = pages * scale
            if said is not None:
                kernel[name] = said * 1024 / size
        if held:
            lines.append((name_cell(one), held))
    if not lines:
        return ""
    if kernel:
        lines.append(('<th scope="row">the kernel itself (meminfo, Slab)</th>', kernel))
    head = "".join(f'<th scope="col">{text(name)}</th>' for name in names)
    body = "".join(
        f"<tr>{head_cell}{''.join(data_cell(figure(held.get(name), decimals)) for name in names)}</tr>" for head_cell, held in lines
    )
    return (
        f'<div class="block"><h3>Memory at the snapshots ({unit})</h3><div class="scroll"><table><thead><tr>'
        f'<th scope="col">Allocator</th>{head}</tr></thead><tbody>{body}</tbody></table></div></div>'
    )


def given_back(workload: Workload) -> str:
    """What comes back when memory is asked for, and where objects were on several nodes; empty where no record tells."""
    unit, _ = memory_unit(workload)
    told = [one for one in workload.replayed if one.exact.get("gives_back")]
    if not told:
        return ""
    columns: list[tuple[str, str, Callable[[Series], str]]] = [
        ("gives back", "When slab pages that nobody uses go", lambda one: text(one.exact.get("gives_back") or DASH)),
        (f"shrink at end ({unit})", "Given back by a full shrink at the end", memory(workload, "shrink_pages")),
        ("time (ns/page)", "Time of that shrink for each page given back", timed_text("shrink_ns_per_page")),
        (f"slabs left ({unit})", "Slabs that stay after it", memory(workload, "shrink_slab_pages_left")),
        ("unused of these (%)", "1 - requested/consumed, of the slabs that stay", share("shrink_fragmentation")),
    ]
    if any(number(one.exact.get(name)) for one in told for name in ("reclaim_askings", "reclaim_urgent_askings")):
        columns += [
            ("asked", "Times that memory was asked back, as it was short", count("reclaim_askings")),
            (f"given ({unit})", "Given back then", memory(workload, "reclaimed_pages")),
            ("asked urgently", "Times that memory was asked back lest a request fail", count("reclaim_urgent_askings")),
            (f"given urgently ({unit})", "Given back then", memory(workload, "reclaimed_urgent_pages")),
        ]
    if any((number(one.run.get("nodes")) or 0) > 1 for one in told):
        columns += [
            ("local", "Objects allocated on the node of the CPU that asked", count("local_allocations")),
            ("remote", "Objects allocated on another node", count("remote_allocations")),
            ("node missed", "Requests for a node that got memory of another", count("node_requests_missed")),
        ]
    head = "".join(f'<th scope="col" title="{text(note)}">{text(title)}</th>' for title, note, _ in columns)
    body = "".join(f"<tr>{name_cell(one)}{''.join(data_cell(show(one)) for _, _, show in columns)}</tr>" for one in told)
    return (
        '<div class="block"><h3>Memory given back</h3><div class="scroll"><table><thead><tr>'
        f'<th scope="col">Allocator</th>{head}</tr></thead><tbody>{body}</tbody></table></div></div>'
    )


def held_pages(snapshot: Mapping[str, Any]) -> float | None:
    """Pages of slabs and large allocations at a snapshot."""
    slabs, large = number(snapshot.get("slab_pages")), number(snapshot.get("large_pages"))
    return number(snapshot.get("held_pages")) if slabs is None else slabs + (large or 0)


def measure_text(value: Any) -> str:
    """Any scalar measure as listed among all measures."""
    known = number(value)
    if known is None:
        return DASH if value is None else text(plain(value))
    return f"{known:,}" if isinstance(known, int) else f"{known:,.6g}"


def flattened(prefix: str, values: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    """Measures with dotted names; lists and nested objects as they are, tables left out."""
    for key, value in values.items():
        if key in NESTED:
            continue
        if isinstance(value, Mapping):
            yield from flattened(f"{prefix}{key}.", value)
        else:
            yield f"{prefix}{key}", value


def with_interval(one: Series, name: str, value: Any) -> str:
    """A measure and, of a time that has one, its interval; `name` is the measure's dotted name."""
    group_name, *path = name.split(".")
    found = estimate(one.timed, *path) if group_name == "timed" else None
    if found is None or found.low is None or found.high is None:
        return measure_text(value)
    return f"{measure_text(found.median)} ({measure_text(found.low)}{DASH}{measure_text(found.high)})"


def every_measure(workload: Workload) -> str:
    """All measures of the records, transposed: one row for each measure."""
    columns = [dict(flattened("exact.", one.exact)) | dict(flattened("timed.", one.timed)) for one in workload.series]
    names = list(dict.fromkeys(name for column in columns for name in column))
    head = "".join(f'<th scope="col">{swatch(one.style)}{text(one.label)}</th>' for one in workload.series)

    def cells(name: str) -> str:
        return "".join(data_cell(with_interval(one, name, column.get(name))) for one, column in zip(workload.series, columns, strict=True))

    body = "".join(f'<tr><th scope="row"><code>{text(name)}</code></th>{cells(name)}</tr>' for name in names)
    return (
        '<details class="figures"><summary>All measures of these runs</summary><div class="scroll tall"><table><thead>'
        f'<tr><th scope="col">Measure</th>{head}</tr></thead><tbody>{body}</tbody></table></div></details>'
    )


def command(workload: Workload) -> str:
    """The command that repeats a workload's comparison."""
    allocators = ",".join(dict.fromkeys(allocator_label(one.run) for one in workload.replayed))
    words = ["slabyard", "compare", f"{workload.name}.parquet", "--allocators", allocators]
    for name in ("cpus", "nodes", "memory", "start"):
        found = {plain(one.run[name]) for one in workload.replayed if one.run.get(name) is not None}
        words += [f"--{name}", *found] if len(found) == 1 else []
    runs = max((int(number(one.run.get("repetition")) or 0) for one in workload.replayed), default=0)
    return shlex.join([*words, "--runs", str(runs)] if runs else words)


def provenance(workload: Workload) -> str:
    """How the workload was run: the trace, the run fields that all records share, and those in which they differ."""
    shared: dict[str, str] = {}
    differing: list[str] = []
    for key in dict.fromkeys(key for one in workload.series for key in one.run):
        if key in ("allocator", "tunables", "workload", "trace_sha256"):
            continue
        found = list(dict.fromkeys(plain(one.run[key]) for one in workload.replayed if one.run.get(key) is not None))
        if len(found) == 1:
            shared[key] = entry(next(one.run[key] for one in workload.replayed if one.run.get(key) is not None))
        elif found:
            differing.append(key)
    items = {"trace": text(workload.name), "trace SHA-256": f"<code>{text(workload.trace_sha256 or DASH)}</code>"}
    items |= {text(FACTS.get(key, key.replace("_", " "))): value for key, value in shared.items()}
    listed = "".join(f"<dt>{key}</dt><dd>{value}</dd>" for key, value in items.items())
    table = ""
    if differing:
        head = "".join(f'<th scope="col">{text(key.replace("_", " "))}</th>' for key in differing)
        body = "".join(
            f"<tr>{name_cell(one)}{''.join(f'<td class=words>{entry(one.run.get(key))}</td>' for key in differing)}</tr>"
            for one in workload.replayed
        )
        table = (
            f'<div class="scroll"><table><thead><tr><th scope="col">Allocator</th>{head}</tr></thead><tbody>{body}</tbody></table></div>'
        )
    return (
        f'<div class="block"><h3>How it was run</h3><dl class="facts">{listed}</dl>{table}'
        f"<p>To repeat it:</p><pre><code>{text(command(workload))}</code></pre></div>"
    )


def entry(value: Any) -> str:
    """A run field: objects as `name value` pairs, None as a dash."""
    if value is None:
        return DASH
    if isinstance(value, Mapping):
        return text(", ".join(f"{key} {plain(inner)}" for key, inner in value.items()) or DASH)
    if isinstance(value, (list, tuple)) and all(isinstance(word, str) for word in value):
        return f"<code>{text(shlex.join(value))}</code>"
    return text(plain(value))
