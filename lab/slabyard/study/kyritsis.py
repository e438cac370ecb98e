"""Kyritsis, Stoltidis, Koutsoukis: SLOB with best fit against what Linux has, which they call first fit.

Their baseline is Linux's own search, which goes on at the page that served last: next fit over pages, first fit in a page. So there
are three rows here, `next` (Linux's), `first` (each search from the front) and `best`.

    small, medium, large   their three experiments (filling.py): the share of SLOB's pages that is unused, over the run
    counting               which state and way of counting gives their figures, and which of their sentences depend on it
    log                    the candidates of single searches, in the form of their listing
    kernel                 the three experiments inside kernels: Linux's SLOB, and ours with each fit

Two ways of counting. Ours: free bytes of SLOB's pages, by the bytes of these. Theirs, as the legible part of a log shows (LISTING):
a request of a page or more, which goes to the page allocator, adds its pages to the page memory and to the unused memory as well;
and nothing takes them off again, since Linux frees such pages past SLOB. Both of theirs were far from 0 when a test began.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import re
import statistics
from collections.abc import Mapping, Sequence

from ..base.errors import UserError
from ..kernels import build, tools, workloads
from ..kernels import run as kernel_run
from ..kernels.machine import Hardware, Plan
from ..replay.workload import Options, Workload
from . import charts, filling
from .charts import Line
from .filling import MARKS, PAGE, STARTS
from .model import Claim, Data, Figure, Item, Outcome, Picture, Sheet, repeated
from .work import REPETITIONS, Work

CALLS = 20_000  # allocations of a run
MOST = {"small": 256, "medium": 4096, "large": 16384}  # bytes
FITS = ("next", "first", "best")
OTHERS = ("slub", "slab", "slqb", "yard")
CURVE = 60  # points of a curve in a record

# Results: page memory, unused memory and their ratio in the last legible lines of the small test's two logs.
THEIRS = {"next": (703_225_856, 563_655_869, 0.801529), "best": (373_526_528, 271_730_837, 0.727474)}
# Results: lines of a log with best fit in which both numbers are legible, in their order.
LISTING = (
    (374243328, 272437704), (374247424, 272439980), (374255616, 272448172), (374263808, 272456364), (374272000, 272464556),
    (374280192, 272472748), (374296576, 272489132), (374300672, 272489823), (374317056, 272503183), (374435840, 272587114),
)  # fmt: skip
# What the text says of the ratio, by test and fit: at the start and at the end.
RATIOS = {
    ("small", "next"): (80.0, 80.1529), ("small", "best"): (72.0, 72.7474), ("medium", "next"): (80.0, 80.0),
    ("medium", "best"): (72.0, 74.0), ("large", "next"): (80.0, 80.0),
}  # fmt: skip
SAME = 1.0  # points: ratios that differ by less "remain the same"


def spec(fit: str) -> str:
    return f"slob:fit={fit}"


# ---- Runs --------------------------------------------------------------------------------------------------------


def run(most: int, start: str, seed: int, fits: Sequence[str] = FITS, details: bool = False) -> Data:
    """A run under each fit: at filling.MARKS slab pages and bytes of them unused. `details`: the curves, and other allocators."""
    wanted = filling.sizes(most, CALLS, seed)
    found: Data = {"large": sum(map(filling.pages_of, wanted)), "fits": {}, "curves": {}, "taken": {}}
    with filling.filled(wanted, start) as calls:
        for name in (*map(spec, fits), *(OTHERS if details else ())):
            exact = calls.exact(name)
            marks = {one["name"]: one for one in exact["snapshots"]}
            fit = name.partition("fit=")[2]
            if fit:
                found["fits"][fit] = {mark: [marks[mark]["slab_pages"], marks[mark]["unused"]] for mark in MARKS}
            if fit and details:
                found["curves"][fit] = _curve(calls, exact["series"])
            if details:
                found["taken"][name] = _taken(marks["begin"], marks["filled"])
    return found


def _taken(begin: dict[str, int], filled: dict[str, int]) -> list[int]:
    """Pages that an allocator took for the objects, and the bytes that these asked for."""
    pages = sum(filled[name] - begin[name] for name in ("slab_pages", "large_pages"))
    return [pages, filled["requested_bytes"] - begin["requested_bytes"]]


def _curve(calls: filling.Filled, series: dict[str, list[int]]) -> list[list[int]]:
    """Calls so far, slab pages, bytes of these unused."""
    whole = zip(series["time"], series["slab_pages"], series["unused"], strict=True)
    return charts.thinned([[calls.call(time), pages, unused] for time, pages, unused in whole if time >= calls.begin], CURVE)


def _measure(name: str, work: Work) -> Data:
    def part(start: str, seed: int) -> Data:
        return work.once(f"{start}, seed {seed}", lambda: run(MOST[name], start, seed, details=seed == 1))

    return {start: [part(start, seed) for seed in range(1, 2 if work.quick else work.repetitions + 1)] for start in STARTS}


def ratio(at: Sequence[float]) -> float:
    """% of SLOB's pages that is unused; 0 where there are none."""
    return 100 * at[1] / (at[0] * PAGE) if at[0] else 0.0


