"""Boots as result records: what was asked for, every repetition's figures, and what the kernel said.

Nothing that a real kernel does is the same twice, so all of it stands in `timed`, as medians with intervals and samples: time and
processor time of the workload, the time that the kernel took to start, the pages that slabs and large allocations held (`Slab:` of
meminfo; docs/measures.md), and the fallback events of the page allocator. `exact` is empty. The group `kernel` has the kernel
itself, its texts before and after in the last repetition, its caches, and what looks like trouble in its log.

A trace is taken in a boot of its own, whose times are not used: writing an event for every allocation takes longer than the allocation.
"""

from __future__ import annotations

import io
import itertools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..base.errors import UserError
from ..base.programs import last_line
from ..capture import importer
from ..capture.inputs import About
from ..results import records
from ..trace import snapshots
from ..trace.file import KINDS, SNAPSHOT, Metadata
from . import cost, machine
from .machine import Hardware, Outcome, Plan

PAGE_KB = 4
WARNINGS = re.compile(
    r"WARNING: |BUG: |\bOops\b|Kernel panic|INFO: (?:possible|suspicious|task)|page allocation failure|general protection|"
    r"list_(?:add|del) corruption|Bad page|Out of memory: Kill|slab error|Segfault|unable to handle"
)


@dataclass
class Run:
    """One boot: figures by name, texts by name, lines of the log that tell of trouble."""

    figures: dict[str, Any]
    texts: dict[str, str]
    trouble: list[str]
    accelerator: str
    metadata: Metadata | None = None
    cost: dict[str, Any] | None = None  # of a boot that counts


def once(
    plan: Plan, trace: Path | None = None, look: Callable[[Outcome], None] = lambda _: None, ended: Callable[[], None] = lambda: None
) -> Run:
    """Boots once. `trace`: where the trace goes, if one is taken; `look` sees the outcome as long as its files are there. `ended`: as
    machine.boot has it."""
    with machine.boot(plan, ended) as outcome:
        told = trouble(outcome.texts.get("log", ""), plan.job.workload.expected)
        told += ["the kernel did not switch itself off"] if outcome.stayed else []
        found = Run(_figures(plan, outcome), outcome.texts, told, outcome.accelerator)
        if trace is not None and outcome.trace is not None:
            found.metadata = _import(plan, outcome, trace)
        if plan.counts:
            names = cost.Symbols.of(plan.kernel.map.read_text(), plan.spec.kind).names
            found.cost = cost.group(outcome.counts, names, plan.hardware.cpus, plan.kernel.arch)
        look(outcome)
    return found


