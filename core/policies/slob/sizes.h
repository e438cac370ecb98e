/*
 * How many free blocks of each size the pages of one SLOB list have.
 *
 * Linux's SLOB finds out by walking. A request that no page can serve looks at all pages before it takes a new one; in a heap of
 * 100 MB such requests make 99% of the visits of next fit. Best fit walks far for every request. Knowing the sizes in advance
 * changes no placement. A request for which no block is large enough takes a new page at once. Best fit knows the smallest
 * sufficient size, so it ends its search at the first block of that size, and until then looks only for sizes between that and
 * the tightest block so far.
 *
 * There is a count for each size, and a bit for each count that is not zero. So a search for the smallest size looks at 64 sizes
 * at a time. Sizes are in units. The caller holds the lock.
 */
#ifndef SY_SLOB_SIZES_H
#define SY_SLOB_SIZES_H

#include "blocks.h"

#define SY__SLOB_WORDS (SY__SLOB_PAGE_UNITS / 64 + 1)

struct sy__slob_sizes {
	uint32_t counts[SY__SLOB_PAGE_UNITS + 1];
	uint64_t present[SY__SLOB_WORDS];
};

/* units 0: no block, which is not counted. */
static inline void sy__slob_count_in(struct sy__slob_sizes *sizes, uint32_t units)
{
	if (units && !sizes->counts[units]++)
		sizes->present[units / 64] |= (uint64_t)1 << units % 64;
}

static inline void sy__slob_count_out(struct sy__slob_sizes *sizes, uint32_t units)
{
	if (units && !--sizes->counts[units])
		sizes->present[units / 64] &= ~((uint64_t)1 << units % 64);
}

/* The smallest size from `units` on that a block has; 0: none has. */
static inline uint32_t sy__slob_smallest(const struct sy__slob_sizes *sizes, uint32_t units)
{
	uint32_t word = units / 64;
	uint64_t bits = sizes->present[word] & ~(uint64_t)0 << units % 64;

	while (!bits && ++word < SY__SLOB_WORDS)
		bits = sizes->present[word];
	return bits ? word * 64 + (uint32_t)__builtin_ctzll(bits) : 0;
}

#endif
