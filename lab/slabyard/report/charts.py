"""The figures behind each chart, as plain data for the page's script.

A chart is a dictionary: `id`, `kind` (`line`, `step`, `bar` or `hbar`), `title`, `note`, titles of both axes with their
units, and traces. A trace has the key of its series (so that the legend can hide it), a name, and its figures. The script draws it, lists
the same figures in a table and writes them as CSV, so what is drawn and what is listed can't differ.

Size matters, as the file must stay small enough to mail: time vectors that several traces share are stored once in a pool
and referred to by number, figures are rounded to what a screen can show and a reader could use (a hundred-thousandth of the
time span, a thousandth of a KiB or MiB), and tables of caches and call sites keep their largest rows; the page says how many were left out.
Memory is given in KiB as long as its peak is below 100 MiB, else in MiB: one unit for all charts and tables of a workload.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

from ..results.model import Section, Series, colour, dash, hatch, memory_unit, number, numbers, page_bytes, plain, rows
from ..results.reasons import class_group

ORDERS = 11
CACHE_BARS = 12
SITE_BARS = 15
MAX_POINTS = 1024
REQUESTED = "requested"
BEFORE = "before"
TIME_AXIS = {"title": "time in the trace (s)", "name": "seconds"}
INDEX_AXES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1)

Chart = dict[str, Any]
Trace = dict[str, Any]


def chart(ident: str, kind: str, title: str, note: str, x: dict[str, Any], y: dict[str, Any], traces: list[Trace], **more: Any) -> Chart:
    """A chart as the page's script takes it."""
    return {"id": ident, "kind": kind, "title": title, "note": note, "x": x, "y": y, **more, "traces": traces}


class Pool:
    """Vectors stored once each; `add` gives a vector's number."""

    def __init__(self) -> None:
        self.vectors: list[list[Any]] = []
        self._places: dict[tuple[Any, ...], int] = {}

    def add(self, vector: Sequence[Any]) -> int:
        """The number of a vector with these elements."""
        key = tuple(vector)
        if key not in self._places:
            self._places[key] = len(self.vectors)
            self.vectors.append(list(vector))
        return self._places[key]


def memory_format(unit: str) -> str:
    """The d3 format in which the charts' labels show memory."""
    return ",.0f" if unit == "KiB" else ",.2f"


