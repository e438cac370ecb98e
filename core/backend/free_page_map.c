/*
 * Which pages of a zone are free: a bit for each, in heaps that place large runs where they fit best (best_fit.c).
 *
 * Why. Such a search asks where free blocks lie side by side. Their descriptors tell, but the way from one to the next leads over
 * all blocks in use between them, and a program that writes to large objects has none of these in its caches: of what it spent
 * on them, half or more was to wait there. The bits of 256 MiB take 8 KiB.
 *
 * How. A zone begins its map at the first search, from the descriptors, so that small heaps without large objects neither have the
 * memory nor the work; and when it has grown to MOST_UNMAPPED pages, as to read the descriptors of more would take long with the
 * lock held. From then on whoever adds to the free pages or takes of them says which (sy__zone_gains, sy__zone_loses),
 * and so does a maximal block that grows; of what has not grown the map says nothing. A page that a CPU's list has is not free
 * here. All with the zone's lock held.
 *
 * The table is that in which populated zones keep their older pages (older.c): those never search.
 */
#include "best_fit.h"

#define WORD 64u
#define MOST_UNMAPPED (16 * SY__MAX_BLOCK)

void sy__free_page_map_note(struct sy__zone *zone, uint64_t number, unsigned order, bool is_free)
{
	uint64_t *word = &zone->pages->page_bits[number / WORD], mask;

	if (order >= 6) {
		for (uint64_t *end = word + ((size_t)1 << (order - 6)); word < end; word++)
			*word = is_free ? UINT64_MAX : 0;
		return;
	}
	mask = (((uint64_t)1 << (1u << order)) - 1) << number % WORD;
	*word = is_free ? *word | mask : *word & ~mask;
}

/* Blocks change hands meanwhile, but not their orders: who cuts one into a row without the lock writes the order of its first page
 * last (run.c). */
static void map_range(struct sy__zone *zone, uint64_t number, uint64_t end)
{
	while (number < end) {
		const struct sy_page *page = sy__page(zone->pages, number);
		unsigned order = __atomic_load_n(&page->order, __ATOMIC_ACQUIRE);

		if (sy__use(page) == SY_USE_FREE)
			sy__free_page_map_note(zone, number, order, true);
		number += (uint64_t)1 << order;
	}
}

void sy__free_page_map_start(struct sy__zone *zone)
{
	map_range(zone, zone->start, zone->next_ungrown);
	map_range(zone, zone->start + (zone->managed & ~(SY__MAX_BLOCK - 1)), zone->start + zone->present);
	zone->mapped = true;
}

void sy__free_page_map_grown(struct sy__zone *zone, uint64_t number)
{
	if (zone->mapped)
		sy__free_page_map_note(zone, number, SY_MAX_ORDER, true);
	else if (sy__runs_are_placed(zone->pages) && zone->next_ungrown - zone->start >= MOST_UNMAPPED)
		sy__free_page_map_start(zone);
}

/* The first page from there on that is free, or where `invert` has all bits: that is not; or the end. */
static uint64_t next(const uint64_t *bits, uint64_t at, uint64_t end, uint64_t invert)
{
	while (at < end) {
		uint64_t word = (bits[at / WORD] ^ invert) >> at % WORD;

		if (word) {
			at += (uint64_t)__builtin_ctzll(word);
			break;
		}
		at = (at / WORD + 1) * WORD;
	}
	return at < end ? at : end;
}

/* The first of the free pages, not before `from`, that lead up to this one. */
static uint64_t first_of(const uint64_t *bits, uint64_t at, uint64_t from)
{
	while (at > from) {
		unsigned above = (unsigned)(-at % WORD), most = WORD - above;
		uint64_t taken = ~bits[(at - 1) / WORD] << above;
		unsigned run = taken ? (unsigned)__builtin_clzll(taken) : most;

		if (run < most)
			return at - run;
		at -= most;
	}
	return at;
}

uint64_t sy__free_page_map_around(const struct sy__zone *zone, uint64_t from, uint64_t to, uint64_t number, uint64_t *start)
{
	const uint64_t *bits = zone->pages->page_bits;

	if (number < from || next(bits, number, to, 0) != number || number >= to)
		return 0;
	*start = first_of(bits, number, from);
	return next(bits, number, to, UINT64_MAX) - *start;
}

/* Bits at which a row of SY__FREE_PAGE_MAP_LEAST / 2 begins. */
static uint64_t rows(uint64_t word)
{
	word &= word >> 1;
	word &= word >> 2;
	word &= word >> 4;
	return word & word >> 8;
}

uint64_t sy__free_page_map_next(const struct sy__zone *zone, uint64_t from, uint64_t to, uint64_t at, uint64_t *start)
{
	const uint64_t *bits = zone->pages->page_bits;

	for (; at < to; at = (at / WORD + 1) * WORD) {
		uint64_t found = rows(bits[at / WORD] & UINT64_MAX << at % WORD);

		if (found)
			return sy__free_page_map_around(zone, from, to, at / WORD * WORD + (uint64_t)__builtin_ctzll(found), start);
	}
	return 0;
}

bool sy__free_page_map_agrees(const struct sy__zone *zone, uint64_t number, unsigned order, bool is_free)
{
	uint64_t end = number + ((uint64_t)1 << order);

	return next(zone->pages->page_bits, number, end, is_free ? UINT64_MAX : 0) == end;
}
