"""Bonwick 1994, section 5.2: how much of the memory that an allocator holds was asked for.

His sequence is in one recording, of a Linux 6.1 on SLOB (which rounds no request up) as a user-mode kernel, with a mark after the boot
and after each load: recordings/timesharing.parquet, made by

    slabyard kernel run --allocator slob --workload spike+find+kenbus+desk --memory 1G --trace-buffer 512M --trace timesharing.parquet

and stripped of its pages (remade.py). It is replayed under each allocator, as his machine was: short of memory all along, so that heaps
are asked for it again and again, and slower than ours, so that fifteen seconds are less than a step. Each of these conditions is then
taken away, and others are added, one by one. The waste is 1 - bytes asked for / bytes held, the allocator's own data included.
"""

from __future__ import annotations

import bisect
import contextlib
import itertools
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..base.errors import UserError
from ..kernels import build, kinds, machine, run, source, workloads
from ..replay.workload import Options, Workload
from . import remade
from .model import Claim, Data, Figure, Item, Outcome, Sheet, repeated
from .remade import Recording
from .work import Work

RECORDING = Path(__file__).parent / "recordings" / "timesharing.parquet"
HIS = {"bonwick": "slab", "sunos4": "SunOS 4.1.3", "bsd44": "4.4BSD", "svr4": "SVr4"}
OTHERS = ("yard", "slub", "slab", "slob", "slqb")
STEPS = {"before": "boot", "spike": "spike", "find": "find", "kenbus": "kenbus"}  # marks of the recording, and the columns of his table
PAPER = {  # section 5.2, first table: percent wasted after each step; scripts per minute
    "bonwick": (11, 13, 14, 14, 233),
    "sunos4": (7, 19, 19, 27, 210),
    "bsd44": (20, 43, 43, 45, 205),
    "svr4": (23, 45, 45, 46, 199),
}
PAPER_WEEK = {"bonwick": (6.0, 9), "sunos4": (6.7, 17), "svr4": (8.5, 35), "bsd44": (9.0, 38)}  # second table: MB of heap; percent wasted
SLOWER = 60  # his spike sleeps 60 seconds, ours one
SHARE_OF_SPIKE = 0.6
PAGE = 4096
BLOCK = 4 << 20  # bytes: memory is in blocks of the largest order


@dataclass(frozen=True)
class Condition:
    """What is replayed, and how. `short`: the heap is asked for memory every second of the trace's time. `specs`: not by name alone."""

    title: str
    make: Callable[[Recording], Recording]
    short: bool = True
    least: bool = False  # memory: the smallest in which nothing fails
    specs: Mapping[str, str] = field(default_factory=dict)


def _slow(recording: Recording) -> Recording:
    return remade.stretched(recording, SLOWER)


def _lower(recording: Recording) -> Recording:
    """With as many of the spike's objects as make 4.4BSD, which gives nothing back, grow as in the paper."""
    return _slow(remade.thinned(recording, "before", "spike", SHARE_OF_SPIKE))


HIS_MACHINE = "short of memory, in minutes"
CONDITIONS: Mapping[str, Condition] = {
    one.title: one
    for one in (
        Condition(HIS_MACHINE, _slow),
        Condition("memory to spare", _slow, short=False),
        Condition("the smallest memory that fits, nothing asked by the clock", _slow, short=False, least=True),
        Condition("short of memory, in seconds", lambda recording: recording),
        Condition("an arena that gives nothing back", _slow, specs={"sunos4": "sunos4:keep=on"}),
        Condition("chunks and pools of 128 KiB", _slow, specs={"sunos4": "sunos4:chunk_order=5", "svr4": "svr4:pool_order=5"}),
        Condition("a spike as high as his", _lower),
        Condition("a spike as high as his, an arena that gives nothing back", _lower, specs={"sunos4": "sunos4:keep=on"}),
        Condition("objects of a 32-bit machine", lambda recording: _slow(remade.resized(recording, 0.6))),
        Condition("no caches: all by size alone", lambda recording: _slow(remade.general(recording))),
    )
}


def replayed(recording: Recording, specs: Mapping[str, str], asked_every: float, least: bool = False) -> dict[str, dict[str, Any]]:
    """By allocator: bytes asked for and held at each mark, and at the moment when most was held."""
    with tempfile.TemporaryDirectory(prefix="slabyard-study-") as folder:
        path = recording.write(Path(folder) / "trace.parquet")
        with Workload(path, Options(cpus=1, nodes=1, start="empty", asked_every=asked_every)) as workload:
            found = {name: workload.exact(spec) for name, spec in specs.items()}
        return {name: _figures(_in_least(path, specs[name], exact) if least else exact) for name, exact in found.items()}


