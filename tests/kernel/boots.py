"""Real kernels, built and booted: `make test-kernel` (pytest collects this file only when it is named).

Every allocator, Linux's own and each policy of slabyard, boots to its workloads under user-mode Linux and, on four CPUs with two
nodes, under QEMU with the kernel's own checks on, with no trouble in its log; a whole-boot trace of it comes out complete, and its
replay agrees with the kernel; a flame graph finds its functions; the benchmark inside the kernel comes to its end.

SLABYARD_KERNEL_ALLOCATORS (specs, separated by blanks) and SLABYARD_KERNEL_ARCHES (separated by commas) narrow it. The tests named
`smoke` are CI's: one kernel, every policy, one workload.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from slabyard.kernels import bench, build, fidelity, flame, kinds, machine, run, source, workloads
from slabyard.output import Progress, render

ALLOCATORS = os.environ.get("SLABYARD_KERNEL_ALLOCATORS", " ".join(kinds.everything())).split()
LINUX = [spec for spec in ALLOCATORS if not spec.startswith("slabyard")]
OURS = [spec for spec in ALLOCATORS if spec.startswith("slabyard")]
ARCHES = os.environ.get("SLABYARD_KERNEL_ARCHES", "um,x86_64").split(",")
UM = pytest.mark.skipif("um" not in ARCHES, reason="not asked for")
X86_64 = pytest.mark.skipif("x86_64" not in ARCHES, reason="not asked for")
AGREES = 0.05  # of the kernel's own figure


def plan(
    spec: str, workload: str, arch: str = "um", hardware: machine.Hardware | None = None, debug: bool = False, outlined: bool = False
) -> run.Plan:
    parsed = kinds.parse(spec)
    kernel = build.build(build.Request(source.find(None), arch, parsed.kind, debug, outlined))
    return run.Plan(parsed, kernel, workloads.parse(workload), hardware or machine.default_hardware(arch))


@UM
@pytest.mark.parametrize("allocator", OURS)
def test_smoke_every_policy_of_slabyard_boots_and_serves_hackbench(allocator: str) -> None:
    done = run.once(plan(allocator, "hackbench"))
    assert done.trouble == []
    assert f"slabyard: {allocator.split(':')[1]}, " in done.texts["log"]
    assert run.caches(done.texts["after/slabinfo"]) or not has_slabs(allocator)


def has_slabs(allocator: str) -> bool:
    """Whether caches have slabs of their own, which slabinfo counts."""
    return not allocator.removeprefix("slabyard:").startswith(("slob", "bsd44", "svr4", "sunos4"))


@UM
@pytest.mark.parametrize("allocator", ALLOCATORS)
def test_every_workload_on_every_allocator(allocator: str) -> None:
    done = run.once(plan(allocator, "all"))
    assert done.trouble == []
    assert done.figures["held_pages_peak"] >= done.figures["held_pages_start"] > 100
    assert done.figures["system_seconds"] > 0
    assert ("after/slabinfo" in done.texts) is (allocator != "slob")


@UM
def test_the_benchmark_inside_every_kernel(capsys: pytest.CaptureFixture[str]) -> None:
    plans = [bench.plan(one.spec, one.kernel, one.hardware, 600) for spec in ALLOCATORS for one in [plan(spec, "boot")]]
    found = bench.bench(plans, 1, Progress(len(plans)))
    for record in found:
        assert record["kernel"]["trouble"] == [] and bench.sizes([record])[0] == 8 and bench.sizes([record])[-1] == 4096
    with capsys.disabled():
        print(render(bench.tables(found), "text"))


@UM
@pytest.mark.skipif("slub" not in ALLOCATORS, reason="not asked for")
def test_a_kernel_parameter_reaches_the_allocator() -> None:
    done = run.once(plan("slub:max_order=0", "boot"))
    lines = [line.split() for line in done.texts["after/slabinfo"].splitlines()[2:]]
    single = [line[0] for line in lines if int(line[3]) <= 4096]
    assert all(int(line[5]) == 1 for line in lines if line[0] in single)


@UM
@pytest.mark.parametrize("allocator", ALLOCATORS)
def test_the_replay_of_a_whole_boot_agrees_with_the_kernel(allocator: str, tmp_path: Path) -> None:
    found = fidelity.measure(plan(allocator, "hackbench"), 64 << 20, tmp_path / "t.parquet")
    assert found.events > 100_000 and abs(found.difference) < AGREES


@UM
@pytest.mark.parametrize("allocator", OURS)
def test_a_kernels_calls_made_again_hold_the_same_pages(allocator: str) -> None:
    found = fidelity.relive(plan(allocator, "hackbench"))
    assert found.calls > 100_000 and found.agrees, found


@UM
@pytest.mark.parametrize("allocator", ALLOCATORS)
def test_a_flame_graph_finds_the_allocator(allocator: str) -> None:
    chosen = plan(allocator, "hackbench", outlined=True)
    found = flame.sample(chosen)
    shares = flame.shares(found, chosen.spec.kind.slow)
    assert found.samples > 200 and 0 < shares["alloc"] < 0.6 and 0 < shares["free"] < 0.6
    assert shares["alloc_slow"] + shares["free_slow"] > 0


@X86_64
@pytest.mark.parametrize("allocator", [*LINUX[:1], *OURS])
def test_four_cpus_two_nodes_and_the_kernels_own_checks(allocator: str) -> None:
    """Of Linux's own allocators, the first one's kernel without the checks: a debug kernel each takes too long to build."""
    hardware = machine.Hardware(1 << 30, 4, 2)
    done = run.once(plan(allocator, "hackbench+pipes+threads+spike+tar", "x86_64", hardware, debug=allocator in OURS))
    assert done.trouble == []
    assert {line.split(",")[0] for line in done.texts["after/buddyinfo"].splitlines()} == {"Node 0", "Node 1"}


@X86_64
def test_a_guest_samples_itself() -> None:
    found = flame.sample(plan(ALLOCATORS[0], "hackbench", "x86_64", outlined=True))
    shares = flame.shares(found, kinds.parse(ALLOCATORS[0]).kind.slow)
    assert found.samples > 100 and found.lost == 0 and 0 < shares["alloc"] < 0.6 and 0 < shares["free"] < 0.6
    assert any("do_syscall_64" in stack for stack in found.stacks)
