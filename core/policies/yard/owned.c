/*
 * SLUB in heaps of threads: slabs that slots own.
 *
 * Why. A free into a slab that isn't the slot's active one costs a compare-and-exchange of the slab's word (word.h): twenty
 * cycles and a full fence, though in most programs nobody else ever touches that slab. So here a slot that has frozen a slab
 * owns it, and frees into its own slabs by plain stores; only those of other slots take an exchange. After Leijen, Zorn and
 * de Moura, "Mimalloc: Free List Sharding in Action" (2019), whose pages have a list for their thread and one for all others.
 *
 * The two lists of an owned slab. What other slots free goes to the list in the word, as ever. What the owner frees goes to
 * held.freelist, `held_objects` long, of which the word knows nothing: to it, these objects are in use. The slab is wholly free
 * when the word has no more objects in use than are held; the owner looks at each free. A last object that another slot frees
 * is not noticed at once, but when the slab becomes active, or is given to its node; or when the slot needs pages for another
 * size (sy__yard_look_around).
 *
 * The active slab's objects are on a third list as well, the slot's freelist, from which allocations are served. What the owner
 * frees goes to the held list of the object's slab nevertheless, be it the active one or not, until the freelist is used up. To
 * choose between the two costs more than that saves: of a class with several slabs in use a free meets the active one at
 * random, and half of such branches would be taken wrongly, at the cost of a free each; and where the list is chosen without a
 * branch, the processor learns late where the free writes to, and those behind it wait. Only one test comes before, which the
 * same program passes, or fails, again and again: is it the object that was handed out last? What hot pairs free stays on the
 * slot's freelist, and they touch nothing else.
 *
 * Whose a slab is. slab.owner says so, by a mark that only this slot has. Whoever frees an object compares it with the own mark:
 * one load and a comparison. It may change at any time, but not from or to the reader's own mark, as nobody else sets
 * that; thus no order is needed. (A claimer that takes a slab from a slot has stopped its thread, which sees what
 * was done by acquiring `here`, see threads.c; and so does the next thread that gets the slot.)
 *
 * Where an owned slab is. Active; on the slot's list of partial slabs; or, with no object in use, on that of empty ones, which
 * others may need more than this slot: of these it keeps `empty_limit`; one that another slot has filled, and would fill again,
 * goes at once. The partial list is taken from at one end and added to at the other: where frees meet slabs at random, each
 * slab has gathered free objects by the time that its turn comes, and refills are seldom; of the slab that was added last, the
 * next allocation would find one. To leave the list from anywhere when it becomes empty, a slab has links to both sides. As
 * both pointers and the freelist were too much for a descriptor, links are numbers of pages.
 *
 * Enough. Where a program allocates as much as it frees, slabs have a few free objects each, the active one among them, whose
 * held list is about half as long each time that the slot takes it. Such a list is used up at once; then the next slab's turn
 * costs two exchanges and jumps that no processor foresees, which then guesses for a while at the program's own jumps as well.
 * So a slot takes up slabs of which one object in SY__YARD_ENOUGH is free, or of objects too large for that any; others wait on
 * the list, the active one at its end, and gather more. Instead the slot takes an empty slab, one of its node's, or a new one,
 * if there are pages. It has SY__YARD_WAITING slabs that wait at most, so as not to grow by what all slabs have in them: where
 * it has so many, it takes up the first in any case.
 *
 * Spares. A slot that asks the page allocator for a slab after it gave one back keeps one more empty slab from then on, up to
 * SPARE_BYTES: a program that frees what it has as a whole, and allocates as much again, would have its slabs end and begin
 * each time, which is most of what it then waits for. They hardly add to what a program has at most, as they go before the slot
 * gets pages that had no memory yet (core/backend/run_cache.c); if it gets such pages even so, and again and again, it keeps none until the
 * heap settles, which is each second. Then they go as well, and how many are needed is found out anew. What is in the empty
 * slabs of a slot that keeps spares has left the processor's caches, and each allocation would wait for its object's link, which
 * says where the next one is: there each of them is carved anew. Of slabs that others have filled it is the node that keeps some
 * (nodes.c).
 *
 * How a slot comes to own a slab, besides by making it or by taking it from its node's list: a full slab belongs to nobody, and
 * whoever frees into it first freezes it, by exchange of the word, and so becomes its owner, as in SLUB. (The exchange acquires
 * what the last owner released when it gave up the slab: its links and its held list are the new owner's.) But only of slabs
 * that the slot has filled itself, as slab.filler tells: it is the one that allocates from them next. A thread that frees what
 * others allocate would have the free objects of their slabs, while they make new ones. Of such slabs it keeps objects
 * (strays.c), or the slab goes to its node, where whoever allocates finds it. Who asks for it (cpu_partial) has slots own
 * foreign_limit of them.
 *
 * How it gives a slab up. When its active slab has nothing left, neither on a list of its own nor in the word, one exchange takes
 * the frozen bit away; the mark is gone before, since by then the slab may be another's. When it is drained, or has too many
 * empty ones, the held objects go to the word's list, in the same exchange that takes the frozen bit away, under the node's lock
 * (release in slabs.c).
 *
 * Carving. A new slab's objects are not linked at once: nobody may ever need most of them, and they would be written to long
 * before they are used. The active slab's `uncarved` last objects are on no list; they are linked as they are needed, up to the
 * end of a page at a time, or a few large ones. Objects of caches with constructors are linked as they are made. Of a slab of
 * its node's that is empty the list is forgotten, and it is carved anew. One that becomes empty as the slot's own keeps its
 * list, unless the slot keeps spares: to link its objects again, page by page, takes longer where they are still in a cache.
 *
 * All of this is the slot's own state and one word, so it runs inside a fast call, without a lock: refilling a slot is a slow
 * call only when the node's list or the page allocator is needed. tests/model/ tries all interleavings.
 */
