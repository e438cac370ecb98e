/*
 * Bonwick's policy by the examples of his paper (1994), sections 3.2 to 4, in its order. Pages have 4096 bytes, as there.
 * Every step ends with the checks of the heap and of the page allocator.
 */
#include "bonwick_support.h"

/* ---- 3.2 Slabs ------------------------------------------------------------------------------------------------ */

static struct sy_geometry geometry_of(size_t size)
{
	const struct sy_policy *bonwick = sy_policy_find("bonwick");
	int64_t tunables[SY_MAX_TUNABLES] = { 15, 1, 0 };
	struct sy_geometry geometry = { 0 };

	CHECK(bonwick->geometry(tunables, 1, size, &geometry));
	return geometry;
}

/* 400-byte objects: 10 buffers with 96 bytes left over, 2.4% of what the buffers take. */
static void test_the_400_byte_cache(void)
{
	struct world world = make(1, 1, NULL, 0);
	struct sy_cache *cache = cache_of(&world, 400, 0, 0);
	struct sy_geometry geometry = geometry_of(400);
	void *objects[11];

	CHECK_EQUAL(geometry.objects, 10);
	CHECK_EQUAL(geometry.order, 0);
	CHECK_EQUAL(geometry.wasted, 96);
	CHECK_EQUAL(geometry.wasted * 1000 / (geometry.objects * 400), 24);
	get_many(cache, objects, 10);
	CHECK_EQUAL(counts_of(cache).slabs, 1);
	objects[10] = get(cache);
	CHECK_EQUAL(counts_of(cache).slabs, 2);
	check(&world);
	end(&world);
}

/* At most 1/8 unused, and no slab larger than that takes; slab data comes on top. */
static void test_one_eighth_is_unused_at_most(void)
{
	for (size_t size = 8; size < 512; size += 8) {
		struct sy_geometry geometry = geometry_of(size);

		CHECK_EQUAL(geometry.order, 0);
		CHECK((geometry.wasted - 32) * 8 <= 4096);
	}
	for (size_t size = 512; size <= (size_t)512 << 10; size += 8) {
		struct sy_geometry geometry = geometry_of(size);
		size_t bytes = (size_t)4096 << geometry.order;

		CHECK_EQUAL(geometry.objects, bytes / size);
		CHECK_EQUAL(geometry.wasted, bytes % size);
		CHECK(geometry.wasted * 8 <= bytes);
		CHECK((uint64_t)geometry.wasted * geometry.objects <= bytes); /* 1/n for n buffers, whatever the size */
		CHECK(geometry.order == 0 || bytes / 2 < size || bytes / 2 % size * 8 > bytes / 2);
	}
}

/* A block of the largest order may hold so few that no order keeps the bound. Then the order with the least share unused
 * counts. Of 4 MiB, 3 * 1.2 MiB leave 10%; a size a little over 2 MiB leaves half. */
static void test_the_largest_slabs(void)
{
	const struct sy_policy *bonwick = sy_policy_find("bonwick");
	int64_t tunables[SY_MAX_TUNABLES] = { 15, 1, 0 };
	struct sy_geometry geometry;

	CHECK_EQUAL(geometry_of(1258288).order, 10);
	CHECK_EQUAL(geometry_of(1258288).objects, 3);
	CHECK_EQUAL(geometry_of((size_t)1 << 20).order, 8);
	CHECK_EQUAL(geometry_of(723152).order, 10); /* 31%, 31% and 14% of 1, 2 and 4 MiB */
	CHECK_EQUAL(geometry_of(((size_t)1 << 20) + 8).objects, 3);
	CHECK_EQUAL(geometry_of(((size_t)1 << 21) + 8).objects, 1);
	CHECK_EQUAL(geometry_of((size_t)1 << 22).objects, 1);
	CHECK(!bonwick->geometry(tunables, 1, ((size_t)1 << 22) + 1, &geometry));
	CHECK(!bonwick->geometry(tunables, 1, 0, &geometry));
}

