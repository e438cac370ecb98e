/*
 * Bonwick's slab allocator: counting, and verifying its invariants.
 *
 * Every slab is on its cache's list, so a check walks the lists: the order of the three kinds, the place of the freelist, the
 * figures. A slab is sound if each of its buffers is either free, once, or out. A slab of small objects must have a freelist
 * that ends within as many steps as there are buffers, each at a multiple of the size from the first. In a slab of large
 * objects each buffer must be either on the freelist or in the hash table, with a bufctl that leads back.
 *
 * Then the check visits all slab pages of the heap that the page allocator knows. Each must name a cache, and as many must name a
 * cache as it has slabs, those in a grace period included. Each slab on the list was found in a page that names it, so the two
 * are the same sets. A supplier's slabs have no such pages.
 *
 * The layer checks what slots keep (percpu.c, magazine_check.c).
 *
 * Counting reads figures, and walks the partial slabs. The paper's empty slabs are reported as full, and complete slabs as empty.
 * Buffers that slots keep count as used in their slabs and as cached in the cache. Checks and counts expect that no other
 * slot works meanwhile; otherwise a count may miss what that slot does.
 */
#include "../../this_slot.h"
#include "bonwick.h"

/* ---- Counting ------------------------------------------------------------------------------------------------- */

/* Whether a slot may have something of the cache, and the caller may look. */
bool sy__bonwick_slot_counts(const struct sy__bonwick_cache *cache, unsigned slot)
{
	return cache->slots && !sy__bonwick_is_shared(cache, slot) && sy__slot_reachable(&cache->cache, slot);
}

static void count_layer(struct sy_cache_counts *counts, struct sy__bonwick_cache *cache)
{
	for (unsigned slot = 0; slot < sy__slots_used(cache->cache.heap); slot++) {
		if (!sy__bonwick_slot_counts(cache, slot))
			continue;
		sy__local_begin(slot);
		cache->layer->counts(cache, slot, counts);
		sy__local_end(slot);
	}
	if (cache->layer->shared_counts)
		cache->layer->shared_counts(cache, counts);
}

static uint64_t partial_slabs(const struct sy__bonwick_cache *cache)
{
	uint64_t count = 0;

	for (struct sy_list *at = cache->freelist; at != &cache->slabs && sy__bonwick_linked(at)->refs; at = at->next)
		count++;
	return count;
}

void sy__bonwick_counts(struct sy_cache *common, struct sy_cache_counts *counts)
{
	struct sy__bonwick_cache *cache = sy__bonwick_cache(common);

	count_layer(counts, cache);
	sy__lock(&cache->lock);
	counts->slabs = cache->slab_count;
	counts->empty_slabs = counts->idle_slabs = cache->complete;
	counts->slab_objects = cache->objects;
	counts->slab_pages = 1u << cache->order;
	counts->partial_slabs = partial_slabs(cache);
	counts->full_slabs = counts->slabs - counts->partial_slabs - counts->empty_slabs;
	counts->pages = cache->slab_count << cache->order;
	counts->objects = cache->slab_count * cache->objects;
	counts->objects_in_use = cache->allocated - counts->objects_cached;
	counts->allocations += cache->allocations;
	sy__unlock(&cache->lock);
}

/* ---- A slab by itself ----------------------------------------------------------------------------------------- */

/* Whether a buffer starts there. */
static bool in_slab(const struct sy__bonwick_cache *cache, struct sy__bonwick_slab *slab, const char *address)
{
	const char *first = sy__bonwick_first(cache, slab);
	size_t offset = (size_t)(address - first);

	return address >= first && offset % cache->cache.size == 0 && offset / cache->cache.size < cache->objects;
}

static const char *check_small(const struct sy__bonwick_cache *cache, struct sy__bonwick_slab *slab)
{
	uint32_t free = 0;

	for (char *at = slab->free; at; at = *sy__bonwick_next(cache, at))
		if (!in_slab(cache, slab, at) || ++free > cache->objects)
			return "bonwick: a slab's freelist leaves the slab or runs in a circle";
	if (slab->refs + free != cache->objects)
		return "bonwick: references and free buffers of a slab do not add up";
	return NULL;
}

/* Whether a buffer's bufctl is on the freelist, which is known to end. */
static bool is_free(const struct sy__bonwick_slab *slab, const char *buffer)
{
	for (const struct sy__bonwick_bufctl *at = slab->free; at; at = at->next)
		if (at->buffer == buffer)
			return true;
	return false;
}

