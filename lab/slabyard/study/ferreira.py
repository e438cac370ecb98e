"""Ferreira, Matias, Macedo, Evangelista 2015: sysbench on kernels with SLAB, SLOB, SLUB and SLQB, on one to eight cores.

Seven items: figures 7 to 9, tables 1 to 3, and the questions that section 5 leaves open. All judge the same boots (ferreira_runs.py).

Rules. One allocator is below another where the greatest of its repetitions is below the least of the other's; so nothing is an order
that another run may turn round. An order of several holds where each is below the next. Figures over all numbers of CPUs are means of
them, taken of each repetition by itself. What is counted on one CPU has no repetitions: it is the same each time.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from ..base.table import show
from ..kernels import sysbench
from . import charts, ferreira_runs
from .ferreira_runs import ALLOCATORS, THEIR_FILES_MB, THEIR_GIGABYTES, THEIR_WRITES
from .model import Claim, Data, Figure, Item, Outcome, Picture, Sheet, repeated

PAPERS_OWN = ("SLAB", "SLOB", "SLUB", "SLQB")
CORES = range(1, 9)
FIGURE_7 = {"SLOB": 369.88, "SLAB": 378.88, "SLUB": 382.13, "SLQB": 384.50}  # s, means over the cores; section 4.1
FIGURE_8 = {"SLOB": 186.75, "SLUB": 188.25, "SLAB": 193.13, "SLQB": 291.50}  # MB, means over the cores; section 4.1
TABLE_1 = {  # s, by cores
    "SLAB": (178.6, 95.9, 67.4, 50.9, 55.8, 62.2, 67.3, 67.4),
    "SLOB": (162.1, 99.6, 70.0, 53.0, 56.7, 61.1, 66.8, 67.0),
    "SLUB": (191.7, 102.3, 72.1, 54.6, 57.0, 61.5, 66.3, 66.8),
    "SLQB": (204.5, 105.1, 73.7, 55.9, 57.3, 61.6, 64.8, 65.7),
}
TABLE_2 = {  # MB, by cores
    "SLAB": (138, 139, 139, 139, 140, 141, 141, 142),
    "SLOB": (103, 88, 89, 98, 90, 125, 125, 126),
    "SLUB": (135, 136, 136, 137, 137, 138, 138, 140),
    "SLQB": (260, 257, 260, 259, 259, 261, 262, 264),
}
TABLE_3 = {  # ranks
    "Time (I/O)": {"SLAB": 2, "SLOB": 1, "SLUB": 3, "SLQB": 4},
    "Memory (I/O)": {"SLAB": 3, "SLOB": 1, "SLUB": 2, "SLQB": 4},
    "Frag. (I/O)": {"SLAB": 1, "SLOB": 4, "SLUB": 2, "SLQB": 3},
    "Time (transf.)": {"SLAB": 2, "SLOB": 1, "SLUB": 3, "SLQB": 4},
    "Memory (transf.)": {"SLAB": 3, "SLOB": 1, "SLUB": 2, "SLQB": 4},
}
COLUMNS = {
    "Time (I/O)": "fileio_seconds", "Memory (I/O)": "fileio_used", "Frag. (I/O)": "fileio_events",
    "Time (transf.)": "memory_seconds", "Memory (transf.)": "memory_used",
}  # fmt: skip
CLOSE = 0.01  # as SLOB's and SLUB's means of figure 8, which they call very close; less is no difference
STEADY = 0.05  # least to greatest over the mean: SLAB, SLUB and SLQB of table 2, which they call virtually constant, have up to 4%
MIB = 1024  # KiB

Samples = Mapping[str, Sequence[float]]


# ---- The figures of the boots ----------------------------------------------------------------------------------------


class Runs:
    """The data of all boots (ferreira_runs.py). Memory in MiB."""

    def __init__(self, data: Data) -> None:
        self.data = data
        self.scale: dict[str, Any] = data["scale"]
        self.cpus: list[int] = self.scale["cpus"]

    def samples(self, name: str, cpus: int, figure: str) -> list[float]:
        unit = MIB if figure.endswith(("_used", "_own", "_slab")) else 1
        return [value / unit for value in self.data["timed"][name][str(cpus)][figure]]

    def at(self, cpus: int, figure: str, names: Sequence[str] = PAPERS_OWN) -> dict[str, list[float]]:
        return {name: self.samples(name, cpus, figure) for name in names}

    def mean(self, name: str, cpus: int, figure: str) -> float:
        return statistics.fmean(self.samples(name, cpus, figure))

    def over_cpus(self, figure: str, names: Sequence[str] = PAPERS_OWN) -> dict[str, list[float]]:
        """Of each repetition its mean over the numbers of CPUs."""
        columns = {name: [self.samples(name, cpus, figure) for cpus in self.cpus] for name in names}
        return {name: [statistics.fmean(turn) for turn in zip(*found, strict=True)] for name, found in columns.items()}

    def counted(self, name: str, mode: str, cpus: int) -> dict[str, Any]:
        found: dict[str, Any] = self.data["counted"][name][mode][str(cpus)]
        return found

    @property
    def stands_for(self) -> str:
        scale = self.scale
        return (
            f"Linux {self.data['kernel']} for x86-64 in QEMU's software emulation on {self.data['host_cpus']} processors, with "
            f"{', '.join(map(str, self.cpus))} CPUs and {ferreira_runs.MEMORY >> 20} MiB, for Linux 2.6.39 on eight cores with 24 GB; "
            f"SLQB by slabyard's policy. {ferreira_runs.THREADS} threads and {sysbench.FILES} files as theirs; "
            f"{scale['writes']:,} writes (1/{THEIR_WRITES // scale['writes']}), files of {ferreira_runs.FILES_MB} MiB in all "
            f"(1/{THEIR_FILES_MB // ferreira_runs.FILES_MB}), {scale['transferred_mb']:,} MiB transferred "
            f"(1/{THEIR_GIGABYTES * 1024 // scale['transferred_mb']}), {scale['repetitions']} of 5 repetitions. ext4 on a ram disk for "
            f"their disk. A guest of more CPUs than the host has takes turns on it, so no time here tells what eight real cores would do."
        )


# ---- Rules -----------------------------------------------------------------------------------------------------------


def below(one: Sequence[float], other: Sequence[float]) -> bool:
    return max(one) < min(other)


def ordered(found: Mapping[Any, Sequence[float]], names: Sequence[Any]) -> bool:
    return all(below(found[one], found[other]) for one, other in pairwise(names))


def least(found: Samples, name: str) -> bool:
    return all(below(found[name], found[other]) for other in found if other != name)


def greatest(found: Samples, name: str) -> bool:
    return all(below(found[other], found[name]) for other in found if other != name)


def catches_up(before: float, after: float) -> bool:
    """Whether what is behind by so much, as a ratio, is so by less."""
    return after < (1 - CLOSE) * before


def ranks(found: Samples) -> dict[str, int]:
    """1 and the number of those that are below."""
    return {name: 1 + sum(below(other, mine) for other in found.values()) for name, mine in found.items()}


def told(found: Samples, unit: str) -> str:
    """The figures, the least first: `SLOB 1.2 (1.1 to 1.3), SLAB 1.4 s`."""
    texts = []
    for name, values in sorted(found.items(), key=lambda one: statistics.fmean(one[1])):
        window = f" ({show(min(values))} to {show(max(values))})" if show(min(values)) != show(max(values)) else ""
        texts.append(f"{name} {show(statistics.fmean(values))}{window}")
    return f"{', '.join(texts)}{' ' if unit else ''}{unit}"


def _spread(values: Sequence[float]) -> float:
    """Least to greatest, over the mean."""
    return (max(values) - min(values)) / statistics.fmean(values)


# ---- What is shown ---------------------------------------------------------------------------------------------------


def _by_cpus(runs: Runs, title: str, figure: str, unit: str, paper: Mapping[str, Sequence[float]] | None = None, **more: Any) -> Sheet:
    rows = []
    for name in ALLOCATORS:
        of_paper = (paper or {}).get(name)
        for cpus in runs.cpus:
            theirs = None if of_paper is None else of_paper[cpus - 1]
            rows.append((f"{name}, {_cpus(cpus)}", repeated(theirs, runs.samples(name, cpus, figure))))
    return Sheet(title, unit, rows, **more)


def _means(runs: Runs, title: str, figure: str, unit: str, paper: Mapping[str, float], **more: Any) -> Sheet:
    found = runs.over_cpus(figure, tuple(ALLOCATORS))
    return Sheet(title, unit, [(name, repeated(paper.get(name), values)) for name, values in found.items()], **more)


def _drawn(runs: Runs, title: str, figure: str, y: str) -> Picture:
    lines = []
    for name in ALLOCATORS:
        found = [(float(cpus), runs.samples(name, cpus, figure)) for cpus in runs.cpus]
        windows = [(min(values), max(values)) for _, values in found]
        lines.append(charts.Line(name, [(cpus, statistics.fmean(values)) for cpus, values in found], windows))
    return Picture(title, charts.lines(lines, "CPUs", y, from_zero=True))


def _counted(runs: Runs, mode: str, cpus: int, of: int, unit: str) -> Sheet:
    """What was counted, for one of `of`."""
    rows = []
    for name in ALLOCATORS:
        found = runs.counted(name, mode, cpus)
        for what, key in (("the kernel", "kernel"), ("its allocator", "instructions"), ("waiting for its locks", "waiting")):
            rows.append((f"{name}: {what}", Figure(None, found[key] / of)))
    return Sheet(f"Instructions, counted, {_cpus(cpus)}", unit, rows)


def _cpus(cpus: int) -> str:
    return f"{cpus} CPU{'s' if cpus > 1 else ''}"


def _outcome(runs: Runs, sheets: Sequence[Sheet], claims: Sequence[Claim], pictures: Sequence[Picture] = (), *notes: str) -> Outcome:
    trouble = [f"The log of {line}" for line in runs.data["trouble"]]
    return Outcome(sheets, claims, pictures, runs.stands_for, [*notes, *trouble])


# ---- Figure 7: run time of fileio ------------------------------------------------------------------------------------


def figure_7(data: Data) -> Outcome:
    runs = Runs(data)
    figure, few, many = "fileio_seconds", [cpus for cpus in runs.cpus if cpus < 4], [cpus for cpus in runs.cpus if cpus >= 4]
    clock = {name: [runs.counted(name, "fileio", 1)["seconds"] * 1e3] for name in PAPERS_OWN}
    means = runs.over_cpus(figure)
    everywhere = {(name, cpus): runs.mean(name, cpus, figure) for name in PAPERS_OWN for cpus in runs.cpus}
    best, best_cpus = min(everywhere, key=lambda one: everywhere[one])
    leads = {name: sum(least(runs.at(cpus, figure), name) for cpus in runs.cpus) for name in PAPERS_OWN}
    lags = {name: sum(greatest(runs.at(cpus, figure), name) for cpus in runs.cpus) for name in PAPERS_OWN}
    half = len(runs.cpus) / 2
    variety = {name: [100 * _spread([runs.mean(name, cpus, figure) for cpus in runs.cpus])] for name in PAPERS_OWN}
    behind = {which: _behind(runs, figure, "SLQB", of) for which, of in (("few", few), ("many", many))}
    claims = [
        Claim(
            "On one core SLOB takes the shortest time (by a clock that counts instructions: exact)", least(clock, "SLOB"),
            f"{told(clock, 'ms')} of a nanosecond each instruction; {_allocator_of(runs, 'fileio', 1)}",
        ),
        Claim(
            "The shortest execution time of all was SLOB's in one core", (best, best_cpus) == ("SLOB", 1),
            f"the shortest mean is {best}'s on {_cpus(best_cpus)}, {show(everywhere[best, best_cpus])} s; SLOB's on one is "
            f"{show(everywhere['SLOB', 1])} s: {data['host_cpus']} processors of the host work for a guest that has as many",
        ),
        Claim(
            "None of the allocators was predominantly better or worse", max(*leads.values(), *lags.values()) <= half,
            f"numbers of CPUs, of {len(runs.cpus)}, at which one is below all others: {_listed(leads)}; above all: {_listed(lags)}",
        ),
        Claim(
            "SLQB's performance becomes competitive from four cores on", catches_up(behind["few"], behind["many"]),
            f"its time over the mean of the others': {behind['few']:.3f} on {_numbers(few)}, {behind['many']:.3f} on {_numbers(many)} CPUs",
        ),
        Claim(
            "SLUB varies most with the number of cores, SLOB least", variety["SLUB"] == max(variety.values())
            and variety["SLOB"] == min(variety.values()),
            f"least to greatest mean, of the mean: {told(variety, '%')}",
        ),
        Claim(
            "Over all cores the mean time is least for SLOB, then SLAB, SLUB, SLQB", ordered(means, list(FIGURE_7)),
            f"{told(means, 's')}, least to greatest of the repetitions; none is below another where these overlap",
        ),
    ]  # fmt: skip
    sheets = [
        _means(runs, "Run stage of fileio, mean over the numbers of CPUs", figure, "s", FIGURE_7, paper_unit="s, of 100 times the writes"),
        _by_cpus(runs, "Run stage of fileio (figure 7 has no figures in print)", figure, "s"),
        Sheet("Run stage on one CPU by a clock of counted instructions", "ms", [
            (name, Figure(None, runs.counted(name, "fileio", 1)["seconds"] * 1e3)) for name in ALLOCATORS
        ]),
        *(_counted(runs, "fileio", cpus, runs.scale["counted_writes"], "instructions of one write") for cpus in runs.scale["counted_on"]),
    ]  # fmt: skip
    return _outcome(runs, sheets, claims, [_drawn(runs, "Figure 7: run time of fileio", figure, "seconds")])


def _behind(runs: Runs, figure: str, name: str, cpus: Sequence[int]) -> float:
    """Its time over the mean of the others' times, on so many CPUs: the mean."""
    others = [other for other in PAPERS_OWN if other != name]
    return statistics.fmean(
        runs.mean(name, one, figure) / statistics.fmean(runs.mean(other, one, figure) for other in others) for one in cpus
    )


