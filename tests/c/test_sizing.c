/*
 * What sy_sizing asks of general allocation, under every policy. Each object is aligned to sizing.align at least, to 8 bytes,
 * and to its own size if that is a power of two. All of it may be used, and a free finds it again. sizing.most is the largest
 * request that is served, whatever serves it.
 *
 * Sizes are tried one by one as far as size classes lie close together, and then in growing steps. Three objects of each are
 * held at once, so that not only the first of a slab or page is looked at.
 */
#include "core/types.h"
#include <string.h>

#include "check.h"

#define EACH 3u
#define CLOSE 600u
#define LARGEST 70000u
#define MOST_OBJECTS 4000u

static const char *const more_specs[] = { "svr4:pool_order=0", "svr4:pool_order=5", "sunos4:chunk_order=0", "sunos4:fit=better",
	                                  "sunos4:keep=on", "bonwick:percpu=8", "bonwick:magazine=on", "slob:fit=best", "slub:classes=fine" };

static struct sy_heap *open_aligned(const char *spec, struct sy_sizing sizing)
{
	const struct sy_heap_options options = { .reserve = (size_t)16 << 20, .sizing = sizing };
	const char *error = "";
	struct sy_heap *heap = sy_heap_open(spec, &options, &error);

	CHECK_TEXT(error, "");
	return heap;
}

static size_t should_be_aligned_to(size_t size, struct sy_sizing sizing)
{
	size_t own = size && !(size & (size - 1)) ? size : 1, least = sizing.align > 8 ? sizing.align : 8;

	while (sizing.small_less && least > 8 && least > size)
		least /= 2;
	if (own > SY_PAGE_SIZE)
		own = SY_PAGE_SIZE;
	return own > least ? own : least;
}

/* How many of the objects are not aligned as they should be, or too small. */
static unsigned fill(struct sy_heap *heap, struct sy_sizing sizing, void **objects, unsigned *count)
{
	unsigned wrong = 0;

	for (size_t size = 0; size <= LARGEST; size = size < CLOSE ? size + 1 : size + size / 7) {
		for (unsigned i = 0; i < EACH && *count < MOST_OBJECTS; i++) {
			void *object = sy_malloc(heap, size, 0);

			CHECK(object);
			if (!object)
				return wrong + 1;
			wrong += (uintptr_t)object % should_be_aligned_to(size, sizing) != 0 || sy_usable_size(heap, object) < size;
			memset(object, 0x5a, size);
			objects[(*count)++] = object;
		}
	}
	return wrong;
}

/* All that was freed is gone, runs of pages too. */
static uint64_t large_pages_after_trim(struct sy_heap *heap)
{
	struct sy_pages_counts counts;

	sy_heap_trim(heap);
	sy_pages_count(heap->pages, &counts);
	return counts.zones[0].used[SY_USE_LARGE];
}

static void fill_and_free(const char *spec, struct sy_sizing sizing)
{
	static void *objects[MOST_OBJECTS];
	struct sy_heap *heap = open_aligned(spec, sizing);
	unsigned count = 0, wrong;

	if (!heap)
		return;
	wrong = fill(heap, sizing, objects, &count);
	if (wrong)
		fprintf(stderr, "%s with an alignment of %u: %u of %u objects\n", spec, sizing.align, wrong, count);
	CHECK_EQUAL(wrong, 0);
	CHECK_FINE(sy_heap_check(heap));
	for (unsigned i = 0; i < count; i++)
		sy_mfree(heap, objects[i]);
	CHECK_FINE(sy_heap_check(heap));
	CHECK_EQUAL(large_pages_after_trim(heap), 0);
	sy_heap_close(heap);
}

static void all_alignments(const char *spec)
{
	fill_and_free(spec, (struct sy_sizing){ .align = 0 });
	for (uint32_t align = 1; align <= SY_PAGE_SIZE; align *= 2)
		fill_and_free(spec, (struct sy_sizing){ .align = align });
	for (uint32_t align = 1; align <= SY_PAGE_SIZE; align *= 16)
		fill_and_free(spec, (struct sy_sizing){ .align = align, .small_less = true, .classes = SY_CLASSES_FINE });
}

static void serve_up_to(const char *policy, size_t most)
{
	const struct sy_heap_options options = { .reserve = (size_t)16 << 20, .sizing = { .most = most } };
	struct sy_heap *heap = sy_heap_open(policy, &options, NULL);
	void *object;

	CHECK(heap);
	if (!heap)
		return;
	object = sy_malloc(heap, most, 0);
	CHECK(object);
	CHECK(!sy_malloc(heap, most + 1, 0));
	CHECK(!sy_malloc(heap, SIZE_MAX, 0));
	sy_mfree(heap, object);
	CHECK_FINE(sy_heap_check(heap));
	sy_heap_close(heap);
}

static void bounds(const char *policy)
{
	for (size_t most = 1; most <= SY_PAGE_SIZE << SY_MAX_ORDER; most = most * 3 + 1)
		serve_up_to(policy, most);
	serve_up_to(policy, SY_PAGE_SIZE << SY_MAX_ORDER);
}

int main(void)
{
	for (const struct sy_policy *const *policy = sy_policies; *policy; policy++) {
		all_alignments((*policy)->name);
		bounds((*policy)->name);
	}
	for (unsigned i = 0; i < sizeof(more_specs) / sizeof(more_specs[0]); i++)
		all_alignments(more_specs[i]);
	return check_result();
}
