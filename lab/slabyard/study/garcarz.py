"""Garcarz's figures: time, bandwidth, memory consumed and free fragments of SLAB, SLUB and SLOB on an arm64 and an x86 system.

garcarz_runs.py has what is run. His figures are pictures, so his numbers are those that his text and the table of figure 11 name; for the
rest there are his sentences. Times stand twice: by a clock that counts instructions, one CPU, where the same kernel takes the same time
on every run and machine, and on four CPUs in software emulation, five boots, with best and worst as his error windows.

Rules (rules.py). One allocator is ahead of another where the worst of its boots is better than the best of the other's; where their
windows overlap, the order cannot be told. The clock's times have no windows. Those of the emulated times are the host's doing, so no
claim about the width of a window can be told. In figure 11 an asterisk marks neighbours whose windows overlap, and equals share a place.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import combinations, pairwise

from ..base.table import Cell, Table, show
from . import charts, garcarz_runs
from .garcarz_runs import FULL, MODES, OTHERS, QUICK, STOCK, Boot, Boots, consumed_mb, fragments
from .model import Claim, Data, Figure, Item, Outcome, Picture, Sheet, repeated
from .rules import below, every, greatest, least, ordered
from .tables import shown
from .work import Work

WORKLOADS = {"memory": "memory workload", "fileio": "file i/o workload"}
GREATEST = {"arm64": ("DMA",), "x86": ("DMA32", "Normal")}  # zones that have memory here
_NOTE_X86 = (
    "Zone DMA, the first 16 MB, is part of DMA32 here: the lab's kernels have no drivers that need it. His was unaffected in all runs."
)


def _stands_for(*systems: str) -> str:
    machines = {
        "arm64": "QEMU's virt board with Cortex-A53 processors and 2 GB, all of it one zone (DMA), for his four Cortex-A53 with 2 GB",
        "x86": "QEMU's q35 with 3 GB (2 GB DMA32, 1 GB Normal) for his i7-3770 with 12 GB",
    }
    where = "; ".join(machines[system] for system in systems)
    return (
        f"{where}. Four CPUs in software emulation, a later Linux than his. memory moves {FULL.moved_mb} MB for his 150 GB (1 in "
        f"{FULL.of('memory'):.0f}; quick: {QUICK.moved_mb} MB); fileio makes {FULL.requests:,} requests of 16 KiB, for his 156 MB (quick: "
        f"{QUICK.requests:,}), with his 8 threads and 128 files; the files, {garcarz_runs.FILES_MB} MB, lie on ext4 on a ram disk. "
        "Missing are a disk's own time, the hardware's caches, and the other programs of his systems."
    )


# ---- Order ---------------------------------------------------------------------------------------------------------


def _means(samples: Mapping[str, Sequence[float]]) -> dict[str, float]:
    return {spec: statistics.fmean(values) for spec, values in samples.items()}


def _order(means: Mapping[str, float]) -> list[str]:
    """The stock allocators, the least first."""
    return sorted(STOCK, key=means.__getitem__)


def _listed(means: Mapping[str, float], unit: str, only: Sequence[str] = STOCK) -> str:
    return ", ".join(f"{spec} {show(means[spec])} {unit}".rstrip() for spec in only)


def _overlaps(samples: Mapping[str, Sequence[float]]) -> str:
    """Whose windows overlap; nothing of single boots."""
    if _single(samples):
        return ""
    if not any(map(any, samples.values())):
        return ", in any boot"
    pairs = list(combinations(STOCK, 2))
    alike = [
        f"{one} and {other}" for one, other in pairs if below(samples[one], samples[other]) is below(samples[other], samples[one]) is None
    ]
    if not alike:
        return "; no windows overlap"
    return f"; windows overlap of {'all' if len(alike) == len(pairs) else ', '.join(alike)}"


def _near(order: Sequence[str], samples: Mapping[str, Sequence[float]]) -> set[str]:
    """Those that are near ties with a neighbour in the order."""
    found = set()
    for better, worse in pairwise(order):
        lower, upper = sorted((samples[better], samples[worse]), key=statistics.fmean)
        if below(lower, upper) is not True:
            found |= {better, worse}
    return found


# ---- Figures 1, 2, 4, 5: time and bandwidth --------------------------------------------------------------------------


def _measure_time(system: str, mode: str, work: Work) -> Data:
    return {
        f"{system} {mode}": garcarz_runs.condition(work, system, mode),
        f"{system} {mode} counted": garcarz_runs.counted(work, system, mode),
    }


def _judge_time(system: str, mode: str, data: Data) -> Outcome:
    boots: Boots = data[f"{system} {mode}"]
    counts: garcarz_runs.Counts = data[f"{system} {mode} counted"]
    clocked = {spec: one["seconds"] for spec, one in counts.items()}
    seconds = {spec: [boot["seconds"] for boot in mine] for spec, mine in boots.items()}
    rates = {spec: [boot["bandwidth"] for boot in mine] for spec, mine in boots.items()}
    paper = _PAPER_TIMES.get((system, mode), {})
    sheets = [
        Sheet(
            "Time of the run stage by a clock that counts instructions, one CPU",
            f"s ({_amount(mode)})",
            [(spec, Figure(paper.get(spec), time)) for spec, time in clocked.items()],
            f"s ({_his_amount(mode)})",
            ratios=False,
        ),
        Sheet("The same over SLAB's", "times SLAB's", [(spec, Figure(None, time / clocked["slab"])) for spec, time in clocked.items()]),
        *_differences(system, mode, clocked, seconds, rates),
        Sheet(
            "Time of the run stage in emulation, four CPUs",
            f"s ({_amount(mode)})",
            [(spec, repeated(None, values)) for spec, values in seconds.items()],
        ),
        Sheet(
            "Bandwidth in emulation, four CPUs",
            "MB/s",
            [(spec, repeated(_PAPER_RATES.get((system, mode), {}).get(spec), values)) for spec, values in rates.items()],
            ratios=False,
        ),
        _executed(counts, clocked),
    ]
    pictures = [
        _bars("time in emulation, best and worst as windows", seconds, "s"),
        _bars("bandwidth in emulation, best and worst as windows", rates, "MB/s"),
        _bars("time by counted instructions", {spec: [value] for spec, value in clocked.items()}, "s"),
    ]
    claims = [rule(clocked, seconds) for rule in _TIME_CLAIMS[system, mode]]
    return Outcome(sheets, claims, pictures, _stands_for(system), _notes(boots))


def _amount(mode: str) -> str:
    return f"{FULL.moved_mb} MB; quick {QUICK.moved_mb}" if mode == "memory" else f"{FULL.requests:,} requests; quick {QUICK.requests}"


def _his_amount(mode: str) -> str:
    return "150 GB" if mode == "memory" else "156 MB"


# What the text prints. For slob on x86 the label of figure 4a.
Printed = dict[tuple[str, str], dict[str, float | str]]
_PAPER_TIMES: Printed = {
    ("arm64", "fileio"): {"slab": "about 3", "slub": "almost 3.4", "slob": "over 4"},
    ("x86", "memory"): {"slab": 27.10694, "slub": 27.10562, "slob": 27.01},
}
_PAPER_RATES: Printed = {("x86", "memory"): {"slab": "5666.468", "slub": "5666.876"}}
# By how much one is behind another: s, MB/s.
_PAPER_DIFFERENCES: dict[tuple[str, str], list[tuple[str, str, str, str]]] = {
    ("arm64", "memory"): [("slub", "slab", "about 0.4", "38")],
    ("x86", "memory"): [("slab", "slob", "0.1", "almost 20")],
    ("x86", "fileio"): [("slub", "slab", "almost 0.2", "0.01"), ("slob", "slub", "almost 1", "0.3")],
}


def _differences(
    system: str, mode: str, clocked: Mapping[str, float], seconds: Mapping[str, Sequence[float]], rates: Mapping[str, Sequence[float]]
) -> list[Sheet]:
    """By how much one is behind another: the differences that he prints, and ours by the clock and in emulation."""
    printed = _PAPER_DIFFERENCES.get((system, mode), [])
    times, means, bandwidth = clocked, _means(seconds), _means(rates)
    moved = statistics.fmean(one * rate for spec in STOCK for one, rate in zip(seconds[spec], rates[spec], strict=True))
    lines: list[list[Cell]] = []
    rows = []
    for behind, ahead, time, rate in printed:
        by_clock = times[behind] - times[ahead]
        lines.append([f"{behind} behind {ahead}, time, s", time, by_clock, means[behind] - means[ahead]])
        rows.append((f"{behind} behind {ahead}, time, s", Figure(time, by_clock)))
        by_clock = moved / times[ahead] - moved / times[behind]
        lines.append([f"{behind} behind {ahead}, bandwidth, MB/s", rate, by_clock, bandwidth[ahead] - bandwidth[behind]])
        rows.append((f"{behind} behind {ahead}, bandwidth, MB/s", Figure(rate, by_clock)))
    notes = ["His are of his amount of work, ours of ours."]
    if (system, mode) == ("x86", "fileio"):
        notes.append(
            "His two pairs contradict each other: 156 MB in 0.2 s more and 0.01 MB/s less is a run of 56 s, and in 1 s more and 0.3 MB/s "
            "less one of 23 s."
        )
    table = Table("", ["", "paper", "ours, by the clock", "ours, in emulation"], lines, notes)
    return [Sheet("By how much one is behind another", "", rows, ratios=False, table=table)] if printed else []


def _executed(counts: garcarz_runs.Counts, clocked: Mapping[str, float]) -> Sheet:
    """What was counted on one CPU: of the run stage all, and from sysbench's start to its end the allocator and the rest of the kernel."""
    lines: list[list[Cell]] = []
    rows = []
    for spec, one in counts.items():
        own = one["instructions"] / 1e6
        lines.append([spec, 1e3 * clocked[spec], own, one["kernel"] / 1e6 - own, 100 * one["instructions"] / one["kernel"]])
        rows.append((spec, Figure(None, own)))
    columns = ["", "run stage, all", "allocator, whole program", "rest of the kernel, whole program", "allocator, % of the kernel"]
    return Sheet("Counted on one CPU", "million instructions", rows, table=Table("", columns, lines))


