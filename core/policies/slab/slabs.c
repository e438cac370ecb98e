/*
 * SLAB: slabs, from birth to death, and how objects move between them and arrays.
 *
 * A slab has a freelist: the numbers of its objects in the order in which they will be allocated. The first `active`
 * of them have left. Taking an object reads freelist[active] and counts up; giving one back counts down and writes
 * its number there, so that it is the next to go. An array of numbers in place of links keeps free objects untouched:
 * what a constructor set stays, and a free costs no cache miss on the object.
 *
 * Where is the freelist? If objects need not keep their contents, it is in the object that is last in it (SY__SLAB_IN_OBJECT).
 * Taking that object makes the slab full, and a full slab needs no freelist; the first object to return becomes the last one
 * again, and holds the new freelist. A freelist of few objects is in the slab's state (SY__SLAB_IN_STATE), though Linux has it
 * in an object too: so moving a large object never touches that object. Other slabs have their freelist behind the
 * objects, or in an object of a size class (geometry.c chooses).
 *
 * Birth: pages, a colour, the freelist, constructors. The slab comes to a list with its first objects already taken.
 * Colours go round: each new slab of a node starts its objects a cache line later than the one before, as far as the
 * slab's waste allows, so that objects with the same number don't all compete for the same lines of a processor's
 * cache (Bonwick 1994, section 4). The first slab of a node gets the second colour, as in Linux.
 *
 * Death: a free slab leaves its list under the node's lock onto a list of surplus ones, and sy__slab_destroy ends
 * those when no lock is held any more. Destructors run and pages go back, those of RCU-typesafe caches after a grace
 * period.
 */
#include "../../bug.h"
#include "../../deferred.h"
#include "slab.h"

#define SEEN_WORDS 8u /* slabs of 64 times as many objects are not looked at */

/* ---- Between slabs and arrays --------------------------------------------------------------------------------- */

/* The slab to take objects from; NULL: none has any. Linux: get_first_slab(). */
struct sy__slab_slab *sy__slab_first(struct sy__slab_node *node)
{
	if (!sy__list_empty(&node->partial))
		return sy__slab_linked(node->partial.next);
	node->free_touched = 1;
	if (sy__list_empty(&node->free))
		return NULL;
	return sy__slab_linked(node->free.next);
}

static void *object_at(const struct sy__slab_cache *cache, struct sy__slab_slab *slab, uint32_t number)
{
	return sy__slab_first_object(cache, slab) + (size_t)number * cache->cache.size;
}

/* A multiplication in place of a division. It is exact, as offsets are multiples of the size below 2^32 / the number of
 * objects. */
static sy__slab_index_t number_of(const char *first, uint64_t inverse, const void *object)
{
	return (sy__slab_index_t)((uint64_t)((const char *)object - first) * inverse >> 32);
}

/* Puts a slab that lost objects, and is on no list, where it belongs. */
static void place_taken(struct sy__slab_cache *cache, struct sy__slab_node *node, struct sy__slab_slab *slab)
{
	if (slab->active < cache->objects) {
		sy__list_add_head(&node->partial, &slab->link);
		return;
	}
	sy__list_add_head(&node->full, &slab->link);
	if (cache->place == SY__SLAB_IN_OBJECT)
		slab->freelist = NULL;
}

/* The slab's numbers are damaged behind the first `taken`: whatever else was free is lost. */
static SY__COLD uint32_t lose_rest(struct sy__slab_cache *cache, struct sy__slab_node *node, struct sy__slab_slab *slab, uint32_t taken,
                                   const void *damaged)
{
	node->free_objects -= cache->objects - slab->active;
	slab->active = (uint16_t)cache->objects;
	sy__list_remove(&slab->link);
	place_taken(cache, node, slab);
	sy__bug(cache->cache.heap, SY_BUG_WRITE_AFTER_FREE, damaged);
	return taken;
}

