/*
 * SLAB: emptying arrays and giving slabs back. What Linux does in cache_reap(), kmem_cache_shrink() and when a CPU
 * goes offline.
 *
 * The reaper. Objects in arrays and on free lists are a bet that they will be needed soon. Every 2 seconds the reaper visits
 * each slot, and in each cache
 *
 *   sends the alien objects home that the slot's node has for one other node, for the next node each time;
 *   gives 1/5 of the slot's limit from its array to the slabs (or half of the array, if that is less), unless the array
 *   has served an allocation since the last visit;
 *   every 4 seconds, once for all slots of a node, does the same to the shared array, and then ends free slabs: enough to
 *   end all that free_limit allows in five visits, but none if an allocation looked for free slabs since the last visit.
 *
 * Visits come by the clock (core/visits.c), to one slot after the other. The times at which they look at a node are
 * spread over caches: in Linux by the caches' addresses, here by the order of creation, so that nothing depends on
 * addresses.
 *
 * Shrinking empties all arrays and ends all free slabs, at once. An array that a slot owns is emptied in that slot's
 * local section. Slabs end without locks, but those of the caches' list (sy_heap.lock).
 */
#include "../../deferred.h"
#include "../../this_slot.h"
#include "slab.h"

#define PERIOD (2 * SY__SECOND)      /* from one visit of a slot to the next */
#define NODE_PERIOD (4 * SY__SECOND) /* the same of a node */
#define NODE_SPREAD (97 * SY__SECOND / 1000) /* from one cache to the next; no divisor of NODE_PERIOD */
#define REAPING_SHARE 5u /* visits that empty an unused array, or end all free slabs */

/* ---- Emptying arrays ------------------------------------------------------------------------------------------ */

/* Gives the oldest objects of an array to their slabs. In its slot's local section, or with its lock held. */
static void give_oldest(struct sy__slab_cache *cache, struct sy__slab_array *array, uint32_t count,
                        struct sy_list *surplus)
{
	struct sy__slab_node *node = &cache->nodes[array->node];

	sy__lock(&node->lock);
	sy__slab_put(cache, node, array->objects, count, surplus);
	sy__unlock(&node->lock);
	sy__slab_drop(array, count);
}

static uint64_t drain_slot(struct sy__slab_cache *cache, unsigned slot)
{
	struct sy__slab_array *own = sy__slab_own(cache, slot);
	struct sy_list surplus;

	sy__list_init(&surplus);
	sy__local_begin(slot);
	give_oldest(cache, own, own->avail, &surplus);
	sy__local_end(slot);
	return sy__slab_destroy(cache, slot, &surplus);
}

static uint64_t drain_shared(struct sy__slab_cache *cache, struct sy__slab_node *node, unsigned slot)
{
	struct sy_list surplus;

	if (!node->shared)
		return 0;
	sy__list_init(&surplus);
	sy__lock(&node->lock);
	sy__slab_put(cache, node, node->shared->objects, node->shared->avail, &surplus);
	node->shared->avail = 0;
	sy__unlock(&node->lock);
	return sy__slab_destroy(cache, slot, &surplus);
}

/* Sends the objects home that a node has for another one. */
static uint64_t drain_alien(struct sy__slab_cache *cache, struct sy__slab_node *node, unsigned slot, unsigned home)
{
	struct sy__slab_array *array = node->aliens ? node->aliens[home].array : NULL;
	struct sy_list surplus;

	if (!array)
		return 0;
	sy__list_init(&surplus);
	sy__lock(&node->aliens[home].lock);
	sy__slab_drain_alien(cache, array, &surplus);
	sy__unlock(&node->aliens[home].lock);
	return sy__slab_destroy(cache, slot, &surplus);
}

/* ---- Contraction ---------------------------------------------------------------------------------------------- */

/* During a contraction: empties a slot's full array, and the one that its node shares, to the slabs. Returns true if that made room,
 * or if the array's limit was raised again. With the node's lock held, in the slot's local section. */
bool sy__slab_empty(struct sy__slab_cache *cache, struct sy__slab_array *own, struct sy_list *surplus)
{
	struct sy__slab_node *node = &cache->nodes[own->node];
	bool contracts = sy__contracts(&node->contraction, node->slabs, cache->order), was_short = own->limit < cache->limit;
	uint64_t slabs = node->slabs;

	if (!contracts) {
		own->limit = cache->limit;
		return was_short;
	}
	if (node->shared) {
		sy__slab_put(cache, node, node->shared->objects, node->shared->avail, surplus);
		node->shared->avail = 0;
	}
	sy__slab_put(cache, node, own->objects, own->avail, surplus);
	own->avail = 0;
	own->limit = sy__contraction_limit(cache->limit);
	sy__contraction_flushed(&node->contraction, slabs - node->slabs);
	if (node->contraction.halved)
		sy__scavenge_soon(cache->cache.heap);
	return true;
}

