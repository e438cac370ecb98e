/*
 * SLOB: lists of blocks in pages that everybody shares.
 *
 * After the simple allocator of Linux 6.1 (mm/slob.c; Ferreira et al. 2015, section 3.3), made for machines whose memory is
 * counted in megabytes. There are no slabs of one kind of object: a page holds whatever fits, and its free blocks form a
 * list in order of address (blocks.h). Requests below 256 bytes, below 1024 bytes and all others look for room in a
 * list of pages each, so that small objects don't crumble the pages that large ones need.
 *
 * Allocation walks its list and takes a block from a page that has room; where none has, a new page joins the front of the
 * list. Which block it is, the tunable `fit` says:
 *
 *   next   Linux's own. The first block of the first page with room; then the list is rotated so that the next search
 *          begins at that page (Knuth, volume 1, section 2.5): small leftovers don't gather at the front.
 *   first  The same without the rotation: every search begins at the newest page.
 *   best   Kyritsis et al.: all pages of the list are searched for the block that leaves the least over; an exact fit ends
 *          the search at once.
 *
 * Fewer steps than Linux. Linux's search walks the blocks of every page with enough free units, which in a heap with holes is
 * nearly every page of the list. Ours finds the same block but skips what cannot change the result. It knows the sizes of free
 * blocks on each list (sizes.h): if no block is large enough there is no search, and best fit stops at a block of the smallest
 * sufficient size. Best fit also skips groups of pages (segments.h). Each page descriptor (struct sy__slob_page) has hints by which
 * most pages are skipped:
 *
 *   most        upper bounds, by kind of alignment, for requests that find room in the page: a page that refused a request
 *               is not searched again for as much until something is freed into it
 *   may_have    a set of block sizes: best fit skips pages without a block tighter than the best one so far
 *   known_least the smallest block for the last request that best fit looked for, until the page's blocks change
 *
 * most and may_have may promise too much, but never too little: frees add to them, allocations take nothing away, and a walk
 * over all blocks of the page makes them exact again.
 *
 * A free joins the block with its free neighbours. A page that is wholly free goes back to the page allocator at once. A page
 * without free units is on no list; its first free puts it at the front of the list for the freed size. So pages move between
 * the lists.
 *
 * kmalloc puts a header of 8 bytes, holding the size, before the object, and aligns the object to 8 bytes, or to its size if
 * that is a power of two. Requests from page size minus the header on go straight to pages. Objects of a cache need no header,
 * as their cache knows the size, but where kfree frees them too (SY_CACHE_KFREE) they have one; those that do not fit into a page
 * with it go to pages as well. Nothing is kept constructed: constructors run at
 * every allocation and destructors at every free. Objects of an RCU-typesafe cache have a footer, by which they wait for a grace
 * period before they are freed. SLOB ignores zones: it serves SY_DMA from any page with room.
 *
 * Every operation takes the lock and searches; the shortest path stands first below. slow_allocs counts the allocations that
 * needed a new page, slow_frees the frees that gave one back.
 *
 * Locks. sy__slob_heap.lock covers the lists and their sizes, every slab page's state and free blocks, slob_cache.live and
 * the counters written here. Never held across a call that takes or gives pages, to the client or to the log.
 */
#include "../../bug.h"
#include "../../deferred.h"
#include "../../geometry.h"
#include "../../kmalloc.h"
#include "slob.h"

#define SMALL_BELOW 256u   /* bytes; the paper's and Linux's first break */
#define MEDIUM_BELOW 1024u /* the second */
#define HEADER ((uint32_t)sizeof(unsigned long long)) /* bytes; also the least alignment of any object */

enum tunable { FIT, LOG_EVERY, TUNABLES };

static const char *const fit_names[] = { "next", "first", "best" };

static const struct sy_tunable tunables[TUNABLES] = {
	[FIT] = { "fit", SY__SLOB_NEXT, SY__SLOB_NEXT, SY__SLOB_BEST, fit_names, false,
	          "which free block serves a request: next, first or best fit" },
	[LOG_EVERY] = { "log_every", 0, 0, INT32_MAX, NULL, false, "log the search of every Nth allocation; 0: of none" },
};

