"""Bonwick 1994, section 5.2: how much of the memory that an allocator holds was asked for.

His sequence is in one recording, of a Linux 6.1 on our SLOB (so that no request is rounded up) as a user-mode kernel, with a mark after
the boot and after each load: recordings/timesharing.parquet, made by

    slabyard kernel run --allocator slabyard:slob --workload spike+find+kenbus+desk --memory 1G --trace-buffer 384M --trace T.parquet

and stripped of its pages (variants.py). It is replayed under each allocator, as his machine was: short of memory all along, so that heaps
are asked for it again and again, and slower than ours, so that fifteen seconds are less than a step. Each of these conditions is then
taken away, and others are added, one by one. The waste is 1 - bytes asked for / bytes held, the allocator's own data included.
"""

from __future__ import annotations

import bisect
import contextlib
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..base.errors import UserError
from ..replay.workload import Options, Workload
from . import charts, variants
from .model import Claim, Data, Figure, Item, Outcome, Picture, Sheet
from .variants import Recording
from .work import Work

RECORDING = Path(__file__).parent / "recordings" / "timesharing.parquet"
HIS = {"bonwick": "slab", "sunos4": "SunOS 4.1.3", "bsd44": "4.4BSD", "svr4": "SVr4"}
OTHERS = {name: f"slabyard's {name}" for name in ("yard", "slub", "slab", "slob", "slqb")}
PRESETS = {name: f"slabyard's {name}" for name in ("slub:paper", "slab:paper", "slob:paper", "slqb:paper")}  # docs/papers.md
TITLES = {**HIS, **OTHERS, **PRESETS}
STEPS = {"before": "boot", "spike": "spike", "find": "find", "kenbus": "kenbus"}  # marks of the recording, and the columns of his table
PAPER = {  # section 5.2, first table: percent wasted after each step; scripts per minute
    "bonwick": (11, 13, 14, 14, 233),
    "sunos4": (7, 19, 19, 27, 210),
    "bsd44": (20, 43, 43, 45, 205),
    "svr4": (23, 45, 45, 46, 199),
}
# Second table: MB of heap; percent wasted.
PAPER_WEEK = {"bonwick": ("6.0", 9), "sunos4": ("6.7", 17), "svr4": ("8.5", 35), "bsd44": ("9.0", 38)}
SLOWER = 60  # his spike sleeps 60 seconds, ours one
SHARE_OF_SPIKE = 0.5
PAGE = 4096
BLOCK = 1024  # pages: simulated memory is in blocks of the largest order, of which others have a part from the start
QUICK_STEP = 16  # pages to which the smallest memory is found by a quick run; by a full one it is found to the page


@dataclass(frozen=True)
class Condition:
    """What is replayed, and how. `told`: that in words. `short`: the heap is asked for memory every second of the trace's time. `specs`:
    not by name alone."""

    title: str
    told: str
    make: Callable[[Recording], Recording]
    short: bool = True
    least: bool = False  # memory: the smallest in which nothing fails
    specs: Mapping[str, str] = field(default_factory=dict)
    unasked: Sequence[str] = ()  # who is not asked for memory though it is short


def _slow(recording: Recording) -> Recording:
    return variants.stretched(recording, SLOWER)


def _fewer(recording: Recording) -> Recording:
    """With as many of the spike's objects as make 4.4BSD, which gives nothing back, grow as in the paper."""
    return variants.thinned(recording, "before", "spike", SHARE_OF_SPIKE)


def _lower(recording: Recording) -> Recording:
    return _slow(_fewer(recording))


