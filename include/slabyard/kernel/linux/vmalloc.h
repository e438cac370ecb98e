/*
 * <linux/vmalloc.h> for kernel code that is compiled into a program: whole pages, straight from the operating system, as is_vmalloc_addr
 * tells. kvfree takes them too.
 */
#ifndef SLABYARD_KERNEL_LINUX_VMALLOC_H
#define SLABYARD_KERNEL_LINUX_VMALLOC_H

#include <slabyard/kmem.h>

#include "overflow.h"
#include "types.h"

/* NULL: no memory, or a size of 0. */
static inline void *__vmalloc(unsigned long size, gfp_t flags)
{
	return size ? sy__vmalloc(size, flags) : NULL;
}

static inline void *vmalloc(unsigned long size)
{
	return __vmalloc(size, GFP_KERNEL);
}

static inline void *vzalloc(unsigned long size)
{
	return __vmalloc(size, GFP_KERNEL | __GFP_ZERO);
}

static inline void *vmalloc_node(unsigned long size, int node)
{
	(void)node;
	return vmalloc(size);
}

static inline void *vzalloc_node(unsigned long size, int node)
{
	(void)node;
	return vzalloc(size);
}

static inline void *vmalloc_array(size_t count, size_t size)
{
	return vmalloc(array_size(count, size));
}

static inline void *vcalloc(size_t count, size_t size)
{
	return vzalloc(array_size(count, size));
}

static inline void vfree(const void *address)
{
	kvfree(address);
}

#endif
