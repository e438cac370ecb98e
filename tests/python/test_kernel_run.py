"""Kernels: guests, boots, records and profiles, with a sham kernel (kernel_support)."""

from __future__ import annotations

import dataclasses
import json
import os
import queue
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kernel_support import make_tree
from slabyard.command import cli
from slabyard.base import programs, stacks
from slabyard.report import page as report
from slabyard.base.errors import UserError
from slabyard.command import kernel_verbs as commands
from slabyard.kernels import bench, build, cache, compare, cost, flame, guest, icicle, kinds, machine, run, source, tools, workloads
from slabyard.base.terminal import Progress

needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
needs_busybox = pytest.mark.skipif(shutil.which("busybox") is None, reason="needs busybox")


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    source._ident.cache_clear()


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> machine.Plan:
    monkeypatch.setattr(tools.Tool, "there", lambda tool: True)
    monkeypatch.setattr(guest, "archive", lambda job, settings, samples: b"")
    monkeypatch.setattr(tools, "boot", lambda arch: None)
    tree = make_tree(tmp_path / "tree")
    spec = kinds.parse("slub")
    kernel = build.build(build.Request(source.find(tree), "um", spec.kind))
    return machine.Plan(spec, kernel, workloads.Job("nothing", ["true"], workloads.WORKLOADS["boot"]), machine.Hardware(), 10)


def with_parameter(plan: machine.Plan, word: str, timeout: float = 10) -> machine.Plan:
    return machine.Plan(kinds.Spec("slub", plan.spec.kind, (word,)), plan.kernel, plan.job, plan.hardware, timeout)


# ---- Guests ------------------------------------------------------------------------------------------------------------------


def test_an_archive_is_what_cpio_reads(tmp_path: Path) -> None:
    made = guest.Archive()
    made.file("usr/bin/hello", b"echo hello\n", 0o755)
    made.file("usr/bin/hello", b"not this one")
    made.link("bin/hi", "/usr/bin/hello")
    made.device("dev/console", 5, 1)
    listed = subprocess.run(["cpio", "-tv", "--quiet"], input=made.whole(), capture_output=True, check=True)
    lines = listed.stdout.decode().splitlines()
    assert [line.split()[0] for line in lines] == ["drwxr-xr-x", "drwxr-xr-x", "-rwxr-xr-x", "lrwxrwxrwx", "crw-------"]
    assert "5,   1" in lines[4] and lines[3].endswith("bin/hi -> /usr/bin/hello")
    assert made.whole() == made.whole()


def test_the_job_is_a_script_that_a_shell_reads() -> None:
    job = workloads.Job("x", ["sh", "-c", "echo 'a b' $HOME"], workloads.Workload("x", "", "", prepare="mkdir /mnt/x"))
    text = guest.script(job, {"OUT": "hostfs", "HOST": "/tmp/with blank", "PERIOD": "20"})
    shell = f'{text}\nmeasure() {{ for word; do echo "[$word]"; done; }}\n'.replace("/slabyard/measure", "measure")
    done = subprocess.run(["sh", "-c", f"{shell}\nload; echo $HOST"], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["[20]", "[sh]", "[-c]", "[echo 'a b' $HOME]", "/tmp/with blank"]


def test_libraries_are_those_of_the_loader() -> None:
    found = guest.libraries(Path(sys.executable).resolve())
    assert any("libc.so" in path.name for path in found) and all(path.is_absolute() for path in found)
    assert guest.libraries(Path(__file__)) == []


def test_what_boots_is_looked_for_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "busybox").write_bytes(b"\x7fELF with /lib64/ld-linux-x86-64.so.2")
    monkeypatch.setattr(tools, "which", lambda name: str(tmp_path / name) if name == "busybox" else None)
    with pytest.raises(UserError, match="booting a kernel for x86_64 needs qemu-system-x86_64, which is missing"):
        tools.boot("x86_64")
    with pytest.raises(UserError, match=r"needs a static busybox, and .*/busybox is none"):
        tools.boot("um")
    (tmp_path / "busybox").write_bytes(b"\x7fELF")
    tools.boot("um")
    monkeypatch.setattr(tools, "which", lambda name: None)
    with pytest.raises(UserError, match=r"needs busybox, qemu-system-x86_64, which are missing .*busybox-static qemu-system-x86;"):
        tools.boot("x86_64")
    with pytest.raises(UserError, match=r"needs aarch64-linux-gnu-gcc, readelf, qemu-system-aarch64, .*apt install gcc-aarch64-linux-gnu "):
        tools.boot("arm64")


