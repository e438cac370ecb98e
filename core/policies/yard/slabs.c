/*
 * yard: the life of a slab, away from the fast path.
 *
 * A slab is born owned, with no object linked (with a constructor: all constructed and linked). Its owner gives it up when
 *
 *   it is full:        no list has it; owned.c does that.
 *   it is empty,       and the owner has more such than it may keep: it goes back to the page allocator, or to its node while
 *                      that has fewer than min_partial slabs.
 *   the slot is        because its thread ends, its CPU goes away, or memory is wanted back: to its node, at the tail where
 *   drained            others freed into it, else at the head.
 *
 * Leaving for the page allocator: destructors run, and the pages are given back; those of an RCU-typesafe cache wait in the
 * deferred queue first. Whoever decides so takes the slab out of the node's figures under the node's lock, and discards it after
 * releasing that lock.
 *
 * What goes by itself. Before a slot gets pages whose memory is not there yet, it gives up what it has beside objects in use
 * (sy__yard_end_spares): remote objects go home, empty slabs to the page allocator, those among them whose last object somebody
 * else has freed; and what nodes have of such. Each second all slots do that, those of idle threads too (sy__yard_settle), by
 * whichever thread makes the next slow call.
 */
#include "../../backend/metadata.h"
#include "../../deferred.h"
#include "../../geometry.h"
#include "../../here.h"
#include "yard.h"

#define SLABS_LOOKED_AT 16u /* of those that wait in a slot, for empty ones */
#define SLABS_TO_GROW 3u    /* slabs of an order that a node has the memory of before it gets the first */

/* ---- Birth ------------------------------------------------------------------------------------------------------------ */

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

static void construct_objects(const struct sy_cache *cache, char *memory, uint32_t objects)
{
	for (uint32_t i = 0; i < objects; i++)
		sy__construct(cache->constructor, memory + (size_t)i * cache->size, cache->object_size);
}

static bool is_found(const struct sy__yard_cache *cache, struct sy_page *page)
{
	struct sy__yard_heap *yard = sy__yard_heap(cache->cache.heap);

	return !yard->heap.threads || sy__page_map_set(&yard->page_map, &yard->heap, page, (size_t)1 << sy__page_order(page));
}

/* A slab for whoever asked, who has all its objects: counted, and constructed. NULL: no memory. Called outside local sections, as
 * it may run every heap's shrink. */
struct sy_page *sy__yard_new_slab(struct sy__yard_cache *cache, unsigned slot, unsigned flags, int node)
{
	struct sy_page *page = take_pages(cache, slot, flags, node);
	struct sy__yard_slab *slab;
	struct sy__yard_node *home;
	uint32_t objects;

	if (!page)
		return NULL;
	if (!is_found(cache, page)) {
		sy__pages_give(cache->cache.heap, slot, page);
		return NULL;
	}
	objects = sy__order_objects(sy__page_order(page), cache->cache.size);
	if (cache->cache.constructor)
		construct_objects(&cache->cache, sy__page_address(cache->cache.heap, page), objects);
	slab = sy__yard_slab(page);
	*slab = (struct sy__yard_slab){ .cache = cache, .word = sy__yard_word_taken(objects) };
	home = sy__yard_node(cache, page);
	sy__lock(&home->lock);
	home->slabs++;
	home->objects += objects;
	home->pages += (uint64_t)1 << sy__page_order(page);
	set_next_order(cache, home);
	sy__unlock(&home->lock);
	return page;
}

/* ---- Death ------------------------------------------------------------------------------------------------------------ */

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

/* ---- From a slot to the node ------------------------------------------------------------------------------------------- */

/* Free objects of one slab, linked. */
struct chain {
	void *first;
	uint32_t count;
};

/* The last object of a chain. A program that has freed an object twice gets no endless one, but not the right one either. */
static void *last_of(const struct sy__yard_cache *cache, struct chain chain)
{
	void *at = chain.first;

	for (uint32_t left = chain.count; left > 1 && *sy__yard_next(cache, at); left--)
		at = *sy__yard_next(cache, at);
	return at;
}

