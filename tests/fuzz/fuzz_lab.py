"""Fuzzers of what the lab reads, guided by the coverage of its own code (atheris).

    python tests/fuzz/fuzz_lab.py TARGET CORPUS [options of libFuzzer]
    python tests/fuzz/fuzz_lab.py --replay CORPORA     each input of every target once, from the folder TARGET, without atheris

Each target is a function from bytes to nothing. It may raise UserError, the one error that a user is meant to see; all else is a finding.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(tempfile.mkdtemp(prefix="slabyard-fuzz-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None))
os.environ["SLABYARD_TRACEBACK"] = "1"  # an unexpected error is raised, not told

if "--replay" in sys.argv:
    instrumented: Any = contextlib.nullcontext()
else:
    import atheris

    instrumented = atheris.instrument_imports(include=["slabyard"])

with instrumented:
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    from slabyard.attribution import export, pinned, usage, views
    from slabyard.base.errors import UserError
    from slabyard.base.table import results
    from slabyard.capture import evidence, heaptrack, importer, inputs, perfdata
    from slabyard.command import cli
    from slabyard.diff import conditions, files, pairs, tables
    from slabyard.replay import workload
    from slabyard.sweep import plan, store
    from slabyard.trace import dump_info, dumps, gfp, info, snapshots
    from slabyard.trace import file as trace

    assert all((export, pinned, usage, views, importer, inputs, workload, info))  # loaded here, to be instrumented


def command(*words: str | Path) -> None:
    """A command line as a user gives it, its output thrown away."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        cli.main([str(word) for word in words])


def one_of(data: bytes, *commands: Sequence[str | Path]) -> None:
    """One of them, chosen by the input, as each takes time."""
    command(*commands[sum(data[-8:]) % len(commands)])


def file_of(data: bytes, name: str = "input") -> Path:
    path = FOLDER / name
    path.write_bytes(data)
    return path


# ---- Targets ---------------------------------------------------------------------------------------------------------------------


def trace_bytes(data: bytes) -> None:
    """A Parquet file with any of its bytes changed."""
    path = file_of(data, "t.parquet")
    one_of(
        data, ("info", path), ("info", path, "--caches", "--call-sites"), ("export", path, "--format", "folded", "-o", FOLDER / "out.txt")
    )


def trace_metadata(data: bytes) -> None:
    """A trace with that JSON as its metadata."""
    table = trace.made_rows({"time": np.arange(4), "kind": pa.array(["kmalloc", "kfree", "snapshot", "mm_page_alloc"])}, 4)
    path = FOLDER / "m.parquet"
    pq.write_table(table.replace_schema_metadata({trace.METADATA_KEY: data}), path)
    one_of(
        data, ("info", path), ("info", path, "--caches", "--from", "start", "--to", "end"), ("info", path, "--pinned"), ("diff", path, path)
    )


_TYPES = (
    pa.int8(),
    pa.int64(),
    pa.uint8(),
    pa.uint64(),
    pa.float64(),
    pa.string(),
    pa.binary(),
    pa.bool_(),
    pa.list_(pa.int64()),
    pa.null(),
)