# Of the clock's times, and of the emulated ones.
Rule = Callable[[Mapping[str, float], Mapping[str, Sequence[float]]], Claim]


def _clocked(clocked: Mapping[str, float]) -> str:
    apart = 100 * (max(clocked[spec] for spec in STOCK) / min(clocked[spec] for spec in STOCK) - 1)
    return f"by counted instructions: {_listed(clocked, 's')}; the three are {show(apart)}% apart"


def _single(samples: Mapping[str, Sequence[float]]) -> bool:
    return all(len(values) < 2 for values in samples.values())


def _in_order(text: str, order: Sequence[str], strict: bool = True) -> Rule:
    def rule(clocked: Mapping[str, float], seconds: Mapping[str, Sequence[float]]) -> Claim:
        pairs = list(pairwise(order)) if strict else [(order[0], other) for other in order[1:]]
        holds = all(clocked[better] < clocked[worse] for better, worse in pairs)
        return Claim(f"{text} (rule: order of the clock's times)", holds, _clocked(clocked))

    return rule


def _apart(text: str, winner: str, others: Sequence[str]) -> Rule:
    def rule(clocked: Mapping[str, float], seconds: Mapping[str, Sequence[float]]) -> Claim:
        holds = None if _single(seconds) else every(below(seconds[winner], seconds[other]) for other in others)
        windows = "; ".join(f"{spec} {show(min(seconds[spec]))} to {show(max(seconds[spec]))} s" for spec in STOCK)
        return Claim(f"{text} (rule: windows of the emulated times)", holds, windows)

    return rule


