/*
 * Memory that a program uses again and again stays, however much of it is free at times: giving it back would cost more than
 * keeping it. Memory that stays free goes, also page by page where survivors are scattered.
 */
#include "core/pages/pages.h"
#include "threads_support.h"

#define MIB ((size_t)1 << 20)
#define BYTES 100000
#define MOST 1000
#define BLOCKS 200u /* maximal ones */
#define AN_OPERATION 1000 /* nanoseconds */

/* Time passes as the test says, so that no machine is too slow or too busy for it. */
static uint64_t now = 1000000000;
static unsigned looks;

static uint64_t clock_of_test(void)
{
	looks++;
	return now;
}

static size_t backed_bytes(const struct sy_heap *heap)
{
	struct sy_pages_counts counts;

	sy_pages_count(heap->pages, &counts);
	return (size_t)counts.committed_pages << SY_PAGE_SHIFT;
}

static void breathe(struct sy_heap *heap, unsigned count)
{
	static void *objects[MOST];

	for (unsigned i = 0; i < count; i++) {
		objects[i] = sy_malloc(heap, BYTES, 0);
		CHECK(objects[i] != NULL);
		now += AN_OPERATION;
	}
	for (unsigned i = 0; i < count; i++) {
		sy_mfree(heap, objects[i]);
		now += AN_OPERATION;
	}
}

static void breathe_for(struct sy_heap *heap, unsigned count, uint64_t milliseconds)
{
	uint64_t end = now + milliseconds * 1000000;

	while (now < end)
		breathe(heap, count);
}

/* Times that memory went back after one of 100 breaths, in half a second. */
static unsigned losses(struct sy_heap *heap, unsigned count)
{
	unsigned lost = 0;

	for (unsigned i = 0; i < 100; i++) {
		size_t before = backed_bytes(heap);

		breathe_for(heap, count, 5);
		lost += backed_bytes(heap) + MIB < before;
	}
	return lost;
}

/* A heap that one driver has, on a page allocator that gives back. */
static struct sy_heap *open_driven(uint64_t pages, uint64_t decay_ns)
{
	struct sy_pages_config of_pages = { .zone_count = 1, .slots = 1, .pageblock_order = 9, .decay_ns = decay_ns };
	struct sy_heap_config of_heap;

	of_pages.zones[0] = (struct sy_zone_config){ .name = "Normal", .pages = pages };
	sy_heap_defaults(sy_policy_find("yard"), &of_heap);
	return sy_heap_create(sy_pages_create(&of_pages), &of_heap);
}

static void close_driven(struct sy_heap *heap)
{
	struct sy_pages *pages = heap->pages;

	CHECK(sy_heap_destroy(heap));
	sy_pages_destroy(pages);
}

/* Calls of a driven heap, for that many milliseconds. */
static void wait_for_decay(struct sy_heap *heap, unsigned milliseconds)
{
	for (unsigned i = 0; i < milliseconds; i++, now += 1000000)
		sy_kfree(heap, 0, sy_kmalloc(heap, 0, 20000, 0, SY_ANY_NODE));
}

/* Of objects of an eighth of a page, one in sixteen lives on, drawn at random: there are hardly any runs of free pages. */
static void scattered_survivors(void)
{
	static void *objects[40000];
	const unsigned count = sizeof(objects) / sizeof(objects[0]);
	struct sy_heap *heap = sy_heap_open("slab", NULL, NULL);
	uint64_t random = 20251;

	for (unsigned i = 0; i < count; i++)
		CHECK((objects[i] = sy_malloc(heap, SY_PAGE_SIZE / 8, 0)) != NULL);
	for (unsigned i = 0; i < count; i++) {
		if (check_random(&random) % 16)
			sy_mfree(heap, objects[i]);
	}
	breathe_for(heap, 10, 900);
	/* Left are pages with a survivor, two in five of all. */
	CHECK(backed_bytes(heap) <= count / 8 * SY_PAGE_SIZE * 6 / 10);
	CHECK_FINE(sy_heap_check(heap));
	sy_heap_close(heap);
}

/* Slabs that come and go a few at a time are not worth a look at the clock each: a thread's slow calls look now and then. */
static void few_slabs(void)
{
	const struct sy_cache_config config = { .name = "few", .size = 4 * SY_PAGE_SIZE };
	const unsigned turns = 2000;
	struct sy_heap *heap = sy_heap_open("yard:min_order=4,max_order=4", NULL, NULL);
	struct sy_cache *cache = sy_cache_create(heap, &config);
	void *objects[20];

	looks = 0;
	for (unsigned turn = 0; turn < turns; turn++) {
		for (unsigned i = 0; i < 20; i++)
			CHECK((objects[i] = sy_alloc(cache, 0)) != NULL);
		for (unsigned i = 0; i < 20; i++)
			sy_free(cache, objects[i]);
	}
	CHECK(looks < turns / 2);
	sy_heap_close(heap);
}

