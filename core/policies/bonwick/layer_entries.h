/*
 * The part that both CPU layers (percpu.c, magazine.c) share of what entries.h asks for, and then the calls.
 *
 * A layer's file includes this once, when it has defined entry_own (the state of a slot) and pop and push on that. After it the
 * file defines
 *
 *   take(cache, slot)          an object by all means but a new slab; NULL: there is none
 *   put(cache, slot, object)   frees an object that push refused
 */
#ifndef SY_BONWICK_LAYER_ENTRIES_H
#define SY_BONWICK_LAYER_ENTRIES_H

#include "bonwick.h"

typedef struct sy__bonwick_cache entry_cache;

static void *take(struct sy__bonwick_cache *cache, unsigned slot);
static void put(struct sy__bonwick_cache *cache, unsigned slot, void *object);

static SY__COLD void *alloc_slow(struct sy__bonwick_cache *cache, unsigned slot, unsigned flags, int node)
{
	return sy__bonwick_alloc_slow(cache, slot, flags, node, sy__bonwick_is_shared(cache, slot) ? sy__bonwick_take_shared : take);
}

static SY__COLD void free_slow(struct sy__bonwick_cache *cache, unsigned slot, void *object)
{
	if (sy__bonwick_is_shared(cache, slot))
		sy__bonwick_put_shared(cache, object);
	else
		put(cache, slot, object);
}

static inline entry_own *own_of(const struct sy__bonwick_cache *cache, unsigned slot)
{
	return sy__bonwick_slot(cache, slot);
}

static inline entry_own *own_at(const struct sy__bonwick_cache *cache, ptrdiff_t slot_offset)
{
	return (entry_own *)(void *)((char *)cache->slots + slot_offset);
}

static inline bool suits(const entry_own *own, unsigned flags, int node)
{
	(void)own;
	(void)node;
	return sy__likely(!(flags & SY_THISNODE));
}

static inline bool push_this_slot(const struct sy__bonwick_cache *cache, entry_own *own, const struct sy_page *page, void *object)
{
	return push(cache, own, page, object);
}

#include "../entries.h"

#endif
