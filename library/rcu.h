/* What the kernel's names have of their readers. See rcu.c. */
#ifndef SY_RCU_H
#define SY_RCU_H

#include "../core/types.h"

/* For a heap that nobody else knows yet: slabs of caches with SLAB_TYPESAFE_BY_RCU wait for readers, in place of time. */
void sy__rcu_hold_slabs(struct sy_heap *);

#endif