def _windows(text: str) -> Rule:
    """What he says of the width of windows: emulation gives the host's."""

    def rule(_clocked: Mapping[str, float], seconds: Mapping[str, Sequence[float]]) -> Claim:
        windows = ", ".join(f"{spec} {show(min(seconds[spec]))} to {show(max(seconds[spec]))}" for spec in STOCK)
        return Claim(text, None, f"emulated: {windows} s; by counted instructions there is no window, so these are the host's doing")

    return rule


def _within(text: str, better: str, worse: str, least: float, most: float) -> Rule:
    def rule(clocked: Mapping[str, float], seconds: Mapping[str, Sequence[float]]) -> Claim:
        apart = 100 * (clocked[worse] / clocked[better] - 1)
        said = f"{worse} {show(apart)}% behind {better}; {_clocked(clocked)}"
        return Claim(f"{text} (rule: by the clock, {least:g} to {most:g}%)", least <= apart <= most, said)

    return rule


_TIME_CLAIMS: dict[tuple[str, str], list[Rule]] = {
    ("arm64", "memory"): [
        _in_order("slob overtakes the other two, taking a lot less time", ("slob", "slab", "slub"), strict=False),
        _within(
            "slab is second, followed by slub with a difference of about 0.4 s and 38 MB/s, together 1% of 40 s", "slab", "slub", 0.5, 2.0
        ),
        _apart("slob's worst performance is clearly better than the best of the other two", "slob", ("slab", "slub")),
        _windows("slab's worst performance is worse than slub's best"),
    ],
    ("arm64", "fileio"): [
        _in_order("slab needs about 3 s, slub almost 3.4, slob over 4", ("slab", "slub", "slob")),
        _windows("the offset between best and worst is the biggest with slub and the smallest with slob"),
    ],
    ("x86", "memory"): [
        _within("slab and slub executed it in almost the same time: 27.10694 and 27.10562 s", "slub", "slab", -0.1, 0.1),
        _within("slob overtakes the other two by 0.1 s and almost 20 MB/s, 0.35% of either", "slob", "slab", 0.1, 1.0),
        _windows("the offset between best and worst is the biggest with slub and the smallest with slob"),
        _windows("one of slub's performances is the best of all, and one the worst"),
    ],
    ("x86", "fileio"): [
        _in_order("slab takes the least time, slub is slightly worse, slob the worst", ("slab", "slub", "slob")),
        _windows("the offsets between best and worst are similar; slab's window is the biggest"),
    ],
}


