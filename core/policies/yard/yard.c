/*
 * yard: slabs with owners.
 *
 * slabyard's own allocator. A slab is a block of pages cut into objects of one size, as in SLUB: free objects are linked through
 * themselves, and all other state of a slab is in its page's descriptor. But here a slab has an owner, a CPU slot, as a page of mimalloc
 * has (Leijen, Zorn and de Moura 2019): the owner frees into all its slabs by plain stores, and allocates from one after the other. Any
 * other slot gathers the objects it frees on its own remote list, and sends them home in batches, as in snmalloc (Liétar et al. 2019);
 * until then it may hand them out again, as from the sheaves of Linux 6.18. That is the only way home.
 *
 * A slab is                                             and leaves that state when
 *
 *   active    one slot allocates from it                it has no free object: full
 *   waiting   owned, and some object is free            its turn comes: active; its last object is freed: empty
 *   empty     owned, and no object is in use            its turn comes: active; there are too many: to its node, or the pages
 *   full      nobody's, and on no list                  its last owner frees into it: waiting; another one does: partial
 *   partial   nobody's, on the list of its node         a slot takes it: active; it is empty and too many: to the pages
 *
 * A free object is                                      on
 *
 *   ready       next to be handed out                   the slot's freelist; only objects of the active slab
 *   local       freed by the slab's owner               the slab's local list
 *   pushed      freed by others, and home               the list in the slab's word (../node.h)
 *   remote      freed by others, not home yet           the remote list of the slot that freed it: to its slab it is in use
 *   uncarved    never used, at the slab's end           none
 *   given back  in a page without memory                none (../node_trim.c)
 *
 * A constructed object has been constructed in each of these states, and keeps what its last client left.
 *
 * Fast path. pop and push below, and for threads fast.h. An allocation takes an object off the freelist. Where the caller names the slot, a
 * free into the active slab goes to the freelist too. With threads only the object handed out last does; any other goes to the local list
 * of its slab, active or not: in a class with several slabs a free meets the active one at random, and a branch on that costs more than it
 * saves. Nothing shared is written.
 *
 * An allocation looks in this order: the slot's freelist; its remote list, if that may serve; the active slab's local list, pushed and
 * uncarved objects; the waiting slabs, oldest first; the empty ones (up to here: owned.c); the list of the wanted node, or of the nearest;
 * other nodes' lists, if any node will do; the page allocator. Frees are in remote.c.
 *
 * Locks (level 2 of types.h). A slot's state, with the local lists of its slabs, belongs to the code in its local section. A slab's word is
 * changed by compare-and-exchange. The lock of a node covers its list and figures; it is taken when a slab joins or leaves the list, is
 * made or ends. Pages are taken with no lock held and outside local sections, as that may run this cache's own shrink; they are given back
 * without a lock.
 *
 * Invariants, verified by check.c: owned slabs are exactly those of slots, and bear their slot's mark; a slab that nobody owns is
 * on its node's list if and only if it has free objects; in use + pushed + given back = objects, where "in use" has what is
 * ready, local, uncarved or remote; every free object is in its slab, at a multiple of the size, on one list, once. Hardened, a partial
 * slab may have uncarved objects, as to link them would touch their memory; they are then not in use.
 */
#include "yard.h"

#include "../../this_slot.h"

#define SPARE_BYTES ((size_t)4 << 20) /* of empty slabs that a slot keeps in a cache because it needs them again and again */

typedef struct sy__yard_cache entry_cache;
typedef struct sy__yard_slot entry_own;
#define own_of sy__yard_slot
#define own_at sy__yard_own_at
#define cache_in sy__yard_cache_of
#define push_this_slot push
#define free_slow sy__yard_free_slow
#define entry_sizes sy__yard_sizes

/* ---- The fast path, on a slot that the caller names --------------------------------------------------------------------- */

static inline bool pop(const struct sy__yard_cache *cache, struct sy__yard_slot *own, void **object)
{
#ifdef SY_HARDENED
	if (sy__ring_serves(&own->ring))
		return (*object = sy__ring_pop(&own->ring));
#endif
	if (sy__unlikely(!own->freelist))
		return false;
	*object = sy__yard_pop(cache, &own->freelist, cache->base.offset);
	return *object;
}

/* Onto the freelist, if the object is of the active slab; onto the local list of a waiting slab, if that does not become empty; or onto the
 * remote list. False also if the object is already first on that list. */
static inline bool push(const struct sy__yard_cache *cache, struct sy__yard_slot *own, const struct sy_page *page, void *object)
{
	struct sy_page *head = sy__page_head((struct sy_page *)page);
	uint32_t owner, mark;

	if (sy__likely(own->slab == head)) {
		if (sy__unlikely(own->freelist == object))
			return false;
		sy__node_link(&cache->base, object, own->freelist);
		own->freelist = object;
		own->bottom = 0;
		return true;
	}
	owner = sy__yard_owner(sy__node_slab(head));
	mark = sy__yard_mark(cache, own);
	if (owner != mark)
		return owner != (mark | SY__YARD_FULL) && sy__yard_push_remote(cache, own, object, cache->base.offset);
	if (sy__unlikely(sy__node_slab(head)->local_objects + 1u == sy__yard_in_use_now(sy__node_slab(head))) ||
	    sy__unlikely(sy__yard_local(sy__node_slab(head))->freelist == object))
		return false;
	sy__yard_push_local(cache, head, object, cache->base.offset);
	return true;
}