def _allocator_of(runs: Runs, mode: str, cpus: int) -> str:
    """What the allocators execute themselves, of all that the kernel does."""
    found = {name: runs.counted(name, mode, cpus) for name in PAPERS_OWN}
    shares = {name: [100 * one["instructions"] / one["kernel"]] for name, one in found.items()}
    calls = {name: [one["instructions"] / max(1, one["operations"])] for name, one in found.items()}
    return f"the allocator's share of the kernel's instructions is {told(shares, '%')}; one call takes {told(calls, 'instructions')}"


def _listed(found: Mapping[str, object]) -> str:
    return ", ".join(f"{name} {value}" for name, value in found.items())


def _numbers(cpus: Sequence[int]) -> str:
    return " and ".join(map(str, cpus))


def _on(found: Sequence[int], of: Sequence[int]) -> str:
    """On which numbers of CPUs something is so, of those that were run."""
    others = [cpus for cpus in of if cpus not in found]
    if not found:
        return f"neither on {' nor on '.join(map(str, of))} CPUs"
    return f"on {_numbers(found)} CPUs{f', not on {_numbers(others)}' if others else ''}"


# ---- Figure 8: kernel memory after fileio ----------------------------------------------------------------------------


def figure_8(data: Data) -> Outcome:
    runs = Runs(data)
    means, slabs = runs.over_cpus("fileio_used"), runs.over_cpus("fileio_slab")
    everywhere = {(name, cpus): runs.mean(name, cpus, "fileio_used") for name in PAPERS_OWN for cpus in runs.cpus}
    fewest, fewest_cpus = min(everywhere, key=lambda one: everywhere[one])
    more = statistics.fmean(means["SLQB"]) - max(statistics.fmean(means[name]) for name in PAPERS_OWN if name != "SLQB")
    apart = abs(statistics.fmean(means["SLUB"]) / statistics.fmean(means["SLOB"]) - 1)
    tops = [cpus for cpus in runs.cpus if greatest(runs.at(cpus, "fileio_used"), "SLQB")]
    claims = [
        Claim(
            "SLQB takes most, regardless of the number of cores", tops == runs.cpus,
            f"so {_on(tops, runs.cpus)}. MemTotal - MemFree: {told(means, 'MiB')}. "
            f"Slab: {told(slabs, 'MiB')}",
        ),
        Claim(
            "SLQB takes more than 100 MB more than any other", more > 100,
            f"{show(more)} MiB more (by their own means {FIGURE_8['SLQB'] - FIGURE_8['SLAB']:.1f} MB); {_queues(runs)}",
        ),
        Claim(
            "The lowest usage is SLOB's in one core", (fewest, fewest_cpus) == ("SLOB", 1),
            f"the least mean is {fewest}'s on {_cpus(fewest_cpus)}, {show(everywhere[fewest, fewest_cpus])} MiB; "
            f"SLOB's on one is {show(everywhere['SLOB', 1])}",
        ),
        Claim(
            "The mean usage of SLOB and SLUB is very close (0.8%)", apart <= CLOSE,
            f"they differ by {100 * apart:.2g}%: {told(means, 'MiB')}",
        ),
        Claim(
            "Over all cores SLOB takes least, then SLUB, SLAB, SLQB", ordered(means, list(FIGURE_8)),
            f"{told(means, 'MiB')}; by Slab: {told(slabs, 'MiB')}",
        ),
    ]  # fmt: skip
    sheets = [
        _means(runs, "MemTotal - MemFree after fileio, mean over the numbers of CPUs", "fileio_used", "MiB", FIGURE_8, paper_unit="MB"),
        _by_cpus(runs, "Kernel memory after fileio, MemTotal - MemFree", "fileio_used", "MiB"),
        _by_cpus(runs, "The same without page cache and programs, as a 32-bit kernel's low memory", "fileio_own", "MiB"),
        _by_cpus(runs, "Slab: of meminfo after fileio", "fileio_slab", "MiB"),
    ]  # fmt: skip
    note = "The paper's caption says that figure 8 is of the memory mode; its text has it among fileio's, and so it is here."
    drawn = [
        _drawn(runs, "Figure 8: MemTotal - MemFree after fileio", "fileio_used", "MiB"),
        _drawn(runs, "Slab: after fileio", "fileio_slab", "MiB"),
    ]  # fmt: skip
    return _outcome(runs, sheets, claims, drawn, note)


