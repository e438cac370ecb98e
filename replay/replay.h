/* The passes over a trace, and what they print. Each begins from the same populated allocator. See stage.c. */
#ifndef REPLAY_REPLAY_H
#define REPLAY_REPLAY_H

#include "driver.h"
#include "resident.h"

#include "programs/ticks.h"

struct pass_options {
	struct driver_options driver;
	unsigned points;     /* of the time series */
	bool allow_failures; /* a failed request is a result, not a fault */
	bool locks;          /* the exact pass counts locks, and by cache what is off the fast path */
	FILE *log;           /* where the policy's log goes; or NULL */
};

/* What a malloc holds, in pages of the system; all 0: unknown, or no malloc. */
struct malloc_memory {
	uint64_t start, peak, end;
};

/* An allocator in the state before the first event; passes run on copies of it. */
struct stage {
	struct driver driver;
	const struct pass_options *options;
	struct resident *resident; /* pages that a run uses; NULL: not warmed up yet */
	uint64_t resident_kb;      /* how far a malloc's resident memory rose; 0: unknown, or no malloc */
	struct malloc_memory memory;
	struct ticks ticks;        /* the clock of timed passes, calibrated by the warm-up */
	bool serves;               /* answers are of one line */
};

/* Where requests failed for lack of memory. */
struct failed {
	uint64_t count;
	const struct step *first;
};

/* What is printed of a pass. */
enum pass { PASS_EXACT, PASS_TIMED, PASS_LATENCY, PASS_COST, PASS_BUDDYINFO, PASS_PAGETYPEINFO, PASS_SLABINFO, PASS_SLABS, PASSES };

/* The pass that a user calls so; PASSES: none. */
enum pass pass_named(const char *name);

/* Sets up all but the allocator: a machine with pages for a policy, without for a malloc. False: see fault; nothing is left. The options
 * must outlive the stage. Then the allocator, and populates it. False: see fault; the stage is still to be closed. */
bool stage_prepare(struct stage *, const struct scratch *, bool pages, const struct pass_options *, struct fault *);
bool stage_open(struct stage *, const struct spec *, struct fault *);
void stage_close(struct stage *);

/* Runs a pass in a child and writes what it found to standard output. */
bool stage_run(struct stage *, enum pass, struct fault *);

/* Runs the passes that standard input names, one a line, until it ends; each answer is one line. */
bool stage_serve(struct stage *, struct fault *);

/* Runs the exact pass of each setting that standard input names, a spec on each line; answers with its scalar measures. See settings.c. */
bool settings_serve(const struct scratch *, const struct pass_options *, struct fault *);

/* Runs the whole trace once, unmeasured, unless it has been done: tells what pages it uses. See warm_up.c. */
bool warm_up(struct stage *, struct fault *);

/* Measures what a malloc holds, in a run of its own. False: see fault. See malloc_memory.c. */
bool malloc_memory_measure(struct stage *, struct fault *);

/* ---- Passes, in the child ------------------------------------------------------------------------------------- */

/* Time of runs of page steps, including one reading of the clock for each run. */
struct page_time {
	uint64_t ticks, runs;
};

/* The timed loop: serves all steps. See timed.c. */
void replay_steps(struct driver *, struct failed *, struct page_time *);

/* Every deterministic measure, as an object with the member "exact". False: see fault; nothing was written. See exact.c. */
bool exact_pass(struct json *, struct stage *, struct fault *);

/* Memory at the end of the trace, as the file of /proc that is called so. */
bool proc_pass(FILE *out, enum pass, struct stage *, struct fault *);

/* The time of the whole, as an object with the member "timed". See timed.c. */
void timed_pass(struct json *, struct stage *);

/* Percentiles of the time of one operation, as an object with the member "timed". False: see fault. See latency.c. */
bool latency_pass(struct json *, struct stage *, struct fault *);

/* For valgrind's callgrind, which watches it; an object with the member "cost". See cost.c. */
void cost_pass(struct json *, struct stage *);

#endif
