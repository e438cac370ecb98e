/*
 * What SLUB and yard have in common, see node.h: the life of slabs, their checks and walks.
 *
 * Leaving for the page allocator: destructors run, and the pages are given back; those of an RCU-typesafe cache wait in the
 * deferred queue first. The caller takes the slab out of the node's figures under the node's lock, and discards it after
 * releasing that lock.
 *
 * Checking. No list holds full slabs, so a check starts from the pages: it visits every slab that the page allocator says is the
 * heap's, verifies it by itself, and adds it up in its node's scratch figures (seen). Then it walks what the policy can reach,
 * slots and node lists. A slab that is frozen must be a slot's, and another one with free objects must be on its node's list: each list
 * holds only such slabs, and as many as were seen, so the two are the same sets.
 *
 * A list of objects is sound when every object on it lies in its slab at a multiple of the size, and when it ends within as many
 * steps as the slab has objects. No object is then on one list twice. Nor is one on two lists: two such lists would share their
 * last object.
 *
 * Counting walks lists only: full slabs are what remains of the node's figures. Both take the locks as they go and expect that no
 * other slot works meanwhile; a count that races with work is off by what that work did.
 */
#include "node.h"

#include "../backend/large.h"
#include "../backend/metadata.h"
#include "../backend/slot_areas.h"
#include "../bug.h"
#include "../deferred.h"
#include "../geometry.h"
#include "../this_slot.h"
#include "../walk.h"

#ifdef SY_HARDENED
#include "node_hardened.h"
#endif

/* ---- Caches ----------------------------------------------------------------------------------------------------------- */

void sy__node_lay_out(struct sy__node_cache *cache, uint32_t link, bool behind)
{
	size_t size = sy__align_up(cache->cache.object_size, sizeof(void *));

	cache->offset = behind ? (uint32_t)size : link;
	cache->cache.size = (uint32_t)sy__align_up(size + (behind ? sizeof(void *) : 0), cache->cache.align);
}

bool sy__node_cache_init(struct sy__node_cache *cache, size_t slot_bytes, size_t ring)
{
	struct sy_heap *heap = cache->cache.heap;
	const struct sy_pages_base *base = (const struct sy_pages_base *)(const void *)heap->pages;
	size_t nodes_bytes = sy__align_up(heap->nodes * sizeof(struct sy__node), SY_CACHE_LINE);
	char *state;

	cache->memory = base->memory;
	cache->table = base->table;
	cache->page_flags = sy__page_flags(cache->cache.flags);
	cache->slot_bytes = slot_bytes;
	cache->divider = sy__divider(cache->cache.size);
	cache->stride = heap->threads ? SY_SLOT_STRIDE : slot_bytes;
	cache->state_bytes = nodes_bytes + (heap->threads ? 0 : heap->slots * slot_bytes);
	state = sy__metadata_take(heap, cache->state_bytes);
	if (!state)
		return false;
	cache->slots = heap->threads ? sy__slot_areas_take(heap, slot_bytes) : state + nodes_bytes;
	if (!cache->slots) {
		sy__metadata_give(heap, state, cache->state_bytes);
		return false;
	}
	cache->nodes = (struct sy__node *)(void *)state;
	for (unsigned i = 0; i < heap->nodes; i++) {
		cache->nodes[i] = (struct sy__node){ .lock = SY__LOCK_INIT };
		sy__list_init(&cache->nodes[i].partial);
	}
#ifdef SY_HARDENED
	harden(cache);
	cache->ring = ring;
#else
	(void)ring;
#endif
	return true;
}

static bool belongs_to(const struct sy_deferred *entry, const void *cache)
{
	return sy__entry(entry, struct sy__node_slab, deferred)->cache == cache;
}

