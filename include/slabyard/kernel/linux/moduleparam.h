/* <linux/moduleparam.h> for kernel code that is compiled into a program. */
#ifndef SLABYARD_KERNEL_LINUX_MODULEPARAM_H
#define SLABYARD_KERNEL_LINUX_MODULEPARAM_H

#pragma GCC system_header

#include "module.h"

#endif
