/*
 * Live objects by the stack that allocated them and by their cache, for heap profiles.
 *
 * Records know both where the heap audits (SLABYARD_DEBUG=U) and where it is the heap of samples; there each object stands for
 * `one_in` allocations. Objects of a heap without records are not told.
 */
#include "inspect.h"

#include "core/debug/debug.h"
#include "core/heap.h"

#include <stdlib.h>

static const struct sy__record **live;
static size_t count;

static int compare(const void *one, const void *other)
{
	const struct sy__record *a = *(const struct sy__record *const *)one, *b = *(const struct sy__record *const *)other;

	if (a->allocation_stack != b->allocation_stack)
		return a->allocation_stack < b->allocation_stack ? -1 : 1;
	return ((uintptr_t)a->cache > (uintptr_t)b->cache) - ((uintptr_t)a->cache < (uintptr_t)b->cache);
}

/* False: there is no memory for the list. */
static bool list_live(const struct sy__debug *debug)
{
	struct sy__record_walk walk = { .depth = 0 };
	const struct sy__record *record;

	count = 0;
	free(live);
	live = malloc((debug->records + 1) * sizeof(*live));
	while (live && (record = sy__record_next(debug, &walk)) && count < debug->records)
		if (record->state == SY__RECORD_LIVE)
			live[count++] = record;
	if (live)
		qsort(live, count, sizeof(*live), compare);
	return live;
}

static void write_sites(struct json *json, const struct sy__debug *debug)
{
	for (size_t from = 0, to; from < count; from = to) {
		uint64_t bytes = 0;

		for (to = from; to < count && compare(&live[from], &live[to]) == 0; to++)
			bytes += live[to]->size;
		json_object(json, NULL);
		json_string(json, "cache", live[from]->cache ? live[from]->cache->name : "general allocation");
		json_count(json, "objects", to - from);
		json_count(json, "bytes", bytes);
		stack_write(json, debug, live[from]->allocation_stack);
		json_object_end(json);
	}
}

void profile_write(struct json *json, const struct sy_heap *heap)
{
	const struct sy__debug *debug = heap->debug;

	if (!debug || !debug->stacks || !list_live(debug)) {
		json_null(json, "profile");
		return;
	}
	json_object(json, "profile");
	json_count(json, "one_in", debug->one_in);
	json_count(json, "missed", debug->missed);
	json_count(json, "stacks_lost", debug->stacks_lost);
	json_array(json, "sites");
	write_sites(json, debug);
	json_array_end(json);
	json_object_end(json);
}
