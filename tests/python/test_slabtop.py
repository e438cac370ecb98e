"""The caches at the end of a replay, as /proc/slabinfo and slabtop show them."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import handmade
import pytest
from handmade import complaint, slabyard

from slabyard.replay import allocators
from slabyard.replay import workload as replay
from slabyard.report import slabtop
from slabyard.trace import snapshots

DATA = Path(__file__).parents[1] / "data"
REAL = sorted(DATA.glob("linux-6.1-um-slub/*/slabinfo.*"))
HEADER = (
    "slabinfo - version: 2.1\n# name            <active_objs> <num_objs> <objsize> <objperslab> <pagesperslab>"
    " : tunables <limit> <batchcount> <sharedfactor> : slabdata <active_slabs> <num_slabs> <sharedavail>\n"
)
POLICIES = [policy["name"] for policy in allocators.policies()]


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return handmade.busy(tmp_path_factory.mktemp("slabtop") / "busy.parquet")


def again(line: snapshots.SlabLine) -> str:
    """A cache's line as the kernel's own format string writes it."""
    return (
        f"{line.name:<17} {line.active_objects:6} {line.objects:6} {line.object_size:6} {line.objects_per_slab:4} {line.pages_per_slab:4}"
        f" : tunables {line.limit:4} {line.batchcount:4} {line.shared:4}"
        f" : slabdata {line.active_slabs:6} {line.slabs:6} {line.shared_available:6}\n"
    )


def is_slabinfo(text: str) -> None:
    """Whether a text is, to the byte, what the kernel's format makes of these figures."""
    assert text == HEADER + "".join(again(line) for line in snapshots.parse_slabinfo(text))
    row = r"\S+ +\d+ +\d+ +\d+ +\d+ +\d+ : tunables +\d+ +\d+ +\d+ : slabdata +\d+ +\d+ +\d+"
    assert all(re.fullmatch(row, line) for line in text.splitlines()[2:])


