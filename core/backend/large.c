/*
 * Large allocations: requests beyond all size classes and pools. They go straight to pages.
 *
 * A request takes whole pages of the smallest sufficient order. The descriptor of the first page says so (SY_USE_LARGE) and holds
 * the bytes asked for, so kfree needs no other record.
 *
 * Exact runs. Where the heap wants them (sy_sizing.exact_runs), a request gives the unused end of its block back at once, in steps
 * of 1/64 of the block. Blocks up to 64 KiB stay whole: their end is mostly untouched memory, and cutting and joining would cost
 * more than the rest of the request. Or best fit places the run (best_fit.c). Either way the run is made of blocks side by side, each a large
 * allocation of its own to the page allocator. The first descriptor has the pages of the run and the bytes asked for; the other
 * descriptors have 0 bytes.
 *
 * Cached runs. In a heap of threads each slot keeps the runs that it freed last (run_cache.c), as large allocations of 0 bytes. No
 * other first block has 0 bytes, so a second free of the same run is noticed.
 *
 * The mmap threshold. A run that nobody writes costs more than its pages: descriptors take 1/64 of it, and the partly written pages
 * at the ends of buffers stay. malloc learns from sy_heap.on_large_alloc and on_large_free how programs use runs, and may then
 * serve larger requests itself, beyond sy_heap.mmap_threshold.
 *
 * Bytes in use are counted by the heap; in a heap of threads by each slot, so that counting takes no atomic operation.
 */
#include "large.h"

#include "../bug.h"
#include "../geometry.h"
#include "../ticks.h"
#include "run_cache.h"

#define WHOLE_ORDER 4u /* blocks up to this order are not cut */
#define STEPS_ORDER 6u /* larger ones are cut in steps of 1/2^this */

bool sy__large_refuses(const struct sy_heap *heap, size_t size)
{
	return size > SY_PAGE_SIZE << SY_MAX_ORDER || (heap->sizing.most && size > heap->sizing.most);
}

/* Pages that a request keeps of its block. */
static uint32_t pages_kept(const struct sy_heap *heap, size_t size, unsigned order)
{
	if (!heap->sizing.exact_runs || order <= WHOLE_ORDER)
		return 1u << order;
	return (uint32_t)(sy__align_up(size, SY_PAGE_SIZE << (order > STEPS_ORDER ? order - STEPS_ORDER : 0)) >> SY_PAGE_SHIFT);
}

/* ---- Cached runs -------------------------------------------------------------------------------------------------- */

/* In a call of the slot that owns the counter. Relaxed: anyone may read it, and it orders nothing. */
static inline void count_in_slot(struct sy__run_cache *own, size_t bytes)
{
	__atomic_store_n(&own->live, own->live + bytes, __ATOMIC_RELAXED);
}

void *sy__large_alloc_cached(struct sy_heap *heap, struct sy__run_cache *own, size_t size)
{
	struct sy_page *page = sy__run_cache_take(heap, own, pages_kept(heap, size, sy__order_of(size)));

	if (sy__unlikely(!page))
		return NULL;
	count_in_slot(own, size);
	sy__page_set_bytes(page, size);
	return heap->run_cache_memory + ((size_t)(page - heap->run_cache_table) << SY_PAGE_SHIFT);
}

/* Whether the run is free already, in some slot's cache. */
static inline bool is_cached(const struct sy_page *head)
{
	return !sy__page_bytes(head);
}

static inline void cache_run(struct sy_heap *heap, struct sy__run_cache *own, unsigned place, struct sy_page *head)
{
	count_in_slot(own, (size_t)0 - (size_t)sy__page_bytes(head));
	sy__page_set_bytes(head, 0);
	sy__run_cache_put(heap, own, place, head, sy__run_pages(head));
}

bool sy__large_in_use(const struct sy_heap *heap, const struct sy_page *head, const void *object)
{
	return sy__page_is_large(head) && sy__page_head((struct sy_page *)head) == head && sy__run_pages(head) && !is_cached(head) &&
	       sy__page_address(heap, head) == object;
}

bool sy__large_free_cached(struct sy_heap *heap, struct sy__run_cache *own, struct sy_page *head, const void *object)
{
	unsigned place;

	if (sy__unlikely(!sy__large_in_use(heap, head, object)))
		return false;
	place = sy__run_cache_place(own, sy__run_pages(head));
	if (sy__unlikely(place == SY__RUN_CACHE_RUNS || !heap->run_cache_enabled || !sy__run_cache_serves(own)))
		return false;
	cache_run(heap, own, place, head);
	return true;
}

/* ---- Slow calls --------------------------------------------------------------------------------------------------- */

