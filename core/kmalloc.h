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
	struct sy_cache *classes[SY__KMALLOC_TYPES][16]; /* SY__KMALLOC_CLASSES of them; 16, so that a shift finds a type */
};

extern const uint16_t sy__kmalloc_sizes[SY__KMALLOC_CLASSES]; /* bytes, ascending */

/* Class of ceil(size / 8) for sizes up to 192. Here, as it is on the fast path. */
static const uint8_t sy__kmalloc_small[25] = {
	0, 0, 1, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 6,
};

/* Class of a size of at most SY__KMALLOC_LARGEST. */
static inline unsigned sy__kmalloc_class(size_t size)
{
	if (sy__likely(size <= 192))
		return sy__kmalloc_small[(size + 7) / 8];
	return 31u - (unsigned)__builtin_clz((unsigned)size - 1);
}

/* Of a request with any of these three flags. */
static inline enum sy__kmalloc_type sy__kmalloc_type(unsigned flags)
{
	if (flags & SY_DMA)
		return SY__KMALLOC_DMA;
	return flags & SY_RECLAIMABLE ? SY__KMALLOC_RECLAIMABLE : SY__KMALLOC_ACCOUNT;
}

/* The cache that serves a request of at most SY__KMALLOC_LARGEST. */
static inline struct sy_cache *sy__kmalloc_cache(const struct sy__kmalloc *kmalloc, size_t size, unsigned flags)
{
	if (sy__likely(!(flags & (SY_DMA | SY_RECLAIMABLE | SY_ACCOUNT))))
		return kmalloc->classes[SY__KMALLOC_NORMAL][sy__kmalloc_class(size)];
	return kmalloc->classes[sy__kmalloc_type(flags)][sy__kmalloc_class(size)];
}

/* Creates the caches of all classes from `smallest` bytes on (a class) in the heap's list, with these flags besides
 * their own; false: no memory (what was created stays in the list). Smaller requests go to the smallest class. */
bool sy__kmalloc_create(struct sy_heap *, struct sy__kmalloc *, uint32_t smallest, unsigned cache_flags);

/* An allocation that goes straight to pages, and its end. Any size above 0; NULL: no memory or beyond the
 * largest block. */
void *sy__large_alloc(struct sy_heap *, unsigned slot, size_t size, unsigned flags, int node);
void sy__large_free(struct sy_heap *, unsigned slot, struct sy_page *head);

#endif
