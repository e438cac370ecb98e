/*
 * Slabs that a thread owns and others empty: they are found, and serve other sizes, when that thread needs pages
 * (core/policies/slub_slabs.c).
 */
#include "threads_support.h"

#define RESERVE ((size_t)256 << 20) /* an emulator takes memory for all that is reserved */
#define SMALL 208
#define OTHER 528
#define OBJECTS 4000
#define EACH 8 /* one of so many is freed by its own thread, which makes it the owner of the slab */

static struct sy_heap *heap;
static void *objects[OBJECTS];
static void *others[OBJECTS];

static void *frees_the_rest(void *nothing)
{
	for (unsigned i = 0; i < OBJECTS; i++)
		if (i % EACH)
			sy_mfree(heap, objects[i]);
	return nothing;
}

static bool count_slab(void *context, const struct sy_slab *slab)
{
	unsigned *slabs = context;

	*slabs += slab->cache && slab->cache->object_size >= SMALL && slab->cache->object_size < OTHER;
	return true;
}

static bool any_part(void *context, const struct sy_slab *slab, const struct sy_part *part)
{
	(void)context;
	(void)slab;
	(void)part;
	return true;
}

static unsigned small_slabs(void)
{
	unsigned slabs = 0;
	const struct sy_visitor visitor = { count_slab, any_part, &slabs, NULL };

	CHECK_TEXT(sy_heap_check(heap), NULL);
	CHECK(sy_heap_walk(heap, &visitor));
	return slabs;
}

int main(void)
{
	const struct sy_heap_options options = { .reserve = RESERVE };
	const char *error = "";
	unsigned before;
	pthread_t thread;

	heap = sy_heap_open("slub", &options, &error);
	CHECK(heap != NULL);
	for (unsigned i = 0; i < OBJECTS; i++)
		objects[i] = sy_malloc(heap, SMALL, 0);
	for (unsigned i = 0; i < OBJECTS; i += EACH)
		sy_mfree(heap, objects[i]);
	CHECK_EQUAL(pthread_create(&thread, NULL, frees_the_rest, NULL), 0);
	pthread_join(thread, NULL);
	before = small_slabs();
	CHECK(before > 8);
	for (unsigned i = 0; i < OBJECTS; i++)
		others[i] = sy_malloc(heap, OTHER, 0);
	CHECK(small_slabs() < before / 4);
	for (unsigned i = 0; i < OBJECTS; i++)
		sy_mfree(heap, others[i]);
	CHECK_TEXT(sy_heap_check(heap), NULL);
	sy_heap_close(heap);
	return check_result();
}
