/* <asm/unaligned.h> for kernel code that is compiled into a program. */
#ifndef SLABYARD_KERNEL_ASM_UNALIGNED_H
#define SLABYARD_KERNEL_ASM_UNALIGNED_H

#pragma GCC system_header

#include "../linux/unaligned.h"

#endif
