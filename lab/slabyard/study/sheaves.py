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
import resource
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ..base.table import document as markdown
from ..base.table import show
from ..replay.workload import Options, Workload
from ..trace.file import Trace
from ..tune.space import Axis, Space
from ..tune.trials import Trials
from . import charts, document, sheaves_caches, sheaves_pairs
from .charts import Line
from .model import Claim, Data, Done, Figure, Item, Outcome, Picture, Sheet
from .sheaves_figures import (
    CONFIDENCE,
    DRAWS,
    JOBS,
    LEFT_OUT,
    NEW,
    OLD,
    PAGE_KIB,
    REPLAYS,
    between,
    cost,
    each,
    grid,
    interval,
    per,
    within,
)  # fmt: skip
from .work import Work

RULE = -1  # as a capacity: the version's, by the size of an object
_CAPACITIES = (
    RULE, *range(2, 65, 2), 72, 76, 80, 84, 92, 100, 108, 116, 124, 140, 156, 172, 188, 220, 252, 508, 1020,
)  # fmt: skip
_BARNS = (0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 32, 48, 64, 128, 512)
_SHOWN = (2, 4, 8, 12, 16, 20, 24, 28, 32, 36, 44, 52, 60, 76, 92, 124, 188, 252, 508, 1020)
_QUICK = ((RULE, 12, 28, 60, 252), (0, 10, 64))
BARN, WIDE = 10, 64  # full sheaves: the kernel's, and more
_CPUS = (16, 32, 64)
_OTHERS = ("slub:linux=6.18", "slub:tiny=on", "slab", "slqb", "yard")
_REQUESTS = 6000  # for each CPU that completes
_SEEDS = 5  # of the made traces


# ---- Answer 1: Capacity and barn limits ------------------------------------------------------------------------------------------------


def _slow_of(one: _Setting) -> float:
    return one.slow


def _locks_of(one: _Setting) -> float:
    return one.locks


def _swept(path: Path, capacities: Sequence[int], barns: Sequence[int]) -> Data:
    """All settings on one recording, as many at once as there are CPUs; with the seconds that preparing it took, those of the replays by
    the clock, and their processor time."""
    named = tuple("auto" if one == RULE else str(one) for one in capacities)
    space = Space(NEW, (Axis("sheaf_capacity", named), Axis("barn_full", tuple(map(str, barns)))))
    began = time.monotonic()
    with Workload(path, REPLAYS) as workload:
        prepared, used = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
        with Trials(workload, space, JOBS, lambda _: None) as trials:
            found = [cost(one.exact) for one in trials.run(space.settings())]
        now = resource.getrusage(resource.RUSAGE_CHILDREN)  # of children that have ended
        cpu = now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime
        return {"settings": found, "seconds": [prepared - began, time.monotonic() - prepared, cpu]}


def _capacity(work: Work) -> Data:
    capacities, barns = _QUICK if work.quick else (_CAPACITIES, _BARNS)
    found = each(work, lambda path: _swept(path, capacities, barns), side_by_side=False)
    axes = list(itertools.product(capacities, barns))
    rule = axes.index((RULE, BARN))
    rules = {name: one["settings"][rule] for name, one in found.items()}
    figures: dict[str, list[list[float]]] = {name: [] for name in ("memory", "slow", "locks")}  # a list for each capacity
    windows = []
    for place, (capacity, barn) in enumerate(axes):
        ours = [(one["settings"][place], one["settings"][rule]) for one in found.values()]
        memory = [100 * (a["held"] / b["held"] - 1) for a, b in ours]
        means = {
            "memory": statistics.fmean(memory),
            **{name: statistics.fmean(per(a, name) for a, _ in ours) for name in ("slow", "locks")},
        }
        for name, value in means.items():
            figures[name] += [[]] if barn == barns[0] else []
            figures[name][-1].append(round(value, 2))
        if barn == BARN or capacity == RULE:
            kib = statistics.fmean(PAGE_KIB * (a["held"] - b["held"]) for a, b in ours)
            locks = interval([100 * (a["locks"] / max(1, b["locks"]) - 1) for a, b in ours])
            of_memory = [round(one, 2) for one in interval(memory)[1:]]
            windows.append([capacity, barn, *of_memory, round(kib), *(round(one, 1) for one in locks)])
    seconds = [round(sum(one["seconds"][place] for one in found.values())) for place in range(3)]
    return {"capacities": list(capacities), "barns": list(barns), **figures, "windows": windows, "rules": rules, "jobs": JOBS,
            "seconds": seconds}  # fmt: skip


