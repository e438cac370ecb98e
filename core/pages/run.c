/*
 * Runs: any number of pages side by side, as alloc_pages_exact of Linux has them.
 *
 * A run is a row of blocks, each the largest power of two that its number and what is left of the run allow, hence owned and
 * freed like any others: 11 pages from a multiple of 16 on are blocks of 8, 2 and 1. Where a run is the beginning of a block, what
 * is left of that falls into blocks by the same rule seen from its end: of 16 pages, 1 and 4.
 *
 * Whoever goes from block to block without the zone's lock (core/backend/free_page_map.c, as a map begins) may meet a block that
 * is just cut. So the first block's order is written last, with a release: until then the row is one block as before.
 */
#include "pages.h"

unsigned sy__run_order(uint64_t number, uint64_t pages)
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

	for (uint64_t at = (uint64_t)1 << sy__run_order(number, count); at < count; at += (uint64_t)1 << order) {
		order = sy__run_order(number + at, count - at);
		set_head(first, first + at, order);
	}
}

/* From here on others see the row. */
static void cut_first(const struct sy_pages *pages, struct sy_page *first, uint64_t count)
{
	__atomic_store_n(&first->order, (uint8_t)sy__run_order(sy__number(pages, first), count), __ATOMIC_RELEASE);
}

void sy__run_cut(const struct sy_pages *pages, struct sy_page *first, uint64_t count)
{
	cut_behind(pages, first, count);
	cut_first(pages, first, count);
}

void sy__run_cut_block(const struct sy_pages *pages, struct sy_page *first, uint64_t count, unsigned order)
{
	cut_behind(pages, first, count);
	for (uint64_t at = count; at < (uint64_t)1 << order; at += (uint64_t)1 << __builtin_ctzll(at))
		set_head(first, first + at, (unsigned)__builtin_ctzll(at));
	cut_first(pages, first, count);
}
