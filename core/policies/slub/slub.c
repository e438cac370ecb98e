/*
 * SLUB: slabs without queues.
 *
 * After the allocator that Linux 6.1 builds from mm/slub.c (Ferreira et al. 2015, section 3.4). Where SLAB kept
 * arrays of free objects per CPU, SLUB gives a CPU a whole slab: allocating pops that slab's list of free objects,
 * and freeing pushes onto the list of the slab that the object is in. The only metadata are a free pointer in each
 * free object and 32 bytes in the page descriptor. In replays, in kernels and with threads it is the same allocator.
 *
 * Fast path: pop and push below. An allocation from a slot with free objects, and a free into the slot's active slab, read
 * and write nothing shared. A free into another slab takes one compare-and-exchange of that slab's word, if the slab stays where
 * it is. size_entries_this_slot.h makes all calls of the two. Instructions of hot calls (docs/cost.md): kmem_cache_alloc 16,
 * kmem_cache_free 20, kmalloc 25, kfree 37.
 *
 * Where the free objects are. A slab with free objects is in exactly one of these places:
 *
 *   active        of one slot. Frozen. The slot pops from its own freelist. Objects that other slots free into the slab gather
 *                 on the slab's freelist, which the slot takes over whole when its own has run out.
 *   cpu partial   on the partial list of one slot. Frozen. A full slab comes here at its first free, onto the list of the slot
 *                 that freed; a list at its limit first moves to the nodes. Not on machines with one CPU.
 *   node partial  on the list of its memory node.
 *
 * A full slab is on no list; an empty one goes back to the page allocator, or stays partial while its node has
 * fewer than min_partial others.
 *
 * So an allocation looks, in this order, at: the slot's freelist; the active slab's own; the slot's partial list; the list
 * of the requested node, or the nearest; the lists of other nodes that have more than min_partial slabs, if any node will do; the
 * page allocator. Taking a slab from a node also moves others to the slot's partial list, until that has gained more than half
 * its limit.
 *
 * Lists in slabs' words end with SY__SLUB_END, those of slots with NULL, but for long ones that they took from a word. So a slot whose
 * list leads to the former has an object that another slot has freed again.
 *
 * Names of Linux, and ours:
 *
 *   kmem_cache_cpu (cpu_slab), its freelist and slab    sy__slub_slot, freelist and slab
 *   kmem_cache_cpu.partial, cpu_partial_slabs           sy__slub_slot.partial, sy__slub_cache.slot_limit
 *   kmem_cache_node                                     sy__node
 *   slab->freelist, slab->counters                      sy__node_slab.word
 *   get_freepointer, freelist_ptr                       sy__node_next; encoded if hardened (../links.h)
 *   slab_alloc_node, do_slab_free                       pop, push
 *   cmpxchg_double_slab                                 sy__swap64 of the word
 *   ___slab_alloc                                       alloc_slow, alloc_from_slot
 *   get_freelist                                        take_rest
 *   get_partial                                         alloc_from_nodes
 *   get_partial_node, acquire_slab                      take_partial, use_partial
 *   get_any_partial                                     take_remote_partial
 *   alloc_single_from_partial, _from_new_slab           take_listed, take_new (bulk.c)
 *   new_slab, allocate_slab                             sy__slub_new_slab, sy__node_take_pages
 *   __slab_free                                         free_slow, free_moving
 *   put_cpu_partial                                     sy__slub_put_cpu_partial
 *   deactivate_slab                                     sy__slub_deactivate
 *   unfreeze_partials, __unfreeze_partials              unfreeze_chain
 *   flush_slab, __flush_cpu_slab                        drain_slot
 *   discard_slab, free_slab                             sy__node_discard, give_back
 *   __kmem_cache_shrink, __kmem_cache_do_shrink         sy__slub_shrink, sy__node_shrink, sort_partial
 *   calculate_sizes                                     lay_out_object, sy__slub_cache_init
 *   calculate_order, calc_slab_order                    slab_order, fitting_order
 *   set_cpu_partial, slub_set_cpu_partial               sy__slub_slot_objects, slot_limit
 *   __kmem_cache_alias, find_mergeable                  sy__slub_merge, sy__merge_find
 *
 * Locks (level 2 of types.h). A slot's structure, with its partial list, belongs to the caller in its local section. One word of
 * a slab has its freelist, its number of objects in use and whether a slot owns it; it is changed by compare-and-exchange
 * (../node.h, with the argument for each change). The lock of a node covers its list and figures. A free takes it only when its
 * slab may join that list or leave it; a free into a slab that a slot owns, or that stays partial, takes no lock. No lock is
 * held and no local section open while pages are taken, as that may run this cache's own shrink; nor while pages are given
 * back.
 *
 * Invariants, verified by check.c and ../node.c: frozen slabs are exactly those of slots; an unfrozen slab is on its node's list if and
 * only if it has free objects; in_use + length of the slab's freelist = objects, where an active slab counts the objects on
 * its slot's freelist as in use; every free object is in its slab, at a multiple of the size, once.
 *
 * More files: slabs.c (the life of a slab), geometry.c (layout, orders, merging), version.c (what depends on Linux's version), bulk.c
 * (slots without slabs), sheaves.c (arrays of objects above the slabs), check.c, walk.c; and ../node.c, which yard shares.
 */
