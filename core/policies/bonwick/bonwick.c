/*
 * Bonwick's slab allocator: caches of constructed objects, as in SunOS 5.4.
 *
 * After "The Slab Allocator: An Object-Caching Kernel Memory Allocator" (Bonwick 1994), whose sections are named here
 * and in the other files. Constructing an object often costs more than finding memory for it. So a cache keeps free objects
 * constructed: constructors run when a slab is born, destructors when it ends, and in between objects leave and return
 * constructed (section 2).
 *
 * 1. Slabs (3.2). A slab is one block of pages, cut into buffers of one size, with a count of the buffers that are out. When
 *    the count is 0 the pages can go: no tree, no bitmap, no coalescing.
 * 2. Small objects, below 1/8 page (3.2.2). One page; slab data is its last 32 bytes, so an address leads there by
 *    arithmetic. A free buffer holds the link to the next one in its last word, since programs that write to freed memory
 *    mostly write to its start. Constructed objects get an extra word, as the link would destroy their state.
 * 3. Large objects (3.2.3). Slab data and one bufctl for each buffer come from two caches of small objects, and a hash
 *    table finds the bufctl of a buffer that comes back (hash.c). Free buffers are untouched.
 * 4. The list (3.3). All slabs of a cache are on one circular list: first the empty ones (every buffer is out), then
 *    the partial ones, then the complete ones (every buffer is back). The cache's freelist points to the first that is
 *    not empty. Allocation takes from there: complete slabs are broken up only when no partial one is left.
 *      A slab whose last buffer leaves becomes empty where it stands, and the freelist moves on to the next.
 *      An empty slab to which a buffer returns moves to the freelist's place, before all others with free buffers.
 *      A slab whose last buffer returns moves to the tail (3.4), so complete slabs are in order of that time.
 * 5. Nothing goes back on its own (3.1, 3.4). When memory is short the page allocator asks for it (reap), and gets all complete
 *    slabs except the working set: those that were in use within the last 15 seconds (working_set_seconds). A shrink, or a
 *    request that would fail otherwise, gets those too.
 * 6. Colour (4.3). Each new slab starts its buffers one alignment unit later than the one before, as far as there is unused
 *    space, then from 0 again. So buffers spread evenly over a processor's cache lines and memory buses.
 * 7. A CPU layer in front of the slabs (7.2) may keep free objects for each slot: percpu=N (percpu.c) or magazine=on
 *    (magazine.c). By default there is none.
 * 8. General allocation (3.1) takes the nearest of 37 caches from 8 bytes to 9 KiB, found by table; larger requests are
 *    pages.
 *
 * Beyond the paper. Pages come in powers of two, and so do slabs of large objects (geometry.c). Memory nodes: a new slab is of
 * the requested node; existing slabs serve any request, except that requests for one node only (SY_THISNODE) search the list.
 * Kinds of memory (SY_DMA, …) are a property of caches, not of single requests. RCU-typesafe caches have grace periods.
 *
 * Fast path: pop and push below, under the cache's lock; or those of the layer in front. A thread that finds the lock taken makes
 * a slow call. Counted as slow: allocations that grew the cache.
 *
 * Locks (level 2 of types.h). Caches share no state (3.1): sy__bonwick_cache.lock covers all slabs of one cache. No policy lock is
 * taken under another. A slot's state belongs to the caller in its local section. No lock is held while pages, slab data or
 * bufctls are taken or given back, or while constructors and destructors run.
 *
 * Invariants, verified by check.c: the list is sorted as said; freelist points to its first slab that is not
 * empty; refs + length of the slab's own freelist = buffers; a buffer of a large object is on its slab's freelist or in
 * the hash table, once; buffers that are out are the clients' or kept by a slot.
 *
 * More files: percpu.c (lists per CPU), magazine.c, magazine_check.c, slabs.c (life of a slab), hash.c, geometry.c (layout,
 * general caches), check.c, walk.c.
 */
#include "../../bug.h"
#include "../../geometry.h"
#include "../../this_slot.h"
#include "bonwick.h"

/* For functions that take a lock, so that their callers need no stack frame. */
#define NOT_INLINE __attribute__((__noinline__))

static SY__COLD void place(struct sy__bonwick_cache *cache, struct sy__bonwick_slab *slab);

/* ---- The fast path. With the cache's lock held ---------------------------------------------------------------- */

static inline bool nothing_free(const struct sy__bonwick_cache *cache)
{
	return cache->freelist == &cache->slabs;
}

