/*
 * SLUB: slabs without queues.
 *
 * After the allocator that Linux 6.1 builds from mm/yard.c (Ferreira et al. 2015, section 3.4). Where SLAB kept
 * arrays of free objects per CPU, SLUB gives a CPU a whole slab: allocating pops that slab's list of free objects,
 * and freeing pushes onto the list of the slab that the object is in. The only metadata are a free pointer in each
 * free object and 32 bytes in the page descriptor; 40 in heaps of threads.
 *
 * Fast path: yard_alloc and yard_free below. Where an object is asked of a slot with free objects, or given back to
 * the slot whose active slab it is in, nothing shared is read or written. (Where a kernel may be interrupted in the middle of a
 * call, it comes by quick_alloc and its like.) Instructions of a call by gcc -O3 on x86-64, by objdump: cache_alloc 15,
 * cache_free 20, kmalloc up to 192 bytes 27, kfree 22; no call, no lock, no atomic, no counter.
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
 * fewer than min_partial others, in heaps of threads a few more (nodes.c).
 *
 * An allocation therefore looks, in this order: at the slot's freelist, the active slab's own, the slot's partial
 * list, the list of the node that is asked for (else the nearest), the lists of other nodes if any will do and they
 * have more than min_partial, and the page allocator. Taking a slab from a node also takes others along for the
 * slot's partial list, until that has gained more than half its limit.
 *
 * Locks (level 2 of types.h). A slot's structure, the list of slabs that it keeps included, belongs to whoever is in its
 * local section. What a slab has free, how much of it is in use and whether a slot owns it is one word, changed by
 * compare-and-exchange (word.h, with the argument for each way of changing it). The lock of a node covers its list and
 * figures. A free takes it only when its slab may come onto that list or leave it; a free into a slab that slots own, or
 * that stays partial, takes no lock. No lock is held while pages are taken, and no local section either, as that may run
 * this cache's own shrink; pages are given back without a lock.
 *
 * In heaps of threads a slot owns what it has frozen: it frees into that by plain stores, its partial list has another limit, and
 * empty slabs are a list of their own (owned.c says how and why); and it keeps some objects of others' slabs that it is
 * given back (strays.c).
 *
 * Invariants, verified by check.c: frozen slabs are exactly those of slots; an unfrozen slab is on its node's list if and
 * only if it has free objects; in_use + length of the slab's freelist (+ what trim.c took off it) = objects, where an
 * active slab counts the objects on its slot's freelist as in use, any slab those that slots keep as strays, and an owned one
 * those that it holds itself; every free object is in its slab, at a multiple of the size, once.
 *
 * More files: here.c (fast paths on the caller's own slot), owned.c (what slots of threads own), strays.c (what
 * they keep of others' slabs), word.h (the word of a slab), slabs.c (its life), nodes.c (what nodes keep),
 * trim.c (pages in it that go), geometry.c (layout, orders, merging), check.c.
 */
#include "../../here.h"
#include "yard.h"

static SY__OUT_OF_LINE void free_slow(struct sy__yard_cache *cache, unsigned slot, void *object);

/* Out of the fast path's sight, so that it needs no stack frame. */
SY__COLD void *sy__yard_zeroed(const struct sy__yard_cache *cache, void *object)
{
	sy__fill(object, 0, cache->cache.object_size);
	return object;
}

/* ---- The fast path -------------------------------------------------------------------------------------------- */

static inline void *alloc(struct sy__yard_cache *cache, unsigned slot, unsigned flags, int node)
{
	struct sy__yard_slot *own = sy__yard_slot(cache, slot);
	void *object;

	sy__local_begin(slot);
	object = own->freelist;
	if (sy__unlikely(!object || (node != SY_ANY_NODE && node != own->node))) {
		sy__local_end(slot);
		return sy__yard_alloc_slow(cache, slot, flags, node);
	}
	own->freelist = *sy__yard_next(cache, object);
	sy__local_end(slot);
	if (sy__unlikely(flags & SY_ZERO))
		return sy__yard_zeroed(cache, object);
	return object;
}

static inline void free_object(struct sy__yard_cache *cache, unsigned slot, void *object)
{
	struct sy__yard_slot *own = sy__yard_slot(cache, slot);

	sy__local_begin(slot);
	if (sy__unlikely(!sy__yard_is_active(own, object))) {
		sy__local_end(slot);
		free_slow(cache, slot, object);
		return;
	}
	*sy__yard_next(cache, object) = own->freelist;
	own->freelist = object;
	sy__local_end(slot);
}

