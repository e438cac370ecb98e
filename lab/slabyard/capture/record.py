"""Records every kernel allocation while a command runs, by driving perf.

perf is started first, with its events disabled: it maps its ring buffers (one for each CPU, tens of MiB) before anything counts. Then

    snapshot "start"  ->  enable  ->  the command runs  ->  disable  ->  snapshot "end"  ->  perf writes its file and ends

so that the snapshots stand next to the first and the last event, and perf's buffers are in neither. perf is told so over its
control descriptors (`--control fd:`, since Linux 5.10), and acknowledges each step. What perf does while the command runs is in
the trace like everything else on the machine: it writes its file, which takes page cache. The command is our own
child, so its exit status is known exactly.

perf.data lies in a temporary folder beside the output, since it is large, and is removed whatever happens.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..base import programs
from ..base.errors import MISSING, UserError
from ..base.files import describe_os_error
from ..trace import snapshots
from ..trace.file import KINDS, SNAPSHOT

EVENTS = KINDS[:SNAPSHOT]
OLDER_EVENTS = ("kmalloc_node", "kmem_cache_alloc_node")  # up to Linux 6.0
TRACEFS = (Path("/sys/kernel/tracing"), Path("/sys/kernel/debug/tracing"))
CAP_SYS_ADMIN, CAP_PERFMON = 21, 38
PATIENCE = 30  # seconds that perf may take to start, and for each acknowledgement
LARGEST_RING = 128 << 20  # bytes for each CPU
SMALLEST_RING = 512 << 10


@dataclass
class Recording:
    """What was recorded: perf's file, the two snapshots, the command's exit status."""

    data: Path
    snapshots: list[dict[str, Any]]
    status: int
    started: float  # seconds since the epoch


def check(command: Sequence[str]) -> tuple[str, list[str]]:
    """perf's path and the events to record. UserError when the command, a privilege, perf or the events are missing."""
    if not command:
        raise UserError("no command to record; give it after --, as in: slabyard record -o t.parquet -- make")
    programs.check_command(command[0])
    if not _privileged():
        raise UserError("recording needs root, or CAP_PERFMON and a readable tracefs; run it with sudo", MISSING)
    perf = shutil.which("perf")
    if perf is None:
        raise UserError("perf is missing; install it (Debian: apt install linux-perf, Ubuntu: linux-tools-generic, Fedora: perf)", MISSING)
    return perf, events()


def _privileged() -> bool:
    if os.geteuid() == 0:
        return True
    status = Path("/proc/self/status").read_text()
    effective = next((int(line.split()[1], 16) for line in status.splitlines() if line.startswith("CapEff:")), 0)
    if effective >> CAP_SYS_ADMIN & 1 or effective >> CAP_PERFMON & 1:
        return True
    try:
        return int(Path("/proc/sys/kernel/perf_event_paranoid").read_text()) < 0
    except (OSError, ValueError):
        return False


def events(mounts: Sequence[Path] = TRACEFS) -> list[str]:
    """The kernel's kmem events that a trace is made of. UserError when tracefs is not mounted or lacks them."""
    mounted = next((mount for mount in mounts if (mount / "events").is_dir()), None)
    if mounted is None:
        raise UserError(f"tracefs is not mounted; mount it with: mount -t tracefs tracefs {mounts[0]}", MISSING)
    folder = mounted / "events" / "kmem"
    missing = [name for name in EVENTS if not (folder / name).is_dir()]
    if missing:
        raise UserError(f"this kernel has no event kmem:{missing[0]}; it needs CONFIG_TRACING and CONFIG_PERF_EVENTS", MISSING)
    return [name for name in (*EVENTS, *OLDER_EVENTS) if (folder / name).is_dir()]


@contextlib.contextmanager
def record(command: Sequence[str], beside: Path, stdout: int | None = None) -> Iterator[Recording]:
    """Runs `command` under perf. perf's file lives as long as the context, in a temporary folder in the folder of `beside`."""
    perf, names = check(command)
    try:
        folder = Path(tempfile.mkdtemp(prefix=".slabyard-", dir=beside.parent))
    except OSError as error:
        raise UserError(describe_os_error(error, beside)) from error
    try:
        data = folder / "perf.data"
        with contextlib.ExitStack() as stack:
            session = _start(perf, names, data, stack)
            started = time.time()
            taken = [snapshots.take("start")]
            session.tell("enable")
            status = _run(command, stdout, session)
            session.tell("disable")
            taken.append(snapshots.take("end"))
            session.stop()
        yield Recording(data, taken, status, started)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


_NO_SPACE = "No space left"


