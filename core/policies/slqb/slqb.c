/*
 * SLQB: slabs that belong to a CPU, behind its queue of free objects.
 *
 * After the allocator that Nick Piggin proposed for Linux in 2008 and 2009 (Corbet 2008; Ferreira et al. 2015,
 * section 3.5), as that section and the patch series describe it. SLAB keeps queues of free objects per CPU but
 * shares the slabs behind them; SLUB gives each CPU a slab but keeps no queue. SLQB has both: each CPU slot owns a list of
 * slabs, and a freelist in front of them. A lock is taken only to give objects back to another CPU, and that is done in
 * batches.
 *
 * Fast path: pop and push below. The freelist is a stack, linked through the free objects. An allocation pops it; a free
 * pushes onto it any object of the slot's memory node, whoever owns the slab: no lock, no atomic. size_entries_this_slot.h makes
 * all calls of the two.
 *
 * An allocation that finds the freelist empty looks, in this order, at
 *
 *   remote_free   objects of the slot's slabs that other slots freed and sent back, once they are at least
 *                 remote_free_check: all of them become the freelist;
 *   partial       the slot's slabs with free objects: one object of the first slab is taken, and the freelist stays empty.
 *                 In a heap of threads, where slow calls are expensive, the freelist gets the rest of that slab;
 *   pages         a new slab, partial from now on.
 *
 * A free after which the freelist has more than hiwater objects flushes flushbatch of them, the newest first. An object of the
 * slot's own slab goes back to the slab, which becomes partial if it was full, and ends if no object is out any more. An object
 * of another owner's slab goes to the slot's rlist; objects of other memory nodes go there at once. An rlist has
 * objects for one owner only, as in Piggin's patch. It is sent to that owner when it has freebatch objects, or when an object
 * for another owner comes. Ferreira et al. describe it otherwise: an rlist gathers freebatch objects, whatever their owners, and is
 * then gone through, each object going to its owner. The tunable rlist=mixed (the preset paper) does that.
 *
 * Nodes. Requests for memory of another node go to that node's own list, which owns slabs as a slot does. A new slab that
 * lies on another node than the nearest goes to that node's list, too.
 *
 * Every 3 seconds each slot is trimmed (slabs.c): it takes what others sent, flushes a batch and sends its rlist, so that
 * idle queues become empty with time. That is slow, and queues are long: hiwater is 1024 objects for most sizes
 * (geometry.c). Ferreira et al. found that SLQB takes by far the most memory.
 *
 * In heaps of threads freelists are short during a contraction (contraction.h), as each object on them keeps a slab. A slot that
 * flushes also puts the objects back that others sent. If a slot does not do so for long, or if its slabs have halved, another
 * thread does it for all slots (sy__slqb_scavenge).
 *
 * Differences from the patch. General allocation has the size classes of the other policies, and pages beyond 8192 bytes; the
 * patch had caches up to megabytes. A trim puts the objects that it takes over in front of the freelist; the patch put them at
 * the end.
 *
 * Locks (level 2 of types.h), in this order: a node's lock, which protects its list and the slabs that it owns; a
 * list's remote_lock, for its remote_free. A slot's structure and the slabs that its list owns belong to the caller
 * in its local section. No lock is held while pages are taken or given back (but sy_heap.lock may be), and no local
 * section open.
 *
 * Invariants, verified by check.c: a slab belongs to one list, of its own node; it is among that list's partial
 * slabs if and only if it has free objects; out + length of its freelist = objects; every object on any list is in a
 * slab of the cache, at a multiple of the size; a freelist holds objects of its node only, remote_free and rlist only
 * those of their owner.
 *
 * More files: slabs.c (slabs, and moving objects), geometry.c (layout, thresholds), check.c.
 */
#include "../../bug.h"
#include "../../this_slot.h"
#include "slqb.h"

typedef struct sy__slqb_cache entry_cache;
typedef struct sy__slqb_list entry_own;

/* ---- The fast path -------------------------------------------------------------------------------------------- */

/*
 * Instructions of hot calls (docs/cost.md): kmem_cache_alloc 19, kmem_cache_free 33, kmalloc 28, kfree 42. No function is called. A free
 * reads the node in the page descriptor and counts down to the next slow call (push_this_slot). Before an object is handed out, pop
 * looks whether the freelist leads into the heap's memory.
 */
static inline void *pop_first(const struct sy__slqb_cache *cache, struct sy__slqb_list *list)
{
	void *object = list->freelist;

	list->freelist = *sy__slqb_next(cache, object);
	list->count--;
	return object;
}

static inline bool pop(const struct sy__slqb_cache *cache, struct sy__slqb_list *list, void **object)
{
	if (sy__unlikely(!sy__slqb_leads_on(cache, list->freelist)))
		return false;
	*object = pop_first(cache, list);
	return true;
}

