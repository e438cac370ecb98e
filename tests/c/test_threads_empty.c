/*
 * Slabs without an object in use. A thread that gives back all that it took, and takes as much again, gets it without a
 * request for pages, side by side in order of addresses. Its empty slabs go when memory is needed for another size or a large
 * object, when the thread ends, or after some time. That includes slabs that another thread has emptied.
 */
#include "threads_heap.h"

#define SIZE 1000
#define ROOM 1024 /* of such an object */
#define OTHER 2000
#define OBJECTS 1000u /* 1 MiB */
#define LARGE 4u
#define MANY 8000u
#define FIRST 400u /* of these objects, in many slabs */
#define SMALL 64
#define SMALLS 8000u
#define STAY 1100u /* small ones, of several slabs */
#define BATCHES 4u
#define KEPT 4u  /* by the node */
#define WHILE 4u /* seconds */
#define USUAL 3u /* slabs without an object in use that a thread keeps of any size: two, and the one it allocates from */

static struct sy_heap *heap;
static void *objects[SMALLS];

static void take(size_t size, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		objects[i] = sy_malloc(heap, size, 0);
}

/* Each `step`-th, until all are free. */
static void give(unsigned count, unsigned step)
{
	for (unsigned first = 0; first < step; first++)
		for (unsigned i = first; i < count; i += step)
			sy_mfree(heap, objects[i]);
}

static void give_last_first(unsigned count)
{
	while (count)
		sy_mfree(heap, objects[--count]);
}

static void batches_of(size_t size, unsigned count, unsigned step)
{
	for (unsigned i = 0; i < BATCHES; i++) {
		take(size, count);
		give(count, step);
	}
}

static void batches(void)
{
	batches_of(SIZE, OBJECTS, 1);
}

static unsigned slabs(void)
{
	return slabs_of_size(heap, SIZE, OTHER);
}

static unsigned neighbours(unsigned count, size_t room)
{
	unsigned found = 0;

	for (unsigned i = 1; i < count; i++)
		found += (uintptr_t)objects[i] - (uintptr_t)objects[i - 1] == room;
	return found;
}

/* ---- They serve ---------------------------------------------------------------------------------------------------------- */

static void *without_requests(void *nothing)
{
	uint64_t before;

	batches();
	CHECK(slabs() > 10);
	before = page_requests(heap);
	batches();
	CHECK_EQUAL(page_requests(heap), before);
	return nothing;
}

static void *in_order(void *nothing)
{
	batches();
	take(SIZE, OBJECTS);
	give(OBJECTS, 7);
	take(SIZE, OBJECTS);
	CHECK(neighbours(OBJECTS, ROOM) > OBJECTS / 2);
	give_last_first(OBJECTS);
	take(SIZE, OBJECTS);
	CHECK(neighbours(OBJECTS, ROOM) > OBJECTS / 2);
	give(OBJECTS, 1);
	return nothing;
}

/* Small ones too, though all their slabs are no more than a thread keeps in any case. */
static void *in_order_to_the_last(void *nothing)
{
	batches_of(SMALL, SMALLS, 7);
	take(SMALL, SMALLS);
	CHECK(neighbours(SMALLS, SMALL) > SMALLS / 10 * 9);
	give(SMALLS, 1);
	return nothing;
}

/* Beside slabs with objects that stay. */
static void *in_order_beside_others(void *nothing)
{
	static void *stay[STAY];

	batches_of(SMALL, SMALLS, 7);
	take(SMALL, STAY);
	memcpy(stay, objects, sizeof(stay));
	take(SMALL, SMALLS);
	sy_mfree(heap, stay[STAY / 2]);
	give(SMALLS, 7);
	take(SMALL, SMALLS);
	CHECK(neighbours(SMALLS, SMALL) > SMALLS / 2);
	give(SMALLS, 1);
	for (unsigned i = 0; i < STAY; i++)
		if (i != STAY / 2)
			sy_mfree(heap, stay[i]);
	return nothing;
}

/* ---- They go ------------------------------------------------------------------------------------------------------------- */

static void other_sizes(void)
{
	uint64_t before = committed_pages(heap);

	take(OTHER, OBJECTS / 4);
	CHECK(slabs() <= USUAL);
	CHECK(committed_pages(heap) - before < 32);
	give(OBJECTS / 4, 1);
}

/* Several of them, as each looks at only a few slabs of others. */
static void large_ones(void)
{
	void *large[LARGE];

	for (unsigned i = 0; i < LARGE; i++)
		large[i] = sy_malloc(heap, (size_t)3 << 20, 0);
	CHECK(slabs() <= USUAL);
	for (unsigned i = 0; i < LARGE; i++)
		sy_mfree(heap, large[i]);
}

static void a_while(void)
{
	for (unsigned seconds = 0; seconds < WHILE; seconds++)
		scavenge(heap);
	CHECK(slabs() <= USUAL);
}

