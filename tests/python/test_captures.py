"""Captures as people have them: in every form that recorders print, whole or in part."""

from __future__ import annotations

import contextlib
import io
import lzma
import shutil
import subprocess
import threading
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from slabyard.capture import evidence, importer, inputs
from slabyard.command import cli
from slabyard.trace import gfp
from slabyard.trace.file import Metadata

CAPTURES = Path(__file__).parent.parent / "data" / "captures"
NEEDS_PERF = ("alloconly", "filter", "page", "f99", "perthread", "pipez")
EVENTS = "kmem:kmalloc,kmem:kfree,kmem:kmem_cache_alloc,kmem:kmem_cache_free,kmem:mm_page_alloc,kmem:mm_page_free"


def unpacked(name: str, folder: Path) -> Path:
    """A capture of tests/data in its original form."""
    if name.split(".")[0] in NEEDS_PERF and shutil.which("perf") is None:
        pytest.skip("perf is missing (Debian: apt install linux-perf)")
    path = folder / name
    path.write_bytes(lzma.decompress((CAPTURES / f"{name}.xz").read_bytes()))
    return path


def imported(name: str, folder: Path) -> Metadata:
    return importer.import_trace(unpacked(name, folder), folder / "t.parquet")


def text(folder: Path, lines: Iterable[str], end: str = "\n") -> Metadata:
    path = folder / "capture.txt"
    path.write_bytes("".join(line + end for line in lines).encode())
    return importer.import_trace(path, folder / "t.parquet")


HASHED = "its pointers are hashed"


@pytest.mark.parametrize(
    ("name", "events", "cause"),
    [
        ("alloconly.data", 22632, "kfree and kmem_cache_free were not recorded"),
        ("filter.data", 9899, "its events were filtered"),
        ("f99.data", 50, "perf sampled, 99 events a second"),
        ("perthread.data", 279, "one command's processes alone"),
        ("page.data", 1529, "no slab event"),
        ("pipez.data", 39547, None),
        ("tf-fields.txt", 2988, None),
        ("functions.txt", 1999, None),
        ("oops.txt", 1994, None),
        ("tf-latency.txt", 1982, HASHED),
        ("perfetto.txt", 2998, None),
        ("ptrval.txt", 2988, HASHED),
        ("hashmin.txt", 3000, HASHED),
        ("stack.txt", 387, HASHED),
        ("tf-sysc.txt", 2822, HASHED),
        ("tod1.txt", 2000, None),
        ("tcR.txt", 43985, None),
        ("tf-uptime.txt", 2988, HASHED),
        ("kasan-tags.txt", 39481, None),
        ("hdr64.txt", 2968, None),
    ],
)
def test_all_events_are_read_and_what_is_missing_is_told(tmp_path: Path, name: str, events: int, cause: str | None) -> None:
    metadata = imported(name, tmp_path)
    assert (sum(metadata.events.values()), metadata.unparsed_lines) == (events, 0)
    assert (metadata.incomplete or "") == "" if cause is None else cause in (metadata.incomplete or "")


def test_pointer_tags_hide_no_slab(tmp_path: Path) -> None:
    """arm64 keeps a tag in the top byte; without it the direct map is found."""
    metadata = imported("kasan-tags.txt", tmp_path)
    assert (metadata.direct_map.base, metadata.direct_map.unexplained) == ("0xffff888000000000", 0)


def test_the_heading_tells_how_many_cpus_there_are(tmp_path: Path) -> None:
    assert imported("hdr64.txt", tmp_path).cpus == 64
    line = "a-1 [000] ..... 1.000001: kfree: call_site=f+0x1/0x2 ptr=ffff888100000000"
    assert text(tmp_path, ["# tracer: nop", "# entries-in-buffer/entries-written: 1/1   #P:96", line]).cpus == 96


