/* Memory that waits for an RCU grace period. See deferred.c. */
#ifndef SY_DEFERRED_H
#define SY_DEFERRED_H

#include "types.h"

/* Queues an entry; policy->grace_passed gets it when the heap's grace period has passed. May be called with locks of
 * levels 1 and 2 held. The entry belongs to the queue until then. */
void sy__defer(struct sy_heap *, struct sy_deferred *);

/* Hands the entries that are due to policy->grace_passed. Called with no lock held. */
void sy__deferred_run(struct sy_heap *);

/* The same, if anything waits. In most programs nothing ever does, and the code above stays untouched. */
static inline void sy__deferred_poll(struct sy_heap *heap)
{
	if (__atomic_load_n(&heap->deferred_first, __ATOMIC_RELAXED))
		sy__deferred_run(heap);
}

/* Takes all wanted entries off the queue, due or not. Returns them linked through next, in the order of the queue. For a cache
 * that is destroyed: its destroyer promises that no reader is left. */
struct sy_deferred *sy__deferred_extract(struct sy_heap *,
                                         bool (*wanted)(const struct sy_deferred *, const void *context),
                                         const void *context);

/* Hands all wanted entries to policy->grace_passed, due or not. */
void sy__deferred_finish(struct sy_heap *, bool (*wanted)(const struct sy_deferred *, const void *context),
                         const void *context);

/* NULL, or which invariant does not hold. */
const char *sy__deferred_check(struct sy_heap *);

#endif