def _figures(plan: Plan, outcome: Outcome) -> dict[str, Any]:
    measured = {name: int(value) for name, value in (line.split() for line in outcome.texts.get("measured", "").splitlines())}
    last = last_line(outcome.texts.get("output", ""))
    if "unprepared" in outcome.texts:
        said = last_line(outcome.texts["unprepared"])
        raise UserError(f"{plan.job.name} on {plan.spec.text}: could not be prepared in the guest: {said}")
    if not measured:
        raise UserError(f"{plan.job.name} on {plan.spec.text}: could not be measured: {last}")
    if measured["status"]:
        raise UserError(f"{plan.job.name} on {plan.spec.text}: ended with status {measured['status']} in the guest: {last}")
    found = len(set(re.findall(r"(?m)^ +cpu: (\d+)$", outcome.texts.get("before/zoneinfo", ""))))
    if found not in (0, plan.hardware.cpus):
        raise UserError(f"{plan.job.name} on {plan.spec.text}: the kernel found {found} of its machine's {plan.hardware.cpus} CPUs")
    before, after = (snapshots.parse_meminfo(outcome.texts.get(f"{when}/meminfo", "")).get("Slab", 0) for when in ("before", "after"))
    start, peak, end = (kb // PAGE_KB for kb in (before, max(before, measured["slab_peak_kb"], after), after))
    return {
        "seconds": measured["elapsed_ns"] / 1e9,
        "user_seconds": measured["user_us"] / 1e6,
        "system_seconds": measured["system_us"] / 1e6,
        "context_switches": measured["switches"],
        **({"processor_seconds": outcome.used_ended - outcome.used_began} if plan.kernel.arch == "um" else {}),
        "boot_seconds": measured["up_ns"] / 1e9,
        "held_pages_start": start,
        "held_pages_peak": peak,
        "held_pages_end": end,
        "grew_pages_peak": peak - start,
        "grew_pages_end": end - start,
        **fallbacks(outcome),
    }


def fallbacks(outcome: Outcome) -> dict[str, int]:
    """Fallback events of the page allocator while the workload ran, and since the kernel started."""
    boot = workload = 0
    begun = False
    with outcome.trace.open(errors="replace") if outcome.trace else io.StringIO(outcome.texts.get("extfrag", "")) as lines:
        for line in lines:
            if "tracing_mark_write: before" in line:
                begun = True
            elif f" {machine.FALLBACK}: " in line:
                boot += 1
                workload += begun
    return {"fragmentation_events": workload, "fragmentation_events_boot": boot}


def trouble(log: str, expected: str = "^$") -> list[str]:
    """The lines of a kernel's log that tell of something wrong, without their times; not those that a workload is meant to cause."""
    lines = [re.sub(r"^(<\d+>)?\[ *[\d.]+\] ?", "", line).strip() for line in log.splitlines()]
    told = [line for at, line in enumerate(lines) if WARNINGS.search(line) and not _is_of_um(lines, at)]
    return [line for line in told if not re.search(expected, line)]


def _is_of_um(lines: Sequence[str], at: int) -> bool:
    """Whether this is what a user-mode kernel with checks says of itself: 6.1 walks a new process's maps without their lock."""
    if "suspicious RCU usage" not in lines[at]:
        return False
    report = itertools.takewhile(lambda line: not line.startswith("===="), lines[at + 1 :])
    return any("] force_flush_all+" in line for line in report)


def _import(plan: Plan, outcome: Outcome, output: Path) -> Metadata:
    assert outcome.trace is not None
    # Where the buffer was too small, the mark before the workload may be among what is lost; so the snapshot has no place either.
    with outcome.trace.open(errors="replace") as file:
        marked = any("tracing_mark_write: before" in line for line in file)
    before = [snapshot_of(outcome.texts, "before", "before")] if marked else []
    about = About(
        kernel=f"{plan.kernel.about['release']} ({plan.spec.text}, {plan.kernel.arch})",
        arch="arm64" if plan.kernel.arch == "arm64" else "x86_64",
        command=plan.job.command,
        cpus=plan.hardware.cpus,
        page_size=4096,
        snapshots=[*before, snapshot_of(outcome.texts, "after", "end")],
        kinds=KINDS[:SNAPSHOT],
    )
    return importer.import_described(outcome.trace, output, about)


def snapshot_of(texts: dict[str, str], when: str, name: str) -> dict[str, Any]:
    """A snapshot as the importer takes it, from a boot's texts."""
    return {"name": name, "files": _files(texts, when), "slab_attributes": attributes(texts.get("attributes", "")) or None}


def attributes(text: str) -> dict[str, dict[str, str]]:
    """/sys/kernel/slab as grep prints it: {cache: {attribute: value}}."""
    found: dict[str, dict[str, str]] = {}
    for match in re.finditer(r"(?m)^/sys/kernel/slab/([^/\n]+)/(\w+):(.*)$", text):
        if not match[1].startswith(":"):
            found.setdefault(match[1], {})[match[2]] = match[3].strip()
    return found


# ---- Records -------------------------------------------------------------------------------------------------------------------


def count(plan: Plan, hardware: Hardware) -> Run:
    """One boot whose instructions are counted: what its kernel executes is in `cost`."""
    return once(replace(plan, hardware=hardware, counts=True))


def record(plan: Plan, runs: Sequence[Run], counted: Run | None = None) -> records.Record:
    """The result record of the repetitions of one plan, of which there is at least one; `counted`: of the boot that counted."""
    last = runs[-1]
    kernel = plan.kernel
    run = {
        "workload": plan.job.name,
        "substrate": "kernel",
        "trace_sha256": "",
        "cpus": plan.hardware.cpus,
        "nodes": plan.hardware.nodes,
        "memory": plan.hardware.memory,
        "start": "boot",
        "arch": kernel.arch,
        "accelerator": last.accelerator,
        "seed": 0,
        "repetition": len(runs),
        "page_size": 4096,
        "command": plan.job.command,
        "lost": last.metadata.lost if last.metadata else 0,
        "kernel": kernel.about["release"],
    }
    of_kernel = {
        "key": kernel.key,
        **{name: kernel.about[name] for name in ("release", "source_ident", "compiler", "config_sha256", "debug", "outlined")},
        "parameters": list(plan.spec.parameters),
        "trouble": [line for one in (*runs, *([counted] if counted else [])) for line in one.trouble],
        "output": last.texts.get("output", ""),
        "before": _files(last.texts, "before"),
        "after": _files(last.texts, "after"),
        "caches": caches(last.texts.get("after/slabinfo", "")),
    }
    timed = records.summarise([one.figures for one in runs], {})
    return {**records.record(plan.spec.text, run, {}, timed, counted.cost if counted else None), "kernel": of_kernel}


def _files(texts: dict[str, str], when: str) -> dict[str, str]:
    return {name: texts[f"{when}/{name}"] for name in snapshots.PROC_FILES if f"{when}/{name}" in texts}


def trouble_notes(found: Sequence[records.Record]) -> list[str]:
    """What the logs of these records' kernels tell of trouble, once each."""
    lines = ((one["run"]["allocator"], line) for one in found for line in dict.fromkeys(one["kernel"]["trouble"]))
    return [f"The log of {allocator} has: {line}" for allocator, line in lines]


def caches(slabinfo: str) -> list[dict[str, Any]]:
    """The caches of a slabinfo that hold slabs, the largest first."""
    found = [
        {
            "name": line.name,
            "size": line.object_size,
            "active_objects": line.active_objects,
            "objects": line.objects,
            "slabs": line.slabs,
            "pages": line.slabs * line.pages_per_slab,
        }
        for line in snapshots.parse_slabinfo(slabinfo)
        if line.slabs
    ]
    return sorted(found, key=lambda cache: -cache["pages"])
