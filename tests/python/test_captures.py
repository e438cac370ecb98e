"""Captures as people have them: in every form that recorders print, whole or in part."""

from __future__ import annotations

import lzma
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from slabyard.capture import evidence, importer
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
    record = ["perf", "record", "-q", "-a", "-e", EVENTS]
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
