/* <linux/container_of.h> for kernel code that is compiled into a program. */
#ifndef SLABYARD_KERNEL_LINUX_CONTAINER_OF_H
#define SLABYARD_KERNEL_LINUX_CONTAINER_OF_H

#include <stddef.h>

/* By way of a number, so that an outer structure may be more strictly aligned than the pointer tells. */
#define container_of(pointer, type, member) ((type *)((__UINTPTR_TYPE__)(pointer) - offsetof(type, member)))
#define container_of_const(pointer, type, member) container_of(pointer, type, member)
#define typeof_member(type, member) __typeof__(((type *)0)->member)
#define sizeof_field(type, member) sizeof(((type *)0)->member)
#define offsetofend(type, member) (offsetof(type, member) + sizeof_field(type, member))

#endif
