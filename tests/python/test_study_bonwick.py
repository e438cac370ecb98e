"""`slabyard study bonwick`, sections 2, 4 and 5.1: the judges' rules on figures made by hand, and the exact figures themselves."""

from __future__ import annotations

import copy
import shutil
from typing import Any

import numpy as np
import pytest

from slabyard.base.terminal import Progress
from slabyard.study import bonwick_cache_effects as cache_effects
from slabyard.study import bonwick_caching as caching
from slabyard.study import bonwick_speed as speed
from slabyard.study import pairs
from slabyard.study.model import IN_PART, Data, Outcome
from slabyard.study.work import Work

counted = pytest.mark.skipif(shutil.which("valgrind") is None or shutil.which("addr2line") is None, reason="needs valgrind")


def holds(outcome: Outcome) -> list[bool | None]:
    return [claim.holds for claim in outcome.claims]


def quick() -> Work:
    return Work(True, Progress(0, quiet=True))


def costs(construction: float, memory: float, other: float) -> dict[str, Any]:
    return {"construction": construction, "memory": memory, "other": other, "parts": {}}


# ---- Section 2 ----------------------------------------------------------------------------------------------------


def test_the_stream_head_of_the_paper_holds() -> None:
    others = {"yard": [costs(200, 20, 19), costs(0, 20, 19)]}
    filled = {"old": costs(236, 500, 19), "new": costs(0, 38, 19), "yard": costs(50, 20, 19)}
    outcome = caching.judge_stream_head({"old": costs(236, 94, 19), "new": costs(0, 38, 19), "others": others, "filled": filled})
    assert holds(outcome) == [True] * 4
    assert outcome.claims[0].because.startswith("to 0.173. ")
    assert outcome.claims[1].because.startswith("caching gives 81% of the saving (paper: 81%). Where memory is filled")
    assert "yard takes 50 instructions" in outcome.claims[3].because
    rows = dict(outcome.sheets[0].rows)
    assert rows["new: memory allocation"].ratio == pytest.approx(1) and rows["yard, cached: other init."].paper is None


def test_savings_that_are_the_allocators_do_not_hold() -> None:
    old, new = costs(50, 940, 19), costs(1, 38, 19)
    outcome = caching.judge_stream_head({"old": old, "new": new, "others": {}, "filled": {"old": old, "new": costs(0, 38, 19)}})
    assert holds(outcome) == [True, False, False, False]
    assert outcome.claims[3].because == "nor where memory is filled and drained"


# ---- Section 5.1, object caching ----------------------------------------------------------------------------------


def kinds(figures: dict[str, tuple[float, float]]) -> Data:
    """By kind: instructions of construction, and what stays."""
    counts = {kind: {"without": costs(more, stays, 0), "with": costs(0, stays, 0)} for kind, (more, stays) in figures.items()}
    times = {kind: {"without": [2.0, 3.0], "with": [1.0, 1.0]} for kind in figures}
    return {"counts": {"bonwick": counts, "yard": counts}, "times": times}


OF_THE_PAPER = {kind: (without - with_, with_) for kind, (without, with_, _) in caching.PAPERS.items()}


def test_the_papers_own_figures_hold() -> None:
    outcome = caching.judge_kinds(kinds(OF_THE_PAPER))
    assert holds(outcome) == [True] * 4
    gains = [(round(figure.ours, 1), figure.paper) for _, figure in outcome.sheets[0].rows if figure.ours]
    assert all(ours == paper for ours, paper in gains)
    assert dict(outcome.sheets[-1].rows)["makepipe"].printed == "98.0"
    assert outcome.pictures[0].svg.startswith("<svg")


def test_gains_that_are_too_small_are_told_with_their_reason() -> None:
    outcome = caching.judge_kinds(kinds({**OF_THE_PAPER, "dupb": (0.5, 10.0), "makepipe": (90.0, 100.0)}))
    assert holds(outcome) == [True, False, True, False]
    assert "dupb gains least, 1.05" in outcome.claims[1].because and "a lock and a condition variable" in outcome.claims[1].because
    assert "90 instructions are saved and 100 remain" in outcome.claims[3].because


