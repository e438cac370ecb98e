/*
 * Large runs of pages, in heaps of threads: where they fit best.
 *
 * Blocks alone would place a run at a multiple of the next power of two, so that one of 40 pages needs a hole of 64, though 33
 * to 47 free pages may lie side by side as blocks of 32, 8 and 4: in a program that lives by large objects of many sizes, half
 * as much again as is in use stays in such holes. So a run of LEAST_RUN pages or more is looked for among extents: free blocks
 * that adjoin. Taken is the one of whose memory most is there, so that the process doesn't grow; of these the smallest (best
 * fit). The run is the start of it; the rest goes back to the free lists. Whoever asks for a power of two of pages may count on
 * its alignment, hence never comes here.
 *
 * What was freed last is likely to be in the processor's caches still, and what fits best to be in none: to write to it waits for
 * memory. So the extent around the large block that was freed last is tried first, and taken if all its memory is there and it
 * is at most RECENT_TIMES as large as the run; to take it however large it is would leave more holes.
 *
 * Where to look. An extent of n pages has a free block of a quarter of n at least. The lists of these orders lead to maximal
 * blocks, and a walk from block to block through each tells its extents. At most MOST_WALKS walks are made, and behind the first
 * one about as many blocks looked at as the run has pages, MOST_HEADS at most: that costs less than using them. If nothing
 * fits, blocks serve the request.
 *
 * A run is a row of blocks, each as large as its number and what is left of the run allow, hence owned and freed like any others.
 *
 * Locks. All of this runs with the zone's lock held. Blocks in use change hands meanwhile, but not their orders, which a walk
 * goes by: who cuts one into a row without the lock writes the order of its first page last (sy__row_cut_block).
 */
#include "pages.h"
#include "../rows.h"

#define LEAST_RUN (1u << SY__RUN_ORDER)
#define MOST_WALKS 16u
#define MOST_HEADS 512u
#define GOOD_REST 64u /* one that is larger than the run by less than this share ends the search */
#define RECENT_TIMES 2u /* so does one that is no more times as large, and was freed last */

struct extent {
	struct sy_page *start; /* NULL: none */
	uint64_t pages;
	uint64_t missing;      /* of those that the run would take, pages without memory */
};

struct search {
	struct sy__zone *zone;
	uint64_t wanted; /* pages */
	struct extent best;
	unsigned walks, heads;
	uint64_t walked[MOST_WALKS]; /* maximal blocks, by the number of their first page */
};

/* ---- Rows --------------------------------------------------------------------------------------------------------- */

/* The first block of a row of so many pages from there on. */
static unsigned row_order(uint64_t number, uint64_t pages)
{
	unsigned within = 63u - (unsigned)__builtin_clzll(pages), aligned = (unsigned)__builtin_ctzll(number | SY__MAX_BLOCK);

	return within < aligned ? within : aligned;
}

/* A block of the row behind its first. */
static void set_head(const struct sy_page *first, struct sy_page *head, unsigned order)
{
	head->zone = first->zone;
	head->node = first->node;
	head->bytes = 0;
	sy__set_migrate(head, sy__migrate(first));
	sy__set_use(head, sy__use(first));
	__atomic_store_n(&head->order, (uint8_t)order, __ATOMIC_RELAXED);
}

/* The row behind its first block. */
static void cut_behind(const struct sy_pages *pages, struct sy_page *first, uint64_t count)
{
	uint64_t number = sy__number(pages, first);
	unsigned order;

	for (uint64_t at = (uint64_t)1 << row_order(number, count); at < count; at += (uint64_t)1 << order) {
		order = row_order(number + at, count - at);
		set_head(first, first + at, order);
	}
}

/* From here on others see the row. */
static void cut_first(const struct sy_pages *pages, struct sy_page *first, uint64_t count)
{
	__atomic_store_n(&first->order, (uint8_t)row_order(sy__number(pages, first), count), __ATOMIC_RELEASE);
}

