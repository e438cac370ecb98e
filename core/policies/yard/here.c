/*
 * SLUB: the fast paths of heaps of threads, on the caller's own slot (core/here.h).
 *
 * Instructions by bench/count_instructions (64 bytes, x86-64, gcc -O3), each with the jump that leads here from the library's
 * entry:
 *
 *   kmem_cache_alloc 17   the slot's address (3), begin and end of the call (2), freelist, its test, and the pop (5), which
 *                         object that was, and where from (2), SY_ZERO? (2), jump and return (3, with a move)
 *   kmem_cache_free  12   begin and end (3), the object handed out last? (3), where from (1), the push (3), jump and
 *                         return (2)
 *   kmalloc 23, kfree 15  as these, with the class of the size in place of the cache, flags, and NULL
 *
 * A free object's link is at its start here (geometry.c), and nothing but the slot's own line, the object and the thread's
 * own words is written. Which object was handed out last is the thread's to know, with the slot that it came from
 * (sy__call_note), so that to free it nothing needs to be looked up: neither its page's slab, nor the cache.
 *
 * A free of another object than the last one goes to a list that the object's slab keeps, whether the slot allocates from that
 * slab or from another one, and takes 16 instructions more, none of them atomic (owned.c). An object of another slot's
 * slab is kept, for the slot's next allocations or until there are more than it may keep (strays.c). What is not takes one
 * compare-and-exchange: that pushes the object onto the slab's own list (word.h) without leaving the fast call, which is
 * right whoever owns the slab, on whatever slot; and whether the slab is a slot's, or partial and not about to become empty, is
 * told by the word itself. A full slab that is nobody's becomes the slot's in the same way if it has filled that itself. A slot
 * without a free object takes the list of its active slab, or goes on to the next slab that it owns, still within the fast call. What needs
 * the node or the page allocator, one call in hundreds, is a slow call. Filling a cache with 10,000 objects and freeing them in
 * any order costs less than three times as much as hot pairs do.
 *
 * These frees find the slab by one look at the page's word (core/backend/page_map.h), without the descriptors of the slab's other pages,
 * and the slab says whether the slot owns it. What kfree can't serve so, a slab of a cache whose links are behind the objects
 * or a large allocation, bears no mark that it takes for its own. Large ones are kept, and served again, within the fast call
 * (core/backend/run_cache.h). Sizes between, which no class serves either, have `nowhere`: slots in which nothing is ever found.
 *
 * The dummy slot (struct sy_here in types.h) has no free object and no active slab, hence takes neither fast path; no slab
 * bears its mark, it has nothing to go on to, and whoever would have it own or push something looks first whether it is the
 * dummy. So nothing is ever written to it.
 */
#include "../../backend/metadata.h"
#include "../../backend/run_cache.h"
#include "fast.h"

/* Objects from the node or from new pages. */
static SY__OUT_OF_LINE void *fetch_here(struct sy__yard_cache *cache, unsigned flags)
{
	unsigned slot;
	void *object;

	if (sy__unlikely(!sy__call_enter(&slot)))
		return NULL;
	object = sy__yard_alloc_slow(cache, slot, flags, SY_ANY_NODE);
	sy__here_leave(cache->cache.heap);
	return sy__unlikely(!object) ? sy__here_refused(&cache->cache, flags) : object;
}

/* The first object of what the slot owns beside what its active slab holds, in a call that ends; or NULL: a slow call must
 * follow, which forgets what was noted of a slab that is the slot's no more. */
static inline void *refilled_more(struct sy__yard_cache *cache, struct sy__yard_slot *own)
{
	void *object;

	if (sy__unlikely(sy__tick_is_due()))
		return NULL;
	object = sy__yard_refill(cache, own);
	return sy__likely(object) ? sy__yard_hand_out(own, object, cache->offset) : NULL;
}