/* Observation 3: requests of 32 and 40 bytes never make free buffers of 8. */
static void test_sizes_do_not_mix(void)
{
	struct world world = make(1, 1, NULL, 0);
	struct sy__bonwick_heap *heap = sy__bonwick_heap(world.heap);
	uint64_t random = 1;
	void *objects[64] = { NULL };

	for (unsigned step = 0; step < 5000; step++) {
		void **at = &objects[check_random(&random) % 64];

		sy_kfree(world.heap, 0, *at);
		*at = sy_kmalloc(world.heap, 0, check_random(&random) % 2 ? 32 : 40, 0, SY_ANY_NODE);
	}
	for (unsigned class = 0; class < SY__BONWICK_CLASSES; class++)
		CHECK_EQUAL(counts_of(heap->general[class]).slabs, class == 3 || class == 4);
	check(&world);
	end(&world);
}

/* ---- 3.2.2 Small objects -------------------------------------------------------------------------------------- */

static void test_slab_data_is_at_the_end_of_the_page(void)
{
	struct world world = make(1, 1, NULL, 0);
	struct sy_cache *cache = cache_of(&world, 400, 0, 0);
	char *object = get(cache), *page = object - offset_of(cache, object);
	struct sy__bonwick_slab *slab = sy__bonwick_linked(sy__bonwick_cache(cache)->slabs.next);

	CHECK((char *)slab == page + 4096 - 32);
	CHECK_EQUAL(slab->refs, 1);
	CHECK_EQUAL(counts_of(sy__bonwick_heap(world.heap)->large_slabs).slabs, 0);
	end(&world);
}

/* A free buffer is untouched but for its last word, which leads to the next free one. */
static void test_the_link_is_at_the_end_of_a_free_buffer(void)
{
	struct world world = make(1, 1, NULL, 0);
	struct sy_cache *cache = cache_of(&world, 400, 0, 0);
	char *first = get(cache), *second = get(cache);

	CHECK(second == first + 400);
	memset(first, 0x11, 400);
	memset(second, 0x22, 400);
	sy_cache_free(cache, 0, first);
	sy_cache_free(cache, 0, second);
	for (unsigned i = 0; i < 400 - sizeof(void *); i++) {
		CHECK_EQUAL(first[i], 0x11);
		CHECK_EQUAL(second[i], 0x22);
	}
	CHECK(*(void **)(void *)(second + 400 - sizeof(void *)) == first);
	CHECK(get(cache) == second);
	CHECK(get(cache) == first);
	check(&world);
	end(&world);
}

static void fill_up(void *object, size_t size)
{
	memset(object, 0x33, size);
}

/* Constructed objects get a word more for the link. */
static void test_a_word_more_for_constructed_objects(void)
{
	struct world world = make(1, 1, NULL, 0);
	struct sy_cache_config config = { .name = "constructed", .size = 400, .constructor = fill_up };
	struct sy_cache *cache = sy_cache_create(world.heap, &config);
	char *object = get(cache);

	CHECK_EQUAL(cache->size, 400 + sizeof(void *));
	CHECK_EQUAL(cache_of(&world, 400, 0, SY_CACHE_TYPESAFE_BY_RCU)->size, 400 + sizeof(void *));
	CHECK_EQUAL(cache_of(&world, 400, 0, 0)->size, 400);
	sy_cache_free(cache, 0, object);
	CHECK_BYTES(object, 0x33, 400);
	end(&world);
}

/* ---- 3.2.3 Large objects -------------------------------------------------------------------------------------- */

static void test_large_objects_begin_at_an_eighth_of_a_page(void)
{
	struct world world = make(1, 1, NULL, 0);

	CHECK(!sy__bonwick_cache(cache_of(&world, 504, 0, 0))->large);
	CHECK(sy__bonwick_cache(cache_of(&world, 509, 0, 0))->large); /* 512 with its alignment */
	CHECK(sy__bonwick_cache(cache_of(&world, 512, 0, 0))->large);
	CHECK(sy__bonwick_cache(cache_of(&world, 8, 512, 0))->large);
	CHECK_EQUAL(sy__bonwick_cache(cache_of(&world, 504, 0, 0))->objects, 8);
	CHECK_EQUAL(sy__bonwick_cache(cache_of(&world, 512, 0, 0))->objects, 8); /* 7 with slab data in the page */
	end(&world);
}