struct slob_cache {
	struct sy_cache cache;
	struct sy__slob_request request; /* of one object; unused from page size on */
	uint32_t header; /* bytes in front of an object: as kmalloc's if kfree may free it; else 0 */
	uint64_t live;   /* objects that the client holds, and those freed by kfree, which knows no cache */
};

/* Stands behind objects of RCU-typesafe caches. The cache outlives its objects and knows their size. */
struct footer {
	struct sy_deferred deferred;
	struct slob_cache *cache;
};

static inline uint32_t list_for(uint32_t bytes)
{
	return bytes < SMALL_BELOW ? SY__SLOB_SMALL : bytes < MEDIUM_BELOW ? SY__SLOB_MEDIUM : SY__SLOB_LARGE;
}

static inline uint32_t units_for(uint32_t bytes)
{
	return (bytes + (uint32_t)SY__SLOB_UNIT - 1) / (uint32_t)SY__SLOB_UNIT;
}

#define ANY_ALIGNMENT UINT32_MAX

/* least: the heap's alignment of kmalloc, where requests with larger alignments are of another kind; ANY_ALIGNMENT for caches. */
static inline enum sy__slob_kind kind_for(uint32_t align, uint32_t offset, uint32_t least)
{
	if (align == HEADER)
		return SY__SLOB_WORD;
	if (offset)
		return least <= HEADER || align == least ? SY__SLOB_POWER : SY__SLOB_OTHER;
	return align == SY_CACHE_LINE ? SY__SLOB_LINE : SY__SLOB_OTHER;
}

static inline struct sy__slob_request request_for(uint32_t bytes, uint32_t align, uint32_t offset, uint32_t least)
{
	enum sy__slob_kind kind = kind_for(align, offset, least);
	enum sy__slob_kind weaker = offset ? SY__SLOB_POWER : SY__SLOB_WORD; /* no room for this kind: none for OTHER either */

	return (struct sy__slob_request){ { units_for(bytes), align / (uint32_t)SY__SLOB_UNIT, offset / (uint32_t)SY__SLOB_UNIT },
		                          bytes, list_for(bytes), kind, kind == SY__SLOB_OTHER ? weaker : kind };
}

/* ---- The fast path. With the lock held ------------------------------------------------------------------------- */

/* The program has overwritten the first units of a free block. */
void sy__slob_tell_damage(const struct sy__slob_heap *slob, const struct sy_page *page, uint32_t block)
{
	sy__bug((struct sy_heap *)&slob->heap, SY_BUG_WRITE_AFTER_FREE, sy__slob_page_units(slob, page) + block);
}

/* None of its kind finds room there any more. */
static SY__COLD struct sy_page *lose_page(const struct sy__slob_heap *slob, struct sy_page *page, uint32_t block)
{
	sy__fill(sy__slob_page_state(page)->most, 0, sizeof(sy__slob_page_state(page)->most));
	sy__slob_tell_damage(slob, page, block);
	return NULL;
}

/* The first page of the list with room, and where; NULL: none. */
static inline struct sy_page *search_first(struct sy__slob_heap *slob, const struct sy__slob_request *request, int node,
                                    struct sy__slob_place *place)
{
	struct sy_list *list = &slob->partial[request->list];
	struct sy__slob_seen seen;

	for (struct sy_list *link = list->next; link != list; link = link->next) {
		struct sy_page *page = sy__slob_page_of_link(link);
		struct sy__slob_page *state = sy__slob_page_state(page);

		if (!sy__slob_may_serve(page, request, node))
			continue;
		if (sy__slob_first_fit(sy__slob_page_units(slob, page), state->first, &request->want, place, &seen))
			return page;
		if (sy__unlikely(seen.damaged))
			return lose_page(slob, page, seen.damaged - 1);
		sy__slob_refuse(state, request, seen.largest);
	}
	return NULL;
}

/* Takes the place in a page of a list; returns the object's block. */
static inline void *take(struct sy__slob_heap *slob, struct sy_page *page, const struct sy__slob_place *place, uint32_t units)
{
	struct sy__slob_page *state = sy__slob_page_state(page);
	struct sy__slob_sizes *sizes = &slob->sizes[state->list];
	sy__slob_unit_t *base = sy__slob_page_units(slob, page);
	uint32_t head = place->start - place->block;

	sy__slob_count_out(sizes, place->units);
	sy__slob_count_in(sizes, head);
	sy__slob_count_in(sizes, place->units - head - units);
	state->may_have |= sy__slob_size_bit(head) | sy__slob_size_bit(place->units - head - units);
	state->known_least = 0;
	state->first = (uint16_t)sy__slob_take(base, state->first, place, units);
	state->free_units = (uint16_t)(state->free_units - units);
	return base + place->start;
}

