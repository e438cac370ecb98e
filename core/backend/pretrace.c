/*
 * Pretrace pages: pages in use since before the trace began, by owners that nobody recorded. A zone's snapshot has them in use
 * (populate.c).
 *
 * A trace frees some of them, and says near which page frame. Where exactly they lie is our own placement, so the nearest aligned
 * run of pretrace pages stands for the freed one. If no whole run of the order is left, two halves are freed instead, each the
 * nearest one. The count of pages stays exact.
 *
 * Pretrace pages have no descriptors until they are freed. A bitmap has a set bit for each page that is not, or no longer,
 * pretrace. Each maximal block has a limit: it holds no aligned run of a larger order. Pretrace pages only become fewer, so a
 * limit stays valid for ever, and a search passes an exhausted block by reading one byte. When a search of the whole zone fails,
 * all later ones for that order will (pretrace_none).
 *
 * A search goes outwards from the given page, one maximal block to each side at a time. It ends when no block farther away can
 * hold a nearer run.
 */
#include "pretrace.h"

#define WORDS (SY__MAX_BLOCK / 64) /* of the bitmap, for a maximal block */
#define NOWHERE UINT64_MAX

void sy__pretrace_remove(struct sy__zone *zone, uint64_t number, uint64_t count)
{
	uint64_t *word = &zone->pages->page_bits[number / 64];

	for (; count >= 64 && number % 64 == 0; count -= 64, number += 64)
		*word++ = UINT64_MAX;
	for (; count; count--, number++)
		zone->pages->page_bits[number / 64] |= (uint64_t)1 << (number % 64);
}

/* Bits at the starts of aligned runs of 2^order pretrace pages, order at most 6, in a word of the bitmap. */
static uint64_t starts_of_runs(uint64_t gone, unsigned order)
{
	static const uint64_t aligned[] = {
		UINT64_MAX,          UINT64_C(0x5555555555555555), UINT64_C(0x1111111111111111), UINT64_C(0x0101010101010101),
		UINT64_C(0x0001000100010001), UINT64_C(0x0000000100000001), 1,
	};
	uint64_t pretrace = ~gone;
	unsigned step;

	for (step = 0; step < order; step++)
		pretrace &= pretrace >> (1u << step);
	return pretrace & aligned[order];
}

const char *sy__pretrace_check(const struct sy__zone *zone, uint64_t pretrace)
{
	return sy__backend_zone_of(zone)->pretrace > pretrace ? "more pretrace pages may be freed than there are" : NULL;
}

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a < b ? b - a : a - b;
}

/* Keeps the nearer of two runs; the one found first when they are equally near. */
static uint64_t nearer(uint64_t found, uint64_t candidate, uint64_t near)
{
	return found == NOWHERE || distance(candidate, near) < distance(found, near) ? candidate : found;
}

static bool is_run(const uint64_t *words, uint64_t count)
{
	while (count--)
		if (*words++)
			return false;
	return true;
}

/* The bit nearest to a page, as a frame number: the first one from the page on, or the last one before. */
static uint64_t nearest_of_word(uint64_t starts, uint64_t base, uint64_t near)
{
	uint64_t before = near <= base ? 0 : near - base >= 64 ? starts : starts & (((uint64_t)1 << (near - base)) - 1);
	uint64_t after = starts & ~before, found = NOWHERE;

	if (before)
		found = base + 63 - (uint64_t)__builtin_clzll(before);
	return after ? nearer(found, base + (uint64_t)__builtin_ctzll(after), near) : found;
}

/* The run of a maximal block that is nearest to a page; lowers the block's limit when there is none. */
static uint64_t search_block(struct sy_pages *pages, uint64_t block, unsigned order, uint64_t near)
{
	const uint64_t *words = &pages->page_bits[block * WORDS];
	uint64_t step = order > 6 ? (uint64_t)1 << (order - 6) : 1;
	uint64_t found = NOWHERE, at;

	if (order + pages->above_of_block[block] > SY_MAX_ORDER)
		return NOWHERE;
	for (at = 0; at < WORDS; at += step) {
		uint64_t starts = order > 6 ? is_run(&words[at], step) : starts_of_runs(words[at], order);
		uint64_t candidate = nearest_of_word(starts, (block << SY_MAX_ORDER) + at * 64, near);

		if (candidate != NOWHERE)
			found = nearer(found, candidate, near);
	}
	if (found == NOWHERE)
		pages->above_of_block[block] = (uint8_t)(SY_MAX_ORDER + 1 - order);
	return found;
}

