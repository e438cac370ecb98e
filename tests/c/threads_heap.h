/*
 * A small heap of threads, for tests that look at what lies where in it.
 */
#ifndef THREADS_HEAP_H
#define THREADS_HEAP_H

#include "core/here.h"
#include "threads_support.h"

static inline struct sy_heap *open_small(const char *spec)
{
	const struct sy_heap_options options = { .reserve = SMALL_RESERVE };
	const char *error = "";
	struct sy_heap *heap = sy_heap_open(spec, &options, &error);

	CHECK_TEXT(error, "");
	return heap;
}

/* One that doesn't settle while the test goes on, however long that takes. */
static inline struct sy_heap *open_unsettled(const char *spec)
{
	struct sy_heap *heap = open_small(spec);

	sy__time_set(&heap->settle_due, UINT64_MAX);
	return heap;
}

#endif
