/*
 * Where an address belongs: its heap, slab and object, the objects beside it, and the stacks that allocated and freed it.
 */
#include "inspect.h"

#include <string.h>

#define MOST_BACK ((size_t)1 << 30) /* bytes in which the start of a mapping is looked for */

struct piece {
	struct sy_part part;
	bool there;
};

struct look {
	uintptr_t address;
	struct sy_slab slab;
	bool found, all; /* all: each part is written */
	struct piece before, at, after;
	struct json *json;
	const struct sy_heap *heap;
};

/* ---- Records -------------------------------------------------------------------------------------------------- */

static void write_call(struct json *json, const char *key, const struct sy_heap *heap, const struct sy_inspect_call *call)
{
	json_object(json, key);
	json_count(json, "thread", call->thread);
	time_write(json, call->time);
	stack_write(json, heap, call->stack);
	json_object_end(json);
}

static void write_record(struct json *json, const struct sy_heap *heap, const struct sy_inspect_record *record)
{
	static const char *const states[] = {
		[SY_INSPECT_LIVE] = "in use",
		[SY_INSPECT_QUARANTINED] = "freed, kept in quarantine",
		[SY_INSPECT_GONE] = "freed, and its memory may be used again",
	};

	if (!record) {
		json_null(json, "record");
		return;
	}
	json_object(json, "record");
	address_write(json, "object", record->object);
	json_count(json, "size", record->size);
	json_string(json, "state", states[record->state]);
	json_string(json, "cache", cache_name(record->cache));
	json_bool(json, "guarded", record->guarded);
	write_call(json, "allocated", heap, &record->allocated);
	if (record->state == SY_INSPECT_LIVE)
		json_null(json, "freed");
	else
		write_call(json, "freed", heap, &record->freed);
	json_object_end(json);
}

/* ---- Parts of slabs ------------------------------------------------------------------------------------------- */

static const char *state_of(const struct sy_slab *slab, const struct sy_part *part)
{
	static const char *const names[SY_PART_STATES] = {
		"in use", "free", "free, kept by a slot", "free, kept by a node",
		"waiting for a grace period", "bookkeeping", "colour", "unused",
	};

	if (part->lists > 1)
		return "free more than once: the heap is corrupt";
	if (slab->large && part->state == SY_PART_UNUSED)
		return "behind what was asked for";
	return names[part->state];
}

static void write_part(struct json *json, const char *key, const struct sy_slab *slab, const struct piece *piece,
                       const struct sy_heap *heap)
{
	const struct sy_part *part = &piece->part;
	struct sy_inspect_record record;

	if (!piece->there) {
		json_null(json, key);
		return;
	}
	json_object(json, key);
	address_write(json, "address", slab->address + part->offset);
	json_count(json, "bytes", part->bytes);
	json_string(json, "state", state_of(slab, part));
	json_string(json, "list", part->list);
	json_count(json, "owner", part->owner);
	json_count(json, "place", part->place);
	write_record(json, heap, sy_inspect_record_of_part(heap, slab, part, &record) ? &record : NULL);
	json_object_end(json);
}

static bool is_in(const struct look *look, const struct sy_slab *slab)
{
	return look->address - (uintptr_t)slab->address < slab->bytes;
}

static bool see_slab(void *context, const struct sy_slab *slab)
{
	struct look *look = context;

	if (look->found)
		return false; /* the one before was it */
	if (is_in(look, slab)) {
		look->slab = *slab;
		look->found = true;
	}
	return true;
}

static bool see_part(void *context, const struct sy_slab *slab, const struct sy_part *part)
{
	struct look *look = context;
	uintptr_t offset = look->address - (uintptr_t)slab->address;
	struct piece piece = { *part, true };

	if (!is_in(look, slab))
		return true;
	if (look->all)
		write_part(look->json, NULL, slab, &piece, look->heap);
	if (part->offset + part->bytes <= offset)
		look->before = piece;
	else if (part->offset <= offset)
		look->at = piece;
	else if (!look->after.there)
		look->after = piece;
	return true;
}

