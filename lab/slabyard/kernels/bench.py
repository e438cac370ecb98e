"""What allocators cost inside kernels: the benchmark that is built into each of them, as result records and tables.

ports/linux/bench.c measures at boot, where `slabyard.bench=1` asks for it, and tells its figures in the kernel's log: cycles of the
processor's time stamp counter for one allocation and its free, the median of many rounds. Kernels are booted in turn, A B C A
B C, so that whatever slows this machine for a while slows all; the figure of a record is the median over the boots.

A measure is named INTERFACE_PATTERN_SIZE: `cache_pair_64`, `kmalloc_shuffled_1024`; `_allocation` behind that is the part that the
allocations took (not of pairs), `_low` and `_high` the 10% and 90% quantiles of the rounds.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from typing import Any

from ..base.errors import UserError
from ..base.table import Cell, Figure, Table, counted
from ..base.terminal import Progress
from ..results import records
from ..results.records import Record
from . import run, workloads
from .build import Kernel
from .kinds import Spec
from .machine import Hardware, Plan

PARAMETERS = ("slabyard.bench=1", "slab_nomerge")  # without merging, the measured caches have slabs of their own
INTERFACES = {"cache": "kmem_cache_alloc and kmem_cache_free", "kmalloc": "kmalloc and kfree"}
PATTERNS = {
    "pair": "one object, freed at once", "order": "512 objects, freed in their order", "reverse": "512 objects, freed in reverse",
    "shuffled": "512 objects, freed in random order",
}  # fmt: skip
LEGEND = ("cycles of the time stamp counter for one allocation and its free: the median", "over the boots of a boot's median.")
_LINE = re.compile(r"slabyard\.bench: (\w+) (\w+) (\d+) (\d+) (\d+) (\d+) (\d+) (\d+)$", re.MULTILINE)
_DONE = re.compile(r"slabyard\.bench: done$", re.MULTILINE)
_MISSING = re.compile(r"slabyard\.bench: (no memory .*)$", re.MULTILINE)


def plan(spec: Spec, kernel: Kernel, hardware: Hardware, timeout: float) -> Plan:
    """The boot that measures."""
    measured = dataclasses.replace(spec, parameters=(*spec.parameters, *PARAMETERS))
    return Plan(measured, kernel, dataclasses.replace(workloads.parse("boot", kernel.arch), name="bench"), hardware, timeout)


def bench(plans: Sequence[Plan], runs: int, progress: Progress) -> list[Record]:
    """Boots the plans in turn; a record for each."""
    progress.stage(f"the benchmark on {counted(len(plans), 'kernel')}")
    by_spec = {one.spec.text: one for one in plans}

    def once(spec: str, _turn: int) -> run.Run:
        done = run.once(by_spec[spec])
        return dataclasses.replace(done, figures=figures(spec, done.texts.get("log", "")))

    kept = records.interleaved(by_spec, runs, 0, "bench", progress, once)
    return [run.record(one, kept[spec]) for spec, one in by_spec.items()]


def figures(spec: str, log: str) -> dict[str, float]:
    """The measures out of a kernel's log, in cycles. UserError where they are not all there."""
    if missing := _MISSING.search(log):
        raise UserError(f"the benchmark on {spec} found {missing[1]}; give the guest more with --memory")
    if not _DONE.search(log):
        raise UserError(f"the benchmark on {spec} did not finish; its kernel's log has {len(_LINE.findall(log))} figures of it")
    found: dict[str, float] = {}
    for interface, pattern, size, median, low, high, allocation, _rounds in _LINE.findall(log):
        name = f"{interface}_{pattern}_{size}"
        values = {"": median, "_low": low, "_high": high, **({"_allocation": allocation} if pattern != "pair" else {})}
        found.update({name + suffix: int(value) / 10 for suffix, value in values.items()})
    return found


def sizes(found: Sequence[Record]) -> list[int]:
    """The sizes that all records have, in bytes."""
    names = set.intersection(*(set(record["timed"]) for record in found))
    return sorted(int(match[1]) for name in names if (match := re.fullmatch(r"cache_pair_(\d+)", name)))


def tables(found: Sequence[Record]) -> list[Table]:
    """A table for each interface and pattern: a row for each allocator, a column for each size."""
    first = found[0]["run"]
    columns = sizes(found)
    out: list[Table] = []
    for interface, calls in INTERFACES.items():
        for pattern, words in PATTERNS.items():
            rows: list[list[Cell]] = []
            for record in found:
                cycles = (round(record["timed"][f"{interface}_{pattern}_{size}"]) for size in columns)
                rows.append([record["run"]["allocator"], *(Figure(one, str(one)) for one in cycles)])
            out.append(Table(f"{calls}: {words}", ["bytes", *map(str, columns)], rows))
    machine = f"Linux {first['kernel']} for {first['arch']} ({first['accelerator']}), {counted(first['repetition'], 'boot')} of each:"
    out[-1].notes += [machine, *LEGEND, *run.trouble_notes(found)]
    return out


def flat(found: Sequence[Record]) -> Table:
    """One row for each measurement: for CSV."""
    columns = ["allocator", "interface", "pattern", "size", "cycles", "cycles_low", "cycles_high", "allocation"]
    columns += ["interval_low", "interval_high"]
    rows: list[list[Cell]] = []
    for record in found:
        timed: dict[str, Any] = record["timed"]
        for interface in INTERFACES:
            for pattern in PATTERNS:
                for size in sizes([record]):
                    name = f"{interface}_{pattern}_{size}"
                    quantiles = [timed.get(name + suffix) for suffix in ("", "_low", "_high", "_allocation")]
                    bounds = timed["intervals"].get(name) or [None, None]
                    rows.append([record["run"]["allocator"], interface, pattern, size, *quantiles, *bounds])
    return Table("", columns, rows)