static void *yard_alloc(struct sy_cache *cache, unsigned slot, unsigned flags, int node)
{
	return alloc(sy__yard_cache(cache), slot, flags, node);
}

static void yard_free(struct sy_cache *cache, unsigned slot, void *object)
{
	free_object(sy__yard_cache(cache), slot, object);
}

static SY__COLD void *large_alloc(struct sy_heap *heap, unsigned slot, size_t size, unsigned flags, int node)
{
	struct sy__yard_heap *yard = sy__yard_heap(heap);
	void *object = sy__large_alloc(heap, slot, size, flags, node);

	if (sy__likely(!object || !heap->threads || sy__page_map_set(&yard->heads, heap, sy__page_of(heap, object), 1, 0)))
		return object;
	sy__large_give(heap, slot, sy__head_of(heap, object)); /* whose head nobody would find */
	return NULL;
}

static SY__OUT_OF_LINE void *kmalloc_seldom(struct sy_heap *heap, unsigned slot, size_t size, unsigned flags, int node)
{
	struct sy_cache *cache = sy__kmalloc_cache(&sy__yard_heap(heap)->kmalloc, size, flags);

	return cache ? alloc(sy__yard_cache(cache), slot, flags, node) : large_alloc(heap, slot, size, flags, node);
}

static void *yard_kmalloc(struct sy_heap *heap, unsigned slot, size_t size, unsigned flags, int node)
{
	if (sy__unlikely(!sy__kmalloc_is_small(size, flags)))
		return kmalloc_seldom(heap, slot, size, flags, node);
	return alloc(sy__yard_cache(sy__kmalloc_small(&sy__yard_heap(heap)->kmalloc, size)), slot, flags, node);
}

static void yard_kfree(struct sy_heap *heap, unsigned slot, void *object)
{
	struct sy_page *page = sy__head_of(heap, object);

	if (sy__unlikely(sy__page_is_large(page))) {
		sy__large_free(heap, slot, page);
		return;
	}
	free_object(sy__yard_slab(page)->cache, slot, object);
}

/* ---- The fast path, interrupted at will ------------------------------------------------------------------------ */

static inline void *take_quickly(struct sy__yard_cache *cache, unsigned slot)
{
	struct sy__yard_slot *own = sy__yard_slot(cache, slot);

	return sy__likely(own->freelist) ? sy__yard_pop(cache, own) : NULL;
}

static inline bool put_quickly(struct sy__yard_cache *cache, struct sy__yard_slot *own, void *object)
{
	*sy__yard_next(cache, object) = own->freelist;
	own->freelist = object;
	return true;
}

/* Whether a free into a slab of somebody else, or nobody, was possible by the slab's word alone. */
static inline bool push(const struct sy__yard_cache *cache, struct sy_page *page, void *object)
{
	struct sy__yard_slab *slab = sy__yard_slab(page);
	uint64_t old = sy__load64(&slab->word);

	do {
		if (sy__unlikely(!sy__yard_word_stays(old, 1)))
			return false;
		*sy__yard_next(cache, object) = sy__yard_word_first(old, object);
	} while (sy__unlikely(!sy__swap64(&slab->word, &old, sy__yard_word_push(old, object, 1))));
	return true;
}

static void *quick_alloc(struct sy_cache *cache, unsigned slot)
{
	return take_quickly(sy__yard_cache(cache), slot);
}

/* A free into another slab than the active one is as quick where that one stays where it is. */
static bool quick_free(struct sy_cache *cache, unsigned slot, void *object)
{
	struct sy__yard_cache *yard = sy__yard_cache(cache);
	struct sy__yard_slot *own = sy__yard_slot(yard, slot);

	if (sy__likely(sy__yard_is_active(own, object)))
		return put_quickly(yard, own, object);
	return push(yard, sy__yard_head(yard, object), object);
}

static void *quick_kmalloc(struct sy_heap *heap, unsigned slot, size_t size, unsigned flags)
{
	struct sy_cache *cache = sy__kmalloc_quick(&sy__yard_heap(heap)->kmalloc, size, flags);
	void *object = cache ? take_quickly(sy__yard_cache(cache), slot) : NULL;

	return sy__unlikely(flags & SY_ZERO) && object ? sy__yard_zeroed(sy__yard_cache(cache), object) : object;
}

