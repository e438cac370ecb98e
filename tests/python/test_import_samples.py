"""perf.data that slabyard-import reads itself. It finds what perf script prints of the file, and whatever bytes the file
has, a failure is one line."""

from __future__ import annotations

import json
import lzma
import random
import shutil
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from slabyard.base import programs
from slabyard.capture import importer, inputs, perfdata, perfformat

DATA = Path(__file__).parent.parent / "data"
# Recorded on Linux 6.18: by perf record (allocations alone, one process, with a filter, sampled), and by perf kmem record.
CAPTURES = ("captures/alloconly", "captures/perthread", "captures/filter", "captures/f99", "perf-kmem")
TRUE = '"true" : "false"'

needs_perf = pytest.mark.skipif(shutil.which("perf") is None, reason="perf is not installed")


def unpacked(name: str, tmp_path: Path) -> Path:
    path = tmp_path / "perf.data"
    path.write_bytes(lzma.open(DATA / f"{name}.data.xz").read())
    return path


def read(path: Path) -> perfdata.PerfData:
    data = perfdata.read(path)
    assert data is not None
    return data


def layout_of(path: Path, window: tuple[int, int] | None = None) -> str:
    layout = perfformat.layout(read(path), window)
    assert layout is not None
    return layout


def run(path: Path, layout: str) -> subprocess.CompletedProcess[bytes]:
    """slabyard-import on a file with a layout."""
    lines = path.with_suffix(".layout")
    lines.write_text(layout)
    with path.open("rb") as content, lines.open("rb") as described:
        descriptors = (content.fileno(), described.fileno())
        argv = [programs.program(importer.PROGRAM), "--input", str(descriptors[0]), "--perf", str(descriptors[1])]
        return subprocess.run(argv, pass_fds=descriptors, capture_output=True, check=False, timeout=60)


def header_of(done: subprocess.CompletedProcess[bytes]) -> dict[str, object]:
    assert done.returncode == 0, done.stderr
    (size,) = struct.unpack_from("=I", done.stdout, 8)
    header: dict[str, object] = json.loads(done.stdout[12 : 12 + size])
    return header


def events_of(done: subprocess.CompletedProcess[bytes]) -> int:
    events = header_of(done)["events"]
    assert isinstance(events, dict)
    return sum(events.values())


def columns(path: Path) -> dict[str, list[object]]:
    table = pq.read_table(path)
    # Of several symbols at an address perf and we may name different ones, or on another machine none.
    return {name: table[name].to_pylist() for name in table.column_names if name != "call_site"}


@needs_perf
@pytest.mark.parametrize("name", CAPTURES)
def test_the_same_as_of_perf_script(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = unpacked(name, tmp_path)
    by_perf = importer.import_trace(path, tmp_path / "perf.parquet")
    monkeypatch.setattr(inputs, "LARGE", 0)
    ours = importer.import_trace(path, tmp_path / "ours.parquet")
    assert layout_of(path) and columns(tmp_path / "ours.parquet") == columns(tmp_path / "perf.parquet")
    for metadata in (by_perf, ours):
        metadata.caches = []  # where names are known by call sites, call sites may differ
    assert ours == by_perf


@needs_perf
def test_a_window_of_time(tmp_path: Path) -> None:
    path = unpacked("captures/perthread", tmp_path)
    text = subprocess.run(["perf", "script", "-i", str(path), "-F", "time", "--ns"], capture_output=True, text=True, check=True).stdout
    times = sorted(int(line.strip(" :").replace(".", "")) for line in text.splitlines())
    window = (times[10], times[-20])
    assert events_of(run(path, layout_of(path, window))) == sum(window[0] <= time <= window[1] for time in times)
    assert events_of(run(path, layout_of(path))) == len(times)


def test_losses_are_counted(tmp_path: Path) -> None:
    path = unpacked("captures/perthread", tmp_path)
    content, (start, size) = path.read_bytes(), read(path).data
    layout = layout_of(path).replace(f"data {start} {size}\n", f"data {start} {size + 24}\n")
    path.write_bytes(content[: start + size] + struct.pack("<IHHQQ", 2, 0, 24, 5, 41) + content[start + size :])
    assert header_of(run(path, layout))["lost"] == 41


def changed(content: bytearray, start: int, size: int, draw: random.Random) -> None:
    for _ in range(draw.choice((1, 1, 5, 50))):
        at = start + draw.randrange(size)
        if draw.random() < 0.5:
            content[at] = draw.randrange(256)
        else:  # the header of a record
            at -= (at - start) % 8
            size_of_record = draw.choice((0, 8, 16, 24, 40, 72, 65528))
            content[at : at + 8] = struct.pack("<IHH", draw.choice((2, 3, 7, 9, 68)), 0, size_of_record)


def test_no_bytes_make_it_crash(tmp_path: Path) -> None:
    path = unpacked("captures/perthread", tmp_path)
    layout, (start, size), whole, draw = layout_of(path), read(path).data, path.read_bytes(), random.Random(7)
    ends = set()
    for _ in range(60):
        content = bytearray(whole)
        changed(content, start, size, draw)
        path.write_bytes(content)
        done = run(path, layout)
        ends.add(done.returncode)
        assert done.returncode in (0, 2) and done.stderr.count(b"\n") == (done.returncode == 2)
    assert ends == {0, 2}


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("sample", "samples"),
        lambda text: text.replace("sample ", "sample 4"),
        lambda text: "field ptr 8 8 0 0\n" + text,
        lambda text: text.replace("field ptr 16 8", "field ptr 16 9"),
        lambda text: text + "event 70000 kmem:kfree\n",
        lambda text: "\n".join(line for line in text.splitlines() if not line.startswith("sample")),
    ],
)
def test_a_wrong_layout_is_refused(change: Callable[[str], str], tmp_path: Path) -> None:
    path = unpacked("captures/perthread", tmp_path)
    done = run(path, change(layout_of(path)))
    assert done.returncode == 2 and b"layout" in done.stderr and done.stderr.count(b"\n") == 1


