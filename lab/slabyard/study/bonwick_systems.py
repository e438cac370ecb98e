"""Bonwick 1994, section 5.3 and the last column of 5.2: what the slab allocator gains for a whole system.

A kernel with all of our policies is booted on each allocator in turn, for x86-64 in an emulator, and runs one workload for each line of
his table: what stands for which is in LINES. Nothing is timed. The emulator's clock counts instructions, so what the guest takes for
seconds is what its programs and its kernel execute, and simulated caches count the kernel's misses: the same on every run.

A gain is by how much more work is done in a time: instructions under SVr4 / instructions under the slab allocator - 1.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..base.errors import UserError
from ..kernels import build, cost, kinds, machine, run, tools, workloads
from .bonwick_memory import HIS, PAPER, TITLES
from .model import Claim, Data, Figure, Item, Outcome, Sheet
from .work import Work

NEW, OLD = "bonwick", "svr4"
OTHERS = ("yard", "slub")
GUEST = machine.Hardware(1 << 30, 1, 1, "tcg")
KENBUS = "kenbus"
KERNELS = (("x86_64", "slabyard", False),)


@dataclass(frozen=True)
class Line:
    """A line of his table: the gain in percent, and what stands for the workload here."""

    paper: str
    gain: float
    workload: str
    stands_for: str

    @property
    def title(self) -> str:
        return self.paper if self.paper == self.workload else f"{self.paper}: {self.workload}"


LINES = (
    Line("DeskBench", 12, "hackbench", "messages over sockets, as between a window system and its clients"),
    Line("kenbus", 17, KENBUS, "six users' scripts"),
    Line("TPC-B", 4, "database", "sqlite transactions on ext4 on a ram disk"),
    Line("LADDIS", 3, "files", "four clients' files on ext4 on a ram disk, without a network"),
    Line("parallel make", 5, "make", "24 files in assembly, four at a time, on one CPU"),
    Line("terminal server", 5, "typing", "32 users' shells behind pipes"),
)
QUICK = ("database",)
USERS = {6: "Six", 2: "Two"}  # of kenbus; the latter in a quick run
SCRIPTS = 8  # of each of them
FEWER_MISSES = {"TPC-B": (5, 2), "parallel make": (5, 4)}  # notes 2 and 3: percent fewer primary, secondary misses
SWITCHES = 0.25  # of the context switches: where they differ by more, allocators ran in different schedules
KERNEL_SHARE = {OLD: 25, NEW: 20}  # note 4: percent of the time in the kernel, terminal server


def check() -> None:
    """UserError where a tool is missing."""
    build.check("x86_64")
    tools.boot("x86_64")
    cost.check()
    for line in LINES:
        workloads.parse(line.workload)


# ---- Boots ----------------------------------------------------------------------------------------------------------------


def measure(work: Work) -> Data:
    """Boots of every workload."""
    chosen = [line.workload for line in LINES if not work.quick or line.workload in QUICK]
    return {"boots": {workload: boots(work, workload) for workload in chosen}}


def measure_kenbus(work: Work) -> Data:
    """Boots of kenbus alone, which are the same."""
    return {"boots": {KENBUS: boots(work, KENBUS)}}


def boots(work: Work, workload: str) -> dict[str, Any]:
    """One boot under each allocator: seconds of the clock that counts instructions, and what the kernel executed."""
    found: dict[str, Any] = work.shared(
        "bonwick", workload, lambda: _boots(work, workload), lambda data: data.get("boots", {}).get(workload)
    )
    return found


def _boots(work: Work, workload: str) -> dict[str, Any]:
    names = HIS if work.quick else (*HIS, *OTHERS)
    specs = work.specs(f"slabyard:{name}" for name in names)
    kernel = work.kernel("x86_64", kinds.KINDS["slabyard"])
    job = workloads.parse(workload)
    if work.quick and workload == KENBUS:
        job = dataclasses.replace(job, command=["sh", "/slabyard/kenbus", str(min(USERS)), "1"])

    def count(name: str) -> dict[str, Any]:
        plan = machine.Plan(specs[f"slabyard:{name}"], kernel, job, GUEST, timeout=1800)
        done = run.count(plan, GUEST)
        assert done.cost is not None
        figures = {what: done.figures[what] for what in ("seconds", "user_seconds", "system_seconds", "context_switches")}
        figures |= {what: done.cost[what] for what in ("operations", "instructions", "l1_misses", "ll_misses", "kernel")}
        return {**figures, "scripts": scripts(done.texts["output"])} if workload == KENBUS else figures

    titles = {f"{workload} on {name}": functools.partial(count, name) for name in names}
    return dict(zip(names, work.side_by_side(titles).values(), strict=True))


def scripts(output: str) -> int:
    """How many scripts kenbus has run, as its last line has them."""
    told = re.search(r"^kenbus: (\d+) scripts in", output, re.MULTILINE)
    if told is None:
        raise UserError(f"kenbus did not say how many scripts it ran: {output.strip()[-200:]}")
    return int(told[1])


# ---- Judging ---------------------------------------------------------------------------------------------------------------

Boots = Mapping[str, Mapping[str, Any]]  # of one workload, by allocator


def whole(boot: Mapping[str, Any]) -> float:
    """Instructions that programs and kernel execute: one is a nanosecond of the guest's."""
    return float(boot["user_seconds"] + boot["system_seconds"]) * 1e9


