/* Attacks on caches of the library: what of malloc's attacks is different with several caches of one size. See attacks.h. */
#include "attacks.h"

#include <slabyard/slabyard.h>

#define MANY 4000u

static struct sy_heap *heap;
static char *objects[MANY];

static struct sy_cache *cache_of(const char *name, size_t size)
{
	const char *error = NULL;

	if (!heap)
		heap = sy_heap_open(getenv("SLABYARD"), NULL, &error);
	if (!heap) {
		fprintf(stderr, "attacks: %s\n", error);
		exit(2);
	}
	return sy_cache_create(heap, &(struct sy_cache_config){ .name = name, .size = size });
}

/* Objects of one cache are freed; with a dangling pointer to one, an object of another cache is reached. */
static bool reuse(size_t size, size_t others_size)
{
	struct sy_cache *cache = cache_of("files", size), *others = cache_of("messages", others_size);

	for (unsigned i = 0; i < MANY; i++)
		memset(objects[i] = sy_alloc(cache, 0), 1, size);
	for (unsigned i = 0; i < MANY; i++)
		sy_free(cache, objects[i]);
	sy_cache_shrink(cache);
	for (unsigned i = 0; i < 2 * MANY; i++)
		memset(sy_alloc(others, 0), 0x5a, others_size);
	for (unsigned i = 0; i < MANY; i++)
		if (objects[i][size / 2] == 0x5a && objects[i][size - 1] == 0x5a)
			return true;
	return false;
}

/* Freed memory comes back with objects of another cache, of one size. */
ATTACK(reuse_by_a_merged_cache)
{
	return reuse(96, 96);
}

/* Freed pages come back with objects of another cache. */
ATTACK(reuse_by_another_cache)
{
	return reuse(96, 320);
}

/* An object is freed to another cache, which hands it out. */
ATTACK(free_to_another_cache)
{
	struct sy_cache *cache = cache_of("files", 96), *others = cache_of("messages", 320);
	char *object = sy_alloc(cache, 0);

	OPAQUE(object);
	sy_free(others, object);
	for (unsigned i = 0; i < MANY; i++)
		if (sy_alloc(others, 0) == object)
			return true;
	return false;
}

/* Links are replaced by another object's, which was read before. */
ATTACK(link_of_another_object)
{
	struct sy_cache *cache = cache_of("files", 96);
	char *copy;

	for (unsigned i = 0; i < 200; i++)
		objects[i] = sy_alloc(cache, 0);
	copy = objects[10];
	for (unsigned i = 0; i < 200; i++)
		sy_free(cache, objects[i]);
	for (unsigned i = 11; i < 200; i++)
		memcpy(objects[i], copy, 96);
	for (unsigned i = 0; i < 600; i++) {
		objects[i] = sy_alloc(cache, 0);
		for (unsigned j = 0; j < i; j++)
			if (objects[j] == objects[i])
				return true;
	}
	return false;
}
