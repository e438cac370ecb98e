"""The lab as a Python module: `import slabyard`, then open(), replay() and compare().

    import slabyard

    trace = slabyard.open("traces/find.parquet")
    trace.events()                                        # Arrow; .to_pandas() makes a data frame of it
    trace.caches(), trace.call_sites()                    # who holds memory
    slabyard.replay(trace, "slub").caches()               # one allocator on it
    slabyard.compare([trace], ["slub", "slab"]).frame()   # several, as a pandas data frame, a row for each

What the command line computes is computed by the same functions here. Tables are Arrow's, which pandas, polars and DuckDB take without
copying; pandas is needed by the two frame() methods alone. A user's mistake raises slabyard.Error with one line; nothing is printed
and no process is ended. docs/python.md documents every function and column.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from .attribution import pinned, usage
from .base.errors import MISSING, UserError
from .base.terminal import Progress
from .replay.allocators import check_spec
from .replay.workload import Options, Workload
from .results import compare as comparing
from .results import measures, ranks, records
from .results.model import workloads
from .trace.file import Metadata
from .trace.file import Trace as TraceFile

if TYPE_CHECKING:
    import pandas

Error = UserError
Name = str | PathLike[str]


class Trace:
    """A trace, open for reading. A context manager; close() ends it too."""

    def __init__(self, path: Name) -> None:
        """Raises Error when the file is no trace."""
        self.path = Path(path)
        self._file = TraceFile(self.path)

    def __repr__(self) -> str:
        return f"<slabyard trace {self.path}: {self._file.rows:,} events>"

    def __enter__(self) -> Trace:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        return self._file.rows

    def close(self) -> None:
        """Closes the file."""
        self._file.close()

    @property
    def metadata(self) -> Metadata:
        """What docs/trace-format.md lists under Metadata."""
        return self._file.metadata

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """The events, one row group (524,288 rows at most) at a time, with these columns or all."""
        return self._file.batches(columns)

    def events(self, columns: Sequence[str] | None = None) -> pa.Table:
        """All events as one table in memory, with these columns or all; docs/trace-format.md has their meanings."""
        found = list(self.batches(columns))
        return pa.Table.from_batches(found).unify_dictionaries() if found else self._file.schema(columns).empty_table()

    def usage(self, by: Sequence[str], since: str | None = None, until: str | None = None) -> pa.Table:
        """Who holds memory: a row for each combination of `by` (cache, call_site, stack, task, pid), the most live bytes first.

        since, until: a mark's name, seconds since the first event, or `peak`; docs/who.md has the columns.
        """
        return usage.usage(self._file, by, usage.window_of(self._file, since, until))

    def caches(self, since: str | None = None, until: str | None = None) -> pa.Table:
        """usage() by cache, kmalloc by size."""
        return self.usage(["cache"], since, until)

    def call_sites(self, since: str | None = None, until: str | None = None) -> pa.Table:
        """usage() by the function that allocates."""
        return self.usage(["call_site"], since, until)

    def tasks(self, since: str | None = None, until: str | None = None) -> pa.Table:
        """usage() by the task that allocates. Error for a trace without tasks."""
        return self.usage(["task"], since, until)

    def pinned(self, by: Sequence[str] = ("call_site",), until: str | None = None) -> pa.Table:
        """Whose objects keep free room of slabs from being given back, at the end or another moment; docs/who.md has the columns."""
        return pinned.pinned(self._file, by, usage.window_of(self._file, None, until)).table


def open(path: Name) -> Trace:
    """Opens a trace. Error when the file is none."""
    return Trace(path)


@dataclass(frozen=True)
class Run:
    """One allocator on one trace. `record` is the result record, as docs/results-format.md has it."""

    record: dict[str, Any]

    @property
    def exact(self) -> dict[str, Any]:
        """The deterministic measures."""
        return self.record["exact"]

    @property
    def timed(self) -> dict[str, Any]:
        """The times: medians, intervals, samples."""
        return self.record["timed"]

    def caches(self) -> pa.Table:
        """Requests, live objects, slabs and pages by cache."""
        return pa.Table.from_pylist(self.exact.get("caches", []))

    def call_sites(self) -> pa.Table:
        """Requests and live bytes of the busiest callers."""
        return pa.Table.from_pylist(self.exact.get("call_sites", []))

    def series(self) -> pa.Table:
        """Memory over time. Free blocks, a list at each point, are left out."""
        return pa.table({name: one for name, one in self.exact["series"].items() if not one or not isinstance(one[0], list)})


@dataclass(frozen=True)
class Comparison:
    """Several allocators on several traces. `records` are the result records, as docs/results-format.md has them."""

    records: list[dict[str, Any]]

    def runs(self) -> list[Run]:
        """One for each record, the recorded kernel's too."""
        return [Run(one) for one in self.records]

    def arrow(self) -> pa.Table:
        """A row for each record with every scalar measure; times have their intervals as NAME_low and NAME_high."""
        table = records.flat(self.records, {name: name for name in ("workload", "allocator", "cpus", "start")}, measures.MEASURES)
        return pa.table({name: pa.array([row[place] for row in table.values()]) for place, name in enumerate(table.columns)})

    def frame(self) -> pandas.DataFrame:
        """arrow() for pandas. Error without pandas."""
        try:
            import pandas  # noqa: F401
        except ImportError:
            raise Error("frame() needs pandas (pip install pandas); arrow() gives the same table without", MISSING) from None
        return self.arrow().to_pandas()

    def sentences(self) -> dict[str, str]:
        """The verdict on each workload."""
        return {one.name: ranks.sentence(one) for one in workloads(self.records)}

    def report(self, path: Name) -> None:
        """Writes the HTML report. Error when the file cannot be written."""
        from .report.page import write_report

        write_report(self.records, Path(path))


