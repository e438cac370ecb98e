"""Why allocators differ, and what to do about it, from records alone."""

from __future__ import annotations

from typing import Any

import pytest

from slabyard.results import advice, ranks, reasons
from slabyard.results.model import Section, workloads


def cache(name: str, start: int | None, peak: int | None, objects: int = 21, pages: int = 1, **more: Any) -> dict[str, Any]:
    """A row of a record's caches, which has the pages of the peak at the end too."""
    row = {"cache": 0, "name": name, "size": 192, "live": 0, "slabs": 0, "merged_into": None, "slab_objects": objects, "slab_pages": pages}
    return {**row, "pages": peak, "pages_start": start, "pages_peak": peak, **more}


def record(allocator: str, grew: int, *caches: dict[str, Any], start: int = 1000, **groups: Any) -> dict[str, Any]:
    exact = {
        "held_pages_start": start, "held_pages_peak": start + grew, "held_pages_end": start + grew, "grew_pages_peak": grew,
        "grew_pages_end": grew, "slab_pages_peak": start + grew, "caches": list(caches), **groups.pop("exact", {}),
    }  # fmt: skip
    run = {"allocator": allocator, "workload": "w", "trace_sha256": "ab", **groups.pop("run", {})}
    return {"schema": 1, "run": run, "exact": exact, "timed": {}, **groups}


def section(*members: dict[str, Any]) -> Section:
    (only,) = workloads(members)
    return only


def text(*members: dict[str, Any]) -> str:
    (only,) = reasons.reasons(section(*members))
    return only.text


def test_growth_is_told_by_cache_with_what_differs_in_its_slabs() -> None:
    slub = record("slub", 1000, cache("ext4_inode_cache", 100, 400, 7, 2), cache("filp", 50, 60))
    slab = record("slab", 1080, cache("ext4_inode_cache", 100, 475, 3, 1), cache("filp", 50, 65))
    assert text(slub, slab) == (
        "+8%, +320 KiB, of which ext4_inode_cache +300 KiB (3 objects in a slab of 4 KiB in place of 7 in 8 KiB), filp +20 KiB"
    )
    few = record("slab", 1080, cache("ext4_inode_cache", 100, 480, 3, 2), cache("filp", 50, 60))
    assert "ext4_inode_cache +320 KiB (3 objects per slab in place of 7)" in text(slub, few)


def test_differences_below_one_percent_are_none() -> None:
    assert text(record("slub", 1000), record("slab", 1005)) == "as much memory"
    assert text(record("slub", 1000), record("slab", 990)).startswith("\u22121%, \u221240 KiB")


def test_caches_that_one_of_them_merges_are_one() -> None:
    slub = record("slub", 100, cache("filp", 0, 100), cache("pid", None, None, merged_into="filp"))
    slab = record("slab", 150, cache("filp", 0, 60), cache("pid", 0, 90))
    (one,) = reasons.reasons(section(slub, slab))
    assert [(each.name, each.pages) for each in one.caches] == [("filp", 50)]


@pytest.mark.parametrize(
    ("name", "group"),
    [
        ("kmalloc-cg-512", "kmalloc 257\u2013512"), ("kmem_alloc_512", "kmalloc 257\u2013512"), ("kmem_alloc_320", "kmalloc 257\u2013512"),
        ("kmalloc-rcl-512", "kmalloc 257\u2013512"), ("dma-kmalloc-512", "kmalloc 257\u2013512"), ("kmalloc-4k", "kmalloc 2049\u20134096"),
        ("kmalloc-rnd-03-96", "kmalloc 65\u2013128"), ("kmalloc-8", "kmalloc 1\u20138"), ("size-64(DMA)", "kmalloc 33\u201364"),
        ("kmalloc (pages)", "large kmallocs"), ("kmalloc", "kmalloc"), ("bio-184", "bio-184"), ("dentry", "dentry"),
    ],
)  # fmt: skip
def test_size_classes_are_matched_by_size(name: str, group: str) -> None:
    assert reasons.class_group(name) == group


def test_an_allocator_whose_caches_share_pages_says_so() -> None:
    slob = record("slob", 900, {"name": "filp", "pages": None, "pages_start": None, "pages_peak": None, "merged_into": None})
    assert text(record("slub", 1000, cache("filp", 0, 1000)), slob) == "\u221210%, \u2212400 KiB: objects of all caches share its pages"


def cost(instructions: float, **parts: float) -> dict[str, Any]:
    return {"instructions": instructions, "parts": {name: {"instructions": part} for name, part in parts.items()}}


def test_cost_is_told_with_the_part_that_makes_it() -> None:
    slub = record("slub", 1000, cost=cost(100, fast=60, slow=20, pages=10, locks=10))
    slow = record("slob", 1000, cost=cost(130, fast=60, slow=50, pages=10, locks=10))
    assert text(slub, slow) == "as much memory; 30% more instructions, all in the slow path"
    mostly = record("slab", 1000, cost=cost(80, fast=48, slow=12, pages=10, locks=10))
    assert text(slub, mostly) == "as much memory; 20% fewer instructions, mostly in the fast path"
    twice = record("slab", 1000, cost=cost(250, fast=110, slow=70, pages=60, locks=10))
    assert text(slub, twice) == "as much memory; 2.5 times the instructions"


