"""What `record` does, and `compare` with a command: a recording is made and becomes a trace.

`record` ends with the status of its command, as `env` or `timeout` would. A status of its own it has only where the command's is 0: 3 for a
trace that is not whole. How the recording goes is shown on a terminal only. When the recording is there, the rights that it took go.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ..base.errors import UserError
from ..base.files import check_outputs, whole_file
from ..base.privileges import FILES_AND_SYMBOLS, keep_only
from ..base.terminal import note
from .verbs import report_trace
from .words import MOST_BUFFERS

if TYPE_CHECKING:
    from ..capture.record import Plan, Recording

TERMINAL_CLEAR = "\r\x1b[K"


def record_command(options: argparse.Namespace) -> int:
    from ..capture.record import Plan, check, check_machine

    check_outputs((options.output,))
    if options.command is not None or options.duration is None:
        check(options.command or [])
    else:
        check_machine()
    plan = Plan(options.command or (), options.duration, options.stacks, options.cgroup or "", buffers=options.buffers)
    command, trace = record_to(plan, options.output)
    return command or trace


def record_for_compare(command: list[str], output: Path) -> None:
    """Records a command, whose output must not mix with the comparison. KeyboardInterrupt where Ctrl-C has ended it."""
    from ..capture.record import Plan

    record_to(Plan(command, stdout=sys.stderr.fileno()), output, goes_on=True)


def record_to(plan: Plan, output: Path, goes_on: bool = False) -> tuple[int, int]:
    """Carries out a plan into a trace; the command's status, and that of the trace. `goes_on`: a signal is not the end of it for us."""
    from ..capture.importer import import_recording
    from ..capture.record import record

    if sys.stderr is not None and sys.stderr.isatty():
        plan.progress = _show
    with whole_file(output) as part, record(plan, part) as recording:
        if sys.stderr is not None and sys.stderr.isatty():
            sys.stderr.write(TERMINAL_CLEAR)
        if recording.interrupted:
            note("stopped; what was recorded is kept")
        keep_only(FILES_AND_SYMBOLS)
        try:
            metadata = import_recording(recording, part)
        except Exception:
            if not goes_on and (output.is_file() or not output.exists()):
                _keep(recording, output)
            raise
    if recording.status:
        note(f"{plan.command[0]} exited with status {recording.status}")
    trace = report_trace(output, metadata)
    if metadata.lost:
        note(sufficing(metadata.lost, sum(metadata.events.values()), recording))
    if output.is_file():
        _check_sums(output)
    if goes_on and recording.interrupted:
        raise KeyboardInterrupt
    return recording.status, trace


def _keep(recording: Recording, output: Path) -> None:
    """Leaves perf's file beside an output that it could not be made a trace of: what was recorded does not come again."""
    kept = output.with_name(f"{output.stem}-{recording.started:.0f}.perf.data")
    with contextlib.suppress(OSError):
        recording.data.rename(kept)
        note(f"what was recorded is kept; slabyard import {shlex.quote(str(kept))} -o T.parquet makes a trace of it")


def sufficing(lost: int, kept: int, recording: Recording) -> str:
    """What would have kept the events that were lost, in one line: buffers for them too, if one CPU has had them all."""
    cpus = os.cpu_count() or 1
    ring = recording.buffers // cpus
    needed = ring + lost * recording.written // max(1, kept)
    enough = 1 << max(0, needed - 1).bit_length()
    rate = (kept + lost) / max(recording.seconds, 1e-3)
    told = f"{lost:,} of {kept + lost:,} events were lost, at {rate:,.0f} a second, as buffers of {ring >> 20:,} MiB for each CPU were full"
    if enough > MOST_BUFFERS:
        return f"{told}; none that perf takes would have held them: record less, with --duration or --cgroup"
    return f"{told}; --buffers {enough >> 20}M would have held them, which takes {enough * cpus >> 20:,} MiB of memory"


def _check_sums(output: Path) -> None:
    """Says so where the trace's pages and the kernel's own count of them differ by more than the recorder should make."""
    from ..trace.file import Trace
    from ..trace.info import is_off, largest_unseen, slab_sums

    with Trace(output) as trace:
        sums = slab_sums(trace)
    if sums and is_off(sums["start_kib"], sums["end_kib"], sums["recorded_end_kib"]):
        told = f"{sums['end_kib']:,} KiB of slabs at the end by meminfo, {sums['recorded_end_kib']:,} by the trace"
        unseen = largest_unseen(sums["unseen_kib"])
        note(f"{told}; {unseen or 'pages came or went without an event'}: of perf, or of a process whose events the kernel keeps back")


def _show(seconds: float, written: int, buffers: int) -> None:
    """One line, behind which the cursor returns to its beginning, so that what the command prints begins there."""
    size = f"{written / 1e6:,.1f} MB written, at most {buffers / 1e6:,.0f} MB in buffers"
    sys.stderr.write(f"\x1b[Krecording: {seconds:,.0f} s, {size}; Ctrl-C ends it\r")
    sys.stderr.flush()


def check_import(output: Path, capture: Path, force: bool) -> None:
    """UserError where an import would overwrite a file that is no earlier import of the same capture."""
    if force or not output.exists() or not output.is_file():
        return
    from ..trace.file import Trace

    try:
        with Trace(output) as trace:
            made = trace.metadata.capture
    except UserError:
        made = ""
    if made != capture.name:
        raise UserError(f"{output}: is there, and was not made of {capture.name}; name another file, or overwrite it with --force")
