/*
 * What a thread frees of another thread's slabs (core/policies/slub_strays.c): it keeps that for itself, in counts, checks and walks it is
 * free all the same, and goes home when it becomes too much, when somebody trims or shrinks, and when the thread ends.
 */
#include "threads_support.h"

#define RESERVE ((size_t)256 << 20) /* an emulator takes memory for all that is reserved */
#define SIZE 256
#define TAKEN 64 /* objects of the main thread's: those freed here are of the slab that it allocates from */

static struct sy_heap *heap;
static struct sy_cache *cache;
static void *objects[TAKEN + 1]; /* and one of the other thread's */

static void open_with(const char *spec, size_t size)
{
	const struct sy_heap_options options = { .reserve = RESERVE };
	const struct sy_cache_config config = { .name = "crossing", .size = size, .flags = SY_CACHE_NO_MERGE };
	const char *error = "";

	heap = sy_heap_open(spec, &options, &error);
	CHECK(heap != NULL);
	cache = sy_cache_create(heap, &config);
	CHECK(cache != NULL);
	for (unsigned i = 0; i < TAKEN; i++)
		objects[i] = sy_alloc(cache, 0);
}

/* ---- What is seen of strays ----------------------------------------------------------------------------------------- */

struct seen {
	size_t in_use, strays, twice;
};

static bool any_slab(void *context, const struct sy_slab *slab)
{
	(void)context;
	(void)slab;
	return true;
}

static bool see(void *context, const struct sy_slab *slab, const struct sy_part *part)
{
	struct seen *seen = context;

	if (slab->cache != cache || !part->is_object)
		return true;
	seen->in_use += part->state == SY_PART_USED;
	seen->strays += part->list && !strcmp(part->list, "strays");
	seen->twice += part->lists > 1;
	return true;
}

/* With so many objects in use, of which the walk knows as well as the counts. */
static size_t strays_with(size_t in_use)
{
	struct seen seen = { 0, 0, 0 };
	const struct sy_visitor visitor = { any_slab, see, &seen, NULL };
	struct sy_cache_counts counts;

	CHECK_TEXT(sy_heap_check(heap), NULL);
	sy_cache_count(cache, &counts);
	CHECK_EQUAL(counts.objects_in_use, in_use);
	CHECK(sy_heap_walk(heap, &visitor));
	CHECK_EQUAL(seen.in_use, in_use);
	CHECK_EQUAL(seen.twice, 0);
	return seen.strays;
}

/* ---- Another thread --------------------------------------------------------------------------------------------------- */

/* A thread that allocates too. */
static void *begin(void *work)
{
	objects[TAKEN] = sy_alloc(cache, 0);
	(*(void (**)(void))work)();
	return NULL;
}

static void run(void (*work)(void))
{
	pthread_t thread;

	CHECK_EQUAL(pthread_create(&thread, NULL, begin, &work), 0);
	pthread_join(thread, NULL);
}

static void free_last(unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		sy_free(cache, objects[TAKEN - 1 - i]);
}

static bool was_freed(const void *object, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (objects[TAKEN - 1 - i] == object)
			return true;
	return false;
}

/* What it keeps is what it gets next, though it has a slab of its own. */
static void keeps(void)
{
	void *again[20];

	free_last(20);
	CHECK_EQUAL(strays_with(TAKEN + 1 - 20), 20);
	while (!was_freed(again[0] = sy_alloc(cache, 0), 20))
		; /* what is left of the page that its slab has begun */
	for (unsigned i = 1; i < 20; i++) {
		again[i] = sy_alloc(cache, 0);
		CHECK(was_freed(again[i], 20));
		CHECK_TEXT(sy_heap_check(heap), NULL);
	}
}

static void keeps_few(void)
{
	free_last(4);
	CHECK_EQUAL(strays_with(TAKEN + 1 - 4), 4);
	sy_free(cache, objects[TAKEN - 5]);
	CHECK_EQUAL(strays_with(TAKEN + 1 - 5), 0);
}

static void keeps_none(void)
{
	free_last(20);
	CHECK_EQUAL(strays_with(TAKEN + 1 - 20), 0);
}

static void trims(void)
{
	free_last(20);
	CHECK_EQUAL(strays_with(TAKEN + 1 - 20), 20);
	sy_heap_trim(heap);
	CHECK_EQUAL(strays_with(TAKEN + 1 - 20), 0);
}

/* With some of its strays on the list that it allocates from. */
static void shrinks(void)
{
	unsigned taken = 1;

	free_last(20);
	while (!was_freed(sy_alloc(cache, 0), 20))
		taken++;
	sy_free(cache, objects[0]);
	CHECK_EQUAL(strays_with(TAKEN + 1 - 20 + taken - 1), 0);
	sy_cache_shrink(cache);
	CHECK_EQUAL(strays_with(TAKEN + 1 - 20 + taken - 1), 0);
}

static void ends(void)
{
	free_last(20);
	CHECK_EQUAL(strays_with(TAKEN + 1 - 20), 20);
}

/* A slab all of whose objects go home at once is no longer needed. */
static void frees_all(void)
{
	struct sy_cache_counts counts;

	free_last(TAKEN);
	sy_free(cache, objects[TAKEN]);
	sy_heap_trim(heap);
	sy_cache_count(cache, &counts);
	CHECK_EQUAL(counts.objects_in_use, 0);
	CHECK_EQUAL(counts.slabs, 0);
}

static void *only_frees(void *nothing)
{
	sy_mfree(heap, sy_malloc(heap, 8, 0)); /* a thread's first call is slow, and keeps nothing either */
	free_last(20);
	CHECK_EQUAL(strays_with(TAKEN - 20), 0);
	return nothing;
}

static void run_one_that_only_frees(void)
{
	pthread_t thread;

	open_with("slub", SIZE);
	CHECK_EQUAL(pthread_create(&thread, NULL, only_frees, NULL), 0);
	pthread_join(thread, NULL);
	sy_heap_close(heap);
}

static void try(const char *spec, size_t size, void (*work)(void))
{
	struct seen seen = { 0, 0, 0 };
	const struct sy_visitor visitor = { any_slab, see, &seen, NULL };

	open_with(spec, size);
	run(work);
	CHECK(sy_heap_walk(heap, &visitor));
	CHECK_EQUAL(seen.strays, 0);
	sy_heap_close(heap);
}

int main(void)
{
	try("slub", SIZE, keeps);
	try("slub:strays=4", SIZE, keeps_few);
	try("slub:strays=0", SIZE, keeps_none);
	try("slub", 48, keeps_none); /* less than a cache line */
	try("slub", SIZE, trims);
	try("slub", SIZE, shrinks);
	try("slub", SIZE, ends);
	try("slub", SIZE, frees_all);
	run_one_that_only_frees();
	return check_result();
}