static bool halved(struct sy__slab_node *node)
{
	bool halved;

	sy__lock(&node->lock);
	halved = node->contraction.halved;
	node->contraction.halved = false;
	sy__unlock(&node->lock);
	return halved;
}

/* Empties the arrays of all slots, if the cache's slabs have halved: other slots may not have noticed. */
uint64_t sy__slab_scavenge(struct sy_cache *common)
{
	struct sy__slab_cache *cache = sy__slab_cache(common);
	unsigned slots = sy__slots_used(common->heap), nodes = common->heap->nodes;
	uint64_t pages = 0;
	bool any = false;

	for (unsigned i = 0; i < nodes; i++)
		any |= halved(&cache->nodes[i]);
	for (unsigned slot = 0; any && slot < slots; slot++)
		if (sy__slot_reachable(common, slot))
			pages += drain_slot(cache, slot);
	return pages;
}

/* Frees the arrays of a slot whose thread ends; those of the newest caches first, as ending slabs puts freelists into the arrays of
 * size classes, the oldest caches. */
static void end_arrays(struct sy_heap *heap, unsigned slot)
{
	for (struct sy_list *at = heap->caches.prev; at != &heap->caches; at = at->prev) {
		struct sy__slab_cache *cache = sy__slab_cache(sy__entry(at, struct sy_cache, link));

		drain_slot(cache, slot);
		sy__slab_unequip(cache, slot);
	}
}

/* Empties a slot's arrays. The arrays themselves stay until the cache is shrunk. Those of the slots from SY_WARM_SLOTS on go
 * too, as these may have no thread for long, and hundreds of arrays take more memory than objects do. */
void sy__slab_drain(struct sy_heap *heap, unsigned slot)
{
	sy__lock(&heap->lock);
	for (struct sy_list *at = heap->caches.next; at != &heap->caches; at = at->next)
		drain_slot(sy__slab_cache(sy__entry(at, struct sy_cache, link)), slot);
	if (heap->threads && slot >= SY_WARM_SLOTS)
		end_arrays(heap, slot);
	sy__unlock(&heap->lock);
}

/* ---- Shrinking and the end of a cache ------------------------------------------------------------------------- */

/* The first slot that the caller may touch; its array takes the freelists of slabs that end. In any call there is one. The number of
 * slots in use: there is none. */
static unsigned first_reachable(const struct sy_cache *cache)
{
	unsigned slot = 0;

	while (slot < sy__slots_used(cache->heap) && !sy__slot_reachable(cache, slot))
		slot++;
	return slot;
}

/* Empties a slot's array. If the slot has no owner, frees the array too: arrays from a time with hundreds of threads would each keep
 * a page that they share. */
static uint64_t end_slot(struct sy__slab_cache *cache, unsigned slot)
{
	uint64_t pages = drain_slot(cache, slot);

	if (cache->cache.heap->threads && sy__slot_unowned(slot))
		sy__slab_unequip(cache, slot);
	return pages;
}

static uint64_t shrink(struct sy__slab_cache *cache)
{
	unsigned slots = sy__slots_used(cache->cache.heap), nodes = cache->cache.heap->nodes, own = first_reachable(&cache->cache);
	uint64_t pages = 0;

	if (own == slots)
		return 0;
	for (unsigned slot = own; slot < slots; slot++)
		if (sy__slot_reachable(&cache->cache, slot))
			pages += end_slot(cache, slot);
	for (unsigned i = 0; i < nodes * nodes; i++)
		pages += drain_alien(cache, &cache->nodes[i / nodes], own, i % nodes);
	for (unsigned i = 0; i < nodes; i++) {
		pages += drain_shared(cache, &cache->nodes[i], own);
		pages += sy__slab_end_free(cache, &cache->nodes[i], own, UINT64_MAX);
	}
	return pages;
}

/* The freelists of ended slabs may have been the last objects in their own slabs. */
uint64_t sy__slab_shrink(struct sy_cache *common)
{
	struct sy__slab_cache *cache = sy__slab_cache(common);
	const struct sy__kmalloc *kmalloc = &sy__slab_heap(common->heap)->kmalloc;
	size_t freelist_bytes = cache->objects * sizeof(sy__slab_index_t);
	uint64_t pages = shrink(cache);

	if (cache->place == SY__SLAB_OFF_SLAB && freelist_bytes <= kmalloc->largest)
		pages += shrink(sy__slab_cache(sy__kmalloc_cache(kmalloc, freelist_bytes, 0)));
	return pages;
}

