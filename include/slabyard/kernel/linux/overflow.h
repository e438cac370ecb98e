/*
 * <linux/overflow.h> for kernel code that is compiled into a program: sums and products of sizes. They become SIZE_MAX where they
 * do not fit, and every allocation refuses that.
 */
#ifndef SLABYARD_KERNEL_LINUX_OVERFLOW_H
#define SLABYARD_KERNEL_LINUX_OVERFLOW_H

#include <slabyard/kmem.h>

#define check_add_overflow(a, b, result) __builtin_add_overflow(a, b, result)
#define check_sub_overflow(a, b, result) __builtin_sub_overflow(a, b, result)
#define check_mul_overflow(a, b, result) __builtin_mul_overflow(a, b, result)

/* True: a bit is lost, or becomes the sign, or there is no such shift. */
#define check_shl_overflow(number, shift, result) \
	__extension__ ({ \
		__typeof__(number) sy__number = (number); \
		__typeof__(shift) sy__shift = (shift); \
		__typeof__(result) sy__result = (result); \
		unsigned sy__by = (unsigned long long)sy__shift < 8 * sizeof(*sy__result) ? (unsigned)sy__shift : 0; \
		*sy__result = (__typeof__(*sy__result))((unsigned long long)sy__number << sy__by); \
		sy__by != (unsigned long long)sy__shift || (sy__number < 1 && sy__number != 0) || \
			(*sy__result < 1 && *sy__result != 0) || (unsigned long long)(*sy__result >> sy__by) != (unsigned long long)sy__number; \
	})

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
