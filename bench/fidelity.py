"""Replays compared with the kernels that they replay: makes the tables and curves of docs/fidelity.md again.

    python bench/fidelity.py [--check]

Everything comes from tests/data/linux-VERSION-um-ALLOCATOR/WORKLOAD/: a Linux traced from its first kmalloc on, with the kernel's own files
just before and after a workload. What is compared with what:

    totals     pages held at the snapshot, at the peak and at the end by a replay that begins empty, as the trace does (`--start
               empty --cpus 1`), against the recorded allocator's own pages: those runs of pages in the trace in which an object was
               allocated or freed
    newer      the same for kernels after 6.1
    curves     the same after every EVERY events: bare marks are put into a copy of the trace, which change nothing else
    older      the same with what was there before the trace (`--start recorded`), against `Slab:` of meminfo
    traffic    pages taken and given back between the snapshots, and all of the page allocator's, against vmstat's count
    caches     pages of each cache at the end of the replay with what was there before, against slabinfo
    geometry   each cache of slabinfo, created as the kernel creates it, in the replay's own slabinfo

A table stands in the document between two comment lines that name it; the words around are written by hand and stay. `--check` writes
nothing and exits with 1 where a table or curve is not as this program makes it.
"""

from __future__ import annotations

import re
import sys
import tempfile
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from fidelity_curve import Curves, deviation, draw
from slabyard.base.errors import UserError
from slabyard.base.table import Cell, between, document
from slabyard.capture import importer, linux_caches
from slabyard.replay.running_geometry import write_empty_trace
from slabyard.replay.workload import Options, Workload
from slabyard.trace import snapshots
from slabyard.trace.file import METADATA_KEY, SCHEMA, Cache, Metadata, RecordedCurve, Snapshot, Trace, recorded_curve

ROOT = Path(__file__).parent.parent
TRUTH = ROOT / "tests" / "data"
DOCUMENT = ROOT / "docs" / "fidelity.md"
PICTURES = ROOT / "docs" / "fidelity"
ALLOCATORS = ("slab", "slub", "slob")
WITH_SLABINFO = ("slab", "slub")
WORKLOADS = ("hackbench", "fileio")
SNAPSHOT = "snapshot-0"  # the mark that the kernel's trace has just before the workload
EVERY = 64  # events from one point of a curve to the next
PAGE_KIB = 4
CACHES = 70  # columns for the names of caches, in a line of the table of geometries


# ---- One recorded kernel ---------------------------------------------------------------------------------------------------


@dataclass
class Boot:
    """One trace of a kernel from boot to the end of a workload, and its replays. `folder` is for temporary files."""

    allocator: str
    workload: str
    folder: Path
    version: str = "6.1"
    own: str = ""  # spec that replays the recorded allocator; empty: its name

    @property
    def truth(self) -> Path:
        return TRUTH / f"linux-{self.version}-um-{self.allocator}" / self.workload

    @cached_property
    def trace(self) -> Path:
        """The capture as a trace, with the kernel's own files at both snapshots."""
        path = self.folder / f"{self.version}-{self.allocator}-{self.workload}.parquet"
        taken = [importer.read_snapshot(f"{name}={self.truth}:{suffix}") for name, suffix in ((SNAPSHOT, "before"), ("end", "after"))]
        importer.import_trace(self.truth / "trace.txt.xz", path, taken)
        return path

    @cached_property
    def marked(self) -> Path:
        """The trace with a mark after every EVERY events."""
        path = self.folder / f"{self.version}-{self.allocator}-{self.workload}-marked.parquet"
        mark(self.trace, path)
        return path

    @cached_property
    def recorded(self) -> RecordedCurve:
        """The kernel's own pages, at every mark."""
        with Trace(self.marked) as trace:
            return recorded_curve(trace)

    @cached_property
    def empty(self) -> dict[str, Any]:
        """The exact measures of the replay that begins empty, at every mark."""
        with Workload(self.marked, Options(cpus=1, start="empty")) as workload:
            return workload.exact(self.own or self.allocator)

    @cached_property
    def populated(self) -> dict[str, Any]:
        """The exact measures of the replay that begins with what was there before."""
        with Workload(self.trace, Options(cpus=1, start="recorded")) as workload:
            return workload.exact(self.allocator)

    def under(self, allocator: str) -> dict[str, Any]:
        """The exact measures of the same trace under another allocator, begun empty."""
        with Workload(self.trace, Options(cpus=1, start="empty")) as workload:
            return workload.exact(allocator)

    @cached_property
    def replayed(self) -> dict[str, dict[str, Any]]:
        """The figures of the empty replay at the snapshots, by name."""
        return {one["name"]: one for one in self.empty["snapshots"] if not one["name"].startswith("mark")}

    def held(self) -> tuple[list[int], list[int]]:
        """KiB at the snapshot, at the peak and at the end: of the kernel, and of the replay that begins empty."""
        first = self.replayed[SNAPSHOT]
        replay = [first["slab_pages"] + first["large_pages"], self.empty["held_pages_peak"], self.empty["held_pages_end"]]
        real = [self.recorded.snapshots[SNAPSHOT], self.recorded.peak, self.recorded.end]
        return [PAGE_KIB * pages for pages in real], [PAGE_KIB * pages for pages in replay]

    def curves(self) -> Curves:
        """Kernel and replay over the whole trace."""
        marks = [one for one in self.empty["snapshots"] if one["name"].startswith("mark")]
        return Curves(
            title=f"{self.allocator.upper()}, {self.workload}: memory held since boot",
            events=[int(one["name"].partition(" ")[2]) for one in marks],
            real=[PAGE_KIB * self.recorded.snapshots[one["name"]] for one in marks],
            replay=[PAGE_KIB * (one["slab_pages"] + one["large_pages"]) for one in marks],
            snapshot=pq.read_table(self.trace, columns=["kind"])["kind"].to_pylist().index("snapshot"),
            workload=self.workload,
        )

    def files(self, name: str) -> dict[str, str]:
        """The kernel's own files at a snapshot."""
        with Trace(self.trace) as trace:
            return next(one.files for one in trace.metadata.snapshots if one.name == name)