/* The last thing that a call does under the lock: a report may run the program's own handler of SIGABRT, which may allocate. */
static SY__COLD void tell(struct sy__bonwick_cache *cache, enum sy_bug kind, const void *buffer)
{
	sy__unlock(&cache->lock);
	sy__bug(cache->cache.heap, kind, buffer);
	sy__lock(&cache->lock);
}

/* A link leads to another buffer in the same page, or nowhere. If the program has overwritten it, the buffer is the last of its slab from
 * now on, and those behind it are lost. */
static inline void *pop_small(const struct sy__bonwick_cache *cache, struct sy__bonwick_slab *slab, bool *lost)
{
	void *buffer = slab->free, *next = *sy__bonwick_next(cache, buffer);

	slab->free = next;
	if (sy__unlikely(((uintptr_t)next ^ (uintptr_t)buffer) >> SY_PAGE_SHIFT) && sy__unlikely(next)) {
		slab->free = NULL;
		*lost = true;
	}
	return buffer;
}

static void *pop_large(struct sy__bonwick_cache *cache, struct sy__bonwick_slab *slab)
{
	struct sy__bonwick_bufctl *bufctl = slab->free;

	slab->free = bufctl->next;
	sy__bonwick_hash_insert(&cache->hash, bufctl);
	return bufctl->buffer;
}

/* NULL: it is free already, as far as the first two on the slab's list tell. */
static inline struct sy__bonwick_slab *push_small(const struct sy__bonwick_cache *cache, void *buffer, bool *was_empty)
{
	struct sy__bonwick_slab *slab = sy__bonwick_slab_at(buffer);

	if (sy__unlikely(!slab->refs || slab->free == buffer || (slab->free && *sy__bonwick_next(cache, slab->free) == buffer)))
		return NULL;
	*was_empty = !slab->free;
	*sy__bonwick_next(cache, buffer) = slab->free;
	slab->free = buffer;
	return slab;
}

static struct sy__bonwick_slab *push_large(struct sy__bonwick_cache *cache, void *buffer, bool *was_empty)
{
	struct sy__bonwick_bufctl *bufctl = sy__bonwick_hash_remove(&cache->hash, buffer);
	struct sy__bonwick_slab *slab = sy__likely(bufctl) ? bufctl->slab : NULL;

	if (sy__unlikely(!slab))
		return NULL;
	*was_empty = !slab->free;
	bufctl->next = slab->free;
	slab->free = bufctl;
	return slab;
}

/* What was freed and is not out: a small buffer, as callers have seen that one starts there; a large one, or an address in one. */
static SY__COLD void tell_free(struct sy__bonwick_cache *cache, const void *buffer)
{
	struct sy_heap *heap = cache->cache.heap;
	struct sy_page *head = cache->large && !cache->cache.supplier ? sy__pages_find(heap, buffer) : NULL;
	const struct sy__bonwick_bufctl *at = head ? sy__bonwick_page(head)->slab->free : NULL;

	while (at && at->buffer != buffer)
		at = at->next;
	if (!head || at) {
		tell(cache, SY_BUG_DOUBLE_FREE, buffer);
		return;
	}
	sy__unlock(&cache->lock);
	sy__bug_free(heap, buffer);
	sy__lock(&cache->lock);
}

/* Whether a buffer starts at an address in a slab of the cache. Of large ones the hash tells when they are freed. */
static inline bool is_start(const struct sy__bonwick_cache *cache, void *address)
{
	struct sy__bonwick_slab *slab = sy__bonwick_slab_at(address);
	uint32_t distance;

	if (cache->large)
		return true;
	distance = (uint32_t)((uintptr_t)address & (SY_PAGE_SIZE - 1)) - slab->colour * cache->cache.align;
	return sy__starts_in_row(cache->divider, distance, (size_t)cache->objects * cache->cache.size);
}

/*
 * Takes a buffer of the slab that the freelist points to. Instructions of hot calls (docs/cost.md): kmem_cache_alloc 63,
 * kmem_cache_free 195, kmalloc 86, kfree 233. The hot free completes its slab, so it moves the slab and reads the clock; where others
 * keep the slab partial, it takes a third of that. Functions are called for large objects only.
 */
static inline bool pop(struct sy__bonwick_cache *cache, void **buffer)
{
	struct sy__bonwick_slab *slab;
	bool lost = false;

	if (sy__unlikely(nothing_free(cache)))
		return false;
	slab = sy__bonwick_linked(cache->freelist);
	*buffer = sy__likely(!cache->large) ? pop_small(cache, slab, &lost) : pop_large(cache, slab);
	cache->complete -= slab->refs == 0;
	cache->allocated++;
	slab->refs++;
	if (sy__unlikely(!slab->free))
		cache->freelist = slab->link.next;
	if (sy__unlikely(lost))
		tell(cache, SY_BUG_WRITE_AFTER_FREE, *buffer);
	return true;
}