static inline bool suits(const struct sy__yard_slot *own, unsigned flags, int node)
{
	(void)flags;
	return node == SY_ANY_NODE || node == own->node;
}

static void *alloc_slow(struct sy__yard_cache *cache, unsigned slot, unsigned flags, int node);

#include "../size_entries.h"

/* For a cache of a heap of threads whose layout is known. */
void sy__yard_choose_entries(struct sy__yard_cache *cache)
{
	if (cache->base.offset) {
		cache->base.cache.alloc_this_slot = entry_alloc_this_slot;
		cache->base.cache.free_this_slot = entry_free_this_slot;
	}
}

/* ---- Allocation off the fast path --------------------------------------------------------------------------------------- */

/* The first slab of a node's list becomes the active one of a slot that has none. With the node's lock held. */
static void own_partial(struct sy__yard_cache *cache, struct sy__yard_slot *own, struct sy__node *node)
{
	struct sy_page *page = sy__node_first_partial(&cache->base, node);
	struct sy__node_slab *slab = sy__node_slab(page);
	uint64_t old = sy__node_freeze(slab);

	*sy__yard_local(slab) = (struct sy__yard_local){ NULL, 0, 0 };
	slab->local_objects = 0;
	sy__yard_activate(cache, own, page);
	own->uncarved = (uint16_t)sy__node_unlinked(page);
	sy__yard_fill(cache, own, sy__word_first(old, sy__page_address(cache->base.cache.heap, page)), sy__word_objects(old) - sy__word_in_use(old));
}

/* Tries `nodes` nodes in order of number from `first` on, as no distances are known here. It looks for slabs before it takes a lock, as
 * most lists are empty when slots run out; relaxed, since it looks again under the lock. */
static bool take_partial(struct sy__yard_cache *cache, struct sy__yard_slot *own, unsigned first, unsigned nodes)
{
	for (unsigned i = 0; i < nodes && !own->slab; i++) {
		struct sy__node *node = &cache->base.nodes[(first + i) % cache->base.cache.heap->nodes];

		if (!__atomic_load_n(&node->partial_slabs, __ATOMIC_RELAXED))
			continue;
		sy__lock(&node->lock);
		if (node->partial_slabs)
			own_partial(cache, own, node);
		sy__unlock(&node->lock);
	}
	return own->slab;
}

/* Takes an object from the slot's slabs, or from slabs of the nodes. */
static void *alloc_from_slabs(struct sy__yard_cache *cache, unsigned slot, int node)
{
	struct sy__yard_slot *own = sy__yard_slot(cache, slot);
	unsigned nearest = node == SY_ANY_NODE ? sy__slot_node(cache->base.cache.heap, slot) : (unsigned)node;
	void *object;

	sy__local_begin(slot);
	own->cache = cache;
	object = sy__yard_remote_serves(cache, own) ? sy__yard_pop(cache, &own->remote, cache->base.offset) : sy__yard_refill(cache, slot, own, node);
	if (!object && take_partial(cache, own, nearest, node == SY_ANY_NODE ? cache->base.cache.heap->nodes : 1))
		object = sy__yard_refill(cache, slot, own, node);
	sy__local_end(slot);
	return object;
}

/* The slot has got a slab from the page allocator. If it gave up an empty one before, it may keep more of them from now on. */
static void spare_more(struct sy__yard_slot *own, const struct sy_page *page)
{
	unsigned more = 2u * own->spare + 1, most = (unsigned)(SPARE_BYTES >> SY_PAGE_SHIFT >> sy__page_order(page));

	if (!own->missed)
		return;
	own->missed--;
	most = most < SY__YARD_MOST_SPARE ? most : SY__YARD_MOST_SPARE;
	own->spare = (uint8_t)(more < most ? more : most);
}

static void *alloc_from_pages(struct sy__yard_cache *cache, unsigned slot, unsigned flags, int node)
{
	struct sy__yard_slot *own = sy__yard_slot(cache, slot);
	struct sy_page *page = sy__yard_new_slab(cache, slot, flags, node);
	void *object;

	if (!page)
		return NULL;
	sy__local_begin(slot);
	/* Another caller may have used the slot while the page allocator worked. */
	if (own->slab)
		sy__yard_deactivate(cache, slot, own);
	sy__yard_activate(cache, own, page);
	own->uncarved = (uint16_t)sy__node_objects(page);
	if (sy__retains(cache->base.cache.heap))
		spare_more(own, page);
	if (cache->base.cache.constructor)
		sy__yard_carve(cache, own, true);
	object = sy__yard_refill(cache, slot, own, SY_ANY_NODE);
	sy__local_end(slot);
	return object;
}

