"""The kernel's own texts, parsed."""

from __future__ import annotations

from pathlib import Path

from slabyard.trace import gfp, snapshots
from slabyard.trace.file import Cache

SLABINFO = """slabinfo - version: 2.1
# name            <active_objs> <num_objs> <objsize> <objperslab> <pagesperslab> : tunables <limit> <batchcount> <sharedfactor> : slabdata
dentry               120    126    192   21    1 : tunables    0    0    0 : slabdata      6      6      0
kmalloc-1k            40     64   1024   16    4 : tunables  120   60    8 : slabdata      4      4     32
short line
"""
PAGETYPEINFO = """Page block order: 9
Pages per block:  512

Free pages count per migrate type at order       0      1      2      3      4      5      6      7      8      9     10
Node    0, zone   Normal, type    Unmovable      3      0      0      0      0      0      0      0      1      0      0
Node    0, zone   Normal, type      Movable >100000     0      0      0      0      0      0      0      0      1      3
Node    0, zone   Normal, type          CMA      5      0      0      0      0      0      0      0      0      0      0

Number of blocks type     Unmovable      Movable  Reclaimable   HighAtomic      CMA      Isolate
Node 0, zone   Normal            4            7            1            0        2            0
"""
ZONEINFO = """Node 0, zone      DMA
  per-node stats
      nr_inactive_anon 2410
  pages free     1200
        min      24
        low      30
        high     36
        spanned  4095
        present  3998
        managed  3840
  pagesets
    cpu: 0
              count: 0
              high:  0
  start_pfn:           1
Node 0, zone   Normal
  pages free     9
        min      5
        low      6
        high     7
        spanned  8192
        managed  8000
    nr_free_pages 9
  start_pfn:           4096
Node 0, zone  Movable
  pages free     0
        min      0
        spanned  0
        managed  0
  start_pfn:           0
"""


def test_slabinfo() -> None:
    dentry, kmalloc = snapshots.parse_slabinfo(SLABINFO)
    assert (dentry.name, dentry.active_objects, dentry.objects) == ("dentry", 120, 126)
    assert (dentry.object_size, dentry.objects_per_slab, dentry.pages_per_slab) == (192, 21, 1)
    assert (kmalloc.limit, kmalloc.slabs, kmalloc.shared_available) == (120, 4, 32)


def test_buddyinfo_is_summed_over_zones() -> None:
    text = "Node 0, zone      DMA      1      0      0      0\nNode 0, zone   Normal      6      3      3      2      4      2      3\n"
    assert snapshots.total_free_blocks(text) == [7, 3, 3, 2, 4, 2, 3, 0, 0, 0, 0]
    assert snapshots.total_free_blocks("no such file") is None


def test_pagetypeinfo_reads_counts_that_the_kernel_gave_up_counting() -> None:
    free, blocks = snapshots.parse_pagetypeinfo(PAGETYPEINFO)
    assert free[0, "Normal"]["Unmovable"] == [3, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0]
    assert free[0, "Normal"]["Movable"][0] == 100000
    assert blocks[0, "Normal"] == {"Unmovable": 4, "Movable": 7, "Reclaimable": 1, "HighAtomic": 0, "CMA": 2, "Isolate": 0}


def test_zoneinfo_leaves_out_empty_zones_and_per_cpu_lists() -> None:
    dma, normal = snapshots.parse_zoneinfo(ZONEINFO)
    assert (dma.name, dma.start_pfn, dma.spanned, dma.managed, dma.min, dma.low, dma.high) == ("DMA", 1, 4095, 3840, 24, 30, 36)
    assert (normal.name, normal.start_pfn, normal.managed, normal.high) == ("Normal", 4096, 8000, 7)


def test_slab_attributes_follow_merged_caches(tmp_path: Path) -> None:
    real = tmp_path / ":0000064"
    real.mkdir()
    (real / "object_size").write_text("64\n")
    (tmp_path / "fork_notes").symlink_to(real)
    (tmp_path / "kmalloc-64").symlink_to(real)
    found = snapshots.take_slab_attributes(tmp_path)
    assert found == {"fork_notes": {"object_size": "64"}, "kmalloc-64": {"object_size": "64"}}
    assert snapshots.take_slab_attributes(tmp_path / "absent") is None


def test_the_name_of_a_merged_cache_tells_that_it_is_charged(tmp_path: Path) -> None:
    """As /sys/kernel/slab of Linux 6.18 has files_cache, task_group, ext4's inodes and kmalloc's: mm/slub.c, create_unique_id()."""
    links = {"files_cache": ":A-0000704", "task_group": ":0000704", "pidfs_attr_cache": ":aA-0000032", "buffer_head": ":a-0000104"}
    for name, target in links.items():
        (tmp_path / target).mkdir()
        (tmp_path / target / "object_size").write_text("64\n")
        (tmp_path / name).symlink_to(target)
    found = snapshots.take_slab_attributes(tmp_path) or {}
    caches = {name: Cache(name, 64) for name in found}
    for name, cache in caches.items():
        cache.describe(found[name])
    assert {name for name, cache in caches.items() if cache.account} == {"files_cache", "pidfs_attr_cache"}


def test_gfp_flags() -> None:
    assert gfp.flags_of("GFP_KERNEL|__GFP_ZERO") == gfp.ZERO
    assert gfp.flags_of("GFP_ATOMIC|__GFP_NOWARN") == gfp.HIGHATOMIC
    assert gfp.flags_of("GFP_KERNEL|__GFP_HIGH") == 0
    assert gfp.flags_of("GFP_KERNEL_ACCOUNT|__GFP_RECLAIMABLE") == gfp.ACCOUNT | gfp.RECLAIMABLE
    assert gfp.flags_of("GFP_HIGHUSER_MOVABLE|__GFP_COMP") == gfp.MOVABLE
    assert gfp.flags_of("GFP_DMA32") == gfp.DMA32
    assert gfp.flags_of("") == 0


def test_migrate_types() -> None:
    assert [gfp.migrate_of(number) for number in (-1, 0, 1, 2, 3, 4, 5)] == [0, 0, 1, 2, 3, 1, 1]
