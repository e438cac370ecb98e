/* Random programs, the same for a seed on every machine. See draw.c. */
#ifndef SY_CONFORMANCE_DRAW_H
#define SY_CONFORMANCE_DRAW_H

#include "conformance.h"

#define PROGRAM_LENGTH 4000

struct conformance_program {
	struct conformance_config config;
	uint32_t count;
	uint8_t fail_each; /* to be run again with each page request failing */
	uint8_t reserved[3];
	struct op ops[PROGRAM_LENGTH];
};

void sy_conformance_draw(const struct sy_policy *, uint64_t seed, struct conformance_program *);

#endif