def theirs(one: Data, fit: str, mark: str, state: Sequence[float], known: str = "begin") -> float:
    """% unused as they count, at a mark of a run whose page memory and unused memory are theirs (`state`) at the mark `known`."""
    return 100 * _counters(one, fit, mark, state, known)[1] / _counters(one, fit, mark, state, known)[0]


def _counters(one: Data, fit: str, mark: str, state: Sequence[float], known: str) -> tuple[float, float]:
    """Their page memory and unused memory."""
    there, at = one["fits"][fit][known], one["fits"][fit][mark]
    large = PAGE * one["large"] * ((mark != "begin") - (known != "begin"))
    return state[0] + (at[0] - there[0]) * PAGE + large, state[1] + at[1] - there[1] + large


def _of(runs: Sequence[Data], fit: str, mark: str) -> list[float]:
    return [ratio(one["fits"][fit][mark]) for one in runs]


# ---- The three experiments ---------------------------------------------------------------------------------------

_STANDS_FOR = (
    "Their system calls, in a kernel that had run for some time, are here the same calls in a replay: from empty memory, and from a "
    "recorded kernel's state after the recording (booted: find over /usr/include). By their own counting they had 374 to 703 MB of page "
    "memory when a test began; ours has what the recorded kernel's objects take."
)
_SEEDS = " Their random numbers are not known: five seeds of ours, the same for all fits (--quick: one)."
_STATES = {"empty": "empty memory", "booted": "a booted state"}
_WHEN = {"begin": "before", "filled": f"{CALLS:,} allocated", "end": "all freed"}


def _judge(name: str, data: Data) -> Outcome:
    sheets = [_moments(name, data), _as_they_count(name, data), _nobodys(data)]
    return Outcome(sheets, _claims(name, data), _pictures(data), stands_for=_STANDS_FOR + _SEEDS)


def _moments(name: str, data: Data) -> Sheet:
    rows = []
    for start, fit, mark in itertools.product(STARTS, FITS, MARKS):
        if start == "booted" or mark == "filled":
            paper = _of_paper(name, fit, mark) if start == "booted" else None
            rows.append((f"{start}, fit={fit}, {_WHEN[mark]}", repeated(paper, _of(data[start], fit, mark))))
    notes = [
        "fit=next is Linux's own, which the paper calls first fit.",
        "Free bytes of SLOB's pages; requests of a page or more are none of it.",
    ]
    return Sheet("unused memory", "% of the pages", rows, notes=notes)


def _of_paper(name: str, fit: str, mark: str) -> float | None:
    return None if mark == "filled" or (name, fit) not in RATIOS else RATIOS[name, fit][mark == "end"]


def _known(name: str) -> str:
    """The mark at which their counters are known: the legible ends of logs are of the small test, and the others came after it."""
    return "end" if name == "small" else "begin"


def _as_they_count(name: str, data: Data) -> Sheet:
    """What follows from our calls at the other marks; at the one that is known, their figure alone."""
    rows, known = [], _known(name)
    for fit, mark in itertools.product(THEIRS, MARKS):
        samples = [] if mark == known else [theirs(one, fit, mark, THEIRS[fit], known) for one in data["booted"]]
        rows.append((f"fit={fit}, {_WHEN[mark]}", repeated(_of_paper(name, fit, mark), samples)))
    states = " and ".join(f"{pages:,} bytes, {unused:,} unused (fit={fit})" for fit, (pages, unused, _) in THEIRS.items())
    notes = [f"Counted from the last lines of the small test's logs: {states}.", f"Those are taken for {_WHEN[known]}.", "See: counting."]
    return Sheet("Their way of counting, from their counters", "% of the page memory", rows, notes=notes)


