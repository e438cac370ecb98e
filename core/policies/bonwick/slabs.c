/*
 * Bonwick's slab allocator: the life of a slab.
 *
 * Birth, the paper's kmem_cache_grow. Pages come from the cache's supplier: the page allocator, unless the client brought its own
 * (section 7.1). Slab data is at the end of the page; for large objects it comes from a cache of its own, as do the bufctls. The
 * slab gets a colour, constructors run, and it joins the tail of its cache's list as a complete one.
 *
 * Death, the paper's kmem_cache_reap: complete slabs stand at the tail of the list. One walk from the tail, under the
 * cache's lock, takes off those that have been complete for working_set_seconds when memory is short, or all of them for a
 * shrink. The buffers that slots keep go back to the slabs first. With the lock released, destructors run and the pages go back.
 * Slab data and bufctls that go back may complete slabs of their own caches, so these are reaped next.
 *
 * The pages of an RCU-typesafe cache wait for a grace period in between, with all their objects constructed. Their slab data waits
 * with them, as it holds the entry of the queue; bufctls do not. After the wait, slab data of large objects goes back and its
 * cache is shrunk: nobody else would do that soon.
 *
 * A supplier's memory has no page descriptors. Nothing here needs them: small objects lead to slab data by arithmetic,
 * large ones by the hash table, and all slabs are on the list, even when they are torn down with objects in use.
 */
#include "../../deferred.h"
#include "../../this_slot.h"
#include "../../backend/metadata.h"
#include "bonwick.h"

/* Flags of a request that slab data and bufctls inherit. They may be of any node. */
#define DATA_FLAGS (SY__INHERITED_FLAGS & ~(unsigned)SY_THISNODE)

#define SECOND UINT64_C(1000000000)

static size_t slab_bytes(const struct sy__bonwick_cache *cache)
{
	return SY_PAGE_SIZE << cache->order;
}

/* Where a slab's pages start. */
char *sy__bonwick_memory(const struct sy__bonwick_cache *cache, struct sy__bonwick_slab *slab)
{
	if (cache->large)
		return ((struct sy__bonwick_large_slab *)(void *)slab)->memory;
	return (char *)slab + SY__BONWICK_SLAB_BYTES - SY_PAGE_SIZE;
}

/* Where a slab's buffers start. */
char *sy__bonwick_first(const struct sy__bonwick_cache *cache, struct sy__bonwick_slab *slab)
{
	return sy__bonwick_memory(cache, slab) + (size_t)slab->colour * cache->cache.align;
}

/* ---- Pages ---------------------------------------------------------------------------------------------------- */

static char *own_pages(struct sy__bonwick_cache *cache, unsigned slot, unsigned flags, int node)
{
	struct sy_heap *heap = cache->cache.heap;
	struct sy_page *page = sy__pages_take(heap, slot, cache->order, flags, node, SY_USE_SLAB);

	if (!page)
		return NULL;
	sy__bonwick_page(page)->cache = cache;
	return sy__page_address(heap, page);
}

/* A supplier's memory that is not aligned to pages is refused. */
static char *supplied_pages(struct sy__bonwick_cache *cache, unsigned flags)
{
	const struct sy_page_supplier *supplier = cache->cache.supplier;
	char *memory = supplier->get_pages(supplier->context, slab_bytes(cache), flags);

	if ((uintptr_t)memory & (SY_PAGE_SIZE - 1)) {
		supplier->free_pages(supplier->context, memory, slab_bytes(cache));
		return NULL;
	}
	return memory;
}

/* Paper: kmem_getpages. */
static char *get_pages(struct sy__bonwick_cache *cache, unsigned slot, unsigned flags, int node)
{
	flags = (flags & SY__INHERITED_FLAGS) | cache->page_flags;
	return cache->cache.supplier ? supplied_pages(cache, flags) : own_pages(cache, slot, flags, node);
}

/* Paper: kmem_freepages. */
static uint64_t give_pages(struct sy__bonwick_cache *cache, unsigned slot, char *memory)
{
	const struct sy_page_supplier *supplier = cache->cache.supplier;
	struct sy_heap *heap = cache->cache.heap;

	if (supplier) {
		supplier->free_pages(supplier->context, memory, slab_bytes(cache));
		return 0;
	}
	sy__pages_give(heap, slot, sy__page_of(heap, memory));
	return (uint64_t)1 << cache->order;
}

