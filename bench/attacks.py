"""Attacks on a heap under several allocators, plain and hardened: which are won. Makes the table of docs/hardening.md.

    python bench/attacks.py            runs all, prints the table
    python bench/attacks.py --docs     writes it into the document, too

The programs are those of tests/attacks/, each of which says by its exit status whether the attack was won. Where luck decides, one win
in RUNS is a win. tests/python/test_attacks.py uses the same programs.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from slabyard.base.errors import UserError
from slabyard.base.table import document

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "bench" / "malloc")]
import planted  # noqa: E402
from planted import Case as Attack  # noqa: E402

allocators: Any = __import__("allocators")

SOURCES = ROOT / "tests" / "attacks"
DOCUMENT = ROOT / "docs" / "hardening.md"
PROGRAMS = ("malloc", "caches")
RUNS = 5
WON = 10

OURS = {"yard": "yard", "yard hardened": "yard:harden=all", "slub": "slub", "slub hardened": "slub:harden=all"}

SUCCEEDED, STOPPED, CRASHED, FAILED, HUNG = "won", "stopped", "crashed", "failed", "hung"
SIGNS = {SUCCEEDED: "✗", STOPPED: "✓", CRASHED: "†", FAILED: "·", HUNG: "∞"}
WORST = (SUCCEEDED, HUNG, CRASHED, FAILED, STOPPED)


@dataclass(frozen=True)
class Outcome:
    how: str
    said: str


@dataclass(frozen=True)
class Column:
    """An allocator; `spec`: ours, which has caches too."""

    name: str
    library: Path | None = None
    spec: str = ""
    environment: tuple[tuple[str, str], ...] = ()


def build() -> Path:
    """The programs, in a folder of the build."""
    made = planted.BUILD / "attacks"
    with planted.alone(made):
        for program in PROGRAMS:
            planted.compile_program(SOURCES / f"{program}.c", made / program, program == "caches")
    return made


@cache
def attacks(made: Path, program: str) -> tuple[Attack, ...]:
    listed = subprocess.run([made / program, "--list"], capture_output=True, text=True, check=True).stdout.split()
    return tuple(Attack(program, name, what) for name, what in planted.comments(SOURCES / f"{program}.c", listed).items())


def environment(attack: Attack, column: Column) -> dict[str, str]:
    of_spec = {"SLABYARD": column.spec} if column.spec else {}
    if attack.program == "caches":
        return of_spec
    library = planted.BUILD / "libslabyard-malloc.so" if column.spec else column.library
    return {**of_spec, **dict(column.environment), **({"LD_PRELOAD": str(library)} if library else {})}


def run(made: Path, attack: Attack, column: Column) -> Outcome:
    """Once."""
    done = planted.run(made, attack, environment(attack, column))
    said = done.err.strip()
    if done.status is None:
        return Outcome(HUNG, "")
    if done.status == 2:
        raise UserError(f"{attack}: {said}")
    if done.status == WON:
        return Outcome(SUCCEEDED, said)
    if done.status == 0:
        return Outcome(STOPPED if said else FAILED, said)  # mimalloc says so and goes on
    return Outcome(STOPPED if said else CRASHED, said)


def worst(made: Path, attack: Attack, column: Column, runs: int = RUNS) -> Outcome:
    return min((run(made, attack, column) for _ in range(runs)), key=lambda outcome: WORST.index(outcome.how))


def columns() -> list[Column]:
    work = ROOT / "build" / "bench"
    peers = {one.name: one for one in [*allocators.find(work, None, []), *allocators.hardened(work)]}
    found = [Column("glibc")]
    for name in ("mimalloc", *allocators.HARDENED):
        if peers[name].library is None:
            raise UserError(f"{name} is missing; {peers[name].hint}")
        said = (("MIMALLOC_SHOW_ERRORS", "1"),) if name.startswith("mimalloc") else ()
        found.append(Column(name, peers[name].library.resolve(), environment=said))
    return found + [Column(name, spec=spec) for name, spec in OURS.items()]


def table(made: Path, among: Sequence[Column], jobs: int) -> str:
    chosen = [attack for program in PROGRAMS for attack in attacks(made, program)]
    pairs = [(attack, column) for attack in chosen for column in among if column.spec or attack.program != "caches"]
    with ThreadPoolExecutor(jobs) as pool:
        found = dict(zip(pairs, pool.map(lambda pair: worst(made, *pair), pairs), strict=True))
    rows = [
        [attack.what, *(SIGNS[found[attack, column].how] if (attack, column) in found else " " for column in among)] for attack in chosen
    ]
    won = [
        f"{sum(found[pair].how == SUCCEEDED for pair in pairs if pair[1] == column)} of {sum(pair[1] == column for pair in pairs)}"
        for column in among
    ]
    return document(("attack", *(column.name for column in among)), [*rows, ["won", *won]])


def main() -> int:
    options = planted.parser_of("attacks", __doc__, DOCUMENT).parse_args()
    try:
        planted.build_libraries()
        made = table(build(), columns(), options.jobs)
        print(made)
        if options.docs:
            planted.write_tables(DOCUMENT, "attacks", {"attacks": made})
    except UserError as error:
        print(f"attacks: {error.message}", file=sys.stderr)
        return error.status
    return 0


if __name__ == "__main__":
    sys.exit(main())
