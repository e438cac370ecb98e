/*
 * SLAB: slabs behind queues.
 *
 * After the allocator that Linux 6.1 builds from mm/slab.c (Bonwick 1994, carried over to Linux by Mark Hemment and
 * made per-CPU by Manfred Spraul and per-node by Christoph Lameter; Ferreira et al. 2015, section 3.2). Free objects are
 * worth keeping near the processor whose cache has them. So each CPU slot has an array of free objects, used as a stack: the
 * object freed last is allocated next. Behind the arrays stand slabs, on three lists for each memory node: full, partial,
 * free.
 *
 * Fast path: pop and push below. An allocation pops the slot's array and a free pushes onto it: no lock, no atomic, no
 * counter. Neither touches the slab; on a machine with several memory nodes, push reads the node in the page descriptor.
 * size_entries_this_slot.h makes all calls of the two.
 *
 * An allocation that finds the array empty takes a batch (at most 16 if nothing was taken since the reaper's last visit)
 * from the first of these that has objects: the node's shared array; the node's partial slabs, then its free slabs; a new
 * slab. A free that finds the array full moves the oldest batch of it to the shared array, as far as that has room, else to
 * the slabs. A slab that gets an object back goes to the end of the partial list, where it has the most time to become free; a
 * slab that became free goes to the head of the free list. When a node has more than free_limit free objects, free slabs are
 * given back at once, the last of the list first.
 *
 * Nodes. An array holds objects of its slot's node only. A freed object of another node goes into the slot's node's alien
 * array for that node. A full alien array is sent home, to the shared array there first. Without alien arrays (alien=off)
 * such an object goes to its slab directly. A request for memory of another node bypasses the arrays. When the nearest node has
 * nothing left, all nodes are searched before new pages are requested from anywhere.
 *
 * A slab's free objects are numbers in an array, the freelist: from [active] on, in the order in which they will be allocated.
 * geometry.c says where that array is.
 *
 * A slot gets its array for a cache when it first uses the cache, and its node gets the shared one. Until then, and while there
 * is no memory for them, objects come from slabs and go to slabs one by one. A thread's arrays are freed when it ends, except in
 * the first slots, which the next thread soon gets.
 *
 * In heaps of threads arrays are short during a contraction (contraction.h), as each object in them keeps a slab. A full array is
 * then emptied, and the shared one with it; other slots' arrays are each time that the slabs have halved.
 *
 * The reaper (reap.c) empties arrays that are not used. It runs by the clock, from sy_heap_tick.
 *
 * Locks (level 2 of types.h), in this order: an alien array's lock; a node's lock, which protects its lists, figures
 * and shared array and all of its slabs. A slot's array belongs to the caller in its local section. No lock is held
 * and no local section open while pages or a freelist's memory are taken or given back (but sy_heap.lock may be).
 *
 * Invariants, verified by check.c: a slab is on the list that its number of free objects says; free_objects is
 * their sum; an object in an array is in a slab of the cache, of the array's node, and is not free in its slab; a
 * freelist names every object at most once.
 *
 * More files: slabs.c (slabs, and moving objects), reap.c, geometry.c (layout), check.c.
 */
#include "../../bug.h"
#include "../../this_slot.h"
#include "slab.h"

typedef struct sy__slab_cache entry_cache;
typedef struct sy__slab_array entry_own;

/* ---- The fast path -------------------------------------------------------------------------------------------- */

/*
 * Instructions of hot calls (docs/cost.md): kmem_cache_alloc 21, kmem_cache_free 19, kmalloc 30, kfree 34. No function is called. Beyond
 * the array, 60 objects move under one lock.
 */
static inline bool pop(const struct sy__slab_cache *cache, struct sy__slab_array *own, void **object)
{
	(void)cache;
	if (sy__unlikely(!own || !own->avail))
		return false;
	*object = own->objects[own->avail - 1]; /* loads before it stores, see struct sy_quick */
	own->avail--;
	own->touched = 1;
	return true;
}

