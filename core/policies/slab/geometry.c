/*
 * SLAB: how a cache is laid out, how much its arrays hold, and which caches are one.
 *
 * An object takes its size rounded up to a word, then to its alignment; at least 16 bytes, so that no page of 4096
 * bytes holds more objects than a byte can number.
 *
 * A slab holds the objects and needs a freelist of one number for each (slabs.c). Three places for it are tried,
 * in this order:
 *
 *   in an object   if contents of free objects don't matter (no constructor or destructor, no readers under RCU) and the
 *                  freelist is no larger than an object; but in the slab's state if it is no larger than a pointer;
 *   off slab       in an object of a size class, if that is at most half as large as one of the cache's objects, and the
 *                  freelist does not fit into the slab's waste anyway;
 *   on the slab    behind the objects.
 *
 * For each place the slab's order is searched upwards from 0. The first order wins that wastes at most 1/8 of the slab or
 * reaches max_order (1, as in Linux on machines with more than 32 MiB). In a reclaimable cache the first order that holds an
 * object wins, since larger slabs would be hard to reclaim. The waste becomes colours, one for each cache line.
 *
 * Arrays hold fewer of larger objects, to bound their idle memory. Half of an array moves at once. On machines with several CPUs
 * a node has a shared array of eight such batches, for objects of at most a page.
 */
#include "../../geometry.h"
#include "../../this_slot.h"
#include "../../merge.h"
#include "../../backend/metadata.h"
#include "slab.h"

#define WORD sizeof(void *)
#define LINE ((size_t)SY_CACHE_LINE)
#define SMALLEST_CLASS ((size_t)32) /* of kmalloc */

/* What decides about the layout of a slab. */
struct shape {
	size_t size;        /* from one object to the next */
	size_t object_size; /* that a client may use */
	bool lasting;       /* contents of free objects matter */
	bool smallest_order;/* the first order that holds an object */
	bool may_be_off;    /* size classes exist already, and this is none of them */
	unsigned max_order;
};

struct layout {
	enum sy__slab_place place;
	unsigned order;
	uint32_t objects;
	size_t left; /* bytes that neither objects nor the freelist use */
};

/* ---- Slabs ---------------------------------------------------------------------------------------------------- */

static size_t freelist_bytes(uint32_t objects)
{
	return objects * sizeof(sy__slab_index_t);
}

/* What a freelist takes when it is an allocation of its own. */
static size_t off_slab_bytes(size_t bytes)
{
	size_t class = sy__kmalloc_linux_size(bytes);

	if (!class)
		return SY_PAGE_SIZE << sy__order_of(bytes);
	return class <= SMALLEST_CLASS ? SMALLEST_CLASS : sy__align_up(class, LINE);
}

/* Linux: calculate_slab_order(). False: no order will do. */
static bool find_order(const struct shape *shape, enum sy__slab_place place, struct layout *layout)
{
	size_t each = shape->size + (place == SY__SLAB_ON_SLAB ? sizeof(sy__slab_index_t) : 0);

	layout->objects = 0;
	layout->place = place;
	for (unsigned order = 0; order <= SY_MAX_ORDER; order++) {
		size_t bytes = SY_PAGE_SIZE << order;
		uint32_t objects = (uint32_t)(bytes / each);

		if (objects > SY__SLAB_MOST_OBJECTS)
			break;
		if (!objects || (place == SY__SLAB_OFF_SLAB && off_slab_bytes(freelist_bytes(objects)) > shape->size / 2))
			continue;
		layout->order = order;
		layout->objects = objects;
		layout->left = bytes - objects * each;
		if (shape->smallest_order || order >= shape->max_order || layout->left * 8 <= bytes)
			break;
	}
	return layout->objects != 0;
}

static bool lay_out_in_object(const struct shape *shape, struct layout *layout)
{
	return !shape->lasting && find_order(shape, SY__SLAB_IN_OBJECT, layout) &&
	       freelist_bytes(layout->objects) <= shape->object_size;
}

static bool lay_out_off_slab(const struct shape *shape, struct layout *layout)
{
	return shape->may_be_off && find_order(shape, SY__SLAB_OFF_SLAB, layout) &&
	       layout->left < freelist_bytes(layout->objects);
}

