"""The study of Kyritsis et al.: the calls, the two ways of counting, what the study makes of the figures, and figures that
are the same everywhere."""

from __future__ import annotations

from typing import Any

import pytest

from slabyard.base.errors import UserError
from slabyard.base.terminal import Progress
from slabyard.study import filling, kyritsis
from slabyard.study.filling import PAGE
from slabyard.study.model import HOLDS, IN_PART, NOT, UNTOLD, Data, Outcome
from slabyard.study.work import Work


def holds(outcome: Outcome) -> list[bool | None]:
    return [claim.holds for claim in outcome.claims]


def test_sizes_are_drawn_evenly_and_always_the_same() -> None:
    drawn = filling.sizes(256, 20_000, 1)
    assert (min(drawn), max(drawn)) == (1, 256) and 127 < sum(drawn) / len(drawn) < 130
    assert drawn == filling.sizes(256, 20_000, 1) != filling.sizes(256, 20_000, 2)
    assert filling.sizes(4096, 3, 1) == [969, 1513, 2066]


def test_what_a_request_takes() -> None:
    assert [filling.block_of(size) for size in (1, 2, 12, 4087, 4088)] == [10, 10, 20, 4096, 0]
    assert [filling.pages_of(size) for size in (4087, 4088, 4096, 4097, 8192, 8193, 16384)] == [0, 1, 1, 2, 2, 4, 4]


def test_unused_memory_after_each_call_is_what_the_blocks_leave() -> None:
    with filling.filled([100, 4000, 5000, 50], "empty") as calls:
        found = calls.exact("slob:fit=next")
    marks = {one["name"]: (one["slab_pages"], one["large_pages"], one["unused"]) for one in found["snapshots"]}
    assert marks == {"begin": (0, 0, 0), "filled": (2, 2, 2 * PAGE - 108 - 4008 - 58), "end": (0, 0, 0)}
    assert set(found["series"]["unused"]) >= {PAGE - 108, 2 * PAGE - 108 - 4008, 2 * PAGE - 108 - 4008 - 58}


@pytest.mark.parametrize(
    ("most", "pages"),
    [(256, {"next": 696, "first": 696, "best": 691}), (16384, {"next": 2880, "first": 2880, "best": 2725})],
)  # fmt: skip
def test_pages_of_a_run_from_empty_memory(most: int, pages: dict[str, int]) -> None:
    found = kyritsis.run(most, "empty", 1, details=True)
    assert {fit: marks["filled"][0] for fit, marks in found["fits"].items()} == pages
    assert all(marks["begin"] == marks["end"] == [0, 0] for marks in found["fits"].values())
    assert found["taken"]["yard"][1] == sum(filling.sizes(most, kyritsis.CALLS, 1)) and len(found["curves"]["best"]) == kyritsis.CURVE


def test_best_fit_leaves_less_unused_in_a_booted_kernel_too() -> None:
    found = kyritsis.run(16384, "booted", 1, ("next", "best"))
    unused = {fit: round(kyritsis.ratio(marks["filled"]), 1) for fit, marks in found["fits"].items()}
    assert unused == {"next": 21.9, "best": 20.2}


# ---- What is made of the figures ---------------------------------------------------------------------------------


def made(begin: float, filled: float, end: float, large: int = 0) -> Data:
    """A run on 1,000 pages. At the marks, next and first leave this percentage unused; best leaves 1% less when all objects
    are there."""
    marks = {"begin": begin, "filled": filled, "end": end}
    fits: dict[str, Any] = {}
    for fit in kyritsis.FITS:
        fits[fit] = {mark: [1000, 10 * PAGE * (share - (fit == "best" and mark == "filled"))] for mark, share in marks.items()}
    curves = {fit: [[call, *of[mark]] for call, mark in enumerate(filling.MARKS)] for fit, of in fits.items()}
    return {"large": large, "fits": fits, "curves": curves, "taken": {"yard": [1000, 900 * PAGE]}}


def test_two_ways_of_counting() -> None:
    one = made(50, 40, 50, large=1000)
    assert kyritsis.ratio(one["fits"]["next"]["filled"]) == 40
    assert kyritsis.theirs(one, "next", "begin", (2000 * PAGE, 1000 * PAGE)) == 50
    assert kyritsis.theirs(one, "next", "filled", (2000 * PAGE, 1000 * PAGE)) == pytest.approx(100 * (1000 - 100 + 1000) / 3000)
    assert kyritsis.theirs(one, "next", "end", (2000 * PAGE, 1000 * PAGE), "end") == 50
    assert kyritsis.theirs(one, "next", "begin", (2000 * PAGE, 1500 * PAGE), "end") == pytest.approx(100 * (1500 - 1000) / 1000)


def test_what_is_known_of_their_counters_is_no_figure_of_ours() -> None:
    rows = dict(kyritsis._as_they_count("small", {"booted": [made(50, 40, 50)]}).rows)
    assert rows["fit=next, all freed"].printed == "80.1529" and rows["fit=next, all freed"].ours is None
    assert rows["fit=next, 20,000 allocated"].ours is not None
    rows = dict(kyritsis._as_they_count("large", {"booted": [made(50, 40, 50)]}).rows)
    assert rows["fit=next, before"].ours is None and rows["fit=next, all freed"].ours is not None


def test_eight_points_between_two_fits() -> None:
    one = made(50, 40, 50)
    assert not kyritsis._by_eight(one).holds
    one["fits"]["best"]["end"][1] -= 40_000_000
    assert kyritsis._by_eight(one).holds


