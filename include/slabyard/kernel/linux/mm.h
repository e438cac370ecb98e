/* <linux/mm.h> for kernel code that is compiled into a program: of it, kvmalloc and its kind, and pages by address. */
#ifndef SLABYARD_KERNEL_LINUX_MM_H
#define SLABYARD_KERNEL_LINUX_MM_H

#include <linux/gfp.h>
#include <linux/overflow.h>

#endif
