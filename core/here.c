/*
 * Calls without slots: on the slot of the thread (or CPU) that calls.
 *
 * The public entries jump to a function that the cache or heap itself names. On a heap of threads that is the policy's own fast
 * path (struct sy_here in types.h), or the generic entry if it has none; on any other heap it is the call on slot 0, whose
 * caller drives all slots alone.
 *
 * The generic entries are the slow half of every fast path: they have the platform give the caller its real slot
 * (sy__call_enter, which also refuses calls from constructors, and waits for whoever has claimed the slot), do the request
 * by the policy's function with slots, and end the call.
 *
 * Time. No thread of the library runs in the background, so what is due some day (ends of grace periods, visits of idle slots,
 * memory to go back to the operating system) is done by slow calls: each thread's every SY__TICK_CALLS-th looks at the clock.
 * (A policy whose threads seldom need slow calls counts others for such, and makes the one that is due a slow one:
 * sy__tick_is_due.) Visits go over all slots, thus claim them first; SLACK bounds how often.
 *
 * Heaps of threads stand in a list, as a thread that ends gives up what it has in each of them. Its lock is the first of
 * all but a claim's; it is taken inside calls only, so nobody holds it while a thread forks.
 */
#include "here.h"

#include "deferred.h"
#include "list.h"
#include "page_interface.h"
#include "backend/run_cache.h"
#include "visits.h"

#define SLACK (SY__SECOND / 10) /* nanoseconds by which visits may be late */
#define SETTLE_PERIOD SY__SECOND
#define RUN_CACHE_PERIOD (SY__SECOND / 10)
#define WATCH_CALLS 8u /* from one look at the clock to the next then, as a program may also be one that seldom calls */

/* ---- Time ------------------------------------------------------------------------------------------------------- */

static void visit_slots(struct sy_heap *heap)
{
	bool claimed = sy__slots_claim_try();

	heap->policy->tick(heap);
	if (claimed)
		sy__slots_release();
}

/* Whether what is done in each period is due; the next time it is a period later. Where two threads find it due at once, it is
 * done twice. */
static bool comes_due(struct sy_time *due, uint64_t now, uint64_t period)
{
	if (now < sy__time(due))
		return false;
	sy__time_set(due, now + period);
	return true;
}

/* Has policies that give memory back only when they are asked (Bonwick 1994, section 3.4) do so, and others give up what they
 * need no more. */
static void settle_in_time(struct sy_heap *heap, uint64_t now)
{
	sy__giver giver = heap->policy->settle ? heap->policy->settle : heap->policy->reap;

	if (giver && comes_due(&heap->settle_due, now, SETTLE_PERIOD))
		sy__heap_give(heap, giver);
}

/* Without asking whether there are any: that is not always known (backend/run_cache.c). */
static void end_run_cache_in_time(struct sy_heap *heap, uint64_t now)
{
	if (comes_due(&heap->run_cache_due, now, RUN_CACHE_PERIOD))
		sy__run_cache_end(heap);
}

/* A program that goes on with calls which are all fast comes by here no more, and what was freed a moment ago stays. So while
 * much should go the calls of all threads are slow ones. Of several heaps the one that a thread has looked at last decides. */
static void watch(bool hurry)
{
	if (!sy__watch(hurry) && hurry && sy__slots_claim_try())
		sy__slots_release();
	for (unsigned call = WATCH_CALLS; hurry && call < SY__TICK_CALLS; call++)
		sy__calls_more();
}

static SY__COLD void tick(struct sy_heap *heap)
{
	uint64_t due = sy__time(&heap->tick_due), now = sy__now();

	sy__deferred_look(heap);
	if (due && now >= due + SLACK)
		visit_slots(heap);
	settle_in_time(heap, now);
	end_run_cache_in_time(heap, now);
	watch(sy__pages_decay(heap->pages));
	if (heap->passes)
		heap->passes(heap);
}

