/*
 * The exact measures as JSON.
 *
 * Ratios are integer divisions to six decimals (json.c), so the text is the same on every machine. A ratio of nothing is null.
 * So is each figure about pages under a malloc, whose pages cannot be counted.
 *
 *   total fragmentation      1 - requested bytes / bytes of held pages (Bonwick 1994, section 5.2)
 *   internal fragmentation   1 - requested bytes / bytes given to live objects
 *   unused ratio             free bytes in slab pages / bytes in slab pages (Kyritsis et al.)
 *   unusable free space      of an order: share of the free memory that is in smaller blocks (Gorman; Linux's
 *                            unusable_index)
 *
 * Caches. A merged cache names the owner of its slabs in merged_into. It has its own requests and bytes; slabs and pages are
 * stated once, at the owner. Where objects of all caches share pages, slabs per cache are null. Rows that nobody used are left
 * out.
 */
#include "exact.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define TOP_CALL_SITES 100u

/* A figure that a malloc can't give. */
static void measure(struct json *json, const struct exact *exact, const char *key, uint64_t value)
{
	json_known(json, key, exact->driver->heap, value);
}

/* Unlike other figures, what is kept at the end may be less than nothing. */
static void write_signed(struct json *json, const char *key, bool known, int64_t value)
{
	if (known)
		json_signed(json, key, value);
	else
		json_null(json, key);
}

static void measure_growth(struct json *json, const struct exact *exact, const char *key, uint64_t pages)
{
	write_signed(json, key, exact->driver->heap, (int64_t)(pages - exact->held_before));
}

static void write_blocks(struct json *json, const struct exact *exact, const char *key,
                         const uint64_t blocks[SY_ORDERS])
{
	if (!exact->driver->heap) {
		json_null(json, key);
		return;
	}
	json_counts(json, key, blocks, SY_ORDERS);
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
	json_known(json, "first_failed_event", exact->failed, exact->first_failed);
}

/* The mean of held pages. Sum and span are halved until the sum fits in 64 bits. */
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
	measure(json, exact, "pages_taken", point->taken_pages);
	measure(json, exact, "pages_returned", point->taken_pages + exact->held_before - point->held_pages);
}

static void write_memory(struct json *json, const struct exact *exact, const struct point *end)
{
	if (exact->driver->scratch->run->beside)
		measure(json, exact, "older_pages", exact_beside(exact));
	measure(json, exact, "held_pages_start", exact->held_before);
	measure(json, exact, "held_pages_end", end->held_pages);
	measure(json, exact, "held_pages_peak", exact->held_peak);
	measure_growth(json, exact, "grew_pages_peak", exact->held_peak);
	measure_growth(json, exact, "grew_pages_end", end->held_pages);
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
	json_rest(json, "total_fragmentation_end", exact->requested_bytes, (end->held_pages + exact_beside(exact)) << SY_PAGE_SHIFT);
	json_rest(json, "total_fragmentation_peak", exact->requested_at_held_peak,
	          (exact->held_peak + exact_beside(exact)) << SY_PAGE_SHIFT);
	json_rest(json, "internal_fragmentation_end", exact->requested_bytes,
	          exact->given_slab_bytes + exact->given_large_bytes);
}

