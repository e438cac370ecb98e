/*
 * Populating a zone: starting it in the state that a kernel reported. The report has the number of free blocks of each order and
 * type and the number of pageblocks of each type. All other pages are pretrace pages (pretrace.c). The report does not say where
 * blocks lie; this file decides that.
 *
 * The rule. No free block may have a free buddy of its own order, or the next free would join what was apart in the kernel.
 *
 * Pageblocks. Each type first gets whole maximal blocks, which its largest free blocks need, then single pageblocks. A walk over
 * the zone in steps of about 0.618 of it decides which maximal block goes to which type, and in what order they are used later:
 * a fixed order in which successive blocks are far apart. Pageblocks that the report does not count are holes at the end of the
 * zone, as on a PC below 4 GiB.
 *
 * Free blocks. Each type has a pool of regions: aligned runs of its pageblocks in which nothing is free. Orders are placed from
 * the largest down. A block of order k comes from the largest region, which is halved until one half is the block. The other
 * halves go back to the pool, the last one as a region of order k. That region gets smaller blocks only, since every other block
 * of order k is cut from a region larger than k. So the rule holds by construction. Each block costs its pool exactly its own
 * size twice, until the next smaller order. So choosing the largest region, which spreads blocks evenly, never spoils a
 * placement that another choice would allow. A region of a single pageblock's order k may become a block of order k as a whole
 * if its buddy is not free. A mix of the region's address decides which half becomes the block, so that blocks do not all lie
 * at lower ends.
 *
 * A type whose pool is too small uses the others' pools, largest first. Free blocks whose type differs from their pageblock's are
 * normal, since fallback moves single blocks. When all pools are too small, the counts do not fit.
 *
 * Regions live in a table of their own, which is released at the end. Only free blocks get descriptors.
 */
#include "free_page_map.h"
#include "pretrace.h"

#define NONE UINT32_MAX

struct region {
	uint64_t page; /* frame number */
	uint32_t next; /* in its queue, or among the unused entries */
};

struct queue {
	uint32_t first, last;
};

struct placement {
	struct sy__zone *zone;
	struct region *regions;
	size_t bytes;                       /* of regions */
	uint32_t used, unused, capacity;    /* entries: ever used; first of a list of those to use again */
	struct queue pool[SY_MIGRATE_TYPES][SY_ORDERS];
	uint64_t pageblocks[SY_MIGRATE_TYPES]; /* still to be placed */
	uint64_t whole, at, step;           /* walk over the zone's maximal blocks */
};

/* ---- Queues of regions -------------------------------------------------------------------------------------------- */

static void put(struct placement *p, unsigned type, unsigned order, uint64_t page)
{
	struct queue *queue = &p->pool[type][order];
	uint32_t entry = p->unused;

	if (entry != NONE)
		p->unused = p->regions[entry].next;
	else
		entry = p->used++;
	p->regions[entry] = (struct region){ page, NONE };
	if (queue->first == NONE)
		queue->first = entry;
	else
		p->regions[queue->last].next = entry;
	queue->last = entry;
}

static uint64_t get(struct placement *p, unsigned type, unsigned order)
{
	struct queue *queue = &p->pool[type][order];
	uint32_t entry = queue->first;

	queue->first = p->regions[entry].next;
	p->regions[entry].next = p->unused;
	p->unused = entry;
	return p->regions[entry].page;
}

