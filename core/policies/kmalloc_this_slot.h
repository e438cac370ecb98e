/*
 * General allocation on the calling thread's slot, by the size classes of core/kmalloc.h: a template. Who includes it has defined
 *
 *   entry_sizes(heap)                       the heap's struct sy__kmalloc
 *   take_of_class(cache, flags, &object)    takes an object of a size class, by a fast call. False: there is none, and the call stays open
 *   take_small(heap, size, flags, &object)  the same, of a small size's class; false also for requests to be looked at more closely
 *
 * It gets entry_kmalloc_this_slot and entry_malloc_this_slot.
 */
#ifndef SY_KMALLOC_THIS_SLOT_H
#define SY_KMALLOC_THIS_SLOT_H

#include "../kmalloc.h"
#include "../this_slot.h"

static SY__OUT_OF_LINE void *kmalloc_other_this_slot(size_t size, unsigned flags, struct sy_heap *heap)
{
	struct sy_cache *cache = sy__kmalloc_cache(entry_sizes(heap), size, flags);
	void *object;

	if (sy__unlikely(!cache))
		return sy__this_slot_large_alloc(size, flags, heap);
	return sy__likely(take_of_class(cache, flags, &object)) ? object : sy__this_slot_kmalloc(size, flags, heap);
}

static void *entry_kmalloc_this_slot(size_t size, unsigned flags, struct sy_heap *heap)
{
	void *object;

	return sy__likely(take_small(heap, size, flags, &object)) ? sy__result(object) : kmalloc_other_this_slot(size, flags, heap);
}

static void *entry_malloc_this_slot(size_t size, struct sy_heap *heap)
{
	return entry_kmalloc_this_slot(size, 0, heap);
}

#endif
