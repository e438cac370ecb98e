"""What is run for Ferreira et al. 2015: sysbench on real kernels, timed in some boots and counted in others.

    timed     memory that has been used before; then sysbench's memory mode, then fileio: prepare, run, cleanup. Each in one boot, as
              theirs: 4 kernels on 1 to 8 cores, five times, were 160 restarts. Kept are the time that sysbench gives of its run
              stage, and of each mode the kernel's memory after it and the fallback events during it.
    counted   the run stage alone, in a boot whose kernel instructions are counted (kernels/cost.py). On one CPU the clock is the count
              of instructions, so there sysbench's own time is one, too: exact, the same on every machine. Several CPUs have short
              turns (plugin/tree.h), so that they meet at locks; a CPU that waits counts the instructions that it could have executed.

All tables and figures of the paper come out of these boots, so they are run once: by the first item that is asked for. The others take
them from it, or from its record in the same folder.

Memory is used before in this way: a file of a tmpfs fills the kernel's, and 64 KiB of every 3 MiB are given back (guest_files/use.c). So
what is free is in pieces between movable pages, and a slab's pages have to be taken from those: an event gives the kernel what is free of
one block of 4 MiB, a piece or two. The pages of fileio's files and of programs are in a zone of their own, as their 32-bit kernel has them
in high memory: if they were not, that much more would have to be free. One CPU uses the memory, and the others come up behind it, as their
lists of free pages would be full of the kernel's. What stays of the file is not counted as the kernel's memory. The files of fileio lie on
ext4 on a ram disk, all of whose memory is taken before that. A boot in which memory had to be reclaimed is an error.
"""

from __future__ import annotations

import dataclasses
import functools
import os
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..base.errors import UserError
from ..kernels import build, cost, flame, guest, kinds, machine, run, sysbench, tools
from ..kernels.workloads import Job, Workload
from .model import Data
from .work import REPETITIONS, Work

ALLOCATORS = {"SLAB": "slab", "SLOB": "slob", "SLUB": "slub", "SLQB": "slabyard:slqb", "yard": "slabyard:yard", "SLUB_TINY": "slub_tiny"}
KERNELS = tuple(("x86_64", kind, False) for kind in ("slub", "slab", "slob", "slabyard", "slub_tiny"))
SHORT = 16  # objects
SHORT_QUEUES = f"slabyard:slqb:hiwater={SHORT},flushbatch={SHORT},freebatch={SHORT},remote_free_check={SHORT}"
MODES = ("memory", "fileio")
THREADS = 64  # as theirs
TURN = 100  # instructions of a CPU before the next one's
THEIR_WRITES, THEIR_GIGABYTES, THEIR_FILES_MB = 100_000, 100, 2048
MEMORY = 256 << 20  # of a guest
DISK_KB, FILES_MB = 40960, 32
USED_MEMORY, MOVABLE_MB = 1 << 30, 96  # of a guest whose memory is used before; of that, for files and programs alone
# Parameters of its kernel. mke2fs wants a random number, for which a kernel that does not trust its processor's looks for a second.
USED = (f"movablecore={MOVABLE_MB}M", "maxcpus=1", "random.trust_cpu=on")
SPARE, PIECE, EACH = 1 << 20, 64 << 10, 48  # bytes left free, bytes of a piece, every which is given back
CACHES_KEPT = 8
_MEMINFO = ("MemTotal", "MemFree", "Buffers", "Cached", "Shmem", "AnonPages", "Slab")


@dataclass(frozen=True)
class Scale:
    """How much is run. `counted_on`: CPUs of the boots that count."""

    cpus: tuple[int, ...]
    repetitions: int
    writes: int
    transferred_mb: int
    counted_on: tuple[int, ...]
    counted_writes: int
    counted_mb: int


FULL = Scale(tuple(range(1, 9)), REPETITIONS, 10_000, 512, (1, 4), 2000, 256)
QUICK = Scale((1, 4), 1, 1000, 16, (1, 4), 200, 64)


