/* <linux/refcount_types.h> for kernel code that is compiled into a program. */
#ifndef SLABYARD_KERNEL_LINUX_REFCOUNT_TYPES_H
#define SLABYARD_KERNEL_LINUX_REFCOUNT_TYPES_H

#pragma GCC system_header

#include "refcount.h"

#endif
