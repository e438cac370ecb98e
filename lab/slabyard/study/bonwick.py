"""Bonwick 1994: its tables, in the paper's order. What each is about stands in the module that makes it."""

from __future__ import annotations

from . import bonwick_cache_effects as cache_effects
from . import bonwick_caching as caching
from . import bonwick_memory as memory
from . import bonwick_speed as speed
from . import bonwick_systems as systems
from .model import Item

ITEMS: list[Item] = [
    caching.HEAD, cache_effects.CACHE_EFFECTS, speed.SPEED, caching.KINDS, memory.FRAGMENTATION, systems.KENBUS_RATE, memory.WEEK,
    systems.SYSTEMS,
]  # fmt: skip
