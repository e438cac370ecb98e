/* <linux/string_helpers.h> for kernel code that is compiled into a program. */
#ifndef SLABYARD_KERNEL_LINUX_STRING_HELPERS_H
#define SLABYARD_KERNEL_LINUX_STRING_HELPERS_H

#pragma GCC system_header

#include "string.h"

#endif
