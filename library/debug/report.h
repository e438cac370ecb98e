/* Reports of bugs in programs. See report.c. */
#ifndef SY_LIBRARY_DEBUG_REPORT_H
#define SY_LIBRARY_DEBUG_REPORT_H

#include <slabyard/slabyard.h>

struct sy__finding;

/* sy_heap.on_bug of a program's heaps: writes a report to standard error and aborts. If the heap has checks, and one of them finds the
 * damage that led to the bug, it reports that damage. */
void sy__bug_report(struct sy_heap *, enum sy_bug, const void *address);

/* Reports what the heap's checks have found, and aborts, unless it is a leak. */
void sy__bug_tell(struct sy_heap *, const struct sy__finding *);

/* Whether a report has begun that ends the process, and whether by another thread than the caller. */
bool sy__bug_is_told(void);
bool sy__bug_is_told_elsewhere(void);

/* A group of leaks, objects that were allocated by one stack: how many, and how large they are together; `finding` has one of them. */
void sy__bug_tell_leak(struct sy_heap *, const struct sy__finding *, size_t objects, size_t bytes);

#endif
