"""Makes a trace of a capture: perf.data, trace-cmd's file, or the text of perf, tracefs, trace-cmd, Perfetto or LTTng.

The work is done by the C program slabyard-import (import/import.h says how); this module starts it, feeds it, and turns
what it writes into Parquet. Everything streams: no step holds more than a block of rows, so a capture may be larger than
memory. inputs.py opens what is read, writer.py makes the trace.

    perf.data    perf script, or -------+
    text.xz      decompressor ----------+--> slabyard-import --> blocks of columns --> row groups --> T.parquet
    text         -----------------------+

The trace is written under a temporary name and renamed when it is whole. Whatever ends the import ends its children.
"""

from __future__ import annotations

import contextlib
import datetime
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..base.errors import UserError
from ..base.files import describe_os_error, read_text_if_there, whole_file
from ..base.programs import child, program
from ..trace import snapshots as kernel
from ..trace.file import Metadata
from .inputs import About, enlarge_pipe, open_inputs
from .record import Recording
from .writer import CutOff, Reader, write

PROGRAM = "slabyard-import"
_EMPTY = {
    "trace-cmd": "damaged, or not by trace-cmd: trace-cmd report prints nothing of it",
    "perf.data": "perf recorded no event (not while something ran, or with options that leave out all that the kernel does)",
}
MISSING_FRAMES = 0.01  # share of the frames of slabs that may be missing; the kernel makes some while it is asked
PAGE_SIZES = tuple(4096 << more for more in range(5))  # as main.c knows them


def import_trace(
    source: Path | str | Sequence[Path | str],
    output: Path,
    snapshots: Sequence[dict[str, Any]] = (),
    cpus: int | None = None,
    page_size: int | None = None,
) -> Metadata:
    """Imports a capture into `output`: a path, `-` for standard input, or the paths of its parts (`perf record --switch-output`).

    snapshots: {"name", "files", "slab_attributes"} each, see read_snapshot(). `end` is the end of the trace; any other name must
    stand in a tracing_mark_write of the capture. cpus, page_size (bytes): of the recorded machine, where the capture does not tell.
    Raises UserError: 2 for input that is no capture, 4 for a missing perf or trace-cmd. Look at the result's `incomplete`.
    """
    first = source if isinstance(source, (Path, str)) else source[0]
    about = About(capture=Path(first).name, cpus=cpus, page_size=page_size or page_size_of(snapshots), snapshots=list(snapshots))
    return import_described(source, output, about)


def import_recording(recording: Recording, output: Path) -> Metadata:
    """Imports what record.record() made, from its first snapshot to its second one. Writes to `output` directly."""
    machine = os.uname()
    about = About(
        kernel=machine.release,
        arch=machine.machine,
        command=list(recording.plan.command) or None,
        recorded_at=datetime.datetime.fromtimestamp(recording.started, datetime.UTC).isoformat(timespec="seconds"),
        cpus=present_cpus(),
        page_size=os.sysconf("SC_PAGE_SIZE"),
        window=(recording.start.time, recording.end.time),
        cgroup=recording.plan.cgroup,
        slab_frames=recording.slab_frames,
        slab_shapes=slab_shapes(recording),
        snapshots=[recording.start.as_snapshot(), recording.end.as_snapshot()],
    )
    marks = ["--first-mark", recording.start.name, "--last-mark", recording.end.name]
    return _import([str(recording.data)], output, about, marks)


def slab_shapes(recording: Recording) -> str:
    """What the slabs of each cache are made of, in the form of slabyard-import; empty where page frames of slabs are missing, or slabs are
    others' than those recorded. A slab that is missing would count as one that came unseen."""
    lines = kernel.parse_slabinfo(recording.start.files.get("slabinfo", ""))
    pages = sum(line.slabs * line.pages_per_slab for line in lines)
    if recording.plan.cgroup or recording.slab_frames is None or pages - len(recording.slab_frames) > pages * MISSING_FRAMES:
        return ""
    attributes = recording.start.attributes or {}
    return "".join(
        f"{attributes.get(line.name, {}).get('object_size', line.object_size)} {line.object_size} {line.objects_per_slab} "
        f"{line.pages_per_slab.bit_length() - 1} {line.name}\n"
        for line in lines
    )


