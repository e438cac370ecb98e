/* <linux/mm.h> for kernel code that is compiled into a program: kvmalloc and its kin, and pages by address. */
#ifndef SLABYARD_KERNEL_LINUX_MM_H
#define SLABYARD_KERNEL_LINUX_MM_H

#include <slabyard/kmem.h>

#include "gfp.h"
#include "shrinker.h"
#include "slab.h"

/* In Linux 6.1 the first order that does not exist; MAX_PAGE_ORDER, of newer kernels, is the last that does. */
#define MAX_ORDER (SY_MAX_ORDER + 1)
#define MAX_PAGE_ORDER SY_MAX_ORDER

#define PAGE_ALIGN_DOWN(address) ((address) & PAGE_MASK)
#define PAGE_ALIGNED(address) (((unsigned long)(address) & ~PAGE_MASK) == 0)

#endif
