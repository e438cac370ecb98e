/*
 * Bonwick's slab allocator: what is in a slab, for walks (core/walk.h).
 *
 * All slabs of a cache are on one sorted list. A slab's place is its position there, and its list is the part that the paper
 * names: empty (every buffer is out), partial, complete. A free buffer is on its slab's freelist (large objects by their
 * bufctls), or a slot keeps it (percpu.c, magazine.c). The last 32 bytes of a slab of small objects are slab data. Slab data and
 * bufctls of large objects are objects in slabs of their own, which no client holds.
 */
#include "../../this_slot.h"
#include "../../walk.h"
#include "bonwick.h"

struct view {
	const struct sy__bonwick_cache *cache;
	const struct sy__bonwick_slab *slab;
};

static void mark_bufctls(struct sy__walk *walk, const struct sy__bonwick_bufctl *first, uint64_t most)
{
	uint64_t place = 0;

	for (const struct sy__bonwick_bufctl *at = first; at && place <= most; at = at->next)
		sy__walk_mark(walk, at->buffer, SY_PART_FREE, "freelist of the slab", 0, place++);
}

static void mark(struct sy__walk *walk, const void *context)
{
	const struct view *view = context;
	const struct sy__bonwick_cache *cache = view->cache;
	const struct sy__bonwick_layer *layer = sy__bonwick_layer_of(cache->cache.heap); /* not the cache's, see walk.h */

	if (cache->large)
		mark_bufctls(walk, view->slab->free, cache->objects);
	else
		sy__walk_chain(walk, view->slab->free, cache->linkage, cache->objects, SY_PART_FREE, "freelist of the slab", 0);
	for (unsigned slot = 0; slot < sy__slots_used(cache->cache.heap); slot++)
		if (sy__bonwick_slot_counts(cache, slot))
			layer->walk(walk, cache, slot);
	if (cache->slots && layer->walk_shared)
		layer->walk_shared(walk, cache);
}

/* The state of a cache's objects that are on no list. */
static enum sy_part_state held(const struct sy__bonwick_cache *cache)
{
	const struct sy__bonwick_heap *bonwick = sy__bonwick_heap(cache->cache.heap);
	bool own = &cache->cache == bonwick->large_slabs || &cache->cache == bonwick->bufctls;

	for (unsigned kind = 0; kind < SY__BONWICK_KINDS; kind++)
		own = own || &cache->cache == bonwick->magazines[kind];
	return own ? SY_PART_BOOKKEEPING : SY_PART_USED;
}

static void walk_slab(struct sy__walk *walk, const struct sy__bonwick_cache *cache, struct sy__bonwick_slab *slab)
{
	const struct view view = { cache, slab };
	const struct sy__walk_grid grid = { (size_t)slab->colour * cache->cache.align, cache->cache.size, cache->objects, mark,
		                            &view, held(cache) };

	walk->slab.cache = &cache->cache;
	walk->slab.list = !slab->refs ? "complete" : slab->free ? "partial" : "empty";
	walk->slab.place = sy__walk_place(&cache->slabs, &slab->link);
	if (!sy__walk_slab(walk))
		return;
	sy__walk_objects(walk, &grid);
	if (cache->large)
		return;
	sy__walk_part(walk, walk->slab.bytes - SY__BONWICK_SLAB_BYTES, SY_PART_UNUSED);
	sy__walk_part(walk, walk->slab.bytes, SY_PART_BOOKKEEPING);
}

void sy__bonwick_walk(struct sy__walk *walk, struct sy_page *page)
{
	const struct sy__bonwick_page *state = sy__bonwick_page(page);

	if (state->slab->refs != SY__BONWICK_WAITING) {
		walk_slab(walk, state->cache, state->slab);
		return;
	}
	walk->slab.cache = &state->cache->cache;
	walk->slab.list = "waiting";
	if (sy__walk_slab(walk))
		sy__walk_part(walk, walk->slab.bytes, SY_PART_WAITING);
}

void sy__bonwick_walk_supplied(struct sy__walk *walk, struct sy_cache *common)
{
	struct sy__bonwick_cache *cache = sy__bonwick_cache(common);

	for (struct sy_list *at = cache->slabs.next; at != &cache->slabs && !walk->ended; at = at->next) {
		struct sy__bonwick_slab *slab = sy__bonwick_linked(at);

		walk->slab = (struct sy_slab){ .address = sy__bonwick_memory(cache, slab), .bytes = SY_PAGE_SIZE << cache->order };
		walk_slab(walk, cache, slab);
		sy__walk_part(walk, walk->slab.bytes, SY_PART_UNUSED);
	}
}
