/*
 * SLUB: the life of a slab, away from the fast path.
 *
 * A slab is born with all its objects constructed and on its freelist in order of address (in heaps of threads, on none before
 * they are needed), owned by a slot (frozen). When its slot gives it up (it is needed for another node, the slot's partial list
 * overflows, or somebody drains the slot) it goes
 *
 *   to nobody      when it is full: no list holds full slabs, its next free finds it by the page descriptor;
 *   to its node    when it has free objects: at the head of the node's list where only its slot used it, as it is
 *                  warm in that CPU's cache; at the tail where others freed into it, and when it comes from a slot's
 *                  partial list;
 *   to the pages   when it is empty and the node's list already holds min_partial slabs.
 *
 * Leaving for the page allocator: destructors run, and the pages are given back; those of an RCU-typesafe cache
 * wait in the deferred queue first. Whoever decides so takes the slab out of the node's figures under the node's
 * lock, and discards it after releasing that lock.
 *
 * The end of a thread takes its slot's empty slabs away in the same way. Those with objects in use, small active ones in any
 * case, and free objects that kfree has gathered (strays.c) stay in the slot, which nobody owns then: threads that come and
 * go, and hand on what they have, would do little else than end and make slabs. The slot's next owner allocates from them at
 * once, and frees into them as its own; whoever claims slots (to trim, shrink or end the heap) takes them, and so does the next
 * time that the heap settles. Only in the first SY_WARM_SLOTS, lest hundreds of threads leave them at once.
 *
 * Shrinking empties all slots, and then the nodes (nodes.c).
 */
#include "../../deferred.h"
#include "../../geometry.h"
#include "../../here.h"
#include "../../backend/metadata.h"
#include "yard.h"

#define WARM_BYTES ((size_t)16 << 10) /* of a slab without an object in use, that a thread leaves when it ends, at most */
#define CLASSES_LOOKED_AT 8u /* for one of which the slot has slabs or strays, each time that it needs pages; */
#define SLABS_LOOKED_AT 16u  /* and of those so many at most */
#define SLABS_TO_GROW 3u /* slabs of an order that a node has the memory of before it gets the first */

static struct sy__yard_node *node_of(const struct sy__yard_cache *cache, const struct sy_page *page)
{
	return &cache->nodes[sy__page_node(page)];
}

/* ---- Birth ---------------------------------------------------------------------------------------------------- */

static struct sy_page *take_pages(struct sy__yard_cache *cache, unsigned slot, unsigned flags, int node)
{
	unsigned order = __atomic_load_n(&cache->next_order, __ATOMIC_RELAXED);
	struct sy_heap *heap = cache->cache.heap;
	struct sy_page *page;

	flags = (flags & SY__INHERITED_FLAGS) | cache->page_flags;
	if (order > cache->least_order) {
		/* Nobody should give up memory for the comfort of a large slab. */
		page = sy__pages_take(heap, slot, order, flags | SY_NO_RECLAIM, node, SY_USE_SLAB);
		if (page)
			return page;
	}
	return sy__pages_take(heap, slot, cache->least_order, flags, node, SY_USE_SLAB);
}

/* How large the next slab is to be, as the node's pages have become more or fewer: the larger slabs are, the more of them may
 * have to be there for a few objects. With the node's lock held; where there are several nodes the last change counts. Read at
 * any time, and relaxed: each of its values is an order that suits. */
static void set_next_order(struct sy__yard_cache *cache, const struct sy__yard_node *node)
{
	unsigned order = cache->first_order;

	while (order < cache->order && node->pages >> (order + 1) >= SLABS_TO_GROW)
		order++;
	__atomic_store_n(&cache->next_order, (uint8_t)order, __ATOMIC_RELAXED);
}

/* Two at a time, as that is most of what a new slab costs. */
static inline void link_row(char *memory, size_t size, uint32_t objects, size_t offset)
{
	char *at = memory;

	for (uint32_t pairs = objects / 2; pairs; pairs--) {
		char *second = at + size;

		*(void **)(void *)(at + offset) = second;
		at = second + size;
		*(void **)(void *)(second + offset) = at;
	}
	*(void **)(void *)(memory + (objects - 1) * size + offset) = NULL;
}

/* Links objects side by side, at least one, in order of address. */
void sy__yard_link_row(const struct sy__yard_cache *cache, char *first, uint32_t objects)
{
	if (cache->offset)
		link_row(first, cache->cache.size, objects, cache->offset);
	else
		link_row(first, cache->cache.size, objects, 0);
}