static const char *check_large(const struct sy__bonwick_cache *cache, struct sy__bonwick_slab *slab)
{
	const char *buffer = sy__bonwick_first(cache, slab);
	uint32_t free = 0;

	for (const struct sy__bonwick_bufctl *at = slab->free; at; at = at->next)
		if (at->slab != slab || !in_slab(cache, slab, at->buffer) || ++free > cache->objects)
			return "bonwick: a slab's freelist holds a bufctl that is not its own, or runs in a circle";
	if (slab->refs + free != cache->objects)
		return "bonwick: references and free buffers of a slab do not add up";
	for (uint32_t i = 0; i < cache->objects; i++, buffer += cache->cache.size) {
		const struct sy__bonwick_bufctl *out = sy__bonwick_hash_find(&cache->hash, buffer);

		if (is_free(slab, buffer) == (out != NULL))
			return "bonwick: a buffer is neither free nor in the hash table, or both";
		if (out && out->slab != slab)
			return "bonwick: a bufctl in the hash table leads to another slab";
	}
	return NULL;
}

static const char *check_pages(const struct sy__bonwick_cache *cache, struct sy__bonwick_slab *slab)
{
	struct sy_page *page;

	if (cache->cache.supplier)
		return NULL;
	page = sy__page_of(cache->cache.heap, sy__bonwick_memory(cache, slab));
	if (!sy__page_is_slab(page) || sy__page_head(page) != page || sy__page_order(page) != cache->order ||
	    sy__page_heap(page) != cache->cache.heap)
		return "bonwick: a slab's memory is not a slab's pages of its heap, in its cache's order";
	if (sy__bonwick_page(page)->cache != cache || sy__bonwick_page(page)->slab != slab)
		return "bonwick: a slab's pages do not lead back to it";
	return NULL;
}

static const char *check_slab(const struct sy__bonwick_cache *cache, struct sy__bonwick_slab *slab)
{
	const char *wrong = check_pages(cache, slab);

	if (!wrong && slab->colour >= cache->colours)
		wrong = "bonwick: a slab has a colour that its cache has no room for";
	if (!wrong)
		wrong = cache->large ? check_large(cache, slab) : check_small(cache, slab);
	return wrong;
}

/* ---- A cache's list and table --------------------------------------------------------------------------------- */

enum kind { EMPTY, PARTIAL, COMPLETE };

static enum kind kind_of(const struct sy__bonwick_slab *slab)
{
	if (!slab->refs)
		return COMPLETE;
	return slab->free ? PARTIAL : EMPTY;
}

static const char *check_list(struct sy__bonwick_cache *cache)
{
	struct sy_list *first_free = &cache->slabs;
	enum kind last = EMPTY;
	uint64_t slabs = 0, complete = 0, allocated = 0;

	for (struct sy_list *at = cache->slabs.next; at != &cache->slabs; at = at->next) {
		struct sy__bonwick_slab *slab = sy__bonwick_linked(at);
		const char *wrong;

		if (at->next->prev != at || ++slabs > cache->slab_count)
			return "bonwick: a cache's list is broken, or has more slabs than counted";
		wrong = check_slab(cache, slab);
		if (wrong)
			return wrong;
		if (kind_of(slab) < last)
			return "bonwick: a cache's list is not sorted into empty, partial and complete slabs";
		last = kind_of(slab);
		if (last != EMPTY && first_free == &cache->slabs)
			first_free = at;
		complete += last == COMPLETE;
		allocated += slab->refs;
	}
	if (cache->freelist != first_free)
		return "bonwick: a cache's freelist is not its first slab with a free buffer";
	if (slabs != cache->slab_count || complete != cache->complete || allocated != cache->allocated)
		return "bonwick: slabs, complete slabs or buffers of a cache are not as many as counted";
	return NULL;
}

static const char *check_hash(const struct sy__bonwick_cache *cache)
{
	const struct sy__bonwick_hash *hash = &cache->hash;
	uint64_t out = 0;

	if (!hash->size || (hash->size & (hash->size - 1)) ||
	    (hash->buckets == hash->least && hash->size != SY__BONWICK_LEAST_BUCKETS))
		return "bonwick: a hash table's size is no power of two, or not that of the table";
	for (uint32_t i = 0; i < hash->size; i++)
		for (const struct sy__bonwick_bufctl *at = hash->buckets[i]; at; at = at->next)
			if (++out > cache->allocated || sy__bonwick_hash_find(hash, at->buffer) != at)
				return "bonwick: a hash chain runs in a circle, or holds what is not found there";
	if (out != (cache->large ? cache->allocated : 0))
		return "bonwick: buffers in a hash table are not those that are out";
	return NULL;
}

