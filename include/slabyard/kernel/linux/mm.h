/* <linux/mm.h> for kernel code that is compiled into a program: of it, kvmalloc and its kind, and pages by address. */
#ifndef SLABYARD_KERNEL_LINUX_MM_H
#define SLABYARD_KERNEL_LINUX_MM_H

#include <slabyard/kmem.h>

#include "overflow.h"

#endif
