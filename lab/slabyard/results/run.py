"""Runs a command on slabyard's malloc, and tells what it asked for.

The library is preloaded (LD_PRELOAD), and told its policy (SLABYARD) and by further variables what to check. Without statistics the
command takes the place of this process: its exit status, and whatever signal ends it, are seen as if slabyard had not been there.
With them it is a child. Signals that end programs are passed on to it; when it has ended, each of its processes that ended by exit()
has left a line of JSON in a temporary file (SLABYARD_STATS; malloc/report.c); then this process ends as the child did.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from ..base import programs
from ..base.errors import MISSING, UserError
from ..base.files import export_json
from ..base.table import Table, render, show
from ..base.terminal import note

LIBRARY = Path(__file__).parent.parent / "lib" / "libslabyard-malloc.so"
MOST_PROCESSES = 20  # shown; all are counted
PASSED_ON = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
OF_THE_TERMINAL = (signal.SIGINT, signal.SIGQUIT)  # go to the child as well, without our doing

NONE: Mapping[str, str] = {}  # settings

Report = dict[str, Any]


def library() -> Path:
    """The malloc to preload. UserError when it is not there, or can't be named in LD_PRELOAD."""
    if not LIBRARY.is_file():
        raise UserError("libslabyard-malloc.so is missing; install slabyard again (pip install .), which builds it", MISSING)
    if any(separator in str(LIBRARY) for separator in ": "):
        raise UserError(f"{LIBRARY} can't be preloaded, as its path has a blank or a colon; install slabyard elsewhere")
    return LIBRARY


_OPTIONS = {"SLABYARD_DEBUG": "--check={}: ", "SLABYARD_SAMPLE": "--sample={}: "}  # that set them


def environment(spec: str, settings: Mapping[str, str] = NONE) -> dict[str, str]:
    """Ours, with the malloc in front of whatever else is preloaded, and its settings (malloc/settings.c). UserError when one of them
    makes no sense."""
    if not spec:
        raise UserError("--allocator names no allocator; slabyard list shows them")
    preload = [str(library()), *os.environ.get("LD_PRELOAD", "").replace(":", " ").split()]
    wanted = {"SLABYARD": spec, **settings}
    result = {**os.environ, "LD_PRELOAD": ":".join(preload), **wanted}
    result.pop("SLABYARD_STATS", None)
    tried = subprocess.run([programs.program(programs.REPLAY), "--list"], env=result, capture_output=True, check=False)
    if tried.returncode != 0:
        told = tried.stderr.decode(errors="replace").strip().removeprefix("slabyard: ")
        for name, value in wanted.items():
            if told.startswith(f"{name}={value}: "):
                told = _OPTIONS.get(name, "").format(value) + told.removeprefix(f"{name}={value}: ")
        raise UserError(told or f"the malloc could not be loaded (status {tried.returncode})")
    return result


def replace(command: Sequence[str], spec: str, settings: Mapping[str, str] = NONE) -> NoReturn:
    """The command in our place."""
    variables = environment(spec, settings)
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    for number in (*PASSED_ON, *OF_THE_TERMINAL, signal.SIGPIPE):
        if signal.getsignal(number) != signal.SIG_IGN or number == signal.SIGPIPE:
            signal.signal(number, signal.SIG_DFL)
    try:
        os.execvpe(command[0], list(command), variables)
    except OSError as error:
        raise programs.cannot_be_run(command[0], error) from error


def measure(command: Sequence[str], spec: str, export: Path | None, settings: Mapping[str, str] = NONE) -> int:
    """The command as a child; its statistics on standard error. Its exit status, or minus the signal that ended it."""
    with tempfile.TemporaryDirectory(prefix="slabyard-") as directory:
        lines = Path(directory) / "reports"
        variables = {**environment(spec, settings), "SLABYARD_STATS": str(lines)}
        status = _wait(command, variables)
        reports = _whole_reports(lines.read_text(encoding="utf-8", errors="replace")) if lines.exists() else []
    export_json(export, reports)
    print(render([_processes(reports), _sizes(reports)], "text") if reports else _nothing(command), file=sys.stderr, end="")
    return status


