/*
 * SLUB: slabs without queues.
 *
 * After the allocator that Linux 6.1 builds from mm/slub.c (Ferreira et al. 2015, section 3.4). Where SLAB kept
 * arrays of free objects per CPU, SLUB gives a CPU a whole slab: allocating pops that slab's list of free objects,
 * and freeing pushes onto the list of the slab that the object is in. The only metadata are a free pointer in each
 * free object and 40 bytes in the page descriptor.
 *
 * Fast path: slub_alloc and slub_free below. Where an object is asked of a slot with free objects, or given back to
 * the slot whose active slab it is in, nothing shared is read or written. Instructions of a call by gcc -O3 on
 * x86-64, by objdump: cache_alloc 15, cache_free 20, kmalloc up to 192 bytes 27, kfree 22; no call, no lock, no
 * atomic, no counter.
 *
 * Where the free objects are. A slab with free objects is in exactly one of these places:
 *
 *   active      of one slot. Frozen. The slot pops from its own freelist; whatever other slots free into the slab
 *               gathers on the slab's own, which the slot takes over whole when its own has run out.
 *   kept        on the partial list of one slot. Frozen. A full slab comes here at its first free, onto the list of
 *               the slot that freed; a list at its limit first moves to the nodes. Not on machines with one CPU.
 *   partial     on the list of its memory node.
 *
 * A full slab is on no list; an empty one goes back to the page allocator, or stays partial while its node has
 * fewer than min_partial others.
 *
 * An allocation therefore looks, in this order: at the slot's freelist, the active slab's own, the slot's partial
 * list, the list of the node that is asked for (else the nearest), the lists of other nodes if any will do and they
 * have more than min_partial, and the page allocator. Taking a slab from a node also takes others along for the
 * slot's partial list, until that has gained more than half its limit.
 *
 * Locks (level 2 of types.h). A slot's structure belongs to whoever is in its local section. Everything else of a
 * slab, its freelist, figures and frozen bit, and all of a node's structure, is under the lock of the slab's node.
 * Linux updates freelist and figures by one double-word compare-and-exchange and takes the node's lock only to
 * touch its list; the order of events that one thread can see is the same. No lock is held while pages are taken,
 * and no local section either, as that may run this cache's own shrink; pages are given back without a lock.
 *
 * Invariants, verified by slub_check.c: frozen slabs are exactly those of slots; an unfrozen slab is on its node's
 * list if and only if it has free objects; in_use + length of the slab's freelist = objects, where an active slab
 * counts the objects on its slot's freelist as in use; every free object is in its slab, at a multiple of the size,
 * once.
 *
 * More files: slub_slabs.c (life of a slab), slub_geometry.c (layout, orders, merging), slub_check.c.
 */
#include "slub.h"

static SY__COLD void *alloc_slow(struct sy__slub_cache *cache, unsigned slot, unsigned flags, int node);
static SY__COLD void free_slow(struct sy__slub_cache *cache, unsigned slot, struct sy_page *page, void *object);

/* Out of the fast path's sight, so that it needs no stack frame. */
static SY__COLD void *zeroed(const struct sy__slub_cache *cache, void *object)
{
	sy__fill(object, 0, cache->cache.object_size);
	return object;
}

/* ---- The fast path -------------------------------------------------------------------------------------------- */

static inline void *alloc(struct sy__slub_cache *cache, unsigned slot, unsigned flags, int node)
{
	struct sy__slub_slot *own = &cache->slots[slot];
	void *object;

	sy__local_begin(slot);
	object = own->freelist;
	if (sy__unlikely(!object || (node != SY_ANY_NODE && node != own->node))) {
		sy__local_end(slot);
		return alloc_slow(cache, slot, flags, node);
	}
	own->freelist = *sy__slub_next(cache, object);
	sy__local_end(slot);
	if (sy__unlikely(flags & SY_ZERO))
		return zeroed(cache, object);
	return object;
}

static inline void free_object(struct sy__slub_cache *cache, unsigned slot, struct sy_page *page, void *object)
{
	struct sy__slub_slot *own = &cache->slots[slot];

	sy__local_begin(slot);
	if (sy__unlikely(page != own->slab)) {
		sy__local_end(slot);
		free_slow(cache, slot, page, object);
		return;
	}
	*sy__slub_next(cache, object) = own->freelist;
	own->freelist = object;
	sy__local_end(slot);
}

