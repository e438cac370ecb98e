/*
 * What a trim gives back where survivors are scattered: of slub also the pages inside slabs in which nothing is used. What lives stays as
 * it is, the heap's figures stay exact, every object that is free can still be had, once, and slabs that were trimmed end as others do.
 */
#include "threads_support.h"

#define OBJECTS 40000u
#define ROUNDS 4u
#define SURVIVORS 100u /* one in so many */

static const char *const sizings[] = { "slub", "slub:classes=fine", "slub:max_order=4,min_order=2,classes=fine", "slub:min_order=7,max_order=7" };

struct scatter {
	struct sy_heap *heap;
	unsigned char *objects[OBJECTS];
	uint32_t bytes[OBJECTS];
	uint64_t random;
};

static uint64_t backed_pages(const struct sy_heap *heap)
{
	struct sy_pages_counts counts;

	sy_pages_count(heap->pages, &counts);
	return counts.committed_pages;
}

static uint32_t draw_bytes(struct scatter *scatter)
{
	uint32_t most = check_random(&scatter->random) % 50 ? 250 : 20000;

	return 16 + (uint32_t)(check_random(&scatter->random) % most);
}

/* What lives is in pages that count as backed again. */
static void fill(struct scatter *scatter)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < OBJECTS; bytes += scatter->bytes[i++]) {
		if (scatter->objects[i])
			continue;
		scatter->bytes[i] = draw_bytes(scatter);
		scatter->objects[i] = sy_malloc(scatter->heap, scatter->bytes[i], 0);
		CHECK(scatter->objects[i] != NULL);
		memset(scatter->objects[i], (unsigned char)i, scatter->bytes[i]);
	}
	CHECK(backed_pages(scatter->heap) << SY_PAGE_SHIFT >= bytes);
}

static void verify(struct scatter *scatter, unsigned i)
{
	if (!filled(scatter->objects[i], scatter->bytes[i], (unsigned char)i))
		CHECK(false && "what is in use stays as it is");
}

static void give(struct scatter *scatter, unsigned i)
{
	verify(scatter, i);
	sy_mfree(scatter->heap, scatter->objects[i]);
	scatter->objects[i] = NULL;
}

/* Of those that are there, one in so many stays; 0: none. */
static void thin_out(struct scatter *scatter, unsigned one_in)
{
	for (unsigned i = 0; i < OBJECTS; i++)
		if (scatter->objects[i] && (!one_in || check_random(&scatter->random) % one_in))
			give(scatter, i);
}

static void *thin_out_more(void *argument)
{
	thin_out(argument, 2);
	return NULL;
}

static bool every_slab(void *context, const struct sy_slab *slab)
{
	(void)context;
	(void)slab;
	return true;
}

static bool count_part(void *context, const struct sy_slab *slab, const struct sy_part *part)
{
	uint64_t *counted = context;

	if (!slab->large)
		counted[part->state == SY_PART_USED] += part->state == SY_PART_USED || part->state == SY_PART_FREE || part->state == SY_PART_SLOT;
	return true;
}

/* What a walk finds used and free, against what the caches count. */
static void compare_walk(struct sy_heap *heap)
{
	uint64_t counted[2] = { 0, 0 }, in_use = 0, objects = 0;
	const struct sy_visitor visitor = { .slab = every_slab, .part = count_part, .context = counted };

	CHECK(sy_heap_walk(heap, &visitor));
	for (struct sy_list *at = heap->caches.next; at != &heap->caches; at = at->next) {
		struct sy_cache_counts counts;

		sy_cache_count((struct sy_cache *)(void *)((char *)at - offsetof(struct sy_cache, link)), &counts);
		in_use += counts.objects_in_use;
		objects += counts.objects;
	}
	CHECK_EQUAL(counted[1], in_use);
	CHECK_EQUAL(counted[0] + counted[1], objects);
}

static void trim(struct scatter *scatter)
{
	uint64_t before = backed_pages(scatter->heap), given = sy_heap_trim(scatter->heap);

	CHECK_EQUAL(given, (before - backed_pages(scatter->heap)) << SY_PAGE_SHIFT);
	CHECK_FINE(sy_heap_check(scatter->heap));
	compare_walk(scatter->heap);
	for (unsigned i = 0; i < OBJECTS; i++)
		if (scatter->objects[i])
			verify(scatter, i);
}

static void scatter_on(const char *spec)
{
	const struct sy_heap_options options = { .keep = true };
	static struct scatter scatter;
	uint64_t peak;

	scatter = (struct scatter){ .heap = sy_heap_open(spec, &options, NULL), .random = 7 };
	CHECK(scatter.heap != NULL);
	if (!scatter.heap)
		return;
	for (unsigned round = 0; round < ROUNDS; round++) {
		pthread_t thread;

		fill(&scatter);
		peak = backed_pages(scatter.heap);
		thin_out(&scatter, SURVIVORS);
		trim(&scatter);
		CHECK(backed_pages(scatter.heap) < peak * 2 / 5);
		CHECK(!pthread_create(&thread, NULL, thin_out_more, &scatter));
		pthread_join(thread, NULL);
		trim(&scatter);
		if (round == 1)
			thin_out(&scatter, 0);
	}
	thin_out(&scatter, 0);
	trim(&scatter);
	CHECK(backed_pages(scatter.heap) < 200);
	sy_heap_close(scatter.heap);
}

int main(void)
{
	for (unsigned i = 0; i < sizeof(sizings) / sizeof(sizings[0]); i++)
		scatter_on(sizings[i]);
	return check_result();
}
