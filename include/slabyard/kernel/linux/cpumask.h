/* <linux/cpumask.h> for kernel code that is compiled into a program. */
#ifndef SLABYARD_KERNEL_LINUX_CPUMASK_H
#define SLABYARD_KERNEL_LINUX_CPUMASK_H

#pragma GCC system_header

#include "bitmap.h"
#include "smp.h"

#endif
