/* For programs that have allocators besides those of the library. See spec.c. */
#ifndef SY_SPEC_H
#define SY_SPEC_H

#include <slabyard/slabyard.h>

/* Another allocator that the program knows, to be offered when a name is wrong. */
struct sy__spec_other {
	const char *name;    /* what its specs start with */
	const char *example; /* one of them */
	const char *all;     /* how all of them are written, the end of a sentence */
};

#define SY__SPEC_SHOWN 104u /* bytes at most, with the zero */

/* A spec for a message: the beginning of a long one, without control characters. */
void sy__spec_show(char *line, size_t size, const char *spec);

/* A tunable's value, as a spec has it. */
void sy__spec_value(char *text, size_t size, const struct sy_tunable *, int64_t value);

/* As sy_spec_parse. */
bool sy__spec_parse(struct sy_heap_config *, const char *text, const struct sy__spec_other *, struct sy_fault *);

#endif
