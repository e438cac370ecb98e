/*
 * Runs: any number of pages side by side, like Linux's alloc_pages_exact.
 *
 * A run is made of blocks side by side. Each block has the largest power of two of pages that its number and the rest of the run allow, and is
 * owned and freed like any other block: 11 pages from a multiple of 16 on are blocks of 8, 2 and 1. If a run is the beginning of a
 * block, the rest of that block divides by the same rule, seen from its end: 5 of 16 pages are blocks of 1 and 4.
 *
 * The layer above may walk over blocks without their owners' knowledge, and meet a block that is just being cut. So the first block's
 * order is written last, with a release: until then the run reads as one block.
 */
#include "pages.h"

unsigned sy__run_order(uint64_t number, uint64_t pages)
{
	unsigned within = 63u - (unsigned)__builtin_clzll(pages), aligned = (unsigned)__builtin_ctzll(number | SY__MAX_BLOCK);

	return within < aligned ? within : aligned;
}

/* Sets up a block of the run that is not the first. */
static void set_head(const struct sy_page *first, struct sy_page *head, unsigned order)
{
	head->zone = first->zone;
	head->node = first->node;
	head->bytes = 0;
	sy__set_migrate(head, sy__migrate(first));
	sy__set_use(head, sy__use(first));
	__atomic_store_n(&head->order, (uint8_t)order, __ATOMIC_RELAXED);
}

/* Sets up all blocks of the run but the first. */
static void cut_behind(const struct sy_pages *pages, struct sy_page *first, uint64_t count)
{
	uint64_t number = sy__number(pages, first);
	unsigned order;

	for (uint64_t at = (uint64_t)1 << sy__run_order(number, count); at < count; at += (uint64_t)1 << order) {
		order = sy__run_order(number + at, count - at);
		set_head(first, first + at, order);
	}
}

/* Others see the run from now on. */
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
