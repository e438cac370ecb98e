/* <asm/barrier.h> for kernel code that is compiled into a program. */
#ifndef SLABYARD_KERNEL_ASM_BARRIER_H
#define SLABYARD_KERNEL_ASM_BARRIER_H

#pragma GCC system_header

#include "../linux/atomic.h"

#endif
