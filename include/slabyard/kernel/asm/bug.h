/* <asm/bug.h> for kernel code that is compiled into a program. */
#ifndef SLABYARD_KERNEL_ASM_BUG_H
#define SLABYARD_KERNEL_ASM_BUG_H

#pragma GCC system_header

#include "../linux/bug.h"

#endif
