/*
 * General allocation by the size classes of core/kmalloc.h, from a policy's own pop and push: a template.
 *
 * A policy's file includes this after what entries.h asks for, and
 *
 *   entry_sizes(heap)     the heap's struct sy__kmalloc
 *   cache_in(page)        the cache whose slab begins with this page
 *
 * It gets the functions of struct sy_policy entry_alloc, entry_free, entry_kmalloc and entry_kfree, and the quick calls
 * entries_quick. size_entries_this_slot.h adds the calls without slots, for policies that do not write these themselves. Larger requests
 * go to core/backend/large.c.
 */
#ifndef SY_SIZE_ENTRIES_H
#define SY_SIZE_ENTRIES_H

#include "../kmalloc.h"
#include "entries.h"

/* ---- On a slot that the caller names -------------------------------------------------------------------------- */

/* Sizes that no look at the table of small sizes finds, and types of use. */
static SY__OUT_OF_LINE void *kmalloc_other(struct sy_heap *heap, unsigned slot, size_t size, unsigned flags, int node)
{
	struct sy_cache *cache = sy__kmalloc_cache(entry_sizes(heap), size, flags);

	return cache ? take_on(entry_cache_of(cache), slot, flags, node) : sy__large_alloc(heap, slot, size, flags, node);
}

static void *entry_kmalloc(struct sy_heap *heap, unsigned slot, size_t size, unsigned flags, int node)
{
	if (sy__unlikely(!sy__kmalloc_is_small(size, flags)))
		return kmalloc_other(heap, slot, size, flags, node);
	return take_on(entry_cache_of(sy__kmalloc_small(entry_sizes(heap), size)), slot, flags, node);
}

static void entry_kfree(struct sy_heap *heap, unsigned slot, void *object)
{
	struct sy_page *page = sy__head_of(heap, object);

	if (sy__unlikely(!sy__page_is_slab(page)))
		sy__large_free(heap, slot, page, object);
	else
		put_on(cache_in(page), slot, page, object);
}

#ifndef SY_HARDENED /* a free that may let another object go is no quick one */

/* ---- Quick calls: interrupted at any point -------------------------------------------------------------------- */

static void *entry_kmalloc_quick(struct sy_heap *heap, unsigned slot, size_t size, unsigned flags)
{
	struct sy_cache *cache = sy__kmalloc_quick(entry_sizes(heap), size, flags);
	void *object = cache ? entry_alloc_quick(cache, slot) : NULL;

	return sy__unlikely(flags & SY_ZERO) && object ? sy__zeroed(cache, object) : object;
}

static bool entry_kfree_quick(struct sy_heap *heap, unsigned slot, struct sy_page *head, void *object)
{
	(void)heap;
	return sy__page_is_slab(head) && push(cache_in(head), own_of(cache_in(head), slot), head, object);
}

static const struct sy_quick entries_quick = {
	.cache_alloc = entry_alloc_quick,
	.kmalloc = entry_kmalloc_quick,
	.cache_free = entry_free_quick,
	.kfree = entry_kfree_quick,
};

#endif

#endif
