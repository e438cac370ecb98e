/*
 * yard: the life of a slab, away from the fast path.
 *
 * A slab is born owned, with no object linked (with a constructor: all constructed and linked). Its owner gives it up when
 *
 *   it is full:        no list has it; owned.c does that.
 *   it is empty,       and the owner has more such than it may keep: it goes back to the page allocator (or to its node while
 *                      that has fewer than min_partial slabs: none by default).
 *   the slot is        because its thread ends, its CPU goes away, or memory is wanted back: to its node, at the tail where
 *   drained            others freed into it, else at the head.
 *
 * Leaving for the page allocator: destructors run, and the pages are given back; those of an RCU-typesafe cache wait in the
 * deferred queue first. Whoever decides so takes the slab out of the node's figures under the node's lock, and discards it after
 * releasing that lock.
 *
 * What goes by itself. Before a slot gets pages whose memory is not there yet, it gives up what it has beside objects in use
 * (sy__yard_release_retained): remote objects go home, empty slabs to the page allocator, those among them whose last object somebody
 * else has freed. Each second all slots do that, those of idle threads too (sy__yard_scavenge), by whichever thread makes the next
 * slow call.
 */
#include "../../this_slot.h"
#include "yard.h"

#define LOOKS_FOR_PAGES 16u /* at slabs that wait in a slot, for empty ones: each time that it needs pages, */
#define LOOKS_A_SECOND 512u /* and each second */
#define SLABS_TO_GROW 3u    /* slabs of an order that a node has the memory of before it gets the first */

/* ---- Birth ------------------------------------------------------------------------------------------------------------ */

/* How large the next slab is to be, as the node's pages have become more or fewer: the larger slabs are, the more of them may
 * have to be there for a few objects. With the node's lock held; where there are several nodes the last change counts. Read at
 * any time, and relaxed: each of its values is an order that suits. */
void sy__yard_set_next_order(struct sy__yard_cache *cache, const struct sy__node *node)
{
	unsigned order = cache->first_order;

	while (order < cache->base.order && node->pages >> (order + 1) >= SLABS_TO_GROW)
		order++;
	__atomic_store_n(&cache->next_order, (uint8_t)order, __ATOMIC_RELAXED);
}

static bool is_found(const struct sy__yard_cache *cache, struct sy_page *page)
{
	struct sy__yard_heap *yard = sy__yard_heap(cache->base.cache.heap);

	return !yard->heap.threads || sy__page_map_set(&yard->page_map, &yard->heap, page, (size_t)1 << sy__page_order(page));
}

/* A slab for whoever asked, who has all its objects. NULL: no memory. Called outside local sections, as it may run every heap's
 * shrink. */
struct sy_page *sy__yard_new_slab(struct sy__yard_cache *cache, unsigned slot, unsigned flags, int node)
{
	unsigned order = __atomic_load_n(&cache->next_order, __ATOMIC_RELAXED);
	struct sy_page *page = sy__node_take_pages(&cache->base, slot, order, flags, node);
	struct sy__yard_slab *slab;
	struct sy__node *home;

	if (!page)
		return NULL;
	if (!is_found(cache, page)) {
		sy__pages_give(cache->base.cache.heap, slot, page);
		return NULL;
	}
	sy__node_make_slab(&cache->base, page);
	slab = sy__yard_slab(page);
	sy__yard_set_owner(slab, SY__YARD_NOBODY);
	slab->base.local.freelist = NULL;
	slab->emptied_pages = 0;
	home = sy__node_of(&cache->base, page);
	sy__lock(&home->lock);
	sy__node_count_in(home, page);
	sy__yard_set_next_order(cache, home);
	sy__unlock(&home->lock);
	return page;
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

	for (uint32_t left = chain.count; left > 1 && *sy__node_next(&cache->base, at); left--)
		at = *sy__node_next(&cache->base, at);
	return at;
}

