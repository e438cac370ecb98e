"""The study of Yoo's flame graphs: shares from stacks, graphs that a record keeps, and what the study makes of the figures."""

from __future__ import annotations

from slabyard.kernels import flame, kinds
from slabyard.study import yoo
from slabyard.study.model import HOLDS, IN_PART, NOT, Data, Figure, Outcome

STACKS = {
    ("write", "send", "__kmalloc_node_track_caller"): 60,
    ("write", "send", "kmem_cache_alloc_node", "___slab_alloc"): 40,
    ("read", "kfree", "slob_free", "_raw_spin_lock_irqsave", "native_queued_spin_lock_slowpath", flame.WAITS): 100,
    ("read", "copy"): 799,
    ("rare",): 1,
}


def holds(outcome: Outcome) -> list[bool | None]:
    return [claim.holds for claim in outcome.claims]


def test_the_plugin_s_tree_becomes_stacks() -> None:
    names = ["[unknown]", "write", "kfree", "queued_spin_lock_slowpath", "do_idle"]
    text = "programs 7\n0 1 10 0\n1 2 5 0\n2 3 1 20\n0 4 100 0\n4 1 3 3\nend\n"
    found = flame.name_nodes(text, names)
    lock = ("write", "kfree", "queued_spin_lock_slowpath")
    assert found.stacks == {("write",): 10, ("write", "kfree"): 5, lock: 1, (*lock, flame.WAITS): 20}
    assert (found.samples, found.of_programs) == (36, 7)
    shares = flame.shares(found, ())
    assert (shares["free"], shares["free_waits"], shares["alloc"]) == (26 / 36, 21 / 36, 0)


def test_a_graph_is_kept_without_what_is_too_narrow_to_be_seen() -> None:
    kept = yoo.boxes(STACKS)
    found = yoo.unpacked(kept)
    assert sum(found.values()) == 999 and found[("read", "copy")] == 799 and ("rare",) not in found
    assert found[("write", "send")] == 0
    shares = flame.shares(flame.Profile(flame.Counter(STACKS)), kinds.KINDS["slub"].slow)
    assert shares == {"alloc": 0.1, "free": 0.1, "alloc_slow": 0.04, "free_slow": 0, "alloc_waits": 0, "free_waits": 0.1}


def boot(alloc: float, free: float, slow: float, waits: float) -> Data:
    """A boot of a kernel whose programs execute nothing. `slow` is a share of allocation, `waits` one of allocation and of
    free."""
    shares = {"alloc": alloc, "free": free, "alloc_slow": alloc * slow, "alloc_waits": alloc * waits, "free_waits": free * waits}
    return {**shares, "free_slow": 0, "kernel": 1000, "programs": 0, "calls": 0.9, "boxes": yoo.boxes(STACKS)}


HIS = {"slub": [boot(0.117, 0.133, 0.185, 0)], "slab": [boot(0.105, 0.098, 0.1, 0)], "slob": [boot(0.35, 0.34, 0, 0.985)]}


def test_shares() -> None:
    outcome = yoo._judge_shares(HIS)
    assert outcome.verdict == HOLDS and len(outcome.pictures) == 4 and "allocation blue" in outcome.pictures[3].title
    alone = yoo._judge_shares({**HIS, "slob": [boot(0.15, 0.15, 0, 0)], "slabyard:slub": [boot(0.05, 0.05, 0, 0)]})
    assert holds(alone) == [True, True, True, True, True, False, False, False] and alone.verdict == IN_PART
    mixed = yoo._judge_shares({**HIS, "slub": [*HIS["slub"], boot(0.05, 0.05, 0.185, 0)]})
    assert holds(mixed) == [True, None, True, True, None, True, True, True] and "(10.0 to 25.0) here" in mixed.claims[1].because
    assert dict(outcome.sheets[1].rows)["slab"].printed == "9.82" and dict(outcome.sheets[3].rows)["slub"].printed == "18 to 19"
    functions = dict(outcome.sheets[-1].rows)
    assert functions["kmem_cache_alloc_node"] == Figure(5.66, 4.0) and functions["kfree"] == Figure(6.56, 10.0)
    assert [name for name, _ in alone.sheets[0].rows] == ["slub", "slab", "slob", "slabyard:slub"]


def test_waiting_by_cpus() -> None:
    alone, four = boot(0.15, 0.15, 0, 0), boot(0.4, 0.4, 0, 0.9)
    outcome = yoo._judge_waiting({"cpus": {"1": alone, "4": four}, "turns": {"25": four}})
    assert outcome.verdict == HOLDS and "reached from 4 CPUs on" in outcome.claims[0].because
    assert "4 CPUs in turns of 25 instructions" in [name for name, _ in outcome.sheets[0].rows]
    assert yoo._judge_waiting({"cpus": {"1": alone, "4": alone}, "turns": {}}).verdict == NOT


def test_threads() -> None:
    def runs(**share: float) -> list[Data]:
        kept = {text: {"allocator_share": one, "lock_wait_share": one / 2, "lock_waits": 100 * one} for text, one in share.items()}
        return [{text: {**one, "operations": 1000} for text, one in kept.items()}]

    few, some, many = runs(slub=0.1, slab=0.1, slob=0.5), runs(slub=0.2, slab=0.3, slob=0.7), runs(slub=0.2, slab=0.3, slob=0.9)
    outcome = yoo._judge_threads({"load": 1.5, "1": few, "2": some, "4": many})
    assert outcome.verdict == HOLDS and "was 1.5:" in outcome.notes[-1] and len(outcome.sheets) == 3
    assert holds(yoo._judge_threads({"load": 1.5, "1": many, "2": some, "4": few})) == [True, False]
    assert holds(yoo._judge_threads({"load": 1.5, "1": few, "2": some, "4": many + few})) == [None, None]