def test_fields_beyond_an_event_are_not_read(tmp_path: Path) -> None:
    path = unpacked("captures/perthread", tmp_path)
    layout = layout_of(path)
    whole, cut = header_of(run(path, layout)), header_of(run(path, layout.replace("field ptr 16", "field ptr 65000")))
    assert isinstance(whole["events"], dict) and isinstance(cut["events"], dict)
    objects = sum(count for kind, count in whole["events"].items() if kind.startswith("k"))
    assert (whole["unparsed_lines"], cut["unparsed_lines"]) == (0, objects) and objects
    assert not any(kind.startswith("k") for kind in cut["events"])


def test_constants_of_c() -> None:
    assert perfformat._value("(( gfp_t)(((((1UL))) << (10))|((((1UL))) << (11))))") == 0xC00
    nine = "((unsigned int)((21 - 12)))"
    assert perfformat._value(f"({nine} < ((unsigned int)(10)) ? {nine} : ((unsigned int)(10)))") == 9
    assert perfformat._value("( unsigned long)(( gfp_t)0x400u|0x40U) & ~(0x40)") == 0x400
    assert perfformat._value("-1") == 2**64 - 1
    for wrong in ("___GFP_IO", "1 << 64", "(1", "1)", "1 2", "", "sizeof(int)", "1 ? 2"):
        with pytest.raises((perfformat._Unknown, IndexError)):
            perfformat._value(wrong)


def test_what_tells_of_charges() -> None:
    places = {"accounted": "60 1 0 0"}
    account = "( unsigned long)(( gfp_t)((((1UL))) << (22)))"
    assert perfformat._charged(f"(1 && (REC->gfp_flags & {account})) ? {TRUE}", {}) == ["charge 4194304"]
    assert perfformat._charged(f"(0 && (REC->gfp_flags & 16)) ? {TRUE}", {}) == ["charge 0"]
    assert perfformat._charged(f"REC->accounted ? {TRUE}", places) == ["field accounted 60 1 0 0"]
    assert perfformat._charged(f"(1 && REC->accounted) ? {TRUE}", places) == ["field accounted 60 1 0 0"]
    for other in (f"REC->accounted ? {TRUE}", f"REC->else ? {TRUE}", "REC->accounted"):
        with pytest.raises(perfformat._Unknown):
            perfformat._charged(other, {})


def test_what_is_not_known_has_no_layout(tmp_path: Path) -> None:
    """Other parts of a sample, another kernel's way to print, other bytes in a word: perf script has to read these."""
    path = unpacked("captures/perthread", tmp_path)
    data = read(path)
    first, ids = data.attributes[0]
    (parts,) = struct.unpack_from("<Q", first, 24)
    for more in (parts | 1 << 5, parts & ~(1 << 2)):
        data.attributes = [(first[:24] + struct.pack("<Q", more) + first[32:], ids)] * len(data.attributes)
        assert perfformat.layout(data, None) is None


FORMAT = """name: kfree
ID: 657
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;

\tfield:unsigned long call_site;\toffset:8;\tsize:8;\tsigned:0;
\tfield:const void * ptr;\toffset:16;\tsize:8;\tsigned:0;

print fmt: "call_site=%pS ptr=%p", (void *)REC->call_site, REC->ptr
"""


def test_events_in_another_form_have_no_layout() -> None:
    event = perfformat._Event(657, "kmem:kfree", FORMAT)
    assert perfformat._lines([event]) == ["event 657 kmem:kfree", "field call_site 8 8 0 0", "field ptr 16 8 0 0"]
    assert perfformat._lines([perfformat._Event(3, "sched:kfree", "")]) == ["event 3 sched:kfree"]
    for old, new in (("REC->ptr\n", "REC->ptr, 1\n"), ("print fmt", "prints"), ("void * ptr", "void * at"), ("ptr=%p", "gfp_flags=%s")):
        with pytest.raises(perfformat._Unknown):
            perfformat._lines([perfformat._Event(657, "kmem:kfree", FORMAT.replace(old, new))])
