/*
 * Questions of heaps about the whole page allocator: which blocks are theirs, which block contains an address, how many nodes exist.
 *
 * A walk goes over the descriptors that exist, zone by zone, from block to block by their orders. In a populated zone it covers
 * everything and skips pretrace pages, which have no descriptors, by their bitmap. In any other zone it covers what has grown, and the
 * remainder that was never part of a maximal block. So its cost is that of the existing pages, not of the reserved range. It is meant
 * for checks and for destroying a heap, when nobody else uses that heap. Other heaps may be in use: a block that changes hands
 * meanwhile is not this heap's, and the walk passes it by whatever order it reads.
 */
#include "pages.h"

#define BITMAP_PAGES 64

struct walk {
	struct sy_heap *heap;
	bool (*visit)(void *context, struct sy_page *head);
	void *context;
};

static bool is_held(unsigned use)
{
	return use == SY_USE_SLAB || use == SY_USE_LARGE || use == SY_USE_METADATA;
}

/* Number of pretrace pages from here on, to be skipped. */
static uint64_t pretrace_pages(const struct sy__zone *zone, uint64_t number)
{
	if (!zone->populated)
		return 0;
	if (number % BITMAP_PAGES == 0 && !zone->pages->page_bits[number / BITMAP_PAGES])
		return BITMAP_PAGES;
	return sy__pretrace_gone(zone->pages, number) ? 0 : 1;
}

/* Whether to go on. */
static bool walk_range(const struct walk *walk, const struct sy__zone *zone, uint64_t number, uint64_t end)
{
	while (number < end) {
		uint64_t pages = pretrace_pages(zone, number);

		if (!pages) {
			struct sy_page *page = sy__page(zone->pages, number);

			pages = (uint64_t)1 << page->order % SY_ORDERS;
			if (is_held(sy__use(page)) && page->heap == walk->heap && !walk->visit(walk->context, page))
				return false;
		}
		number += pages;
	}
	return true;
}

static bool walk_zone(const struct walk *walk, const struct sy__zone *zone)
{
	uint64_t end = zone->start + zone->present;
	uint64_t remainder = zone->start + (zone->managed & ~(SY__MAX_BLOCK - 1));

	if (zone->populated)
		return walk_range(walk, zone, zone->start, end);
	return walk_range(walk, zone, zone->start, zone->next_ungrown) && walk_range(walk, zone, remainder, end);
}

void sy__pages_walk(struct sy_heap *heap, bool (*visit)(void *context, struct sy_page *head), void *context)
{
	const struct walk walk = { heap, visit, context };
	const struct sy_pages *pages = heap->pages;

	for (unsigned zone = 0; zone < pages->zone_count; zone++)
		if (!walk_zone(&walk, &pages->zones[zone]))
			return;
}

/* The descriptor of an address that may have been in use; NULL: it never was. */
static struct sy_page *described(const struct sy_heap *heap, const void *address)
{
	struct sy_page *page = sy__holds(heap, address) ? sy__page_of(heap, address) : NULL;

	return page && __atomic_load_n(sy__committed(heap->pages, sy__number(heap->pages, page)), __ATOMIC_ACQUIRE) ? page : NULL;
}

/* An inner page of a block that is free leads to where its head was. */
struct sy_page *sy__pages_find(const struct sy_heap *heap, const void *address)
{
	struct sy_page *page = described(heap, address), *head = page ? sy__page_head(page) : NULL;

	if (!head || !is_held(sy__use(head)) || head->heap != heap || (size_t)(page - head) >> head->order)
		return NULL;
	return head;
}

bool sy__pages_were_used(const struct sy_heap *heap, const void *address)
{
	const struct sy_page *page = described(heap, address);

	return page && page->flags;
}

unsigned sy__pages_nodes(const struct sy_pages *pages)
{
	return pages->nodes;
}