def check() -> None:
    """UserError where this machine lacks what builds and boots the kernels, or what counts."""
    build.check("x86_64")
    tools.boot("x86_64")
    tools.require((tools.SYSBENCH,), "sysbench in a guest")
    cost.check()


# ---- In the guest --------------------------------------------------------------------------------------------------

_DISK = f"dd if=/dev/zero of=/dev/ram0 bs=1024k count={DISK_KB >> 10} && mke2fs -q /dev/ram0 {DISK_KB} && mount -t ext4 /dev/ram0 /mnt"
_OTHER_CPUS = "for cpu in /sys/devices/system/cpu/cpu[1-9]/online; do [ ! -e $cpu ] || echo 1 >$cpu; done"
_AT = """at() {
echo "@$1" >/sys/kernel/tracing/trace_marker
echo "@$1"
cat /proc/meminfo
}"""


def _memory(megabytes: int) -> str:
    return f"sysbench memory --threads={THREADS} --memory-block-size=1K --memory-total-size={megabytes}M --time=0 run"


def _fileio(writes: int, stage: str) -> str:
    return sysbench.fileio("rndwr", THREADS, FILES_MB, writes, stage)


def timed_job(scale: Scale) -> Job:
    """Both modes, one after the other, with what /proc/meminfo says before and after each."""
    stages = [f"{_fileio(scale.writes, stage)} || exit" for stage in ("prepare", "run", "cleanup")]
    script = "\n".join((_AT, "cd /mnt", "at begin", f"{_memory(scale.transferred_mb)} || exit", "at memory", *stages, "at fileio"))
    program, settings, use = guest.used_memory(SPARE, PIECE, EACH)
    return _job("sysbench", ["sh", "-c", script], f"{settings} && {_DISK} && {use} && {_OTHER_CPUS}", program)


def counted_job(mode: str, scale: Scale) -> Job:
    """One mode's run stage alone."""
    if mode == "memory":
        return _job(mode, shlex.split(_memory(scale.counted_mb)), "true")
    prepare = f"{_DISK} && cd /mnt && {_fileio(scale.counted_writes, 'prepare')}"
    return _job(mode, shlex.split(_fileio(scale.counted_writes, "run")), prepare)


def _job(name: str, command: list[str], prepare: str, *more: Path) -> Job:
    workload = Workload(name, name, shlex.join(command), (tools.SYSBENCH,), prepare, after="umount /mnt")
    return Job(name, command, workload, [Path(tools.path_of(tools.SYSBENCH, "sysbench in a guest")), *more])


# ---- Out of the guest ----------------------------------------------------------------------------------------------


def timed(texts: Mapping[str, str], spec: str) -> dict[str, dict[str, float]]:
    """Of each mode: seconds of the run stage, KiB after it (`used`: MemTotal - MemFree, without the files that fill memory; `own`: without
    all page cache and programs; `slab`), events during it."""
    stages = re.split(r"(?m)^@(\w+)\n", texts.get("output", ""))
    output = dict(zip(stages[1::2], stages[2::2], strict=True))
    if not {"begin", *MODES} <= output.keys():
        raise UserError(f"sysbench on {spec} was not done: {texts.get('output', '')[-200:]}")
    reclaimed = _reclaimed(texts.get("after/vmstat", "")) - _reclaimed(texts.get("before/vmstat", ""))
    if reclaimed:
        raise UserError(f"sysbench on {spec}: {reclaimed} pages of memory had to be reclaimed, so its events are not the allocator's alone")
    ran = {"memory": output["begin"], "fileio": output["memory"]}
    events = events_by_mark(texts.get("extfrag", ""))
    if missing := [mode for mode in MODES if mode not in events]:
        raise UserError(f"sysbench on {spec}: the kernel's trace has no mark for {', '.join(missing)}, so its events cannot be told")
    return {mode: {"seconds": sysbench.stage(ran[mode]).seconds, **_memory_of(output[mode]), "events": events[mode]} for mode in MODES}