/* Slabs that wait for a grace period go now: the client must have waited for readers before it destroys an RCU-typesafe cache. */
void sy__node_cache_fini(struct sy__node_cache *cache)
{
	struct sy_heap *heap = cache->cache.heap;

	sy__deferred_finish(heap, belongs_to, cache);
#ifdef SY_HARDENED
	give_retired(cache);
#endif
	sy__metadata_give(heap, cache->nodes, cache->state_bytes);
	if (cache->stride == SY_SLOT_STRIDE)
		sy__slot_areas_give(heap, cache->slots, cache->slot_bytes);
}

/* ---- Birth ------------------------------------------------------------------------------------------------------------ */

struct sy_page *sy__node_take_pages(struct sy__node_cache *cache, unsigned slot, unsigned order, unsigned flags, int node)
{
	struct sy_heap *heap = cache->cache.heap;
	struct sy_page *page = NULL;

#ifdef SY_HARDENED
	page = take_retired(cache, node == SY_ANY_NODE ? sy__slot_node(heap, slot) : (unsigned)node);
	if (page)
		return page;
#endif
	flags = (flags & SY__INHERITED_FLAGS) | cache->page_flags;
	if (order > cache->least_order) /* nobody should give up memory for the comfort of a large slab */
		page = sy__pages_take(heap, slot, order, flags | SY_NO_RECLAIM, node, SY_USE_SLAB);
	return page ? page : sy__pages_take(heap, slot, cache->least_order, flags, node, SY_USE_SLAB);
}

static void count_in(struct sy__node *node, const struct sy_page *page)
{
	node->slabs++;
	node->objects += sy__node_objects(page);
	node->pages += (uint64_t)1 << sy__page_order(page);
}

static void count_out(struct sy__node *node, const struct sy_page *page)
{
	node->slabs--;
	node->objects -= sy__node_objects(page);
	node->pages -= (uint64_t)1 << sy__page_order(page);
}

void sy__node_make_slab(struct sy__node_cache *cache, struct sy_page *page)
{
	const struct sy_cache *common = &cache->cache;
	uint32_t objects = sy__order_objects(sy__page_order(page), common->size);
	char *memory = sy__page_address(common->heap, page);
	struct sy__node_slab *slab = sy__node_slab(page);
	struct sy__node *node = sy__node_of(cache, page);

	for (uint32_t i = 0; common->constructor && i < objects; i++)
		sy__construct(common->constructor, memory + (size_t)i * common->size, common->object_size);
	slab->cache = &cache->cache;
	slab->word = sy__word_taken(objects);
	slab->emptied_pages = 0;
	sy__list_init(&slab->link);
	sy__lock(&node->lock);
	count_in(node, page);
	sy__unlock(&node->lock);
}

/* ---- On a node -------------------------------------------------------------------------------------------------------- */

bool sy__node_place(struct sy__node_cache *cache, struct sy__node *node, struct sy_page *page, bool listed, uint64_t word, bool at_head)
{
	struct sy_list *link = &sy__node_slab(page)->link;
	bool ends = !sy__word_in_use(word) && !sy__node_keeps(cache, node);

#ifdef SY_HARDENED
	at_head = place_at_head(cache, node, word, at_head);
#endif
	if (ends && listed) {
		sy__list_remove(link);
		sy__node_count_partial(node, -1);
	}
	if (ends) {
		count_out(node, page);
	} else if (!listed && !sy__word_full(word)) {
		if (at_head)
			sy__list_add_head(&node->partial, link);
#ifdef SY_HARDENED
		else if (sy__word_in_use(word))
			sy__list_add_head(node->partial.next, link);
#endif
		else
			sy__list_add_tail(&node->partial, link);
		sy__node_count_partial(node, 1);
	}
	return ends;
}