static bool lay_out(const struct shape *shape, struct layout *layout)
{
	return lay_out_in_object(shape, layout) || lay_out_off_slab(shape, layout) ||
	       find_order(shape, SY__SLAB_ON_SLAB, layout);
}

/* A client may use all of an object here. */
bool sy__slab_geometry(const int64_t *tunables, unsigned cpus, size_t size, struct sy_geometry *geometry)
{
	struct shape shape = { .size = size < SY__SLAB_SMALLEST ? SY__SLAB_SMALLEST : size, .object_size = size,
	                       .may_be_off = true, .max_order = (unsigned)tunables[SLAB_MAX_ORDER] };
	struct layout layout;

	(void)cpus;
	if (!size || size > SY_PAGE_SIZE << SY_MAX_ORDER || !lay_out(&shape, &layout))
		return false;
	geometry->size = (uint32_t)shape.size;
	geometry->order = layout.order;
	geometry->objects = layout.objects;
	geometry->wasted = (uint32_t)((SY_PAGE_SIZE << layout.order) - layout.objects * shape.size);
	return true;
}

static bool lay_out_cache(struct sy__slab_cache *slab)
{
	struct sy_cache *cache = &slab->cache;
	const int64_t *tunables = cache->heap->tunables;
	size_t size = sy__align_up(sy__align_up(cache->object_size, WORD), cache->align);
	struct shape shape = { .object_size = cache->object_size,
	                       .lasting = cache->constructor || cache->destructor || cache->flags & SY_CACHE_TYPESAFE_BY_RCU,
	                       .smallest_order = (cache->flags & SY_CACHE_RECLAIMABLE) != 0,
	                       .may_be_off = !(cache->flags & SY_CACHE_KMALLOC),
	                       .max_order = (unsigned)tunables[SLAB_MAX_ORDER] };
	struct layout layout;

	if (size < SY__SLAB_SMALLEST)
		size = sy__align_up(SY__SLAB_SMALLEST, cache->align);
	shape.size = size;
	if (size > SY_PAGE_SIZE << SY_MAX_ORDER || !lay_out(&shape, &layout))
		return false;
	cache->size = (uint32_t)size;
	slab->place = layout.place == SY__SLAB_IN_OBJECT && layout.objects <= SY__SLAB_FEW ? SY__SLAB_IN_STATE : (uint8_t)layout.place;
	slab->order = (uint8_t)layout.order;
	slab->objects = layout.objects;
	slab->divider = sy__divider(size);
	slab->inverse = (uint32_t)((((uint64_t)1 << 32) + size - 1) / size);
	slab->colour_step = cache->align > LINE ? cache->align : (uint32_t)LINE;
	slab->colours = tunables[SLAB_COLOUR] ? (uint32_t)layout.left / slab->colour_step : 0;
	return true;
}

/* ---- Arrays --------------------------------------------------------------------------------------------------- */

/* Linux: enable_cpucache(). */
static uint32_t default_limit(uint32_t size)
{
	if (size > 131072)
		return 1;
	if (size > SY_PAGE_SIZE)
		return 8;
	if (size > 1024)
		return 24;
	return size > 256 ? 54 : 120;
}

static void size_arrays(struct sy__slab_cache *slab)
{
	const struct sy_heap *heap = slab->cache.heap;
	const int64_t *tunables = heap->tunables;
	int64_t limit = tunables[SLAB_LIMIT], batchcount = tunables[SLAB_BATCHCOUNT], shared = tunables[SLAB_SHARED];

	slab->limit = limit == SY_TUNABLE_AUTO ? default_limit(slab->cache.size) : (uint32_t)limit;
	slab->batchcount = batchcount == SY_TUNABLE_AUTO ? (slab->limit + 1) / 2 : (uint32_t)batchcount;
	if (slab->batchcount > slab->limit)
		slab->batchcount = slab->limit;
	slab->shared = shared == SY_TUNABLE_AUTO ? (slab->cache.size <= SY_PAGE_SIZE && heap->cpus > 1 ? 8 : 0)
	                                         : (uint32_t)shared;
}

static size_t array_bytes(uint32_t limit)
{
	return sy__align_up(sizeof(struct sy__slab_array) + limit * sizeof(void *), LINE);
}

