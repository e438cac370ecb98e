/*
 * yard: the slabs that a slot owns, and its supply of free objects. Only the slab's word is shared, and it is changed by
 * compare-and-exchange. So all of this runs inside a fast call, without a lock.
 *
 * Slabs wait in a queue, first in, first out. Where a program frees at random, each slab has gathered many free objects when its turn
 * comes, so refills are rare; from the newest slab a refill would get one object. A slab that becomes empty leaves the queue from any
 * place, so the queue is doubly linked.
 *
 * Carving. The objects of a new slab are not linked at once: most may never be needed, and linking writes to them long before they are
 * used. They are linked when they are needed, up to the end of a page at a time, or a few large ones. An empty slab is carved again from
 * its start, and its lists are forgotten. Constructed objects are linked when they are made.
 *
 * The remote list serves allocations only if the slot has an active slab, objects have at least a cache line, and the heap has one node.
 * Smaller objects would share a cache line with objects of other threads: passively induced false sharing (Berger et al. 2000, section
 * 2.2).
 */
#include "../../bug.h"
#include "../../this_slot.h"
#include "yard.h"

#define CARVED_AHEAD 8u
#define LAST_FREES 4u /* looked at when a slab becomes empty */

/* ---- Waiting and empty slabs --------------------------------------------------------------------------------------- */

/* The slab joins the end of the queue. Other slots' frees may empty it unnoticed, so the slot looks at the queue before it gets more
 * memory. */
void sy__yard_append(const struct sy__yard_cache *cache, struct sy__yard_slot *own, struct sy_page *page)
{
	struct sy__yard_local *local = sy__yard_local(sy__node_slab(page));
	uint32_t number = sy__yard_number(cache, page);

	sy__yard_has_idle(cache, own);
	local->next = 0;
	local->prev = own->last;
	if (own->first)
		sy__yard_local(sy__node_slab(sy__yard_numbered(cache, own->last)))->next = number;
	else
		own->first = number;
	own->last = number;
}

/* Takes a slab out of the queue, from any place. */
static void take_out(const struct sy__yard_cache *cache, struct sy__yard_slot *own, struct sy_page *page)
{
	const struct sy__yard_local *local = sy__yard_local(sy__node_slab(page));

	if (sy__yard_number(cache, page) == own->first)
		own->first = local->next;
	else
		sy__yard_local(sy__node_slab(sy__yard_numbered(cache, local->prev)))->next = local->next;
	if (local->next)
		sy__yard_local(sy__node_slab(sy__yard_numbered(cache, local->next)))->prev = local->prev;
	else
		own->last = local->prev;
}

/* Whether the first entries of a slab's local list are objects, and the first is not there twice. To look at all would cost too much. */
static bool last_frees_are_sound(const struct sy__yard_cache *cache, struct sy_page *page)
{
	void *first = sy__yard_local(sy__node_slab(page))->freelist, *at = first;

	for (uint32_t i = 0; at && i < LAST_FREES; i++, at = sy__node_next(&cache->base, at)) {
		if (sy__unlikely(!sy__node_is_object(&cache->base, page, at))) {
			sy__bug_free(cache->base.cache.heap, at);
			return false;
		}
		if (sy__unlikely(i && at == first)) {
			sy__bug(cache->base.cache.heap, SY_BUG_DOUBLE_FREE, at);
			return false;
		}
	}
	return true;
}

/* An owned slab has become empty. The active one stays; if the slot has too many empty ones now, the caller gives some back. */
void sy__yard_emptied(const struct sy__yard_cache *cache, struct sy__yard_slot *own, struct sy_page *page)
{
	if (page == own->slab)
		return;
	if (sy__unlikely(!last_frees_are_sound(cache, page))) {
		sy__yard_local(sy__node_slab(page))->freelist = NULL;
		sy__node_slab(page)->local_objects = 0;
		return;
	}
	take_out(cache, own, page);
	sy__yard_local(sy__node_slab(page))->next = own->empty;
	own->empty = sy__yard_number(cache, page);
	own->empty_slabs++;
	sy__yard_has_idle(cache, own);
}

/* Takes an empty slab off the slot's list; the slot still owns it. NULL: there is none. */
struct sy_page *sy__yard_next_empty(const struct sy__yard_cache *cache, struct sy__yard_slot *own)
{
	struct sy_page *page = sy__yard_numbered(cache, own->empty);

