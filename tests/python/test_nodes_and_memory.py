"""Memory nodes, memory pressure and the end of a replay, under every allocator."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import handmade
import pytest
from handmade import slabyard

from slabyard.replay import allocators
from slabyard.replay import workload as replay

POLICIES = [policy["name"] for policy in allocators.policies()]


def exact(trace: Path, policy: str, **options: Any) -> dict[str, Any]:
    with replay.Workload(trace, replay.Options(**options)) as workload:
        return workload.exact(policy)


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight CPUs; every second object is asked for on a node, which is not always that of the CPU; others free a third of them."""
    builder = handmade.Builder()
    builder.metadata.cpus = 8
    builder.metadata.caches = [handmade.cache("dentry", 192)]
    live: list[int] = []
    for number in range(2000):
        place = {"cpu": number % 8, "node": number // 8 % 4 if number % 2 else -1}
        if number % 3:
            builder.kmalloc(number, 16 + number % 700, **place)
        else:
            builder.cache_alloc(number, 0, **place)
        live.append(number)
        if number % 3 == 2:
            gone = live.pop(number * 7 % len(live))
            builder.kfree(gone, cpu=(number + 3) % 8) if gone % 3 else builder.cache_free(gone, 0, cpu=(number + 3) % 8)
    return builder.write(tmp_path_factory.mktemp("nodes") / "nodes.parquet")


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("count", [1, 2, 4])
def test_nodes_are_counted(nodes: Path, policy: str, count: int) -> None:
    found = exact(nodes, policy, nodes=count)
    assert found["local_allocations"] + found["remote_allocations"] == found["requests"] == 2000
    assert found["local_frees"] + found["remote_frees"] == found["frees"] == 666
    # A node that the replay has not is none.
    assert found["node_requests_met"] + found["node_requests_missed"] == sum(
        number // 8 % 4 < count for number in range(2000) if number % 2
    )
    if count == 1:
        assert found["remote_allocations"] == found["remote_frees"] == found["node_requests_missed"] == 0
    elif policy == "bonwick":  # its slabs serve anybody
        assert found["node_requests_missed"] > 0 and found["remote_allocations"] > 0
    else:
        assert found["node_requests_missed"] == 0
        assert found["remote_allocations"] > 0 and found["remote_frees"] > 0


@pytest.mark.parametrize("policy", ["slub", "slab", "slqb", "bsd44", "svr4", "sunos4"])
def test_a_cpu_gets_memory_of_its_node(tmp_path: Path, policy: str) -> None:
    builder = handmade.Builder()
    builder.metadata.cpus = 4
    for number in range(400):
        builder.kmalloc(number, 100, cpu=number % 4)
    for number in range(400):
        builder.kfree(number, cpu=number % 4)
    found = exact(builder.write(tmp_path / "local.parquet"), policy, nodes=4)
    assert found["local_allocations"] == found["local_frees"] == 400
    assert found["node_requests_met"] == found["node_requests_missed"] == 0


def test_nodes_in_text(nodes: Path) -> None:
    one = slabyard("replay", nodes, "--allocator", "slub").stdout
    two = slabyard("replay", nodes, "--allocator", "slub", "--nodes", "2").stdout
    assert "1 node," in one and "node that" not in one
    assert "2 nodes," in two and "allocated on another node" in two
    assert max(map(len, two.splitlines())) <= 80


def test_pages_that_start_pristine_are_told() -> None:
    trace = Path(__file__).parents[2] / "traces" / "fileio.parquet"
    for words, start, pages in ((["--nodes", "2"], "start recorded, pages pristine", "pristine"), ([], "start recorded", "recorded")):
        for verb in (["replay", trace, "--allocator", "slub"], ["compare", trace, "--allocators", "slub", "--runs", "1"]):
            assert slabyard(*verb, *words).stdout.splitlines()[0].removesuffix(", memory in KiB").endswith(start)
        assert json.loads(slabyard("replay", trace, "--allocator", "slub", *words, "--format", "json").stdout)["run"]["pages"] == pages
    assert slabyard("replay", trace, "--allocator", "slub", "--start", "empty").stdout.splitlines()[0].endswith("start empty")


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """8 MiB of objects come and go, then the environment wants 14 of 16 MiB."""
    builder = handmade.Builder()
    builder.metadata.caches = [handmade.cache("block", 1024)]
    for number in range(8 << 10):
        builder.cache_alloc(number, 0)
    for number in range(8 << 10):
        builder.cache_free(number, 0)
    for number in range(14 << 8):
        builder.page_alloc(number)
    return builder.write(tmp_path_factory.mktemp("short") / "short.parquet")


@pytest.mark.parametrize("policy", POLICIES)
def test_memory_is_given_back_under_pressure(short: Path, policy: str) -> None:
    found = exact(short, policy, memory=16 << 20, allow_failures=True)
    asked = found["reclaim_askings"] + found["reclaim_urgent_askings"]
    given = found["reclaimed_pages"] + found["reclaimed_urgent_pages"]
    assert (found["gives_back"] == "never") == (policy == "bsd44")
    if policy == "bsd44":
        assert asked > 0 and given == 0 and found["environment_failures"] > 0 and found["slab_pages_end"] >= 2048
        assert found["reclaim_wait_events"] is None and found["reclaim_rescued_requests"] == 0
        return
    assert found["environment_failures"] == 0
    assert found["slab_pages_peak"] - found["slab_pages_end"] > 1900
    if found["gives_back"] == "at once":
        assert given == 0
    if given:
        assert found["reclaim_wait_events"] >= 0 and found["reclaim_wait_ns"] == 1000 * found["reclaim_wait_events"]


@pytest.mark.parametrize("policy", ["slab", "slqb", "bonwick"])
def test_pages_that_are_given_back_leave_their_own_cache(tmp_path: Path, policy: str) -> None:
    """6 MiB of a cache come and go, then another cache takes all. Its requests need slabs, and the first cache's slabs go
    for them."""
    builder = handmade.Builder()
    builder.metadata.caches = [handmade.cache("idle", 1024), handmade.cache("wanted", 1000)]
    for number in range(6 << 10):
        builder.cache_alloc(number, 0)
    for number in range(6 << 10):
        builder.cache_free(number, 0)
    for number in range(16 << 10):
        builder.cache_alloc(number, 1)
    found = exact(builder.write(tmp_path / "idle.parquet"), policy, memory=16 << 20, allow_failures=True)
    pages = {row["name"]: row["pages_peak"] for row in found["caches"]}
    assert found["reclaimed_pages"] + found["reclaimed_urgent_pages"] > 20 and pages["idle"] == 0
    if policy == "bonwick":  # the slabs of its bufctls are of no cache of the trace
        assert 3800 < pages["wanted"] < found["held_pages_peak"]
    else:
        assert pages["wanted"] == found["held_pages_peak"]


def test_a_working_set_goes_when_a_request_would_fail(short: Path) -> None:
    """Bonwick's slabs were used milliseconds ago: a request for memory gets none of them, an urgent one gets all."""
    kept = exact(short, "bonwick", memory=16 << 20)
    assert kept["reclaim_askings"] > 0 and kept["reclaimed_pages"] == 0
    assert kept["reclaim_urgent_askings"] == 1 and kept["reclaimed_urgent_pages"] > 1900 and kept["reclaim_rescued_requests"] == 1
    assert kept["reclaim_wait_events"] > 0 and kept["reclaim_wait_ns"] == 1000 * kept["reclaim_wait_events"]
    free = exact(short, "bonwick:working_set_seconds=0", memory=16 << 20)
    assert free["reclaimed_pages"] > 1900 and free["reclaim_urgent_askings"] == 0 and free["reclaim_wait_events"] == 0
    text = slabyard("replay", short, "--allocator", "bonwick", "--memory", "16M").stdout
    assert "pages given back then, urgently" in text and "requests that this rescued" in text
    assert "asked back" not in slabyard("replay", short, "--allocator", "bonwick").stdout


@pytest.fixture(scope="module")
def leftovers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three caches, one of them empty at the end, and kmallocs; the trace ends 3 ms after the last."""
    builder = handmade.Builder()
    builder.metadata.cpus = 2
    builder.metadata.caches = [
        handmade.cache("empty", 300),
        handmade.cache("dentry", 192, constructor=True),
        handmade.cache("file", 440),
    ]
    for number in range(3000):
        builder.cache_alloc(number, number % 3, cpu=number % 2)
    for number in range(3000, 3100):
        builder.kmalloc(number, 500)
    for number in range(3000):
        if number % 3 == 0 or number % 50:
            builder.cache_free(number, number % 3, cpu=number % 2)
    return builder.write(tmp_path_factory.mktemp("leftovers") / "leftovers.parquet")


@pytest.mark.parametrize("policy", POLICIES)
def test_the_end_of_a_replay(leftovers: Path, policy: str) -> None:
    found = exact(leftovers, policy)
    live = {cache["name"]: cache["live"] for cache in found["caches"] if cache["cache"] >= 0}
    assert found["caches_alive"] == [{"name": "file", "objects": live["file"]}, {"name": "dentry", "objects": live["dentry"]}]
    assert live["file"] == live["dentry"] == 20 and live["empty"] == 0 and found["caches_destroyed"] == 1
    assert found["shrink_slab_pages_left"] == found["slab_pages_end"] - found["shrink_pages"]
    assert found["shrink_live_bytes"] == 20 * (192 + 440) + 100 * 500
    assert found["shrink_slab_pages_left"] * 4096 >= found["shrink_live_bytes"]
    if found["gives_back"] == "when asked":
        assert found["shrink_pages"] > 0
    else:
        assert found["shrink_pages"] == 0


@pytest.mark.parametrize("policy", ["slub", "slob", "bsd44"])
def test_the_end_of_a_replay_in_text(leftovers: Path, policy: str) -> None:
    text = slabyard("replay", leftovers, "--allocator", policy).stdout
    assert "1 of 3 caches could be destroyed" in text and "file (20), dentry (20)" in text.replace("\n", " ")
    assert ("never gives" in text) == (policy == "bsd44") and ("as soon as" in text) == (policy == "slob")


@pytest.mark.parametrize("policy", ["bonwick", "slob", "bsd44"])
def test_the_time_of_a_shrink(leftovers: Path, policy: str) -> None:
    timed = json.loads(slabyard("replay", leftovers, "--allocator", policy, "--runs", "6", "--format", "json").stdout)["timed"]
    if policy == "bonwick":
        low, high = timed["intervals"]["shrink_ns_per_page"]
        assert 0 < low <= timed["shrink_ns_per_page"] <= high
    else:
        assert timed["shrink_ns_per_page"] is None


def test_slabs_that_wait_for_a_grace_period(tmp_path: Path) -> None:
    """Their pages come back at the end, when the grace period has passed. That is part of the shrink, as nobody can have
    them sooner."""
    builder = handmade.Builder()
    builder.metadata.caches = [handmade.cache("file", 440, typesafe_by_rcu=True)]
    for number in range(900):
        builder.cache_alloc(number, 0)
    for number in range(900):
        builder.cache_free(number, 0)
    path = builder.write(tmp_path / "rcu.parquet")
    for policy in ("slub", "slab", "slob"):
        found = exact(path, policy)
        assert found["slab_pages_end"] > 90 and found["shrink_slab_pages_left"] <= 1, policy


def test_a_malloc_has_none_of_these(leftovers: Path) -> None:
    found = exact(leftovers, "malloc:system")
    for name in ("local_allocations", "gives_back", "reclaim_askings", "shrink_pages", "caches_alive"):
        assert found[name] is None
    assert slabyard("replay", leftovers, "--allocator", "malloc:system").returncode == 0
