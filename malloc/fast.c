/*
 * malloc and free, up to where they leave what a thread has at hand.
 *
 * Of the policy that most programs run on they contain the fast paths (core/policies/default.h), instead of a jump through a
 * pointer to them: on paths so short processors wait for where the next instruction is more than for anything else. One pointer
 * says that it is so, and which heap that is. It stays empty under other policies, while there is no heap, and where calls are
 * counted; then they go by the pointers of entries.c. malloc does not ask for it: to it no size is small then.
 */
#include "parts.h"

#include "core/policies/default.h"

#define EXPORT __attribute__((visibility("default"), aligned(32))) /* so that they are decoded at the same pace in every build */
#define QUOTED(name) #name
#define SAME_AS(function) __attribute__((alias(QUOTED(function)))) /* which may be a macro */

EXPORT void *malloc(size_t size);
EXPORT void free(void *object);

void sy__fast_path_set(struct service *by)
{
	bool serves = sy__default_serves(by->malloc, by->free);

	by->fast = serves ? by->heap : NULL;
	by->small = serves ? SY__KMALLOC_SMALL : 0;
}

/* Sizes that are not small, 0 among them; all where the fast path doesn't serve. */
static SY__OUT_OF_LINE void *malloc_other(size_t size)
{
	struct sy_heap *heap = sy__service.fast;

	return heap ? sy__default_malloc_other(size, heap) : sy__service.malloc(size, sy__service.heap);
}

static SY__OUT_OF_LINE void free_by_pointer(void *object)
{
	sy__service.free(object, sy__service.heap);
}

void *malloc(size_t size)
{
	return sy__likely(size - 1 < sy__service.small) ? sy__default_malloc_small(size, sy__service.fast) : malloc_other(size);
}

void free(void *object)
{
	struct sy_heap *heap = sy__service.fast;

	if (sy__likely(heap))
		sy__default_free(object, heap);
	else
		free_by_pointer(object);
}

extern __typeof__(malloc) sy__allocate SAME_AS(malloc);
extern __typeof__(free) sy__release SAME_AS(free);