/* No slow calls of threads happen beside the driver's. */
static void driven(void)
{
	struct sy_heap *heap;
	void *objects[400];

	heap = open_driven(65536, 100000000);
	for (unsigned i = 0; i < 400; i++)
		objects[i] = sy_kmalloc(heap, 0, 20000, 0, SY_ANY_NODE);
	for (unsigned i = 0; i < 400; i++)
		sy_kfree(heap, 0, objects[i]);
	wait_for_decay(heap, 1000);
	CHECK(backed_bytes(heap) <= 2 * MIB);
	close_driven(heap);
}

/* What is free and backed, and the descriptors of all maximal blocks but one. */
static size_t idle_bytes(const struct sy_pages *pages)
{
	return (size_t)(sy__free_and_backed(pages) * SY_PAGE_SIZE + (sy__read(&pages->described) - 1) * SY__MAX_BLOCK * sizeof(struct sy_page));
}

/* A few pages in each maximal block are the last to become free, and keep all of its descriptors, which are many times as
 * much memory. Descriptors count as free memory, so the fast decay goes on with them. Nothing of the peak is ever touched. */
static void descriptors(void)
{
	/* One more at the end fills the maximal block, and stays at first. */
	static const unsigned char orders[] = { 9, 8, 7, 6, 5, 4, 3, 2 };
	struct sy_pages *pages;
	struct sy_heap *heap;
	static void *objects[BLOCKS][sizeof(orders)], *last[BLOCKS];

	heap = open_driven((BLOCKS + 8) << SY_MAX_ORDER, 1000000000);
	pages = heap->pages;
	for (unsigned i = 0; i < BLOCKS; i++) {
		for (unsigned part = 0; part < sizeof(orders); part++)
			CHECK((objects[i][part] = sy_kmalloc(heap, 0, SY_PAGE_SIZE << orders[part], 0, SY_ANY_NODE)) != NULL);
		CHECK((last[i] = sy_kmalloc(heap, 0, SY_PAGE_SIZE << 2, 0, SY_ANY_NODE)) != NULL);
	}
	for (unsigned i = 0; i < BLOCKS; i++)
		for (unsigned part = 0; part < sizeof(orders); part++, now += AN_OPERATION)
			sy_kfree(heap, 0, objects[i][part]);
	wait_for_decay(heap, 300);
	CHECK(idle_bytes(pages) > 8 * MIB);
	for (unsigned i = 0; i < BLOCKS; i++, now += AN_OPERATION)
		sy_kfree(heap, 0, last[i]);
	CHECK(sy__free_and_backed(pages) * SY_PAGE_SIZE < 4 * MIB);
	wait_for_decay(heap, 300);
	CHECK(idle_bytes(pages) <= 8 * MIB);
	close_driven(heap);
}

/* The next release does not walk again, page by page, over what has gone back: it does not find a mark that the test put
 * there. */
static void released(void)
{
	struct sy_pages *pages;
	struct sy_page *inner;
	struct sy_heap *heap;
	void *objects[4];

	heap = open_driven(4096, 1000000000);
	pages = heap->pages;
	wait_for_decay(heap, 10);
	for (unsigned i = 0; i < 4; i++)
		CHECK((objects[i] = sy_kmalloc(heap, 0, SY_PAGE_SIZE << 8, 0, SY_ANY_NODE)) != NULL);
	inner = sy__page(pages, (uint64_t)((char *)objects[1] - (char *)pages->base.memory) >> SY_PAGE_SHIFT) + 200;
	sy_kfree(heap, 0, objects[1]);
	CHECK(sy_pages_release(pages, 0) >= 256);
	CHECK_EQUAL(inner->flags, SY__PAGE_DISCARDED);
	inner->flags = SY__PAGE_BACKED;
	CHECK_EQUAL(sy_pages_release(pages, 0), 0);
	inner->flags = SY__PAGE_DISCARDED;
	objects[1] = sy_kmalloc(heap, 0, SY_PAGE_SIZE << 8, 0, SY_ANY_NODE);
	for (unsigned i = 0; i < 4; i++)
		sy_kfree(heap, 0, objects[i]);
	CHECK(sy_pages_release(pages, 0) >= 1024);
	close_driven(heap);
}

int main(void)
{
	struct sy_heap *heap;

	sy_platform_set_clock(clock_of_test);
	scattered_survivors();
	driven();
	descriptors();
	released();
	few_slabs();
	heap = sy_heap_open("yard", NULL, NULL);

	/* All that is free never goes, as it is not free all the time. */
	breathe_for(heap, 200, 50);
	CHECK(losses(heap, 200) == 0);
	CHECK(backed_bytes(heap) >= 200 * BYTES);

	/* Fast decay would give back this much, but a program that refaulted after it keeps its memory. */
	breathe_for(heap, MOST, 300);
	CHECK(losses(heap, MOST) == 0);
	CHECK(backed_bytes(heap) >= MOST * (size_t)BYTES);

	/* What is not used any more goes all the same. */
	breathe_for(heap, 10, 900);
	CHECK(backed_bytes(heap) <= 10 * MIB);
	CHECK_FINE(sy_heap_check(heap));
	sy_heap_close(heap);
	return check_result();
}
