/* Read-copy update for the slab API. See rcu.c. */
#ifndef SY_RCU_H
#define SY_RCU_H

#include "core/types.h"

/* Has slabs of SLAB_TYPESAFE_BY_RCU caches wait for readers. To be called before any other thread knows the heap. */
void sy__rcu_hold_slabs(struct sy_heap *);

#endif
