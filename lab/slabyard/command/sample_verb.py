"""`sample`: switches the sampling of a running process on and off."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from ..base.errors import DONE
from .words import add_verb, count

USUAL_RATE = 100_000
MOST_RATE = 10**9 - 1
MOST_PID = (1 << 22) - 1


def add(parent: Any) -> None:
    """The verb sample."""
    verb = add_verb(
        parent, "sample", "watch one in N of a running process's allocations on guard pages", set_rate,
        "slabyard sample 4711\n  slabyard sample --rate 1000 4711\n  slabyard sample --off 4711",
        "The process must use slabyard's malloc. A bug that meets a sampled object ends it with a report (docs/debugging.md). Needs "
        "the right to debug it (its user, or root).",
    )  # fmt: skip
    verb.add_argument("pid", type=count(MOST_PID), metavar="PID", help="the process")
    rates = verb.add_mutually_exclusive_group()
    rates.add_argument("--rate", type=count(MOST_RATE), default=USUAL_RATE, metavar="N", help="one in N (default: 100,000)")
    rates.add_argument("--off", action="store_true", help="sample no more; objects already sampled stay watched")


def set_rate(options: argparse.Namespace) -> int:
    from ..live import sample

    rate = 0 if options.off else options.rate
    before = sample.set_rate(options.pid, rate)
    sys.stdout.write(f"process {options.pid}: {_describe(rate)}; before: {_describe(before)}\n")
    return DONE


def _describe(rate: int) -> str:
    return f"one allocation in {rate:,}" if rate else "no allocation"