#include "slub.h"

#include "../../bug.h"
#include "../../this_slot.h"

typedef struct sy__slub_cache entry_cache;
typedef struct sy__slub_slot entry_own;

/* ---- The fast path -------------------------------------------------------------------------------------------- */

static inline bool pop(const struct sy__slub_cache *cache, struct sy__slub_slot *own, void **object)
{
	void *next;

#ifdef SY_HARDENED
	if (sy__ring_serves(&own->ring))
		return (*object = sy__ring_pop(&own->ring));
#endif
	if (sy__unlikely(sy__slub_is_end(own->freelist)))
		return false;
	*object = own->freelist;
	next = sy__link_take(&cache->base, *object, cache->base.offset);
	own->freelist = sy__link_is_wrong(next) ? sy__node_damaged(&cache->base, *object) : next;
	return !sy__link_is_wrong(next);
}

/* What comes behind an object that is pushed onto the list of a slab's word. */
static inline void *behind(uint64_t word, void *object)
{
	return sy__word_full(word) ? SY__SLUB_END : sy__word_first(word, object);
}

/* As far as the slab's word tells. */
static inline bool is_free_already(uint64_t word, const void *object)
{
	return !sy__word_in_use(word) || (uint32_t)word == (uint32_t)(uintptr_t)object;
}

/* Frees into a slab that is not the slot's active one, by the slab's word alone; false: the slab would move. */
static bool push_remote(const struct sy__slub_cache *cache, struct sy_page *head, void *object)
{
	struct sy__node_slab *slab = sy__node_slab(head);
	uint64_t old = sy__load64(&slab->word);

	do {
		if (sy__unlikely(!sy__word_stays(old, 1) || is_free_already(old, object)))
			return false;
		sy__node_link(&cache->base, object, behind(old, object));
	} while (sy__unlikely(!sy__swap64(&slab->word, &old, sy__word_push(old, object, 1))));
	sy__count_slow(cache->base.cache.heap, &cache->base.cache.heap->counters.slow_frees);
	return true;
}

/* What is first on the freelist already is left to free_slow, which tells. */
static inline bool push_active(const struct sy__slub_cache *cache, struct sy__slub_slot *own, void *object)
{
	if (sy__unlikely(own->freelist == object))
		return false;
	sy__node_link(&cache->base, object, own->freelist);
	own->freelist = object;
	return true;
}

static inline bool push(const struct sy__slub_cache *cache, struct sy__slub_slot *own, const struct sy_page *page, void *object)
{
	(void)page;
	if (sy__likely(sy__slub_is_active(own, object)))
		return push_active(cache, own, object);
	return push_remote(cache, sy__node_head(&cache->base, object), object);
}