def gain(of: Boots, old: str = OLD) -> float:
    """Of slab, in percent."""
    return 100 * (whole(of[old]) / whole(of[NEW]) - 1)


def fewer(of: Boots, what: str) -> float:
    """Percent fewer of the whole kernel's under slab than under SVr4."""
    return 100 * (1 - of[NEW]["kernel"][what] / of[OLD]["kernel"][what])


def kernel_share(boot: Mapping[str, Any]) -> float:
    """Percent of all instructions."""
    return float(100 * boot["kernel"]["instructions"] / whole(boot))


def allocator_share(boot: Mapping[str, Any]) -> float:
    """Percent of the kernel's instructions."""
    return float(100 * boot["instructions"] * boot["operations"] / boot["kernel"]["instructions"])


def judge(data: Data) -> Outcome:
    """His table beside ours, what each kernel executed, and its misses."""
    found: Mapping[str, Boots] = data["boots"]
    there = [(line, found[line.workload]) for line in LINES if line.workload in found]
    each = [(line, name, boot) for line, of in there for name, boot in of.items()]
    shares = [
        (f"{line.title}, {TITLES[name]}", Figure(KERNEL_SHARE.get(name) if line.workload == "typing" else None, kernel_share(boot)))
        for line, name, boot in each
    ]
    misses = [
        (f"{line.title}, {level}", Figure(FEWER_MISSES.get(line.paper, (None, None))[at], fewer(of, what)))
        for line, of in there
        for at, (level, what) in enumerate((("primary cache", "l1_misses"), ("secondary cache", "ll_misses")))
    ]
    over = [
        (f"{line.title}, over {TITLES[name]}", Figure(None, gain(of, name))) for line, of in there for name in of if name not in (NEW, OLD)
    ]
    sheets = [
        Sheet("Gain of slab over SVr4", "% of all instructions", [(line.title, Figure(line.gain, gain(of))) for line, of in there], "%"),
        Sheet("Gain of slab over the others", "% of all instructions", over),
        Sheet("The kernel's share", "% of all instructions", shares, "% of the time"),
        Sheet("Kernel instructions saved by slab over SVr4", "%",
              [(line.title, Figure(None, fewer(of, "instructions"))) for line, of in there]),
        Sheet("Misses that the kernel has less under slab than under SVr4", "%", misses, notes=[f"Caches: {cost.CACHE_MODEL}."]),
        Sheet("Instructions of one allocation or free", "instructions",
              [(f"{line.title}, {TITLES[name]}", Figure(None, boot["instructions"])) for line, name, boot in each]),
        Sheet("The allocator's share of the kernel's instructions", "%",
              [(f"{line.title}, {TITLES[name]}", Figure(None, allocator_share(boot))) for line, name, boot in each]),
        Sheet("Context switches", "",
              [(f"{line.title}, {TITLES[name]}", Figure(None, boot["context_switches"])) for line, name, boot in each],
              notes=["Those of hackbench change with another build of the same allocator, and with them its kernel's instructions."]),
    ]  # fmt: skip
    told = "; ".join(f"{line.paper}: {line.workload}, {line.stands_for}" for line, _ in there) + "."
    return Outcome(sheets, _claims(there), stands_for=_STANDS_FOR, notes=[told])


def _claims(there: Sequence[tuple[Line, Boots]]) -> list[Claim]:
    turned = [(line, of) for line, of in there if _another_schedule(of)]
    same = [(line, of) for line, of in there if not _another_schedule(of)]
    claims = [
        Claim(
            f"Slab gains over SVr4 in {line.paper}",
            None,
            f"{_gained(of)}; context switches change with another build of either, so one build of each does not tell",
        )
        for line, of in turned
    ]
    if same:
        names = ", ".join(line.paper for line, _ in same)
        told = "; ".join(f"{line.paper}: {_gained(of)}" for line, of in same)
        claims.append(Claim(f"Slab gains over SVr4 in {names}", all(gain(of) > 0 for _, of in same), told))
    claims += [_of_that_size(line, of) for line, of in there]
    for line, of in there:
        if line.workload == "typing":
            old, new = kernel_share(of[OLD]), kernel_share(of[NEW])
            text = "The kernel's share of a terminal server falls from 25 to 20%, by a fifth (here: by a tenth at least)"
            claims.append(Claim(text, new <= 0.9 * old, f"from {old:.1f} to {new:.1f}% of all instructions"))
        if line.paper in FEWER_MISSES:
            primary, secondary = FEWER_MISSES[line.paper]
            l1, ll = fewer(of, "l1_misses"), fewer(of, "ll_misses")
            text = f"{line.paper} has {primary}% fewer primary and {secondary}% fewer secondary misses (here: half of each at least)"
            near = l1 >= primary / 2 and ll >= secondary / 2
            claims.append(Claim(text, near, f"{l1:+.1f}% and {ll:+.1f}% fewer, of the kernel's own accesses"))
    return claims


