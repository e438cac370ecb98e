/*
 * <linux/percpu-refcount.h> for kernel code that is compiled into a program: a count of references that is asked for 0 only
 * when it has been killed. Here it is one number, so switching to a number and back is nothing; the release function is called
 * by whoever drops the last reference.
 */
#ifndef SLABYARD_KERNEL_LINUX_PERCPU_REFCOUNT_H
#define SLABYARD_KERNEL_LINUX_PERCPU_REFCOUNT_H

#pragma GCC system_header

#include "atomic.h"
#include "percpu.h"

#define PERCPU_REF_INIT_ATOMIC 1
#define PERCPU_REF_INIT_DEAD 2
#define PERCPU_REF_ALLOW_REINIT 4

struct percpu_ref;
typedef void percpu_ref_func_t(struct percpu_ref *);

struct percpu_ref {
	unsigned long sy__count; /* the first reference is that which a kill drops */
	bool sy__dying;
	percpu_ref_func_t *sy__release;
};

static inline int __must_check percpu_ref_init(struct percpu_ref *ref, percpu_ref_func_t *release, unsigned flags, gfp_t gfp)
{
	(void)gfp;
	ref->sy__dying = (flags & PERCPU_REF_INIT_DEAD) != 0;
	ref->sy__count = !ref->sy__dying;
	ref->sy__release = release;
	return 0;
}

static inline void percpu_ref_exit(struct percpu_ref *ref)
{
	(void)ref;
}

static inline bool percpu_ref_is_dying(struct percpu_ref *ref)
{
	return __atomic_load_n(&ref->sy__dying, __ATOMIC_ACQUIRE);
}

static inline bool percpu_ref_is_zero(struct percpu_ref *ref)
{
	return !__atomic_load_n(&ref->sy__count, __ATOMIC_ACQUIRE);
}

static inline void percpu_ref_get_many(struct percpu_ref *ref, unsigned long count)
{
	__atomic_fetch_add(&ref->sy__count, count, __ATOMIC_RELAXED);
}

/* false: there is none left. */
static inline bool percpu_ref_tryget(struct percpu_ref *ref)
{
	unsigned long count = __atomic_load_n(&ref->sy__count, __ATOMIC_RELAXED);

	while (count)
		if (__atomic_compare_exchange_n(&ref->sy__count, &count, count + 1, true, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			return true;
	return false;
}

/* false: it has been killed. */
static inline bool percpu_ref_tryget_live(struct percpu_ref *ref)
{
	return !percpu_ref_is_dying(ref) && percpu_ref_tryget(ref);
}

static inline void percpu_ref_put_many(struct percpu_ref *ref, unsigned long count)
{
	if (__atomic_fetch_sub(&ref->sy__count, count, __ATOMIC_ACQ_REL) == count)
		ref->sy__release(ref);
}

static inline void percpu_ref_get(struct percpu_ref *ref) { percpu_ref_get_many(ref, 1); }
static inline void percpu_ref_put(struct percpu_ref *ref) { percpu_ref_put_many(ref, 1); }

/* Drops the first reference; the function is called before that, where there is one. */
static inline void percpu_ref_kill_and_confirm(struct percpu_ref *ref, percpu_ref_func_t *confirm)
{
	__atomic_store_n(&ref->sy__dying, true, __ATOMIC_RELEASE);
	if (confirm)
		confirm(ref);
	percpu_ref_put(ref);
}

static inline void percpu_ref_kill(struct percpu_ref *ref)
{
	percpu_ref_kill_and_confirm(ref, NULL);
}

/* Alive again, after it was killed. */
static inline void percpu_ref_resurrect(struct percpu_ref *ref)
{
	percpu_ref_get(ref);
	__atomic_store_n(&ref->sy__dying, false, __ATOMIC_RELEASE);
}

#define percpu_ref_reinit(ref) percpu_ref_resurrect(ref)
#define percpu_ref_switch_to_atomic_sync(ref) ((void)(ref))
#define percpu_ref_switch_to_percpu(ref) ((void)(ref))

#endif
