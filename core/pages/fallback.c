/*
 * When a migrate type has run out of free blocks: taking from another type, and the HighAtomic reserve. Linux 6.1.
 *
 * Which block. Types are tried in a fixed order for each type; orders from the largest down, since a request that takes a large
 * block will not be back soon, and what it leaves of it stays in one piece. A request for movable pages, which does little
 * harm wherever it lands as its pages can move, takes the smallest block instead unless one of at least half a pageblock's
 * order is there.
 *
 * How much. A block of a pageblock or more changes type as a whole. From a smaller one, an unmovable or reclaimable
 * request (and any request for a large enough block) takes all free pages of the pageblock; and when these, with the
 * pages in use that suit the new type, are half of the pageblock or more, the pageblock changes type too, so that frees
 * to come also return there. Pages in use suit a movable request if they are movable. They suit an unmovable or
 * reclaimable one if they are not, in a pageblock that so far was movable: nobody knows which of the two they are.
 * Otherwise only the block itself changes lists.
 *
 * Each fallback is an event, with its orders, types and whether the pageblock changed owner; it counts in the zone and is
 * handed on through the request, to be reported once no lock is held.
 *
 * Avoiding fragmentation. A request may exclude blocks below a pageblock's order from fallback (min_fallback), which makes it
 * look in a lower zone first; see alloc.c. Watermark boosting, Linux's third measure, only wakes its reclaim daemon, which
 * is not modelled.
 *
 * The reserve. An atomic request of order 1 or more that succeeds under pressure reserves its pageblock for its like, up
 * to 1% of the zone and a pageblock. Before a request would fail, the reserve is given up.
 *
 * Pretrace pages count as movable in movable pageblocks: nearly all of them are page cache and user memory there.
 */
#include "pages.h"

/* From which types a type takes, in order. No type takes from the reserve, nor does the reserve take from a type. */
static const uint8_t donors[SY__CPU_TYPES][2] = {
	[SY_UNMOVABLE] = { SY_RECLAIMABLE_TYPE, SY_MOVABLE_TYPE },
	[SY_MOVABLE_TYPE] = { SY_RECLAIMABLE_TYPE, SY_UNMOVABLE },
	[SY_RECLAIMABLE_TYPE] = { SY_UNMOVABLE, SY_MOVABLE_TYPE },
};

#define NO_DONOR SY_MIGRATE_TYPES

static unsigned find_donor(struct sy__zone *zone, unsigned order, const struct sy__request *request)
{
	const uint8_t *donor = donors[request->migrate];

	if (sy__zone_has(zone, order, donor[0], request->order))
		return donor[0];
	return sy__zone_has(zone, order, donor[1], request->order) ? donor[1] : NO_DONOR;
}

/* Whether a request of this type, finding a block of this order, takes the pageblock's other free pages too. */
static bool takes_pageblock(const struct sy_pages *pages, unsigned order, unsigned migrate)
{
	return migrate != SY_MOVABLE_TYPE || order >= pages->pageblock_order / 2;
}

void sy__set_pageblock_type(struct sy__zone *zone, uint64_t number, unsigned migrate)
{
	struct sy_pages *pages = zone->pages;
	unsigned old_type = sy__pageblock_type(pages, number);

	zone->pageblocks[old_type]--;
	zone->pageblocks[migrate]++;
	if (old_type == SY_HIGHATOMIC_TYPE)
		sy__subtract(&zone->highatomic_pages, (size_t)sy__pageblock_pages(pages));
	if (migrate == SY_HIGHATOMIC_TYPE)
		sy__add(&zone->highatomic_pages, (size_t)sy__pageblock_pages(pages));
	__atomic_store_n(&pages->pageblock_types[number >> pages->pageblock_order], (uint8_t)(migrate ^ SY_MOVABLE_TYPE),
	                 __ATOMIC_RELAXED);
}

/* All pageblocks of a block; the one that a smaller block lies in. */
static void set_pageblock_types(struct sy__zone *zone, const struct sy_page *page, unsigned migrate)
{
	uint64_t number = sy__number(zone->pages, page), end = number + ((uint64_t)1 << page->order);

	for (; number < end; number += sy__pageblock_pages(zone->pages))
		sy__set_pageblock_type(zone, number, migrate);
}

struct pageblock_pages {
	uint64_t free, movable; /* movable: in use, and their owner lets them move */
};

/* Moves all free pages of the pageblock around a page to the lists of a type. None when the zone ends inside. Where it has grown in
 * part, the rest counts as free: it will be on the lists of the pageblock's type. */
static struct pageblock_pages move_pageblock(struct sy__zone *zone, uint64_t number, unsigned migrate)
{
	struct sy_pages *pages = zone->pages;
	struct pageblock_pages found = { 0, 0 };
	bool pretrace_movable = sy__pageblock_type(pages, number) == SY_MOVABLE_TYPE;
	uint64_t at = number & ~(sy__pageblock_pages(pages) - 1);
	uint64_t end = at + sy__pageblock_pages(pages);
	uint64_t size;

	if (end > zone->start + zone->span)
		return found;
	if (at < zone->next_ungrown && zone->next_ungrown < end) {
		found.free = end - zone->next_ungrown;
		end = zone->next_ungrown;
	}
	for (; at < end; at += size) {
		struct sy_page *page = sy__page(pages, at);
		unsigned use = sy__use(page);

		size = use == SY_USE_PRETRACE ? 1 : (uint64_t)1 << page->order;
		if (use == SY_USE_FREE) {
			sy__zone_move_last(zone, page, migrate);
			found.free += size;
		} else if (use == SY_USE_PRETRACE) {
			found.movable += pretrace_movable;
		} else if (use == SY_USE_ENVIRONMENT && sy__migrate(page) == SY_MOVABLE_TYPE) {
			found.movable += size;
		}
	}
	return found;
}

