/*
 * SLUB: how a cache is laid out, and which caches are one.
 *
 * An object. Its size is rounded up to a word. A free object holds the pointer to the next free one: in its middle,
 * where neither an overflow from the object before nor one from its own start reaches first; but behind the object
 * where its contents must survive being free (a constructor set them, or readers under RCU may still look). In a heap
 * of threads it is at the start in place of the middle: that saves an instruction in each call, and the client is likely to
 * touch that cache line next anyway. Then the size is rounded up to the alignment.
 *
 * A slab. The more objects, the fewer visits to the node's list, which all CPUs share: so at least 4 * (fls(CPUs) +
 * 1) objects are wanted, but no more than fit the largest order. Among the orders from there on, the first wins
 * that wastes at most 1/16 of the slab; if none does, 1/8, then 1/4; then the same with one object fewer, and so
 * on. What still finds no order gets one that holds a single object, above the largest order if it must be. In heaps of
 * threads, whose new slabs touch no memory before it is used (slub_owned.c), slabs of FIRST_SLAB bytes and FIRST_OBJECTS are
 * wanted, and of LARGE_SLAB and LARGE_OBJECTS by a cache that has several, within a largest order of their own: of slabs that
 * hold two or three objects nearly every call makes or ends one. Empty ones go back to the page allocator early, whose lists
 * serve all caches.
 *
 * Merging. Caches whose objects can't be told apart share their slabs (core/merge.c). Slabs start at multiples of
 * their size, so objects of one size have the alignment that the size has, whatever was asked for.
 */
#include "../geometry.h"
#include "../merge.h"
#include "../backend/metadata.h"
#include "slub.h"

#define WORD sizeof(void *)
#define MOST_ORDER 3u         /* of slabs, as long as an object fits */
#define MOST_ORDER_THREADS 5u /* the same in heaps of threads */
#define MIN_PARTIAL_LEAST 5u
#define MIN_PARTIAL_MOST 10u
#define MIN_PARTIAL_THREADS 0u /* an empty slab serves one cache, free pages serve all */
#define FIRST_SLAB ((size_t)16 << 10) /* bytes that a cache's first slabs should have in heaps of threads, */
#define LARGE_SLAB ((size_t)32 << 10) /* and those of a cache that has many, within the largest order */
#define FIRST_OBJECTS 4u
#define LARGE_OBJECTS 12u
#define EMPTY_SLABS 2u /* what a thread keeps of a cache without an object in use */
#define STRAY_BYTES ((size_t)32 << 10) /* of free objects of others' slabs, */
#define MOST_STRAYS 128u               /* and so many, that a thread keeps of a cache */
#define ROW_BYTES ((size_t)16 << 10)   /* of those that a thread keeps which allocates none */
#define LARGEST_STRAY 1024u            /* whose objects are no larger */
#define SHEAF_BYTES ((size_t)256 << 10) /* of free objects larger than SY__KMALLOC_SMALL, of any slabs, */
#define MOST_SHEAF 128u                 /* and so many, that a thread keeps of a size class */
#define MOST_FOREIGN 32767u /* such slabs, whatever is asked for: what a slot counts, and more than a visit to a node adds */

/* ---- Slabs ---------------------------------------------------------------------------------------------------- */

/* First order from the least on that holds so many objects and wastes at most 1/fraction; more than most_order:
 * none. */
static unsigned fitting_order(unsigned least_order, unsigned most_order, size_t size, uint32_t objects,
                              uint32_t fraction)
{
	unsigned order = sy__order_of(objects * size);

	if (sy__order_objects(least_order, size) > SY__SLUB_MOST_OBJECTS)
		return sy__order_of(size * SY__SLUB_MOST_OBJECTS) - 1;
	for (order = order > least_order ? order : least_order; order <= most_order; order++) {
		size_t bytes = SY_PAGE_SIZE << order;

		if (bytes % size <= bytes / fraction)
			break;
	}
	return order;
}