/* ---- Calls ---------------------------------------------------------------------------------------------------- */

static SY__OUT_OF_LINE void *alloc_slow(struct sy__slub_cache *cache, unsigned slot, unsigned flags, int node);
static SY__OUT_OF_LINE void free_slow(struct sy__slub_cache *cache, unsigned slot, void *object);

static inline struct sy__slub_slot *own_of(const struct sy__slub_cache *cache, unsigned slot)
{
	return sy__slub_slot(cache, slot);
}

static inline struct sy__slub_slot *own_at(const struct sy__slub_cache *cache, ptrdiff_t slot_offset)
{
	return (struct sy__slub_slot *)(void *)(cache->base.slots + slot_offset);
}

static inline bool suits(const struct sy__slub_slot *own, unsigned flags, int node)
{
	(void)flags;
	return sy__likely(node == SY_ANY_NODE) || node == own->node;
}

/* Frees by exchange count as slow calls, so that some thread looks at the clock. Nobody may free on the dummy: a thread that has
 * stopped all slots relies on that. */
static SY__OUT_OF_LINE bool push_remote_this_slot(const struct sy__slub_cache *cache, const struct sy__slub_slot *own, void *object)
{
	return own->pushes && !sy__tick_is_due() && push_remote(cache, sy__node_head(&cache->base, object), object);
}

static inline bool push_this_slot(const struct sy__slub_cache *cache, struct sy__slub_slot *own, const struct sy_page *page, void *object)
{
	(void)page;
	if (sy__likely(sy__slub_is_active(own, object)))
		return push_active(cache, own, object);
	return push_remote_this_slot(cache, own, object);
}

static inline const struct sy__kmalloc *entry_sizes(struct sy_heap *heap)
{
	return &sy__slub_heap(heap)->kmalloc;
}

static inline struct sy__slub_cache *cache_in(struct sy_page *page)
{
	return sy__slub_cache_of(page);
}

static inline bool is_start(const struct sy__slub_cache *cache, const struct sy_page *head, size_t distance)
{
	(void)head;
	return sy__divides(cache->base.divider, distance);
}

static inline bool is_second(const struct sy__slub_cache *cache, const struct sy__slub_slot *own, const void *object)
{
	return !sy__slub_is_end(own->freelist) && sy__node_next(&cache->base, own->freelist) == object;
}

#include "../size_entries_this_slot.h"

/* ---- Allocation off the fast path ----------------------------------------------------------------------------- */

/* The list of a slab's word that was taken; or NULL, if the program has damaged it: its objects are lost. */
static void *taken(const struct sy__slub_cache *cache, struct sy__slub_slot *own, uint64_t word)
{
	void *list = sy__word_first(word, own->start), *last;

	/* Hardened, each object is looked at when it is handed out. */
	if (SY__IS_HARDENED || !list)
		return list;
	if (!sy__node_list_is_sound(&cache->base, own->slab, list, sy__word_objects(word) - sy__word_in_use(word), SY__SLUB_END, &last))
		return NULL;
	own->ends_marked = !last;
	if (last)
		sy__node_link(&cache->base, last, NULL);
	return list;
}

/* Takes over the freelist of the slot's active slab. If that is empty the slab is full, and belongs to nobody from now on. */
static void *take_rest(const struct sy__slub_cache *cache, struct sy__slub_slot *own)
{
	struct sy__node_slab *slab = sy__node_slab(own->slab);
	uint64_t old = sy__load64(&slab->word), new;

	do {
		new = sy__word_take(old);
		if (sy__word_full(old))
			new &= ~SY__WORD_FROZEN;
	} while (!sy__swap64(&slab->word, &old, new));
	return taken(cache, own, old);
}

/* The slot's freelist led to the end of a list in a slab's word: another slot has freed an object that was on the freelist already, and
 * that object is the last one on the word's list now. No object of either list is handed out again. */
