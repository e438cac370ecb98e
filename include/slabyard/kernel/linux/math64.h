/* <linux/math64.h> for kernel code that is compiled into a program: divisions of 64 bits. */
#ifndef SLABYARD_KERNEL_LINUX_MATH64_H
#define SLABYARD_KERNEL_LINUX_MATH64_H

#pragma GCC system_header

#include "math.h"
#include "types.h"

static inline u64 div_u64(u64 number, u32 by) { return number / by; }
static inline s64 div_s64(s64 number, s32 by) { return number / by; }
static inline u64 div64_u64(u64 number, u64 by) { return number / by; }
static inline s64 div64_s64(s64 number, s64 by) { return number / by; }

static inline u64 div_u64_rem(u64 number, u32 by, u32 *rest)
{
	*rest = (u32)(number % by);
	return number / by;
}

#define div64_ul(number, by) ((u64)(number) / (by))
#define div64_long(number, by) ((s64)(number) / (by))
#define DIV64_U64_ROUND_UP(number, by) div64_u64((number) + (by) - 1, by)
#define do_div(number, by) \
	__extension__ ({ \
		u32 sy__rest = (u32)((number) % (by)); \
		(number) /= (by); \
		sy__rest; \
	})

#endif
