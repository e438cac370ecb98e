"""What Linux's own caches ask of an allocator, for captures that don't say.

A cache's request is its object size, alignment, constructor and flags. A recording has them from /sys/kernel/slab; a text
capture has no more than the size, and on some kernels not even a name. For these this table gives the defaults: the flags that
the kernel passes to kmem_cache_create for its common caches (Linux 6.1; kmem_cache_create(9) describes them). A cache is
found by its name, else by the function that allocates from it. What is not in the table gets no constructor or flag, and no
alignment but what the addresses of its objects prove.

Kernels merge caches of alike objects, but not those that the allocator itself boots with; nor those of which a part may be copied to
user space (kmem_cache_create_usercopy), unless such copies go unchecked. Since 6.2 such a kernel also lets caches share the slabs of
kmalloc, and events name them so: kmalloc-256. That is the proof, and then nothing else is known of such a cache than that it merges.
"""

from __future__ import annotations

from ..trace.file import Cache
from ..trace.snapshots import KMALLOC, class_of

# What kmem_cache_create is asked for besides name and size, by attributes of Cache. `align` in bytes; 0: the default.
Request = dict[str, int]
COPIED = "copied"  # a part of the object may be copied to user space
LETTERS = {"c": "constructor", "h": "hwcache_align", "t": "typesafe_by_rcu", "r": "reclaimable", "o": "no_merge", "u": COPIED}


def _requests(letters: str, names: str, align: int = 0) -> dict[str, Request]:
    """The same request for each of these caches: the attributes of LETTERS, and the alignment."""
    return {name: {**{LETTERS[letter]: True for letter in letters}, "align": align} for name in names.split()}


REQUESTS: dict[str, Request] = {
    **_requests(
        "h",
        "biovec-16 biovec-64 biovec-128 biovec-max cred_jar dmaengine-unmap-2 dmaengine-unmap-16 eventpoll_epi files_cache filp "
        "fs_cache inet_peer_cache ip_dst_cache mnt_cache ip6_dst_cache pid scsi_sense_cache sgpool-8 sgpool-16 sgpool-32 sgpool-64 "
        "sgpool-128 signal_cache skbuff_ext_cache skbuff_fclone_cache tcp_bind_bucket tcp_bind2_bucket PING PINGv6 UNIX "
        "UNIX-STREAM UDP UDPv6 UDP-Lite UDPLITEv6 xfrm_dst_cache btrfs_path xfs_buf",
    ),
    **_requests("ho", "kmem_cache kmem_cache_node skbuff_head_cache"),
    **_requests("hu", "io_kiocb mm_struct names_cache RAW RAWv6 skbuff_small_head"),
    **_requests("ht", "TCP TCPv6 bio-"),
    **_requests("t", "tw_sock_TCP tw_sock_TCPv6 request_sock_TCP request_sock_TCPv6"),
    **_requests("cht", "sighand_cache"),
    **_requests("ct", "anon_vma"),
    **_requests("t", "jbd2_journal_head nf_conntrack"),
    **_requests("c", "shmem_inode_cache hugetlbfs_inode_cache iint_cache"),
    **_requests(
        "cr",
        "inode_cache proc_inode_cache radix_tree_node ext2_inode_cache ext4_inode_cache fat_inode_cache btrfs_inode isofs_inode_cache "
        "nfs_inode_cache ovl_inode debugfs_inode_cache tracefs_inode_cache",
    ),
    **_requests("ch", "mqueue_inode_cache"),
    **_requests("chr", "bdev_cache sock_inode_cache rpc_inode_cache fuse_inode xfs_inode squashfs_inode_cache"),
    **_requests(
        "r",
        "buffer_head mbcache ext4_allocation_context ext4_extent_status ext4_free_data ext4_io_end ext4_prealloc_space "
        "ext4_pending_reservation fat_cache btrfs_extent_map btrfs_delayed_node btrfs_ordered_extent numa_policy xfs_ili",
    ),
    **_requests("ru", "dentry"),
    **_requests("u", "proc_dir_entry"),
    **_requests("u", "task_struct", align=64),
    **_requests("", "net_namespace", align=64),
    **_requests("", "maple_node pool_workqueue", align=256),
}

WORD, CACHE_LINE = 8, 64  # bytes