HIS_MACHINE = "short of memory, in minutes"
LEAST = "the smallest memory that fits, nothing asked by the clock"
LOWER = "a spike as high as his"
SLAB_ALONE = "a spike as high as his, none but slab gives back"
NOTHING_BACK = "an arena that gives nothing back"
CONDITIONS: Mapping[str, Condition] = {
    one.title: one
    for one in (
        Condition(HIS_MACHINE, "every heap is asked for memory once a second, in a recording slowed 60 times", _slow),
        Condition("memory to spare", "the same, but nobody is asked", _slow, short=False),
        Condition(LEAST, "the fewest pages in which no request fails; heaps are asked when these run out", _slow, short=False, least=True),
        Condition("short of memory, in seconds", "asked once a second, in the recording as it was", lambda recording: recording),
        Condition(NOTHING_BACK, "SunOS 4.1.3 keeps its chunks (sunos4:keep=on)", _slow, specs={"sunos4": "sunos4:keep=on"}),
        Condition(
            "chunks and pools of 128 KiB",
            "sunos4:chunk_order=5, svr4:pool_order=5",
            _slow,
            specs={"sunos4": "sunos4:chunk_order=5", "svr4": "svr4:pool_order=5"},
        ),
        Condition(LOWER, "half of the spike's objects, so that 4.4BSD grows as in the paper", _lower),
        Condition("a spike as high as his, an arena that gives nothing back", "both of these", _lower, specs={"sunos4": "sunos4:keep=on"}),
        Condition(SLAB_ALONE, "both, and SVr4 is not asked", _lower, specs={"sunos4": "sunos4:keep=on"}, unasked=("svr4",)),
        Condition(
            "objects of a 32-bit machine", "small objects 0.6 times as large", lambda recording: _slow(variants.resized(recording, 0.6))
        ),
        Condition("no caches: all by size alone", "every object by kmem_alloc", lambda recording: _slow(variants.general(recording))),
    )
}


