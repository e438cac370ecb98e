/*
 * What the files of the layer share. See debug.h for what it does, layer.c for where it is put over a policy.
 */
#ifndef SY_DEBUG_LAYER_H
#define SY_DEBUG_LAYER_H

#include "debug.h"

#include "../geometry.h"

/* What the layer knows of a cache, behind the policy's own structure. */
struct sy__own {
	uint32_t checks;
	uint32_t front, size, room; /* bytes: before the object, of it, of all that the policy below gives */
	void (*constructor)(void *object, size_t size);
	void (*destructor)(void *object, size_t size);
};

/* Who calls, found out without the lock. */
struct sy__debug_caller {
	uint64_t time, thread;
	unsigned depth;
	uintptr_t frames[SY__DEBUG_FRAMES];
};

static inline size_t sy__own_offset(const struct sy_policy *below)
{
	return sy__align_up(below->cache_bytes, _Alignof(struct sy__own));
}

static inline struct sy__own *sy__own_of(const struct sy_cache *cache)
{
	return (struct sy__own *)(void *)((char *)(uintptr_t)cache + sy__own_offset(cache->heap->debug->below));
}

/* ---- Where the parts of an object are ----------------------------------------------------------------------------- */

static inline char *sy__front(const struct sy__record *record)
{
	return record->base + (record->guarded ? SY_PAGE_SIZE : 0);
}

static inline size_t sy__state_bytes(const struct sy__record *record)
{
	return record->checks & SY_DEBUG_STATE ? record->size : 0;
}

/* The end of the zone behind the object, where the copy of its constructed state begins. */
static inline char *sy__back_end(const struct sy__record *record)
{
	return record->base + record->room - (record->guarded ? SY_PAGE_SIZE : 0) - sy__state_bytes(record);
}

/* ---- verify.c: what is found. True: the finding is filled in; the lock is held, or nobody else has the object ------- */

bool sy__found(struct sy__finding *, enum sy_bug, const struct sy__record *, const char *address);
bool sy__zone_is_written(struct sy__finding *, const struct sy__record *);
bool sy__state_is_changed(struct sy__finding *, const struct sy__record *);
bool sy__is_written_after_free(struct sy__finding *, const struct sy__record *);

/* The record whose memory an address is in; of those that are gone, too. NULL: none. */
struct sy__record *sy__record_of(const struct sy__debug *, const void *address);

/* The record of an object that may be freed by this cache (NULL: general allocation) and interface. NULL: it may not, and the finding is
 * filled in. */
struct sy__record *sy__record_to_free(struct sy__finding *, const struct sy__debug *, const char *object, const struct sy_cache *,
                                      unsigned by);

/* ---- objects.c: the policy's functions for objects ------------------------------------------------------------------ */

/* Around the lock, for callers that may be outside of calls: a fork waits for calls, and so never finds the lock taken. */
bool sy__debug_enter(struct sy_heap *, unsigned *slot);
void sy__debug_leave(bool entered);

void *sy__debug_cache_alloc(struct sy_cache *, unsigned slot, unsigned flags, int node);
void sy__debug_cache_free(struct sy_cache *, unsigned slot, void *object);
void *sy__debug_kmalloc(struct sy_heap *, unsigned slot, size_t size, unsigned flags, int node);
void sy__debug_kfree(struct sy_heap *, unsigned slot, void *object);

/* ---- layer.c -------------------------------------------------------------------------------------------------------- */

/* Makes the layer's table of functions, over those of a policy. */
void sy__debug_over(struct sy__debug *, const struct sy_policy *below);

/* The checks of an object of general allocation; 0: none. */
uint32_t sy__debug_checks_of_size(const struct sy__debug *, size_t size);

#endif
