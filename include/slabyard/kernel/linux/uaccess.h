/* <linux/uaccess.h> for kernel code that is compiled into a program, whose memory is all its own. */
#ifndef SLABYARD_KERNEL_LINUX_UACCESS_H
#define SLABYARD_KERNEL_LINUX_UACCESS_H

#pragma GCC system_header

#include "err.h"
#include "string.h"
#include "types.h"

/* Bytes that were not copied: 0. */
static inline unsigned long copy_from_user(void *to, const void *from, unsigned long count)
{
	memcpy(to, from, count);
	return 0;
}

static inline unsigned long copy_to_user(void *to, const void *from, unsigned long count)
{
	memcpy(to, from, count);
	return 0;
}

static inline unsigned long clear_user(void *to, unsigned long count)
{
	memset(to, 0, count);
	return 0;
}

#define access_ok(address, size) ((void)(address), (void)(size), 1)
#define get_user(variable, place) ((variable) = *(place), 0)
#define put_user(value, place) (*(place) = (value), 0)
#define __copy_from_user(to, from, count) copy_from_user(to, from, count)
#define __copy_to_user(to, from, count) copy_to_user(to, from, count)

#endif