def _another_schedule(of: Boots) -> bool:
    """Whether the two kernels' tasks were scheduled otherwise, so that more than the allocator differs."""
    old, new = (of[name]["context_switches"] for name in (OLD, NEW))
    return bool(abs(new - old) > SWITCHES * old)


def _gained(of: Boots) -> str:
    switches = "{:,} and {:,}".format(*(of[name]["context_switches"] for name in (OLD, NEW)))
    return (
        f"{gain(of):+.1f}%, with {fewer(of, 'instructions'):.1f}% fewer instructions of the kernel, of which the allocator's are "
        f"{allocator_share(of[OLD]):.0f}% under SVr4, {allocator_share(of[NEW]):.0f}% under slab ({switches} context switches)"
    )


def _of_that_size(line: Line, of: Boots) -> Claim:
    free = 100 * whole(of[OLD]) / (whole(of[OLD]) - allocator_share(of[OLD]) * of[OLD]["kernel"]["instructions"] / 100) - 100
    told = f"{gain(of):+.1f}%; even a free allocator could gain no more than its own share: {free:.1f}%"
    text = f"The gain in {line.paper} is {line.gain:g}% (here: half of that at least)"
    return Claim(text, None if _another_schedule(of) else gain(of) >= line.gain / 2, told)


_STANDS_FOR = (
    "One Linux with each allocator, on one emulated CPU whose clock counts instructions, for SunOS 5.3 and 5.4: nothing but the "
    "allocator differs, where his gains are of all that changed. Misses are counted, and cost no time. There is memory to spare, so "
    "gains by more room for programs (DeskBench and kenbus in 16 MB) cannot show. Few caches of Linux have constructors."
)


def judge_kenbus(data: Data) -> Outcome:
    """The last column of his table beside ours."""
    of: Boots = data["boots"][KENBUS]
    count = of[NEW]["scripts"]
    rate = {name: 60 * boot["scripts"] / boot["seconds"] for name, boot in of.items()}
    rows = [(TITLES[name], Figure(PAPER[name][4] if name in PAPER else None, a_minute)) for name, a_minute in rate.items()]
    margin = 100 * (rate[NEW] / max(rate[name] for name in HIS if name != NEW) - 1)
    fractions = [allocator_share(of[name]) * kernel_share(of[name]) / 100 for name in HIS]
    bound = f"the allocator is {min(fractions):.1f} to {max(fractions):.1f}% of all instructions, so that is what there is to gain"
    claims = [
        Claim("Slab runs most scripts a minute", margin > 0, f"{margin:+.1f}% over the next"),
        Claim("It runs 11% more than the next (here: at least 5%)", margin >= 5, f"{margin:+.1f}%; {bound}"),
        Claim("SunOS 4.1.3 runs more than 4.4BSD, as it holds less memory", None,
              f"{rate['sunos4']:,.0f} and {rate['bsd44']:,.0f} with memory to spare, where holding less gains nothing"),
    ]  # fmt: skip
    stands_for = (
        f"{USERS[count // SCRIPTS]} users' {count} scripts on one emulated CPU and 1 GiB, whose minute is 60 thousand million "
        "instructions, for kenbus on a 16 MB SPARCstation 1 that was short of memory: the allocators' speed alone. How much faster "
        "programs get with more free memory was not measured."
    )
    return Outcome([Sheet("Kenbus", "scripts a minute", rows)], claims, stands_for=stands_for)


KENBUS_RATE = Item(
    "bonwick", KENBUS, "Kenbus: scripts per minute", "section 5.2, first table, last column", measure_kenbus, judge_kenbus, check,
    kernels=KERNELS, quick="Two users run their scripts, not six, under the paper's four allocators, not those that came later.",
)  # fmt: skip
SYSTEMS = Item(
    "bonwick", "systems", "System performance with the slab allocator", "section 5.3", measure, judge, check, kernels=KERNELS,
    quick="It runs TPC-B alone, under the paper's four allocators, not those that came later.",
)  # fmt: skip
