"""Real threads: every workload under heaps and mallocs, records and tables, and what a user may get wrong."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import subprocess
import time
from pathlib import Path

import handmade
import pytest
from handmade import complaint, slabyard

from slabyard.base import programs
from slabyard.report import concurrency
from slabyard.base.table import render

WORKLOADS = (
    "hot",
    "lifo",
    "fifo",
    "shuffled",
    "exchange",
    "larson",
    "pipe",
    "collect",
    "hackbench",
    "scratch",
    "ageing",
    "together",
    "scattered",
    "collapse",
)
FEW = {"hackbench": "40", "ageing": "20000"}


def records(*arguments: object) -> list[dict]:
    done = slabyard("threads", *arguments, "--format", "json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("workload", WORKLOADS)
def test_every_workload_under_a_heap_and_a_malloc(workload: str) -> None:
    operations = FEW.get(workload, "3000")
    few = ("--threads", "2", "--operations", operations, "--runs", "1")
    found = records("--allocators", "slub,malloc:system", "--workload", workload, *few)
    assert [one["run"]["allocator"] for one in found] == ["slub", "malloc:system"]
    for one in found:
        run, timed = one["run"], one["timed"]
        assert run["substrate"] == "threads" and run["cpus"] == 2 and run["workload"] == workload
        assert run["threads"] == {"pipe": 4, "collect": 4, "hackbench": 80}.get(workload, 2)
        assert timed["operations"] >= 2 * int(operations) and timed["seconds"] > 0 and timed["operations_per_second"] > 0
        seen = [timed["resident_work_kb"], timed["resident_end_kb"], *(phase["resident_kb"] for phase in timed.get("phases", []))]
        assert timed["resident_peak_kb"] >= max(seen)
        assert 0 <= timed["allocator_share"] <= 1 and timed["latency_ns"]["p99"] >= timed["latency_ns"]["median"] >= 0
        for name in ("lock_waits", "lock_wait_seconds", "lock_wait_share"):
            assert (timed[name] is None) == run["allocator"].startswith("malloc:")
        assert 0 <= (timed["lock_wait_share"] or 0) <= 1
    # The workload is the same whichever allocator serves it.
    assert found[0]["timed"]["live_work_kb"] == pytest.approx(found[1]["timed"]["live_work_kb"], rel=0.2, abs=64)


@pytest.mark.parametrize("policy", ["slub", "slab", "slqb", "slob", "bonwick", "bsd44", "svr4", "sunos4"])
def test_every_policy_serves_threads(policy: str) -> None:
    found = records("--allocator", policy, "--workload", "exchange,larson", "--threads", "3", "--operations", "4000", "--runs", "1")
    assert [one["run"]["workload"] for one in found] == ["exchange", "larson"]


@pytest.mark.parametrize("workload", ["together", "scattered", "collapse"])
def test_what_comes_back_of_a_peak(workload: str) -> None:
    (one,) = records("--allocator", "slub", "--workload", workload, "--threads", "2", "--operations", "50000", "--runs", "1")
    peak, freed, later, trimmed = one["timed"]["phases"]
    assert freed["live_kb"] == later["live_kb"] == trimmed["live_kb"] < peak["live_kb"] / 50
    assert trimmed["resident_kb"] < peak["resident_kb"] / 2
    assert one["timed"]["resident_per_live"] == pytest.approx(later["resident_kb"] / later["live_kb"], rel=0.02)


def test_waits_for_a_lock_are_no_processor_time() -> None:
    """More threads than processors: they wait in turn, and spend most time on other things than allocation."""
    (one,) = records("--allocator", "slab", "--workload", "hackbench", "--threads", "2", "--operations", "2000", "--runs", "1")
    assert one["timed"]["allocator_share"] < 0.5
    (one,) = records("--allocator", "slob", "--workload", "hackbench", "--threads", "2", "--operations", "2000", "--runs", "1")
    timed = one["timed"]
    assert timed["lock_waits"] > 0 and 0 < timed["lock_wait_seconds"] <= timed["seconds"] * one["run"]["threads"]


def test_objects_of_a_cache() -> None:
    shape = ("--size", "96", "--caches", "--batch", "200")
    (one,) = records("--allocator", "slab", "--workload", "shuffled", *shape, "--operations", "2000", "--runs", "1")
    assert one["run"]["caches"] is True and one["run"]["size"] == "96" and one["run"]["batch"] == 200


def places(process: int) -> list[str]:
    """The processors of each thread, as the system tells them; the main thread's first."""
    tasks = sorted(Path(f"/proc/{process}/task").iterdir(), key=lambda task: int(task.name))
    found = [re.search(r"^Cpus_allowed_list:\t(.*)$", (task / "status").read_text(), re.MULTILINE) for task in tasks]
    return [one[1] for one in found if one]


def test_pinned_threads_stay_each_on_one_processor_in_turn() -> None:
    words = ("--allocator", "slub", "--workload", "hot", "--threads", "3", "--operations", str(10**12), "--pin")
    with subprocess.Popen([programs.program(programs.THREADS), *words], stdout=subprocess.DEVNULL) as child:
        try:
            free, end = places(os.getpid())[0], time.monotonic() + 60
            while (found := places(child.pid)) and (len(found) < 4 or found[0] != free) and time.monotonic() < end:
                time.sleep(0.01)
        finally:
            child.kill()
    allowed = sorted(os.sched_getaffinity(0))
    assert found == [free, *(str(allowed[place % len(allowed)]) for place in range(3))]
    (one,) = records("--allocator", "slub", "--workload", "pipe", "--pin", "--operations", "1000", "--runs", "1")
    assert one["run"]["pinned"] is True