static SY__OUT_OF_LINE void *alloc_slow(struct sy__yard_cache *cache, unsigned slot, unsigned flags, int node)
{
	void *object;

	sy__count_slow(cache->base.cache.heap, &cache->base.cache.heap->counters.slow_allocs);
	if (!node_will_do(cache->base.cache.heap, flags, &node))
		return NULL;
	object = alloc_from_slabs(cache, slot, node);
	if (!object)
		object = alloc_from_pages(cache, slot, flags, node);
	return object ? handed_out(cache, flags, object) : NULL;
}

/* ---- The policy --------------------------------------------------------------------------------------------------------- */

static bool yard_heap_init(struct sy_heap *heap)
{
	struct sy__yard_heap *yard = sy__yard_heap(heap);

	heap->never_reclaims = sy__keeps_apart(heap);
	if (!sy__kmalloc_create(heap, &yard->kmalloc, heap->tunables[YARD_CLASSES], SY__KMALLOC_ALL_TYPES, 0, 0))
		return false;
	for (unsigned i = 0; heap->threads && i < SY__KMALLOC_SMALL / 8; i++)
		yard->small[i] = (void *)sy__node_cache(yard->kmalloc.small[i + 1])->slots;
	return !heap->threads || sy__page_map_create(&yard->page_map, heap);
}

static void yard_heap_fini(struct sy_heap *heap)
{
	if (heap->threads)
		sy__page_map_destroy(&sy__yard_heap(heap)->page_map);
}

static bool yard_reservation_changes(struct sy_heap *heap, size_t pages)
{
	return !heap->threads || sy__page_map_resize(&sy__yard_heap(heap)->page_map, pages);
}

static const char *const harden[] = SY__HARDEN_WORDS;

static const struct sy_tunable tunables[] = {
	[YARD_MIN_ORDER] = { "min_order", 0, 0, SY_MAX_ORDER, NULL, false, "order of the smallest slabs (pages: 2^order)" },
	[YARD_MAX_ORDER] = { "max_order", SY_TUNABLE_AUTO, 0, SY_MAX_ORDER, NULL, false,
	                     "order of the largest slabs, where an object fits in them (pages: 2^order); auto: 3, with threads 6" },
	[YARD_MIN_OBJECTS] = { "min_objects", 0, 0, SY__WORD_MOST_OBJECTS, NULL, false,
	                       "objects that a slab should hold at least; 0: by size" },
	[YARD_MERGE] = { "merge", 1, 0, 1, SY__OFF_ON, false, "let caches of alike objects share their slabs" },
	[YARD_REMOTE] = { "remote", SY_TUNABLE_AUTO, 1, 65534, NULL, false,
	                  "objects of others' slabs that a CPU or thread gathers before they go home; auto: 32 KiB, 4 to 128" },
	[YARD_CLASSES] = { SY__KMALLOC_CLASSES_TUNABLE },
	[YARD_HARDEN] = { SY__HARDEN_TUNABLE(harden) },
};

extern const struct sy_policy sy__yard, sy__hardened_yard;

const struct sy_policy sy__yard = {
	.name = "yard",
	.summary = "slabyard's own: slabs have owners, and what others free goes home in batches",
	.paper = "docs/allocators/yard.md",
	.tunables = tunables,
	.tunable_count = sizeof(tunables) / sizeof(tunables[0]),
	.heap_bytes = sizeof(struct sy__yard_heap),
	.threads_bytes = SY__KMALLOC_SMALL / 8 * sizeof(struct sy__yard_slot *),
	.cache_bytes = sizeof(struct sy__yard_cache),
	.cache_alloc = entry_alloc,
	.cache_free = entry_free,
	.kmalloc = entry_kmalloc,
	.kfree = entry_kfree,
	.this_slot = &sy__yard_this_slot,
#ifndef SY_HARDENED
	.hardened = SY__HARDENED(sy__hardened_yard),
	.quick = &entries_quick,
	.trim = sy__node_trim,
#endif
	.harden = YARD_HARDEN,
	.heap_init = yard_heap_init,
	.heap_fini = yard_heap_fini,
	.cache_merge = sy__yard_merge,
	.cache_init = sy__yard_cache_init,
	.cache_fini = sy__yard_cache_fini,
	.usable_size = sy__node_usable_size,
	.shrink = sy__yard_shrink,
	.scavenge = sy__yard_scavenge,
	.release_retained = sy__yard_release_retained,
	.drain = sy__yard_drain,
	.large_taken = sy__yard_found_by,
	.reservation_changes = yard_reservation_changes,
	.grace_passed = sy__node_grace_passed,
	.counts = sy__yard_counts,
	.geometry = sy__yard_geometry,
	.check = sy__yard_check,
	.serves_classes = true,
	.walk = sy__yard_walk,
};
