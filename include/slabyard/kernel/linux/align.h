/* <linux/align.h> for kernel code that is compiled into a program. */
#ifndef SLABYARD_KERNEL_LINUX_ALIGN_H
#define SLABYARD_KERNEL_LINUX_ALIGN_H

#pragma GCC system_header

#include "math.h"

#endif
