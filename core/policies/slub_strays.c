/*
 * SLUB in heaps of threads: strays, free objects that a slot keeps outside their slabs, most of them others'.
 *
 * Why. To give an object back to a slab that another slot owns costs a compare-and-exchange there (slub_word.h), and two cache
 * lines that the other processor needs too: that of the slab, which its owner reads and writes all the time, and soon that of
 * the object, which is handed out again over there. Where threads free at random what any of them took, each gets about as many
 * objects as it gives, and may as well keep what it has at hand. Where one thread takes and another gives, a slab gets many
 * objects back at once, by one exchange. And an exchange ends only when everything that was stored before is in the cache, the
 * object's link among it, for which memory may have to come that this processor has not touched for long: where the object has
 * been kept for a while it has come meanwhile.
 *
 * How. Such a free puts the object onto own->strays, a list of the slot's alone, and counts it there. It reads nothing of the one
 * that was put there before, which may still be on its way to memory: processors hand on what was stored a moment ago, but not
 * always when the cache line is missing. To its slab a stray is in use: neither the word nor the owner nor the
 * node knows of it, and a slab of which no other object is in use stays as long as the stray is kept. So strays are few:
 * stray_limit of a cache in a slot. One more, and all go home: each row of them that is of one slab by one exchange, as if it
 * were a single object. They also go when the thread needs pages for another size (sy__slub_look_around): of a size that it has
 * no use for any more they would keep a slab each. And when the slot is drained, that is when its thread ends, and when others
 * trim or shrink.
 *
 * One in SY__SLUB_STRAYS_TO_ONE is not kept, but looked at. A thread that frees only what it took itself may have begun among
 * slabs of another's: that of a server's, which created this one and ended (Larson and Krishnan 1998), or of one whose slot
 * has a new owner meanwhile. What it keeps it hands out, and has back as a stray; so it would never leave those slabs, and each
 * free would wait for a slab's descriptor that the other processor writes to. As one of them goes home each time, the thread
 * comes to work in slabs of its own; threads that free each other's objects for good lose little by it. If the slab's owner has
 * ended, and nobody has its slot, the thread takes over the slabs of the class that were left there, which are likely to be the
 * ones where its objects are; and makes a full one its own that the ended thread has filled, as if it had done so itself. So
 * does one that has no free object, before it asks for pages (slub.c): of a row of threads, none of which ends before the next
 * has begun, each would have its slabs beside those of the one before.
 *
 * Exchanged slabs. If nobody has ended, the slab is one whose objects threads exchange, and even to look at it, at each free, is
 * to wait for what the other processor wrote there. So the one in SY__SLUB_STRAYS_TO_ONE marks the slab's pages (core/backend/page_map.h):
 * from then on kfree keeps its objects as strays without a look at the slab, whosever it is, its owner's as well. Of them one in
 * SY__SLUB_STRAYS_TO_ONE is looked at too, and all for which there is no room. If that is the owner's, it takes the mark away: of
 * slabs whose objects threads exchange for good most bear it, as most who look are others; slabs that have come to be worked in
 * by their owner alone have none, as it costs twice a branch that nobody foresees where some slabs have it and some have not. A
 * thread to which SY__SLUB_STRAYS_NEW have come of a class is at home by then in slabs of its own, or will never be: it looks at
 * one in SY__SLUB_STRAYS_TO_RARE of exchanged slabs, since each look waits for the slab, and is a slow call. The mark is a hint: a
 * thread that finds an old one does what was right with it. A new slab has none.
 *
 * When a slot's freelist is empty, a stray serves before what is in the slot's own slabs: it is likely to be in this processor's
 * cache. They are never noted as handed out last (sy__slub_hand_out_stray says why).
 *
 * Which objects. Not those smaller than a cache line: their neighbours in it belong to others, who would share the line with this
 * thread from then on (passively induced false sharing, Berger et al. 2000, section 2.2). Not those of caches whose free objects
 * keep their contents, as a stray is linked at its start. Not those of slabs that are with their node, but for rows: there they
 * gather for whoever takes the slab, whose own it is then, while strays stay others' each time that they are freed again. None at all where
 * the slot has no active slab of the cache, as it has no use for them, but for rows. And not in heaps of several nodes, where a
 * freelist is of one.
 *
 * Rows. A thread that takes no objects of the class itself keeps SY__SLUB_ROW, or as many as are ROW_BYTES. One more, and they go
 * home; of what it gives back many in a row are of one slab, which go by one exchange. So do objects of any size that has room for
 * what a stray says: small ones are never handed out, so nobody comes to share a line with anybody. But not those of slabs that
 * the slot has filled, since a full one becomes its own by that. Rows go home when other strays do, and when the heap settles.
 *
 * Large objects. Of objects of some KiB a slab holds a dozen, so most frees of a program that frees at random meet a full
 * slab, which they make the slot's by an exchange, and most allocations take up a slab for one object; and each waits for a
 * slab's descriptor that is in no cache. So what kfree gives back of size classes above SY__KMALLOC_SMALL becomes a stray at
 * once, whosever slab it is of: nobody looks at the slab, as the word of the object's page (core/backend/page_map.h) bears a mark that
 * says which class it is. Such strays gather right on the slot's freelist, up to sheaf_limit (own->sheaf; 0 before the slot
 * has had an active slab), if that is empty or made of strays, as own->astray says: then it has nothing to do with the active
 * slab, which waits beside it with what is held in it and not carved; who gives that slab up sends the freelist home first.
 * Lest it be made of something else, a slot takes a few held objects of its active slab one by one (sy__slub_pop_held). What
 * there is no room for goes the usual way, to its slab. They go home when other strays do, and each time that the heap
 * settles, since they keep slabs of many pages; those of a thread that ends are its slot's next owner's. The mark costs frees
 * of small objects two instructions; and a branch, which a program whose objects are at random above and below that size makes
 * processors guess. (What it gains: docs/benchmarks.md.)
 *
 * Linux has come to the same: its caches of Linux 6.18 may have sheaves, arrays of free objects of any slab on each CPU.
 *
 * All of it is the slot's own, but for the exchanges, which release what was done to the objects to whoever takes their slab's
 * list.
 */
