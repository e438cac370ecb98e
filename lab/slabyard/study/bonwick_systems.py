"""Bonwick 1994, section 5.3: what the slab allocator gains for a whole system over the SVr4 allocator that it replaced.

A kernel with all of our policies is booted on each of his allocators in turn and runs one workload for each line of his table: what
stands for which is in WORKLOADS. Two things are measured:

    times    of user-mode kernels (native code): seconds of the workload, and processor seconds of the kernel's process
    counts   of kernels for x86-64 in an emulator: instructions that the kernel executes, and misses of simulated caches; the same on
             every run. Its clock counts instructions, so what the kernel accounts to programs and to itself are instructions too.

A gain is by how much more work is done in a time: time under SVr4 / time under the slab allocator - 1.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..kernels import build, cost, kinds, machine, run, tools, workloads
from .model import Claim, Data, Figure, Item, Outcome, Sheet
from .work import Work

HIS = {"bonwick": "slab", "svr4": "SVr4", "sunos4": "SunOS 4.1.3", "bsd44": "4.4BSD"}
OTHERS = {"yard": "yard"}
TITLES = {**HIS, **OTHERS}
NEW, OLD = "bonwick", "svr4"
COUNTING = machine.Hardware(1 << 30, 1, 1, "tcg")


@dataclass(frozen=True)
class Line:
    """A line of his table: the gain in percent, and what stands for the workload here."""

    paper: str
    gain: float
    workload: str
    stands_for: str


LINES = (
    Line("DeskBench", 12, "hackbench", "messages over sockets, as between a window system and its clients"),
    Line("kenbus", 17, "kenbus", "six users' scripts"),
    Line("TPC-B", 4, "database", "sqlite transactions on ext4 on a ram disk"),
    Line("LADDIS", 3, "files", "four clients' files on ext4 on a ram disk, without a network"),
    Line("parallel make", 5, "make", "24 files in assembly, four at a time, on one CPU"),
    Line("terminal server", 5, "typing", "32 users' shells behind pipes"),
)
QUICK = ("database", "files", "make")
QUICK_BOOTS = 2  # of each kernel: the fewest that tell how far boots differ
COUNTED = ("hackbench", "database", "files", "make", "typing")
FEWER_MISSES = {"TPC-B": (5, 2), "parallel make": (5, 4)}  # notes 2 and 3: percent fewer primary, secondary misses
KERNEL_SHARE = (25, 20)  # note 4: percent of the time in the kernel, terminal server: old, new


def check() -> None:
    """UserError where a tool is missing."""
    tools.boot("um")
    for line in LINES:
        workloads.parse(line.workload)


def measure(work: Work) -> Data:
    """Times of all lines, boots in turn; in a full study counts of those that an emulator runs in minutes."""
    names = (NEW, OLD) if work.quick else (*HIS, *OTHERS)
    chosen = [line.workload for line in LINES if not work.quick or line.workload in QUICK]
    times: dict[str, dict[str, list[dict[str, float]]]] = {name: {policy: [] for policy in names} for name in chosen}
    kernel = build.from_installed("um", kinds.parse("slabyard").kind)
    for workload, by_policy in times.items():
        for repetition in range(QUICK_BOOTS if work.quick else work.repetitions):
            for policy, samples in by_policy.items():
                plan = machine.Plan(kinds.parse(f"slabyard:{policy}"), kernel, workloads.parse(workload), machine.Hardware())
                samples.append(work.once(f"{workload} on {policy}, boot {repetition + 1}", lambda: _times(run.once(plan))))  # noqa: B023
    return {"times": times, "counts": {} if work.quick else _counts(work)}


def _times(done: run.Run) -> dict[str, float]:
    """Of one boot: the workload's time, and the processor time of the kernel's process."""
    return {"seconds": done.figures["seconds"], "kernel": done.figures["processor_seconds"]}


def _counts(work: Work) -> dict[str, dict[str, Any]]:
    cost.check()
    kernel = build.from_installed("x86_64", kinds.parse("slabyard").kind)
    found: dict[str, dict[str, Any]] = {name: {} for name in COUNTED}
    for workload, by_policy in found.items():
        for policy in (NEW, OLD):
            plan = machine.Plan(kinds.parse(f"slabyard:{policy}"), kernel, workloads.parse(workload), COUNTING, timeout=1800)
            by_policy[policy] = work.once(f"{workload} on {policy}, counted", lambda: _count(plan))  # noqa: B023
    return found


def _count(plan: machine.Plan) -> dict[str, Any]:
    done = run.count(plan, COUNTING)
    assert done.cost is not None
    accounted = {name: done.figures[name] for name in ("user_seconds", "system_seconds")}
    return {**accounted, **{name: done.cost[name] for name in ("operations", "instructions", "l1_misses", "ll_misses", "kernel")}}


# ---- Judging ---------------------------------------------------------------------------------------------------------------------


def _samples(boots: Sequence[Mapping[str, float]], what: str) -> list[float]:
    return [boot[what] for boot in boots]


def _gain(old: float, new: float) -> float:
    """Percent."""
    return 100 * (old / new - 1)


def _gains(by_policy: Mapping[str, Sequence[Mapping[str, float]]], what: str, old: str = OLD) -> Figure:
    """By means; with the least and the greatest gain of boots that followed each other."""
    new, than = _samples(by_policy[NEW], what), _samples(by_policy[old], what)
    pairs = [_gain(b, a) for a, b in zip(new, than, strict=True)]
    return Figure(None, _gain(statistics.fmean(than), statistics.fmean(new)), min(pairs), max(pairs))


def _whole(counted: Mapping[str, Any]) -> float:
    """What programs and kernel execute, in seconds of a clock that counts instructions."""
    return float(counted["user_seconds"] + counted["system_seconds"])


def judge(data: Data) -> Outcome:
    """His table beside ours, in the kernel's time, in counts, and in the share of the kernel."""
    times, counts = data["times"], data["counts"]
    there = [line for line in LINES if line.workload in times]
    whole = {line.workload: _gains(times[line.workload], "seconds") for line in there}
    kernel = {line.workload: _gains(times[line.workload], "kernel") for line in there}
    titles = {line.workload: f"{line.paper}: {line.workload}" for line in LINES}
    sheets = [
        Sheet("Gain of slab over SVr4", "% of the workload's time",
              [(titles[line.workload], _of_paper(line.gain, whole[line.workload])) for line in there], "%"),
        Sheet("The same in the kernel alone", "% of the kernel's processor time",
              [(titles[name], figure) for name, figure in kernel.items()]),
    ]  # fmt: skip
    more = [policy for policy in next(iter(times.values())) if policy not in (NEW, OLD)]
    if more:
        rows = [(f"{titles[name]}, over {TITLES[policy]}", _gains(times[name], "kernel", policy)) for name in times for policy in more]
        sheets.append(Sheet("Gain of slab over the other allocators, in the kernel alone", "% of the kernel's processor time", rows))
    if counts:
        sheets += _counted(counts, titles)
    return Outcome(sheets, _claims(there, whole, kernel, counts), stands_for=_STANDS_FOR, notes=[_what_stands_for_what()])


