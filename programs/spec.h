/* Allocator specs: policy[:tunable=value[,tunable=value...]], malloc:system, malloc:/path/lib.so. See spec.c. */
#ifndef PROGRAMS_SPEC_H
#define PROGRAMS_SPEC_H

#include <slabyard/slabyard.h>

#include "fault.h"
#include "json.h"

struct spec {
	const struct sy_policy *policy;     /* NULL: a malloc */
	int64_t tunables[SY_MAX_TUNABLES];  /* of the policy */
	const char *library;                /* of the malloc: a path, or NULL for the system's own */
};

/* False: see fault. The text must outlive the spec. */
bool spec_parse(struct spec *, const char *text, struct fault *);

/* The policy's name, or "malloc". */
const char *spec_name(const struct spec *);

/* What a heap of the spec's policy is made with. The grace period is 0. */
struct sy_heap_config spec_heap_config(const struct spec *, unsigned slots, unsigned nodes);

/* What every policy offers, as a JSON list. */
void spec_list(struct json *);

/* The tunables of a spec that change nothing beside the others, as a JSON list of names. kernel: as struct sy_kernel has it. */
void spec_idle(struct json *, const struct spec *, uint16_t kernel);

/* Slab geometry of final object sizes (decimal numbers) as a JSON list. False: see fault; nothing was written. */
bool spec_geometry(struct json *, const struct spec *, unsigned cpus, char *const *sizes, int count, struct fault *);

#endif
