/* <linux/slab.h> for kernel code that is compiled into a program; see slabyard/kmem.h. */
#ifndef SLABYARD_KERNEL_LINUX_SLAB_H
#define SLABYARD_KERNEL_LINUX_SLAB_H

#include <slabyard/kmem.h>

/* What the kernel's own brings along, and code that includes it relies on. A program with types and lists of its own defines this. */
#ifndef SLABYARD_SLAB_ALONE
#include "atomic.h"
#include "bitops.h"
#include "cleanup.h"
#include "err.h"
#include "kernel.h"
#include "list.h"
#include "mutex.h"
#include "numa.h"
#include "overflow.h"
#include "rcupdate.h"
#include "spinlock.h"
#include "string.h"
#include "types.h"

DEFINE_FREE(kfree, void *, if (!IS_ERR_OR_NULL(_T)) kfree(_T))
DEFINE_FREE(kvfree, void *, if (!IS_ERR_OR_NULL(_T)) kvfree(_T))
DEFINE_FREE(kfree_sensitive, void *, if (!IS_ERR_OR_NULL(_T)) kfree_sensitive(_T))
#endif

#endif
