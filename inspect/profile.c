/*
 * Live objects by the stack that allocated them and by their cache, for heap profiles.
 *
 * Records know both where the heap audits (SLABYARD_DEBUG=U) and where it is the heap of samples; there each object stands for
 * `one_in` allocations. Objects of a heap without records are not told.
 */
#include "inspect.h"

#include <stdlib.h>

static struct sy_inspect_record *live; /* `room` of them */
static size_t count, room;

static int compare(const void *one, const void *other)
{
	const struct sy_inspect_record *a = one, *b = other;

	if (a->allocated.stack != b->allocated.stack)
		return a->allocated.stack < b->allocated.stack ? -1 : 1;
	return ((uintptr_t)a->cache > (uintptr_t)b->cache) - ((uintptr_t)a->cache < (uintptr_t)b->cache);
}

static void add_live(void *context, const struct sy_inspect_record *record)
{
	(void)context;
	if (record->state == SY_INSPECT_LIVE && count < room)
		live[count++] = *record;
}

/* False: there is no memory for the list. */
static bool list_live(const struct sy_heap *heap, size_t records)
{
	count = 0;
	room = records;
	free(live);
	live = calloc(records + 1, sizeof(*live));
	if (!live)
		return false;
	sy_inspect_records(heap, add_live, NULL);
	qsort(live, count, sizeof(*live), compare);
	return true;
}

static void write_sites(struct json *json, const struct sy_heap *heap)
{
	for (size_t from = 0, to; from < count; from = to) {
		uint64_t bytes = 0;

		for (to = from; to < count && compare(&live[from], &live[to]) == 0; to++)
			bytes += live[to].size;
		json_object(json, NULL);
		json_string(json, "cache", cache_name(live[from].cache));
		json_count(json, "objects", to - from);
		json_count(json, "bytes", bytes);
		stack_write(json, heap, live[from].allocated.stack);
		json_object_end(json);
	}
}

void profile_write(struct json *json, const struct sy_heap *heap)
{
	struct sy_inspect_heap told;

	sy_inspect_heap(heap, &told);
	if (!told.stacks || !list_live(heap, told.records_count)) {
		json_null(json, "profile");
		return;
	}
	json_object(json, "profile");
	json_count(json, "one_in", told.one_in);
	json_count(json, "missed", told.missed);
	json_count(json, "stacks_lost", told.stacks_lost);
	json_array(json, "sites");
	write_sites(json, heap);
	json_array_end(json);
	json_object_end(json);
}
