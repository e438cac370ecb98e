"""The tables of the report: they stand in the file itself and need no script. `templates/table.html` draws them.

A table's unit stands in its header and holds for the whole column; a missing measure is an en dash, zero is 0. Times carry
their 95% interval in a second line, since two medians alone would invite a ranking that the runs don't support. Deterministic
measures have no interval. The best value of a ranked measure is set in bold, ties included; results/ranks.py says what a rank means.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from markupsafe import Markup

from ..base.svg import element
from ..results import measures
from ..results.model import (
    Section,
    Series,
    allocator_label,
    colour,
    dash,
    estimate,
    grew,
    kept,
    memory_text,
    memory_unit,
    number,
    page_bytes,
    plain,
    rows,
    started,
)
from ..results.model import figure as known_figure
from ..results.ranks import rank_table, ranked, time_name, undecided
from ..results.reasons import Reason

DASH = "\u2013"
FACTS = {"command": "recorded command", "lost": "events lost in recording", "pages": "pages at the start", "repetition": "repetitions"}
NESTED = (
    "series", "stacks", "settings", "other_start", "caches", "call_sites", "zones", "snapshots", "intervals", "samples", "caches_alive",
    "functions",
)  # fmt: skip


@dataclass(frozen=True)
class Cell:
    """A cell, of the body or a heading: a text, or a series by its name and the sample of its line.

    `below` stands under it in small; `title` is seen under the pointer; `kind` is a class of the style sheet.
    """

    text: str = ""
    below: str = ""
    title: str = ""
    kind: str = ""
    link: str = ""
    code: bool = False
    span: int = 1
    series: Series | None = None

    @property
    def swatch(self) -> Markup:
        """The line sample of the series."""
        return swatch(None if self.series is None else self.series.style)

    @property
    def pieces(self) -> list[str]:
        """The label of the series, which may be broken between tunables and before their values."""
        return [] if self.series is None else re.split("(?<=[:,=])", self.series.label)


@dataclass
class Grid:
    """A table: `groups` are headings above `heads`, each over `span` of them. `tall`: it is long, and rolls in a box."""

    heads: Sequence[Cell]
    rows: Sequence[tuple[Cell, Sequence[Cell]]]
    groups: Sequence[Cell] = field(default=())
    label: str = ""
    corner: str = "Allocator"
    tall: bool = False


@dataclass(frozen=True)
class Column:
    """A column of figures: title, explanation, what it shows of a series, and which ranked measure it is, if any."""

    title: str
    note: str
    show: Callable[[Series], str | Cell]
    ranked: str | None = None

    @property
    def head(self) -> Cell:
        """Its heading."""
        return Cell(self.title, title=self.note)

    def cell(self, one: Series, ranks: Mapping[str, int | None] | None = None) -> Cell:
        """Its figure of a series, marked where that is the best."""
        found = self.show(one)
        cell = found if isinstance(found, Cell) else Cell(found)
        return replace(cell, kind="best") if self.ranked and ranks and ranks.get(self.ranked) == 1 else cell


def name_cell(one: Series) -> Cell:
    """The heading of a series' row or column."""
    return Cell(series=one, title="The real kernel of the trace, not ranked" if one.recorded else "")


def swatch(style: int | None) -> Markup:
    """The line sample of a series in its colour and dash pattern; decorative, the name stands beside it."""
    name, pattern = ("recorded", "") if style is None else (f"s{colour(style)}", " ".join(f"{length:g}" for length in dash(style)))
    path = element("path", {"d": "M0 4H22", **({"stroke-dasharray": pattern} if pattern else {})})
    return element("svg", {"class": f"swatch {name}", "viewBox": "0 0 22 8", "aria-hidden": "true"}, path)


def figure(value: float | int | None, decimals: int = 0) -> str:
    """A number with thousands separators, an en dash for None."""
    return DASH if value is None else f"{value:,.{decimals}f}"


def significant(value: float) -> str:
    """Three significant digits, more before the decimal point if need be, without an exponent."""
    if value == 0:
        return "0"
    return f"{value:,.{min(9, max(0, 2 - math.floor(math.log10(abs(value)))))}f}"


def memory(workload: Section, key: str, one: Series) -> str:
    """A number of pages in the workload's unit."""
    pages = counted(one, key)
    return DASH if pages is None else memory_text(workload, pages)


def timed_text(name: str, one: Series, scale: float = 1) -> str | Cell:
    """A time, times `scale`, with its 95% interval below it."""
    found = estimate(one.timed, name)
    if found is None:
        return DASH
    median = significant(found.median * scale)
    if found.low is None or found.high is None:
        return median
    return Cell(median, below=f"{significant(found.low * scale)}{DASH}{significant(found.high * scale)}")


