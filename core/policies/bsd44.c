/*
 * bsd44: power-of-two buckets, and pages that never come back.
 *
 * After M. K. McKusick and M. J. Karels, "Design of a General Purpose Memory Allocator for the 4.3BSD UNIX Kernel",
 * Summer USENIX 1988, the kernel malloc of 4.4BSD; one of the three that Bonwick (1994, section 5) compared with the slab
 * allocator. Its idea: nearly all requests of a kernel are small, so small ones shall be fast and large ones frugal.
 *
 * A small request, of up to two pages, is rounded up to a power of two: at least 16 bytes, or sy_sizing.align. Blocks are
 * aligned to their size. Each power has a list of free blocks, its bucket. Allocation takes the first block off the list, a
 * free puts it back in front. If the list is empty, a page (two for the largest bucket) is cut into blocks, which are handed
 * out from the last to the first. A larger request is rounded up to pages and goes straight to the page allocator.
 *
 * kfree is not told the size. As in the paper there is no header, which would double the many requests of exactly a power of
 * two. A table of pages (kmemsizes) tells the bucket of all blocks in a page. Here the page descriptors are the table, and
 * struct bsd44_page is its entry.
 *
 * Pages in a bucket stay there until the heap is destroyed. No other bucket can use them, and the page allocator does not get
 * them back. The paper leaves that for the future, and Bonwick found that it costs the most memory after a peak. So there is
 * no shrink, and memory pressure has no effect.
 *
 *     bucket 64    -> +---- page ----------+    bucket 2048 -> +---- page ----------+
 *                     | use|free|use|free|…|                   |  in use  |  free   |
 *                     +--------------------+                   +--------------------+
 *
 * Fast path: pop and push below, under the heap's lock. Large requests and empty buckets take the slow path, and so does a
 * thread that finds the lock taken.
 *
 * Requests have no type of use here, so the paper's statistics and limits by type are left out. Its large blocks have any
 * number of pages; our page allocator has powers of two. Caches, memory nodes and locks: general.c.
 */
#include "../bug.h"
#include "../kmalloc.h"
#include "../walk.h"
#include "general.h"

#define SMALLEST_SHIFT 4
#define SMALLEST (1u << SMALLEST_SHIFT) /* bytes */
#define LARGEST_SHIFT (SY_PAGE_SHIFT + 1)
#define LARGEST ((size_t)1 << LARGEST_SHIFT) /* bytes; the paper's two pages */
#define BUCKETS (LARGEST_SHIFT - SMALLEST_SHIFT + 1)

struct free_block {
	struct free_block *next;
};

struct bucket {
	struct free_block *first;
	uint64_t free; /* blocks on the list */
};

struct bsd44_page {
	struct sy__general_page general;
	uint8_t bucket;
};
SY_ASSERT_SLAB_STATE(struct bsd44_page, general.map);

struct bsd44_heap {
	struct sy__general_heap general;
	struct bucket buckets[SY_MAX_NODES][BUCKETS];
};

static inline struct bsd44_heap *bsd44_of(struct sy__general_heap *general)
{
	return (struct bsd44_heap *)(void *)general;
}

static inline struct bsd44_page *page_state(struct sy_page *page)
{
	return SY_SLAB_STATE(struct bsd44_page, page);
}

/* Number of the bucket whose blocks have that size. */
static inline unsigned bucket_of(uint32_t bytes)
{
	return (unsigned)__builtin_ctz(bytes) - SMALLEST_SHIFT;
}

static inline uint32_t bucket_bytes(unsigned bucket)
{
	return (uint32_t)1 << (bucket + SMALLEST_SHIFT);
}

/* ---- The fast path. With the heap's lock held ------------------------------------------------------------------ */

static inline void put_first(struct bucket *bucket, void *block)
{
	struct free_block *first = block;

	first->next = bucket->first;
	bucket->first = first;
	bucket->free++;
}

/* Whether a link leads to where a block may start. One that the program has overwritten rarely does. */
static inline bool may_be_block(const struct sy__general_heap *general, const struct free_block *block)
{
	return sy__holds(&general->heap, block) && sy__likely(!((uintptr_t)block & (SMALLEST - 1)));
}

/* Whether a free block leads to another one, or nowhere. If the program has overwritten its link, the block is not taken, and the slow
 * path reports it. So the first block of a bucket is always sound. */
static inline bool leads_on(const struct sy__general_heap *general, const struct free_block *block)
{
	return sy__likely(may_be_block(general, block->next)) || !block->next;
}