def _nobodys(data: Data) -> Sheet:
    rows = [(name, Figure(None, 100 * (1 - asked / (pages * PAGE)))) for name, (pages, asked) in data["empty"][0]["taken"].items()]
    notes = ["From empty memory, all allocated. Large requests are in it, rounded up."]
    return Sheet("Share of the pages taken that was not asked for", "%", rows, notes=notes)


def _pictures(data: Data) -> list[Picture]:
    found = []
    for start in STARTS:
        curves = data[start][0]["curves"]
        shares = [Line(spec(fit), [(call, ratio(at)) for call, *at in curve if at[0]]) for fit, curve in curves.items()]
        found.append(Picture(f"{start}: unused share of SLOB's pages", charts.lines(shares, "calls", "unused, % of the pages")))
    sizes = []
    for fit, curve in data["booted"][0]["curves"].items():
        sizes.append(Line(f"fit={fit}, page memory", [(call, pages * PAGE / 1e6) for call, pages, _ in curve]))
        sizes.append(Line(f"fit={fit}, unused", [(call, unused / 1e6) for call, _, unused in curve]))
    return [*found, Picture("booted: page memory and unused memory", charts.lines(sizes, "calls", "MB", from_zero=True))]


def _claims(name: str, data: Data) -> list[Claim]:
    """The sentences on a test, by our counting in the booted state."""
    booted = data["booted"]
    first = booted[0]
    way = {fit: [statistics.fmean(_of(booted, fit, mark)) for mark in MARKS] for fit in FITS}
    counted = {fit: [theirs(first, fit, mark, THEIRS[fit], _known(name)) for mark in MARKS] for fit in THEIRS}
    goes = {
        fit: f"before, filled, freed: {_way(way[fit])} of our pages; {_way(counted[fit])} as they count, from their counters"
        for fit in THEIRS
    }  # fmt: skip
    began, most = (first["fits"]["next"][mark][0] for mark in MARKS[:2])
    moves = (most - began + first["large"]) * PAGE
    of_ours, of_theirs = (100 * moves / whole for whole in (began * PAGE, THEIRS["next"][0]))
    share = f"the calls take {moves / 1e6:.1f} MB at most, {of_ours:.0f}% of our pages and {of_theirs:.1f}% of theirs"
    text = "under first fit the ratio stays at about 80% (here: of our pages it moves by less than a point)"
    steady = Claim(text, _swing(first, "next") < SAME, f"{goes['next']}; {share}")
    lower = [way["best"][at] - way["next"][at] for at in (1, 2)]
    filled, freed = (f"{round(points, 1) + 0.0:+.1f} points" for points in lower)  # no -0.0
    less = f"best less next: {filled} when all are allocated, {freed} when all are freed; best fit during the frees: "
    less += ", ".join(f"from {_STATES[start]} {_turning(data[start][0]['curves'])}" for start in STARTS)
    if name == "small":
        return [
            Claim("best fit leaves less unused than first fit", lower[0] < 0 and lower[1] < SAME, less),
            _by_eight(first),
            steady,
            Claim("under best fit the ratio is stable", _swing(first, "best") < SAME, goes["best"]),
        ]
    if name == "medium":
        return [
            steady,
            _pace(first),
            Claim("under best fit it climbs from 72 to 74%", way["best"][2] - way["best"][0] >= SAME, goes["best"]),
        ]
    return [
        steady,
        _pace(first),
        Claim("under best fit the ratio increases as the system runs", way["best"][2] - way["best"][0] >= SAME, goes["best"]),
        Claim("best fit performs worse than first fit", lower[0] > 0, less),
    ]


