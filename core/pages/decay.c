/*
 * Giving memory back after a while.
 *
 * What heaps give up goes to the free lists, still backed by memory of the source. If it stays there for decay_ns it is not
 * going to be needed soon, and goes back to the source. There is no thread for that: whoever gives blocks back to a zone comes by
 * here, and so do slow calls of a heap of threads now and then.
 *
 * Age. A free block carries in sy_page.bytes, which means nothing else while it is free, the time at which the youngest part of it
 * became free, or 0 if the source has all of it back. Joining takes the later time, splitting passes it on. Times are those of
 * sy_pages.clock, which every look here sets, and which stays 0 in a page allocator without decay.
 *
 * How soon. Normally after decay_ns. But a program that gives up most of its memory may never come by here again, and should not
 * keep the peak. So with more than KEPT_PAGES still backed, and an eighth of what heaps hold, decay_ns / HASTE is enough; with
 * twice that, decay_ns / HURRY, which is only there so that memory which is used again at once does not go back and forth.
 *
 * How much at once. Blocks of less than LEAST_ORDER stay, as so little would come of each. At most PAGES_AT_ONCE go in one
 * look, so that no caller waits for long; the next look is then due at once.
 *
 * How to find them. A free list has what became free last in front, near enough, and blocks that were discarded behind. A look
 * starts in front and ends where it has met CLEAN_IN_A_ROW blocks with nothing to discard.
 *
 * A block leaves its list while its memory is discarded, so that the zone's lock is not held meanwhile. It then looks as if
 * it were on a per-CPU list, hence no buddy joins with it.
 */
#include "pages.h"

#define LEAST_ORDER 4u
#define KEPT_PAGES (((size_t)8 << 20) / SY_PAGE_SIZE)
#define HASTE 32u
#define HURRY 256u
#define LOOKS 8u /* in that time */
#define PAGES_AT_ONCE (((size_t)64 << 20) / SY_PAGE_SIZE)
#define CLEAN_IN_A_ROW 16u
#define BLOCKS 32u /* off their lists at once */

struct batch {
	unsigned count;
	struct sy_page *blocks[BLOCKS];
};

static size_t free_and_backed(const struct sy_pages *pages)
{
	size_t committed = sy__read(&pages->committed_pages), held = sy__read(&pages->held_pages);

	return committed > held ? committed - held : 0;
}

/* How long a block must have been free. */
static uint64_t patience(const struct sy_pages *pages)
{
	size_t backed = free_and_backed(pages), kept = sy__read(&pages->held_pages) / 8;

	if (kept < KEPT_PAGES)
		kept = KEPT_PAGES;
	if (backed > 2 * kept)
		return pages->decay_ns / HURRY;
	return backed > kept ? pages->decay_ns / HASTE : pages->decay_ns;
}

/* Takes old blocks off one list. With the zone's lock held. */
static void gather(struct sy__zone *zone, unsigned order, unsigned type, uint64_t before, struct batch *batch)
{
	struct sy_page *next;
	unsigned clean = 0;

	for (struct sy_page *page = zone->free[order][type].first; page && clean < CLEAN_IN_A_ROW; page = next) {
		next = page->free.next;
		clean = page->bytes ? 0 : clean + 1;
		if (!page->bytes || page->bytes > before)
			continue;
		if (batch->count == BLOCKS)
			return;
		sy__blocks_remove(&zone->free[order][type], page);
		sy__subtract(&zone->free_pages, (size_t)1 << order);
		sy__set_use(page, SY_USE_CPU_LIST);
		page->order = (uint8_t)order;
		batch->blocks[batch->count++] = page;
	}
}

static size_t discard(struct sy__zone *zone, const struct batch *batch)
{
	struct sy_pages *pages = zone->pages;
	size_t count = 0;

	for (unsigned i = 0; i < batch->count; i++)
		count += (size_t)sy__block_discard(pages, batch->blocks[i], batch->blocks[i]->order);
	sy__count_discarded(pages, count);
	sy__lock(&zone->lock);
	for (unsigned i = 0; i < batch->count; i++) {
		struct sy_page *page = batch->blocks[i];

		sy__zone_free_aged(zone, page, page->order, sy__pageblock_type(pages, sy__number(pages, page)), 0);
	}
	sy__unlock(&zone->lock);
	return count;
}

/* Pages given back: all that are old enough, or PAGES_AT_ONCE or a little more. */
static size_t decay_zone(struct sy__zone *zone, uint64_t before, size_t most)
{
	struct batch batch;
	size_t given = 0;

	do {
		batch.count = 0;
		sy__lock(&zone->lock);
		for (unsigned order = SY_MAX_ORDER; order >= LEAST_ORDER && batch.count < BLOCKS; order--)
			for (unsigned type = 0; type < SY__CPU_TYPES && batch.count < BLOCKS; type++)
				gather(zone, order, type, before, &batch);
		sy__unlock(&zone->lock);
		given += discard(zone, &batch);
	} while (batch.count == BLOCKS && given < most);
	return given;
}

/* With the decay lock held. */
static void look(struct sy_pages *pages, uint64_t now)
{
	uint64_t age = patience(pages);
	size_t given = 0;

	if (now < pages->decay_looked + age / LOOKS)
		return;
	for (unsigned i = 0; now > age && i < pages->zone_count && given < PAGES_AT_ONCE; i++)
		given += decay_zone(&pages->zones[i], now - age, PAGES_AT_ONCE - given);
	pages->decay_looked = given < PAGES_AT_ONCE ? now : 0;
}

void sy__pages_decay(struct sy_pages *pages)
{
	uint64_t now;

	if (!pages->decay_ns || !free_and_backed(pages))
		return;
	now = sy__now();
	sy__time_set(&pages->clock, now);
	if (!sy__lock_try(&pages->decay_lock))
		return;
	look(pages, now);
	sy__unlock(&pages->decay_lock);
}
