/*
 * Large allocations: requests that no class or pool serves, which go straight to pages.
 *
 * A request takes whole pages of the smallest sufficient order. The descriptor of their first page says so (SY_USE_LARGE) and
 * how many bytes were asked for, hence kfree needs no other record.
 *
 * Where the heap asks for exact runs (sy_sizing.exact_runs) what the request leaves of a block of more than 64 KiB goes back at
 * once, in steps of a sixty-fourth of it; of smaller blocks it is untouched memory mostly, and to cut and join them costs more
 * than the rest of the request. Or the run comes from where it fits best (core/backend/best_fit.c). It is then a row of blocks, each a
 * large allocation of its own to the page allocator; the first one's descriptor says how many pages the row has, and how many
 * bytes were asked for; the others' say 0.
 *
 * In heaps of threads each slot keeps the last few runs that were freed on it whole, for requests to come (run_cache.c). Such a run
 * is a large allocation of 0 bytes, which no other is. Who frees one twice is told by that, and nothing is done.
 *
 * A run that nobody writes takes more than one that is written: its descriptors, a sixty-fourth of it, and pages that it leaves
 * in memory wherever a buffer began or ended, of which nobody knows. So who serves what a heap refuses is told of runs that
 * come from the free lists and go back there (sy_heap.comes, leaves), and may have the larger requests for himself
 * (sy_heap.mmap_threshold).
 *
 * Bytes that live are counted by the heap, or by each slot of a heap of threads, so that to count takes no atomic operation.
 */
#include "large.h"

#include "../geometry.h"
#include "../ticks.h"
#include "run_cache.h"

#define WHOLE_ORDER 4u /* blocks up to which are not cut */
#define STEPS_ORDER 6u /* larger ones are cut into 2^this at most */

/* State of the first block of a run. */
struct run {
	void *none;     /* a kernel keeps a bit of its own in the first word, and wants it clear */
	uint32_t pages; /* that the row of blocks has */
};
SY_ASSERT_SLAB_STATE(struct run, none);

static uint32_t run_pages(const struct sy_page *head)
{
	return SY_SLAB_STATE(const struct run, head)->pages;
}

static bool too_large(const struct sy_heap *heap, size_t size)
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

/* ---- What a slot keeps -------------------------------------------------------------------------------------------- */

/* In a call of the slot whose account it is. Relaxed: read by anyone, and orders nothing. */
static inline void count_here(struct sy__run_cache *own, size_t bytes)
{
	__atomic_store_n(&own->live, own->live + bytes, __ATOMIC_RELAXED);
}

void *sy__large_again(struct sy_heap *heap, struct sy__run_cache *own, size_t size)
{
	struct sy_page *page;

	if (sy__unlikely(too_large(heap, size)))
		return NULL;
	page = sy__run_cache_take(heap, own, pages_kept(heap, size, sy__order_of(size)));
	if (sy__unlikely(!page))
		return NULL;
	count_here(own, size);
	sy__page_set_bytes(page, size);
	return heap->run_cache_memory + ((size_t)(page - heap->run_cache_table) << SY_PAGE_SHIFT);
}

/* Freed already, and kept. */
static inline bool is_kept(const struct sy_page *head)
{
	return !sy__page_bytes(head);
}

static inline void keep(struct sy_heap *heap, struct sy__run_cache *own, unsigned place, struct sy_page *head)
{
	count_here(own, (size_t)0 - (size_t)sy__page_bytes(head));
	sy__page_set_bytes(head, 0);
	sy__run_cache_put(heap, own, place, head, run_pages(head));
}

bool sy__large_keep(struct sy_heap *heap, struct sy__run_cache *own, struct sy_page *head)
{
	unsigned place = sy__run_cache_place(own, run_pages(head));

	if (sy__unlikely(is_kept(head)))
		return true;
	if (sy__unlikely(place == SY__RUN_CACHE_RUNS || !heap->run_cache_near || !sy__run_cache_serve(own)))
		return false;
	keep(heap, own, place, head);
	return true;
}