/* An array of its own; NULL: no memory. */
static struct sy__slab_array *make_array(struct sy__slab_cache *slab, uint32_t limit, int node)
{
	struct sy__slab_array *array = sy__metadata_try(slab->cache.heap, array_bytes(limit));

	if (!array)
		return NULL;
	array->limit = limit;
	array->node = node;
	return array;
}

static void give_array(struct sy__slab_cache *slab, struct sy__slab_array *array, uint32_t limit)
{
	if (array)
		sy__metadata_give(slab->cache.heap, array, array_bytes(limit));
}

static uint32_t shared_limit(const struct sy__slab_cache *slab)
{
	return slab->shared * slab->batchcount;
}

/* Another slot of the node may be here at once, so the first look for an array is without the lock; relaxed, as the pointer is followed
 * with the lock only. */
static void equip_node(struct sy__slab_cache *slab, unsigned index)
{
	struct sy__slab_node *node = &slab->nodes[index];
	struct sy__slab_array *array;

	if (!slab->shared || __atomic_load_n(&node->shared, __ATOMIC_RELAXED))
		return;
	array = make_array(slab, shared_limit(slab), (int)index);
	sy__lock(&node->lock);
	if (!node->shared) {
		__atomic_store_n(&node->shared, array, __ATOMIC_RELAXED);
		array = NULL;
	}
	sy__unlock(&node->lock);
	give_array(slab, array, shared_limit(slab));
}

/* Gives a slot its array, and its node the shared one, as far as there is memory. Called outside local sections, and without
 * locks but sy_heap.lock: a shrink's slabs are destroyed under that, which frees their freelists. The slot has no array. */
void sy__slab_equip(struct sy__slab_cache *slab, unsigned slot)
{
	struct sy__slab_array *array = make_array(slab, slab->limit, sy__slab_own(slab, slot)->node);

	if (!array)
		return;
	sy__local_begin(slot);
	*sy__slab_entry(slab, slot) = array;
	sy__local_end(slot);
	equip_node(slab, (unsigned)array->node);
}

/* Takes a slot's array away, which is empty. In a call of the slot's, outside local sections; sy_heap.lock may be held. */
void sy__slab_unequip(struct sy__slab_cache *slab, unsigned slot)
{
	struct sy__slab_array *array = *sy__slab_entry(slab, slot);

	sy__local_begin(slot);
	*sy__slab_entry(slab, slot) = NULL;
	sy__local_end(slot);
	give_array(slab, array, slab->limit);
}

/* The next piece of a block of metadata that is cut into several. */
static void *cut(char **from, size_t bytes)
{
	void *piece = *from;

	*from += bytes;
	return piece;
}

static struct sy__slab_array *cut_array(char **from, uint32_t limit, unsigned node)
{
	struct sy__slab_array *array = cut(from, array_bytes(limit));

	array->limit = limit;
	array->node = (int)node;
	return array;
}

static uint32_t alien_limit(const struct sy__slab_cache *slab)
{
	return slab->limit > 1 ? SY__SLAB_ALIEN_LIMIT : 1;
}

/* A node's arrays for the objects of all others. */
static void cut_aliens(struct sy__slab_cache *slab, char **from, unsigned index)
{
	unsigned nodes = slab->cache.heap->nodes;

	slab->nodes[index].aliens = cut(from, sy__align_up(nodes * sizeof(struct sy__slab_alien), LINE));
	for (unsigned i = 0; i < nodes; i++) {
		slab->nodes[index].aliens[i] = (struct sy__slab_alien){ .lock = SY__LOCK_INIT };
		if (i != index)
			slab->nodes[index].aliens[i].array = cut_array(from, alien_limit(slab), i);
	}
}

static bool has_aliens(const struct sy__slab_cache *slab)
{
	return slab->many_nodes && slab->cache.heap->tunables[SLAB_ALIEN];
}

static size_t nodes_bytes(const struct sy__slab_cache *slab)
{
	unsigned nodes = slab->cache.heap->nodes;
	size_t bytes = sy__align_up(sizeof(struct sy__slab_node), LINE) + array_bytes(0);

	if (has_aliens(slab))
		bytes += sy__align_up(nodes * sizeof(struct sy__slab_alien), LINE) + (nodes - 1) * array_bytes(alien_limit(slab));
	return nodes * bytes;
}

