/* What the slab API needs of RCU. See rcu.c. */
#ifndef SY_RCU_H
#define SY_RCU_H

#include "core/types.h"

/* Slabs of caches with SLAB_TYPESAFE_BY_RCU wait for readers from now on. Before any other thread knows the heap. */
void sy__rcu_hold_slabs(struct sy_heap *);

#endif