def percentile(name: str, one: Series) -> str:
    """A latency percentile; its interval stands among all measures."""
    found = estimate(one.timed, "latency_ns", name)
    step = number(one.timed.get("clock_resolution_ns"))
    if found is not None and step and found.median < step:
        return f"<{step:.0f}"  # the clock cannot tell
    return DASH if found is None else significant(found.median)


def share(key: str, one: Series) -> str:
    """An exact share as a percentage with one decimal."""
    known = number(one.exact.get(key))
    return DASH if known is None else f"{known * 100:.1f}"


def count(key: str, one: Series) -> str:
    """A count."""
    return figure(counted(one, key))


def counted(one: Series, key: str) -> float | int | None:
    """A measure that is exact in a replay, and timed in a kernel or a malloc; memory at the start and growth of older records too."""
    worked_out = {"held_pages_start": started, "grew_pages_peak": grew, "grew_pages_end": kept}
    return worked_out[key](one) if key in worked_out else known_figure(one, key)


def comparison_columns(workload: Section) -> dict[str, list[Column]]:
    """Columns by the title of their group."""
    unit, _ = memory_unit(workload)
    events = partial(count, "fragmentation_events")
    milliseconds = partial(timed_text, "seconds", scale=1000)
    whole = "time" if time_name(workload.replayed) == "seconds" else None
    return {
        f"Time, with {measures.confidence(number(one.timed.get('runs')) for one in workload.series)} interval": [
            Column("in all (ms)", "Time of the replay's event loop, or of the workload on a kernel", milliseconds, whole),
            Column("per op. (ns)", "Time for each allocation or free of an object", partial(timed_text, "ns_per_operation"), "time"),
            Column("per page (ns)", "Time for each page request of other kernel code", partial(timed_text, "ns_per_page_operation")),
        ],
        **cost_columns(workload),
        "Latency (ns)": [
            Column("median", "Median over single operations", partial(percentile, "median")),
            Column("p99", "99th percentile", partial(percentile, "p99")),
            Column("p99.9", "99.9th percentile", partial(percentile, "p999")),
        ],
        f"Memory held ({unit})": [
            Column("start", "Slabs and large allocations before the first event", partial(memory, workload, "held_pages_start")),
            Column("grew", "The peak less the start", partial(memory, workload, "grew_pages_peak"), "memory"),
            Column("kept", "The end less the start", partial(memory, workload, "grew_pages_end")),
            Column("peak", "Slabs and large allocations, at the peak", partial(memory, workload, "held_pages_peak")),
            Column("mean", "Mean over trace time", partial(memory, workload, "held_pages_mean")),
        ],
        "Waste (%)": [
            Column("peak", "1 - requested/consumed (Bonwick 1994) at the peak", partial(share, "total_fragmentation_peak")),
            Column("end", "1 - requested/consumed (Bonwick 1994) at the end", partial(share, "total_fragmentation_end")),
        ],
        "In slabs at end (%)": [
            Column("internal", "1 - requested/given to live objects", partial(share, "internal_fragmentation_end")),
            Column("unused", "Free bytes in slab pages (Kyritsis et al.)", partial(share, "unused_ratio_end")),
        ],
        "Fallbacks": [Column("events", "Page allocations that fell back to another migrate type", events, "events")],
        "Fast path": [Column("%", "Share of operations on the fast path", partial(share, "fast_path_share"))],
    }


Placed = Mapping[str, Mapping[str, int | None]]  # ranks by series, then by measure


def cost_columns(workload: Section) -> dict[str, list[Column]]:
    """Columns of what was counted, if anything was."""
    if not any(one.cost for one in workload.replayed):
        return {}

    def shown(name: str, decimals: int, one: Series) -> str:
        return figure(number(one.cost.get(name)), decimals)

    return {
        "Counted, per operation": [
            Column("instructions", "Instructions of an allocation or free of an object", partial(shown, "instructions", 1), "cost"),
            Column("L1 misses", "Misses of the simulated first-level caches", partial(shown, "l1_misses", 2)),
            Column("LL misses", "Misses of the simulated last-level cache", partial(shown, "ll_misses", 3)),
        ]
    }


def rank_columns(workload: Section, placed: Placed) -> list[Column]:
    """A column for each ranked measure in which allocators differ, with the ranks of one workload."""

    def shown(measure: str, one: Series) -> str:
        return rank_text(placed.get(one.key, {}).get(measure), placed, measure)

    skipped = undecided(workload)
    wanted = [measure for measure in ranked([workload]) if measure.key not in skipped]
    return [Column(measure.short, measure.title, partial(shown, measure.key), measure.key) for measure in wanted]


OF_MEMORY = ("Memory", "Waste", "In slabs", "Fallbacks")
RANKS_OF_MEMORY = ("memory", "events")


