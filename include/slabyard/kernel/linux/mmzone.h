/* <linux/mmzone.h> for kernel code that is compiled into a program. */
#ifndef SLABYARD_KERNEL_LINUX_MMZONE_H
#define SLABYARD_KERNEL_LINUX_MMZONE_H

#pragma GCC system_header

#include "mm.h"

#endif
