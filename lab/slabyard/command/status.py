"""The exit status that a trace gives to a verb which has done all else."""

from __future__ import annotations

from collections.abc import Mapping

from ..base.errors import DONE, INCOMPLETE
from ..base.terminal import note


def completeness(incomplete: Mapping[str, str | None]) -> int:
    """INCOMPLETE, and a note for each of these traces that lacks something; the values are why, None: it is whole."""
    status = DONE
    for name, reason in incomplete.items():
        if reason:
            note(f"{name} is incomplete: {reason}")
            status = INCOMPLETE
    return status
