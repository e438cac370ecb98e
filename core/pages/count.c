/*
 * Counters, and giving memory back to the source.
 *
 * Counters live where they are written: in the zones, and as differences in the per-CPU lists. Reading adds them up under each list's
 * own lock. So every figure is exact when nobody else is at work, and never torn while others are.
 *
 * Releasing goes through the free lists. A page carries a mark if a heap got its memory since that was last given back. Runs of
 * marked pages are discarded. The blocks stay free, and their memory reads zero when it is used again. Where free blocks have an age
 * (pages.h), a block without one has nothing left to give and is skipped: a program that trims often would otherwise
 * pay for all its free memory each time.
 *
 * Descriptors. If a maximal block is free as a whole and has no memory left, only its head's descriptor means anything; the others may
 * read zero as if never written (zone.c). So their memory goes too, 1/64 of the block's. Their marks live on as one state of
 * the block, in sy_pages.committed.
 *
 * Huge pages. In a maximal block that the system may back by huge pages, pages that no heap ever had may have got memory along with
 * their neighbours, and no mark tells. So a free block there is discarded as a whole. Its pages count as elsewhere.
 */
#include "pages.h"

static void add_used(uint64_t *sum, const int64_t *used)
{
	unsigned use;

	for (use = 0; use < SY_USES; use++)
		sum[use] += (uint64_t)used[use]; /* differences may be negative, but not their sum */
}

static uint64_t count_cpu_lists(struct sy__zone *zone, uint64_t *used)
{
	uint64_t served = 0;
	unsigned slot;

	for (slot = 0; zone->cpu && slot < zone->pages->slots; slot++) {
		struct sy__cpu_list *cpu = &zone->cpu[slot];

		sy__lock(&cpu->lock);
		add_used(used, cpu->used);
		served += cpu->served;
		sy__unlock(&cpu->lock);
	}
	return served;
}

/* Maximal blocks, and what is left of one that has grown in part. */
static void count_ungrown(const struct sy__zone *zone, struct sy_zone_counts *counts)
{
	uint64_t number = zone->next_ungrown;
	unsigned order;

	counts->ungrown = sy__zone_ungrown(zone);
	counts->free_blocks[SY_MOVABLE_TYPE][SY_MAX_ORDER] += counts->ungrown >> SY_MAX_ORDER;
	for (; number & (SY__MAX_BLOCK - 1); number += (uint64_t)1 << order) {
		order = (unsigned)__builtin_ctzll(number);
		counts->free_blocks[SY_MOVABLE_TYPE][order]++;
	}
}

/* Fills in a zone's counts; returns the requests that it served. */
static uint64_t count_zone(struct sy__zone *zone, struct sy_zone_counts *counts)
{
	uint64_t served = count_cpu_lists(zone, counts->used);
	unsigned order, type;

	sy__lock(&zone->lock);
	sy__copy(counts->name, zone->name, sizeof(counts->name));
	counts->node = zone->node;
	counts->pages = zone->span;
	counts->managed = zone->managed;
	add_used(counts->used, zone->used);
	for (order = 0; order < SY_ORDERS; order++)
		for (type = 0; type < SY_MIGRATE_TYPES; type++)
			counts->free_blocks[type][order] = zone->free[order][type].count;
	count_ungrown(zone, counts);
	sy__copy(counts->pageblocks, zone->pageblocks, sizeof(counts->pageblocks));
	counts->min = zone->marks[SY__WMARK_MIN];
	counts->low = zone->marks[SY__WMARK_LOW];
	counts->high = zone->marks[SY__WMARK_HIGH];
	served += zone->served;
	sy__unlock(&zone->lock);
	return served;
}

static void count_all(struct sy_pages *pages, struct sy_pages_counts *counts)
{
	unsigned i;

	sy__fill(counts, 0, sizeof(*counts));
	counts->zone_count = pages->zone_count;
	for (i = 0; i < pages->zone_count; i++) {
		counts->requests += count_zone(&pages->zones[i], &counts->zones[i]);
		sy__lock(&pages->zones[i].lock);
		counts->fallbacks += pages->zones[i].fallbacks;
		counts->fallbacks_changing_ownership += pages->zones[i].fallbacks_changing;
		sy__unlock(&pages->zones[i].lock);
	}
	sy__lock(&pages->account_lock);
	counts->failures = pages->failures;
	counts->rescued = pages->rescued;
	sy__unlock(&pages->account_lock);
	counts->requests += counts->failures;
	counts->committed_pages = sy__read(&pages->committed_pages);
}

/* Inside a call, so that no fork finds these locks held. */
void sy_pages_count(struct sy_pages *pages, struct sy_pages_counts *counts)
{
	unsigned slot;
	bool entered = sy__call_enter(&slot);

	count_all(pages, counts);
	if (entered)
		sy__call_leave();
}

