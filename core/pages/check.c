/*
 * Verifying every invariant of the page allocator (see pages.h), for tests and debugging. Nobody else may be using it.
 *
 * Each zone is examined twice, and both views must agree. In address order, block by block, every page must be accounted for.
 * Along the lists, every link must lead to a block of that list. Both views must count the same number of blocks of each
 * order and type, so each free block is on its list exactly once; likewise for the per-CPU lists.
 *
 * Only the bitmap tells pretrace pages: their descriptors must never have been touched.
 */
#include "pages.h"

/* What walking a zone in address order finds. */
struct findings {
	uint64_t used[SY_USES];
	uint64_t free_blocks[SY_ORDERS][SY_MIGRATE_TYPES];
};

static bool is_reserved(const struct sy_pages *pages, uint64_t number)
{
	return sy__pageblock_type(pages, number) == SY_HIGHATOMIC_TYPE ||
	       sy__migrate(sy__page(pages, number)) == SY_HIGHATOMIC_TYPE;
}

static const char *check_free_block(const struct sy__zone *zone, uint64_t number, uint64_t end)
{
	const struct sy_pages *pages = zone->pages;
	unsigned order = sy__page(pages, number)->order;
	uint64_t buddy = number ^ (uint64_t)1 << order;

	if (order == SY_MAX_ORDER || buddy + ((uint64_t)1 << order) > end)
		return NULL;
	if (zone->populated && !sy__pretrace_gone(pages, buddy))
		return NULL;
	if (sy__use(sy__page(pages, buddy)) != SY_USE_FREE || sy__page(pages, buddy)->order != order)
		return NULL;
	if (order >= pages->pageblock_order && (is_reserved(pages, number) || is_reserved(pages, buddy)))
		return NULL;
	return "a block and its buddy are both free";
}

static const char *check_block(const struct sy__zone *zone, uint64_t number, uint64_t end, struct findings *found)
{
	const struct sy_page *page = sy__page(zone->pages, number);
	unsigned use = sy__use(page), order = page->order, type = sy__migrate(page);
	const char *error;

	if (use == SY_USE_PRETRACE || use >= SY_USES)
		return "a page that should head a block has no use";
	if (order > SY_MAX_ORDER || number & (((uint64_t)1 << order) - 1))
		return "a block is not aligned to its size";
	if (number + ((uint64_t)1 << order) > end)
		return "a block reaches beyond its zone";
	if (type >= SY_MIGRATE_TYPES)
		return "a block has no migrate type";
	if (use == SY_USE_CPU_LIST && order >= SY_CPU_LIST_ORDERS)
		return "a block is too large for the per-CPU lists";
	if (use > SY_USE_CPU_LIST && sy__page(zone->pages, number)->zone != zone->index)
		return "a block in use belongs to another zone";
	if ((use == SY_USE_ENVIRONMENT) != (page->heap == NULL) && use > SY_USE_CPU_LIST)
		return "a block in use has no heap, or one of the environment has one";
	if (zone->told && (error = zone->pages->hooks->agrees(zone, number, order, use == SY_USE_FREE)))
		return error;
	found->used[use] += (uint64_t)1 << order;
	if (use != SY_USE_FREE)
		return NULL;
	found->free_blocks[order][type]++;
	return check_free_block(zone, number, end);
}

static const char *check_range(const struct sy__zone *zone, uint64_t number, uint64_t end, struct findings *found)
{
	const struct sy_pages *pages = zone->pages;
	const char *error = NULL;

	while (number < end && !error) {
		if (zone->populated && number % 64 == 0 && end - number >= 64 && !pages->page_bits[number / 64]) {
			found->used[SY_USE_PRETRACE] += 64;
			number += 64;
		} else if (zone->populated && !sy__pretrace_gone(pages, number)) {
			found->used[SY_USE_PRETRACE]++;
			number++;
		} else {
			error = check_block(zone, number, end, found);
			number += (uint64_t)1 << sy__page(pages, number)->order % SY_ORDERS;
		}
	}
	return error;
}

static const char *check_blocks(const struct sy__zone *zone, struct findings *found)
{
	uint64_t end = zone->start + zone->present;
	uint64_t grown = zone->populated ? end : zone->next_ungrown;
	uint64_t remainder = zone->start + (zone->managed & ~(SY__MAX_BLOCK - 1));
	const char *error = check_range(zone, zone->start, grown, found);

	if (!error && !zone->populated)
		error = check_range(zone, remainder, end, found);
	found->used[SY_USE_PRETRACE] += zone->span - zone->present;
	return error;
}

static const char *check_list(const struct sy__zone *zone, const struct sy__blocks *list, unsigned use, unsigned order,
                              unsigned type)
{
	const struct sy_page *page, *before = NULL;
	size_t count = 0;

	for (page = list->first; page && count <= list->count; before = page, page = page->free.next) {
		uint64_t number = sy__number(zone->pages, page);

		if (number < zone->start || number >= zone->start + zone->span)
			return "a list leads out of its zone";
		if (page->free.prev != before)
			return "the links of a list disagree";
		if (sy__use(page) != use || page->order != order)
			return "a block is on a list of another use or order";
		if (type < SY_MIGRATE_TYPES && sy__migrate(page) != type)
			return "a block is on the list of another migrate type";
		count++;
	}
	if (count != list->count || list->last != before)
		return "a list's count or end is wrong";
	return NULL;
}

