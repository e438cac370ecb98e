/*
 * SLUB: the fast paths of heaps of threads, on the caller's own slot (core/here.h).
 *
 * Instructions by bench/count_instructions (64 bytes, x86-64, gcc -O3), each with the jump that leads here from the library's
 * entry:
 *
 *   kmem_cache_alloc 15   the slot's address (3), begin and end of the call (2), freelist, its test, and the pop (5),
 *                         SY_ZERO? (2), jump and return (3, with a move)
 *   kmem_cache_free  14   the slot's address (3), begin and end (2), within the active slab? (4), the push (3), jump and
 *                         return (2)
 *   kmalloc 21, kfree 20  as these, with the class of the size (7) in place of the cache, and the page's owner (4)
 *
 * A free object's link is at its start here (slub_geometry.c), and nothing but the slot's own line and the object is written.
 *
 * A free into any other slab takes 31 instructions more, one of them a compare-and-exchange: it pushes the object onto the slab's
 * own list (slub_word.h) without leaving the fast call, which is right whoever owns the slab, on whatever slot; and whether the
 * slab is a slot's, or partial and not about to become empty, is told by the word itself. A full slab that is nobody's
 * becomes the slot's kept one in the same way while there is room. Everything else, one free in dozens, is a slow call.
 * Filling a cache with 10,000 objects and freeing them in any order costs less than three times as much as hot pairs do.
 *
 * kfree finds the slots of the object's cache by one look at the page's word (core/owners.h), without the page's descriptor. A page
 * that it can't serve so, of a cache whose links are behind the objects or of a large allocation, belongs to `nowhere`: slots
 * in which nothing is ever found.
 *
 * The dummy slot (struct sy_here in types.h) has no free object and no active slab, hence takes neither fast path, and says
 * by its count of kept slabs that it is none, so that it keeps and pushes nothing.
 */
#include "../here.h"
#include "../metadata.h"
#include "slub.h"

/* A free object's link is behind it where it must keep what a constructor or its last client left, else at its start. */
static inline void **link_at(void *object, size_t offset)
{
	return (void **)(void *)((char *)object + offset);
}

static inline struct sy__slub_slot *slot_here(struct sy__slub_slot *slots, ptrdiff_t here)
{
	return (struct sy__slub_slot *)(void *)((char *)slots + here);
}

/* In a call: the slot's next object, which ends it; or NULL. */
static inline void *take_here(struct sy__slub_slot *own, size_t offset)
{
	void *object = own->freelist;

	if (sy__unlikely(!object))
		return NULL;
	own->freelist = *link_at(object, offset);
	sy__call_end();
	return object;
}

static SY__OUT_OF_LINE void *refill_here(struct sy__slub_cache *cache, unsigned flags)
{
	unsigned slot;
	void *object;

	if (sy__unlikely(!sy__call_enter(&slot)))
		return NULL;
	object = sy__slub_alloc_slow(cache, slot, flags, SY_ANY_NODE);
	sy__call_leave();
	return object;
}

/* In a call, which ends: an object of the slot's active slab. */
static inline void put_here(struct sy__slub_slot *own, void *object, size_t offset)
{
	*link_at(object, offset) = own->freelist;
	own->freelist = object;
	sy__call_end();
}

static inline void *alloc_linked(struct sy_cache *cache, unsigned flags, size_t offset)
{
	void *object = take_here(slot_here(sy__slub_cache(cache)->slots, sy__call_begin()), offset);

	if (sy__unlikely(!object))
		return refill_here(sy__slub_cache(cache), flags);
	if (sy__unlikely(flags & SY_ZERO))
		return sy__slub_zeroed(sy__slub_cache(cache), object);
	return object;
}

/* The slow way for a free that puts a slab on its node's list, or may take it off. */
static SY__OUT_OF_LINE void move_here(struct sy__slub_cache *cache, struct sy_page *page, void *object)
{
	unsigned slot;

	if (sy__unlikely(!sy__call_enter(&slot)))
		return;
	sy__slub_free_moving(cache, slot, page, object);
	sy__call_leave();
}

