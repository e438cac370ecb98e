/* Work that a policy does for each CPU slot from time to time. See visits.c. */
#ifndef SY_VISITS_H
#define SY_VISITS_H

#include "types.h"

#define SY__SECOND UINT64_C(1000000000) /* of sy__now() */

struct sy__visits {
	uint64_t period; /* nanoseconds from one visit of a slot to the next */
	uint32_t slot;   /* the slot that is visited next */
};

/* The first visit is due a second from now. When the heap is made; policy->tick then calls sy__visits_run. */
void sy__visits_start(struct sy_heap *, struct sy__visits *, uint64_t period);

/* Makes all visits that are due, each as of its time, with sy_heap.lock held. */
void sy__visits_run(struct sy_heap *, struct sy__visits *, void (*visit)(struct sy_heap *, unsigned slot, uint64_t now));

#endif
