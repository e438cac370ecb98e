"""One trace: prepares it once, replays it under any allocator as often as asked, makes result records.

A Workload is an open trace, turned into a scratch file in a temporary directory, with the options that all its replays share (CPUs,
nodes, memory, start). A process for each allocator sets up the machine as it was at the start, once, and then runs any number of passes
from there; it lives as long as the workload is open. Exact figures and times come from separate passes; the exact pass is the same to
the byte whenever and wherever it runs.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import itertools
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..attribution.flames import flames
from ..base import programs
from ..base.errors import UserError
from ..base.files import describe_os_error, sha256
from ..base.table import counted
from ..base.terminal import note, printable
from ..trace import snapshots
from ..trace.file import RecordedCurve, Trace, recorded_curve, refuse_other_pages
from . import bootslabs, cost, population, scratch

POINTS = 256  # of a time series
DAMAGED = "the scratch file is damaged: "  # of slabyard-replay and slabyard-threads, which check what they read
LEAST_NODE = 4 << 20  # bytes: a block of the largest order


@dataclass(frozen=True)
class Options:
    """What a user may set for every replay of a workload; None: as recorded."""

    cpus: int | None = None
    nodes: int | None = None
    memory: int | None = None  # bytes
    start: str | None = None  # "recorded" or "empty"
    asked_every: float = 0  # seconds of the trace after which the heap is asked for memory, again and again; 0: never by the clock
    allow_failures: bool = False  # requests that find no memory are counted; otherwise they end the replay
    locks: bool = False  # `exact` counts locks, and of each cache what left the fast path
    older_slabs: bool = True  # where the start is empty, those of a trace that begins with its kernel are there
    environment: bool = True  # pages that others than the allocator take are replayed; they are most of the time of many a trace

    def check(self) -> None:
        """UserError for a machine that cannot be simulated, as far as that is known without a trace."""
        if self.memory is not None and self.memory // (self.nodes or 1) < LEAST_NODE:
            raise UserError(
                f"--memory of {_size(self.memory >> 12)} is too little for {counted(self.nodes or 1, 'node')}; "
                f"give {_size(LEAST_NODE >> 12)} or more for each"
            )


class Workload:
    """A trace, ready to be replayed. A context manager: the scratch file and the replays live as long as it is open."""

    def __init__(self, path: Path, options: Options) -> None:
        """Raises UserError when the file is no trace or the options do not fit it."""
        options.check()
        self.path, self.options = path, options
        self.trace = Trace(path)
        self.metadata = self.trace.metadata
        refuse_other_pages(self.metadata, path)
        if not self.metadata.has_objects:
            raise UserError(f"{path}: has no slab event that could be replayed ({self.metadata.incomplete or 'it is empty'})")
        self.sha256 = sha256(path)
        self.cpus = options.cpus or max(1, min(self.metadata.cpus, programs.limits().cpus))
        self.nodes = options.nodes or max(1, min(self.metadata.nodes, programs.limits().nodes))
        self.has_snapshots = self.metadata.first_snapshot is not None
        if options.start == "recorded" and not self.has_snapshots:
            raise UserError(f"{path}: has no snapshot of the kernel's figures, so --start recorded is impossible; use --start empty")
        self.start = options.start or ("recorded" if self.has_snapshots else "empty")
        self._note_limits()
        self._servers: dict[str, programs.Server] = {}
        self._idle: list[programs.Server] = []  # of settings()
        self._costs = itertools.count()
        self._folder = tempfile.TemporaryDirectory(prefix="slabyard-")
        self.scratch = Path(self._folder.name) / "trace.scratch"
        try:
            self._prepare()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Workload:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the replays and deletes the scratch file."""
        for server in [*self._servers.values(), *self._idle]:
            server.close()
        self._folder.cleanup()
        self.trace.close()

    def keep(self, most: int) -> None:
        """Ends the oldest replays, so that one more makes no more than `most`. An allocator that is asked again is populated again."""
        for spec in list(self._servers)[: max(0, len(self._servers) - most + 1)]:
            self._servers.pop(spec).close()

    @contextlib.contextmanager
    def temporary_file(self) -> Iterator[Path]:
        """The name of a temporary file, which is deleted afterwards."""
        path = Path(self._folder.name) / "spare"
        try:
            yield path
        finally:
            path.unlink(missing_ok=True)

    @contextlib.contextmanager
    def damage_told_of_trace(self) -> Iterator[None]:
        """Errors about a damaged scratch file become errors of the trace, which is the file that the user knows."""
        try:
            yield
        except UserError as error:
            if not error.message.startswith(DAMAGED):
                raise
            why = error.message.removeprefix(DAMAGED)
            raise UserError(f"{self.path}: damaged, {why}; import the capture again", error.status) from None

    @property
    def name(self) -> str:
        """What the workload is called in tables: the trace's file name without its suffix."""
        return printable(self.path.name.removesuffix(".parquet"))

    def _note_limits(self) -> None:
        """Says so where the recorded machine was larger than any that can be simulated."""
        for recorded, asked, most, what in (
            (self.metadata.cpus, self.options.cpus, programs.limits().cpus, "CPUs"),
            (self.metadata.nodes, self.options.nodes, programs.limits().nodes, "memory nodes"),
        ):
            if asked is None and recorded > most:
                note(f"{self.path}: recorded on {recorded:,} {what}; replayed on {most}, the most that can be simulated")

    def _prepare(self) -> None:
        caches = list(self.metadata.caches)
        snapshot = self.metadata.first_snapshot
        populate, opens = self.start == "recorded", _opens_with_snapshot(self.trace)
        layout = population.machine(self.metadata, self.cpus, self.nodes, self.options.memory)
        fits = population.has_recorded_zones(self.metadata, self.nodes, self.options.memory)
        if populate and fits and opens:
            population.populate_pages(layout, self.metadata)
        self.pages_populated = bool(len(layout.free_blocks))
        try:
            self.translation = scratch.translate(self.trace, self.scratch, self.cpus, self.nodes, self.options.environment)
            if not self.pages_populated:
                scratch.skip_older_pages(self.translation)
            beside = not populate and self.options.older_slabs and self.metadata.from_boot
            older = bootslabs.older_slabs(self.translation, self.metadata) if beside else population.nothing(self.translation)
            if populate and snapshot:
                last = self.metadata.snapshots[-1] if len(self.metadata.snapshots) > 1 else None
                older = population.older_objects(
                    self.translation, snapshot, opens, self._curve.before, caches, self.metadata.cpus, self.cpus, last
                )
            scratch.patch_older(self.translation, older.of_frees)
            order = population.creation_order(caches, self.metadata.first_text("slabinfo"))
            records = scratch.cache_records(caches)
            scratch.finish(self.translation, records, order, layout, older.objects, older.laid, older.handles, self.metadata, beside)
        except OSError as error:
            raise UserError(_describe_scratch_error(error, self.path)) from error
        self.older_objects = int((older.objects["handle"] != scratch.VACATED).sum())
        self._check_memory(layout, older.objects)

    def _check_memory(self, layout: scratch.Layout, older: np.ndarray) -> None:
        """Refuses a trace that no allocator could serve in this memory."""
        if self.pages_populated or self.options.allow_failures:
            return
        pages = int(layout.zones["managed"].sum())
        needed = self.translation.traffic.peak_pages + (int(older["size"].astype(np.int64).sum()) >> scratch.PAGE_SHIFT)
        if needed > pages:
            raise UserError(
                f"{self.path}: needs at least {_size(needed)} at once, more than the simulated memory of {_size(pages)}; "
                f"give more with --memory"
            )

    def _replay(self, spec: str, mode: str) -> Any:
        """One pass. Each allocator has a process of its own, populated at its first pass; passes of different allocators may run
        at the same time."""
        server = self._servers.get(spec)
        if server is None:
            server = self._servers[spec] = programs.Server([programs.program(programs.REPLAY), *self._words(spec, "--mode", "serve")])
        with self.damage_told_of_trace():
            return server.ask(mode)

    def _words(self, spec: str, *more: str) -> list[str]:
        """The replay program's arguments."""
        return ["--scratch", str(self.scratch), "--allocator", spec, "--points", str(POINTS), *more, *self._limits()]

    def _limits(self) -> list[str]:
        asked = ["--ask-every", str(round(self.options.asked_every * 1e9))] if self.options.asked_every else []
        failures = ["--allow-failures"] if self.options.allow_failures else []
        return [*asked, *failures, *(["--locks"] if self.options.locks else [])]

    def cost(self, spec: str, functions: int = 0) -> dict[str, Any]:
        """The `cost` group under an allocator, with that many functions. cost.check must have been called."""
        with self.damage_told_of_trace():
            return cost.measure(self.scratch, f"cost{next(self._costs):04}", spec, self._limits(), functions)

    def exact(self, spec: str, log: Path | None = None) -> dict[str, Any]:
        """The `exact` group under an allocator, with names in place of numbers. `log`: a file for what the policy logs."""
        if log is None:
            exact: dict[str, Any] = self._replay(spec, "exact")["exact"]
        else:
            with self.damage_told_of_trace():
                exact = programs.run_json(programs.REPLAY, *self._words(spec, "--mode", "exact", "--log", str(log)))["exact"]
        for site in exact.get("call_sites", []):
            number = site["call_site"]
            site["call_site"] = self.translation.call_sites[number] or "(unknown)"
        points = [(self.metadata.snapshots[point["number"]], point) for point in exact.get("snapshots", [])]
        exact["snapshots"] = [{"name": taken.name, **point, **_kernel_figures(taken.files)} for taken, point in points]
        return exact

    def memory(self, spec: str) -> dict[str, Any]:
        """The memory of one of slabyard's allocators, in a process that keeps nothing for passes to come. UserError where it is refused.
        May be called by several threads, each of which has a process."""
        with self.damage_told_of_trace():
            server = self._idle.pop() if self._idle else self.settings()
            try:
                answer = server.ask(spec)
            except BaseException:
                server.close()
                raise
            self._idle.append(server)
            if "refused" in answer:
                raise UserError(answer["refused"])
        exact = answer["exact"]
        return {name: exact[name] for name in ("held_pages_start", "held_pages_peak", "grew_pages_peak", "grew_pages_end")}

    @functools.cached_property
    def _curve(self) -> RecordedCurve:
        """The recorded allocator's pages; with those older than the trace, where the replay has them too."""
        return recorded_curve(self.trace, with_older=self.start == "recorded")

    @property
    def own_allocator(self) -> str | None:
        """Which of Linux's allocators the recorded kernel has; None: nothing tells. SLUB alone has /sys/kernel/slab, SLAB alone arrays."""
        taken = [one for one in self.metadata.snapshots if one.files]
        if any(one.slab_attributes for one in taken):
            return "slub"
        lines = [line for one in taken for line in snapshots.parse_slabinfo(one.files.get("slabinfo", ""))]
        return ("slab" if any(line.limit for line in lines) else "slub") if lines else None

    def settings(self) -> programs.Server:
        """A process that answers each spec with `exact`, its scalar measures, or `refused`, why there are none. The caller closes it."""
        return programs.Server([programs.program(programs.REPLAY), "--scratch", str(self.scratch), "--mode", "settings", *self._limits()])

    def proc(self, spec: str, file: str) -> str:
        """Memory at the end of a replay, as /proc/buddyinfo, /proc/pagetypeinfo or /proc/slabinfo would show it on the recorded kernel."""
        with self.damage_told_of_trace():
            text = programs.run(programs.REPLAY, *self._words(spec, "--proc", file)).decode().rstrip("\n")
        return snapshots.with_migrate_types(text, self.metadata.first_text(file)) if file == "pagetypeinfo" else text

    def timed(self, spec: str) -> dict[str, Any]:
        """The times of one replay."""
        return self._replay(spec, "timed")["timed"]

    def latency(self, spec: str) -> dict[str, Any]:
        """The latency percentiles of one replay."""
        return self._replay(spec, "latency")["timed"]

    def recorded(self) -> dict[str, Any] | None:
        """The `exact` group of the recorded kernel itself: its allocator's own pages over time, and its snapshots' figures.
        None: the trace has no page events, so nothing is known of them."""
        if not self.metadata.has_pages:
            return None
        curve = self._curve
        span = max(1, round(self.metadata.span_seconds * 1e9), int(curve.times[-1]) if len(curve.times) else 0)
        points = np.linspace(0, span, POINTS).astype(np.int64)
        at = np.searchsorted(curve.times, points, side="right") - 1
        pages = np.concatenate([[curve.before], curve.pages])[at + 1]
        series = {"time": points.tolist(), "held_pages": pages.tolist()}
        if self.metadata.has_fallbacks:
            fallbacks = np.searchsorted(np.sort(self.translation.fallback_times), points, side="right")
            series["fragmentation_events"] = fallbacks.tolist()
        taken = self.metadata.snapshots
        free = [blocks for one in taken if (blocks := snapshots.total_free_blocks(one.files.get("buddyinfo", "")))]
        return {
            "requests": self.translation.requests,
            "held_pages_start": curve.before,
            "held_pages_end": curve.end,
            "held_pages_peak": curve.peak,
            "grew_pages_peak": curve.peak - curve.before,
            "grew_pages_end": curve.end - curve.before,
            "held_pages_mean": curve.mean,
            "pages_taken": curve.taken[""],
            "pages_returned": curve.taken[""] + curve.before - curve.end,
            "fragmentation_events": len(self.translation.fallback_times) if self.metadata.has_fallbacks else None,
            "free_blocks_before": free[0] if len(free) > 1 else None,
            "free_blocks_after": free[-1] if free else None,
            "snapshots": [
                {
                    "name": one.name,
                    "held_pages": curve.snapshots.get(one.name, 0),
                    "pages_taken": curve.taken.get(one.name, 0),
                    "pages_returned": curve.taken.get(one.name, 0) + curve.before - curve.snapshots.get(one.name, 0),
                    **_kernel_figures(one.files),
                }
                for one in taken
            ],
            "series": series,
            "stacks": flames(self.trace),
            "caches": _recorded_caches([one.files["slabinfo"] for one in taken if one.files.get("slabinfo")]),
        }