static uint32_t length(const struct sy__yard_cache *cache, void *at, uint32_t most)
{
	uint32_t count = 0;

	for (; at && count < most; at = *sy__node_next(&cache->base, at))
		count++;
	return count;
}

static struct chain local_chain(struct sy_page *page)
{
	const struct sy__yard_slab *slab = sy__yard_slab(page);

	return (struct chain){ slab->base.local.freelist, slab->local_objects };
}

/* All that a slot has of its active slab, of whose freelist the length is known. */
static struct chain active_chain(const struct sy__yard_cache *cache, struct sy__yard_slot *own, uint32_t on_freelist)
{
	struct chain local = local_chain(own->slab), chain = { own->freelist, on_freelist + own->uncarved };

	sy__yard_end_carving(cache, own);
	if (!chain.count)
		return local;
	chain.first = own->freelist;
	*sy__node_next(&cache->base, last_of(cache, chain)) = local.first;
	chain.count += local.count;
	return chain;
}

/* Makes the slab nobody's, with the owner's objects in front of those that others freed: its word then. With its node's lock held,
 * hence a slab that is partial from now on comes onto the list before anybody looks there. */
static uint64_t release(const struct sy__yard_cache *cache, struct sy_page *page, struct chain chain, bool *others_freed)
{
	struct sy__yard_slab *slab = sy__yard_slab(page);
	uint64_t old = sy__load64(&slab->base.word), new;
	void *last = NULL;

	sy__yard_set_owner(slab, SY__YARD_NOBODY);
	slab->emptied_pages = 0;
	do {
		new = old & ~SY__WORD_FROZEN;
		if (chain.count && !sy__word_full(old)) {
			last = last ? last : last_of(cache, chain);
			*sy__node_next(&cache->base, last) = sy__word_first(old, last);
		}
		if (chain.count)
			new = sy__word_push(new, chain.first, chain.count);
	} while (!sy__swap64(&slab->base.word, &old, new));
	*others_freed = !sy__word_full(old);
	return new;
}

/* An owned slab, off the slot's lists, that has no object in use: it ends, without a look at its objects, unless it is to stay with
 * its node. The exchange acquires what others did to the objects that they freed; and no mark stays in a descriptor that may be a
 * large allocation's next. With the node's lock held. */
static bool ends(struct sy__yard_cache *cache, struct sy__node *node, struct sy_page *page)
{
	struct sy__yard_slab *slab = sy__yard_slab(page);
	uint64_t old = sy__load64(&slab->base.word);

	if (sy__node_keeps(&cache->base, node))
		return false;
	sy__node_count_out(node, page);
	sy__yard_set_owner(slab, SY__YARD_NOBODY);
	while (!sy__swap64(&slab->base.word, &old, old & ~SY__WORD_FROZEN))
		;
	return true;
}

/* What a slot has of one of its slabs goes to the slab's word, and the slab where that then says. Whether it is to be discarded. With
 * the node's lock held. */
static bool moves(struct sy__yard_cache *cache, struct sy__node *node, struct sy_page *page, struct chain chain)
{
	bool others_freed;
	uint64_t word = release(cache, page, chain, &others_freed);

	return sy__node_place(&cache->base, node, page, false, word, !others_freed);
}

/* An owned slab off the slot's lists, or its active one, of whose freelist the length is told. Pages that went back. */
static uint64_t give_up(struct sy__yard_cache *cache, unsigned slot, struct sy_page *page, uint32_t on_freelist)
{
	struct sy__yard_slot *own = sy__yard_slot(cache, slot);
	struct sy__node *node = sy__node_of(&cache->base, page);
	bool active = page == own->slab, discard;
	uint32_t free = on_freelist + (active ? own->uncarved : 0) + sy__yard_slab(page)->local_objects;

	sy__lock(&node->lock);
	discard = free == sy__yard_in_use_now(sy__yard_slab(page)) && ends(cache, node, page);
	if (!discard)
		discard = moves(cache, node, page, active ? active_chain(cache, own, on_freelist) : local_chain(page));
	sy__yard_set_next_order(cache, node);
	sy__unlock(&node->lock);
	return discard ? sy__node_discard(&cache->base, slot, page) : 0;
}

