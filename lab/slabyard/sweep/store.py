"""Where results go: a journal while the sweep runs, then one Parquet file for each machine that led a sweep.

    FOLDER/journal.jsonl        a line for each finished run, written and on the disk before the run counts as done
    FOLDER/HOST-….parquet       the same as columns; FOLDER/*.parquet of several machines are one table, in DuckDB as here

A line is whole or it is none: what was cut off when the sweep was killed is the last one, without its end, and is cut away when the sweep
goes on. The run that it was of is run again; it was not done. At the end of a sweep, or where it is interrupted, journal and Parquet file
become a new Parquet file under a temporary name, which then takes the old one's place; only then is the journal emptied. Killed in
between, a run stands in both, and its key tells that it is one.

A lock on the journal keeps a second sweep out of the folder. Its runs are known by key, so a plan that has grown, or another plan, may
go on in it, and what another machine has done is done here too, once its file lies in the folder.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ..base.errors import UserError
from ..base.files import check_folder, describe_os_error, whole_file
from ..base.terminal import printable
from ..results import measures, threads
from ..results.records import summarise

VERSION = 1
JOURNAL = "journal.jsonl"
BATCH = 1000  # rows of a row group

_TEXTS = ("key", "substrate", "workload", "allocator", "trace_sha256", "start", "size", "arch", "host", "cpu_model", "kernel", "version")
_NUMBERS = ("repetition", "cpus", "nodes", "memory", "threads", "operations", "batch", "seed")
_OF_KERNELS = ("user_seconds", "system_seconds", "boot_seconds", "held_pages_start", "fragmentation_events_boot")
_LATENCIES = tuple(f"{name}_{part}" for name in ("alloc_ns", "free_ns", "latency_ns") for part in ("median", "p99", "p999"))
_GREW = ("grew_pages_peak", "grew_pages_end", "ns_per_page_operation")
_COST = {"cost_instructions": "instructions", "cost_l1_misses": "l1_misses", "cost_ll_misses": "ll_misses"}
MEASURES = tuple(
    dict.fromkeys(
        (
            *(one.name for one in (*measures.MEASURES, *threads.SCALARS)), *_GREW, *_OF_KERNELS, *_LATENCIES,
            *_COST,
        )
    )
)  # fmt: skip
SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in _TEXTS),
        *((name, pa.int64()) for name in _NUMBERS),
        ("began", pa.timestamp("us", "UTC")),
        ("took", pa.float64()),
        ("failed", pa.string()),
        *((name, pa.float64()) for name in MEASURES if name not in _NUMBERS),
        ("record", pa.string()),
    ],
    metadata={"slabyard.sweep": str(VERSION)},
)


class Store:
    """The folder of a sweep. A context manager that holds the lock."""

    def __init__(self, folder: Path) -> None:
        check_folder(folder)
        self.folder = folder
        self.done: dict[str, str | None] = {}  # why each run that was done has failed; None: it has not

    def __enter__(self) -> Store:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._journal = (self.folder / JOURNAL).open("ab+", 0)
        except OSError as error:
            raise UserError(describe_os_error(error, self.folder)) from error
        try:
            fcntl.flock(self._journal, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._journal.close()
            raise UserError(f"{self.folder}: another sweep writes there; wait for it, or name another folder with -o") from None
        for path in self.files():
            for row in _rows(path, ["key", "failed"]):
                if row["failed"] is None or row["key"] not in self.done:  # what failed here may have gone well elsewhere
                    self.done[row["key"]] = row["failed"]
        self._mend()
        for row in self._read():
            self.done[row["key"]] = row["failed"]
        return self

    def __exit__(self, *_: object) -> None:
        self._journal.close()

    def files(self) -> list[Path]:
        """The Parquet files of all machines."""
        return sorted(self.folder.glob("*.parquet"))

    def _mend(self) -> None:
        """Cuts away a line without its end."""
        self._journal.seek(0)
        content = self._journal.read()
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            self._journal.truncate(whole)

    def _read(self) -> Iterator[dict[str, Any]]:
        self._journal.seek(0)
        for number, line in enumerate(self._journal.read().splitlines(), 1):
            try:
                row = json.loads(line)
                row["key"], row["failed"]
            except (ValueError, KeyError, TypeError, RecursionError):
                raise UserError(f"{self.folder / JOURNAL}: damaged in line {number}; remove that line") from None
            yield row

    def add(self, row: Mapping[str, Any]) -> None:
        """A finished run; on the disk when this returns."""
        line = json.dumps(row, separators=(",", ":")).encode() + b"\n"
        end = self._journal.seek(0, os.SEEK_END)
        try:
            written = 0
            while written < len(line):
                written += self._journal.write(line[written:]) or 0
            os.fsync(self._journal.fileno())
        except OSError as error:
            self._journal.truncate(end)
            raise UserError(describe_os_error(error, self.folder / JOURNAL)) from error
        self.done[row["key"]] = row["failed"]

    def forget_failed(self) -> None:
        """Failed runs count as not done; their rows are replaced by those of the next try."""
        self.done = {key: failed for key, failed in self.done.items() if failed is None}

    def close_journal(self) -> Path | None:
        """Moves the journal into this machine's Parquet file. None: there is nothing to tell of."""
        own = self.folder / f"{machine_name()}.parquet"
        rows: dict[str, dict[str, Any]] = {}
        for row in self._read():
            rows[row["key"]] = row
        if not rows:
            return own if own.exists() else None
        before = [row for row in _rows(own) if row["key"] not in rows] if own.exists() else []
        with whole_file(own) as part, part.open("wb") as file, pq.ParquetWriter(file, SCHEMA, compression="zstd") as writer:
            fresh = [_flat(row) for row in rows.values()]
            whole = before + fresh
            for at in range(0, len(whole), BATCH):
                writer.write_table(pa.Table.from_pylist(whole[at : at + BATCH], schema=SCHEMA))
        with contextlib.suppress(OSError):
            folder = os.open(self.folder, os.O_RDONLY)
            os.fsync(folder)
            os.close(folder)
        self._journal.truncate(0)
        return own