/* Two buffers of 2K fit a page; slab data and bufctls come from caches of their own. */
static void test_two_2k_buffers_fit_a_page(void)
{
	struct world world = make(1, 1, NULL, 0);
	struct sy__bonwick_heap *heap = sy__bonwick_heap(world.heap);
	struct sy_cache *cache = cache_of(&world, 2048, 0, 0);
	void *objects[4];

	get_many(cache, objects, 4);
	CHECK_EQUAL(counts_of(cache).slabs, 2);
	CHECK_EQUAL(counts_of(cache).pages, 2);
	CHECK_EQUAL(counts_of(heap->large_slabs).objects_in_use, 2);
	CHECK_EQUAL(counts_of(heap->bufctls).objects_in_use, 4);
	CHECK(!sy__bonwick_cache(heap->large_slabs)->large && !sy__bonwick_cache(heap->bufctls)->large);
	check(&world);
	free_all(cache, 0, objects, 4);
	check(&world);
	CHECK_EQUAL(sy_cache_shrink(cache), 4); /* with the pages of slab data and bufctls */
	CHECK_EQUAL(world.heap->counters.slab_pages, 0);
	end(&world);
}

/* A free buffer has no link at all. */
static void test_free_large_objects_are_untouched(void)
{
	struct world world = make(1, 1, NULL, 0);
	struct sy_cache_config config = { .name = "constructed", .size = 2048, .constructor = fill_up };
	struct sy_cache *cache = sy_cache_create(world.heap, &config);
	char *object = get(cache);

	CHECK_EQUAL(cache->size, 2048);
	sy_cache_free(cache, 0, object);
	CHECK_BYTES(object, 0x33, 2048);
	end(&world);
}

static void test_the_hash_table_scales_itself(void)
{
	struct world world = make(1, 1, NULL, 0);
	struct sy_cache *cache = cache_of(&world, 1024, 0, 0);
	const struct sy__bonwick_hash *hash = &sy__bonwick_cache(cache)->hash;
	void *objects[MANY];

	CHECK_EQUAL(hash->size, 16);
	get_many(cache, objects, 32);
	CHECK_EQUAL(hash->size, 16);
	get_many(cache, objects + 32, 1);
	CHECK_EQUAL(hash->size, 64); /* 36 buffers */
	get_many(cache, objects + 33, MANY - 33);
	CHECK(hash->size >= MANY / 2 && hash->size <= MANY);
	check(&world);
	free_all(cache, 0, objects + 40, MANY - 40);
	sy_cache_shrink(cache);
	CHECK(hash->size >= MANY / 2); /* 40 buffers are too many for the least table */
	check(&world);
	get_many(cache, objects + 40, 1);
	CHECK_EQUAL(hash->size, 64); /* growth made the table that fits */
	check(&world);
	free_all(cache, 0, objects, 41);
	sy_cache_shrink(cache);
	CHECK_EQUAL(hash->size, 16);
	check(&world);
	end(&world);
}

/* ---- 3.3 Freelist management ---------------------------------------------------------------------------------- */

/* Five slabs of ten, slab k the buffers from 10 * k on. */
static struct sy_cache *five_slabs(struct world *world, void **objects)
{
	struct sy_cache *cache = cache_of(world, 400, 0, 0);

	get_many(cache, objects, 50);
	CHECK_TEXT(list_of(cache), "EEEEE");
	return cache;
}

static void test_the_list_is_sorted(void)
{
	struct world world = make(1, 1, NULL, 0);
	void *objects[60];
	struct sy_cache *cache = five_slabs(&world, objects);

	sy_cache_free(cache, 0, objects[20]);
	CHECK_TEXT(list_of(cache), "EEEE>P");
	free_all(cache, 0, objects + 30, 9);
	CHECK_TEXT(list_of(cache), "EEE>PP");
	sy_cache_free(cache, 0, objects[39]);
	CHECK_TEXT(list_of(cache), "EEE>PC");
	free_all(cache, 0, objects, 10);
	CHECK_TEXT(list_of(cache), "EE>PCC");
	sy_cache_free(cache, 0, objects[10]);
	CHECK_TEXT(list_of(cache), "E>PPCC");
	check(&world);
	/* The slab that a buffer last returned to serves first, then the other partial one. */
	CHECK(get(cache) == objects[10]);
	CHECK_TEXT(list_of(cache), "EE>PCC");
	CHECK(get(cache) == objects[20]);
	CHECK_TEXT(list_of(cache), "EEE>CC");
	check(&world);
	end(&world);
}

