"""What a replay costs in instructions and cache misses: counted, not timed, hence the same on every run.

Valgrind's callgrind runs the replay program's cost pass (replay/cost.c), counts each instruction of the object operations, and simulates
caches of a size that is stated here, whatever the processor has. Nothing that differs from run to run may reach the program: its
environment is made here, valgrind itself lays out its memory, and the pass begins its stack at a fixed place. The C library is told
to do without what only some processors have, as it would clear memory by other instructions there.

Callgrind tells the costs of every address in the program's file, and which calls were made from there to where. binutils' addr2line
tells of which functions an address is the code, inlined ones too: the innermost first, the one that was called last. With these an
instruction belongs to

- locks: if it is in a lock's function, whoever takes it;
- pages: else, if the function that was called is the page allocator's (core/pages, core/backend);
- fast: else, if that is one of the functions that a request goes to first: what the replay calls, and the policy's own function that it
  jumps to;
- slow: else: all that those call.

What is called outside of the core (memset, a cache's constructor) is the part's that calls it. The replay's own instructions are left out.
Of a malloc all is counted, in no part.

Figures that cannot change are kept, as counting takes seconds: in the user's cache, under the hash of all that they follow from. Those of
mallocs are not, as nobody knows of what files a library consists. Of more than MOST_KEPT those go that were used least recently.
"""

from __future__ import annotations

import bisect
import contextlib
import functools
import hashlib
import json
import os
import platform
import posixpath
import re
import shutil
import subprocess
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..base import programs
from ..base.errors import MISSING, UserError
from ..base.files import cache_home, sha256, write_text

CACHES = {"I1": (32 << 10, 8, 64), "D1": (32 << 10, 8, 64), "LL": (8 << 20, 16, 64)}  # bytes, ways, bytes of a line
CACHE_MODEL = "I1 and D1 32 KiB of 8 ways, LL 8 MiB of 16 ways, lines of 64 bytes, all empty at the first event"
ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "LC_ALL": "C",
    "LD_BIND_NOW": "1",  # or the first call of each function would look it up
    "GLIBC_TUNABLES": "glibc.rtld.optional_static_tls=65536:"  # malloc_target.c starts the program anew without it
    "glibc.cpu.hwcaps=-AVX2,-AVX2_Usable,-AVX512F,-AVX512F_Usable,-AVX512VL,-AVX512BW,-ERMS,-FSRM,-EVEX",
}
PARTS = ("fast", "slow", "pages", "locks")
FIGURES = ("instructions", "l1_misses", "ll_misses")
WATCHED = ("cost_object", "cost_tick")  # of replay/cost.c; the first makes requests
LOCK_NAMES = (r"sy__(un)?lock", r"sy__queue_", r"sy__call_(begin|end)_locked")
LOCKS = re.compile("|".join(LOCK_NAMES))
PAGES = ("core/pages/", "core/backend/")
SOURCE = re.compile(r".*/((?:core|library|programs|replay|pairs)/.*)")
DECIMALS = 4
MOST_KEPT = 4096  # files, of some KiB each

Sums = list[int]  # of FIGURES


def check() -> None:
    """UserError where a tool is missing."""
    missing = [tool for tool in ("valgrind", "addr2line") if shutil.which(tool) is None]
    if missing:
        packages = {"valgrind": "valgrind", "addr2line": "binutils"}
        needed = " ".join(packages[tool] for tool in missing)
        raise UserError(
            f"counting instructions needs {' and '.join(missing)}, which is not there; install it (Debian: apt install {needed})",
            MISSING,
        )


@functools.cache
def tool() -> str:
    """The tool and its version, as records name it."""
    done = subprocess.run([_tool("valgrind"), "--version"], capture_output=True, text=True, check=False)
    return f"callgrind {done.stdout.strip().removeprefix('valgrind-')}"


def _tool(name: str) -> str:
    found = shutil.which(name)
    assert found is not None, "check has been called"
    return found