/* Slot 0 of a heap of threads has no owner. Any thread may free on it when a grace period ends, so its counter is atomic. */
static void count(struct sy_heap *heap, unsigned slot, size_t bytes)
{
	if (heap->run_cache && slot)
		count_in_slot(sy__run_cache_of(heap, slot), bytes);
	else if (heap->run_cache)
		__atomic_fetch_add(&sy__run_cache_of(heap, slot)->live, bytes, __ATOMIC_RELAXED);
	else
		__atomic_fetch_add(&heap->counters.large_live_bytes, bytes, __ATOMIC_RELAXED);
}

/* A run from the slot's cache, unless the request asks for a certain node or kind of memory; or NULL. */
static struct sy_page *cached_run(struct sy_heap *heap, unsigned slot, uint32_t pages, unsigned flags, int node)
{
	if (!heap->run_cache || node >= 0 || flags & (SY_DMA | SY_DMA32 | SY_RECLAIMABLE))
		return NULL;
	return sy__run_cache_take(heap, sy__run_cache_of(heap, slot), pages);
}

/* A run of new pages; NULL: no memory. */
static struct sy_page *new_run(struct sy_heap *heap, unsigned slot, unsigned order, uint32_t pages, unsigned flags, int node)
{
	struct sy_page *page = sy__pages_take_run(heap, slot, order, pages, flags & ~(unsigned)SY_MOVABLE, node, SY_USE_LARGE);

	if (!page)
		return NULL;
	SY_SLAB_STATE(struct sy__run, page)->pages = pages;
	if (heap->on_large_alloc)
		heap->on_large_alloc(heap, sy__page_address(heap, page), (size_t)pages << SY_PAGE_SHIFT);
	if (heap->policy->large_taken && sy__unlikely(!heap->policy->large_taken(heap, page))) {
		sy__large_release(heap, slot, page);
		return NULL;
	}
	return page;
}

/* Relaxed: the threshold is a preference. */
static bool is_beyond_threshold(const struct sy_heap *heap, size_t size)
{
	size_t threshold = __atomic_load_n(&heap->mmap_threshold, __ATOMIC_RELAXED);

	return sy__unlikely(threshold) && size > threshold;
}

void *sy__large_alloc(struct sy_heap *heap, unsigned slot, size_t size, unsigned flags, int node)
{
	unsigned order = sy__order_of(size);
	struct sy_page *page;
	uint32_t pages;

	if (sy__large_refuses(heap, size))
		return NULL;
	pages = pages_kept(heap, size, order);
	page = cached_run(heap, slot, pages, flags, node);
	if (page && flags & SY_ZERO)
		sy__fill(sy__page_address(heap, page), 0, sy__large_usable(page));
	if (!page && !is_beyond_threshold(heap, size))
		page = new_run(heap, slot, order, pages, flags, node);
	if (!page)
		return NULL;
	count(heap, slot, size);
	sy__page_set_bytes(page, size);
	return sy__page_address(heap, page);
}

uint64_t sy__large_release(struct sy_heap *heap, unsigned slot, struct sy_page *head)
{
	uint32_t pages = sy__run_pages(head);
	struct sy_page *next;

	if (heap->on_large_free)
		heap->on_large_free(heap, sy__page_address(heap, head), (size_t)pages << SY_PAGE_SHIFT);
	for (struct sy_page *end = head + pages; head < end; head = next) {
		next = head + ((size_t)1 << sy__page_order(head));
		sy__pages_give(heap, slot, head);
	}
	return pages;
}

void sy__large_free(struct sy_heap *heap, unsigned slot, struct sy_page *head, const void *object)
{
	unsigned place = SY__RUN_CACHE_RUNS;

	if (sy__unlikely(!sy__large_in_use(heap, head, object))) {
		sy__bug_free(heap, object);
		return;
	}
	if (heap->threads)
		sy__tick_advance(sy__run_pages(head));
	if (heap->run_cache && heap->run_cache_enabled && slot)
		place = sy__run_cache_make_room(heap, slot, sy__run_pages(head));
	if (place != SY__RUN_CACHE_RUNS) {
		cache_run(heap, sy__run_cache_of(heap, slot), place, head);
		return;
	}
	count(heap, slot, (size_t)0 - (size_t)sy__page_bytes(head));
	sy__large_release(heap, slot, head);
}

size_t sy__large_live(const struct sy_heap *heap)
{
	return heap->run_cache ? sy__run_cache_live(heap) : __atomic_load_n(&heap->counters.large_live_bytes, __ATOMIC_RELAXED);
}

size_t sy__large_usable(const struct sy_page *head)
{
	return (size_t)sy__run_pages(head) << SY_PAGE_SHIFT;
}
