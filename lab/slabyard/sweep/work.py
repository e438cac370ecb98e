"""What a worker does: one run at a time, and its record.

A worker is a process of this machine or of another. It is given a run and, on another machine, the trace's bytes. Where it cannot read the
trace at the path that it has on the plan's machine, it keeps these in a folder of its own, under the trace's hash. What it prepared last
stays prepared, as the next run is most likely on the same trace.

Only one run at a time is carried out in a process, however many threads it has. A lock sees to that, since two timed runs side by side
would time each other. A run that cannot be is a result too: its one line of reason.
"""

from __future__ import annotations

import contextlib
import os
import socket
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..base.errors import UserError
from ..base.files import describe_os_error, sha256
from ..base.modules import keep_out
from ..results import records
from .plan import Run

_lock = threading.Lock()
_prepared: dict[str, Any] = {}  # "key": of what is prepared; "workload": the open one
_folder: list[tempfile.TemporaryDirectory[str]] = []
MOST_KEPT = 12  # allocators that stay populated for their next repetition
SHORT = ("series", "caches", "call_sites", "zones", "caches_alive")  # of `exact`: kept in the first repetition alone


def perform(run: Run, content: bytes | None = None) -> dict[str, Any]:
    """A row for the results: the run's key and fields, where and when it ran, and its record or why there is none."""
    with _lock:
        began = time.time()
        row: dict[str, Any] = {"key": run.key, **asdict(run), "host": socket.gethostname(), "began": began}
        try:
            record = _SUBSTRATES[run.substrate](run, content)
        except (UserError, OSError, MemoryError) as error:
            return {**row, "took": time.time() - began, "failed": _reason(error), "record": None}
        record["run"] |= {"repetition": 1, "sweep_repetition": run.repetition}
        if run.repetition > 1:
            record["exact"] = {name: value for name, value in record["exact"].items() if name not in SHORT}
        return {**row, "took": time.time() - began, "failed": None, "record": record}


def _reason(error: UserError | OSError | MemoryError) -> str:
    if isinstance(error, UserError):
        return error.message
    return describe_os_error(error, error.filename or tempfile.gettempdir()) if isinstance(error, OSError) else "out of memory"


def _replay(run: Run, content: bytes | None) -> records.Record:
    from ..replay.workload import Options, Workload

    options = Options(run.cpus, run.nodes, run.memory, run.start)
    key = repr((run.trace_sha256, options))
    if _prepared.get("key") != key:
        release()
        _prepared["workload"], _prepared["key"] = Workload(_trace(run, content), options), key
    workload = _prepared["workload"]
    workload.keep(MOST_KEPT)
    exact = workload.exact(run.allocator)
    timed = records.summarise([workload.timed(run.allocator)], workload.latency(run.allocator))
    record = records.of_replay(workload, run.allocator, exact, timed)
    record["run"]["workload"] = run.workload
    return record


def _trace(run: Run, content: bytes | None) -> Path:
    path = Path(run.trace or "")
    with contextlib.suppress(UserError):
        if path.is_file() and sha256(path) == run.trace_sha256:
            return path
    if content is None:
        raise UserError(f"{path}: is not the trace that the plan was read with; run the sweep again")
    if not _folder:
        _folder.append(tempfile.TemporaryDirectory(prefix="slabyard-sweep-"))
    kept = Path(_folder[0].name) / f"{run.trace_sha256}.parquet"
    if not kept.exists():
        kept.write_bytes(content)
    return kept


def _threads(run: Run, _content: bytes | None) -> records.Record:
    from ..base.terminal import Progress
    from ..results import threads

    plan = threads.Plan(
        [run.allocator], [run.workload], [run.threads or 1], runs=1, operations=run.operations, size=run.size, batch=run.batch,
        seed=run.seed or 0,
    )  # fmt: skip
    return threads.run(plan, Progress(0, quiet=True))[0]


def _kernel(run: Run, _content: bytes | None) -> records.Record:
    from ..kernels import build, kinds, machine, workloads
    from ..kernels import run as kernel

    arch = run.arch or "um"
    spec, default = kinds.parse(run.allocator), machine.default_hardware(arch)
    hardware = machine.Hardware(run.memory or default.memory, run.cpus or default.cpus, run.nodes or default.nodes)
    built = build.from_installed(arch, spec.kind)
    plan = machine.Plan(spec, built, workloads.parse(run.workload, arch), hardware)
    return kernel.record(plan, [kernel.once(plan)])


_SUBSTRATES: dict[str, Callable[[Run, bytes | None], records.Record]] = {"replay": _replay, "threads": _threads, "kernel": _kernel}


def release() -> None:
    """Ends what is kept for the next run."""
    workload = _prepared.pop("workload", None)
    _prepared.clear()
    if workload is not None:
        workload.close()


def begin(parent: int, folder: str) -> None:
    """In a new worker process of this machine: it ends with its parent, whatever ends that; temporary files go to the parent's folder."""
    import ctypes
    import signal
    from multiprocessing import util

    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    if os.getppid() != parent:
        os._exit(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent's to deal with
    tempfile.tempdir = folder
    util.Finalize(None, release, exitpriority=0)  # such a process calls none of atexit's functions
    keep_out("pandas")  # as the command does
