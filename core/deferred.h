/* Memory that waits for an RCU grace period. See deferred.c. */
#ifndef SY_DEFERRED_H
#define SY_DEFERRED_H

#include "types.h"

/* Queues an entry; policy->grace_passed gets it when the heap's grace period has passed. May be called with locks of
 * levels 1 and 2 held. The entry belongs to the queue until then. */
void sy__defer(struct sy_heap *, struct sy_deferred *);

/* Ends the waits of those that are due. Called with no lock held. */
void sy__deferred_run(struct sy_heap *);

/* The same where something may wait. In most programs nothing ever does, and that code need not come into memory. */
static inline void sy__deferred_look(struct sy_heap *heap)
{
	if (__atomic_load_n(&heap->deferred_first, __ATOMIC_RELAXED))
		sy__deferred_run(heap);
}

/* Takes every entry off the queue that the caller wants, due or not, and returns them linked through next, in
 * the order of the queue. For a cache that is destroyed: whoever destroys it promises that no reader is left. */
struct sy_deferred *sy__deferred_extract(struct sy_heap *,
                                         bool (*wanted)(const struct sy_deferred *, const void *context),
                                         const void *context);

/* Ends the wait of every entry that the caller wants: policy->grace_passed gets it now. */
void sy__deferred_finish(struct sy_heap *, bool (*wanted)(const struct sy_deferred *, const void *context),
                         const void *context);

/* NULL, or which invariant does not hold. */
const char *sy__deferred_check(struct sy_heap *);

#endif
