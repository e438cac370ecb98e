/* <linux/slab.h> for kernel code that is compiled into a program; see slabyard/kmem.h. */
#ifndef SLABYARD_KERNEL_LINUX_SLAB_H
#define SLABYARD_KERNEL_LINUX_SLAB_H

#include <slabyard/kmem.h>

#include "overflow.h"

#endif