@dataclass(frozen=True)
class _Setting:
    """Of all caches. `memory`: % over the rule's; slow operations and locks: per 1,000, the mean over recordings."""

    capacity: int
    barn: int
    memory: float
    slow: float
    locks: float

    @property
    def name(self) -> str:
        return "the kernel's rule" if self.capacity == RULE else f"{self.capacity} objects"


@dataclass(frozen=True)
class _Limit:
    """A barn limit at the rule's capacities: memory and locks, % over those with the kernel's limit, with intervals."""

    barn: int
    memory: tuple[float, float, float]
    locks: tuple[float, float, float]


def _settings(data: Data) -> list[_Setting]:
    figures = (itertools.chain.from_iterable(data[name]) for name in ("memory", "slow", "locks"))
    return [_Setting(*axes, *rest) for axes, *rest in zip(itertools.product(data["capacities"], data["barns"]), *figures, strict=True)]


def _judge_capacity(data: Data) -> Outcome:
    settings = _settings(data)
    found = {(one.capacity, one.barn): one for one in settings}
    rule = found[RULE, BARN]
    rows, limits, at_rule = [], [], {}
    for capacity, barn, low, high, kib, *locks in data["windows"]:
        one = found[capacity, barn]
        if barn == BARN and capacity in (RULE, *_SHOWN):
            rows.append((one.name, [one.memory, f"{low:+.2f} to {high:+.2f}" if one != rule else "", kib, one.slow, one.locks]))
        if capacity == RULE:
            at_rule[barn] = _Limit(barn, (one.memory, low, high), (locks[0], locks[1], locks[2]))
            limits.append((f"{barn} full", [one.memory, f"{low:+.2f} to {high:+.2f}" if one != rule else "", kib, one.slow, one.locks,
                                            between(at_rule[barn].locks) if one != rule else ""]))  # fmt: skip
    columns = ["memory, %", f"{CONFIDENCE}% interval", "memory, KiB", "slow per 1,000", "locks per 1,000"]
    others = [one for one in settings if one.capacity in (28, 60, 124) and one.barn in (0, 1, 4, 10, 16, 32, 64, 512)]
    sheets = [
        grid(f"By capacity, {BARN} full sheaves in a barn; memory at the peak, over that of the rule", ["capacity", *columns], rows),
        grid("By barn limit, at the rule's capacities", ["full sheaves", *columns, "locks, %"], limits),
        grid("By barn limit, at other capacities", ["capacity and full sheaves", "memory, %", *columns[3:]],
              [(f"{one.name}, {one.barn} full", [one.memory, one.slow, one.locks]) for one in others]),
    ]  # fmt: skip
    same = [one for one in settings if one.capacity != RULE]
    best, fewest = (min((one for one in settings if one.memory <= 0 and one != rule), key=key) for key in (_slow_of, _locks_of))
    least = min((one for one in same if one.slow <= rule.slow), key=lambda one: one.memory)
    line = [one for one in same if one.barn == BARN]
    doubled = [(one, found[2 * one.capacity, BARN]) for one in line if (2 * one.capacity, BARN) in found]
    back = sum(a.slow < b.slow or a.memory > b.memory for a, b in itertools.pairwise(line))
    prepared, wall, cpu = data["seconds"]
    replayed, million = len(data["rules"]), statistics.fmean(one["ops"] for one in data["rules"].values()) / 1e6

    def told(one: _Setting, ours: float, of_rule: float) -> str:
        found = f"{ours:.1f} per 1,000 in place of {of_rule:.1f}, {one.memory:+.2f}% of memory"
        return f"the best is {one.name} and {one.barn} full sheaves: {found}"

    claims = [
        Claim("A sheaf of twice the objects leaves the fast path less often, and holds more memory",
              all(a.slow > b.slow and a.memory < b.memory for a, b in doubled),
              f"from {line[0].capacity} to {line[-1].capacity} objects: {line[0].slow:.1f} to {line[-1].slow:.2f} slow operations per "
              f"1,000, {line[0].memory:+.1f}% to {line[-1].memory:+.1f}% of memory; from one capacity tried to the next {back} of "
              f"{len(line) - 1} steps have it the other way"),
        Claim("A setting for all caches halves the slow operations of the rule at no more memory", best.slow <= rule.slow / 2,
              told(best, best.slow, rule.slow)),
        Claim("A setting for all caches halves the locks of the rule at no more memory", fewest.locks <= rule.locks / 2,
              told(fewest, fewest.locks, rule.locks)),
    ]  # fmt: skip
    tightest, widest = (at_rule[end] for end in (min(data["barns"]), max(data["barns"])))
    halved = fewest.locks <= rule.locks / 2
    notes = [
        f"**Which capacity?** The kernel's rule: 60, 28, 12 or 4 objects by size. {rule.slow:.1f} of 1,000 operations leave the fast path. "
        f"One capacity for all caches needs {least.memory:.1f}% more memory to do as well ({least.capacity} objects).",
        f"**Which barn limit?** {BARN} full sheaves, or more where memory is plenty: {WIDE} take {between(at_rule[WIDE].locks)}% locks for "
        f"{between(at_rule[WIDE].memory, 2)}% memory, {widest.barn} take {between(widest.locks)}% for {between(widest.memory, 2)}%. With "
        f"{tightest.barn} it is {between(tightest.locks)}% locks, and {between(tightest.memory, 2)}% memory.",
        f"**Do other settings of sheaves halve the locks at no more memory?** {'Yes' if halved else 'No'}: {fewest.locks:.1f} per 1,000 "
        f"operations where the rule takes {rule.locks:.1f}, by {fewest.name} and {fewest.barn} full sheaves, are the fewest.",
        f"{len(settings):,} settings on each of {replayed} recordings took {cpu:,} s of processor time, "
        f"{1000 * cpu / len(settings) / replayed:.0f} ms for a replay of {million:.1f} million operations in the mean: "
        f"{cpu / data['jobs']:,.0f} s of {data['jobs']} CPUs that do nothing else. By the clock it was {wall:,} s, and {prepared:,} s more "
        "to prepare the recordings.",
    ]  # fmt: skip
    return Outcome(sheets, claims, [_capacity_picture(settings, rule)], LEFT_OUT, notes)


