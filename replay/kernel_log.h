/* Replays the log of a kernel that runs on slabyard. See kernel_log.c. */
#ifndef REPLAY_KERNEL_LOG_H
#define REPLAY_KERNEL_LOG_H

#include "programs/spec.h"

struct kernel_log_options {
	const char *path;     /* of the log */
	uint64_t records;     /* how many of its lines */
	unsigned cpus, nodes; /* of the kernel */
};

/* Replays the log and prints what the heap then holds. False: see fault; nothing was printed. */
bool kernel_log_print(const struct spec *, const struct kernel_log_options *, FILE *out, struct fault *);

#endif
