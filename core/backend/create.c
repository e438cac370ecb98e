/*
 * The page allocator of programs: Linux's (core/pages/), extended by hooks.
 *
 *   decay.c          returns free memory to the system after a while
 *   best_fit.c       places large runs by best fit
 *   free_page_map.c  keeps the map of free pages for that
 *   huge_pages.c     lets dense heaps grow by the machine's huge pages
 *   reservation.c    shortens and extends the reserved address range
 *
 * Replays need three more files, through functions of slabyard.h and of the laboratory (library/lab/replay.h):
 *
 *   populate.c       starts a zone in the state that a kernel reported
 *   pretrace.c       frees pages that were in use before the trace began
 *   place.c          gives requests the blocks that a kernel gave them
 *
 * The hooks act in heaps of threads only. Replays have them too, but their page allocators neither decay nor commit memory when
 * they grow (sy_pages_config), so the hooks do nothing there.
 *
 * The rest of core/backend/ uses the page interface alone, so kernels use it as well: large allocations (large.c) and the slots'
 * caches of runs (run_cache.c), the page map (page_map.c), per-slot areas (slot_areas.c) and heap metadata (metadata.c).
 */
#include "backend.h"
#include "best_fit.h"
#include "decay.h"
#include "free_page_map.h"
#include "huge_pages.h"
#include "pretrace.h"

#define LEAST_PART 4u

/* Only what has memory may grow: each later request would find the block first, and fail. Where the system refuses the rest of a maximal
 * block, as under a limit to the program's data, growth is by about as much as the block has already. The program may need the rest. */
static uint64_t may_grow(struct sy_pages *pages, uint64_t number, unsigned least)
{
	uint64_t within = number & (SY__MAX_BLOCK - 1), rest = SY__MAX_BLOCK - within, count;
	unsigned lowest = least > LEAST_PART ? least : LEAST_PART, order = within ? (unsigned)__builtin_ctzll(within) : lowest;

	if (pages->zones[0].told && !sy__free_page_map_cover(pages, number + rest))
		return 0;
	if (!sy__backend_of(pages)->commits_growth || (within ? sy__commit_part(pages, number, rest) : sy__commit_memory(pages, number)))
		return rest;
	for (order = order > lowest ? order : lowest; order >= lowest; order--) {
		count = (-within & (((uint64_t)1 << order) - 1)) + ((uint64_t)1 << order);
		if (count < rest && sy__commit_part(pages, number, count))
			return count;
	}
	return 0;
}

static const struct sy__pages_hooks hooks = {
	.free_changed = sy__free_page_map_note,
	.freed = sy__best_fit_freed,
	.may_grow = may_grow,
	.grown = sy__free_page_map_grown,
	.agrees = sy__free_page_map_agrees,
	.checks = sy__pretrace_check,
	.prefer_huge = sy__huge_pages_prefer,
	.taken = sy__decay_taken,
	.given = sy__decay_given,
	.await = sy__decay_await,
	.take_run = sy__best_fit_take,
};

struct sy_pages *sy_pages_create(const struct sy_pages_config *config)
{
	struct sy_pages *pages = sy__pages_create(config, &hooks);

	if (!pages)
		return NULL;
	sy__backend_of(pages)->commits_growth = config->commit_growth;
	sy__backend_of(pages)->mapped = config->commit_growth && !config->buffer ? 0 : pages->block_count << SY_MAX_ORDER;
	sy__backend_of(pages)->huge_from = config->commit_growth && !config->buffer && !config->huge_pages ? HUGE_FROM : SIZE_MAX;
	sy__backend_of(pages)->decay.time = config->decay_ns;
	pages->ages = config->decay_ns;
	sy__time_set(&pages->clock, pages->ages ? sy__now() : 0);
	return pages;
}
