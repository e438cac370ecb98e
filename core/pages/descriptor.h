/*
 * Page descriptors of core/pages/, as page_interface.h asks for them: everything that a policy may know of a page is a field, and
 * every page of a block has all of it.
 *
 * Descriptors are an array over the reserved range, so one subtraction and shift converts between address and descriptor. Inner pages
 * of a block say how far away its head is. A descriptor has 64 bytes, a cache line of most machines. Its first 40 bytes are a
 * policy's in the head page of a slab or large allocation, and the page allocator's own (list links) in a free page. A kernel's struct
 * slab leaves a policy no more than these 40 bytes, so a policy that fits here fits there.
 */
#ifndef SY_PAGES_DESCRIPTOR_H
#define SY_PAGES_DESCRIPTOR_H

#include "../types.h"

/* Links of a free block. Declared here, as C++ allows no type declarations in an anonymous union. */
struct sy_page_links {
	struct sy_page *next, *prev;
};

struct sy_page {
	union {
		unsigned char state[SY_SLAB_STATE_BYTES]; /* the policy's, see SY_SLAB_STATE */
		uint64_t align_state;
		struct sy_page_links free; /* free list or per-CPU list; under the lock of that list */
	};
	uint8_t use;       /* enum sy_page_use */
	uint8_t order;     /* of the block that this page heads */
	uint8_t migrate;   /* enum sy_migrate: of its free list; of a block in use, what the request asked for */
	uint8_t zone;      /* index of its zone in the page allocator */
	uint8_t node;      /* memory node */
	uint8_t flags;     /* the page allocator's own */
	uint16_t to_head;  /* pages back to the head of its block; valid for slabs and large allocations */
	struct sy_heap *heap; /* whose slab or large allocation; NULL for the rest */
	uint64_t bytes;    /* of a large allocation: bytes asked for; the page allocator's own while the page is free */
};
_Static_assert(sizeof(struct sy_page) <= 64, "a page descriptor is at most 64 bytes");

static inline uint8_t sy__page_order(const struct sy_page *page)
{
	return page->order;
}

static inline uint8_t sy__page_node(const struct sy_page *page)
{
	return page->node;
}

static inline enum sy_page_use sy__page_use(const struct sy_page *page)
{
	return (enum sy_page_use)page->use;
}

static inline bool sy__page_is_slab(const struct sy_page *page)
{
	return page->use == SY_USE_SLAB;
}

static inline bool sy__page_is_large(const struct sy_page *page)
{
	return page->use == SY_USE_LARGE;
}

static inline bool sy__page_is_metadata(const struct sy_page *page)
{
	return page->use == SY_USE_METADATA;
}

static inline struct sy_heap *sy__page_heap(const struct sy_page *page)
{
	return page->heap;
}

static inline void sy__page_set_heap(struct sy_page *page, struct sy_heap *heap)
{
	page->heap = heap;
}

static inline uint64_t sy__page_bytes(const struct sy_page *page)
{
	return page->bytes;
}

static inline void sy__page_set_bytes(struct sy_page *page, uint64_t bytes)
{
	page->bytes = bytes;
}

static inline struct sy_page *sy__page_head(struct sy_page *page)
{
	return page - page->to_head;
}

/* The beginning of struct sy_pages, for inline conversions. */
struct sy_pages_base {
	char *memory;          /* address of page 0 */
	struct sy_page *table; /* descriptor of page 0 */
	uint64_t page_count;   /* in the reserved range */
	uint64_t known;        /* pages from 0 up to here have descriptors, but for those between zones */
};

static inline const struct sy_pages_base *sy__pages_base(const struct sy_heap *heap)
{
	return (const struct sy_pages_base *)(const void *)heap->pages;
}

static inline void *sy__page_address(const struct sy_heap *heap, const struct sy_page *page)
{
	const struct sy_pages_base *base = sy__pages_base(heap);

	return base->memory + ((size_t)(page - base->table) << SY_PAGE_SHIFT);
}

static inline size_t sy__known_pages(const struct sy_heap *heap)
{
	return (size_t)__atomic_load_n(&sy__pages_base(heap)->known, __ATOMIC_RELAXED);
}

static inline bool sy__holds_near(const char *memory, size_t known, const void *address)
{
	return ((uintptr_t)address - (uintptr_t)memory) >> SY_PAGE_SHIFT < known;
}

static inline bool sy__holds(const struct sy_heap *heap, const void *address)
{
	return sy__holds_near(sy__pages_base(heap)->memory, sy__known_pages(heap), address);
}

static inline struct sy_page *sy__page_near(const char *memory, struct sy_page *table, const void *address)
{
	return table + ((size_t)((const char *)address - memory) >> SY_PAGE_SHIFT);
}

static inline uint32_t sy__page_to_number(const struct sy_page *table, const struct sy_page *page)
{
	return (uint32_t)(page - table) + 1;
}

static inline struct sy_page *sy__page_of_number(struct sy_page *table, uint32_t number)
{
	return table + (number - 1);
}

static inline struct sy_page *sy__page_of(const struct sy_heap *heap, const void *address)
{
	const struct sy_pages_base *base = sy__pages_base(heap);

	return sy__page_near(base->memory, base->table, address);
}

/* From the start of the block with this head, which the address is in. */
static inline size_t sy__page_distance(const struct sy_heap *heap, const struct sy_page *head, const void *address)
{
	(void)head;
	return ((size_t)sy__page_of(heap, address)->to_head << SY_PAGE_SHIFT) + ((uintptr_t)address & (SY_PAGE_SIZE - 1));
}

#endif
