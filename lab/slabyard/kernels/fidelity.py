"""How true a replay is: a kernel's whole boot, traced, replayed under its own allocator, and compared with what it reports itself.

    kernel                                   replay of its trace
    Slab: of meminfo                         pages held at the end
    slabinfo, pages of caches by size        the same of its caches
    buddyinfo, free blocks by order          free blocks of the simulated page allocator

The kernel's figures are those of a second after the workload. Caches are summed by the size from object to object, as kernels merge
caches and name them as they like; where an allocator has no slabs of its caches' own, there is nothing to sum. The trace's
tracepoints show no bulk calls (docs/trace-format.md), which is most of what differs. A kernel on slabyard that logs every call
(`slabyard.log=1`) leaves nothing to infer, and there agreement is asked for to the page.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..base import programs
from ..base.errors import UserError
from ..base.table import Cell, Table
from ..trace import snapshots
from . import machine, run


@dataclass(frozen=True)
class Agreement:
    """One boot: pages of the allocator, pages of its caches by object size, free blocks by order; of the kernel, of the replay."""

    allocator: str
    workload: str
    events: int
    pages: tuple[int, int]
    by_size: dict[int, tuple[int, int]] = field(default_factory=dict)
    free: tuple[list[int], list[int]] = field(default_factory=lambda: ([], []))
    trouble: list[str] = field(default_factory=list)  # lines of the kernel's log
    incomplete: str | None = None  # what the trace lacks

    @property
    def difference(self) -> float:
        """Of the pages, as a share of the kernel's."""
        return self.pages[1] / self.pages[0] - 1

    @property
    def apart(self) -> int:
        """The sum of the differences of all sizes, in pages."""
        return sum(abs(real - replayed) for real, replayed in self.by_size.values())


def replay_spec(spec: str) -> str:
    """The spec for a replay of what a kernel's spec names."""
    if spec.partition(":")[0] == "slub_tiny":
        return "slub:tiny=on"
    return spec.removeprefix("slabyard:") if spec != "slabyard" else "slub"


def measure(plan: machine.Plan, buffer: int, trace: Path) -> Agreement:
    """Boots with a trace (its buffer in bytes), which is left in a file, and replays it."""
    from ..replay.workload import Options, Workload

    done = run.once(dataclasses.replace(plan, trace=buffer), trace)
    assert done.metadata is not None
    with Workload(trace, Options()) as workload:
        exact = workload.exact(replay_spec(plan.spec.text))
    events = sum(done.metadata.events.values())
    found = compare(plan.spec.text, plan.job.name, events, done.texts, exact)
    return dataclasses.replace(found, trouble=done.trouble, incomplete=done.metadata.incomplete)


@dataclass(frozen=True)
class LogReplay:
    """A kernel's log of calls, replayed. Pairs are of the kernel and of the replay."""

    allocator: str
    workload: str
    calls: int
    slab: tuple[int, int]  # pages
    large: tuple[int, int]  # pages of large allocations
    requests: int = 0  # for pages, that these calls made
    apart: int = 0  # of these, those that only one of both made, or that could not be met at the same place
    trouble: list[str] = field(default_factory=list)  # lines of the kernel's log

    @property
    def agrees(self) -> bool:
        """To the page."""
        return self.slab[0] == self.slab[1] and self.large[0] == self.large[1]


def replay_log(plan: machine.Plan) -> LogReplay:
    """Boots a kernel on slabyard that logs its calls, and makes them again. UserError where some were lost."""
    found: list[dict[str, Any]] = []
    hardware = plan.hardware
    about = ["--allocator", replay_spec(plan.spec.text), "--cpus", str(hardware.cpus), "--nodes", str(hardware.nodes)]

    def replay(outcome: machine.Outcome) -> None:
        log = ["--kernel-log", str(outcome.calls), "--records", _end(outcome)[0]]
        found.append(programs.run_json(programs.REPLAY, *log, *about))

    done = run.once(dataclasses.replace(plan, calls=True), look=replay)
    records, lost, *kernel = map(int, done.texts["calls"].split()[1:])
    if lost:
        raise UserError(f"{plan.job.name} on {plan.spec.text}: the log lost {lost:,} calls; give the guest more with --memory")
    if found[0]["unknown_frees"]:
        raise UserError(f"{plan.job.name} on {plan.spec.text}: the log frees {found[0]['unknown_frees']:,} objects that it never allocated")
    pages = [(there, found[0][kind]) for there, kind in zip(kernel, ("slab_pages", "large_pages"), strict=False)]
    requests, apart = found[0]["page_requests"], found[0]["page_requests_apart"]
    return LogReplay(plan.spec.text, plan.job.name, records - requests, pages[0], pages[1], requests, apart, done.trouble)


