"""Records every kernel allocation while a command runs, or for a while, by driving perf.

What is recorded is what the command does, so whatever the recorder needs for itself is there before or left out:

    attributes of caches -> perf, disabled -> launcher, waiting -> which frames are slabs -> enable -> the same again -> snapshot "start"
    -> the command -> snapshot "end" -> disable

Reading the attributes leaves objects that the kernel frees after a grace period, and the next steps give it the time. perf maps its
ring buffers (one for each CPU, tens of MiB) before anything counts. It is told what to do over its control descriptors (`--control
fd:`, since Linux 5.10), and acknowledges each step. Both snapshots are taken while the events are on (moments.py says how), and each
has its time of the trace's clock: the trace is what happened between the two, so that the pages of the first, with those taken and less
those given back since, are the pages of the second. Objects of this process and of perf are not recorded: a filter in the kernel leaves
them out. Pages are, all of them, as a slab that perf makes grow may hold the command's objects later. perf writes its file where a ring
is half full; a short recording is written when all is over.

The command is started by a process of its own (launcher.py), which lives until the second snapshot is taken. So its exit status is
known exactly, and neither its start by us nor its end is the recorder's.

Ctrl-C, SIGTERM and SIGHUP end the command and keep the recording. perf.data lies in a temporary folder beside the output, since it is
large, and is removed with it; where no trace could be made of it, it is moved out before (command/recording.py).
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..base import privileges, programs
from ..base.errors import MISSING, UserError
from ..base.files import describe_os_error
from ..trace import snapshots
from ..trace.file import KINDS, SNAPSHOT
from . import launcher, moments
from .evidence import OBJECT_EVENTS

EVENTS = KINDS[:SNAPSHOT]
OLDER_EVENTS = ("kmalloc_node", "kmem_cache_alloc_node")  # up to Linux 6.0
PATIENCE = 30  # seconds that perf may take to start, and for each acknowledgement
LARGEST_RING = 512 << 20  # bytes for each CPU; while it is not half full, perf writes no file, which would cost slabs
SMALLEST_RING = 512 << 10
GRACE = 10  # seconds that a command has to end when it is told to
OUR_TURN = 0.5  # seconds after a signal in which another one is the same
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass
class Plan:
    """What to record. Without a command: the machine as it is, for `duration` seconds or until Ctrl-C."""

    command: Sequence[str] = ()
    duration: float | None = None
    stacks: bool = False
    cgroup: str = ""  # whose tasks alone are recorded, as a path below the mount of control groups
    stdout: int | None = None  # of the command, where it is not ours
    buffers: int | None = None  # bytes of perf's buffer for each CPU; None: by what memory is free
    # Told about once a second: seconds, bytes that perf has written, bytes that its buffers hold at most.
    progress: Callable[[float, int, int], None] = lambda _seconds, _written, _buffers: None


@dataclass
class Recording:
    """What was recorded: perf's file, the two snapshots and their times, how the command ended."""

    data: Path
    plan: Plan
    start: moments.Moment
    end: moments.Moment
    status: int  # 128 plus the signal, where one ended the command; 0 where there was none, or its time was over
    interrupted: bool  # by Ctrl-C or a signal to us
    started: float  # seconds since the epoch
    slab_frames: np.ndarray | None = None  # uint64[n], that were slabs at the start; None: not known
    buffers: int = 0  # bytes of perf's buffers, in all
    written: int = 0  # bytes of its file

    @property
    def seconds(self) -> float:
        """From the first snapshot to the second."""
        return (self.end.time - self.start.time) / 1e9


def check(command: Sequence[str]) -> tuple[str, list[str]]:
    """perf's path and the events to record. UserError when the command, a privilege, perf or the events are missing."""
    if not command:
        raise UserError("no command to record; give it after --, as in: slabyard record -o t.parquet -- make")
    programs.check_command(command[0])
    return check_machine()


def check_machine() -> tuple[str, list[str]]:
    """As check, where there is no command."""
    if not _privileged():
        raise UserError("recording needs root, or CAP_PERFMON and a readable tracefs; run it with sudo", MISSING)
    perf = shutil.which("perf")
    if perf is None:
        raise UserError("perf is missing; install it (Debian: apt install linux-perf, Ubuntu: linux-tools-generic, Fedora: perf)", MISSING)
    return perf, events()


