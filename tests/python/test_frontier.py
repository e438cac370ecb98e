"""The picture of cost against growth: its marks, its line, and that no names overlap."""

from __future__ import annotations

import itertools
import random
import re
from typing import Any

from slabyard.report import frontier
from slabyard.results.model import Section, workloads


def record(allocator: str, grew: int, cost: float) -> dict[str, Any]:
    timed = {"ns_per_operation": cost, "intervals": {"ns_per_operation": [0.9 * cost, 1.1 * cost]}, "runs": 6}
    exact = {"held_pages_start": 100, "held_pages_peak": 100 + grew, "grew_pages_peak": grew}
    return {"schema": 1, "run": {"allocator": allocator, "workload": "w", "trace_sha256": "ab"}, "exact": exact, "timed": timed}


def section(*members: dict[str, Any]) -> Section:
    (only,) = workloads(members)
    return only


def test_the_frontier_is_who_is_beaten_by_nobody() -> None:
    found = section(record("a", 10, 90), record("b", 20, 50), record("c", 30, 60), record("d", 40, 40), record("e", 10, 95))
    assert [mark.name for mark in frontier.frontier(frontier.marks(found))] == ["a", "b", "d"]
    assert frontier.sentence(found) == (
        "a grows least (40 KiB, 90.0 ns an operation), d costs least (160 KiB, 40.0 ns); between them b. The other 2 are beaten in both."
    )


def test_one_that_is_best_in_both_is_said_to_be() -> None:
    found = section(record("a", 10, 40), record("b", 20, 50))
    assert frontier.sentence(found) == "a grows least and costs least (40 KiB, 40.0 ns an operation); all others are beaten."


def test_counted_costs_are_drawn_where_all_have_them() -> None:
    counted = [{**record(name, grew, 10), "cost": {"instructions": cost}} for name, grew, cost in (("a", 1, 120), ("b", 2, 90))]
    picture = str(frontier.picture(section(*counted)))
    assert "instructions per operation" in picture and "whisker" not in picture
    assert frontier.cost_note([section(*counted)]) == "The line joins those that no other beats in both."
    some = section(counted[0], record("b", 2, 9))
    assert "measured ns per operation" in str(frontier.picture(some)) and 'class="whisker"' in str(frontier.picture(some))
    assert "compare --cost counts" in frontier.cost_note([some])


def test_one_run_gives_no_verdict_on_time() -> None:
    """Times without intervals are drawn, but with no line, and nothing says which costs least. Counted costs need no
    intervals."""
    single = [record("a", 10, 90), record("b", 20, 50)]
    for one in single:
        one["timed"] = {"ns_per_operation": one["timed"]["ns_per_operation"], "runs": 1}
    found = section(*single)
    picture, said, note = str(frontier.picture(found)), frontier.sentence(found), frontier.cost_note([found])
    assert picture.count("<circle") == 2 and 'class="frontier"' not in picture and 'class="name best"' not in picture
    assert said.startswith("a grows least (40 KiB, 90.0 ns an operation). ") and "not known" in said
    assert not any(word in said for word in ("costs least (", "beaten")) and "whiskers" not in note and "too few" in note
    counted = section(*({**one, "cost": {"instructions": cost}} for one, cost in zip(single, (120, 90), strict=True)))
    assert 'class="frontier"' in str(frontier.picture(counted)) and "b costs least" in frontier.sentence(counted)


def test_the_recorded_kernel_is_a_line() -> None:
    run = {"allocator": "recorded", "workload": "w", "trace_sha256": "ab"}
    real = {"schema": 1, "run": run, "exact": {"grew_pages_peak": 15}, "timed": {}}
    picture = str(frontier.picture(section(record("a", 10, 40), record("b", 20, 30), real)))
    assert picture.count('class="recorded"') == 2 and "recorded kernel" in picture


def test_without_two_marks_there_is_no_picture() -> None:
    assert frontier.picture(section(record("a", 10, 40))) is None
    assert frontier.sentence(section(record("a", 10, 40))) == ""


def test_names_do_not_meet_and_stay_inside() -> None:
    chance = random.Random(1)
    fits = ["slob", "slob:fit=first", "slob:fit=best"]
    names = ["yard", "slub", "slab", "slqb", *fits, "bonwick", "bsd44", "svr4", "sunos4", "malloc:system"]
    for _ in range(50):
        crowd = section(*(record(name, chance.randint(1000, 1040), chance.uniform(50, 56)) for name in names), record("far", 9000, 900))
        picture = str(frontier.picture(crowd))
        found = re.findall(r'<text x="([\d.]+)" y="([\d.]+)" class="name[^>]*>([^<]+)</text>', picture)
        assert len(found) == len(names) + 1
        boxes = [(float(x), float(y) - 10, float(x) + frontier.LETTER * len(name), float(y)) for x, y, name in found]
        assert not any(a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3] for a, b in itertools.combinations(boxes, 2))
        assert all(box[0] >= frontier.LEFT and box[2] <= frontier.WIDTH and box[1] >= 0 and box[3] <= frontier.HEIGHT for box in boxes)


def test_names_that_others_wrote_are_escaped() -> None:
    picture = str(frontier.picture(section(record("<b>", 10, 40), record("&", 20, 30))))
    assert "<b>" not in picture and "&lt;b&gt;" in picture


def test_no_growth_at_all_is_drawn() -> None:
    assert frontier.picture(section(record("a", 0, 40), record("b", 0, 30)))


def test_of_booted_kernels_the_workloads_time_is_drawn() -> None:
    def booted(name: str, grew: int, seconds: float) -> dict[str, Any]:
        timed = {"seconds": seconds, "grew_pages_peak": grew, "held_pages_peak": 9000, "intervals": {"seconds": [seconds, seconds + 1]}}
        return {"schema": 1, "run": {"allocator": name, "workload": "w", "arch": "um"}, "exact": {}, "timed": timed}

    found = section(booted("slub", 10, 2.5), booted("slab", 20, 1.5))
    assert "measured s of the workload" in str(frontier.picture(found))
    assert frontier.sentence(found) == "slub grows least (40 KiB, 2.50 s), slab costs least (80 KiB, 1.50 s)."
    assert frontier.cost_note([found]).endswith(" Cost is measured time, whose whiskers are intervals.")