def import_described(source: Path | str | Sequence[Path | str], output: Path, about: About) -> Metadata:
    """Imports a capture of which more is known than it tells. A snapshot of `about` that is named `end` is the end of the trace."""
    names = [one["name"] for one in about.snapshots]
    marks = [*(["--last-mark", "end"] if "end" in names else []), *(word for name in names for word in ("--mark", name))]
    with whole_file(output) as part:
        return _import([str(source)] if isinstance(source, (Path, str)) else [str(one) for one in source], part, about, marks)


def read_snapshot(text: str) -> dict[str, Any]:
    """`NAME=DIR:SUFFIX` as a snapshot: the files DIR/slabinfo.SUFFIX and its siblings. Raises UserError when there is none."""
    name, equals, place = text.partition("=")
    folder, colon, suffix = place.rpartition(":")
    if not (name and equals and colon and folder and suffix):
        raise UserError(f"--snapshot {text}: not of the form NAME=DIR:SUFFIX, as in end=run1:after for run1/slabinfo.after")
    if not Path(folder).is_dir():
        raise UserError(f"--snapshot {text}: there is no folder {folder}")
    files = {}
    for file in kernel.PROC_FILES:
        path = Path(folder) / f"{file}.{suffix}"
        try:
            files[file] = path.read_text(errors="replace")
        except FileNotFoundError:
            continue
        except OSError as error:
            raise UserError(describe_os_error(error, path)) from error
    if not files:
        raise UserError(f"--snapshot {text}: {folder} has none of {', '.join(f'{file}.{suffix}' for file in kernel.PROC_FILES)}")
    return {"name": name, "files": files, "slab_attributes": None}


def page_size_of(snapshots: Sequence[dict[str, Any]]) -> int | None:
    """Bytes of a page: meminfo counts the machine's memory in kB, and zoneinfo in pages. None where they are not both there."""
    for one in snapshots:
        pages = sum(zone.managed for zone in kernel.parse_zoneinfo(one["files"].get("zoneinfo", "")))
        total = kernel.parse_meminfo(one["files"].get("meminfo", "")).get("MemTotal")
        if pages and total:
            return min(PAGE_SIZES, key=lambda size: abs(size * pages - total * 1024))
    return None


def present_cpus() -> int:
    """CPUs that this machine has present, as the kernel counts them for slab orders."""
    text = read_text_if_there(Path("/sys/devices/system/cpu/present"))
    if text is None:
        return os.cpu_count() or 1
    spans = [part.split("-") for part in text.strip().split(",")]
    return sum(int(span[-1]) - int(span[0]) + 1 for span in spans)


def _import(sources: Sequence[str], output: Path, about: About, marks: list[str]) -> Metadata:
    environment = dict(os.environ)
    # /tmp is memory on many machines; the folder of the result has room for the result at least.
    if not os.access(environment.get("TMPDIR", ""), os.W_OK):
        environment["TMPDIR"] = str(output.parent.absolute())
    with contextlib.ExitStack() as stack:
        inputs = open_inputs(sources, about, stack)
        size = ["--page-size", str(about.page_size)] if about.page_size else []
        known, passed = [], list(inputs.passed)
        frames = b"" if about.slab_frames is None else about.slab_frames.astype(np.uint64).tobytes()
        for option, content in (("--slab-frames", frames), ("--slab-shapes", about.slab_shapes.encode())):
            if content:
                file = stack.enter_context(tempfile.TemporaryFile())
                file.write(content)
                file.seek(0)
                passed.append(file.fileno())
                known += [option, str(file.fileno())]
        command = [program(PROGRAM), *inputs.options, *marks, *size, *known]
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        process = stack.enter_context(child(command, pass_fds=passed, env=environment, **streams))
        inputs.close()
        assert process.stdout is not None
        enlarge_pipe(process.stdout.fileno())
        try:
            return write(Reader(process.stdout), output, about, inputs.resolve)
        except CutOff:
            inputs.check()
            complaint = _complaint(process)
            if complaint == "the input is empty":
                complaint = _EMPTY.get(about.source, complaint)
            raise UserError(f"{', '.join(sources)}: {complaint}") from None
        finally:
            if sys.exc_info()[0] is None:
                inputs.check()


def _complaint(process: subprocess.Popen[bytes]) -> str:
    assert process.stderr is not None
    lines = process.stderr.read().decode(errors="replace").splitlines()
    process.wait()
    if process.returncode < 0:
        return f"{PROGRAM} was ended by signal {-process.returncode}"
    line = next((line for line in lines if line.startswith(f"{PROGRAM}: ")), f"{PROGRAM} failed with status {process.returncode}")
    return line.removeprefix(f"{PROGRAM}: ")