def machine_name() -> str:
    """A name for this machine's file that no other machine has: many are called `localhost`."""
    identity = ""
    with contextlib.suppress(OSError):
        identity = Path("/etc/machine-id").read_text()
    host = socket.gethostname()
    return f"{re.sub(r'[^A-Za-z0-9.-]+', '-', host)}-{hashlib.sha256(f'{host} {identity}'.encode()).hexdigest()[:6]}"


def _flat(row: Mapping[str, Any]) -> dict[str, Any]:
    """A journal's row as columns."""
    record = row["record"] or {"run": {}, "exact": {}, "timed": {}}
    run, exact, timed, cost = record["run"], record["exact"], record["timed"], record.get("cost") or {}
    machine = run.get("machine") or {}
    found: dict[str, Any] = {name: row.get(name) for name in (*_TEXTS, *_NUMBERS, "took", "failed")}
    for name in ("workload", "failed"):  # which may have names of files that are no text
        found[name] = found[name] and printable(found[name])
    for name in ("cpus", "nodes", "memory", "start", "threads", "operations", "seed"):  # of what the plan left to the workload
        if found[name] is None and name in run:
            found[name] = run[name]
    found |= {"cpu_model": machine.get("cpu"), "kernel": machine.get("kernel"), "version": (run.get("versions") or {}).get("slabyard")}
    found["began"] = round(row["began"] * 1e6)
    for name in MEASURES:
        if name in found:
            continue
        group, _, part = name.rpartition("_")
        value = exact.get(name, timed.get(name))
        if name in _LATENCIES:
            value = (timed.get(group) or {}).get(part)
        elif name in _COST:
            value = cost.get(_COST[name])
        found[name] = float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
    found["record"] = json.dumps(row["record"], separators=(",", ":")) if row["record"] else None
    return found


def _rows(path: Path, columns: list[str] | None = None) -> list[dict[str, Any]]:
    """UserError for a file that is none of a sweep."""
    try:
        with path.open("rb") as file:  # Arrow takes no name that is not UTF-8
            table = pq.read_table(file, columns=columns)
    except (pa.ArrowInvalid, pa.ArrowKeyError, OSError, ValueError) as error:
        raise UserError(f"{path}: no results of a sweep, or damaged: {str(error).splitlines()[0]}") from None
    if (table.schema.metadata or {}).get(b"slabyard.sweep") != str(VERSION).encode():
        raise UserError(f"{path}: no results of a sweep, or of another version of slabyard; keep it in another folder")
    found: list[dict[str, Any]] = table.to_pylist()
    return found


def records(folder: Path) -> list[dict[str, Any]]:
    """Result records of all machines' runs in a folder, in the order in which they began: those of one cell and machine as one record.

    Its times are medians of the repetitions with their intervals, as in a comparison; exact figures and percentiles are the first one's.
    """
    rows: dict[str, tuple[int, int, dict[str, Any]]] = {}
    for path in sorted(folder.glob("*.parquet")):
        for row in _rows(path, ["key", "began", "repetition", "record"]):
            if row["record"]:
                rows.setdefault(row["key"], (row["repetition"], row["began"], _record(row["record"], path)))
    cells: dict[str, list[dict[str, Any]]] = {}
    for _, _, record in sorted(rows.values(), key=lambda one: one[:2]):
        run = {name: value for name, value in record["run"].items() if not name.endswith("repetition")}
        cells.setdefault(json.dumps(run, sort_keys=True), []).append(record)
    return [_merged(one) for one in cells.values()]


def _record(text: str, path: Path) -> dict[str, Any]:
    """The record of a row. UserError for a text that is none."""
    try:
        found = json.loads(text)
        well = all(isinstance(found[name], dict) for name in ("run", "exact", "timed"))
    except (ValueError, KeyError, TypeError, RecursionError):
        well = False
    if not well:
        raise UserError(f"{path}: holds a result record that is damaged; sweep again into another folder")
    return found


def _merged(repetitions: list[dict[str, Any]]) -> dict[str, Any]:
    first, made = repetitions[0], ("runs", "intervals", "samples")  # by summarise
    percentiles = {name: value for name, value in first["timed"].items() if isinstance(value, (dict, list)) and name not in made}
    samples = [{name: value for name, value in one["timed"].items() if name not in (*made, *percentiles)} for one in repetitions]
    run = {name: value for name, value in first["run"].items() if name != "sweep_repetition"}
    return {**first, "run": run | {"repetition": len(repetitions)}, "timed": summarise(samples, percentiles)}
