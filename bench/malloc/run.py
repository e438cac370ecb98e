"""make bench-malloc: real programs and allocation benchmarks under several mallocs, interleaved, with time and peak memory.

Every program runs once under each allocator as a warm-up, in which it is verified that the allocator serves it (witness.c, preloaded too,
tells where malloc comes from) and that its output is right. Then come the counted rounds, interleaved: each program under each
allocator in turn, so that whatever slows the machine for a while slows all of them. Reported are medians of each round's ratio to glibc
and their intervals, geometric means of these, and ranks.

Time is the wall clock's; with --time cpu the processor time of all its threads, which says less of waiting but is worth more
on a machine that others use too. Memory is the peak of resident memory, of the largest process where a program is several.

Exit status: 0 done; 1 a program failed or gave a wrong answer under an allocator; 2 wrong usage, or a file that can't
be had; 4 a program or a peer is missing (named with how to install it; --only-found goes on without); 130 Ctrl-C.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import allocators
import programs
import tables
from allocators import Allocator
from programs import Program

from slabyard.base.errors import UserError
from slabyard.base.files import describe_os_error, read_text_if_there, whole_file
from slabyard.base.programs import last_line
from slabyard.base.table import Cell, Table, render

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
DONE, WRONG, USAGE, MISSING, INTERRUPTED = 0, 1, 2, 4, 130
LONGEST = 300  # seconds that one run may take


class Failed(Exception):
    """A program did not do what it should under an allocator; the text says what."""


class Bench:
    """The folder of what is built and made, and how a program is run there."""

    def __init__(self, work: Path) -> None:
        self.work = work
        self.measure, self.witness = work / "measure", work / "witness.so"

    def build(self) -> None:
        """Compiles the two helpers. OSError when there is no compiler."""
        self.work.mkdir(parents=True, exist_ok=True)
        for source, target, flags in (("measure.c", self.measure, []), ("witness.c", self.witness, ["-shared", "-fPIC"])):
            subprocess.run(["cc", "-std=c11", "-O2", "-Wall", *flags, str(HERE / source), "-o", str(target), "-ldl"], check=True)

    def run(self, program: Program, allocator: Allocator, verify: bool) -> dict[str, Any]:
        """One run: `seconds`, `cpu_seconds`, `peak_kb`, `output` (a hash). Failed when the program failed, or, if `verify`, when another
        malloc served it."""
        with tempfile.TemporaryDirectory(prefix="slabyard-bench-") as name:
            folder = Path(name)
            result, witness, output = folder / "result", folder / "witness", folder / "output"

            def launch(command: Any, more: dict[str, str], stdin: Path | None, out: Path) -> subprocess.Popen[bytes]:
                preload = f"{allocator.library}:{self.witness}" if verify else str(allocator.library)
                kept = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}
                environment = {**kept, "LC_ALL": "C.UTF-8", **allocator.environment, **program.environment, **more}
                if verify:
                    environment["BENCH_WITNESS"] = str(witness)
                with (stdin or Path(os.devnull)).open("rb") as source, out.open("wb") as sink:
                    return subprocess.Popen(
                        [str(self.measure), str(result), preload, *command],
                        env=environment, cwd=folder, stdin=source, stdout=sink, stderr=subprocess.STDOUT, start_new_session=True,
                    )  # fmt: skip

            found = self._drive(program, launch, folder, output)
            measured = json.loads(result.read_text()) if result.exists() else {"status": -1, "signal": 0}
            if measured["status"] != 0:
                how = f"ended by signal {measured['signal']}" if measured["signal"] else f"ended with status {measured['status']}"
                raise Failed(f"{how}: {_last_line(output if output.exists() else folder / 'redis.out')}")
            if verify:
                _check_witness(witness, allocator, program)
            return {**measured, **found}

    def _drive(self, program: Program, launch: programs.Launch, folder: Path, output: Path) -> dict[str, Any]:
        if program.drive:
            try:
                return program.drive(program, launch, folder)
            except (OSError, subprocess.SubprocessError) as error:
                raise Failed(str(error)) from error
        process = launch(program.command, {}, program.stdin, output)
        try:
            process.wait(LONGEST)
        except subprocess.TimeoutExpired:
            raise Failed(f"did not end within {LONGEST} s") from None
        finally:
            if process.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        if program.threads:
            return _generator_figures(output)
        return {"output": hashlib.sha256(output.read_bytes()).hexdigest()}


def _generator_figures(output: Path) -> dict[str, Any]:
    """A generator times its work itself: what it prepares is not the allocator's."""
    try:
        return {"seconds": json.loads(output.read_text())["seconds"], "output": ""}
    except (ValueError, KeyError):
        return {"output": ""}


