"""A few of the points of make faults (tests/faults/): failing system calls, kills, full disks."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType

import pytest
from slabyard.results import run

FAULTS = Path(__file__).resolve().parents[1] / "faults"


def _module(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"faults_{name}", FAULTS / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_system_calls_that_fail(capsys: pytest.CaptureFixture[str]) -> None:
    status = _module("syscalls").main(["--library", str(run.library()), "--policies", "yard", "--every", "12", "--jobs", "2"])
    if status == 4 and not os.environ.get("CI"):
        pytest.skip("strace or cc is not installed")
    assert status == 0, capsys.readouterr().out


@pytest.mark.parametrize("verb", ["import", "sweep"])
def test_killed_at_any_moment(verb: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    disks = "3" if verb == "import" and os.geteuid() == 0 else "0"
    status = _module("kills").main(["--points", "4", "--signals", "4", "--disks", disks, "--pairs", "0", "--verbs", verb])
    assert status == 0, capsys.readouterr().out


@pytest.mark.parametrize("verb", ["import", "compare", "sweep", "record"])
def test_two_commands_that_write_one_output(verb: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    status = _module("kills").main(["--points", "0", "--signals", "0", "--disks", "0", "--pairs", "1", "--verbs", verb])
    assert status == 0, capsys.readouterr().out