def test_what_perf_script_tells_of_the_recording_is_kept(tmp_path: Path) -> None:
    metadata = imported("hdr64.txt", tmp_path)
    assert (metadata.kernel, metadata.arch) == ("6.18.44-fc-v595", "x86_64")


def test_numbers_for_flags_are_flags(tmp_path: Path) -> None:
    """trace-cmd report -R prints gfp_flags=0xdc0 and accounted=1."""
    metadata = imported("tcR.txt", tmp_path)
    table = pq.read_table(tmp_path / "t.parquet", columns=["accounted", "gfp_flags", "kind"])
    assert sum(table["accounted"].to_pylist()) == 2001
    assert any(gfp.flags_of(one) & gfp.ZERO for one in table["gfp_flags"].unique().to_pylist())
    assert metadata.source == "tracefs"


@pytest.mark.parametrize(
    ("flags", "meaning"),
    [
        ("0xcc0", 0),  # GFP_KERNEL
        ("0xdc0", gfp.ZERO),
        ("0x400dc0", gfp.ZERO | gfp.ACCOUNT),
        ("4197824", gfp.ZERO | gfp.ACCOUNT),
        ("0x820", gfp.HIGHATOMIC),  # GFP_ATOMIC
        ("0x140cca", gfp.MOVABLE),  # GFP_HIGHUSER_MOVABLE
        ("0x6080c0", gfp.ZERO),  # GFP_KERNEL|__GFP_ZERO of 4.19
        ("0x14000c0", 0),
        ("0x80d0", gfp.ZERO),  # of 3.16
        ("0x800d0", gfp.RECLAIMABLE),  # GFP_TEMPORARY of 3.16
    ],
)
def test_flags_as_a_number_by_the_kernels_age(flags: str, meaning: int) -> None:
    assert gfp.flags_of(flags) == meaning


def test_jiffies_are_hundredths_of_a_second(tmp_path: Path) -> None:
    assert imported("tf-uptime.txt", tmp_path).span_seconds == pytest.approx(0.02)


def line(fields: str, before: str = "a-1 [001] ..... 1.000001: ", event: str = "kmem_cache_alloc") -> str:
    return f"{before}{event}: call_site=f+0x1/0x2 {fields}"


SIZES = "bytes_req=56 bytes_alloc=64 gfp_flags=GFP_KERNEL node=-1 accounted=false"


