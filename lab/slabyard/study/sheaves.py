"""Linux 7.0's sheaves: what they hold, what they spare, and what other settings of them would, over long recordings.

No paper, but four questions that the kernel's slab maintainers ask in public. Each is an item like a table of a paper; its claims are what
they expect, and what our figures say of it.

    capacity       memory and slow paths by the capacity of a sheaf and the full sheaves that a barn keeps
    fragmentation  6.12's slabs of CPUs against 7.0's sheaves
    locks          locks taken where one CPU allocates and another frees, on 16 to 64 CPUs (sheaves_pairs.py)
    caches         a capacity for each cache, against the kernel's rule by size

The first, the second and the last replay recordings: those in the folder of `--traces`, else the bundled ones. The environment's pages are
left out of these replays. No figure here depends on them, as memory never runs short, and they take most of the time. A record keeps
sums and means over recordings, so it stays small.
"""

from __future__ import annotations

import itertools
import math
import os
import resource
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..base.table import Table
from ..replay.scratch import NO_SHEAVES, SHEAVES
from ..replay.workload import Options, Workload
from ..results.measures import off_fast_path
from ..trace.file import Trace
from ..tune.space import Axis, Space
from ..tune.trials import Trials
from . import charts, document, filling, sheaves_pairs
from .charts import Line
from .model import Claim, Data, Figure, Item, Outcome, Picture, Sheet
from .work import Work

OLD, NEW = "slub:linux=6.12", "slub:linux=7.0"
REPLAYS = Options(locks=True, environment=False)
PAGE_KIB = 4
PER = 1000
JOBS = os.cpu_count() or 1
DRAWS, CONFIDENCE = 10_000, 95  # of the bootstrap; %

_CAPACITIES = (
    0, *range(2, 65, 2), 72, 76, 80, 84, 92, 100, 108, 116, 124, 140, 156, 172, 188, 220, 252, 508, 1020,
)  # fmt: skip
_BARNS = (0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 32, 48, 64, 128, 512)
_SHOWN = (0, 2, 4, 8, 12, 16, 20, 24, 28, 32, 36, 44, 52, 60, 76, 92, 124, 188, 252, 508, 1020)
_QUICK = ((0, 12, 28, 60, 252), (0, 10, 64))
BARN = 10  # the kernel's
_OF_CACHES = (4, 8, 12, 20, 28, 32, 44, 60, 92, 124, 188, 252)
_CPUS = (16, 32, 64)
_OTHERS = ("slub:linux=6.18", "slub:tiny=on", "slab", "slqb", "yard")
_REQUESTS = 6000  # for each CPU that completes


# ---- Recordings ----------------------------------------------------------------------------------------------------------------


def _paths(work: Work) -> list[Path]:
    return sorted((work.traces or filling.RECORDING.parent).glob("*.parquet"))


def _about(path: Path) -> Data:
    with Trace(path) as trace:
        of = trace.metadata
        requests = sum(of.events.get(name, 0) for name in ("kmalloc", "kmem_cache_alloc"))
        events = sum(of.events.values())
        about = {"requests": requests, "events": events, "implied": of.implied_frees + of.implied_allocations, "lost": of.lost}
        return {**about, "kernel": of.kernel, "cpus": of.cpus, "seconds": round(of.span_seconds, 1)}


def _cost(exact: Data) -> Data:
    """Of a replay: pages, operations, and of these what left the fast path, with the locks taken."""
    operations, slow = off_fast_path(exact)
    return {
        "held": exact["held_pages_peak"], "grew": exact["grew_pages_peak"], "ops": operations, "slow": round(slow), "locks": exact["locks"],
    }  # fmt: skip


def _each(work: Work, part: Callable[[Path], Any], side_by_side: bool = True) -> dict[str, Any]:
    paths = _paths(work)
    if side_by_side:
        return work.side_by_side({path.stem: partial(part, path) for path in paths})
    return {path.stem: work.once(path.stem, partial(part, path)) for path in paths}


def per(one: Data, name: str) -> float:
    """For each thousand operations."""
    return PER * one[name] / max(1, one["ops"])


