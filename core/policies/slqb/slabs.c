/*
 * SLQB: slabs, from birth to death, and how objects move between lists.
 *
 * A free object is on one of these, linked through its free pointer: the freelist of its slab, the freelist of a list (a
 * slot's, or a node's), a slot's rlist, or the remote_free of the list that owns its slab. Its slab counts it as out in all
 * cases but the first. A freed object takes this way home:
 *
 *   freelist --flush--> its slab                                       the slot owns the slab
 *   freelist --flush--> rlist --sent--> owner's remote_free --claimed--> owner's freelist --flush--> its slab
 *
 * A slab is born empty and partial with all objects on its freelist in order of address, on the list that will own
 * it. It leaves the partial list when its last object is taken and comes back, at the head, when the first returns.
 * It ends when all have returned: no list keeps empty slabs. Slabs that end are collected while a lock or local section
 * lasts, and given back afterwards; those of RCU-typesafe caches wait for a grace period.
 *
 * Emptying everything takes two rounds over the slots. After the first round all objects are in their slabs or with their
 * owners; the second round puts the latter into their slabs too.
 */
#include "../../bug.h"
#include "../../deferred.h"
#include "../../this_slot.h"
#include "../../backend/metadata.h"
#include "slqb.h"

#define SCAVENGE_SENT 16u /* batches on a remote_free that its owner does not take over, until it is scavenged */

/* ---- Between slabs and lists ---------------------------------------------------------------------------------- */

void sy__slqb_lose(struct sy__slqb_cache *cache, struct sy__slqb_list *list, const void *object)
{
	list->freelist = NULL;
	list->count = 0;
	sy__bug(cache->cache.heap, SY_BUG_WRITE_AFTER_FREE, object);
}

/* Whatever is free in a slab of the list's partial ones is so no more. */
static void lose_rest(const struct sy__slqb_cache *cache, struct sy__slqb_list *list, struct sy__slqb_slab *slab)
{
	slab->freelist = NULL;
	slab->out = cache->objects;
	sy__list_remove(&slab->link);
	list->partial_slabs--;
}

/* A slab's list of `count` free objects. NULL: the program has damaged it, and nothing of the slab is free any more. */
static void *sound(const struct sy__slqb_cache *cache, struct sy__slqb_slab *slab, uint32_t count)
{
	const char *start = (const char *)sy__page_address(cache->cache.heap, sy__slqb_page(slab)) + slab->start;
	size_t bytes = (size_t)cache->objects * cache->cache.size;
	void *at = slab->freelist, *last = NULL;

	for (; count && sy__starts_in_row(cache->divider, (size_t)((char *)at - start), bytes); count--) {
		last = at;
		at = *sy__slqb_next(cache, at);
	}
	if (sy__likely(!count && !at))
		return slab->freelist;
	sy__bug(cache->cache.heap, count ? SY_BUG_WRITE_AFTER_FREE : SY_BUG_DOUBLE_FREE, count ? last : at);
	return NULL;
}

/* Takes an object of the list's first partial slab; NULL: there is none. */
void *sy__slqb_take(struct sy__slqb_cache *cache, struct sy__slqb_list *list)
{
	struct sy__slqb_slab *slab;
	void *object;

	if (sy__list_empty(&list->partial))
		return NULL;
	slab = sy__slqb_linked(list->partial.next);
	object = slab->freelist;
	if (sy__unlikely(!object || !sy__slqb_has(cache, sy__slqb_page(slab), object))) {
		sy__bug(cache->cache.heap, SY_BUG_WRITE_AFTER_FREE, object);
		lose_rest(cache, list, slab);
		return NULL;
	}
	slab->freelist = *sy__slqb_next(cache, object);
	if (++slab->out == cache->objects) {
		sy__list_remove(&slab->link);
		list->partial_slabs--;
	}
	return object;
}

/* The same in a heap of threads, where an object that is not on the freelist costs a slow call: the rest of that slab goes to the
 * empty freelist, unless that would be too long. */