/* ---- Birth ---------------------------------------------------------------------------------------------------- */

static uint16_t next_colour(struct sy__bonwick_cache *cache)
{
	uint32_t colour;

	sy__lock(&cache->lock);
	colour = cache->next_colour;
	cache->next_colour = colour + 1 < cache->colours ? colour + 1 : 0;
	sy__unlock(&cache->lock);
	return (uint16_t)colour;
}

/* Puts all buffers of a page on its freelist in order of address. */
static struct sy__bonwick_slab *make_small(struct sy__bonwick_cache *cache, char *memory)
{
	struct sy__bonwick_slab *slab = sy__bonwick_slab_at(memory);
	char *buffer;

	slab->refs = 0;
	slab->colour = next_colour(cache);
	slab->free = NULL;
	buffer = sy__bonwick_first(cache, slab) + (size_t)cache->objects * cache->cache.size;
	for (uint32_t i = 0; i < cache->objects; i++) {
		buffer -= cache->cache.size;
		*sy__bonwick_next(cache, buffer) = slab->free;
		slab->free = buffer;
	}
	return slab;
}

static void free_bufctls(struct sy__bonwick_cache *cache, unsigned slot, struct sy__bonwick_slab *slab)
{
	struct sy_cache *bufctls = sy__bonwick_heap(cache->cache.heap)->bufctls;
	struct sy__bonwick_bufctl *at = slab->free;

	while (at) {
		struct sy__bonwick_bufctl *next = at->next;

		sy_cache_free(bufctls, slot, at);
		at = next;
	}
}

/* Puts a bufctl for each buffer on the slab's freelist, in order of address. False: no memory; those made are on the list. */
static bool make_bufctls(struct sy__bonwick_cache *cache, unsigned slot, unsigned flags, struct sy__bonwick_slab *slab)
{
	struct sy_cache *bufctls = sy__bonwick_heap(cache->cache.heap)->bufctls;
	char *buffer = sy__bonwick_first(cache, slab) + (size_t)cache->objects * cache->cache.size;

	slab->free = NULL;
	for (uint32_t i = 0; i < cache->objects; i++) {
		struct sy__bonwick_bufctl *bufctl = sy_cache_alloc(bufctls, slot, flags & DATA_FLAGS, SY_ANY_NODE);

		if (!bufctl)
			return false;
		buffer -= cache->cache.size;
		*bufctl = (struct sy__bonwick_bufctl){ slab->free, buffer, slab };
		slab->free = bufctl;
	}
	return true;
}

static void free_large(struct sy__bonwick_cache *cache, unsigned slot, struct sy__bonwick_slab *slab)
{
	sy_cache_free(sy__bonwick_heap(cache->cache.heap)->large_slabs, slot, slab);
}

/* NULL: no memory. */
static struct sy__bonwick_slab *make_large(struct sy__bonwick_cache *cache, unsigned slot, unsigned flags, char *memory)
{
	struct sy__bonwick_large_slab *large = sy_cache_alloc(sy__bonwick_heap(cache->cache.heap)->large_slabs, slot,
	                                                      flags & DATA_FLAGS, SY_ANY_NODE);

	if (!large)
		return NULL;
	large->memory = memory;
	large->slab.refs = 0;
	large->slab.colour = next_colour(cache);
	if (make_bufctls(cache, slot, flags, &large->slab))
		return &large->slab;
	free_bufctls(cache, slot, &large->slab);
	free_large(cache, slot, &large->slab);
	return NULL;
}

static void construct(const struct sy__bonwick_cache *cache, struct sy__bonwick_slab *slab)
{
	const struct sy_cache *common = &cache->cache;
	char *buffer = sy__bonwick_first(cache, slab);

	for (uint32_t i = 0; common->constructor && i < cache->objects; i++)
		sy__construct(common->constructor, buffer + (size_t)i * common->size, common->object_size);
}