static bool quick_kfree(struct sy_heap *heap, unsigned slot, struct sy_page *head, void *object)
{
	struct sy__yard_cache *cache = sy__yard_slab(head)->cache;
	struct sy__yard_slot *own;

	(void)heap;
	if (sy__unlikely(sy__page_is_large(head)))
		return false;
	own = sy__yard_slot(cache, slot);
	return own->slab == head ? put_quickly(cache, own, object) : push(cache, head, object);
}

static const struct sy_quick quick = {
	.cache_alloc = quick_alloc,
	.kmalloc = quick_kmalloc,
	.cache_free = quick_free,
	.kfree = quick_kfree,
};

/* ---- Allocation off the fast path ----------------------------------------------------------------------------- */

/* Everything that is free in the slot's active slab but not on its freelist yet; a slab with nothing free is full, and
 * nobody's from now on. */
static void *take_rest(struct sy__yard_slot *own)
{
	struct sy__yard_slab *slab = sy__yard_slab(own->slab);
	uint64_t old = sy__load64(&slab->word), new;

	do {
		new = sy__yard_word_take(old);
		if (sy__yard_word_full(old))
			new &= ~SY__YARD_FROZEN;
	} while (!sy__swap64(&slab->word, &old, new));
	return sy__yard_word_first(old, own->start);
}

/* From the slot's active and partial slabs. In its local section. */
static void *alloc_from_slot(struct sy__yard_cache *cache, unsigned slot, int node)
{
	struct sy__yard_slot *own = sy__yard_slot(cache, slot);

	for (;;) {
		if (!own->slab) {
			struct sy_page *page = own->partial;

			if (!page)
				return NULL;
			own->partial = sy__yard_slab(page)->next;
			own->partial_slabs--;
			sy__yard_activate(cache, own, page);
		}
		if (node != SY_ANY_NODE && node != own->node) {
			sy__yard_deactivate(cache, slot, own);
			continue;
		}
		if (!own->freelist)
			own->freelist = take_rest(own);
		if (own->freelist)
			return sy__yard_pop(cache, own);
		sy__yard_forget(cache, own);
	}
}

/* Takes the first slab off a node's list. With the node's lock held, as the next two. */
static struct sy_page *first_partial(struct sy__yard_node *node)
{
	struct sy_list *link = node->partial.next;

	sy__list_remove(link);
	sy__yard_count_partial(node, -1);
	return sy__yard_linked(link);
}

static void use_partial(struct sy__yard_cache *cache, struct sy__yard_slot *own, struct sy_page *page)
{
	struct sy__yard_slab *slab = sy__yard_slab(page);
	uint64_t old;

	sy__yard_refill_pages(cache, page);
	old = sy__load64(&slab->word);
	sy__yard_activate(cache, own, page);
	while (!sy__swap64(&slab->word, &old, sy__yard_word_take(old) | SY__YARD_FROZEN))
		;
	own->freelist = sy__yard_word_first(old, sy__page_address(cache->cache.heap, page));
	if (sy__yard_slots_own(cache))
		sy__yard_own_active(cache, own, !sy__yard_word_in_use(old));
}

static void keep_partial(struct sy__yard_cache *cache, struct sy__yard_slot *own, struct sy_page *page)
{
	struct sy__yard_slab *slab = sy__yard_slab(page);
	uint64_t old;

	sy__yard_refill_pages(cache, page);
	old = sy__load64(&slab->word);
	while (!sy__swap64(&slab->word, &old, old | SY__YARD_FROZEN))
		;
	if (sy__yard_slots_own(cache))
		sy__yard_hold_frozen(cache, own, page, NULL, 0);
	else
		sy__yard_hold(own, page);
}

/* Makes the first slab of the node's list the slot's active one, and keeps some of those behind it; of a list
 * that has more than `spared` slabs. That is asked before the lock is taken, as most lists are short when slots run out;
 * relaxed, since it is asked again. */
static bool take_partial(struct sy__yard_cache *cache, struct sy__yard_slot *own, struct sy__yard_node *node,
                         uint32_t spared)
{
	if (__atomic_load_n(&node->partial_slabs, __ATOMIC_RELAXED) <= spared)
		return false;
	sy__lock(&node->lock);
	if (node->partial_slabs > spared) {
		use_partial(cache, own, first_partial(node));
		for (uint32_t kept = 0; cache->slot_limit && kept <= cache->slot_limit / 2 && node->partial_slabs; kept++)
			keep_partial(cache, own, first_partial(node));
	}
	sy__unlock(&node->lock);
	return own->slab != NULL;
}

