/* Caches that share their slabs. See merge.c. */
#ifndef SY_MERGE_H
#define SY_MERGE_H

#include "types.h"

/* Finds the first cache of the heap that can serve the wanted one too, with objects aligned to at least least_align; or NULL.
 * Of `wanted`, align and object_size are set, size is not. Called with sy_heap.lock held. */
struct sy_cache *sy__merge_find(struct sy_heap *, const struct sy_cache *wanted, uint32_t least_align);

#endif
