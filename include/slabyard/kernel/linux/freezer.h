/* <linux/freezer.h> for kernel code that is compiled into a program: nobody is frozen. */
#ifndef SLABYARD_KERNEL_LINUX_FREEZER_H
#define SLABYARD_KERNEL_LINUX_FREEZER_H

#pragma GCC system_header

#include "sched.h"
#include "wait.h"

#define freezing(task) ((void)(task), false)
#define try_to_freeze() false
#define set_freezable() ((void)0)
#define wait_event_freezable(queue, condition) wait_event_interruptible(queue, condition)
#define wait_event_freezable_timeout(queue, condition, ticks) wait_event_interruptible_timeout(queue, condition, ticks)
#define freezable_schedule_timeout_interruptible(ticks) schedule_timeout_interruptible(ticks)

#endif