def comparisons(workload: Section) -> list[Grid]:
    """The comparison of one workload as two tables, of memory and of time, neither wider than a screen; the recorded kernel last."""
    groups = comparison_columns(workload)
    of_memory = {name: members for name, members in groups.items() if name.startswith(OF_MEMORY)}
    of_time = {name: members for name, members in groups.items() if name not in of_memory}
    keys = [measure.key for measure in ranked([workload])]
    in_memory, in_time = ([key for key in keys if (key in RANKS_OF_MEMORY) == memory] for memory in (True, False))
    found = [_comparison(workload, "Memory", of_memory, in_memory), _comparison(workload, "Time", of_time, in_time)]
    return [grid for grid in found if grid.heads]


def _comparison(workload: Section, name: str, groups: Mapping[str, Sequence[Column]], measures: Sequence[str]) -> Grid:
    """The columns of some groups in which anything is known, behind the ranks by these measures."""
    everything, wanted = rank_table(workload), set(measures) - set(undecided(workload))
    placed = {one.key: {key: rank for key, rank in everything.get(one.key, {}).items() if key in wanted} for one in workload.series}
    ranks = [
        replace(column, title=column.title.lower())
        for column in rank_columns(workload, placed)
        if column.ranked and any(found.get(column.ranked) for found in placed.values())
    ]
    known = {
        title: [column for column in members if any(column.cell(one).text not in ("", DASH) for one in workload.series)]
        for title, members in groups.items()
    }
    columns = [*ranks, *(column for members in known.values() for column in members)]
    series = [one for one in workload.series if not one.recorded or any(column.cell(one).text != DASH for column in columns)]
    above = {"Rank": ranks, **known}
    return Grid(
        [column.head for column in columns],
        [(name_cell(one), [column.cell(one, placed[one.key]) for column in columns]) for one in series],
        [Cell(title, span=len(members)) for title, members in above.items() if members],
        name,
    )


def reason_cells(reason: Reason) -> tuple[Cell, str]:
    """Whom a reason is of, and its text."""
    return name_cell(reason.series), reason.text


def rank_text(rank: int | None, placed: Placed, measure: str) -> str:
    """A rank, with an equals sign where others share it."""
    if rank is None:
        return DASH
    shared = sum(mine.get(measure) == rank for mine in placed.values()) > 1
    return f"{rank}{'=' if shared else ''}"


def ranking(workloads: Sequence[Section]) -> Grid:
    """Ranks of every allocator in every workload (results.ranks); without columns in which all are first."""
    series = {one.key: one for workload in workloads for one in workload.replayed}
    members = {one.ident: [(rank_table(one), column) for column in rank_columns(one, rank_table(one))] for one in workloads}
    columns = [pair for found in members.values() for pair in found]
    return Grid(
        [column.head for _, column in columns],
        [
            (name_cell(one), [column.cell(one, placed.get(key)) for placed, column in columns])
            for key, one in sorted(series.items(), key=lambda item: item[1].style or 0)
        ],
        [Cell(one.name, link=one.ident, span=len(members[one.ident])) for one in workloads if members[one.ident]],
        "Ranking",
    )


def snapshots(workload: Section) -> Grid | None:
    """Slab memory at each snapshot under every allocator beside what the kernel itself said; None without snapshots."""
    unit, size = memory_unit(workload)
    scale, decimals = page_bytes(workload) / size, 0 if unit == "KiB" else 2
    names: dict[str, None] = {}
    kernel: dict[str, float] = {}
    lines: list[tuple[Cell, dict[str, float]]] = []
    for one in workload.series:
        held: dict[str, float] = {}
        for row in rows(one.exact.get("snapshots")):
            name = str(row.get("name") or f"snapshot {row.get('number', '?')}")
            names[name] = None
            pages, said = held_pages(row), number(row.get("recorded_slab_kb"))
            if pages is not None:
                held[name] = pages * scale
            if said is not None:
                kernel[name] = said * 1024 / size
        if held:
            lines.append((name_cell(one), held))
    if not lines:
        return None
    if kernel:
        lines.append((Cell("the kernel itself (meminfo, Slab)"), kernel))
    body = [(head, [Cell(figure(held.get(name), decimals)) for name in names]) for head, held in lines]
    return Grid([Cell(name) for name in names], body)


