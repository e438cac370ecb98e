/*
 * General allocation on the calling thread's slot, by the size classes of core/kmalloc.h, and the table of all calls without slots:
 * a template. A policy's file includes this in place of size_entries.h; its struct sy_policy.this_slot is &entries_this_slot. It has
 * defined besides, as static inline functions:
 *
 *   is_start(cache, head, distance)       whether an object starts so far, below 2^32 bytes, from the start of the slab of this first page
 *   is_second(cache, own, object)         whether the slot would hand out this object right after the next one
 */
#ifndef SY_SIZE_ENTRIES_THIS_SLOT_H
#define SY_SIZE_ENTRIES_THIS_SLOT_H

#include "../bug.h"
#include "size_entries.h"

static inline bool take_of_class(struct sy_cache *cache, unsigned flags, void **object)
{
	if (sy__unlikely(!take_this_slot(entry_cache_of(cache), flags, object)))
		return false;
	*object = handed_out(entry_cache_of(cache), flags, *object);
	return true;
}

static inline bool take_small(struct sy_heap *heap, size_t size, unsigned flags, void **object)
{
	return sy__likely(sy__kmalloc_is_small(size, flags) && !(flags & SY_ZERO)) &&
	       take_this_slot(entry_cache_of(sy__kmalloc_small(entry_sizes(heap), size)), flags, object);
}

#include "kmalloc_this_slot.h"

static void entry_kfree_this_slot(void *object, struct sy_heap *heap)
{
	struct sy_page *page = sy__head_of(heap, object);

	if (sy__unlikely(!sy__page_is_slab(page)))
		sy__this_slot_large_free(object, heap, page);
	else if (sy__unlikely(!put_this_slot(cache_in(page), page, &object)))
		sy__this_slot_kfree(object, heap);
}

#ifndef SY_HARDENED

static SY__COLD void freed_before_last(struct sy_heap *heap, const void *object)
{
	sy__call_end();
	sy__bug(heap, SY_BUG_DOUBLE_FREE, object);
}

/* What free does, of any address: that an object starts there, and that the free before the last was not the same one, is seen here
 * and not in the calls of those who know more of an object than its address. */
static void entry_free_any_this_slot(void *object, struct sy_heap *heap)
{
	struct sy_page *page;
	entry_own *own;

	if (sy__unlikely(!sy__holds(heap, object))) {
		sy__this_slot_free(object, heap);
		return;
	}
	page = sy__head_of(heap, object);
	if (sy__unlikely(!sy__page_is_slab(page))) {
		sy__this_slot_large_free(object, heap, page);
		return;
	}
	if (sy__unlikely(!is_start(cache_in(page), page, sy__page_distance(heap, page, object)))) {
		sy__bug_free(heap, object);
		return;
	}
	own = own_at(cache_in(page), sy__call_begin());
	if (sy__unlikely(is_second(cache_in(page), own, object)))
		freed_before_last(heap, object);
	else if (sy__likely(push_this_slot(cache_in(page), own, page, object)))
		sy__call_end();
	else
		sy__this_slot_kfree(object, heap);
}

#else

/* Each free looks at the object. */
static void entry_free_any_this_slot(void *object, struct sy_heap *heap)
{
	if (sy__likely(sy__holds(heap, object)))
		entry_kfree_this_slot(object, heap);
	else
		sy__this_slot_free(object, heap);
}

#endif

static const struct sy_this_slot entries_this_slot = {
	.cache_alloc = entry_alloc_this_slot,
	.cache_free = entry_free_this_slot,
	.kmalloc = entry_kmalloc_this_slot,
	.malloc = entry_malloc_this_slot,
	.kfree = entry_kfree_this_slot,
	.free = entry_free_any_this_slot,
};

#endif
