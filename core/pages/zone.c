/*
 * The buddies of one zone: free lists, splitting, joining, growth. Everything here runs with the zone's lock held.
 *
 * A zone grows by maximal blocks. Where the source has no memory for a whole one, as under a limit to the program's data, it grows by
 * parts of one, from its start on. The parts join like other blocks.
 *
 * sy__zone_smallest takes the first block of the smallest sufficient order of one migrate type, and halves it until it fits.
 * sy__zone_free is its inverse: a freed block joins its buddy while that is free. The result goes to the front of its list, to be
 * used next while the processor's caches are warm. But if the buddy of the next larger block is free already, it will likely join
 * soon. Then it goes to the back, so that it is not handed out just before.
 *
 * Where free blocks have ages, as free memory decays there, blocks without memory are at the back instead, and the smallest block with
 * memory is taken before a smaller one without. Otherwise a program that allocates and frees all its memory again and again would
 * need ever more. A block may have memory in part, so a split checks the half that stays free. What a program uses after a peak
 * is then part of one large block that does not go back, and of no more than one.
 *
 * Pageblocks reserved for HighAtomic requests do not join others: the reserve would leak away.
 *
 * The use of a page is written at heads of blocks only. Joining leaves stale words inside blocks. Nobody reads them: a buddy's
 * order is at most ours, so a block must start where it is looked up.
 */
#include "pages.h"

#define LOOK_ORDER 5u /* smaller blocks are not checked for memory when they are split */

static void set_free(struct sy_page *page, unsigned order, unsigned migrate)
{
	sy__set_use(page, SY_USE_FREE);
	page->order = (uint8_t)order;
	sy__set_migrate(page, migrate);
}

void sy__zone_add_first(struct sy__zone *zone, struct sy_page *page, unsigned order, unsigned migrate)
{
	set_free(page, order, migrate);
	sy__blocks_add_first(&zone->free[order][migrate], page);
}

void sy__zone_add_last(struct sy__zone *zone, struct sy_page *page, unsigned order, unsigned migrate)
{
	set_free(page, order, migrate);
	sy__blocks_add_last(&zone->free[order][migrate], page);
}

void sy__zone_move_last(struct sy__zone *zone, struct sy_page *page, unsigned migrate)
{
	sy__blocks_remove(&zone->free[page->order][sy__migrate(page)], page);
	sy__zone_add_last(zone, page, page->order, migrate);
}

