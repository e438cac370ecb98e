"""Recordings compared with the kernel that was recorded: makes the table of docs/fidelity.md, "Recordings", again.

    for i in 1 2 3; do mkdir -p DIR/$i; sudo env TRACES=DIR/$i traces/record.sh; done
    python bench/recordings.py --draws 2 DIR/1 DIR/2 DIR/3

`Slab:` of /proc/meminfo is the kernel's own figure of what its allocator holds, read at the start and at the end of a recording. Beside it
stand the recorded allocator's pages as the trace has them: what it held at the start, with the runs of pages taken for slabs and large
kmallocs and less those given back since; the slabs of which no event tells (trace/unseen.py); and what a replay under the recorded
allocator holds, with what was there before. `grew` is the growth up to the peak, `kept` what of it is there at the end.

With `--draws N` each recording of record.sh's workloads is replayed N times more, from other starts: what nothing tells of the slabs at
the start is drawn at random (their order, the CPU that has each, which objects of partial ones are free) where else it is spread evenly.
How far these replays are from the first one is what no replay can know.

Events are in thousands. Traces of other workloads in these folders come behind those of traces/record.sh. What the machine did is
different in each recording, so the figures are, too; the tests don't check this table.
"""

from __future__ import annotations

import argparse
import os
import sys
import textwrap
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any
from unittest import mock

import numpy as np

from slabyard.base.errors import UserError
from slabyard.base.files import write_text
from slabyard.base.table import Cell, between, document
from slabyard.replay import population
from slabyard.replay.workload import Options, Workload
from slabyard.trace.file import recorded_curve
from slabyard.trace.snapshots import parse_slabinfo
from slabyard.trace.unseen import unseen_slabs

DOCUMENT = Path(__file__).parent.parent / "docs" / "fidelity.md"
WORKLOADS = ("hackbench", "find", "spike", "fileio", "build")
PAGE_KIB = 4
BEGIN, END = "<!-- recordings: made by bench/recordings.py -->", "<!-- end of recordings -->"
COLUMNS = (
    "workload", "events", "at start", "replay", "at end", "recorded", "unseen", "off by", "grew", "replay", "off by", "kept", "replay",
)  # fmt: skip
SHEAFED = ("vm_area_struct", "maple_node")


@dataclass
class Recording:
    """One recording, in KiB."""

    workload: str
    events: int
    slab: list[int]  # `Slab:` at the start and at the end
    recorded: int  # at the end, by the trace
    unseen: int
    replay: list[int]  # at the start and at the end
    grew: tuple[int, int]  # recorded, replayed
    sheafed: dict[str, float]  # share by which the replay's pages at the end are more than slabinfo's, by cache
    drawn: list[tuple[int, int]] = field(default_factory=list)  # how much replays from other starts grew and kept

    @property
    def kept(self) -> tuple[int, int]:
        """Recorded, replayed."""
        return self.recorded - self.slab[0], self.replay[1] - self.replay[0]

    @property
    def off(self) -> float:
        """Share of `Slab:` at the end that the trace and the unseen slabs have too much."""
        return (self.recorded + self.unseen - self.slab[1]) / self.slab[1]

    def row(self) -> list[Cell]:
        """The cells of COLUMNS."""
        thousands = round(self.events / 1000)
        cells: list[Cell] = [self.workload, thousands, self.slab[0], self.replay[0], self.slab[1], self.recorded, self.unseen]
        growth = (self.grew[1] - self.grew[0]) / self.grew[0] if self.grew[0] else 0.0
        return [*cells, f"{self.off:+.1%}", *self.grew, f"{growth:+.1%}", *self.kept]


