/*
 * What a thread has without a use for it: slabs that it owns and others emptied, and objects of others that it keeps. Both are
 * found when that thread needs pages for another size (core/policies/yard/slabs.c): the slabs serve that one, the objects go
 * home. And what a thread has emptied itself serves all sizes when it ends, none is kept for its own; what is free in the other
 * slabs then stays for the next thread, or goes to their nodes when the heap settles, by a look at few of it.
 */
#include "threads_heap.h"

#define SMALL 208
#define OTHER 528
#define OBJECTS 4000
#define EACH 8 /* one of so many is freed by its own thread, which makes it the owner of the slab */
#define SLABS 4  /* of order 2, */
#define IN_SLAB 4 /* each with so many objects of a page */
#define BATCHES 10
#define FEW 20 /* of the slab that the main thread allocates from */

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

/* Of the smaller size. */
struct seen {
	unsigned slabs, strays;
};

static bool is_small(const struct sy_slab *slab)
{
	return slab->cache && slab->cache->object_size >= SMALL && slab->cache->object_size < OTHER;
}

static bool count_slab(void *context, const struct sy_slab *slab)
{
	struct seen *seen = context;

	seen->slabs += is_small(slab);
	return true;
}

static bool count_stray(void *context, const struct sy_slab *slab, const struct sy_part *part)
{
	struct seen *seen = context;

	seen->strays += is_small(slab) && part->list && !strcmp(part->list, "strays");
	return true;
}

static struct seen look(void)
{
	struct seen seen = { 0, 0 };
	const struct sy_visitor visitor = { count_slab, count_stray, &seen, NULL };

	CHECK_TEXT(sy_heap_check(heap), NULL);
	CHECK(sy_heap_walk(heap, &visitor));
	return seen;
}

static void take_others(void)
{
	for (unsigned i = 0; i < OBJECTS; i++)
		others[i] = sy_malloc(heap, OTHER, 0);
}

static void give_others(void)
{
	for (unsigned i = 0; i < OBJECTS; i++)
		sy_mfree(heap, others[i]);
}

static void run(void *(*work)(void *))
{
	pthread_t thread;

	CHECK_EQUAL(pthread_create(&thread, NULL, work, NULL), 0);
	pthread_join(thread, NULL);
}

static void open_with_objects(void)
{
	heap = open_small("yard");
	for (unsigned i = 0; i < OBJECTS; i++)
		objects[i] = sy_malloc(heap, SMALL, 0);
}

static void slabs_serve_other_sizes(void)
{
	unsigned before;

	open_with_objects();
	for (unsigned i = 0; i < OBJECTS; i += EACH)
		sy_mfree(heap, objects[i]);
	run(frees_the_rest);
	before = look().slabs;
	CHECK(before > 8);
	take_others();
	CHECK(look().slabs < before / 4);
	give_others();
	CHECK_TEXT(sy_heap_check(heap), NULL);
	sy_heap_close(heap);
}

/* A thread that allocates the size too, else it would keep none. */
static void *keeps_a_few(void *nothing)
{
	void *own = sy_malloc(heap, SMALL, 0);

	for (unsigned i = OBJECTS - FEW; i < OBJECTS; i++)
		sy_mfree(heap, objects[i]);
	CHECK_EQUAL(look().strays, FEW);
	take_others();
	CHECK_EQUAL(look().strays, 0);
	give_others();
	sy_mfree(heap, own);
	return nothing;
}

static void objects_go_home(void)
{
	open_with_objects();
	run(keeps_a_few);
	for (unsigned i = 0; i < OBJECTS - FEW; i++)
		sy_mfree(heap, objects[i]);
	CHECK_TEXT(sy_heap_check(heap), NULL);
	sy_heap_close(heap);
}

static void *uses_and_ends(void *nothing)
{
	for (unsigned i = 0; i < OBJECTS; i++)
		objects[i] = sy_malloc(heap, SMALL, 0);
	CHECK(look().slabs > 8);
	for (unsigned i = 0; i < OBJECTS; i++)
		sy_mfree(heap, objects[i]);
	return nothing;
}

static void none_is_left(void)
{
	heap = open_small("yard");
	run(uses_and_ends);
	CHECK_EQUAL(look().slabs, 0);
	sy_heap_close(heap);
}

/* ---- What is free in a slab of a thread that ends ------------------------------------------------------------------------ */

static struct sy_cache *cache;

static void *frees_one(void *nothing)
{
	sy_free(cache, objects[FEW / 2]);
	return nothing;
}

static void *frees_half(void *nothing)
{
	for (unsigned i = 0; i < FEW; i++)
		objects[i] = sy_alloc(cache, 0);
	for (unsigned i = 0; i < FEW / 2; i++)
		sy_free(cache, objects[i]);
	run(frees_one);
	return nothing;
}

/* Not to look at all that the thread itself gave back, which may be much, it puts what others gave back in front. */
static void few_are_in_front(void)
{
	const struct sy_cache_config config = { .name = "in front", .size = SMALL, .flags = SY_CACHE_NO_MERGE };

	heap = open_small("yard");
	cache = sy_cache_create(heap, &config);
	CHECK(cache != NULL);
	run(frees_half);
	sy__settle_soon(heap);
	sy__heap_tick(heap);
	CHECK_TEXT(sy_heap_check(heap), NULL);
	CHECK(sy_alloc(cache, 0) == objects[FEW / 2]);
	sy_heap_close(heap);
}

static void *batches_of_large_ones(void *nothing)
{
	struct sy_pages_counts before, after;

	for (unsigned batch = 0; batch < 2 * BATCHES; batch++) {
		if (batch == BATCHES)
			sy_pages_count(heap->pages, &before);
		for (unsigned i = 0; i < SLABS * IN_SLAB; i++)
			objects[i] = sy_alloc(cache, 0);
		for (unsigned i = SLABS * IN_SLAB; i-- > 0;)
			sy_free(cache, objects[i]);
	}
	sy_pages_count(heap->pages, &after);
	CHECK(after.requests - before.requests <= BATCHES);
	return nothing;
}

/* A thread that takes what fills four slabs, and gives all of it back, again and again, keeps what it allocates from and two
 * empty slabs: it asks for pages once for all of a batch. */
static void empties_serve_again(void)
{
	const struct sy_cache_config config = { .name = "large", .size = SY_PAGE_SIZE, .flags = SY_CACHE_NO_MERGE };

	heap = open_small("yard:max_order=2,min_objects=4");
	cache = sy_cache_create(heap, &config);
	CHECK(cache != NULL);
	run(batches_of_large_ones);
	CHECK_TEXT(sy_heap_check(heap), NULL);
	sy_heap_close(heap);
}

int main(void)
{
	empties_serve_again();
	few_are_in_front();
	none_is_left();
	slabs_serve_other_sizes();
	objects_go_home();
	return check_result();
}
