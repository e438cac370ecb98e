/*
 * yard: counting, and verifying its invariants.
 *
 * No list holds full slabs, so a check starts from the pages: it visits every slab that the page allocator says is the heap's,
 * verifies it by itself, and adds it up in its node's scratch figures (seen). Then it walks what the policy can reach, slots and
 * node lists. A slab that is owned must be a slot's, and one with free objects and no owner must be on its node's list: since what
 * was seen of either kind is as many as the lists hold, and each list holds only such, the two are the same sets.
 *
 * A list of objects is sound when every object on it lies in its slab at a multiple of the size, and when it ends within as many
 * steps as the slab has objects. No object is then on one list twice. Nor is one on two lists: two such lists would share their
 * last object.
 *
 * Counting walks lists only: full slabs are what remains of the node's figures. Both take the locks as they go and expect that no
 * other slot works meanwhile; a count that races with work is off by what that work did.
 */
#include "../../geometry.h"
#include "../../here.h"
#include "yard.h"

/* ---- Counting --------------------------------------------------------------------------------------------------------- */

static bool in_slab(const struct sy__yard_cache *cache, struct sy_page *page, const void *object)
{
	const char *start = sy__page_address(cache->cache.heap, page);
	size_t offset = (size_t)((const char *)object - start);

	return (const char *)object >= start && offset % cache->cache.size == 0 &&
	       offset / cache->cache.size < sy__yard_objects(page);
}

/* Looks nowhere that it may not. */
struct sy_page *sy__yard_slab_of(const struct sy__yard_cache *cache, const void *object)
{
	struct sy_page *page = sy__pages_find(cache->cache.heap, object);

	if (!page)
		return NULL;
	page = sy__page_head(page);
	return sy__page_is_slab(page) && sy__yard_slab(page)->cache == cache && in_slab(cache, page, object) ? page : NULL;
}

/* Length of a list of objects of one slab, with the last one. A list that is not sound, as it leaves the slab or goes round in it,
 * ends there: `sound` says so, where that is asked for. */
static uint32_t length_of(const struct sy__yard_cache *cache, struct sy_page *page, void *list, void **last, bool *sound)
{
	void *at = list;
	uint32_t count = 0;

	*last = NULL;
	for (; in_slab(cache, page, at) && count < sy__yard_objects(page); at = *sy__yard_next(cache, at), count++)
		*last = at;
	*sound = !at;
	return count;
}

static uint32_t length(const struct sy__yard_cache *cache, struct sy_page *page, void *list)
{
	void *last;
	bool sound;

	return length_of(cache, page, list, &last, &sound);
}

/* The same of a slot's remote list. */
static uint32_t remote_length(const struct sy__yard_cache *cache, const struct sy__yard_slot *own)
{
	uint32_t count = 0;

	for (void *at = own->remote; count <= cache->remote_limit && sy__yard_slab_of(cache, at); at = *sy__yard_next(cache, at))
		count++;
	return count;
}

static void *pushed(const struct sy__yard_cache *cache, struct sy_page *page)
{
	return sy__yard_word_first(sy__yard_look(page), sy__page_address(cache->cache.heap, page));
}

static void count_slab(struct sy_cache_counts *counts, uint32_t objects, uint32_t free)
{
	if (free == objects)
		counts->empty_slabs++;
	else if (free)
		counts->partial_slabs++;
	counts->objects_in_use -= free;
}

/* A slab that a slot owns, of which that has so many objects besides. */
static void count_owned(struct sy_cache_counts *counts, const struct sy__yard_cache *cache, struct sy_page *page, uint32_t ready)
{
	uint32_t free = length(cache, page, pushed(cache, page)) + sy__yard_slab(page)->local_objects + ready;

	count_slab(counts, sy__yard_objects(page), free);
	counts->objects_cached += free;
}

