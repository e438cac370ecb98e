/*
 * A snapshot of a script's machine, as JSON: all slabs and large allocations, their parts, and the script's objects in
 * them.
 *
 * An object in use is found by its address among the used parts of the heap. A freed one is shown where it was, as long as that place is
 * free, so that a reader sees where each object went; of several, the one freed last.
 *
 * Caches are listed in order of their creation. Of the heap's own caches, those with slabs are listed. Pages are numbered from the first
 * one that the machine has.
 */
#include "layout.h"

#include <string.h>

#include "library/lab/replay.h"

struct writer {
	struct layout *layout;
	struct json *json;
	bool in_slab; /* whose parts are being written */
};

static const char *const state_names[SY_PART_STATES] = { "used", "free", "slot", "node", "waiting", "bookkeeping", "colour", "unused" };
static const char *const owner_names[] = { "none", "slot", "node" };

/* Whether a later object of the script is shown at the same place. */
static bool is_covered(const struct layout *layout, unsigned index)
{
	for (unsigned i = index + 1; i < layout->object_count; i++)
		if (layout->objects[i].memory == layout->objects[index].memory)
			return true;
	return false;
}

static void write_objects(struct writer *writer, const char *start, size_t bytes, bool used)
{
	const struct layout *layout = writer->layout;

	json_array(writer->json, "objects");
	for (unsigned i = 0; i < layout->object_count; i++) {
		const struct layout_object *object = &layout->objects[i];
		size_t offset = (size_t)(object->memory - start);

		if (object->memory < start || offset >= bytes || object->live != used || is_covered(layout, i))
			continue;
		json_object(writer->json, NULL);
		json_string(writer->json, "id", object->name);
		json_count(writer->json, "offset", offset);
		json_count(writer->json, "bytes", object->bytes);
		if (object->cache)
			json_string(writer->json, "cache", object->cache->name);
		else
			json_null(writer->json, "cache");
		json_object_end(writer->json);
	}
	json_array_end(writer->json);
}

static bool write_part(void *context, const struct sy_slab *slab, const struct sy_part *part)
{
	struct writer *writer = context;
	struct json *json = writer->json;

	json_object(json, NULL);
	json_count(json, "offset", part->offset);
	json_count(json, "bytes", part->bytes);
	json_string(json, "state", state_names[part->state]);
	json_bool(json, "object", part->is_object);
	if (part->list) {
		json_string(json, "list", part->list);
		json_count(json, "owner", part->owner);
		json_count(json, "place", part->place);
	}
	write_objects(writer, slab->address + part->offset, part->bytes, part->state == SY_PART_USED);
	json_object_end(json);
	return true;
}

static void end_slab(struct writer *writer)
{
	if (!writer->in_slab)
		return;
	json_array_end(writer->json);
	json_object_end(writer->json);
	writer->in_slab = false;
}

static bool write_slab(void *context, const struct sy_slab *slab)
{
	struct writer *writer = context;
	struct json *json = writer->json;
	struct sy_cache_description is;

	end_slab(writer);
	writer->in_slab = true;
	json_object(json, NULL);
	json_count(json, "page", sy_page_number(writer->layout->pages, slab->page));
	json_count(json, "bytes", slab->bytes);
	json_count(json, "node", slab->node);
	json_bool(json, "large", slab->large);
	if (slab->cache) {
		sy_cache_describe(slab->cache, &is);
		json_string(json, "cache", is.name);
	} else {
		json_null(json, "cache");
	}
	json_string(json, "list", slab->list);
	json_string(json, "owner_kind", owner_names[slab->owner_kind]);
	json_count(json, "owner", slab->owner);
	json_count(json, "place", slab->place);
	json_array(json, "parts");
	return true;
}

static void write_caches(struct writer *writer)
{
	struct sy_cache_description is;

	json_array(writer->json, "caches");
	for (const struct sy_cache *cache = NULL; (cache = sy_lab_cache_after(writer->layout->heap, cache));) {
		sy_cache_describe(cache, &is);
		json_object(writer->json, NULL);
		json_string(writer->json, "name", is.name);
		json_count(writer->json, "object_bytes", is.object_size);
		json_count(writer->json, "bytes", is.size);
		json_count(writer->json, "align", is.align);
		json_object_end(writer->json);
	}
	json_array_end(writer->json);
}

void layout_snapshot(struct layout *layout, const char *title)
{
	struct writer writer = { .layout = layout, .json = &layout->json };
	const struct sy_visitor visitor = { write_slab, write_part, &writer, NULL };

	json_object(writer.json, NULL);
	json_string(writer.json, "title", title);
	write_caches(&writer);
	json_array(writer.json, "slabs");
	sy_heap_walk(layout->heap, &visitor);
	end_slab(&writer);
	json_array_end(writer.json);
	json_object_end(writer.json);
}
