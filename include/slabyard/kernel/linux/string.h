/* <linux/string.h> for kernel code that is compiled into a program: the C library's functions, with kstrdup and its kin. */
#ifndef SLABYARD_KERNEL_LINUX_STRING_H
#define SLABYARD_KERNEL_LINUX_STRING_H

#include <slabyard/kmem.h>
#include <string.h>

#endif
