/* Large allocations, which go straight to pages. See large.c. */
#ifndef SY_LARGE_H
#define SY_LARGE_H

#include "../types.h"

struct sy__run_cache;

/* Whether no block is large enough for a request, or the heap is not to serve it. */
bool sy__large_refuses(const struct sy_heap *, size_t size);

/* Allocates any size above 0; NULL: no memory, or the size exceeds the largest block. And frees what
 * is in the block of pages of this head, but in no slab. */
void *sy__large_alloc(struct sy_heap *, unsigned slot, size_t size, unsigned flags, int node);
void sy__large_free(struct sy_heap *, unsigned slot, struct sy_page *head, const void *object);

/* Whether an address in a block of pages is that of a large allocation in use. */
bool sy__large_in_use(const struct sy_heap *, const struct sy_page *head, const void *object);

/* In heaps of threads, within any call of the slot: allocates what is not refused from the slot's run cache alone, and frees to
 * it. NULL, false: the cache can't serve. */
void *sy__large_alloc_cached(struct sy_heap *, struct sy__run_cache *own, size_t size);
bool sy__large_free_cached(struct sy_heap *, struct sy__run_cache *own, struct sy_page *head, const void *object);

/* Bytes of a large allocation that its client may write. */
size_t sy__large_usable(const struct sy_page *head);

/* Bytes asked for in all live large allocations. */
size_t sy__large_live(const struct sy_heap *);

/* Gives the pages of a run back that no client has; how many. */
uint64_t sy__large_release(struct sy_heap *, unsigned slot, struct sy_page *head);

#endif
