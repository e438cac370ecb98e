/* <linux/sched/mm.h> for kernel code that is compiled into a program. */
#ifndef SLABYARD_KERNEL_LINUX_SCHED_MM_H
#define SLABYARD_KERNEL_LINUX_SCHED_MM_H

#pragma GCC system_header

#include "../sched.h"

#endif
