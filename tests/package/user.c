/* A user of the library: every policy there is, spec to end; objects stay constructed while they are free. */
#include <slabyard/slabyard.h>

#include <stdio.h>

static void make(void *object, size_t size)
{
	*(size_t *)object = size;
}

int main(void)
{
	struct sy_cache_config config = { .name = "user", .size = 100, .constructor = make };

	for (const struct sy_policy *const *at = sy_policies; *at; at++) {
		const char *error = NULL;
		struct sy_policy_description policy;
		struct sy_heap *heap;
		struct sy_cache *cache;
		size_t *object;
		char *text;

		sy_policy_describe(*at, &policy);
		heap = sy_heap_open(policy.name, NULL, &error);
		cache = heap ? sy_cache_create(heap, &config) : NULL;
		object = cache ? sy_alloc(cache, 0) : NULL;
		text = heap ? sy_malloc(heap, 1000, SY_ZERO) : NULL;

		if (!object || *object != 100 || !text || text[999]) {
			fprintf(stderr, "%s: %s\n", policy.name, error ? error : "an object is not as it was asked for");
			return 1;
		}
		sy_mfree(heap, text);
		sy_free(cache, object);
		sy_heap_close(heap);
	}
	puts("served");
	return 0;
}
