/*
 * yard: the fast paths of threads, on the caller's own slot (core/this_slot.h).
 *
 * They write only the slot's own line, the object and the thread's own words. The thread notes which object was handed out last, and from
 * which slot (sy__call_note), so a free of that object looks up neither slab nor cache. For any other object one look at the page map
 * (core/backend/page_map.h) finds the slab and its owner. One call in hundreds needs the node or the page allocator, and is a slow call.
 *
 * Instructions of hot calls (docs/cost.md): kmem_cache_alloc 16, kmem_cache_free 13, kmalloc 23, kfree 16.
 *
 * The dummy slot (struct sy_this_slot in policy.h) has no free object, no slab, and no room for remote objects. No slab bears its mark. So
 * every call on it is a slow one, and nothing is ever written to it.
 */
#include "../../bug.h"
#include "fast.h"

/* ---- Allocating ------------------------------------------------------------------------------------------------------- */

/* The object that was last on a freelist when it was filled must be handed out last. If another one is, the program has freed an object
 * twice, onto two lists, or has overwritten a link. This reports it, so that no object is handed out twice unnoticed. */
static SY__COLD void freelist_ended_early(const struct sy__yard_cache *cache, const void *object)
{
	struct sy_page *page = sy__node_head(&cache->base, object);
	uint32_t most = sy__node_objects(page);
	bool is_free = sy__node_is_among(&cache->base, page, sy__yard_local(sy__node_slab(page))->freelist, most, object) ||
	               sy__node_is_among(&cache->base, page, sy__node_freelist(&cache->base, page), most, object);

	sy__bug(cache->base.cache.heap, is_free ? SY_BUG_DOUBLE_FREE : SY_BUG_WRITE_AFTER_FREE, object);
}

static inline void check_bottom(const struct sy__yard_cache *cache, struct sy__yard_slot *own)
{
	const void *noted = sy__call_noted(own);

	if (sy__unlikely(own->bottom && noted && own->bottom != (uint32_t)(uintptr_t)noted))
		freelist_ended_early(cache, noted);
	own->bottom = 0;
}

/* Takes an object from all that the slot has, and ends the call; or NULL: a slow call must follow. A remote object is not noted, because
 * the slot does not keep its slab. If it were noted, another thread could free it, the slab could end, and a new object of another cache at
 * that address would be freed into this slot. */
static inline void *refilled(struct sy__yard_slot *own)
{
	struct sy__yard_cache *cache = own->cache;
	const void *noted = SY__NOTHING;
	void *object;

	if (sy__unlikely(!cache || sy__tick_is_due()))
		return NULL;
	check_bottom(cache, own);
#ifdef SY_HARDENED
	if (sy__ring_serves(&own->ring)) /* not on the fast path: the next object is damaged */
		object = sy__ring_pop(&own->ring);
	else
#endif
	if (sy__yard_remote_serves(cache, own))
		object = sy__yard_pop(cache, &own->remote, cache->base.offset);
	else
		noted = object = sy__yard_refill(cache, 0, own, SY_ANY_NODE);
	if (sy__unlikely(!object))
		return NULL;
	sy__call_note(noted, own);
	sy__call_end();
	return object;
}

/* For any cache, with links at any offset; as the next function. */
static bool take_of_class(struct sy_cache *cache, unsigned flags, void **object)
{
	struct sy__yard_slot *own = sy__yard_slot_at(sy__node_cache(cache)->slots, sy__call_begin());

	if (sy__unlikely(!(*object = sy__yard_take_this_slot(own))) && !(*object = refilled(own)))
		return false;
	if (sy__unlikely(flags & SY_ZERO))
		sy__zeroed(cache, *object);
	return true;
}

static SY__OUT_OF_LINE void *alloc_other_this_slot(struct sy_cache *cache, unsigned flags)
{
	void *object;

	return sy__likely(take_of_class(cache, flags, &object)) ? object : sy__this_slot_cache_alloc(cache, flags);
}

