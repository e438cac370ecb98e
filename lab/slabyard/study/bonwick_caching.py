"""Object caching: the table of section 2, and the second table of section 5.1.

Six kinds of objects (pairs/kinds.c) are made and taken apart, one at a time, beside others that stay. Without caching an object is
constructed after each allocation and destroyed before each free; with it the cache keeps objects in constructed state. The paper's own
figures say what they are of: the stream head of section 5.1 takes 29.3 us without caching, which is the 23.6 of construction and
destruction in section 2, the 3.8 of the *new* allocator's memory, and 1.9 for the rest. So `without` and `with` are of one allocator here
too. The old allocator of section 2 is SVr4's, which was in all SunOS 5 before. Its 9.4 and the new one's 3.8 are those of the first table
of section 5.1, so they are measured in the same way as these (bonwick_speed.py), and once more in rounds that fill memory and drain it.
"""

from __future__ import annotations

from typing import Any

from ..base.table import show
from ..replay import cost
from ..results import records
from . import pairs
from .charts import bars
from .model import VALGRIND, Claim, Data, Figure, Item, Outcome, Picture, Sheet, repeated
from .work import Work

SLAB, OLD = "bonwick", "svr4"
OTHERS = ("slab", "slub", "yard")
STAY = 73  # a slab of none of these kinds is full with so many, or with one more: else the pair would be alone in its slab
CACHED = "--cached"

# Section 5.1: microseconds without and with caching, and how much less that is as printed.
PAPERS = {
    "allocb": (8.3, 6.0, 1.4), "dupb": (13.4, 8.7, 1.5), "shalloc": (29.3, 5.7, 5.1),
    "allocq": (40.0, 10.9, 3.7), "anonmap_alloc": (16.3, 10.1, 1.6), "makepipe": (126.0, 98.0, 1.3),
}  # fmt: skip
LEAST, MOST = 1.3, 5.1
PIPE_OBJECTS = 4  # of pairs/kinds.c
LOCKED = ("shalloc", "allocq")  # those with most locks and condition variables

# Section 2: microseconds of construction and destruction, of memory, and of other initialisation.
STREAM_HEAD = {"old": (23.6, 9.4, 1.9), "new": (0.0, 3.8, 1.9)}
OWNERS = ("construction", "memory", "other")
WORDS = {"construction": "construction + destruction", "memory": "memory allocation", "other": "other init."}


def _counted(work: Work, spec: str, kind: str, *words: str) -> dict[str, Any]:
    """Beside others that stay."""
    name = f"{kind} under {spec}{', cached' if words else ''}"
    return work.once(name, lambda: pairs.counted(spec, 1, "--beside", str(STAY), "--kind", kind, *words))


def _filled(work: Work, spec: str, kind: str, *words: str) -> dict[str, Any]:
    name = f"{kind} under {spec}{', cached' if words else ''}, filling and draining"
    return work.once(name, lambda: pairs.counted(spec, STAY, "--kind", kind, *words))


# ---- Section 2 -----------------------------------------------------------------------------------------------------


def measure_stream_head(work: Work) -> Data:
    others = () if work.quick else OTHERS
    return {
        "old": _counted(work, OLD, "shalloc"),
        "new": _counted(work, SLAB, "shalloc", CACHED),
        "others": {one: [_counted(work, one, "shalloc"), _counted(work, one, "shalloc", CACHED)] for one in others},
        "filled": {
            "old": _filled(work, OLD, "shalloc"),
            "new": _filled(work, SLAB, "shalloc", CACHED),
            **{one: _filled(work, one, "shalloc", CACHED) for one in others},
        },
    }


