"""yoo"""

from __future__ import annotations

from .model import Item

ITEMS: list[Item] = []
