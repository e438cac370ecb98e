/*
 * What entries.h asks for beside pop and push, where it is the same for both CPU layers (percpu.c, magazine.c), and then the calls.
 *
 * A layer's file includes this once, when it has defined entry_own, what a slot has, and pop and push on it. It defines alloc_slow
 * and free_slow behind it.
 */
#ifndef SY_BONWICK_LAYER_ENTRIES_H
#define SY_BONWICK_LAYER_ENTRIES_H

#include "bonwick.h"

typedef struct sy__bonwick_cache entry_cache;

static SY__COLD void *alloc_slow(struct sy__bonwick_cache *cache, unsigned slot, unsigned flags, int node);
static SY__COLD void free_slow(struct sy__bonwick_cache *cache, unsigned slot, void *object);

static inline void *zeroed(const struct sy__bonwick_cache *cache, void *object)
{
	return sy__bonwick_zeroed(cache, object);
}

static inline entry_own *own_of(const struct sy__bonwick_cache *cache, unsigned slot)
{
	return sy__bonwick_slot(cache, slot);
}

static inline entry_own *own_here(const struct sy__bonwick_cache *cache, ptrdiff_t here)
{
	return (entry_own *)(void *)((char *)cache->slots + here);
}

static inline bool suits(const entry_own *own, unsigned flags, int node)
{
	(void)own;
	(void)node;
	return sy__likely(!(flags & SY_THISNODE));
}

static inline bool push_here(const struct sy__bonwick_cache *cache, entry_own *own, const struct sy_page *page, void *object)
{
	return push(cache, own, page, object);
}

#include "../entries.h"

#endif
