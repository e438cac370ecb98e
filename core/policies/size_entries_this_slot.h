/*
 * General allocation on the calling thread's slot, by the size classes of core/kmalloc.h, and the table of all calls without slots:
 * a template. A policy's file includes this in place of size_entries.h; its struct sy_policy.this_slot is &entries_this_slot.
 */
#ifndef SY_SIZE_ENTRIES_THIS_SLOT_H
#define SY_SIZE_ENTRIES_THIS_SLOT_H

#include "size_entries.h"

static SY__OUT_OF_LINE void *kmalloc_other_this_slot(size_t size, unsigned flags, struct sy_heap *heap)
{
	struct sy_cache *cache = sy__kmalloc_cache(entry_sizes(heap), size, flags);
	void *object;

	if (sy__unlikely(!cache || !take_this_slot(entry_cache_of(cache), flags, &object)))
		return sy__this_slot_kmalloc(size, flags, heap);
	return handed_out(entry_cache_of(cache), flags, object);
}

static void *entry_kmalloc_this_slot(size_t size, unsigned flags, struct sy_heap *heap)
{
	entry_cache *cache;
	void *object;

	if (sy__unlikely(!sy__kmalloc_is_small(size, flags)))
		return kmalloc_other_this_slot(size, flags, heap);
	cache = entry_cache_of(sy__kmalloc_small(entry_sizes(heap), size));
	if (sy__unlikely(!take_this_slot(cache, flags, &object)))
		return sy__this_slot_kmalloc(size, flags, heap);
	return handed_out(cache, flags, object);
}

static void *entry_malloc_this_slot(size_t size, struct sy_heap *heap)
{
	return entry_kmalloc_this_slot(size, 0, heap);
}

static void entry_kfree_this_slot(void *object, struct sy_heap *heap)
{
	struct sy_page *page = sy__head_of(heap, object);

	if (sy__unlikely(!sy__page_is_slab(page) || !put_this_slot(cache_in(page), page, object)))
		sy__this_slot_kfree(object, heap);
}

static const struct sy_this_slot entries_this_slot = {
	.cache_alloc = entry_alloc_this_slot,
	.cache_free = entry_free_this_slot,
	.kmalloc = entry_kmalloc_this_slot,
	.malloc = entry_malloc_this_slot,
	.kfree = entry_kfree_this_slot,
};

#endif