def _of_paper(paper: float, ours: Figure) -> Figure:
    return Figure(paper, ours.ours, ours.least, ours.greatest)


def _fewer(by_policy: Mapping[str, Any], what: str) -> float:
    """Percent fewer of the whole kernel's under slab than under SVr4."""
    return 100 * (1 - by_policy[NEW]["kernel"][what] / by_policy[OLD]["kernel"][what])


def _counted(counts: Mapping[str, Mapping[str, Any]], titles: Mapping[str, str]) -> list[Sheet]:
    gains = {line.workload: line.gain for line in LINES}
    bottom = [(titles[name], Figure(gains[name], _gain(_whole(of[OLD]), _whole(of[NEW])))) for name, of in counts.items()]
    of_kernel = [
        (f"{titles[name]}, {HIS[policy]}", Figure(paper if name == "typing" else None, 100 * found["system_seconds"] / _whole(found)))
        for name, of in counts.items()
        for policy, paper in ((NEW, KERNEL_SHARE[1]), (OLD, KERNEL_SHARE[0]))
        if (found := of[policy])
    ]
    papers = {line.workload: FEWER_MISSES.get(line.paper, (None, None)) for line in LINES}
    rows = [(titles[name], Figure(None, _fewer(of, "instructions"))) for name, of in counts.items()]
    misses = [
        (f"{titles[name]}, {level}", Figure(papers[name][at], _fewer(of, what)))
        for name, of in counts.items()
        for at, (level, what) in enumerate((("primary cache", "l1_misses"), ("secondary cache", "ll_misses")))
    ]
    own = [
        (f"{titles[name]}, {HIS[policy]}", Figure(None, found["instructions"]))
        for name, of in counts.items()
        for policy, found in of.items()
    ]
    share = [
        (
            f"{titles[name]}, {HIS[policy]}",
            Figure(None, 100 * found["instructions"] * found["operations"] / found["kernel"]["instructions"]),
        )
        for name, of in counts.items()
        for policy, found in of.items()
    ]
    return [
        Sheet("Gain of slab over SVr4, counted", "% of all instructions", bottom, "%"),
        Sheet("The kernel's share under slab and SVr4", "% of all instructions", of_kernel, "% of the time"),
        Sheet("Instructions that the kernel executes less under slab than under SVr4", "%", rows),
        Sheet("Misses that the kernel has less under slab than under SVr4", "%", misses, notes=[f"Caches: {cost.CACHE_MODEL}."]),
        Sheet("Instructions of one allocation or free", "instructions", own),
        Sheet("The allocator's share of the kernel's instructions", "%", share),
    ]


