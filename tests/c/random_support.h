/*
 * Random programs for policies that give memory back as time passes: phases of growth and of decay, on all CPU slots and
 * memory nodes, with milliseconds going by at each step. Every object is filled with a byte of its own, which must still be
 * there when the object is freed.
 */
#ifndef RANDOM_SUPPORT_H
#define RANDOM_SUPPORT_H

#include "policy_support.h"

#define RANDOM_CACHES 6
#define RANDOM_LIVE 1024

static uint64_t random_state;

static inline uint32_t random_below(uint32_t bound)
{
	random_state = random_state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((random_state >> 33) % bound);
}

struct live {
	void *object;
	struct sy_cache *cache; /* NULL: kmalloc */
	size_t bytes;
	unsigned char pattern;
};

static inline void random_free(struct world *world, struct live *live, unsigned slot)
{
	size_t same = 0;

	while (same < live->bytes && ((unsigned char *)live->object)[same] == live->pattern)
		same++;
	CHECK_EQUAL(same, live->bytes);
	if (live->cache)
		sy_cache_free(live->cache, slot, live->object);
	else
		sy_kfree(world->heap, slot, live->object);
	live->object = NULL;
}

static inline void random_alloc(struct world *world, struct sy_cache **caches, struct live *live, unsigned slot, int node)
{
	unsigned which = random_below(RANDOM_CACHES + 2);

	live->cache = which < RANDOM_CACHES ? caches[which] : NULL;
	live->bytes = live->cache ? live->cache->object_size : 1 + random_below(10000);
	live->object = live->cache ? sy_cache_alloc(live->cache, slot, 0, node)
	                           : sy_kmalloc(world->heap, slot, live->bytes, 0, node);
	live->pattern = (unsigned char)random_below(256);
	if (live->object)
		memset(live->object, live->pattern, live->bytes);
}

/* Makes the caches, runs the program that the seed gives, and frees everything. */
static inline void random_program(struct world *world, struct sy_cache **caches, uint64_t seed)
{
	static struct live live[RANDOM_LIVE];

	caches[0] = cache_of(world, 24, 0, 0);
	caches[1] = cache_of(world, 56, 64, 0);
	caches[2] = cache_of(world, 512, 0, SY_CACHE_TYPESAFE_BY_RCU);
	caches[3] = cache_of(world, 1216, 0, 0);
	caches[4] = cache_of(world, 5000, 0, 0);
	caches[5] = cache_of(world, 1024, 0, SY_CACHE_RECLAIMABLE);
	random_state = seed;
	for (unsigned i = 0; i < 40000; i++) {
		struct live *at = &live[random_below(RANDOM_LIVE)];
		unsigned slot = random_below(world->heap->slots), growing = i / 4000 % 2 == 0;

		if (at->object && (!growing || random_below(3) == 0))
			random_free(world, at, slot);
		else if (!at->object && (growing || random_below(4) == 0))
			random_alloc(world, caches, at, slot, random_below(4) ? SY_ANY_NODE : (int)random_below(world->heap->nodes));
		now += random_below(5000000);
		sy_heap_tick(world->heap);
		if (i % 400 == 0)
			check(world);
	}
	for (unsigned i = 0; i < RANDOM_LIVE; i++)
		if (live[i].object)
			random_free(world, &live[i], random_below(world->heap->slots));
}

#endif
