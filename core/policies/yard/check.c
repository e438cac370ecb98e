/*
 * yard: counting, and verifying its invariants, as far as ../node.c does not know of them: what slots have.
 */
#include "../../this_slot.h"
#include "yard.h"

/* ---- Counting --------------------------------------------------------------------------------------------------------- */

/* Of a slot's remote list, as far as it is sound. */
static uint32_t remote_length(const struct sy__yard_cache *cache, const struct sy__yard_slot *own)
{
	uint32_t count = 0;

	for (void *at = own->remote; count <= cache->remote_limit && sy__node_slab_of(&cache->base, at); at = sy__node_peek(&cache->base, at))
		count++;
	return count;
}

/* A slab that a slot owns, of which that has so many objects besides. */
static void count_owned(struct sy_cache_counts *counts, const struct sy__yard_cache *cache, struct sy_page *page, uint32_t ready)
{
	uint32_t free = sy__node_length(&cache->base, page, sy__node_freelist(&cache->base, page)) + sy__node_slab(page)->local_objects + ready;

	sy__node_count_slab(counts, sy__node_objects(page), free);
	counts->objects_cached += free;
}

static void count_slot(struct sy_cache_counts *counts, const struct sy__node_cache *base, unsigned slot)
{
	const struct sy__yard_cache *cache = (const struct sy__yard_cache *)(const void *)base;
	const struct sy__yard_slot *own = sy__yard_slot(cache, slot);
	uint32_t remote = remote_length(cache, own);

	counts->objects_in_use -= remote;
	counts->objects_cached += remote;
	if (own->slab)
		count_owned(counts, cache, own->slab, sy__node_length(base, own->slab, own->freelist) + own->uncarved);
	for (unsigned i = 0; i < 2; i++)
		for (struct sy_page *page = sy__yard_numbered(cache, i ? own->empty : own->first); page; page = sy__yard_behind(cache, page))
			count_owned(counts, cache, page, 0);
}

void sy__yard_counts(struct sy_cache *cache, struct sy_cache_counts *counts)
{
	sy__node_counts(sy__node_cache(cache), counts, count_slot);
}

/* ---- Every slab by itself ----------------------------------------------------------------------------------------------- */

/* Whether kfree finds the slab by every page of it. */
static bool is_mapped(struct sy__yard_cache *cache, struct sy_page *page)
{
	const struct sy__yard_heap *yard = sy__yard_heap(cache->base.cache.heap);
	const char *start = sy__page_address(&yard->heap, page);

	for (size_t at = 0; yard->heap.threads && at < SY_PAGE_SIZE << sy__page_order(page); at += SY_PAGE_SIZE)
		if (sy__page_map_of(&yard->page_map, start + at) != page)
			return false;
	return true;
}

static const char *check_slab(struct sy__node_cache *base, struct sy_page *page)
{
	struct sy__yard_cache *cache = sy__yard_cache(&base->cache);
	uint64_t word = sy__node_word(page);
	uint32_t owner = sy__yard_owner(sy__node_slab(page)), order = sy__page_order(page);

	if (order != cache->base.least_order && (order < cache->first_order || order > cache->base.order))
		return "yard: a slab is of an order that its cache does not use";
	if (sy__word_frozen(word) != (owner != SY__YARD_NOBODY && !(owner & SY__YARD_FULL)) || (owner & SY__YARD_FULL && !sy__word_full(word)))
		return "yard: a slab's word and its mark do not agree whether it is owned, or full";
	return is_mapped(cache, page) ? NULL : "yard: a page of a slab does not lead to the slab";
}

/* ---- Slots ------------------------------------------------------------------------------------------------------ */

/* Whether a slab is the slot's, one that was seen, and what the slot has on its local list is sound. */
static bool is_owned(struct sy__yard_cache *cache, const struct sy__yard_slot *own, struct sy_page *page)
{
	const struct sy__node_slab *slab = sy__node_slab(page);
	void *last, *pushed_last;

	if (slab->cache != &cache->base.cache || sy__yard_owner(slab) != sy__yard_mark(cache, own) || !sy__node_of(&cache->base, page)->seen.frozen)
		return false;
	sy__node_of(&cache->base, page)->seen.frozen--;
	sy__node_sound_length(&cache->base, page, sy__node_freelist(&cache->base, page), &pushed_last);
	return sy__node_sound_length(&cache->base, page, sy__yard_local(slab)->freelist, &last) == slab->local_objects &&
	       slab->local_objects <= sy__yard_in_use_now(slab) && !(last && last == pushed_last);
}

