/*
 * yard: remote frees: of objects whose slab another slot owns, or none.
 *
 * Why they are gathered. To push an object to its slab takes a compare-and-exchange, and two cache lines that the other processor needs
 * too: the slab's, which its owner reads and writes all the time, and soon the object's. The exchange also waits for all stores before it,
 * the object's link among them, whose cache line may take long to arrive. If one thread allocates and another frees, one exchange sends
 * many objects of a slab home. If threads free each other's objects at random, each gets about as many as it gives, and may as well hand
 * them out itself.
 *
 * How. A remote free puts the object on the slot's remote list; its slab still counts it as in use. After remote_limit such frees the whole
 * list goes home, even if some objects were handed out meanwhile: each row of objects of one slab by one exchange. Since frees are counted
 * and not the length, a thread that took over another's work moves to slabs of its own in the end. The list also goes home when the slot is
 * drained, when the heap scavenges, each second, and before the slot gets new memory, so that it does not keep slabs alive.
 *
 * Where home is. A slab that is owned, or is partial and stays so, takes a row by an exchange alone. A full one becomes partial, and one
 * that becomes empty may end: both under the node's lock. A full one that this slot filled becomes the slot's again.
 */
#include "../../bug.h"
#include "../../this_slot.h"
#include "yard.h"

#define REMOTE_UNUSED 16u

/* Objects of one slab, side by side on the list. */
struct row {
	struct sy_page *page;
	void *first, *last;
	uint32_t count;
};

/* Cuts the next row, of at most *most objects, off the list. False: the next address is in no slab of the cache. Whether objects start
 * where the list says is checked when a slot takes the slab's list (owned.c). */
static inline bool cut_row(const struct sy__yard_cache *cache, void **list, uint32_t *most, size_t known, struct row *row)
{
	void *at = *list;
	struct sy_page *page;
	uintptr_t start, bytes;

	if (sy__unlikely(!sy__holds_near(cache->base.memory, known, at)))
		return false;
	page = sy__node_head(&cache->base, at);
	if (sy__unlikely(sy__node_slab(page)->cache != &cache->base.cache || !*most))
		return false;
	start = (uintptr_t)sy__page_address(cache->base.cache.heap, page);
	bytes = SY_PAGE_SIZE << sy__page_order(page);
	*row = (struct row){ page, at, at, 0 };
	do {
		row->last = at;
		row->count++;
		at = sy__node_peek(&cache->base, at);
	} while ((uintptr_t)at - start < bytes && row->count < *most);
	*most -= row->count;
	*list = at;
	return true;
}

/* Reports why a list leads to a wrong address `at` (after `last`, or NULL), or has more objects than were freed. */
static SY__COLD void tell(const struct sy__yard_cache *cache, const void *at, const void *last, uint32_t most)
{
	struct sy_heap *heap = cache->base.cache.heap;

	if (!most)
		sy__bug(heap, SY_BUG_DOUBLE_FREE, at);
	else if (last && !sy__pages_find(heap, at))
		sy__bug(heap, SY_BUG_WRITE_AFTER_FREE, last);
	else
		sy__bug_free(heap, at);
}

/* Pushes a row with the node's lock, as the slab may change its list or end; returns pages that went back. */
static uint64_t push_moving(struct sy__yard_cache *cache, unsigned slot, const struct row *row)
{
	struct sy__node_slab *slab = sy__node_slab(row->page);
	struct sy__node *node = sy__node_of(&cache->base, row->page);
	uint64_t old = sy__load64(&slab->word), new;
	bool discard;

	sy__lock(&node->lock);
	do {
		if (sy__unlikely(sy__word_in_use(old) < row->count)) {
			sy__unlock(&node->lock);
			sy__bug(cache->base.cache.heap, SY_BUG_DOUBLE_FREE, row->first);
			return 0;
		}
		sy__node_link(&cache->base, row->last, sy__word_first(old, row->last));
		new = sy__word_push(old, row->first, row->count);
	} while (!sy__swap64(&slab->word, &old, new));
	discard = !sy__word_frozen(new) && sy__node_place(&cache->base, node, row->page, !sy__word_full(old), new, false);
	if (!sy__word_frozen(new))
		sy__yard_set_owner(slab, SY__YARD_NOBODY);
	sy__unlock(&node->lock);
	if (!discard)
		return 0;
	if (cache->base.cache.heap->threads)
		sy__tick_advance(SY__TICK_PAGES); /* each slab that ends counts as a call, as many may end in one */
	return sy__node_discard(&cache->base, slot, row->page);
}

