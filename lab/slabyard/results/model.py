"""What a report shows, out of result records: workloads, the series of each, and how both are called.

A record is one allocator's run of one workload (`run`, `exact`, `timed`). Records that share a workload's name and
trace hash make one section of the report; the record whose allocator is `recorded` is the real kernel that the trace was
taken on: it is drawn and listed, never ranked, since its time was not measured and its requests include untraced ones.

A series is one allocator throughout the report. It keeps one style number, given in order of first appearance over all
workloads, so that an allocator has one colour and one dash pattern in every chart. The style sheet turns the number into a
colour for light and for dark; this file knows no colours. Six colours that people with colour-blindness tell apart are all
that is to be had on both backgrounds, so the dash pattern (hatching in bars) changes after each six. Patterns never run out: from the
fourth on they are a dash and ever more dots, and hatches come again at twice the size.

Two records of one workload may carry the same allocator: on 2 and on 4 CPUs, say, or from two machines. Each then gets the
fields in which they differ in its label. Nothing is averaged and nothing dropped.

Records come from files that others may have made, so no field is taken for granted: `number`, `numbers` and `estimate` give
None, or an empty list, where a measure is missing or of another type, and the page shows an en dash for it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

RECORDED = "recorded"
PAGE_BYTES = 4096
DISTINGUISHING = ("cpus", "nodes", "start", "substrate", "repetition", "seed", "machine", "versions")

COLOURS = 6
DASHES = ((), (6, 3), (2, 2.5))  # lengths of strokes and gaps
HATCHES = ("/", ".", "\\", "x", "-", "|", "+")

Record = Mapping[str, Any]


@dataclass(frozen=True)
class Estimate:
    """A measured value with the ends of its interval; None where there were too few runs for one."""

    median: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Series:
    """One allocator in one workload: `key` and `style` are the same in every workload."""

    key: str
    label: str
    style: int | None
    record: Record

    @property
    def recorded(self) -> bool:
        """Whether this is the real kernel of the trace."""
        return self.style is None

    @property
    def run(self) -> Mapping[str, Any]:
        """The record's `run` group."""
        return group(self.record, "run")

    @property
    def exact(self) -> Mapping[str, Any]:
        """The record's deterministic measures."""
        return group(self.record, "exact")

    @property
    def timed(self) -> Mapping[str, Any]:
        """The record's measured times."""
        return group(self.record, "timed")

    @property
    def cost(self) -> Mapping[str, Any]:
        """The record's counted costs; empty where they were not counted."""
        return group(self.record, "cost")


@dataclass
class Section:
    """One workload of the records, a section of the report. `ident` is fit for an HTML id; `series` has the recorded kernel last."""

    ident: str
    name: str  # by which it is told from the others
    trace_sha256: str
    file: str = ""  # the trace's own name, without its suffix
    series: list[Series] = field(default_factory=list)

    @property
    def replayed(self) -> list[Series]:
        """The series that are compared with each other."""
        return [one for one in self.series if not one.recorded]

    @property
    def recorded(self) -> Series | None:
        """The real kernel's series, if there is one."""
        return next((one for one in self.series if one.recorded), None)


def colour(style: int) -> int:
    """The number of a style's colour in the style sheet."""
    return style % COLOURS


def dash(style: int) -> tuple[float, ...]:
    """Lengths of the strokes and gaps of a style's line; empty for a solid one."""
    pattern = style // COLOURS
    return DASHES[pattern] if pattern < len(DASHES) else (7, 2.5) + (1.5, 2.5) * (pattern - len(DASHES) + 1)