@pytest.mark.parametrize(
    ("capture", "column", "value"),
    [
        (line(f"ptr=0xffff888100000040 {SIZES}"), "size", 56),
        (line("ptr=0xffff888100000040 (-131387225767872) bytes_req=0x38 (56) bytes_alloc=0x40 (64) gfp_flags=0xcc0 (3264) "
              "node=0xffffffff (-1)"), "size", 56),
        (line(f"ptr=18446612686686125120 {SIZES}"), "address", 18446612686686125120),
        (line(f"ptr=f3ff888100000040 {SIZES}"), "address", 0xFFFF888100000040),
        (line("ptr=ffff888100000040 bytes_req=56 bytes_alloc=64 gfp_flags=GFP_KERNEL node=200 accounted=1"), "node", 200),
        (line("ptr=ffff888100000040 bytes_req=56 bytes_alloc=64 gfp_flags=GFP_KERNEL node=0 accounted=(1)"), "accounted", True),
        (line("ptr=ffff888100000040 bytes_req=56 bytes_alloc=64 gfp_flags=GFP_KERNEL node=0 accounted=0"), "accounted", False),
        (line(f"ptr=ffff888100000040 {SIZES}", "a-1     3d..2 35553us+: "), "cpu", 3),
        (line(f"ptr=ffff888100000040 {SIZES}", "[ 1786.276018]  a b-1    11d..2. 1786276018 us : "), "cpu", 11),
        (line(f"ptr=ffff888100000040 {SIZES}", "a-1    2d..2  1786.276018: "), "cpu", 2),
        (line(f"ptr=ffff888100000040 {SIZES}", "a-1 [007]  1786.276018: (+16)    "), "cpu", 7),
        (line(f"ptr=ffff888100000040 {SIZES}", "a 1 [002] 2026-11-27 02:32:27.881636 2740.871007: kmem:"), "cpu", 2),
        (line(f"ptr=ffff888100000040 {SIZES}", "a 1 [002] 2026-11-27 02:32:27.881636 kmem:"), "cpu", 2),
        (line(f"ptr=ffff888100000040 {SIZES}", "a-1 [004] ..... -0.000012: "), "cpu", 4),
        (line(f"ptr=ffff888100000040 {SIZES}", "<pre>a-1 [004] ..... 1.000012: ") + "</pre>", "cpu", 4),
        (line(f"ptr=ffff888100000040 {SIZES}", "\N{ZERO WIDTH NO-BREAK SPACE}a-1 [004] ..... 1.000012: "), "cpu", 4),
        (line(f"ptr=ffff888100000040 {SIZES}") + "\r\r", "cpu", 1),
        ("[02:32:27.881636123] (+0.000000412) host kmem_kmalloc: { cpu_id = 6 }, { call_site = 0xFFFFFFFF812D5A2C, "
         "ptr = 0xFFFF888100000040, bytes_req = 56, bytes_alloc = 64, gfp_flags = 3264 }", "cpu", 6),
        ("[1786.276018123] (+?.?????????) h kmem_cache_alloc: { cpu_id = 1 }, { call_site = 0xFFFFFFFF812D5A2C, name = \"dentry\", "
         "ptr = 0xFFFF888100000040, bytes_req = 192, bytes_alloc = 192, gfp_flags = 3264 }", "size", 192),
    ],
)  # fmt: skip
def test_every_form_of_a_line_and_of_its_values(tmp_path: Path, capture: str, column: str, value: object) -> None:
    metadata = text(tmp_path, [capture])
    assert (sum(metadata.events.values()), metadata.unparsed_lines) == (1, 0)
    assert pq.read_table(tmp_path / "t.parquet")[column].to_pylist() == [value]


def test_times_before_zero_keep_their_distance(tmp_path: Path) -> None:
    times = ("-0.000012", "-0.000002", "0.000008")
    text(tmp_path, [line(f"ptr=ffff8881000000{at}0 {SIZES}", f"a-1 [000] ..... {time}: ") for at, time in enumerate(times)])
    assert pq.read_table(tmp_path / "t.parquet")["time"].to_pylist() == [0, 10_000, 20_000]


@pytest.mark.parametrize(
    "other",
    ["", " => kmem_cache_alloc", "a-1 [001] ..... 1.0: <stack trace>", "a-1 [001] ..... 1.0: sys_read -> 0x10", "</pre></body>",
     "a-1 [001] ..... 1.0: do_filp_open <-do_sys_openat2", "Call trace:", "\tmm/slub.c:4242", " 0)   0.541 us    |  kfree();",
     "[ 1786.2]  kfree+0x8c/0x2f0"],
)  # fmt: skip
def test_lines_without_an_event_of_ours_are_no_gap(tmp_path: Path, other: str) -> None:
    metadata = text(tmp_path, [line(f"ptr=ffff888100000040 {SIZES}"), other])
    assert (metadata.unparsed_lines, metadata.incomplete) == (0, None)


@pytest.mark.parametrize(
    "damaged",
    [
        line("ptr=ffff8881000 bytes_re"),
        "a-1 [001] ..... 1.000002: kfree: call_site=f+0x1",
        "kfree: call_site=f+0x1 ptr=ffff888100000040",
    ],
)
def test_a_damaged_event_is_a_gap(tmp_path: Path, damaged: str) -> None:
    metadata = text(tmp_path, [line(f"ptr=ffff888100000040 {SIZES}"), damaged])
    assert (metadata.unparsed_lines, metadata.incomplete) == (1, "1 line of the capture could not be read")