@contextmanager
def another_start(seed: int) -> Iterator[None]:
    """Slabs at the start as nothing forbids them to have been."""
    random = np.random.default_rng(seed)
    first_uses = population._first_uses

    def places(*arguments: Any) -> tuple[np.ndarray, np.ndarray]:
        place, cpu = first_uses(*arguments)
        unknown = place < 1  # those of known use are behind
        place[unknown] = random.random(int(unknown.sum()))
        cpu[cpu < 0] = random.integers(0, 1 << 15, int((cpu < 0).sum()))
        return place, cpu

    def holes(slab: np.ndarray, vacated: int, kind: Any) -> np.ndarray:
        slabs = int(slab[-1]) + 1 if vacated else 0
        most = min(slabs, max(kind.partial_slabs, -(-vacated // max(1, kind.slab_objects - 1))))
        among = np.flatnonzero(np.isin(slab, random.permutation(slabs)[:most]))
        return random.permutation(among if len(among) >= vacated else len(slab))[:vacated]

    with mock.patch.object(population, "_first_uses", places), mock.patch.object(population, "_holes", holes):
        yield


def from_another_start(path: Path, seed: int) -> tuple[int, int]:
    """How much a replay grew and kept, in KiB."""
    with another_start(seed), Workload(path, Options()) as workload:
        exact = workload.exact("slub")
    return exact["grew_pages_peak"] * PAGE_KIB, exact["grew_pages_end"] * PAGE_KIB


def measure(path: Path, draws: int) -> Recording:
    """Replays a recording under the recorded allocator."""
    with Workload(path, Options()) as workload:
        exact, metadata = workload.exact("slub"), workload.metadata
        curve = recorded_curve(workload.trace, with_older=True)
        unseen = sum((unseen_slabs(workload.trace) or {}).values())
    start, end = exact["snapshots"][0], exact["snapshots"][-1]
    replay = [(one["slab_pages"] + one["large_pages"]) * PAGE_KIB for one in (start, end)]
    table = {line.name: line.slabs * line.pages_per_slab for line in parse_slabinfo(metadata.snapshots[-1].files["slabinfo"])}
    pages = {row["name"]: row["pages"] for row in exact["caches"]}
    return Recording(
        path.stem, sum(metadata.events.values()), [one["recorded_slab_kb"] for one in (start, end)], curve.end * PAGE_KIB,
        unseen * PAGE_KIB, replay, ((curve.peak - curve.before) * PAGE_KIB, exact["held_pages_peak"] * PAGE_KIB - replay[0]),
        {name: pages[name] / table[name] - 1 for name in SHEAFED if table.get(name) and pages.get(name)},
        [from_another_start(path, seed) for seed in range(draws if path.stem in WORKLOADS else 0)],
    )  # fmt: skip


def counted(recordings: list[Recording]) -> str:
    """How many of them are how close, in words."""

    def near(pairs: list[tuple[int, int]], share: float, kib: int = 0) -> int:
        return sum(abs(found - true) <= max(share * abs(true), kib) for true, found in pairs)

    grew, kept = [one.grew for one in recordings], [one.kept for one in recordings]
    alone = near([(one.slab[1], one.recorded) for one in recordings], 0.005)
    with_unseen = near([(one.slab[1], one.recorded + one.unseen) for one in recordings], 0.005)
    sheafed = []
    for name in SHEAFED:
        off = [abs(one.sheafed[name]) for one in recordings if name in one.sheafed]
        sheafed.append(f"`{name}` in {sum(share <= 0.05 for share in off)} of {len(off)}")
    lines = (
        f"Of {len(recordings)} recordings `recorded` alone is `Slab:` at the end to 0.5% in {alone}, with unseen slabs in {with_unseen}. "
        f"The replay's growth at the peak is the recorded one to 2% in {near(grew, 0.02)}, to 5% in {near(grew, 0.05)}, to 2% or 32 KiB in "
        f"{near(grew, 0.02, 32)}; what is kept at the end to 2% in {near(kept, 0.02)}, to 10% in {near(kept, 0.1)}, to 2% or 32 KiB in "
        f"{near(kept, 0.02, 32)}. Of the caches with sheaves these end within 5% of slabinfo's pages: {', '.join(sheafed)}."
    )
    drawn = [one for one in recordings if one.drawn]
    if drawn:
        lines += (
            f" Replays of {len(drawn)} of them from {len(drawn[0].drawn)} other starts differ from the table's by {moved(drawn, 0)} of the "
            f"recorded growth at the peak, and by {moved(drawn, 1)} of what is kept."
        )
    return textwrap.fill(lines, 118, break_long_words=False, break_on_hyphens=False)


def moved(recordings: list[Recording], which: int) -> str:
    """How far other starts move the growth (0) or what is kept (1): of each recording the most; of all their median and the most."""
    far = []
    for one in recordings:
        true, found = (one.grew, one.kept)[which]
        far.append((max(abs(draw[which] - found) for draw in one.drawn), abs(true)))
    shares = [kib / true for kib, true in far if true]
    return f"{median(shares):.1%} (median of the recordings; {median(kib for kib, _ in far):,.0f} KiB, at most {max(far)[0]:,} KiB)"


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="recordings")
    parser.add_argument("--draws", type=int, default=0)
    parser.add_argument("folders", nargs="+")
    options = parser.parse_args(argv)
    folders = options.folders
    known = [Path(folder) / f"{name}.parquet" for name in WORKLOADS for folder in folders]
    others = sorted({path for folder in folders for path in Path(folder).glob("*.parquet")} - set(known))
    try:
        with ProcessPoolExecutor(os.cpu_count()) as pool:
            recordings = list(pool.map(partial(measure, draws=options.draws), [path for path in (*known, *others) if path.exists()]))
        table = document(COLUMNS, [one.row() for one in recordings])
        write_text(DOCUMENT, between(DOCUMENT.read_text(), BEGIN, END, f"\n{table}\n\n{counted(recordings)}\n"))
    except UserError as error:
        print(f"recordings: {error.message}", file=sys.stderr)
        return error.status
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
