/*
 * What the tests of the policies share: a world, that is a page allocator with a heap on it, and a clock that only the test
 * moves. A world ends with the checks of both, and with every page given back. If something is missing that a test can't go on
 * without, the program ends.
 */
#ifndef POLICY_SUPPORT_H
#define POLICY_SUPPORT_H

#include "core/types.h"

#include "check.h"
#include "core/page_interface.h"

#define SECOND UINT64_C(1000000000)

struct world {
	struct sy_pages *pages;
	struct sy_heap *heap;
};

static uint64_t now;

static inline uint64_t test_clock(void)
{
	return now;
}

static inline void *there(void *pointer, const char *what)
{
	if (!pointer) {
		fprintf(stderr, "there is no %s\n", what);
		exit(EXIT_FAILURE);
	}
	return pointer;
}

/* Nodes with one zone of that many pages each. */
static inline struct sy_pages_config machine_of(unsigned slots, unsigned nodes, uint64_t pages_each)
{
	struct sy_pages_config config = { .zone_count = nodes, .slots = slots, .pageblock_order = 9 };

	for (unsigned i = 0; i < nodes; i++)
		config.zones[i] = (struct sy_zone_config){ .name = "Normal", .node = i, .start_page = i * pages_each,
		                                           .pages = pages_each };
	return config;
}

static inline struct sy_heap_config config_of(const char *policy, unsigned slots, unsigned nodes)
{
	struct sy_heap_config config;

	sy_heap_defaults(there((void *)(uintptr_t)sy_policy_find(policy), "policy"), &config);
	config.slots = slots;
	config.nodes = nodes;
	config.grace_ns = 1000;
	return config;
}

static inline struct world make_on(const struct sy_pages_config *machine, const struct sy_heap_config *config)
{
	struct world world;

	sy_platform_set_clock(test_clock);
	world.pages = there(sy_pages_create(machine), "page allocator");
	world.heap = there(sy_heap_create(world.pages, config), "heap");
	return world;
}

/* 64 MiB for each node, with lists of pages for each CPU. */
static inline struct world make_large(const struct sy_heap_config *config)
{
	struct sy_pages_config machine = machine_of(config->slots, config->nodes, 16384);

	machine.cpu_lists = true;
	return make_on(&machine, config);
}

/* One tunable that differs from the defaults, or NULL. */
static inline struct world make_tuned(const char *policy, unsigned slots, unsigned nodes, const char *tunable, int64_t value)
{
	struct sy_heap_config config = config_of(policy, slots, nodes);
	bool found = !tunable;

	for (unsigned i = 0; tunable && i < config.policy->tunable_count; i++) {
		if (!strcmp(config.policy->tunables[i].name, tunable)) {
			config.tunables[i] = value;
			found = true;
		}
	}
	CHECK(found);
	return make_large(&config);
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

	return there(sy_cache_create(world->heap, &config), "cache");
}

static inline struct sy_page *page_of(struct sy_cache *cache, const void *object)
{
	return sy__head_of(cache->heap, object);
}

/* Bytes from the start of its page. */
static inline size_t offset(const void *object)
{
	return (size_t)((uintptr_t)object % SY_PAGE_SIZE);
}

static inline bool same_page(const void *a, const void *b)
{
	return (uintptr_t)a / SY_PAGE_SIZE == (uintptr_t)b / SY_PAGE_SIZE;
}

static inline void *take(struct sy_cache *cache, unsigned slot)
{
	return there(sy_cache_alloc(cache, slot, 0, SY_ANY_NODE), "memory for an object");
}

/* The object that was freed last comes back, in zeros as that is asked for. */
static inline void check_zeroed(struct sy_cache *cache)
{
	void *object = take(cache, 0);

	memset(object, 0xa5, cache->size);
	sy_cache_free(cache, 0, object);
	CHECK(sy_cache_alloc(cache, 0, SY_ZERO, SY_ANY_NODE) == object);
	CHECK_BYTES(object, 0, cache->size);
}

static inline void take_all(struct sy_cache *cache, unsigned slot, void **objects, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		objects[i] = take(cache, slot);
}

static inline void free_all(struct sy_cache *cache, unsigned slot, void **objects, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		sy_cache_free(cache, slot, objects[i]);
}

static inline struct sy_cache_counts counts_of(struct sy_cache *cache)
{
	struct sy_cache_counts counts;

	sy_cache_count(cache, &counts);
	return counts;
}

#endif
