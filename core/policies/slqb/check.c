/*
 * SLQB: counting, and verifying its invariants.
 *
 * No list holds full slabs, so a check starts from the pages: it visits every slab that the page allocator says is
 * the heap's, verifies it by itself, and adds it up in the scratch figures (seen) of the list that owns it. Then it
 * walks the lists of all slots and nodes. A slab with free objects must be among its list's partial slabs: since as
 * many were seen as the list holds, and it holds only such, the two are the same sets.
 *
 * A chain of objects is sound when every object on it lies in a slab of the cache, of the owner or node that the
 * chain is for, at a multiple of the size, and when it is as long as counted. No object is then on one chain twice,
 * as the chain would not end.
 *
 * Counting sums up: what is out of the slabs and on no freelist, rlist or remote_free is the client's. Both expect
 * that no other slot works meanwhile; a count that races with work is off by what that work did.
 */
#include "../../this_slot.h"
#include "slqb.h"

/* ---- Counting ------------------------------------------------------------------------------------------------- */

static void count_list(struct sy_cache_counts *counts, const struct sy__slqb_cache *cache, struct sy__slqb_list *list)
{
	counts->slabs += list->slabs;
	counts->pages += list->slabs << cache->order;
	counts->objects += list->slabs * cache->objects;
	counts->objects_in_use += list->slabs * cache->objects;
	counts->partial_slabs += list->partial_slabs;
	for (struct sy_list *at = list->partial.next; at != &list->partial; at = at->next)
		counts->objects_in_use -= (uint64_t)cache->objects - sy__slqb_linked(at)->out;
	counts->objects_cached += list->count;
	sy__lock(&list->remote_lock);
	counts->objects_cached += list->remote_free.count;
	sy__unlock(&list->remote_lock);
}

void sy__slqb_counts(struct sy_cache *common, struct sy_cache_counts *counts)
{
	struct sy__slqb_cache *cache = sy__slqb_cache(common);

	counts->slab_objects = cache->objects;
	counts->slab_pages = 1u << cache->order;
	counts->limit = cache->hiwater; /* as SLQB's own slabinfo has it */
	counts->batchcount = cache->freebatch;
	for (unsigned i = 0; i < common->heap->nodes; i++) {
		sy__lock(&cache->nodes[i].lock);
		count_list(counts, cache, &cache->nodes[i].list);
		sy__unlock(&cache->nodes[i].lock);
	}
	for (unsigned slot = 0; slot < sy__slots_used(common->heap); slot++) {
		struct sy__slqb_slot *own = sy__slqb_look(cache, slot);

		if (!sy__slot_reachable(common, slot) || !sy__slqb_started(own))
			continue;
		sy__local_begin(slot);
		count_list(counts, cache, &own->list);
		counts->objects_cached += own->rlist.count;
		sy__local_end(slot);
	}
	counts->full_slabs = counts->slabs - counts->partial_slabs;
	counts->objects_in_use -= counts->objects_cached;
}

/* ---- Every slab by itself ------------------------------------------------------------------------------------- */

struct verdict {
	struct sy_heap *heap;
	uint64_t waiting; /* slabs in their grace period */
	const char *wrong;
};

static bool is_object_of(const struct sy__slqb_cache *cache, struct sy_page *page, const void *object)
{
	const char *first = (const char *)sy__page_address(cache->cache.heap, page) + sy__slqb_slab(page)->start;
	size_t offset = (size_t)((const char *)object - first);

	return (const char *)object >= first && offset % cache->cache.size == 0 && offset / cache->cache.size < cache->objects;
}

/* Length of a slab's freelist; UINT32_MAX: it is not sound. */
static uint32_t sound_length(const struct sy__slqb_cache *cache, struct sy_page *page)
{
	uint32_t count = 0;

	for (void *at = sy__slqb_slab(page)->freelist; at; at = *sy__slqb_next(cache, at))
		if (!is_object_of(cache, page, at) || ++count > cache->objects)
			return UINT32_MAX;
	return count;
}

static const char *check_slab(const struct sy__slqb_cache *cache, struct sy_page *page)
{
	const struct sy__slqb_slab *slab = sy__slqb_slab(page);
	uint32_t free = sound_length(cache, page);

	if (sy__page_order(page) != cache->order || sy__page_node(page) != slab->list->node)
		return "slqb: a slab is of another order than its cache's, or on another node than the list that owns it";
	if (slab->start && (slab->start % cache->colour_step || slab->start >= cache->colour_range))
		return "slqb: a slab starts its objects where no colour does";
	if (free == UINT32_MAX)
		return "slqb: a slab's freelist leaves the slab or runs in a circle";
	if (slab->out + free != cache->objects)
		return "slqb: objects on a slab's freelist and out of it do not add up";
	return slab->out ? NULL : "slqb: an empty slab was kept";
}

static bool visit(void *context, struct sy_page *page)
{
	struct verdict *verdict = context;
	struct sy__slqb_slab *slab = sy__slqb_slab(page);

	if (!sy__page_is_slab(page))
		return true;
	if (!slab->list || slab->list->cache->cache.heap != verdict->heap) {
		verdict->wrong = "slqb: a slab belongs to no list of its heap";
	} else if (slab->waiting) {
		verdict->waiting++;
	} else {
		verdict->wrong = check_slab(slab->list->cache, page);
		slab->list->seen.slabs++;
		slab->list->seen.partial += slab->freelist != NULL;
	}
	return !verdict->wrong;
}

