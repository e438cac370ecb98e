/* What the tests of SLUB share: its world, and where its slabs are. */
#ifndef SLUB_SUPPORT_H
#define SLUB_SUPPORT_H

#include "constructed_support.h"

#include "core/pages/pages.h"
#include "core/policies/slub/slub.h"

#define MANY 256
#define WORD sizeof(void *)

static inline struct world make(unsigned slots, unsigned nodes, const char *tunable, int64_t value)
{
	now = 0;
	return make_tuned("slub", slots, nodes, tunable, value);
}

static inline struct sy__node *node_of(struct sy_cache *cache, unsigned node)
{
	return &sy__node_cache(cache)->nodes[node];
}

static inline struct sy__slub_slot *slot_of(struct sy_cache *cache, unsigned slot)
{
	return sy__slub_slot(sy__slub_cache(cache), slot);
}

/* The position of a slab on its node's list, from 0; or -1. */
static inline int position(struct sy_cache *cache, unsigned node, struct sy_page *page)
{
	struct sy_list *list = &node_of(cache, node)->partial;
	int i = 0;

	for (struct sy_list *at = list->next; at != list; at = at->next, i++)
		if (sy__node_linked(at) == page)
			return i;
	return -1;
}

static inline struct sy_page *slab_of(struct sy_cache *cache, void *object)
{
	return sy__head_of(cache->heap, object);
}

/* Fills `count` slabs of `each` objects by slot 0: objects[slab * each + i]. */
static inline void fill(struct sy_cache *cache, void **objects, unsigned count, unsigned each)
{
	for (unsigned i = 0; i < count * each; i++) {
		objects[i] = sy_cache_alloc(cache, 0, 0, SY_ANY_NODE);
		CHECK(objects[i] != NULL);
		CHECK(slab_of(cache, objects[i]) == slab_of(cache, objects[i / each * each]));
	}
}

#endif
