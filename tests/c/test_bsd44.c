/*
 * bsd44 by worked examples. Requests of up to two pages take the next power of two from 16 bytes on; a page of 4096
 * bytes is cut from its end; pages stay in their bucket.
 */
#include "general_support.h"

static void test_rounding_to_powers_of_two(void)
{
	static const size_t sizes[][2] = {
		{ 0, 16 },      { 1, 16 },      { 16, 16 },     { 17, 32 },     { 32, 32 },     { 33, 64 },
		{ 53, 64 }, /* the paper's own example */
		{ 64, 64 },     { 65, 128 },    { 300, 512 },   { 1024, 1024 }, { 1025, 2048 }, { 2049, 4096 },
		{ 4096, 4096 }, { 4097, 8192 }, { 8192, 8192 }, { 8193, 16384 }, { 16385, 32768 },
	};
	struct world world = make_world("bsd44", -1, -1, 1);

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		CHECK_EQUAL(usable(&world, sizes[i][0]), sizes[i][1]);
	end(&world);
}

static void test_a_page_is_cut_from_its_end_and_the_last_freed_is_first(void)
{
	struct world world = make_world("bsd44", -1, -1, 1);
	void *a = kget(&world, 53), *b = kget(&world, 64), *c = kget(&world, 33);

	CHECK_EQUAL(offset(a), 4096 - 64);
	CHECK_EQUAL(offset(b), 4096 - 128);
	CHECK_EQUAL(offset(c), 4096 - 192);
	CHECK(same_page(a, c));
	kput(&world, a);
	kput(&world, c);
	CHECK(kget(&world, 60) == c);
	CHECK(kget(&world, 60) == a);
	CHECK_EQUAL(offset(kget(&world, 60)), 4096 - 256);
	end(&world);
}

/* 100 requests of 65 bytes: 63 of each 128 are wasted inside; 32 blocks to a page make 4 pages, with 28 blocks free. */
static void test_waste_by_rounding(void)
{
	struct world world = make_world("bsd44", -1, -1, 1);
	size_t given = 0;

	for (unsigned i = 0; i < 100; i++)
		given += sy_usable_size(world.heap, kget(&world, 65));
	CHECK_EQUAL(given - 100 * 65, 100 * 63);
	CHECK_EQUAL(world.heap->counters.slab_pages, 4);
	CHECK_EQUAL(world.heap->policy->unused_bytes(world.heap), 28 * 128);
	CHECK_EQUAL(world.heap->counters.slow_allocs, 4);
	end(&world);
}

static void test_each_bucket_has_pages_of_its_own(void)
{
	struct world world = make_world("bsd44", -1, -1, 1);
	struct sy_heap_counters *counters = &world.heap->counters;
	char *two_pages;

	kget(&world, 16);
	kget(&world, 32);
	CHECK_EQUAL(counters->slab_pages, 2);
	kget(&world, 10);
	CHECK_EQUAL(counters->slab_pages, 2);
	two_pages = kget(&world, 5000);
	CHECK_EQUAL(counters->slab_pages, 4);
	memset(two_pages, 1, 8192);
	kput(&world, two_pages);
	CHECK(kget(&world, 8192) == two_pages);
	end(&world);
}

/* Free finds the bucket by the page: sizes are freed in another order than they were asked for. */
static void test_free_needs_no_size(void)
{
	struct world world = make_world("bsd44", -1, -1, 1);
	void *objects[20];

	for (unsigned i = 0; i < 20; i++)
		objects[i] = kget(&world, (size_t)1 << i % 10 << 4);
	for (unsigned i = 0; i < 20; i++)
		kput(&world, objects[i * 7 % 20]);
	CHECK_EQUAL(world.heap->policy->unused_bytes(world.heap), world.heap->counters.slab_pages * SY_PAGE_SIZE);
	end(&world);
}

static void test_pages_stay_in_their_bucket(void)
{
	static void *objects[64 * 64];
	struct world world = make_world("bsd44", -1, -1, 1);
	struct sy_heap_counters *counters = &world.heap->counters;
	struct sy_cache *cache = cache_of(&world, 64, 0, 0);

	for (unsigned i = 0; i < 64 * 64; i++)
		objects[i] = take(cache, 0);
	CHECK_EQUAL(counters->slab_pages, 64);
	for (unsigned i = 0; i < 64 * 64; i++)
		sy_cache_free(cache, 0, objects[i]);
	CHECK_EQUAL(sy_heap_shrink(world.heap), 0);
	CHECK_EQUAL(counters->slab_pages, 64);
	CHECK_EQUAL(counters->slow_frees, 0);
	/* The next bucket can't use the page; any request of this bucket gets all of it. */
	kget(&world, 128);
	CHECK_EQUAL(counters->slab_pages, 65);
	for (unsigned i = 0; i < 64 * 64; i++)
		kget(&world, 64);
	CHECK_EQUAL(counters->slab_pages, 65);
	kget(&world, 64);
	CHECK_EQUAL(counters->slab_pages, 66);
	end(&world);
}

