"""Planted bugs under every policy: each is found, with its kind, its address and the functions that did it. Programs without
a bug stay silent.

The programs are in tests/planted/, a source file for each kind, and bench/planted.py knows how they are built, run and judged.
"""

from __future__ import annotations

from pathlib import Path

import planted
import pytest
from preloaded import POLICIES

# The C library keeps the stack of a thread that has ended for the next one, with the thread's variables as they were: see
# docs/debugging.md, "Leaks".
UNTOLD = "leaks/of_a_variable_of_a_thread_that_ended"


@pytest.fixture(scope="session")
def made() -> Path:
    planted.build_libraries()
    return planted.build()


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("program", planted.PROGRAMS)
def test_bugs_are_found(program: str, policy: str, made: Path) -> None:
    named = policy == POLICIES[0]  # stacks don't depend on the policy
    checks = {**planted.ALL_CHECKS, **({} if named else planted.NO_NAMES)}
    bugs = [bug for bug in planted.bugs(made, program) if str(bug) != UNTOLD]
    faults = [planted.fault(bug, planted.run(made, bug, planted.ours(bug, policy, checks)), named) for bug in bugs]
    assert not any(faults), "\n".join(filter(None, faults))


@pytest.mark.parametrize("program", planted.PROGRAMS)
def test_programs_without_a_bug_say_nothing_without_checks(program: str, made: Path) -> None:
    silent = [bug for bug in planted.bugs(made, program) if bug.kind == planted.SILENT]
    faults = [planted.fault(bug, planted.run(made, bug, planted.ours(bug, "yard", {}))) for bug in silent]
    assert not any(faults), "\n".join(filter(None, faults))


def test_every_kind_of_bug_is_planted_and_told_in_a_short_line(made: Path) -> None:
    bugs = [bug for program in planted.PROGRAMS for bug in planted.bugs(made, program)]
    assert {bug.kind for bug in bugs} == set(planted.KINDS)
    assert not [str(bug) for bug in bugs if len(bug.what) > planted.LONGEST_LINE], "too wide for the tables of docs/debugging.md"


def test_tables_count_and_name_what_was_found() -> None:
    found = [("leak", planted.RIGHT), ("leak", planted.DETECTED), ("leak", planted.PASSED)]
    found += [("silent", planted.ALARM), ("silent", planted.PASSED)]
    cells = [{"kind": kind, "by": {"glibc": {"found": how, "says": ""}}} for kind, how in found]
    bugs = {f"leaks/{place}": {"what": f"bug {place}", **cell} for place, cell in enumerate(cells)}
    record = {"checkers": {"glibc": "2.36"}, "bugs": bugs}
    rows = planted.by_kind(record).splitlines()
    assert "| leak | 3 | 3 | 1 + 1 |" in rows and "| no bug: false alarms | 2 | 2 | 1 |" in rows
    assert "| bug 1 | ! |" in planted.full_list(record)


@pytest.mark.parametrize("program", ["overflow", "underflow"])
def test_guarded_objects_are_watched_to_their_pages_edges(program: str, made: Path) -> None:
    """With G alone, at any size."""
    checks = {**planted.ALL_CHECKS, **planted.NO_NAMES, "SLABYARD_DEBUG": "G"}
    faults = [
        planted.fault(bug, planted.run(made, bug, planted.ours(bug, "yard", checks)), named=False) for bug in planted.bugs(made, program)
    ]
    assert not any(faults), "\n".join(filter(None, faults))
