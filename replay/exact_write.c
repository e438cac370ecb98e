/*
 * The exact measures as JSON.
 *
 * Ratios are made here, by integer division to six decimals (json.c), so that the text is the same on every machine. A
 * ratio of nothing is null, and so is whatever a malloc can't tell: it has no pages that could be counted.
 *
 *   total fragmentation      1 - requested bytes / bytes of held pages (Bonwick 1994, section 5.2)
 *   internal fragmentation   1 - requested bytes / bytes given to live objects
 *   unused ratio             free bytes in slab pages / bytes in slab pages (Kyritsis et al.)
 *   unusable free space      of an order: share of the free memory that is in smaller blocks (Gorman; Linux's
 *                            unusable_index)
 *
 * Caches. A cache that shares another's slabs (merging) says with whose, in merged_into, and has its own requests and
 * bytes, while slabs and pages are stated once, at the cache that owns them. Where objects of all caches share pages,
 * slabs per cache are null. Rows that nobody used are left out.
 */
#include "exact.h"

#include <stdlib.h>

#define TOP_CALL_SITES 100u

/* A figure that a malloc can't give. */
static void measure(struct json *json, const struct exact *exact, const char *key, uint64_t value)
{
	if (exact->driver->heap)
		json_count(json, key, value);
	else
		json_null(json, key);
}

static void write_blocks(struct json *json, const struct exact *exact, const char *key,
                         const uint64_t blocks[SY_ORDERS])
{
	if (!exact->driver->heap) {
		json_null(json, key);
		return;
	}
	json_array(json, key);
	for (unsigned order = 0; order < SY_ORDERS; order++)
		json_count(json, NULL, blocks[order]);
	json_array_end(json);
}

/* ---- Scalars -------------------------------------------------------------------------------------------------- */

static void write_events(struct json *json, const struct exact *exact)
{
	json_count(json, "requests", exact->requests);
	json_count(json, "frees", exact->frees);
	json_count(json, "failures", exact->failures);
	json_count(json, "oversized_failures", exact->oversized_failures);
	json_count(json, "unknown_frees", exact->unknown_frees);
	json_count(json, "unknown_page_frees", exact->unknown_page_frees);
	json_count(json, "implied_frees", exact->implied_frees);
	json_count(json, "implied_allocations", exact->implied_allocations);
	json_count(json, "older_objects", exact->older_objects);
	json_count(json, "environment_requests", exact->environment_requests);
	json_count(json, "environment_frees", exact->environment_frees);
	measure(json, exact, "environment_failures", exact->environment_failures);
	measure(json, exact, "environment_pages_end", exact->environment_pages);
	json_count(json, "implied_page_allocations", exact->implied_page_allocations);
	json_count(json, "implied_page_frees", exact->implied_page_frees);
	measure(json, exact, "older_page_frees", exact->older_page_frees);
	measure(json, exact, "older_page_frees_missed", exact->older_page_frees_missed);
	if (exact->failed)
		json_count(json, "first_failed_event", exact->first_failed);
	else
		json_null(json, "first_failed_event");
}

/* The mean of held pages, both parts of the wide sum halved until they fit. */
static void write_mean(struct json *json, const struct exact *exact)
{
	uint64_t high = exact->held_by_time.high, low = exact->held_by_time.low, span = exact->driver->span_ns;

	if (!exact->driver->heap) {
		json_null(json, "held_pages_mean");
		return;
	}
	if (!span) {
		json_ratio(json, "held_pages_mean", exact->held_peak, 1);
		return;
	}
	while (high > UINT32_MAX) {
		low = (low >> 1) | (high & 1) << 31;
		high >>= 1;
		span >>= 1;
	}
	json_ratio(json, "held_pages_mean", high << 32 | low, span ? span : 1);
}

/* Pages that went to and fro between the allocator and the page allocator since the first event. */
static void write_traffic(struct json *json, const struct exact *exact, const struct point *point)
{
	uint64_t held = point->slab_pages + point->large_pages;

	measure(json, exact, "pages_taken", point->taken_pages);
	measure(json, exact, "pages_returned", point->taken_pages + exact->held_before - held);
}

static void write_memory(struct json *json, const struct exact *exact, const struct point *end)
{
	uint64_t held = end->slab_pages + end->large_pages;

	measure(json, exact, "held_pages_end", held);
	measure(json, exact, "held_pages_peak", exact->held_peak);
	write_mean(json, exact);
	write_traffic(json, exact, end);
	measure(json, exact, "slab_pages_end", end->slab_pages);
	measure(json, exact, "slab_pages_peak", exact->slab_peak);
	measure(json, exact, "large_pages_end", end->large_pages);
	measure(json, exact, "large_pages_peak", exact->large_peak);
	measure(json, exact, "metadata_pages_end", end->metadata_pages);
	measure(json, exact, "metadata_pages_peak", exact->metadata_peak);
	json_count(json, "requested_bytes_end", exact->requested_bytes);
	json_count(json, "requested_bytes_peak", exact->requested_peak);
	json_rest(json, "total_fragmentation_end", exact->requested_bytes, held << SY_PAGE_SHIFT);
	json_rest(json, "total_fragmentation_peak", exact->requested_at_held_peak, exact->held_peak << SY_PAGE_SHIFT);
	json_rest(json, "internal_fragmentation_end", exact->requested_bytes,
	          exact->given_slab_bytes + exact->given_large_bytes);
}

