"""Programs as they are: each stands for a kind of program on which malloc libraries have failed (docs/reliability.md)."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from preloaded import POLICIES
from slabyard.results import run

CASES = Path(__file__).resolve().parents[1] / "cases"
ROOT = CASES.parents[1]
MCL_CURRENT, MCL_FUTURE = 1, 2


def _tool(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        assert not os.environ.get("CI"), f"{name} is missing"
        pytest.skip(f"{name} is not installed")
    return found


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cases")
    for name in ("threads", "sandbox", "locked", "unload", "stopped", "sizes", "at_once", "waste", "idle", "background", "charge",
                 "data", "ends", "limited", "strict"):  # fmt: skip
        subprocess.run([_tool("cc"), "-O1", str(CASES / f"{name}.c"), "-o", str(folder / name), "-pthread", "-ldl"], check=True)
    options = ["-shared", "-fPIC", "-ldl"]
    subprocess.run([_tool("cc"), "-O1", str(CASES / "hooks.c"), "-o", str(folder / "hooks.so"), *options], check=True)
    return folder


def _run(command: list[str], preload: str, policy: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "LD_PRELOAD": preload, "SLABYARD": policy, **variables}
    return subprocess.run(["env", *[f"{name}={environment[name]}" for name in ("LD_PRELOAD", "SLABYARD", *variables)], *command],
                          capture_output=True, text=True, timeout=60, check=False)  # fmt: skip


def _ok(command: list[str], preload: str, policy: str, **variables: str) -> None:
    done = _run(command, preload, policy, **variables)
    if done.returncode == 77:
        pytest.skip("the system does not let this program limit itself")
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stderr


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("first", ["hooks", "ours"])
def test_hooks_that_allocate(built: Path, policy: str, first: str) -> None:
    order = [str(built / "hooks.so"), str(run.library())]
    _ok([str(built / "threads")], " ".join(order if first == "hooks" else order[::-1]), policy)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("first", ["faketime", "ours"])
def test_a_faked_clock(built: Path, policy: str, first: str) -> None:
    _tool("faketime")
    found = sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))
    order = [str(found[0]), str(run.library())]
    _ok([str(built / "threads")], " ".join(order if first == "faketime" else order[::-1]), policy, FAKETIME="-1d")


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(
    "how", [["alone"], ["alone", "refuse"], ["threads"], ["threads", "refuse"], ["fork"], ["basic", "refuse"], ["mapped", "refuse"]]
)
def test_sandboxes(built: Path, policy: str, how: list[str]) -> None:
    _ok([str(built / "sandbox"), *how], str(run.library()), policy)


@pytest.mark.parametrize("policy", POLICIES)
def test_future_memory_is_locked(built: Path, policy: str) -> None:
    for flags in (MCL_FUTURE, MCL_CURRENT | MCL_FUTURE):
        done = _run([str(built / "locked"), str(flags)], str(run.library()), policy)
        if done.returncode == 77:
            pytest.skip("this user may lock no memory")
        got, locked = map(int, done.stdout.split())
        assert got == 1000
        assert 20000 <= locked < 64 << 10, "what is used, and not what is reserved"


@pytest.mark.parametrize("policy", POLICIES)
def test_locked_memory_goes_back(built: Path, policy: str) -> None:
    """A trim gives back most of 20 MB that were used and freed, where the system can drop locked memory (Linux 5.18)."""
    done = _run([str(built / "locked"), str(MCL_FUTURE), "trim"], str(run.library()), policy)
    if done.returncode == 77 or tuple(map(int, os.uname().release.split(".")[:2])) < (5, 18):
        pytest.skip("this user may lock no memory, or the system is too old")
    came, went = map(int, done.stdout.split())
    assert came > 19000
    assert went > 0.7 * came


@pytest.mark.parametrize("policy", POLICIES)
def test_a_limit_to_locked_memory_refuses(built: Path, policy: str) -> None:
    done = _run([str(built / "locked"), str(MCL_FUTURE), "8"], str(run.library()), policy)
    if done.returncode == 77:
        pytest.skip("only root may become another user")
    got, locked = map(int, done.stdout.split())
    assert 0 < got < 1000 and 0 < locked <= 8 << 10


@pytest.mark.parametrize("policy", POLICIES)
def test_a_limit_to_data_in_the_program(built: Path, policy: str) -> None:
    """The limit is set before the first allocation. The heap takes no memory for many threads then: the program gets 41 of
    64 MiB at least."""
    for limit, size, most, least in ((12, 100, 5000, 5000), (64, 100000, 9999, 430)):
        done = _run([str(built / "data"), *map(str, (limit, size, most))], str(run.library()), policy)
        first, again = map(int, done.stdout.split())
        assert least <= again <= first


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("what", ["no-files", "freed", "large"])
def test_a_limit_to_addresses_in_the_program(built: Path, policy: str, what: str) -> None:
    _ok([str(built / "limited"), what], str(run.library()), policy)


@pytest.mark.parametrize("policy", POLICIES)
def test_small_objects_get_most_of_a_limit(built: Path, policy: str) -> None:
    for variables in ({}, {"SLABYARD_SAMPLE": "100"}):
        done = _run([str(built / "limited"), "small"], str(run.library()), policy, **variables)
        assert 70 <= int(done.stdout) < 128, "megabytes of 128"


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("what", ["strict", "counter"])
def test_no_counter_of_the_processor(built: Path, policy: str, what: str) -> None:
    for variables in ({}, {"SLABYARD_SAMPLE": "50"}):
        _ok([str(built / "strict"), what], str(run.library()), policy, **variables)


@pytest.mark.parametrize("policy", ["yard", "slub"])
def test_a_search_for_leaks_does_not_wait_for_itself(built: Path, policy: str) -> None:
    _ok([str(built / "strict"), "number"], str(run.library()), policy, SLABYARD_DEBUG="L")


@pytest.mark.parametrize("name", ["SLABYARD_DEBUG", "SLABYARD_STATS"])
def test_the_end_of_a_sandbox(built: Path, tmp_path: Path, name: str) -> None:
    """A search for leaks, or a report, would make calls that no filter expects, and change the exit status."""
    value, line = ("L", "leaks are not looked for") if name == "SLABYARD_DEBUG" else (str(tmp_path / "file"), "not written")
    done = _run([str(built / "sandbox"), "leaves"], str(run.library()), "yard", **{name: value})
    assert (done.returncode, done.stdout) == (0, "ok\n")
    assert line in done.stderr and done.stderr.count("\n") == 1


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("limit", ["-v 5500", "-d 1500"])
def test_a_heap_opens_under_a_small_limit(limit: str, policy: str) -> None:
    done = _run(["sh", "-c", f"ulimit {limit}; exec {_tool('true')}"], str(run.library()), policy)
    assert (done.returncode, done.stderr) == (0, "")


def _build(build: Path, *words: str, options: tuple[str, ...] = ()) -> None:
    configure = [_tool("cmake"), "-S", str(ROOT), "-B", str(build), "-DBUILD_TESTING=OFF", *options]
    subprocess.run(configure, check=True, capture_output=True, timeout=120)
    subprocess.run(["cmake", "--build", str(build), "-j2", "--target", *words], check=True, capture_output=True, timeout=900)


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    build = tmp_path_factory.mktemp("archive")
    _build(build, "slabyard", "slabyard_malloc_static", options=("-DSLABYARD_WERROR=ON",))
    return build / "libslabyard.a"


LOSES = """
#include <stdio.h>
#include <stdlib.h>

