/* Periodic work of a policy on each CPU slot. See visits.c. */
#ifndef SY_VISITS_H
#define SY_VISITS_H

#include "types.h"

#define SY__SECOND UINT64_C(1000000000) /* of sy__now() */

struct sy__visits {
	uint64_t period; /* nanoseconds from one visit of a slot to the next */
	uint32_t slot;   /* the slot that is visited next */
};

/* When the heap is created: the first visit is due a second from now. policy->tick then calls sy__visits_run. */
void sy__visits_start(struct sy_heap *, struct sy__visits *, uint64_t period);

/* Makes all visits that are due, each as of its due time, with sy_heap.lock held. */
void sy__visits_run(struct sy_heap *, struct sy__visits *, void (*visit)(struct sy_heap *, unsigned slot, uint64_t now));

#endif