/* ---- Pageblocks --------------------------------------------------------------------------------------------------- */

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
	while (b) {
		uint64_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

static void start_walk(struct placement *p, uint64_t whole)
{
	p->whole = whole;
	p->at = 0;
	p->step = whole * 5 / 8 | 1;
	while (whole && common_divisor(p->step, whole) != 1)
		p->step += 2;
}

static uint64_t next_whole(struct placement *p)
{
	uint64_t page = p->zone->start + (p->at << SY_MAX_ORDER);

	p->at = (p->at + p->step) % p->whole;
	return page;
}

static void assign(struct placement *p, uint64_t page, uint64_t pageblocks, unsigned type)
{
	unsigned shift = p->zone->pages->pageblock_order;
	uint64_t i;

	for (i = 0; i < pageblocks; i++)
		p->zone->pages->pageblock_types[(page >> shift) + i] = (uint8_t)(type ^ SY_MOVABLE_TYPE);
	p->zone->pageblocks[type] += pageblocks;
	p->pageblocks[type] -= pageblocks;
}

/* Puts a range of one type into its pool, as aligned regions. */
static void add_range(struct placement *p, uint64_t page, uint64_t end, unsigned type)
{
	while (page < end) {
		unsigned order = 0;

		while (order < SY_MAX_ORDER && !(page & (uint64_t)1 << order) && page + ((uint64_t)2 << order) <= end)
			order++;
		put(p, type, order, page);
		page += (uint64_t)1 << order;
	}
}

/* Puts pageblocks that have their types into the pools, each run of one type apart. */
static void add_regions(struct placement *p, uint64_t page, uint64_t pageblocks)
{
	uint64_t size = sy__pageblock_pages(p->zone->pages), end = page + pageblocks * size, run;

	for (; page < end; page = run) {
		unsigned type = sy__pageblock_type(p->zone->pages, page);

		run = page + size;
		while (run < end && sy__pageblock_type(p->zone->pages, run) == type)
			run += size;
		add_range(p, page, run, type);
	}
}

/* Divides pageblocks among the types that still lack some. */
static void share(struct placement *p, uint64_t page, uint64_t pageblocks)
{
	unsigned type;

	for (type = 0; type < SY_MIGRATE_TYPES && pageblocks; type++) {
		uint64_t part = p->pageblocks[type] < pageblocks ? p->pageblocks[type] : pageblocks;

		assign(p, page, part, type);
		page += part << p->zone->pages->pageblock_order;
		pageblocks -= part;
	}
}

/* `largest`: how many maximal blocks will be free. More of them than there are maximal blocks of one type cover several
 * types, as happens when everything around a boundary is freed. */
static void place_pageblocks(struct placement *p, uint64_t largest)
{
	struct sy__zone *zone = p->zone;
	unsigned shift = zone->pages->pageblock_order, type;
	uint64_t per_whole = SY__MAX_BLOCK >> shift, left = zone->present >> SY_MAX_ORDER;
	uint64_t end = zone->start + (left << SY_MAX_ORDER), page;
	uint64_t rest = (zone->present & (SY__MAX_BLOCK - 1)) >> shift; /* a last pageblock that is cut off has none free */

	start_walk(p, left);
	for (type = 0; type < SY_MIGRATE_TYPES; type++)
		for (; left && p->pageblocks[type] >= per_whole; left--) {
			page = next_whole(p);
			assign(p, page, per_whole, type);
			put(p, type, SY_MAX_ORDER, page);
			largest -= largest != 0;
		}
	for (; left; left--) {
		page = next_whole(p);
		share(p, page, per_whole);
		if (largest)
			put(p, SY_MOVABLE_TYPE, SY_MAX_ORDER, page);
		else
			add_regions(p, page, per_whole);
		largest -= largest != 0;
	}
	share(p, end, rest);
	add_regions(p, end, rest);
	for (type = 0; type < SY_MIGRATE_TYPES; type++)
		if (p->pageblocks[type])
			assign(p, end + (rest << shift), 1, type);
}

/* ---- Free blocks -------------------------------------------------------------------------------------------------- */

static uint64_t mixed(uint64_t value)
{
	value *= UINT64_C(0x9E3779B97F4A7C15);
	return value ^ value >> 32;
}

static void place(struct placement *p, uint64_t page, unsigned order, unsigned type)
{
	sy__zone_add_last(p->zone, sy__page(p->zone->pages, page), order, type);
	sy__pretrace_remove(p->zone, page, (uint64_t)1 << order);
	sy__add(&p->zone->free_pages, (size_t)1 << order);
}

/* Cuts a block out of a region of a pool. */
static void cut(struct placement *p, unsigned pool, unsigned region_order, unsigned order, unsigned type)
{
	uint64_t page = get(p, pool, region_order);

	while (region_order > order) {
		uint64_t half = (uint64_t)1 << --region_order;
		bool upper = mixed(page + region_order) & 1;

		put(p, pool, region_order, upper ? page : page + half);
		page += upper ? half : 0;
	}
	place(p, page, order, type);
}

static bool buddy_is_free(struct placement *p, uint64_t page, unsigned order)
{
	uint64_t number = page ^ (uint64_t)1 << order;
	struct sy_page *buddy = sy__page(p->zone->pages, number);

	return order < SY_MAX_ORDER && sy__pretrace_gone(p->zone->pages, number) && buddy->order == order;
}

/* Uses a whole region of the block's own order whose buddy is not free. */
static bool use_whole(struct placement *p, unsigned pool, unsigned order, unsigned type)
{
	const struct queue *queue = &p->pool[pool][order];
	uint32_t last = queue->last;
	bool more = queue->first != NONE;

	while (more) {
		uint64_t page;

		more = queue->first != last;
		page = get(p, pool, order);
		if (!buddy_is_free(p, page, order)) {
			place(p, page, order, type);
			return true;
		}
		put(p, pool, order, page);
	}
	return false;
}

static bool place_from_pool(struct placement *p, unsigned pool, unsigned order, unsigned type)
{
	unsigned region_order = SY_MAX_ORDER;

	while (region_order > order && p->pool[pool][region_order].first == NONE)
		region_order--;
	if (region_order > order) {
		cut(p, pool, region_order, order, type);
		return true;
	}
	return order >= p->zone->pages->pageblock_order && use_whole(p, pool, order, type);
}

static bool place_block(struct placement *p, unsigned order, unsigned type)
{
	unsigned pool;
	bool placed = place_from_pool(p, type, order, type);

	for (pool = 0; pool < SY_MIGRATE_TYPES && !placed; pool++)
		placed = place_from_pool(p, pool, order, type);
	return placed;
}

static bool place_blocks(struct placement *p, const uint64_t free_blocks[SY_MIGRATE_TYPES][SY_ORDERS])
{
	unsigned order = SY_ORDERS, type;
	uint64_t i;

	while (order-- > 0)
		for (type = 0; type < SY_MIGRATE_TYPES; type++)
			for (i = 0; i < free_blocks[type][order]; i++)
				if (!place_block(p, order, type))
					return false;
	return true;
}

/* ---- The whole ---------------------------------------------------------------------------------------------------- */

/* Pages that the blocks have; more than any zone's when they overflow. */
static uint64_t pages_of(const uint64_t blocks[SY_MIGRATE_TYPES][SY_ORDERS], uint64_t most)
{
	uint64_t sum = 0;
	unsigned type, order;

	for (type = 0; type < SY_MIGRATE_TYPES; type++)
		for (order = 0; order < SY_ORDERS; order++) {
			if (blocks[type][order] > most >> order)
				return most + 1;
			sum += blocks[type][order] << order;
		}
	return sum;
}

/* Room for a region per maximal block, for those that each cut leaves, and for the ends of the types' pageblocks. */
static bool reserve_regions(struct placement *p, const uint64_t free_blocks[SY_MIGRATE_TYPES][SY_ORDERS])
{
	uint64_t wanted = (p->zone->span >> SY_MAX_ORDER) + (SY_MIGRATE_TYPES + 1) * 2 * SY_ORDERS;
	unsigned type, order;

	for (type = 0; type < SY_MIGRATE_TYPES; type++)
		for (order = 0; order < SY_ORDERS; order++)
			wanted += free_blocks[type][order] * (SY_MAX_ORDER - order);

	if (wanted >= NONE || wanted > SIZE_MAX / sizeof(struct region))
		return false;
	p->bytes = ((size_t)wanted * sizeof(struct region) + SY_PAGE_SIZE - 1) & ~(SY_PAGE_SIZE - 1);
	p->regions = sy__source_reserve(p->bytes);
	if (p->regions && sy__source_commit(p->regions, p->bytes) != 0) {
		sy__source_release(p->regions, p->bytes);
		p->regions = NULL;
	}
	p->used = 0;
	p->unused = NONE;
	for (type = 0; type < SY_MIGRATE_TYPES; type++)
		for (order = 0; order < SY_ORDERS; order++)
			p->pool[type][order].first = NONE;
	return p->regions != NULL;
}

static bool commit_table(struct sy__zone *zone)
{
	uint64_t count = (zone->span + SY__MAX_BLOCK - 1) & ~(SY__MAX_BLOCK - 1);

	return sy__zone_describe(zone->pages, zone->start, count);
}

/* Whether the zone is as it was created: no request served, not populated. */
static bool is_pristine(const struct sy__zone *zone)
{
	return !zone->populated && zone->next_ungrown == zone->start && zone->free_pages == zone->managed;
}

static bool populate(struct placement *p, const uint64_t free_blocks[SY_MIGRATE_TYPES][SY_ORDERS], uint64_t free_pages)
{
	struct sy__zone *zone = p->zone;
	uint64_t usable = zone->managed < zone->present ? zone->managed : zone->present, largest = 0;
	unsigned type;
	bool fits;

	for (type = 0; type < SY_MIGRATE_TYPES; type++)
		largest += free_blocks[type][SY_MAX_ORDER];
	place_pageblocks(p, largest);
	fits = place_blocks(p, free_blocks);
	zone->populated = true;
	zone->highatomic_pages = (size_t)(zone->pageblocks[SY_HIGHATOMIC_TYPE] << zone->pages->pageblock_order);
	sy__backend_zone_of(zone)->pretrace = usable - free_pages;
	zone->used[SY_USE_FREE] = (int64_t)free_pages;
	zone->used[SY_USE_PRETRACE] = (int64_t)(zone->span - free_pages);
	sy__pretrace_remove(zone, zone->start + zone->present, (-(zone->start + zone->present)) & (SY__MAX_BLOCK - 1));
	return fits;
}

bool sy_pages_populate(struct sy_pages *pages, unsigned index, const uint64_t free_blocks[SY_MIGRATE_TYPES][SY_ORDERS],
                       const uint64_t pageblocks[SY_MIGRATE_TYPES])
{
	struct placement p;
	struct sy__zone *zone = index < pages->zone_count ? &pages->zones[index] : NULL;
	uint64_t present = 0, free_pages, usable;
	unsigned type;
	bool done;

	if (!zone || !is_pristine(zone))
		return false;
	for (type = 0; type < SY_MIGRATE_TYPES; type++) {
		p.pageblocks[type] = pageblocks[type];
		if (pageblocks[type] > zone->span)
			return false;
		present += pageblocks[type] << pages->pageblock_order;
	}
	if (present >= zone->span + sy__pageblock_pages(pages))
		return false;
	present = present < zone->span ? present : zone->span;
	usable = zone->managed < present ? zone->managed : present;
	free_pages = pages_of(free_blocks, zone->span);
	p.zone = zone;
	if (!present || free_pages > usable || !sy__free_page_map_cover(pages, pages->block_count << SY_MAX_ORDER) ||
	    !reserve_regions(&p, free_blocks))
		return false;
	sy__zone_clear(zone);
	zone->present = present;
	done = commit_table(zone) && populate(&p, free_blocks, free_pages);
	if (!done) {
		sy__zone_clear(zone);
		sy__backend_zone_of(zone)->pretrace = 0;
		sy__zone_start(zone);
	}
	sy__source_release(p.regions, p.bytes);
	return done;
}
