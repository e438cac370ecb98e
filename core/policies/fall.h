/*
 * How a heap of threads notices that much less is in use than was, for policies that keep queues of free objects.
 *
 * A queue holds objects of any slabs, and each of them keeps its whole slab. While a program works that is little beside what
 * is in use. But when a peak was freed in no order, the last thousands of objects lie in queues and each keeps a slab of its
 * own, far from the others'; and a program that then goes on with pairs of a call each, which the queues serve, comes by no
 * slow call for ever. So there is no later: queues must be short when the last objects of a peak come, without a clock.
 *
 * What counts is slabs, as they end late: of slabs of 64 objects, freed at random, half are left when 99 of 100 objects are
 * gone. Each time the slabs become half of what they were when one was made last, a fall begins. During it, whoever flushes a
 * queue empties it, and may fill it with SY__FALL_QUEUE objects only; others' queues are emptied at each halving
 * (policy->settle). It is over when a slab is made, which shows that nothing free is left, or after SY__FALL_FLUSHES flushes in
 * which no slab ended.
 *
 * Lock: that of the slabs.
 */
#ifndef SY_FALL_H
#define SY_FALL_H

#include "../types.h"

#define SY__FALL_BYTES ((uint64_t)256 << 10) /* a halving of less is none */
#define SY__FALL_FLUSHES 64u
#define SY__FALL_QUEUE 16u

struct sy__fall {
	uint64_t from;    /* slabs when one was made last, or at the last halving */
	uint32_t flushes; /* until the fall is over; 0: there is none */
	bool halved;      /* since others' queues were emptied */
};

/* How long a queue may be in a fall that else may be so long. */
static inline uint32_t sy__fall_limit(uint32_t limit)
{
	return limit < SY__FALL_QUEUE ? limit : SY__FALL_QUEUE;
}

/* A slab was made; now there are so many. */
static inline void sy__fall_ends(struct sy__fall *fall, uint64_t slabs)
{
	fall->from = slabs;
	fall->flushes = 0;
}

/* Whether slabs are falling, of which there are so many. */
static inline bool sy__falls(struct sy__fall *fall, uint64_t slabs, unsigned order)
{
	if (slabs < fall->from / 2 && (fall->from - slabs) << order >= SY__FALL_BYTES >> SY_PAGE_SHIFT) {
		*fall = (struct sy__fall){ slabs, SY__FALL_FLUSHES, true };
		return true;
	}
	return fall->flushes != 0;
}

/* A queue was emptied in a fall, and so many slabs ended. */
static inline void sy__fall_goes_on(struct sy__fall *fall, uint64_t ended)
{
	if (ended)
		fall->flushes = SY__FALL_FLUSHES;
	else if (fall->flushes)
		fall->flushes--;
}

#endif
