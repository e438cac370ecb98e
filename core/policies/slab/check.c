/*
 * SLAB: counting, and verifying its invariants.
 *
 * A check starts from the pages: it visits every slab of the heap that the page allocator knows, verifies it by itself, and
 * counts it in its node's scratch figures (seen), by the list that it should be on. Then it walks the three lists of each
 * node. Every slab on a list must belong there, and each list must be as long as counted; so no slab is missing.
 *
 * A slab's freelist is sound when from [active] on every number is one of an object and none comes twice. It must lie
 * where its cache keeps freelists: in the slab's state, in the object that it names last, at the slab's end, or in a live
 * object of a size class.
 *
 * An object in an array must be one of a slab of the cache, on the array's node, and must have left the slab: it is
 * not among the numbers from [active] on. None is twice in one array.
 *
 * Counting sums up figures and arrays: what has left the slabs and is in no array is the client's. A slab is full
 * or free as its list says, thus objects in arrays count as used there, as in /proc/slabinfo. Both expect that no
 * other slot works meanwhile; otherwise a count may miss what that slot does.
 */
#include "../../this_slot.h"
#include "slab.h"

/* ---- Counting ------------------------------------------------------------------------------------------------- */

static uint64_t length(const struct sy_list *list)
{
	uint64_t count = 0;

	for (const struct sy_list *at = list->next; at != list; at = at->next)
		count++;
	return count;
}

static uint64_t count_aliens(struct sy__slab_node *node, unsigned nodes)
{
	uint64_t count = 0;

	for (unsigned i = 0; node->aliens && i < nodes; i++) {
		sy__lock(&node->aliens[i].lock);
		count += node->aliens[i].array ? node->aliens[i].array->avail : 0;
		sy__unlock(&node->aliens[i].lock);
	}
	return count;
}

static void count_node(struct sy_cache_counts *counts, const struct sy__slab_cache *cache, struct sy__slab_node *node)
{
	uint64_t objects;

	sy__lock(&node->lock);
	objects = node->slabs * cache->objects;
	counts->slabs += node->slabs;
	counts->empty_slabs += node->free_slabs;
	counts->partial_slabs += length(&node->partial);
	counts->pages += node->slabs << cache->order;
	counts->objects += objects;
	counts->objects_in_use += objects - node->free_objects;
	counts->objects_shared += node->shared ? node->shared->avail : 0;
	sy__unlock(&node->lock);
	counts->objects_cached += count_aliens(node, cache->cache.heap->nodes);
}

void sy__slab_counts(struct sy_cache *common, struct sy_cache_counts *counts)
{
	struct sy__slab_cache *cache = sy__slab_cache(common);

	counts->slab_objects = cache->objects;
	counts->slab_pages = 1u << cache->order;
	counts->limit = cache->limit;
	counts->batchcount = cache->batchcount;
	counts->shared = cache->shared;
	for (unsigned node = 0; node < common->heap->nodes; node++)
		count_node(counts, cache, &cache->nodes[node]);
	for (unsigned slot = 0; slot < sy__slots_used(common->heap); slot++) {
		if (!sy__slot_reachable(common, slot))
			continue;
		sy__local_begin(slot);
		counts->objects_cached += sy__slab_own(cache, slot)->avail;
		sy__local_end(slot);
	}
	counts->idle_slabs = counts->empty_slabs;
	counts->full_slabs = counts->slabs - counts->partial_slabs - counts->empty_slabs;
	counts->objects_cached += counts->objects_shared;
	counts->objects_in_use -= counts->objects_cached;
}

/* ---- Every slab by itself ------------------------------------------------------------------------------------- */

struct verdict {
	struct sy_heap *heap;
	uint64_t waiting; /* slabs in their grace period */
	const char *wrong;
};

static bool names_each_once(const struct sy__slab_cache *cache, struct sy__slab_slab *slab)
{
	const sy__slab_index_t *numbers = sy__slab_numbers(cache, slab);
	uint64_t named[SY__SLAB_MOST_OBJECTS / 64 + 1] = { 0 };

	for (uint32_t i = slab->active; i < cache->objects; i++) {
		uint32_t number = numbers[i];
		uint64_t bit = (uint64_t)1 << number % 64;

		if (number >= cache->objects || named[number / 64] & bit)
			return false;
		named[number / 64] |= bit;
	}
	return true;
}

static char *object_at(const struct sy__slab_cache *cache, struct sy__slab_slab *slab, uint32_t number)
{
	return sy__slab_first_object(cache, slab) + (size_t)number * cache->cache.size;
}