/* The same of all that it owns, and keeps. */
static inline void *refilled(struct sy__yard_cache *cache, struct sy__yard_slot *own)
{
	void *object = sy__yard_pop_stray(sy__yard_serving(own), own);

	if (object)
		return sy__yard_hand_out_stray(own, object);
	if (own->slab)
		object = sy__yard_pop_held(own, cache->offset, sy__yard_takes_any(own));
	return object ? sy__yard_hand_out(own, object, cache->offset) : refilled_more(cache, own);
}

static SY__OUT_OF_LINE void *refill_here(struct sy__yard_cache *cache, unsigned flags, struct sy__yard_slot *own)
{
	void *object = refilled(cache, own);

	if (sy__unlikely(!object))
		return fetch_here(cache, flags);
	return sy__unlikely(flags & SY_ZERO) ? sy__yard_zeroed(cache, object) : object;
}

static inline void *alloc_linked(struct sy_cache *cache, unsigned flags, size_t offset, bool stray)
{
	struct sy__yard_slot *own = sy__yard_slot_here(sy__yard_cache(cache)->slots, sy__call_begin());
	void *object = sy__yard_take_here(own, offset, stray);

	if (sy__unlikely(!object))
		return refill_here(sy__yard_cache(cache), flags, own);
	if (sy__unlikely(flags & SY_ZERO))
		return sy__yard_zeroed(sy__yard_cache(cache), object);
	return object;
}

/* The slow way for a free that needs the node. */
static SY__OUT_OF_LINE void move_here(struct sy__yard_cache *cache, struct sy_page *page, void *object)
{
	unsigned slot;

	if (sy__unlikely(!sy__call_enter(&slot)))
		return;
	sy__yard_free_owned(cache, slot, page, object);
	sy__here_leave(cache->cache.heap);
}

static SY__OUT_OF_LINE void give_empties_here(struct sy__yard_cache *cache, uint32_t keep)
{
	unsigned slot;

	if (sy__unlikely(!sy__call_enter(&slot)))
		return;
	sy__yard_give_empties(cache, slot, keep);
	sy__here_leave(cache->cache.heap);
}

/* A slab of the slot's that has no object in use any more, in a call that ends. */
SY__OUT_OF_LINE void sy__yard_emptied_here(struct sy_page *page, ptrdiff_t here)
{
	struct sy__yard_cache *cache = sy__yard_slab(page)->cache;
	struct sy__yard_slot *own = sy__yard_slot_here(cache->slots, here);
	uint32_t keep = sy__yard_emptied(cache, own, page);

	if (own->empty_slabs > keep)
		give_empties_here(cache, keep);
	else
		sy__call_end();
}

static SY__OUT_OF_LINE void give_strays_here(struct sy__yard_cache *cache)
{
	unsigned slot;

	if (sy__unlikely(!sy__call_enter(&slot)))
		return;
	sy__yard_give_strays(cache, slot);
	sy__here_leave(cache->cache.heap);
}

static SY__OUT_OF_LINE void look_at_stray_here(struct sy__yard_cache *cache, struct sy_page *page, void *object)
{
	unsigned slot;

	if (sy__unlikely(!sy__call_enter(&slot)))
		return;
	sy__yard_look_at_stray(cache, slot, page, object);
	sy__here_leave(cache->cache.heap);
}

/* In a call, which ends; not of the dummy. */
static inline void keep_stray(struct sy__yard_cache *cache, struct sy__yard_slot *own, struct sy_page *page, void *object)
{
	if (sy__unlikely(!(sy__yard_one_more(&own->came) % SY__YARD_STRAYS_TO_ONE)))
		look_at_stray_here(cache, page, object);
	else if (sy__unlikely(sy__yard_push_stray(own, object) > cache->stray_limit))
		give_strays_here(cache);
	else
		sy__call_end();
}

/* Back into a slab of somebody else, or nobody, in a call that ends. */
static SY__OUT_OF_LINE void give_foreign_here(struct sy__yard_cache *cache, struct sy_page *page, void *object, ptrdiff_t here)
{
	struct sy__yard_slot *own = sy__yard_slot_here(cache->slots, here);

	if (sy__unlikely(here == SY__DUMMY_HERE ||
	                 !sy__yard_free_foreign(cache, own, page, object, object, 1)))
		move_here(cache, page, object);
	else if (sy__unlikely(own->empty_slabs > sy__yard_empties(cache, own)))
		give_empties_here(cache, sy__yard_empties(cache, own));
	else
		sy__call_end();
}