/* Pushes an object of the array's node; not one that is on top already, which the slow call tells. Below an empty array's objects are
 * two numbers, which make no address. */
static inline bool push_near(struct sy__slab_array *own, void *object)
{
	_Static_assert(offsetof(struct sy__slab_array, objects) == offsetof(struct sy__slab_array, node) + 8, "they are next to objects");
	if (sy__unlikely(!own || own->avail == own->limit || *(own->objects + own->avail - 1) == object))
		return false;
	own->objects[own->avail++] = object;
	return true;
}

static inline bool push(const struct sy__slab_cache *cache, struct sy__slab_array *own, const struct sy_page *page, void *object)
{
	if (sy__unlikely(cache->many_nodes) && own && sy__page_node(page) != own->node)
		return false;
	return push_near(own, object);
}

/* ---- Calls ---------------------------------------------------------------------------------------------------- */

static SY__OUT_OF_LINE void *alloc_slow(struct sy__slab_cache *cache, unsigned slot, unsigned flags, int node);
static SY__OUT_OF_LINE void free_slow(struct sy__slab_cache *cache, unsigned slot, void *object);

/* NULL: the slot has no array yet; the dummy never has one. */
static inline struct sy__slab_array *own_of(const struct sy__slab_cache *cache, unsigned slot)
{
	return *sy__slab_entry(cache, slot);
}

static inline struct sy__slab_array *own_at(const struct sy__slab_cache *cache, ptrdiff_t slot_offset)
{
	return *(struct sy__slab_array **)(void *)((char *)cache->arrays + slot_offset);
}

static inline bool suits(const struct sy__slab_array *own, unsigned flags, int node)
{
	(void)flags;
	return sy__likely(node == SY_ANY_NODE) || (own && node == own->node);
}

/* Where there are several nodes, threads' frees go by the generic entries (slab_heap_init, geometry.c). */
static inline bool push_this_slot(const struct sy__slab_cache *cache, struct sy__slab_array *own, const struct sy_page *page, void *object)
{
	(void)cache;
	(void)page;
	return push_near(own, object);
}

static inline const struct sy__kmalloc *entry_sizes(struct sy_heap *heap)
{
	return &sy__slab_heap(heap)->kmalloc;
}

static inline struct sy__slab_cache *cache_in(struct sy_page *page)
{
	return sy__slab_slab(page)->cache;
}

static inline bool is_start(const struct sy__slab_cache *cache, struct sy_page *head, size_t distance)
{
	return sy__divides(cache->divider, distance - sy__slab_slab(head)->start);
}

static inline bool is_second(const struct sy__slab_cache *cache, const struct sy__slab_array *own, const void *object)
{
	(void)cache;
	return own && own->avail > 1 && own->objects[own->avail - 2] == object;
}

#include "../size_entries_this_slot.h"

#define UNTOUCHED_BATCH 16u /* objects for an array that was not used lately */

/* ---- Allocation off the fast path ----------------------------------------------------------------------------- */

/* Flags for memory of one node only; without reclaim, as other nodes may have memory. Linux: gfp_exact_node(). */
static unsigned exact(const struct sy__slab_cache *cache, unsigned flags)
{
	if (!cache->many_nodes || flags & SY_THISNODE)
		return flags;
	return flags | SY_THISNODE | SY_NO_RECLAIM;
}

/* Fills an empty array with up to `wanted` objects of the node's slabs; returns how many are still wanted. With the node's lock
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

/* Fills an empty array from the node; returns how many objects are still wanted. In the slot's local section. */
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

/* Moves up to `wanted` objects of a new slab to the slot's array, and takes one; NULL: no memory. Like Linux, takes no more than the
 * batch still wants. */