int main(void)
{
    char *volatile lost = malloc(100);

    lost = malloc(20);
    free(lost);
    lost = NULL;
    puts("ok");
    return 0;
}
"""


@pytest.mark.parametrize("link", ["-static", "-static-pie"])
def test_a_static_program_with_checks(archive: Path, tmp_path: Path, link: str) -> None:
    """It starts and ends, though its unwinder knows nothing before its constructors; what the C library itself keeps is no leak."""
    (tmp_path / "loses.c").write_text(LOSES, encoding="utf-8")
    library = ["-Wl,--whole-archive", str(archive.parent / "libslabyard-malloc.a"), "-Wl,--no-whole-archive", "-pthread"]
    made = str(tmp_path / "loses")
    subprocess.run([_tool("cc"), "-O1", "-fno-builtin", link, str(tmp_path / "loses.c"), *library, "-o", made], check=True)
    for checks in ("L", "U", "all", "GU"):
        environment = {**os.environ, "SLABYARD_DEBUG": checks}
        done = subprocess.run([made], env=environment, capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode, done.stdout) == (0, "ok\n"), (checks, done.stderr)
        assert done.stderr.count("slabyard: leak: 0x") == (checks in ("L", "all")), (checks, done.stderr)
        assert not done.stderr or "size=100 " in done.stderr


@pytest.mark.parametrize("policy", POLICIES)
def test_a_plugin_is_unloaded(built: Path, archive: Path, policy: str) -> None:
    plugin = str(built / f"plugin-{policy}.so")
    options = [f'-DPOLICY="{policy}"', f"-I{ROOT / 'include'}", "-shared", "-fPIC"]
    subprocess.run([_tool("cc"), str(CASES / "plugin.c"), *options, str(archive), "-o", plugin, "-pthread"], check=True)
    done = subprocess.run([str(built / "unload"), plugin], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, "ok\n")


@pytest.mark.parametrize("policy", ["yard", "slub", "slab", "slqb"])
@pytest.mark.parametrize("what", ["malloc", "trim", "fork"])
def test_a_stopped_thread_stops_no_other(built: Path, policy: str, what: str) -> None:
    _ok([str(built / "stopped"), what], str(run.library()), policy)


@pytest.mark.parametrize("policy", POLICIES)
def test_more_threads_at_once_than_slots(built: Path, policy: str) -> None:
    done = _run([str(built / "at_once"), "2100", "60"], str(run.library()), policy)
    if done.returncode == 77:
        pytest.skip("this system does not allow so many threads")
    assert done.returncode == 0 and done.stdout.strip().isdigit(), done.stderr


@pytest.mark.parametrize("policy", ["yard", "bsd44"])
def test_threads_and_forks_after_a_trim(built: Path, policy: str) -> None:
    """The figure of promised memory is the whole machine's, so it is in docs/reliability.md, and not tested here."""
    done = _run([str(built / "charge")], str(run.library()), policy)
    assert done.returncode == 0 and done.stdout.startswith("objects 20000, ") and done.stdout.endswith("fork ran\n"), done.stdout