static inline void push(struct sy__bonwick_cache *cache, void *buffer)
{
	bool was_empty;
	struct sy__bonwick_slab *slab = sy__likely(!cache->large) ? push_small(cache, buffer, &was_empty)
	                                                          : push_large(cache, buffer, &was_empty);

	if (sy__unlikely(!slab)) {
		tell_free(cache, buffer);
		return;
	}
	cache->allocated--;
	slab->refs--;
	if (sy__unlikely(was_empty || !slab->refs))
		place(cache, slab);
}

/* ---- Calls without a layer: on any slot, and the thread's own -------------------------------------------------- */

void *sy__bonwick_take_shared(struct sy__bonwick_cache *cache, unsigned slot)
{
	void *buffer = NULL;

	(void)slot;
	sy__lock(&cache->lock);
	if (sy__likely(pop(cache, &buffer)))
		cache->allocations++;
	sy__unlock(&cache->lock);
	return buffer;
}

NOT_INLINE void sy__bonwick_put_shared(struct sy__bonwick_cache *cache, void *buffer)
{
	sy__lock(&cache->lock);
	push(cache, buffer);
	sy__unlock(&cache->lock);
}

static NOT_INLINE void *alloc(struct sy_cache *common, unsigned slot, unsigned flags, int node)
{
	struct sy__bonwick_cache *cache = sy__bonwick_cache(common);
	void *object = sy__likely(!(flags & SY_THISNODE)) ? sy__bonwick_take_shared(cache, slot) : NULL;

	if (sy__unlikely(!object))
		return sy__bonwick_alloc_slow(cache, slot, flags, node, sy__bonwick_take_shared);
	return sy__unlikely(flags & SY_ZERO) ? sy__zeroed(&cache->cache, object) : object;
}

static void free_object(struct sy_cache *cache, unsigned slot, void *object)
{
	(void)slot;
	sy__bonwick_put_shared(sy__bonwick_cache(cache), object);
}

static void *alloc_this_slot(struct sy_cache *common, unsigned flags)
{
	struct sy__bonwick_cache *cache = sy__bonwick_cache(common);
	void *buffer;

	if (sy__unlikely(flags & SY_THISNODE || sy__call_begin_locked(&cache->lock) == SY__DUMMY_OFFSET))
		return sy__this_slot_cache_alloc(common, flags);
	if (sy__unlikely(!pop(cache, &buffer))) {
		sy__unlock(&cache->lock);
		return sy__this_slot_cache_alloc(common, flags);
	}
	cache->allocations++;
	sy__call_end_locked(&cache->lock);
	return sy__unlikely(flags & SY_ZERO) ? sy__zeroed(&cache->cache, buffer) : buffer;
}

static void free_this_slot(struct sy_cache *common, void *object)
{
	struct sy__bonwick_cache *cache = sy__bonwick_cache(common);

	if (sy__unlikely(sy__call_begin_locked(&cache->lock) == SY__DUMMY_OFFSET)) {
		sy__this_slot_cache_free(common, object);
		return;
	}
	push(cache, object);
	sy__call_end_locked(&cache->lock);
}

const struct sy__bonwick_layer sy__bonwick_unlayered = {
	.alloc = alloc,
	.free = free_object,
	.alloc_this_slot = alloc_this_slot,
	.free_this_slot = free_this_slot,
};

/* ---- Calls through whatever layer a cache has ------------------------------------------------------------------- */

static void *bonwick_alloc(struct sy_cache *cache, unsigned slot, unsigned flags, int node)
{
	return sy__bonwick_cache(cache)->layer->alloc(cache, slot, flags, node);
}

static void bonwick_free(struct sy_cache *cache, unsigned slot, void *object)
{
	sy__bonwick_cache(cache)->layer->free(cache, slot, object);
}

static void *bonwick_kmalloc(struct sy_heap *heap, unsigned slot, size_t size, unsigned flags, int node)
{
	const struct sy__bonwick_heap *bonwick = sy__bonwick_heap(heap);

	if (sy__unlikely(size > SY__BONWICK_LARGEST))
		return sy__large_alloc(heap, slot, size, flags, node);
	return bonwick_alloc(bonwick->general[bonwick->class_of[(size + 7) / 8]], slot, flags, node);
}

