/* <linux/gfp.h> for kernel code that is compiled into a program. slabyard/kmem.h has the flags and the calls. */
#ifndef SLABYARD_KERNEL_LINUX_GFP_H
#define SLABYARD_KERNEL_LINUX_GFP_H

#include <slabyard/kmem.h>

#include "cleanup.h"
#include "types.h"

DEFINE_FREE(free_page, void *, free_page((unsigned long)_T))

#endif
