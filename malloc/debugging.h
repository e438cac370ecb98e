/* What debugging needs of malloc. See debugging.c. */
#ifndef SLABYARD_MALLOC_DEBUGGING_H
#define SLABYARD_MALLOC_DEBUGGING_H

#include "core/debug/debug.h"

/* Called once, when the heap is there. */
void sy__debugging_start(struct sy_heap *);

/* Tells the interface that an object is from. And, before a free by an interface other than free: false, if it was reported. Neither
 * does anything without debugging. size: that the caller gives; 0: none. by: SY__BY_ALIGNED. */
void sy__debugging_tag(void *object, unsigned by);
bool sy__debugging_expects(const void *object, size_t size, unsigned by);

/* An object that is a mapping. NULL: no memory. */
void *sy__debugging_map(struct sy_heap *, size_t align, size_t size, unsigned flags);

#endif