/* Instructions of hot calls (docs/cost.md): kmem_cache_alloc 60, kmem_cache_free 43, kmalloc 81, kfree 53. No function is called. */
static inline void *pop(struct sy__general_heap *general, unsigned node, const struct sy__general_want *want)
{
	struct bucket *bucket = &bsd44_of(general)->buckets[node][bucket_of(want->bytes)];
	struct free_block *block = bucket->first;

	if (sy__unlikely(!block) || sy__unlikely(!leads_on(general, block)))
		return NULL;
	bucket->first = block->next;
	bucket->free--;
	return block;
}

static inline void push(struct sy__general_heap *general, unsigned slot, void *block, size_t bytes)
{
	struct sy_page *page = sy__page_of(&general->heap, block);

	(void)slot;
	(void)bytes; /* the page knows */
	put_first(&bsd44_of(general)->buckets[sy__page_node(page)][page_state(page)->bucket], block);
}

/* No block starts in another page than the first. */
static inline struct sy_page *page_in(const struct sy_heap *heap, const void *object)
{
	return sy__page_of(heap, object);
}

/* Bytes from the last place before an address where a block of its page may start. */
static inline size_t beside_start(struct sy_page *page, const void *address)
{
	return (uintptr_t)address & (bucket_bytes(page_state(page)->bucket) - 1) & (SY_PAGE_SIZE - 1);
}

static inline const struct free_block *first_of_bucket(struct sy__general_heap *general, const void *block)
{
	struct sy_page *page = sy__page_of(&general->heap, block);

	return bsd44_of(general)->buckets[sy__page_node(page)][page_state(page)->bucket].first;
}

/* Whether the block was freed last in its bucket; or before that. */
static inline bool was_last(struct sy__general_heap *general, const void *block)
{
	return sy__unlikely(first_of_bucket(general, block) == block);
}

static inline bool was_last_or_before(struct sy__general_heap *general, const void *block)
{
	const struct free_block *first = first_of_bucket(general, block);

	return sy__unlikely(first == block) || (sy__likely(first) && sy__unlikely(first->next == block));
}

static inline bool in_use(struct sy__general_heap *general, struct sy_page *page, const void *address)
{
	if (sy__unlikely(sy__page_head(page) != page || beside_start(page, address)))
		sy__bug_free(&general->heap, address);
	else if (sy__unlikely(was_last_or_before(general, address)))
		sy__bug(&general->heap, SY_BUG_DOUBLE_FREE, address);
	else
		return true;
	return false;
}

static inline size_t block_bytes(struct sy__general_heap *general, const void *block)
{
	return bucket_bytes(page_state(page_in(&general->heap, block))->bucket);
}

#include "general_entries.h"

/* ---- Calls on a slot ------------------------------------------------------------------------------------------- */

static void *bsd44_kmalloc(struct sy_heap *heap, unsigned slot, size_t size, unsigned flags, int node)
{
	struct sy__general_heap *general = sy__general_of(heap);
	struct sy__general_want want;

	if (sy__unlikely(size > LARGEST))
		return sy__general_pages(general, slot, size, flags, node, NULL);
	want.bytes = want.align = sy__general_power(size, general->least);
	return general_take(general, slot, &want, flags, node, &general->live);
}

/* ---- Calls on the thread's own slot ---------------------------------------------------------------------------- */

static void *alloc_this_slot(struct sy_cache *cache, unsigned flags)
{
	struct sy__general_cache *own = sy__general_cache_of(cache);
	void *object = take_this_slot(sy__general_of(cache->heap), &own->want, flags, &own->live);

	return sy__likely(object) ? object : sy__this_slot_cache_alloc(cache, flags);
}

static void free_this_slot(struct sy_cache *cache, void *object)
{
	struct sy__general_cache *own = sy__general_cache_of(cache);

	if (sy__unlikely(!put_this_slot(sy__general_of(cache->heap), object, own->want.bytes, &own->live, was_last)))
		sy__this_slot_cache_free(cache, object);
}

static void *kmalloc_this_slot(size_t size, unsigned flags, struct sy_heap *heap)
{
	struct sy__general_heap *general = sy__general_of(heap);
	struct sy__general_want want;
	void *object = NULL;

	if (sy__likely(size <= LARGEST)) {
		want.bytes = want.align = sy__general_power(size, general->least);
		object = take_this_slot(general, &want, flags, &general->live);
	}
	return sy__likely(object) ? object : sy__this_slot_kmalloc(size, flags, heap);
}

static void *malloc_this_slot(size_t size, struct sy_heap *heap)
{
	return kmalloc_this_slot(size, 0, heap);
}

