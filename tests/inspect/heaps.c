/*
 * Two heaps of threads for tests/inspect/test_heaps.py, of the spec in the first argument, each with a cache of its own.
 * Prints the addresses of an object in use and of a free one, then waits for the end of its input.
 */
#include <slabyard/slabyard.h>

#include <stdio.h>
#include <string.h>

#define OBJECTS 400

static void construct(void *object, size_t size)
{
	memset(object, 0x5a, size);
}

static bool fill(const char *spec, const char *name, size_t size)
{
	const struct sy_cache_config config = { .name = name, .size = size, .constructor = construct };
	const char *error = NULL;
	struct sy_heap *heap = sy_heap_open(spec, NULL, &error);
	struct sy_cache *cache = heap ? sy_cache_create(heap, &config) : NULL;
	void *objects[OBJECTS];

	if (!cache || sy_alloc_bulk(cache, 0, OBJECTS, objects) < OBJECTS) {
		fprintf(stderr, "%s\n", error ? error : "no memory");
		return false;
	}
	for (unsigned i = 0; i < OBJECTS; i += 4)
		sy_free(cache, objects[i]);
	printf("%p %p\n", objects[OBJECTS / 2 + 1], objects[OBJECTS / 2]);
	return true;
}

int main(int count, char **words)
{
	const char *spec = count > 1 ? words[1] : NULL;

	if (!fill(spec, "inode", 600) || !fill(spec, "dentry", 192))
		return 1;
	fflush(stdout);
	return getchar() != EOF;
}
