/*
 * The calls for one object of a cache, from a policy's own pop and push: a template.
 *
 * A policy writes its fast path once, as pop and push on what a CPU slot has of a cache. Three kinds of calls use them: on a slot
 * that the caller names (struct sy_policy), on the calling thread's slot (struct sy_this_slot), and where an interrupt may come between
 * any two instructions (struct sy_quick). They differ in how they find the slot, in what protects it, and in what follows when pop
 * or push fails: the slow path, a jump to the generic entry with the call still open, or a result that says so. This file has all
 * of that.
 *
 * A policy's file includes this once, when it has defined, as static inline functions or other names of such:
 *
 *   entry_cache, entry_own                types: its cache, which begins with struct sy_cache; what a slot has of a cache
 *   own_of(cache, slot)                   what that slot has
 *   own_at(cache, slot_offset)            what the slot has that sy__call_begin returned; it may be the dummy's, or never used yet.
 *                                         May be NULL where pop and push take that for empty and full
 *   suits(own, flags, node)               whether objects of that slot suit the request
 *   pop(cache, own, &object)              takes an object; false: there is none
 *   push(cache, own, page, object)        takes an object back; false: no room, or it belongs elsewhere. page: the object's page,
 *                                         or the first one of its block
 *   push_this_slot(cache, own, page, object)   push for the calling thread: a policy may have it fail now and then, so that slow calls,
 *                                         which look at the clock, never cease
 *   alloc_slow(cache, slot, flags, node)  out of line: serves the request by all other means
 *   free_slow(cache, slot, object)        the same for a free
 *
 * In a policy that can be hardened, what a slot has holds its ring, for the build with SY_HARDENED.
 *
 * pop and push change nothing when they fail. In a policy with quick calls they touch no more than struct sy_quick permits.
 *
 * size_entries.h adds general allocation by size classes.
 */
#ifndef SY_ENTRIES_H
#define SY_ENTRIES_H

#include "../bug.h"
#include "../this_slot.h"
#include "../page_interface.h"

static inline entry_cache *entry_cache_of(struct sy_cache *cache)
{
	return (entry_cache *)(void *)cache;
}

/* Clears an allocated object if the request asks for that. */
static inline void *handed_out(entry_cache *cache, unsigned flags, void *object)
{
	return sy__unlikely(flags & SY_ZERO) ? sy__zeroed((const struct sy_cache *)(const void *)cache, object) : object;
}

/* A node that the heap does not have is as any other. False: the request takes no other, and fails. */
static inline bool node_will_do(const struct sy_heap *heap, unsigned flags, int *node)
{
	if (*node == SY_ANY_NODE || (*node >= 0 && (unsigned)*node < heap->nodes))
		return true;
	*node = SY_ANY_NODE;
	return !(flags & SY_THISNODE);
}

#ifdef SY_HARDENED
/* What is admitted may leave another object to be freed now; false: none (links.h). */
static inline bool admit(entry_cache *cache, entry_own *own, const struct sy_page **page, void **object)
{
	if (sy__unlikely(!sy__holds(cache->base.cache.heap, *object))) {
		sy__bug_free(cache->base.cache.heap, *object);
		return false;
	}
	sy__ring_begin(&cache->base, &own->ring);
	*object = sy__node_admit(&cache->base, &own->ring, sy__page_head((struct sy_page *)(uintptr_t)*page), *object);
	if (*object)
		*page = sy__page_of(cache->base.cache.heap, *object);
	return *object;
}
#endif

/* ---- On a slot that the caller names -------------------------------------------------------------------------- */

static inline void *take_on(entry_cache *cache, unsigned slot, unsigned flags, int node)
{
	entry_own *own;
	void *object;
	bool done;

	sy__local_begin(slot);
	own = own_of(cache, slot);
	done = suits(own, flags, node) && pop(cache, own, &object);
	sy__local_end(slot);
	if (sy__unlikely(!done))
		return alloc_slow(cache, slot, flags, node);
	return handed_out(cache, flags, object);
}

static inline void put_on(entry_cache *cache, unsigned slot, const struct sy_page *page, void *object)
{
	bool done;

	sy__local_begin(slot);
#ifdef SY_HARDENED
	if (!admit(cache, own_of(cache, slot), &page, &object)) {
		sy__local_end(slot);
		return;
	}
#endif
	done = push(cache, own_of(cache, slot), page, object);
	sy__local_end(slot);
	if (sy__unlikely(!done))
		free_slow(cache, slot, object);
}

static inline void *entry_alloc(struct sy_cache *cache, unsigned slot, unsigned flags, int node)
{
	return take_on(entry_cache_of(cache), slot, flags, node);
}

static inline void entry_free(struct sy_cache *cache, unsigned slot, void *object)
{
	put_on(entry_cache_of(cache), slot, sy__page_of(cache->heap, object), object);
}

/* ---- On the calling thread's slot ----------------------------------------------------------------------------- */

/* False: the slot has no object, and the call stays open. */
static inline bool take_this_slot(entry_cache *cache, unsigned flags, void **object)
{
	entry_own *own = own_at(cache, sy__call_begin());

	if (sy__unlikely(!suits(own, flags, SY_ANY_NODE) || !pop(cache, own, object)))
		return false;
	sy__call_end();
	return true;
}

/* False: the slot has no room for *object, and the call stays open. */
static inline bool put_this_slot(entry_cache *cache, const struct sy_page *page, void **object)
{
	entry_own *own = own_at(cache, sy__call_begin());

#ifdef SY_HARDENED
	if (sy__unlikely(!own->ring.cache)) /* as the dummy's */
		return false;
	if (!admit(cache, own, &page, object)) {
		sy__call_end();
		return true;
	}
#endif
	if (sy__unlikely(!push_this_slot(cache, own, page, *object))) {
#ifdef SY_HARDENED
		*sy__link_at(*object, cache->base.offset) = 0; /* it is admitted again */
#endif
		return false;
	}
	sy__call_end();
	return true;
}

static inline void *entry_alloc_this_slot(struct sy_cache *cache, unsigned flags)
{
	void *object;

	if (sy__unlikely(!take_this_slot(entry_cache_of(cache), flags, &object)))
		return sy__this_slot_cache_alloc(cache, flags);
	return handed_out(entry_cache_of(cache), flags, object);
}

static inline void entry_free_this_slot(struct sy_cache *cache, void *object)
{
	if (sy__unlikely(!put_this_slot(entry_cache_of(cache), sy__page_of(cache->heap, object), &object)))
		sy__this_slot_cache_free(cache, object);
}

#ifndef SY_HARDENED

/* ---- Quick calls: interrupted at any point -------------------------------------------------------------------- */

static inline void *entry_alloc_quick(struct sy_cache *cache, unsigned slot)
{
	void *object;

	return sy__likely(pop(entry_cache_of(cache), own_of(entry_cache_of(cache), slot), &object)) ? object : NULL;
}

static inline bool entry_free_quick(struct sy_cache *cache, unsigned slot, void *object)
{
	return push(entry_cache_of(cache), own_of(entry_cache_of(cache), slot), sy__page_of(cache->heap, object), object);
}

#endif

#endif