static void write_unused(struct json *json, const struct exact *exact, const struct point *end)
{
	struct sy_heap *heap = exact->driver->heap;
	uint64_t bytes = end->slab_pages << SY_PAGE_SHIFT, unused;

	if (heap && sy_lab_unused_bytes(heap, &unused))
		json_ratio(json, "unused_ratio_end", unused, bytes);
	else
		json_rest(json, "unused_ratio_end", exact->given_slab_bytes, bytes);
}

static void write_unusable(struct json *json, const struct exact *exact, const uint64_t blocks[SY_ORDERS])
{
	uint64_t free_pages = 0, smaller = 0;

	if (!exact->driver->heap) {
		json_null(json, "unusable_free_space_index");
		return;
	}
	for (unsigned order = 0; order < SY_ORDERS; order++)
		free_pages += blocks[order] << order;
	json_array(json, "unusable_free_space_index");
	for (unsigned order = 0; order < SY_ORDERS; order++) {
		json_ratio(json, NULL, smaller, free_pages);
		smaller += blocks[order] << order;
	}
	json_array_end(json);
}

static void write_pages(struct json *json, const struct exact *exact, const struct point *end)
{
	const struct sy_heap *heap = exact->driver->heap;
	uint64_t slow = heap ? sy_lab_counters(heap)->slow_allocs + sy_lab_counters(heap)->slow_frees - exact->slow_before : 0;

	measure(json, exact, "fragmentation_events", end->fragmentation_events);
	write_blocks(json, exact, "free_blocks_before", exact->free_blocks_before);
	write_blocks(json, exact, "free_blocks_after", end->free_blocks);
	write_unusable(json, exact, end->free_blocks);
	if (heap)
		json_rest(json, "fast_path_share", slow, exact->operations);
	else
		json_null(json, "fast_path_share");
}

static void write_nodes(struct json *json, const struct exact *exact)
{
	const struct locality *locality = &exact->locality;

	measure(json, exact, "local_allocations", locality->local_allocations);
	measure(json, exact, "remote_allocations", locality->remote_allocations);
	measure(json, exact, "local_frees", locality->local_frees);
	measure(json, exact, "remote_frees", locality->remote_frees);
	measure(json, exact, "node_requests_met", locality->node_requests_met);
	measure(json, exact, "node_requests_missed", locality->node_requests_missed);
}

/* ---- Over time ------------------------------------------------------------------------------------------------ */

static void write_snapshots(struct json *json, const struct exact *exact)
{
	json_array(json, "snapshots");
	for (uint64_t i = 0; i < exact->snapshot_count; i++) {
		const struct snapshot *snapshot = &exact->snapshots[i];

		json_object(json, NULL);
		json_count(json, "number", snapshot->number);
		json_count(json, "time", snapshot->at.time);
		measure(json, exact, "slab_pages", snapshot->at.slab_pages);
		measure(json, exact, "large_pages", snapshot->at.large_pages);
		write_traffic(json, exact, &snapshot->at);
		json_count(json, "requested_bytes", snapshot->at.requested_bytes);
		write_blocks(json, exact, "free_blocks", snapshot->at.free_blocks);
		json_object_end(json);
	}
	json_array_end(json);
}

static uint64_t point_time(const struct point *point)
{
	return point->time;
}

static uint64_t point_held(const struct point *point)
{
	return point->slab_pages + point->large_pages;
}

static uint64_t point_slab(const struct point *point)
{
	return point->slab_pages;
}

static uint64_t point_large(const struct point *point)
{
	return point->large_pages;
}

static uint64_t point_metadata(const struct point *point)
{
	return point->metadata_pages;
}

static uint64_t point_requested(const struct point *point)
{
	return point->requested_bytes;
}

static uint64_t point_events(const struct point *point)
{
	return point->fragmentation_events;
}

static void write_curve(struct json *json, const struct exact *exact, const char *key, bool known,
                        uint64_t (*value)(const struct point *))
{
	if (!known) {
		json_null(json, key);
		return;
	}
	json_array(json, key);
	for (unsigned i = 0; i < exact->point_count; i++)
		json_count(json, NULL, value(&exact->points[i]));
	json_array_end(json);
}