/* A busy node is better left alone: others take from it only what it has beyond min_partial. Nodes are asked in turn
 * from the nearest one's number on, as no distances are known here; and always, where Linux leaves out one request in
 * forty by the cycle counter, which no replay could repeat. */
static bool take_foreign_partial(struct sy__yard_cache *cache, struct sy__yard_slot *own, unsigned nearest)
{
	unsigned nodes = cache->cache.heap->nodes;

	for (unsigned i = 1; i < nodes; i++) {
		struct sy__yard_node *node = &cache->nodes[(nearest + i) % nodes];

		if (take_partial(cache, own, node, cache->min_partial))
			return true;
	}
	return false;
}

/* From the nodes' lists. In the slot's local section; the slot has no active slab. */
static void *alloc_from_nodes(struct sy__yard_cache *cache, unsigned slot, int node)
{
	struct sy__yard_slot *own = sy__yard_slot(cache, slot);
	unsigned nearest = cache->cache.heap->slot_node[slot];
	bool taken = take_partial(cache, own, &cache->nodes[node == SY_ANY_NODE ? nearest : (unsigned)node], 0);

	if (!taken && node == SY_ANY_NODE)
		taken = take_foreign_partial(cache, own, nearest);
	return taken ? sy__yard_pop(cache, own) : NULL;
}

static void *alloc_from_pages(struct sy__yard_cache *cache, unsigned slot, unsigned flags, int node)
{
	struct sy__yard_slot *own = sy__yard_slot(cache, slot);
	struct sy_page *page = sy__yard_new_slab(cache, slot, flags, node);
	void *object;

	if (!page)
		return NULL;
	sy__local_begin(slot);
	/* Somebody may have been here while the page allocator worked. */
	sy__yard_end_strays(cache, slot);
	if (own->slab)
		sy__yard_deactivate(cache, slot, own);
	sy__yard_activate(cache, own, page);
	if (cache->cache.constructor || !sy__yard_slots_own(cache))
		own->freelist = sy__page_address(cache->cache.heap, page);
	if (sy__yard_slots_own(cache)) {
		sy__yard_taken(own, page);
		sy__yard_own_active(cache, own, true);
	}
	object = sy__yard_pop(cache, own);
	sy__local_end(slot);
	return object;
}

/* Of the slot's slabs, or its nodes'. */
static void *alloc_of_slabs(struct sy__yard_cache *cache, unsigned slot, int node)
{
	void *object;

	sy__local_begin(slot);
	object = sy__yard_slots_own(cache) ? sy__yard_alloc_owned(cache, slot, node, false) : alloc_from_slot(cache, slot, node);
	if (!object)
		object = alloc_from_nodes(cache, slot, node);
	sy__local_end(slot);
	return object;
}

/* Of what ended threads have left in their slots (strays.c). */
static void *alloc_of_ended(struct sy__yard_cache *cache, unsigned slot, int node)
{
	unsigned slots = sy__slots_used(cache->cache.heap);
	void *object = NULL;

	for (unsigned from = 1; from < slots && from < SY_WARM_SLOTS && !object; from++) /* 0 is nobody's, ever */
		if (sy__slot_unowned(from) && sy__yard_take_over(cache, slot, from))
			object = alloc_of_slabs(cache, slot, node);
	return object;
}

/* In a heap of threads: what the slot owns that had not enough serves where there are no pages, before memory is reclaimed. */
static void *alloc_more(struct sy__yard_cache *cache, unsigned slot, unsigned flags, int node)
{
	const struct sy__yard_slot *own = sy__yard_slot(cache, slot);
	void *object = alloc_of_ended(cache, slot, node);

	if (object)
		return object;
	sy__yard_look_around(sy__yard_heap(cache->cache.heap), slot);
	if (own->partial) {
		object = alloc_from_pages(cache, slot, flags | SY_NO_RECLAIM, node);
		if (!object)
			object = sy__yard_alloc_owned(cache, slot, node, true);
	}
	return object ? object : alloc_from_pages(cache, slot, flags, node);
}

/* A node that the heap doesn't have: any will do, unless the caller insists. */
static bool node_exists(const struct sy__yard_cache *cache, int node)
{
	return node >= 0 && (unsigned)node < cache->cache.heap->nodes;
}

