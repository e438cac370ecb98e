/*
 * The fast paths of malloc and free.
 *
 * They contain the default policy's fast paths (core/policies/default.h). On paths so short, a jump through a pointer would cost
 * more than all the rest, because the processor waits for the next instruction's address. sy__service.fast says that the default
 * policy serves, and which heap. It is NULL under other policies, while there is no heap, and where calls are counted; malloc and
 * free then go by the pointers of entries.c. malloc does not test it: no size is small then. While allocations are sampled
 * (sample.c) malloc goes by the pointer and free does not.
 *
 * The service may change while others read it. Whatever they find of the old and of the new serves them.
 */
#include "parts.h"

#include "core/policies/default.h"

#define EXPORT __attribute__((visibility("default"), aligned(32))) /* so that they are decoded equally fast in every build */
#define QUOTED(name) #name
#define SAME_AS(function) __attribute__((alias(QUOTED(function)))) /* the name may be a macro */

EXPORT void *malloc(size_t size);
EXPORT void free(void *object);

void sy__fast_path_set(struct service *by)
{
	const bool frees = sy__default_frees(by->free), both = frees && sy__default_allocates(by->malloc);

	__atomic_store_n(&by->fast, both ? by->heap : NULL, __ATOMIC_RELAXED);
	__atomic_store_n(&by->other, both ? sy__default_malloc_other : by->malloc, __ATOMIC_RELAXED);
	__atomic_store_n(&by->small, both ? SY__KMALLOC_SMALL : 0, __ATOMIC_RELAXED);
	__atomic_store_n(&by->frees, frees, __ATOMIC_RELAXED);
}

void *malloc(size_t size)
{
	return sy__likely(size - 1 < sy__service.small) ? sy__default_malloc_small(size, sy__service.heap) : sy__service.other(size, sy__service.heap);
}

void free(void *object)
{
	if (sy__likely(sy__service.frees)) /* in no register */
		sy__default_free(object, &sy__service.heap);
	else
		sy__service.free(object, sy__service.heap);
}

extern __typeof__(malloc) sy__allocate SAME_AS(malloc);
extern __typeof__(free) sy__release SAME_AS(free);