def test_one_chance_pair_is_no_direct_map(tmp_path: Path) -> None:
    """An object and a page that agree by chance prove little, however often both are used again."""
    lines = []
    for turn in range(570):
        clock = f"a-1 [000] ..... {turn + 1}.00000"
        lines += [
            f"{clock}1: mm_page_alloc: page=1 pfn=0x1f4a59 order=0 migratetype=0 gfp_flags=GFP_KERNEL",
            line(f"ptr=ffff88a1f4a59000 {SIZES}", f"{clock}2: "),
            f"{clock}3: kmem_cache_free: call_site=f+0x1/0x2 ptr=ffff88a1f4a59000",
            f"{clock}4: mm_page_free: page=1 pfn=0x1f4a59 order=0",
        ]
    assert text(tmp_path, lines).direct_map.base in (None, "0xffff88a000000000")
    moved = [one.replace("ffff88a1f4a59000", "0000000005a590f5") for one in lines]
    metadata = text(tmp_path, moved)
    assert (metadata.direct_map.base, metadata.direct_map.hashed) == (None, True)


@pytest.mark.parametrize(
    ("events", "implied", "cause"),
    [
        ({"kmalloc": 1000, "kfree": 900, "kmem_cache_alloc": 500, "kmem_cache_free": 400}, {"implied_frees": 100}, None),
        ({"kmalloc": 1000, "kfree": 900, "kmem_cache_alloc": 500}, {}, "500 kmem_cache_alloc and no kmem_cache_free"),
        ({"kfree": 900}, {}, "900 kfree and no kmalloc"),
        (
            {"kmalloc": 1000, "kfree": 400, "kmem_cache_alloc": 500, "kmem_cache_free": 100},
            {"implied_frees": 800},
            "800 of 1,500 allocations were freed",
        ),
        ({"mm_page_alloc": 5}, {}, "no slab event"),
        ({"kfree": 9, "kmalloc": 9, "mm_page_alloc": 500}, {}, "500 mm_page_alloc and no mm_page_free"),
        ({"kfree": 9, "kmalloc": 9, "mm_page_alloc": 5000, "mm_page_free": 5000}, {"page_contradictions": 140}, None),
        (
            {"kfree": 9, "kmalloc": 9, "mm_page_alloc": 5000, "mm_page_free": 5000},
            {"page_contradictions": 600},
            "600 of 10,000 page events contradict",
        ),
    ],
)
def test_counts_that_contradict_each_other(events: dict[str, int], implied: dict[str, int], cause: str | None) -> None:
    none = dict.fromkeys(("implied_frees", "implied_allocations", "page_contradictions"), 0)
    assert cause is None if not (found := evidence.of_counts(events, {**none, **implied})) else cause is not None and cause in found[0]


EVENT = "# event : name = kmem:{}, , id = {{ 1 }}, type = 2, {{ sample_period, sample_freq }} = {}, inherit = 1{}\n"


@pytest.mark.parametrize(
    ("options", "period", "attributes", "cause"),
    [
        ("-q -a -m 4M", 1, "", None),
        ("-a -F 99", 99, ", freq = 1", "perf sampled"),
        ("-a -c 10", 10, "", "one event of 10"),
        ("-g", 1, ", enable_on_exec = 1", "one command's processes"),
        ("--pid=12", 1, "", "some processes alone"),
        ("-p 12", 1, "", "some processes alone"),
        ("-a -C 1", 1, "", "some CPUs alone"),
        ("-a --cgroup web", 1, "", "one cgroup alone"),
        ("-a --filter bytes_alloc>64", 1, "", "filtered"),
        ("-a --call-graph fp --period", 1, "", None),
    ],
)
def test_what_perfs_header_shows(options: str, period: int, attributes: str, cause: str | None) -> None:
    events = "".join(EVENT.format(name, period, attributes) for name in evidence.OBJECT_EVENTS)
    found = evidence.of_header(f"# cmdline : /usr/bin/perf record {options} -e kmem:* -- make -p -C src\n{events}")
    assert found == [] if cause is None else len(found) == 1 and cause in found[0]