#include "../here.h"
#include "../walk.h"
#include "slub.h"

#define MOST_TAKEN_OVER 256u /* slabs, at once: nobody gets a slot meanwhile */

/* ---- Rows ---------------------------------------------------------------------------------------------------------- */

/* Strays of one slab, side by side on the list. */
struct row {
	struct sy_page *page;
	struct sy__slub_chain objects;
};

static struct row cut_row(struct sy__slub_cache *cache, struct sy__slub_stray **strays)
{
	struct sy__slub_stray *at = *strays;
	struct row row = { sy__slub_head(cache, at), { at, at, 1 } };
	uintptr_t start = (uintptr_t)sy__page_address(cache->cache.heap, row.page), bytes = SY_PAGE_SIZE << sy__page_order(row.page);

	while ((at = at->next) && (uintptr_t)at - start < bytes) {
		row.objects.last = at;
		row.objects.count++;
	}
	*strays = at;
	return row;
}

/* To a slab that has become the slot's own meanwhile. */
static void hold(struct sy__slub_cache *cache, struct sy__slub_slot *own, const struct row *row)
{
	struct sy__slub_slab *slab = sy__slub_slab(row->page);

	*sy__slub_next(cache, row->objects.last) = slab->held.freelist;
	slab->held.freelist = row->objects.first;
	slab->held_objects = (uint16_t)(slab->held_objects + row->objects.count);
	if (slab->held_objects == sy__slub_in_use_now(slab))
		sy__slub_emptied(cache, own, row->page);
}

/* Pages that went back, as of the next. */
static uint64_t give_row(struct sy__slub_cache *cache, unsigned slot, const struct row *row)
{
	struct sy__slub_slot *own = sy__slub_slot(cache, slot);
	const struct sy__slub_chain *objects = &row->objects;

	if (sy__slub_owner(sy__slub_slab(row->page)) == sy__slub_mark(cache, own))
		hold(cache, own, row);
	else if (!sy__slub_free_foreign(cache, own, row->page, objects->first, objects->last, objects->count))
		return sy__slub_free_moving(cache, slot, row->page, objects->first, objects->last, objects->count);
	return 0;
}

static uint64_t give_list(struct sy__slub_cache *cache, unsigned slot, struct sy__slub_stray *strays)
{
	const struct sy__slub_slot *own = sy__slub_slot(cache, slot);
	uint64_t pages = 0;

	while (strays) {
		struct row row = cut_row(cache, &strays);

		pages += give_row(cache, slot, &row);
		pages += sy__slub_give_empties(cache, slot, sy__slub_empties(cache, own));
	}
	return pages;
}

