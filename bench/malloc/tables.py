"""What bench-malloc tells of its samples: ratios to the first allocator with intervals, geometric means, ranks.

A ratio is the median of those of each round, in which the runs follow each other: what slows the machine for minutes slows both, while
medians of two allocators' runs alone may fall to either side of such a change. The interval of a median is that of slabyard.measures
where there are samples enough for 95%; of five, the least and the most, which hold the true median with 94%. A program that failed
under an allocator counts for none of that allocator's means, and is told beside it. Ranks are by geometric mean over the programs that
all allocators completed.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from slabyard.base.errors import UserError
from slabyard.base.files import write_text
from slabyard.base.table import Cell, Figure, Table, between, document, render
from slabyard.results import measures, records

BEGIN, END = "<!-- bench-malloc begins -->", "<!-- bench-malloc ends -->"
NO_FIGURE = ("failed", "-")
LOSS = 1.10  # times the best peer


def machine() -> dict[str, Any]:
    """Where this runs."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {**records.machine(), "libc": platform.libc_ver()[1], "memory_gib": round(memory / 2**30)}


def _read(path: Path) -> dict[str, Any]:
    """What --json wrote. UserError when it is something else, or not all of it."""
    try:
        found = json.loads(path.read_text())
    except ValueError:
        found = None
    if not isinstance(found, dict) or not found.keys() >= {"machine", "allocators", "programs", "samples", "faults"}:
        raise UserError(f"{path}: not what --json of bench-malloc wrote, or cut off")
    return found


def merged(paths: Sequence[Path]) -> dict[str, Any]:
    """One result of several that were written with --json: what a later file has of a program and allocator replaces the earlier. Ratios
    mean something where all samples of a program are of one file."""
    found = _read(paths[0])
    for path in paths[1:]:
        later = _read(path)
        for name in ("allocators", "programs"):
            found[name].update(later[name])
        for program, by_allocator in later["samples"].items():
            found["samples"].setdefault(program, {}).update(by_allocator)
        again = tuple(f"{program} under {name}:" for program, by in later["samples"].items() for name in by)
        found["faults"] = [fault for fault in found["faults"] if not fault.startswith(again)] + later["faults"]
    return found


def _key(measure: str, clock: str) -> str:
    return "peak_kb" if measure == "memory" else "seconds" if clock == "wall" else "cpu_seconds"


def _values(found: dict[str, Any], program: str, allocator: str, key: str) -> list[float]:
    return [sample[key] for sample in found["samples"].get(program, {}).get(allocator, [])]


def _interval(values: Sequence[float]) -> tuple[float, float]:
    return measures.interval(values) or (min(values), max(values))


def pairs(found: dict[str, Any], key: str, program: str, allocator: str, other: str) -> list[float]:
    """How many times the other's value an allocator's is, by round, as far as both completed it."""
    values, others = _values(found, program, allocator, key), _values(found, program, other, key)
    return [value / one for value, one in zip(values, others, strict=False)]


def ratios(found: dict[str, Any], key: str) -> dict[str, dict[str, float]]:
    """By program and allocator, to the first allocator; what failed is not there."""
    names = list(found["allocators"])
    out: dict[str, dict[str, float]] = {}
    for program in found["programs"]:
        by = {name: pairs(found, key, program, name, names[0]) for name in names}
        out[program] = {name: statistics.median(values) for name, values in by.items() if values}
    return out


def geometric_means(found: dict[str, Any], key: str) -> dict[str, float]:
    """Of the ratios to the first allocator, over the programs that all completed."""
    names = list(found["allocators"])
    complete = [by for by in ratios(found, key).values() if len(by) == len(names)]
    if not complete:
        return {}
    return {name: statistics.geometric_mean(by[name] for by in complete) for name in names}


class Loss(NamedTuple):
    """One of ours behind a peer: how many times the peer's value its own is, with the interval of that."""

    program: str
    ours: str
    peer: str
    ratio: float
    interval: tuple[float, float]


def losses(found: dict[str, Any], key: str) -> list[Loss]:
    """Each of ours with the peer that is most ahead of it, by program. Worst first."""
    ours = [name for name in found["allocators"] if name.startswith("slabyard")]
    peers = [name for name in found["allocators"] if name not in ours]
    out = []
    for program in found["programs"]:
        for name in ours:
            behind = {peer: pairs(found, key, program, name, peer) for peer in peers}
            all_peers = [Loss(program, name, peer, statistics.median(v), _interval(v)) for peer, v in behind.items() if v]
            out += [max(all_peers, key=lambda loss: loss.ratio)] if all_peers else []
    return sorted(out, key=lambda loss: -loss.ratio)


