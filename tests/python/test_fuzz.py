"""The inputs that fuzzers of the lab have found mistakes with, and what they begin with (tests/fuzz/fuzz_lab.py)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

FUZZ = Path(__file__).resolve().parents[1] / "fuzz"


def test_every_kept_input_is_read_or_refused() -> None:
    words = [sys.executable, str(FUZZ / "fuzz_lab.py"), "--replay", str(FUZZ / "corpus")]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    assert done.returncode == 0, done.stderr[-3000:]
