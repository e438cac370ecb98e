/*
 * The page interface (page_interface.h) on top of the buddy allocator: what heaps call.
 *
 * To a block that sy__block_take found, this adds what only heaps need: descriptors of its inner pages that lead to the head, a
 * clean per-slab state, memory behind the address, and the heap's exact counters. Memory is committed per maximal block, once;
 * which pages may have been written since is kept per page, so that sy_pages_release() gives back just those and
 * `committed_pages` is exact.
 *
 * The heap's counters share one lock for all heaps: this is a slow path of every policy, and a lock is portable to machines
 * without 64-bit atomic instructions.
 */
#include "pages.h"

/* Makes the block's memory usable. Its maximal block may have been committed by an earlier request. */
static bool commit_memory(struct sy_pages *pages, uint64_t number)
{
	uint8_t *committed = &pages->committed[number >> SY_MAX_ORDER];
	uint64_t start = number & ~(SY__MAX_BLOCK - 1);
	bool done;

	if (sy__likely(__atomic_load_n(committed, __ATOMIC_ACQUIRE)))
		return true;
	sy__lock(&pages->source_lock);
	done = __atomic_load_n(committed, __ATOMIC_RELAXED) ||
	       sy__source_commit(pages->base.memory + ((size_t)start << SY_PAGE_SHIFT),
	                         (size_t)SY__MAX_BLOCK << SY_PAGE_SHIFT) == 0;
	if (done)
		__atomic_store_n(committed, 1, __ATOMIC_RELEASE);
	sy__unlock(&pages->source_lock);
	return done;
}

/* Sets up the descriptors of a block for a heap; pages whose memory no heap had before. */
static unsigned set_up(struct sy_page *head, struct sy_heap *heap, unsigned order)
{
	unsigned i, fresh = 0;

	sy__fill(head->state, 0, sizeof(head->state));
	for (i = 0; i < 1u << order; i++) {
		fresh += !(head[i].flags & SY__PAGE_BACKED);
		head[i].flags |= SY__PAGE_BACKED;
		head[i].heap = heap;
		head[i].order = (uint8_t)order;
		head[i].to_head = (uint16_t)i;
	}
	return fresh;
}

static uint64_t *counter_of(struct sy_heap *heap, unsigned use)
{
	if (use == SY_USE_SLAB)
		return &heap->counters.slab_pages;
	return use == SY_USE_LARGE ? &heap->counters.large_pages : &heap->counters.metadata_pages;
}

static void count_taken(struct sy_heap *heap, unsigned use, unsigned order)
{
	struct sy_heap_counters *counters = &heap->counters;

	sy__lock(&heap->pages->account_lock);
	counters->page_requests++;
	*counter_of(heap, use) += (uint64_t)1 << order;
	counters->taken_pages += use == SY_USE_METADATA ? 0 : (uint64_t)1 << order;
	if (counters->slab_pages_peak < counters->slab_pages)
		counters->slab_pages_peak = counters->slab_pages;
	if (counters->held_peak < counters->slab_pages + counters->large_pages)
		counters->held_peak = counters->slab_pages + counters->large_pages;
	sy__unlock(&heap->pages->account_lock);
}

static SY__COLD struct sy_page *refused(struct sy_heap *heap)
{
	sy__lock(&heap->pages->account_lock);
	heap->counters.page_requests++;
	heap->counters.page_failures++;
	sy__unlock(&heap->pages->account_lock);
	return NULL;
}

static SY__COLD void count_committed(struct sy_pages *pages, unsigned fresh)
{
	sy__lock(&pages->source_lock);
	pages->committed_pages += fresh;
	sy__unlock(&pages->source_lock);
}

struct sy_page *sy__pages_take(struct sy_heap *heap, unsigned slot, unsigned order, unsigned flags, int node,
                               enum sy_page_use use)
{
	struct sy_pages *pages = heap->pages;
	struct sy_page *head;
	unsigned fresh;

	if (node < 0)
		node = heap->slot_node[slot];
	head = sy__block_take(pages, slot, order, flags, node, use);
	if (sy__unlikely(!head))
		return refused(heap);
	if (sy__unlikely(!commit_memory(pages, sy__number(pages, head)))) {
		sy__block_give(pages, slot, head, order, use);
		return refused(heap);
	}
	fresh = set_up(head, heap, order);
	if (sy__unlikely(fresh))
		count_committed(pages, fresh);
	if (flags & SY_ZERO)
		sy__fill(sy__page_address(heap, head), 0, SY_PAGE_SIZE << order);
	count_taken(heap, use, order);
	return head;
}

void sy__pages_give(struct sy_heap *heap, unsigned slot, struct sy_page *head)
{
	struct sy_pages *pages = heap->pages;
	unsigned use = sy__use(head), order = head->order;

	head->heap = NULL;
	sy__lock(&pages->account_lock);
	*counter_of(heap, use) -= (uint64_t)1 << order;
	sy__unlock(&pages->account_lock);
	sy__block_give(pages, slot, head, order, use);
}