def mark(source: Path, target: Path) -> None:
    """Copies a trace, with a bare snapshot after every EVERY rows and one at the end, named by how many rows are before it."""
    table = pq.read_table(source)
    with Trace(source) as trace:
        metadata = trace.metadata
    places = np.append(np.arange(EVERY, table.num_rows, EVERY), table.num_rows)
    times = table["time"].to_numpy()
    marks = {"time": times[places - 1], "kind": "snapshot", "object": len(metadata.snapshots) + np.arange(len(places))}
    columns = []
    for field in SCHEMA:
        text = pa.types.is_dictionary(field.type)
        values = (table[field.name].cast(pa.string()) if text else table[field.name]).to_numpy()
        filler = marks.get(field.name, {"origin": "recorded", "migratetype": -1, "node": -1}.get(field.name, "" if text else 0))
        columns.append(pa.array(np.insert(values.astype(object) if text else values, places, filler), field.type))
    metadata.snapshots += [Snapshot(f"mark {place}", int(times[place - 1])) for place in places]
    schema = SCHEMA.with_metadata({METADATA_KEY: metadata.to_json().encode()})
    pq.write_table(pa.Table.from_arrays(columns, schema=schema), target)


# ---- Tables ----------------------------------------------------------------------------------------------------------------


def percent(found: int, wanted: int, whole: int) -> str:
    """A difference as a share of the whole."""
    return f"{100 * (found - wanted) / whole:+.1f}%"


HELD = [head for where in ("snapshot", "peak", "end") for head in (f"at {where}", "replay", "off by")]


def held(boot: Boot) -> list[Cell]:
    """KiB held at the snapshot, the peak and the end; differences as shares of the kernel's peak."""
    real, replay = boot.held()
    return [cell for a, b in zip(real, replay, strict=True) for cell in (a, b, percent(b, a, real[1]))]


def totals(boots: Sequence[Boot]) -> str:
    """What the kernels of 6.1 held."""
    return document(["allocator", "workload", *HELD], ([boot.allocator, boot.workload, *held(boot)] for boot in boots))


def newer(boots: Sequence[Boot]) -> str:
    """What newer kernels held, replayed by their own rules."""
    return document(["replayed as", *HELD], ([f"`{boot.own}`", *held(boot)] for boot in boots))


def deviations(boots: Sequence[Boot]) -> str:
    """Where the curves of kernel and replay are farthest apart."""
    rows: list[list[Cell]] = []
    for boot in boots:
        worst = deviation(boot.curves())
        link = "[{0}](fidelity/{0})".format(f"{boot.allocator}-{boot.workload}.svg")
        rows.append([boot.allocator, boot.workload, f"{worst.kib:+,} KiB", f"{100 * worst.share:+.1f}%", worst.event, link])
    return document(["allocator", "workload", "largest deviation", "of the kernel's peak", "after event", "curves"], rows)


