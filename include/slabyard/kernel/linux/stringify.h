/* <linux/stringify.h> for kernel code that is compiled into a program. */
#ifndef SLABYARD_KERNEL_LINUX_STRINGIFY_H
#define SLABYARD_KERNEL_LINUX_STRINGIFY_H

#pragma GCC system_header

#include "kernel.h"

#endif