def absolute(spec: str) -> str:
    """The spec of a malloc library that lies here, so that another folder finds it too; other specs as they are."""
    name, _, library = spec.partition(":")
    return f"malloc:{Path(library).resolve()}" if name == "malloc" and library != "system" and Path(library).is_file() else spec


def measure(scratch: Path, name: str, spec: str, words: Sequence[str], functions: int) -> dict[str, Any]:
    """The `cost` group of one replay of a scratch file, with more words for the program; with that many functions, those that cost most.

    Runs in the folder of that file, as valgrind reads options from where it runs. What it writes there has a name that no run beside
    it has.
    """
    words = ["--allocator", absolute(spec), "--mode", "cost", *words]
    kept = None if spec.startswith("malloc:") else _place(scratch, [*words, str(functions)])
    found = _kept(kept)
    if found is None:
        found = _measure(scratch.parent, name, ["--scratch", str(scratch), *words], functions)
        _keep(kept, found)
    return found


def _place(scratch: Path, words: Sequence[str]) -> Path | None:
    """Where these figures are kept; None: this user has no place for that."""
    files = [sha256(path) for path in (scratch, Path(programs.program(programs.REPLAY)), Path(__file__))]
    key = json.dumps([files, words, tool(), platform.libc_ver(), platform.machine()])
    with contextlib.suppress(UserError):
        return cache_home() / "cost" / f"{hashlib.sha256(key.encode()).hexdigest()}.json"
    return None


def _kept(path: Path | None) -> dict[str, Any] | None:
    with contextlib.suppress(OSError, ValueError):
        found = json.loads(path.read_text()) if path else None
        if path and isinstance(found, dict) and "instructions" in found:
            os.utime(path)  # was used
            return found
    return None


def _keep(path: Path | None, found: dict[str, Any]) -> None:
    """Keeps figures if that is possible."""
    if path:
        with contextlib.suppress(OSError, UserError):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_text(path, json.dumps(found))
            for old in sorted(path.parent.glob("*.json"), key=lambda file: file.stat().st_mtime, reverse=True)[MOST_KEPT:]:
                old.unlink(missing_ok=True)


def _measure(folder: Path, name: str, words: Sequence[str], functions: int) -> dict[str, Any]:
    program = programs.program(programs.REPLAY)
    told, profile = observed(folder, name, program, words, WATCHED, ("--instr-atstart=no",))
    return group(profile, str(Path(program).resolve()), told["cost"]["operations"], functions)


def observed(
    folder: Path, name: str, program: str, words: Sequence[str], watched: Sequence[str], more: Sequence[str] = ()
) -> tuple[Any, Profile]:
    """Runs one of slabyard's programs under callgrind: what it printed, and its profile inside of the functions that are watched."""
    found = folder / f"{name}.callgrind"
    options = [f"--{cache}={size},{ways},{line}" for cache, (size, ways, line) in CACHES.items()]
    callgrind = [
        _tool("valgrind"), "--tool=callgrind", "-q", "--cache-sim=yes", *options, *more, "--collect-atstart=no",
        *(f"--toggle-collect={one}*" for one in watched), "--dump-instr=yes", "--dump-line=no", "--compress-strings=no",
        "--compress-pos=no", f"--callgrind-out-file={found.name}",
    ]  # fmt: skip
    try:
        told = json.loads(programs.run_under(callgrind, program, words, cwd=folder, env=ENVIRONMENT))
        return told, read(found.read_text(errors="replace").splitlines())
    finally:
        found.unlink(missing_ok=True)


# ---- What callgrind wrote -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Call:
    """Calls from one address to another, with all that they cost, what they called in turn included."""

    at: int
    to: int
    object: str
    name: str
    cost: tuple[int, ...]


@dataclass
class Profile:
    """What callgrind tells of each object: costs by address, and calls from there."""

    costs: dict[str, dict[int, Sums]] = field(default_factory=lambda: defaultdict(dict))
    calls: dict[str, list[Call]] = field(default_factory=lambda: defaultdict(list))


