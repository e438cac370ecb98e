"""The test program of Kyritsis et al., as a trace: allocations of random size until all are there, then their frees.

A line of their logs stands for a call, and each log has 40,000 for 20,000 allocations. In what is legible of the ends of two logs, the
unused memory grows with every line, by some hundred bytes each, while the page memory stays or loses a page: these are frees, one after
the other. So all objects are allocated first and freed afterwards, here in the order of their allocation.

A run begins with no memory in use, or as a recorded kernel was after what it did: its state at the start of the recording, then all of
the recording, then the calls (`booted`).

What the pages of slabs have free is known after every call: from the replay's own figure at the end (free bytes of slab pages), the slab
pages after the call, and the blocks that our objects then take, of which each is its size and a header, in whole units (docs/allocators).
"""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ..base.errors import UserError
from ..replay.workload import Options, Workload
from ..trace.file import METADATA_KEY, NO_CACHE, NO_OBJECT, SCHEMA, Metadata, Snapshot, Trace, made_rows

PAGE = 4096
HEADER, UNIT = 8, 2  # bytes of SLOB's kmalloc
LEAST_LARGE = PAGE - HEADER  # bytes: such requests go to the page allocator
_INSTALLED = Path(__file__).parent / "recordings" / "find.parquet"
RECORDING = _INSTALLED if _INSTALLED.exists() else Path(__file__).parents[3] / "traces" / "find.parquet"  # of the source tree
STARTS = ("empty", "booted")
MARKS = ("begin", "filled", "end")
_GRACE = 10**9  # ns after which nothing of the recording waits any longer for its free
_SHARE = 9  # of the trace's time, for one of the recording's, that the calls have: there the points of the time series lie


def sizes(most: int, count: int, seed: int) -> list[int]:
    """Sizes from 1 to `most` bytes, drawn: the same on every machine, and in a kernel (ports/linux/fill.c)."""
    found = []
    for _ in range(count):
        seed = (seed * 1664525 + 1013904223) % 2**32
        found.append(1 + (seed * most >> 32))
    return found


def pages_of(size: int) -> int:
    """Pages of a request that goes to the page allocator, a power of two; 0: of one that does not."""
    return 0 if size < LEAST_LARGE else 1 << max(0, (size - 1) // PAGE).bit_length()


def block_of(size: int) -> int:
    """Bytes that SLOB takes of a page for a request; 0: of one that goes to the page allocator."""
    return 0 if size >= LEAST_LARGE else -(-(size + HEADER) // UNIT) * UNIT


def check() -> None:
    """UserError where the recording is missing that starts are made of."""
    if not RECORDING.is_file():
        raise UserError(f"{RECORDING}: no such trace; the repository has it")


@dataclass(frozen=True)
class Filled:
    """A trace of the calls, ready to be replayed; `step`: nanoseconds from a call to the next, the first at `begin`."""

    workload: Workload
    wanted: Sequence[int]
    begin: int
    step: int

    def call(self, time: int) -> int:
        """How many calls there have been at a time."""
        return min(2 * len(self.wanted), max(0, (time - self.begin) // self.step + 1))

    def exact(self, spec: str) -> dict[str, Any]:
        """A replay's exact figures; with `unused`, bytes of slab pages, at the marks and points, where the allocator is SLOB."""
        found = self.workload.exact(spec)
        if spec.partition(":")[0] == "slob":
            at_end = next(one for one in found["snapshots"] if one["name"] == MARKS[-1])
            free = round((found["unused_ratio_end"] or 0) * found["slab_pages_end"] * PAGE)
            blocks = list(accumulate((block_of(size) for size in self.wanted), initial=0))

            def unused(time: int, pages: int) -> int:
                call, total = self.call(time), blocks[-1]
                own = blocks[call] if call <= len(self.wanted) else total - blocks[call - len(self.wanted)]
                return int(free + (pages - at_end["slab_pages"]) * PAGE - own)

            for one in found["snapshots"]:
                one["unused"] = unused(one["time"], one["slab_pages"])
            series = found["series"]
            series["unused"] = [unused(time, pages) for time, pages in zip(series["time"], series["slab_pages"], strict=True)]
        return found


@contextmanager
def filled(wanted: Sequence[int], start: str) -> Iterator[Filled]:
    """The calls for objects of these sizes, on one CPU, from one of STARTS."""
    with tempfile.TemporaryDirectory(prefix="slabyard-fill-") as folder:
        path = Path(folder) / "fill.parquet"
        begin, step = _write(path, wanted, start)
        with Workload(path, Options(start="empty" if start == "empty" else "recorded")) as workload:
            yield Filled(workload, wanted, begin, step)


# ---- The trace ---------------------------------------------------------------------------------------------------


def _write(path: Path, wanted: Sequence[int], start: str) -> tuple[int, int]:
    """Writes the trace; the time of the first call, and from one call to the next."""
    metadata, before = Metadata(arch="x86_64", source="made"), SCHEMA.empty_table()
    if start != "empty":
        with Trace(RECORDING) as trace:
            metadata, before = copy.deepcopy(trace.metadata), pa.Table.from_batches(list(trace.batches(SCHEMA.names))).cast(SCHEMA)
    begin = 1 + (_GRACE + before["time"][-1].as_py() if before.num_rows else 0)
    step = max(1000, _SHARE * begin // (2 * len(wanted)))
    numbers = before["object"].to_numpy()
    numbers = numbers[numbers != NO_OBJECT]
    first = int(numbers.max()) + 1 if len(numbers) else 0
    calls = _calls(wanted, first, begin, step, metadata)
    whole = pa.concat_tables([before, calls])
    metadata.rows, metadata.span_seconds = whole.num_rows, whole["time"][-1].as_py() / 1e9
    metadata.events |= {name: metadata.events.get(name, 0) + len(wanted) for name in ("kmalloc", "kfree")}
    pq.write_table(whole.replace_schema_metadata({METADATA_KEY: metadata.to_json().encode()}), path)
    return begin, step


def _calls(wanted: Sequence[int], first: int, begin: int, step: int, metadata: Metadata) -> pa.Table:
    """The rows of the calls, with a mark before them, between allocations and frees, and behind them."""
    count = len(wanted)
    kinds = ["snapshot", *["kmalloc"] * count, "snapshot", *["kfree"] * count, "snapshot"]
    objects = np.arange(first, first + count)
    marks = len(metadata.snapshots) + np.arange(3)
    number = np.concatenate([marks[:1], objects, marks[1:2], objects, marks[2:]]).astype(np.uint32)
    size = np.concatenate([[0], wanted, [0], wanted, [0]]).astype(np.uint32)
    at = begin + step * np.arange(2 * count)
    time = np.concatenate([[begin - 1], at[:count], at[count - 1 : count], at[count:], at[-1:]]).astype(np.int64)
    metadata.snapshots += [Snapshot(name, int(time[row])) for name, row in zip(MARKS, (0, count + 1, -1), strict=True)]
    made: dict[str, Any] = {
        "time": time, "kind": kinds, "object": number, "size": size, "allocated": size, "cache": np.full(len(time), NO_CACHE),
        "migratetype": np.full(len(time), -1), "node": np.full(len(time), -1), "origin": ["recorded"] * len(time),
        "gfp_flags": ["GFP_KERNEL"] * len(time), "address": 0xFFFF_8880_0000_0000 + number.astype(np.uint64) * np.uint64(4 * PAGE),
    }  # fmt: skip
    return made_rows(made, len(time))
