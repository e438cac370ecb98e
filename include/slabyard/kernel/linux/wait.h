/* <linux/wait.h> for kernel code that is compiled into a program: queues of threads that wait for something to become so. */
#ifndef SLABYARD_KERNEL_LINUX_WAIT_H
#define SLABYARD_KERNEL_LINUX_WAIT_H

#pragma GCC system_header

#include "list.h"
#include "sched.h"
#include "spinlock.h"

typedef struct wait_queue_head {
	spinlock_t lock;
	struct list_head head;
} wait_queue_head_t;

/* Somebody who waits; on his stack. */
typedef struct wait_queue_entry {
	unsigned flags;
	struct task_struct *task;
	struct list_head entry;
} wait_queue_entry_t;

#define WQ_FLAG_EXCLUSIVE 1

#define __WAIT_QUEUE_HEAD_INITIALIZER(name) { __SPIN_LOCK_UNLOCKED((name).lock), LIST_HEAD_INIT((name).head) }
#define DECLARE_WAIT_QUEUE_HEAD(name) wait_queue_head_t name = __WAIT_QUEUE_HEAD_INITIALIZER(name)
#define DECLARE_WAIT_QUEUE_HEAD_ONSTACK(name) DECLARE_WAIT_QUEUE_HEAD(name)
#define DEFINE_WAIT(name) wait_queue_entry_t name = { 0, current, LIST_HEAD_INIT((name).entry) }
#define DECLARE_WAITQUEUE(name, task) wait_queue_entry_t name = { 0, (task), LIST_HEAD_INIT((name).entry) }

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

void sy__wait_begin(struct wait_queue_head *, struct wait_queue_entry *, bool exclusive, unsigned state);
void sy__wait_end(struct wait_queue_head *, struct wait_queue_entry *);
void sy__wake_locked(struct wait_queue_head *, int exclusive); /* 0: all */
void sy__wake_up(struct wait_queue_head *, int exclusive);
#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

static inline void init_waitqueue_head(struct wait_queue_head *queue)
{
	spin_lock_init(&queue->lock);
	INIT_LIST_HEAD(&queue->head);
}

static inline int waitqueue_active(struct wait_queue_head *queue)
{
	return !list_empty(&queue->head);
}

#define wq_has_sleeper(queue) (smp_mb(), waitqueue_active(queue))
#define add_wait_queue(queue, entry) sy__wait_begin(queue, entry, false, TASK_RUNNING)
#define add_wait_queue_exclusive(queue, entry) sy__wait_begin(queue, entry, true, TASK_RUNNING)
#define remove_wait_queue(queue, entry) sy__wait_end(queue, entry)
#define prepare_to_wait(queue, entry, state) sy__wait_begin(queue, entry, false, state)
#define prepare_to_wait_exclusive(queue, entry, state) sy__wait_begin(queue, entry, true, state)
#define finish_wait(queue, entry) sy__wait_end(queue, entry)
#define wake_up(queue) sy__wake_up(queue, 1)
#define wake_up_nr(queue, count) sy__wake_up(queue, count)
#define wake_up_all(queue) sy__wake_up(queue, 0)
#define wake_up_interruptible(queue) wake_up(queue)
#define wake_up_interruptible_all(queue) wake_up_all(queue)
#define wake_up_interruptible_sync(queue) wake_up(queue)
#define wake_up_locked(queue) sy__wake_locked(queue, 1)

/* Ticks that are left, at least 1; 0: it isn't so when they have passed. before and after: what is given up while asleep. */
#define SY__WAIT(queue, condition, exclusive, ticks, before, after) \
	__extension__ ({ \
		long sy__left = (ticks); \
		DEFINE_WAIT(sy__entry); \
		for (;;) { \
			sy__wait_begin(&(queue), &sy__entry, exclusive, TASK_UNINTERRUPTIBLE); \
			if (condition) { \
				sy__left = sy__left ? sy__left : 1; \
				break; \
			} \
			if (!sy__left) \
				break; \
			before; \
			sy__left = schedule_timeout(sy__left); \
			after; \
		} \
		sy__wait_end(&(queue), &sy__entry); \
		sy__left; \
	})
#define wait_event(queue, condition) ((void)((condition) || SY__WAIT(queue, condition, false, MAX_SCHEDULE_TIMEOUT, , )))
#define wait_event_timeout(queue, condition, ticks) SY__WAIT(queue, condition, false, ticks, , )
#define wait_event_lock_irq(queue, condition, lock) \
	((void)SY__WAIT(queue, condition, false, MAX_SCHEDULE_TIMEOUT, spin_unlock(&(lock)), spin_lock(&(lock))))
#define wait_event_cmd(queue, condition, before, after) ((void)SY__WAIT(queue, condition, false, MAX_SCHEDULE_TIMEOUT, before, after))

/* No signal ends these. */
#define wait_event_interruptible(queue, condition) (wait_event(queue, condition), 0)
#define wait_event_killable(queue, condition) wait_event_interruptible(queue, condition)
#define wait_event_interruptible_exclusive(queue, condition) ((void)SY__WAIT(queue, condition, true, MAX_SCHEDULE_TIMEOUT, , ), 0)
#define wait_event_interruptible_timeout(queue, condition, ticks) wait_event_timeout(queue, condition, ticks)
#define wait_event_interruptible_lock_irq(queue, condition, lock) (wait_event_lock_irq(queue, condition, lock), 0)

#endif
