/* <linux/spinlock.h> for kernel code that is compiled into a program, where threads can be interrupted: interrupts are not looked at, and who waits sleeps after a while. */
#ifndef SLABYARD_KERNEL_LINUX_SPINLOCK_H
#define SLABYARD_KERNEL_LINUX_SPINLOCK_H

#pragma GCC system_header

#include "cleanup.h"
#include "lockdep.h"
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
#define spin_lock_irq(lock) spin_lock(lock)
#define spin_unlock_irq(lock) spin_unlock(lock)
#define spin_lock_bh(lock) spin_lock(lock)
#define spin_unlock_bh(lock) spin_unlock(lock)
#define spin_lock_irqsave(lock, flags) ((flags) = 0, spin_lock(lock))
#define spin_unlock_irqrestore(lock, flags) ((void)(flags), spin_unlock(lock))
#define spin_trylock_irqsave(lock, flags) ((flags) = 0, spin_trylock(lock))
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
#define local_irq_save(flags) ((void)((flags) = 0))
#define local_irq_restore(flags) ((void)(flags))
#define local_irq_disable() ((void)0)
#define local_irq_enable() ((void)0)
#define local_bh_disable() ((void)0)
#define local_bh_enable() ((void)0)
#define in_interrupt() 0
#define in_atomic() 0

DEFINE_GUARD(spinlock, spinlock_t *, spin_lock(_T), spin_unlock(_T))
DEFINE_GUARD(spinlock_irq, spinlock_t *, spin_lock(_T), spin_unlock(_T))
DEFINE_GUARD(spinlock_irqsave, spinlock_t *, spin_lock(_T), spin_unlock(_T))

#endif
