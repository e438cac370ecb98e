/*
 * Contraction: how a heap of threads notices that its slabs become far fewer, in policies with queues of free objects.
 *
 * A queue holds objects of any slabs, and each object keeps its whole slab alive. That is little while a program works. But when
 * it frees a peak in random order, thousands of objects end in queues, and each may keep a slab of its own. If the queues then serve all
 * that the program asks for, it never makes a slow call again. So queues must get short while the last objects of a peak come, and no clock
 * can tell when.
 *
 * Slabs tell, as they end late: of slabs of 64 objects freed at random, half are left when 99% of the objects are gone. A contraction
 * begins each time that the slabs have become half of what they were when one was last made, or at the last halving. During a
 * contraction, a slot that flushes its queue empties it, and may fill it with SY__CONTRACTION_QUEUE objects only. Other slots' queues
 * are emptied at each halving (policy->scavenge). The contraction ends when a slab is made, which shows that nothing free is left,
 * or after SY__CONTRACTION_FLUSHES flushes that ended no slab.
 *
 * Lock: that of the slabs.
 */
#ifndef SY_CONTRACTION_H
#define SY_CONTRACTION_H

#include "../types.h"

#define SY__CONTRACTION_BYTES ((uint64_t)256 << 10) /* a halving that ends fewer bytes of slabs does not count */
#define SY__CONTRACTION_FLUSHES 64u
#define SY__CONTRACTION_QUEUE 16u

struct sy__contraction {
	uint64_t from;    /* slabs when one was last made, or at the last halving */
	uint32_t flushes; /* left until the contraction ends; 0: there is none */
	bool halved;      /* the slabs halved since other slots' queues were emptied */
};

/* The limit of a queue during a contraction. */
static inline uint32_t sy__contraction_limit(uint32_t limit)
{
	return limit < SY__CONTRACTION_QUEUE ? limit : SY__CONTRACTION_QUEUE;
}

/* A slab was made: any contraction ends. slabs: their number now. */
static inline void sy__contraction_ends(struct sy__contraction *contraction, uint64_t slabs)
{
	contraction->from = slabs;
	contraction->flushes = 0;
}

/* Whether a contraction is going on, or begins now. slabs: their number now. */
static inline bool sy__contracts(struct sy__contraction *contraction, uint64_t slabs, unsigned order)
{
	if (slabs < contraction->from / 2 && (contraction->from - slabs) << order >= SY__CONTRACTION_BYTES >> SY_PAGE_SHIFT) {
		*contraction = (struct sy__contraction){ slabs, SY__CONTRACTION_FLUSHES, true };
		return true;
	}
	return contraction->flushes != 0;
}

/* A queue was emptied during a contraction, which ended `ended` slabs. */
static inline void sy__contraction_flushed(struct sy__contraction *contraction, uint64_t ended)
{
	if (ended)
		contraction->flushes = SY__CONTRACTION_FLUSHES;
	else if (contraction->flushes)
		contraction->flushes--;
}

#endif
