/*
 * yard: what the fast paths of threads are made of (this_slot.c says how they work), for whoever has them without a call between: the
 * policy's own entries, and malloc (malloc/fast.c). Objects have their links at the start: caches that have them behind, for the
 * sake of constructors or of readers under RCU, take the entries of ../entries.h.
 */
#ifndef SY_YARD_FAST_H
#define SY_YARD_FAST_H

#include "../../this_slot.h"
#include "yard.h"

/* What the fast paths go on to, in a call, which these end: without a free object in the slot; sizes above SY__KMALLOC_SMALL,
 * and 0; an owned slab that has no object in use any more; and what is in no slab of the slot's with links in front. */
void *sy__yard_malloc_refill(size_t size, struct sy_heap *, struct sy__yard_slot *own);
void *sy__yard_malloc_other(size_t size, struct sy_heap *);
void sy__yard_emptied_now(struct sy_page *, ptrdiff_t slot_offset);
SY__COLD void sy__yard_freed_again(void *object); /* by two frees in a row */
void sy__yard_kfree_remote(void *object, struct sy_heap *, struct sy_page *, ptrdiff_t slot_offset);
SY__COLD void sy__yard_kfree_again(void *object, struct sy_page *);

/* In a call: the first object of the slot's freelist, which ends it; or NULL. */
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
/* Of the ring, if that serves. What the program has damaged stays where it is, for those to tell that go on. Nothing is noted, as each
 * free looks at the object's slab. */
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

/* In a call, which ends: the object that was handed out last, which is of its slot's active slab. */
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

/* Begins a call: the caller's slot of a small size's class. */
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

/* In a call: of another object than the one that was handed out last, or of one that the fast path knows nothing of: the state
 * of a large allocation's pages has no mark of a slot. What was freed last into its slab, and is freed again, is told there. */
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

/* In a call: of any address. NULL, which many programs free often, is found out like whatever isn't the heap's. */
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

/* Of any address: bytes that may be written of an object in a slab, which nobody changes while it is in use; 0: it is in none. */
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

/* Of any address. It is frees of other objects than the one that was handed out last that have no jump to take: hot pairs wait
 * for what they stored themselves anyway. */
static inline void sy__yard_free_this_slot(void *object, struct sy_heap *const *heap)
{
	if (sy__unlikely(sy__call_begin_with(object)))
		sy__yard_put_this_slot(object);
	else
		sy__yard_free_other(object, *heap);
}

#endif
