"""inspect: the heaps of a running process and of its core files, under every policy, with and without checks; gdb's commands."""

from __future__ import annotations

import gzip
import json
import os
import pwd
import re
import resource
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from handmade import complaint, slabyard
from preloaded import POLICIES, environment

from slabyard.attribution import pprof
from slabyard.base import programs
from slabyard.live import inspect, prometheus
from slabyard.results.run import library

SPECS = [*POLICIES, "bonwick:magazine=on", "bonwick:percpu=8", "yard:harden=all", "slub:harden=links+zero+random"]
HERE = Path(__file__).parents[2]
SCRIPT = HERE / "debugger/libslabyard-malloc.so-gdb.py"
MOST_STOPPED_US = 100_000

# Allocates objects of 100 bytes, frees every second one, and then ticks until it is ended. With threads it never stops allocating.
PROGRAM = """
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static volatile sig_atomic_t signals;

__attribute__((noinline)) char *allocate_it(size_t size)
{
    char *volatile object = malloc(size);
    return object;
}

__attribute__((noinline)) void release_it(char *object)
{
    free(object);
    __asm__ volatile("");
}

static void count(int number)
{
    (void)number;
    signals++;
}

static void *work(void *seed)
{
    unsigned next = (unsigned)(size_t)seed;
    void *kept[64] = { 0 };

    for (;;) {
        next = next * 1103515245u + 12345u;
        free(kept[next >> 16 & 63]);
        kept[next >> 16 & 63] = malloc(16 + (next >> 20 & 1023));
    }
    return NULL;
}

int main(int argc, char **argv)
{
    size_t objects = strtoul(argv[1], NULL, 10), threads = strtoul(argv[2], NULL, 10);
    char **all = malloc(objects * sizeof(*all)), *large = malloc(1 << 20), *mapped = malloc(40 << 20);
    pthread_t thread;

    (void)argc;
    signal(SIGUSR1, count);
    for (size_t i = 0; i < objects; i++) {
        all[i] = allocate_it(100);
        memset(all[i], 1, 100);
    }
    for (size_t i = 1; i < objects; i += 2)
        release_it(all[i]);
    for (size_t i = 0; i < threads; i++)
        pthread_create(&thread, NULL, work, (void *)(i + 1));
    printf("%p %p %p %p %p\\n", (void *)all[objects / 2], (void *)all[objects / 2 + 1], (void *)large, (void *)mapped, (void *)&signals);
    fflush(stdout);
    for (;;) {
        usleep(1000);
        printf("%d\\n", (int)signals);
        fflush(stdout);
    }
}
"""


@dataclass
class Running:
    """The program, and addresses in it: an object in use, one that was freed, a large one, a mapping, and a variable."""

    process: subprocess.Popen[str]
    kept: str
    freed: str
    large: str
    mapped: str
    variable: str

    @property
    def pid(self) -> str:
        return str(self.process.pid)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("inspect")
    (folder / "ticks.c").write_text(PROGRAM, encoding="utf-8")
    subprocess.run(["cc", "-g", "-O1", "-pthread", "-o", str(folder / "ticks"), str(folder / "ticks.c")], check=True)
    return folder / "ticks"


Start = Callable[..., Running]


@pytest.fixture
def start(program: Path, tmp_path: Path) -> Iterator[Start]:
    started = []

    def run(
        allocator: str = "yard",
        debug: str = "",
        objects: int = 1000,
        threads: int = 0,
        malloc: Path | None = None,
        user: str | None = None,
        sample: str = "off",
    ) -> Running:
        variables = environment(allocator, malloc, SLABYARD_DEBUG=debug, SLABYARD_SAMPLE=sample)
        process = subprocess.Popen(
            [program, str(objects), str(threads)], env=variables, stdout=subprocess.PIPE, text=True, cwd=tmp_path, user=user,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY,) * 2),
        )  # fmt: skip
        started.append(process)
        assert process.stdout
        return Running(process, *process.stdout.readline().split())

    yield run
    for process in started:
        process.kill()
        process.communicate()


def ask(target: Running | Path, *words: str) -> dict[str, Any]:
    """The answer without gdb's command around it, which takes longer."""
    return inspect.ask(target.pid if isinstance(target, Running) else str(target), *words)