void *sy__slqb_take_slab(struct sy__slqb_cache *cache, struct sy__slqb_list *list)
{
	void *object = sy__slqb_take(cache, list);
	struct sy__slqb_slab *slab;
	uint32_t rest;

	list->hiwater = cache->hiwater;
	if (!object)
		return NULL;
	slab = sy__slqb_slab(sy__head_of(cache->cache.heap, object));
	rest = (uint32_t)cache->objects - slab->out;
	if (!rest || rest > list->hiwater)
		return object;
	list->freelist = sound(cache, slab, rest);
	list->count = list->freelist ? rest : 0;
	lose_rest(cache, list, slab);
	return object;
}

/* Gives the list a new slab. */
void sy__slqb_adopt(struct sy__slqb_list *list, struct sy__slqb_slab *slab)
{
	slab->list = list;
	sy__list_add_head(&list->partial, &slab->link);
	list->partial_slabs++;
	sy__contraction_ends(&list->contraction, ++list->slabs);
}

/* Gives an object back to a slab of the list. */
static void put(struct sy__slqb_cache *cache, struct sy__slqb_list *list, struct sy__slqb_slab *slab, void *object,
                struct sy_list *ended)
{
	if (sy__unlikely(!slab->out || slab->freelist == object)) {
		sy__bug(cache->cache.heap, SY_BUG_DOUBLE_FREE, object);
		return;
	}
	*sy__slqb_next(cache, object) = slab->freelist;
	slab->freelist = object;
	if (slab->out == cache->objects) {
		sy__list_add_head(&list->partial, &slab->link);
		list->partial_slabs++;
	}
	if (--slab->out)
		return;
	sy__list_remove(&slab->link);
	sy__list_add_tail(ended, &slab->link);
	list->partial_slabs--;
	list->slabs--;
}

static void append(const struct sy__slqb_cache *cache, struct sy__slqb_chain *to, const struct sy__slqb_chain *from)
{
	if (to->count)
		*sy__slqb_next(cache, to->last) = from->first;
	else
		to->first = from->first;
	to->last = from->last;
	to->count += from->count;
}

static struct sy__slqb_list *owner_of(const struct sy__slqb_cache *cache, const void *object)
{
	return sy__slqb_slab(sy__head_of(cache->cache.heap, object))->list;
}

/* Sends objects to the owner of their slabs, and tells the owner when enough have come. */
static void send_to(struct sy__slqb_cache *cache, struct sy__slqb_list *to, const struct sy__slqb_chain *objects)
{
	uint32_t before;

	sy__lock(&to->remote_lock);
	before = to->remote_free.count;
	append(cache, &to->remote_free, objects);
	if (before < cache->remote_free_check && to->remote_free.count >= cache->remote_free_check)
		__atomic_store_n(&to->remote_free_check, 1u, __ATOMIC_RELAXED);
	if (to->remote_free.count >= SCAVENGE_SENT * cache->freebatch && before < SCAVENGE_SENT * cache->freebatch)
		sy__scavenge_soon(cache->cache.heap);
	sy__unlock(&to->remote_lock);
}

/* Sends objects of several owners: those of one that follow each other together. */
static void send_mixed(struct sy__slqb_cache *cache, const struct sy__slqb_chain *objects)
{
	void *next = objects->first;

	while (next) {
		struct sy__slqb_list *to = owner_of(cache, next);
		struct sy__slqb_chain run = { next, next, 1 };

		while ((next = *sy__slqb_next(cache, run.last)) && owner_of(cache, next) == to) {
			run.last = next;
			run.count++;
		}
		*sy__slqb_next(cache, run.last) = NULL;
		send_to(cache, to, &run);
	}
}

/* Sends the slot's rlist. */
static void send(struct sy__slqb_cache *cache, struct sy__slqb_slot *own)
{
	const struct sy__slqb_chain objects = own->rlist;

	if (!objects.count)
		return;
	own->rlist = (struct sy__slqb_chain){ 0 };
	if (cache->rlist_mixed)
		send_mixed(cache, &objects);
	else
		send_to(cache, own->rlist_to, &objects);
}