def times(median: float, low: float, high: float) -> dict[str, Any]:
    return {"timed": {"ns_per_operation": median, "intervals": {"ns_per_operation": [low, high]}, "runs": 6}}


def test_without_counts_time_is_told_where_intervals_lie_apart() -> None:
    slub = {**record("slub", 1000), **times(50, 45, 55)}
    assert text(slub, {**record("slob", 1000), **times(150, 140, 160)}) == "as much memory; 3.0 times the time an operation"
    assert text(slub, {**record("slab", 1000), **times(52, 50, 60)}) == "as much memory"


def test_the_base_is_the_recorded_kernels_allocator() -> None:
    real = record("recorded", 500, run={"own_allocator": "slab", "kernel": "6.1.0"})
    found = reasons.base_of(section(record("slub", 5), record("slab", 6), real))
    assert found and found.label == "slab"
    found = reasons.base_of(section(record("bonwick", 5), record("slab", 6)))
    assert found and found.label == "bonwick"


def test_few_are_told_under_a_table_and_all_in_json() -> None:
    members = [record("slub", 1000), *(record(f"a{place}", 1000 + 100 * place) for place in range(1, 9))]
    sections = workloads(members)
    lines = reasons.told(sections[0])
    assert lines[0] == "Against slub, which grows by 4,000 KiB:"
    assert [line.split(":")[0] for line in lines[1:]] == ["- a1", "- a2", "- a3", "- a8"]
    reasons.attach(sections, {"w0": ["Do this."]})
    assert members[1]["verdict"] == {
        "against": "slub", "pages": 100, "share": 0.1, "caches": [], "cost": None, "text": "+10%, +400 KiB", "advice": ["Do this."],
    }  # fmt: skip
    assert members[0]["verdict"] == {"against": None, "text": "", "advice": ["Do this."]}


def test_ranks_that_hang_on_the_start_are_known_as_such() -> None:
    def both(name: str, here: int, there: int) -> dict[str, Any]:
        return record(name, here, exact={"other_start": {"start": "empty", "grew_pages_peak": there}})

    turned = section(both("slub", 100, 300), both("slab", 200, 100), both("slob", 300, 400))
    assert ranks.other_start(turned) == ("With --start empty the ranks by growth differ: slub is 2nd, not 1st, slab is 1st, not 2nd.")
    assert ranks.other_start(section(both("slub", 100, 300), both("slab", 200, 400))) == ""
    assert ranks.other_start(section(record("slub", 100), record("slab", 200))) == ""


# ---- What to do --------------------------------------------------------------------------------------------------


def recorded(kernel: str, *settings: tuple[str, int], own: str | None = "slub") -> dict[str, Any]:
    tried = [{"allocator": spec, "grew_pages_peak": grew, "held_pages_peak": 1000 + grew} for spec, grew in settings]
    return record("recorded", 900, run={"kernel": kernel, "own_allocator": own}, exact={"settings": tried})


def test_settings_that_save_memory_are_told_in_the_words_of_that_kernel() -> None:
    slub = record("slub", 1000, exact={"shrink_pages": 256})
    tried = (("slub:max_order=0", 900), ("slub:cpu_partial=0,min_partial=0", 995))
    assert advice.lines(section(slub, recorded("6.18.4-test", *tried))) == [
        "Boot with slab_max_order=0: grows 10% less (400 KiB).",
        "Write 1 to shrink of every cache in /sys/kernel/slab when the workload is over: gives back 1,024 KiB.",
    ]
    assert advice.lines(section(slub, recorded("6.1.0", *tried)))[0].startswith("Boot with slub_max_order=0")
    assert advice.lines(section(slub, recorded("", *tried))) == []
    roomy = recorded("6.18.4-test", ("slub:max_order=0", 50))
    roomy["exact"]["settings"][0]["held_pages_peak"] = 2001
    assert "max_order" not in "".join(advice.lines(section(slub, roomy))), "it starts with more, and holds more at the peak"
    assert advice.settings({"own_allocator": "slab"}) == []


@pytest.mark.parametrize(
    ("kernel", "best", "said"),
    [
        ("6.18.4", "slob", "slob, which grows least, is not in Linux 6.18: it left in 6.4; CONFIG_SLUB_TINY is what came in its place."),
        ("6.1.0", "slab", "Build Linux 6.1 with CONFIG_SLAB=y to have slab, which grows least."),
        ("6.18.4", "bonwick", "bonwick, which grows least, was never in Linux; slabyard kernel builds Linux 6.1 on it."),
    ],
)
def test_whether_the_kernel_has_the_allocator_that_grows_least(kernel: str, best: str, said: str) -> None:
    assert advice.lines(section(record("slub", 1000), record(best, 500), recorded(kernel))) == [said]
