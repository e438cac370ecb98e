/*
 * Bonwick's slab allocator: how a cache is laid out, and the general caches.
 *
 * A buffer is its object rounded up to words and to its alignment; the paper's minimum is a word. If the link of a free buffer
 * would destroy contents that must last (an object's constructed state, or what readers under RCU may still look at), the buffer
 * gets an extra word behind the object for it. Buffers of large objects have a link only in a slot's linked lists.
 *
 * A slab of small objects, those below 1/8 page, is one page: as many buffers as fit before the 32 bytes of slab data
 * (section 3.2.2). Its 4096 bytes hold 10 buffers of 400 bytes and leave 96: 2.4% internal fragmentation.
 *
 * A slab of large objects is the smallest block of pages that leaves at most 1/8 of itself unused (section 3.2); blocks of eight
 * or more buffers always do. If no block does, the slab is the block that wastes the smallest share. SunOS maps its slabs, so they
 * have any number of pages; a page allocator without mapping has powers of two.
 *
 * Unused space becomes colours, in steps of the alignment (section 4.3): with 200 bytes, 64 unused bytes make nine colours, 0 to
 * 64. A buffer of 128 bytes divides a page, but not a page minus its slab data. So mid-size powers of two, which would otherwise
 * all start at the same few cache lines, get the most colours.
 *
 * The general caches (section 3.1). The paper mentions about 30, from 8 bytes to 9 KiB in steps of 10 to 20%, but not their sizes.
 * Here steps are about 1/8 to 1/4 of the size, as far as the alignment of 8 bytes permits. From 584 bytes on, sizes divide a block
 * of pages with little waste, four to a doubling. Powers of two are aligned to themselves, as clients of kmalloc rely on that.
 */
#include "../../geometry.h"
#include "../../backend/metadata.h"
#include "bonwick.h"

#define WORD sizeof(void *)

static const uint16_t general_sizes[SY__BONWICK_CLASSES] = {
	8,   16,  24,  32,  40,  48,  56,   64,   80,   96,   112,  128,  160,  192,  224,  256,  320,
	384, 448, 512, 584, 680, 816, 1024, 1168, 1360, 1632, 2048, 2336, 2728, 3272, 4096, 4680, 5456,
	6552, 8192, SY__BONWICK_LARGEST,
};

/* ---- Slabs ---------------------------------------------------------------------------------------------------- */

static size_t unused_bytes(unsigned order, size_t size)
{
	return (SY_PAGE_SIZE << order) % size;
}

/* More than SY_MAX_ORDER: no block holds one. */
static unsigned large_order(size_t size)
{
	unsigned best = sy__order_of(size);

	for (unsigned order = best; order <= SY_MAX_ORDER; order++) {
		if (unused_bytes(order, size) * 8 <= SY_PAGE_SIZE << order)
			return order;
		if (unused_bytes(order, size) < unused_bytes(best, size) << (order - best))
			best = order;
	}
	return best;
}

/* size: of a buffer, without an extra word for the link. */
bool sy__bonwick_geometry(const int64_t *tunables, unsigned cpus, size_t size, struct sy_geometry *geometry)
{
	(void)tunables;
	(void)cpus;
	if (!size || size > SY_PAGE_SIZE << SY_MAX_ORDER)
		return false;
	size = sy__align_up(size, WORD);
	geometry->size = (uint32_t)size;
	if (size < SY__BONWICK_SMALL_BELOW) {
		geometry->order = 0;
		geometry->objects = (uint32_t)((SY_PAGE_SIZE - SY__BONWICK_SLAB_BYTES) / size);
	} else {
		geometry->order = large_order(size);
		geometry->objects = sy__order_objects(geometry->order, size);
	}
	geometry->wasted = (uint32_t)((SY_PAGE_SIZE << geometry->order) - geometry->objects * size);
	return true;
}

/* ---- Caches --------------------------------------------------------------------------------------------------- */