def _in_least(path: Path, spec: str, ample: dict[str, Any]) -> dict[str, Any]:
    """The replay in the smallest memory, in whole blocks, in which no request fails; `ample` is that with memory to spare."""
    for memory in itertools.count(max(BLOCK, PAGE * ample["held_pages_peak"] // 2 // BLOCK * BLOCK), BLOCK):
        with contextlib.suppress(UserError), Workload(path, Options(cpus=1, nodes=1, start="empty", memory=memory)) as workload:
            return {**workload.exact(spec), "memory": memory}
    raise AssertionError


def _figures(exact: dict[str, Any]) -> dict[str, Any]:
    series = exact["series"]
    marks = {}
    for one in exact["snapshots"]:
        point = max(0, bisect.bisect_right(series["time"], one["time"]) - 1)  # of the allocator's own data: it hardly changes
        pages = one["slab_pages"] + one["large_pages"] + series["metadata_pages"][point]
        marks[one["name"]] = {"asked": one["requested_bytes"], "held": PAGE * pages}
    memory = {"memory": exact["memory"]} if "memory" in exact else {}
    return {"marks": marks, "peak": PAGE * exact["held_pages_peak"], **memory}


def waste(mark: Mapping[str, int]) -> float:
    """Percent."""
    return 100 * (1 - mark["asked"] / mark["held"])


# ---- 5.2: fragmentation ----------------------------------------------------------------------------------------------------------


def measure_fragmentation(work: Work) -> Data:
    """All conditions; on the recording itself the smallest memory that fits; in a full study scripts per minute on real kernels."""
    recording = remade.read(RECORDING)
    found = {}
    for title, condition in CONDITIONS.items():
        names = [*HIS, *OTHERS] if title == HIS_MACHINE else [*HIS]
        specs = {name: condition.specs.get(name, name) for name in names}
        asked_every = 1.0 if condition.short else 0.0
        found[title] = work.once(title, lambda: replayed(condition.make(recording), specs, asked_every, condition.least))  # noqa: B023
    marks = recording.marks()
    events = {STEPS[name]: row for name, row in marks.items() if name in STEPS}
    return {"conditions": found, "events": events, "scripts": {} if work.quick else scripts_per_minute(work)}


def scripts_per_minute(work: Work) -> dict[str, list[float]]:
    """Of kenbus alone, on user-mode kernels with each allocator, booted in turn."""
    kernel = build.build(build.Request(source.find(None), "um", kinds.parse("slabyard").kind), None)
    found: dict[str, list[float]] = {name: [] for name in (*HIS, "yard")}
    for repetition in range(work.repetitions):
        for name, samples in found.items():
            plan = machine.Plan(kinds.parse(f"slabyard:{name}"), kernel, workloads.parse("kenbus"), machine.Hardware())
            samples.append(work.once(f"kenbus on {name}, boot {repetition + 1}", lambda: scripts(run.once(plan).texts["output"])))  # noqa: B023
    return found


def scripts(output: str) -> float:
    """Scripts per minute, as the workload's last line has them."""
    told = re.search(r"^kenbus: .* (\d+) a minute$", output, re.MULTILINE)
    if told is None:
        raise UserError(f"kenbus did not say how many scripts it ran: {output.strip()[-200:]}")
    return float(told[1])


def judge_fragmentation(data: Data) -> Outcome:
    """His table beside ours; his claims; under which conditions each of them holds."""
    conditions = data["conditions"]
    wasted = {title: _wasted(found) for title, found in conditions.items()}
    ours = wasted[HIS_MACHINE]
    rows = [
        (f"{HIS.get(name, name)}, {step}", Figure(PAPER[name][at] if name in PAPER else None, of[step]))
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
    sheets = [
        Sheet("Waste after each step", "%", rows, notes=[f"Steps are cumulative. {_sizes(conditions[HIS_MACHINE])}"]),
        Sheet("The same under other conditions", "%", by_condition),
    ]
    if data["scripts"]:
        told = [
            (HIS.get(name, name), repeated(PAPER[name][4] if name in PAPER else None, data["scripts"][name])) for name in data["scripts"]
        ]
        sheets.append(Sheet("Kenbus", "scripts a minute", told, notes=["Mean, worst and best of boots of user-mode kernels, in turn."]))
    return Outcome(sheets, _claims(wasted, data["scripts"]), stands_for=_STANDS_FOR, notes=[_growth(conditions)])


_STANDS_FOR = (
    "Linux 6.1 on SLOB, booted as a user-mode kernel, for SunOS on a 16 MB SPARCstation 1; its requests are replayed. A process of Linux "
    "asks for other objects, with pointers of eight bytes. Shortage is asking every heap for memory once a second; that memory which "
    "an allocator does not hold would speed the programs up is left open: kenbus ran with 512 MiB, on kernels of their own, so the last "
    "column has the allocators' speed alone."
)

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


def _claims(wasted: Mapping[str, Mapping[str, Mapping[str, float]]], scripts_of: Mapping[str, Sequence[float]]) -> list[Claim]:
    found = []
    for text, rule in RULES:
        holding = [title for title, of in wasted.items() if rule(of)]
        others = [title for title in wasted if title not in holding]
        found.append(Claim(text, HIS_MACHINE in holding, f"holds under: {_listed(holding)}; not under: {_listed(others)}"))
    if scripts_of:
        means = {name: float(np.mean(samples)) for name, samples in scripts_of.items() if name in HIS}
        margin = means["bonwick"] / max(rate for name, rate in means.items() if name != "bonwick") - 1
        spread = max((max(samples) - min(samples)) / float(np.mean(samples)) for samples in scripts_of.values())
        found.append(
            Claim(
                "The slab allocator runs most scripts a minute, by 11%",
                margin >= 0.05,
                f"{100 * margin:+.1f}% over the next; boots of one allocator differ by up to {100 * spread:.0f}%. There is no shortage of "
                "memory in these kernels, and the paper explains its figures by that",
            )
        )
    return found


def _wasted(found: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    return {name: {STEPS[mark]: waste(at) for mark, at in of["marks"].items() if mark in STEPS} for name, of in found.items()}


def _listed(titles: Sequence[str]) -> str:
    return "; ".join(titles) if titles else "none"


def _sizes(found: Mapping[str, Any]) -> str:
    """What was asked for at each mark, and held at the peak: a spike is large or small beside the heap."""
    marks = found["bonwick"]["marks"]
    asked = ", ".join(f"{marks[mark]['asked'] / 2**20:.1f} MiB after {step}" for mark, step in STEPS.items() if mark in marks)
    peaks = ", ".join(f"{HIS[name]} {found[name]['peak'] / 2**20:.1f}" for name in HIS)
    return f"Asked for: {asked}. Held at the peak, in MiB: {peaks}."


def _growth(conditions: Mapping[str, Any]) -> str:
    """How far the spike stood above the heap, in ours and in his: 4.4BSD gives nothing back, so its waste tells."""
    marks = conditions[HIS_MACHINE]["bsd44"]["marks"]
    ours = marks["spike"]["held"] / marks["before"]["held"]
    his = (1 - PAPER["bsd44"][0] / 100) / (1 - PAPER["bsd44"][1] / 100)
    return (
        f"4.4BSD gives nothing back, so it shows how high the spike was: it holds {ours:.2f} times as much after it as before, "
        f"in the paper {his:.2f} times where as much is asked for."
    )


# ---- One week of desktop use ----------------------------------------------------------------------------------------------------

DAYS = 7
HOUR = 3600 * 10**9  # ns
SEED = 1994


def week(recording: Recording, days: int) -> Recording:
    """A desktop machine's week: one user's scripts from 9 to 19 o'clock, a few times an hour, a search of all files at night, now and
    then a burst of many users or processes; with a mark after each day. The times are drawn, always the same."""
    draw = np.random.default_rng(SEED)
    parts = {
        "boot": remade.piece(recording, None, "before"), "spike": remade.piece(recording, "before", "spike"),
        "find": remade.piece(recording, "spike", "find"), "kenbus": remade.piece(recording, "find", "kenbus"),
        "desk": remade.piece(recording, "kenbus", "desk"),
    }  # fmt: skip
    plan: list[tuple[str, int]] = [("boot", 0)]
    for day in range(days):
        hours = [("desk", hour) for hour in draw.uniform(9, 19, 12)]
        hours += [("find", draw.uniform(2, 4)), ("kenbus", draw.uniform(9, 19))]
        hours += [("spike", draw.uniform(9, 19))] if day % 3 == 1 else []
        plan += [(name, int((24 * day + hour) * HOUR)) for name, hour in hours]
        plan.append((f"day {day + 1}", 24 * (day + 1) * HOUR))
    return remade.stitched([(name, begin, parts.get(name)) for name, begin in sorted(plan, key=lambda one: one[1])])


def measure_week(work: Work) -> Data:
    """The week under each allocator, short of memory and with memory to spare."""
    days = 2 if work.quick else DAYS
    recording = week(remade.read(RECORDING), days)
    specs = {name: name for name in (*HIS, *OTHERS)}
    kept = {"sunos4": "sunos4:keep=on"}
    return {
        "days": days,
        "requests": int(recording.allocates.sum()),
        "short": work.once("short of memory", lambda: replayed(recording, specs, 1.0)),
        "ample": work.once("memory to spare", lambda: replayed(recording, {name: name for name in HIS}, 0.0)),
        "kept": work.once("an arena that gives nothing back", lambda: replayed(recording, kept, 1.0)),
    }


def judge_week(data: Data) -> Outcome:
    """His second table beside ours."""
    last = f"day {data['days']}"
    at = {title: {name: of["marks"][last] for name, of in data[title].items()} for title in ("short", "ample", "kept")}
    wasted = {title: {name: waste(mark) for name, mark in of.items()} for title, of in at.items()}
    ours = wasted["short"]
    paper = {name: PAPER_WEEK.get(name, (None, None)) for name in ours}
    daily = [
        (f"{HIS[name]}, day {day}", Figure(None, waste(data["short"][name]["marks"][f"day {day}"])))
        for name in HIS
        for day in range(1, data["days"] + 1)
    ]
    others = [
        *((f"memory to spare: {HIS[name]}", Figure(PAPER_WEEK[name][1], wasted["ample"][name])) for name in HIS),
        ("an arena that gives nothing back: SunOS 4.1.3", Figure(PAPER_WEEK["sunos4"][1], wasted["kept"]["sunos4"])),
    ]
    sheets = [
        Sheet("Fragmentation", "%", [(HIS.get(name, name), Figure(paper[name][1], ours[name])) for name in ours]),
        Sheet("Kernel heap", "MB", [(HIS.get(name, name), Figure(paper[name][0], at["short"][name]["held"] / 1e6)) for name in ours]),
        Sheet("Fragmentation under other conditions", "%", others),
        Sheet("Fragmentation day by day", "%", daily),
    ]
    kept = {**ours, "sunos4": wasted["kept"]["sunos4"]}
    conditions = {"short of memory": ours, "memory to spare": wasted["ample"], "an arena that gives nothing back": kept}
    claims = [_week_claim(text, rule, conditions) for text, rule in _WEEK_RULES]
    stands_for = (
        f"{data['days']} days of simulated time, {data['requests']:,} requests: pieces of one recording, of one user's scripts, kenbus, "
        "find and the spike, at drawn times, for a week of a person's work on a SPARCstation 2. What a piece leaves allocated goes when "
        "the next of its kind comes; on a real desktop lifetimes are more varied, which is what ruins a sequential fit."
    )
    return Outcome(sheets, claims, stands_for=stands_for)


_WEEK_RULES: Sequence[tuple[str, Callable[[Mapping[str, float]], bool]]] = (
    ("The order is slab, SunOS 4.1.3, SVr4, 4.4BSD", lambda of: of["bonwick"] < of["sunos4"] < of["svr4"] < of["bsd44"]),
    ("Slab generates about half the fragmentation of SunOS 4.1.3 (9 of 17%; here: 0.4 to 0.6)",
     lambda of: 0.4 <= of["bonwick"] / of["sunos4"] <= 0.6),
    ("SunOS 4.1.3 generates about half that of SVr4 and 4.4BSD (17 of 35 and 38%; here: 0.4 to 0.6)",
     lambda of: all(0.4 <= of["sunos4"] / of[name] <= 0.6 for name in ("svr4", "bsd44"))),
)  # fmt: skip


def _week_claim(text: str, rule: Callable[[Mapping[str, float]], bool], conditions: Mapping[str, Mapping[str, float]]) -> Claim:
    told = [f"{title}: {', '.join(f'{HIS[name]} {of[name]:.0f}%' for name in HIS)} ({'holds' if rule(of) else 'not'})"
            for title, of in conditions.items()]  # fmt: skip
    return Claim(text, rule(conditions["short of memory"]), "; ".join(told))


ITEMS = [
    Item(
        "bonwick", "fragmentation", "Total fragmentation after boot, spike, find and kenbus", "section 5.2, first table",
        measure_fragmentation, judge_fragmentation,
    ),
    Item("bonwick", "week", "One week of light desktop use", "section 5.2, second table", measure_week, judge_week, exact=True),
]  # fmt: skip
