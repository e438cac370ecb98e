"""Frees of maple nodes that come with the end of their address space."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from slabyard.capture.trees import Block, Trees
from slabyard.capture.writer import _COLUMNS
from slabyard.trace.file import CACHE_ALLOC, CACHE_FREE, IMPLIED, KFREE, RECORDED

CACHES = ["vm_area_struct", "maple_node", "mm_struct"]
AREAS, NODES, SPACES = range(3)
SITES = ["mas_preallocate+0x1", "__mt_dup+0x2", "mas_dup_alloc.isra.0+0x3", "mm_alloc+0x4", "copy_process+0x5", "exit_mmap+0x6",
         "__mt_destroy+0x7", ""]  # fmt: skip
NO_SITE = len(SITES) - 1


class Rows:
    """Rows of a block, one call each."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    def row(self, kind: int, cache: int, site: str, task: int, number: int = 0, origin: int = RECORDED) -> None:
        base: dict[str, Any] = dict.fromkeys(_COLUMNS, 0)
        where = next(place for place, one in enumerate(SITES) if one.startswith(site)) if site else NO_SITE
        self.rows.append({
            **base, "time": 10 * len(self.rows), "kind": kind, "cache": cache, "call_site": where, "task": task, "object": number,
            "origin": origin, "address": 0x1000 + 256 * number, "size": 256, "allocated": 256,
        })  # fmt: skip

    def node(self, number: int, task: int, site: str = "mas_preallocate") -> None:
        self.row(CACHE_ALLOC, NODES, site, task, number)

    def end(self, root: int, task: int, areas: bool = True) -> None:
        """The task frees its areas, then the root of its tree."""
        if areas:
            self.row(CACHE_FREE, AREAS, "exit_mmap", task, 900)
        self.row(KFREE, NODES, "__mt_destroy", task, root)

    def block(self) -> Block:
        return {name: np.array([row[name] for row in self.rows], kind) for name, kind in _COLUMNS.items()}


def taken(rows: Rows, size: int = 1000, tasks: int = 9) -> tuple[Block, Trees]:
    """All rows behind Trees, which got them in blocks of `size`."""
    trees, block = Trees(CACHES, SITES, tasks), rows.block()
    parts = [trees.take({name: column[at : at + size] for name, column in block.items()}) for at in range(0, len(rows.rows), size)]
    return {name: np.concatenate([part[name] for part in parts]) for name in _COLUMNS}, trees


def implied(block: Block, kind: int = CACHE_FREE) -> list[int]:
    return block["object"][(block["kind"] == kind) & (block["origin"] == IMPLIED)].tolist()


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_nodes_end_with_their_root(size: int) -> None:
    rows = Rows()
    for number in range(4):
        rows.node(number, task=1)
    rows.node(7, task=2)
    rows.end(2, task=1)
    block, trees = taken(rows, size)
    assert implied(block) == [0, 1, 3] and trees.frees == 3
    frees = np.flatnonzero(block["origin"] == IMPLIED)
    assert frees.tolist() == [6, 7, 8], "just before the root's"
    assert block["time"][frees].tolist() == [60, 60, 60] and set(block["cache"][frees]) == {NODES}
    assert block["address"][frees].tolist() == [0x1000, 0x1100, 0x1300] and set(block["call_site"][frees]) == {NO_SITE}


def test_other_trees_of_a_task_are_left() -> None:
    """Such as a folder's in tmpfs: no areas are freed before it."""
    rows = Rows()
    rows.node(0, task=1)
    rows.node(1, task=1)
    rows.end(1, task=1, areas=False)
    assert implied(taken(rows)[0]) == []


def test_a_fork_copies_nodes_for_the_child() -> None:
    rows = Rows()
    rows.node(0, task=1)
    rows.row(CACHE_ALLOC, SPACES, "copy_process", 1, 50)
    rows.node(1, task=1, site="__mt_dup")
    rows.node(2, task=1, site="mas_dup_alloc")
    rows.row(CACHE_ALLOC, SPACES, "copy_process", 1, 51)
    rows.node(3, task=1, site="__mt_dup")
    rows.node(4, task=2)
    rows.end(1, task=2)
    assert implied(taken(rows)[0]) == [2, 4], "not the parent's, nor those of its other child"


def test_exec_makes_a_new_tree() -> None:
    rows = Rows()
    rows.node(0, task=1)
    rows.row(CACHE_ALLOC, SPACES, "mm_alloc", 1, 50)
    rows.node(1, task=1)
    rows.node(2, task=1)
    rows.end(9, task=1)
    rows.node(3, task=1)
    rows.end(1, task=1)
    assert implied(taken(rows)[0]) == [0, 2, 3]


def test_frees_that_were_implied_later_are_dropped() -> None:
    rows = Rows()
    rows.node(0, task=1)
    rows.node(1, task=1)
    rows.end(1, task=1)
    rows.row(CACHE_FREE, NODES, "", 0, 0, IMPLIED)
    rows.node(0, task=3)
    block, trees = taken(rows)
    assert implied(block) == [0] and trees.frees == 0 and len(block["kind"]) == len(rows.rows)
    assert block["kind"].tolist() == [CACHE_ALLOC, CACHE_ALLOC, CACHE_FREE, CACHE_FREE, KFREE, CACHE_ALLOC]


def test_a_node_that_is_freed_after_all_was_allocated_again() -> None:
    rows = Rows()
    rows.node(0, task=1)
    rows.node(1, task=1)
    rows.end(1, task=1)
    rows.row(KFREE, NODES, "__mt_destroy", 4, 0)
    block, trees = taken(rows)
    assert implied(block) == [0] and implied(block, CACHE_ALLOC) == [0] and (trees.frees, trees.allocations) == (1, 1)
    assert block["object"].tolist()[-2:] == [0, 0]


def test_without_tasks_nothing_is_known() -> None:
    rows = Rows()
    rows.node(0, task=0)
    rows.node(1, task=0)
    rows.end(1, task=0)
    assert implied(taken(rows, tasks=0)[0]) == []
