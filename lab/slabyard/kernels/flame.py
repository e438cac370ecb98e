"""Where a kernel's time goes: sampled stacks of its own functions, after Yoo's flame graphs of the slab allocators.

    um       a user-mode kernel is a process with symbols, so this machine's perf sees into it: a clock stops it some two thousand
             times a second, and its frame pointers tell the stack. Samples count from the guest's `begins` to its `ends` on the
             console, so starting up is not in them.
    x86_64   the guest samples itself, as long as the workload runs (guest_files/sample.c), by a clock of the kernel on each CPU;
             addresses come out, and the kernel's System.map names them.

             Or the plugin that counts instructions (cost.py, plugin/tree.h) counts those of every stack; then nothing is sampled, and
             waiting for a lock is in it as on a machine whose CPUs run side by side, which an emulator's on a few host CPUs do not.

Samples that find a program of the guest running, not the kernel, are counted and left out. The kernel is an outlined one (build.py):
compiled into each other, the allocator's functions would all be one, and the slow path could not be told from the fast.

Shares are taken of all samples in the kernel, as in his article: allocation, freeing, the slow path and waiting in either. A sample
is of an allocation where any function of its stack is one of the interface's (kmalloc, kmem_cache_alloc, ...), the outermost one
deciding, and of the slow path where one of the kind's slow functions (kinds.py) is on it; the page allocator's time is in those
that call it.
"""

from __future__ import annotations

import bisect
import dataclasses
import functools
import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..base.errors import MISSING, UserError
from ..base.programs import last_line
from ..base.stacks import Stack
from ..base.table import Cell, Table
from ..results import measures
from . import cost, run, tools
from .cost import plain_name
from .machine import Outcome, Plan

FREQUENCY = 1999  # samples a second; no divisor of the kernel's own clock
GUEST_FREQUENCY = 499  # of each CPU; a guest in software would do little else at more
ALLOCATES = re.compile(r"^(?:k[mvz]*alloc|(?:__)?(?:do_)?k(?:m|re)alloc|(?:__)?kmem_cache_alloc|slob_alloc)(?:_\w+)?$")
FREES = re.compile(r"^(?:kfree|kmem_cache_free|__kmem_cache_free|slob_free|___cache_free|kfree_sensitive)(?:_\w+)?$")
NOT_THE_ALLOCATORS = frozenset(
    (
        "kfree_skb", "kfree_skb_reason", "kfree_skb_partial", "kfree_skb_list_reason", "kfree_skbmem", "kfree_link", "kfree_rcu_work",
        "kmalloc_reserve",
    )
)  # fmt: skip
_ROOTS = frozenset(("uml_finishsetup", "new_thread_handler", "fork_handler"))  # where every stack of a user-mode kernel begins
_SPINS = re.compile(r"queued_spin_lock_slowpath$")
_IDLE = frozenset(("do_idle", "cpu_startup_entry"))
WAITS = "[its turn without instructions]"  # above a function that paused: the time until its CPU's next turn
_SAMPLE = re.compile(r"^(\S.*?)\s+(\d+\.\d+):")


@dataclass
class Profile:
    """Stacks of the kernel, outermost function first, with how many samples found each; lines of its log that tell of trouble."""

    stacks: Counter[Stack] = field(default_factory=Counter)
    of_programs: int = 0
    lost: int = 0
    trouble: list[str] = field(default_factory=list)

    @property
    def samples(self) -> int:
        """Samples in the kernel."""
        return sum(self.stacks.values())

    def add(self, other: Profile) -> None:
        """Takes in another boot's samples."""
        self.stacks += other.stacks
        self.of_programs += other.of_programs
        self.lost += other.lost
        self.trouble += other.trouble


def sample(plan: Plan) -> Profile:
    """Boots once and samples the kernel while the workload runs."""
    if plan.kernel.arch != "um":
        return _by_guest(plan)
    found: list[Profile] = []
    with tempfile.TemporaryDirectory(prefix="slabyard-flame-") as folder:
        data = Path(folder) / "perf.data"
        done = run.once(dataclasses.replace(plan, prefix=prefix(data)), look=lambda outcome: found.append(read(data, outcome)))
    return dataclasses.replace(found[0], trouble=done.trouble)


