"""The command line: `slabyard VERB`.

The words become options in parsers.py, and what each verb does with them is in verbs.py. Whatever goes wrong ends here: a UserError is
printed as its one line; Ctrl-C, a closed pipe and a full disk likewise; any other exception is a bug of slabyard's, told in one
line with how to see where it happened (SLABYARD_TRACEBACK=1). No child and no half-written file is left behind in any case.
"""

from __future__ import annotations

import argparse
import io
import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from ..base import programs
from ..base.errors import DONE, INTERRUPTED, MISSING, USAGE, UserError
from ..base.files import describe_os_error
from ..base.terminal import note
from . import completion
from .parsers import parser

OUT_OF_MEMORY = "out of memory; close other programs, raise a limit (ulimit -v, -d, -u), or use a smaller trace"
# What libraries say that has no exception of its own: memory for a library, for a thread.
SIGNS_OF_LITTLE_MEMORY = ("failed to map segment", "cannot allocate memory", "Failed to launch worker thread", "can't start new thread")
LEAST_ADDRESSES = 384 << 20  # bytes; with less, numpy or Arrow end the process themselves

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
CLEANUP_SECONDS = 3  # for this long, further signals are taken for the first one

_interrupted_at: list[float] = []


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command line; the exit status."""
    try:
        _take_signals()
        _occupy_closed_streams()
        try:
            status = _run(list(sys.argv[1:] if argv is None else argv))
        except SystemExit as done:  # --help and --version have printed
            status = int(done.code or DONE)
        if sys.stdout is not None:
            sys.stdout.flush()
        return status
    except UserError as error:
        return _fail(error.message, error.status)
    except KeyboardInterrupt:
        return _end_interrupted()
    except BrokenPipeError:  # the reader has gone
        return DONE
    except MemoryError:
        return _fail(OUT_OF_MEMORY, USAGE)
    except OSError as error:
        if os.environ.get("SLABYARD_TRACEBACK"):
            raise
        if isinstance(error, FileNotFoundError) and error.filename is None:
            return _fail(_no_folder(), USAGE)
        return _fail(describe_os_error(error, error.filename or "standard output"), USAGE)
    except Exception as error:
        if _interrupted_at:  # in the making of a class, which Python tells by an error of its own
            return _end_interrupted()
        if os.environ.get("SLABYARD_TRACEBACK"):
            raise
        text = " ".join(str(error).split()) or "no message"
        if any(words in text for words in SIGNS_OF_LITTLE_MEMORY):
            return _fail(OUT_OF_MEMORY, USAGE)
        if isinstance(error, ModuleNotFoundError):
            return _fail(f"{text}; install slabyard again (pip install .), which brings it", MISSING)
        return _fail(f"unexpected {type(error).__name__}: {text[:200]} (a bug; SLABYARD_TRACEBACK=1 shows where)", USAGE)


def _take_signals() -> None:
    """Ctrl-C, SIGTERM and SIGHUP end us in order; one that was ignored when we were started (nohup) stays so."""
    for number in ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _interrupt)


def _interrupt(_signal: int, _frame: object) -> None:
    now = time.monotonic()
    if _interrupted_at and now < _interrupted_at[-1] + CLEANUP_SECONDS:
        return
    _interrupted_at.append(now)
    raise KeyboardInterrupt


def _end_interrupted() -> int:
    programs.kill_children()
    return _fail("interrupted", INTERRUPTED)


def _occupy_closed_streams() -> None:
    """Opens closed standard streams: the next file would get the number of one, and what is printed would go into that file."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest number that is free
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w")
    if isinstance(sys.stdout, io.TextIOWrapper):  # what the terminal's encoding lacks is shown as \\xe9, like on standard error
        sys.stdout.reconfigure(errors="backslashreplace")


def _no_folder() -> str:
    """What an error about a folder without a name is about."""
    try:
        os.getcwd()  # noqa: PTH109
    except FileNotFoundError:
        return "the folder that this was started in has been removed; go to another one"
    return "no folder takes temporary files, as none has room or may be written; have TMPDIR name one that does"


def _fail(message: str, status: int) -> int:
    note(message)
    return status


def _run(argv: list[str]) -> int:
    # What stands after -- is the command to record or run, and none of our options.
    command: list[str] | None = None
    if "--" in argv:
        at = argv.index("--")
        argv, command = argv[:at], argv[at + 1 :]
    words = parser()
    if completion.asked():
        completion.complete(words)
    options, unknown = words.parse_known_args(argv)
    options.command = command
    if unknown:
        raise UserError(_not_understood(options, unknown))
    if options.verb is None:
        words.print_help()
        return USAGE
    if command is not None and options.verb not in ("record", "compare", "run"):
        raise UserError(f"{options.verb} takes no command after --; see slabyard {options.verb} --help")
    if sys.stdout is None and options.verb not in ("record", "import", "export", "run"):
        raise UserError("standard output is closed, and the result goes there; send it to a file or a pipe")
    if options.verb != "run":  # has its command load what it likes
        _check_limit()
    run: Callable[[argparse.Namespace], int] = options.run
    return run(options)


def _not_understood(options: argparse.Namespace, words: list[str]) -> str:
    """What to tell of words that the verb knows nothing of."""
    if options.verb in ("record", "run") and options.command is None and not words[0].startswith("-"):
        return f"{options.verb} takes its command after --; write -- before {words[0]}"
    called = [word for word in ("slabyard", options.verb, getattr(options, "kernel_verb", None)) if word]
    return f"unrecognized arguments: {' '.join(words)}; see {' '.join(called)} --help"


def _check_limit() -> None:
    """UserError where the process may not have the addresses that loading what it needs takes."""
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit != resource.RLIM_INFINITY and limit < LEAST_ADDRESSES:
        raise UserError(f"ulimit -v of {limit >> 10} is too little; slabyard needs {LEAST_ADDRESSES >> 10} (KiB) to begin with")
