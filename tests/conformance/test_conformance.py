"""Every policy keeps its promises (listed in conformance.h) on every program.

By default a fixed number of fixed examples. SLABYARD_CONFORMANCE_EXAMPLES=N draws N new ones per policy instead;
SLABYARD_CONFORMANCE_OPS makes conformance-soak, under ctest, run longer.
"""

from __future__ import annotations

import os
from dataclasses import replace

import pytest
from binding import BULK, CONSTRUCTED, CacheFlag, Config, Flag, Kind, Op, Result, describe, drawn, policies, run, tunables
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from shrink import shrink
from strategies import LARGEST_BLOCK, machines, programs, short_programs, sizes

EXAMPLES = os.environ.get("SLABYARD_CONFORMANCE_EXAMPLES")

_drawn = settings(
    max_examples=int(EXAMPLES) if EXAMPLES else 150,
    derandomize=not EXAMPLES,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

_few_drawn = settings(_drawn, max_examples=-(-int(EXAMPLES) // 4) if EXAMPLES else 25)

every_policy = pytest.mark.parametrize("policy", policies())


def check(policy: str, config: Config, program: list[Op]) -> Result:
    """Runs a program, which must keep every promise."""
    result = run(policy, config, program)
    assert not result.message, describe(policy, config, program, result)
    return result


@every_policy
@_drawn
@given(data=st.data(), program=programs)
def test_random_programs(policy: str, data: st.DataObject, program: list[Op]) -> None:
    check(policy, data.draw(machines(tunables(policy))), program)


def check_failing_each(policy: str, config: Config, program: list[Op]) -> int:
    """Runs a program once for each of its page requests, with that request failing. Returns how often."""
    program = [op for op in program if op.kind is not Kind.FAIL]  # one failure is enough
    requests = check(policy, config, program).page_requests
    for number in range(1, requests + 1):
        assert check(policy, replace(config, fail_first=number), program).injected
    return requests


@every_policy
@_few_drawn
@given(data=st.data(), program=short_programs)
def test_random_programs_with_each_page_request_failing(policy: str, data: st.DataObject, program: list[Op]) -> None:
    config = replace(data.draw(machines(tunables(policy))), fail_first=0, pages_per_node=1024)
    check_failing_each(policy, config, program)


@every_policy
@_few_drawn
@given(data=st.data(), program=programs)
def test_the_same_program_places_objects_alike(policy: str, data: st.DataObject, program: list[Op]) -> None:
    config = data.draw(machines(tunables(policy)))
    first, second = check(policy, config, program), check(policy, config, program)
    assert first == second


@every_policy
@_drawn
@given(size=sizes, align=st.sampled_from([0, 1, 8, 64, 4096]), count=st.integers(1, BULK), constructed=st.booleans())
def test_one_cache_filled_and_emptied(policy: str, size: int, align: int, count: int, constructed: bool) -> None:
    assume(size * count < 2 << 20)
    create = Op(Kind.CREATE, size, align | (CONSTRUCTED if constructed else 0))
    alloc, free = Op(Kind.ALLOC, 0, count - 1), Op(Kind.FREE, 0, count - 1)
    result = check(policy, Config(pages_per_node=4096), [create, alloc, Op(Kind.DESTROY), free, Op(Kind.DESTROY), alloc])
    assert result.allocations == result.frees == count


@every_policy
@pytest.mark.parametrize("size", [0, 1, 8, 4087, 4088, 4096, 8192, 8193, 65536, 1 << 20, LARGEST_BLOCK])
def test_kmalloc_of_every_kind_of_size(policy: str, size: int) -> None:
    config = Config(pages_per_node=8192)
    program = [Op(Kind.KMALLOC, size, 1, flags=flags) for flags in (0, Flag.ZERO, Flag.RECLAIMABLE, Flag.ACCOUNT, Flag.DMA)]
    assert check(policy, config, program).allocations > 0


@every_policy
@pytest.mark.parametrize("size", [LARGEST_BLOCK + 1, 2**31, 2**32 - 1])
def test_beyond_the_largest_block_is_refused(policy: str, size: int) -> None:
    assert check(policy, Config(pages_per_node=8192), [Op(Kind.KMALLOC, size)]).allocations == 0


_typesafe = CacheFlag.TYPESAFE_BY_RCU << 16
_WORK = [
    Op(Kind.CREATE, 100, CONSTRUCTED),
    Op(Kind.CREATE, 700, _typesafe),
    Op(Kind.CREATE, 5000, 0),
    Op(Kind.ALLOC, 0, 60),
    Op(Kind.ALLOC, 1, 255, slot=1),
    Op(Kind.ALLOC, 2, 8),
    Op(Kind.KMALLOC, 48, 100),
    Op(Kind.KMALLOC, 20000, 3, slot=1),
    Op(Kind.FREE, 7, 70, slot=1),
    Op(Kind.TICK, 600),
    Op(Kind.ALLOC, 1, 40),
    Op(Kind.KMALLOC, 1500, 30),
    Op(Kind.FREE, 3, 90),
    Op(Kind.TICK, 600),
    Op(Kind.SHRINK),
    Op(Kind.ALLOC, 0, 90, slot=1),
    Op(Kind.FREE, 1, 200),
    Op(Kind.TICK, 1001),
    Op(Kind.DESTROY, 1),
]


@every_policy
@pytest.mark.parametrize("leave_objects", [False, True])
def test_every_page_request_failing_once(policy: str, leave_objects: bool) -> None:
    assert check_failing_each(policy, Config(slots=2, leave_objects=leave_objects), _WORK) > 10


@every_policy
@pytest.mark.parametrize("pages", [128, 256, 512])
@pytest.mark.parametrize("size", [24, 192, 1024, 3000, 9000])
def test_running_out_of_memory_and_recovering(policy: str, pages: int, size: int) -> None:
    config = Config(pages_per_node=pages, check_every=20)
    fill = [Op(Kind.KMALLOC, size, BULK - 1) for _ in range(min(120, pages * 4096 // size // BULK + 2))]
    empty = [Op(Kind.FREE, 5, BULK - 1) for _ in fill]
    result = check(policy, config, fill + empty + fill)
    assert result.refused or not result.allocations or size == 24


@every_policy
def test_every_tunable_at_both_ends(policy: str) -> None:
    for tunable in tunables(policy):
        for value in (tunable.min, tunable.max):
            check(policy, Config(slots=2, tunables={tunable.name: value}), _WORK)


@every_policy
@pytest.mark.parametrize("nodes", [1, 2, 4])
def test_objects_travel_between_slots_and_nodes(policy: str, nodes: int) -> None:
    config = Config(slots=64, nodes=nodes, pages_per_node=2048)
    program = [Op(Kind.CREATE, 136)]
    for slot in range(64):
        program.append(Op(Kind.ALLOC, 0, 30, slot=slot, node=slot % nodes, flags=Flag.THISNODE))
        program.append(Op(Kind.FREE, slot * 3, 20, slot=63 - slot))
    program += [Op(Kind.DRAIN, slot=slot) for slot in range(64)]
    assert check(policy, config, program).refused == 0


@every_policy
def test_thousands_of_heaps(policy: str) -> None:
    work = [Op(Kind.KMALLOC, 100, 20), Op(Kind.CREATE, 300, CONSTRUCTED), Op(Kind.ALLOC, 0, 9), Op(Kind.HEAP, heap=0)]
    assert check(policy, Config(heaps=2, check_every=1000), work * 2000).allocations == 2000 * 31


def _wrong(message: str, failed_at: int) -> Result:
    return Result(1, 3, 0, 0, 0, 1, 0, 1, 1, failed_at, message)


def test_a_failed_program_is_made_short() -> None:
    config, program, _ = drawn("slub", 3)
    assert len(program) > 100

    def fails(config: Config, program: list[Op]) -> Result | None:
        sizes = [op.a for op in program if op.kind is Kind.KMALLOC]
        return _wrong("too large", len(program) - 1) if max(sizes, default=0) > 1000 else None

    small, short, _ = shrink(config, program, fails)
    assert (small.slots, small.nodes, small.heaps, small.tunables) == (1, 1, 1, {})
    assert [(op.kind, op.a, op.b, op.slot) for op in short] == [(Kind.KMALLOC, 1001, 0, 0)]


def test_a_failed_program_is_printed_line_by_line() -> None:
    program = [Op(Kind.CREATE, 64, 8 | CONSTRUCTED), Op(Kind.ALLOC, 0, 2, slot=3, flags=Flag.ZERO)]
    text = describe("slub", Config(), program, _wrong("an object overlaps another that is in use", 1))
    assert "slub: an object overlaps" in text
    assert "    0 create of 64 bytes aligned to 8 constructed" in text
    assert "  >   1 alloc from cache 0, 3 times slot 3 heap 0 ZERO" in text