static uint32_t wanted_objects(const int64_t *tunables, unsigned cpus)
{
	if (tunables[SLUB_MIN_OBJECTS] > 0)
		return (uint32_t)tunables[SLUB_MIN_OBJECTS];
	return 4 * (sy__highest_bit(cpus) + 1);
}

/* In heaps of threads, where untouched pages of a slab cost nothing: see above. For slabs of so many bytes, or so many
 * objects. */
static uint32_t wanted_by_threads(const struct sy_heap *heap, size_t size, size_t bytes, uint32_t least)
{
	uint32_t objects = (uint32_t)(bytes / size);

	if (heap->tunables[SLUB_MIN_OBJECTS] > 0)
		return (uint32_t)heap->tunables[SLUB_MIN_OBJECTS];
	return objects > least ? objects : least;
}

static unsigned most_order(const int64_t *tunables, bool threads)
{
	if (tunables[SLUB_MAX_ORDER] != SY_TUNABLE_AUTO)
		return (unsigned)tunables[SLUB_MAX_ORDER];
	return threads ? MOST_ORDER_THREADS : MOST_ORDER;
}

/* Order of slabs that should hold so many objects of this final size; more than SY_MAX_ORDER: impossible. */
static unsigned slab_order(const int64_t *tunables, unsigned most, uint32_t objects, size_t size)
{
	unsigned least = (unsigned)tunables[SLUB_MIN_ORDER], order;
	uint32_t fit;

	while (most > least && sy__order_objects(most, size) > SY__SLUB_MOST_OBJECTS)
		most--;
	fit = sy__order_objects(most, size);
	for (objects = objects < fit ? objects : fit; objects > 1; objects--) {
		for (uint32_t fraction = 16; fraction >= 4; fraction /= 2) {
			order = fitting_order(least, most, size, objects, fraction);
			if (order <= most)
				return order;
		}
	}
	order = fitting_order(least, most, size, 1, 1);
	return order <= most ? order : fitting_order(least, SY_MAX_ORDER, size, 1, 1);
}

static bool lay_out_slab(const int64_t *tunables, unsigned most, uint32_t objects, size_t size, struct sy_geometry *geometry)
{
	unsigned order;

	if (size < WORD || size > SY_PAGE_SIZE << SY_MAX_ORDER)
		return false;
	order = slab_order(tunables, most, objects, size);
	if (order > SY_MAX_ORDER)
		return false;
	geometry->size = (uint32_t)size;
	geometry->order = order;
	geometry->objects = sy__order_objects(order, size);
	geometry->wasted = (uint32_t)((SY_PAGE_SIZE << order) % size);
	return true;
}

bool sy__slub_geometry(const int64_t *tunables, unsigned cpus, size_t size, struct sy_geometry *geometry)
{
	return lay_out_slab(tunables, most_order(tunables, false), wanted_objects(tunables, cpus), size, geometry);
}

/* ---- Caches --------------------------------------------------------------------------------------------------- */

static void lay_out_object(struct sy__slub_cache *slub)
{
	struct sy_cache *cache = &slub->cache;
	size_t size = sy__align_up(cache->object_size, WORD);

	if (cache->constructor || cache->flags & SY_CACHE_TYPESAFE_BY_RCU) {
		slub->offset = (uint32_t)size;
		size += WORD;
	} else if (!cache->heap->threads) {
		slub->offset = (uint32_t)((cache->object_size / 2) & ~(WORD - 1));
	}
	cache->size = (uint32_t)sy__align_up(size, cache->align);
}

static uint32_t min_partial(const struct sy__slub_cache *slub)
{
	int64_t tunable = slub->cache.heap->tunables[SLUB_MIN_PARTIAL];
	uint32_t automatic = (sy__highest_bit(slub->cache.size) - 1) / 2;

	if (tunable != SY_TUNABLE_AUTO)
		return (uint32_t)tunable;
	if (slub->cache.heap->threads)
		return MIN_PARTIAL_THREADS;
	if (automatic < MIN_PARTIAL_LEAST)
		return MIN_PARTIAL_LEAST;
	return automatic < MIN_PARTIAL_MOST ? automatic : MIN_PARTIAL_MOST;
}