/* ---- Slow calls --------------------------------------------------------------------------------------------------- */

/* Slot 0 of a heap of threads is nobody's: any thread may free on it, as grace periods end. */
static void count(struct sy_heap *heap, unsigned slot, size_t bytes)
{
	if (heap->run_cache && slot)
		count_here(sy__run_cache_of(heap, slot), bytes);
	else if (heap->run_cache)
		__atomic_fetch_add(&sy__run_cache_of(heap, slot)->live, bytes, __ATOMIC_RELAXED);
	else
		__atomic_fetch_add(&heap->counters.large_live_bytes, bytes, __ATOMIC_RELAXED);
}

/* One that the slot keeps, unless the request wants more of its pages than that there are so many. */
static struct sy_page *kept_run(struct sy_heap *heap, unsigned slot, uint32_t pages, unsigned flags, int node)
{
	if (!heap->run_cache || node >= 0 || flags & (SY_DMA | SY_DMA32 | SY_RECLAIMABLE))
		return NULL;
	return sy__run_cache_take(heap, sy__run_cache_of(heap, slot), pages);
}

static struct sy_page *new_run(struct sy_heap *heap, unsigned slot, unsigned order, uint32_t pages, unsigned flags, int node)
{
	struct sy_page *page = sy__pages_take_run(heap, slot, order, pages, flags & ~(unsigned)SY_MOVABLE, node, SY_USE_LARGE);

	if (!page)
		return NULL;
	SY_SLAB_STATE(struct run, page)->pages = pages;
	if (heap->comes)
		heap->comes(heap, sy__page_address(heap, page), (size_t)pages << SY_PAGE_SHIFT);
	return page;
}

/* Relaxed: a preference. */
static bool is_beyond_threshold(const struct sy_heap *heap, size_t size)
{
	size_t elsewhere = __atomic_load_n(&heap->mmap_threshold, __ATOMIC_RELAXED);

	return sy__unlikely(elsewhere) && size > elsewhere;
}

void *sy__large_alloc(struct sy_heap *heap, unsigned slot, size_t size, unsigned flags, int node)
{
	unsigned order = sy__order_of(size);
	struct sy_page *page;
	uint32_t pages;

	if (too_large(heap, size))
		return NULL;
	pages = pages_kept(heap, size, order);
	page = kept_run(heap, slot, pages, flags, node);
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

uint64_t sy__large_end(struct sy_heap *heap, unsigned slot, struct sy_page *head)
{
	uint32_t pages = run_pages(head);
	struct sy_page *next;

	if (heap->leaves)
		heap->leaves(heap, sy__page_address(heap, head), (size_t)pages << SY_PAGE_SHIFT);
	for (struct sy_page *end = head + pages; head < end; head = next) {
		next = head + ((size_t)1 << sy__page_order(head));
		sy__pages_give(heap, slot, head);
	}
	return pages;
}

void sy__large_give(struct sy_heap *heap, unsigned slot, struct sy_page *head)
{
	count(heap, slot, (size_t)0 - (size_t)sy__page_bytes(head));
	sy__large_end(heap, slot, head);
}

void sy__large_free(struct sy_heap *heap, unsigned slot, struct sy_page *head)
{
	unsigned place = SY__RUN_CACHE_RUNS;

	if (heap->run_cache && is_kept(head))
		return;
	if (heap->threads)
		sy__tick_sooner(run_pages(head));
	if (heap->run_cache && heap->run_cache_near && slot)
		place = sy__run_cache_make_room(heap, slot, run_pages(head));
	if (place != SY__RUN_CACHE_RUNS)
		keep(heap, sy__run_cache_of(heap, slot), place, head);
	else
		sy__large_give(heap, slot, head);
}

size_t sy__large_live(const struct sy_heap *heap)
{
	return heap->run_cache ? sy__run_cache_live(heap) : __atomic_load_n(&heap->counters.large_live_bytes, __ATOMIC_RELAXED);
}

size_t sy__large_usable(const struct sy_page *head)
{
	return (size_t)run_pages(head) << SY_PAGE_SHIFT;
}
