/*
 * Included ahead of mm/slab_common.c: the flags that a cache keeps.
 *
 * With CONFIG_SLOB the kernel removes the flags that Linux's own SLOB does not know before the allocator sees them. The port knows
 * all that SLAB knows.
 */
#ifndef SY_LINUX_CACHE_FLAGS_H
#define SY_LINUX_CACHE_FLAGS_H

#include <linux/mm.h>
#include <linux/slab.h>

#include "../../slab.h"

#undef SLAB_CACHE_FLAGS
#define SLAB_CACHE_FLAGS (SLAB_MEM_SPREAD | SLAB_NOLEAKTRACE | SLAB_RECLAIM_ACCOUNT | SLAB_TEMPORARY | SLAB_ACCOUNT)

#endif
