/* <linux/gfp.h> for kernel code that is compiled into a program; see slabyard/kmem.h. */
#ifndef SLABYARD_KERNEL_LINUX_GFP_H
#define SLABYARD_KERNEL_LINUX_GFP_H

#include <slabyard/kmem.h>

#endif
