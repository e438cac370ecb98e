/*
 * SLAB: slabs behind queues.
 *
 * After the allocator that Linux 6.1 builds from mm/slab.c (Bonwick 1994, carried over to Linux by Mark Hemment and
 * made per-CPU by Manfred Spraul and per-node by Christoph Lameter; Ferreira et al. 2015, section 3.2). Free objects
 * that are warm in a processor's cache are worth keeping near it, so each CPU slot has an array of them, used as a
 * stack: the object freed last is allocated next. Behind the arrays stand slabs, on three lists for each memory node:
 * full, partial, free.
 *
 * Fast path: alloc and free_object below. An allocation pops the slot's array and a free pushes onto it. The slab is
 * not looked at, but on a machine with several memory nodes for which node it is on. Instructions of a call by
 * gcc -O3 on x86-64, by objdump: cache_alloc 16, cache_free 13, kmalloc up to 192 bytes 27, kfree 24; no call, no
 * lock, no atomic, no counter. Where a kernel may be interrupted in the middle of a call, it comes by quick_alloc and its like,
 * which do the same and leave everything else to these.
 *
 * Allocating when the array is empty takes a batch (at most 16 if nothing was taken since the reaper's last visit)
 * from the first of these that has any: the node's shared array; the node's partial slabs, then its free slabs; a new
 * slab. Freeing when the array is full moves a batch of the objects that lie in it longest to the shared array as far
 * as that has room, else to their slabs. A slab that gets an object back goes to the end of the partial list, where
 * it has most time to become free; one that became free, to the head of the free list. Beyond free_limit free objects
 * of a node, free slabs are given back at once, the last of the list first.
 *
 * Calls without slots, in heaps of threads, by bench/count_instructions (64 bytes, each with the jump from the library's entry):
 * kmem_cache_alloc 25, kmem_cache_free 16, kmalloc 34, kfree 33. Of the first the way to the slot's array takes 5, begin and
 * end of the call 2, the pop 6, SY_ZERO 2; kfree's way to the cache through the page's descriptor takes 15. A fill and drain of
 * 10,000 objects takes 100 to 145 for each, of which the slabs' numbers are half: 60 objects leave and come home under one
 * lock.
 *
 * Nodes. An array holds objects of its slot's node only. Freeing an object of another node puts it into the node's
 * alien array for that node; a full one goes home, to the shared array there first. Without alien arrays (alien=off)
 * such an object goes to its slab directly. A request for memory of another node bypasses the arrays. When the
 * nearest node has nothing left, all nodes are searched before anybody is asked for memory.
 *
 * In a slab the free objects are numbers in an array, the freelist: from [active] on, in the order in which they will
 * be allocated. geometry.c says where that array is.
 *
 * A slot gets its array for a cache, and the node its shared one, when it first uses the cache. Until then, and as long
 * as there is no memory for them, its objects come from slabs and go to slabs one by one. A thread's arrays go when it ends,
 * but for those of the first slots, which the next thread soon has.
 *
 * In heaps of threads arrays are short while a peak goes (fall.h), as each object in them keeps a slab: a full one is emptied,
 * and the shared one with it, and other slots' each time the slabs have become half as many.
 *
 * The reaper (reap.c) empties what is not used. It runs by the clock, from sy_heap_tick.
 *
 * Locks (level 2 of types.h), in this order: an alien array's lock; a node's lock, which protects its lists, figures
 * and shared array and all of its slabs. A slot's array belongs to whoever is in its local section. No lock is held
 * and no local section open while pages or a freelist's memory are taken or given back (but sy_heap.lock may be).
 *
 * Invariants, verified by check.c: a slab is on the list that its number of free objects says; free_objects is
 * their sum; an object in an array is in a slab of the cache, of the array's node, and is not free in its slab; a
 * freelist names every object at most once.
 *
 * More files: slabs.c (slabs, and moving objects), reap.c, geometry.c (layout), check.c.
 */
#include "../../here.h"
#include "slab.h"

#define UNTOUCHED_BATCH 16u /* objects that an array gets that was not used lately */

static SY__OUT_OF_LINE void *alloc_slow(struct sy__slab_cache *cache, unsigned slot, unsigned flags, int node);
static SY__OUT_OF_LINE void free_slow(struct sy__slab_cache *cache, unsigned slot, void *object);
static SY__COLD void free_alien(struct sy__slab_cache *cache, unsigned slot, void *object);

