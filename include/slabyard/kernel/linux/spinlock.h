/*
 * <linux/spinlock.h> for kernel code that is compiled into a program. The holder of a lock may be preempted here, so a thread that
 * waits for long sleeps. A program has no interrupts: the variants that turn them off are the plain lock.
 *
 * A callback of call_rcu may take a lock that the code around it holds. So callbacks never run in a thread that holds one of these
 * locks (library/rcu.c).
 */
#ifndef SLABYARD_KERNEL_LINUX_SPINLOCK_H
#define SLABYARD_KERNEL_LINUX_SPINLOCK_H

#pragma GCC system_header

#include "cleanup.h"
#include "types.h"

typedef struct spinlock {
	unsigned held;
} spinlock_t;

#define __SPIN_LOCK_UNLOCKED(name) { 0 }
#define DEFINE_SPINLOCK(name) spinlock_t name = __SPIN_LOCK_UNLOCKED(name)

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

void spin_lock(spinlock_t *) __asm__("sy__spin_lock");
int spin_trylock(spinlock_t *) __asm__("sy__spin_trylock");
void spin_unlock(spinlock_t *) __asm__("sy__spin_unlock");

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

static inline void spin_lock_init(spinlock_t *lock)
{
	*lock = (spinlock_t) __SPIN_LOCK_UNLOCKED(*lock);
}

#define spin_is_locked(lock) (__atomic_load_n(&(lock)->held, __ATOMIC_RELAXED) != 0)
#define spin_lock_irq(lock) spin_lock(lock)
#define spin_unlock_irq(lock) spin_unlock(lock)
#define spin_lock_bh(lock) spin_lock(lock)
#define spin_unlock_bh(lock) spin_unlock(lock)
#define spin_lock_irqsave(lock, flags) ((void)((flags) = 0), spin_lock(lock))
#define spin_unlock_irqrestore(lock, flags) ((void)(flags), spin_unlock(lock))
#define spin_trylock_irqsave(lock, flags) ((void)((flags) = 0), spin_trylock(lock))

DEFINE_GUARD(spinlock, spinlock_t *, spin_lock(_T), spin_unlock(_T))
DEFINE_GUARD(spinlock_irq, spinlock_t *, spin_lock(_T), spin_unlock(_T))
DEFINE_GUARD(spinlock_bh, spinlock_t *, spin_lock(_T), spin_unlock(_T))
DEFINE_GUARD(spinlock_irqsave, spinlock_t *, spin_lock(_T), spin_unlock(_T))

#endif
