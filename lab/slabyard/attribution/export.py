"""Who holds memory, in the file forms of other tools: pprof, flame graph tools, speedscope, Perfetto, spreadsheets, data frames.

    gather()   one pass for what lives and what was allocated, one for what is pinned, by all that the trace knows: cache, call site,
               stack and task together; rows of one table
    export()   the file: profiles and tables of the above, or counters over time (Perfetto)

Perfetto's file is the JSON of Chrome's trace viewer, which ui.perfetto.dev opens: a counter for the memory in slabs and for each of the
caches that ever held most.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from ..base.files import whole_file, write_text
from ..base.stacks import Stacks, folded, speedscope
from ..base.table import harmless
from ..base.terminal import printable
from ..trace.file import Trace, recorded_curve
from . import pinned, usage
from .flames import frames_of, stacks
from .usage import Joiner, Keys, Rows, Window

WEIGHTS = {
    "live": "live_bytes", "requested": "requested_bytes", "growth": "growth_bytes", "peak": "peak_bytes", "pinned": "pinned_bytes",
    "allocations": "allocations",
}  # fmt: skip
COUNTERS = 20  # caches with a counter of their own
POINTS = 2000  # in time, of each counter


def gather(trace: Trace, window: Window) -> pa.Table:
    """A row for each combination of what the trace has of cache, call site, stack and task, with FIGURES, `held_pages`, `alone_pages` and
    `pinned_bytes`; these are null where nothing ties objects to pages."""
    by = usage.present_dimensions(trace)
    table = usage.usage(trace, by, window)
    if not pinned.can_tell(trace):
        nothing = {"held_pages": pa.float64(), "alone_pages": pa.int64(), "pinned_bytes": pa.int64()}
        for name, kind in nothing.items():
            table = table.append_column(name, pa.nulls(table.num_rows, kind))
        return table
    held = {tuple(row[name] for name in by): row for row in pinned.pinned(trace, by, window).table.to_pylist()}
    rows = [held.get(key, {}) for key in zip(*(table[name].to_pylist() for name in by), strict=True)]
    for name, zero in (("held_pages", 0.0), ("alone_pages", 0), ("pinned_bytes", 0)):
        table = table.append_column(name, pa.array([row.get(name, zero) for row in rows]))
    return table


def export(trace: Trace, form: str, path: Path, window: Window, weight: str = "live") -> None:
    """Writes the file. UserError when it cannot be written, or the trace lacks what the form needs."""
    FORMS[form](trace, path, window, WEIGHTS[weight])


def _folded(trace: Trace, path: Path, window: Window, weight: str) -> None:
    write_text(path, folded(_weighed(trace, window, weight)))


def _speedscope(trace: Trace, path: Path, window: Window, weight: str) -> None:
    unit = "bytes" if weight.endswith("bytes") else "none"
    write_text(path, speedscope(_weighed(trace, window, weight), f"{printable(trace.path.name)}: {weight.replace('_', ' ')}", unit))


def _weighed(trace: Trace, window: Window, weight: str) -> Stacks:
    by = usage.present_dimensions(trace)
    table = pinned.pinned(trace, by, window).table if weight == "pinned_bytes" else usage.usage(trace, by, window)
    return stacks(table, weight)


def _pprof(trace: Trace, path: Path, window: Window, _weight: str) -> None:
    from . import pprof

    made = []
    asked = ("allocations", "allocated_bytes", "live_objects", "live_bytes", "pinned_bytes")
    for row in gather(trace, window).to_pylist():
        module = row["module"]
        names = frames_of(row)
        frames = [*(pprof.Frame(name) for name in names[:-1]), pprof.Frame(names[-1], module), pprof.Frame(f"[{row['cache']}]")]
        labels = {name: row[name] for name in ("cache", "task") if name in row}
        made.append(pprof.Sample(frames, labels, [row[name] or 0 for name in asked]))
    content = pprof.write(made, window.until - window.since, f"slabyard export of {printable(trace.path.name)}")
    with whole_file(path) as part:
        part.write_bytes(content)


def _csv(trace: Trace, path: Path, window: Window, _weight: str) -> None:
    table = gather(trace, window)
    for place, column in enumerate(table.schema):
        if pyarrow.types.is_string(column.type):
            texts = [harmless(text) for text in table.column(place).to_pylist()]
            table = table.set_column(place, column, pyarrow.array(texts, column.type))
    with whole_file(path) as part, part.open("wb") as file:  # Arrow takes no name that is not UTF-8
        pyarrow.csv.write_csv(table, file)


def _parquet(trace: Trace, path: Path, window: Window, _weight: str) -> None:
    table = gather(trace, window)
    with whole_file(path) as part, part.open("wb") as file:
        pq.write_table(table, file, compression="zstd")


# ---- Counters over time ------------------------------------------------------------------------------------------


def curves(trace: Trace, window: Window, points: int = POINTS) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Times in nanoseconds, and at each the live bytes (int64) of each cache that ever held most, and of all (an empty name).

    One pass: changes are added up between two points, by cache. Within these, a short peak does not show.
    """
    times = np.linspace(window.since, max(window.until, window.since + 1), points).astype(np.int64)
    keys, joiner = Keys(trace.metadata, ["cache"]), Joiner()
    places: list[np.ndarray] = []
    amounts: list[np.ndarray] = []
    for batch in usage.batches_until(trace, window.last, ["time", *usage.OF_OBJECTS]):
        rows = Rows(batch)
        chosen = np.flatnonzero((rows.allocates | rows.frees) & ~rows.older)
        key = np.full(len(chosen), -1, np.int64)
        allocates = rows.allocates[chosen]
        key[allocates] = keys.number(rows, chosen[allocates])
        key = joiner.join(rows, chosen, key)
        point = np.minimum(np.searchsorted(times, batch["time"].to_numpy()[chosen]), points - 1)
        changes = np.where(allocates, 1, -1) * rows.allocated[chosen].astype(np.int64)
        known = key >= 0
        sums = np.bincount(key[known] * points + point[known], changes[known])
        used = np.flatnonzero(sums)
        places.append(used)
        amounts.append(sums[used])
    count = len(keys)
    grid = np.bincount(np.concatenate(places), np.concatenate(amounts), max(count, 1) * points) if places else np.zeros(points)
    held = np.rint(grid.reshape(max(count, 1), points).cumsum(axis=1)).astype(np.int64)
    most = np.argsort(-held.max(axis=1), kind="stable")[: min(COUNTERS, count)]
    names = keys.names()
    return times, {"": held.sum(axis=0)} | {names[number]: held[number] for number in most.tolist() if held[number].any()}