def given_back(workload: Section) -> Grid | None:
    """What comes back when memory is asked for, and where objects were on several nodes; None where no record tells."""
    unit, _ = memory_unit(workload)
    told = [one for one in workload.replayed if one.exact.get("gives_back")]
    if not told:
        return None
    columns = [
        Column("gives back", "When slab pages that nobody uses go", lambda one: str(one.exact.get("gives_back") or DASH)),
        Column(f"shrink at end ({unit})", "Given back by a full shrink at the end", partial(memory, workload, "shrink_pages")),
        Column("time (ns/page)", "Time of that shrink for each page given back", partial(timed_text, "shrink_ns_per_page")),
        Column(f"slabs left ({unit})", "Slabs that stay after it", partial(memory, workload, "shrink_slab_pages_left")),
        Column("unused of these (%)", "1 - requested/consumed, of the slabs that stay", partial(share, "shrink_fragmentation")),
    ]
    if any(number(one.exact.get(name)) for one in told for name in ("reclaim_askings", "reclaim_urgent_askings")):
        columns += [
            Column("asked", "Times that memory was asked back when it was short", partial(count, "reclaim_askings")),
            Column(f"given ({unit})", "Given back then", partial(memory, workload, "reclaimed_pages")),
            Column("asked urgently", "The same before a request would fail", partial(count, "reclaim_urgent_askings")),
            Column(f"given urgently ({unit})", "Given back then", partial(memory, workload, "reclaimed_urgent_pages")),
        ]
    if any((number(one.run.get("nodes")) or 0) > 1 for one in told):
        columns += [
            Column("local", "Objects allocated on the node of the CPU that asked", partial(count, "local_allocations")),
            Column("remote", "Objects allocated on another node", partial(count, "remote_allocations")),
            Column("node missed", "Requests for a node that got memory of another", partial(count, "node_requests_missed")),
        ]
    return Grid([column.head for column in columns], [(name_cell(one), [column.cell(one) for column in columns]) for one in told])


def held_pages(snapshot: Mapping[str, Any]) -> float | None:
    """Pages of slabs and large allocations at a snapshot."""
    slabs, large = number(snapshot.get("slab_pages")), number(snapshot.get("large_pages"))
    return number(snapshot.get("held_pages")) if slabs is None else slabs + (large or 0)


def measure_text(value: Any) -> str:
    """Any scalar measure as listed among all measures."""
    known = number(value)
    if known is None:
        return DASH if value is None else plain(value)
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


def every_measure(workload: Section) -> Grid:
    """All measures of the records, transposed: one row for each measure."""
    columns = [
        dict(flattened("exact.", one.exact)) | dict(flattened("timed.", one.timed)) | dict(flattened("cost.", one.cost))
        for one in workload.series
    ]
    names = dict.fromkeys(name for column in columns for name in column)

    def cells(name: str) -> list[Cell]:
        return [Cell(with_interval(one, name, column.get(name))) for one, column in zip(workload.series, columns, strict=True)]

    heads = [Cell(series=one) for one in workload.series]
    return Grid(heads, [(Cell(name, code=True), cells(name)) for name in names], corner="Measure", tall=True)


def command(workload: Section) -> str:
    """The command that repeats a workload's comparison."""
    allocators = ",".join(dict.fromkeys(allocator_label(one.run) for one in workload.replayed))
    words = ["slabyard", "compare", f"{workload.file or workload.name}.parquet", "--allocators", allocators]
    for name in ("cpus", "nodes", "memory", "start"):
        found = {plain(one.run[name]) for one in workload.replayed if one.run.get(name) is not None}
        words += [f"--{name}", *found] if len(found) == 1 else []
    runs = max((int(number(one.run.get("repetition")) or 0) for one in workload.replayed), default=0)
    return shlex.join([*words, "--runs", str(runs)] if runs else words)


def provenance(workload: Section) -> tuple[dict[str, Cell], Grid | None]:
    """How the workload was run: the trace and the run fields that all records share, and a table of those in which they differ."""
    facts = {"trace": Cell(workload.name), "trace SHA-256": Cell(workload.trace_sha256 or DASH, code=True)}
    differing: list[str] = []
    for key in dict.fromkeys(key for one in workload.series for key in one.run):
        if key in ("allocator", "tunables", "workload", "trace_sha256", "path", "own_allocator"):
            continue
        found = {plain(one.run[key]): one.run[key] for one in workload.replayed if one.run.get(key) is not None}
        if len(found) == 1:
            facts[FACTS.get(key, key.replace("_", " "))] = entry(*found.values())
        elif found:
            differing.append(key)
    if not differing:
        return facts, None
    body = [(name_cell(one), [replace(entry(one.run.get(key)), kind="words") for key in differing]) for one in workload.replayed]
    return facts, Grid([Cell(key.replace("_", " ")) for key in differing], body)


def entry(value: Any) -> Cell:
    """A run field: objects as `name value` pairs, None as a dash."""
    if value is None:
        return Cell(DASH)
    if isinstance(value, Mapping):
        return Cell(", ".join(f"{key} {plain(inner)}" for key, inner in value.items()) or DASH)
    if isinstance(value, (list, tuple)) and all(isinstance(word, str) for word in value):
        return Cell(shlex.join(value), code=True)
    return Cell(plain(value))
