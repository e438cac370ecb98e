/*
 * The reserved address range of a page allocator: ending it earlier, and extending it again.
 *
 * Why. Reserved addresses cost nothing, except where a process has a limit to its addresses. If the program sets such a limit
 * after the range was reserved, its own mappings and stacks find no room. So the range can end earlier. Maximal blocks that have
 * not grown were never used, neither their memory nor their descriptors, so both address ranges go back. What has grown last becomes
 * ungrown again if it is free and the source has all its memory back. Later the range can extend again, up to its first length,
 * or to where the program has mapped addresses.
 *
 * A limit to data counts what a process could write to. There it suffices that free pages at the end become ungrown; the range
 * keeps its length.
 *
 * Of the first block there may be addresses for some pages only, where a limit leaves no more. The others count as free, but the zone
 * can't grow by them.
 *
 * This works on a heap's own pages only: one reserved zone from the first page on, of whole maximal blocks, never populated. All
 * counts that depend on the length are adjusted. Watermarks are not, as those of a heap are a few pages (library/open.c).
 *
 * Order. Threads ask without a lock whether an address is in the range, and the program may map memory right where the range
 * ended. So the number of pages falls before the addresses go, and rises after they are back. All slots are stopped meanwhile.
 * At most, threads whose slots could not be stopped finish a fast call, with addresses that they had before.
 */
#include "backend.h"

#define BLOCK_BYTES (SY_PAGE_SIZE << SY_MAX_ORDER)

static uint64_t whole_blocks(uint64_t pages)
{
	return (pages + SY__MAX_BLOCK - 1) & ~(SY__MAX_BLOCK - 1);
}

static bool has_own_range(const struct sy_pages *pages)
{
	const struct sy__zone *zone = &pages->zones[0];

	return !pages->in_buffer && pages->zone_count == 1 && !zone->populated && !zone->start && zone->managed == zone->span &&
	       zone->span % SY__MAX_BLOCK == 0;
}

/* Pages from here on have no descriptors. */
static void forget(struct sy_pages *pages, uint64_t from)
{
	if (pages->base.known > from)
		__atomic_store_n(&pages->base.known, from, __ATOMIC_RELAXED);
}

/* Sets the zone's length. With the zone's lock held. */
static void count_blocks(struct sy_pages *pages, uint64_t blocks)
{
	struct sy__zone *zone = &pages->zones[0];
	uint64_t before = zone->span >> SY_MAX_ORDER, more = (blocks - before) << SY_MAX_ORDER;

	zone->span += more;
	zone->managed += more;
	zone->present += more;
	zone->pageblocks[SY_MOVABLE_TYPE] += (blocks - before) << (SY_MAX_ORDER - pages->pageblock_order);
	sy__add(&zone->free_pages, (size_t)more);
	sy__add(&zone->ungrown_blocks, (size_t)(blocks - before));
	pages->base.page_count += more;
	forget(pages, pages->base.page_count);
}

/* Moves the end of a mapping. False: the mapping was to grow, and the program has those addresses. */
static bool move_end(char *start, size_t *bytes, char *end)
{
	char *before = start + *bytes;

	if (end > before && !sy__source_reserve_at(before, (size_t)(end - before)))
		return false;
	if (end < before)
		sy__source_release(end, (size_t)(before - end));
	*bytes = (size_t)(end - start);
	return true;
}

static bool move_memory(struct sy_pages *pages, uint64_t blocks)
{
	return move_end(pages->memory_reserved, &pages->memory_bytes, pages->base.memory + (size_t)blocks * BLOCK_BYTES);
}

static bool move_table(struct sy_pages *pages, uint64_t blocks)
{
	return move_end(pages->table_reserved, &pages->table_bytes, (char *)(pages->base.table + blocks * SY__MAX_BLOCK));
}

/* The new length of the range. False: the policy has no memory to describe it. */
static bool tell_policy(struct sy_heap *heap, uint64_t blocks)
{
	const struct sy_policy *policy = heap->policy;

	return !policy->reservation_changes || policy->reservation_changes(heap, (size_t)blocks << SY_MAX_ORDER);
}

