/*
 * What three allocators share that were made before object caches: those that Bonwick (1994, section 5) compared with the slab
 * allocator. Their interface is kmem_alloc and kmem_free. This file gives them caches, memory nodes and a page allocator. The
 * policy adds its own part as struct sy__general_ops: taking a block from its pages, taking one back, adding pages. The calls
 * themselves are in general_entries.h.
 *
 * Caches. An object is a block of the size of its cache, just as kmalloc gives it. Nothing is kept constructed: constructors run at
 * every allocation and destructors at every free. Objects of an RCU-typesafe cache have a footer, by which they wait for a grace
 * period before they are freed, so that their contents stay as readers may still see them. A cache counts its objects, so that it
 * cannot be destroyed while some are in use.
 *
 * Sizes. The original kmem_free was told the size (SVr4, SunOS); kfree is not. No policy puts a header before objects, which would
 * double each power of two. The page descriptor or a bitmap knows the size. Requests beyond the policy's largest block go straight
 * to the page allocator, which rounds them up to powers of two of pages.
 *
 * Nodes. The papers have none. Here each node has its own arena, of the pages that lie on it. A request goes to the arena of its
 * node, or of the node nearest to its slot. If that has no block, it asks for pages of this node alone; then, unless the request
 * insists on the node, it tries the other arenas; last it takes pages from anywhere. Pages join the arena of their own node.
 * If no pages of the preferred order are to be had, the smallest sufficient order is tried.
 *
 * slow_allocs counts the allocations that needed more than one look at their arena, or pages. slow_frees counts the frees that
 * gave pages back.
 *
 * Locks. sy__general_heap.lock covers the policy's structures on all nodes, the states and maps of pages, the counts of objects and
 * the counters written here. Pages are taken without it but given back with it held; the page allocator's locks come after it.
 */
#include "general.h"

#include "../kmalloc.h"
#include "../backend/metadata.h"

/* Stands behind objects of RCU-typesafe caches. The cache outlives its objects and knows their size. */
struct footer {
	struct sy_deferred deferred;
	struct sy__general_cache *cache;
};

void sy__general_init(struct sy_heap *heap, const struct sy__general_ops *ops, uint32_t unit)
{
	struct sy__general_heap *general = sy__general_of(heap);

	if (heap->threads)
		sy__fast_calls_lock();
	general->ops = ops;
	general->least = heap->sizing.align > unit ? heap->sizing.align : unit;
}

/* ---- Pages ---------------------------------------------------------------------------------------------------- */

static size_t map_bytes(const struct sy__general_heap *general, const struct sy_page *page)
{
	return general->ops->map_bytes << sy__page_order(page);
}

/* Pages with their map; NULL: no memory. */
static struct sy_page *take_pages(struct sy__general_heap *general, unsigned slot, unsigned order, unsigned flags,
                                  int node)
{
	struct sy_heap *heap = &general->heap;
	struct sy_page *page;
	uint32_t *map;

	flags &= ~(unsigned)(SY_ZERO | SY_MOVABLE);
	page = sy__pages_take(heap, slot, order, flags, node, SY_USE_SLAB);
	if (!page || !general->ops->map_bytes)
		return page;
	map = sy__metadata_take(heap, map_bytes(general, page));
	if (!map) {
		sy__pages_give(heap, slot, page);
		return NULL;
	}
	SY_SLAB_STATE(struct sy__general_page, page)->map = map;
	return page;
}

void sy__general_give(struct sy__general_heap *general, unsigned slot, struct sy_page *page)
{
	sy__metadata_give(&general->heap, SY_SLAB_STATE(struct sy__general_page, page)->map, map_bytes(general, page));
	general->heap.counters.slow_frees++;
	sy__pages_give(&general->heap, slot, page);
}

static struct sy_page *take_pages_of_some_order(struct sy__general_heap *general, unsigned slot,
                                                const struct sy__general_want *want, unsigned flags, int node)
{
	unsigned order = general->ops->order(general, want), least = sy__order_of(want->bytes);
	struct sy_page *page = take_pages(general, slot, order, flags, node);

	if (!page && least < order)
		page = take_pages(general, slot, least, flags, node);
	return page;
}