static void bonwick_kfree(struct sy_heap *heap, unsigned slot, void *object)
{
	struct sy_page *page = sy__head_of(heap, object);

	if (sy__unlikely(!sy__page_is_slab(page)))
		sy__large_free(heap, slot, page, object);
	else if (sy__unlikely(!is_start(sy__bonwick_page(page)->cache, object)))
		sy__bug_free(heap, object);
	else
		bonwick_free(&sy__bonwick_page(page)->cache->cache, slot, object);
}

static void *kmalloc_this_slot(size_t size, unsigned flags, struct sy_heap *heap)
{
	const struct sy__bonwick_heap *bonwick = sy__bonwick_heap(heap);
	void *object = NULL;

	if (sy__likely(size <= SY__BONWICK_LARGEST)) {
		struct sy_cache *cache = bonwick->general[bonwick->class_of[(size + 7) / 8]];

		object = cache->alloc_this_slot(cache, flags);
	}
	return sy__likely(object) ? object : sy__this_slot_kmalloc(size, flags, heap);
}

static void *malloc_this_slot(size_t size, struct sy_heap *heap)
{
	return kmalloc_this_slot(size, 0, heap);
}

static void kfree_this_slot(void *object, struct sy_heap *heap)
{
	struct sy_page *page = sy__head_of(heap, object);
	struct sy_cache *cache;

	if (sy__unlikely(!sy__page_is_slab(page))) {
		sy__this_slot_kfree(object, heap);
		return;
	}
	cache = &sy__bonwick_page(page)->cache->cache;
	if (sy__unlikely(!is_start(sy__bonwick_page(page)->cache, object)))
		sy__bug_free(heap, object);
	else
		cache->free_this_slot(cache, object);
}

/* A cache's own calls are its layer's (geometry.c). */
static const struct sy_this_slot entries_this_slot = {
	.cache_alloc = sy__this_slot_cache_alloc,
	.cache_free = sy__this_slot_cache_free,
	.kmalloc = kmalloc_this_slot,
	.malloc = malloc_this_slot,
	.kfree = kfree_this_slot,
};

/* ---- The list ------------------------------------------------------------------------------------------------- */

static void move_before(struct sy_list *link, struct sy_list *place)
{
	sy__list_remove(link);
	sy__list_add_tail(place, link);
}

/* A buffer returned to a slab that was empty, or that is complete now: moves the slab to the freelist's place, or to the tail. */
static SY__COLD void place(struct sy__bonwick_cache *cache, struct sy__bonwick_slab *slab)
{
	if (cache->freelist == &slab->link)
		cache->freelist = slab->link.next;
	if (slab->refs) {
		move_before(&slab->link, cache->freelist);
		cache->freelist = &slab->link;
		return;
	}
	move_before(&slab->link, &cache->slabs);
	if (nothing_free(cache))
		cache->freelist = &slab->link;
	slab->completed = sy__bonwick_time();
	cache->complete++;
}

static bool on_node(const struct sy__bonwick_cache *cache, struct sy__bonwick_slab *slab, int node)
{
	return sy__page_node(sy__page_of(cache->cache.heap, sy__bonwick_memory(cache, slab))) == node;
}

/* Makes the freelist point to a slab of this node; false: none has a free buffer. A complete slab may then stand among partial ones,
 * until a buffer is taken. */
static bool prefer_node(struct sy__bonwick_cache *cache, int node)
{
	for (struct sy_list *at = cache->freelist; at != &cache->slabs; at = at->next) {
		if (!on_node(cache, sy__bonwick_linked(at), node))
			continue;
		if (at != cache->freelist) {
			move_before(at, cache->freelist);
			cache->freelist = at;
		}
		return true;
	}
	return false;
}

/* ---- Off the fast path ---------------------------------------------------------------------------------------- */

static void *take_of_node(struct sy__bonwick_cache *cache, int node)
{
	void *buffer = NULL;

	sy__lock(&cache->lock);
	if (prefer_node(cache, node) && pop(cache, &buffer))
		cache->allocations++;
	sy__unlock(&cache->lock);
	return buffer;
}

/* Whether the request accepts memory of one node only. A supplier's memory has no node. */
static bool insists(const struct sy__bonwick_cache *cache, unsigned flags, int node)
{
	return flags & SY_THISNODE && node != SY_ANY_NODE && cache->cache.heap->nodes > 1 && !cache->cache.supplier;
}

