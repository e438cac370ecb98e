/*
 * SLUB: the life of a slab, away from the fast path.
 *
 * A slab is born with all its objects constructed and on its freelist in order of address, owned by a slot (frozen). When
 * its slot gives it up (it is needed for another node, the slot's partial list overflows, or somebody drains the slot) it goes
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
 * A CPU that goes offline, or a thread that ends, drains its slot. Shrinking drains all slots that may be reached. Then it
 * gives back every empty slab, and sorts each node's list so that the fullest slabs are allocated from first and the emptiest
 * have time to become empty. One pass over 32 buckets does it: a slab with more than 32 free objects keeps its place behind
 * them.
 */
#include "../../deferred.h"
#include "../../geometry.h"
#include "../../here.h"
#include "../../backend/metadata.h"
#include "slub.h"

#define SHRINK_BUCKETS 32

static struct sy__slub_node *node_of(const struct sy__slub_cache *cache, const struct sy_page *page)
{
	return &cache->nodes[sy__page_node(page)];
}

/* ---- Birth ---------------------------------------------------------------------------------------------------- */

static struct sy_page *take_pages(struct sy__slub_cache *cache, unsigned slot, unsigned flags, int node)
{
	unsigned order = cache->order;
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

static void construct_objects(const struct sy_cache *cache, char *memory, uint32_t objects)
{
	for (uint32_t i = 0; i < objects; i++)
		sy__construct(cache->constructor, memory + (size_t)i * cache->size, cache->object_size);
}

/* A slab for whoever asked: frozen and counted, with every object taken off the slab's own freelist, and linked from the first
 * on. NULL: no memory. Called outside local sections, as it may run every heap's shrink. */
struct sy_page *sy__slub_new_slab(struct sy__slub_cache *cache, unsigned slot, unsigned flags, int node)
{
	struct sy_page *page = take_pages(cache, slot, flags, node);
	struct sy__slub_slab *slab;
	struct sy__slub_node *home;
	uint32_t objects;
	char *memory;

	if (!page)
		return NULL;
	objects = sy__order_objects(sy__page_order(page), cache->cache.size);
	slab = sy__slub_slab(page);
	slab->cache = cache;
	memory = sy__page_address(cache->cache.heap, page);
	if (cache->cache.constructor)
		construct_objects(&cache->cache, memory, objects);
	link_row(memory, cache->cache.size, objects, cache->offset);
	slab->word = sy__slub_word_taken(objects);
	sy__list_init(&slab->link);
	home = node_of(cache, page);
	sy__lock(&home->lock);
	home->slabs++;
	home->objects += objects;
	home->pages += (uint64_t)1 << sy__page_order(page);
	sy__unlock(&home->lock);
	return page;
}

/* ---- Death ---------------------------------------------------------------------------------------------------- */

/* Takes a slab that is to be discarded out of the node's figures. With the node's lock held. */
void sy__slub_count_out(struct sy__slub_node *node, struct sy_page *page)
{
	node->slabs--;
	node->objects -= sy__slub_objects(page);
	node->pages -= (uint64_t)1 << sy__page_order(page);
}

static uint64_t give_back(struct sy__slub_cache *cache, unsigned slot, struct sy_page *page)
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
uint64_t sy__slub_discard(struct sy__slub_cache *cache, unsigned slot, struct sy_page *page)
{
	struct sy__slub_slab *slab = sy__slub_slab(page);

	if (!(cache->cache.flags & SY_CACHE_TYPESAFE_BY_RCU))
		return give_back(cache, slot, page);
	slab->word = 0;
	sy__defer(cache->cache.heap, &slab->deferred);
	return 0;
}

void sy__slub_grace_passed(struct sy_heap *heap, struct sy_deferred *entry)
{
	struct sy__slub_slab *slab = sy__entry(entry, struct sy__slub_slab, deferred);

	(void)heap;
	give_back(slab->cache, 0, sy__slub_page(slab));
}

/* ---- From a slot to the node ---------------------------------------------------------------------------------- */

/* Of more than so many one more is counted: a program that has freed an object twice gets no endless chain, but not the right
 * one either. */
static struct sy__slub_chain chain_of(const struct sy__slub_cache *cache, void *objects, uint32_t most)
{
	struct sy__slub_chain chain = { objects, objects, objects != NULL };