static void construct_objects(const struct sy_cache *cache, char *memory, uint32_t objects)
{
	for (uint32_t i = 0; i < objects; i++)
		sy__construct(cache->constructor, memory + (size_t)i * cache->size, cache->object_size);
}

/* A slab for whoever asked: frozen and counted, with every object taken off the slab's own freelist, and linked from the first
 * on, but in heaps of threads where they are linked when they are needed. NULL: no memory. Called outside local sections, as it
 * may run every heap's shrink. */
struct sy_page *sy__yard_new_slab(struct sy__yard_cache *cache, unsigned slot, unsigned flags, int node)
{
	struct sy_page *page = take_pages(cache, slot, flags, node);
	struct sy__yard_slab *slab;
	struct sy__yard_node *home;
	uint32_t objects;
	char *memory;

	if (!page)
		return NULL;
	if (cache->cache.heap->threads && !sy__yard_set_page_map(cache, page, cache->sheaf_mark)) {
		sy__pages_give(cache->cache.heap, slot, page);
		return NULL;
	}
	objects = sy__order_objects(sy__page_order(page), cache->cache.size);
	slab = sy__yard_slab(page);
	slab->cache = cache;
	memory = sy__page_address(cache->cache.heap, page);
	if (cache->cache.constructor)
		construct_objects(&cache->cache, memory, objects);
	if (cache->cache.constructor || !cache->cache.heap->threads)
		sy__yard_link_row(cache, memory, objects);
	slab->word = sy__yard_word_taken(objects);
	sy__list_init(&slab->link);
	home = node_of(cache, page);
	sy__lock(&home->lock);
	home->slabs++;
	home->objects += objects;
	home->pages += (uint64_t)1 << sy__page_order(page);
	set_next_order(cache, home);
	sy__yard_node_took(cache, slot, home, page);
	sy__unlock(&home->lock);
	return page;
}

/* ---- Death ---------------------------------------------------------------------------------------------------- */

/* Takes a slab that is to be discarded out of the node's figures. With the node's lock held. */
void sy__yard_count_out(struct sy__yard_cache *cache, struct sy__yard_node *node, struct sy_page *page)
{
	node->slabs--;
	node->objects -= sy__yard_objects(page);
	node->pages -= (uint64_t)1 << sy__page_order(page);
	set_next_order(cache, node);
}

static uint64_t give_back(struct sy__yard_cache *cache, unsigned slot, struct sy_page *page)
{
	const struct sy_cache *common = &cache->cache;
	uint64_t pages = (uint64_t)1 << sy__page_order(page);

	if (common->destructor) {
		char *object = sy__page_address(common->heap, page);

		for (uint32_t i = sy__order_objects(sy__page_order(page), common->size); i; i--, object += common->size)
			common->destructor(object, common->object_size);
	}
	sy__pages_give(common->heap, slot, page);
	return pages;
}

/* Ends an empty slab that nobody can find any more. */
uint64_t sy__yard_discard(struct sy__yard_cache *cache, unsigned slot, struct sy_page *page)
{
	struct sy__yard_slab *slab = sy__yard_slab(page);

	if (!(cache->cache.flags & SY_CACHE_TYPESAFE_BY_RCU))
		return give_back(cache, slot, page);
	slab->word = 0;
	sy__defer(cache->cache.heap, &slab->deferred);
	return 0;
}

void sy__yard_grace_passed(struct sy_heap *heap, struct sy_deferred *entry)
{
	struct sy__yard_slab *slab = sy__entry(entry, struct sy__yard_slab, deferred);

	(void)heap;
	give_back(slab->cache, 0, sy__yard_page(slab));
}

/* ---- From a slot to the node ---------------------------------------------------------------------------------- */

/* Of more than so many one more is counted: a program that has freed an object twice gets no endless chain, but not the right
 * one either. */
static struct sy__yard_chain chain_of(const struct sy__yard_cache *cache, void *objects, uint32_t most)
{
	struct sy__yard_chain chain = { objects, objects, objects != NULL };

	for (void *at = objects; at && chain.count <= most && (at = *sy__yard_next(cache, at)); chain.count++)
		chain.last = at;
	return chain;
}

/* What a slot of a heap of threads keeps in a slab that it owns. */
static struct sy__yard_chain held_chain(const struct sy_page *page)
{
	const struct sy__yard_slab *slab = SY_SLAB_STATE(const struct sy__yard_slab, page);

