"""Ferreira, Matias, Macedo, Evangelista 2015: sysbench on kernels with SLAB, SLOB, SLUB and SLQB, on one to eight cores.

Seven items: figures 7 to 9, tables 1 to 3, and the questions that section 5 leaves open. All judge the same boots (ferreira_runs.py).

Rules (rules.py). One allocator is below another where the greatest of its repetitions is below the least of the other's; where they
overlap, no order can be told. An order of several holds where each is below the next. Figures over all numbers of CPUs are means of
them, taken of each repetition by itself. What is counted on one CPU has no repetitions: it is the same each time. Times of a guest with
more CPUs than the host has processors tell nothing of so many cores, so a claim that needs them cannot be told.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from ..base.table import show
from ..kernels import sysbench
from . import charts, ferreira_runs
from .ferreira_runs import THEIR_FILES_MB, THEIR_GIGABYTES, THEIR_WRITES
from .model import Claim, Data, Figure, Item, Outcome, Picture, Sheet, repeated
from .rules import alone_at, below, every, greatest, least, ordered, ranks

PAPERS_OWN = ("SLAB", "SLOB", "SLUB", "SLQB")
CORES = range(1, 9)
FIGURE_7: dict[str, float | str] = {
    "SLOB": 369.88,
    "SLAB": 378.88,
    "SLUB": 382.13,
    "SLQB": "384.50",
}  # s, means over the cores; section 4.1
FIGURE_8: dict[str, float | str] = {
    "SLOB": 186.75,
    "SLUB": 188.25,
    "SLAB": 193.13,
    "SLQB": "291.50",
}  # MB, means over the cores; section 4.1
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
        self.names: tuple[str, ...] = tuple(data["timed"])

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

    def timed(self, so: bool | None, on: Sequence[int] = ()) -> bool | None:
        """What times tell on these numbers of CPUs (on all): nothing where the host has fewer."""
        return None if max(on or self.cpus) > self.data["host_cpus"] else so

    @property
    def stands_for(self) -> str:
        scale = self.scale
        return (
            f"Linux {self.data['kernel']} for x86-64 in QEMU's software emulation on {self.data['host_cpus']} processors, with "
            f"{', '.join(map(str, self.cpus))} CPUs and {self.data['memory_mb']:,} MiB, for Linux 2.6.39 on eight cores with 24 GB; "
            f"SLQB by slabyard's policy. {ferreira_runs.THREADS} threads and {sysbench.FILES} files as theirs; "
            f"{scale['writes']:,} writes (1/{THEIR_WRITES // scale['writes']}), files of {ferreira_runs.FILES_MB} MiB in all "
            f"(1/{THEIR_FILES_MB // ferreira_runs.FILES_MB}), {scale['transferred_mb']:,} MiB transferred "
            f"(1/{THEIR_GIGABYTES * 1024 // scale['transferred_mb']}), {scale['repetitions']} of 5 repetitions. ext4 on a ram disk for "
            f"their disk. With more guest CPUs than the host's {self.data['host_cpus']}, they take turns; times say nothing about eight "
            "cores."
        )


# ---- Rules -----------------------------------------------------------------------------------------------------------


def catches_up(before: float, after: float) -> bool:
    """Whether what is behind by so much, as a ratio, is so by less."""
    return after < (1 - CLOSE) * before


def told(found: Samples, unit: str) -> str:
    """The figures, the least first: `SLOB 1.2 (1.1 to 1.3), SLAB 1.4 s`."""
    texts = [f"{name} {_window(values)}" for name, values in sorted(found.items(), key=lambda one: statistics.fmean(one[1]))]
    return f"{', '.join(texts)}{' ' if unit else ''}{unit}"


def _window(values: Sequence[float]) -> str:
    """The mean, with least and greatest where they differ."""
    window = f" ({show(min(values))} to {show(max(values))})" if show(min(values)) != show(max(values)) else ""
    return f"{show(statistics.fmean(values))}{window}"


def _spread(values: Sequence[float]) -> float:
    """Least to greatest, over the mean."""
    return (max(values) - min(values)) / statistics.fmean(values)


# ---- What is shown ---------------------------------------------------------------------------------------------------


def _by_cpus(runs: Runs, title: str, figure: str, unit: str, paper: Mapping[str, Sequence[float]] | None = None, **more: Any) -> Sheet:
    rows = []
    for name in runs.names:
        of_paper = (paper or {}).get(name)
        for cpus in runs.cpus if of_paper is None else CORES:
            theirs = None if of_paper is None else _printed(of_paper[cpus - 1])
            rows.append((f"{name}, {_cpus(cpus)}", repeated(theirs, runs.samples(name, cpus, figure) if cpus in runs.cpus else ())))
    return Sheet(title, unit, rows, **more)


def _printed(value: float) -> float | str:
    """As tables 1 and 2 print it: `70.0`, `138`."""
    return value if isinstance(value, int) else f"{value:.1f}"


def _means(runs: Runs, title: str, figure: str, unit: str, paper: Mapping[str, float | str], **more: Any) -> Sheet:
    found = runs.over_cpus(figure, runs.names)
    return Sheet(title, unit, [(name, repeated(paper.get(name), values)) for name, values in found.items()], **more)


def _drawn(runs: Runs, title: str, figure: str, y: str) -> Picture:
    lines = []
    for name in runs.names:
        found = [(float(cpus), runs.samples(name, cpus, figure)) for cpus in runs.cpus]
        windows = [(min(values), max(values)) for _, values in found]
        lines.append(charts.Line(name, [(cpus, statistics.fmean(values)) for cpus, values in found], windows))
    return Picture(title, charts.lines(lines, "CPUs", y, from_zero=True))


def _counted(runs: Runs, mode: str, cpus: int, of: int, unit: str) -> Sheet:
    """What was counted, for one of `of`."""
    rows = []
    for name in runs.names:
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
    everywhere = {(name, cpus): runs.samples(name, cpus, figure) for name in PAPERS_OWN for cpus in runs.cpus}
    best, best_cpus = min(everywhere, key=lambda one: statistics.fmean(everywhere[one]))
    leads = {name: [least(runs.at(cpus, figure), name) for cpus in runs.cpus] for name in PAPERS_OWN}
    lags = {name: [greatest(runs.at(cpus, figure), name) for cpus in runs.cpus] for name in PAPERS_OWN}
    variety = {name: [100 * _spread(turn) for turn in zip(*_of_turns(runs, name, figure), strict=True)] for name in PAPERS_OWN}
    behind = {which: _behind(runs, figure, "SLQB", of) for which, of in (("few", few), ("many", many))}
    early, late = (
        [statistics.fmean(turn) for turn in zip(*(runs.samples("SLQB", cpus, figure) for cpus in of), strict=True)]
        for of in ([cpus for cpus in runs.cpus if cpus < 5], [cpus for cpus in runs.cpus if cpus >= 5])
    )
    claims = [
        Claim(
            "On one core SLOB takes the shortest time (by a clock that counts instructions: exact)", least(clock, "SLOB"),
            f"{told(clock, 'ms')}, at one nanosecond an instruction; {_allocator_of(runs, 'fileio', 1)}",
        ),
        Claim(
            "The shortest execution time of all was SLOB's in one core", runs.timed(least(everywhere, ("SLOB", 1))),
            f"the shortest mean is {best}'s on {_cpus(best_cpus)}, {_window(everywhere[best, best_cpus])} s; SLOB's on one is "
            f"{_window(everywhere['SLOB', 1])} s; the guest's times depend on the host's {data['host_cpus']} processors, not on its own "
            "number",
        ),
        Claim(
            "None of the allocators was predominantly better or worse (rule: none is below, or above, all others at more than half of the "
            "numbers of CPUs)", runs.timed(_never_at_most([*leads.values(), *lags.values()])),
            f"numbers of CPUs, of {len(runs.cpus)}, at which one is below all others: {_times_so(leads)}; above all: {_times_so(lags)}",
        ),
        Claim(
            "SLQB's performance becomes competitive from four cores on (rule: its time over each other's falls)",
            runs.timed(every(catches_up(behind["few"][name], behind["many"][name]) for name in behind["few"])),
            f"its time over the others', from {_numbers(few)} CPUs to {_numbers(many)}: {_from_to(behind['few'], behind['many'])}; "
            "by counted instructions: see the questions below table 3",
        ),
        Claim(
            "SLQB's performance improves from five cores on", runs.timed(below(late, early) if late else None),
            f"its mean time on fewer CPUs {_window(early)} s" + (f", from five on {_window(late)} s" if late else "; no boot has five"),
        ),
        Claim(
            "SLUB varies most with the number of cores, SLOB least", runs.timed(every((greatest(variety, "SLUB"), least(variety, "SLOB")))),
            f"least to greatest over the numbers of CPUs, of the mean, in each repetition: {told(variety, '%')}",
        ),
        Claim(
            "Over all cores the mean time is least for SLOB, then SLAB, SLUB, SLQB", runs.timed(ordered(means, list(FIGURE_7))),
            f"{told(means, 's')}, least to greatest of the repetitions",
        ),
    ]  # fmt: skip
    sheets = [
        _means(
            runs, "Run stage of fileio, mean over the numbers of CPUs", figure, "s", FIGURE_7,
            paper_unit="s, of 100 times the writes", ratios=False,
        ),
        _by_cpus(runs, "Run stage of fileio (figure 7 has no figures in print)", figure, "s"),
        Sheet("Run stage on one CPU by a clock of counted instructions", "ms", [
            (name, Figure(None, runs.counted(name, "fileio", 1)["seconds"] * 1e3)) for name in runs.names
        ]),
        *(_counted(runs, "fileio", cpus, runs.scale["counted_writes"], "instructions of one write") for cpus in runs.scale["counted_on"]),
    ]  # fmt: skip
    return _outcome(runs, sheets, claims, [_drawn(runs, "Figure 7: run time of fileio", figure, "seconds")])


def _behind(runs: Runs, figure: str, name: str, cpus: Sequence[int]) -> dict[str, float]:
    """Its time over that of each other one, on so many CPUs: the mean."""
    times = {other: [runs.mean(other, one, figure) for one in cpus] for other in PAPERS_OWN}
    return {other: statistics.fmean(map(_over, times[name], times[other])) for other in PAPERS_OWN if other != name}


def _over(one: float, other: float) -> float:
    """A time over another one. What a guest's clock does not tell from nothing is as long as any."""
    return one / other if one and other else 1.0