def interval(values: Sequence[float]) -> tuple[float, float, float]:
    """The mean, and its 95% interval over recordings: of 10,000 resamples (bootstrap, by percentiles), always the same ones."""
    found = np.asarray(values, float)
    means = found[np.random.default_rng(1).integers(0, len(found), (DRAWS, len(found)))].mean(axis=1)
    rest = (100 - CONFIDENCE) / 2
    low, high = np.percentile(means, [rest, 100 - rest])
    return float(found.mean()), float(low), float(high)


def _grid(title: str, columns: Sequence[str], rows: Sequence[tuple[str, Sequence[Any]]], notes: Sequence[str] = ()) -> Sheet:
    """A table of several columns; each cell is also a figure with the names of both."""
    flat = [(f"{name}: {column}", Figure(None, value)) for name, values in rows for column, value in zip(columns[1:], values, strict=True)
            if not isinstance(value, str)]  # fmt: skip
    return Sheet(title, "", flat, notes=notes, table=Table(title, columns, [[name, *values] for name, values in rows], list(notes)))


def _between(of: tuple[float, float, float], digits: int = 1) -> str:
    return f"{of[0]:+.{digits}f} ({of[1]:+.{digits}f} to {of[2]:+.{digits}f})"


_LEFT_OUT = (
    "Left out by the model: the sheaf that kfree_rcu fills and prefilled sheaves, of which no event tells; time, cache misses and waiting "
    "for locks; what else a kernel of that version would do otherwise. The recordings are of two CPUs."
)


# ---- Answer 1: Capacity and barn limits ------------------------------------------------------------------------------------------------


def _swept(path: Path, capacities: Sequence[int], barns: Sequence[int]) -> Data:
    """All settings on one recording, as many at once as there are CPUs; with the seconds they took."""
    space = Space(NEW, (Axis("sheaf_capacity", tuple(map(str, capacities))), Axis("barn_full", tuple(map(str, barns)))))
    with Workload(path, REPLAYS) as workload:
        began, used = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
        with Trials(workload, space, JOBS, lambda _: None) as trials:
            found = [_cost(one.exact) for one in trials.run(space.settings())]
            rule = _cost(trials.plain().exact)
        now = resource.getrusage(resource.RUSAGE_CHILDREN)  # of children that have ended
        seconds = [time.monotonic() - began, now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime]
    return {"settings": found, "rule": rule, "seconds": seconds}


def _capacity(work: Work) -> Data:
    capacities, barns = _QUICK if work.quick else (_CAPACITIES, _BARNS)
    found = _each(work, lambda path: _swept(path, capacities, barns), side_by_side=False)
    figures: dict[str, list[list[float]]] = {name: [] for name in ("memory", "slow", "locks")}  # a list for each capacity
    windows = []
    for place, (capacity, barn) in enumerate(itertools.product(capacities, barns)):
        ours = [(one["settings"][place], one["rule"]) for one in found.values()]
        memory = [100 * (a["held"] / b["held"] - 1) for a, b in ours]
        means = {
            "memory": statistics.fmean(memory),
            **{name: statistics.fmean(per(a, name) for a, _ in ours) for name in ("slow", "locks")},
        }
        for name, value in means.items():
            figures[name] += [[]] if barn == barns[0] else []
            figures[name][-1].append(round(value, 2))
        if barn == BARN:
            kib = statistics.fmean(PAGE_KIB * (a["held"] - b["held"]) for a, b in ours)
            windows.append([capacity, *(round(one, 2) for one in interval(memory)[1:]), round(kib)])
    wall, cpu = (sum(one["seconds"][place] for one in found.values()) for place in (0, 1))
    rules = {name: one["rule"] for name, one in found.items()}
    axes = {"capacities": list(capacities), "barns": list(barns)}
    return {**axes, **figures, "windows": windows, "rules": rules, "jobs": JOBS, "seconds": [round(wall), round(cpu)]}


def _rule_line(data: Data) -> tuple[float, float]:
    rules = data["rules"].values()
    return statistics.fmean(per(one, "slow") for one in rules), statistics.fmean(per(one, "locks") for one in rules)


_Setting = tuple[int, int, float, float, float]


def _settings(data: Data) -> list[_Setting]:
    """Capacity and full sheaves in a barn; memory, % over the rule's; slow operations and locks per 1,000."""
    figures = (itertools.chain.from_iterable(data[name]) for name in ("memory", "slow", "locks"))
    return [(*axes, *rest) for axes, *rest in zip(itertools.product(data["capacities"], data["barns"]), *figures, strict=True)]


