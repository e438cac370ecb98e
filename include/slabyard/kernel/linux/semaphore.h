/* <linux/semaphore.h> for kernel code that is compiled into a program: a number that is waited for to be more than 0. */
#ifndef SLABYARD_KERNEL_LINUX_SEMAPHORE_H
#define SLABYARD_KERNEL_LINUX_SEMAPHORE_H

#pragma GCC system_header

#include "wait.h"

struct semaphore {
	wait_queue_head_t wait;
	unsigned count;
};

#define __SEMAPHORE_INITIALIZER(name, number) { __WAIT_QUEUE_HEAD_INITIALIZER((name).wait), (number) }
#define DEFINE_SEMAPHORE(name, ...) struct semaphore name = __SEMAPHORE_INITIALIZER(name, SY__OR_ONE(__VA_ARGS__ + 0))
#define SY__OR_ONE(number) ((number) ? (number) : 1)

static inline void sema_init(struct semaphore *semaphore, int number)
{
	init_waitqueue_head(&semaphore->wait);
	semaphore->count = (unsigned)number;
}

/* 1: it is 0. */
static inline int down_trylock(struct semaphore *semaphore)
{
	unsigned count = READ_ONCE(semaphore->count);

	while (count && !__atomic_compare_exchange_n(&semaphore->count, &count, count - 1, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
		;
	return !count;
}

static inline void down(struct semaphore *semaphore)
{
	wait_event(semaphore->wait, !down_trylock(semaphore));
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
	return wait_event_timeout(semaphore->wait, !down_trylock(semaphore), ticks) ? 0 : -ETIME;
}

static inline void up(struct semaphore *semaphore)
{
	__atomic_fetch_add(&semaphore->count, 1, __ATOMIC_SEQ_CST);
	wake_up_all(&semaphore->wait);
}

#endif
