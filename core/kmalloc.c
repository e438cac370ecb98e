/*
 * Size classes: general allocation from caches.
 *
 * A request goes to the cache of the smallest class that holds it. There are two sets of classes (enum sy_classes):
 *
 *   linux   Those of Linux 6.1: powers of two from 8 to 8192 bytes, and 96 and 192 between them, where powers of two would waste
 *           most for the commonest requests. Each type of use has the whole set: normal, reclaimable, charged to a memory
 *           cgroup, DMA. Long-lived and reclaimable objects in one slab would pin it.
 *   fine    8 bytes, steps of 16 up to 256, eight classes to each doubling up to 1 KiB, and more from there on: at most 1/9 of an
 *           object is unused from 256 bytes on, 1/13 from 1 to 16 KiB. What is left at a slab's end counts too, and is most
 *           where a slab has few objects. So from 4 KiB on the classes are what 128 KiB hold 30, 28, 27 ... 16 of, from 8 KiB
 *           on what 256 KiB hold 30, 28, 27 ... 8 of. 4,368 bytes hold a page with a header of 272 bytes, a common request of
 *           databases. One type serves all: a program's memory is all alike.
 *
 * A class is aligned to the largest power of two that divides its size, to a page at most, and at least as sy_sizing.align says;
 * Linux's 96 and 192 to 8 bytes. Up to a page, the fine class of a multiple of a power of two is one too (sy__kmalloc_aligns).
 *
 * One look at a table finds the class of a size: up to 1 KiB in steps of 8 bytes, straight to the cache; above in steps of 16 bytes
 * up to 8 KiB, and of 256 from there on.
 *
 * A policy may leave out the smallest classes. Their requests then go to the first class that it has. SLAB starts at 32 bytes and
 * aligns every class of Linux's set to cache lines, so its objects of class 96 take 128 bytes; SLUB starts at 8.
 *
 * Larger requests go straight to pages: backend/large.c.
 */
#include "kmalloc.h"

#define LEAST_LINUX_ALIGN 8u

static const uint16_t linux_sizes[] = { 8, 16, 32, 64, 96, 128, 192, 256, 512, 1024, 2048, 4096, 8192 };

static const uint16_t fine_sizes[] = {
	8,     16,    32,    48,    64,    80,    96,    112,   128,   144,   160,   176,   192,   208,   224,   240,
	256,   288,   320,   352,   384,   416,   448,   480,   512,   576,   640,   704,   768,   832,   896,   960,
	1024,  1088,  1152,  1216,  1280,  1344,  1408,  1472,  1536,  1600,  1664,  1728,  1792,  1920,  2048,  2176,
	2304,  2432,  2560,  2688,  2816,  2944,  3072,  3200,  3328,  3456,  3584,  3840,  4096,  4368,  4672,  4848,
	5040,  5232,  5456,  5696,  5952,  6240,  6544,  6896,  7280,  7696,  8192,  8704,  9216,  9472,  9984,  10240,
	10752, 11264, 11776, 12288, 13056, 13568, 14336, 15360, 16384, 17408, 18688, 19968, 21760, 23808, 26112, 28928,
	32768,
};

struct set {
	const uint16_t *sizes; /* bytes, ascending */
	unsigned count, types;
	bool naturally_aligned; /* all of them, not only the powers of two */
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct set sets[] = {
	[SY_CLASSES_LINUX] = { linux_sizes, COUNT(linux_sizes), SY__KMALLOC_TYPES, false },
	[SY_CLASSES_FINE] = { fine_sizes, COUNT(fine_sizes), 1, true },
};

const char *const sy__kmalloc_class_names[] = { [SY_CLASSES_LINUX] = "linux", [SY_CLASSES_FINE] = "fine" };

_Static_assert(COUNT(fine_sizes) <= SY__KMALLOC_MOST_CLASSES && COUNT(linux_sizes) * SY__KMALLOC_TYPES <= SY__KMALLOC_MOST_CLASSES,
               "the tables hold every class");

static const struct {
	const char *prefix;
	unsigned cache_flags;
} types[SY__KMALLOC_TYPES] = {
	[SY__KMALLOC_NORMAL] = { "kmalloc-", 0 },
	[SY__KMALLOC_RECLAIMABLE] = { "kmalloc-rcl-", SY_CACHE_RECLAIMABLE },
	[SY__KMALLOC_ACCOUNT] = { "kmalloc-cg-", SY_CACHE_ACCOUNT },
	[SY__KMALLOC_DMA] = { "dma-kmalloc-", SY_CACHE_DMA },
};

/* ---- Finding the class ------------------------------------------------------------------------------------------ */

static unsigned smallest_holding(const struct set *set, size_t size)
{
	unsigned class = 0, end = set->count;

	while (class < end) {
		unsigned middle = (class + end) / 2;

		if (set->sizes[middle] < size)
			class = middle + 1;
		else
			end = middle;
	}
	return class;
}

static enum sy__kmalloc_type type_of(unsigned flags)
{
	if (flags & SY_DMA)
		return SY__KMALLOC_DMA;
	if (flags & SY_RECLAIMABLE)
		return SY__KMALLOC_RECLAIMABLE;
	return flags & SY_ACCOUNT ? SY__KMALLOC_ACCOUNT : SY__KMALLOC_NORMAL;
}

struct sy_cache *sy__kmalloc_typed(const struct sy__kmalloc *kmalloc, size_t size, unsigned flags)
{
	unsigned class = 0;