static bool freelist_in_place(const struct sy__slab_cache *cache, struct sy__slab_slab *slab)
{
	struct sy_page *page = sy__slab_page(slab), *holder;
	const char *start = sy__page_address(cache->cache.heap, page), *freelist = (const char *)slab->freelist;
	size_t bytes = cache->objects * sizeof(sy__slab_index_t);

	if (cache->place == SY__SLAB_IN_STATE)
		return true;
	if (cache->place == SY__SLAB_ON_SLAB)
		return freelist == start + (SY_PAGE_SIZE << sy__page_order(page)) - bytes &&
		       object_at(cache, slab, cache->objects) <= freelist;
	if (cache->place == SY__SLAB_IN_OBJECT)
		return freelist == object_at(cache, slab, slab->freelist[cache->objects - 1]);
	holder = sy__head_of(cache->cache.heap, freelist);
	return sy__page_heap(holder) == cache->cache.heap && holder != page &&
	       (sy__page_is_large(holder) || (sy__page_is_slab(holder) && sy__slab_slab(holder)->active));
}

static const char *check_slab(struct sy__slab_cache *cache, struct sy_page *page)
{
	struct sy__slab_slab *slab = sy__slab_slab(page);
	uint32_t colours = cache->colours ? cache->colours : 1;

	if (sy__page_order(page) != cache->order || sy__page_node(page) >= cache->cache.heap->nodes)
		return "slab: a slab is of another order than its cache's, or on a node that the heap does not have";
	if (slab->start % cache->colour_step || slab->start / cache->colour_step >= colours)
		return "slab: a slab starts its objects where no colour does";
	if (slab->active > cache->objects)
		return "slab: more objects have left a slab than it has";
	if (!sy__slab_numbers(cache, slab))
		return cache->place == SY__SLAB_IN_OBJECT && slab->active == cache->objects
		               ? NULL
		               : "slab: a slab that needs a freelist has none";
	if (cache->place == SY__SLAB_IN_OBJECT && slab->active == cache->objects)
		return "slab: a full slab keeps its freelist in an object of a client";
	if (!names_each_once(cache, slab))
		return "slab: a freelist names an object twice, or one that there is not";
	return freelist_in_place(cache, slab) ? NULL : "slab: a freelist is not where its cache keeps freelists";
}

static void add_up(struct sy__slab_cache *cache, struct sy_page *page)
{
	const struct sy__slab_slab *slab = sy__slab_slab(page);
	struct sy__slab_seen *seen = &cache->nodes[sy__page_node(page)].seen;

	seen->slabs++;
	seen->full += slab->active == cache->objects;
	seen->free += !slab->active;
	seen->partial += slab->active && slab->active < cache->objects;
	seen->free_objects += cache->objects - slab->active;
}

static bool visit(void *context, struct sy_page *page)
{
	struct verdict *verdict = context;
	struct sy__slab_cache *cache = sy__slab_slab(page)->cache;

	if (!sy__page_is_slab(page))
		return true;
	if (!cache || cache->cache.heap != verdict->heap) {
		verdict->wrong = "slab: a slab belongs to no cache of its heap";
	} else if (sy__slab_slab(page)->waiting) {
		verdict->waiting++;
	} else {
		verdict->wrong = check_slab(cache, page);
		if (!verdict->wrong)
			add_up(cache, page);
	}
	return !verdict->wrong;
}

/* ---- Lists and arrays ----------------------------------------------------------------------------------------- */

static bool is_full(const struct sy__slab_cache *cache, const struct sy__slab_slab *slab)
{
	return slab->active == cache->objects;
}

static bool is_free(const struct sy__slab_cache *cache, const struct sy__slab_slab *slab)
{
	(void)cache;
	return !slab->active;
}

static bool is_partial(const struct sy__slab_cache *cache, const struct sy__slab_slab *slab)
{
	return !is_full(cache, slab) && !is_free(cache, slab);
}

/* Whether a list holds `count` slabs of this cache, node and kind, and nothing else. */
static bool holds(struct sy__slab_cache *cache, unsigned node, const struct sy_list *list, uint64_t count,
                  bool (*kind)(const struct sy__slab_cache *, const struct sy__slab_slab *))
{
	uint64_t found = 0;

	for (struct sy_list *at = list->next; at != list; at = at->next) {
		struct sy__slab_slab *slab = sy__slab_linked(at);

		if (at->next->prev != at || slab->cache != cache || slab->waiting || sy__page_node(sy__slab_page(slab)) != node ||
		    !kind(cache, slab) || ++found > count)
			return false;
	}
	return found == count;
}

