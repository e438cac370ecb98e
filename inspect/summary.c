/*
 * What is in a heap: by cache, its slabs, how full they are, and what of them is used.
 *
 * Everything is counted by one walk. Nothing asks the policy's own counts: these take locks, which a stopped thread may hold.
 */
#include "inspect.h"

#include <stdlib.h>
#include <string.h>

#define FILLS 6u /* how full slabs are: empty, up to a quarter, half, three quarters, less than all, full */
#define MOST_CACHES 4096u

struct count {
	const struct sy_cache *cache; /* NULL: of any cache, or large */
	uint64_t slabs, bytes, objects, used, used_bytes, slot, node, waiting, overhead;
	bool uncounted; /* it has used memory with an unknown number of objects */
	uint64_t fills[FILLS];
};

struct slab {
	struct count *count;
	uint64_t objects, used, used_bytes, free_bytes;
};

struct summary {
	struct json *json;
	const struct question *question;
	struct count counts[MOST_CACHES], shared, large;
	unsigned count;
	struct slab slab; /* that the walk is in */
	struct sy_slab seen;
};

static struct summary summary;

/* ---- Counting ------------------------------------------------------------------------------------------------- */

static struct count *count_of(const struct sy_slab *slab)
{
	static unsigned last;

	if (slab->large)
		return &summary.large;
	if (!slab->cache)
		return &summary.shared;
	if (last < summary.count && summary.counts[last].cache == slab->cache)
		return &summary.counts[last];
	for (last = 0; last < summary.count; last++)
		if (summary.counts[last].cache == slab->cache)
			return &summary.counts[last];
	return &summary.shared;
}

static bool add_cache(void *context, const struct sy_cache *cache)
{
	(void)context;
	if (summary.count < MOST_CACHES)
		summary.counts[summary.count++] = (struct count){ .cache = cache };
	return true;
}

static unsigned fill_of(const struct slab *slab)
{
	uint64_t all = slab->used_bytes + slab->free_bytes;

	if (!slab->used_bytes)
		return 0;
	return slab->free_bytes ? 1 + (unsigned)((slab->used_bytes * 4 - 1) / all) : FILLS - 1;
}

static bool is_asked(const struct sy_slab *slab)
{
	const char *name = summary.question->cache;

	return name && !slab->large && (!*name || (slab->cache && strcmp(sy_inspect_cache_name(slab->cache), name) == 0));
}

void slab_begin(struct json *json, const char *key, const struct sy_slab *slab)
{
	static const char *const owners[] = { "", "slot", "node" };

	json_object(json, key);
	address_write(json, "address", slab->address);
	json_string(json, "cache", slab->cache ? sy_inspect_cache_name(slab->cache) : NULL);
	json_count(json, "bytes", slab->bytes);
	json_string(json, "list", slab->list);
	json_string(json, "owner_kind", owners[slab->owner_kind]);
	json_count(json, "owner", slab->owner);
}

static void write_slab(const struct slab *slab)
{
	struct json *json = summary.json;

	slab_begin(json, NULL, &summary.seen);
	json_count(json, "used_bytes", slab->used_bytes);
	json_count(json, "free_bytes", slab->free_bytes);
	json_known(json, "objects", !slab->count->uncounted, slab->objects);
	json_known(json, "used", !slab->count->uncounted, slab->used);
	json_object_end(json);
}

static void end_slab(void)
{
	struct slab *slab = &summary.slab;
	struct count *count = slab->count;

	if (!count)
		return;
	count->slabs++;
	count->objects += slab->objects;
	count->used += slab->used;
	count->fills[fill_of(slab)]++;
	if (is_asked(&summary.seen))
		write_slab(slab);
	slab->count = NULL;
}

static bool begin_slab(void *context, const struct sy_slab *seen)
{
	(void)context;
	end_slab();
	summary.seen = *seen;
	summary.slab = (struct slab){ .count = count_of(seen) };
	summary.slab.count->bytes += seen->bytes;
	return true;
}

static bool add_part(void *context, const struct sy_slab *seen, const struct sy_part *part)
{
	struct count *count = summary.slab.count;
	bool is_first = !seen->large || sy_inspect_is_first_block(seen); /* a large object's first block alone knows its size */
	bool is_object = part->is_object && is_first;

	(void)context;
	summary.slab.objects += is_object;
	if (part->state == SY_PART_USED) {
		summary.slab.used += is_object;
		summary.slab.used_bytes += part->bytes;
		count->used_bytes += part->bytes;
		count->uncounted = count->uncounted || !part->is_object;
	} else if (part->state == SY_PART_BOOKKEEPING || part->state == SY_PART_COLOUR || part->state == SY_PART_UNUSED) {
		count->overhead += part->bytes;
	} else {
		summary.slab.free_bytes += part->bytes;
		count->slot += part->state == SY_PART_SLOT;
		count->node += part->state == SY_PART_NODE;
		count->waiting += part->state == SY_PART_WAITING;
	}
	return true;
}

