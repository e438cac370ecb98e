/*
 * Calls without slots: they run on the slot of the calling thread or CPU.
 *
 * The public entries jump to functions that the cache or heap itself names. In a heap of threads these are the policy's own fast
 * paths (struct sy_this_slot in policy.h), or the generic entries if it has none. In any other heap they call the policy on slot 0,
 * as the caller drives all slots alone.
 *
 * The generic entries are the slow half of every fast path. They have the platform give the caller its real slot
 * (sy__call_enter), which also refuses calls from constructors and waits while the slot is stopped. Then they serve the
 * request by the policy's function with slots, and end the call.
 *
 * Time. The library runs no thread in the background, unless the user of malloc wants one (malloc/background.c). So slow calls do what
 * is due by time: ends of grace periods, visits of idle slots, decay of free memory. Slots are scavenged each second, and when the
 * heap has grown by a quarter: what idle threads keep serves others then. Where growth meets another stop, the next look tries again.
 * Each SY__TICK_CALLS-th slow call of a thread looks at the clock. A policy whose threads seldom make slow calls counts fast ones as
 * well, and makes one slow when a look is due (sy__tick_is_due). Visits go over all slots and stop them first; SLACK bounds how often.
 *
 * Heaps of threads are on a list, because a thread that ends gives up its state in each of them. Only stops come before the
 * list's lock in the lock order. It is taken inside calls only, so nobody holds it while a thread forks.
 */
#include "this_slot.h"

#include "bug.h"
#include "deferred.h"
#include "list.h"
#include "page_interface.h"
#include "backend/large.h"
#include "backend/run_cache.h"
#include "visits.h"

#define SLACK (SY__SECOND / 10) /* nanoseconds by which visits may be late */
#define SCAVENGE_PERIOD SY__SECOND
#define FEW_SLOTS 2u /* the shared one and a thread's: a thread that is alone gives up what it retains before the heap grows */
#define GROWN_SHARE 4u
#define GROWN_LEAST (((size_t)16 << 20) / SY_PAGE_SIZE)
#define RUN_CACHE_PERIOD (SY__SECOND / 10)
#define WATCH_CALLS 8u /* from one look at the clock to the next during fast decay */

/* ---- Time ------------------------------------------------------------------------------------------------------- */

static void visit_slots(struct sy_heap *heap)
{
	bool stopped = sy__stop_try();

	heap->policy->tick(heap);
	if (stopped)
		sy__stop_end();
}

/* Whether periodic work is due; sets the next time. Two threads may find it due at once, and do it twice. */
static bool is_due(struct sy_time *due, uint64_t now, uint64_t period)
{
	if (now < sy__time(due))
		return false;
	sy__time_set(due, now + period);
	return true;
}

/* Whether the heap has grown much since it was scavenged, while other threads may retain what it needs. Relaxed: a figure. Of threads
 * that see it at once, one is told. */