def older(boots: Sequence[Boot]) -> str:
    """KiB held by the replay that begins with the objects older than the trace, against `Slab:` of meminfo."""
    rows = []
    for boot in boots:
        for point in boot.populated["snapshots"]:
            held, slab = PAGE_KIB * (point["slab_pages"] + point["large_pages"]), point["recorded_slab_kb"]
            when = "before" if point["name"] == SNAPSHOT else "after"
            rows.append([boot.allocator, boot.workload, when, slab, held, percent(held, slab, slab)])
    return document(["allocator", "workload", "at", "`Slab:` of meminfo", "replay", "difference"], rows)


def traffic(boots: Sequence[Boot]) -> str:
    """Pages taken and given back between the two snapshots."""
    rows = []
    for boot in boots:
        first, last = boot.replayed[SNAPSHOT], boot.replayed["end"]
        taken = last["pages_taken"] - first["pages_taken"]
        returned = last["pages_returned"] - first["pages_returned"]
        real_taken = boot.recorded.taken["end"] - boot.recorded.taken[SNAPSHOT]
        real_returned = real_taken - (boot.recorded.snapshots["end"] - boot.recorded.snapshots[SNAPSHOT])
        every = all_pages(boot.trace)
        counted = _vmstat(boot, "pgalloc_normal")
        rows.append([boot.allocator, boot.workload, real_taken, taken, real_returned, returned, counted, every, every - real_taken + taken])
    heads = ["taken: kernel", "replay", "given back: kernel", "replay", "by all: vmstat", "trace", "replay"]
    return document(["allocator", "workload", *heads], rows)


def all_pages(path: Path) -> int:
    """Pages that the trace saw allocated between the two snapshots, by anybody."""
    table = pq.read_table(path, columns=["kind", "order"])
    kinds, orders = np.array(table["kind"].to_pylist()), table["order"].to_numpy().astype(np.int64)
    within = np.cumsum(kinds == "snapshot") == 1
    return int((1 << orders[within & (kinds == "mm_page_alloc")]).sum())


def _vmstat(boot: Boot, name: str) -> int:
    before, after = (dict(line.split() for line in boot.files(at)["vmstat"].splitlines()) for at in (SNAPSHOT, "end"))
    return int(after[name]) - int(before[name])


# ---- Cache by cache --------------------------------------------------------------------------------------------------------


def plain(name: str) -> str:
    """A cache's name as a replay has it: Linux writes kmalloc-1k where others write 1024."""
    match = snapshots.KMALLOC.match(name)
    return re.sub(r"\d+[kM]?$", str(snapshots.class_of(name)), name) if match else name


def pages_by_cache(boot: Boot) -> tuple[dict[str, int], dict[str, int]]:
    """Pages of each cache at the end: by slabinfo, and of the replay that began with what was there before."""
    real = {plain(one.name): one.slabs * one.pages_per_slab for one in snapshots.parse_slabinfo(boot.files("end")["slabinfo"])}
    replay: dict[str, int] = {}
    for row in boot.populated["caches"]:
        if row["slabs"] is not None:
            replay[plain(row["name"])] = replay.get(plain(row["name"]), 0) + row["pages"]
    return real, replay


def cache_summary(boots: Sequence[Boot]) -> str:
    """How many caches hold as many pages in the replay as in slabinfo."""
    rows: list[list[Cell]] = []
    for boot in boots:
        real, replay = pages_by_cache(boot)
        names = sorted(name for name in set(real) | set(replay) if real.get(name) or replay.get(name))
        equal = sum(real.get(name, 0) == replay.get(name, 0) for name in names)
        apart = sum(abs(real.get(name, 0) - replay.get(name, 0)) for name in names)
        rows.append([boot.allocator, boot.workload, len(names), equal, sum(real.values()), sum(replay.values()), apart])
    heads = ["caches with slabs", "of these equal", "pages: slabinfo", "replay", "sum of the differences"]
    return document(["allocator", "workload", *heads], rows)


def cache_rows(allocator: str) -> Callable[[Sequence[Boot]], str]:
    """The table of those caches of an allocator that differ."""

    def table(boots: Sequence[Boot]) -> str:
        found = [pages_by_cache(boot) for boot in boots if boot.allocator == allocator]
        names = sorted({name for real, replay in found for name in real | replay if real.get(name, 0) != replay.get(name, 0)})

        def cells(name: str) -> list[int]:
            return [figure for real, replay in found for figure in (real.get(name, 0), replay.get(name, 0))]

        def apart(name: str) -> int:
            return sum(abs(real.get(name, 0) - replay.get(name, 0)) for real, replay in found)

        heads = [f"{workload}: {what}" for workload in WORKLOADS for what in ("slabinfo", "replay")]
        return document(["cache", *heads], ([f"`{name}`", *cells(name)] for name in sorted(names, key=lambda name: (-apart(name), name))))

    return table