static bool extend(struct sy_heap *heap, uint64_t blocks)
{
	struct sy_pages *pages = heap->pages;
	uint64_t before = pages->base.page_count >> SY_MAX_ORDER;

	if (!move_memory(pages, blocks))
		return false;
	if (move_table(pages, blocks)) {
		if (tell_policy(heap, blocks)) {
			count_blocks(pages, blocks);
			return true;
		}
		move_table(pages, before);
	}
	move_memory(pages, before);
	return false;
}

static bool shorten(struct sy_heap *heap, uint64_t blocks)
{
	struct sy_pages *pages = heap->pages;

	count_blocks(pages, blocks);
	tell_policy(heap, blocks);
	return move_memory(pages, blocks) && move_table(pages, blocks);
}

/* Extends the range up to `blocks`, or as far as addresses are free, by bisection. False: not at all. */
static bool extend_most(struct sy_heap *heap, uint64_t before, uint64_t blocks)
{
	uint64_t now = before;

	for (uint64_t more = blocks - before; more; more /= 2)
		if (more <= blocks - now && extend(heap, now + more))
			now += more;
	return now > before;
}

static uint64_t within(uint64_t least, uint64_t value, uint64_t most)
{
	return value < least ? least : value > most ? most : value;
}

static unsigned state_of(const struct sy_pages *pages, uint64_t number)
{
	return sy__committed_state(__atomic_load_n(sy__committed(pages, number), __ATOMIC_RELAXED));
}

static bool is_free_and_empty(const struct sy_page *head)
{
	if (sy__use(head) != SY_USE_FREE)
		return false;
	for (size_t at = 0; at < (size_t)1 << head->order; at++)
		if (head[at].flags & SY__PAGE_BACKED)
			return false;
	return true;
}

/* Where free pages without memory begin that reach to the end of what has grown, in the last maximal block. */
static uint64_t empty_from(const struct sy__zone *zone)
{
	uint64_t end = zone->next_ungrown, from = (end - 1) & ~(SY__MAX_BLOCK - 1), next;

	for (uint64_t at = from; at < end; at = next) {
		const struct sy_page *head = sy__page(zone->pages, at);

		next = at + ((uint64_t)1 << head->order);
		if (!is_free_and_empty(head))
			from = next;
	}
	return from;
}

/* Takes the pages from this one on off their lists. Their descriptors then read zero, like those of pages that have not grown, except a
 * bare block's first one. */
static void remove_from(struct sy__zone *zone, uint64_t from)
{
	struct sy_page *head = sy__page(zone->pages, from), *end = sy__page(zone->pages, zone->next_ungrown);

	for (; head < end; head += (size_t)1 << head->order)
		sy__blocks_remove(&zone->free[head->order][sy__migrate(head)], head);
	if (state_of(zone->pages, from) != SY__BARE)
		sy__fill(sy__page(zone->pages, from), 0, (size_t)(zone->next_ungrown - from) * sizeof(struct sy_page));
}

/* A maximal block that has not grown at all. */
static void uncommit(struct sy_pages *pages, uint64_t number)
{
	unsigned state = state_of(pages, number);

	sy__lock(&pages->source_lock);
	if (state == SY__COMMITTED || state == SY__REUSED)
		sy__subtract(&pages->described, 1);
	__atomic_store_n(sy__committed(pages, number), SY__UNCOMMITTED, __ATOMIC_RELAXED);
	if (sy__backend_of(pages)->sample >= number)
		sy__backend_of(pages)->sample_from = 0;
	sy__unlock(&pages->source_lock);
}