static void count_slot(struct sy_cache_counts *counts, const struct sy__yard_cache *cache, unsigned slot)
{
	const struct sy__yard_slot *own = sy__yard_slot(cache, slot);
	uint32_t remote;

	sy__local_begin(slot);
	remote = remote_length(cache, own);
	counts->objects_in_use -= remote;
	counts->objects_cached += remote;
	if (own->slab)
		count_owned(counts, cache, own->slab, length(cache, own->slab, own->freelist) + own->uncarved);
	for (struct sy_page *page = sy__yard_numbered(cache, own->first); page; page = sy__yard_behind(cache, page))
		count_owned(counts, cache, page, 0);
	for (struct sy_page *page = sy__yard_numbered(cache, own->empty); page; page = sy__yard_behind(cache, page))
		count_owned(counts, cache, page, 0);
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

/* ---- Every slab by itself ----------------------------------------------------------------------------------------------- */

struct verdict {
	struct sy_heap *heap;
	uint64_t waiting; /* slabs in their grace period */
	const char *wrong;
};

/* Length of a sound list, with its last object; UINT32_MAX: it is not sound. */
static uint32_t sound_length(const struct sy__yard_cache *cache, struct sy_page *page, void *list, void **last)
{
	bool sound;
	uint32_t count = length_of(cache, page, list, last, &sound);

	return sound ? count : UINT32_MAX;
}

/* Whether kfree finds the slab by every page of it. */
static bool is_mapped(struct sy__yard_cache *cache, struct sy_page *page)
{
	const struct sy__yard_heap *yard = sy__yard_heap(cache->cache.heap);
	const char *start = sy__page_address(&yard->heap, page);

	for (size_t at = 0; yard->heap.threads && at < SY_PAGE_SIZE << sy__page_order(page); at += SY_PAGE_SIZE)
		if (sy__page_map_of(&yard->page_map, start + at) != page)
			return false;
	return true;
}

static bool is_slab_order(const struct sy__yard_cache *cache, unsigned order)
{
	return order == cache->least_order || (order >= cache->first_order && order <= cache->order);
}

static const char *check_slab(struct sy__yard_cache *cache, struct sy_page *page)
{
	const struct sy__yard_slab *slab = sy__yard_slab(page);
	uint64_t word = sy__yard_look(page);
	uint32_t objects = sy__yard_word_objects(word), free, owner = sy__yard_owner(slab);
	void *last;

	if (!is_slab_order(cache, sy__page_order(page)))
		return "yard: a slab is of an order that its cache does not use";
	if (sy__page_node(page) >= cache->cache.heap->nodes)
		return "yard: a slab is on a node that the heap does not have";
	if (objects != sy__order_objects(sy__page_order(page), cache->cache.size))
		return "yard: a slab's number of objects is not what its order holds";
	free = sound_length(cache, page, pushed(cache, page), &last);
	if (free == UINT32_MAX)
		return "yard: the list in a slab's word leaves the slab or runs in a circle";
	if (sy__yard_word_in_use(word) + free + sy__yard_emptied_objects(cache, page) != objects)
		return "yard: used and free objects of a slab do not add up";
	if (sy__yard_word_owned(word) != (owner != SY__YARD_NOBODY && !(owner & SY__YARD_FULL)) ||
	    (owner & SY__YARD_FULL && !sy__yard_word_full(word)))
		return "yard: a slab's word and its mark do not agree whether it is owned, or full";
	if (!is_mapped(cache, page))
		return "yard: a page of a slab does not lead to the slab";
	return NULL;
}

static void add_up(struct sy__yard_cache *cache, struct sy_page *page)
{
	struct sy__yard_seen *seen = &sy__yard_node(cache, page)->seen;
	uint64_t word = sy__yard_look(page);

	seen->slabs++;
	seen->objects += sy__yard_word_objects(word);
	seen->pages += (uint64_t)1 << sy__page_order(page);
	seen->owned += sy__yard_word_owned(word);
	seen->partial += !sy__yard_word_owned(word) && !sy__yard_word_full(word);
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

/* ---- Slots and nodes ------------------------------------------------------------------------------------------------------ */

/* Whether a slab is the slot's, one that was seen, and what the slot has on its local list is sound. */
static bool is_owned(struct sy__yard_cache *cache, const struct sy__yard_slot *own, struct sy_page *page)
{
	const struct sy__yard_slab *slab = sy__yard_slab(page);
	void *last, *pushed_last;

	if (slab->cache != cache || sy__yard_owner(slab) != sy__yard_mark(cache, own) || !sy__yard_node(cache, page)->seen.owned)
		return false;
	sy__yard_node(cache, page)->seen.owned--;
	sound_length(cache, page, pushed(cache, page), &pushed_last);
	return sound_length(cache, page, slab->local.freelist, &last) == slab->local_objects &&
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
	sound_length(cache, page, sy__yard_slab(page)->local.freelist, &last);
	ready = sound_length(cache, page, own->freelist, &ready_last);
	if (ready == UINT32_MAX || ready + own->uncarved + sy__yard_slab(page)->local_objects > sy__yard_in_use_now(sy__yard_slab(page)))
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
		if ((next ? sy__yard_slab(next)->local.prev : own->last) != sy__yard_number(cache, page))
			return "yard: a slot's list of slabs is broken";
		if (!sy__yard_slab(page)->local_objects && sy__yard_word_full(sy__yard_look(page)))
			return "yard: a slab waits in which nothing is free";
	}
	return NULL;
}

static const char *check_empty(struct sy__yard_cache *cache, const struct sy__yard_slot *own)
{
	uint32_t count = 0;

	for (struct sy_page *page = sy__yard_numbered(cache, own->empty); page; page = sy__yard_behind(cache, page), count++)
		if (page == own->slab || !is_owned(cache, own, page) || sy__yard_slab(page)->local_objects != sy__yard_in_use_now(sy__yard_slab(page)))
			return "yard: an empty slab of a slot is not its own, or has objects in use";
	return count == own->empty_slabs ? NULL : "yard: a slot's empty slabs are not as many as it says";
}

static const char *check_remote(const struct sy__yard_cache *cache, const struct sy__yard_slot *own)
{
	uint32_t count = 0;

	for (void *at = own->remote; at; at = *sy__yard_next(cache, at)) {
		struct sy_page *page = sy__yard_slab_of(cache, at);

		if (!page || !sy__yard_word_in_use(sy__yard_look(page)) || ++count + own->remote_room > cache->remote_limit + 1u)
			return "yard: remote objects of a slot are no objects in use of their cache, or too many";
	}
	return NULL;
}

static const char *check_slot(struct sy__yard_cache *cache, const struct sy__yard_slot *own)
{
	const char *wrong = check_active(cache, own);

	if (!wrong)
		wrong = check_waiting(cache, own);
	if (!wrong)
		wrong = check_empty(cache, own);
	return wrong ? wrong : check_remote(cache, own);
}

static const char *check_node(struct sy__yard_cache *cache, unsigned index)
{
	struct sy__yard_node *node = &cache->nodes[index];
	uint64_t partial = 0;

	if (node->seen.slabs != node->slabs || node->seen.objects != node->objects || node->seen.pages != node->pages)
		return "yard: slabs, objects or pages of a node are not those that the page allocator knows";
	if (node->seen.owned)
		return "yard: an owned slab belongs to no slot";
	for (struct sy_list *at = node->partial.next; at != &node->partial; at = at->next) {
		struct sy_page *page = sy__yard_linked(at);
		uint64_t word = sy__yard_look(page);

		if (at->next->prev != at || sy__page_node(page) != index || sy__yard_slab(page)->cache != cache ||
		    sy__yard_word_owned(word) || sy__yard_word_full(word) || ++partial > node->partial_slabs)
			return "yard: a node's list is broken, or holds a slab that is full, owned or not its own";
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
		return "yard: a free object's link would destroy what is constructed";
	return NULL;
}

/* The dummy slot must look empty to whoever is on it. */
static const char *check_dummy(const struct sy__yard_slot *dummy)
{
	return dummy->freelist || dummy->slab || dummy->remote || dummy->cache || dummy->first || dummy->empty || dummy->remote_room ?
	       "yard: something is in the slot in which nothing may ever be" : NULL;
}

static const char *check_cache(struct sy__yard_cache *cache)
{
	const char *wrong = check_layout(cache);

	if (!wrong && cache->cache.heap->threads)
		wrong = check_dummy(sy__yard_slot_here(cache->slots, SY__DUMMY_HERE));
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