static bool belongs_to(const struct sy_deferred *entry, const void *cache)
{
	return sy__entry(entry, struct sy__slab_slab, deferred)->cache == cache;
}

/* Slabs with objects in use are left to sy_heap_destroy. Slabs that wait for a grace period end now: the destroyer of an RCU-typesafe
 * cache has waited for its readers. */
void sy__slab_cache_fini(struct sy_cache *common)
{
	struct sy__slab_cache *cache = sy__slab_cache(common);

	shrink(cache);
	sy__deferred_finish(common->heap, belongs_to, common);
	sy__slab_give_state(cache);
}

/* ---- The reaper ----------------------------------------------------------------------------------------------- */

/* How many objects a visit takes from an array: none if it was used since the last one. Linux: drain_array(). */
static uint32_t to_reap(struct sy__slab_array *array)
{
	uint32_t count = (array->limit + REAPING_SHARE - 1) / REAPING_SHARE;

	if (!array->avail)
		return 0;
	if (array->touched) {
		array->touched = 0;
		return 0;
	}
	return count > array->avail ? (array->avail + 1) / 2 : count;
}

static void reap_array(struct sy__slab_cache *cache, unsigned slot, struct sy_list *surplus)
{
	struct sy__slab_array *own = sy__slab_own(cache, slot);

	sy__local_begin(slot);
	give_oldest(cache, own, to_reap(own), surplus);
	sy__local_end(slot);
}

/* Reaps the shared array. True: nobody looked for free slabs since the last visit, so they are to be reaped too. */
static bool reap_shared(struct sy__slab_cache *cache, struct sy__slab_node *node, struct sy_list *surplus)
{
	uint32_t count;
	bool idle;

	sy__lock(&node->lock);
	if (node->shared) {
		count = to_reap(node->shared);
		sy__slab_put(cache, node, node->shared->objects, count, surplus);
		sy__slab_drop(node->shared, count);
	}
	idle = !node->free_touched;
	node->free_touched = 0;
	sy__unlock(&node->lock);
	return idle;
}

static void reap_node(struct sy__slab_cache *cache, struct sy__slab_node *node, unsigned slot, struct sy_list *surplus)
{
	uint64_t share = (uint64_t)REAPING_SHARE * cache->objects;

	if (reap_shared(cache, node, surplus))
		sy__slab_end_free(cache, node, slot, (node->free_limit + share - 1) / share);
}

static void reap_cache(struct sy__slab_cache *cache, unsigned slot, unsigned home, uint64_t now)
{
	struct sy__slab_node *node = &cache->nodes[sy__slot_node(cache->cache.heap, slot)];
	struct sy_list surplus;

	sy__list_init(&surplus);
	drain_alien(cache, node, slot, home);
	reap_array(cache, slot, &surplus);
	if (now >= node->next_reap) {
		node->next_reap = now + NODE_PERIOD;
		reap_node(cache, node, slot, &surplus);
	}
	sy__slab_destroy(cache, slot, &surplus);
}

static void visit(struct sy_heap *heap, unsigned slot, uint64_t now)
{
	struct sy__slab_heap *slab = sy__slab_heap(heap);
	unsigned home = slab->reap_node[slot % SY_MAX_SLOTS];

	slab->reap_node[slot % SY_MAX_SLOTS] = (uint8_t)((home + 1) % heap->nodes);
	for (struct sy_list *at = heap->caches.next; at != &heap->caches; at = at->next)
		reap_cache(sy__slab_cache(sy__entry(at, struct sy_cache, link)), slot, home, now);
}

void sy__slab_tick(struct sy_heap *heap)
{
	sy__visits_run(heap, &sy__slab_heap(heap)->visits, visit);
}

void sy__slab_start_reaping(struct sy_heap *heap)
{
	struct sy__slab_heap *slab = sy__slab_heap(heap);

	for (unsigned slot = 0; slot < heap->slots; slot++)
		slab->reap_node[slot % SY_MAX_SLOTS] = (uint8_t)((sy__slot_node(heap, slot) + 1u) % heap->nodes);
	sy__visits_start(heap, &slab->visits, PERIOD);
}

/* When the nodes of a new cache get their first visit. */
uint64_t sy__slab_first_reap(struct sy__slab_heap *slab)
{
	return sy__now() + NODE_PERIOD + slab->caches_made++ * NODE_SPREAD % NODE_PERIOD;
}
