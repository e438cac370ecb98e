"""The papers, and all of their items. A paper's module is loaded when its items are asked for."""

from __future__ import annotations

import importlib

from .model import Item

PAPERS = {
    "bonwick": "Jeff Bonwick: The Slab Allocator: An Object-Caching Kernel Memory Allocator. USENIX Summer 1994",
    "ferreira": "Ferreira, Matias, Macedo, Evangelista: An Experimental Comparison Analysis of Kernel-level Memory Allocators. SAC 2015",
    "garcarz": "Garcarz: Performance Evaluation Of Kernel-Level Allocators In ARM And x86 Multicore Systems",
    "kyritsis": "Kyritsis, Stoltidis, Koutsoukis: SLOB Memory allocation: First Fit VS Best Fit",
    "yoo": "Yoo: CPU Flame Graph of Slab Allocators",
}


def items() -> list[Item]:
    """In the papers' order."""
    return [item for paper in PAPERS for item in importlib.import_module(f".{paper}", __package__).ITEMS]