/* Puts a page at the front of its list. */
static inline void link_first(struct sy__slob_heap *slob, struct sy__slob_page *state)
{
	sy__list_add_head(&slob->partial[state->list], &state->link);
	if (sy__unlikely(slob->fit == SY__SLOB_BEST))
		sy__slob_join_segment(slob, state);
}

/* Takes it off. */
static inline void unlink(struct sy__slob_heap *slob, struct sy__slob_page *state)
{
	if (sy__unlikely(slob->fit == SY__SLOB_BEST))
		sy__slob_leave_segment(slob, state);
	sy__list_remove(&state->link);
}

/* A page that is on a list gets a block of `units`; 0: none. */
static inline void tell_segment(struct sy__slob_heap *slob, const struct sy__slob_page *state, uint32_t units)
{
	sy__slob_segment_gets(&slob->segments.all[state->segment], units);
}

static inline void *take_from_list(struct sy__slob_heap *slob, const struct sy__slob_request *request, int node)
{
	struct sy_list *list = &slob->partial[request->list];
	struct sy__slob_place place;
	struct sy_page *page;

	if (sy__unlikely(!sy__slob_smallest(&slob->sizes[request->list], request->want.units)))
		return NULL;
	page = sy__unlikely(slob->fit == SY__SLOB_BEST) ? sy__slob_search_best(slob, request, node, &place)
	                                               : search_first(slob, request, node, &place);
	if (sy__unlikely(!page))
		return NULL;

	void *block = take(slob, page, &place, request->want.units);
	struct sy_list *link = &sy__slob_page_state(page)->link;

	if (!sy__slob_page_state(page)->free_units) {
		unlink(slob, sy__slob_page_state(page));
	} else if (slob->fit == SY__SLOB_NEXT && list->next != link) {
		sy__list_remove(list);
		sy__list_add_tail(link, list); /* the list now begins at this page */
	} else if (sy__unlikely(slob->fit == SY__SLOB_BEST)) {
		tell_segment(slob, sy__slob_page_state(page), place.start - place.block);
		tell_segment(slob, sy__slob_page_state(page), place.block + place.units - place.start - request->want.units);
	}
	return block;
}

/* A block of `units` became part of the page's. */
static inline void block_appears(struct sy__slob_page *state, uint32_t units)
{
	state->may_have |= sy__slob_size_bit(units);
	state->known_least = 0;
	for (unsigned i = 0; i < SY__SLOB_KINDS; i++)
		if (state->most[i] < units)
			state->most[i] = (uint16_t)units;
}

/* Gives a block back to a page that is on a list; its object stands `before` bytes behind its start. False: it is free already, or the
 * list is damaged. */
static inline bool put(struct sy__slob_heap *slob, struct sy_page *page, uint32_t block, uint32_t units, size_t before)
{
	struct sy__slob_page *state = sy__slob_page_state(page);
	struct sy__slob_sizes *sizes = &slob->sizes[state->list];
	struct sy__slob_joined joined;
	uint32_t first = sy__slob_put(sy__slob_page_units(slob, page), state->first, block, units, &joined);

	if (sy__unlikely(first == SY__SLOB_NO_BLOCK)) {
		sy__bug(&slob->heap, joined.before == block ? SY_BUG_DOUBLE_FREE : SY_BUG_WRITE_AFTER_FREE,
		        (char *)(sy__slob_page_units(slob, page) + joined.before) + (joined.before == block ? before : 0));
		return false;
	}
	state->first = (uint16_t)first;
	sy__slob_count_out(sizes, joined.before);
	sy__slob_count_out(sizes, joined.behind);
	sy__slob_count_in(sizes, joined.units);
	block_appears(state, joined.units);
	if (sy__unlikely(slob->fit == SY__SLOB_BEST))
		tell_segment(slob, state, joined.units);
	return true;
}

/* ---- Blocks --------------------------------------------------------------------------------------------------- */

static SY__COLD void *take_from_new_page(struct sy__slob_heap *slob, const struct sy__slob_request *request, unsigned slot, unsigned flags,
                                         int node, uint64_t *live);
