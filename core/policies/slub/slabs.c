/*
 * SLUB: the life of a slab, away from the fast path.
 *
 * A slab is born with all its objects constructed and on its freelist in order of address, owned by a slot (frozen). A slot gives
 * its slab up when a request needs another node, when its partial list overflows, or when it is drained. The slab then
 *
 *   belongs to nobody      if it is full: no list holds full slabs, and its next free finds it by the page descriptor;
 *   goes to its node       if it has free objects: to the head of the node's list if only its slot freed into it, as it is warm in
 *                          that CPU's cache; to the tail if others did, or if it comes from a slot's partial list;
 *   goes back to pages     if it is empty and the node's list already has min_partial slabs.
 *
 * What is the same for yard is in ../node.c.
 *
 * A CPU that goes offline, or a thread that ends, drains its slot. Shrinking drains all reachable slots, gives every empty slab
 * back, and sorts each node's list: allocation then starts with the fullest slabs, and the emptiest have time to become empty.
 * One pass over 32 buckets sorts; slabs with more than 32 free objects keep their place behind the others.
 */
#include "../../this_slot.h"
#include "slub.h"

#define SHRINK_BUCKETS 32

/* ---- Birth ---------------------------------------------------------------------------------------------------- */

/* Links all objects of a new slab; returns the first. */
#ifndef SY_HARDENED
/* In order of address; two in each step, as this is most of the cost of a new slab. */
static inline void *link_objects(struct sy__slub_cache *cache, unsigned slot, char *memory, uint32_t objects)
{
	size_t size = cache->base.cache.size, offset = cache->base.offset;
	char *at = memory;

	(void)slot;
	for (uint32_t pairs = objects / 2; pairs; pairs--) {
		char *second = at + size;

		sy__link_set(&cache->base, at, offset, second);
		at = second + size;
		sy__link_set(&cache->base, second, offset, at);
	}
	sy__link_set(&cache->base, memory + (objects - 1) * size, offset, NULL);
	return memory;
}
#else
static void *link_objects(struct sy__slub_cache *cache, unsigned slot, char *memory, uint32_t objects)
{
	return sy__node_link_row(&cache->base, &sy__slub_slot(cache, slot)->ring, memory, objects, NULL);
}
#endif

/* Makes a slab for a slot: frozen and counted, with an empty freelist of its own, and all objects linked from *first on. NULL: no
 * memory. Called outside local sections, as it may run every heap's shrink. */
struct sy_page *sy__slub_new_slab(struct sy__slub_cache *cache, unsigned slot, unsigned flags, int node, void **first)
{
	struct sy_page *page = sy__node_take_pages(&cache->base, slot, cache->base.order, flags, node);

	if (!page)
		return NULL;
	sy__node_make_slab(&cache->base, page);
	*first = link_objects(cache, slot, sy__page_address(cache->base.cache.heap, page), sy__node_objects(page));
	return page;
}

/* ---- From a slot to the node ---------------------------------------------------------------------------------- */

/* Stops after most + 1 objects: if a program freed an object twice the chain is a circle, and the count wrong in any case. */
static struct sy__slub_chain chain_of(const struct sy__slub_cache *cache, void *objects, uint32_t most)
{
	struct sy__slub_chain chain = { objects, objects, 1 };

	if (sy__slub_is_end(objects))
		return (struct sy__slub_chain){ 0 };
	for (void *at = objects; chain.count <= most && !sy__slub_is_end(at = sy__node_next(&cache->base, at)); chain.count++)
		chain.last = at;
	return chain;
}

/* A slab that a slot gave up. */
struct released {
	uint64_t word;
	bool others_freed; /* into it, while it was the slot's */
};

/* Unfreezes the slab, and puts the slot's objects in front of its own free ones. With the node's lock held, so that the caller can put
 * the slab on the list before another slot looks there. */
static struct released release(const struct sy__slub_cache *cache, struct sy_page *page, struct sy__slub_chain chain)
{
	struct sy__node_slab *slab = sy__node_slab(page);
	uint64_t old = sy__load64(&slab->word), new;

	do {
		new = old & ~SY__WORD_FROZEN;
		if (chain.first) {
			sy__node_link(&cache->base, chain.last, sy__word_first(old, chain.last));
			new = sy__word_push(new, chain.first, chain.count);
		}
	} while (!sy__swap64(&slab->word, &old, new));
	return (struct released){ new, !sy__word_full(old) };
}

/* Takes the active slab away from a slot; returns pages given back. In the slot's local section. */
uint64_t sy__slub_deactivate(struct sy__slub_cache *cache, unsigned slot, struct sy__slub_slot *own)
{
	struct sy_page *page = own->slab;
	struct sy__slub_chain objects = chain_of(cache, own->freelist, sy__node_objects(page));
	struct sy__node *node = sy__node_of(&cache->base, page);
	struct released released;
	bool discard;

	sy__lock(&node->lock);
	released = release(cache, page, objects);
	discard = sy__node_place(&cache->base, node, page, false, released.word, !released.others_freed);
	sy__unlock(&node->lock);
	sy__slub_forget(own);
	return discard ? sy__node_discard(&cache->base, slot, page) : 0;
}

