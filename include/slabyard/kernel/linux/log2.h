/* <linux/log2.h> for kernel code that is compiled into a program. */
#ifndef SLABYARD_KERNEL_LINUX_LOG2_H
#define SLABYARD_KERNEL_LINUX_LOG2_H

#pragma GCC system_header

#include <slabyard/kmem.h>

static inline bool is_power_of_2(unsigned long number)
{
	return number != 0 && (number & (number - 1)) == 0;
}

/* -1 of 0. */
static inline int ilog2(unsigned long number)
{
	return number ? (int)sizeof(number) * 8 - 1 - __builtin_clzl(number) : -1;
}

static inline unsigned long rounddown_pow_of_two(unsigned long number)
{
	return 1UL << ilog2(number);
}

static inline unsigned long roundup_pow_of_two(unsigned long number)
{
	return number <= 1 ? 1 : 1UL << (ilog2(number - 1) + 1);
}

static inline int order_base_2(unsigned long number)
{
	return number <= 1 ? 0 : ilog2(number - 1) + 1;
}

/* The order of the pages that hold that many bytes. */
static inline int get_order(unsigned long size)
{
	return size <= SY_PAGE_SIZE ? 0 : order_base_2((size + SY_PAGE_SIZE - 1) >> SY_PAGE_SHIFT);
}

#endif