def _judge_capacity(data: Data) -> Outcome:
    settings, (slow, locks) = _settings(data), _rule_line(data)
    at_barn = {one[0]: one for one in settings if one[1] == BARN}
    rows = [
        (f"{capacity} objects", [at_barn[capacity][2], f"{low:+.2f} to {high:+.2f}", kib, *at_barn[capacity][3:]])
        for capacity, low, high, kib in data["windows"]
        if capacity in _SHOWN
    ]
    rows.insert(0, ("the kernel's rule", [0.0, "", 0, round(slow, 2), round(locks, 2)]))
    columns = ["capacity", "memory, %", f"{CONFIDENCE}% interval", "memory, KiB", "slow per 1,000", "locks per 1,000"]
    limits = [one for one in settings if one[0] in (28, 60, 124) and one[1] in (0, 1, 4, 10, 16, 32, 64, 512)]
    sheets = [
        _grid(f"By capacity, {BARN} full sheaves in a barn; memory at the peak, over that of the rule", columns, rows),
        _grid("By barn limit", ["capacity and full sheaves", "memory, %", *columns[4:]],
              [(f"{one[0]} objects, {one[1]} full", [*one[2:]]) for one in limits]),
    ]  # fmt: skip
    sheaved = [one for one in settings if one[0]]
    as_small = [one for one in sheaved if one[2] <= 0]
    best, fewest = (min(as_small, key=lambda one, place=place: one[place]) for place in (3, 4))  # type: ignore[misc]
    least = min((one for one in sheaved if one[3] <= slow), key=lambda one: one[2])
    wall, cpu = data["seconds"]
    replayed, million = len(data["rules"]), statistics.fmean(one["ops"] for one in data["rules"].values()) / 1e6
    line = [at_barn[capacity] for capacity in sorted(at_barn) if capacity]
    doubled = [(one, at_barn[2 * one[0]]) for one in line if 2 * one[0] in at_barn]
    steps = list(itertools.pairwise(line))
    back = sum(a[3] < b[3] or a[2] > b[2] for a, b in steps)

    def told(one: _Setting, place: int, of_rule: float) -> str:
        figures = f"{one[place]:.1f} per 1,000 in place of {of_rule:.1f}, {one[2]:+.2f}% of memory"
        return f"the best is {one[0]} objects and {one[1]} full sheaves: {figures}"

    claims = [
        Claim("A sheaf of twice the objects leaves the fast path less often, and holds more memory",
              all(a[3] > b[3] and a[2] < b[2] for a, b in doubled),
              f"from {line[0][0]} to {line[-1][0]} objects: {line[0][3]:.1f} to {line[-1][3]:.2f} slow operations per 1,000, "
              f"{line[0][2]:+.1f}% to {line[-1][2]:+.1f}% of memory; from one capacity tried to the next {back} of {len(steps)} steps "
              "have it the other way"),
        Claim("A setting for all caches halves the slow operations of the rule at no more memory", best[3] <= slow / 2,
              told(best, 3, slow)),
        Claim("A setting for all caches halves the locks of the rule at no more memory", fewest[4] <= locks / 2, told(fewest, 4, locks)),
    ]  # fmt: skip
    notes = [
        f"**Capacity**: by the kernel's rule {slow:.1f} of 1,000 operations leave the fast path. One capacity for all caches needs "
        f"{least[2]:.1f}% more memory to do as well; in no more memory than the rule's, {best[3]:.1f} of 1,000 leave it.",
        f"That is {least[0]} objects and {least[1]} full sheaves, and {best[0]} objects and {best[1]} full sheaves. Locks of the rule: "
        f"{locks:.1f} per 1,000.",
        f"{len(settings):,} settings on each of {replayed} recordings took {wall:,} s on {data['jobs']} CPUs and {cpu:,} s of processor "
        f"time: {1000 * cpu / len(settings) / replayed:.0f} ms a replay, of {million:.1f} million operations in the mean.",
    ]  # fmt: skip
    return Outcome(sheets, claims, [_capacity_picture(settings, slow)], _LEFT_OUT, notes)