static const char *check_lists(struct sy__slab_cache *cache, unsigned index)
{
	const struct sy__slab_node *node = &cache->nodes[index];
	const struct sy__slab_seen *seen = &node->seen;

	if (node->slabs != seen->slabs || node->free_slabs != seen->free || node->free_objects != seen->free_objects)
		return "slab: slabs, free slabs or free objects of a node are not those that the page allocator knows";
	if (!holds(cache, index, &node->full, seen->full, is_full))
		return "slab: the list of full slabs is broken, or not that of all full slabs";
	if (!holds(cache, index, &node->partial, seen->partial, is_partial))
		return "slab: the list of partial slabs is broken, or not that of all partial slabs";
	if (!holds(cache, index, &node->free, seen->free, is_free))
		return "slab: the list of free slabs is broken, or not that of all free slabs";
	return NULL;
}

static bool has_left(const struct sy__slab_cache *cache, struct sy__slab_slab *slab, uint32_t number)
{
	const sy__slab_index_t *numbers = sy__slab_numbers(cache, slab);

	for (uint32_t i = slab->active; i < cache->objects; i++)
		if (numbers[i] == number)
			return false;
	return true;
}

static bool may_be_cached(const struct sy__slab_cache *cache, int node, const void *object)
{
	struct sy_page *page = sy__pages_find(cache->cache.heap, object);
	struct sy__slab_slab *slab;
	size_t offset;

	if (!page || !sy__page_is_slab(page) || sy__page_node(page) != node)
		return false;
	slab = sy__slab_slab(page);
	if (slab->cache != cache || slab->waiting)
		return false;
	offset = (size_t)((const char *)object - sy__slab_first_object(cache, slab));
	return offset % cache->cache.size == 0 && offset / cache->cache.size < cache->objects &&
	       has_left(cache, slab, (uint32_t)(offset / cache->cache.size));
}

static const char *check_array(const struct sy__slab_cache *cache, const struct sy__slab_array *array)
{
	if (array->avail > array->limit)
		return "slab: an array holds more objects than its limit";
	for (uint32_t i = 0; i < array->avail; i++) {
		if (!may_be_cached(cache, array->node, array->objects[i]))
			return "slab: an array holds what is no object of its cache and node, or is free in its slab";
		for (uint32_t j = 0; j < i; j++)
			if (array->objects[i] == array->objects[j])
				return "slab: an object is twice in an array";
	}
	return NULL;
}

static const char *check_node(struct sy__slab_cache *cache, unsigned index)
{
	const struct sy__slab_node *node = &cache->nodes[index];
	const char *wrong = check_lists(cache, index);

	if (!wrong && node->shared)
		wrong = check_array(cache, node->shared);
	for (unsigned i = 0; !wrong && node->aliens && i < cache->cache.heap->nodes; i++)
		if (node->aliens[i].array)
			wrong = check_array(cache, node->aliens[i].array);
	return wrong;
}

static const char *check_layout(const struct sy__slab_cache *cache)
{
	const struct sy_cache *common = &cache->cache;
	bool lasting = common->constructor || common->destructor || common->flags & SY_CACHE_TYPESAFE_BY_RCU;

	if (common->size % common->align || common->object_size > common->size ||
	    (uint64_t)cache->objects * common->size > SY_PAGE_SIZE << cache->order)
		return "slab: a cache's objects are not laid out within their size, alignment and slab";
	if (lasting && cache->place == SY__SLAB_IN_OBJECT)
		return "slab: a freelist would destroy what a free object must keep";
	if (cache->place == SY__SLAB_IN_STATE && cache->objects > SY__SLAB_FEW)
		return "slab: a freelist is longer than its slab's state has room for";
	return NULL;
}

static const char *check_cache(struct sy__slab_cache *cache)
{
	const char *wrong = check_layout(cache);

	for (unsigned node = 0; !wrong && node < cache->cache.heap->nodes; node++)
		wrong = check_node(cache, node);
	for (unsigned slot = 0; !wrong && slot < sy__slots_used(cache->cache.heap); slot++)
		if (sy__slot_reachable(&cache->cache, slot))
			wrong = check_array(cache, sy__slab_own(cache, slot));
	return wrong;
}

const char *sy__slab_check(struct sy_heap *heap)
{
	struct verdict verdict = { .heap = heap };

	for (struct sy_list *at = heap->caches.next; at != &heap->caches; at = at->next) {
		struct sy__slab_cache *cache = sy__slab_cache(sy__entry(at, struct sy_cache, link));

		for (unsigned node = 0; node < heap->nodes; node++)
			cache->nodes[node].seen = (struct sy__slab_seen){ 0 };
	}
	sy__pages_walk(heap, visit, &verdict);
	if (!verdict.wrong && verdict.waiting != heap->counters.deferred)
		verdict.wrong = "slab: slabs in their grace period are not those that the deferred queue holds";
	for (struct sy_list *at = heap->caches.next; !verdict.wrong && at != &heap->caches; at = at->next)
		verdict.wrong = check_cache(sy__slab_cache(sy__entry(at, struct sy_cache, link)));
	return verdict.wrong;
}
