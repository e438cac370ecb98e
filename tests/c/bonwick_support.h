/* A machine for the tests of Bonwick's policy: a heap on 64 MiB for each node, and a clock that only the test moves. */
#ifndef SY_TEST_BONWICK_SUPPORT_H
#define SY_TEST_BONWICK_SUPPORT_H

#include "policy_support.h"

#include "core/pages/pages.h"
#include "core/policies/bonwick/bonwick.h"

#define MANY 1024

static inline struct world make(unsigned slots, unsigned nodes, const char *tunable, int64_t value)
{
	now = 100 * SECOND;
	return make_tuned("bonwick", slots, nodes, tunable, value);
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

/* Bytes from the start of its slab to an object. */
static inline size_t offset_of(struct sy_cache *cache, const void *object)
{
	const char *start = sy__page_address(cache->heap, sy__head_of(cache->heap, object));

	return (size_t)((const char *)object - start);
}

/* The cache's list, a letter for each slab: Empty, Partial, Complete. '>' stands before the slab that the freelist points
 * to. */
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