/* Makes a new slab the cache's last complete one. */
static void join(struct sy__bonwick_cache *cache, struct sy__bonwick_slab *slab)
{
	sy__lock(&cache->lock);
	slab->completed = sy__bonwick_time();
	sy__list_add_tail(&cache->slabs, &slab->link);
	if (cache->freelist == &cache->slabs)
		cache->freelist = &slab->link;
	cache->slab_count++;
	cache->complete++;
	sy__unlock(&cache->lock);
}

/* Adds a slab to the cache; false: no memory. Called outside local sections, as it may run every heap's shrink. So the slab joins the
 * list last: a shrink would end it at once, and the caller might never get a buffer. */
bool sy__bonwick_grow(struct sy__bonwick_cache *cache, unsigned slot, unsigned flags, int node)
{
	char *memory = get_pages(cache, slot, flags, node);
	struct sy__bonwick_slab *slab;

	if (!memory)
		return false;
	slab = cache->large ? make_large(cache, slot, flags, memory) : make_small(cache, memory);
	if (!slab) {
		give_pages(cache, slot, memory);
		return false;
	}
	if (!cache->cache.supplier)
		sy__bonwick_page(sy__page_of(cache->cache.heap, memory))->slab = slab;
	construct(cache, slab);
	if (cache->large)
		sy__bonwick_hash_scale(cache);
	join(cache, slab);
	return true;
}

/* ---- Death ---------------------------------------------------------------------------------------------------- */

static void destruct(const struct sy__bonwick_cache *cache, struct sy__bonwick_slab *slab)
{
	const struct sy_cache *common = &cache->cache;
	char *buffer = sy__bonwick_first(cache, slab);

	for (uint32_t i = 0; common->destructor && i < cache->objects; i++)
		common->destructor(buffer + (size_t)i * common->size, common->object_size);
}

static uint64_t give_back(struct sy__bonwick_cache *cache, unsigned slot, struct sy__bonwick_slab *slab)
{
	char *memory = sy__bonwick_memory(cache, slab);

	destruct(cache, slab);
	if (cache->large)
		free_large(cache, slot, slab);
	return give_pages(cache, slot, memory);
}

/* Ends a complete slab that is on no list. */
static uint64_t end_slab(struct sy__bonwick_cache *cache, struct sy__bonwick_slab *slab)
{
	if (cache->large)
		free_bufctls(cache, 0, slab);
	if (!(cache->cache.flags & SY_CACHE_TYPESAFE_BY_RCU))
		return give_back(cache, 0, slab);
	slab->cache = cache;
	slab->refs = SY__BONWICK_WAITING;
	sy__defer(cache->cache.heap, &slab->deferred);
	return 0;
}

static void end_wait(struct sy_deferred *entry)
{
	struct sy__bonwick_slab *slab = sy__entry(entry, struct sy__bonwick_slab, deferred);
	struct sy__bonwick_cache *cache = slab->cache;

	sy__lock(&cache->lock);
	cache->waiting--;
	sy__unlock(&cache->lock);
	give_back(cache, 0, slab);
}

void sy__bonwick_grace_passed(struct sy_heap *heap, struct sy_deferred *entry)
{
	bool large = sy__entry(entry, struct sy__bonwick_slab, deferred)->cache->large;

	end_wait(entry);
	if (large)
		sy__bonwick_shrink(sy__bonwick_heap(heap)->large_slabs);
}

/* ---- Reaping -------------------------------------------------------------------------------------------------- */

/* Has all slots that the caller may touch give their buffers back to the slabs. */
void sy__bonwick_drain_slots(struct sy__bonwick_cache *cache)
{
	for (unsigned slot = 0; slot < sy__slots_used(cache->cache.heap); slot++)
		if (sy__slot_reachable(&cache->cache, slot))
			cache->layer->drain(cache, slot);
}

void sy__bonwick_drain(struct sy_heap *heap, unsigned slot)
{
	sy__lock(&heap->lock);
	for (struct sy_list *at = heap->caches.next; at != &heap->caches; at = at->next) {
		struct sy__bonwick_cache *cache = sy__bonwick_cache(sy__entry(at, struct sy_cache, link));

		if (cache->layer->drain)
			cache->layer->drain(cache, slot);
	}
	sy__unlock(&heap->lock);
}