static uint32_t length(const struct sy__yard_cache *cache, void *at, uint32_t most)
{
	uint32_t count = 0;

	for (; at && count < most; at = *sy__yard_next(cache, at))
		count++;
	return count;
}

static struct chain local_chain(struct sy_page *page)
{
	const struct sy__yard_slab *slab = sy__yard_slab(page);

	return (struct chain){ slab->local.freelist, slab->local_objects };
}

/* All that a slot has of its active slab, of whose freelist the length is known. */
static struct chain active_chain(const struct sy__yard_cache *cache, struct sy__yard_slot *own, uint32_t on_freelist)
{
	struct chain local = local_chain(own->slab), chain = { own->freelist, on_freelist + own->uncarved };

	sy__yard_end_carving(cache, own);
	if (!chain.count)
		return local;
	chain.first = own->freelist;
	*sy__yard_next(cache, last_of(cache, chain)) = local.first;
	chain.count += local.count;
	return chain;
}

/* Makes the slab nobody's, with the owner's objects in front of those that others freed: its word then. With its node's lock held,
 * hence a slab that is partial from now on comes onto the list before anybody looks there. */
static uint64_t release(const struct sy__yard_cache *cache, struct sy_page *page, struct chain chain, bool *others_freed)
{
	struct sy__yard_slab *slab = sy__yard_slab(page);
	uint64_t old = sy__load64(&slab->word), new;
	void *last = NULL;

	sy__yard_set_owner(slab, SY__YARD_NOBODY);
	slab->emptied_pages = 0;
	do {
		new = old & ~SY__YARD_OWNED;
		if (chain.count && !sy__yard_word_full(old)) {
			last = last ? last : last_of(cache, chain);
			*sy__yard_next(cache, last) = sy__yard_word_first(old, last);
		}
		if (chain.count)
			new = sy__yard_word_push(new, chain.first, chain.count);
	} while (!sy__swap64(&slab->word, &old, new));
	*others_freed = !sy__yard_word_full(old);
	return new;
}

/* An owned slab, off the slot's lists, that has no object in use: it ends, without a look at its objects, unless it is to stay with
 * its node. The exchange acquires what others did to the objects that they freed; and no mark stays in a descriptor that may be a
 * large allocation's next. With the node's lock held. */
static bool ends(struct sy__yard_cache *cache, struct sy__yard_node *node, struct sy_page *page)
{
	struct sy__yard_slab *slab = sy__yard_slab(page);
	uint64_t old = sy__load64(&slab->word);

	if (sy__yard_node_keeps(cache, node))
		return false;
	sy__yard_count_out(cache, node, page);
	sy__yard_set_owner(slab, SY__YARD_NOBODY);
	while (!sy__swap64(&slab->word, &old, old & ~SY__YARD_OWNED))
		;
	return true;
}

/* What a slot has of one of its slabs goes to the slab's word, and the slab to its node, unless it turns out to be full, or empty
 * and one too many: true, it is to be discarded. With the node's lock held. */
static bool moves(struct sy__yard_cache *cache, struct sy__yard_node *node, struct sy_page *page, struct chain chain)
{
	struct sy_list *link = &sy__yard_slab(page)->link;
	bool others_freed;
	uint64_t word = release(cache, page, chain, &others_freed);

	if (!sy__yard_word_in_use(word) && !sy__yard_node_keeps(cache, node)) {
		sy__yard_count_out(cache, node, page);
		return true;
	}
	if (!sy__yard_word_full(word)) {
		sy__list_insert(link, others_freed ? node->partial.prev : &node->partial, others_freed ? &node->partial : node->partial.next);
		sy__yard_count_partial(node, 1);
	}
	return false;
}

