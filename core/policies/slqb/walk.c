/*
 * SLQB: what is in a slab, for walks (core/walk.h).
 *
 * A slab is its list's for life; the descriptor leads there. Its objects may be on any list of the cache: on its own
 * freelist, on a slot's or node's freelist, in a slot's rlist on the way to their owner, or in an owner's remote_free.
 */
#include "../../this_slot.h"
#include "../../list.h"
#include "../../walk.h"
#include "slqb.h"

struct view {
	const struct sy__slqb_cache *cache;
	struct sy_page *page;
};

static void mark_list(struct sy__walk *walk, const struct sy__slqb_cache *cache, const struct sy__slqb_list *list,
                      enum sy_part_state state, unsigned owner)
{
	sy__walk_chain(walk, list->freelist, cache->offset, list->count, state, "freelist", owner);
	sy__walk_chain(walk, list->remote_free.first, cache->offset, list->remote_free.count, state, "remote_free", owner);
}

static void mark(struct sy__walk *walk, const void *context)
{
	const struct view *view = context;
	const struct sy__slqb_cache *cache = view->cache;

	sy__walk_chain(walk, sy__slqb_slab(view->page)->freelist, cache->offset, cache->objects, SY_PART_FREE, "freelist of the slab", 0);
	for (unsigned slot = 0; slot < sy__slots_used(cache->cache.heap); slot++) {
		const struct sy__slqb_slot *own = sy__slqb_look(cache, slot);

		if (!sy__slot_reachable(&cache->cache, slot))
			continue;
		mark_list(walk, cache, &own->list, SY_PART_SLOT, slot);
		if (own->rlist.count)
			sy__walk_chain(walk, own->rlist.first, cache->offset, own->rlist.count, SY_PART_SLOT, "rlist", slot);
	}
	for (unsigned node = 0; node < cache->cache.heap->nodes; node++)
		mark_list(walk, cache, &cache->nodes[node].list, SY_PART_NODE, node);
}

/* The owner of the slab: the slot or node with this list. */
static void find_owner(const struct sy__slqb_cache *cache, const struct sy__slqb_list *list, struct sy_slab *seen)
{
	seen->owner_kind = SY_OWNER_NODE;
	seen->owner = (unsigned)list->node;
	for (unsigned slot = 0; slot < sy__slots_used(cache->cache.heap); slot++) {
		if (list == &sy__slqb_look(cache, slot)->list) {
			seen->owner_kind = SY_OWNER_SLOT;
			seen->owner = slot;
		}
	}
}

static void locate(struct sy__slqb_slab *slab, struct sy_slab *seen)
{
	find_owner(slab->list->cache, slab->list, seen);
	seen->list = "full";
	if (!slab->freelist)
		return;
	seen->list = "partial";
	seen->place = sy__walk_place(&slab->list->partial, &slab->link);
}

void sy__slqb_walk(struct sy__walk *walk, struct sy_page *page)
{
	struct sy__slqb_slab *slab = sy__slqb_slab(page);
	const struct view view = { slab->list->cache, page };
	const struct sy__walk_grid grid = { slab->start, view.cache->cache.size, view.cache->objects, mark, &view, SY_PART_USED };

	walk->slab.cache = &view.cache->cache;
	walk->slab.list = "waiting";
	if (!slab->waiting)
		locate(slab, &walk->slab);
	if (!sy__walk_slab(walk))
		return;
	if (slab->waiting)
		sy__walk_part(walk, walk->slab.bytes, SY_PART_WAITING);
	else
		sy__walk_objects(walk, &grid);
}
