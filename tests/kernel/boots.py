"""Real kernels, built and booted: `make test-kernel` (pytest collects this file only when it is named).

Every stock allocator boots to its workloads under user-mode Linux, with no trouble in its log; a whole-boot trace of it comes out
complete and its replay agrees with the kernel; under QEMU it boots on four CPUs and two nodes; a flame graph finds its functions.
SLABYARD_KERNEL_ALLOCATORS and SLABYARD_KERNEL_ARCHES narrow it (comma-separated).
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from slabyard.kernels import build, flame, kinds, machine, run, source, workloads
from slabyard.replay import Options, Workload
from slabyard.snapshots import parse_meminfo

ALLOCATORS = os.environ.get("SLABYARD_KERNEL_ALLOCATORS", "slub,slab,slob").split(",")
ARCHES = os.environ.get("SLABYARD_KERNEL_ARCHES", "um,x86_64").split(",")
UM = pytest.mark.skipif("um" not in ARCHES, reason="not asked for")
X86_64 = pytest.mark.skipif("x86_64" not in ARCHES, reason="not asked for")
AGREES = 0.03  # of the kernel's own figure


def plan(
    spec: str, workload: str, arch: str = "um", hardware: machine.Hardware | None = None, debug: bool = False, outlined: bool = False
) -> run.Plan:
    parsed = kinds.parse(spec)
    kernel = build.build(build.Request(source.find(None), arch, parsed.kind, debug, outlined))
    return run.Plan(parsed, kernel, workloads.parse(workload), hardware or machine.default_hardware(arch))


@UM
@pytest.mark.parametrize("workload", workloads.WORKLOADS)
@pytest.mark.parametrize("allocator", ALLOCATORS)
def test_every_workload_on_every_allocator(allocator: str, workload: str) -> None:
    done = run.once(plan(allocator, workload))
    assert done.trouble == []
    assert done.figures["held_pages_peak"] >= done.figures["held_pages_start"] > 100
    assert (workload in ("boot",)) or done.figures["system_seconds"] > 0
    assert ("after/slabinfo" in done.texts) is (allocator != "slob")


@UM
def test_a_kernel_parameter_reaches_the_allocator() -> None:
    done = run.once(plan("slub:max_order=0", "boot"))
    lines = [line.split() for line in done.texts["after/slabinfo"].splitlines()[2:]]
    single = [line[0] for line in lines if int(line[3]) <= 4096]
    assert all(int(line[5]) == 1 for line in lines if line[0] in single)


@UM
@pytest.mark.parametrize("allocator", ALLOCATORS)
def test_the_replay_of_a_whole_boot_agrees_with_the_kernel(allocator: str, tmp_path: Path) -> None:
    chosen = plan(allocator, "hackbench")
    traced = run.Plan(chosen.spec, chosen.kernel, chosen.job, chosen.hardware, trace=64 << 20)
    output = tmp_path / "t.parquet"
    done = run.once(traced, output)
    assert done.metadata is not None and not done.metadata.incomplete
    assert [one.name for one in done.metadata.snapshots] == ["before", "end"]
    with Workload(output, Options()) as workload:
        exact = workload.exact(allocator)
    recorded = parse_meminfo(done.texts["after/meminfo"])["Slab"] // 4
    assert abs(exact["held_pages_end"] / recorded - 1) < AGREES


@UM
@pytest.mark.parametrize("allocator", ALLOCATORS)
def test_a_flame_graph_finds_the_allocator(allocator: str) -> None:
    chosen = plan(allocator, "hackbench", outlined=True)
    found = flame.sample(chosen)
    shares = flame.shares(found, chosen.spec.kind.slow)
    assert found.samples > 200 and 0 < shares["alloc"] < 0.6 and 0 < shares["free"] < 0.6
    assert shares["alloc_slow"] + shares["free_slow"] > 0


@X86_64
@pytest.mark.parametrize("workload", ["hackbench", "spike", "tar"])
@pytest.mark.parametrize("allocator", ALLOCATORS)
def test_four_cpus_and_two_nodes_under_qemu(allocator: str, workload: str) -> None:
    done = run.once(plan(allocator, workload, "x86_64", machine.Hardware(1 << 30, 4, 2)))
    assert done.trouble == []
    assert {line.split(",")[0] for line in done.texts["after/buddyinfo"].splitlines()} == {"Node 0", "Node 1"}


@X86_64
def test_a_guest_samples_itself() -> None:
    found = flame.sample(plan(ALLOCATORS[0], "hackbench", "x86_64", outlined=True))
    shares = flame.shares(found, kinds.parse(ALLOCATORS[0]).kind.slow)
    assert found.samples > 100 and found.lost == 0 and 0 < shares["alloc"] < 0.6 and 0 < shares["free"] < 0.6
    assert any("do_syscall_64" in stack for stack in found.stacks)


@X86_64
@pytest.mark.parametrize("allocator", ALLOCATORS)
def test_the_kernels_own_checks_find_nothing(allocator: str) -> None:
    done = run.once(plan(allocator, "hackbench", "x86_64", debug=True))
    assert done.trouble == []