def _queues(runs: Runs) -> str:
    """What SLQB's queues hold, and what becomes of that when they are short."""
    short = runs.data["short_queues"]
    long = runs.data["caches"]["SLQB"][str(short["cpus"])]
    first = runs.data["caches"]["SLQB"][str(runs.cpus[0])]
    most = ", ".join(f"{name} {kb:,} KiB" for name, kb in long["most_unused"][:3])
    slab = runs.mean("SLQB", short["cpus"], "fileio_slab")
    return (
        f"of its caches' {long['kb'] / MIB:.1f} MiB on {short['cpus']} CPUs {long['unused_kb'] / MIB:.1f} are free objects ({most}), on "
        f"{runs.cpus[0]} CPU {first['unused_kb'] / MIB:.1f}; with queues of {ferreira_runs.SHORT} objects Slab: is "
        f"{short['modes']['fileio']['slab'] / MIB:.1f} MiB in place of {slab:.1f}"
    )


# ---- Figure 9: fragmentation events ----------------------------------------------------------------------------------


def figure_9(data: Data) -> Outcome:
    runs = Runs(data)
    figure = "fileio_events"
    worst = [cpus for cpus in runs.cpus if greatest(runs.at(cpus, figure), "SLOB")]
    few = [cpus for cpus in runs.cpus if cpus <= 4]
    second = [cpus for cpus in few if ranks(runs.at(cpus, figure))["SLQB"] == 3]
    means, slabs = runs.over_cpus(figure), runs.over_cpus("fileio_slab")
    none = sum(value == 0 for cpus in runs.cpus for value in runs.samples("SLAB", cpus, figure))
    told_means = f"events: {told(means, '')}; Slab: {told(slabs, 'MiB')}"
    claims = [
        Claim(
            "SLOB causes most fragmentation events, regardless of the number of cores", worst == runs.cpus,
            f"so {_on(worst, runs.cpus)}; {told_means}",
        ),
        Claim(
            "SLQB causes second most on one to four cores", second == few,
            f"it has the third rank of four {_on(second, few)}; {told_means}",
        ),
        Claim("SLAB causes fewest", least(means, "SLAB"), told_means),
        Claim("SLUB causes second fewest", ranks(means)["SLUB"] == 2, told_means),
        Claim("In some executions SLAB causes none at all", none > 0, f"{none} of its {runs.scale['repetitions'] * len(runs.cpus)}"),
    ]  # fmt: skip
    sheets = [
        _means(runs, "Fallback events during fileio, mean over the numbers of CPUs", figure, "events", {}),
        _by_cpus(runs, "Fallback events during fileio, all three stages (figure 9 has no figures in print)", figure, "events"),
    ]
    return _outcome(runs, sheets, claims, [_drawn(runs, "Figure 9: fragmentation events during fileio", figure, "events")])