def _perfetto(trace: Trace, path: Path, window: Window, _weight: str) -> None:
    times, found = curves(trace, window)
    process = {"pid": 1, "tid": 1}
    title = f"kernel memory of {printable(trace.path.name)}"
    events: list[dict[str, Any]] = [{"ph": "M", "name": "process_name", **process, "args": {"name": title}}]
    for one in trace.metadata.snapshots:
        if window.since <= one.time <= window.until:
            events.append({"ph": "i", "name": one.name, "ts": one.time / 1000, **process, "s": "g"})
    if trace.metadata.has_pages:
        curve = recorded_curve(trace, with_older=True)
        pages = np.concatenate([[curve.before], curve.pages])[np.searchsorted(curve.times, times, side="right")]
        events += _counter("memory in slabs and large kmallocs", times, pages * trace.metadata.page_size)
    events += [event for name, held in found.items() for event in _counter(f"cache {name}" if name else "all live objects", times, held)]
    write_text(path, json.dumps({"traceEvents": events, "displayTimeUnit": "ns"}, separators=(",", ":")) + "\n")


def _counter(name: str, times: np.ndarray, held: np.ndarray) -> list[dict[str, Any]]:
    """A counter's values where they change."""
    at = np.flatnonzero(np.concatenate([[True], held[1:] != held[:-1]]))
    return [{"ph": "C", "name": name, "pid": 1, "ts": int(times[one]) / 1000, "args": {"bytes": int(held[one])}} for one in at]


Writer = Callable[[Trace, Path, Window, str], None]
FORMS: dict[str, Writer] = {
    "pprof": _pprof, "folded": _folded, "speedscope": _speedscope, "perfetto": _perfetto, "csv": _csv, "parquet": _parquet,
}  # fmt: skip
PROFILES: Sequence[str] = ("folded", "speedscope")  # which have one weight alone
