/* Giving memory back after a while: what is remembered for that of each page allocator. See decay.c. */
#ifndef SY_DECAY_H
#define SY_DECAY_H

#include "../pages/pages.h"

#define SY__DECAY_STEPS 8u /* in the time that memory must stay free */

struct sy__decay {
	sy__lock_t lock;          /* everything here; held while memory goes back */
	uint64_t seen;            /* sy__now() of the last visit */
	uint64_t stepped, looked; /* the clock at the last step, and when hurried blocks were last looked for */
	uint64_t given;           /* the clock when memory last went back; 0: never */
	size_t lows[SY__DECAY_STEPS]; /* least free and backed pages of each of the last steps */
	unsigned step;            /* the next of them */
	size_t due;               /* pages that may go back now */
	unsigned doublings;       /* of the time that memory must stay free */
	unsigned quiet;           /* steps without regret */
	unsigned regrets;         /* of having been in a hurry */
	bool hurried;             /* what went back last did so in a hurry */
	uint64_t hurry_since;     /* the clock when the hurry began, or last was of use; 0: there is none */
	bool hopes;               /* [r] that was a moment ago */
};
_Static_assert(sizeof(struct sy__decay) <= SY__ABOVE_BYTES, "a page allocator has room for it");

static inline struct sy__decay *sy__decay_of(struct sy_pages *pages)
{
	return (struct sy__decay *)(void *)pages->above;
}

/* sy__pages_hooks.await. */
void sy__decay_await(struct sy_pages *);

#endif
