/*
 * yard: the life of a slab, off the fast path. A slot owns it from the start, until it is full (owned.c), until the slot has too many empty
 * slabs, or until the slot is drained: its thread ends, its CPU goes offline, or memory is short. Then it joins its node or ends.
 *
 * What goes back unasked. Before a slot gets pages that cost new memory, it gives up what it retains (sy__yard_release_retained): its
 * remote objects go home, and its empty slabs to the page allocator, also those that other slots' frees have emptied. Each second, and when
 * the heap has grown by a quarter (core/this_slot.c), the next slow call does the same for all slots, those of idle threads too
 * (sy__yard_scavenge). That also gives up active slabs without an object in use.
 */
#include "../../this_slot.h"
#include "yard.h"

#define LOOKS 512u       /* at waiting slabs of a slot, in search of empty ones */
#define SLABS_TO_GROW 3u /* a node gets its first slab of an order when it has memory for this many */

/* ---- Birth ------------------------------------------------------------------------------------------------------------ */

/* Order of the next slab. It grows with the node's memory: large slabs waste more when there are few objects. */
static unsigned order_of_next(const struct sy__yard_cache *cache, struct sy__node *node)
{
	unsigned order = cache->first_order;
	uint64_t pages;

	sy__lock(&node->lock);
	pages = node->pages;
	sy__unlock(&node->lock);
	while (order < cache->base.order && pages >> (order + 1) >= SLABS_TO_GROW)
		order++;
	return order;
}

/* With threads, enters a slab's pages, or a large allocation's first page, into the page map, where kfree looks; false: no memory. */
bool sy__yard_found_by(struct sy_heap *heap, struct sy_page *page)
{
	size_t pages = sy__page_is_slab(page) ? (size_t)1 << sy__page_order(page) : 1;

	return !heap->threads || sy__page_map_set(&sy__yard_heap(heap)->page_map, heap, page, pages);
}

/* A new slab, all of whose objects are the caller's. NULL: no memory. Called outside local sections, as it may run every heap's shrink. */
struct sy_page *sy__yard_new_slab(struct sy__yard_cache *cache, unsigned slot, unsigned flags, int node)
{
	unsigned nearest = node == SY_ANY_NODE ? sy__slot_node(cache->base.cache.heap, slot) : (unsigned)node;
	struct sy__node *home = &cache->base.nodes[nearest];
	struct sy_page *page = sy__node_take_pages(&cache->base, slot, order_of_next(cache, home), flags, node);
	struct sy__node_slab *slab;

	if (!page)
		return NULL;
	if (!sy__yard_found_by(cache->base.cache.heap, page)) {
		sy__pages_give(cache->base.cache.heap, slot, page);
		return NULL;
	}
	sy__node_make_slab(&cache->base, page);
	slab = sy__node_slab(page);
	sy__yard_set_owner(slab, SY__YARD_NOBODY);
	sy__yard_local(slab)->freelist = NULL;
	return page;
}

/* ---- From a slot to the node ------------------------------------------------------------------------------------------- */

/* The last object of a list of `count`. If the program has freed an object twice this ends, but at a wrong one. */
static void *last_of(const struct sy__yard_cache *cache, void *at, uint32_t count)
{
	while (--count && sy__node_next(&cache->base, at))
		at = sy__node_next(&cache->base, at);
	return at;
}

/* Takes an owned slab, which is on no list, from its slot; the slot's free objects join the list of those that others freed. An empty slab
 * ends, without a look at its objects (hardened, all are looked at, see ../links.h). The exchange acquires what others did to the objects
 * that they freed. The mark is cleared, as the descriptor may be a large allocation's next. A slab that is partial now joins its node's
 * list under the same lock: at the tail if others freed into it, else at the head. */
static uint64_t give_up(struct sy__yard_cache *cache, unsigned slot, struct sy_page *page)
{
	struct sy__node_slab *slab = sy__node_slab(page);
	struct sy__node *node = sy__node_of(&cache->base, page);
	void *first = sy__yard_local(slab)->freelist, *last = NULL;
	uint32_t count = slab->local_objects, unlinked = sy__node_unlinked(page);
	bool ends = !SY__IS_HARDENED && count == sy__yard_in_use_now(slab), discard;
	uint64_t old = sy__load64(&slab->word), new;

	sy__lock(&node->lock);
	sy__yard_set_owner(slab, SY__YARD_NOBODY);
	slab->local_objects = 0;
	do {
		new = (old & ~SY__WORD_FROZEN) - (ends ? count : unlinked) * SY__WORD_ONE_IN_USE;
		if (ends || !count)
			continue;
		new = sy__word_push(new, first, count);
		if (sy__word_full(old))
			continue;
		last = last ? last : last_of(cache, first, count);
		sy__node_link(&cache->base, last, sy__word_first(old, last));
	} while (!sy__swap64(&slab->word, &old, new));
	discard = sy__node_place(&cache->base, node, page, false, new, sy__word_full(old));
	sy__unlock(&node->lock);
	return discard ? sy__node_discard(&cache->base, slot, page) : 0;
}

/* Takes the active slab from a slot; returns pages that went back. In the slot's local section. The freelist goes in front of the slab's
 * local list, and uncarved objects in front of that, unless the slab ends. Hardened, these stay uncarved, unless nothing else is free. */
