/* <linux/prandom.h> for kernel code that is compiled into a program. */
#ifndef SLABYARD_KERNEL_LINUX_PRANDOM_H
#define SLABYARD_KERNEL_LINUX_PRANDOM_H

#pragma GCC system_header

#include "random.h"

#endif