#include "../../here.h"
#include "yard.h"

#define CARVED_AHEAD 8u
#define SPARE_BYTES ((size_t)4 << 20) /* of empty slabs that a slot keeps of a cache because it needs them again and again, */
#define MOST_SPARE 200u               /* and so many, that all its empty ones can be counted */

/* ---- The lists of a slot ------------------------------------------------------------------------------------------- */

/* From anywhere. */
static void take_out(const struct sy__yard_cache *cache, struct sy__yard_slot *own, struct sy_page *page)
{
	const struct sy__yard_held *held = &sy__yard_slab(page)->held;
	struct sy_page *next = sy__yard_numbered(cache, held->next);

	if (page == own->partial)
		own->partial = next;
	else
		sy__yard_slab(sy__yard_numbered(cache, held->prev))->held.next = held->next;
	if (next)
		sy__yard_slab(next)->held.prev = held->prev;
	else
		own->newest = held->prev;
}

static void count_out(struct sy__yard_slot *own, const struct sy_page *page)
{
	own->partial_slabs--;
	own->foreign_slabs -= sy__yard_is_foreign(own, SY_SLAB_STATE(const struct sy__yard_slab, page));
}

/* A slab of the slot's has no object in use any more: how many empty ones the slot should keep now, if there are more. Then one
 * is missed from now on. Of the active slab that may not be so. */
uint32_t sy__yard_emptied(struct sy__yard_cache *cache, struct sy__yard_slot *own, struct sy_page *page)
{
	bool foreign = sy__yard_is_foreign(own, sy__yard_slab(page));

	if (page == own->slab)
		return own->empty_slabs;
	take_out(cache, own, page);
	count_out(own, page);
	sy__yard_slab(page)->held.next = own->empty;
	own->empty = sy__yard_number(cache, page);
	own->empty_slabs++;
	if (foreign)
		return own->empty_slabs - 1u;
	if (own->empty_slabs > sy__yard_empties(cache, own))
		own->missed = (uint8_t)(own->missed + (own->missed < MOST_SPARE));
	else if (own->empty_slabs > cache->empty_limit)
		sy__spares_kept(cache->cache.heap, sy__yard_here_of(cache, own));
	return sy__yard_empties(cache, own);
}

/* The slot has got a slab from the page allocator: had it kept one that it gave back, it need not have. */
void sy__yard_taken(struct sy__yard_slot *own, const struct sy_page *page)
{
	if (!own->missed)
		return;
	own->missed--;
	if ((own->spare + (size_t)1) << (SY_PAGE_SHIFT + sy__page_order(page)) > SPARE_BYTES || own->spare == MOST_SPARE)
		return;
	own->spare++;
}

