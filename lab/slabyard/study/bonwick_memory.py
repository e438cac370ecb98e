"""Bonwick 1994, sections 5.2 and 5.3."""

from __future__ import annotations

from .model import Item

ITEMS: list[Item] = []