def test_without_slab_events_nothing_is_replayed(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    imported("ptrval.txt", tmp_path)
    assert cli.main(["replay", str(tmp_path / "t.parquet"), "--allocator", "slub"]) == 2
    told = capfd.readouterr().err.splitlines()
    assert len(told) == 1 and "no slab event that could be replayed" in told[0]


def test_heaptrack(tmp_path: Path) -> None:
    metadata = importer.import_trace(CAPTURES / "heaptrack.zst", tmp_path / "t.parquet")
    assert (metadata.source, metadata.events["kmalloc"], metadata.events["kfree"], metadata.unknown_frees) == ("heaptrack", 88, 29, 0)
    sites = pq.read_table(tmp_path / "t.parquet")["call_site"].unique().to_pylist()
    assert "_nl_normalize_codeset" in sites


def test_two_bytes_a_character(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "t.txt").write_bytes(line(f"ptr=ffff888100000040 {SIZES}").encode("utf-16"))
    assert cli.main(["import", str(tmp_path / "t.txt"), "-o", str(tmp_path / "t.parquet")]) == 2
    assert "UTF-8" in capfd.readouterr().err


def test_the_file_of_trace_cmd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    damaged, output = tmp_path / "trace.dat", tmp_path / "t.parquet"
    damaged.write_bytes(b"\x17\x08\x44tracing6\0\0\x01" * 10)
    if shutil.which("trace-cmd"):
        assert cli.main(["import", str(damaged), "-o", str(output)]) == 2
        assert "damaged, or not by trace-cmd" in capfd.readouterr().err
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert cli.main(["import", str(damaged), "-o", str(output)]) == 4
    assert "apt install trace-cmd" in capfd.readouterr().err
    assert not output.exists()


def assert_whole(metadata: Metadata) -> None:
    """Nothing is missing. On a busy machine such a short recording may still have pages whose use nothing tells."""
    assert metadata.rows and not (metadata.partial or metadata.lost or metadata.truncated or metadata.unparsed_lines)


def test_what_perf_record_makes(tmp_path: Path) -> None:
    """A folder (--threads), a stream on standard input (-o -), the parts of one recording (--switch-output)."""
    if shutil.which("perf") is None:
        pytest.skip("perf is missing (Debian: apt install linux-perf)")
    record = ["perf", "record", "-q", "-a", "-m", "16M", "-e", EVENTS]
    if subprocess.run([*record, "--threads", "-o", str(tmp_path / "folder"), "--", "true"], capture_output=True, check=False).returncode:
        pytest.skip("perf may not record here (it takes root, or kernel.perf_event_paranoid of -1)")
    assert_whole(importer.import_trace(tmp_path / "folder", tmp_path / "folder.parquet"))
    with (tmp_path / "stream.data").open("wb") as stream:
        subprocess.run([*record, "-o", "-", "--", "true"], stdout=stream, stderr=subprocess.DEVNULL, check=True)
    with (tmp_path / "stream.data").open("rb") as stream, pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stdin", stream)
        assert_whole(importer.import_trace("-", tmp_path / "stream.parquet"))
    parts = [tmp_path / "one.data", tmp_path / "two.data"]
    for part in parts:
        subprocess.run([*record, "-o", str(part), "--", "true"], capture_output=True, check=True)
    counts = [sum(importer.import_trace(part, tmp_path / "part.parquet").events.values()) for part in parts]
    assert sum(importer.import_trace(parts, tmp_path / "both.parquet").events.values()) == sum(counts)


# ---- Text that went through other programs -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "events", "span", "tasks"),
    [("tf-verbose.txt", 511, 0.001204, 3), ("tf-latency-tsc.txt", 502, None, 6), ("tf-grep-colour.txt", 508, None, 2),
     ("tc-uptime.txt", 822, 0.03, 11)],
)  # fmt: skip
def test_other_forms_of_tracefs(tmp_path: Path, name: str, events: int, span: float | None, tasks: int) -> None:
    """Latency format with the option verbose and with a clock that counts; text of `grep --color`; jiffies that trace-cmd prints as ns."""
    metadata = imported(name, tmp_path)
    table = pq.read_table(tmp_path / "t.parquet")
    assert (sum(metadata.events.values()), metadata.unparsed_lines, metadata.unknown_events) == (events, 0, {})
    assert len(set(table["task"].to_pylist()) - {""}) == tasks
    assert span is None or metadata.span_seconds == pytest.approx(span)
    assert metadata.counted_times == (name == "tf-latency-tsc.txt")


