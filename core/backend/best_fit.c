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
 * Where to look. The zone's map (free_page_map.c) tells extents at hardly any cost, so all are considered that lie within WINDOW pages
 * around what was freed last: the whole of most heaps. Whether memory is there the blocks of an extent tell, each a cache line
 * that may be missing; only those are asked that are smaller than the best one that has all, and about as many as the run has
 * pages, MOST_HEADS at most: that costs less than using them. If nothing fits, blocks serve the request.
 *
 * Locks. Searches run with the zone's lock held, and look at free blocks alone.
 */
#include "best_fit.h"

#include "run_cache.h"

#define LEAST_RUN (1u << SY__RUN_ORDER)
#define WINDOW ((uint64_t)1 << 16) /* pages: 256 MiB */
#define MOST_HEADS 512u
#define GOOD_REST 64u /* one that is larger than the run by less than this share ends the search */
#define RECENT_TIMES 2u /* so does one that is no more times as large, and was freed last */

struct extent {
	uint64_t start;
	uint64_t pages;   /* 0: there is none */
	uint64_t missing; /* of those that the run would take, pages without memory */
};

struct search {
	struct sy__zone *zone;
	uint64_t wanted; /* pages */
	uint64_t from, to;
	struct extent best;
	unsigned heads;  /* looked at */
};

/* ---- Searching ---------------------------------------------------------------------------------------------------- */

/* Whether an extent that suffices has what was freed last, and is to be taken for that. */
static bool is_recent(const struct search *search, const struct extent *extent)
{
	return !extent->missing && extent->pages <= RECENT_TIMES * search->wanted && search->zone->recent - extent->start < extent->pages;
}

/* Asks the blocks that the run would take whether they have memory. One is of another kind than the run: false, and the extent is
 * what lies behind that. It starts with a block, as do the pages that it is looked for in. */
static bool ask_blocks(struct search *search, struct extent *extent)
{
	extent->missing = 0;
	for (uint64_t at = 0, pages; at < search->wanted; at += pages) {
		const struct sy_page *head = sy__page(search->zone->pages, extent->start + at);

		search->heads++;
		pages = (uint64_t)1 << head->order;
		if (sy__migrate(head) != SY_UNMOVABLE) {
			extent->start += at + pages;
			extent->pages -= at + pages < extent->pages ? at + pages : extent->pages;
			return false;
		}
		if (!head->bytes)
			extent->missing += pages < search->wanted - at ? pages : search->wanted - at;
	}
	return true;
}

static unsigned most_heads(const struct search *search)
{
	return search->wanted < MOST_HEADS ? (unsigned)search->wanted : MOST_HEADS;
}

/* Whether an extent suffices, and may be better than the best so far. */
static bool is_worth_asking(const struct search *search, const struct extent *extent)
{
	const struct extent *best = &search->best;

	return extent->pages >= search->wanted && !(best->pages && !best->missing && best->pages <= extent->pages);
}

static void consider(struct search *search, struct extent extent)
{
	const struct extent *best = &search->best;

	do {
		if (!is_worth_asking(search, &extent) || search->heads >= most_heads(search))
			return;
	} while (!ask_blocks(search, &extent));
	if (!best->pages || extent.missing < best->missing || (extent.missing == best->missing && extent.pages < best->pages))
		search->best = extent;
}

static bool goes_on(const struct search *search)
{
	const struct extent *best = &search->best;
	bool fits = !best->missing && best->pages - search->wanted <= search->wanted / GOOD_REST;
	bool good = best->pages && (fits || is_recent(search, best));

	return !good && search->heads < most_heads(search);
}

/* Begins with a maximal block. */
static void set_window(struct search *search)
{
	const struct sy__zone *zone = search->zone;
	uint64_t end = zone->ungrown_blocks ? zone->next_ungrown : zone->start + zone->present;
	uint64_t centre = zone->recent < end ? zone->recent : zone->start;

	search->to = end - centre < WINDOW / 2 ? end : centre + WINDOW / 2;
	search->from = search->to - zone->start < WINDOW ? zone->start : (search->to - WINDOW) & ~(SY__MAX_BLOCK - 1);
	search->to = end - search->from < WINDOW ? end : search->from + WINDOW;
}

/* ---- Taking ------------------------------------------------------------------------------------------------------- */

/* What a run leaves of its last block. */
static void keep_rest(struct sy__zone *zone, struct sy_page *rest, const struct sy_page *end, uint64_t since)
{
	while (rest < end) {
		uint64_t number = sy__number(zone->pages, rest);
		unsigned order = sy__run_order(number, (uint64_t)(end - rest));

		rest->bytes = since;
		if (since)
			sy__zone_add_first(zone, rest, order, SY_UNMOVABLE);
		else
			sy__zone_add_last(zone, rest, order, SY_UNMOVABLE);
		sy__zone_gains(zone, rest, order);
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
		sy__zone_loses(zone, page, page->order);
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
	sy__run_cut(zone->pages, start, count);
	zone->served++;
	zone->used[SY_USE_FREE] -= (int64_t)count;
	zone->used[use] += (int64_t)count;
	return start;
}

/* Blocks keep the watermarks, and know what to do about them; and about free pages whose memory has yet to be made usable. */
static bool may_serve(const struct sy_pages *pages, uint64_t count, unsigned flags)
{
	const struct sy__zone *zone = pages->zones;

	return count >= LEAST_RUN && sy__runs_are_placed(pages) && !sy__read(&pages->fail_after) &&
	       !(flags & (SY_MOVABLE | SY_RECLAIMABLE | SY_DMA | SY_DMA32)) &&
	       sy__read(&zone->free_pages) > count + zone->marks[SY__MARK_LOW];
}

/* With the zone's lock held. */
static void search_map(struct search *search)
{
	struct extent extent = { 0, 0, 0 };

	if (!search->zone->mapped)
		sy__free_page_map_start(search->zone);
	set_window(search);
	extent.pages = sy__free_page_map_around(search->zone, search->from, search->to, search->zone->recent, &extent.start);
	consider(search, extent);
	search->heads = 0;
	for (extent.start = search->from, extent.pages = 0; goes_on(search); consider(search, extent)) {
		extent.pages = sy__free_page_map_next(search->zone, search->from, search->to, extent.start + extent.pages, &extent.start);
		if (!extent.pages)
			return;
	}
}

/* What slots keep goes back before memory is to come that isn't there. */
static void search_again(struct search *search, struct sy_heap *heap, unsigned slot)
{
	sy__unlock(&search->zone->lock);
	sy__run_cache_end(heap);
	if (sy__spares_any(heap, slot))
		sy__spares_end(heap, slot);
	*search = (struct search){ .zone = search->zone, .wanted = search->wanted };
	sy__lock(&search->zone->lock);
	search_map(search);
}

struct sy_page *sy__best_fit_take(struct sy_heap *heap, unsigned slot, uint64_t count, unsigned flags, enum sy_page_use use)
{
	struct search search = { .zone = heap->pages->zones, .wanted = count };
	struct sy_page *page = NULL;

	if (!may_serve(heap->pages, count, flags))
		return NULL;
	sy__lock(&search.zone->lock);
	search_map(&search);
	if ((!search.best.pages || search.best.missing) && (sy__run_cache_any(heap) || sy__spares_any(heap, slot)))
		search_again(&search, heap, slot);
	if (search.best.pages)
		page = take(search.zone, sy__page(heap->pages, search.best.start), count, use);
	sy__unlock(&search.zone->lock);
	return page;
}
