/*
 * What the tests of bsd44, svr4 and sunos4 share: a small world, and what all three do alike (core/policies/general.c),
 * as general_tests(). An allocation that fails where memory is ample ends the program.
 */
#ifndef GENERAL_SUPPORT_H
#define GENERAL_SUPPORT_H

#include "policy_support.h"

#define WORLD_PAGES 1024 /* of each node */

/* A heap on that many nodes; a tunable of -1 keeps its default. */
static inline struct world make_world(const char *policy, int64_t tunable0, int64_t tunable1, unsigned nodes)
{
	struct sy_pages_config machine = machine_of(1, nodes, WORLD_PAGES);
	struct sy_heap_config config = config_of(policy, 1, nodes);

	for (unsigned i = 0; i < nodes; i++) {
		machine.zones[i].min = 1;
		machine.zones[i].low = 2;
		machine.zones[i].high = 3;
	}
	if (tunable0 >= 0)
		config.tunables[0] = tunable0;
	if (tunable1 >= 0)
		config.tunables[1] = tunable1;
	return make_on(&machine, &config);
}

static inline void *kget(struct world *world, size_t size)
{
	return there(sy_kmalloc(world->heap, 0, size, 0, SY_ANY_NODE), "memory");
}

static inline void kput(struct world *world, void *object)
{
	sy_kfree(world->heap, 0, object);
	CHECK_FINE(sy_heap_check(world->heap));
}

static inline size_t usable(struct world *world, size_t size)
{
	void *object = kget(world, size);
	size_t bytes = sy_usable_size(world->heap, object);

	memset(object, 0xee, bytes);
	kput(world, object);
	return bytes;
}

/* Takes every page, and gives back single pages, no two of them neighbours. */
static inline void crumble_memory(struct world *world)
{
	static struct sy_page *blocks[WORLD_PAGES];
	struct sy_page *page;
	size_t count = 0;

	while ((page = sy_pages_alloc(world->pages, 0, 0, 0, SY_ANY_NODE)))
		blocks[count++] = page;
	for (size_t i = 0; i < count; i++)
		if (sy_page_number(world->pages, blocks[i]) % 2)
			sy_pages_free(world->pages, 0, blocks[i]);
}

/* Memory that is no heap's. */
static inline void *page_of_environment(struct world *world)
{
	return sy__page_address(world->heap, there(sy_pages_alloc(world->pages, 0, 0, 0, SY_ANY_NODE), "page"));
}

/* The check finds damage, and nothing once it is mended. */
#define CHECK_FINDS(world, damage, mend, message) \
	do { \
		damage; \
		CHECK_TEXT(sy_heap_check((world)->heap), message); \
		mend; \
		CHECK_FINE(sy_heap_check((world)->heap)); \
	} while (0)

/* ---- What all three do alike ---------------------------------------------------------------------------------- */

static unsigned constructed, destroyed;

static inline void construct(void *object, size_t size)
{
	memset(object, 7, size);
	constructed++;
}

static inline void destroy(void *object, size_t size)
{
	const unsigned char *bytes = object;

	CHECK(bytes[0] == 9 && bytes[size - 1] == 9);
	destroyed++;
}

static inline void test_constructed_at_every_allocation(const char *policy)
{
	struct world world = make_world(policy, -1, -1, 1);
	struct sy_cache_config config = { .name = "made", .size = 100, .constructor = construct, .destructor = destroy };
	struct sy_cache *cache = there(sy_cache_create(world.heap, &config), "cache");

	constructed = destroyed = 0;
	for (unsigned i = 1; i <= 3; i++) {
		unsigned char *object = take(cache, 0);

		CHECK_EQUAL(constructed, i);
		CHECK(object[0] == 7 && object[99] == 7);
		memset(object, 9, 100);
		sy_cache_free(cache, 0, object);
		CHECK_EQUAL(destroyed, i);
	}
	end(&world);
}

static inline void test_destroyed_after_the_grace_period(const char *policy)
{
	struct world world = make_world(policy, -1, -1, 1);
	struct sy_cache_config config = { .name = "made", .size = 100, .flags = SY_CACHE_TYPESAFE_BY_RCU,
		                          .constructor = construct, .destructor = destroy };
	struct sy_cache *cache = there(sy_cache_create(world.heap, &config), "cache");

	constructed = destroyed = 0;
	now = 5000;
	sy_cache_free(cache, 0, memset(take(cache, 0), 9, 100));
	CHECK_EQUAL(destroyed, 0);
	now = 6000;
	sy_heap_tick(world.heap);
	CHECK_EQUAL(destroyed, 1);
	end(&world);
}

