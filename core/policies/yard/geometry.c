/*
 * yard: how a cache is laid out, and which caches are one.
 *
 * An object is rounded up to a word. Its link is at its start when it is free, a line that the next client is likely to touch anyway;
 * but behind it where its contents must survive that (a constructor set them, or readers under RCU may still look).
 *
 * A slab. Its order is the first that holds the number of objects wanted and wastes at most a sixteenth; if there is none up to
 * the largest order, the one that wastes least. An object that is larger than the largest order has a slab of its own.
 *
 * How many objects are wanted. In replays and kernels, where a page is memory from the start, 4 * (fls(CPUs) + 1), as in SLUB.
 * With threads, whose slabs cost no memory before they are carved (owned.c), FIRST_SLAB bytes and FIRST_OBJECTS; of a cache that
 * has several slabs of the order below LARGE_SLAB and LARGE_OBJECTS: of slabs with two or three objects nearly every call makes
 * or ends one.
 *
 * Merging. Caches whose objects can't be told apart share their slabs (core/merge.c). Slabs start at multiples of
 * their size, so objects of one size have the alignment that the size has, whatever was asked for.
 */
#include "../../geometry.h"
#include "../../merge.h"
#include "yard.h"

#define MOST_ORDER 3u         /* of slabs, as long as an object fits */
#define MOST_ORDER_THREADS 6u /* the same with threads */
#define FIRST_SLAB ((size_t)16 << 10)
#define LARGE_SLAB ((size_t)32 << 10)
#define FIRST_OBJECTS 4u
#define LARGE_OBJECTS 12u
#define LEAST_WASTE 16u
#define REMOTE_BYTES ((size_t)32 << 10) /* of objects of others' slabs that a slot gathers, */
#define LEAST_REMOTE 4u                 /* but so many at least, */
#define MOST_REMOTE 128u                /* and at most */

static size_t within(size_t least, size_t value, size_t most)
{
	return value < least ? least : value > most ? most : value;
}

/* ---- Slabs ------------------------------------------------------------------------------------------------------------ */

/* Of all orders up to `most` that hold an object. */
static unsigned slab_order(const int64_t *tunables, unsigned most, size_t wanted, size_t size)
{
	unsigned least = sy__order_of(size), first = (unsigned)tunables[YARD_MIN_ORDER], best = least;

	while (most && sy__order_objects(most, size) > SY__WORD_MOST_OBJECTS)
		most--;
	first = (unsigned)within(first, sy__order_of(wanted * size), most);
	for (unsigned order = least; order <= most; order++) {
		size_t bytes = SY_PAGE_SIZE << order;

		if (order >= first && bytes % size <= bytes / LEAST_WASTE)
			return order;
		if (bytes % size << (best > order ? best - order : 0) <= (SY_PAGE_SIZE << best) % size << (order > best ? order - best : 0))
			best = order;
	}
	return best;
}

/* With threads, for slabs of so many bytes, or so many objects; else as many as SLUB wants. */
static unsigned wanted_order(const int64_t *tunables, unsigned cpus, bool threads, size_t size, size_t bytes, size_t objects)
{
	unsigned most = threads ? MOST_ORDER_THREADS : MOST_ORDER;
	size_t wanted = threads ? within(objects, bytes / size, SIZE_MAX) : 4 * (sy__highest_bit(cpus) + 1);

	if (tunables[YARD_MIN_OBJECTS] > 0)
		wanted = (size_t)tunables[YARD_MIN_OBJECTS];
	if (tunables[YARD_MAX_ORDER] != SY_TUNABLE_AUTO)
		most = (unsigned)tunables[YARD_MAX_ORDER];
	return slab_order(tunables, most, wanted, size);
}

bool sy__yard_geometry(const int64_t *tunables, unsigned cpus, size_t size, struct sy_geometry *geometry)
{
	if (size < sizeof(void *) || size > SY_PAGE_SIZE << SY_MAX_ORDER)
		return false;
	*geometry = sy__geometry_of(wanted_order(tunables, cpus, false, size, 0, 0), size);
	return true;
}

/* ---- Caches ----------------------------------------------------------------------------------------------------------- */

bool sy__yard_cache_init(struct sy_cache *cache)
{
	const struct sy_heap *heap = cache->heap;
	struct sy__yard_cache *yard = sy__yard_cache(cache);

	sy__node_lay_out(&yard->base, 0, cache->constructor || cache->flags & SY_CACHE_TYPESAFE_BY_RCU);
	if (cache->size > SY_PAGE_SIZE << SY_MAX_ORDER)
		return false;
	yard->first_order = (uint8_t)wanted_order(heap->tunables, heap->cpus, heap->threads, cache->size, FIRST_SLAB, FIRST_OBJECTS);
	yard->base.order = (uint8_t)wanted_order(heap->tunables, heap->cpus, heap->threads, cache->size, LARGE_SLAB, LARGE_OBJECTS);
	yard->first_order = (uint8_t)within(0, yard->first_order, yard->base.order);
	yard->base.least_order = (uint8_t)sy__order_of(cache->size);
	yard->remote_limit = (uint16_t)within(LEAST_REMOTE, REMOTE_BYTES / cache->size, MOST_REMOTE);
	if (heap->tunables[YARD_REMOTE] != SY_TUNABLE_AUTO)
		yard->remote_limit = (uint16_t)heap->tunables[YARD_REMOTE];
	if (heap->threads)
		sy__yard_choose_entries(yard);
	return sy__node_cache_init(&yard->base, sizeof(struct sy__yard_slot), SY__RING_IN(struct sy__yard_slot));
}

struct sy_cache *sy__yard_merge(struct sy_heap *heap, const struct sy_cache *wanted)
{
	return heap->tunables[YARD_MERGE] && !sy__keeps_apart(heap) ? sy__merge_find(heap, wanted, (struct sy__merge_rules){ 0 }) : NULL;
}
