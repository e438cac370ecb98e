"""Recordings compared with the kernel that was recorded: makes the table of docs/fidelity.md, "Recordings", again.

    for i in 1 2 3 4 5; do mkdir -p DIR/$i; sudo env TRACES=DIR/$i traces/record.sh; done
    python bench/recordings.py DIR/1 DIR/2 DIR/3 DIR/4 DIR/5

`Slab:` of /proc/meminfo is the kernel's own figure of what its allocator holds, read at the start and at the end of a recording. Beside it
stand the recorded allocator's pages as the trace has them: what it held at the start, with the runs of pages taken for slabs and large
kmallocs and less those given back since; the slabs of which no event tells (trace/unseen.py); and what a replay under the recorded
allocator holds, with what was there before. `grew` is the growth up to the peak, `kept` what of it is there at the end.

Events are in thousands. Traces of other workloads in these folders come behind those of traces/record.sh. What the machine did is
different in each recording, so the figures are, too; the tests don't check this table.
"""

from __future__ import annotations

import os
import sys
import textwrap
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from slabyard.base.errors import UserError
from slabyard.base.files import write_text
from slabyard.base.table import Cell, between, document
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


def measure(path: Path) -> Recording:
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
    return textwrap.fill(lines, 118, break_long_words=False, break_on_hyphens=False)


def main(folders: list[str]) -> int:
    known = [Path(folder) / f"{name}.parquet" for name in WORKLOADS for folder in folders]
    others = sorted({path for folder in folders for path in Path(folder).glob("*.parquet")} - set(known))
    try:
        with ProcessPoolExecutor(os.cpu_count()) as pool:
            recordings = list(pool.map(measure, [path for path in (*known, *others) if path.exists()]))
        table = document(COLUMNS, [one.row() for one in recordings])
        write_text(DOCUMENT, between(DOCUMENT.read_text(), BEGIN, END, f"\n{table}\n\n{counted(recordings)}\n"))
    except UserError as error:
        print(f"recordings: {error.message}", file=sys.stderr)
        return error.status
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