/* Takes up to `most` objects from a slab of the node that is not full; returns how many. */
uint32_t sy__slab_take(struct sy__slab_cache *cache, struct sy__slab_node *node, struct sy__slab_slab *slab, void **to,
                       uint32_t most)
{
	uint32_t count = cache->objects - slab->active < most ? cache->objects - slab->active : most;
	const sy__slab_index_t *numbers = sy__slab_numbers(cache, slab) + slab->active;
	char *first = sy__slab_first_object(cache, slab);
	size_t size = cache->cache.size;

	if (!slab->active)
		node->free_slabs--;
	for (uint32_t i = 0; i < count; i++) {
		if (sy__unlikely(numbers[i] >= cache->objects)) /* where the free objects hold their numbers, the program has written there */
			return lose_rest(cache, node, slab, i, &numbers[i]);
		to[i] = first + numbers[i] * size;
	}
	slab->active = (uint16_t)(slab->active + count);
	node->free_objects -= count;
	sy__list_remove(&slab->link);
	place_taken(cache, node, slab);
	return count;
}

/* Puts a slab that got objects where it belongs. */
static void place_given(struct sy__slab_node *node, struct sy__slab_slab *slab)
{
	sy__list_remove(&slab->link);
	if (slab->active) {
		sy__list_add_tail(&node->partial, &slab->link);
	} else {
		sy__list_add_head(&node->free, &slab->link);
		node->free_slabs++;
	}
}

/* In a slab that is wholly free each object is free once. If one was freed twice, another is in use, and is about to be lost. */
static void check_numbers(struct sy__slab_cache *cache, struct sy__slab_slab *slab, const sy__slab_index_t *numbers)
{
	uint64_t seen[SEEN_WORDS] = { 0 };

	if (cache->objects > 64 * SEEN_WORDS)
		return;
	for (uint32_t i = 0; i < cache->objects; i++) {
		uint32_t number = numbers[i];

		if (sy__unlikely(number >= cache->objects || seen[number / 64] >> number % 64 & 1)) {
			sy__bug(cache->cache.heap, number < cache->objects ? SY_BUG_DOUBLE_FREE : SY_BUG_WRITE_AFTER_FREE,
			        number < cache->objects ? object_at(cache, slab, number) : (const void *)&numbers[i]);
			return;
		}
		seen[number / 64] |= (uint64_t)1 << number % 64;
	}
}

/* Puts up to `count` objects back, as long as they are of one slab, whose place then changes once; returns how many. Linux moves a
 * slab to the end of the partial list at each free into it. In a heap of threads a partial slab stays where it is, as moving it
 * would touch the links of its neighbours each time. */
static uint32_t put_run(struct sy__slab_cache *cache, struct sy__slab_node *node, void *const *objects, uint32_t count)
{
	struct sy__slab_slab *slab = sy__slab_slab(sy__head_of(cache->cache.heap, objects[0]));
	uint64_t inverse = cache->inverse, bytes = (uint64_t)cache->objects * cache->cache.size;
	sy__slab_index_t *numbers = sy__slab_numbers(cache, slab);
	const char *first = sy__slab_first_object(cache, slab);
	uint32_t active = slab->active, done = 0;
	bool stays = active < cache->objects && cache->cache.heap->threads;

	if (!numbers)
		numbers = slab->freelist = objects[0];
	do {
		if (sy__unlikely(!active)) {
			node->free_objects--;
			sy__bug(cache->cache.heap, SY_BUG_DOUBLE_FREE, objects[done]);
			if (!done)
				return 1;
			done++;
			break;
		}
		numbers[--active] = number_of(first, inverse, objects[done]);
	} while (++done < count && (uintptr_t)objects[done] - (uintptr_t)first < bytes);
	slab->active = (uint16_t)active;
	if (sy__unlikely(!active))
		check_numbers(cache, slab, numbers);
	if (!stays || !active)
		place_given(node, slab);
	return done;
}

/* Takes the last free slab off the node. */
static void expel(struct sy__slab_cache *cache, struct sy__slab_node *node, struct sy_list *surplus)
{
	struct sy_list *link = node->free.prev;

	sy__list_remove(link);
	sy__list_add_tail(surplus, link);
	node->slabs--;
	node->free_slabs--;
	node->free_objects -= cache->objects;
}

/* Gives objects back to slabs of the node. Slabs that are then too many go to surplus. Linux: free_block(). */
void sy__slab_put(struct sy__slab_cache *cache, struct sy__slab_node *node, void *const *objects, uint32_t count,
                  struct sy_list *surplus)
{
	node->free_objects += count;
	for (uint32_t i = 0; i < count;)
		i += put_run(cache, node, objects + i, count - i);
	while (node->free_objects > node->free_limit && !sy__list_empty(&node->free))
		expel(cache, node, surplus);
}