def test_sizes_that_change(built: Path) -> None:
    """The program keeps either what small objects have left or what mappings have left, not both. 60 MiB are live; classes
    and the program take some more."""
    done = _run([str(built / "sizes")], str(run.library()), "yard")
    assert 60 < int(done.stdout) < 100


def test_idle_threads_keep_little(built: Path) -> None:
    """256 MiB were in use, though never at once, and all is free. 25 to 160 MiB stay, more if more threads ran at once."""
    done = _run([str(built / "idle")], str(run.library()), "yard")
    assert 0 < int(done.stdout) < 200


@pytest.mark.parametrize("what", [["40"], ["40", "child"], ["end"], ["shut-in"]])
def test_a_thread_in_the_background_gives_memory_back(built: Path, what: list[str]) -> None:
    """256 MiB were in use at once. Without the background thread 300 MiB stay, as nobody makes a call."""
    _ok([str(built / "background"), *what], str(run.library()), "yard", SLABYARD_BACKGROUND="on")


@pytest.mark.parametrize("how", [["alone"], ["threads"]])
def test_no_sample_meets_a_filter(built: Path, how: list[str]) -> None:
    for variables in ({"SLABYARD_SAMPLE": "100"}, {"SLABYARD_DEBUG": "all"}):
        _ok([str(built / "sandbox"), *how], str(run.library()), "yard", **variables)


@pytest.mark.parametrize("policy", ["yard", "slob"])
def test_the_end_of_a_busy_program_finds_nothing(built: Path, policy: str) -> None:
    """Checks at exit meet objects that other threads are about to free, and have not filled yet."""
    _ok([str(built / "ends")], str(run.library()), policy, SLABYARD_DEBUG="FP")


@pytest.mark.parametrize("how", [["alone"], ["threads"]])
def test_no_thread_in_the_background_meets_a_filter(built: Path, how: list[str]) -> None:
    _ok([str(built / "sandbox"), *how], str(run.library()), "yard", SLABYARD_BACKGROUND="on")


