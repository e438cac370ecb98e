/*
 * General allocation on the calling thread's slot, by the size classes of core/kmalloc.h, and the table of all calls without slots:
 * a template. A policy's file includes this in place of size_entries.h; its struct sy_policy.here is &entries_here.
 */
#ifndef SY_SIZE_ENTRIES_HERE_H
#define SY_SIZE_ENTRIES_HERE_H

#include "size_entries.h"

static SY__OUT_OF_LINE void *kmalloc_other_here(size_t size, unsigned flags, struct sy_heap *heap)
{
	struct sy_cache *cache = sy__kmalloc_cache(entry_sizes(heap), size, flags);
	void *object;

	if (sy__unlikely(!cache || !take_here(entry_cache_of(cache), flags, &object)))
		return sy__here_kmalloc(size, flags, heap);
	return handed_out(entry_cache_of(cache), flags, object);
}

static void *entry_kmalloc_here(size_t size, unsigned flags, struct sy_heap *heap)
{
	entry_cache *cache;
	void *object;

	if (sy__unlikely(!sy__kmalloc_is_small(size, flags)))
		return kmalloc_other_here(size, flags, heap);
	cache = entry_cache_of(sy__kmalloc_small(entry_sizes(heap), size));
	if (sy__unlikely(!take_here(cache, flags, &object)))
		return sy__here_kmalloc(size, flags, heap);
	return handed_out(cache, flags, object);
}

static void *entry_malloc_here(size_t size, struct sy_heap *heap)
{
	return entry_kmalloc_here(size, 0, heap);
}

static void entry_kfree_here(void *object, struct sy_heap *heap)
{
	struct sy_page *page = sy__head_of(heap, object);

	if (sy__unlikely(sy__page_is_large(page) || !put_here(cache_in(page), page, object)))
		sy__here_kfree(object, heap);
}

static const struct sy_here entries_here = {
	.cache_alloc = entry_alloc_here,
	.cache_free = entry_free_here,
	.kmalloc = entry_kmalloc_here,
	.malloc = entry_malloc_here,
	.kfree = entry_kfree_here,
};

#endif