static inline void push_first(const struct sy__slqb_cache *cache, struct sy__slqb_list *list, void *object)
{
	*sy__slqb_next(cache, object) = list->freelist;
	list->freelist = object;
	list->count++;
}

/* A list that was never used has room for nothing. What is the first object already is left to free_slow, which tells. */
static inline bool push(const struct sy__slqb_cache *cache, struct sy__slqb_list *own, const struct sy_page *page, void *object)
{
	if (sy__unlikely(own->count >= own->hiwater || sy__page_node(page) != own->node || own->freelist == object))
		return false;
	push_first(cache, own, object);
	return true;
}

/* ---- Calls ---------------------------------------------------------------------------------------------------- */

static SY__COLD void *alloc_slow(struct sy__slqb_cache *cache, unsigned slot, unsigned flags, int node);
static SY__COLD void free_slow(struct sy__slqb_cache *cache, unsigned slot, void *object);

static inline struct sy__slqb_list *own_of(const struct sy__slqb_cache *cache, unsigned slot)
{
	return &sy__slqb_look(cache, slot)->list;
}

static inline struct sy__slqb_list *own_at(const struct sy__slqb_cache *cache, ptrdiff_t slot_offset)
{
	return &((struct sy__slqb_slot *)(void *)((char *)cache->slots + slot_offset))->list;
}

static inline bool suits(const struct sy__slqb_list *own, unsigned flags, int node)
{
	(void)flags;
	return sy__likely(node == SY_ANY_NODE) || node == own->node;
}

/* One fast free in SLOW_EACH becomes a slow call. A freelist could serve a program for ever, but slow calls do what is due by time:
 * trimming, and giving memory back. */
#define SLOW_EACH 256

static inline bool push_this_slot(const struct sy__slqb_cache *cache, struct sy__slqb_list *own, const struct sy_page *page, void *object)
{
	struct sy__slqb_slot *slot = sy__entry(own, struct sy__slqb_slot, list);

	if (sy__unlikely(sy__page_node(page) != own->node || own->count >= own->hiwater || own->freelist == object || slot->fast_frees++ % SLOW_EACH == 0))
		return false;
	push_first(cache, own, object);
	return true;
}

static inline const struct sy__kmalloc *entry_sizes(struct sy_heap *heap)
{
	return &sy__slqb_heap(heap)->kmalloc;
}

static inline struct sy__slqb_cache *cache_in(struct sy_page *page)
{
	return sy__slqb_slab(page)->list->cache;
}

static inline bool is_start(const struct sy__slqb_cache *cache, struct sy_page *head, size_t distance)
{
	return sy__divides(cache->divider, distance - sy__slqb_slab(head)->start);
}

static inline bool is_second(const struct sy__slqb_cache *cache, const struct sy__slqb_list *own, const void *object)
{
	return sy__slqb_leads_on(cache, own->freelist) && *sy__slqb_next(cache, own->freelist) == object;
}

#include "../size_entries_this_slot.h"

/* ---- Allocation off the fast path ----------------------------------------------------------------------------- */

static void *take(struct sy__slqb_cache *cache, struct sy__slqb_list *list)
{
	return cache->cache.heap->threads ? sy__slqb_take_slab(cache, list) : sy__slqb_take(cache, list);
}

/* Takes an object of a list: of its freelist, remote_free, or partial slabs. By its owner. */
static void *alloc_from_list(struct sy__slqb_cache *cache, struct sy__slqb_slot *own, struct sy__slqb_list *list,
                             struct sy_list *ended)
{
	if (sy__unlikely(list->freelist ? !sy__holds(cache->cache.heap, list->freelist) : list->count))
		sy__slqb_lose(cache, list, list->freelist);
	if (!list->freelist && __atomic_load_n(&list->remote_free_check, __ATOMIC_RELAXED)) {
		sy__slqb_claim(cache, list);
		if (list->count > list->hiwater)
			sy__slqb_flush(cache, own, list, cache->flushbatch, ended);
	}
	return list->freelist ? pop_first(cache, list) : take(cache, list);
}

static void *alloc_from_slot(struct sy__slqb_cache *cache, unsigned slot)
{
	struct sy__slqb_slot *own = sy__slqb_slot(cache, slot);
	struct sy_list ended;
	void *object;

	sy__list_init(&ended);
	sy__local_begin(slot);
	object = alloc_from_list(cache, own, &own->list, &ended);
	sy__local_end(slot);
	sy__slqb_end(cache, slot, &ended);
	return object;
}