def _end(outcome: machine.Outcome) -> list[str]:
    """The figures of a log's last line: records, lost ones, pages of slabs, of large allocations, of metadata."""
    words = outcome.texts.get("calls", "").split()
    if words[:1] != ["end"] or len(words) < 6:
        raise UserError("the kernel left no log of its calls; only kernels on slabyard do")
    return words[1:]


def compare(allocator: str, workload: str, events: int, texts: dict[str, str], exact: dict[str, Any]) -> Agreement:
    """A boot's texts against the exact measures of the replay of its trace."""
    held = snapshots.parse_meminfo(texts["after/meminfo"])["Slab"] // run.PAGE_KB
    end = next(point for point in exact["snapshots"] if point["name"] == "end")
    real = _pages_by_size(run.caches(texts.get("after/slabinfo", "")))
    replayed = _pages_by_size(cache for cache in exact["caches"] if cache.get("slabs") is not None)
    sizes = {size: (real[size], replayed[size]) for size in sorted(real | replayed)} if real else {}
    free = (list(end["recorded_free_blocks"] or []), list(end["free_blocks"]))
    return Agreement(allocator, workload, events, (held, end["slab_pages"] + end["large_pages"]), sizes, free)


def _pages_by_size(caches: Iterable[dict[str, Any]]) -> Counter[int]:
    """Pages of the caches that hold any, by object size in bytes."""
    found: Counter[int] = Counter()
    for cache in caches:
        if cache["pages"]:
            found[cache["size"]] += cache["pages"]
    return found


# ---- What comes out --------------------------------------------------------------------------------------------------------------

LOG_LEGEND = (
    "Every call that the kernel logged, made again: what it held then, in pages, and what the replay holds. page requests: those of these "
    "calls, each served with the same page frames in the replay; apart: requests that only one of both made."
)


def log_tables(found: Sequence[LogReplay]) -> list[Table]:
    """A row for each boot whose calls were made again; no table where there was none."""
    columns = ["allocator", "workload", "calls", "slab pages", "replay", "large pages", "replay", "page requests", "apart"]
    rows: list[list[Cell]] = [[one.allocator, one.workload, one.calls, *one.slab, *one.large, one.requests, one.apart] for one in found]
    notes = [LOG_LEGEND, *_logs(found)]
    return [Table("", columns, rows, notes=notes)] if rows else []


def _logs(found: Sequence[Agreement | LogReplay]) -> list[str]:
    return [f"The log of {one.allocator} under {one.workload} has: {line}" for one in found for line in dict.fromkeys(one.trouble)]


LEGEND = (
    "pages: of slabs and large allocations, a second after the workload. sizes: object "
    "sizes that have slabs; apart: the pages by which they differ, summed. free: pages "
    "in free blocks of the page allocator; blocks apart: summed over the orders."
)


def tables(found: Sequence[Agreement]) -> list[Table]:
    """A row for each boot; and by size and order where there is but one."""
    columns = ["allocator", "workload", "pages", "replay", "", "sizes", "equal", "apart", "free", "replay", "blocks apart"]
    rows: list[list[Cell]] = [_row(one) for one in found]
    lacking = [f"The trace of {one.allocator} under {one.workload} is incomplete: {one.incomplete}" for one in found if one.incomplete]
    out = [Table("", columns, rows, notes=[LEGEND, *_logs(found), *lacking])]
    if len(found) == 1:
        out += _details(found[0])
    return out


def _row(one: Agreement) -> list[Cell]:
    real, replayed = one.free
    free = [sum(count << order for order, count in enumerate(blocks)) for blocks in one.free]
    blocks_apart = sum(abs(a - b) for a, b in zip(real, replayed, strict=False))
    sizes: list[Cell] = [len(one.by_size), sum(a == b for a, b in one.by_size.values()), one.apart] if one.by_size else [None, None, None]
    head: list[Cell] = [one.allocator, one.workload, *one.pages, f"{100 * one.difference:+.1f}%"]
    return [*head, *sizes, *free, blocks_apart]


def _details(one: Agreement) -> list[Table]:
    out = []
    if one.by_size:
        out.append(Table("", ["object size", "pages", "replay"], [[size, *pair] for size, pair in one.by_size.items()]))
    orders: list[list[Cell]] = [[order, *pair] for order, pair in enumerate(zip(*one.free, strict=False))]
    out.append(Table("", ["order", "free blocks", "replay"], orders))
    return out