def _by_eight(one: Data) -> Claim:
    """The difference that the paper's two ratios have, as it counts them, between fits that begin in one state."""
    paper = RATIOS["small", "next"][1] - RATIOS["small", "best"][1]
    ours = {state: theirs(one, "next", "end", THEIRS[state]) - theirs(one, "best", "end", THEIRS[state]) for state in THEIRS}
    text = f"it does so by 8 points, 72% for 80%, in their way of counting (here: from one state, by {paper / 2:.0f} at least)"
    told = ", ".join(f"{points:+.2f} points from the state of fit={state}" for state, points in ours.items())
    return Claim(text, min(ours.values()) >= paper / 2, f"{told}: their two tests began in two states")


def _pace(one: Data) -> Claim:
    """Of first fit, from before the calls until all is freed, as they count."""
    began, ended = (_counters(one, "next", mark, THEIRS["next"], "begin") for mark in ("begin", "end"))
    grew = [after - before for before, after in zip(began, ended, strict=True)]
    moved = 100 * (ended[1] / ended[0] - began[1] / began[0])
    pages, unused = ((one["fits"]["next"]["end"][at] - one["fits"]["next"]["begin"][at]) for at in (0, 1))
    told = (
        f"as they count the page memory grows by {grew[0] / 1e6:.2f} MB and the unused memory by {grew[1] / 1e6:.2f}, and the ratio moves "
        f"by {moved:+.2f} points; requests of a page or more are {one['large'] * PAGE / 1e6:.2f} MB of either. SLOB's own pages change by "
        f"{pages * PAGE / 1e6:+.2f} MB, what is free in them by {unused / 1e6:+.2f}"
    )
    text = "under first fit page memory and unused memory both increase, at the same pace (the ratio moves by less than a point)"
    return Claim(text, min(grew) > 0 and abs(moved) < SAME, told)


def _turning(curves: Mapping[str, Sequence[Sequence[int]]]) -> str:
    """Where, while objects are freed, best fit leaves most more unused than next fit, and since when."""
    both = zip(curves["best"], curves["next"], strict=True)
    gaps = [(best[0], ratio(best[1:]) - ratio(after[1:])) for best, after in both if best[0] > CALLS and best[1] and after[1]]
    calls, most = max(gaps, key=lambda gap: gap[1], default=(0, 0.0))
    if most < SAME:
        return "it is never behind by a point"
    since = next(call for call, gap in gaps if gap > 0)
    if since == calls:
        return f"it is ahead until call {since:,}, where it is behind by {most:.1f} points"
    return f"it is ahead until call {since:,}, and behind by {most:.1f} points at call {calls:,}"


def _swing(one: Data, fit: str) -> float:
    """By how many points the ratio differs over a run."""
    shares = [ratio(at) for _, *at in one["curves"][fit]]
    return max(shares) - min(shares)


def _way(shares: Sequence[float]) -> str:
    return ", ".join(f"{share:.1f}" for share in shares) + "%"


# ---- Which counting, which state ---------------------------------------------------------------------------------

SIZES = (256, 1024, 2048, 4096, 4608, 5120, 6144, 8192, 12288, 16384)
QUICK_SIZES = (256, 4096, 5120, 16384)


def _measure_counting(work: Work) -> Data:
    def part(most: int) -> Data:
        return work.once(f"up to {most}", lambda: run(most, "booted", 1, tuple(THEIRS)))

    sizes = QUICK_SIZES if work.quick else SIZES
    return {"sizes": {str(most): part(most) for most in sizes}, "recording": work.once("the recording", _recorded)}


def _recorded() -> Data:
    """Of the recording alone: its requests of a page or more, in pages, SLOB's state at its end, and how long it is."""
    with Workload(filling.RECORDING, Options(start="recorded")) as workload:
        exact = workload.exact(spec("next"))
        large = 0
        for batch in workload.trace.batches(["kind", "size"]):
            asked = zip(batch["kind"].to_pylist(), batch["size"].to_pylist(), strict=True)
            large += sum(filling.pages_of(size) for kind, size in asked if kind == "kmalloc")
        seconds = workload.metadata.span_seconds
    pages = exact["slab_pages_end"]
    return {"slab_pages": pages, "unused": round(exact["unused_ratio_end"] * pages * PAGE), "large": large, "seconds": seconds}


