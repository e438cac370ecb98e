"""Replays of whole-boot traces against the kernels that they were recorded on: Linux 6.1 under SLUB and under SLOB.

The kernels' figures are their allocators' own pages (slabs and large kmallocs of which the trace saw an object), in kB at the
snapshot, at the peak and at the end. Replays begin empty, as the traces do, on one CPU, as the kernels had.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from slabyard import importer
from slabyard.replay import Options, Workload

TRUTH = Path(__file__).parent.parent / "data"
TOLERANCE = 0.02  # of the real peak


@pytest.mark.parametrize(
    ("allocator", "workload", "real"),
    [
        ("slub", "hackbench", (3532, 7616, 4008)),
        ("slub", "fileio", (3532, 3912, 3856)),
        ("slob", "hackbench", (2916, 6856, 2920)),
        ("slob", "fileio", (2908, 3320, 3124)),
    ],
)
def test_memory_over_time_is_the_kernels(tmp_path: Path, allocator: str, workload: str, real: tuple[int, int, int]) -> None:
    folder = TRUTH / f"linux-6.1-um-{allocator}" / workload
    path = tmp_path / "t.parquet"
    snapshots = [importer.read_snapshot(f"snapshot-0={folder}:before"), importer.read_snapshot(f"end={folder}:after")]
    importer.import_trace(folder / "trace.txt.xz", path, snapshots)
    with Workload(path, Options(cpus=1, start="empty")) as replayed:
        exact = replayed.exact(allocator)
    first = exact["snapshots"][0]
    replay = (4 * (first["slab_pages"] + first["large_pages"]), 4 * exact["held_pages_peak"], 4 * exact["held_pages_end"])
    assert exact["failures"] == 0
    for name, found, wanted in zip(("snapshot", "peak", "end"), replay, real, strict=True):
        assert abs(found - wanted) <= TOLERANCE * real[1], f"{name}: {found} kB, the kernel held {wanted} kB"


@pytest.mark.parametrize("workload", ["hackbench", "fileio"])
def test_what_was_there_before_makes_the_total_the_kernels(tmp_path: Path, workload: str) -> None:
    """With the older population, pages held are `Slab:` of meminfo, before the workload and after it."""
    folder = TRUTH / "linux-6.1-um-slub" / workload
    path = tmp_path / "t.parquet"
    snapshots = [importer.read_snapshot(f"snapshot-0={folder}:before"), importer.read_snapshot(f"end={folder}:after")]
    importer.import_trace(folder / "trace.txt.xz", path, snapshots)
    with Workload(path, Options(cpus=1, start="recorded")) as replayed:
        exact = replayed.exact("slub")
    for point in exact["snapshots"]:
        held = 4 * (point["slab_pages"] + point["large_pages"])
        assert abs(held - point["recorded_slab_kb"]) <= TOLERANCE * point["recorded_slab_kb"], point["name"]
