/* Second frees that a heap notices and the program lives on: counted, and nothing else may be found. */
#ifndef BUG_SUPPORT_H
#define BUG_SUPPORT_H

#include "check.h"

#include "core/types.h"

static unsigned double_frees;

static void count_double_free(struct sy_heap *heap, enum sy_bug kind, const void *address)
{
	(void)heap;
	(void)address;
	CHECK_EQUAL(kind, SY_BUG_DOUBLE_FREE);
	double_frees++;
}

static inline void count_double_frees(struct sy_heap *heap)
{
	double_frees = 0;
	heap->on_bug = count_double_free;
}

#endif