static void test_memory_pressure_does_not_touch_it(void)
{
	static void *objects[4096];
	struct world world = make_world("bsd44", -1, -1, 1);
	size_t count = 0;

	while ((objects[count] = sy_kmalloc(world.heap, 0, 4096, 0, SY_ANY_NODE)))
		count++;
	for (size_t i = 0; i < count; i++)
		sy_kfree(world.heap, 0, objects[i]);
	CHECK_EQUAL(world.heap->counters.slab_pages, count);
	CHECK(!sy_kmalloc(world.heap, 0, 16, 0, SY_ANY_NODE)); /* though all is free */
	CHECK(kget(&world, 3000) == objects[count - 1]);
	end(&world);
}

static void test_more_than_two_pages_come_and_go(void)
{
	struct world world = make_world("bsd44", -1, -1, 1);
	struct sy_heap_counters *counters = &world.heap->counters;
	void *object = kget(&world, 8193);

	CHECK_EQUAL(counters->slab_pages, 0);
	CHECK_EQUAL(counters->large_pages, 4);
	CHECK_EQUAL(counters->large_live_bytes, 8193);
	kput(&world, object);
	CHECK_EQUAL(counters->large_pages, 0);
	CHECK_EQUAL(counters->slow_allocs, 1);
	CHECK_EQUAL(counters->slow_frees, 1);
	end(&world);
}

/* Bonwick 1994, section 4.1: every inode of about 300 bytes has a buffer of 512, aligned to 512. */
static void test_bonwicks_inodes(void)
{
	struct world world = make_world("bsd44", -1, -1, 1);
	struct sy_cache *inodes = cache_of(&world, 300, 0, 0);

	CHECK_EQUAL(inodes->size, 512);
	for (unsigned i = 0; i < 16; i++)
		CHECK_EQUAL(offset(take(inodes, 0)) % 512, 0);
	CHECK_EQUAL(world.heap->counters.slab_pages, 2);
	CHECK_EQUAL(cache_of(&world, 24, 1024, 0)->size, 1024); /* alignment costs size */
	CHECK_EQUAL(cache_of(&world, 8193, 0, 0)->size, 8193);
	end(&world);
}

/* Section 4.1 goes on: with 48 hot bytes in each, at the same places modulo 512, 9% of the cache lines (48/512) serve all
 * inodes; test_bonwick.c has the same inodes in slabs. */
static void test_hot_bytes_share_few_cache_lines(void)
{
	struct world world = make_world("bsd44", -1, -1, 1);
	struct sy_cache *inodes = cache_of(&world, 300, 0, 0);
	bool reached[512 / 16] = { false };
	unsigned lines = 0;

	for (unsigned i = 0; i < 400; i++) {
		size_t start = offset(take(inodes, 0));

		for (size_t at = start; at < start + 48; at += 8)
			reached[at % 512 / 16] = true;
	}
	for (unsigned i = 0; i < 512 / 16; i++)
		lines += reached[i];
	CHECK_EQUAL(lines, 48 / 16);
	CHECK_EQUAL(lines * 100 / (512 / 16), 9);
	end(&world);
}

/* A free block's first word leads to the next free block. */
static void test_the_check_finds_damage(void)
{
	struct world world = make_world("bsd44", -1, -1, 1);
	char *object = kget(&world, 64), *other = kget(&world, 128), *free_block = object - 64;
	void **next = (void **)(void *)free_block, *was = *next;
	unsigned char *bucket = sy__page_of(world.heap, object)->state + sizeof(uint32_t *);

	CHECK_FINDS(&world, *next = NULL, *next = was, "bsd44: a bucket has fewer free blocks than it counts");
	CHECK_FINDS(&world, *next = next, *next = was,
	            "bsd44: a bucket has more free blocks than it counts, or its list runs in a circle");
	CHECK_FINDS(&world, *next = other - 128, *next = was, "bsd44: a free block lies in a page of another bucket");
	CHECK_FINDS(&world, *next = page_of_environment(&world), *next = was,
	            "bsd44: a free block lies in no page of its heap and node");
	CHECK_FINDS(&world, *next = free_block - 8, *next = was,
	            "bsd44: a free block does not start where its page was cut");
	CHECK_FINDS(&world, *bucket = 200, *bucket = 2, "bsd44: a page belongs to no bucket");
	CHECK_FINDS(&world, *bucket = 9, *bucket = 2, "bsd44: a bucket has pages of another order than its own");
	end(&world);
}

int main(void)
{
	test_rounding_to_powers_of_two();
	test_a_page_is_cut_from_its_end_and_the_last_freed_is_first();
	test_waste_by_rounding();
	test_each_bucket_has_pages_of_its_own();
	test_free_needs_no_size();
	test_pages_stay_in_their_bucket();
	test_memory_pressure_does_not_touch_it();
	test_more_than_two_pages_come_and_go();
	test_bonwicks_inodes();
	test_hot_bytes_share_few_cache_lines();
	test_the_check_finds_damage();
	general_tests("bsd44");
	return check_result();
}