def test_a_trace_in_parallel(tmp_path: Path) -> None:
    trace = handmade.busy(tmp_path / "busy.parquet")
    found = records(trace, "--allocators", "slub,malloc:system", "--operations", "2000", "--runs", "1")
    assert [one["run"]["workload"] for one in found] == ["busy", "busy"]
    assert all(one["run"]["threads"] == 2 and len(one["run"]["trace_sha256"]) == 64 for one in found)
    assert found[0]["timed"]["operations"] == found[1]["timed"]["operations"] >= 4000
    (alone,) = records(trace, "--allocator", "slub", "--threads", "1", "--operations", "2000", "--runs", "1")
    assert alone["run"]["threads"] == 1


def test_tables_and_csv() -> None:
    few = ("--threads", "1..2", "--operations", "20000", "--runs", "6")
    found = records("--allocators", "slub,malloc:system", "--workload", "hot,ageing", *few)
    text = render(concurrency.tables(found), "text")
    assert max(map(len, text.splitlines())) <= 80 and "per live" in text and "Mops/s" in text
    assert all(word in text for word in ("1 thread: ", "2 threads: "))
    rows = list(csv.DictReader(io.StringIO(render([concurrency.flat(found)], "csv"))))
    assert len(rows) == 8 and {row["threads"] for row in rows} == {"1", "2"}
    for row in rows:
        assert float(row["operations_per_second_low"]) <= float(row["operations_per_second"]) <= float(row["operations_per_second_high"])
        assert bool(row["resident_per_live"]) == (row["workload"] == "ageing")
    for one in found:
        one["timed"]["intervals"] = {}
    text = render(concurrency.tables(found), "text")
    assert all(f"{words}: fewer than 3 runs tell no winner." in text for words in ("1 thread", "2 threads"))
    assert "\n\n\n" not in render(concurrency.tables(found[:1]), "text")  # nothing to say of one alone


def test_export_and_list(tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    done = slabyard("threads", "--allocator", "slub", "--workload", "hot", "--operations", "1000", "--runs", "1", "--export-json", path)
    assert done.returncode == 0 and json.loads(path.read_text())[0]["run"]["workload"] == "hot"
    text = slabyard("threads", "--list").stdout
    assert all(name in text for name in (*WORKLOADS, "trace"))


def test_a_broken_malloc_is_noticed(tmp_path: Path) -> None:
    """A malloc that serves every second request with the memory of the one before."""
    source = tmp_path / "broken.c"
    source.write_text(
        """
        #include <stddef.h>
        #include <string.h>
        static char space[1 << 26], *next = space, *last;
        static unsigned count;
        void *malloc(size_t n) {
            if (n == 64 && last && ++count > 1000 && count % 2) { void *p = last; last = 0; return p; }
            char *p = next; next += (n + 31) / 16 * 16; *(size_t *)p = n; if (n == 64) last = p + 16; return p + 16;
        }
        void free(void *p) { (void)p; }
        void *calloc(size_t n, size_t m) { void *p = malloc(n * m); memset(p, 0, n * m); return p; }
        void *realloc(void *p, size_t n) { void *q = malloc(n); if (p) memcpy(q, p, n); return q; }
        """
    )
    library = tmp_path / "broken.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-fno-builtin", "-o", library, source], check=True)
    few = ("--batch", "100", "--operations", "20000", "--runs", "1")
    done = slabyard("threads", "--allocator", f"malloc:{library}", "--workload", "shuffled", *few)
    assert done.returncode == 2 and "the allocator is broken" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--workload", "hot"), "--allocator"),
        (("--allocator", "slub"), "--workload"),
        (("--allocator", "slub", "--workload", "cold"), "no workload is called 'cold'"),
        (("--allocator", "slub", "--workload", "hot,lifo,hot"), "--workload names hot twice"),
        (("--allocator", "nope", "--workload", "hot"), "nope: there are yard, slub, slob, "),
        (("--allocator", "nope", "--workload", "hot"), " malloc:system and malloc:/path/lib.so"),
        (("--allocator", "malloc:", "--workload", "hot"), "malloc: which one?"),
        (("--allocator", "slub:nope=1", "--workload", "hot"), "nope"),
        (("--allocator", "malloc:/nowhere.so", "--workload", "hot"), "/nowhere.so"),
        (("--allocator", "slub", "--workload", "hot", "--threads", "0"), "number of threads"),
        (("--allocator", "slub", "--workload", "hot", "--threads", "4..2"), "number of threads"),
        (("--allocator", "slub", "--workload", "hackbench", "--threads", "1000"), "--threads cannot be 1000"),
        (("--allocator", "slub", "--workload", "hot", "--size", "9-3"), "--size cannot be 9-3"),
        (("--allocator", "slub", "--workload", "ageing", "--size", "64"), "sizes of its own"),
        (("--allocator", "slub", "--workload", "lifo", "--caches"), "--size"),
        (("--allocator", "slub", "--workload", "larson", "--batch", "0"), "--batch"),
        (("--allocator", "slub", "--workload", "trace"), "needs a trace"),
    ],
)
def test_what_a_user_may_get_wrong(arguments: tuple[str, ...], words: str) -> None:
    done = slabyard("threads", *arguments)
    assert words in complaint(done, 2)


def test_no_room_for_another_thread() -> None:
    words = [programs.program(programs.THREADS), "--allocator", "slub", "--workload", "hot", "--threads", "400"]
    done = subprocess.run(["sh", "-c", 'ulimit -v 600000; exec "$@"', "sh", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and re.search(r"cannot start thread \d+ of 400: .*; raise a limit", done.stderr), done.stderr
