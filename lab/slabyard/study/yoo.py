"""Yoo: where hackbench spends its time under SLUB, SLAB and SLOB, as flame graphs.

He sampled a machine whose processors he does not name; the functions of the allocators were kept out of line. Here the instructions of
every stack are counted, in kernels of the same kind on four CPUs under QEMU (kernels/flame.py, plugin/tree.h). Allocator functions are out
of line, so they are told apart as in his graphs. Time is instructions, with those that a CPU could have executed while it waited for
a lock. CPUs run in short turns, so a lock's holder and those who wait for it move on together.

    shares    his figures: allocation, freeing, the slow path, waiting; and the three graphs
    waiting   SLOB's share by the number of CPUs and by the length of a turn: what his 68.9% depends on
    threads   the same question outside a kernel: the allocator's share of threads that allocate, and beside it the wait for its locks

Rules. A figure of his is met where ours is 0.75 to 1.33 times his in every boot, and is not where it is so in none; where some boots meet
it, it cannot be told. The most by far is twice as much as any other, in every boot.
"""

from __future__ import annotations

import functools
import os
import statistics
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from ..base.stacks import Stack
from ..base.svg import Value
from ..base.table import counted as counted_noun
from ..kernels import build, cost, flame, icicle, kinds, tools, workloads
from ..kernels.machine import Hardware, Plan
from ..results import threads
from . import charts
from .charts import Line
from .model import Claim, Data, Figure, Item, Outcome, Picture, Sheet, repeated
from .rules import below, every, greatest, ordered
from .work import Work

# His text, in % of hackbench's time: allocation, freeing; all of the allocator; the slow path and waiting, in % of the allocator's calls.
Paper = Mapping[str, float | str]
FUNCTIONS = {"__kmalloc_node_track_caller": 6.06, "kmem_cache_alloc_node": 5.66, "kmem_cache_free": 6.74, "kfree": 6.56}  # SLUB's
ALLOCATION: Paper = {"slub": 11.72, "slab": 10.5}
FREEING: Paper = {"slub": 13.3, "slab": 9.82}
WHOLE = {"slub": 25.02, "slab": 20.32, "slob": 68.89}
SLOW_OF_ALLOCATION: Paper = {"slub": "18 to 19"}
WAITING_OF_ALLOCATOR: Paper = {"slob": "98 to 99"}
CALLS_OF_SYSTEM = 96.41  # SLUB's graph: read and write

LINUX = ("slub", "slab", "slob")
OTHERS = ("slub_tiny", "slabyard:slub", "slabyard:slab", "slabyard:slob", "slabyard:yard")
KERNELS = tuple(("x86_64", kind, True) for kind in LINUX)
CPUS, TURN = 4, 100  # turn: instructions
MEMORY = 512 << 20
MESSAGES, QUICK_MESSAGES = 100, 30  # of each sender to each receiver; his 40 processes, whose start and end are in the figures
NEAR = (0.75, 1.33)  # ours by his: where a figure of his is met
BY_FAR = 2  # times any other
KEPT = 0.006  # of all: the least box of a graph that a record keeps
GRAPH_WIDTH = 640  # pixels: three of them stand side by side
BY_CPUS, BY_TURN = (1, 2, 4, 8), (25, 100, 400, 1600)


def check() -> None:
    build.check("x86_64")
    cost.check()
    tools.boot("x86_64")
    tools.require((tools.HACKBENCH,), "the workload hackbench")


def plan(text: str, cpus: int, messages: int, work: Work) -> Plan:
    """A boot of the kernel for an allocator, its functions out of line, that runs hackbench: 40 processes on sockets."""
    spec = work.specs([text])[text]
    kernel = work.kernel("x86_64", spec.kind, outlined=True)
    return Plan(spec, kernel, workloads.parse(f"hackbench -g 1 -l {messages}"), Hardware(MEMORY, cpus, 1, "tcg"), timeout=900)


def counted(text: str, cpus: int, turn: int, work: Work, graph: bool = False) -> Data:
    """Shares of a boot's kernel instructions; `graph`: with the stacks of which a graph is drawn."""
    planned = plan(text, cpus, QUICK_MESSAGES if work.quick else MESSAGES, work)
    profile = flame.count(planned, turn)
    found: Data = {name: round(share, 6) for name, share in flame.shares(profile, planned.spec.kind.slow).items()}
    whole = profile.samples + profile.of_programs
    found |= {"kernel": profile.samples, "programs": profile.of_programs, "calls": round(_system_calls(profile) / whole, 6)}
    found["kind"] = planned.spec.kind.name
    if graph:
        found["boxes"] = boxes(profile.stacks)
    return found


