"""Known bugs under several checkers: what each finds, what it calls it, and what it lets pass. Makes tables for docs/debugging.md.

    python bench/planted.py --json docs/debugging/planted.json            every column; keeps what was found before of others
    python bench/planted.py --json docs/debugging/planted.json --columns "glibc,slabyard all"
    python bench/planted.py --json docs/debugging/planted.json --columns "" --docs     writes the tables, runs nothing

The programs are those of tests/planted/: a source file has many bugs of one kind, and programs without any. Each runs by itself, once.
A checker has found a bug with the right kind if its report calls it what it is; for slabyard the first line must also have the right
address, and the report must name the functions that allocated and freed. A program that a signal ends without a report has crashed.

The tests use the same programs, and judge slabyard by the same rules (tests/python/test_planted.py).
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import re
import resource
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

from slabyard.base.errors import UserError
from slabyard.base.files import to_json, write_text
from slabyard.base.table import Cell, between, document

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "tests" / "planted"
DOCUMENT = ROOT / "docs" / "debugging.md"
BUILD = Path(os.environ.get("SLABYARD_BUILD", ROOT / "build" / "test"))  # where CMake builds the libraries
LONGEST_LINE = 82  # characters of what a bug is in tables
LONGEST = 30  # seconds that a program may take under a checker

KINDS = (
    "write past the end", "write before the start", "write after free", "double free", "interior free", "foreign free",
    "wrong size", "wrong cache", "changed constructed state", "leak", "silent",
)  # fmt: skip
PAST_END, BEFORE_START, AFTER_FREE, DOUBLE_FREE, INTERIOR, FOREIGN, WRONG_SIZE, WRONG_CACHE, STATE, LEAK, SILENT = KINDS
ON_MALLOC = (
    "overflow", "underflow", "use_after_free", "double_free", "bad_free", "races", "sizes", "cplusplus", "leaks", "silent",
    "silent_cplusplus",
)  # fmt: skip
ON_CACHES = ("caches", "kmem", "state")
PROGRAMS = (*ON_MALLOC, *ON_CACHES)
ALL_CHECKS = {"SLABYARD_DEBUG": "all"}
NO_NAMES = {"PATH": "/nonexistent"}  # of functions: addr2line is not found, which takes most of a run's time


# ---- Programs ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """What a program does by one of its arguments, `name`; `what`: in a line."""

    program: str
    name: str
    what: str

    def __str__(self) -> str:
        return f"{self.program}/{self.name}"


@dataclass(frozen=True)
class Bug(Case):
    """`found`: the functions that a report must name."""

    kind: str
    found: tuple[str, ...]


def source(program: str) -> Path:
    return next(path for path in (SOURCES / f"{program}.c", SOURCES / f"{program}.cc") if path.exists())


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Nobody else builds there meanwhile."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def build_libraries() -> None:
    """libslabyard.so and libslabyard-malloc.so, of this tree."""
    with alone(BUILD):
        _do(["cmake", "-S", str(ROOT), "-B", str(BUILD), "-DSLABYARD_WERROR=ON"])
        _do(["cmake", "--build", str(BUILD), "-j2", "--target", "slabyard_shared", "slabyard_malloc"])


def build(*options: str, folder: str = "planted", programs: Sequence[str] = PROGRAMS) -> Path:
    """The programs, in a folder of BUILD."""
    made = BUILD / folder
    with alone(made), ThreadPoolExecutor(2) as pool:
        jobs = [pool.submit(compile_program, source(program), made / program, program in ON_CACHES, *options) for program in programs]
        jobs.append(pool.submit(compile_program, source("plugin"), made / "plugin.so", False, *options, "-shared", "-fPIC"))
        for job in jobs:
            job.result()
    return made


def compile_program(path: Path, target: Path, on_caches: bool, *options: str) -> None:
    """Makes a program, if it is older than its source or a header. on_caches: it is linked with libslabyard.so."""
    inputs = [path, *path.parent.glob("*.h"), *(ROOT / "include" / "slabyard").glob("*.h")]
    if target.exists() and target.stat().st_mtime > max(one.stat().st_mtime for one in inputs):
        return
    words = ["c++", "-std=c++17", "-fsized-deallocation"] if path.suffix == ".cc" else ["cc", "-std=gnu11"]
    words += ["-g", "-O1", "-Wall", "-Wextra", "-pthread", *options, str(path), "-o", str(target)]
    if on_caches:
        words += [f"-I{ROOT / 'include'}", f"-L{BUILD}", f"-Wl,-rpath,{BUILD}", "-lslabyard"]
    _do(words)


def _do(words: list[str]) -> None:
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        raise UserError(f"{' '.join(words[:4])} … failed:\n{done.stdout[-1000:]}{done.stderr[-3000:]}")


@cache
def bugs(made: Path, program: str) -> tuple[Bug, ...]:
    """All of a program's, in the order of its source, whose comments say what they do."""
    listed = subprocess.run([made / program, "--list"], capture_output=True, text=True, check=True, env=_environment({})).stdout
    rows = {row[0]: row for row in (line.split("\t") for line in listed.splitlines())}
    told = comments(source(program), rows)
    return tuple(Bug(program, name, what, rows[name][1], tuple(rows[name][2].split())) for name, what in told.items())