/* Takes the active slab away from a slot; pages that went back. In the slot's local section. */
uint64_t sy__yard_deactivate(struct sy__yard_cache *cache, unsigned slot, struct sy__yard_slot *own)
{
	uint64_t pages = give_up(cache, slot, own->slab, length(cache, own->freelist, sy__node_objects(own->slab)));

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

static uint64_t drain_slot(struct sy__node_cache *base, unsigned slot)
{
	struct sy__yard_cache *cache = sy__yard_cache(&base->cache);
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
	sy__node_drain_all(heap, slot, drain_slot);
}

/* ---- Giving memory back ------------------------------------------------------------------------------------------------ */

/* Gives up empty slabs, those too whose last object somebody else has freed, as far as so many looks at what waits find such.
 * Others go to the end of the list, so that slabs behind them are looked at next time. */
static uint64_t give_empty(struct sy__yard_cache *cache, unsigned slot, struct sy__yard_slot *own, unsigned looks)
{
	uint64_t pages = sy__yard_give_empties(cache, slot, 0);
	struct sy_page *page, *first = NULL;

	for (; looks && (page = sy__yard_numbered(cache, own->first)) && page != first; looks--) {
		sy__yard_next_owned(cache, own);
		sy__yard_append(cache, own, page);
		if (sy__yard_in_use_now(sy__yard_slab(page)) == sy__yard_slab(page)->local_objects) {
			sy__yard_emptied(cache, own, page);
			pages += sy__yard_give_empties(cache, slot, 0);
		} else {
			first = first ? first : page;
		}
	}
	return pages;
}

/* All that a slot has beside its active slab and those with objects in use, as far as looks at so many slabs find it. */
static uint64_t give_idle(struct sy__yard_cache *cache, unsigned slot, unsigned looks)
{
	struct sy__yard_slot *own = sy__yard_slot(cache, slot);
	uint64_t pages;

	if (!own->remote && !own->first && !own->empty)
		return 0;
	pages = sy__yard_flush_remote(cache, slot);
	return pages + give_empty(cache, slot, own, looks);
}

SY__COLD void sy__yard_release_retained(struct sy_heap *heap, unsigned slot)
{
	sy__lock(&heap->lock);
	for (struct sy_list *at = heap->caches.next; at != &heap->caches; at = at->next)
		give_idle(sy__yard_cache(sy__entry(at, struct sy_cache, link)), slot, LOOKS_FOR_PAGES);
	sy__unlock(&heap->lock);
}

uint64_t sy__yard_scavenge(struct sy_cache *cache)
{
	struct sy__yard_cache *yard = sy__yard_cache(cache);
	uint64_t pages = 0;

	for (unsigned slot = 0; slot < sy__slots_used(cache->heap); slot++) {
		struct sy__yard_slot *own = sy__yard_slot(yard, slot);

		if (!sy__slot_reachable(cache, slot))
			continue;
		sy__retained_reset(cache->heap, slot);
		if (own->spare || own->missed) /* most have neither, and their line is another CPU's */
			own->spare = own->missed = 0;
		pages += give_idle(yard, slot, LOOKS_A_SECOND);
	}
	return pages;
}

uint64_t sy__yard_shrink(struct sy_cache *cache)
{
	return sy__node_shrink(sy__node_cache(cache), drain_slot);
}

/* ---- The end of a cache ------------------------------------------------------------------------------------------------ */

/* Slabs with objects in use are left to sy_heap_destroy. */
void sy__yard_cache_fini(struct sy_cache *cache)
{
	sy__yard_shrink(cache);
	sy__node_cache_fini(sy__node_cache(cache));
}
