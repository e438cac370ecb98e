"""The programs that run under each allocator: real ones, and the classic generators of slabyard-threads.

A program is a command with fixed input whose output is the same whatever serves its memory: the harness compares it with that
of the first allocator, so that a fast wrong answer is no result. Inputs are made here, the same on every machine. Most
commands run for about a second.

Redis is two programs: the server under test, and its own benchmark program that drives it. Time is the benchmark's from its first
request to its last, processor time and memory are the server's; what is compared is what the server holds in the end.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
SCRIPTS = HERE / "scripts"

# Starts a command, with its environment and standard input, under the allocator; its output goes to a file.
Launch = Callable[[Sequence[str], dict[str, str], Path | None, Path], "subprocess.Popen[bytes]"]


@dataclass(frozen=True)
class Program:
    """One benchmark program."""

    name: str
    what: str
    command: tuple[str, ...]
    needs: str  # command that must be there
    package: str  # of Debian, that has it
    threads: bool = False  # a generator with threads
    stdin: Path | None = None
    environment: dict[str, str] = field(default_factory=dict)
    compare: bool = True  # its output is the same each time
    drive: Callable[[Program, Launch, Path], dict[str, Any]] | None = None

    def missing(self) -> bool:
        return shutil.which(self.needs) is None


# ---- Inputs ------------------------------------------------------------------------------------------------------


def _random(seed: int) -> Callable[[int], int]:
    """A generator of numbers below a bound, the same in every Python."""
    state = [seed * 2654435761 % 2**32 or 1]

    def below(bound: int) -> int:
        state[0] = (state[0] * 6364136223846793005 + 1442695040888963407) % 2**64
        return (state[0] >> 33) % bound

    return below


def _words(count: int) -> list[str]:
    below = _random(7)
    return ["".join("etaoinshrdlucmf"[below(15)] for _ in range(2 + below(10))) for _ in range(count)]


def make_inputs(folder: Path, chosen: Sequence[Program]) -> None:
    """Writes every input file that these programs read and that is not there yet."""
    folder.mkdir(parents=True, exist_ok=True)
    makers = {"words.txt": _make_words, "records.json": _make_records, "unit.c": _make_c, "repository.git": _make_repository}
    for name, make in makers.items():
        path = folder / name
        if not path.exists() and any(str(path) in program.command for program in chosen):
            part = folder / f"{name}.part"
            if part.is_dir():
                shutil.rmtree(part)
            make(part)
            part.replace(path)


def _make_words(path: Path) -> None:
    below, words = _random(11), _words(9000)
    with path.open("w") as out:
        for _ in range(60000):
            out.write(" ".join(words[below(len(words))] for _ in range(10)) + "\n")


def _make_records(path: Path) -> None:
    below, words = _random(13), _words(4000)
    with path.open("w") as out:
        for number in range(16000):
            tags = ", ".join(f'"{words[below(4000)]}"' for _ in range(below(9)))
            parts = ", ".join(f'{{"k": "{words[below(4000)]}", "v": {below(10**6)}}}' for _ in range(below(6)))
            out.write(f'{{"id": {number}, "name": "{words[below(4000)]}", "tags": [{tags}], "parts": [{parts}]}}\n')


def _make_c(path: Path) -> None:
    """Functions of the usual kind: loops, switches, structures, calls."""
    below = _random(17)
    lines = ["struct s { int a, b; double c; struct s *next; };", "extern int sink(int, double, struct s *);"]
    for number in range(60):
        lines.append(f"int f{number}(int n, struct s *p) {{ int t = {number}; double d = n;")
        for _ in range(6):
            kind, constant = below(4), below(1000)
            if kind == 0:
                bit = 1 << below(9)
                lines.append(f" for (int i = 0; i < n; i++) {{ t += i * {constant}; d = d * 0.5 + t; if (t & {bit}) p->a ^= t; }}")
            elif kind == 1:
                cases = " ".join(f"case {c}: t += {below(99)} * p->b; break;" for c in range(6))
                lines.append(f" switch (t % 7) {{ {cases} default: t--; }}")
            elif kind == 2:
                lines.append(f" while (p && p->a > {constant}) {{ p->c += d / (t | 1); p = p->next; }}")
            else:
                lines.append(f" t += sink(t + {constant}, d, p){f' + f{below(number)}(t, p)' if number else ''};")
        lines.append(" return t + (int)d; }")
    path.write_text("\n".join(lines) + "\n")


def _make_repository(path: Path) -> None:
    """A history of commits in loose form and packs, through git fast-import."""
    if shutil.which("git") is None:
        path.mkdir()
        return
    below, words = _random(19), _words(3000)
    names = [f"src/{words[n]}/{words[n + 1]}{n}.txt" for n in range(160)]
    files = {name: [" ".join(words[below(3000)] for _ in range(8)) for _ in range(60)] for name in names}
    stream: list[str] = []
    for commit in range(900):
        stream.append(
            f"commit refs/heads/main\nmark :{commit + 1}\ncommitter A <a@example.org> {1600000000 + commit * 977} +0000\n"
            f"data <<E\n{' '.join(words[below(3000)] for _ in range(9))}\nE\n" + (f"from :{commit}\n" if commit else "")
        )
        for name in names if commit == 0 else [names[below(len(names))] for _ in range(5)]:
            lines = files[name]
            for _ in range(4):
                lines[below(len(lines))] = " ".join(words[below(3000)] for _ in range(8))
            stream.append(f"M 100644 inline {name}\ndata <<E\n" + "\n".join(lines) + "\nE\n")
    subprocess.run(["git", "init", "-q", "--bare", str(path)], check=True)
    subprocess.run(["git", "-C", str(path), "fast-import", "--quiet", "--force"], input="".join(stream).encode(), check=True)


# ---- The list ----------------------------------------------------------------------------------------------------


def programs(inputs: Path, generator: str) -> list[Program]:
    """All of them. `generator`: the path of slabyard-threads."""
    python = os.path.realpath(sys.executable)
    git = ("git", "--no-pager", "-C", str(inputs / "repository.git"), "log", "-p", "--stat", "-M", "main")
    gs = ("gs", "-q", "-dBATCH", "-dNOPAUSE", "-dSAFER", "-sDEVICE=ppmraw", "-r60", "-sOutputFile=-", str(SCRIPTS / "page.ps"))
    jq = ("jq", "-s", "-c", "-f", str(SCRIPTS / "group.jq"), str(inputs / "records.json"))
    cxx = ("g++", "-std=c++17", "-O1", "-S", str(SCRIPTS / "templates.cc"), "-o", "-")
    as_malloc = {"PYTHONMALLOC": "malloc", "PYTHONHASHSEED": "0"}
    redis = Program(
        "redis", "a server under its own benchmark", ("redis-server",), "redis-server", "redis-server redis-tools", drive=drive_redis
    )
    objects, text = (python, str(SCRIPTS / "objects.py")), ("perl", str(SCRIPTS / "text.pl"))
    query, digits = SCRIPTS / "query.sql", SCRIPTS / "digits.bc"
    found = [
        redis,
        Program("sqlite", "tables, indexes, queries in memory", ("sqlite3", ":memory:"), "sqlite3", "sqlite3", stdin=query),
        Program("cc", "compiles generated C, -O2", ("gcc", "-O2", "-S", "-x", "c", str(inputs / "unit.c"), "-o", "-"), "gcc", "gcc"),
        Program("c++", "compiles a program of templates", cxx, "g++", "g++"),
        Program("python", "json, ast, dictionaries; PYTHONMALLOC=malloc", objects, python, "python3", environment=as_malloc),
        Program("git", "the history of a repository, with patches", git, "git", "git"),
        Program("perl", "hashes, splitting, substitution", text, "perl", "perl", environment={"PERL_HASH_SEED": "0"}),
        Program("ghostscript", "renders curves and text", gs, "gs", "ghostscript"),
        Program("lua", "binary trees", ("lua5.4", str(SCRIPTS / "trees.lua")), "lua5.4", "lua5.4"),
        Program("awk", "counts words in arrays", ("gawk", "-f", str(SCRIPTS / "words.awk"), str(inputs / "words.txt")), "gawk", "gawk"),
        Program("jq", "filters and groups JSON", jq, "jq", "jq"),
        Program("bc", "numbers of hundreds of digits", ("bc", "-q"), "bc", "bc", stdin=digits),
        Program("z3", "solves constraints", ("z3", str(SCRIPTS / "solve.smt2")), "z3", "z3"),
    ]
    for name, what, options in GENERATED:
        command = (generator, "--allocator", "malloc:system", "--workload", *options.split())
        found.append(Program(name, what, command, generator, "", threads=True, compare=False))
    return found


# name, what it is, slabyard-threads' workload and options
GENERATED = (
    ("batches", "lifo, 2 threads, 16 to 256 bytes", "lifo --pin --threads 2 --operations 8000000"),
    ("queues", "fifo, 1 thread, 30,000 of 16 to 1024 bytes", "fifo --operations 6000000 --size 16-1024 --batch 30000"),
    ("shuffled", "10,000 of 64 bytes, random frees, 1 thread", "shuffled --operations 16000000"),
    ("larson", "bleeding server, 2 threads", "larson --pin --threads 2 --operations 5000000"),
    ("pipe", "producers to consumers, 2 and 2 threads", "pipe --pin --threads 2 --operations 4000000"),
    ("exchange", "random frees by any of 4 threads", "exchange --pin --threads 4 --operations 1000000"),
    ("large", "exchange of 20 kB to 2 MB, 60 live", "exchange --operations 6000 --batch 60 --size 20000-2000000"),
    ("hackbench", "messages, 20 and 20 threads", "hackbench --pin --threads 1 --operations 12000"),
    ("scratch", "false sharing, 2 threads", "scratch --pin --threads 2 --operations 3000000"),
    ("ageing", "drifting sizes, 2 threads", "ageing --pin --threads 2 --operations 1200000"),
)


# ---- Redis -------------------------------------------------------------------------------------------------------

_REDIS_OPTIONS = ("--save", "", "--appendonly", "no", "--port", "0", "--daemonize", "no", "--loglevel", "warning", "--activedefrag", "no")
_REDIS_TESTS = "set,get,incr,lpush,rpush,lpop,sadd,hset,spop,zadd,lrange_100,mset"
_REDIS_LOAD = ("-P", "16", "-q", "-n", "50000", "-c", "20", "-d", "200", "-r", "30000", "-t", _REDIS_TESTS)


def _ask_redis(socket: Path, *words: str) -> str:
    done = subprocess.run(["redis-cli", "-s", str(socket), *words], capture_output=True, text=True)
    return done.stdout.strip()


def drive_redis(program: Program, launch: Launch, folder: Path) -> dict[str, Any]:
    """Starts a server, runs the benchmark against it, ends it; `seconds` are the benchmark's."""
    socket = folder / "redis.sock"
    socket.unlink(missing_ok=True)
    command = [*program.command, *_REDIS_OPTIONS, "--unixsocket", str(socket), "--dir", str(folder)]
    server = launch(command, {}, None, folder / "redis.out")
    try:
        for _ in range(500):
            if _ask_redis(socket, "ping") == "PONG":
                break
            if server.poll() is not None:
                raise OSError("redis-server ended at once: " + (folder / "redis.out").read_text(errors="replace")[-200:])
            time.sleep(0.01)
        start = time.monotonic()
        done = subprocess.run(["redis-benchmark", "-s", str(socket), *_REDIS_LOAD], capture_output=True, text=True)
        seconds = time.monotonic() - start
        if done.returncode:
            raise OSError(f"redis-benchmark failed: {done.stderr.strip()[-200:]}")
        for number in range(4):
            _check_redis(socket, number)
    finally:
        with contextlib.suppress(OSError):
            _ask_redis(socket, "shutdown", "nosave")
        server.wait(timeout=30)
    return {"seconds": seconds, "output": "every value as it was set"}


def _check_redis(socket: Path, number: int) -> None:
    value = f"{number}-" * 300
    _ask_redis(socket, "set", f"check:{number}", value)
    if _ask_redis(socket, "get", f"check:{number}") != value:
        raise OSError("redis-server gave back another value than was set")