	for (void *at = objects; at && chain.count <= most && (at = *sy__slub_next(cache, at)); chain.count++)
		chain.last = at;
	return chain;
}

/* What a slab is that is no slot's any more. */
struct released {
	uint64_t word;
	bool others_freed; /* into it, while it was the slot's */
};

/* Makes the slab nobody's, with a slot's objects in front of its own free ones. With its node's lock held, hence a slab that is
 * partial from now on comes onto the list before anybody looks there. */
static struct released release(const struct sy__slub_cache *cache, struct sy_page *page, struct sy__slub_chain chain)
{
	struct sy__slub_slab *slab = sy__slub_slab(page);
	uint64_t old = sy__load64(&slab->word), new;

	do {
		new = old & ~SY__SLUB_FROZEN;
		if (chain.first) {
			*sy__slub_next(cache, chain.last) = sy__slub_word_first(old, chain.last);
			new = sy__slub_word_push(new, chain.first, chain.count);
		}
	} while (!sy__swap64(&slab->word, &old, new));
	return (struct released){ new, !sy__slub_word_full(old) };
}

/* Whether a slab with so many objects in use is empty and one too many for its node, and if so, takes it out of the node's
 * figures. With the node's lock held. */
static bool surplus(struct sy__slub_cache *cache, struct sy__slub_node *node, struct sy_page *page, uint32_t in_use)
{
	if (in_use || sy__slub_node_keeps(cache, node))
		return false;
	sy__slub_count_out(node, page);
	return true;
}

/* Takes the active slab away from a slot; pages that went back. In the slot's local section. */
uint64_t sy__slub_deactivate(struct sy__slub_cache *cache, unsigned slot, struct sy__slub_slot *own)
{
	struct sy_page *page = own->slab;
	struct sy__slub_chain objects = chain_of(cache, own->freelist, sy__slub_objects(page));
	struct sy__slub_node *node = node_of(cache, page);
	struct sy_list *link = &sy__slub_slab(page)->link;
	struct released released;
	bool discard;

	sy__lock(&node->lock);
	released = release(cache, page, objects);
	discard = surplus(cache, node, page, sy__slub_word_in_use(released.word));
	if (!discard && !sy__slub_word_full(released.word)) {
		bool others_freed = released.others_freed;

		sy__slub_count_partial(node, 1);
		sy__list_insert(link, others_freed ? node->partial.prev : &node->partial,
		                others_freed ? &node->partial : node->partial.next);
	}
	sy__unlock(&node->lock);
	sy__slub_forget(own);
	return discard ? sy__slub_discard(cache, slot, page) : 0;
}

/* Moves a slab that has been kept to its node. */
static uint64_t unfreeze(struct sy__slub_cache *cache, unsigned slot, struct sy_page *page)
{
	struct sy__slub_node *node = node_of(cache, page);
	struct released released;
	bool discard;

	sy__lock(&node->lock);
	released = release(cache, page, (struct sy__slub_chain){ 0 });
	discard = surplus(cache, node, page, sy__slub_word_in_use(released.word));
	if (!discard) {
		sy__list_add_tail(&node->partial, &sy__slub_slab(page)->link);
		sy__slub_count_partial(node, 1);
	}
	sy__unlock(&node->lock);
	return discard ? sy__slub_discard(cache, slot, page) : 0;
}

/* A chain of them, linked through next. */
static uint64_t unfreeze_chain(struct sy__slub_cache *cache, unsigned slot, struct sy_page *page)
{
	struct sy_page *next;
	uint64_t pages = 0;

	for (; page; page = next) {
		next = sy__slub_slab(page)->next;
		pages += unfreeze(cache, slot, page);
	}
	return pages;
}

static struct sy_page *take_slot_partial(struct sy__slub_slot *own)
{
	struct sy_page *chain = own->partial;

