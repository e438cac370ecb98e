/*
 * yard: remote frees, objects of slabs that somebody else owns, or nobody.
 *
 * Why they are gathered. To push an object to its slab takes a compare-and-exchange, and two cache lines that the other processor
 * needs too: the slab's, which its owner reads and writes all the time, and soon the object's. The exchange also waits until all
 * stores before it are in the cache, the object's link among them, whose line may be long in coming. Where one thread takes and
 * another gives, many objects of one slab go home by one exchange. Where threads free at random what any of them took, each gets
 * about as many objects as it gives, and may as well hand them out itself.
 *
 * How. Such a free puts the object on the slot's remote list. To its slab it is still in use. When remote_limit objects have come,
 * whether or not some were handed out since, all that are there go home: each row of them that is of one slab by one exchange.
 * As it is those that came which count, a thread that has taken over another's work does not go on for ever with the objects of
 * that one's slabs, but comes to work in its own. They also go when the slot is drained, when the heap scavenges, each second, and
 * before the slot gets memory that was not there yet, lest the last objects of slabs stay here.
 *
 * Where home is. A slab that a slot owns, or that is partial and will not be empty, takes a row by an exchange alone. A full one
 * becomes partial, and one that will be empty may end, under its node's lock. One that the slot has filled itself it takes back.
 */
#include "../../this_slot.h"
#include "yard.h"

#define REMOTE_UNUSED 16u

/* Objects of one slab, side by side on the list. */
struct row {
	struct sy_page *page;
	void *first, *last;
	uint32_t count;
};

static inline struct row cut_row(const struct sy__yard_cache *cache, void **list)
{
	void *at = *list;
	struct row row = { sy__node_head(&cache->base, at), at, at, 1 };
	uintptr_t start = (uintptr_t)sy__page_address(cache->base.cache.heap, row.page), bytes = SY_PAGE_SIZE << sy__page_order(row.page);

	while ((at = *sy__node_next(&cache->base, at)) && (uintptr_t)at - start < bytes) {
		row.last = at;
		row.count++;
	}
	*list = at;
	return row;
}

/* A push that may change the slab's place; pages that went back. */
static uint64_t push_moving(struct sy__yard_cache *cache, unsigned slot, const struct row *row)
{
	struct sy__yard_slab *slab = sy__yard_slab(row->page);
	struct sy__node *node = sy__node_of(&cache->base, row->page);
	uint64_t old = sy__load64(&slab->base.word), new;
	bool discard;

	sy__lock(&node->lock);
	do {
		*sy__node_next(&cache->base, row->last) = sy__word_first(old, row->last);
		new = sy__word_push(old, row->first, row->count);
	} while (!sy__swap64(&slab->base.word, &old, new));
	discard = !sy__word_frozen(new) && sy__node_place(&cache->base, node, row->page, !sy__word_full(old), new, false);
	if (!sy__word_frozen(new))
		sy__yard_set_owner(slab, SY__YARD_NOBODY);
	sy__unlock(&node->lock);
	if (!discard)
		return 0;
	if (cache->base.cache.heap->threads)
		sy__tick_sooner(SY__TICK_PAGES); /* each slab that ends counts as a call, as many may end in one */
	return sy__node_discard(&cache->base, slot, row->page);
}

/* By an exchange alone; false: the slab may change its place. */
static inline bool push(struct sy__yard_cache *cache, const struct row *row)
{
	struct sy__yard_slab *slab = sy__yard_slab(row->page);
	uint64_t old = sy__load64(&slab->base.word);

	do {
		if (!sy__word_stays(old, row->count))
			return false;
		*sy__node_next(&cache->base, row->last) = sy__word_first(old, row->last);
	} while (!sy__swap64(&slab->base.word, &old, sy__word_push(old, row->first, row->count)));
	return true;
}

static inline uint64_t send_home(struct sy__yard_cache *cache, unsigned slot, struct sy__yard_slot *own, const struct row *row)
{
	bool may_be_own = (sy__yard_owner(sy__yard_slab(row->page)) & ~SY__YARD_FULL) == sy__yard_mark(cache, own);

	if ((!may_be_own || !sy__yard_put_own(cache, own, row->page, row->first, row->last, row->count)) && sy__unlikely(!push(cache, row)))
		return push_moving(cache, slot, row);
	if (sy__unlikely(own->empty_slabs > SY__YARD_EMPTY))
		return sy__yard_give_empties(cache, slot, sy__yard_most_empty(cache, own));
	return 0;
}

uint64_t sy__yard_flush_remote(struct sy__yard_cache *cache, unsigned slot)
{
	struct sy__yard_slot *own = sy__yard_slot(cache, slot);
	void *list = own->remote;
	uint64_t pages = 0;

	own->remote = NULL;
	while (list) {
		struct row row = cut_row(cache, &list);

		pages += send_home(cache, slot, own, &row);
	}
	return pages;
}

/* Puts the object on the remote list. First all that is there goes home, if as many as may have come. A slot that allocates none has
 * no use for them, and each may be the last one of its slab: it gathers fewer. */
static void gather(struct sy__yard_cache *cache, unsigned slot, struct sy__yard_slot *own, void *object)
{
	if (own->remote_room <= 1) {
		sy__yard_flush_remote(cache, slot);
		own->remote_room = (uint16_t)(1 + (own->slab || cache->remote_limit < REMOTE_UNUSED ? cache->remote_limit : REMOTE_UNUSED));
		sy__yard_has_idle(cache, own);
	}
	sy__yard_push_remote(own, object, cache->base.offset);
}

/* Any free that the fast path does not serve. */
void sy__yard_free_slow(struct sy__yard_cache *cache, unsigned slot, void *object)
{
	struct sy_heap *heap = cache->base.cache.heap;
	struct sy__yard_slot *own = sy__yard_slot(cache, slot);
	struct sy_page *page = sy__node_head(&cache->base, object);

	sy__count_slow(heap, &heap->counters.slow_frees);
	sy__local_begin(slot);
	if (!sy__yard_put_own(cache, own, page, object, object, 1))
		gather(cache, slot, own, object);
	sy__yard_give_empties(cache, slot, sy__yard_most_empty(cache, own));
	sy__local_end(slot);
}
