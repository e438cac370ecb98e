/*
 * Where the other program's heaps are, and how they become usable here.
 *
 * The library has an anchor (library/debug/anchor.h) among its data, which leads to all heaps of threads. The anchor tells
 * which build the library is. Another build's structures may differ, so its heaps are not read. A program may have the library
 * more than once, in libslabyard.so and in libslabyard-malloc.so; each has its own anchor.
 */
#include "inspect.h"

#include <stdlib.h>
#include <string.h>

#define MOST_SEARCHED ((size_t)64 << 20) /* bytes of a region: data of programs */

/* ---- Anchors -------------------------------------------------------------------------------------------------- */

struct search {
	const struct target *target;
	struct found *found;
	char other[SY_INSPECT_BUILD_BYTES]; /* a build that is not ours */
	bool unused; /* the library is there, and has made no heap */
};

static void consider(struct search *search, uintptr_t address, const void *copy)
{
	struct found *found = search->found;

	switch (sy_inspect_anchor(copy, address, search->other, &found->sample_rate)) {
	case SY_INSPECT_UNUSED:
		search->unused = true;
		break;
	case SY_INSPECT_ANCHOR:
		if (found->anchor_count < sizeof(found->anchors) / sizeof(*found->anchors))
			found->anchors[found->anchor_count++] = (const struct sy__anchor *)address;
		break;
	default:
		break;
	}
}

static void search_region(struct search *search, const struct region *region)
{
	size_t bytes = region->end - region->start, there, step = sy_inspect_anchor_align;
	char *copy = bytes <= MOST_SEARCHED ? malloc(bytes) : NULL;

	there = copy ? target_read(search->target, region->start, copy, bytes) : 0;
	for (size_t at = -region->start % step; at + sy_inspect_anchor_bytes <= there; at += step)
		consider(search, region->start + at, copy + at);
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
		              "with that library", target->name, search.other, sy_inspect_build());
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
	for (unsigned i = 0; i < found->anchor_count; i++)
		for (struct sy_heap *heap = NULL; found->count < most && (heap = sy_inspect_next_heap(found->anchors[i], heap));)
			found->heaps[found->count++] = heap;
}

bool heaps_mappings(const struct found *found, size_t *objects, size_t *bytes)
{
	for (unsigned i = 0; i < found->anchor_count; i++)
		if (sy_inspect_mappings(found->anchors[i], objects, bytes))
			return true;
	return false;
}

void heaps_adopt_slots(struct found *found)
{
	found->inside = 0;
	for (unsigned i = 0; i < found->anchor_count; i++)
		found->inside += sy_inspect_adopt_slots(found->anchors[i], image_has);
}

bool heaps_adopt(struct found *found, struct fault *fault)
{
	for (unsigned i = 0; i < found->count; i++)
		if (!sy_inspect_adopt(found->heaps[i], found->anchors, found->anchor_count))
			return refuse(fault, "the heap at %p is damaged: its policy is none of the library's",
			              (void *)found->heaps[i]);
	return true;
}
