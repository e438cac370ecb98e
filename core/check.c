/*
 * The checks of a heap: its accounting, its caches, and what its policy and the layers below check themselves.
 *
 * All slots are stopped for it, so that nothing changes meanwhile (sy__slots_stop).
 */
#include "debug/debug.h"
#include "deferred.h"
#include "list.h"
#include "page_interface.h"
#include "this_slot.h"
#include "backend/large.h"
#include "backend/metadata.h"
#include "backend/run_cache.h"

struct sums {
	struct sy_heap *heap;
	uint64_t slab_pages, large_pages, metadata_pages, large_bytes;
	const char *wrong;
};

static bool sum_up(void *context, struct sy_page *head)
{
	struct sums *sums = context;
	uint64_t pages = (uint64_t)1 << sy__page_order(head);

	switch (sy__page_use(head)) {
	case SY_USE_SLAB:
		sums->slab_pages += pages;
		break;
	case SY_USE_LARGE:
		sums->large_pages += pages;
		sums->large_bytes += sy__page_bytes(head);
		if (sy__page_bytes(head) && sy__page_bytes(head) > sy__large_usable(head))
			sums->wrong = "heap: a large allocation is larger than its pages";
		break;
	case SY_USE_METADATA:
		sums->metadata_pages += pages;
		break;
	default:
		sums->wrong = "heap: owns a page that is no slab, large allocation or metadata";
	}
	for (uint64_t i = 0; i < pages; i++)
		if (sy__page_heap(head + i) != sums->heap || sy__page_head(head + i) != head)
			sums->wrong = "heap: a page of a block does not lead to its head";
	return !sums->wrong;
}

/* Whether all slots are stopped. Without membarrier (core/platform/stop.c) they may not be; fast calls of the other threads then
 * change counts of large allocations during a check. */
static bool all_stopped(const struct sy_heap *heap)
{
	for (unsigned slot = 0; heap->threads && slot < sy__slots_high(); slot++)
		if (!sy__slot_mine(slot))
			return false;
	return true;
}

static const char *check_accounting(struct sy_heap *heap)
{
	const struct sy_heap_counters *counters = &heap->counters;
	struct sums sums = { .heap = heap };

	sy__pages_walk(heap, sum_up, &sums);
	if (sums.wrong)
		return sums.wrong;
	if (sums.slab_pages != counters->slab_pages)
		return "heap: counted slab pages are not those that it holds";
	if (sums.large_pages != counters->large_pages)
		return "heap: counted large pages are not those that it holds";
	if (sums.metadata_pages != counters->metadata_pages)
		return "heap: counted metadata pages are not those that it holds";
	if (all_stopped(heap) && sums.large_bytes != sy__large_live(heap))
		return "heap: counted bytes of large allocations are not those that live";
	if (counters->held_peak < counters->slab_pages + counters->large_pages ||
	    counters->slab_pages_peak < counters->slab_pages)
		return "heap: a peak is below what is held now";
	return NULL;
}

static const char *check_caches(struct sy_heap *heap)
{
	for (struct sy_list *at = heap->caches.next; at != &heap->caches; at = at->next) {
		const struct sy_cache *cache = sy__entry(at, struct sy_cache, link);

		if (at->next->prev != at)
			return "heap: the list of caches is broken";
		if (cache->heap != heap || (cache->policy->check != heap->policy->check && !heap->debug))
			return "heap: a cache of another heap is in its list";
		if (!cache->users)
			return "heap: a cache has no user";
		if (!cache->align || (cache->align & (cache->align - 1)))
			return "heap: a cache's alignment is no power of two";
	}
	return NULL;
}

static const char *check(struct sy_heap *heap)
{
	const char *wrong = check_caches(heap);

	if (!wrong)
		wrong = check_accounting(heap);
	if (!wrong)
		wrong = sy__run_cache_check(heap);
	if (!wrong)
		wrong = sy__metadata_check(heap);
	if (!wrong)
		wrong = sy__deferred_check(heap);
	if (!wrong && heap->policy->check)
		wrong = heap->policy->check(heap);
	if (!wrong)
		wrong = sy__debug_verify(heap);
	return wrong;
}

const char *sy_heap_check(struct sy_heap *heap)
{
	const char *wrong;

	if (!sy__slots_stop(heap))
		return "heap: a check from inside a constructor or destructor";
	wrong = check(heap);
	sy__slots_resume(heap);
	return wrong;
}