bool sy__zone_describe(struct sy_pages *pages, uint64_t number, uint64_t count)
{
	uint64_t known = __atomic_load_n(&pages->base.known, __ATOMIC_RELAXED), end = number + count;

	if (!pages->in_buffer && sy__source_commit(sy__page(pages, number), (size_t)count * sizeof(struct sy_page)) != 0)
		return false;
	end = end < sy__addressed(pages) ? end : sy__addressed(pages);
	while (known < end && !__atomic_compare_exchange_n(&pages->base.known, &known, end, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
	return true;
}

static bool commit_descriptors(struct sy_pages *pages, uint64_t number)
{
	return sy__zone_describe(pages, number, SY__MAX_BLOCK);
}

uint8_t sy__prefer_huge(struct sy_pages *pages, uint64_t start)
{
	return pages->hooks ? pages->hooks->prefer_huge(pages, start) : 0;
}

static bool has_memory(const struct sy_pages *pages, const uint8_t *committed)
{
	return pages->in_buffer || __atomic_load_n(committed, __ATOMIC_RELAXED);
}

static bool take_memory(struct sy_pages *pages, uint64_t number, uint64_t count)
{
	return number + count <= sy__addressed(pages) &&
	       sy__source_commit(pages->base.memory + ((size_t)number << SY_PAGE_SHIFT), (size_t)count << SY_PAGE_SHIFT) == 0;
}

/* With source_lock held. */
static bool is_allowed(const struct sy_pages *pages)
{
	return sy__source_allows((pages->described + 1) * ((size_t)SY__MAX_BLOCK << SY_PAGE_SHIFT));
}

/* With source_lock held. */
static void set_committed(struct sy_pages *pages, uint8_t *committed, unsigned flags)
{
	if (__atomic_load_n(committed, __ATOMIC_RELAXED))
		return;
	__atomic_store_n(committed, (uint8_t)(SY__COMMITTED | flags), __ATOMIC_RELEASE);
	sy__add(&pages->described, 1);
}

/* `committed` guards the mapping, which the operating system changes for all processors at once. The acquire keeps accesses to the
 * memory behind the load of the word; the release keeps the change of the mapping before its store. Later changes of the word come
 * from owners of the memory: relaxed, under source_lock, and never back to uncommitted. */
bool sy__commit_memory(struct sy_pages *pages, uint64_t number)
{
	uint8_t *committed = sy__committed(pages, number);
	uint64_t start = number & ~(SY__MAX_BLOCK - 1);
	bool done;

	if (sy__likely(__atomic_load_n(committed, __ATOMIC_ACQUIRE)))
		return true;
	sy__lock(&pages->source_lock);
	done = has_memory(pages, committed) || (is_allowed(pages) && take_memory(pages, start, SY__MAX_BLOCK));
	if (done && !__atomic_load_n(committed, __ATOMIC_RELAXED))
		set_committed(pages, committed, sy__prefer_huge(pages, start));
	sy__unlock(&pages->source_lock);
	return done;
}

/* Pages of a block that have not grown are on no list. So `committed` says that all those have memory that anybody can get. */
bool sy__commit_part(struct sy_pages *pages, uint64_t number, uint64_t count)
{
	uint8_t *committed = sy__committed(pages, number);
	bool done;

	sy__lock(&pages->source_lock);
	done = (has_memory(pages, committed) || is_allowed(pages)) && take_memory(pages, number, count);
	if (done)
		set_committed(pages, committed, 0);
	sy__unlock(&pages->source_lock);
	return done;
}

/* How many pages from this one on the zone can grow by, of the same maximal block; 0: there is no memory. */
static uint64_t growth(struct sy_pages *pages, uint64_t number, unsigned least)
{
	uint64_t within = number & (SY__MAX_BLOCK - 1);

	if (!within && !commit_descriptors(pages, number))
		return 0;
	return pages->hooks ? pages->hooks->may_grow(pages, number, least) : SY__MAX_BLOCK - within;
}

static void grow_whole(struct sy__zone *zone, uint64_t number)
{
	sy__zone_add_last(zone, sy__page(zone->pages, number), SY_MAX_ORDER, SY_MOVABLE_TYPE);
	if (sy__unlikely(zone->told))
		zone->pages->hooks->free_changed(zone, number, SY_MAX_ORDER, true);
}

/* These pages counted as free already. For a moment they do twice: with too few a request without the lock might give up. */
static void grow_part(struct sy__zone *zone, uint64_t number, uint64_t end)
{
	unsigned order;

	for (uint64_t at = number; at < end; at += (uint64_t)1 << order) {
		order = sy__run_order(at, end - at);
		sy__zone_free_aged(zone, sy__page(zone->pages, at), order, sy__pageblock_type(zone->pages, at), 0);
	}
	sy__subtract(&zone->free_pages, (size_t)(end - number));
}

bool sy__zone_grow(struct sy__zone *zone, unsigned least)
{
	uint64_t number = zone->next_ungrown, count = zone->ungrown_blocks ? growth(zone->pages, number, least) : 0;

	if (!count)
		return false;
	zone->next_ungrown += count;
	zone->used[SY_USE_FREE] += (int64_t)count;
	if (!(zone->next_ungrown & (SY__MAX_BLOCK - 1)))
		sy__subtract(&zone->ungrown_blocks, 1);
	if (count == SY__MAX_BLOCK)
		grow_whole(zone, number);
	else
		grow_part(zone, number, number + count);
	if (zone->pages->hooks)
		zone->pages->hooks->grown(zone);
	return true;
}

bool sy__zone_has(struct sy__zone *zone, unsigned order, unsigned migrate, unsigned least)
{
	const struct sy__blocks *list = &zone->free[order][migrate];

	return list->first || (order == SY_MAX_ORDER && migrate == SY_MOVABLE_TYPE && sy__zone_grow(zone, least) && list->first);
}

/* The smallest order from `order` on whose first block has memory; more than SY_MAX_ORDER: none. */
static unsigned backed_order(const struct sy__zone *zone, unsigned order, unsigned migrate)
{
	while (order <= SY_MAX_ORDER && !(zone->free[order][migrate].first && zone->free[order][migrate].first->bytes))
		order++;
	return order;
}

/* Whether some of a block has memory; small blocks count as if they had. */
static bool may_be_backed(const struct sy_page *block, unsigned order)
{
	size_t pages = (size_t)1 << order, at = 0;

	if (order < LOOK_ORDER)
		return true;
	while (at < pages && !(block[at].flags & SY__PAGE_BACKED))
		at++;
	return at < pages;
}

struct sy_page *sy__zone_smallest(struct sy__zone *zone, unsigned order, unsigned migrate)
{
	struct sy_page *page;
	unsigned at = zone->pages->ages ? backed_order(zone, order, migrate) : order;
	uint64_t since, grown = zone->next_ungrown;

	if (at > SY_MAX_ORDER)
		at = order;
	while (!sy__zone_has(zone, at, migrate, order)) {
		if (++at <= SY_MAX_ORDER)
			continue;
		if (zone->next_ungrown == grown)
			return NULL;
		grown = zone->next_ungrown; /* it grew by a part */
		at = order;
	}
	page = zone->free[at][migrate].first;
	sy__blocks_remove(&zone->free[at][migrate], page);
	since = page->bytes;
	while (at > order) {
		at--;
		page[(size_t)1 << at].bytes = since && may_be_backed(page + ((size_t)1 << at), at) ? since : 0;
		sy__zone_add_first(zone, page + ((size_t)1 << at), at, migrate);
	}
	page->order = (uint8_t)order;
	sy__zone_loses(zone, page, order);
	return page;
}

/* The buddy of a block, if it is free as a whole; else NULL. It lies in the same maximal block, hence has a descriptor. */
static struct sy_page *free_buddy(struct sy_pages *pages, uint64_t number, unsigned order)
{
	struct sy_page *buddy = sy__page(pages, number ^ (uint64_t)1 << order);

	return sy__use(buddy) == SY_USE_FREE && buddy->order == order ? buddy : NULL;
}

/* Whole pageblocks do not join when one of them is reserved. */
static bool may_join(struct sy_pages *pages, const struct sy_page *buddy, unsigned order, unsigned migrate)
{
	unsigned other;

	if (order < pages->pageblock_order)
		return true;
	other = sy__pageblock_type(pages, sy__number(pages, buddy));
	return migrate == other || (migrate < SY__CPU_TYPES && other < SY__CPU_TYPES);
}

static bool likely_to_join(struct sy_pages *pages, uint64_t number, unsigned order)
{
	return order + 2 <= SY_MAX_ORDER && free_buddy(pages, number & ~((uint64_t)1 << order), order + 1);
}

/* Whether a block should be handed out late: it may soon join, or, where blocks have ages, it has no memory. */
static bool belongs_last(struct sy_pages *pages, const struct sy_page *page, unsigned order)
{
	return pages->ages ? !page->bytes : likely_to_join(pages, sy__number(pages, page), order);
}

void sy__zone_free_aged(struct sy__zone *zone, struct sy_page *page, unsigned order, unsigned migrate, uint64_t since)
{
	struct sy_pages *pages = zone->pages;
	uint64_t number = sy__number(pages, page);
	struct sy_page *buddy;

	sy__zone_gains(zone, page, order);
	while (order < SY_MAX_ORDER) {
		buddy = free_buddy(pages, number, order);
		if (!buddy || !may_join(pages, buddy, order, migrate))
			break;
		if (since < buddy->bytes)
			since = buddy->bytes;
		sy__blocks_remove(&zone->free[order][sy__migrate(buddy)], buddy);
		number &= ~((uint64_t)1 << order);
		order++;
	}
	page = sy__page(pages, number);
	page->bytes = since;
	if (belongs_last(pages, page, order))
		sy__zone_add_last(zone, page, order, migrate);
	else
		sy__zone_add_first(zone, page, order, migrate);
}

void sy__zone_free(struct sy__zone *zone, struct sy_page *page, unsigned order, unsigned migrate)
{
	sy__zone_free_aged(zone, page, order, migrate, sy__time(&zone->pages->clock));
}

/* The last managed pages, fewer than a maximal block: grown at once, as smaller blocks. Without memory for their descriptors
 * they are never managed. */
static void start_remainder(struct sy__zone *zone, uint64_t number, uint64_t count)
{
	struct sy_pages *pages = zone->pages;
	unsigned order = SY_MAX_ORDER;

	if (!commit_descriptors(pages, number)) {
		zone->managed -= count;
		zone->present -= count;
		return;
	}
	zone->used[SY_USE_FREE] = (int64_t)count;
	while (order-- > 0)
		if (count & (uint64_t)1 << order) {
			sy__zone_add_last(zone, sy__page(pages, number), order, SY_MOVABLE_TYPE);
			number += (uint64_t)1 << order;
		}
}

void sy__zone_start(struct sy__zone *zone)
{
	uint64_t remainder = zone->managed % SY__MAX_BLOCK;

	zone->present = zone->managed;
	zone->next_ungrown = zone->start;
	zone->ungrown_blocks = (size_t)(zone->managed / SY__MAX_BLOCK);
	zone->pageblocks[SY_MOVABLE_TYPE] = (zone->span + sy__pageblock_pages(zone->pages) - 1) >> zone->pages->pageblock_order;
	if (remainder)
		start_remainder(zone, zone->start + zone->managed - remainder, remainder);
	zone->free_pages = (size_t)zone->managed;
	zone->used[SY_USE_PRETRACE] = (int64_t)(zone->span - zone->managed);
}

void sy__zone_clear(struct sy__zone *zone)
{
	struct sy_pages *pages = zone->pages;
	uint64_t end = zone->start + zone->span;
	uint64_t first = zone->start >> pages->pageblock_order;
	uint64_t last = (end - 1) >> pages->pageblock_order;
	unsigned order, type;
	struct sy_page *page;

	for (order = 0; order < SY_ORDERS; order++)
		for (type = 0; type < SY_MIGRATE_TYPES; type++)
			while ((page = zone->free[order][type].first)) {
				sy__blocks_remove(&zone->free[order][type], page);
				sy__fill(page, 0, sizeof(*page));
			}
	sy__fill(&pages->pageblock_types[first], 0, (size_t)(last - first + 1));
	sy__fill(&pages->page_bits[zone->start / 64], 0, (size_t)((end - zone->start + 63) / 64) * sizeof(uint64_t));
	sy__fill(zone->pageblocks, 0, sizeof(zone->pageblocks));
	sy__fill(zone->used, 0, sizeof(zone->used));
	zone->free_pages = 0;
	zone->highatomic_pages = 0;
	zone->ungrown_blocks = 0;
	zone->populated = false;
	zone->told = false;
}