/* Puts an object of a slab that another list owns onto the slot's rlist. In the slot's local section. */
void sy__slqb_send_away(struct sy__slqb_cache *cache, struct sy__slqb_slot *own, struct sy__slqb_list *to, void *object)
{
	const struct sy__slqb_chain one = { object, object, 1 };

	if (!cache->rlist_mixed && own->rlist_to != to) {
		send(cache, own);
		own->rlist_to = to;
	}
	*sy__slqb_next(cache, object) = NULL;
	append(cache, &own->rlist, &one);
	if (own->rlist.count >= cache->freebatch)
		send(cache, own);
}

/* Takes over what others have sent, in front of the freelist. */
void sy__slqb_claim(struct sy__slqb_cache *cache, struct sy__slqb_list *list)
{
	struct sy__slqb_chain sent;

	sy__lock(&list->remote_lock);
	sent = list->remote_free;
	list->remote_free = (struct sy__slqb_chain){ 0 };
	__atomic_store_n(&list->remote_free_check, 0u, __ATOMIC_RELAXED);
	sy__unlock(&list->remote_lock);
	if (!sent.count)
		return;
	*sy__slqb_next(cache, sent.last) = list->freelist;
	list->freelist = sent.first;
	list->count += sent.count;
}

/* Takes up to `count` objects off the freelist: to their slabs, or onto the rlist of the slot that does the work. */
void sy__slqb_flush(struct sy__slqb_cache *cache, struct sy__slqb_slot *own, struct sy__slqb_list *list, uint32_t count,
                    struct sy_list *ended)
{
	for (; count && list->freelist; count--) {
		void *object = list->freelist;
		struct sy__slqb_slab *slab;

		if (sy__unlikely(!sy__holds(cache->cache.heap, object) || !sy__slqb_has(cache, sy__head_of(cache->cache.heap, object), object))) {
			sy__slqb_lose(cache, list, object);
			return;
		}
		slab = sy__slqb_slab(sy__head_of(cache->cache.heap, object));
		list->freelist = *sy__slqb_next(cache, object);
		list->count--;
		if (slab->list == list)
			put(cache, list, slab, object, ended);
		else
			sy__slqb_send_away(cache, own, slab->list, object);
	}
}

/* Makes room on a slot's freelist in a heap of threads. Objects that others sent go to their slabs too, as a slot that only frees may
 * not take them over for long. During a contraction everything goes. */
static void flush_threads(struct sy__slqb_cache *cache, struct sy__slqb_slot *own, struct sy_list *ended)
{
	struct sy__slqb_list *list = &own->list;
	uint32_t before = list->count;
	uint64_t slabs = list->slabs;

	if (__atomic_load_n(&list->remote_free_check, __ATOMIC_RELAXED))
		sy__slqb_claim(cache, list);
	if (!sy__contracts(&list->contraction, slabs, cache->order)) {
		sy__slqb_flush(cache, own, list, list->count - before + cache->flushbatch, ended);
		list->hiwater = cache->hiwater;
		return;
	}
	sy__slqb_flush(cache, own, list, UINT32_MAX, ended);
	list->hiwater = sy__contraction_limit(cache->hiwater);
	sy__contraction_flushed(&list->contraction, slabs - list->slabs);
	if (list->contraction.halved)
		sy__scavenge_soon(cache->cache.heap);
}

/* Makes room on a slot's freelist. */
void sy__slqb_flush_full(struct sy__slqb_cache *cache, struct sy__slqb_slot *own, struct sy_list *ended)
{
	if (cache->cache.heap->threads)
		flush_threads(cache, own, ended);
	else
		sy__slqb_flush(cache, own, &own->list, cache->flushbatch, ended);
}

/* ---- Birth ---------------------------------------------------------------------------------------------------- */

static uint32_t next_colour(struct sy__slqb_cache *cache, unsigned slot)
{
	struct sy__slqb_slot *own = sy__slqb_slot(cache, slot);
	uint32_t colour;

	sy__local_begin(slot);
	colour = own->colour_next;
	own->colour_next += cache->colour_step;
	if (own->colour_next >= cache->colour_range)
		own->colour_next = 0;
	sy__local_end(slot);
	return colour;
}