/* A full slab that the slot has filled itself, in a call that ends: the same exchange as sy__yard_free_foreign's makes it its
 * own again. */
static inline void take_back(struct sy__yard_cache *cache, struct sy_page *page, void *object, ptrdiff_t here, uint64_t word)
{
	struct sy__yard_slab *slab = sy__yard_slab(page);

	if (sy__unlikely(!sy__swap64(&slab->word, &word, word | SY__YARD_FROZEN))) {
		give_foreign_here(cache, page, object, here);
		return;
	}
	*sy__yard_link_at(object, cache->offset) = NULL;
	sy__yard_hold_frozen(cache, sy__yard_slot_here(cache->slots, here), page, object, 1); /* the word may have come back after another slot had it between */
	if (sy__unlikely(sy__yard_in_use_now(slab) == 1))
		sy__yard_emptied_here(page, here);
	else
		sy__call_end();
}

/* Whether an object of a slab that isn't the slot's is kept: another slot owns that, or has filled it and this one may not make
 * it its own; and this one allocates from the cache itself. */
static inline bool is_stray(const struct sy__yard_cache *cache, const struct sy__yard_slot *own, uint64_t word, bool foreign)
{
	if (!cache->stray_limit || !(own->slab || own->astray))
		return false;
	return sy__yard_word_frozen(word) || (foreign && sy__yard_word_full(word) && own->foreign_slabs >= cache->foreign_limit);
}

/* Gives an object of a slab that isn't the slot's back by one exchange, where that neither moves the slab nor makes it the
 * slot's. The word is as it was read. False: it has changed meanwhile, or more is to be done. */
static inline bool push_at_once(const struct sy__yard_cache *cache, struct sy__yard_slab *slab, void *object, uint64_t word)
{
	if (sy__unlikely(!sy__yard_word_stays(word, 1)))
		return false;
	*sy__yard_link_at(object, cache->offset) = sy__yard_word_first(word, object);
	return sy__swap64(&slab->word, &word, sy__yard_word_push(word, object, 1));
}

/* Into any slab that isn't the slot's, in a call that ends; not of the dummy. Arguments are in the order of
 * sy__yard_kfree_foreign's. */
static SY__OUT_OF_LINE void put_foreign_here(void *object, struct sy__yard_cache *cache, struct sy_page *page, ptrdiff_t here)
{
	struct sy__yard_slot *own = sy__yard_slot_here(cache->slots, here);
	struct sy__yard_slab *slab = sy__yard_slab(page);
	uint64_t word = sy__load64(&slab->word);
	bool foreign = sy__yard_is_foreign(own, slab);

	if (sy__yard_word_nobodys(word) && !foreign && cache->slot_limit)
		take_back(cache, page, object, here, word);
	else if (is_stray(cache, own, word, foreign))
		keep_stray(cache, own, page, object);
	else if (sy__likely(push_at_once(cache, slab, object, word)))
		sy__call_end();
	else
		give_foreign_here(cache, page, object, here);
}

/* Of a slot that has kept as many as it may: all go home, before this one if that needs no slow call; in a call, which ends. */
static SY__OUT_OF_LINE void end_row(struct sy__yard_cache *cache, struct sy__yard_slot *own, void *object)
{
	bool given = sy__yard_give_rows(cache, own);

	sy__yard_push_stray(own, object);
	if (sy__likely(given))
		sy__call_end();
	else
		give_strays_here(cache);
}

