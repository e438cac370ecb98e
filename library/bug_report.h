/* Reports of bugs in programs. See bug_report.c. */
#ifndef SY_BUG_REPORT_H
#define SY_BUG_REPORT_H

#include <slabyard/slabyard.h>

/* sy_heap.on_bug of a program's heaps: writes a report to standard error and aborts. */
void sy__bug_report(struct sy_heap *, enum sy_bug, const void *address);

#endif
