"""The C library and its conformance interpreter through ctypes.

The structures mirror tests/conformance/conformance.h. The shared library is found under $SLABYARD_CONFORMANCE_LIBRARY;
without it, CMake builds it in build/conformance (a second or two; nothing when it is up to date).
"""

from __future__ import annotations

import ctypes
import enum
import fcntl
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

MAX_TUNABLES = 16
BULK = 256
PROGRAM_LENGTH = 4000
CONSTRUCTED = 1 << 31
ROOT = Path(__file__).resolve().parents[2]


class Kind(enum.IntEnum):
    """Kinds of operation, as enum op_kind."""

    CREATE = 0
    DESTROY = 1
    ALLOC = 2
    KMALLOC = 3
    FREE = 4
    SHRINK = 5
    SHRINK_CACHE = 6
    TICK = 7
    DRAIN = 8
    FAIL = 9
    PAGES = 10
    PAGES_FREE = 11
    RELEASE = 12
    HEAP = 13


class Flag(enum.IntFlag):
    """Flags of an allocation, as enum sy_flags."""

    ZERO = 1
    RECLAIMABLE = 2
    MOVABLE = 4
    HIGHATOMIC = 8
    ACCOUNT = 16
    DMA = 32
    DMA32 = 64
    THISNODE = 128
    NO_RECLAIM = 256


class CacheFlag(enum.IntFlag):
    """Flags of a cache, as enum sy_cache_flags."""

    HWCACHE_ALIGN = 1
    TYPESAFE_BY_RCU = 2
    RECLAIMABLE = 4
    ACCOUNT = 8
    DMA = 16
    DMA32 = 32
    NO_MERGE = 64


class _Op(ctypes.Structure):
    _fields_ = [
        ("kind", ctypes.c_uint8),
        ("slot", ctypes.c_uint8),
        ("heap", ctypes.c_uint8),
        ("node", ctypes.c_int8),
        ("flags", ctypes.c_uint32),
        ("a", ctypes.c_uint32),
        ("b", ctypes.c_uint32),
    ]


class _Config(ctypes.Structure):
    _fields_ = [
        ("slots", ctypes.c_uint32),
        ("nodes", ctypes.c_uint32),
        ("heaps", ctypes.c_uint32),
        ("pages_per_node", ctypes.c_uint32),
        ("grace_ns", ctypes.c_uint32),
        ("check_every", ctypes.c_uint32),
        ("fail_first", ctypes.c_uint32),
        ("cpu_lists", ctypes.c_uint8),
        ("leave_objects", ctypes.c_uint8),
        ("reserved", ctypes.c_uint8 * 2),
        ("tunables", ctypes.c_int64 * MAX_TUNABLES),
    ]


class _Result(ctypes.Structure):
    _fields_ = [
        ("operations", ctypes.c_uint64),
        ("allocations", ctypes.c_uint64),
        ("frees", ctypes.c_uint64),
        ("refused", ctypes.c_uint64),
        ("hash", ctypes.c_uint64),
        ("page_requests", ctypes.c_uint64),
        ("injected", ctypes.c_uint64),
        ("peak_pages", ctypes.c_uint64),
        ("checks", ctypes.c_uint64),
        ("failed_at", ctypes.c_uint64),
        ("message", ctypes.c_char * 256),
    ]


class _Program(ctypes.Structure):
    _fields_ = [
        ("config", _Config),
        ("count", ctypes.c_uint32),
        ("fail_each", ctypes.c_uint8),
        ("reserved", ctypes.c_uint8 * 3),
        ("ops", _Op * PROGRAM_LENGTH),
    ]


@dataclass(frozen=True)
class Op:
    """One operation; see conformance.h for what a and b mean for each kind."""

    kind: Kind
    a: int = 0
    b: int = 0
    slot: int = 0
    heap: int = 0
    node: int = -1
    flags: int = 0

    def __str__(self) -> str:
        words = [self.kind.name.lower()]
        if self.kind is Kind.CREATE:
            words.append(f"of {self.a} bytes")
            if self.b & 0xFFFF:
                words.append(f"aligned to {self.b & 0xFFFF}")
            if self.b >> 16 & 0x7F:
                words.append(CacheFlag(self.b >> 16 & 0x7F).name or "")
            if self.b & CONSTRUCTED:
                words.append("constructed")
        elif self.kind in (Kind.ALLOC, Kind.KMALLOC, Kind.FREE):
            what = {Kind.ALLOC: "from cache", Kind.KMALLOC: "bytes", Kind.FREE: "object"}[self.kind]
            words.append(f"{what} {self.a}, {self.b % BULK + 1} times")
        else:
            words.append(f"a={self.a} b={self.b}")
        words.append(f"slot {self.slot} heap {self.heap}")
        if self.node >= 0:
            words.append(f"node {self.node}")
        if self.flags:
            words.append(Flag(self.flags).name or "")
        return " ".join(words)


@dataclass(frozen=True)
class Config:
    """The simulated machine. Sizes in pages of 4 KiB, times in nanoseconds; tunables by name, the rest default."""

    slots: int = 1
    nodes: int = 1
    heaps: int = 1
    pages_per_node: int = 1024
    grace_ns: int = 1000
    check_every: int = 1
    fail_first: int = 0
    cpu_lists: bool = True
    leave_objects: bool = False
    tunables: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Tunable:
    """A tunable of a policy with its inclusive range; default is None where the policy computes it."""

    name: str
    default: int | None
    min: int
    max: int


@dataclass(frozen=True)
class Result:
    """What became of a program. `message` is empty when every promise was kept; `failed_at` is an operation's number."""

    operations: int
    allocations: int
    frees: int
    refused: int
    hash: int
    page_requests: int
    injected: int
    peak_pages: int
    checks: int
    failed_at: int
    message: str


