"""The report's flame graphs of the recorded kernel: whose objects lived when it held most memory, and whose pin slabs at the end.

They come from its record (`exact.stacks`), and are drawn as icicles that need no script. A cache, the innermost box, has a colour of its
own, so the eye tells it from the functions that allocate from it.
"""

from __future__ import annotations

from collections import Counter

from markupsafe import Markup

from ..base import icicle
from ..base.stacks import Stacks
from ..results.model import Section

TITLES = {
    "live_at_peak": "Live bytes by call site, when the recorded kernel held most memory",
    "pinned_at_end": "Free room of slabs that objects pin at the end, by call site",
}
COLOURS = {"function": "#8cc3f0", "cache": "#f5c27a", "more": "#d8dadd"}


def pictures(workload: Section) -> list[tuple[str, str, Markup]]:
    """Title, total and drawing of each that there is something to draw of."""
    found = (workload.recorded.exact.get("stacks") if workload.recorded else None) or {}
    made = []
    for name, title in TITLES.items():
        stacks: Stacks = Counter()
        for one in found.get(name) or []:
            stacks[tuple(str(frame) for frame in one["frames"])] += int(one["bytes"])
        if stacks:
            made.append((title, _bytes(sum(stacks.values())), icicle.picture(stacks, title, _key, COLOURS, _bytes)))
    return made


def _key(_above: str, name: str) -> str:
    return "cache" if name.startswith("[") else "more" if name.startswith("(") else "function"


def _bytes(count: int) -> str:
    return f"{count / 1024:,.1f} KiB"
