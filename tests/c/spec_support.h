/* Allocator specs that are put together, as soaks and fuzzers do at random. */
#ifndef SPEC_SUPPORT_H
#define SPEC_SUPPORT_H

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <slabyard/slabyard.h>

/* Adds name=value to a spec in a text of `room` bytes. */
static inline void spec_add(char *spec, size_t room, const char *name, const char *value)
{
	size_t used = strlen(spec);

	snprintf(spec + used, room - used, "%c%s=%s", strchr(spec, ':') ? ',' : ':', name, value);
}

/* Adds a tunable; value: the number, or which of the choices. */
static inline void spec_tune(char *spec, size_t room, const struct sy_tunable *tunable, int64_t value)
{
	char number[24];

	snprintf(number, sizeof(number), "%" PRId64, value);
	spec_add(spec, room, tunable->name, tunable->choices ? tunable->choices[value] : number);
}

#endif
