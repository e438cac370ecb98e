/*
 * SLUB: counting, and verifying its invariants, as far as ../node.c does not know of them: what slots have.
 */
#include "../../this_slot.h"
#include "slub.h"

/* ---- Counting ------------------------------------------------------------------------------------------------- */

/* A slab that a slot owns: with what is free by its word, and on the slot's freelist. */
static void count_slot_slab(struct sy_cache_counts *counts, struct sy_page *page, uint32_t slot_objects)
{
	uint64_t word = sy__node_word(page);
	uint32_t objects = sy__word_objects(word), free = objects - sy__word_in_use(word) + slot_objects;

	sy__node_count_slab(counts, objects, free);
	counts->objects_cached += free;
}

static void count_slot(struct sy_cache_counts *counts, const struct sy__node_cache *cache, unsigned slot)
{
	const struct sy__slub_slot *own = sy__slub_slot((const struct sy__slub_cache *)(const void *)cache, slot);

	if (own->slab)
		count_slot_slab(counts, own->slab, sy__node_length(cache, own->slab, own->freelist));
	for (struct sy_page *page = own->partial; page; page = *sy__slub_next(page))
		count_slot_slab(counts, page, 0);
}

void sy__slub_counts(struct sy_cache *cache, struct sy_cache_counts *counts)
{
	const struct sy__slub_cache *slub = sy__slub_cache(cache);
	uint64_t held = slub->own_objects + (slub->sheaves ? sy__slub_sheaves_objects(slub) : 0);

	sy__node_counts(sy__node_cache(cache), counts, count_slot);
	counts->objects_in_use -= held;
	counts->objects_cached += held;
	counts->min_partial = slub->base.min_partial;
	counts->cpu_partial = sy__slub_slot_objects(slub);
	counts->sheaf_capacity = slub->sheaves ? slub->sheaves->capacity : 0;
}

/* ---- Checking ------------------------------------------------------------------------------------------------- */

static const char *check_slab(struct sy__node_cache *cache, struct sy_page *page)
{
	bool fits = sy__page_order(page) == cache->order || sy__page_order(page) == cache->least_order;

	return fits ? NULL : "slub: a slab is of an order that its cache does not use";
}

static const char *check_active(struct sy__slub_cache *cache, const struct sy__slub_slot *own)
{
	struct sy_heap *heap = cache->base.cache.heap;
	struct sy_page *page = own->slab;
	void *last, *slot_last;

	if (!page)
		return own->freelist || own->bytes ? "slub: a slot has free objects or a range, and no active slab" : NULL;
	if (sy__node_slab(page)->cache != &cache->base.cache || !sy__word_frozen(sy__node_word(page)) || own->node != sy__page_node(page))
		return "slub: a slot's active slab is another cache's, not frozen, or not on the node that it says";
	if (own->start != sy__page_address(heap, page) || own->bytes != SY_PAGE_SIZE << sy__page_order(page))
		return "slub: a slot's range is not that of its active slab";
	sy__node_sound_length(&cache->base, page, sy__node_freelist(&cache->base, page), &last);
	if (sy__node_sound_length(&cache->base, page, own->freelist, &slot_last) > sy__node_in_use(page))
		return "slub: a slot's freelist leaves its active slab, or is longer than the slab has objects out";
	if (last && last == slot_last)
		return "slub: an object is on the freelists of a slot and of its active slab";
	cache->base.nodes[sy__page_node(page)].seen.frozen--;
	return NULL;
}

/* Whose a slab on a list must be. */
static bool is_listed(const struct sy__slub_cache *cache, struct sy_page *page, bool frozen)
{
	return sy__node_slab(page)->cache == &cache->base.cache && sy__word_frozen(sy__node_word(page)) == frozen && !sy__word_full(sy__node_word(page));
}

static const char *check_slot(struct sy__slub_cache *cache, const struct sy__slub_slot *own)
{
	const char *wrong = check_active(cache, own);
	uint32_t kept = 0;

	for (struct sy_page *page = own->partial; !wrong && page; page = *sy__slub_next(page)) {
		if (!is_listed(cache, page, true) || page == own->slab || ++kept > own->partial_slabs)
			return "slub: a slot's list holds a slab that is full, not frozen or not its own, or too many";
		cache->base.nodes[sy__page_node(page)].seen.frozen--;
	}
	return wrong || kept == own->partial_slabs ? wrong : "slub: a slot's list of slabs is shorter than counted";
}

static const char *check_slots(struct sy__node_cache *cache)
{
	const struct sy__slub_cache *slub = sy__slub_cache(&cache->cache);
	const char *wrong = slub->sheaves ? sy__slub_sheaves_check(slub) : NULL;

	for (unsigned slot = 0; !wrong && slot < sy__slots_used(cache->cache.heap); slot++)
		wrong = check_slot(sy__slub_cache(&cache->cache), sy__slub_slot(sy__slub_cache(&cache->cache), slot));
	return wrong;
}

const char *sy__slub_check(struct sy_heap *heap)
{
	return sy__node_check(heap, check_slab, check_slots);
}