def trace_columns(data: bytes) -> None:
    """A trace whose columns hold anything, some of them of another type, missing, or with nulls."""
    reader = io.BytesIO(data)

    def number(bytes_: int = 1) -> int:
        return int.from_bytes(reader.read(bytes_), "little")

    rows = number() % 24
    columns: dict[str, pa.Array] = {}
    for column in trace.SCHEMA:
        how = number()
        if how >= 250:
            continue  # a column that is not there
        if pa.types.is_dictionary(column.type):
            texts = [*trace.KINDS, *trace.ORIGINS, *trace.OWNERS, "GFP_KERNEL", "f+0x1", "<b>\n"]
            names = {"kind": trace.KINDS, "origin": trace.ORIGINS, "owner": trace.OWNERS}.get(column.name, tuple(texts))
            chosen = [names[number() % len(names)] if how < 240 else texts[number() % len(texts)] for _ in range(rows)]
            columns[column.name] = pa.array(chosen).dictionary_encode()
            continue
        width = 1 if how < 200 else 8
        values: list[int | None] = [number(width) for _ in range(rows)]
        if how >= 245 and values:
            values[-1] = None
        with contextlib.suppress(pa.ArrowInvalid, OverflowError, TypeError, pa.ArrowNotImplementedError):
            columns[column.name] = pa.array(values, pa.uint64()).cast(column.type if how < 230 else _TYPES[how % len(_TYPES)], safe=False)
    metadata = trace.Metadata(caches=[trace.Cache("dentry", 192, allocs=3), trace.Cache("", 8)], span_seconds=1e-6, rows=rows)
    metadata.events = dict.fromkeys(trace.KINDS, 2)
    metadata.snapshots = [trace.Snapshot("start", 0, {"meminfo": "Slab: 10 kB"}), trace.Snapshot("end", 900, {"meminfo": "Slab: 12 kB"})]
    path = FOLDER / "c.parquet"
    table = pa.table(columns) if columns else pa.table({"time": pa.array([1])})
    pq.write_table(table.replace_schema_metadata({trace.METADATA_KEY: metadata.to_json().encode()}), path)
    form = ("pprof", "folded", "speedscope", "perfetto", "csv", "parquet")[rows % 6]
    one_of(
        data, ("info", path), ("info", path, "--caches", "--call-sites"), ("info", path, "--pinned"),
        ("export", path, "--format", form, "-o", FOLDER / "out"), ("replay", path, "--allocator", "slub", "--proc", "slabinfo"),
    )  # fmt: skip


def perf_header(data: bytes) -> None:
    """perf.data as far as this program reads it itself: headers, attributes, records, features."""
    found = perfdata.read(file_of(data, "perf.data"))
    if found is None:
        return
    found.lost()
    found.kernel_text()
    found.build_id()
    perfdata.resolve(["0xffffffff81000010", "f+0x1"], found)
    out = os.open(os.devnull, os.O_WRONLY)
    try:
        for part in found.parts(2):
            found.stream_to(out, part)
    finally:
        os.close(out)


def perf_description(data: bytes) -> None:
    """What perf prints of a recording."""
    about = inputs.About()
    about.describe(data.decode(errors="replace"))
    evidence.of_header(data.decode(errors="replace"))


def heaptrack_text(data: bytes) -> None:
    """heaptrack's file."""
    text = heaptrack.Text(io.BytesIO(data))
    made = 0
    while block := text.read(1 << 16):
        made += len(block)
    assert made <= 100_000 + 4000 * len(data), "the events take more than the file can tell"


def dump(data: bytes) -> None:
    """slabinfo, slabtop, allocinfo, oom reports."""
    path = file_of(data, "dump")
    found = dumps.read(path)
    if not found:
        return
    about = dump_info.describe(path, found)
    for form in ("text", "csv", "markdown", "json"):
        results(about, form, lambda one: dump_info.tables(one, None), lambda one: dump_info.tables(one, None)[0])
    tables.tables(files.compare(path, path, []), True)


def kernel_files(data: bytes) -> None:
    """The files of /proc in snapshots."""
    text = data.decode(errors="replace")
    snapshots.parse_meminfo(text)
    snapshots.parse_slabinfo(text)
    snapshots.parse_zoneinfo(text)
    snapshots.parse_allocinfo(text)
    snapshots.parse_buddyinfo(text)
    snapshots.parse_pagetypeinfo(text)
    snapshots.total_free_blocks(text)
    snapshots.with_migrate_types(text, text)
    gfp.flags_of(text.partition("\n")[0])


def sweep_plan(data: bytes) -> None:
    """A sweep's PLAN.toml."""
    path = file_of(data, "plan.toml")
    shutil.copyfile(_trace(), FOLDER / "t.parquet")
    plan.read(path)


def records(data: bytes) -> None:
    """Result records, compared and held against conditions."""
    path = file_of(data, "records.json")
    found = files.compare(path, path, conditions.parse(conditions.DEFAULT))
    tables.tables(found, True)
    found.as_json()
    if pairs.read(path):
        command("diff", path, path, "--format", "csv")


def sweep_rows(data: bytes) -> None:
    """Rows of a sweep's folder: a journal, and records in a Parquet file."""
    folder = FOLDER / "sweep"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    row = {"key": "k", "began": 1, "repetition": 1, "record": data.decode(errors="replace")}
    table = pa.Table.from_pylist([row]).replace_schema_metadata({b"slabyard.sweep": str(store.VERSION).encode()})
    pq.write_table(table, folder / "a.parquet")
    store.records(folder)


