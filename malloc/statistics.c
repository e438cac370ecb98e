/*
 * What malloc tells of itself: mallinfo, malloc_stats and malloc_info, as glibc has them, and malloc_trim and mallopt.
 *
 * Nothing is counted on a fast path. Figures come from the heap's counters and from its caches, which are counted with all
 * threads' slots stopped. A policy without caches tells the free bytes in its pages instead.
 *
 * mallinfo's fields mean here:
 *
 *   arena            bytes of the pages that the heap holds
 *   uordblks         bytes of objects in use in these pages
 *   fordblks         the rest of these pages
 *   hblks, hblkhd    mappings, and their bytes, which are in none of the other fields
 *
 * All other fields are 0. mallinfo, mallinfo2 and mallopt are there on glibc alone.
 */
#define _GNU_SOURCE
#include "mapping_cache.h"
#include "parts.h"
#include "system.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <malloc.h>
#include <stdio.h>
#include <unistd.h>

#include "core/this_slot.h"
#include "core/backend/large.h"
#include "core/list.h"

#define MOST_FAST (20 * sizeof(size_t)) /* bytes: what M_MXFAST may be */
#define EXPORT __attribute__((visibility("default")))

/* ---- Figures ------------------------------------------------------------------------------------------------------ */

struct figures {
	uint64_t held_bytes;       /* of pages: in slabs and runs, and for bookkeeping */
	uint64_t in_use_bytes;     /* of objects in them */
	uint64_t in_use;           /* objects; 0: not known */
	uint64_t unused_bytes;     /* in slabs */
	struct mapping_counts mappings;
};

struct sy_cache *sy__next_cache(struct sy_heap *heap, const struct sy_cache *cache)
{
	struct sy_list *link = cache ? cache->link.next : heap->caches.next;

	return link == &heap->caches ? NULL : sy__entry(link, struct sy_cache, link);
}

/* All slots are stopped, so no lock of the heap's is held when another thread forks. */
static void count_objects(struct sy_heap *heap, struct figures *figures)
{
	const struct sy_heap_counters *counters = &heap->counters;

	for (struct sy_cache *cache = sy__next_cache(heap, NULL); cache; cache = sy__next_cache(heap, cache)) {
		struct sy_cache_counts counts = { 0 };

		cache->policy->counts(cache, &counts);
		figures->in_use += counts.objects_in_use;
		figures->in_use_bytes += counts.objects_in_use * cache->size;
	}
	figures->held_bytes = (counters->slab_pages + counters->large_pages + counters->metadata_pages) << SY_PAGE_SHIFT;
	figures->unused_bytes = (counters->slab_pages << SY_PAGE_SHIFT) - figures->in_use_bytes;
	if (heap->policy->unused_bytes) {
		figures->unused_bytes = heap->policy->unused_bytes(heap);
		figures->in_use_bytes = (counters->slab_pages << SY_PAGE_SHIFT) - figures->unused_bytes;
	}
	figures->in_use_bytes += sy__large_live(heap);
}

static void take_figures(struct sy_heap *heap, struct figures *figures)
{
	*figures = (struct figures){ 0 };
	sy__mapping_count(&figures->mappings);
	if (heap && sy__slots_stop_soon(heap)) {
		count_objects(heap, figures);
		sy__slots_resume(heap);
	}
}

#ifdef __GLIBC__
EXPORT struct mallinfo2 mallinfo2(void)
{
	struct mallinfo2 info = { 0 };
	struct figures figures;

	take_figures(sy__process_heap(), &figures);
	info.arena = (size_t)figures.held_bytes;
	info.hblks = figures.mappings.live;
	info.hblkhd = figures.mappings.bytes;
	info.uordblks = (size_t)figures.in_use_bytes;
	info.fordblks = info.arena > info.uordblks ? info.arena - info.uordblks : 0;
	return info;
}

static int as_int(size_t value)
{
	return value > INT_MAX ? INT_MAX : (int)value;
}

