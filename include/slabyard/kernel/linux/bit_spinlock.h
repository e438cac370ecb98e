/*
 * <linux/bit_spinlock.h> for kernel code that is compiled into a program: locks of one bit, whose word holds other things
 * besides.
 */
#ifndef SLABYARD_KERNEL_LINUX_BIT_SPINLOCK_H
#define SLABYARD_KERNEL_LINUX_BIT_SPINLOCK_H

#pragma GCC system_header

#include "bitops.h"
#include "preempt.h"
#include "sched.h"

static inline int bit_spin_trylock(int bit, unsigned long *word)
{
	return !test_and_set_bit_lock((unsigned)bit, word);
}

static inline void bit_spin_lock(int bit, unsigned long *word)
{
	while (!bit_spin_trylock(bit, word))
		sched_yield();
}

static inline void bit_spin_unlock(int bit, unsigned long *word)
{
	clear_bit_unlock((unsigned)bit, word);
}

static inline int bit_spin_is_locked(int bit, const unsigned long *word)
{
	return test_bit((unsigned)bit, word);
}

#define __bit_spin_unlock(bit, word) bit_spin_unlock(bit, word)

#endif
