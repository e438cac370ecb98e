/* Size classes of general allocation, shared by the policies that serve kmalloc from caches. See kmalloc.c. */
#ifndef SY_KMALLOC_H
#define SY_KMALLOC_H

#include "backend/large.h"
#include "types.h"

#define SY__KMALLOC_MOST_CLASSES 97 /* of all types */
#define SY__KMALLOC_SMALL 1024u    /* bytes; up to here one look at a table finds the cache */
#define SY__KMALLOC_LARGEST 32768u /* bytes; of any class */
#define SY__KMALLOC_STEP 16u       /* classes from SY__KMALLOC_SMALL to SY__KMALLOC_MIDDLE are multiples of this */
#define SY__KMALLOC_MIDDLE 8192u   /* bytes */
#define SY__KMALLOC_WIDE_STEP 256u /* and those above of this */

/* Types of use, each with classes of its own. Linux: enum kmalloc_cache_type. */
enum sy__kmalloc_type {
	SY__KMALLOC_NORMAL,
	SY__KMALLOC_RECLAIMABLE,
	SY__KMALLOC_ACCOUNT,
	SY__KMALLOC_DMA,
	SY__KMALLOC_TYPES
};

#define SY__KMALLOC_WIDE_FIRST ((SY__KMALLOC_MIDDLE - SY__KMALLOC_SMALL) / SY__KMALLOC_STEP) /* number of the first wide step */
#define SY__KMALLOC_STEPS (SY__KMALLOC_WIDE_FIRST + (SY__KMALLOC_LARGEST - SY__KMALLOC_MIDDLE) / SY__KMALLOC_WIDE_STEP)

/* The step of a size above SY__KMALLOC_SMALL, up to SY__KMALLOC_LARGEST. */
static inline unsigned sy__kmalloc_step(size_t size)
{
	unsigned last = (unsigned)size - 1; /* byte */

	return last < SY__KMALLOC_MIDDLE
	               ? last / SY__KMALLOC_STEP - SY__KMALLOC_SMALL / SY__KMALLOC_STEP
	               : last / SY__KMALLOC_WIDE_STEP + SY__KMALLOC_WIDE_FIRST - SY__KMALLOC_MIDDLE / SY__KMALLOC_WIDE_STEP;
}

struct sy__kmalloc {
	struct sy_cache *small[SY__KMALLOC_SMALL / 8 + 1]; /* of type normal, by ceil(size / 8): the fast path */
	struct sy_cache *classes[SY__KMALLOC_MOST_CLASSES]; /* of type 0, then of type 1, … */
	uint8_t medium_class[SY__KMALLOC_STEPS]; /* by step; the number of classes stands for none */
	uint32_t largest; /* bytes; larger requests go straight to pages */
	uint32_t next_type; /* classes from one type to the next; 0: all types have the same */
};

/* Flags that choose a type of use. */
#define SY__KMALLOC_TYPE_FLAGS ((unsigned)(SY_DMA | SY_RECLAIMABLE | SY_ACCOUNT))

/* Whether sy__kmalloc_small finds the cache. */
static inline bool sy__kmalloc_is_small(size_t size, unsigned flags)
{
	return size <= SY__KMALLOC_SMALL && !(flags & SY__KMALLOC_TYPE_FLAGS);
}

static inline struct sy_cache *sy__kmalloc_small(const struct sy__kmalloc *kmalloc, size_t size)
{
	return kmalloc->small[(size + 7) / 8];
}

/* The cache for a request without type flags; NULL: the request goes straight to pages. */
static inline struct sy_cache *sy__kmalloc_untyped(const struct sy__kmalloc *kmalloc, size_t size)
{
	if (sy__likely(size <= SY__KMALLOC_SMALL))
		return sy__kmalloc_small(kmalloc, size);
	if (sy__unlikely(size > kmalloc->largest))
		return NULL;
	return kmalloc->classes[kmalloc->medium_class[sy__kmalloc_step(size)]];
}

/* The same for a request with type flags. */
SY__COLD struct sy_cache *sy__kmalloc_typed(const struct sy__kmalloc *, size_t size, unsigned flags);

/* The same for a quick call; NULL also for a request with type flags. A call of sy__kmalloc_typed, however rare, would make the
 * quick call save registers, and these stores cost: see struct sy_quick in policy.h. */
static inline struct sy_cache *sy__kmalloc_quick(const struct sy__kmalloc *kmalloc, size_t size, unsigned flags)
{
	return sy__unlikely(flags & SY__KMALLOC_TYPE_FLAGS) ? NULL : sy__kmalloc_untyped(kmalloc, size);
}

/* The same for any request. */
static inline struct sy_cache *sy__kmalloc_cache(const struct sy__kmalloc *kmalloc, size_t size, unsigned flags)
{
	return sy__likely(!(flags & SY__KMALLOC_TYPE_FLAGS)) ? sy__kmalloc_untyped(kmalloc, size)
	                                                     : sy__kmalloc_typed(kmalloc, size, flags);
}

/* Size of Linux's class that serves a request; 0: it goes to pages. */
uint32_t sy__kmalloc_linux_size(size_t size);

/* Whether an object whose size is a multiple of a power of two, up to a page, is aligned to that power: every class is aligned as
 * its size is. */
bool sy__kmalloc_aligns(const struct sy_heap *);

/* The size to request so that the object is aligned to a power of two, a page at most, in any policy. */
size_t sy__kmalloc_aligned_size(const struct sy_heap *, size_t size, size_t align);

/* The tunable `classes`, which several policies have. */
extern const char *const sy__kmalloc_class_names[];
#define SY__KMALLOC_CLASSES_TUNABLE                                                                    \
	"classes", SY_TUNABLE_AUTO, SY_CLASSES_LINUX, SY_CLASSES_FINE, sy__kmalloc_class_names, false, \
		"size classes of general allocation; auto: linux, but fine where slabyard is a program's malloc"

#define SY__KMALLOC_ALL_TYPES ((1u << SY__KMALLOC_TYPES) - 1)

/* Creates the caches of a set of classes from `smallest` bytes on. `classes` is the tunable's value; auto: sy_sizing.classes. Smaller
 * requests go to the smallest class. `own_types`: a bit for each type that has classes of its own, the first one always; the others have
 * the first one's. Linux's classes get cache_flags besides their own. False: no memory; what was created stays in the heap's list. */
bool sy__kmalloc_create(struct sy_heap *, struct sy__kmalloc *, int64_t classes, unsigned own_types, uint32_t smallest,
                        unsigned cache_flags);

#endif
