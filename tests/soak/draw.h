/* Allocators with tunables drawn at random, for the soaks. */
#ifndef SOAK_DRAW_H
#define SOAK_DRAW_H

#include "core/heap.h"

#include "check.h"
#include "spec_support.h"

#define MOST_POLICIES 16
#define SPEC_BYTES 200

static inline uint64_t below(uint64_t *random, uint64_t bound)
{
	return check_random(random) % bound;
}

/* A number that is usually small, as large ones leave most policies with the same few slabs. */
static inline int64_t draw_number(const struct sy_tunable *tunable, uint64_t *random)
{
	uint64_t range = (uint64_t)(tunable->max - tunable->min), most = (uint64_t)1 << below(random, 12);

	return tunable->min + (int64_t)below(random, (range < most ? range : most) + 1);
}

static inline void add_tunable(char *spec, const struct sy_tunable *tunable, uint64_t *random)
{
	int64_t value = draw_number(tunable, random);

	if (tunable->combines)
		value = (int64_t)below(random, sy_tunable_choices(tunable));
	spec_tune(spec, SPEC_BYTES, tunable, value);
}

/* Not where a minimum is above its maximum, nor with what only replays have. */
static inline bool serves_threads(const char *spec)
{
	struct sy_heap_config parsed;
	struct sy_fault fault;

	if (!sy_spec_parse(&parsed, spec, &fault))
		return false;
	parsed.threads = parsed.concurrent = true;
	return !sy__heap_refuses(&parsed);
}

static inline void draw_spec(const struct sy_policy *policy, char *spec, uint64_t *random)
{
	do {
		snprintf(spec, SPEC_BYTES, "%s", policy->name);
		for (unsigned i = 0; i < policy->tunable_count; i++) {
			const struct sy_tunable *tunable = &policy->tunables[i];

			if (!below(random, 3) && strncmp(tunable->name, "log_", 4))
				add_tunable(spec, tunable, random);
		}
	} while (!serves_threads(spec));
}

/* Those that are named, or all; returns how many. */
static inline unsigned choose_policies(char **names, unsigned count, const struct sy_policy **policies)
{
	unsigned chosen = 0;

	for (unsigned i = 0; i < count && chosen < MOST_POLICIES; i++) {
		policies[chosen] = sy_policy_find(names[i]);
		if (!policies[chosen++]) {
			fprintf(stderr, "no allocator is named %s\n", names[i]);
			exit(2);
		}
	}
	for (const struct sy_policy *const *at = sy_policies; !count && *at && chosen < MOST_POLICIES; at++)
		policies[chosen++] = *at;
	return chosen;
}

#endif
