/*
 * Whose an address is: which heap, slab and object it is in, what is beside that, and who allocated and freed it.
 */
#include "inspect.h"

#include "core/debug/layer.h"
#include "core/heap.h"
#include "core/page_interface.h"
#include "core/walk.h"
#include "library/debug/anchor.h"
#include "malloc/mapping_header.h"

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

static const char *const record_states[] = { "in use", "freed, kept in quarantine", "freed, and its memory may be used again" };

static void write_half(struct json *json, const char *key, const struct sy__debug *debug, uint64_t time, uint64_t thread,
                       uint32_t stack)
{
	json_object(json, key);
	json_count(json, "thread", thread);
	time_write(json, time);
	stack_write(json, debug, stack);
	json_object_end(json);
}

static void write_record(struct json *json, const char *key, const struct sy_heap *heap, const char *address)
{
	const struct sy__record *record = heap->debug && address ? sy__record_of(heap->debug, address) : NULL;

	if (!record) {
		json_null(json, key);
		return;
	}
	json_object(json, key);
	address_write(json, "object", record->object);
	json_count(json, "size", record->size);
	json_string(json, "state", record_states[record->state % 3]);
	json_string(json, "cache", record->cache ? record->cache->name : "general allocation");
	json_bool(json, "guarded", record->guarded);
	write_half(json, "allocated", heap->debug, record->allocated, record->allocator, record->allocation_stack);
	if (record->state == SY__RECORD_LIVE)
		json_null(json, "freed");
	else
		write_half(json, "freed", heap->debug, record->freed, record->freer, record->free_stack);
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
	write_record(json, "record", heap, slab->address + part->offset + (heap->debug && part->is_object ? SY__DEBUG_FRONT : 0));
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

/* page: the first one of a slab, or of a block of a large allocation. Of the latter only a walk from its first block can tell. */
static void write_in_slab(struct json *json, struct sy_heap *heap, struct sy_page *page, const struct question *question)
{
	struct look look = { .address = question->address, .json = json, .heap = heap, .all = question->slab };
	const struct sy_visitor visitor = { see_slab, see_part, &look, NULL };

	if (question->slab)
		json_array(json, "parts");
	if (sy__page_is_slab(page)) {
		sy__walk_skips_places = false;
		sy__walk_one(heap, page, &visitor);
	} else {
		sy_heap_walk(heap, &visitor);
	}
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
		const struct mapping_header *header = (const struct mapping_header *)page;

		if (header->mark == sy__mapping_mark(header)) {
			bool is_inside = address - (uintptr_t)header->start < header->bytes;

			json_string(json, "place", is_inside ? "a mapping of malloc's" : "outside of the heaps");
			json_count(json, "bytes", header->bytes);
			address_write(json, "object", header + 1);
			return true;
		}
		if (page <= least)
			return false;
	}
}

static void write_elsewhere(struct json *json, const struct found *found, const struct target *target, uintptr_t address)
{
	const struct region *region = region_of(&target->regions, address);

	if (region && heaps_mappings(found) && write_mapping(json, target, address))
		return;
	json_string(json, "place", region ? "outside of the heaps" : "not mapped");
	json_string(json, "region", region ? region->path : NULL);
}

/* ---- All of it ------------------------------------------------------------------------------------------------ */

static bool write_in_heap(struct json *json, struct sy_heap *heap, const struct question *question)
{
	const void *address = (const void *)question->address;
	struct sy_page *page = sy__pages_find(heap, address);
	bool recorded = heap->debug && sy__record_of(heap->debug, address), used = sy__pages_were_used(heap, address);

	if (!page && !recorded && !sy__holds(heap, address))
		return false;
	address_write(json, "heap", heap);
	if (!page && recorded)
		json_string(json, "place", "an object in pages of its own");
	else if (!page)
		json_string(json, "place", used ? "a free page of the heap" : "a page of the heap that was never used");
	else if (sy__page_is_metadata(page))
		json_string(json, "place", "bookkeeping of the heap");
	else
		write_in_slab(json, heap, page, question);
	write_record(json, "record", heap, address);
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
