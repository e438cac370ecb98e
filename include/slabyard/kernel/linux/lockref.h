/*
 * <linux/lockref.h> for kernel code that is compiled into a program: a lock and a count of references that the lock protects.
 * Below 0 it is dead.
 */
#ifndef SLABYARD_KERNEL_LINUX_LOCKREF_H
#define SLABYARD_KERNEL_LINUX_LOCKREF_H

#pragma GCC system_header

#include "spinlock.h"

struct lockref {
	spinlock_t lock;
	int count;
};

static inline void lockref_init(struct lockref *ref)
{
	spin_lock_init(&ref->lock);
	ref->count = 1;
}

/* Adds to a count that is at least this; where it is not, it stays, and the lock is kept if asked for. Whether it was added. */
static inline bool sy__lockref_add(struct lockref *ref, int by, int least, bool keep)
{
	bool added;

	spin_lock(&ref->lock);
	added = ref->count >= least;
	if (added)
		ref->count += by;
	if (added || !keep)
		spin_unlock(&ref->lock);
	return added;
}

static inline void lockref_get(struct lockref *ref) { sy__lockref_add(ref, 1, INT_MIN, false); }
static inline bool lockref_get_not_zero(struct lockref *ref) { return sy__lockref_add(ref, 1, 1, false); }
static inline bool lockref_get_not_dead(struct lockref *ref) { return sy__lockref_add(ref, 1, 0, false); }
static inline bool lockref_put_not_zero(struct lockref *ref) { return sy__lockref_add(ref, -1, 2, false); }

/* false: it would be 0; the count stays, and the caller has the lock. */
static inline bool lockref_put_or_lock(struct lockref *ref) { return sy__lockref_add(ref, -1, 2, true); }

/* The count that there is then; negative: nothing was taken, it was 0 or dead. */
static inline int lockref_put_return(struct lockref *ref)
{
	int count = -1;

	spin_lock(&ref->lock);
	if (ref->count > 0)
		count = --ref->count;
	spin_unlock(&ref->lock);
	return count;
}

/* With the lock held. */
static inline void lockref_mark_dead(struct lockref *ref) { ref->count = -128; }
static inline bool __lockref_is_dead(const struct lockref *ref) { return ref->count < 0; }

#endif
