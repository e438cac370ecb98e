"""The one error that a user is meant to see, and the exit statuses of the command line.

Everything that can go wrong because of input, environment or usage is raised as a UserError whose message is one line
that says what is wrong and what to do about it. The command line prints that line and exits with its status. Anything
else that is raised is a bug of slabyard's own; see cli.main for how that is reported without a traceback.

Statuses (documented in README.md and in `slabyard --help`):

    0  done
    1  a regression was found, where asked to look for one
    2  wrong usage or wrong input
    3  done, but the trace was incomplete: events were lost while it was recorded; or a booted kernel's log tells of trouble
    4  a privilege or a tool is missing; the message says which, and how to get it
    130  interrupted: Ctrl-C, SIGTERM or SIGHUP
"""

from __future__ import annotations

DONE = 0
REGRESSION = 1
USAGE = 2
INCOMPLETE = 3
MISSING = 4
INTERRUPTED = 130  # 128 + SIGINT, as shells report it


class UserError(Exception):
    """One line for the user, and the exit status that goes with it."""

    def __init__(self, message: str, status: int = USAGE) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
