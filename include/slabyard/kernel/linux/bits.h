/* <linux/bits.h> for kernel code that is compiled into a program. */
#ifndef SLABYARD_KERNEL_LINUX_BITS_H
#define SLABYARD_KERNEL_LINUX_BITS_H

#pragma GCC system_header

#include "bitops.h"

#endif
