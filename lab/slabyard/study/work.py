"""What an experiment may use while it runs: how much work to do, and a place where each finished part of it is kept.

A full study may take a night. An experiment is made of parts (one boot, one replay), each under a name, and a part that is done is
written to the item's file before the next begins. Whoever ends the study and starts it again finds these parts done.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from ..base.errors import UserError
from ..base.files import to_json, write_text
from ..base.terminal import Progress

REPETITIONS = 5  # as in the papers
QUICK_REPETITIONS = 3

Part = TypeVar("Part")


class Work:
    """Of one item. `quick`: less work in each run, and fewer repetitions. `kept`: the file of its finished parts; None: none is kept."""

    def __init__(self, quick: bool, progress: Progress, kept: Path | None = None) -> None:
        self.quick, self.progress, self.kept = quick, progress, kept
        self.parts: dict[str, Any] = {}
        if kept is not None and kept.exists():
            try:
                self.parts = json.loads(kept.read_text("utf-8"))
            except (OSError, ValueError) as error:
                raise UserError(f"{kept}: cannot be read ({error}); remove it, and that item begins anew") from None

    @property
    def repetitions(self) -> int:
        return QUICK_REPETITIONS if self.quick else REPETITIONS

    def once(self, name: str, part: Callable[[], Part]) -> Part:
        """What `part` gives, plain data, which was kept if it is done already."""
        if name not in self.parts:
            self.progress.step(name, 0)
            self.parts[name] = part()
            if self.kept is not None:
                write_text(self.kept, to_json(self.parts))
        done: Part = self.parts[name]
        return done

    def finish(self) -> None:
        """The item's record is written; its parts are no longer needed."""
        if self.kept is not None:
            self.kept.unlink(missing_ok=True)
