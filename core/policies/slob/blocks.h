/*
 * The inside of one SLOB page: a list of free blocks, ordered by address, that is kept in the free blocks themselves.
 *
 * Memory is counted in units of 2 bytes (4 where a page has more units than 15 bits count). A free block says in its
 * first unit how many units it has, and in its second at which unit of the page the next free block starts; the last one
 * names the page's end. A block of one unit has no room for both: it holds only the next block's place, negated, which no size
 * is. So no block is too small to be free, and an object in use costs nothing here. The caller of a free states the size, as
 * the page does not know it.
 *
 *     unit   0     1     2 .. 5     6         7 ..        2048
 *          | 6  |  9  |  free  ...  | in use  ...  | -14 | in use ...      sizes 6 and 1, next at 9 and at 14
 *
 * Invariants, verified by sy__slob_check_blocks: blocks ascend; no two touch, as freeing joins a block with the free
 * neighbours on both sides; their units add up to the page's free units; the list is empty only if there are none.
 *
 * Alignment concerns what the client gets, which stands `offset` units into the block (behind kmalloc's header): a block
 * starts where start + offset is a multiple of `align`. The units skipped to get there stay free, as a block of their own.
 *
 * All of it is by unit numbers relative to the page, so that no result depends on an address. The caller holds the lock.
 */
#ifndef SY_SLOB_BLOCKS_H
#define SY_SLOB_BLOCKS_H

#include "../../types.h"

#if SY_PAGE_SHIFT <= 15
typedef int16_t sy__slob_unit_t;
#else
typedef int32_t sy__slob_unit_t;
#endif

#define SY__SLOB_UNIT sizeof(sy__slob_unit_t)
#define SY__SLOB_PAGE_UNITS ((uint32_t)(SY_PAGE_SIZE / SY__SLOB_UNIT)) /* of a page; as a place: its end */

#define SY__SLOB_NO_BLOCK (SY__SLOB_PAGE_UNITS + 1) /* as a size: more than any */
#define SY__SLOB_WORD_UNITS ((uint32_t)(sizeof(uint64_t) / SY__SLOB_UNIT))

/* What is asked of a page, in units. */
struct sy__slob_want {
	uint32_t units, align, offset; /* align: a power of two */
};

/* Where it fits: in the free block at `block`, from `start` on. */
struct sy__slob_place {
	uint32_t previous;           /* the free block before it; the page's end: none */
	uint32_t block, units, next; /* the free block, and the one behind it */
	uint32_t start;
};

static inline void sy__slob_read(const sy__slob_unit_t *base, uint32_t block, uint32_t *units, uint32_t *next)
{
	int32_t first = base[block];

	if (sy__likely(first > 0)) {
		*units = (uint32_t)first;
		*next = (uint32_t)base[block + 1];
	} else {
		*units = 1;
		*next = (uint32_t)-first;
	}
}

static inline void sy__slob_write(sy__slob_unit_t *base, uint32_t block, uint32_t units, uint32_t next)
{
	if (units > 1) {
		base[block] = (sy__slob_unit_t)units;
		base[block + 1] = (sy__slob_unit_t)next;
	} else {
		base[block] = (sy__slob_unit_t)-(int32_t)next;
	}
}

/* Whether a free block may have `units`, and `next` behind it. */
static inline bool sy__slob_is_block(uint32_t block, uint32_t units, uint32_t next)
{
	return block + units <= next && next <= SY__SLOB_PAGE_UNITS;
}

/* What a walk over all free blocks of a page saw. */
struct sy__slob_seen {
	uint64_t sizes;   /* bits of their sizes, see sy__slob_size_bit */
	uint32_t largest; /* units */
	uint32_t damaged; /* 0, or behind the block where the walk ended, as the program had overwritten that */
};

/* The bit of a size in a set of sizes. Nearly all are whole words: those of the same word share a bit, and those that are 64
 * words apart. */
static inline uint64_t sy__slob_size_bit(uint32_t units)
{
	return (uint64_t)1 << units / SY__SLOB_WORD_UNITS % 64;
}

static inline void sy__slob_see(struct sy__slob_seen *seen, uint32_t units)
{
	seen->sizes |= sy__slob_size_bit(units);
	if (units > seen->largest)
		seen->largest = units;
}

/* Where in a free block the object may start. */
static inline uint32_t sy__slob_start(uint32_t block, const struct sy__slob_want *want)
{
	return ((block + want->offset + want->align - 1) & ~(want->align - 1)) - want->offset;
}

static inline bool sy__slob_fits(uint32_t block, uint32_t units, const struct sy__slob_want *want)
{
	return units >= want->units && units - want->units >= sy__slob_start(block, want) - block;
}

/* The first block of the page with room. first is the page's first free block. False: none has, and all were seen. */
static inline bool sy__slob_first_fit(const sy__slob_unit_t *base, uint32_t first, const struct sy__slob_want *want,
                                      struct sy__slob_place *place, struct sy__slob_seen *seen)
{
	uint32_t previous = SY__SLOB_PAGE_UNITS, units, next;

