/*
 * The calls of the allocators on general.c (bsd44, svr4, sunos4), from a policy's own pop and push: a template.
 *
 * Every call takes the heap's lock, so these policies have no per-slot state. pop and push are inlined into the calls, as the
 * lock and they are all that a call costs. What they cannot serve, general.c does out of line.
 *
 * A policy's file includes this once, when it has defined, as static inline functions:
 *
 *   pop(general, node, want)           takes a block from what the node has; NULL: it has none
 *   push(general, slot, block, bytes)  takes a block back
 *   block_bytes(general, block)        bytes of a block in use. All three run with the heap's lock held
 *   page_in(heap, object)              first page of the block of pages that holds an object
 *   in_use(general, page, address)     whether a block in use starts at any address in that block of pages, as far as that is easy to
 *                                      tell. If none does the program is told. With the lock held
 *
 * It gets the functions of struct sy_policy entry_alloc, entry_free and entry_kfree, and for kmalloc general_take. A policy whose
 * pop and push neither take pages nor give any can also serve fast calls without slots, by take_this_slot and put_this_slot.
 */
#ifndef SY_GENERAL_ENTRIES_H
#define SY_GENERAL_ENTRIES_H

#include "../this_slot.h"
#include "general.h"

/* ---- On a slot that the caller names -------------------------------------------------------------------------- */

static inline void *general_take(struct sy__general_heap *general, unsigned slot, const struct sy__general_want *want, unsigned flags,
                                 int node, uint64_t *live)
{
	void *block;

	sy__lock(&general->lock);
	block = pop(general, sy__general_node(general, slot, node), want);
	*live += block != NULL;
	sy__unlock(&general->lock);
	if (sy__unlikely(!block))
		block = sy__general_refill(general, slot, want, flags, node, live);
	if (sy__unlikely(flags & SY_ZERO) && block)
		sy__fill(block, 0, want->bytes);
	return block;
}

static void entry_kfree(struct sy_heap *heap, unsigned slot, void *object)
{
	struct sy__general_heap *general = sy__general_of(heap);
	struct sy_page *page = page_in(heap, object);

	if (sy__unlikely(!sy__page_is_slab(page))) {
		sy__general_pages_free(general, slot, page, object, NULL);
		return;
	}
	sy__lock(&general->lock);
	if (sy__likely(in_use(general, page, object))) {
		general->live--;
		push(general, slot, object, block_bytes(general, object));
	}
	sy__unlock(&general->lock);
}

static void *entry_alloc(struct sy_cache *cache, unsigned slot, unsigned flags, int node)
{
	struct sy__general_cache *own = sy__general_cache_of(cache);
	struct sy__general_heap *general = sy__general_of(cache->heap);
	void *object;

	if (sy__likely(own->want.bytes))
		object = general_take(general, slot, &own->want, flags, node, &own->live);
	else
		object = sy__general_pages(general, slot, cache->size, flags, node, &own->live);
	if (cache->constructor && object)
		sy__construct(cache->constructor, object, cache->object_size);
	return object;
}

static void entry_free(struct sy_cache *cache, unsigned slot, void *object)
{
	struct sy__general_cache *own = sy__general_cache_of(cache);
	struct sy__general_heap *general = sy__general_of(cache->heap);

	if (sy__unlikely(cache->flags & SY_CACHE_TYPESAFE_BY_RCU)) {
		sy__general_defer(cache, object);
		return;
	}
	if (cache->destructor)
		cache->destructor(object, cache->object_size);
	if (sy__unlikely(!own->want.bytes)) {
		sy__general_pages_free(general, slot, sy__page_of(&general->heap, object), object, &own->live);
		return;
	}
	sy__lock(&general->lock);
	if (sy__likely(in_use(general, page_in(&general->heap, object), object))) {
		own->live--;
		push(general, slot, object, own->want.bytes);
	}
	sy__unlock(&general->lock);
}

/* ---- On the calling thread's slot ----------------------------------------------------------------------------- */

/* NULL: a slow call must follow. */
static inline void *take_this_slot(struct sy__general_heap *general, const struct sy__general_want *want, unsigned flags, uint64_t *live)
{
	ptrdiff_t slot_offset = sy__call_begin_locked(&general->lock);
	void *block;

	if (sy__unlikely(slot_offset == SY__DUMMY_OFFSET))
		return NULL;
	block = pop(general, sy__slot_node(&general->heap, sy__slot_of_offset(slot_offset)), want);
	if (sy__unlikely(!block)) {
		sy__unlock(&general->lock);
		return NULL;
	}
	++*live;
	sy__call_end_locked(&general->lock);
	if (sy__unlikely(flags & SY_ZERO))
		sy__fill(block, 0, want->bytes);
	return block;
}

/* False: a slow call must follow; as for a block that is_again says is free, which that call tells. */
static inline bool put_this_slot(struct sy__general_heap *general, void *block, size_t bytes, uint64_t *live,
                                 bool (*is_again)(struct sy__general_heap *, const void *block))
{
	ptrdiff_t slot_offset = sy__call_begin_locked(&general->lock);

	if (sy__unlikely(slot_offset == SY__DUMMY_OFFSET))
		return false;
	if (sy__unlikely(is_again(general, block))) {
		sy__unlock(&general->lock);
		return false;
	}
	--*live;
	push(general, sy__slot_of_offset(slot_offset), block, bytes);
	sy__call_end_locked(&general->lock);
	return true;
}

#endif