def _claims(
    there: Sequence[Line], whole: Mapping[str, Figure], kernel: Mapping[str, Figure], counts: Mapping[str, Mapping[str, Any]]
) -> list[Claim]:  # fmt: skip
    found = []
    for line in there:
        ours = kernel[line.workload]
        told = f"the workload {_told(whole[line.workload])}, its kernel {_told(ours)}"
        if line.workload in counts:
            fewer = _fewer(counts[line.workload], "instructions")
            told += f"; counted: {fewer:+.1f}% fewer instructions in the kernel"
            holds = fewer > 0
        else:
            holds = ours.least is not None and ours.least > 0
        found.append(Claim(f"Slab gains over SVr4 in {line.paper} ({line.gain:g}%)", holds, told))
    if "typing" in counts:
        shares = [100 * found["system_seconds"] / _whole(found) for found in (counts["typing"][OLD], counts["typing"][NEW])]
        text = "The kernel's share of a terminal server falls from 25 to 20%, by a fifth (here: by a tenth at least)"
        found.append(Claim(text, shares[1] <= 0.9 * shares[0], f"from {shares[0]:.1f} to {shares[1]:.1f}% of all instructions"))
    for paper, (primary, secondary) in FEWER_MISSES.items():
        name = next(line.workload for line in LINES if line.paper == paper)
        if name in counts:
            l1, ll = (_fewer(counts[name], what) for what in ("l1_misses", "ll_misses"))
            text = f"{paper} has {primary}% fewer primary and {secondary}% fewer secondary misses"
            found.append(Claim(text, l1 > 0 and ll > 0, f"{l1:+.1f}% and {ll:+.1f}% fewer, of the kernel's own accesses"))
    return found


def _told(gain: Figure) -> str:
    return f"{gain.ours:+.1f}% (boot by boot {gain.least:+.1f} to {gain.greatest:+.1f}%)"


def _what_stands_for_what() -> str:
    return "; ".join(f"{line.paper}: {line.workload}, {line.stands_for}" for line in LINES) + "."


_STANDS_FOR = (
    "One Linux 6.1 with both allocators for SunOS 5.3 and 5.4: nothing but the allocator differs, where his gains are of all that changed. "
    "User-mode kernels have one CPU and memory to spare, so gains by more room for programs (DeskBench and kenbus in 16 MB) cannot show. "
    "Few caches of Linux have constructors. A gain by times holds where it shows in every boot."
)

ITEMS = [
    Item("bonwick", "systems", "System performance with the slab allocator", "section 5.3", measure, judge, check),
]