static SY__OUT_OF_LINE void join_list(struct sy__slob_heap *slob, struct sy_page *page, uint32_t block, uint32_t bytes);
static SY__OUT_OF_LINE void leave_list(struct sy__slob_heap *slob, struct sy_page *page);

/*
 * Instructions of hot calls (docs/cost.md): kmem_cache_alloc 995, kmem_cache_free 444, kmalloc 1057, kfree 484. Every call is a slow
 * call, and the counted object is alone: it takes a page, and gives it back. Functions are called only for best fit, a new page, a
 * page that was full, and a page that becomes wholly free.
 */

/* live, when not NULL, is counted up with the block, under the lock. */
static void *block_alloc(struct sy__slob_heap *slob, const struct sy__slob_request *request, unsigned slot, unsigned flags,
                         int node, uint64_t *live)
{
	void *block;

	if (sy__unlikely(slob->log_every))
		sy__slob_log(slob, request, node);
	sy__lock(&slob->lock);
	block = take_from_list(slob, request, node);
	if (block && live)
		++*live;
	sy__unlock(&slob->lock);
	if (sy__unlikely(!block))
		block = take_from_new_page(slob, request, slot, flags, node, live);
	if (sy__unlikely(flags & SY_ZERO) && block)
		sy__fill(block, 0, request->want.units * SY__SLOB_UNIT);
	return block;
}

/* The free block of a page that reaches into units that are freed; or one that the program has overwritten; SY__SLOB_NO_BLOCK: there is
 * neither. */
static uint32_t block_within(const struct sy__slob_heap *slob, struct sy_page *page, uint32_t at, uint32_t end)
{
	uint32_t block = sy__slob_page_state(page)->first, units, next;

	for (; sy__slob_page_state(page)->free_units && block < SY__SLOB_PAGE_UNITS; block = next) {
		sy__slob_read(sy__slob_page_units(slob, page), block, &units, &next);
		if (!sy__slob_is_block(block, units, next) || (block < end && at < block + units))
			return block;
	}
	return SY__SLOB_NO_BLOCK;
}

/* A block that is free already, or that is none: it has no header that makes sense. */
static SY__COLD void tell_unused(struct sy__slob_heap *slob, struct sy_page *page, uint32_t at, const void *object)
{
	uint32_t free_block = block_within(slob, page, at, at + 1);

	sy__bug(&slob->heap, free_block == SY__SLOB_NO_BLOCK ? SY_BUG_INTERIOR_FREE : SY_BUG_DOUBLE_FREE, object);
}

/* Frees a block of `bytes`, whose object stands `before` bytes behind its start; live as in block_alloc. */
static void block_free(struct sy__slob_heap *slob, unsigned slot, void *block, uint32_t bytes, uint32_t before, uint64_t *live)
{
	struct sy_page *page = sy__page_of(&slob->heap, block);
	struct sy__slob_page *state = sy__slob_page_state(page);
	uint32_t units = units_for(bytes), at = (uint32_t)((sy__slob_unit_t *)block - sy__slob_page_units(slob, page));

	sy__lock(&slob->lock);
	if (sy__unlikely(units > SY__SLOB_PAGE_UNITS - at || state->free_units + units > SY__SLOB_PAGE_UNITS ||
	                 (state->free_units + units == SY__SLOB_PAGE_UNITS && block_within(slob, page, at, at + units) != SY__SLOB_NO_BLOCK))) {
		tell_unused(slob, page, at, (char *)block + before);
		sy__unlock(&slob->lock);
		return;
	}
	if (live)
		--*live;
	if (sy__unlikely(state->free_units + units == SY__SLOB_PAGE_UNITS)) {
		leave_list(slob, page);
		slob->heap.counters.slow_frees++;
		sy__unlock(&slob->lock);
		sy__pages_give(&slob->heap, slot, page);
		return;
	}
	if (sy__unlikely(!state->free_units))
		join_list(slob, page, at, bytes);
	else if (sy__unlikely(!put(slob, page, at, units, before)))
		units = 0;
	state->free_units = (uint16_t)(state->free_units + units);
	sy__unlock(&slob->lock);
}

/* ---- Objects that are pages ----------------------------------------------------------------------------------- */