/* The nearest run in a zone. */
static uint64_t search_zone(struct sy__zone *zone, unsigned order, uint64_t near)
{
	uint64_t first = zone->start >> SY_MAX_ORDER, last = (zone->start + zone->present - 1) >> SY_MAX_ORDER;
	uint64_t end = zone->start + zone->present, centre, found = NOWHERE, out, candidate;

	near = near < zone->start ? zone->start : near >= end ? end - 1 : near;
	centre = near >> SY_MAX_ORDER;
	if (sy__backend_zone_of(zone)->pretrace_none & 1u << order)
		return NOWHERE;
	for (out = 0; centre >= first + out || centre + out <= last; out++) {
		if (found != NOWHERE && out > 1 && (out - 1) << SY_MAX_ORDER > distance(found, near))
			return found;
		if (centre >= first + out && (candidate = search_block(zone->pages, centre - out, order, near)) != NOWHERE)
			found = nearer(found, candidate, near);
		if (out && centre + out <= last &&
		    (candidate = search_block(zone->pages, centre + out, order, near)) != NOWHERE)
			found = nearer(found, candidate, near);
	}
	if (found == NOWHERE)
		sy__backend_zone_of(zone)->pretrace_none |= 1u << order;
	return found;
}

/* Takes the nearest run of a zone's pretrace pages, as a block of the environment. */
static struct sy_page *take_nearest(struct sy__zone *zone, unsigned order, uint64_t near)
{
	struct sy_page *page = NULL;
	uint64_t number = NOWHERE;

	sy__lock(&zone->lock);
	if (sy__backend_zone_of(zone)->pretrace >> order)
		number = search_zone(zone, order, near);
	if (number != NOWHERE) {
		sy__pretrace_remove(zone, number, (uint64_t)1 << order);
		sy__backend_zone_of(zone)->pretrace -= (uint64_t)1 << order;
		page = sy__page(zone->pages, number);
		page->zone = zone->index;
		page->node = zone->node;
		page->order = (uint8_t)order;
		sy__set_migrate(page, sy__pageblock_type(zone->pages, number));
		sy__set_use(page, SY_USE_ENVIRONMENT);
	}
	sy__unlock(&zone->lock);
	return page;
}

static uint64_t distance_to_zone(const struct sy__zone *zone, uint64_t near)
{
	if (near < zone->start)
		return zone->start - near;
	return near < zone->start + zone->span ? 0 : near - (zone->start + zone->span) + 1;
}

/* The nearest zone with enough pretrace pages; NULL: none. */
static struct sy__zone *zone_with_pretrace(struct sy_pages *pages, unsigned order, uint64_t near)
{
	struct sy__zone *found = NULL;
	unsigned i;

	for (i = 0; i < pages->zone_count; i++) {
		struct sy__zone *zone = &pages->zones[i];
		uint64_t count;

		sy__lock(&zone->lock);
		count = sy__backend_zone_of(zone)->pretrace;
		sy__unlock(&zone->lock);
		if (count >> order && (!found || distance_to_zone(zone, near) < distance_to_zone(found, near)))
			found = zone;
	}
	return found;
}

static bool free_near(struct sy__zone *zone, unsigned slot, unsigned order, uint64_t near)
{
	struct sy_page *page = take_nearest(zone, order, near);

	if (page) {
		sy__block_give(zone->pages, slot, page, order, SY_USE_PRETRACE);
		return true;
	}
	return order && free_near(zone, slot, order - 1, near) && free_near(zone, slot, order - 1, near);
}

bool sy_pages_free_pretrace(struct sy_pages *pages, unsigned slot, unsigned order, uint64_t near_page)
{
	struct sy__zone *zone = order <= SY_MAX_ORDER ? zone_with_pretrace(pages, order, near_page) : NULL;

	return zone && free_near(zone, slot, order, near_page);
}