static void test_one_buffer_to_a_slab(void)
{
	struct world world = make(1, 1, NULL, 0);
	struct sy_cache *cache = cache_of(&world, 4096, 0, 0);
	void *objects[3];

	get_many(cache, objects, 3);
	CHECK_TEXT(list_of(cache), "EEE");
	sy_cache_free(cache, 0, objects[1]);
	CHECK_TEXT(list_of(cache), "EE>C");
	sy_cache_free(cache, 0, objects[0]);
	CHECK_TEXT(list_of(cache), "E>CC");
	check(&world);
	CHECK(get(cache) == objects[1]); /* the slab that has been complete for longest */
	CHECK_TEXT(list_of(cache), "EE>C");
	check(&world);
	end(&world);
}

/* ---- 3.4 Reclaiming memory ------------------------------------------------------------------------------------ */

/* No complete slab is broken up unless all partial ones have been depleted. */
static void test_complete_slabs_are_used_last(void)
{
	struct world world = make(1, 1, NULL, 0);
	void *objects[60];
	struct sy_cache *cache = five_slabs(&world, objects);

	free_all(cache, 0, objects, 10); /* complete first ... */
	free_all(cache, 0, objects + 20, 3);
	free_all(cache, 0, objects + 40, 4);
	CHECK_TEXT(list_of(cache), "EE>PPC");
	for (unsigned i = 0; i < 7; i++) {
		void *object = get(cache);

		CHECK(object < objects[0] || object > objects[9]); /* ... and still whole */
		check(&world);
	}
	CHECK_TEXT(list_of(cache), "EEEE>C");
	get_many(cache, objects + 50, 1);
	CHECK_TEXT(list_of(cache), "EEEE>P");
	end(&world);
}

static void test_a_working_set_of_15_seconds_stays(void)
{
	struct world world = make(1, 1, NULL, 0);
	void *objects[60];
	struct sy_cache *cache = five_slabs(&world, objects);
	uint64_t (*reap)(struct sy_cache *) = cache->policy->reap;

	free_all(cache, 0, objects, 20);
	now += 10 * SECOND;
	free_all(cache, 0, objects + 20, 10);
	CHECK_TEXT(list_of(cache), "EE>CCC");
	CHECK_EQUAL(reap(cache), 0);
	now += 5 * SECOND - SECOND / 100;
	CHECK_EQUAL(reap(cache), 0);
	now += SECOND / 50;
	CHECK_EQUAL(reap(cache), 2); /* the two that were last in use 15 seconds ago */
	CHECK_TEXT(list_of(cache), "EE>C");
	check(&world);
	get_many(cache, objects + 20, 1);
	now += 100 * SECOND;
	CHECK_EQUAL(reap(cache), 0); /* in use */
	free_all(cache, 0, objects + 20, 1);
	CHECK_EQUAL(reap(cache), 0); /* a moment ago */
	now += 16 * SECOND;
	CHECK_EQUAL(reap(cache), 1);
	CHECK_TEXT(list_of(cache), "EE");
	check(&world);
	end(&world);
}

/* The two extremes: reclaim all complete slabs on demand, and (nearly) never. */
static void test_other_working_sets(void)
{
	static const struct {
		int64_t seconds;
		uint64_t pages;
	} examples[] = { { 0, 2 }, { 1, 2 }, { 60, 0 }, { 86400, 0 } };

	for (size_t i = 0; i < sizeof(examples) / sizeof(examples[0]); i++) {
		struct world world = make(1, 1, "working_set_seconds", examples[i].seconds);
		void *objects[60];
		struct sy_cache *cache = five_slabs(&world, objects);

		free_all(cache, 0, objects, 20);
		now += examples[i].seconds ? 2 * SECOND : 0;
		CHECK_EQUAL(cache->policy->reap(cache), examples[i].pages);
		check(&world);
		end(&world);
	}
}

