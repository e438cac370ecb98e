/*
 * Bonwick's policy by the examples of his paper (1994), sections 2 and 3.1: the interface to an object cache, caches and
 * their statistics, general allocation. Every step ends with the checks of the heap and of the page allocator.
 */
#include "bonwick_support.h"

/* ---- 2. Object caching ---------------------------------------------------------------------------------------- */

/* The paper's example, section 2.1. */
struct foo {
	uint32_t lock, condition;
	struct foo *barlist;
	int refcount;
};

static unsigned constructed, destroyed;

static void foo_constructor(void *object, size_t size)
{
	struct foo *foo = object;

	CHECK_EQUAL(size, sizeof(struct foo));
	*foo = (struct foo){ .lock = 0x10c4, .condition = 0xc04d };
	constructed++;
}

static void foo_destructor(void *object, size_t size)
{
	const struct foo *foo = object;

	CHECK_EQUAL(size, sizeof(struct foo));
	CHECK(foo->lock == 0x10c4 && foo->condition == 0xc04d && !foo->barlist && !foo->refcount);
	destroyed++;
}

static struct sy_cache *foo_cache(struct world *world)
{
	struct sy_cache_config config = { .name = "foo_cache", .size = sizeof(struct foo),
	                                  .constructor = foo_constructor, .destructor = foo_destructor };

	constructed = 0;
	destroyed = 0;
	return sy_cache_create(world->heap, &config);
}

/* Section 2.4: the routines are called to populate and to drain the cache only. */
static void test_objects_leave_and_return_constructed(void)
{
	struct world world = make(1, 1, NULL, 0);
	struct sy_cache *cache = foo_cache(&world);
	unsigned objects = sy__bonwick_cache(cache)->objects;

	CHECK_EQUAL(constructed, 0);
	for (unsigned i = 0; i < 1000; i++) {
		struct foo *foo = get(cache);

		CHECK(foo->lock == 0x10c4 && foo->condition == 0xc04d && !foo->barlist && !foo->refcount);
		foo->refcount = 1;
		foo->refcount = 0;
		sy_cache_free(cache, 0, foo);
	}
	CHECK_EQUAL(constructed, objects);
	CHECK_EQUAL(destroyed, 0);
	check(&world);
	CHECK_EQUAL(sy_cache_shrink(cache), 1);
	CHECK_EQUAL(destroyed, objects);
	check(&world);
	CHECK(sy_cache_destroy(cache, NULL));
	end(&world);
}

/* Section 2.3: all objects must have been returned. */
static void test_destroying_with_objects_alive_is_refused(void)
{
	struct world world = make(1, 1, NULL, 0);
	struct sy_cache *cache = foo_cache(&world);
	void *objects[3];
	uint64_t alive = 0;

	get_many(cache, objects, 3);
	CHECK(!sy_cache_destroy(cache, &alive));
	CHECK_EQUAL(alive, 3);
	CHECK_TEXT(cache->name, "foo_cache");
	check(&world);
	free_all(cache, 0, objects, 3);
	CHECK(sy_cache_destroy(cache, &alive));
	CHECK_EQUAL(destroyed, constructed);
	end(&world);
}

/* Section 2.3: align is rounded up to the minimum, so that zero will do. */
static void test_alignment(void)
{
	static const size_t aligns[] = { 0, 1, 8, 64, 512, 4096 };
	struct world world = make(1, 1, NULL, 0);

	for (size_t i = 0; i < sizeof(aligns) / sizeof(aligns[0]); i++) {
		struct sy_cache *cache = cache_of(&world, 20, aligns[i], 0);
		size_t align = aligns[i] > sizeof(void *) ? aligns[i] : sizeof(void *);
		void *objects[100];

		CHECK_EQUAL(cache->align, align);
		get_many(cache, objects, 100);
		for (unsigned k = 0; k < 100; k++)
			CHECK_EQUAL((uintptr_t)objects[k] % align, 0);
		check(&world);
	}
	end(&world);
}

