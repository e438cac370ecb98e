/* Size classes of general allocation, shared by the policies that serve kmalloc from caches. See kmalloc.c. */
#ifndef SY_KMALLOC_H
#define SY_KMALLOC_H

#include "types.h"

#define SY__KMALLOC_CLASSES 13
#define SY__KMALLOC_LARGEST 8192u /* bytes; larger requests go straight to pages */

/* Who the memory is for: each has classes of its own. Linux: enum kmalloc_cache_type. */
enum sy__kmalloc_type {
	SY__KMALLOC_NORMAL,
	SY__KMALLOC_RECLAIMABLE,
	SY__KMALLOC_ACCOUNT,
	SY__KMALLOC_DMA,
	SY__KMALLOC_TYPES
};

struct sy__kmalloc {
	struct sy_cache *classes[SY__KMALLOC_TYPES][SY__KMALLOC_CLASSES];
};

extern const uint16_t sy__kmalloc_sizes[SY__KMALLOC_CLASSES]; /* bytes, ascending */
extern const uint8_t sy__kmalloc_small[25]; /* class of ceil(size / 8) for sizes up to 192 */

/* Class of a size of at most SY__KMALLOC_LARGEST. */
static inline unsigned sy__kmalloc_class(size_t size)
{
	if (sy__likely(size <= 192))
		return sy__kmalloc_small[(size + 7) / 8];
	return 31u - (unsigned)__builtin_clz((unsigned)size - 1);
}

static inline enum sy__kmalloc_type sy__kmalloc_type(unsigned flags)
{
	if (sy__likely(!(flags & (SY_DMA | SY_RECLAIMABLE | SY_ACCOUNT))))
		return SY__KMALLOC_NORMAL;
	if (flags & SY_DMA)
		return SY__KMALLOC_DMA;
	return flags & SY_RECLAIMABLE ? SY__KMALLOC_RECLAIMABLE : SY__KMALLOC_ACCOUNT;
}

/* Creates the caches of all classes in the heap's list; false: no memory (what was created stays in the list). */
bool sy__kmalloc_create(struct sy_heap *, struct sy__kmalloc *);

/* An allocation that goes straight to pages, and its end. Any size above 0; NULL: no memory or beyond the largest block. */
void *sy__large_alloc(struct sy_heap *, unsigned slot, size_t size, unsigned flags, int node);
void sy__large_free(struct sy_heap *, unsigned slot, struct sy_page *head);

#endif