static inline void test_wait_for_the_grace_period(const char *policy, size_t size)
{
	struct world world = make_world(policy, -1, -1, 1);
	struct sy_cache *cache = cache_of(&world, size, 0, SY_CACHE_TYPESAFE_BY_RCU);
	struct sy_cache *other = cache_of(&world, size, 0, SY_CACHE_TYPESAFE_BY_RCU);
	char *object = take(cache, 0), *next;
	uint64_t alive = 0;

	now = 5000;
	memset(object, 'x', size);
	CHECK(!sy_cache_destroy(cache, &alive));
	CHECK_EQUAL(alive, 1);
	sy_cache_free(cache, 0, object);
	CHECK_EQUAL(world.heap->counters.deferred, 1);
	now = 5999;
	sy_heap_tick(world.heap);
	for (size_t i = 0; i < size; i++)
		CHECK(object[i] == 'x');
	CHECK_FINE(sy_heap_check(world.heap));
	next = take(cache, 0);
	CHECK(next != object);
	now = 6000;
	sy_heap_tick(world.heap);
	CHECK_EQUAL(world.heap->counters.deferred, 0);

	/* A cache that is destroyed frees its own waiting objects; those of other caches go on waiting. */
	sy_cache_free(cache, 0, next);
	sy_cache_free(other, 0, take(other, 0));
	CHECK(sy_cache_destroy(cache, NULL));
	CHECK_EQUAL(world.heap->counters.deferred, 1);
	CHECK_FINE(sy_heap_check(world.heap));
	end(&world);
}

static inline void test_zero(const char *policy)
{
	struct world world = make_world(policy, -1, -1, 1);

	for (size_t size = 1; size <= 40000; size = size * 3 + 1) {
		unsigned char *object = kget(&world, size);
		size_t bytes = sy_usable_size(world.heap, object), sum = 0;

		memset(object, 0xff, bytes);
		kput(&world, object);
		object = there(sy_kmalloc(world.heap, 0, size, SY_ZERO, SY_ANY_NODE), "memory");
		for (size_t i = 0; i < bytes; i++)
			sum += object[i];
		CHECK_EQUAL(sum, 0);
	}
	end(&world);
}

static inline void test_every_power_of_two_is_aligned(const char *policy)
{
	struct world world = make_world(policy, -1, -1, 1);

	for (size_t size = 8; size <= 16384; size *= 2) {
		for (unsigned i = 0; i < 5; i++) {
			kget(&world, 24);
			CHECK_EQUAL((uintptr_t)kget(&world, size) % (size < SY_PAGE_SIZE ? size : SY_PAGE_SIZE), 0);
		}
	}
	for (size_t align = 16; align <= SY_PAGE_SIZE; align *= 2)
		for (unsigned i = 0; i < 3; i++)
			CHECK_EQUAL((uintptr_t)take(cache_of(&world, 40, align, 0), 0) % align, 0);
	end(&world);
}

static inline void test_sizes_refused(const char *policy)
{
	struct world world = make_world(policy, -1, -1, 1);
	struct sy_cache_config config = { .name = "waits", .size = SY_PAGE_SIZE << SY_MAX_ORDER };
	void *a = kget(&world, 0), *b = kget(&world, 0);

	CHECK(a != b);
	CHECK(!sy_kmalloc(world.heap, 0, (SY_PAGE_SIZE << SY_MAX_ORDER) + 1, 0, SY_ANY_NODE));
	CHECK(!sy_kmalloc(world.heap, 0, SIZE_MAX, 0, SY_ANY_NODE));
	CHECK(sy_cache_create(world.heap, &config) != NULL);
	config.flags = SY_CACHE_TYPESAFE_BY_RCU; /* no room for the footer */
	CHECK(!sy_cache_create(world.heap, &config));
	end(&world);
}

static inline void test_nodes(const char *policy)
{
	struct world world = make_world(policy, -1, -1, 2);
	struct sy_cache *cache = cache_of(&world, 1000, 0, 0);
	void *here = sy_cache_alloc(cache, 0, 0, 0), *there_ = sy_cache_alloc(cache, 0, 0, 1), *object;
	unsigned on_node[2] = { 0 };
	uint64_t pages;

	CHECK_EQUAL(sy__head_of(world.heap, here)->node, 0);
	CHECK_EQUAL(sy__head_of(world.heap, there_)->node, 1);
	CHECK_EQUAL(sy__head_of(world.heap, take(cache, 0))->node, 0); /* where slot 0 is */
	/* A full node refuses requests that insist on it. Other requests find room on the other node, then pages there. */
	while ((object = sy_cache_alloc(cache, 0, SY_THISNODE, 0)))
		on_node[sy__head_of(world.heap, object)->node]++;
	CHECK(on_node[0] > 2000 && !on_node[1]);
	pages = world.heap->counters.slab_pages;
	object = sy_cache_alloc(cache, 0, 0, 0);
	CHECK_EQUAL(sy__head_of(world.heap, object)->node, 1);
	CHECK_EQUAL(world.heap->counters.slab_pages, pages); /* beside the object that was there */
	while ((object = sy_cache_alloc(cache, 0, 0, 0)))
		on_node[sy__head_of(world.heap, object)->node]++;
	CHECK(on_node[1] > 2000);
	CHECK_FINE(sy_heap_check(world.heap));
	end(&world);
}

