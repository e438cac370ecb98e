/*
 * yard: the slabs that a slot owns, and its supply of free objects. All of it is the slot's own but for one exchange of a word, so it
 * runs inside a fast call, without a lock.
 *
 * Slabs wait in the order in which the slot came by them. Where a program frees at random, each slab has gathered free objects
 * by the time that its turn comes, and refills are seldom; of the slab that came last the next allocation would find one. A slab
 * that becomes empty leaves that list from anywhere, hence its links to both sides.
 *
 * Carving. The objects of a new slab are not linked at once: nobody may ever need most of them, and they would be written to long
 * before they are used. They are linked as they are needed, up to the end of a page at a time, or a few large ones. A slab that
 * was empty is carved again from its start, and its lists are forgotten. Constructed objects are linked when they are made.
 *
 * The remote list serves only a slot that has an active slab, objects of a cache line or more (who gets a smaller one would share
 * its line with the neighbours' owners: passively induced false sharing, Berger et al. 2000, section 2.2), and memory of one node.
 */
#include "../../bug.h"
#include "../../this_slot.h"
#include "yard.h"

#define CARVED_AHEAD 8u
#define LAST_FREES 4u /* looked at when a slab becomes empty */

/* ---- Waiting and empty slabs --------------------------------------------------------------------------------------- */

/* Others may empty it unnoticed, so the slot looks there before it gets memory for something else. */
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

/* From anywhere. */
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

/* Whether the objects that came last on a slab's local list are such, and none of them came twice. All of them would be too many. */
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

/* An owned slab has no object in use any more. The active one stays; the caller gives back what is too many of the others. */
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

/* Off the slot's lists, but still its own; NULL: it has none. */
struct sy_page *sy__yard_next_empty(const struct sy__yard_cache *cache, struct sy__yard_slot *own)
{
	struct sy_page *page = sy__yard_numbered(cache, own->empty);

	if (page) {
		own->empty = sy__yard_local(sy__node_slab(page))->next;
		own->empty_slabs--;
	}
	return page;
}

/* The first that waits, taken without a look at the next. */
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

/* Puts the next so many objects, at least one, in front of the freelist, in order of address. */
static void carve(const struct sy__yard_cache *cache, struct sy__yard_slot *own, uint32_t objects)
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

/* Onto the freelist, which is empty: as many as end in the same page; of large ones as many as there are already, up to
 * CARVED_AHEAD. */
static void carve_some(const struct sy__yard_cache *cache, struct sy__yard_slot *own)
{
	uint32_t before = sy__node_objects(own->slab) - own->uncarved, ahead = 1 + lesser(before, CARVED_AHEAD - 1);
	uint32_t room = (uint32_t)(SY_PAGE_SIZE - ((size_t)before * cache->base.cache.size & (SY_PAGE_SIZE - 1)));
	uint32_t objects = room / cache->base.cache.size;

	carve(cache, own, lesser(objects > ahead ? objects : ahead, own->uncarved));
}

/* All that is left, as the slab is about to be no longer the slot's. */
void sy__yard_end_carving(const struct sy__yard_cache *cache, struct sy__yard_slot *own)
{
	if (own->uncarved)
		carve(cache, own, own->uncarved);
}

/* ---- Refilling ------------------------------------------------------------------------------------------------------- */

/* The active slab is this one from now on, of which nothing is on the freelist yet; none had been. */
void sy__yard_activate(const struct sy__yard_cache *cache, struct sy__yard_slot *own, struct sy_page *page)
{
	sy__yard_set_owner(sy__node_slab(page), sy__yard_mark(cache, own));
	own->slab = page;
	own->node = (int16_t)sy__page_node(page);
	own->freelist = NULL;
	own->bottom = 0;
	own->uncarved = 0;
}

/* The active slab has nothing free, as its word was. It waits for nobody any more, unless the word has changed. */
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

/* Fills the freelist, which is empty, with a list of so many objects of the active slab. False: the program has damaged it, and its
 * objects are lost. */
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

/* What others pushed, or what was never carved. False: there is neither, and the slab is full. */
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
			carve_some(cache, own);
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

/* A slab of the slot's becomes its active one. If it was an empty one and all is in the local list, as if new. */
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

/* An object of the slabs that the slot owns, on that node, for which its freelist does not serve; NULL: it has none, as the dummy
 * never has. Slabs of other nodes on the way are given up. */
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

/* A full slab that the slot has filled itself is its own again, and waits. False: it isn't that any more. */
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

/* Frees objects, linked from first to last, of a slab that the slot owns, or takes back. False: it is somebody else's. */
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