def _capacity_picture(settings: Sequence[_Setting], rule: _Setting) -> Picture:
    drawn = [one for one in settings if one.capacity in _SHOWN and 4 <= one.capacity <= 252]
    series = []
    for barn in (0, BARN, 64):
        series.append(Line(f"{barn} full sheaves in a barn", sorted((one.memory, one.slow) for one in drawn if one.barn == barn)))
    series.append(Line("the kernel's rule", [(rule.memory, rule.slow)]))
    drawing = charts.lines(series, "memory at the peak, % over that of the rule", "slow operations per 1,000", True)
    return Picture("Sheaves of 4 to 252 objects", drawing)


def _about(path: Path) -> Data:
    with Trace(path) as trace:
        of = trace.metadata
        requests = sum(of.events.get(name, 0) for name in ("kmalloc", "kmem_cache_alloc"))
        events = sum(of.events.values())
        about = {"requests": requests, "events": events, "implied": of.implied_frees + of.implied_allocations, "lost": of.lost}
        return {**about, "kernel": of.kernel, "cpus": of.cpus, "seconds": round(of.span_seconds, 1)}


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
    return grid("The recordings", columns, rows, [note])


# ---- Answer 2: Fragmentation -----------------------------------------------------------------------------------------------------------


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
            facts = {**cost(exact), **ends, "slabs": slabs, "partial": some_free, "held_end": exact["held_pages_end"]}
            found[spec] = [facts[name] for name in _FACTS]
    return {"about": _about(path), "found": found}


