/* Large runs of pages where they fit best. See best_fit.c. */
#ifndef SY_BEST_FIT_H
#define SY_BEST_FIT_H

#include "free_page_map.h"

_Static_assert(1u << SY__RUN_ORDER >= SY__FREE_PAGE_MAP_LEAST, "the map finds every run");

/* Whether the page allocator places large runs by best fit. */
static inline bool sy__best_fit_applies(const struct sy_pages *pages)
{
	return pages->commits_growth && pages->zone_count == 1 && !pages->zones[0].populated;
}

/* Takes a run of `count` pages for the heap, as a row of blocks. NULL: nothing fits, the buddy allocator must serve. Takes the
 * zone's lock. */
struct sy_page *sy__best_fit_take(struct sy_heap *, unsigned slot, uint64_t count, unsigned flags, enum sy_page_use);

#endif