def count(plan: Plan, turn: int) -> Profile:
    """Boots once under QEMU, and counts: a sample for each instruction, and for each that a CPU could have executed while it waited.

    `turn`: instructions of a CPU until the next CPU's turn. Idle CPUs are left out, as by sampling.
    """
    names = cost.Symbols.of(plan.kernel.map.read_text(), plan.spec.kind).names
    found: list[Profile] = []
    counting = dataclasses.replace(plan, counts=True, turn=turn)
    done = run.once(counting, look=lambda outcome: found.append(name_nodes(outcome.stacks, names)))
    return dataclasses.replace(found[0], trouble=done.trouble)


def name_nodes(text: str, names: Sequence[str]) -> Profile:
    """The plugin's tree of stacks (plugin/tree.h). UserError where it is not whole."""
    lines = text.splitlines()
    if len(lines) < 2 or lines[-1] != "end":
        raise UserError("QEMU's plugin has counted no stacks: the workload's begin or end was not seen")
    profile = Profile(of_programs=int(lines[0].split()[1]))
    stacks: list[Stack] = [()]
    for line in lines[1:-1]:
        caller, function, executed, waited = map(int, line.split())
        stacks.append((*stacks[caller], names[function]))
        if _IDLE.isdisjoint(stacks[-1]):
            profile.stacks[stacks[-1]] += executed
            profile.stacks[(*stacks[-1], WAITS)] += waited
    profile.stacks = +profile.stacks  # without those of weight 0
    return profile


def _by_guest(plan: Plan) -> Profile:
    done = run.once(dataclasses.replace(plan, samples=GUEST_FREQUENCY))
    found = name_stacks(done.texts.get("samples", "").splitlines(), Symbols(plan.kernel.map.read_text()))
    return dataclasses.replace(found, trouble=done.trouble)


class Symbols:
    """The functions of a System.map, found by address."""

    def __init__(self, text: str) -> None:
        lines = [line.split() for line in text.splitlines()]
        functions = sorted({int(address, 16): name for address, kind, name in lines if kind in "tTwW"}.items())
        self._starts = [address for address, _ in functions]
        self._names = [name for _, name in functions]

    @functools.cache  # noqa: B019 (a few thousand addresses, as long as the symbols)
    def name(self, address: str) -> str:
        """The function that a hexadecimal address is in."""
        at = bisect.bisect_right(self._starts, int(address, 16)) - 1
        return _plain(self._names[at]) if at >= 0 else "[unknown]"


def name_stacks(lines: Iterable[str], symbols: Symbols) -> Profile:
    """The samples of a guest: addresses, the innermost first; an empty line for one in a program; how many were lost."""
    profile = Profile()
    for line in lines:
        words = line.split()
        if words[:1] == ["lost"]:
            profile.lost += int(words[1])
        elif words:
            profile.stacks[tuple(symbols.name(word) for word in reversed(words))] += 1
        else:
            profile.of_programs += 1
    return profile


def prefix(data: Path) -> list[str]:
    """What starts a kernel so that its stacks are sampled into a file."""
    perf = tools.path_of(tools.PERF, "a flame graph")
    return [
        perf, "record", "--quiet", "--event", "cpu-clock:u", "--freq", str(FREQUENCY), "--call-graph", "fp", "--clockid", "CLOCK_MONOTONIC",
        "--no-buildid-cache", "--output", str(data), "--",
    ]  # fmt: skip