	if (page) {
		own->empty = sy__yard_local(sy__node_slab(page))->next;
		own->empty_slabs--;
	}
	return page;
}

/* Takes the first slab out of the queue, without touching the second one, whose `prev` is then stale. */
struct sy_page *sy__yard_next_owned(const struct sy__yard_cache *cache, struct sy__yard_slot *own)
{
	struct sy_page *page = sy__yard_numbered(cache, own->first);

	if (page)
		own->first = sy__yard_local(sy__node_slab(page))->next;
	return page;
}

/* ---- Carving --------------------------------------------------------------------------------------------------------- */

static uint32_t lesser(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* Links the next `objects` uncarved objects, at least one, in front of the freelist, in order of address. */
static void link_next(const struct sy__yard_cache *cache, struct sy__yard_slot *own, uint32_t objects)
{
	size_t size = cache->base.cache.size, before = sy__node_objects(own->slab) - own->uncarved;
	char *first = (char *)sy__page_address(cache->base.cache.heap, own->slab) + before * size;

	own->uncarved = (uint16_t)(own->uncarved - objects);
#ifdef SY_HARDENED
	own->freelist = sy__node_link_row(&cache->base, &own->ring, first, objects, own->freelist);
#else
	char *at = first;

	for (; --objects; at += size)
		sy__node_link(&cache->base, at, at + size);
	if (!own->freelist)
		own->bottom = (uint32_t)(uintptr_t)at;
	sy__node_link(&cache->base, at, own->freelist);
	own->freelist = first;
#endif
}

/* Carves what is left, or a part: to the end of the page; of large objects as many as are carved already, up to CARVED_AHEAD. */
void sy__yard_carve(const struct sy__yard_cache *cache, struct sy__yard_slot *own, bool all)
{
	uint32_t before = sy__node_objects(own->slab) - own->uncarved, ahead = 1 + lesser(before, CARVED_AHEAD - 1);
	uint32_t room = (uint32_t)(SY_PAGE_SIZE - ((size_t)before * cache->base.cache.size & (SY_PAGE_SIZE - 1)));
	uint32_t objects = room / cache->base.cache.size;

	if (own->uncarved)
		link_next(cache, own, all ? own->uncarved : lesser(objects > ahead ? objects : ahead, own->uncarved));
}

/* ---- Refilling ------------------------------------------------------------------------------------------------------- */

/* Makes a slab the active one, with an empty freelist. The slot had no active slab. */
void sy__yard_activate(const struct sy__yard_cache *cache, struct sy__yard_slot *own, struct sy_page *page)
{
	sy__yard_set_owner(sy__node_slab(page), sy__yard_mark(cache, own));
	own->slab = page;
	own->node = (int16_t)sy__page_node(page);
	own->freelist = NULL;
	own->bottom = 0;
	own->uncarved = 0;
}

/* The active slab is full, as its word was: it leaves the slot. False: the word has changed meanwhile, and the slab stays. */
static inline bool leave(const struct sy__yard_cache *cache, struct sy__yard_slot *own, struct sy__node_slab *slab, uint64_t *old)
{
	uint32_t mark = sy__yard_mark(cache, own);

	sy__yard_set_owner(slab, mark | SY__YARD_FULL);
	if (sy__likely(sy__swap64(&slab->word, old, *old & ~SY__WORD_FROZEN))) {
		own->slab = NULL;
		return true;
	}
	sy__yard_set_owner(slab, mark);
	return false;
}

/* Fills the empty freelist with a list of `count` objects of the active slab. False: the program has damaged the list; its objects are
 * lost. */
bool sy__yard_fill(const struct sy__yard_cache *cache, struct sy__yard_slot *own, void *list, uint32_t count)
{
	void *last = NULL;

	/* Hardened, each object is looked at when it is handed out. */
	if (!SY__IS_HARDENED && sy__unlikely(!sy__node_list_is_sound(&cache->base, own->slab, list, count, NULL, &last)))
		return false;
	own->freelist = list;
	own->bottom = (uint32_t)(uintptr_t)last;
	return true;
}

/* Refills from what others pushed, or by carving. False: there is neither, and the full slab has left the slot. */
static SY__OUT_OF_LINE bool more_of_active(const struct sy__yard_cache *cache, struct sy__yard_slot *own)
{
	struct sy__node_slab *slab = sy__node_slab(own->slab);
	uint64_t old = sy__load64(&slab->word);

	for (;;) {
		if (sy__unlikely(!sy__word_full(old))) {
			uint32_t count = sy__word_objects(old) - sy__word_in_use(old);

			if (sy__swap64(&slab->word, &old, sy__word_take(old)) &&
			    sy__yard_fill(cache, own, sy__word_first(old, sy__page_address(cache->base.cache.heap, own->slab)), count))
				return true;
			old = sy__load64(&slab->word);
			continue;
		}
		if (own->uncarved) {
			sy__yard_carve(cache, own, false);
			return true;
		}
		if (leave(cache, own, slab, &old))
			return false;
	}
}

/* Fills the freelist, which is empty. False: the slot has no active slab any more. */
static inline bool fill_from_active(const struct sy__yard_cache *cache, struct sy__yard_slot *own)
{
	struct sy__node_slab *slab = sy__node_slab(own->slab);
	void *list = sy__yard_local(slab)->freelist;
	uint32_t count = slab->local_objects;

	sy__yard_local(slab)->freelist = NULL;
	slab->local_objects = 0;
	return (sy__likely(list) && sy__likely(sy__yard_fill(cache, own, list, count))) || more_of_active(cache, own);
}

/* The next waiting slab becomes the active one, or else an empty one. An empty one whose objects are all on the local list starts anew. */
static bool activate_next(const struct sy__yard_cache *cache, struct sy__yard_slot *own)
{
	struct sy_page *page = sy__yard_next_owned(cache, own);
	bool empty = !page;

	if (empty && !(page = sy__yard_next_empty(cache, own)))
		return false;
	sy__yard_activate(cache, own, page);
	if (!SY__IS_HARDENED && empty && sy__node_slab(page)->local_objects == sy__node_objects(page) && !cache->base.cache.constructor) {
		sy__yard_local(sy__node_slab(page))->freelist = NULL;
		sy__node_slab(page)->local_objects = 0;
		own->uncarved = (uint16_t)sy__node_objects(page);
	}
	return true;
}

/* Takes an object from the slot's slabs of that node when the freelist can't serve it; NULL: there is none, as always on the dummy. Active
 * slabs of other nodes are given up on the way. */
void *sy__yard_refill(struct sy__yard_cache *cache, unsigned slot, struct sy__yard_slot *own, int node)
{
	while (own->slab || activate_next(cache, own)) {
		if (sy__unlikely(node != SY_ANY_NODE && node != own->node))
			sy__yard_deactivate(cache, slot, own);
		else if (own->freelist || fill_from_active(cache, own))
			return sy__yard_pop(cache, &own->freelist, cache->base.offset);
	}
	return NULL;
}

/* ---- Freeing ---------------------------------------------------------------------------------------------------------- */

/* A full slab whose last owner was this slot becomes the slot's again, and waits. False: the slab has changed meanwhile. */
static bool take_back(struct sy__yard_cache *cache, struct sy__yard_slot *own, struct sy_page *page)
{
	struct sy__node_slab *slab = sy__node_slab(page);
	uint64_t word = sy__load64(&slab->word);

	if (sy__yard_owner(slab) != (sy__yard_mark(cache, own) | SY__YARD_FULL) || sy__word_frozen(word) || !sy__word_full(word) ||
	    !sy__swap64(&slab->word, &word, word | SY__WORD_FROZEN))
		return false;
	sy__yard_set_owner(slab, sy__yard_mark(cache, own));
	sy__yard_local(slab)->freelist = NULL;
	slab->local_objects = 0;
	sy__yard_append(cache, own, page);
	return true;
}

/* Frees objects, linked from first to last, into a slab that the slot owns or can take back. False: it can do neither. */
bool sy__yard_put_own(struct sy__yard_cache *cache, struct sy__yard_slot *own, struct sy_page *page, void *first, void *last, uint32_t count)
{
	struct sy__node_slab *slab = sy__node_slab(page);

	if (sy__yard_owner(slab) != sy__yard_mark(cache, own) && !take_back(cache, own, page))
		return false;
	sy__node_link(&cache->base, last, sy__yard_local(slab)->freelist);
	sy__yard_local(slab)->freelist = first;
	slab->local_objects = (uint16_t)(slab->local_objects + count);
	if (sy__unlikely(slab->local_objects == sy__yard_in_use_now(slab)))
		sy__yard_emptied(cache, own, page);
	return true;
}