def _bars(title: str, samples: Mapping[str, Sequence[float]], unit: str) -> Picture:
    drawn = charts.bars(list(samples), [(unit, [repeated(None, values) for values in samples.values()])], unit)
    return Picture(title, drawn, beside=34)


def _notes(*conditions: Boots) -> list[str]:
    lines = {
        f"The log of {spec} has: {line}" for one in conditions for spec, mine in one.items() for boot in mine for line in boot["trouble"]
    }
    return sorted(lines)


# ---- Figures 3 and 6: memory consumed --------------------------------------------------------------------------------


def _measure_modes(system: str, work: Work) -> Data:
    found: Data = {f"{system} {mode}": garcarz_runs.condition(work, system, mode) for mode in MODES}
    return {**found, "small Normal": garcarz_runs.small_normal(work)} if system == "x86" else found


def _judge_consumption(system: str, data: Data) -> Outcome:
    sheets, pictures, means, all_samples = [], [], {}, {}
    for mode in MODES:
        boots: Boots = data[f"{system} {mode}"]
        for zone in ("", *(GREATEST[system] if len(GREATEST[system]) > 1 else ())):
            samples = {spec: [consumed_mb(boot, zone) for boot in mine] for spec, mine in boots.items()}
            means[mode, zone], all_samples[mode, zone] = _means(samples), samples
            title = f"Free memory lost during the {WORKLOADS[mode]}{f', zone {zone}' if zone else ''}"
            sheets.append(Sheet(title, "MB", [(spec, repeated(None, values)) for spec, values in samples.items()]))
            if (zone or len(GREATEST[system]) == 1) and any(map(any, samples.values())):
                pictures.append(_bars(title, samples, "MB"))
    claims = [_claim_order(text, all_samples[mode, zone], order, "MB") for text, mode, zone, order in _CONSUMPTION[system]]
    notes = _notes(*(data[f"{system} {mode}"] for mode in MODES))
    if system == "arm64":
        lost, samples = means["fileio", ""], all_samples["fileio", ""]
        spread, gap = abs(lost["slub"] - lost["slob"]), min(lost["slub"], lost["slob"]) - lost["slab"]
        apart = every(below(samples["slab"], samples[spec]) for spec in ("slub", "slob"))
        text = (
            "in file i/o, slub and slob are not far apart compared to slab (rule: their difference is less than slab's to the nearer one)"
        )
        claims.append(Claim(text, apart and 0 <= spread < gap, _listed(lost, "MB") + _overlaps(samples)))
    else:
        claims += _zone_claims(data, means)
        notes.append(_NOTE_X86)
    return Outcome(sheets, claims, pictures, _stands_for(system), notes)


_CONSUMPTION: dict[str, list[tuple[str, str, str, tuple[str, ...]]]] = {
    "arm64": [
        ("in the memory workload slub consumes least, slob most", "memory", "", ("slub", "slab", "slob")),
        ("in file i/o slab consumes least, followed by slob and slub", "fileio", "", ("slab", "slob", "slub")),
    ],
    "x86": [
        ("in the memory workload slab consumes least, slob most", "memory", "", ("slab", "slub", "slob")),
        (
            "in file i/o and zone Normal slub consumes least, followed by slab, then slob",
            "fileio",
            "Normal",
            ("slub", "slab", "slob"),
        ),
        ("in file i/o and zone DMA32 slab consumes least and slob most", "fileio", "DMA32", ("slab", "slub", "slob")),
    ],
}


def _claim_order(text: str, samples: Mapping[str, Sequence[float]], order: Sequence[str], unit: str) -> Claim:
    told = any(map(any, samples.values()))  # nothing of a zone that no boot touched
    return Claim(text, ordered(samples, order) if told else None, _listed(_means(samples), unit) + _overlaps(samples))


def _zone_claims(data: Data, means: Mapping[tuple[str, str], Mapping[str, float]]) -> list[Claim]:
    def untouched(mode: str, zone: str) -> bool:
        return all(abs(consumed_mb(boot, zone)) < 0.1 for spec in STOCK for boot in data[f"x86 {mode}"][spec])

    lost = {zone: max(abs(means["memory", zone][spec]) for spec in STOCK) for zone in ("DMA32", "Normal")}
    said = f"at most {show(lost['DMA32'])} MB of DMA32 on average, {show(lost['Normal'])} MB of Normal"
    holds = untouched("memory", "DMA32") and not untouched("memory", "Normal")
    small = "; ".join(
        f"with {megabytes} MB of Normal, DMA32 lost {show(one['DMA32'])} MB and Normal {show(one.get('Normal', 0.0))}"
        for megabytes, one in data["small Normal"].items()
    )
    touched = not untouched("fileio", "DMA32") and not untouched("fileio", "Normal")
    size = garcarz_runs.free_mb(data["x86 fileio"]["slub"][0]["before"], "Normal")
    return [
        Claim("the memory workload affects zone Normal alone (rule: DMA32 changes by less than 0.1 MB in each boot)", holds, said),
        Claim(
            "file i/o affects zone Normal again, and also DMA32 (rule: by 0.1 MB or more in some boot)",
            touched,
            f"here {size:,.0f} MB of Normal were free before; {small}",
        ),
    ]


