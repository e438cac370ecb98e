"""Small traces made by hand, and the command line run as a user runs it."""

from __future__ import annotations

import pwd
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from slabyard.trace import file as trace

if TYPE_CHECKING:
    import pytest


@dataclass
class Builder:
    """Rows of a trace, one call each; `write` makes the Parquet file. Addresses follow from the object's number."""

    metadata: trace.Metadata = field(default_factory=lambda: trace.Metadata(kernel="6.1.0-test", arch="x86_64", source="perf script"))
    rows: list[dict[str, Any]] = field(default_factory=list)
    now: int = 0
    sizes: dict[int, int] = field(default_factory=dict)

    def row(self, kind: str, **values: Any) -> None:
        """One event, a microsecond after the last."""
        base = {
            "time": self.now, "cpu": 0, "kind": kind, "origin": "recorded", "object": trace.NO_OBJECT, "address": 0, "size": 0,
            "allocated": 0, "cache": trace.NO_CACHE, "order": 0, "migratetype": -1, "owner": "", "gfp_flags": "", "node": -1,
            "accounted": False, "call_site": "",
        }  # fmt: skip
        self.rows.append({**base, **values})
        self.metadata.events[kind] = self.metadata.events.get(kind, 0) + 1
        self.now += 1000

    def kmalloc(self, number: int, size: int, **values: Any) -> None:
        self.sizes[number] = size
        made = max(8, 1 << (size - 1).bit_length())
        address = 0xFFFF888000000000 + number * 0x2000
        row = {"gfp_flags": "GFP_KERNEL", "call_site": "some_function+0x10", "object": number, "size": size, "allocated": made}
        self.row("kmalloc", **{"address": address, **row, **values})

    def kfree(self, number: int, **values: Any) -> None:
        self.row("kfree", **{"object": number, "size": self.sizes.pop(number, 0), **values})

    def cache_alloc(self, number: int, cache: int, **values: Any) -> None:
        size = self.metadata.caches[cache].object_size
        row = {"gfp_flags": "GFP_KERNEL", "call_site": "other_function+0x20", "object": number, "size": size, "allocated": size}
        self.row("kmem_cache_alloc", **{**row, "cache": cache, **values})

    def cache_free(self, number: int, cache: int, **values: Any) -> None:
        size = 0 if cache == trace.NO_CACHE else self.metadata.caches[cache].object_size
        self.row("kmem_cache_free", **{"object": number, "cache": cache, "size": size, **values})

    def page_alloc(self, number: int, order: int = 0, **values: Any) -> None:
        row = {"object": number, "order": order, "address": number << order, "owner": "environment", "migratetype": 1}
        self.row("mm_page_alloc", **{**row, "gfp_flags": "GFP_HIGHUSER_MOVABLE", "size": 4096 << order, **values})

    def page_free(self, number: int, order: int = 0, **values: Any) -> None:
        self.row("mm_page_free", **{"object": number, "order": order, "owner": "environment", "size": 4096 << order, **values})

    def snapshot(self, name: str, files: dict[str, str], attributes: dict[str, dict[str, str]] | None = None) -> None:
        number = len(self.metadata.snapshots)
        self.metadata.snapshots.append(trace.Snapshot(name, self.now, files, attributes))
        self.row("snapshot", object=number)

    def write(self, path: Path, group: int = 1 << 20) -> Path:
        """The trace as a file, in row groups of `group` rows."""
        self.metadata.rows = len(self.rows)
        self.metadata.span_seconds = self.now / 1e9
        columns = {name: [row[name] for row in self.rows] for name in trace.SCHEMA.names}
        schema = trace.SCHEMA.with_metadata({trace.METADATA_KEY: self.metadata.to_json().encode()})
        pq.write_table(pa.table(columns, schema=schema), path, compression="zstd", row_group_size=group)
        return path


def cache(name: str, size: int, **values: Any) -> trace.Cache:
    """A cache of a trace's metadata."""
    return trace.Cache(name=name, object_size=size, **values)


def busy(path: Path, lost: int = 0) -> Path:
    """A trace of some hundred events of every kind, without snapshots."""
    builder = Builder()
    builder.metadata.cpus = 2
    builder.metadata.direct_map.base = "0xffff888000000000"
    builder.metadata.lost = lost
    builder.metadata.caches = [cache("dentry", 192), cache("inode", 600, constructor=True)]
    for number in range(0, 300, 3):
        builder.kmalloc(number, 24 + number, cpu=number % 2)
        builder.cache_alloc(number + 1, number % 2, cpu=number % 2)
        builder.page_alloc(number + 2, number % 3)
    builder.row("mm_page_alloc_extfrag", order=0, migratetype=0)
    for number in range(0, 300, 3):
        if number % 4:
            builder.kfree(number)
            builder.cache_free(number + 1, number % 2)
            builder.page_free(number + 2, number % 3)
    builder.row("kfree", origin="older", address=0xFFFF888000123400)
    return builder.write(path, 128)


def make_homeless(monkeypatch: pytest.MonkeyPatch) -> None:
    """A user whom the system knows by number alone, as in many containers."""

    def unknown(uid: int) -> None:
        raise KeyError(uid)

    for name in ("HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", unknown)


def slabyard(*words: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    """Runs the command line; the finished process with its texts."""
    return subprocess.run(
        [sys.executable, "-m", "slabyard", *map(str, words)], capture_output=True, text=True, timeout=120, check=False, **options
    )


def complaint(done: subprocess.CompletedProcess[str], status: int) -> str:
    """What a failed run says. Asserts its status, and that it says one line, under our name, and nothing else."""
    assert done.returncode == status, (done.returncode, done.stdout, done.stderr)
    lines = done.stderr.splitlines()
    assert len(lines) == 1 and lines[0].startswith("slabyard: "), done.stderr
    assert done.stdout == ""
    return lines[0]
