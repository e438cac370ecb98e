/* A heap for the models, whose slabs have a few large objects, and threads that allocate and free and look at what they get. */
#ifndef MODEL_YARD_H
#define MODEL_YARD_H

#include <slabyard/slabyard.h>
#include <string.h>

#include "core/here.h"
#include "core/page_interface.h"
#include "schedule.h"

#define YARD_PAGES 1024u
#define YARD_OBJECTS 16u
#define YARD_SIZE 2048u /* bytes of an object: two are in a page */
#define YARD_FILL UINT64_C(0xa5a5a5a5a5a5a5a5)
#define YARD_CPUS 2u

struct yard {
	struct sy_heap *heap;
	struct sy_cache *cache;
	void *objects[YARD_OBJECTS];                  /* that set_up leaves to the threads, and they to each other */
	unsigned there[YARD_OBJECTS];                 /* an object for somebody who waits is there */
	bool within[YARD_CPUS];                       /* see port.c */
	uint8_t live[YARD_PAGES * SY_PAGE_SIZE / YARD_SIZE];
};

static struct yard yard;

struct setting {
	const char *tunable;
	int64_t value;
};

/* The heap has threads, or slots that are driven. Settings end with a NULL. */
static inline void yard_open(const struct sy_policy *policy, bool threads, const struct setting *settings)
{
	const struct sy_pages_config machine = { .zone_count = 1, .zones = { { .name = "Normal", .pages = YARD_PAGES } },
	                                         .slots = MODEL_THREADS + 1, .pageblock_order = 9 };
	const struct sy_cache_config cache = { .name = "yard", .size = YARD_SIZE };
	struct sy_heap_config config;

	model_share(&yard, sizeof(yard));
	sy_heap_defaults(policy, &config);
	config.threads = threads;
	config.concurrent = true;
	config.slots = 2 * YARD_CPUS;
	config.cpus = YARD_CPUS;
	for (; settings->tunable; settings++)
		for (unsigned i = 0; i < policy->tunable_count; i++)
			if (!strcmp(policy->tunables[i].name, settings->tunable))
				config.tunables[i] = settings->value;
	yard.heap = sy_heap_create(sy_pages_create(&machine), &config);
	if (yard.heap)
		yard.cache = sy_cache_create(yard.heap, &cache);
	if (!yard.cache)
		model_wrong("there is no heap");
}

static inline uint8_t *yard_live(const void *object)
{
	const struct sy_pages_base *base = (const struct sy_pages_base *)(const void *)yard.heap->pages;

	return &yard.live[(size_t)((const char *)object - (const char *)base->memory) / YARD_SIZE];
}

/* An object that somebody has handed out to the caller. */
static inline void *yard_got(void *object)
{
	if (!object)
		model_wrong("there is no memory");
	if (*yard_live(object))
		model_wrong("an object is handed out twice");
	*yard_live(object) = 1;
	((uint64_t *)object)[1] = YARD_FILL;
	return object;
}

static inline void *yard_gone(void *object)
{
	if (((uint64_t *)object)[1] != YARD_FILL)
		model_wrong("an object has been written to");
	*yard_live(object) = 0;
	return object;
}

static inline void take(unsigned at)
{
	yard.objects[at] = yard_got(sy_alloc(yard.cache, 0));
}

static inline void give(unsigned at)
{
	sy_free(yard.cache, yard_gone(yard.objects[at]));
	yard.objects[at] = NULL;
}

/* For another thread, and by it. */
static inline void hand_over(unsigned at)
{
	__atomic_store_n(&yard.there[at], 1, __ATOMIC_RELEASE);
}

static inline void give_when_there(unsigned at)
{
	model_wait_for(&yard.there[at]);
	give(at);
}

/* After all, everything is freed: every object is there again, no slab is left. */
static inline const char *yard_verify(void)
{
	const char *wrong = sy_heap_check(yard.heap);
	struct sy_cache_counts counts;

	model_on_slot(1);
	for (unsigned i = 0; i < YARD_OBJECTS && !wrong; i++)
		if (yard.objects[i])
			give(i);
	sy_cache_shrink(yard.cache);
	sy_cache_count(yard.cache, &counts);
	return wrong ? wrong : counts.slabs ? "a slab is left though nothing is in use" : NULL;
}

#endif
