/*
 * Included ahead of mm/slab_common.c.
 *
 * Flags of caches. With CONFIG_SLOB, 6.1 removes the flags that Linux's own SLOB does not know before the allocator sees them. The port
 * knows all that SLAB knows.
 *
 * Functions that are about the kernel's own caches. 6.12 defines them there for SLUB. They become weak, and ours count (adapter.c,
 * since.c).
 */
#ifndef SY_LINUX_SLAB_COMMON_H
#define SY_LINUX_SLAB_COMMON_H

#include <linux/mm.h>
#include <linux/slab.h>

#include "../../slab.h"

#ifdef CONFIG_SLOB
#undef SLAB_CACHE_FLAGS
#define SLAB_CACHE_FLAGS (SLAB_MEM_SPREAD | SLAB_NOLEAKTRACE | SLAB_RECLAIM_ACCOUNT | SLAB_TEMPORARY | SLAB_ACCOUNT)
#else
#pragma weak __ksize
#pragma weak kmalloc_size_roundup
#pragma weak kmem_buckets_create
#pragma weak slab_unmergeable
#endif

#endif
