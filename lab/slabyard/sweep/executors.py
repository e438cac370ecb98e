"""Who carries runs out: worker processes of this machine, or the workers of a running Dask cluster.

Both are given runs and give back rows, in the order in which they end. Neither has more runs on hand than it has workers and a few, so
that a sweep that is interrupted has few to throw away, and a worker that joins a cluster finds work.

A worker that dies takes its run with it, and here the whole pool. The pool is made again, and the runs that were on hand are given out
again, each alone, so that the one to blame shows itself. On a cluster Dask does that. A run whose worker has died three times is a failed
run, since the next one would most likely die too.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

from ..base.errors import MISSING, UserError
from ..base.files import describe_os_error
from . import work
from .plan import Run

MOST_DEATHS = 3
CONNECTING = 20  # seconds
JOINING = 600  # seconds that the first worker of a cluster may take to join
Row = dict[str, Any]


def _died(run: Run) -> Row:
    failed = f"its worker died {MOST_DEATHS} times, as when memory runs out"
    return {"key": run.key, **asdict(run), "host": "", "began": 0.0, "took": 0.0, "failed": failed, "record": None}


def processes(runs: Iterable[Run], count: int) -> Iterator[Row]:
    """By `count` worker processes."""
    waiting, deaths = list(reversed(list(runs))), Counter[str]()
    with tempfile.TemporaryDirectory(prefix="slabyard-sweep-", ignore_cleanup_errors=True) as folder:
        while waiting:
            lost: list[Run] = []
            yield from _pool(waiting, count, deaths, folder, lost)
            for run in reversed(lost):
                deaths[run.key] += 1
                if deaths[run.key] < MOST_DEATHS:
                    waiting.append(run)
                else:
                    yield _died(run)


def _pool(waiting: list[Run], count: int, deaths: Counter[str], folder: str, lost: list[Run]) -> Iterator[Row]:
    """The last of `waiting` first, until none is left, or a worker dies: then what was on hand is in `lost`."""
    pool = ProcessPoolExecutor(count, multiprocessing.get_context("spawn"), work.begin, (os.getpid(), folder))
    given: dict[Future[Row], Run] = {}

    def room() -> bool:
        suspect = deaths[waiting[-1].key] or any(deaths[run.key] for run in given.values())
        return not given if suspect else len(given) <= count

    try:
        while waiting or given:
            while waiting and room():
                given[pool.submit(work.perform, waiting[-1])] = waiting[-1]
                waiting.pop()
            for future in wait(given, return_when=FIRST_COMPLETED).done:
                row = future.result()
                del given[future]
                yield row
        pool.shutdown()
    except BrokenProcessPool:
        lost += given.values()
    finally:
        for process in list((pool._processes or {}).values()):
            process.kill()
        pool.shutdown(wait=False, cancel_futures=True)


def cluster(runs: Iterable[Run], address: str) -> Iterator[Row]:
    """By the workers of the Dask cluster whose scheduler has this address."""
    try:
        from distributed import Client
    except ImportError:
        raise UserError("--scheduler needs distributed: pip install 'slabyard[sweep]', or pip install distributed", MISSING) from None
    warnings.filterwarnings("ignore", "Sending large graph")  # a trace, once
    logging.disable(logging.CRITICAL)  # Dask tells of every worker that goes, with tracebacks
    try:
        client = Client(address, timeout=CONNECTING)
    except (OSError, ValueError, TimeoutError) as error:
        raise UserError(f"--scheduler {address}: there is no Dask scheduler ({str(error).splitlines()[0]})") from None
    try:
        yield from _by_client(client, runs)
    except (OSError, TimeoutError, CancelledError) as error:
        why = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UserError(f"--scheduler {address}: the cluster has gone ({why}); what was done is kept, so run the sweep again") from None
    finally:
        client.close(timeout=CONNECTING)


def _by_client(client: Any, runs: Iterable[Run]) -> Iterator[Row]:
    from distributed import KilledWorker, as_completed

    contents: dict[str, Any] = {}
    left, by_key = iter(runs), {}

    def submit(run: Run) -> Any:
        content = None
        if run.trace is not None and run.trace_sha256 is not None:
            if run.trace_sha256 not in contents:
                # A task, not scattered data: that is lost with the worker that it lies on, while a task is done again elsewhere.
                name = f"slabyard-trace-{run.trace_sha256}"
                contents[run.trace_sha256] = client.submit(bytes, _content(Path(run.trace)), key=name, pure=False)
            content = contents[run.trace_sha256]
        by_key[run.key] = run
        return client.submit(work.perform, run, content, key=f"slabyard-{run.key}", pure=False)

    if not client.nthreads():
        client.wait_for_workers(1, timeout=JOINING)
    on_hand = 2 * max(1, len(client.nthreads()))
    pending = as_completed([submit(run) for run in islice(left, on_hand)])
    for future in pending:
        run = by_key[future.key.removeprefix("slabyard-")]
        try:
            yield future.result()
        except KilledWorker:
            yield _died(run)
        future.release()
        for more in islice(left, 1):
            pending.add(submit(more))


def _content(trace: Path) -> bytes:
    try:
        return trace.read_bytes()
    except OSError as error:
        raise UserError(describe_os_error(error, trace)) from error