# ---- Geometry --------------------------------------------------------------------------------------------------------------

Geometry = tuple[int, ...]  # objsize, objperslab, pagesperslab, limit, batchcount, sharedfactor


def geometries(slabinfo: str) -> dict[str, Geometry]:
    """Each cache of a slabinfo text with its geometry and tunables."""
    found = {}
    for line in slabinfo.splitlines():
        name, _, rest = line.partition(" ")
        figures = [int(word) for word in re.findall(r"\d+", rest)]
        if not line.startswith(("slabinfo", "#")):
            found[plain(name)] = tuple(figures[2:8])
    return found


def requests(boots: Sequence[Boot], slabinfo: str) -> list[Cache]:
    """What the kernel asked for when it created each cache of slabinfo that is no class of kmalloc.

    A cache that the traces show was created with objects of the smallest size ever asked of it (merging raises it later) and with the
    attributes that its name stands for. Of others the final size is all that is known, and whether they are reclaimable.
    """
    seen: dict[str, Cache] = {}
    for boot in boots:
        table = pq.read_table(boot.trace, columns=["cache", "size"], filters=[("kind", "=", "kmem_cache_alloc")])
        smallest = table.group_by("cache").aggregate([("size", "min")])
        with Trace(boot.trace) as trace:
            for number, size in zip(smallest["cache"].to_pylist(), smallest["size_min"].to_pylist(), strict=True):
                cache = trace.metadata.caches[number]
                cache.object_size = min(size, seen[cache.name].object_size if cache.name in seen else size)
                seen[cache.name] = cache
    asked = []
    for name, geometry in geometries(slabinfo).items():
        if not snapshots.KMALLOC.match(name):
            reclaimable = bool(linux_caches.REQUESTS.get(name, {}).get("reclaimable"))
            asked.append(seen.get(name, Cache(name, geometry[0], reclaimable=reclaimable)))
            asked[-1].no_merge = True
    return asked


def replayed_geometries(boots: Sequence[Boot], allocator: str) -> tuple[dict[str, Geometry], dict[str, Geometry]]:
    """By cache: the geometry in the kernel's slabinfo, and in that of a replay in which the same caches are created."""
    own = [boot for boot in boots if boot.allocator == allocator]
    slabinfo = own[0].files("end")["slabinfo"]
    metadata = Metadata(kernel="6.1.192", caches=requests(own, slabinfo), snapshots=[Snapshot("geometry", 0, {"slabinfo": slabinfo})])
    path = own[0].folder / f"{allocator}-geometry.parquet"
    write_empty_trace(path, metadata)
    with Workload(path, Options(cpus=1, start="empty")) as workload:
        return geometries(slabinfo), geometries(workload.proc(allocator, "slabinfo"))


def geometry_rows(allocator: str) -> Callable[[Sequence[Boot]], str]:
    """The table of an allocator's geometries: which caches have each, and how many of them are the same in the replay."""

    def table(boots: Sequence[Boot]) -> str:
        real, replay = replayed_geometries(boots, allocator)
        groups: dict[Geometry, list[str]] = {}
        for name, geometry in real.items():
            groups.setdefault(geometry, []).append(name)
        rows: list[list[Cell]] = []
        for geometry, names in sorted(groups.items()):
            equal = sum(replay.get(name) == geometry for name in names)
            tunables = [" / ".join(map(str, geometry[3:]))] if allocator == "slab" else []
            lines = textwrap.wrap(" ".join(f"`{name}`" for name in sorted(names)), CACHES, break_on_hyphens=False)
            rows.append([*geometry[:3], *tunables, f"{equal} of {len(names)}", lines[0]])
            rows += [[*[""] * (4 + len(tunables)), line] for line in lines[1:]]
        equal = sum(replay.get(name) == geometry for name, geometry in real.items())
        tunables = ["limit / batchcount / shared"] if allocator == "slab" else []
        heads = ["objsize", "objperslab", "pagesperslab", *tunables, "equal", "caches"]
        return f"{equal} of {len(real)} caches are equal.\n\n" + document(heads, rows)

    return table


# ---- The papers' own measurements ------------------------------------------------------------------------------------------

BONWICK = {"bonwick": ("11%", "13%"), "sunos4": ("7%", "19%"), "bsd44": ("20%", "43%"), "svr4": ("23%", "45%")}
FERREIRA = ("slob", "slub", "slab", "slqb")