static void *alloc_this_slot(struct sy_cache *cache, unsigned flags)
{
	void *object = NULL;

	if (sy__likely(!(flags & SY_ZERO)))
		object = sy__yard_take_this_slot(sy__yard_slot_at(sy__node_cache(cache)->slots, sy__call_begin()));
	return sy__likely(object) ? sy__result(object) : alloc_other_this_slot(cache, flags);
}

static inline bool take_small(struct sy_heap *heap, size_t size, unsigned flags, void **object)
{
	if (sy__unlikely(size - 1 >= SY__KMALLOC_SMALL || flags & (SY_ZERO | SY__KMALLOC_TYPE_FLAGS)))
		return false;
	*object = sy__yard_take_this_slot(sy__yard_small_slot(size, heap));
	return sy__likely(*object);
}

#define entry_sizes sy__yard_sizes
#include "../kmalloc_this_slot.h"

SY__OUT_OF_LINE void *sy__yard_malloc_refill(size_t size, struct sy_heap *heap, struct sy__yard_slot *own)
{
	void *object = refilled(own);

	return sy__likely(object) ? object : sy__this_slot_malloc(size, heap);
}

SY__OUT_OF_LINE void *sy__yard_malloc_other(size_t size, struct sy_heap *heap)
{
	const struct sy__kmalloc *kmalloc = &sy__yard_heap(heap)->kmalloc;
	struct sy__yard_slot *own;
	void *object;

	if (sy__unlikely(size - 1 >= kmalloc->largest))
		return sy__this_slot_large_alloc(size, 0, heap);
	own = sy__yard_slot_at(sy__node_cache(kmalloc->classes[kmalloc->medium_class[sy__kmalloc_step(size)]])->slots, sy__call_begin());
	object = sy__yard_take_this_slot(own);
	return sy__likely(object) ? object : sy__yard_malloc_refill(size, heap, own);
}

/* ---- Freeing ------------------------------------------------------------------------------------------------------------ */

/* A free that needs the node, or sends remote objects home. */
static SY__OUT_OF_LINE void free_slow_this_slot(struct sy__yard_cache *cache, void *object)
{
	unsigned slot;

	if (sy__unlikely(!sy__call_enter(&slot)))
		return;
	sy__yard_free_slow(cache, slot, object);
	sy__this_slot_leave(cache->base.cache.heap);
}

/* Ends a call in which the slot may have got one empty slab too many. */
static void end_with_empties(struct sy__yard_cache *cache, const struct sy__yard_slot *own)
{
	unsigned slot;

	if (sy__likely(own->empty_slabs <= sy__yard_most_empty(cache, own) && !sy__wakes_background(cache->base.cache.heap))) {
		sy__call_end();
		return;
	}
	if (sy__unlikely(!sy__call_enter(&slot)))
		return;
	sy__yard_give_empties(cache, slot, sy__yard_most_empty(cache, sy__yard_slot(cache, slot)));
	sy__this_slot_leave(cache->base.cache.heap);
}

/* An owned slab has become empty. Ends the call. */
SY__OUT_OF_LINE void sy__yard_emptied_now(struct sy_page *page, ptrdiff_t slot_offset)
{
	struct sy__yard_cache *cache = sy__yard_cache_of(page);
	struct sy__yard_slot *own = sy__yard_own_at(cache, slot_offset);

	sy__yard_emptied(cache, own, page);
	end_with_empties(cache, own);
}

/* Frees an object of a full slab that this slot has filled, and ends the call. */
static SY__OUT_OF_LINE void put_own_this_slot(struct sy__yard_cache *cache, struct sy__yard_slot *own, struct sy_page *page, void *object)
{
	if (sy__likely(sy__yard_put_own(cache, own, page, object, object, 1)))
		end_with_empties(cache, own);
	else
		free_slow_this_slot(cache, object);
}

/* In a call: of an object that is already first on its slab's local list. */
SY__COLD void sy__yard_kfree_again(void *object, struct sy_page *page)
{
	free_slow_this_slot(sy__yard_cache_of(page), object);
}

