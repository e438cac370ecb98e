/*
 * A page allocator as programs have it: Linux's (core/pages/), with what core/backend/ adds by its hooks.
 *
 *   decay.c          memory that is free goes back to the system after a while
 *   best_fit.c       large runs go where they fit best, by
 *   free_page_map.c  a map of free pages
 *   huge_pages.c     dense heaps grow by the machine's large pages
 *   reservation.c    the reserved addresses end earlier, or reach further again
 *
 * What a replay needs of pages stands here too, by functions of slabyard.h and lab.h:
 *
 *   populate.c       a zone starts in the state that a kernel reported
 *   older.c          pages that were in use then are freed
 *   place.c          requests get the blocks that a kernel gave them
 *
 * What hooks add is for heaps of threads. Replays have these hooks too, and none does anything: their page allocators have no decay
 * and do not ask for memory as they grow (sy_pages_config).
 *
 * The rest of core/backend/ stands on the page interface alone, hence serves in kernels as well: large allocations (large.c) and
 * the runs that slots keep of them (run_cache.c), which block a page is of (page_map.c), state of each slot (slot_areas.c), and a
 * heap's own bookkeeping (metadata.c).
 */
#include "best_fit.h"
#include "decay.h"
#include "free_page_map.h"
#include "huge_pages.h"

static const struct sy__pages_hooks hooks = {
	.free_changed = sy__free_page_map_note,
	.grown = sy__free_page_map_grown,
	.agrees = sy__free_page_map_agrees,
	.prefer_huge = sy__huge_pages_prefer,
	.take_run = sy__best_fit_take,
	.decay = sy__pages_decay,
	.await = sy__decay_await,
};

struct sy_pages *sy_pages_create(const struct sy_pages_config *config)
{
	return sy__pages_create(config, &hooks);
}