def _from_to(few: Mapping[str, float], many: Mapping[str, float]) -> str:
    return ", ".join(f"{other} {few[other]:.2f} to {many[other]:.2f}" for other in few)


def _of_turns(runs: Runs, name: str, figure: str) -> list[list[float]]:
    return [runs.samples(name, cpus, figure) for cpus in runs.cpus]


def _never_at_most(found: Sequence[Sequence[bool | None]]) -> bool | None:
    """Whether none is so for more than half."""
    if any(one.count(True) > len(one) / 2 for one in found):
        return False
    return None if any(len(one) - one.count(False) > len(one) / 2 for one in found) else True


def _times_so(found: Mapping[str, Sequence[bool | None]]) -> str:
    overlaps = sum(one.count(None) for one in found.values())
    return f"{_listed({name: one.count(True) for name, one in found.items()})}{f' ({overlaps} overlap)' if overlaps else ''}"


def _allocator_of(runs: Runs, mode: str, cpus: int) -> str:
    """What the allocators execute themselves, of all that the kernel does."""
    found = {name: runs.counted(name, mode, cpus) for name in PAPERS_OWN}
    shares = {name: [100 * one["instructions"] / one["kernel"]] for name, one in found.items()}
    calls = {name: [one["instructions"] / max(1, one["operations"])] for name, one in found.items()}
    return f"the allocator's share of the kernel's instructions is {told(shares, '%')}; one call takes {told(calls, 'instructions')}"


