/* <linux/rwlock.h> for kernel code that is compiled into a program: many who read or one who writes, who wait without sleeping for long. */
#ifndef SLABYARD_KERNEL_LINUX_RWLOCK_H
#define SLABYARD_KERNEL_LINUX_RWLOCK_H

#pragma GCC system_header

#include "bottom_half.h"
#include "cleanup.h"
#include "irqflags.h"
#include "types.h"

/* Those who read, or -1: one who writes. */
typedef struct {
	int held;
} rwlock_t;

#define __RW_LOCK_UNLOCKED(name) { 0 }
#define DEFINE_RWLOCK(name) rwlock_t name = __RW_LOCK_UNLOCKED(name)

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* Callbacks of call_rcu don't run in a thread that has such a lock. */
bool sy__rwlock_try(rwlock_t *, bool write);
void sy__rwlock_take(rwlock_t *, bool write);
void sy__rwlock_drop(rwlock_t *, bool write);
#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

static inline void rwlock_init(rwlock_t *lock) { lock->held = 0; }
static inline void read_lock(rwlock_t *lock) { sy__rwlock_take(lock, false); }
static inline void read_unlock(rwlock_t *lock) { sy__rwlock_drop(lock, false); }
static inline int read_trylock(rwlock_t *lock) { return sy__rwlock_try(lock, false); }
static inline void write_lock(rwlock_t *lock) { sy__rwlock_take(lock, true); }
static inline void write_unlock(rwlock_t *lock) { sy__rwlock_drop(lock, true); }
static inline int write_trylock(rwlock_t *lock) { return sy__rwlock_try(lock, true); }

#define read_lock_irq(lock) (local_irq_disable(), read_lock(lock))
#define read_unlock_irq(lock) (read_unlock(lock), local_irq_enable())
#define read_lock_bh(lock) (local_bh_disable(), read_lock(lock))
#define read_unlock_bh(lock) (read_unlock(lock), local_bh_enable())
#define read_lock_irqsave(lock, flags) (local_irq_save(flags), read_lock(lock))
#define read_unlock_irqrestore(lock, flags) (read_unlock(lock), local_irq_restore(flags))
#define write_lock_irq(lock) (local_irq_disable(), write_lock(lock))
#define write_unlock_irq(lock) (write_unlock(lock), local_irq_enable())
#define write_lock_bh(lock) (local_bh_disable(), write_lock(lock))
#define write_unlock_bh(lock) (write_unlock(lock), local_bh_enable())
#define write_lock_irqsave(lock, flags) (local_irq_save(flags), write_lock(lock))
#define write_unlock_irqrestore(lock, flags) (write_unlock(lock), local_irq_restore(flags))

DEFINE_GUARD(read_lock, rwlock_t *, read_lock(_T), read_unlock(_T))
DEFINE_GUARD(read_lock_irq, rwlock_t *, read_lock_irq(_T), read_unlock_irq(_T))
DEFINE_GUARD(read_lock_bh, rwlock_t *, read_lock_bh(_T), read_unlock_bh(_T))
DEFINE_LOCK_GUARD_1(read_lock_irqsave, rwlock_t, read_lock_irqsave(_T->lock, _T->flags),
                    read_unlock_irqrestore(_T->lock, _T->flags), unsigned long flags)
DEFINE_GUARD(write_lock, rwlock_t *, write_lock(_T), write_unlock(_T))
DEFINE_GUARD(write_lock_irq, rwlock_t *, write_lock_irq(_T), write_unlock_irq(_T))
DEFINE_GUARD(write_lock_bh, rwlock_t *, write_lock_bh(_T), write_unlock_bh(_T))
DEFINE_LOCK_GUARD_1(write_lock_irqsave, rwlock_t, write_lock_irqsave(_T->lock, _T->flags),
                    write_unlock_irqrestore(_T->lock, _T->flags), unsigned long flags)

#endif