def _fragmentation(work: Work) -> Data:
    return each(work, _fragmented)


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
    for (name, of), apart in zip(_MEASURES, found, strict=True):
        rows.append((name, [*(round(statistics.fmean(of(pair[which]) for pair in pairs), 2) for which in (0, 1)), between(apart, 2)]))
    others, halve = [], []
    for spec in (OLD, NEW, *_OTHERS):
        ours = [one["found"][spec] for one in data.values()]
        memory = interval([100 * (one["held"] / old["held"] - 1) for one, (old, _) in zip(ours, pairs, strict=True)])
        means = [round(statistics.fmean(per(one, name) for one in ours), 1) for name in ("slow", "locks")]
        if 2 * means[1] <= statistics.fmean(per(new, "locks") for _, new in pairs) and all(
            statistics.fmean(of[name] for of in ours) <= statistics.fmean(new[name] for _, new in pairs) for name in ("held", "held_end")
        ):
            halve.append(f"`{spec}`")
        others.append((spec, [between(memory), round(100 * statistics.fmean(one["peak"] for one in ours), 1), *means]))
    columns = ["allocator", "memory at the peak, % over 6.12", "waste at the peak, %", "slow per 1,000", "locks per 1,000"]
    note = f"The interval is of the mean over recordings: {DRAWS:,} resamples of them."
    sheets = [
        grid(f"Means over {len(pairs)} recordings", ["", "6.12", "7.0", f"difference ({CONFIDENCE}% interval)"], rows, [note]),
        grid("Each allocator", columns, others),
        _recordings(data),
    ]
    peak, end, listed, _, pages, _ = found
    locks = [(per(old, "locks"), per(new, "locks")) for old, new in pairs]
    more = interval([100 * (new["held"] / old["held"] - 1) for old, new in pairs])
    both = f"{between(peak, 2)} points at the peak, {between(end, 2)} at the end"
    claims = [
        Claim("Sheaves raise total fragmentation", peak[1] > 0 and end[1] > 0, both),
        Claim("Sheaves leave more slabs partial", listed[1] > 0, f"{between(listed, 2)} points of all slabs at the end"),
        Claim("Another allocator takes half of 7.0's locks at most, in no more memory at the peak and at the end", bool(halve),
              f"in the mean {', '.join(halve) or 'none'}"),
    ]
    of_locks = [interval([ours[which] for ours in locks]) for which in (0, 1)]
    notes = [
        f"**What do they cost?** 7.0 holds {more[0]:.1f}% more than 6.12 at the peak ({CONFIDENCE}% interval {more[1]:.1f} to "
        f"{more[2]:.1f}; {PAGE_KIB * pages[0] / 1024:.1f} MiB on two CPUs) and takes {within(of_locks[1])} locks per 1,000 operations for "
        f"{within(of_locks[0])}. Half of 7.0's locks at no more memory: {', '.join(halve) or 'no allocator'}.",
        f"7.0 takes more locks than 6.12 in {sum(new > old for old, new in locks)} of the {len(pairs)} recordings; it leaves the fast path "
        f"less often in {sum(per(new, 'slow') < per(old, 'slow') for old, new in pairs)} of them.",
    ]  # fmt: skip
    return Outcome(sheets, claims, [], LEFT_OUT, notes)


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


_COUNTS = ("held", "ops", "slow", "locks")  # of a replay, in a record