static uint64_t cpus_on_node(const struct sy_heap *heap, unsigned node)
{
	uint64_t count = 0;

	for (unsigned slot = 0; slot < (heap->threads ? heap->slots : heap->cpus); slot++)
		count += sy__slot_node(heap, slot) == node;
	return count < heap->cpus ? count : heap->cpus;
}

static void start_node(struct sy__slab_cache *slab, char **from, unsigned index, uint64_t next_reap)
{
	struct sy__slab_node *node = &slab->nodes[index];

	*node = (struct sy__slab_node){ .lock = SY__LOCK_INIT, .next_reap = next_reap };
	sy__list_init(&node->full);
	sy__list_init(&node->partial);
	sy__list_init(&node->free);
	node->free_limit = (1 + cpus_on_node(slab->cache.heap, index)) * slab->batchcount + slab->objects;
	node->none = cut_array(from, 0, index);
	if (has_aliens(slab))
		cut_aliens(slab, from, index);
}

static bool make_nodes(struct sy__slab_cache *slab)
{
	uint64_t next_reap = sy__slab_first_reap(sy__slab_heap(slab->cache.heap));
	unsigned nodes = slab->cache.heap->nodes;
	char *from;

	slab->nodes_bytes = nodes_bytes(slab);
	slab->nodes = sy__metadata_take(slab->cache.heap, slab->nodes_bytes);
	if (!slab->nodes)
		return false;
	from = (char *)slab->nodes + sy__align_up(nodes * sizeof(struct sy__slab_node), LINE);
	for (unsigned i = 0; i < nodes; i++)
		start_node(slab, &from, i, next_reap);
	return true;
}

/* No slot has an array yet. Gives the nodes back if there is no memory. */
static bool make_slots(struct sy__slab_cache *slab)
{
	struct sy_heap *heap = slab->cache.heap;

	slab->stride = heap->threads ? SY_SLOT_STRIDE : sizeof(struct sy__slab_array *);
	slab->arrays = heap->threads ? sy__slot_areas_take(heap, sizeof(*slab->arrays)) : sy__metadata_take(heap, heap->slots * slab->stride);
	if (!slab->arrays)
		sy__metadata_give(heap, slab->nodes, slab->nodes_bytes);
	return slab->arrays != NULL;
}

static void give_slots(struct sy__slab_cache *slab)
{
	struct sy_heap *heap = slab->cache.heap;

	if (sy__slab_for_threads(slab))
		sy__slot_areas_give(heap, slab->arrays, sizeof(*slab->arrays));
	else
		sy__metadata_give(heap, slab->arrays, heap->slots * slab->stride);
}

bool sy__slab_cache_init(struct sy_cache *cache)
{
	struct sy__slab_cache *slab = sy__slab_cache(cache);

	if (!lay_out_cache(slab))
		return false;
	slab->page_flags = sy__page_flags(cache->flags);
	slab->many_nodes = cache->heap->nodes > 1;
	size_arrays(slab);
	if (slab->many_nodes && cache->heap->threads)
		cache->free_this_slot = sy__this_slot_cache_free;
	return make_nodes(slab) && make_slots(slab);
}

/* Gives back all that cache_init and use have made. */
void sy__slab_give_state(struct sy__slab_cache *slab)
{
	struct sy_heap *heap = slab->cache.heap;

	for (unsigned slot = 0; slot < sy__slots_used(heap); slot++)
		give_array(slab, *sy__slab_entry(slab, slot), slab->limit);
	for (unsigned i = 0; i < heap->nodes; i++)
		give_array(slab, slab->nodes[i].shared, shared_limit(slab));
	give_slots(slab);
	sy__metadata_give(heap, slab->nodes, slab->nodes_bytes);
}

/* ---- Merging -------------------------------------------------------------------------------------------------- */

/* Colours make the alignment of a cache that of its slabs' starts: it must suffice. */
struct sy_cache *sy__slab_merge(struct sy_heap *heap, const struct sy_cache *wanted)
{
	return heap->tunables[SLAB_MERGE] ? sy__merge_find(heap, wanted, (struct sy__merge_rules){ .least_align = wanted->align }) : NULL;
}