/* A free that may change whose the slab is: a full one becomes the slot's, where there is room for it; for all else the slow
 * way, for which the dummy slot looks full. Begins the call anew, so that whoever comes here need not keep its slot in a
 * register. */
static SY__OUT_OF_LINE void place_here(struct sy__slub_cache *cache, void *object)
{
	struct sy__slub_slot *own = slot_here(cache->slots, sy__call_begin());
	struct sy_page *page = sy__slub_head(cache, object);
	struct sy__slub_slab *slab = sy__slub_slab(page);
	uint64_t old = sy__load64(&slab->word);

	if (sy__slub_word_frozen(old) || !sy__slub_word_full(old) || own->partial_slabs >= cache->slot_limit) {
		move_here(cache, page, object);
		return;
	}
	*sy__slub_next(cache, object) = NULL;
	if (!sy__swap64(&slab->word, &old, sy__slub_word_push(old, object, 1) | SY__SLUB_FROZEN)) {
		move_here(cache, page, object);
		return;
	}
	sy__slub_hold(own, page);
	sy__call_end();
}

/* Whether a free into a slab that is not the slot's active one was possible by the slab's word alone. */
static inline bool push(struct sy__slub_cache *cache, void *object, size_t offset)
{
	struct sy__slub_slab *slab = sy__slub_slab(sy__slub_head(cache, object));
	uint64_t old = sy__load64(&slab->word);

	do {
		if (sy__unlikely(!sy__slub_word_stays(old)))
			return false;
		*link_at(object, offset) = sy__slub_word_first(old, object);
	} while (sy__unlikely(!sy__swap64(&slab->word, &old, sy__slub_word_push(old, object, 1))));
	return true;
}

static inline void push_here(struct sy__slub_cache *cache, void *object, const struct sy__slub_slot *own, size_t offset)
{
	bool done = own->partial_slabs != SY__SLUB_DUMMY && push(cache, object, offset);

	sy__call_end();
	if (sy__unlikely(!done))
		place_here(cache, object);
}

static SY__OUT_OF_LINE void free_other_here(struct sy__slub_cache *cache, void *object, const struct sy__slub_slot *own)
{
	push_here(cache, object, own, 0);
}

static SY__OUT_OF_LINE void free_other_behind_here(struct sy__slub_cache *cache, void *object, const struct sy__slub_slot *own)
{
	push_here(cache, object, own, cache->offset);
}

static void *alloc_here(struct sy_cache *cache, unsigned flags)
{
	return alloc_linked(cache, flags, 0);
}

static void free_here(struct sy_cache *cache, void *object)
{
	struct sy__slub_slot *own = slot_here(sy__slub_cache(cache)->slots, sy__call_begin());

	if (sy__unlikely(!sy__slub_is_active(own, object)))
		free_other_here(sy__slub_cache(cache), object, own);
	else
		put_here(own, object, 0);
}

static void *alloc_behind_here(struct sy_cache *cache, unsigned flags)
{
	return alloc_linked(cache, flags, sy__slub_cache(cache)->offset);
}

static void free_behind_here(struct sy_cache *cache, void *object)
{
	struct sy__slub_slot *own = slot_here(sy__slub_cache(cache)->slots, sy__call_begin());

	if (sy__unlikely(!sy__slub_is_active(own, object)))
		free_other_behind_here(sy__slub_cache(cache), object, own);
	else
		put_here(own, object, sy__slub_cache(cache)->offset);
}

/* Other sizes, and flags that ask for more. */
static SY__OUT_OF_LINE void *kmalloc_other_here(size_t size, unsigned flags, struct sy_heap *heap)
{
	struct sy__slub_cache *cache = sy__slub_cache(sy__kmalloc_cache(&sy__slub_heap(heap)->kmalloc, size, flags));
	void *object = cache ? take_here(slot_here(cache->slots, sy__call_begin()), 0) : NULL;

	if (sy__unlikely(!object))
		return sy__here_kmalloc(size, flags, heap);
	return flags & SY_ZERO ? sy__slub_zeroed(cache, object) : object;
}

static inline void *small_here(size_t size, struct sy_heap *heap)
{
	void *object = take_here(slot_here(sy__slub_heap(heap)->small[(size - 1) / 8], sy__call_begin()), 0);

	return sy__likely(object) ? object : sy__here_malloc(size, heap);
}