def _recorded_caches(slabinfos: list[str]) -> list[dict[str, Any]]:
    """The recorded kernel's caches at the last snapshot, with their pages at the first; empty without slabinfo."""
    if not slabinfos:
        return []
    first = {line.name: line.slabs * line.pages_per_slab for line in snapshots.parse_slabinfo(slabinfos[0])}
    return [
        {
            "name": line.name,
            "size": line.object_size,
            "live": line.active_objects,
            "slabs": line.slabs,
            "pages": line.slabs * line.pages_per_slab,
            "pages_start": first.get(line.name, 0) if len(slabinfos) > 1 else None,
            "slab_objects": line.objects_per_slab,
            "slab_pages": line.pages_per_slab,
        }
        for line in snapshots.parse_slabinfo(slabinfos[-1])
        if line.slabs or first.get(line.name)
    ]


def _kernel_figures(files: dict[str, str]) -> dict[str, Any]:
    return {
        "recorded_slab_kb": snapshots.parse_meminfo(files.get("meminfo", "")).get("Slab"),
        "recorded_free_blocks": snapshots.total_free_blocks(files.get("buddyinfo", "")),
    }


def _opens_with_snapshot(trace: Trace) -> bool:
    """Whether the first row is a snapshot: then the kernel's figures in it are the state at the start."""
    for batch in trace.batches(["kind"]):
        if batch.num_rows:
            return bool(batch["kind"][0].as_py() == "snapshot")
    return False


def _describe_scratch_error(error: OSError, path: Path) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"no space left in {tempfile.gettempdir()} to prepare {path}; free some, or have TMPDIR name a folder on another disk"
    return describe_os_error(error, error.filename or tempfile.gettempdir())


def _size(pages: int) -> str:
    mebibytes = pages / 256
    return f"{mebibytes:,.0f} MiB" if mebibytes >= 10 else f"{mebibytes:,.1f} MiB"