/* Of a slot that allocates nothing of the cache, or of the dummy, in a call that ends. */
static SY__OUT_OF_LINE void put_in_row(void *object, struct sy__yard_cache *cache, struct sy_page *page, ptrdiff_t here)
{
	struct sy__yard_slot *own = sy__yard_slot_here(cache->slots, here);

	if (sy__unlikely(here == SY__DUMMY_HERE)) {
		give_foreign_here(cache, page, object, here);
	} else if (sy__unlikely(!cache->row || own->astray || !sy__yard_is_foreign(own, sy__yard_slab(page)))) {
		put_foreign_here(object, cache, page, here);
	} else if (sy__unlikely(own->stray_count >= cache->row)) {
		end_row(cache, own, object);
	} else {
		sy__yard_push_stray(own, object);
		sy__call_end();
	}
}

/* What isn't of a slab of the slot's, in a call that ends. */
static inline void put_stranger(struct sy__yard_cache *cache, struct sy_page *page, void *object, ptrdiff_t here)
{
	if (sy__yard_slot_here(cache->slots, here)->slab)
		put_foreign_here(object, cache, page, here);
	else
		put_in_row(object, cache, page, here);
}

/* Into a slab of a cache whose links are there, in a call that ends. */
static inline void put_into(struct sy__yard_cache *cache, struct sy_page *page, void *object, size_t offset, ptrdiff_t here)
{
	if (sy__likely(sy__yard_owner(sy__yard_slab(page)) == sy__yard_mark_here(here, offset)))
		sy__yard_put_owned(here, page, object, offset);
	else
		put_stranger(cache, page, object, here);
}

/* Frees of other objects than the one that was handed out last, in a call. */
static inline void free_other(struct sy__yard_cache *cache, void *object, size_t offset)
{
	put_into(cache, sy__page_map_of(&sy__yard_heap(cache->cache.heap)->heads, object), object, offset, sy__call_here());
}

static SY__OUT_OF_LINE void free_other_here(struct sy__yard_cache *cache, void *object)
{
	free_other(cache, object, 0);
}

static SY__OUT_OF_LINE void free_other_behind_here(struct sy__yard_cache *cache, void *object)
{
	free_other(cache, object, cache->offset);
}

static void *alloc_here(struct sy_cache *cache, unsigned flags)
{
	return alloc_linked(cache, flags, 0, false);
}

/* Of a class whose slots gather. */
static void *alloc_gathered_here(struct sy_cache *cache, unsigned flags)
{
	return alloc_linked(cache, flags, 0, true);
}

static void free_here(struct sy_cache *cache, void *object)
{
	if (sy__unlikely(!sy__call_begin_with(object)))
		free_other_here(sy__yard_cache(cache), object);
	else
		sy__yard_put_here(object, 0);
}

static void *alloc_behind_here(struct sy_cache *cache, unsigned flags)
{
	return alloc_linked(cache, flags, sy__yard_cache(cache)->offset, false);
}

static void free_behind_here(struct sy_cache *cache, void *object)
{
	size_t offset = sy__yard_cache(cache)->offset;

	if (sy__unlikely(!sy__call_begin_with(sy__yard_noted(object, offset))))
		free_other_behind_here(sy__yard_cache(cache), object);
	else
		sy__yard_put_here(object, offset);
}

/* What the slot owns of the class; or, without one, or when there is nothing, the generic entry. */
static SY__OUT_OF_LINE void *kmalloc_refill_here(size_t size, unsigned flags, struct sy_heap *heap)
{
	struct sy__yard_cache *cache = sy__yard_cache(sy__kmalloc_cache(&sy__yard_heap(heap)->kmalloc, size, flags));
	void *object = cache ? refilled(cache, sy__yard_slot_here(cache->slots, sy__call_begin())) : NULL;

	if (sy__unlikely(!object))
		return sy__here_kmalloc(size, flags, heap);
	return sy__unlikely(flags & SY_ZERO) ? sy__yard_zeroed(cache, object) : object;
}

/* Without flags. What the active slab holds is taken without a look at the class, and without a frame; what was never used of
 * it without that look. */
