/* <linux/stddef.h> for kernel code that is compiled into a program. The C library's own headers may read it too, in place of the system's. */
#ifndef SLABYARD_KERNEL_LINUX_STDDEF_H
#define SLABYARD_KERNEL_LINUX_STDDEF_H

#pragma GCC system_header

#include "container_of.h"

#include <stdbool.h>
#include_next <linux/stddef.h>

#endif