@pytest.mark.parametrize(
    ("name", "run", "expected", "verdict"),
    [
        ("small", made(80, 80, 80), [True, False, True, False], IN_PART),
        ("small", made(80, 70, 80), [True, False, False, False], IN_PART),
        ("medium", made(72, 73.5, 74), [False, False, True], IN_PART),
        ("medium", made(80, 80, 80, large=10), [True, True, False], IN_PART),
        ("large", made(31, 20, 31), [False, False, False, False], NOT),
    ],
)
def test_the_three_experiments(name: str, run: Data, expected: list[bool], verdict: str) -> None:
    outcome = kyritsis._judge(name, {"empty": [run], "booted": [run, run]})
    assert holds(outcome) == expected and outcome.verdict == verdict
    assert len(outcome.pictures) == 3 and all(picture.svg.startswith("<svg") for picture in outcome.pictures)


def test_when_best_fit_is_worse() -> None:
    def curve(*shares: float) -> list[list[int]]:
        return [[20_000 + 5_000 * number, 100, int(share * PAGE)] for number, share in enumerate(shares)]

    told = kyritsis._turning({"next": curve(10, 10, 10, 10, 10), "best": curve(5, 9, 11, 14, 10)})
    assert told == "it is ahead until call 30,000, and behind by 4.0 points at call 35,000"
    assert kyritsis._turning({"next": curve(10, 10), "best": curve(5, 10.5)}) == "it is never behind by a point"
    told = kyritsis._turning({"next": curve(10, 10), "best": curve(5, 12)})
    assert told == "it is ahead until call 25,000, where it is behind by 2.0 points"


def test_state_and_counting() -> None:
    recording = {"slab_pages": 1000, "unused": 300 * PAGE, "large": 100, "seconds": 2.0}
    sizes = {"256": made(30, 20, 30), "4096": made(30, 20, 30), "16384": made(30, 20, 30, large=50_000)}
    outcome = kyritsis._judge_counting({"sizes": sizes, "recording": recording})
    assert holds(outcome) == [True, False, False]
    assert "from sizes up to 16,384 on" in outcome.claims[1].because
    needed = dict(outcome.sheets[3].rows)["seconds of our recording's load until then (fit=next)"].ours
    assert needed == pytest.approx((0.801529 * 1000 - 300) / (1 - 0.801529) / 50, rel=1e-3)


def test_what_the_paper_s_own_log_adds() -> None:
    sheet = kyritsis._listing()
    assert "5 of these 9 steps" in sheet.notes[0] and sheet.rows[0][1].paper == 2276


def test_searches() -> None:
    def one(request: int, candidates: list[int], chosen: int) -> Data:
        return {"request": request, "candidates": candidates, "chosen": [chosen]}

    good = [one(12, [4, 28, 12], 12), one(128, [188, 28, 256], 188), one(40, [8], 0)]
    outcome = kyritsis._judge_log({"searches": good})
    assert outcome.verdict == HOLDS
    assert outcome.listing[:6] == [
        "slob_alloc: Request: 12",
        "slob_alloc: Candidate block size:",
        "4",
        "28",
        "12",
        "slob_alloc: Best Fit: 12",
    ]
    assert holds(kyritsis._judge_log({"searches": [*good, one(12, [28, 12, 4], 12)]})) == [True, False]
    assert holds(kyritsis._judge_log({"searches": [one(100, [128, 256], 256)]})) == [False, None]
    assert kyritsis._with_most([one(8, [8], 8), one(8, [1, 2, 8], 8), one(8, [1, 8], 8)], 2) == [one(8, [1, 2, 8], 8), one(8, [1, 8], 8)]


# ---- Inside kernels ----------------------------------------------------------------------------------------------


def log(unused: int) -> str:
    """A kernel's log: 100 pages, with this many bytes unused when all objects are there, else half of them."""
    lines = ["[    0.1] something else"]
    for most in (256, 4096, 16384):
        lines += [f"[    0.2] slabyard.fill: {most} {calls} 100 {free}" for calls, free in ((0, 204800), (20000, unused), (40000, 204800))]
    return "\n".join([*lines, "[    0.3] slabyard.fill: done", ""])


def test_a_kernel_s_log_becomes_points() -> None:
    assert kyritsis.points_of("slob", log(7))["4096"] == [[0, 100, 204800], [20000, 100, 7], [40000, 100, 204800]]
    for cut in ("", log(7).replace("slabyard.fill: done", ""), log(7).replace("16384 40000", "16384 39500")):
        with pytest.raises(UserError, match="has not all"):
            kyritsis.points_of("slob", cut)


def test_a_quick_run_boots_each_kernel_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    booted: list[str] = []
    monkeypatch.setattr(kyritsis, "in_kernel", lambda text, progress: booted.append(text) or kyritsis.points_of(text, log(7)))
    for quick, boots in ((True, 2), (False, 5)):
        found = kyritsis._measure_kernel(Work(quick, Progress(0, quiet=True)))
        assert sorted(booted) == sorted(boots * kyritsis.KERNELS) and list(found) == list(kyritsis.KERNELS)
        assert {len(each) for each in found.values()} == {boots}
        booted.clear()


def test_inside_kernels() -> None:
    def judged(*ours: int) -> Outcome:
        def boots(text: str) -> list[Data]:
            return [kyritsis.points_of(text, log(boot if "best" in text else 8192)) for boot in ours]

        return kyritsis._judge_kernel({text: boots(text) for text in kyritsis.KERNELS})

    assert judged(4096).verdict == IN_PART and holds(judged(4096, 4100)) == [True, False] and holds(judged(9000)) == [False, True]
    assert "-1.00 points" in judged(4096).claims[0].because and len(judged(4096).pictures) == 3
    assert judged(4096, 9000).verdict == UNTOLD and "windows of boots overlap" in judged(4096, 9000).claims[0].because
