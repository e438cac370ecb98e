/*
 * <linux/bit_spinlock.h> for kernel code that is compiled into a program: locks of one bit, whose word holds other things
 * besides. Callbacks of call_rcu don't run in a thread that has such a lock.
 */
#ifndef SLABYARD_KERNEL_LINUX_BIT_SPINLOCK_H
#define SLABYARD_KERNEL_LINUX_BIT_SPINLOCK_H

#pragma GCC system_header

#include "bitops.h"
#include "preempt.h"
#include "sched.h"

static inline int bit_spin_trylock(int bit, unsigned long *word)
{
	preempt_disable();
	if (!test_and_set_bit_lock((unsigned)bit, word))
		return 1;
	preempt_enable();
	return 0;
}

static inline void bit_spin_lock(int bit, unsigned long *word)
{
	preempt_disable();
	while (test_and_set_bit_lock((unsigned)bit, word))
		sched_yield();
}

static inline void bit_spin_unlock(int bit, unsigned long *word)
{
	clear_bit_unlock((unsigned)bit, word);
	preempt_enable();
}

static inline int bit_spin_is_locked(int bit, const unsigned long *word)
{
	return test_bit((unsigned)bit, word);
}

#define __bit_spin_unlock(bit, word) bit_spin_unlock(bit, word)

#endif
