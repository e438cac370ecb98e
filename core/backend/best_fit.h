/* Large runs of pages where they fit best. See best_fit.c. */
#ifndef SY_BEST_FIT_H
#define SY_BEST_FIT_H

#include "backend.h"

/* The hook sy__pages_hooks.freed. */
void sy__best_fit_freed(struct sy__zone *, uint64_t number);

/* Takes a run of `count` pages for the heap. NULL: nothing fits, the buddy allocator must serve. Takes the
 * zone's lock. */
struct sy_page *sy__best_fit_take(struct sy_heap *, unsigned slot, uint64_t count, unsigned flags, enum sy_page_use);

#endif