def _privileged() -> bool:
    """By capabilities alone: root has them, but not in most containers."""
    if privileges.has(privileges.CAP_SYS_ADMIN) or privileges.has(privileges.CAP_PERFMON):
        return True
    try:
        return int(Path("/proc/sys/kernel/perf_event_paranoid").read_text()) < 0
    except (OSError, ValueError):
        return False


def events(mounts: Sequence[Path] = privileges.TRACEFS) -> list[str]:
    """The kernel's kmem events that a trace is made of. UserError when tracefs is not mounted or lacks them."""
    folder = privileges.tracefs("events", mounts) / "kmem"
    missing = [name for name in EVENTS if not (folder / name).is_dir()]
    if missing:
        raise UserError(f"this kernel has no event kmem:{missing[0]}; it needs CONFIG_TRACING and CONFIG_PERF_EVENTS", MISSING)
    return [name for name in (*EVENTS, *OLDER_EVENTS) if (folder / name).is_dir()]


def cgroup_folder(name: str, mounts: str | None = None) -> tuple[str, Path]:
    """A control group as perf calls it, and its folder. `mounts`: the text of /proc/mounts. UserError where there is none."""
    places = [line.split() for line in (Path("/proc/mounts").read_text() if mounts is None else mounts).splitlines()]
    roots = [Path(words[1]) for words in places if words[2] == "cgroup" and "perf_event" in words[3].split(",")]
    roots += [Path(words[1]) for words in places if words[2] == "cgroup2"]
    if not roots:
        raise UserError("no control groups are mounted that perf knows (cgroup2, or cgroup's perf_event)", MISSING)
    path = Path(name)
    relative = path.relative_to(roots[0]) if path.is_relative_to(roots[0]) else Path(name.strip("/"))
    folder = roots[0] / relative
    if not name or not (folder / "cgroup.procs").exists():
        raise UserError(f"--cgroup {name}: there is no control group {folder}")
    return str(relative), folder


@contextlib.contextmanager
def record(plan: Plan, beside: Path) -> Iterator[Recording]:
    """Carries out a plan. perf's file lives as long as the context, in a temporary folder in the folder of `beside`."""
    perf, names = check(plan.command) if plan.command else check_machine()
    group = cgroup_folder(plan.cgroup) if plan.cgroup else None
    try:
        folder = Path(tempfile.mkdtemp(prefix=".slabyard-", dir=beside.parent))
    except OSError as error:
        raise UserError(describe_os_error(error, beside)) from error
    try:
        with contextlib.ExitStack() as stack:
            data = folder / "perf.data"
            attributes = moments.attributes()
            reader = moments.Moments(stack)
            session = _start(perf, _event_words(plan, names, group), data, plan.buffers, stack)
            command = _Command(plan, group, stack) if plan.command else None
            slab_frames = moments.slab_frames()
            reader.take("")  # pays for what this costs the first time after all the rest
            started = time.time()
            session.tell("enable")
            if slab_frames is not None:
                slab_frames = moments.slab_frames_again(slab_frames)
            start = reader.take("start")
            status, interrupted = _wait(plan, session, command)
            end = reader.take("end")
            session.tell("disable")
            session.stop()
            start.attributes, end.attributes = attributes, snapshots.take_slab_attributes(moments.CACHES)
        yield Recording(data, plan, start, end, status, interrupted, started, slab_frames, session.buffers, session.written())
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _event_words(plan: Plan, names: Sequence[str], group: tuple[str, Path] | None) -> list[str]:
    """perf's options for what is recorded."""
    words = []
    for name in names:
        words += ["--event", f"kmem:{name}"]
        if name in (*OBJECT_EVENTS, *OLDER_EVENTS):
            words += ["--filter", f"common_pid != {threading.get_native_id()}", "--exclude-perf"]
    if plan.stacks:
        words += ["--call-graph=fp", "--kernel-callchains"]
    return [*words, "--cgroup", group[0]] if group else words


# ---- perf ------------------------------------------------------------------------------------------------------------------


_NO_SPACE, _TOO_MANY = "No space left", "Too many events are opened"


