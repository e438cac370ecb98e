/* Huge pages for heaps of threads that grow. See huge_pages.c. */
#ifndef SY_HUGE_PAGES_H
#define SY_HUGE_PAGES_H

#include "backend.h"

#define HUGE_FROM (((size_t)32 << 20) / SY_PAGE_SIZE) /* pages with memory from which on a heap may have huge ones */

/* The hook sy__pages_hooks.prefer_huge. */
uint8_t sy__huge_pages_prefer(struct sy_pages *, uint64_t start);

#endif
