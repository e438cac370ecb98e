/* <linux/slab.h> for kernel code that is compiled into a program. slabyard/kmem.h has the calls. */
#ifndef SLABYARD_KERNEL_LINUX_SLAB_H
#define SLABYARD_KERNEL_LINUX_SLAB_H

#include <slabyard/kmem.h>

/* The kernel's own includes these, and kernel code relies on that. A program with types and lists of its own defines this. */
#ifndef SLABYARD_SLAB_ALONE
#include "cleanup.h"
#include "err.h"
#include "list.h"
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