/* Whether an address is in a large allocation, only a walk from its first block can tell. */
static void write_in_slab(struct json *json, struct sy_heap *heap, bool large, const struct question *question)
{
	struct look look = { .address = question->address, .json = json, .heap = heap, .all = question->slab };
	const struct sy_visitor visitor = { see_slab, see_part, &look, NULL };

	if (question->slab)
		json_array(json, "parts");
	if (large)
		sy_heap_walk(heap, &visitor);
	else
		sy_inspect_walk_slab(heap, (const void *)question->address, &visitor);
	if (question->slab)
		json_array_end(json);
	if (!look.found)
		return;
	json_string(json, "place", look.slab.large ? "a large allocation" : "a slab");
	slab_begin(json, "slab_of", &look.slab);
	json_count(json, "place", look.slab.place);
	json_object_end(json);
	write_part(json, "part", &look.slab, &look.at, heap);
	write_part(json, "before", &look.slab, &look.before, heap);
	write_part(json, "after", &look.slab, &look.after, heap);
}

/* ---- Elsewhere ------------------------------------------------------------------------------------------------ */

/* An object that is a mapping of its own (malloc/mapping.c): the mark of its header stands in the mapping's first page. */
static bool write_mapping(struct json *json, const struct target *target, uintptr_t address)
{
	const struct region *region = region_of(&target->regions, address);
	uintptr_t page = address & ~(uintptr_t)(SY_PAGE_SIZE - 1), least = region ? region->start : 0;

	if (!region || !region->writable || (region->path && *region->path == '/'))
		return false;
	if (page - least > MOST_BACK)
		least = page - MOST_BACK;
	for (;; page -= SY_PAGE_SIZE) {
		struct sy_inspect_mapping mapping;

		if (sy_inspect_mapping_at((const void *)page, &mapping)) {
			bool is_inside = address - (uintptr_t)mapping.start < mapping.bytes;

			json_string(json, "place", is_inside ? "a mapping of malloc's" : "outside of the heaps");
			json_count(json, "bytes", mapping.bytes);
			address_write(json, "object", mapping.object);
			return true;
		}
		if (page <= least)
			return false;
	}
}

static void write_elsewhere(struct json *json, const struct found *found, const struct target *target, uintptr_t address)
{
	const struct region *region = region_of(&target->regions, address);
	size_t objects, bytes;

	if (region && heaps_mappings(found, &objects, &bytes) && write_mapping(json, target, address))
		return;
	json_string(json, "place", region ? "outside of the heaps" : "not mapped");
	json_string(json, "region", region ? region->path : NULL);
}

/* ---- All of it ------------------------------------------------------------------------------------------------ */

static bool write_in_heap(struct json *json, struct sy_heap *heap, const struct question *question)
{
	const void *address = (const void *)question->address;
	enum sy_inspect_place place = sy_inspect_place_of(heap, address);
	struct sy_inspect_record record;
	bool recorded = sy_inspect_record_of(heap, address, &record);

	if (place == SY_INSPECT_OUTSIDE && !recorded)
		return false;
	address_write(json, "heap", heap);
	if (place >= SY_INSPECT_SLAB)
		write_in_slab(json, heap, place == SY_INSPECT_LARGE, question);
	else if (place == SY_INSPECT_BOOKKEEPING)
		json_string(json, "place", "bookkeeping of the heap");
	else if (recorded)
		json_string(json, "place", "an object in pages of its own");
	else
		json_string(json, "place", place == SY_INSPECT_FREE_PAGE ? "a free page of the heap" : "a page of the heap that was never used");
	write_record(json, heap, recorded ? &record : NULL);
	return true;
}

void whose_write(struct json *json, const struct found *found, const struct target *target, const struct question *question)
{
	bool known = false;

	json_object(json, "address");
	address_write(json, "address", (const void *)question->address);
	for (unsigned i = 0; i < found->count && !known; i++)
		known = write_in_heap(json, found->heaps[i], question);
	if (!known)
		write_elsewhere(json, found, target, question->address);
	json_object_end(json);
}
