/* <linux/list_sort.h> for kernel code that is compiled into a program: by merging; equal entries stay in order. */
#ifndef SLABYARD_KERNEL_LINUX_LIST_SORT_H
#define SLABYARD_KERNEL_LINUX_LIST_SORT_H

#pragma GCC system_header

#include "list.h"

typedef int (*list_cmp_func_t)(void *context, const struct list_head *, const struct list_head *);

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

void sy__list_sort(void *context, struct list_head *, list_cmp_func_t);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#define list_sort(context, head, compare) sy__list_sort(context, head, compare)

#endif
