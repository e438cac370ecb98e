/*
 * <linux/kernel.h> for kernel code that is compiled into a program: that of the kernel tree's tools/include, or the system's. The
 * former makes synchronize_rcu a macro that does nothing; here it waits. <sys/sysinfo.h> reads this header too.
 */
#ifndef SLABYARD_KERNEL_LINUX_KERNEL_H
#define SLABYARD_KERNEL_LINUX_KERNEL_H

#pragma GCC system_header

#include "container_of.h"
#include "types.h"

#include_next <linux/kernel.h>
#undef synchronize_rcu

#endif
