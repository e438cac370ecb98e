/* <linux/highmem.h> for kernel code that is compiled into a program, where all memory has an address. */
#ifndef SLABYARD_KERNEL_LINUX_HIGHMEM_H
#define SLABYARD_KERNEL_LINUX_HIGHMEM_H

#pragma GCC system_header

#include "mm.h"
#include "string.h"

#define PageHighMem(page) ((void)(page), 0)
#define kmap(page) page_address(page)
#define kunmap(page) ((void)(page))
#define kmap_atomic(page) page_address(page)
#define kunmap_atomic(address) ((void)(address))
#define kmap_local_page(page) page_address(page)
#define kunmap_local(address) ((void)(address))

static inline void clear_highpage(struct page *page) { memset(page_address(page), 0, PAGE_SIZE); }
static inline void copy_highpage(struct page *to, struct page *from) { memcpy(page_address(to), page_address(from), PAGE_SIZE); }

/* Some bytes of a page: from and into memory, and with zeroes. */
static inline void memcpy_from_page(char *to, struct page *page, size_t offset, size_t size)
{
	memcpy(to, (const char *)page_address(page) + offset, size);
}

static inline void memcpy_to_page(struct page *page, size_t offset, const char *from, size_t size)
{
	memcpy((char *)page_address(page) + offset, from, size);
}

static inline void memzero_page(struct page *page, size_t offset, size_t size)
{
	memset((char *)page_address(page) + offset, 0, size);
}

#endif