void sy__here_leave(struct sy_heap *heap)
{
	if (sy__unlikely(!(sy__calls() & (SY__TICK_CALLS - 1))))
		tick(heap);
	sy__call_leave();
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

void *sy__here_refused(struct sy_cache *cache, unsigned flags)
{
	return cache->heap->cache_refused ? cache->heap->cache_refused(cache, flags) : NULL;
}

void *sy__here_cache_alloc(struct sy_cache *cache, unsigned flags)
{
	unsigned slot;
	void *object;

	if (sy__unlikely(!sy__call_enter(&slot)))
		return NULL;
	object = cache->policy->cache_alloc(cache, slot, flags, SY_ANY_NODE);
	sy__here_leave(cache->heap);
	return sy__unlikely(!object) ? sy__here_refused(cache, flags) : object;
}

void sy__here_cache_free(struct sy_cache *cache, void *object)
{
	unsigned slot;

	if (sy__unlikely(!sy__call_enter(&slot)))
		return;
	cache->policy->cache_free(cache, slot, object);
	sy__here_leave(cache->heap);
}

void *sy__here_kmalloc(size_t size, unsigned flags, struct sy_heap *heap)
{
	unsigned slot;
	void *object;

	if (sy__unlikely(!sy__call_enter(&slot)))
		return NULL;
	object = heap->policy->kmalloc(heap, slot, size, flags, SY_ANY_NODE);
	sy__here_leave(heap);
	return sy__unlikely(!object && heap->refused) ? heap->refused(size, flags, heap) : object;
}

void *sy__here_malloc(size_t size, struct sy_heap *heap)
{
	return sy__here_kmalloc(size, 0, heap);
}

void sy__here_kfree(void *object, struct sy_heap *heap)
{
	unsigned slot;

	if (sy__unlikely(!sy__call_enter(&slot)))
		return;
	heap->policy->kfree(heap, slot, object);
	sy__here_leave(heap);
}

void sy__here_free(void *object, struct sy_heap *heap)
{
	if (sy__likely(sy__holds(heap, object)))
		heap->kfree_here(object, heap);
	else if (heap->foreign)
		heap->foreign(object, heap);
}

static const struct sy_here generic = {
	.cache_alloc = sy__here_cache_alloc,
	.cache_free = sy__here_cache_free,
	.kmalloc = sy__here_kmalloc,
	.malloc = sy__here_malloc,
	.kfree = sy__here_kfree,
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

static const struct sy_here first = {
	.cache_alloc = cache_alloc_first,
	.cache_free = cache_free_first,
	.kmalloc = kmalloc_first,
	.malloc = malloc_first,
	.kfree = kfree_first,
};

/* ---- Who has which entries ---------------------------------------------------------------------------------------- */

static const struct sy_here *entries(const struct sy_heap *heap)
{
	if (!heap->threads)
		return &first;
	return heap->policy->here ? heap->policy->here : &generic;
}

/* In front of these where a heap serves no larger requests than it says, so that others need not look. */
static void *kmalloc_bounded(size_t size, unsigned flags, struct sy_heap *heap)
{
	if (sy__unlikely(size > heap->sizing.most))
		return heap->refused ? heap->refused(size, flags, heap) : NULL;
	return entries(heap)->kmalloc(size, flags, heap);
}

static void *malloc_bounded(size_t size, struct sy_heap *heap)
{
	return kmalloc_bounded(size, 0, heap);
}

void sy__here_heap(struct sy_heap *heap)
{
	heap->kmalloc_here = heap->sizing.most ? kmalloc_bounded : entries(heap)->kmalloc;
	heap->malloc_here = heap->sizing.most ? malloc_bounded : entries(heap)->malloc;
	heap->kfree_here = entries(heap)->kfree;
	heap->free_here = entries(heap)->free ? entries(heap)->free : sy__here_free;
}

void sy__here_cache(struct sy_cache *cache)
{
	cache->alloc_here = entries(cache->heap)->cache_alloc;
	cache->free_here = entries(cache->heap)->cache_free;
}

/* ---- The public entries ------------------------------------------------------------------------------------------- */

void *sy_alloc(struct sy_cache *cache, unsigned flags)
{
	return cache->alloc_here(cache, flags);
}

void sy_free(struct sy_cache *cache, void *object)
{
	if (sy__likely(object))
		cache->free_here(cache, object);
}

void *sy_malloc(struct sy_heap *heap, size_t size, unsigned flags)
{
	return heap->kmalloc_here(size, flags, heap);
}

void sy_mfree(struct sy_heap *heap, void *object)
{
	if (sy__likely(object))
		heap->kfree_here(object, heap);
}

unsigned sy_alloc_bulk(struct sy_cache *cache, unsigned flags, unsigned count, void **objects)
{
	unsigned done = 0, slot = 0;

	if (cache->heap->threads && !sy__call_enter(&slot))
		return 0;
	while (done < count && (objects[done] = cache->policy->cache_alloc(cache, slot, flags, SY_ANY_NODE)))
		done++;
	if (cache->heap->threads)
		sy__here_leave(cache->heap);
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
		sy__here_leave(cache->heap);
}

/* ---- Heaps of threads --------------------------------------------------------------------------------------------- */

static struct {
	sy__lock_t lock;
	struct sy_list list; /* through sy_heap.threads_link */
} heaps = { SY__LOCK_INIT, { &heaps.list, &heaps.list } };

/* A thread gives up what it has in each of them. */
static void slot_ends(unsigned slot)
{
	sy__lock(&heaps.lock);
	for (struct sy_list *at = heaps.list.next; at != &heaps.list; at = at->next) {
		struct sy_heap *heap = sy__entry(at, struct sy_heap, threads_link);

		if (heap->policy->drain)
			heap->policy->drain(heap, slot);
		sy__run_cache_end_slot(heap, slot);
		sy_pages_drain(heap->pages, slot);
	}
	sy__unlock(&heaps.lock);
}

/* In calls of their own: see above. Threads in a call have what they need to go on, so this never waits for long. */
bool sy__here_attach(struct sy_heap *heap)
{
	unsigned slot;

	if (!sy__call_enter(&slot))
		return false;
	sy__on_slot_end(slot_ends);
	sy__lock(&heaps.lock);
	sy__list_add_tail(&heaps.list, &heap->threads_link);
	sy__unlock(&heaps.lock);
	sy__call_leave();
	return true;
}

void sy__here_detach(struct sy_heap *heap)
{
	sy__lock(&heaps.lock);
	sy__list_remove(&heap->threads_link);
	sy__unlock(&heaps.lock);
}
