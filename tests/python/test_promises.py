"""What every malloc promises, at random, whatever is switched on: see tests/cases/promises.c."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from preloaded import POLICIES, environment

SOURCE = Path(__file__).resolve().parents[1] / "cases" / "promises.c"
HARDENED = [f"{policy}:harden={words}" for policy in ("yard", "slub") for words in ("all", "links", "zero+quarantine")]
MODES = [
    *((policy, {}) for policy in (*POLICIES, *HARDENED, "slub:sheaf_capacity=32", "bonwick:magazine=on", "slab:limit=4")),
    *((policy, {"SLABYARD_DEBUG": checks}) for policy in POLICIES for checks in ("all", "FZP", "GU")),
    *((policy, {"SLABYARD_SAMPLE": "20"}) for policy in POLICIES),
]
CALLS = 300


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> str:
    made = str(tmp_path_factory.mktemp("promises") / "promises")
    subprocess.run(["cc", "-O1", "-g", "-fno-builtin", "-pthread", str(SOURCE), "-o", made], check=True)
    return made


@pytest.mark.parametrize(("policy", "settings"), MODES, ids=lambda part: "-".join(part.values()) if isinstance(part, dict) else part)
def test_promises_hold_whatever_is_switched_on(program: str, policy: str, settings: dict[str, str], request: pytest.FixtureRequest) -> None:
    seed = str(sum(request.node.name.encode()))
    done = subprocess.run(
        [program, seed, str(CALLS)], env=environment(policy, **settings), capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "ok\n", ""), (seed, done)
