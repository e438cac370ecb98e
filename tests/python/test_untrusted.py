"""Traces, dumps and captures from elsewhere: their names reach no terminal, page or spreadsheet as commands, and their sizes
take no memory."""

from __future__ import annotations

import base64
import csv
import gzip
import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from handmade import Builder, cache
from slabyard.base.table import Table, harmless, render
from slabyard.base.terminal import visible
from slabyard.capture import heaptrack
from slabyard.command import cli
from slabyard.trace import dumps
from slabyard.trace import file as trace

NAMES = ["<script>alert(1)</script>", "\x1b]0;title\x07", '=HYPERLINK("http://x","y")', "../../x", "a\nb",
         "n" * 5000, "+1+1", "@SUM(A1)", "\u202ex"]  # fmt: skip


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = Builder()
    made.metadata.caches = [cache(name, 64 + 8 * number) for number, name in enumerate(NAMES)]
    made.metadata.kernel, made.metadata.command, made.metadata.partial = NAMES[1], NAMES[:3], [NAMES[1]]
    for number, name in enumerate(NAMES):
        made.cache_alloc(number, number, call_site=name)
    return made.write(tmp_path_factory.mktemp("hostile") / "t.parquet")


@pytest.mark.parametrize(
    "words",
    [["info"], ["info", "--caches", "--call-sites"], ["info", "--format", "csv"], ["info", "--caches", "--format", "csv"],
     ["info", "--format", "md"], ["info", "--format", "json"], ["replay", "--allocator", "slub", "--proc", "slabinfo"],
     ["replay", "--allocator", "slub", "--slabinfo"]],
)  # fmt: skip
def test_nothing_that_a_terminal_obeys(hostile: Path, words: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    assert cli.main([words[0], str(hostile), *words[1:]]) == 3
    told = "".join(capfd.readouterr())
    assert told and not any(sign in told for sign in ("\x1b", "\x07", "\u202e")) and "a bug" not in told


def _with_metadata(path: Path, change: Callable[[dict[str, Any]], Any]) -> Path:
    """A trace whose metadata says something else, with the checksum of that."""
    made = Builder()
    made.metadata.caches = [cache("c", 64)]
    made.metadata.zones = [trace.Zone(0, "Normal", 0, 4096, 4096, 1, 2, 3)]
    made.cache_alloc(0, 0)
    table = pq.read_table(made.write(path))
    values = json.loads(pq.ParquetFile(path).metadata.metadata[trace.METADATA_KEY])
    text = change(values)
    text = json.dumps(values if text is None else text).encode() if not isinstance(text, bytes) else text
    with_both = {trace.METADATA_KEY: text, trace.CHECKSUM_KEY: trace.checksum(text)}
    pq.write_table(table.replace_schema_metadata(with_both), path)
    return path


@pytest.mark.parametrize("number", [-1, 10**30, float("nan"), float("inf")])
@pytest.mark.parametrize(
    "place", ["pageblock_order", "span_seconds", "lost", "caches.object_size", "caches.align", "zones.start_pfn", "zones.node", "zones.min"]
)
def test_numbers_that_cannot_be_are_damage(tmp_path: Path, place: str, number: float, capfd: pytest.CaptureFixture[str]) -> None:
    def change(values: dict[str, Any]) -> None:
        where, _, name = place.rpartition(".")
        (values[where][0] if where else values)[name] = number

    path = _with_metadata(tmp_path / "t.parquet", change)
    for words in (["info"], ["replay", "--allocator", "slub"]):
        assert cli.main([*words, str(path)]) == 2
        assert capfd.readouterr().err == f"slabyard: {path}: damaged trace metadata; import the capture again\n"


def test_lists_without_an_end_in_sight_are_damage(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    deep = tmp_path / "deep"
    assert cli.main(["info", str(_with_metadata(tmp_path / "t.parquet", lambda values: b"[" * 100_000))]) == 2
    deep.write_text("[" * 100_000)
    assert cli.main(["diff", str(deep), str(deep)]) == 2
    deep.write_text("x = " + "[" * 100_000)
    assert cli.main(["sweep", "run", str(deep), "-o", str(tmp_path / "out")]) == 2
    told = capfd.readouterr().err
    assert told.count("\n") == 3 and "a bug" not in told


def test_no_cell_is_a_formula(hostile: Path, tmp_path: Path) -> None:
    rows = list(csv.reader(io.StringIO(render([Table("", ["cache", "count"], [[name, -1] for name in NAMES])], "csv"))))
    assert [row[0][0] for row in rows if row[0].startswith(("=", "+", "@", "'"))] == ["'"] * 3 and rows[1][1] == "-1"
    assert [harmless(cell) for cell in ("-", "-1.5", "+3%", -2, None)] == ["-", "-1.5", "+3%", -2, None]
    assert cli.main(["export", str(hostile), "--format", "csv", "-o", str(tmp_path / "t.csv")]) in (0, 3)
    assert not any(cell[:1] in ("=", "+", "@") for row in csv.reader((tmp_path / "t.csv").open()) for cell in row)


def test_markdown_has_names_as_text(hostile: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["info", str(hostile), "--caches", "--call-sites", "--format", "md"]) == 3
    told = capfd.readouterr().out
    assert "&lt;script>alert(1)&lt;/script>" in told and "<" not in told
    lines = render([Table("a<b", ["x"], [["![i](http://x/?a&lt;)"]], ["c<d"])], "md").splitlines()
    assert lines[0] == "### a&lt;b" and lines[4].strip("| ") == "![i]\\(http://x/?a&amp;lt;)" and lines[-1] == "c&lt;d"


def test_a_page_has_names_as_text(hostile: Path, tmp_path: Path) -> None:
    report = tmp_path / "r.html"
    assert cli.main(["compare", str(hostile), "--allocators", "slub", "--runs", "1", "--report", str(report)]) == 3
    data = re.search(r'id="data">([^<]*)<', report.read_text())
    names = json.dumps(json.loads(gzip.decompress(base64.b64decode(data[1] if data else ""))), ensure_ascii=False)
    assert r"\\u202ex" in names and "\u202e" not in names + report.read_text()
    assert "<script>alert" not in report.read_text() and sorted(path.name for path in tmp_path.iterdir()) == ["r.html"]


def test_lines_of_a_result_stay_lines() -> None:
    assert visible("a\tb\n\x1b[31m\r") == "a\tb\n\\x1b[31m\\r"


def test_a_dump_that_grows_without_end_is_none(tmp_path: Path) -> None:
    (tmp_path / "bomb.gz").write_bytes(gzip.compress(b"a" * (dumps.MOST_BYTES + 2), 1))
    assert dumps.read(tmp_path / "bomb.gz") == []


def test_a_line_without_an_end_takes_no_memory() -> None:
    text = heaptrack.Text(io.BytesIO(b"v 10400 3\n" + b"s" * (8 * heaptrack.LONGEST)))
    assert text.read(1 << 16) == b""