/* live as in block_alloc. */
static SY__COLD void *pages_alloc(struct sy__slob_heap *slob, unsigned slot, size_t bytes, unsigned flags, int node,
                                  uint64_t *live)
{
	void *object = sy__large_alloc(&slob->heap, slot, bytes, flags, node);

	if (!object)
		return NULL;
	sy__lock(&slob->lock);
	slob->heap.counters.slow_allocs++;
	if (live)
		++*live;
	sy__unlock(&slob->lock);
	return object;
}

static SY__COLD void pages_free(struct sy__slob_heap *slob, unsigned slot, struct sy_page *page, const void *object, uint64_t *live)
{
	sy__lock(&slob->lock);
	slob->heap.counters.slow_frees++;
	if (live)
		--*live;
	sy__unlock(&slob->lock);
	sy__large_free(&slob->heap, slot, page, object);
}

/* ---- kmalloc -------------------------------------------------------------------------------------------------- */

static void *slob_kmalloc(struct sy_heap *heap, unsigned slot, size_t size, unsigned flags, int node)
{
	struct sy__slob_heap *slob = sy__slob_of(heap);
	struct sy__slob_request request;
	uint32_t bytes, align;
	char *block;

	if (sy__unlikely(size >= SY_PAGE_SIZE - (heap->sizing.align > HEADER ? heap->sizing.align : HEADER)))
		return pages_alloc(slob, slot, size ? size : 1, flags, node, NULL); /* 0 bytes would mean a cached run */
	bytes = size ? (uint32_t)size : 1; /* a block that is all header would end where its object starts */
	align = bytes > HEADER && (bytes & (bytes - 1)) == 0 ? bytes : HEADER;
	if (align < heap->sizing.align)
		align = heap->sizing.align;
	request = request_for(bytes + HEADER, align, HEADER, heap->sizing.align);
	block = block_alloc(slob, &request, slot, flags, node, NULL);
	if (!block)
		return NULL;
	*(uint32_t *)(void *)block = bytes;
	return block + HEADER;
}

static uint32_t header_bytes(const void *object)
{
	return *(const uint32_t *)(const void *)((const char *)object - HEADER);
}

/* Whether a header that makes sense is in front of an address, in the same page. */
static inline bool has_header(const void *address)
{
	size_t distance = (uintptr_t)address & (SY_PAGE_SIZE - 1);

	return distance && !(distance & (HEADER - 1)) && header_bytes(address) - 1u < SY_PAGE_SIZE - distance;
}

static SY__COLD void tell_no_header(struct sy__slob_heap *slob, struct sy_page *page, const void *object)
{
	uint32_t at = (uint32_t)((const sy__slob_unit_t *)object - sy__slob_page_units(slob, page));

	sy__lock(&slob->lock);
	tell_unused(slob, page, at, object);
	sy__unlock(&slob->lock);
}

static void slob_kfree(struct sy_heap *heap, unsigned slot, void *object)
{
	struct sy_page *page = sy__page_of(heap, object);

	if (sy__unlikely(!sy__page_is_slab(page)))
		pages_free(sy__slob_of(heap), slot, page, object, NULL);
	else if (sy__unlikely(!has_header(object)))
		tell_no_header(sy__slob_of(heap), page, object);
	else
		block_free(sy__slob_of(heap), slot, (char *)object - HEADER, header_bytes(object) + HEADER, HEADER, NULL);
}

static size_t slob_usable_size(struct sy_heap *heap, const void *object)
{
	const struct sy_page *page = sy__page_of(heap, object);

	return sy__page_is_large(page) ? sy__large_usable(page) : units_for(header_bytes(object)) * SY__SLOB_UNIT;
}

/* ---- Off the fast path ----------------------------------------------------------------------------------------- */

