/*
 * How an allocator gives memory back: while the trace ran, because memory was short, and at its end, because it is asked
 * to.
 *
 * Under pressure. The page allocator asks heaps when a zone falls below its low watermark, and urgently before a
 * request fails (core/pages/reclaim.c). How much comes: the pages given back. How fast: how many events and how much of the
 * trace's time pass from the first asking to the first page; an allocator that keeps a working set lets both pass.
 *
 * At the end. Whatever nobody uses is asked for, as `slabinfo -s` asks a kernel: empty slabs, what CPUs keep for
 * themselves. Slabs of caches whose memory outlives a grace period go once that has passed, so time passes, too, and
 * then the heap is asked again: SLAB has freelists of slabs in other slabs. What stays is pinned by live objects, or kept
 * by an allocator that gives nothing back.
 *
 * Then every cache of the trace is destroyed as kmem_cache_destroy does it: refused, with the number of objects, where
 * some live. Caches that share their slabs are destroyed with the last of them. Nothing may be measured after that.
 */
#include "exact.h"

/* ---- Under pressure ------------------------------------------------------------------------------------------- */

static const char *gives_back(const struct sy_heap *heap)
{
	static const char *const words[] = { [SY_GIVES_AT_ONCE] = "at once", [SY_GIVES_WHEN_ASKED] = "when asked",
		                             [SY_GIVES_NEVER] = "never" };
	struct sy_policy_description is;

	sy_policy_describe(sy_heap_policy(heap), &is);
	return words[is.gives];
}

static void write_wait(struct json *json, const struct pressure *pressure)
{
	if (pressure->given) {
		json_count(json, "reclaim_wait_events", pressure->wait_events);
		json_count(json, "reclaim_wait_ns", pressure->wait_ns);
	} else {
		json_null(json, "reclaim_wait_events");
		json_null(json, "reclaim_wait_ns");
	}
}

static void write_askings(struct json *json, const struct exact *exact)
{
	const struct sy_heap_counters *now = sy_lab_counters(exact->driver->heap), *before = &exact->pressure.before;
	uint64_t urgent = now->asked_urgently - before->asked_urgently;
	uint64_t urgently = now->reclaimed_urgently - before->reclaimed_urgently;
	struct sy_pages_counts counts;

	exact_count_pages(exact, &counts);
	json_string(json, "gives_back", gives_back(exact->driver->heap));
	json_count(json, "reclaim_askings", now->asked - before->asked - urgent);
	json_count(json, "reclaim_urgent_askings", urgent);
	json_count(json, "reclaimed_pages", now->reclaimed_pages - before->reclaimed_pages - urgently);
	json_count(json, "reclaimed_urgent_pages", urgently);
	json_count(json, "reclaim_rescued_requests", counts.rescued - exact->pressure.rescued_before);
	write_wait(json, &exact->pressure);
}

static void write_nulls(struct json *json, const char *const *keys, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		json_null(json, keys[i]);
}

void exact_write_pressure(struct json *json, const struct exact *exact)
{
	static const char *const keys[] = { "gives_back",      "reclaim_askings",        "reclaim_urgent_askings",
		                            "reclaimed_pages", "reclaimed_urgent_pages", "reclaim_rescued_requests",
		                            "reclaim_wait_events", "reclaim_wait_ns" };

	if (exact->driver->heap)
		write_askings(json, exact);
	else
		write_nulls(json, keys, sizeof keys / sizeof *keys);
}

/* ---- At the end ----------------------------------------------------------------------------------------------- */

static uint64_t held_pages(const struct sy_heap *heap)
{
	return sy_lab_counters(heap)->slab_pages + sy_lab_counters(heap)->large_pages;
}

static void shrink_fully(struct exact *exact)
{
	sy_heap_shrink(exact->driver->heap);
	driver_tick(exact->driver, exact->driver->span_ns + exact->driver->scratch->run->grace_ns + 1);
	sy_heap_shrink(exact->driver->heap);
}

static void write_shrink(struct json *json, struct exact *exact)
{
	const struct sy_heap *heap = exact->driver->heap;
	uint64_t before = held_pages(heap), live = exact->requested_bytes - exact->requested_large_bytes;

	shrink_fully(exact);
	json_count(json, "shrink_pages", before - held_pages(heap));
	json_count(json, "shrink_slab_pages_left", sy_lab_counters(heap)->slab_pages);
	json_count(json, "shrink_live_bytes", live);
	json_rest(json, "shrink_fragmentation", live, sy_lab_counters(heap)->slab_pages << SY_PAGE_SHIFT);
}

/* One cache of the trace. The name is that under which whoever shares its slabs first made it. */
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
	} else {
		write_nulls(json, keys, sizeof keys / sizeof *keys);
	}
}
