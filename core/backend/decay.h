/* Decay of free memory: its state in a page allocator. See decay.c. */
#ifndef SY_DECAY_H
#define SY_DECAY_H

#include "../pages/pages.h"

#define SY__DECAY_STEPS 8u /* in the time that memory must stay free */

struct sy__decay {
	sy__lock_t lock;          /* everything here; held while memory goes back */
	uint64_t seen;            /* sy__now() of the last visit */
	uint64_t stepped, searched; /* the clock at the last step, and at the last search of fast decay */
	uint64_t given;           /* the clock when memory last went back; 0: never */
	size_t lows[SY__DECAY_STEPS]; /* minimum of free and backed pages in each of the last steps */
	unsigned step;            /* the next of them */
	size_t due;               /* pages that may go back now */
	unsigned doublings;       /* of the time that memory must stay free */
	unsigned quiet;           /* steps without many refaults */
	unsigned lost_bets;       /* refaults after fast decay */
	bool fast;                /* the last memory that went back did so by fast decay */
	uint64_t fast_since;      /* the clock when fast decay began, or last returned memory; 0: it is off */
	bool recheck;             /* [r] what the last visit told its caller */
};
_Static_assert(sizeof(struct sy__decay) <= SY__ABOVE_BYTES, "a page allocator has room for it");

static inline struct sy__decay *sy__decay_of(struct sy_pages *pages)
{
	return (struct sy__decay *)(void *)pages->above;
}

/* sy__pages_hooks.await. */
void sy__decay_await(struct sy_pages *);

#endif