static void *slub_alloc(struct sy_cache *cache, unsigned slot, unsigned flags, int node)
{
	return alloc(sy__slub_cache(cache), slot, flags, node);
}

static void slub_free(struct sy_cache *cache, unsigned slot, void *object)
{
	free_object(sy__slub_cache(cache), slot, sy__head_of(cache->heap, object), object);
}

static void *slub_kmalloc(struct sy_heap *heap, unsigned slot, size_t size, unsigned flags, int node)
{
	const struct sy__slub_heap *slub = (const struct sy__slub_heap *)(const void *)heap;

	if (sy__unlikely(size > SY__KMALLOC_LARGEST))
		return sy__large_alloc(heap, slot, size, flags, node);
	return alloc(sy__slub_cache(sy__kmalloc_cache(&slub->kmalloc, size, flags)), slot, flags, node);
}

static void slub_kfree(struct sy_heap *heap, unsigned slot, void *object)
{
	struct sy_page *page = sy__head_of(heap, object);

	if (sy__unlikely(page->use == SY_USE_LARGE)) {
		sy__large_free(heap, slot, page);
		return;
	}
	free_object(sy__slub_slab(page)->cache, slot, page, object);
}

/* ---- Allocation off the fast path ----------------------------------------------------------------------------- */

static void *pop(const struct sy__slub_cache *cache, struct sy__slub_slot *own)
{
	void *object = own->freelist;

	own->freelist = *sy__slub_next(cache, object);
	return object;
}

/* Everything that is free in a frozen slab, for its slot; a slab with nothing free is full, and nobody's from
 * now on. */
static void *claim_freelist(struct sy__slub_cache *cache, struct sy_page *page)
{
	struct sy__slub_slab *slab = sy__slub_slab(page);
	struct sy__slub_node *node = &cache->nodes[page->node];
	void *objects;

	sy__lock(&node->lock);
	objects = slab->freelist;
	slab->freelist = NULL;
	slab->in_use = slab->objects;
	slab->frozen = objects != NULL;
	sy__unlock(&node->lock);
	return objects;
}

static void activate(struct sy__slub_slot *own, struct sy_page *page)
{
	own->slab = page;
	own->node = page->node;
	own->freelist = NULL;
}

/* From the slot's active and partial slabs. In its local section. */
static void *alloc_from_slot(struct sy__slub_cache *cache, unsigned slot, int node)
{
	struct sy__slub_slot *own = &cache->slots[slot];

	for (;;) {
		if (!own->slab) {
			struct sy_page *page = own->partial;

			if (!page)
				return NULL;
			own->partial = sy__slub_slab(page)->next;
			own->partial_slabs--;
			activate(own, page);
		}
		if (node != SY_ANY_NODE && node != own->node) {
			sy__slub_deactivate(cache, slot, own);
			continue;
		}
		if (!own->freelist)
			own->freelist = claim_freelist(cache, own->slab);
		if (own->freelist)
			return pop(cache, own);
		own->slab = NULL;
	}
}

/* Takes the first slab off a node's list, frozen. With the node's lock held, as the next two. */
static struct sy_page *first_partial(struct sy__slub_node *node)
{
	struct sy_page *page = sy__slub_linked(node->partial.next);
	struct sy__slub_slab *slab = sy__slub_slab(page);

	sy__list_remove(&slab->link);
	node->partial_slabs--;
	slab->frozen = 1;
	return page;
}

static void use_partial(struct sy__slub_slot *own, struct sy_page *page)
{
	struct sy__slub_slab *slab = sy__slub_slab(page);

	activate(own, page);
	own->freelist = slab->freelist;
	slab->freelist = NULL;
	slab->in_use = slab->objects;
}

static void keep_partial(struct sy__slub_slot *own, struct sy_page *page)
{
	sy__slub_slab(page)->next = own->partial;
	own->partial = page;
	own->partial_slabs++;
}

/* Makes the first slab of the node's list the slot's active one, and keeps some of those behind it; of a list
 * that has more than `spared` slabs. */
