/* <linux/sort.h> for kernel code that is compiled into a program: in place, without memory, whatever the order was. */
#ifndef SLABYARD_KERNEL_LINUX_SORT_H
#define SLABYARD_KERNEL_LINUX_SORT_H

#pragma GCC system_header

#include "types.h"

typedef int (*cmp_func_t)(const void *, const void *);
typedef int (*cmp_r_func_t)(const void *, const void *, const void *);
typedef void (*swap_func_t)(void *, void *, int);
typedef void (*swap_r_func_t)(void *, void *, int, const void *);

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

void sy__sort(void *elements, size_t count, size_t size, cmp_func_t, swap_func_t);
void sy__sort_r(void *elements, size_t count, size_t size, cmp_r_func_t, swap_r_func_t, const void *context);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#define sort(elements, count, size, compare, swaps) sy__sort(elements, count, size, compare, swaps)
#define sort_r(elements, count, size, compare, swaps, context) sy__sort_r(elements, count, size, compare, swaps, context)

#endif
