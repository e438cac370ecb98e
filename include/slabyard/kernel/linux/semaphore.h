/*
 * <linux/semaphore.h> for kernel code that is compiled into a program: a number that is waited for to be more than 0. It counts as a
 * completion does, so who has got it may do away with it, though up() has not returned yet.
 */
#ifndef SLABYARD_KERNEL_LINUX_SEMAPHORE_H
#define SLABYARD_KERNEL_LINUX_SEMAPHORE_H

#pragma GCC system_header

#include "completion.h"

struct semaphore {
	struct completion free;
};

#define __SEMAPHORE_INITIALIZER(name, number) { { (number), __WAIT_QUEUE_HEAD_INITIALIZER((name).free.wait) } }
#define DEFINE_SEMAPHORE(name, ...) struct semaphore name = __SEMAPHORE_INITIALIZER(name, SY__OR_ONE(__VA_ARGS__ + 0))
#define SY__OR_ONE(number) ((number) ? (number) : 1)

static inline void sema_init(struct semaphore *semaphore, int number)
{
	init_completion(&semaphore->free);
	semaphore->free.done = (unsigned)number;
}

/* 1: it is 0. */
static inline int down_trylock(struct semaphore *semaphore)
{
	return !try_wait_for_completion(&semaphore->free);
}

static inline void down(struct semaphore *semaphore)
{
	wait_for_completion(&semaphore->free);
}

/* No signal ends the wait. */
static inline int __must_check down_interruptible(struct semaphore *semaphore)
{
	down(semaphore);
	return 0;
}

#define down_killable(semaphore) down_interruptible(semaphore)

static inline int __must_check down_timeout(struct semaphore *semaphore, long ticks)
{
	return wait_for_completion_timeout(&semaphore->free, (unsigned long)ticks) ? 0 : -ETIME;
}

static inline void up(struct semaphore *semaphore)
{
	complete(&semaphore->free);
}

#endif
