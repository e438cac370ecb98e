"""Recording: what is checked first, what is said when something is missing, and, where the machine allows it, a real
recording."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from handmade import complaint, slabyard

from slabyard.base import privileges
from slabyard.base.errors import MISSING, UserError
from slabyard.capture import moments, record
from slabyard.live import sites
from slabyard.trace import snapshots
from slabyard.trace.file import Trace, recorded_curve


def tracefs(folder: Path, names: tuple[str, ...]) -> Path:
    for name in names:
        (folder / "events" / "kmem" / name).mkdir(parents=True)
    (folder / "events").mkdir(parents=True, exist_ok=True)
    return folder


def test_events_of_new_and_old_kernels(tmp_path: Path) -> None:
    new = tracefs(tmp_path / "new", record.EVENTS)
    assert record.events([tmp_path / "absent", new]) == list(record.EVENTS)
    old = tracefs(tmp_path / "old", record.EVENTS + record.OLDER_EVENTS)
    assert record.events([old]) == [*record.EVENTS, *record.OLDER_EVENTS]


def test_tracefs_not_mounted(tmp_path: Path) -> None:
    with pytest.raises(UserError) as raised:
        record.events([tmp_path])
    assert raised.value.status == MISSING and "mount -t tracefs tracefs" in raised.value.message


def test_a_tracefs_that_may_not_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "scandir", refuse)
    for use in (record.events, sites.Sampler):
        with pytest.raises(UserError, match="may be read by root only; run it with sudo") as raised:
            use()
        assert raised.value.status == MISSING


def test_kernel_without_the_events(tmp_path: Path) -> None:
    with pytest.raises(UserError) as raised:
        record.events([tracefs(tmp_path, ("kmalloc",))])
    assert raised.value.status == MISSING and "kmem:kfree" in raised.value.message


def test_root_without_capabilities_is_told(tmp_path: Path) -> None:
    """As in a container."""
    if os.geteuid() or shutil.which("setpriv") is None or int(Path("/proc/sys/kernel/perf_event_paranoid").read_text()) < 0:
        pytest.skip("needs root, setpriv, and a kernel that lets perf trace by privilege only")
    bare = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"]
    command = [*bare, sys.executable, "-m", "slabyard", "record", "-o", str(tmp_path / "t.parquet"), "--", "true"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (
        4, "slabyard: recording needs root, or CAP_PERFMON and a readable tracefs; run it with sudo\n",
    )  # fmt: skip


def test_no_privilege(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record, "_privileged", lambda: False)
    with pytest.raises(UserError) as raised:
        record.check(["true"])
    assert raised.value.status == MISSING and "root" in raised.value.message


def test_no_perf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "true").symlink_to("/bin/true")
    monkeypatch.setattr(record, "_privileged", lambda: True)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError) as raised:
        record.check(["true"])
    assert raised.value.status == MISSING and "linux-perf" in raised.value.message


def pretended_perf(folder: Path, script: str) -> dict[str, str]:
    """An environment in which `perf` is this shell script."""
    perf = folder / "bin" / "perf"
    perf.parent.mkdir()
    perf.write_text(f"#!/bin/sh\n{script}\n")
    perf.chmod(0o755)
    return {**os.environ, "PATH": f"{perf.parent}:{os.environ['PATH']}"}


def _missing() -> str | None:
    try:
        record.check(["true"])
    except UserError as error:
        return error.message
    return None


live = pytest.mark.skipif(_missing() is not None, reason=f"cannot record here: {_missing()}")


@live
@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("echo 'Error:' >&2; echo 'No permission to enable kmem:kmalloc event.' >&2; exit 255", "No permission to enable"),
        ("echo ' Error: unknown option `control=fd:3,6`' | sed 's/=fd.*//' >&2; echo \"unknown option \\`control'\" >&2; exit 129", "5.10"),
        ("echo 'failed to mmap with 12 (Cannot allocate memory)' >&2; exit 1", "Cannot allocate memory"),
        ("exit 255", "it ended with status 255"),
    ],
)
def test_a_perf_that_fails(tmp_path: Path, script: str, says: str) -> None:
    out = tmp_path / "out"
    out.mkdir()
    done = slabyard("record", "-o", out / "t.parquet", "--", "true", env=pretended_perf(tmp_path, script))
    assert says in complaint(done, 4)
    assert not list(out.iterdir())


@live
def test_a_full_disk_under_perf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """perf reports that it could not write its last data. For its header it reports nothing."""
    out = tmp_path / "out"
    out.mkdir()
    env = pretended_perf(tmp_path, "echo 'failed to write perf data, error: No space left on device' >&2; exit 255")
    done = slabyard("record", "-o", out / "t.parquet", "--", "true", env=env)
    assert "no space left" in complaint(done, 2) and not list(out.iterdir())
    (tmp_path / "bin" / "perf").write_text("#!/bin/sh\nexit 255\n")
    monkeypatch.setenv("PATH", env["PATH"])
    monkeypatch.setattr(record.os, "statvfs", lambda _: type("Full", (), {"f_bavail": 0}))
    with pytest.raises(UserError, match="no space left"), record.record(record.Plan(["true"]), out / "part"):
        pass
    (tmp_path / "bin" / "perf").write_text("#!/bin/sh\necho 'Too many events are opened.' >&2\nexit 255\n")
    with pytest.raises(UserError, match="ulimit -n"), record.record(record.Plan(["true"]), out / "part"):
        pass
    (tmp_path / "bin" / "perf").write_text("#!/bin/sh\nkill -XFSZ $$\n")
    with pytest.raises(UserError, match="ulimit -f"), record.record(record.Plan(["true"]), out / "part"):
        pass
    assert not list(out.iterdir())


@live
def test_what_no_trace_can_be_made_of_is_kept(tmp_path: Path) -> None:
    """An hour's recording must not go with a disk that is full when it is over."""
    script = (
        "import sys; from pathlib import Path; from slabyard.base.errors import UserError; from slabyard.capture import importer, record\n"
        "from slabyard.command import recording\n"
        "def full(*_): raise UserError('no space left on device')\n"
        "importer.import_recording = full\n"
        "try: recording.record_to(record.Plan(['true']), Path(sys.argv[1]))\n"
        "except UserError as error: print(error.message)\n"
    )
    out = tmp_path / "a b.parquet"
    done = subprocess.run([sys.executable, "-c", script, out], capture_output=True, text=True, check=True)
    assert done.stdout == "no space left on device\n" and "what was recorded is kept; slabyard import" in done.stderr
    (kept,) = tmp_path.iterdir()
    assert kept.name.startswith("a b-") and f"'{kept}'" in done.stderr
    assert slabyard("import", kept, "-o", tmp_path / "t.parquet").returncode in {0, 3}