def _system_calls(profile: flame.Profile) -> int:
    """Instructions within system calls that read and write."""
    return sum(count for stack, count in profile.stacks.items() if any(frame in _READS_AND_WRITES for frame in stack))


_READS_AND_WRITES = frozenset(("ksys_read", "ksys_write", "vfs_read", "vfs_write"))


def boxes(stacks: Mapping[Stack, int]) -> list[list[int | str]]:
    """The boxes of a graph that are wide enough to be seen: the number of the one above (from 1; 0: none), the function, the weight."""
    weights: Counter[Stack] = Counter()
    for stack, count in stacks.items():
        for depth in range(1, len(stack) + 1):
            weights[stack[:depth]] += count
    least = KEPT * sum(stacks.values())
    wide = sorted(stack for stack, weight in weights.items() if weight >= least)
    place = {stack: number for number, stack in enumerate(wide, 1)}
    return [[place.get(stack[:-1], 0), stack[-1], weights[stack]] for stack in wide]


def unpacked(kept: Sequence[Sequence[int | str]]) -> dict[Stack, int]:
    """The stacks again: what was too narrow counts for the box above."""
    found: dict[Stack, int] = {}
    stacks: list[Stack] = [()]
    for above, name, weight in kept:
        stack = (*stacks[int(above)], str(name))
        stacks.append(stack)
        found[stack] = int(weight)
        if above:
            found[stack[:-1]] -= int(weight)
    return found


# ---- Shares ------------------------------------------------------------------------------------------------------


def _measure_shares(work: Work) -> Data:
    turns = range(1 if work.quick else work.repetitions)
    specs = {spec.text: text for text, spec in reversed(work.specs(LINUX + OTHERS).items())}  # of two names for one, the first
    others = () if work.quick else tuple(text for text in OTHERS if text in specs.values())
    boots = [(text, turn) for turn in turns for text in LINUX + (others if turn == 0 else ())]
    parts = {
        f"{text}, boot {turn + 1}": functools.partial(counted, text, CPUS, TURN, work, text in LINUX and turn == 0) for text, turn in boots
    }
    found: Data = {}
    for (text, _), one in zip(boots, work.side_by_side(parts).values(), strict=True):
        found.setdefault(text, []).append(one)
    return found


Share = Callable[[Data], float]


def _allocation(one: Data) -> float:
    return 100 * _of_all(one, "alloc")


def _freeing(one: Data) -> float:
    return 100 * _of_all(one, "free")


def _whole(one: Data) -> float:
    return _allocation(one) + _freeing(one)


def _of_all(one: Data, name: str) -> float:
    """A share of the kernel's instructions, as one of all, programs included: his percentages are of hackbench's whole time."""
    return float(one[name] * one["kernel"] / (one["kernel"] + one["programs"]))


def _slow_of_allocation(one: Data) -> float:
    return float(100 * one["alloc_slow"] / one["alloc"])


def _waiting(one: Data) -> float:
    """% of the allocator's instructions."""
    return float(100 * (one["alloc_waits"] + one["free_waits"]) / (one["alloc"] + one["free"]))


def _calls(one: Data) -> float:
    return float(100 * one["calls"])


_SHEETS: tuple[tuple[str, Share, Paper], ...] = (
    ("allocation, of all", _allocation, ALLOCATION),
    ("freeing, of all", _freeing, FREEING),
    ("allocation and freeing, of all", _whole, WHOLE),
    ("the slow path, of allocation", _slow_of_allocation, SLOW_OF_ALLOCATION),
    ("waiting for a lock, of allocation and freeing", _waiting, WAITING_OF_ALLOCATOR),
    ("reading and writing by system calls, of all", _calls, {"slub": CALLS_OF_SYSTEM}),
)

_STANDS_FOR = (
    "hackbench (40 processes on sockets) on kernels of four CPUs under QEMU, for his machine, whose processors he does not name. "
    "Instructions stand for time: a cache line that goes from CPU to CPU costs nothing more, so waiting for a lock costs less than on a "
    "real machine. The allocator's functions are compiled out of line by flags, not by taking `inline` out of the source. Idle CPUs are "
    "left out."
)


