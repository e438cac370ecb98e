"""The C programs and other children: found, run, and ended with us.

Every child is started here, so that whatever ends the lab (an error, Ctrl-C) ends its children too. A program of ours reports
a user's mistake as one line on standard error that begins with its name; the line is handed on under ours.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import json
import os
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from .errors import MISSING, USAGE, UserError

BIN = Path(__file__).parent.parent / "bin"
REPLAY, THREADS, PAIRS, INSPECT = "slabyard-replay", "slabyard-threads", "slabyard-pairs", "slabyard-inspect"

_children: dict[subprocess.Popen[Any], bool] = {}  # and whether it leads a group of processes
_lock = threading.Lock()
_thread = threading.local()  # `ends`: an event for each side_by_side that this thread works for, set where that is left


def program(name: str) -> str:
    """The path of one of slabyard's own programs: beside the package, else on PATH. UserError when it is nowhere."""
    own = BIN / name
    if own.is_file():
        return str(own)
    found = shutil.which(name)
    if found is None:
        raise UserError(f"{name} is neither in {BIN} nor on PATH; install slabyard again (pip install .), which builds it", MISSING)
    return found


def check_command(name: str) -> None:
    """UserError where a user's command cannot be run, as far as that is known before it is."""
    if shutil.which(name) is not None:
        return
    if not name:
        raise UserError("the command after -- is empty")
    if "/" not in name and not os.environ.get("PATH"):
        raise UserError(f"PATH is empty, so neither {name} nor what slabyard needs is found; set it, as in PATH=/usr/bin:/bin", MISSING)
    if "/" in name and Path(name).exists():
        raise UserError(f"{name}: is {'a folder' if Path(name).is_dir() else 'not executable'}, so it cannot be run")
    raise UserError(f"{name}: no such command")


def cannot_be_run(name: str, error: OSError) -> UserError:
    """What to tell of a command that check_command has let pass, and the system does not start."""
    reasons = {
        errno.ENOENT: "there is no interpreter like the one that it names",
        errno.ENOEXEC: "it is no program of this machine, and no script that names its interpreter in a first line, as #!/bin/sh",
    }
    return UserError(f"{name}: cannot be run: {reasons.get(error.errno or 0) or str(error.strerror).lower()}")


@contextlib.contextmanager
def child(argv: Sequence[str], **options: Any) -> Iterator[subprocess.Popen[Any]]:
    """A running child; killed when the block is left before it has ended. Its pipes are closed then."""
    process = subprocess.Popen(argv, **options)
    with _lock:
        _children[process] = options.get("start_new_session", False)
    try:
        stop_if_unwanted()  # kill_children may have been before it
        yield process
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        with _lock:
            del _children[process]
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                _close(pipe)


@contextlib.contextmanager
def side_by_side(jobs: int) -> Iterator[ThreadPoolExecutor]:
    """Threads that each start children. Whatever ends the block ends what they are doing, and they begin nothing more."""
    ends = (*getattr(_thread, "ends", ()), threading.Event())
    with ThreadPoolExecutor(max(1, jobs), initializer=setattr, initargs=(_thread, "ends", ends)) as pool:
        try:
            yield pool
        except BaseException:
            ends[-1].set()
            pool.shutdown(wait=False, cancel_futures=True)
            kill_children()  # the pool waits for what they are doing
            raise


def stop_if_unwanted() -> None:
    """KeyboardInterrupt in a thread of a side_by_side that is being left."""
    if any(end.is_set() for end in getattr(_thread, "ends", ())):
        raise KeyboardInterrupt


def last_line(text: str, otherwise: str = "it said nothing") -> str:
    """The last line of what a program has printed, without those that are empty."""
    return (text.strip().splitlines() or [otherwise])[-1].strip()


def kill_children() -> None:
    """Ends every child, also those that other threads wait for."""
    with _lock:
        running = list(_children.items())
    for process, leads in running:
        with contextlib.suppress(OSError):
            if leads and process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.kill()


def run_json(name: str, *words: str) -> Any:
    """Runs one of slabyard's programs and parses its standard output. UserError with its line when it fails."""
    return json.loads(run(name, *words))


def run(name: str, *words: str) -> bytes:
    """Runs one of slabyard's programs; its standard output. UserError with its line when it fails."""
    return run_under((), program(name), words)


def run_under(tool: Sequence[str], path: str, words: Sequence[str], **options: Any) -> bytes:
    """The same of a program of ours at a path, under a tool's command if there is one; with options of Popen."""
    with child([*tool, path, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, **options) as process:
        out, err = process.communicate()
    if process.returncode == 0:
        return bytes(out)
    raise _failure([path, *words], process.returncode, err)


def complete(argv: Sequence[str], **options: Any) -> subprocess.CompletedProcess[bytes]:
    """Any program, to its end, and what it printed; with options of Popen."""
    with child(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options) as process:
        out, err = process.communicate()
    stop_if_unwanted()  # as it was killed
    return subprocess.CompletedProcess(argv, process.returncode, out, err)


@dataclass(frozen=True)
class Limits:
    """The most that a replay can have of each."""

    cpus: int
    nodes: int


@functools.cache
def limits() -> Limits:
    """What the library was built with room for. UserError when the program is missing."""
    return Limits(**run_json(REPLAY, "--limits"))


class Server:
    """One of slabyard's programs that answers words on its standard input with lines of JSON, until it is closed."""

    def __init__(self, argv: Sequence[str]) -> None:
        self._argv = argv
        with contextlib.ExitStack() as stack:
            self._errors = stack.enter_context(tempfile.TemporaryFile())  # a pipe that nobody reads may fill up
            self._process = stack.enter_context(
                child(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, text=True, bufsize=1)
            )
            self._stack = stack.pop_all()

    def ask(self, word: str) -> Any:
        """The answer. UserError when the program ends instead, with its line."""
        assert self._process.stdin and self._process.stdout
        answer = ""
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(word + "\n")
            answer = self._process.stdout.readline()
        if answer.endswith("\n"):
            return json.loads(answer)
        status = self._process.wait()
        self._errors.seek(0)
        raise _failure(self._argv, status, self._errors.read())

    def end(self) -> None:
        """Has the program end, when it has nothing left to answer. Its processor time then is among that of our children."""
        assert self._process.stdin
        _close(self._process.stdin)
        self._process.wait()
        self.close()

    def close(self) -> None:
        """Ends the program, whatever it is doing."""
        self._stack.close()


def _close(pipe: IO[Any]) -> None:
    with contextlib.suppress(BrokenPipeError):  # of a program that is gone
        pipe.close()


def _failure(argv: Sequence[str], status: int, err: bytes) -> UserError:
    """What to tell of a program that did not answer: its own line, or how it ended."""
    name = Path(argv[0]).name
    if status < 0:
        return UserError(f"{' '.join(argv[1:])}: {name} was ended by {_signal_name(-status)}{_likely_cause(argv, -status)}")
    lines = [line for line in err.decode(errors="replace").splitlines() if line.strip()]
    ours = [line for line in lines if line.startswith(f"{name}: ")]
    message = (ours or lines or [f"{name} ended with status {status}"])[-1].removeprefix(f"{name}: ")
    return UserError(message, USAGE if status != MISSING else MISSING)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _likely_cause(argv: Sequence[str], number: int) -> str:
    if number == signal.SIGKILL:
        return " (the machine ran out of memory?)"
    return "; does that malloc library work?" if any(word.startswith("malloc:") for word in argv) else "; this is a bug of slabyard"
