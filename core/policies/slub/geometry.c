/*
 * SLUB: how a cache is laid out, and which caches are one.
 *
 * An object. Its size is rounded up to a word. A free object holds the pointer to the next free one. The pointer is in the
 * object's middle, where overflows of the object before it or from its own start reach last. If the contents of free objects
 * matter (a constructor set them, or readers under RCU may still look), the pointer is behind the object, unless the cache says that its
 * readers don't mind (6.12). Then the size is rounded up to the alignment.
 *
 * A slab. More objects mean fewer visits to the node's list, which all CPUs share. So a slab should have at least
 * 4 * (fls(CPUs) + 1) objects, but no more than fit the largest order. Among the orders from there on, the first wins that wastes
 * at most 1/16 of the slab; if none does, 1/8, then 1/4; then the same with one object fewer, and so on. If all that fails, a
 * slab holds a single object, above the largest order if necessary. Newer kernels do not lower the number of objects (version.c).
 *
 * Merging. Caches whose objects cannot be told apart share their slabs (core/merge.c). Slabs start at multiples of their size,
 * so objects are aligned as their size is, whatever was asked for.
 */
#include "../../geometry.h"
#include "../../backend/slot_areas.h"
#include "../../merge.h"
#include "slub.h"

#define WORD sizeof(void *)
#define MIN_PARTIAL_LEAST 5u
#define MIN_PARTIAL_MOST 10u

/* ---- Slabs ---------------------------------------------------------------------------------------------------- */