def comments(path: Path, names: Collection[str]) -> dict[str, str]:
    """What each of a program's cases does, in the order of its source, whose comments say so."""
    told = {name: what for what, name in re.findall(r"^/\* (.*?)\.? \*/\n[A-Z_]+\((\w+)", path.read_text(), re.MULTILINE)}
    if sorted(told) != sorted(names):
        raise UserError(f"{path}: not every case has a comment of one line: {set(names) ^ set(told)}")
    return told


# ---- Runs --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Place:
    """What a report may say: the kind, an address from the first to the last, and the size of a leak."""

    kind: str
    first: int
    last: int
    size: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.first:#x}" + (f" to {self.last:#x}" if self.last > self.first else "")

    def fits(self, kind: str, address: str) -> bool:
        return kind == self.kind and self.first <= int(address, 16) <= self.last


@dataclass(frozen=True)
class Run:
    """How a program ended: as subprocess has it, None if it did not; what it printed, and what was expected."""

    status: int | None
    out: str
    err: str

    @property
    def expected(self) -> list[Place]:
        """All the answers that are right."""
        lines = re.findall(r"^expect (.+?) (0x[0-9a-f]+)(?:-(0x[0-9a-f]+))? ?(\d*)$", self.out, re.MULTILINE)
        return [Place(kind, int(first, 16), int(last or first, 16), size) for kind, first, last, size in lines]

    @property
    def absent(self) -> bool:
        """What the bug needs is not there."""
        return self.out == "absent\n"


def _environment(more: dict[str, str]) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}
    return {**kept, "LC_ALL": "C.UTF-8", **more}


def _no_core() -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def run(made: Path, case: Case, environment: dict[str, str], before: Sequence[str] = ()) -> Run:
    """Runs one program. Its random numbers, and so its addresses, are its own."""
    words = [*before, str(made / case.program), case.name]
    try:
        done = subprocess.run(
            words, env=_environment(environment), capture_output=True, stdin=subprocess.DEVNULL, timeout=LONGEST, preexec_fn=_no_core
        )
    except subprocess.TimeoutExpired:
        return Run(None, "", "")
    return Run(done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))


def ours(bug: Bug, spec: str, more: dict[str, str]) -> dict[str, str]:
    """The environment in which a program is on slabyard: its malloc preloaded, or its heap by the same specification."""
    preload = {} if bug.program in ON_CACHES else {"LD_PRELOAD": str(BUILD / "libslabyard-malloc.so")}
    return {"SLABYARD": spec, **preload, **more}


def fault(bug: Bug, done: Run, named: bool = True) -> str | None:
    """What is wrong with slabyard's report of a bug, or None. named: whether it has to name the functions."""
    if done.absent:
        return None
    if bug.kind == SILENT:
        return None if done.status == 0 and not done.err and not done.out else f"{bug}: status {done.status}, {_first(done.err)}"
    told = re.findall(r"^slabyard: ([a-z ]+): (0x[0-9a-f]+)", done.err, re.MULTILINE)
    if not done.expected:
        return f"{bug}: it did not get as far as its bug: status {done.status}, {_first(done.err)}"
    right = [[place for place in done.expected if place.fits(*one)] for one in told]
    if done.status != (0 if bug.kind == LEAK else -6) or not right or not (all(right) if bug.kind == LEAK else right[0]):
        return f"{bug}: status {done.status}, {_first(done.err)} in place of {' or '.join(map(str, done.expected))}"
    if bug.kind == LEAK and not all(re.search(rf"\b{place.size}\b", done.err) for places in right for place in places):
        return f"{bug}: the report has not the size, {right[0][0].size}"
    if bug.kind != LEAK and not done.err.startswith("slabyard: "):
        return f"{bug}: the report begins with {_first(done.err)}"
    missing = [name for name in bug.found if named and name not in done.err]
    return f"{bug}: {', '.join(missing)} not in the report" if missing else None