/* A request that sleeps gets the memory that other caches can spare; one that does not sleep fails. */
static void test_sleep_and_nosleep(void)
{
	struct world world = make(1, 1, NULL, 0);
	struct sy_cache *idle = cache_of(&world, 4096, 0, 0), *greedy = cache_of(&world, 4096, 0, 0);
	void *objects[MANY];

	get_many(idle, objects, MANY);
	while (sy_cache_alloc(greedy, 0, SY_KM_NOSLEEP, SY_ANY_NODE))
		;
	free_all(idle, 0, objects, MANY);
	CHECK(sy_cache_alloc(greedy, 0, SY_KM_NOSLEEP, SY_ANY_NODE) == NULL);
	check(&world);
	CHECK(sy_cache_alloc(greedy, 0, SY_KM_SLEEP, SY_ANY_NODE) != NULL);
	CHECK(world.heap->counters.reclaimed_pages >= MANY);
	check(&world);
	end(&world);
}

static bool all_zero(const char *memory, size_t bytes)
{
	return memory && memory[0] == 0 && memcmp(memory, memory + 1, bytes - 1) == 0;
}

/* From the freelist, from a new slab, of one node only; small and large. */
static void test_zeroed_when_asked(void)
{
	static const size_t sizes[] = { 400, 2000 };
	struct world world = make(1, 2, NULL, 0);

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct sy_cache *cache = cache_of(&world, sizes[i], 0, 0);
		unsigned objects = sy__bonwick_cache(cache)->objects;

		CHECK(all_zero(sy_cache_alloc(cache, 0, SY_ZERO, SY_ANY_NODE), sizes[i]));
		for (unsigned k = 1; k < 3 * objects; k++) {
			void *object = get(cache);

			memset(object, 0xa5, sizes[i]);
			sy_cache_free(cache, 0, object);
			CHECK(all_zero(sy_cache_alloc(cache, 0, SY_ZERO | (k % 2 ? SY_THISNODE : 0), 0), sizes[i]));
		}
	}
	end(&world);
}

/* ---- 3.1 Caches ----------------------------------------------------------------------------------------------- */

/* Back-end activity is triggered by memory pressure alone: no limits, no watermarks. */
static void test_nothing_goes_back_of_itself(void)
{
	struct world world = make(1, 1, NULL, 0);
	struct sy_cache *cache = cache_of(&world, 400, 0, 0);
	void *objects[MANY];

	get_many(cache, objects, MANY);
	free_all(cache, 0, objects, MANY);
	now += 1000 * SECOND;
	sy_heap_tick(world.heap);
	CHECK_EQUAL(counts_of(cache).slabs, (MANY + 9) / 10);
	CHECK_EQUAL(counts_of(cache).empty_slabs, (MANY + 9) / 10);
	check(&world);
	CHECK_EQUAL(sy_heap_shrink(world.heap), (MANY + 9) / 10);
	CHECK_EQUAL(counts_of(cache).slabs, 0);
	end(&world);
}

static void test_statistics_per_cache(void)
{
	struct world world = make(1, 1, NULL, 0);
	struct sy_cache *cache = cache_of(&world, 400, 0, 0), *other = cache_of(&world, 400, 0, 0);
	void *objects[25];

	CHECK(cache != other);
	get_many(cache, objects, 25);
	free_all(cache, 0, objects, 2);
	CHECK_EQUAL(counts_of(cache).objects_in_use, 23);
	CHECK_EQUAL(counts_of(cache).objects, 30);
	CHECK_EQUAL(counts_of(cache).slabs, 3);
	CHECK_EQUAL(counts_of(cache).pages, 3);
	CHECK_EQUAL(counts_of(cache).full_slabs, 1);
	CHECK_EQUAL(counts_of(cache).partial_slabs, 2);
	CHECK_EQUAL(counts_of(other).slabs, 0);
	CHECK_EQUAL(counts_of(cache).allocations, 25);
	CHECK_EQUAL(counts_of(other).allocations, 0);
	CHECK_EQUAL(world.heap->counters.slow_allocs, 3);
	CHECK_EQUAL(world.heap->counters.slow_frees, 0);
	end(&world);
}

