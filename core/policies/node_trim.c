/*
 * What SLUB and yard have in common (node.h): giving back the pages of a slab one by one.
 *
 * A slab of several pages stays as long as one of its objects is in use. Where what lives on is scattered, most slabs have one,
 * but most pages have none. So a trim (sy_heap_trim, malloc_trim) looks at the slabs of each node's list, and gives the memory of
 * every page in which all objects are free back to where it came from. The page, as address space, remains the slab's.
 *
 * The objects that lie in such pages, even with a part, have lost their links. They come off the slab's list, and
 * slab.emptied_pages says which pages they are in, a bit for each. They remain free: the slab's word counts them neither as in use
 * nor on its list. Before a slot gets the slab all pages are taken into use, and their objects linked (sy__node_refill).
 * So only the node, this file, checks and walks ever meet such a slab. A free into one is like any other, as long as the list in
 * its word is not empty, by which it is told from a full slab: a trim leaves at least one object on it. A slab that becomes
 * empty goes back as it is: the page allocator knows which of its pages are backed.
 *
 * How. Under the node's lock, which keeps the slab on its list, the slab is frozen, and its list taken, in one exchange; what
 * others free meanwhile gathers in the word, as in any frozen slab. The list without what goes is pushed back in the exchange that
 * takes the frozen bit away.
 *
 * Not hardened, as a slab then ends only with all its objects on its list. Only with threads, whose heaps get their memory from an
 * operating system; not where free objects must keep their contents (constructors, readers under RCU), and not of slabs with more
 * pages than there are bits.
 */
#include "node.h"

#define MOST_PAGES 32u /* bits of emptied_pages */

/* Bits of the pages that an object lies in. */
static uint32_t pages_of(const struct sy__node_cache *cache, const struct sy_page *page, const void *object)
{
	size_t offset = (size_t)((const char *)object - (const char *)sy__page_address(cache->cache.heap, page));
	uint32_t from = (uint32_t)(offset >> SY_PAGE_SHIFT), to = (uint32_t)((offset + cache->cache.size - 1) >> SY_PAGE_SHIFT);

	return (uint32_t)((UINT64_C(2) << to) - (UINT64_C(1) << from));
}

static char *object_at(const struct sy__node_cache *cache, const struct sy_page *page, uint32_t object)
{
	return (char *)sy__page_address(cache->cache.heap, page) + (size_t)object * cache->cache.size;
}

bool sy__node_is_emptied(const struct sy__node_cache *cache, const struct sy_page *page, const void *object)
{
	uint32_t emptied = sy__word_frozen(sy__node_word(page)) ? 0 : SY_SLAB_STATE(const struct sy__node_slab, page)->emptied_pages;

	return emptied && emptied & pages_of(cache, page, object);
}

uint32_t sy__node_emptied_objects(const struct sy__node_cache *cache, const struct sy_page *page)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < sy__node_objects(page); i++)
		count += sy__node_is_emptied(cache, page, object_at(cache, page, i));
	return count;
}

/* ---- Trimming --------------------------------------------------------------------------------------------------------- */

/* The next object of a slab's list, which ends with NULL or a mark. */
static void *behind(const struct sy__node_cache *cache, const void *object)
{
	void *next = sy__node_next(cache, object);

	return next == SY__LIST_END ? NULL : next;
}

static void count(uint16_t *objects, uint32_t pages, int change)
{
	for (; pages; pages >>= 1, objects++)
		*objects = (uint16_t)(*objects + (pages & 1 ? change : 0));
}

/* Bits of the pages that went before, and of all others in which an object is in use: it is not on the list, and lies in none that
 * went. */
static uint32_t pages_to_stay(const struct sy__node_cache *cache, const struct sy_page *page, void *list, uint32_t before)
{
	uint16_t live[MOST_PAGES] = { 0 }; /* objects that lie in a page, even with a part */
	uint32_t stay = before;

	for (uint32_t i = 0; i < sy__node_objects(page); i++) {
		uint32_t in = pages_of(cache, page, object_at(cache, page, i));

		count(live, in, !(in & before));
	}
	for (void *at = list; at; at = behind(cache, at))
		count(live, pages_of(cache, page, at), -1);
	for (uint32_t i = 0; i < MOST_PAGES; i++)
		stay |= (uint32_t)(live[i] != 0) << i;
	return stay;
}

