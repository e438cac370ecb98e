/*
 * SLUB: what is in a slab, for walks (core/walk.h).
 *
 * The descriptor alone does not tell where a slab is kept: a frozen slab belongs to some slot, and which one only the
 * slots know. So the place is looked up: in the slots' active slabs and partial lists first, then on the node's list; a
 * slab that is nowhere is full. Free objects are on the slab's own list, of an active slab on the
 * slot's, and in heaps of threads among the strays of any slot.
 */
#include "../../here.h"
#include "../../walk.h"
#include "yard.h"

struct view {
	const struct sy__yard_cache *cache;
	struct sy_page *page;
};

static void mark_chain(struct sy__walk *walk, const struct view *view, void *first, enum sy_part_state state, const char *list,
                       unsigned owner)
{
	sy__walk_chain(walk, first, view->cache->offset, sy__yard_objects(view->page), state, list, owner);
}

/* What a slot has free in its active slab, or in another one that it owns. */
static void mark_of_slot(struct sy__walk *walk, const struct view *view, unsigned slot)
{
	const struct sy__yard_cache *cache = view->cache;
	const struct sy__yard_slot *own = sy__yard_slot(cache, slot);
	const struct sy__yard_slab *slab = sy__yard_slab(view->page);
	const char *end;

	if (own->slab == view->page) {
		if (!own->astray)
			mark_chain(walk, view, own->freelist, SY_PART_SLOT, "freelist", slot);
		end = (char *)sy__page_address(cache->cache.heap, view->page) + (size_t)sy__yard_objects(view->page) * cache->cache.size;
		for (uint32_t i = own->uncarved; i; i--)
			sy__walk_mark(walk, end - (size_t)i * cache->cache.size, SY_PART_SLOT, "uncarved", slot, own->uncarved - i);
	}
	if (cache->cache.heap->threads && sy__yard_owner(slab) == sy__yard_mark(cache, own))
		mark_chain(walk, view, slab->held.freelist, SY_PART_SLOT, "freelist", slot);
	sy__yard_mark_strays(walk, cache, slot);
}

/* Free objects in pages without memory. */
static void mark_emptied(struct sy__walk *walk, const struct view *view)
{
	const char *start = sy__page_address(view->cache->cache.heap, view->page);
	uint64_t place = 0;

	for (uint32_t i = 0; i < sy__yard_objects(view->page); i++)
		if (sy__yard_is_emptied(view->cache, view->page, i))
			sy__walk_mark(walk, start + (size_t)i * view->cache->cache.size, SY_PART_FREE, "given back", 0, place++);
}

static void mark(struct sy__walk *walk, const void *context)
{
	const struct view *view = context;
	const struct sy__yard_cache *cache = view->cache;

	mark_chain(walk, view, sy__yard_freelist(cache->cache.heap, view->page), SY_PART_FREE, "freelist of the slab", 0);
	mark_emptied(walk, view);
	for (unsigned slot = 0; slot < cache->cache.heap->slots; slot++)
		if (sy__slot_reachable(&cache->cache, slot))
			mark_of_slot(walk, view, slot);
}

/* Whether the slab is on this list of a slot, and where. */
static bool is_kept(const struct sy__yard_cache *cache, struct sy_page *list, const struct sy_page *page, uint64_t *place)
{
	*place = 0;
	for (struct sy_page *at = list; at; at = sy__yard_behind(cache, at), ++*place)
		if (at == page)
			return true;
	return false;
}

/* The list of a slot that has the slab; or NULL. */
static const char *slots_list(const struct sy__yard_cache *cache, const struct sy__yard_slot *own, const struct sy_page *page,
                              uint64_t *place)
{
	*place = 0;
	if (own->slab == page)
		return "active";
	if (is_kept(cache, own->partial, page, place))
		return "partial";
	return is_kept(cache, sy__yard_first_empty(cache, own), page, place) ? "empty" : NULL;
}

/* Whether a slot has the slab, and as what. */
static bool with_slot(const struct sy__yard_cache *cache, const struct sy_page *page, struct sy_slab *slab)
{
	for (unsigned slot = 0; slot < cache->cache.heap->slots; slot++) {
		if (!sy__slot_reachable(&cache->cache, slot))
			continue;
		slab->list = slots_list(cache, sy__yard_slot(cache, slot), page, &slab->place);
		if (!slab->list)
			continue;
		slab->owner_kind = SY_OWNER_SLOT;
		slab->owner = slot;
		return true;
	}
	slab->place = 0;
	return false;
}

static void locate(const struct sy__yard_cache *cache, struct sy_page *page, struct sy_slab *slab)
{
	const struct sy__yard_node *node = &cache->nodes[sy__page_node(page)];

	if (with_slot(cache, page, slab))
		return;
	slab->list = "full";
	if (!sy__yard_freelist(cache->cache.heap, page))
		return;
	slab->list = "partial";
	slab->owner_kind = SY_OWNER_NODE;
	slab->owner = sy__page_node(page);
	slab->place = sy__walk_place(&node->partial, &sy__yard_slab(page)->link);
}

void sy__yard_walk(struct sy__walk *walk, struct sy_page *page)
{
	const struct sy__yard_slab *slab = sy__yard_slab(page);
	const struct view view = { slab->cache, page };
	const uint32_t objects = sy__yard_objects(page);
	const struct sy__walk_grid grid = { 0, slab->cache->cache.size, objects, mark, &view, SY_PART_USED };

	walk->slab.cache = &slab->cache->cache;
	walk->slab.list = "waiting";
	if (objects)
		locate(slab->cache, page, &walk->slab);
	if (!sy__walk_slab(walk))
		return;
	if (objects)
		sy__walk_objects(walk, &grid);
	else
		sy__walk_part(walk, walk->slab.bytes, SY_PART_WAITING);
}
