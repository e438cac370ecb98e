/*
 * SLQB: how a cache is laid out, and its thresholds.
 *
 * An object. Its size is rounded up to a word. A free object holds its free pointer at its start; but behind itself
 * where its contents must survive being free (a constructor set them, or readers under RCU may still look). Then the
 * size is rounded up to the alignment.
 *
 * A slab has the smallest order, of 0 and 1, that wastes at most a quarter of it; else the smallest that holds an
 * object at all. SLQB was made to do well with single pages. What is left over becomes colours: each new slab of a
 * slot starts a cache line later than the last, as long as that is less than what is left over.
 *
 * Thresholds. freebatch is the number of objects in 64 pages, but at most 256 and at least what 4 pages hold: 256
 * objects up to 1024 bytes, 64 of 4096. A batch is thus worth a visit to memory that other CPUs use, however small
 * its objects. A freelist holds up to four batches (hiwater), and one of them is flushed when it holds more; others'
 * objects are taken over when they are a batch (remote_free_check).
 */
#include "../../geometry.h"
#include "../../backend/metadata.h"
#include "slqb.h"

#define WORD sizeof(void *)
#define PREFERRED_ORDERS 2u
#define WASTE 4u /* a slab of a preferred order wastes at most 1/4 */
#define FEWEST_PAGES 4u
#define MOST_PAGES 64u
#define BATCH 256u
#define BATCHES 4u

/* ---- Slabs ---------------------------------------------------------------------------------------------------- */

/* More than SY_MAX_ORDER: impossible. */
static unsigned slab_order(size_t size)
{
	for (unsigned order = sy__order_of(size); order < PREFERRED_ORDERS; order++) {
		size_t bytes = SY_PAGE_SIZE << order;

		if (bytes % size * WASTE <= bytes)
			return order;
	}
	return sy__order_of(size);
}

bool sy__slqb_geometry(const int64_t *tunables, unsigned cpus, size_t size, struct sy_geometry *geometry)
{
	(void)tunables;
	(void)cpus;
	if (size < WORD || size > SY_PAGE_SIZE << SY_MAX_ORDER)
		return false;
	*geometry = sy__geometry_of(slab_order(size), size);
	return true;
}

/* ---- Caches --------------------------------------------------------------------------------------------------- */

static bool lay_out(struct sy__slqb_cache *slqb)
{
	struct sy_cache *cache = &slqb->cache;
	size_t size = sy__align_up(cache->object_size, WORD);
	struct sy_geometry geometry;

	slqb->offset = 0;
	if (cache->constructor || cache->destructor || cache->flags & SY_CACHE_TYPESAFE_BY_RCU) {
		slqb->offset = (uint32_t)size;
		size += WORD;
	}
	size = sy__align_up(size, cache->align);
	if (!sy__slqb_geometry(cache->heap->tunables, cache->heap->cpus, size, &geometry))
		return false;
	cache->size = geometry.size;
	slqb->order = (uint8_t)geometry.order;
	slqb->objects = (uint16_t)geometry.objects;
	slqb->divider = sy__divider(cache->size);
	slqb->memory = sy__pages_base(cache->heap)->memory;
	slqb->memory_bytes = (size_t)sy__pages_base(cache->heap)->page_count << SY_PAGE_SHIFT;
	if (cache->heap->tunables[SLQB_COLOUR]) {
		slqb->colour_step = cache->align > SY_CACHE_LINE ? cache->align : SY_CACHE_LINE;
		slqb->colour_range = geometry.wasted;
	}
	return true;
}

static uint32_t default_freebatch(size_t size)
{
	size_t batch = MOST_PAGES * SY_PAGE_SIZE / size, least = FEWEST_PAGES * SY_PAGE_SIZE / size;

	if (batch > BATCH)
		batch = BATCH;
	if (batch < least)
		batch = least;
	return batch ? (uint32_t)batch : 1;
}

static uint32_t threshold(int64_t tunable, uint32_t automatic)
{
	return tunable == SY_TUNABLE_AUTO ? automatic : (uint32_t)tunable;
}

void sy__slqb_start(struct sy__slqb_cache *slqb, struct sy__slqb_list *list, unsigned node)
{
	*list = (struct sy__slqb_list){ .hiwater = slqb->hiwater, .node = (int)node, .cache = slqb, .remote_lock = SY__LOCK_INIT };
	sy__list_init(&list->partial);
}

/* Slots start with their first slow call: a list that may hold nothing has no fast ones, the dummy's neither. */
static bool make_slots(struct sy__slqb_cache *slqb)
{
	struct sy_heap *heap = slqb->cache.heap;
	size_t bytes = heap->threads ? 0 : heap->slots * sizeof(*slqb->slots);
	char *state;

	slqb->stride = heap->threads ? SY_SLOT_STRIDE : sizeof(*slqb->slots);
	slqb->state_bytes = bytes + heap->nodes * sizeof(struct sy__slqb_node);
	state = sy__metadata_take(heap, slqb->state_bytes);
	if (!state)
		return false;
	slqb->state = state;
	slqb->slots = heap->threads ? sy__slot_areas_take(heap, sizeof(*slqb->slots)) : slqb->state;
	slqb->nodes = (struct sy__slqb_node *)(void *)(state + bytes);
	if (!slqb->slots)
		sy__metadata_give(heap, state, slqb->state_bytes);
	return slqb->slots != NULL;
}

static bool make_state(struct sy__slqb_cache *slqb)
{
	if (!make_slots(slqb))
		return false;
	for (unsigned i = 0; i < slqb->cache.heap->nodes; i++) {
		slqb->nodes[i].lock = (sy__lock_t)SY__LOCK_INIT;
		sy__slqb_start(slqb, &slqb->nodes[i].list, i);
	}
	return true;
}

bool sy__slqb_cache_init(struct sy_cache *cache)
{
	struct sy__slqb_cache *slqb = sy__slqb_cache(cache);
	const int64_t *tunables = cache->heap->tunables;

	if (!lay_out(slqb))
		return false;
	slqb->freebatch = threshold(tunables[SLQB_FREEBATCH], default_freebatch(cache->size));
	slqb->flushbatch = threshold(tunables[SLQB_FLUSHBATCH], slqb->freebatch);
	slqb->remote_free_check = threshold(tunables[SLQB_REMOTE_FREE_CHECK], slqb->freebatch);
	slqb->rlist_mixed = tunables[SLQB_RLIST];
	slqb->page_flags = sy__page_flags(cache->flags);
	slqb->hiwater = threshold(tunables[SLQB_HIWATER], BATCHES * slqb->freebatch);
	return make_state(slqb);
}
