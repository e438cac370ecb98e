/*
 * Where the other program's heaps are, and how they become usable here.
 *
 * The library has an anchor (library/debug/anchor.h) among its data, which leads to all heaps of threads. The anchor tells
 * which build the library is. Another build's structures may differ, so its heaps are not read. A program may have the library
 * more than once, in libslabyard.so and in libslabyard-malloc.so; each has its own anchor.
 *
 * A heap's structures lead to functions in one place, its policy. That is found again by its name; a hardened one
 * (core/policies/links.h) by way of the policy that it is a form of.
 */
#include "inspect.h"

#include "core/backend/slot_areas.h"
#include "core/debug/layer.h"
#include "core/list.h"
#include "core/page_interface.h"
#include "core/this_slot.h"
#include "library/debug/anchor.h"

#include <stdlib.h>
#include <string.h>

#define MOST_SEARCHED ((size_t)64 << 20) /* bytes of a region: data of programs */

/* ---- Anchors -------------------------------------------------------------------------------------------------- */

struct search {
	const struct target *target;
	struct found *found;
	char other[sizeof(((struct sy__anchor *)0)->build)]; /* a build that is not ours */
	bool unused; /* the library is there, and has made no heap */
};

static void consider(struct search *search, uintptr_t address, const struct sy__anchor *is)
{
	if (!is->self && is->bytes == sizeof(*is)) {
		search->unused = true;
		return;
	}
	if ((uintptr_t)is->self != address)
		return;
	if (is->sample_rate)
		search->found->sample_rate = is->sample_rate;
	if (is->bytes != sizeof(*is) || strncmp(is->build, sy__anchor.build, sizeof(is->build)) != 0)
		snprintf(search->other, sizeof(search->other), "%.*s", (int)sizeof(is->build) - 1, is->build);
	else if (search->found->anchor_count < sizeof(search->found->anchors) / sizeof(*search->found->anchors))
		search->found->anchors[search->found->anchor_count++] = (struct sy__anchor *)address;
}

static void search_region(struct search *search, const struct region *region)
{
	size_t bytes = region->end - region->start, there, step = _Alignof(struct sy__anchor);
	char *copy = bytes <= MOST_SEARCHED ? malloc(bytes) : NULL;

	there = copy ? target_read(search->target, region->start, copy, bytes) : 0;
	for (size_t at = -region->start % step; at + sizeof(struct sy__anchor) <= there; at += step) {
		struct sy__anchor is;

		if (memcmp(copy + at, SY__ANCHOR_MARK, sizeof(is.mark)))
			continue;
		memcpy(&is, copy + at, sizeof(is));
		consider(search, region->start + at, &is);
	}
	free(copy);
}

static void search_all(struct search *search)
{
	const struct target *target = search->target;

	for (size_t i = 0; i < target->regions.count; i++) {
		const struct region *region = &target->regions.list[i];

		if (region->readable && region->writable && (!target->modules.count || (region->path && *region->path == '/')))
			search_region(search, region);
	}
}

bool heaps_find_sampling(const struct target *target, struct found *found, struct fault *fault)
{
	struct search search = { .target = target, .found = found };

	search_all(&search);
	if (found->sample_rate)
		return true;
	return refuse(fault, "%s does not run on slabyard's malloc, or on one without sampling; start it by `slabyard run`",
	              target->name);
}

bool heaps_find(const struct target *target, struct found *found, struct fault *fault)
{
	struct search search = { .target = target, .found = found };

	search_all(&search);
	if (found->anchor_count)
		return true;
	if (*search.other)
		return refuse(fault, "%s has another build of slabyard, %s; this command is of %s: use the command that came "
		              "with that library", target->name, search.other, sy__anchor.build);
	if (search.unused)
		return refuse(fault, "%s has slabyard's library, but no heap that threads use", target->name);
	if (target->truncated)
		return refuse(fault, "%s is cut short, and lacks what leads to the heaps: raise the limit to core files "
		              "(ulimit -c unlimited)", target->name);
	return refuse(fault, "%s does not use slabyard: start it with `slabyard run`, or link it with the library", target->name);
}

void heaps_list(struct found *found)
{
	const unsigned most = sizeof(found->heaps) / sizeof(*found->heaps);

	found->count = 0;
	for (unsigned i = 0; i < found->anchor_count; i++) {
		const struct sy_list *list = found->anchors[i]->heaps;

		for (struct sy_list *at = list->next; at != list && found->count < most; at = at->next)
			found->heaps[found->count++] = sy__entry(at, struct sy_heap, threads_link);
	}
}

const struct sy__anchor *heaps_mappings(const struct found *found)
{
	for (unsigned i = 0; i < found->anchor_count; i++)
		if (found->anchors[i]->mappings)
			return found->anchors[i];
	return NULL;
}

/* ---- Memory that will be needed ------------------------------------------------------------------------------- */

struct want {
	const struct sy_heap *heap;
	bool all;
};

/* Nothing reads what a large allocation holds. */
static bool want_block(void *context, struct sy_page *page)
{
	const struct want *want = context;

	if (sy__page_is_metadata(page) || (want->all && sy__page_is_slab(page)))
		image_want(sy__page_address(want->heap, page), SY_PAGE_SIZE << sy__page_order(page) % SY_ORDERS);
	return true;
}

void heaps_want(const struct sy_heap *heap, bool all)
{
	struct want want = { heap, all };
	const struct sy__slot_area *area = NULL;
	const char *pages;

	image_want(sy__pages_base(heap)->table, sy__known_pages(heap) * sizeof(struct sy_page));
	while (sy__slot_areas_next(heap, &area, &pages))
		image_want(pages, (sy__slots_high() + (size_t)1) * SY_SLOT_STRIDE);
	sy__pages_find(heap, heap); /* reads what the walk below does not: which pages have memory */
	sy__pages_walk((struct sy_heap *)(uintptr_t)heap, want_block, &want);
}

/* ---- Use ------------------------------------------------------------------------------------------------------ */

static const struct sy_policy *policy_of(const struct found *found, const struct sy_policy *theirs)
{
	for (unsigned i = 0; i < found->anchor_count; i++)
		for (unsigned j = 0; j < SY__ANCHOR_POLICIES; j++) {
			const struct sy_policy *policy = sy_policy_find(found->anchors[i]->policies[j].name);

			if (policy && theirs == found->anchors[i]->policies[j].policy)
				return policy;
			if (policy && policy->hardened && theirs == found->anchors[i]->policies[j].hardened)
				return policy->hardened;
		}
	return NULL;
}

static bool adopt(const struct found *found, struct sy_heap *heap)
{
	struct sy__debug *debug = heap->debug;
	const struct sy_policy *policy = policy_of(found, debug ? debug->below : heap->policy);

	if (!policy)
		return false;
	if (!debug || heap->policy != &debug->policy)
		heap->policy = policy;
	if (debug)
		sy__debug_over(debug, policy);
	for (struct sy_list *at = heap->caches.next; at != &heap->caches; at = at->next) {
		struct sy_cache *cache = sy__entry(at, struct sy_cache, link);

		if (!debug || cache->policy != &debug->policy)
			cache->policy = policy;
	}
	return true;
}

bool heaps_adopt(struct found *found, struct fault *fault)
{
	for (unsigned i = 0; i < found->count; i++)
		if (!adopt(found, found->heaps[i]))
			return refuse(fault, "the heap at %p is damaged: its policy is none of the library's",
			              (void *)found->heaps[i]);
	return true;
}