def condition(data: bytes) -> None:
    """--fail-if."""
    conditions.parse(data.decode(errors="replace"))


TARGETS: dict[str, Callable[[bytes], None]] = {
    one.__name__: one
    for one in (
        trace_bytes, trace_metadata, trace_columns, perf_header, perf_description, heaptrack_text, dump, kernel_files, sweep_plan, records,
        sweep_rows, condition,
    )
}  # fmt: skip


# ---- Seeds -----------------------------------------------------------------------------------------------------------------------


def _trace() -> Path:
    path = FOLDER / "seed.parquet"
    if not path.exists():
        metadata = trace.Metadata(
            caches=[trace.Cache("dentry", 192, allocs=2)], span_seconds=1e-5, rows=6, events={"kmalloc": 3, "kfree": 1}
        )
        metadata.snapshots = [trace.Snapshot("start", 0, {"meminfo": "Slab: 10 kB"}), trace.Snapshot("end", 9, {"meminfo": "Slab: 12 kB"})]
        kinds = ["kmalloc", "kmem_cache_alloc", "mm_page_alloc", "kfree", "kmem_cache_free", "snapshot"]
        made = trace.made_rows({"time": np.arange(6), "kind": pa.array(kinds), "cache": pa.array([65535, 0, 65535, 65535, 0, 65535])}, 6)
        pq.write_table(made.replace_schema_metadata({trace.METADATA_KEY: metadata.to_json().encode()}), path)
    return path


def seeds(target: str) -> dict[str, bytes]:
    """Inputs to begin with, made of what the tests have."""
    data = ROOT / "tests/data"
    if target == "trace_bytes":
        return {"trace": _trace().read_bytes()}
    if target == "trace_metadata":
        return {"metadata": pq.read_metadata(_trace()).metadata[trace.METADATA_KEY]}
    if target == "perf_header":
        import lzma

        return {"perf": lzma.decompress((data / "perf-kmem.data.xz").read_bytes())}
    if target == "records":
        listed = json.loads((data / "report_records.json").read_bytes())
        return {"records": json.dumps(listed[:1]).encode()}
    if target == "sweep_rows":
        return {"record": json.dumps(json.loads((data / "report_records.json").read_bytes())[0]).encode()}
    if target in ("dump", "kernel_files"):
        return {path.name: path.read_bytes()[:2000] for path in (data / "linux-6.1-um-slub/hackbench").glob("*.before")}
    if target == "sweep_plan":
        return {
            "plan": b'repetitions = 2\n[[matrix]]\ntraces = ["*.parquet"]\nallocators = ["slub"]\n'
            b'vary = { slub = "max_order=0..3" }\ncpus = [1, 2]\n'
        }
    if target == "heaptrack_text":
        return {"text": b"v 10400 3\ns 4 main\ni 7f0000 0 1 0 0\nt 1 0\na 20 1\n+ 0\nc 4\n+ 11c00 1 55d0c0ffee0\n- 0\n- 55d0c0ffee0\n"}
    if target == "condition":
        return {"usual": conditions.DEFAULT.encode()}
    return {}


# ---- The program -----------------------------------------------------------------------------------------------------------------


def run(target: str, data: bytes) -> None:
    with contextlib.suppress(UserError):
        TARGETS[target](data)


def replay(corpora: Path) -> int:
    for target in TARGETS:
        found = {f"seed {name}": content for name, content in seeds(target).items()}
        found |= {path.name: path.read_bytes() for path in sorted((corpora / target).glob("*"))}
        for name, content in found.items():
            print(target, name, file=sys.stderr, flush=True)  # the last one before an error
            run(target, content)
    return 0


def main() -> int:
    target, corpus, *options = sys.argv[1:]
    if target == "--replay":
        return replay(Path(corpus))
    for name, content in seeds(target).items():
        run(target, content)
        if not (Path(corpus) / f"seed-{name}").exists():
            (Path(corpus) / f"seed-{name}").write_bytes(content)
    atheris.Setup([sys.argv[0], corpus, *options], lambda data: run(target, data))
    atheris.Fuzz()
    return 0


if __name__ == "__main__":
    try:
        status = main()
    finally:
        shutil.rmtree(FOLDER, ignore_errors=True)
    sys.exit(status)
