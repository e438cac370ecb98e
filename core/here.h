/*
 * Calls without slots ("here"): on the slot of whoever calls. See here.c.
 *
 * A policy's own fast paths (struct sy_here in types.h) look like this, and jump to the generic entry when they miss, without
 * having ended the call:
 *
 *	static void *alloc_here(struct sy_cache *cache, unsigned flags)
 *	{
 *		struct slot *own = (struct slot *)(void *)((char *)slots + sy__call_begin());  (may be the dummy)
 *		if (sy__unlikely(nothing in own, or flags that ask for more))
 *			return sy__here_cache_alloc(cache, flags);
 *		take from own;
 *		sy__call_end();
 *		return object;
 *	}
 *
 * Nothing may have been changed before the jump.
 */
#ifndef SY_HERE_H
#define SY_HERE_H

#include "ticks.h"
#include "types.h"

SY__COLD void *sy__here_cache_alloc(struct sy_cache *, unsigned flags);
SY__COLD void *sy__here_refused(struct sy_cache *, unsigned flags); /* when a slow call has ended without an object */
SY__COLD void sy__here_cache_free(struct sy_cache *, void *object);
SY__COLD void *sy__here_kmalloc(size_t size, unsigned flags, struct sy_heap *);
SY__COLD void *sy__here_malloc(size_t size, struct sy_heap *);
SY__COLD void sy__here_kfree(void *object, struct sy_heap *);
void sy__here_leave(struct sy_heap *); /* ends a slow call of a heap of threads, in which some of them look at the clock */
void sy__here_free(void *object, struct sy_heap *); /* of any address; may be called without a call having begun */

/* The slot of a sy__call_begin that is not the dummy. */
static inline unsigned sy__here_slot(ptrdiff_t here)
{
	return (unsigned)(here / (ptrdiff_t)SY_SLOT_STRIDE);
}

/* Begins a call that needs nothing but a lock, on the caller's slot: the fast path of policies whose slots have nothing of
 * their own. The dummy: a slow call must follow. That waits for whoever has the lock, as a call that claims may wait for had
 * better not. */
static inline ptrdiff_t sy__here_lock(sy__lock_t *lock)
{
	ptrdiff_t here = sy__call_begin();

	return sy__likely(here != SY__DUMMY_HERE) && !sy__tick_is_due() && sy__likely(sy__lock_try(lock)) ? here : SY__DUMMY_HERE;
}

static inline void sy__here_unlock(sy__lock_t *lock)
{
	sy__unlock(lock);
	sy__call_end();
}

/* Whether the caller may touch what a slot has of a cache: in every loop over slots but where a cache is made. In a
 * replay the caller drives all slots. Elsewhere (sy_heap.concurrent) these are the caller's own slot and those that are claimed, which
 * the core has done in heaps of threads around shrink, reap, counts, tick, check and cache_fini as far as that was possible; and
 * all of a cache that nobody uses any more, as far as there is anything. */
static inline bool sy__slot_reachable(const struct sy_cache *cache, unsigned slot)
{
	if (!cache->heap->concurrent)
		return true;
	return cache->ending ? slot < sy__slots_high() : sy__slot_mine(slot);
}

/* In a heap of threads: the next look at the clock finds policy->settle due. */
static inline void sy__settle_soon(struct sy_heap *heap)
{
	sy__time_set(&heap->settle_due, 0);
}

/* Slots that may have something: what a loop that asks sy__slot_reachable need not go beyond. */
static inline unsigned sy__slots_used(const struct sy_heap *heap)
{
	return heap->threads ? sy__slots_high() : heap->slots;
}

/* Counts a call that left the fast path, by a counter of the heap. Not where slots are driven at once, and everybody would
 * write to that one word. Relaxed, as all counters: it orders nothing. */
static inline void sy__count_slow(const struct sy_heap *heap, size_t *counter)
{
	if (!heap->concurrent)
		__atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

/* Begins a call that has every slot of the heap for itself; false: from inside a call. */
static inline bool sy__alone_begin(struct sy_heap *heap)
{
	unsigned slot;

	return !heap->threads || sy__claim_enter(&slot);
}

static inline void sy__alone_end(struct sy_heap *heap)
{
	if (heap->threads)
		sy__claim_leave();
}

/* How a policy gives memory back; NULL: it can't. */
typedef uint64_t (*sy__giver)(struct sy_cache *);

/* Every cache of a heap gives memory back, from inside some call; how many pages. */
uint64_t sy__heap_give(struct sy_heap *, sy__giver);

/* For heap.c: the entries of a new heap or cache; a heap of threads comes (false: from inside a call) and goes. */
void sy__here_heap(struct sy_heap *);
void sy__here_cache(struct sy_cache *);
bool sy__here_attach(struct sy_heap *);
void sy__here_detach(struct sy_heap *);

#endif