@needs_gcc
def test_measure_measures(tmp_path: Path) -> None:
    measure = guest.compiled("measure")
    assert tools.is_static(measure) and guest.compiled("measure") == measure
    done = subprocess.run([measure, "5", "sh", "-c", "echo out; sleep 0.05; exit 3"], capture_output=True, text=True, check=True)
    figures = dict(line.split() for line in done.stdout.splitlines())
    assert int(figures["elapsed_ns"]) > 50_000_000 and figures["status"] == "3"
    assert int(figures["slab_peak_kb"]) > 0 and int(figures["looks"]) > 3
    assert done.stderr == "out\n"
    missing = subprocess.run([measure, "5", "no-such-program"], capture_output=True, text=True, check=True)
    assert "status 127" in missing.stdout and "no-such-program" in missing.stderr


@needs_gcc
@needs_busybox
@pytest.mark.parametrize("name", ["boot", "spike", "kenbus"])
def test_a_guest_has_what_its_workload_needs(name: str) -> None:
    archive = guest.archive(workloads.parse(name), {"OUT": "disk"})
    for part in (b"slabyard/measure\0", b"init\0", b"bin/busybox\0", b"dev/console\0"):
        assert part in archive
    assert (b"slabyard/spike\0" in archive) is (name == "spike")
    for part in (b"slabyard/kenbus\0", b"slabyard/project\0", b"usr/bin/as\0"):
        assert (part in archive) is (name == "kenbus")


def test_an_emulated_processor_unpacks_nothing(tmp_path: Path, plan: machine.Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(guest, "archive", lambda job, given, samples: b"070701")
    argv, _ = machine._um(plan, tmp_path)
    assert f"initrd={tmp_path}/guest" in argv and (tmp_path / "guest").read_bytes()[:2] == b"\x1f\x8b"
    argv, _ = machine._qemu(dataclasses.replace(plan, kernel=dataclasses.replace(plan.kernel, arch="x86_64")), tmp_path)
    assert argv[argv.index("-initrd") + 1] == f"{tmp_path}/guest" and (tmp_path / "guest").read_bytes() == b"070701"


def test_workloads_named_twice() -> None:
    with pytest.raises(UserError, match="names boot twice"):
        commands._jobs(["boot", "boot"], "um")


def test_workloads_and_commands() -> None:
    assert workloads.parse("sh -c 'exit 0'").command == ["sh", "-c", "exit 0"]
    both = workloads.parse("spike+tar")
    assert both.name == "spike+tar" and both.command[:2] == ["sh", "-c"]
    assert both.command[2].startswith("/slabyard/spike 1 && sh /slabyard/mark spike && sh -c '")
    assert both.workload.spike and both.workload.prepare == "true && " + workloads.WORKLOADS["tar"].prepare
    everything = shlex.split(workloads.WORKLOADS["all"].command)
    assert everything[:2] == ["sh", "-c"] and "-exec file '{}' ';' && sh /slabyard/mark find && sh -c 'sysbench" in everything[2]
    with pytest.raises(UserError, match="neither a workload nor a program no-such-thing"):
        workloads.parse("no-such-thing -x")
    with pytest.raises(UserError, match="no closing quotation"):
        workloads.parse("sh -c 'exit")
    with pytest.raises(UserError, match="names nothing"):
        workloads.parse(" ")


# ---- Boots -------------------------------------------------------------------------------------------------------------------


def test_a_boot_becomes_figures(plan: machine.Plan) -> None:
    ends: list[None] = []
    done = run.once(plan, ended=lambda: ends.append(None))
    assert ends == [None]
    assert done.figures.pop("processor_seconds") >= 0
    assert done.figures == {
        "seconds": 0.25, "user_seconds": 0.001, "system_seconds": 0.2, "context_switches": 7, "boot_seconds": 0.5, "held_pages_start": 1000,
        "held_pages_peak": 2000, "held_pages_end": 1100, "grew_pages_peak": 1000, "grew_pages_end": 100, "fragmentation_events": 2,
        "fragmentation_events_boot": 3,
    }  # fmt: skip
    assert done.trouble == ["WARNING: CPU: 0 PID: 1 at mm/slub.c:1"]
    late = run.once(with_parameter(plan, "late=now", 10)).figures
    assert late["held_pages_peak"] == late["held_pages_end"] == 2250, "what is there at the end was there"
    record = run.record(plan, [done, done])
    assert record["run"]["substrate"] == "kernel" and record["run"]["repetition"] == 2 and record["exact"] == {}
    assert record["kernel"]["caches"][0]["name"] == "kmalloc-64" and record["kernel"]["before"].keys() == {"meminfo"}
    json.dumps(record)


@pytest.mark.parametrize(
    ("word", "complaint"),
    [
        ("panic=now", "nothing on slub: Kernel panic - not syncing: asked for"),
        ("noroom=now", "no room for what the guest hands out in .*; have TMPDIR name"),
        ("full=now", "no room for the guest's memory in .*; have TMPDIR name"),
        ("unprepared=now", "nothing on slub: could not be prepared in the guest: mke2fs: out of space"),
        ("cpus=two", "nothing on slub: the kernel found 2 of its machine's 1 CPUs"),
        ("die=now", "the guest ended before it was done: init: not found"),
        ("hang=now", "not done after 0.5 s; --timeout gives it longer. Its last words: starting"),
    ],
)
def test_a_boot_that_fails_is_told(plan: machine.Plan, word: str, complaint: str) -> None:
    with pytest.raises(UserError, match=complaint):
        run.once(with_parameter(plan, word, 0.5 if word == "hang=now" else 10))


def test_a_kernel_that_does_not_switch_itself_off_is_ended(plan: machine.Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "SILENCE", 1)
    done = run.once(with_parameter(plan, "stay=now", 20))
    assert done.figures["seconds"] == 0.25 and done.trouble[-1] == "the kernel did not switch itself off"
    assert "the kernel did not switch itself off" not in run.once(plan).trouble


def test_hardware_that_cannot_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "kvm", lambda: False)
    machine.Hardware(1 << 30, 4, 2).check("x86_64")
    for hardware, arch, complaint in (
        (machine.Hardware(cpus=2), "um", "one CPU and one node"),
        (machine.Hardware(1 << 30, 1, 2), "x86_64", "cannot be shared evenly by 2 nodes"),
        (machine.Hardware(32 << 20), "um", "at least 64M"),
        (machine.Hardware(1 << 60), "um", "must be less than this machine's own, "),
        (machine.Hardware(accelerator="tcg"), "um", "a user-mode kernel has no accelerator"),
        (machine.Hardware(accelerator="kvm"), "arm64", "a kernel for arm64 runs in software"),
        (machine.Hardware(accelerator="kvm"), "x86_64", "closed to this user, or the processor does not virtualise"),
    ):
        with pytest.raises(UserError, match=complaint):
            hardware.check(arch)
    monkeypatch.setattr(machine, "kvm", lambda: True)
    machine.Hardware(accelerator="kvm").check("x86_64")


