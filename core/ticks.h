/* When a thread's slow calls look at the clock: each SY__TICK_CALLS-th (here.c says what is done then). */
#ifndef SY_TICKS_H
#define SY_TICKS_H

#include "types.h"

#define SY__TICK_PAGES 16u /* of large allocations that a slow call frees are as much as another */
#define SY__TICK_CALLS 64u /* slow calls of a thread from one look at the clock to the next; a power of two */

/* Counts a call that is not slow for a slow one. True: the next slow call looks at the clock, and this had better be it. */
static inline bool sy__tick_is_due(void)
{
	return !((sy__calls_more() + 1) & (SY__TICK_CALLS - 1));
}

/* Counts what a slow call gave up as so many more, though not beyond the one that looks at the clock: a program that gives up all
 * that is large in few calls may never make others. */
static inline void sy__tick_sooner(size_t pages)
{
	for (size_t more = pages / SY__TICK_PAGES; more && sy__calls() & (SY__TICK_CALLS - 1); more--)
		sy__calls_more();
}

#endif