def _first(text: str) -> str:
    """The first line of a report that says something."""
    lines = [re.sub(r"^(==|\*\*)\d+(==|\*\*)\s*", "", line).strip() for line in text.splitlines()]
    return next((line for line in lines if re.search(r"\w", line)), "nothing was said")[:160]


# ---- Checkers ----------------------------------------------------------------------------------------------------

RIGHT, DETECTED, CRASHED, PASSED, ALARM, NOT_RUN = "right kind", "detected", "crashed", "silent", "false alarm", "-"
SIGNS = {RIGHT: "✓", DETECTED: "!", CRASHED: "†", PASSED: "·", ALARM: "✗", NOT_RUN: " "}
Rules = tuple[tuple[str, tuple[str, ...]], ...]

# What a report says, and the kinds of bug for which that is the right word. The first rule that fits counts.
GLIBC: Rules = (
    (r"double free", (DOUBLE_FREE,)),
    (r"(free|munmap_chunk|realloc)\(\): invalid pointer", (INTERIOR, FOREIGN)),
    (r"malloc|free\(\)|realloc\(\)|corrupt", ()),
)
MIMALLOC: Rules = (
    (r"double free detected", (DOUBLE_FREE,)),
    (r"buffer overflow in t?heap block", (PAST_END,)),
    (r"unaligned\) pointer|invalid pointer|does not point to a valid heap|pointer might not point to a valid heap", (INTERIOR, FOREIGN)),
    (r"mimalloc: (error: (?!allocation request)|assertion)", ()),
)
ASAN: Rules = (
    (r"attempting double-free", (DOUBLE_FREE,)),
    (r"heap-use-after-free", (AFTER_FREE,)),
    (r"heap-buffer-overflow(?s:.*) (to the right of|after) \d+-byte region", (PAST_END,)),
    (r"heap-buffer-overflow(?s:.*) (to the left of|before) \d+-byte region", (BEFORE_START,)),
    (r"attempting free on address which was not malloc(?s:.*)inside of \d+-byte region", (INTERIOR,)),
    (r"attempting free on address which was not malloc", (FOREIGN,)),
    (r"alloc-dealloc-mismatch", (WRONG_CACHE,)),
    (r"new-delete-type-mismatch", (WRONG_SIZE,)),
    (r"detected memory leaks", (LEAK,)),
    (r"ERROR: \w+Sanitizer|DEADLYSIGNAL", ()),
)
VALGRIND: Rules = (
    (r"Invalid free\(\)(?s:.*)is 0 bytes inside a block of size [\d,]+ free'd", (DOUBLE_FREE,)),
    (r"Invalid free\(\)(?s:.*)inside a block of size [\d,]+ alloc'd", (INTERIOR,)),
    (r"Invalid free\(\)", (FOREIGN,)),
    (r"Mismatched (free\(\)|.* size)", (WRONG_CACHE, WRONG_SIZE)),
    (r"Invalid (write|read) (?s:.*?)Address \S+ is [\d,]+ bytes after a block of size [\d,]+ alloc'd", (PAST_END,)),
    (r"Invalid (write|read) (?s:.*?)Address \S+ is [\d,]+ bytes before a block of size [\d,]+ alloc'd", (BEFORE_START,)),
    (r"Invalid (write|read) (?s:.*?)Address \S+ is [\d,]+ bytes inside a block of size [\d,]+ free'd", (AFTER_FREE,)),
    (r"definitely lost", (LEAK,)),
    (r"(?m)^==\d+== \w", ()),
)

VALGRIND_COMMAND = ("valgrind", "-q", "--leak-check=full", "--show-leak-kinds=definite")


@dataclass(frozen=True)
class Checker:
    """A column: how a program is run, and how the report is read. Without rules: slabyard's, which `fault` judges."""

    name: str
    version: str
    environment: dict[str, str] = field(default_factory=dict)
    before: tuple[str, ...] = ()
    rules: Rules = ()
    folder: str = "planted"
    options: tuple[str, ...] = ()

    @property
    def slabyard(self) -> bool:
        return not self.rules

    def judge(self, bug: Bug, done: Run) -> str:
        if done.absent:
            return NOT_RUN
        said = next((kinds for pattern, kinds in self.rules if re.search(pattern, done.err)), None)
        if self.slabyard:
            said = (bug.kind,) if fault(bug, done) is None and bug.kind != SILENT else () if done.err.startswith("slabyard: ") else None
        if bug.kind == SILENT:
            return PASSED if said is None and done.status == 0 else ALARM
        if said is not None:
            return RIGHT if bug.kind in said else DETECTED
        return CRASHED if done.status is None or done.status < 0 else PASSED  # 3: the program itself has noticed