/* Frees an object that is in no slab of the slot's with links at the start of objects. */
SY__OUT_OF_LINE void sy__yard_kfree_remote(void *object, struct sy_heap *heap, struct sy_page *page, ptrdiff_t slot_offset)
{
	struct sy__yard_cache *cache;
	struct sy__yard_slot *own;

	if (sy__unlikely(!sy__page_is_slab(page) || sy__yard_cache_of(page)->base.offset)) {
		sy__this_slot_large_free(object, heap, page);
		return;
	}
	cache = sy__yard_cache_of(page);
	own = sy__yard_own_at(cache, slot_offset);
	if (sy__yard_owner(sy__node_slab(page)) == (sy__yard_mark_at(slot_offset, 0) | SY__YARD_FULL))
		put_own_this_slot(cache, own, page, object);
	else if (sy__likely(sy__yard_push_remote(cache, own, object, 0)))
		sy__call_end();
	else
		free_slow_this_slot(cache, object);
}

#ifndef SY_HARDENED

SY__COLD void sy__yard_freed_again(void *object)
{
	const struct sy__yard_slot *own = sy__call_from();
	struct sy_heap *heap = own->cache->base.cache.heap;

	sy__call_end();
	sy__bug(heap, SY_BUG_DOUBLE_FREE, object);
}

static void kfree_this_slot(void *object, struct sy_heap *heap)
{
	if (sy__unlikely(!sy__call_begin_with(object)))
		sy__yard_free_other(object, heap);
	else
		sy__yard_put_this_slot(object);
}

/* Out of line, where the heap is looked up. */
static SY__OUT_OF_LINE void free_other_this_slot(struct sy_cache *cache, void *object)
{
	sy__yard_free_other(object, cache->heap);
}

static void free_this_slot(struct sy_cache *cache, void *object)
{
	if (sy__unlikely(!sy__call_begin_with(object)))
		free_other_this_slot(cache, object);
	else
		sy__yard_put_this_slot(object);
}

static void free_any_this_slot(void *object, struct sy_heap *heap)
{
	sy__yard_free_this_slot(object, &heap);
}

#else

/* Each free looks at the object, and clears it; then the slot's ring keeps it (../links.h). */

#define MOST_CLEARED 512u /* bytes, without a call */

/* Frees an object from the ring into its slab, or onto the remote list. The call stays open. False: a slow call must follow. */
static bool hand_back(struct sy__yard_cache *cache, struct sy__yard_slot *own, void *object)
{
	struct sy_page *page = sy__page_map_of(&sy__yard_heap(cache->base.cache.heap)->page_map, object);
	uint32_t owner = sy__yard_owner(sy__node_slab(page)) & ~SY__YARD_FULL;

	return (owner == sy__yard_mark(cache, own) && sy__yard_put_own(cache, own, page, object, object, 1)) ||
	       sy__yard_push_remote(cache, own, object, cache->base.offset);
}

/* Frees the ring's `count` oldest objects, up to one that is not marked, or whose slab is not the slot's or becomes empty. */
static inline void let_go_quickly(const struct sy__yard_cache *cache, struct sy__yard_slot *own, uint32_t count)
{
	const struct sy__page_map *map = &sy__yard_heap(cache->base.cache.heap)->page_map;
	const struct sy__links links = cache->base.links; /* in registers */
	const uint32_t mark = sy__yard_mark(cache, own), oldest = own->ring.oldest;
	uint32_t i;

	for (i = 0; i < count; i++) {
		void *object = own->ring.objects[(oldest + i) % SY__RING];
		uint64_t key = sy__link_key(&links, object), *link = sy__link_at(object, cache->base.offset);
		struct sy__node_slab *slab = sy__node_slab(sy__page_map_of(map, object));

		if (sy__unlikely(*link != sy__link_mark(&links, key) || sy__yard_owner(slab) != mark ||
		                 slab->local_objects + 1u == sy__yard_in_use_now(slab)))
			break;
		*link = sy__link_to(&links, key, sy__yard_local(slab)->freelist);
		sy__yard_local(slab)->freelist = object;
		slab->local_objects++;
	}
	sy__ring_left(&own->ring, i);
}

