/* <asm/page.h> for kernel code that is compiled into a program. */
#ifndef SLABYARD_KERNEL_ASM_PAGE_H
#define SLABYARD_KERNEL_ASM_PAGE_H

#pragma GCC system_header

#include "../linux/mm.h"

#endif
