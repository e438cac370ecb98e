"""What the answers about sheaves share: recordings and their replays, figures per 1,000 operations, intervals and tables."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..base.table import Table
from ..replay.workload import Options
from ..results.measures import off_fast_path
from . import filling
from .model import Data, Figure, Sheet
from .work import Work

OLD, NEW = "slub:linux=6.12", "slub:linux=7.0"
REPLAYS = Options(locks=True, environment=False)
PAGE_KIB = 4
PER = 1000
JOBS = os.cpu_count() or 1
DRAWS, CONFIDENCE = 10_000, 95  # of the bootstrap; %


def paths(work: Work) -> list[Path]:
    return sorted((work.traces or filling.RECORDING.parent).glob("*.parquet"))


def cost(exact: Data) -> Data:
    """Of a replay: pages, operations, and of these what left the fast path, with the locks taken."""
    operations, slow = off_fast_path(exact)
    return {
        "held": exact["held_pages_peak"], "grew": exact["grew_pages_peak"], "ops": operations, "slow": round(slow), "locks": exact["locks"],
    }  # fmt: skip


def each(work: Work, part: Callable[[Path], Any], side_by_side: bool = True) -> dict[str, Any]:
    """What a part gives of each recording, by its name."""
    parts = {path.stem: partial(part, path) for path in paths(work)}
    return work.side_by_side(parts) if side_by_side else work.in_turn(parts)


def per(one: Data, name: str) -> float:
    """For each thousand operations."""
    return PER * one[name] / max(1, one["ops"])


def interval(values: Sequence[float]) -> tuple[float, float, float]:
    """The mean, and its 95% interval over recordings: of 10,000 resamples (bootstrap, by percentiles), always the same ones."""
    found = np.asarray(values, float)
    means = found[np.random.default_rng(1).integers(0, len(found), (DRAWS, len(found)))].mean(axis=1)
    rest = (100 - CONFIDENCE) / 2
    low, high = np.percentile(means, [rest, 100 - rest])
    return float(found.mean()), float(low), float(high)


def grid(title: str, columns: Sequence[str], rows: Sequence[tuple[str, Sequence[Any]]], notes: Sequence[str] = ()) -> Sheet:
    """A table of several columns; each cell is also a figure with the names of both."""
    flat = [(f"{name}: {column}", Figure(None, value)) for name, values in rows for column, value in zip(columns[1:], values, strict=True)
            if not isinstance(value, str)]  # fmt: skip
    return Sheet(title, "", flat, notes=notes, table=Table(title, columns, [[name, *values] for name, values in rows], list(notes)))


def between(of: tuple[float, float, float], digits: int = 1) -> str:
    return f"{of[0]:+.{digits}f} ({of[1]:+.{digits}f} to {of[2]:+.{digits}f})"


def within(of: tuple[float, float, float], digits: int = 1) -> str:
    return f"{of[0]:.{digits}f} ({of[1]:.{digits}f} to {of[2]:.{digits}f})"


LEFT_OUT = (
    "Left out by the model: the sheaf that kfree_rcu fills and prefilled sheaves, of which no event tells; time, cache misses and waiting "
    "for locks; what else a kernel of that version would do otherwise. The recordings are of two CPUs."
)


def of_caches(exact: Data) -> dict[str, list[int]]:
    """By cache: operations, slow ones, locks, bytes at the peak, bytes of an object."""
    found: dict[str, list[int]] = {}
    for row in exact["caches"]:
        pages = row["pages_peak"] or 0
        found[row["name"]] = [row.get("operations", 0), row.get("slow", 0), row.get("locks", 0), pages * PAGE_KIB << 10, row["size"] or 0]
    return found