def share(value: float) -> str:
    return f"{100 * value:.0f}%"


def _of_slob(boots: Sequence[Boot], workload: str) -> Boot:
    return next(one for one in boots if (one.allocator, one.workload) == ("slob", workload))


def waste(boots: Sequence[Boot]) -> str:
    """Bonwick 1994, section 5.2: total fragmentation after boot, and after a load that comes and goes."""
    boot = _of_slob(boots, "hackbench")
    rows = []
    for allocator, (at_boot, after) in BONWICK.items():
        exact = boot.under(allocator)
        first = next(one for one in exact["snapshots"] if one["name"] == SNAPSHOT)
        booted = 1 - first["requested_bytes"] / (4096 * (first["slab_pages"] + first["large_pages"]))
        asked = 1 - exact["requested_bytes_end"] / (4096 * (exact["held_pages_end"] - exact["shrink_pages"]))
        later = (exact["total_fragmentation_peak"], exact["total_fragmentation_end"], asked)
        rows.append([f"`{allocator}`", at_boot, share(booted), after, *map(share, later)])
    heads = ["after boot: paper", "replay", "after a spike: paper", "at the peak", "after it", "after it, memory asked back"]
    return document(["allocator", *heads], rows)


def four_of_linux(boots: Sequence[Boot]) -> str:
    """Ferreira et al. 2015, sections 4.1 and 4.2: memory of the four allocators under one load."""
    rows = []
    for workload in WORKLOADS:
        held = [_of_slob(boots, workload).under(allocator) for allocator in FERREIRA]
        rows.append([workload, *(PAGE_KIB * exact[point] for point in ("held_pages_peak", "held_pages_end") for exact in held)])
    heads = [f"{where}: {allocator}" if allocator == FERREIRA[0] else allocator for where in ("peak", "end") for allocator in FERREIRA]
    return document(["workload", *heads], rows)


# ---- The whole -------------------------------------------------------------------------------------------------------------

TABLES: dict[str, Callable[[Sequence[Boot]], str]] = {
    "totals": totals,
    "deviations": deviations,
    "older": older,
    "traffic": traffic,
    "cache-summary": cache_summary,
    "geometry-slab": geometry_rows("slab"),
    "geometry-slub": geometry_rows("slub"),
    "waste": waste,
    "four": four_of_linux,
    "caches-slab": cache_rows("slab"),
    "caches-slub": cache_rows("slub"),
}
OF_ALL = ("totals", "deviations", "older", "traffic", "waste", "four")


def boots(folder: Path) -> list[Boot]:
    """Every recorded kernel."""
    return [Boot(allocator, workload, folder) for allocator in ALLOCATORS for workload in WORKLOADS]


def newer_boots(folder: Path) -> list[Boot]:
    """The recorded kernels after 6.1."""
    return [
        Boot("slub", "hackbench", folder, "6.12", "slub:linux=6.12"),
        Boot("slub_tiny", "hackbench", folder, "6.12", "slub:tiny=on"),
    ]


def filled(text: str, made: Sequence[Boot], made_newer: Sequence[Boot]) -> str:
    """The document with its tables made again."""
    with_slabinfo = [boot for boot in made if boot.allocator in WITH_SLABINFO]
    for name, table in TABLES.items():
        body = f"\n{table(made if name in OF_ALL else with_slabinfo)}\n"
        text = between(text, f"<!-- {name}: made by make fidelity -->", f"<!-- end of {name} -->", body)
    body = f"\n{newer(made_newer)}\n"
    return between(text, "<!-- newer: made by make fidelity -->", "<!-- end of newer -->", body)


def outputs(made: Sequence[Boot], made_newer: Sequence[Boot]) -> dict[Path, str]:
    """Every file that this program writes, with its text."""
    pictures = {PICTURES / f"{boot.allocator}-{boot.workload}.svg": draw(boot.curves()) for boot in made}
    return {DOCUMENT: filled(DOCUMENT.read_text(), made, made_newer), **pictures}


def main(arguments: Sequence[str]) -> int:
    if arguments not in ([], ["--check"]):
        print("usage: fidelity.py [--check]", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="slabyard-") as folder:
        made = outputs(boots(Path(folder)), newer_boots(Path(folder)))
    stale = [path for path, text in made.items() if not path.exists() or path.read_text() != text]
    for path in stale:
        print(f"{path.relative_to(ROOT)}: {'is not as make fidelity makes it' if arguments else 'written'}")
        if not arguments:
            path.write_text(made[path])
    return int(bool(arguments and stale))


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except UserError as error:
        sys.exit(f"fidelity: {error.message}")