uint64_t sy__yard_deactivate(struct sy__yard_cache *cache, unsigned slot, struct sy__yard_slot *own)
{
	struct sy_page *page = own->slab;
	struct sy__node_slab *slab = sy__node_slab(page);
	uint32_t free = own->uncarved;
	void *last = NULL;

	for (void *at = own->freelist; at && free < sy__node_objects(page); at = sy__node_next(&cache->base, at), free++)
		last = at;
	if (last)
		sy__node_link(&cache->base, last, sy__yard_local(slab)->freelist);
	else
		own->freelist = sy__yard_local(slab)->freelist;
	free += slab->local_objects;
	if (SY__IS_HARDENED ? !own->freelist && sy__word_full(sy__node_word(page)) : free != sy__yard_in_use_now(slab))
		sy__yard_carve(cache, own, !SY__IS_HARDENED);
	sy__yard_local(slab)->freelist = own->freelist;
	slab->local_objects = (uint16_t)(free - sy__node_unlinked(page));
	own->slab = NULL;
	own->freelist = NULL;
	own->bottom = 0;
	own->uncarved = 0;
	return give_up(cache, slot, page);
}

/* Gives up empty slabs of a slot until `keep` are left. If it may keep some, those that go count as missed. */
uint64_t sy__yard_give_empties(struct sy__yard_cache *cache, unsigned slot, uint32_t keep)
{
	struct sy__yard_slot *own = sy__yard_slot(cache, slot);
	struct sy_page *page;
	uint64_t pages = 0;

	while (sy__unlikely(own->empty_slabs > keep) && (page = sy__yard_next_empty(cache, own))) {
		own->missed = (uint8_t)(own->missed + (keep && own->missed < SY__YARD_MOST_SPARE));
		pages += give_up(cache, slot, page);
	}
	return pages;
}

static uint64_t drain_slot(struct sy__node_cache *base, unsigned slot)
{
	struct sy__yard_cache *cache = sy__yard_cache(&base->cache);
	struct sy__yard_slot *own = sy__yard_slot(cache, slot);
	struct sy_page *page;
	uint64_t pages;

#ifdef SY_HARDENED
	for (void *object; (object = sy__node_dismiss(&own->ring));)
		sy__yard_free_slow(cache, slot, object);
#endif
	if (!own->slab && !own->first && !own->empty && !own->remote)
		return 0;
	sy__local_begin(slot);
	pages = sy__yard_flush_remote(cache, slot);
	if (own->slab)
		pages += sy__yard_deactivate(cache, slot, own);
	pages += sy__yard_give_empties(cache, slot, 0);
	while ((page = sy__yard_next_owned(cache, own)))
		pages += give_up(cache, slot, page);
	sy__local_end(slot);
	return pages;
}

/* A slot's CPU goes offline, or its thread ends. */
void sy__yard_drain(struct sy_heap *heap, unsigned slot)
{
	sy__node_drain_all(heap, slot, drain_slot);
}

/* ---- Giving memory back ------------------------------------------------------------------------------------------------ */

/* Gives up a slot's remote objects and empty slabs, also waiting ones that other slots' frees have emptied: it looks at LOOKS of these. A
 * slab that is not empty goes to the end of the queue, so that the next call looks at others. */
static uint64_t give_idle(struct sy__yard_cache *cache, unsigned slot)
{
	struct sy__yard_slot *own = sy__yard_slot(cache, slot);
	struct sy_page *page, *stays = NULL;
	uint64_t pages;

	if (!own->remote && !own->first && !own->empty)
		return 0;
	pages = sy__yard_flush_remote(cache, slot) + sy__yard_give_empties(cache, slot, 0);
	for (unsigned looks = LOOKS; looks && own->first && (page = sy__yard_numbered(cache, own->first)) != stays; looks--) {
		sy__yard_append(cache, own, sy__yard_next_owned(cache, own));
		if (sy__yard_in_use_now(sy__node_slab(page)) == sy__node_slab(page)->local_objects) {
			sy__yard_emptied(cache, own, page);
			pages += sy__yard_give_empties(cache, slot, 0);
		} else if (!stays) {
			stays = page;
		}
	}
	return pages;
}

/* Gives up the active slab if it has no object in use: all that left it are on the freelist. The freelist is counted again only when its
 * first object, or the number of objects that left the slab, has changed. */
static uint64_t give_active(struct sy__yard_cache *cache, unsigned slot, struct sy__yard_slot *own)
{
	uint32_t out, seen;

	if (!own->slab)
		return 0;
	out = (uint32_t)sy__yard_in_use_now(sy__node_slab(own->slab)) - own->uncarved - sy__node_slab(own->slab)->local_objects;
	seen = ((uint32_t)(uintptr_t)own->freelist ^ out << 16) | 1; /* never 0, as in a slot that was never scavenged */
	if (own->seen == seen)
		return 0;
	own->seen = seen;
	return sy__node_length(&cache->base, own->slab, own->freelist) == out ? sy__yard_deactivate(cache, slot, own) : 0;
}

SY__COLD void sy__yard_release_retained(struct sy_heap *heap, unsigned slot)
{
	sy__lock(&heap->lock);
	for (struct sy_list *at = heap->caches.next; at != &heap->caches; at = at->next)
		give_idle(sy__yard_cache(sy__entry(at, struct sy_cache, link)), slot);
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
		if (own->spare || own->missed) /* not written where both are 0: the line is another CPU's */
			own->spare = own->missed = 0;
		pages += give_idle(yard, slot) + give_active(yard, slot, own);
	}
#ifdef SY_HARDENED
	pages += sy__node_empty_retired(&yard->base);
#endif
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