def hatch(style: int) -> tuple[str, int]:
    """The sign that a style's bars are hatched with, and its size; the first six have none."""
    pattern = style // COLOURS
    return (HATCHES[(pattern - 1) % len(HATCHES)], 4 * (1 + (pattern - 1) // len(HATCHES))) if pattern else ("", 0)


def group(record: Record, name: str) -> Mapping[str, Any]:
    """A record's group, empty where it is missing or no object."""
    value = record.get(name)
    return value if isinstance(value, Mapping) else {}


def number(value: Any) -> float | int | None:
    """The finite number that `value` is, or None."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return None
    return value


def numbers(value: Any) -> list[float | int | None]:
    """A list's numbers, None for what is none; empty for what is no list."""
    return [number(one) for one in value] if isinstance(value, (list, tuple)) else []


def rows(value: Any) -> list[Mapping[str, Any]]:
    """A list's objects."""
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, (list, tuple)) else []


def estimate(timed: Mapping[str, Any], *path: str) -> Estimate | None:
    """A time of a record's `timed` group, by its name or the names on the way to it.

    The value is a number, whose interval stands under the dotted name in `intervals`, or {"median", "low", "high"}.
    """
    value: Any = timed
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    if isinstance(value, Mapping):
        median, bounds = number(value.get("median")), [number(value.get("low")), number(value.get("high"))]
    else:
        median, bounds = number(value), numbers(group(timed, "intervals").get(".".join(path)))
    if median is None:
        return None
    return Estimate(median, bounds[0], bounds[1]) if len(bounds) == 2 and None not in bounds else Estimate(median, None, None)


def figure(one: Series, name: str) -> float | int | None:
    """A measure that is exact in a replay, and timed where it had to be measured: of booted kernels, and of a malloc's memory."""
    known = number(one.exact.get(name))
    return number(one.timed.get(name)) if known is None else known


def started(one: Series) -> float | int | None:
    """Pages held before the workload. Records of older versions tell them by what went to and fro."""
    start = figure(one, "held_pages_start")
    if start is not None:
        return start
    end, taken, returned = (figure(one, name) for name in ("held_pages_end", "pages_taken", "pages_returned"))
    return None if end is None or taken is None or returned is None else end - taken + returned


def grew(one: Series) -> float | int | None:
    """By how many pages the peak is above the start."""
    known, peak, start = figure(one, "grew_pages_peak"), figure(one, "held_pages_peak"), started(one)
    return peak - start if known is None and peak is not None and start is not None else known


def kept(one: Series) -> float | int | None:
    """By how many pages the end is above the start."""
    known, end, start = figure(one, "grew_pages_end"), figure(one, "held_pages_end"), started(one)
    return end - start if known is None and end is not None and start is not None else known


def allocator_label(run: Mapping[str, Any]) -> str:
    """The allocator as a user writes it: `slub`, `slob:fit=best`, `malloc:system`."""
    name = str(run.get("allocator") or "unnamed")
    tunables = run.get("tunables")
    if ":" in name or not isinstance(tunables, Mapping) or not tunables:
        return name
    return f"{name}:{','.join(f'{key}={value}' for key, value in tunables.items())}"


def short(label: str) -> str:
    """A label that fits into little room: a malloc by its file's name alone."""
    return f"malloc:{label.removeprefix('malloc:').rpartition('/')[2]}" if label.startswith("malloc:") else label


def plain(value: Any) -> str:
    """A run field as text: strings as they are, all else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)


def workload_name(run: Mapping[str, Any]) -> str:
    """The name of a workload: a trace's file name without folder and suffix, or the command that was recorded."""
    name = plain(run.get("workload") or "unnamed workload")
    if name.endswith(".parquet"):
        name = name.removesuffix(".parquet").rsplit("/", 1)[-1]
    return name


def distinct_names(named: list[tuple[str, str, Mapping[str, Any]]]) -> list[str]:
    """Names of workloads, each given with its trace's hash and `run`: of two traces of one name the folders that tell them apart, or
    else the hash."""
    found = []
    for name, digest, run in named:
        twins = [(other, plain(about.get("path") or "")) for twin, other, about in named if twin == name]
        if len(twins) == 1:
            found.append(name)
            continue
        folders = [path.removesuffix(".parquet").split("/") for _, path in twins]
        mine = plain(run.get("path") or "").removesuffix(".parquet").split("/")
        tails = ["/".join(mine[-length:]) for length in range(2, len(mine) + 1)]
        told = next((tail for tail in tails if sum(f"/{'/'.join(one)}".endswith(f"/{tail}") for one in folders) == 1), "")
        found.append(told or f"{name} ({digest[:8]})")
    return found


def distinct_labels(records: list[Record]) -> list[str]:
    """Labels of a workload's records, with the run fields that tell records of one allocator apart."""
    runs = [group(record, "run") for record in records]
    names = [allocator_label(run) for run in runs]
    labels = []
    for index, (name, run) in enumerate(zip(names, runs, strict=True)):
        twins = [other for other, twin in zip(runs, names, strict=True) if twin == name]
        differing = [key for key in DISTINGUISHING if len({plain(twin.get(key)) for twin in twins}) > 1]
        label = name
        if differing:
            label += f" [{', '.join(f'{key}={plain(run.get(key))[:40]}' for key in differing)}]"
        elif len(twins) > 1:
            label += f" [{names[:index].count(name) + 1}]"
        labels.append(label)
    return labels


def workloads(records: Iterable[Record]) -> list[Section]:
    """Sections in order of appearance, each with its series; styles are shared between sections."""
    sections: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        run = group(record, "run")
        sections.setdefault((workload_name(run), plain(run.get("trace_sha256") or run.get("arch") or "")), []).append(record)
    styles: dict[str, int] = {}
    found = []
    labels = distinct_names([(name, digest, group(members[0], "run")) for (name, digest), members in sections.items()])
    for place, ((name, digest), members) in enumerate(sections.items()):
        workload = Section(f"w{place}", labels[place], digest, name)
        for label, record in zip(distinct_labels(members), members, strict=True):
            real = group(record, "run").get("allocator") == RECORDED
            style = None if real else styles.setdefault(label, len(styles))
            workload.series.append(Series(label if real else f"a{style}", label, style, record))
        workload.series.sort(key=lambda one: one.recorded)
        found.append(workload)
    return found


def page_bytes(workload: Section) -> int:
    """The page size of the recorded kernel, 4096 where the records don't say."""
    for one in workload.series:
        size = number(one.run.get("page_size"))
        if size is not None and size > 0:
            return int(size)
    return PAGE_BYTES


def memory_unit(workload: Section) -> tuple[str, int]:
    """Name and size in bytes of the unit in which a workload's memory is shown everywhere: it goes by what is ranked, how far memory grew,
    so that a little growth of a large heap does not vanish; by the peaks where no growth is known."""
    known = [one for one in map(grew, workload.series) if one is not None]
    pages = known or [figure(one, "held_pages_peak") or 0 for one in workload.series]
    return ("KiB", 1 << 10) if max(pages, default=0) * page_bytes(workload) < 100 << 20 else ("MiB", 1 << 20)


def memory_text(workload: Section, pages: float) -> str:
    """A number of pages as memory, in the workload's unit, without naming it."""
    unit, size = memory_unit(workload)
    return f"{pages * page_bytes(workload) / size:,.{0 if unit == 'KiB' else 2}f}"