/* Free objects that a slot may keep in its partial slabs, taking each to be half full. */
static uint32_t slot_objects(const struct sy__slub_cache *slub)
{
	const struct sy_heap *heap = slub->cache.heap;

	if (heap->tunables[SLUB_CPU_PARTIAL] != SY_TUNABLE_AUTO)
		return (uint32_t)heap->tunables[SLUB_CPU_PARTIAL];
	if (heap->cpus == 1)
		return 0;
	if (slub->cache.size >= SY_PAGE_SIZE)
		return 6;
	if (slub->cache.size >= 1024)
		return 24;
	return slub->cache.size >= 256 ? 52 : 120;
}

/* Slabs on a slot's partial list: each is taken to be half full. */
static uint32_t slot_limit(const struct sy__slub_cache *slub, uint32_t objects)
{
	const struct sy_heap *heap = slub->cache.heap;
	uint32_t limit = (slot_objects(slub) * 2 + objects - 1) / objects;

	if (!heap->threads)
		return limit;
	if (heap->tunables[SLUB_CPU_PARTIAL] == SY_TUNABLE_AUTO)
		return 1;
	return limit < MOST_FOREIGN ? limit : MOST_FOREIGN;
}

/* In heaps of threads, those that others have filled: none, unless they are asked for. */
static uint32_t foreign_limit(const struct sy__slub_cache *slub)
{
	return slub->cache.heap->tunables[SLUB_CPU_PARTIAL] == SY_TUNABLE_AUTO ? 0 : slub->slot_limit;
}

static bool may_link_strays(const struct sy__slub_cache *slub)
{
	const struct sy_heap *heap = slub->cache.heap;

	return heap->threads && heap->nodes == 1 && !slub->offset;
}

static bool may_keep_strays(const struct sy__slub_cache *slub)
{
	return may_link_strays(slub) && slub->cache.size >= SY_CACHE_LINE;
}

/* Free objects of others' slabs that a slot keeps, see slub_strays.c. */
static uint32_t stray_limit(const struct sy__slub_cache *slub)
{
	const struct sy_heap *heap = slub->cache.heap;
	uint32_t most = (uint32_t)(STRAY_BYTES / slub->cache.size);

	if (!may_keep_strays(slub))
		return 0;
	if (heap->tunables[SLUB_STRAYS] != SY_TUNABLE_AUTO)
		return (uint32_t)heap->tunables[SLUB_STRAYS];
	if (slub->cache.size > LARGEST_STRAY)
		return 0;
	return most < MOST_STRAYS ? most : MOST_STRAYS;
}

/* The same of slots that allocate none: of any cache that may, and objects that have room for what a stray says. */
static uint32_t row(const struct sy__slub_cache *slub)
{
	uint32_t most = (uint32_t)(ROW_BYTES / slub->cache.size);

	if (!may_link_strays(slub) || slub->cache.size < sizeof(struct sy__slub_stray) || !slub->cache.heap->tunables[SLUB_STRAYS])
		return 0;
	return most < SY__SLUB_ROW ? most : SY__SLUB_ROW;
}

/* Free objects of any slabs that a slot keeps on its freelist, see there; of caches that kfree finds by marks. */
static uint32_t sheaf_limit(const struct sy__slub_cache *slub)
{
	const struct sy_heap *heap = slub->cache.heap;
	uint32_t most = (uint32_t)(SHEAF_BYTES / slub->cache.size);

	if (!may_keep_strays(slub) || !(slub->cache.flags & SY_CACHE_KMALLOC) || slub->cache.size <= SY__KMALLOC_SMALL ||
	    SY__PAGE_MAP_MOST_MARK < SY__KMALLOC_MOST_CLASSES)
		return 0;
	if (heap->tunables[SLUB_SHEAF] != SY_TUNABLE_AUTO)
		return (uint32_t)heap->tunables[SLUB_SHEAF];
	return most < MOST_SHEAF ? most : MOST_SHEAF;
}