def _judge_shares(data: Data) -> Outcome:
    sheets = [
        Sheet(title, "%", [(text, repeated(paper.get(text), [share(one) for one in boots])) for text, boots in data.items()])
        for title, share, paper in _SHEETS
    ]
    sheets.append(_functions(data["slub"][0]))
    boots = {text: {share: [*map(share, data[text])] for _, share, _ in _SHEETS} for text in LINUX}
    slub, slab, slob = (boots[text] for text in LINUX)
    whole = {text: boots[text][_whole] for text in LINUX}
    searched = [100 * one["alloc_slow"] / (one["alloc"] + one["free"]) for one in data["slob"]]
    claims = [
        Claim(
            "hackbench spends most of its time in read and write calls (96.41%; rule: more than half in every boot)",
            min(slub[_calls]) > 50,
            f"{_window(slub[_calls])} of all instructions",
        ),
        _met("SLUB takes 25.02% of all time", slub[_whole], WHOLE["slub"], _absolute(data["slub"])),
        _met("18 to 19% of SLUB's allocation is its slow path", slub[_slow_of_allocation], SLOW_OF_ALLOCATION["slub"],
             "why boots differ is left open"),
        _met("SLAB takes 20.32%", slab[_whole], WHOLE["slab"], _absolute(data["slab"])),
        Claim("SLAB takes less than SLUB", below(slab[_whole], slub[_whole]), f"{_window(slab[_whole])} for {_window(slub[_whole])}"),
        _met("SLOB takes 68.89%", slob[_whole], WHOLE["slob"], _absolute(data["slob"])),
        Claim("SLOB takes the most by far (rule: twice any other, in every boot)", _by_far(whole, "slob"), _listed(whole)),
        Claim(
            "98 to 99% of SLOB's time is waiting for its one lock (rule: 90% or more in every boot)",
            below([90.0], slob[_waiting]),
            f"{_window(slob[_waiting])}; within pages it searches for {_window(searched)} of its time; by CPUs: yoo waiting",
        ),
    ]  # fmt: skip
    bars = charts.bars(
        ["allocation", "freeing", "waiting for a lock"],
        [
            (text, [repeated(ALLOCATION.get(text), [*map(_allocation, mine)]), repeated(FREEING.get(text), [*map(_freeing, mine)]),
                    repeated(None, [_whole(one) * _waiting(one) / 100 for one in mine])])
            for text, mine in data.items()
        ],
        "% of all instructions",
    )  # fmt: skip
    return Outcome(sheets, claims, [Picture("Shares", bars), *_graphs(data)], stands_for=_STANDS_FOR)


def _met(text: str, ours: Sequence[float], his: float | str, because: str) -> Claim:
    """Whether his figure is met in every boot, or in none."""
    middle = Figure(his, None).of_paper or 0.0
    near = [NEAR[0] <= one / middle <= NEAR[1] for one in ours]
    holds = True if all(near) else None if any(near) else False
    return Claim(f"{text} (rule: {NEAR[0]} to {NEAR[1]} times that)", holds, f"{_window(ours)} here; {because}")


def _absolute(boots: Sequence[Data]) -> str:
    """What an allocator executes, and the rest of the kernel: of which of the two a share is made."""
    own = [(one["alloc"] + one["free"]) * one["kernel"] / 1e6 for one in boots]
    rest = [one["kernel"] / 1e6 - mine for one, mine in zip(boots, own, strict=True)]
    return (
        f"it executes {min(own):.0f} to {max(own):.0f} million instructions, the rest of the kernel {min(rest):.0f} to {max(rest):.0f} "
        "million; what caches add is left open"
    )


def _by_far(found: Mapping[str, Sequence[float]], name: str) -> bool | None:
    return every(below([BY_FAR * one for one in mine], found[name]) for other, mine in found.items() if other != name)


def _window(values: Sequence[float]) -> str:
    return f"{statistics.fmean(values):.1f}% ({min(values):.1f} to {max(values):.1f})"


def _listed(found: Mapping[str, Sequence[float]]) -> str:
    return ", ".join(f"{text} {_window(values)}" for text, values in found.items())


