/* The slots' caches of runs that were freed a moment ago. See run_cache.c. */
#ifndef SY_RUN_CACHE_H
#define SY_RUN_CACHE_H

#include "../page_interface.h"

#define SY__RUN_CACHE_RUNS 7u
#define SY__RUN_CACHE_MOST_PAGES (1u << SY_MAX_ORDER) /* of each slot */
#define SY__RUN_CACHE_WASTE 8u /* a cached run may exceed a request by 1/8 of it */
#define SY__RUN_CACHE_EVICTIONS 16u /* without a hit, until a slot caches nothing; of 256 frees then 16 are cached again */
#define SY__RETAINED_FAILURES 16u /* per scavenging period: releases of empty slabs that did not prevent growth, until none is retained */

/* The run cache of a slot. */
struct sy__run_cache {
	size_t live;              /* bytes in large allocations of the slot, minus bytes in those that it freed; may wrap */
	uint32_t first[SY__RUN_CACHE_RUNS]; /* number of the run's first page, plus one; 0: none. Others may take it */
	uint16_t pages[SY__RUN_CACHE_RUNS]; /* of the run that the slot put there; 0: none. The slot's own, as all that follows */
	uint16_t sum;             /* of these pages */
	uint16_t oldest;          /* evicted next */
	bool retains;             /* the slot retains empty slabs, which it must release before the heap grows */
	uint8_t retained_failures; /* how often the heap grew even so, since it was scavenged; at most SY__RETAINED_FAILURES */
	uint8_t evictions;        /* runs evicted, or not cached, since the last hit; wraps */
};
_Static_assert(sizeof(struct sy__run_cache) <= SY_CACHE_LINE, "a line of each slot");

/* State of the first block of a run. */
struct sy__run {
	void *none;     /* a kernel has a bit of its own in the first word, which must stay clear */
	uint32_t pages; /* of the whole run */
};
SY_ASSERT_SLAB_STATE(struct sy__run, none);

static inline uint32_t sy__run_pages(const struct sy_page *head)
{
	return SY_SLAB_STATE(const struct sy__run, head)->pages;
}

/* For a heap of threads that is being created; false: no memory. */
bool sy__run_cache_create(struct sy_heap *);

/* A slot's run cache, by the slot or by what sy__call_begin returned, but not the dummy's. */
static inline struct sy__run_cache *sy__run_cache_at(const struct sy_heap *heap, ptrdiff_t slot_offset)
{
	return (struct sy__run_cache *)(void *)((char *)heap->run_cache + slot_offset);
}

static inline struct sy__run_cache *sy__run_cache_of(const struct sy_heap *heap, unsigned slot)
{
	return sy__run_cache_at(heap, (ptrdiff_t)(slot * SY_SLOT_STRIDE));
}

static inline struct sy_page *sy__run_cache_page(const struct sy_heap *heap, uint32_t number)
{
	return heap->run_cache_table + (number - 1);
}

/* In a call of the slot: the place is empty from now on. */
static inline void sy__run_cache_forget(struct sy__run_cache *own, unsigned place)
{
	own->sum = (uint16_t)(own->sum - own->pages[place]);
	own->pages[place] = 0;
}

/* Any thread: takes the run at a place; 0: another thread has taken it. */
static inline uint32_t sy__run_cache_take_out(struct sy__run_cache *cache, unsigned place)
{
	return __atomic_exchange_n(&cache->first[place], 0u, __ATOMIC_ACQUIRE);
}

/* Place of the smallest sufficient run; SY__RUN_CACHE_RUNS: none. */
static inline unsigned sy__run_cache_best(const struct sy__run_cache *own, uint32_t pages)
{
	uint32_t least = (pages & (pages - 1) ? pages / SY__RUN_CACHE_WASTE : 0) + 1;
	unsigned found = SY__RUN_CACHE_RUNS;

	for (unsigned place = 0; place < SY__RUN_CACHE_RUNS && least; place++) {
		uint32_t more = own->pages[place] - pages; /* wraps where it is smaller */

		if (more >= least)
			continue;
		found = place;
		least = more;
	}
	return found;
}

/* Whether the cache had hits lately, so that freed runs are worth caching. */
static inline bool sy__run_cache_serves(const struct sy__run_cache *own)
{
	return own->evictions < SY__RUN_CACHE_EVICTIONS;
}

/* In a call of the slot: takes a cached run of that size or slightly more; NULL: none. */
static inline struct sy_page *sy__run_cache_take(struct sy_heap *heap, struct sy__run_cache *own, uint32_t pages)
{
	for (unsigned place; (place = sy__run_cache_best(own, pages)) < SY__RUN_CACHE_RUNS;) {
		uint32_t number = sy__run_cache_take_out(own, place);

		sy__run_cache_forget(own, place);
		if (sy__likely(number)) {
			own->evictions = 0;
			return sy__run_cache_page(heap, number);
		}
	}
	return NULL;
}