def read(data: Path, outcome: Outcome) -> Profile:
    """The samples of the workload out of perf's file. UserError when perf cannot read it."""
    argv = [tools.path_of(tools.PERF, "a flame graph"), "script", "--input", str(data), "--fields", "comm,time,ip,sym"]
    done = subprocess.run(argv, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode:
        raise UserError(f"perf script failed: {last_line(done.stderr)}", MISSING)
    return collect(done.stdout.splitlines(), outcome.began, outcome.ended)


def collect(lines: Iterable[str], began: float, ended: float) -> Profile:
    """The samples between two times (seconds) out of perf script's text."""
    profile = Profile()
    for time, frames in _samples(lines):
        if not began <= time <= ended or not frames:
            continue
        if frames[0] == "[unknown]":
            profile.of_programs += 1
            continue
        stack = [frame for frame in reversed(frames) if frame != "[unknown]" and frame not in _ROOTS]
        profile.stacks[tuple(stack or frames[:1])] += 1
    return profile


def _samples(lines: Iterable[str]) -> Iterator[tuple[float, list[str]]]:
    """Time and frames of each sample, the innermost first."""
    time = -1.0
    frames: list[str] = []
    for line in lines:
        head = _SAMPLE.match(line)
        if head:
            if time >= 0:
                yield time, frames
            time, frames = float(head[2]), []
        elif line.strip():
            frames.append(_plain(line.split(None, 1)[1] if len(line.split(None, 1)) > 1 else "[unknown]"))
    if time >= 0:
        yield time, frames


def _plain(symbol: str) -> str:
    """A function's name alone: without the file that perf puts behind it, and what the compiler adds to that of a clone."""
    return plain_name(symbol.strip()).split(" (")[0]


def role(frame: str) -> str:
    """`alloc` or `free` for the allocator's interface, else an empty text."""
    if frame in NOT_THE_ALLOCATORS:
        return ""
    return "alloc" if ALLOCATES.match(frame) else "free" if FREES.match(frame) else ""


def shares(profile: Profile, slow: Sequence[str]) -> dict[str, float]:
    """Of all samples in the kernel: `alloc`, `free`, and as parts of these `alloc_slow`, `free_slow`, `alloc_waits`, `free_waits`."""
    found = dict.fromkeys(("alloc", "free", "alloc_slow", "free_slow", "alloc_waits", "free_waits"), 0)
    for stack, count in profile.stacks.items():
        what = next((kind for frame in stack if (kind := role(frame))), "")
        if what:
            found[what] += count
            if any(frame in slow for frame in stack):
                found[f"{what}_slow"] += count
            if stack[-1] == WAITS or any(_SPINS.search(frame) for frame in stack):
                found[f"{what}_waits"] += count
    return {name: count / max(1, profile.samples) for name, count in found.items()}


def own(profile: Profile) -> list[tuple[str, int, int]]:
    """Functions on stacks of the allocator: name, samples in itself, samples in it and what it calls; the most in itself first."""
    self_time: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for stack, count in profile.stacks.items():
        at = next((place for place, frame in enumerate(stack) if role(frame)), None)
        if at is None:
            continue
        self_time[stack[-1]] += count
        for frame in set(stack[at:]):
            total[frame] += count
    return [(name, self_time[name], total[name]) for name in sorted(total, key=lambda name: (-self_time[name], -total[name], name))]


# ---- What comes out --------------------------------------------------------------------------------------------------------------


SHOWN = 15


def tables(profile: Profile, slow: Sequence[str], title: str, per_boot: Sequence[dict[str, float]]) -> list[Table]:
    """The shares with their intervals over the boots, and the functions that take most."""
    found = shares(profile, slow)
    titles = {
        "alloc": "allocation", "alloc_slow": "of which on its slow path", "alloc_waits": "of which waiting for a lock",
        "free": "freeing", "free_slow": "of which on its slow path", "free_waits": "of which waiting for a lock",
    }  # fmt: skip
    rows: list[list[Cell]] = []
    for name, words in titles.items():
        bounds = measures.interval([one[name] for one in per_boot])
        rows.append([words, round(100 * found[name], 2), f"{100 * bounds[0]:.2f}-{100 * bounds[1]:.2f}" if bounds else "-"])
    notes = [f"{profile.samples:,} samples in the kernel, {profile.of_programs:,} in programs of the guest, which are left out."]
    notes += [f"{profile.lost:,} samples were lost."] if profile.lost else []
    notes += [f"The log has: {line}" for line in dict.fromkeys(profile.trouble)]
    out = [Table(title, ["where", "% of kernel time", measures.confidence([len(per_boot)])], rows, notes=notes)]
    total = max(1, profile.samples)
    functions: list[list[Cell]] = [
        [name, round(100 * mine / total, 2), round(100 * whole / total, 2)] for name, mine, whole in own(profile)[:SHOWN]
    ]
    if functions:
        out.append(Table("", ["function under an allocation or free", "% itself", "% with what it calls"], functions))
    return out
