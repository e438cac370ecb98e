/* <linux/mutex_types.h> for kernel code that is compiled into a program. */
#ifndef SLABYARD_KERNEL_LINUX_MUTEX_TYPES_H
#define SLABYARD_KERNEL_LINUX_MUTEX_TYPES_H

#pragma GCC system_header

#include "mutex.h"

#endif
