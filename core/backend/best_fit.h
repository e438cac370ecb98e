/* Large runs of pages where they fit best. See best_fit.c. */
#ifndef SY_BEST_FIT_H
#define SY_BEST_FIT_H

#include "free_page_map.h"

_Static_assert(1u << SY__RUN_ORDER >= SY__FREE_PAGE_MAP_LEAST, "runs are found");

/* Whether large runs are placed where they fit best, as long as nothing else forbids it. */
static inline bool sy__runs_are_placed(const struct sy_pages *pages)
{
	return pages->commits_growth && pages->zone_count == 1 && !pages->zones[0].populated;
}

/* So many pages for that heap, as a row of blocks, where they fit best; NULL: better of a block. Takes the lock. */
struct sy_page *sy__best_fit_take(struct sy_heap *, unsigned slot, uint64_t count, unsigned flags, enum sy_page_use);

#endif
