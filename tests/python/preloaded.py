"""Programs with slabyard's malloc preloaded: under which policies, and in which environment."""

from __future__ import annotations

import os
from pathlib import Path

from slabyard.results import run

POLICIES = ["yard", "slub", "slob", "slab", "slqb", "bonwick", "bsd44", "svr4", "sunos4"]


def environment(spec: str, malloc: Path | None = None, **settings: str) -> dict[str, str]:
    """The environment with our malloc (or the given library), its policy, and settings such as SLABYARD_DEBUG."""
    return {**os.environ, "LD_PRELOAD": str(malloc or run.library()), "SLABYARD": spec, **settings}
