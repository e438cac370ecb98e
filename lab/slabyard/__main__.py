"""`slabyard`, and `python -m slabyard`: runs cli.main.

Loading the program takes a moment, in which a signal finds nothing to tidy up: it ends us at once, with the line and the status that
main gives it later. Once main is done all is said and written, and a signal changes neither. Threads are waited for and exit functions
called; then the process ends without finalizing the interpreter. A thread of pyarrow that holds a Python object may wake during the
finalization and abort the process (terminate called without an active exception), whose status would no longer be ours.

pyarrow loads pandas, where that is installed, at the first array that it makes, which takes a second, and a signal that comes in that
second is lost: it becomes an exception that pyarrow ignores. The command has no use for pandas, so it is kept out of its process
(slabyard/tune lets it in again).
"""

import atexit
import contextlib
import os
import signal
import sys
from typing import NoReturn

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def main() -> NoReturn:
    """Runs the command line and ends the process with its exit status."""
    status: list[int] = []
    atexit.register(_end, status)  # the first that registers is called last
    status.append(run())
    sys.exit(status[0])


def _end(status: list[int]) -> None:
    """Ends the process, unless there was an exception in place of a status, which Python tells of."""
    if not status:
        return
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, AttributeError):  # told already, or nobody reads; None: it was closed
            stream.flush()
    os._exit(status[0])


def run() -> int:
    """Runs the command line; the exit status."""
    try:
        from .base.modules import keep_out
        from .command import cli
    except ModuleNotFoundError as error:
        os.write(2, f"slabyard: {error}; install slabyard again (pip install .), which brings it\n".encode())
        return 4
    keep_out("pandas")
    status = cli.main()
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)
    return status


def _end_at_once(_signal: int, _frame: object) -> None:
    try:
        os.write(2, b"slabyard: interrupted\n")
    finally:  # standard error may be closed
        os._exit(130)


for _number in ENDING:
    if signal.getsignal(_number) is not signal.SIG_IGN:  # as nohup has one of them
        signal.signal(_number, _end_at_once)
signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)  # held back by launch/main.c
if __name__ == "__main__":
    main()
