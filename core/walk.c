/*
 * Walks: everything in a heap's slabs, shown to a visitor.
 *
 * The page allocator knows all slabs of a heap, also full ones, which are on no list. So a walk goes over its pages, in order of
 * address. The policy says what is inside a slab (walk in struct sy_policy).
 *
 * The window. Policies keep lists of free objects, and a visitor wants each object with its place, in order of address. That needs
 * either memory for every object of a slab, which a walk must not take (people ask what memory is doing when there is none), or a
 * search of all lists for each object. In between stands a window of marks for 64 objects. One pass over the lists fills
 * it: the policy names every free object that it meets, and those outside the window are ignored. Then the next 64 follow. Most
 * slabs have no more objects than that.
 *
 * Promises to the visitor, which tests check for every policy: parts ascend without gaps, so their bytes add up to the slab's; no
 * object is skipped; an object on two lists is reported as such. A walk of a corrupt heap ends too: it follows links in free
 * objects, which programs may have overwritten, only while they lead to pages of the heap, and only for as many steps as there
 * may be.
 *
 * Where lists are longer than slabs, a policy may number the objects on them before the first slab, and undo that after the last
 * (walk_begin, walk_end; svr4/walk.c).
 *
 * No lock is taken here. A walk shows a heap at rest, or a heap of threads whose slots are stopped. It reads what checks read.
 */
#include "walk.h"

#include "this_slot.h"
#include "list.h"
#include "page_interface.h"

/* ---- Parts ---------------------------------------------------------------------------------------------------- */

bool sy__walk_slab(struct sy__walk *walk)
{
	walk->told = 0;
	walk->ended = walk->ended || !walk->visitor->slab(walk->visitor->context, &walk->slab);
	return !walk->ended;
}

static void tell(struct sy__walk *walk, struct sy_part part, size_t end)
{
	if (walk->ended || end <= walk->told)
		return;
	part.offset = walk->told;
	part.bytes = end - walk->told;
	walk->told = end;
	walk->ended = !walk->visitor->part(walk->visitor->context, &walk->slab, &part);
}

void sy__walk_part(struct sy__walk *walk, size_t end, enum sy_part_state state)
{
	tell(walk, (struct sy_part){ .state = state }, end);
}

void sy__walk_block(struct sy__walk *walk, size_t end, const struct sy__mark *mark)
{
	struct sy_part part = { .state = SY_PART_USED, .is_object = true };

	if (mark)
		part = (struct sy_part){ .state = mark->state, .is_object = true, .list = mark->list, .owner = mark->owner,
			                 .place = mark->place, .lists = mark->lists };
	tell(walk, part, end);
}

/* ---- Objects side by side ------------------------------------------------------------------------------------- */

void sy__walk_mark(struct sy__walk *walk, const void *object, enum sy_part_state state, const char *list, unsigned owner,
                   uint64_t place)
{
	const struct sy__walk_grid *grid = walk->grid;
	size_t from_first = (size_t)((const char *)object - walk->slab.address) - grid->start; /* huge: it is before that */
	struct sy__mark *mark;

	if (from_first >= grid->size * grid->objects || from_first / grid->size - walk->first >= SY__WALK_WINDOW)
		return;
	mark = &walk->window[from_first / grid->size - walk->first];
	if (!mark->lists)
		*mark = (struct sy__mark){ list, place, (uint16_t)owner, 0, state };
	if (mark->lists < UINT16_MAX)
		mark->lists++;
}

/* Address of an object's link; NULL: there is none. The page allocator does not know memory of a supplier. */
static void *const *link_of(const struct sy__walk *walk, const void *object, size_t offset)
{
	const char *link = object ? (const char *)object + offset : NULL;
	bool supplied = walk->slab.cache && walk->slab.cache->supplier;

	if (!link || (uintptr_t)link % sizeof(void *) || (!supplied && !sy__pages_find(walk->heap, link)))
		return NULL;
	return (void *const *)(const void *)link;
}

void sy__walk_chain(struct sy__walk *walk, const void *first, size_t offset, uint64_t most, enum sy_part_state state,
                    const char *list, unsigned owner)
{
	void *const *link;

	for (uint64_t place = 0; place <= most && (link = link_of(walk, first, offset)); first = *link)
		sy__walk_mark(walk, first, state, list, owner, place++);
}

