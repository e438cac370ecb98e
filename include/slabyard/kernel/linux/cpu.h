/* <linux/cpu.h> for kernel code that is compiled into a program. */
#ifndef SLABYARD_KERNEL_LINUX_CPU_H
#define SLABYARD_KERNEL_LINUX_CPU_H

#pragma GCC system_header

#include "smp.h"

#define cpus_read_lock() ((void)0)
#define cpus_read_unlock() ((void)0)

#endif