# ---- Figures 7 to 10: free fragments -----------------------------------------------------------------------------------


def _measure_fragments(system: str, mode: str, work: Work) -> Data:
    return {f"{system} {mode}": garcarz_runs.condition(work, system, mode)}


_LARGEST = 10  # the order of the largest blocks: hundreds, which are drawn by themselves, as the few of other orders would not be seen


def _by_order(boots: Sequence[Boot], when: str, zone: str) -> list[Figure]:
    """Free blocks of each order: the mean, with least and greatest."""
    columns = zip(*(boot[when][zone] for boot in boots), strict=True)
    return [repeated(None, column) for column in columns]


def _judge_fragments(
    system: str, mode: str, zones: Sequence[str], claims: Sequence[tuple[str, str, str, tuple[str, ...]]], data: Data
) -> Outcome:
    boots: Boots = data[f"{system} {mode}"]
    sheets, pictures = [], []
    values: dict[tuple[str, str], dict[str, float]] = {}
    windows: dict[tuple[str, str], dict[str, list[float]]] = {}
    for zone in zones:
        for when in ("before", "after"):
            samples = {spec: [float(fragments(boot, when, zone)) for boot in mine] for spec, mine in boots.items()}
            values[when, zone], windows[when, zone] = _means(samples), samples
            by_order = {spec: _by_order(mine, when, zone) for spec, mine in boots.items()}
            sheets.append(_orders(f"Free fragments {when} the {WORKLOADS[mode]}, zone {zone}, by order", by_order, samples))
            for orders, said in ((range(_LARGEST), f"below order {_LARGEST}"), ([_LARGEST], f"of order {_LARGEST}")):
                series = [(spec, [found[order] for order in orders]) for spec, found in by_order.items()]
                drawn = charts.bars([str(order) for order in orders], series, f"free blocks, zone {zone}", "order")
                pictures.append(Picture(f"memory fragments {when} the execution, zone {zone}, {said}", drawn, beside=34))
        values["growth", zone] = {spec: values["after", zone][spec] - values["before", zone][spec] for spec in boots}
        both = windows["after", zone], windows["before", zone]
        windows["growth", zone] = {
            spec: [after - before for after, before in zip(*(one[spec] for one in both), strict=True)] for spec in boots
        }
    judged = []
    for text, what, zone, order in claims:
        found = values[what, zone]
        rule = f"by {'after less before' if what == 'growth' else what}, all orders"
        untouched = windows["after", zone] == windows["before", zone]
        why = "; the zone is untouched in every boot (figure 6: where Normal is smaller it is not)" if untouched else ""
        said = _listed(found, "blocks") + (why or _overlaps(windows[what, zone]))
        judged.append(Claim(f"{text} (rule: {rule})", None if untouched else ordered(windows[what, zone], order[::-1]), said))
    if (system, mode) == ("x86", "memory"):
        growth = values["growth", "Normal"]
        text = "the fragments before and after using slob remain almost the same (rule: they differ by less than 5%)"
        before = values["before", "Normal"]["slob"]
        judged.append(Claim(text, abs(growth["slob"]) < 0.05 * before, f"{show(before)} before, {show(before + growth['slob'])} after"))
    if (system, mode) == ("arm64", "fileio"):
        sheets.append(_without_the_third(boots))
    return Outcome(sheets, judged, pictures, _stands_for(system), [*_notes(boots), *([_NOTE_X86] if system == "x86" else [])])


def _orders(title: str, found: Mapping[str, Sequence[Figure]], whole: Mapping[str, Sequence[float]]) -> Sheet:
    """A line for each order, and one for all; across the allocators."""
    lines: list[list[Cell]] = [
        [str(order), *(shown(figures[order]) for figures in found.values())] for order in range(_LARGEST + 1)
    ]  # fmt: skip
    lines.append(["all", *(shown(repeated(None, values)) for values in whole.values())])
    rows = [(f"{spec}, order {order}", one) for spec, figures in found.items() for order, one in enumerate(figures)]
    rows += [(f"{spec}, all orders", repeated(None, values)) for spec, values in whole.items()]
    return Sheet(f"{title}, blocks", "blocks", rows, table=Table("", ["order", *found], lines))


def _without_the_third(boots: Boots) -> Sheet:
    """slub's fragments before it ran, with and without its third boot, which began with a huge number of them in his runs."""
    before = [float(fragments(boot, "before", "DMA")) for boot in boots["slub"]]
    rows = [("all boots", repeated(None, before)), ("without the third", repeated(None, [*before[:2], *before[3:]]))]
    note = (
        "His slub began its third boot with a huge number of fragments; the figure without it stands in his text as a picture. Ours began "
        f"with {', '.join(f'{one:g}' for one in before)}."
    )
    return Sheet("Free fragments of slub before the file i/o workload, zone DMA", "blocks", rows, notes=[note])


