/* When slow calls look at the clock: each SY__TICK_CALLS-th of a thread. this_slot.c says what they do then. */
#ifndef SY_TICKS_H
#define SY_TICKS_H

#include "types.h"

#define SY__TICK_PAGES 16u /* a free of a large allocation counts as one more slow call for each of these pages */
#define SY__TICK_CALLS 64u /* slow calls of a thread from one look at the clock to the next; a power of two */

/* Counts a fast call as a slow one. True: a look at the clock is due, so the caller should make this a slow call. */
static inline bool sy__tick_is_due(void)
{
	return !((sy__calls_more() + 1) & (SY__TICK_CALLS - 1));
}

/* Counts the pages that a slow call freed as further slow calls, up to the one that looks at the clock: a program that frees large
 * memory in few calls may make no others. */
static inline void sy__tick_advance(size_t pages)
{
	for (size_t more = pages / SY__TICK_PAGES; more && sy__calls() & (SY__TICK_CALLS - 1); more--)
		sy__calls_more();
}

#endif