def _capacity_picture(settings: Sequence[_Setting], slow: float) -> Picture:
    drawn = [one for one in settings if one[0] in _SHOWN and 4 <= one[0] <= 252]
    series = []
    for barn in (0, BARN, 64):
        series.append(Line(f"{barn} full sheaves in a barn", sorted((one[2], one[3]) for one in drawn if one[1] == barn)))
    series.append(Line("the kernel's rule", [(0.0, slow)]))
    drawing = charts.lines(series, "memory at the peak, % over that of the rule", "slow operations per 1,000", True)
    return Picture("Sheaves of 4 to 252 objects", drawing)


def _recordings(found: Data) -> Sheet:
    facts = ("requests", "events", "implied")
    figures = ("held", "slow", "locks")
    columns = ["recording", "requests", "events", "inferred",
               *(f"{name} {version}" for name in ("pages", "slow", "locks") for version in ("6.12", "7.0"))]  # fmt: skip
    rows = []
    for name, one in found.items():
        pair = [one["found"][spec] for spec in (OLD, NEW)]
        costs = [of[key] if key == "held" else round(per(of, key), 1) for key in figures for of in pair]
        rows.append((name, [*(one["about"][fact] for fact in facts), *costs]))
    kernels = sorted({one["about"]["kernel"] for one in found.values()})
    lost = sum(one["about"]["lost"] for one in found.values())
    note = (
        f"Of Linux {', '.join(kernels)}; {lost:,} events were lost. Events of pages are among the events; pages are those at the peak; "
        "slow operations and locks per 1,000 operations."
    )
    return _grid("The recordings", columns, rows, [note])


# ---- Answer 2: Fragmentation -----------------------------------------------------------------------------------------------------------


def _of_caches(exact: Data) -> dict[str, list[int]]:
    """By cache: operations, slow ones, locks, bytes at the peak, bytes of an object."""
    found: dict[str, list[int]] = {}
    for row in exact["caches"]:
        pages = row["pages_peak"] or 0
        found[row["name"]] = [row.get("operations", 0), row.get("slow", 0), row.get("locks", 0), pages * PAGE_KIB << 10, row["size"] or 0]
    return found


_FACTS = ("held", "grew", "ops", "slow", "locks", "peak", "end", "slabs", "partial", "held_end")  # of a replay, in a record


def _named(data: Data) -> Data:
    """A record's figures by recording and allocator, each by its name."""
    return {
        name: {"about": one["about"], "found": {spec: dict(zip(_FACTS, facts, strict=True)) for spec, facts in one["found"].items()}}
        for name, one in data.items()
    }


def _fragmented(path: Path) -> Data:
    with Workload(path, REPLAYS) as workload:
        found = {}
        for spec in (OLD, NEW, *_OTHERS):
            workload.keep(1)
            exact = workload.exact(spec)
            slabs, some_free = (sum(row[name] or 0 for row in exact["caches"]) for name in ("slabs", "partial_slabs"))
            ends = {name: exact[f"total_fragmentation_{name}"] for name in ("peak", "end")}
            facts = {**_cost(exact), **ends, "slabs": slabs, "partial": some_free, "held_end": exact["held_pages_end"]}
            found[spec] = [facts[name] for name in _FACTS]
    return {"about": _about(path), "found": found}


def _fragmentation(work: Work) -> Data:
    return _each(work, _fragmented)


_MEASURES: tuple[tuple[str, Callable[[Data], float]], ...] = (
    ("memory that no request asked for, at the peak, %", lambda one: 100 * one["peak"]),
    ("the same at the end, %", lambda one: 100 * one["end"]),
    ("slabs that are partial at the end, %", lambda one: 100 * one["partial"] / max(1, one["slabs"])),
    ("partial slabs at the end", lambda one: one["partial"]),
    ("pages at the peak", lambda one: one["held"]),
    ("pages at the end", lambda one: one["held_end"]),
)


