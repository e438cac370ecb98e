/* <linux/sprintf.h> for kernel code that is compiled into a program. */
#ifndef SLABYARD_KERNEL_LINUX_SPRINTF_H
#define SLABYARD_KERNEL_LINUX_SPRINTF_H

#pragma GCC system_header

#include "kernel.h"

#endif
