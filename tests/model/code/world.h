/* A heap for the models, whose slabs have a few large objects, and threads that allocate and free and look at what they get. */
#ifndef MODEL_WORLD_H
#define MODEL_WORLD_H

#include "core/types.h"
#include <string.h>

#include "core/this_slot.h"
#include "core/page_interface.h"
#include "schedule.h"

#define WORLD_PAGES 1024u
#define WORLD_OBJECTS 16u
#define WORLD_SIZE 2048u /* bytes of an object: two are in a page */
#define WORLD_FILL UINT64_C(0xa5a5a5a5a5a5a5a5)
#define WORLD_CPUS 2u

struct world {
	struct sy_heap *heap;
	struct sy_cache *cache;
	void *objects[WORLD_OBJECTS];                  /* that set_up leaves to the threads, and they to each other */
	unsigned there[WORLD_OBJECTS];                 /* an object for a waiting thread is there */
	bool within[WORLD_CPUS];                       /* see port.c */
	uint8_t live[WORLD_PAGES * SY_PAGE_SIZE / WORLD_SIZE];
};

static struct world world;

struct setting {
	const char *tunable;
	int64_t value;
};

/* The models' programs have no bugs. */
static inline void world_bug(struct sy_heap *heap, enum sy_bug kind, const void *address)
{
	(void)heap;
	(void)address;
	model_wrong(sy_bug_name(kind));
}

/* The heap has threads, or slots that are driven. Settings end with a NULL. */
static inline void world_open(const struct sy_policy *policy, bool threads, const struct setting *settings)
{
	const struct sy_pages_config machine = { .zone_count = 1, .zones = { { .name = "Normal", .pages = WORLD_PAGES } },
	                                         .slots = MODEL_THREADS + 1, .pageblock_order = 9 };
	const struct sy_cache_config cache = { .name = "world", .size = WORLD_SIZE };
	struct sy_heap_config config;

	model_share(&world, sizeof(world));
	sy_heap_defaults(policy, &config);
	config.threads = threads;
	config.concurrent = true;
	config.slots = 2 * WORLD_CPUS;
	config.cpus = WORLD_CPUS;
	for (; settings->tunable; settings++)
		for (unsigned i = 0; i < policy->tunable_count; i++)
			if (!strcmp(policy->tunables[i].name, settings->tunable))
				config.tunables[i] = settings->value;
	world.heap = sy_heap_create(sy_pages_create(&machine), &config);
	if (world.heap)
		world.cache = sy_cache_create(world.heap, &cache);
	if (!world.cache)
		model_wrong("there is no heap");
	world.heap->on_bug = world_bug;
}

static inline uint8_t *world_live(const void *object)
{
	const struct sy_pages_base *base = (const struct sy_pages_base *)(const void *)world.heap->pages;

	return &world.live[(size_t)((const char *)object - (const char *)base->memory) / WORLD_SIZE];
}

/* An object that somebody has handed out to the caller. */
static inline void *world_got(void *object)
{
	if (!object)
		model_wrong("there is no memory");
	if (*world_live(object))
		model_wrong("an object is handed out twice");
	*world_live(object) = 1;
	((uint64_t *)object)[1] = WORLD_FILL;
	return object;
}

static inline void *world_gone(void *object)
{
	if (((uint64_t *)object)[1] != WORLD_FILL)
		model_wrong("an object has been written to");
	*world_live(object) = 0;
	return object;
}

static inline void take(unsigned at)
{
	world.objects[at] = world_got(sy_alloc(world.cache, 0));
}

static inline void give(unsigned at)
{
	sy_free(world.cache, world_gone(world.objects[at]));
	world.objects[at] = NULL;
}

/* For another thread, and by it. */
static inline void hand_over(unsigned at)
{
	__atomic_store_n(&world.there[at], 1, __ATOMIC_RELEASE);
}

static inline void give_when_there(unsigned at)
{
	model_wait_for(&world.there[at]);
	give(at);
}

/* After all, everything is freed: every object is there again, no slab is left. */
static inline const char *world_verify(void)
{
	const char *wrong = sy_heap_check(world.heap);
	struct sy_cache_counts counts;

	model_on_slot(1);
	for (unsigned i = 0; i < WORLD_OBJECTS && !wrong; i++)
		if (world.objects[i])
			give(i);
	sy_cache_shrink(world.cache);
	sy_cache_count(world.cache, &counts);
	return wrong ? wrong : counts.slabs ? "a slab is left though nothing is in use" : NULL;
}

#endif
