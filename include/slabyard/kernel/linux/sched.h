/* <linux/sched.h> for kernel code that is compiled into a program: threads that sleep until somebody wakes them. */
#ifndef SLABYARD_KERNEL_LINUX_SCHED_H
#define SLABYARD_KERNEL_LINUX_SCHED_H

#pragma GCC system_header

#include "jiffies.h"
#include "list.h"
#include "processor.h"
#include "rcupdate.h"
#include "refcount.h"
#include "spinlock.h"

#include <sched.h>

#define TASK_RUNNING 0
#define TASK_INTERRUPTIBLE 1
#define TASK_UNINTERRUPTIBLE 2
#define TASK_KILLABLE 0x102
#define TASK_IDLE 0x402
#define TASK_NORMAL 3
#define TASK_COMM_LEN 16
#define MAX_SCHEDULE_TIMEOUT LONG_MAX
#define PF_KTHREAD 0x00200000

struct sy__kthread;

/* Of every thread that asks for current. */
struct task_struct {
	int pid, tgid;
	unsigned flags;
	char comm[TASK_COMM_LEN];
	struct sy__kthread *sy__kthread;
};

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

struct task_struct *sy__current(void);
void sy__set_state(unsigned state);
long sy__schedule(long ticks); /* what is left of them; MAX_SCHEDULE_TIMEOUT: for ever */
int sy__wake(struct task_struct *);
#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#define current sy__current()
#define set_current_state(state) sy__set_state(state)
#define __set_current_state(state) sy__set_state(state)

/* Until somebody wakes the thread, if it has said that it sleeps. */
static inline void schedule(void)
{
	sy__schedule(MAX_SCHEDULE_TIMEOUT);
}

static inline long schedule_timeout(long ticks)
{
	return sy__schedule(ticks);
}

static inline long schedule_timeout_interruptible(long ticks)
{
	set_current_state(TASK_INTERRUPTIBLE);
	return schedule_timeout(ticks);
}

#define schedule_timeout_uninterruptible(ticks) schedule_timeout_interruptible(ticks)
#define schedule_timeout_killable(ticks) schedule_timeout_interruptible(ticks)
#define schedule_timeout_idle(ticks) schedule_timeout_interruptible(ticks)

/* 1: it was asleep. */
static inline int wake_up_process(struct task_struct *task)
{
	return sy__wake(task);
}

#define yield() ((void)sched_yield())
#define need_resched() 0
#define cond_resched_rcu() (rcu_read_unlock(), (void)sched_yield(), rcu_read_lock())
#define signal_pending(task) ((void)(task), 0)
#define fatal_signal_pending(task) signal_pending(task)
#define task_pid_nr(task) ((task)->pid)
#define memalloc_nofs_save() 0U
#define memalloc_nofs_restore(flags) ((void)(flags))
#define memalloc_noio_save() 0U
#define memalloc_noio_restore(flags) ((void)(flags))

#endif
