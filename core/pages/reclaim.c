/*
 * Reclaim: asking heaps for memory. Caches keep empty slabs and per-CPU objects for later. When a zone falls below its low
 * watermark, the page allocator asks every heap on it to give those up, as a kernel's reclaim daemon does. It calls what the heap
 * has registered (sy_heap.hooks): `reclaim`, which may keep a working set, or `reclaim_urgently` when a request would fail otherwise.
 *
 * Only heaps_lock, which comes before all other locks, is held while heaps are asked, since giving pages back enters the page
 * allocator again. A heap that asks for pages meanwhile is the `reclaimer` itself, and is not asked again. Another thread goes on
 * with what it finds; but if its request would fail, it waits for the reclaimer, as there may be memory then.
 *
 * Between the low and the min watermark every request would ask. After an asking that brought nothing, the next requests skip it: 1,
 * 2, 4, … up to MOST_SKIPPED of them, until one brings something. A request that would fail asks in any case.
 */
#include "pages.h"

#define MOST_SKIPPED 1024u

/* Counts an asking and what it brought; with account_lock held. */
static void count_gentle(struct sy_heap_counters *counters, uint64_t given)
{
	counters->asked++;
	counters->reclaimed_pages += given;
}

static void count_urgent(struct sy_heap_counters *counters, uint64_t given)
{
	count_gentle(counters, given);
	counters->asked_urgently++;
	counters->reclaimed_urgently += given;
}

/* How heaps are asked. */
struct asking {
	uint64_t (*ask)(struct sy_heap *);
	void (*count)(struct sy_heap_counters *, uint64_t given);
};

static uint64_t ask_gently(struct sy_heap *heap)
{
	return heap->hooks->reclaim(heap);
}

static uint64_t ask_urgently(struct sy_heap *heap)
{
	return heap->hooks->reclaim_urgently(heap);
}

static const struct asking gently = { ask_gently, count_gentle }, urgently = { ask_urgently, count_urgent };

static uint64_t ask_heap(struct sy_pages *pages, struct sy_heap *heap, const struct asking *asking)
{
	uint64_t given = asking->ask(heap);

	sy__lock(&pages->account_lock);
	asking->count(&heap->counters, given);
	sy__unlock(&pages->account_lock);
	return given;
}

/* With heaps_lock held. */
static uint64_t ask_all(struct sy_pages *pages, const struct asking *asking)
{
	struct sy_list *link;
	uint64_t given = 0;

	__atomic_store_n(&pages->reclaimer, sy__caller(), __ATOMIC_RELAXED);
	for (link = pages->heaps.next; link != &pages->heaps; link = link->next) {
		struct sy_heap *heap = sy__entry(link, struct sy_heap, link);

		given += ask_heap(pages, heap, asking);
	}
	__atomic_store_n(&pages->reclaimer, NULL, __ATOMIC_RELAXED);
	if (given)
		pages->reclaim_wait = 0;
	else if (pages->reclaim_wait < MOST_SKIPPED)
		pages->reclaim_wait = pages->reclaim_wait ? pages->reclaim_wait * 2 : 1;
	pages->reclaim_skip = pages->reclaim_wait;
	return given;
}

/* Relaxed: a caller that finds itself there wrote that itself; and NULL need only be true of some moment. */
static const void *reclaimer(struct sy_pages *pages)
{
	return __atomic_load_n(&pages->reclaimer, __ATOMIC_RELAXED);
}

uint64_t sy__reclaim(struct sy_pages *pages)
{
	uint64_t given = 0;

	if (reclaimer(pages))
		return 0;
	sy__lock(&pages->heaps_lock);
	if (pages->reclaim_skip)
		pages->reclaim_skip--;
	else
		given = ask_all(pages, &gently);
	sy__unlock(&pages->heaps_lock);
	return given;
}

uint64_t sy__reclaim_urgent(struct sy_pages *pages)
{
	uint64_t given;

	if (reclaimer(pages) == sy__caller())
		return 0;
	sy__lock(&pages->heaps_lock);
	given = ask_all(pages, &urgently);
	sy__unlock(&pages->heaps_lock);
	return given;
}

void sy__pages_attach(struct sy_pages *pages, struct sy_heap *heap)
{
	sy__lock(&pages->heaps_lock);
	sy__list_add_tail(&pages->heaps, &heap->link);
	sy__unlock(&pages->heaps_lock);
}

void sy__pages_detach(struct sy_pages *pages, struct sy_heap *heap)
{
	sy__lock(&pages->heaps_lock);
	sy__list_remove(&heap->link);
	sy__unlock(&pages->heaps_lock);
}