	if (size > kmalloc->largest)
		return NULL;
	if (size > SY__KMALLOC_SMALL)
		class = kmalloc->medium_class[sy__kmalloc_step(size)];
	else
		while (kmalloc->classes[class] != sy__kmalloc_small(kmalloc, size))
			class++;
	return kmalloc->classes[class + type_of(flags) * kmalloc->next_type];
}

uint32_t sy__kmalloc_linux_size(size_t size)
{
	const struct set *set = &sets[SY_CLASSES_LINUX];
	unsigned class = smallest_holding(set, size);

	return class < set->count ? set->sizes[class] : 0;
}

bool sy__kmalloc_aligns(const struct sy_heap *heap)
{
	return sets[heap->sizing.classes].naturally_aligned && heap->policy->serves_classes;
}

size_t sy__kmalloc_aligned_size(const struct sy_heap *heap, size_t size, size_t align)
{
	const struct set *set = &sets[heap->sizing.classes];
	size_t power = align;

	while (power < size)
		power *= 2;
	if (!sy__kmalloc_aligns(heap))
		return power;
	for (unsigned class = smallest_holding(set, size); class < set->count; class++)
		if (!(set->sizes[class] & (align - 1)))
			return set->sizes[class];
	return power;
}

/* ---- Creation --------------------------------------------------------------------------------------------------- */

static void append(char **to, const char *from)
{
	while (*from)
		*(*to)++ = *from++;
	**to = '\0';
}

/* As in Linux's names of classes: 512, 1k, 2k. Sizes that are not a multiple of 1024 are written in full. */
static void append_size(char **to, uint32_t size)
{
	bool kibibytes = size % 1024 == 0;
	uint32_t value = kibibytes ? size / 1024 : size;
	char digits[12], *at = digits + sizeof(digits);

	*--at = '\0';
	if (kibibytes)
		*--at = 'k';
	for (; value; value /= 10)
		*--at = (char)('0' + value % 10);
	append(to, at);
}

static uint32_t class_align(const struct sy_heap *heap, const struct set *set, uint32_t size)
{
	uint32_t natural = size & (~size + 1), align = set->naturally_aligned || natural == size ? natural : LEAST_LINUX_ALIGN;
	uint32_t least = heap->sizing.align;

	/* A cache can ask for a page's alignment at most. Larger classes are aligned by where slabs start. */
	if (align > SY_PAGE_SIZE)
		align = SY_PAGE_SIZE;
	while (heap->sizing.small_less && least > size)
		least /= 2;
	return align > least ? align : least;
}

static struct sy_cache *create_class(struct sy_heap *heap, unsigned type, uint32_t size, unsigned cache_flags)
{
	const struct set *set = &sets[heap->sizing.classes];
	char name[SY_NAME_BYTES], *end = name;
	struct sy_cache_config config = {
		.name = name,
		.size = size,
		.align = class_align(heap, set, size),
		.flags = types[type].cache_flags | (set->naturally_aligned ? 0 : cache_flags) | SY_CACHE_KMALLOC | SY_CACHE_NO_MERGE,
	};

	append(&end, types[type].prefix);
	append_size(&end, size);
	return sy_cache_create(heap, &config);
}

static bool create_type(struct sy_heap *heap, struct sy__kmalloc *kmalloc, unsigned type, uint32_t smallest,
                        unsigned cache_flags)
{
	const struct set *set = &sets[heap->sizing.classes];
	struct sy_cache **classes = kmalloc->classes + type * set->count;
	unsigned first = smallest_holding(set, smallest);

	for (unsigned class = first; class < set->count; class++) {
		classes[class] = create_class(heap, type, set->sizes[class], cache_flags);
		if (!classes[class])
			return false;
	}
	for (unsigned class = 0; class < first; class++)
		classes[class] = classes[first];
	return true;
}

/* Length of the table step that begins above that size. */
static size_t step_after(size_t size)
{
	return size < SY__KMALLOC_MIDDLE ? SY__KMALLOC_STEP : SY__KMALLOC_WIDE_STEP;
}

/* Fills both tables in one pass over the classes: no step contains two class boundaries. */
static void fill_tables(struct sy__kmalloc *kmalloc, const struct set *set)
{
	unsigned class = 0;

	kmalloc->largest = set->sizes[set->count - 1];
	kmalloc->next_type = set->types > 1 ? set->count : 0;
	for (size_t size = 0; size <= SY__KMALLOC_SMALL; size += 8) {
		class += set->sizes[class] < size;
		kmalloc->small[size / 8] = kmalloc->classes[class];
	}
	for (size_t below = SY__KMALLOC_SMALL; below < SY__KMALLOC_LARGEST; below += step_after(below)) {
		class += class < set->count && set->sizes[class] <= below;
		kmalloc->medium_class[sy__kmalloc_step(below + 1)] = (uint8_t)class;
	}
}

/* A type without classes of its own. */
static void share_classes(struct sy__kmalloc *kmalloc, const struct set *set, unsigned type)
{
	for (unsigned class = 0; class < set->count; class++)
		kmalloc->classes[type * set->count + class] = kmalloc->classes[class];
}

bool sy__kmalloc_create(struct sy_heap *heap, struct sy__kmalloc *kmalloc, int64_t classes, unsigned own_types, uint32_t smallest,
                        unsigned cache_flags)
{
	const struct set *set;

	if (classes != SY_TUNABLE_AUTO)
		heap->sizing.classes = (enum sy_classes)classes;
	set = &sets[heap->sizing.classes];
	for (unsigned type = 0; type < set->types; type++)
		if (!(own_types >> type & 1))
			share_classes(kmalloc, set, type);
		else if (!create_type(heap, kmalloc, type, smallest, cache_flags))
			return false;
	fill_tables(kmalloc, set);
	return true;
}
