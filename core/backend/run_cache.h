/* Runs of pages that were freed a moment ago, kept whole for the next request. See run_cache.c. */
#ifndef SY_RUN_CACHE_H
#define SY_RUN_CACHE_H

#include "../page_interface.h"

#define SY__RUN_CACHE_RUNS 7u
#define SY__RUN_CACHE_MOST_PAGES (1u << SY_MAX_ORDER) /* of each slot */
#define SY__RUN_CACHE_TOO_MUCH 8u
#define SY__RUN_CACHE_IN_VAIN 16u /* runs that a slot keeps one after the other for nothing, until it keeps none; of 256 then so many again */
#define SY__SPARES_IN_VAIN 16u /* times, since a heap settled, that spares go and memory comes even so, until none is kept */

/* What a slot keeps. */
struct sy__run_cache {
	size_t live;              /* bytes asked for in runs that the slot handed out, less those that it was given back; may wrap */
	uint32_t first[SY__RUN_CACHE_RUNS]; /* number of a kept run's first page, and one; 0: none. Others take what is there, too */
	uint16_t pages[SY__RUN_CACHE_RUNS]; /* of the run that the slot has put there; 0: nothing is there. The slot's own, as what follows */
	uint16_t sum;             /* of these pages */
	uint16_t oldest;          /* is replaced next */
	bool spares;              /* the slot keeps empty slabs, too, which go like runs when memory is to come; */
	uint8_t spares_in_vain;   /* how often it came even so, since the heap settled; at most SY__SPARES_IN_VAIN */
	uint8_t in_vain;          /* runs since one served that had to make room, or were not kept; wraps */
};
_Static_assert(sizeof(struct sy__run_cache) <= SY_CACHE_LINE, "a line of each slot");

/* Of a heap of threads that is being made; false: no memory. */
bool sy__run_cache_create(struct sy_heap *);

/* A slot's, by the slot, or by what sy__call_begin says, which is not the dummy. */
static inline struct sy__run_cache *sy__run_cache_here(const struct sy_heap *heap, ptrdiff_t here)
{
	return (struct sy__run_cache *)(void *)((char *)heap->run_cache + here);
}

static inline struct sy__run_cache *sy__run_cache_of(const struct sy_heap *heap, unsigned slot)
{
	return sy__run_cache_here(heap, (ptrdiff_t)(slot * SY_SLOT_STRIDE));
}

static inline struct sy_page *sy__run_cache_numbered(const struct sy_heap *heap, uint32_t number)
{
	return heap->run_cache_table + (number - 1);
}

/* Nothing of the slot's is at that place any more. */
static inline void sy__run_cache_forget(struct sy__run_cache *own, unsigned place)
{
	own->sum = (uint16_t)(own->sum - own->pages[place]);
	own->pages[place] = 0;
}

/* What is still there, which is the caller's now; or 0. */
static inline uint32_t sy__run_cache_take_out(struct sy__run_cache *rows, unsigned place)
{
	return __atomic_exchange_n(&rows->first[place], 0u, __ATOMIC_ACQUIRE);
}