static const char *check_active(struct sy__yard_cache *cache, const struct sy__yard_slot *own)
{
	struct sy_page *page = own->slab;
	void *last, *ready_last;
	uint32_t ready;

	if (!page)
		return own->freelist || own->uncarved ? "yard: a slot has free objects, and no active slab" : NULL;
	if (!is_owned(cache, own, page) || own->node != sy__page_node(page))
		return "yard: a slot's active slab is not its own, not on the node that it says, or has a local list that is not sound";
	sy__node_sound_length(&cache->base, page, sy__yard_local(sy__node_slab(page))->freelist, &last);
	ready = sy__node_sound_length(&cache->base, page, own->freelist, &ready_last);
	if (ready == UINT32_MAX || ready + own->uncarved + sy__node_slab(page)->local_objects > sy__yard_in_use_now(sy__node_slab(page)))
		return "yard: a slot's freelist leaves its active slab, or is longer than the slab has objects out";
	if (last && last == ready_last)
		return "yard: an object is on the freelist of a slot and on its slab's local list";
	return NULL;
}

static const char *check_waiting(struct sy__yard_cache *cache, const struct sy__yard_slot *own)
{
	struct sy_page *next;

	for (struct sy_page *page = sy__yard_numbered(cache, own->first); page; page = next) {
		if (page == own->slab || !is_owned(cache, own, page))
			return "yard: a slab waits in a slot that does not own it, or its local list is not sound";
		next = sy__yard_behind(cache, page);
		if ((next ? sy__yard_local(sy__node_slab(next))->prev : own->last) != sy__yard_number(cache, page))
			return "yard: a slot's list of slabs is broken";
		if (!sy__node_slab(page)->local_objects && sy__word_full(sy__node_word(page)))
			return "yard: a slab waits in which nothing is free";
	}
	return NULL;
}

static const char *check_empty(struct sy__yard_cache *cache, const struct sy__yard_slot *own)
{
	uint32_t count = 0;

	for (struct sy_page *page = sy__yard_numbered(cache, own->empty); page; page = sy__yard_behind(cache, page), count++)
		if (page == own->slab || !is_owned(cache, own, page) || sy__node_slab(page)->local_objects != sy__yard_in_use_now(sy__node_slab(page)))
			return "yard: an empty slab of a slot is not its own, or has objects in use";
	return count == own->empty_slabs ? NULL : "yard: a slot's empty slabs are not as many as it says";
}

static const char *check_remote(struct sy__yard_cache *cache, const struct sy__yard_slot *own)
{
	uint32_t count = 0;

	for (void *at = own->remote; at; at = sy__node_peek(&cache->base, at)) {
		struct sy_page *page = sy__node_slab_of(&cache->base, at);

		if (!page || !sy__word_in_use(sy__node_word(page)) || ++count + own->remote_room > cache->remote_limit + 1u)
			return "yard: remote objects of a slot are no objects in use of their cache, or too many";
	}
	return NULL;
}

/* The dummy slot must look empty to whoever is on it. */
static const char *check_dummy(const struct sy__yard_slot *dummy)
{
	return dummy->freelist || dummy->slab || dummy->remote || dummy->cache || dummy->first || dummy->empty || dummy->remote_room ?
	       "yard: something is in the slot in which nothing may ever be" : NULL;
}

static const char *check_slots(struct sy__node_cache *base)
{
	static const char *(*const checks[])(struct sy__yard_cache *, const struct sy__yard_slot *) = {
		check_active, check_waiting, check_empty, check_remote,
	};
	struct sy__yard_cache *cache = sy__yard_cache(&base->cache);
	const char *wrong = base->cache.heap->threads ? check_dummy(sy__yard_slot_at(base->slots, SY__DUMMY_OFFSET)) : NULL;

	for (unsigned slot = 0; slot < sy__slots_used(base->cache.heap); slot++)
		for (unsigned i = 0; !wrong && i < sizeof(checks) / sizeof(checks[0]); i++)
			wrong = checks[i](cache, sy__yard_slot(cache, slot));
	return wrong;
}

const char *sy__yard_check(struct sy_heap *heap)
{
	return sy__node_check(heap, check_slab, check_slots);
}