/* Pages in use that suit the new type, as far as one can know. */
static uint64_t suitable_pages(const struct sy_pages *pages, struct pageblock_pages found, unsigned old_type,
                               unsigned migrate)
{
	if (migrate == SY_MOVABLE_TYPE)
		return found.movable;
	if (old_type == SY_MOVABLE_TYPE)
		return sy__pageblock_pages(pages) - found.free - found.movable;
	return 0;
}

static void take_over(struct sy__zone *zone, struct sy_page *page, unsigned migrate)
{
	struct sy_pages *pages = zone->pages;
	uint64_t number = sy__number(pages, page);
	unsigned old_type = sy__pageblock_type(pages, number);
	struct pageblock_pages found = { 0, 0 };

	if (old_type != SY_HIGHATOMIC_TYPE && page->order >= pages->pageblock_order) {
		set_pageblock_types(zone, page, migrate);
	} else if (old_type != SY_HIGHATOMIC_TYPE && takes_pageblock(pages, page->order, migrate)) {
		found = move_pageblock(zone, number, migrate);
		if (found.free &&
		    found.free + suitable_pages(pages, found, old_type, migrate) >= sy__pageblock_pages(pages) / 2)
			sy__set_pageblock_type(zone, number, migrate);
	}
	if (!found.free)
		sy__zone_move_last(zone, page, migrate);
}

static void count_event(struct sy__zone *zone, const struct sy__request *request, const struct sy_page *page,
                        unsigned order, unsigned donor)
{
	uint64_t number = sy__number(zone->pages, page);
	bool changed = sy__pageblock_type(zone->pages, number) == request->migrate;

	zone->fallbacks++;
	zone->fallbacks_changing += changed;
	request->events->list[request->events->count++] = (struct sy_fallback_event){
		.page = number,
		.alloc_order = (uint8_t)request->order,
		.fallback_order = (uint8_t)order,
		.alloc_migrate = request->migrate,
		.fallback_migrate = (uint8_t)donor,
		.change_ownership = changed,
		.zone = zone->index,
	};
}

/* Whether the request's own type has a block. */
static bool has_own(const struct sy__zone *zone, const struct sy__request *request)
{
	unsigned order = request->order;

	while (order < SY_ORDERS && !zone->free[order][request->migrate].first)
		order++;
	return order < SY_ORDERS;
}

/* Moves a block of another type to the request's lists, unless the zone can grow by pages of the request's. False: no type has one. */
static bool fall_back(struct sy__zone *zone, const struct sy__request *request)
{
	unsigned least = request->order > request->min_fallback ? request->order : request->min_fallback;
	unsigned order = SY_MAX_ORDER, donor;
	uint64_t grown = zone->next_ungrown;
	struct sy_page *page;

	while ((donor = find_donor(zone, order, request)) == NO_DONOR) {
		if (zone->next_ungrown != grown && has_own(zone, request))
			return true;
		if (order-- == least)
			return false;
	}
	if (!takes_pageblock(zone->pages, order, request->migrate) && order > request->order) {
		order = request->order;
		while ((donor = find_donor(zone, order, request)) == NO_DONOR)
			order++;
	}
	page = zone->free[order][donor].first;
	take_over(zone, page, request->migrate);
	count_event(zone, request, page, order, donor);
	return true;
}

struct sy_page *sy__zone_take(struct sy__zone *zone, const struct sy__request *request)
{
	struct sy_page *page = sy__zone_smallest(zone, request->order, request->migrate);

	if (sy__unlikely(!page) && fall_back(zone, request))
		page = sy__zone_smallest(zone, request->order, request->migrate);
	return page;
}

/* ---- The HighAtomic reserve ------------------------------------------------------------------------------------- */

void sy__highatomic_reserve(struct sy__zone *zone, const struct sy_page *page)
{
	struct sy_pages *pages = zone->pages;
	uint64_t number = sy__number(pages, page);
	uint64_t most = zone->managed / 100 + sy__pageblock_pages(pages);

	sy__lock(&zone->lock);
	if (zone->highatomic_pages < most && sy__pageblock_type(pages, number) < SY__CPU_TYPES) {
		sy__set_pageblock_type(zone, number, SY_HIGHATOMIC_TYPE);
		move_pageblock(zone, number, SY_HIGHATOMIC_TYPE);
	}
	sy__unlock(&zone->lock);
}

/* Gives up the pageblock around a block of the reserve. A block that filled it may join with its neighbours now. */
static void unreserve_pageblock(struct sy__zone *zone, struct sy_page *page, unsigned migrate)
{
	unsigned order = page->order;

	set_pageblock_types(zone, page, migrate);
	if (order >= zone->pages->pageblock_order) {
		sy__blocks_remove(&zone->free[order][SY_HIGHATOMIC_TYPE], page);
		sy__zone_loses(zone, page, order);
		sy__zone_free(zone, page, order, migrate);
	} else if (!move_pageblock(zone, sy__number(zone->pages, page), migrate).free) {
		sy__zone_move_last(zone, page, migrate);
	}
}

bool sy__highatomic_unreserve(struct sy__zone *zone, unsigned migrate)
{
	struct sy_page *page = NULL;
	unsigned order;

	sy__lock(&zone->lock);
	for (order = 0; order < SY_ORDERS && !page; order++)
		page = zone->free[order][SY_HIGHATOMIC_TYPE].first;
	if (page)
		unreserve_pageblock(zone, page, migrate);
	sy__unlock(&zone->lock);
	return page != NULL;
}
