/* Huge pages for heaps of threads that grow. See huge_pages.c. */
#ifndef SY_HUGE_PAGES_H
#define SY_HUGE_PAGES_H

#include "../pages/pages.h"

/* The hook sy__pages_hooks.prefer_huge. */
uint8_t sy__huge_pages_prefer(struct sy_pages *, uint64_t start);

#endif