def _judge_fragmentation(data: Data) -> Outcome:
    data = _named(data)
    pairs = [(one["found"][OLD], one["found"][NEW]) for one in data.values()]
    found = [interval([of(new) - of(old) for old, new in pairs]) for _, of in _MEASURES]
    rows = []
    for (name, of), between in zip(_MEASURES, found, strict=True):
        rows.append((name, [*(round(statistics.fmean(of(pair[which]) for pair in pairs), 2) for which in (0, 1)), _between(between, 2)]))
    others = []
    for spec in (OLD, NEW, *_OTHERS):
        ours = [one["found"][spec] for one in data.values()]
        memory = interval([100 * (one["held"] / old["held"] - 1) for one, (old, _) in zip(ours, pairs, strict=True)])
        means = [round(statistics.fmean(per(one, name) for one in ours), 1) for name in ("slow", "locks")]
        others.append((spec, [_between(memory), round(100 * statistics.fmean(one["peak"] for one in ours), 1), *means]))
    columns = ["allocator", "memory at the peak, % over 6.12", "waste at the peak, %", "slow per 1,000", "locks per 1,000"]
    note = f"The interval is of the mean over recordings: {DRAWS:,} resamples of them."
    sheets = [
        _grid(f"Means over {len(pairs)} recordings", ["", "6.12", "7.0", f"difference ({CONFIDENCE}% interval)"], rows, [note]),
        _grid("Each allocator", columns, others),
        _recordings(data),
    ]
    peak, end, listed, _, pages, _ = found
    locks = [(per(old, "locks"), per(new, "locks")) for old, new in pairs]
    more = interval([100 * (new["held"] / old["held"] - 1) for old, new in pairs])
    both = f"{_between(peak, 2)} points at the peak, {_between(end, 2)} at the end"
    claims = [
        Claim("Sheaves raise total fragmentation", peak[1] > 0 and end[1] > 0, both),
        Claim("Sheaves leave more slabs partial", listed[1] > 0, f"{_between(listed, 2)} points of all slabs at the end"),
    ]
    notes = [
        f"**Fragmentation**: 7.0 holds {more[0]:.1f}% more than 6.12 at the peak ({CONFIDENCE}% interval {more[1]:.1f} to {more[2]:.1f}; "
        f"{PAGE_KIB * pages[0] / 1024:.1f} MiB on two CPUs). Waste differs by {peak[0]:+.1f} points at the peak and {end[0]:+.1f} at the "
        f"end, the share of partial slabs by {listed[0]:+.1f}.",
        f"7.0 takes more locks than 6.12 in {sum(new > old for old, new in locks)} of the {len(pairs)} recordings, in the mean "
        f"{statistics.fmean(new for _, new in locks):.1f} for {statistics.fmean(old for old, _ in locks):.1f} per 1,000 operations; "
        f"it leaves the fast path less often in {sum(per(new, 'slow') < per(old, 'slow') for old, new in pairs)} of them.",
    ]  # fmt: skip
    return Outcome(sheets, claims, [], _LEFT_OUT, notes)


# ---- Answer 3: Locks where one CPU allocates and another frees ---------------------------------------------------------------------------

_SMALLER = f"{NEW},sheaf_capacity=28,barn_full=32"
_BATCHED = "slab:limit=54,batchcount=54,shared=16"  # a queue goes to the others' as a whole
_OLDER = ("slub:linux=6.1", OLD, "slub:linux=6.18")
_LOCK_SPECS = (
    *_OLDER, NEW, f"{NEW},barn_full=128", _SMALLER, f"{NEW},sheaf_capacity=124,barn_full=64", "slab",
    _BATCHED, "slqb", "yard", "bonwick:magazine=on",
)  # fmt: skip


# By name: the pattern, whether requests may wait, and what it is called.
_PATTERNS = {
    "pairs": ("pairs", False, "half of the CPUs allocate, each for one that frees"),
    "pairs that wait": ("pairs", True, "the same, and requests may wait for memory"),
    "one": ("one", False, "one CPU allocates for all others"),
    "one that waits": ("one", True, "the same, and requests may wait for memory"),
    "same": ("same", False, "each CPU frees what it has allocated"),
}
_ACROSS = [name for name in _PATTERNS if name != "same"]