/* Takes a block from a new page; NULL: no memory. */
static SY__COLD void *take_from_new_page(struct sy__slob_heap *slob, const struct sy__slob_request *request, unsigned slot,
                                         unsigned flags, int node, uint64_t *live)
{
	struct sy_page *page = sy__pages_take(&slob->heap, slot, 0, flags & ~(unsigned)SY_ZERO, node, SY_USE_SLAB);
	struct sy__slob_place place = { .previous = SY__SLOB_PAGE_UNITS, .units = SY__SLOB_PAGE_UNITS,
		                        .next = SY__SLOB_PAGE_UNITS };
	struct sy__slob_page *state;
	void *block;

	if (!page)
		return NULL;
	place.start = sy__slob_start(0, &request->want);
	state = sy__slob_page_state(page);
	state->free_units = (uint16_t)SY__SLOB_PAGE_UNITS;
	state->list = (uint8_t)request->list;
	state->first = 0;
	block_appears(state, SY__SLOB_PAGE_UNITS);
	sy__lock(&slob->lock);
	sy__slob_count_in(&slob->sizes[state->list], SY__SLOB_PAGE_UNITS);
	block = take(slob, page, &place, request->want.units);
	if (state->free_units)
		link_first(slob, state);
	slob->heap.counters.slow_allocs++;
	if (live)
		++*live;
	sy__unlock(&slob->lock);
	return block;
}

/* Takes a page that is about to be wholly free off its list. */
static SY__OUT_OF_LINE void leave_list(struct sy__slob_heap *slob, struct sy_page *page)
{
	struct sy__slob_page *state = sy__slob_page_state(page);
	const sy__slob_unit_t *base = sy__slob_page_units(slob, page);
	uint32_t units, next;

	if (!state->free_units)
		return;
	for (uint32_t block = state->first; block != SY__SLOB_PAGE_UNITS; block = next) {
		sy__slob_read(base, block, &units, &next);
		sy__slob_count_out(&slob->sizes[state->list], units);
	}
	unlink(slob, state);
}

/* Puts a full page, of which a block was just freed, on the list that fits it. */
static SY__OUT_OF_LINE void join_list(struct sy__slob_heap *slob, struct sy_page *page, uint32_t block, uint32_t bytes)
{
	struct sy__slob_page *state = sy__slob_page_state(page);
	uint32_t units = units_for(bytes);

	sy__slob_write(sy__slob_page_units(slob, page), block, units, SY__SLOB_PAGE_UNITS);
	state->first = (uint16_t)block;
	state->list = (uint8_t)list_for(bytes);
	state->may_have = 0;
	sy__fill(state->most, 0, sizeof(state->most));
	block_appears(state, units);
	sy__slob_count_in(&slob->sizes[state->list], units);
	link_first(slob, state);
}

/* ---- Caches --------------------------------------------------------------------------------------------------- */

static void *slob_cache_alloc(struct sy_cache *cache, unsigned slot, unsigned flags, int node)
{
	struct slob_cache *own = (struct slob_cache *)(void *)cache;
	struct sy__slob_heap *slob = sy__slob_of(cache->heap);
	char *object;

	if (sy__likely(own->request.bytes < SY_PAGE_SIZE)) {
		object = block_alloc(slob, &own->request, slot, flags, node, &own->live);
		if (object && own->header) {
			*(uint32_t *)(void *)object = cache->size;
			object += HEADER;
		}
	} else {
		object = pages_alloc(slob, slot, cache->size, flags, node, &own->live);
	}
	if (object && cache->constructor)
		sy__construct(cache->constructor, object, cache->object_size);
	return object;
}

static void object_free(struct slob_cache *own, unsigned slot, void *object, uint64_t *live)
{
	struct sy_cache *cache = &own->cache;
	struct sy__slob_heap *slob = sy__slob_of(cache->heap);

	if (cache->destructor)
		cache->destructor(object, cache->object_size);
	if (sy__likely(own->request.bytes < SY_PAGE_SIZE))
		block_free(slob, slot, (char *)object - own->header, own->request.bytes, own->header, live);
	else
		pages_free(slob, slot, sy__page_of(&slob->heap, object), object, live);
}

static struct footer *footer_of(const struct sy_cache *cache, void *object)
{
	return (struct footer *)(void *)((char *)object + cache->size - sizeof(struct footer));
}

static void slob_cache_free(struct sy_cache *cache, unsigned slot, void *object)
{
	struct slob_cache *own = (struct slob_cache *)(void *)cache;
	struct sy__slob_heap *slob = sy__slob_of(cache->heap);
	struct footer *footer;

	if (sy__likely(!(cache->flags & SY_CACHE_TYPESAFE_BY_RCU))) {
		object_free(own, slot, object, &own->live);
		return;
	}
	footer = footer_of(cache, object);
	footer->cache = own;
	sy__lock(&slob->lock);
	own->live--;
	sy__unlock(&slob->lock);
	sy__defer(&slob->heap, &footer->deferred);
}

