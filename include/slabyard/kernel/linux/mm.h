/* <linux/mm.h> for kernel code that is compiled into a program: of it, kvmalloc and its kind, and pages by address. */
#ifndef SLABYARD_KERNEL_LINUX_MM_H
#define SLABYARD_KERNEL_LINUX_MM_H

#include <slabyard/kmem.h>

#include "atomic.h"
#include "bug.h"
#include "kernel.h"
#include "gfp.h"
#include "list.h"
#include "mutex.h"
#include "overflow.h"
#include "rbtree.h"
#include "shrinker.h"
#include "slab.h"
#include "spinlock.h"

/* Of Linux 6.1, where it is the first that there is not. */
#define MAX_ORDER (SY_MAX_ORDER + 1)
#define MAX_PAGE_ORDER SY_MAX_ORDER

#endif
