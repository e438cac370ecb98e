"""bonwick"""

from __future__ import annotations

from . import bonwick_memory, bonwick_systems
from .model import Item

ITEMS: list[Item] = [*bonwick_memory.ITEMS, *bonwick_systems.ITEMS]