/* ---- Home ---------------------------------------------------------------------------------------------------------- */

/* Sends all strays home, but for those on the freelist; pages that went back. In a slow call, or of a slot that is claimed; as
 * the next. */
uint64_t sy__slub_give_strays(struct sy__slub_cache *cache, unsigned slot)
{
	struct sy__slub_slot *own = sy__slub_slot(cache, slot);
	struct sy__slub_stray *strays = own->strays;

	own->strays = NULL;
	own->stray_count = 0;
	return give_list(cache, slot, strays);
}

static bool give_foreign_row(struct sy__slub_cache *cache, struct sy__slub_slot *own, const struct row *row)
{
	return sy__slub_owner(sy__slub_slab(row->page)) != sy__slub_mark(cache, own) &&
	       sy__slub_free_foreign(cache, own, row->page, row->objects.first, row->objects.last, row->objects.count);
}

/* Rows of slabs that are others', each by one exchange, in a call; false: what is left needs a slow call. */
bool sy__slub_give_rows(struct sy__slub_cache *cache, struct sy__slub_slot *own)
{
	struct sy__slub_stray *strays = own->strays;

	while (strays) {
		struct row row = cut_row(cache, &strays);

		if (!give_foreign_row(cache, own, &row)) {
			*sy__slub_next(cache, row.objects.last) = strays; /* which an exchange that failed has changed */
			return false;
		}
		own->strays = strays;
		own->stray_count = (uint16_t)(own->stray_count - row.objects.count);
	}
	return true;
}

/* If the freelist is made of strays, sends these home. */
uint64_t sy__slub_end_strays(struct sy__slub_cache *cache, unsigned slot)
{
	struct sy__slub_slot *own = sy__slub_slot(cache, slot);
	struct sy__slub_stray *strays = own->freelist;

	if (!own->astray)
		return 0;
	own->astray = false;
	own->freelist = NULL;
	return give_list(cache, slot, strays);
}

/* ---- What ended threads have left -------------------------------------------------------------------------------------- */

/* A slab of an ended thread's slot is the caller's from now on, with what is held in it. To threads that free into it that is all
 * one: to them it is another slot's before and afterwards, and the word stays as it is. */
static void inherit(struct sy__slub_cache *cache, struct sy__slub_slot *own, struct sy_page *page)
{
	struct sy__slub_slab *slab = sy__slub_slab(page);

	sy__slub_set_owner(slab, sy__slub_mark(cache, own));
	sy__slub_set_filler(slab, own);
	sy__slub_hold_owned(cache, own, page);
	if (slab->held_objects == sy__slub_in_use_now(slab))
		sy__slub_emptied(cache, own, page);
}

/* Slabs of the class that were left in a slot, where strays don't stay. Its active one goes to its node, as that is one list less
 * to take over. False: somebody has that slot, or it is claimed. */
bool sy__slub_take_over(struct sy__slub_cache *cache, unsigned slot, unsigned from)
{
	struct sy__slub_slot *own = sy__slub_slot(cache, slot), *left = sy__slub_slot(cache, from);
	struct sy_page *page;

	if (!sy__slot_claim(from))
		return false;
	if (left->slab)
		sy__slub_deactivate(cache, from, left);
	for (unsigned slabs = 0; slabs < MOST_TAKEN_OVER && (page = sy__slub_next_owned(cache, left)); slabs++) {
		inherit(cache, own, page);
		sy__slub_give_empties(cache, slot, sy__slub_empties(cache, own));
	}
	sy__slot_release(from);
	return true;
}

/* The slot that has filled a slab, as far as the hint tells; or one that there isn't. */
static unsigned filler_of(const struct sy__slub_cache *cache, const struct sy__slub_slab *slab)
{
	return (uint16_t)(__atomic_load_n(&slab->filler, __ATOMIC_RELAXED) - sy__slub_tag(cache->slots));
}

static bool adopt_of(struct sy__slub_slot *own, struct sy__slub_slab *slab, unsigned filler)
{
	if (!sy__slot_claim(filler))
		return false;
	sy__slub_set_filler(slab, own);
	sy__slot_release(filler);
	return true;
}