/* Gives back the slabs without an object in use that are on the list. */
static uint64_t give_unused(struct sy__node_cache *cache, unsigned slot, struct sy__node *node)
{
	struct sy_list empties, *next;
	uint64_t pages = 0;

	sy__list_init(&empties);
	sy__lock(&node->lock);
	for (struct sy_list *at = node->partial.next; at != &node->partial; at = next) {
		struct sy_page *page = sy__node_linked(at);

		next = at->next;
		if (sy__node_in_use(page))
			continue;
		sy__list_remove(at);
		sy__list_add_head(&empties, at);
		sy__node_count_partial(node, -1);
		count_out(node, page);
	}
	sy__unlock(&node->lock);
	while (!sy__list_empty(&empties)) {
		struct sy_list *link = empties.next;

		sy__list_remove(link);
		pages += sy__node_discard(cache, slot, sy__node_linked(link));
	}
	return pages;
}

/* ---- Death ------------------------------------------------------------------------------------------------------------ */

static uint64_t give_back(struct sy_cache *cache, unsigned slot, struct sy_page *page)
{
	char *object = sy__page_address(cache->heap, page);
	uint64_t pages = (uint64_t)1 << sy__page_order(page);

	for (uint32_t i = cache->destructor ? sy__order_objects(sy__page_order(page), cache->size) : 0; i; i--, object += cache->size)
		cache->destructor(object, cache->object_size);
#ifdef SY_HARDENED
	if (sy__node_cache(cache)->harden & SY__HARDEN_APART) {
		retire(sy__node_cache(cache), page);
		return 0;
	}
#endif
	sy__pages_give(cache->heap, slot, page);
	return pages;
}

uint64_t sy__node_discard(struct sy__node_cache *cache, unsigned slot, struct sy_page *page)
{
	struct sy__node_slab *slab = sy__node_slab(page);

#ifdef SY_HARDENED
	if (sy__unlikely(!unlink_all(cache, page)))
		return 0;
#endif
	if (!(cache->cache.flags & SY_CACHE_TYPESAFE_BY_RCU))
		return give_back(&cache->cache, slot, page);
	slab->word = 0;
	sy__defer(cache->cache.heap, &slab->deferred);
	return 0;
}

void sy__node_grace_passed(struct sy_heap *heap, struct sy_deferred *entry)
{
	struct sy__node_slab *slab = sy__entry(entry, struct sy__node_slab, deferred);

	(void)heap;
	give_back(slab->cache, 0, sy__entry(slab, struct sy_page, state));
}

size_t sy__node_usable_size(struct sy_heap *heap, const void *object)
{
	struct sy_page *page = sy__head_of(heap, object);

	return sy__page_is_large(page) ? sy__large_usable(page) : sy__node_slab(page)->cache->object_size;
}

/* ---- From slots --------------------------------------------------------------------------------------------------------- */

void sy__node_drain_all(struct sy_heap *heap, unsigned slot, sy__node_drain drain)
{
	sy__lock(&heap->lock);
	for (struct sy_list *at = heap->caches.next; at != &heap->caches; at = at->next)
		drain(sy__node_cache(sy__entry(at, struct sy_cache, link)), slot);
	sy__unlock(&heap->lock);
}

uint64_t sy__node_shrink(struct sy__node_cache *cache, sy__node_drain drain)
{
	const struct sy_heap *heap = cache->cache.heap;
	uint64_t pages = 0;

	for (unsigned slot = 0; slot < sy__slots_used(heap); slot++)
		if (sy__slot_reachable(&cache->cache, slot))
			pages += drain(cache, slot);
	for (unsigned node = 0; node < heap->nodes; node++)
		pages += give_unused(cache, 0, &cache->nodes[node]);
	return pages;
}

/* ---- Lists of objects ------------------------------------------------------------------------------------------------- */

bool sy__node_in_slab(const struct sy__node_cache *cache, struct sy_page *page, const void *object)
{
	const char *start = sy__page_address(cache->cache.heap, page);
	size_t offset = (size_t)((const char *)object - start);

	return (const char *)object >= start && offset % cache->cache.size == 0 && offset / cache->cache.size < sy__node_objects(page);
}

struct sy_page *sy__node_slab_of(const struct sy__node_cache *cache, const void *object)
{
	struct sy_page *page = sy__pages_find(cache->cache.heap, object);