/* Out of the fast path's sight, so that it needs no stack frame. */
static SY__OUT_OF_LINE void *zeroed(const struct sy__slab_cache *cache, void *object)
{
	sy__fill(object, 0, cache->cache.object_size);
	return object;
}

/* ---- The fast path -------------------------------------------------------------------------------------------- */

static inline void *alloc(struct sy__slab_cache *cache, unsigned slot, unsigned flags, int node)
{
	struct sy__slab_array *own = sy__slab_own(cache, slot);
	void *object;

	sy__local_begin(slot);
	if (sy__unlikely(!own->avail || (node != SY_ANY_NODE && node != own->node))) {
		sy__local_end(slot);
		return alloc_slow(cache, slot, flags, node);
	}
	own->touched = 1;
	object = own->objects[--own->avail];
	sy__local_end(slot);
	if (sy__unlikely(flags & SY_ZERO))
		return zeroed(cache, object);
	return object;
}

static inline void free_object(struct sy__slab_cache *cache, unsigned slot, void *object)
{
	struct sy__slab_array *own = sy__slab_own(cache, slot);

	if (sy__unlikely(cache->many_nodes) && sy__page_node(sy__head_of(cache->cache.heap, object)) != own->node) {
		free_alien(cache, slot, object);
		return;
	}
	sy__local_begin(slot);
	if (sy__unlikely(own->avail == own->limit)) {
		sy__local_end(slot);
		free_slow(cache, slot, object);
		return;
	}
	own->objects[own->avail++] = object;
	sy__local_end(slot);
}

static void *slab_alloc(struct sy_cache *cache, unsigned slot, unsigned flags, int node)
{
	return alloc(sy__slab_cache(cache), slot, flags, node);
}

static void slab_free(struct sy_cache *cache, unsigned slot, void *object)
{
	free_object(sy__slab_cache(cache), slot, object);
}

static SY__OUT_OF_LINE void *kmalloc_seldom(struct sy_heap *heap, unsigned slot, size_t size, unsigned flags, int node)
{
	struct sy_cache *cache = sy__kmalloc_cache(&sy__slab_heap(heap)->kmalloc, size, flags);

	return cache ? alloc(sy__slab_cache(cache), slot, flags, node) : sy__large_alloc(heap, slot, size, flags, node);
}

static void *slab_kmalloc(struct sy_heap *heap, unsigned slot, size_t size, unsigned flags, int node)
{
	if (sy__unlikely(!sy__kmalloc_is_small(size, flags)))
		return kmalloc_seldom(heap, slot, size, flags, node);
	return alloc(sy__slab_cache(sy__kmalloc_small(&sy__slab_heap(heap)->kmalloc, size)), slot, flags, node);
}

static void slab_kfree(struct sy_heap *heap, unsigned slot, void *object)
{
	struct sy_page *page = sy__head_of(heap, object);

	if (sy__unlikely(sy__page_is_large(page))) {
		sy__large_free(heap, slot, page);
		return;
	}
	free_object(sy__slab_slab(page)->cache, slot, object);
}

/* ---- The fast path, interrupted at will ------------------------------------------------------------------------ */

static inline void *take_quickly(struct sy__slab_cache *cache, unsigned slot)
{
	struct sy__slab_array *own = *sy__slab_entry(cache, slot);
	void *object;

	if (sy__unlikely(!own || !own->avail))
		return NULL;
	object = own->objects[own->avail - 1]; /* before the stores: see struct sy_quick */
	own->avail--;
	own->touched = 1;
	return object;
}

static inline bool put_quickly(struct sy__slab_cache *cache, unsigned slot, void *object)
{
	struct sy__slab_array *own = *sy__slab_entry(cache, slot);

	if (sy__unlikely(!own || own->avail == own->limit))
		return false;
	if (sy__unlikely(cache->many_nodes) && sy__page_node(sy__head_of(cache->cache.heap, object)) != own->node)
		return false;
	own->objects[own->avail++] = object;
	return true;
}

static void *quick_alloc(struct sy_cache *cache, unsigned slot)
{
	return take_quickly(sy__slab_cache(cache), slot);
}

static bool quick_free(struct sy_cache *cache, unsigned slot, void *object)
{
	return put_quickly(sy__slab_cache(cache), slot, object);
}

