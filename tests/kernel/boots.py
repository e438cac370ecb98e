"""Real kernels, built and booted: `make test-kernel` (pytest collects this file only when it is named).

Under user-mode Linux, every version of Linux that the lab builds boots to every workload, a memory hog among them, with each of
its own allocators and each policy of slabyard. Under QEMU, every policy of slabyard also boots on four CPUs with two nodes, and
without checks on one CPU and on two. No log has trouble, with the kernel's own checks on in all our kernels, and every invariant
of the heap holds at the end. A whole-boot trace is complete, and its replay agrees with the kernel. The logged calls of a kernel
on slabyard, replayed, hold the same pages. A flame graph finds its functions, a kernel's instructions are counted, and the
benchmark inside the kernel comes to its end. What a kernel takes over from another one is as compiled for it.

The workloads are those of `slabyard kernel run`, with less to do (LESS): QEMU without KVM takes twenty times as long as a
processor. Tests for QEMU are one group, so that two guests of four CPUs never run at the same time (pytest -n). They run on x86_64,
and also on arm64 where SLABYARD_KERNEL_ARCHES names it; that needs packages of that architecture.

SLABYARD_KERNEL_ALLOCATORS (specs, separated by blanks), SLABYARD_KERNEL_LINUX and SLABYARD_KERNEL_ARCHES (separated by commas) narrow
it. The tests named `smoke` are CI's: one kernel, every policy, one workload.
"""

from __future__ import annotations

import dataclasses
import itertools
import os
import re
import shlex
import shutil
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from slabyard.kernels import bench, build, cache, fidelity, flame, kinds, machine, run, seed, source, versions, workloads
from slabyard.base.terminal import Progress
from slabyard.study import ferreira_runs

Case = tuple[str, str]  # a version of Linux, a spec
LINUXES = os.environ.get("SLABYARD_KERNEL_LINUX", ",".join(versions.VERSIONS)).split(",")
ASKED = os.environ.get("SLABYARD_KERNEL_ALLOCATORS", "").split()
ALL: list[Case] = [
    (linux, spec)
    for linux in LINUXES
    for spec in ASKED or kinds.everything(linux)
    if spec.partition(":")[0] in {kind.name for kind in kinds.of(linux)}
]
STOCK = [case for case in ALL if not case[1].startswith("slabyard")]
OURS = [case for case in ALL if case[1].startswith("slabyard")]
ARCHES = os.environ.get("SLABYARD_KERNEL_ARCHES", "um,x86_64").split(",")
UM = pytest.mark.skipif("um" not in ARCHES, reason="not asked for")
TIMEOUT = 1800  # seconds for a boot; no measure of how busy this machine is
AGREES = 0.05  # of the kernel's own figure
AGREES_LESS = {
    "slabyard:bsd44": 0.15,  # a replay does not know what its pages had room for before the trace (docs/fidelity.md)
    "slabyard:slqb": 0.15,  # the busier the machine, the more calls interrupt others, and a trace does not tell their slot
}
AGREES_GUEST = 0.1  # four CPUs had slabs before anything can be traced
# There is little memory, so that a hog takes it all sooner.
LITTLE = {"um": machine.Hardware(256 << 20), **dict.fromkeys(("x86_64", "arm64"), machine.Hardware(320 << 20, 4, 2))}
EMULATED = [arch for arch in ARCHES if arch != "um"]
_FILEIO = "sysbench fileio --file-num=64 --file-total-size=8M --file-block-size=16K --file-test-mode=rndwr"
LESS = {
    "hackbench": "hackbench -g 1 -l 20",
    "pipes": "hackbench -g 1 -l 20 -p",
    "threads": "sh -c 'hackbench -g 1 -l 10 -T && hackbench -g 1 -l 10 -T -p'",
    "find": f"find {workloads.HEADERS} -maxdepth 1 -name 'a[n-z]*.h' -exec file {{}} ;",
    "fileio": f"sh -c '{_FILEIO} prepare && {_FILEIO} --threads=16 --events=300 --time=0 run && {_FILEIO} cleanup'",
    "memory": "sysbench memory --threads=16 --memory-block-size=1K --memory-total-size=16M run",
    "tar": f"sh -c 'tar c -C {Path(workloads.HEADERS).parent} linux | tar x -C /mnt && rm -r /mnt/linux'",
    "oom": "sh -c 'tail /dev/zero; hackbench -g 1 -l 5'",
}
SELDOM_SLOW = ("bsd44", "svr4", "sunos4")  # their only slow path is the one to new pages, and no sample may fall into it
_ONLINE = "/sys/devices/system/cpu/cpu3/online"
CPUS = f"sh -c 'hackbench -g 1 -l 40 & for on in 0 1 0 1; do sleep 0.2; echo $on >{_ONLINE} || exit 1; done; wait'"  # one goes and comes
SOUND = "grep -q ^sound /proc/slabyard_check"  # the policy's own check of every invariant