static SY__OUT_OF_LINE void *malloc_more_here(size_t size, struct sy_heap *heap, struct sy__yard_slot *own)
{
	struct sy__yard_cache *cache = sy__yard_cache(sy__kmalloc_untyped(&sy__yard_heap(heap)->kmalloc, size));
	void *object = cache ? refilled_more(cache, own) : NULL;

	return sy__likely(object) ? object : sy__here_malloc(size, heap);
}

static SY__OUT_OF_LINE void *malloc_carved_here(size_t size, struct sy_heap *heap, struct sy__yard_slot *own)
{
	if (sy__unlikely(sy__tick_is_due()))
		return sy__here_malloc(size, heap);
	sy__yard_carve(sy__yard_slab(own->slab)->cache, own);
	return sy__yard_hand_out_first(own, 0, false);
}

SY__OUT_OF_LINE void *sy__yard_malloc_refill(size_t size, struct sy_heap *heap, struct sy__yard_slot *own)
{
	void *object = sy__yard_pop_stray(sy__yard_serving(own), own);

	if (object)
		return sy__yard_hand_out_stray(own, object);
	if (own->slab)
		object = sy__yard_pop_held(own, 0, sy__yard_takes_any(own));
	if (object)
		return sy__yard_hand_out(own, object, 0);
	return sy__yard_is_next_uncarved(own) ? malloc_carved_here(size, heap, own) : malloc_more_here(size, heap, own);
}

/* Other sizes, and flags that ask for more. */
static SY__OUT_OF_LINE void *kmalloc_other_here(size_t size, unsigned flags, struct sy_heap *heap)
{
	struct sy__yard_cache *cache = sy__yard_cache(sy__kmalloc_cache(&sy__yard_heap(heap)->kmalloc, size, flags));
	struct sy__yard_slot *own;
	void *object = NULL;

	if (sy__likely(cache)) {
		own = sy__yard_slot_here(cache->slots, sy__call_begin());
		object = sy__yard_take_here(own, 0, own->astray);
	}
	if (sy__unlikely(!object))
		return kmalloc_refill_here(size, flags, heap);
	return flags & SY_ZERO ? sy__yard_zeroed(cache, object) : object;
}

static void *kmalloc_here(size_t size, unsigned flags, struct sy_heap *heap)
{
	if (sy__unlikely(size - 1 >= SY__KMALLOC_SMALL || flags & (SY_ZERO | SY__KMALLOC_TYPE_FLAGS)))
		return kmalloc_other_here(size, flags, heap);
	return sy__yard_malloc_small(size, heap);
}

/* Sizes above SY__KMALLOC_LARGEST, and 0. */
static SY__OUT_OF_LINE void *large_here(size_t size, struct sy_heap *heap)
{
	ptrdiff_t here = sy__call_begin();
	void *object = NULL;

	if (sy__likely(size && here != SY__DUMMY_HERE) && !sy__tick_is_due())
		object = sy__large_again(heap, sy__run_cache_here(heap, here), size);
	if (sy__unlikely(!object))
		return sy__here_malloc(size, heap);
	sy__call_end();
	return object;
}

/* Sizes above SY__KMALLOC_SMALL, and 0. */
SY__OUT_OF_LINE void *sy__yard_malloc_other(size_t size, struct sy_heap *heap)
{
	const struct sy__yard_heap *yard = sy__yard_heap(heap);
	struct sy__yard_slot *own;
	void *object;

	if (sy__unlikely(size - 1 >= SY__KMALLOC_LARGEST))
		return large_here(size, heap);
	own = sy__yard_slot_here(yard->sizes->classes[yard->kmalloc.medium_class[sy__kmalloc_step(size)]], sy__call_begin());
	object = sy__yard_take_here(own, 0, own->astray);
	return sy__likely(object) ? object : sy__yard_malloc_refill(size, heap, own);
}

static void *malloc_here(size_t size, struct sy_heap *heap)
{
	return sy__likely(size - 1 < SY__KMALLOC_SMALL) ? sy__yard_malloc_small(size, heap) : sy__yard_malloc_other(size, heap);
}

