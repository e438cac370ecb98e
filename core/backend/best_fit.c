/*
 * Best fit for large runs of pages, in heaps of threads.
 *
 * Why. The buddy allocator places a run at a multiple of the next power of two: 40 pages need a hole of 64. Yet 33 to 47
 * free pages may lie side by side, as blocks of 32, 8 and 4. A program with large objects of many sizes then holds half as
 * much again as it uses.
 *
 * How. A search looks for extents: free blocks that adjoin each other. It prefers the extent whose memory is present, so that
 * the process does not grow, and among equals the smallest (best fit). The run is the start of the extent. The rest goes
 * back to the free lists. Requests for a power of two of pages may rely on alignment, so they never come here.
 *
 * Recently freed memory is likely to be in the processor's caches, and the best fit is not. So the search first tries the
 * extent around the large block that was freed last. It takes that extent if all its memory is present and if it is at most
 * RECENT_TIMES as large as the run. A larger one would leave more holes.
 *
 * Where. The map of free pages (free_page_map.c) finds extents at little cost, so a search considers all of them within WINDOW
 * pages around the last free; most heaps are smaller than that. Whether memory is present only the descriptors tell, each a
 * likely cache miss. So a search asks only extents that are smaller than the best one so far that is fully present, and reads
 * about as many descriptors as the run has pages, at most MOST_BLOCKS. That costs less than using the run. If no extent fits,
 * the buddy allocator serves the request.
 *
 * Lock: a search holds the zone's lock and looks at free blocks only.
 */
#include "best_fit.h"

#include "free_page_map.h"
#include "run_cache.h"

#define LEAST_RUN (1u << SY__TOLD_ORDER)
#define WINDOW ((uint64_t)1 << 16) /* pages: 256 MiB */
#define MOST_BLOCKS 512u
#define GOOD_REST 64u   /* an extent ends the search if it exceeds the run by at most 1/64 */
#define RECENT_TIMES 2u /* so does the extent freed last, if it is at most twice as large as the run */

_Static_assert(LEAST_RUN >= SY__FREE_PAGE_MAP_LEAST, "the map finds every run");

struct extent {
	uint64_t start;
	uint64_t pages;   /* 0: there is none */
	uint64_t missing; /* pages without memory, among those that the run would take */
};

struct search {
	struct sy__zone *zone;
	uint64_t wanted; /* pages */
	uint64_t from, to;
	struct extent best;
	unsigned blocks; /* whose descriptors were read */
};

void sy__best_fit_freed(struct sy__zone *zone, uint64_t number)
{
	sy__backend_zone_of(zone)->recent = number - zone->start;
}

/* Frame number of the large block that was freed last. */
static uint64_t recent_of(const struct sy__zone *zone)
{
	return zone->start + sy__backend_zone_of(zone)->recent;
}

/* ---- Searching ---------------------------------------------------------------------------------------------------- */

/* Whether a sufficient extent contains the last freed block, and is small enough to be taken for that. */
static bool is_recent(const struct search *search, const struct extent *extent)
{
	return !extent->missing && extent->pages <= RECENT_TIMES * search->wanted && recent_of(search->zone) - extent->start < extent->pages;
}

/* Reads in their descriptors how much memory the blocks lack that the run would take. False: a block has another migrate type;
 * the extent then shrinks to what lies behind that block. An extent starts with a block, as the window does. */
