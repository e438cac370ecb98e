"""What `top` does: it reads the caches of the kernel or of a process again and again, until Ctrl-C or as often as asked.

On a terminal each reading replaces the one before; elsewhere they follow each other, and JSON is one object a line. Ctrl-C is how top
ends, so its status is 0.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import shutil
import sys
import time
from typing import TYPE_CHECKING

from ..base.errors import DONE, UserError
from ..base.table import render

if TYPE_CHECKING:
    from ..live.sites import Sampler
    from ..live.top import Reading

CLEAR = "\x1b[H\x1b[J"
BESIDE_ROWS = 12  # lines of a screen that are none of a table's rows, where there are two tables


def show_top(options: argparse.Namespace) -> int:
    from ..live import top
    from ..live.sites import Sampler

    if options.process and options.call_sites:
        raise UserError("--call-sites is about the kernel; who allocates in a process, slabyard inspect PID --log tells")
    on_screen = options.format == "text" and sys.stdout.isatty() and options.count != 1
    with contextlib.ExitStack() as stack:
        sampler = stack.enter_context(Sampler()) if options.call_sites else None
        first = before = _read(sampler, options.process)
        with contextlib.suppress(KeyboardInterrupt):
            for _ in range(options.count or sys.maxsize):
                time.sleep(options.interval)
                now = _read(sampler, options.process)
                found = top.describe(first, before, now, options.sort)
                if options.format == "json":
                    sys.stdout.write(json.dumps(found) + "\n")
                else:
                    text = render(top.tables(found, options.lines or _rows(on_screen)), "text")
                    sys.stdout.write(CLEAR + text if on_screen else text + "\n")
                sys.stdout.flush()
                before = now
    return DONE


def _read(sampler: Sampler | None, process: int | None) -> Reading:
    from ..live import sites, top

    if process:
        return top.read_process(time.monotonic(), process)
    reading = top.read(time.monotonic())
    reading.live = sites.read_allocinfo()
    if sampler and reading.live is None:
        reading.sampled = sampler.sample()
    return reading


def _rows(on_screen: bool) -> int:
    """Rows of each table: half of what a screen has room for."""
    return max(5, (shutil.get_terminal_size().lines - BESIDE_ROWS) // 2) if on_screen else 20