void *sy__yard_alloc_slow(struct sy__yard_cache *cache, unsigned slot, unsigned flags, int node)
{
	void *object;

	sy__count_slow(cache->cache.heap, &cache->cache.heap->counters.slow_allocs);
	if (node != SY_ANY_NODE && !node_exists(cache, node)) {
		if (flags & SY_THISNODE)
			return NULL;
		node = SY_ANY_NODE;
	}
	object = alloc_of_slabs(cache, slot, node);
	if (!object)
		object = sy__yard_slots_own(cache) ? alloc_more(cache, slot, flags, node) : alloc_from_pages(cache, slot, flags, node);
	return object && flags & SY_ZERO ? sy__yard_zeroed(cache, object) : object;
}

/* ---- Freeing off the fast path -------------------------------------------------------------------------------- */

/* What the word of a slab becomes by a free. A full slab that is nobody's becomes the freeing slot's, where slots keep
 * slabs; in heaps of threads that is decided elsewhere. */
static inline uint64_t freed(const struct sy__yard_cache *cache, uint64_t old, const void *object, uint32_t count)
{
	uint64_t new = sy__yard_word_push(old, object, count);

	return sy__yard_word_full(old) && cache->slot_limit && !sy__yard_slots_own(cache) ? new | SY__YARD_FROZEN : new;
}

/* Whether a free that changes the word so puts the slab on its node's list, or may take it off. */
static inline bool moves(uint64_t old, uint64_t new)
{
	return !sy__yard_word_frozen(new) && (sy__yard_word_full(old) || !sy__yard_word_in_use(new));
}

static inline bool newly_kept(uint64_t old, uint64_t new)
{
	return !sy__yard_word_frozen(old) && sy__yard_word_frozen(new);
}

/* Puts a slab where it belongs after a free; true: it is to be discarded. With its node's lock held. */
static bool settle(struct sy__yard_cache *cache, struct sy__yard_node *node, struct sy_page *page, uint64_t old,
                   uint64_t new)
{
	struct sy_list *link = &sy__yard_slab(page)->link;

	if (!moves(old, new))
		return false;
	if (!sy__yard_word_in_use(new) && !sy__yard_node_keeps(cache, node)) {
		if (!sy__yard_word_full(old)) {
			sy__list_remove(link);
			sy__yard_count_partial(node, -1);
		}
		sy__yard_count_out(cache, node, page);
		sy__yard_node_misses(cache, node);
		return true;
	}
	if (sy__yard_word_full(old)) {
		sy__list_add_tail(&node->partial, link);
		sy__yard_count_partial(node, 1);
	}
	return false;
}

/* A free that seems to change the slab's place: again, under the node's lock, with what the slab is by then. Pages that went
 * back. */
uint64_t sy__yard_free_moving(struct sy__yard_cache *cache, unsigned slot, struct sy_page *page, void *first, void *last,
                              uint32_t count)
{
	struct sy__yard_slab *slab = sy__yard_slab(page);
	struct sy__yard_node *node = &cache->nodes[sy__page_node(page)];
	uint64_t old = sy__load64(&slab->word), new;
	bool discard;

	sy__lock(&node->lock);
	do {
		*sy__yard_next(cache, last) = sy__yard_word_first(old, last);
		new = freed(cache, old, first, count);
	} while (!sy__swap64(&slab->word, &old, new));
	discard = settle(cache, node, page, old, new);
	sy__unlock(&node->lock);
	if (discard)
		return sy__yard_discard(cache, slot, page);
	if (newly_kept(old, new))
		sy__yard_keep(cache, slot, page);
	return 0;
}

static SY__OUT_OF_LINE void free_slow(struct sy__yard_cache *cache, unsigned slot, void *object)
{
	struct sy_heap *heap = cache->cache.heap;
	struct sy_page *page = sy__yard_head(cache, object);
	struct sy__yard_slab *slab = sy__yard_slab(page);
	uint64_t old = sy__load64(&slab->word), new;

	sy__count_slow(heap, &heap->counters.slow_frees);
	if (heap->threads) {
		sy__yard_free_owned(cache, slot, page, object);
		return;
	}
	do {
		*sy__yard_next(cache, object) = sy__yard_word_first(old, object);
		new = freed(cache, old, object, 1);
		if (sy__unlikely(moves(old, new))) {
			sy__yard_free_moving(cache, slot, page, object, object, 1);
			return;
		}
	} while (!sy__swap64(&slab->word, &old, new));
	if (sy__unlikely(newly_kept(old, new)))
		sy__yard_keep(cache, slot, page);
}