static bool take_partial(struct sy__slub_cache *cache, struct sy__slub_slot *own, struct sy__slub_node *node,
                         uint32_t spared)
{
	sy__lock(&node->lock);
	if (node->partial_slabs > spared) {
		use_partial(own, first_partial(node));
		for (uint32_t kept = 0; cache->slot_limit && kept <= cache->slot_limit / 2 && node->partial_slabs; kept++)
			keep_partial(own, first_partial(node));
	}
	sy__unlock(&node->lock);
	return own->slab != NULL;
}

/* A busy node is better left alone: others take from it only what it has beyond min_partial. Nodes are asked in turn
 * from the nearest one's number on, as no distances are known here; and always, where Linux leaves out one request in
 * forty by the cycle counter, which no replay could repeat. */
static bool take_foreign_partial(struct sy__slub_cache *cache, struct sy__slub_slot *own, unsigned nearest)
{
	unsigned nodes = cache->cache.heap->nodes;

	for (unsigned i = 1; i < nodes; i++) {
		struct sy__slub_node *node = &cache->nodes[(nearest + i) % nodes];

		if (take_partial(cache, own, node, cache->min_partial))
			return true;
	}
	return false;
}

/* From the nodes' lists. In the slot's local section; the slot has no active slab. */
static void *alloc_from_nodes(struct sy__slub_cache *cache, unsigned slot, int node)
{
	struct sy__slub_slot *own = &cache->slots[slot];
	unsigned nearest = cache->cache.heap->slot_node[slot];
	bool taken = take_partial(cache, own, &cache->nodes[node == SY_ANY_NODE ? nearest : (unsigned)node], 0);

	if (!taken && node == SY_ANY_NODE)
		taken = take_foreign_partial(cache, own, nearest);
	return taken ? pop(cache, own) : NULL;
}

static void *alloc_from_pages(struct sy__slub_cache *cache, unsigned slot, unsigned flags, int node)
{
	struct sy__slub_slot *own = &cache->slots[slot];
	struct sy_page *page = sy__slub_new_slab(cache, slot, flags, node);
	void *object;

	if (!page)
		return NULL;
	sy__local_begin(slot);
	if (own->slab) /* somebody was here while the page allocator worked */
		sy__slub_deactivate(cache, slot, own);
	activate(own, page);
	own->freelist = claim_freelist(cache, page);
	object = pop(cache, own);
	sy__local_end(slot);
	return object;
}

/* A node that the heap doesn't have: any will do, unless the caller insists. */
static bool node_exists(const struct sy__slub_cache *cache, int node)
{
	return node >= 0 && (unsigned)node < cache->cache.heap->nodes;
}

static SY__COLD void *alloc_slow(struct sy__slub_cache *cache, unsigned slot, unsigned flags, int node)
{
	void *object;

	__atomic_fetch_add(&cache->cache.heap->counters.slow_allocs, 1, __ATOMIC_RELAXED);
	if (node != SY_ANY_NODE && !node_exists(cache, node)) {
		if (flags & SY_THISNODE)
			return NULL;
		node = SY_ANY_NODE;
	}
	sy__local_begin(slot);
	object = alloc_from_slot(cache, slot, node);
	if (!object)
		object = alloc_from_nodes(cache, slot, node);
	sy__local_end(slot);
	if (!object)
		object = alloc_from_pages(cache, slot, flags, node);
	return object && flags & SY_ZERO ? zeroed(cache, object) : object;
}

/* ---- Freeing off the fast path -------------------------------------------------------------------------------- */

enum fate { STAYS, KEPT, DISCARDED };

/* What becomes of an unfrozen slab after a free. With its node's lock held. */
static enum fate settle(struct sy__slub_cache *cache, struct sy__slub_node *node, struct sy_page *page, bool was_full)
{
	struct sy__slub_slab *slab = sy__slub_slab(page);

	if (was_full && cache->slot_limit) {
		slab->frozen = 1;
		return KEPT;
	}
	if (!slab->in_use && node->partial_slabs >= cache->min_partial) {
		if (!was_full) {
			sy__list_remove(&slab->link);
			node->partial_slabs--;
		}
		sy__slub_count_out(node, page);
		return DISCARDED;
	}
	if (was_full) {
		sy__list_add_tail(&node->partial, &slab->link);
		node->partial_slabs++;
	}
	return STAYS;
}