def _functions(boot: Data) -> Sheet:
    """SLUB's four functions, as his text names them, with what they call."""
    weights: Counter[str] = Counter()
    for stack, count in unpacked(boot["boxes"]).items():
        weights.update(dict.fromkeys(FUNCTIONS.keys() & set(stack), count))
    whole = boot["kernel"] + boot["programs"]
    rows = [(name, Figure(his, 100 * weights[name] / whole)) for name, his in FUNCTIONS.items()]
    return Sheet("SLUB's functions with what they call, of all, in one boot", "%", rows)


def _graphs(data: Data) -> list[Picture]:
    """The three graphs side by side, in one scale: allocation blue, freeing orange, their slow paths darker."""
    look: dict[str, Value] = {"width": "100%", "font-size": 11, "font-family": "system-ui, 'DejaVu Sans', sans-serif"}
    found = []
    for text in LINUX:
        stacks = unpacked(data[text][0]["boxes"])
        svg = str(icicle.picture(stacks, kinds.KINDS[data[text][0].get("kind", text)].slow, f"{text} under hackbench", look, GRAPH_WIDTH))
        words = f"{text}: stacks of the kernel, callees below; allocation blue, freeing orange, slow paths darker"
        found.append(Picture(words, svg, beside=26))
    return found


# ---- Waiting for SLOB's lock -------------------------------------------------------------------------------------


def _measure_waiting(work: Work) -> Data:
    by_cpus, by_turn = (BY_CPUS[:3:2], ()) if work.quick else (BY_CPUS, BY_TURN)
    boots = [*((cpus, TURN) for cpus in by_cpus), *((CPUS, turn) for turn in by_turn)]

    def name(cpus: int, turn: int) -> str:
        return f"slob, {cpus} CPUs, turns of {turn}"

    found = work.side_by_side({name(*boot): functools.partial(counted, "slob", *boot, work) for boot in boots})
    return {
        "cpus": {str(cpus): found[name(cpus, TURN)] for cpus in by_cpus},
        "turns": {str(turn): found[name(CPUS, turn)] for turn in by_turn},
    }


def _judge_waiting(data: Data) -> Outcome:
    by_cpus = {int(cpus): (_whole(one), _waiting(one)) for cpus, one in data["cpus"].items()}
    by_turn = {int(turn): (_whole(one), _waiting(one)) for turn, one in data["turns"].items()}
    sheets = [
        Sheet(f"SLOB's {what}", "%", [(counted_noun(cpus, "CPU"), Figure(None, one[place])) for cpus, one in by_cpus.items()]
              + [(f"{CPUS} CPUs in turns of {turn:,} instructions", Figure(None, one[place])) for turn, one in by_turn.items()])
        for place, what in enumerate(("share of all instructions", "waiting, of its allocation and freeing"))
    ]  # fmt: skip
    least, most = min(by_cpus), max(by_cpus)
    reached = [cpus for cpus, one in by_cpus.items() if one[0] >= WHOLE["slob"]]
    turning = f"his share is reached from {min(reached)} CPUs on" if reached else "his share is not reached"
    claims = [
        Claim(
            "SLOB's share is high because of its one lock (rule: it grows with the CPUs, and on most it is more than half waiting)",
            by_cpus[most][0] > by_cpus[least][0] and by_cpus[most][1] > 50,
            "; ".join(
                f"{counted_noun(cpus, 'CPU')}: {share:.1f}% of all, {waits:.1f}% of it waiting" for cpus, (share, waits) in by_cpus.items()
            )
            + f"; {turning}",
        ),
    ]
    series = [Line(name, [(cpus, one[place]) for cpus, one in by_cpus.items()]) for place, name in enumerate(("of all", "waiting, of it"))]
    pictures = [Picture("SLOB by CPUs", charts.lines(series, "CPUs", "%", from_zero=True))]
    return Outcome(sheets, claims, pictures, stands_for=_STANDS_FOR)


# ---- Threads -----------------------------------------------------------------------------------------------------

THREADS = (1, 2, 4)
WORKLOAD = "hackbench"
QUICK_OPERATIONS = 2000  # of a thread, a tenth of the workload's own


