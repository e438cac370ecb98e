"""What is run for Garcarz: sysbench's memory and fileio modes on real kernels for x86-64 and for arm64, each in a boot of its own.

    timed     as his: a reboot, /proc/buddyinfo, the run stage, /proc/buddyinfo again, five times. The files are made before the first look.
              Kept are sysbench's time and bandwidth of the run stage, free blocks by zone and order before and after it, and the fallback
              events during it. Kernels are booted in turn, so whatever slows this machine for a while slows all of them.
    counted   the same once on one CPU whose clock counts instructions (kernels/cost.py), so that sysbench's own time is exact; and what the
              kernel executes for its allocator.
    used      fileio on memory that has been used before: a file of a tmpfs fills it, and every fourth piece of 32 KiB is given back.
              The ram disk has its memory by then. So sysbench's files and what the run stage takes lie in pieces between movable
              pages, and memory is short: without that there are no events.

His figures share their runs: one condition (a system and a mode) has time, consumption, and fragments. So a condition is run once, by the
first item that needs it; the others take it from there, or from that item's record in the same folder.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ..kernels import build, cost, guest, kinds, machine, run, sysbench, tools, workloads
from ..kernels.workloads import Workload
from ..trace import snapshots
from .work import Work

Boot = dict[str, Any]
Boots = dict[str, list[Boot]]  # by allocator
Counts = dict[str, dict[str, float]]

STOCK = ("slab", "slub", "slob")
OTHERS = ("slabyard:yard", "slabyard:slqb", "slub_tiny")
SYSTEMS = {"arm64": "arm64", "x86": "x86_64"}  # his names, and ours of the architecture
MODES = ("memory", "fileio")
# arm64 as his: four cores, 2 GB, all of it below 4 GiB. x86: a quarter of his 12 GB; QEMU puts 2 GB below 4 GiB, the rest is zone Normal.
HARDWARE = {"arm64": machine.Hardware(2 << 30, 4, accelerator="tcg"), "x86": machine.Hardware(3 << 30, 4, accelerator="tcg")}
THREADS, FILES_MB = 8, 32
THEIR_MB, THEIR_REQUESTS = 150 << 10, 10_000  # 150 GB; 156 MB are 10,000 requests of 16 KiB, sysbench's default
USED_MEMORY = 192 << 20  # bytes, of a guest whose memory is used before
DISK_MB = 40  # of the ram disk there
SPARE, PIECE, EACH = 6 << 20, 32 << 10, 4  # of that: bytes left free, bytes of a piece, every which is given back
SMALL_NORMAL_MB = (64, 128, 512)


@dataclass(frozen=True)
class Scale:
    """How much is run: MB that memory moves, requests of fileio, repetitions of timed boots, of those on used memory; others that
    are timed too, and all that are counted; of both, those that the kernels can have."""

    moved_mb: int
    requests: int
    repetitions: int
    used_repetitions: int
    timed: tuple[str, ...]
    counted: tuple[str, ...]

    def of(self, mode: str) -> float:
        """By how much his work is divided."""
        return THEIR_MB / self.moved_mb if mode == "memory" else THEIR_REQUESTS / self.requests


FULL = Scale(600, THEIR_REQUESTS, 5, 5, ("slabyard:yard", "slub_tiny"), OTHERS)
QUICK = Scale(75, 1000, 1, 1, (), ())


def scale(work: Work) -> Scale:
    return QUICK if work.quick else FULL


def check(*systems: str) -> None:
    """UserError where this machine lacks what builds and boots the kernels, or an arm64 program."""
    for system in systems:
        arch = SYSTEMS[system]
        build.check(arch)
        tools.boot(arch)
        workloads.of(_workload("memory", FULL), arch)
        cost.check(arch)


# ---- In the guest --------------------------------------------------------------------------------------------------

_DISK = "mke2fs -q /dev/ram0 {}&& mount -t ext4 /dev/ram0 /mnt && cd /mnt"


def _fileio(requests: int, stage: str) -> str:
    return sysbench.fileio("rndrw", THREADS, FILES_MB, requests, stage)


def _workload(mode: str, scale: Scale) -> Workload:
    """The run stage alone is measured; files are made before it, as in his script."""
    if mode == "memory":
        command = f"sysbench memory --threads={THREADS} --memory-total-size={scale.moved_mb}M --time=0 run"
        return Workload(mode, mode, command, (tools.SYSBENCH,))
    prepare = f"{_DISK.format('')} && {_fileio(scale.requests, 'prepare')}"
    return Workload(mode, mode, _fileio(scale.requests, "run"), (tools.SYSBENCH,), prepare, after="cd / && umount /mnt")


# ---- Out of the guest ----------------------------------------------------------------------------------------------


def zones(buddyinfo: str) -> dict[str, list[int]]:
    """Free blocks by order, of each zone."""
    found: dict[str, list[int]] = {}
    for (_, zone), orders in snapshots.parse_buddyinfo(buddyinfo).items():
        found[zone] = [a + b for a, b in zip(found.get(zone, [0] * snapshots.ORDERS), orders, strict=True)]
    return found


def figures(done: run.Run) -> Boot:
    """What is kept of a boot."""
    stage = sysbench.stage(done.texts.get("output", ""))
    return {
        "seconds": stage.seconds,
        "bandwidth": stage.bandwidth,
        "kernel_share": done.figures["system_seconds"] / max(1e-9, done.figures["user_seconds"] + done.figures["system_seconds"]),
        "before": zones(done.texts.get("before/buddyinfo", "")),
        "after": zones(done.texts.get("after/buddyinfo", "")),
        "events": done.figures["fragmentation_events"],
        "events_boot": done.figures["fragmentation_events_boot"],
        "trouble": done.trouble,
    }


# ---- The boots -----------------------------------------------------------------------------------------------------


def condition(work: Work, system: str, mode: str) -> Boots:
    """All timed boots of a system and a mode."""
    return _shared(work, f"{system} {mode}", lambda: _timed(work, system, mode))


def counted(work: Work, system: str, mode: str) -> Counts:
    """Of one CPU, by allocator: seconds of the run stage by a clock that counts instructions; calls, and what they take of the kernel's
    instructions."""
    one = dataclasses.replace(HARDWARE[system], cpus=1)

    def boot(spec: kinds.Spec) -> dict[str, float]:
        done = run.count(_plan(work, system, mode, spec), one)
        assert done.cost is not None
        return {
            "seconds": sysbench.stage(done.texts.get("output", "")).seconds,
            "calls": done.cost["operations"],
            "instructions": round(done.cost["instructions"] * done.cost["operations"]),
            "kernel": done.cost["kernel"]["instructions"],
        }

    def measure() -> Counts:
        specs = work.specs((*STOCK, *scale(work).counted))
        found = work.side_by_side({f"{system} {mode}, {name}, counted": partial(boot, spec) for name, spec in specs.items()})
        return dict(zip(specs, found.values(), strict=True))

    found: Counts = _shared(work, f"{system} {mode} counted", measure)
    return found


def small_normal(work: Work) -> dict[str, dict[str, float]]:
    """x86, fileio, SLUB: MB that each zone lost where zone Normal has so many MB."""
    found = {}
    for megabytes in SMALL_NORMAL_MB[:1] if work.quick else SMALL_NORMAL_MB:
        plan = _plan(work, "x86", "fileio", work.specs(["slub"])["slub"])
        spec = dataclasses.replace(plan.spec, parameters=(*plan.spec.parameters, f"mem={4096 + megabytes}M"))
        name = f"x86 fileio, Normal of {megabytes} MB"
        boot = work.timed({name: partial(_boot, dataclasses.replace(plan, spec=spec))})[name]
        found[str(megabytes)] = {zone: free_mb(boot["before"], zone) - free_mb(boot["after"], zone) for zone in boot["before"]}
    return found


def used_memory(work: Work) -> Boots:
    """fileio on x86 and memory that was used before."""
    hardware = dataclasses.replace(HARDWARE["x86"], memory=USED_MEMORY)
    return _shared(work, "used", lambda: _timed(work, "x86", "fileio", hardware, used=True))


def _timed(work: Work, system: str, mode: str, hardware: machine.Hardware | None = None, used: bool = False) -> Boots:
    chosen = scale(work)
    plans = {
        name: _plan(work, system, mode, spec, hardware, used) for name, spec in work.specs((*STOCK, *chosen.timed)).items()
    }
    turns = range(chosen.used_repetitions if used else chosen.repetitions)
    names = {
        (spec, turn): f"{system} {mode}{' on used memory' if used else ''}, {spec}, boot {turn + 1}" for turn in turns for spec in plans
    }
    boots = work.timed({name: partial(_boot, plans[spec]) for (spec, _), name in names.items()})
    return {spec: [boots[names[spec, turn]] for turn in turns] for spec in plans}


def _boot(plan: machine.Plan, ended: Callable[[], None]) -> Boot:
    return figures(run.once(plan, ended=ended))


def _plan(
    work: Work, system: str, mode: str, spec: kinds.Spec, hardware: machine.Hardware | None = None, used: bool = False
) -> machine.Plan:
    chosen, arch = scale(work), SYSTEMS[system]
    kernel = work.kernel(arch, spec.kind)
    job = workloads.of(_workload(mode, chosen), arch)
    if used:
        program, settings, use = guest.used_memory(SPARE, PIECE, EACH)
        disk = f"dd if=/dev/zero of=/dev/ram0 bs=1024k count={DISK_MB} && {_DISK.format(f'{DISK_MB << 10} ')}"
        prepared = dataclasses.replace(job.workload, prepare=f"{settings} && {disk} && {use} && {_fileio(chosen.requests, 'prepare')}")
        job = dataclasses.replace(job, workload=prepared, programs=[*job.programs, program])
    return machine.Plan(spec, kernel, job, hardware or HARDWARE[system])


def _shared(work: Work, name: str, measure: Callable[[], Any]) -> Any:
    return work.shared("garcarz", name, measure, lambda data: data.get(name))


# ---- Figures of a boot ---------------------------------------------------------------------------------------------


def free_mb(found: Mapping[str, Sequence[int]], zone: str = "") -> float:
    """Free memory of a zone, of all where none is named."""
    chosen = [found[zone]] if zone else found.values()
    return sum(count << order for orders in chosen for order, count in enumerate(orders)) / 256


def consumed_mb(boot: Boot, zone: str = "") -> float:
    return free_mb(boot["before"], zone) - free_mb(boot["after"], zone)


def fragments(boot: Boot, when: str, zone: str = "") -> int:
    """Free blocks of all orders."""
    return sum(sum(orders) for name, orders in boot[when].items() if zone in ("", name))