/* Pushes a row by an exchange alone. False: the slab would change its list. */
static inline bool push_row(struct sy__yard_cache *cache, const struct row *row)
{
	struct sy__node_slab *slab = sy__node_slab(row->page);
	uint64_t old = sy__load64(&slab->word);

	do {
		if (!sy__word_stays(old, row->count))
			return false;
		sy__node_link(&cache->base, row->last, sy__word_first(old, row->last));
	} while (!sy__swap64(&slab->word, &old, sy__word_push(old, row->first, row->count)));
	return true;
}

static inline uint64_t send_home(struct sy__yard_cache *cache, unsigned slot, struct sy__yard_slot *own, const struct row *row)
{
	bool may_be_own = (sy__yard_owner(sy__node_slab(row->page)) & ~SY__YARD_FULL) == sy__yard_mark(cache, own);

	if ((!may_be_own || !sy__yard_put_own(cache, own, row->page, row->first, row->last, row->count)) && sy__unlikely(!push_row(cache, row)))
		return push_moving(cache, slot, row);
	return sy__unlikely(own->empty_slabs) ? sy__yard_give_empties(cache, slot, sy__yard_most_empty(cache, own)) : 0;
}

uint64_t sy__yard_flush_remote(struct sy__yard_cache *cache, unsigned slot)
{
	struct sy__yard_slot *own = sy__yard_slot(cache, slot);
	void *list = own->remote;
	uint32_t most = cache->remote_limit + 1u;
	size_t known = sy__known_pages(cache->base.cache.heap);
	struct row row = { NULL, NULL, NULL, 0 };
	uint64_t pages = 0;

	own->remote = NULL;
	while (list) {
		if (sy__unlikely(!cut_row(cache, &list, &most, known, &row))) {
			tell(cache, list, row.last, most);
			break;
		}
		pages += send_home(cache, slot, own, &row);
	}
	return pages;
}

/* Puts the object on the remote list. If the list is at its limit, it goes home first. A slot without an active slab gathers fewer objects:
 * it does not allocate, and each may be the last object of its slab. */
static void gather(struct sy__yard_cache *cache, unsigned slot, struct sy__yard_slot *own, void *object)
{
	if (own->remote_room <= 1) {
		sy__yard_flush_remote(cache, slot);
		own->remote_room = (uint16_t)(1 + (own->slab || cache->remote_limit < REMOTE_UNUSED ? cache->remote_limit : REMOTE_UNUSED));
		sy__yard_has_idle(cache, own);
	}
	sy__yard_push_remote(cache, own, object, cache->base.offset);
}

/* As far as the first object of each list, and the number of objects in use, tell. */
static bool is_free_already(const struct sy__yard_cache *cache, const struct sy__yard_slot *own, struct sy_page *page, const void *object)
{
	if (sy__yard_owner(sy__node_slab(page)) == sy__yard_mark(cache, own) && sy__yard_local(sy__node_slab(page))->freelist == object)
		return true;
	return own->freelist == object || own->remote == object || !sy__word_in_use(sy__node_word(page)) ||
	       sy__node_freelist(&cache->base, page) == object;
}

/* Any free that the fast path does not serve. */
void sy__yard_free_slow(struct sy__yard_cache *cache, unsigned slot, void *object)
{
	struct sy_heap *heap = cache->base.cache.heap;
	struct sy__yard_slot *own = sy__yard_slot(cache, slot);
	struct sy_page *page = sy__pages_find(heap, object);

	sy__count_slow(heap, &heap->counters.slow_frees);
	if (sy__unlikely(!page || !sy__node_is_object(&cache->base, page, object))) {
		sy__bug_free(heap, object);
		return;
	}
	sy__local_begin(slot);
	if (sy__unlikely(is_free_already(cache, own, page, object)))
		sy__bug(heap, SY_BUG_DOUBLE_FREE, object);
	else if (!sy__yard_put_own(cache, own, page, object, object, 1))
		gather(cache, slot, own, object);
	sy__yard_give_empties(cache, slot, sy__yard_most_empty(cache, own));
	sy__local_end(slot);
}