static bool ask_blocks(struct search *search, struct extent *extent)
{
	extent->missing = 0;
	for (uint64_t at = 0, pages; at < search->wanted; at += pages) {
		const struct sy_page *head = sy__page(search->zone->pages, extent->start + at);

		search->blocks++;
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

static unsigned most_blocks(const struct search *search)
{
	return search->wanted < MOST_BLOCKS ? (unsigned)search->wanted : MOST_BLOCKS;
}

/* Whether an extent suffices and may beat the best one so far. */
static bool is_worth_asking(const struct search *search, const struct extent *extent)
{
	const struct extent *best = &search->best;

	return extent->pages >= search->wanted && !(best->pages && !best->missing && best->pages <= extent->pages);
}

static void consider(struct search *search, struct extent extent)
{
	const struct extent *best = &search->best;

	do {
		if (!is_worth_asking(search, &extent) || search->blocks >= most_blocks(search))
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

	return !good && search->blocks < most_blocks(search);
}

/* The window begins with a maximal block. */
static void set_window(struct search *search)
{
	const struct sy__zone *zone = search->zone;
	uint64_t end = zone->ungrown_blocks ? zone->next_ungrown : zone->start + zone->present;
	uint64_t centre = recent_of(zone) < end ? recent_of(zone) : zone->start;

	search->to = end - centre < WINDOW / 2 ? end : centre + WINDOW / 2;
	search->from = search->to - zone->start < WINDOW ? zone->start : (search->to - WINDOW) & ~(SY__MAX_BLOCK - 1);
	search->to = end - search->from < WINDOW ? end : search->from + WINDOW;
}

/* ---- Taking ------------------------------------------------------------------------------------------------------- */

/* Frees the part of its last block that a run does not need. */
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

/* Takes the blocks of an extent off their lists, up to `count` pages. */
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

/* Best fit must not go below the watermark: only the buddy allocator knows what to do then, and how to grow the zone. */
static bool may_serve(const struct sy_pages *pages, uint64_t count, unsigned flags)
{
	const struct sy__zone *zone = pages->zones;

	return count >= LEAST_RUN && sy__free_page_map_applies(pages) && !sy__read(&pages->fail_after) &&
	       !(flags & (SY_MOVABLE | SY_RECLAIMABLE | SY_DMA | SY_DMA32)) &&
	       sy__read(&zone->free_pages) > count + zone->marks[SY__WMARK_LOW];
}

/* With the zone's lock held. */
static void search_map(struct search *search)
{
	struct extent extent = { 0, 0, 0 };

	if (!search->zone->told && !sy__free_page_map_start(search->zone))
		return;
	set_window(search);
	extent.pages = sy__free_page_map_around(search->zone, search->from, search->to, recent_of(search->zone), &extent.start);
	consider(search, extent);
	search->blocks = 0;
	for (extent.start = search->from, extent.pages = 0; goes_on(search); consider(search, extent)) {
		extent.pages = sy__free_page_map_next(search->zone, search->from, search->to, extent.start + extent.pages, &extent.start);
		if (!extent.pages)
			return;
	}
}

/* Before the heap grows, slots give back their cached runs and retained empty slabs, and the search starts again. */
static void search_again(struct search *search, struct sy_heap *heap, unsigned slot)
{
	sy__unlock(&search->zone->lock);
	sy__run_cache_flush(heap);
	if (sy__retained_any(heap, slot))
		sy__retained_release(heap, slot);
	*search = (struct search){ .zone = search->zone, .wanted = search->wanted };
	sy__lock(&search->zone->lock);
	search_map(search);
}

/* What a maximal block lacks that has grown in part adjoins its free pages. */
static bool grow_rest(struct sy__zone *zone, uint64_t count)
{
	return zone->next_ungrown & (SY__MAX_BLOCK - 1) && sy__zone_grow(zone, 63 - (unsigned)__builtin_clzll(count));
}

struct sy_page *sy__best_fit_take(struct sy_heap *heap, unsigned slot, uint64_t count, unsigned flags, enum sy_page_use use)
{
	struct search search = { .zone = heap->pages->zones, .wanted = count };
	struct sy_page *page = NULL;

	if (!may_serve(heap->pages, count, flags))
		return NULL;
	sy__lock(&search.zone->lock);
	search_map(&search);
	if ((!search.best.pages || search.best.missing) && (sy__run_cache_any(heap) || sy__retained_any(heap, slot)))
		search_again(&search, heap, slot);
	if (!search.best.pages && grow_rest(search.zone, count))
		search_map(&search);
	if (search.best.pages)
		page = take(search.zone, sy__page(heap->pages, search.best.start), count, use);
	sy__unlock(&search.zone->lock);
	return page;
}