@pytest.mark.parametrize("path", REAL, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_real_kernels_write_this_format(path: Path) -> None:
    is_slabinfo(path.read_text())


@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_writes_this_format(busy: Path, policy: str) -> None:
    text = slabyard("replay", busy, "--allocator", policy, "--proc", "slabinfo").stdout
    is_slabinfo(text)
    lines = snapshots.parse_slabinfo(text)
    names = [line.name for line in lines]
    assert names.index("inode") < names.index("dentry")  # the newest first
    assert all(line.active_objects <= line.objects and line.active_slabs <= line.slabs for line in lines)
    with replay.Workload(busy, replay.Options()) as workload:
        exact = workload.exact(policy)
    if not slabtop.shares_pages(lines):
        assert sum(line.slabs * line.pages_per_slab for line in lines) == exact["slab_pages_end"]
        for line in lines:
            assert line.objects_per_slab > 0 and line.pages_per_slab > 0 and line.objects == line.slabs * line.objects_per_slab
    for cache in exact["caches"]:
        if cache["cache"] >= 0:
            line = lines[names.index(cache["name"])]
            assert line.active_objects >= cache["live"] and line.object_size == cache["size"]


def test_tunables(busy: Path) -> None:
    """SLAB's defaults are those of a real SLAB: 120/60 for small objects, 54/27 from 256 bytes on. Other allocators have
    none."""

    def lines(spec: str) -> dict[str, snapshots.SlabLine]:
        text = slabyard("replay", busy, "--allocator", spec, "--proc", "slabinfo").stdout
        return {line.name: line for line in snapshots.parse_slabinfo(text)}

    slab = lines("slab")
    assert [(slab[name].limit, slab[name].batchcount, slab[name].shared) for name in ("dentry", "inode")] == [(120, 60, 8), (54, 27, 8)]
    tuned = lines("slab:limit=10,batchcount=4,shared=2")["dentry"]
    assert (tuned.limit, tuned.batchcount, tuned.shared) == (10, 4, 2)
    assert {(line.limit, line.batchcount, line.shared) for line in lines("slub").values()} == {(0, 0, 0)}
    slqb = lines("slqb:hiwater=100,freebatch=20")["dentry"]
    assert (slqb.limit, slqb.batchcount, slqb.shared) == (100, 20, 0)


def shown_by_slabtop(path: Path, letter: str) -> str:
    """What the real slabtop prints of a file that is mounted over /proc/slabinfo, for slabtop alone."""
    if os.geteuid() or not shutil.which("slabtop") or not shutil.which("unshare") or not Path("/proc/slabinfo").exists():
        pytest.skip("needs root, slabtop, unshare and a /proc/slabinfo to put a file over")
    script = 'mount --bind "$1" /proc/slabinfo && exec slabtop --once --sort "$2"'
    command = ["unshare", "-m", "sh", "-c", script, "sh", path, letter]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    if done.returncode and ("unshare" in done.stderr or "mount" in done.stderr):
        pytest.skip(f"no mounts here: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    return "".join(line.rstrip()[:80] + "\n" for line in done.stdout.splitlines())


@pytest.fixture(scope="module")
def replayed(busy: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The slabinfo of two replays."""
    files = []
    for spec in ("slab", "slub"):
        files.append(tmp_path_factory.mktemp("replayed") / "slabinfo")
        files[-1].write_text(slabyard("replay", busy, "--allocator", spec, "--proc", "slabinfo").stdout)
    return files


def test_the_command_line_sorts(busy: Path, replayed: list[Path]) -> None:
    lines = snapshots.parse_slabinfo(replayed[0].read_text())
    for words, letter in (((), "o"), (("--sort", "n"), "n")):
        assert slabyard("replay", busy, "--allocator", "slab", "--slabinfo", *words).stdout == slabtop.text(lines, letter)


@pytest.mark.parametrize("letter", slabtop.SORTS)
def test_slabtop_shows_the_same(replayed: list[Path], letter: str) -> None:
    for path in (*replayed, *REAL):
        other = shown_by_slabtop(path, letter)
        one = slabtop.text(snapshots.parse_slabinfo(path.read_text()), letter)
        assert one.splitlines()[:7] == other.splitlines()[:7]
        if letter == "n":
            assert one == other
        else:  # caches that compare equal come in any order there
            assert sorted(one.splitlines()) == sorted(other.splitlines())


@pytest.mark.parametrize("letter", slabtop.SORTS)
def test_sorting(letter: str) -> None:
    lines = snapshots.parse_slabinfo(REAL[0].read_text())
    keys = [slabtop.SORTS[letter](line) for line in slabtop.ordered(lines, letter)]
    assert keys == sorted(keys, reverse=letter != "n") and len(keys) == len(lines)


def test_formats(busy: Path) -> None:
    words = ("replay", busy, "--allocator", "slab", "--slabinfo")
    found = json.loads(slabyard(*words, "--format", "json", "--sort", "n").stdout)
    names = [cache["name"] for cache in found["caches"]]
    assert names == sorted(names) and found["totals"]["caches"] == len(names)
    rows = list(csv.DictReader(io.StringIO(slabyard(*words, "--format", "csv").stdout)))
    assert sorted(row["name"] for row in rows) == names
    assert slabyard(*words, "--format", "md").stdout.startswith("| name")
    text = slabyard(*words).stdout
    assert text.startswith(" Active / Total Objects (% used)") and max(map(len, text.splitlines())) <= 80


def test_shared_pages(busy: Path) -> None:
    """Under SLOB a cache has no slabs of its own: the text says so, and machines read null."""
    words = ("replay", busy, "--allocator", "slob", "--slabinfo")
    done = slabyard(*words, "--format", "json")
    found = json.loads(done.stdout)
    assert "share their pages" in done.stderr and done.returncode == 0
    assert "share their pages" in slabyard("replay", busy, "--allocator", "slob", "--proc", "slabinfo").stderr
    assert slabyard("replay", busy, "--allocator", "slub", "--proc", "slabinfo").stderr == ""
    dentry = next(cache for cache in found["caches"] if cache["name"] == "dentry")
    assert dentry["slabs"] is None and dentry["active_objects"] > 0 and found["totals"]["slabs"] is None


def test_no_caches() -> None:
    assert slabtop.text([], "o").startswith(" Active / Total Objects (% used)    : 0 / 0 (0.0%)\n")
    assert slabtop.as_json([], "o")["caches"] == [] and slabtop.table(slabtop.as_json([], "o")).rows == []


@pytest.mark.parametrize(
    "words",
    [
        ("--sort", "c"),
        ("--slabinfo", "--log", "-"),
        ("--slabinfo", "--proc", "slabinfo"),
        ("--slabinfo", "--sort", "z"),
        ("--slabinfo", "--sort", "ab"),
    ],
)
def test_wrong_usage(busy: Path, words: tuple[str, ...]) -> None:
    complaint(slabyard("replay", busy, "--allocator", "slab", *words), 2)


def test_a_malloc_has_no_slabinfo(busy: Path) -> None:
    assert "malloc" in complaint(slabyard("replay", busy, "--allocator", "malloc:system", "--slabinfo"), 2)