	*seen = (struct sy__slob_seen){ 0 };
	for (uint32_t block = first; block < SY__SLOB_PAGE_UNITS; previous = block, block = next) {
		sy__slob_read(base, block, &units, &next);
		if (sy__unlikely(!sy__slob_is_block(block, units, next))) {
			seen->damaged = block + 1;
			break;
		}
		if (sy__slob_fits(block, units, want)) {
			*place = (struct sy__slob_place){ previous, block, units, next, sy__slob_start(block, want) };
			return true;
		}
		sy__slob_see(seen, units);
	}
	return false;
}

/* Units of the smallest block of the page with room, or SY__SLOB_NO_BLOCK. All blocks are seen. If it has less than
 * `below` units, *place is there; the first of equals. */
static inline uint32_t sy__slob_best_fit(const sy__slob_unit_t *base, uint32_t first, const struct sy__slob_want *want,
                                         uint32_t below, struct sy__slob_place *place, struct sy__slob_seen *seen)
{
	uint32_t previous = SY__SLOB_PAGE_UNITS, least = SY__SLOB_NO_BLOCK, units, next;

	*seen = (struct sy__slob_seen){ 0 };
	for (uint32_t block = first; block < SY__SLOB_PAGE_UNITS; previous = block, block = next) {
		sy__slob_read(base, block, &units, &next);
		if (sy__unlikely(!sy__slob_is_block(block, units, next))) {
			seen->damaged = block + 1;
			break;
		}
		sy__slob_see(seen, units);
		if (units >= least || !sy__slob_fits(block, units, want))
			continue;
		least = units;
		if (units < below)
			*place = (struct sy__slob_place){ previous, block, units, next, sy__slob_start(block, want) };
	}
	return least;
}

/* Takes `units` at the place; returns the page's first free block from now on (the page's end: it is full). */
static inline uint32_t sy__slob_take(sy__slob_unit_t *base, uint32_t first, const struct sy__slob_place *place,
                                     uint32_t units)
{
	uint32_t head = place->start - place->block, tail = place->units - head - units, next = place->next;

	if (tail) {
		sy__slob_write(base, place->start + units, tail, next);
		next = place->start + units;
	}
	if (head) {
		sy__slob_write(base, place->block, head, next);
		return first;
	}
	if (place->previous == SY__SLOB_PAGE_UNITS)
		return next;

	uint32_t previous_units, behind;

	sy__slob_read(base, place->previous, &previous_units, &behind);
	sy__slob_write(base, place->previous, previous_units, next);
	return first;
}

/* Result of a free: units of the free block that the freed one became part of, and of the free blocks that it joined before and
 * behind it (0: none). */
struct sy__slob_joined {
	uint32_t units, before, behind;
};

/* Gives `units` at `block` back to a page that has free blocks; returns its first free block from now on. Or SY__SLOB_NO_BLOCK, and
 * nothing was done: the block is free already, which joined->before names then, or the first units of that block were overwritten. */
static inline uint32_t sy__slob_put(sy__slob_unit_t *base, uint32_t first, uint32_t block, uint32_t units,
                                    struct sy__slob_joined *joined)
{
	uint32_t previous = SY__SLOB_PAGE_UNITS, previous_units = 0, next = first, behind;

	while (next < block) {
		previous = next;
		sy__slob_read(base, previous, &previous_units, &next);
		if (sy__unlikely(next <= previous || next > SY__SLOB_PAGE_UNITS)) { /* the program has overwritten it */
			*joined = (struct sy__slob_joined){ 0, previous, 0 };
			return SY__SLOB_NO_BLOCK;
		}
	}
	if (sy__unlikely(block + units > next || (previous != SY__SLOB_PAGE_UNITS && previous + previous_units > block))) {
		*joined = (struct sy__slob_joined){ 0, block, 0 };
		return SY__SLOB_NO_BLOCK;
	}
	*joined = (struct sy__slob_joined){ units, 0, 0 };
	if (block + units == next && next != SY__SLOB_PAGE_UNITS) {
		sy__slob_read(base, next, &joined->behind, &behind);
		units += joined->behind;
		next = behind;
	}
	joined->units = units;
	if (previous == SY__SLOB_PAGE_UNITS) {
		sy__slob_write(base, block, units, next);
		return block;
	}
	if (previous + previous_units == block) {
		joined->before = previous_units;
		joined->units += previous_units;
		sy__slob_write(base, previous, joined->units, next);
	} else {
		sy__slob_write(base, block, units, next);
		sy__slob_write(base, previous, previous_units, block);
	}
	return first;
}

/* NULL, or which invariant does not hold for a page that counts `free_units`. */
static inline const char *sy__slob_check_blocks(const sy__slob_unit_t *base, uint32_t first, uint32_t free_units)
{
	uint32_t sum = 0, block = first, edge = 0, units, next;

	while (block != SY__SLOB_PAGE_UNITS) {
		if (block > SY__SLOB_PAGE_UNITS)
			return "slob: a free block lies outside its page";
		if (sum && block <= edge)
			return block == edge ? "slob: two free blocks touch: freeing did not join them"
			                     : "slob: the free blocks of a page are not in order of address";
		sy__slob_read(base, block, &units, &next);
		if (units > SY__SLOB_PAGE_UNITS - block)
			return "slob: a free block reaches beyond its page";
		edge = block + units;
		sum += units;
		block = next;
	}
	return sum == free_units ? NULL : "slob: the free blocks of a page don't add up to its free units";
}

#endif