WHOLE = line(f"ptr=ffff888100000040 name=dentry {SIZES}", "            bash-12      [001] .....   999.973459: ")
FREE = "            bash-12      [001] .....   999.973460: kmem_cache_free: call_site=f+0x1/0x2 ptr=ffff888100000040 name=dentry"


@pytest.mark.parametrize(
    "wrap",
    ["{}\x1b[m\x1b[K", "\x1b[01;31m{}\x1b[0m", '"{}"', '"{}",', "{};", "<span>{}</span><br/>", "  | {}", "> {}", "{}  \t"],
)
def test_what_is_around_a_line_is_no_part_of_it(tmp_path: Path, wrap: str) -> None:
    metadata = text(tmp_path, [wrap.format(one) for one in (WHOLE, FREE.replace("ptr=", "\x1b[1mptr=\x1b[0m"))])
    rows = pq.read_table(tmp_path / "t.parquet").to_pylist()
    assert [(row["kind"], row["cache_name"], row["accounted"], row["origin"]) for row in rows] == [
        ("kmem_cache_alloc", "dentry", False, "recorded"), ("kmem_cache_free", "dentry", False, "recorded"),
    ]  # fmt: skip
    assert (metadata.unparsed_lines, metadata.unknown_frees) == (0, 0)


@pytest.mark.parametrize(
    ("before", "task"),
    [
        ("Nov 29 11:18:36 host kernel:             bash-12    ", "bash"),
        ("[ 1000.000012]  Web Content-12    ", "Web Content"),
        ("[ 1000.000012][    C1]  slabyard-python-12    ", "slabyard-python"),
        ("trace.txt:12:            a [1] b-12    ", "a [1] b"),
        ("     7\t            bash-12    ", "bash"),
        ("Nov 29 11:18:36 host kernel: bash-12 ", "bash"),
        ("Web Content 12 ", "Web Content"),
        ("kworker/u4:2-events_unbound 12 ", "kworker/u4:2-events_unbound"),
    ],
)
def test_what_a_log_puts_before_a_task_is_not_its_name(tmp_path: Path, before: str, task: str) -> None:
    text(tmp_path, [line(f"ptr=ffff888100000040 {SIZES}", f"{before}[001] .....   999.973459: ")])
    row = pq.read_table(tmp_path / "t.parquet").to_pylist()[0]
    assert (row["task"], row["pid"], row["cpu"]) == (task, 12, 1)


def many(count: int, cpu: int = 1) -> list[str]:
    """Lines of that many kmallocs, by two tasks."""
    return [
        f"            bash-{12 + number % 2}      [{cpu:03}] .....   999.{number:06}: kmalloc: call_site=f+0x1/0x2 "
        f"ptr={0xFFFF888100000000 + 64 * number:x} bytes_req=56 bytes_alloc={64 << number % 2} gfp_flags=GFP_KERNEL node=-1 "
        "accounted=false"
        for number in range(count)
    ]