static SY__COLD void tell_second_free(const struct sy__slub_cache *cache, struct sy__slub_slot *own)
{
	void *last;

	sy__node_sound_length(&cache->base, own->slab, sy__node_freelist(&cache->base, own->slab), &last);
	sy__bug(cache->base.cache.heap, SY_BUG_DOUBLE_FREE, last);
	take_rest(cache, own);
	own->freelist = NULL;
}

/* Allocates from the slot's active and partial slabs. In its local section. */
static void *alloc_from_slot(struct sy__slub_cache *cache, unsigned slot, int node)
{
	struct sy__slub_slot *own = sy__slub_slot(cache, slot);
	void *object;

	for (;;) {
		if (!own->slab) {
			struct sy_page *page = own->partial;

			if (!page)
				return NULL;
			own->partial = *sy__slub_next(page);
			own->partial_slabs--;
			sy__slub_activate(cache, own, page);
		}
		if (node != SY_ANY_NODE && node != own->node) {
			sy__slub_deactivate(cache, slot, own);
			continue;
		}
		if (sy__unlikely(own->freelist == SY__SLUB_END && own->freelist && !own->ends_marked))
			tell_second_free(cache, own);
		if (sy__slub_is_end(own->freelist))
			own->freelist = take_rest(cache, own);
		if (pop(cache, own, &object))
			return object;
		sy__slub_forget(own);
	}
}

/* With the node's lock held, as the next. */
static void use_partial(const struct sy__slub_cache *cache, struct sy__slub_slot *own, struct sy_page *page)
{
	sy__slub_activate(cache, own, page);
	own->freelist = taken(cache, own, sy__node_freeze(sy__node_slab(page)));
}

static void keep_partial(struct sy__slub_slot *own, struct sy_page *page)
{
	struct sy__node_slab *slab = sy__node_slab(page);
	uint64_t old = sy__load64(&slab->word);

	while (!sy__swap64(&slab->word, &old, old | SY__WORD_FROZEN))
		;
	sy__slub_hold(own, page);
}

/* Makes the first slab of the node's list the slot's active one, and moves some of those behind it to the slot's partial list, if the
 * list has more than `spared` slabs. Checks that first without the lock, as most lists are short when slots run out; relaxed,
 * since it is checked again. */
static bool take_partial(struct sy__slub_cache *cache, struct sy__slub_slot *own, struct sy__node *node,
                         uint32_t spared)
{
	if (__atomic_load_n(&node->partial_slabs, __ATOMIC_RELAXED) <= spared)
		return false;
	sy__lock(&node->lock);
	if (node->partial_slabs > spared) {
		use_partial(cache, own, sy__node_first_partial(&cache->base, node));
		for (uint32_t kept = 0; cache->slot_limit && kept <= cache->slot_limit / 2 && node->partial_slabs; kept++)
			keep_partial(own, sy__node_first_partial(&cache->base, node));
	}
	sy__unlock(&node->lock);
	return own->slab != NULL;
}

/* Other slots take from a node only slabs beyond min_partial, to leave a busy node alone. Nodes are asked in order of number from the
 * nearest on, as distances are not known here. Linux skips this for one request in forty, by the cycle counter; that would not be
 * repeatable, so we never do. */
static bool take_remote_partial(struct sy__slub_cache *cache, struct sy__slub_slot *own, unsigned nearest)
{
	unsigned nodes = cache->base.cache.heap->nodes;

	for (unsigned i = 1; i < nodes; i++) {
		struct sy__node *node = &cache->base.nodes[(nearest + i) % nodes];

		if (take_partial(cache, own, node, cache->base.min_partial))
			return true;
	}
	return false;
}