def read(lines: Iterable[str]) -> Profile:
    """The profile of the lines of callgrind's file, whose names and positions are not compressed."""
    profile = Profile()
    columns: list[list[int]] = []
    ours = theirs = called = ""
    target: int | None = None
    for line in lines:
        key, equals, value = line.partition("=")
        if line.startswith("0x"):
            word, *figures = line.split()
            at, cost = int(word, 16), _figures(columns, figures)
            if target is not None:
                profile.calls[ours].append(Call(at, target, theirs or ours, called, tuple(cost)))
                target, theirs, called = None, "", ""
                continue
            _add(profile.costs[ours].setdefault(at, [0] * len(FIGURES)), cost)
        elif not equals:
            if line.startswith("events:"):
                columns = _columns(line.split()[1:])
        elif key == "ob":
            ours = value
        elif key == "cob":
            theirs = value
        elif key == "cfn":
            called = value
        elif key == "calls":
            target = int(value.split()[1], 16)
    return profile


def _columns(events: list[str]) -> list[list[int]]:
    """For each of FIGURES, which of callgrind's events it is the sum of."""
    sums = (("Ir",), ("I1mr", "D1mr", "D1mw"), ("ILmr", "DLmr", "DLmw"))
    return [[events.index(event) for event in wanted] for wanted in sums]


def _figures(columns: list[list[int]], figures: list[str]) -> Sums:
    """Zeros at the end of a line are not written."""
    return [sum(int(figures[place]) for place in places if place < len(figures)) for places in columns]


def _add(sums: Sums, cost: Iterable[int]) -> None:
    for place, figure in enumerate(cost):
        sums[place] += figure


def _most(counted: Counter[str]) -> str:
    """What was counted most; of equals the first by name."""
    return max(sorted(counted), key=lambda name: counted[name])


# ---- What belongs to what -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Frame:
    """A function, and the source file of a line of it."""

    function: str
    file: str


