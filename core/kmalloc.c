/*
 * Size classes: general allocation out of caches.
 *
 * As in Linux 6.1, a request goes to the cache of the smallest class that holds it: powers of two from 8 to 8192
 * bytes, and 96 and 192 between them, where powers of two would waste most for the commonest requests. Every power
 * of two is aligned to its own size, the other two to 8 bytes. Each class exists once for every type of use, since
 * mixing long-lived and reclaimable objects in one slab would pin it: normal, reclaimable, charged to a memory
 * cgroup, DMA.
 *
 * The class of a size is one table look-up up to 192 bytes and the number of its highest bit above.
 *
 * A policy may leave out the smallest classes, whose requests then go to the first that it has: SLAB starts at 32
 * bytes and aligns every class to cache lines, hence its objects of class 96 take 128 bytes; SLUB starts at 8.
 *
 * Larger requests take whole pages of the smallest sufficient order. The descriptor of their first page says so
 * (SY_USE_LARGE) and how many bytes were asked for, hence kfree needs no other record.
 */
#include "kmalloc.h"

#include <slabyard/slabyard.h>

#include "geometry.h"
#include "page_interface.h"

#define SMALLEST_ALIGN 8u

const uint16_t sy__kmalloc_sizes[SY__KMALLOC_CLASSES] = {
	8, 16, 32, 64, 96, 128, 192, 256, 512, 1024, 2048, 4096, 8192,
};

static const char *const size_names[SY__KMALLOC_CLASSES] = { "8",   "16",  "32",  "64", "96", "128", "192",
	                                                         "256", "512", "1k", "2k", "4k", "8k" };

static const struct {
	const char *prefix;
	unsigned cache_flags;
} types[SY__KMALLOC_TYPES] = {
	[SY__KMALLOC_NORMAL] = { "kmalloc-", 0 },
	[SY__KMALLOC_RECLAIMABLE] = { "kmalloc-rcl-", SY_CACHE_RECLAIMABLE },
	[SY__KMALLOC_ACCOUNT] = { "kmalloc-cg-", SY_CACHE_ACCOUNT },
	[SY__KMALLOC_DMA] = { "dma-kmalloc-", SY_CACHE_DMA },
};

static void append(char **to, const char *from)
{
	while (*from)
		*(*to)++ = *from++;
	**to = '\0';
}

static struct sy_cache *create_class(struct sy_heap *heap, unsigned type, unsigned class, unsigned cache_flags)
{
	char name[SY_NAME_BYTES], *end = name;
	uint32_t size = sy__kmalloc_sizes[class];
	struct sy_cache_config config = {
		.name = name,
		.size = size,
		.align = size & (size - 1) ? SMALLEST_ALIGN : size,
		.flags = types[type].cache_flags | cache_flags | SY_CACHE_KMALLOC | SY_CACHE_NO_MERGE,
	};

	/* A class larger than a page can't ask for more than the page's alignment, and gets its own by where
	 * slabs start. */
	if (config.align > SY_PAGE_SIZE)
		config.align = SY_PAGE_SIZE;
	append(&end, types[type].prefix);
	append(&end, size_names[class]);
	return sy_cache_create(heap, &config);
}

static bool create_type(struct sy_heap *heap, struct sy__kmalloc *kmalloc, unsigned type, uint32_t smallest,
                        unsigned cache_flags)
{
	struct sy_cache **classes = kmalloc->classes[type];
	unsigned first = sy__kmalloc_class(smallest);

	for (unsigned class = first; class < SY__KMALLOC_CLASSES; class++) {
		classes[class] = create_class(heap, type, class, cache_flags);
		if (!classes[class])
			return false;
	}
	for (unsigned class = 0; class < first; class++)
		classes[class] = classes[first];
	return true;
}

bool sy__kmalloc_create(struct sy_heap *heap, struct sy__kmalloc *kmalloc, uint32_t smallest, unsigned cache_flags)
{
	for (unsigned type = 0; type < SY__KMALLOC_TYPES; type++)
		if (!create_type(heap, kmalloc, type, smallest, cache_flags))
			return false;
	return true;
}

void *sy__large_alloc(struct sy_heap *heap, unsigned slot, size_t size, unsigned flags, int node)
{
	unsigned order = sy__order_of(size);
	struct sy_page *page;

	if (order > SY_MAX_ORDER)
		return NULL;
	page = sy__pages_take(heap, slot, order, flags & ~(unsigned)SY_MOVABLE, node, SY_USE_LARGE);
	if (!page)
		return NULL;
	page->bytes = size;
	__atomic_fetch_add(&heap->counters.large_live_bytes, size, __ATOMIC_RELAXED);
	return sy__page_address(heap, page);
}

void sy__large_free(struct sy_heap *heap, unsigned slot, struct sy_page *head)
{
	__atomic_fetch_sub(&heap->counters.large_live_bytes, (size_t)head->bytes, __ATOMIC_RELAXED);
	sy__pages_give(heap, slot, head);
}