/* Moves slabs of a slot's partial list, linked through next, to their nodes. A node's lock is taken once for those that follow each other;
 * what is empty is given back behind it. */
static uint64_t unfreeze_chain(struct sy__slub_cache *cache, unsigned slot, struct sy_page *page)
{
	struct sy_page *discarded = NULL, **last = &discarded, *next;
	struct sy__node *node = NULL;
	uint64_t pages = 0;

	for (; page; page = next) {
		struct sy__node *home = sy__node_of(&cache->base, page);
		struct released released;

		next = *sy__slub_next(page);
		if (node && node != home)
			sy__unlock(&node->lock);
		if (node != home)
			sy__lock(&home->lock);
		node = home;
		released = release(cache, page, (struct sy__slub_chain){ 0 });
		if (sy__node_place(&cache->base, node, page, false, released.word, false)) {
			*last = page;
			last = sy__slub_next(page);
		}
	}
	if (node)
		sy__unlock(&node->lock);
	for (*last = NULL, page = discarded; page; page = next) {
		next = *sy__slub_next(page);
		pages += sy__node_discard(&cache->base, slot, page);
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
void sy__slub_put_cpu_partial(struct sy__slub_cache *cache, unsigned slot, struct sy_page *page)
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

static uint64_t drain_slot(struct sy__node_cache *base, unsigned slot)
{
	struct sy__slub_cache *cache = sy__slub_cache(&base->cache);
	struct sy__slub_slot *own = sy__slub_slot(cache, slot);
	uint64_t pages = 0;

#ifdef SY_HARDENED
	for (void *object; (object = sy__node_dismiss(&own->ring));)
		free_slow(cache, slot, object);
#endif
	if (cache->sheaves)
		sy__slub_sheaves_drain(cache, slot);
	if (!own->slab && !own->partial)
		return 0;
	sy__local_begin(slot);
	if (own->slab)
		pages += sy__slub_deactivate(cache, slot, own);
	pages += unfreeze_chain(cache, slot, take_slot_partial(own));
	sy__local_end(slot);
	return pages;
}

/* Empties a slot whose CPU goes offline, or whose thread ends. */
void sy__slub_drain(struct sy_heap *heap, unsigned slot)
{
	sy__node_drain_all(heap, slot, drain_slot);
}

/* ---- Shrinking and the end of a cache ------------------------------------------------------------------------- */

static void move_to_head(struct sy_list *list, struct sy_list *link)
{
	sy__list_remove(link);
	sy__list_add_head(list, link);
}

/* Empties one list into the head of another, keeping the order. */
static void splice_to_head(struct sy_list *list, struct sy_list *from)
{
	while (!sy__list_empty(from))
		move_to_head(list, from->prev);
}

/* Sorts the node's list by free objects, fewest first. */
static void sort_partial(struct sy__node *node)
{
	struct sy_list buckets[SHRINK_BUCKETS], *next;

	for (unsigned i = 0; i < SHRINK_BUCKETS; i++)
		sy__list_init(&buckets[i]);
	sy__lock(&node->lock);
	for (struct sy_list *at = node->partial.next; at != &node->partial; at = next) {
		uint64_t word = sy__node_word(sy__node_linked(at));
		uint32_t free = sy__word_objects(word) - sy__word_in_use(word);

		next = at->next;
		if (free <= SHRINK_BUCKETS)
			move_to_head(&buckets[free - 1], at);
	}
	for (unsigned i = SHRINK_BUCKETS; i; i--)
		splice_to_head(&node->partial, &buckets[i - 1]);
	sy__unlock(&node->lock);
}

uint64_t sy__slub_shrink(struct sy_cache *cache)
{
	struct sy__node_cache *base = sy__node_cache(cache);
	struct sy__slub_cache *class = NULL;
	uint64_t pages;

	if (sy__slub_cache(cache)->sheaves) {
		sy__slub_sheaves_shrink(sy__slub_cache(cache));
		class = sy__slub_sheaves_class(sy__slub_cache(cache));
	}
	pages = sy__node_shrink(base, drain_slot);
	if (class && !sy__slub_heap(cache->heap)->classes_end) /* where sheaves were, slabs may be empty now */
		pages += sy__node_shrink(&class->base, drain_slot);
	for (unsigned node = 0; node < cache->heap->nodes; node++)
		sort_partial(&base->nodes[node]);
	return pages;
}

#ifdef SY_HARDENED
uint64_t sy__slub_scavenge(struct sy_cache *cache)
{
	return sy__node_empty_retired(sy__node_cache(cache));
}
#endif

/* Slabs with objects in use are left to sy_heap_destroy. */
void sy__slub_cache_fini(struct sy_cache *cache)
{
	if (cache->flags & SY_CACHE_KMALLOC)
		sy__slub_heap(cache->heap)->classes_end = true;
	if (sy__slub_cache(cache)->sheaves)
		sy__slub_sheaves_fini(sy__slub_cache(cache));
	sy__slub_shrink(cache);
	sy__node_cache_fini(sy__node_cache(cache));
}
