"""The caches of the running kernel or of a process, those first that have grown most since we began to look.

slabtop shows what is large; what is asked when memory is lost is what grows, and who makes it grow. So each cache has, beside its
objects and its memory, how much it grew since the start and in the last interval. Memory is that of its slabs, in KiB, as slabinfo has
them; the sum is meminfo's `Slab:`, which has large kmallocs as well, and of a process what its heaps hold. Call sites stand below the
caches where there is a source for them (sites.py).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..base.errors import MISSING, UserError
from ..base.files import describe_os_error
from ..base.table import Cell, Table
from ..trace import snapshots
from ..trace.snapshots import SlabLine
from . import inspect
from .sites import Site

PAGE_KIB = os.sysconf("SC_PAGE_SIZE") >> 10
SORTS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "growth": lambda cache: (-cache["grew_kib"], -cache["grew_objects"] * cache["object_size"], cache["name"]),
    "rate": lambda cache: (-cache["kib_per_second"], -cache["kib"], cache["name"]),
    "size": lambda cache: (-cache["kib"], cache["name"]),
    "objects": lambda cache: (-cache["objects"], cache["name"]),
    "name": lambda cache: cache["name"],
}


@dataclass(frozen=True)
class Cache:
    """A cache at a time."""

    object_size: int = 0
    active_objects: int = 0
    objects: int = 0
    kib: int = 0  # of its slabs


NONE = Cache()


@dataclass
class Reading:
    """The caches at a time, and what call sites hold (live) or allocate in a second (sampled)."""

    time: float
    caches: dict[str, Cache]
    slab_kib: int  # meminfo's, or what the heaps hold
    live: dict[Site, int] | None = None
    sampled: dict[Site, int] = field(default_factory=dict)
    of: str = "Slab"


def read(now: float, proc: Path = Path("/proc")) -> Reading:
    """UserError where slabinfo cannot be read, or the kernel has none."""
    try:
        text = (proc / "slabinfo").read_text()
        meminfo = (proc / "meminfo").read_text()
    except PermissionError:
        raise UserError("/proc/slabinfo may be read by root only; run it with sudo", MISSING) from None
    except FileNotFoundError:
        raise UserError("this kernel has no /proc/slabinfo (CONFIG_SLUB_DEBUG; SLOB has none)", MISSING) from None
    except OSError as error:
        raise UserError(describe_os_error(error, proc / "slabinfo")) from error
    caches = {line.name: _of_slabinfo(line) for line in snapshots.parse_slabinfo(text)}
    return Reading(now, caches, snapshots.parse_meminfo(meminfo).get("Slab", 0))


def _of_slabinfo(line: SlabLine) -> Cache:
    return Cache(line.object_size, line.active_objects, line.objects, line.slabs * line.pages_per_slab * PAGE_KIB)


def read_process(now: float, pid: int) -> Reading:
    """The caches of all heaps of a process together. UserError where it can't be inspected."""
    answer = inspect.ask(str(pid))
    caches: dict[str, Cache] = {}
    for one in [one for heap in answer["heaps"] for one in inspect.rows_of(heap)]:
        old = caches.get(one["name"], NONE)
        caches[one["name"]] = Cache(
            one["size"] or 0, old.active_objects + (one["used"] or 0), old.objects + (one["objects"] or 0), old.kib + one["bytes"] // 1024
        )
    held = sum(heap["held_bytes"] for heap in answer["heaps"]) // 1024
    return Reading(now, caches, held, of=inspect.name_of(answer))


def describe(first: Reading, before: Reading, now: Reading, sort: str) -> dict[str, Any]:
    """The caches with their growth, sorted, and the call sites, the largest first."""
    seconds = now.time - before.time
    caches = []
    for name in sorted({*first.caches, *now.caches}):
        cache, old = now.caches.get(name, NONE), first.caches.get(name, NONE)
        rate = (cache.kib - before.caches.get(name, NONE).kib) / seconds if seconds > 0 else 0.0
        caches.append(
            {
                "name": name,
                "object_size": cache.object_size or old.object_size,
                "active_objects": cache.active_objects,
                "objects": cache.objects,
                "grew_objects": cache.active_objects - old.active_objects,
                "kib": cache.kib,
                "grew_kib": cache.kib - old.kib,
                "kib_per_second": rate,
            }
        )
    return {
        "of": now.of,
        "seconds": now.time - first.time,
        "slab_kib": now.slab_kib,
        "grew_kib": now.slab_kib - first.slab_kib,
        "caches": sorted(caches, key=SORTS[sort]),
        "call_sites": _sites(first, now),
    }


def _sites(first: Reading, now: Reading) -> list[dict[str, Any]]:
    if now.live is not None:
        before = first.live or {}
        grown = {site: size - before.get(site, 0) for site, size in now.live.items()}
        order = sorted(grown, key=lambda site: (-grown[site], -now.live[site], site.name))  # type: ignore[index]
        return [{"call_site": site.name, "cache": "", "kib": now.live[site] / 1024, "grew_kib": grown[site] / 1024} for site in order]
    order = sorted(now.sampled, key=lambda site: (-now.sampled[site], site.name, site.cache))
    return [{"call_site": site.name, "cache": site.cache, "allocates_kib_per_second": now.sampled[site] / 1024} for site in order]


def tables(found: dict[str, Any], most: int | None) -> list[Table]:
    """The figures for people; `most` rows of each table, None for all."""
    head = f"{found['of']}: {found['slab_kib']:,} KiB, {found['grew_kib']:+,} KiB in {found['seconds']:,.0f} s"
    columns = ["cache", "grew KiB", "KiB/s", "KiB", "active", "grew", "size"]
    rows: list[list[Cell]] = [
        [one["name"], one["grew_kib"], one["kib_per_second"], one["kib"], one["active_objects"], one["grew_objects"], one["object_size"]]
        for one in found["caches"][:most]
    ]
    made = [Table(head, columns, rows)]
    if sites := found["call_sites"][:most]:
        made.append(_site_table(sites))
    return made


def _site_table(sites: Sequence[dict[str, Any]]) -> Table:
    if "grew_kib" in sites[0]:
        return Table("", ["call site", "grew KiB", "KiB"], [[one["call_site"], one["grew_kib"], one["kib"]] for one in sites])
    rows: list[list[Cell]] = [[one["call_site"], one["cache"], one["allocates_kib_per_second"]] for one in sites]
    return Table("", ["call site", "cache", "allocates KiB/s"], rows, notes=["From a sample; what is freed again counts as well."])