def check_figures(answer: dict[str, Any], objects: int) -> None:
    """Half of the objects are in use, and the sums are right."""
    (heap,) = answer["heaps"]
    rows = inspect.rows_of(heap)
    in_slabs = [one for one in rows if one["name"] != "large"]
    assert sum(one["bytes"] for one in in_slabs) == heap["slab_bytes"]
    assert sum(one["used_bytes"] for one in rows) == heap["used_bytes"] <= heap["held_bytes"]
    assert all(sum(one["fill"]) == one["slabs"] for one in rows)
    assert heap["large"]["used"] >= 1 and heap["large"]["used_bytes"] >= 1 << 20
    assert objects // 2 * 100 <= sum(one["used_bytes"] for one in in_slabs) < objects * 100
    if heap["policy"] != "slob":  # whose blocks in use have no bounds
        assert objects // 2 <= sum(one["used"] for one in in_slabs) < objects // 2 + 50
    assert answer["mappings"]["objects"] >= 1 and answer["mappings"]["bytes"] >= 40 << 20


def check_addresses(target: Running | Path, of: Running, checked: bool) -> None:
    kept, freed = (ask(target, "--address", address)["address"] for address in (of.kept, of.freed))
    assert kept["place"] == freed["place"] == "a slab"
    assert kept["part"]["state"] == "in use"
    if checked:
        assert (kept["record"]["size"], kept["record"]["state"], kept["record"]["freed"]) == (100, "in use", None)
        assert re.match(r"allocate_it \(ticks\.c:\d+\)", kept["record"]["allocated"]["stack"][0])
        assert any(frame.startswith("main (ticks.c") for frame in kept["record"]["allocated"]["stack"])
        assert kept["record"]["allocated"]["thread"] == of.process.pid
        assert freed["record"]["state"] == "freed, kept in quarantine"
        assert freed["record"]["freed"]["stack"][0].startswith("release_it (ticks.c")
    else:
        assert freed["part"]["state"].startswith("free") and kept["record"] is None
    assert ask(target, "--address", of.large)["address"]["place"] == "a large allocation"
    mapped = ask(target, "--address", of.mapped)["address"]
    assert mapped["place"] == ("an object in pages of its own" if checked else "a mapping of malloc's")
    assert ask(target, "--address", of.variable)["address"]["place"] == "outside of the heaps"
    assert ask(target, "--address", "0x10")["address"]["place"] == "not mapped"


@pytest.mark.parametrize("debug", ["", "FZPU"])
@pytest.mark.parametrize("allocator", SPECS)
def test_a_process_and_its_core_file(start: Start, tmp_path: Path, allocator: str, debug: str) -> None:
    running = start(allocator, debug)
    answer = ask(running)
    assert answer["process"] == running.process.pid and answer["heaps"][0]["checks"] == debug
    assert inspect.spec_of(answer["heaps"][0]) == allocator
    if not debug:
        check_figures(answer, 1000)
    check_addresses(running, running, bool(debug))
    core = core_of(running, tmp_path)
    again = ask(core)
    assert again["process"] is None and Path(again["program"]).name == "ticks"
    for before, after in zip(answer["heaps"], again["heaps"], strict=True):
        assert [one["slabs"] for one in before["caches"]] == [one["slabs"] for one in after["caches"]]
    check_addresses(core, running, bool(debug))


def core_of(running: Running, folder: Path) -> Path:
    """A core file of the running program. The kernel writes it; where the kernel hands core files to a program, gdb does."""
    pattern = Path("/proc/sys/kernel/core_pattern").read_text().strip()
    if pattern != "core" and shutil.which("gdb"):
        words = ["gdb", "-batch", "-p", running.pid, "-ex", f"generate-core-file {folder / 'core'}"]
        subprocess.run(words, capture_output=True, check=True)
        return folder / "core"
    if pattern != "core":
        pytest.skip(f"core files go elsewhere ({pattern}), and there is no gdb")
    running.process.send_signal(signal.SIGABRT)
    running.process.wait()
    return next(folder.glob("core*"))


def test_a_busy_process_goes_on(start: Start) -> None:
    running = start("slub", objects=300_000, threads=2)
    sent = 0
    for _ in range(5):
        running.process.send_signal(signal.SIGUSR1)
        sent += 1
        answer = ask(running)
        assert answer["threads"] == 3 and answer["unstopped"] is None
        assert 0 < answer["stopped_us"] < MOST_STOPPED_US
        assert answer["heaps"][0]["used_bytes"] > 150_000 * 100
    assert running.process.stdout
    deadline = time.monotonic() + 20
    while running.process.stdout.readline() != f"{sent}\n" and time.monotonic() < deadline:
        pass
    assert time.monotonic() < deadline, "a signal is lost"


