/*
 * The fastest clock there is, for the time of single operations: the time-stamp counter on x86 (rdtscp, which waits for earlier
 * instructions), the virtual counter on arm64, clock_gettime elsewhere. Whoever includes this declares clock_gettime
 * (_GNU_SOURCE).
 *
 * Reading the clock takes time itself. The median over many empty pairs of readings is subtracted from every sample, down to 0.
 * Virtual machines may count in steps of several nanoseconds; shorter times cannot be told apart (`resolution`).
 */
#ifndef PROGRAMS_TICKS_H
#define PROGRAMS_TICKS_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include "json.h"

#define TICKS_SAMPLES 20001

struct ticks {
	uint64_t overhead;   /* ticks of an empty pair of readings, the median */
	double mean;         /* likewise, the mean */
	uint64_t resolution; /* ticks: some clocks count in steps; UINT64_MAX: unknown */
	uint64_t start, start_ns; /* both clocks at the calibration */
};

static inline uint64_t monotonic_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

#if defined(__x86_64__) || defined(__i386__)
#define TICKS_CLOCK "rdtscp"
static inline uint64_t ticks_now(void)
{
	unsigned processor;

	return __builtin_ia32_rdtscp(&processor);
}
#elif defined(__aarch64__)
#define TICKS_CLOCK "cntvct_el0"
static inline uint64_t ticks_now(void)
{
	uint64_t ticks;

	__asm__ volatile("isb\n\tmrs %0, cntvct_el0" : "=r"(ticks)::"memory");
	return ticks;
}
#else
#define TICKS_CLOCK "clock_gettime"
static inline uint64_t ticks_now(void)
{
	return monotonic_ns();
}
#endif

static inline int ticks_compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static inline double ticks_mean(const uint64_t *samples, unsigned count)
{
	double sum = 0;

	for (unsigned i = 0; i < count; i++)
		sum += (double)samples[i];
	return sum / count;
}

static inline void ticks_calibrate(struct ticks *ticks)
{
	static uint64_t samples[TICKS_SAMPLES];

	ticks->start_ns = monotonic_ns();
	ticks->start = ticks_now();
	ticks->resolution = UINT64_MAX;
	for (unsigned i = 0; i < TICKS_SAMPLES; i++) {
		uint64_t start = ticks_now();

		samples[i] = ticks_now() - start;
	}
	qsort(samples, TICKS_SAMPLES, sizeof *samples, ticks_compare);
	ticks->overhead = samples[TICKS_SAMPLES / 2];
	ticks->mean = ticks_mean(samples, TICKS_SAMPLES * 99 / 100); /* the rest was interrupted */
	for (unsigned i = 1; i < TICKS_SAMPLES; i++)
		if (samples[i] != samples[i - 1] && samples[i] - samples[i - 1] < ticks->resolution)
			ticks->resolution = samples[i] - samples[i - 1];
}

/* How long a tick is, in nanoseconds: from both clocks' readings at the calibration, which took half a millisecond or more, and now. */
static inline double ticks_ns(const struct ticks *ticks)
{
	return (double)(monotonic_ns() - ticks->start_ns) / (double)(ticks_now() - ticks->start);
}

/* Writes which clock this is, its overhead and its resolution. */
static inline void ticks_write(struct json *json, const struct ticks *ticks, double ns_per_tick)
{
	bool known = ticks->resolution != UINT64_MAX;

	json_string(json, "clock", TICKS_CLOCK);
	json_measured(json, "clock_overhead_ns", (double)ticks->overhead * ns_per_tick, 2);
	json_measured(json, "clock_resolution_ns", known ? (double)ticks->resolution * ns_per_tick : (double)NAN, 2);
}

/* The time of an operation, in ticks. A counter that runs backwards (on another processor) counts as no time. */
static inline uint64_t ticks_between(const struct ticks *ticks, uint64_t start, uint64_t end)
{
	return end > start + ticks->overhead ? end - start - ticks->overhead : 0;
}

#endif