/* Removes the objects at the bottom of an array, which went elsewhere. Never writes to the empty stand-in that many slots share. */
void sy__slab_drop(struct sy__slab_array *array, uint32_t count)
{
	if (!count)
		return;
	array->avail -= count;
	for (uint32_t i = 0; i < array->avail; i++)
		array->objects[i] = array->objects[i + count];
}

static uint32_t least_of(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* Moves up to `most` objects from the top of one array to another, as far as that has room; returns how many. */
uint32_t sy__slab_transfer(struct sy__slab_array *to, struct sy__slab_array *from, uint32_t most)
{
	uint32_t count = least_of(least_of(from->avail, most), to->limit - to->avail);

	from->avail -= count;
	sy__copy(to->objects + to->avail, from->objects + from->avail, count * sizeof(void *));
	to->avail += count;
	return count;
}

/* Empties an alien array to the node of its objects. With the alien array's lock held, but no node's. */
void sy__slab_drain_alien(struct sy__slab_cache *cache, struct sy__slab_array *array, struct sy_list *surplus)
{
	struct sy__slab_node *home = &cache->nodes[array->node];

	sy__lock(&home->lock);
	if (home->shared)
		sy__slab_transfer(home->shared, array, array->limit);
	sy__slab_put(cache, home, array->objects, array->avail, surplus);
	array->avail = 0;
	sy__unlock(&home->lock);
}

/* ---- Birth ---------------------------------------------------------------------------------------------------- */

static uint32_t next_colour(struct sy__slab_cache *cache, struct sy__slab_node *node)
{
	uint32_t colour;

	sy__lock(&node->lock);
	colour = node->colour_next + 1;
	if (colour >= cache->colours)
		colour = 0;
	node->colour_next = colour;
	sy__unlock(&node->lock);
	return colour;
}

static size_t freelist_bytes(const struct sy__slab_cache *cache)
{
	return cache->objects * sizeof(sy__slab_index_t);
}

/* Gives a new slab memory for its freelist; NULL: there is none. */
static sy__slab_index_t *make_freelist(struct sy__slab_cache *cache, unsigned slot, unsigned flags,
                                       struct sy__slab_slab *slab)
{
	struct sy_page *page = sy__slab_page(slab);
	struct sy_heap *heap = cache->cache.heap;

	switch (cache->place) {
	case SY__SLAB_IN_STATE:
		return slab->few;
	case SY__SLAB_IN_OBJECT:
		return slab->freelist = object_at(cache, slab, cache->objects - 1);
	case SY__SLAB_ON_SLAB:
		return slab->freelist = (sy__slab_index_t *)(void *)((char *)sy__page_address(heap, page) +
		                                                     (SY_PAGE_SIZE << sy__page_order(page)) - freelist_bytes(cache));
	default:
		return slab->freelist = sy_kmalloc(heap, slot, freelist_bytes(cache), flags & SY__INHERITED_FLAGS, sy__page_node(page));
	}
}

static void fill_in(struct sy__slab_cache *cache, struct sy__slab_slab *slab, sy__slab_index_t *numbers)
{
	const struct sy_cache *common = &cache->cache;

	for (uint32_t i = 0; common->constructor && i < cache->objects; i++)
		sy__construct(common->constructor, object_at(cache, slab, i), common->object_size);
	for (uint32_t i = 0, count = cache->objects; i < count; i++)
		numbers[i] = (sy__slab_index_t)i;
}

/* A heap may have nodes without memory; their requests go to others. */
static bool may_have_pages(const struct sy_heap *heap, int node)
{
	return node == SY_ANY_NODE || (unsigned)node < sy__pages_nodes(heap->pages);
}

/* Makes a slab that is on no list yet, with all its objects free; NULL: no memory. */
struct sy__slab_slab *sy__slab_new(struct sy__slab_cache *cache, unsigned slot, unsigned flags, int node)
{
	struct sy_heap *heap = cache->cache.heap;
	unsigned page_flags = (flags & SY__INHERITED_FLAGS) | cache->page_flags;
	struct sy_page *page = NULL;
	struct sy__slab_slab *slab;
	sy__slab_index_t *numbers;

	if (may_have_pages(heap, node))
		page = sy__pages_take(heap, slot, cache->order, page_flags, node, SY_USE_SLAB);
	if (!page)
		return NULL;
	slab = sy__slab_slab(page);
	slab->cache = cache;
	slab->start = next_colour(cache, &cache->nodes[sy__page_node(page)]) * cache->colour_step;
	slab->active = 0;
	slab->waiting = 0;
	numbers = make_freelist(cache, slot, flags, slab);
	if (!numbers) {
		sy__pages_give(heap, slot, page);
		return NULL;
	}
	fill_in(cache, slab, numbers);
	return slab;
}

/* Adds a new slab to the node, and takes up to `most` objects from it, at least one; returns how many. With the node's lock held. */
uint32_t sy__slab_take_new(struct sy__slab_cache *cache, struct sy__slab_node *node, struct sy__slab_slab *slab, void **to,
                           uint32_t most)
{
	uint32_t count = least_of(cache->objects, most);
	char *object = sy__slab_first_object(cache, slab);

	for (uint32_t i = 0; i < count; i++, object += cache->cache.size)
		to[i] = object;
	slab->active = (uint16_t)count;
	sy__contraction_ends(&node->contraction, ++node->slabs);
	node->free_objects += cache->objects - count;
	place_taken(cache, node, slab);
	return count;
}

/* Adds a new slab to the node's free list. With the node's lock held. */
void sy__slab_count_in(struct sy__slab_node *node, struct sy__slab_cache *cache, struct sy__slab_slab *slab)
{
	sy__contraction_ends(&node->contraction, ++node->slabs);
	node->free_slabs++;
	node->free_objects += cache->objects;
	sy__list_add_tail(&node->free, &slab->link);
}

/* ---- Death ---------------------------------------------------------------------------------------------------- */

static inline uint64_t give_back(struct sy__slab_cache *cache, unsigned slot, struct sy__slab_slab *slab)
{
	struct sy_page *page = sy__slab_page(slab);
	uint64_t pages = (uint64_t)1 << sy__page_order(page);

	for (uint32_t i = 0; cache->cache.destructor && i < cache->objects; i++)
		cache->cache.destructor(object_at(cache, slab, i), cache->cache.object_size);
	sy__pages_give(cache->cache.heap, slot, page);
	return pages;
}

static uint64_t destroy_one(struct sy__slab_cache *cache, unsigned slot, struct sy__slab_slab *slab)
{
	struct sy_heap *heap = cache->cache.heap;

	if (cache->place == SY__SLAB_OFF_SLAB)
		sy_kfree(heap, slot, slab->freelist);
	if (!(cache->cache.flags & SY_CACHE_TYPESAFE_BY_RCU))
		return give_back(cache, slot, slab);
	slab->freelist = NULL;
	slab->waiting = 1;
	sy__defer(heap, &slab->deferred);
	return 0;
}

/* Ends all slabs of a list that nobody else can reach. */
uint64_t sy__slab_destroy(struct sy__slab_cache *cache, unsigned slot, struct sy_list *surplus)
{
	uint64_t pages = 0;

	for (struct sy_list *link = surplus->next, *next; link != surplus; link = next) {
		next = link->next;
		pages += destroy_one(cache, slot, sy__slab_linked(link));
	}
	return pages;
}

/* Ends up to `most` free slabs of a node; returns pages given back. Linux: drain_freelist(). */
uint64_t sy__slab_end_free(struct sy__slab_cache *cache, struct sy__slab_node *node, unsigned slot, uint64_t most)
{
	struct sy_list surplus;

	sy__list_init(&surplus);
	sy__lock(&node->lock);
	for (; most && !sy__list_empty(&node->free); most--)
		expel(cache, node, &surplus);
	sy__unlock(&node->lock);
	return sy__slab_destroy(cache, slot, &surplus);
}

void sy__slab_grace_passed(struct sy_heap *heap, struct sy_deferred *entry)
{
	struct sy__slab_slab *slab = sy__entry(entry, struct sy__slab_slab, deferred);

	(void)heap;
	give_back(slab->cache, 0, slab);
}
