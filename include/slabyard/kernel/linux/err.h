/* <linux/err.h> for kernel code that is compiled into a program: errors in the place of pointers. */
#ifndef SLABYARD_KERNEL_LINUX_ERR_H
#define SLABYARD_KERNEL_LINUX_ERR_H

#pragma GCC system_header

#include "compiler.h"
#include "errno.h"

#include <stdbool.h>
#include <stddef.h>

#define MAX_ERRNO 4095
#define IS_ERR_VALUE(value) unlikely((unsigned long)(void *)(value) >= (unsigned long)-MAX_ERRNO)

static inline void *__must_check ERR_PTR(long error)
{
	return (void *)error;
}

static inline long __must_check PTR_ERR(const void *pointer)
{
	return (long)pointer;
}

static inline bool __must_check IS_ERR(const void *pointer)
{
	return IS_ERR_VALUE((unsigned long)pointer);
}

static inline bool __must_check IS_ERR_OR_NULL(const void *pointer)
{
	return unlikely(!pointer) || IS_ERR(pointer);
}

static inline void *__must_check ERR_CAST(const void *pointer)
{
	return (void *)(unsigned long)pointer;
}

static inline int __must_check PTR_ERR_OR_ZERO(const void *pointer)
{
	return IS_ERR(pointer) ? (int)PTR_ERR(pointer) : 0;
}

#endif
