"""Hypothesis strategies: machines and programs.

Numbers shrink towards the simplest machine (one slot, node and heap, default tunables) and the shortest program. Sizes are drawn
around what allocators branch on: powers of two, the page, and their neighbours.
"""

from __future__ import annotations

from dataclasses import replace

from binding import BULK, CONSTRUCTED, CacheFlag, Config, Flag, Kind, Op, Tunable
from hypothesis import strategies as st

PAGE = 4096
LARGEST_BLOCK = PAGE << 10
FEW = 8  # objects

_edges = st.sampled_from([1 << k for k in range(17)])
sizes = st.one_of(
    st.integers(1, 512),
    _edges,
    st.builds(lambda edge, off: max(1, edge + off), _edges, st.integers(-9, 9)),
    st.integers(1, 64 * 1024),
)
_kmalloc_sizes = st.one_of(sizes, st.just(0), st.integers(LARGEST_BLOCK - 1, LARGEST_BLOCK + 2), st.integers(0, 2**32 - 1))
_cache_sizes = st.one_of(sizes, sizes, sizes, st.integers(LARGEST_BLOCK - 2, LARGEST_BLOCK + 2), st.just(2**32 - 1))
_alignments = st.one_of(st.just(0), st.sampled_from([1 << k for k in range(13)]), st.sampled_from([1, 64, 4096, 24, 4095, 8192]))
_cache_flags = st.one_of(st.just(0), st.integers(0, sum(CacheFlag)))
_flags = st.one_of(
    st.just(0),
    st.sampled_from([Flag.ZERO, Flag.THISNODE, Flag.RECLAIMABLE, Flag.ACCOUNT, Flag.DMA, Flag.ZERO | Flag.ACCOUNT]),
    st.builds(int, st.sampled_from([Flag.NO_RECLAIM, Flag.HIGHATOMIC, Flag.ZERO | Flag.THISNODE])),
).map(int)
_slots = st.integers(0, 63)
_heaps = st.integers(0, 1)
_nodes = st.integers(-1, 3)
_indices = st.integers(0, 1000)
_times = st.one_of(st.just(0), st.integers(0, BULK - 1))

_creates = st.builds(
    lambda size, align, flags, constructed, heap: Op(
        Kind.CREATE, size, align | flags << 16 | (CONSTRUCTED if constructed else 0), heap=heap
    ),
    _cache_sizes,
    _alignments,
    _cache_flags,
    st.booleans(),
    _heaps,
)
_allocs = st.builds(Op, st.just(Kind.ALLOC), _indices, _times, _slots, _heaps, _nodes, _flags)
_kmallocs = st.builds(Op, st.just(Kind.KMALLOC), _kmalloc_sizes, _times, _slots, _heaps, _nodes, _flags)
_frees = st.builds(Op, st.just(Kind.FREE), _indices, _times, _slots)
_rest = st.one_of(
    st.builds(Op, st.just(Kind.DESTROY), _indices),
    st.builds(Op, st.just(Kind.SHRINK), heap=_heaps),
    st.builds(Op, st.just(Kind.SHRINK_CACHE), _indices),
    st.builds(Op, st.just(Kind.TICK), st.integers(0, 3000)),
    st.builds(Op, st.just(Kind.DRAIN), b=st.integers(0, 1), slot=_slots, heap=_heaps),
    st.builds(Op, st.just(Kind.FAIL), st.integers(0, 12)),
    st.builds(Op, st.just(Kind.PAGES), st.integers(0, 10), slot=_slots, node=_nodes, flags=_flags),
    st.builds(Op, st.just(Kind.PAGES_FREE), _indices, slot=_slots),
    st.builds(Op, st.just(Kind.RELEASE), st.integers(0, 10)),
    st.builds(Op, st.just(Kind.HEAP), heap=_heaps),
)

# Each of the rest is drawn as often as one of the others: Hypothesis makes one flat choice of nested ones.
_operations = st.one_of(*[_creates] * 3, *[_allocs] * 6, *[_kmallocs] * 3, *[_frees] * 6, _rest)


def _chapters(operations: st.SearchStrategy[Op], count: int) -> st.SearchStrategy[list[Op]]:
    """Lists of operations, several of them joined: Hypothesis draws a single list far too short, however long it may be."""
    return st.tuples(*[st.lists(operations, max_size=20)] * count).map(lambda parts: [op for part in parts for op in part])


programs = _chapters(_operations, 8)


def _few(op: Op) -> Op:
    if op.kind not in (Kind.ALLOC, Kind.KMALLOC, Kind.FREE) or op.b % 8 == 7:
        return op
    return replace(op, b=op.b % FEW)


# Programs with few enough page requests to let each of them fail.
short_programs = _chapters(_operations.map(_few), 3)


def _values(tunable: Tunable) -> st.SearchStrategy[int]:
    low, high = tunable.min, tunable.max
    near = st.integers(low, min(high, low + 64))
    return near if high <= low + 64 else st.one_of(near, st.just(high))


def tunable_settings(tunables: tuple[Tunable, ...]) -> st.SearchStrategy[dict[str, int]]:
    """Settings of some of a policy's tunables; those left out keep their default."""
    return st.fixed_dictionaries({}, optional={tunable.name: _values(tunable) for tunable in tunables})


def machines(tunables: tuple[Tunable, ...]) -> st.SearchStrategy[Config]:
    """Machines for a policy with these tunables, from one slot and 1 MiB up to 64 slots and four nodes of 8 MiB."""
    return st.builds(
        Config,
        slots=st.one_of(st.integers(1, 4), st.integers(1, 64)),
        nodes=st.integers(1, 4),
        heaps=st.integers(1, 2),
        pages_per_node=st.sampled_from([1024, 2048, 512, 256]),
        grace_ns=st.sampled_from([0, 1000, 5000]),
        check_every=st.sampled_from([1, 1, 5]),
        fail_first=st.one_of(st.just(0), st.just(0), st.integers(0, 400)),
        cpu_lists=st.booleans(),
        leave_objects=st.booleans(),
        tunables=tunable_settings(tunables),
    )