static void write_series(struct json *json, const struct exact *exact)
{
	bool pages = exact->driver->heap != NULL;

	json_object(json, "series");
	write_curve(json, exact, "time", true, point_time);
	write_curve(json, exact, "held_pages", pages, point_held);
	write_curve(json, exact, "slab_pages", pages, point_slab);
	write_curve(json, exact, "large_pages", pages, point_large);
	write_curve(json, exact, "metadata_pages", pages, point_metadata);
	write_curve(json, exact, "requested_bytes", true, point_requested);
	write_curve(json, exact, "fragmentation_events", pages, point_events);
	if (pages) {
		json_array(json, "free_blocks");
		for (unsigned i = 0; i < exact->point_count; i++)
			write_blocks(json, exact, NULL, exact->points[i].free_blocks);
		json_array_end(json);
	} else {
		json_null(json, "free_blocks");
	}
	json_object_end(json);
}

/* ---- Who asked ------------------------------------------------------------------------------------------------ */

static void write_tally(struct json *json, const struct tally *tally)
{
	json_count(json, "requests", tally->requests);
	json_count(json, "live", tally->live);
	json_count(json, "live_bytes", tally->live_bytes);
	json_count(json, "peak_bytes", tally->peak_bytes);
}

/* counts: of the cache that owns the slabs; NULL: they are told elsewhere, or by nobody. */
static void write_slabs(struct json *json, const struct sy_cache_counts *counts)
{
	static const char *const keys[] = { "slabs", "partial_slabs", "full_slabs", "pages" };

	if (counts) {
		json_count(json, keys[0], counts->slabs);
		json_count(json, keys[1], counts->partial_slabs);
		json_count(json, keys[2], counts->full_slabs);
		json_count(json, keys[3], counts->pages);
		return;
	}
	for (unsigned i = 0; i < sizeof keys / sizeof *keys; i++)
		json_null(json, keys[i]);
}

static bool was_used(const struct tally *tally)
{
	return tally->requests || tally->peak_bytes || tally->live;
}

/* The name of whose slabs the trace's cache lives in; NULL: its own. */
static const char *merged_into(const struct exact *exact, uint64_t number)
{
	const struct scratch *scratch = exact->driver->scratch;
	struct sy_cache *const *caches = exact->driver->caches;
	struct sy_cache_description is;

	sy_cache_describe(caches[number], &is);
	if (is.flags & SY_CACHE_KMALLOC)
		return is.name;
	for (uint64_t turn = 0; is.users > 1 && scratch_cache_at(scratch, turn) != number; turn++)
		if (caches[scratch_cache_at(scratch, turn)] == caches[number])
			return scratch->caches[scratch_cache_at(scratch, turn)].name;
	return NULL;
}

/* One row of a policy's cache; number: that of the trace, or -1. */
static void write_cache(struct json *json, const char *name, int64_t number, struct sy_cache *cache,
                        const struct tally *tally, const char *owner)
{
	struct sy_cache_description is;
	struct sy_cache_counts counts;

	sy_cache_describe(cache, &is);
	sy_cache_count(cache, &counts);
	if (!was_used(tally) && (owner || !counts.slabs))
		return;
	json_object(json, NULL);
	json_signed(json, "cache", number);
	json_string(json, "name", name);
	json_count(json, "size", is.size);
	write_tally(json, tally);
	write_slabs(json, owner || (counts.objects && !counts.slabs) ? NULL : &counts);
	if (owner)
		json_string(json, "merged_into", owner);
	else
		json_null(json, "merged_into");
	json_object_end(json);
}

/* A row of what belongs to no cache. pages: NULL where they can't be told. */
static void write_uncached(struct json *json, const char *name, const struct tally *tally, const uint64_t *pages)
{
	if (!was_used(tally))
		return;
	json_object(json, NULL);
	json_signed(json, "cache", -1);
	json_string(json, "name", name);
	json_null(json, "size");
	write_tally(json, tally);
	json_null(json, "slabs");
	json_null(json, "partial_slabs");
	json_null(json, "full_slabs");
	if (pages)
		json_count(json, "pages", *pages);
	else
		json_null(json, "pages");
	json_null(json, "merged_into");
	json_object_end(json);
}

/* A row of a trace's cache under a malloc. */
static void write_plain_cache(struct json *json, const struct scratch_cache *cache, uint64_t number,
                              const struct tally *tally)
{
	if (!was_used(tally))
		return;
	json_object(json, NULL);
	json_count(json, "cache", number);
	json_string(json, "name", cache->name);
	json_count(json, "size", cache->object_size);
	write_tally(json, tally);
	write_slabs(json, NULL);
	json_null(json, "merged_into");
	json_object_end(json);
}