static const char *check_free_lists(const struct sy__zone *zone, const struct findings *found)
{
	const char *error = NULL;
	unsigned order, type;

	for (order = 0; order < SY_ORDERS; order++)
		for (type = 0; type < SY_MIGRATE_TYPES && !error; type++) {
			error = check_list(zone, &zone->free[order][type], SY_USE_FREE, order, type);
			if (!error && zone->free[order][type].count != found->free_blocks[order][type])
				error = "a free block is on no list";
		}
	return error;
}

/* A block of the reserve waits on the movable list with its own type, hence movable lists may hold any type. */
static const char *check_cpu_list(const struct sy__zone *zone, const struct sy__cpu_list *cpu, struct findings *listed)
{
	const char *error = NULL;
	uint64_t pages = 0;
	unsigned index;

	for (index = 0; index < SY__CPU_LISTS && !error; index++) {
		unsigned order = index / SY__CPU_TYPES, type = index % SY__CPU_TYPES;

		pages += (uint64_t)cpu->lists[index].count << order;
		error = check_list(zone, &cpu->lists[index], SY_USE_CPU_LIST, order,
		                   type == SY_MOVABLE_TYPE ? SY_MIGRATE_TYPES : type);
	}
	if (!error && pages != cpu->pages)
		error = "a per-CPU list's count of pages is wrong";
	listed->used[SY_USE_CPU_LIST] += pages;
	return error;
}

/* The zone's counters by use, with what the slots changed. */
static const char *check_counters(const struct sy__zone *zone, const struct findings *found)
{
	uint64_t ungrown = sy__zone_ungrown(zone), sum = ungrown;
	unsigned use, slot;

	for (use = 0; use < SY_USES; use++) {
		int64_t used = zone->used[use];

		for (slot = 0; zone->cpu && slot < zone->pages->slots; slot++)
			used += zone->cpu[slot].used[use];
		if (used < 0 || (uint64_t)used != found->used[use])
			return "a counter of pages by use is wrong";
		sum += (uint64_t)used;
	}
	if (sum != zone->span)
		return "the pages by use do not add up to the zone";
	if (zone->free_pages != found->used[SY_USE_FREE] + ungrown)
		return "the count of free pages is wrong";
	return zone->pages->hooks ? zone->pages->hooks->checks(zone, found->used[SY_USE_PRETRACE]) : NULL;
}

static const char *check_pageblocks(const struct sy__zone *zone)
{
	const struct sy_pages *pages = zone->pages;
	uint64_t count[SY_MIGRATE_TYPES] = { 0 };
	uint64_t end = zone->start + (zone->populated ? zone->present : zone->span), number;
	unsigned type;

	for (number = zone->start; number < end; number += sy__pageblock_pages(pages)) {
		type = sy__pageblock_type(pages, number);
		if (type >= SY_MIGRATE_TYPES)
			return "a pageblock has no migrate type";
		count[type]++;
	}
	for (type = 0; type < SY_MIGRATE_TYPES; type++)
		if (count[type] != zone->pageblocks[type])
			return "a count of pageblocks by type is wrong";
	if (zone->highatomic_pages != count[SY_HIGHATOMIC_TYPE] << pages->pageblock_order)
		return "the count of the HighAtomic reserve is wrong";
	return NULL;
}

static const char *check_zone(const struct sy__zone *zone)
{
	struct findings found = { { 0 }, { { 0 } } }, listed = { { 0 }, { { 0 } } };
	const char *error = check_blocks(zone, &found);
	unsigned slot;

	if (!error)
		error = check_free_lists(zone, &found);
	for (slot = 0; zone->cpu && slot < zone->pages->slots && !error; slot++)
		error = check_cpu_list(zone, &zone->cpu[slot], &listed);
	if (!error && listed.used[SY_USE_CPU_LIST] != found.used[SY_USE_CPU_LIST])
		error = "a block that waits for a CPU is on no per-CPU list";
	if (!error)
		error = check_counters(zone, &found);
	return error ? error : check_pageblocks(zone);
}

/* Marks of memory that heaps had, counted again. */
static uint64_t count_backed(const struct sy_pages *pages)
{
	uint64_t block, backed = 0, i;

	for (block = 0; block < pages->block_count; block++)
		for (i = 0; *sy__committed(pages, block << SY_MAX_ORDER) && i < SY__MAX_BLOCK; i++)
			backed += sy__page(pages, (block << SY_MAX_ORDER) + i)->flags & SY__PAGE_BACKED;
	return backed;
}

static size_t count_described(const struct sy_pages *pages)
{
	size_t count = 0;

	for (uint64_t block = 0; block < pages->block_count; block++) {
		unsigned state = sy__committed_state(*sy__committed(pages, block << SY_MAX_ORDER));

		count += state == SY__COMMITTED || state == SY__REUSED;
	}
	return count;
}

const char *sy_pages_check(struct sy_pages *pages)
{
	const char *error = NULL;
	unsigned i;

	for (i = 0; i < pages->zone_count && !error; i++)
		error = check_zone(&pages->zones[i]);
	if (!error && count_backed(pages) != pages->committed_pages)
		error = "the count of committed pages is wrong";
	if (!error && count_described(pages) != pages->described)
		error = "the count of blocks with descriptors is wrong";
	return error;
}
