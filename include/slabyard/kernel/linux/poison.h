/* <linux/poison.h> for kernel code that is compiled into a program: values that nobody stores. */
#ifndef SLABYARD_KERNEL_LINUX_POISON_H
#define SLABYARD_KERNEL_LINUX_POISON_H

#pragma GCC system_header

#include "list.h"

#define POISON_INUSE 0x5a
#define POISON_FREE 0x6b
#define POISON_END 0xa5
#define SLUB_RED_INACTIVE 0xbb
#define SLUB_RED_ACTIVE 0xcc

#endif