def emulated(test: Callable[..., None]) -> Callable[..., None]:
    """Tests for QEMU, on each architecture that is asked for: one group."""
    return pytest.mark.xdist_group("qemu")(pytest.mark.parametrize("arch", EMULATED)(test))


def of_each(cases: list[Case]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A test for each of these versions and allocators."""
    return pytest.mark.parametrize(("linux", "allocator"), cases)


def first_of_each_version(cases: list[Case]) -> list[Case]:
    """One allocator of each."""
    return list({linux: (linux, spec) for linux, spec in reversed(cases)}.values())


def plan(linux: str, spec: str, workload: str, arch: str = "um", debug: bool = False, outlined: bool = False) -> machine.Plan:
    parsed = kinds.parse(spec, linux)
    kernel = build.build(build.Request(source.find(None, linux), arch, parsed.kind, debug, outlined))
    return machine.Plan(parsed, kernel, workloads.parse(workload, arch), machine.default_hardware(arch), TIMEOUT)


def every_workload(linux: str, spec: str, arch: str) -> machine.Plan:
    """Those of `all` in one boot, and a CPU that goes and comes. Our kernels have the kernel's own checks on."""
    single = itertools.takewhile(lambda name: name != "all", workloads.WORKLOADS)
    parts = [workloads.WORKLOADS[name] for name in single if name != "boot"]
    parts += [workloads.Workload("cpus", "", CPUS)] if LITTLE[arch].cpus > 1 else []
    return one_boot(linux, spec, arch, parts, LITTLE[arch], debug=(linux, spec) in OURS)


def one_boot(linux: str, spec: str, arch: str, parts: list[workloads.Workload], hardware: machine.Hardware, debug: bool) -> machine.Plan:
    """These workloads in one boot, each with less to do. On our kernels the check of the heap comes last."""
    planned = plan(linux, spec, "all", arch, debug)
    parts = [dataclasses.replace(one, command=LESS.get(one.name, one.command)) for one in parts]
    parts += [workloads.Workload("check", "", SOUND)] if (linux, spec) in OURS else []
    together = workloads.together(parts, "every", "")
    job = dataclasses.replace(planned.job, name="every", command=shlex.split(together.command), workload=together)
    return dataclasses.replace(planned, job=job, hardware=hardware)


def folder_of(request: build.Request) -> Path:
    """make's folder of a kernel, which is built again where that was removed."""
    kernel, folder = build.build(request), cache.folder("builds") / build._name(request)
    if not folder.is_dir():
        shutil.rmtree(kernel.folder)
        build.build(request)
    return folder


def contents(compiled: bytes) -> list[bytes]:
    """What an object brings into a kernel, section by section."""
    (start,), (count,) = struct.unpack_from("<Q", compiled, 0x28), struct.unpack_from("<H", compiled, 0x3C)
    sections = (struct.unpack_from("<IIQQQQ", compiled, start + 64 * at) for at in range(count))
    return [compiled[where : where + size] for _, kind, flags, _, where, size in sections if kind == 1 and flags & 2]


def passed(done: run.Run) -> None:
    """Everything came to its end, the hog to its own, and nothing is wrong."""
    assert done.trouble == []
    assert "Out of memory: Killed process" in done.texts["log"]
    assert done.figures["held_pages_peak"] >= done.figures["held_pages_start"] > 100
    assert done.figures["system_seconds"] > 0


@pytest.mark.skipif("6.1" not in LINUXES, reason="not asked for")
@emulated
def test_what_slob_takes_over_from_slub_is_as_compiled_for_slob(arch: str, tmp_path: Path) -> None:
    wanted = (build.Request(source.find(None, "6.1"), arch, kinds.KINDS[name], small=True) for name in ("slub", "slob"))
    slub, slob = map(folder_of, wanted)
    compared = 0
    for remembered in slob.rglob(".*.o.cmd"):
        text = remembered.read_text()
        command = text.partition("\n")[0].partition(" := ")[2]
        name = str(remembered.relative_to(slob)).replace(f"/{remembered.name}", f"/{remembered.name[1:-4]}")
        theirs, taken = slub / name, slob / name
        if not (theirs.is_file() and taken.is_file()) or theirs.stat().st_mtime_ns != taken.stat().st_mtime_ns:
            continue
        if f"-o {name} " not in command or seed.takes_more(remembered, text) or b"kmalloc" not in taken.read_bytes():
            continue
        again = tmp_path / "again.o"
        command = re.sub(r"-Wp,-MMD,\S+", f"-Wp,-MMD,{tmp_path}/again.d", command)
        command = re.sub(rf"(?<=\s){re.escape(name)}(?=\s|$)", str(again), command)
        subprocess.run(command, shell=True, cwd=slob, check=True, capture_output=True)
        assert contents(again.read_bytes()) == contents(taken.read_bytes()), name
        compared += 1
    assert compared > 100, "nearly all callers of kmalloc are taken over"


@UM
@of_each(OURS)
def test_smoke_every_policy_of_slabyard_boots_and_serves_hackbench(linux: str, allocator: str) -> None:
    done = run.once(plan(linux, allocator, "hackbench"))
    assert done.trouble == []
    assert f"slabyard: {allocator.split(':')[1]}, " in done.texts["log"]
    assert run.caches(done.texts["after/slabinfo"]) or not has_slabs(allocator)


# Bugs of Linux's own module for that (drivers/misc/lkdtm), and the names that our kernels report for them.
BUGS = {
    "SLAB_FREE_DOUBLE": "double free",
    "SLAB_LINEAR_OVERFLOW": "write past the end",
    "SLAB_FREE_CROSS": "wrong cache",
    "WRITE_AFTER_FREE": "write after free",
}
PROVOKE = "/sys/kernel/debug/provoke-crash/DIRECT"
REUSE = "for i in 1 2 3; do find /sys /proc >/dev/null 2>&1; done; true"  # what was freed leaves the quarantine


@UM
@of_each(OURS)
def test_a_stock_modules_bugs_are_named_in_the_log(linux: str, allocator: str) -> None:
    parts = ["mount -t debugfs none /sys/kernel/debug", *(f"echo {bug} >{PROVOKE}" for bug in BUGS), REUSE]
    done = run.once(plan(linux, f"{allocator}{',' if '=' in allocator else ':'}debug=FZPU", f'sh -c "{"; ".join(parts)}"', debug=True))
    log = done.texts["log"]
    told = [log.find(f"slabyard: {kind}: ") for kind in BUGS.values()]
    assert -1 not in told, log[-4000:]
    assert "lkdtm" in log[told[0] :], "the functions of the module are in the stacks"
    assert done.figures["held_pages_start"] > 100, "the kernel went on to the end"


def has_slabs(allocator: str) -> bool:
    """Whether caches have slabs of their own, which slabinfo counts."""
    return not allocator.removeprefix("slabyard:").startswith(("slob", "bsd44", "svr4", "sunos4"))


@UM
@of_each(ALL)
def test_every_workload_on_every_allocator(linux: str, allocator: str) -> None:
    done = run.once(every_workload(linux, allocator, "um"))
    passed(done)
    assert ("after/slabinfo" in done.texts) is (allocator not in ("slob", "slub_tiny"))


@UM
def test_the_benchmark_inside_every_kernel() -> None:
    plans = [bench.plan(one.spec, one.kernel, one.hardware, TIMEOUT) for case in ALL for one in [plan(*case, "boot")]]
    found = bench.bench(plans, 1, Progress(len(plans)))
    for record in found:
        assert record["kernel"]["trouble"] == [] and bench.sizes([record])[0] == 8 and bench.sizes([record])[-1] == 4096


@UM
@of_each([case for case in STOCK if case[1] == "slub"])
def test_a_kernel_parameter_reaches_the_allocator(linux: str, allocator: str) -> None:
    done = run.once(plan(linux, f"{allocator}:max_order=0", "boot"))
    lines = [line.split() for line in done.texts["after/slabinfo"].splitlines()[2:]]
    single = [line[0] for line in lines if int(line[3]) <= 4096]
    assert all(int(line[5]) == 1 for line in lines if line[0] in single)


@UM
@of_each(ALL)
def test_the_replay_of_a_whole_boot_agrees_with_the_kernel(linux: str, allocator: str, tmp_path: Path) -> None:
    found = fidelity.measure(plan(linux, allocator, "hackbench"), 64 << 20, tmp_path / "t.parquet")
    assert found.trouble == [] and found.incomplete is None
    assert found.events > 100_000 and abs(found.difference) < AGREES_LESS.get(allocator, AGREES)


@UM
@of_each(OURS)
def test_a_kernels_calls_made_again_hold_the_same_pages(linux: str, allocator: str) -> None:
    found = fidelity.replay_log(plan(linux, allocator, "hackbench"))
    assert found.trouble == [] and found.calls > 100_000, found
    assert found.agrees and found.requests > 200 and found.apart == 0, found


@UM
@of_each(ALL)
def test_a_flame_graph_finds_the_allocator(linux: str, allocator: str) -> None:
    chosen = plan(linux, allocator, "hackbench", outlined=True)
    found = flame.sample(chosen)
    shares = flame.shares(found, chosen.spec.kind.slow)
    assert found.trouble == [] and found.samples > 100 and 0 < shares["alloc"] < 0.6 and 0 < shares["free"] < 0.6
    assert shares["alloc_slow"] + shares["free_slow"] > 0 or allocator.removeprefix("slabyard:") in SELDOM_SLOW


@emulated
@of_each([*first_of_each_version(STOCK), *OURS])
def test_every_workload_on_four_cpus_and_two_nodes(linux: str, allocator: str, arch: str) -> None:
    done = run.once(every_workload(linux, allocator, arch))
    passed(done)
    assert {line.split(",")[0] for line in done.texts["after/buddyinfo"].splitlines()} == {"Node 0", "Node 1"}


@emulated
@pytest.mark.parametrize("cpus", (1, 2))
@of_each([*first_of_each_version(STOCK), *OURS])
def test_a_kernel_as_it_is_measured_on_one_cpu_and_on_two(linux: str, allocator: str, cpus: int, arch: str) -> None:
    parts = [workloads.WORKLOADS["hackbench"]]
    done = run.once(one_boot(linux, allocator, arch, parts, machine.Hardware(320 << 20, cpus), debug=False))
    assert done.trouble == [] and done.figures["held_pages_peak"] > 100  # one that finds other CPUs than these is an error


@emulated
@of_each(first_of_each_version(OURS))
def test_a_small_kernel_has_all_of_its_cpus(linux: str, allocator: str, arch: str) -> None:
    chosen = kinds.parse(allocator, linux)
    kernel = build.build(build.Request(source.find(None, linux), arch, chosen.kind, small=True))
    done = run.once(machine.Plan(chosen, kernel, workloads.parse("hackbench -g 1 -l 20", arch), machine.Hardware(320 << 20, 4), TIMEOUT))
    assert done.trouble == [] and done.texts["before/zoneinfo"].count("    cpu: ") % 4 == 0


@pytest.mark.xdist_group("qemu")
@pytest.mark.skipif("x86_64" not in ARCHES, reason="not asked for")
def test_slabs_take_pieces_of_used_memory() -> None:
    """On small kernels, whose blocks are of 4 MiB and which leave more memory free: with room in the kernel's own blocks there were ten
    events, and by chance none. SLOB's pages are all of one kind, so their events are, too."""
    events = {}
    for allocator in ("slub", "slob"):
        chosen = kinds.parse(allocator)
        kernel = build.from_installed("x86_64", chosen.kind, small=True)
        hardware = machine.Hardware(ferreira_runs.USED_MEMORY, 2)
        of_kind = {chosen.kind.name: kernel}
        planned = ferreira_runs.plan(chosen, of_kind, ferreira_runs.timed_job(ferreira_runs.QUICK), hardware, *ferreira_runs.USED)
        done = run.once(dataclasses.replace(planned, timeout=TIMEOUT))
        assert done.trouble == []
        events[allocator] = ferreira_runs.timed(done.texts, allocator)["fileio"]["events"]
    assert events["slob"] > events["slub"] > 30


@emulated
@of_each([*first_of_each_version(STOCK), *first_of_each_version(OURS)])
def test_the_benchmark_inside_a_guest(linux: str, allocator: str, arch: str) -> None:
    one = plan(linux, allocator, "boot", arch)
    (record,) = bench.bench([bench.plan(one.spec, one.kernel, one.hardware, TIMEOUT)], 1, Progress(1))
    assert record["kernel"]["trouble"] == [] and bench.sizes([record])[0] == 8 and bench.sizes([record])[-1] == 4096


@emulated
@of_each(first_of_each_version(STOCK))
def test_the_trace_of_a_guest_has_its_whole_boot(linux: str, allocator: str, arch: str, tmp_path: Path) -> None:
    found = fidelity.measure(plan(linux, allocator, "boot", arch), 64 << 20, tmp_path / "t.parquet")
    assert found.trouble == [] and found.incomplete is None
    assert found.events > 40_000 and abs(found.difference) < AGREES_GUEST


@emulated
@of_each([*first_of_each_version(STOCK), *first_of_each_version(OURS)])
def test_what_a_kernel_executes_is_counted(linux: str, allocator: str, arch: str) -> None:
    planned = plan(linux, allocator, "hackbench -g 1 -l 20", arch)
    done, again = (run.count(planned, machine.Hardware(320 << 20)) for _ in range(2))
    found = done.cost
    assert found == again.cost
    assert done.trouble == [] and found is not None and found["operations"] > 20_000
    assert 20 < found["instructions"] < 2000 and 0 < found["ll_misses"] < found["l1_misses"] < 100
    assert sum(part["instructions"] for part in found["parts"].values()) == pytest.approx(found["instructions"])
    assert found["instructions"] * found["operations"] < 0.5 * found["kernel"]["instructions"]
    assert {"kmem_cache_alloc_node", "kfree"} <= {one["name"] for one in found["functions"] if one["part"] == "fast"}
    assert "asm_sysvec_apic_timer_interrupt" not in {one["name"] for one in found["functions"]}


@emulated
@of_each([*first_of_each_version(STOCK), *first_of_each_version(OURS)])
def test_a_guest_samples_itself(linux: str, allocator: str, arch: str) -> None:
    chosen = plan(linux, allocator, "hackbench -g 1 -l 60", arch, debug=(linux, allocator) in OURS, outlined=True)
    found = flame.sample(chosen)
    shares = flame.shares(found, chosen.spec.kind.slow)
    assert found.trouble == [] and found.samples > 100 and found.lost == 0 and 0 < shares["alloc"] < 0.6 and 0 < shares["free"] < 0.6
    assert any({"do_syscall_64", "el0_svc"} & {*stack} for stack in found.stacks)
