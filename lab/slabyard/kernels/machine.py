"""Boots a kernel with a guest, waits for it, and brings out what it leaves.

    um       the kernel is a program of this machine: one CPU, kernel code at native speed, no privilege and no virtual machine. Files
             come out through hostfs, a folder of this machine mounted in the guest.
    x86_64   under QEMU: several CPUs and memory nodes; with KVM where this machine grants it, else by software, some twenty times
    arm64    slower; arm64 always by software. What comes out goes to two raw disks, one for the figures and one for the trace, as text
             from the first byte; a small kernel (build.py) has a serial line or its console for it.

Every boot has a folder of its own in the temporary folder, and all its processes are one group that ends with us (cache.py). A
user-mode kernel keeps its memory in a file there, and its guest's processes are processes of this machine, stopped and resumed by
ptrace; they are of the group, too. The console is read all the time: a panic ends the boot at once, and so does the limit of its
time. A guest that has said that it is done has handed out everything; where its kernel then falls silent and stays, it is ended.
"""

from __future__ import annotations

import bisect
import contextlib
import fcntl
import gzip
import os
import re
import selectors
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..base.errors import MISSING, UserError
from ..base.files import read_text_if_there
from ..trace.file import KINDS, SNAPSHOT
from . import cache, cost, guest, tools
from .build import Kernel
from .kinds import Spec
from .workloads import Job

FALLBACK = "mm_page_alloc_extfrag"
PERIOD = 20  # milliseconds between two looks at the memory that slabs hold
NO_LOOK = 10**9  # milliseconds: while the kernel's instructions are counted, nobody looks
SILENCE = 10  # seconds, at the end, after which a kernel will not switch itself off any more
PANICS = (b"Kernel panic", b"---[ end Kernel panic")
_BEGINS, _ENDS, _DONE = b"slabyard: begins", b"slabyard: ends", b"slabyard: done"
_NO_MEMORY = b"Kernel mode signal 7"  # the host's SIGBUS: the file that is its memory could not grow
_NO_ROOM = "slabyard: no room"
# The guest's C library keeps off AVX, whose registers a user-mode kernel does not move (edits.py); it may prefer AVX for copies though it
# is told that there is none.
_NO_AVX = "GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX_Fast_Unaligned_Load,-AVX2,-AVX,-AVX512F,-XSAVEC,-XSAVE"
# no_timer_check: QEMU's timer works, but may tick late on a busy machine; the kernel's check would then panic.
# trace_clock: a kernel that finds its clock unstable at the end of the boot would choose another one for the trace, and empty the trace.
_QEMU = {
    "x86_64": ("console=ttyS0", "panic=-1", "no_timer_check", "trace_clock=global"),
    "arm64": ("console=ttyAMA0", "panic=-1", "trace_clock=global"),
}
_TIMER = f"slabyard_timer={10**9}"  # ticks a second of the processor's timer, which a kernel need not measure then (edits.py)
# The processor of arm64 is an old one: newer ones sign addresses, which software emulates slowly.
_BOARDS = {"x86_64": "q35", "arm64": "virt,gic-version=3"}
_PROCESSORS = {"x86_64": "max", "arm64": "cortex-a53"}
_DISKS = {"x86_64": "virtio-blk-pci", "arm64": "virtio-blk-device,bus=virtio-mmio-bus.{}"}  # Linux finds the lowest bus first
_MARK = re.compile(r"^@@slabyard (\S+)\n", re.MULTILINE)
_KVM_CREATE_VM = 0xAE01


@dataclass(frozen=True)
class Hardware:
    """The machine that a kernel boots on: bytes of memory, CPUs, memory nodes; QEMU's accelerator, chosen by what there is where empty."""

    memory: int = 512 << 20
    cpus: int = 1
    nodes: int = 1
    accelerator: str = ""

    def check(self, arch: str) -> None:
        """UserError for a machine that cannot be."""
        if arch == "um" and (self.cpus > 1 or self.nodes > 1):
            raise UserError("a user-mode kernel has one CPU and one node; for more, give --arch x86_64")
        if arch == "um" and self.accelerator:
            raise UserError("a user-mode kernel has no accelerator; --accelerator is for --arch x86_64")
        if arch == "arm64" and self.accelerator == "kvm":
            raise UserError("a kernel for arm64 runs in software on this machine; --accelerator kvm is for --arch x86_64")
        if self.cpus % self.nodes:
            raise UserError(f"{self.cpus} CPUs cannot be shared evenly by {self.nodes} nodes; give --cpus {self.nodes} or a multiple of it")
        if self.memory < (64 << 20) * self.nodes:
            raise UserError(f"--memory must be at least {64 * self.nodes}M")
        there = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        if self.memory > there:
            raise UserError(f"--memory must be less than this machine's own, {there >> 20}M")
        if self.accelerator == "kvm" and not kvm():
            raise UserError(
                "--accelerator kvm: /dev/kvm is missing, closed to this user, or the processor does not virtualise; "
                "without --accelerator, or with tcg, QEMU emulates in software",
                MISSING,
            )