/* An owned slab off the slot's lists, or its active one, of whose freelist the length is told. Pages that went back. */
static uint64_t give_up(struct sy__yard_cache *cache, unsigned slot, struct sy_page *page, uint32_t on_freelist)
{
	struct sy__yard_slot *own = sy__yard_slot(cache, slot);
	struct sy__yard_node *node = sy__yard_node(cache, page);
	bool active = page == own->slab, discard;
	uint32_t free = on_freelist + (active ? own->uncarved : 0) + sy__yard_slab(page)->local_objects;

	sy__lock(&node->lock);
	discard = free == sy__yard_in_use_now(sy__yard_slab(page)) && ends(cache, node, page);
	if (!discard)
		discard = moves(cache, node, page, active ? active_chain(cache, own, on_freelist) : local_chain(page));
	sy__unlock(&node->lock);
	return discard ? sy__yard_discard(cache, slot, page) : 0;
}

/* Takes the active slab away from a slot; pages that went back. In the slot's local section. */
uint64_t sy__yard_deactivate(struct sy__yard_cache *cache, unsigned slot, struct sy__yard_slot *own)
{
	uint64_t pages = give_up(cache, slot, own->slab, length(cache, own->freelist, sy__yard_objects(own->slab)));

	own->slab = NULL;
	own->freelist = NULL;
	own->uncarved = 0;
	return pages;
}

/* Gives up empty slabs of a slot, but for so many. Where it might keep some, those that go are missed from now on. */
uint64_t sy__yard_give_empties(struct sy__yard_cache *cache, unsigned slot, uint32_t keep)
{
	struct sy__yard_slot *own = sy__yard_slot(cache, slot);
	struct sy_page *page;
	uint64_t pages = 0;

	while (sy__unlikely(own->empty_slabs > keep) && (page = sy__yard_next_empty(cache, own))) {
		own->missed = (uint8_t)(own->missed + (keep && own->missed < SY__YARD_MOST_SPARE));
		pages += give_up(cache, slot, page, 0);
	}
	return pages;
}

static uint64_t drain_slot(struct sy__yard_cache *cache, unsigned slot)
{
	struct sy__yard_slot *own = sy__yard_slot(cache, slot);
	struct sy_page *page;
	uint64_t pages;

	if (!own->slab && !own->first && !own->empty && !own->remote)
		return 0;
	sy__local_begin(slot);
	pages = sy__yard_flush_remote(cache, slot);
	if (own->slab)
		pages += sy__yard_deactivate(cache, slot, own);
	pages += sy__yard_give_empties(cache, slot, 0);
	while ((page = sy__yard_next_owned(cache, own)))
		pages += give_up(cache, slot, page, 0);
	sy__local_end(slot);
	return pages;
}

/* What a slot has when its CPU goes away, or its thread. */
void sy__yard_drain(struct sy_heap *heap, unsigned slot)
{
	sy__lock(&heap->lock);
	for (struct sy_list *at = heap->caches.next; at != &heap->caches; at = at->next)
		drain_slot(sy__yard_cache(sy__entry(at, struct sy_cache, link)), slot);
	sy__unlock(&heap->lock);
}

/* ---- What nodes keep --------------------------------------------------------------------------------------------------- */

/* Gives back the slabs without an object in use that are on the node's list. */
static uint64_t give_unused(struct sy__yard_cache *cache, unsigned slot, struct sy__yard_node *node)
{
	struct sy_list empties, *next;
	uint64_t pages = 0;

	sy__list_init(&empties);
	sy__lock(&node->lock);
	for (struct sy_list *at = node->partial.next; at != &node->partial; at = next) {
		struct sy_page *page = sy__yard_linked(at);

		next = at->next;
		if (sy__yard_word_in_use(sy__yard_look(page)))
			continue;
		sy__list_remove(at);
		sy__list_add_head(&empties, at);
		sy__yard_count_partial(node, -1);
		sy__yard_count_out(cache, node, page);
	}
	sy__unlock(&node->lock);
	while (!sy__list_empty(&empties)) {
		struct sy_list *link = empties.next;

		sy__list_remove(link);
		pages += sy__yard_discard(cache, slot, sy__yard_linked(link));
	}
	return pages;
}

