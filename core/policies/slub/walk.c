/*
 * SLUB: what is in a slab, for walks (core/walk.h).
 *
 * A descriptor does not tell where its slab is: a frozen slab belongs to some slot, and only the slots know to which one. So a
 * walk searches the slots' active slabs and partial lists first, then the node's list; a slab that is on none is full. Free
 * objects are on the slab's own freelist; those of an active slab also on the slot's.
 */
#include "../../this_slot.h"
#include "../../walk.h"
#include "slub.h"

static void mark(struct sy__walk *walk, const struct sy__node_view *view)
{
	const struct sy_cache *cache = &view->cache->cache;

	if (sy__slub_cache(&view->cache->cache)->sheaves)
		sy__slub_sheaves_mark(walk, sy__slub_cache(&view->cache->cache));
	for (unsigned slot = 0; slot < sy__slots_used(cache->heap); slot++) {
		const struct sy__slub_slot *own = sy__slub_slot(sy__slub_cache(&view->cache->cache), slot);

		if (sy__slot_reachable(cache, slot) && own->slab == view->page)
			sy__node_walk_list(walk, view, own->freelist, SY_PART_SLOT, "freelist", slot);
	}
}

/* The name of the slot's list that has the slab; NULL: none has. */
static const char *slots_list(const struct sy__slub_slot *own, const struct sy_page *page, uint64_t *place)
{
	*place = 0;
	if (own->slab == page)
		return "active";
	for (struct sy_page *at = own->partial; at; at = *sy__slub_next(at), ++*place)
		if (at == page)
			return "partial";
	return NULL;
}

/* Finds the slot that has the slab; false: no slot has it. */
static bool locate(struct sy__node_cache *cache, struct sy_page *page, struct sy_slab *slab)
{
	for (unsigned slot = 0; slot < sy__slots_used(cache->cache.heap); slot++) {
		if (!sy__slot_reachable(&cache->cache, slot))
			continue;
		slab->list = slots_list(sy__slub_slot(sy__slub_cache(&cache->cache), slot), page, &slab->place);
		if (!slab->list)
			continue;
		slab->owner_kind = SY_OWNER_SLOT;
		slab->owner = slot;
		return true;
	}
	slab->place = 0;
	return false;
}

void sy__slub_walk(struct sy__walk *walk, struct sy_page *page)
{
	walk->slab.list = "waiting";
	sy__node_walk(walk, page, locate, mark);
}
