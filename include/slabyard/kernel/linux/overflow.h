/*
 * <linux/overflow.h> for kernel code that is compiled into a program: sums and products of sizes, which are SIZE_MAX where they do not
 * fit, and so are refused by every allocation.
 */
#ifndef SLABYARD_KERNEL_LINUX_OVERFLOW_H
#define SLABYARD_KERNEL_LINUX_OVERFLOW_H

#include <slabyard/kmem.h>

#define check_add_overflow(a, b, result) __builtin_add_overflow(a, b, result)
#define check_sub_overflow(a, b, result) __builtin_sub_overflow(a, b, result)
#define check_mul_overflow(a, b, result) __builtin_mul_overflow(a, b, result)

static inline size_t size_mul(size_t a, size_t b)
{
	return sy__size_mul(a, b);
}

static inline size_t size_add(size_t a, size_t b)
{
	return sy__size_add(a, b);
}

static inline size_t size_sub(size_t a, size_t b)
{
	return a == SIZE_MAX || b == SIZE_MAX || a < b ? SIZE_MAX : a - b;
}

#endif