/* When a zone falls below its low watermark, what has not been in use for 15 seconds goes; the rest stays. */
static void test_memory_pressure(void)
{
	struct world world = make(1, 1, NULL, 0);
	struct sy_cache *old = cache_of(&world, 4096, 0, 0), *recent = cache_of(&world, 4096, 0, 0);
	static void *objects[2 * MANY];
	struct sy_pages_counts counts;

	get_many(old, objects, MANY);
	get_many(recent, objects + MANY, MANY);
	free_all(old, 0, objects, MANY);
	now += 20 * SECOND;
	free_all(recent, 0, objects + MANY, MANY);
	do {
		CHECK(sy_pages_alloc(world.pages, 0, 0, 0, SY_ANY_NODE) != NULL);
		sy_pages_count(world.pages, &counts);
	} while (counts_of(old).slabs && counts.zones[0].used[SY_USE_ENVIRONMENT] < 16384);
	CHECK_EQUAL(counts_of(old).slabs, 0);
	CHECK_EQUAL(counts_of(recent).slabs, MANY);
	check(&world);
	while (sy_pages_alloc(world.pages, 0, 0, 0, SY_ANY_NODE))
		; /* a request that would fail gets the working set too */
	CHECK_EQUAL(counts_of(recent).slabs, 0);
	check(&world);
	end(&world);
}

/* ---- 4.3 Slab colouring --------------------------------------------------------------------------------------- */

/* Where the first buffers of new slabs lie. */
static void check_colours(struct sy_cache *cache, size_t step, size_t most)
{
	unsigned objects = sy__bonwick_cache(cache)->objects;
	size_t colour = 0;

	for (unsigned slab = 0; slab < 30; slab++) {
		for (unsigned i = 0; i < objects; i++)
			CHECK_EQUAL(offset_of(cache, get(cache)), colour + i * cache->size);
		colour = colour + step > most ? 0 : colour + step;
	}
}

static void test_colours(void)
{
	struct world world = make(1, 1, NULL, 0);

	CHECK_EQUAL(geometry_of(200).objects, 20);
	check_colours(cache_of(&world, 200, 8, 0), 8, 64); /* the paper's: 0, 8, 16, ..., 64, 0, 8, ... */
	check_colours(cache_of(&world, 128, 8, 0), 8, 96); /* 31 buffers: 128 goes near-pessimally into 4064 */
	check_colours(cache_of(&world, 200, 64, 0), 64, 192); /* 15 buffers of 256 */
	check_colours(cache_of(&world, 1000, 8, 0), 8, 96); /* large: 4 buffers */
	check_colours(cache_of(&world, 2048, 8, 0), 8, 0);
	check(&world);
	end(&world);
}

static void test_colouring_off(void)
{
	struct world world = make(1, 1, "colour", 0);

	check_colours(cache_of(&world, 200, 8, 0), 8, 0);
	check_colours(cache_of(&world, 1000, 8, 0), 8, 0);
	check(&world);
	end(&world);
}

/* Section 4.1: 300-byte inodes with 48 hot bytes. In buffers of 512 bytes at multiples of 512 these share 9% of the
 * cache lines; here they reach all of them. Section 4.2: of two buses that interleave 256 bytes, each serves about half
 * of the inodes, instead of the first one all. */
static void test_hot_bytes_reach_every_cache_line(void)
{
	struct world world = make(1, 1, NULL, 0);
	struct sy_cache *cache = cache_of(&world, 300, 0, 0);
	bool reached[512 / 16] = { false };
	unsigned lines = 0, first_bus = 0;

	for (unsigned i = 0; i < 400; i++) {
		size_t start = offset_of(cache, get(cache));

		first_bus += start % 512 < 256;
		for (size_t at = start; at < start + 48; at += 8)
			reached[at % 512 / 16] = true;
	}
	for (unsigned i = 0; i < 512 / 16; i++)
		lines += reached[i];
	CHECK_EQUAL(lines, 512 / 16);
	CHECK(first_bus > 180 && first_bus < 220);
	end(&world);
}

int main(void)
{
	test_the_400_byte_cache();
	test_one_eighth_is_unused_at_most();
	test_the_largest_slabs();
	test_sizes_do_not_mix();
	test_slab_data_is_at_the_end_of_the_page();
	test_the_link_is_at_the_end_of_a_free_buffer();
	test_a_word_more_for_constructed_objects();
	test_large_objects_begin_at_an_eighth_of_a_page();
	test_two_2k_buffers_fit_a_page();
	test_free_large_objects_are_untouched();
	test_the_hash_table_scales_itself();
	test_the_list_is_sorted();
	test_one_buffer_to_a_slab();
	test_complete_slabs_are_used_last();
	test_a_working_set_of_15_seconds_stays();
	test_other_working_sets();
	test_memory_pressure();
	test_colours();
	test_colouring_off();
	test_hot_bytes_reach_every_cache_line();
	return check_result();
}