class _Session:
    """A perf that obeys our control descriptors."""

    def __init__(self, process: subprocess.Popen[bytes], control: int, answers: int, messages: int, data: Path, buffers: int) -> None:
        self.process, self.control, self.answers, self.buffers = process, control, answers, buffers
        self._messages, self._data = messages, data

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

    def check(self) -> None:
        """UserError when perf has ended by itself."""
        if self.process.poll() is not None:
            self.stop()
            raise self.failure("perf record ended before the command")

    def stop(self) -> None:
        """Has perf write the rest of its file and end."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        self.process.wait()
        if _NO_SPACE in self.said() or self.process.returncode not in (0, -signal.SIGINT):
            raise self.failure("perf record failed")

    def written(self) -> int:
        """Bytes of perf's file so far."""
        try:
            return self._data.stat().st_size
        except OSError:
            return 0

    def said(self) -> str:
        """All that perf has printed so far."""
        return os.pread(self._messages, os.fstat(self._messages).st_size, 0).decode(errors="replace")

    def failure(self, what: str) -> UserError:
        """What to tell of a perf that has failed: its own words, on one line."""
        text = self.said()
        if self.process.returncode == -signal.SIGXFSZ:
            return UserError("perf's recording is larger than a file may be here; raise the limit (ulimit -f)")
        if _NO_SPACE in text or (not text and os.statvfs(self._data.parent).f_bavail == 0):  # of its header perf says nothing
            return UserError("no space left on the disk for perf's recording; free some, or write the trace to another disk")
        if _TOO_MANY in text:
            return UserError(describe_os_error(OSError(errno.EMFILE, ""), self._data))
        lines = [line.strip() for line in text.splitlines()]
        said = [line for line in lines if line and not line.startswith(("[", "Error:", "Usage:"))]
        return UserError(f"{what}: {said[0] if said else f'it ended with status {self.process.returncode}'}", MISSING)


def _start(perf: str, words: Sequence[str], data: Path, buffers: int | None, stack: contextlib.ExitStack) -> _Session:
    """perf, ready and disabled, with ring buffers as large as the kernel grants."""
    ring = _ring_bytes() if buffers is None else 1 << (buffers - 1).bit_length()
    while True:
        session = _launch(perf, words, data, ring, stack)
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