def _measure_threads(work: Work) -> Data:
    def part(count: int, turn: int) -> Data:
        """A run of each, whose operations are sampled."""
        operations = QUICK_OPERATIONS if work.quick else None
        planned = threads.Plan(LINUX, [WORKLOAD], (count,), runs=1, seed=turn, operations=operations)
        made = threads.run(planned, work.progress)
        return {one["run"]["allocator"]: {name: one["timed"].get(name) for name in _KEPT} for one in made}

    def runs(count: int) -> list[Data]:
        return [work.once(f"{count}, run {turn + 1}", functools.partial(part, count, turn)) for turn in range(work.repetitions)]

    load = work.once("load", lambda: round(os.getloadavg()[0], 1))
    return {"load": load, **{str(count): runs(count) for count in THREADS}}


_KEPT = ("allocator_share", "lock_waits", "lock_wait_share", "operations")


def _judge_threads(data: Data) -> Outcome:
    cells = [(text, count, data[str(count)]) for count in THREADS for text in LINUX]
    share = {(text, count): [100 * one[text]["allocator_share"] for one in runs] for text, count, runs in cells}
    away = {(text, count): [100 * one[text]["lock_wait_share"] for one in runs] for text, count, runs in cells}
    waits = {(text, count): [one[text]["lock_waits"] / one[text]["operations"] for one in runs] for text, count, runs in cells}
    sheets = [
        Sheet(title, unit, [(f"{text}, {_groups(count)}", repeated(None, samples)) for (text, count), samples in found.items()])
        for title, unit, found in (
            ("the allocator's share of the threads' processor time", "%", share),
            ("of the threads' time by the clock, asleep or yielding for a lock", "%", away),
            ("waits for a lock, of an operation", "waits", waits),
        )
    ]  # fmt: skip
    most = max(THREADS)
    at_most = {text: share[text, most] for text in LINUX}
    given = {text: away[text, most] for text in LINUX}
    by_groups = {count: waits["slob", count] for count in THREADS}
    claims = [
        Claim(
            "SLOB takes by far the largest share (rule: twice any other's, in every run)",
            _by_far(at_most, "slob"),
            f"{_listed(at_most)} with {_groups(most)}",
        ),
        Claim(
            "since everybody waits for its one lock (rule: its waits an operation grow with the groups, and with most it gives more of its "
            "time away for a lock than any other)",
            every((ordered(by_groups, THREADS), greatest(given, "slob"))),
            "; ".join(f"{statistics.fmean(found):.3f} ({min(found):.3f} to {max(found):.3f}) waits an operation with {_groups(count)}"
                      for count, found in by_groups.items())
            + f"; asleep or yielding for a lock, of all time, with {_groups(most)}: {_listed(given)}",
        ),
    ]  # fmt: skip
    stands_for = (
        f"Threads that send each other messages (slabyard threads --workload {WORKLOAD}) on this machine, timed: the share of the "
        "allocator in their processor time, where what they spin for a lock is in it, and, of their time by the clock, what they gave "
        "their processor away for a lock. There is no kernel in it, so his percentages are of something else. A first version added clock "
        "waits to processor time, each sampled wait 64 times, and gave SLAB 99%. The rules had no windows when these runs were made."
    )
    notes = [
        "40 threads a group on two processors: while one of them yields for a lock, others run. In a run of its own, without samples, "
        "97 to 100% of the time so given away was time in the scheduler's queue of those that may run (schedstat).",
        f"When it began, the load of its two processors was {data['load']:g}: others worked on them.",
    ]
    return Outcome(sheets, claims, stands_for=stands_for, notes=notes)


def _groups(count: int) -> str:
    return f"{count} group{'s' * (count > 1)} of threads"


ITEMS: list[Item] = [
    Item(
        "yoo",
        "shares",
        "Time of hackbench in the allocator, and the flame graphs",
        "sections SLUB, SLAB, SLOB",
        _measure_shares,
        _judge_shares,
        check,
        kernels=KERNELS,
        quick="It boots Linux's own allocators, once each; none of ours.",
    ),
    Item(
        "yoo", "waiting", "Waiting for SLOB's lock", "section SLOB", _measure_waiting, _judge_waiting, check, kernels=KERNELS,
        quick="It boots SLOB on one CPU and on four, in turns of one length.",
    ),
    Item("yoo", "threads", "The allocator's share among threads", "sections SLUB, SLAB, SLOB", _measure_threads, _judge_threads),
]