/* In a call of the slot: a free place for a run; SY__RUN_CACHE_RUNS: no room. */
static inline unsigned sy__run_cache_place(const struct sy__run_cache *own, uint32_t pages)
{
	unsigned place = 0;

	if (own->sum + pages > SY__RUN_CACHE_MOST_PAGES)
		return SY__RUN_CACHE_RUNS;
	while (place < SY__RUN_CACHE_RUNS && own->pages[place])
		place++;
	return place;
}

/* In a call of the slot: puts a run at that place. */
static inline void sy__run_cache_put(struct sy_heap *heap, struct sy__run_cache *own, unsigned place, const struct sy_page *first,
                                     uint32_t pages)
{
	own->pages[place] = (uint16_t)pages;
	own->sum = (uint16_t)(own->sum + pages);
	__atomic_store_n(&own->first[place], (uint32_t)(first - heap->run_cache_table) + 1, __ATOMIC_RELEASE);
	if (!__atomic_load_n(&heap->run_cache_filled, __ATOMIC_RELAXED))
		__atomic_store_n(&heap->run_cache_filled, true, __ATOMIC_RELAXED);
}

/* In a slow call of that slot: evicts the oldest runs until there is room for one, and returns the place. SY__RUN_CACHE_RUNS: the
 * cache does not serve; it was flushed, and the run is not worth caching. */
unsigned sy__run_cache_make_room(struct sy_heap *, unsigned slot, uint32_t pages);

/* In a slow call of that slot: gives back all that its cache has. */
void sy__run_cache_flush_slot(struct sy_heap *, unsigned slot);

/* In a slow call: gives back what all slots' caches have; how many pages. */
uint64_t sy__run_cache_flush(struct sy_heap *);

/* Whether a flush may find something. */
static inline bool sy__run_cache_any(const struct sy_heap *heap)
{
	return heap->run_cache && __atomic_load_n(&heap->run_cache_filled, __ATOMIC_RELAXED);
}

/* ---- Retained empty slabs: those that a policy's slots keep for the next request ------------------------------------ */

/* In a call of a slot, by what sy__call_begin returned: the slot retains something from now on. */
static inline void sy__retained_note(const struct sy_heap *heap, ptrdiff_t slot_offset)
{
	sy__run_cache_at(heap, slot_offset)->retains = true;
}

/* Whether slots of this heap may retain empty slabs: those of threads may. */
static inline bool sy__retains(const struct sy_heap *heap)
{
	return heap->run_cache;
}

static inline bool sy__retained_any(const struct sy_heap *heap, unsigned slot)
{
	return sy__retains(heap) && sy__run_cache_of(heap, slot)->retains;
}

/* The hook sy__heap_hooks.release_retained. In a slow call of that slot: has the policy release them. */
void sy__retained_release(struct sy_heap *, unsigned slot);

/* The slot released its empty slabs, and the heap had to grow even so. Slabs that were retained for long lie scattered, so a program
 * that cycles through sizes would need a little more memory in each cycle. So after several failures slots retain nothing. A few
 * failures are normal: a program may just need more than ever before. */
static inline void sy__retained_failed(const struct sy_heap *heap, unsigned slot)
{
	struct sy__run_cache *own = sy__run_cache_of(heap, slot);

	if (own->retained_failures < SY__RETAINED_FAILURES)
		own->retained_failures++;
}

/* The heap was scavenged: slots may retain empty slabs again. */
static inline void sy__retained_reset(const struct sy_heap *heap, unsigned slot)
{
	struct sy__run_cache *own = sy__run_cache_of(heap, slot);

	if (own->retained_failures)
		own->retained_failures = 0;
}

/* Whether the slot should retain empty slabs. */
static inline bool sy__retained_wanted(const struct sy_heap *heap, ptrdiff_t slot_offset)
{
	return sy__run_cache_at(heap, slot_offset)->retained_failures < SY__RETAINED_FAILURES;
}

/* The hook sy__heap_hooks.before_growth. First the slot must release its empty slabs (sy__retained_release), and the caller looks
 * again: true. If the heap still has to grow, all run caches are flushed: false. */
bool sy__run_cache_before_growth(struct sy_heap *, unsigned slot, unsigned tries);

/* Bytes asked for in live large allocations, summed over slots. */
size_t sy__run_cache_live(const struct sy_heap *);

/* NULL, or which invariant does not hold. All slots are stopped, as far as that was possible. */
const char *sy__run_cache_check(struct sy_heap *);

#endif