/* Caches come and go without a trace, a large hash table and all. */
static void test_a_destroyed_cache_leaves_nothing(void)
{
	struct world world = make(8, 1, "percpu", 4);
	uint64_t metadata = 0;

	for (unsigned round = 0; round < 200; round++) {
		struct sy_cache *cache = cache_of(&world, 1024, 0, 0);
		void *objects[200];

		get_many(cache, objects, 200);
		CHECK_EQUAL(sy__bonwick_cache(cache)->hash.size, 256);
		free_all(cache, 0, objects, 200);
		CHECK(sy_cache_destroy(cache, NULL));
		if (round == 1)
			metadata = world.heap->counters.metadata_pages;
	}
	CHECK_EQUAL(world.heap->counters.metadata_pages, metadata);
	CHECK_EQUAL(world.heap->counters.slab_pages, 0);
	end(&world);
}

static void test_pages_are_of_the_kind_that_the_cache_says(void)
{
	struct world world = make(1, 1, NULL, 0);
	void *plain = get(cache_of(&world, 400, 0, 0));
	void *reclaimable = get(cache_of(&world, 400, 0, SY_CACHE_RECLAIMABLE));

	CHECK_EQUAL(sy__head_of(world.heap, plain)->migrate, SY_UNMOVABLE);
	CHECK_EQUAL(sy__head_of(world.heap, reclaimable)->migrate, SY_RECLAIMABLE_TYPE);
	end(&world);
}

/* About 30 caches from 8 bytes to 9K, each larger than the one before by not much. */
static void test_general_caches(void)
{
	struct world world = make(1, 1, NULL, 0);
	struct sy__bonwick_heap *heap = sy__bonwick_heap(world.heap);
	size_t last = 0, up_to_2k = 0;

	for (unsigned class = 0; class < SY__BONWICK_CLASSES; class++) {
		size_t size = heap->general[class]->object_size;

		CHECK(size > last);
		CHECK(size <= 64 ? size == last + 8 : size * 100 <= last * 126);
		up_to_2k += size <= 2048;
		last = size;
	}
	CHECK_EQUAL(last, 9 * 1024);
	CHECK_EQUAL(up_to_2k, 28);
	CHECK_TEXT(heap->general[0]->name, "kmem_alloc_8");
	CHECK_TEXT(heap->general[SY__BONWICK_CLASSES - 1]->name, "kmem_alloc_9216");
	end(&world);
}

static void test_general_allocation_takes_the_nearest_size(void)
{
	struct world world = make(1, 1, NULL, 0);
	struct sy__bonwick_heap *heap = sy__bonwick_heap(world.heap);

	for (size_t size = 0, class = 0; size <= 9216; size++) {
		void *object = sy_kmalloc(world.heap, 0, size, 0, SY_ANY_NODE);

		class += size > heap->general[class]->object_size;
		CHECK_EQUAL(sy_usable_size(world.heap, object), heap->general[class]->object_size);
		sy_kfree(world.heap, 0, object);
	}
	check(&world);
	end(&world);
}

static void test_beyond_9k_come_pages(void)
{
	struct world world = make(1, 1, NULL, 0);
	char *object = sy_kmalloc(world.heap, 0, 9217, SY_ZERO, SY_ANY_NODE);

	CHECK_EQUAL(world.heap->counters.large_pages, 4);
	CHECK_EQUAL(sy_usable_size(world.heap, object), 16384);
	CHECK_BYTES(object, 0, 9217);
	check(&world);
	CHECK(sy_kmalloc(world.heap, 0, ((size_t)4 << 20) + 1, 0, SY_ANY_NODE) == NULL);
	sy_kfree(world.heap, 0, object);
	sy_kfree(world.heap, 0, NULL);
	CHECK_EQUAL(world.heap->counters.large_pages, 0);
	end(&world);
}

int main(void)
{
	test_objects_leave_and_return_constructed();
	test_destroying_with_objects_alive_is_refused();
	test_alignment();
	test_sleep_and_nosleep();
	test_zeroed_when_asked();
	test_nothing_goes_back_of_itself();
	test_statistics_per_cache();
	test_a_destroyed_cache_leaves_nothing();
	test_pages_are_of_the_kind_that_the_cache_says();
	test_general_caches();
	test_general_allocation_takes_the_nearest_size();
	test_beyond_9k_come_pages();
	return check_result();
}
