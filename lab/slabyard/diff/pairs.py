"""Two files of result records: which runs are the same one twice, and what of each measure changed.

A run is its workload, substrate, allocator and machine: CPUs, nodes, memory, start, threads and so on. The trace's hash is no part of it,
as a workload recorded anew is still that workload; it is told where it differs. Two files of one run each are compared whatever the
runs are: whoever names two such files wants these two compared.

Where a memory measure of growth is missing in either record, as older versions wrote them, the peak stands in for it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..base.errors import UserError
from ..base.files import describe_os_error
from ..base.terminal import printable
from ..results import measures, records
from ..results.model import RECORDED, Estimate, estimate, group, number, rows
from .model import Difference, Grown, Row

Record = Mapping[str, Any]

IDENTITY = ("cpus", "nodes", "memory", "start", "allow_failures", "threads", "operations", "size", "batch", "caches", "pinned", "arch")
SHOWN = ("cpus", "nodes", "memory", "start", "threads", "size", "arch")
PER_OPERATION = ("instructions", "l1_misses", "ll_misses")
COST = {"instructions": "cost", "l1_misses": "first-level misses", "ll_misses": "last-level misses"}
# Short name, names in a record in order of preference, unit, and a unit of it in bytes.
MEMORY = (("memory", ("grew_pages_peak", "held_pages_peak")), ("peak", ("held_pages_peak",)), ("kept", ("grew_pages_end",)))
TIMES = ("ns_per_operation", "seconds")
OTHERS = ("fragmentation_events", "total_fragmentation_peak", "failures", "environment_failures")
SHORT = {"fragmentation_events": "fragmentation", "total_fragmentation_peak": "waste"}


def read(path: Path) -> list[Record] | None:
    """The records of a file; None: it is not JSON. UserError where it is, and holds no records."""
    try:
        with path.open("rb") as file:
            head = file.read(64).lstrip()
            if not head.startswith((b"[", b"{")):
                return None
            found = json.loads(head + file.read(), parse_float=_finite, parse_constant=_finite)
    except OSError as error:
        raise UserError(describe_os_error(error, path)) from error
    except (ValueError, RecursionError):
        raise UserError(f"{path}: JSON that is damaged or cut off; export the records again") from None
    listed = found if isinstance(found, list) else [found]
    if not listed or not all(isinstance(one, dict) and isinstance(one.get("run"), dict) and "schema" in one for one in listed):
        raise UserError(f"{path}: JSON, but no result records; compare --export-json, or any verb with --format json, writes them")
    newer = next((one["schema"] for one in listed if one["schema"] != records.SCHEMA), None)
    if newer is not None:
        raise UserError(f"{path}: result records of schema {newer}; this slabyard knows {records.SCHEMA} only")
    return listed


def _finite(text: str) -> float:
    """A number of a record. NaN and infinity are none, and nothing would be a regression beside them."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number


def _identity(record: Record) -> tuple[str, ...]:
    run = record["run"]
    return (*(str(run.get(name)) for name in ("workload", "substrate", "allocator")), *(json.dumps(run.get(name)) for name in IDENTITY))


def compare(old: Sequence[Record], new: Sequence[Record], names: tuple[str, str], wanted: Collection[str] = ()) -> Difference:
    """Every run of both; `names` are those of the files, `wanted` names timed measures beside the usual ones. UserError where no run
    is in both."""
    found = Difference(*names)
    ours, others = _by_identity(old, names[0]), _by_identity(new, names[1])
    if len(ours) == len(others) == 1 and ours.keys() != others.keys():
        pairs = [(next(iter(ours.values())), next(iter(others.values())))]
        found.notes.append(f"Two runs that differ: {_differing(pairs[0][0]['run'], pairs[0][1]['run'])}.")
    else:
        pairs = [(ours[key], others[key]) for key in ours if key in others]
        found.missing = [_said(ours[key]) for key in ours if key not in others]
        found.added = [_said(others[key]) for key in others if key not in ours]
    if all(_is_recorded(one) for one, _ in pairs) and (not pairs or (found.missing and found.added)):
        raise UserError(f"{names[0]} and {names[1]} have no run in common; a run is a workload under an allocator on a machine")
    counted = _ambiguous(one for one, _ in pairs)
    for before, after in pairs:
        run = _label(before, counted)
        found.rows += [Row(run, str(before["run"].get("workload")), *row) for row in _rows(before, after, wanted)]
        found.grown += _caches(before, after, run)
    found.notes += _notes(pairs)
    return found


def _by_identity(listed: Sequence[Record], name: str) -> dict[tuple[str, ...], Record]:
    found: dict[tuple[str, ...], Record] = {}
    for record in listed:
        key = _identity(record)
        if key in found:
            raise UserError(f"{name} has two records of {_said(record)}; leave one out")
        found[key] = record
    return found


def _is_recorded(record: Record) -> bool:
    """Whether it is of the kernel that a trace was recorded on, which is the same whatever replays the trace."""
    return str(record["run"].get("allocator")) == RECORDED


def _said(record: Record) -> str:
    return printable(f"{record['run'].get('workload')} under {record['run'].get('allocator')}")