class _Session:
    """A perf that obeys our control descriptors."""

    def __init__(self, process: subprocess.Popen[bytes], control: int, answers: int, messages: int, folder: Path) -> None:
        self.process, self.control, self.answers = process, control, answers
        self._messages, self._folder = messages, folder

    def tell(self, word: str) -> None:
        """Sends a command and waits for perf's acknowledgement. UserError when perf has ended."""
        with contextlib.suppress(BrokenPipeError):
            os.write(self.control, word.encode() + b"\n")
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            if select.select([self.answers], [], [], 0.1)[0] and b"ack" in os.read(self.answers, 64):
                return
            if self.process.poll() is not None:
                raise self.failure("perf record failed")
        raise UserError(f"perf record does not answer; it was told to {word}", MISSING)

    def stop(self) -> None:
        """Has perf write the rest of its file and end."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        self.process.wait()
        if _NO_SPACE in self.said() or self.process.returncode not in (0, -signal.SIGINT):
            raise self.failure("perf record failed")

    def said(self) -> str:
        """All that perf has printed so far."""
        return os.pread(self._messages, os.fstat(self._messages).st_size, 0).decode(errors="replace")

    def failure(self, what: str) -> UserError:
        """What to tell of a perf that has failed: its own words, on one line."""
        text = self.said()
        if self.process.returncode == -signal.SIGXFSZ:
            return UserError("perf's recording is larger than a file may be here; raise the limit (ulimit -f)")
        if _NO_SPACE in text or (not text and os.statvfs(self._folder).f_bavail == 0):  # of its header perf says nothing
            return UserError("no space left on the disk for perf's recording; free some, or write the trace to another disk")
        lines = [line.strip() for line in text.splitlines()]
        said = [line for line in lines if line and not line.startswith(("[", "Error:", "Usage:"))]
        return UserError(f"{what}: {said[0] if said else f'it ended with status {self.process.returncode}'}", MISSING)


def _start(perf: str, names: Sequence[str], data: Path, stack: contextlib.ExitStack) -> _Session:
    """perf, ready and disabled, with ring buffers as large as the kernel grants."""
    ring = _ring_bytes()
    while True:
        session = _launch(perf, names, data, ring, stack)
        try:
            session.tell("disable")  # events are disabled already; the answer shows that perf has mapped its buffers
            return session
        except UserError:
            refused = session.process.poll() is not None and "mmap" in session.said().lower()
            if "unknown option `control" in session.said():
                raise UserError("perf is too old; recording needs perf of Linux 5.10 or newer", MISSING) from None
            if not refused or ring <= SMALLEST_RING:
                raise
            ring //= 2


def _launch(perf: str, names: Sequence[str], data: Path, ring: int, stack: contextlib.ExitStack) -> _Session:
    read_control, write_control = os.pipe()
    read_answers, write_answers = os.pipe()
    messages = os.memfd_create("perf's messages")  # the disk may be full
    stack.callback(os.close, messages)
    argv = [
        perf, "record", "--all-cpus", "--delay=-1", f"--control=fd:{read_control},{write_answers}", f"--mmap-pages={ring >> 10}K",
        "--count=1", "--no-buildid", "--no-buildid-cache", "--clockid=CLOCK_MONOTONIC", "--output", str(data),
        *(word for name in names for word in ("--event", f"kmem:{name}")),
    ]  # fmt: skip
    try:
        process = stack.enter_context(
            programs.child(
                argv, stdin=subprocess.DEVNULL, stdout=messages, stderr=messages, pass_fds=(read_control, write_answers),
                start_new_session=True,
            )
        )  # fmt: skip
    finally:
        os.close(read_control)
        os.close(write_answers)
    stack.callback(os.close, write_control)
    stack.callback(os.close, read_answers)
    return _Session(process, write_control, read_answers, messages, data.parent)


def _ring_bytes() -> int:
    """A power of two for each CPU, at most a sixteenth of the free memory in all."""
    available = snapshots.parse_meminfo(Path("/proc/meminfo").read_text()).get("MemAvailable", 1 << 20) << 10
    share = max(SMALLEST_RING, min(LARGEST_RING, available // 16 // (os.cpu_count() or 1)))
    return 1 << (share.bit_length() - 1)


def _run(command: Sequence[str], stdout: int | None, session: _Session) -> int:
    """Runs the command to its end; its exit status, 128 plus the signal where one ended it."""
    try:
        with programs.child(command, stdout=stdout) as process:
            while True:
                try:
                    status = process.wait(timeout=1)
                    break
                except subprocess.TimeoutExpired:
                    if session.process.poll() is not None:
                        session.stop()
                        raise session.failure("perf record ended before the command") from None
    except OSError as error:
        raise programs.cannot_be_run(command[0], error) from error
    return status if status >= 0 else 128 - status
