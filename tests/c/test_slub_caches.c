/*
 * SLUB by worked examples: caches with constructors, caches whose slabs wait for a grace period, caches that share
 * their slabs, and kmalloc. Every step ends with the checks of the heap and of the page allocator.
 */
#include "slub_support.h"

/* ---- Constructors, RCU, merging ------------------------------------------------------------------------------- */

static void test_objects_stay_constructed(void)
{
	struct world world = make(1, 1, "min_partial", 0);
	struct sy_cache *cache = constructed_cache(&world, 1000, 0);
	void *objects[MANY];

	CHECK_EQUAL(cache->size, 1000 + WORD); /* the free pointer is behind the object */
	fill(cache, objects, 2, 8);
	CHECK_EQUAL(constructed, 16);
	for (unsigned round = 0; round < 3; round++) {
		free_all(cache, 0, objects + 3, 4);
		for (unsigned i = 3; i < 7; i++) {
			objects[i] = sy_cache_alloc(cache, 0, 0, SY_ANY_NODE);
			check_constructed(objects[i], 1000);
		}
		check(&world);
	}
	free_all(cache, 0, objects, 16);
	check(&world);
	CHECK(sy_cache_destroy(cache, NULL));
	CHECK_EQUAL(constructed, destructed);
	end(&world);
}

static void test_rcu_typesafe_slabs_wait_for_the_grace_period(void)
{
	struct world world = make(1, 1, "min_partial", 0);
	struct sy_cache *cache = cache_of(&world, 1024 - WORD, 0, SY_CACHE_TYPESAFE_BY_RCU);
	void *objects[MANY];

	now = 5000;
	CHECK_EQUAL(cache->size, 1024);
	fill(cache, objects, 3, 8);
	free_all(cache, 0, objects, 8);
	check(&world);
	CHECK_EQUAL(counts_of(cache).slabs, 2);
	CHECK_EQUAL(world.heap->counters.slab_pages, 6); /* still there */
	CHECK_EQUAL(world.heap->counters.deferred, 1);
	now = 5999;
	sy_heap_tick(world.heap);
	CHECK_EQUAL(world.heap->counters.slab_pages, 6);
	free_all(cache, 0, objects + 8, 8);
	CHECK_EQUAL(world.heap->counters.deferred, 2);
	check(&world);
	now = 6000;
	sy_heap_tick(world.heap);
	CHECK_EQUAL(world.heap->counters.slab_pages, 4);
	CHECK_EQUAL(world.heap->counters.deferred, 1);
	check(&world);
	/* Whoever destroys the cache has waited for the grace period. */
	free_all(cache, 0, objects + 16, 8);
	CHECK(sy_cache_destroy(cache, NULL));
	CHECK_EQUAL(world.heap->counters.deferred, 0);
	CHECK_EQUAL(world.heap->counters.slab_pages, 0);
	end(&world);
}

static void test_alike_caches_are_one(void)
{
	struct world world = make(1, 1, NULL, 0);
	struct sy_cache *a = cache_of(&world, 62, 0, 0), *b = cache_of(&world, 63, 0, 0), *c;
	uint64_t alive = 0;

	CHECK(a == b);
	CHECK_EQUAL(a->users, 2);
	CHECK_EQUAL(a->object_size, 63);
	CHECK_EQUAL(a->size, 64);
	CHECK(cache_of(&world, 64 - WORD, 0, 0) != a);             /* a word to spare */
	CHECK(cache_of(&world, 50, 64, 0) == a);                   /* 64 bytes when aligned */
	CHECK(cache_of(&world, 40, 64, 0) == a);
	CHECK(cache_of(&world, 64, 0, SY_CACHE_NO_MERGE) != a);
	CHECK(cache_of(&world, 64, 0, SY_CACHE_TYPESAFE_BY_RCU) != a);
	c = cache_of(&world, 64, 0, SY_CACHE_RECLAIMABLE);
	CHECK(c != a);
	CHECK(cache_of(&world, 64, 0, SY_CACHE_RECLAIMABLE) == c);
	CHECK(cache_of(&world, 64, 0, SY_CACHE_ACCOUNT) != c);
	CHECK(cache_of(&world, 1024, 0, 0) != cache_of(&world, 1024, 0, SY_CACHE_DMA));
	CHECK(sy_cache_alloc(a, 0, 0, SY_ANY_NODE) != NULL);
	CHECK_EQUAL(a->users, 4);
	for (unsigned users = 4; users > 1; users--)
		CHECK(sy_cache_destroy(a, &alive));
	CHECK(!sy_cache_destroy(a, &alive));
	CHECK_EQUAL(alive, 1);
	check(&world);
	end(&world);
}