# ---- Tables 1 and 2: the memory mode ---------------------------------------------------------------------------------


def table_1(data: Data) -> Outcome:
    runs = Runs(data)
    figure = "memory_seconds"
    middle, last = [cpus for cpus in runs.cpus if 2 <= cpus <= 5], [cpus for cpus in runs.cpus if cpus >= 7]
    to_four = [cpus for cpus in runs.cpus if cpus <= 4]
    host = data["host_cpus"]
    falls = [ordered({cpus: runs.samples(name, cpus, figure) for cpus in to_four}, to_four[::-1]) for name in PAPERS_OWN]
    by_cpus = {cpus: f"{told(runs.at(cpus, figure), 's')} on {_cpus(cpus)}" for cpus in runs.cpus}
    events = sum(value for name in PAPERS_OWN for cpus in runs.cpus for value in runs.samples(name, cpus, "memory_events"))
    theirs = max(_spread([TABLE_1[name][cores - 1] for name in PAPERS_OWN]) for cores in CORES[1:])
    close = {cpus: _spread([runs.mean(name, cpus, figure) for name in PAPERS_OWN]) for cpus in runs.cpus if cpus > 1}
    late = ("SLQB", "SLUB", "SLOB", "SLAB")
    claims = [
        Claim(
            "The time decreases from one core to four", all(falls),
            f"the host has {host} processors, so a guest's CPUs beyond that take turns: {'; '.join(by_cpus[cpus] for cpus in to_four)}",
        ),
        Claim(
            "From two to five cores the order is SLAB, SLOB, SLUB, SLQB",
            bool(middle) and all(ordered(runs.at(cpus, figure), ("SLAB", "SLOB", "SLUB", "SLQB")) for cpus in middle),
            "; ".join([*(by_cpus[cpus] for cpus in middle), _hardly(runs)]),
        ),
        Claim(
            "From seven cores on it is inverted: SLQB, SLUB, SLOB, SLAB",
            bool(last) and all(ordered(runs.at(cpus, figure), late) for cpus in last),
            "; ".join([*(by_cpus[cpus] for cpus in last), _hardly(runs)]),
        ),
        Claim(
            f"The times are very close to each other (from two cores on within {100 * theirs:.0f}%)", max(close.values()) <= theirs,
            f"least to greatest mean, of the mean: {', '.join(f'{100 * value:.1f}% on {cpus}' for cpus, value in close.items())}",
        ),
        Claim("No fragmentation event occurs", events == 0, f"{events:g} in all boots, and none of theirs: {_hardly(runs)}"),
    ]  # fmt: skip
    sheets = [
        _by_cpus(runs, "Run stage of the memory mode", figure, "s", TABLE_1, paper_unit="s of 100 GB"),
        Sheet("The same on one CPU by a clock of counted instructions", "ms", [
            (name, Figure(None, runs.counted(name, "memory", 1)["seconds"] * 1e3)) for name in ALLOCATORS
        ]),
        _counted(runs, "memory", 1, runs.scale["counted_mb"], "instructions of one MiB"),
    ]  # fmt: skip
    return _outcome(runs, sheets, claims, [_drawn(runs, "Table 1: run time of the memory mode", figure, "seconds")])


