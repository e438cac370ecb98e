"""Frees of maple nodes that were replaced, and of those that come with the end of their address space."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from slabyard.capture.trees import GATHERED, GRACE_NS, Block, Trees
from slabyard.capture.writer import _COLUMNS
from slabyard.trace.file import CACHE_ALLOC, CACHE_FREE, IMPLIED, KFREE, RECORDED

CACHES = ["vm_area_struct", "maple_node", "mm_struct"]
AREAS, NODES, SPACES = range(3)
SITES = ["mas_preallocate+0x1", "__mt_dup+0x2", "mas_dup_alloc.isra.0+0x3", "mm_alloc+0x4", "copy_process+0x5", "exit_mmap+0x6",
         "__mt_destroy+0x7", "vm_area_alloc+0x8", "vm_area_dup+0x9", "vms_complete+0xa", ""]  # fmt: skip
NO_SITE = len(SITES) - 1


class Rows:
    """Rows of a block, one call each."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self.later = self.cpu = 0

    def row(self, kind: int, cache: int, site: str, task: int, number: int = 0, origin: int = RECORDED) -> None:
        base: dict[str, Any] = dict.fromkeys(_COLUMNS, 0)
        where = next(place for place, one in enumerate(SITES) if one.startswith(site)) if site else NO_SITE
        self.rows.append({
            **base, "time": self.later + 10 * len(self.rows), "cpu": self.cpu,
            "kind": kind, "cache": cache, "call_site": where, "task": task, "object": number,
            "origin": origin, "address": 0x1000 + 256 * number, "size": 256, "allocated": 256,
        })  # fmt: skip

    def node(self, number: int, task: int, site: str = "mas_preallocate") -> None:
        self.row(CACHE_ALLOC, NODES, site, task, number)

    def areas(self, count: int, task: int, site: str = "vm_area_alloc") -> None:
        """That many areas of the task come; a negative count: they go."""
        for _ in range(abs(count)):
            self.row(CACHE_ALLOC if count > 0 else CACHE_FREE, AREAS, site if count > 0 else "vms_complete", task, 901)

    def end(self, root: int, task: int, areas: bool = True) -> None:
        """The task frees its areas, then the root of its tree."""
        if areas:
            self.row(CACHE_FREE, AREAS, "exit_mmap", task, 900)
        self.row(KFREE, NODES, "__mt_destroy", task, root)

    def block(self) -> Block:
        return {name: np.array([row[name] for row in self.rows], kind) for name, kind in _COLUMNS.items()}


def taken(rows: Rows, size: int = 1000, tasks: int = 9) -> tuple[Block, Trees]:
    """All rows after Trees has seen them in blocks of `size`."""
    trees, block = Trees(CACHES, SITES, range(tasks)), rows.block()
    parts = [trees.take({name: column[at : at + size] for name, column in block.items()}) for at in range(0, len(rows.rows), size)]
    return {name: np.concatenate([part[name] for part in parts]) for name in _COLUMNS}, trees


def implied(block: Block, kind: int = CACHE_FREE) -> list[int]:
    return block["object"][(block["kind"] == kind) & (block["origin"] == IMPLIED)].tolist()


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_nodes_end_with_their_root(size: int) -> None:
    rows = Rows()
    rows.areas(40, task=1)
    for number in range(4):
        rows.node(number, task=1)
    rows.node(7, task=2)
    rows.end(2, task=1)
    block, trees = taken(rows, size)
    assert implied(block) == [0, 1, 3] and trees.frees == 3
    frees = np.flatnonzero(block["origin"] == IMPLIED)
    assert frees.tolist() == [46, 47, 48], "just before the root's"
    assert block["time"][frees].tolist() == [460, 460, 460] and set(block["cache"][frees]) == {NODES}
    assert block["address"][frees].tolist() == [0x1000, 0x1100, 0x1300] and set(block["call_site"][frees]) == {NO_SITE}


def test_other_trees_of_a_task_are_left() -> None:
    """For example those of a folder in tmpfs: no areas are freed before them."""
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


def replaced(rows: Rows, nodes: int, areas: int = 10) -> None:
    """A process of ten areas and more nodes than they need: all but three have been replaced."""
    rows.areas(areas, task=1)
    for number in range(nodes):
        rows.node(number, task=1)


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_replaced_nodes_are_freed_together_when_grace_periods_have_passed(size: int) -> None:
    rows = Rows()
    rows.cpu = 1
    replaced(rows, GATHERED + 3)
    rows.cpu, rows.later = 0, 2 * GRACE_NS - 1000
    rows.node(800, task=2)
    rows.later = 2 * GRACE_NS
    rows.node(801, task=2)
    block, trees = taken(rows, size)
    assert implied(block) == list(range(GATHERED)) and trees.frees == GATHERED, "the oldest, and not what the areas need"
    frees = np.flatnonzero(block["origin"] == IMPLIED)
    assert block["object"][frees[0] - 1] == 800 and block["object"][frees[-1] + 1] == 801
    assert set(block["cpu"][frees]) == {1}, "where they were gathered"


def test_fewer_than_a_sheaf_wait() -> None:
    rows = Rows()
    replaced(rows, GATHERED + 2)
    rows.later = 9 * GRACE_NS
    rows.node(800, task=2)
    assert implied(taken(rows)[0]) == []


def test_areas_need_nodes() -> None:
    rows = Rows()
    replaced(rows, GATHERED + 3, areas=20)
    rows.later = 9 * GRACE_NS
    rows.node(800, task=2)
    assert implied(taken(rows)[0]) == [], "one more stays"
    rows.areas(-10, task=1)
    rows.node(801, task=1)
    rows.later = 18 * GRACE_NS
    rows.node(802, task=2)
    assert implied(taken(rows)[0]) == list(range(GATHERED + 1)), "areas went, and two nodes are replaced"


def test_areas_that_a_fork_copies_are_the_childs() -> None:
    rows = Rows()
    rows.row(CACHE_ALLOC, SPACES, "copy_process", 1, 50)
    rows.node(700, task=1, site="__mt_dup")
    rows.areas(200, task=1, site="vm_area_dup")
    replaced(rows, GATHERED + 3)
    rows.later = 9 * GRACE_NS
    rows.node(800, task=2)
    assert len(implied(taken(rows)[0])) == GATHERED


def test_a_replaced_node_whose_address_is_used_again_was_free() -> None:
    rows = Rows()
    replaced(rows, GATHERED + 3)
    rows.row(CACHE_FREE, NODES, "", 0, 5, IMPLIED)
    rows.node(5, task=3)
    rows.later = 9 * GRACE_NS
    rows.node(800, task=2)
    block, trees = taken(rows)
    assert sorted(implied(block)) == list(range(GATHERED)) and trees.frees == GATHERED - 1
    assert block["object"][np.flatnonzero(block["origin"] == IMPLIED)[0] + 1] == 5, "the import program's stays where it is"


def test_without_tasks_nothing_is_known() -> None:
    rows = Rows()
    rows.node(0, task=0)
    rows.node(1, task=0)
    rows.end(1, task=0)
    assert implied(taken(rows, tasks=0)[0]) == []


def test_a_tree_that_another_task_ends_is_not_used_again() -> None:
    """The first task's tree ends with a root that the second one frees, as where tasks are named wrong; the first one goes on."""
    rows = Rows()
    rows.areas(40, task=1)
    rows.node(0, task=1)
    rows.node(1, task=1)
    rows.end(0, task=2)
    rows.areas(2, task=1)
    rows.node(2, task=1)
    block, trees = taken(rows)
    assert implied(block) == [1] and trees.frees == 1
