/*
 * Slabs of which few objects are free (core/policies/yard/owned.c): they wait until there are more, the active one too, and the
 * slot takes a new slab instead; but not where three wait already, and not where there are no pages, when all that is free
 * serves. What other threads gave back counts as what the owner did.
 */
#include "core/policies/yard/yard.h"
#include "threads_heap.h"

#define SIZE 64
#define OF_A_SLAB ((SY_PAGE_SIZE << 2) / SIZE)
#define SPEC "yard:min_order=2,max_order=2"
#define ENOUGH (OF_A_SLAB / SY__YARD_ENOUGH)
#define LIMIT ((size_t)4 << 20) /* of a heap without pages */

static struct sy_heap *heap;
static struct sy_cache *cache;
static char *objects[LIMIT / SIZE];
static unsigned taken;

static bool take(unsigned count)
{
	for (; count && (objects[taken] = sy_alloc(cache, 0)); count--)
		taken++;
	CHECK_FINE(sy_heap_check(heap));
	return !count;
}

static void give(unsigned slab, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		sy_free(cache, objects[slab * OF_A_SLAB + i]);
	CHECK_FINE(sy_heap_check(heap));
}

static uint64_t slabs(void)
{
	struct sy_cache_counts counts;

	sy_cache_count(cache, &counts);
	return counts.slabs;
}

/* Whether the object that was taken last is of a slab by the order in which they were made. */
static bool is_of(unsigned slab)
{
	return (size_t)(objects[taken - 1] - objects[slab * OF_A_SLAB]) < OF_A_SLAB * SIZE;
}

static void begin(void)
{
	const struct sy_cache_config config = { .name = "few", .size = SIZE, .flags = SY_CACHE_NO_MERGE };

	cache = sy_cache_create(heap, &config);
	CHECK(cache != NULL);
	taken = 0;
}

/* So many slabs, all full. */
static void open_full(unsigned count)
{
	heap = open_unsettled(SPEC);
	begin();
	CHECK(take(count * OF_A_SLAB));
	CHECK_EQUAL(slabs(), count);
}

static void waits_for_more(void)
{
	open_full(2);
	give(0, ENOUGH - 1);
	CHECK(take(1));
	CHECK_EQUAL(slabs(), 3);
	sy_free(cache, objects[ENOUGH - 1]);
	CHECK(take(OF_A_SLAB - 1)); /* what the new one has */
	CHECK_EQUAL(slabs(), 3);
	CHECK(take(ENOUGH) && is_of(0));
	CHECK_EQUAL(slabs(), 3);
	CHECK(take(1));
	CHECK_EQUAL(slabs(), 4);
	sy_heap_close(heap);
}

static void active_waits(void)
{
	open_full(1);
	give(0, ENOUGH - 1);
	CHECK(take(1) && !is_of(0));
	CHECK_EQUAL(slabs(), 2);
	sy_heap_close(heap);
}

static void active_has_enough(void)
{
	open_full(1);
	give(0, ENOUGH);
	CHECK(take(ENOUGH) && is_of(0));
	CHECK_EQUAL(slabs(), 1);
	sy_heap_close(heap);
}

static void any_where_many_wait(void)
{
	open_full(SY__YARD_WAITING + 1);
	for (unsigned slab = 0; slab < SY__YARD_WAITING; slab++)
		give(slab, 1);
	CHECK(take(1) && is_of(0));
	CHECK_EQUAL(slabs(), SY__YARD_WAITING + 1);
	sy_heap_close(heap);
}

/* Slabs of the slot are empty before pages are asked for. */
static void empty_before_new(void)
{
	open_full(3);
	give(1, OF_A_SLAB);
	give(0, 1);
	CHECK(take(1) && is_of(1));
	CHECK_EQUAL(slabs(), 3);
	sy_heap_close(heap);
}

static void *others_give(void *count)
{
	sy_mfree(heap, sy_malloc(heap, 8, 0)); /* a thread's first call is slow */
	give(0, *(unsigned *)count);
	return NULL;
}

static void others_gave(unsigned count, uint64_t slabs_after)
{
	pthread_t thread;

	open_full(1);
	CHECK_EQUAL(pthread_create(&thread, NULL, others_give, &count), 0);
	pthread_join(thread, NULL);
	CHECK(take(count));
	CHECK_EQUAL(slabs(), slabs_after);
	sy_heap_close(heap);
}

static void all_without_pages(void)
{
	const struct sy_heap_options options = { .limit = LIMIT, .reserve = SMALL_RESERVE };
	const char *error;
	uint64_t had;

	heap = sy_heap_open(SPEC, &options, &error);
	CHECK(heap != NULL);
	begin();
	CHECK(!take(sizeof(objects) / sizeof(objects[0])));
	had = slabs();
	give(0, 1);
	give(1, 1);
	CHECK(take(1) && is_of(0));
	CHECK(take(1) && is_of(1));
	CHECK(!take(1));
	CHECK_EQUAL(slabs(), had);
	sy_heap_close(heap);
}

int main(void)
{
	waits_for_more();
	active_waits();
	active_has_enough();
	any_where_many_wait();
	empty_before_new();
	others_gave(ENOUGH - 1, 2);
	others_gave(ENOUGH, 1);
	all_without_pages();
	return check_result();
}