	if (!page)
		return NULL;
	page = sy__page_head(page);
	return sy__page_is_slab(page) && sy__node_slab(page)->cache == &cache->cache && sy__node_in_slab(cache, page, object) ? page : NULL;
}

/* How the list ends: NULL where it is sound. */
static void *walk(const struct sy__node_cache *cache, struct sy_page *page, void *list, uint32_t *count, void **last)
{
	void *at = list;

	*last = NULL;
	for (*count = 0; sy__node_in_slab(cache, page, at) && *count < sy__node_objects(page); at = sy__node_peek(cache, at), ++*count)
		*last = at;
	return at == SY__LIST_END && !SY__IS_HARDENED ? NULL : at;
}

uint32_t sy__node_length(const struct sy__node_cache *cache, struct sy_page *page, void *list)
{
	uint32_t count;
	void *last;

	walk(cache, page, list, &count, &last);
	return count;
}

uint32_t sy__node_sound_length(const struct sy__node_cache *cache, struct sy_page *page, void *list, void **last)
{
	uint32_t count;

	return walk(cache, page, list, &count, last) ? UINT32_MAX : count;
}

/* ---- Lists that the program has damaged ------------------------------------------------------------------------------- */

#define LOOKS 8u /* at the first objects of a list */

static void *next_of(const struct sy__node_cache *cache, struct sy_page *page, void *object)
{
	void *next = sy__node_peek(cache, object);

	return next && sy__node_is_object(cache, page, next) ? next : NULL;
}

bool sy__node_is_among(const struct sy__node_cache *cache, struct sy_page *page, void *list, uint32_t count, const void *object)
{
	for (; list && count; list = next_of(cache, page, list), count--)
		if (list == object)
			return true;
	return false;
}

/* In a list with more objects than were freed: the first object that is there twice, or the first beyond the count. */
static SY__COLD void tell_longer(const struct sy__node_cache *cache, struct sy_page *page, void *list, uint32_t count, const void *behind)
{
	for (void *at = list; at; at = next_of(cache, page, at)) {
		if (sy__node_is_among(cache, page, next_of(cache, page, at), count, at)) {
			behind = at;
			break;
		}
		if (at == behind)
			break;
	}
	sy__bug(cache->cache.heap, SY_BUG_DOUBLE_FREE, behind);
}

/* Reports a list that leads to the wrong address `at` behind its last object (NULL: `at` comes first). If the last object is also on the
 * list in the slab's word, it was freed twice; else its link was overwritten. Or `at` itself was freed wrongly. */
static SY__COLD void tell_astray(const struct sy__node_cache *cache, struct sy_page *page, void *at, void *last)
{
	struct sy_heap *heap = cache->cache.heap;

	if (!last || (at && sy__node_head(cache, last) == page && sy__holds(heap, at) && sy__node_head(cache, at) == page))
		sy__bug_free(heap, at);
	else if (sy__node_is_among(cache, page, sy__node_freelist(cache, page), sy__node_objects(page), last))
		sy__bug(heap, SY_BUG_DOUBLE_FREE, last);
	else
		sy__bug(heap, SY_BUG_WRITE_AFTER_FREE, last);
}

bool sy__node_list_is_sound(const struct sy__node_cache *cache, struct sy_page *page, void *list, uint32_t count, const void *end,
                            void **last)
{
	const char *start = sy__page_address(cache->cache.heap, page);
	size_t bytes = SY_PAGE_SIZE << sy__page_order(page);
	uint32_t looks = count < LOOKS ? count : LOOKS, i = 0;
	void *at = list, *before = NULL, *mark = NULL;

	for (; i < looks && at != mark && sy__node_is_start(cache, (size_t)((char *)at - start), bytes); i++) {
		if (!(i & (i + 1)))
			mark = at; /* a list that goes round comes back to one of these (Brent 1980) */
		before = at;
		at = sy__node_peek(cache, at);
	}
	*last = count > looks ? NULL : before;
	if (sy__likely(i == looks && (count > looks ? sy__node_is_start(cache, (size_t)((char *)at - start), bytes) : !at || at == end)))
		return true;
	if (at && (at == mark || (i == looks && count == looks)))
		tell_longer(cache, page, list, count, at);
	else
		tell_astray(cache, page, at, before);
	return false;
}

