/*
 * SLUB: giving back the pages of a slab one by one.
 *
 * A slab of several pages stays as long as one of its objects is in use. Where what lives on is scattered, most slabs have
 * one, but most pages have none. So a trim (sy_heap_trim, malloc_trim) looks at the slabs of each node's list, and gives the
 * memory of every page in which all objects are free back to where it came from. The page remains the slab's: it is only address
 * space until it is used again. (What goes by itself after a while, see core/backend/decay.c, are whole slabs: owned ones are their
 * slots' alone, and a look at the objects of all others would cost more than most programs gain.)
 *
 * The objects that lie in such pages, even with a part, have lost their links. They come off the slab's list, and
 * slab.emptied_pages says which pages they are in, a bit for each, or for each 2, 4, … of a slab of more than UNITS pages, which
 * then go together; that word is the held objects' count while the slab is a slot's, and free while it is nobody's. They remain
 * free: the slab's word counts them neither as in use nor on its list.
 *
 * Before a slot gets the slab, everything is as before: all pages are taken into use, and their objects linked
 * (sy__slub_refill_emptied). So nobody but the node, this file, checks and walks ever meets such a slab; and a free into one
 * is like any other, as long as the list in its word is not empty, by which it is told from a full slab. Therefore a trim
 * leaves at least one object on it. A slab that becomes empty goes back as it is: the page allocator knows which of its pages are
 * backed.
 *
 * How. Under the node's lock, which keeps the slab on its list, the slab is frozen, and its list taken, in one exchange; what
 * others free meanwhile gathers in the word, as in any frozen slab. Then the list without what goes is pushed back, in the
 * exchange that takes the frozen bit away.
 *
 * Only in heaps of threads, which get their memory from an operating system, and not where free objects must keep
 * their contents: caches with constructors or with readers under RCU.
 */
#include "../geometry.h"
#include "slub.h"

#define UNITS_ORDER 4u
#define UNITS (1u << UNITS_ORDER) /* that a slab is seen as at most: a bit for each */

/* Objects that are linked. */
struct kept {
	void *first, *last;
};

static unsigned unit_order(const struct sy_page *page)
{
	return sy__page_order(page) > UNITS_ORDER ? sy__page_order(page) - UNITS_ORDER : 0;
}

/* Bits of the units that an object lies in. */
static uint32_t units_of(const struct sy__slub_cache *cache, const struct sy_page *page, size_t offset)
{
	unsigned shift = SY_PAGE_SHIFT + unit_order(page);
	uint32_t from = (uint32_t)(offset >> shift), to = (uint32_t)((offset + cache->cache.size - 1) >> shift);

	return (2u << to) - (1u << from);
}

static size_t offset_of(const struct sy__slub_cache *cache, const struct sy_page *page, const void *object)
{
	return (size_t)((const char *)object - (const char *)sy__page_address(cache->cache.heap, page));
}

bool sy__slub_is_emptied(const struct sy__slub_cache *cache, const struct sy_page *page, uint32_t object)
{
	const struct sy__slub_slab *slab = SY_SLAB_STATE(const struct sy__slub_slab, page);

	return !sy__slub_frozen(page) && slab->emptied_pages & units_of(cache, page, (size_t)object * cache->cache.size);
}

uint32_t sy__slub_emptied_objects(const struct sy__slub_cache *cache, const struct sy_page *page)
{
	const struct sy__slub_slab *slab = SY_SLAB_STATE(const struct sy__slub_slab, page);
	uint32_t count = 0;

	for (uint32_t i = 0; slab->emptied_pages && i < sy__slub_objects(page); i++)
		count += sy__slub_is_emptied(cache, page, i);
	return count;
}

/* ---- Which pages -------------------------------------------------------------------------------------------------- */

/* Adds the bytes from an offset on to those that are not used in each unit of so many. */
static void add_room(uint32_t *room, size_t unit, size_t offset, size_t bytes)
{
	while (bytes) {
		size_t rest = unit - (offset & (unit - 1)), part = bytes < rest ? bytes : rest;

		room[offset / unit] += (uint32_t)part;
		offset += part;
		bytes -= part;
	}
}

/* Units in which no object is in use, with the slab's list in hand; those that went before among them. */
static uint32_t unused_units(const struct sy__slub_cache *cache, const struct sy_page *page, void *list, uint32_t before)
{
	size_t size = cache->cache.size, used = sy__slub_objects(page) * size, end = SY_PAGE_SIZE << sy__page_order(page);
	size_t unit = SY_PAGE_SIZE << unit_order(page);
	uint32_t room[UNITS] = { 0 }, unused = 0;

	add_room(room, unit, used, end - used);
	for (void *at = list; at; at = *sy__slub_next(cache, at))
		add_room(room, unit, offset_of(cache, page, at), size);
	for (size_t offset = 0; before && offset < used; offset += size)
		if (before & units_of(cache, page, offset))
			add_room(room, unit, offset, size);
	for (uint32_t i = 0; i < UNITS; i++)
		unused |= (uint32_t)(room[i] == unit) << i;
	return unused;
}

