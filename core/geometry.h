/*
 * Arithmetic on sizes, orders and alignments that several files share. Sizes are in bytes; an order is the exponent of a power of two
 * of pages. Everything folds to a few instructions.
 */
#ifndef SY_GEOMETRY_H
#define SY_GEOMETRY_H

#include "types.h"

/* Smallest order whose block holds so many bytes; more than SY_MAX_ORDER when none does. */
static inline unsigned sy__order_of(size_t bytes)
{
	size_t pages = (bytes - 1) >> SY_PAGE_SHIFT; /* one fewer than needed */
	unsigned order = bytes > SY_PAGE_SIZE ? (unsigned)(CHAR_BIT * sizeof(long)) - (unsigned)__builtin_clzl(pages) : 0;

	return order <= SY_MAX_ORDER ? order : SY_MAX_ORDER + 1;
}

/* Objects of one size that a block holds. */
static inline uint32_t sy__order_objects(unsigned order, size_t size)
{
	return (uint32_t)((SY_PAGE_SIZE << order) / size);
}

/* Position of the highest set bit, counted from 1; 0 for 0. Linux: fls(). */
static inline unsigned sy__highest_bit(uint32_t value)
{
	return value ? 32u - (unsigned)__builtin_clz(value) : 0;
}

static inline size_t sy__align_up(size_t value, size_t align)
{
	return (value + align - 1) & ~(align - 1);
}

#endif