/* Only where the list is so short that some may be kept on it. Relaxed: a hint, and who gives something looks again. */
static uint64_t give_kept(struct sy__yard_cache *cache, unsigned slot)
{
	uint64_t pages = 0;

	for (unsigned i = 0; i < cache->cache.heap->nodes; i++) {
		size_t slabs = __atomic_load_n(&cache->nodes[i].partial_slabs, __ATOMIC_RELAXED);

		if (slabs && slabs <= cache->min_partial)
			pages += give_unused(cache, slot, &cache->nodes[i]);
	}
	return pages;
}

/* ---- Giving memory back ------------------------------------------------------------------------------------------------ */

/* Looks for slabs whose last object somebody else has freed, among those that wait. */
static void find_empty(struct sy__yard_cache *cache, struct sy__yard_slot *own)
{
	struct sy_page *next = sy__yard_numbered(cache, own->first);

	for (unsigned looks = 0; next && looks < SLABS_LOOKED_AT; looks++) {
		struct sy_page *page = next;
		const struct sy__yard_slab *slab = sy__yard_slab(page);

		next = sy__yard_behind(cache, page);
		if (sy__yard_in_use_now(slab) == slab->local_objects)
			sy__yard_emptied(cache, own, page);
	}
}

/* All that a slot has beside its active slab and those with objects in use. */
static uint64_t give_idle(struct sy__yard_cache *cache, unsigned slot)
{
	struct sy__yard_slot *own = sy__yard_slot(cache, slot);
	uint64_t pages;

	if (!own->remote && !own->first && !own->empty)
		return 0;
	pages = sy__yard_flush_remote(cache, slot);
	find_empty(cache, own);
	return pages + sy__yard_give_empties(cache, slot, 0);
}

SY__COLD void sy__yard_end_spares(struct sy_heap *heap, unsigned slot)
{
	sy__lock(&heap->lock);
	for (struct sy_list *at = heap->caches.next; at != &heap->caches; at = at->next) {
		struct sy__yard_cache *cache = sy__yard_cache(sy__entry(at, struct sy_cache, link));

		give_idle(cache, slot);
		give_kept(cache, slot);
	}
	sy__unlock(&heap->lock);
}

uint64_t sy__yard_settle(struct sy_cache *cache)
{
	struct sy__yard_cache *yard = sy__yard_cache(cache);
	uint64_t pages = 0;

	for (unsigned slot = 0; slot < sy__slots_used(cache->heap); slot++) {
		if (!sy__slot_reachable(cache, slot))
			continue;
		sy__spares_anew(cache->heap, slot);
		sy__yard_slot(yard, slot)->spare = sy__yard_slot(yard, slot)->missed = 0;
		pages += give_idle(yard, slot);
	}
	return pages + give_kept(yard, 0);
}

uint64_t sy__yard_shrink(struct sy_cache *cache)
{
	struct sy__yard_cache *yard = sy__yard_cache(cache);
	uint64_t pages = 0;

	for (unsigned slot = 0; slot < cache->heap->slots; slot++)
		if (sy__slot_reachable(cache, slot))
			pages += drain_slot(yard, slot);
	for (unsigned node = 0; node < cache->heap->nodes; node++)
		pages += give_unused(yard, 0, &yard->nodes[node]);
	return pages;
}

/* ---- The end of a cache ------------------------------------------------------------------------------------------------ */

static bool belongs_to(const struct sy_deferred *entry, const void *cache)
{
	return sy__entry(entry, struct sy__yard_slab, deferred)->cache == cache;
}

/* Slabs with objects in use are left to sy_heap_destroy. Slabs that wait for a grace period go now: whoever destroys an
 * RCU-typesafe cache has waited for its readers. */
void sy__yard_cache_fini(struct sy_cache *cache)
{
	struct sy__yard_cache *yard = sy__yard_cache(cache);

	sy__yard_shrink(cache);
	sy__deferred_finish(cache->heap, belongs_to, cache);
	sy__metadata_give(cache->heap, yard->nodes, yard->state_bytes);
	if (yard->stride == SY_SLOT_STRIDE)
		sy__slot_areas_give(cache->heap, yard->slots, sizeof(*yard->slots));
}
