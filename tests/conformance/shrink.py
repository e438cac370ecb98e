"""Makes a failed program of conformance-soak short:  python tests/conformance/shrink.py POLICY SEED

The program of a seed has up to 4,000 operations on a machine with many settings. It is made short by delta debugging (Zeller and
Hildebrandt 2002): parts are left out, halves first and single operations last, as long as the rest still fails in any way. Then
settings and numbers go to their simplest value, one by one, until nothing more helps. Every operation means something in any
program (conformance.h), so that nothing has to be put in order again in between.

Prints the machine, the operations, and which of them fails how. Exit status 0: nothing fails any more; 1: it does; 2: wrong usage.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from binding import Config, Op, Result, describe, drawn, policies, run

Fails = Callable[[Config, list[Op]], Result | None]
"""The result of a program that fails; None: it keeps every promise."""

_SIMPLEST: dict[str, Any] = {
    "leave_objects": False,
    "cpu_lists": False,
    "grace_ns": 0,
    "heaps": 1,
    "nodes": 1,
    "slots": 1,
    "pages_per_node": 1024,
    "check_every": 1,
    "tunables": {},
}


def _leave_out(config: Config, program: list[Op], fails: Fails) -> list[Op]:
    part = max(1, len(program) // 2)
    while part:
        start = 0
        while start < len(program):
            rest = program[:start] + program[start + part :]
            if fails(config, rest):
                program = rest
            else:
                start += part
        part //= 2
    return program


def _simpler_configs(config: Config) -> Iterator[Config]:
    for name, value in _SIMPLEST.items():
        if getattr(config, name) != value:
            yield replace(config, **{name: value})
    for name in config.tunables:
        yield replace(config, tunables={other: value for other, value in config.tunables.items() if other != name})
    for smaller in (0, config.fail_first // 2, config.fail_first - 1):
        if 0 <= smaller < config.fail_first:
            yield replace(config, fail_first=smaller)


def _simpler_numbers(value: int) -> Iterator[int]:
    step = value
    while step:
        yield value - step
        step //= 2


def _simpler_ops(op: Op) -> Iterator[Op]:
    simplest: dict[str, Any] = {"slot": 0, "heap": 0, "node": -1, "flags": 0}
    for name, value in simplest.items():
        if getattr(op, name) != value:
            yield replace(op, **{name: value})
    for a in _simpler_numbers(op.a):
        yield replace(op, a=a)
    for b in _simpler_numbers(op.b):
        yield replace(op, b=b)


def _simplify_config(config: Config, program: list[Op], fails: Fails) -> Config:
    while True:
        for simpler in _simpler_configs(config):
            if fails(simpler, program):
                config = simpler
                break
        else:
            return config


def _simplify_ops(config: Config, program: list[Op], fails: Fails) -> list[Op]:
    for place in range(len(program)):
        progress = True
        while progress:
            progress = False
            for simpler in _simpler_ops(program[place]):
                changed = [*program[:place], simpler, *program[place + 1 :]]
                if fails(config, changed):
                    program, progress = changed, True
                    break
    return program


def shrink(config: Config, program: list[Op], fails: Fails) -> tuple[Config, list[Op], Result]:
    """The simplest machine and shortest program found that fail, and how. ValueError: the given ones do not fail."""
    result = fails(config, program)
    if not result:
        raise ValueError("the program does not fail")
    if fails(config, program[: result.failed_at + 1]):
        program = program[: result.failed_at + 1]
    before: tuple[Config, list[Op]] | None = None
    while before != (config, program):
        before = (config, program)
        program = _leave_out(config, program, fails)
        config = _simplify_config(config, program, fails)
        program = _simplify_ops(config, program, fails)
    last = fails(config, program)
    assert last
    return config, program, last


def find(policy: str, seed: int) -> tuple[Config, list[Op]] | None:
    """The failing machine and program of a seed; None: it keeps every promise."""
    config, program, fail_each = drawn(policy, seed)
    result = run(policy, config, program)
    if result.message:
        return config, program
    for number in range(1, result.page_requests + 1 if fail_each else 0):
        failing = replace(config, fail_first=number)
        if run(policy, failing, program).message:
            return failing, program
    return None


def main(arguments: list[str]) -> int:
    if len(arguments) != 2 or arguments[0] not in policies() or not arguments[1].isdecimal():
        print(f"usage: shrink.py POLICY SEED, where POLICY is one of {', '.join(policies())}", file=sys.stderr)
        return 2
    policy, seed = arguments[0], int(arguments[1])
    found = find(policy, seed)
    if not found:
        print(f"{policy}: the program of seed {seed} keeps every promise")
        return 0

    def fails(config: Config, program: list[Op]) -> Result | None:
        result = run(policy, config, program)
        return result if result.message else None

    config, program, result = shrink(*found, fails)
    print(describe(policy, config, program, result))
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