static void *alloc_from_pages(struct sy__slab_cache *cache, unsigned slot, unsigned flags, uint32_t wanted)
{
	struct sy__slab_array *own = sy__slab_own(cache, slot);
	struct sy__slab_slab *slab = sy__slab_new(cache, slot, exact(cache, flags), own->node);
	struct sy__slab_node *node = &cache->nodes[own->node];
	void *object = NULL;

	if (!slab)
		return NULL;
	sy__local_begin(slot);
	sy__lock(&node->lock);
	if (sy__likely(!own->avail))
		own->avail = sy__slab_take_new(cache, node, slab, own->objects, wanted);
	else /* the array was filled while the page allocator worked */
		sy__slab_count_in(node, cache, slab);
	sy__unlock(&node->lock);
	pop(cache, own, &object);
	sy__local_end(slot);
	return object;
}

/* Fills the slot's array and takes an object from it. Linux: cache_alloc_refill(). */
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
	pop(cache, own, &object);
	sy__local_end(slot);
	return object ? object : alloc_from_pages(cache, slot, flags, wanted);
}

/* Takes one object of a node's slabs. */
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

/* Takes one object of a new slab, on any node that the flags permit. */
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

/* Takes an object of any node, the nearest one first; then grows anywhere, with reclaim. Linux: fallback_alloc(). */
static void *alloc_anywhere(struct sy__slab_cache *cache, unsigned slot, unsigned flags)
{
	unsigned nodes = cache->cache.heap->nodes, nearest = sy__slot_node(cache->cache.heap, slot);
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
	return object && flags & SY_ZERO ? sy__zeroed(&cache->cache, object) : object;
}

/* ---- Freeing off the fast path -------------------------------------------------------------------------------- */

/* Moves the batch at the bottom of a full array to the shared array, as far as that has room, or else to the slabs; during a
 * contraction, everything. In the slot's local section. Linux: cache_flusharray(). */
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
	if (sy__unlikely(own->avail && own->objects[own->avail - 1] == object)) {
		sy__local_end(slot);
		sy__bug(cache->cache.heap, SY_BUG_DOUBLE_FREE, object);
		return;
	}
	if (own->avail == own->limit)
		flush(cache, own, surplus);
	own->objects[own->avail++] = object;
	sy__local_end(slot);
}

/* An object of another node than the slot's: to the alien array, or to its slab. */
static SY__COLD void free_alien(struct sy__slab_cache *cache, struct sy__slab_node *near, unsigned home, void *object,
                                struct sy_list *surplus)
{
	if (near->aliens) {
		struct sy__slab_alien *alien = &near->aliens[home];

		sy__lock(&alien->lock);
		if (alien->array->avail == alien->array->limit)
			sy__slab_drain_alien(cache, alien->array, surplus);
		alien->array->objects[alien->array->avail++] = object;
		sy__unlock(&alien->lock);
	} else {
		free_home(cache, home, object, surplus);
	}
}

/* To the slot's array; or to the slab, if there is no memory for an array. */
static void free_near(struct sy__slab_cache *cache, unsigned slot, void *object, struct sy_list *surplus)
{
	if (sy__unlikely(!sy__slab_own(cache, slot)->limit))
		sy__slab_equip(cache, slot);
	if (sy__slab_own(cache, slot)->limit)
		free_to_array(cache, slot, object, surplus);
	else
		free_home(cache, (unsigned)sy__slab_own(cache, slot)->node, object, surplus);
}

static SY__OUT_OF_LINE void free_slow(struct sy__slab_cache *cache, unsigned slot, void *object)
{
	unsigned near = (unsigned)sy__slab_own(cache, slot)->node;
	unsigned home = cache->many_nodes ? sy__page_node(sy__page_of(cache->cache.heap, object)) : near;
	struct sy_list surplus;

	sy__count_slow(cache->cache.heap, &cache->cache.heap->counters.slow_frees);
	if (sy__unlikely(!sy__slab_has(cache, sy__head_of(cache->cache.heap, object), object))) {
		sy__bug_free(cache->cache.heap, object);
		return;
	}
	sy__list_init(&surplus);
	if (sy__likely(home == near))
		free_near(cache, slot, object, &surplus);
	else
		free_alien(cache, &cache->nodes[near], home, object, &surplus);
	sy__slab_destroy(cache, slot, &surplus);
}