def _launch(perf: str, words: Sequence[str], data: Path, ring: int, stack: contextlib.ExitStack) -> _Session:
    read_control, write_control = os.pipe()
    read_answers, write_answers = os.pipe()
    messages = os.memfd_create("perf's messages")  # the disk may be full
    stack.callback(os.close, messages)
    argv = [
        perf, "record", "--all-cpus", "--delay=-1", f"--control=fd:{read_control},{write_answers}", f"--mmap-pages={ring >> 10}K",
        "--count=1", "--no-buildid", "--no-buildid-cache", "--clockid=CLOCK_MONOTONIC", "--output", str(data), *words,
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
    return _Session(process, write_control, read_answers, messages, data, ring * (os.cpu_count() or 1))


def _ring_bytes() -> int:
    """A power of two for each CPU, at most a sixteenth of the free memory in all."""
    available = snapshots.parse_meminfo(Path("/proc/meminfo").read_text()).get("MemAvailable", 1 << 20) << 10
    share = max(SMALLEST_RING, min(LARGEST_RING, available // 16 // (os.cpu_count() or 1)))
    return 1 << (share.bit_length() - 1)


# ---- The command -----------------------------------------------------------------------------------------------------------


class _Command:
    """The command behind its launcher, which waits to be told."""

    def __init__(self, plan: Plan, group: tuple[str, Path] | None, stack: contextlib.ExitStack) -> None:
        self.words = plan.command
        read_go, self._go = os.pipe()
        self.told, write_told = os.pipe()
        for descriptor in (self._go, self.told):
            stack.callback(os.close, descriptor)
        self._process = 0  # its number, while it runs
        self._text = b""
        procs = str(group[1] / "cgroup.procs") if group else ""
        argv = [sys.executable, "-I", "-S", launcher.__file__, str(read_go), str(write_told), procs, *plan.command]
        try:
            stack.enter_context(programs.child(argv, stdout=plan.stdout, pass_fds=(read_go, write_told)))
        finally:
            os.close(read_go)
            os.close(write_told)
        stack.callback(self.send, signal.SIGKILL)
        self._expect("ready")

    def start(self) -> None:
        """Starts the command. UserError when the system does not."""
        os.write(self._go, b"\n")
        self._process = int(self._expect("started"))

    def has_told(self) -> bool:
        """Whether the launcher has told more than was asked for: that a short command has ended already."""
        return b"\n" in self._text

    def status(self) -> int:
        """How the command ended; waits for that."""
        status = int(self._expect("ended"))
        self._process = 0
        return status if status >= 0 else 128 - status

    def send(self, number: int) -> None:
        """A signal to the command, if it runs."""
        if self._process:
            with contextlib.suppress(OSError):
                os.kill(self._process, number)

    def _expect(self, word: str) -> str:
        """What the launcher tells behind `word`."""
        while b"\n" not in self._text:
            more = os.read(self.told, 256)
            if not more:
                raise UserError(f"{self.words[0]}: the process that was to start it has been killed")
            self._text += more
        line, _, self._text = self._text.partition(b"\n")
        found, _, value = line.decode().partition(" ")
        if found == "failed":
            error = OSError(int(value), os.strerror(int(value)))
            raise programs.cannot_be_run(self.words[0], error)
        assert found == word
        return value


class _Signals:
    """Signals that end a recording, noted while the context lasts; a descriptor that can be waited for has a byte for each."""

    def __init__(self) -> None:
        self.taken: list[int] = []

    def __enter__(self) -> _Signals:
        self.ready, self._written = os.pipe()
        os.set_blocking(self._written, False)
        os.set_blocking(self.ready, False)
        self._wakeup = signal.set_wakeup_fd(self._written, warn_on_full_buffer=False)
        ours = [number for number in ENDING if signal.getsignal(number) != signal.SIG_IGN]
        self._handlers = {number: signal.signal(number, self._take) for number in ours}
        return self

    def __exit__(self, *_: object) -> None:
        signal.set_wakeup_fd(self._wakeup)
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        os.close(self.ready)
        os.close(self._written)

    def _take(self, number: int, _frame: Any) -> None:
        self.taken.append(number)

    def drain(self) -> list[int]:
        """Those that have come since the last call."""
        with contextlib.suppress(BlockingIOError):
            os.read(self.ready, 4096)
        taken, self.taken = self.taken, []
        return taken


def _wait(plan: Plan, session: _Session, command: _Command | None) -> tuple[int, bool]:
    """Until the command has ended, the time is over or a signal comes; the command's status, and whether a signal came.

    A command that is told to end may take its time; a second signal, or GRACE seconds, end it at once.
    """
    with _Signals() as signals:
        if command:
            command.start()
        began = time.monotonic()
        over = None if plan.duration is None else began + plan.duration
        told: float | None = None  # when the command was told to end
        interrupted = False
        while True:
            now = time.monotonic()
            limits = [1.0, *([over - now] if over is not None and told is None else []), *([told + GRACE - now] if told else [])]
            ended = command is not None and command.has_told()
            watched = [signals.ready, *([command.told] if command else [])]
            ready = [] if ended else select.select(watched, [], [], max(0.0, min(limits)))[0]
            now = time.monotonic()
            if command and (ended or command.told in ready):
                status = command.status()
                return (0 if told and not interrupted else status), interrupted
            session.check()
            came = signals.drain()
            if came and (told is None or now > told + OUR_TURN):
                if command:
                    command.send(signal.SIGKILL) if told else _pass_on(command, came[0])
                told, interrupted = told or now, True
            elif over is not None and now >= over and told is None:
                if command:
                    command.send(signal.SIGTERM)
                told = now
            elif told and now > told + GRACE and command:
                command.send(signal.SIGKILL)
            if told and not command:
                return 0, interrupted
            plan.progress(now - began, session.written(), session.buffers)


def _pass_on(command: _Command, number: int) -> None:
    """A signal that we got. Ctrl-C the terminal has given the command as well."""
    if number == signal.SIGINT:
        with contextlib.suppress(OSError):
            terminal = os.open("/dev/tty", os.O_RDONLY | os.O_CLOEXEC)
            try:
                if os.tcgetpgrp(terminal) == os.getpgrp():
                    return
            finally:
                os.close(terminal)
    command.send(number)
