/*
 * <linux/local_lock.h> for kernel code that is compiled into a program: locks of a processor, which are threads (smp.h);
 * threads beyond share, so each is a lock.
 */
#ifndef SLABYARD_KERNEL_LINUX_LOCAL_LOCK_H
#define SLABYARD_KERNEL_LINUX_LOCAL_LOCK_H

#pragma GCC system_header

#include "percpu.h"
#include "spinlock.h"

typedef spinlock_t local_lock_t;

#define INIT_LOCAL_LOCK(name) __SPIN_LOCK_UNLOCKED(name)
#define local_lock_init(lock) spin_lock_init(lock)
#define local_lock(lock) spin_lock(this_cpu_ptr(lock))
#define local_unlock(lock) spin_unlock(this_cpu_ptr(lock))
#define local_lock_irq(lock) (local_irq_disable(), local_lock(lock))
#define local_unlock_irq(lock) (local_unlock(lock), local_irq_enable())
#define local_lock_irqsave(lock, flags) (local_irq_save(flags), local_lock(lock))
#define local_unlock_irqrestore(lock, flags) (local_unlock(lock), local_irq_restore(flags))

#endif
