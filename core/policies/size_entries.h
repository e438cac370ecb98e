/*
 * General allocation by the size classes of core/kmalloc.h, in the three ways of entries.h, and the tables of all such calls.
 *
 * A policy's file includes this behind what entries.h asks for, and besides that:
 *
 *   entry_sizes(heap)     the heap's struct sy__kmalloc
 *   cache_in(page)        the cache whose slab begins with this page
 *
 * and may define as macros
 *
 *   entry_large_alloc     in place of sy__large_alloc
 *   ENTRIES_OWN_HERE      it has calls on the calling thread's slot of its own
 *
 * The policy's functions are then entry_alloc, entry_free, entry_kmalloc and entry_kfree; here = &entries_here, quick =
 * &entries_quick.
 */
#ifndef SY_SIZE_ENTRIES_H
#define SY_SIZE_ENTRIES_H

#include "../kmalloc.h"
#include "entries.h"

#ifndef entry_large_alloc
#define entry_large_alloc sy__large_alloc
#endif

/* ---- On a slot that the caller names -------------------------------------------------------------------------- */

static SY__OUT_OF_LINE void *kmalloc_seldom(struct sy_heap *heap, unsigned slot, size_t size, unsigned flags, int node)
{
	struct sy_cache *cache = sy__kmalloc_cache(entry_sizes(heap), size, flags);

	return cache ? take_on(entry_cache_of(cache), slot, flags, node) : entry_large_alloc(heap, slot, size, flags, node);
}

static void *entry_kmalloc(struct sy_heap *heap, unsigned slot, size_t size, unsigned flags, int node)
{
	if (sy__unlikely(!sy__kmalloc_is_small(size, flags)))
		return kmalloc_seldom(heap, slot, size, flags, node);
	return take_on(entry_cache_of(sy__kmalloc_small(entry_sizes(heap), size)), slot, flags, node);
}

static void entry_kfree(struct sy_heap *heap, unsigned slot, void *object)
{
	struct sy_page *page = sy__head_of(heap, object);

	if (sy__unlikely(sy__page_is_large(page)))
		sy__large_free(heap, slot, page);
	else
		put_on(cache_in(page), slot, page, object);
}

#ifndef ENTRIES_OWN_HERE

/* ---- On the calling thread's slot ----------------------------------------------------------------------------- */

static SY__OUT_OF_LINE void *kmalloc_seldom_here(size_t size, unsigned flags, struct sy_heap *heap)
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
		return kmalloc_seldom_here(size, flags, heap);
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

/* ---- Interrupted at will -------------------------------------------------------------------------------------- */

static void *entry_kmalloc_quick(struct sy_heap *heap, unsigned slot, size_t size, unsigned flags)
{
	struct sy_cache *cache = sy__kmalloc_quick(entry_sizes(heap), size, flags);
	void *object = cache ? entry_alloc_quick(cache, slot) : NULL;

	return sy__unlikely(flags & SY_ZERO) && object ? zeroed(entry_cache_of(cache), object) : object;
}

static bool entry_kfree_quick(struct sy_heap *heap, unsigned slot, struct sy_page *head, void *object)
{
	(void)heap;
	return !sy__page_is_large(head) && push(cache_in(head), own_of(cache_in(head), slot), head, object);
}

static const struct sy_quick entries_quick = {
	.cache_alloc = entry_alloc_quick,
	.kmalloc = entry_kmalloc_quick,
	.cache_free = entry_free_quick,
	.kfree = entry_kfree_quick,
};

#endif