static void *quick_kmalloc(struct sy_heap *heap, unsigned slot, size_t size, unsigned flags)
{
	struct sy_cache *cache = sy__kmalloc_quick(&sy__slab_heap(heap)->kmalloc, size, flags);
	void *object = cache ? take_quickly(sy__slab_cache(cache), slot) : NULL;

	return sy__unlikely(flags & SY_ZERO) && object ? zeroed(sy__slab_cache(cache), object) : object;
}

static bool quick_kfree(struct sy_heap *heap, unsigned slot, struct sy_page *head, void *object)
{
	(void)heap;
	return !sy__page_is_large(head) && put_quickly(sy__slab_slab(head)->cache, slot, object);
}

static const struct sy_quick quick = {
	.cache_alloc = quick_alloc,
	.kmalloc = quick_kmalloc,
	.cache_free = quick_free,
	.kfree = quick_kfree,
};

/* ---- The fast path, on the caller's own slot ------------------------------------------------------------------ */

/* NULL: the slot has none, the dummy never. */
static inline struct sy__slab_array *array_here(const struct sy__slab_cache *cache, ptrdiff_t here)
{
	return *(struct sy__slab_array **)(void *)((char *)cache->arrays + here);
}

/* NULL: there is none, and the call goes on. */
static inline void *take_here(struct sy__slab_cache *cache, unsigned flags)
{
	struct sy__slab_array *own = array_here(cache, sy__call_begin());
	void *object;

	if (sy__unlikely(!own || !own->avail))
		return NULL;
	own->touched = 1;
	object = own->objects[--own->avail];
	sy__call_end();
	return sy__unlikely(flags & SY_ZERO) ? zeroed(cache, object) : object;
}

static void *alloc_here(struct sy_cache *cache, unsigned flags)
{
	void *object = take_here(sy__slab_cache(cache), flags);

	return sy__likely(object) ? object : sy__here_cache_alloc(cache, flags);
}

static void free_here(struct sy_cache *cache, void *object)
{
	struct sy__slab_array *own = array_here(sy__slab_cache(cache), sy__call_begin());

	if (sy__unlikely(!own || own->avail == own->limit)) {
		sy__here_cache_free(cache, object);
		return;
	}
	own->objects[own->avail++] = object;
	sy__call_end();
}

static SY__OUT_OF_LINE void *kmalloc_seldom_here(size_t size, unsigned flags, struct sy_heap *heap)
{
	struct sy_cache *cache = sy__kmalloc_cache(&sy__slab_heap(heap)->kmalloc, size, flags);
	void *object = cache ? take_here(sy__slab_cache(cache), flags) : NULL;

	return sy__likely(object) ? object : sy__here_kmalloc(size, flags, heap);
}

static void *kmalloc_here(size_t size, unsigned flags, struct sy_heap *heap)
{
	void *object;

	if (sy__unlikely(!sy__kmalloc_is_small(size, flags)))
		return kmalloc_seldom_here(size, flags, heap);
	object = take_here(sy__slab_cache(sy__kmalloc_small(&sy__slab_heap(heap)->kmalloc, size)), flags);
	return sy__likely(object) ? object : sy__here_kmalloc(size, flags, heap);
}

static void *malloc_here(size_t size, struct sy_heap *heap)
{
	return kmalloc_here(size, 0, heap);
}

static void kfree_here(void *object, struct sy_heap *heap)
{
	struct sy_page *page = sy__head_of(heap, object);

	if (sy__unlikely(sy__page_is_large(page) || sy__slab_slab(page)->cache->many_nodes))
		sy__here_kfree(object, heap);
	else
		free_here(&sy__slab_slab(page)->cache->cache, object);
}

static const struct sy_here entries_here = {
	.cache_alloc = alloc_here,
	.cache_free = free_here,
	.kmalloc = kmalloc_here,
	.malloc = malloc_here,
	.kfree = kfree_here,
};

/* ---- Allocation off the fast path ----------------------------------------------------------------------------- */

/* Linux: gfp_exact_node(). Memory of one node, and not yet at anybody's cost where other nodes may have some. */
static unsigned exact(const struct sy__slab_cache *cache, unsigned flags)
{
	if (!cache->many_nodes || flags & SY_THISNODE)
		return flags;
	return flags | SY_THISNODE | SY_NO_RECLAIM;
}

/* Up to `wanted` objects from the node's slabs for an empty array; how many are still wanted. With the node's lock
 * held. */
