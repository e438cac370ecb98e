/* The allocator under test: a heap of ours through the calls without a slot, or a malloc. See target.c. */
#ifndef THREADS_TARGET_H
#define THREADS_TARGET_H

#include <stdlib.h>

#include <slabyard/slabyard.h>

#include "programs/fault.h"

/* Objects of one kind: a cache of a heap. To a malloc it is a size and an alignment. */
struct kind {
	struct sy_cache *cache; /* NULL: a malloc */
	size_t size, align;     /* align 0: what malloc gives */
	size_t room;            /* size, as a multiple of align */
	void (*constructor)(void *object, size_t size);
};

struct target {
	struct sy_heap *heap; /* NULL: a malloc */
	void *(*alloc)(size_t size);
	void (*free)(void *object);
};

/* spec as `slabyard list` shows them. words: the program's own, to start it anew with. False: see fault. */
bool target_open(struct target *, const char *spec, char *const *words, struct fault *);

/* Makes a cache in a heap; a malloc keeps the figures. False: see fault. */
bool target_kind(const struct target *, struct kind *, const struct sy_cache_config *, struct fault *);

void target_close(struct target *);

/* Gives back what it can of memory that nothing lives in. */
void target_trim(const struct target *);

/* An object of a kind, or, where that is NULL, of `size` bytes. NULL: no memory. */
static inline void *target_take(const struct target *target, const struct kind *kind, size_t size)
{
	void *object;

	if (target->heap)
		return kind ? sy_alloc(kind->cache, 0) : sy_malloc(target->heap, size, 0);
	if (!kind)
		return target->alloc(size);
	object = kind->align ? aligned_alloc(kind->align, kind->room) : target->alloc(kind->size);
	if (kind->constructor && object)
		kind->constructor(object, kind->size);
	return object;
}

static inline void target_give(const struct target *target, const struct kind *kind, void *object)
{
	if (!target->heap)
		target->free(object);
	else if (kind)
		sy_free(kind->cache, object);
	else
		sy_mfree(target->heap, object);
}

#endif