/* ---- Lists ---------------------------------------------------------------------------------------------------- */

/* Whether a chain is so long and holds only objects of the cache, of slabs of `owner` (NULL: of any) on the node (or SY_ANY_NODE). */
static bool holds(const struct sy__slqb_cache *cache, void *first, uint32_t count, const struct sy__slqb_list *owner,
                  int node)
{
	uint32_t found = 0;

	for (void *at = first; at; at = *sy__slqb_next(cache, at)) {
		struct sy_page *page = sy__pages_find(cache->cache.heap, at);
		const struct sy__slqb_slab *slab;

		if (++found > count || !page || !sy__page_is_slab(page))
			return false;
		slab = sy__slqb_slab(page);
		if (slab->list->cache != cache || slab->waiting || !is_object_of(cache, page, at))
			return false;
		if ((node != SY_ANY_NODE && sy__page_node(page) != node) || (owner && slab->list != owner))
			return false;
	}
	return found == count;
}

static const char *check_partial(const struct sy__slqb_cache *cache, struct sy__slqb_list *list)
{
	uint64_t partial = 0;

	for (struct sy_list *at = list->partial.next; at != &list->partial; at = at->next) {
		const struct sy__slqb_slab *slab = sy__slqb_linked(at);

		if (at->next->prev != at || slab->list != list || slab->waiting || slab->out == cache->objects ||
		    ++partial > list->partial_slabs)
			return "slqb: a list of partial slabs is broken, or holds a slab that is full or not its own";
	}
	if (partial != list->partial_slabs || partial != list->seen.partial)
		return "slqb: a slab with free objects is not among its list's partial slabs";
	return list->slabs == list->seen.slabs ? NULL : "slqb: a list's slabs are not those that the page allocator knows";
}

static const char *check_list(const struct sy__slqb_cache *cache, struct sy__slqb_list *list)
{
	if (!holds(cache, list->freelist, list->count, NULL, list->node))
		return "slqb: a freelist holds what is no object of its cache and node, or not as many as counted";
	if (!holds(cache, list->remote_free.first, list->remote_free.count, list, list->node))
		return "slqb: a list was sent what is no object of its slabs, or not as many as counted";
	if (!list->remote_free_check != (list->remote_free.count < cache->remote_free_check))
		return "slqb: a list does not know how much was sent to it";
	return check_partial(cache, list);
}

static bool rlist_is_sound(const struct sy__slqb_cache *cache, const struct sy__slqb_slot *own)
{
	const struct sy__slqb_list *to = own->rlist.count && !cache->rlist_mixed ? own->rlist_to : NULL;

	return holds(cache, own->rlist.first, own->rlist.count, to, to ? to->node : SY_ANY_NODE);
}

static const char *check_slot(const struct sy__slqb_cache *cache, struct sy__slqb_slot *own)
{
	if (!sy__slqb_started(own))
		return own->list.count || own->rlist.count ? "slqb: a slot that never used the cache has something of it" : NULL;
	if (own->rlist.count >= cache->freebatch)
		return "slqb: an rlist was not sent though it is a batch";
	if (!rlist_is_sound(cache, own))
		return "slqb: an rlist holds what is no object of its owner's slabs, or not as many as counted";
	return check_list(cache, &own->list);
}

static const char *check_cache(struct sy__slqb_cache *cache)
{
	const struct sy_cache *common = &cache->cache;
	const char *wrong = NULL;

	if (common->size % common->align || common->object_size > common->size ||
	    cache->offset + sizeof(void *) > common->size)
		return "slqb: a cache's objects are not laid out within their size and alignment";
	if (common->constructor && cache->offset < common->object_size)
		return "slqb: a free pointer would destroy a constructed object";
	for (unsigned slot = 0; !wrong && slot < sy__slots_used(common->heap); slot++)
		if (sy__slot_reachable(common, slot))
			wrong = check_slot(cache, sy__slqb_look(cache, slot));
	for (unsigned node = 0; !wrong && node < common->heap->nodes; node++)
		wrong = check_list(cache, &cache->nodes[node].list);
	return wrong;
}

static void forget_seen(struct sy__slqb_cache *cache)
{
	for (unsigned slot = 0; slot < sy__slots_used(cache->cache.heap); slot++) {
		struct sy__slqb_slot *own = sy__slqb_look(cache, slot);

		if (sy__slot_reachable(&cache->cache, slot) && sy__slqb_started(own))
			own->list.seen.slabs = own->list.seen.partial = 0;
	}
	for (unsigned node = 0; node < cache->cache.heap->nodes; node++)
		cache->nodes[node].list.seen.slabs = cache->nodes[node].list.seen.partial = 0;
}

const char *sy__slqb_check(struct sy_heap *heap)
{
	struct verdict verdict = { .heap = heap };

	for (struct sy_list *at = heap->caches.next; at != &heap->caches; at = at->next)
		forget_seen(sy__slqb_cache(sy__entry(at, struct sy_cache, link)));
	sy__pages_walk(heap, visit, &verdict);
	if (!verdict.wrong && verdict.waiting != heap->counters.deferred)
		verdict.wrong = "slqb: slabs in their grace period are not those that the deferred queue holds";
	for (struct sy_list *at = heap->caches.next; !verdict.wrong && at != &heap->caches; at = at->next)
		verdict.wrong = check_cache(sy__slqb_cache(sy__entry(at, struct sy_cache, link)));
	return verdict.wrong;
}
