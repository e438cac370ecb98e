"""Sysbench in a guest: its command, and what it says of its own run: not the time of its process, which also starts threads.

sysbench 1.0 prints, under both tests that the papers use, the time of the run stage and how much it moved:

    1024.00 MiB transferred (5666.47 MiB/sec)           memory
    read, MiB/s:   12.30   written, MiB/s:   8.20       fileio, on two lines
    total time:    27.1056s
    total number of events:   10000
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..base.errors import UserError

FILES = 128  # as in both papers


def fileio(test: str, threads: int, megabytes: int, requests: int, stage: str) -> str:
    """The command of a stage of the file test: so many requests of 16 KiB to files of that size in all, the same ones each time."""
    return (
        f"sysbench fileio --rand-seed=1 --file-num={FILES} --file-total-size={megabytes}M --file-block-size=16K --file-test-mode={test} "
        f"--threads={threads} --events={requests} --time=0 {stage}"
    )


_TIME = re.compile(r"total time:\s+([\d.]+)s")
_EVENTS = re.compile(r"total number of events:\s+(\d+)")
_MEMORY = re.compile(r"MiB transferred \(([\d.]+) MiB/sec\)")
_FILES = re.compile(r"(?:read|written), MiB/s:\s+([\d.]+)")


@dataclass(frozen=True)
class Stage:
    """The run stage: seconds, MiB a second, and events (requests; of memory, blocks)."""

    seconds: float
    bandwidth: float
    events: int


def stage(output: str) -> Stage:
    """Out of what sysbench has printed; of several runs the last. UserError where there is none."""
    times, events = _TIME.findall(output), _EVENTS.findall(output)
    if not times or not events:
        raise UserError("sysbench says nothing of a run stage")
    last = output[output.rfind("sysbench ") :] if output.count("total time:") > 1 else output
    memory = _MEMORY.findall(last)
    moved = float(memory[-1]) if memory else sum(float(rate) for rate in _FILES.findall(last))
    return Stage(float(times[-1]), moved, int(events[-1]))