def frames(program: str, addresses: Sequence[int]) -> dict[int, list[Frame]]:
    """The functions whose code each address is, the innermost first; none where the program says nothing of it."""
    argv = [_tool("addr2line"), "-e", program, "-a", "-f", "-i"]
    text = "".join(f"{address:#x}\n" for address in addresses)
    with programs.child(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        answer, _ = process.communicate(text)
    found: dict[int, list[Frame]] = {}
    for block in re.split(r"^(?=0x)", answer, flags=re.MULTILINE)[1:]:
        address, *lines = block.splitlines()
        pairs = zip(lines[::2], lines[1::2], strict=False)
        found[int(address, 16)] = [Frame(function, _source(place)) for function, place in pairs if function != "??"]
    return found


def _source(place: str) -> str:
    """`/anywhere/core/pages/../heap.c:90 (discriminator 2)` is `core/heap.c`."""
    path = posixpath.normpath(place.partition(":")[0])
    known = SOURCE.fullmatch(path)
    return known[1] if known else path


def symbols(program: str) -> dict[int, str]:
    """Where the program's functions begin, in order."""
    found = {}
    for line in programs.run_under((), _tool("nm"), ["--defined-only", "--numeric-sort", program]).decode().splitlines():
        words = line.split()
        if len(words) == 3 and words[1] in "tTwW":
            found[int(words[0], 16)] = words[2]
    return found


class Code:
    """What callgrind saw of the program's code: which part each address belongs to.

    A function is known by where it begins: callgrind's own names for it differ with the file that a line of it is from.
    """

    def __init__(self, profile: Profile, program: str, requests: str = WATCHED[0]) -> None:
        self._program, self._requests = program, requests
        self._names = symbols(program)
        self._begins = list(self._names)
        calls = [call for call in profile.calls.get(program, []) if call.object == program]
        addresses = sorted({*profile.costs.get(program, {}), *(call.at for call in calls), *(call.to for call in calls)})
        self.frames = frames(program, addresses)
        self._files = self._files_of_symbols()
        entries = {self._symbol(call.to) for call in calls if self.is_request(call.at)}
        policy = {self._symbol(call.to) for call in calls if self._symbol(call.at) in entries}
        self._first = entries | policy

    def _symbol(self, address: int) -> int:
        """Where the function of an address begins."""
        place = bisect.bisect_right(self._begins, address)
        return self._begins[place - 1] if place else 0

    def _name(self, address: int) -> str:
        return self._names.get(self._symbol(address), "")

    def _files_of_symbols(self) -> dict[int, str]:
        """The source file that most of a function's code is from, as single lines of it may be another's."""
        votes: dict[int, Counter[str]] = defaultdict(Counter)
        for address, found in self.frames.items():
            votes[self._symbol(address)].update(frame.file for frame in found[-1:])
        return {symbol: _most(counted) for symbol, counted in votes.items() if counted}

    def is_request(self, address: int) -> bool:
        """Whether it is the program's own, and makes requests."""
        return self._name(address).partition(".")[0] == self._requests

    def is_core(self, address: int) -> bool:
        return self._files.get(self._symbol(address), "").startswith("core/")

    def leaves(self, call: Call) -> bool:
        """Whether a call goes out of the core, or is the replay's own of a malloc."""
        return (self.is_core(call.at) or self.is_request(call.at)) and not (call.object == self._program and self.is_core(call.to))

    def frame(self, address: int) -> Frame:
        """The innermost function."""
        found = self.frames.get(address)
        return found[0] if found else Frame(self._name(address), self._files.get(self._symbol(address), ""))

    def part(self, address: int) -> str | None:
        """The part that an instruction of the core belongs to; None: not the core's."""
        if not self.is_core(address):
            return None
        if any(LOCKS.match(frame.function) for frame in self.frames.get(address, [])):
            return "locks"
        if self._files[self._symbol(address)].startswith(PAGES):
            return "pages"
        return "fast" if self._symbol(address) in self._first else "slow"


class Functions:
    """Costs by function, as far as they belong to one part."""

    def __init__(self) -> None:
        self._sums: dict[tuple[str, str], Sums] = defaultdict(lambda: [0] * len(FIGURES))
        self._files: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)

    def count(self, part: str | None, frame: Frame, cost: Sequence[int]) -> None:
        key = (frame.function, part or "")
        _add(self._sums[key], cost)
        self._files[key][frame.file] += cost[0]

    def costliest(self, most: int, operations: int) -> list[dict[str, Any]]:
        ordered = sorted(self._sums.items(), key=lambda item: (-item[1][0], item[0]))
        return [
            {"name": name, "file": self._file((name, part)), "part": part or None, **_each(sums, operations)}
            for (name, part), sums in ordered[:most]
        ]

    def _file(self, key: tuple[str, str]) -> str | None:
        """The file that most of it is from."""
        return _most(self._files[key]) or None


def group(profile: Profile, program: str, operations: int, functions: int, requests: str = WATCHED[0]) -> dict[str, Any]:
    """The `cost` group of a record. `requests`: the program's function that makes them."""
    code, named = Code(profile, program, requests), Functions()
    total = [0] * len(FIGURES)
    parts: dict[str, Sums] = {part: [0] * len(FIGURES) for part in PARTS}

    def count(part: str | None, frame: Frame, cost: Sequence[int]) -> None:
        _add(total, cost)
        named.count(part, frame, cost)
        if part:
            _add(parts[part], cost)

    own = {address: cost for address, cost in profile.costs.get(program, {}).items() if code.is_core(address)}
    for address, cost in own.items():
        count(code.part(address), code.frame(address), cost)
    for call in profile.calls.get(program, []):
        if code.leaves(call):
            count(code.part(call.at), Frame(call.name, ""), call.cost)
    return {
        "tool": tool(),
        "cache_model": CACHE_MODEL,
        "operations": operations,
        **_each(total, operations),
        "parts": {part: _each(sums, operations) for part, sums in parts.items()} if own else None,
        **({"functions": named.costliest(functions, operations)} if functions else {}),
    }


def _each(sums: Sums, operations: int) -> dict[str, float | None]:
    """Of each of FIGURES how many there are in one operation."""
    return {name: round(figure / operations, DECIMALS) if operations else None for name, figure in zip(FIGURES, sums, strict=True)}