def under(condition: Condition, recording: Recording, names: Sequence[str], step: int = 1) -> dict[str, dict[str, Any]]:
    """The recording under a condition, by allocator. `step`: pages, of the search for the smallest memory."""
    made = condition.make(recording)
    specs = {name: condition.specs.get(name, name) for name in names}
    asked = {name: spec for name, spec in specs.items() if name not in condition.unasked}
    others = {name: spec for name, spec in specs.items() if name in condition.unasked}
    found = replayed(made, asked, 1.0 if condition.short else 0.0)
    if condition.least:
        found = {name: _in_least(made, spec, found[name]["peak"] // PAGE, step) for name, spec in asked.items()}
    found |= replayed(made, others, 0.0) if others else {}
    for of in found.values():
        of["marks"] = {name: at for name, at in of["marks"].items() if name in STEPS}
    return found


def replayed(recording: Recording, specs: Mapping[str, str], asked_every: float) -> dict[str, dict[str, Any]]:
    """By allocator: bytes asked for and held at each mark, and at the moment when most was held."""
    with _workload(recording, Options(cpus=1, nodes=1, start="empty", asked_every=asked_every)) as workload:
        return {name: _figures(workload.exact(spec)) for name, spec in specs.items()}


@contextlib.contextmanager
def _workload(recording: Recording, options: Options) -> Iterator[Workload]:
    with tempfile.TemporaryDirectory(prefix="slabyard-study-") as folder:
        path = recording.write(Path(folder) / "trace.parquet")
        with Workload(path, options) as workload:
            yield workload


def _within(recording: Recording, spec: str, pages: int) -> dict[str, Any] | None:
    """The replay in a memory of so many pages; None: a request fails in it."""
    blocks = -(-pages // BLOCK) * BLOCK
    options = Options(cpus=1, nodes=1, start="empty", memory=blocks * PAGE)
    with contextlib.suppress(UserError), _workload(variants.beside(recording, blocks - pages), options) as workload:
        return {**_figures(workload.exact(spec)), "memory": pages * PAGE}
    return None


def _in_least(recording: Recording, spec: str, peak: int, step: int) -> dict[str, Any]:
    """The replay in the smallest memory in which no request fails, found by halving; `peak`: pages held with memory to spare."""
    fails, fits = peak // 2, peak
    while (found := _within(recording, spec, fits)) is None:
        fails, fits = fits, fits + peak // 4
    while fits - fails > step:
        middle = (fails + fits) // 2
        if (tried := _within(recording, spec, middle)) is None:
            fails = middle
        else:
            fits, found = middle, tried
    return found


def _figures(exact: dict[str, Any]) -> dict[str, Any]:
    series = exact["series"]
    marks = {}
    for one in exact["snapshots"]:
        point = max(0, bisect.bisect_right(series["time"], one["time"]) - 1)  # of the allocator's own data: it hardly changes
        pages = one["slab_pages"] + one["large_pages"] + series["metadata_pages"][point]
        marks[one["name"]] = {"asked": one["requested_bytes"], "held": PAGE * pages}
    return {"marks": marks, "peak": PAGE * exact["held_pages_peak"]}


def waste(mark: Mapping[str, float]) -> float:
    """Percent."""
    return 100 * (1 - mark["asked"] / mark["held"])


# ---- 5.2: fragmentation ----------------------------------------------------------------------------------------------------------


def measure_fragmentation(work: Work) -> Data:
    """The recording under all conditions."""
    recording = variants.read(RECORDING)
    found = {}
    for title, condition in CONDITIONS.items():
        names = [*HIS, *OTHERS, *PRESETS] if title == HIS_MACHINE else [*HIS]
        step = QUICK_STEP if work.quick else 1
        found[title] = work.once(title, lambda: under(condition, recording, names, step))  # noqa: B023
    least = found[LEAST]["bonwick"]["memory"] // PAGE
    margins = work.once("a little more memory", lambda: _margins(_slow(recording), least))
    return {"conditions": found, "margins": margins, "intervals": work.once("working sets", lambda: _intervals(_slow(recording)))}


MARGINS = (1, 2, 4, 8, 16, 32, 64)  # pages


def _margins(recording: Recording, least: int) -> dict[str, dict[str, Any]]:
    """Slab in a little more than the smallest memory: whether it is asked for memory once more behind a peak, decides its waste there."""
    found = {str(more): _within(recording, "bonwick", least + more) for more in MARGINS}
    return {more: figures for more, figures in found.items() if figures}


INTERVALS = (0, 15, 86_400)  # seconds: no working set, his, and one of the whole run


def _intervals(recording: Recording) -> dict[str, dict[str, float]]:
    """His allocator with other working sets, asked for memory once a second: what it took, and its waste at the end."""
    found = {}
    with _workload(recording, Options(cpus=1, nodes=1, start="empty", asked_every=1.0)) as workload:
        for seconds in INTERVALS:
            exact = workload.exact(f"bonwick:working_set_seconds={seconds}")
            figures = _figures(exact)["marks"]["kenbus"]
            found[str(seconds)] = {"pages": exact["pages_taken"], "requests": exact["requests"], **figures}
    return found


def judge_fragmentation(data: Data) -> Outcome:
    """His table beside ours; his claims; under which conditions each of them holds."""
    conditions = data["conditions"]
    wasted = {title: _wasted(found) for title, found in conditions.items()}
    ours = wasted[HIS_MACHINE]
    rows = [
        (f"{TITLES[name]}, {step}", Figure(PAPER[name][at] if name in PAPER else None, of[step]))
        for name, of in ours.items()
        for at, step in enumerate(STEPS.values())
        if step in of
    ]
    by_condition = [
        (f"{title}: {HIS[name]}, {step}", Figure(PAPER[name][at], wasted[title][name][step]))
        for title in wasted
        for name in HIS
        for at, step in ((0, "boot"), (1, "spike"), (3, "kenbus"))
        if title != HIS_MACHINE
    ]
    shortage = f"To imitate shortage, {CONDITIONS[HIS_MACHINE].told}."
    told = [f"{title}: {CONDITIONS[title].told}." for title in wasted if title != HIS_MACHINE]
    least = [(HIS[name], Figure(None, of["memory"] / 2**20)) for name, of in conditions[LEAST].items()]
    sheets = [
        Sheet("Waste after each step", "%", rows, notes=[shortage, f"Steps are cumulative. {_sizes(conditions[HIS_MACHINE])}"]),
        Sheet("The same under other conditions", "%", by_condition, notes=told),
        Sheet("The smallest memory that fits", "MiB", least, notes=["Found by halving, page by page; other users hold the rest."]),
        Sheet("Slab in a little more than that", "% wasted", [
            (f"{more} pages more, {STEPS[mark]}", Figure(None, waste(of["marks"][mark])))
            for more, of in data["margins"].items() for mark in ("spike", "kenbus")
        ], notes=["Heaps are asked when memory runs out, and keep what is free from then on: the last asking decides."]),
        Sheet("Working sets of slab", "pages taken for 1,000 allocations", [
            (f"{int(seconds):,} s", Figure(None, _taken(of))) for seconds, of in data["intervals"].items()
        ]),
    ]  # fmt: skip
    pictures = [
        Picture(f"Waste after each step: {title}", _drawn(of)) for title, of in wasted.items() if title in (HIS_MACHINE, SLAB_ALONE)
    ]
    claims = [_claim(text, {title: rule(of) for title, of in wasted.items()}, HIS_MACHINE) for text, rule in RULES]
    claims.append(_insensitive(data["intervals"]))
    return Outcome(sheets, claims, pictures, stands_for=_STANDS_FOR, notes=[_growth(conditions)])


def _drawn(of: Mapping[str, Mapping[str, float]]) -> str:
    steps = list(STEPS.values())
    series = [(title, [Figure(PAPER[name][at], of[name][step]) for at, step in enumerate(steps)]) for name, title in HIS.items()]
    return charts.bars(steps, series, "waste, %")


_STANDS_FOR = (
    "Linux 6.1 on SLOB, booted as a user-mode kernel, for SunOS on a 16 MB SPARCstation 1; its requests are replayed. A process of Linux "
    "asks for other objects, with pointers of eight bytes."
)


def _taken(of: Mapping[str, float]) -> float:
    return 1000 * of["pages"] / of["requests"]


def _insensitive(intervals: Mapping[str, Mapping[str, float]]) -> Claim:
    """Section 3.4."""
    taken = {seconds: _taken(of) for seconds, of in intervals.items()}
    text = (
        "System performance is fairly insensitive to the working-set interval "
        "(here: of 1,000 allocations, at most 50 more take a page with none than with one of a day)"
    )
    told = "; ".join(
        f"{int(seconds):,} s: {taken[seconds]:.0f} pages for 1,000 allocations, waste after kenbus {waste(of):.1f}%"
        for seconds, of in intervals.items()
    )
    return Claim(text, max(taken.values()) - min(taken.values()) <= 50, told)


Rule = Callable[[Mapping[str, Mapping[str, float]]], bool]
RULES: Sequence[tuple[str, Rule]] = (
    ("After boot SunOS 4.1.3 wastes least, then slab, then 4.4BSD and SVr4",
     lambda of: of["sunos4"]["boot"] < of["bonwick"]["boot"] < min(of["bsd44"]["boot"], of["svr4"]["boot"])),
    ("The slab allocator's waste hardly grows from boot to kenbus (3 points in the paper; here: at most 5)",
     lambda of: of["bonwick"]["kenbus"] - of["bonwick"]["boot"] <= 5),
    ("It ends with half the fragmentation of the nearest competitor (14% of 27%; here: at most 0.6)",
     lambda of: of["bonwick"]["kenbus"] <= 0.6 * min(of[name]["kenbus"] for name in HIS if name != "bonwick")),
    ("At the end slab wastes less than SunOS 4.1.3, and that less than 4.4BSD and SVr4",
     lambda of: of["bonwick"]["kenbus"] < of["sunos4"]["kenbus"] < min(of["bsd44"]["kenbus"], of["svr4"]["kenbus"])),
    ("4.4BSD and SVr4 end close to each other (45 and 46%; here: within 5 points)",
     lambda of: abs(of["bsd44"]["kenbus"] - of["svr4"]["kenbus"]) <= 5),
    ("A spike doubles the waste of 4.4BSD and SVr4, and it stays (20 to 43 and 23 to 45%; here: by half at least)",
     lambda of: all(min(of[name]["spike"], of[name]["kenbus"]) >= 1.5 * of[name]["boot"] for name in ("bsd44", "svr4"))),
)  # fmt: skip


def _wasted(found: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    return {name: {STEPS[mark]: waste(at) for mark, at in of["marks"].items() if mark in STEPS} for name, of in found.items()}


def _claim(text: str, by_condition: Mapping[str, bool], main: str, figures: str = "") -> Claim:
    """A claim as it is under the main condition; why: the conditions under which it turns."""
    turns = [title for title, holds in by_condition.items() if holds != by_condition[main]]
    verb, other = ("holds", "fails") if by_condition[main] else ("fails", "holds")
    told = f"it {other} under: {'; '.join(turns)}" if turns else f"it {verb} under all {len(by_condition) - 1} other conditions too"
    return Claim(text, by_condition[main], figures + told)


def _sizes(found: Mapping[str, Any]) -> str:
    """What was asked for at each mark, and held at the peak: a spike is large or small beside the heap."""
    marks = found["bonwick"]["marks"]
    asked = ", ".join(f"{marks[mark]['asked'] / 2**20:.1f} MiB after {step}" for mark, step in STEPS.items() if mark in marks)
    peaks = ", ".join(f"{HIS[name]} {found[name]['peak'] / 2**20:.1f}" for name in HIS)
    return f"Asked for: {asked}. Held at the peak, in MiB: {peaks}."


def _growth(conditions: Mapping[str, Any]) -> str:
    """How far the spike stood above the heap, in ours and in his: 4.4BSD gives nothing back, so its waste tells."""
    marks = {title: conditions[title]["bsd44"]["marks"] for title in (HIS_MACHINE, LOWER)}
    ours, lower = (of["spike"]["held"] / of["before"]["held"] for of in marks.values())
    his = (1 - PAPER["bsd44"][0] / 100) / (1 - PAPER["bsd44"][1] / 100)
    of_spikes = f"{ours:.2f} times (lower spike {lower:.2f}; paper {his:.2f})"
    return f"4.4BSD never gives back, so its growth shows the height of the spike: {of_spikes}."


# ---- One week of desktop use ----------------------------------------------------------------------------------------------------

DAYS = 7
SHORT, KEPT = "short of memory", NOTHING_BACK
HOUR = 3600 * 10**9  # ns
SEED = 1994


def week(recording: Recording, days: int, bursts: bool = False, varied: bool = False) -> Recording:
    """A desktop machine's week of light use: one user's scripts twelve times between 9 and 19 o'clock, a search of all files at night;
    `bursts`: on every third day many users and, as high as his spike, many processes at once, too; `varied`: lifetimes.

    A mark after each day. Times are drawn, always the same.
    """
    draw = np.random.default_rng(SEED)
    parts = {
        "boot": variants.piece(recording, None, "before"), "spike": variants.piece(_fewer(recording), "before", "spike"),
        "find": variants.piece(recording, "spike", "find"), "kenbus": variants.piece(recording, "find", "kenbus"),
        "desk": variants.piece(recording, "kenbus", "desk"),
    }  # fmt: skip
    plan: list[tuple[str, int]] = [("boot", 0)]
    for day in range(days):
        hours = [("desk", hour) for hour in draw.uniform(9, 19, 12)]
        hours += [("find", draw.uniform(2, 4))]
        hours += [("kenbus", draw.uniform(9, 19)), ("spike", draw.uniform(9, 19))] if bursts and day % 3 == 1 else []
        plan += [(name, int((24 * day + hour) * HOUR)) for name, hour in hours]
        plan.append((f"day {day + 1}", 24 * (day + 1) * HOUR))
    pieces = [(name, begin, parts.get(name)) for name, begin in sorted(plan, key=lambda one: one[1])]
    return variants.stitched(pieces, draw if varied else None)


def measure_week(work: Work) -> Data:
    """The week under each allocator, and under other conditions."""
    days = 2 if work.quick else DAYS
    source = variants.read(RECORDING)
    light, bursts = week(source, days), week(source, days, bursts=True)
    all_of_them, his = {name: name for name in (*HIS, *OTHERS)}, {name: name for name in HIS}
    kept = {**his, "sunos4": "sunos4:keep=on"}
    parts = {
        SHORT: lambda: replayed(light, all_of_them, 1.0),
        "memory to spare": lambda: replayed(light, his, 0.0),
        KEPT: lambda: replayed(light, kept, 1.0),
        "bursts of many users and processes": lambda: replayed(bursts, his, 1.0),
        f"such bursts, {KEPT}": lambda: replayed(bursts, kept, 1.0),
        "lifetimes that vary": lambda: replayed(week(source, days, varied=True), his, 1.0),
        f"such bursts, lifetimes that vary, {KEPT}": lambda: replayed(week(source, days, True, True), kept, 1.0),
    }
    found = {title: work.once(title, part) for title, part in parts.items()}
    return {"days": days, "requests": int(light.allocates.sum()), "conditions": found}


def judge_week(data: Data) -> Outcome:
    """His second table beside ours."""
    last = f"day {data['days']}"
    conditions = data["conditions"]
    wasted = {title: {name: waste(of["marks"][last]) for name, of in found.items()} for title, found in conditions.items()}
    ours = wasted[SHORT]
    paper = {name: PAPER_WEEK.get(name, (None, None)) for name in ours}
    heap = [(TITLES[name], Figure(paper[name][0], of["marks"][last]["held"] / 1e6)) for name, of in conditions[SHORT].items()]
    others = [
        (f"{title}: {HIS[name]}", Figure(PAPER_WEEK[name][1], wasted[title][name])) for title in wasted if title != SHORT for name in HIS
    ]
    daily = [
        (f"{HIS[name]}, day {day}", Figure(None, waste(conditions[SHORT][name]["marks"][f"day {day}"])))
        for name in HIS
        for day in range(1, data["days"] + 1)
    ]
    sheets = [
        Sheet("Fragmentation", "%", [(TITLES[name], Figure(paper[name][1], ours[name])) for name in ours], notes=[_TOLD_OF_WEEK[0]]),
        Sheet("Kernel heap", "MB", heap),
        Sheet("Fragmentation under other conditions", "%", others, notes=_TOLD_OF_WEEK[1:]),
        Sheet("Fragmentation day by day", "%", daily),
    ]
    claims = [_week_claim(text, rule, wasted) for text, rule in _WEEK_RULES]
    stands_for = (
        f"{data['days']} days of simulated time, {data['requests']:,} requests: pieces of one recording, one user's scripts and "
        "searches, at drawn times, for a week of a person's work on a SPARCstation 2. What a piece leaves allocated goes when "
        "the next of its kind comes, or at drawn times."
    )
    return Outcome(sheets, claims, stands_for=stands_for)


_TOLD_OF_WEEK = (
    "To imitate shortage, every heap is asked for memory once a second.",
    "memory to spare: nobody is asked.",
    f"{NOTHING_BACK}: SunOS 4.1.3 keeps its chunks (sunos4:keep=on).",
    "bursts: on every third day many users' scripts, and a spike as high as his.",
    "lifetimes that vary: of what a piece leaves, half goes at each piece that comes, drawn anew.",
)
_WEEK_RULES: Sequence[tuple[str, Callable[[Mapping[str, float]], bool]]] = (
    ("The order is slab, SunOS 4.1.3, SVr4, 4.4BSD", lambda of: of["bonwick"] < of["sunos4"] < of["svr4"] < of["bsd44"]),
    ("Slab generates about half the fragmentation of SunOS 4.1.3 (9 of 17%; here: 0.4 to 0.6)",
     lambda of: 0.4 <= of["bonwick"] / of["sunos4"] <= 0.6),
    ("SunOS 4.1.3 generates about half that of SVr4 and 4.4BSD (17 of 35 and 38%; here: 0.4 to 0.6)",
     lambda of: all(0.4 <= of["sunos4"] / of[name] <= 0.6 for name in ("svr4", "bsd44"))),
)  # fmt: skip


def _week_claim(text: str, rule: Callable[[Mapping[str, float]], bool], conditions: Mapping[str, Mapping[str, float]]) -> Claim:
    figures = ", ".join(f"{HIS[name]} {conditions[SHORT][name]:.0f}%" for name in HIS)
    return _claim(text, {title: rule(of) for title, of in conditions.items()}, SHORT, f"{figures}; ")


FRAGMENTATION = Item(
    "bonwick", "fragmentation", "Fragmentation after boot, spike, find, kenbus", "section 5.2, first table",
    measure_fragmentation, judge_fragmentation, exact=True,
)  # fmt: skip
WEEK = Item("bonwick", "week", "One week of light desktop use", "section 5.2, second table", measure_week, judge_week, exact=True)