static bool has_grown(struct sy_heap *heap)
{
	size_t before = __atomic_load_n(&heap->scavenged_pages, __ATOMIC_RELAXED), now = sy__pages_backed(heap->pages);

	return sy__slots_high() > FEW_SLOTS && now > before + before / GROWN_SHARE + GROWN_LEAST &&
	       __atomic_compare_exchange_n(&heap->scavenged_pages, &before, now, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

/* Policies give up what slots retain without need. Those that give memory back only on request (Bonwick 1994, section 3.4) are
 * asked to. */
static void scavenge_in_time(struct sy_heap *heap, uint64_t now)
{
	sy__giver giver = heap->policy->scavenge ? heap->policy->scavenge : heap->policy->reap;
	size_t before = __atomic_load_n(&heap->scavenged_pages, __ATOMIC_RELAXED);
	bool due = is_due(&heap->scavenge_due, now, SCAVENGE_PERIOD), stopped;

	if (due)
		sy__signals_learn();
	else if (!has_grown(heap))
		return;
	stopped = sy__stop_try();
	if (giver && (stopped || due))
		sy__heap_give(heap, giver);
	if (stopped)
		sy__stop_end();
	__atomic_store_n(&heap->scavenged_pages, stopped ? sy__pages_backed(heap->pages) : before, __ATOMIC_RELAXED);
}

/* Does not ask run_cache_filled, which may miss runs (backend/run_cache.c). */
static void flush_run_cache_in_time(struct sy_heap *heap, uint64_t now)
{
	if (is_due(&heap->run_cache_due, now, RUN_CACHE_PERIOD))
		sy__run_cache_flush(heap);
}

/* A program that then makes only fast calls would never come here again, and the memory that it freed last would stay. So during fast decay
 * all threads' calls are slow ones, and look at the clock more often. With several heaps, the one looked at last decides. */
static void watch(bool on)
{
	if (!sy__watch(on) && on && sy__stop_try())
		sy__stop_end();
	for (unsigned call = WATCH_CALLS; on && call < SY__TICK_CALLS; call++)
		sy__calls_more();
}

static void do_due(struct sy_heap *heap)
{
	uint64_t due = sy__time(&heap->tick_due), now = sy__now();

	sy__deferred_poll(heap);
	if (due && now >= due + SLACK)
		visit_slots(heap);
	scavenge_in_time(heap, now);
	flush_run_cache_in_time(heap, now);
	if (heap->on_slow_call)
		heap->on_slow_call(heap);
}

static SY__COLD void tick(struct sy_heap *heap)
{
	do_due(heap);
	watch(sy__pages_decay(heap->pages));
}

static SY__COLD void wake_background(struct sy_heap *heap)
{
	void (*wake)(struct sy_heap *) = __atomic_load_n(&heap->wake_background, __ATOMIC_RELAXED);

	if (wake)
		wake(heap);
}

static inline bool looks_at_clock(void)
{
	return !(sy__calls() & (SY__TICK_CALLS - 1));
}

void sy__this_slot_leave(struct sy_heap *heap)
{
	if (sy__unlikely(looks_at_clock()))
		tick(heap);
	if (sy__unlikely(sy__wakes_background(heap)))
		wake_background(heap);
	sy__call_leave();
}

/* The heap may be gone after the call. */
static SY__COLD void leave_allocation_late(struct sy_heap *heap)
{
	void (*after)(struct sy_heap *) = __atomic_load_n(&heap->after_slow_call, __ATOMIC_RELAXED);

	sy__this_slot_leave(heap);
	if (after)
		after(heap);
}

static inline void leave_allocation(struct sy_heap *heap)
{
	if (sy__unlikely(looks_at_clock()))
		leave_allocation_late(heap);
	else
		sy__this_slot_leave(heap);
}

bool sy__heap_background_work(struct sy_heap *heap)
{
	size_t before = sy__pages_backed(heap->pages);
	unsigned slot;

	if (sy__call_enter(&slot)) {
		do_due(heap);
		sy__pages_decay_idle(heap->pages);
		sy__call_leave();
	}
	return sy__pages_backed(heap->pages) < before;
}

void sy__heap_tick(struct sy_heap *heap)
{
	unsigned slot;

	if (heap->threads) {
		if (!sy__call_enter(&slot))
			return;
		tick(heap);
		sy__call_leave();
		return;
	}
	sy__deferred_run(heap);
	if (sy__time(&heap->tick_due) && sy__now() >= sy__time(&heap->tick_due))
		heap->policy->tick(heap);
}

/* ---- The generic entries ------------------------------------------------------------------------------------------ */

void *sy__zeroed(const struct sy_cache *cache, void *object)
{
	sy__fill(object, 0, cache->object_size);
	return object;
}

void *sy__this_slot_failed(struct sy_cache *cache, unsigned flags)
{
	return cache->heap->on_cache_failure ? cache->heap->on_cache_failure(cache, flags) : NULL;
}

void *sy__this_slot_cache_alloc(struct sy_cache *cache, unsigned flags)
{
	unsigned slot;
	void *object;

	if (sy__unlikely(!sy__call_enter(&slot)))
		return NULL;
	object = cache->policy->cache_alloc(cache, slot, flags, SY_ANY_NODE);
	leave_allocation(cache->heap);
	return sy__unlikely(!object) ? sy__this_slot_failed(cache, flags) : object;
}

void sy__this_slot_cache_free(struct sy_cache *cache, void *object)
{
	unsigned slot;

	if (sy__unlikely(!sy__call_enter(&slot)))
		return;
	cache->policy->cache_free(cache, slot, object);
	sy__this_slot_leave(cache->heap);
}

void *sy__this_slot_kmalloc(size_t size, unsigned flags, struct sy_heap *heap)
{
	unsigned slot;
	void *object;

	if (sy__unlikely(!sy__call_enter(&slot)))
		return NULL;
	object = heap->policy->kmalloc(heap, slot, size, flags, SY_ANY_NODE);
	leave_allocation(heap);
	return sy__unlikely(!object && heap->on_failure) ? heap->on_failure(size, flags, heap) : object;
}

void *sy__this_slot_malloc(size_t size, struct sy_heap *heap)
{
	return sy__this_slot_kmalloc(size, 0, heap);
}

void sy__this_slot_kfree(void *object, struct sy_heap *heap)
{
	unsigned slot;

	if (sy__unlikely(!sy__call_enter(&slot)))
		return;
	heap->policy->kfree(heap, slot, object);
	sy__this_slot_leave(heap);
}

void *sy__this_slot_large_alloc(size_t size, unsigned flags, struct sy_heap *heap)
{
	ptrdiff_t slot_offset = sy__call_begin();
	void *object = NULL;

	if (sy__likely(size && !flags && heap->run_cache && slot_offset != SY__DUMMY_OFFSET && !sy__large_refuses(heap, size)) &&
	    !sy__tick_is_due())
		object = sy__large_alloc_cached(heap, sy__run_cache_at(heap, slot_offset), size);
	if (sy__unlikely(!object))
		return sy__this_slot_kmalloc(size, flags, heap);
	sy__call_end();
	return object;
}

void sy__this_slot_large_free(void *object, struct sy_heap *heap, struct sy_page *page)
{
	ptrdiff_t slot_offset = sy__call_begin();

	if (sy__likely(sy__page_is_large(page) && heap->run_cache && slot_offset != SY__DUMMY_OFFSET && !sy__wakes_background(heap) &&
	               sy__large_free_cached(heap, sy__run_cache_at(heap, slot_offset), page, object)))
		sy__call_end();
	else
		sy__this_slot_kfree(object, heap);
}

void sy__this_slot_free(void *object, struct sy_heap *heap)
{
	if (sy__likely(sy__holds(heap, object)))
		heap->kfree_this_slot(object, heap);
	else if (heap->on_foreign_free)
		heap->on_foreign_free(object, heap);
	else if (object)
		sy__bug(heap, SY_BUG_FOREIGN_FREE, object);
}

static const struct sy_this_slot generic = {
	.cache_alloc = sy__this_slot_cache_alloc,
	.cache_free = sy__this_slot_cache_free,
	.kmalloc = sy__this_slot_kmalloc,
	.malloc = sy__this_slot_malloc,
	.kfree = sy__this_slot_kfree,
};

/* ---- Heaps whose slots the caller drives -------------------------------------------------------------------------- */

static void *cache_alloc_first(struct sy_cache *cache, unsigned flags)
{
	return cache->policy->cache_alloc(cache, 0, flags, SY_ANY_NODE);
}

static void cache_free_first(struct sy_cache *cache, void *object)
{
	cache->policy->cache_free(cache, 0, object);
}

static void *kmalloc_first(size_t size, unsigned flags, struct sy_heap *heap)
{
	return heap->policy->kmalloc(heap, 0, size, flags, SY_ANY_NODE);
}

static void *malloc_first(size_t size, struct sy_heap *heap)
{
	return heap->policy->kmalloc(heap, 0, size, 0, SY_ANY_NODE);
}

static void kfree_first(void *object, struct sy_heap *heap)
{
	heap->policy->kfree(heap, 0, object);
}

static const struct sy_this_slot first = {
	.cache_alloc = cache_alloc_first,
	.cache_free = cache_free_first,
	.kmalloc = kmalloc_first,
	.malloc = malloc_first,
	.kfree = kfree_first,
};

/* ---- Who has which entries ---------------------------------------------------------------------------------------- */

static const struct sy_this_slot *entries(const struct sy_heap *heap, const struct sy_policy *policy)
{
	if (!heap->threads)
		return &first;
	return policy->this_slot ? policy->this_slot : &generic;
}

/* Entries for heaps that bound the size of requests (sy_sizing.most), so that other heaps need not check it. */
static void *kmalloc_bounded(size_t size, unsigned flags, struct sy_heap *heap)
{
	if (sy__unlikely(size > heap->sizing.most))
		return heap->on_failure ? heap->on_failure(size, flags, heap) : NULL;
	return entries(heap, heap->policy)->kmalloc(size, flags, heap);
}

static void *malloc_bounded(size_t size, struct sy_heap *heap)
{
	return kmalloc_bounded(size, 0, heap);
}

void sy__this_slot_heap(struct sy_heap *heap)
{
	heap->kmalloc_this_slot = heap->sizing.most ? kmalloc_bounded : entries(heap, heap->policy)->kmalloc;
	heap->malloc_this_slot = heap->sizing.most ? malloc_bounded : entries(heap, heap->policy)->malloc;
	heap->kfree_this_slot = entries(heap, heap->policy)->kfree;
	heap->free_this_slot = entries(heap, heap->policy)->free ? entries(heap, heap->policy)->free : sy__this_slot_free;
}

void sy__this_slot_cache(struct sy_cache *cache)
{
	cache->alloc_this_slot = entries(cache->heap, cache->policy)->cache_alloc;
	cache->free_this_slot = entries(cache->heap, cache->policy)->cache_free;
}

/* ---- The public entries ------------------------------------------------------------------------------------------- */

void *sy_alloc(struct sy_cache *cache, unsigned flags)
{
	return cache->alloc_this_slot(cache, flags);
}

void sy_free(struct sy_cache *cache, void *object)
{
	if (sy__likely(object))
		cache->free_this_slot(cache, object);
}

void *sy_malloc(struct sy_heap *heap, size_t size, unsigned flags)
{
	return heap->kmalloc_this_slot(size, flags, heap);
}

void sy_mfree(struct sy_heap *heap, void *object)
{
	if (sy__likely(object))
		heap->kfree_this_slot(object, heap);
}

unsigned sy_alloc_bulk(struct sy_cache *cache, unsigned flags, unsigned count, void **objects)
{
	unsigned done = 0, slot = 0;

	if (cache->heap->threads && !sy__call_enter(&slot))
		return 0;
	while (done < count && (objects[done] = cache->policy->cache_alloc(cache, slot, flags, SY_ANY_NODE)))
		done++;
	if (cache->heap->threads)
		sy__this_slot_leave(cache->heap);
	while (done < count && flags & SY_KM_SLEEP && (objects[done] = sy__this_slot_failed(cache, flags)))
		done++;
	return done;
}

void sy_free_bulk(struct sy_cache *cache, unsigned count, void **objects)
{
	unsigned slot = 0;

	if (cache->heap->threads && !sy__call_enter(&slot))
		return;
	for (unsigned i = 0; i < count; i++)
		if (objects[i])
			cache->policy->cache_free(cache, slot, objects[i]);
	if (cache->heap->threads)
		sy__this_slot_leave(cache->heap);
}

/* ---- Heaps of threads --------------------------------------------------------------------------------------------- */

struct sy__heaps_of_threads sy__heaps_of_threads = { SY__LOCK_INIT, { &sy__heaps_of_threads.list, &sy__heaps_of_threads.list } };

/* A thread that ends gives up its state in all heaps of threads. */
static void slot_ends(unsigned slot)
{
	sy__lock(&sy__heaps_of_threads.lock);
	for (struct sy_list *at = sy__heaps_of_threads.list.next; at != &sy__heaps_of_threads.list; at = at->next) {
		struct sy_heap *heap = sy__entry(at, struct sy_heap, threads_link);

		if (heap->policy->drain)
			heap->policy->drain(heap, slot);
		sy__run_cache_flush_slot(heap, slot);
		sy_pages_drain(heap->pages, slot);
		wake_background(heap);
	}
	sy__unlock(&sy__heaps_of_threads.lock);
}

/* The lock is taken in a call of its own, see above. Threads that hold it never wait for others, so this wait is short. */
bool sy__this_slot_attach(struct sy_heap *heap)
{
	unsigned slot;

	if (!sy__call_enter(&slot))
		return false;
	sy__on_slot_end(slot_ends);
	sy__lock(&sy__heaps_of_threads.lock);
	sy__list_add_tail(&sy__heaps_of_threads.list, &heap->threads_link);
	sy__unlock(&sy__heaps_of_threads.lock);
	sy__call_leave();
	return true;
}

void sy__this_slot_detach(struct sy_heap *heap)
{
	sy__lock(&sy__heaps_of_threads.lock);
	sy__list_remove(&heap->threads_link);
	sy__unlock(&sy__heaps_of_threads.lock);
}
