/* A machine for the tests of Bonwick's policy: a heap on 64 MiB for each node, and a clock that only the test moves. */
#ifndef SY_TEST_BONWICK_SUPPORT_H
#define SY_TEST_BONWICK_SUPPORT_H

#include "check.h"

#include <slabyard/slabyard.h>

#include "core/pages/pages.h"
#include "core/policies/bonwick.h"

#define SECOND UINT64_C(1000000000)
#define MANY 1024

struct world {
	struct sy_pages *pages;
	struct sy_heap *heap;
};

static uint64_t now = 100 * SECOND;

static inline uint64_t test_clock(void)
{
	return now;
}

/* One tunable that differs from the defaults, or NULL. */
static inline struct world make(unsigned slots, unsigned nodes, const char *tunable, int64_t value)
{
	struct sy_pages_config pages = { .zone_count = nodes, .slots = slots, .pageblock_order = 9, .cpu_lists = true };
	const struct sy_policy *bonwick = sy_policy_find("bonwick");
	struct sy_heap_config config;
	struct world world;

	sy_platform_set_clock(test_clock);
	for (unsigned i = 0; i < nodes; i++)
		pages.zones[i] = (struct sy_zone_config){ .name = "Normal", .node = i, .start_page = i * 16384u,
		                                          .pages = 16384 };
	sy_heap_defaults(bonwick, &config);
	config.slots = slots;
	config.nodes = nodes;
	config.grace_ns = 1000;
	for (unsigned i = 0; tunable && i < bonwick->tunable_count; i++)
		if (!strcmp(bonwick->tunables[i].name, tunable))
			config.tunables[i] = value;
	world.pages = sy_pages_create(&pages);
	world.heap = sy_heap_create(world.pages, &config);
	CHECK(world.heap != NULL);
	return world;
}

static inline void check(const struct world *world)
{
	CHECK_FINE(sy_heap_check(world->heap));
	CHECK_FINE(sy_pages_check(world->pages));
}

static inline void end(struct world *world)
{
	struct sy_pages_counts counts;

	check(world);
	sy_heap_destroy(world->heap);
	sy_pages_count(world->pages, &counts);
	for (unsigned i = 0; i < counts.zone_count; i++) {
		CHECK_EQUAL(counts.zones[i].used[SY_USE_SLAB], 0);
		CHECK_EQUAL(counts.zones[i].used[SY_USE_LARGE], 0);
		CHECK_EQUAL(counts.zones[i].used[SY_USE_METADATA], 0);
	}
	CHECK_FINE(sy_pages_check(world->pages));
	sy_pages_destroy(world->pages);
	sy_platform_set_clock(NULL);
}

static inline struct sy_cache *cache_of(struct world *world, size_t size, size_t align, unsigned flags)
{
	struct sy_cache_config config = { .name = "test", .size = size, .align = align, .flags = flags };
	struct sy_cache *cache = sy_cache_create(world->heap, &config);

	CHECK(cache != NULL);
	return cache;
}

static inline void *get(struct sy_cache *cache)
{
	return sy_cache_alloc(cache, 0, SY_KM_SLEEP, SY_ANY_NODE);
}

static inline void get_many(struct sy_cache *cache, void **objects, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		objects[i] = get(cache);
		CHECK(objects[i] != NULL);
	}
}

static inline void free_many(struct sy_cache *cache, void **objects, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		sy_cache_free(cache, 0, objects[i]);
}

static inline struct sy_cache_counts counts_of(struct sy_cache *cache)
{
	struct sy_cache_counts counts;

	sy_cache_count(cache, &counts);
	return counts;
}

/* Bytes from the start of its slab to an object. */
static inline size_t offset_of(struct sy_cache *cache, const void *object)
{
	const char *start = sy__page_address(cache->heap, sy__head_of(cache->heap, object));

	return (size_t)((const char *)object - start);
}

/* The cache's list, a letter for each slab: Empty, Partial, Complete; '>' before that which the freelist points to. */
static inline const char *list_of(struct sy_cache *cache)
{
	static char text[2 * MANY];
	struct sy__bonwick_cache *bonwick = sy__bonwick_cache(cache);
	char *end_of_text = text;

	for (struct sy_list *at = bonwick->slabs.next; at != &bonwick->slabs; at = at->next) {
		const struct sy__bonwick_slab *slab = sy__bonwick_linked(at);

		if (bonwick->freelist == at)
			*end_of_text++ = '>';
		*end_of_text++ = !slab->refs ? 'C' : slab->free ? 'P' : 'E';
	}
	*end_of_text = '\0';
	return text;
}

#endif
