"""Import of perf.data by perf, in both ways: from the file, and from a stream. test_import_samples.py has the import without perf."""

from __future__ import annotations

import lzma
import os
import re
import shutil
import struct
import subprocess
from collections import Counter
from itertools import pairwise
from pathlib import Path

import handmade
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from slabyard.capture import importer, inputs, perfdata, perfformat
from slabyard.base.errors import UserError
from slabyard.trace.file import Trace

DATA = Path(__file__).parent.parent / "data"
CAPTURES = ("perf-callchains", "perf-kmem")  # perf record -a -g, perf kmem record; Linux 6.18

pytestmark = pytest.mark.skipif(shutil.which("perf") is None, reason="perf is not installed")


@pytest.fixture(params=CAPTURES)
def capture(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "perf.data"
    path.write_bytes(lzma.open(DATA / f"{request.param}.data.xz").read())
    return path


def recorded_events(capture: Path) -> list[str]:
    done = subprocess.run(["perf", "evlist", "--force", "-i", str(capture)], capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_events_are_those_of_perf_script(capture: Path, tmp_path: Path) -> None:
    text = subprocess.run(["perf", "script", "-i", str(capture), "-F", "event"], capture_output=True, text=True, check=True).stdout
    expected = Counter(re.findall(r"kmem:(\w+):", text))
    metadata = importer.import_trace(capture, tmp_path / "t.parquet")
    assert {kind: count for kind, count in metadata.events.items() if count} == expected
    assert ("mm_page_alloc_extfrag" in metadata.events) == ("kmem:mm_page_alloc_extfrag" in recorded_events(capture))
    assert (metadata.unparsed_lines, metadata.lost, metadata.incomplete) == (0, 0, None)
    assert metadata.kernel.startswith("6.18")
    assert (metadata.arch, metadata.cpus, metadata.source) == ("x86_64", 2, "perf.data")
    assert metadata.recorded_at is not None


def test_a_stream_gives_the_same(capture: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    importer.import_trace(capture, tmp_path / "file.parquet")
    monkeypatch.setattr(inputs, "LARGE", 0)
    monkeypatch.setattr(perfformat, "layout", lambda *_: None)
    importer.import_trace(capture, tmp_path / "stream.parquet")
    whole, streamed = (pq.read_table(tmp_path / name) for name in ("file.parquet", "stream.parquet"))
    for name in whole.column_names:
        if name != "call_site":  # of several symbols perf and we may name different ones, or on another machine none
            assert whole[name].to_pylist() == streamed[name].to_pylist(), name


def test_stacks_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "perf.data"
    path.write_bytes(lzma.open(DATA / "perf-callchains.data.xz").read())
    importer.import_trace(path, tmp_path / "t.parquet")
    rows = pq.read_table(tmp_path / "t.parquet", columns=["kind", "origin", "stack"]).to_pylist()
    assert all(row["stack"] for row in rows if row["origin"] == "recorded")
    assert any(row["stack"].count(";") > 3 for row in rows)


def test_parts_are_whole_records(capture: Path) -> None:
    data = perfdata.read(capture)
    assert data is not None
    for count in (1, 2, 7):
        parts = data.parts(count)
        assert (parts[0][0], parts[-1][1]) == (data.data[0], sum(data.data))
        assert all(before[1] == after[0] for before, after in pairwise(parts))
        for start, _ in parts[1:]:
            assert struct.unpack_from("<IHH", capture.read_bytes(), start) == (68, 0, 8)  # FINISHED_ROUND


def add_records(capture: Path, added: bytes) -> None:
    """Puts records behind the last one of a perf.data: what follows the data moves."""
    content, data = capture.read_bytes(), perfdata.read(capture)
    assert data is not None
    end = sum(data.data)
    table = b"".join(struct.pack("<QQ", offset + len(added), size) for offset, size in data.features.values())
    head = content[:48] + struct.pack("<Q", data.data[1] + len(added)) + content[56:end]
    capture.write_bytes(head + added + table + content[end + len(table) :])


def test_what_was_lost_at_the_end_is_known_too(capture: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that came behind it told of the loss, so only perf's own count has it. Events that a filter dropped are not
    lost."""
    counts = [struct.pack("<IHHQ32x", 13, 0, 48, lost) for lost in (70, 7)]
    add_records(capture, b"".join([*counts, struct.pack("<IHHQ32x", 13, 1 << 15, 48, 500)]))
    for large in (inputs.LARGE, 0):
        monkeypatch.setattr(inputs, "LARGE", large)
        metadata = importer.import_trace(capture, tmp_path / "t.parquet")
        assert metadata.lost == 77 and metadata.incomplete == "77 events were lost while it was recorded"
    monkeypatch.setattr(perfdata, "_LAST_RECORDS", 40_000)
    data = perfdata.read(capture)
    assert data is not None and data.lost() == 77


def test_cut_off(capture: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    whole = capture.read_bytes()
    for size in (20, 150, len(whole) // 2, len(whole) - 100):
        capture.write_bytes(whole[:size])
        with pytest.raises(UserError, match="cut off") as caught:
            importer.import_trace(capture, tmp_path / "out" / "t.parquet")
        assert caught.value.status == 2
        assert not list((tmp_path / "out").iterdir())


def test_damaged(capture: Path, tmp_path: Path) -> None:
    """Zeroes in the middle of the data: perf says what is wrong, or the lines show it."""
    content = bytearray(capture.read_bytes())
    data = perfdata.read(capture)
    assert data is not None
    middle = data.data[0] + data.data[1] // 2
    content[middle : middle + 4000] = bytes(4000)
    capture.write_bytes(content)
    (tmp_path / "out").mkdir()
    try:
        importer.import_trace(capture, tmp_path / "out" / "t.parquet")
    except UserError as error:
        assert "\n" not in str(error)
        assert not list((tmp_path / "out").iterdir())


def test_a_byte_that_changed_in_a_trace_is_noticed(capture: Path, tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    importer.import_trace(capture, path)
    whole, pages = path.read_bytes(), pq.ParquetFile(path).metadata.row_group(0)
    for column in (pages.column(place) for place in range(pages.num_columns)):
        changed = bytearray(whole)
        changed[(column.dictionary_page_offset or column.data_page_offset) + column.total_compressed_size - 1] ^= 1
        path.write_bytes(changed)
        with Trace(path) as trace, pytest.raises(UserError, match="damaged at row group 0"):
            list(trace.batches())
    changed = bytearray(whole)
    changed[whole.index(b'"kernel"') + len(b'"kernel": "')] ^= 1
    path.write_bytes(changed)
    with pytest.raises(UserError, match="damaged trace metadata"):
        Trace(path)


def test_of_two_that_end_the_one_that_knows_why_tells(capture: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="pages of 5000 bytes are not known"):
        importer.import_trace(capture, tmp_path / "t.parquet", page_size=5000)


def test_symbols_where_perf_left_out_the_build_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The running kernel's symbols, if it is of that release and its text lies there."""
    texts = {"/proc/kallsyms": "ffffffff81000000 T _text\nffffffff81000100 t first\nffffffff81000300 T _etext\n"}
    monkeypatch.setattr(perfdata, "read_text_if_there", lambda path: texts.get(str(path)))
    monkeypatch.setattr(perfdata.PerfData, "kernel_text", lambda _: ("_text", 0xFFFFFFFF81000000))

    def resolved(release: bytes) -> list[str]:
        path = tmp_path / "perf.data"
        path.write_bytes(len(release).to_bytes(4, "little") + release + b"\0")
        return perfdata.resolve(["0xffffffff81000110"], perfdata.PerfData(path, [], (0, 0), {4: (0, 5 + len(release))}))

    release = os.uname().release.encode()
    assert resolved(release) == ["first+0x10"]
    assert resolved(release + b"-other") == ["0xffffffff81000110"]
    monkeypatch.setattr(perfdata.PerfData, "kernel_text", lambda _: ("_text", 0xFFFFFFFF91000000))
    assert resolved(release) == ["0xffffffff81000110"], "booted again since, or another build"


def test_symbols(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Call sites of a kernel that was booted again since: text moves with _text, modules are not known."""
    kallsyms = tmp_path / ".debug" / "[kernel.kallsyms]" / ("ab" * 20) / "kallsyms"
    kallsyms.parent.mkdir(parents=True)
    kallsyms.write_text("ffffffff81000000 T _text\nffffffff81000100 t first\nffffffff81000100 T alias\nffffffff81000200 D data\n"
                        "ffffffff81000300 T last\nffffffff81000400 T _etext\nffffffffc0000000 t module\t[module]\n")  # fmt: skip
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(perfdata.PerfData, "build_id", lambda _: "ab" * 20)
    monkeypatch.setattr(perfdata.PerfData, "kernel_text", lambda _: ("_text", 0xFFFFFFFF91000000))
    data = perfdata.PerfData(tmp_path, [], (0, 0), {})
    sites = ["0xffffffff91000110", "0xffffffff91000310", "0xffffffffc0000010", "named+0x2", "0x10", "0xzz"]
    assert perfdata.resolve(sites, data) == ["first+0x10", "last+0x10", "0xffffffffc0000010", "named+0x2", "0x10", "0xzz"]
    handmade.make_homeless(monkeypatch)
    assert perfdata.resolve(sites, data) == sites


def test_want_of_memory_is_no_damage() -> None:
    class Short:
        num_row_groups = 1

        def read_row_group(self, *_: object, **__: object) -> None:
            raise pa.ArrowMemoryError("realloc of size 320000 failed")

    with Trace(Path(__file__).parents[2] / "traces/find.parquet") as trace, pytest.MonkeyPatch.context() as patch:
        Short.schema_arrow = trace._file.schema_arrow
        patch.setattr(trace, "_file", Short())
        with pytest.raises(MemoryError):
            next(trace.batches())
