"""PLAN.toml: a matrix of runs, and each run of it.

    repetitions = 6                          # of every run (default: 6, the fewest for a 95% interval)
    [[matrix]]
    substrate = "replay"                     # or threads, kernel
    traces = ["traces/*.parquet"]            # beside the plan
    allocators = ["slub", "slab", "slob:fit=best"]
    vary = { slub = "max_order=0..3,cpu_partial=0,8" }
    cpus = [1, 2]
    [[matrix]]
    substrate = "threads"
    workloads = ["larson"]
    allocators = ["slub", "malloc:system"]
    threads = [1, 2]
    seeds = [0, 1]

Of each table every combination of its lists is a cell, and each cell is run so often as there are repetitions. Tables may share cells;
these are run once. `vary` makes settings of an allocator, as `slabyard tune --vary` does, beside the plain one.

A run has a key: a hash of all that makes it what it is, the trace's content among that, so that a plan may be changed, moved and cut in
parts: what was done stays done. Repetitions come in turns, A B C A B C, as in a comparison.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ..base.errors import UserError
from ..base.files import describe_os_error, sha256
from ..results.measures import USUAL_RUNS
from ..trace.snapshots import UNITS
from ..tune import space

MOST_RUNS = 1_000_000
_DEEP = re.compile(rb"""(?<![\w"'-])(?:[\w"'-]++[ \t]*+\.[ \t]*+){100}""")  # a key of so many parts

# Of each substrate the lists that a table may have, with their defaults; None stands for what the workload or machine has by itself.
LISTS: dict[str, dict[str, list[Any]]] = {
    "replay": {"cpus": [None], "nodes": [None], "memory": [None], "start": [None]},
    "threads": {"threads": [1], "operations": [None], "size": [None], "batch": [None], "seeds": [0]},
    "kernel": {"arch": ["um"], "cpus": [None], "nodes": [None], "memory": [None]},
}
TEXTS = {"size", "start", "arch"}
PLURAL = {"seeds": "seed"}
STARTS, ARCHITECTURES = ("recorded", "empty"), ("um", "x86_64")


@dataclass(frozen=True)
class Run:
    """One run. What its substrate has not is None."""

    substrate: str
    workload: str
    allocator: str
    repetition: int
    trace: str | None = None  # where it is; no part of the key
    trace_sha256: str | None = None
    cpus: int | None = None
    nodes: int | None = None
    memory: int | None = None
    start: str | None = None
    threads: int | None = None
    operations: int | None = None
    size: str | None = None
    batch: int | None = None
    arch: str | None = None
    seed: int | None = None

    @cached_property
    def key(self) -> str:
        """The same wherever and whenever this run is planned."""
        told = {name: value for name, value in asdict(self).items() if name != "trace" and value is not None}
        return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:24]

    @property
    def title(self) -> str:
        return f"{self.substrate} of {self.workload} under {self.allocator}, run {self.repetition}"


@dataclass(frozen=True)
class Plan:
    """The runs of a plan, each key once, in the order in which they are to be done."""

    path: Path
    runs: tuple[Run, ...]


def read(path: Path) -> Plan:
    """UserError for what is no plan, or names what there is not."""
    try:
        with path.open("rb") as file:
            text = file.read()
        if _DEEP.search(text):  # tomllib takes the square of their number for it
            raise RecursionError
        found = tomllib.loads(text.decode())
    except OSError as error:
        raise UserError(describe_os_error(error, path)) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: no TOML: {error}") from None
    except RecursionError:
        raise UserError(f"{path}: no TOML: its lists or keys are too deep") from None
    _only(found, ("repetitions", "matrix"), str(path))
    tables = found.get("matrix")
    if not isinstance(tables, list) or not tables or not all(isinstance(one, dict) for one in tables):
        raise UserError(f"{path}: has no [[matrix]] table; slabyard sweep --help shows one")
    repetitions = _count(found.get("repetitions", USUAL_RUNS), "repetitions", str(path))
    runs: dict[str, Run] = {}
    for number, table in enumerate(tables, 1):
        for run in _runs(table, repetitions, path.parent, f"{path}: [[matrix]] {number}"):
            runs.setdefault(run.key, run)
            if len(runs) > MOST_RUNS:
                raise UserError(f"{path}: more than {MOST_RUNS:,} runs; cut it in parts")
    return Plan(path, tuple(runs.values()))


def _runs(table: Mapping[str, Any], repetitions: int, folder: Path, where: str) -> Iterator[Run]:
    substrate = table.get("substrate", "replay")
    if substrate not in LISTS:
        raise UserError(f"{where}: there is no substrate {substrate!r}; there are {', '.join(LISTS)}")
    works = "traces" if substrate == "replay" else "workloads"
    lists = LISTS[substrate]
    _only(table, ("substrate", works, "allocators", "vary", "repetitions", *lists), where)
    repetitions = _count(table.get("repetitions", repetitions), "repetitions", where)
    names = _texts(table, works, where)
    specs = _specs(table, where)
    _check(substrate, specs, names, where)
    axes = {PLURAL.get(name, name): _list(table, name, default, where) for name, default in lists.items()}
    workloads = _traces(names, folder, where) if substrate == "replay" else [{"workload": name} for name in names]
    for workload in workloads:
        for values in itertools.product(*axes.values()):
            cell: dict[str, Any] = {**workload, **dict(zip(axes, values, strict=True))}
            for repetition in range(1, repetitions + 1):
                for spec in specs:
                    yield Run(substrate=substrate, allocator=spec, repetition=repetition, **cell)


def _only(table: Mapping[str, Any], known: Sequence[str], where: str) -> None:
    for name in table:
        if name not in known:
            raise UserError(f"{where}: {name} is unknown here; there are {', '.join(known)}")


def _count(value: Any, name: str, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 100000:
        raise UserError(f"{where}: {name} is {value!r}, and must be a number from 1 to 100,000")
    return value


def _texts(table: Mapping[str, Any], name: str, where: str) -> list[str]:
    found = table.get(name)
    if not isinstance(found, list) or not found or not all(isinstance(one, str) and one for one in found):
        raise UserError(f"{where}: needs {name}, a list of texts")
    return list(dict.fromkeys(found))


def _list(table: Mapping[str, Any], name: str, default: list[Any], where: str) -> list[Any]:
    if name not in table:
        return default
    found = table[name] if isinstance(table[name], list) else [table[name]]
    if name == "memory":
        found = [_bytes(one, where) for one in found]
    kind = str if name in TEXTS else int
    least = 0 if name == "seeds" else 1
    if not found or not all(isinstance(one, kind) and not isinstance(one, bool) for one in found):
        raise UserError(f"{where}: {name} must be a list of {'texts' if kind is str else 'numbers'}")
    if kind is int and min(found) < least:
        raise UserError(f"{where}: {name} has {min(found)}, which is less than {least}")
    for choice, known in (("start", STARTS), ("arch", ARCHITECTURES)):
        if name == choice and not set(found) <= set(known):
            raise UserError(f"{where}: {name} can be {' or '.join(known)}")
    return list(dict.fromkeys(found))


def _bytes(value: Any, where: str) -> int:
    match = re.fullmatch(r"(\d{1,12})([KMGT]?)", str(value))
    if match is None:
        raise UserError(f"{where}: memory is {value!r}, which is no size, as in 512M")
    return int(match[1]) * UNITS[match[2]]


def _traces(names: Sequence[str], folder: Path, where: str) -> list[dict[str, str]]:
    found = []
    for name in names:
        if "\0" in name:
            raise UserError(f"{where}: traces: {name!r} is no name of a file")
        try:
            paths = sorted(folder.glob(name)) if any(sign in name for sign in "*?[") else [folder / name]
        except (ValueError, NotImplementedError, RecursionError) as error:
            raise UserError(f"{where}: traces: {name!r} is no pattern of files: {str(error).lower()}") from None
        if not paths:
            raise UserError(f"{where}: no trace is called {name} (in {folder.absolute()})")
        for path in paths:
            workload = path.name.removesuffix(".parquet")
            found.append({"workload": workload, "trace": str(path.absolute()), "trace_sha256": sha256(path)})
    return found


def _specs(table: Mapping[str, Any], where: str) -> list[str]:
    from ..replay.allocators import policies

    found = _texts(table, "allocators", where)
    vary = table.get("vary", {})
    if not isinstance(vary, dict) or not all(isinstance(one, str) for one in vary.values()):
        raise UserError(f'{where}: vary must name allocators, as in vary = {{ slub = "max_order=0..3" }}')
    known = policies() if vary else []
    for spec, text in vary.items():
        prefix, plain = ("slabyard:", spec.removeprefix("slabyard:")) if spec.startswith("slabyard:") else ("", spec)
        settings = space.parse(plain, [text], known)
        if settings.size > MOST_RUNS:
            raise UserError(f"{where}: {settings.size:,} settings of {spec} are too many; slabyard tune searches so many")
        found += [prefix + settings.spec(one) for one in settings.settings()]
    return list(dict.fromkeys(found))


def _check(substrate: str, specs: Sequence[str], works: Sequence[str], where: str) -> None:
    """UserError for allocators and workloads that there are not."""
    try:
        if substrate == "kernel":
            from ..kernels import kinds, workloads

            for spec in specs:
                kinds.parse(spec)
            for work in works:
                workloads.parse(work)
            return
        from ..replay.allocators import check_spec

        for spec in specs:
            check_spec(spec)
        if substrate == "threads":
            from ..results import threads

            known = {one["name"] for one in threads.workloads()} - {threads.TRACE}
            unknown = next((work for work in works if work not in known), None)
            if unknown is not None:
                raise UserError(f"no workload is called {unknown!r}; there are {', '.join(sorted(known))}")
    except UserError as error:
        raise UserError(f"{where}: {error.message}", error.status) from error