def replay(
    trace: Trace | Name, allocator: str, *, runs: int = 1, cpus: int | None = None, nodes: int | None = None,
    memory: int | None = None, start: str | None = None,
) -> Run:  # fmt: skip
    """One trace under one allocator, timed `runs` times.

    cpus, nodes, memory (bytes) and start (`recorded`, `empty`) are of the simulated machine; None: as recorded. Error for an allocator
    that there is not, or a trace that does not fit.
    """
    check_spec(allocator)
    with Workload(_path(trace), Options(cpus, nodes, memory, start)) as workload:
        exact = workload.exact(allocator)
        samples = [workload.timed(allocator) for _ in range(max(1, runs))]
        return Run(records.of_replay(workload, allocator, exact, records.summarise(samples, workload.latency(allocator))))


def compare(
    traces: Trace | Name | Sequence[Trace | Name], allocators: Sequence[str] | None = None, *, runs: int = measures.USUAL_RUNS,
    warmup: int = 0, jobs: int = 1, cpus: int | None = None, nodes: int | None = None, memory: int | None = None,
    start: str | None = None, progress: bool = False,
) -> Comparison:  # fmt: skip
    """Traces under several allocators (None: all), timed interleaved, with the recorded kernel beside them.

    Options are those of replay(); `progress` shows how far it is on standard error. Error as of replay().
    """
    wanted = [traces] if isinstance(traces, Trace | str | PathLike) else list(traces)
    specs = comparing.ALLOCATORS if allocators is None else list(allocators)
    for spec in specs:
        check_spec(spec)
    plan = comparing.Plan(specs, runs, warmup, jobs, Options(cpus, nodes, memory, start))
    with Progress(comparing.steps(len(wanted), plan), quiet=not progress) as shown:
        return Comparison(comparing.compare([_path(one) for one in wanted], plan, shown))


def _path(trace: Trace | Name) -> Path:
    return trace.path if isinstance(trace, Trace) else Path(trace)
