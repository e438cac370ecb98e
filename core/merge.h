/* Caches that share their slabs. See merge.c. */
#ifndef SY_MERGE_H
#define SY_MERGE_H

#include "types.h"

/* What differs between allocators and kernels. */
struct sy__merge_rules {
	uint32_t least_align;     /* bytes: of the cache that serves another */
	unsigned classes;         /* 0, or SY_CACHE_KMALLOC: the classes of kmalloc serve caches too */
	unsigned indifferent;     /* enum sy_cache_flags that make no difference, though pages are of another kind elsewhere */
};

/* Finds the first cache of the heap that can serve the wanted one too; or NULL. Of `wanted`, align and object_size are set, size is
 * not. Called with sy_heap.lock held. */
struct sy_cache *sy__merge_find(struct sy_heap *, const struct sy_cache *wanted, struct sy__merge_rules);

#endif