static SY__OUT_OF_LINE void kfree_large_here(void *object, struct sy_heap *heap, struct sy_page *page, ptrdiff_t here)
{
	if (sy__likely(here != SY__DUMMY_HERE && sy__large_keep(heap, sy__run_cache_here(heap, here), page)))
		sy__call_end();
	else
		sy__here_kfree(object, heap);
}

static SY__OUT_OF_LINE void kfree_other_here(void *object, struct sy_heap *heap, struct sy_page *page, ptrdiff_t here)
{
	if (sy__page_is_large(page))
		kfree_large_here(object, heap, page, here);
	else
		sy__here_kfree(object, heap);
}

/* What is in no slab of the slot's with links at the start of objects. */
SY__OUT_OF_LINE void sy__yard_kfree_foreign(void *object, struct sy_heap *heap, struct sy_page *page, ptrdiff_t here)
{
	if (sy__likely(sy__page_is_slab(page) && !sy__yard_slab(page)->cache->offset))
		put_stranger(sy__yard_slab(page)->cache, page, object, here);
	else
		kfree_other_here(object, heap, page, here);
}

/* Whether a slab is the slot's own; then its objects are not exchanged any more. */
static inline bool ends_exchange(const struct sy__yard_cache *cache, struct sy_page *page, ptrdiff_t here)
{
	if (sy__yard_owner(sy__yard_slab(page)) != sy__yard_mark_here(here, 0))
		return false;
	sy__yard_set_page_map(cache, page, 0);
	return true;
}

/* Of a page with a mark, to its slab, in a call that ends; or it is looked at. */
static SY__OUT_OF_LINE void put_marked_here(void *object, uintptr_t word, ptrdiff_t here, bool looks)
{
	struct sy_page *page = sy__page_map_block(word);
	struct sy__yard_cache *cache = sy__yard_slab(page)->cache;
	bool is_exchanged = sy__page_map_mark(word) == cache->exchanged_mark;

	if (!(is_exchanged && ends_exchange(cache, page, here)) && looks)
		look_at_stray_here(cache, page, object);
	else
		put_into(cache, page, object, 0, here);
}

/* Of a cache that gathers strays: onto the slot's freelist, if that is empty or has such, and room. Strays are counted, so what
 * was handed out last is no more put there as if it were nothing else. */
static inline bool gather(struct sy__yard_slot *own, void *object)
{
	struct sy__yard_stray *first = own->freelist, *stray = object;
	size_t there = !first ? 0 : own->astray ? first->left : SIZE_MAX;

	if (there >= own->sheaf)
		return false;
	if (!first)
		sy__call_note(SY__NOTHING, own);
	*stray = (struct sy__yard_stray){ first, there + 1 };
	own->freelist = stray;
	own->astray = true;
	return true;
}

/* Whether the stray of an exchanged slab is that came last, one in SY__YARD_STRAYS_TO_ONE. */
static inline bool is_looked_at(const struct sy__yard_slot *own)
{
	return own->came < SY__YARD_STRAYS_NEW || !(own->came % SY__YARD_STRAYS_TO_RARE);
}

/* Of a slab whose objects are exchanged, in a call that ends. The dummy has no slab. */
static inline void keep_exchanged(struct sy__yard_slot *own, void *object, uintptr_t word, ptrdiff_t here)
{
	if (!own->slab || own->stray_count >= own->stray_limit) {
		put_marked_here(object, word, here, false);
	} else if (sy__unlikely(!(sy__yard_one_more(&own->came) % SY__YARD_STRAYS_TO_ONE)) && is_looked_at(own)) {
		put_marked_here(object, word, here, true);
	} else {
		sy__yard_push_stray(own, object);
		sy__call_end();
	}
}

/* Of a page with a mark, in a call that ends. The slab, which any slot may own, is not even looked at, where there is room. The
 * dummy has none. */
