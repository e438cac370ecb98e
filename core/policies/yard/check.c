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
#include "yard.h"

/* ---- Counting ------------------------------------------------------------------------------------------------- */

bool sy__yard_in_slab(const struct sy__yard_cache *cache, struct sy_page *page, const void *object)
{
	const char *start = sy__page_address(cache->cache.heap, page);
	size_t offset = (size_t)((const char *)object - start);

	return (const char *)object >= start && offset % cache->cache.size == 0 &&
	       offset / cache->cache.size < sy__yard_objects(page);
}

/* Of a freelist in a slab. One that was written over ends where it leaves the slab, or goes round in it. */
static uint32_t length(const struct sy__yard_cache *cache, struct sy_page *page, void *freelist)
{
	uint32_t count = 0;

	for (void *at = freelist; sy__yard_in_slab(cache, page, at) && count < sy__yard_objects(page); at = *sy__yard_next(cache, at))
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
static void count_slot_slab(struct sy_cache_counts *counts, const struct sy__yard_cache *cache, struct sy_page *page,
                            uint32_t slot_objects)
{
	uint32_t free = length(cache, page, sy__yard_freelist(cache->cache.heap, page)) + slot_objects;

	count_slab(counts, sy__yard_objects(page), free);
	counts->objects_cached += free;
}

static void count_slot(struct sy_cache_counts *counts, const struct sy__yard_cache *cache, unsigned slot)
{
	const struct sy__yard_slot *own = sy__yard_slot(cache, slot);
	size_t strays;

	sy__local_begin(slot);
	strays = sy__yard_count_strays(cache, own);
	counts->objects_in_use -= strays;
	counts->objects_cached += strays;
	if (own->slab)
		count_slot_slab(counts, cache, own->slab,
		                (own->astray ? 0 : length(cache, own->slab, own->freelist)) + own->uncarved +
		                        sy__yard_held_objects(cache, own->slab));
	for (struct sy_page *page = own->partial; page; page = sy__yard_behind(cache, page))
		count_slot_slab(counts, cache, page, sy__yard_slab(page)->held_objects);
	for (struct sy_page *page = sy__yard_first_empty(cache, own); page; page = sy__yard_behind(cache, page))
		count_slot_slab(counts, cache, page, sy__yard_slab(page)->held_objects);
	sy__local_end(slot);
}

static void count_node(struct sy_cache_counts *counts, struct sy__yard_node *node)
{
	sy__lock(&node->lock);
	counts->slabs += node->slabs;
	counts->pages += node->pages;
	counts->objects += node->objects;
	counts->objects_in_use += node->objects;
	for (struct sy_list *at = node->partial.next; at != &node->partial; at = at->next) {
		uint64_t word = sy__yard_look(sy__yard_linked(at));
		uint32_t objects = sy__yard_word_objects(word);

		count_slab(counts, objects, objects - sy__yard_word_in_use(word));
	}
	sy__unlock(&node->lock);
}

void sy__yard_counts(struct sy_cache *cache, struct sy_cache_counts *counts)
{
	struct sy__yard_cache *yard = sy__yard_cache(cache);

	counts->slab_objects = sy__order_objects(yard->order, cache->size);
	counts->slab_pages = 1u << yard->order;
	for (unsigned node = 0; node < cache->heap->nodes; node++)
		count_node(counts, &yard->nodes[node]);
	for (unsigned slot = 0; slot < cache->heap->slots; slot++)
		if (sy__slot_reachable(cache, slot))
			count_slot(counts, yard, slot);
	counts->full_slabs = counts->slabs - counts->partial_slabs - counts->empty_slabs;
}

/* ---- Every slab by itself ------------------------------------------------------------------------------------- */

struct verdict {
	struct sy_heap *heap;
	uint64_t waiting; /* slabs in their grace period */
	const char *wrong;
};

/* Length of a sound freelist, with its last object; UINT32_MAX: it is not sound. */
static uint32_t sound_length(const struct sy__yard_cache *cache, struct sy_page *page, void *freelist, void **last)
{
	uint32_t count = 0;

	*last = NULL;
	for (void *at = freelist; at; at = *sy__yard_next(cache, at)) {
		if (!sy__yard_in_slab(cache, page, at) || ++count > sy__yard_objects(page))
			return UINT32_MAX;
		*last = at;
	}
	return count;
}

static bool is_mark(const struct sy__yard_cache *cache, unsigned mark)
{
	return mark == cache->sheaf_mark || (cache->exchanged_mark && mark == cache->exchanged_mark);
}

/* Whether kfree finds the slab by every page of it, in a heap of threads. */
static bool pages_owned(struct sy__yard_cache *cache, struct sy_page *page)
{
	const struct sy__yard_heap *yard = sy__yard_heap(cache->cache.heap);
	const char *start = sy__page_address(&yard->heap, page);

	for (size_t at = 0; yard->heap.threads && at < SY_PAGE_SIZE << sy__page_order(page); at += SY_PAGE_SIZE) {
		uintptr_t word = sy__page_map_word(&yard->heads, sy__page_map_index(&yard->heads, start + at));

		if (sy__page_map_block(word) != page || !is_mark(cache, sy__page_map_mark(word)))
			return false;
	}
	return true;
}

static bool is_slab_order(const struct sy__yard_cache *cache, unsigned order)
{
	return order == cache->least_order || (order >= cache->first_order && order <= cache->order);
}

static const char *check_slab(struct sy__yard_cache *cache, struct sy_page *page)
{
	uint32_t objects = sy__yard_objects(page), free;
	void *last;

	if (!is_slab_order(cache, sy__page_order(page)))
		return "yard: a slab is of an order that its cache does not use";
	if (sy__page_node(page) >= cache->cache.heap->nodes)
		return "yard: a slab is on a node that the heap does not have";
	if (objects != sy__order_objects(sy__page_order(page), cache->cache.size))
		return "yard: a slab's number of objects is not what its order holds";
	free = sound_length(cache, page, sy__yard_freelist(cache->cache.heap, page), &last);
	if (free == UINT32_MAX)
		return "yard: a slab's freelist leaves the slab or runs in a circle";
	if (sy__yard_in_use(page) + free + sy__yard_emptied_objects(cache, page) != objects)
		return "yard: used and free objects of a slab do not add up";
	if (!pages_owned(cache, page))
		return "yard: a page of a slab does not lead to the slots of its cache";
	return NULL;
}

static void add_up(struct sy__yard_cache *cache, struct sy_page *page)
{
	struct sy__yard_seen *seen = &cache->nodes[sy__page_node(page)].seen;
	uint64_t word = sy__yard_look(page);

	seen->slabs++;
	seen->objects += sy__yard_word_objects(word);
	seen->pages += (uint64_t)1 << sy__page_order(page);
	seen->frozen += sy__yard_word_frozen(word);
	seen->partial += !sy__yard_word_frozen(word) && !sy__yard_word_full(word);
}

static bool visit(void *context, struct sy_page *page)
{
	struct verdict *verdict = context;
	struct sy__yard_cache *cache = sy__yard_slab(page)->cache;

	if (!sy__page_is_slab(page))
		return true;
	if (!cache || cache->cache.heap != verdict->heap) {
		verdict->wrong = "yard: a slab belongs to no cache of its heap";
	} else if (!sy__yard_objects(page)) {
		verdict->waiting++;
	} else {
		verdict->wrong = check_slab(cache, page);
		if (!verdict->wrong)
			add_up(cache, page);
	}
	return !verdict->wrong;
}

/* ---- Slots and nodes ------------------------------------------------------------------------------------------ */

/* In a heap of threads, whether the slab's mark is the slot's. */
static bool is_owned(const struct sy__yard_cache *cache, const struct sy__yard_slot *own, const struct sy_page *page)
{
	return !cache->cache.heap->threads ||
	       sy__yard_owner(SY_SLAB_STATE(const struct sy__yard_slab, page)) == sy__yard_mark(cache, own);
}

/* What the slot has on the list that it keeps in a slab; UINT32_MAX: that isn't sound. */
static uint32_t held(const struct sy__yard_cache *cache, const struct sy__yard_slot *own, struct sy_page *page)
{
	const struct sy__yard_slab *slab = sy__yard_slab(page);
	void *last, *others_last;
	uint32_t length;

	if (!cache->cache.heap->threads)
		return 0;
	length = sound_length(cache, page, slab->held.freelist, &last);
	sound_length(cache, page, sy__yard_freelist(cache->cache.heap, page), &others_last);
	if (!is_owned(cache, own, page) || length != slab->held_objects || length > sy__yard_in_use(page) ||
	    (last && last == others_last))
		return UINT32_MAX;
	return length;
}

static const char *check_active(struct sy__yard_cache *cache, const struct sy__yard_slot *own)
{
	struct sy_heap *heap = cache->cache.heap;
	struct sy_page *page = own->slab;
	void *last, *slot_last;
	uint32_t free, kept;

	if (!page)
		return (own->freelist && !own->astray) || (!heap->threads && own->bytes) || own->uncarved ?
		       "yard: a slot has free objects or a range, and no active slab" : NULL;
	if (sy__yard_slab(page)->cache != cache || !sy__yard_frozen(page) || own->node != sy__page_node(page))
		return "yard: a slot's active slab is another cache's, not frozen, or not on the node that it says";
	if (!heap->threads && (own->start != sy__page_address(heap, page) || own->bytes != SY_PAGE_SIZE << sy__page_order(page)))
		return "yard: a slot's range is not that of its active slab";
	sound_length(cache, page, sy__yard_freelist(heap, page), &last);
	kept = held(cache, own, page);
	if (!is_owned(cache, own, page) || kept == UINT32_MAX)
		return "yard: a slot's active slab is another slot's, or has held objects that are not what it says";
	free = sound_length(cache, page, own->astray ? NULL : own->freelist, &slot_last);
	if (free > sy__yard_in_use(page) - kept || own->uncarved > sy__yard_in_use(page) - kept - free)
		return "yard: a slot's freelist leaves its active slab, or is longer than the slab has objects out";
	if (last && last == slot_last)
		return "yard: an object is on the freelists of a slot and of its active slab";
	cache->nodes[sy__page_node(page)].seen.frozen--;
	return NULL;
}

/* Whose a slab on a list must be. */
static bool is_listed(const struct sy__yard_cache *cache, struct sy_page *page, bool frozen)
{
	return sy__yard_slab(page)->cache == cache && sy__yard_frozen(page) == frozen;
}

/* Verifies one of a slot's lists of slabs. With `most` objects in use at most. */
static const char *check_kept(struct sy__yard_cache *cache, const struct sy__yard_slot *own, struct sy_page *first,
                              uint32_t count, uint32_t most)
{
	uint32_t kept = 0;

	for (struct sy_page *page = first; page; page = sy__yard_behind(cache, page)) {
		uint32_t here = held(cache, own, page);

		if (!is_listed(cache, page, true) || page == own->slab || ++kept > count || here == UINT32_MAX)
			return "yard: a slot's list holds a slab that is not frozen or not its own, or too many, or a slab whose held "
			       "objects are not what it says";
		if (!here && sy__yard_word_full(sy__yard_look(page)))
			return "yard: a slot's list holds a slab that is full";
		if (sy__yard_in_use(page) - here > most)
			return "yard: a slot's list of empty slabs holds one that is not";
		cache->nodes[sy__page_node(page)].seen.frozen--;
	}
	return kept == count ? NULL : "yard: a slot's list of slabs is shorter than counted";
}

/* Whether each slab of a slot's partial list leads back to the one before, and the slot to the last one. */
static bool leads_back(const struct sy__yard_cache *cache, const struct sy__yard_slot *own)
{
	struct sy_page *next;

	for (struct sy_page *page = own->partial; page; page = next) {
		next = sy__yard_behind(cache, page);
		if ((next ? sy__yard_slab(next)->held.prev : own->newest) != sy__yard_number(cache, page))
			return false;
	}
	return true;
}

static const char *check_slot(struct sy__yard_cache *cache, const struct sy__yard_slot *own)
{
	const char *wrong = check_active(cache, own);

	if (!wrong)
		wrong = check_kept(cache, own, own->partial, own->partial_slabs, UINT32_MAX);
	if (!wrong && cache->cache.heap->threads && !leads_back(cache, own))
		wrong = "yard: a slot's list is broken";
	if (!wrong)
		wrong = sy__yard_check_strays(cache, own);
	return wrong ? wrong : check_kept(cache, own, sy__yard_first_empty(cache, own), own->empty_slabs, 0);
}

static const char *check_node(struct sy__yard_cache *cache, unsigned index)
{
	struct sy__yard_node *node = &cache->nodes[index];
	uint64_t partial = 0;

	if (node->seen.slabs != node->slabs || node->seen.objects != node->objects || node->seen.pages != node->pages)
		return "yard: slabs, objects or pages of a node are not those that the page allocator knows";
	if (node->seen.frozen)
		return "yard: a frozen slab belongs to no slot";
	for (struct sy_list *at = node->partial.next; at != &node->partial; at = at->next) {
		struct sy_page *page = sy__yard_linked(at);

		if (at->next->prev != at || sy__page_node(page) != index || !is_listed(cache, page, false) ||
		    sy__yard_word_full(sy__yard_look(page)) || ++partial > node->partial_slabs)
			return "yard: a node's list is broken, or holds a slab that is full, frozen or not its own";
	}
	if (partial != node->partial_slabs || partial != node->seen.partial)
		return "yard: a slab with free objects is not on its node's list";
	return NULL;
}

static const char *check_layout(const struct sy__yard_cache *cache)
{
	const struct sy_cache *common = &cache->cache;

	if (common->size % common->align || common->object_size > common->size ||
	    cache->offset + sizeof(void *) > common->size)
		return "yard: a cache's objects are not laid out within their size and alignment";
	if (common->constructor && cache->offset < common->object_size)
		return "yard: a free pointer would destroy a constructed object";
	return NULL;
}

/* The dummy slot must look empty to whoever is on it. */
static const char *check_dummy(const struct sy__yard_slot *dummy)
{
	if (dummy->freelist || dummy->strays || dummy->stray_count || dummy->astray || dummy->spare || dummy->missed || dummy->empty_slabs ||
	    dummy->partial_slabs)
		return "yard: something is in the slot in which nothing may ever be";
	return NULL;
}

static const char *check_cache(struct sy__yard_cache *cache)
{
	const char *wrong = check_layout(cache);

	if (!wrong && cache->cache.heap->threads)
		wrong = check_dummy(sy__yard_dummy(cache->slots));
	for (unsigned slot = 0; !wrong && slot < cache->cache.heap->slots; slot++)
		wrong = check_slot(cache, sy__yard_slot(cache, slot));
	for (unsigned node = 0; !wrong && node < cache->cache.heap->nodes; node++)
		wrong = check_node(cache, node);
	return wrong;
}

static void forget_seen(struct sy__yard_cache *cache)
{
	for (unsigned node = 0; node < cache->cache.heap->nodes; node++)
		cache->nodes[node].seen = (struct sy__yard_seen){ 0 };
}

const char *sy__yard_check(struct sy_heap *heap)
{
	struct verdict verdict = { .heap = heap };

	for (struct sy_list *at = heap->caches.next; at != &heap->caches; at = at->next)
		forget_seen(sy__yard_cache(sy__entry(at, struct sy_cache, link)));
	sy__pages_walk(heap, visit, &verdict);
	if (!verdict.wrong && verdict.waiting != heap->counters.deferred)
		verdict.wrong = "yard: slabs in their grace period are not those that the deferred queue holds";
	for (struct sy_list *at = heap->caches.next; !verdict.wrong && at != &heap->caches; at = at->next)
		verdict.wrong = check_cache(sy__yard_cache(sy__entry(at, struct sy_cache, link)));
	return verdict.wrong;
}