def test_a_plugin_has_no_thread_in_the_background(built: Path, archive: Path, tmp_path: Path) -> None:
    """The static malloc library in a plugin of a program whose own malloc is the C library's."""
    plugin = str(tmp_path / "plugin.so")
    options = ["-shared", "-fPIC", "-Wl,-Bsymbolic", str(archive.with_name("libslabyard-malloc.a")), "-pthread"]
    subprocess.run([_tool("cc"), "-O1", str(CASES / "background.c"), *options, "-o", plugin], check=True)
    environment = {**os.environ, "SLABYARD_BACKGROUND": "on"}
    done = subprocess.run([str(built / "background"), "plugin", plugin], env=environment, capture_output=True, text=True,
                          timeout=60, check=False)  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stderr


@pytest.mark.parametrize("size", [8, 16, 1024, 1025, 2100, 5000, 9000, 12000, 16400, 19000])
def test_objects_of_one_size_waste_little(built: Path, size: int) -> None:
    """Descriptors of pages, the rounding of size classes, and the rests at slabs' ends take at most a tenth together."""
    done = _run([str(built / "waste"), str(size)], str(run.library()), "yard", SLABYARD_HUGE_PAGES="off")
    assert 1 < float(done.stdout) < (1.03 if size < 1024 else 1.10)


@pytest.mark.parametrize("policy", POLICIES)
def test_what_is_reserved_is_not_dumped(policy: str) -> None:
    """A debugger's core file holds memory that is marked for dumps: there must be little of it."""
    done = _run([_tool("cat"), "/proc/self/smaps"], str(run.library()), policy)
    dumped = size = 0
    for line in done.stdout.splitlines():
        if line.startswith("Size:"):
            size = int(line.split()[1])
        elif line.startswith("VmFlags:"):
            dumped += size if "dd" not in line.split() else 0
    assert 0 < dumped < 40 << 10, f"{dumped} KiB"


@pytest.mark.parametrize(("name", "value", "why"), [
    ("SLABYARD_RESERVE", "64Q", "not a size"), ("SLABYARD_RESERVE", "1", "out of range"), ("SLABYARD_LIMIT", "G", "not a size"),
    ("SLABYARD_LIMIT", "99999999999999999999", "out of range"), ("SLABYARD_HUGE_PAGES", "no", "not a choice"),
    ("SLABYARD_BACKGROUND", "yes", "not a choice"),
    ("SLABYARD", "slub:linux=7.0", "slub: linux=6.18 and 7.0 have sheaves"),
])  # fmt: skip
def test_a_wrong_setting_is_one_line(name: str, value: str, why: str) -> None:
    done = _run([_tool("true")], str(run.library()), "yard", **{name: value})
    assert done.returncode == 2
    assert done.stderr.startswith(f"slabyard: {name}={value}: {why}") and done.stderr.count("\n") == 1


@pytest.mark.parametrize("policy", POLICIES)
def test_settings_hold(built: Path, policy: str) -> None:
    settings = {"SLABYARD_RESERVE": "256M", "SLABYARD_LIMIT": "128m", "SLABYARD_HUGE_PAGES": "off"}
    _ok([str(built / "threads")], str(run.library()), policy, **settings)
    code = "import resource,sys; sys.stdout.write(open('/proc/self/status').read())"
    done = _run([_tool("python3"), "-c", code], str(run.library()), policy, **settings)
    size = next(int(line.split()[1]) for line in done.stdout.splitlines() if line.startswith("VmSize:"))
    assert size < 1 << 20, "KiB of addresses"
    done = _run([_tool("python3"), "-c", "bytearray(200 << 20)"], str(run.library()), policy, **settings)
    assert "MemoryError" in done.stderr


def test_builds_with_musl(tmp_path: Path) -> None:
    """The malloc library built with musl's headers and libc, shared and static."""
    compiler = _tool("musl-gcc")
    build = tmp_path / "build"
    _build(build, "slabyard_malloc", "slabyard_malloc_static", options=(f"-DCMAKE_C_COMPILER={compiler}",))
    program = str(tmp_path / "threads")
    subprocess.run([compiler, str(CASES / "threads.c"), "-o", program, "-pthread"], check=True, timeout=60)
    _ok([program], str(build / "libslabyard-malloc.so"), "yard")