def _judge_counting(data: Data) -> Outcome:
    runs: dict[int, Data] = {int(most): one for most, one in data["sizes"].items()}
    gains = {most: _of([one], "best", "filled")[0] - _of([one], "next", "filled")[0] for most, one in runs.items()}
    ends = {
        most: {(fit, state): theirs(one, fit, "end", THEIRS[state]) for fit in THEIRS for state in THEIRS} for most, one in runs.items()
    }
    by_sizes = [(f"up to {most:,} bytes: best less next", Figure(None, gain)) for most, gain in gains.items()]
    crossed = [
        (f"up to {most:,} bytes, fit={fit}, from the state of fit={state}", Figure(None, share))
        for most, found in ends.items() for (fit, state), share in found.items()
    ]  # fmt: skip
    lines = [
        Line(f"fit={fit}, from the state of {state}", [(most, found[fit, state]) for most, found in ends.items()])
        for fit in THEIRS for state in THEIRS
    ]  # fmt: skip
    pictures = [
        Picture("as they count: the ratio when all are freed", charts.lines(lines, "greatest size, bytes", "unused, % of the page memory")),
        Picture(
            "as we count: best fit less next fit, when all are allocated",
            charts.lines(
                [Line("best less next", list(gains.items()))], "greatest size, bytes", "points of the unused share", from_zero=True
            ),
        ),
    ]
    sheets = [
        _listing(), Sheet("unused share of SLOB's pages when all are allocated", "points", by_sizes),
        Sheet("as they count, when all are freed", "%", crossed), _uptime(data["recording"]),
    ]  # fmt: skip
    return Outcome(sheets, _claims_of_counting(runs, gains, ends), pictures, stands_for=_STANDS_FOR)


def _claims_of_counting(runs: dict[int, Data], gains: dict[int, float], ends: dict[int, dict[tuple[str, str], float]]) -> list[Claim]:
    within = [found for most, found in ends.items() if most <= PAGE]
    by_fit = max(abs(found["best", state] - found["next", state]) for found in within for state in THEIRS)
    by_state = min(abs(found[fit, "next"] - found[fit, "best"]) for found in within for fit in THEIRS)
    began = 100 * THEIRS["best"][1] / THEIRS["best"][0]
    climbing = [most for most, found in ends.items() if found["best", "best"] - began >= SAME]
    climbs = f"from sizes up to {min(climbing):,} on" if climbing else "at none of these sizes"
    medium = RATIOS["medium", "best"][1]
    near = min(ends, key=lambda size: abs(ends[size]["best", "best"] - medium))
    least, most = min(runs), max(runs)
    held = {size: 100 * (_filled(runs[size], "best") / _filled(runs[size], "next") - 1) for size in (least, most)}
    grew = {fit: runs[most]["fits"][fit]["filled"][1] - runs[most]["fits"][fit]["begin"][1] for fit in THEIRS}
    large = runs[most]["large"] * PAGE
    better = ", ".join(f"{size:,}" for size, gain in gains.items() if gain < 0)
    return [
        Claim(
            "the different starting positions are due to the different state of the system",
            by_fit < by_state,
            f"as they count, with sizes up to a page, the fit moves the ratio by {by_fit:.2f} points at most, the state that a run begins "
            f"in by {by_state:.2f} at least: 80 for 72% is two states, not two fits",
        ),
        Claim(
            "best fit improves on first fit for small allocations, but performs worse for bigger ones",
            gains[least] < 0 < gains[most],
            f"in SLOB's pages best fit leaves less unused with sizes up to {better or 'none of these'}, and holds {held[least]:+.1f}% "
            f"pages at {least:,} and {held[most]:+.1f}% at {most:,}. As they count the ratio rises under either fit, by a point and more "
            f"{climbs}, since each request of a page or more adds its pages to the unused memory for good; the "
            f"{medium:.0f}% of their medium test come out with sizes up to {near:,} ({ends[near]['best', 'best']:.1f}%)",
        ),
        Claim(
            "with large sizes the room left on pages accumulates and leaves huge chunks unused",
            grew["best"] > large,
            f"the unused memory of SLOB's pages changes by {grew['best'] / 1e6:+.1f} MB under best fit and {grew['next'] / 1e6:+.1f} under "
            f"next; the requests of a page or more, which no fit sees, are {large / 1e6:.0f} MB, all unused as they count",
        ),
    ]


def _filled(one: Data, fit: str) -> int:
    pages: int = one["fits"][fit]["filled"][0]
    return pages