	own->partial = NULL;
	own->partial_slabs = 0;
	return chain;
}

/* Puts a frozen slab on the slot's partial list; a list at its limit is moved to the nodes first. */
void sy__slub_keep(struct sy__slub_cache *cache, unsigned slot, struct sy_page *page)
{
	struct sy__slub_slot *own = sy__slub_slot(cache, slot);
	struct sy_page *overflow = NULL;

	sy__local_begin(slot);
	if (own->partial_slabs >= cache->slot_limit)
		overflow = take_slot_partial(own);
	sy__slub_hold(own, page);
	sy__local_end(slot);
	unfreeze_chain(cache, slot, overflow);
}

static uint64_t drain_slot(struct sy__slub_cache *cache, unsigned slot)
{
	struct sy__slub_slot *own = sy__slub_slot(cache, slot);
	uint64_t pages = 0;

	if (!own->slab && !own->partial)
		return 0;
	sy__local_begin(slot);
	if (own->slab)
		pages += sy__slub_deactivate(cache, slot, own);
	pages += unfreeze_chain(cache, slot, take_slot_partial(own));
	sy__local_end(slot);
	return pages;
}

/* What a slot has when its CPU goes away, or its thread. */
void sy__slub_drain(struct sy_heap *heap, unsigned slot)
{
	sy__lock(&heap->lock);
	for (struct sy_list *at = heap->caches.next; at != &heap->caches; at = at->next)
		drain_slot(sy__slub_cache(sy__entry(at, struct sy_cache, link)), slot);
	sy__unlock(&heap->lock);
}

/* ---- Shrinking and the end of a cache ------------------------------------------------------------------------- */

static void move_to_head(struct sy_list *list, struct sy_list *link)
{
	sy__list_remove(link);
	sy__list_add_head(list, link);
}

/* Gives back slabs without an object in use; pages that went back. */
static uint64_t give_unused(struct sy__slub_cache *cache, unsigned slot, struct sy__slub_node *node)
{
	struct sy_list empties, *next;
	uint64_t pages = 0;

	sy__list_init(&empties);
	sy__lock(&node->lock);
	for (struct sy_list *at = node->partial.next; at != &node->partial; at = next) {
		struct sy_page *page = sy__slub_linked(at);

		next = at->next;
		if (sy__slub_in_use(page))
			continue;
		move_to_head(&empties, at);
		sy__slub_count_partial(node, -1);
		sy__slub_count_out(node, page);
	}
	sy__unlock(&node->lock);
	while (!sy__list_empty(&empties)) {
		struct sy_list *link = empties.next;

		sy__list_remove(link);
		pages += sy__slub_discard(cache, slot, sy__slub_linked(link));
	}
	return pages;
}

/* Empties one list into the head of another, keeping the order. */
static void splice_to_head(struct sy_list *list, struct sy_list *from)
{
	while (!sy__list_empty(from))
		move_to_head(list, from->prev);
}

/* Sorts the node's list. */
static void sort_partial(struct sy__slub_node *node)
{
	struct sy_list buckets[SHRINK_BUCKETS], *next;

	for (unsigned i = 0; i < SHRINK_BUCKETS; i++)
		sy__list_init(&buckets[i]);
	sy__lock(&node->lock);
	for (struct sy_list *at = node->partial.next; at != &node->partial; at = next) {
		uint64_t word = sy__slub_look(sy__slub_linked(at));
		uint32_t free = sy__slub_word_objects(word) - sy__slub_word_in_use(word);

		next = at->next;
		if (free <= SHRINK_BUCKETS)
			move_to_head(&buckets[free - 1], at);
	}
	for (unsigned i = SHRINK_BUCKETS; i; i--)
		splice_to_head(&node->partial, &buckets[i - 1]);
	sy__unlock(&node->lock);
}

static uint64_t shrink_node(struct sy__slub_cache *cache, struct sy__slub_node *node)
{
	uint64_t pages = give_unused(cache, 0, node);

	sort_partial(node);
	return pages;
}

uint64_t sy__slub_shrink(struct sy_cache *cache)
{
	struct sy__slub_cache *slub = sy__slub_cache(cache);
	uint64_t pages = 0;

	for (unsigned slot = 0; slot < sy__slots_used(cache->heap); slot++)
		if (sy__slot_reachable(cache, slot))
			pages += drain_slot(slub, slot);
	for (unsigned node = 0; node < cache->heap->nodes; node++)
		pages += shrink_node(slub, &slub->nodes[node]);
	return pages;
}

static bool belongs_to(const struct sy_deferred *entry, const void *cache)
{
	return sy__entry(entry, struct sy__slub_slab, deferred)->cache == cache;
}

/* Slabs with objects in use are left to sy_heap_destroy. Slabs that wait for a grace period go now: whoever
 * destroys an RCU-typesafe cache has waited for its readers. */
void sy__slub_cache_fini(struct sy_cache *cache)
{
	struct sy__slub_cache *slub = sy__slub_cache(cache);

	sy__slub_shrink(cache);
	sy__deferred_finish(cache->heap, belongs_to, cache);
	sy__slub_end_slots(slub);
}
