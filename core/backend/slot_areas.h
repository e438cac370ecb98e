/* Per-slot state of caches in heaps of threads. See slot_areas.c. */
#ifndef SY_SLOT_AREAS_H
#define SY_SLOT_AREAS_H

#include "../types.h"

/* Cache lines that a cache may have of every slot at most. */
#define SY__MOST_LINES (SY_SLOT_STRIDE / SY_CACHE_LINE)

/* Takes `bytes` of zeroed state for each slot, on cache lines of its own; returns that of slot 0. Other slots' follow at distances
 * of SY_SLOT_STRIDE bytes, and the dummy's stands in front. NULL: no memory. Called with no lock of levels 3 to 6 held. */
void *sy__slot_areas_take(struct sy_heap *, size_t bytes);

/* Gives the state of a cache that nobody uses any more back, with the size that it was taken with. */
void sy__slot_areas_give(struct sy_heap *, void *of_slot_0, size_t bytes);

/* Where slots have become fewer: areas are as short as that from now on. */
void sy__slot_areas_reduce(struct sy_heap *);

/* For slabyard-inspect: the pages of the area behind `area` (NULL: of the first one), the dummy's first; false: there is none. */
bool sy__slot_areas_next(const struct sy_heap *, const struct sy__slot_area **area, const char **pages);

/* For heap.c: releases all areas of a heap that ends. */
void sy__slot_areas_fini(struct sy_heap *);

#endif
