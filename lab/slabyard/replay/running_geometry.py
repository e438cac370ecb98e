"""How the running kernel lays out its caches, held against how the replay does.

/sys/kernel/slab says of every cache what it was asked for (object size, alignment, flags) and what SLUB made of that. The replay creates
a cache of the same request for each, unmerged, and says what it made. kmalloc's classes are its own.
"""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from ..base.errors import MISSING, UserError
from ..base.table import Cell, Table, counted
from ..capture.importer import present_cpus
from ..capture.moments import CACHES
from ..trace import snapshots
from ..trace.file import METADATA_KEY, SCHEMA, Cache, Metadata, Snapshot
from .workload import Options, Workload

FIGURES = ("slab_size", "objs_per_slab", "pages", "min_partial", "cpu_partial", "sheaf_capacity")
Figures = dict[str, int | None]  # by FIGURES; None: this kernel has no such file


@dataclass
class CacheGeometry:
    """One cache: what its kernel and what the replay has."""

    name: str
    kernel: Figures
    replay: Figures

    @property
    def differing(self) -> list[str]:
        """Figures that the kernel tells and the replay has otherwise."""
        return [one for one in FIGURES if self.kernel[one] is not None and self.kernel[one] != self.replay.get(one)]


def write_empty_trace(path: Path, metadata: Metadata) -> None:
    """A trace of one row, a snapshot, whose caches are those of the metadata."""
    row = {"kind": "snapshot", "origin": "recorded", "migratetype": -1, "node": -1, "accounted": False}
    columns = [pa.array([row.get(field.name, "" if pa.types.is_dictionary(field.type) else 0)], field.type) for field in SCHEMA]
    schema = SCHEMA.with_metadata({METADATA_KEY: metadata.to_json().encode()})
    pq.write_table(pa.Table.from_arrays(columns, schema=schema), path)


def measure(spec: str, folder: Path = CACHES, kernel: str | None = None, cpus: int | None = None) -> list[CacheGeometry]:
    """Every cache of /sys/kernel/slab, in order of name. `kernel`: its release, `cpus`: those present; None: of this machine.

    UserError where the kernel has no such folder or does not let it be read.
    """
    attributes = snapshots.take_slab_attributes(folder, (*snapshots.ATTRIBUTES, "min_partial", "cpu_partial"))
    if attributes is None:
        raise UserError(f"there is no {folder}: this kernel's allocator is not SLUB", MISSING)
    if not any(one.get("slab_size") for one in attributes.values()):
        raise UserError(f"the files of {folder} cannot be read; that takes root", MISSING)
    real = {name: _of_kernel(one) for name, one in attributes.items()}
    caches = []
    for name, described in attributes.items():
        if not snapshots.KMALLOC.match(name):
            caches.append(Cache(name, 0))
            caches[-1].describe(described)
            caches[-1].no_merge = True
    metadata = Metadata(kernel=kernel or os.uname().release, caches=caches, snapshots=[Snapshot("geometry", 0)])
    with tempfile.TemporaryDirectory(prefix="slabyard-") as temporary:
        path = Path(temporary) / "geometry.parquet"
        write_empty_trace(path, metadata)
        with Workload(path, Options(cpus=cpus or present_cpus(), start="empty")) as workload:
            text = workload.proc(spec, "slabs")
    rows = (line.split() for line in text.splitlines()[1:])
    made: dict[str, Figures] = {name: dict(zip(FIGURES, map(int, figures), strict=True)) for name, *figures in rows}
    return [CacheGeometry(name, figures, made.get(name, {})) for name, figures in sorted(real.items())]


def _of_kernel(attributes: dict[str, str]) -> Figures:
    found: Figures = {one: int(text) if (text := attributes.get(one, "")).isdigit() else None for one in FIGURES}
    order = attributes.get("order", "")
    found["pages"] = 1 << int(order) if order.isdigit() else None
    return found


def tables(found: list[CacheGeometry]) -> list[Table]:
    """The caches that differ, with both figures where these do; where none does, the title says it all."""
    differing = [one for one in found if one.differing]
    title = f"{len(found) - len(differing):,} of the running kernel's {counted(len(found), 'cache')} are the same here"
    rows: list[list[Cell]] = [
        [one.name, figure, one.kernel[figure], one.replay.get(figure)] for one in differing for figure in one.differing
    ]
    return [Table(title, ["cache", "figure", "kernel", "replay"], rows)]


def as_json(found: list[CacheGeometry]) -> list[dict[str, object]]:
    """One object for each cache."""
    return [{"name": one.name, "kernel": one.kernel, "replay": one.replay or None, "equal": not one.differing} for one in found]