def _listed(found: Mapping[str, object]) -> str:
    return ", ".join(f"{name} {value}" for name, value in found.items())


def _numbers(cpus: Sequence[int]) -> str:
    *more, last = map(str, cpus)
    return f"{', '.join(more)} and {last}" if more else last


def _on(found: Mapping[int, bool | None]) -> str:
    """On which numbers of CPUs something is so, of those that were run."""
    names = {True: "so", False: "not so", None: "windows overlap"}
    groups = {said: [cpus for cpus, so in found.items() if so is which] for which, said in names.items()}
    if len(set(found.values())) == 1:
        return {True: "on all numbers of CPUs", False: "on no number of CPUs", None: "windows overlap on all"}[next(iter(found.values()))]
    return "; ".join(f"{said} on {_numbers(cpus)} {'CPU' if cpus == [1] else 'CPUs'}" for said, cpus in groups.items() if cpus)


# ---- Figure 8: kernel memory after fileio ----------------------------------------------------------------------------


def figure_8(data: Data) -> Outcome:
    runs = Runs(data)
    means, slabs = runs.over_cpus("fileio_used"), runs.over_cpus("fileio_slab")
    everywhere = {(name, cpus): runs.samples(name, cpus, "fileio_used") for name in PAPERS_OWN for cpus in runs.cpus}
    fewest, fewest_cpus = min(everywhere, key=lambda one: statistics.fmean(everywhere[one]))
    more = statistics.fmean(means["SLQB"]) - max(statistics.fmean(means[name]) for name in PAPERS_OWN if name != "SLQB")
    apart = abs(statistics.fmean(means["SLUB"]) / statistics.fmean(means["SLOB"]) - 1)
    tops = {cpus: greatest(runs.at(cpus, "fileio_used"), "SLQB") for cpus in runs.cpus}
    claims = [
        Claim(
            "SLQB takes most, regardless of the number of cores", every(tops.values()),
            f"{_on(tops)}; MemTotal - MemFree: {told(means, 'MiB')}; Slab: {told(slabs, 'MiB')}",
        ),
        Claim(
            "SLQB takes more than 100 MB more than any other", more > 100,
            f"{show(more)} MiB more (by their own means {float(FIGURE_8['SLQB']) - float(FIGURE_8['SLAB']):.1f} MB); {_queues(runs)}",
        ),
        Claim(
            "The lowest usage is SLOB's in one core", least(everywhere, ("SLOB", 1)),
            f"the least mean is {fewest}'s on {_cpus(fewest_cpus)}, {_window(everywhere[fewest, fewest_cpus])} MiB; "
            f"SLOB's on one is {_window(everywhere['SLOB', 1])}",
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
    worst = {cpus: greatest(runs.at(cpus, figure), "SLOB") for cpus in runs.cpus}
    second = {cpus: alone_at(runs.at(cpus, figure), "SLQB", 3) for cpus in runs.cpus if cpus <= 4}
    means, slabs = runs.over_cpus(figure), runs.over_cpus("fileio_slab")
    none = sum(value == 0 for cpus in runs.cpus for value in runs.samples("SLAB", cpus, figure))
    told_means = f"events: {told(means, '')}"
    claims = [
        Claim(
            "SLOB causes most fragmentation events, regardless of the number of cores", every(worst.values()),
            f"{_on(worst)}; {told_means}; Slab: {told(slabs, 'MiB')}",
        ),
        Claim(
            "SLQB causes second most on one to four cores (rule: it alone has the third place of four)",
            every(second.values()), _on(second),
        ),
        Claim("SLAB causes fewest", least(means, "SLAB"), told_means),
        Claim("SLUB causes second fewest (rule: it alone has the second place)", alone_at(means, "SLUB", 2), told_means),
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
    to_four, from_five = [cpus for cpus in runs.cpus if cpus <= 4], [cpus for cpus in runs.cpus if cpus >= 5]
    host = data["host_cpus"]
    clock = {name: [runs.counted(name, "memory", 1)["seconds"] * 1e3] for name in PAPERS_OWN}
    ahead = 1 - clock["SLOB"][0] / min(clock[name][0] for name in PAPERS_OWN if name != "SLOB")
    their_lead = 1 - TABLE_1["SLOB"][0] / min(TABLE_1[name][0] for name in PAPERS_OWN if name != "SLOB")
    rises = [below(runs.samples(name, 4, figure), runs.samples(name, cpus, figure)) for name in PAPERS_OWN for cpus in from_five]
    falls = [ordered({cpus: runs.samples(name, cpus, figure) for cpus in to_four}, to_four[::-1]) for name in PAPERS_OWN]
    by_cpus = {cpus: f"{told(runs.at(cpus, figure), 's')} on {_cpus(cpus)}" for cpus in runs.cpus}
    events = sum(value for name in PAPERS_OWN for cpus in runs.cpus for value in runs.samples(name, cpus, "memory_events"))
    theirs = max(_spread([TABLE_1[name][cores - 1] for name in PAPERS_OWN]) for cores in CORES[1:])
    close = {cpus: _spread([runs.mean(name, cpus, figure) for name in PAPERS_OWN]) for cpus in runs.cpus if cpus > 1}
    late = ("SLQB", "SLUB", "SLOB", "SLAB")
    claims = [
        Claim(
            "On one core SLOB is ahead by far (rule: by half of their lead, by a clock that counts instructions)", ahead >= their_lead / 2,
            f"its time over the next one's: {-100 * ahead:+.2g}% (theirs {-100 * their_lead:+.2g}%); what made it first on their one core "
            "is left open",
        ),
        Claim(
            "The time decreases from one core to four", runs.timed(every(falls), to_four),
            f"the host has {host} processors, so a guest's CPUs beyond that take turns: {'; '.join(by_cpus[cpus] for cpus in to_four)}",
        ),
        Claim(
            "From two to five cores the order is SLAB, SLOB, SLUB, SLQB",
            runs.timed(every(ordered(runs.at(cpus, figure), ("SLAB", "SLOB", "SLUB", "SLQB")) for cpus in middle), middle),
            "; ".join([*(by_cpus[cpus] for cpus in middle), _hardly(runs)]),
        ),
        Claim(
            "From seven cores on it is inverted: SLQB, SLUB, SLOB, SLAB",
            runs.timed(every(ordered(runs.at(cpus, figure), late) for cpus in last), last) if last else None,
            "; ".join([*(by_cpus[cpus] for cpus in last), _hardly(runs)]),
        ),
        Claim(
            "From five cores on the time increases slightly (rule: above that on four)", runs.timed(every(rises)) if rises else None,
            "; ".join(by_cpus[cpus] for cpus in (4, *from_five) if cpus in by_cpus),
        ),
        Claim(
            f"The times are very close to each other (from two cores on within {100 * theirs:.0f}%)",
            runs.timed(max(close.values()) <= theirs),
            f"least to greatest mean, of the mean: {', '.join(f'{100 * value:.1f}% on {cpus}' for cpus, value in close.items())}",
        ),
        Claim(
            "No fragmentation event occurs", events == 0,
            f"on memory that has been used, a run: {told(runs.over_cpus('memory_events'), 'events')}; {_hardly(runs)}",
        ),
    ]  # fmt: skip
    sheets = [
        _by_cpus(runs, "Run stage of the memory mode", figure, "s", TABLE_1, paper_unit="s of 100 GB", ratios=False),
        Sheet("The same on one CPU by a clock of counted instructions", "ms", [
            (name, Figure(None, runs.counted(name, "memory", 1)["seconds"] * 1e3)) for name in runs.names
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
        so = ordered(found, sorted(theirs, key=theirs.__getitem__))
        unit = "s" if figure.endswith("seconds") else "MiB" if figure.endswith("used") else "events"
        order = ", ".join(sorted(theirs, key=theirs.__getitem__))
        claims.append(Claim(f"{column}: {order}", runs.timed(so) if unit == "s" else so, told(found, unit)))
        everybody = ranks(runs.over_cpus(figure, runs.names))
        rows = [(name, Figure(theirs[name], ours[name])) for name in PAPERS_OWN]
        rows += [(f"{name}, among all", Figure(None, everybody[name])) for name in runs.names if name not in PAPERS_OWN]
        sheets.append(Sheet(f"{column}, ranks", "rank", rows, ratios=False))
    note = "Equal ranks: their repetitions overlap. Run time, MemTotal - MemFree and events, as the paper has them."
    return _outcome(runs, sheets, claims, (), note)


# ---- Section 5: what they left open ----------------------------------------------------------------------------------


def questions(data: Data) -> Outcome:
    runs = Runs(data)
    one, many = runs.scale["counted_on"][0], runs.scale["counted_on"][-1]
    lead = {cpus: _instructions(runs, cpus) for cpus in (one, many)}
    behind = {cpus: {name: lead[cpus]["SLQB"][0] / lead[cpus][name][0] for name in PAPERS_OWN if name != "SLQB"} for cpus in lead}
    caught = [name for name in behind[one] if catches_up(behind[one][name], behind[many][name])]
    waits = {cpus: {name: [100 * _waiting(runs, name, cpus)] for name in PAPERS_OWN} for cpus in lead}
    share = max(runs.counted(name, "memory", 1)["instructions"] / (runs.counted(name, "memory", 1)["seconds"] * 1e9) for name in PAPERS_OWN)
    theirs = _spread([TABLE_1[name][0] for name in PAPERS_OWN])
    grows = {name: runs.mean(name, runs.cpus[-1], "fileio_slab") - runs.mean(name, runs.cpus[0], "fileio_slab") for name in PAPERS_OWN}
    queued = {cpus: runs.data["caches"]["SLQB"][str(cpus)]["unused_kb"] / MIB for cpus in runs.cpus}
    their_growth = TABLE_2["SLQB"][-1] - TABLE_2["SLQB"][0]
    claims = [
        Claim(
            "SLOB overcomes the others under one core, as its code is shorter", least(lead[one], "SLOB"),
            f"instructions of the allocator for one write, {one} CPU: {told(lead[one], '')}; {_allocator_of(runs, 'fileio', one)}; "
            "what made it first on their one core is left open",
        ),
        Claim(
            f"SLQB becomes competitive from four cores on (rule: its instructions over each other's fall, from {one} CPU to {many})",
            len(caught) == len(behind[one]),
            f"its instructions over the others', from {one} CPU to {many}: {_from_to(behind[one], behind[many])}; it catches up with "
            f"{' and '.join(caught) or 'none'}; for one write on {many}: {told(lead[many], '')}; waiting "
            f"for locks, of the allocator's instructions, on {one}: {told(waits[one], '%')}, "
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
            f"on eight cores than on one, of {TABLE_2['SLQB'][0]}, so their 100 MB are not per-CPU queues; what they are is left open",
        ),
    ]  # fmt: skip
    sheets = [
        *(_parts(runs, cpus) for cpus in runs.scale["counted_on"]),
        Sheet("Misses of simulated caches of the allocator, first level, for one write, 1 CPU", "misses", [
            (name, Figure(None, runs.counted(name, "fileio", 1)["l1_misses"] / runs.scale["counted_writes"])) for name in runs.names
        ]),
        Sheet("Free objects in slabs after fileio", "MiB", [
            (f"{name}, {_cpus(cpus)}", Figure(None, found["unused_kb"] / MIB))
            for name in runs.names for cpus in runs.cpus if (found := runs.data["caches"][name][str(cpus)])["kb"]
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
    for name in runs.names:
        found = runs.counted(name, "fileio", cpus)
        for part in ("fast", "slow", "pages", "locks", "waiting"):
            rows.append((f"{name}: {part}", Figure(None, found[part] / runs.scale["counted_writes"])))
    notes = ["waiting: instructions a CPU could have executed while it spun for a lock, and those of the locks' slow paths."]
    return Sheet(f"Instructions of the allocator for one write, {_cpus(cpus)}", "instructions", rows, notes=notes)


ITEMS = [
    Item(
        "ferreira", name, title, place, ferreira_runs.boots, judge, ferreira_runs.check, kept_as="boots", kernels=ferreira_runs.KERNELS,
        quick="It boots each kernel once on one CPU and on four, not five times on each number up to eight.",
    )
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