static bool lay_out_small(struct sy__bonwick_cache *bonwick)
{
	bonwick->order = 0;
	bonwick->objects = (uint32_t)((SY_PAGE_SIZE - SY__BONWICK_SLAB_BYTES) / bonwick->cache.size);
	return true;
}

static bool lay_out_large(struct sy__bonwick_cache *bonwick)
{
	unsigned order = large_order(bonwick->cache.size);

	if (order > SY_MAX_ORDER)
		return false;
	bonwick->order = (uint8_t)order;
	bonwick->objects = sy__order_objects(order, bonwick->cache.size);
	return true;
}

/* False: no slab holds such an object. */
static bool lay_out(struct sy__bonwick_cache *bonwick)
{
	struct sy_cache *cache = &bonwick->cache;
	size_t size = sy__align_up(cache->object_size, WORD);
	bool lasting = cache->constructor || cache->flags & SY_CACHE_TYPESAFE_BY_RCU;

	bonwick->large = sy__align_up(size, cache->align) >= SY__BONWICK_SMALL_BELOW;
	if (lasting && (!bonwick->large || bonwick->layer->linked))
		size += WORD;
	cache->size = (uint32_t)sy__align_up(size, cache->align);
	bonwick->divider = sy__divider(cache->size);
	bonwick->linkage = cache->size - (uint32_t)WORD;
	return bonwick->large ? lay_out_large(bonwick) : lay_out_small(bonwick);
}

static uint32_t colours(const struct sy__bonwick_cache *bonwick)
{
	size_t unused = (SY_PAGE_SIZE << bonwick->order) - (size_t)bonwick->objects * bonwick->cache.size;

	if (!bonwick->cache.heap->tunables[BONWICK_COLOUR])
		return 1;
	unused = (unused - (bonwick->large ? 0 : SY__BONWICK_SLAB_BYTES)) / bonwick->cache.align;
	return (uint32_t)(unused < UINT16_MAX ? unused + 1 : UINT16_MAX);
}

/* Slab data, bufctls and magazines never serve a fast path. Their caches are created first, and have no layer. */
const struct sy__bonwick_layer *sy__bonwick_layer_of(struct sy_heap *heap)
{
	if (!sy__bonwick_heap(heap)->layered)
		return &sy__bonwick_unlayered;
	if (heap->tunables[BONWICK_MAGAZINE])
		return &sy__bonwick_magazine_layer;
	return heap->tunables[BONWICK_PERCPU] ? &sy__bonwick_percpu : &sy__bonwick_unlayered;
}

/* In a heap of threads, neither the dummy nor the slot that threads share ever serves. */
static void *take_areas(struct sy_heap *heap, const struct sy__bonwick_layer *layer)
{
	void *slots = sy__slot_areas_take(heap, layer->slot_bytes);

	if (slots && layer->close_slot) {
		layer->close_slot((char *)slots + SY__DUMMY_OFFSET);
		layer->close_slot(slots);
	}
	return slots;
}

static bool make_slots(struct sy__bonwick_cache *bonwick)
{
	struct sy_heap *heap = bonwick->cache.heap;
	size_t bytes = bonwick->layer->slot_bytes;

	bonwick->stride = heap->threads ? SY_SLOT_STRIDE : bytes;
	bonwick->slots = heap->threads ? take_areas(heap, bonwick->layer) : sy__metadata_take(heap, heap->slots * bytes);
	return bonwick->slots != NULL;
}

void sy__bonwick_give_slots(struct sy__bonwick_cache *bonwick)
{
	if (bonwick->stride == SY_SLOT_STRIDE)
		sy__slot_areas_give(bonwick->cache.heap, bonwick->slots, bonwick->layer->slot_bytes);
	else
		sy__metadata_give(bonwick->cache.heap, bonwick->slots, bonwick->cache.heap->slots * bonwick->stride);
}

