/* <linux/sched/clock.h> for kernel code that is compiled into a program: nanoseconds of the monotonic clock. */
#ifndef SLABYARD_KERNEL_LINUX_SCHED_CLOCK_H
#define SLABYARD_KERNEL_LINUX_SCHED_CLOCK_H

#pragma GCC system_header

#include "../ktime.h"

#define sched_clock() ktime_get_ns()
#define local_clock() ktime_get_ns()
#define cpu_clock(cpu) ((void)(cpu), ktime_get_ns())

#endif