SY__COLD void *sy__bonwick_alloc_slow(struct sy__bonwick_cache *cache, unsigned slot, unsigned flags, int node,
                                      void *(*take)(struct sy__bonwick_cache *, unsigned slot))
{
	struct sy_heap *heap = cache->cache.heap;
	bool one_node = insists(cache, flags, node);
	void *object;

	if (node != SY_ANY_NODE && (node < 0 || (unsigned)node >= heap->nodes)) {
		if (flags & SY_THISNODE)
			return NULL;
		node = SY_ANY_NODE;
	}
	sy__count_slow(heap, &heap->counters.slow_allocs);
	do
		object = one_node ? take_of_node(cache, node) : take(cache, slot);
	while (!object && sy__bonwick_grow(cache, slot, flags, node));
	return object && flags & SY_ZERO ? sy__zeroed(&cache->cache, object) : object;
}

/* ---- Lists of buffers, for layers ------------------------------------------------------------------------------ */

void *sy__bonwick_take_list(struct sy__bonwick_cache *cache, uint32_t most, uint32_t *count)
{
	void *list = NULL, *buffer;

	*count = 0;
	sy__lock(&cache->lock);
	for (; *count < most && pop(cache, &buffer); ++*count) {
		*sy__bonwick_next(cache, buffer) = list;
		list = buffer;
	}
	sy__unlock(&cache->lock);
	return list;
}

void sy__bonwick_put_list(struct sy__bonwick_cache *cache, void *buffers)
{
	if (!buffers)
		return;
	sy__lock(&cache->lock);
	while (buffers) {
		void *next = *sy__bonwick_next(cache, buffers);

		push(cache, buffers);
		buffers = next;
	}
	sy__unlock(&cache->lock);
}

void sy__bonwick_put_many(struct sy__bonwick_cache *cache, void *const *buffers, uint32_t count)
{
	sy__lock(&cache->lock);
	for (uint32_t i = 0; i < count; i++)
		push(cache, buffers[i]);
	sy__unlock(&cache->lock);
}

/* ---- The policy ----------------------------------------------------------------------------------------------- */

static size_t bonwick_usable_size(struct sy_heap *heap, const void *object)
{
	struct sy_page *page = sy__head_of(heap, object);

	if (sy__page_is_large(page))
		return sy__large_usable(page);
	return sy__bonwick_page(page)->cache->cache.object_size;
}

static const struct sy_tunable tunables[] = {
	[BONWICK_WORKING_SET_SECONDS] = { "working_set_seconds", 15, 0, 86400, NULL, false,
	                                  "seconds that an unused slab stays when memory becomes short" },
	[BONWICK_COLOUR] = { "colour", 1, 0, 1, SY__OFF_ON, false, "let slabs start their objects at different offsets" },
	[BONWICK_PERCPU] = { "percpu", 0, 0, 65535, NULL, false, "objects in each of a CPU's two lists; 0: CPUs have none" },
	[BONWICK_MAGAZINE] = { "magazine", 0, 0, 1, SY__OFF_ON, false,
	                       "magazines of free objects for CPUs, and a depot of them, instead of percpu" },
};

extern const struct sy_policy sy__bonwick;

const struct sy_policy sy__bonwick = {
	.name = "bonwick",
	.summary = "SunOS 5.4, the first slab allocator: constructed objects, sorted slabs",
	.paper = "Bonwick, The Slab Allocator: An Object-Caching Kernel Memory Allocator, USENIX 1994; "
	         "percpu: McKenney and Slingwine, USENIX 1993; magazine: Bonwick and Adams, USENIX 2001",
	.tunables = tunables,
	.tunable_count = sizeof(tunables) / sizeof(tunables[0]),
	.heap_bytes = sizeof(struct sy__bonwick_heap),
	.cache_bytes = sizeof(struct sy__bonwick_cache),
	.cache_alloc = bonwick_alloc,
	.cache_free = bonwick_free,
	.kmalloc = bonwick_kmalloc,
	.kfree = bonwick_kfree,
	.this_slot = &entries_this_slot,
	.heap_init = sy__bonwick_heap_init,
	.cache_init = sy__bonwick_cache_init,
	.cache_fini = sy__bonwick_cache_fini,
	.usable_size = bonwick_usable_size,
	.shrink = sy__bonwick_shrink,
	.reap = sy__bonwick_reap,
	.drain = sy__bonwick_drain,
	.grace_passed = sy__bonwick_grace_passed,
	.counts = sy__bonwick_counts,
	.geometry = sy__bonwick_geometry,
	.check = sy__bonwick_check,
	.takes_suppliers = true,
	.walk = sy__bonwick_walk,
	.walk_supplied = sy__bonwick_walk_supplied,
};