/* ---- Counting --------------------------------------------------------------------------------------------------------- */

void sy__node_count_slab(struct sy_cache_counts *counts, uint32_t objects, uint32_t free)
{
	if (free == objects)
		counts->empty_slabs++;
	else if (free)
		counts->partial_slabs++;
	counts->objects_in_use -= free;
}

static void count_node(struct sy_cache_counts *counts, struct sy__node *node)
{
	sy__lock(&node->lock);
	counts->slabs += node->slabs;
	counts->pages += node->pages;
	counts->objects += node->objects;
	counts->objects_in_use += node->objects;
#ifdef SY_HARDENED
	counts->slabs += node->retired_slabs;
	counts->empty_slabs += node->retired_slabs;
	counts->pages += node->retired_pages;
	counts->objects += node->retired_objects;
#endif
	for (struct sy_list *at = node->partial.next; at != &node->partial; at = at->next) {
		uint64_t word = sy__node_word(sy__node_linked(at));

		sy__node_count_slab(counts, sy__word_objects(word), sy__word_objects(word) - sy__word_in_use(word));
	}
	sy__unlock(&node->lock);
}

void sy__node_counts(struct sy__node_cache *cache, struct sy_cache_counts *counts,
                     void (*count_slot)(struct sy_cache_counts *, const struct sy__node_cache *, unsigned slot))
{
	counts->slab_objects = sy__order_objects(cache->order, cache->cache.size);
	counts->slab_pages = 1u << cache->order;
	for (unsigned node = 0; node < cache->cache.heap->nodes; node++)
		count_node(counts, &cache->nodes[node]);
	for (unsigned slot = 0; slot < sy__slots_used(cache->cache.heap); slot++) {
		if (!sy__slot_reachable(&cache->cache, slot))
			continue;
		sy__local_begin(slot);
		count_slot(counts, cache, slot);
#ifdef SY_HARDENED
		count_ring(counts, ring_of(cache, (ptrdiff_t)(slot * cache->stride)));
#endif
		sy__local_end(slot);
	}
	counts->full_slabs = counts->slabs - counts->partial_slabs - counts->empty_slabs;
}

/* ---- Checking --------------------------------------------------------------------------------------------------------- */

struct verdict {
	struct sy_heap *heap;
	const char *(*check_slab)(struct sy__node_cache *, struct sy_page *);
	uint64_t waiting; /* slabs in their grace period */
	const char *wrong;
};

/* Free objects of a slab that are on no list, and not a slot's. */
static uint32_t unlisted(const struct sy__node_cache *cache, struct sy_page *page)
{
	if (SY__IS_HARDENED)
		return sy__word_frozen(sy__node_word(page)) ? 0 : sy__node_unlinked(page);
	return sy__node_emptied_objects(cache, page);
}

static const char *check_slab(struct sy__node_cache *cache, struct sy_page *page, const struct verdict *verdict)
{
	uint32_t free;
	void *last;

	if (sy__page_node(page) >= cache->cache.heap->nodes)
		return "slabs: one is on a node that the heap does not have";
	if (sy__node_objects(page) != sy__order_objects(sy__page_order(page), cache->cache.size))
		return "slabs: the number of objects of one is not what its order holds";
	free = sy__node_sound_length(cache, page, sy__node_freelist(cache, page), &last);
	if (free == UINT32_MAX)
		return "slabs: the list in a slab's word leaves the slab or runs in a circle";
	if (sy__node_in_use(page) + free + unlisted(cache, page) != sy__node_objects(page))
		return "slabs: used and free objects of one do not add up";
	return verdict->check_slab(cache, page);
}

