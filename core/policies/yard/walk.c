/*
 * yard: what is in a slab, for walks (core/walk.h).
 *
 * An owned slab's mark says whose it is, and the slot on which of its lists it is. A slab that nobody owns is on its node's list,
 * or nowhere: full. Free objects are where the table in yard.c says.
 */
#include "../../this_slot.h"
#include "../../walk.h"
#include "yard.h"

/* Whether the slab is owned by a slot, and by which. */
static bool owner_of(const struct sy__yard_cache *cache, struct sy_page *page, unsigned *slot)
{
	*slot = (unsigned)((sy__yard_owner(sy__node_slab(page)) & ~7u) / cache->base.stride);
	return sy__word_frozen(sy__node_word(page));
}

/* Of the slot's active slab. */
static void mark_ready(struct sy__walk *walk, const struct sy__node_view *view, const struct sy__yard_slot *own, unsigned slot)
{
	const struct sy_cache *cache = &view->cache->cache;
	const char *end = (char *)sy__page_address(cache->heap, view->page) + (size_t)sy__node_objects(view->page) * cache->size;

	sy__node_walk_list(walk, view, own->freelist, SY_PART_SLOT, "freelist", slot);
	for (uint32_t i = own->uncarved; i; i--)
		sy__walk_mark(walk, end - (size_t)i * cache->size, SY_PART_SLOT, "uncarved", slot, own->uncarved - i);
}

static void mark(struct sy__walk *walk, const struct sy__node_view *view)
{
	const struct sy__yard_cache *cache = sy__yard_cache(&view->cache->cache);
	unsigned slot;

	if (owner_of(cache, view->page, &slot) && sy__slot_reachable(&cache->base.cache, slot)) {
		if (sy__yard_slot(cache, slot)->slab == view->page)
			mark_ready(walk, view, sy__yard_slot(cache, slot), slot);
		sy__node_walk_list(walk, view, sy__yard_local(sy__node_slab(view->page))->freelist, SY_PART_SLOT, "local", slot);
	}
	for (slot = 0; slot < sy__slots_used(cache->base.cache.heap); slot++)
		if (sy__slot_reachable(&cache->base.cache, slot))
			sy__node_walk_chain(walk, &cache->base, sy__yard_slot(cache, slot)->remote, cache->remote_limit, SY_PART_SLOT, "remote", slot);
}

/* Which of the slot's lists has the slab, and where. */
static const char *locate_in_slot(const struct sy__yard_cache *cache, const struct sy__yard_slot *own, const struct sy_page *page,
                                  uint64_t *place)
{
	const uint32_t lists[] = { own->first, own->empty };

	*place = 0;
	for (unsigned i = 0; i < 2 && own->slab != page; i++, *place = 0)
		for (struct sy_page *at = sy__yard_numbered(cache, lists[i]); at; at = sy__yard_behind(cache, at), ++*place)
			if (at == page)
				return i ? "empty" : "waiting";
	return "active";
}

/* Of a slot that may not be looked at, no more than that it has the slab. */
static bool locate(struct sy__node_cache *base, struct sy_page *page, struct sy_slab *slab)
{
	struct sy__yard_cache *cache = sy__yard_cache(&base->cache);
	unsigned slot;

	if (!owner_of(cache, page, &slot))
		return false;
	slab->owner_kind = SY_OWNER_SLOT;
	slab->owner = slot;
	slab->list = "owned";
	if (sy__slot_reachable(&base->cache, slot))
		slab->list = locate_in_slot(cache, sy__yard_slot(cache, slot), page, &slab->place);
	return true;
}

void sy__yard_walk(struct sy__walk *walk, struct sy_page *page)
{
	walk->slab.list = "in grace period";
	sy__node_walk(walk, page, locate, mark);
}