static uint32_t take_from_slabs(struct sy__slab_cache *cache, struct sy__slab_node *node, struct sy__slab_array *own,
                                uint32_t wanted)
{
	while (wanted) {
		struct sy__slab_slab *slab = sy__slab_first(node);
		uint32_t taken;

		if (!slab)
			break;
		taken = sy__slab_take(cache, node, slab, own->objects + own->avail, wanted);
		own->avail += taken;
		wanted -= taken;
	}
	return wanted;
}

/* Fills an empty array from the node; how many objects are still wanted. In the slot's local section. */
static uint32_t take_from_node(struct sy__slab_cache *cache, struct sy__slab_array *own, uint32_t wanted)
{
	struct sy__slab_node *node = &cache->nodes[own->node];

	sy__lock(&node->lock);
	if (node->shared && sy__slab_transfer(own, node->shared, wanted))
		node->shared->touched = 1;
	else if (node->free_objects)
		wanted = take_from_slabs(cache, node, own, wanted);
	sy__unlock(&node->lock);
	return wanted;
}

static void *pop(struct sy__slab_array *own)
{
	own->touched = 1;
	return own->objects[--own->avail];
}

/* Up to `wanted` objects of a new slab for the slot's array, and one of them; NULL: no memory. Linux takes no more than
 * what is still wanted of the batch, too. */
static void *alloc_from_pages(struct sy__slab_cache *cache, unsigned slot, unsigned flags, uint32_t wanted)
{
	struct sy__slab_array *own = sy__slab_own(cache, slot);
	struct sy__slab_slab *slab = sy__slab_new(cache, slot, exact(cache, flags), own->node);
	struct sy__slab_node *node = &cache->nodes[own->node];
	void *object;

	if (!slab)
		return NULL;
	sy__local_begin(slot);
	sy__lock(&node->lock);
	if (sy__likely(!own->avail))
		own->avail = sy__slab_take_new(cache, node, slab, own->objects, wanted);
	else /* somebody filled it while the page allocator worked */
		sy__slab_count_in(node, cache, slab);
	sy__unlock(&node->lock);
	object = pop(own);
	sy__local_end(slot);
	return object;
}

/* By the slot's array, filling it first. Linux: cache_alloc_refill(). */
static void *refill(struct sy__slab_cache *cache, unsigned slot, unsigned flags)
{
	struct sy__slab_array *own = sy__slab_own(cache, slot);
	uint32_t wanted = cache->batchcount;
	void *object = NULL;

	sy__local_begin(slot);
	own->limit = cache->limit;
	if (!own->touched && wanted > UNTOUCHED_BATCH)
		wanted = UNTOUCHED_BATCH;
	if (!own->avail)
		wanted = take_from_node(cache, own, wanted);
	if (own->avail)
		object = pop(own);
	sy__local_end(slot);
	return object ? object : alloc_from_pages(cache, slot, flags, wanted);
}

/* One object of a node's slabs. */
static void *take_one(struct sy__slab_cache *cache, unsigned index)
{
	struct sy__slab_node *node = &cache->nodes[index];
	struct sy__slab_slab *slab;
	void *object = NULL;

	sy__lock(&node->lock);
	slab = sy__slab_first(node);
	if (slab)
		sy__slab_take(cache, node, slab, &object, 1);
	sy__unlock(&node->lock);
	return object;
}

/* One object of a new slab on any node that the flags permit. */
static void *grow_by_one(struct sy__slab_cache *cache, unsigned slot, unsigned flags, int index)
{
	struct sy__slab_slab *slab = sy__slab_new(cache, slot, flags, index);
	struct sy__slab_node *node;
	void *object;

	if (!slab)
		return NULL;
	node = &cache->nodes[sy__page_node(sy__slab_page(slab))];
	sy__lock(&node->lock);
	sy__slab_take_new(cache, node, slab, &object, 1);
	sy__unlock(&node->lock);
	return object;
}

/* Anything anywhere, the nearest node first, then at the cost of others. Linux: fallback_alloc(). */
static void *alloc_anywhere(struct sy__slab_cache *cache, unsigned slot, unsigned flags)
{
	unsigned nodes = cache->cache.heap->nodes, nearest = cache->cache.heap->slot_node[slot];
	void *object = NULL;

	for (unsigned i = 0; i < nodes && !object; i++)
		object = take_one(cache, (nearest + i) % nodes);
	return object ? object : grow_by_one(cache, slot, flags, SY_ANY_NODE);
}

