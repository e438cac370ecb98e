/* Room for what caches keep of every slot, in heaps of threads. See slot_areas.c. */
#ifndef SY_SLOT_AREAS_H
#define SY_SLOT_AREAS_H

#include "../types.h"

/* Cache lines of every slot that a cache may have at most, one after the other. */
#define SY__MOST_LINES (SY_SLOT_STRIDE / SY_CACHE_LINE)

/* So many bytes for each slot of a heap of threads, zero, each slot's on cache lines of its own: those of slot 0. The others' are
 * SY_SLOT_STRIDE bytes apart, the dummy's first, in front of it. NULL: no memory. Called with no lock of levels 3 to 6 held. */
void *sy__slot_areas_take(struct sy_heap *, size_t bytes);

/* Gives them back, of a cache that nobody uses any more; with the same size. */
void sy__slot_areas_give(struct sy_heap *, void *of_slot_0, size_t bytes);

/* For heap.c: of a heap that ends. */
void sy__slot_areas_fini(struct sy_heap *);

#endif
