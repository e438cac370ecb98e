/*
 * Figures of heaps in Prometheus's text format 0.0.4, with the same names as in `slabyard inspect --format prometheus`.
 *
 * All lines of one metric stand together, so each metric asks every heap once. Meanwhile the heap's other threads wait, and the text grows
 * in the caller's memory: nothing here allocates or calls out. Text that has no room there counts towards the length all the same.
 */
#include "library/spec.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "core/debug/debug.h"
#include "core/list.h"
#include "core/this_slot.h"
#include "core/backend/large.h"
#include "core/pages/pages.h"

#define VALUE_BYTES 64 /* of a tunable */
#define ANY_SIZE "any size"
#define LARGE "large"

struct metric {
	const char *name, *meaning, *type;
	uint64_t (*of_heap)(struct sy_heap *); /* or NULL: the metric is of caches */
	uint64_t (*of_cache)(const struct sy_cache *, const struct sy_cache_counts *);
};

struct text {
	char *bytes;
	size_t room, length; /* length: of all, whether there was room or not */
};

/* ---- Text --------------------------------------------------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static void put(struct text *text, const char *format, ...)
{
	size_t left = text->length < text->room ? text->room - text->length : 0;
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vsnprintf(left ? text->bytes + text->length : NULL, left, format, arguments);
	va_end(arguments);
	text->length += length > 0 ? (size_t)length : 0;
}

/* A label's value. Names of caches may have any bytes. */
static void put_value(struct text *text, const char *value)
{
	for (; *value; value++)
		if (*value == '"' || *value == '\\')
			put(text, "\\%c", *value);
		else if (*value == '\n')
			put(text, "\\n");
		else
			put(text, "%c", *value < ' ' || *value > '~' ? '?' : *value);
}

/* The labels of a heap: its place among those asked for, and the spec that makes it. */
static void put_heap(struct text *text, const struct sy_heap *heap, size_t place)
{
	const struct sy_policy *policy = sy__debug_below(heap);
	char value[VALUE_BYTES], before = ':';

	put(text, "{heap=\"%zu\",spec=\"%s", place, policy->name);
	for (unsigned i = 0; i < policy->tunable_count; i++) {
		if (heap->tunables[i] == policy->tunables[i].default_value)
			continue;
		sy__spec_value(value, sizeof(value), &policy->tunables[i], heap->tunables[i]);
		put(text, "%c%s=%s", before, policy->tunables[i].name, value);
		before = ',';
	}
	put(text, "\"");
}

static void put_row(struct text *text, const struct metric *metric, const struct sy_heap *heap, size_t place, const char *cache,
                    uint64_t value)
{
	put(text, "%s", metric->name);
	put_heap(text, heap, place);
	if (cache) {
		put(text, ",cache=\"");
		put_value(text, cache);
		put(text, "\"");
	}
	put(text, "} %" PRIu64 "\n", value);
}

/* ---- Figures, with the heap's slots stopped ------------------------------------------------------------------------ */

static struct sy_cache *next(struct sy_heap *heap, const struct sy_cache *cache)
{
	struct sy_list *link = cache ? cache->link.next : heap->caches.next;

	return link == &heap->caches ? NULL : sy__entry(link, struct sy_cache, link);
}

static uint64_t bytes_of_pages(uint64_t pages)
{
	return pages << SY_PAGE_SHIFT;
}

static uint64_t bytes_of(const struct sy_cache *cache, const struct sy_cache_counts *counts)
{
	(void)cache;
	return bytes_of_pages(counts->pages);
}

static uint64_t used_bytes_of(const struct sy_cache *cache, const struct sy_cache_counts *counts)
{
	return counts->objects_in_use * cache->size;
}

static uint64_t slabs_of(const struct sy_cache *cache, const struct sy_cache_counts *counts)
{
	(void)cache;
	return counts->slabs;
}

static uint64_t objects_of(const struct sy_cache *cache, const struct sy_cache_counts *counts)
{
	(void)cache;
	return counts->objects;
}

static uint64_t used_of(const struct sy_cache *cache, const struct sy_cache_counts *counts)
{
	(void)cache;
	return counts->objects_in_use;
}

/* A policy whose caches share their pages knows what is unused in all of them. */
static uint64_t used_in_slabs(struct sy_heap *heap)
{
	uint64_t used = 0;

	if (heap->policy->unused_bytes)
		return (heap->counters.slab_pages << SY_PAGE_SHIFT) - heap->policy->unused_bytes(heap);
	for (struct sy_cache *cache = next(heap, NULL); cache; cache = next(heap, cache)) {
		struct sy_cache_counts counts = { 0 };

		cache->policy->counts(cache, &counts);
		used += used_bytes_of(cache, &counts);
	}
	return used;
}