static void add_up(struct sy__node_cache *cache, struct sy_page *page)
{
	struct sy__node_seen *seen = &sy__node_of(cache, page)->seen;
	uint64_t word = sy__node_word(page);

	seen->slabs++;
	seen->objects += sy__word_objects(word);
	seen->pages += (uint64_t)1 << sy__page_order(page);
	seen->frozen += sy__word_frozen(word);
	seen->partial += !sy__word_frozen(word) && !sy__word_full(word);
}

static bool visit(void *context, struct sy_page *page)
{
	struct verdict *verdict = context;
	struct sy_cache *cache = sy__node_slab(page)->cache;

	if (!sy__page_is_slab(page))
		return true;
	if (!cache || cache->heap != verdict->heap) {
		verdict->wrong = "slabs: one belongs to no cache of its heap";
#ifdef SY_HARDENED
	} else if (sy__node_word(page) == SY__WORD_RETIRED) {
		sy__node_of(sy__node_cache(cache), page)->seen.retired++;
#endif
	} else if (!sy__node_objects(page)) {
		verdict->waiting++;
	} else {
		verdict->wrong = check_slab(sy__node_cache(cache), page, verdict);
		if (!verdict->wrong)
			add_up(sy__node_cache(cache), page);
	}
	return !verdict->wrong;
}

static const char *check_node(struct sy__node_cache *cache, unsigned index)
{
	struct sy__node *node = &cache->nodes[index];
	uint64_t partial = 0;

	if (node->seen.slabs != node->slabs || node->seen.objects != node->objects || node->seen.pages != node->pages)
		return "slabs: those of a node, their objects or pages are not what the page allocator knows";
	if (node->seen.frozen)
		return "slabs: a frozen one belongs to no slot";
#ifdef SY_HARDENED
	if (node->seen.retired != node->retired_slabs)
		return "slabs: those retired are not as many as their cache says";
#endif
	for (struct sy_list *at = node->partial.next; at != &node->partial; at = at->next) {
		struct sy_page *page = sy__node_linked(at);
		uint64_t word = sy__node_word(page);

		if (at->next->prev != at || sy__page_node(page) != index || sy__node_slab(page)->cache != &cache->cache ||
		    sy__word_frozen(word) || sy__word_full(word) || ++partial > node->partial_slabs)
			return "slabs: a node's list is broken, or holds one that is full, frozen or not its own";
	}
	return partial == node->partial_slabs && partial == node->seen.partial ? NULL
	                                                                      : "slabs: one with free objects is not on its node's list";
}

static const char *check_layout(const struct sy__node_cache *cache)
{
	const struct sy_cache *common = &cache->cache;

	if (common->size % common->align || common->object_size > common->size || cache->offset + sizeof(void *) > common->size)
		return "slabs: a cache's objects are not laid out within their size and alignment";
	return common->constructor && cache->offset < common->object_size ? "slabs: a free object's link would destroy what is constructed"
	                                                                 : NULL;
}

const char *sy__node_check(struct sy_heap *heap, const char *(*slab)(struct sy__node_cache *, struct sy_page *),
                           const char *(*slots)(struct sy__node_cache *))
{
	struct verdict verdict = { heap, slab, 0, NULL };

	for (struct sy_list *at = heap->caches.next; at != &heap->caches; at = at->next)
		for (unsigned node = 0; node < heap->nodes; node++)
			sy__node_cache(sy__entry(at, struct sy_cache, link))->nodes[node].seen = (struct sy__node_seen){ 0 };
	sy__pages_walk(heap, visit, &verdict);
	if (!verdict.wrong && verdict.waiting != heap->counters.deferred)
		verdict.wrong = "slabs: those in their grace period are not what the deferred queue holds";
	for (struct sy_list *at = heap->caches.next; !verdict.wrong && at != &heap->caches; at = at->next) {
		struct sy__node_cache *cache = sy__node_cache(sy__entry(at, struct sy_cache, link));

		verdict.wrong = check_layout(cache);
#ifdef SY_HARDENED
		if (!verdict.wrong)
			verdict.wrong = check_rings(cache);
#endif
		if (!verdict.wrong)
			verdict.wrong = slots(cache);
		for (unsigned node = 0; node < heap->nodes && !verdict.wrong; node++)
			verdict.wrong = check_node(cache, node);
	}
	return verdict.wrong;
}