def _hardly(runs: Runs) -> str:
    """How little the memory mode asks of an allocator."""
    found = {name: runs.counted(name, "memory", 1) for name in PAPERS_OWN}
    calls = {name: [float(one["operations"])] for name, one in found.items()}
    share = max(one["instructions"] / (one["seconds"] * 1e9) for one in found.values())
    clocks = [one["seconds"] for one in found.values()]
    return (
        f"on one CPU the run stage calls the allocator {told(calls, 'times')}, at most {100 * share:.2g}% of all instructions, and by "
        f"the clock of instructions the four differ by {100 * _spread(clocks):.2g}%"
    )


def table_2(data: Data) -> Outcome:
    runs = Runs(data)
    figure = "memory_used"
    means = runs.over_cpus(figure)
    slabs = runs.over_cpus("memory_slab")
    steady = {name: [100 * _spread([runs.mean(name, cpus, figure) for cpus in runs.cpus])] for name in PAPERS_OWN}
    theirs = {name: [100 * _spread([float(value) for value in TABLE_2[name]])] for name in PAPERS_OWN}
    apart = abs(statistics.fmean(means["SLUB"]) / statistics.fmean(means["SLAB"]) - 1)
    told_means = f"{told(means, 'MiB')}; Slab: {told(slabs, 'MiB')}"
    claims = [
        Claim(
            "The memory used is virtually constant, regardless of the number of cores",
            all(one <= 100 * STEADY for (one,) in steady.values()),
            f"least to greatest mean, of the mean: {told(steady, '%')}; in their table {told(theirs, '%')}",
        ),
        Claim("SLQB uses most", greatest(means, "SLQB"), f"{told_means}; {_queues(runs)}"),
        Claim("SLOB uses least", least(means, "SLOB"), told_means),
        Claim("SLAB and SLUB use about the same (2%)", apart <= 2 * CLOSE, f"they differ by {100 * apart:.2g}%: {told_means}"),
    ]
    sheets = [
        _by_cpus(runs, "Kernel memory after the memory mode, MemTotal - MemFree", figure, "MiB", TABLE_2, paper_unit="MB"),
        _by_cpus(runs, "The same without page cache and programs, as a 32-bit kernel's low memory", "memory_own", "MiB"),
        _by_cpus(runs, "Slab: of meminfo after the memory mode", "memory_slab", "MiB"),
    ]
    return _outcome(runs, sheets, claims, [_drawn(runs, "Table 2: MemTotal - MemFree after the memory mode", figure, "MiB")])