/* ---- The policy ----------------------------------------------------------------------------------------------- */

/* Linux: KMALLOC_SHIFT_LOW is 5, and ARCH_KMALLOC_FLAGS is SLAB_HWCACHE_ALIGN. */
static bool slab_heap_init(struct sy_heap *heap)
{
	sy__slab_start_reaping(heap);
	if (heap->threads && heap->nodes > 1) {
		heap->kfree_this_slot = sy__this_slot_kfree;
		heap->free_this_slot = sy__this_slot_free;
	}
	return sy__kmalloc_create(heap, &sy__slab_heap(heap)->kmalloc, heap->tunables[SLAB_CLASSES], SY__KMALLOC_ALL_TYPES, 32, SY_CACHE_HWCACHE_ALIGN);
}

static size_t slab_usable_size(struct sy_heap *heap, const void *object)
{
	struct sy_page *page = sy__head_of(heap, object);

	return sy__page_is_large(page) ? sy__large_usable(page) : sy__slab_slab(page)->cache->cache.object_size;
}

static const struct sy_tunable tunables[] = {
	[SLAB_LIMIT] = { "limit", SY_TUNABLE_AUTO, 1, SY__SLAB_MOST_LIMIT, NULL, false,
	                 "objects in a CPU's array at most; auto: 120, fewer for objects above 256 bytes" },
	[SLAB_BATCHCOUNT] = { "batchcount", SY_TUNABLE_AUTO, 1, SY__SLAB_MOST_LIMIT, NULL, false,
	                      "objects moved at once to or from a CPU's array, at most its limit; auto: half of it" },
	[SLAB_SHARED] = { "shared", SY_TUNABLE_AUTO, 0, SY__SLAB_MOST_SHARED, NULL, false,
	                  "batches in the array that a node's CPUs share; auto: 8 for objects up to a page, 0 with one CPU" },
	[SLAB_ALIEN] = { "alien", 1, 0, 1, SY__OFF_ON, false,
	                 "collect objects freed on another node than theirs, and send them home together" },
	[SLAB_COLOUR] = { "colour", 1, 0, 1, SY__OFF_ON, false, "let slabs start their objects on different cache lines" },
	[SLAB_MAX_ORDER] = { "max_order", 1, 0, SY_MAX_ORDER, NULL, false,
	                          "order from which slabs do not grow to waste less (pages: 2^order)" },
	[SLAB_MERGE] = { "merge", 1, 0, 1, SY__OFF_ON, false, "let caches of alike objects share their slabs" },
	[SLAB_CLASSES] = { SY__KMALLOC_CLASSES_TUNABLE },
};

static const struct sy_preset presets[] = {
	{ "paper", "limit=1,batchcount=1,shared=0,alien=off",
	  "as Ferreira et al. and Garcarz describe it: each node's lists of slabs; a CPU's array has room for one object" },
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
	.presets = presets,
	.preset_count = sizeof(presets) / sizeof(presets[0]),
	.heap_bytes = sizeof(struct sy__slab_heap),
	.cache_bytes = sizeof(struct sy__slab_cache),
	.cache_alloc = entry_alloc,
	.cache_free = entry_free,
	.kmalloc = entry_kmalloc,
	.kfree = entry_kfree,
	.this_slot = &entries_this_slot,
	.quick = &entries_quick,
	.heap_init = slab_heap_init,
	.cache_merge = sy__slab_merge,
	.cache_init = sy__slab_cache_init,
	.cache_fini = sy__slab_cache_fini,
	.usable_size = slab_usable_size,
	.shrink = sy__slab_shrink,
	.drain = sy__slab_drain,
	.grace_passed = sy__slab_grace_passed,
	.scavenge = sy__slab_scavenge,
	.tick = sy__slab_tick,
	.counts = sy__slab_counts,
	.geometry = sy__slab_geometry,
	.check = sy__slab_check,
	.serves_classes = true,
	.walk = sy__slab_walk,
};