/* Constructs all objects and links them in order of address; returns the first. */
static void *link_objects(struct sy__slqb_cache *cache, char *first)
{
	const struct sy_cache *common = &cache->cache;
	char *object = first;

	for (uint32_t i = 1; i <= cache->objects; i++, object += common->size) {
		if (common->constructor)
			sy__construct(common->constructor, object, common->object_size);
		*sy__slqb_next(cache, object) = i < cache->objects ? object + common->size : NULL;
	}
	return first;
}

/* Makes a slab with every object on its freelist, without an owner yet; NULL: no memory. Called outside local sections, as it may run
 * every heap's shrink. */
struct sy__slqb_slab *sy__slqb_new_slab(struct sy__slqb_cache *cache, unsigned slot, unsigned flags, int node)
{
	struct sy_heap *heap = cache->cache.heap;
	unsigned page_flags = (flags & SY__INHERITED_FLAGS) | cache->page_flags;
	struct sy_page *page = sy__pages_take(heap, slot, cache->order, page_flags, node, SY_USE_SLAB);
	struct sy__slqb_slab *slab;

	if (!page)
		return NULL;
	slab = sy__slqb_slab(page);
	sy__list_init(&slab->link);
	slab->start = next_colour(cache, slot);
	slab->out = 0;
	slab->waiting = 0;
	slab->freelist = link_objects(cache, (char *)sy__page_address(heap, page) + slab->start);
	return slab;
}

/* ---- Death ---------------------------------------------------------------------------------------------------- */

static uint64_t give_back(struct sy__slqb_cache *cache, unsigned slot, struct sy__slqb_slab *slab)
{
	const struct sy_cache *common = &cache->cache;
	struct sy_page *page = sy__slqb_page(slab);
	uint64_t pages = (uint64_t)1 << sy__page_order(page);
	char *object = (char *)sy__page_address(common->heap, page) + slab->start;

	for (uint32_t i = 0; common->destructor && i < cache->objects; i++, object += common->size)
		common->destructor(object, common->object_size);
	sy__pages_give(common->heap, slot, page);
	return pages;
}

static uint64_t end_one(struct sy__slqb_cache *cache, unsigned slot, struct sy__slqb_slab *slab)
{
	if (!(cache->cache.flags & SY_CACHE_TYPESAFE_BY_RCU))
		return give_back(cache, slot, slab);
	slab->freelist = NULL;
	slab->waiting = 1;
	sy__defer(cache->cache.heap, &slab->deferred);
	return 0;
}

/* Ends all slabs of a list that have no owner any more. */
uint64_t sy__slqb_end(struct sy__slqb_cache *cache, unsigned slot, struct sy_list *ended)
{
	uint64_t pages = 0;

	while (!sy__list_empty(ended)) {
		struct sy_list *link = ended->next;

		sy__list_remove(link);
		pages += end_one(cache, slot, sy__slqb_linked(link));
	}
	return pages;
}

void sy__slqb_grace_passed(struct sy_heap *heap, struct sy_deferred *entry)
{
	struct sy__slqb_slab *slab = sy__entry(entry, struct sy__slqb_slab, deferred);

	(void)heap;
	give_back(slab->list->cache, 0, slab);
}

/* ---- Emptying lists ------------------------------------------------------------------------------------------- */

/* Takes over the objects that others sent, flushes up to `count`, and sends the rlist. */
static uint64_t trim_slot(struct sy__slqb_cache *cache, unsigned slot, uint32_t count)
{
	struct sy__slqb_slot *own = sy__slqb_look(cache, slot);
	struct sy_list ended;

	if (!sy__slqb_started(own))
		return 0;
	sy__list_init(&ended);
	sy__local_begin(slot);
	sy__slqb_claim(cache, &own->list);
	sy__slqb_flush(cache, own, &own->list, count, &ended);
	send(cache, own);
	sy__local_end(slot);
	return sy__slqb_end(cache, slot, &ended);
}