def _counted(pattern: str, cpus: int, waits: bool, quick: bool) -> Data:
    lanes = {"pairs": cpus // 2, "one": cpus - 1, "same": cpus}[pattern]
    with tempfile.TemporaryDirectory(prefix="slabyard-pairs-") as folder:
        path = sheaves_pairs.write(Path(folder) / "pairs.parquet", pattern, cpus, (400 if quick else _REQUESTS) * lanes, waits)
        with Workload(path, Options(locks=True)) as workload:
            server = workload.settings()
            try:
                return {spec: _cost(answer["exact"]) for spec in _LOCK_SPECS if "exact" in (answer := server.ask(spec))}
            finally:
                server.close()


def _locks(work: Work) -> Data:
    wanted = {f"{name} {cpus}": (pattern, cpus, waits) for name, (pattern, waits, _) in _PATTERNS.items() for cpus in _CPUS}
    return work.side_by_side({name: partial(_counted, *one, work.quick) for name, one in wanted.items()})


_LOCKS_STAND_FOR = (
    "The trace is made (lab/slabyard/study/sheaves_pairs.py): requests of 256, 200 and 1,024 bytes, 16 to 256 in flight for each CPU that "
    "completes. Locks are those of the policy (a node's list, a barn, a depot), not those of the page allocator. They are counted, not "
    "waited for: 64 CPUs of one node share a barn's lock, and where they meet a lock costs more. 6.12's frees into others' slabs take no "
    "lock, but share a cache line. Each new slab counts as one more lock here, about one in 1,000 operations."
)


def _judge_locks(data: Data) -> Outcome:
    sheets, pictures = [], []
    columns = ["allocator", *(f"{name}, {cpus}" for name in ("locks", "slow") for cpus in _CPUS), f"pages, {_CPUS[-1]}"]
    groups = [f"{cpus} CPUs" for cpus in _CPUS]
    for pattern, (_, _, told) in _PATTERNS.items():
        ours = [data[f"{pattern} {cpus}"] for cpus in _CPUS]
        rows = [(spec, [*(round(per(one[spec], name), 1) for name in ("locks", "slow") for one in ours), ours[-1][spec]["held"]])
                for spec in ours[0]]  # fmt: skip
        sheets.append(
            _grid(f"{told[:1].upper()}{told[1:]}: locks and slow operations per 1,000, and pages at the peak, by CPUs", columns, rows)
        )
        series = [(spec, [Figure(None, per(one[spec], "locks")) for one in ours]) for spec in (OLD, NEW, _SMALLER, _BATCHED)]
        pictures.append(Picture(told, charts.bars(groups, series, f"locks per 1,000: {told}"), True))
    across = [data[f"{pattern} {cpus}"] for pattern in _ACROSS for cpus in _CPUS]
    halves = {}
    for spec in across[0]:
        if spec not in (NEW, *_OLDER):
            halves[spec] = sum(2 * one[spec]["locks"] <= one[NEW]["locks"] and one[spec]["held"] <= one[NEW]["held"] for one in across)
    winners = [f"`{spec}`" for spec, count in halves.items() if count == len(across)]
    partly = [f"`{spec}` in {count} of {len(across)}" for spec, count in halves.items() if 0 < count < len(across)]
    pairs, one, same = (data[f"{name} {_CPUS[-1]}"] for name in ("pairs", "one", "same"))

    def beside(of: Data) -> str:
        return f"{per(of[NEW], 'locks'):.0f} in 7.0, {per(of[OLD], 'locks'):.0f} in 6.12"

    claims = [
        Claim("Where one CPU allocates and another frees, 7.0 takes no more locks than 6.12",
              all(per(one[NEW], "locks") <= per(one[OLD], "locks") for one in across),
              f"locks per 1,000 operations on 64 CPUs: {beside(pairs)} in pairs; {beside(one)} where one serves 63"),
        Claim("A setting of 7.0, or another policy, halves the locks at no more memory in each of the cases", bool(winners),
              f"in all {len(across)} cases {', '.join(winners) or 'none'}; in some {', '.join(partly) or 'none'}"),
    ]  # fmt: skip
    notes = [
        f"**Locks** per 1,000 operations where one CPU allocates and another frees: {beside(pairs)} (64 CPUs in pairs); "
        f"{beside(one)} (one for 63). At most half of 7.0's locks, in no more memory, takes "
        f"{', '.join(winners) or 'nobody'}.",
        f"Where each CPU frees its own it is {beside(same)}. Off the fast path of pairs are {per(pairs[OLD], 'slow'):.0f} operations "
        f"of 1,000 in 6.12, most of them an exchange of a shared word, and {per(pairs[NEW], 'slow'):.0f} in 7.0. Half of 7.0's locks "
        f"in no more memory, in some of the {len(across)} cases: {', '.join(partly) or 'nobody'}.",
    ]  # fmt: skip
    return Outcome(sheets, claims, pictures, _LOCKS_STAND_FOR, notes)


# ---- Answer 4: A capacity for each cache -------------------------------------------------------------------------------------------------


def sheaf_bytes(capacity: int) -> int:
    """Of kmalloc: a header of 32 bytes and a pointer for each object."""
    size = 32 + 8 * capacity
    return next((one for one in (64, 96, 128, 192, 256) if size <= one), 1 << max(0, size - 1).bit_length())


def by_rule(name: str, size: int) -> int:
    """Objects of a sheaf in 7.0: by the bytes of an object, or what the cache asks for, if that is more."""
    return max(4 if size >= 4096 else 12 if size >= 1024 else 28 if size >= 256 else 60, SHEAVES.get(name, 0))


def _by_capacity(path: Path) -> Data:
    with Workload(path, REPLAYS) as workload:
        found = {}
        for capacity in _OF_CACHES:
            workload.keep(1)
            found[str(capacity)] = _of_caches(workload.exact(f"{NEW},sheaf_capacity={capacity}"))
        workload.keep(1)
        rule = workload.exact(NEW)
        return {"caches": found, "rule": _cost(rule), "of_rule": _of_caches(rule), "cpus": workload.cpus}


def _caches(work: Work) -> Data:
    """Of each cache, by capacity: slow operations and locks in all, and bytes, the mean over recordings."""
    found = _each(work, _by_capacity)
    names = sorted(
        {name for one in found.values() for name, row in one["of_rule"].items() if row[0] and row[4] and SHEAVES.get(name) != NO_SHEAVES}
    )
    caches = {}
    for name in names:
        curve = []
        for capacity in _OF_CACHES:
            rows = [one["caches"][str(capacity)].get(name, [0] * 5) for one in found.values()]
            sheaves = [2 * one["cpus"] * sheaf_bytes(capacity) for one in found.values()]  # a main and a spare one for each CPU
            kib = (statistics.fmean(row[3] for row in rows) + statistics.fmean(sheaves)) / 1024
            curve.append([sum(row[1] for row in rows), sum(row[2] for row in rows), round(kib, 1)])
        sizes = [one["of_rule"][name][4] for one in found.values() if name in one["of_rule"]]
        caches[name] = [max(sizes), sum(one["of_rule"].get(name, [0])[0] for one in found.values()), curve]
    slow = sum(one["of_rule"].get(name, [0, 0])[1] for one in found.values() for name in names)
    return {"caches": caches, "rule_slow": slow, "recordings": len(found)}


@dataclass(frozen=True)
class _Curve:
    """Of a cache: bytes of an object, operations, and by capacity slow operations, locks and KiB."""

    size: int
    ops: int
    costs: dict[int, tuple[float, float, float]]


def _curves(data: Data) -> dict[str, _Curve]:
    return {
        name: _Curve(size, ops, dict(zip(_OF_CACHES, map(tuple, curve), strict=True)))
        for name, (size, ops, curve) in data["caches"].items()
    }


def choose(caches: Mapping[str, _Curve], budget: float, measure: int = 0) -> dict[str, int]:
    """A capacity for each cache: the least of a measure (0: slow operations, 1: locks) in so many KiB, by a price of a KiB for all."""
    best: tuple[float, dict[str, int]] = (math.inf, {})
    for price in (0.0, *np.logspace(-3, 6, 200)):
        chosen = {}
        for name, of in caches.items():
            prices = {capacity: (cost[measure] + price * cost[2], capacity) for capacity, cost in of.costs.items()}
            chosen[name] = min(prices, key=prices.__getitem__)
        if total(caches, chosen, 2) <= budget:
            best = min(best, (total(caches, chosen, measure), chosen), key=lambda one: one[0])
    return best[1]


def total(caches: Mapping[str, _Curve], chosen: Mapping[str, int], measure: int) -> float:
    """Slow operations (0), locks (1) or KiB (2) of these capacities."""
    return float(sum(caches[name].costs[capacity][measure] for name, capacity in chosen.items()))


def _judge_caches(data: Data) -> Outcome:
    caches = _curves(data)
    rule = {name: by_rule(name, of.size) for name, of in caches.items()}
    ruled = [total(caches, rule, place) for place in range(3)]
    ops = sum(of.ops for of in caches.values())

    def row(name: str, chosen: Mapping[str, int]) -> tuple[str, list[Any]]:
        slow, locks, kib = (total(caches, chosen, place) for place in range(3))
        return name, [round(100 * (kib / ruled[2] - 1), 2), round(PER * slow / ops, 2), round(PER * locks / ops, 2)]

    shares = (-4, -2, -1, 0, 1, 2, 4)
    ours = {share: found for share in shares if (found := choose(caches, ruled[2] * (1 + share / 100)))}
    rows = [row("the kernel's rule", rule), *(row(f"per cache, {share:+d}% of memory at most", found) for share, found in ours.items())]
    chosen = ours[0]
    slow, locks = (total(caches, chosen, place) for place in (0, 1))
    saved = {name: of.costs[rule[name]][0] - of.costs[chosen[name]][0] for name, of in caches.items()}
    most = []
    for name in sorted(saved, key=lambda one: saved[one], reverse=True)[:15]:
        of, before, after = caches[name], caches[name].costs[rule[name]], caches[name].costs[chosen[name]]
        most.append((name, [of.size, of.ops, rule[name], chosen[name], before[0], after[0], round(after[2] - before[2])]))
    larger, smaller = (sum(sign * (chosen[name] - rule[name]) > 0 for name in caches) for sign in (1, -1))
    check = (
        f"the caches' slow operations at the rule's capacities, each from the replays in which all caches have that capacity, add up to "
        f"{ruled[0]:,.0f}; the replays of the rule itself have {data['rule_slow']:,}"
    )
    sheets = [
        _grid(f"A capacity for each cache, the same in all {data['recordings']} recordings",
              ["capacities", "memory, %", "slow per 1,000", "locks per 1,000"], rows, [f"Memory of the rule: {ruled[2]:,.0f} KiB."]),
        _grid("The caches that gain most, in the memory of the rule",
              ["cache", "bytes", "operations", "rule", "chosen", "slow, rule", "slow, chosen", "memory, KiB"], most),
    ]  # fmt: skip
    told = f"{PER * slow / ops:.2f} per 1,000 operations in place of {PER * ruled[0] / ops:.2f}"
    changes = f"{larger} of {len(caches)} caches would have larger sheaves, {smaller} smaller ones"
    claims = [
        Claim("Capacities chosen per cache halve the slow operations of the rule in no more memory", slow <= ruled[0] / 2,
              f"{told}; {changes}"),
        Claim("Capacities chosen per cache halve the locks of the rule in no more memory", locks <= ruled[1] / 2,
              f"{PER * locks / ops:.2f} per 1,000 operations in place of {PER * ruled[1] / ops:.2f}"),
        Claim("A cache's figures depend on its own capacity alone, so that they may be added up",
              abs(ruled[0] - data["rule_slow"]) <= 0.02 * data["rule_slow"], check),
    ]  # fmt: skip
    notes = [
        f"**Per cache**: in the rule's memory, capacities chosen for each cache leave the fast path {PER * slow / ops:.1f} times in "
        f"1,000 operations and take {PER * locks / ops:.1f} locks, where the rule does {PER * ruled[0] / ops:.1f} and "
        f"{PER * ruled[1] / ops:.1f}.",
    ]  # fmt: skip
    stands = (
        f"The capacities are chosen on the recordings that they are judged by, so this is the most that can be gained there. A cache's "
        f"memory is that of its slabs at the peak, and a main and a spare sheaf for each CPU; sheaves in barns are not in it. {_LEFT_OUT}"
    )
    return Outcome(sheets, claims, [], stands, notes)


def answers(done: Iterable[Outcome]) -> str:
    """The first lines of docs/sheaves.md: an answer for each item."""
    return "\n".join(document.wrapped(outcome.notes[0], "- ", "  ") for outcome in done)


ITEMS = (
    Item("sheaves", "capacity", "Capacity and barn limits", "answer 1", _capacity, _judge_capacity),
    Item("sheaves", "fragmentation", "Fragmentation, 6.12 and 7.0", "answer 2", _fragmentation, _judge_fragmentation),
    Item("sheaves", "locks", "Locks where one CPU allocates and another frees", "answer 3", _locks, _judge_locks, exact=True),
    Item("sheaves", "caches", "A capacity for each cache", "answer 4", _caches, _judge_caches),
)
