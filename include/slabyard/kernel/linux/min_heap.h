/*
 * <linux/min_heap.h> for kernel code that is compiled into a program: a heap in an array of the caller's, the least in front,
 * with the names of Linux 6.1.
 */
#ifndef SLABYARD_KERNEL_LINUX_MIN_HEAP_H
#define SLABYARD_KERNEL_LINUX_MIN_HEAP_H

#pragma GCC system_header

#include "bug.h"
#include "string.h"
#include "types.h"

struct min_heap {
	void *data;
	int nr, size;
};

struct min_heap_callbacks {
	int elem_size;
	bool (*less)(const void *left, const void *right);
	void (*swp)(void *left, void *right);
};

static inline void *sy__min_heap_at(const struct min_heap *heap, int index, const struct min_heap_callbacks *calls)
{
	return (char *)heap->data + (size_t)index * (size_t)calls->elem_size;
}

static inline void min_heapify(struct min_heap *heap, int at, const struct min_heap_callbacks *calls)
{
	for (;;) {
		int least = at, child;

		for (child = 2 * at + 1; child <= 2 * at + 2 && child < heap->nr; child++)
			if (calls->less(sy__min_heap_at(heap, child, calls), sy__min_heap_at(heap, least, calls)))
				least = child;
		if (least == at)
			return;
		calls->swp(sy__min_heap_at(heap, at, calls), sy__min_heap_at(heap, least, calls));
		at = least;
	}
}

static inline void min_heapify_all(struct min_heap *heap, const struct min_heap_callbacks *calls)
{
	int at;

	for (at = heap->nr / 2 - 1; at >= 0; at--)
		min_heapify(heap, at, calls);
}

static inline void min_heap_pop(struct min_heap *heap, const struct min_heap_callbacks *calls)
{
	if (WARN_ONCE(heap->nr <= 0, "Popping an empty heap"))
		return;
	heap->nr--;
	if (heap->nr)
		memcpy(heap->data, sy__min_heap_at(heap, heap->nr, calls), (size_t)calls->elem_size);
	min_heapify(heap, 0, calls);
}

/* Both at once. */
static inline void min_heap_pop_push(struct min_heap *heap, const void *element, const struct min_heap_callbacks *calls)
{
	memcpy(heap->data, element, (size_t)calls->elem_size);
	min_heapify(heap, 0, calls);
}

static inline void min_heap_push(struct min_heap *heap, const void *element, const struct min_heap_callbacks *calls)
{
	int at = heap->nr, above;

	if (WARN_ONCE(heap->nr >= heap->size, "Pushing on a full heap"))
		return;
	memcpy(sy__min_heap_at(heap, heap->nr++, calls), element, (size_t)calls->elem_size);
	for (; at > 0; at = above) {
		above = (at - 1) / 2;
		if (!calls->less(sy__min_heap_at(heap, at, calls), sy__min_heap_at(heap, above, calls)))
			return;
		calls->swp(sy__min_heap_at(heap, at, calls), sy__min_heap_at(heap, above, calls));
	}
}

#endif
