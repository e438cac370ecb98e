/* <linux/ctype.h> for kernel code that is compiled into a program: the C library's. */
#ifndef SLABYARD_KERNEL_LINUX_CTYPE_H
#define SLABYARD_KERNEL_LINUX_CTYPE_H

#include <ctype.h>

#endif
