/* How a heap of sy_heap_open answers a request when it has no memory. See wait.c. */
#ifndef SY_WAIT_H
#define SY_WAIT_H

#include "core/this_slot.h"

/* For sy_heap.on_failure and on_cache_failure: waits if the flags have SY_KM_SLEEP, else NULL. */
void *sy__wait_kmalloc(size_t size, unsigned flags, struct sy_heap *heap);
void *sy__wait_cache_alloc(struct sy_cache *cache, unsigned flags);

#endif
