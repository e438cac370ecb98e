/*
 * The run cache: each slot of a heap of threads keeps the runs of pages that it freed last, whole, for its next requests.
 *
 * Why. A large allocation is a run of blocks (large.c). A free joins each block with its buddies; the next request searches and
 * halves blocks and writes all descriptors: hundreds of instructions for a buffer that most programs want again at once, in the
 * same or a similar size. So each slot keeps the last SY__RUN_CACHE_RUNS runs as they are, descriptors included. A cached run is a
 * large allocation of 0 bytes; no run in use has 0 bytes.
 *
 * Choice. The smallest sufficient run serves, if at most 1/8 of the request is in excess. A request for a power of two of pages may
 * rely on alignment and takes only a run of exactly that size, which is one block. Heaps with several nodes cache nothing.
 *
 * Limit. A slot caches at most as many pages as the largest block has, and evicts the oldest run for a new one. The cache seldom
 * makes a heap larger, because a request that would make the heap grow first flushes it:
 *   - best fit flushes all caches and searches again before it places a run where memory is missing (best_fit.c);
 *   - a request that got pages without memory flushes them too (sy__run_cache_before_growth), so at most one request grows
 *     the heap while runs lie here.
 *
 * Evictions. In a program whose sizes always differ, cached runs never serve. They only delay the reuse of warm memory and the
 * joining of neighbours. So after SY__RUN_CACHE_EVICTIONS evictions without a hit a slot caches nothing, and tries again later.
 *
 * Retained empty slabs. A policy's slots may retain empty slabs for a size that needs them again and again. Before the heap grows,
 * those of the requesting slot go back too.
 *
 * Ageing. The clock (core/this_slot.c) flushes all caches every RUN_CACHE_PERIOD, so that unused runs reach the free lists, and from
 * there the system (decay.c). So do shrink, trim, memory pressure and the end of a slot. Counters and walks show cached pages as
 * held, without an object.
 *
 * Concurrency. Only its owner puts runs into a slot's cache, and records where. Any thread may take a run out, by exchanging its word
 * for 0, even while the owner is at work. The owner takes runs out the same way, and learns from a 0 that another thread has. So
 * flushing needs no stop. A word changes from 0 to a run by the owner's store alone, after the owner saw 0.
 *
 * Memory order. The store of a word releases and the exchange acquires: a thread that takes a run sees its descriptors, and sees the freed
 * memory after its last use. run_cache_filled is a relaxed hint. A put may find it set while a flush is clearing it; that run then
 * stays in the cache unannounced until the clock, which flushes without asking, finds it.
 */
#include "run_cache.h"

#include "slot_areas.h"

bool sy__run_cache_create(struct sy_heap *heap)
{
	const struct sy_pages_base *base = (const struct sy_pages_base *)(const void *)heap->pages;

	heap->run_cache_memory = base->memory;
	heap->run_cache_table = base->table;
	heap->run_cache_enabled = heap->nodes == 1 && base->page_count < UINT32_MAX;
	heap->run_cache = sy__slot_areas_take(heap, sizeof(struct sy__run_cache));
	return heap->run_cache != NULL;
}

/* ---- Giving back -------------------------------------------------------------------------------------------------- */

static uint64_t flush_one(struct sy_heap *heap, unsigned slot, struct sy__run_cache *cache, unsigned place)
{
	uint32_t number = __atomic_load_n(&cache->first[place], __ATOMIC_RELAXED) ? sy__run_cache_take_out(cache, place) : 0;

	return number ? heap->hooks->release_run(heap, slot, sy__run_cache_page(heap, number)) : 0;
}

/* Forgets the runs that others have taken. */
static void forget_taken(struct sy__run_cache *own)
{
	for (unsigned place = 0; place < SY__RUN_CACHE_RUNS; place++)
		if (!__atomic_load_n(&own->first[place], __ATOMIC_RELAXED))
			sy__run_cache_forget(own, place);
}