static void a_shrink(void)
{
	sy_heap_shrink(heap);
	CHECK_EQUAL(slabs(), 0);
}

static void a_trim(void)
{
	sy_heap_trim(heap);
	CHECK_EQUAL(slabs(), 0);
}

static void (*reason)(void);

static void *they_go(void *nothing)
{
	batches();
	CHECK(slabs() > 10);
	reason();
	return nothing;
}

/* Each batch is larger than any before. Where memory had to come again and again although slabs were kept, none are kept for
 * a while. */
static void *none_where_more_is_needed(void *nothing)
{
	for (unsigned count = OBJECTS / 5; count < 4 * OBJECTS; count += OBJECTS / 5) {
		take(SIZE, count);
		give(count, 1);
	}
	CHECK(slabs() <= USUAL + KEPT);
	scavenge(heap);
	batches();
	CHECK(slabs() > 10);
	return nothing;
}

/* By the slow call, as in a thread's first call. */
static void *slow_frees(void *nothing)
{
	batches();
	take(SIZE, OBJECTS);
	for (unsigned i = 0; i < OBJECTS; i++) {
		sy__this_slot_kfree(objects[i], heap);
		CHECK_FINE(i % 50 ? NULL : sy_heap_check(heap));
	}
	return nothing;
}

/* When the thread ends all go, except a few that the node keeps for a while. */
static void try(void *(*work)(void *), void (*because)(void))
{
	heap = open_unscavenged("yard");
	reason = because;
	run_thread(work, NULL);
	CHECK(slabs() <= KEPT);
	scavenge(heap);
	CHECK_EQUAL(slabs(), 0);
	sy_heap_close(heap);
}

/* ---- Emptied by another thread --------------------------------------------------------------------------------------------- */

static void give_all(void)
{
	give(OBJECTS, 1);
}

static void give_most(void)
{
	for (unsigned i = 0; i < OBJECTS; i++)
		if (i % 8)
			sy_mfree(heap, objects[i]);
}

static void give_the_rest(void)
{
	for (unsigned i = 0; i < OBJECTS; i += 8)
		sy_mfree(heap, objects[i]);
}

/* Frees what the main thread has left in all slabs but the first ones. */
static void give_behind(void)
{
	for (unsigned i = FIRST; i < MANY; i++)
		if (i % 4)
			sy_mfree(heap, objects[i]);
}

/* The main thread frees some objects of each slab, and so owns the slabs again. The other thread frees the last ones. */
static void by_another(void (*because)(void))
{
	struct worker other;

	heap = open_unscavenged("yard");
	worker_begin(&other);
	take(SIZE, OBJECTS);
	give_the_rest();
	worker_does(&other, give_most);
	because();
	take(SIZE, OBJECTS);
	worker_does(&other, give_all);
	because();
	worker_end(&other);
	CHECK_FINE(sy_heap_check(heap));
	sy_heap_close(heap);
}

/* Empty slabs that stand behind slabs which are not empty, and wait in front of the others. */
static void behind_others(void)
{
	struct worker other;

	heap = open_unscavenged("yard");
	worker_begin(&other);
	take(SIZE, MANY);
	for (unsigned i = 0; i < MANY; i += 4)
		if (i >= FIRST || i % 8)
			sy_mfree(heap, objects[i]);
	worker_does(&other, give_behind);
	CHECK(slabs() > 100);
	for (unsigned seconds = 0; seconds < WHILE; seconds++)
		scavenge(heap);
	CHECK(slabs() < 100);
	worker_end(&other);
	sy_heap_close(heap);
}

/* ---- Of any allocator -------------------------------------------------------------------------------------------------- */

static void *uses_and_ends(void *nothing)
{
	batches();
	batches_of(SMALL, SMALLS, 7);
	return nothing;
}

/* With a shrink all go. */
static void of_any(const char *policy)
{
	heap = open_unscavenged(policy);
	run_thread(uses_and_ends, NULL);
	uses_and_ends(NULL);
	a_shrink();
	CHECK_EQUAL(heap->counters.slab_pages, 0);
	sy_heap_close(heap);
}

int main(void)
{
	static const char *const policies[] = { "yard", "slub", "slab", "slqb", "bonwick" };

	for (unsigned i = 0; i < sizeof(policies) / sizeof(*policies); i++)
		check_under(policies[i], of_any);
	try(without_requests, NULL);
	try(in_order, NULL);
	try(in_order_to_the_last, NULL);
	try(in_order_beside_others, NULL);
	try(slow_frees, NULL);
	try(none_where_more_is_needed, NULL);
	try(they_go, other_sizes);
	try(they_go, large_ones);
	try(they_go, a_while);
	try(they_go, a_shrink);
	try(they_go, a_trim);
	by_another(other_sizes);
	by_another(large_ones);
	by_another(a_while);
	by_another(a_shrink);
	by_another(a_trim);
	behind_others();
	return check_result();
}