@dataclass(frozen=True)
class Plan:
    """What to boot, and how: one spec and workload on one machine."""

    spec: Spec
    kernel: Kernel
    job: Job
    hardware: Hardware
    timeout: float = 600  # seconds
    trace: int | None = None  # every allocation from the first traceable one on, with that many bytes of buffer
    prefix: Sequence[str] = ()  # what starts the kernel, as perf does
    samples: int = 0  # a second, of the kernel's stacks, taken in the guest while the workload runs
    calls: bool = False  # a kernel on slabyard logs its calls
    counts: bool = False  # what the kernel executes while the workload runs (cost.py)
    turn: int = 0  # of a boot that counts: its stacks, not its caches, with so many instructions of each CPU in turn (plugin/tree.h)


@dataclass
class Outcome:
    """What a boot left: texts by name (`before/meminfo`, `log`, ...), the console, the text of the trace or of the calls, when the workload
    began and ended (seconds of this machine's monotonic clock), and how much processor time a user-mode kernel had used by then."""

    texts: dict[str, str]
    console: str
    trace: Path | None = None
    calls: Path | None = None
    counts: str = ""  # of QEMU's plugin
    stacks: str = ""  # likewise
    began: float = 0.0
    ended: float = 0.0
    used_began: float = 0.0
    used_ended: float = 0.0
    accelerator: str = ""
    stayed: bool = False  # the kernel had to be ended after it was done


def default_hardware(arch: str) -> Hardware:
    """The machine where the user asks for none."""
    return Hardware() if arch == "um" else Hardware(1 << 30, 4, 1)


@contextlib.contextmanager
def boot(what: Plan, ended: Callable[[], None] = lambda: None) -> Iterator[Outcome]:
    """Boots, waits for the end, and gives what was left; the trace's text lives as long as the context. `ended` is called once the workload
    has ended, before the guest hands out what it leaves."""
    what.hardware.check(what.kernel.arch)
    with tempfile.TemporaryDirectory(prefix="slabyard-boot-") as name:
        folder = Path(name)
        argv, accelerator = (_um if what.kernel.arch == "um" else _qemu)(what, folder)
        outcome = Outcome({}, "", accelerator=accelerator)
        _wait([*what.prefix, *argv], what, folder, outcome, ended)
        handed_out = _results(folder / "results") or "".join(outcome.console.partition("@@slabyard ")[1:])
        text = handed_out.replace("\r\n", "\n")  # a serial line's ends
        outcome.texts = split(text)
        if _NO_ROOM in outcome.console:
            raise UserError(f"no room for what the guest hands out in {tempfile.gettempdir()}; have TMPDIR name a folder on another disk")
        if "end" not in outcome.texts:
            raise UserError(f"{what.job.name} on {what.kernel.kind}: the guest ended before it was done: {_last_words(outcome.console)}")
        trace = folder / "trace.txt"
        if what.counts:
            outcome.counts, outcome.stacks = _results(folder / "counts"), _results(folder / "stacks")
        if what.trace is not None or what.calls:
            _cut(trace)
            outcome.trace, outcome.calls = (None, trace) if what.calls else (trace, None)
        yield outcome


