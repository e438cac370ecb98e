/*
 * Blocks at chosen places: replays a kernel's page requests at the same page frames (replay/kernel_log.c), so that a policy that
 * depends on addresses sees the same ones.
 *
 * A placer stands before the zones and serves each page request of a heap. To give a request the block at a certain frame, the
 * zone grows until it has that frame. Then the free block around the frame is found and halved until the wanted block is left.
 * The order of free lists does not matter afterwards, as every other request has a chosen place too.
 *
 * Which block contains a frame? Descriptors inside blocks hold stale words (core/pages/zone.c), so the search goes down from the
 * maximal block, whose first page heads a block for sure. Suppose that block is smaller than the aligned run around the frame
 * that starts there. Then no block crosses the middle of the run, so the half with the frame begins with a head too.
 *
 * Lock: the zone's. The placer is set while no other thread calls.
 */
#include "place.h"

static struct sy_page *take_placed(struct sy_pages *pages, unsigned slot, unsigned order, unsigned flags, int node, enum sy_page_use use)
{
	const struct sy__placer *placer = sy__backend_of(pages)->placer;

	return placer->take(placer->context, slot, order, flags, node, use);
}

void sy__pages_set_placer(struct sy_pages *pages, const struct sy__placer *placer)
{
	sy__backend_of(pages)->placer = placer;
	pages->take = placer ? take_placed : sy__block_take;
}

static struct sy__zone *zone_of(struct sy_pages *pages, uint64_t frame, unsigned order)
{
	for (unsigned i = 0; i < pages->zone_count; i++) {
		struct sy__zone *zone = &pages->zones[i];

		if (frame >= zone->start && frame + ((uint64_t)1 << order) <= zone->start + zone->managed)
			return zone;
	}
	return NULL;
}

/* The free block that contains these pages, or NULL. */
static struct sy_page *free_around(const struct sy_pages *pages, uint64_t frame, unsigned order)
{
	for (unsigned at = SY_MAX_ORDER + 1; at-- > order;) {
		struct sy_page *head = sy__page(pages, frame >> at << at);

		if (head->order >= at)
			return head->order == at && sy__use(head) == SY_USE_FREE ? head : NULL;
	}
	return NULL;
}

/* Halves a block that is on no list until the wanted one is left. */
static struct sy_page *halve(struct sy__zone *zone, struct sy_page *head, struct sy_page *wanted, unsigned order)
{
	unsigned migrate = sy__migrate(head);
	uint64_t since = head->bytes;

	for (unsigned at = head->order; at-- > order;) {
		struct sy_page *upper = head + ((size_t)1 << at), *rest = wanted < upper ? upper : head;

		head = wanted < upper ? head : upper;
		rest->bytes = since;
		sy__zone_add_first(zone, rest, at, migrate);
	}
	head->order = (uint8_t)order;
	return head;
}

static struct sy_page *take_at(struct sy__zone *zone, uint64_t frame, unsigned order)
{
	struct sy_page *head;

	while (frame >= zone->next_ungrown && zone->ungrown_blocks)
		if (!sy__zone_grow(zone, order))
			return NULL;
	head = free_around(zone->pages, frame, order);
	if (!head)
		return NULL;
	sy__blocks_remove(&zone->free[head->order][sy__migrate(head)], head);
	sy__zone_loses(zone, sy__page(zone->pages, frame), order);
	return halve(zone, head, sy__page(zone->pages, frame), order);
}

struct sy_page *sy__block_take_at(struct sy_pages *pages, uint64_t frame, unsigned order, enum sy_page_use use)
{
	bool aligned = order <= SY_MAX_ORDER && !(frame & (((uint64_t)1 << order) - 1));
	struct sy__zone *zone = aligned ? zone_of(pages, frame, order) : NULL;
	struct sy_page *page;

	if (!zone)
		return NULL;
	sy__lock(&zone->lock);
	page = take_at(zone, frame, order);
	if (page) {
		sy__set_use(page, use);
		sy__set_migrate(page, SY_UNMOVABLE);
		page->zone = zone->index;
		page->node = zone->node;
		page->to_head = 0;
		page->heap = NULL;
		page->bytes = 0;
		zone->served++;
		zone->used[SY_USE_FREE] -= (int64_t)1 << order;
		zone->used[use] += (int64_t)1 << order;
	}
	sy__unlock(&zone->lock);
	return page;
}