EXPORT struct mallinfo mallinfo(void)
{
	struct mallinfo2 wide = mallinfo2();
	struct mallinfo info = { 0 };

	info.arena = as_int(wide.arena);
	info.hblks = as_int(wide.hblks);
	info.hblkhd = as_int(wide.hblkhd);
	info.uordblks = as_int(wide.uordblks);
	info.fordblks = as_int(wide.fordblks);
	return info;
}
#endif

EXPORT int malloc_trim(size_t keep)
{
	struct sy_heap *heap = sy__process_heap();
	size_t ended = sy__mapping_cache_end();
	bool trimmed = heap && sy_heap_trim(heap);

	(void)keep;
	sy__process_trimmed();
	return trimmed || ended;
}

#ifdef M_MXFAST
/* Accepts any parameter, as glibc does, and changes nothing: the parameters are about mechanisms that are not here. glibc checks
 * the value of M_MXFAST alone. */
EXPORT int mallopt(int parameter, int value)
{
	return parameter != M_MXFAST || (value >= 0 && (size_t)value <= MOST_FAST);
}
#endif

/* ---- As text ------------------------------------------------------------------------------------------------------ */

/* Prints what glibc prints; the first two figures include mappings. Written at once, without a buffer from malloc. */
EXPORT void malloc_stats(void)
{
	struct sy_heap *heap = sy__process_heap();
	struct figures figures;
	char text[512];
	int length;

	take_figures(heap, &figures);
	length = snprintf(text, sizeof(text),
	                  "slabyard %s\n"
	                  "held bytes     = %12" PRIu64 "\n"
	                  "in use bytes   = %12" PRIu64 "\n"
	                  "unused bytes   = %12" PRIu64 "\n"
	                  "mappings       = %12zu\n"
	                  "mapped bytes   = %12zu\n"
	                  "max mapped     = %12zu\n",
	                  heap ? heap->policy->name : "(no memory)", figures.held_bytes + figures.mappings.bytes,
	                  figures.in_use_bytes + figures.mappings.bytes, figures.unused_bytes, figures.mappings.live,
	                  figures.mappings.bytes, figures.mappings.peak_bytes);
	sy__file_write(STDERR_FILENO, text, (size_t)length);
}

/* glibc's outermost elements, and one of ours for each size class. */
EXPORT int malloc_info(int options, FILE *stream)
{
	struct sy_heap *heap = sy__process_heap();
	struct figures figures;
	struct sy_cache_counts counts;

	if (options) {
		errno = EINVAL;
		return -1;
	}
	take_figures(heap, &figures);
	fprintf(stream, "<malloc version=\"slabyard-1\">\n<heap nr=\"0\" policy=\"%s\">\n<sizes>\n", heap ? heap->policy->name : "");
	for (struct sy_cache *cache = heap ? sy__next_cache(heap, NULL) : NULL; cache; cache = sy__next_cache(heap, cache)) {
		sy_cache_count(cache, &counts);
		fprintf(stream, "<class size=\"%" PRIu32 "\" objects=\"%" PRIu64 "\" slabs=\"%" PRIu64 "\" bytes=\"%" PRIu64 "\"/>\n",
		        cache->size, counts.objects_in_use, counts.slabs, counts.pages << SY_PAGE_SHIFT);
	}
	fprintf(stream, "</sizes>\n<system type=\"current\" size=\"%" PRIu64 "\"/>\n</heap>\n", figures.held_bytes);
	fprintf(stream, "<total type=\"rest\" count=\"%" PRIu64 "\" size=\"%" PRIu64 "\"/>\n", figures.in_use, figures.in_use_bytes);
	fprintf(stream, "<total type=\"mmap\" count=\"%zu\" size=\"%zu\"/>\n</malloc>\n", figures.mappings.live,
	        figures.mappings.bytes);
	return ferror(stream) ? -1 : 0;
}