	return (struct sy__yard_chain){ slab->held.freelist, NULL, slab->held_objects };
}

/* What a slot has of its active slab, but for what isn't carved. */
static struct sy__yard_chain active_chain(const struct sy__yard_cache *cache, const struct sy__yard_slot *own)
{
	struct sy__yard_chain chain = chain_of(cache, own->freelist, sy__yard_objects(own->slab)), held;

	if (!sy__yard_slots_own(cache))
		return chain;
	held = held_chain(own->slab);
	if (!chain.first)
		return held;
	if (held.first)
		*sy__yard_next(cache, chain.last) = held.first;
	return (struct sy__yard_chain){ chain.first, held.first ? NULL : chain.last, chain.count + held.count };
}

/* Puts a chain in front of what the word says is free. Its end is needed only if that is something. */
static void join(const struct sy__yard_cache *cache, struct sy__yard_chain *chain, uint64_t word)
{
	if (!chain->last && sy__yard_word_full(word))
		return;
	if (!chain->last)
		*chain = chain_of(cache, chain->first, sy__yard_word_objects(word));
	*sy__yard_next(cache, chain->last) = sy__yard_word_first(word, chain->last);
}

/* Whether to find the end of a chain takes longer than to find that of what the word says is free, which is something. */
static bool is_longer(const struct sy__yard_chain *chain, uint64_t word)
{
	return chain->first && !chain->last && !sy__yard_word_full(word) &&
	       chain->count > sy__yard_word_objects(word) - sy__yard_word_in_use(word);
}

/* Takes all that is free by the word, as the slab's slot may, in front of a chain. */
static void take_in_front(const struct sy__yard_cache *cache, struct sy_page *page, struct sy__yard_chain *chain)
{
	struct sy__yard_slab *slab = sy__yard_slab(page);
	uint64_t old = sy__load64(&slab->word);
	struct sy__yard_chain others;

	while (!sy__swap64(&slab->word, &old, sy__yard_word_take(old)))
		;
	others = chain_of(cache, sy__yard_word_first(old, sy__page_address(cache->cache.heap, page)), sy__yard_word_objects(old));
	*sy__yard_next(cache, others.last) = chain->first;
	chain->first = others.first;
	chain->count += others.count;
}

/* What a slab is that is no slot's any more. */
struct released {
	uint64_t word;
	bool others_freed; /* into it, while it was the slot's */
};

/* Makes the slab nobody's, with a slot's objects in front of its own free ones, or behind them where these are fewer: of what
 * is in front, each object is looked at, and most are in no cache. With its node's lock held, hence a slab that is partial from
 * now on comes onto the list before anybody looks there. */
static struct released release(const struct sy__yard_cache *cache, struct sy_page *page, struct sy__yard_chain chain)
{
	struct sy__yard_slab *slab = sy__yard_slab(page);
	uint64_t old = sy__load64(&slab->word), new;
	bool others_first = is_longer(&chain, old);

	sy__yard_set_owner(slab, SY__YARD_NOBODY);
	slab->emptied_pages = 0;
	if (others_first) {
		take_in_front(cache, page, &chain);
		old = sy__load64(&slab->word);
	}
	do {
		new = old & ~SY__YARD_FROZEN;
		if (chain.first) {
			join(cache, &chain, old);
			new = sy__yard_word_push(new, chain.first, chain.count);
		}
	} while (!sy__swap64(&slab->word, &old, new));
	return (struct released){ new, others_first || !sy__yard_word_full(old) };
}

/* Whether a slab with so many objects in use is empty and one too many for its node, and if so, takes it out of the node's
 * figures. With the node's lock held. */
static bool surplus(struct sy__yard_cache *cache, struct sy__yard_node *node, struct sy_page *page, uint32_t in_use)
{
	if (in_use || sy__yard_node_keeps(cache, node))
		return false;
	sy__yard_count_out(cache, node, page);
	return true;
}

/* The pages of a slab without an object in use go: no mark stays in their descriptor, which may be a large allocation's next,
 * and what other slots did to the objects that they freed is done (the exchange acquires what their pushes released). */
static void disown_empty(struct sy_page *page)
{
	struct sy__yard_slab *slab = sy__yard_slab(page);
	uint64_t old = sy__load64(&slab->word);

	sy__yard_set_owner(slab, SY__YARD_NOBODY);
	while (!sy__swap64(&slab->word, &old, old & ~SY__YARD_FROZEN))
		;
}

