/*
 * The page interface (page_interface.h) on top of the buddy allocator: what heaps call.
 *
 * sy__block_take finds a block. This file adds what heaps need: descriptors of inner pages that lead to the head, a clean
 * per-slab state, memory behind the addresses, and exact counters. Memory is committed per maximal block, once. A mark in each
 * descriptor says whether the page may have been written since. So sy_pages_release() gives back just those pages,
 * `committed_pages` is exact, and memory that is zero already is not cleared.
 *
 * A run is the first pages of a block, as blocks side by side (run.c). In heaps of threads the layer above may place it elsewhere
 * (sy__pages_hooks.take_run).
 *
 * One lock covers the counters of all heaps: this is a slow path of every policy, and a lock also works on machines without
 * 64-bit atomic instructions.
 */
#include "pages.h"

/* Pages of a run without memory: no heap had them before, or they were discarded. */
struct fresh {
	unsigned pages, discarded; /* discarded: how many of the pages were */
};

/* The page gets memory. */
static inline void back(struct sy_page *page, struct fresh *fresh)
{
	fresh->pages++;
	fresh->discarded += page->flags == SY__PAGE_DISCARDED;
	page->flags = SY__PAGE_BACKED;
}

/* Sets what callers may ask of any page of a block. */
static inline void set_up_page(struct sy_page *head, struct sy_heap *heap, unsigned to_head, struct fresh *fresh)
{
	struct sy_page *page = head + to_head;

	if (sy__unlikely(page->flags != SY__PAGE_BACKED))
		back(page, fresh);
	page->heap = heap;
	page->node = head->node;
	page->to_head = (uint16_t)to_head;
}

/* Sets up the descriptors of a block for a heap. The head's order is right already, and must not be written: the layer above may be
 * reading it (run.c). */
static inline void set_up(struct sy_page *head, struct sy_heap *heap, unsigned order, struct fresh *fresh)
{
	sy__fill(head->state, 0, sizeof(head->state));
	set_up_page(head, heap, 0, fresh);
	for (unsigned i = 1; i < 1u << order; i++) {
		set_up_page(head, heap, i, fresh);
		head[i].order = (uint8_t)order;
	}
}

/* Clears the pages of a run that may have been written; before set_up. */
static SY__COLD void zero(const struct sy_heap *heap, const struct sy_page *head, unsigned count)
{
	unsigned from, to;

	for (from = 0; from < count; from = to + 1) {
		for (to = from; to < count && head[to].flags & SY__PAGE_BACKED; to++)
			;
		if (to > from)
			sy__fill(sy__page_address(heap, head + from), 0, (size_t)(to - from) << SY_PAGE_SHIFT);
	}
}

/* Gives the rest of a run's block back. */
static void give_rest(struct sy_pages *pages, struct sy_page *head, unsigned count, unsigned order)
{
	for (unsigned at = count, step; at < 1u << order; at += 1u << step) {
		step = (unsigned)__builtin_ctz(at);
		sy__block_give_to_zone(pages, &head[at], step, sy__use(head));
	}
}

static uint64_t *counter_of(struct sy_heap *heap, unsigned use)
{
	if (use == SY_USE_SLAB)
		return &heap->counters.slab_pages;
	return use == SY_USE_LARGE ? &heap->counters.large_pages : &heap->counters.metadata_pages;
}