/* From a node's slabs, without the arrays. Linux: ____cache_alloc_node(). */
static void *alloc_on_node(struct sy__slab_cache *cache, unsigned slot, unsigned flags, int node)
{
	void *object = take_one(cache, (unsigned)node);

	return object ? object : grow_by_one(cache, slot, exact(cache, flags), node);
}

static void *alloc_somewhere(struct sy__slab_cache *cache, unsigned slot, unsigned flags, int node)
{
	const struct sy__slab_array *own = sy__slab_own(cache, slot);
	void *object = NULL;

	if ((node == SY_ANY_NODE || node == own->node) && own->limit)
		object = refill(cache, slot, flags);
	else if (node == SY_ANY_NODE)
		object = alloc_on_node(cache, slot, flags, own->node);
	else if (node >= 0 && (unsigned)node < cache->cache.heap->nodes)
		object = alloc_on_node(cache, slot, flags, node);
	if (object || !cache->many_nodes || flags & SY_THISNODE)
		return object;
	return alloc_anywhere(cache, slot, flags);
}

static SY__OUT_OF_LINE void *alloc_slow(struct sy__slab_cache *cache, unsigned slot, unsigned flags, int node)
{
	void *object;

	sy__count_slow(cache->cache.heap, &cache->cache.heap->counters.slow_allocs);
	if (sy__unlikely(!sy__slab_own(cache, slot)->limit))
		sy__slab_equip(cache, slot);
	object = alloc_somewhere(cache, slot, flags, node);
	return object && flags & SY_ZERO ? zeroed(cache, object) : object;
}

/* ---- Freeing off the fast path -------------------------------------------------------------------------------- */

/* Moves the batch at the bottom of a full array to the shared array, as far as that has room, or else to the slabs; in a fall,
 * everything. In the slot's local section. Linux: cache_flusharray(). */
static void flush(struct sy__slab_cache *cache, struct sy__slab_array *own, struct sy_list *surplus)
{
	struct sy__slab_node *node = &cache->nodes[own->node];
	struct sy__slab_array *shared;
	uint32_t count = cache->batchcount;

	sy__lock(&node->lock);
	shared = node->shared;
	if (sy__slab_for_threads(cache) && sy__slab_empty(cache, own, surplus)) {
		count = 0;
	} else if (shared && shared->avail < shared->limit) {
		if (count > shared->limit - shared->avail)
			count = shared->limit - shared->avail;
		sy__copy(shared->objects + shared->avail, own->objects, count * sizeof(void *));
		shared->avail += count;
	} else {
		sy__slab_put(cache, node, own->objects, count, surplus);
	}
	sy__unlock(&node->lock);
	sy__slab_drop(own, count);
}

/* Straight to the object's slab. */
static void free_home(struct sy__slab_cache *cache, unsigned home, void *object, struct sy_list *surplus)
{
	struct sy__slab_node *node = &cache->nodes[home];

	sy__lock(&node->lock);
	sy__slab_put(cache, node, &object, 1, surplus);
	sy__unlock(&node->lock);
}

static void free_to_array(struct sy__slab_cache *cache, unsigned slot, void *object, struct sy_list *surplus)
{
	struct sy__slab_array *own = sy__slab_own(cache, slot);

	sy__local_begin(slot);
	if (own->avail == own->limit)
		flush(cache, own, surplus);
	own->objects[own->avail++] = object;
	sy__local_end(slot);
}

static SY__OUT_OF_LINE void free_slow(struct sy__slab_cache *cache, unsigned slot, void *object)
{
	struct sy_list surplus;

	sy__count_slow(cache->cache.heap, &cache->cache.heap->counters.slow_frees);
	sy__list_init(&surplus);
	if (sy__unlikely(!sy__slab_own(cache, slot)->limit))
		sy__slab_equip(cache, slot);
	if (sy__slab_own(cache, slot)->limit)
		free_to_array(cache, slot, object, &surplus);
	else
		free_home(cache, (unsigned)sy__slab_own(cache, slot)->node, object, &surplus);
	sy__slab_destroy(cache, slot, &surplus);
}

