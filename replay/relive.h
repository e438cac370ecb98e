/* The log of a kernel that runs on slabyard, once more. See relive.c. */
#ifndef REPLAY_RELIVE_H
#define REPLAY_RELIVE_H

#include "spec.h"

struct relive_options {
	const char *path;     /* of the log */
	uint64_t records;     /* how many of its lines */
	unsigned cpus, nodes; /* of the kernel */
};

/* Does what the log says, and prints what the heap then holds. False: see fault; nothing was written. */
bool relive_print(const struct spec *, const struct relive_options *, FILE *out, struct fault *);

#endif