def judge_stream_head(data: Data) -> Outcome:
    scale = sum(STREAM_HEAD["old"]) / pairs.total(data["old"])
    rows = [
        (f"{which}: {WORDS[owner]}", Figure(f"{paper:.1f}", scale * data[which][owner]))
        for which in ("old", "new") for owner, paper in zip(OWNERS, STREAM_HEAD[which], strict=True)
    ]  # fmt: skip
    for name, counts in data["others"].items():
        for which, found in zip(("constructed each time", "cached"), counts, strict=True):
            rows += [(f"{name}, {which}: {WORDS[owner]}", Figure(None, scale * found[owner])) for owner in OWNERS]
    old, new = data["old"], data["new"]
    filled = data["filled"]
    share = old["construction"] / pairs.total(old)
    most = _by_caching(old, new) > 0.5
    told = (
        f"caching gives {100 * _by_caching(old, new):.0f}% of the saving (paper: 81%). Where memory is filled and drained it gives "
        f"{100 * _by_caching(filled['old'], filled['new']):.0f}%, since there the old allocator takes {show(filled['old']['memory'])} "
        f"instructions for memory, not {show(old['memory'])}"
    )
    dearer = "Constructing an object can cost significantly more than allocating memory for it (the stream head of the old allocator)"
    figures = f"{show(old['construction'])} instructions for {show(old['memory'])}: {show(100 * share)}% of all"
    claims = [
        _headline(old, new),
        Claim("Most of the savings is due to object caching (more than half)", most, told),
        Claim(dearer, old["construction"] > old["memory"], figures),
        Claim("A cached object is not constructed again", new["construction"] == 0, _again(filled)),
    ]
    note = (
        f"Instructions, scaled so that the old allocator's sum is the paper's {show(sum(STREAM_HEAD['old']))} us: the old takes "
        f"{show(pairs.total(old))} instructions, the new {show(pairs.total(new))}."
    )
    sheets = [
        Sheet("Stream head: allocation and free", "scaled instructions", rows, "us", [note]),
        Sheet(f"The same, filling and draining {STAY}", "instructions", [
            (f"{name}: {WORDS[owner]}", Figure(None, counts[owner])) for name, counts in filled.items() for owner in OWNERS
        ]),
    ]  # fmt: skip
    return Outcome(sheets, claims, stands_for=STANDS_FOR)


HEADLINE = (33.0, 5.7)  # us, of the text of section 2


def _headline(old: dict[str, Any], new: dict[str, Any]) -> Claim:
    """Of the text: its 33 leave out what its table calls other, 1.9; its 5.7 have it."""
    without, with_ = pairs.total(old) - old["other"], pairs.total(new)
    text = f"The cost falls from 33 to 5.7 us, to {show(HEADLINE[1] / HEADLINE[0])} (here: at most to a quarter)"
    told = (
        f"to {show(with_ / without)}. The text's 33 are the table's 23.6 and 9.4 without the other 1.9, which its 5.7 have; with them "
        f"{show(sum(STREAM_HEAD['new']) / sum(STREAM_HEAD['old']))} in the paper, {show(with_ / pairs.total(old))} here"
    )
    return Claim(text, with_ <= without / 4, told)


def _by_caching(old: dict[str, Any], new: dict[str, Any]) -> float:
    """The share that construction and destruction have of what is saved."""
    return float((old["construction"] - new["construction"]) / (pairs.total(old) - pairs.total(new)))


def _again(filled: dict[str, dict[str, Any]]) -> str:
    """Who constructs cached objects again where memory is filled and drained."""
    again = {name: counts["construction"] for name, counts in filled.items() if name != "old" and counts["construction"]}
    told = [f"{name} takes {show(instructions)} instructions a pair for it" for name, instructions in again.items()]
    if not told:
        return "nor where memory is filled and drained"
    return f"where memory is filled and drained, {' and '.join(told)}: slabs that empty are given back, and constructed again later"


STANDS_FOR = (
    f"Objects written after what such an object is for (pairs/kinds.c), one at a time beside {STAY} that stay. Their locks and condition "
    "variables are the C library's. His table alone tells what his kernel's locks cost beside memory; the ratios depend on it."
)


# ---- Section 5.1 ---------------------------------------------------------------------------------------------------


def measure_kinds(work: Work) -> Data:
    specs = (SLAB,) if work.quick else (SLAB, *OTHERS)
    return {
        "counts": {
            spec: {kind: {"without": _counted(work, spec, kind), "with": _counted(work, spec, kind, CACHED)} for kind in PAPERS}
            for spec in specs
        },
        "times": work.once("times", lambda: _times(work)),
    }  # fmt: skip


def _times(work: Work) -> dict[str, dict[str, list[float]]]:
    """Nanoseconds under the paper's allocator."""
    wanted = {f"{kind} {which}": (kind, words) for kind in PAPERS for which, words in (("without", ()), ("with", (CACHED,)))}

    def run(name: str, _turn: int) -> float:
        kind, words = wanted[name]
        return pairs.timed(SLAB, 1, ("--beside", str(STAY), "--kind", kind, *words))["ns"]

    samples = records.interleaved(wanted, work.repetitions, 0, "times", work.progress, run)
    return {kind: {which: samples[f"{kind} {which}"] for which in ("without", "with")} for kind in PAPERS}


def gain(counts: dict[str, dict[str, Any]]) -> float:
    return pairs.total(counts["without"]) / pairs.total(counts["with"])


