/* Pretrace pages: in use since before the trace began. See pretrace.c. */
#ifndef SY_PRETRACE_H
#define SY_PRETRACE_H

#include "backend.h"

/* These pages are not pretrace pages, or no longer. With the zone's lock held. */
void sy__pretrace_remove(struct sy__zone *, uint64_t number, uint64_t count);

/* The hook sy__pages_hooks.checks. */
const char *sy__pretrace_check(const struct sy__zone *, uint64_t pretrace);

#endif
