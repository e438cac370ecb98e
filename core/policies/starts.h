/*
 * Block start bitmaps: one bit for each 16 bytes of a slab's pages says whether a block starts there. general.c takes the map with the
 * pages.
 *
 * Blocks lie side by side without gaps, so a block ends where the next one starts, or at the end of the slab. So one bit gives the
 * size of a block from its address. The map takes 1/128 of the memory for any sizes; headers would take a third of a small
 * object, and double each power of two.
 *
 *     unit    0   1   2   3   4   5   6   7 …
 *     bit     1   0   1   1   0   0   0   1         blocks of 2, 1 and 4 units
 *
 * The caller holds the lock that covers the map.
 */
#ifndef SY_STARTS_H
#define SY_STARTS_H

#include "../types.h"

#define SY__UNIT_SHIFT 4
#define SY__UNIT ((size_t)1 << SY__UNIT_SHIFT)                       /* bytes */
#define SY__PAGE_UNITS ((uint32_t)(SY_PAGE_SIZE >> SY__UNIT_SHIFT))
#define SY__STARTS_WORDS (SY__PAGE_UNITS / 32)                       /* of a map, for each page */

static inline bool sy__starts_at(const uint32_t *map, uint32_t unit)
{
	return map[unit / 32] >> unit % 32 & 1;
}

static inline void sy__starts_set(uint32_t *map, uint32_t unit)
{
	map[unit / 32] |= 1u << unit % 32;
}

static inline void sy__starts_clear(uint32_t *map, uint32_t unit)
{
	map[unit / 32] &= ~(1u << unit % 32);
}

/* Where the block that starts at this unit ends; units: of the whole slab. */
static inline uint32_t sy__starts_end(const uint32_t *map, uint32_t unit, uint32_t units)
{
	uint32_t at = unit + 1, bits;

	if (at == units)
		return units;
	bits = map[at / 32] >> at % 32;
	while (!bits) {
		at = (at | 31) + 1;
		if (at >= units)
			return units;
		bits = map[at / 32];
	}
	return at + (uint32_t)__builtin_ctz(bits);
}

#endif
