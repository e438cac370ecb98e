"""`slabyard`, and `python -m slabyard`: runs cli.main.

Loading the program takes a moment, in which Ctrl-C must not print where it was: until main catches it, and once main is done, it ends us
as it ends any program that takes no notice of it.
"""

import signal
import sys


def main() -> int:
    """Runs the command line; the exit status."""
    from .cli import main as run

    try:
        return run()
    finally:
        _leave_to_the_system()


def _leave_to_the_system() -> None:
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


_leave_to_the_system()
if __name__ == "__main__":
    sys.exit(main())