static uint32_t count_outside(const struct sy__slub_cache *cache, const struct sy_page *page, void *list, uint32_t units)
{
	uint32_t count = 0;

	for (void *at = list; at; at = *sy__slub_next(cache, at))
		count += !(units & units_of(cache, page, offset_of(cache, page, at)));
	return count;
}

/* Of the unused units those that may go now: all, but for as many as leave something on the list. */
static uint32_t units_to_go(const struct sy__slub_cache *cache, const struct sy_page *page, void *list, uint32_t before)
{
	uint32_t go = unused_units(cache, page, list, before) & ~before;

	while (go && !count_outside(cache, page, list, go))
		go &= go - 1;
	return go;
}

/* ---- Trimming ----------------------------------------------------------------------------------------------------- */

/* The list without the objects in some units, linked anew. */
static struct kept keep_outside(const struct sy__slub_cache *cache, const struct sy_page *page, void *list, uint32_t units)
{
	struct kept kept = { NULL, NULL };
	void *next;

	for (void *at = list; at; at = next) {
		next = *sy__slub_next(cache, at);
		if (units & units_of(cache, page, offset_of(cache, page, at)))
			continue;
		*sy__slub_next(cache, at) = kept.first;
		kept.first = at;
		kept.last = kept.last ? kept.last : at;
	}
	return kept;
}

/* Puts a list in front of what the slab's word has, which then counts so many objects fewer in use, and is not frozen. */
static void put_back(const struct sy__slub_cache *cache, struct sy__slub_slab *slab, struct kept kept, uint32_t count)
{
	uint64_t old = sy__load64(&slab->word);

	do
		*sy__slub_next(cache, kept.last) = sy__slub_word_first(old, kept.last);
	while (!sy__swap64(&slab->word, &old, sy__slub_word_push(old & ~SY__SLUB_FROZEN, kept.first, count)));
}

static uint64_t empty_pages(struct sy_heap *heap, struct sy_page *page, uint32_t units)
{
	unsigned order = unit_order(page);
	uint64_t emptied = 0;

	for (uint32_t i = 0; units >> (i >> order); i++)
		emptied += units >> (i >> order) & 1 && sy__page_empty(heap, page + i);
	return emptied;
}

/* A slab of its node's list, with that lock held. */
static uint64_t trim_slab(struct sy__slub_cache *cache, struct sy_page *page)
{
	struct sy__slub_slab *slab = sy__slub_slab(page);
	uint64_t old = sy__load64(&slab->word);
	uint32_t before = slab->emptied_pages, go;
	void *list;

	while (!sy__swap64(&slab->word, &old, sy__slub_word_take(old) | SY__SLUB_FROZEN))
		;
	list = sy__slub_word_first(old, sy__page_address(cache->cache.heap, page));
	go = units_to_go(cache, page, list, before);
	slab->emptied_pages = (uint16_t)(before | go);
	put_back(cache, slab, keep_outside(cache, page, list, go), sy__slub_word_objects(old) - sy__slub_word_in_use(old));
	return empty_pages(cache->cache.heap, page, go);
}

static uint64_t trim_node(struct sy__slub_cache *cache, struct sy__slub_node *node)
{
	uint64_t pages = 0;

	sy__lock(&node->lock);
	for (struct sy_list *at = node->partial.next; at != &node->partial; at = at->next)
		if (sy__page_order(sy__slub_linked(at)))
			pages += trim_slab(cache, sy__slub_linked(at));
	sy__unlock(&node->lock);
	return pages;
}

uint64_t sy__slub_trim(struct sy_cache *cache)
{
	uint64_t pages = 0;

	if (!cache->heap->threads || cache->constructor || cache->flags & SY_CACHE_TYPESAFE_BY_RCU)
		return 0;
	for (unsigned node = 0; node < cache->heap->nodes; node++)
		pages += trim_node(sy__slub_cache(cache), &sy__slub_cache(cache)->nodes[node]);
	return pages;
}

/* ---- And back ----------------------------------------------------------------------------------------------------- */

/* Links every object that lies in emptied pages. */
static struct kept link_emptied(const struct sy__slub_cache *cache, struct sy_page *page)
{
	char *start = sy__page_address(cache->cache.heap, page);
	struct kept kept = { NULL, NULL };

	for (uint32_t i = sy__slub_objects(page); i-- > 0;) {
		char *object = start + (size_t)i * cache->cache.size;

		if (!sy__slub_is_emptied(cache, page, i))
			continue;
		*sy__slub_next(cache, object) = kept.first;
		kept.first = object;
		kept.last = kept.last ? kept.last : object;
	}
	return kept;
}

/* Of a slab of a node's list, with that lock held: takes its pages into use again. Some may be behind all objects. */
SY__COLD void sy__slub_refill_emptied(struct sy__slub_cache *cache, struct sy_page *page)
{
	struct sy__slub_slab *slab = sy__slub_slab(page);
	struct kept kept = link_emptied(cache, page);
	unsigned order = unit_order(page);

	for (uint32_t i = 0; slab->emptied_pages >> (i >> order); i++)
		if (slab->emptied_pages >> (i >> order) & 1)
			sy__page_refill(cache->cache.heap, page + i);
	slab->emptied_pages = 0;
	if (kept.first)
		put_back(cache, slab, kept, 0);
}
