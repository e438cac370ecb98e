/*
 * <linux/overflow.h> for kernel code that is compiled into a program: sums and products of sizes, which are SIZE_MAX where they do not
 * fit, and so are refused by every allocation.
 */
#ifndef SLABYARD_KERNEL_LINUX_OVERFLOW_H
#define SLABYARD_KERNEL_LINUX_OVERFLOW_H

#include <stddef.h>
#include <stdint.h>

#define check_add_overflow(a, b, result) __builtin_add_overflow(a, b, result)
#define check_sub_overflow(a, b, result) __builtin_sub_overflow(a, b, result)
#define check_mul_overflow(a, b, result) __builtin_mul_overflow(a, b, result)

static inline size_t size_mul(size_t a, size_t b)
{
	size_t bytes;

	return __builtin_mul_overflow(a, b, &bytes) ? SIZE_MAX : bytes;
}

static inline size_t size_add(size_t a, size_t b)
{
	size_t bytes;

	return __builtin_add_overflow(a, b, &bytes) ? SIZE_MAX : bytes;
}

static inline size_t size_sub(size_t a, size_t b)
{
	return a == SIZE_MAX || b == SIZE_MAX || a < b ? SIZE_MAX : a - b;
}

#define array_size(a, b) size_mul(a, b)
#define array3_size(a, b, c) size_mul(size_mul(a, b), c)

/* Of a structure that ends in an array of count elements; nothing is read through the pointer. */
#define flex_array_size(pointer, member, count) size_mul(count, sizeof(*(pointer)->member))
#define struct_size(pointer, member, count) size_add(sizeof(*(pointer)), flex_array_size(pointer, member, count))

#endif