/* Whether the slot has all that is in use of its active slab, as its word says. */
static bool is_unused(const struct sy__yard_cache *cache, const struct sy__yard_slot *own)
{
	return own->uncarved + (own->astray ? 0 : chain_of(cache, own->freelist, sy__yard_objects(own->slab)).count) +
	       sy__yard_held_objects(cache, own->slab) == sy__yard_in_use(own->slab);
}

static uint64_t discard_unused(struct sy__yard_cache *cache, unsigned slot, struct sy__yard_slot *own)
{
	struct sy_page *page = own->slab;
	struct sy__yard_node *node = node_of(cache, page);

	sy__lock(&node->lock);
	sy__yard_count_out(cache, node, page);
	sy__unlock(&node->lock);
	disown_empty(page);
	sy__yard_forget(cache, own);
	return sy__yard_discard(cache, slot, page);
}

/* Takes the active slab away from a slot; pages that went back. In the slot's local section. */
uint64_t sy__yard_deactivate(struct sy__yard_cache *cache, unsigned slot, struct sy__yard_slot *own)
{
	struct sy_page *page = own->slab;
	struct sy__yard_node *node = node_of(cache, page);
	struct sy_list *link = &sy__yard_slab(page)->link;
	struct released released;
	uint64_t pages = sy__yard_end_strays(cache, slot);
	bool discard;

	/* Some are on no list yet: to keep the slab, all of them would have to be linked. */
	if (own->uncarved && is_unused(cache, own))
		return pages + discard_unused(cache, slot, own);
	sy__yard_end_carving(cache, own);
	sy__lock(&node->lock);
	released = release(cache, page, active_chain(cache, own));
	discard = surplus(cache, node, page, sy__yard_word_in_use(released.word));
	if (!discard && !sy__yard_word_full(released.word)) {
		bool others_freed = released.others_freed;

		sy__yard_count_partial(node, 1);
		sy__list_insert(link, others_freed ? node->partial.prev : &node->partial,
		                others_freed ? &node->partial : node->partial.next);
	}
	sy__unlock(&node->lock);
	sy__yard_forget(cache, own);
	return discard ? pages + sy__yard_discard(cache, slot, page) : pages;
}

/* Moves a slab that has been kept to its node, with the slot's objects in it. */
static uint64_t unfreeze(struct sy__yard_cache *cache, unsigned slot, struct sy_page *page, struct sy__yard_chain objects)
{
	struct sy__yard_node *node = node_of(cache, page);
	struct released released;
	bool discard;

	sy__lock(&node->lock);
	released = release(cache, page, objects);
	discard = surplus(cache, node, page, sy__yard_word_in_use(released.word));
	if (!discard) {
		sy__list_add_tail(&node->partial, &sy__yard_slab(page)->link);
		sy__yard_count_partial(node, 1);
	}
	sy__unlock(&node->lock);
	return discard ? sy__yard_discard(cache, slot, page) : 0;
}

/* A chain of them, linked through next. */
static uint64_t unfreeze_chain(struct sy__yard_cache *cache, unsigned slot, struct sy_page *page)
{
	struct sy_page *next;
	uint64_t pages = 0;

	for (; page; page = next) {
		next = sy__yard_slab(page)->next;
		pages += unfreeze(cache, slot, page, (struct sy__yard_chain){ 0 });
	}
	return pages;
}

/* One of a heap of threads without an object in use: if it goes, without a look at its objects. */
static uint64_t unfreeze_empty(struct sy__yard_cache *cache, unsigned slot, struct sy_page *page)
{
	struct sy__yard_node *node = node_of(cache, page);
	bool discard;

	sy__lock(&node->lock);
	discard = surplus(cache, node, page, 0);
	if (discard && sy__yard_is_foreign(sy__yard_slot(cache, slot), sy__yard_slab(page)))
		sy__yard_node_misses(cache, node);
	sy__unlock(&node->lock);
	if (!discard)
		return unfreeze(cache, slot, page, held_chain(page));
	disown_empty(page);
	return sy__yard_discard(cache, slot, page);
}

/* Gives back empty slabs of a slot of a heap of threads, but for so many. */
uint64_t sy__yard_give_empties(struct sy__yard_cache *cache, unsigned slot, uint32_t keep)
{
	struct sy__yard_slot *own = sy__yard_slot(cache, slot);
	uint64_t pages = 0;

	while (own->empty_slabs > keep)
		pages += unfreeze_empty(cache, slot, sy__yard_next_empty(cache, own));
	return pages;
}