def _memory_of(meminfo: str) -> dict[str, int]:
    kb = {name: int(found[1]) if (found := re.search(rf"(?m)^{name}: +(\d+) kB", meminfo)) else 0 for name in _MEMINFO}
    used = kb["MemTotal"] - kb["MemFree"]
    return {"used": used - kb["Shmem"], "own": used - kb["Buffers"] - kb["Cached"] - kb["AnonPages"], "slab": kb["Slab"]}


def _reclaimed(vmstat: str) -> int:
    return sum(int(pages) for pages in re.findall(r"(?m)^pgsteal_(?:kswapd|direct) (\d+)$", vmstat))


def events_by_mark(trace: str) -> dict[str, int]:
    """Fallback events before each mark of the trace and behind the one before it."""
    found: dict[str, int] = {}
    events = 0
    for line in trace.splitlines():
        mark = re.search(r"tracing_mark_write: @(\w+)", line)
        if mark:
            found[mark[1]] = events
            events = 0
        else:
            events += f" {machine.FALLBACK}: " in line
    return found


def caches_of(slabinfo: str) -> dict[str, Any]:
    """What caches hold: pages in all, KiB of free objects in all, and of the caches with most of these their name and KiB."""
    found = run.caches(slabinfo)
    unused = [(one["name"], (one["objects"] - one["active_objects"]) * one["size"] / 1024) for one in found]
    top = sorted(unused, key=lambda one: -one[1])[:CACHES_KEPT]
    return {
        "kb": 4 * sum(one["pages"] for one in found),
        "unused_kb": round(sum(kb for _, kb in unused)),
        "most_unused": [[name, round(kb)] for name, kb in top],
    }


def waited(profile: flame.Profile) -> int:
    """Instructions that CPUs did not execute while they waited within an allocation or free."""
    return sum(count for stack, count in profile.stacks.items() if stack[-1] == flame.WAITS and any(map(flame.role, stack)))


def counted(done: run.Run, waiting: int = 0) -> dict[str, Any]:
    """Of a boot that counted: sysbench's time; of the allocator calls, instructions by part, waiting for its locks, and misses; the
    kernel's instructions. `waiting`: instructions not executed for it, which count with the locks."""
    found = done.cost
    assert found is not None
    calls = found["operations"]
    spins = [one for one in found["functions"] if one["part"] == "locks" and "slowpath" in one["name"]]
    parts = {part: round(figures["instructions"] * calls) for part, figures in found["parts"].items()}
    return {
        "seconds": sysbench.stage(done.texts.get("output", "")).seconds,
        "operations": calls,
        "instructions": round(found["instructions"] * calls) + waiting,
        **parts,
        "locks": parts["locks"] + waiting,
        "waiting": round(sum(one["instructions"] for one in spins) * calls) + waiting,
        "l1_misses": round(found["l1_misses"] * calls),
        "ll_misses": round(found["ll_misses"] * calls),
        "kernel": found["kernel"]["instructions"] + waiting,
    }


def count(plan: machine.Plan) -> dict[str, Any]:
    """A boot that counts."""
    stacks: list[str] = []
    done = run.once(plan, look=lambda outcome: stacks.append(outcome.stacks))
    names = cost.Symbols.of(plan.kernel.map.read_text(), plan.spec.kind).names
    return counted(done, waited(flame.name_nodes(stacks[0], names)) if plan.turn else 0)


# ---- The boots -----------------------------------------------------------------------------------------------------


def boots(work: Work) -> Data:
    """All boots, which every item of the paper judges."""
    data: Data = work.shared("ferreira", "boots", lambda: _boots(work), lambda data: data)
    return data