@pytest.mark.parametrize(("flags", "there"), [("fpu vmx sse", True), ("fpu svm", True), ("fpu svm_lock vmxy", False)])
def test_kvm_needs_a_processor_that_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: str, there: bool) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text(f"model name\t: x\nflags\t\t: {flags}\nbugs\t: svm\n")
    device = tmp_path / "kvm"
    device.touch()
    monkeypatch.setattr(machine.fcntl, "ioctl", lambda descriptor, request, value: os.open(device, os.O_RDONLY))
    assert machine.kvm(str(device), str(cpuinfo)) is there
    assert machine.kvm(str(tmp_path / "none"), str(cpuinfo)) is False
    monkeypatch.undo()
    assert machine.kvm(str(device), str(cpuinfo)) is False  # no KVM behind it


def test_the_guests_first_program_is_a_script() -> None:
    subprocess.run(["sh", "-n"], input=guest._resource("init.sh"), check=True)


def first_program(tmp_path: Path, prepare: str, load: str) -> dict[str, str]:
    """What the guest's first program hands out, run as a script of this machine with folders of its own."""
    places = {"/run": "run", "/sys/kernel/tracing": "tracing", "/slabyard/job": "job"}
    text = guest._resource("init.sh").decode()
    for place, name in places.items():
        text = text.replace(place, str(tmp_path / name))
    for name in ("run", "tracing"):
        (tmp_path / name).mkdir()
    (tmp_path / "tracing/trace").touch()
    functions = f"prepare() {{ {prepare}; }}\nload() {{ {load}; }}\nafter() {{ :; }}\n"
    (tmp_path / "job").write_text(f"OUT=hostfs\nTRACE=none\nHOST=x\n{functions}")
    privileged = "".join(f"{name}() {{ :; }}\n" for name in ("mount", "poweroff", "reboot", "sleep", "dmesg"))
    done = subprocess.run(["sh", "-c", privileged + text], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "slabyard: done"
    return machine.split(machine._results(tmp_path / "run/host/results"))


def test_what_cannot_be_prepared_is_not_measured(tmp_path: Path) -> None:
    texts = first_program(tmp_path, "echo mke2fs: out of space; false", "echo loaded")
    assert texts["unprepared"] == "mke2fs: out of space\n" and "measured" not in texts and "end" in texts


@pytest.mark.parametrize("said", [r"a\0b\n", r"\0ab\0", "ab", r"a\0b"])
def test_what_a_workload_prints_ends_no_stream(tmp_path: Path, said: str) -> None:
    texts = first_program(tmp_path, "true", f"echo status 0; printf '{said}' >&2")
    assert (texts["measured"], texts["output"]) == ("status 0\n", "ab\n")
    assert {"log", "extfrag", "before/meminfo", "after/vmstat", "end"} <= texts.keys() and "unprepared" not in texts


def test_qemu_gets_a_node_for_each_socket(tmp_path: Path, plan: machine.Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools, "which", lambda name: f"/usr/bin/{name}")
    spec, hardware = kinds.Spec("slub", plan.spec.kind, ("slub_max_order=0",)), machine.Hardware(1 << 30, 4, 2, "tcg")
    what = machine.Plan(spec, dataclasses.replace(plan.kernel, arch="x86_64"), plan.job, hardware, trace=64 << 20)
    argv, accelerator = machine._qemu(what, tmp_path)
    text = " ".join(argv)
    assert accelerator == "tcg" and "-accel tcg" in text and "-smp 4,sockets=2" in text
    assert "node,nodeid=1,memdev=m1,cpus=2-3" in text and "slub_max_order=0" in text and "trace_buf_size=16384K" in text
    assert "trace_clock=" in text  # or the kernel may choose another one late, and empty the trace
    assert (tmp_path / "trace.txt").stat().st_blocks == 0


def test_a_kernel_that_knows_no_acpi_gets_a_socket_for_each_cpu(
    tmp_path: Path, plan: machine.Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tools, "which", lambda name: f"/usr/bin/{name}")
    kernel = dataclasses.replace(plan.kernel, arch="x86_64", about={**plan.kernel.about, "small": True})
    what = dataclasses.replace(plan, kernel=kernel, hardware=machine.Hardware(1 << 30, 4))
    assert "-smp 4,sockets=4" in " ".join(machine._qemu(what, tmp_path)[0])


def test_arm64_boots_on_qemus_board(tmp_path: Path, plan: machine.Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(machine, "kvm", lambda: True)
    kernel = dataclasses.replace(plan.kernel, arch="arm64")
    what = dataclasses.replace(plan, kernel=kernel, hardware=machine.Hardware(1 << 30, 4, 2))
    argv, accelerator = machine._qemu(what, tmp_path)
    text = " ".join(argv)
    assert argv[0] == "/usr/bin/qemu-system-aarch64" and accelerator == "tcg" and kernel.image.name == "Image"
    assert "-machine virt,gic-version=3" in text and "console=ttyAMA0" in text and "GLIBC_TUNABLES" not in text
    assert "virtio-blk-device,bus=virtio-mmio-bus.0,drive=results" in text
    monkeypatch.setattr(cost, "plugin", lambda: Path("/count.so"))
    kernel.map.write_text("ffffffff81000100 T kfree\n")
    one = " ".join(machine._qemu(dataclasses.replace(what, hardware=machine.Hardware(1 << 30), counts=True), tmp_path)[0])
    assert "-icount" in one and "virtio-blk-device" not in one and one.count("-serial") == 1 and "slabyard_timer" not in one


def test_a_boot_that_counts_depends_on_nothing_of_this_machine(tmp_path: Path, plan: machine.Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(cost, "plugin", lambda: Path("/count.so"))
    plan.kernel.map.write_text("ffffffff81000100 T kfree\n")
    settings = []
    monkeypatch.setattr(guest, "archive", lambda job, given, samples: settings.append(given) or b"")
    kernel = dataclasses.replace(plan.kernel, arch="x86_64")
    one = dataclasses.replace(plan, kernel=kernel, hardware=machine.Hardware(1 << 30), counts=True)
    argv, accelerator = machine._qemu(one, tmp_path)
    text = " ".join(argv)
    assert accelerator == "tcg" and "-accel tcg,thread=single" in text and "-drive" not in text
    assert f"-serial file:{tmp_path}/results" in text and "slabyard_timer=1000000000 " in text
    assert f"-plugin /count.so,symbols={tmp_path}/symbols,counts={tmp_path}/counts" in text and "-icount" in text and "clock=vm" in text
    assert (tmp_path / "symbols").read_text() == "0 -\nffffffff81000100 f\n"
    several = " ".join(machine._qemu(dataclasses.replace(one, hardware=machine.Hardware(1 << 30, 4)), tmp_path)[0])
    assert "thread=single" in several and "-icount" not in several
    assert settings[0]["OUT"] == "serial" and int(settings[0]["PERIOD"]) > 10**6


def test_streams_are_cut_and_split(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    text = "@@slabyard a/b\nline\n@@slabyard end\n"
    for length in (0, 1, 4095, len(text)):
        with disk.open("wb") as file:
            file.write((text * 200).encode()[:length])
            file.truncate(1 << 20)
        assert machine._results(disk) == (text * 200)[:length]
        machine._cut(disk)
        assert disk.stat().st_size == length
    assert machine.split(text) == {"a/b": "line\n", "end": ""}
    assert machine.split("") == {}


def test_a_user_mode_kernel_that_complains_of_itself_is_no_trouble() -> None:
    ruler, complaint = "[    0.37] =============================", "[    0.37] WARNING: suspicious RCU usage"
    own = [ruler, complaint, "[    0.37] lib/maple_tree.c:860 suspicious", "[    0.37]  [<60026f4e>] force_flush_all+0x5e/0x90"]
    others = [ruler, complaint, "[    0.37]  [<60026f4e>] kmem_cache_free+0x5e/0x90"]
    assert run.trouble("\n".join([*own, *own])) == []
    for log in ([*others, *own], [*own, *others], others):
        assert run.trouble("\n".join(log)) == ["WARNING: suspicious RCU usage"]
    assert run.trouble("\n".join([*own, "[    0.38] BUG: x"])) == ["BUG: x"]


def test_attributes_are_those_of_every_name() -> None:
    text = "/sys/kernel/slab/:0000064/align:8\n/sys/kernel/slab/filp/align:64\n/sys/kernel/slab/filp/object_size:256\n"
    assert run.attributes(text) == {"filp": {"align": "64", "object_size": "256"}}


def test_a_traced_boot_counts_fallbacks_of_its_trace(tmp_path: Path) -> None:
    trace = tmp_path / "trace.txt"
    trace.write_text("x: mm_page_alloc_extfrag: a\nx: tracing_mark_write: before\nx: mm_page_alloc_extfrag: a\n")
    outcome = machine.Outcome({}, "", trace)
    assert run.fallbacks(outcome) == {"fragmentation_events": 1, "fragmentation_events_boot": 2}


# ---- Comparison and command line ---------------------------------------------------------------------------------------------


def test_a_trace_whose_first_mark_was_lost_is_incomplete(plan: machine.Plan, tmp_path: Path) -> None:
    trace = tmp_path / "trace.txt"
    trace.write_text(
        "# tracer: nop\n#\n# entries-in-buffer/entries-written: 3/500   #P:1\n"
        "     swapper-1 [000] ..... 1.0: kmalloc: call_site=0x1 ptr=0x1000 bytes_req=8 bytes_alloc=8 gfp_flags=GFP_KERNEL node=-1\n"
        "     swapper-1 [000] ..... 2.0: kfree: call_site=0x1 ptr=0x1000\n"
        "     swapper-1 [000] ..... 3.0: tracing_mark_write: end\n"
    )
    texts = {f"{when}/meminfo": "Slab: 40 kB\n" for when in ("before", "after")}
    metadata = run._import(plan, machine.Outcome(texts, "", trace), tmp_path / "t.parquet")
    assert "497" in str(metadata.incomplete) and {one.name for one in metadata.snapshots} == {"end"}


def test_a_comparison_interleaves_ranks_and_reports(plan: machine.Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    order = []
    figures = run.once(plan).figures

    def once(one: machine.Plan) -> run.Run:
        order.append(one.spec.text)
        factor = 1 if one.spec.text == "slub" else 2
        changed = {**figures, "seconds": 9 - len(order) / 1e4, "processor_seconds": 0.25 * factor + len(order) / 1e4}
        changed["grew_pages_peak"] = 1000 // factor + len(order)
        return run.Run(changed, {}, [], "native")

    monkeypatch.setattr(run, "once", once)
    plans = [machine.Plan(kinds.parse(spec), plan.kernel, plan.job, plan.hardware) for spec in ("slub", "slab")]
    found = compare.compare(plans, 6, 1, Progress(14))
    assert order == ["slub", "slab"] * 7
    tables = compare.tables(found)
    assert "Slub is fastest" in " ".join(tables[0].notes) or "slub is fastest" in " ".join(tables[0].notes)
    assert "0.251 s of processor time" in " ".join(tables[0].notes), "which other work on this machine lengthens least"
    assert "memory grows least under slab" in " ".join(tables[0].notes)
    assert [row[2] for row in tables[1].rows] == [1, 2, 2, 1], "events are equal"
    assert len(compare.flat(found).rows[0]) == len(compare.flat(found).columns)
    html = report.page(found)
    assert "fresh boot" in html and "8,0" in html


@pytest.mark.parametrize(("pages", "unit", "peak"), [(25_000, "KiB", "100,000"), (26_000, "MiB", "101.56")])
def test_a_comparison_has_one_unit_of_memory_in_table_and_sentence(
    plan: machine.Plan, monkeypatch: pytest.MonkeyPatch, pages: int, unit: str, peak: str
) -> None:
    figures = run.once(plan).figures

    def once(one: machine.Plan) -> run.Run:
        held = pages if one.spec.text == "slub" else pages // 2
        grown = {"held_pages_start": 0, "grew_pages_peak": held, "grew_pages_end": held}
        return run.Run({**figures, "held_pages_peak": held, **grown}, {}, [], "native")

    monkeypatch.setattr(run, "once", once)
    plans = [machine.Plan(kinds.parse(spec), plan.kernel, plan.job, plan.hardware) for spec in ("slub", "slab")]
    table = compare.tables(compare.compare(plans, 6, 0, Progress(12)))[0]
    assert table.title.endswith(f"slabs in {unit}") and table.columns[5] == "grew" and table.columns[8] == "peak"
    assert table.cells()[0][5] == table.cells()[0][8] == peak
    assert f"{peak} {unit}" in " ".join(table.notes).replace("\n", " ")


def test_a_kernels_counted_cost_has_a_table(plan: machine.Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    counts = "operations 3 1\n0 0 9 100 5 1\n1 1 4 40 2 1\n1 4 1 8 1 0\nend\n"
    monkeypatch.setattr(cost, "qemu_version", lambda arch: "7.2.22")
    group = cost.group
    monkeypatch.setattr(cost, "group", lambda text, names, cpus, arch: group(counts, names, cpus, arch))
    monkeypatch.setattr(cost.Symbols, "of", lambda text, kind: cost.Symbols(["[unknown]", "kfree"], ""))
    found = compare.compare([plan], 1, 0, Progress(2), plan.hardware)
    assert found[0]["cost"]["operations"] == 4 and len(found[0]["kernel"]["trouble"]) == 2
    shown = compare.tables(found)[1]
    assert shown.cells()[0] == ["slub", "12.0", "10.0", "0.0", "0.0", "2.0", "0.750", "0.250", "32.43"]
    functions = compare.details(found[0], False)[2]
    assert functions.cells()[0] == ["kfree", "fast", "1.000", "10.000", "0.500", "0.250"]
    flat = compare.flat(found)
    assert dict(zip(flat.columns, flat.rows[0], strict=True))["cost_locks_instructions"] == 2


def test_cost_is_counted_under_qemu_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["kernel", "run", "--allocator", "slub", "--workload", "boot", "--cost"]) == 2
    assert "--cost counts what a kernel executes under QEMU; give --arch x86_64 or arm64 too" in capsys.readouterr().err


def test_the_command_line(plan: machine.Plan, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tree = str(tmp_path / "tree")
    argv = ["kernel", "run", "--allocator", "slub", "--workload", "boot", "--source", tree]
    assert cli.main([*argv, "-o", str(tmp_path / "out")]) == 3  # its log has a warning
    out, err = capsys.readouterr()
    assert "slabyard: boot on slub: the kernel's log tells of trouble: WARNING: CPU: 0 PID: 1 at mm/slub.c:1\n" in err
    assert "slub on boot: Linux 6.1.7 for um (native), 1 CPU, 512 MiB" in out and "8,000  KiB" in out and "WARNING" in out
    assert (tmp_path / "out/meminfo.before").read_text().startswith("MemTotal") and (tmp_path / "out/log").exists()
    assert cli.main([*argv, "--format", "json"]) == 3
    assert json.loads(capsys.readouterr().out)["run"]["kernel"] == "6.1.7"
    both = "slub,slub:max_order=0"
    assert cli.main(["kernel", "compare", "--allocators", both, "--workloads", "boot", "--runs", "1", "--source", tree]) == 3
    assert "slub:max_order=0" in capsys.readouterr().out
    assert cli.main(["kernel", "list", "--format", "csv"]) == 0
    assert "um,slub,6.1.7" in capsys.readouterr().out
    assert cli.main(["kernel", "clean"]) == 0 and build.built()
    assert cli.main(["kernel", "clean", "--all"]) == 0 and not build.built()
    for wrong, words in (
        (["kernel"], "needs a verb"),
        (["kernel", "run", "--allocator", "slub", "--workload", "boot", "--cpus", "4"], "one CPU"),
        (["kernel", "run", "--allocator", "slub", "--workload", "boot", "--caches", "--format", "csv"], "csv has one row"),
        (["kernel", "compare", "--allocators", "slub,slub"], "twice"),
        (["kernel", "run", "--allocator", "slub", "--workload", "boot", "--trace", "t", "--trace-buffer", "400M"], "less than half"),
        (["kernel", "fidelity", "--allocators", "slub", "--trace-buffer", "400M"], "less than half"),
        (["kernel", "fidelity", "--allocators", "slub", "--workloads", ","], "--workloads names no workload"),
        (["kernel", "compare", "--allocators", "slub", "--workloads", ""], "--workloads names no workload"),
        (["kernel", "compare", "--allocators", "slub", "--report", "/nowhere/r.html"], "there is no folder /nowhere"),
        (["kernel", "run", "--allocator", "slub", "--workload", "boot", "--trace", "/nowhere/t.parquet"], "there is no folder /nowhere"),
        (["kernel", "bench", "--allocators", "slub", "--export-json", "/nowhere/b.json"], "there is no folder /nowhere"),
        (["kernel", "flame", "--allocator", "slub", "--workload", "boot", "--folded", "/nowhere/f"], "there is no folder /nowhere"),
    ):
        assert cli.main(wrong) == 2
        assert words in capsys.readouterr().err


def test_only_trouble_in_the_log_changes_the_status(capsys: pytest.CaptureFixture[str]) -> None:
    records = [{"run": {"allocator": spec, "workload": "boot"}, "kernel": {"trouble": lines}} for spec, lines in
               (("slub", []), ("slab", ["BUG: a", "BUG: a", "Oops: b"]))]  # fmt: skip
    assert [commands._worst(found) for found in (records[:1], records)] == [0, 3]
    assert capsys.readouterr().err == "slabyard: boot on slab: the kernel's log tells of trouble: BUG: a (and 1 more)\n"


def test_the_benchmark_becomes_records_and_tables(plan: machine.Plan, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["kernel", "bench", "--allocators", "slub,slub:max_order=0", "--runs", "2", "--source", str(tmp_path / "tree")]
    assert cli.main([*argv, "--export-json", str(tmp_path / "b.json")]) == 3  # the log of the kernel that is none has a warning
    out = capsys.readouterr().out
    assert "bytes             8  4096\n" in out and "slub:max_order=0  8  4096\n" in out and out.count("\nbytes") == 8
    records = json.loads((tmp_path / "b.json").read_text())
    timed = records[0]["timed"]
    assert (timed["cache_pair_8"], timed["cache_pair_8_low"], timed["kmalloc_shuffled_4096_allocation"]) == (8.1, 30, 20.5)
    assert "cache_pair_8_allocation" not in timed and timed["samples"]["cache_pair_8"] == [8.1, 8.1]
    assert records[1]["kernel"]["parameters"] == ["slub_max_order=0", "slabyard.bench=1", "slab_nomerge"]
    assert records[0]["run"]["workload"] == "bench"
    assert cli.main([*argv, "--format", "csv"]) == 3
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1 + 2 * 16 and lines[1].startswith("slub,cache,pair,8,8.1,30")


def test_a_benchmark_that_is_not_whole_is_refused(plan: machine.Plan) -> None:
    short = bench.plan(kinds.Spec("slub", plan.spec.kind, ("short",)), plan.kernel, plan.hardware, 10)
    with pytest.raises(UserError, match="did not finish; its kernel's log has 16 figures"):
        bench.bench([short], 1, Progress(1))
    with pytest.raises(UserError, match="found no memory for cache order 8; give the guest more"):
        bench.figures("slub", "slabyard.bench: no memory for cache order 8\n")


# ---- Profiles ----------------------------------------------------------------------------------------------------------------

PERF = """\
linux 10.000000:
\t    1 kmem_cache_alloc
\t    2 alloc_skb

linux 11.500000:
\t    1 new_slab
\t    2 ___slab_alloc.constprop.0
\t    3 kmem_cache_alloc_node
\t    4 alloc_skb
\t    5 new_thread_handler
\t    6 uml_finishsetup
\t    0 [unknown]

linux 11.600000:
\t    1 kfree
\t    2 kfree_skb
\t    3 release

kworker 11.700000:
\t    1 [unknown]
\t    2 [unknown]

linux 11.800000:
\t    1 schedule
"""


def test_stacks_are_those_of_the_workload_in_the_kernel() -> None:
    profile = flame.collect(PERF.splitlines(), 11, 12)
    assert profile.stacks == {
        ("alloc_skb", "kmem_cache_alloc_node", "___slab_alloc", "new_slab"): 1,
        ("release", "kfree_skb", "kfree"): 1,
        ("schedule",): 1,
    }
    assert (profile.samples, profile.of_programs) == (3, 1)
    third = pytest.approx(1 / 3)
    none = {"free_slow": 0, "alloc_waits": 0, "free_waits": 0}
    assert flame.shares(profile, kinds.KINDS["slub"].slow) == {"alloc": third, "free": third, "alloc_slow": third, **none}
    assert stacks.folded(profile.stacks).splitlines()[0] == "alloc_skb;kmem_cache_alloc_node;___slab_alloc;new_slab 1"
    assert flame.own(profile)[0] == ("kfree", 1, 1)


def test_a_guests_addresses_get_their_names() -> None:
    symbols = flame.Symbols("1000 T start\n1100 t kfree\n1200 D data\n1300 T ___slab_alloc.isra.0\n1400 W last\n")
    lines = ["1108 1000", "1310 1108 1004", "", "", "1", "1500", "lost 0"]
    profile = flame.name_stacks(lines, symbols)
    assert profile.stacks == {("start", "kfree"): 1, ("start", "kfree", "___slab_alloc"): 1, ("[unknown]",): 1, ("last",): 1}
    assert profile.of_programs == 2
    profile.add(flame.name_stacks(["lost 7"], symbols))
    assert "7 samples were lost." in flame.tables(profile, (), "x", [flame.shares(profile, ())])[0].notes


def test_a_flame_graph_tells_of_trouble(
    plan: machine.Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(flame, "prefix", lambda data: [])
    monkeypatch.setattr(flame, "read", lambda data, outcome: flame.collect(PERF.splitlines(), 11, 12))
    argv = ["kernel", "flame", "--allocator", "slub", "--workload", "boot", "--runs", "2", "--source", str(tmp_path / "tree")]
    assert cli.main(argv) == 3
    out, err = capsys.readouterr()
    assert out.count("The log has: WARNING: CPU: 0 PID: 1 at mm/slub.c:1") == 1
    assert "slabyard: boot on slub: the kernel's log tells of trouble: WARNING" in err
    symbols = tmp_path / "System.map"
    symbols.write_text("1000 T start\n")
    monkeypatch.setattr(build.Kernel, "map", symbols)
    assert flame._by_guest(plan).trouble == ["WARNING: CPU: 0 PID: 1 at mm/slub.c:1"]


def test_speedscope_has_every_sample() -> None:
    made = json.loads(stacks.speedscope(flame.collect(PERF.splitlines(), 11, 12).stacks, "x"))
    frames = [frame["name"] for frame in made["shared"]["frames"]]
    one = made["profiles"][0]
    assert sum(one["weights"]) == one["endValue"] == 3
    assert [frames[number] for number in one["samples"][1]] == ["release", "kfree_skb", "kfree"]


def test_an_icicle_shows_every_function() -> None:
    profile = flame.collect(PERF.splitlines(), 11, 12)
    made = icicle.page(profile, kinds.KINDS["slub"].slow, "slub & co")
    assert "slub &amp; co" in made and "<script" not in made
    assert made.count("<rect") == 8 and f'fill="{icicle.COLOURS["alloc_slow"]}"' in made and f'fill="{icicle.COLOURS["free"]}"' in made
    assert "<rect" not in icicle.page(flame.Profile(), (), "empty")


def test_an_interrupt_ends_boots_side_by_side() -> None:
    """Those that other threads wait for too."""
    started: queue.SimpleQueue[int] = queue.SimpleQueue()

    def boot() -> int:
        with cache.group(["sleep", "60"]) as process:
            started.put(process.pid)
            return process.wait()

    with pytest.raises(KeyboardInterrupt), programs.side_by_side(2) as pool:
        boots = [pool.submit(boot) for _ in range(2)]
        [started.get() for _ in boots]
        raise KeyboardInterrupt
    assert [one.result() for one in boots] == [-signal.SIGKILL] * 2