/* Memory would have to come that is not there while the slot keeps slabs which nobody uses: they go to where the next request
 * finds them. */
SY__COLD void sy__yard_end_spares(struct sy_heap *heap, unsigned slot)
{
	sy__lock(&heap->lock);
	for (struct sy_list *at = heap->caches.next; at != &heap->caches; at = at->next) {
		struct sy__yard_cache *cache = sy__yard_cache(sy__entry(at, struct sy_cache, link));

		sy__yard_give_empties(cache, slot, cache->empty_limit);
		sy__yard_give_unused(cache, slot);
	}
	sy__unlock(&heap->lock);
}

static uint64_t give_strays(struct sy__yard_cache *cache, unsigned slot)
{
	uint64_t pages;

	if (!sy__yard_slots_own(cache))
		return 0;
	pages = sy__yard_give_strays(cache, slot);
	return pages + sy__yard_end_strays(cache, slot);
}

/* What a slot needs again and again is found out anew, and objects that it may have gathered long ago, or has no use for, go
 * home. */
static uint64_t spares_anew(struct sy__yard_cache *cache, unsigned slot)
{
	struct sy__yard_slot *own = sy__yard_slot(cache, slot);
	bool useless = own->sheaf || !own->slab || !cache->stray_limit;
	uint64_t pages = useless ? give_strays(cache, slot) : 0;

	sy__spares_anew(cache->cache.heap, slot);
	if (!own->spare && !own->missed)
		return pages;
	own->spare = own->missed = 0;
	return pages + sy__yard_give_empties(cache, slot, cache->empty_limit);
}

/* The nodes, which lie elsewhere, are asked only where any of the heap's keeps something. */
static bool has_idle(const struct sy__yard_heap *yard, const struct sy__yard_cache *cache, const struct sy__yard_slot *own)
{
	if (own->partial || own->strays || own->astray)
		return true;
	return __atomic_load_n(&yard->sparing, __ATOMIC_RELAXED) && sy__yard_has_spares(cache);
}

static void give_unnoticed(struct sy__yard_cache *cache, unsigned slot)
{
	struct sy__yard_slot *own = sy__yard_slot(cache, slot);
	struct sy_page *next = own->partial;

	for (unsigned looks = 0; next && looks < SLABS_LOOKED_AT; looks++) {
		struct sy_page *page = next;
		const struct sy__yard_slab *slab = sy__yard_slab(page);

		next = sy__yard_behind(cache, page);
		if (sy__yard_in_use_now(slab) == slab->held_objects)
			sy__yard_emptied(cache, own, page);
	}
	sy__yard_give_empties(cache, slot, 0);
}

/* Nobody notices when another slot frees the last object of an owned slab, which stays until its owner allocates such objects
 * again. Nor do strays go home by themselves, and each may be the last object of a slab of somebody else's. So who needs pages
 * for a class looks first at what the slot has of another class, of one after the other each time: strays go home, and slabs
 * without an object in use are given back, the node's too. In a slow call of a heap of threads. */
void sy__yard_look_around(struct sy__yard_heap *yard, unsigned slot)
{
	unsigned class = __atomic_load_n(&yard->looked_at, __ATOMIC_RELAXED), last = class + CLASSES_LOOKED_AT;
	struct sy__yard_cache *found = NULL;

	while (class != last && !found) {
		struct sy__yard_cache *cache = sy__yard_cache(yard->kmalloc.classes[class++ % SY__KMALLOC_MOST_CLASSES]);

		if (cache && has_idle(yard, cache, sy__yard_slot(cache, slot)))
			found = cache;
	}
	__atomic_store_n(&yard->looked_at, class, __ATOMIC_RELAXED);
	if (found) {
		give_strays(found, slot);
		give_unnoticed(found, slot);
		sy__yard_give_unused(found, slot);
	}
}

static struct sy_page *take_slot_partial(struct sy__yard_slot *own)
{
	struct sy_page *chain = own->partial;

	own->partial = NULL;
	own->partial_slabs = 0;
	return chain;
}

/* Puts a frozen slab on the slot's partial list; a list at its limit is moved to the nodes first. */
void sy__yard_keep(struct sy__yard_cache *cache, unsigned slot, struct sy_page *page)
{
	struct sy__yard_slot *own = sy__yard_slot(cache, slot);
	struct sy_page *overflow = NULL;

	sy__local_begin(slot);
	if (own->partial_slabs >= cache->slot_limit)
		overflow = take_slot_partial(own);
	sy__yard_hold(own, page);
	sy__local_end(slot);
	unfreeze_chain(cache, slot, overflow);
}