def _whole_reports(text: str) -> list[Report]:
    """The reports, one a line. A full disk cuts some of them off."""
    reports, lines = [], text.removesuffix("\n").split("\n")  # names may have other ends of lines
    for line in lines:
        with contextlib.suppress(json.JSONDecodeError):
            reports.append(json.loads(line))
    if len(reports) < len(lines):
        cut = f"{len(lines) - len(reports)} of {len(lines)} reports are cut off"
        note(f"{cut}, for lack of room in {tempfile.gettempdir()}; have TMPDIR name another folder")
    return reports


def end_as(status: int) -> int:
    """Ends this process by the signal that ended the child, if one did; else the status."""
    if status >= 0:
        return status
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))  # the child has left its own
    with contextlib.suppress(OSError):  # SIGKILL has no handler
        signal.signal(-status, signal.SIG_DFL)
    os.kill(os.getpid(), -status)
    return 128 - status


def _wait(command: Sequence[str], variables: dict[str, str]) -> int:
    before = {number: signal.signal(number, signal.SIG_IGN) for number in OF_THE_TERMINAL}
    try:
        with programs.child(command, env=variables, preexec_fn=lambda: _restore(before)) as process:
            for number in PASSED_ON:
                before[number] = signal.signal(number, lambda number, _frame: process.send_signal(number))
            return process.wait()
    except OSError as error:
        raise programs.cannot_be_run(command[0], error) from error
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _restore(handlers: dict[signal.Signals, Any]) -> None:
    """In the child: signals that were not ignored end it as they would have."""
    for number in (*OF_THE_TERMINAL, *PASSED_ON):
        if handlers.get(number, signal.getsignal(number)) != signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


def _nothing(command: Sequence[str]) -> str:
    return (
        f"slabyard: nothing is known of {command[0]}: a program reports if it asks for memory and ends by exit(), not by "
        "_exit() or a signal, and only if it is linked dynamically and not set-user-ID\n"
    )


def _total(report: Report, what: str) -> int:
    return sum(int(item[what]) for item in report["classes"])


def _processes(reports: Sequence[Report]) -> Table:
    """What the busiest processes asked malloc for, a row each."""
    columns = ["process", "allocations", "live at exit", "live peak KiB", "slab KiB", "run KiB", "mapped KiB", "resident peak KiB"]
    busiest = sorted(reports, key=lambda report: _total(report, "allocations"), reverse=True)[:MOST_PROCESSES]
    rows: list[list[Any]] = []
    for report in busiest:
        page = int(report["page_bytes"])
        allocations = _total(report, "allocations")
        name, pages = Path(report["program"]).name, [report["slab_pages"] * page, report["run_pages"] * page]
        sizes = [report["live_bytes_peak"], *pages, report["mapped_bytes"], report["resident_peak_bytes"]]
        live = allocations - _total(report, "frees")
        rows.append([f"{name} ({report['pid']})", allocations, live, *(size // 1024 for size in sizes)])
    notes = [] if len(reports) <= MOST_PROCESSES else [f"{len(reports) - MOST_PROCESSES:,} processes with fewer allocations are not shown."]
    return Table(f"malloc by {reports[0]['allocator']}", columns, rows, notes=notes)


def _sizes(reports: Sequence[Report]) -> Table:
    """The objects of all processes by size class."""
    allocations: Counter[int] = Counter()
    frees: Counter[int] = Counter()
    slabs: Counter[int] = Counter()
    for report in reports:
        for item in report["classes"]:
            allocations[item["bytes"]] += item["allocations"]
            frees[item["bytes"]] += item["frees"]
        for cache in report["caches"]:
            slabs[cache["bytes"]] += cache["slabs"]
    sizes = sorted(allocations)
    rows: list[list[Any]] = [[size, allocations[size], allocations[size] - frees[size], slabs[size] or None] for size in sizes]
    title = "objects by size" if len(reports) == 1 else f"objects by size, of {show(len(reports))} processes"
    return Table(title, ["up to bytes", "allocations", "live at exit", "slabs at exit"], rows)