/* ---- The policy ----------------------------------------------------------------------------------------------- */

static bool yard_heap_init(struct sy_heap *heap)
{
	struct sy__yard_heap *yard = sy__yard_heap(heap);

	return sy__kmalloc_create(heap, &yard->kmalloc, heap->tunables[YARD_CLASSES], 0, 0) &&
	       (!heap->threads || sy__yard_here_init(yard));
}

/* As kfree does, in a heap of threads: what a program asks the size of, it often frees next. */
static struct sy_page *head_of_any(struct sy_heap *heap, const void *object)
{
	return heap->threads ? sy__page_map_of(&sy__yard_heap(heap)->heads, object) : sy__head_of(heap, object);
}

static size_t yard_usable_size(struct sy_heap *heap, const void *object)
{
	struct sy_page *page = head_of_any(heap, object);

	return sy__page_is_large(page) ? sy__large_usable(page) : sy__yard_slab(page)->cache->cache.object_size;
}

static const char *const off_on[] = { "off", "on" };

static const struct sy_tunable tunables[] = {
	[YARD_MIN_ORDER] = { "min_order", 0, 0, SY_MAX_ORDER, NULL, "order of the smallest slabs (pages: 2^order)" },
	[YARD_MAX_ORDER] = { "max_order", SY_TUNABLE_AUTO, 0, SY_MAX_ORDER, NULL,
	                     "order of the largest slabs, where an object fits in them (pages: 2^order); auto: 3, with threads 5" },
	[YARD_MIN_OBJECTS] = { "min_objects", 0, 0, SY__YARD_MOST_OBJECTS, NULL,
	                       "objects that a slab should hold at least; 0: by the number of CPUs" },
	[YARD_CPU_PARTIAL] = { "cpu_partial", SY_TUNABLE_AUTO, 0, 65535, NULL,
	                       "free objects kept in a CPU's partial slabs, with threads those that others filled; 0: none; "
	                       "auto: by size, none with one CPU or threads" },
	[YARD_MIN_PARTIAL] = { "min_partial", SY_TUNABLE_AUTO, 0, 65535, NULL,
	                       "slabs on a node's list up to which empty ones are kept; auto: 5 to 10 by size, with threads 0" },
	[YARD_MERGE] = { "merge", 1, 0, 1, off_on, "let caches of alike objects share their slabs" },
	[YARD_STRAYS] = { "strays", SY_TUNABLE_AUTO, 0, SY__YARD_MOST_STRAYS, NULL,
	                  "with threads, objects of others' slabs that a thread keeps for its next allocations; auto: by size" },
	[YARD_SHEAF] = { "sheaf", SY_TUNABLE_AUTO, 0, 65535, NULL,
	                 "with threads, free objects that a thread keeps of a size class above 1024 bytes, of any slabs; auto: by size" },
	[YARD_CLASSES] = { SY__KMALLOC_CLASSES_TUNABLE },
};

extern const struct sy_policy sy__yard;

const struct sy_policy sy__yard = {
	.name = "yard",
	.summary = "slabyard's own: threads own slabs, and send others' objects home",
	.paper = "docs/allocators/yard.md",
	.tunables = tunables,
	.tunable_count = sizeof(tunables) / sizeof(tunables[0]),
	.heap_bytes = sizeof(struct sy__yard_heap),
	.threads_bytes = sizeof(struct sy__yard_sizes),
	.cache_bytes = sizeof(struct sy__yard_cache),
	.cache_alloc = yard_alloc,
	.cache_free = yard_free,
	.kmalloc = yard_kmalloc,
	.kfree = yard_kfree,
	.here = &sy__yard_here,
	.quick = &quick,
	.heap_init = yard_heap_init,
	.heap_fini = sy__yard_here_fini,
	.cache_merge = sy__yard_merge,
	.cache_init = sy__yard_cache_init,
	.cache_fini = sy__yard_cache_fini,
	.usable_size = yard_usable_size,
	.shrink = sy__yard_shrink,
	.settle = sy__yard_settle,
	.end_spares = sy__yard_end_spares,
	.trim = sy__yard_trim,
	.drain = sy__yard_drain,
	.reservation_changes = sy__yard_reservation,
	.grace_passed = sy__yard_grace_passed,
	.counts = sy__yard_counts,
	.geometry = sy__yard_geometry,
	.check = sy__yard_check,
	.serves_classes = true,
	.walk = sy__yard_walk,
};