_FRAGMENTS: dict[str, list[tuple[str, str, str, tuple[str, ...]]]] = {
    "figure7": [("fragments increase most with slab, then slub, least with slob", "growth", "DMA", ("slab", "slub", "slob"))],
    "figure8": [("after file i/o most fragments remain with slab, then slub, fewest with slob", "after", "DMA", ("slab", "slub", "slob"))],
    "figure9": [("slub leaves most fragments, slab fewer, slob fewest", "after", "Normal", ("slub", "slab", "slob"))],
    "figure10": [
        ("in zone DMA32 most fragments remain with slab, then slub, fewest with slob", "after", "DMA32", ("slab", "slub", "slob"))
    ],
}


# ---- Figure 11: who is best -------------------------------------------------------------------------------------------

# As in the table of figure 11: from best to worst, with his asterisks where averages are close.
_RANKS: dict[tuple[str, str, str], tuple[str, ...]] = {
    ("arm64", "time", "memory"): ("slob", "slab", "slub"),
    ("arm64", "time", "fileio"): ("slab", "slub", "slob"),
    ("arm64", "consumption", "memory"): ("slub", "slab", "slob"),
    ("arm64", "consumption", "fileio"): ("slab", "slob", "slub"),
    ("arm64", "final fragments", "memory"): ("slob", "slub", "slab"),
    ("arm64", "final fragments", "fileio"): ("slob*", "slub*", "slab"),
    ("x86", "time", "memory"): ("slob", "slub*", "slab*"),
    ("x86", "time", "fileio"): ("slab", "slub", "slob"),
    ("x86", "consumption", "memory"): ("slab*", "slub*", "slob"),
    ("x86", "consumption", "fileio"): ("slub", "slab", "slob"),
    ("x86", "final fragments", "memory"): ("slob*", "slub*", "slab*"),
    ("x86", "final fragments", "fileio"): ("slob*", "slub*", "slab*"),
}


def _measure_ranks(work: Work) -> Data:
    """The samples that are ranked, by system, quantity, and mode; of time also those by the clock, which order it."""
    found: Data = {}
    for system in garcarz_runs.SYSTEMS:
        for mode in MODES:
            boots = garcarz_runs.condition(work, system, mode)
            counts = garcarz_runs.counted(work, system, mode)
            found[f"{system}, clock, {mode}"] = {spec: [one["seconds"]] for spec, one in counts.items()}
            of: dict[str, Callable[[Boot], float]] = {
                "time": lambda boot: float(boot["seconds"]),
                "consumption": consumed_mb,
                "final fragments": lambda boot: float(fragments(boot, "after")),
            }
            for quantity, value in of.items():
                found[f"{system}, {quantity}, {mode}"] = {spec: [value(boot) for boot in mine] for spec, mine in boots.items()}
    return found


def _judge_ranks(data: Data) -> Outcome:
    rows: list[tuple[str, Figure]] = []
    lines: list[list[Cell]] = []
    overlapping, verdicts, first = 0, [], set()
    for (system, quantity, mode), paper in _RANKS.items():
        samples: dict[str, list[float]] = data[f"{system}, {quantity}, {mode}"]
        ordering: dict[str, list[float]] = data[f"{system}, clock, {mode}"] if quantity == "time" else samples
        means = _means(ordering)
        order = _order(means)
        near = _near(order, samples)
        overlapping += quantity != "time" and below(samples[order[0]], samples[order[-1]]) is not True
        plain = [one.rstrip("*") for one in paper]
        name = f"{system}, {quantity}, {WORKLOADS[mode]}"
        place = {spec: 1 + sum(means[one] < means[spec] for one in STOCK) for spec in means}
        rows += [(f"{name}: {spec}", Figure(plain.index(spec) + 1, place[spec])) for spec in plain]
        rows += [(f"{name}: {spec}", Figure(None, place[spec])) for spec in means if spec in OTHERS]
        equal = {spec for spec in STOCK if sum(means[one] == means[spec] for one in STOCK) > 1}
        stock = {spec: ordering[spec] for spec in STOCK}
        verdicts.append(ordered(stock, plain))
        first |= {spec for spec in STOCK if least(stock, spec)}
        ours = [f"{'=' if spec in equal else ''}{spec}{'*' if spec in near else ''}" for spec in order]
        others = ", ".join(f"{spec.rpartition(':')[2]} {place[spec]}" for spec in means if spec in OTHERS)
        lines.append([name, ", ".join(paper), ", ".join(ours), _so(verdicts[-1]), others])
    notes = [
        "Ours, * : windows of neighbours overlap (emulated times). = : equal values share a place. For others: the place each would take. "
        " The paper's * marks averages that are close."
    ]
    table = Table("", ["", "paper, best to worst", "ours, by means", "his order", "others"], lines, notes)
    sheets = [Sheet("The sorted allocators", "place", rows, ratios=False, table=table)]
    claims = [_rank_claim(text, data, keys, place, spec) for text, keys, place, spec in _RANK_CLAIMS]
    told = len(first) > 1
    said = (
        f"best somewhere: {', '.join(sorted(first)) or 'none'}; of his {len(_RANKS)} rows {verdicts.count(True)} come out, "
        f"{verdicts.count(False)} come out otherwise, and of {verdicts.count(None)} the windows overlap"
    )
    text = "there is no perfect allocator; each is better in some of the benchmarks (rule: several are best somewhere)"
    claims.append(Claim(text, True if told else None if None in verdicts else False, said))
    near_all = (
        "in almost all the best of the worst is better than the worst of the best (rule: in 7 of the 8 rows of memory and fragments or "
        "more, as the windows of emulated times are the host's)"
    )
    if not all(_single(samples) for samples in data.values()):
        claims.append(Claim(near_all, overlapping >= 7, f"in {overlapping} of 8"))
    return Outcome(sheets, claims, (), _stands_for("arm64", "x86"), [_NOTE_X86])


