/*
 * SLUB: objects straight from nodes' lists, for slots that have no slabs.
 *
 * So it is under SLUB_TINY, and in 7.0 below the sheaves (version.c). A request takes the first free objects of the first slab on the
 * node's list, under the node's lock. A slab that has no more leaves the list; a new one, if any of its objects are left, goes to the
 * list's head. So slabs are filled one after the other. What is left of a slab that a sheaf was filled from goes to the tail. Frees
 * are those of slub.c: the first one into a full slab puts it at the list's tail, and the last one of a slab gives it back, if the list
 * has as many as it keeps.
 *
 * A slab's list is taken whole, and what is not wanted put back, by the same exchanges of its word as elsewhere. In between it is
 * full, nobody's and on no list as far as its word tells, so a free into it waits for the node's lock.
 */
#include "slub.h"

#include "../../bug.h"

/* What follows an object on its slab's list, which is taken away from it; NULL also where the program has damaged the list. */
static void *unlink_first(const struct sy__slub_cache *cache, struct sy_page *page, void *object, uint32_t count)
{
	void *next, *last;

	if (SY__IS_HARDENED) {
		next = sy__link_take(&cache->base, object, cache->base.offset);
		return sy__link_is_wrong(next) ? sy__node_damaged(&cache->base, object) : next;
	}
	next = sy__node_next(&cache->base, object);
	if (sy__slub_is_end(next))
		next = NULL;
	if (!next == !(count - 1) && (!next || sy__node_is_object(&cache->base, page, next)))
		return next;
	sy__node_list_is_sound(&cache->base, page, object, count, SY__SLUB_END, &last);
	return NULL;
}

/* Puts objects that were taken back onto the slab's empty list. */
static void put_back(struct sy__node_slab *slab, const void *first, uint32_t count)
{
	uint64_t old = sy__load64(&slab->word);

	while (!sy__swap64(&slab->word, &old, sy__word_push(old, first, count)))
		;
}

/* Takes objects off a slab that has `free` ones from `first` on, all taken. How many; the others are back on its list. */
static uint32_t take_some(const struct sy__slub_cache *cache, struct sy_page *page, void *first, uint32_t free, void **objects,
                          uint32_t count)
{
	uint32_t taken = 0;

	for (; first && taken < count && free; free--) {
		objects[taken++] = first;
		first = unlink_first(cache, page, first, free);
	}
	if (first && free)
		put_back(sy__node_slab(page), first, free);
	return taken;
}

/* From the slabs of a node's list, as long as it has more than `spared`. */
static uint32_t take_listed(struct sy__slub_cache *cache, struct sy__node *node, size_t spared, void **objects, uint32_t count)
{
	uint32_t taken = 0;

	sy__lock(&node->lock);
	while (taken < count && node->partial_slabs > spared) {
		struct sy_list *link = node->partial.next;
		struct sy_page *page = sy__node_linked(link);
		struct sy__node_slab *slab = sy__node_slab(page);
		uint64_t old;

		sy__node_refill(&cache->base, page);
		old = sy__load64(&slab->word);
		while (!sy__swap64(&slab->word, &old, sy__word_take(old)))
			;
		taken += take_some(cache, page, sy__word_first(old, sy__page_address(cache->base.cache.heap, page)),
		                   sy__word_objects(old) - sy__word_in_use(old), objects + taken, count - taken);
		if (!sy__word_full(sy__node_word(page)) && count == 1)
			break;
		sy__list_remove(link);
		if (sy__word_full(sy__node_word(page)))
			sy__node_count_partial(node, -1);
		else
			sy__list_add_tail(&node->partial, link);
	}
	sy__unlock(&node->lock);
	return taken;
}

/* From a new slab. */
static uint32_t take_new(struct sy__slub_cache *cache, unsigned slot, unsigned flags, int node, void **objects, uint32_t count)
{
	void *first;
	struct sy_page *page = sy__slub_new_slab(cache, slot, flags, node, &first);
	struct sy__node_slab *slab;
	struct sy__node *home;
	uint32_t taken;

	if (!page)
		return 0;
	slab = sy__node_slab(page);
	home = sy__node_of(&cache->base, page);
	sy__lock(&home->lock);
	slab->word &= ~SY__WORD_FROZEN; /* nobody else knows the slab */
	taken = take_some(cache, page, first, sy__node_objects(page), objects, count);
	sy__node_place(&cache->base, home, page, false, sy__node_word(page), true);
	sy__unlock(&home->lock);
	return taken;
}

uint32_t sy__slub_take(struct sy__slub_cache *cache, unsigned slot, unsigned flags, int node, void **objects, uint32_t count)
{
	const struct sy_heap *heap = cache->base.cache.heap;
	unsigned nearest = node == SY_ANY_NODE ? sy__slot_node(heap, slot) : (unsigned)node;
	uint32_t taken = take_listed(cache, &cache->base.nodes[nearest], 0, objects, count), more = 1;

	for (unsigned i = 1; node == SY_ANY_NODE && i < heap->nodes; i++)
		taken += take_listed(cache, &cache->base.nodes[(nearest + i) % heap->nodes], cache->base.min_partial, objects + taken,
		                      count - taken);
	while (taken < count && more) {
		more = take_new(cache, slot, flags, node, objects + taken, count - taken);
		taken += more;
	}
	return taken;
}