def _version(*words: str) -> str:
    return subprocess.run(words, capture_output=True, text=True).stdout.strip().splitlines()[0]


@cache
def _mimalloc(name: str, *options: str) -> tuple[str, Path]:
    """mimalloc of the sources that bench-malloc has from the cargo registry, built as its authors build it with checks."""
    sys.path.insert(0, str(ROOT / "bench" / "malloc"))
    allocators: Any = __import__("allocators")
    vendor = ROOT / "build" / "bench" / "crates" / "vendor"
    if not vendor.is_dir() and (wrong := allocators._fetch(vendor)):
        raise UserError(f"mimalloc is built from the cargo registry: {wrong} is missing")
    crate = next(iter(sorted(vendor.glob("libmimalloc-sys-[0-9]*"))))
    top, library = crate / "c_src" / "mimalloc" / "v3", vendor.parent / f"lib{name}.so"
    if not library.exists():
        _do(["cc", "-O2", "-DMI_MALLOC_OVERRIDE", "-DMI_SHARED_LIB", "-DMI_SHARED_LIB_EXPORT", "-fPIC", "-shared", *options,
             "-ftls-model=initial-exec", "-fno-builtin-malloc", "-fvisibility=hidden", f"-I{top / 'include'}",
             str(top / "src" / "static.c"), "-o", str(library), "-lpthread"])  # fmt: skip
    return allocators._mimalloc_version(crate), library


def _mimalloc_checker(name: str, what: str, *options: str) -> Checker:
    version, library = _mimalloc(name, *options)
    return Checker(what, version, {"LD_PRELOAD": str(library), "MIMALLOC_SHOW_ERRORS": "1"}, rules=MIMALLOC)


def _sanitizer() -> Checker:
    options = ("-fsanitize=address", "-Wno-free-nonheap-object")
    said = {"ASAN_OPTIONS": "detect_leaks=1:allocator_may_return_null=1"}
    return Checker("ASan", _version("cc", "-dumpfullversion"), said, (), ASAN, "planted-asan", options)


def _glibc() -> str:
    return os.confstr("CS_GNU_LIBC_VERSION") or "?"


CHECKERS: dict[str, Callable[[], Checker]] = {
    "glibc": lambda: Checker("glibc", _glibc(), rules=GLIBC),
    "glibc check": lambda: Checker("glibc check", _glibc(), {"LD_PRELOAD": "libc_malloc_debug.so.0", "MALLOC_CHECK_": "3"}, rules=GLIBC),
    "mi secure": lambda: _mimalloc_checker("mimalloc-secure", "mi secure", "-DNDEBUG", "-DMI_SECURE=4"),
    "mi debug": lambda: _mimalloc_checker("mimalloc-debug", "mi debug", "-DMI_DEBUG=3"),
    "ASan": _sanitizer,
    "valgrind": lambda: Checker("valgrind", _version("valgrind", "--version"), {}, VALGRIND_COMMAND, VALGRIND),
    "slabyard": lambda: Checker("slabyard", "this tree"),
    "slabyard all": lambda: Checker("slabyard all", "this tree", ALL_CHECKS),
}


def _cell(checker: Checker, made: Path, bug: Bug) -> dict[str, str]:
    if not checker.slabyard and bug.program in ON_CACHES:
        return {"found": NOT_RUN, "says": ""}
    environment = ours(bug, "yard", checker.environment) if checker.slabyard else checker.environment
    done = run(made, bug, environment, checker.before)
    says = re.sub(r"0x[0-9a-fA-F]+", "0x…", _first(done.err.replace(f"{ROOT}/", ""))) if done.err else ""
    return {"found": checker.judge(bug, done), "says": says}


def column(checker: Checker, jobs: int) -> dict[str, dict[str, str]]:
    """What a checker finds, by bug."""
    plain = build()
    made = plain if checker.folder == "planted" else build(*checker.options, folder=checker.folder, programs=ON_MALLOC)
    chosen = [bug for program in PROGRAMS for bug in bugs(plain, program)]
    with ThreadPoolExecutor(jobs) as pool:
        return dict(zip(map(str, chosen), pool.map(partial(_cell, checker, made), chosen), strict=True))


# ---- Tables ------------------------------------------------------------------------------------------------------


def _columns(record: dict[str, Any]) -> list[str]:
    return [name for name in CHECKERS if name in record["checkers"]]