static void count_taken(struct sy_heap *heap, unsigned use, unsigned count, unsigned discarded)
{
	struct sy_heap_counters *counters = &heap->counters;

	sy__lock(&heap->pages->account_lock);
	counters->page_requests++;
	*counter_of(heap, use) += count;
	sy__add(&heap->pages->held_pages, count);
	if (heap->pages->ages)
		heap->pages->hooks->taken(heap->pages, discarded);
	counters->taken_pages += use == SY_USE_METADATA ? 0 : count;
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

static SY__COLD void count_committed(struct sy_pages *pages, uint64_t number, struct fresh *fresh)
{
	uint8_t *committed = sy__committed(pages, number), was = __atomic_load_n(committed, __ATOMIC_RELAXED);

	sy__count_backed(pages, fresh->pages);
	if (was == SY__BARE) {
		sy__lock(&pages->source_lock);
		if (__atomic_load_n(committed, __ATOMIC_RELAXED) == SY__BARE) {
			__atomic_store_n(committed, (uint8_t)(SY__REUSED | sy__prefer_huge(pages, number & ~(SY__MAX_BLOCK - 1))), __ATOMIC_RELAXED);
			sy__add(&pages->described, 1);
		}
		sy__unlock(&pages->source_lock);
	}
	if (sy__committed_state(was) != SY__COMMITTED)
		fresh->discarded = fresh->pages;
}

static bool lacks_memory(const struct sy_page *head, unsigned order)
{
	unsigned at = 0;

	while (at < 1u << order && head[at].flags == SY__PAGE_BACKED)
		at++;
	return at < 1u << order;
}

/* Before the heap grows: while the slot gives back what it retains, looks for another block. The present block goes back
 * first, as the block freed last is found first. */
static SY__COLD struct sy_page *take_again(struct sy_heap *heap, unsigned slot, struct sy_page *head, unsigned order, unsigned flags, int node,
                                           enum sy_page_use use)
{
	for (unsigned tries = 0; head && lacks_memory(head, order) && heap->hooks->before_growth(heap, slot, tries); tries++) {
		sy__block_give_to_zone(heap->pages, head, order, use);
		heap->hooks->release_retained(heap, slot);
		head = heap->pages->take(heap->pages, slot, order, flags, node, use);
	}
	return head;
}

/* A block, with memory behind it; NULL: there is none. */
static inline struct sy_page *take_block(struct sy_heap *heap, unsigned slot, unsigned order, unsigned flags, int node,
                                         enum sy_page_use use)
{
	struct sy_pages *pages = heap->pages;
	struct sy_page *head;

	node = node < 0 ? sy__slot_node(heap, slot) : node;
	head = pages->take(pages, slot, order, flags, node, use);
	if (sy__unlikely(heap->threads) && head && use != SY_USE_METADATA && lacks_memory(head, order))
		head = take_again(heap, slot, head, order, flags, node, use);
	if (sy__unlikely(!head))
		return refused(heap);
	if (sy__likely(sy__commit_memory(pages, sy__number(pages, head))))
		return head;
	sy__block_give(pages, slot, head, order, use);
	return refused(heap);
}

/* A run becomes the heap's. */
static inline void own_run(struct sy_heap *heap, struct sy_page *head, unsigned count, unsigned flags, enum sy_page_use use)
{
	unsigned discarded = 0;

	if (flags & SY_ZERO)
		zero(heap, head, count);
	for (unsigned at = 0; at < count; at += 1u << head[at].order) {
		struct fresh fresh = { 0, 0 };

		set_up(&head[at], heap, head[at].order, &fresh);
		if (sy__unlikely(fresh.pages))
			count_committed(heap->pages, sy__number(heap->pages, &head[at]), &fresh);
		discarded += fresh.discarded;
	}
	count_taken(heap, use, count, discarded);
}

struct sy_page *sy__pages_take(struct sy_heap *heap, unsigned slot, unsigned order, unsigned flags, int node,
                               enum sy_page_use use)
{
	struct sy_page *head = take_block(heap, slot, order, flags, node, use);

	if (sy__likely(head))
		own_run(heap, head, 1u << order, flags, use);
	return head;
}

/* The first pages of a block; the rest goes back. */
static struct sy_page *take_of_block(struct sy_heap *heap, unsigned slot, unsigned order, unsigned count, unsigned flags, int node,
                                     enum sy_page_use use)
{
	struct sy_page *head = take_block(heap, slot, order, flags, node, use);

	if (!head)
		return NULL;
	sy__run_cut_block(heap->pages, head, count, order);
	own_run(heap, head, count, flags, use);
	give_rest(heap->pages, head, count, order);
	return head;
}

struct sy_page *sy__pages_take_run(struct sy_heap *heap, unsigned slot, unsigned order, unsigned count, unsigned flags,
                                   int node, enum sy_page_use use)
{
	struct sy_page *head = NULL;

	if (count == 1u << order)
		return sy__pages_take(heap, slot, order, flags, node, use);
	if (heap->threads && heap->pages->hooks)
		head = heap->pages->hooks->take_run(heap, slot, count, flags, use);
	if (!head)
		return take_of_block(heap, slot, order, count, flags, node, use);
	own_run(heap, head, count, flags, use);
	return head;
}

static SY__COLD unsigned emptied(const struct sy_page *head, unsigned order)
{
	unsigned count = 0;

	for (unsigned i = 0; i < 1u << order; i++)
		count += !(head[i].flags & SY__PAGE_BACKED);
	return count;
}

void sy__pages_give(struct sy_heap *heap, unsigned slot, struct sy_page *head)
{
	struct sy_pages *pages = heap->pages;
	unsigned use = sy__use(head), order = head->order;

	head->heap = NULL;
	sy__lock(&pages->account_lock);
	*counter_of(heap, use) -= (uint64_t)1 << order;
	sy__subtract(&pages->held_pages, (size_t)1 << order);
	if (sy__unlikely(pages->emptied_pages))
		sy__subtract(&pages->emptied_pages, emptied(head, order));
	sy__unlock(&pages->account_lock);
	if (use == SY_USE_LARGE && heap->threads) /* past the per-CPU lists, so that the blocks of a run join again at once */
		sy__block_give_to_zone(pages, head, order, use);
	else
		sy__block_give(pages, slot, head, order, use);
}

bool sy__page_empty(struct sy_heap *heap, struct sy_page *page)
{
	struct sy_pages *pages = heap->pages;

	if (!sy__block_discard(pages, page, 0))
		return false;
	sy__count_discarded(pages, 1);
	sy__lock(&pages->account_lock);
	sy__add(&pages->emptied_pages, 1);
	sy__unlock(&pages->account_lock);
	return true;
}

void sy__page_refill(struct sy_heap *heap, struct sy_page *page)
{
	struct sy_pages *pages = heap->pages;

	if (page->flags & SY__PAGE_BACKED)
		return;
	page->flags = SY__PAGE_BACKED;
	sy__count_backed(pages, 1);
	sy__lock(&pages->account_lock);
	sy__subtract(&pages->emptied_pages, 1);
	sy__unlock(&pages->account_lock);
}
