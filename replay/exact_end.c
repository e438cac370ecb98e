/*
 * How an allocator gives memory back: under pressure while the trace ran, and at its end when it is asked.
 *
 * Under pressure. The page allocator asks heaps for memory when a zone falls below its low watermark, and urgently before a
 * request fails (core/pages/reclaim.c). Two things are told: how many pages came back, and how long the first of them took, in
 * events and in the trace's time. An allocator that keeps a working set lets some time pass.
 *
 * At the end. The heap gives up all unused memory, as `slabinfo -s` has a kernel do: empty slabs, and the free objects that CPUs keep.
 * Slabs of SLAB_TYPESAFE_BY_RCU caches go only after a grace period. So time passes, and the heap is asked again: SLAB keeps the freelists
 * of some slabs in other slabs. Pages that stay are pinned by live objects, or the allocator gives nothing back.
 *
 * Then every cache of the trace is destroyed as by kmem_cache_destroy: refused, with the number of objects, while some live.
 * Caches that share slabs go with the last of them. Nothing may be measured after that.
 */
#include "exact.h"

/* ---- Under pressure ------------------------------------------------------------------------------------------- */

static const char *gives_back(const struct sy_heap *heap)
{
	static const char *const words[] = { [SY_GIVES_AT_ONCE] = "at once", [SY_GIVES_WHEN_ASKED] = "when asked",
		                             [SY_GIVES_NEVER] = "never" };

	return words[sy_heap_gives(heap)];
}

void exact_write_pressure(struct json *json, const struct exact *exact)
{
	const struct sy_heap *heap = exact->driver->heap;
	const struct sy_heap_counters *now = exact->counters, *before = &exact->pressure.before;
	uint64_t urgent = now->asked_urgently - before->asked_urgently;
	uint64_t urgently = now->reclaimed_urgently - before->reclaimed_urgently;
	struct sy_pages_counts counts;

	exact_count_pages(exact, &counts);
	json_string(json, "gives_back", heap ? gives_back(heap) : NULL);
	json_known(json, "reclaim_askings", heap, now->asked - before->asked - urgent);
	json_known(json, "reclaim_urgent_askings", heap, urgent);
	json_known(json, "reclaimed_pages", heap, now->reclaimed_pages - before->reclaimed_pages - urgently);
	json_known(json, "reclaimed_urgent_pages", heap, urgently);
	json_known(json, "reclaim_rescued_requests", heap, counts.rescued - exact->pressure.rescued_before);
	json_known(json, "reclaim_wait_events", exact->pressure.given, exact->pressure.wait_events);
	json_known(json, "reclaim_wait_ns", exact->pressure.given, exact->pressure.wait_ns);
}

/* ---- At the end ----------------------------------------------------------------------------------------------- */

static uint64_t held_pages(const struct sy_heap *heap)
{
	return sy_lab_counters(heap)->slab_pages + sy_lab_counters(heap)->large_pages;
}

static void shrink_fully(struct exact *exact)
{
	sy_heap_shrink(exact->driver->heap);
	driver_tick(exact->driver, exact->driver->span_ns + driver_longest_grace(exact->driver) + 1);
	sy_heap_shrink(exact->driver->heap);
}

static void write_shrink(struct json *json, struct exact *exact)
{
	const struct sy_heap *heap = exact->driver->heap;
	uint64_t before = held_pages(heap), live = exact->requested_bytes - exact->requested_large_bytes;

	shrink_fully(exact);
	json_count(json, "shrink_pages", before - held_pages(heap));
	json_count(json, "shrink_slab_pages_left", exact_slab_pages(exact));
	json_count(json, "shrink_live_bytes", live);
	json_rest(json, "shrink_fragmentation", live, sy_lab_counters(heap)->slab_pages << SY_PAGE_SHIFT);
}

/* One cache of the trace. A merged cache has the name of its first creation. */
static void write_destroyed(struct json *json, struct sy_cache *cache, uint64_t *destroyed)
{
	struct sy_cache_description is;
	uint64_t alive;

	if (sy_cache_destroy(cache, &alive)) {
		++*destroyed;
		return;
	}
	sy_cache_describe(cache, &is);
	json_object(json, NULL);
	json_string(json, "name", is.name);
	json_count(json, "objects", alive);
	json_object_end(json);
}

static void write_destruction(struct json *json, struct exact *exact)
{
	const struct driver *driver = exact->driver;
	uint64_t destroyed = 0;

	json_array(json, "caches_alive");
	for (uint64_t i = driver->scratch->cache_count; i; i--)
		write_destroyed(json, driver->caches[i - 1], &destroyed);
	json_array_end(json);
	json_count(json, "caches_destroyed", destroyed);
}

void exact_write_end(struct json *json, struct exact *exact)
{
	static const char *const keys[] = { "shrink_pages",         "shrink_slab_pages_left", "shrink_live_bytes",
		                            "shrink_fragmentation", "caches_alive",           "caches_destroyed" };

	if (exact->driver->heap) {
		write_shrink(json, exact);
		write_destruction(json, exact);
		return;
	}
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
		json_null(json, keys[i]);
}