/* A heap may know nodes without memory: requests for them are served from other nodes. */
static inline void test_a_node_without_memory(const char *policy)
{
	struct world world = make_world(policy, -1, -1, 1);
	struct sy_heap_config config;
	struct sy_heap *heap;
	uint64_t pages;
	void *first;

	sy_heap_defaults(sy_policy_find(policy), &config);
	config.nodes = 3;
	heap = there(sy_heap_create(world.pages, &config), "heap");
	first = there(sy_kmalloc(heap, 0, 100, 0, 2), "memory");
	pages = heap->counters.slab_pages;
	for (unsigned i = 0; i < 10; i++)
		CHECK_EQUAL(sy__head_of(heap, there(sy_kmalloc(heap, 0, 100, 0, 1), "memory"))->node, 0);
	CHECK_EQUAL(heap->counters.slab_pages, pages);
	CHECK_EQUAL(heap->counters.page_failures, 0);
	sy_kfree(heap, 0, first);
	CHECK_FINE(sy_heap_check(heap));
	sy_heap_destroy(heap);
	end(&world);
}

static inline void test_out_of_memory(const char *policy)
{
	static void *objects[4 * WORLD_PAGES];
	struct world world = make_world(policy, -1, -1, 1);
	struct sy_cache *cache = cache_of(&world, 1024, 0, 0);
	size_t count = 0;

	while ((objects[count] = sy_cache_alloc(cache, 0, 0, SY_ANY_NODE)))
		count++;
	CHECK(count > 3 * WORLD_PAGES && count <= 4 * WORLD_PAGES);
	CHECK(!sy_kmalloc(world.heap, 0, 1024, 0, SY_ANY_NODE));
	CHECK(world.heap->counters.page_failures > 0);
	CHECK_FINE(sy_heap_check(world.heap));
	sy_cache_free(cache, 0, objects[count / 2]);
	CHECK(take(cache, 0) == objects[count / 2]);
	while (count)
		sy_cache_free(cache, 0, objects[--count]);
	CHECK(sy_cache_destroy(cache, NULL));
	end(&world);
}

static inline void test_destroy_is_refused_with_objects(const char *policy)
{
	struct world world = make_world(policy, -1, -1, 1);
	struct sy_cache *cache = cache_of(&world, 72, 0, 0), *pages = cache_of(&world, 50000, 0, 0);
	void *a = take(cache, 0), *b = take(cache, 0), *c = take(pages, 0);
	struct sy_cache_counts counts;
	uint64_t alive = 0;

	kget(&world, 72); /* not the cache's */
	CHECK(!sy_cache_destroy(cache, &alive));
	CHECK_EQUAL(alive, 2);
	CHECK(!sy_cache_destroy(pages, &alive));
	CHECK_EQUAL(alive, 1);
	sy_cache_count(pages, &counts);
	CHECK_EQUAL(counts.objects_in_use, 1);
	CHECK_EQUAL(world.heap->counters.large_pages, 16);
	sy_cache_free(cache, 0, a);
	sy_cache_free(cache, 0, b);
	sy_cache_free(pages, 0, c);
	CHECK(sy_cache_destroy(cache, &alive));
	CHECK(sy_cache_destroy(pages, &alive));
	CHECK_EQUAL(world.heap->counters.large_pages, 0);
	end(&world);
}

/* Pages that come and go leave nothing of their bookkeeping behind. */
static inline void test_metadata_does_not_grow(const char *policy)
{
	struct world world = make_world(policy, -1, -1, 1);
	uint64_t pages;

	kput(&world, kget(&world, 2000));
	pages = world.heap->counters.metadata_pages;
	for (unsigned i = 0; i < 5000; i++)
		sy_kfree(world.heap, 0, kget(&world, 2000));
	CHECK_EQUAL(world.heap->counters.metadata_pages, pages);
	end(&world);
}

/* For policies that grow by four pages. */
static inline void test_smaller_pools_where_memory_has_crumbled(const char *policy, int64_t tunable0, int64_t tunable1)
{
	struct world world = make_world(policy, tunable0, tunable1, 1);
	char *small, *page;

	kput(&world, kget(&world, 64)); /* the page for maps */
	crumble_memory(&world);
	small = kget(&world, 64);
	CHECK_EQUAL(world.heap->counters.slab_pages, 1);
	page = kget(&world, 4096); /* a pool that is one block */
	CHECK_EQUAL(world.heap->counters.slab_pages, 2);
	CHECK(!sy_kmalloc(world.heap, 0, 8192, 0, SY_ANY_NODE));
	CHECK_FINE(sy_heap_check(world.heap));
	kput(&world, page);
	kput(&world, small);
	CHECK_EQUAL(world.heap->counters.slab_pages, 0);
	end(&world);
}

static inline void general_tests(const char *policy)
{
	test_constructed_at_every_allocation(policy);
	test_wait_for_the_grace_period(policy, 100);
	test_wait_for_the_grace_period(policy, 9000);
	test_destroyed_after_the_grace_period(policy);
	test_metadata_does_not_grow(policy);
	test_zero(policy);
	test_every_power_of_two_is_aligned(policy);
	test_sizes_refused(policy);
	test_nodes(policy);
	test_a_node_without_memory(policy);
	test_out_of_memory(policy);
	test_destroy_is_refused_with_objects(policy);
}

#endif