def _loss_lines(found: dict[str, Any], key: str, mark: str) -> list[str]:
    """Of losses by more than LOSS, a line each; `mark` stands around the name of ours."""
    return [
        f"{mark}{loss.ours}{mark} on {loss.program}: {loss.ratio:.2f} times {loss.peer} ({loss.interval[0]:.2f} to {loss.interval[1]:.2f})"
        for loss in losses(found, key)
        if loss.ratio > LOSS
    ]


def _grid(found: dict[str, Any], key: str) -> tuple[list[str], list[list[str]]]:
    names = list(found["allocators"])
    rows = []
    for program, by in ratios(found, key).items():
        cells = [f"{by[name]:.2f}" if name in by else "failed" for name in names]
        if names[0] in by:
            median = statistics.median(_values(found, program, names[0], key))
            cells[0] = f"{median / 1024:.1f} MiB" if key == "peak_kb" else f"{median:.2f} s"
        rows.append([program, *cells])
    means = geometric_means(found, key)
    ranks = {name: 1 + sum(other < value - 1e-9 for other in means.values()) for name, value in means.items()}
    rows.append(["geom. mean", *(f"{means[name]:.3f}" if name in means else "-" for name in names)])
    rows.append(["rank", *(str(ranks.get(name, "-")) for name in names)])
    return ["program", *names], rows


def _spread(found: dict[str, Any], key: str) -> list[list[str]]:
    """Intervals, as percent of the median: of the first allocator's values, and of the others' ratios."""
    names = list(found["allocators"])
    rows = []
    for program in found["programs"]:
        spreads = [_values(found, program, names[0], key), *(pairs(found, key, program, name, names[0]) for name in names[1:])]
        rows.append([program, *(_percent(values) for values in spreads)])
    return rows


def _percent(values: Sequence[float]) -> str:
    if not values:
        return "-"
    middle, (low, high) = statistics.median(values), _interval(values)
    return f"{100 * (low / middle - 1):+.0f}..{100 * (high / middle - 1):+.0f}"


def _titles(found: dict[str, Any], clock: str) -> list[tuple[str, str]]:
    first = next(iter(found["allocators"]))
    what = "wall clock" if clock == "wall" else "processor time"
    return [
        (_key("time", clock), f"Time ({what}): seconds of {first}, the others as its multiple"),
        (_key("memory", clock), f"Peak resident memory: MiB of {first}, the others as its multiple"),
    ]


def text(found: dict[str, Any], clock: str) -> str:
    """For the terminal."""
    parts: list[Table] = []
    for key, title in _titles(found, clock):
        columns, rows = _grid(found, key)
        behind = [f"  {line}" for line in _loss_lines(found, key, "")]
        notes = [f"More than {LOSS:.2f} times the best peer:", *behind] if behind else []
        cells: list[list[Cell]] = [[Figure(None, cell) if cell in NO_FIGURE else cell for cell in row] for row in rows]
        parts.append(Table(title, columns, cells, notes, whole=True))
    return render(parts, "text") + "".join(f"\nFAILED: {fault}" for fault in found["faults"])


def _rounds(found: dict[str, Any]) -> str:
    """As many as there are; where results were merged that may differ by program."""
    counts = [max(map(len, by.values()), default=0) for by in found["samples"].values()]
    least, most = min(counts, default=0), max(counts, default=0)
    return str(most) if least == most else f"{least} to {most}"


def markdown(found: dict[str, Any], clock: str) -> str:
    """For docs/benchmarks.md: what stands between its markers."""
    where = found["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in found["allocators"].items())
    hardware = f"{where['cpu']}, {where['cpus']} CPUs, {where['memory_gib']} GiB, Linux {where['kernel']}"
    parts = [textwrap.fill(f"{hardware}; {_rounds(found)} counted rounds. {versions}.", 120)]
    for key, title in _titles(found, clock):
        columns, rows = _grid(found, key)
        parts.append(f"### {title}\n\n{document(columns, rows)}")
        behind = [f"- {line}" for line in _loss_lines(found, key, "`")]
        if behind:
            parts.append(f"More than {LOSS:.2f} times the best peer:\n\n" + "\n".join(behind))
        parts.append(f"Intervals, in percent of what stands above:\n\n{document(columns, _spread(found, key))}")
    if found["faults"]:
        parts.append("Failed:\n\n" + "\n".join(f"- {fault}" for fault in found["faults"]))
    return "\n\n".join(parts)


def write_docs(path: Path, body: str) -> None:
    """Replaces what stands between the markers."""
    whole = path.read_text() if path.exists() else f"{BEGIN}\n{END}\n"
    write_text(path, between(whole, BEGIN, END, f"\n{body}\n"))
