/*
 * SLUB: what nodes keep of slabs without an object in use, and in which order they keep the others.
 *
 * A node keeps empty slabs while fewer than min_partial are on its list. In heaps of threads that is none, as slots keep some
 * of their own (owned.c). But where one thread allocates what another frees, each full slab ends up on the node's list and
 * becomes empty there, while the slot that filled it goes to the page allocator for the next. So a node learns how many such
 * slabs are needed, as slots do of their own spares: one that goes is missed, and if slabs are taken from the page allocator
 * while some are missed, the node keeps one more from then on, up to SPARE_BYTES. Whoever
 * needs a slab asks the node before the page allocator, whose slabs cost more than a thousand instructions to make and to end.
 *
 * They go like a slot's spares: before a slot gets pages that had no memory yet, if it is one whose requests made the node keep
 * some; when a thread needs pages for another size (sy__yard_look_around); and each time that the heap settles, when how many
 * are needed is found out anew.
 *
 * Shrinking gives back every empty slab, and sorts each node's list so that the fullest slabs
 * are allocated from first and the emptiest have time to become empty. One pass over 32 buckets does it: a slab
 * with more than 32 free objects keeps its place behind them.
 */
#include "yard.h"

#define SPARE_BYTES ((size_t)64 << 10)
#define MOST_MISSED 16u /* that a node remembers */
#define SHRINK_BUCKETS 32

/* ---- How many are needed -------------------------------------------------------------------------------------------- */

/* A slab that others filled than the slot which frees went. With the node's lock held, as the next. */
void sy__yard_node_misses(const struct sy__yard_cache *cache, struct sy__yard_node *node)
{
	if (sy__yard_slots_own(cache) && node->missed < MOST_MISSED)
		node->missed++;
}

/* A slot has got a slab from the page allocator: had the node kept one that went, it need not have. */
void sy__yard_node_took(struct sy__yard_cache *cache, unsigned slot, struct sy__yard_node *node, const struct sy_page *page)
{
	if (!node->missed)
		return;
	node->missed--;
	if ((node->spare + (size_t)1) << (SY_PAGE_SHIFT + sy__page_order(page)) > SPARE_BYTES)
		return;
	if (!node->spare)
		__atomic_fetch_add(&sy__yard_heap(cache->cache.heap)->sparing, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&node->spare, node->spare + 1, __ATOMIC_RELAXED);
	sy__spares_kept(cache->cache.heap, sy__yard_here_of(cache, sy__yard_slot(cache, slot)));
}

/* Whether to look for empty slabs on a node's list, which is short then. Relaxed: a hint, and who gives something looks again. */
static bool has_spares(const struct sy__yard_cache *cache, const struct sy__yard_node *node)
{
	uint32_t spare = __atomic_load_n(&node->spare, __ATOMIC_RELAXED);
	size_t slabs = spare ? __atomic_load_n(&node->partial_slabs, __ATOMIC_RELAXED) : 0;

	return slabs && slabs <= cache->min_partial + spare;
}

bool sy__yard_has_spares(const struct sy__yard_cache *cache)
{
	for (unsigned node = 0; node < cache->cache.heap->nodes; node++)
		if (has_spares(cache, &cache->nodes[node]))
			return true;
	return false;
}

/* ---- Giving back ---------------------------------------------------------------------------------------------------- */

static void move_to_head(struct sy_list *list, struct sy_list *link)
{
	sy__list_remove(link);
	sy__list_add_head(list, link);
}

/* Gives back slabs without an object in use while more than so many slabs are on the node's list; pages that went back. */
static uint64_t give_unused(struct sy__yard_cache *cache, unsigned slot, struct sy__yard_node *node, uint32_t keep)
{
	struct sy_list empties, *next;
	uint64_t pages = 0;

	sy__list_init(&empties);
	sy__lock(&node->lock);
	for (struct sy_list *at = node->partial.next; at != &node->partial && node->partial_slabs > keep; at = next) {
		struct sy_page *page = sy__yard_linked(at);

		next = at->next;
		if (sy__yard_in_use(page))
			continue;
		move_to_head(&empties, at);
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

/* What nodes keep because it was needed again and again, pages that went back. In a slow call of a heap of threads. */
uint64_t sy__yard_give_unused(struct sy__yard_cache *cache, unsigned slot)
{
	uint64_t pages = 0;

	for (unsigned node = 0; node < cache->cache.heap->nodes; node++)
		if (has_spares(cache, &cache->nodes[node]))
			pages += give_unused(cache, slot, &cache->nodes[node], cache->min_partial);
	return pages;
}

/* What is needed again and again; whether something was. */
static bool forget(const struct sy__yard_cache *cache, struct sy__yard_node *node)
{
	bool spare;

	sy__lock(&node->lock);
	spare = node->spare;
	node->missed = 0;
	__atomic_store_n(&node->spare, 0u, __ATOMIC_RELAXED);
	sy__unlock(&node->lock);
	if (spare)
		__atomic_fetch_sub(&sy__yard_heap(cache->cache.heap)->sparing, 1, __ATOMIC_RELAXED);
	return spare;
}

/* It is found out anew. */
uint64_t sy__yard_nodes_anew(struct sy__yard_cache *cache)
{
	uint64_t pages = 0;

	for (unsigned node = 0; node < cache->cache.heap->nodes; node++)
		if (forget(cache, &cache->nodes[node]))
			pages += give_unused(cache, 0, &cache->nodes[node], cache->min_partial);
	return pages;
}

/* Of a cache that ends, and has no slab any more that a node keeps. */
void sy__yard_nodes_end(struct sy__yard_cache *cache)
{
	for (unsigned node = 0; node < cache->cache.heap->nodes; node++)
		forget(cache, &cache->nodes[node]);
}

/* ---- Shrinking ------------------------------------------------------------------------------------------------------ */

/* Empties one list into the head of another, keeping the order. */
static void splice_to_head(struct sy_list *list, struct sy_list *from)
{
	while (!sy__list_empty(from))
		move_to_head(list, from->prev);
}

/* Sorts the node's list. */
static void sort_partial(struct sy__yard_node *node)
{
	struct sy_list buckets[SHRINK_BUCKETS], *next;

	for (unsigned i = 0; i < SHRINK_BUCKETS; i++)
		sy__list_init(&buckets[i]);
	sy__lock(&node->lock);
	for (struct sy_list *at = node->partial.next; at != &node->partial; at = next) {
		uint64_t word = sy__yard_look(sy__yard_linked(at));
		uint32_t free = sy__yard_word_objects(word) - sy__yard_word_in_use(word);

		next = at->next;
		if (free <= SHRINK_BUCKETS)
			move_to_head(&buckets[free - 1], at);
	}
	for (unsigned i = SHRINK_BUCKETS; i; i--)
		splice_to_head(&node->partial, &buckets[i - 1]);
	sy__unlock(&node->lock);
}

uint64_t sy__yard_shrink_nodes(struct sy__yard_cache *cache)
{
	uint64_t pages = 0;

	for (unsigned node = 0; node < cache->cache.heap->nodes; node++) {
		pages += give_unused(cache, 0, &cache->nodes[node], 0);
		sort_partial(&cache->nodes[node]);
	}
	return pages;
}