SY__OUT_OF_LINE void sy__yard_kfree_gathering(void *object, struct sy_heap *heap, uintptr_t word, ptrdiff_t here)
{
	unsigned number = sy__page_map_number(word);
	struct sy__yard_slot *own = sy__yard_slot_here(sy__yard_heap(heap)->sizes->classes[number & SY__YARD_CLASS], here);

	if (number & SY__YARD_EXCHANGED)
		keep_exchanged(own, object, word, here);
	else if (sy__likely(gather(own, object)))
		sy__call_end();
	else
		put_marked_here(object, word, here, false);
}

static void kfree_here(void *object, struct sy_heap *heap)
{
	if (sy__unlikely(!sy__call_begin_with(object)))
		sy__yard_kfree_other(object, heap, sy__page_map_index(&sy__yard_heap(heap)->heads, object));
	else
		sy__yard_put_here(object, 0);
}

static void free_any_here(void *object, struct sy_heap *heap)
{
	sy__yard_free_here(object, heap);
}

const struct sy_here sy__yard_here = {
	.cache_alloc = alloc_here,
	.cache_free = free_here,
	.kmalloc = kmalloc_here,
	.malloc = malloc_here,
	.kfree = kfree_here,
	.free = free_any_here,
};

/* For a cache of a heap of threads whose layout is known. */
void sy__yard_choose_here(struct sy__yard_cache *cache)
{
	if (cache->offset) {
		cache->cache.alloc_here = alloc_behind_here;
		cache->cache.free_here = free_behind_here;
	} else if (cache->sheaf_limit) {
		cache->cache.alloc_here = alloc_gathered_here;
	}
}

/* Whether there are sizes between the largest class and those that go to pages in any heap. */
static bool has_gap(const struct sy__yard_heap *yard)
{
	return yard->kmalloc.largest < SY__KMALLOC_LARGEST;
}

static void fill_sizes(struct sy__yard_sizes *sizes, const struct sy__yard_heap *yard)
{
	const struct sy__kmalloc *kmalloc = &yard->kmalloc;

	for (unsigned class = 0; class < SY__KMALLOC_MOST_CLASSES && kmalloc->classes[class]; class++) {
		struct sy__yard_cache *cache = sy__yard_cache(kmalloc->classes[class]);

		sizes->classes[class] = cache->slots;
		if (cache->sheaf_limit)
			cache->sheaf_mark = (uint8_t)(SY__PAGE_MAP_MARKED | class);
		else if (SY__PAGE_MAP_MOST_MARK && cache->stray_limit)
			cache->exchanged_mark = (uint8_t)(SY__PAGE_MAP_MARKED | SY__YARD_EXCHANGED | class);
	}
	if (has_gap(yard))
		sizes->classes[kmalloc->medium_class[SY__KMALLOC_STEPS - 1]] = yard->nowhere;
	for (unsigned i = 0; i < SY__KMALLOC_SMALL / 8; i++)
		sizes->small[i] = sizes->classes[kmalloc->small_class[i + 1]];
}

/* After the classes; false: no memory, nothing kept. */
bool sy__yard_here_init(struct sy__yard_heap *yard)
{
	struct sy_heap *heap = &yard->heap;

	if (has_gap(yard) && !(yard->nowhere = sy__slot_areas_take(heap, sizeof(*yard->nowhere))))
		return false;
	if (!sy__page_map_create(&yard->heads, heap))
		return false;
	fill_sizes(yard->sizes, yard);
	return true;
}

void sy__yard_here_fini(struct sy_heap *heap)
{
	sy__page_map_destroy(&sy__yard_heap(heap)->heads);
}

/* Of a heap without threads there are no heads. */
bool sy__yard_reservation(struct sy_heap *heap, size_t pages)
{
	return !heap->threads || sy__page_map_resize(&sy__yard_heap(heap)->heads, pages);
}

/* What is said of a slab's pages. False: no memory; never where it was said before. */
bool sy__yard_set_page_map(const struct sy__yard_cache *cache, struct sy_page *page, unsigned mark)
{
	struct sy__yard_heap *yard = sy__yard_heap(cache->cache.heap);

	return sy__page_map_set(&yard->heads, &yard->heap, page, (size_t)1 << sy__page_order(page), mark);
}