void sy__row_cut_block(const struct sy_pages *pages, struct sy_page *first, uint64_t count, unsigned order)
{
	cut_behind(pages, first, count);
	for (uint64_t at = count; at < (uint64_t)1 << order; at += (uint64_t)1 << __builtin_ctzll(at))
		set_head(first, first + at, (unsigned)__builtin_ctzll(at));
	cut_first(pages, first, count);
}

/* ---- Searching ---------------------------------------------------------------------------------------------------- */

/* Whether an extent that suffices has what was freed last, and is to be taken for that. */
static bool is_recent(const struct search *search, const struct extent *extent)
{
	const struct sy__zone *zone = search->zone;

	return !extent->missing && extent->pages <= RECENT_TIMES * search->wanted &&
	       zone->recent - sy__number(zone->pages, extent->start) < extent->pages;
}

static bool better(const struct search *search, const struct extent *extent)
{
	const struct extent *best = &search->best;
	bool recent = is_recent(search, extent);

	if (!best->start || recent != is_recent(search, best))
		return !best->start || recent;
	if (extent->missing != best->missing)
		return extent->missing < best->missing;
	return extent->pages < best->pages;
}

/* The extent ends. */
static void consider(struct search *search, struct extent *extent)
{
	if (extent->pages >= search->wanted && better(search, extent))
		search->best = *extent;
	*extent = (struct extent){ NULL, 0, 0 };
}

static void extend(const struct search *search, struct extent *extent, struct sy_page *page, uint64_t pages)
{
	uint64_t left = search->wanted > extent->pages ? search->wanted - extent->pages : 0;

	if (!extent->start)
		extent->start = page;
	extent->pages += pages;
	if (!page->bytes)
		extent->missing += pages < left ? pages : left;
}

static uint64_t pages_of(const struct sy_page *head)
{
	return (uint64_t)1 << __atomic_load_n(&head->order, __ATOMIC_ACQUIRE);
}

static bool is_part(const struct sy_page *head)
{
	return sy__use(head) == SY_USE_FREE && sy__migrate(head) == SY_UNMOVABLE;
}

static bool was_walked(const struct search *search, uint64_t number)
{
	for (unsigned i = 0; i < search->walks; i++)
		if (search->walked[i] == number)
			return true;
	return false;
}

/* All extents that begin in the maximal block of that page. */
static void walk(struct search *search, uint64_t within)
{
	uint64_t number = within & ~(SY__MAX_BLOCK - 1);
	const struct sy__zone *zone = search->zone;
	struct extent extent = { NULL, 0, 0 };
	uint64_t at = number;

	if (was_walked(search, number))
		return;
	search->walked[search->walks++] = number;
	for (; at < number + SY__MAX_BLOCK; search->heads++) {
		struct sy_page *page = sy__page(zone->pages, at);

		at += pages_of(page);
		if (is_part(page))
			extend(search, &extent, page, pages_of(page));
		else
			consider(search, &extent);
	}
	for (; extent.start && at < zone->next_ungrown && is_part(sy__page(zone->pages, at)); search->heads++) {
		struct sy_page *page = sy__page(zone->pages, at);

		at += pages_of(page);
		extend(search, &extent, page, pages_of(page));
	}
	consider(search, &extent);
}

static unsigned most_heads(const struct search *search)
{
	return search->wanted < MOST_HEADS ? (unsigned)search->wanted : MOST_HEADS;
}

static bool goes_on(const struct search *search)
{
	const struct extent *best = &search->best;
	bool fits = !best->missing && best->pages - search->wanted <= search->wanted / GOOD_REST;
	bool good = best->start && (fits || is_recent(search, best));

	return !good && search->walks < MOST_WALKS && search->heads < most_heads(search);
}

static void search_list(struct search *search, const struct sy__blocks *list)
{
	for (struct sy_page *page = list->first; page && goes_on(search); page = page->free.next)
		walk(search, sy__number(search->zone->pages, page));
}

/* ---- Taking ------------------------------------------------------------------------------------------------------- */

