/* Runs a workload and measures it. See run.c. */
#ifndef THREADS_RUN_H
#define THREADS_RUN_H

#include "work.h"

struct result {
	double seconds;
	uint64_t operations; /* objects taken and given in the work */
	uint64_t cpu_ns, threads_ns, lock_waits, lock_wait_ns, switches; /* threads_ns: from their starts to their ends */
	uint64_t peak_kb, work_kb, end_kb, trimmed_kb;
	int64_t live_bytes; /* when the work was done */
	uint64_t sampled_ticks, samples; /* of struct worker */
	double ns_per_tick;
	struct histogram takes, gives; /* ticks */
};

/* Called first of all: what is resident now is not the allocator's. */
void run_note_start(void);

/* The run has its target, workload and options. False: see fault; the program is to end. */
bool run_workload(struct run *, struct result *, struct fault *);

#endif
