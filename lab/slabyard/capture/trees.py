"""Frees of maple nodes, of which no event tells: of nodes that were replaced, and of an address space that ends.

Since Linux 6.1 the areas of an address space are in a maple tree, whose writers don't change its nodes in place. They allocate new ones and
give the old ones to kfree_rcu, without an event. When the address space ends, at exit or exec, its nodes are freed in bulk, and the root
alone by kfree, with an event (__mt_destroy). A task frees the areas just before (exit_mmap); other roots are of small trees, such as those
of folders in tmpfs. Without what follows nodes lived on to the end of the trace, or until their address was used again.

Ended trees. Where the root is freed, all nodes of the tree are free that have not been seen used again, and their frees are implied there.
Which nodes are of a tree, by the process that allocated them:

    __mt_dup, mas_dup_alloc    fork copies a tree: nodes of the mm_struct that the process allocated last
    after mm_alloc             exec makes a new tree, which is the process's own from then on; the one before ends next
    all others                 the process's own

Replaced nodes. A tree has about one node for ten areas: copies by fork show both, from 22 areas in 3 nodes to 265 in 25. Areas are counted
from their events. A tree that has more nodes than that has replaced some; those that are oldest are taken to be. They are free when the
grace period has passed, and kfree_rcu gathers them first: since 6.18 on each CPU in a sheaf, which is handed to RCU when it is full. So 32
are freed together when the grace period that is under way then and the next one have passed, GRACE_NS each; or where their address is used
again, if that is sooner. Of a process that is older than the trace the nodes that were there are not known. There as many new nodes stay as
areas came.

Measured on Linux 6.18. Ends, five workloads of up to 255 processes: 7,734 of 7,734 such frees agree with what is seen of their addresses
later. Replaced nodes, eleven other workloads: of 156,901 nodes whose address was used again 97.7% had been found to be replaced by then;
1 of 342 that were found so was freed by an event later. No sheaf was used again before it was full. Where nodes are in demand (six
processes that map and unmap) the first node of a sheaf was used again 14 to 22 ms after that, the middle half of 509.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..trace.file import CACHE_ALLOC, CACHE_FREE, IMPLIED, KFREE, RECORDED

_COPIES = ("__mt_dup", "mas_dup_alloc")
_EXEC, _EXIT, _COPIED_AREA = "mm_alloc", "exit_mmap", "vm_area_dup"
_NODE, _SPACE, _AREA = 1, 2, 3
_WHAT = {"maple_node": _NODE, "mm_struct": _SPACE, "vm_area_struct": _AREA}
AREAS_OF_NODE = 10
SPARE = 2.5  # nodes: the root of more than one leaf, rounding, and one of a tree that a call makes for itself and ends
GATHERED = 32  # objects in the sheaf that kfree_rcu fills
GRACE_NS = 13_000_000  # so that a sheaf waits 13 to 26 ms
_NOWHERE = np.uint32(-1 & 0xFFFFFFFF)
Block = dict[str, np.ndarray]
What = tuple[int, int, int]  # address, size and bytes of a node


class Trees:
    """Takes the rows of a trace block by block, as rows.c writes them.

    `caches`: names by number; `sites`: call sites by number, the last one none; `processes`: numbers of the processes by task.
    """

    def __init__(self, caches: Sequence[str], sites: Sequence[str], processes: Sequence[int]) -> None:
        functions = [one.partition("+")[0].partition(".")[0] for one in sites]
        self._copies = [one in _COPIES for one in functions]
        self._execs, self._exits, self._copied_areas = ([one == name for one in functions] for name in (_EXEC, _EXIT, _COPIED_AREA))
        self._what = np.array([*(_WHAT.get(one, 0) for one in caches), 0])
        self._processes, self._no_site = np.array([*processes, -1]), len(functions) - 1
        self._trees = 0  # so far
        self._tree: dict[int, int] = {}  # of a live node, by its object's number
        self._members: dict[int, dict[int, What]] = {}  # by tree, the oldest first
        self._areas: dict[int, int] = {}  # by tree: how many came less those that went
        self._own: dict[int, int] = {}  # by process
        self._before_exec: dict[int, int | None] = {}
        self._copy: dict[int, int] = {}
        self._copying: set[int] = set()  # processes that copy areas for a fork
        self._ends: set[int] = set()  # processes whose address space ends
        self._replaced: dict[int, What] = {}  # nodes that wait for their free
        self._gathered: dict[int, list[int]] = {}  # of these, by CPU
        self._waiting: deque[tuple[int, int, list[int]]] = deque()  # when the grace period has passed, the CPU, nodes
        self._freed: dict[int, What] = {}  # nodes whose frees were implied, until the trace shows it
        self._added: list[tuple[int, int, int, What, int | None]] = []  # before which row: kind, object, what it is, CPU if not the row's
        self.frees = self.allocations = 0  # implied here, less those that the import program would have implied later

    def take(self, block: Block) -> Block:
        """The block with the frees that its rows imply, and without those that came too late."""
        what = self._what[np.minimum(block["cache"], len(self._what) - 1)]
        objects = (block["kind"] == CACHE_ALLOC) | (block["kind"] == CACHE_FREE) | (block["kind"] == KFREE)
        rows = np.flatnonzero(objects & (what > 0))
        if len(self._processes) < 2 or not len(rows):
            return block
        self._added, dropped = [], []
        processes = self._processes[np.minimum(block["task"][rows], len(self._processes) - 1)].tolist()
        sites = np.minimum(block["call_site"][rows], self._no_site).tolist()
        columns = [block[name][rows].tolist() for name in ("kind", "origin", "object", "time", "cpu", "address", "size", "allocated")]
        for row, is_of, process, site, kind, origin, number, time, cpu, *known in zip(
            rows.tolist(), what[rows].tolist(), processes, sites, *columns, strict=True
        ):
            if self._waiting and self._waiting[0][0] <= time:
                self._pass_grace(row, time)
            if is_of == _AREA:
                self._count_area(process, kind == CACHE_ALLOC, site)
            elif is_of == _SPACE:
                if kind == CACHE_ALLOC:
                    self._new_space(process, self._execs[site])
            elif kind == CACHE_ALLOC:
                if origin == RECORDED:
                    self._join(process, self._copies[site], number, (known[0], known[1], known[2]))
                    self._replace(process, time, cpu)
            elif number in self._freed:
                was = self._freed.pop(number)
                if origin == RECORDED:
                    self._added.append((row, CACHE_ALLOC, number, was, None))
                else:
                    dropped.append(row)
            else:
                tree = self._leave(number)
                if kind == KFREE and process in self._ends:
                    self._ends.remove(process)
                    self._free(row, self._end(process, tree))
        self.frees += sum(one[1] == CACHE_FREE for one in self._added) - len(dropped)
        self.allocations += sum(one[1] == CACHE_ALLOC for one in self._added)
        return self._rewritten(block, dropped)

    def _free(self, row: int, nodes: dict[int, What], cpu: int | None = None) -> None:
        self._added += [(row, CACHE_FREE, number, what, cpu) for number, what in nodes.items()]
        self._freed.update(nodes)

    def _pass_grace(self, row: int, time: int) -> None:
        """Frees what has waited long enough."""
        while self._waiting and self._waiting[0][0] <= time:
            _, cpu, numbers = self._waiting.popleft()
            self._free(row, {number: self._replaced.pop(number) for number in numbers if number in self._replaced}, cpu)

    def _count_area(self, process: int, came: bool, site: int) -> None:
        if came and self._copied_areas[site] and process in self._copying:
            return
        if self._exits[site]:
            self._ends.add(process)
            return
        if came:
            self._copying.discard(process)
        self._areas[self._own_tree(process)] += 1 if came else -1

    def _new_tree(self) -> int:
        self._trees += 1
        self._areas[self._trees] = 0
        return self._trees

    def _own_tree(self, process: int) -> int:
        """Where another process has ended the tree (it was the last to hold the address space), this number is of a new process."""
        tree = self._own.get(process)
        if tree is None or tree not in self._areas:
            tree = self._own[process] = self._new_tree()
        return tree

    def _new_space(self, process: int, of_exec: bool) -> None:
        if not of_exec:
            self._copy[process] = self._new_tree()
            self._copying.add(process)
            return
        self._before_exec[process] = self._own.get(process)
        self._own[process] = self._new_tree()

    def _join(self, process: int, copied: bool, number: int, what: What) -> None:
        tree = self._copy.get(process) if copied else None
        if tree is None:
            tree = self._own_tree(process)
            self._copying.discard(process)
        self._tree[number] = tree
        self._members.setdefault(tree, {})[number] = what

    def _replace(self, process: int, time: int, cpu: int) -> None:
        """Has the process's own tree give up the oldest nodes that are more than it needs."""
        tree = self._own_tree(process)
        members = self._members.get(tree, {})
        if len(members) <= (most := int(max(0, self._areas[tree]) / AREAS_OF_NODE + SPARE)):
            return
        gathered = self._gathered.setdefault(cpu, [])
        while len(members) > most:
            number = next(iter(members))
            self._replaced[number] = members.pop(number)
            del self._tree[number]
            gathered.append(number)
        if len(gathered) >= GATHERED:
            self._waiting.append(((time // GRACE_NS + 2) * GRACE_NS, cpu, gathered))
            del self._gathered[cpu]

    def _leave(self, number: int) -> int | None:
        tree = self._tree.pop(number, None)
        self._replaced.pop(number, None)
        if tree is not None:
            self._members.get(tree, {}).pop(number, None)
        return tree

    def _end(self, process: int, tree: int | None) -> dict[int, What]:
        """The nodes that end with a root of `tree` that the process frees, by object."""
        own = self._before_exec.pop(process) if process in self._before_exec else self._own.pop(process, None)
        ended: dict[int, What] = {}
        for one in (tree, own):
            if one is not None:
                ended.update(self._members.pop(one, {}))
                self._areas.pop(one, None)
        for number in ended:
            del self._tree[number]
        return ended

    def _rewritten(self, block: Block, dropped: list[int]) -> Block:
        if not self._added and not dropped:
            return block
        at = np.array([row for row, *_ in self._added], np.int64)
        cpus = np.array([-1 if cpu is None else cpu for *_, cpu in self._added], np.int64)
        values: dict[str, Any] = {
            "kind": [kind for _, kind, *_ in self._added], "object": [number for _, _, number, *_ in self._added],
            "address": np.array([what[0] for *_, what, _ in self._added], np.uint64), "size": [what[1] for *_, what, _ in self._added],
            "allocated": [what[2] for *_, what, _ in self._added], "call_site": self._no_site,
            "cache": int(np.flatnonzero(self._what == _NODE)[0]), "cpu": np.where(cpus < 0, block["cpu"][at], cpus),
        }  # fmt: skip
        keep = np.ones(len(block["kind"]), bool)
        keep[dropped] = False
        keep = np.insert(keep, at, True)
        return {name: column[keep] for name, column in with_implied(block, at, values).items()}


def with_implied(block: Block, at: np.ndarray, values: dict[str, Any]) -> Block:
    """The block with implied rows before its rows `at` (int64[n]): by column one value, or n; they are at the time and on the CPU of
    those, and of nobody."""
    common = {
        "time": block["time"][at], "cpu": block["cpu"][at], "origin": IMPLIED, "migratetype": -1, "node": -1,
        "call_site": _NOWHERE, "stack": _NOWHERE, "task": _NOWHERE,
    }  # fmt: skip
    return {name: np.insert(column, at, (common | values).get(name, 0)) for name, column in block.items()}
