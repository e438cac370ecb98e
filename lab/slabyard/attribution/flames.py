"""Who holds memory as weighted stacks, for flame graphs: of exports and of the report.

A stack is, outermost first: the task where the trace knows tasks, the recorded stack where it has stacks, else the function of the call
site, and innermost, in brackets, the cache. flames() makes the two pictures of the report: what lived when the recorded kernel held most
memory, and what pins free room of slabs at the end. They go into its result record, so a report can be made of records alone.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa

from ..base.stacks import Stack, Stacks
from ..trace.file import Trace
from . import pinned, usage
from .usage import OLDER_NAME, UNTRACED_NAME

MOST = 200  # stacks of a record; the lightest are put together
OTHERS = "(others)"


def frames_of(row: dict[str, Any]) -> Stack:
    """A row's stack, outermost frame first, without task and cache."""
    stack = row.get("stack") or ""
    if stack and stack not in (UNTRACED_NAME, OLDER_NAME):
        return tuple(stack.split(";"))
    return (function(row["call_site"]),)


def function(call_site: str) -> str:
    """`ext4_alloc_inode` of `ext4_alloc_inode+0x1c [ext4]`."""
    return call_site.partition("+0x")[0].partition(" [")[0] if not call_site.startswith("(") else call_site


def stacks(table: pa.Table, weight: str) -> Stacks:
    """Weighted stacks of a gathered table; rows that weigh nothing, or less, are left out."""
    found: Stacks = Counter()
    for row in table.to_pylist():
        if (row[weight] or 0) > 0:
            task = (row["task"],) if "task" in row else ()
            found[(*task, *frames_of(row), f"[{row['cache']}]")] += row[weight]
    return found


def flames(trace: Trace) -> dict[str, list[dict[str, Any]]]:
    """`live_at_peak` and `pinned_at_end`: lists of `frames`, outermost first, and `bytes`, the heaviest first. The second is empty where
    nothing ties objects to pages."""
    by = [name for name in usage.present_dimensions(trace) if name != "task"]
    found = {"live_at_peak": stacks(usage.usage(trace, by, usage.window_of(trace, None, "peak")), "live_bytes")}
    found["pinned_at_end"] = Counter()
    if pinned.can_tell(trace):
        found["pinned_at_end"] = stacks(pinned.pinned(trace, by, usage.window_of(trace, None, None)).table, "pinned_bytes")
    return {name: _listed(one) for name, one in found.items()}


def _listed(found: Stacks) -> list[dict[str, Any]]:
    ordered = sorted(found.items(), key=lambda item: (-item[1], item[0]))
    rest = sum(weight for _, weight in ordered[MOST:])
    kept = [*ordered[:MOST], *([((OTHERS,), rest)] if rest else [])]
    return [{"frames": list(frames), "bytes": weight} for frames, weight in kept]