/* First order from the least on that holds `objects` and wastes at most 1/fraction; more than most_order: none. */
static unsigned fitting_order(unsigned least_order, unsigned most_order, size_t size, uint32_t objects,
                              uint32_t fraction)
{
	unsigned order = sy__order_of(objects * size);

	if (sy__order_objects(least_order, size) > SY__WORD_MOST_OBJECTS)
		return sy__order_of(size * SY__WORD_MOST_OBJECTS) - 1;
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

/* By rules that never lower the number of objects. */
static unsigned roomy_order(unsigned least, unsigned most, size_t size, uint32_t objects)
{
	for (uint32_t fraction = 16; fraction > 1; fraction /= 2) {
		unsigned order = fitting_order(least, most, size, objects, fraction);

		if (order <= most)
			return order;
	}
	return sy__order_of(size);
}

/* Order of slabs that should hold `objects` of this final size; more than SY_MAX_ORDER: impossible. */
static unsigned slab_order(const int64_t *tunables, struct sy__slub_rules rules, uint32_t objects, size_t size)
{
	int64_t max = tunables[SLUB_MAX_ORDER];
	unsigned least = (unsigned)tunables[SLUB_MIN_ORDER], most = max == SY_TUNABLE_AUTO ? sy__slub_most_order(rules) : (unsigned)max, order;
	uint32_t fit;

	while (most > least && sy__order_objects(most, size) > SY__WORD_MOST_OBJECTS)
		most--;
	fit = sy__order_objects(most, size);
	if (sy__slub_may_waste_half(rules))
		return roomy_order(least, most, size, !fit ? 1 : objects < fit ? objects : fit);
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

static bool geometry_by(const int64_t *tunables, struct sy__slub_rules rules, unsigned cpus, size_t size, struct sy_geometry *geometry)
{
	unsigned order;

	if (size < WORD || size > SY_PAGE_SIZE << SY_MAX_ORDER)
		return false;
	order = slab_order(tunables, rules, wanted_objects(tunables, cpus), size);
	if (order > SY_MAX_ORDER)
		return false;
	*geometry = sy__geometry_of(order, size);
	return true;
}

bool sy__slub_geometry(const int64_t *tunables, unsigned cpus, size_t size, struct sy_geometry *geometry)
{
	struct sy__slub_rules rules = sy__slub_rules_by(tunables, (struct sy_kernel){ 0 });

	if (!geometry_by(tunables, rules, cpus, size, geometry))
		return false;
	geometry->sheaf_capacity = sy__slub_capacity_by(tunables, rules, size, 0);
	return true;
}

/* ---- Caches --------------------------------------------------------------------------------------------------- */

static bool link_is_inside(const struct sy_cache *cache)
{
	return cache->flags & SY_CACHE_LINK_INSIDE && sy__slub_rules(cache->heap).version >= SLUB_6_12;
}

static void lay_out_object(struct sy__slub_cache *slub)
{
	const struct sy_cache *cache = &slub->base.cache;
	bool behind = cache->constructor || (cache->flags & SY_CACHE_TYPESAFE_BY_RCU && !link_is_inside(cache));

	sy__node_lay_out(&slub->base, (uint32_t)((cache->object_size / 2) & ~(WORD - 1)), behind);
}

static uint32_t min_partial(const struct sy__slub_cache *slub)
{
	int64_t tunable = slub->base.cache.heap->tunables[SLUB_MIN_PARTIAL];
	uint32_t automatic = (sy__highest_bit(slub->base.cache.size) - 1) / 2;

	if (tunable != SY_TUNABLE_AUTO)
		return (uint32_t)tunable;
	if (sy__slub_rules(slub->base.cache.heap).tiny)
		return 0;
	if (automatic < MIN_PARTIAL_LEAST)
		return MIN_PARTIAL_LEAST;
	return automatic < MIN_PARTIAL_MOST ? automatic : MIN_PARTIAL_MOST;
}

uint32_t sy__slub_slot_objects(const struct sy__slub_cache *slub)
{
	const struct sy_heap *heap = slub->base.cache.heap;

	if (slub->by_node)
		return 0;
	if (heap->tunables[SLUB_CPU_PARTIAL] != SY_TUNABLE_AUTO)
		return (uint32_t)heap->tunables[SLUB_CPU_PARTIAL];
	if (heap->cpus == 1)
		return 0;
	if (slub->base.cache.size >= SY_PAGE_SIZE)
		return 6;
	if (slub->base.cache.size >= 1024)
		return 24;
	return slub->base.cache.size >= 256 ? 52 : 120;
}

/* Slabs on a slot's partial list: each is taken to be half full. */
static uint32_t slot_limit(const struct sy__slub_cache *slub, uint32_t objects)
{
	return (sy__slub_slot_objects(slub) * 2 + objects - 1) / objects;
}

/* Kmalloc's classes get theirs when all classes are there. */
static bool begin_sheaves(struct sy__slub_cache *slub)
{
	struct sy_cache *cache = &slub->base.cache;
	const struct sy_heap *heap = cache->heap;
	uint32_t capacity = sy__slub_capacity_by(heap->tunables, sy__slub_rules(heap), cache->size, cache->sheaf_capacity);

	if (!capacity)
		return true;
	if (sy__slub_sheaves_init(slub, capacity) && (cache->flags & SY_CACHE_KMALLOC || sy__slub_sheaves_begin(slub))) {
		if (cache->policy == cache->heap->policy)
			cache->policy = &sy__slub_heap(cache->heap)->sheafed;
		if (cache->sheaf_capacity)
			cache->flags |= SY_CACHE_NO_MERGE;
		return true;
	}
	sy__slub_cache_fini(cache);
	return false;
}

bool sy__slub_cache_init(struct sy_cache *cache)
{
	struct sy__slub_cache *slub = sy__slub_cache(cache);
	struct sy__slub_rules rules = sy__slub_rules(cache->heap);
	struct sy_geometry geometry;

	cache->flags &= ~sy__slub_ignored_flags(rules);
	slub->by_node = sy__slub_serves_by_node(rules);
	lay_out_object(slub);
	if (!geometry_by(cache->heap->tunables, rules, cache->heap->cpus, cache->size, &geometry))
		return false;
	slub->base.order = (uint8_t)geometry.order;
	slub->base.least_order = (uint8_t)sy__order_of(cache->size);
	slub->base.min_partial = min_partial(slub);
	slub->slot_limit = slot_limit(slub, geometry.objects);
	return sy__node_cache_init(&slub->base, sizeof(struct sy__slub_slot), SY__RING_IN(struct sy__slub_slot)) && begin_sheaves(slub);
}

/* ---- Merging -------------------------------------------------------------------------------------------------- */

struct sy_cache *sy__slub_merge(struct sy_heap *heap, const struct sy_cache *wanted)
{
	struct sy__slub_rules by = sy__slub_rules(heap);
	struct sy__merge_rules rules = { .classes = sy__slub_merges_classes(by) ? SY_CACHE_KMALLOC : 0,
		                         .indifferent = sy__slub_ignored_flags(by) };

	if (!heap->tunables[SLUB_MERGE] || sy__keeps_apart(heap) || (wanted->sheaf_capacity && sy__slub_has_sheaves(by)))
		return NULL;
	return sy__merge_find(heap, wanted, rules);
}