static const char *check_layout(const struct sy__bonwick_cache *cache)
{
	const struct sy_cache *common = &cache->cache;
	size_t bytes = SY_PAGE_SIZE << cache->order, used = (size_t)cache->objects * common->size;
	bool lasting = common->constructor || common->flags & SY_CACHE_TYPESAFE_BY_RCU;

	if (common->size % common->align || common->object_size > common->size ||
	    cache->linkage + sizeof(void *) > common->size)
		return "bonwick: a cache's objects are not laid out within their size and alignment";
	if (lasting && cache->linkage < common->object_size && (!cache->large || cache->layer->linked))
		return "bonwick: a link would destroy an object that must last";
	if (!cache->objects || used + (size_t)(cache->colours - 1) * common->align +
	                       (cache->large ? 0 : SY__BONWICK_SLAB_BYTES) > bytes)
		return "bonwick: buffers, colours and slab data of a cache do not fit its slabs";
	return NULL;
}

/* ---- Slots ---------------------------------------------------------------------------------------------------- */

static bool page_names(const struct sy__bonwick_cache *cache, const char *address)
{
	struct sy_page *page = sy__pages_find(cache->cache.heap, address);

	return page && sy__page_is_slab(page) && sy__bonwick_page(page)->cache == cache;
}

/* Whether an address is a buffer of the cache. */
bool sy__bonwick_is_buffer(const struct sy__bonwick_cache *cache, char *address)
{
	const struct sy__bonwick_bufctl *out;

	if (!cache->large)
		return (cache->cache.supplier || page_names(cache, address)) &&
		       in_slab(cache, sy__bonwick_slab_at(address), address);
	out = sy__bonwick_hash_find(&cache->hash, address);
	return out && in_slab(cache, out->slab, address);
}

static const char *check_layer(struct sy__bonwick_cache *cache)
{
	struct sy_cache_counts counts = { .objects_cached = 0 };
	const char *wrong = NULL;

	for (unsigned slot = 0; !wrong && slot < sy__slots_used(cache->cache.heap); slot++)
		if (sy__bonwick_slot_counts(cache, slot)) {
			wrong = cache->layer->check(cache, slot);
			cache->layer->counts(cache, slot, &counts);
		}
	if (!wrong && cache->layer->check_shared)
		wrong = cache->layer->check_shared(cache);
	if (!wrong && cache->layer->shared_counts)
		cache->layer->shared_counts(cache, &counts);
	if (!wrong && counts.objects_cached > cache->allocated)
		wrong = "bonwick: slots and depot hold more buffers than left the slabs";
	return wrong;
}

/* ---- The heap ------------------------------------------------------------------------------------------------- */

struct verdict {
	struct sy_heap *heap;
	const char *wrong;
};

static bool visit(void *context, struct sy_page *page)
{
	struct verdict *verdict = context;
	struct sy__bonwick_cache *cache = sy__bonwick_page(page)->cache;

	if (!sy__page_is_slab(page))
		return true;
	if (!cache || cache->cache.heap != verdict->heap)
		verdict->wrong = "bonwick: a slab belongs to no cache of its heap";
	else
		cache->seen++;
	return !verdict->wrong;
}

static const char *check_cache(struct sy__bonwick_cache *cache)
{
	const char *wrong = check_layout(cache);

	if (!wrong)
		wrong = check_list(cache);
	if (!wrong)
		wrong = check_hash(cache);
	if (!wrong)
		wrong = check_layer(cache);
	if (!wrong && !cache->cache.supplier && cache->seen != cache->slab_count + cache->waiting)
		wrong = "bonwick: slabs of a cache are not those that the page allocator knows";
	return wrong;
}

const char *sy__bonwick_check(struct sy_heap *heap)
{
	struct verdict verdict = { .heap = heap };
	uint64_t waiting = 0;

	for (struct sy_list *at = heap->caches.next; at != &heap->caches; at = at->next)
		sy__bonwick_cache(sy__entry(at, struct sy_cache, link))->seen = 0;
	sy__pages_walk(heap, visit, &verdict);
	for (struct sy_list *at = heap->caches.next; !verdict.wrong && at != &heap->caches; at = at->next) {
		struct sy__bonwick_cache *cache = sy__bonwick_cache(sy__entry(at, struct sy_cache, link));

		verdict.wrong = check_cache(cache);
		waiting += cache->waiting;
	}
	if (!verdict.wrong && waiting != heap->counters.deferred)
		verdict.wrong = "bonwick: slabs in their grace period are not those that the deferred queue holds";
	return verdict.wrong;
}
