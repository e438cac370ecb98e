/* Memory for a heap's own bookkeeping: caches, per-slot and per-node state. See metadata.c. */
#ifndef SY_METADATA_H
#define SY_METADATA_H

#include "../types.h"

void sy__metadata_init(struct sy_heap *);

/* Gives every page back, and so ends all blocks. */
void sy__metadata_fini(struct sy_heap *);

/* Zeroed memory, aligned to the cache line (from a page on: to the page); NULL when there is none. Called with
 * no lock held, as it may take pages. */
void *sy__metadata_take(struct sy_heap *, size_t bytes);

/* The same without reclaim: no heap is asked to give memory back. For what the caller can do without. Locks of levels 1 and 2 may
 * be held. */
void *sy__metadata_try(struct sy_heap *, size_t bytes);

/* Gives back a block, with the size that it was taken with. NULL does nothing. Called with no lock of levels 3
 * to 6 held. */
void sy__metadata_give(struct sy_heap *, void *block, size_t bytes);

/* Gives back the pages without a block in use. Called with no lock of levels 3 to 6 held. */
void sy__metadata_trim(struct sy_heap *);

/* NULL, or which invariant does not hold. */
const char *sy__metadata_check(struct sy_heap *);

#endif