def _differing(one: Record, other: Record) -> str:
    names = ("workload", "allocator", "substrate", *IDENTITY)
    return ", ".join(f"{name} {one.get(name)} and {other.get(name)}" for name in names if one.get(name) != other.get(name))


def _ambiguous(listed: Iterable[Record]) -> set[str]:
    """The fields that tell runs of one workload and allocator apart."""
    seen: dict[tuple[str, str], Record] = {}
    found: set[str] = set()
    for record in listed:
        run = record["run"]
        first = seen.setdefault((str(run.get("workload")), str(run.get("allocator"))), run)
        found |= {name for name in ("substrate", *SHOWN) if run.get(name) != first.get(name)}
    return found


def _label(record: Record, counted: set[str]) -> str:
    run = record["run"]
    more = [f"{name} {run.get(name)}" for name in ("substrate", *SHOWN) if name in counted]
    return printable(", ".join([str(run.get("allocator")), *more]))


# ---- Measures ------------------------------------------------------------------------------------------------------------------


def _value(record: Record, name: str) -> Estimate | None:
    """Exact, counted, or timed with its interval."""
    for exact in ("exact", "cost"):
        known = number(group(record, exact).get(name))
        if known is not None:
            return Estimate(known, known, known)
    timed = group(record, "timed")
    if name not in group(timed, "samples") and number(timed.get(name)) is not None and (number(timed.get("runs")) or 0) > 1:
        known = number(timed[name])
        return None if known is None else Estimate(known, known, known)  # the same in every repetition
    found = estimate(timed, name)
    if found is not None and (number(timed.get("runs")) or measures.USUAL_RUNS) < measures.USUAL_RUNS:
        return Estimate(found.median, None, None)  # so few repetitions tell no regression at 95%
    return found


_Cells = tuple[str, str, str, Estimate, Estimate, float]


def _rows(old: Record, new: Record, wanted: Collection[str]) -> list[_Cells]:
    found: list[_Cells] = []
    page = float(number(old["run"].get("page_size")) or 4096)

    def add(short: str, name: str, unit: str, scale: float = 1) -> bool:
        before, after = _value(old, name), _value(new, name)
        if before is None or after is None:
            return False
        found.append((short, name, unit, before, after, scale))
        return True

    for short, names in MEMORY:
        any(add(short, name, "pages", page) for name in names if name not in {row[1] for row in found})
    if not any(add("time", name, "ns" if name.startswith("ns") else "s") for name in TIMES):
        for name in group(group(old, "timed"), "samples"):
            if not name.endswith(("_low", "_high", "_allocation")):
                add("time", name, "cycles" if old["run"].get("workload") == "bench" else "")
    for name in PER_OPERATION:
        add(COST[name], name, "")
    units = {measure.name: measure.unit for measure in measures.MEASURES}
    for name in OTHERS:
        add(SHORT.get(name, name), name, units[name])
    shown = {name for _, name, *_ in found}
    for measure in measures.MEASURES:
        if measure.name not in shown and (measure.group == "exact" or measure.name in wanted):
            add(measure.name, measure.name, measure.unit, page if measure.unit == "pages" else 1)
    return found


def _caches(old: Record, new: Record, run: str) -> list[Grown]:
    """Caches by their pages at the end, where both records have them and they differ."""
    page = number(old["run"].get("page_size")) or 4096
    by_name: list[dict[str, tuple[int | None, int]]] = []
    for record in (old, new):
        table: dict[str, tuple[int | None, int]] = {}
        for row in rows(group(record, "exact").get("caches")):
            pages, live = number(row.get("pages")), int(number(row.get("live")) or 0)
            held, objects = table.get(str(row.get("name")), (None, 0))
            table[str(row.get("name"))] = (held if pages is None else int(pages * page) + (held or 0), objects + live)
        by_name.append(table)
    mine, others = by_name
    found = []
    for name in dict.fromkeys([*mine, *others]):
        (before, count), (after, counted) = mine.get(name, (None, 0)), others.get(name, (None, 0))
        if (before or 0) != (after or 0):
            found.append(Grown(str(old["run"].get("workload")), run, "cache", name, before, after, count, counted))
    return sorted(found, key=lambda one: (-abs(one.change), one.name))


def _notes(pairs: Sequence[tuple[Record, Record]]) -> list[str]:
    notes = []
    another = dict.fromkeys(
        str(one["run"].get("workload")) for one, two in pairs if one["run"].get("trace_sha256") != two["run"].get("trace_sha256")
    )
    if another:
        notes.append(f"Of {', '.join(map(printable, another))} the trace is another one than before.")
    for what, names in (("machine", ("cpu", "kernel")), ("versions", ("slabyard",))):
        one, two = (group(record["run"], what) for record in pairs[0])
        said = [f"{name} {one.get(name)}, now {two.get(name)}" for name in names if one.get(name) != two.get(name)]
        if said and what == "machine" and one.get("cpu") != two.get("cpu"):
            said.append("times of two kinds of processor cannot be compared")
        if said:
            notes.append(f"{printable('; '.join(said))[:1].upper()}{printable('; '.join(said))[1:]}.")
    return notes
