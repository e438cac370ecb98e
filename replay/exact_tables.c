/* The tables that the exact pass counts in (exact.h): rows, call sites, objects by handle, points. */
#include "exact.h"

#include <stdlib.h>

/* The heap's size classes, in its own order. */
static bool find_classes(struct exact *exact)
{
	struct sy_heap *heap = exact->driver->heap;
	struct sy_cache_description is;
	unsigned count = 0;

	if (!heap)
		return true;
	for (const struct sy_cache *cache = NULL; (cache = sy_lab_cache_after(heap, cache));)
		count++;
	exact->classes = calloc(count + 1, sizeof *exact->classes);
	if (!exact->classes)
		return false;
	for (struct sy_cache *cache = NULL; (cache = sy_lab_cache_after(heap, cache));) {
		sy_cache_describe(cache, &is);
		if (is.flags & SY_CACHE_KMALLOC)
			exact->classes[exact->class_count++] = (struct class){ cache, is };
	}
	return true;
}

/* Bytes from one object to the next in each cache of the trace. */
static bool find_sizes(struct exact *exact)
{
	const struct driver *driver = exact->driver;
	struct sy_cache_description is;

	exact->cache_bytes = calloc((size_t)driver->scratch->cache_count + 1, sizeof *exact->cache_bytes);
	for (uint64_t i = 0; exact->cache_bytes && driver->heap && i < driver->scratch->cache_count; i++) {
		sy_cache_describe(driver->caches[i], &is);
		exact->cache_bytes[i] = is.size;
	}
	return exact->cache_bytes;
}

bool exact_make_tables(struct exact *exact, unsigned points, struct fault *fault)
{
	const struct scratch *scratch = exact->driver->scratch;

	if (exact->scalars_alone)
		return find_sizes(exact) || refuse(fault, "no memory for the figures of %llu caches", (unsigned long long)scratch->cache_count);
	if (find_classes(exact) && find_sizes(exact)) {
		exact->rows = calloc((size_t)exact_large_row(exact) + 1, sizeof *exact->rows);
		exact->call_sites = calloc((size_t)scratch->run->call_sites + 1, sizeof *exact->call_sites);
		exact->notes = calloc((size_t)scratch->run->handles + 1, sizeof *exact->notes);
		exact->points = calloc(points, sizeof *exact->points);
		exact->snapshots = calloc((size_t)exact->driver->snapshot_count + 1, sizeof *exact->snapshots);
	}
	exact->point_count = points;
	if (!exact->rows || !exact->call_sites || !exact->notes || !exact->points || !exact->snapshots || !exact_growth_begin(exact))
		return refuse(fault, "no memory for the figures of %u handles and %u call sites", scratch->run->handles,
		              scratch->run->call_sites);
	return true;
}

void exact_release(struct exact *exact)
{
	free(exact->rows);
	free(exact->classes);
	free(exact->cache_bytes);
	free(exact->call_sites);
	free(exact->notes);
	free(exact->points);
	free(exact->snapshots);
	exact_growth_release(exact);
}
