/* <linux/find.h> for kernel code that is compiled into a program: the next bit that is set, or not. */
#ifndef SLABYARD_KERNEL_LINUX_FIND_H
#define SLABYARD_KERNEL_LINUX_FIND_H

#pragma GCC system_header

#include "bitops.h"

/* From offset on; size: there is none. Of the words, those bits that are not like invert. */
static inline unsigned long sy__find_bit(const unsigned long *map, unsigned long size, unsigned long offset, unsigned long invert)
{
	unsigned long word;

	if (offset >= size)
		return size;
	word = (map[BIT_WORD(offset)] ^ invert) & ~0UL << offset % BITS_PER_LONG;
	for (offset -= offset % BITS_PER_LONG; !word;) {
		offset += BITS_PER_LONG;
		if (offset >= size)
			return size;
		word = map[BIT_WORD(offset)] ^ invert;
	}
	offset += __ffs(word);
	return offset < size ? offset : size;
}

static inline unsigned long find_next_bit(const unsigned long *map, unsigned long size, unsigned long offset)
{
	return sy__find_bit(map, size, offset, 0);
}

static inline unsigned long find_next_zero_bit(const unsigned long *map, unsigned long size, unsigned long offset)
{
	return sy__find_bit(map, size, offset, ~0UL);
}

#define find_first_bit(map, size) find_next_bit(map, size, 0)
#define find_first_zero_bit(map, size) find_next_zero_bit(map, size, 0)

static inline unsigned long find_last_bit(const unsigned long *map, unsigned long size)
{
	unsigned long bit = size;

	while (bit--)
		if (test_bit(bit, map))
			return bit;
	return size;
}

#define for_each_set_bit(bit, map, size) \
	for ((bit) = find_first_bit(map, size); (bit) < (size); (bit) = find_next_bit(map, size, (bit) + 1))
#define for_each_set_bit_from(bit, map, size) \
	for ((bit) = find_next_bit(map, size, bit); (bit) < (size); (bit) = find_next_bit(map, size, (bit) + 1))
#define for_each_clear_bit(bit, map, size) \
	for ((bit) = find_first_zero_bit(map, size); (bit) < (size); (bit) = find_next_zero_bit(map, size, (bit) + 1))

#endif