# Functions that allocate from these caches and from no others, as call_site names them. {}: bytes of the object.
FUNCTIONS: dict[str, str] = {
    "__alloc_file": "filp",
    "__alloc_skb": "skbuff_head_cache",
    "__anon_vma_prepare": "anon_vma",
    "__d_alloc": "dentry",
    "__kernfs_new_node": "kernfs_node_cache",
    "__kmem_cache_create": "kmem_cache_node",
    "__kmem_cache_create_args": "kmem_cache",
    "__proc_create": "proc_dir_entry",
    "__radix_tree_preload": "radix_tree_node",
    "__sigqueue_alloc": "sigqueue",
    "__trace_define_field": "ftrace_event_field",
    "alloc_buffer_head": "buffer_head",
    "alloc_empty_file": "filp",
    "alloc_inode": "inode_cache",
    "alloc_pid": "pid",
    "alloc_unbound_pwq": "pool_workqueue",
    "alloc_vfsmnt": "mnt_cache",
    "alloc_vmap_area": "vmap_area",
    "alloc_workqueue": "pool_workqueue",
    "anon_vma_clone": "anon_vma_chain",
    "bdev_alloc_inode": "bdev_cache",
    "build_skb": "skbuff_head_cache",
    "copy_fs_struct": "fs_cache",
    "copy_process": "task_struct sighand_cache signal_cache mm_struct",
    "create_cache": "kmem_cache",
    "create_new_namespaces": "nsproxy",
    "do_kmem_cache_create": "kmem_cache_node",
    "dup_fd": "files_cache",
    "ep_insert": "eventpoll_epi",
    "ext4_alloc_inode": "ext4_inode_cache",
    "getname_flags": "names_cache",
    "getname_kernel": "names_cache",
    "hostfs_alloc_inode": "hostfs_inode_info",
    "jbd2_journal_add_journal_head": "jbd2_journal_head",
    "kmalloc_reserve": "skbuff_small_head",
    "kmem_cache_create_usercopy": "kmem_cache",
    "mas_alloc_nodes": "maple_node",
    "mas_dup_build": "maple_node",
    "mempool_alloc_slab": "bio-{} biovec-16 biovec-64 biovec-128 biovec-max",
    "mm_alloc": "mm_struct",
    "mqueue_alloc_inode": "mqueue_inode_cache",
    "prepare_creds": "cred_jar",
    "proc_alloc_inode": "proc_inode_cache",
    "proc_reg_open": "pde_opener",
    "radix_tree_node_alloc": "radix_tree_node",
    "seq_open": "seq_file",
    "shmem_alloc_inode": "shmem_inode_cache",
    "sk_prot_alloc": "PING PINGv6 RAW RAWv6 TCP TCPv6 UDP UDPv6 UNIX",
    "skb_clone": "skbuff_head_cache",
    "sock_alloc_inode": "sock_inode_cache",
    "tracefs_alloc_inode": "tracefs_inode_cache",
    "vm_area_alloc": "vm_area_struct",
    "vm_area_dup": "vm_area_struct",
    "xas_alloc": "radix_tree_node",
}


def names_by_function(call_site: str, size: int) -> list[str]:
    """The caches that the function of a call site allocates objects of `size` bytes from; none where the table lacks it.

    Compilers add suffixes to a function's name, as in f.constprop.0+0x40.
    """
    return FUNCTIONS.get(call_site.partition("+")[0].partition(".")[0], "").format(size).split()


def _request(cache: Cache, call_sites: list[str]) -> Request:
    """By the cache's name, else by the first of its functions that allocates from one cache alone."""
    by_function = (names for site in call_sites if len(names := names_by_function(site, cache.object_size)) == 1)
    name = cache.name if cache.name in REQUESTS else next(by_function, [""])[0]
    return REQUESTS.get("bio-" if cache.name.startswith("bio-") else name, {})


def fill_in(cache: Cache, call_sites: list[str], alignment: int, copies_checked: bool = True) -> None:
    """Gives a cache whose attributes the capture does not have those of this table.

    call_sites: where it is allocated from. alignment: what the addresses of its objects prove, in bytes; 0: nothing. copies_checked: as
    far as is known.
    """
    if match := KMALLOC.match(cache.name):
        cache.object_size = class_of(cache.name)
        cache.reclaimable, cache.account, cache.dma = match["kind"] == "rcl", match["kind"] == "cg", bool(match["dma"])
        return
    for name, value in _request(cache, call_sites).items():
        if name == COPIED:
            cache.no_merge = copies_checked
        else:
            setattr(cache, name, value)
    cache.align = max(cache.align, alignment)
    # What is left between objects beyond a word for the free pointer is there for their alignment.
    if not cache.align and (cache.slab_size or 0) % CACHE_LINE == 0 and (cache.slab_size or 0) - cache.object_size >= 2 * WORD:
        cache.hwcache_align = True