static void *alloc_from_node(struct sy__slqb_cache *cache, unsigned slot, unsigned index)
{
	struct sy__slqb_node *node = &cache->nodes[index];
	struct sy_list ended;
	void *object;

	sy__list_init(&ended);
	sy__lock(&node->lock);
	object = alloc_from_list(cache, sy__slqb_slot(cache, slot), &node->list, &ended);
	sy__unlock(&node->lock);
	sy__slqb_end(cache, slot, &ended);
	return object;
}

/* Gives the slot a new slab, and takes an object of it. */
static void *adopt_by_slot(struct sy__slqb_cache *cache, unsigned slot, struct sy__slqb_slab *slab)
{
	struct sy__slqb_list *own = &sy__slqb_slot(cache, slot)->list;
	void *object;

	sy__local_begin(slot);
	sy__slqb_adopt(own, slab);
	object = take(cache, own);
	sy__local_end(slot);
	return object;
}

/* The same for the list of the slab's node. */
static void *adopt_by_node(struct sy__slqb_cache *cache, struct sy__slqb_slab *slab)
{
	struct sy__slqb_node *node = &cache->nodes[sy__page_node(sy__slqb_page(slab))];
	void *object;

	sy__lock(&node->lock);
	sy__slqb_adopt(&node->list, slab);
	object = take(cache, &node->list);
	sy__unlock(&node->lock);
	return object;
}

static void *alloc_near(struct sy__slqb_cache *cache, unsigned slot, unsigned flags)
{
	struct sy__slqb_list *own = &sy__slqb_slot(cache, slot)->list;
	void *object = alloc_from_slot(cache, slot);
	struct sy__slqb_slab *slab;

	if (object)
		return object;
	slab = sy__slqb_new_slab(cache, slot, flags, own->node);
	if (!slab)
		return alloc_from_node(cache, slot, (unsigned)own->node);
	return sy__page_node(sy__slqb_page(slab)) == own->node ? adopt_by_slot(cache, slot, slab) : adopt_by_node(cache, slab);
}

static void *alloc_on_node(struct sy__slqb_cache *cache, unsigned slot, unsigned flags, unsigned node)
{
	void *object = alloc_from_node(cache, slot, node);
	struct sy__slqb_slab *slab;

	if (object)
		return object;
	slab = sy__slqb_new_slab(cache, slot, flags, (int)node);
	return slab ? adopt_by_node(cache, slab) : NULL;
}

static void *alloc_somewhere(struct sy__slqb_cache *cache, unsigned slot, unsigned flags, int node)
{
	if (node == SY_ANY_NODE || node == sy__slqb_slot(cache, slot)->list.node)
		return alloc_near(cache, slot, flags);
	if (node >= 0 && (unsigned)node < cache->cache.heap->nodes)
		return alloc_on_node(cache, slot, flags, (unsigned)node);
	return flags & SY_THISNODE ? NULL : alloc_near(cache, slot, flags); /* there is no such node */
}

static SY__COLD void *alloc_slow(struct sy__slqb_cache *cache, unsigned slot, unsigned flags, int node)
{
	void *object;

	sy__count_slow(cache->cache.heap, &cache->cache.heap->counters.slow_allocs);
	object = alloc_somewhere(cache, slot, flags, node);
	return object && flags & SY_ZERO ? sy__zeroed(&cache->cache, object) : object;
}

/* ---- Freeing off the fast path -------------------------------------------------------------------------------- */

/* Frees an object of the slot's node that push refused: onto a full freelist, or the first one of a slot that never used the cache. */
static void free_to_list(struct sy__slqb_cache *cache, unsigned slot, void *object)
{
	struct sy__slqb_slot *own = sy__slqb_slot(cache, slot);
	struct sy_list ended;
	bool over;

	sy__list_init(&ended);
	sy__local_begin(slot);
	push_first(cache, &own->list, object);
	over = own->list.count > own->list.hiwater;
	if (over)
		sy__slqb_flush_full(cache, own, &ended);
	sy__local_end(slot);
	if (!over)
		return;
	sy__count_slow(cache->cache.heap, &cache->cache.heap->counters.slow_frees);
	sy__slqb_end(cache, slot, &ended);
}

/* An object of another node. */
static void free_away(struct sy__slqb_cache *cache, unsigned slot, struct sy_page *page, void *object)
{
	sy__count_slow(cache->cache.heap, &cache->cache.heap->counters.slow_frees);
	sy__local_begin(slot);
	sy__slqb_send_away(cache, sy__slqb_slot(cache, slot), sy__slqb_slab(page)->list, object);
	sy__local_end(slot);
}

