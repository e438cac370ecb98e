/* <linux/mm.h> for kernel code that is compiled into a program: kvmalloc and its kin, and pages by address. */
#ifndef SLABYARD_KERNEL_LINUX_MM_H
#define SLABYARD_KERNEL_LINUX_MM_H

#include <slabyard/kmem.h>

#include "gfp.h"
#include "shrinker.h"
#include "slab.h"

/* In Linux 6.1 the first order that does not exist; MAX_PAGE_ORDER, of newer kernels, is the last that does. */
#define MAX_ORDER (SY_MAX_ORDER + 1)
#define MAX_PAGE_ORDER SY_MAX_ORDER

#define PAGE_ALIGN_DOWN(address) ((address) & PAGE_MASK)
#define PAGE_ALIGNED(address) (((unsigned long)(address) & ~PAGE_MASK) == 0)

/* Numbers of pages are those of a program's addresses. */
static inline unsigned long virt_to_pfn(const void *address) { return (unsigned long)(uintptr_t)address >> PAGE_SHIFT; }
static inline void *pfn_to_virt(unsigned long number) { return (void *)(uintptr_t)(number << PAGE_SHIFT); }
static inline unsigned long page_to_pfn(const struct page *page) { return virt_to_pfn(page_address(page)); }
static inline struct page *pfn_to_page(unsigned long number) { return virt_to_page(pfn_to_virt(number)); }

#endif
