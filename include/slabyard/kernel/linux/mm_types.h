/* <linux/mm_types.h> for kernel code that is compiled into a program, where nobody looks into pages. */
#ifndef SLABYARD_KERNEL_LINUX_MM_TYPES_H
#define SLABYARD_KERNEL_LINUX_MM_TYPES_H

#pragma GCC system_header

#include "mm.h"

#endif