/* Makes pages at the end of what has grown, of one maximal block, as if they never had. With the zone's lock held. */
static void ungrow_from(struct sy__zone *zone, uint64_t from)
{
	uint64_t size = sy__pageblock_pages(zone->pages), end = whole_blocks(zone->next_ungrown);

	remove_from(zone, from);
	for (uint64_t at = (from + size - 1) & ~(size - 1); at < end; at += size)
		sy__set_pageblock_type(zone, at, SY_MOVABLE_TYPE);
	if (zone->next_ungrown == end)
		sy__add(&zone->ungrown_blocks, 1);
	zone->used[SY_USE_FREE] -= (int64_t)(zone->next_ungrown - from);
	zone->next_ungrown = from;
	if (!(from & (SY__MAX_BLOCK - 1)))
		uncommit(zone->pages, from);
}

static void ungrow(struct sy__zone *zone, uint64_t wanted)
{
	uint64_t from;

	while (zone->next_ungrown > wanted && (from = empty_from(zone)) < zone->next_ungrown)
		ungrow_from(zone, from);
}

/* Gives the only block addresses for this many pages. False: they are taken, and the block keeps the addresses that it has. */
static bool resize_block(struct sy_pages *pages, uint64_t wanted)
{
	const struct sy__zone *zone = &pages->zones[0];
	uint64_t least = zone->next_ungrown ? zone->next_ungrown : 1, count = within(least, wanted, SY__MAX_BLOCK);
	char *end = pages->base.memory + ((size_t)count << SY_PAGE_SHIFT);
	bool moved;

	if (count < sy__addressed(pages))
		forget(pages, count);
	moved = move_end(pages->memory_reserved, &pages->memory_bytes, end);
	if (moved && pages->base.known)
		__atomic_store_n(&pages->base.known, count, __ATOMIC_RELAXED);
	return moved;
}

static bool resize(struct sy_heap *heap, uint64_t wanted)
{
	struct sy_pages *pages = heap->pages;
	struct sy__zone *zone = &pages->zones[0];
	uint64_t before = zone->span >> SY_MAX_ORDER, grown, blocks;

	ungrow(zone, wanted);
	grown = whole_blocks(zone->next_ungrown) >> SY_MAX_ORDER;
	blocks = within(grown ? grown : 1, wanted >> SY_MAX_ORDER, pages->block_count);
	if (blocks < before && !shorten(heap, blocks))
		return false;
	if ((blocks == 1 || sy__addressed(pages) < SY__MAX_BLOCK) && !resize_block(pages, wanted))
		return false;
	return blocks <= before || extend_most(heap, before, blocks);
}

bool sy__reservation_resize(struct sy_heap *heap, size_t bytes)
{
	struct sy__zone *zone = &heap->pages->zones[0];
	bool done;

	if (!has_own_range(heap->pages))
		return false;
	sy__lock(&zone->lock);
	done = resize(heap, bytes / SY_PAGE_SIZE);
	sy__unlock(&zone->lock);
	return done;
}

/* Gives up pages that have not grown: their memory, and all descriptors of their maximal blocks. */
static void withdraw(struct sy_pages *pages, uint64_t from, uint64_t to)
{
	uint64_t block = whole_blocks(from), end = whole_blocks(to);

	forget(pages, block);
	sy__source_withdraw(pages->base.memory + ((size_t)from << SY_PAGE_SHIFT), (size_t)(to - from) << SY_PAGE_SHIFT);
	if (block < end)
		sy__source_withdraw(sy__page(pages, block), (size_t)(end - block) * sizeof(struct sy_page));
}

bool sy__reservation_withdraw(struct sy_heap *heap)
{
	struct sy__zone *zone = &heap->pages->zones[0];
	uint64_t before;
	bool done;

	if (!has_own_range(heap->pages))
		return false;
	sy__lock(&zone->lock);
	before = zone->next_ungrown;
	ungrow(zone, 0);
	done = zone->next_ungrown < before;
	if (done)
		withdraw(heap->pages, zone->next_ungrown, before);
	sy__unlock(&zone->lock);
	return done;
}

size_t sy__reservation_front(const struct sy_heap *heap)
{
	return (size_t)(heap->pages->base.memory - (char *)heap->pages->memory_reserved);
}

size_t sy__reservation_bytes(const struct sy_heap *heap)
{
	return heap->pages->memory_bytes + heap->pages->table_bytes;
}