def test_cut_lines_are_told(tmp_path: Path) -> None:
    cut = [one[: one.index(" gfp_flags")] for one in many(50)]
    metadata = text(tmp_path, [*many(50), *cut[:40]])
    assert "40 lines have not the fields that others of their event have" in (metadata.incomplete or "")
    metadata = text(tmp_path, [*many(50), cut[0] + cut[1]])
    assert "1 line has not the fields" in (metadata.incomplete or "")


def test_zeros_in_a_text_are_no_binary(tmp_path: Path) -> None:
    """As a machine that lost its power leaves them in a log."""
    metadata = text(tmp_path, [*many(50), "\0" * 4096 + many(60)[50], *many(60)[51:]])
    assert (metadata.events, metadata.unparsed_lines) == ({"kmalloc": 60}, 0)


def test_events_that_stand_twice_are_told(tmp_path: Path) -> None:
    lines = many(90)
    assert "20 events stand in it twice" in (text(tmp_path, [*lines, *lines[10:30]]).incomplete or "")
    assert text(tmp_path, lines).incomplete is None


@pytest.mark.parametrize(
    ("lines", "doubt"),
    [
        (["# tracer: nop", "# entries-in-buffer/entries-written: 1400/1400   #P:1", *many(1200)], "counts 1,400 events, and 1,200 stand"),
        (["# tracer: nop", "# entries-in-buffer/entries-written: 1200/1200   #P:2", *many(1200)], "of CPU 1, of 2 CPUs"),
        ([one.replace("bash-13", "bash-12") for one in many(1200, cpu=0)], "of task 12"),
        ([one.replace("bytes_alloc=128", "bytes_alloc=64") for one in many(1200, cpu=0)], "of 64 bytes"),
        (many(1200, cpu=0), None),
        (["# tracer: function", "# entries-in-buffer/entries-written: 1400/1400   #P:1", *many(1200, cpu=0)], None),
    ],
)
def test_what_may_mean_that_events_were_left_out(tmp_path: Path, lines: list[str], doubt: str | None) -> None:
    found = text(tmp_path, lines).doubt
    assert found is None if doubt is None else doubt in (found or "")


def test_what_was_overwritten_is_told_in_latency_format_too(tmp_path: Path) -> None:
    event = "  bash-12      1d..2 1024398365us : kfree: call_site=f+0x1/0x2 ptr=ffff888100000040"
    assert text(tmp_path, ["# latency: 0 us, #1/51, CPU#0 | (M:PREEMPT VP:0, KP:0, SP:0 HP:0 #P:2)", event]).lost == 50
    heading = "# entries-in-buffer/entries-written: 2/52   #P:2"
    lines = [f"a-1 [00{cpu}] ..... 1.0000{cpu}: kfree: call_site=f+0x1/0x2 ptr=ffff888100000040" for cpu in (0, 1)]
    assert text(tmp_path, [heading, lines[0], heading, lines[1]]).lost == 50, "the files of two CPUs have one heading"


def test_counts_of_a_clock_are_no_seconds(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    lines = many(1200)
    assert not text(tmp_path, lines).counted_times
    assert text(tmp_path, [f"{one[:38]}  0.000172: {one.split(': ', 1)[1]}" for one in lines]).counted_times, "jiffies in microseconds"
    assert not text(tmp_path, [f"{one[:38]}  0.170000: {one.split(': ', 1)[1]}" for one in lines]).counted_times, "a coarse clock"
    assert text(tmp_path, [one.replace("999.", "447220300") for one in lines[:5]]).counted_times
    assert cli.main(["info", str(tmp_path / "t.parquet")]) == 0
    assert "4 counts of a clock, taken for nanoseconds" in capfd.readouterr().out


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"     0.000 python/7017 kmem:mm_page_free(pfn: 2915604)\n", "as in `0.000 python/7017 kmem:mm_page_free(pfn: 2915604)`"),
        (b"perf 29462 [000]  1214.316113:  kmem:kmalloc: \n", "and fields, as in `perf 29462 [000]"),
        (WHOLE.replace("999.", "4294968295.").encode() + b"\n", "time (below 73 years)"),
        (WHOLE.encode("utf-16-le"), "16 or 32 bits"),
        (WHOLE.encode("utf-32-be"), "16 or 32 bits"),
        (b"PK\x03\x04" + bytes(range(60)), "unpack an archive"),
    ],
)
def test_the_cause_why_nothing_can_be_read(tmp_path: Path, content: bytes, words: str, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "t.txt").write_bytes(content)
    assert cli.main(["import", str(tmp_path / "t.txt"), "-o", str(tmp_path / "t.parquet")]) == 2
    assert words in capfd.readouterr().err


