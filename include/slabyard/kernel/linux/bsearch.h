/* <linux/bsearch.h> for kernel code that is compiled into a program: the C library's. */
#ifndef SLABYARD_KERNEL_LINUX_BSEARCH_H
#define SLABYARD_KERNEL_LINUX_BSEARCH_H

#pragma GCC system_header

#include "types.h"

#include <stdlib.h>

#endif