def by_kind(record: dict[str, Any]) -> str:
    """How many of each kind are found: of a cell with two figures the second is of those that were not called what they are. Checkers
    of malloc run only programs on malloc."""
    rows: list[list[Cell]] = []
    columns = _columns(record)
    for kind in KINDS:
        of_kind = {name: bug for name, bug in record["bugs"].items() if bug["kind"] == kind}
        on_malloc = sum(name.split("/")[0] in ON_MALLOC for name in of_kind)
        cells = (_count(list(of_kind.values()), name) for name in columns)
        rows.append([kind if kind != SILENT else "no bug: false alarms", len(of_kind), on_malloc, *cells])
    return document(("kind", "bugs", "of malloc", *columns), rows)


def _count(of_kind: list[dict[str, Any]], column: str) -> Cell:
    counts = Counter(bug["by"].get(column, {"found": NOT_RUN})["found"] for bug in of_kind)
    if counts[NOT_RUN] == len(of_kind):
        return None
    if counts[ALARM] or counts[RIGHT] + counts[DETECTED] + counts[CRASHED] == 0:
        return str(counts[ALARM])
    return f"{counts[RIGHT]}" + (f" + {counts[DETECTED] + counts[CRASHED]}" if counts[DETECTED] + counts[CRASHED] else "")


def full_list(record: dict[str, Any]) -> str:
    """Every bug, a table for each kind."""
    columns, parts = _columns(record), []
    for kind in KINDS:
        rows: list[list[Cell]] = [
            [bug["what"].replace("|", "\\|"), *(SIGNS[bug["by"].get(name, {"found": NOT_RUN})["found"]] for name in columns)]
            for bug in record["bugs"].values() if bug["kind"] == kind
        ]  # fmt: skip
        parts.append(document((kind if kind != SILENT else "no bug", *columns), rows))
    return "\n\n".join(parts)


def write_tables(path: Path, script: str, tables: dict[str, str]) -> None:
    """Writes the tables that a script makes into a document, each between its marks."""
    text = path.read_text()
    for name, body in tables.items():
        text = between(text, f"<!-- {name}: made by bench/{script}.py -->", f"<!-- end of {name} -->", f"\n{body}\n")
    write_text(path, text)


# ---- The command line --------------------------------------------------------------------------------------------


def parser_of(script: str, told: str | None, path: Path) -> argparse.ArgumentParser:
    """With the options that scripts which make tables of programs' runs have in common; told: the script's own comment."""
    parser = argparse.ArgumentParser(prog=script, description=(told or "").splitlines()[0])
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="programs that run at once (default: 2)")
    parser.add_argument("--docs", action="store_true", help=f"write what is made into {path.relative_to(ROOT)}")
    return parser


def _parser() -> argparse.ArgumentParser:
    parser = parser_of("planted", __doc__, DOCUMENT)
    parser.add_argument("--columns", default=",".join(CHECKERS), metavar="A,B,...", help=f"run these (default: {', '.join(CHECKERS)})")
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep the record here; other columns of the file stay")
    return parser


def measure(record: dict[str, Any], names: Sequence[str], jobs: int, kept: Path | None) -> None:
    """Runs columns into a record, which is written after each. Bugs that are no more leave it, with all that was found of them."""
    made, before = build(), record.get("bugs", {})
    chosen = [bug for program in PROGRAMS for bug in bugs(made, program)]
    record["bugs"] = {
        str(bug): {"kind": bug.kind, "what": bug.what, "by": before.get(str(bug), {}).get("by", {})} for bug in chosen
    }  # fmt: skip
    for name in names:
        checker = CHECKERS[name]()
        record.setdefault("checkers", {})[name] = checker.version
        for bug, cell in column(checker, jobs).items():
            record["bugs"][bug]["by"][name] = cell
        if kept:
            write_text(kept, to_json(record))
        print(f"planted: {name} has run", file=sys.stderr, flush=True)


def main() -> int:
    options = _parser().parse_args()
    names = [name for name in options.columns.split(",") if name]
    if unknown := [name for name in names if name not in CHECKERS]:
        print(f"planted: no column is called {unknown[0]}; there are {', '.join(CHECKERS)}", file=sys.stderr)
        return 2
    try:
        record = json.loads(options.json.read_text()) if options.json and options.json.exists() else {"checkers": {}, "bugs": {}}
        if names:
            if "valgrind" in names and shutil.which("valgrind") is None:
                raise UserError("valgrind is missing (Debian: apt install valgrind)")
            build_libraries()
            measure(record, names, options.jobs, options.json)
        print(by_kind(record))
        if options.docs:
            write_tables(DOCUMENT, "planted", {"planted": by_kind(record), "list": full_list(record)})
    except UserError as error:
        print(f"planted: {error.message}", file=sys.stderr)
        return error.status
    return 0


if __name__ == "__main__":
    sys.exit(main())
