/*
 * SLUB: counting, and verifying its invariants.
 *
 * No list holds full slabs, so a check starts from the pages: it visits every slab that the page allocator says is
 * the heap's, verifies it by itself, and adds it up in its node's scratch figures (seen). Then it walks what the
 * policy can reach, slots and node lists. A slab that is frozen must be a slot's and one with free objects and no
 * owner must be on its node's list: since what was seen of either kind is as many as the lists hold, and each list
 * holds only such, the two are the same sets.
 *
 * A freelist is sound when every object on it lies in its slab at a multiple of the size, and when it ends within
 * as many steps as the slab has objects. No object is then on one list twice. Nor is one on two lists: two such
 * lists would share their last object.
 *
 * Counting walks lists only: full slabs are what remains of the node's figures. Both take the locks as they go and
 * expect that no other slot works meanwhile; a count that races with work is off by what that work did.
 */
#include "../geometry.h"
#include "slub.h"

/* ---- Counting ------------------------------------------------------------------------------------------------- */

static uint32_t length(const struct sy__slub_cache *cache, void *freelist)
{
	uint32_t count = 0;

	for (void *at = freelist; at; at = *sy__slub_next(cache, at))
		count++;
	return count;
}

static void count_slab(struct sy_cache_counts *counts, uint32_t objects, uint32_t free)
{
	if (free == objects)
		counts->empty_slabs++;
	else if (free)
		counts->partial_slabs++;
	counts->objects_in_use -= free;
}

/* A slab that a slot owns: with what is free in it, its own freelist and the slot's. */
static void count_slot_slab(struct sy_cache_counts *counts, const struct sy__slub_cache *cache, struct sy_page *page,
                            void *slot_freelist)
{
	const struct sy__slub_slab *slab = sy__slub_slab(page);
	uint32_t free = length(cache, slab->freelist) + length(cache, slot_freelist);

	count_slab(counts, slab->objects, free);
	counts->objects_cached += free;
}

static void count_slot(struct sy_cache_counts *counts, const struct sy__slub_cache *cache, unsigned slot)
{
	const struct sy__slub_slot *own = &cache->slots[slot];

	sy__local_begin(slot);
	if (own->slab)
		count_slot_slab(counts, cache, own->slab, own->freelist);
	for (struct sy_page *page = own->partial; page; page = sy__slub_slab(page)->next)
		count_slot_slab(counts, cache, page, NULL);
	sy__local_end(slot);
}

static void count_node(struct sy_cache_counts *counts, struct sy__slub_node *node)
{
	sy__lock(&node->lock);
	counts->slabs += node->slabs;
	counts->pages += node->pages;
	counts->objects += node->objects;
	counts->objects_in_use += node->objects;
	for (struct sy_list *at = node->partial.next; at != &node->partial; at = at->next) {
		const struct sy__slub_slab *slab = sy__slub_slab(sy__slub_linked(at));

		count_slab(counts, slab->objects, (uint32_t)slab->objects - slab->in_use);
	}
	sy__unlock(&node->lock);
}

void sy__slub_counts(struct sy_cache *cache, struct sy_cache_counts *counts)
{
	struct sy__slub_cache *slub = sy__slub_cache(cache);

	counts->slab_objects = sy__order_objects(slub->order, cache->size);
	counts->slab_pages = 1u << slub->order;
	for (unsigned node = 0; node < cache->heap->nodes; node++)
		count_node(counts, &slub->nodes[node]);
	for (unsigned slot = 0; slot < cache->heap->slots; slot++)
		count_slot(counts, slub, slot);
	counts->full_slabs = counts->slabs - counts->partial_slabs - counts->empty_slabs;
}

/* ---- Every slab by itself ------------------------------------------------------------------------------------- */

struct verdict {
	struct sy_heap *heap;
	uint64_t waiting; /* slabs in their grace period */
	const char *wrong;
};

static bool in_slab(const struct sy__slub_cache *cache, struct sy_page *page, const void *object)
{
	const char *start = sy__page_address(cache->cache.heap, page);
	size_t offset = (size_t)((const char *)object - start);

	return (const char *)object >= start && offset % cache->cache.size == 0 &&
	       offset / cache->cache.size < sy__slub_slab(page)->objects;
}

/* Length of a sound freelist, with its last object; UINT32_MAX: it is not sound. */
static uint32_t sound_length(const struct sy__slub_cache *cache, struct sy_page *page, void *freelist, void **last)
{
	uint32_t count = 0;

	*last = NULL;
	for (void *at = freelist; at; at = *sy__slub_next(cache, at)) {
		if (!in_slab(cache, page, at) || ++count > sy__slub_slab(page)->objects)
			return UINT32_MAX;
		*last = at;
	}
	return count;
}

static const char *check_slab(struct sy__slub_cache *cache, struct sy_page *page)
{
	const struct sy__slub_slab *slab = sy__slub_slab(page);
	uint32_t free;
	void *last;

	if (page->order != cache->order && page->order != cache->least_order)
		return "slub: a slab is of an order that its cache does not use";
	if (page->node >= cache->cache.heap->nodes)
		return "slub: a slab is on a node that the heap does not have";
	if (slab->objects != sy__order_objects(page->order, cache->cache.size))
		return "slub: a slab's number of objects is not what its order holds";
	free = sound_length(cache, page, slab->freelist, &last);
	if (free == UINT32_MAX)
		return "slub: a slab's freelist leaves the slab or runs in a circle";
	if (slab->in_use + free != slab->objects)
		return "slub: used and free objects of a slab do not add up";
	return NULL;
}