def test_slabs_of_a_cache_and_parts_of_a_slab(start: Start) -> None:
    running = start("slub", "FU")
    assert "has no cache kmalloc-none" in complaint(slabyard("inspect", running.pid, "--slabs", "kmalloc-none"), 2)
    answer = ask(running, "--slabs", "kmalloc-144")
    slabs = answer["heaps"][0]["slabs"]
    (cache,) = (one for one in answer["heaps"][0]["caches"] if one["name"] == "kmalloc-144")
    assert len(slabs) == cache["slabs"] and sum(one["used"] for one in slabs) == cache["used"]
    parts = ask(running, "--address", running.kept, "--slab")["address"]["parts"]
    assert sum(part["bytes"] for part in parts) == 4096 and any(part["record"] for part in parts)
    text = slabyard("inspect", running.pid, "--slab", running.kept, "--lines", "3").stdout
    assert "kmalloc-144" in text and "more; --lines shows them" in text and "allocate_it" in text.replace("\n", "").replace(" ", "")


def test_texts_and_prometheus(start: Start) -> None:
    running = start("slab", "FZPU")
    found = json.loads(slabyard("inspect", running.pid, "--format", "json").stdout)
    assert found["heaps"][0]["policy"] == "slab"
    text = slabyard("inspect", running.pid).stdout
    assert text.startswith(f"process {running.pid} (ticks), heap 0x") and "slab, checks FZPU" in text and "Fragmentation: " in text
    assert max(map(len, text.splitlines())) <= 80
    text = slabyard("inspect", running.pid, "--address", running.kept).stdout
    assert "0 bytes into object " + running.kept in text and "before: " in text and "after: " in text and "allocate_it (ticks.c:" in text
    text = slabyard("inspect", running.pid, "--log", "--last", "3").stdout
    assert len(re.findall(r"^\d+: (allocated|freed) 0x", text, re.MULTILINE)) == 3
    log = ask(running, "--log", "--address", running.freed)["log"]
    assert [one["what"] for one in log][:2] == ["freed", "allocated"] and all(one["object"] == running.freed for one in log)
    metrics = slabyard("inspect", running.pid, "--format", "prometheus").stdout
    value = re.compile(r'[a-z_]+(\{[a-z]+="[^"\n]*"(,[a-z]+="[^"\n]*")*\})? \d+')
    assert all(line.startswith(("# HELP ", "# TYPE ")) or value.fullmatch(line) for line in metrics.splitlines())
    assert 'slabyard_heap_held_bytes{heap="0",spec="slab"} ' in metrics
    assert prometheus._escaped('a"\\\n') == 'a\\"\\\\\\n'


def test_the_library_has_the_same_metrics() -> None:
    text = (Path(__file__).parents[2] / "library/debug/metrics.c").read_text()
    named = re.findall(r'\{ "(slabyard_\w+)", "(.*?)", "(?:gauge|counter)"', text)
    of_a_process = (*prometheus.OF_HEAPS, *prometheus.COUNTERS, *prometheus.OF_CACHES)
    assert named == [(name, meaning) for name, meaning, _ in of_a_process]