/* What a run leaves of its last block. */
static void keep_rest(struct sy__zone *zone, struct sy_page *rest, const struct sy_page *end, uint64_t since)
{
	while (rest < end) {
		uint64_t number = sy__number(zone->pages, rest);
		unsigned order = row_order(number, (uint64_t)(end - rest));

		rest->bytes = since;
		if (since)
			sy__zone_add_first(zone, rest, order, SY_UNMOVABLE);
		else
			sy__zone_add_last(zone, rest, order, SY_UNMOVABLE);
		sy__add(&zone->free_pages, (size_t)1 << order);
		rest += (size_t)1 << order;
	}
}

/* Takes the blocks that hold so many pages from there on off their lists. */
static void take_blocks(struct sy__zone *zone, struct sy_page *start, uint64_t count)
{
	struct sy_page *end = start + count, *next;

	for (struct sy_page *page = start; page < end; page = next) {
		next = page + ((size_t)1 << page->order);
		sy__blocks_remove(&zone->free[page->order][SY_UNMOVABLE], page);
		sy__subtract(&zone->free_pages, (size_t)1 << page->order);
		if (next > end)
			keep_rest(zone, end, next, page->bytes);
	}
}

static struct sy_page *take(struct sy__zone *zone, struct sy_page *start, uint64_t count, enum sy_page_use use)
{
	take_blocks(zone, start, count);
	start->zone = zone->index;
	start->node = zone->node;
	start->bytes = 0;
	sy__set_migrate(start, SY_UNMOVABLE);
	sy__set_use(start, use);
	cut_behind(zone->pages, start, count);
	cut_first(zone->pages, start, count);
	zone->served++;
	zone->used[SY_USE_FREE] -= (int64_t)count;
	zone->used[use] += (int64_t)count;
	return start;
}

/* Blocks keep the watermarks, and know what to do about them; and about free pages whose memory has yet to be made usable. */
static bool may_serve(const struct sy_pages *pages, uint64_t count, unsigned flags)
{
	const struct sy__zone *zone = pages->zones;

	return count >= LEAST_RUN && pages->commits_growth && pages->zone_count == 1 && !zone->populated && !sy__read(&pages->fail_after) &&
	       !(flags & (SY_MOVABLE | SY_RECLAIMABLE | SY_DMA | SY_DMA32)) &&
	       sy__read(&zone->free_pages) > count + zone->marks[SY__MARK_LOW];
}

/* With the zone's lock held. */
static void search_lists(struct search *search)
{
	if (search->zone->recent < search->zone->next_ungrown)
		walk(search, search->zone->recent);
	search->heads = 0;
	for (unsigned order = 62u - (unsigned)__builtin_clzll(search->wanted); order <= SY_MAX_ORDER && goes_on(search); order++)
		search_list(search, &search->zone->free[order][SY_UNMOVABLE]);
}

/* What slots keep goes back before memory is to come that isn't there. */
static void search_again(struct search *search, struct sy_heap *heap, unsigned slot)
{
	sy__unlock(&search->zone->lock);
	sy__rows_end(heap);
	if (sy__spares_any(heap, slot))
		sy__spares_end(heap, slot);
	*search = (struct search){ .zone = search->zone, .wanted = search->wanted };
	sy__lock(&search->zone->lock);
	search_lists(search);
}

struct sy_page *sy__run_take(struct sy_heap *heap, unsigned slot, uint64_t count, unsigned flags, enum sy_page_use use)
{
	struct search search = { .zone = heap->pages->zones, .wanted = count };
	struct sy_page *page = NULL;

	if (!may_serve(heap->pages, count, flags))
		return NULL;
	sy__lock(&search.zone->lock);
	search_lists(&search);
	if ((!search.best.start || search.best.missing) && (sy__rows_any(heap) || sy__spares_any(heap, slot)))
		search_again(&search, heap, slot);
	if (search.best.start)
		page = take(search.zone, search.best.start, count, use);
	sy__unlock(&search.zone->lock);
	return page;
}