/* All that a slot of a heap of threads owns and doesn't allocate from. */
static uint64_t unfreeze_owned(struct sy__yard_cache *cache, unsigned slot)
{
	struct sy_page *page;
	uint64_t pages = 0;

	while ((page = sy__yard_next_owned(cache, sy__yard_slot(cache, slot))))
		pages += unfreeze(cache, slot, page, held_chain(page));
	return pages;
}

static uint64_t drain_slot(struct sy__yard_cache *cache, unsigned slot)
{
	struct sy__yard_slot *own = sy__yard_slot(cache, slot);
	uint64_t pages = 0;

	if (!own->slab && !own->partial && !own->empty && !own->freelist && !own->strays)
		return 0;
	sy__local_begin(slot);
	pages += give_strays(cache, slot);
	if (own->slab)
		pages += sy__yard_deactivate(cache, slot, own);
	if (sy__yard_slots_own(cache))
		pages += unfreeze_owned(cache, slot);
	else
		pages += unfreeze_chain(cache, slot, take_slot_partial(own));
	sy__local_end(slot);
	return pages;
}

/* Now and then. */
uint64_t sy__yard_settle(struct sy_cache *cache)
{
	struct sy__yard_cache *yard = sy__yard_cache(cache);
	uint64_t pages = 0;

	for (unsigned slot = 0; slot < sy__slots_used(cache->heap); slot++)
		if (sy__slot_reachable(cache, slot))
			pages += sy__slot_unowned(slot) ? drain_slot(yard, slot) : spares_anew(yard, slot);
	return pages + sy__yard_nodes_anew(yard);
}

/* Whether a thread that ends leaves its active slab in the slot. */
static bool stays(const struct sy__yard_cache *cache, const struct sy__yard_slot *own)
{
	return SY_PAGE_SIZE << sy__page_order(own->slab) <= WARM_BYTES || !is_unused(cache, own);
}

static void leave_for_next(struct sy__yard_cache *cache, unsigned slot)
{
	struct sy__yard_slot *own = sy__yard_slot(cache, slot);

	sy__yard_give_strays(cache, slot);
	own->came = 0;
	if (own->slab && !stays(cache, own))
		sy__yard_deactivate(cache, slot, own);
	sy__yard_give_empties(cache, slot, 0);
}

/* What a slot has when its CPU goes away, or its thread. */
void sy__yard_drain(struct sy_heap *heap, unsigned slot)
{
	sy__lock(&heap->lock);
	for (struct sy_list *at = heap->caches.next; at != &heap->caches; at = at->next) {
		struct sy__yard_cache *cache = sy__yard_cache(sy__entry(at, struct sy_cache, link));

		if (heap->threads && slot < SY_WARM_SLOTS && cache->empty_limit)
			leave_for_next(cache, slot);
		else
			drain_slot(cache, slot);
	}
	sy__unlock(&heap->lock);
}

/* ---- Shrinking and the end of a cache ------------------------------------------------------------------------- */

uint64_t sy__yard_shrink(struct sy_cache *cache)
{
	struct sy__yard_cache *yard = sy__yard_cache(cache);
	uint64_t pages = 0;

	for (unsigned slot = 0; slot < cache->heap->slots; slot++)
		if (sy__slot_reachable(cache, slot))
			pages += drain_slot(yard, slot);
	return pages + sy__yard_shrink_nodes(yard);
}

static bool belongs_to(const struct sy_deferred *entry, const void *cache)
{
	return sy__entry(entry, struct sy__yard_slab, deferred)->cache == cache;
}

/* Slabs with objects in use are left to sy_heap_destroy. Slabs that wait for a grace period go now: whoever
 * destroys an RCU-typesafe cache has waited for its readers. */
void sy__yard_cache_fini(struct sy_cache *cache)
{
	struct sy__yard_cache *yard = sy__yard_cache(cache);

	sy__yard_shrink(cache);
	sy__yard_nodes_end(yard);
	sy__deferred_finish(cache->heap, belongs_to, cache);
	sy__metadata_give(cache->heap, yard->nodes, yard->state_bytes);
	if (sy__yard_slots_own(yard))
		sy__slot_areas_give(cache->heap, yard->slots, sizeof(*yard->slots));
}