@live
def test_a_real_recording(tmp_path: Path) -> None:
    out = tmp_path / "t.parquet"
    done = slabyard("record", "-o", out, "--", "sh", "-c", "ls /; exit 7")
    assert done.returncode == 7, done.stderr
    assert "bin" in done.stdout and "sh exited with status 7" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["t.parquet"]
    about = json.loads(slabyard("info", out, "--format", "json").stdout)
    assert about["command"][0] == "sh" and about["kernel"] == os.uname().release
    assert [one["name"] for one in about["snapshots"]] == ["start", "end"]
    assert all({"meminfo", "buddyinfo", "vmstat"} <= set(one["files"]) for one in about["snapshots"])
    assert about["events"]["kmalloc"] > 0 and about["events"]["mm_page_alloc"] > 0
    record = json.loads(slabyard("replay", out, "--allocator", "slub", "--format", "json").stdout)
    assert record["run"]["start"] == "recorded" and record["exact"]["failures"] == 0
    start = record["exact"]["snapshots"][0]
    assert start["recorded_slab_kb"] > 0 and start["slab_pages"] > 0


@live
def test_rights_go_when_the_recording_is_there(tmp_path: Path) -> None:
    """perf script may do what we and all our programs may do."""
    real, told = shutil.which("perf"), tmp_path / "status"
    env = pretended_perf(tmp_path, f"[ \"$1\" = script ] && cat /proc/self/status >'{told}'\nexec '{real}' \"$@\"")
    done = slabyard("record", "-o", tmp_path / "t.parquet", "--", "true", env=env)
    assert done.returncode in (0, 3), done.stderr
    status = dict(line.split(":\t", 1) for line in told.read_text().splitlines() if ":\t" in line)
    kept = sum(1 << number for number in privileges.FILES_AND_SYMBOLS)
    for word in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert int(status[word], 16) & ~kept == 0, f"{word}: {status[word]}"
    assert status["NoNewPrivs"] == "1"
    sites = json.loads(slabyard("info", tmp_path / "t.parquet", "--call-sites", "--format", "json").stdout)
    assert "+0x" in json.dumps(sites), "names of the kernel's functions"


