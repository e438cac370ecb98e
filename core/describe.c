/*
 * Describes heaps, caches and policies to callers, for whom these are opaque.
 *
 * Nothing here takes a lock. A heap's policy and sizing never change, nor does the description of a policy. A cache's users and
 * object size change when caches merge. In a heap with slots the caller serialises that with its use of the cache; in a heap of
 * threads the figures are those of some moment.
 */
#include "debug/debug.h"

const struct sy_policy *sy_heap_policy(const struct sy_heap *heap)
{
	return heap->policy;
}

const struct sy_sizing *sy_heap_sizing(const struct sy_heap *heap)
{
	return &heap->sizing;
}

unsigned sy_tunable_choices(const struct sy_tunable *tunable)
{
	unsigned bits = 0;

	if (!tunable->choices)
		return 0;
	if (!tunable->combines)
		return (unsigned)tunable->max + 1;
	while (tunable->max >> bits)
		bits++;
	return bits + 2;
}

enum sy_giving sy_heap_gives(const struct sy_heap *heap)
{
	struct sy_policy_description is;

	sy_policy_describe(heap->policy, &is);
	return heap->never_reclaims ? SY_GIVES_NEVER : is.gives;
}

void sy_policy_describe(const struct sy_policy *policy, struct sy_policy_description *description)
{
	enum sy_giving usual = policy->shrink ? SY_GIVES_WHEN_ASKED : SY_GIVES_AT_ONCE;

	*description = (struct sy_policy_description){ .name = policy->name, .summary = policy->summary, .paper = policy->paper,
		                                       .tunables = policy->tunables, .tunable_count = policy->tunable_count,
		                                       .presets = policy->presets, .preset_count = policy->preset_count,
		                                       .gives = policy->never_reclaims ? SY_GIVES_NEVER : usual };
}

void sy_cache_describe(const struct sy_cache *cache, struct sy_cache_description *description)
{
	*description = (struct sy_cache_description){ .name = cache->name, .object_size = sy__debug_object_size(cache), .size = cache->size,
		                                      .align = cache->align, .flags = cache->flags, .users = cache->users };
}