static void kfree_this_slot(void *object, struct sy_heap *heap)
{
	struct sy__general_heap *general = sy__general_of(heap);

	if (sy__unlikely(!sy__page_is_slab(sy__page_of(heap, object)) || !put_this_slot(general, object, 0, &general->live, was_last)))
		sy__this_slot_kfree(object, heap);
}

/* free, for any address. Only this call checks that a block starts there; callers of the others know that. */
static void free_any_this_slot(void *object, struct sy_heap *heap)
{
	struct sy__general_heap *general = sy__general_of(heap);
	struct sy_page *page;

	if (sy__unlikely(!sy__holds(heap, object))) {
		sy__this_slot_free(object, heap);
		return;
	}
	page = sy__page_of(heap, object);
	if (sy__unlikely(!sy__page_is_slab(page) || sy__page_head(page) != page || beside_start(page, object) ||
	                 !put_this_slot(general, object, 0, &general->live, was_last_or_before)))
		sy__this_slot_kfree(object, heap);
}

static const struct sy_this_slot entries_this_slot = {
	.cache_alloc = sy__this_slot_cache_alloc,
	.cache_free = sy__this_slot_cache_free,
	.kmalloc = kmalloc_this_slot,
	.malloc = malloc_this_slot,
	.kfree = kfree_this_slot,
	.free = free_any_this_slot,
};

/* ---- Off the fast path ----------------------------------------------------------------------------------------- */

/* Cuts new pages into blocks. The last block becomes the first of the list. */
static void *add(struct sy__general_heap *general, struct sy_page *page, const struct sy__general_want *want)
{
	unsigned number = bucket_of(want->bytes);
	struct bucket *bucket = &bsd44_of(general)->buckets[sy__page_node(page)][number];
	char *memory = sy__page_address(&general->heap, page);

	if (sy__unlikely(bucket->first && !leads_on(general, bucket->first))) {
		sy__bug(&general->heap, SY_BUG_WRITE_AFTER_FREE, bucket->first->next);
		bucket->first = NULL;
		bucket->free = 0;
	}
	page_state(page)->bucket = (uint8_t)number;
	for (size_t at = 0; at < SY_PAGE_SIZE << sy__page_order(page); at += want->bytes)
		put_first(bucket, memory + at);
	return pop(general, sy__page_node(page), want);
}

static unsigned order(const struct sy__general_heap *general, const struct sy__general_want *want)
{
	(void)general;
	return sy__order_of(want->bytes);
}

/* Constructors, destructors and grace periods are the slow calls' work. */
static void choose_entries(struct sy_cache *cache)
{
	if (!cache->constructor)
		cache->alloc_this_slot = alloc_this_slot;
	if (!cache->destructor && !(cache->flags & SY_CACHE_TYPESAFE_BY_RCU))
		cache->free_this_slot = free_this_slot;
}

/* Blocks are aligned to their size, so an object of larger alignment takes a larger block. */
static bool bsd44_cache_init(struct sy_cache *cache)
{
	struct sy__general_cache *own = sy__general_cache_of(cache);
	size_t bytes = sy__general_object_bytes(cache);

	if (!bytes)
		return false;
	cache->size = (uint32_t)bytes;
	if (bytes <= LARGEST)
		cache->size = own->want.bytes = own->want.align = sy__general_power(bytes > cache->align ? bytes : cache->align, SMALLEST);
	if (own->want.bytes && cache->heap->threads)
		choose_entries(cache);
	return true;
}

static size_t bsd44_usable_size(struct sy_heap *heap, const void *object)
{
	struct sy_page *page = sy__head_of(heap, object);

	return sy__page_is_large(page) ? sy__large_usable(page) : bucket_bytes(page_state(page)->bucket);
}

static uint64_t unused_bytes(struct sy__general_heap *general)
{
	struct bsd44_heap *bsd44 = bsd44_of(general);
	uint64_t bytes = 0;

	for (unsigned node = 0; node < general->heap.nodes; node++)
		for (unsigned i = 0; i < BUCKETS; i++)
			bytes += bsd44->buckets[node][i].free * bucket_bytes(i);
	return bytes;
}

/* ---- Walks ---------------------------------------------------------------------------------------------------- */

static void mark_bucket(struct sy__walk *walk, const void *context)
{
	const struct bucket *bucket = context;

	sy__walk_chain(walk, bucket->first, offsetof(struct free_block, next), bucket->free, SY_PART_FREE, "bucket", 0);
}