def recorded(path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    done = slabyard("record", "-o", path, *words)
    assert path.exists(), done.stderr
    return done


@live
def test_snapshots_and_events_add_up(tmp_path: Path) -> None:
    """The slabs that the kernel holds at the end are those of the start, plus the pages that were taken, less those given
    back, plus the slabs without an event."""
    recorded(tmp_path / "t.parquet", "--", "sh", "-c", "for i in 1 2 3 4 5 6 7 8 9; do ls -R /usr/include; done >/dev/null")
    with Trace(tmp_path / "t.parquet") as trace:
        curve = recorded_curve(trace, with_older=True)
        kib = [snapshots.parse_meminfo(one.files["meminfo"])["Slab"] for one in trace.metadata.snapshots]
        assert trace.metadata.snapshots[0].time == 0
    assert curve.before * 4 == kib[0]
    about = json.loads(slabyard("info", tmp_path / "t.parquet", "--format", "json").stdout)
    unseen = about["slab"].pop("unseen_kib")
    assert about["slab"] == {"start_kib": kib[0], "end_kib": kib[1], "recorded_end_kib": curve.end * 4}
    assert abs(curve.end * 4 + sum(unseen.values()) - kib[1]) <= 0.01 * kib[1]


@live
def test_the_recorder_is_not_recorded(tmp_path: Path) -> None:
    """On an idle machine a recording of half a second has less than the recorder's snapshots alone would make."""
    done = recorded(tmp_path / "t.parquet", "--duration", "500ms")
    assert done.returncode in (0, 3), done.stderr
    about = json.loads(slabyard("info", tmp_path / "t.parquet", "--format", "json").stdout)
    assert about["command"] is None and 0.4 < about["span_seconds"] < 5
    assert [one["name"] for one in about["snapshots"]] == ["start", "end"]


@live
@pytest.mark.parametrize(("command", "status"), [("true", 0), ("false", 1), ("exit 3", 3), ("kill -TERM $$", 143)])
def test_the_status_is_the_commands(tmp_path: Path, command: str, status: int) -> None:
    done = recorded(tmp_path / "t.parquet", "--", "sh", "-c", command)
    assert done.returncode == status or (status == 0 and "incomplete" in done.stderr), done.stderr


@live
def test_a_time_ends_the_command(tmp_path: Path) -> None:
    began = time.monotonic()
    done = recorded(tmp_path / "t.parquet", "--duration", "0.5", "--", "sleep", "60")
    assert done.returncode in (0, 3) and time.monotonic() - began < 40, done.stderr


@live
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_command_and_keeps_the_recording(tmp_path: Path, number: int) -> None:
    out = tmp_path / "t.parquet"
    words = ["record", "-o", str(out), "--", "sh", "-c", "echo begun; exec sleep 60"]
    process = subprocess.Popen(
        [sys.executable, "-m", "slabyard", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdout and process.stdout.readline() == "begun\n"
    process.send_signal(number)
    _, told = process.communicate(timeout=120)
    assert process.returncode == 128 + number and "what was recorded is kept" in told
    assert json.loads(slabyard("info", out, "--format", "json").stdout)["rows"] > 0
    assert [path.name for path in tmp_path.iterdir()] == ["t.parquet"]


@live
def test_a_command_that_cannot_be_run_after_all(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("no first line\n")
    script.chmod(0o755)
    out = tmp_path / "out"
    out.mkdir()
    assert "no script that names its interpreter" in complaint(slabyard("record", "-o", out / "t.parquet", "--", script), 2)
    assert not list(out.iterdir())


@live
def test_stacks(tmp_path: Path) -> None:
    recorded(tmp_path / "t.parquet", "-g", "--", "ls", "/usr/bin")
    with Trace(tmp_path / "t.parquet") as trace:
        stacks = {text for batch in trace.batches(["stack"]) for text in batch["stack"].dictionary.to_pylist()}
    assert any(";" in text for text in stacks)
    assert not any("+0x" in text or "[unknown]" in text for text in stacks)


@live
def test_a_control_group_alone(tmp_path: Path) -> None:
    try:
        _, root = record.cgroup_folder("/", None)
        folder = root / f"slabyard-test-{os.getpid()}"
        folder.mkdir()
    except (UserError, OSError) as error:
        pytest.skip(f"no control group can be made here: {error}")
    try:
        done = recorded(tmp_path / "t.parquet", "--cgroup", folder.name, "--", "ls", "/")
        assert done.returncode == 3 and f"control group {folder.name}" in done.stderr
        about = json.loads(slabyard("info", tmp_path / "t.parquet", "--format", "json").stdout)
        assert about["cgroup"] == folder.name and about["rows"] > 0
    finally:
        with contextlib.suppress(OSError):
            folder.rmdir()


def test_control_groups_by_name(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "cgroup.procs").touch()
    mounts = f"cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\ncgroup2 {tmp_path} cgroup2 rw 0 0\n"
    for name in ("a/b", "/a/b", f"{tmp_path}/a/b"):
        assert record.cgroup_folder(name, mounts) == ("a/b", tmp_path / "a" / "b")
    with pytest.raises(UserError, match="there is no control group"):
        record.cgroup_folder("a/c", mounts)
    with pytest.raises(UserError, match="no control groups are mounted"):
        record.cgroup_folder("a/b", "proc /proc proc rw 0 0\n")


def test_files_of_a_moment_are_read_again_from_their_beginning(tmp_path: Path) -> None:
    (tmp_path / "meminfo").write_text("Slab: 1 kB\n" * 1000)
    with contextlib.ExitStack() as stack:
        reader = moments.Moments(stack, tmp_path)
        first, second = reader.take("start"), reader.take("end")
    assert first.files == second.files == {"meminfo": "Slab: 1 kB\n" * 1000}
    assert first.time < second.time and second.as_snapshot()["name"] == "end"


def test_frames_that_are_slabs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bit 7 of a frame's flags, as Documentation/admin-guide/mm/pagemap.rst of Linux has it."""
    flags = np.zeros(300_000, np.uint64)
    flags[[5, 6, 299_999]] = 1 << 7 | 1 << 3
    flags[7] = 1 << 6
    (tmp_path / "kpageflags").write_bytes(flags.tobytes())
    found = moments.slab_frames(tmp_path / "kpageflags")
    assert found is not None and found.tolist() == [5, 6, 299_999]
    flags[[5, 100, 600]] = 0, 1 << 7, 1 << 7
    (tmp_path / "kpageflags").write_bytes(flags.tobytes())
    assert moments.slab_frames_again(found, tmp_path / "kpageflags").tolist() == [6, 100, 299_999], "where there were some"
    assert moments.slab_frames_again(found[:0], tmp_path / "kpageflags").tolist() == []
    monkeypatch.setattr(moments, "MOST_FRAMES", 299_999)
    assert moments.slab_frames(tmp_path / "kpageflags") is None
    assert moments.slab_frames(tmp_path / "absent") is None


@live
def test_compare_records_a_command(tmp_path: Path) -> None:
    done = slabyard("compare", "--runs", "1", "--allocators", "slub", "--format", "json", "--", "echo", "hello", cwd=tmp_path)
    assert done.returncode in (0, 3), done.stderr
    assert [record["run"]["allocator"] for record in json.loads(done.stdout)] == ["slub", "recorded"]
    assert "hello" in done.stderr, "the command's output is kept apart from the records"
    assert not list(tmp_path.iterdir())