/* Where the smallest is that suffices; SY__RUN_CACHE_RUNS: nowhere. */
static inline unsigned sy__run_cache_best(const struct sy__run_cache *own, uint32_t pages)
{
	uint32_t least = (pages & (pages - 1) ? pages / SY__RUN_CACHE_TOO_MUCH : 0) + 1;
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

/* Whether runs that the slot frees are worth keeping. */
static inline bool sy__run_cache_serve(const struct sy__run_cache *own)
{
	return own->in_vain < SY__RUN_CACHE_IN_VAIN;
}

/* In a call: a kept run of so many pages or hardly more; NULL: there is none. */
static inline struct sy_page *sy__run_cache_take(struct sy_heap *heap, struct sy__run_cache *own, uint32_t pages)
{
	for (unsigned place; (place = sy__run_cache_best(own, pages)) < SY__RUN_CACHE_RUNS;) {
		uint32_t number = sy__run_cache_take_out(own, place);

		sy__run_cache_forget(own, place);
		if (sy__likely(number)) {
			own->in_vain = 0;
			return sy__run_cache_numbered(heap, number);
		}
	}
	return NULL;
}

/* In a call: where there is room for a run; SY__RUN_CACHE_RUNS: nowhere. */
static inline unsigned sy__run_cache_place(const struct sy__run_cache *own, uint32_t pages)
{
	unsigned place = 0;

	if (own->sum + pages > SY__RUN_CACHE_MOST_PAGES)
		return SY__RUN_CACHE_RUNS;
	while (place < SY__RUN_CACHE_RUNS && own->pages[place])
		place++;
	return place;
}

/* In a call: puts a run there. */
static inline void sy__run_cache_put(struct sy_heap *heap, struct sy__run_cache *own, unsigned place, const struct sy_page *first, uint32_t pages)
{
	own->pages[place] = (uint16_t)pages;
	own->sum = (uint16_t)(own->sum + pages);
	__atomic_store_n(&own->first[place], (uint32_t)(first - heap->run_cache_table) + 1, __ATOMIC_RELEASE);
	if (!__atomic_load_n(&heap->run_cache_kept, __ATOMIC_RELAXED))
		__atomic_store_n(&heap->run_cache_kept, true, __ATOMIC_RELAXED);
}

/* In a slow call of that slot: gives back what was kept longest until there is room for a run, and where; or everything, and the
 * run is not worth keeping: SY__RUN_CACHE_RUNS. The next gives back everything. */
unsigned sy__run_cache_make_room(struct sy_heap *, unsigned slot, uint32_t pages);
void sy__run_cache_end_slot(struct sy_heap *, unsigned slot);

/* In a slow call: gives back what all slots keep; pages. */
uint64_t sy__run_cache_end(struct sy_heap *);

/* Whether a look at that is worth it. */
static inline bool sy__run_cache_any(const struct sy_heap *heap)
{
	return heap->run_cache && __atomic_load_n(&heap->run_cache_kept, __ATOMIC_RELAXED);
}

/* In a call of a slot, by what sy__call_begin says: sy__heap_hooks.end_spares has something to do. */
static inline void sy__spares_kept(const struct sy_heap *heap, ptrdiff_t here)
{
	sy__run_cache_here(heap, here)->spares = true;
}

static inline bool sy__spares_any(const struct sy_heap *heap, unsigned slot)
{
	return heap->run_cache && sy__run_cache_of(heap, slot)->spares;
}

/* In a slow call of that slot: gives them back. */
void sy__spares_end(struct sy_heap *, unsigned slot);

/* The memory was not there even so. What many kept for a while lies scattered when it comes back: with each time that a program
 * goes through its sizes it would need a little more. Now and then it just needs more than ever before. */
static inline void sy__spares_in_vain(const struct sy_heap *heap, unsigned slot)
{
	struct sy__run_cache *own = sy__run_cache_of(heap, slot);

	if (own->spares_in_vain < SY__SPARES_IN_VAIN)
		own->spares_in_vain++;
}

static inline void sy__spares_anew(const struct sy_heap *heap, unsigned slot)
{
	struct sy__run_cache *own = sy__run_cache_of(heap, slot);

	if (own->spares_in_vain)
		own->spares_in_vain = 0;
}

static inline bool sy__spares_wanted(const struct sy_heap *heap, ptrdiff_t here)
{
	return sy__run_cache_here(heap, here)->spares_in_vain < SY__SPARES_IN_VAIN;
}

/* sy__heap_hooks.before_growth: first what the slot keeps of empty slabs is to go (by sy__spares_end), for another look; where
 * that is in vain, and memory comes, the runs of all slots go too. */
bool sy__run_cache_before_growth(struct sy_heap *, unsigned slot, unsigned tries);

/* Bytes asked for in large allocations that live, as slots count them. */
size_t sy__run_cache_live(const struct sy_heap *);

/* NULL, or what is wrong. All slots are claimed, as far as that was possible. */
const char *sy__run_cache_check(struct sy_heap *);

#endif