static uint64_t held_in(struct sy_heap *heap)
{
	return bytes_of_pages(heap->counters.slab_pages + heap->counters.large_pages + heap->counters.metadata_pages);
}

static uint64_t used_in(struct sy_heap *heap)
{
	return used_in_slabs(heap) + sy__large_live(heap);
}

static uint64_t slabs_in(struct sy_heap *heap)
{
	return bytes_of_pages(heap->counters.slab_pages);
}

static uint64_t large_in(struct sy_heap *heap)
{
	return bytes_of_pages(heap->counters.large_pages);
}

static uint64_t metadata_in(struct sy_heap *heap)
{
	return bytes_of_pages(heap->counters.metadata_pages);
}

static uint64_t free_in(struct sy_heap *heap)
{
	return bytes_of_pages(sy__free_and_backed(heap->pages));
}

static uint64_t requests_in(struct sy_heap *heap)
{
	return heap->counters.page_requests;
}

static uint64_t failures_in(struct sy_heap *heap)
{
	return heap->counters.page_failures;
}

static void put_caches(struct text *text, const struct metric *metric, struct sy_heap *heap, size_t place)
{
	uint64_t pages = 0;

	for (struct sy_cache *cache = next(heap, NULL); cache; cache = next(heap, cache)) {
		struct sy_cache_counts counts = { 0 };

		cache->policy->counts(cache, &counts);
		pages += counts.pages;
		if (counts.slabs)
			put_row(text, metric, heap, place, cache->name, metric->of_cache(cache, &counts));
	}
	if (metric->of_cache != bytes_of && metric->of_cache != used_bytes_of)
		return; /* objects in shared pages and large ones are not counted */
	if (heap->policy->unused_bytes && heap->counters.slab_pages > pages)
		put_row(text, metric, heap, place, ANY_SIZE,
		        metric->of_cache == bytes_of ? (heap->counters.slab_pages - pages) << SY_PAGE_SHIFT : used_in_slabs(heap));
	if (heap->counters.large_pages)
		put_row(text, metric, heap, place, LARGE,
		        metric->of_cache == bytes_of ? heap->counters.large_pages << SY_PAGE_SHIFT : sy__large_live(heap));
}

/* ---- All of it ---------------------------------------------------------------------------------------------------- */

static const struct metric metrics[] = {
	{ "slabyard_heap_held_bytes", "Memory that the heap holds.", "gauge", held_in, NULL },
	{ "slabyard_heap_used_bytes", "Of it, memory in use.", "gauge", used_in, NULL },
	{ "slabyard_heap_slab_bytes", "Memory in slabs.", "gauge", slabs_in, NULL },
	{ "slabyard_heap_large_bytes", "Memory in large allocations.", "gauge", large_in, NULL },
	{ "slabyard_heap_metadata_bytes", "Memory of the heap's bookkeeping.", "gauge", metadata_in, NULL },
	{ "slabyard_heap_free_bytes", "Free pages that have memory.", "gauge", free_in, NULL },
	{ "slabyard_heap_page_requests_total", "Requests to the page allocator.", "counter", requests_in, NULL },
	{ "slabyard_heap_page_failures_total", "Of these, refused.", "counter", failures_in, NULL },
	{ "slabyard_cache_bytes", "Memory in the slabs of a cache.", "gauge", NULL, bytes_of },
	{ "slabyard_cache_used_bytes", "Of it, memory in use.", "gauge", NULL, used_bytes_of },
	{ "slabyard_cache_slabs", "Slabs of a cache.", "gauge", NULL, slabs_of },
	{ "slabyard_cache_objects", "Objects that there is room for.", "gauge", NULL, objects_of },
	{ "slabyard_cache_used_objects", "Objects in use.", "gauge", NULL, used_of },
};

size_t sy_heaps_metrics(struct sy_heap *const *heaps, size_t count, char *text, size_t room)
{
	struct text to = { text, room, 0 };

	for (size_t i = 0; i < count; i++)
		sy__debug_flush(heaps[i], NULL);
	for (size_t i = 0; i < sizeof(metrics) / sizeof(metrics[0]); i++) {
		const struct metric *metric = &metrics[i];

		put(&to, "# HELP %s %s\n# TYPE %s %s\n", metric->name, metric->meaning, metric->name, metric->type);
		for (size_t place = 0; place < count; place++) {
			if (!sy__slots_stop_soon(heaps[place]))
				continue;
			if (metric->of_heap)
				put_row(&to, metric, heaps[place], place, NULL, metric->of_heap(heaps[place]));
			else
				put_caches(&to, metric, heaps[place], place);
			sy__slots_resume(heaps[place]);
		}
	}
	return to.length;
}