def _listing() -> Sheet:
    """What each legible line of a log adds, and what that is by their way of counting."""
    rows, whole = [], 0
    for (pages, unused), (more_pages, more_unused) in itertools.pairwise(LISTING):
        rows.append((f"page memory {pages:,} to {more_pages:,}", Figure(more_unused - unused, None)))
        whole += more_unused - unused == more_pages - pages
    notes = [
        f"{whole} of these {len(rows)} steps add as many bytes to the unused memory as to the page memory, two or four pages: so does a "
        "request of more than a page where its pages count as unused. A new page of SLOB's adds 4,096 less what is taken of it."
    ]
    return Sheet("what lines of their log add to the unused memory", "bytes", rows, notes=notes)


def _uptime(recorded: Data) -> Sheet:
    """How much must have been asked for until their counters say what they said."""
    rows = []
    for fit, (_, _, share) in THEIRS.items():
        needed = (share * recorded["slab_pages"] * PAGE - recorded["unused"]) / (1 - share)
        seconds = needed / (recorded["large"] * PAGE / recorded["seconds"])
        rows += [
            (f"MB of requests of a page or more until {100 * share:.1f}% are unused (fit={fit})", Figure(None, needed / 1e6)),
            (f"seconds of our recording's load until then (fit={fit})", Figure(None, seconds)),
        ]
    notes = [
        f"At the recording's end {ratio((recorded['slab_pages'], recorded['unused'])):.1f}% of SLOB's pages are unused; in its "
        f"{recorded['seconds']:.1f} s such requests took {recorded['large']:,} pages."
    ]
    return Sheet("How much load brings their counters to 80% and 72%", "", rows, notes=notes)


# ---- The log -----------------------------------------------------------------------------------------------------

LOGGED = 60  # candidates at most, of one search
LOG_EVERY, KEPT, SHOWN = 50, 60, 3  # searches


def _measure_log(work: Work) -> Data:
    return {"searches": work.once("the log", _log)}