unsigned sy__run_cache_make_room(struct sy_heap *heap, unsigned slot, uint32_t pages)
{
	struct sy__run_cache *own = sy__run_cache_of(heap, slot);
	unsigned place;

	if (!sy__run_cache_serves(own)) {
		sy__run_cache_flush_slot(heap, slot);
		own->evictions++;
		return SY__RUN_CACHE_RUNS;
	}
	forget_taken(own);
	while ((place = sy__run_cache_place(own, pages)) == SY__RUN_CACHE_RUNS) {
		if (flush_one(heap, slot, own, own->oldest))
			own->evictions++;
		sy__run_cache_forget(own, own->oldest);
		own->oldest = (uint16_t)((own->oldest + 1u) % SY__RUN_CACHE_RUNS);
	}
	return place;
}

void sy__run_cache_flush_slot(struct sy_heap *heap, unsigned slot)
{
	struct sy__run_cache *own = sy__run_cache_of(heap, slot);

	for (unsigned place = 0; place < SY__RUN_CACHE_RUNS; place++) {
		flush_one(heap, slot, own, place);
		sy__run_cache_forget(own, place);
	}
}

uint64_t sy__run_cache_flush(struct sy_heap *heap)
{
	uint64_t pages = 0;

	__atomic_store_n(&heap->run_cache_filled, false, __ATOMIC_RELAXED);
	for (unsigned slot = 0; slot < sy__slots_high(); slot++)
		for (unsigned place = 0; place < SY__RUN_CACHE_RUNS; place++)
			pages += flush_one(heap, slot, sy__run_cache_of(heap, slot), place);
	return pages;
}

void sy__retained_release(struct sy_heap *heap, unsigned slot)
{
	sy__run_cache_of(heap, slot)->retains = false;
	heap->policy->release_retained(heap, slot);
}

bool sy__run_cache_before_growth(struct sy_heap *heap, unsigned slot, unsigned tries)
{
	if (!tries && sy__retained_any(heap, slot) && sy__retained_wanted(heap, (ptrdiff_t)(slot * SY_SLOT_STRIDE)))
		return true;
	if (tries)
		sy__retained_failed(heap, slot);
	if (sy__run_cache_any(heap))
		sy__run_cache_flush(heap);
	return false;
}

/* ---- Counts and checks ------------------------------------------------------------------------------------------------ */

/* Exact while no thread works. Otherwise the sum may miss an allocation whose free it counts, and wrap below 0. */
size_t sy__run_cache_live(const struct sy_heap *heap)
{
	size_t live = 0;

	for (unsigned slot = 0; slot < sy__slots_high(); slot++)
		live += __atomic_load_n(&sy__run_cache_of(heap, slot)->live, __ATOMIC_RELAXED);
	return live > SIZE_MAX / 2 ? 0 : live;
}

static bool is_cached(struct sy_heap *heap, uint32_t number, uint32_t pages)
{
	struct sy_page *page = sy__run_cache_page(heap, number);

	return sy__page_is_large(page) && sy__page_heap(page) == heap && !sy__page_bytes(page) && sy__run_pages(page) == pages;
}

static const char *check_slot(struct sy_heap *heap, const struct sy__run_cache *cache)
{
	uint32_t sum = 0;

	for (unsigned place = 0; place < SY__RUN_CACHE_RUNS; place++) {
		uint32_t number = __atomic_load_n(&cache->first[place], __ATOMIC_RELAXED);

		sum += cache->pages[place];
		if (number && !is_cached(heap, number, cache->pages[place]))
			return "heap: an entry of a run cache is no run, or a run in use or of another size";
	}
	return sum == cache->sum && sum <= SY__RUN_CACHE_MOST_PAGES ? NULL : "heap: a run cache has more pages than it may, or miscounts them";
}

const char *sy__run_cache_check(struct sy_heap *heap)
{
	const char *wrong = NULL;

	for (unsigned slot = 0; heap->run_cache && slot < sy__slots_high() && !wrong; slot++)
		if (sy__slot_mine(slot))
			wrong = check_slot(heap, sy__run_cache_of(heap, slot));
	return wrong;
}
