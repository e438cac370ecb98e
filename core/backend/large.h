/* Allocations that go straight to pages, for policies that serve others from caches or pools. See large.c. */
#ifndef SY_LARGE_H
#define SY_LARGE_H

#include "../types.h"

struct sy__run_cache;

/* Any size above 0; NULL: no memory or beyond the largest block. */
void *sy__large_alloc(struct sy_heap *, unsigned slot, size_t size, unsigned flags, int node);
void sy__large_free(struct sy_heap *, unsigned slot, struct sy_page *head);

/* The same, where no slot is to keep it. */
void sy__large_give(struct sy_heap *, unsigned slot, struct sy_page *head);

/* In heaps of threads, within any call of the slot: the same by what the slot keeps alone (rows.h); NULL and false: it can't
 * be. */
void *sy__large_again(struct sy_heap *, struct sy__run_cache *own, size_t size);
bool sy__large_keep(struct sy_heap *, struct sy__run_cache *own, struct sy_page *head);

/* Bytes that may be written to one. */
size_t sy__large_usable(const struct sy_page *head);

/* Bytes asked for in all that live now. */
size_t sy__large_live(const struct sy_heap *);

/* Gives back the pages of one that a slot keeps; how many. */
uint64_t sy__large_end(struct sy_heap *, unsigned slot, struct sy_page *head);

#endif