Key = tuple[str, str, str]
_RANK_CLAIMS: list[tuple[str, tuple[Key, ...], int, str]] = [
    (
        "slob in both systems achieved better time executing memory operations",
        (("arm64", "time", "memory"), ("x86", "time", "memory")),
        0,
        "slob",
    ),
    (
        "slab achieved better time executing i/o operations in both systems",
        (("arm64", "time", "fileio"), ("x86", "time", "fileio")),
        0,
        "slab",
    ),
    ("slob achieved the worst time in file i/o in both systems", (("arm64", "time", "fileio"), ("x86", "time", "fileio")), -1, "slob"),
    (
        "slob consumed the most memory during the memory benchmark in both systems",
        (("arm64", "consumption", "memory"), ("x86", "consumption", "memory")),
        -1,
        "slob",
    ),
    (
        "the fragments after both workloads are fewest using slob, in both systems",
        tuple(key for key in _RANKS if key[1] == "final fragments"),
        0,
        "slob",
    ),
    (
        "slab left the biggest number of fragments in all workloads and systems",
        tuple(key for key in _RANKS if key[1] == "final fragments"),
        -1,
        "slab",
    ),
]


def _rank_claim(text: str, data: Data, keys: Sequence[Key], place: int, spec: str) -> Claim:
    """Whether it is best (place 0) or worst in all of these rows."""
    verdicts, parts = [], []
    for system, quantity, mode in keys:
        found: dict[str, list[float]] = data[f"{system}, {'clock' if quantity == 'time' else quantity}, {mode}"]
        stock = {one: found[one] for one in STOCK}
        verdicts.append(least(stock, spec) if place == 0 else greatest(stock, spec))
        overlap = _overlaps(stock) if verdicts[-1] is None else ""
        parts.append(f"{system}, {mode}: {_listed(_means(found), '')}{overlap.replace(';', ',')}")
    return Claim(text, every(verdicts), "; ".join(parts))


def _so(so: bool | None) -> str:
    return "cannot be told" if so is None else "comes out" if so else "does not"


# ---- The warning: fragments and events ----------------------------------------------------------------------------------


def _measure_events(work: Work) -> Data:
    return {"used": garcarz_runs.used_memory(work), "x86 fileio": garcarz_runs.condition(work, "x86", "fileio")}


