"""Recording: what is checked before, what is told when something is missing, and, where the machine allows it, a real one."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from handmade import complaint, slabyard

from slabyard.capture import record
from slabyard.base.errors import MISSING, UserError


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


def test_kernel_without_the_events(tmp_path: Path) -> None:
    with pytest.raises(UserError) as raised:
        record.events([tracefs(tmp_path, ("kmalloc",))])
    assert raised.value.status == MISSING and "kmem:kfree" in raised.value.message


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
    """Of what it writes at the end perf tells; of its header it doesn't."""
    out = tmp_path / "out"
    out.mkdir()
    env = pretended_perf(tmp_path, "echo 'failed to write perf data, error: No space left on device' >&2; exit 255")
    done = slabyard("record", "-o", out / "t.parquet", "--", "true", env=env)
    assert "no space left" in complaint(done, 2) and not list(out.iterdir())
    (tmp_path / "bin" / "perf").write_text("#!/bin/sh\nexit 255\n")
    monkeypatch.setenv("PATH", env["PATH"])
    monkeypatch.setattr(record.os, "statvfs", lambda _: type("Full", (), {"f_bavail": 0}))
    with pytest.raises(UserError, match="no space left"), record.record(["true"], out / "part"):
        pass
    (tmp_path / "bin" / "perf").write_text("#!/bin/sh\nkill -XFSZ $$\n")
    with pytest.raises(UserError, match="ulimit -f"), record.record(["true"], out / "part"):
        pass
    assert not list(out.iterdir())


@live
def test_a_real_recording(tmp_path: Path) -> None:
    out = tmp_path / "t.parquet"
    done = slabyard("record", "-o", out, "--", "sh", "-c", "ls /; exit 7")
    assert done.returncode in (0, 3), done.stderr
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
def test_compare_records_a_command(tmp_path: Path) -> None:
    done = slabyard("compare", "--runs", "1", "--allocators", "slub", "--format", "json", "--", "echo", "hello", cwd=tmp_path)
    assert done.returncode in (0, 3), done.stderr
    assert [record["run"]["allocator"] for record in json.loads(done.stdout)] == ["slub", "recorded"]
    assert "hello" in done.stderr, "the command's output is kept apart from the records"
    assert not list(tmp_path.iterdir())