def test_a_kind_that_caching_makes_dearer() -> None:
    data = kinds({**OF_THE_PAPER, "allocq": (-1.0, 10.0)})
    assert holds(caching.judge_kinds(data))[:3] == [False, False, False]


# ---- Section 5.1, speed -------------------------------------------------------------------------------------------


def row(lone: float, filled: float) -> dict[str, Any]:
    one = {"fast": 0.0, "slow": 0.0, "pages": 0.0, "locks": 10.0}
    return {"lone": {"100": {"memory": lone, **one, "pages": lone / 2}}, "filled": {"shuffled": {"100": {"memory": filled, **one}}}}


def measured() -> Data:
    """As in the paper, except for a lone pair under SVr4."""
    names = [name for name, *_ in speed.PAPERS]
    filled = dict(zip(names, (38.0, 41.0, 47.0, 94.0, 250.0), strict=True))
    lone = {**filled, speed.SVR4: 480.0, speed.SUNOS: 30.0}
    rows = {name: row(lone[name], filled[name]) for name in names}
    rows[speed.SUNOS]["filled"]["in"] = row(0, 150)["filled"]["shuffled"]
    return {
        "rows": rows,
        "beside": {name: {"0": lone[name], "64": filled[name]} for name in names},
        "timed": {"ns": {name: [filled[name], filled[name]] for name in names}, "lock_pair": [10.0]},
    }


def test_the_order_of_the_paper_and_that_of_a_lone_pair() -> None:
    outcome = speed.judge(measured())
    assert holds(outcome) == [True, True, False, True, True, True, True, True, False, True]
    assert "1 over sizes and orders; 5.11 over ways of measuring" in outcome.claims[8].because
    assert "240 of the page allocator" in outcome.claims[2].because
    assert "with 64 beside it, it takes 94 in place of 480" in outcome.claims[2].because
    assert outcome.claims[4].because.startswith("it is: beside 64, filling and draining. ")
    assert outcome.sheets[0].rows[3][1].printed == "2.47"


def test_speeds_that_contradict_the_paper() -> None:
    data = measured()
    for name in (speed.CACHE, speed.BSD, speed.KMEM):
        data["timed"]["ns"][name] = [60.0]
    data["rows"][speed.CACHE] = row(60, 60)
    data["rows"][speed.SUNOS] = row(250, 250)
    data["beside"][speed.SVR4] = {"0": 480.0, "64": 470.0}
    data["beside"][speed.CACHE]["64"] = 60.0
    data["timed"]["ns"][speed.BSD] = [60.0, 100.0]
    outcome = speed.judge(data)
    assert holds(outcome) == [False, False, False, None, False, False, False, False, False, False]
    assert outcome.claims[3].because.endswith(f"windows overlap of {speed.CACHE} and {speed.BSD}, {speed.BSD} and {speed.KMEM}")
    assert "others beside it do not help" in outcome.claims[2].because


# ---- Sections 4.1 to 4.3 ------------------------------------------------------------------------------------------


def test_the_simulated_cache() -> None:
    lines = np.array([0, 1, 0, cache_effects.SETS, 0, 1])
    assert cache_effects.missed(lines).tolist() == [True, True, False, True, True, False]


def test_lines_of_hot_bytes_and_the_share_used() -> None:
    assert cache_effects.hot_lines([0, 312]).tolist() == [[0, 1, 2, 2], [19, 20, 21, 22]]
    assert cache_effects.used(range(0, 1 << 20, 512)) == 48 / 512
    assert cache_effects.used(range(0, 1 << 20, 16)) == 1


def test_imbalance_of_two_buses() -> None:
    every = np.arange(0, 1024)
    assert cache_effects.imbalance(every) == 0 and cache_effects.imbalance(every[:16]) == 1
    assert cache_effects.imbalance(every[:24]) == pytest.approx(1 / 3)


