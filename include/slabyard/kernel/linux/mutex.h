/* <linux/mutex.h> for kernel code that is compiled into a program. */
#ifndef SLABYARD_KERNEL_LINUX_MUTEX_H
#define SLABYARD_KERNEL_LINUX_MUTEX_H

#pragma GCC system_header

#include "atomic.h"
#include "cleanup.h"
#include "types.h"

#include <pthread.h>

struct mutex {
	pthread_mutex_t lock;
	int held;
};

#define __MUTEX_INITIALIZER(name) { PTHREAD_MUTEX_INITIALIZER, 0 }
#define DEFINE_MUTEX(name) struct mutex name = __MUTEX_INITIALIZER(name)

static inline void mutex_init(struct mutex *mutex)
{
	pthread_mutex_init(&mutex->lock, NULL);
	mutex->held = 0;
}

static inline void mutex_destroy(struct mutex *mutex)
{
	pthread_mutex_destroy(&mutex->lock);
}

static inline void mutex_lock(struct mutex *mutex)
{
	pthread_mutex_lock(&mutex->lock);
	__atomic_store_n(&mutex->held, 1, __ATOMIC_RELAXED);
}

static inline int mutex_trylock(struct mutex *mutex)
{
	if (pthread_mutex_trylock(&mutex->lock))
		return 0;
	__atomic_store_n(&mutex->held, 1, __ATOMIC_RELAXED);
	return 1;
}

static inline void mutex_unlock(struct mutex *mutex)
{
	__atomic_store_n(&mutex->held, 0, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&mutex->lock);
}

static inline bool mutex_is_locked(struct mutex *mutex)
{
	return __atomic_load_n(&mutex->held, __ATOMIC_RELAXED) != 0;
}

/* No signal ends the wait. */
static inline int __must_check mutex_lock_interruptible(struct mutex *mutex)
{
	mutex_lock(mutex);
	return 0;
}

#define mutex_lock_killable(mutex) mutex_lock_interruptible(mutex)
#define mutex_lock_nested(mutex, subclass) mutex_lock(mutex)
#ifndef lockdep_assert_held
#define lockdep_assert_held(lock) ((void)(lock))
#endif

/* True: it was the last, and the caller has the lock. */
static inline int atomic_dec_and_mutex_lock(atomic_t *number, struct mutex *mutex)
{
	if (atomic_add_unless(number, -1, 1))
		return 0;
	mutex_lock(mutex);
	if (atomic_dec_and_test(number))
		return 1;
	mutex_unlock(mutex);
	return 0;
}

DEFINE_GUARD(mutex, struct mutex *, mutex_lock(_T), mutex_unlock(_T))
DEFINE_GUARD_COND(mutex, _try, mutex_trylock(_T))
DEFINE_GUARD_COND(mutex, _intr, mutex_lock_interruptible(_T) == 0)
DEFINE_GUARD_COND(mutex, _kill, mutex_lock_killable(_T) == 0)

#endif
