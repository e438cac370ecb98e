"""top: the running kernel's caches by growth, and who allocates."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from handmade import complaint, slabyard

from slabyard.base.errors import MISSING, UserError
from slabyard.live import sites, top

HEAD = "slabinfo - version: 2.1\n"
ALLOCINFO = """allocinfo - version: 1.0
#     <size>  <calls> <tag info>
     4096        1 mm/slub.c:100 func:new_slab
        0        0 mm/slub.c:200 func:nobody
      512        8 net/core/skbuff.c:10 [nf] func:skb_clone
"""
EVENTS = """# tracer: nop
   ls-10 [000] ..... 1.0: kmalloc: call_site=seq_open+0x1/0x2 ptr=0000000012 bytes_req=90 bytes_alloc=96 node=-1
   ls-10 [000] ..... 1.1: kmem_cache_alloc: call_site=alloc_inode+0x5/0x9 ptr=00000012 name=dentry bytes_req=192 bytes_alloc=192 node=-1
   ls-10 [000] ..... 1.2: kmem_cache_alloc: call_site=alloc_inode+0x9/0x9 ptr=00000013 name=dentry bytes_req=192 bytes_alloc=192 node=-1
"""


def line(name: str, active: int, slabs: int) -> str:
    return f"{name} {active} {slabs * 21} 192 21 1 : tunables 0 0 0 : slabdata {slabs} {slabs} 0\n"


def reading(folder: Path, now: float, slabinfo: str, slab: int) -> top.Reading:
    (folder / "slabinfo").write_text(HEAD + slabinfo)
    (folder / "meminfo").write_text(f"Slab: {slab} kB\n")
    return top.read(now, folder)


def test_growth_since_the_start_and_in_the_last_interval(tmp_path: Path) -> None:
    first = reading(tmp_path, 0, line("dentry", 100, 6) + line("gone", 21, 1), 28)
    before = reading(tmp_path, 2, line("dentry", 120, 6) + line("inode", 21, 1), 28)
    now = reading(tmp_path, 4, line("dentry", 200, 10) + line("inode", 21, 1), 44)
    found = top.describe(first, before, now, "growth")
    assert (found["seconds"], found["slab_kib"], found["grew_kib"]) == (4, 44, 16)
    assert [one["name"] for one in found["caches"]] == ["dentry", "inode", "gone"]
    dentry, inode, gone = found["caches"]
    page = top.PAGE_KIB
    assert (dentry["grew_kib"], dentry["kib_per_second"], dentry["grew_objects"], dentry["kib"]) == (4 * page, 2 * page, 100, 10 * page)
    assert (inode["grew_kib"], inode["kib_per_second"]) == (page, 0)
    assert (gone["grew_kib"], gone["kib"], gone["object_size"]) == (-page, 0, 192)
    assert [one["name"] for one in top.describe(first, before, now, "name")["caches"]] == ["dentry", "gone", "inode"]
    assert "+16 KiB in 4 s" in top.tables(found, 2)[0].title and len(top.tables(found, 2)[0].rows) == 2


def test_no_slabinfo_and_no_right_to_read_it(tmp_path: Path) -> None:
    with pytest.raises(UserError) as raised:
        top.read(0, tmp_path)
    assert raised.value.status == MISSING and "no /proc/slabinfo" in raised.value.message


def test_call_sites_of_allocinfo() -> None:
    found = sites.parse_allocinfo(ALLOCINFO)
    assert {site.name: size for site, size in found.items()} == {
        "new_slab mm/slub.c:100": 4096,
        "skb_clone net/core/skbuff.c:10 [nf]": 512,
    }
    first, now = top.Reading(0, {}, 0, {}), top.Reading(1, {}, 0, found)
    rows = top.describe(first, first, now, "growth")["call_sites"]
    assert [(row["call_site"].split()[0], row["grew_kib"]) for row in rows] == [("new_slab", 4), ("skb_clone", 0.5)]


def test_call_sites_of_events() -> None:
    assert sites.parse_events(EVENTS) == {sites.Site("seq_open", "kmalloc-96"): 96, sites.Site("alloc_inode", "dentry"): 384}
    assert [sites.kmalloc_cache(size) for size in (8, 1024, 8192, 16384)] == ["kmalloc-8", "kmalloc-1k", "kmalloc-8k", "large"]


def _readable() -> bool:
    return os.access("/proc/slabinfo", os.R_OK)


@pytest.mark.skipif(not _readable(), reason="/proc/slabinfo cannot be read here")
def test_the_running_kernel() -> None:
    done = slabyard("top", "--interval", "100ms", "--count", "2", "--format", "json")
    assert done.returncode == 0, done.stderr
    first, second = (json.loads(line) for line in done.stdout.splitlines())
    assert first["seconds"] < second["seconds"] and second["slab_kib"] > 0
    assert any(cache["name"] == "dentry" for cache in first["caches"])
    text = slabyard("top", "--interval", "100ms", "--count", "1", "--lines", "3").stdout
    assert text.startswith("Slab: ") and len([line for line in text.splitlines() if line]) >= 6


@pytest.mark.parametrize("at", ["tracing_on", "events/kmem/enable"])  # as it begins, and as it ends
def test_no_tracing_is_left_on(at: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def interrupted(_: sites.Sampler, name: str, text: str) -> None:
        if name == at:
            raise KeyboardInterrupt

    monkeypatch.setattr(sites.Sampler, "_write", interrupted)
    (tmp_path / "instances").mkdir()
    with pytest.raises(KeyboardInterrupt), sites.Sampler([tmp_path]):
        pass
    assert not list((tmp_path / "instances").iterdir())


@pytest.mark.skipif(not _readable() or not any((mount / "instances").is_dir() for mount in sites.TRACEFS), reason="no tracefs here")
def test_who_allocates_now() -> None:
    done = slabyard("top", "--call-sites", "--interval", "100ms", "--count", "1", "--format", "json")
    if done.returncode == MISSING:
        pytest.skip(complaint(done, MISSING))
    assert done.returncode == 0, done.stderr
    assert isinstance(json.loads(done.stdout)["call_sites"], list)
    assert not [one for mount in sites.TRACEFS if (mount / "instances").is_dir() for one in (mount / "instances").glob("slabyard-*")]


def test_wrong_times() -> None:
    for text in ("0", "-1", "x", "1d", "nan"):
        assert "is no time in seconds" in complaint(slabyard("top", "--interval", text), 2)
