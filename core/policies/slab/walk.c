/*
 * SLAB: what is in a slab, for walks (core/walk.h).
 *
 * A slab is on the list that its number of free objects says. An object that left it is the client's, or in an array:
 * its slot's, its node's shared one, or one of the alien arrays on their way to its node. The object freed last is
 * handed out first, so places count from an array's end. Numbers in the freelist, from [active] on, come out in their
 * order. A freelist on the slab is bookkeeping behind the objects; one that lies in a free object is part of that object.
 */
#include "../../this_slot.h"
#include "../../walk.h"
#include "slab.h"

static void mark_array(struct sy__walk *walk, const struct sy__slab_array *array, enum sy_part_state state,
                       const char *list, unsigned owner)
{
	for (uint32_t i = 0; array && i < array->avail; i++)
		sy__walk_mark(walk, array->objects[i], state, list, owner, array->avail - 1 - i);
}

static void mark_node(struct sy__walk *walk, const struct sy__slab_node *node, unsigned index, unsigned nodes)
{
	mark_array(walk, node->shared, SY_PART_NODE, "shared array", index);
	for (unsigned i = 0; node->aliens && i < nodes; i++)
		mark_array(walk, node->aliens[i].array, SY_PART_NODE, "alien array", index);
}

static void mark(struct sy__walk *walk, const void *context)
{
	struct sy__slab_slab *slab = sy__slab_slab((struct sy_page *)(uintptr_t)context);
	const struct sy__slab_cache *cache = slab->cache;
	const char *first = sy__slab_first_object(cache, slab);
	const sy__slab_index_t *numbers = sy__slab_numbers(cache, slab);

	for (uint32_t i = slab->active; i < cache->objects; i++)
		sy__walk_mark(walk, first + (size_t)numbers[i] * cache->cache.size, SY_PART_FREE, "freelist of the slab", 0,
		              i - slab->active);
	for (unsigned slot = 0; slot < sy__slots_used(cache->cache.heap); slot++)
		if (sy__slot_reachable(&cache->cache, slot))
			mark_array(walk, sy__slab_own(cache, slot), SY_PART_SLOT, "array", slot);
	for (unsigned node = 0; node < cache->cache.heap->nodes; node++)
		mark_node(walk, &cache->nodes[node], node, cache->cache.heap->nodes);
}

static void locate(struct sy__slab_slab *slab, struct sy_slab *seen)
{
	const struct sy__slab_cache *cache = slab->cache;
	const struct sy__slab_node *node = &cache->nodes[seen->node];
	const struct sy_list *list = &node->partial;

	seen->list = "partial";
	if (slab->active == cache->objects) {
		seen->list = "full";
		list = &node->full;
	} else if (!slab->active) {
		seen->list = "free";
		list = &node->free;
	}
	seen->owner_kind = SY_OWNER_NODE;
	seen->owner = seen->node;
	seen->place = sy__walk_place(list, &slab->link);
}

void sy__slab_walk(struct sy__walk *walk, struct sy_page *page)
{
	struct sy__slab_slab *slab = sy__slab_slab(page);
	const struct sy__slab_cache *cache = slab->cache;
	const struct sy__walk_grid grid = { slab->start, cache->cache.size, cache->objects, mark, page, SY_PART_USED };

	walk->slab.cache = &cache->cache;
	walk->slab.list = "waiting";
	if (!slab->waiting)
		locate(slab, &walk->slab);
	if (!sy__walk_slab(walk))
		return;
	if (slab->waiting) {
		sy__walk_part(walk, walk->slab.bytes, SY_PART_WAITING);
		return;
	}
	sy__walk_objects(walk, &grid);
	if (cache->place != SY__SLAB_ON_SLAB)
		return;
	sy__walk_part(walk, walk->slab.bytes - cache->objects * sizeof(sy__slab_index_t), SY_PART_UNUSED);
	sy__walk_part(walk, walk->slab.bytes, SY_PART_BOOKKEEPING);
}