static void slob_grace_passed(struct sy_heap *heap, struct sy_deferred *deferred)
{
	struct footer *footer = sy__entry(deferred, struct footer, deferred);
	struct slob_cache *own = footer->cache;

	(void)heap; /* the cache knows it */
	object_free(own, 0, (char *)(footer + 1) - own->cache.size, NULL);
}

static bool slob_cache_init(struct sy_cache *cache)
{
	struct slob_cache *own = (struct slob_cache *)(void *)cache;
	size_t bytes = cache->object_size;

	if (cache->flags & SY_CACHE_TYPESAFE_BY_RCU)
		bytes = sy__align_up(bytes, _Alignof(struct footer)) + sizeof(struct footer);
	bytes = sy__align_up(bytes, SY__SLOB_UNIT);
	if (sy__order_of(bytes) > SY_MAX_ORDER)
		return false;
	if (cache->align < HEADER)
		cache->align = HEADER;
	cache->size = (uint32_t)bytes;
	if (cache->flags & SY_CACHE_KFREE && !(cache->flags & SY_CACHE_TYPESAFE_BY_RCU))
		own->header = HEADER;
	if (own->header && cache->align + cache->size > SY_PAGE_SIZE) /* behind a header at the page's start it would not be aligned */
		bytes = SY_PAGE_SIZE;
	own->request = request_for((uint32_t)bytes + own->header, cache->align, own->header, ANY_ALIGNMENT);
	return true;
}

static bool waits_for_cache(const struct sy_deferred *deferred, const void *cache)
{
	return ((const struct footer *)(const void *)deferred)->cache == cache;
}

/* Frees the objects that still wait. Objects in use stay, as all caches share the pages. */
static void slob_cache_fini(struct sy_cache *cache)
{
	sy__deferred_finish(cache->heap, waits_for_cache, cache);
}

static void slob_counts(struct sy_cache *cache, struct sy_cache_counts *counts)
{
	struct slob_cache *own = (struct slob_cache *)(void *)cache;
	struct sy__slob_heap *slob = sy__slob_of(cache->heap);

	*counts = (struct sy_cache_counts){ 0 };
	sy__lock(&slob->lock);
	counts->objects = counts->objects_in_use = own->live;
	sy__unlock(&slob->lock);
}

/* ---- The heap ------------------------------------------------------------------------------------------------- */

static bool slob_heap_init(struct sy_heap *heap)
{
	struct sy__slob_heap *slob = sy__slob_of(heap);

	for (unsigned i = 0; i < SY__SLOB_LISTS; i++)
		sy__list_init(&slob->partial[i]);
	slob->fit = (enum sy__slob_fit)heap->tunables[FIT];
	slob->log_every = slob->until_log = (uint64_t)heap->tunables[LOG_EVERY];
	return true;
}

static const struct sy_preset presets[] = {
	{ "paper", "fit=first", "as Kyritsis et al. and Garcarz describe it: the search begins at the first page of a list" },
};

const struct sy_policy sy__slob = {
	.name = "slob",
	.summary = "Linux 6.1: blocks of any size in shared pages, by next, first or best fit",
	.paper = "Ferreira et al., An Experimental Comparison Analysis of Kernel-level Memory Allocators, SAC 2015, section 3.3; "
	         "Kyritsis et al., SLOB Memory Allocation: First Fit vs Best Fit; "
	         "Linux 6.1 mm/slob.c",
	.tunables = tunables,
	.tunable_count = TUNABLES,
	.presets = presets,
	.preset_count = sizeof presets / sizeof *presets,
	.heap_bytes = sizeof(struct sy__slob_heap),
	.cache_bytes = sizeof(struct slob_cache),
	.cache_alloc = slob_cache_alloc,
	.cache_free = slob_cache_free,
	.kmalloc = slob_kmalloc,
	.kfree = slob_kfree,
	.heap_init = slob_heap_init,
	.cache_init = slob_cache_init,
	.cache_fini = slob_cache_fini,
	.usable_size = slob_usable_size,
	.grace_passed = slob_grace_passed,
	.counts = slob_counts,
	.check = sy__slob_check,
	.unused_bytes = sy__slob_unused_bytes,
	.walk = sy__slob_walk,
};
