"""The papers, and all of their items; and studies of our own. A module is loaded when its items are asked for."""

from __future__ import annotations

import importlib
from collections.abc import Iterable

from .model import Item

PAPERS = {
    "bonwick": "Jeff Bonwick: The Slab Allocator: An Object-Caching Kernel Memory Allocator. USENIX Summer 1994",
    "ferreira": "Ferreira, Matias, Macedo, Evangelista: An Experimental Comparison Analysis of Kernel-level Memory Allocators. SAC 2015",
    "garcarz": "Garcarz: Performance Evaluation Of Kernel-Level Allocators In ARM And x86 Multicore Systems",
    "kyritsis": "Kyritsis, Stoltidis, Koutsoukis: SLOB Memory allocation: First Fit VS Best Fit",
    "yoo": "Yoo: CPU Flame Graph of Slab Allocators",
}

OWN = {"sheaves": "Linux 7.0's sheaves, of which no paper tells yet: what they hold and what they spare"}
TITLES = {**PAPERS, **OWN}


def stands_for(paper: str, text: str) -> str:
    """What was measured, and what that leaves open, as a sentence."""
    head = "Stands for the paper's experiment" if paper in PAPERS else "How far it goes"
    return f"{head}: {text}"


def items(of: Iterable[str] = PAPERS) -> list[Item]:
    """In the papers' order."""
    return [item for paper in of for item in importlib.import_module(f".{paper}", __package__).ITEMS]