/* Allocates from the nodes' lists. In the slot's local section; the slot has no active slab. */
static void *alloc_from_nodes(struct sy__slub_cache *cache, unsigned slot, int node)
{
	struct sy__slub_slot *own = sy__slub_slot(cache, slot);
	unsigned nearest = sy__slot_node(cache->base.cache.heap, slot);
	void *object;
	bool taken = take_partial(cache, own, &cache->base.nodes[node == SY_ANY_NODE ? nearest : (unsigned)node], 0);

	if (!taken && node == SY_ANY_NODE)
		taken = take_remote_partial(cache, own, nearest);
	return taken && pop(cache, own, &object) ? object : NULL;
}

static void *alloc_from_pages(struct sy__slub_cache *cache, unsigned slot, unsigned flags, int node)
{
	struct sy__slub_slot *own = sy__slub_slot(cache, slot);
	void *first, *object = NULL;
	struct sy_page *page = sy__slub_new_slab(cache, slot, flags, node, &first);

	if (!page)
		return NULL;
	sy__local_begin(slot);
	if (own->slab) /* the slot got another slab while the page allocator worked */
		sy__slub_deactivate(cache, slot, own);
	sy__slub_activate(cache, own, page);
	own->freelist = first;
	pop(cache, own, &object);
	sy__local_end(slot);
	return object;
}

/* Allocates from existing slabs. */
static void *alloc_of_slabs(struct sy__slub_cache *cache, unsigned slot, int node)
{
	void *object;

	sy__local_begin(slot);
	object = alloc_from_slot(cache, slot, node);
	if (!object)
		object = alloc_from_nodes(cache, slot, node);
	sy__local_end(slot);
	return object;
}

void *sy__slub_alloc_of_slabs(struct sy__slub_cache *cache, unsigned slot, unsigned flags, int node)
{
	void *object;

	if (cache->by_node)
		return sy__slub_take(cache, slot, flags, node, &object, 1) ? object : NULL;
	object = alloc_of_slabs(cache, slot, node);
	return object ? object : alloc_from_pages(cache, slot, flags, node);
}

static SY__OUT_OF_LINE void *alloc_slow(struct sy__slub_cache *cache, unsigned slot, unsigned flags, int node)
{
	void *object;

	sy__count_slow(cache->base.cache.heap, &cache->base.cache.heap->counters.slow_allocs);
	if (!node_will_do(cache->base.cache.heap, flags, &node))
		return NULL;
	object = sy__slub_alloc_of_slabs(cache, slot, flags, node);
	return object ? handed_out(cache, flags, object) : NULL;
}

/* ---- Freeing off the fast path -------------------------------------------------------------------------------- */

/* The word of a slab after a free. A full slab without owner becomes the freeing slot's, if slots have partial lists. */
static inline uint64_t freed(const struct sy__slub_cache *cache, uint64_t old, const void *object)
{
	uint64_t new = sy__word_push(old, object, 1);

	return sy__word_full(old) && cache->slot_limit ? new | SY__WORD_FROZEN : new;
}

/* Whether a free with this change of the word puts the slab on its node's list, or may take it off. */
static inline bool moves(uint64_t old, uint64_t new)
{
	return !sy__word_frozen(new) && (sy__word_full(old) || !sy__word_in_use(new));
}

static inline bool goes_cpu_partial(uint64_t old, uint64_t new)
{
	return !sy__word_frozen(old) && sy__word_frozen(new);
}

/* A free that seems to move the slab. Starts again under the node's lock, as the word may have changed. */
static void free_moving(struct sy__slub_cache *cache, unsigned slot, struct sy_page *page, void *object)
{
	struct sy__node_slab *slab = sy__node_slab(page);
	struct sy__node *node = &cache->base.nodes[sy__page_node(page)];
	uint64_t old = sy__load64(&slab->word), new;
	bool discard;

	sy__lock(&node->lock);
	do {
		if (sy__unlikely(is_free_already(old, object))) {
			sy__unlock(&node->lock);
			sy__bug(cache->base.cache.heap, SY_BUG_DOUBLE_FREE, object);
			return;
		}
		sy__node_link(&cache->base, object, behind(old, object));
		new = freed(cache, old, object);
	} while (!sy__swap64(&slab->word, &old, new));
	discard = moves(old, new) && sy__node_place(&cache->base, node, page, !sy__word_full(old), new, false);
	sy__unlock(&node->lock);
	if (discard)
		sy__node_discard(&cache->base, slot, page);
	else if (goes_cpu_partial(old, new))
		sy__slub_put_cpu_partial(cache, slot, page);
}

