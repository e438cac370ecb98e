/* The mmap threshold: which large objects are mappings, by how much of them is touched. See mmap_threshold.c. */
#ifndef SLABYARD_MALLOC_MMAP_THRESHOLD_H
#define SLABYARD_MALLOC_MMAP_THRESHOLD_H

#include <stdbool.h>
#include <stddef.h>

struct sy_heap;

/* Whether hardly a page of a range that has a bin is in memory, by a guess. The bytes behind its first `used` ones have not been written.
 * The threshold ends if ranges are often touched. */
bool sy__mmap_threshold_is_untouched(struct sy_heap *, const char *start, size_t used);

/* sy_heap.on_large_alloc and sy_heap.on_large_free: set the threshold once large objects of the heap are found to be untouched. */
void sy__mmap_threshold_watch(struct sy_heap *, const void *pages, size_t bytes);
void sy__mmap_threshold_learn(struct sy_heap *, const void *pages, size_t bytes);

/* Whether the threshold was set and has ended. Touched ranges are then better unmapped than cached, as the heap serves the next. */
bool sy__mmap_threshold_was_mistaken(const struct sy_heap *);

/* Ends the threshold, so that the heap serves large objects again. False: it was off. */
bool sy__mmap_threshold_end(struct sy_heap *);

#endif
