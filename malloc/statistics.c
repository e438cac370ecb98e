/*
 * What malloc can tell of itself: glibc's calls for that, mallinfo and its kin.
 *
 * Figures come from the heap's own counters and from its caches, which claim the threads' slots for that: nothing is counted
 * on any fast path. A policy that keeps no caches tells the free bytes in its pages instead.
 *
 * mallinfo's words are read so here: arena, bytes of pages that the heap holds; uordblks, those of them that are objects in use;
 * fordblks, the rest of them; hblks and hblkhd, mappings and their bytes, which none of the others has in it. Those that make no
 * sense here are 0.
 */
#define _GNU_SOURCE
#include "mapping_cache.h"
#include "parts.h"
#include "system.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <malloc.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "core/here.h"
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

/* With all slots claimed, so that no lock of the heap's is held where another thread forks. */
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
	if (heap && sy__slots_stop(heap)) {
		count_objects(heap, figures);
		sy__slots_resume(heap);
	}
}

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

EXPORT int malloc_trim(size_t keep)
{
	struct sy_heap *heap = sy__process_heap();
	size_t ended = sy__mapping_cache_end();
	bool trimmed = heap && sy_heap_trim(heap);

	(void)keep;
	sy__process_trimmed();
	return trimmed || ended;
}

/* As in glibc any parameter is taken, known or not, and changes nothing: each is about a mechanism that is not here. There is one whose
 * value glibc looks at. */
EXPORT int mallopt(int parameter, int value)
{
	return parameter != M_MXFAST || (value >= 0 && (size_t)value <= MOST_FAST);
}

/* ---- As text ------------------------------------------------------------------------------------------------------ */

/* A text that is put together without asking for memory, and written when it is as long as its buffer, or ends. */
struct text {
	int file;
	size_t length;
	char bytes[4096];
};

static void flush(struct text *text)
{
	size_t at = 0;

	while (at < text->length) {
		ssize_t written = sy__file_write(text->file, text->bytes + at, text->length - at);

		if (written < 0 && errno != EINTR)
			break;
		at += written > 0 ? (size_t)written : 0;
	}
	text->length = 0;
}

__attribute__((format(printf, 2, 3))) static void print(struct text *text, const char *format, ...)
{
	va_list arguments;

	if (sizeof(text->bytes) - text->length < 512)
		flush(text);
	va_start(arguments, format);
	text->length += (size_t)vsnprintf(text->bytes + text->length, sizeof(text->bytes) - text->length, format, arguments);
	va_end(arguments);
}

/* As glibc's, the first two with the mappings in them. */
EXPORT void malloc_stats(void)
{
	struct sy_heap *heap = sy__process_heap();
	struct text text = { .file = STDERR_FILENO };
	struct figures figures;

	take_figures(heap, &figures);
	print(&text, "slabyard %s\n", heap ? heap->policy->name : "(no memory)");
	print(&text, "held bytes     = %12" PRIu64 "\n", figures.held_bytes + figures.mappings.bytes);
	print(&text, "in use bytes   = %12" PRIu64 "\n", figures.in_use_bytes + figures.mappings.bytes);
	print(&text, "unused bytes   = %12" PRIu64 "\n", figures.unused_bytes);
	print(&text, "mappings       = %12zu\n", figures.mappings.live);
	print(&text, "mapped bytes   = %12zu\n", figures.mappings.bytes);
	print(&text, "max mapped     = %12zu\n", figures.mappings.peak_bytes);
	flush(&text);
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