/* Takes a block from new pages. */
static void *from_pages(struct sy__general_heap *general, unsigned slot, const struct sy__general_want *want,
                        unsigned flags, int node, uint64_t *live)
{
	struct sy_page *page = take_pages_of_some_order(general, slot, want, flags, node);
	void *block;

	if (!page)
		return NULL;
	sy__lock(&general->lock);
	block = general->ops->add(general, page, want);
	++*live;
	general->heap.counters.slow_allocs++;
	sy__unlock(&general->lock);
	return block;
}

/* ---- Nodes ---------------------------------------------------------------------------------------------------- */

/* Takes a block from one of `count` arenas, from that of node `first` on. With the lock held. */
static void *from_arenas(struct sy__general_heap *general, const struct sy__general_want *want, unsigned first,
                         unsigned count, uint64_t *live)
{
	unsigned nodes = general->heap.nodes;

	for (unsigned i = 0; i < count; i++) {
		void *block = general->ops->pop(general, (first + i) % nodes, want);

		if (block) {
			++*live;
			general->heap.counters.slow_allocs++;
			return block;
		}
	}
	return NULL;
}

/* Takes a block from new pages of this node, or from another node's arena. */
static void *from_nodes(struct sy__general_heap *general, unsigned slot, const struct sy__general_want *want,
                        unsigned flags, unsigned home, uint64_t *live)
{
	void *block = NULL;

	if (home < sy__pages_nodes(general->heap.pages)) /* a heap may have nodes without memory */
		block = from_pages(general, slot, want, flags | SY_THISNODE | SY_NO_RECLAIM, (int)home, live);
	if (block)
		return block;
	sy__lock(&general->lock);
	block = from_arenas(general, want, home + 1, general->heap.nodes - 1, live);
	sy__unlock(&general->lock);
	return block;
}

static SY__COLD void *after_coalescing(struct sy__general_heap *general, unsigned slot,
                                       const struct sy__general_want *want, unsigned home, unsigned nodes, uint64_t *live)
{
	void *block;

	sy__lock(&general->lock);
	general->ops->coalesce(general, slot);
	block = from_arenas(general, want, home, nodes, live);
	sy__unlock(&general->lock);
	return block;
}

SY__COLD void *sy__general_refill(struct sy__general_heap *general, unsigned slot, const struct sy__general_want *want,
                                  unsigned flags, int node, uint64_t *live)
{
	unsigned home = sy__general_node(general, slot, node);
	unsigned nodes = flags & SY_THISNODE ? 1 : general->heap.nodes;
	void *block = NULL;

	if (nodes > 1)
		block = from_nodes(general, slot, want, flags, home, live);
	if (!block)
		block = from_pages(general, slot, want, flags, (int)home, live);
	if (!block && general->ops->coalesce)
		block = after_coalescing(general, slot, want, home, nodes, live);
	return block;
}

/* ---- Objects that are pages ----------------------------------------------------------------------------------- */

SY__COLD void *sy__general_pages(struct sy__general_heap *general, unsigned slot, size_t bytes, unsigned flags,
                                 int node, uint64_t *live)
{
	void *object = sy__large_alloc(&general->heap, slot, bytes, flags, node);

	if (!object)
		return NULL;
	sy__lock(&general->lock);
	general->heap.counters.slow_allocs++;
	if (live)
		++*live;
	sy__unlock(&general->lock);
	return object;
}

SY__COLD void sy__general_pages_free(struct sy__general_heap *general, unsigned slot, struct sy_page *page,
                                     const void *object, uint64_t *live)
{
	sy__lock(&general->lock);
	general->heap.counters.slow_frees++;
	if (live)
		--*live;
	sy__unlock(&general->lock);
	sy__large_free(&general->heap, slot, page, object);
}

/* ---- Caches --------------------------------------------------------------------------------------------------- */

