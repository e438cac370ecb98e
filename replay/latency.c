/*
 * The latency pass: how long single operations take.
 *
 * Every allocation and every free of an object is put between two readings of the fastest clock there is: the
 * time-stamp counter on x86 (rdtscp, which waits for what came before it), the virtual counter on arm64, clock_gettime
 * elsewhere. Ticks become nanoseconds by comparing the counter with CLOCK_MONOTONIC over the whole pass. Reading the
 * clock costs time itself: its median over many empty pairs is taken off every sample, down to 0. Virtual machines may
 * count in steps of several nanoseconds, below which no sample tells anything: `clock_resolution_ns`. Pages of the
 * environment are served between the samples. The trace has been run once before, and the memory that it uses is
 * resident (rehearse.c).
 *
 * The readings disturb the operations (they serialise the processor), so totals come from the timed pass alone. What
 * this pass shows is the distribution: the fast path as the median, slow paths and page requests in the tail.
 *
 * Times go into log-linear histograms (histogram.h).
 */
#define _GNU_SOURCE /* clock_gettime */
#include "replay.h"

#include <stdlib.h>
#include <time.h>

#include "histogram.h"

#define CALIBRATION_SAMPLES 20001
#define LEAST_CALIBRATION_NS 20000000u

static uint64_t monotonic_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

#if defined(__x86_64__) || defined(__i386__)
#define CLOCK_NAME "rdtscp"
static inline uint64_t read_clock(void)
{
	unsigned processor;

	return __builtin_ia32_rdtscp(&processor);
}
#elif defined(__aarch64__)
#define CLOCK_NAME "cntvct_el0"
static inline uint64_t read_clock(void)
{
	uint64_t ticks;

	__asm__ volatile("isb\n\tmrs %0, cntvct_el0" : "=r"(ticks)::"memory");
	return ticks;
}
#else
#define CLOCK_NAME "clock_gettime"
static inline uint64_t read_clock(void)
{
	return monotonic_ns();
}
#endif

/* What the pass measures with and into. */
struct latency {
	uint64_t overhead;   /* ticks of an empty pair of readings */
	uint64_t resolution; /* ticks: some clocks count in steps */
	struct histogram alloc, free, both;
};

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void calibrate(struct latency *latency)
{
	static uint64_t samples[CALIBRATION_SAMPLES];

	latency->resolution = UINT64_MAX;
	for (unsigned i = 0; i < CALIBRATION_SAMPLES; i++) {
		uint64_t start = read_clock();

		samples[i] = read_clock() - start;
	}
	qsort(samples, CALIBRATION_SAMPLES, sizeof *samples, by_value);
	latency->overhead = samples[CALIBRATION_SAMPLES / 2];
	for (unsigned i = 1; i < CALIBRATION_SAMPLES; i++)
		if (samples[i] != samples[i - 1] && samples[i] - samples[i - 1] < latency->resolution)
			latency->resolution = samples[i] - samples[i - 1];
}

/* Takes one sample. A counter that runs backwards (another processor) counts as no time. */
static inline void take_sample(struct histogram *histogram, uint64_t start, uint64_t end, uint64_t overhead)
{
	histogram_add(histogram, end > start + overhead ? end - start - overhead : 0);
}

static void replay(struct driver *driver, struct latency *latency)
{
	uint64_t start, end;

	for (const struct step *step = driver->steps; step < driver->steps + driver->step_count; step++) {
		void **entry = &driver->live[step->handle];

		if (step_allocates(step)) {
			start = read_clock();
			*entry = driver_alloc(driver, step);
			end = read_clock();
			take_sample(&latency->alloc, start, end, latency->overhead);
		} else if (step_frees(step) && *entry) {
			void *object = *entry;

			start = read_clock();
			driver_free(driver, step, object);
			end = read_clock();
			take_sample(&latency->free, start, end, latency->overhead);
			*entry = NULL;
		} else if (step->kind == STEP_TICK) {
			driver_tick(driver, step_time(step));
		} else if (step->kind == EVENT_PAGE_ALLOC || step->kind == EVENT_PAGE_FREE ||
		           step->kind == EVENT_OLDER_PAGE_FREE) {
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
		if (histogram->total)
			json_measured(json, quantiles[i].name,
			              histogram_quantile(histogram, quantiles[i].thousandths) * ns_per_tick, 2);
		else
			json_null(json, quantiles[i].name);
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
	json_string(json, "clock", CLOCK_NAME);
	json_measured(json, "clock_overhead_ns", (double)latency->overhead * ns_per_tick, 2);
	if (latency->resolution != UINT64_MAX)
		json_measured(json, "clock_resolution_ns", (double)latency->resolution * ns_per_tick, 2);
	else
		json_null(json, "clock_resolution_ns");
	json_object_end(json);
	json_object_end(json);
}

static void measure(struct json *json, struct driver *driver, struct latency *latency)
{
	uint64_t start_ns = monotonic_ns(), start = read_clock(), end_ns;

	calibrate(latency);
	replay(driver, latency);
	while ((end_ns = monotonic_ns()) - start_ns < LEAST_CALIBRATION_NS)
		; /* a short trace gives too few ticks to compare the clocks by */
	write_latency(json, latency, (double)(end_ns - start_ns) / (double)(read_clock() - start));
}

bool latency_pass(struct json *json, struct stage *stage, struct fault *fault)
{
	struct latency *latency = calloc(1, sizeof *latency);

	if (!latency)
		return refuse(fault, "no memory for the histograms");
	resident_bring(stage->resident);
	measure(json, &stage->driver, latency);
	free(latency);
	return true;
}