def test_all_lines_elsewhere_are_read_once_a_touch() -> None:
    nothing = cache_effects.traffic([0, 512], 10_000, share=0.0)
    assert nothing["misses"] > 0.99 and nothing["imbalance"] < 0.05


@pytest.fixture(scope="module")
def effects() -> Data:
    return cache_effects.measure(quick())


def test_cache_effects_are_as_they_were(effects: Data) -> None:
    found = effects["allocators"]
    used = {one: round(100 * found[one]["used"]["4000"], 1) for one in cache_effects.ALLOCATORS}
    assert used == {
        "bonwick": 50.8, "bonwick:colour=off": 15.2, "sunos4": 15.5, "bsd44": 9.4, "svr4": 9.4, "slab": 15.2, "slub": 15.2, "slob": 15.2,
        "slqb": 45.7, "yard": 15.2,
    }  # fmt: skip
    misses = {one: found[one]["traffic"]["1000"]["misses"] for one in ("bonwick", "bonwick:colour=off", "svr4")}
    assert misses == pytest.approx({"bonwick": 0.644, "bonwick:colour=off": 0.793, "svr4": 0.872}, abs=0.01)
    mixed = cache_effects.as_the_old(effects)
    assert mixed and mixed[0] == pytest.approx(0.22, abs=0.01) and mixed[1]["imbalance"] == pytest.approx(0.43)


def test_what_holds_of_cache_effects(effects: Data) -> None:
    outcome = cache_effects.judge(effects)
    assert holds(outcome) == [True, True, False, True, True, False] and outcome.verdict == IN_PART
    assert "15 starts" in outcome.claims[2].because


def test_an_old_allocator_that_is_never_as_the_papers(effects: Data) -> None:
    data = copy.deepcopy(effects)
    for by_share in data["allocators"]["svr4"]["mixed"].values():
        for figures in by_share.values():
            figures["imbalance"] = 0.1
    assert cache_effects.as_the_old(data) is None and len(holds(cache_effects.judge(data))) == 4


# ---- Counting -----------------------------------------------------------------------------------------------------


@counted
def test_a_pair_is_counted_by_owner() -> None:
    plain, cached = (pairs.counted("bonwick", 8, "--kind", "shalloc", *words) for words in ((), ("--cached",)))
    assert cached["construction"] == 0 and plain["construction"] > plain["memory"] > 50
    assert plain["other"] == cached["other"] and plain["parts"]["locks"] > 0
    assert pairs.counted("bonwick", 8, "--kind", "shalloc") == plain


@counted
def test_a_pair_beside_others_gives_the_papers_order_and_a_lone_one_does_not() -> None:
    def all_of(*more: str) -> dict[str, float]:
        return {name: pairs.counted(spec, 1, "--bytes", "100", *more, *words)["memory"] for name, spec, words, _ in speed.PAPERS}

    beside, lone = all_of("--beside", "8"), all_of()
    assert sorted(beside, key=lambda name: beside[name]) == [name for name, *_ in speed.PAPERS]
    assert lone[speed.SVR4] > 10 * lone[speed.CACHE] and 1.5 < beside[speed.SVR4] / beside[speed.CACHE] < 3


def test_what_pairs_refuses() -> None:
    from slabyard.base import programs
    from slabyard.base.errors import UserError

    for words, why in (
        (("--bytes", "64"), "give --allocator"),
        (("--allocator", "slub"), "and --kind or --bytes"),
        (("--allocator", "slub", "--kind", "sandal"), "no such kind"),
        (("--allocator", "malloc:system", "--bytes", "64"), "has no caches"),
        (("--allocator", "slub", "--bytes", "4096", "--live", "4096", "--beside", "4096", "--order", "sideways"), "no such kind or order"),
    ):
        with pytest.raises(UserError, match=why):
            programs.run(programs.PAIRS, *words)
