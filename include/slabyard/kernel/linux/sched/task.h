/* <linux/sched/task.h> for kernel code that is compiled into a program. */
#ifndef SLABYARD_KERNEL_LINUX_SCHED_TASK_H
#define SLABYARD_KERNEL_LINUX_SCHED_TASK_H

#pragma GCC system_header

#include "../sched.h"

#endif