static void *kmalloc_here(size_t size, unsigned flags, struct sy_heap *heap)
{
	if (sy__unlikely(size - 1 >= SY__KMALLOC_SMALL || flags & (SY_ZERO | SY__KMALLOC_TYPE_FLAGS)))
		return kmalloc_other_here(size, flags, heap);
	return small_here(size, heap);
}

static void *malloc_here(size_t size, struct sy_heap *heap)
{
	if (sy__unlikely(size - 1 >= SY__KMALLOC_SMALL))
		return kmalloc_other_here(size, 0, heap);
	return small_here(size, heap);
}

/* Of an object that is not in its cache's active slab, or of one that the fast path knows nothing of. */
static SY__OUT_OF_LINE void kfree_other_here(void *object, struct sy_heap *heap, const struct sy__slub_slot *own)
{
	struct sy_page *page = sy__head_of(heap, object);

	if (sy__page_is_slab(page) && !sy__slub_slab(page)->cache->offset)
		push_here(sy__slub_slab(page)->cache, object, own, 0);
	else
		sy__here_kfree(object, heap);
}

static void kfree_here(void *object, struct sy_heap *heap)
{
	struct sy__slub_slot *own = slot_here(sy__owner(&sy__slub_heap(heap)->owners, object), sy__call_begin());

	if (sy__unlikely(!sy__slub_is_active(own, object)))
		kfree_other_here(object, heap, own);
	else
		put_here(own, object, 0);
}

static void free_any_here(void *object, struct sy_heap *heap)
{
	const struct sy__owners *owners = &sy__slub_heap(heap)->owners;
	size_t page = sy__owners_index(owners, object);
	struct sy__slub_slot *own;

	if (sy__unlikely(page >= owners->pages)) {
		sy__here_free(object, heap);
		return;
	}
	own = slot_here(owners->words[page], sy__call_begin());
	if (sy__unlikely(!sy__slub_is_active(own, object)))
		kfree_other_here(object, heap, own);
	else
		put_here(own, object, 0);
}

const struct sy_here sy__slub_here = {
	.cache_alloc = alloc_here,
	.cache_free = free_here,
	.kmalloc = kmalloc_here,
	.malloc = malloc_here,
	.kfree = kfree_here,
	.free = free_any_here,
};

/* For a cache of a heap of threads whose layout is known. */
void sy__slub_choose_here(struct sy__slub_cache *cache)
{
	if (!cache->offset)
		return;
	cache->cache.alloc_here = alloc_behind_here;
	cache->cache.free_here = free_behind_here;
}

/* Slots with nothing in them; NULL: no memory. */
struct sy__slub_slot *sy__slub_lines(struct sy_heap *heap)
{
	struct sy__slub_slot *slots = sy__lines_take(heap, sizeof(*slots));

	if (slots)
		sy__slub_dummy(slots)->partial_slabs = SY__SLUB_DUMMY;
	return slots;
}

/* After the classes; false: no memory, nothing kept. */
bool sy__slub_here_init(struct sy__slub_heap *slub)
{
	struct sy_heap *heap = &slub->heap;
	slub->nowhere = sy__slub_lines(heap);
	if (!slub->nowhere || !sy__owners_create(&slub->owners, heap))
		return false;
	for (size_t size = 8; size <= SY__KMALLOC_SMALL; size += 8)
		slub->small[size / 8 - 1] = sy__slub_cache(sy__kmalloc_small(&slub->kmalloc, size))->slots;
	return true;
}

void sy__slub_here_fini(struct sy_heap *heap)
{
	sy__owners_destroy(&sy__slub_heap(heap)->owners);
}

/* False: no memory. */
bool sy__slub_own_pages(struct sy__slub_cache *cache, const struct sy_page *page)
{
	struct sy__slub_heap *slub = sy__slub_heap(cache->cache.heap);

	return sy__owners_set(&slub->owners, &slub->heap, page, (size_t)1 << sy__page_order(page),
	                      cache->offset ? slub->nowhere : cache->slots);
}