/* Frees into a slab that is not the slot's active one. */
static void free_into(struct sy__slub_cache *cache, unsigned slot, struct sy_page *page, void *object)
{
	struct sy__node_slab *slab = sy__node_slab(page);
	uint64_t old = sy__load64(&slab->word), new;

	do {
		if (sy__unlikely(is_free_already(old, object) || sy__slub_slot(cache, slot)->freelist == object)) {
			sy__bug(cache->base.cache.heap, SY_BUG_DOUBLE_FREE, object);
			return;
		}
		sy__node_link(&cache->base, object, behind(old, object));
		new = freed(cache, old, object);
		if (sy__unlikely(moves(old, new))) {
			free_moving(cache, slot, page, object);
			return;
		}
	} while (!sy__swap64(&slab->word, &old, new));
	if (sy__unlikely(goes_cpu_partial(old, new)))
		sy__slub_put_cpu_partial(cache, slot, page);
}

void sy__slub_free_to_slab(struct sy__slub_cache *cache, unsigned slot, void *object)
{
	struct sy__slub_slot *own = sy__slub_slot(cache, slot);

	if (!sy__slub_is_active(own, object) || !push_active(cache, own, object))
		free_into(cache, slot, sy__node_head(&cache->base, object), object);
}

static SY__OUT_OF_LINE void free_slow(struct sy__slub_cache *cache, unsigned slot, void *object)
{
	struct sy_heap *heap = cache->base.cache.heap;
	struct sy_page *page = sy__node_head(&cache->base, object);

	sy__count_slow(heap, &heap->counters.slow_frees);
	if (sy__unlikely(!sy__node_is_object(&cache->base, page, object))) {
		sy__bug_free(heap, object);
		return;
	}
	sy__slub_slot(cache, slot)->pushes = true;
	free_into(cache, slot, page, object);
}

/* ---- The policy ----------------------------------------------------------------------------------------------- */

static bool slub_heap_init(struct sy_heap *heap)
{
	heap->never_reclaims = sy__keeps_apart(heap);
	sy__slub_heap(heap)->rules = sy__slub_rules_by(heap->tunables, heap->kernel);
	heap->as_recorded = sy__slub_is_recorded(heap);
	sy__slub_sheaves_policy(heap);
	return sy__kmalloc_create(heap, &sy__slub_heap(heap)->kmalloc, heap->tunables[SLUB_CLASSES],
	                          sy__slub_kmalloc_types(sy__slub_rules(heap)), 0, 0) &&
	       (SY__IS_HARDENED || sy__slub_classes_begin(heap));
}

static const char *const harden[] = SY__HARDEN_WORDS;