def _counted(pattern: str, cpus: int, waits: bool, quick: bool, seed: int) -> dict[str, list[int]]:
    """A made trace under each allocator."""
    lanes = {"pairs": cpus // 2, "one": cpus - 1, "same": cpus}[pattern]
    with tempfile.TemporaryDirectory(prefix="slabyard-pairs-") as folder:
        requests = (400 if quick else _REQUESTS) * lanes
        path = sheaves_pairs.write(Path(folder) / "pairs.parquet", pattern, cpus, requests, waits, seed)
        with Workload(path, Options(locks=True)) as workload:
            server = workload.settings()
            try:
                found = {spec: server.ask(spec) for spec in _LOCK_SPECS}
            finally:
                server.close()
    costs = {spec: cost(answer["exact"]) for spec, answer in found.items() if "exact" in answer}
    return {spec: [one[name] for name in _COUNTS] for spec, one in costs.items()}


def _locks(work: Work) -> Data:
    wanted = {f"{name} {cpus}": (pattern, cpus, waits) for name, (pattern, waits, _) in _PATTERNS.items() for cpus in _CPUS}
    parts = {f"{name}, {seed}": partial(_counted, *one, work.quick, seed) for name, one in wanted.items() for seed in range(1, _SEEDS + 1)}
    found = work.side_by_side(parts)
    draws = {name: [found[f"{name}, {seed}"] for seed in range(1, _SEEDS + 1)] for name in wanted}
    return {name: {spec: [one[spec] for one in of] for spec in of[0]} for name, of in draws.items()}


_LOCKS_STAND_FOR = (
    "The trace is made (lab/slabyard/study/sheaves_pairs.py): requests of 256, 200 and 1,024 bytes, 16 to 256 in flight for each CPU that "
    "completes. Locks are those of the policy (a node's list, a barn, a depot), not those of the page allocator. They are counted, not "
    "waited for: 64 CPUs of one node share a barn's lock, and where they meet a lock costs more. 6.12's frees into others' slabs take no "
    "lock, but share a cache line. Each new slab counts as one more lock here, about one in 1,000 operations."
)


def _judge_locks(data: Data) -> Outcome:
    cases = {
        name: {spec: [dict(zip(_COUNTS, one, strict=True)) for one in draws] for spec, draws in of.items()} for name, of in data.items()
    }

    def rate(of: Data, spec: str, name: str = "locks") -> tuple[float, float, float]:
        return interval([per(one, name) for one in of[spec]])

    sheets, pictures = [], []
    columns = ["allocator", *(f"{name}, {cpus}" for name in ("locks", "slow") for cpus in _CPUS), f"pages, {_CPUS[-1]}"]
    groups = [f"{cpus} CPUs" for cpus in _CPUS]
    for pattern, (_, _, told) in _PATTERNS.items():
        ours = [cases[f"{pattern} {cpus}"] for cpus in _CPUS]
        rows = []
        for spec in ours[0]:
            held = statistics.fmean(one["held"] for one in ours[-1][spec])
            rows.append((spec, [*(round(rate(one, spec, name)[0], 1) for name in ("locks", "slow") for one in ours), round(held)]))
        sheets.append(
            grid(f"{told[:1].upper()}{told[1:]}: locks and slow operations per 1,000, and pages at the peak, by CPUs", columns, rows)
        )
        series = [(spec, [Figure(None, *rate(one, spec)) for one in ours]) for spec in (OLD, NEW, _SMALLER, _BATCHED)]
        pictures.append(Picture(told, charts.bars(groups, series, f"locks per 1,000: {told}"), True))
    beside_old = [(name, [*(within(rate(of, spec)) for spec in (OLD, NEW)), between(_more(of))]) for name, of in cases.items()]
    sheets.insert(0, grid(f"Locks per 1,000 operations, 6.12 and 7.0: means of {_SEEDS} draws, with {CONFIDENCE}% intervals",
                          ["traffic and CPUs", "6.12", "7.0", "difference"], beside_old))  # fmt: skip
    across = [cases[f"{pattern} {cpus}"] for pattern in _ACROSS for cpus in _CPUS]
    halves = {spec: sum(_halves(of, spec) for of in across) for spec in across[0] if spec not in (NEW, *_OLDER)}
    winners = [f"`{spec}`" for spec, count in halves.items() if count == len(across)]
    partly = [f"`{spec}` in {count} of {len(across)}" for spec, count in halves.items() if 0 < count < len(across)]
    pairs, one, same = (cases[f"{name} {_CPUS[-1]}"] for name in ("pairs", "one", "same"))

    def beside(of: Data) -> str:
        return f"{within(rate(of, NEW), 0)} in 7.0, {within(rate(of, OLD), 0)} in 6.12"

    claims = [
        Claim("Where one CPU allocates and another frees, 7.0 takes no more locks than 6.12", all(_more(of)[2] <= 0 for of in across),
              f"locks per 1,000 operations on 64 CPUs: {beside(pairs)} in pairs; {beside(one)} where one serves 63"),
        Claim("A setting of 7.0, or another policy, halves the locks at no more memory in each of the cases", bool(winners),
              f"in all {len(across)} cases {', '.join(winners) or 'none'}; in some {', '.join(partly) or 'none'}"),
    ]  # fmt: skip
    notes = [
        f"**Where one CPU allocates and another frees**, locks per 1,000 operations are {beside(pairs)} (64 CPUs in pairs); {beside(one)} "
        f"(one for 63). At most half of 7.0's, in no more memory and in all cases: "
        f"{', '.join(winners) or 'no setting and no policy'}.",
        f"Where each CPU frees its own it is {beside(same)}. Off the fast path of pairs are {rate(pairs, OLD, 'slow')[0]:.0f} operations "
        f"of 1,000 in 6.12, most of them an exchange of a shared word, and {rate(pairs, NEW, 'slow')[0]:.0f} in 7.0. Half of 7.0's locks "
        f"in no more memory, in some of the {len(across)} cases: {', '.join(partly) or 'nobody'}.",
    ]  # fmt: skip
    return Outcome(sheets, claims, pictures, _LOCKS_STAND_FOR, notes)


def _more(of: Data) -> tuple[float, float, float]:
    """Locks of 7.0 over those of 6.12, per 1,000 operations of the same draw."""
    return interval([per(new, "locks") - per(old, "locks") for old, new in zip(of[OLD], of[NEW], strict=True)])


def _halves(of: Data, spec: str) -> bool:
    """Whether an allocator takes half of 7.0's locks or fewer, and no more pages, in each draw."""
    return all(2 * one["locks"] <= new["locks"] and one["held"] <= new["held"] for one, new in zip(of[spec], of[NEW], strict=True))


def answers(done: Sequence[Done]) -> str:
    """The first lines of docs/sheaves.md: 6.12 beside 7.0, and the answers, which are the notes that begin with one."""
    data = {one.item.name: one.record["data"] for one in done}
    pairs = [(one["found"][OLD], one["found"][NEW]) for one in _named(data["fragmentation"]).values()]
    rows = []
    rates = [("slow operations per 1,000", lambda one: per(one, "slow")), ("locks per 1,000", lambda one: per(one, "locks"))]
    measures: list[tuple[str, Callable[[Data], float]]] = [*_MEASURES, *rates]
    for name, of in measures:
        figures = [[of(pair[which]) for pair in pairs] for which in (0, 1)]
        rows.append([name, *(show(round(statistics.fmean(ours), 1)) for ours in figures),
                     between(interval([new - old for old, new in zip(*figures, strict=True)]))])  # fmt: skip
    for pattern, (_, _, told) in list(_PATTERNS.items())[::2]:
        of_made = {spec: [per(dict(zip(_COUNTS, one, strict=True)), "locks") for one in draws]
                   for spec, draws in data["locks"][f"{pattern} {_CPUS[-1]}"].items()}  # fmt: skip
        apart = interval([new - old for old, new in zip(of_made[OLD], of_made[NEW], strict=True)])
        both = [statistics.fmean(of_made[spec]) for spec in (OLD, NEW)]
        rows.append([f"locks, {_CPUS[-1]} CPUs: {told}", *(show(round(one, 1)) for one in both), between(apart)])
    table = markdown([f"means over {len(pairs)} recordings", "6.12", "7.0", f"difference ({CONFIDENCE}% interval)"], rows)
    found = [document.wrapped(note, "- ", "  ") for one in done for note in one.outcome.notes if note.startswith("**")]
    return "\n".join([table, "", *found])


ITEMS = (
    Item("sheaves", "capacity", "Capacity and barn limits", "answer 1", _capacity, _judge_capacity),
    Item("sheaves", "fragmentation", "Fragmentation, 6.12 and 7.0", "answer 2", _fragmentation, _judge_fragmentation),
    Item("sheaves", "locks", "Locks where one CPU allocates and another frees", "answer 3", _locks, _judge_locks, exact=True),
    Item("sheaves", "caches", "A capacity for each cache", "answer 4", sheaves_caches.measure, sheaves_caches.judge),
)