def thinned(vector: Sequence[Any]) -> Sequence[Any]:
    """At most MAX_POINTS evenly spread elements, the last one always among them."""
    if len(vector) <= MAX_POINTS:
        return vector
    return [vector[place * (len(vector) - 1) // (MAX_POINTS - 1)] for place in range(MAX_POINTS)]


def shown(value: float | int | None, scale: float) -> float | int | None:
    """A figure in its shown unit, to three decimals; whole numbers stay whole."""
    if value is None:
        return None
    scaled = round(value * scale, 3)
    return int(scaled) if scaled == int(scaled) else scaled


def series_vector(one: Series, name: str) -> list[float | int | None]:
    """A vector of a record's time series; empty where it is missing."""
    found = one.exact.get("series")
    return numbers(found.get(name)) if isinstance(found, Mapping) else []


class TimeCharts:
    """Charts over the time of one workload."""

    def __init__(self, workload: Section, pool: Pool) -> None:
        self.workload = workload
        self.pool = pool
        self.unit, self.unit_bytes = memory_unit(workload)
        times = [time for one in workload.series for time in series_vector(one, "time") if time is not None] or [0]  # nanoseconds
        self.origin, span = min(times), max(times) - min(times)
        self.digits = min(9, max(0, 5 - math.floor(math.log10(span / 1e9)))) if span > 0 else 9

    def trace(self, one: Series, vector: str, scale: float, key: str, name: str) -> Trace | None:
        """One line, or None where the record lacks it."""
        times, figures = series_vector(one, "time"), series_vector(one, vector)
        pairs = [(time, figure) for time, figure in zip(times, figures, strict=False) if time is not None]
        if not any(figure is not None for _, figure in pairs):
            return None
        pairs = list(thinned(pairs))
        seconds = [round((time - self.origin) / 1e9, self.digits) for time, _ in pairs]
        return {"key": key, "name": name, "x": self.pool.add(seconds), "y": [shown(y, scale) for _, y in pairs]}

    def lines(self, vector: str, scale: float) -> list[Trace]:
        """The line of every series that has the vector."""
        return [line for one in self.workload.series if (line := self.trace(one, vector, scale, one.key, one.label))]

    def grown(self, line: Trace) -> Trace:
        """A line from its first value on, so that what was there before the workload does not flatten it."""
        first = next((y for y in line["y"] if y is not None), 0)
        return {**line, "y": [None if y is None else shown(y - first, 1) for y in line["y"]]}

    def memory(self) -> Chart:
        """By how much the memory of every allocator and of the recorded kernel grew, and what was asked for."""
        traces = self.lines("held_pages", page_bytes(self.workload) / self.unit_bytes)
        for one in self.workload.replayed:
            asked = self.trace(one, "requested_bytes", 1 / self.unit_bytes, REQUESTED, "requested bytes")
            if asked:
                traces.append(asked)
                break
        note = "Pages of slabs and large allocations, less those at the start; dotted: the same of live bytes that clients asked for."
        y = {"title": f"growth ({self.unit})", "unit": self.unit, "format": memory_format(self.unit), "signed": True}
        return chart("memory", "step", "Memory grown over time", note, TIME_AXIS, y, [self.grown(line) for line in traces])

    def events(self) -> Chart:
        """Fragmentation events so far."""
        note = "Page allocations that fell back to another migrate type's pages, cumulative."
        y = {"title": "events (cumulative)", "unit": "events", "whole": True, "format": ",d"}
        return chart("events", "step", "Fragmentation events over time", note, TIME_AXIS, y, self.lines("fragmentation_events", 1))


def by_order(figures: Sequence[float | int | None], pool: Pool, key: str, label: str) -> Trace | None:
    """A trace over orders from a list by order; None where there are no figures."""
    figures = figures[:ORDERS]
    if not any(figure is not None for figure in figures):
        return None
    places = pool.add(list(range(len(figures))))
    return {"key": key, "name": label, "x": places, "y": [None if y is None else round(y, 4) for y in figures]}


def free_blocks(workload: Section, pool: Pool) -> Chart:
    """Free blocks per order at the start and under each allocator at the end."""
    before = [numbers(one.exact.get("free_blocks_before")) for one in workload.replayed or workload.series]
    starts = [start for figures in before if (start := by_order(figures, pool, BEFORE, "before"))]
    after = [(one, numbers(one.exact.get("free_blocks_after"))) for one in workload.series]
    ends = [end for one, figures in after if (end := by_order(figures, pool, one.key, f"{one.label}, after"))]
    same = all(start["y"] == starts[0]["y"] for start in starts)
    note = "The page allocator's free lists, as in /proc/buddyinfo (per-CPU lists not included)."
    if not same:
        note += " The start differs between allocators: the first one's is shown."
    x = {"title": "order (blocks of 2^order pages)", "name": "order"}
    y = {"title": "free blocks (log scale)", "unit": "blocks", "log": True, "format": ",d"}
    return chart("blocks", "bar", "Free blocks per order, before and after", note, x, y, starts[:1] + ends)


def unusable_index(one: Series) -> list[float | int | None]:
    """A record's unusable free space index, worked out of its free blocks where only these are known (the recorded kernel)."""
    known = numbers(one.exact.get("unusable_free_space_index"))
    blocks = numbers(one.exact.get("free_blocks_after"))
    if known or not blocks or None in blocks:
        return known
    pages = [count << order for order, count in enumerate(int(count or 0) for count in blocks)]
    total = sum(pages)
    return [sum(pages[:order]) / total for order in range(len(pages))] if total else []


def unusable(workload: Section, pool: Pool) -> Chart:
    """Unusable free space index per order at the end."""
    found = [by_order(unusable_index(one), pool, one.key, one.label) for one in workload.series]
    highest_index = max((y for trace in found if trace for y in trace["y"] if y is not None), default=0)
    top = next((step for step in INDEX_AXES if step >= highest_index), 1)
    note = "At the end: share of free memory in blocks smaller than that order; 0 is best, 1 worst."
    x, y = {"title": "order of the request", "name": "order"}, {"title": "index", "unit": "", "top": top, "format": ".4f"}
    return chart("unusable", "line", "Unusable free space index per order", note, x, y, [trace for trace in found if trace])


def largest(named: Mapping[str, float], count: int) -> list[str]:
    """The names of the `count` largest values, the largest first, ties by name."""
    return sorted((name for name in named if named[name] > 0), key=lambda name: (-named[name], name))[:count]


def totals(one: Series, table: str, label: Callable[[Mapping[str, Any]], str], field: str) -> dict[str, float]:
    """Sums of a field by row label; rows without it are left out."""
    found: dict[str, float] = {}
    for row in rows(one.exact.get(table)):
        value = number(row.get(field))
        if value is not None:
            found[label(row)] = found.get(label(row), 0) + value
    return found


def highest(columns: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """Of each name its highest value in any column."""
    columns = list(columns)
    return {name: max(column[name] for column in columns if name in column) for name in dict.fromkeys(chain.from_iterable(columns))}


def cache_group(row: Mapping[str, Any]) -> str:
    """The cache as charts have it: size classes of kmalloc by the power of two that they are within, whatever an allocator calls them."""
    return class_group(cache_label(row))


def cache_label(row: Mapping[str, Any]) -> str:
    """A cache's name, or its size where the trace has no name."""
    name = row.get("name")
    return str(name) if name else f"unnamed, {row.get('size', '?')} bytes"


def site_label(row: Mapping[str, Any]) -> str:
    """A call site's symbol or address, or its number where it has neither."""
    site = row.get("call_site")
    return site if isinstance(site, str) and site else f"call site {plain(site)}"


def caches(workload: Section, unit: str, unit_bytes: int) -> Chart:
    """The caches that hold most pages at the end under any allocator, and what was asked for in them."""
    held = {one.key: totals(one, "caches", cache_group, "pages") for one in workload.series}
    with_pages = [one for one in workload.series if any(held[one.key].values())]
    asked = highest(totals(one, "caches", cache_group, "live_bytes") for one in workload.replayed if one in with_pages or not with_pages)
    count = max(5, min(CACHE_BARS, 60 // (1 + len(with_pages))))
    names = largest(highest(held.values()) if with_pages else asked, count)
    scale = page_bytes(workload) / unit_bytes
    traces: list[Trace] = [
        {"key": one.key, "name": one.label, "y": [shown(held[one.key].get(name), scale) for name in names]} for one in with_pages
    ]
    if asked:
        live = [shown(asked.get(name), 1 / unit_bytes) for name in names]
        traces.append({"key": REQUESTED, "name": "requested bytes", "y": live})
    note = f"The {len(names)} largest: pages held, and live bytes asked for in grey. kmalloc by size, its classes taken together. "
    note += "Allocators that mix caches in one page (SLOB) hold no pages per cache."
    x = {"title": f"memory ({unit})", "unit": unit, "format": memory_format(unit)}
    return chart("caches", "hbar", "Memory per cache at the end", note, x, {"title": "", "name": "cache"}, traces, names=names)


def call_sites(workload: Section) -> Chart:
    """The call sites whose live objects grew largest; a fact of the workload, not of an allocator."""
    source = next((one for one in workload.replayed if rows(one.exact.get("call_sites"))), None)
    peak = totals(source, "call_sites", site_label, "peak_bytes") if source else {}
    live = totals(source, "call_sites", site_label, "live_bytes") if source else {}
    names = largest(peak, SITE_BARS)
    columns = (("peak", "peak", peak), ("live", "live at the end", live))
    kib = {key: [shown(column.get(site), 1 / 1024) for site in names] for key, _, column in columns}
    traces = [{"key": key, "name": name, "y": kib[key]} for key, name, _ in columns if names]
    note = f"The {len(names)} call sites with the highest peak; bytes asked for, the same under every allocator."
    x = {"title": "requested (KiB)", "unit": "KiB", "format": memory_format("KiB")}
    return chart("sites", "hbar", "Requested memory per call site", note, x, {"title": "", "name": "call site"}, traces, names=names)


COLUMNS = {
    "caches": (
        ("size", "size (bytes)"),
        ("requests", "requests"),
        ("live", "live"),
        ("live_bytes", "live (bytes)"),
        ("peak_bytes", "peak (bytes)"),
        ("slabs", "slabs"),
        ("partial_slabs", "partial"),
        ("full_slabs", "full"),
        ("pages", "pages"),
    ),
    "call_sites": (("requests", "requests"), ("live", "live"), ("live_bytes", "live (bytes)"), ("peak_bytes", "peak (bytes)")),
}


def table(series: Sequence[Series], name: str, label: Callable[[Mapping[str, Any]], str], limit: int) -> dict[str, Any]:
    """Rows of every series for a sortable table: series number, label, figures; the `limit` largest of each."""
    fields = [field for field, _ in COLUMNS[name]]
    kept: list[list[Any]] = []
    left_out = 0
    for place, one in enumerate(series):
        found = sorted(rows(one.exact.get(name)), key=lambda row: -(number(row.get("peak_bytes")) or 0))
        left_out += max(0, len(found) - limit)
        kept.extend([place, label(row), *(number(row.get(field)) for field in fields)] for row in found[:limit])
    return {"series": [one.label for one in series], "columns": [title for _, title in COLUMNS[name]], "rows": kept, "left_out": left_out}


def look(style: int | None) -> dict[str, Any] | None:
    """A style as the script draws it; None for the recorded kernel, which has a look of its own."""
    return None if style is None else {"colour": colour(style), "dash": dash(style), "hatch": hatch(style)}


def payload(workload: Section, limit: int) -> dict[str, Any]:
    """Everything that the page's script needs for one workload; `limit` bounds the rows of each allocator's tables."""
    pool = Pool()
    times = TimeCharts(workload, pool)
    charts = [
        times.memory(),
        free_blocks(workload, pool),
        unusable(workload, pool),
        times.events(),
        caches(workload, times.unit, times.unit_bytes),
        call_sites(workload),
    ]
    with_sites = [one for one in workload.replayed if rows(one.exact.get("call_sites"))][:1]
    return {
        "id": workload.ident,
        "name": workload.name,
        "styles": {one.key: look(one.style) for one in workload.series},
        "charts": charts,
        "pool": pool.vectors,
        "tables": {
            "caches": table(workload.series, "caches", cache_label, limit),
            "sites": table(with_sites, "call_sites", site_label, limit),
        },
    }
