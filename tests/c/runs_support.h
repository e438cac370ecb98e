/* Heaps that place large runs exactly, as those of malloc do. */
#ifndef RUNS_SUPPORT_H
#define RUNS_SUPPORT_H

#include "core/types.h"

#include "check.h"

#define PAGE SY_PAGE_SIZE

static inline struct sy_heap *open_exact(size_t limit)
{
	const struct sy_heap_options options = { .limit = limit, .sizing = { .align = 16, .exact_runs = true } };
	const char *error = NULL;
	struct sy_heap *heap = sy_heap_open("yard", &options, &error);

	CHECK(heap != NULL);
	return heap;
}

static inline bool is_sound(struct sy_heap *heap)
{
	return !sy_heap_check(heap) && !sy_pages_check(heap->pages);
}

#endif
