/*
 * The map of free pages: one bit for each page of a zone, in heaps that place large runs by best fit (best_fit.c).
 *
 * Why. A best fit search asks where free blocks lie side by side. Descriptors tell that too, but the way from one free block to
 * the next then leads over every block in use between them. A program that writes to large objects has none of these
 * descriptors in its caches, and waited there for more than half of each search. The bits of 256 MiB take 8 KiB.
 *
 * How. A zone builds its map from the descriptors at its first search, so small heaps without large objects have neither the
 * memory nor the work. It also builds the map when it has grown to MOST_UNMAPPED pages, as reading more descriptors would hold
 * the lock for too long. From then on every change of the free pages updates the map (sy__zone_gains, sy__zone_loses), and so
 * does a maximal block that grows. The map says nothing about pages that have not grown. A page on a per-CPU list is not free
 * here.
 *
 * The table gets memory as the zone grows. Where the system has none for it, there is no map, or the zone does not grow.
 *
 * A populated zone uses the same table of bits for its pretrace pages (pretrace.c). Such zones never search.
 *
 * Lock: the zone's, for everything here.
 */
#include "free_page_map.h"

#define WORD 64u
#define MOST_UNMAPPED (16 * SY__MAX_BLOCK)
#define STEP (8 * SY_PAGE_SIZE) /* pages that a page of the table has bits for */

bool sy__free_page_map_cover(struct sy_pages *pages, uint64_t end)
{
	struct sy__backend *backend = sy__backend_of(pages);
	uint64_t from = backend->mapped, to = (end + STEP - 1) / STEP * STEP;

	to = to < pages->block_count << SY_MAX_ORDER ? to : pages->block_count << SY_MAX_ORDER;
	if (from >= to)
		return true;
	if (sy__source_commit(&pages->page_bits[from / WORD], (size_t)(to - from) / WORD * sizeof(uint64_t)))
		return false;
	backend->mapped = to;
	return true;
}

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

/* Blocks may change owners meanwhile, but their orders stay readable: cutting a block into a run without the lock writes the
 * order of its first page last (core/pages/run.c). */
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

bool sy__free_page_map_start(struct sy__zone *zone)
{
	uint64_t grown = zone->managed % SY__MAX_BLOCK ? zone->start + zone->present : zone->next_ungrown;

	if (!sy__free_page_map_cover(zone->pages, grown))
		return false;
	map_range(zone, zone->start, zone->next_ungrown);
	map_range(zone, zone->start + (zone->managed & ~(SY__MAX_BLOCK - 1)), zone->start + zone->present);
	return zone->told = true;
}

void sy__free_page_map_grown(struct sy__zone *zone)
{
	if (!zone->told && sy__free_page_map_applies(zone->pages) && zone->next_ungrown - zone->start >= MOST_UNMAPPED)
		sy__free_page_map_start(zone);
}

/* The first free page from `at` on, or the end. With all bits of `invert` set: the first page that is not free. */
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

/* Start of the extent that ends with this page; not before `from`. */
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

/* Bits at which SY__FREE_PAGE_MAP_LEAST / 2 set bits in a row begin. */
static uint64_t sequences(uint64_t word)
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
		uint64_t found = sequences(bits[at / WORD] & UINT64_MAX << at % WORD);

		if (found)
			return sy__free_page_map_around(zone, from, to, at / WORD * WORD + (uint64_t)__builtin_ctzll(found), start);
	}
	return 0;
}

const char *sy__free_page_map_agrees(const struct sy__zone *zone, uint64_t number, unsigned order, bool is_free)
{
	uint64_t end = number + ((uint64_t)1 << order);

	if (next(zone->pages->page_bits, number, end, is_free ? UINT64_MAX : 0) == end)
		return NULL;
	return "the map of free pages disagrees with a block";
}