/* ---- Writing -------------------------------------------------------------------------------------------------- */

static void write_count(struct json *json, const char *key, const char *name, const struct count *count)
{
	uint32_t object_size = 0, size = count->cache ? sy_inspect_cache_size(count->cache, &object_size) : 0;

	json_object(json, key);
	json_string(json, "name", name);
	json_known(json, "object_size", count->cache, object_size);
	json_known(json, "size", count->cache, size);
	json_count(json, "slabs", count->slabs);
	json_count(json, "bytes", count->bytes);
	json_known(json, "objects", !count->uncounted, count->objects);
	json_known(json, "used", !count->uncounted, count->used);
	json_count(json, "used_bytes", count->used_bytes);
	json_count(json, "cached_by_slots", count->slot);
	json_count(json, "cached_by_nodes", count->node);
	json_count(json, "waiting_slabs", count->waiting);
	json_count(json, "overhead_bytes", count->overhead);
	json_counts(json, "fill", count->fills, FILLS);
	json_object_end(json);
}

static void write_policy(struct json *json, const struct sy_inspect_heap *told)
{
	json_string(json, "policy", told->policy);
	json_object(json, "tunables");
	for (unsigned i = 0; i < told->tunable_count && i < SY_MAX_TUNABLES; i++) {
		const struct sy_tunable *tunable = &told->tunables[i];
		char text[SY_INSPECT_VALUE_BYTES];

		sy_inspect_value(text, tunable, told->values[i]);
		if (told->values[i] == tunable->default_value)
			continue;
		if (tunable->choices)
			json_string(json, tunable->name, text);
		else
			json_signed(json, tunable->name, told->values[i]);
	}
	json_object_end(json);
	json_string(json, "checks", told->checks);
}

struct records {
	uint64_t live, quarantined, gone, asked;
};

static void count_record(void *context, const struct sy_inspect_record *record)
{
	struct records *records = context;

	records->live += record->state == SY_INSPECT_LIVE;
	records->quarantined += record->state == SY_INSPECT_QUARANTINED;
	records->gone += record->state == SY_INSPECT_GONE;
	records->asked += record->state == SY_INSPECT_LIVE ? record->size : 0;
}

static void write_records(struct json *json, const struct sy_heap *heap, const struct sy_inspect_heap *told)
{
	struct records records = { 0 };

	if (!told->records) {
		json_null(json, "records");
		return;
	}
	sy_inspect_records(heap, count_record, &records);
	json_object(json, "records");
	json_count(json, "live", records.live);
	json_count(json, "quarantined", records.quarantined);
	json_count(json, "gone", records.gone);
	json_count(json, "asked_bytes", records.asked);
	json_count(json, "transactions", told->youngest);
	json_object_end(json);
}

static void write_pages(struct json *json, const struct sy_inspect_heap *told, uint64_t used_bytes)
{
	const struct sy_heap_counters *counters = told->counters;
	uint64_t held = (counters->slab_pages + counters->large_pages + counters->metadata_pages) * SY_PAGE_SIZE;

	json_count(json, "slab_bytes", counters->slab_pages * SY_PAGE_SIZE);
	json_count(json, "large_bytes", counters->large_pages * SY_PAGE_SIZE);
	json_count(json, "metadata_bytes", counters->metadata_pages * SY_PAGE_SIZE);
	json_count(json, "held_bytes", held);
	json_count(json, "free_backed_bytes", told->free_backed_bytes);
	json_count(json, "used_bytes", used_bytes);
	json_rest(json, "fragmentation", used_bytes, held);
	json_count(json, "page_requests", counters->page_requests);
	json_count(json, "page_failures", counters->page_failures);
}

void summary_write(struct json *json, struct sy_heap *heap, const struct question *question)
{
	const struct sy_visitor visitor = { begin_slab, add_part, NULL, add_cache };
	struct sy_inspect_heap told;
	uint64_t used;

	sy_inspect_heap(heap, &told);
	memset(&summary, 0, sizeof(summary));
	summary.json = json;
	summary.question = question;
	json_object(json, NULL);
	address_write(json, "address", heap);
	write_policy(json, &told);
	json_array(json, "slabs");
	sy_heap_walk(heap, &visitor);
	end_slab();
	json_array_end(json);
	used = summary.shared.used_bytes + summary.large.used_bytes;
	json_array(json, "caches");
	for (unsigned i = 0; i < summary.count; i++) {
		write_count(json, NULL, sy_inspect_cache_name(summary.counts[i].cache), &summary.counts[i]);
		used += summary.counts[i].used_bytes;
	}
	json_array_end(json);
	write_count(json, "shared", "any size", &summary.shared);
	write_count(json, "large", "large", &summary.large);
	write_records(json, heap, &told);
	if (question->profile)
		profile_write(json, heap);
	write_pages(json, &told, used);
	json_object_end(json);
}
