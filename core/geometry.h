/*
 * Arithmetic on sizes, orders and alignments that several files share. Sizes are in bytes; an order is the exponent of a power of two
 * of pages. Everything folds to a few instructions.
 */
#ifndef SY_GEOMETRY_H
#define SY_GEOMETRY_H

#include "types.h"

/* Smallest order whose block holds that size; more than SY_MAX_ORDER when none does. */
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

/* A block of that order cut into objects of one size. */
static inline struct sy_geometry sy__geometry_of(unsigned order, size_t size)
{
	return (struct sy_geometry){ .size = (uint32_t)size, .order = order, .objects = sy__order_objects(order, size),
		                     .wasted = (uint32_t)((SY_PAGE_SIZE << order) % size) };
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

/* What tells whether distances within a slab are multiples of a size, by one multiplication: 2^64 divided by the size, rounded up. The
 * product modulo 2^64 is below that for multiples alone, as both are below 2^32 (Lemire, Kaser and Kurz, Faster remainder by
 * direct computation, 2019). */
static inline uint64_t sy__divider(size_t size)
{
	return UINT64_MAX / size + 1;
}

static inline bool sy__divides(uint64_t divider, size_t distance)
{
	return distance * divider < divider;
}

/* Whether an object starts `distance` bytes from the start of a row of objects of `bytes` in all. */
static inline bool sy__starts_in_row(uint64_t divider, size_t distance, size_t bytes)
{
	return distance < bytes && sy__divides(divider, distance);
}

#endif