class BuildError(RuntimeError):
    """The shared library could not be built; the text says why."""


def _build() -> Path:
    tree = ROOT / "build" / "conformance"
    library = tree / "tests" / "conformance" / "libslabyard-conformance.so"
    tree.mkdir(parents=True, exist_ok=True)
    with (tree / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two test runs must not build at once
        for command in (
            ["cmake", "-S", str(ROOT), "-B", str(tree), "-DCMAKE_BUILD_TYPE=RelWithDebInfo", "-DSLABYARD_WERROR=ON"],
            ["cmake", "--build", str(tree), "--target", "slabyard-conformance"],
        ):
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                raise BuildError(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    return library


@cache
def library() -> ctypes.CDLL:
    """The shared library, built when it has to be. Raises BuildError."""
    path = os.environ.get("SLABYARD_CONFORMANCE_LIBRARY") or str(_build())
    lib = ctypes.CDLL(path)
    lib.sy_policy_find.restype = ctypes.c_void_p
    lib.sy_policy_find.argtypes = [ctypes.c_char_p]
    lib.sy_conformance_defaults.argtypes = [ctypes.c_void_p, ctypes.POINTER(_Config)]
    lib.sy_conformance_tunable.restype = ctypes.c_bool
    lib.sy_conformance_tunable.argtypes = [
        ctypes.c_void_p,
        ctypes.c_uint,
        ctypes.POINTER(ctypes.c_char_p),
        *[ctypes.POINTER(ctypes.c_int64)] * 3,
    ]
    lib.sy_conformance_draw.restype = None
    lib.sy_conformance_draw.argtypes = [ctypes.c_void_p, ctypes.c_uint64, ctypes.POINTER(_Program)]
    lib.sy_conformance_run_guarded.restype = ctypes.c_bool
    lib.sy_conformance_run_guarded.argtypes = [
        ctypes.c_void_p,
        ctypes.POINTER(_Config),
        ctypes.POINTER(_Op),
        ctypes.c_uint64,
        ctypes.POINTER(_Result),
    ]
    return lib


def policies() -> list[str]:
    """The names of all policies of the build, in their order."""
    lib = library()
    names = []
    for index in range(64):
        policy = (ctypes.c_void_p * 64).in_dll(lib, "sy_policies")[index]
        if not policy:
            break
        name = ctypes.cast(policy, ctypes.POINTER(ctypes.c_char_p)).contents.value
        assert name is not None
        names.append(name.decode())
    return names


@cache
def tunables(policy: str) -> tuple[Tunable, ...]:
    """The tunables of a policy, in its order."""
    lib = library()
    found: list[Tunable] = []
    name, default, low, high = ctypes.c_char_p(), ctypes.c_int64(), ctypes.c_int64(), ctypes.c_int64()
    while lib.sy_conformance_tunable(lib.sy_policy_find(policy.encode()), len(found), name, default, low, high):
        assert name.value is not None
        computed = default.value == -(1 << 63)
        found.append(Tunable(name.value.decode(), None if computed else default.value, low.value, high.value))
    return tuple(found)


def _handle(policy: str) -> int:
    handle = library().sy_policy_find(policy.encode())
    if not handle:
        raise ValueError(f"no policy '{policy}'")
    return int(handle)


_SETTINGS = ("slots", "nodes", "heaps", "pages_per_node", "grace_ns", "check_every", "fail_first")


def drawn(policy: str, seed: int) -> tuple[Config, list[Op], bool]:
    """The program that conformance-soak runs for a seed; True: with each of its page requests failing, too."""
    raw = _Program()
    library().sy_conformance_draw(_handle(policy), seed, raw)
    config = Config(
        **{name: getattr(raw.config, name) for name in _SETTINGS},
        cpu_lists=bool(raw.config.cpu_lists),
        leave_objects=bool(raw.config.leave_objects),
        tunables={tunable.name: raw.config.tunables[i] for i, tunable in enumerate(tunables(policy))},
    )
    ops = [Op(Kind(op.kind), op.a, op.b, op.slot, op.heap, op.node, op.flags) for op in raw.ops[: raw.count]]
    return config, ops, bool(raw.fail_each)


def run(policy: str, config: Config, program: Sequence[Op]) -> Result:
    """Runs a program on one policy; crashes and endless loops come back as messages. One at a time."""
    lib, handle = library(), _handle(policy)
    raw = _Config()
    lib.sy_conformance_defaults(handle, raw)
    for name in _SETTINGS:
        setattr(raw, name, getattr(config, name))
    raw.cpu_lists, raw.leave_objects = config.cpu_lists, config.leave_objects
    for index, tunable in enumerate(tunables(policy)):
        if tunable.name in config.tunables:
            raw.tunables[index] = config.tunables[tunable.name]
    ops = (_Op * len(program))(*[_Op(op.kind, op.slot, op.heap, op.node, op.flags, op.a, op.b) for op in program])
    result = _Result()
    lib.sy_conformance_run_guarded(handle, raw, ops, len(program), result)
    return Result(
        result.operations,
        result.allocations,
        result.frees,
        result.refused,
        result.hash,
        result.page_requests,
        result.injected,
        result.peak_pages,
        result.checks,
        result.failed_at,
        result.message.decode(),
    )


def describe(policy: str, config: Config, program: Sequence[Op], result: Result) -> str:
    """A failed program as text: the machine, its operations line by line, and which of them failed how."""
    lines = [f"{policy}: {result.message}", f"  {config}"]
    for number, op in enumerate(program):
        lines.append(f"  {'>' if number == result.failed_at else ' '} {number:3} {op}")
    if result.failed_at >= len(program):
        lines.append("  >     at the end, when everything is freed and destroyed")
    return "\n".join(lines)