static SY__COLD void free_slow(struct sy__slub_cache *cache, unsigned slot, struct sy_page *page, void *object)
{
	struct sy__slub_slab *slab = sy__slub_slab(page);
	struct sy__slub_node *node = &cache->nodes[page->node];
	enum fate fate;
	bool was_full;

	__atomic_fetch_add(&cache->cache.heap->counters.slow_frees, 1, __ATOMIC_RELAXED);
	sy__lock(&node->lock);
	was_full = !slab->freelist;
	*sy__slub_next(cache, object) = slab->freelist;
	slab->freelist = object;
	slab->in_use = (slab->in_use - 1u) & 0xffffu;
	fate = slab->frozen ? STAYS : settle(cache, node, page, was_full);
	sy__unlock(&node->lock);
	if (fate == KEPT)
		sy__slub_keep(cache, slot, page);
	else if (fate == DISCARDED)
		sy__slub_discard(cache, slot, page);
}

/* ---- The policy ----------------------------------------------------------------------------------------------- */

static bool slub_heap_init(struct sy_heap *heap)
{
	return sy__kmalloc_create(heap, &((struct sy__slub_heap *)(void *)heap)->kmalloc, sy__kmalloc_sizes[0], 0);
}

static size_t slub_usable_size(struct sy_heap *heap, const void *object)
{
	struct sy_page *page = sy__head_of(heap, object);

	return page->use == SY_USE_LARGE ? SY_PAGE_SIZE << page->order : sy__slub_slab(page)->cache->cache.object_size;
}

static const char *const off_on[] = { "off", "on" };

static const struct sy_tunable tunables[] = {
	[SLUB_MIN_ORDER] = { "min_order", 0, 0, SY_MAX_ORDER, NULL, "order of the smallest slabs (pages: 2^order)" },
	[SLUB_MAX_ORDER] = { "max_order", 3, 0, SY_MAX_ORDER, NULL,
	                     "order of the largest slabs, where an object fits in them (pages: 2^order)" },
	[SLUB_MIN_OBJECTS] = { "min_objects", 0, 0, SY__SLUB_MOST_OBJECTS, NULL,
	                       "objects that a slab should hold at least; 0: by the number of CPUs" },
	[SLUB_CPU_PARTIAL] = { "cpu_partial", SY_TUNABLE_AUTO, 0, 65535, NULL,
	                       "free objects kept in a CPU's partial slabs; 0: none; auto: by size, none with one CPU" },
	[SLUB_MIN_PARTIAL] = { "min_partial", SY_TUNABLE_AUTO, 0, 65535, NULL,
	                       "slabs on a node's list up to which empty ones are kept; auto: 5 to 10 by size" },
	[SLUB_MERGE] = { "merge", 1, 0, 1, off_on, "let caches of alike objects share their slabs" },
};

extern const struct sy_policy sy__slub;

const struct sy_policy sy__slub = {
	.name = "slub",
	.summary = "Linux 6.1: each CPU has a slab, each slab a list of its free objects",
	.paper = "Ferreira et al., An Experimental Comparison Analysis of Kernel-level Memory Allocators, SAC 2015, section 3.4; "
	         "Linux 6.1 mm/slub.c",
	.tunables = tunables,
	.tunable_count = sizeof(tunables) / sizeof(tunables[0]),
	.heap_bytes = sizeof(struct sy__slub_heap),
	.cache_bytes = sizeof(struct sy__slub_cache),
	.cache_alloc = slub_alloc,
	.cache_free = slub_free,
	.kmalloc = slub_kmalloc,
	.kfree = slub_kfree,
	.heap_init = slub_heap_init,
	.cache_merge = sy__slub_merge,
	.cache_init = sy__slub_cache_init,
	.cache_fini = sy__slub_cache_fini,
	.usable_size = slub_usable_size,
	.shrink = sy__slub_shrink,
	.drain = sy__slub_drain,
	.grace_passed = sy__slub_grace_passed,
	.counts = sy__slub_counts,
	.geometry = sy__slub_geometry,
	.check = sy__slub_check,
	.walk = sy__slub_walk,
};
