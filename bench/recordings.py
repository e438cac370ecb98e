"""Recordings held against the kernel that was recorded: makes the table of docs/fidelity.md, "Recordings", again.

    for i in 1 2 3 4 5; do mkdir -p DIR/$i; sudo env TRACES=DIR/$i traces/record.sh; done
    python bench/recordings.py DIR/1 DIR/2 DIR/3 DIR/4 DIR/5

`Slab:` of /proc/meminfo is the kernel's own figure of what its allocator holds, read at the start and at the end of a recording. Beside it
stand the recorded allocator's pages as the trace has them: what it held at the start, with the runs of pages taken for slabs and large
kmallocs and less those given back since; and what a replay under the recorded allocator holds, with what was there before.

What the machine did is different in each recording, so the figures are, too; the tests don't check this table.
"""

from __future__ import annotations

import sys
from pathlib import Path

from slabyard.base.errors import UserError
from slabyard.base.files import write_text
from slabyard.base.table import Cell, between, document
from slabyard.replay.workload import Options, Workload
from slabyard.trace.file import recorded_curve

DOCUMENT = Path(__file__).parent.parent / "docs" / "fidelity.md"
WORKLOADS = ("hackbench", "find", "spike", "fileio", "build")
PAGE_KIB = 4
BEGIN, END = "<!-- recordings: made by bench/recordings.py -->", "<!-- end of recordings -->"
COLUMNS = (
    "workload", "events", "at start", "replay", "off by", "at end", "recorded", "off by", "replay", "off by", "grew", "replay",
)  # fmt: skip


def row(path: Path) -> list[Cell]:
    """One recording: KiB, and how far they are off `Slab:`."""
    with Workload(path, Options()) as workload:
        exact = workload.exact("slub")
        curve = recorded_curve(workload.trace, with_older=True)
        events = sum(workload.metadata.events.values())
    start, end = exact["snapshots"][0], exact["snapshots"][-1]
    kib = [one["recorded_slab_kb"] for one in (start, end)]
    replay = [(one["slab_pages"] + one["large_pages"]) * PAGE_KIB for one in (start, end)]
    cells: list[Cell] = [path.stem, events, kib[0], replay[0], _off(replay[0], kib[0])]
    cells += [kib[1], curve.end * PAGE_KIB, _off(curve.end * PAGE_KIB, kib[1]), replay[1], _off(replay[1], kib[1])]
    return [*cells, (curve.peak - curve.before) * PAGE_KIB, exact["held_pages_peak"] * PAGE_KIB - replay[0]]


def _off(found: int, true: int) -> str:
    return f"{100 * (found - true) / true:+.2f}%"


def main(folders: list[str]) -> int:
    paths = [Path(folder) / f"{name}.parquet" for name in WORKLOADS for folder in folders]
    try:
        table = document(COLUMNS, [row(path) for path in paths if path.exists()])
        write_text(DOCUMENT, between(DOCUMENT.read_text(), BEGIN, END, f"\n{table}\n"))
    except UserError as error:
        print(f"recordings: {error.message}", file=sys.stderr)
        return error.status
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