def judge_kinds(data: Data) -> Outcome:
    gains = {spec: {kind: gain(counts) for kind, counts in kinds.items()} for spec, kinds in data["counts"].items()}
    ours = gains[SLAB]
    sheets = [Sheet("Improvement by object caching, instructions counted", "times", [
        (kind, Figure(PAPERS[kind][2], each)) for kind, each in ours.items()
    ])]  # fmt: skip
    sheets += [
        Sheet(f"The same under {spec}", "times", [(kind, Figure(None, each)) for kind, each in kinds.items()])
        for spec, kinds in gains.items() if spec != SLAB
    ]  # fmt: skip
    sheets.append(Sheet("Improvement by object caching, time", "times", [
        (kind, repeated(PAPERS[kind][2], [one / other for one, other in zip(times["without"], times["with"], strict=True)]))
        for kind, times in data["times"].items()
    ]))  # fmt: skip
    for which, place in (("without", 0), ("with", 1)):
        rows = [(kind, Figure(f"{PAPERS[kind][place]:.1f}", pairs.total(counts[which]))) for kind, counts in data["counts"][SLAB].items()]
        sheets.append(Sheet(f"Allocation and free {which} caching, instructions counted", "instructions", rows, "us"))
    best = sorted(ours, key=lambda kind: -ours[kind])
    told = ", ".join(f"{kind} {show(ours[kind])}" for kind in best)
    claims = [
        Claim("Caching makes each of the six cheaper", min(ours.values()) > 1, told),
        Claim(f"By {LEAST} to {MOST} times (the least gain at least {LEAST}, the greatest at least {MOST}, to one decimal)",
              round(min(ours.values()), 1) >= LEAST and round(max(ours.values()), 1) >= MOST, _why(data["counts"][SLAB], gains)),
        Claim("Objects with locks and condition variables gain most: stream heads, then queues", tuple(best[:2]) == LOCKED, told),
        Claim("Pipes gain least", best[-1] == "makepipe", f"{told}. {_why_pipe(data['counts'][SLAB])}"),
    ]  # fmt: skip
    groups = list(PAPERS)
    series = [(spec, [Figure(PAPERS[kind][2] if spec == SLAB else None, kinds[kind]) for kind in groups]) for spec, kinds in gains.items()]
    pictures = [Picture("Improvement by object caching, instructions counted", bars(groups, series, "times"))]
    return Outcome(sheets, claims, pictures, STANDS_FOR)


def _construction(counts: dict[str, dict[str, Any]]) -> float:
    """Construction and destruction for each instruction that stays with caching."""
    return float(counts["without"]["construction"]) / pairs.total(counts["with"])


def _why(counts: dict[str, dict[str, Any]], gains: dict[str, dict[str, float]]) -> str:
    """How dear construction is beside what stays, here and in the paper, for the kinds that gain least and most; and what would make
    it more: a lock inside of the object, or memory that costs less."""
    told, ours = [], gains[SLAB]
    for which, kind in (("least", min(ours, key=lambda kind: ours[kind])), ("most", max(ours, key=lambda kind: ours[kind]))):
        without, with_, _ = PAPERS[kind]
        told.append(
            f"{kind} gains {which}, {show(ours[kind])}: construction takes {show(_construction(counts[kind]))} of what remains with "
            f"caching (paper: {show(without / with_ - 1)})"
        )
    lock = counts["anonmap_alloc"]["without"]["construction"]
    for kind in (kind for kind in ours if round(ours[kind], 1) < LEAST):
        more = (pairs.total(counts[kind]["without"]) + lock) / pairs.total(counts[kind]["with"])
        told.append(f"with a lock and a condition variable, as an anonmap has ({show(lock)} instructions), {kind} would gain {show(more)}")
    for spec in (spec for spec in gains if spec != SLAB):
        most = max(gains[spec], key=lambda kind: gains[spec][kind])
        told.append(f"under {spec} {most} gains {show(gains[spec][most])}")
    return "; ".join(told)


def _why_pipe(counts: dict[str, dict[str, Any]]) -> str:
    pipe = counts["makepipe"]
    stays, memory, saved = pairs.total(pipe["with"]), pipe["with"]["memory"], pairs.total(pipe["without"]) - pairs.total(pipe["with"])
    without, with_, _ = PAPERS["makepipe"]
    return (
        f"Of a pipe {show(saved)} instructions are saved and {show(stays)} remain; in the paper {show(without - with_)} us and "
        f"{show(with_)}. What remains is {show(with_ / STREAM_HEAD['new'][1])} times the cost of one allocation in the paper, "
        f"{show(stays / (memory / PIPE_OBJECTS))} times here"
    )


HEAD = Item(
    "bonwick", "stream-head", "Stream head allocation and free costs", "section 2", measure_stream_head, judge_stream_head, cost.check,
    tools=(VALGRIND,),
)  # fmt: skip
KINDS = Item(
    "bonwick", "caching", "Effect of object caching", "section 5.1, second table", measure_kinds, judge_kinds, cost.check, tools=(VALGRIND,)
)
