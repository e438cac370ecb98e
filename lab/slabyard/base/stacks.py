"""Weighted stacks, outermost function first, in the two text forms that flame graph tools read.

Whoever has stacks (samples of a kernel's time, memory by call site) gives them as a Counter; a weight may be samples or bytes.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping

Stack = tuple[str, ...]
Stacks = Counter[Stack]


def folded(stacks: Mapping[Stack, int]) -> str:
    """A line for each stack, `outer;inner WEIGHT`, sorted."""
    return "".join(f"{';'.join(stack)} {weight}\n" for stack, weight in sorted(stacks.items()))


def speedscope(stacks: Mapping[Stack, int], name: str, unit: str = "none") -> str:
    """JSON as speedscope reads it. `unit`: none, bytes, nanoseconds and others that speedscope knows."""
    frames = sorted({frame for stack in stacks for frame in stack})
    place = {frame: number for number, frame in enumerate(frames)}
    ordered = sorted(stacks.items())
    whole = {
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "name": name,
        "shared": {"frames": [{"name": frame} for frame in frames]},
        "profiles": [
            {
                "type": "sampled", "name": name, "unit": unit, "startValue": 0, "endValue": sum(stacks.values()),
                "samples": [[place[frame] for frame in stack] for stack, _ in ordered], "weights": [weight for _, weight in ordered],
            }
        ],
        "exporter": "slabyard",
    }  # fmt: skip
    return json.dumps(whole, separators=(",", ":")) + "\n"
