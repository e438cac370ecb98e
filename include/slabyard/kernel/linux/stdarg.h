/* <linux/stdarg.h> for kernel code that is compiled into a program. */
#ifndef SLABYARD_KERNEL_LINUX_STDARG_H
#define SLABYARD_KERNEL_LINUX_STDARG_H

#pragma GCC system_header

#include <stdarg.h>

#endif