static const struct sy_tunable tunables[] = {
	[SLUB_MIN_ORDER] = { "min_order", 0, 0, SY_MAX_ORDER, NULL, false, "order of the smallest slabs (pages: 2^order)" },
	[SLUB_MAX_ORDER] = { "max_order", SY_TUNABLE_AUTO, 0, SY_MAX_ORDER, NULL, false,
	                     "order of the largest slabs, where an object fits in them (pages: 2^order); auto: 3, tiny 1" },
	[SLUB_MIN_OBJECTS] = { "min_objects", 0, 0, SY__WORD_MOST_OBJECTS, NULL, false,
	                       "objects that a slab should hold at least; 0: by the number of CPUs" },
	[SLUB_CPU_PARTIAL] = { "cpu_partial", SY_TUNABLE_AUTO, 0, 65535, NULL, false,
	                       "free objects kept in a CPU's partial slabs; 0: none; auto: by size, none with one CPU" },
	[SLUB_MIN_PARTIAL] = { "min_partial", SY_TUNABLE_AUTO, 0, 65535, NULL, false,
	                       "slabs on a node's list up to which empty ones are kept; auto: 5 to 10 by size, tiny 0" },
	[SLUB_MERGE] = { "merge", 1, 0, 1, SY__OFF_ON, false, "let caches of alike objects share their slabs" },
	[SLUB_CLASSES] = { SY__KMALLOC_CLASSES_TUNABLE },
	[SLUB_HARDEN] = { SY__HARDEN_TUNABLE(harden) },
	[SLUB_LINUX] = { "linux", SY_TUNABLE_AUTO, SLUB_6_1, SLUB_VERSIONS - 1, sy__slub_version_names, false,
	                 "whose rules hold; auto: the workload's kernel's, where that is known, else 6.1" },
	[SLUB_TINY] = { "tiny", 0, 0, 1, SY__OFF_ON, false, "SLUB_TINY, for small systems: slots keep nothing, slabs are small" },
	[SLUB_USERCOPY] = { "usercopy", SY_TUNABLE_AUTO, 0, 1, SY__OFF_ON, false,
	                    "the kernel checks copies to user space; if not, caches may share kmalloc's slabs since 6.2; auto: on, tiny off" },
	[SLUB_SHEAF_CAPACITY] = { "sheaf_capacity", SY_TUNABLE_AUTO, 0, SY__SLUB_MOST_IN_SHEAF, NULL, false,
	                          "objects in a sheaf, of those caches that the version gives sheaves; 0: none; auto: the version's" },
	[SLUB_BARN_FULL] = { "barn_full", 10, 0, 65535, NULL, false, "full sheaves that a node keeps at most" },
};

static const struct sy_preset presets[] = {
	{ "paper", "max_order=0,min_partial=0,cpu_partial=0",
	  "as Ferreira et al. and Garcarz describe it: a slab is a page, and an empty one goes back at once" },
};

extern const struct sy_policy sy__slub, sy__hardened_slub;

const struct sy_policy sy__slub = {
	.name = "slub",
	.summary = "Linux: each CPU has a slab, each slab a list of its free objects",
	.paper = "Ferreira et al., An Experimental Comparison Analysis of Kernel-level Memory Allocators, SAC 2015, section 3.4; "
	         "Linux 6.1 mm/slub.c",
	.tunables = tunables,
	.tunable_count = sizeof(tunables) / sizeof(tunables[0]),
	.presets = presets,
	.preset_count = sizeof(presets) / sizeof(presets[0]),
	.heap_bytes = sizeof(struct sy__slub_heap),
	.cache_bytes = sizeof(struct sy__slub_cache),
	.cache_alloc = entry_alloc,
	.cache_free = entry_free,
	.kmalloc = entry_kmalloc,
	.kfree = entry_kfree,
	.this_slot = &entries_this_slot,
#ifndef SY_HARDENED
	.hardened = SY__HARDENED(sy__hardened_slub),
	.quick = &entries_quick,
	.trim = sy__node_trim,
#else
	.scavenge = sy__slub_scavenge,
#endif
	.harden = SLUB_HARDEN,
	.heap_init = slub_heap_init,
	.cache_merge = sy__slub_merge,
	.cache_init = sy__slub_cache_init,
	.cache_fini = sy__slub_cache_fini,
	.usable_size = sy__node_usable_size,
	.shrink = sy__slub_shrink,
	.drain = sy__slub_drain,
	.refuses = sy__slub_refuses,
	.idle = sy__slub_idle,
	.grace_passed = sy__node_grace_passed,
	.counts = sy__slub_counts,
	.geometry = sy__slub_geometry,
	.check = sy__slub_check,
	.serves_classes = true,
	.walk = sy__slub_walk,
};
