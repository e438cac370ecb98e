"""What the user sees beside the result: one-line notes, and the progress of what takes long.

Standard output carries results alone, so that it can be piped. Notes and progress go to standard error; a progress bar and colour only
when that is a terminal, and no colour under NO_COLOR (rich sees to that).
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import time
from typing import Any

SECONDS_UNTOLD = 30  # of a job without a terminal


def printable(name: str) -> str:
    """A file's name, or what has such in it, on one line, as `\\n` and `\\xff` where it has what cannot be shown."""
    text = os.fsencode(name).decode(errors="backslashreplace")
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)


_OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]")


def visible(text: str) -> str:
    """Lines of a result without what a terminal obeys: names in traces and dumps were written by others. Such characters are shown as
    `\\x1b`."""
    return _OBEYED.sub(lambda one: one[0].encode("unicode_escape").decode(), text)


def note(message: str) -> None:
    """One line on standard error, for what the user should know beside the result. Bytes that are no text, and characters that
    a terminal obeys, are shown as `\\xff`. Where nobody reads it, or the disk of a log is full, the work goes on."""
    with contextlib.suppress(OSError):
        print(f"slabyard: {printable(' '.join(message.split()))}", file=sys.stderr, flush=True)


class Progress:
    """Steps of a long job on standard error: a bar on a terminal, with the time left; elsewhere a line for each stage, and each
    half minute one that says how far it is; none if `quiet`."""

    def __init__(self, total: int, quiet: bool = False) -> None:
        self.total, self.done, self.quiet = total, 0, quiet
        self.bar: Any = None
        self.told = time.monotonic()
        if not quiet and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
            from rich.progress import Progress as Bar

            self.bar = Bar(
                TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
                TextColumn("left"), TimeRemainingColumn(),
                console=Console(stderr=True), transient=True,
            )  # fmt: skip
            self.task = self.bar.add_task("", total=total)

    def __enter__(self) -> Progress:
        if self.bar:
            self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.bar:
            self.bar.stop()

    def step(self, description: str, advance: int = 1) -> None:
        """`description` is what is being done now; `advance` steps of the total are behind us once it is done."""
        self.done += advance
        if self.bar:
            self.bar.update(self.task, description=description, completed=self.done)
        elif not self.quiet and time.monotonic() - self.told >= SECONDS_UNTOLD:
            self.told = time.monotonic()
            note(f"{self.done:,} of {self.total:,} steps: {description}")

    def expect(self, more: int) -> None:
        """The job turns out to have more steps."""
        self.total += more
        if self.bar:
            self.bar.update(self.task, total=self.total)

    def stage(self, description: str) -> None:
        """A new stage begins."""
        if self.bar:
            self.bar.update(self.task, description=description)
        elif not self.quiet:
            self.told = time.monotonic()
            note(description)
