/*
 * Slabs older than the trace that stand beside what is held.
 *
 * A trace from its kernel's start begins a moment after the allocator did, so some slabs were there, and the trace tells by its addresses
 * which room they had. A replay that begins empty has them too (lab/slabyard/replay/bootslabs.py). They are no growth: of the recorded
 * kernel's pages those count that it was seen to take, so of the replay's those do that came after them.
 *
 * A page in which an older object stays never goes. So what is beside is a number, found once before the first event. Older pages
 * without such an object count as held, as long as they are.
 */
#include "exact.h"

#include <stdlib.h>

struct heads {
	const struct sy_heap *heap;
	struct sy_lab_place *places; /* of older objects that stay */
	size_t count;
};

static void note_place(void *context, const struct scratch_older *older, void *object)
{
	struct heads *heads = context;

	if (older->handle == NO_HANDLE)
		heads->places[heads->count++] = sy_lab_place_of(heads->heap, object);
}

static int by_head(const void *a, const void *b)
{
	uintptr_t x = (uintptr_t)((const struct sy_lab_place *)a)->head, y = (uintptr_t)((const struct sy_lab_place *)b)->head;

	return (x > y) - (x < y);
}

bool exact_find_beside(struct exact *exact, struct fault *fault)
{
	const struct driver *driver = exact->driver;
	struct heads heads = { .heap = driver->heap };

	if (!driver->heap || !driver->scratch->run->beside)
		return true;
	heads.places = calloc((size_t)driver->laid_count + 1, sizeof *heads.places);
	if (!heads.places)
		return refuse(fault, "no memory for the places of %llu older objects", (unsigned long long)driver->laid_count);
	driver_each_older(driver, note_place, &heads);
	qsort(heads.places, heads.count, sizeof *heads.places, by_head);
	for (size_t i = 0; i < heads.count; i++)
		if (!i || heads.places[i].head != heads.places[i - 1].head)
			*(heads.places[i].large ? &exact->beside_large : &exact->beside_slab) += (uint64_t)1 << heads.places[i].order;
	free(heads.places);
	return true;
}