static SY__COLD void free_slow(struct sy__slqb_cache *cache, unsigned slot, void *object)
{
	struct sy_page *page = sy__head_of(cache->cache.heap, object);

	if (sy__unlikely(!sy__slqb_has(cache, page, object)))
		sy__bug_free(cache->cache.heap, object);
	else if (sy__unlikely(sy__slqb_slot(cache, slot)->list.freelist == object))
		sy__bug(cache->cache.heap, SY_BUG_DOUBLE_FREE, object);
	else if (sy__page_node(page) == sy__slqb_slot(cache, slot)->list.node)
		free_to_list(cache, slot, object);
	else
		free_away(cache, slot, page, object);
}

/* ---- The policy ----------------------------------------------------------------------------------------------- */

#define TRIM_PERIOD (3 * SY__SECOND)

static bool slqb_heap_init(struct sy_heap *heap)
{
	sy__visits_start(heap, &sy__slqb_heap(heap)->visits, TRIM_PERIOD);
	return sy__kmalloc_create(heap, &sy__slqb_heap(heap)->kmalloc, heap->tunables[SLQB_CLASSES], SY__KMALLOC_ALL_TYPES, 0, SY_CACHE_HWCACHE_ALIGN);
}

static size_t slqb_usable_size(struct sy_heap *heap, const void *object)
{
	struct sy_page *page = sy__head_of(heap, object);

	return sy__page_is_large(page) ? sy__large_usable(page) : sy__slqb_slab(page)->list->cache->cache.object_size;
}

static const char *const rlist_names[] = { "owner", "mixed" };

static const struct sy_tunable tunables[] = {
	[SLQB_HIWATER] = { "hiwater", SY_TUNABLE_AUTO, 0, SY__SLQB_MOST, NULL, false,
	                   "objects on a CPU's freelist beyond which some are flushed; auto: 4 times freebatch" },
	[SLQB_FLUSHBATCH] = { "flushbatch", SY_TUNABLE_AUTO, 1, SY__SLQB_MOST, NULL, false,
	                      "objects flushed at once; auto: freebatch" },
	[SLQB_FREEBATCH] = { "freebatch", SY_TUNABLE_AUTO, 1, SY__SLQB_MOST, NULL, false,
	                     "objects for another CPU's slabs that are sent together; auto: 64 pages' worth, 256 at most" },
	[SLQB_REMOTE_FREE_CHECK] = { "remote_free_check", SY_TUNABLE_AUTO, 1, SY__SLQB_MOST, NULL, false,
	                             "objects sent by other CPUs that are taken over together; auto: freebatch" },
	[SLQB_RLIST] = { "rlist", 0, 0, 1, rlist_names, false,
	                 "objects for other CPUs that gather before they are sent: of one owner at a time, or of several (mixed)" },
	[SLQB_COLOUR] = { "colour", 1, 0, 1, SY__OFF_ON, false, "let slabs start their objects on different cache lines" },
	[SLQB_CLASSES] = { SY__KMALLOC_CLASSES_TUNABLE },
};

static const struct sy_preset presets[] = {
	{ "paper", "rlist=mixed", "as Ferreira et al. describe it: freebatch objects gather, whatever their owners" },
};

extern const struct sy_policy sy__slqb;

const struct sy_policy sy__slqb = {
	.name = "slqb",
	.summary = "slabs owned by CPUs behind queues of free objects, sent home in batches",
	.paper = "Ferreira et al., An Experimental Comparison Analysis of Kernel-level Memory Allocators, SAC 2015, section 3.5; "
	         "Corbet, SLQB - and then there were four, LWN 2008; "
	         "Piggin's patches to Linux 2.6",
	.tunables = tunables,
	.tunable_count = sizeof(tunables) / sizeof(tunables[0]),
	.presets = presets,
	.preset_count = sizeof(presets) / sizeof(presets[0]),
	.heap_bytes = sizeof(struct sy__slqb_heap),
	.cache_bytes = sizeof(struct sy__slqb_cache),
	.cache_alloc = entry_alloc,
	.cache_free = entry_free,
	.kmalloc = entry_kmalloc,
	.kfree = entry_kfree,
	.this_slot = &entries_this_slot,
	.quick = &entries_quick,
	.heap_init = slqb_heap_init,
	.cache_init = sy__slqb_cache_init,
	.cache_fini = sy__slqb_cache_fini,
	.usable_size = slqb_usable_size,
	.shrink = sy__slqb_shrink,
	.drain = sy__slqb_drain,
	.grace_passed = sy__slqb_grace_passed,
	.scavenge = sy__slqb_scavenge,
	.tick = sy__slqb_tick,
	.counts = sy__slqb_counts,
	.geometry = sy__slqb_geometry,
	.check = sy__slqb_check,
	.serves_classes = true,
	.walk = sy__slqb_walk,
};