def _boots(work: Work) -> Data:
    scale = QUICK if work.quick else FULL
    check()
    had = work.specs((*ALLOCATORS.values(), SHORT_QUEUES))
    specs, short = {name: had[text] for name, text in ALLOCATORS.items() if text in had}, had[SHORT_QUEUES]
    of_kind: dict[str, build.Kernel] = {}
    for spec in specs.values():
        if spec.kind.name not in of_kind:
            of_kind[spec.kind.name] = work.kernel("x86_64", spec.kind)
    rounds = [(cpus, turn) for turn in range(scale.repetitions) for cpus in scale.cpus]

    def timed_boot(spec: kinds.Spec, cpus: int, ended: Callable[[], None]) -> dict[str, Any]:
        done = run.once(plan(spec, of_kind, timed_job(scale), machine.Hardware(USED_MEMORY, cpus), *USED), ended=ended)
        caches = caches_of(done.texts.get("after/slabinfo", ""))
        return {"modes": timed(done.texts, spec.text), "caches": caches, "trouble": [f"{spec.text}: {line}" for line in done.trouble]}

    def counting_boot(spec: kinds.Spec, mode: str, cpus: int) -> dict[str, Any]:
        planned = plan(spec, of_kind, counted_job(mode, scale), machine.Hardware(MEMORY, cpus, accelerator="tcg"))
        return count(dataclasses.replace(planned, counts=True, turn=TURN if cpus > 1 else 0))

    # Interleaved: whatever slows this machine for a while slows all.
    names = {(name, cpus, turn): f"{name}, {cpus} CPUs, boot {turn + 1}" for cpus, turn in rounds for name in specs}
    last = f"SLQB with short queues, {scale.cpus[-1]} CPUs"
    parts = {part: functools.partial(timed_boot, specs[name], cpus) for (name, cpus, _), part in names.items()}
    boots = work.timed({**parts, last: functools.partial(timed_boot, short, scale.cpus[-1])})
    samples: dict[str, dict[int, list[dict[str, Any]]]] = {name: {cpus: [] for cpus in scale.cpus} for name in specs}
    for (name, cpus, _), part in names.items():
        samples[name][cpus].append(boots[part])
    queues = boots[last]
    counting = {"memory": (1,), "fileio": scale.counted_on}
    keys = [(name, mode, cpus) for name in specs for mode in MODES for cpus in counting[mode]]
    counting_boots = {
        f"{name}, {mode}, {cpus} CPUs, counted": functools.partial(counting_boot, specs[name], mode, cpus) for name, mode, cpus in keys
    }
    counts: dict[str, dict[str, dict[str, Any]]] = {name: {mode: {} for mode in MODES} for name in specs}
    for (name, mode, cpus), found in zip(keys, work.side_by_side(counting_boots).values(), strict=True):
        counts[name][mode][str(cpus)] = found
    return {
        "scale": dataclasses.asdict(scale),
        "memory_mb": USED_MEMORY >> 20,
        "host_cpus": os.cpu_count() or 1,
        "kernel": next(iter(of_kind.values())).about["release"],
        "timed": {name: {str(cpus): _by_figure(found) for cpus, found in mine.items()} for name, mine in samples.items()},
        "caches": {name: {str(cpus): found[-1]["caches"] for cpus, found in mine.items()} for name, mine in samples.items()},
        "counted": counts,
        "short_queues": {"cpus": scale.cpus[-1], "modes": queues["modes"], "caches": queues["caches"]},
        "trouble": sorted({line for mine in samples.values() for found in mine.values() for one in found for line in one["trouble"]}),
    }


def _by_figure(found: Sequence[Mapping[str, Any]]) -> dict[str, list[float]]:
    """The figures of several boots, as `fileio_seconds`, in the boots' order."""
    first = found[0]["modes"]
    return {f"{mode}_{what}": [one["modes"][mode][what] for one in found] for mode in MODES for what in first[mode]}


def plan(spec: kinds.Spec, kernels: Mapping[str, build.Kernel], job: Job, hardware: machine.Hardware, *more: str) -> machine.Plan:
    parameters: Sequence[str] = (*spec.parameters, f"ramdisk_size={DISK_KB}", *more)
    return machine.Plan(dataclasses.replace(spec, parameters=tuple(parameters)), kernels[spec.kind.name], job, hardware)