# ---- Table 3: ranks --------------------------------------------------------------------------------------------------


def table_3(data: Data) -> Outcome:
    runs = Runs(data)
    claims, sheets = [], []
    for column, figure in COLUMNS.items():
        found = runs.over_cpus(figure)
        ours, theirs = ranks(found), TABLE_3[column]
        unit = "s" if figure.endswith("seconds") else "MiB" if figure.endswith("used") else "events"
        order = ", ".join(sorted(theirs, key=theirs.__getitem__))
        claims.append(Claim(f"{column}: {order}", ours == theirs, told(found, unit)))
        everybody = ranks(runs.over_cpus(figure, tuple(ALLOCATORS)))
        rows = [(name, Figure(theirs[name], ours[name])) for name in PAPERS_OWN]
        sheets.append(Sheet(f"{column}, ranks", "rank", [*rows, ("yard, among all five", Figure(None, everybody["yard"]))]))
    note = "Equal ranks: their repetitions overlap. Run time, MemTotal - MemFree and events, as the paper has them."
    return _outcome(runs, sheets, claims, (), note)


# ---- Section 5: what they left open ----------------------------------------------------------------------------------


def questions(data: Data) -> Outcome:
    runs = Runs(data)
    one, many = runs.scale["counted_on"][0], runs.scale["counted_on"][-1]
    lead = {cpus: _instructions(runs, cpus) for cpus in (one, many)}
    behind = {cpus: lead[cpus]["SLQB"][0] / statistics.fmean(lead[cpus][name][0] for name in PAPERS_OWN if name != "SLQB") for cpus in lead}
    waits = {cpus: {name: [100 * _waiting(runs, name, cpus)] for name in PAPERS_OWN} for cpus in lead}
    share = max(runs.counted(name, "memory", 1)["instructions"] / (runs.counted(name, "memory", 1)["seconds"] * 1e9) for name in PAPERS_OWN)
    theirs = _spread([TABLE_1[name][0] for name in PAPERS_OWN])
    grows = {name: runs.mean(name, runs.cpus[-1], "fileio_slab") - runs.mean(name, runs.cpus[0], "fileio_slab") for name in PAPERS_OWN}
    queued = {cpus: runs.data["caches"]["SLQB"][str(cpus)]["unused_kb"] / MIB for cpus in runs.cpus}
    their_growth = TABLE_2["SLQB"][-1] - TABLE_2["SLQB"][0]
    claims = [
        Claim(
            "SLOB overcomes the others under one core: its code does so", least(lead[one], "SLOB"),
            f"instructions of the allocator for one write, {one} CPU: {told(lead[one], '')}; {_allocator_of(runs, 'fileio', one)}",
        ),
        Claim(
            f"SLQB becomes competitive from four cores on: by what it executes, on {many} CPUs against {one}",
            catches_up(behind[one], behind[many]),
            f"its instructions over the mean of the others': {behind[one]:.2f} on {one}, {behind[many]:.2f} on {many}; for one write on "
            f"{many}: {told(lead[many], '')}; waiting for locks, of the allocator's instructions, on {one}: {told(waits[one], '%')}, "
            f"on {many}: {told(waits[many], '%')}",
        ),
        Claim(
            "Table 1 has two patterns, up to five cores and from seven on: the allocators make them", share >= theirs,
            f"their four times on one core are {100 * theirs:.0f}% apart; {_hardly(runs)}",
        ),
        Claim(
            "SLQB takes more than 100 MB more: its queues hold them", max(queued.values()) > 100,
            f"free objects of its caches: {', '.join(f'{mib:.1f} MiB on {cpus}' for cpus, mib in queued.items())} CPUs; {_queues(runs)}. "
            f"Queues are each CPU's: from {runs.cpus[0]} to {runs.cpus[-1]} CPUs Slab: grows by "
            f"{', '.join(f'{name} {mib:+.1f}' for name, mib in grows.items())} MiB. In their table 2 SLQB takes {their_growth} MB more "
            f"on eight cores than on one, of {TABLE_2['SLQB'][0]}: what they saw does not come with CPUs",
        ),
    ]  # fmt: skip
    sheets = [
        *(_parts(runs, cpus) for cpus in runs.scale["counted_on"]),
        Sheet("Misses of simulated caches of the allocator, first level, for one write, 1 CPU", "misses", [
            (name, Figure(None, runs.counted(name, "fileio", 1)["l1_misses"] / runs.scale["counted_writes"])) for name in ALLOCATORS
        ]),
        Sheet("Free objects in slabs after fileio", "MiB", [
            (f"{name}, {_cpus(cpus)}", Figure(None, found["unused_kb"] / MIB))
            for name in ALLOCATORS for cpus in runs.cpus if (found := runs.data["caches"][name][str(cpus)])["kb"]
        ], notes=["SLOB has no caches to ask."]),
    ]  # fmt: skip
    return _outcome(runs, sheets, claims)


