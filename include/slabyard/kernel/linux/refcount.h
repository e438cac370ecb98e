/* <linux/refcount.h> for kernel code that is compiled into a program: a count of references that stays where it is when it would overflow. */
#ifndef SLABYARD_KERNEL_LINUX_REFCOUNT_H
#define SLABYARD_KERNEL_LINUX_REFCOUNT_H

#pragma GCC system_header

#include "atomic.h"
#include "bug.h"
#include "mutex.h"
#include "spinlock.h"

typedef struct refcount_struct {
	atomic_t refs;
} refcount_t;

#define REFCOUNT_INIT(number) { ATOMIC_INIT(number) }
#define REFCOUNT_SATURATED (-0x40000000)

static inline void refcount_set(refcount_t *count, int to)
{
	atomic_set(&count->refs, to);
}

static inline unsigned refcount_read(const refcount_t *count)
{
	return (unsigned)atomic_read(&count->refs);
}

static inline void sy__refcount_saturate(refcount_t *count, const char *why)
{
	refcount_set(count, REFCOUNT_SATURATED);
	WARN(1, "refcount_t: %s\n", why);
}

static inline bool __must_check refcount_add_not_zero(int by, refcount_t *count)
{
	int old = atomic_fetch_add_unless(&count->refs, by, 0);

	if (unlikely(old < 0 || old > INT_MAX - by))
		sy__refcount_saturate(count, "saturated; leaking memory.");
	return old != 0;
}

static inline bool __must_check refcount_inc_not_zero(refcount_t *count)
{
	return refcount_add_not_zero(1, count);
}

static inline void refcount_add(int by, refcount_t *count)
{
	if (!refcount_add_not_zero(by, count))
		sy__refcount_saturate(count, "addition on 0; use-after-free.");
}

static inline void refcount_inc(refcount_t *count)
{
	refcount_add(1, count);
}

static inline bool __must_check refcount_sub_and_test(int by, refcount_t *count)
{
	int old = atomic_fetch_sub(by, &count->refs);

	if (unlikely(old < by))
		sy__refcount_saturate(count, "underflow; use-after-free.");
	return old == by;
}

static inline bool __must_check refcount_dec_and_test(refcount_t *count)
{
	return refcount_sub_and_test(1, count);
}

static inline void refcount_dec(refcount_t *count)
{
	if (refcount_dec_and_test(count))
		sy__refcount_saturate(count, "decrement hit 0; leaking memory.");
}

static inline bool __must_check refcount_dec_if_one(refcount_t *count)
{
	return atomic_cmpxchg(&count->refs, 1, 0) == 1;
}

static inline bool __must_check refcount_dec_not_one(refcount_t *count)
{
	return atomic_add_unless(&count->refs, -1, 1);
}

/* The last reference is dropped with the lock held, which the caller has then. */
static inline bool __must_check refcount_dec_and_mutex_lock(refcount_t *count, struct mutex *mutex)
{
	if (refcount_dec_not_one(count))
		return false;
	mutex_lock(mutex);
	if (refcount_dec_and_test(count))
		return true;
	mutex_unlock(mutex);
	return false;
}

static inline bool __must_check refcount_dec_and_lock(refcount_t *count, spinlock_t *lock)
{
	if (refcount_dec_not_one(count))
		return false;
	spin_lock(lock);
	if (refcount_dec_and_test(count))
		return true;
	spin_unlock(lock);
	return false;
}

#endif