def test_an_import_that_ends_while_a_thread_unpacks_says_nothing_of_the_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is closed between two reads of it."""
    path, raised, closed = tmp_path / "trace.txt", [], threading.Event()
    path.write_bytes(b"x" * 64)
    monkeypatch.setattr(threading, "excepthook", raised.append)

    class Slow(io.RawIOBase):
        def __init__(self, file: io.RawIOBase) -> None:
            self._file = file

        def read(self, size: int = -1) -> bytes | None:
            closed.wait()
            return self._file.read(size)

    running = set(threading.enumerate())
    with path.open("rb", 0) as file, contextlib.ExitStack() as stack:
        inputs._through_thread(str(path), file, Slow, stack)
        feeder = (set(threading.enumerate()) - running).pop()
    closed.set()
    feeder.join()
    assert not raised


def test_more_compressors(tmp_path: Path) -> None:
    content = (WHOLE + "\n").encode()
    (tmp_path / "t.lzma").write_bytes(lzma.compress(content, lzma.FORMAT_ALONE))
    with pa.output_stream(tmp_path / "t.lz4", compression="lz4") as file:
        file.write(content)
    for name in ("t.lzma", "t.lz4"):
        assert importer.import_trace(tmp_path / name, tmp_path / "t.parquet").events == {"kmem_cache_alloc": 1}


def test_what_overwrote_perfs_buffers_shows_in_its_header() -> None:
    events = "".join(EVENT.format(name, 1, ", write_backward = 1") for name in evidence.OBJECT_EVENTS)
    assert "overwritten" in evidence.of_header(f"# cmdline : /usr/bin/perf record -a --overwrite\n{events}")[0]


def test_an_event_that_perf_recorded_twice_shows_in_its_header() -> None:
    """Each has a time of its own, so the events themselves do not tell."""
    events = "".join(EVENT.format(name, 1, "") for name in (*evidence.OBJECT_EVENTS, "kmalloc"))
    assert evidence.of_header(f"# cmdline : /usr/bin/perf record -a\n{events}") == [
        "kmalloc was recorded twice (name each event once in -e)"
    ]


def test_objects_of_one_page_are_no_proof_of_a_direct_map(tmp_path: Path) -> None:
    """A page that other memory uses, and one page of objects, agree by chance; however many the objects are."""
    lines = []
    for turn in range(30):
        clock = f"a-1 [000] ..... {turn + 1}.00000"
        lines += [
            f"{clock}1: mm_page_alloc: page=1 pfn=0x1f4a59 order=0 migratetype=0 gfp_flags=GFP_KERNEL",
            line(f"ptr=ffff88a1e7259{64 * turn:03x} {SIZES}", f"{clock}2: "),
            f"{clock}4: mm_page_free: page=1 pfn=0x1f4a59 order=0",
        ]
    assert text(tmp_path, lines).direct_map.base is None


def test_a_recording_that_was_killed_says_so(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "trace.dat").write_bytes(b"\x17\x08\x44tracing6\0\0\x01" * 10)
    (tmp_path / "trace.dat.cpu0").write_bytes(b"")
    assert cli.main(["import", str(tmp_path / "trace.dat"), "-o", str(tmp_path / "t.parquet")]) == 2
    assert "trace-cmd restore trace.dat.cpu*" in capfd.readouterr().err