/* Off the slot's lists, but still its own; NULL: it has none. */
struct sy_page *sy__yard_next_empty(const struct sy__yard_cache *cache, struct sy__yard_slot *own)
{
	struct sy_page *page = sy__yard_first_empty(cache, own);

	if (page) {
		own->empty = sy__yard_slab(page)->held.next;
		own->empty_slabs--;
	}
	return page;
}

/* Of both lists; partial ones first, so that empty ones may go. The first one is taken without a look at the next. */
struct sy_page *sy__yard_next_owned(const struct sy__yard_cache *cache, struct sy__yard_slot *own)
{
	struct sy_page *page = own->partial;

	if (sy__unlikely(!page))
		return sy__yard_next_empty(cache, own);
	own->partial = sy__yard_numbered(cache, sy__yard_slab(page)->held.next);
	count_out(own, page);
	return page;
}

/* ---- The active slab ------------------------------------------------------------------------------------------------ */

/* Where the slot's active slab has an object. */
static char *nth(const struct sy__yard_cache *cache, const struct sy__yard_slot *own, uint32_t object)
{
	return (char *)sy__page_address(cache->cache.heap, own->slab) + (size_t)object * cache->cache.size;
}

static uint32_t carved(const struct sy__yard_slot *own)
{
	return sy__yard_objects(own->slab) - own->uncarved;
}