/* Frees the older half of a full ring, and ends the call. If a slow call has to end it, the rest stays in the ring. */
static SY__OUT_OF_LINE void let_go(struct sy__yard_cache *cache, struct sy__yard_slot *own)
{
	uint32_t half = (cache->base.kept + 1u) / 2;

	for (;;) {
		void *object;

		let_go_quickly(cache, own, half - own->ring.room);
		if (own->ring.room == half)
			break;
		object = sy__ring_pop(&own->ring);
		if (object && sy__unlikely(!hand_back(cache, own, object))) {
			free_slow_this_slot(cache, object);
			return;
		}
	}
	end_with_empties(cache, own);
}

/* In a call, which ends: what is right, and has much to be cleared, or fills the ring. Its slot may be new to the cache, or none. */
static SY__OUT_OF_LINE void free_more(struct sy__yard_cache *cache, struct sy__yard_slot *own, void *object)
{
	if (sy__unlikely(!own->ring.room)) {
		sy__this_slot_kfree(object, cache->base.cache.heap);
		return;
	}
	sy__fill(object, 0, cache->base.cleared);
	if (sy__ring_put(&cache->base, &own->ring, object, 0, sy__link_key(&cache->base.links, object)))
		let_go(cache, own);
	else
		sy__call_end();
}

/* Clears an object of a few words inline, as a call would have to save registers. The fence keeps compilers from making it a call. */
static inline void clear(void *object, uint32_t bytes)
{
	typedef uint64_t pair __attribute__((vector_size(16), aligned(8), may_alias));
	char *at = object, *end = at + bytes;

	if (bytes % sizeof(pair)) {
		*sy__link_at(at, 0) = 0;
		at += sizeof(uint64_t);
	}
	for (; at < end; at += sizeof(pair)) {
		*(pair *)(void *)at = (pair){ 0, 0 };
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
	}
}

static void free_any_this_slot(void *object, struct sy_heap *heap)
{
	const struct sy__page_map *map = &sy__yard_heap(heap)->page_map;
	size_t at = sy__page_map_index(map, object);
	const struct sy__yard_cache *cache;
	struct sy__yard_slot *own;
	ptrdiff_t slot_offset;
	struct sy_page *page;
	uint64_t key;

	if (sy__unlikely(at >= SY__READ_AT_ONCE(map->end))) {
		sy__this_slot_free(object, heap);
		return;
	}
	slot_offset = sy__call_begin();
	page = sy__page_map_at(map, at);
	if (sy__unlikely(!sy__page_is_slab(page))) {
		sy__this_slot_large_free(object, heap, page);
		return;
	}
	cache = sy__yard_cache_of(page);
	own = sy__yard_own_at(cache, slot_offset);
	key = sy__link_key(&cache->base.links, object);
	if (sy__unlikely(!sy__node_is_place(&cache->base, page, object) || cache->base.offset ||
	                 sy__node_looks_free(&cache->base, object, 0, key))) {
		sy__this_slot_kfree(object, heap);
		return;
	}
	if (sy__unlikely(own->ring.room <= 1 || cache->base.cleared > MOST_CLEARED)) {
		free_more(sy__yard_cache_of(page), own, object);
		return;
	}
	if (cache->base.cleared)
		clear(object, cache->base.cleared);
	sy__ring_put(&cache->base, &own->ring, object, 0, key);
	sy__call_end();
}

#define free_this_slot entry_free_this_slot
#define kfree_this_slot free_any_this_slot

#endif

/* ---- Entries ---------------------------------------------------------------------------------------------------------- */

const struct sy_this_slot sy__yard_this_slot = {
	.cache_alloc = alloc_this_slot,
	.cache_free = free_this_slot,
	.kmalloc = entry_kmalloc_this_slot,
	.malloc = entry_malloc_this_slot,
	.kfree = kfree_this_slot,
	.free = free_any_this_slot,
};