def _last_line(path: Path) -> str:
    return last_line(read_text_if_there(path) or "", "it printed nothing")[:200]


def _check_witness(path: Path, allocator: Allocator, program: Program) -> None:
    """Failed unless malloc, free and realloc of every process come from the allocator's library."""
    lines = path.read_text().splitlines() if path.exists() else []
    if not lines:
        raise Failed(f"{program.command[0]} takes no preloaded library (is it linked statically?)")
    for line in lines:
        process, *homes = line.split("\t")
        for home in homes:
            if os.path.realpath(home) != os.path.realpath(allocator.library or ""):
                raise Failed(f"{Path(process).name} is served by {home}, not by {allocator.library}")


# ---- The rounds --------------------------------------------------------------------------------------------------


def compare(bench: Bench, chosen: list[Program], among: list[Allocator], rounds: int) -> dict[str, Any]:
    """Samples by program and allocator, what went wrong, and what was compared on which machine. Each round begins with another
    allocator, as the first may find the machine in another state than the last."""
    samples: dict[str, dict[str, list[dict[str, Any]]]] = {program.name: {one.name: [] for one in among} for program in chosen}
    expected: dict[str, str] = {}
    faults: list[str] = []
    out: set[tuple[str, str]] = set()
    for turn in range(rounds + 1):
        for program in chosen:
            first = turn % len(among)
            for allocator in among[first:] + among[:first]:
                if (program.name, allocator.name) in out:
                    continue
                try:
                    found = bench.run(program, allocator, verify=turn == 0)
                    right = expected.setdefault(program.name, found["output"])
                    if program.compare and found["output"] != right:
                        raise Failed("its output is another than under the first allocator")
                except Failed as fault:
                    out.add((program.name, allocator.name))
                    faults.append(f"{program.name} under {allocator.name}: {fault}")
                    _note(faults[-1])
                    continue
                if turn:
                    samples[program.name][allocator.name].append({key: found[key] for key in ("seconds", "cpu_seconds", "peak_kb")})
            _note(f"{'warm-up' if turn == 0 else f'round {turn} of {rounds}'}: {program.name}")
    return {
        "machine": tables.machine(),
        "allocators": {one.name: one.version for one in among},
        "programs": {program.name: program.what for program in chosen},
        "samples": samples,
        "faults": faults,
    }


def _note(text: str) -> None:
    print(f"bench-malloc: {text}", file=sys.stderr, flush=True)


# ---- The command line --------------------------------------------------------------------------------------------


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="bench-malloc", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--programs", metavar="A,B,...", help="of these alone (--list shows them)")
    parser.add_argument("--allocators", metavar="A,B,...", help="of these alone, as in glibc,mimalloc,slabyard:slub")
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="counted rounds (default: 5)")
    parser.add_argument("--time", choices=("wall", "cpu"), default="wall", help="which time the tables show (default: wall)")
    parser.add_argument("--ours", type=Path, metavar="PATH", help="libslabyard-malloc.so (default: of build/bench)")
    parser.add_argument("--also", metavar="NAME=PATH", action="append", default=[],
                        help="another libslabyard-malloc.so, as slabyard:NAME with its default policy: a version before, say")  # fmt: skip
    parser.add_argument("--generator", type=Path, metavar="PATH", help="slabyard-threads (default: of build/bench)")
    parser.add_argument("--specs", default="yard", metavar="A;B;...", help="what SLABYARD says to ours (default: yard)")
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "bench", metavar="FOLDER", help="for what is built and made")
    parser.add_argument("--only-found", action="store_true", help="go on without what is missing")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every sample")
    parser.add_argument("--merge", type=Path, nargs="+", metavar="FILE", help="tables of what --json wrote before; runs nothing")
    parser.add_argument("--docs", action="store_true", help="write the tables into docs/benchmarks.md")
    parser.add_argument("--list", action="store_true", help="the programs and allocators, and what is missing")
    return parser


