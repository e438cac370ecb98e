/*
 * The latency pass: how long single operations take.
 *
 * Every allocation and free of an object stands between two readings of the fastest clock there is (programs/ticks.h). Ticks
 * become nanoseconds by comparing that clock with CLOCK_MONOTONIC since the warm-up. Environment pages are served between the
 * samples. The trace has been run once before, and the memory that it uses is resident (warm_up.c).
 *
 * The readings serialise the processor and so disturb the operations: totals come from the timed pass alone. This pass shows
 * the distribution, in log-linear histograms (programs/histogram.h): the fast path as the median, slow paths and page requests
 * in the tail.
 */
#define _GNU_SOURCE /* clock_gettime */
#include "replay.h"

#include <stdlib.h>

#include "programs/histogram.h"
#include "programs/ticks.h"

/* What the pass measures with and into. */
struct latency {
	const struct ticks *ticks;
	struct histogram alloc, free, both;
};

static void replay(struct driver *driver, struct latency *latency)
{
	uint64_t start, end;

	for (const struct step *step = driver->steps; step < driver->steps + driver->step_count; step++) {
		void **entry = &driver->live[step->handle];

		if (step_allocates(step)) {
			start = ticks_now();
			*entry = driver_alloc(driver, step);
			end = ticks_now();
			histogram_add(&latency->alloc, ticks_between(latency->ticks, start, end));
		} else if (step_frees(step) && *entry) {
			void *object = *entry;

			start = ticks_now();
			driver_free(driver, step, object);
			end = ticks_now();
			histogram_add(&latency->free, ticks_between(latency->ticks, start, end));
			*entry = NULL;
		} else if (step->kind == STEP_TICK) {
			driver_tick(driver, step_time(step));
		} else if (step_of_pages(step)) {
			driver_pages(driver, step);
		}
	}
}

static void write_quantiles(struct json *json, const char *key, const struct histogram *histogram, double ns_per_tick)
{
	static const struct {
		const char *name;
		unsigned thousandths;
	} quantiles[] = { { "median", 500 }, { "p99", 990 }, { "p999", 999 } };

	json_object(json, key);
	for (unsigned i = 0; i < sizeof quantiles / sizeof *quantiles; i++) {
		double ticks = histogram->total ? histogram_quantile(histogram, quantiles[i].thousandths) : (double)NAN;

		json_measured(json, quantiles[i].name, ticks * ns_per_tick, 2);
	}
	json_object_end(json);
}

static void write_latency(struct json *json, struct latency *latency, double ns_per_tick)
{
	histogram_merge(&latency->both, &latency->alloc);
	histogram_merge(&latency->both, &latency->free);
	json_object(json, NULL);
	json_object(json, "timed");
	write_quantiles(json, "alloc_ns", &latency->alloc, ns_per_tick);
	write_quantiles(json, "free_ns", &latency->free, ns_per_tick);
	write_quantiles(json, "latency_ns", &latency->both, ns_per_tick);
	ticks_write(json, latency->ticks, ns_per_tick);
	json_object_end(json);
	json_object_end(json);
}

bool latency_pass(struct json *json, struct stage *stage, struct fault *fault)
{
	struct latency *latency = calloc(1, sizeof *latency);

	if (!latency)
		return refuse(fault, "no memory for the histograms");
	latency->ticks = &stage->ticks;
	resident_bring(stage->resident);
	replay(&stage->driver, latency);
	write_latency(json, latency, ticks_ns(&stage->ticks));
	free(latency);
	return true;
}
