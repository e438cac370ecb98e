/* <linux/string_choices.h> for kernel code that is compiled into a program. */
#ifndef SLABYARD_KERNEL_LINUX_STRING_CHOICES_H
#define SLABYARD_KERNEL_LINUX_STRING_CHOICES_H

#pragma GCC system_header

#include "string.h"

#endif
