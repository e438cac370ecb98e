/*
 * yard: the fast paths of threads, as inline functions (this_slot.c says how they work). The policy's own entries and malloc
 * (malloc/fast.c) inline them. They serve objects whose link is at the start. Caches with the link behind the object, because of
 * constructors or of readers under RCU, use the entries of ../entries.h.
 */
#ifndef SY_YARD_FAST_H
#define SY_YARD_FAST_H

#include "../../this_slot.h"
#include "yard.h"

/* Where the fast paths continue out of line, inside the call, which these functions end: the slot has no free object; the size is 0 or
 * above SY__KMALLOC_SMALL; an owned slab has become empty; the object is in no slab that the slot owns with links at the start. */
void *sy__yard_malloc_refill(size_t size, struct sy_heap *, struct sy__yard_slot *own);
void *sy__yard_malloc_other(size_t size, struct sy_heap *);
void sy__yard_emptied_now(struct sy_page *, ptrdiff_t slot_offset);
SY__COLD void sy__yard_freed_again(void *object); /* two frees in a row */
void sy__yard_kfree_remote(void *object, struct sy_heap *, struct sy_page *, ptrdiff_t slot_offset);
SY__COLD void sy__yard_kfree_again(void *object, struct sy_page *);

/* In a call: takes the first object of the slot's freelist and ends the call. NULL: there is none, and the call stays open. */
#ifndef SY_HARDENED
static inline void *sy__yard_take_this_slot(struct sy__yard_slot *own)
{
	void *object;

	if (sy__unlikely(!own->freelist))
		return NULL;
	object = sy__yard_pop(own->cache, &own->freelist, 0);
	sy__call_note(object, own);
	sy__call_end();
	return object;
}
#else
/* The same from the ring, if that serves. A damaged object stays where it is; the slow path reports it. The object is not noted, because
 * each free looks at the object's slab. */
static inline void *sy__yard_take_this_slot(struct sy__yard_slot *own)
{
	void *object;

	if (sy__ring_serves(&own->ring)) {
		if (sy__unlikely(!sy__ring_take(&own->ring, 0, &object)))
			return NULL;
	} else {
		uint64_t holds;

		object = own->freelist;
		if (sy__unlikely(!object))
			return NULL;
		holds = sy__link_read(&own->cache->base.links, object, 0);
		if (!sy__link_is_right(holds))
			return NULL;
		own->freelist = sy__link_end(&own->cache->base.links, holds);
		__builtin_prefetch(own->freelist); /* whose link is read next */
		*sy__link_at(object, 0) = 0;
	}
	sy__call_end();
	return object;
}
#endif

/* In a call: frees the object that was handed out last, whose slab is the slot's active one, and ends the call. */
static inline void sy__yard_put_this_slot(void *object)
{
	struct sy__yard_slot *own = sy__call_from();

	if (sy__unlikely(own->freelist == object)) {
		sy__yard_freed_again(object);
		return;
	}
	sy__link_set(&own->cache->base, object, 0, own->freelist);
	own->freelist = object;
	sy__call_end();
}

/* Begins a call. Returns what the caller's slot has of the small size's class. */
static inline struct sy__yard_slot *sy__yard_small_slot(size_t size, struct sy_heap *heap)
{
	return sy__yard_slot_at(sy__yard_heap(heap)->small[(size - 1) / 8], sy__call_begin());
}

static inline void *sy__yard_malloc_small(size_t size, struct sy_heap *heap)
{
	struct sy__yard_slot *own = sy__yard_small_slot(size, heap);
	void *object = sy__yard_take_this_slot(own);

	return sy__likely(object) ? sy__result(object) : sy__yard_malloc_refill(size, heap, own);
}

/* In a call: frees an object that was not the last one handed out. It may be a large allocation, whose pages bear no slot's mark. A second
 * free of what its slab got last is reported here. */
static inline void sy__yard_kfree_other(void *object, struct sy_heap *heap)
{
	struct sy_page *page = sy__page_map_of(&sy__yard_heap(heap)->page_map, object);
	ptrdiff_t slot_offset = sy__call_slot_offset();

	if (sy__unlikely(sy__yard_owner(sy__node_slab(page)) != sy__yard_mark_at(slot_offset, 0)))
		sy__yard_kfree_remote(object, heap, page, slot_offset);
	else if (sy__unlikely(sy__yard_local(sy__node_slab(page))->freelist == object))
		sy__yard_kfree_again(object, page);
	else if (sy__unlikely(sy__yard_push_local(sy__yard_cache_of(page), page, object, 0)))
		sy__yard_emptied_now(page, slot_offset);
	else
		sy__call_end();
}

/* In a call: the same for any address. NULL, which many programs free often, is found as any address outside the heap is. */
static inline void sy__yard_free_other(void *object, struct sy_heap *heap)
{
	const struct sy__page_map *map = &sy__yard_heap(heap)->page_map;

	if (sy__likely(sy__page_map_index(map, object) < SY__READ_AT_ONCE(map->end))) {
		sy__yard_kfree_other(object, heap);
		return;
	}
	sy__call_end();
	if (object)
		sy__this_slot_free(object, heap);
}

/* Bytes that may be written to the object at any address; 0: it is in no slab. The slab's state does not change while the object is in
 * use. */
static inline size_t sy__yard_room_this_slot(const void *object, struct sy_heap *heap)
{
	const struct sy__page_map *map = &sy__yard_heap(heap)->page_map;
	size_t at = sy__page_map_index(map, object);
	struct sy_page *page;

	if (sy__unlikely(at >= SY__READ_AT_ONCE(map->end)))
		return 0;
	page = sy__page_map_at(map, at);
	return sy__likely(sy__page_is_slab(page)) ? sy__node_slab(page)->cache->object_size : 0;
}

/* Frees any address. The branch falls through for objects other than the last one handed out: a hot pair waits for its own stores anyway,
 * so a taken jump costs it nothing. */
static inline void sy__yard_free_this_slot(void *object, struct sy_heap *const *heap)
{
	if (sy__unlikely(sy__call_begin_with(object)))
		sy__yard_put_this_slot(object);
	else
		sy__yard_free_other(object, *heap);
}

#endif