/* Takes a complete slab off the cache's list. With its lock held. */
static void unlink_slab(struct sy__bonwick_cache *cache, struct sy_list *link)
{
	if (cache->freelist == link)
		cache->freelist = link->next;
	sy__list_remove(link);
	cache->slab_count--;
	cache->complete--;
	if (cache->cache.flags & SY_CACHE_TYPESAFE_BY_RCU)
		cache->waiting++;
}

/* Moves the slabs that have been complete for so long to a list, oldest first. */
static void collect(struct sy__bonwick_cache *cache, uint32_t least_age, struct sy_list *ending)
{
	uint32_t now;

	sy__lock(&cache->lock);
	now = sy__bonwick_time();
	for (struct sy_list *at = cache->slabs.prev, *before; at != &cache->slabs; at = before) {
		const struct sy__bonwick_slab *slab = sy__bonwick_linked(at);

		if (slab->refs)
			break;
		before = at->prev;
		if (now - slab->completed < least_age)
			continue;
		unlink_slab(cache, at);
		sy__list_add_head(ending, at);
	}
	sy__unlock(&cache->lock);
}

static uint64_t reap_one(struct sy__bonwick_cache *cache, uint32_t least_age)
{
	struct sy_list ending;
	uint64_t pages = 0;

	sy__list_init(&ending);
	if (cache->layer->reap)
		cache->layer->reap(cache, least_age);
	collect(cache, least_age, &ending);
	while (!sy__list_empty(&ending)) {
		struct sy_list *link = ending.next;

		sy__list_remove(link);
		pages += end_slab(cache, sy__bonwick_linked(link));
	}
	return pages;
}

static uint64_t reap(struct sy__bonwick_cache *cache, uint32_t least_age)
{
	const struct sy__bonwick_heap *heap = sy__bonwick_heap(cache->cache.heap);
	uint64_t pages = reap_one(cache, least_age);

	if (cache->layer == &sy__bonwick_magazine_layer)
		for (unsigned kind = 0; kind < SY__BONWICK_KINDS; kind++)
			pages += reap_one(sy__bonwick_cache(heap->magazines[kind]), least_age);
	if (!cache->large && cache->layer != &sy__bonwick_magazine_layer) /* large magazines have bufctls, too */
		return pages;
	sy__bonwick_hash_least(cache);
	pages += reap_one(sy__bonwick_cache(heap->bufctls), least_age);
	return pages + reap_one(sy__bonwick_cache(heap->large_slabs), least_age);
}

uint64_t sy__bonwick_shrink(struct sy_cache *cache)
{
	return reap(sy__bonwick_cache(cache), 0);
}

uint64_t sy__bonwick_reap(struct sy_cache *cache)
{
	uint64_t working_set = (uint64_t)cache->heap->tunables[BONWICK_WORKING_SET_SECONDS] * SECOND;

	return reap(sy__bonwick_cache(cache), sy__bonwick_units(working_set));
}

/* ---- The end of a cache --------------------------------------------------------------------------------------- */

static bool belongs_to(const struct sy_deferred *entry, const void *cache)
{
	return sy__entry(entry, struct sy__bonwick_slab, deferred)->cache == cache;
}

/* Slabs with objects in use, their data and the hash table are left to sy_heap_destroy. But only the cache knows a supplier's slabs, so
 * these go now. */
static void return_supplied(struct sy__bonwick_cache *cache)
{
	while (!sy__list_empty(&cache->slabs)) {
		struct sy_list *link = cache->slabs.next;

		sy__list_remove(link);
		give_pages(cache, 0, sy__bonwick_memory(cache, sy__bonwick_linked(link)));
	}
}

/* Slabs that wait for a grace period end now: the destroyer of an RCU-typesafe cache has waited for its readers. */
void sy__bonwick_cache_fini(struct sy_cache *common)
{
	struct sy__bonwick_cache *cache = sy__bonwick_cache(common);
	struct sy_deferred *entry;

	sy__bonwick_shrink(common);
	entry = sy__deferred_extract(common->heap, belongs_to, common);
	while (entry) {
		struct sy_deferred *next = entry->next;

		end_wait(entry);
		entry = next;
	}
	if (common->supplier)
		return_supplied(cache);
	sy__bonwick_give_slots(cache);
}