/* Nodes, then the slots, unless they are threads'. */
static char *make_slots(struct sy__slub_cache *slub)
{
	struct sy_heap *heap = slub->cache.heap;
	size_t nodes_bytes = sy__align_up(heap->nodes * sizeof(struct sy__slub_node), SY_CACHE_LINE);
	char *state;

	slub->stride = heap->threads ? SY_SLOT_STRIDE : sizeof(struct sy__slub_slot);
	slub->state_bytes = nodes_bytes + (heap->threads ? 0 : heap->slots * slub->stride);
	state = sy__metadata_take(heap, slub->state_bytes);
	if (state && !heap->threads)
		slub->slots = (struct sy__slub_slot *)(void *)(state + nodes_bytes);
	else if (state)
		slub->slots = sy__slot_areas_take(heap, sizeof(struct sy__slub_slot));
	if (!slub->slots)
		sy__metadata_give(heap, state, slub->state_bytes);
	return slub->slots ? state : NULL;
}

static bool make_state(struct sy__slub_cache *slub)
{
	struct sy_heap *heap = slub->cache.heap;
	char *state = make_slots(slub);

	if (!state)
		return false;
	slub->nodes = (struct sy__slub_node *)(void *)state;
	for (unsigned i = 0; i < heap->nodes; i++) {
		slub->nodes[i] = (struct sy__slub_node){ .lock = SY__LOCK_INIT };
		sy__list_init(&slub->nodes[i].partial);
	}
	return true;
}

/* The largest slabs, of which the result tells, and the first ones. */
static bool lay_out_slabs(struct sy__slub_cache *slub, struct sy_geometry *largest)
{
	const struct sy_heap *heap = slub->cache.heap;
	size_t size = slub->cache.size;
	struct sy_geometry first;
	uint32_t wanted = wanted_objects(heap->tunables, heap->cpus);
	unsigned most = most_order(heap->tunables, heap->threads);

	if (!lay_out_slab(heap->tunables, most, heap->threads ? wanted_by_threads(heap, size, LARGE_SLAB, LARGE_OBJECTS) : wanted,
	                  size, largest))
		return false;
	first = *largest;
	if (heap->threads &&
	    !lay_out_slab(heap->tunables, most, wanted_by_threads(heap, size, FIRST_SLAB, FIRST_OBJECTS), size, &first))
		return false;
	slub->order = (uint8_t)largest->order;
	slub->first_order = slub->next_order = (uint8_t)first.order;
	return true;
}

bool sy__slub_cache_init(struct sy_cache *cache)
{
	const struct sy_pages_base *base = (const struct sy_pages_base *)(const void *)cache->heap->pages;
	struct sy__slub_cache *slub = sy__slub_cache(cache);
	struct sy_geometry geometry;

	lay_out_object(slub);
	if (!lay_out_slabs(slub, &geometry))
		return false;
	slub->least_order = (uint8_t)sy__order_of(cache->size);
	slub->min_partial = min_partial(slub);
	slub->slot_limit = slot_limit(slub, geometry.objects);
	slub->foreign_limit = foreign_limit(slub);
	slub->stray_limit = stray_limit(slub);
	slub->row = (uint8_t)row(slub);
	slub->sheaf_limit = (uint16_t)sheaf_limit(slub);
	slub->empty_limit = EMPTY_SLABS;
	slub->page_flags = sy__page_flags(cache->flags);
	slub->memory = base->memory;
	slub->table = base->table;
	if (cache->heap->threads)
		sy__slub_choose_here(slub);
	return make_state(slub);
}

/* ---- Merging -------------------------------------------------------------------------------------------------- */

struct sy_cache *sy__slub_merge(struct sy_heap *heap, const struct sy_cache *wanted)
{
	return heap->tunables[SLUB_MERGE] ? sy__merge_find(heap, wanted, 1) : NULL;
}
