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

/* The next row of a list of at most so many objects, if what comes next is in a slab of the cache; else false. Whether objects start
 * where the list says is seen when somebody takes the slab's list (owned.c). */
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

/* What the program has done that a list leads to such an address, or has more objects than were freed: behind `last`, if not at
 * once. */
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

/* A push that may change the slab's place; pages that went back. */
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

/* By an exchange alone; false: the slab may change its place. */
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

/* Puts the object on the remote list. First all that is there goes home, if as many as may have come. A slot that allocates none has
 * no use for them, and each may be the last one of its slab: it gathers fewer. */
static void gather(struct sy__yard_cache *cache, unsigned slot, struct sy__yard_slot *own, void *object)
{
	if (own->remote_room <= 1) {
		sy__yard_flush_remote(cache, slot);
		own->remote_room = (uint16_t)(1 + (own->slab || cache->remote_limit < REMOTE_UNUSED ? cache->remote_limit : REMOTE_UNUSED));
		sy__yard_has_idle(cache, own);
	}
	sy__yard_push_remote(cache, own, object, cache->base.offset);
}

/* As far as a look at the lists' first objects tells, and the number of those in use. */
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
