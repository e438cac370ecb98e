/*
 * Reclaim: asking heaps for memory. Caches keep empty slabs and per-CPU objects for later. When a zone falls below its low
 * watermark, the page allocator asks every heap on it to give those up, as a kernel's reclaim daemon does. It calls what the heap
 * has registered (sy_heap.hooks), and may keep a working set, or, when a request would fail otherwise, urgently.
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

static uint64_t ask_heap(struct sy_pages *pages, struct sy_heap *heap, bool urgent)
{
	uint64_t given = heap->hooks->reclaim(heap, urgent);

	sy__lock(&pages->account_lock);
	heap->counters.asked++;
	heap->counters.reclaimed_pages += given;
	if (urgent) {
		heap->counters.asked_urgently++;
		heap->counters.reclaimed_urgently += given;
	}
	sy__unlock(&pages->account_lock);
	return given;
}

/* With heaps_lock held. */
static uint64_t ask_all(struct sy_pages *pages, bool urgent)
{
	struct sy_list *link;
	uint64_t given = 0;

	__atomic_store_n(&pages->reclaimer, sy__caller(), __ATOMIC_RELAXED);
	for (link = pages->heaps.next; link != &pages->heaps; link = link->next) {
		struct sy_heap *heap = sy__entry(link, struct sy_heap, link);

		given += ask_heap(pages, heap, urgent);
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
		given = ask_all(pages, false);
	sy__unlock(&pages->heaps_lock);
	return given;
}

uint64_t sy__reclaim_urgent(struct sy_pages *pages)
{
	uint64_t given;

	if (reclaimer(pages) == sy__caller())
		return 0;
	sy__lock(&pages->heaps_lock);
	given = ask_all(pages, true);
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