size_t sy__general_object_bytes(struct sy_cache *cache)
{
	size_t bytes = cache->object_size;

	if (cache->align < sizeof(unsigned long long))
		cache->align = sizeof(unsigned long long);
	if (cache->flags & SY_CACHE_TYPESAFE_BY_RCU)
		bytes = sy__align_up(bytes, _Alignof(struct footer)) + sizeof(struct footer);
	return sy__order_of(bytes) > SY_MAX_ORDER ? 0 : bytes;
}

/* The footer starts right behind the object, however its block is rounded. */
static struct footer *footer_of(const struct sy_cache *cache, void *object)
{
	return (struct footer *)(void *)((char *)object + sy__align_up(cache->object_size, _Alignof(struct footer)));
}

void sy__general_defer(struct sy_cache *cache, void *object)
{
	struct sy__general_cache *own = sy__general_cache_of(cache);
	struct sy__general_heap *general = sy__general_of(cache->heap);
	struct footer *footer = footer_of(cache, object);

	footer->cache = own;
	sy__lock(&general->lock);
	own->live--;
	own->waiting++;
	sy__unlock(&general->lock);
	sy__defer(&general->heap, &footer->deferred);
}

void sy__general_grace_passed(struct sy_heap *heap, struct sy_deferred *deferred)
{
	struct footer *footer = sy__entry(deferred, struct footer, deferred);
	struct sy__general_cache *own = footer->cache;
	struct sy__general_heap *general = sy__general_of(heap);
	uint32_t object_size = own->cache.object_size;
	void *object = (char *)footer - sy__align_up(object_size, _Alignof(struct footer));

	if (own->cache.destructor)
		own->cache.destructor(object, object_size);
	if (!own->want.bytes) {
		sy__general_pages_free(general, 0, sy__page_of(heap, object), object, &own->waiting);
		return;
	}
	sy__lock(&general->lock);
	own->waiting--;
	general->ops->push(general, 0, object, own->want.bytes);
	sy__unlock(&general->lock);
}

static bool waits_for_cache(const struct sy_deferred *deferred, const void *cache)
{
	return ((const struct footer *)(const void *)deferred)->cache == cache;
}

/* Frees the objects that still wait. Objects in use stay, as all caches share the pages. */
void sy__general_cache_fini(struct sy_cache *cache)
{
	sy__deferred_finish(cache->heap, waits_for_cache, cache);
}

void sy__general_counts(struct sy_cache *cache, struct sy_cache_counts *counts)
{
	struct sy__general_cache *own = sy__general_cache_of(cache);
	struct sy__general_heap *general = sy__general_of(cache->heap);

	*counts = (struct sy_cache_counts){ 0 };
	sy__lock(&general->lock);
	counts->objects = counts->objects_in_use = own->live;
	sy__unlock(&general->lock);
}

size_t sy__general_usable_size(struct sy_heap *heap, const void *object)
{
	struct sy__general_heap *general = sy__general_of(heap);
	const struct sy_page *page = sy__head_of(heap, object);
	size_t bytes;

	if (sy__page_is_large(page))
		return sy__large_usable(page);
	sy__lock(&general->lock);
	bytes = general->ops->block_bytes(general, object);
	sy__unlock(&general->lock);
	return bytes;
}

uint64_t sy__general_unused_bytes(struct sy_heap *heap)
{
	struct sy__general_heap *general = sy__general_of(heap);
	uint64_t bytes;

	sy__lock(&general->lock);
	bytes = general->ops->unused_bytes(general);
	sy__unlock(&general->lock);
	return bytes;
}

const char *sy__general_check(struct sy_heap *heap)
{
	struct sy__general_heap *general = sy__general_of(heap);
	const char *wrong;

	sy__lock(&general->lock);
	wrong = general->ops->check(general);
	sy__unlock(&general->lock);
	return wrong;
}

uint64_t sy__general_in_use(const struct sy__general_heap *general)
{
	const struct sy_list *caches = &general->heap.caches;
	uint64_t blocks = general->live;

	for (const struct sy_list *at = caches->next; at != caches; at = at->next) {
		const struct sy__general_cache *own = sy__general_cache_of(sy__entry(at, struct sy_cache, link));

		if (own->want.bytes)
			blocks += own->live + own->waiting;
	}
	return blocks;
}