def _judge_events(data: Data) -> Outcome:
    used: Boots = data["used"]
    fresh: Boots = data["x86 fileio"]
    events = {spec: [float(boot["events_boot"]) for boot in mine] for spec, mine in used.items()}
    running = {spec: [float(boot["events"]) for boot in mine] for spec, mine in used.items()}
    after = {spec: [float(fragments(boot, "after")) for boot in mine] for spec, mine in used.items()}
    growth = {spec: [float(fragments(boot, "after") - fragments(boot, "before")) for boot in mine] for spec, mine in used.items()}
    seconds = {spec: [boot["seconds"] for boot in mine] for spec, mine in used.items()}
    fresh_events = {spec: [float(boot["events_boot"]) for boot in mine] for spec, mine in fresh.items()}
    columns = (
        ("Events since the start, on memory that was used before the files were made", "events", events),
        ("Events during the run stage, on the same", "events", running),
        ("Free fragments after it, all orders", "blocks", after),
        ("Free fragments after less before", "blocks", growth),
        ("Time of the run stage", "s", seconds),
        ("Events since the start, on fresh memory", "events", fresh_events),
    )
    sheets = [Sheet(title, unit, [(spec, repeated(None, values)) for spec, values in samples.items()]) for title, unit, samples in columns]
    means, left = _means(running), _means(after)
    both = [(boot["events"], boot["seconds"]) for spec in STOCK for boot in used[spec]]
    varied = len({one for one, _ in both}) > 1
    claims = [
        Claim(
            "slob's few fragments are probably caused by mm_page_alloc_extfrag (rule: slob has most events, and fewest fragments after)",
            every((greatest({spec: running[spec] for spec in STOCK}, "slob"), least({spec: after[spec] for spec in STOCK}, "slob"))),
            f"events during the run stage: {_listed(means, '')}{_overlaps(running)}; "
            f"fragments after: {_listed(left, '')}{_overlaps(after)}; "
            f"since the start there were {_listed(_means(events), '')} events, on fresh memory {_listed(_means(fresh_events), '')}",
        ),
    ]
    notes = _notes(used)
    grows = "the more this event is called, the more the time grows (rule: events and time of the boots correlate by 0.5 or more)"
    if varied:
        related = statistics.correlation(*zip(*both, strict=True))
        apart = [(boot["events"] - means[spec], boot["seconds"] - statistics.fmean(seconds[spec])) for spec in STOCK for boot in used[spec]]
        alike = f"{statistics.correlation(*zip(*apart, strict=True)):.2f}" if len({one for one, _ in apart}) > 1 else "none"
        because = f"correlation {related:.2f} over {len(both)} boots; {alike} within allocators; {_listed(_means(seconds), 's')}"
        claims.append(Claim(grows, related >= 0.5, because))
    else:
        notes.append(f"Not judged: {grows}. All {len(both)} boots had {both[0][0]} events during the run stage.")
    pictures = [
        _bars("events during the run stage, memory used before", running, "events"),
        _bars("free fragments after it", after, "free blocks"),
    ]
    stands = (
        f"x86, {garcarz_runs.USED_MEMORY >> 20} MB of memory that files have filled but for {garcarz_runs.SPARE >> 20} MB, and of which "
        "every fourth piece of 32 KiB was given back, before sysbench made its own: his systems had run before. The event is a block taken "
        "from another migrate type; what moves memory to mend fragmentation, as he has it, is compaction, which is another event."
    )
    return Outcome(sheets, claims, pictures, stands, notes)


# ---- Items --------------------------------------------------------------------------------------------------------------


def _item(name: str, title: str, place: str, measure: Callable[[Work], Data], judge: Callable[[Data], Outcome], *systems: str) -> Item:
    kernels = [(garcarz_runs.SYSTEMS[system], kind, False) for system in systems for kind in STOCK]
    quick = "It boots each of Linux's own allocators once, and none of ours."
    return Item("garcarz", name, title, place, measure, judge, partial(garcarz_runs.check, *systems), kernels=kernels, quick=quick)


def _time_item(number: int, system: str, mode: str) -> Item:
    title = f"Time and bandwidth, {WORKLOADS[mode]}, {system}"
    return _item(
        f"figure{number}",
        title,
        f"figures {number}a, {number}b",
        partial(_measure_time, system, mode),
        partial(_judge_time, system, mode),
        system,
    )


def _fragments_item(number: int, system: str, mode: str, zones: Sequence[str]) -> Item:
    name = f"figure{number}"
    judge = partial(_judge_fragments, system, mode, zones, _FRAGMENTS[name])
    letters = f"{number}a, {number}b" if len(zones) == 1 else f"{number}a to {number}d"
    title = f"Fragments before and after, {WORKLOADS[mode]}, {system}"
    return _item(name, title, f"figures {letters}", partial(_measure_fragments, system, mode), judge, system)


ITEMS: list[Item] = [
    _time_item(1, "arm64", "memory"),
    _time_item(2, "arm64", "fileio"),
    _item(
        "figure3",
        "Memory consumed, arm64",
        "figures 3a, 3b",
        partial(_measure_modes, "arm64"),
        partial(_judge_consumption, "arm64"),
        "arm64",
    ),
    _time_item(4, "x86", "memory"),
    _time_item(5, "x86", "fileio"),
    _item("figure6", "Memory consumed, x86", "figures 6a, 6b", partial(_measure_modes, "x86"), partial(_judge_consumption, "x86"), "x86"),
    _fragments_item(7, "arm64", "memory", ("DMA",)),
    _fragments_item(8, "arm64", "fileio", ("DMA",)),
    _fragments_item(9, "x86", "memory", ("Normal",)),
    _fragments_item(10, "x86", "fileio", ("DMA32", "Normal")),
    _item("figure11", "The sorted allocators", "figure 11", _measure_ranks, _judge_ranks, "arm64", "x86"),
    _item("events", "Fallback events beside fragments", "below figure 7, and the conclusion", _measure_events, _judge_events, "x86"),
]
