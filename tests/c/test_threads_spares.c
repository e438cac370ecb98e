/*
 * Empty slabs that a thread keeps because it needs them again and again (core/policies/yard/owned.c): they serve it without a
 * request of pages, in order of addresses; and go when it needs memory for something else, when its cache shrinks, after a
 * while, and with the thread. Where again and again memory had to come even so, none is kept for a while.
 */
#include "core/backend/run_cache.h"
#include "threads_heap.h"

#define SIZE 1000
#define OTHER 2000
#define OBJECTS 1000 /* 1 MiB, of at most 4 */
#define SMALL 64
#define SMALLS 8000
#define STAY 1100 /* of these: more than two slabs have */
#define BATCHES 4
#define USUAL 3u /* slabs that a thread keeps of any cache without an object in use: two, and the one it allocates from */

static struct sy_heap *heap;
static void *objects[SMALLS];

static uint64_t requests(void)
{
	struct sy_pages_counts counts;

	sy_pages_count(heap->pages, &counts);
	return counts.requests;
}

static uint64_t committed(void)
{
	struct sy_pages_counts counts;

	sy_pages_count(heap->pages, &counts);
	return counts.committed_pages;
}

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

static void batch(unsigned count)
{
	take(SIZE, count);
	give(count, 1);
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

/* Of the size that batches are of. */
static bool count_slab(void *context, const struct sy_slab *slab)
{
	*(unsigned *)context += slab->cache && slab->cache->object_size >= SIZE && slab->cache->object_size < OTHER;
	return true;
}

static bool pass(void *context, const struct sy_slab *slab, const struct sy_part *part)
{
	return context && slab && part;
}

static unsigned slabs(void)
{
	unsigned count = 0;
	const struct sy_visitor visitor = { count_slab, pass, &count, NULL };

	CHECK_TEXT(sy_heap_check(heap), NULL);
	CHECK(sy_heap_walk(heap, &visitor));
	return count;
}

static void *they_serve(void *nothing)
{
	uint64_t before;

	batches();
	CHECK(slabs() > 10);
	before = requests();
	take(SIZE, OBJECTS);
	CHECK_EQUAL(requests(), before);
	give(OBJECTS, 1);
	CHECK_EQUAL(requests(), before);
	return nothing;
}

static void give_last_first(void)
{
	for (unsigned i = OBJECTS; i--;)
		sy_mfree(heap, objects[i]);
}

static unsigned neighbours(unsigned count, ptrdiff_t size)
{
	unsigned found = 0;

	for (unsigned i = 1; i < count; i++)
		found += (char *)objects[i] - (char *)objects[i - 1] == size;
	return found;
}

static void *in_order(void *nothing)
{
	batches();
	take(SIZE, OBJECTS);
	give(OBJECTS, 7);
	take(SIZE, OBJECTS);
	CHECK(neighbours(OBJECTS, 1024) > OBJECTS / 2);
	give_last_first();
	take(SIZE, OBJECTS);
	CHECK(neighbours(OBJECTS, 1024) > OBJECTS / 2);
	give(OBJECTS, 1);
	return nothing;
}

/* Those as well of which no more are left than a thread would keep in any case. */
static void *in_order_to_the_last(void *nothing)
{
	batches_of(SMALL, SMALLS, 7);
	take(SMALL, SMALLS);
	CHECK(neighbours(SMALLS, SMALL) > SMALLS / 10 * 9);
	give(SMALLS, 1);
	return nothing;
}

/* While one slab waits, as too few of its objects are free for it to be taken up: it was full, with objects that stay. */
static void *in_order_beside_one_that_waits(void *nothing)
{
	static void *stay[STAY];

	batches_of(SMALL, SMALLS, 7);
	take(SMALL, STAY);
	memcpy(stay, objects, sizeof stay);
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

/* Each batch is larger than any before. */
static void *needs_more_each_time(void *nothing)
{
	unsigned count = OBJECTS / 5, more = 4 * OBJECTS / 5 / (SY__SPARES_IN_VAIN + BATCHES); /* than a slab */

	for (unsigned vain = 0; vain < SY__SPARES_IN_VAIN - BATCHES; vain++, count += more)
		batch(count);
	CHECK(slabs() > 10);
	for (; count <= OBJECTS; count += more)
		batch(count);
	CHECK(slabs() <= USUAL);
	sy__settle_soon(heap);
	sy__heap_tick(heap);
	batches();
	CHECK(slabs() > 10);
	return nothing;
}

static void *they_go_for_others(void *nothing)
{
	uint64_t before;

	batches();
	CHECK(slabs() > 10);
	before = committed();
	take(OTHER, OBJECTS / 4);
	CHECK(slabs() <= USUAL);
	CHECK(committed() - before < 32);
	give(OBJECTS / 4, 1);
	return nothing;
}

static void *they_go_for_large_ones(void *nothing)
{
	void *large;

	batches();
	CHECK(slabs() > 10);
	large = sy_malloc(heap, (size_t)3 << 20, 0);
	CHECK(slabs() <= USUAL);
	sy_mfree(heap, large);
	return nothing;
}

static void *they_go_after_a_while(void *nothing)
{
	batches();
	CHECK(slabs() > 10);
	sy__settle_soon(heap);
	sy__heap_tick(heap);
	CHECK(slabs() <= USUAL);
	return nothing;
}

/* By the way that leads to the node, as a thread's first call does: no object is taken for one of the active slab. */
static void *slow_frees(void *nothing)
{
	batches();
	take(SIZE, OBJECTS);
	for (unsigned i = 0; i < OBJECTS; i++) {
		sy__here_kfree(objects[i], heap);
		CHECK_FINE(i % 50 ? NULL : sy_heap_check(heap));
	}
	return nothing;
}

static void *they_go_with_shrinks(void *nothing)
{
	batches();
	CHECK(slabs() > 10);
	sy_heap_shrink(heap);
	CHECK_EQUAL(slabs(), 0);
	return nothing;
}

static void run(void *(*work)(void *))
{
	pthread_t thread;

	heap = open_unsettled("yard");
	CHECK_EQUAL(pthread_create(&thread, NULL, work, NULL), 0);
	pthread_join(thread, NULL);
	CHECK_EQUAL(slabs(), 0);
	sy_heap_close(heap);
}

int main(void)
{
	run(they_serve);
	run(in_order);
	run(in_order_to_the_last);
	run(in_order_beside_one_that_waits);
	run(slow_frees);
	run(needs_more_each_time);
	run(they_go_for_others);
	run(they_go_for_large_ones);
	run(they_go_after_a_while);
	run(they_go_with_shrinks);
	return check_result();
}