bool sy__bonwick_cache_init(struct sy_cache *cache)
{
	struct sy__bonwick_cache *bonwick = sy__bonwick_cache(cache);

	bonwick->layer = sy__bonwick_layer_of(cache->heap);
	bonwick->percpu = (uint32_t)cache->heap->tunables[BONWICK_PERCPU];
	if (!lay_out(bonwick))
		return false;
	bonwick->colours = colours(bonwick);
	bonwick->page_flags = sy__page_flags(cache->flags);
	bonwick->lock = (sy__lock_t)SY__LOCK_INIT;
	sy__list_init(&bonwick->slabs);
	bonwick->freelist = &bonwick->slabs;
	sy__bonwick_hash_init(&bonwick->hash, cache->size);
	if (cache->heap->threads) {
		cache->alloc_this_slot = bonwick->layer->alloc_this_slot;
		cache->free_this_slot = bonwick->layer->free_this_slot;
	}
	if (bonwick->layer->init)
		bonwick->layer->init(bonwick);
	return !bonwick->layer->slot_bytes || make_slots(bonwick);
}

/* ---- The heap's own caches ------------------------------------------------------------------------------------ */

static void append(char **to, const char *from)
{
	while (*from)
		*(*to)++ = *from++;
	**to = '\0';
}

static void append_number(char **to, uint32_t number)
{
	char digits[11], *at = digits + sizeof(digits) - 1;

	*at = '\0';
	do
		*--at = (char)('0' + number % 10);
	while (number /= 10);
	append(to, at);
}

static struct sy_cache *make_cache(struct sy_heap *heap, const char *name, size_t size, size_t align, unsigned flags)
{
	struct sy_cache_config config = { .name = name, .size = size, .align = align,
	                                  .flags = flags | SY_CACHE_NO_MERGE };

	return sy_cache_create(heap, &config);
}

static struct sy_cache *make_general(struct sy_heap *heap, size_t size)
{
	char name[SY_NAME_BYTES], *end = name;
	size_t align = size & (size - 1) ? 8 : size < SY_PAGE_SIZE ? size : SY_PAGE_SIZE;

	if (align < heap->sizing.align)
		align = heap->sizing.align;
	append(&end, "kmem_alloc_");
	append_number(&end, (uint32_t)size);
	return make_cache(heap, name, size, align, SY_CACHE_KMALLOC);
}

static void fill_class_table(struct sy__bonwick_heap *heap)
{
	uint8_t class = 0;

	for (size_t words = 0; words < sizeof(heap->class_of); words++) {
		if (words * 8 > general_sizes[class])
			class++;
		heap->class_of[words] = class;
	}
}

static bool make_magazines(struct sy__bonwick_heap *bonwick)
{
	for (unsigned kind = 0; kind < SY__BONWICK_KINDS; kind++) {
		uint32_t rounds = sy__bonwick_rounds(kind);
		size_t bytes = sizeof(struct sy__bonwick_magazine) + rounds * WORD;
		char name[SY_NAME_BYTES], *end = name;

		append(&end, "kmem_magazine_");
		append_number(&end, rounds);
		bonwick->magazines[kind] = make_cache(&bonwick->heap, name, bytes, 0, 0);
		if (!bonwick->magazines[kind])
			return false;
	}
	return true;
}

bool sy__bonwick_heap_init(struct sy_heap *heap)
{
	struct sy__bonwick_heap *bonwick = sy__bonwick_heap(heap);

	if (heap->threads)
		sy__fast_calls_lock();
	bonwick->large_slabs = make_cache(heap, "kmem_slab_cache", sizeof(struct sy__bonwick_large_slab), 0, 0);
	if (!bonwick->large_slabs)
		return false;
	bonwick->bufctls = make_cache(heap, "kmem_bufctl_cache", sizeof(struct sy__bonwick_bufctl), 0, 0);
	if (!bonwick->bufctls || (heap->tunables[BONWICK_MAGAZINE] && !make_magazines(bonwick)))
		return false;
	bonwick->layered = true;
	for (unsigned class = 0; class < SY__BONWICK_CLASSES; class++) {
		bonwick->general[class] = make_general(heap, general_sizes[class]);
		if (!bonwick->general[class])
			return false;
	}
	fill_class_table(bonwick);
	return true;
}