/* ---- Walking ---------------------------------------------------------------------------------------------------------- */

void sy__node_walk_chain(struct sy__walk *walk, const struct sy__node_cache *cache, void *first, uint64_t most, enum sy_part_state state,
                         const char *list, unsigned owner)
{
#ifdef SY_HARDENED
	for (uint64_t place = 0; place <= most && first && sy__pages_find(cache->cache.heap, first); first = sy__node_peek(cache, first))
		sy__walk_mark(walk, first, state, list, owner, place++);
#else
	sy__walk_chain(walk, first, cache->offset, most, state, list, owner);
#endif
}

void sy__node_walk_list(struct sy__walk *walk, const struct sy__node_view *view, void *first, enum sy_part_state state, const char *list,
                        unsigned owner)
{
	sy__node_walk_chain(walk, view->cache, first, sy__node_objects(view->page), state, list, owner);
}

/* Hardened, free objects that were never linked; else those in pages without memory. */
static void mark_unlisted(struct sy__walk *walk, const struct sy__node_view *view)
{
	const char *at = sy__page_address(view->cache->cache.heap, view->page);
	uint64_t place = 0;

	for (uint32_t i = sy__node_objects(view->page); i; i--, at += view->cache->cache.size)
		if (SY__IS_HARDENED ? i <= unlisted(view->cache, view->page) : sy__node_is_emptied(view->cache, view->page, at))
			sy__walk_mark(walk, at, SY_PART_FREE, SY__IS_HARDENED ? "uncarved" : "given back", 0, place++);
}

static void mark_free(struct sy__walk *walk, const void *context)
{
	const struct sy__node_view *view = context;

	mark_unlisted(walk, view);
	sy__node_walk_list(walk, view, sy__node_freelist(view->cache, view->page), SY_PART_FREE, "freelist of the slab", 0);
	view->mark(walk, view);
#ifdef SY_HARDENED
	mark_rings(walk, view->cache);
#endif
}

static void locate_on_node(struct sy__node_cache *cache, struct sy_page *page, struct sy_slab *slab)
{
	slab->list = "full";
	if (sy__word_full(sy__node_word(page)))
		return;
	slab->list = "partial";
	slab->owner_kind = SY_OWNER_NODE;
	slab->owner = sy__page_node(page);
	slab->place = sy__walk_place(&sy__node_of(cache, page)->partial, &sy__node_slab(page)->link);
}

void sy__node_walk(struct sy__walk *walk, struct sy_page *page, bool (*locate)(struct sy__node_cache *, struct sy_page *, struct sy_slab *),
                   void (*mark)(struct sy__walk *, const struct sy__node_view *))
{
	struct sy__node_cache *cache = sy__node_cache(sy__node_slab(page)->cache);
	const struct sy__node_view view = { cache, page, mark };
	const uint32_t objects = sy__node_objects(page);
	const struct sy__walk_grid grid = { 0, cache->cache.size, objects, mark_free, &view, SY_PART_USED };

	walk->slab.cache = &cache->cache;
#ifdef SY_HARDENED
	if (sy__node_word(page) == SY__WORD_RETIRED)
		walk->slab.list = "retired";
#endif
	if (objects && !locate(cache, page, &walk->slab))
		locate_on_node(cache, page, &walk->slab);
	if (!sy__walk_slab(walk))
		return;
	if (objects)
		sy__walk_objects(walk, &grid);
	else
		sy__walk_part(walk, walk->slab.bytes, SY_PART_WAITING);
}
