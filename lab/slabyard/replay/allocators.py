"""The allocators that a replay can have, as the replay program tells of them: no trace and nothing heavy is needed for that."""

from __future__ import annotations

from typing import Any

from ..base import programs


def policies() -> list[dict[str, Any]]:
    """The policies with their tunables, as the replay program lists them."""
    return programs.run_json(programs.REPLAY, "--list")


def check_spec(spec: str) -> None:
    """UserError where there is no such allocator, tunable, value or library."""
    programs.run(programs.REPLAY, "--check", "--allocator", spec)


def without_effect(spec: str, kernel: int = 0) -> list[str]:
    """The tunables that change nothing beside what the spec sets, on a workload of this kernel (scratch.kernel_version; 0: not known).
    UserError as of check_spec."""
    names: list[str] = programs.run_json(programs.REPLAY, "--check", "--allocator", spec, "--kernel", str(kernel))
    return names


def set_in(spec: str) -> list[str]:
    """The tunables that a spec sets by name, in its order."""
    return [item.partition("=")[0] for item in spec.partition(":")[2].split(",") if "=" in item]


def geometry(spec: str, cpus: int, sizes: list[int]) -> list[dict[str, int]]:
    """Per size: `size`, `objects_per_slab`, `pages_per_slab`, `wasted_bytes`, `sheaf_capacity` (objects; 0: no sheaves by size alone)."""
    return programs.run_json(programs.REPLAY, "--geometry", "--allocator", spec, "--cpus", str(cpus), *map(str, sizes))