static void write_caches(struct json *json, const struct exact *exact, const struct point *end)
{
	const struct scratch *scratch = exact->driver->scratch;

	json_array(json, "caches");
	for (uint64_t i = 0; i < scratch->cache_count; i++) {
		const struct scratch_cache *cache = &scratch->caches[i];

		if (exact->driver->heap)
			write_cache(json, cache->name, (int64_t)i, exact->driver->caches[i], &exact->rows[i], merged_into(exact, i));
		else
			write_plain_cache(json, cache, i, &exact->rows[i]);
	}
	for (unsigned i = 0; i < exact->class_count; i++)
		write_cache(json, exact->classes[i].is.name, -1, exact->classes[i].cache, &exact->rows[exact_class_row(exact, i)], NULL);
	write_uncached(json, "kmalloc", &exact->rows[exact_kmalloc_row(exact)], NULL);
	write_uncached(json, "kmalloc (pages)", &exact->rows[exact_large_row(exact)], &end->large_pages);
	json_array_end(json);
}

struct ranked {
	struct tally tally;
	uint32_t number;
	bool shown;
};

static int order(uint64_t a, uint64_t b, const struct ranked *x, const struct ranked *y)
{
	return a != b ? (a < b) - (a > b) : (x->number > y->number) - (x->number < y->number);
}

static int by_requests(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;

	return order(x->tally.requests, y->tally.requests, x, y);
}

static int by_peak(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;

	return order(x->tally.peak_bytes, y->tally.peak_bytes, x, y);
}

static void show_top(struct ranked *sites, uint32_t count, int (*compare)(const void *, const void *))
{
	qsort(sites, count, sizeof *sites, compare);
	for (uint32_t i = 0; i < count && i < TOP_CALL_SITES; i++)
		sites[i].shown = true;
}

/* The top by requests and the top by peak, in order of peak. */
static void write_call_sites(struct json *json, const struct exact *exact)
{
	uint32_t all = exact->driver->scratch->run->call_sites, count = 0;
	struct ranked *sites = calloc((size_t)all + 1, sizeof *sites);

	json_array(json, "call_sites");
	for (uint32_t i = 0; sites && i < all; i++)
		if (was_used(&exact->call_sites[i]))
			sites[count++] = (struct ranked){ .tally = exact->call_sites[i], .number = i };
	show_top(sites, count, by_requests);
	show_top(sites, count, by_peak);
	for (uint32_t i = 0; i < count; i++) {
		if (!sites[i].shown)
			continue;
		json_object(json, NULL);
		json_count(json, "call_site", sites[i].number);
		write_tally(json, &sites[i].tally);
		json_object_end(json);
	}
	json_array_end(json);
	free(sites);
}

/* ---- Zones ---------------------------------------------------------------------------------------------------- */

static void write_zone(struct json *json, const struct sy_zone_counts *zone)
{
	json_object(json, NULL);
	json_string(json, "name", zone->name);
	json_count(json, "node", zone->node);
	json_array(json, "free_blocks");
	for (unsigned type = 0; type < SY_MIGRATE_TYPES; type++) {
		json_array(json, NULL);
		for (unsigned order = 0; order < SY_ORDERS; order++)
			json_count(json, NULL, zone->free_blocks[type][order]);
		json_array_end(json);
	}
	json_array_end(json);
	json_array(json, "pageblocks");
	for (unsigned type = 0; type < SY_MIGRATE_TYPES; type++)
		json_count(json, NULL, zone->pageblocks[type]);
	json_array_end(json);
	json_object_end(json);
}

static void write_zones(struct json *json, const struct exact *exact)
{
	struct sy_pages_counts counts;

	exact_count_pages(exact, &counts);
	json_array(json, "zones");
	for (unsigned i = 0; i < counts.zone_count; i++)
		write_zone(json, &counts.zones[i]);
	json_array_end(json);
}

static void write_scalars(struct json *json, const struct exact *exact, const struct point *end)
{
	write_events(json, exact);
	write_memory(json, exact, end);
	write_unused(json, exact, end);
	write_pages(json, exact, end);
	write_nodes(json, exact);
	exact_write_pressure(json, exact);
}

void exact_write_scalars(struct json *json, struct exact *exact)
{
	struct point end;

	exact_look(exact, &end);
	json_object(json, NULL);
	json_object(json, "exact");
	write_scalars(json, exact, &end);
	json_object_end(json);
	json_object_end(json);
}

void exact_write(struct json *json, struct exact *exact)
{
	struct point end;

	exact_look(exact, &end);
	json_object(json, NULL);
	json_object(json, "exact");
	write_scalars(json, exact, &end);
	write_snapshots(json, exact);
	write_series(json, exact);
	write_caches(json, exact, &end);
	write_call_sites(json, exact);
	write_zones(json, exact);
	exact_write_end(json, exact);
	json_object_end(json);
	json_object_end(json);
}