/* An object of another node than the slot's: to the alien array, or to its slab. */
static SY__COLD void free_alien(struct sy__slab_cache *cache, unsigned slot, void *object)
{
	unsigned home = sy__page_node(sy__head_of(cache->cache.heap, object));
	struct sy__slab_node *near = &cache->nodes[sy__slab_own(cache, slot)->node];
	struct sy_list surplus;

	sy__count_slow(cache->cache.heap, &cache->cache.heap->counters.slow_frees);
	sy__list_init(&surplus);
	if (near->aliens) {
		struct sy__slab_alien *alien = &near->aliens[home];

		sy__lock(&alien->lock);
		if (alien->array->avail == alien->array->limit)
			sy__slab_drain_alien(cache, alien->array, &surplus);
		alien->array->objects[alien->array->avail++] = object;
		sy__unlock(&alien->lock);
	} else {
		free_home(cache, home, object, &surplus);
	}
	sy__slab_destroy(cache, slot, &surplus);
}

/* ---- The policy ----------------------------------------------------------------------------------------------- */

/* Linux: KMALLOC_SHIFT_LOW is 5, and ARCH_KMALLOC_FLAGS is SLAB_HWCACHE_ALIGN. */
static bool slab_heap_init(struct sy_heap *heap)
{
	sy__slab_start_reaping(heap);
	return sy__kmalloc_create(heap, &sy__slab_heap(heap)->kmalloc, heap->tunables[SLAB_CLASSES], 32, SY_CACHE_HWCACHE_ALIGN);
}

static size_t slab_usable_size(struct sy_heap *heap, const void *object)
{
	struct sy_page *page = sy__head_of(heap, object);

	return sy__page_is_large(page) ? sy__large_usable(page) : sy__slab_slab(page)->cache->cache.object_size;
}

static const char *const off_on[] = { "off", "on" };

static const struct sy_tunable tunables[] = {
	[SLAB_LIMIT] = { "limit", SY_TUNABLE_AUTO, 1, SY__SLAB_MOST_LIMIT, NULL,
	                 "objects in a CPU's array at most; auto: 120, fewer for objects above 256 bytes" },
	[SLAB_BATCHCOUNT] = { "batchcount", SY_TUNABLE_AUTO, 1, SY__SLAB_MOST_LIMIT, NULL,
	                      "objects moved at once to or from a CPU's array, at most its limit; auto: half of it" },
	[SLAB_SHARED] = { "shared", SY_TUNABLE_AUTO, 0, SY__SLAB_MOST_SHARED, NULL,
	                  "batches in the array that a node's CPUs share; auto: 8 for objects up to a page, 0 with one CPU" },
	[SLAB_ALIEN] = { "alien", 1, 0, 1, off_on,
	                 "collect objects freed on another node than theirs, and send them home together" },
	[SLAB_COLOUR] = { "colour", 1, 0, 1, off_on, "let slabs start their objects on different cache lines" },
	[SLAB_MAX_ORDER] = { "max_order", 1, 0, SY_MAX_ORDER, NULL,
	                          "order from which slabs do not grow to waste less (pages: 2^order)" },
	[SLAB_MERGE] = { "merge", 1, 0, 1, off_on, "let caches of alike objects share their slabs" },
	[SLAB_CLASSES] = { SY__KMALLOC_CLASSES_TUNABLE },
};

extern const struct sy_policy sy__slab;

const struct sy_policy sy__slab = {
	.name = "slab",
	.summary = "Linux 6.1: per-CPU arrays of free objects, three lists of slabs per node",
	.paper = "Bonwick, The Slab Allocator: An Object-Caching Kernel Memory Allocator, USENIX 1994; "
	         "Ferreira et al., An Experimental Comparison Analysis of Kernel-level Memory Allocators, SAC 2015, section 3.2; "
	         "Linux 6.1 mm/slab.c",
	.tunables = tunables,
	.tunable_count = sizeof(tunables) / sizeof(tunables[0]),
	.heap_bytes = sizeof(struct sy__slab_heap),
	.cache_bytes = sizeof(struct sy__slab_cache),
	.cache_alloc = slab_alloc,
	.cache_free = slab_free,
	.kmalloc = slab_kmalloc,
	.kfree = slab_kfree,
	.here = &entries_here,
	.quick = &quick,
	.heap_init = slab_heap_init,
	.cache_merge = sy__slab_merge,
	.cache_init = sy__slab_cache_init,
	.cache_fini = sy__slab_cache_fini,
	.usable_size = slab_usable_size,
	.shrink = sy__slab_shrink,
	.drain = sy__slab_drain,
	.grace_passed = sy__slab_grace_passed,
	.settle = sy__slab_settle,
	.tick = sy__slab_tick,
	.counts = sy__slab_counts,
	.geometry = sy__slab_geometry,
	.check = sy__slab_check,
	.serves_classes = true,
	.walk = sy__slab_walk,
};