static void test_pages_are_of_the_kind_that_the_cache_says(void)
{
	struct sy_pages_config config = {
		.zone_count = 2,
		.zones = { { .name = "DMA", .start_page = 0, .pages = 4096 },
		           { .name = "Normal", .start_page = 4096, .pages = 8192 } },
		.slots = 1,
		.pageblock_order = 9,
	};
	struct sy_heap_config heap_config;
	struct world world = { .pages = sy_pages_create(&config) };
	struct sy_cache *caches[3];
	struct sy_page *slabs[3];

	sy_heap_defaults(sy_policy_find("slub"), &heap_config);
	world.heap = sy_heap_create(world.pages, &heap_config);
	caches[0] = cache_of(&world, 64, 0, 0);
	caches[1] = cache_of(&world, 64, 0, SY_CACHE_RECLAIMABLE);
	caches[2] = cache_of(&world, 64, 0, SY_CACHE_DMA);
	for (unsigned i = 0; i < 3; i++)
		slabs[i] = slab_of(caches[i], sy_cache_alloc(caches[i], 0, 0, SY_ANY_NODE));
	CHECK_EQUAL(slabs[0]->migrate, SY_UNMOVABLE);
	CHECK_EQUAL(slabs[1]->migrate, SY_RECLAIMABLE_TYPE);
	CHECK_EQUAL(slabs[0]->zone, 1);
	CHECK_EQUAL(slabs[1]->zone, 1);
	CHECK_EQUAL(slabs[2]->zone, 0);
	end(&world);
}

static void test_merging_can_be_off(void)
{
	struct world world = make(1, 1, "merge", 0);

	CHECK(cache_of(&world, 64, 0, 0) != cache_of(&world, 64, 0, 0));
	end(&world);
}

/* ---- kmalloc -------------------------------------------------------------------------------------------------- */

static void test_kmalloc_classes(void)
{
	static const size_t sizes[] = { 8, 16, 32, 64, 96, 128, 192, 256, 512, 1024, 2048, 4096, 8192 };
	struct world world = make(1, 1, NULL, 0);
	size_t class = 0;

	for (size_t size = 0; size <= 8192; size++) {
		void *object = sy_kmalloc(world.heap, 0, size, 0, SY_ANY_NODE);

		if (size > sizes[class])
			class++;
		CHECK_EQUAL(sy_usable_size(world.heap, object), sizes[class]);
		if (!(sizes[class] & (sizes[class] - 1)))
			CHECK_EQUAL((size_t)((char *)object - ((struct sy_pages_base *)(void *)world.pages)->memory) % sizes[class], 0);
		sy_kfree(world.heap, 0, object);
	}
	CHECK_EQUAL(world.heap->counters.large_pages, 0);
	check(&world);
	end(&world);
}

static const char *name_of(struct world *world, unsigned flags, size_t size)
{
	void *object = sy_kmalloc(world->heap, 0, size, flags, SY_ANY_NODE);
	const char *name = sy__node_slab(sy__head_of(world->heap, object))->cache->name;

	sy_kfree(world->heap, 0, object);
	return name;
}

static void test_kmalloc_types(void)
{
	struct world world = make(1, 1, NULL, 0);

	CHECK_TEXT(name_of(&world, 0, 100), "kmalloc-128");
	CHECK_TEXT(name_of(&world, SY_RECLAIMABLE, 1000), "kmalloc-rcl-1k");
	CHECK_TEXT(name_of(&world, SY_ACCOUNT, 193), "kmalloc-cg-256");
	CHECK_TEXT(name_of(&world, SY_ACCOUNT | SY_RECLAIMABLE, 8192), "kmalloc-rcl-8k");
	CHECK_TEXT(name_of(&world, SY_DMA | SY_ACCOUNT, 8), "dma-kmalloc-8");
	end(&world);
}

static void test_large_allocations_are_pages(void)
{
	struct world world = make(1, 1, NULL, 0);
	void *object = sy_kmalloc(world.heap, 0, 8193, SY_ZERO, SY_ANY_NODE), *largest;

	CHECK_EQUAL(world.heap->counters.large_pages, 4);
	CHECK_EQUAL(world.heap->counters.large_live_bytes, 8193);
	CHECK_EQUAL(sy_usable_size(world.heap, object), 16384);
	for (unsigned i = 0; i < 8193; i++)
		CHECK_EQUAL(((char *)object)[i], 0);
	check(&world);
	largest = sy_kmalloc(world.heap, 0, (size_t)4 << 20, 0, SY_ANY_NODE);
	CHECK(largest != NULL);
	CHECK(sy_kmalloc(world.heap, 0, ((size_t)4 << 20) + 1, 0, SY_ANY_NODE) == NULL);
	check(&world);
	sy_kfree(world.heap, 0, object);
	sy_kfree(world.heap, 0, largest);
	sy_kfree(world.heap, 0, NULL);
	CHECK_EQUAL(world.heap->counters.large_pages, 0);
	CHECK_EQUAL(world.heap->counters.large_live_bytes, 0);
	CHECK_EQUAL(world.heap->counters.held_peak, 4 + 1024);
	end(&world);
}

int main(void)
{
	test_objects_stay_constructed();
	test_rcu_typesafe_slabs_wait_for_the_grace_period();
	test_alike_caches_are_one();
	test_pages_are_of_the_kind_that_the_cache_says();
	test_merging_can_be_off();
	test_kmalloc_classes();
	test_kmalloc_types();
	test_large_allocations_are_pages();
	return check_result();
}
