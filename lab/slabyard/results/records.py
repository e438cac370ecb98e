"""The result record: one workload under one allocator, with everything needed to repeat it.

docs/results-format.md is the schema in words. A record has three groups: `run` says what was done, `exact` holds the measures
that are the same to the byte on every machine, `timed` the medians of what was timed, with their intervals and
samples. A fourth, `cost`, is there where instructions were counted. Tables and reports are made from records alone.
"""

from __future__ import annotations

import os
import platform
import re
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numpy
import pyarrow

from .. import __version__
from ..base.files import read_text_if_there
from ..base.table import Cell, Table
from ..base.terminal import Progress, printable
from ..replay.workload import Workload
from . import measures
from .model import RECORDED

SCHEMA = 1

Record = dict[str, Any]
Sample = TypeVar("Sample")
Flat = Callable[[Record], dict[str, Cell]]


@cache
def machine() -> dict[str, Any]:
    """The machine that this runs on."""
    return {"cpu": _cpu_model(), "cpus": os.cpu_count() or 1, "arch": platform.machine(), "kernel": platform.release()}


def _cpu_model() -> str:
    match = re.search(r"^(?:model name|Model)[^:\n]*:(.*)", read_text_if_there(Path("/proc/cpuinfo")) or "", re.MULTILINE)
    return match[1].strip() if match else platform.processor() or "unknown"


def versions() -> dict[str, str]:
    """The versions of what made the record."""
    return {"slabyard": __version__, "python": platform.python_version(), "numpy": numpy.__version__, "pyarrow": pyarrow.__version__}


def tunables(spec: str) -> dict[str, str]:
    """The tunables that a spec sets: `slob:fit=best` gives {"fit": "best"}. What a preset sets is not among them."""
    name, _, rest = spec.partition(":")
    if name == "slabyard":  # a kernel with all policies: what follows is the spec of one
        return tunables(rest)
    if name == "malloc" or not rest:
        return {}
    return {key: value for key, equals, value in (item.partition("=") for item in rest.split(",")) if equals}


def interleaved(
    specs: Iterable[str], runs: int, warmup: int, title: str, progress: Progress, run: Callable[[str, int], Sample]
) -> dict[str, list[Sample]]:
    """What `run` gives of each spec in each turn: A B C A B C, so that whatever slows the machine for a while slows all of them.

    Warm-up rounds come first and are thrown away.
    """
    samples: dict[str, list[Sample]] = {spec: [] for spec in specs}
    for turn in range(warmup + runs):
        kind = "warm-up" if turn < warmup else f"run {turn - warmup + 1} of {runs}"
        for spec, kept in samples.items():
            progress.step(f"{title}: {spec}, {kind}", 0)
            sample = run(spec, turn)
            if turn >= warmup:
                kept.append(sample)
            progress.step(f"{title}: {spec}, {kind}")
    return samples


def flat(found: Sequence[Record], fields: Mapping[str, str], scalars: Sequence[measures.Measure], more: Flat = lambda _: {}) -> Table:
    """For CSV: a row for each record.

    `fields`: by column, the field of `run` that it shows. `scalars`: measures; timed ones have two more columns for their interval.
    `more` gives further columns.
    """
    rows: list[dict[str, Cell]] = []
    for record in found:
        row: dict[str, Cell] = {column: record["run"][name] for column, name in fields.items()}
        for measure in scalars:
            row[measure.column] = record.get(measure.group, {}).get(measure.name)
            if measure.group == "timed":
                bounds = record["timed"].get("intervals", {}).get(measure.name) or [None, None]
                row[f"{measure.column}_low"], row[f"{measure.column}_high"] = bounds
        rows.append(row | more(record))
    return Table("", list(rows[0]), [list(row.values()) for row in rows])


def summarise(samples: Sequence[dict[str, Any]], latency: dict[str, Any]) -> dict[str, Any]:
    """The `timed` group from at least one repetition: medians under the names themselves, `intervals`, `samples`.

    `latency` holds the percentiles of the latency pass, which are over single operations already.
    """
    out: dict[str, Any] = {}
    intervals: dict[str, list[float]] = {}
    kept: dict[str, list[float]] = {}
    for name, first in samples[0].items():
        values = [sample[name] for sample in samples if sample.get(name) is not None]
        if not values or isinstance(first, str) or (isinstance(first, int) and set(values) == {first}):
            out[name] = first  # a count, or what was not measured
            continue
        out[name] = statistics.median(values)
        kept[name] = values
        bounds = measures.interval(values)
        if bounds:
            intervals[name] = list(bounds)
    return {**out, **latency, "runs": len(samples), "intervals": intervals, "samples": kept}


def record(spec: str, run: Mapping[str, Any], exact: dict[str, Any], timed: dict[str, Any], cost: dict[str, Any] | None = None) -> Record:
    """A result record; `run` is the group of that name but for what all runs have."""
    group = {"allocator": spec, "tunables": tunables(spec), **run, "versions": versions(), "machine": machine()}
    return {"schema": SCHEMA, "run": group, "exact": exact, "timed": timed, **({"cost": cost} if cost else {})}


def of_replay(workload: Workload, spec: str, exact: dict[str, Any], timed: dict[str, Any], cost: dict[str, Any] | None = None) -> Record:
    """The record of a replay."""
    run = {
        "workload": workload.name,
        "substrate": "replay",
        "trace_sha256": workload.sha256,
        "path": printable(str(workload.path)),
        "cpus": workload.cpus,
        "nodes": workload.nodes,
        "memory": workload.options.memory,
        "start": workload.start,
        "pages": "recorded" if workload.pages_populated else "pristine",
        "allow_failures": workload.options.allow_failures,
        "seed": 0,
        "repetition": timed.get("runs", 1),
        "page_size": workload.metadata.page_size,
        "command": workload.metadata.command,
        "lost": workload.metadata.lost,
    }
    return record(spec, run, exact, timed, cost)


def of_recorded_kernel(workload: Workload) -> Record | None:
    """The record of the kernel that a trace was recorded on. None: nothing is known of its pages."""
    exact = workload.recorded()
    if exact is None:
        return None
    found = of_replay(workload, RECORDED, exact, {})
    found["run"]["substrate"] = "kernel"
    found["run"]["kernel"] = workload.metadata.kernel
    found["run"]["own_allocator"] = workload.own_allocator
    return found