/* A mark on no list means that the object is in use. */
static void tell_object(struct sy__walk *walk, size_t end, const struct sy__mark *mark)
{
	if (mark->lists)
		sy__walk_block(walk, end, mark);
	else
		tell(walk, (struct sy_part){ .state = walk->grid->held, .is_object = true }, end);
}

void sy__walk_objects(struct sy__walk *walk, const struct sy__walk_grid *grid)
{
	walk->grid = grid;
	sy__walk_part(walk, grid->start, SY_PART_COLOUR);
	for (uint32_t i = 0; i < grid->objects && !walk->ended; i++) {
		struct sy__mark *mark = &walk->window[i % SY__WALK_WINDOW];

		if (i % SY__WALK_WINDOW == 0) {
			walk->first = i;
			sy__fill(walk->window, 0, sizeof(walk->window));
			grid->mark(walk, grid->context);
		}
		tell_object(walk, grid->start + (i + (size_t)1) * grid->size, mark);
	}
}

bool sy__walk_skips_places;

uint64_t sy__walk_place(const struct sy_list *list, const struct sy_list *link)
{
	uint64_t place = 0;

	for (const struct sy_list *at = list->next; !sy__walk_skips_places && at != list && at != link; at = at->next)
		place++;
	return place;
}

/* ---- Slabs ---------------------------------------------------------------------------------------------------- */

/* A block of a large allocation. The walk meets these in order; the first one has the bytes asked for. */
static void walk_large(struct sy__walk *walk, const struct sy_page *page)
{
	size_t bytes;

	walk->slab.large = true;
	walk->slab.list = "large";
	if (!sy__walk_slab(walk))
		return;
	if (sy__page_bytes(page))
		walk->large = (size_t)sy__page_bytes(page);
	bytes = walk->large < walk->slab.bytes ? walk->large : walk->slab.bytes;
	walk->large -= bytes;
	sy__walk_block(walk, bytes, NULL);
}

static bool visit(void *context, struct sy_page *page)
{
	struct sy__walk *walk = context;

	if (sy__page_is_metadata(page))
		return true;
	walk->slab = (struct sy_slab){ .page = page, .address = sy__page_address(walk->heap, page),
		                       .bytes = SY_PAGE_SIZE << sy__page_order(page), .node = sy__page_node(page) };
	if (sy__page_is_large(page))
		walk_large(walk, page);
	else
		walk->heap->policy->walk(walk, page);
	sy__walk_part(walk, walk->slab.bytes, SY_PART_UNUSED);
	return !walk->ended;
}

static void show_caches(struct sy__walk *walk)
{
	const struct sy_visitor *visitor = walk->visitor;
	struct sy_list *caches = &walk->heap->caches;

	for (struct sy_list *at = caches->next; visitor->cache && at != caches && !walk->ended; at = at->next)
		walk->ended = !visitor->cache(visitor->context, sy__entry(at, struct sy_cache, link));
}

static void walk_pages(struct sy__walk *walk)
{
	const struct sy_policy *policy = walk->heap->policy;

	if (policy->walk_begin)
		policy->walk_begin(walk->heap);
	sy__pages_walk(walk->heap, visit, walk);
	if (policy->walk_end)
		policy->walk_end(walk->heap);
}

bool sy__walk_one(struct sy_heap *heap, struct sy_page *head, const struct sy_visitor *visitor)
{
	struct sy__walk walk = { .heap = heap, .visitor = visitor };
	const struct sy_policy *policy = heap->policy;

	if (!sy__slots_stop(heap))
		return false;
	if (policy->walk_begin)
		policy->walk_begin(heap);
	visit(&walk, head);
	if (policy->walk_end)
		policy->walk_end(heap);
	sy__slots_resume(heap);
	return !walk.ended;
}

bool sy_heap_walk(struct sy_heap *heap, const struct sy_visitor *visitor)
{
	struct sy__walk walk = { .heap = heap, .visitor = visitor };

	if (!sy__slots_stop(heap))
		return false;
	show_caches(&walk);
	if (!walk.ended)
		walk_pages(&walk);
	for (struct sy_list *at = heap->caches.next; at != &heap->caches && !walk.ended; at = at->next) {
		struct sy_cache *cache = sy__entry(at, struct sy_cache, link);

		if (cache->supplier)
			heap->policy->walk_supplied(&walk, cache);
	}
	sy__slots_resume(heap);
	return !walk.ended;
}