def _log() -> list[Data]:
    """Searches of best fit in the booted state and over the small test, of those whose list is whole: the ones with most candidates, half
    of them of those that took a block of the exact size."""
    found: list[Data] = []
    with filling.filled(filling.sizes(MOST["small"], CALLS, 1), "booted") as calls, calls.workload.temporary_file() as path:
        calls.workload.exact(f"{spec('best')},log_every={LOG_EVERY}", path)
        for line in path.read_text().splitlines():
            name, *numbers = line.split()
            if name == "slob_request":
                found.append({"request": int(numbers[0])})
            else:
                found[-1][name.removeprefix("slob_")] = [int(number) for number in numbers]
    whole = [one for one in found if 0 < len(one["candidates"]) < LOGGED]
    exact = [one for one in whole if one["chosen"] == [one["request"]]]
    others = [one for one in whole if one["chosen"] != [one["request"]]]
    return [*_with_most(exact, KEPT // 2), *_with_most(others, KEPT // 2)]


def _with_most(searches: Sequence[Data], count: int) -> list[Data]:
    """Those with most candidates."""
    return sorted(searches, key=lambda one: -len(one["candidates"]))[:count]


def _judge_log(data: Data) -> Outcome:
    searches = data["searches"]
    tightest = [one["chosen"] == [min((size for size in one["candidates"] if size >= one["request"]), default=0)] for one in searches]
    lists = [len(one["candidates"]) for one in searches]
    exact = [one for one in searches if one["chosen"] == [one["request"]]]
    longest = max((len(one["candidates"]) for one in exact), default=0)
    ended = [one["candidates"][-1] == one["request"] for one in exact]
    shown = [*_with_most(exact, SHOWN - 1), *_with_most(searches, 1)]
    rows = [(_search(one), Figure(None, one["chosen"][0])) for one in shown]
    claims = [
        Claim(
            "the best fitting block serves",
            all(tightest),
            f"of {len(tightest)} searches with {min(lists)} to {max(lists)} candidates, {sum(tightest)} took the smallest block that is "
            "large enough; kmalloc "
            "aligns an object whose size is a power of two to that, for which the smallest may have no room",
        ),
        Claim(
            "a block of the exact size ends the search",
            all(ended) if ended else None,
            f"it does in {sum(ended)} of {len(ended)} searches of ours that took one, with up to {longest} candidates; in the paper's "
            "own listing, further candidates follow it in all four searches that met one",
        ),
    ]
    notes = ["Bytes, kmalloc's header of 8 included. Best Fit: 0 stands for a new page, as no block was large enough."]
    listing = [line for one in shown for line in _lines(one)]
    stands_for = (
        "Their kernel's log, every few thousand allocations, is here that of a replay: of every fiftieth search in a recorded kernel's "
        f"state and during the small test, {len(searches)} with most candidates, half of them such as took a block of the exact size."
    )
    return Outcome([Sheet("the block that best fit takes", "bytes", rows, notes=notes)], claims, listing=listing, stands_for=stands_for)


def _search(one: Data) -> str:
    count = len(one["candidates"])
    return f"{count} candidate{'s' if count > 1 else ''} for {one['request']} bytes"


def _lines(one: Data) -> list[str]:
    """A search in the form of their listing."""
    candidates = ["slob_alloc: Candidate block size:", *map(str, one["candidates"])]
    return [f"slob_alloc: Request: {one['request']}", *candidates, f"slob_alloc: Best Fit: {one['chosen'][0]}"]


# ---- Inside kernels ----------------------------------------------------------------------------------------------

KERNELS = ("slob", "slabyard:slob:fit=next", "slabyard:slob:fit=first", "slabyard:slob:fit=best")
QUICK_BOOTS = 2  # of each kernel, so that there are windows
GUEST = Hardware(512 << 20, 1)  # of their machine, the processors and memory are not told
_LINE = re.compile(r"slabyard\.fill: (\d+) (\d+) (\d+) (\d+)$", re.MULTILINE)


def _check_kernel() -> None:
    build.check("x86_64")
    tools.boot("x86_64")


def in_kernel(text: str, work: Work) -> dict[str, list[list[int]]]:
    """Of a kernel that makes the calls itself (ports/linux/fill.c), by greatest size: calls so far, pages, bytes unused."""
    spec = work.specs([text])[text]
    kernel = work.kernel("x86_64", spec.kind)
    asked = dataclasses.replace(spec, parameters=(*spec.parameters, "slabyard.fill=1"))
    done = kernel_run.once(Plan(asked, kernel, workloads.parse("boot"), GUEST))
    return points_of(text, done.texts.get("log", ""))


def points_of(text: str, log: str) -> dict[str, list[list[int]]]:
    """The points out of a kernel's log. UserError where they are not all there."""
    found: dict[str, list[list[int]]] = {}
    for most, *figures in _LINE.findall(log):
        found.setdefault(most, []).append([int(figure) for figure in figures])
    if "slabyard.fill: done" not in log or any(points[-1][0] != 2 * CALLS for points in found.values()) or len(found) != len(MOST):
        raise UserError(f"{text}: the kernel's log has not all of its figures")
    return found


def _measure_kernel(work: Work) -> Data:
    def boot(text: str, turn: int) -> dict[str, list[list[int]]]:
        """Of the first one the curve is kept, of the others three moments."""
        found = in_kernel(text, work)
        return found if turn == 1 else {most: _moments_of(points) for most, points in found.items()}

    turns = range(1, (QUICK_BOOTS if work.quick else work.repetitions) + 1)
    names = {text: [f"{text}, boot {turn}" for turn in turns] for text in KERNELS}
    parts = {name: functools.partial(boot, text, turn) for text in KERNELS for turn, name in zip(turns, names[text], strict=True)}
    found = work.side_by_side(parts)
    return {text: [found[name] for name in mine] for text, mine in names.items()}


def _judge_kernel(data: Data) -> Outcome:
    sheets, pictures, shares = [], [], {}
    for name, most in MOST.items():
        points: dict[str, list[list[list[int]]]] = {text: [boot[str(most)] for boot in boots] for text, boots in data.items()}
        at = {text: [_moments_of(found) for found in boots] for text, boots in points.items()}
        shares[name] = {text: [[ratio(one[place][1:]) for one in boots] for place in range(3)] for text, boots in at.items()}
        rows = [
            (f"{text}, {when}", repeated(_of_paper(name, _fit(text), mark), samples))
            for text, found in shares[name].items() for (mark, when), samples in zip(_WHEN.items(), found, strict=True)
        ]  # fmt: skip
        held = {text: [one[1][1] for one in boots] for text, boots in at.items()}
        told = ", ".join(f"{text} {_range(pages)}" for text, pages in held.items())
        sheets.append(
            Sheet(f"unused memory, sizes up to {most:,} bytes", "% of the pages", rows, notes=[f"Pages with all objects there: {told}."])
        )
        lines = [Line(text, [(calls, ratio(rest)) for calls, *rest in boots[0]]) for text, boots in points.items()]
        pictures.append(Picture(f"sizes up to {most:,} bytes, the first boot", charts.lines(lines, "calls", "unused, % of the pages")))
    turned = _turning({_fit(text): data[text][0][str(MOST["large"])] for text in (KERNELS[0], KERNELS[-1])})
    less = {name: _apart(found[KERNELS[-1]][1], found[KERNELS[0]][1]) for name, found in shares.items()}
    said = "; ".join(f"{name}: {told}" for name, (_, told) in less.items())
    claims = [
        Claim(
            "best fit leaves less unused for small allocations",
            None if less["small"][0] is None else less["small"][0] < 0,
            f"our best fit less Linux's SLOB, all allocated: {said}",
        ),
        Claim(
            "it performs worse for bigger ones",
            None if less["large"][0] is None else less["large"][0] > 0,
            f"{less['large'][1]}, all allocated; best fit during the frees: {turned}",
        ),
    ]
    off = "; ".join(f"{name}: {_apart(found[KERNELS[1]][1], found[KERNELS[0]][1])[1]}" for name, found in shares.items())
    began = ", ".join(f"{text} {_range([boot[str(MOST['small'])][0][1] for boot in boots])}" for text, boots in data.items())
    boots = len(data[KERNELS[0]])
    stands_for = (
        "Their kernel with system calls of their own is here one for x86-64 under QEMU that makes the calls itself at the end of its "
        f"start, when nothing else runs; {boots} boots of each. Their state, after a desktop has been in use, is not to be had; the "
        "replays have one that is nearer to it."
    )
    notes = [
        f"Ours with fit=next less Linux's SLOB, all allocated: {off}.",
        f"Pages before the first test: {began}.",
        "Their way of counting: kyritsis counting.",
    ]
    return Outcome(sheets, claims, pictures, stands_for=stands_for, notes=notes)


def _moments_of(found: list[list[int]]) -> list[list[int]]:
    """The points before, with all objects there, and after."""
    return [found[0], next(one for one in found if one[0] == CALLS), found[-1]]


def _range(numbers: Sequence[int]) -> str:
    return f"{min(numbers):,}" if min(numbers) == max(numbers) else f"{min(numbers):,} to {max(numbers):,}"


def _apart(ours: Sequence[float], other: Sequence[float]) -> tuple[float | None, str]:
    """By how many points the mean of a row's boots lies above another's; None where their windows overlap; in words."""
    apart = statistics.fmean(ours) - statistics.fmean(other)
    overlap = min(ours) <= max(other) and min(other) <= max(ours)
    return (None if overlap else apart), f"{apart:+.2f} points{', windows of boots overlap' if overlap else ''}"


def _fit(text: str) -> str:
    return text.partition("fit=")[2] or "next"


ITEMS: list[Item] = [
    *(
        Item(
            "kyritsis", name, f"{name.capitalize()} allocations, up to {most:,} bytes", "section Results",
            functools.partial(_measure, name), functools.partial(_judge, name), filling.check, exact=True,
        )
        for name, most in MOST.items()
    ),
    Item(
        "kyritsis", "counting", "Why 80% for 72%, and why worse for large ones", "section Conclusions",
        _measure_counting, _judge_counting, filling.check, exact=True,
    ),
    Item(
        "kyritsis", "kernel", "The three experiments inside kernels", "section Results", _measure_kernel, _judge_kernel, _check_kernel,
        kernels=[("x86_64", kind, False) for kind in ("slob", "slabyard")],
        quick=f"It boots each kernel {QUICK_BOOTS} times, not {REPETITIONS}.",
    ),
    Item("kyritsis", "log", "The candidates of single searches", "part A, the log", _measure_log, _judge_log, filling.check, exact=True),
]  # fmt: skip