static uint32_t lesser(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* Puts the next objects on the slot's freelist, which is empty: as many as end in the same page; of large ones as many as there
 * are already, up to CARVED_AHEAD. */
SY__OUT_OF_LINE void sy__yard_carve(const struct sy__yard_cache *cache, struct sy__yard_slot *own)
{
	uint32_t before = carved(own), ahead = 1 + lesser(before, CARVED_AHEAD - 1);
	char *first = nth(cache, own, before);
	uint32_t room = (uint32_t)(SY_PAGE_SIZE - ((uintptr_t)first & (SY_PAGE_SIZE - 1)));
	uint32_t objects = room / cache->cache.size;

	objects = lesser(objects > ahead ? objects : ahead, own->uncarved);
	sy__yard_link_row(cache, first, objects);
	own->freelist = first;
	own->uncarved = (uint16_t)(own->uncarved - objects);
}

/* All that is left, in front of the slot's freelist: the slab is about to be no longer the slot's. */
void sy__yard_end_carving(const struct sy__yard_cache *cache, struct sy__yard_slot *own)
{
	char *first;

	if (!own->uncarved)
		return;
	first = nth(cache, own, carved(own));
	sy__yard_link_row(cache, first, own->uncarved);
	*sy__yard_next(cache, first + (size_t)(own->uncarved - 1) * cache->cache.size) = own->freelist;
	own->freelist = first;
	own->uncarved = 0;
}

/* Of the active slab no object is in use: forgets where the slot has them, and begins anew. The word must say that all are the
 * slot's. */
static void carve_all(const struct sy__yard_cache *cache, struct sy__yard_slot *own)
{
	if (cache->cache.constructor)
		return;
	own->uncarved = (uint16_t)sy__yard_objects(own->slab);
	sy__yard_carve(cache, own);
}

/* The slot's active slab is its own from now on, with nothing held. */
void sy__yard_own_active(struct sy__yard_cache *cache, struct sy__yard_slot *own, bool empty)
{
	struct sy__yard_slab *slab = sy__yard_slab(own->slab);

	sy__yard_set_owner(slab, sy__yard_mark(cache, own));
	slab->held.freelist = NULL;
	slab->held_objects = 0;
	own->sheaf = cache->sheaf_limit;
	own->stray_limit = cache->stray_limit;
	if (empty)
		carve_all(cache, own);
}

/* The active slab has nothing left: no held objects (hence no emptied_pages), and none in its word as that was. It is nobody's
 * from now on, unless the word has changed. */
static inline bool leave(const struct sy__yard_cache *cache, struct sy__yard_slot *own, struct sy__yard_slab *slab, uint64_t *old)
{
	sy__yard_set_owner(slab, SY__YARD_NOBODY);
	sy__yard_set_filler(slab, own);
	if (sy__likely(sy__swap64(&slab->word, old, *old & ~SY__YARD_FROZEN))) {
		own->slab = NULL;
		return true;
	}
	sy__yard_set_owner(slab, sy__yard_mark(cache, own));
	return false;
}

/* The active slab goes to the end of the slot's list. */
static inline void set_aside(const struct sy__yard_cache *cache, struct sy__yard_slot *own)
{
	sy__yard_hold_owned(cache, own, own->slab);
	own->slab = NULL;
}

/* Fills the slot's freelist, which is empty, with more of its active slab, but for what sy__yard_pop_held takes: all of it,
 * what others gave back, and only then what was never used. False: there is nothing, and the slab is nobody's now; or there is
 * not enough, and it is set aside. */
static inline bool more(struct sy__yard_cache *cache, struct sy__yard_slot *own, bool any)
{
	struct sy__yard_slab *slab = sy__yard_slab(own->slab);
	uint64_t old = sy__load64(&slab->word);

	for (;;) {
		if (sy__unlikely(any ? !sy__yard_word_full(old) : sy__yard_word_has_enough(old))) {
			if (!sy__swap64(&slab->word, &old, sy__yard_word_take(old)))
				continue;
			own->freelist = sy__yard_word_first(old, sy__page_address(cache->cache.heap, own->slab));
			return true;
		}
		if (own->uncarved) {
			sy__yard_carve(cache, own);
			return true;
		}
		if (slab->held.freelist || !sy__yard_word_full(old)) {
			set_aside(cache, own);
			return false;
		}
		if (leave(cache, own, slab, &old))
			return false;
	}
}

/* The active slab was empty, of a slot that keeps spares. If all its objects are held: as if new. */
static SY__OUT_OF_LINE void begin_anew(const struct sy__yard_cache *cache, struct sy__yard_slot *own)
{
	struct sy__yard_slab *slab = sy__yard_slab(own->slab);

	if (cache->cache.constructor || slab->held_objects != sy__yard_objects(own->slab))
		return;
	slab->held.freelist = NULL;
	slab->held_objects = 0;
	carve_all(cache, own);
}

static bool has_enough(struct sy_page *page)
{
	const struct sy__yard_slab *slab = sy__yard_slab(page);
	uint64_t word = sy__load64(&slab->word);

	return sy__yard_is_enough(word, slab->held_objects) || sy__yard_word_has_enough(word);
}

/* As sy__yard_next_owned, but for slabs that have not enough: they go to the end of the list. */
static struct sy_page *next_worth(const struct sy__yard_cache *cache, struct sy__yard_slot *own)
{
	uint32_t looks = own->partial_slabs;

	for (; looks && !has_enough(own->partial); looks--) {
		struct sy_page *page = own->partial;

		take_out(cache, own, page);
		sy__yard_append(cache, own, page);
	}
	return looks ? sy__yard_next_owned(cache, own) : sy__yard_next_empty(cache, own);
}

/* Makes the slot's next slab its active one, of which nothing is on its freelist yet, or of a spare one something. */
static inline bool activate_next(struct sy__yard_cache *cache, struct sy__yard_slot *own, bool any)
{
	uint32_t empties = own->empty_slabs;
	struct sy_page *page = any ? sy__yard_next_owned(cache, own) : next_worth(cache, own);

	if (sy__unlikely(!page))
		return false;
	own->slab = page;
	own->node = (int16_t)sy__page_node(page);
	if (sy__unlikely(own->empty_slabs < empties && own->spare))
		begin_anew(cache, own);
	return true;
}

/* The first object of what the active slab has. NULL: the slot has none any more. */
static inline void *from_active(struct sy__yard_cache *cache, struct sy__yard_slot *own, bool any)
{
	void *object;

	if (sy__unlikely(own->freelist))
		return sy__yard_pop(cache, own);
	object = sy__yard_pop_held(own, cache->offset, any);

	if (sy__likely(object))
		return object;
	return more(cache, own, any) ? sy__yard_pop(cache, own) : NULL;
}

/* An object of what the slot owns, which has no strays that serve, and nothing on its freelist; or NULL, as of the dummy. In its
 * local section, or a call. */
void *sy__yard_refill(struct sy__yard_cache *cache, struct sy__yard_slot *own)
{
	bool any = sy__yard_takes_any(own);
	void *object = NULL;

	while (!object && (own->slab || activate_next(cache, own, any)))
		object = from_active(cache, own, any);
	return object;
}

/* Whether the slot's strays serve. Without an active slab they do but for one time in SY__YARD_STRAYS_TO_SLAB: a thread that
 * allocates what it has just freed of another's would else never come by a slab of its own. */
static bool serving(const struct sy__yard_cache *cache, struct sy__yard_slot *own)
{
	return sy__yard_serves_strays(cache) && (own->slab || !own->strays || sy__yard_one_more(&own->came) % SY__YARD_STRAYS_TO_SLAB);
}

/* An object of what the slot owns, or keeps, on that node, with or without a freelist; of slabs that have not enough, too, if any
 * will do. Slabs of other nodes on the way are given up; strays there are only in heaps of one node. */
void *sy__yard_alloc_owned(struct sy__yard_cache *cache, unsigned slot, int node, bool any)
{
	struct sy__yard_slot *own = sy__yard_slot(cache, slot);
	void *object;

	if (own->freelist)
		object = own->astray ? sy__yard_pop(cache, own) : NULL;
	else
		object = sy__yard_pop_stray(serving(cache, own), own);
	any = any || sy__yard_takes_any(own);
	while (!object && (own->slab || activate_next(cache, own, any))) {
		if (node != SY_ANY_NODE && node != own->node)
			sy__yard_deactivate(cache, slot, own);
		else
			object = from_active(cache, own, any);
	}
	return object;
}

/* ---- Freeing --------------------------------------------------------------------------------------------------------- */

static bool may_adopt(const struct sy__yard_cache *cache, const struct sy__yard_slot *own, const struct sy__yard_slab *slab)
{
	return cache->slot_limit && (own->foreign_slabs < cache->foreign_limit || !sy__yard_is_foreign(own, slab));
}

static void adopt(struct sy__yard_cache *cache, struct sy__yard_slot *own, struct sy_page *page, void *first, void *last, uint32_t count)
{
	*sy__yard_next(cache, last) = NULL;
	sy__yard_hold_frozen(cache, own, page, first, count);
	if (sy__unlikely(sy__yard_in_use_now(sy__yard_slab(page)) == count))
		sy__yard_emptied(cache, own, page);
}

/* Gives objects of a slab that is not the slot's back, `count` that are linked from `first` to `last`: pushes them onto the
 * slab's list, or makes the slab the slot's. False: what is to be done needs the node. In the slot's local section, or a call;
 * not of the dummy. */
bool sy__yard_free_foreign(struct sy__yard_cache *cache, struct sy__yard_slot *own, struct sy_page *page, void *first, void *last,
                           uint32_t count)
{
	struct sy__yard_slab *slab = sy__yard_slab(page);
	uint64_t old = sy__load64(&slab->word);

	for (;;) {
		if (sy__yard_word_stays(old, count)) {
			*sy__yard_next(cache, last) = sy__yard_word_first(old, last);
			if (sy__likely(sy__swap64(&slab->word, &old, sy__yard_word_push(old, first, count))))
				return true;
		} else if (!sy__yard_word_full(old) || !may_adopt(cache, own, slab)) {
			return false;
		} else if (sy__likely(sy__swap64(&slab->word, &old, old | SY__YARD_FROZEN))) {
			adopt(cache, own, page, first, last, count);
			return true;
		}
	}
}

/* The same of any slab. */
static bool free_here(struct sy__yard_cache *cache, struct sy__yard_slot *own, struct sy_page *page, void *object)
{
	const struct sy__yard_slab *slab = sy__yard_slab(page);

	if (sy__yard_owner(slab) != sy__yard_mark(cache, own))
		return sy__yard_free_foreign(cache, own, page, object, object, 1);
	if (sy__yard_push_owned(page, object, cache->offset))
		sy__yard_emptied(cache, own, page);
	return true;
}

/* The same in a slow call, whatever that needs. */
void sy__yard_free_owned(struct sy__yard_cache *cache, unsigned slot, struct sy_page *page, void *object)
{
	struct sy__yard_slot *own = sy__yard_slot(cache, slot);

	if (!free_here(cache, own, page, object))
		sy__yard_free_moving(cache, slot, page, object, object, 1);
	if (own->empty_slabs > sy__yard_empties(cache, own))
		sy__yard_give_empties(cache, slot, sy__yard_empties(cache, own));
}