def _choose(names: str | None, known: dict[str, Any], what: str) -> list[Any]:
    if names is None:
        return list(known.values())
    wanted = [name for name in names.split(",") if name]
    unknown = [name for name in wanted if name not in known]
    if unknown or not wanted:
        raise SystemExit(_usage(f"no {what} is called {unknown[0] if unknown else repr(names)}; there are {', '.join(known)}"))
    return [known[name] for name in wanted]


def _usage(message: str) -> int:
    _note(message)
    return USAGE


def _how_to_get(program: Program) -> str:
    return f"Debian: apt install {program.package}" if program.package else "make bench-malloc builds it, or name it with --generator PATH"


def main() -> int:
    options = _parser().parse_args()
    if options.rounds < 1:
        return _usage("--rounds must be 1 or more")
    if options.merge:
        return _tell(tables.merged(options.merge), options)
    options.work = options.work.resolve()  # programs run elsewhere
    ours = options.ours or options.work / "c" / "libslabyard-malloc.so"
    generator = options.generator or options.work / "c" / "slabyard-threads"
    if shutil.which("cc") is None:
        _note("cc is missing (Debian: apt install gcc libc6-dev)")
        return MISSING
    bench = Bench(options.work)
    bench.build()
    known = {program.name: program for program in programs.programs(options.work / "inputs", str(generator.resolve()))}
    if unnamed := [text for text in options.also if not all(text.partition("="))]:
        return _usage(f"--also {unnamed[0]}: it is NAME=PATH")
    wanted = options.allocators.split(",") if options.allocators else None
    there = [*allocators.find(options.work, ours.resolve(), options.specs.split(";"), wanted), *map(allocators.also, options.also)]
    if wanted and set(wanted) & set(allocators.HARDENED):
        there += allocators.hardened(options.work)
    peers = {one.name: one for one in there}
    chosen, among = _choose(options.programs, known, "program"), _choose(options.allocators, peers, "allocator")
    missing = [f"{program.name}: {program.needs} is missing; {_how_to_get(program)}" for program in chosen if program.missing()]
    missing += [f"{one.name} is missing; {one.hint}" for one in among if one.library is None]
    if options.list:
        return _list(chosen, among)
    for line in missing:
        _note(line)
    if missing and not options.only_found:
        _note("--only-found goes on without these")
        return MISSING
    chosen = [program for program in chosen if not program.missing()]
    among = [one for one in among if one.library is not None]
    if not chosen or not among:
        _note("nothing is left to compare")
        return MISSING
    programs.make_inputs(options.work / "inputs", chosen)
    with whole_file(options.json) if options.json else contextlib.nullcontext() as part:  # asked for before all is measured
        found = compare(bench, chosen, among, options.rounds)
        if part:
            part.write_text(json.dumps(found, indent=1) + "\n")
    return _tell(found, options)


def _tell(found: dict[str, Any], options: argparse.Namespace) -> int:
    print(tables.text(found, options.time))
    if options.docs:
        tables.write_docs(ROOT / "docs" / "benchmarks.md", tables.markdown(found, options.time))
        _note("wrote docs/benchmarks.md")
    return WRONG if found["faults"] else DONE


def _list(chosen: list[Program], among: list[Allocator]) -> int:
    rows: list[list[Cell]] = [
        [one.name, one.what, f"missing: {one.needs}; {_how_to_get(one)}" if one.missing() else one.needs] for one in chosen
    ]
    peers: list[list[Cell]] = [[one.name, one.version, str(one.library or f"missing: {one.hint}")] for one in among]
    heads = ["program", "what it does", "needs"], ["allocator", "version", "library"]
    print(render([Table("", heads[0], rows, whole=True), Table("", heads[1], peers, whole=True)], "text"), end="")
    return DONE


def _answer() -> int:
    try:
        return main()
    except UserError as error:
        return _usage(error.message)
    except OSError as error:
        return _usage(describe_os_error(error, error.filename or "standard output"))
    except KeyboardInterrupt:
        _note("interrupted")
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(_answer())