def test_top_of_a_process(start: Start) -> None:
    running = start("yard", threads=1)
    done = slabyard("top", "-p", running.pid, "--interval", "100ms", "--count", "1", "--format", "json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["of"] == f"process {running.pid} (ticks)" and found["slab_kib"] > 0
    assert any(one["name"] == "kmalloc-112" and one["active_objects"] >= 500 for one in found["caches"])
    assert "goes" not in complaint(slabyard("top", "-p", running.pid, "--call-sites"), 2)


def profiled(path: Path) -> Any:
    """A heap profile's bytes in use by function, each sample counted once for each function in its stack; and the lines of functions."""
    profile = pprof.profile_class().FromString(gzip.decompress(path.read_bytes()))
    names = {one.id: (profile.string_table[one.name], profile.string_table[one.filename]) for one in profile.function}
    lines = {names[place.line[0].function_id]: place.line[0].line for place in profile.location}
    found: dict[str, int] = {}
    for sample in profile.sample:
        for function in {names[number][0] for number in sample.location_id}:
            found[function] = found.get(function, 0) + sample.value[3]
    return found, lines


def test_profile_of_all_that_lives(start: Start, tmp_path: Path) -> None:
    running = start("slub", debug="U")
    done = slabyard("inspect", running.pid, "--profile", str(tmp_path / "heap.pb.gz"))
    assert done.returncode == 0, done.stderr
    assert "MiB live in" in done.stdout and "estimate" not in done.stdout
    by_function, lines = profiled(tmp_path / "heap.pb.gz")
    assert by_function["allocate_it"] == by_function["[general allocation]"] - (1 << 20) - (40 << 20) - 1000 * 8 - 4096 == 500 * 100
    assert lines["allocate_it", "ticks.c"] in range(12, 17)
    core = core_of(running, tmp_path)
    assert slabyard("inspect", str(core), "--profile", str(tmp_path / "core.pb.gz")).returncode == 0
    assert profiled(tmp_path / "core.pb.gz")[0]["allocate_it"] == 500 * 100


def test_profile_of_samples(start: Start, tmp_path: Path) -> None:
    running = start("yard", objects=4000, sample="10")
    done = slabyard("inspect", running.pid, "--profile", str(tmp_path / "heap.pb.gz"))
    assert done.returncode == 0, done.stderr
    assert "An estimate from" in done.stdout and "one in 10 allocations" in done.stdout
    assert "above 64 KiB are not sampled: 41.0 MiB" in done.stdout
    assert 2000 * 100 / 2 < profiled(tmp_path / "heap.pb.gz")[0]["allocate_it"] < 2000 * 100 * 2
    many = start("yard", objects=40_000, sample="1")
    done = slabyard("inspect", many.pid, "--profile", str(tmp_path / "many.pb.gz"))
    assert "came when as many objects as can be were sampled" in done.stdout


def test_profile_of_a_program_that_records_nothing(start: Start, tmp_path: Path) -> None:
    running = start("yard")
    assert "does not record who allocates" in complaint(slabyard("inspect", running.pid, "--profile", str(tmp_path / "none.pb.gz")), 2)
    assert slabyard("sample", running.pid).returncode == 0  # it makes no call that would look at the rate
    sampled = complaint(slabyard("inspect", running.pid, "--profile", str(tmp_path / "none.pb.gz")), 2)
    assert "is sampled, but holds no sampled object" in sampled
    assert not (tmp_path / "none.pb.gz").exists()
    nowhere = str(tmp_path / "none" / "heap.pb.gz")
    assert nowhere in complaint(slabyard("inspect", "4194304999"[:9], "--profile", nowhere), 2), "told before the process is looked for"
    assert "goes alone" in complaint(slabyard("inspect", running.pid, "--log", "--profile", str(tmp_path / "none.pb.gz")), 2)


def test_what_cannot_be_looked_at(start: Start, tmp_path: Path) -> None:
    for number in ("4194304999"[:9], "0", "0" * 9, "9" * 40):
        assert complaint(slabyard("inspect", number), 2) == f"slabyard: there is no process {number}"
    assert "no such file" in complaint(slabyard("inspect", str(tmp_path / "none")), 2)
    assert "is no core file" in complaint(slabyard("inspect", "/bin/sh"), 2)
    with subprocess.Popen(["sleep", "60"]) as other:
        assert "does not use slabyard" in complaint(slabyard("inspect", str(other.pid)), 2)
        other.kill()
    with subprocess.Popen(["true"]) as ended:  # and not waited for yet
        os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
        for verb in ("inspect", "sample"):
            assert "has no program: it is a kernel thread, or has ended" in complaint(slabyard(verb, str(ended.pid)), 2)
    assert "is no address" in complaint(slabyard("inspect", "1", "--address", "here"), 2)
    running = start("yard")
    assert "keeps no log" in complaint(slabyard("inspect", running.pid, "--log"), 2)
    assert "is in no slab" in complaint(slabyard("inspect", running.pid, "--slab", running.variable), 2)
    core = core_of(running, tmp_path)
    whole = core.read_bytes()
    (tmp_path / "short").write_bytes(whole[:1000])
    assert "cut short" in complaint(slabyard("inspect", str(tmp_path / "short")), 2)
    (tmp_path / "shorter").write_bytes(whole[:200_000])
    assert "cut short" in complaint(slabyard("inspect", str(tmp_path / "shorter")), 2)
    (tmp_path / "most").write_bytes(whole[:-5000])
    done = slabyard("inspect", str(tmp_path / "most"))
    assert done.returncode == 3 and "cut short" in done.stdout


def test_another_build_is_told(start: Start, tmp_path: Path) -> None:
    bytes_of = library().read_bytes()
    build = re.search(rb"\d+\.\d+\.\d+ \([0-9a-f]{16}\)", bytes_of)
    assert build
    other = build[0][:-3] + b"zz)"
    (tmp_path / "libslabyard-malloc.so").write_bytes(bytes_of.replace(build[0], other))
    running = start("yard", malloc=tmp_path / "libslabyard-malloc.so")
    told = complaint(slabyard("inspect", running.pid), 2)
    assert other.decode() in told and build[0].decode() in told
    assert slabyard("sample", running.pid).returncode == 0  # which any build's can do


def test_a_library_anywhere(start: Start) -> None:
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:  # whose name begins like those of the kernel's mappings
        assert ask(start("yard", malloc=Path(shutil.copy(library(), folder))))["heaps"]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be another user")
def test_rights_are_given_up(start: Start, program: Path) -> None:
    for folder in (program.parent, *program.parent.parents):
        if not folder.stat().st_mode & stat.S_IXOTH:  # pytest's own, of which xdist has one more
            folder.chmod(0o755)
    running, ours = start("slub", objects=200_000, user="nobody"), start("yard")
    assert ask(running)["heaps"][0]["used_bytes"] > 0
    tool = programs.program(programs.INSPECT)
    with subprocess.Popen([tool, "--pid", running.pid, "--slabs", ""], stdout=subprocess.PIPE) as process:
        assert process.stdout and process.stdout.read(1)  # it writes, and waits for a reader
        status = Path(f"/proc/{process.pid}/status").read_text()
        process.kill()
    user = pwd.getpwnam("nobody").pw_uid
    assert re.search(rf"^Uid:\t{user}\t{user}\t{user}\t{user}$", status, re.MULTILINE)
    assert re.search(r"^CapPrm:\t0+$", status, re.MULTILINE) and re.search(r"^NoNewPrivs:\t1$", status, re.MULTILINE)
    words = [shutil.copy(tool, program.parent), "--pid", ours.pid]
    done = subprocess.run(words, capture_output=True, text=True, user="nobody", check=False)
    assert done.returncode == 4 and "may not be looked into" in done.stderr


@pytest.mark.skipif(shutil.which("gdb") is None and "CI" not in os.environ, reason="there is no gdb")
@pytest.mark.parametrize("allocator", ["yard", "slab"])
def test_commands_of_gdb(program: Path, start: Start, tmp_path: Path, allocator: str) -> None:
    (tmp_path / "slabyard").write_text(f'#!/bin/sh\nexec {sys.executable} -m slabyard "$@"\n')
    (tmp_path / "slabyard").chmod(0o755)
    variables = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}

    def gdb(lines: list[str], *files: Path) -> subprocess.CompletedProcess[str]:
        script = [one for line in [f"source {SCRIPT}", *lines] for one in ("-ex", line)]
        return subprocess.run(["gdb", "-batch", *script, *files], env=variables, capture_output=True, text=True, timeout=120, check=False)

    settings = [f"set environment {name}" for name in (f"LD_PRELOAD {library()}", f"SLABYARD {allocator}", "SLABYARD_DEBUG FZPU")]
    begin = ["set pagination off", *settings, "break usleep", "run 1000 0 >/dev/null", "up"]
    done = gdb([*begin, "sy caches", "sy whatis all[500]", "sy slab all[500]", "sy log all[501]", "sy log", "sy whatis"], program)
    assert "(ticks), heap 0x" in done.stdout and f"{allocator}, checks FZPU" in done.stdout, done.stderr
    assert "0 bytes into object 0x" in done.stdout and "allocate_it (ticks.c:" in done.stdout
    assert re.search(r"^\d+: freed 0x", done.stdout, re.MULTILINE) and "give an address" in done.stderr
    running = start(allocator, "FZPU")
    core = core_of(running, tmp_path)
    done = gdb([f"sy whatis {running.kept}", "sy caches"], program, core)
    assert f"0 bytes into object {running.kept}" in done.stdout and "heap 0x" in done.stdout, done.stderr
    assert "run the program, or load a core file" in gdb(["sy caches"]).stderr