def _instructions(runs: Runs, cpus: int) -> dict[str, list[float]]:
    """Of the allocator, for one write."""
    return {name: [runs.counted(name, "fileio", cpus)["instructions"] / runs.scale["counted_writes"]] for name in PAPERS_OWN}


def _waiting(runs: Runs, name: str, cpus: int) -> float:
    found = runs.counted(name, "fileio", cpus)
    share: float = found["waiting"] / max(1, found["instructions"])
    return share


def _parts(runs: Runs, cpus: int) -> Sheet:
    rows = []
    for name in ALLOCATORS:
        found = runs.counted(name, "fileio", cpus)
        for part in ("fast", "slow", "pages", "locks", "waiting"):
            rows.append((f"{name}: {part}", Figure(None, found[part] / runs.scale["counted_writes"])))
    notes = [
        "waiting: the part of locks that is spent in their slow paths, with the instructions that a CPU could have executed meanwhile."
    ]
    return Sheet(f"Instructions of the allocator for one write, {_cpus(cpus)}", "instructions", rows, notes=notes)


ITEMS = [
    Item("ferreira", name, title, place, ferreira_runs.boots, judge, ferreira_runs.check, kept_as="boots", kernels=ferreira_runs.KERNELS)
    for name, title, place, judge in (
        ("fig7", "Run time of sysbench fileio", "section 4.1, figure 7", figure_7),
        ("fig8", "Kernel memory after fileio", "section 4.1, figure 8", figure_8),
        ("fig9", "Fragmentation events during fileio", "section 4.1, figure 9", figure_9),
        ("table1", "Run time of sysbench memory", "section 4.2, table 1", table_1),
        ("table2", "Kernel memory after sysbench memory", "section 4.2, table 2", table_2),
        ("table3", "Ranks by run time, kernel memory, events", "section 5, table 3", table_3),
        ("questions", "What they left open", "section 5", questions),
    )
]