/* The same for a node. All objects on its freelist are of its own slabs, hence the slot's rlist stays as it is. */
static uint64_t trim_node(struct sy__slqb_cache *cache, unsigned slot, unsigned index, uint32_t count)
{
	struct sy__slqb_node *node = &cache->nodes[index];
	struct sy_list ended;

	sy__list_init(&ended);
	sy__lock(&node->lock);
	sy__slqb_claim(cache, &node->list);
	sy__slqb_flush(cache, sy__slqb_look(cache, slot), &node->list, count, &ended);
	sy__unlock(&node->lock);
	return sy__slqb_end(cache, slot, &ended);
}

uint64_t sy__slqb_shrink(struct sy_cache *common)
{
	struct sy__slqb_cache *cache = sy__slqb_cache(common);
	unsigned slots = sy__slots_used(common->heap);
	uint64_t pages = 0;

	for (unsigned i = 0; i < 2 * slots; i++)
		if (sy__slot_reachable(common, i % slots))
			pages += trim_slot(cache, i % slots, UINT32_MAX);
	for (unsigned node = 0; node < common->heap->nodes; node++)
		pages += trim_node(cache, 0, node, UINT32_MAX);
	return pages;
}

/* Whether a slot has lost half of its slabs, or has been sent more objects than it seems to need. */
static bool needs_scavenging(const struct sy__slqb_cache *cache, struct sy__slqb_list *list)
{
	bool needed;

	sy__lock(&list->remote_lock);
	needed = list->contraction.halved || list->remote_free.count >= SCAVENGE_SENT * cache->freebatch;
	sy__unlock(&list->remote_lock);
	list->contraction.halved = false;
	return needed;
}

/* Empties all lists of the cache, as objects of one slot's slabs may be on any slot's freelist. */
uint64_t sy__slqb_scavenge(struct sy_cache *common)
{
	struct sy__slqb_cache *cache = sy__slqb_cache(common);
	unsigned slots = sy__slots_used(common->heap);
	bool any = false;

	for (unsigned slot = 0; slot < slots; slot++)
		if (sy__slot_reachable(common, slot) && sy__slqb_started(sy__slqb_look(cache, slot)))
			any |= needs_scavenging(cache, &sy__slqb_look(cache, slot)->list);
	return any ? sy__slqb_shrink(common) : 0;
}

void sy__slqb_drain(struct sy_heap *heap, unsigned slot)
{
	sy__lock(&heap->lock);
	for (struct sy_list *at = heap->caches.next; at != &heap->caches; at = at->next)
		trim_slot(sy__slqb_cache(sy__entry(at, struct sy_cache, link)), slot, UINT32_MAX);
	sy__unlock(&heap->lock);
}

static void visit(struct sy_heap *heap, unsigned slot, uint64_t now)
{
	(void)now;
	for (struct sy_list *at = heap->caches.next; at != &heap->caches; at = at->next) {
		struct sy__slqb_cache *cache = sy__slqb_cache(sy__entry(at, struct sy_cache, link));

		trim_node(cache, slot, sy__slot_node(heap, slot), cache->flushbatch);
		trim_slot(cache, slot, cache->flushbatch);
	}
}

void sy__slqb_tick(struct sy_heap *heap)
{
	sy__visits_run(heap, &sy__slqb_heap(heap)->visits, visit);
}

static bool belongs_to(const struct sy_deferred *entry, const void *cache)
{
	return sy__entry(entry, struct sy__slqb_slab, deferred)->list->cache == cache;
}

/* Slabs with objects in use are left to sy_heap_destroy. Slabs that wait for a grace period end now: the destroyer of an RCU-typesafe
 * cache has waited for its readers. */
void sy__slqb_cache_fini(struct sy_cache *common)
{
	struct sy__slqb_cache *cache = sy__slqb_cache(common);

	sy__slqb_shrink(common);
	sy__deferred_finish(common->heap, belongs_to, common);
	sy__metadata_give(common->heap, cache->state, cache->state_bytes);
	if (cache->stride == SY_SLOT_STRIDE)
		sy__slot_areas_give(common->heap, cache->slots, sizeof(*cache->slots));
}