static void bsd44_walk(struct sy__walk *walk, struct sy_page *page)
{
	const struct bsd44_heap *bsd44 = (const struct bsd44_heap *)(const void *)walk->heap;
	unsigned number = page_state(page)->bucket;
	uint32_t size = bucket_bytes(number);
	const struct sy__walk_grid grid = { 0, size, (uint32_t)(walk->slab.bytes / size), mark_bucket,
		                            &bsd44->buckets[sy__page_node(page)][number], SY_PART_USED };

	walk->slab.list = "bucket";
	if (sy__walk_slab(walk))
		sy__walk_objects(walk, &grid);
}

/* ---- Checks --------------------------------------------------------------------------------------------------- */

struct survey {
	uint64_t blocks; /* in all pages */
	const char *wrong;
};

static bool survey_page(void *context, struct sy_page *page)
{
	struct survey *survey = context;
	unsigned bucket = page_state(page)->bucket;

	if (!sy__page_is_slab(page))
		return true;
	if (bucket >= BUCKETS)
		survey->wrong = "bsd44: a page belongs to no bucket";
	else if (sy__page_order(page) != sy__order_of(bucket_bytes(bucket)))
		survey->wrong = "bsd44: a bucket has pages of another order than its own";
	else
		survey->blocks += (SY_PAGE_SIZE << sy__page_order(page)) / bucket_bytes(bucket);
	return !survey->wrong;
}

static const char *check_bucket(struct bsd44_heap *bsd44, unsigned node, unsigned number)
{
	struct sy_heap *heap = &bsd44->general.heap;
	const struct bucket *bucket = &bsd44->buckets[node][number];
	uint64_t left = bucket->free;

	for (struct free_block *block = bucket->first; block; block = block->next) {
		struct sy_page *page = sy__pages_find(heap, block);

		if (!left--)
			return "bsd44: a bucket has more free blocks than it counts, or its list runs in a circle";
		if (!page || !sy__page_is_slab(page) || sy__page_node(page) != node)
			return "bsd44: a free block lies in no page of its heap and node";
		if (page_state(page)->bucket != number)
			return "bsd44: a free block lies in a page of another bucket";
		if ((size_t)((char *)block - (char *)sy__page_address(heap, page)) & (bucket_bytes(number) - 1))
			return "bsd44: a free block does not start where its page was cut";
	}
	return left ? "bsd44: a bucket has fewer free blocks than it counts" : NULL;
}

static const char *check_buckets(struct sy__general_heap *general)
{
	struct bsd44_heap *bsd44 = bsd44_of(general);
	struct survey survey = { 0 };
	uint64_t free = 0;

	sy__pages_walk(&bsd44->general.heap, survey_page, &survey);
	for (unsigned node = 0; node < bsd44->general.heap.nodes; node++) {
		for (unsigned i = 0; i < BUCKETS && !survey.wrong; i++) {
			survey.wrong = check_bucket(bsd44, node, i);
			free += bsd44->buckets[node][i].free;
		}
	}
	if (!survey.wrong && survey.blocks - free != sy__general_in_use(&bsd44->general))
		survey.wrong = "bsd44: the blocks that are not free are not as many as the objects in use";
	return survey.wrong;
}

/* ---- The policy ----------------------------------------------------------------------------------------------- */

static const struct sy__general_ops ops = {
	.pop = pop,
	.push = push,
	.add = add,
	.order = order,
	.unused_bytes = unused_bytes,
	.check = check_buckets,
};

static bool bsd44_heap_init(struct sy_heap *heap)
{
	sy__general_init(heap, &ops, SMALLEST);
	return true;
}

const struct sy_policy sy__bsd44 = {
	.name = "bsd44",
	.summary = "4.4BSD: power-of-two buckets, whose pages are never given back",
	.paper = "McKusick and Karels, Design of a General Purpose Memory Allocator for the 4.3BSD UNIX Kernel, USENIX 1988",
	.heap_bytes = sizeof(struct bsd44_heap),
	.cache_bytes = sizeof(struct sy__general_cache),
	.cache_alloc = entry_alloc,
	.cache_free = entry_free,
	.kmalloc = bsd44_kmalloc,
	.kfree = entry_kfree,
	.this_slot = &entries_this_slot,
	.heap_init = bsd44_heap_init,
	.cache_init = bsd44_cache_init,
	.cache_fini = sy__general_cache_fini,
	.usable_size = bsd44_usable_size,
	.grace_passed = sy__general_grace_passed,
	.counts = sy__general_counts,
	.check = sy__general_check,
	.unused_bytes = sy__general_unused_bytes,
	.walk = bsd44_walk,
	.never_reclaims = true,
};