static void write_unused(struct json *json, const struct exact *exact, const struct point *end)
{
	struct sy_heap *heap = exact->driver->heap;
	uint64_t bytes = (end->slab_pages + exact->beside_slab) << SY_PAGE_SHIFT, unused;

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
	if (exact->locks)
		json_count(json, "locks", *exact->locks - exact->other_locks);
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

static void write_curve(struct json *json, const struct exact *exact, const char *key, size_t offset)
{
	json_array(json, key);
	for (unsigned i = 0; i < exact->point_count; i++) {
		uint64_t value;

		memcpy(&value, (const char *)&exact->points[i] + offset, sizeof value);
		json_count(json, NULL, value);
	}
	json_array_end(json);
}

static void write_series(struct json *json, const struct exact *exact)
{
	static const struct {
		const char *key;
		size_t offset; /* of the figure in struct point */
		bool of_malloc; /* a malloc has it too */
	} curves[] = {
		{ "time", offsetof(struct point, time), true },
		{ "held_pages", offsetof(struct point, held_pages), false },
		{ "slab_pages", offsetof(struct point, slab_pages), false },
		{ "large_pages", offsetof(struct point, large_pages), false },
		{ "metadata_pages", offsetof(struct point, metadata_pages), false },
		{ "requested_bytes", offsetof(struct point, requested_bytes), true },
		{ "fragmentation_events", offsetof(struct point, fragmentation_events), false },
	};
	bool pages = exact->driver->heap != NULL;

	json_object(json, "series");
	for (size_t i = 0; i < sizeof curves / sizeof *curves; i++) {
		if (pages || curves[i].of_malloc)
			write_curve(json, exact, curves[i].key, curves[i].offset);
		else
			json_null(json, curves[i].key);
	}
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

static bool was_used(const struct tally *tally)
{
	return tally->requests || tally->peak_bytes || tally->live;
}

/* The name of the cache that owns the slabs of this one of the trace; NULL: it has its own. */
static const char *merged_into(const struct exact *exact, uint32_t number)
{
	const struct scratch *scratch = exact->driver->scratch;
	uint32_t owner = exact->growth.owners[number];

	if (owner == number)
		return NULL;
	return owner < scratch->cache_count ? scratch->caches[owner].name : exact->classes[owner - scratch->cache_count].is.name;
}

/* What is written of a cache, or of objects that belong to no cache. */
struct row {
	const char *name;
	int64_t number; /* of the trace's cache; -1: it is none of the trace's */
	const struct tally *tally;
	uint32_t size; /* bytes from one object to the next; 0: not known */
	bool slabs_known, pages_known; /* counts has them */
	bool start_known, peak_known;  /* and these are known */
	struct sy_cache_counts counts;
	int64_t start_pages, peak_pages; /* before the first event; when most was held */
	const char *merged_into; /* whose slabs the objects are in; NULL: their own */
};

static void write_row(struct json *json, const struct row *row)
{
	json_object(json, NULL);
	json_signed(json, "cache", row->number);
	json_string(json, "name", row->name);
	json_known(json, "size", row->size, row->size);
	write_tally(json, row->tally);
	json_known(json, "slabs", row->slabs_known, row->counts.slabs);
	json_known(json, "partial_slabs", row->slabs_known, row->counts.partial_slabs);
	json_known(json, "full_slabs", row->slabs_known, row->counts.full_slabs);
	json_known(json, "pages", row->pages_known, row->counts.pages);
	json_known(json, "slab_objects", row->slabs_known, row->counts.slab_objects);
	json_known(json, "slab_pages", row->slabs_known, row->counts.slab_pages);
	write_signed(json, "pages_start", row->start_known, row->start_pages);
	write_signed(json, "pages_peak", row->peak_known, row->peak_pages);
	json_string(json, "merged_into", row->merged_into);
	if (row->tally->operations) {
		json_count(json, "operations", row->tally->operations);
		json_count(json, "slow", row->tally->slow);
		json_count(json, "locks", row->tally->locks);
	}
	json_object_end(json);
}

/* A cache of a heap. Its slabs are told at their owner, and not at all where caches share them page by page. */
static void write_heap_cache(struct json *json, struct row row, struct sy_cache *cache, const struct growth *growth, uint32_t number)
{
	struct sy_cache_description is;

	sy_cache_describe(cache, &is);
	sy_cache_count(cache, &row.counts);
	row.size = is.size;
	row.slabs_known = row.pages_known = !row.merged_into && (row.counts.slabs || !row.counts.objects);
	row.start_known = row.slabs_known && row.counts.slab_pages;
	row.peak_known = row.start_known && !growth->incomplete;
	row.start_pages = growth->start[number];
	row.peak_pages = growth->peak[number];
	if (was_used(row.tally) || (!row.merged_into && row.counts.slabs))
		write_row(json, &row);
}

static void write_used(struct json *json, const struct row *row)
{
	if (was_used(row->tally))
		write_row(json, row);
}

static void write_caches(struct json *json, const struct exact *exact)
{
	const struct scratch *scratch = exact->driver->scratch;
	const struct tally *of_kmalloc = &exact->rows[exact_kmalloc_row(exact)], *of_pages = &exact->rows[exact_large_row(exact)];
	bool counted = exact->driver->heap;
	const struct row large = { "kmalloc (pages)", -1, .tally = of_pages, .pages_known = counted, .counts.pages = exact->counters->large_pages,
		                   .start_known = counted, .start_pages = (int64_t)exact->large_before, .peak_known = counted,
		                   .peak_pages = (int64_t)exact->large_at_held_peak };

	json_array(json, "caches");
	for (uint32_t i = 0; i < scratch->cache_count; i++) {
		struct row row = { scratch->caches[i].name, i, .tally = &exact->rows[i], .size = scratch->caches[i].object_size };

		if (exact->driver->heap) {
			row.merged_into = merged_into(exact, i);
			write_heap_cache(json, row, exact->driver->caches[i], &exact->growth, i);
		} else {
			write_used(json, &row);
		}
	}
	for (unsigned i = 0; i < exact->class_count; i++) {
		uint32_t number = exact_class_row(exact, i);
		struct row row = { exact->classes[i].is.name, -1, .tally = &exact->rows[number] };

		write_heap_cache(json, row, exact->classes[i].cache, &exact->growth, number);
	}
	write_used(json, &(struct row){ "kmalloc", -1, .tally = of_kmalloc });
	write_used(json, &large);
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
	for (unsigned type = 0; type < SY_MIGRATE_TYPES; type++)
		json_counts(json, NULL, zone->free_blocks[type], SY_ORDERS);
	json_array_end(json);
	json_counts(json, "pageblocks", zone->pageblocks, SY_MIGRATE_TYPES);
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

static void write_rest(struct json *json, struct exact *exact)
{
	write_snapshots(json, exact);
	write_series(json, exact);
	write_caches(json, exact);
	write_call_sites(json, exact);
	write_zones(json, exact);
	exact_write_end(json, exact);
}

void exact_write(struct json *json, struct exact *exact)
{
	struct point end;

	exact_look(exact, &end);
	json_object(json, NULL);
	json_object(json, "exact");
	write_scalars(json, exact, &end);
	if (!exact->scalars_alone)
		write_rest(json, exact);
	json_object_end(json);
	json_object_end(json);
}