/* Whether a slab's objects may be those of an ended thread, and have become the slot's, or will. */
static bool inherited(struct sy__slub_cache *cache, unsigned slot, struct sy__slub_slab *slab)
{
	uint32_t owner = sy__slub_owner(slab);

	if (owner != SY__SLUB_NOBODY)
		return sy__slub_take_over(cache, slot, owner / (uint32_t)SY_SLOT_STRIDE);
	return adopt_of(sy__slub_slot(cache, slot), slab, filler_of(cache, slab));
}

/* Whether the slab is to be marked, and the object's page is not yet: others read those words all the time. */
static bool wants_mark(const struct sy__slub_cache *cache, const void *object)
{
	const struct sy__page_map *heads = &sy__slub_heap(cache->cache.heap)->heads;

	return cache->exchanged_mark && !sy__page_map_is_marked(sy__page_map_word(heads, sy__page_map_index(heads, object)));
}

/* A stray that is not kept, in a slow call. Whose slab it is may change meanwhile, and then a look at another slot's is in
 * vain. */
void sy__slub_look_at_stray(struct sy__slub_cache *cache, unsigned slot, struct sy_page *page, void *object)
{
	if (!inherited(cache, slot, sy__slub_slab(page)) && wants_mark(cache, object))
		sy__slub_set_page_map(cache, page, cache->exchanged_mark);
	sy__slub_free_owned(cache, slot, page, object);
}

/* ---- Counting, checking, walking ------------------------------------------------------------------------------------- */

/* The slab that an address is an object of, if the slab is the cache's; or NULL. Looks nowhere that it may not. */
static struct sy_page *slab_of(const struct sy__slub_cache *cache, const void *address)
{
	struct sy_page *page = sy__pages_find(cache->cache.heap, address);

	if (!page)
		return NULL;
	page = sy__page_head(page);
	return sy__page_is_slab(page) && sy__slub_slab(page)->cache == cache && sy__slub_in_slab(cache, page, address) ? page : NULL;
}

/* On one list: between the call that adds one too many and that which sends them home a claimer may look. */
static size_t most(const struct sy__slub_cache *cache)
{
	size_t most = cache->stray_limit > cache->sheaf_limit ? cache->stray_limit : cache->sheaf_limit;

	return (most < cache->row ? cache->row : most) + 1;
}

/* Of a list that may have been written over: as far as it is sound. */
static size_t length(const struct sy__slub_cache *cache, const struct sy__slub_stray *at)
{
	size_t count = 0;

	for (; count < most(cache) && slab_of(cache, at); at = at->next)
		count++;
	return count;
}

static const struct sy__slub_stray *on_freelist(const struct sy__slub_slot *own)
{
	return own->astray ? own->freelist : NULL;
}

size_t sy__slub_count_strays(const struct sy__slub_cache *cache, const struct sy__slub_slot *own)
{
	return length(cache, own->strays) + length(cache, on_freelist(own));
}

static const char *check_list(const struct sy__slub_cache *cache, const struct sy__slub_stray *at)
{
	size_t count = 0;

	for (; at; at = at->next) {
		struct sy_page *page = slab_of(cache, at);

		if (!page || !sy__slub_in_use(page) || ++count > most(cache))
			return "slub: strays of a slot are no objects in use of their cache, or too many";
	}
	return NULL;
}

const char *sy__slub_check_strays(const struct sy__slub_cache *cache, const struct sy__slub_slot *own)
{
	const char *wrong = check_list(cache, own->strays);

	if (!wrong && cache->cache.heap->threads && own->stray_count != length(cache, own->strays))
		wrong = "slub: a slot's strays are not as many as it says";
	return wrong ? wrong : check_list(cache, on_freelist(own));
}

static void mark_list(struct sy__walk *walk, const struct sy__slub_cache *cache, const struct sy__slub_stray *at, const char *list, unsigned slot)
{
	for (uint64_t place = 0; place < most(cache) && slab_of(cache, at); at = at->next)
		sy__walk_mark(walk, at, SY_PART_SLOT, list, slot, place++);
}

/* Those of any slab: the walk sees only to its own. */
void sy__slub_mark_strays(struct sy__walk *walk, const struct sy__slub_cache *cache, unsigned slot)
{
	const struct sy__slub_slot *own = sy__slub_slot(cache, slot);

	mark_list(walk, cache, own->strays, "strays", slot);
	mark_list(walk, cache, on_freelist(own), "freelist", slot);
}
