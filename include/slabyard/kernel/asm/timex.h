/* <asm/timex.h> for kernel code that is compiled into a program: cycles are nanoseconds. */
#ifndef SLABYARD_KERNEL_ASM_TIMEX_H
#define SLABYARD_KERNEL_ASM_TIMEX_H

#pragma GCC system_header

#include "../linux/ktime.h"

typedef unsigned long long cycles_t;

#define get_cycles() ((cycles_t)ktime_get_ns())

#endif
