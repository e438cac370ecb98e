/* <linux/bitmap.h> for kernel code that is compiled into a program: sets of small numbers, in arrays of unsigned long. */
#ifndef SLABYARD_KERNEL_LINUX_BITMAP_H
#define SLABYARD_KERNEL_LINUX_BITMAP_H

#pragma GCC system_header

#include "bitops.h"
#include "find.h"
#include "slab.h"

#include <string.h>

#define BITMAP_FIRST_WORD_MASK(start) (~0UL << ((start) & (BITS_PER_LONG - 1)))
#define BITMAP_LAST_WORD_MASK(bits) (~0UL >> (-(bits) & (BITS_PER_LONG - 1)))
#define bitmap_size(bits) (BITS_TO_LONGS(bits) * sizeof(long))

static inline unsigned long *bitmap_alloc(unsigned bits, gfp_t flags)
{
	return (unsigned long *)kmalloc_array(BITS_TO_LONGS((size_t)bits), sizeof(long), flags);
}

static inline unsigned long *bitmap_zalloc(unsigned bits, gfp_t flags)
{
	return bitmap_alloc(bits, flags | __GFP_ZERO);
}

static inline void bitmap_free(const unsigned long *map)
{
	kfree(map);
}

static inline void bitmap_zero(unsigned long *map, unsigned bits)
{
	memset(map, 0, bitmap_size((size_t)bits));
}

static inline void bitmap_fill(unsigned long *map, unsigned bits)
{
	memset(map, 0xff, bitmap_size((size_t)bits));
}

static inline void bitmap_copy(unsigned long *map, const unsigned long *from, unsigned bits)
{
	memcpy(map, from, bitmap_size((size_t)bits));
}

static inline void bitmap_set(unsigned long *map, unsigned start, unsigned bits)
{
	for (; bits--; start++)
		__set_bit(start, map);
}

static inline void bitmap_clear(unsigned long *map, unsigned start, unsigned bits)
{
	for (; bits--; start++)
		__clear_bit(start, map);
}

/* The bits of a word that are of the map. */
static inline unsigned long sy__bitmap_mask(unsigned bits, unsigned word)
{
	return word + 1 < BITS_TO_LONGS(bits) ? ~0UL : BITMAP_LAST_WORD_MASK(bits);
}

static inline bool bitmap_and(unsigned long *map, const unsigned long *a, const unsigned long *b, unsigned bits)
{
	unsigned long any = 0;
	unsigned i;

	for (i = 0; i < BITS_TO_LONGS(bits); i++)
		any |= (map[i] = a[i] & b[i]) & sy__bitmap_mask(bits, i);
	return any != 0;
}

static inline bool bitmap_andnot(unsigned long *map, const unsigned long *a, const unsigned long *b, unsigned bits)
{
	unsigned long any = 0;
	unsigned i;

	for (i = 0; i < BITS_TO_LONGS(bits); i++)
		any |= (map[i] = a[i] & ~b[i]) & sy__bitmap_mask(bits, i);
	return any != 0;
}

static inline void bitmap_or(unsigned long *map, const unsigned long *a, const unsigned long *b, unsigned bits)
{
	unsigned i;

	for (i = 0; i < BITS_TO_LONGS(bits); i++)
		map[i] = a[i] | b[i];
}

static inline void bitmap_xor(unsigned long *map, const unsigned long *a, const unsigned long *b, unsigned bits)
{
	unsigned i;

	for (i = 0; i < BITS_TO_LONGS(bits); i++)
		map[i] = a[i] ^ b[i];
}

static inline void bitmap_complement(unsigned long *map, const unsigned long *a, unsigned bits)
{
	unsigned i;

	for (i = 0; i < BITS_TO_LONGS(bits); i++)
		map[i] = ~a[i];
}

static inline bool bitmap_equal(const unsigned long *a, const unsigned long *b, unsigned bits)
{
	unsigned long other = 0;
	unsigned i;

	for (i = 0; i < BITS_TO_LONGS(bits); i++)
		other |= (a[i] ^ b[i]) & sy__bitmap_mask(bits, i);
	return !other;
}

static inline bool bitmap_intersects(const unsigned long *a, const unsigned long *b, unsigned bits)
{
	unsigned long both = 0;
	unsigned i;

	for (i = 0; i < BITS_TO_LONGS(bits); i++)
		both |= a[i] & b[i] & sy__bitmap_mask(bits, i);
	return both != 0;
}

static inline bool bitmap_subset(const unsigned long *a, const unsigned long *b, unsigned bits)
{
	unsigned long beyond = 0;
	unsigned i;

	for (i = 0; i < BITS_TO_LONGS(bits); i++)
		beyond |= a[i] & ~b[i] & sy__bitmap_mask(bits, i);
	return !beyond;
}

static inline unsigned bitmap_weight(const unsigned long *map, unsigned bits)
{
	unsigned count = 0, i;

	for (i = 0; i < BITS_TO_LONGS(bits); i++)
		count += (unsigned)hweight_long(map[i] & sy__bitmap_mask(bits, i));
	return count;
}

static inline bool bitmap_empty(const unsigned long *map, unsigned bits)
{
	return find_first_bit(map, bits) == bits;
}

static inline bool bitmap_full(const unsigned long *map, unsigned bits)
{
	return find_first_zero_bit(map, bits) == bits;
}

/* The first run of clear bits from start on, at a multiple of mask + 1; more than size: there is none. */
static inline unsigned long bitmap_find_next_zero_area(unsigned long *map, unsigned long size, unsigned long start, unsigned count,
                                                       unsigned long mask)
{
	for (;;) {
		unsigned long at = (find_next_zero_bit(map, size, start) + mask) & ~mask, end = at + count;

		if (end > size)
			return end;
		start = find_next_bit(map, end, at);
		if (start >= end)
			return at;
		start++;
	}
}

/* 2^order bits at a multiple of that: where they are, set now. -ENOMEM. */
static inline int bitmap_find_free_region(unsigned long *map, unsigned bits, int order)
{
	unsigned long at = bitmap_find_next_zero_area(map, bits, 0, 1U << order, (1UL << order) - 1);

	if (at + (1UL << order) > bits)
		return -ENOMEM;
	bitmap_set(map, (unsigned)at, 1U << order);
	return (int)at;
}

static inline void bitmap_release_region(unsigned long *map, unsigned at, int order)
{
	bitmap_clear(map, at, 1U << order);
}

DEFINE_FREE(bitmap, unsigned long *, if (_T) bitmap_free(_T))

#endif