def command_line(what: Plan) -> list[str]:
    """The kernel's parameters that do not depend on the architecture."""
    avoided = [_NO_AVX] if what.kernel.arch != "arm64" else []
    words = [*avoided, "rdinit=/init", *what.spec.parameters, *(["slabyard.log=1"] if what.calls else [])]
    if what.trace is None:
        return [*words, f"trace_event=kmem:{FALLBACK}", "trace_buf_size=256K", "trace_options=nohash-ptr"]
    share = max(256 << 10, what.trace // what.hardware.cpus)  # the kernel takes it for each CPU
    events = ",".join(f"kmem:{event}" for event in KINDS[:SNAPSHOT])
    return [*words, f"trace_event={events}", f"trace_buf_size={share >> 10}K", "trace_options=nohash-ptr"]


def _settings(what: Plan, out: str) -> dict[str, str]:
    trace = "calls" if what.calls else "none" if what.trace is None else "all"
    return {"OUT": out, "TRACE": trace, "PERIOD": str(NO_LOOK if what.counts else PERIOD)}


def _um(what: Plan, folder: Path) -> tuple[list[str], str]:
    archive = guest.archive(what.job, {**_settings(what, "hostfs"), "HOST": str(folder)}, what.samples)
    (folder / "guest").write_bytes(gzip.compress(archive, compresslevel=1, mtime=0))
    argv = [
        str(what.kernel.image), f"mem={what.hardware.memory >> 20}M", f"initrd={folder / 'guest'}", f"uml_dir={folder}/", "umid=guest",
        "con=null", "con0=null,fd:1", "ssl=null", *command_line(what),
    ]  # fmt: skip
    return argv, "native"


def _qemu(what: Plan, folder: Path) -> tuple[list[str], str]:
    arch = what.kernel.arch
    qemu = tools.path_of(tools.QEMUS[arch], f"a kernel for {arch}")
    # A disk answers when this machine gets to it, which no count may depend on. The board of arm64 has one serial line.
    out = ("serial" if arch == "x86_64" else "console") if what.counts or what.kernel.small else "disk"
    (folder / "guest").write_bytes(guest.archive(what.job, _settings(what, out), what.samples))
    disks = {"results": 512 << 20, "trace.txt": 8 << 30} if out == "disk" else {}
    for name, size in disks.items():
        with (folder / name).open("wb") as file:
            file.truncate(size)
    hardware = what.hardware
    accelerator = "tcg" if what.counts else hardware.accelerator or ("kvm" if arch == "x86_64" and kvm() else "tcg")
    share = hardware.memory // hardware.nodes >> 20
    argv = [qemu, "-machine", _BOARDS[arch], "-accel", "tcg,thread=single" if what.counts else accelerator]
    argv += ["-cpu", "host" if accelerator == "kvm" else _PROCESSORS[arch]]
    # A kernel without ACPI has the MP table alone to find its CPUs in, and the firmware lists one of each socket there.
    sockets = hardware.cpus if arch == "x86_64" and what.kernel.small else hardware.nodes
    argv += ["-m", f"{share * hardware.nodes}M", "-smp", f"{hardware.cpus},sockets={sockets}"]
    argv += ["-kernel", str(what.kernel.image), "-initrd", str(folder / "guest")]
    for node in range(hardware.nodes):
        cpus = hardware.cpus // hardware.nodes  # a node is a socket, as the guest expects
        argv += ["-object", f"memory-backend-ram,id=m{node},size={share}M"]
        argv += ["-numa", f"node,nodeid={node},memdev=m{node},cpus={node * cpus}-{(node + 1) * cpus - 1}"]
    for place, name in enumerate(disks):
        argv += ["-drive", f"file={folder / name},if=none,id={name},format=raw,cache=unsafe,werror=report"]
        argv += ["-device", f"{_DISKS[arch].format(place)},drive={name}"]
    argv += ["-display", "none", "-serial", "stdio", "-monitor", "none", "-no-reboot", "-nodefaults"]
    known = [_TIMER] if what.counts and arch == "x86_64" else []
    argv += ["-append", " ".join([*_QEMU[arch], *known, *command_line(what)])]
    if out == "serial":
        argv += ["-serial", f"file:{folder / 'results'}"]
    if what.counts:
        argv += cost.options(folder, what.kernel.map.read_text(), what.spec.kind, hardware.cpus, what.turn)
    return argv, accelerator


def kvm(device: str = "/dev/kvm", cpuinfo: str = "/proc/cpuinfo") -> bool:
    """Whether this machine grants us virtual machines that any kernel runs in.

    Some have /dev/kvm without a processor that virtualises; such run kernels that are made for them.
    """
    if not re.search(r"(?m)^flags\s*:.*\b(?:vmx|svm)\b", read_text_if_there(Path(cpuinfo)) or ""):
        return False
    try:
        with Path(device).open("r+b", buffering=0) as file:
            os.close(fcntl.ioctl(file.fileno(), _KVM_CREATE_VM, 0))
    except OSError:
        return False
    return True


def _wait(argv: Sequence[str], what: Plan, folder: Path, outcome: Outcome, ended: Callable[[], None]) -> None:
    """Reads the console until the kernel has ended. UserError for a panic and for a boot that takes too long."""
    console = bytearray()
    deadline = time.monotonic() + what.timeout
    environment = {**os.environ, "TMPDIR": str(folder)}  # where a user-mode kernel keeps its memory
    with (
        cache.group(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment) as process,
        selectors.DefaultSelector() as selector,
    ):
        assert process.stdout is not None
        selector.register(process.stdout, selectors.EVENT_READ)
        try:
            silence = 0
            while (piece := _read(selector, process, console, outcome, ended)) != b"":
                silence = 0 if piece else silence + 1
                if silence >= SILENCE and _DONE in console and not what.prefix:  # a prefix may have to write for longer
                    outcome.stayed = True
                    return
                if what.kernel.arch == "um" and _NO_MEMORY in console:
                    raise UserError(f"no room for the guest's memory in {tempfile.gettempdir()}; have TMPDIR name a folder on another disk")
                if any(word in console for word in PANICS):
                    raise UserError(f"{what.job.name} on {what.kernel.kind}: {_last_words(_text(console))}")
                if time.monotonic() > deadline:
                    raise UserError(
                        f"{what.job.name} on {what.kernel.kind}: not done after {what.timeout:g} s; --timeout gives it longer. "
                        f"Its last words: {_last_words(_text(console))}"
                    )
            process.wait()
        finally:
            outcome.console = _text(console)


def _read(
    selector: selectors.BaseSelector, process: subprocess.Popen[bytes], console: bytearray, outcome: Outcome, ended: Callable[[], None]
) -> bytes | None:
    """Reads what there is of the console: None after a second of silence, nothing at its end."""
    if not selector.select(timeout=1.0):
        return None
    assert process.stdout is not None
    piece = os.read(process.stdout.fileno(), 1 << 16)
    before = max(0, len(console) - 64)
    console += piece
    now = time.monotonic()
    if not outcome.began and console.find(_BEGINS, before) >= 0:
        outcome.began, outcome.used_began = now, processor_time(process.pid)
    if not outcome.ended and console.find(_ENDS, before) >= 0:
        outcome.ended, outcome.used_ended = now, processor_time(process.pid)
        ended()
    return piece


def processor_time(process: int) -> float:
    """Seconds of processor time that a process has used, without its children; 0 where it has ended."""
    with contextlib.suppress(OSError):
        return time.clock_gettime(~process << 3 | 2)  # the number of a process's clock, as clock_getres(2) builds it
    return 0.0


def _text(console: bytes | bytearray) -> str:
    return console.decode(errors="replace").replace("\r", "")


def _last_words(console: str) -> str:
    """The line of a console that says best what went wrong."""
    lines = [re.sub(r"^\[ *[\d.]+\] *", "", line).strip() for line in console.splitlines()]
    lines = [line for line in lines if line]
    telling = [line for line in lines if re.search(r"Kernel panic|Oops|BUG:|slabyard: the workload|not found|rror", line)]
    return (telling or lines or ["it said nothing"])[-1][:200]


def _results(path: Path) -> str:
    """A stream that the guest has handed out: a file, or a disk with zero bytes behind it."""
    if not path.is_file():
        return ""
    _cut(path)
    return path.read_bytes().decode(errors="replace")


def _cut(disk: Path) -> None:
    """Cuts a disk behind its text: before the first zero byte all is text, and nothing was ever written from there on."""
    with disk.open("r+b") as file:
        places = range(os.fstat(file.fileno()).st_size)
        file.truncate(bisect.bisect_left(places, True, key=lambda at: os.pread(file.fileno(), 1, at) == b"\0"))


def split(stream: str) -> dict[str, str]:
    """The texts of a stream by name; the last one, `end`, shows that it is whole."""
    parts = _MARK.split(stream)
    return dict(zip(parts[1::2], parts[2::2], strict=True))