static void add_up(struct sy__slub_cache *cache, struct sy_page *page)
{
	const struct sy__slub_slab *slab = sy__slub_slab(page);
	struct sy__slub_seen *seen = &cache->nodes[page->node].seen;

	seen->slabs++;
	seen->objects += slab->objects;
	seen->pages += (uint64_t)1 << page->order;
	seen->frozen += slab->frozen;
	seen->partial += !slab->frozen && slab->freelist;
}

static bool visit(void *context, struct sy_page *page)
{
	struct verdict *verdict = context;
	struct sy__slub_cache *cache = sy__slub_slab(page)->cache;

	if (page->use != SY_USE_SLAB)
		return true;
	if (!cache || cache->cache.heap != verdict->heap) {
		verdict->wrong = "slub: a slab belongs to no cache of its heap";
	} else if (!sy__slub_slab(page)->objects) {
		verdict->waiting++;
	} else {
		verdict->wrong = check_slab(cache, page);
		if (!verdict->wrong)
			add_up(cache, page);
	}
	return !verdict->wrong;
}

/* ---- Slots and nodes ------------------------------------------------------------------------------------------ */

static const char *check_active(struct sy__slub_cache *cache, const struct sy__slub_slot *own)
{
	const struct sy__slub_slab *slab;
	void *last, *slot_last;

	if (!own->slab)
		return own->freelist ? "slub: a slot has free objects and no active slab" : NULL;
	slab = sy__slub_slab(own->slab);
	if (slab->cache != cache || !slab->frozen || own->node != own->slab->node)
		return "slub: a slot's active slab is another cache's, not frozen, or not on the node that it says";
	sound_length(cache, own->slab, slab->freelist, &last);
	if (sound_length(cache, own->slab, own->freelist, &slot_last) > slab->in_use)
		return "slub: a slot's freelist leaves its active slab, or is longer than the slab has objects out";
	if (last && last == slot_last)
		return "slub: an object is on the freelists of a slot and of its active slab";
	cache->nodes[own->slab->node].seen.frozen--;
	return NULL;
}

static const char *check_kept(struct sy__slub_cache *cache, const struct sy__slub_slot *own)
{
	uint32_t kept = 0;

	for (struct sy_page *page = own->partial; page; page = sy__slub_slab(page)->next) {
		const struct sy__slub_slab *slab = sy__slub_slab(page);

		if (slab->cache != cache || !slab->frozen || !slab->freelist || page == own->slab || ++kept > own->partial_slabs)
			return "slub: a slot's partial list holds a slab that is full, not frozen or not its own, or too many";
		cache->nodes[page->node].seen.frozen--;
	}
	return kept == own->partial_slabs ? NULL : "slub: a slot's partial list is shorter than counted";
}

static const char *check_node(struct sy__slub_cache *cache, unsigned index)
{
	struct sy__slub_node *node = &cache->nodes[index];
	uint64_t partial = 0;

	if (node->seen.slabs != node->slabs || node->seen.objects != node->objects || node->seen.pages != node->pages)
		return "slub: slabs, objects or pages of a node are not those that the page allocator knows";
	if (node->seen.frozen)
		return "slub: a frozen slab belongs to no slot";
	for (struct sy_list *at = node->partial.next; at != &node->partial; at = at->next) {
		struct sy_page *page = sy__slub_linked(at);
		const struct sy__slub_slab *slab = sy__slub_slab(page);

		if (at->next->prev != at || slab->cache != cache || page->node != index || slab->frozen || !slab->freelist ||
		    ++partial > node->partial_slabs)
			return "slub: a node's list is broken, or holds a slab that is full, frozen or not its own";
	}
	if (partial != node->partial_slabs || partial != node->seen.partial)
		return "slub: a slab with free objects is not on its node's list";
	return NULL;
}

static const char *check_layout(const struct sy__slub_cache *cache)
{
	const struct sy_cache *common = &cache->cache;

	if (common->size % common->align || common->object_size > common->size ||
	    cache->offset + sizeof(void *) > common->size)
		return "slub: a cache's objects are not laid out within their size and alignment";
	if (common->constructor && cache->offset < common->object_size)
		return "slub: a free pointer would destroy a constructed object";
	return NULL;
}

static const char *check_cache(struct sy__slub_cache *cache)
{
	const char *wrong = check_layout(cache);

	for (unsigned slot = 0; !wrong && slot < cache->cache.heap->slots; slot++) {
		wrong = check_active(cache, &cache->slots[slot]);
		if (!wrong)
			wrong = check_kept(cache, &cache->slots[slot]);
	}
	for (unsigned node = 0; !wrong && node < cache->cache.heap->nodes; node++)
		wrong = check_node(cache, node);
	return wrong;
}

static void forget_seen(struct sy__slub_cache *cache)
{
	for (unsigned node = 0; node < cache->cache.heap->nodes; node++)
		cache->nodes[node].seen = (struct sy__slub_seen){ 0 };
}

const char *sy__slub_check(struct sy_heap *heap)
{
	struct verdict verdict = { .heap = heap };

	for (struct sy_list *at = heap->caches.next; at != &heap->caches; at = at->next)
		forget_seen(sy__slub_cache(sy__entry(at, struct sy_cache, link)));
	sy__pages_walk(heap, visit, &verdict);
	if (!verdict.wrong && verdict.waiting != heap->counters.deferred)
		verdict.wrong = "slub: slabs in their grace period are not those that the deferred queue holds";
	for (struct sy_list *at = heap->caches.next; !verdict.wrong && at != &heap->caches; at = at->next)
		verdict.wrong = check_cache(sy__slub_cache(sy__entry(at, struct sy_cache, link)));
	return verdict.wrong;
}
