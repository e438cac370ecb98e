/*
 * What a program says of its bugs, on standard error, before it aborts. The first line is "slabyard: KIND: ADDRESS", of which KIND is
 * one of the names of sy_bug_name.
 *
 * Nothing here may allocate: the heap is in the middle of a call, with locks held, and what it holds may be damaged.
 */
#include "bug_report.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void sy__bug_report(struct sy_heap *heap, enum sy_bug kind, const void *address)
{
	char line[128];
	int length = snprintf(line, sizeof(line), "slabyard: %s: 0x%jx\n", sy_bug_name(kind), (uintmax_t)(uintptr_t)address);

	(void)heap;
	if (write(STDERR_FILENO, line, (size_t)length) < 0)
		_exit(134);
	abort();
}