/* State of a block whose memory the caller owns or keeps from others. So relaxed will do, see sy__commit_memory. */
static unsigned committed_of(const struct sy_pages *pages, uint64_t number)
{
	return __atomic_load_n(sy__committed(pages, number), __ATOMIC_RELAXED);
}

static void discard_pages(struct sy_pages *pages, uint64_t number, size_t count)
{
	sy__source_discard(pages->base.memory + ((size_t)number << SY_PAGE_SHIFT), count << SY_PAGE_SHIFT);
}

/* Some of a huge block goes back: asks for small pages, lest the system make it whole again. */
static void end_huge(struct sy_pages *pages, uint64_t number)
{
	uint8_t *committed = sy__committed(pages, number);
	uint64_t start = number & ~(SY__MAX_BLOCK - 1);

	sy__source_prefer_small(pages->base.memory + ((size_t)start << SY_PAGE_SHIFT), (size_t)SY__MAX_BLOCK << SY_PAGE_SHIFT);
	sy__lock(&pages->source_lock);
	__atomic_store_n(committed, (uint8_t)(*committed | SY__HUGE_ENDED), __ATOMIC_RELAXED);
	sy__unlock(&pages->source_lock);
}

/* Discards all of a free block, as any page of it may have memory. */
static uint64_t discard_huge(struct sy_pages *pages, struct sy_page *block, size_t size)
{
	uint64_t number = sy__number(pages, block), released = 0;

	if (!(committed_of(pages, number) & SY__HUGE_ENDED))
		end_huge(pages, number);
	for (size_t i = 0; i < size; i++) {
		if (!(block[i].flags & SY__PAGE_BACKED))
			continue;
		block[i].flags = SY__PAGE_DISCARDED;
		released++;
	}
	discard_pages(pages, number, size);
	return released;
}

static uint64_t discard_marked(struct sy_pages *pages, struct sy_page *block, size_t size)
{
	uint64_t number = sy__number(pages, block), released = 0;
	size_t from, to;

	for (from = 0; from < size; from = to + 1) {
		for (to = from; to < size && block[to].flags & SY__PAGE_BACKED; to++)
			block[to].flags = SY__PAGE_DISCARDED;
		if (to > from)
			discard_pages(pages, number + from, to - from);
		released += to - from;
	}
	return released;
}

uint64_t sy__block_discard(struct sy_pages *pages, struct sy_page *block, unsigned order)
{
	unsigned committed = committed_of(pages, sy__number(pages, block)), state = sy__committed_state(committed);

	if (pages->in_buffer || state == SY__UNCOMMITTED || (state == SY__BARE && order == SY_MAX_ORDER))
		return 0;
	return committed & SY__HUGE ? discard_huge(pages, block, (size_t)1 << order) : discard_marked(pages, block, (size_t)1 << order);
}

void sy__descriptors_discard(struct sy_pages *pages, struct sy_page *head)
{
	uintptr_t mask = SY_PAGE_SIZE - 1, from = ((uintptr_t)(head + 1) + mask) & ~mask;
	uintptr_t to = (uintptr_t)(head + SY__MAX_BLOCK) & ~mask;
	unsigned state = sy__committed_state(committed_of(pages, sy__number(pages, head)));

	if (pages->in_buffer || state == SY__UNCOMMITTED || state == SY__BARE)
		return;
	sy__source_discard((void *)from, to - from);
	sy__lock(&pages->source_lock);
	__atomic_store_n(sy__committed(pages, sy__number(pages, head)), SY__BARE, __ATOMIC_RELAXED);
	sy__subtract(&pages->described, 1);
	sy__unlock(&pages->source_lock);
}

/* Whether the source has all of a block back. Its age tells, if it has one; but not in huge blocks. */
static bool is_given_back(const struct sy_pages *pages, const struct sy_page *block)
{
	return pages->ages && !block->bytes && !(committed_of(pages, sy__number(pages, block)) & SY__HUGE);
}

static uint64_t release_block(struct sy_pages *pages, struct sy_page *block, unsigned order)
{
	uint64_t released = is_given_back(pages, block) ? 0 : sy__block_discard(pages, block, order);

	block->bytes = 0;
	if (order == SY_MAX_ORDER)
		sy__descriptors_discard(pages, block);
	return released;
}

static uint64_t release_zone(struct sy__zone *zone, unsigned min_order)
{
	struct sy_page *block;
	uint64_t released = 0;
	unsigned order, type;

	sy__lock(&zone->lock);
	for (order = min_order; order < SY_ORDERS; order++)
		for (type = 0; type < SY_MIGRATE_TYPES; type++)
			for (block = zone->free[order][type].first; block; block = block->free.next)
				released += release_block(zone->pages, block, order);
	sy__unlock(&zone->lock);
	return released;
}

uint64_t sy_pages_release(struct sy_pages *pages, unsigned min_order)
{
	uint64_t released = 0;
	unsigned i;

	for (i = 0; i < pages->zone_count; i++)
		released += release_zone(&pages->zones[i], min_order);
	sy__count_discarded(pages, (size_t)released);
	return released;
}
