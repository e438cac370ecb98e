/* The text of reports, for programs and kernels. See text.c. */
#ifndef SY_LIBRARY_DEBUG_TEXT_H
#define SY_LIBRARY_DEBUG_TEXT_H

#include "core/debug/debug.h"

#ifdef __KERNEL__
#include <linux/kernel.h>
#include <linux/stdarg.h>
#include <linux/string.h>
#define PRIu64 "llu"
#define PRIu32 "u"
#define PRIx32 "x"
#else
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#endif

#define SY__MOST_TOLD 8u /* transactions of one report */

/* One transaction as a report tells it. */
struct sy__told {
	const char *what; /* "allocated", "freed" */
	const struct sy_cache *cache;
	uint64_t time, thread;
	uintptr_t frames[SY__DEBUG_FRAMES];
	unsigned depth;
};

struct sy__report {
	struct sy_heap *heap;
	const struct sy__finding *finding;
	uint64_t now;
	struct sy__told told[SY__MOST_TOLD + 1]; /* the last one is the call that found it */
	unsigned count;
	struct sy__told *here;
};

/* Collects the transactions on the object that a report is about; heap, finding and now are set. `count` is less than the room. */
void sy__report_gather(struct sy__report *);

void sy__report_say(const struct sy__report *);

/* ---- What the platform has ------------------------------------------------------------------------------------------ */

/* Writes a part of a line, or the end of one. */
__attribute__((format(printf, 1, 2))) void sy__say(const char *format, ...);

/* The name of an address that follows a call; it stays valid until the next call. And whether the address is in this library's own
 * code, as far as is known. */
const char *sy__symbol_of(uintptr_t address);
bool sy__symbol_is_own(uintptr_t address);

#endif
