"""What to do: settings of the kernel that a trace was recorded on, each with what a replay says that it brings.

A kernel's allocator is chosen when it is built, but SLUB has settings for the command line and in /sys/kernel/slab. Each that can lower
memory is tried by a replay of SLUB with the tunable that stands for it. What grows less by 1% or more, and lowers the peak by as much, is
told with the words to give; a setting whose slabs are roomier at the start grows less, but may hold more. A full shrink at the end is told
where it brings something. Last, whether the allocator that grows least is there to be chosen at all.

Names and versions: `slub_max_order` is `slab_max_order` since Linux 6.9; SLOB left in 6.4, SLAB in 6.8; SLUB_TINY came in 6.2.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from .model import RECORDED, Section, Series, figure, grew, memory_text, memory_unit, number, rows
from .ranks import TIE, standing

ORDER = "slub:max_order=0"
PARTIAL = "slub:cpu_partial=0,min_partial=0"
GONE = {"slob": (6, 4), "slab": (6, 8)}
RENAMED = (6, 9)
LEAST_PAGES = 16  # below which no setting is worth a word


def is_policy(spec: str) -> bool:
    """Whether an allocator is one of slabyard's, whose memory is exact."""
    return spec != RECORDED and not spec.startswith("malloc:")


def settings(run: Mapping[str, Any]) -> list[str]:
    """The specs that stand for what the recorded kernel could be set to; none where it has not SLUB."""
    return [ORDER, PARTIAL] if run.get("own_allocator") == "slub" else []


def release(run: Mapping[str, Any]) -> tuple[int, int]:
    """Version and patch level of a kernel; (0, 0) where they are not known."""
    found = re.match(r"(\d+)\.(\d+)", str(run.get("kernel") or ""))
    return (int(found[1]), int(found[2])) if found else (0, 0)


def lines(workload: Section) -> list[str]:
    """What can be done, a sentence each; empty where nothing can."""
    real = workload.recorded
    if real is None or not release(real.run)[0]:
        return []
    base = next((one for one in workload.replayed if one.label == real.run.get("own_allocator")), None)
    said = [*_settings(workload, real, base), *_shrink(workload, base)] if base else []
    return [*said, *_other(workload, real)]


def _settings(workload: Section, real: Series, base: Series) -> list[str]:
    rise = grew(base)
    unit, _ = memory_unit(workload)
    said = []
    for row in rows(real.exact.get("settings")):
        less = (rise or 0) - (number(row.get("grew_pages_peak")) or 0)
        lower = (figure(base, "held_pages_peak") or 0) - (number(row.get("held_pages_peak")) or 0)
        if rise and min(less, lower) >= max(LEAST_PAGES, TIE * rise):
            percent = f"{100 * less / rise:.0f}%"
            peak = f", and the peak is {memory_text(workload, lower)} {unit} lower" if lower != less else ""
            words = _words(str(row.get("allocator")), release(real.run))
            said.append(f"{words}: grows {percent} less ({memory_text(workload, less)} {unit}){peak}.")
    return said


def _words(spec: str, version: tuple[int, int]) -> str:
    """What to give to the kernel for a setting."""
    if spec == ORDER:
        return f"Boot with {'slab' if version >= RENAMED else 'slub'}_max_order=0"
    return "Write 0 to cpu_partial and min_partial of every cache in /sys/kernel/slab"


def _shrink(workload: Section, base: Series) -> list[str]:
    pages = figure(base, "shrink_pages") or 0
    unit, _ = memory_unit(workload)
    if base.label != "slub" or pages < LEAST_PAGES:
        return []
    back = f"{memory_text(workload, pages)} {unit}"
    return [f"Write 1 to shrink of every cache in /sys/kernel/slab when the workload is over: gives back {back}."]


def _other(workload: Section, real: Series) -> list[str]:
    """Whether the kernel can have the allocator that grows least."""
    at = standing(workload.replayed, "memory")
    if at is None or at.level:
        return []
    if not is_policy(at.leaders[0]):
        return []
    best = at.leaders[0].partition(":")[0]
    version = release(real.run)
    own = real.run.get("own_allocator")
    kernel = f"Linux {version[0]}.{version[1]}"
    if best == own or own is None:
        return []
    if best in GONE and version < GONE[best]:
        return [f"Build {kernel} with CONFIG_{best.upper()}=y to have {best}, which grows least."]
    if best in GONE:
        left = ".".join(map(str, GONE[best]))
        tiny = "; CONFIG_SLUB_TINY is what came in its place" if best == "slob" else ""
        return [f"{at.leaders[0]}, which grows least, is not in {kernel}: it left in {left}{tiny}."]
    return [f"{at.leaders[0]}, which grows least, was never in Linux; slabyard kernel builds Linux 6.1 on it."]
