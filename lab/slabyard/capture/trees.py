"""Frees of maple nodes, of which no event tells: those of an address space that ends.

Since Linux 6.1 the areas of an address space are in a maple tree. When it ends, at exit or exec, its nodes are freed in bulk, and the
root alone by kfree, with an event (__mt_destroy). Nodes that were replaced meanwhile were freed by kfree_rcu. So where the root is freed,
all nodes of the tree are free that have not been seen used again, and their frees are implied there. Without this they lived on to the
end of the trace, or until their address was used again. A task frees the areas just before (exit_mmap); other roots are of small trees,
such as those of folders in tmpfs.

Which nodes are of a tree, by the task that allocated them:

    __mt_dup, mas_dup_alloc    fork copies a tree: nodes of the mm_struct that the task allocated last
    after mm_alloc             exec makes a new tree, which is the task's own from then on; the one before ends next
    all others                 the task's own

Measured on a quiet Linux 6.18, five workloads of up to 255 processes: 7,734 of 7,734 such frees agree with what is seen of their
addresses later, and of 5,117 nodes at most 2 are left at the end, which are those of the process that had not ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..trace.file import CACHE_ALLOC, CACHE_FREE, IMPLIED, KFREE, RECORDED

_COPIES = ("__mt_dup", "mas_dup_alloc")
_EXEC, _EXIT = "mm_alloc", "exit_mmap"
_NODES, _SPACES = "maple_node", "mm_struct"
Block = dict[str, np.ndarray]


class Trees:
    """Takes the rows of a trace block by block, as rows.c writes them.

    `caches`: names by number; `sites`: call sites by number, the last one none; `tasks`: how many tasks are known.
    """

    def __init__(self, caches: Sequence[str], sites: Sequence[str], tasks: int) -> None:
        functions = [one.partition("+")[0].partition(".")[0] for one in sites]
        self._copies = np.array([one in _COPIES for one in functions])
        self._execs, self._exits = (np.array([one == name for one in functions]) for name in (_EXEC, _EXIT))
        self._nodes, self._spaces = (np.array([one == name for one in caches] + [False]) for name in (_NODES, _SPACES))
        self._tasks, self._no_site = tasks, len(functions) - 1
        self._trees = 0  # so far
        self._tree: dict[int, int] = {}  # of a live node, by its object's number
        self._members: dict[int, dict[int, tuple[int, int, int]]] = {}  # by tree: address, size and bytes of each node
        self._own: dict[int, int] = {}  # by task
        self._before_exec: dict[int, int | None] = {}
        self._copy: dict[int, int] = {}
        self._ends: set[int] = set()  # tasks whose address space ends
        self._freed: dict[int, tuple[int, int, int]] = {}  # nodes whose frees were implied, until the trace shows it
        self.frees = self.allocations = 0  # implied here, less those that the import program would have implied later

    def take(self, block: Block) -> Block:
        """The block with the frees that its rows imply, and without those that came too late."""
        cache = np.minimum(block["cache"], len(self._nodes) - 1)
        exits = self._exits[np.minimum(block["call_site"], self._no_site)] & (block["kind"] == CACHE_FREE)
        objects = (block["kind"] == CACHE_ALLOC) | (block["kind"] == CACHE_FREE) | (block["kind"] == KFREE)
        rows = np.flatnonzero(exits | (objects & (self._nodes[cache] | self._spaces[cache])))
        if not self._tasks or not len(rows):
            return block
        added: list[tuple[int, int, int, tuple[int, int, int]]] = []  # before which row, kind, object, and what is known of it
        dropped: list[int] = []
        columns = [block[name][rows].tolist() for name in ("kind", "origin", "task", "object", "call_site", "address", "size", "allocated")]
        is_node = self._nodes[cache[rows]].tolist()
        for row, node, kind, origin, task, number, site, *known in zip(rows.tolist(), is_node, *columns, strict=True):
            site = min(site, self._no_site)
            if not node:
                if kind == CACHE_ALLOC:
                    self._new_space(task, bool(self._execs[site]))
                elif self._exits[site]:
                    self._ends.add(task)
            elif kind == CACHE_ALLOC:
                if origin == RECORDED:
                    self._join(task, bool(self._copies[site]), number, (known[0], known[1], known[2]))
            elif number in self._freed:
                what = self._freed.pop(number)
                if origin == RECORDED:
                    added.append((row, CACHE_ALLOC, number, what))
                else:
                    dropped.append(row)
            else:
                tree = self._leave(number)
                if kind == KFREE and task in self._ends:
                    self._ends.remove(task)
                    ended = self._end(task, tree)
                    added += [(row, CACHE_FREE, one, what) for one, what in ended.items()]
                    self._freed.update(ended)
        self.frees += sum(kind == CACHE_FREE for _, kind, _, _ in added) - len(dropped)
        self.allocations += sum(kind == CACHE_ALLOC for _, kind, _, _ in added)
        return self._rewritten(block, added, dropped)

    def _new_space(self, task: int, of_exec: bool) -> None:
        self._trees += 1
        if not of_exec:
            self._copy[task] = self._trees
            return
        self._before_exec[task] = self._own.get(task)
        self._own[task] = self._trees

    def _join(self, task: int, copied: bool, number: int, what: tuple[int, int, int]) -> None:
        tree = (self._copy if copied else self._own).get(task)
        if tree is None:
            self._trees += 1
            tree = self._own[task] = self._trees
        self._tree[number] = tree
        self._members.setdefault(tree, {})[number] = what

    def _leave(self, number: int) -> int | None:
        tree = self._tree.pop(number, None)
        if tree is not None:
            self._members.get(tree, {}).pop(number, None)
        return tree

    def _end(self, task: int, tree: int | None) -> dict[int, tuple[int, int, int]]:
        """The nodes that end with a root of `tree` that the task frees, by object."""
        own = self._before_exec.pop(task) if task in self._before_exec else self._own.pop(task, None)
        ended: dict[int, tuple[int, int, int]] = {}
        for one in (tree, own):
            if one is not None:
                ended.update(self._members.pop(one, {}))
        for number in ended:
            del self._tree[number]
        return ended

    def _rewritten(self, block: Block, added: list[tuple[int, int, int, tuple[int, int, int]]], dropped: list[int]) -> Block:
        if not added and not dropped:
            return block
        at = np.array([row for row, _, _, _ in added], np.int64)
        values: dict[str, Any] = {
            "kind": [kind for _, kind, _, _ in added], "object": [number for _, _, number, _ in added],
            "address": np.array([what[0] for *_, what in added], np.uint64), "size": [what[1] for *_, what in added],
            "allocated": [what[2] for *_, what in added], "origin": IMPLIED, "call_site": self._no_site, "migratetype": -1, "node": -1,
            "cache": int(np.flatnonzero(self._nodes)[0]), "time": block["time"][at], "cpu": block["cpu"][at],
        }  # fmt: skip
        none = {"stack": np.uint32(-1 & 0xFFFFFFFF), "task": np.uint32(-1 & 0xFFFFFFFF)}
        keep = np.ones(len(block["kind"]), bool)
        keep[dropped] = False
        keep = np.insert(keep, at, True)
        return {name: np.insert(column, at, values.get(name, none.get(name, 0)))[keep] for name, column in block.items()}
