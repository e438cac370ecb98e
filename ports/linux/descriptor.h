/*
 * The kernel's page descriptors, in the form that core/page_interface.h asks for.
 *
 * struct sy_page is struct page under another name: the flags, then 40 bytes that belong to a slab's owner while the page is the
 * first of a slab, then what stays the kernel's. Of these 40 bytes
 *
 *   bit 0 of the first word    marks an inner page of a block. None of our states sets it.
 *   the third word             is the page's mapping. It is NULL when the page goes back. While the page is ours, compaction could
 *                              mistake two of its bits for "movable". The flag PG_isolated keeps compaction away.
 *   the mapcount behind them   is -1 when the page goes back. It is the page's type meanwhile, where the kernel has those
 *
 * One word says that a page is ours, as the kernel knows slabs by it, and what for (version.h: the flags, or the type):
 *
 *                     OURS   NO_OBJECTS   OTHER
 *   slab                x                   if its pages are counted as reclaimable
 *   large allocation    x        x
 *   metadata            x        x          x
 *
 * Blocks of more than one page are compound pages: the kernel itself finds the head of an inner page, and the order. A kernel has
 * one heap, so every page of ours is that heap's.
 */
#ifndef SY_LINUX_DESCRIPTOR_H
#define SY_LINUX_DESCRIPTOR_H

#include "version.h"

struct sy_page {
	unsigned long flags;
	union {
		unsigned char state[SY_SLAB_STATE_BYTES]; /* the policy's, see SY_SLAB_STATE */
		struct {
			unsigned long first, second, mapping, fourth, fifth;
		};
	};
	unsigned int type;
	unsigned char kernel[sizeof(struct page) - SY_SLAB_STATE_BYTES - sizeof(unsigned long) - sizeof(unsigned int)];
};

static_assert(SY_PAGE_SHIFT == PAGE_SHIFT, "the core's pages are the kernel's");
static_assert(sizeof(struct sy_page) == sizeof(struct page), "descriptors stand in the kernel's arrays");
static_assert(offsetof(struct sy_page, flags) == offsetof(struct page, flags), "flags are the kernel's");
static_assert(offsetof(struct sy_page, state) == offsetof(struct page, compound_head), "the first word says whether a page is inner");
static_assert(offsetof(struct sy_page, mapping) == offsetof(struct page, mapping), "the third word is the mapping");
static_assert(offsetof(struct sy_page, type) == offsetof(struct page, _mapcount), "the type is the kernel's");
static_assert(offsetof(struct sy_page, kernel) <= offsetof(struct page, _refcount), "the reference count is not touched");
#ifdef CONFIG_MEMCG
static_assert(offsetof(struct sy_page, kernel) <= offsetof(struct page, memcg_data), "the control group is not touched");
#endif

#define SY__PAGE_NOT_MOVABLE (1UL << PG_isolated)

extern struct sy_heap *sy__linux_heap; /* the one that there is */

/* The word of a page that is held changes by its holder alone, but the compiler must not assume that it never does. */
static inline sy__mark_t sy__page_mark(const struct sy_page *page)
{
	return READ_ONCE(page->SY__MARK);
}

static inline void sy__page_set_mark(struct sy_page *page, sy__mark_t mark)
{
	page->SY__MARK = (page->SY__MARK & SY__MARK_KEPT) | mark;
}

static inline bool sy__page_is_ours(const struct sy_page *page)
{
	return (sy__page_mark(page) & SY__MARK_KIND) == SY__MARK_OURS;
}

static inline struct page *sy__linux_page(const struct sy_page *page)
{
	return (struct page *)page;
}

static inline struct sy_page *sy__page_of_linux(struct page *page)
{
	return (struct sy_page *)page;
}

static inline uint8_t sy__page_order(const struct sy_page *page)
{
	return compound_order(sy__linux_page(page));
}

static inline uint8_t sy__page_node(const struct sy_page *page)
{
	return page_to_nid(sy__linux_page(page));
}

static inline bool sy__page_is_slab(const struct sy_page *page)
{
	return (sy__page_mark(page) & (SY__MARK_KIND | SY__MARK_NO_OBJECTS)) == SY__MARK_OURS;
}

/* Of a page of ours. */
static inline bool sy__page_is_large(const struct sy_page *page)
{
	return (sy__page_mark(page) & (SY__MARK_NO_OBJECTS | SY__MARK_OTHER)) == SY__MARK_NO_OBJECTS;
}

static inline bool sy__page_is_metadata(const struct sy_page *page)
{
	const sy__mark_t uses = SY__MARK_NO_OBJECTS | SY__MARK_OTHER;

	return (sy__page_mark(page) & (SY__MARK_KIND | uses)) == (SY__MARK_OURS | uses);
}

static inline enum sy_page_use sy__page_use(const struct sy_page *page)
{
	if (likely(sy__page_is_slab(page)))
		return SY_USE_SLAB;
	if (!sy__page_is_ours(page))
		return SY_USE_ENVIRONMENT;
	return sy__page_is_metadata(page) ? SY_USE_METADATA : SY_USE_LARGE;
}

static inline struct sy_heap *sy__page_heap(const struct sy_page *page)
{
	return sy__linux_heap;
}

static inline void sy__page_set_heap(struct sy_page *page, struct sy_heap *heap)
{
}

static inline uint64_t sy__page_bytes(const struct sy_page *page)
{
	return page->fifth;
}

static inline void sy__page_set_bytes(struct sy_page *page, uint64_t bytes)
{
	page->fifth = bytes;
}

static inline struct sy_page *sy__page_head(struct sy_page *page)
{
	return sy__page_of_linux(compound_head(sy__linux_page(page)));
}

/* The direct map of physical memory. */
struct sy_pages_base {
	char *memory;          /* address of page frame 0 */
	struct sy_page *table; /* NULL: not every kernel has all descriptors in one array */
	uint64_t page_count;
};

static inline const struct sy_pages_base *sy__pages_base(const struct sy_heap *heap)
{
	return (const struct sy_pages_base *)(const void *)heap->pages;
}

static inline void *sy__page_address(const struct sy_heap *heap, const struct sy_page *page)
{
	return page_to_virt(sy__linux_page(page));
}

static inline bool sy__holds(const struct sy_heap *heap, const void *address)
{
	return virt_addr_valid(address);
}

static inline size_t sy__known_pages(const struct sy_heap *heap)
{
	return 0;
}

static inline bool sy__holds_near(const char *memory, size_t known, const void *address)
{
	return virt_addr_valid(address);
}

static inline struct sy_page *sy__page_near(const char *memory, struct sy_page *table, const void *address)
{
	return sy__page_of_linux(virt_to_page(address));
}

/* By frames: 32 bits are enough for 16 TiB. */
static inline uint32_t sy__page_to_number(const struct sy_page *table, const struct sy_page *page)
{
	return (uint32_t)page_to_pfn(sy__linux_page(page)) + 1;
}

static inline struct sy_page *sy__page_of_number(struct sy_page *table, uint32_t number)
{
	return sy__page_of_linux(pfn_to_page(number - 1));
}

static inline struct sy_page *sy__page_of(const struct sy_heap *heap, const void *address)
{
	return sy__page_of_linux(virt_to_page(address));
}

static inline size_t sy__page_distance(const struct sy_heap *heap, const struct sy_page *head, const void *address)
{
	return (size_t)((const char *)address - (const char *)sy__page_address(heap, head));
}

#endif
