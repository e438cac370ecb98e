/* The mmap threshold: which large objects are mappings, by what is touched of them. See mmap_threshold.c. */
#ifndef SLABYARD_MALLOC_MMAP_THRESHOLD_H
#define SLABYARD_MALLOC_MMAP_THRESHOLD_H

#include <stdbool.h>
#include <stddef.h>

struct sy_heap;

/* Whether hardly a page of a range that has a bin is in memory, as far as is known; behind so many bytes nobody has
 * written. The threshold ends if that is often not so. */
bool sy__mmap_threshold_is_untouched(struct sy_heap *, const char *start, size_t used);

/* sy_heap.on_large_alloc and on_large_free: the threshold is set once large objects of a heap are found to be untouched. */
void sy__mmap_threshold_watch(struct sy_heap *, const void *pages, size_t bytes);
void sy__mmap_threshold_learn(struct sy_heap *, const void *pages, size_t bytes);

/* Whether it has ended: then what is touched is better had from the heap than kept. */
bool sy__mmap_threshold_was_mistaken(const struct sy_heap *);

/* Ends it: the heap serves large objects again; whether it didn't. */
bool sy__mmap_threshold_end(struct sy_heap *);

#endif
