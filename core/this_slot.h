/*
 * Calls without slots: they run on the calling thread's slot. See this_slot.c.
 *
 * A policy's fast path (struct sy_this_slot in policy.h) looks like this. When it misses, it jumps to the generic entry without having
 * ended the call:
 *
 * 	static void *alloc_this_slot(struct sy_cache *cache, unsigned flags)
 * 	{
 * 		struct slot *own = (struct slot *)(void *)((char *)slots + sy__call_begin());  (may be the dummy)
 * 		if (sy__unlikely(nothing in own, or flags that ask for more))
 * 			return sy__this_slot_cache_alloc(cache, flags);
 * 		take from own;
 * 		sy__call_end();
 * 		return object;
 * 	}
 *
 * Nothing may have changed before the jump.
 */
#ifndef SY_THIS_SLOT_H
#define SY_THIS_SLOT_H

#include "ticks.h"
#include "types.h"

SY__COLD void *sy__this_slot_cache_alloc(struct sy_cache *, unsigned flags);
SY__COLD void *sy__this_slot_failed(struct sy_cache *, unsigned flags); /* result of a slow call that ended without an object */
SY__COLD void sy__this_slot_cache_free(struct sy_cache *, void *object);
SY__COLD void *sy__this_slot_kmalloc(size_t size, unsigned flags, struct sy_heap *);
SY__COLD void *sy__this_slot_malloc(size_t size, struct sy_heap *);
SY__COLD void sy__this_slot_kfree(void *object, struct sy_heap *);
SY__COLD void *sy__zeroed(const struct sy_cache *, void *object); /* out of line, so that fast paths need no stack frame; returns it */
void sy__this_slot_leave(struct sy_heap *); /* ends a slow call in a heap of threads; each SY__TICK_CALLS-th looks at the clock */
void *sy__this_slot_large_alloc(size_t size, unsigned flags, struct sy_heap *); /* by a fast call if the slot caches a run; a call need not */
void sy__this_slot_large_free(void *object, struct sy_heap *, struct sy_page *); /* have begun. Of what is in no slab, with its page */
void sy__this_slot_free(void *object, struct sy_heap *); /* frees any address; a call need not have begun */

/* Whether the thread in the background waits to be woken (sy_heap.wake_background) by a call, which then should be a slow one. */
static inline bool sy__wakes_background(const struct sy_heap *heap)
{
	return __atomic_load_n(&heap->wake_background, __ATOMIC_RELAXED) != NULL;
}

/* The slot that sy__call_begin returned; not the dummy's. */
static inline unsigned sy__slot_of_offset(ptrdiff_t slot_offset)
{
	return (unsigned)(slot_offset / (ptrdiff_t)SY_SLOT_STRIDE);
}

/* Begins a call and takes a lock: the fast path of policies without per-slot state. SY__DUMMY_OFFSET: the lock was taken, or the call
 * is due for a look at the clock, so a slow call must follow. A fast call does not wait for locks, as stops wait for it. */
static inline ptrdiff_t sy__call_begin_locked(sy__lock_t *lock)
{
	ptrdiff_t slot_offset = sy__call_begin();
	bool taken = sy__likely(slot_offset != SY__DUMMY_OFFSET) && !sy__tick_is_due() && sy__likely(sy__lock_try(lock));

	return taken ? slot_offset : SY__DUMMY_OFFSET;
}

static inline void sy__call_end_locked(sy__lock_t *lock)
{
	sy__unlock(lock);
	sy__call_end();
}

/* Whether the caller may touch a slot's state of a cache. Every loop over slots asks this, except in the creation of a cache. In a
 * replay the caller drives all slots. In a concurrent heap these are the caller's own slot and the stopped ones; in heaps of
 * threads the core stops slots, as far as possible, around shrink, reap, counts, tick, check and cache_fini. Of a cache that
 * its last user destroys, all used slots are reachable. */
static inline bool sy__slot_reachable(const struct sy_cache *cache, unsigned slot)
{
	if (!cache->heap->concurrent)
		return true;
	return cache->ending ? slot < sy__slots_high() : sy__slot_mine(slot);
}

/* In a heap of threads: makes policy->scavenge due at the next look at the clock. */
static inline void sy__scavenge_soon(struct sy_heap *heap)
{
	sy__time_set(&heap->scavenge_due, 0);
}

/* Number of slots that may have state: the bound of loops over slots. */
static inline unsigned sy__slots_used(const struct sy_heap *heap)
{
	return heap->threads ? sy__slots_high() : heap->slots;
}

/* Counts a call that left the fast path, unless the heap is concurrent: all CPUs would write that one word. Relaxed, as all
 * counters: it orders nothing. */
static inline void sy__count_slow(const struct sy_heap *heap, size_t *counter)
{
	if (!heap->concurrent)
		__atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

/* Stops all slots of a heap of threads, for work on a whole cache or heap; false: the caller is inside a call. Then has threads go
 * on. In other heaps neither does anything. */
static inline bool sy__slots_stop(struct sy_heap *heap)
{
	unsigned slot;

	return !heap->threads || sy__stop_enter(&slot);
}

/* The same for what can be left for another time: false also where a thread has been in a call for so long that it may be stopped. */
static inline bool sy__slots_stop_soon(struct sy_heap *heap)
{
	unsigned slot;

	return !heap->threads || sy__stop_enter_soon(&slot);
}

static inline void sy__slots_resume(struct sy_heap *heap)
{
	if (heap->threads)
		sy__stop_leave();
}

/* For a thread in the background, outside of calls: does the work of slow calls that is due by time, and gives back memory that has been
 * free since the last look, half a second ago or more. True: some memory went back. */
bool sy__heap_background_work(struct sy_heap *);

/* A function by which a policy gives memory back: shrink, reap, scavenge or trim; NULL: it can't. */
typedef uint64_t (*sy__giver)(struct sy_cache *);

/* From inside any call, of this heap or another one on the same page allocator: every cache gives memory back; how many pages. */
uint64_t sy__heap_give(struct sy_heap *, sy__giver);

/* For heap.c: sets the entries of a new heap, of a new cache. */
void sy__this_slot_heap(struct sy_heap *);
void sy__this_slot_cache(struct sy_cache *);

/* All heaps of threads of the program. Lock: see types.h. */
extern struct sy__heaps_of_threads {
	sy__lock_t lock;
	struct sy_list list; /* through sy_heap.threads_link */
} sy__heaps_of_threads;

/* For heap.c: puts a heap onto the list of heaps of threads (false: from inside a call), and takes it off. */
bool sy__this_slot_attach(struct sy_heap *);
void sy__this_slot_detach(struct sy_heap *);

#endif
