/* <asm/processor.h> for kernel code that is compiled into a program. */
#ifndef SLABYARD_KERNEL_ASM_PROCESSOR_H
#define SLABYARD_KERNEL_ASM_PROCESSOR_H

#pragma GCC system_header

#include "../linux/processor.h"

#endif
