/* The passes over a trace, and what they print. Each is a run of its own over a fresh driver. */
#ifndef REPLAY_H
#define REPLAY_H

#include "driver.h"

struct pass_options {
	struct driver_options driver;
	unsigned points;     /* of the time series */
	bool allow_failures; /* a failed request is a result, not a fault */
};

/* Where requests failed. */
struct failed {
	uint64_t count;
	const struct step *first;
};

/* The timed loop: serves all steps. See timed.c. */
void replay_steps(struct driver *, struct failed *);

/* Runs the whole trace once, then sets up a driver for the same again, whose memory is there already; resident_kb: how far
 * resident memory rose, 0 if unknown. False: see fault; nothing is left. See rehearse.c. */
bool rehearse(struct driver *, const struct scratch *, const struct spec *, const struct pass_options *,
              uint64_t *resident_kb, struct fault *);

/* Every deterministic measure, as an object with the member "exact". False: see fault; nothing was written. See exact.c. */
bool exact_pass(struct json *, const struct scratch *, const struct spec *, const struct pass_options *, struct fault *);

/* Runs the trace and prints the free lists at its end as a file of /proc: "buddyinfo" or "pagetypeinfo". */
bool proc_pass(FILE *out, const char *file, const struct scratch *, const struct spec *, const struct pass_options *,
               struct fault *);

/* The time of the whole, as an object with the member "timed". See timed.c. */
bool timed_pass(struct json *, const struct scratch *, const struct spec *, const struct pass_options *, struct fault *);

/* Percentiles of the time of one operation, as an object with the member "timed". See latency.c. */
bool latency_pass(struct json *, const struct scratch *, const struct spec *, const struct pass_options *,
                  struct fault *);

#endif
