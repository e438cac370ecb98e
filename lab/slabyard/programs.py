"""The C programs and other children: found, run, and ended with us.

Every child is started here, so that whatever ends the lab (an error, Ctrl-C) ends its children too. A program of ours reports
a user's mistake as one line on standard error that begins with its name; the line is handed on under ours.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from .errors import MISSING, USAGE, UserError

BIN = Path(__file__).parent / "bin"

_children: set[subprocess.Popen[Any]] = set()
_lock = threading.Lock()


def program(name: str) -> str:
    """The path of one of slabyard's own programs: beside the package, else on PATH. UserError when it is nowhere."""
    own = BIN / name
    if own.is_file():
        return str(own)
    found = shutil.which(name)
    if found is None:
        raise UserError(f"{name} is missing; install slabyard again (pip install .), which builds it", MISSING)
    return found


@contextlib.contextmanager
def child(argv: Sequence[str], **options: Any) -> Iterator[subprocess.Popen[Any]]:
    """A running child; killed when the block is left before it has ended."""
    process = subprocess.Popen(argv, **options)
    with _lock:
        _children.add(process)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        with _lock:
            _children.discard(process)


def kill_children() -> None:
    """Ends every child, also those that other threads wait for."""
    with _lock:
        running = list(_children)
    for process in running:
        with contextlib.suppress(OSError):
            process.kill()


def run_json(argv: Sequence[str]) -> Any:
    """Runs one of slabyard's programs and parses its standard output. UserError with its line when it fails."""
    name = Path(argv[0]).name
    with child(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL) as process:
        out, err = process.communicate()
    if process.returncode == 0:
        return json.loads(out)
    if process.returncode < 0:
        raise UserError(f"{' '.join(argv[1:])}: {name} was ended by {_signal_name(-process.returncode)}{_why(argv, -process.returncode)}")
    lines = [line for line in err.decode(errors="replace").splitlines() if line.strip()]
    ours = [line for line in lines if line.startswith(f"{name}: ")]
    message = (ours or lines or [f"{name} failed with status {process.returncode}"])[-1].removeprefix(f"{name}: ")
    raise UserError(message, USAGE if process.returncode != MISSING else MISSING)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _why(argv: Sequence[str], number: int) -> str:
    if number == signal.SIGKILL:
        return " (the machine ran out of memory?)"
    return "; does that malloc library work?" if any(word.startswith("malloc:") for word in argv) else "; this is a bug of slabyard"
