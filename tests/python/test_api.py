"""The Python module: it gives what the command line prints; its notebook runs."""

from __future__ import annotations

import contextlib
import io
import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import handmade
import slabyard as module
from handmade import slabyard

ROOT = Path(__file__).parents[2]
FIND = ROOT / "traces" / "find.parquet"


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return handmade.busy(tmp_path_factory.mktemp("traces") / "busy.parquet")


def test_events_have_cache_names_even_of_old_traces(busy: Path) -> None:
    assert "cache_name" not in pq.read_schema(busy).names
    with module.open(busy) as trace:
        events = trace.events()
        some = trace.events(["time", "cache_name"])
        assert len(trace) == events.num_rows and "busy.parquet" in repr(trace)
        assert sum(batch.num_rows for batch in trace.batches(["cache_name"])) == len(trace)
        assert trace.metadata.cpus == 2
    assert some.column_names == ["time", "cache_name"] and pa.types.is_dictionary(some.schema.field("cache_name").type)
    names = {(row["kind"], row["cache_name"]) for row in events.select(["kind", "cache_name"]).to_pylist()}
    assert {("kmem_cache_alloc", "dentry"), ("kmem_cache_free", "inode"), ("kmalloc", "kmalloc-32"), ("mm_page_alloc", "")} <= names
    grouped = events.group_by("cache_name").aggregate([("size", "sum")])
    assert len(set(grouped["cache_name"].to_pylist())) == grouped.num_rows


def test_tables_are_those_of_info() -> None:
    with module.open(FIND) as trace:
        for view, table in (("caches", trace.caches(until="peak")), ("call_sites", trace.call_sites(until="peak"))):
            shown = json.loads(slabyard("info", FIND, f"--{view.replace('_', '-')}", "--to", "peak", "--format", "json").stdout)
            assert shown[view] == table.to_pylist()
        assert trace.usage(["cache", "call_site"]).column_names[:3] == ["cache", "call_site", "module"]
        assert trace.pinned().num_rows > 0
        assert "find" in trace.tasks()["task"].to_pylist()
        with pytest.raises(module.Error, match="has no column nothing"):
            trace.events(["nothing"])


def test_errors_are_ours(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(module.Error, match="no such file"):
        module.open(tmp_path / "none.parquet")
    with pytest.raises(module.Error):
        module.replay(FIND, "slub:max_order=99")
    assert capfd.readouterr().out == ""


def test_replay_and_compare(busy: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with module.open(busy) as trace:
        run = module.replay(trace, "slub", cpus=1)
        comparison = module.compare([trace], ["slub", "slab"], runs=2)
    shown = json.loads(slabyard("replay", busy, "--allocator", "slub", "--cpus", "1", "--format", "json").stdout)
    assert run.exact == shown["exact"] and run.timed["runs"] == 1
    assert {"dentry", "inode"} <= set(run.caches()["name"].to_pylist()) and run.call_sites().num_rows > 0
    assert run.series()["held_pages"].type == pa.int64()
    table = comparison.arrow()
    assert table["allocator"].to_pylist()[:2] == ["slub", "slab"] and table["held_pages_peak"].type == pa.int64()
    assert len(comparison.runs()) == len(comparison.records) == table.num_rows
    assert list(comparison.sentences()) == ["busy"]
    comparison.report(tmp_path / "report.html")
    assert (tmp_path / "report.html").stat().st_size > 100_000
    assert capfd.readouterr() == ("", "")


def test_frames(busy: Path) -> None:
    pandas = pytest.importorskip("pandas")
    frame = module.compare(busy, ["slub"], runs=1).frame()
    assert isinstance(frame, pandas.DataFrame) and frame["allocator"][0] == "slub"
    with module.open(busy) as trace:
        assert trace.caches().to_pandas().set_index("cache").loc["dentry", "allocations"] == 50


def test_nothing_is_loaded_before_it_is_used() -> None:
    code = """
import sys, slabyard
assert 'pyarrow' not in sys.modules and 'compare' in dir(slabyard)
slabyard.open
assert callable(slabyard.replay)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_notebook_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its cells hold plain Python, so they run without Jupyter. The file does not keep their output."""
    monkeypatch.chdir(ROOT)
    notebook = json.loads((ROOT / "docs" / "notebook.ipynb").read_text())
    names: dict[str, object] = {"__name__": "__main__"}
    printed = io.StringIO()
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert notebook["nbformat"] == 4 and len(cells) > 5
    with contextlib.redirect_stdout(printed):
        for number, cell in enumerate(cells):
            assert cell["outputs"] == [] and cell["execution_count"] is None
            exec(compile("".join(cell["source"]), f"cell {number}", "exec"), names)
    assert "free room that nobody else can use" in printed.getvalue()
