/*
 * Ahead of mm/slab_common.c: the flags that a cache keeps.
 *
 * With CONFIG_SLOB the kernel strips a cache's flags down to what Linux's own SLOB understands before the allocator sees them.
 * The adapter understands all that SLAB does.
 */
#ifndef SY_LINUX_CACHE_FLAGS_H
#define SY_LINUX_CACHE_FLAGS_H

#include <linux/mm.h>
#include <linux/slab.h>

#include "../../slab.h"

#undef SLAB_CACHE_FLAGS
#define SLAB_CACHE_FLAGS (SLAB_MEM_SPREAD | SLAB_NOLEAKTRACE | SLAB_RECLAIM_ACCOUNT | SLAB_TEMPORARY | SLAB_ACCOUNT)

#endif