/* The list without the objects in some pages, linked anew: its first and last object. */
static void *keep_outside(const struct sy__node_cache *cache, const struct sy_page *page, void *list, uint32_t go, void **last)
{
	void *first = NULL, *next;

	*last = NULL;
	for (void *at = list; at; at = next) {
		next = behind(cache, at);
		if (go & pages_of(cache, page, at))
			continue;
		sy__node_link(cache, at, first);
		first = at;
		*last = *last ? *last : at;
	}
	return first;
}

/* Puts linked objects in front of what the slab's word has, which then counts so many fewer in use, and is not owned. */
static void put_back(const struct sy__node_cache *cache, struct sy__node_slab *slab, void *first, void *last, uint32_t count)
{
	uint64_t old = sy__load64(&slab->word);

	do
		sy__node_link(cache, last, sy__word_first(old, last));
	while (!sy__swap64(&slab->word, &old, sy__word_push(old & ~SY__WORD_FROZEN, first, count)));
}

/* A slab of its node's list, with that lock held. */
static uint64_t trim_slab(struct sy__node_cache *cache, struct sy_page *page)
{
	struct sy__node_slab *slab = sy__node_slab(page);
	uint64_t old = sy__node_freeze(slab), emptied = 0;
	uint32_t before = slab->emptied_pages, all = (uint32_t)((UINT64_C(1) << (1u << sy__page_order(page))) - 1), go;
	void *list, *first, *last;

	list = sy__word_first(old, sy__page_address(cache->cache.heap, page));
	go = all & ~pages_to_stay(cache, page, list, before);
	first = keep_outside(cache, page, list, go, &last);
	if (!first) { /* nothing was linked anew: what the list begins with stays */
		go &= ~pages_of(cache, page, list);
		first = keep_outside(cache, page, list, go, &last);
	}
	slab->emptied_pages = before | go;
	put_back(cache, slab, first, last, sy__word_objects(old) - sy__word_in_use(old));
	for (uint32_t i = 0; i < MOST_PAGES; i++)
		emptied += go >> i & 1 && sy__page_empty(cache->cache.heap, page + i);
	return emptied;
}

uint64_t sy__node_trim(struct sy_cache *cache)
{
	uint64_t pages = 0;

	if (!cache->heap->threads || cache->constructor || cache->flags & SY_CACHE_TYPESAFE_BY_RCU)
		return 0;
	for (unsigned i = 0; i < cache->heap->nodes; i++) {
		struct sy__node *node = &sy__node_cache(cache)->nodes[i];

		sy__lock(&node->lock);
		for (struct sy_list *at = node->partial.next; at != &node->partial; at = at->next)
			if (1u << sy__page_order(sy__node_linked(at)) <= MOST_PAGES)
				pages += trim_slab(sy__node_cache(cache), sy__node_linked(at));
		sy__unlock(&node->lock);
	}
	return pages;
}

/* Of a slab of a node's list, with that lock held: takes its pages into use again, and links what lies in them. */
SY__COLD void sy__node_refill_emptied(const struct sy__node_cache *cache, struct sy_page *page)
{
	struct sy__node_slab *slab = sy__node_slab(page);
	void *first = NULL, *last = NULL;

	for (uint32_t i = sy__node_objects(page); i-- > 0;) {
		void *object = object_at(cache, page, i);

		if (!sy__node_is_emptied(cache, page, object))
			continue;
		sy__node_link(cache, object, first);
		first = object;
		last = last ? last : object;
	}
	for (uint32_t i = 0; i < MOST_PAGES; i++)
		if (slab->emptied_pages >> i & 1)
			sy__page_refill(cache->cache.heap, page + i);
	slab->emptied_pages = 0;
	if (first)
		put_back(cache, slab, first, last, 0);
}
