/* <linux/spinlock.h> for kernel code that is compiled into a program, where threads can be interrupted: who waits sleeps after a while. */
#ifndef SLABYARD_KERNEL_LINUX_SPINLOCK_H
#define SLABYARD_KERNEL_LINUX_SPINLOCK_H

#pragma GCC system_header

#include "atomic.h"
#include "bottom_half.h"
#include "cleanup.h"
#include "irqflags.h"
#include "lockdep.h"
#include "preempt.h"
#include "rwlock.h"
#include "types.h"

typedef struct spinlock {
	sy__lock_t lock;
} spinlock_t;

typedef spinlock_t raw_spinlock_t;

#define __SPIN_LOCK_UNLOCKED(name) { { 0 } }
#define DEFINE_SPINLOCK(name) spinlock_t name = __SPIN_LOCK_UNLOCKED(name)
#define DEFINE_RAW_SPINLOCK(name) DEFINE_SPINLOCK(name)

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* Callbacks of call_rcu don't run in a thread that has such a lock. */
void sy__spin_lock(spinlock_t *);
bool sy__spin_trylock(spinlock_t *);
void sy__spin_unlock(spinlock_t *);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

static inline void spin_lock_init(spinlock_t *lock)
{
	*lock = (spinlock_t) __SPIN_LOCK_UNLOCKED(*lock);
}

static inline void spin_lock(spinlock_t *lock)
{
	sy__spin_lock(lock);
}

static inline int spin_trylock(spinlock_t *lock)
{
	return sy__spin_trylock(lock);
}

static inline void spin_unlock(spinlock_t *lock)
{
	sy__spin_unlock(lock);
}

static inline int spin_is_locked(spinlock_t *lock)
{
	return __atomic_load_n(&lock->lock.held, __ATOMIC_RELAXED) != 0;
}

#define spin_lock_nested(lock, class) spin_lock(lock)
/* Who takes a lock in one of these ways may give it up in two steps: the lock, and then what was off with it. */
#define spin_lock_irq(lock) (local_irq_disable(), spin_lock(lock))
#define spin_unlock_irq(lock) (spin_unlock(lock), local_irq_enable())
#define spin_lock_bh(lock) (local_bh_disable(), spin_lock(lock))
#define spin_unlock_bh(lock) (spin_unlock(lock), local_bh_enable())
#define spin_lock_irqsave(lock, flags) (local_irq_save(flags), spin_lock(lock))
#define spin_lock_irqsave_nested(lock, flags, class) spin_lock_irqsave(lock, flags)
#define spin_unlock_irqrestore(lock, flags) (spin_unlock(lock), local_irq_restore(flags))
#define spin_trylock_irqsave(lock, flags) (local_irq_save(flags), spin_trylock(lock) ? 1 : (local_irq_restore(flags), 0))
#define spin_trylock_irq(lock) (local_irq_disable(), spin_trylock(lock) ? 1 : (local_irq_enable(), 0))
#define spin_trylock_bh(lock) (local_bh_disable(), spin_trylock(lock) ? 1 : (local_bh_enable(), 0))
#define assert_spin_locked(lock) ((void)(lock))
#ifndef lockdep_assert_held
#define lockdep_assert_held(lock) ((void)(lock))
#endif
#define raw_spin_lock_init spin_lock_init
#define raw_spin_lock spin_lock
#define raw_spin_unlock spin_unlock
#define raw_spin_trylock spin_trylock
#define raw_spin_lock_irq spin_lock_irq
#define raw_spin_unlock_irq spin_unlock_irq
#define raw_spin_lock_irqsave spin_lock_irqsave
#define raw_spin_unlock_irqrestore spin_unlock_irqrestore
#define raw_spin_lock_bh spin_lock_bh
#define raw_spin_unlock_bh spin_unlock_bh
#define raw_spin_lock_nested spin_lock_nested
#define raw_spin_trylock_irqsave spin_trylock_irqsave
#define raw_spin_is_locked spin_is_locked

/* True: it was the last, and the caller has the lock. */
static inline int atomic_dec_and_lock(atomic_t *number, spinlock_t *lock)
{
	if (atomic_add_unless(number, -1, 1))
		return 0;
	spin_lock(lock);
	if (atomic_dec_and_test(number))
		return 1;
	spin_unlock(lock);
	return 0;
}

#define atomic_dec_and_lock_irqsave(number, lock, flags) \
	(local_irq_save(flags), atomic_dec_and_lock(number, lock) ? 1 : (local_irq_restore(flags), 0))

DEFINE_GUARD(spinlock, spinlock_t *, spin_lock(_T), spin_unlock(_T))
DEFINE_GUARD_COND(spinlock, _try, spin_trylock(_T))
DEFINE_GUARD(spinlock_irq, spinlock_t *, spin_lock_irq(_T), spin_unlock_irq(_T))
DEFINE_GUARD_COND(spinlock_irq, _try, spin_trylock_irq(_T))
DEFINE_GUARD(spinlock_bh, spinlock_t *, spin_lock_bh(_T), spin_unlock_bh(_T))
DEFINE_GUARD_COND(spinlock_bh, _try, spin_trylock_bh(_T))
DEFINE_LOCK_GUARD_1(spinlock_irqsave, spinlock_t, spin_lock_irqsave(_T->lock, _T->flags),
                    spin_unlock_irqrestore(_T->lock, _T->flags), unsigned long flags)
DEFINE_LOCK_GUARD_1_COND(spinlock_irqsave, _try, spin_trylock_irqsave(_T->lock, _T->flags))
DEFINE_GUARD(raw_spinlock, raw_spinlock_t *, spin_lock(_T), spin_unlock(_T))
DEFINE_GUARD_COND(raw_spinlock, _try, spin_trylock(_T))
DEFINE_GUARD(raw_spinlock_irq, raw_spinlock_t *, spin_lock_irq(_T), spin_unlock_irq(_T))
DEFINE_GUARD(raw_spinlock_bh, raw_spinlock_t *, spin_lock_bh(_T), spin_unlock_bh(_T))
DEFINE_LOCK_GUARD_1(raw_spinlock_irqsave, raw_spinlock_t, spin_lock_irqsave(_T->lock, _T->flags),
                    spin_unlock_irqrestore(_T->lock, _T->flags), unsigned long flags)

#endif
