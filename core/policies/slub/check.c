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
#include "../../geometry.h"
#include "../../here.h"
#include "slub.h"

/* ---- Counting ------------------------------------------------------------------------------------------------- */

static bool in_slab(const struct sy__slub_cache *cache, struct sy_page *page, const void *object)
{
	const char *start = sy__page_address(cache->cache.heap, page);
	size_t offset = (size_t)((const char *)object - start);

	return (const char *)object >= start && offset % cache->cache.size == 0 &&
	       offset / cache->cache.size < sy__slub_objects(page);
}

/* Of a freelist in a slab. One that was written over ends where it leaves the slab, or goes round in it. */
static uint32_t length(const struct sy__slub_cache *cache, struct sy_page *page, void *freelist)
{
	uint32_t count = 0;

	for (void *at = freelist; in_slab(cache, page, at) && count < sy__slub_objects(page); at = *sy__slub_next(cache, at))
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

/* A slab that a slot owns: with what is free by its word, and on the slot's freelist. */
static void count_slot_slab(struct sy_cache_counts *counts, struct sy_page *page, uint32_t slot_objects)
{
	uint64_t word = sy__slub_look(page);
	uint32_t objects = sy__slub_word_objects(word), free = objects - sy__slub_word_in_use(word) + slot_objects;

	count_slab(counts, objects, free);
	counts->objects_cached += free;
}

static void count_slot(struct sy_cache_counts *counts, const struct sy__slub_cache *cache, unsigned slot)
{
	const struct sy__slub_slot *own = sy__slub_slot(cache, slot);

	sy__local_begin(slot);
	if (own->slab)
		count_slot_slab(counts, own->slab, length(cache, own->slab, own->freelist));
	for (struct sy_page *page = own->partial; page; page = sy__slub_slab(page)->next)
		count_slot_slab(counts, page, 0);
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
		uint64_t word = sy__slub_look(sy__slub_linked(at));
		uint32_t objects = sy__slub_word_objects(word);

		count_slab(counts, objects, objects - sy__slub_word_in_use(word));
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
		if (sy__slot_reachable(cache, slot))
			count_slot(counts, slub, slot);
	counts->full_slabs = counts->slabs - counts->partial_slabs - counts->empty_slabs;
}

/* ---- Every slab by itself ------------------------------------------------------------------------------------- */

struct verdict {
	struct sy_heap *heap;
	uint64_t waiting; /* slabs in their grace period */
	const char *wrong;
};

/* Length of a sound freelist, with its last object; UINT32_MAX: it is not sound. */
static uint32_t sound_length(const struct sy__slub_cache *cache, struct sy_page *page, void *freelist, void **last)
{
	uint32_t count = 0;

	*last = NULL;
	for (void *at = freelist; at; at = *sy__slub_next(cache, at)) {
		if (!in_slab(cache, page, at) || ++count > sy__slub_objects(page))
			return UINT32_MAX;
		*last = at;
	}
	return count;
}

static const char *check_slab(struct sy__slub_cache *cache, struct sy_page *page)
{
	uint32_t objects = sy__slub_objects(page), free;
	void *last;

	if (sy__page_order(page) != cache->order && sy__page_order(page) != cache->least_order)
		return "slub: a slab is of an order that its cache does not use";
	if (sy__page_node(page) >= cache->cache.heap->nodes)
		return "slub: a slab is on a node that the heap does not have";
	if (objects != sy__order_objects(sy__page_order(page), cache->cache.size))
		return "slub: a slab's number of objects is not what its order holds";
	free = sound_length(cache, page, sy__slub_freelist(cache->cache.heap, page), &last);
	if (free == UINT32_MAX)
		return "slub: a slab's freelist leaves the slab or runs in a circle";
	if (sy__slub_in_use(page) + free != objects)
		return "slub: used and free objects of a slab do not add up";
	return NULL;
}

static void add_up(struct sy__slub_cache *cache, struct sy_page *page)
{
	struct sy__slub_seen *seen = &cache->nodes[sy__page_node(page)].seen;
	uint64_t word = sy__slub_look(page);

	seen->slabs++;
	seen->objects += sy__slub_word_objects(word);
	seen->pages += (uint64_t)1 << sy__page_order(page);
	seen->frozen += sy__slub_word_frozen(word);
	seen->partial += !sy__slub_word_frozen(word) && !sy__slub_word_full(word);
}

static bool visit(void *context, struct sy_page *page)
{
	struct verdict *verdict = context;
	struct sy__slub_cache *cache = sy__slub_slab(page)->cache;

	if (!sy__page_is_slab(page))
		return true;
	if (!cache || cache->cache.heap != verdict->heap) {
		verdict->wrong = "slub: a slab belongs to no cache of its heap";
	} else if (!sy__slub_objects(page)) {
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
	struct sy_heap *heap = cache->cache.heap;
	struct sy_page *page = own->slab;
	void *last, *slot_last;

	if (!page)
		return own->freelist || own->bytes ? "slub: a slot has free objects or a range, and no active slab" : NULL;
	if (sy__slub_slab(page)->cache != cache || !sy__slub_frozen(page) || own->node != sy__page_node(page))
		return "slub: a slot's active slab is another cache's, not frozen, or not on the node that it says";
	if (own->start != sy__page_address(heap, page) || own->bytes != SY_PAGE_SIZE << sy__page_order(page))
		return "slub: a slot's range is not that of its active slab";
	sound_length(cache, page, sy__slub_freelist(heap, page), &last);
	if (sound_length(cache, page, own->freelist, &slot_last) > sy__slub_in_use(page))
		return "slub: a slot's freelist leaves its active slab, or is longer than the slab has objects out";
	if (last && last == slot_last)
		return "slub: an object is on the freelists of a slot and of its active slab";
	cache->nodes[sy__page_node(page)].seen.frozen--;
	return NULL;
}

/* Whose a slab on a list must be. */
static bool is_listed(const struct sy__slub_cache *cache, struct sy_page *page, bool frozen)
{
	return sy__slub_slab(page)->cache == cache && sy__slub_frozen(page) == frozen && !sy__slub_word_full(sy__slub_look(page));
}

static const char *check_slot(struct sy__slub_cache *cache, const struct sy__slub_slot *own)
{
	const char *wrong = check_active(cache, own);
	uint32_t kept = 0;

	for (struct sy_page *page = own->partial; !wrong && page; page = sy__slub_slab(page)->next) {
		if (!is_listed(cache, page, true) || page == own->slab || ++kept > own->partial_slabs)
			return "slub: a slot's list holds a slab that is full, not frozen or not its own, or too many";
		cache->nodes[sy__page_node(page)].seen.frozen--;
	}
	return wrong || kept == own->partial_slabs ? wrong : "slub: a slot's list of slabs is shorter than counted";
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

		if (at->next->prev != at || sy__page_node(page) != index || !is_listed(cache, page, false) ||
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

	for (unsigned slot = 0; !wrong && slot < cache->cache.heap->slots; slot++)
		wrong = check_slot(cache, sy__slub_slot(cache, slot));
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
